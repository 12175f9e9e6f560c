//! Whether a logout token from upstream holds (OpenID Connect Back-Channel Logout 1.0 §2.6), once its signature was
//! verified. Whether it was used before, only the database knows.

use serde_json::{Map, Value};

use super::id_token::{TokenProblem, check_parties, check_times};
use super::{OLDEST, SKEW, identifier};
use crate::protocol::logout::logout_token::EVENT;
use crate::protocol::words::instant::Instant;

/// A logout token that holds. Whom it is about, `sub` and `sid` say: at least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutNotice {
    pub subject: Option<String>,
    pub sid: Option<String>,
    pub jti: String,
    /// When it would not be taken any more anyway.
    pub forgotten_at: Instant,
}

pub fn judge(
    claims: &Map<String, Value>,
    issuer: &str,
    client_id: &str,
    now: Instant,
) -> Result<LogoutNotice, TokenProblem> {
    check_parties(claims, issuer, client_id)?;
    let (expires_at, issued_at) = check_times(claims, now)?;
    // The one event there is, and nothing beside it.
    let events = claims.get("events").and_then(Value::as_object);
    if !events.is_some_and(|events| events.len() == 1 && events.get(EVENT).is_some_and(Value::is_object)) {
        return Err(TokenProblem::Events);
    }
    if claims.contains_key("nonce") {
        return Err(TokenProblem::Nonce);
    }
    let [subject, sid] = ["sub", "sid"].map(|name| identifier(claims, name));
    // Members that are there must be identifiers: half understood, a token could end too much.
    let is_whole = |name: &str, read: &Option<String>| claims.contains_key(name) == read.is_some();
    if subject.is_none() && sid.is_none() || !is_whole("sub", &subject) || !is_whole("sid", &sid) {
        return Err(TokenProblem::Nobody);
    }
    let jti = identifier(claims, "jti").ok_or(TokenProblem::Jti)?;
    let forgotten_at = expires_at.min(issued_at.plus(OLDEST + SKEW)).plus(SKEW);
    Ok(LogoutNotice { subject, sid, jti, forgotten_at })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::id_token::check_typ;
    use super::*;
    use crate::protocol::keys::jwt::LOGOUT_TOKEN_TYP;
    use crate::protocol::words::samples::{NOW, changed};

    fn judged(changes: &Value) -> Result<LogoutNotice, TokenProblem> {
        let (issuer, now) = ("https://up.example", NOW.seconds());
        let good = json!({"iss": issuer, "aud": "gatepost", "iat": now, "exp": now + 120, "jti": "j", "events": {EVENT: {}}, "sub": "u", "sid": "s"});
        judge(changed(good, changes.clone()).as_object().unwrap(), issuer, "gatepost", NOW)
    }

    #[test]
    fn a_good_one_names_a_person_or_a_session_or_both_and_is_remembered_while_it_could_be_taken() {
        for (changes, subject, sid, remembered) in [
            (json!({}), Some("u"), Some("s"), 180),
            (json!({"sid": null, "exp": NOW.seconds() + 1_000_000_000}), Some("u"), None, 720),
            (json!({"sub": null, "aud": ["gatepost"], "events": {EVENT: {"x": 1}}}), None, Some("s"), 180),
        ] {
            let notice = judged(&changes).unwrap();
            let whom = (notice.subject.as_deref(), notice.sid.as_deref());
            assert_eq!((whom, notice.jti.as_str()), ((subject, sid), "j"));
            assert_eq!(notice.forgotten_at.seconds(), NOW.seconds() + remembered);
        }
    }

    /// Issuer, audience and times are judged as an ID token's, and refused in `tests/service/upstream_logout.rs`, too.
    #[test]
    fn what_is_no_logout_token_ends_nothing() {
        let now = NOW.seconds();
        let of = |name: &str, values: &[Value], problem: TokenProblem| {
            for value in values {
                assert_eq!(judged(&json!({ name: value })), Err(problem), "{name} {value}");
            }
        };
        of("iss", &[json!("https://evil.example")], TokenProblem::Issuer);
        of("aud", &[json!("other")], TokenProblem::Audience);
        of("exp", &[json!(now - 60), json!(null)], TokenProblem::Expired);
        of("iat", &[json!(now + 61), json!(now - 661), json!(null)], TokenProblem::IssuedAt);
        let other = json!({"http://schemas.openid.net/event/backchannel-logout/": {}});
        let more = json!({EVENT: {}, "https://example/other": {}});
        let events = [json!(null), json!({}), json!([EVENT]), json!(EVENT), json!({EVENT: true}), other, more];
        of("events", &events, TokenProblem::Events);
        of("nonce", &[json!("n"), json!("")], TokenProblem::Nonce);
        of("jti", &[json!(null), json!(""), json!(7)], TokenProblem::Jti);
        of("sub", &[json!(""), json!(7)], TokenProblem::Nobody);
        of("sid", &[json!(""), json!(["s"]), json!("x".repeat(256))], TokenProblem::Nobody);
        assert_eq!(judged(&json!({"sub": null, "sid": null})), Err(TokenProblem::Nobody));
        for typ in ["JWT", "at+jwt", "secevent+jwt", ""] {
            assert_eq!(check_typ(Some(typ), LOGOUT_TOKEN_TYP), Err(TokenProblem::Typ), "{typ}");
        }
        let fine = [None, Some("logout+jwt"), Some("LOGOUT+JWT"), Some("application/logout+jwt")];
        assert!(fine.into_iter().all(|typ| check_typ(typ, LOGOUT_TOKEN_TYP).is_ok()));
    }

    proptest! {
        #[test]
        fn no_claim_makes_it_panic(name in "iss|aud|exp|iat|events|sub|sid|jti", text in ".{0,20}", number in any::<f64>()) {
            for value in [json!(text), json!(number), json!([text, number]), json!({"x": text})] {
                let _ = judged(&json!({name.clone(): value}));
            }
        }
    }
}
