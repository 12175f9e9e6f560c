//! `/logout`: signing out here, after asking.

use super::answers::{self, Presentation};
use super::cookies;
use super::form_tokens::{self, Form};
use super::present_session::PresentSession;
use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::Account;
use crate::pages::logout::{LogoutView, SignedOutView};
use crate::protocol::reason::Reason;
use crate::store::audit_events::AuditEvent;
use crate::store::sessions;

/// Asks, or does it.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let Some(present) = PresentSession::find(app, request)? else { return Ok(signed_out(app, request)) };
    match request.method {
        Method::Post => take(app, request, &present),
        Method::Get | Method::Head | Method::Options | Method::Other => Ok(draw(app, request, &present, false)),
    }
}

fn take(app: &App, request: &Request, present: &PresentSession) -> Result<Response, Failure> {
    let form = form_tokens::read_post(app, request)?;
    let posted = form.single("form_token").map_err(Failure::bad_request)?;
    if !form_tokens::matches(app, Form::Logout, "", Some(&present.handle.random), posted) {
        return Ok(draw(app, request, present, true));
    }
    match form.single("decision").map_err(Failure::bad_request)? {
        Some("sign_out") => {
            let event = AuditEvent {
                event: "signed_out",
                sub: Some(&present.user.sub),
                sid: Some(&present.row.sid),
                source: Some(request.source),
                request_id: Some(&request.id),
                ..AuditEvent::default()
            };
            sessions::end(&app.store, present.row.day, &present.row.sid, &event)?;
            Ok(cookies::remove_session(&app.config, signed_out(app, request)))
        }
        Some("stay") => Ok(answers::see_other(format!("{}/", app.config.base_url.path()))),
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

fn draw(app: &App, request: &Request, present: &PresentSession, drawn_again: bool) -> Response {
    let token = form_tokens::issue(app, Form::Logout, "", &present.handle.random);
    let action = format!("{}/logout", app.config.base_url.path());
    let markup = Presentation { config: &app.config, request }.draw("", |chrome| {
        pages::logout::page(&LogoutView {
            chrome,
            action: &action,
            form_token: &token,
            account: Account { name: present.display_name(), username: &present.user.username },
            client: None,
            drawn_again,
        })
    });
    answers::form_page(200, markup)
}

fn signed_out(app: &App, request: &Request) -> Response {
    let presentation = Presentation { config: &app.config, request };
    let markup = presentation.draw("", |chrome| pages::logout::signed_out_page(&SignedOutView { chrome, back: None }));
    answers::plain_page(200, markup)
}
