//! `/logout`: the page that asks whether to sign out, on one's own or for a sealed request of a
//! client.

pub mod back_channel_logout;
pub mod end_session;

use super::answers::{self, Presentation};
use super::{cookies, static_files};
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::config::Config;
use crate::endpoints::current_session::{CurrentSession, Presence};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::logout::end_session::SignOut;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::PageForm;
use gatepost_protocol::logout::end_session::SignOutStep;
use gatepost_protocol::words::reason::Reason;

/// Refused when the sealed request does not open or has expired, or when the form is not of this
/// browser.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let sign_out = SignOut::reopen(app, request)?;
    let presence = Presence::find(app, request, None)?;
    let current_session = presence.standing();
    let step = sign_out.next(current_session);
    match (request.method, current_session, step) {
        (Method::Post, Some(current_session), _) => take(&sign_out, current_session),
        (_, Some(current_session), SignOutStep::Ask) => Ok(draw(&sign_out, current_session, false)),
        (Method::Head, _, _) => Ok(answers::nothing_to_show()),
        (_, Some(current_session), _) => sign_out.finish(current_session),
        (_, None, _) => sign_out.finish_signed_out(),
    }
}

fn take(sign_out: &SignOut<'_>, current_session: &CurrentSession) -> Result<Response> {
    let SignOut { app, request, .. } = *sign_out;
    let form = forms::read_post(app, request)?;
    let browser = Some(&current_session.handle.random);
    if !forms::matches(app, Form::Logout, &sign_out.sealed, browser, &form) {
        return Ok(draw(sign_out, current_session, true));
    }
    match form.single("decision")? {
        Some("sign_out") => sign_out.finish(current_session),
        Some("stay") => {
            let home = format!("{}/", app.config.base_url.path());
            let presentation = Presentation::of(app, request);
            Ok(answers::see_other(
                presentation.in_language_of(home, sign_out.ui_locales()),
            ))
        }
        _ => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

fn draw(sign_out: &SignOut<'_>, current_session: &CurrentSession, drawn_again: bool) -> Response {
    let SignOut { app, request, .. } = *sign_out;
    let presentation = Presentation::of(app, request);
    let form = PageForm {
        chrome: presentation.chrome(sign_out.ui_locales()),
        action: presentation.in_its_language(sign_out.page()),
        token: forms::issue(
            app,
            Form::Logout,
            &sign_out.sealed,
            &current_session.handle.random,
        ),
    };
    let account = (!current_session.is_refused()).then(|| current_session.account());
    let page = pages::logout::page(&form, account, sign_out.client(), drawn_again);
    answers::form_page(200, page)
}

/// `/connect/checksession` (OpenID Connect Session Management §3.3): the one page of ours that
/// anybody may frame. It reads one cookie of its own and knows nothing else; neither session nor
/// database is asked.
pub fn check_session(config: &Config) -> Response {
    let script = format!(
        "{}/static/check-session.js?v={}",
        config.base_url.path(),
        static_files::version(config)
    );
    let cookie = cookies::browser_state_cookie_name(config);
    answers::frameable_page(pages::logout::check_session_page(&cookie, &script))
}
