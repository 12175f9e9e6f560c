//! `private_key_jwt` (RFC 7523 §2.2, OpenID Connect Core §9): what a form presents, and which reason a refusal has.

use super::assertion::{AssertionProblem, CLIENT_ASSERTION_TYPE, is_client_assertion_typ};
use crate::protocol::keys::jwt::UnverifiedJws;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;

pub fn is_sent(parameters: &Parameters) -> bool {
    parameters.was_sent("client_assertion") || parameters.was_sent("client_assertion_type")
}

/// Whom it is from is not proven yet. `client_id` may stand beside it (RFC 7521 §4.2) and must then be the same.
pub fn read(parameters: &Parameters, client_id: Option<&str>) -> Result<(ClientId, UnverifiedJws), Reason> {
    let assertion_type = parameters.bounded("client_assertion_type", lengths::OTHER)?;
    let assertion = parameters.bounded("client_assertion", lengths::ASSERTION)?;
    let assertion = assertion.filter(|_| assertion_type == Some(CLIENT_ASSERTION_TYPE));
    let jws = assertion.and_then(UnverifiedJws::parse).filter(|jws| is_client_assertion_typ(jws.typ.as_deref()));
    let jws = jws.ok_or(Reason::MalformedClientAssertion)?;
    let named = named_client(&jws).ok_or(Reason::MalformedClientAssertion)?;
    match client_id {
        Some(client_id) if client_id != named.as_str() => Err(Reason::ClientIdMismatch),
        Some(_) | None => Ok((named, jws)),
    }
}

fn named_client(jws: &UnverifiedJws) -> Option<ClientId> {
    let claims = jws.unverified_claims()?;
    let sub = claims.get("sub")?.as_str()?;
    let possible = !sub.is_empty() && sub.chars().nth(lengths::CLIENT_ID).is_none() && !sub.contains(char::is_control);
    possible.then(|| ClientId::new(sub))
}

/// For the log; the outside reads the same sentence whatever it is.
pub fn reason_for(problem: AssertionProblem) -> Reason {
    match problem {
        AssertionProblem::Malformed => Reason::MalformedClientAssertion,
        AssertionProblem::Algorithm => Reason::ClientAssertionAlgorithm,
        AssertionProblem::Key => Reason::ClientAssertionKey,
        AssertionProblem::KeysUnavailable => Reason::ClientKeysUnavailable,
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
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::keys::jwt::{assemble, signing_input};
    use crate::protocol::words::client::SigningAlgorithm;

    fn assertion(typ: &str, sub: Value) -> String {
        let claims = json!({ "sub": sub });
        assemble(&signing_input(SigningAlgorithm::Rs256, "k", typ, &claims), b"signature")
    }

    fn read_from(pairs: &[(&str, &str)], client_id: Option<&str>) -> Result<String, Reason> {
        read(&Parameters::from_pairs(pairs.to_vec()), client_id).map(|(named, _)| named.to_string())
    }

    #[test]
    fn the_subject_is_the_client() {
        let text = assertion("JWT", json!("web"));
        let pairs = [("client_assertion", text.as_str()), ("client_assertion_type", CLIENT_ASSERTION_TYPE)];
        assert_eq!(read_from(&pairs, None), Ok(String::from("web")));
        assert_eq!(read_from(&pairs, Some("web")), Ok(String::from("web")));
        assert_eq!(read_from(&pairs, Some("other")), Err(Reason::ClientIdMismatch));
    }

    #[test]
    fn what_is_no_client_assertion_is_refused() {
        let good = assertion("JWT", json!("web"));
        let malformed = |text: &str, kind: &str| {
            let pairs = [("client_assertion", text), ("client_assertion_type", kind)];
            assert_eq!(read_from(&pairs, None), Err(Reason::MalformedClientAssertion), "{text} {kind}");
        };
        malformed(&good, "");
        malformed(&good, "urn:ietf:params:oauth:client-assertion-type:saml2-bearer");
        malformed("", CLIENT_ASSERTION_TYPE);
        malformed("a.b.c", CLIENT_ASSERTION_TYPE);
        for typ in ["at+jwt", "logout+jwt"] {
            malformed(&assertion(typ, json!("web")), CLIENT_ASSERTION_TYPE);
        }
        for sub in [json!(null), json!(""), json!(7), json!("a\0b"), json!("a\nb"), json!("x".repeat(201))] {
            malformed(&assertion("JWT", sub), CLIENT_ASSERTION_TYPE);
        }
        let long = "x".repeat(lengths::ASSERTION + 1);
        let pairs = [("client_assertion", long.as_str()), ("client_assertion_type", CLIENT_ASSERTION_TYPE)];
        assert_eq!(read_from(&pairs, None), Err(Reason::OverlongParameter));
        let twice = [("client_assertion", good.as_str()), ("client_assertion", good.as_str())];
        assert_eq!(read_from(&twice, None), Err(Reason::RepeatedParameter));
    }
}
