//! `/login/second-factor`: what comes between a right password and the session of somebody who has a second factor, and what
//! makes a standing session stronger. Until it is answered there is no session; what was proved travels sealed in the form.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::LoginPage;
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::account::factors::{self, Added, CLIENT_DATA};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent::{self, Form};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Visit};
use crate::endpoints::cookies;
use crate::endpoints::login::sign_in::{self, Proof};
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::PageForm;
use crate::pages::login::{LoginProblem, SignInFor};
use crate::pages::second_factor::FactorProblem;
use crate::protocol::authorize::authorize_request::Refusal;
use crate::protocol::authorize::interaction::Stronger;
use crate::protocol::keys::jwt::PublicKey;
use crate::protocol::login::passkey::{self, Passkey};
use crate::protocol::login::second_factor::{
    FactorKind, MOST_CODES, TICKET_LIFETIME, Ticket, Typed, step_of, tie, typed, with_factor,
};
use crate::protocol::words::acr_values::Strength;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::secret::SecretBytes;
use crate::store::audit_events::{self, AuditEvent};
use crate::store::authenticators;
use crate::store::sign_in_failures::{self, FailureBucket};
use crate::store::tokens;
use crate::store::users::{self, UserRow};

const PAGE: &str = "/login/second-factor";
/// A spent challenge is remembered for so long after its end.
const SPENT_FOR: Duration = Duration::from_secs(3_600);

/// Asks somebody for another factor who has typed their password just now.
pub(super) fn after_password(
    app: &App,
    request: &Request,
    visit: &Visit,
    user: &UserRow,
    proof: Proof,
) -> Result<Response, Failure> {
    let browser = cookies::pre_session(&app.config, request).unwrap_or_else(|| SecretBytes::new([]));
    let event = AuditEvent {
        event: "first_factor",
        client_id: visit.client_id(),
        sub: Some(&user.sub),
        ..AuditEvent::default()
    };
    audit_events::insert(&app.store, &event.by(request.source, &request.id))?;
    let ticket = Ticket {
        subject: user.sub.clone(),
        epoch: user.epoch,
        factors: user.factors,
        amr: proof.amr,
        auth_time: app.now().max(visit.request.received_at),
        remember: proof.remember,
        may_skip: false,
        expires_at: app.now().plus(TICKET_LIFETIME),
        tie: tie(&visit.sealed, &browser),
    };
    ask(app, request, visit, &ticket, None)
}

/// Asks for what makes that session stronger.
pub fn in_session(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    stronger: Stronger,
) -> Result<Response, Failure> {
    let may_skip = match stronger {
        Stronger::Prove { may_skip } => may_skip,
        Stronger::Enrol(Strength::PhishingResistant) => return enrol_passkey(app, request, visit, present, None),
        Stronger::Enrol(_) => return Ok(enrol(app, request, visit, present, None, None)),
    };
    let (user, row) = (&present.user, &present.row);
    let ticket = Ticket {
        subject: user.sub.clone(),
        epoch: user.epoch,
        factors: user.factors,
        amr: row.amr.clone(),
        auth_time: row.auth_time,
        remember: present.max_age(app).is_some(),
        may_skip,
        expires_at: app.now().plus(TICKET_LIFETIME),
        tie: tie(&visit.sealed, &present.handle.random),
    };
    ask(app, request, visit, &ticket, None)
}

/// Draws the page that asks; its form token is the ticket.
fn ask(
    app: &App,
    request: &Request,
    visit: &Visit,
    ticket: &Ticket,
    problem: Option<FactorProblem>,
) -> Result<Response, Failure> {
    let factors = authenticators::list(&app.store, &ticket.subject, false)?;
    let has_app = factors.iter().any(|one| one.kind == FactorKind::Totp);
    let passkeys: Vec<&[u8]> =
        factors.iter().filter(|one| one.kind == FactorKind::Passkey).map(|one| &one.id[..]).collect();
    let options = request_options(app, ticket.tie, &passkeys).filter(|_| !passkeys.is_empty());
    let token = app.vault.second_factors.seal_text("", ticket);
    let presentation = Presentation { config: &app.config, request };
    let action = presentation.in_language_of(visit::page_address(app, PAGE, &visit.sealed), visit.ui_locales());
    let (chrome, form) = (presentation.chrome(visit.ui_locales()), PageForm { action: &action, token: &token });
    let purpose =
        SignInFor { request: &visit.request, client: visit.registration(), catalogue: &visit.snapshot.catalogue };
    let page =
        pages::second_factor::page(chrome, form, purpose, (has_app, options.as_deref()), ticket.may_skip, problem);
    Ok(visit.noted(answers::scripted_page(200, page)))
}

/// What a browser is asked for a passkey by: one of these, or any that it has for us. Good as long as the page's address.
pub(super) fn request_options(app: &App, tie: [u8; 32], allowed: &[&[u8]]) -> Option<String> {
    let allowed: Vec<Value> =
        allowed.iter().map(|id| json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(id)})).collect();
    let challenge = factors::challenge(app, None, tie, app.config.authorization_request_lifetime);
    let party = factors::party(app)?;
    let options = json!({
        "rpId": party.id, "challenge": challenge, "userVerification": "required", "allowCredentials": allowed,
    });
    Some(options.to_string())
}

/// The page that makes the passkey that this sign-in needs.
fn enrol_passkey(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    problem: Option<FactorProblem>,
) -> Result<Response, Failure> {
    let token = consent::issue(app, Form::NewFactor, &visit.sealed, &present.handle.random);
    let action = visit::page_address(app, PAGE, &visit.sealed);
    let (form, tie) = (PageForm { action: &action, token: &token }, tie(&visit.sealed, &present.handle.random));
    factors::passkey_page(app, request, present, form, (tie, true), problem).map(|page| visit.noted(page))
}

/// The page that sets up the factor that this sign-in needs.
fn enrol(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    before: Option<&str>,
    problem: Option<FactorProblem>,
) -> Response {
    let token = consent::issue(app, Form::NewFactor, &visit.sealed, &present.handle.random);
    let action = visit::page_address(app, PAGE, &visit.sealed);
    let form = PageForm { action: &action, token: &token };
    visit.noted(factors::app_page(app, request, present, form, (before, true), problem))
}

/// Takes the forms of both pages. Whoever only goes there begins where sign-ins begin.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let visit = &Visit::resume(app, visit::open(app, request)?)?;
    if request.method != Method::Post {
        return Ok(answers::see_other(visit.page(app, "/login")));
    }
    let form = consent::read_post(app, request)?;
    let present = PresentSession::find(app, request)?;
    if let Some(present) = &present
        && consent::matches(app, Form::NewFactor, &visit.sealed, Some(&present.handle.random), &form)
    {
        return take_new_factor(app, request, visit, present, &form);
    }
    let ticket = form.bounded("form_token", parameters::HANDLE)?;
    let ticket: Option<Ticket> = ticket.and_then(|text| app.vault.second_factors.open_text("", text));
    let of_session = present.as_ref().map(|present| tie(&visit.sealed, &present.handle.random));
    let of_browser = cookies::pre_session(&app.config, request).map(|browser| tie(&visit.sealed, &browser));
    let page = LoginPage { present: present.as_ref(), ..LoginPage::of(app, request, visit) };
    let is_tied =
        |ticket: &Ticket| [of_session, of_browser].contains(&Some(ticket.tie)) && app.now() < ticket.expires_at;
    let ticket = ticket.filter(is_tied);
    if form.single("decision")? == Some("passkey") {
        let ties: Vec<[u8; 32]> = [of_session, of_browser].into_iter().flatten().collect();
        return prove_by_passkey(page, ticket.as_ref(), &ties, &form);
    }
    let Some(ticket) = ticket else {
        return Ok(page.again("", LoginProblem::PageExpired, Reason::PageExpired));
    };
    match (form.single("decision")?, &present) {
        (Some("not_now"), Some(present)) if ticket.may_skip => page.go_on(present),
        (Some("cancel"), Some(_)) if of_session == Some(ticket.tie) => Err(declined(visit)),
        (Some("cancel"), _) => page.cancelled(),
        (Some(_), _) => Err(Failure::bad_request(Reason::UnknownPageAction)),
        (None, _) => prove(page, &ticket, &form),
    }
}

fn declined(visit: &Visit) -> Failure {
    visit.refuse(Refusal::new(AuthorizeErrorCode::UnmetAuthenticationRequirements, Reason::FactorDeclined))
}

/// Goes on once a factor was added that this sign-in needed, or declines.
fn take_new_factor(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    form: &Parameters,
) -> Result<Response, Failure> {
    let go_on = |present: &PresentSession| sign_in::go_on(app, request, visit, present, false);
    let tie = tie(&visit.sealed, &present.handle.random);
    let added = |decision| match decision {
        "add_passkey" => factors::add_passkey(app, request, present, tie, form),
        _ => factors::add_app(app, request, present, form),
    };
    match form.single("decision")? {
        Some("cancel") => Err(declined(visit)),
        Some("continue") => go_on(present),
        Some(decision @ ("add_app" | "add_passkey")) => match added(decision)? {
            Added::Problem(problem) if decision == "add_passkey" => {
                enrol_passkey(app, request, visit, present, Some(problem))
            }
            Added::Problem(problem) => Ok(enrol(app, request, visit, present, form.single("app")?, Some(problem))),
            Added::Done(codes) if codes.is_empty() => match present.read_again(app)? {
                Some(present) => go_on(&present),
                None => Ok(answers::see_other(visit.page(app, "/login"))),
            },
            Added::Done(codes) => {
                let token = consent::issue(app, Form::NewFactor, &visit.sealed, &present.handle.random);
                let action = visit::page_address(app, PAGE, &visit.sealed);
                let chrome = Presentation { config: &app.config, request }.chrome(visit.ui_locales());
                let form = PageForm { action: &action, token: &token };
                Ok(answers::form_page(200, pages::second_factor::recovery_page(chrome, form, &codes)))
            }
        },
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

/// Tries the code that was typed, and signs in with all that was proved.
fn prove(page: LoginPage<'_>, ticket: &Ticket, form: &Parameters) -> Result<Response, Failure> {
    let LoginPage { app, request, visit, .. } = page;
    let nobody = ClientId::new("");
    let found = users::find_for_client(&app.store, &ticket.subject, visit.client_id().unwrap_or(&nobody))?;
    let Some(found) = found.filter(|found| stands(ticket, &found.user)) else {
        return Ok(page.again("", LoginProblem::PageExpired, Reason::PageExpired));
    };
    let Some(code) = form.bounded("code", parameters::OTHER)? else {
        return ask(app, request, visit, ticket, Some(FactorProblem::CodeMissing));
    };
    match try_code(page, &found.user, code)? {
        Tried::Right => {
            let (amr, strength) = with_factor(&ticket.amr, &["otp"], Strength::TwoFactors);
            let acr = strength.as_str().to_owned();
            let auth_time = Some(ticket.auth_time);
            let proof = Proof { amr, acr, auth_time, ..Proof::password(ticket.remember) };
            sign_in::complete(app, request, visit, page.present, found, &proof)
        }
        Tried::Wrong => {
            app.note_failure("second_factor_failed", request, visit.client_id(), Reason::SecondFactorWrong);
            let response = ask(app, request, visit, ticket, Some(FactorProblem::CodeWrong))?;
            Ok(answers::noted(response, Reason::SecondFactorWrong))
        }
        Tried::Throttled(wait) => {
            app.note_turned_away(request);
            let problem = FactorProblem::TooManyAttempts { minutes: answers::minutes(wait) };
            let mut response = ask(app, request, visit, ticket, Some(problem))?;
            response.status = 429;
            Ok(answers::retry_after(answers::noted(response, Reason::TooManyCodes), wait))
        }
    }
}

/// Signs in with a passkey: by itself, or as what a ticket asks for.
fn prove_by_passkey(
    page: LoginPage<'_>,
    ticket: Option<&Ticket>,
    ties: &[[u8; 32]],
    form: &Parameters,
) -> Result<Response, Failure> {
    let LoginPage { app, request, visit, .. } = page;
    let refused = |reason| {
        app.note_failure("second_factor_failed", request, visit.client_id(), reason);
        let response = match ticket {
            Some(ticket) => ask(app, request, visit, ticket, Some(FactorProblem::PasskeyRefused))?,
            None => page.again("", LoginProblem::PasskeyRefused, reason),
        };
        Ok(answers::noted(response, reason))
    };
    let (id, client_data) =
        (factors::decoded(form, "id", parameters::HANDLE)?, factors::decoded(form, "client_data", CLIENT_DATA)?);
    let (data, signature) =
        (factors::decoded(form, "authenticator_data", CLIENT_DATA)?, factors::decoded(form, "signature", CLIENT_DATA)?);
    let handle = factors::decoded(form, "user_handle", parameters::OTHER)?;
    let Some(party) = factors::party(app) else { return refused(Reason::PasskeyElsewhere) };
    let challenge = match passkey::challenge(&client_data, "webauthn.get", party) {
        Ok(challenge) => challenge,
        Err(reason) => return refused(reason),
    };
    let Some(asked) = factors::answered(app, &challenge, ties).filter(|asked| asked.new.is_none()) else {
        return refused(Reason::PasskeyChallenge);
    };
    let Some((sub, row)) = authenticators::find_passkey(&app.store, &id)? else {
        return refused(Reason::PasskeySignature);
    };
    let nobody = ClientId::new("");
    let found = users::find_for_client(&app.store, &sub, visit.client_id().unwrap_or(&nobody))?;
    let is_meant = |user: &UserRow| match ticket {
        Some(ticket) => stands(ticket, user),
        None => user.enabled && user.tenant == visit.request.acr_values.tenant && visit.choices().password,
    };
    let own_handle = authenticators::user_handle(&app.store, &sub)?;
    let is_theirs = handle.is_empty() || own_handle.is_some_and(|own| own == handle);
    let key = row.public_key.as_deref().and_then(|key| PublicKey::from_jwk(&serde_json::from_slice(key).ok()?));
    let (Some(found), Some(key)) = (found.filter(|found| is_theirs && is_meant(&found.user)), key) else {
        return refused(Reason::PasskeySignature);
    };
    let (before, backup_eligible) = (row.sign_count.unwrap_or(0), row.backup_eligible.unwrap_or(false));
    let known = Passkey { id, key, sign_count: before, backup_eligible };
    let event = AuditEvent { client_id: visit.client_id(), sub: Some(&sub), ..AuditEvent::default() };
    let event = event.by(request.source, &request.id);
    let sign_count = match passkey::verify(party, &known, &client_data, &data, &signature) {
        Ok(sign_count) => sign_count,
        Err(reason) => {
            if reason == Reason::PasskeyCloned {
                audit_events::insert(&app.store, &AuditEvent { event: "passkey_cloned", ..event })?;
            }
            return refused(reason);
        }
    };
    let name = URL_SAFE_NO_PAD.encode(&challenge);
    // The day must be the same whenever it comes again.
    let forgotten_at = asked.expires_at.plus(SPENT_FOR);
    if !tokens::take_assertion(&app.store, "passkey", &name, forgotten_at)?
        || !authenticators::use_passkey(&app.store, &sub, &row, sign_count, &event)?
    {
        return refused(Reason::PasskeyChallenge);
    }
    let none = Vec::new();
    let (amr, strength) = with_factor(
        ticket.map_or(&none, |ticket| &ticket.amr),
        &passkey::methods(backup_eligible),
        Strength::PhishingResistant,
    );
    let remember = ticket.map_or(Ok(form.single("remember")?.is_some()), |ticket| Ok::<_, Failure>(ticket.remember))?;
    let (acr, auth_time) = (strength.as_str().to_owned(), ticket.map(|ticket| ticket.auth_time));
    let proof = Proof { amr, acr, auth_time, ..Proof::password(remember) };
    sign_in::complete(app, request, visit, page.present, found, &proof)
}

/// Whether the user is still as they were when the ticket was made.
fn stands(ticket: &Ticket, user: &UserRow) -> bool {
    user.enabled && user.sub == ticket.subject && user.epoch == ticket.epoch && user.factors == ticket.factors
}

enum Tried {
    Right,
    Wrong,
    /// Not looked at: too many before.
    Throttled(Duration),
}

/// Each code counts before it is looked at, so that many at once are no way around the limit.
fn try_code(page: LoginPage<'_>, user: &UserRow, text: &str) -> Result<Tried, Failure> {
    let LoginPage { app, request, visit, .. } = page;
    let (kind, limits) = match typed(text) {
        Typed::Totp(_) => (FactorKind::Totp, &MOST_CODES[..]),
        Typed::RecoveryCode(_) => (FactorKind::RecoveryCode, &MOST_CODES[..1]),
        Typed::Neither => return Ok(Tried::Wrong),
    };
    let source = Source::of(request.source).bytes();
    let bucket = |(at, (_, seconds)): (usize, &(i32, u64))| {
        let from: &[u8] = if at == 0 { &source } else { &[] };
        let parts = [b"code", kind.as_str().as_bytes(), user.sub.as_str().as_bytes(), &seconds.to_be_bytes(), from];
        FailureBucket { bucket: app.vault.throttle_buckets.tag(&parts), window: Duration::from_secs(*seconds) }
    };
    let buckets: Vec<FailureBucket> = limits.iter().enumerate().map(bucket).collect();
    let counts = sign_in_failures::record(&app.store, &buckets)?;
    for ((most, _), own) in limits.iter().zip(&buckets) {
        if let Some(count) = counts.iter().find(|count| count.bucket == own.bucket && count.failures > *most) {
            return Ok(Tried::Throttled(count.expires_at.since(app.now())));
        }
    }
    let event = AuditEvent { client_id: visit.client_id(), sub: Some(&user.sub), ..AuditEvent::default() };
    let event = event.by(request.source, &request.id);
    let secrets = authenticators::list(&app.store, &user.sub, true)?;
    let mut secrets = secrets.iter().filter(|one| one.kind == kind);
    let opened = |sealed: &Option<SecretBytes>| factors::opened(app, &user.sub, sealed.as_ref()?);
    let is_right = match typed(text) {
        Typed::Totp(code) => match secrets.next().and_then(|one| Some((opened(&one.secret)?, one.last_step))) {
            Some((secret, last)) => match step_of(code, &secret, last, app.now()) {
                Some(step) => authenticators::use_step(&app.store, &user.sub, step, &event)?,
                None => false,
            },
            None => false,
        },
        Typed::RecoveryCode(digest) => {
            let digest = SecretBytes::new(digest);
            match secrets.find(|one| opened(&one.secret).is_some_and(|stored| stored == digest)) {
                Some(code) => authenticators::use_recovery_code(&app.store, &user.sub, &code.id, &event)?,
                None => false,
            }
        }
        Typed::Neither => false,
    };
    if let (true, Some(own)) = (is_right, buckets.first()) {
        sign_in_failures::clear(&app.store, &own.bucket)?;
    }
    Ok(if is_right { Tried::Right } else { Tried::Wrong })
}
