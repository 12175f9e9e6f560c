//! The logout token's claims (OpenID Connect Back-Channel Logout 1.0 §2.4): what tells a client that a session is over.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::identifiers::{ClientId, Sid, Subject};
use super::instant::Instant;

/// The one event there is.
pub const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// Long enough for clocks that differ, short enough to be worth nothing later.
const LIFETIME: Duration = Duration::from_secs(120);

/// What one logout token is made of.
#[derive(Clone, Copy, Debug)]
pub struct LogoutToken<'a> {
    /// `iss`
    pub issuer: &'a str,
    /// `aud`
    pub client_id: &'a ClientId,
    /// `sub`
    pub subject: &'a Subject,
    /// `sid`
    pub sid: &'a Sid,
    /// `jti`
    pub jti: &'a str,
    /// `iat`
    pub issued_at: Instant,
}

impl LogoutToken<'_> {
    /// The claims to sign. There is no `nonce`, so that nobody takes it for an ID token.
    pub fn claims(&self) -> Map<String, Value> {
        let members = [
            ("iss", json!(self.issuer)),
            ("sub", json!(self.subject.as_str())),
            ("aud", json!(self.client_id.as_str())),
            ("iat", json!(self.issued_at.seconds())),
            ("exp", json!(self.issued_at.plus(LIFETIME).seconds())),
            ("jti", json!(self.jti)),
            ("sid", json!(self.sid.as_str())),
            ("events", json!({ EVENT: {} })),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::NOW;
    use super::*;

    #[test]
    fn it_says_this_and_nothing_else() {
        let (client_id, subject, sid) = (ClientId::new("web"), Subject::new("alice-subject"), Sid::new("sid-1"));
        let token = LogoutToken {
            issuer: "https://op.example",
            client_id: &client_id,
            subject: &subject,
            sid: &sid,
            jti: "j",
            issued_at: NOW,
        };
        let expected = json!({
            "iss": "https://op.example", "sub": "alice-subject", "aud": "web", "iat": NOW.seconds(),
            "exp": NOW.seconds() + 120, "jti": "j", "sid": "sid-1",
            "events": {"http://schemas.openid.net/event/backchannel-logout": {}}
        });
        assert_eq!(Value::Object(token.claims()), expected);
    }
}
