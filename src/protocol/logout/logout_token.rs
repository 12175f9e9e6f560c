//! The logout token's claims (OpenID Connect Back-Channel Logout 1.0 §2.4): what tells a client that a session is over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::protocol::words::identifiers::{ClientId, Sid, Subject};
use crate::protocol::words::instant::Instant;

/// The one event there is.
pub const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// Long enough for clocks that differ, short enough to be worth nothing later.
const LIFETIME: Duration = Duration::from_secs(120);

/// The claims to sign. There is no `nonce`, so that nobody takes it for an ID token.
pub fn claims(
    issuer: &str,
    client_id: &ClientId,
    (sub, sid): (&Subject, &Sid),
    jti: &str,
    issued_at: Instant,
) -> Value {
    let (iat, exp) = (issued_at.seconds(), issued_at.plus(LIFETIME).seconds());
    json!({
        "iss": issuer, "sub": sub, "aud": client_id, "iat": iat, "exp": exp, "jti": jti, "sid": sid, "events": { EVENT: {} }
    })
}
