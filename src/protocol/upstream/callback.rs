//! What a provider sends the browser back with (RFC 6749 §4.1.2, OpenID Connect Core §3.1.2.6, RFC 9207). Everything but
//! `state`, which finds the round trip.

use super::{UpstreamProblem, shown};
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::secret::SecretText;

const READ: [&str; 5] = ["code", "error", "error_description", "iss", "state"];

/// The code; or why there is none. `issuer` is whose answer it must be (`None` for a provider that has no issuer); it must say so
/// where the metadata announces that. What upstream says in words is not looked at.
pub fn code(parameters: &Parameters, issuer: Option<&str>, announces_iss: bool) -> Result<SecretText, UpstreamProblem> {
    let bounded = |name: &str, most| {
        let too_long = |_| UpstreamProblem::NotBelieved(format!("the answer's {name} is too long"));
        parameters.bounded(name, most).map_err(too_long)
    };
    let not_believed = |cause| Err(UpstreamProblem::not_believed(cause));
    if parameters.refuse_repeated(&READ).is_err() {
        return not_believed("a parameter of the answer is repeated");
    }
    // Before anything else (RFC 9207 §2.4): an answer of another provider must not even be able to fail as this one's.
    if let Some(issuer) = issuer {
        match bounded("iss", lengths::REDIRECT_URI)? {
            Some(sent) if sent == issuer => {}
            Some(other) => return not_believed(&format!("the answer is of another issuer (iss): {}", shown(other))),
            None if announces_iss => return not_believed("the answer does not name its issuer (iss), as announced"),
            None => {}
        }
    }
    match (bounded("code", lengths::HANDLE)?, bounded("error", lengths::OTHER)?) {
        (Some(code), None) => Ok(SecretText::new(code)),
        (None, Some("access_denied")) => Err(UpstreamProblem::Cancelled),
        (None, Some("login_required" | "interaction_required" | "account_selection_required" | "consent_required")) => {
            Err(UpstreamProblem::LoginRequired)
        }
        (None, Some(other)) => {
            Err(UpstreamProblem::Unavailable(format!("the provider answered the request with {}", shown(other))))
        }
        (Some(_), Some(_)) => not_believed("the answer has a code and an error"),
        (None, None) => not_believed("the answer has neither a code nor an error"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUER: Option<&str> = Some("https://up.example");

    fn read(query: &str, issuer: Option<&str>, announces_iss: bool) -> Result<String, UpstreamProblem> {
        let parameters = Parameters::parse(query.as_bytes()).unwrap();
        code(&parameters, issuer, announces_iss).map(|code| code.expose().to_owned())
    }

    fn refused(query: &str, issuer: Option<&str>, announces_iss: bool) -> String {
        match read(query, issuer, announces_iss) {
            Err(UpstreamProblem::NotBelieved(cause)) => cause,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_code_of_the_expected_issuer_is_taken() {
        for (query, issuer, announced) in [
            ("code=abc&state=s", ISSUER, false),
            ("code=abc&state=s&iss=https%3A%2F%2Fup.example", ISSUER, false),
            ("code=abc&state=s&iss=https%3A%2F%2Fup.example&session_state=x&session_state=y", ISSUER, true),
            ("code=abc&state=s&error=", ISSUER, false),
            ("code=abc&state=s&iss=https%3A%2F%2Fgithub.com", None, false),
            ("code=abc&state=s", None, false),
        ] {
            assert_eq!(read(query, issuer, announced), Ok(String::from("abc")), "{query}");
        }
    }

    #[test]
    fn an_answer_of_another_issuer_is_not_believed_whatever_it_says() {
        for query in [
            "code=abc&iss=https%3A%2F%2Fevil.example",
            "code=abc&iss=https%3A%2F%2Fup.example%2F",
            "error=access_denied&iss=https%3A%2F%2Fevil.example",
            "code=a&iss=%1B%5B31m%0Aevil",
        ] {
            for announced in [false, true] {
                let cause = refused(query, ISSUER, announced);
                assert!(cause.contains("another issuer") && !cause.contains(char::is_control), "{cause}");
            }
        }
        for query in ["code=abc", "code=abc&iss=", "error=access_denied"] {
            assert!(refused(query, ISSUER, true).contains("does not name its issuer"), "{query}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_believed() {
        for query in [
            "",
            "state=s",
            "code=&state=s",
            "code=a&code=b",
            "code=a&code=a",
            "code=a&error=access_denied",
            "error=access_denied&error=login_required",
            "code=a&iss=https%3A%2F%2Fup.example&iss=https%3A%2F%2Fup.example",
            "code=a&state=x&state=y",
        ] {
            refused(query, ISSUER, false);
            refused(query, None, false);
        }
        for (query, most) in [("code=", lengths::HANDLE), ("error=", lengths::OTHER), ("code=a&iss=", 2_000)] {
            assert!(refused(&format!("{query}{}", "x".repeat(most + 1)), ISSUER, false).contains("too long"));
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_tells_its_text(error in ".{0,40}", text in "[a-z]{20}") {
            let pairs = [("error", error.as_str()), ("error_description", text.as_str())];
            match code(&Parameters::from_pairs(pairs), ISSUER, false) {
                Err(UpstreamProblem::Unavailable(cause) | UpstreamProblem::NotBelieved(cause)) => {
                    prop_assert!(!cause.contains(&text) && !cause.contains(char::is_control));
                }
                Err(UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
