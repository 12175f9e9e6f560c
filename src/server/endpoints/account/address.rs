//! The e-mail address of an account: asking for another one on the account page, and
//! `/account/address`, where the link of that letter leads. Opening it changes nothing. The address
//! is taken in the session that asked for it, or in a later one of the same user.

use serde_json::json;

use super::password_link::{over, used};
use super::{Change, address, draw_again};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::letters::{AccountChange, Errand};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices;
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::visit::{self, InSession, Turn, Visit, unknown_action};
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::account::{AccountProblem, Outcome};
use crate::pages::frame::PageForm;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::{
    ADDRESS_LIFETIME, ADDRESS_PREFIX, AddressLink, address_hash,
};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users;

const PAGE: &str = "/account/address";

/// Sends a letter to the address that they typed.
pub(super) fn ask_for(change: Change<'_>) -> Result<Response, Failure> {
    if change.turn.app.letters.from().is_none() {
        return Err(unknown_action());
    }
    if !super::factors::may_change(change.turn) {
        return change.sign_in_anew();
    }
    let typed = change.form.single("new_address")?.unwrap_or_default();
    let Ok(to) = MailAddress::parse(typed.trim()) else {
        return change.problem(AccountProblem::AddressUnfit);
    };
    send_letter(change.turn, &to);
    change.answer(Outcome::AddressLetterSent(to.as_str()))
}

fn send_letter(turn: InSession<'_>, to: &MailAddress) {
    let InSession { app, present, .. } = turn;
    let user = &present.user;
    let link = AddressLink {
        subject: user.sub.clone(),
        epoch: user.epoch,
        installation_epoch: present.row.epochs.installation,
        old_hash: address_hash(&user.claims),
        new: to.as_str().to_owned(),
        sid: present.row.sid.clone(),
        asked_at: app.now(),
        expires_at: app.now().plus(ADDRESS_LIFETIME),
    };
    let sealed = app.vault.mail_links.seal_text(ADDRESS_PREFIX, &link);
    let asked = notices::asked_by(&turn.presentation());
    let errand = Errand::NewAddress {
        sub: user.sub.clone(),
        to: to.clone(),
        link: SecretText::new(format!("{}{PAGE}?l={sealed}", app.issuer())),
    };
    notices::hand_over(app, &asked, Some(&user.sub), errand);
}

/// Takes the link out of the address, shows the question, or takes the answer.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let presentation = Presentation::of(app, request);
    if app.letters.from().is_none() {
        return Ok(answers::no_such_page(&presentation));
    }
    let query = request.query_parameters()?;
    if let Ok(Some(text)) = query.bounded("l", parameters::HANDLE) {
        return Ok(enter(app, presentation, text));
    }
    let Ok(opened) = visit::open(app, request) else {
        return Ok(over(presentation));
    };
    let SealedPurpose::NewAddress(link) = opened.request.purpose else {
        return Ok(over(presentation));
    };
    confirm(app, presentation, &opened.sealed, &link)
}

/// Goes on in the session that asked for the address, or in a later one of the same user.
fn confirm(
    app: &App,
    presentation: Presentation<'_>,
    sealed: &str,
    link: &AddressLink,
) -> Result<Response, Failure> {
    let request = presentation.request;
    let visit = &Visit::to_account(app)?;
    let present = &match PresentSession::find(app, request)? {
        Some(present) if present.user.sub == link.subject && link.counts_in(&present.row) => {
            present
        }
        Some(_) | None => return sign_in_first(app, presentation),
    };
    let turn = Turn {
        app,
        request,
        visit,
        present,
        someone_else: false,
    };
    let user = present.user.clone().into_core();
    let stands = link.stands(&user, present.row.epochs.installation, app.now());
    match (stands, request.method) {
        (true, Method::Post) => take(turn, sealed, link),
        (true, _) => Ok(ask(turn, sealed, link)),
        (false, Method::Post) => used(app, presentation),
        (false, _) => Ok(over(presentation)),
    }
}

fn enter(app: &App, presentation: Presentation<'_>, text: &str) -> Response {
    let opened = app
        .vault
        .mail_links
        .open_text::<AddressLink>(ADDRESS_PREFIX, text);
    match opened.filter(|link| app.now() < link.expires_at) {
        Some(link) => {
            let sealed = visit::seal(app, SealedPurpose::NewAddress(link)).sealed;
            let form = visit::page_address(app, PAGE, &sealed);
            answers::see_other(presentation.in_its_language(form))
        }
        None => over(presentation),
    }
}

fn sign_in_first(app: &App, presentation: Presentation<'_>) -> Result<Response, Failure> {
    let path = app.config.base_url.path();
    let account = presentation.in_its_language(format!("{path}/account"));
    let chrome = presentation.chrome("");
    let page = pages::forgotten::sign_in_to_confirm_page(chrome, &account);
    Ok(answers::plain_page(200, page))
}

fn ask(turn: InSession<'_>, sealed: &str, link: &AddressLink) -> Response {
    let InSession { app, present, .. } = turn;
    let presentation = turn.presentation();
    let action = presentation.in_its_language(visit::page_address(app, PAGE, sealed));
    let form = PageForm {
        action: &action,
        token: &forms::issue(app, Form::NewAddress, sealed, &present.handle.random),
    };
    let account = address(turn, "/account");
    let chrome = presentation.chrome("");
    let page = pages::forgotten::address_page(chrome, form, &link.new, &account);
    answers::form_page(200, page)
}

fn take(turn: InSession<'_>, sealed: &str, link: &AddressLink) -> Result<Response, Failure> {
    let InSession { app, present, .. } = turn;
    let form = forms::read_post(app, turn.request)?;
    let browser = Some(&present.handle.random);
    if !forms::matches(app, Form::NewAddress, sealed, browser, &form) {
        return Ok(ask(turn, sealed, link));
    }
    if !change_address(turn, link)? {
        return used(app, turn.presentation());
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
