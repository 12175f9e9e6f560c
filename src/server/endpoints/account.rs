//! `/account`: a signed-in person's sessions, allowed applications, accounts elsewhere and
//! password. People who are not signed in sign in first: within the tenant that the address names,
//! or without one.

pub mod address;
pub mod factors;
pub mod linked;
mod name;

use serde_json::json;

use super::{answers, notices};
use crate::app::App;
use crate::app::failure::{Result, Stopped};
use crate::app::letters::AccountChange;
use crate::endpoints::cookies::SessionHandle;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::known_browser;
use crate::endpoints::login::new_factor::{RecoveryCodes, has_any, needs_passkey};
use crate::endpoints::login::password::{Attempt, PasswordOutcome as Tried, attempt, password_in};
use crate::endpoints::login::webauthn;
use crate::endpoints::transaction::{InSession, own_page, unknown_action};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::{Holdings, Outcome};
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use gatepost_protocol::authorize::consent::{Allowance, merged};
use gatepost_protocol::sealed_request::{SealedPurpose, Visit};
use gatepost_protocol::words::identifiers::{ClientId, Sid};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::{authenticators, consents, grants, sessions, users};

/// How many sign-ins are shown: the latest ones.
const MOST_SESSIONS: i64 = 100;
/// How many grants are looked at: the latest ones.
const MOST_GRANTS: i64 = 500;

/// A form of this page, in the session that it was posted in.
#[derive(Clone, Copy)]
struct Change<'a> {
    context: InSession<'a>,
    form: &'a Parameters,
}

/// Shows the page, or takes one of its forms.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let purpose = SealedPurpose::Account(own_page::visit(request)?);
    let current_session = CurrentSession::find(app, request)?;
    own_page::to_signed_in(
        app,
        request,
        current_session.as_ref(),
        purpose,
        |signed_in| match request.method {
            Method::Post => take(signed_in),
            _ => {
                let query = request.query_parameters()?;
                match linked::signed_in_anew(signed_in, query) {
                    Some(outcome) => factors::go_on(signed_in, query.single("for")?, outcome),
                    None => draw(signed_in, 200, None),
                }
            }
        },
    )
}

fn take(context: InSession<'_>) -> Result<Response> {
    let form = forms::read_post(context.app, context.request)?;
    let decision = form.single("decision")?;
    let change = Change {
        context,
        form: &form,
    };
    match decision {
        // These forms have tokens of their own.
        Some("confirm_link") if !needs_passkey(context.current_session) => {
            return linked::confirm(change);
        }
        Some("make_recovery_codes") => return factors::make_recovery_codes(change),
        _ => {}
    }
    if !context.has_form_token(Form::Account, "", &form) {
        return change.problem(FormProblem::SessionChanged);
    }
    match decision {
        // Somebody else may have begun this session: by a password alone, or by a code that was
        // phished.
        Some("link" | "unlink" | "end_session" | "end_others" | "change_password")
            if has_any(context.current_session) && !factors::may_change(context) =>
        {
            change.sign_in_anew()
        }
        // An account elsewhere signs in past the passkey.
        Some(
            "add_app" | "add_passkey" | "remove_factor" | "change_address" | "link"
            | "confirm_link" | "unlink",
        ) if needs_passkey(context.current_session) => factors::refuse_without_passkey(change),
        Some("sign_in_anew") => change.sign_in_anew(),
        Some("link") => linked::begin(change),
        Some("unlink") => linked::unlink(change),
        Some("end_session") => end_session(change),
        Some("end_others") => end_others(change),
        Some("withdraw") => withdraw(change),
        Some("add_app") => factors::add_app_here(change),
        Some("add_passkey") => factors::add_passkey_here(change),
        Some("save_codes") => RecoveryCodes::save(context.app, &form),
        Some("remove_factor") => factors::remove(change),
        Some("continue") => Ok(answers::see_other(address(context, "/account"))),
        Some("change_password") => change_password(change),
        Some("change_address") => address::ask_for(change),
        Some("change_name") if context.app.config.people_change_name => name::change(change),
        _ => Err(unknown_action()),
    }
}

/// The address of a page of ours, in the language of this one.
pub fn address(context: InSession<'_>, page: &str) -> String {
    let path = context.app.config.base_url.path_of(page);
    context.presentation().in_its_language(path)
}

/// A form of this page.
fn page_form(context: InSession<'_>) -> PageForm<'_> {
    PageForm {
        chrome: context.chrome(),
        action: address(context, "/account"),
        token: context.form_token(Form::Account, ""),
    }
}

impl<'a> Change<'a> {
    /// Sends them to sign in first, within the tenant of the session. A user with a password signs
    /// in by it. Whoever asked for a page that adds a factor gets it after that.
    fn sign_in_anew(&self) -> Result<Response> {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let visit = Visit {
            tenant: current_session.row.tenant.as_ref().map(ToString::to_string),
            ui_locales: transaction.request.ui_locales.clone(),
            anew: true,
            by_password: current_session.user.password_hash.is_some(),
        };
        let purpose = match self.form.single("decision")? {
            Some(decision @ ("add_app" | "add_passkey")) => SealedPurpose::AddFactor {
                visit,
                decision: decision.to_owned(),
            },
            _ => SealedPurpose::Account(visit),
        };
        own_page::to_sign_in(app, purpose)
    }

    fn parameter(&self, name: &str, most: usize) -> Result<&'a str> {
        let value = self.form.bounded(name, most)?;
        value.ok_or_else(unknown_action)
    }

    fn answer(&self, outcome: Outcome<'_>) -> Result<Response> {
        draw(self.context, 200, Some(outcome))
    }

    /// Says what was not done.
    fn problem(&self, problem: FormProblem) -> Result<Response> {
        self.answer(Outcome::Problem(problem))
    }

    /// The same, and why to the log.
    fn refuse(&self, problem: FormProblem, reason: Reason) -> Result<Response> {
        let page = self.problem(problem)?;
        Ok(answers::noted(page, reason))
    }

    fn event<'b>(&'b self, event: &'b str, sid: &'b Sid) -> AuditEvent<'b> {
        AuditEvent {
            sid: Some(sid),
            detail: json!({"by": "user"}),
            ..self.context.own_event(event)
        }
    }
}

/// What this person allowed, with one entry for each application.
fn allowances(app: &App, current_session: &CurrentSession) -> Result<Vec<Allowance>> {
    let (now, sub) = (app.now(), &current_session.user.sub);
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
fn draw(context: InSession<'_>, status: u16, outcome: Option<Outcome<'_>>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let snapshot = app.registry.snapshot();
    let sessions = sessions::list_of_user(&app.store, &current_session.user.sub, MOST_SESSIONS)?;
    let mut applications = Vec::new();
    for allowance in allowances(app, current_session)? {
        let client = app.registry.client(&allowance.client_id)?;
        applications.extend(client.map(|client| (client, allowance)));
    }
    let factors = authenticators::list(&app.store, &current_session.user.sub, true)?;
    let signals = webauthn::own_passkeys(app, current_session, &factors)?;
    let own = linked::identities(app, &snapshot, current_session)?;
    let linkable = linked::linkable(&snapshot, current_session, &own);
    let mut identities = Vec::new();
    for identity in own {
        let form_name = linked::form_name(app, &snapshot, &identity);
        identities.push((identity, form_name));
    }
    let holdings = Holdings {
        catalogue: &snapshot.catalogue,
        account: current_session.account(),
        has_password: current_session.user.password_hash.is_some(),
        has_own_way_in: current_session.user.has_own_way_in(),
        claims: app.letters.from().map(|_| &current_session.user.claims),
        may_change_name: app.config.people_change_name,
        factors: &factors,
        has_passkeys: webauthn::party(app).is_some(),
        signals: signals.as_deref(),
        recovery_codes_token: &factors::recovery_codes_token(context),
        needs_passkey: needs_passkey(current_session),
        current_session: &current_session.row,
        sessions: &sessions,
        bound_sessions: app.config.bound_sessions,
        applications: &applications,
        identities: &identities,
        linkable: &linkable,
    };
    let own = |page: &str| address(context, page);
    let page = pages::account::page(&page_form(context), own, &holdings, outcome);
    Ok(answers::scripted_page(status, page))
}

/// The page, in the session as it is stored now.
pub fn draw_again(context: InSession<'_>, outcome: Outcome<'_>) -> Result<Response> {
    let current_session = context.current_session.read_again(context.app)?;
    let current_session = current_session.as_ref().unwrap_or(context.current_session);
    draw(context.within(current_session), 200, Some(outcome))
}

/// Ends one session of this person. A session of somebody else is not found.
fn end_session(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let sid = Sid::new(change.parameter("session", parameters::OTHER)?);
    if sid == current_session.row.sid {
        return Ok(answers::see_other(app.config.base_url.path_of("/logout")));
    }
    let theirs = sessions::find_of_user(&app.store, &sid, &current_session.user.sub)?;
    let ended = match theirs {
        Some(session) => {
            let event = change.event("session_ended", &session.sid);
            sessions::end(&app.store, session.day, &session.sid, &event)?
        }
        None => false,
    };
    change.answer(if ended {
        Outcome::SessionEnded
    } else {
        Outcome::Problem(FormProblem::NothingThere)
    })
}

fn end_others(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let sid = &current_session.row.sid;
    let event = change.event("session_ended", sid);
    sessions::end_others(&app.store, &current_session.user.sub, sid, &event)?;
    change.answer(Outcome::OtherSessionsEnded)
}

/// Takes back what an application was allowed, remembered or not, and whatever it still holds.
fn withdraw(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let client_id = ClientId::new(change.parameter("client_id", parameters::CLIENT_ID)?);
    let allowed = allowances(app, current_session)?;
    let is_allowed = allowed.iter().any(|one| one.client_id == client_id);
    let Some(client) = app.registry.client(&client_id)?.filter(|_| is_allowed) else {
        return nothing_to_withdraw(change, &client_id);
    };
    let event = AuditEvent {
        client_id: Some(&client_id),
        ..change.event("consent_withdrawn", &current_session.row.sid)
    };
    consents::withdraw(&app.store, &current_session.user.sub, &client_id, &event)?;
    let language = change.context.presentation().language("");
    change.answer(Outcome::AccessWithdrawn(
        language.of(&client.client.client_name),
    ))
}

fn nothing_to_withdraw(change: Change<'_>, client_id: &ClientId) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    if consents::find(&app.store, &current_session.user.sub, client_id)?.is_some() {
        app.store.confirm()?;
    }
    change.problem(FormProblem::NothingThere)
}

/// Changes the password, ends everything else of this person, and keeps this session under a new
/// handle. The present one is asked for, and counts as any other attempt to sign in.
fn change_password(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        request,
        current_session,
        ..
    } = change.context;
    let passwords = match read_passwords(change) {
        Ok(passwords) => passwords,
        Err(stopped) => return change.problem(stopped.refusal()?),
    };
    let tried = attempt(
        app,
        &Attempt {
            tenant: current_session.user.tenant.as_ref(),
            username: passwords.username,
            password: &passwords.current,
            request,
            client: None,
        },
    );
    let user = match tried? {
        // The row that the present password was checked by.
        Tried::Accepted(found) if found.user.sub == current_session.user.sub => found.user,
        Tried::Accepted(_) | Tried::Wrong { .. } => {
            let event = change.event("password_change_refused", &current_session.row.sid);
            audit_events::insert(&app.store, &event)?;
            return change.refuse(FormProblem::PresentPasswordWrong, Reason::WrongPassword);
        }
        Tried::Throttled(wait) => {
            app.note_turned_away(request);
            let minutes = answers::minutes(wait);
            let problem = FormProblem::TooManyAttempts { minutes };
            let page = draw(change.context, 429, Some(Outcome::Problem(problem)))?;
            let page = answers::noted(page, Reason::TooManySignInFailures);
            return Ok(answers::retry_after(page, wait));
        }
    };
    let known = known_browser::account(app, request, Some(&user.sub));
    let password_hash = app
        .take_hashing_turn(request, None, known)?
        .hash(&passwords.new)?;
    let handle = SessionHandle::new(current_session.row.day, random::bytes());
    let changed = users::change_password(
        &app.store,
        &user,
        &password_hash,
        &current_session.row,
        &handle.hash(),
        &change.event("password_changed", &current_session.row.sid),
    )?;
    // Revoked or signed out while the hash was made: the next look will find no session.
    let Some(user_epoch) = changed else {
        app.store.confirm()?;
        return change.problem(FormProblem::SessionChanged);
    };
    let presentation = change.context.presentation();
    notices::send(app, &presentation, &user, AccountChange::Password);
    let mut kept = CurrentSession {
        handle,
        user,
        ..current_session.clone()
    };
    kept.row.epochs.user = user_epoch;
    let page = draw(
        change.context.within(&kept),
        200,
        Some(Outcome::PasswordChanged),
    )?;
    Ok(kept.carried_by(app, page))
}

/// What somebody types to change their password.
struct Passwords<'a> {
    username: &'a str,
    current: SecretText,
    new: SecretText,
}

fn read_passwords(change: Change<'_>) -> Result<Passwords<'_>, Stopped<FormProblem>> {
    let form = change.form;
    let typed = TypedPassword::of(form)?;
    let Some(current) = password_in(form, "present_password")? else {
        return Err(Stopped::Refused(FormProblem::PresentPasswordMissing));
    };
    if typed.new == current {
        return Err(Stopped::Refused(FormProblem::NewPasswordIsPresent));
    }
    if let Some(problem) = typed.problem(change.context.app) {
        return Err(Stopped::Refused(problem));
    }
    let Some(username) = change.context.current_session.user.username.as_deref() else {
        return Err(Stopped::Refused(FormProblem::NothingThere));
    };
    Ok(Passwords {
        username,
        current: SecretText::new(current),
        new: SecretText::new(typed.new),
    })
}

/// A new password, as it is typed twice.
pub struct TypedPassword<'a> {
    pub new: &'a str,
    again: &'a str,
}

impl<'a> TypedPassword<'a> {
    pub fn of(form: &'a Parameters) -> Result<TypedPassword<'a>> {
        Ok(TypedPassword {
            new: form.single("new_password")?.unwrap_or_default(),
            again: form.single("new_password_again")?.unwrap_or_default(),
        })
    }

    /// What is wrong with it.
    pub fn problem(&self, app: &App) -> Option<FormProblem> {
        match app.password_rules.check(self.new) {
            Err(flaw) => Some(FormProblem::NewPasswordUnfit(flaw)),
            Ok(()) if self.again != self.new => Some(FormProblem::NewPasswordsDiffer),
            Ok(()) => None,
        }
    }
}
