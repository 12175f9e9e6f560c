//! Passkeys on our side: what browsers are asked, and what they answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Change;
use super::factors::{
    self, Added, OFFER_LIFETIME, add, first_added, may_add, may_change, page_form, read_again,
};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::http::{Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::{AccountProblem, Outcome};
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{FactorProblem, NewPasskeyPage};
use crate::protocol::login::passkey::{
    self, ALGORITHMS, Challenge, NewPasskey, RelyingParty, methods,
};
use crate::protocol::login::second_factor::{FactorKind, tie};
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::store::authenticators::{self, Authenticator};

/// Passkeys that one person may have.
const MOST_PASSKEYS: usize = 20;
/// The event of a passkey that is not accepted where no password was right before, or as a new one.
pub const PASSKEY_REFUSED: &str = "passkey_refused";
/// Characters of the name that a person gives one.
const NAME: usize = 60;
/// Challenges have no prefix, since browsers show them as bytes: they are sealed with an empty one.
const CHALLENGE_PREFIX: &str = "";
/// Longest fields of a browser's answer, in characters of base64url.
pub const CLIENT_DATA: usize = 2_048;
const ATTESTATION: usize = 10_923;

/// What a browser is asked for a passkey by: one of these, or any that it has for us. Good as long
/// as the page's address.
pub fn request_options(app: &App, tie: [u8; 32], allowed: &[&[u8]]) -> Option<String> {
    let party = party(app)?;
    let allowed = described(allowed.iter().copied());
    let challenge = challenge(app, None, tie, app.config.authorization_request_lifetime);
    let options = json!({
        "rpId": party.id, "challenge": challenge, "userVerification": "required", "allowCredentials": allowed,
    });
    Some(options.to_string())
}

/// WebAuthn §5.8.3
fn described<'a>(ids: impl Iterator<Item = &'a [u8]>) -> Vec<Value> {
    ids.map(|id| json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(id)}))
        .collect()
}

/// What a browser is asked to make a passkey by.
fn creation(
    app: &App,
    present: &PresentSession,
    tie: [u8; 32],
    host: &str,
) -> Result<String, Failure> {
    let user = &present.user;
    let user_handle = authenticators::user_handle(&app.store, &user.sub)?
        .unwrap_or_else(|| random::bytes::<32>().to_vec());
    let name = user.username.as_deref().unwrap_or_default();
    let known = authenticators::list(&app.store, &user.sub, false)?;
    let known = described(
        known
            .iter()
            .filter(|one| one.kind == FactorKind::Passkey)
            .map(|one| &one.id[..]),
    );
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
fn challenge(app: &App, new: Option<NewPasskey>, tie: [u8; 32], lifetime: Duration) -> String {
    let challenge = Challenge {
        new,
        tie,
        random: random::bytes(),
        expires_at: app.now().plus(lifetime),
    };
    app.vault
        .second_factors
        .seal_text(CHALLENGE_PREFIX, &challenge)
}

/// The challenge that what a browser sent answers, if it is tied to one of these and in time.
pub fn answered(app: &App, bytes: &[u8], ties: &[[u8; 32]]) -> Option<Challenge> {
    let text = URL_SAFE_NO_PAD.encode(bytes);
    let opened: Option<Challenge> = app.vault.second_factors.open_text(CHALLENGE_PREFIX, &text);
    opened.filter(|challenge| ties.contains(&challenge.tie) && app.now() < challenge.expires_at)
}

/// A field in base64url.
pub fn decoded(form: &Parameters, name: &str, most: usize) -> Result<Vec<u8>, Failure> {
    let text = form.bounded(name, most)?.unwrap_or_default();
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| Failure::bad_request(Reason::PasskeyMalformed))
}

pub fn party(app: &App) -> Option<RelyingParty<'_>> {
    passkey::host(app.issuer()).map(|id| RelyingParty {
        id,
        origin: app.config.base_url.origin(),
    })
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
    let chrome = Presentation {
        config: &app.config,
        request,
    }
    .chrome("");
    let new = NewPasskeyPage {
        options: &options,
        is_required,
        is_first: !factors::has_any(present),
    };
    let page = pages::second_factor::add_passkey_page(chrome, page, new, problem);
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
    let Some(party) = party(app) else {
        return refused();
    };
    let (client_data, object) = (
        decoded(form, "client_data", CLIENT_DATA)?,
        decoded(form, "attestation_object", ATTESTATION)?,
    );
    let judged = passkey::challenge(&client_data, "webauthn.create", party)
        .and_then(|bytes| {
            answered(app, &bytes, &[tie])
                .and_then(|found| found.new)
                .ok_or(Reason::PasskeyChallenge)
        })
        .and_then(|new| Ok((new, passkey::register(party, &object)?)));
    let (new, made) = match judged {
        Ok(judged) => judged,
        Err(reason) => {
            app.note_failure_of(
                PASSKEY_REFUSED,
                request,
                None,
                Some(&present.user.sub),
                reason,
            );
            return refused();
        }
    };
    let all = authenticators::list(&app.store, &present.user.sub, false)?;
    let passkeys = all
        .iter()
        .filter(|one| one.kind == FactorKind::Passkey)
        .count();
    if new.factors != present.user.factors || passkeys >= MOST_PASSKEYS {
        return Ok(Added::Problem(FactorProblem::Impossible));
    }
    let name = form.single("name")?.map(|name| {
        name.trim()
            .chars()
            .filter(|one| !one.is_control())
            .take(NAME)
            .collect::<String>()
    });
    let factor = Authenticator {
        name: name.filter(|name| !name.is_empty()),
        public_key: Some(made.key.to_jwk().to_string().into_bytes()),
        sign_count: Some(made.sign_count),
        backup_eligible: Some(made.backup_eligible),
        ..Authenticator::new(FactorKind::Passkey, made.id, None, app.now())
    };
    add(
        app,
        request,
        present,
        factor,
        (&methods(made.backup_eligible), Some(&new.user_handle)),
    )
}

/// On the account page: shows what makes a passkey, or takes it.
pub(super) fn add_passkey_here(change: Change<'_>) -> Result<Response, Failure> {
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
    if !may_change(change) {
        return change.sign_in_anew();
    }
    let tie = tie("", &present.handle.random);
    let problem = match form.single("attestation_object")? {
        None => None,
        Some(_) => match add_passkey(app, request, present, tie, form)? {
            Added::Another => return read_again(change, Outcome::FactorAdded),
            Added::First {
                handle,
                recovery_codes,
            } => return Ok(first_added(change, handle, &recovery_codes)),
            Added::Problem(problem) => Some(problem),
        },
    };
    page_form(change, |page| {
        passkey_page(app, request, present, page, (tie, false), problem)
    })
}
