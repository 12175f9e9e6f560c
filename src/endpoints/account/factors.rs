//! Adding and removing second factors, on the account page and in the middle of a sign-in that
//! needs one.

use std::time::Duration;

use serde_json::json;

use super::{Change, draw};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::cookies::SessionHandle;
use crate::endpoints::forms::{self, Form};
use crate::http::{Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::{AccountProblem, Outcome};
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{FactorProblem, NewApp, factor_name, otpauth};
use crate::protocol::login::passkey;
use crate::protocol::login::second_factor::{
    FactorKind, OfferedApp, Typed, recovery_code, step_of, to_base32, typed, with_factor,
};
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretBytes;
use crate::protocol::words::session::{FRESH_SIGN_IN, Session};
use crate::protocol::words::strength::Strength;
use crate::store::StoreError;
use crate::store::audit_events::AuditEvent;
use crate::store::authenticators::{self, Authenticator, Kept, NewFactors};
use crate::store::users::UserRow;

/// For how long a page that adds a factor is good.
pub(super) const OFFER_LIFETIME: Duration = Duration::from_secs(600);
const RECOVERY_CODES: usize = 10;
/// Offers begin with it, and are sealed with it.
const OFFER: &str = "gpo_";

/// What became of a factor that was to be added.
pub enum Added {
    /// One more.
    Another,
    /// The first. Everything else of this person has ended. The session goes on under a new handle,
    /// so that whoever copied the old one does not go on with it.
    First {
        handle: SessionHandle,
        recovery_codes: Vec<String>,
    },
    Problem(FactorProblem),
}

/// The secret as it is sealed in the database, with the user that it belongs to.
pub fn sealed(app: &App, sub: &Subject, secret: &[u8]) -> Vec<u8> {
    app.vault
        .authenticators
        .seal(&[sub.as_str().as_bytes(), b"\0", secret].concat())
}

pub fn opened(app: &App, sub: &Subject, sealed: &SecretBytes) -> Option<SecretBytes> {
    let plain = app.vault.authenticators.open(sealed.expose())?;
    plain
        .strip_prefix(sub.as_str().as_bytes())?
        .strip_prefix(b"\0")
        .map(SecretBytes::new)
}

/// Draws a page that sets up an app for that user: with the secret that it was drawn with before,
/// or a new one.
pub fn with_offer<T>(
    app: &App,
    user: &UserRow,
    before: Option<&str>,
    draw: impl FnOnce(NewApp<'_>) -> T,
) -> T {
    let opened = before.and_then(|before| {
        app.vault
            .second_factors
            .open_text::<OfferedApp>(OFFER, before)
    });
    let offer = opened
        .filter(|offer| stands(app, user, offer))
        .unwrap_or_else(|| OfferedApp {
            secret: random::bytes(),
            subject: user.sub.clone(),
            factors: user.factors,
            expires_at: app.now().plus(OFFER_LIFETIME),
        });
    let (secret, sealed) = (
        SecretBytes::new(offer.secret),
        app.vault.second_factors.seal_text(OFFER, &offer),
    );
    let otpauth = otpauth(
        &app.config.brand.name,
        user.username.as_deref().unwrap_or_default(),
        &secret,
    );
    draw(NewApp {
        otpauth: &otpauth,
        key: &to_base32(&secret),
        sealed: &sealed,
        is_required: false,
        is_first: user.strongest_acr == Strength::SignedIn,
        offers_passkey: false,
    })
}

fn stands(app: &App, user: &UserRow, offer: &OfferedApp) -> bool {
    offer.subject == user.sub && offer.factors == user.factors && app.now() < offer.expires_at
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
    let chrome = Presentation {
        config: &app.config,
        request,
    }
    .chrome("");
    with_offer(app, &present.user, before, |new| {
        let new = NewApp {
            is_required,
            offers_passkey: is_required && passkey::host(app.issuer()).is_some(),
            ..new
        };
        answers::scripted_page(
            200,
            pages::second_factor::add_app_page(chrome, page, new, problem),
        )
    })
}

/// The app that such a page offered, once it has shown a right code.
pub fn shown_right(
    app: &App,
    user: &UserRow,
    form: &Parameters,
) -> Result<Result<Authenticator, FactorProblem>, Failure> {
    let now = app.now();
    let offered = form.bounded("app", parameters::HANDLE)?;
    let offered = offered.and_then(|text| {
        app.vault
            .second_factors
            .open_text::<OfferedApp>(OFFER, text)
    });
    let Some(offered) = offered.filter(|offer| stands(app, user, offer)) else {
        return Ok(Err(FactorProblem::Impossible));
    };
    let Some(code) = form.bounded("code", parameters::OTHER)?.map(typed) else {
        return Ok(Err(FactorProblem::CodeMissing));
    };
    let secret = SecretBytes::new(offered.secret);
    let step = match code {
        Typed::Totp(code) => step_of(code, &secret, None, now),
        Typed::RecoveryCode(_) | Typed::Neither => None,
    };
    let new = || {
        Authenticator::new(
            FactorKind::Totp,
            Vec::new(),
            Some(sealed(app, &user.sub, secret.expose())),
            now,
        )
    };
    Ok(step
        .map(|step| Authenticator {
            last_step: Some(step),
            ..new()
        })
        .ok_or(FactorProblem::CodeWrong))
}

/// Takes what that page posts: the app is theirs once it has shown a right code, and the session is
/// as strong as both.
pub fn add_app(
    app: &App,
    request: &Request,
    present: &PresentSession,
    form: &Parameters,
) -> Result<Added, Failure> {
    match shown_right(app, &present.user, form)? {
        Ok(new) => add(app, request, present, new, (&["otp"], None)),
        Err(problem) => Ok(Added::Problem(problem)),
    }
}

/// Adds a factor that was just used; with the first, recovery codes.
pub(super) fn add(
    app: &App,
    request: &Request,
    present: &PresentSession,
    factor: Authenticator,
    (methods, user_handle): (&[&str], Option<&[u8]>),
) -> Result<Added, Failure> {
    let (user, strength) = (&present.user, factor.kind.reaches());
    // However they came by the page; and it was drawn soon after a sign-in.
    if !has_shown_one(present)
        || needs_passkey(present)
        || app.now() >= present.row.auth_time.plus(FRESH_SIGN_IN + OFFER_LIFETIME)
    {
        return Ok(Added::Problem(FactorProblem::Impossible));
    }
    let (recovery_codes, rows) = match has_any(present) {
        false => new_recovery_codes(app, &user.sub),
        true => (Vec::new(), Vec::new()),
    };
    let (amr, reached) = (
        with_factor(&present.row.amr, methods),
        strength.max(Strength::of(&present.row.acr)),
    );
    let session = Session {
        amr,
        acr: reached.as_str().to_owned(),
        ..present.row.clone()
    };
    let detail = json!({"by": "user", "factor": factor.kind.as_str()});
    let event = AuditEvent {
        detail,
        ..event("factor_added", request, present)
    };
    let all: Vec<Authenticator> = [factor].into_iter().chain(rows).collect();
    let strongest = strength.max(user.strongest_acr);
    let new = NewFactors {
        factors: &all,
        strongest,
        user_handle,
    };
    let handle = SessionHandle::new(session.day, random::bytes());
    let handle_hash = handle.hash();
    let kept = Kept {
        session: &session,
        handle_hash: (!has_any(present)).then_some(&handle_hash),
    };
    let added = match authenticators::add(&app.store, user, &new, Some(kept), None, &event) {
        Ok(added) => added,
        // Somebody's passkey already.
        Err(StoreError::Taken(_)) => false,
        Err(error) => return Err(error.into()),
    };
    Ok(match added {
        false => Added::Problem(FactorProblem::Impossible),
        true if has_any(present) => Added::Another,
        true => Added::First {
            handle,
            recovery_codes,
        },
    })
}

fn event<'a>(event: &'a str, request: &'a Request, present: &'a PresentSession) -> AuditEvent<'a> {
    let (sub, sid) = (Some(&present.user.sub), Some(&present.row.sid));
    AuditEvent {
        event,
        sub,
        sid,
        ..AuditEvent::default()
    }
    .by(request.source, &request.id)
}

pub fn new_recovery_codes(app: &App, sub: &Subject) -> (Vec<String>, Vec<Authenticator>) {
    let codes: Vec<String> = (0..RECOVERY_CODES)
        .map(|_| recovery_code(random::bytes()))
        .collect();
    let row = |code: &String| {
        let Typed::RecoveryCode(digest) = typed(code) else {
            return None;
        };
        let id = random::bytes::<16>().to_vec();
        Some(Authenticator::new(
            FactorKind::RecoveryCode,
            id,
            Some(sealed(app, sub, &digest)),
            app.now(),
        ))
    };
    let rows = codes.iter().filter_map(row).collect();
    (codes, rows)
}

/// Soon after a sign-in with any factor that they have.
pub(super) fn may_change(change: Change<'_>) -> bool {
    has_shown_one(change.present)
        && change
            .present
            .row
            .may_change_ways_in(true, change.app.now())
}

/// Whether they have a factor besides their password.
pub(super) fn has_any(present: &PresentSession) -> bool {
    present.user.strongest_acr > Strength::SignedIn
}

/// Whether they have shown a factor in this session, if they have any.
fn has_shown_one(present: &PresentSession) -> bool {
    !has_any(present) || Strength::of(&present.row.acr) > Strength::SignedIn
}

/// Whether they have a passkey and have not shown it in this session. Passwords and codes can be
/// phished: if these could change factors, a thief would add a passkey of their own with them.
pub(super) fn needs_passkey(present: &PresentSession) -> bool {
    let strongest = present.user.strongest_acr;
    strongest == Strength::PhishingResistant && Strength::of(&present.row.acr) < strongest
}

/// Says that their passkey must be shown first.
pub(super) fn refuse_without_passkey(change: Change<'_>) -> Result<Response, Failure> {
    change.refuse(AccountProblem::PasskeyNeeded, Reason::PasskeyNeeded)
}

/// Factors are for people with a password; the first is the operator's to allow.
pub(super) fn may_add(change: Change<'_>) -> bool {
    let user = &change.present.user;
    user.password_hash.is_some()
        && (change.app.config.enrols || user.strongest_acr > Strength::SignedIn)
}

pub(super) fn page_form<T>(change: Change<'_>, draw: impl FnOnce(PageForm<'_>) -> T) -> T {
    let action = super::address(change.app, change.request, "/account");
    let token = forms::issue(change.app, Form::Account, "", &change.present.handle.random);
    draw(PageForm {
        action: &action,
        token: &token,
    })
}

pub(super) fn recovery_page(change: Change<'_>, codes: &[String]) -> Response {
    let chrome = Presentation {
        config: &change.app.config,
        request: change.request,
    }
    .chrome("");
    page_form(change, |form| {
        answers::form_page(
            200,
            pages::second_factor::recovery_page(chrome, Ok(form), codes),
        )
    })
}

/// After the first factor: the recovery codes, and the session under its new handle.
pub(super) fn first_added(change: Change<'_>, handle: SessionHandle, codes: &[String]) -> Response {
    let kept = PresentSession {
        handle,
        ..change.present.clone()
    };
    let page = recovery_page(
        Change {
            present: &kept,
            ..change
        },
        codes,
    );
    kept.carried_by(change.app, page)
}

/// On the account page: shows what the app needs, or takes its code.
pub(super) fn add_app_here(change: Change<'_>) -> Result<Response, Failure> {
    let Change {
        app,
        request,
        present,
        form,
        ..
    } = change;
    if !may_add(change) {
        return change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible);
    }
    let before = form.single("app")?;
    if before.is_none() && !may_change(change) {
        return change.sign_in_anew();
    }
    let problem = match before {
        None => None,
        Some(_) => match add_app(app, request, present, form)? {
            Added::Another => return read_again(change, Outcome::FactorAdded),
            Added::First {
                handle,
                recovery_codes,
            } => return Ok(first_added(change, handle, &recovery_codes)),
            Added::Problem(FactorProblem::Impossible) => {
                return change.refuse(AccountProblem::FactorImpossible, Reason::FactorImpossible);
            }
            Added::Problem(problem) => Some(problem),
        },
    };
    Ok(page_form(change, |page| {
        app_page(app, request, present, page, (before, false), problem)
    }))
}

pub(super) fn read_again(change: Change<'_>, outcome: Outcome<'_>) -> Result<Response, Failure> {
    let present = change.present.read_again(change.app)?;
    draw(
        change.app,
        change.request,
        present.as_ref().unwrap_or(change.present),
        200,
        Some(outcome),
    )
}

/// The token of the form that makes recovery codes anew, for the factors that this session's user
/// has.
pub(super) fn recovery_codes_token(app: &App, present: &PresentSession) -> String {
    forms::issue(
        app,
        Form::RecoveryCodes,
        &present.user.factors.to_string(),
        &present.handle.random,
    )
}

/// Makes recovery codes anew, while the factors are those that the form was drawn with. Of two
/// posts at once one makes codes, and the other shows none: a second set would make the first
/// worthless, and the person may have kept either.
pub(super) fn make_recovery_codes(change: Change<'_>) -> Result<Response, Failure> {
    let Change {
        app,
        request,
        present,
        form,
        ..
    } = change;
    let changed = || {
        let response = read_again(change, Outcome::Problem(AccountProblem::FactorsChanged))?;
        Ok(answers::noted(response, Reason::FactorImpossible))
    };
    // The page has no such form for them.
    if needs_passkey(present) {
        return refuse_without_passkey(change);
    }
    let drawn_with = present.user.factors.to_string();
    if !forms::matches(
        app,
        Form::RecoveryCodes,
        &drawn_with,
        Some(&present.handle.random),
        form,
    ) {
        return changed();
    }
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let (codes, rows) = new_recovery_codes(app, &present.user.sub);
    let detail = json!({"by": "user", "factor": FactorKind::RecoveryCode.as_str()});
    let event = AuditEvent {
        detail,
        ..event("factor_added", request, present)
    };
    let new = NewFactors {
        factors: &rows,
        strongest: present.user.strongest_acr,
        user_handle: None,
    };
    let kept = Kept {
        session: &present.row,
        handle_hash: None,
    };
    let added = has_any(present)
        && authenticators::add(&app.store, &present.user, &new, Some(kept), None, &event)?;
    if added {
        Ok(recovery_page(change, &codes))
    } else {
        changed()
    }
}

/// Removes a factor, and ends everything else of this person.
pub(super) fn remove(change: Change<'_>) -> Result<Response, Failure> {
    let Change {
        app,
        request,
        present,
        ..
    } = change;
    let name = change.parameter("factor", parameters::HANDLE)?;
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let all = authenticators::list(&app.store, &present.user.sub, false)?;
    let (named, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| factor_name(one) == name);
    let [factor] = named.as_slice() else {
        app.store.confirm()?;
        return change.refuse(AccountProblem::NothingThere, Reason::FactorImpossible);
    };
    let left = authenticators::strongest(&others);
    if left < app.config.client_defaults.minimum_acr {
        return change.refuse(AccountProblem::LastFactor, Reason::LastFactor);
    }
    let detail = json!({"by": "user", "factor": factor.kind.as_str()});
    let event = AuditEvent {
        detail,
        ..event("factor_removed", request, present)
    };
    if !authenticators::remove(
        &app.store,
        &present.user,
        Some(factor),
        left,
        Some(&present.row),
        &event,
    )? {
        app.store.confirm()?;
        return change.refuse(AccountProblem::SessionChanged, Reason::FactorImpossible);
    }
    read_again(change, Outcome::FactorRemoved)
}
