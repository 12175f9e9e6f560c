//! Links by which a user takes another e-mail address: in the session that asked for it
//! (`account/address.rs`), or in a later one of the same user.

use serde_json::json;

use super::flow::{Link, is_over};
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::endpoints::account::{address, draw_again};
use crate::endpoints::answers;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::endpoints::transaction::{AuthorizationTransaction, InSession, RequestContext};
use crate::http::Response;
use crate::pages;
use crate::pages::account::Outcome;
use crate::pages::frame::PageForm;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::AddressLink;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users;

pub use crate::endpoints::account::address::PAGE;

impl Link for AddressLink {
    type Target = ();
    const PAGE: &'static str = PAGE;
    const SETS_COOKIE: bool = false;

    /// Whether it is still good for the user, their session says.
    fn judge(&self, app: &App) -> Result<Option<()>> {
        Ok((app.now() < self.expires_at).then_some(()))
    }

    fn answer(&self, page: &TiedPage<'_>, (): ()) -> Result<Response> {
        let app = page.app;
        let request = page.presentation.request;
        let transaction = &AuthorizationTransaction::to_account(app)?;
        let current_session = CurrentSession::find(app, request)?;
        let current_session = current_session.filter(|current_session| {
            current_session.user.sub == self.user.subject && self.counts_in(&current_session.row)
        });
        let Some(current_session) = &current_session else {
            return Ok(sign_in_first(page));
        };
        let context = RequestContext {
            app,
            request,
            transaction,
            current_session,
            refused: None,
            someone_else: false,
        };
        let user = current_session.user.clone().into_core();
        let stands = self.stands(&user, current_session.row.epochs.installation, app.now());
        match (stands, page.is_post()) {
            (true, true) => take(context, page, self),
            (true, false) => Ok(ask(context, page, self)),
            (false, _) => is_over(page),
        }
    }
}

fn sign_in_first(page: &TiedPage<'_>) -> Response {
    let account = page.app.config.base_url.path_of("/account");
    let account = page.presentation.in_its_language(account);
    let markup = pages::forgotten::sign_in_to_confirm_page(page.chrome(), &account);
    answers::plain_page(200, markup)
}

fn ask(context: InSession<'_>, page: &TiedPage<'_>, link: &AddressLink) -> Response {
    let form = PageForm {
        chrome: page.chrome(),
        action: page.address(PAGE),
        token: context.form_token(Form::NewAddress, &page.sealed),
    };
    let account = address(context, "/account");
    let markup = pages::forgotten::address_page(&form, &link.new, &account);
    answers::form_page(200, markup)
}

fn take(context: InSession<'_>, page: &TiedPage<'_>, link: &AddressLink) -> Result<Response> {
    let form = forms::read_post(context.app, context.request)?;
    if !context.has_form_token(Form::NewAddress, &page.sealed, &form) {
        return Ok(ask(context, page, link));
    }
    if !change_address(context, link)? {
        return is_over(page);
    }
    draw_again(context, Outcome::AddressChanged)
}

/// `false` when the account is no longer as it was read.
fn change_address(context: InSession<'_>, link: &AddressLink) -> Result<bool> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let user = &current_session.user;
    let event = AuditEvent {
        detail: json!({"by": "user"}),
        ..context.own_event("address_changed")
    };
    let old = stored_address(&user.claims);
    // Asked before the change, which forgets who verified the old one.
    let counted = users::address_counts(&app.store, &user.sub, old)?;
    if !users::change_address(
        &app.store,
        user,
        &current_session.row,
        old,
        &link.new,
        &event,
    )? {
        return Ok(false);
    }
    users::note_shared_address(&app.store, &user.sub, "user", &event)?;
    if counted && old != Some(link.new.as_str()) {
        context.notify(AccountChange::Address);
    }
    Ok(true)
}
