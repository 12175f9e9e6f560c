//! `/account`: a signed-in person's sessions, allowed applications, accounts elsewhere and password. Who is not signed in
//! signs in first, for this page: within the tenant that the address names, or without one.

mod draw;
pub mod linked;
mod password;

use serde_json::json;

use super::answers::{self, Presentation};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::authorize::form_tokens::{self, Form};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::sealed_address;
use crate::endpoints::authorize::visit::Visit;
use crate::http::{Method, Request, Response};
use crate::pages::account::{AccountProblem, Outcome};
use crate::protocol::authorize::interaction::{Interaction, Step};
use crate::protocol::authorize::sealed_request::SealedPurpose;
use crate::protocol::words::identifiers::{ClientId, Sid};
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::session::Session;
use crate::store::audit_events::AuditEvent;
use crate::store::consents;
use crate::store::sessions;

use draw::draw;

#[derive(Clone, Copy)]
struct Change<'a> {
    app: &'a App,
    request: &'a Request,
    present: &'a PresentSession,
    visit: &'a Visit,
    form: &'a Parameters,
}

/// Shows the page, or takes one of its forms.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let query = Parameters::parse(request.query.as_bytes())?;
    let asked = |name| query.bounded(name, lengths::OTHER).map_err(Failure::bad_request);
    let (tenant, ui_locales) = (asked("tenant")?.map(str::to_owned), asked("ui_locales")?.map(str::to_owned));
    let purpose = SealedPurpose::Account { tenant, ui_locales, anew: false, by_password: false };
    let visit = Visit::resume(app, sealed_address::seal(app, purpose))?;
    let present = PresentSession::find(app, request)?;
    let interaction = visit.judge(app, present.as_ref(), None, &Step::Arrival)?;
    let Some(present) = present.filter(|_| matches!(interaction, Interaction::Proceed { .. })) else {
        return Ok(answers::see_other(visit.page(app, "/login")));
    };
    match request.method {
        Method::Post => take(app, request, &present, &visit),
        Method::Get | Method::Head | Method::Options | Method::Other => {
            let outcome = linked::signed_in_anew(app, &query, &present);
            draw(app, request, &present, 200, outcome)
        }
    }
}

fn take(app: &App, request: &Request, present: &PresentSession, visit: &Visit) -> Result<Response, Failure> {
    let form = form_tokens::read_post(app, request)?;
    let decision = form.single("decision")?;
    let change = Change { app, request, present, visit, form: &form };
    if decision == Some("confirm_link") {
        // From a page of its own, with a token of its own.
        return linked::confirm(change);
    }
    if !form_tokens::matches(app, Form::Account, "", Some(&present.handle.random), &form) {
        return change.answer(Outcome::Problem(AccountProblem::SessionChanged));
    }
    match decision {
        Some("link") => linked::begin(change),
        Some("unlink") => linked::unlink(change),
        Some("end_session") => end_session(change),
        Some("end_others") => end_others(change),
        Some("withdraw") => withdraw(change),
        Some("change_password") => password::change(change),
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

impl<'a> Change<'a> {
    fn parameter(&self, name: &str, most: usize) -> Result<&'a str, Failure> {
        let value = self.form.bounded(name, most)?;
        value.ok_or_else(|| Failure::bad_request(Reason::UnknownPageAction))
    }

    fn answer(&self, outcome: Outcome<'_>) -> Result<Response, Failure> {
        draw(self.app, self.request, self.present, 200, Some(outcome))
    }

    /// Says what was not done, and why to the log.
    fn refuse(&self, problem: AccountProblem, reason: Reason) -> Result<Response, Failure> {
        Ok(answers::noted(self.answer(Outcome::Problem(problem))?, reason))
    }

    fn event<'b>(&'b self, event: &'b str, sid: &'b Sid) -> AuditEvent<'b> {
        AuditEvent {
            event,
            sub: Some(&self.present.user.sub),
            sid: Some(sid),
            source: Some(self.request.source),
            request_id: Some(&self.request.id),
            detail: json!({"by": "user"}),
            ..AuditEvent::default()
        }
    }
}

/// Ends one session: of this person, whatever else was named.
fn end_session(change: Change<'_>) -> Result<Response, Failure> {
    let sid = Sid::new(change.parameter("session", lengths::OTHER)?);
    if sid == change.present.row.sid {
        return Ok(answers::see_other(format!("{}/logout", change.app.config.base_url.path())));
    }
    let (store, sub) = (&change.app.store, &change.present.user.sub);
    let theirs = sid.day().map(|day| sessions::find_of_user(store, day, &sid, sub)).transpose()?.flatten();
    let end = |session: Session| {
        sessions::end(store, session.day, &session.sid, &change.event("session_ended", &session.sid))
    };
    let ended = theirs.map(end).transpose()?.unwrap_or(false);
    change.answer(if ended { Outcome::SessionEnded } else { Outcome::Problem(AccountProblem::NothingThere) })
}

fn end_others(change: Change<'_>) -> Result<Response, Failure> {
    let (present, event) = (change.present, change.event("session_ended", &change.present.row.sid));
    sessions::end_others(&change.app.store, &present.user.sub, &present.row.sid, &event)?;
    change.answer(Outcome::OtherSessionsEnded)
}

/// Takes back what an application was allowed, remembered or not, and whatever it still holds.
fn withdraw(change: Change<'_>) -> Result<Response, Failure> {
    let (app, present) = (change.app, change.present);
    let client_id = ClientId::new(change.parameter("client_id", lengths::CLIENT_ID)?);
    let allowed = draw::allowances(app, present)?;
    let Some(client) =
        app.registry.client(&client_id)?.filter(|_| allowed.iter().any(|one| one.client_id == client_id))
    else {
        if consents::find(&app.store, &present.user.sub, &client_id)?.is_some() {
            app.store.confirm()?;
        }
        return change.answer(Outcome::Problem(AccountProblem::NothingThere));
    };
    let event = AuditEvent { client_id: Some(&client_id), ..change.event("consent_withdrawn", &present.row.sid) };
    consents::withdraw(&app.store, &present.user.sub, &client_id, &event)?;
    let presentation = Presentation { config: &app.config, request: change.request };
    change.answer(Outcome::AccessWithdrawn(presentation.language("").of(&client.client.client_name)))
}
