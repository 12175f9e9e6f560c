//! ID tokens of ours that come back, as hints.

use super::App;
use crate::registry::Snapshot;
use gatepost_protocol::keys::jwt::{ID_TOKEN_TYP, UnverifiedJws};
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::secret::SecretText;

/// The claims of an ID token that one of our keys signed and that names us as issuer; `None` for
/// any other text.
pub fn claims(app: &App, snapshot: &Snapshot, hint: &SecretText) -> Option<JsonObject> {
    let jws = UnverifiedJws::parse(hint.expose())?;
    let is_ours = jws.typ.as_deref() == Some(ID_TOKEN_TYP) && snapshot.keys.verifies(&jws);
    // Verified just above, so the claims are what we signed.
    let claims = is_ours.then(|| jws.unverified_claims()).flatten()?;
    // An access token may share the typ of an id_token: what has a `client_id` is one.
    let is_id_token = !claims.contains_key("client_id");
    (is_id_token && claims.text("iss") == Some(app.issuer())).then_some(claims)
}
