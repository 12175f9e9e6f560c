//! Adding and removing second factors, on the account page and in the middle of a sign-in that needs one.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Change, draw};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent::{self, Form};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::http::{Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::{AccountProblem, Outcome, factor_name};
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{FactorProblem, NewApp};
use crate::protocol::login::passkey::{
    self, ALGORITHMS, Challenge, MOST_PASSKEYS, NAME, NewPasskey, RelyingParty, methods,
};
use crate::protocol::login::second_factor::{
    FactorKind, OFFER_LIFETIME, OfferedApp, RECOVERY_CODES, Typed, otpauth, recovery_code, secret_text, step_of,
    strongest, tie, typed, with_factor,
};
use crate::protocol::upstream::account::may_begin;
use crate::protocol::words::acr_values::Strength;
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretBytes;
use crate::protocol::words::session::Session;
use crate::store::StoreError;
use crate::store::audit_events::AuditEvent;
use crate::store::authenticators::{self, Authenticator};
use crate::store::users::UserRow;

/// Longest fields of a browser's answer, in characters of base64url.
pub const CLIENT_DATA: usize = 2_048;
const ATTESTATION: usize = 10_923;

/// What became of an app that was to be added.
pub enum Added {
    /// With the recovery codes that came along.
    Done(Vec<String>),
    Problem(FactorProblem),
}

/// What stands sealed in the database: whose it is stands in it.
pub fn sealed(app: &App, sub: &Subject, secret: &[u8]) -> Vec<u8> {
    app.vault.authenticators.seal(&[sub.as_str().as_bytes(), b"\0", secret].concat())
}

pub fn opened(app: &App, sub: &Subject, sealed: &SecretBytes) -> Option<SecretBytes> {
    let plain = app.vault.authenticators.open(sealed.expose())?;
    plain.strip_prefix(sub.as_str().as_bytes())?.strip_prefix(b"\0").map(SecretBytes::new)
}

/// Draws a page that sets up an app for that user: with the secret that it was drawn with before, or a new one.
pub fn with_offer<T>(app: &App, user: &UserRow, before: Option<&str>, draw: impl FnOnce(NewApp<'_>) -> T) -> T {
    let opened = before.and_then(|before| app.vault.second_factors.open_text::<OfferedApp>("", before));
    let offer = opened.unwrap_or_else(|| OfferedApp {
        secret: random::bytes(),
        subject: user.sub.clone(),
        factors: user.factors,
        expires_at: app.now().plus(OFFER_LIFETIME),
    });
    let (secret, sealed) = (SecretBytes::new(offer.secret), app.vault.second_factors.seal_text("", &offer));
    let otpauth = otpauth(&app.config.brand.name, user.username.as_deref().unwrap_or_default(), &secret);
    draw(NewApp {
        otpauth: &otpauth,
        key: &secret_text(&secret),
        sealed: &sealed,
        is_required: false,
        offers_passkey: false,
    })
}

/// The page that does nothing else, as an answer in that session.
pub fn app_page(
    app: &App,
    request: &Request,
    present: &PresentSession,
    page: PageForm<'_>,
    (before, is_required): (Option<&str>, bool),
    problem: Option<FactorProblem>,
) -> Response {
    let chrome = Presentation { config: &app.config, request }.chrome("");
    with_offer(app, &present.user, before, |new| {
        let new = NewApp { is_required, offers_passkey: is_required && party(app).is_some(), ..new };
        answers::scripted_page(200, pages::second_factor::add_app_page(chrome, page, new, problem))
    })
}

/// The app that such a page offered, once it has shown a right code.
pub fn shown_right(
    app: &App,
    user: &UserRow,
    form: &Parameters,
) -> Result<Result<Authenticator, FactorProblem>, Failure> {
    let now = app.now();
    let offered =
        form.bounded("app", parameters::HANDLE)?.and_then(|text| app.vault.second_factors.open_text("", text));
    let stands =
        |offer: &OfferedApp| offer.subject == user.sub && offer.factors == user.factors && now < offer.expires_at;
    let Some(offered) = offered.filter(stands) else { return Ok(Err(FactorProblem::Impossible)) };
    let Some(code) = form.bounded("code", parameters::OTHER)?.map(typed) else {
        return Ok(Err(FactorProblem::CodeMissing));
    };
    let secret = SecretBytes::new(offered.secret);
    let step = match code {
        Typed::Totp(code) => step_of(code, &secret, None, now),
        Typed::RecoveryCode(_) | Typed::Neither => None,
    };
    let new = || Authenticator::new(FactorKind::Totp, Vec::new(), Some(sealed(app, &user.sub, secret.expose())), now);
    Ok(step.map(|step| Authenticator { last_step: Some(step), ..new() }).ok_or(FactorProblem::CodeWrong))
}

/// Takes what that page posts: the app is theirs once it has shown a right code, and the session is as strong as both.
pub fn add_app(app: &App, request: &Request, present: &PresentSession, form: &Parameters) -> Result<Added, Failure> {
    match shown_right(app, &present.user, form)? {
        Ok(new) => add(app, request, present, new, (&["otp"], None)),
        Err(problem) => Ok(Added::Problem(problem)),
    }
}

/// Adds a factor that was just used; with the first, recovery codes.
fn add(
    app: &App,
    request: &Request,
    present: &PresentSession,
    factor: Authenticator,
    (methods, user_handle): (&[&str], Option<&[u8]>),
) -> Result<Added, Failure> {
    let (user, strength) = (&present.user, factor.kind.reaches());
    let (codes, rows) = match user.strongest_acr {
        Strength::SignedIn => new_recovery_codes(app, &user.sub),
        Strength::TwoFactors | Strength::PhishingResistant => (Vec::new(), Vec::new()),
    };
    let (amr, reached) = (with_factor(&present.row.amr, methods), strength.max(Strength::of(&present.row.acr)));
    let session = Session { amr, acr: reached.as_str().to_owned(), ..present.row.clone() };
    let detail = json!({"by": "user", "factor": factor.kind.as_str()});
    let event = AuditEvent { detail, ..event("factor_added", request, present) };
    let all: Vec<Authenticator> = [factor].into_iter().chain(rows).collect();
    let strongest = strength.max(user.strongest_acr);
    let reached = (&all[..], strongest, user_handle);
    let added = match authenticators::add(&app.store, user, reached, Some(&session), None, &event) {
        Ok(added) => added,
        // Somebody's passkey already.
        Err(StoreError::Taken(_)) => false,
        Err(error) => return Err(error.into()),
    };
    Ok(if added { Added::Done(codes) } else { Added::Problem(FactorProblem::Impossible) })
}

fn event<'a>(event: &'a str, request: &'a Request, present: &'a PresentSession) -> AuditEvent<'a> {
    let (sub, sid) = (Some(&present.user.sub), Some(&present.row.sid));
    AuditEvent { event, sub, sid, ..AuditEvent::default() }.by(request.source, &request.id)
}

pub fn new_recovery_codes(app: &App, sub: &Subject) -> (Vec<String>, Vec<Authenticator>) {
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| recovery_code(random::bytes())).collect();
    let row = |code: &String| {
        let Typed::RecoveryCode(digest) = typed(code) else { return None };
        let id = random::bytes::<16>().to_vec();
        Some(Authenticator::new(FactorKind::RecoveryCode, id, Some(sealed(app, sub, &digest)), app.now()))
    };
    let rows = codes.iter().filter_map(row).collect();
    (codes, rows)
}

/// What a browser is asked for a passkey by: one of these, or any that it has for us. Good as long as the page's address.
pub fn request_options(app: &App, tie: [u8; 32], allowed: &[&[u8]]) -> Option<String> {
    let allowed: Vec<Value> =
        allowed.iter().map(|id| json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(id)})).collect();
    let challenge = challenge(app, None, tie, app.config.authorization_request_lifetime);
    let party = party(app)?;
    let options = json!({
        "rpId": party.id, "challenge": challenge, "userVerification": "required", "allowCredentials": allowed,
    });
    Some(options.to_string())
}

/// What a browser is asked to make a passkey by.
fn creation(app: &App, present: &PresentSession, tie: [u8; 32], host: &str) -> Result<String, Failure> {
    let user = &present.user;
    let user_handle =
        authenticators::user_handle(&app.store, &user.sub)?.unwrap_or_else(|| random::bytes::<32>().to_vec());
    let name = user.username.as_deref().unwrap_or_default();
    let known = authenticators::list(&app.store, &user.sub, false)?;
    let known = known.iter().filter(|one| one.kind == FactorKind::Passkey);
    let known: Vec<Value> =
        known.map(|one| json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(&one.id)})).collect();
    let algorithms = ALGORITHMS.map(|alg| json!({"type": "public-key", "alg": alg}));
    let options = json!({
        "rp": {"id": host, "name": app.config.brand.name},
        "user": {"id": URL_SAFE_NO_PAD.encode(&user_handle), "name": name, "displayName": present.display_name()},
        "pubKeyCredParams": algorithms,
        "excludeCredentials": known,
        "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
        "attestation": "none",
        "challenge": challenge(app, Some(NewPasskey { factors: user.factors, user_handle }), tie, OFFER_LIFETIME),
    });
    Ok(options.to_string())
}

/// A sealed challenge, in base64url.
pub fn challenge(app: &App, new: Option<NewPasskey>, tie: [u8; 32], lifetime: Duration) -> String {
    let challenge = Challenge { new, tie, random: random::bytes(), expires_at: app.now().plus(lifetime) };
    app.vault.second_factors.seal_text("", &challenge)
}

/// The challenge that what a browser sent answers, if it is tied to one of these and in time.
pub fn answered(app: &App, bytes: &[u8], ties: &[[u8; 32]]) -> Option<Challenge> {
    let opened: Option<Challenge> = app.vault.second_factors.open_text("", &URL_SAFE_NO_PAD.encode(bytes));
    opened.filter(|challenge| ties.contains(&challenge.tie) && app.now() < challenge.expires_at)
}

/// A field in base64url.
pub fn decoded(form: &Parameters, name: &str, most: usize) -> Result<Vec<u8>, Failure> {
    let text = form.bounded(name, most)?.unwrap_or_default();
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Failure::bad_request(Reason::PasskeyMalformed))
}

pub fn party(app: &App) -> Option<RelyingParty<'_>> {
    passkey::host(app.issuer()).map(|id| RelyingParty { id, origin: app.config.base_url.origin() })
}

/// The page that makes a passkey, as an answer in that session.
pub fn passkey_page(
    app: &App,
    request: &Request,
    present: &PresentSession,
    page: PageForm<'_>,
    (tie, is_required): ([u8; 32], bool),
    problem: Option<FactorProblem>,
) -> Result<Response, Failure> {
    let party = party(app).ok_or_else(|| Failure::bad_request(Reason::FactorImpossible))?;
    let options = creation(app, present, tie, party.id)?;
    let chrome = Presentation { config: &app.config, request }.chrome("");
    let page = pages::second_factor::add_passkey_page(chrome, page, &options, is_required, problem);
    Ok(answers::scripted_page(200, page))
}

/// Takes what that page posts.
pub fn add_passkey(
    app: &App,
    request: &Request,
    present: &PresentSession,
    tie: [u8; 32],
    form: &Parameters,
) -> Result<Added, Failure> {
    let refused = || Ok(Added::Problem(FactorProblem::PasskeyRefused));
    let Some(party) = party(app) else { return refused() };
    let (client_data, object) =
        (decoded(form, "client_data", CLIENT_DATA)?, decoded(form, "attestation_object", ATTESTATION)?);
    let judged = passkey::challenge(&client_data, "webauthn.create", party)
        .and_then(|bytes| answered(app, &bytes, &[tie]).and_then(|found| found.new).ok_or(Reason::PasskeyChallenge))
        .and_then(|new| Ok((new, passkey::register(party, &object)?)));
    let (new, made) = match judged {
        Ok(judged) => judged,
        Err(reason) => {
            app.note_failure("second_factor_failed", request, None, reason);
            return refused();
        }
    };
    let all = authenticators::list(&app.store, &present.user.sub, false)?;
    let passkeys = all.iter().filter(|one| one.kind == FactorKind::Passkey).count();
    if new.factors != present.user.factors || passkeys >= MOST_PASSKEYS {
        return Ok(Added::Problem(FactorProblem::Impossible));
    }
    let name = form
        .single("name")?
        .map(|name| name.trim().chars().filter(|one| !one.is_control()).take(NAME).collect::<String>());
    let factor = Authenticator {
        name: name.filter(|name| !name.is_empty()),
        public_key: Some(made.key.to_jwk().to_string().into_bytes()),
        sign_count: Some(made.sign_count),
        backup_eligible: Some(made.backup_eligible),
        ..Authenticator::new(FactorKind::Passkey, made.id, None, app.now())
    };
    add(app, request, present, factor, (&methods(made.backup_eligible), Some(&new.user_handle)))
}

/// Soon after a sign-in with any factor that they have.
fn may_change(change: Change<'_>) -> bool {
    let (session, user) = (&change.present.row, &change.present.user);
    let is_enough = user.strongest_acr == Strength::SignedIn || Strength::of(&session.acr) > Strength::SignedIn;
    is_enough && may_begin(session, true, change.app.now())
}

/// Factors are for people with a password; the first is the operator's to allow.
fn may_add(change: Change<'_>) -> bool {
    let user = &change.present.user;
    user.password_hash.is_some() && (change.app.config.enrols || user.strongest_acr > Strength::SignedIn)
}

fn page_form<T>(change: Change<'_>, draw: impl FnOnce(PageForm<'_>) -> T) -> T {
    let action = super::visit_address(change.app, change.request);
    let token = consent::issue(change.app, Form::Account, "", &change.present.handle.random);
    draw(PageForm { action: &action, token: &token })
}

fn recovery_page(change: Change<'_>, codes: &[String]) -> Response {
    let chrome = Presentation { config: &change.app.config, request: change.request }.chrome("");
    page_form(change, |form| answers::form_page(200, pages::second_factor::recovery_page(chrome, Ok(form), codes)))
}

/// On the account page: shows what the app needs, or takes its code.
pub(super) fn add_app_here(change: Change<'_>) -> Result<Response, Failure> {
    let Change { app, request, present, form, .. } = change;
    if !may_add(change) {
        return change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible);
    }
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let before = form.single("app")?;
    let problem = match before {
        None => None,
        Some(_) => match add_app(app, request, present, form)? {
            Added::Done(codes) if codes.is_empty() => return read_again(change, Outcome::FactorAdded),
            Added::Done(codes) => return Ok(recovery_page(change, &codes)),
            Added::Problem(FactorProblem::Impossible) => {
                return change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible);
            }
            Added::Problem(problem) => Some(problem),
        },
    };
    Ok(page_form(change, |page| app_page(app, request, present, page, (before, false), problem)))
}

fn read_again(change: Change<'_>, outcome: Outcome<'_>) -> Result<Response, Failure> {
    let present = change.present.read_again(change.app)?;
    draw(change.app, change.request, present.as_ref().unwrap_or(change.present), 200, Some(outcome))
}

/// On the account page: shows what makes a passkey, or takes it.
pub(super) fn add_passkey_here(change: Change<'_>) -> Result<Response, Failure> {
    let Change { app, request, present, form, .. } = change;
    if !may_add(change) {
        return change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible);
    }
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let tie = tie("", &present.handle.random);
    let problem = match form.single("attestation_object")? {
        None => None,
        Some(_) => match add_passkey(app, request, present, tie, form)? {
            Added::Done(codes) if codes.is_empty() => return read_again(change, Outcome::FactorAdded),
            Added::Done(codes) => return Ok(recovery_page(change, &codes)),
            Added::Problem(problem) => Some(problem),
        },
    };
    page_form(change, |page| passkey_page(app, request, present, page, (tie, false), problem))
}

pub(super) fn make_recovery_codes(change: Change<'_>) -> Result<Response, Failure> {
    let Change { app, request, present, .. } = change;
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let (codes, rows) = new_recovery_codes(app, &present.user.sub);
    let detail = json!({"by": "user", "factor": FactorKind::RecoveryCode.as_str()});
    let event = AuditEvent { detail, ..event("factor_added", request, present) };
    let strongest = present.user.strongest_acr;
    let has_factor = strongest > Strength::SignedIn;
    let added = has_factor
        && authenticators::add(&app.store, &present.user, (&rows, strongest, None), Some(&present.row), None, &event)?;
    match added {
        true => Ok(recovery_page(change, &codes)),
        false => change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible),
    }
}

/// Removes a factor, and ends everything else of this person.
pub(super) fn remove(change: Change<'_>) -> Result<Response, Failure> {
    let Change { app, request, present, .. } = change;
    let name = change.parameter("factor", parameters::HANDLE)?;
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let all = authenticators::list(&app.store, &present.user.sub, false)?;
    let (named, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| factor_name(one) == name);
    let [factor] = named.as_slice() else {
        return change.refuse(AccountProblem::NothingThere, Reason::FactorImpossible);
    };
    let left = strongest(others.iter().map(|one| one.kind));
    if left < app.config.client_defaults.minimum_acr {
        return change.refuse(AccountProblem::LastFactor, Reason::LastFactor);
    }
    let detail = json!({"by": "user", "factor": factor.kind.as_str()});
    let event = AuditEvent { detail, ..event("factor_removed", request, present) };
    let which = (factor.kind, factor.id.as_slice());
    let epoch = authenticators::remove(&app.store, &present.user, which, left, Some(&present.row), &event)?;
    if epoch.is_none() {
        return change.refuse(AccountProblem::SessionChanged, Reason::FactorImpossible);
    }
    read_again(change, Outcome::FactorRemoved)
}
