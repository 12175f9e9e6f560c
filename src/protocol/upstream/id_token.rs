//! Whether an ID token from upstream holds (OpenID Connect Core §3.1.3.7). Its signature was verified before, by the
//! provider's keys and an algorithm that its metadata names; here its claims are judged.

use serde_json::{Map, Value};

use super::super::assertion::{is_type, numeric_date};
use super::super::client::SigningAlgorithm;
use super::super::instant::Instant;
use super::super::jwt::half_hash;
use super::super::named::named;
use super::super::secret::SecretText;
use super::{OLDEST, SKEW, identifier};

/// How many `amr` values are kept; how long each may be. They travel in codes, which are bounded.
const MOST_AMR: usize = 10;
const LONGEST_AMR: usize = 40;

/// What an ID token must say.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedIdToken<'a> {
    /// `iss`
    pub issuer: &'a str,
    /// Our `client_id` there: in `aud`, and `azp` where there is one.
    pub client_id: &'a str,
    /// `nonce`
    pub nonce: &'a str,
    /// The access token that came with it, for `at_hash`.
    pub access_token: &'a SecretText,
    /// What it was signed with.
    pub alg: SigningAlgorithm,
    /// `max_age` was sent, so `auth_time` must be there.
    pub needs_auth_time: bool,
}

/// What a good one said, beside the claims about the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdTokenFacts {
    /// `sub`
    pub subject: String,
    /// `auth_time`
    pub auth_time: Option<Instant>,
    /// `acr`, where it is a text.
    pub acr: Option<String>,
    /// `amr`
    pub amr: Vec<String>,
    /// `sid`
    pub sid: Option<String>,
}

named! {
    /// Why one is not believed. `as_str` is for the log and the audit.
    pub enum TokenProblem {
        Malformed = "it is no JWT signed with RS256, ES256 or EdDSA",
        Typ = "its typ is that of another kind of token",
        Issuer = "iss is another issuer",
        Audience = "aud does not name our client_id",
        AuthorizedParty = "azp is not our client_id",
        Expired = "it has expired, or has no exp",
        IssuedAt = "iat is missing, in the future or more than 10 minutes ago, or nbf is in the future",
        Nonce = "nonce is not the one that was sent, or stands where none may",
        AccessTokenHash = "at_hash is not of the access token beside it",
        /// Nothing is forged, the provider does not honour it.
        NoAuthTime = "auth_time is missing though max_age was sent",
        AuthTime = "auth_time is no time past",
        Subject = "sub is missing, or not 1 to 255 characters",
        Events = "events is not the back-channel logout event alone",
        Nobody = "sub and sid are missing, or not 1 to 255 characters",
        Jti = "jti is missing",
    }
}

/// An ID token's `typ` is `JWT` or absent: what was made as another kind of token is none.
pub fn check_typ(typ: Option<&str>) -> Result<(), TokenProblem> {
    if typ.is_none_or(|typ| is_type(typ, "JWT")) { Ok(()) } else { Err(TokenProblem::Typ) }
}

/// Judges the claims of an ID token whose signature was verified.
pub fn judge(
    claims: &Map<String, Value>,
    expected: &ExpectedIdToken<'_>,
    now: Instant,
) -> Result<IdTokenFacts, TokenProblem> {
    check_parties(claims, expected.issuer, expected.client_id)?;
    check_times(claims, now)?;
    if claims.get("nonce").and_then(Value::as_str) != Some(expected.nonce) {
        return Err(TokenProblem::Nonce);
    }
    check_at_hash(claims, expected)?;
    Ok(IdTokenFacts {
        subject: identifier(claims, "sub").ok_or(TokenProblem::Subject)?,
        auth_time: auth_time(claims, expected.needs_auth_time, now)?,
        acr: claims.get("acr").and_then(Value::as_str).map(str::to_owned),
        amr: amr(claims),
        sid: identifier(claims, "sid"),
    })
}

/// `iss`, `aud` and `azp`: whose token it is, and that it was made for us. One for several must say that it is ours.
pub(super) fn check_parties(claims: &Map<String, Value>, issuer: &str, client_id: &str) -> Result<(), TokenProblem> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
        return Err(TokenProblem::Issuer);
    }
    let audiences = claims.get("aud").and_then(audiences).ok_or(TokenProblem::Audience)?;
    if !audiences.contains(&client_id) {
        return Err(TokenProblem::Audience);
    }
    match claims.get("azp") {
        Some(party) if party.as_str() == Some(client_id) => Ok(()),
        None if audiences.len() == 1 => Ok(()),
        Some(_) | None => Err(TokenProblem::AuthorizedParty),
    }
}

/// A text, or an array of texts (RFC 7519 §4.1.3).
fn audiences(audience: &Value) -> Option<Vec<&str>> {
    match audience {
        Value::String(only) => Some(vec![only]),
        Value::Array(all) => all.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// `exp`, `iat` and `nbf`; the end, and when it was made.
pub(super) fn check_times(claims: &Map<String, Value>, now: Instant) -> Result<(Instant, Instant), TokenProblem> {
    let time = |name: &str| claims.get(name).and_then(numeric_date);
    let expires_at = time("exp").filter(|end| now < end.plus(SKEW)).ok_or(TokenProblem::Expired)?;
    let latest = now.plus(SKEW);
    let is_recent = |at: &Instant| *at <= latest && now <= at.plus(OLDEST + SKEW);
    let issued_at = time("iat").filter(is_recent).ok_or(TokenProblem::IssuedAt)?;
    let has_begun = claims.get("nbf").is_none_or(|begin| numeric_date(begin).is_some_and(|begin| begin <= latest));
    if has_begun { Ok((expires_at, issued_at)) } else { Err(TokenProblem::IssuedAt) }
}

fn check_at_hash(claims: &Map<String, Value>, expected: &ExpectedIdToken<'_>) -> Result<(), TokenProblem> {
    let fits = |hash: &Value| hash.as_str() == Some(half_hash(expected.alg, expected.access_token.expose()).as_str());
    if claims.get("at_hash").is_none_or(fits) { Ok(()) } else { Err(TokenProblem::AccessTokenHash) }
}

fn auth_time(claims: &Map<String, Value>, is_needed: bool, now: Instant) -> Result<Option<Instant>, TokenProblem> {
    match claims.get("auth_time") {
        None if is_needed => Err(TokenProblem::NoAuthTime),
        None => Ok(None),
        Some(value) => {
            let at = numeric_date(value).filter(|at| *at <= now.plus(SKEW)).ok_or(TokenProblem::AuthTime)?;
            // A clock that is ahead makes nobody sign in tomorrow.
            Ok(Some(at.min(now)))
        }
    }
}

/// What is not of the right kind is as good as not said: nothing is decided by it.
fn amr(claims: &Map<String, Value>) -> Vec<String> {
    let values = claims.get("amr").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let fits = |value: &&str| (1..=LONGEST_AMR).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic());
    values.filter(fits).take(MOST_AMR).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::super::samples::{NOW, changed};
    use super::*;

    const ISSUER: &str = "https://up.example";
    const ACCESS_TOKEN: &str = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";

    fn at(seconds: i64) -> Value {
        json!(NOW.seconds() + seconds)
    }

    fn good() -> Value {
        json!({"iss": ISSUER, "aud": "gatepost", "exp": at(300), "iat": at(0), "nonce": "n", "sub": "248289761001"})
    }

    fn with(changes: Value) -> Value {
        changed(good(), changes)
    }

    fn judged(claims: &Value, needs_auth_time: bool) -> Result<IdTokenFacts, TokenProblem> {
        let access_token = SecretText::new(ACCESS_TOKEN);
        let expected = ExpectedIdToken {
            issuer: ISSUER,
            client_id: "gatepost",
            nonce: "n",
            access_token: &access_token,
            alg: SigningAlgorithm::Rs256,
            needs_auth_time,
        };
        judge(claims.as_object().unwrap(), &expected, NOW)
    }

    #[test]
    fn a_good_one_tells_who_signed_in_and_how() {
        let plain = IdTokenFacts {
            subject: String::from("248289761001"),
            auth_time: None,
            acr: None,
            amr: Vec::new(),
            sid: None,
        };
        assert_eq!(judged(&good(), false), Ok(plain));
        let full = with(json!({
            "aud": ["gatepost"], "azp": "gatepost", "at_hash": "77QmUPtjPfzWtF2AnpK9RQ", "auth_time": at(-50),
            "acr": "mfa", "amr": ["pwd", "otp"], "sid": "s-1", "nbf": at(59)
        }));
        let expected = IdTokenFacts {
            subject: String::from("248289761001"),
            auth_time: Some(Instant::from_seconds(NOW.seconds() - 50)),
            acr: Some(String::from("mfa")),
            amr: vec![String::from("pwd"), String::from("otp")],
            sid: Some(String::from("s-1")),
        };
        assert_eq!(judged(&full, true), Ok(expected));
    }

    #[test]
    fn clocks_may_differ_by_a_minute_and_tokens_be_ten_old() {
        for (changes, expected) in [
            (json!({"exp": at(-59)}), None),
            (json!({"exp": at(-60)}), Some(TokenProblem::Expired)),
            (json!({"exp": null}), Some(TokenProblem::Expired)),
            (json!({"exp": "1800000300"}), Some(TokenProblem::Expired)),
            (json!({"exp": -1}), Some(TokenProblem::Expired)),
            (json!({"iat": at(60)}), None),
            (json!({"iat": at(61)}), Some(TokenProblem::IssuedAt)),
            (json!({"iat": at(-300)}), None),
            (json!({"iat": at(-660)}), None),
            (json!({"iat": at(-661)}), Some(TokenProblem::IssuedAt)),
            (json!({"iat": null}), Some(TokenProblem::IssuedAt)),
            (json!({"iat": true}), Some(TokenProblem::IssuedAt)),
            (json!({"nbf": at(61)}), Some(TokenProblem::IssuedAt)),
            (json!({"nbf": "soon"}), Some(TokenProblem::IssuedAt)),
            (json!({"auth_time": at(61)}), Some(TokenProblem::AuthTime)),
            (json!({"auth_time": "now"}), Some(TokenProblem::AuthTime)),
        ] {
            assert_eq!(judged(&with(changes.clone()), false).err(), expected, "{changes}");
        }
        assert_eq!(judged(&with(json!({"auth_time": at(60)})), false).unwrap().auth_time, Some(NOW));
    }

    #[test]
    fn a_token_of_or_for_somebody_else_is_not_believed() {
        for (changes, expected) in [
            (json!({"iss": "https://up.example/"}), TokenProblem::Issuer),
            (json!({"iss": "https://evil.example"}), TokenProblem::Issuer),
            (json!({"iss": [ISSUER]}), TokenProblem::Issuer),
            (json!({"iss": null}), TokenProblem::Issuer),
            (json!({"aud": "other"}), TokenProblem::Audience),
            (json!({"aud": "Gatepost"}), TokenProblem::Audience),
            (json!({"aud": []}), TokenProblem::Audience),
            (json!({"aud": ["other"]}), TokenProblem::Audience),
            (json!({"aud": ["gatepost", 7]}), TokenProblem::Audience),
            (json!({"aud": {"gatepost": true}}), TokenProblem::Audience),
            (json!({"aud": null}), TokenProblem::Audience),
            (json!({"aud": ["gatepost", "other"]}), TokenProblem::AuthorizedParty),
            (json!({"aud": ["gatepost", "other"], "azp": "other"}), TokenProblem::AuthorizedParty),
            (json!({"azp": "other"}), TokenProblem::AuthorizedParty),
            (json!({"azp": ["gatepost"]}), TokenProblem::AuthorizedParty),
            (json!({"azp": ""}), TokenProblem::AuthorizedParty),
        ] {
            assert_eq!(judged(&with(changes.clone()), false), Err(expected), "{changes}");
        }
        assert!(judged(&with(json!({"aud": ["other", "gatepost"], "azp": "gatepost"})), false).is_ok());
    }

    #[test]
    fn a_token_of_another_sign_in_is_not_believed() {
        for (changes, expected) in [
            (json!({"nonce": null}), TokenProblem::Nonce),
            (json!({"nonce": ""}), TokenProblem::Nonce),
            (json!({"nonce": "N"}), TokenProblem::Nonce),
            (json!({"nonce": ["n"]}), TokenProblem::Nonce),
            (json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}), TokenProblem::AccessTokenHash),
            (json!({"at_hash": "77QmUPtjPfzWtF2AnpK9RQ=="}), TokenProblem::AccessTokenHash),
            (json!({"at_hash": ""}), TokenProblem::AccessTokenHash),
            (json!({"at_hash": 7}), TokenProblem::AccessTokenHash),
        ] {
            assert_eq!(judged(&with(changes.clone()), false), Err(expected), "{changes}");
        }
        assert_eq!(judged(&good(), true), Err(TokenProblem::NoAuthTime));
    }

    #[test]
    fn a_subject_is_a_text_of_bounded_length() {
        for sub in [json!(null), json!(""), json!(7), json!(["a"]), json!("x".repeat(256)), json!("a\0b"), json!("a\n")]
        {
            assert_eq!(judged(&with(json!({"sub": sub})), false), Err(TokenProblem::Subject), "{sub}");
        }
        assert!(judged(&with(json!({"sub": "é".repeat(255)})), false).is_ok());
        for sid in [json!(""), json!(7), json!("x".repeat(256))] {
            assert_eq!(judged(&with(json!({"sid": sid})), false).unwrap().sid, None);
        }
    }

    #[test]
    fn amr_keeps_what_is_a_method() {
        let kept = |amr: Value| judged(&with(json!({"amr": amr})), false).unwrap().amr;
        assert_eq!(kept(json!(["pwd", "", "mfa", "a b", "\u{e9}", 7, "x".repeat(41)])), ["pwd", "mfa"]);
        assert_eq!(kept(json!(vec!["x".repeat(40); 30])), vec!["x".repeat(40); 10]);
        for nothing in [json!(null), json!([]), json!("pwd"), json!({"pwd": true})] {
            assert!(kept(nothing).is_empty());
        }
    }

    #[test]
    fn other_kinds_of_token_are_no_id_tokens() {
        for typ in [None, Some("JWT"), Some("jwt"), Some("application/jwt")] {
            assert_eq!(check_typ(typ), Ok(()), "{typ:?}");
        }
        for typ in ["at+jwt", "application/at+jwt", "logout+jwt", "secevent+jwt", "token-introspection+jwt", ""] {
            assert_eq!(check_typ(Some(typ)), Err(TokenProblem::Typ), "{typ}");
        }
    }

    proptest! {
        #[test]
        fn no_claim_makes_it_panic(name in "iss|aud|azp|exp|iat|nbf|nonce|sub|amr|auth_time|at_hash", text in ".{0,20}", number in any::<f64>()) {
            for value in [json!(text), json!(number), json!([text, number]), json!({"x": text})] {
                let _ = judged(&with(json!({name.clone(): value})), true);
            }
        }
    }
}
