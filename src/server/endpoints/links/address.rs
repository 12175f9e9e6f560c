//! Links by which a user takes another e-mail address: in the session that asked for it
//! (`account/address.rs`), or in a later one of the same user.

use serde_json::json;

use super::flow::{Link, is_over};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::letters::AccountChange;
use crate::endpoints::account::{address, draw_again};
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices;
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::visit::tied_page::TiedPage;
use crate::endpoints::visit::{InSession, Turn, Visit};
use crate::http::Response;
use crate::pages;
use crate::pages::account::Outcome;
use crate::pages::frame::PageForm;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::AddressLink;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users;

pub(super) use crate::endpoints::account::address::PAGE;

impl Link for AddressLink {
    type Target = ();
    const PAGE: &'static str = PAGE;
    const SETS_COOKIE: bool = false;

    /// Whether it is still good for the user, their session says.
    fn judge(&self, app: &App) -> Result<Option<()>, Failure> {
        Ok((app.now() < self.expires_at).then_some(()))
    }

    fn answer(&self, page: &TiedPage<'_>, (): ()) -> Result<Response, Failure> {
        let app = page.app;
        let request = page.presentation.request;
        let visit = &Visit::to_account(app)?;
        let present = PresentSession::find(app, request)?;
        let present = present.filter(|present| {
            present.user.sub == self.user.subject && self.counts_in(&present.row)
        });
        let Some(present) = &present else {
            return Ok(sign_in_first(page));
        };
        let turn = Turn {
            app,
            request,
            visit,
            present,
            someone_else: false,
        };
        let user = present.user.clone().into_core();
        let stands = self.stands(&user, present.row.epochs.installation, app.now());
        match (stands, page.is_post()) {
            (true, true) => take(turn, page, self),
            (true, false) => Ok(ask(turn, page, self)),
            (false, _) => is_over(page),
        }
    }
}

fn sign_in_first(page: &TiedPage<'_>) -> Response {
    let path = page.app.config.base_url.path();
    let account = page.presentation.in_its_language(format!("{path}/account"));
    let markup = pages::forgotten::sign_in_to_confirm_page(page.chrome(), &account);
    answers::plain_page(200, markup)
}

fn ask(turn: InSession<'_>, page: &TiedPage<'_>, link: &AddressLink) -> Response {
    let random = &turn.present.handle.random;
    let form = PageForm {
        action: &page.address(PAGE),
        token: &forms::issue(turn.app, Form::NewAddress, &page.sealed, random),
    };
    let account = address(turn, "/account");
    let markup = pages::forgotten::address_page(page.chrome(), form, &link.new, &account);
    answers::form_page(200, markup)
}

fn take(turn: InSession<'_>, page: &TiedPage<'_>, link: &AddressLink) -> Result<Response, Failure> {
    let InSession { app, present, .. } = turn;
    let form = forms::read_post(app, turn.request)?;
    let browser = Some(&present.handle.random);
    if !forms::matches(app, Form::NewAddress, &page.sealed, browser, &form) {
        return Ok(ask(turn, page, link));
    }
    if !change_address(turn, link)? {
        return is_over(page);
    }
    draw_again(turn, Outcome::AddressChanged)
}

/// `false` when the account is no longer as it was read.
fn change_address(turn: InSession<'_>, link: &AddressLink) -> Result<bool, Failure> {
    let InSession { app, present, .. } = turn;
    let user = &present.user;
    let event = AuditEvent {
        detail: json!({"by": "user"}),
        ..turn.own_event("address_changed")
    };
    let old = stored_address(&user.claims);
    // Asked before the change, which forgets who verified the old one.
    let counted = users::address_counts(&app.store, &user.sub, old)?;
    if !users::change_address(&app.store, user, &present.row, old, &link.new, &event)? {
        return Ok(false);
    }
    users::tell_of_sharing(&app.store, &user.sub, "user", &event)?;
    if counted && old != Some(link.new.as_str()) {
        notices::send(app, &turn.presentation(), user, AccountChange::Address);
    }
    Ok(true)
}
