//! Adding a second factor: an app that shows codes, or a passkey. On the account page, and in the
//! middle of a sign-in that needs one.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::webauthn::{
    CLIENT_DATA, PASSKEY_REFUSED, answered, challenge, decoded, described, party,
};
use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Result, Stopped};
use crate::app::letters::AccountChange;
use crate::endpoints::answers;
use crate::endpoints::cookies::SessionHandle;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::transaction::{InSession, unknown_action};
use crate::http::{Body, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{NewApp, NewPasskeyPage, otpauth};
use gatepost_protocol::login::passkey::{self, ALGORITHMS, NewPasskey, RelyingParty, methods};
use gatepost_protocol::login::second_factor::{
    FactorKind, OfferedApp, Typed, recovery_code, step_of, to_base32, typed, with_factor,
};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_protocol::words::session::{FRESH_SIGN_IN, Session};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::authenticators::{self, Authenticator, KeptSession, NewFactors};
use gatepost_store::users::UserRow;

/// How long a page that adds a factor is good for.
const OFFER_LIFETIME: Duration = Duration::from_secs(600);
const RECOVERY_CODES: usize = 10;
/// How many passkeys one person may have.
const MOST_PASSKEYS: usize = 20;
/// How many characters of a passkey's name are kept.
const NAME: usize = 60;
/// The most characters of base64url that the object of a new passkey may have.
const ATTESTATION: usize = 10_923;
/// The prefix of a sealed offer. It is sealed with the offer, so nothing else that is sealed for
/// second factors opens as one.
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
    Problem(FormProblem),
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
    let offer = before
        .and_then(|text| standing_offer(app, user, text))
        .unwrap_or_else(|| OfferedApp {
            secret: random::bytes(),
            subject: user.sub.clone(),
            factors: user.factors,
            expires_at: app.now().plus(OFFER_LIFETIME),
        });
    let secret = SecretBytes::new(offer.secret);
    let otpauth = otpauth(
        &app.config.brand.name,
        user.username.as_deref().unwrap_or_default(),
        &secret,
    );
    draw(NewApp {
        otpauth: &otpauth,
        key: &to_base32(&secret),
        sealed: &app.vault.second_factors.seal_text(OFFER, &offer),
        is_required: false,
        is_first: user.strongest_acr == Strength::SignedIn,
        offers_passkey: false,
    })
}

/// The offer that such a page has under seal, while it is good for that user.
fn standing_offer(app: &App, user: &UserRow, text: &str) -> Option<OfferedApp> {
    let offer: OfferedApp = app.vault.second_factors.open_text(OFFER, text)?;
    let stands =
        offer.subject == user.sub && offer.factors == user.factors && app.now() < offer.expires_at;
    stands.then_some(offer)
}

/// The page that sets up an app and does nothing else. `is_required`: a sign-in waits for it.
pub fn app_page(
    context: InSession<'_>,
    form: &PageForm<'_>,
    before: Option<&str>,
    is_required: bool,
    problem: Option<FormProblem>,
) -> Response {
    with_offer(context.app, &context.current_session.user, before, |new| {
        let new = NewApp {
            is_required,
            offers_passkey: is_required && passkey::host(context.app.issuer()).is_some(),
            ..new
        };
        let page = pages::second_factor::add_app_page(form, new, problem);
        answers::scripted_page(200, page)
    })
}

/// The app that such a page offered, once it has shown a right code.
pub fn shown_right(
    app: &App,
    user: &UserRow,
    form: &Parameters,
) -> Result<Authenticator, Stopped<FormProblem>> {
    let now = app.now();
    let offered = form.bounded("app", parameters::HANDLE)?;
    let Some(offered) = offered.and_then(|text| standing_offer(app, user, text)) else {
        return Err(Stopped::Refused(FormProblem::FactorImpossible));
    };
    let Some(code) = form.bounded("code", parameters::OTHER)?.map(typed) else {
        return Err(Stopped::Refused(FormProblem::CodeMissing));
    };
    let secret = SecretBytes::new(offered.secret);
    let step = match code {
        Typed::Totp(code) => step_of(code, &secret, None, now),
        Typed::RecoveryCode(_) | Typed::Neither => None,
    };
    if step.is_none() {
        return Err(Stopped::Refused(FormProblem::CodeWrong));
    }
    let sealed = sealed(app, &user.sub, secret.expose());
    Ok(Authenticator {
        last_step: step,
        ..Authenticator::new(FactorKind::Totp, Vec::new(), Some(sealed), now)
    })
}

/// Takes what that page posts: the app is theirs once it has shown a right code, and the session is
/// as strong as both.
pub fn add_app(context: InSession<'_>, form: &Parameters) -> Result<Added> {
    match shown_right(context.app, &context.current_session.user, form) {
        Ok(new) => add(context, new, &["otp"], None),
        Err(stopped) => Ok(Added::Problem(stopped.refusal()?)),
    }
}

/// Adds a factor that was just used; with the first, recovery codes.
fn add(
    context: InSession<'_>,
    factor: Authenticator,
    methods: &[&str],
    user_handle: Option<&[u8]>,
) -> Result<Added> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let user = &current_session.user;
    let strength = factor.kind.reaches();
    // However they came by the page; and it was drawn soon after a sign-in.
    if !has_shown_one(current_session)
        || needs_passkey(current_session)
        || app.now()
            >= current_session
                .row
                .auth_time
                .plus(FRESH_SIGN_IN + OFFER_LIFETIME)
    {
        return Ok(Added::Problem(FormProblem::FactorImpossible));
    }
    let is_first = !has_any(current_session);
    let codes = if is_first {
        RecoveryCodes::new(app, &user.sub)
    } else {
        RecoveryCodes::default()
    };
    let session = Session {
        amr: with_factor(&current_session.row.amr, methods),
        acr: strength
            .max(Strength::of(&current_session.row.acr))
            .as_str()
            .to_owned(),
        ..current_session.row.clone()
    };
    let event = AuditEvent {
        detail: json!({"by": "user", "factor": factor.kind.as_str()}),
        ..event("factor_added", context)
    };
    let mut all = vec![factor];
    all.extend(codes.rows);
    let new = NewFactors {
        factors: &all,
        strongest: strength.max(user.strongest_acr),
        user_handle,
        replaces_all: false,
        password_hash: None,
    };
    let handle = SessionHandle::new(session.day, random::bytes());
    let handle_hash = handle.hash();
    let kept = KeptSession {
        session: &session,
        handle_hash: is_first.then_some(&handle_hash),
    };
    let added = match authenticators::add(&app.store, user, &new, Some(kept), &event) {
        Ok(added) => added,
        // Somebody's passkey already.
        Err(StoreError::Taken(_)) => false,
        Err(error) => return Err(error.into()),
    };
    if !added {
        app.store.confirm()?;
        return Ok(Added::Problem(FormProblem::FactorImpossible));
    }
    context.notify(AccountChange::FactorAdded);
    Ok(if is_first {
        Added::First {
            handle,
            recovery_codes: codes.texts,
        }
    } else {
        Added::Another
    })
}

/// An audit event about the factors of the person in this session.
pub fn event<'a>(event: &'a str, context: InSession<'a>) -> AuditEvent<'a> {
    AuditEvent {
        client_id: None,
        ..context.own_event(event)
    }
}

/// Recovery codes under seal.
const CODES: &str = "gpb_";

/// New recovery codes: what the person keeps, and what the database stores.
#[derive(Default)]
pub struct RecoveryCodes {
    pub texts: Vec<String>,
    pub rows: Vec<Authenticator>,
}

impl RecoveryCodes {
    pub fn new(app: &App, sub: &Subject) -> RecoveryCodes {
        let texts: Vec<String> = (0..RECOVERY_CODES)
            .map(|_| recovery_code(random::bytes()))
            .collect();
        let mut rows = Vec::new();
        for text in &texts {
            if let Typed::RecoveryCode(digest) = typed(text) {
                let id = random::bytes::<16>().to_vec();
                let sealed = sealed(app, sub, &digest);
                let kind = FactorKind::RecoveryCode;
                rows.push(Authenticator::new(kind, id, Some(sealed), app.now()));
            }
        }
        RecoveryCodes { texts, rows }
    }

    /// The page that shows them, once. Its form brings them back under seal to be saved.
    pub fn page(
        app: &App,
        form: &PageForm<'_>,
        codes: &[String],
        way_on: Option<&str>,
    ) -> Response {
        let sealed = app.vault.second_factors.seal_text(CODES, &codes);
        let page = pages::second_factor::recovery_page(form, codes, &sealed, way_on);
        answers::form_page(200, page)
    }

    /// The codes that were just shown, as a file. They are stored nowhere.
    pub fn save(app: &App, form: &Parameters) -> Result<Response> {
        let sealed = form.bounded("codes", parameters::HANDLE)?;
        let open = |text| app.vault.second_factors.open_text(CODES, text);
        let codes: Vec<String> = sealed.and_then(open).ok_or_else(unknown_action)?;
        let lines = Body::Owned(codes.join("\r\n").into_bytes());
        Ok(Response::with_body(200, "text/plain; charset=utf-8", lines)
            .header("Cache-Control", "no-store")
            .header(
                "Content-Disposition",
                "attachment; filename=recovery-codes.txt",
            ))
    }
}

/// Who makes a passkey.
pub struct PasskeyMaker<'a> {
    pub user: &'a UserRow,
    pub display_name: &'a str,
    /// The factors that they keep: no passkey is made where one of these is.
    pub known: &'a [Authenticator],
}

/// What a browser is asked to make a passkey by (WebAuthn §5.4).
pub fn creation(
    app: &App,
    party: RelyingParty<'_>,
    maker: &PasskeyMaker<'_>,
    tie: [u8; 32],
) -> Result<String> {
    let PasskeyMaker {
        user,
        display_name,
        known,
    } = maker;
    let user_handle = authenticators::user_handle(&app.store, &user.sub)?
        .unwrap_or_else(|| random::bytes::<32>().to_vec());
    let name = user.username.as_deref().unwrap_or_default();
    let known = known.iter().filter(|one| one.kind == FactorKind::Passkey);
    let algorithms = ALGORITHMS.map(|alg| json!({"type": "public-key", "alg": alg}));
    let options = json!({
        "rp": {"id": party.id, "name": app.config.brand.name},
        "user": {
            "id": URL_SAFE_NO_PAD.encode(&user_handle),
            "name": name,
            "displayName": display_name,
        },
        "pubKeyCredParams": algorithms,
        "excludeCredentials": described(known.map(|one| &one.id[..])),
        "authenticatorSelection": {
            "residentKey": "required",
            // The same for browsers that do not know `residentKey` (WebAuthn Level 3 §5.4.4).
            "requireResidentKey": true,
            "userVerification": "required",
        },
        "attestation": "none",
        "challenge": challenge(
            app,
            Some(NewPasskey { factors: user.factors, user_handle }),
            tie,
            OFFER_LIFETIME,
        ),
    });
    Ok(options.to_string())
}

/// The page that makes a passkey. `is_required`: a sign-in waits for it.
pub fn passkey_page(
    context: InSession<'_>,
    form: &PageForm<'_>,
    tie: [u8; 32],
    is_required: bool,
    problem: Option<FormProblem>,
) -> Result<Response> {
    let party = party(context.app).ok_or(Reason::FactorImpossible)?;
    let user = &context.current_session.user;
    let known = authenticators::list(&context.app.store, &user.sub, false)?;
    let maker = PasskeyMaker {
        user,
        display_name: context.current_session.display_name(),
        known: &known,
    };
    let new = NewPasskeyPage {
        options: &creation(context.app, party, &maker, tie)?,
        is_required,
        is_first: !has_any(context.current_session),
    };
    let page = pages::second_factor::add_passkey_page(form, new, problem);
    Ok(answers::scripted_page(200, page))
}

/// Takes what that page posts.
pub fn add_passkey(context: InSession<'_>, tie: [u8; 32], form: &Parameters) -> Result<Added> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let made = match made(app, context.request, &current_session.user, tie, form) {
        Ok(made) => made,
        Err(stopped) => return Ok(Added::Problem(stopped.refusal()?)),
    };
    let all = authenticators::list(&app.store, &current_session.user.sub, false)?;
    let passkeys = all.iter().filter(|one| one.kind == FactorKind::Passkey);
    if passkeys.count() >= MOST_PASSKEYS {
        return Ok(Added::Problem(FormProblem::FactorImpossible));
    }
    let methods = methods(made.factor.backup_eligible == Some(true));
    add(context, made.factor, &methods, Some(&made.user_handle))
}

/// A passkey that a browser made just now.
pub struct MadePasskey {
    pub factor: Authenticator,
    /// What it calls the user.
    pub user_handle: Vec<u8>,
}

/// Reads the passkey that a page posts, for a user whose factors are as they were when the page was
/// drawn.
pub fn made(
    app: &App,
    request: &Request,
    user: &UserRow,
    tie: [u8; 32],
    form: &Parameters,
) -> Result<MadePasskey, Stopped<FormProblem>> {
    let Some(party) = party(app) else {
        return Err(Stopped::Refused(FormProblem::PasskeyRefused));
    };
    let client_data = decoded(form, "client_data", CLIENT_DATA)?;
    let object = decoded(form, "attestation_object", ATTESTATION)?;
    let registered = passkey::challenge(&client_data, "webauthn.create", party)
        .and_then(|bytes| {
            let asked = answered(app, &bytes, &[tie]).and_then(|asked| asked.new);
            asked.ok_or(Reason::PasskeyChallenge)
        })
        .and_then(|new| Ok((new, passkey::register(party, &object)?)));
    let (new, made) = match registered {
        Ok(registered) => registered,
        Err(reason) => {
            let concerned = Concerned::User(&user.sub);
            app.note_failure(PASSKEY_REFUSED, request, None, concerned, reason);
            return Err(Stopped::Refused(FormProblem::PasskeyRefused));
        }
    };
    if new.factors != user.factors {
        return Err(Stopped::Refused(FormProblem::FactorImpossible));
    }
    let name = form.single("name")?.unwrap_or_default();
    let name: String = name
        .trim()
        .chars()
        .filter(|one| !one.is_control())
        .take(NAME)
        .collect();
    let factor = Authenticator {
        name: Some(name)
            .filter(|name| !name.is_empty())
            .or_else(|| passkey::make(made.aaguid.as_deref()?).map(str::to_owned)),
        public_key: Some(made.key.to_jwk().to_string().into_bytes()),
        sign_count: Some(made.sign_count),
        backup_eligible: Some(made.backup_eligible),
        aaguid: made.aaguid,
        ..Authenticator::new(FactorKind::Passkey, made.id, None, app.now())
    };
    Ok(MadePasskey {
        factor,
        user_handle: new.user_handle,
    })
}

/// Whether they have a factor besides their password.
pub fn has_any(current_session: &CurrentSession) -> bool {
    current_session.user.strongest_acr > Strength::SignedIn
}

/// Whether they have shown a factor in this session, if they have any.
pub fn has_shown_one(current_session: &CurrentSession) -> bool {
    !has_any(current_session) || Strength::of(&current_session.row.acr) > Strength::SignedIn
}

/// Whether they have a passkey and have not shown it in this session. Passwords and codes can be
/// phished: if these could change factors, a thief would add a passkey of their own with them.
pub fn needs_passkey(current_session: &CurrentSession) -> bool {
    let strongest = current_session.user.strongest_acr;
    strongest == Strength::PhishingResistant && Strength::of(&current_session.row.acr) < strongest
}
