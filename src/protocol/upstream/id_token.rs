//! Whether an ID token from upstream is valid (OpenID Connect Core §3.1.3.7), or a logout token.
//! Before this, its signature was verified with the provider's keys and an algorithm that its
//! metadata names. This file judges the claims.

use serde_json::Value;

use super::{OLDEST, SKEW, identifier};
use crate::keys::jwt::half_hash;
use crate::logout::end_session::EVENT;
use crate::token::assertion::{is_type, numeric_date};
use crate::words::client::SigningAlgorithm;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::named::named;
use crate::words::secret::SecretText;

/// How many `amr` values are kept, and how long each may be. They travel in codes, whose length is
/// bounded.
const MOST_AMR: usize = 10;
const LONGEST_AMR: usize = 40;

pub struct ExpectedIdToken<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub access_token: &'a SecretText,
    pub alg: SigningAlgorithm,
    /// `max_age` was sent, so `auth_time` must be there.
    pub needs_auth_time: bool,
}

/// What a valid ID token says, beside the claims about the user. A provider without ID tokens gives
/// the subject only.
#[derive(Debug, Default, PartialEq)]
pub struct IdTokenFacts {
    /// Not empty, at most 255 characters, free of control characters.
    pub subject: String,
    pub auth_time: Option<Instant>,
    pub acr: Option<String>,
    pub amr: Vec<String>,
    pub sid: Option<String>,
}

named! {
    /// Why a token is not believed. `as_str` is for the log and the audit.
    pub enum TokenProblem {
        Malformed = "it is no JWT signed with RS256, ES256 or EdDSA",
        Typ = "its typ is that of another kind of token",
        Issuer = "iss is another issuer",
        Audience = "aud does not name our client_id",
        AuthorizedParty = "azp is not our client_id",
        Expired = "it has expired, or has no exp",
        IssuedAt = "iat is missing, in the future or more than 10 minutes ago, or nbf is in the \
                    future",
        Nonce = "nonce is not the one that was sent, or stands where none may",
        AccessTokenHash = "at_hash is not of the access token beside it",
        /// Nothing is forged: the provider ignores `max_age`.
        NoAuthTime = "auth_time is missing though max_age was sent",
        AuthTime = "auth_time is no time past",
        Subject = "sub is missing, or not 1 to 255 characters",
        Events = "events is not the back-channel logout event alone",
        Nobody = "sub and sid are missing, or not 1 to 255 characters",
        Jti = "jti is missing",
    }
}

/// The `typ` of an upstream token must be that of its kind, or absent. Otherwise an ID token could
/// pass for a logout token and sign users out.
pub fn check_typ(typ: Option<&str>, wanted: &str) -> Result<(), TokenProblem> {
    if typ.is_none_or(|typ| is_type(typ, wanted)) {
        Ok(())
    } else {
        Err(TokenProblem::Typ)
    }
}

pub fn judge(
    claims: &JsonObject,
    expected: &ExpectedIdToken<'_>,
    now: Instant,
) -> Result<IdTokenFacts, TokenProblem> {
    check_parties(claims, expected.issuer, expected.client_id)?;
    check_times(claims, now)?;
    if claims.text("nonce") != Some(expected.nonce) {
        return Err(TokenProblem::Nonce);
    }
    if !is_of_access_token(claims, expected) {
        return Err(TokenProblem::AccessTokenHash);
    }
    let auth_time = auth_time(claims, now)?;
    if auth_time.is_none() && expected.needs_auth_time {
        return Err(TokenProblem::NoAuthTime);
    }
    let subject = identifier(claims, "sub").ok_or(TokenProblem::Subject)?;
    // A member of the wrong type counts as absent from here on: nothing is decided by it.
    Ok(IdTokenFacts {
        subject,
        auth_time,
        acr: claims.text("acr").map(str::to_owned),
        amr: methods(claims),
        sid: identifier(claims, "sid"),
    })
}

/// `iss`, `aud` and `azp`: who issued the token, and that it is for us. With several audiences,
/// `azp` must name us.
pub fn check_parties(
    claims: &JsonObject,
    issuer: &str,
    client_id: &str,
) -> Result<(), TokenProblem> {
    if claims.text("iss") != Some(issuer) {
        return Err(TokenProblem::Issuer);
    }
    let audiences = audiences(claims).unwrap_or_default();
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
fn audiences(claims: &JsonObject) -> Option<Vec<&str>> {
    let audience = claims.get("aud")?;
    match audience.as_array() {
        Some(all) => all.iter().map(Value::as_str).collect(),
        None => Some(vec![audience.as_str()?]),
    }
}

/// `exp`, `iat` and `nbf`; the end, and when it was made.
fn check_times(claims: &JsonObject, now: Instant) -> Result<(Instant, Instant), TokenProblem> {
    let time = |name: &str| claims.get(name).and_then(numeric_date);
    let expires_at = time("exp")
        .filter(|end| now < end.plus(SKEW))
        .ok_or(TokenProblem::Expired)?;
    let latest = now.plus(SKEW);
    let is_recent = |at: &Instant| *at <= latest && now <= at.plus(OLDEST + SKEW);
    let issued_at = time("iat")
        .filter(is_recent)
        .ok_or(TokenProblem::IssuedAt)?;
    let has_begun = claims
        .get("nbf")
        .is_none_or(|begin| numeric_date(begin).is_some_and(|begin| begin <= latest));
    if has_begun {
        Ok((expires_at, issued_at))
    } else {
        Err(TokenProblem::IssuedAt)
    }
}

/// `at_hash`, where it is there (OpenID Connect Core §3.1.3.8).
fn is_of_access_token(claims: &JsonObject, expected: &ExpectedIdToken<'_>) -> bool {
    match claims.get("at_hash") {
        None => true,
        Some(hash) => {
            hash.as_str() == Some(&half_hash(expected.alg, expected.access_token.expose()))
        }
    }
}

fn auth_time(claims: &JsonObject, now: Instant) -> Result<Option<Instant>, TokenProblem> {
    let Some(value) = claims.get("auth_time") else {
        return Ok(None);
    };
    let at = numeric_date(value)
        .filter(|at| *at <= now.plus(SKEW))
        .ok_or(TokenProblem::AuthTime)?;
    // A provider whose clock is ahead must not date a sign-in into the future.
    Ok(Some(at.min(now)))
}

/// `amr`, without what is too long or too much.
fn methods(claims: &JsonObject) -> Vec<String> {
    let is_method = |value: &&str| {
        (1..=LONGEST_AMR).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    let Some(Value::Array(sent)) = claims.get("amr") else {
        return Vec::new();
    };
    let texts = sent.iter().filter_map(Value::as_str);
    let kept = texts.filter(is_method).take(MOST_AMR);
    kept.map(str::to_owned).collect()
}

/// A valid logout token. `sub` and `sid` say whom it is about: at least one of the two is there.
#[derive(Debug, PartialEq)]
pub struct LogoutNotice {
    pub subject: Option<String>,
    pub sid: Option<String>,
    pub jti: String,
    /// When the logout token has certainly expired.
    pub forgotten_at: Instant,
}

/// What a logout token says (OpenID Connect Back-Channel Logout 1.0 §2.6). Whether it was used
/// before, only the database knows.
pub fn judge_logout(
    claims: &JsonObject,
    issuer: &str,
    client_id: &str,
    now: Instant,
) -> Result<LogoutNotice, TokenProblem> {
    check_parties(claims, issuer, client_id)?;
    let (expires_at, issued_at) = check_times(claims, now)?;
    if !is_for_logout(claims) {
        return Err(TokenProblem::Events);
    }
    if claims.contains_key("nonce") {
        return Err(TokenProblem::Nonce);
    }
    let subject = whole_identifier(claims, "sub")?;
    let sid = whole_identifier(claims, "sid")?;
    if subject.is_none() && sid.is_none() {
        return Err(TokenProblem::Nobody);
    }
    let jti = identifier(claims, "jti").ok_or(TokenProblem::Jti)?;
    let forgotten_at = expires_at.min(issued_at.plus(OLDEST + SKEW)).plus(SKEW);
    Ok(LogoutNotice {
        subject,
        sid,
        jti,
        forgotten_at,
    })
}

/// Exactly one event, with no members.
fn is_for_logout(claims: &JsonObject) -> bool {
    let Some(Value::Object(events)) = claims.get("events") else {
        return false;
    };
    events.len() == 1 && events.get(EVENT).is_some_and(Value::is_object)
}

/// `sub` or `sid`: where it is there, it must be an identifier. A token that is half understood
/// could end too much.
fn whole_identifier(claims: &JsonObject, name: &str) -> Result<Option<String>, TokenProblem> {
    let read = identifier(claims, name);
    if claims.contains_key(name) && read.is_none() {
        return Err(TokenProblem::Nobody);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::keys::jwt::{ID_TOKEN_TYP, LOGOUT_TOKEN_TYP};
    use crate::words::samples::{NOW, changed};

    const ISSUER: &str = "https://up.example";

    fn at(seconds: i64) -> Value {
        json!(NOW.seconds() + seconds)
    }

    fn judged(changes: &Value, needs_auth_time: bool) -> Result<IdTokenFacts, TokenProblem> {
        let good = json!({"iss": ISSUER, "aud": "gatepost", "exp": at(300), "iat": at(0), "nonce": "n", "sub": "248289761001"});
        let access_token = SecretText::new("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y");
        let expected = ExpectedIdToken {
            issuer: ISSUER,
            client_id: "gatepost",
            nonce: "n",
            access_token: &access_token,
            alg: SigningAlgorithm::Rs256,
            needs_auth_time,
        };
        judge(
            changed(good, changes.clone()).as_object().unwrap(),
            &expected,
            NOW,
        )
    }

    #[test]
    fn a_good_one_tells_who_signed_in_and_how() {
        let subject = String::from("248289761001");
        let plain = IdTokenFacts {
            subject: subject.clone(),
            ..IdTokenFacts::default()
        };
        assert_eq!(judged(&json!({}), false), Ok(plain));
        let full = json!({
            "aud": ["gatepost"], "azp": "gatepost", "at_hash": "77QmUPtjPfzWtF2AnpK9RQ", "auth_time": at(-50),
            "acr": "mfa", "amr": ["pwd", "otp"], "sid": "s-1", "nbf": at(59)
        });
        let expected = IdTokenFacts {
            subject,
            auth_time: Some(Instant::from_seconds(NOW.seconds() - 50)),
            acr: Some(String::from("mfa")),
            amr: vec![String::from("pwd"), String::from("otp")],
            sid: Some(String::from("s-1")),
        };
        assert_eq!(judged(&full, true), Ok(expected));
        for fine in [
            json!({"exp": at(-59)}),
            json!({"iat": at(60)}),
            json!({"iat": at(-660)}),
            json!({"aud": ["other", "gatepost"], "azp": "gatepost"}),
            json!({"sub": "\u{e9}".repeat(255)}),
        ] {
            assert!(judged(&fine, false).is_ok(), "{fine}");
        }
        assert_eq!(
            judged(&json!({"auth_time": at(60)}), false)
                .unwrap()
                .auth_time,
            Some(NOW)
        );
    }

    #[test]
    fn every_other_one_is_refused_by_its_rule() {
        let of = |name: &str, values: &[Value], problem: TokenProblem| {
            for value in values {
                assert_eq!(
                    judged(&json!({ name: value }), false),
                    Err(problem),
                    "{name} {value}"
                );
            }
        };
        of(
            "iss",
            &[
                json!("https://up.example/"),
                json!("https://evil.example"),
                json!([ISSUER]),
                json!(null),
            ],
            TokenProblem::Issuer,
        );
        let others = [
            json!("Gatepost"),
            json!([]),
            json!(["other"]),
            json!(["gatepost", 7]),
            json!({"gatepost": true}),
            json!(null),
        ];
        of("aud", &others, TokenProblem::Audience);
        of(
            "aud",
            &[json!(["gatepost", "other"])],
            TokenProblem::AuthorizedParty,
        );
        of(
            "azp",
            &[json!("other"), json!(["gatepost"]), json!("")],
            TokenProblem::AuthorizedParty,
        );
        of(
            "exp",
            &[at(-60), json!(null), json!("1800000300"), json!(-1)],
            TokenProblem::Expired,
        );
        of(
            "iat",
            &[at(61), at(-661), json!(null), json!(true)],
            TokenProblem::IssuedAt,
        );
        of("nbf", &[at(61), json!("soon")], TokenProblem::IssuedAt);
        of("auth_time", &[at(61), json!("now")], TokenProblem::AuthTime);
        of(
            "nonce",
            &[json!(null), json!(""), json!("N"), json!(["n"])],
            TokenProblem::Nonce,
        );
        let hashes = [
            json!("AAAAAAAAAAAAAAAAAAAAAA"),
            json!("77QmUPtjPfzWtF2AnpK9RQ=="),
            json!(""),
            json!(7),
        ];
        of("at_hash", &hashes, TokenProblem::AccessTokenHash);
        let subjects = [
            json!(null),
            json!(""),
            json!(7),
            json!(["a"]),
            json!("x".repeat(256)),
            json!("a\0b"),
            json!("a\n"),
        ];
        of("sub", &subjects, TokenProblem::Subject);
        let both = json!({"aud": ["gatepost", "other"], "azp": "other"});
        assert_eq!(judged(&both, false), Err(TokenProblem::AuthorizedParty));
        assert_eq!(judged(&json!({}), true), Err(TokenProblem::NoAuthTime));
        for typ in [
            "at+jwt",
            "application/at+jwt",
            "logout+jwt",
            "secevent+jwt",
            "token-introspection+jwt",
            "",
        ] {
            assert_eq!(
                check_typ(Some(typ), ID_TOKEN_TYP),
                Err(TokenProblem::Typ),
                "{typ}"
            );
        }
        assert!(
            [None, Some("JWT"), Some("jwt"), Some("application/jwt")]
                .into_iter()
                .all(|typ| check_typ(typ, ID_TOKEN_TYP).is_ok())
        );
    }

    #[test]
    fn what_decides_nothing_is_left_out_where_it_is_unfit() {
        for sid in [json!(""), json!(7), json!("x".repeat(256))] {
            assert_eq!(judged(&json!({"sid": sid}), false).unwrap().sid, None);
        }
        let kept = |amr: Value| judged(&json!({"amr": amr}), false).unwrap().amr;
        assert_eq!(
            kept(json!([
                "pwd",
                "",
                "mfa",
                "a b",
                "\u{e9}",
                7,
                "x".repeat(41)
            ])),
            ["pwd", "mfa"]
        );
        assert_eq!(
            kept(json!(vec!["x".repeat(40); 30])),
            vec!["x".repeat(40); 10]
        );
        assert!(kept(json!("pwd")).is_empty() && kept(json!({"pwd": true})).is_empty());
    }

    fn judged_logout(changes: &Value) -> Result<LogoutNotice, TokenProblem> {
        let (issuer, now) = ("https://up.example", NOW.seconds());
        let good = json!({"iss": issuer, "aud": "gatepost", "iat": now, "exp": now + 120, "jti": "j", "events": {EVENT: {}}, "sub": "u", "sid": "s"});
        judge_logout(
            changed(good, changes.clone()).as_object().unwrap(),
            issuer,
            "gatepost",
            NOW,
        )
    }

    #[test]
    fn a_good_one_names_a_person_or_a_session_or_both_and_is_remembered_while_it_could_be_taken() {
        for (changes, subject, sid, remembered) in [
            (json!({}), Some("u"), Some("s"), 180),
            (
                json!({"sid": null, "exp": NOW.seconds() + 1_000_000_000}),
                Some("u"),
                None,
                720,
            ),
            (
                json!({"sub": null, "aud": ["gatepost"], "events": {EVENT: {"x": 1}}}),
                None,
                Some("s"),
                180,
            ),
        ] {
            let notice = judged_logout(&changes).unwrap();
            let whom = (notice.subject.as_deref(), notice.sid.as_deref());
            assert_eq!((whom, notice.jti.as_str()), ((subject, sid), "j"));
            assert_eq!(notice.forgotten_at.seconds(), NOW.seconds() + remembered);
        }
    }

    /// Issuer, audience and times are judged as an ID token's, and refused in
    /// `tests/service/upstream_logout.rs`, too.
    #[test]
    fn what_is_no_logout_token_ends_nothing() {
        let now = NOW.seconds();
        let of = |name: &str, values: &[Value], problem: TokenProblem| {
            for value in values {
                assert_eq!(
                    judged_logout(&json!({ name: value })),
                    Err(problem),
                    "{name} {value}"
                );
            }
        };
        of(
            "iss",
            &[json!("https://evil.example")],
            TokenProblem::Issuer,
        );
        of("aud", &[json!("other")], TokenProblem::Audience);
        of(
            "exp",
            &[json!(now - 60), json!(null)],
            TokenProblem::Expired,
        );
        of(
            "iat",
            &[json!(now + 61), json!(now - 661), json!(null)],
            TokenProblem::IssuedAt,
        );
        let other = json!({"http://schemas.openid.net/event/backchannel-logout/": {}});
        let more = json!({EVENT: {}, "https://example/other": {}});
        let events = [
            json!(null),
            json!({}),
            json!([EVENT]),
            json!(EVENT),
            json!({EVENT: true}),
            other,
            more,
        ];
        of("events", &events, TokenProblem::Events);
        of("nonce", &[json!("n"), json!("")], TokenProblem::Nonce);
        of(
            "jti",
            &[json!(null), json!(""), json!(7)],
            TokenProblem::Jti,
        );
        of("sub", &[json!(""), json!(7)], TokenProblem::Nobody);
        of(
            "sid",
            &[json!(""), json!(["s"]), json!("x".repeat(256))],
            TokenProblem::Nobody,
        );
        assert_eq!(
            judged_logout(&json!({"sub": null, "sid": null})),
            Err(TokenProblem::Nobody)
        );
        for typ in ["JWT", "at+jwt", "secevent+jwt", ""] {
            assert_eq!(
                check_typ(Some(typ), LOGOUT_TOKEN_TYP),
                Err(TokenProblem::Typ),
                "{typ}"
            );
        }
        let fine = [
            None,
            Some("logout+jwt"),
            Some("LOGOUT+JWT"),
            Some("application/logout+jwt"),
        ];
        assert!(
            fine.into_iter()
                .all(|typ| check_typ(typ, LOGOUT_TOKEN_TYP).is_ok())
        );
    }

    proptest! {
        #[test]
        fn no_claim_makes_it_panic(name in "iss|aud|azp|exp|iat|nbf|nonce|sub|amr|auth_time|at_hash|events|sid|jti", text in ".{0,20}", number in any::<f64>()) {
            for value in [json!(text), json!(number), json!([text, number]), json!({"x": text})] {
                let _ = judged_logout(&json!({name.clone(): value.clone()}));
                let _ = judged(&json!({name.clone(): value}), true);
            }
        }
    }
}
