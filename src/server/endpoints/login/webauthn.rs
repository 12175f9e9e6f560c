//! What browsers are asked for passkeys by, and how their answers are read (WebAuthn).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms;
use crate::http::Request;
use crate::keys::random;
use gatepost_protocol::login::passkey::{self, Challenge, NewPasskey, RelyingParty};
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::authenticators::{self, Authenticator};

/// The audit event of a passkey that was refused: as a new one, or where no password was right
/// before.
pub const PASSKEY_REFUSED: &str = "passkey_refused";
/// Challenges have no prefix, since browsers show them as bytes: they are sealed with an empty one.
const CHALLENGE_PREFIX: &str = "";
/// The most characters of base64url that a field of a browser's answer may have.
pub const CLIENT_DATA: usize = 2_048;

/// What a browser is asked for a passkey by: one of these, or any that it has for us. Good as long
/// as the page's address.
pub fn request_options(app: &App, tie: [u8; 32], allowed: &[&[u8]]) -> Option<String> {
    let party = party(app)?;
    let lifetime = app.config.authorization_request_lifetime;
    let options = json!({
        "rpId": party.id,
        "challenge": challenge(app, None, tie, lifetime),
        "userVerification": "required",
        "allowCredentials": described(allowed.iter().copied()),
    });
    Some(options.to_string())
}

/// What a browser is told of the passkey that it has just used, which nobody has:
/// `signalUnknownCredential` (WebAuthn Level 3 §5.1.10). Nothing where another program may live
/// beside the path of the base URL: it may be its passkey.
pub fn unknown_passkey(app: &App, request: &Request) -> Option<String> {
    if !app.config.base_url.path().is_empty() {
        return None;
    }
    let form = forms::read_post(app, request).ok()?;
    let told = json!({"rpId": party(app)?.id, "credentialId": form.single("id").ok()?});
    Some(told.to_string())
}

/// The same of a person's passkeys, to them alone: which they have, and what they are called.
/// `signalAllAcceptedCredentials` and `signalCurrentUserDetails` each take what is theirs of it.
pub fn own_passkeys(
    app: &App,
    current_session: &CurrentSession,
    factors: &[Authenticator],
) -> Result<Option<String>> {
    let user = &current_session.user;
    let handle = authenticators::user_handle(&app.store, &user.sub)?;
    let (Some(party), Some(handle)) = (party(app), handle) else {
        return Ok(None);
    };
    let passkeys = factors.iter().filter(|one| one.kind == FactorKind::Passkey);
    let ids: Vec<String> = passkeys
        .map(|one| URL_SAFE_NO_PAD.encode(&one.id))
        .collect();
    let told = json!({
        "rpId": party.id,
        "userId": URL_SAFE_NO_PAD.encode(handle),
        "allAcceptedCredentialIds": ids,
        "name": user.username.as_deref().unwrap_or_default(),
        "displayName": current_session.display_name(),
    });
    Ok(Some(told.to_string()))
}

/// The passkeys with these ids (WebAuthn §5.8.3).
pub fn described<'a>(ids: impl Iterator<Item = &'a [u8]>) -> Vec<Value> {
    ids.map(|id| json!({"type": "public-key", "id": URL_SAFE_NO_PAD.encode(id)}))
        .collect()
}

/// A sealed challenge, in base64url.
pub fn challenge(app: &App, new: Option<NewPasskey>, tie: [u8; 32], lifetime: Duration) -> String {
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
pub fn decoded(form: &Parameters, name: &str, most: usize) -> Result<Vec<u8>> {
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
