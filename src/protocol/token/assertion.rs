//! Assertions: JWTs that others signed, as a client's authentication or as a grant (RFC 7521, RFC
//! 7523 §3). This file chooses the key that verifies one and judges its claims. Only the database
//! knows whether it was used before.

use std::time::Duration;

use serde_json::Value;

use crate::keys::jwt::{PublicKey, UnverifiedJws};
use crate::keys::key_set::{KeyChoice, KeySet};
use crate::words::client::SigningAlgorithm;
use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::named::named;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::Reason;

/// RFC 7523 §2.2
pub const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The same for a JWT-SVID (draft-ietf-oauth-spiffe-client-auth).
const SPIFFE_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";

/// How far in the future an assertion may expire. Each one is remembered until then, so this bounds
/// what is stored against replay.
const FURTHEST: Duration = Duration::from_secs(600);
/// How much the clocks of two machines may differ.
pub(super) const SKEW: Duration = Duration::from_secs(60);
/// The same for clients of the FAPI 2.0 profile.
const FAPI2_SKEW: Duration = Duration::from_secs(10);
/// The `typ` of client authentication, beside `JWT` and none (draft-ietf-oauth-rfc7523bis §4).
const CLIENT_AUTHENTICATION_TYP: &str = "client-authentication+jwt";

named! {
    /// Why an assertion is refused. `as_str` is for the log.
    pub enum AssertionProblem {
        Malformed = "not a JWT that is taken here",
        Algorithm = "alg is not the registered one",
        Key = "no single registered key goes by its kid and alg",
        KeysUnavailable = "the keys cannot be had",
        KeysUnusable = "where the keys should be is no key set",
        Signature = "the signature does not verify",
        Parties = "iss or sub is not whom it should name",
        Audience = "aud is not this issuer alone",
        Times = "expired, not valid yet, or ends more than 10 minutes ahead",
        Jti = "jti is missing",
        Replayed = "it was used before",
    }
}

#[derive(Clone, Copy)]
pub struct ExpectedAssertion<'a> {
    pub issuer: &'a str,
    pub subject: Option<&'a str>,
    /// One of these must be the only `aud`.
    pub audiences: &'a [String],
}

impl<'a> ExpectedAssertion<'a> {
    /// One by which a client authenticates: it is issuer and subject (RFC 7523 §3).
    pub fn of_client(client_id: &'a ClientId, audiences: &'a [String]) -> ExpectedAssertion<'a> {
        ExpectedAssertion {
            issuer: client_id.as_str(),
            subject: Some(client_id.as_str()),
            audiences,
        }
    }

    /// One that is a grant: its issuer may speak of anybody (RFC 7523 §3).
    pub fn of_issuer(issuer: &'a str, audiences: &'a [String]) -> ExpectedAssertion<'a> {
        ExpectedAssertion {
            issuer,
            subject: None,
            audiences,
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct Assertion {
    pub subject: String,
    pub jti: String,
    /// When the assertion can be forgotten: it has expired by then.
    pub forgotten_at: Instant,
}

/// Whether a JWT of this `typ` may authenticate a client. An ID token or access token of another
/// provider may not.
pub fn is_client_assertion_typ(typ: Option<&str>) -> bool {
    typ.is_none_or(|typ| is_jwt(typ) || is_type(typ, CLIENT_AUTHENTICATION_TYP))
}

/// Whether it may be a workload's (SPIFFE JWT-SVID §2.3).
pub fn is_workload_typ(typ: Option<&str>) -> bool {
    typ.is_none_or(|typ| is_jwt(typ) || is_type(typ, "JOSE"))
}

pub fn is_grant_assertion_typ(typ: Option<&str>) -> bool {
    typ.is_none_or(is_jwt)
}

fn is_jwt(typ: &str) -> bool {
    is_type(typ, "JWT")
}

/// Compares media types: without regard to case, and `application/` may be left out (RFC 7515
/// §4.1.9).
pub fn is_type(typ: &str, wanted: &str) -> bool {
    let short = match typ.split_at_checked(12) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("application/") => rest,
        Some(_) | None => typ,
    };
    short.eq_ignore_ascii_case(wanted)
}

/// The key that verifies the assertion. `algs` are the registered algorithms; the header's `alg`
/// must be one of these.
pub fn verifying_key<'a>(
    jws: &UnverifiedJws,
    keys: &'a KeySet,
    algs: &[SigningAlgorithm],
) -> Result<&'a PublicKey, AssertionProblem> {
    if !algs.contains(&jws.alg) {
        return Err(AssertionProblem::Algorithm);
    }
    match keys.choose(jws.alg, jws.kid.as_deref()) {
        KeyChoice::One(key) => Ok(key),
        KeyChoice::Unknown | KeyChoice::Ambiguous => Err(AssertionProblem::Key),
    }
}

/// Judges the claims of an assertion after its signature was verified.
pub fn judge(
    claims: &JsonObject,
    expected: ExpectedAssertion<'_>,
    now: Instant,
) -> Result<Assertion, AssertionProblem> {
    let subject = claims.filled("sub").ok_or(AssertionProblem::Parties)?;
    if claims.filled("iss") != Some(expected.issuer)
        || expected.subject.is_some_and(|wanted| wanted != subject)
    {
        return Err(AssertionProblem::Parties);
    }
    let audience = claims
        .get("aud")
        .and_then(single)
        .ok_or(AssertionProblem::Audience)?;
    if !expected.audiences.iter().any(|ours| ours == audience) {
        return Err(AssertionProblem::Audience);
    }
    let expires_at = times(claims, now).ok_or(AssertionProblem::Times)?;
    let jti = claims.filled("jti").ok_or(AssertionProblem::Jti)?;
    Ok(Assertion {
        subject: subject.to_owned(),
        jti: jti.to_owned(),
        forgotten_at: expires_at.plus(SKEW),
    })
}

/// Judges what FAPI 2.0 §5.3.2.1 asks beside [`judge`]: `aud` is the issuer as a text, and neither
/// `iat` nor `nbf` lies more than ten seconds ahead.
pub fn judge_for_fapi2(
    claims: &JsonObject,
    issuer: &str,
    now: Instant,
) -> Result<(), AssertionProblem> {
    if claims.text("aud") != Some(issuer) {
        return Err(AssertionProblem::Audience);
    }
    for name in ["iat", "nbf"] {
        if let Some(time) = claims.get(name)
            && numeric_date(time).is_none_or(|at| at > now.plus(FAPI2_SKEW))
        {
            return Err(AssertionProblem::Times);
        }
    }
    Ok(())
}

/// A text, or an array with one in it (RFC 7519 §4.1.3).
pub(super) fn single(audience: &Value) -> Option<&str> {
    match audience.as_array().map(Vec::as_slice) {
        None => audience.as_str(),
        Some([only]) => only.as_str(),
        Some(_) => None,
    }
}

/// `exp`, if it lies between now and [`FURTHEST`] ahead, and neither `nbf` nor `iat` lies ahead.
fn times(claims: &JsonObject, now: Instant) -> Option<Instant> {
    let expires_at = numeric_date(claims.get("exp")?)?;
    let begun = |name: &str| match claims.get(name) {
        None => Some(true),
        Some(value) => Some(numeric_date(value)? <= now.plus(SKEW)),
    };
    let in_time = now < expires_at.plus(SKEW) && expires_at <= now.plus(FURTHEST + SKEW);
    (in_time && begun("nbf")? && begun("iat")?).then_some(expires_at)
}

/// A `NumericDate`: seconds since 1970, whole or not (RFC 7519 §2).
pub fn numeric_date(value: &Value) -> Option<Instant> {
    let seconds = value
        .as_f64()
        .filter(|seconds| (0.0..1e11).contains(seconds))?;
    Some(Instant::from_micros((seconds * 1e6) as i64))
}

pub fn is_sent(parameters: &Parameters) -> bool {
    parameters.was_sent("client_assertion") || parameters.was_sent("client_assertion_type")
}

/// Reads a client assertion and the client that it names, which is not proved yet: by `client_id`,
/// else by its `sub` (RFC 7521 §4.2). Whether both are one is judged with the registration.
pub fn read(
    parameters: &Parameters,
    client_id: Option<&str>,
) -> Result<(ClientId, UnverifiedJws), Reason> {
    let assertion_type = parameters.bounded("client_assertion_type", parameters::OTHER)?;
    let assertion = parameters.bounded("client_assertion", parameters::ASSERTION)?;
    let known = [CLIENT_ASSERTION_TYPE, SPIFFE_ASSERTION_TYPE];
    let jws = assertion
        .filter(|_| assertion_type.is_some_and(|kind| known.contains(&kind)))
        .and_then(of_client_or_workload)
        .ok_or(Reason::MalformedClientAssertion)?;
    let subject = subject(&jws).ok_or(Reason::MalformedClientAssertion)?;
    let longest = parameters::CLIENT_ID;
    match client_id {
        Some(client_id) => Ok((ClientId::new(client_id), jws)),
        None if subject.chars().nth(longest).is_some() => Err(Reason::MalformedClientAssertion),
        None => Ok((ClientId::new(subject), jws)),
    }
}

/// A JWT that by its `typ` may be a client's or a workload's.
fn of_client_or_workload(assertion: &str) -> Option<UnverifiedJws> {
    let jws = UnverifiedJws::parse(assertion)?;
    let typ = jws.typ.as_deref();
    let is_possible = is_client_assertion_typ(typ) || is_workload_typ(typ);
    is_possible.then_some(jws)
}

/// What the assertion says that its subject is: a `client_id`, or a workload.
pub fn subject(jws: &UnverifiedJws) -> Option<String> {
    let claims = jws.unverified_claims()?;
    let sub = claims.text("sub")?;
    let possible = !sub.is_empty() && !sub.contains(char::is_control);
    possible.then(|| sub.to_owned())
}

/// The reason for the log. The client gets the same description for each.
pub fn reason_for(problem: AssertionProblem) -> Reason {
    match problem {
        AssertionProblem::Malformed => Reason::MalformedClientAssertion,
        AssertionProblem::Algorithm => Reason::ClientAssertionAlgorithm,
        AssertionProblem::Key => Reason::ClientAssertionKey,
        AssertionProblem::KeysUnavailable | AssertionProblem::KeysUnusable => {
            Reason::ClientKeysUnavailable
        }
        AssertionProblem::Signature => Reason::ClientAssertionSignature,
        AssertionProblem::Parties => Reason::ClientAssertionParties,
        AssertionProblem::Audience => Reason::ClientAssertionAudience,
        AssertionProblem::Times => Reason::ClientAssertionTimes,
        AssertionProblem::Jti => Reason::ClientAssertionWithoutJti,
        AssertionProblem::Replayed => Reason::ClientAssertionReplayed,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::words::samples::{self, NOW};

    const ISSUER: &str = "https://login.example.com";
    const TOKEN_URL: &str = "https://login.example.com/connect/token";

    fn good() -> Value {
        json!({ "iss": "web", "sub": "web", "aud": ISSUER, "exp": NOW.seconds() + 60, "jti": "a" })
    }

    fn judged(claims: &Value) -> Result<Assertion, AssertionProblem> {
        let audiences = [String::from(ISSUER), String::from(TOKEN_URL)];
        let expected = ExpectedAssertion {
            issuer: "web",
            subject: Some("web"),
            audiences: &audiences,
        };
        judge(claims.as_object().unwrap(), expected, NOW)
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = good();
        claims[name] = value;
        claims
    }

    #[test]
    fn each_claim_is_looked_at() {
        use AssertionProblem::{Audience, Jti, Parties, Times};
        let now = NOW.seconds();
        #[rustfmt::skip]
        let rows = [
            ("iss", json!("other"), Parties), ("iss", json!(null), Parties), ("iss", json!(["web"]), Parties),
            ("sub", json!("other"), Parties), ("sub", json!(""), Parties), ("sub", json!(7), Parties),
            ("aud", json!("https://login.example.com/"), Audience), ("aud", json!("https://other.example"), Audience),
            ("aud", json!([ISSUER, TOKEN_URL]), Audience),
            ("aud", json!([ISSUER, "https://other.example"]), Audience), ("aud", json!([[ISSUER]]), Audience),
            ("aud", json!([]), Audience), ("aud", json!({ "0": ISSUER }), Audience), ("aud", json!(null), Audience),
            ("exp", json!(null), Times), ("exp", json!("1795132860"), Times), ("exp", json!(true), Times),
            ("exp", json!(now - 60), Times), ("exp", json!(now + 661), Times), ("exp", json!(-1), Times),
            ("exp", json!(1e300), Times), ("nbf", json!(now + 61), Times), ("nbf", json!("soon"), Times),
            ("iat", json!(now + 61), Times), ("iat", json!(null), Times), ("jti", json!(null), Jti),
            ("jti", json!(""), Jti), ("jti", json!(1), Jti),
        ];
        for (name, value, problem) in rows {
            assert_eq!(
                judged(&with(name, value.clone())),
                Err(problem),
                "{name} {value}"
            );
        }
        for name in ["iss", "sub", "aud", "exp", "jti"] {
            let mut claims = good();
            claims.as_object_mut().unwrap().remove(name);
            assert!(judged(&claims).is_err(), "{name}");
        }
    }

    #[test]
    fn the_edges_of_time_are_where_they_should_be() {
        let now = NOW.seconds();
        for exp in [json!(now - 59), json!(now + 660), json!(now as f64 + 0.5)] {
            assert!(judged(&with("exp", exp.clone())).is_ok(), "{exp}");
        }
    }

    #[test]
    fn the_fapi_profile_takes_the_issuer_as_a_text_and_clocks_that_are_ten_seconds_ahead() {
        use AssertionProblem::{Audience, Times};
        let now = NOW.seconds();
        let judged = |claims: &Value| judge_for_fapi2(claims.as_object().unwrap(), ISSUER, NOW);
        for (name, value, problem) in [
            ("aud", json!(TOKEN_URL), Audience),
            ("aud", json!([ISSUER]), Audience),
            ("aud", json!(null), Audience),
            ("iat", json!(now + 11), Times),
            ("iat", json!("soon"), Times),
            ("nbf", json!(now + 11), Times),
            ("nbf", json!(null), Times),
        ] {
            let claims = with(name, value.clone());
            assert_eq!(judged(&claims), Err(problem), "{name} {value}");
        }
        assert_eq!(judged(&good()), Ok(()));
        for name in ["iat", "nbf"] {
            assert_eq!(judged(&with(name, json!(now + 10))), Ok(()), "{name}");
        }
    }

    #[test]
    fn types_of_other_tokens_are_refused() {
        for typ in [
            "JWT",
            "jwt",
            "application/jwt",
            "client-authentication+jwt",
            "application/Client-Authentication+JWT",
        ] {
            assert!(is_client_assertion_typ(Some(typ)), "{typ}");
        }
        for typ in [
            "at+jwt",
            "logout+jwt",
            "",
            "JWT ",
            "application/",
            "secevent+jwt",
            "applicatio\u{306}n/jwt",
        ] {
            assert!(
                !is_client_assertion_typ(Some(typ)) && !is_grant_assertion_typ(Some(typ)),
                "{typ}"
            );
        }
        assert!(
            is_client_assertion_typ(None)
                && is_grant_assertion_typ(None)
                && is_grant_assertion_typ(Some("JWT"))
        );
        assert!(!is_grant_assertion_typ(Some("client-authentication+jwt")));
    }

    #[test]
    fn a_workload_may_call_its_token_jose() {
        for typ in [None, Some("JWT"), Some("JOSE"), Some("application/jose")] {
            assert!(is_workload_typ(typ), "{typ:?}");
        }
        for typ in ["at+jwt", "client-authentication+jwt", "", "JOSE+JSON"] {
            assert!(!is_workload_typ(Some(typ)), "{typ}");
        }
    }

    #[test]
    fn every_problem_has_its_reason_for_the_log() {
        use AssertionProblem as Problem;
        for (problem, reason) in [
            (Problem::Malformed, Reason::MalformedClientAssertion),
            (Problem::Algorithm, Reason::ClientAssertionAlgorithm),
            (Problem::Key, Reason::ClientAssertionKey),
            (Problem::KeysUnavailable, Reason::ClientKeysUnavailable),
            (Problem::KeysUnusable, Reason::ClientKeysUnavailable),
            (Problem::Signature, Reason::ClientAssertionSignature),
            (Problem::Parties, Reason::ClientAssertionParties),
            (Problem::Audience, Reason::ClientAssertionAudience),
            (Problem::Times, Reason::ClientAssertionTimes),
            (Problem::Jti, Reason::ClientAssertionWithoutJti),
            (Problem::Replayed, Reason::ClientAssertionReplayed),
        ] {
            assert_eq!(reason_for(problem), reason, "{problem:?}");
        }
    }

    #[test]
    fn the_header_chooses_no_algorithm() {
        let key = samples::p256(1);
        let keys = KeySet::parse(&json!({ "keys": [key.to_jwk()] })).unwrap();
        let jws = |alg| UnverifiedJws {
            alg,
            kid: None,
            typ: None,
            signing_input: String::new(),
            unverified_payload: Vec::new(),
            signature: Vec::new(),
        };
        let (es256, rs256) = (SigningAlgorithm::Es256, SigningAlgorithm::Rs256);
        assert_eq!(verifying_key(&jws(es256), &keys, &[es256]), Ok(&key));
        assert_eq!(
            verifying_key(&jws(es256), &keys, &[rs256]),
            Err(AssertionProblem::Algorithm)
        );
        assert_eq!(
            verifying_key(&jws(es256), &keys, &[]),
            Err(AssertionProblem::Algorithm)
        );
        // Of another kind than the key: there is no key to confuse it with.
        assert_eq!(
            verifying_key(&jws(rs256), &keys, &[rs256, es256]),
            Err(AssertionProblem::Key)
        );
    }

    proptest! {
        #[test]
        fn no_end_is_accepted_beyond_what_is_remembered(exp in -1e12..1e12_f64) {
            if let Ok(assertion) = judged(&with("exp", json!(exp))) {
                prop_assert!(assertion.forgotten_at > NOW && assertion.forgotten_at <= NOW.plus(FURTHEST + SKEW + SKEW));
            }
        }
    }

    mod client_assertion {
        use serde_json::{Value, json};

        use super::super::*;
        use crate::keys::jwt::{assemble, signing_input};
        use crate::words::client::SigningAlgorithm;

        fn assertion(typ: &str, sub: Value) -> String {
            let claims = json!({ "sub": sub });
            assemble(
                signing_input(SigningAlgorithm::Rs256, "k", typ, &claims),
                b"signature",
            )
        }

        fn read_from(pairs: &[(&str, &str)], client_id: Option<&str>) -> Result<String, Reason> {
            read(&Parameters::from_pairs(pairs.to_vec()), client_id)
                .map(|(named, _)| named.to_string())
        }

        #[test]
        fn a_client_is_named_by_its_id_or_else_by_the_subject() {
            let good = assertion("JWT", json!("web"));
            let sent = [
                ("client_assertion", good.as_str()),
                ("client_assertion_type", CLIENT_ASSERTION_TYPE),
            ];
            assert_eq!(read_from(&sent, None).as_deref(), Ok("web"));
            assert_eq!(read_from(&sent, Some("other")).as_deref(), Ok("other"));
            let spiffe = [sent[0], ("client_assertion_type", SPIFFE_ASSERTION_TYPE)];
            assert_eq!(read_from(&spiffe, None).as_deref(), Ok("web"));
            let name = "x".repeat(parameters::CLIENT_ID);
            let longest = assertion("JOSE", json!(name));
            let sent = [("client_assertion", longest.as_str()), sent[1]];
            assert_eq!(read_from(&sent, None), Ok(name));
            // A workload's subject may be longer, where another parameter names the client.
            let longer = assertion("JWT", json!("x".repeat(parameters::CLIENT_ID + 1)));
            let sent = [("client_assertion", longer.as_str()), sent[1]];
            assert_eq!(read_from(&sent, Some("web")).as_deref(), Ok("web"));
        }

        #[test]
        fn one_of_both_parameters_is_an_assertion_that_was_sent() {
            let sent = |pairs: &[(&str, &str)]| is_sent(&Parameters::from_pairs(pairs.to_vec()));
            assert!(sent(&[("client_assertion", "x")]));
            assert!(sent(&[("client_assertion_type", "x")]));
            assert!(!sent(&[("assertion", "x")]) && !sent(&[]));
        }

        #[test]
        fn what_is_no_client_assertion_is_refused() {
            let good = assertion("JWT", json!("web"));
            let malformed = |text: &str, kind: &str| {
                let pairs = [("client_assertion", text), ("client_assertion_type", kind)];
                assert_eq!(
                    read_from(&pairs, None),
                    Err(Reason::MalformedClientAssertion),
                    "{text} {kind}"
                );
            };
            malformed(&good, "");
            malformed(
                &good,
                "urn:ietf:params:oauth:client-assertion-type:saml2-bearer",
            );
            malformed("", CLIENT_ASSERTION_TYPE);
            malformed("a.b.c", CLIENT_ASSERTION_TYPE);
            for typ in ["at+jwt", "logout+jwt"] {
                malformed(&assertion(typ, json!("web")), CLIENT_ASSERTION_TYPE);
            }
            for sub in [
                json!(null),
                json!(""),
                json!(7),
                json!("a\0b"),
                json!("a\nb"),
                json!("x".repeat(201)),
            ] {
                malformed(&assertion("JWT", sub), CLIENT_ASSERTION_TYPE);
            }
            let long = "x".repeat(parameters::ASSERTION + 1);
            let pairs = [
                ("client_assertion", long.as_str()),
                ("client_assertion_type", CLIENT_ASSERTION_TYPE),
            ];
            assert_eq!(read_from(&pairs, None), Err(Reason::OverlongParameter));
            let twice = [
                ("client_assertion", good.as_str()),
                ("client_assertion", good.as_str()),
            ];
            assert_eq!(read_from(&twice, None), Err(Reason::RepeatedParameter));
        }
    }
}
