//! Whether a logout token from upstream holds (OpenID Connect Back-Channel Logout 1.0 §2.6), once its signature was
//! verified. Whether it was used before, only the database knows.

use serde_json::{Map, Value};

use super::super::assertion::is_type;
use super::super::instant::Instant;
use super::super::jwt::LOGOUT_TOKEN_TYP;
use super::super::logout_token::EVENT;
use super::id_token::{TokenProblem, check_parties, check_times};
use super::{OLDEST, SKEW, UpstreamLogout, identifier};

/// A logout token that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutNotice {
    pub whom: UpstreamLogout,
    pub jti: String,
    /// When it would not be taken any more anyway.
    pub forgotten_at: Instant,
}

/// A logout token's `typ` is `logout+jwt` or absent; an ID token must not be able to sign anybody out.
pub fn check_typ(typ: Option<&str>) -> Result<(), TokenProblem> {
    if typ.is_none_or(|typ| is_type(typ, LOGOUT_TOKEN_TYP)) { Ok(()) } else { Err(TokenProblem::Typ) }
}

/// Judges the claims of a logout token whose signature was verified.
pub fn judge(
    claims: &Map<String, Value>,
    issuer: &str,
    client_id: &str,
    now: Instant,
) -> Result<LogoutNotice, TokenProblem> {
    check_parties(claims, issuer, client_id)?;
    let (expires_at, issued_at) = check_times(claims, now)?;
    check_event(claims)?;
    if claims.contains_key("nonce") {
        return Err(TokenProblem::Nonce);
    }
    Ok(LogoutNotice {
        whom: whom(claims)?,
        jti: identifier(claims, "jti").ok_or(TokenProblem::Jti)?,
        forgotten_at: expires_at.min(issued_at.plus(OLDEST + SKEW)).plus(SKEW),
    })
}

/// The one event there is, and nothing beside it.
fn check_event(claims: &Map<String, Value>) -> Result<(), TokenProblem> {
    let events = claims.get("events").and_then(Value::as_object);
    let is_logout = |events: &Map<String, Value>| events.len() == 1 && events.get(EVENT).is_some_and(Value::is_object);
    if events.is_some_and(is_logout) { Ok(()) } else { Err(TokenProblem::Events) }
}

/// Members that are there must be identifiers: half understood, a token could end too much.
fn whom(claims: &Map<String, Value>) -> Result<UpstreamLogout, TokenProblem> {
    let whom = UpstreamLogout { subject: identifier(claims, "sub"), sid: identifier(claims, "sid") };
    let is_whole = |name: &str, read: &Option<String>| claims.contains_key(name) == read.is_some();
    let names_somebody = whom.subject.is_some() || whom.sid.is_some();
    if names_somebody && is_whole("sub", &whom.subject) && is_whole("sid", &whom.sid) {
        Ok(whom)
    } else {
        Err(TokenProblem::Nobody)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::super::samples::{NOW, changed};
    use super::*;

    const ISSUER: &str = "https://up.example";

    fn good() -> Value {
        let now = NOW.seconds();
        json!({"iss": ISSUER, "aud": "gatepost", "iat": now, "exp": now + 120, "jti": "j", "events": {EVENT: {}}, "sub": "u", "sid": "s"})
    }

    fn with(changes: Value) -> Value {
        changed(good(), changes)
    }

    fn judged(claims: &Value) -> Result<LogoutNotice, TokenProblem> {
        judge(claims.as_object().unwrap(), ISSUER, "gatepost", NOW)
    }

    #[test]
    fn a_good_one_names_a_person_or_a_session_or_both() {
        for (changes, subject, sid) in [
            (json!({}), Some("u"), Some("s")),
            (json!({"sid": null}), Some("u"), None),
            (json!({"sub": null}), None, Some("s")),
        ] {
            let notice = judged(&with(changes)).unwrap();
            let whom = (notice.whom.subject.as_deref(), notice.whom.sid.as_deref());
            assert_eq!((whom, notice.jti.as_str()), ((subject, sid), "j"));
        }
        assert!(judged(&with(json!({"aud": ["gatepost"], "events": {EVENT: {"x": 1}}}))).is_ok());
    }

    #[test]
    fn it_is_remembered_for_as_long_as_it_could_be_taken_and_no_longer() {
        assert_eq!(judged(&good()).unwrap().forgotten_at.seconds(), NOW.seconds() + 180);
        let endless = with(json!({"exp": NOW.seconds() + 1_000_000_000}));
        assert_eq!(judged(&endless).unwrap().forgotten_at.seconds(), NOW.seconds() + 720);
    }

    #[test]
    fn what_is_no_logout_token_ends_nothing() {
        let now = NOW.seconds();
        for (changes, expected) in [
            (json!({"iss": "https://evil.example"}), TokenProblem::Issuer),
            (json!({"aud": "other"}), TokenProblem::Audience),
            (json!({"aud": ["gatepost", "other"]}), TokenProblem::AuthorizedParty),
            (json!({"exp": now - 60}), TokenProblem::Expired),
            (json!({"exp": null}), TokenProblem::Expired),
            (json!({"iat": null}), TokenProblem::IssuedAt),
            (json!({"iat": now + 61}), TokenProblem::IssuedAt),
            (json!({"iat": now - 661}), TokenProblem::IssuedAt),
            (json!({"events": null}), TokenProblem::Events),
            (json!({"events": {}}), TokenProblem::Events),
            (json!({"events": [EVENT]}), TokenProblem::Events),
            (json!({"events": EVENT}), TokenProblem::Events),
            (json!({"events": {EVENT: true}}), TokenProblem::Events),
            (json!({"events": {"http://schemas.openid.net/event/backchannel-logout/": {}}}), TokenProblem::Events),
            (json!({"events": {EVENT: {}, "https://example/other": {}}}), TokenProblem::Events),
            (json!({"nonce": "n"}), TokenProblem::Nonce),
            (json!({"nonce": ""}), TokenProblem::Nonce),
            (json!({"jti": null}), TokenProblem::Jti),
            (json!({"jti": ""}), TokenProblem::Jti),
            (json!({"jti": 7}), TokenProblem::Jti),
            (json!({"sub": null, "sid": null}), TokenProblem::Nobody),
            (json!({"sub": ""}), TokenProblem::Nobody),
            (json!({"sub": 7}), TokenProblem::Nobody),
            (json!({"sid": ""}), TokenProblem::Nobody),
            (json!({"sid": ["s"]}), TokenProblem::Nobody),
            (json!({"sid": "x".repeat(256)}), TokenProblem::Nobody),
        ] {
            assert_eq!(judged(&with(changes.clone())), Err(expected), "{changes}");
        }
    }

    #[test]
    fn other_kinds_of_token_are_no_logout_tokens() {
        for typ in [None, Some("logout+jwt"), Some("LOGOUT+JWT"), Some("application/logout+jwt")] {
            assert_eq!(check_typ(typ), Ok(()), "{typ:?}");
        }
        for typ in ["JWT", "at+jwt", "secevent+jwt", ""] {
            assert_eq!(check_typ(Some(typ)), Err(TokenProblem::Typ), "{typ}");
        }
    }

    proptest! {
        #[test]
        fn no_claim_makes_it_panic(name in "iss|aud|exp|iat|events|sub|sid|jti", text in ".{0,20}", number in any::<f64>()) {
            for value in [json!(text), json!(number), json!([text, number]), json!({"x": text})] {
                let _ = judged(&with(json!({name.clone(): value})));
            }
        }
    }
}
