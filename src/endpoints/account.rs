//! `/account`: a signed-in person's sessions, allowed applications, accounts elsewhere and
//! password. People who are not signed in sign in first: within the tenant that the address names,
//! or without one.

pub mod factors;
pub mod linked;
pub mod passkeys;
pub mod password_link;

use serde_json::json;

use super::answers::{self, Presentation};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Visit};
use crate::endpoints::cookies::SessionHandle;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::known_browser;
use crate::endpoints::login::password::{Attempt, Outcome as Tried, attempt};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::{AccountProblem, Holdings, Outcome};
use crate::pages::frame::PageForm;
use crate::protocol::authorize::consent::{Allowance, merged};
use crate::protocol::authorize::interaction::{Interaction, Step};
use crate::protocol::login::password::check_new;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::words::epochs::SessionEpochs;
use crate::protocol::words::identifiers::{ClientId, Sid};
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::Session;
use crate::store::audit_events::{self, AuditEvent};
use crate::store::{authenticators, consents, grants, sessions, users};

/// Sign-ins shown: the latest ones.
const MOST_SESSIONS: i64 = 100;
/// Grants looked at: the latest ones.
const MOST_GRANTS: i64 = 500;

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
    let asked = |name| {
        query
            .bounded(name, parameters::OTHER)
            .map_err(Failure::bad_request)
    };
    let (tenant, ui_locales) = (
        asked("tenant")?.map(str::to_owned),
        asked("ui_locales")?.map(str::to_owned),
    );
    let purpose = SealedPurpose::Account {
        tenant,
        ui_locales,
        anew: false,
        by_password: false,
    };
    let visit = Visit::resume(app, visit::seal(app, purpose))?;
    let present = PresentSession::find(app, request)?;
    let interaction = visit.judge(app, present.as_ref(), None, &Step::Arrival)?;
    let Some(present) = present.filter(|_| matches!(interaction, Interaction::Proceed { .. }))
    else {
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

fn take(
    app: &App,
    request: &Request,
    present: &PresentSession,
    visit: &Visit,
) -> Result<Response, Failure> {
    let form = forms::read_post(app, request)?;
    let decision = form.single("decision")?;
    let change = Change {
        app,
        request,
        present,
        visit,
        form: &form,
    };
    match decision {
        // These forms have tokens of their own.
        Some("confirm_link") => return linked::confirm(change),
        Some("make_recovery_codes") => return factors::make_recovery_codes(change),
        Some(_) | None => {}
    }
    if !forms::matches(app, Form::Account, "", Some(&present.handle.random), &form) {
        return change.answer(Outcome::Problem(AccountProblem::SessionChanged));
    }
    match decision {
        // Somebody else may have begun this session: by a password alone, or by a code that was
        // phished.
        Some("link" | "unlink" | "end_session" | "end_others" | "change_password")
            if factors::has_any(present) && !factors::may_change(change) =>
        {
            change.sign_in_anew()
        }
        Some("add_app" | "add_passkey" | "remove_factor") if factors::needs_passkey(present) => {
            factors::refuse_without_passkey(change)
        }
        Some("sign_in_anew") => change.sign_in_anew(),
        Some("link") => linked::begin(change),
        Some("unlink") => linked::unlink(change),
        Some("end_session") => end_session(change),
        Some("end_others") => end_others(change),
        Some("withdraw") => withdraw(change),
        Some("add_app") => factors::add_app_here(change),
        Some("add_passkey") => passkeys::add_passkey_here(change),
        Some("remove_factor") => factors::remove(change),
        Some("continue") => Ok(answers::see_other(address(app, request, "/account"))),
        Some("change_password") => change_password(change),
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

/// The address of a page of ours, in the language of this one.
fn address(app: &App, request: &Request, page: &str) -> String {
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    presentation.in_its_language(format!("{}{page}", app.config.base_url.path()))
}

impl<'a> Change<'a> {
    /// To a sign-in first, within the session's tenant; by their password if they have one.
    fn sign_in_anew(&self) -> Result<Response, Failure> {
        let Change {
            app,
            present,
            visit,
            ..
        } = self;
        let purpose = SealedPurpose::Account {
            tenant: present.row.tenant.as_ref().map(ToString::to_string),
            ui_locales: visit.request.ui_locales.clone(),
            anew: true,
            by_password: present.user.password_hash.is_some(),
        };
        let visit = Visit::resume(app, visit::seal(app, purpose))?;
        Ok(answers::see_other(visit.page(app, "/login")))
    }

    fn parameter(&self, name: &str, most: usize) -> Result<&'a str, Failure> {
        let value = self.form.bounded(name, most)?;
        value.ok_or_else(|| Failure::bad_request(Reason::UnknownPageAction))
    }

    fn answer(&self, outcome: Outcome<'_>) -> Result<Response, Failure> {
        draw(self.app, self.request, self.present, 200, Some(outcome))
    }

    /// Says what was not done, and why to the log.
    fn refuse(&self, problem: AccountProblem, reason: Reason) -> Result<Response, Failure> {
        Ok(answers::noted(
            self.answer(Outcome::Problem(problem))?,
            reason,
        ))
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

/// All that this person allowed, one entry an application.
fn allowances(app: &App, present: &PresentSession) -> Result<Vec<Allowance>, Failure> {
    let (now, sub) = (app.now(), &present.user.sub);
    let mut found = Vec::new();
    for (client_id, row) in consents::list_of_user(&app.store, sub)? {
        if let Some(client) = app.registry.client(&client_id)? {
            found.extend(Allowance::of_consent(
                &row.consent,
                row.expires_at,
                &client.client,
                now,
            ));
        }
    }
    for grant in grants::list_offline_of_user(&app.store, sub, MOST_GRANTS)? {
        if let Some(client) = app.registry.client(&grant.client_id)? {
            found.extend(Allowance::of_grant(&grant, &client.client, now));
        }
    }
    Ok(merged(found))
}

/// The page, as everything is stored now.
fn draw(
    app: &App,
    request: &Request,
    present: &PresentSession,
    status: u16,
    outcome: Option<Outcome<'_>>,
) -> Result<Response, Failure> {
    let snapshot = app.registry.snapshot();
    let sessions = sessions::list_of_user(&app.store, &present.user.sub, MOST_SESSIONS)?;
    let mut applications = Vec::new();
    for allowance in allowances(app, present)? {
        applications.extend(
            app.registry
                .client(&allowance.client_id)?
                .map(|client| (client, allowance)),
        );
    }
    let factors = authenticators::list(&app.store, &present.user.sub, true)?;
    let own = linked::identities(app, &snapshot, present)?;
    let linkable = linked::linkable(&snapshot, present, &own);
    let named = |identity| {
        let form_name = linked::form_name(app, &snapshot, &identity);
        (identity, form_name)
    };
    let holdings = Holdings {
        catalogue: &snapshot.catalogue,
        account: present.account(),
        has_password: present.user.password_hash.is_some(),
        factors: &factors,
        has_passkeys: passkeys::party(app).is_some(),
        recovery_codes_token: &factors::recovery_codes_token(app, present),
        needs_passkey: factors::needs_passkey(present),
        present: &present.row,
        sessions: &sessions,
        applications: &applications,
        identities: &own.into_iter().map(named).collect::<Vec<_>>(),
        linkable: &linkable,
    };
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    let (action, token) = (
        address(app, request, "/account"),
        forms::issue(app, Form::Account, "", &present.handle.random),
    );
    let (chrome, form) = (
        presentation.chrome(""),
        PageForm {
            action: &action,
            token: &token,
        },
    );
    let page = pages::account::page(
        chrome,
        form,
        &address(app, request, "/logout"),
        &holdings,
        outcome,
    );
    Ok(answers::scripted_page(status, page))
}

/// Ends one session: of this person, whatever else was named.
fn end_session(change: Change<'_>) -> Result<Response, Failure> {
    let sid = Sid::new(change.parameter("session", parameters::OTHER)?);
    if sid == change.present.row.sid {
        return Ok(answers::see_other(format!(
            "{}/logout",
            change.app.config.base_url.path()
        )));
    }
    let (store, sub) = (&change.app.store, &change.present.user.sub);
    let theirs = sid
        .day()
        .map(|day| sessions::find_of_user(store, day, &sid, sub))
        .transpose()?
        .flatten();
    let end = |session: Session| {
        sessions::end(
            store,
            session.day,
            &session.sid,
            &change.event("session_ended", &session.sid),
        )
    };
    let ended = theirs.map(end).transpose()?.unwrap_or(false);
    change.answer(if ended {
        Outcome::SessionEnded
    } else {
        Outcome::Problem(AccountProblem::NothingThere)
    })
}

fn end_others(change: Change<'_>) -> Result<Response, Failure> {
    let (present, event) = (
        change.present,
        change.event("session_ended", &change.present.row.sid),
    );
    sessions::end_others(
        &change.app.store,
        &present.user.sub,
        &present.row.sid,
        &event,
    )?;
    change.answer(Outcome::OtherSessionsEnded)
}

/// Takes back what an application was allowed, remembered or not, and whatever it still holds.
fn withdraw(change: Change<'_>) -> Result<Response, Failure> {
    let (app, present) = (change.app, change.present);
    let client_id = ClientId::new(change.parameter("client_id", parameters::CLIENT_ID)?);
    let allowed = allowances(app, present)?;
    let Some(client) = app
        .registry
        .client(&client_id)?
        .filter(|_| allowed.iter().any(|one| one.client_id == client_id))
    else {
        if consents::find(&app.store, &present.user.sub, &client_id)?.is_some() {
            app.store.confirm()?;
        }
        return change.answer(Outcome::Problem(AccountProblem::NothingThere));
    };
    let event = AuditEvent {
        client_id: Some(&client_id),
        ..change.event("consent_withdrawn", &present.row.sid)
    };
    consents::withdraw(&app.store, &present.user.sub, &client_id, &event)?;
    let presentation = Presentation {
        config: &app.config,
        request: change.request,
    };
    change.answer(Outcome::AccessWithdrawn(
        presentation.language("").of(&client.client.client_name),
    ))
}

/// Changes the password, ends everything else of this person, and keeps this session under a new
/// handle. The present one is asked for, and counts as any other attempt to sign in.
fn change_password(change: Change<'_>) -> Result<Response, Failure> {
    let Change {
        app,
        request,
        present,
        form,
        ..
    } = change;
    let (given, new) = (
        form.single("present_password")?,
        form.single("new_password")?.unwrap_or_default(),
    );
    let again = form.single("new_password_again")?.unwrap_or_default();
    let Some(given) = given else {
        return change.answer(Outcome::Problem(AccountProblem::PresentPasswordMissing));
    };
    if given.len() > parameters::PASSWORD_BYTES {
        return Err(Failure::bad_request(Reason::OverlongParameter));
    }
    if new == given {
        return change.answer(Outcome::Problem(AccountProblem::NewPasswordIsPresent));
    }
    if check_new(new).is_err() {
        return change.answer(Outcome::Problem(AccountProblem::NewPasswordUnfit));
    }
    if new != again {
        return change.answer(Outcome::Problem(AccountProblem::NewPasswordsDiffer));
    }
    let Some(username) = present.user.username.as_deref() else {
        return change.answer(Outcome::Problem(AccountProblem::NothingThere));
    };
    let (tenant, password) = (present.user.tenant.as_ref(), &SecretText::new(given));
    let found = match attempt(
        app,
        &Attempt {
            tenant,
            username,
            password,
            request,
            client_id: None,
        },
    )? {
        Tried::Accepted(found) if found.user.sub == present.user.sub => found,
        Tried::Accepted(_) | Tried::Wrong { .. } => {
            audit_events::insert(
                &app.store,
                &change.event("password_change_refused", &present.row.sid),
            )?;
            return change.refuse(AccountProblem::PresentPasswordWrong, Reason::WrongPassword);
        }
        Tried::Throttled(wait) => {
            app.note_turned_away(request);
            let problem = AccountProblem::TooManyAttempts {
                minutes: answers::minutes(wait),
            };
            let response = draw(app, request, present, 429, Some(Outcome::Problem(problem)))?;
            return Ok(answers::retry_after(
                answers::noted(response, Reason::TooManySignInFailures),
                wait,
            ));
        }
    };
    // The row that the present password was checked by.
    let user = found.user;
    let known = known_browser::account(app, request, Some(&user.sub));
    let password_hash = app
        .take_hashing_turn(request, None, known)?
        .hash(&SecretText::new(new))?;
    let handle = SessionHandle::new(present.row.day, random::bytes());
    let event = change.event("password_changed", &present.row.sid);
    let epoch = users::change_password(
        &app.store,
        &user,
        &password_hash,
        &present.row,
        &handle.hash(),
        &event,
    )?;
    // Revoked or signed out while the hash was made: the next look will find no session.
    let Some(epoch) = epoch else {
        app.store.confirm()?;
        return change.answer(Outcome::Problem(AccountProblem::SessionChanged));
    };
    let epochs = SessionEpochs {
        user: epoch,
        ..present.row.epochs
    };
    let row = Session {
        epochs,
        ..present.row.clone()
    };
    let kept = PresentSession {
        handle,
        row,
        user,
        browser_state: present.browser_state.clone(),
    };
    let response = draw(app, request, &kept, 200, Some(Outcome::PasswordChanged))?;
    Ok(kept.carried_by(app, response))
}
