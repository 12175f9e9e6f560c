//! What a provider sends the browser back with (RFC 6749 §4.1.2, OpenID Connect Core §3.1.2.6, RFC 9207). Everything but
//! `state`, which finds the round trip.

use super::super::lengths;
use super::super::parameters::Parameters;
use super::super::secret::SecretText;
use super::{UpstreamProblem, shown};

/// Which issuer the answer must be from; `None` for a provider that has none.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedIssuer<'a> {
    pub issuer: &'a str,
    /// Whether its metadata says that every answer names it.
    pub announced: bool,
}

const READ: [&str; 5] = ["code", "error", "error_description", "iss", "state"];

/// The code; or why there is none. What upstream says in words is not looked at.
pub fn code(parameters: &Parameters, expected: Option<ExpectedIssuer<'_>>) -> Result<SecretText, UpstreamProblem> {
    parameters.refuse_repeated(&READ).map_err(|_| not_believed("a parameter of the answer is repeated"))?;
    // Before anything else: an answer of another provider must not even be able to fail as this one's.
    check_issuer(parameters, expected)?;
    let code = parameters.bounded("code", lengths::HANDLE).map_err(|_| not_believed("the code is too long"))?;
    let error = parameters.bounded("error", lengths::OTHER).map_err(|_| not_believed("the error is too long"))?;
    match (code, error) {
        (Some(code), None) => Ok(SecretText::new(code)),
        (None, Some(error)) => Err(problem(error)),
        (Some(_), Some(_)) => Err(not_believed("the answer has a code and an error")),
        (None, None) => Err(not_believed("the answer has neither a code nor an error")),
    }
}

/// RFC 9207 §2.4.
fn check_issuer(parameters: &Parameters, expected: Option<ExpectedIssuer<'_>>) -> Result<(), UpstreamProblem> {
    let Some(expected) = expected else { return Ok(()) };
    let sent = parameters.bounded("iss", lengths::REDIRECT_URI).map_err(|_| not_believed("iss is too long"))?;
    match sent {
        Some(issuer) if issuer == expected.issuer => Ok(()),
        Some(other) => {
            Err(UpstreamProblem::NotBelieved(format!("the answer is of another issuer (iss): {}", shown(other))))
        }
        None if expected.announced => Err(not_believed("the answer does not name its issuer (iss), as announced")),
        None => Ok(()),
    }
}

fn problem(error: &str) -> UpstreamProblem {
    match error {
        "access_denied" => UpstreamProblem::Cancelled,
        "login_required" | "interaction_required" | "account_selection_required" | "consent_required" => {
            UpstreamProblem::LoginRequired
        }
        other => UpstreamProblem::Unavailable(format!("the provider answered the request with {}", shown(other))),
    }
}

fn not_believed(cause: &str) -> UpstreamProblem {
    UpstreamProblem::NotBelieved(cause.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUER: &str = "https://up.example";
    const SILENT: ExpectedIssuer<'_> = ExpectedIssuer { issuer: ISSUER, announced: false };
    const ANNOUNCED: ExpectedIssuer<'_> = ExpectedIssuer { issuer: ISSUER, announced: true };

    fn read(query: &str, expected: Option<ExpectedIssuer<'_>>) -> Result<String, UpstreamProblem> {
        code(&Parameters::parse(query.as_bytes()).unwrap(), expected).map(|code| code.expose().to_owned())
    }

    fn refused(query: &str, expected: Option<ExpectedIssuer<'_>>) -> String {
        match read(query, expected) {
            Err(UpstreamProblem::NotBelieved(cause)) => cause,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_code_of_the_expected_issuer_is_taken() {
        for (query, expected) in [
            ("code=abc&state=s", Some(SILENT)),
            ("code=abc&state=s&iss=https%3A%2F%2Fup.example", Some(SILENT)),
            ("code=abc&state=s&iss=https%3A%2F%2Fup.example&session_state=x&session_state=y", Some(ANNOUNCED)),
            ("code=abc&state=s&error=", Some(SILENT)),
            ("code=abc&state=s&iss=https%3A%2F%2Fgithub.com", None),
            ("code=abc&state=s", None),
        ] {
            assert_eq!(read(query, expected), Ok(String::from("abc")), "{query}");
        }
    }

    #[test]
    fn an_answer_of_another_issuer_is_not_believed_whatever_it_says() {
        for query in [
            "code=abc&iss=https%3A%2F%2Fevil.example",
            "code=abc&iss=https%3A%2F%2Fup.example%2F",
            "error=access_denied&iss=https%3A%2F%2Fevil.example",
        ] {
            for expected in [SILENT, ANNOUNCED] {
                assert!(refused(query, Some(expected)).contains("another issuer"), "{query}");
            }
        }
        for query in ["code=abc", "code=abc&iss=", "error=access_denied"] {
            assert!(refused(query, Some(ANNOUNCED)).contains("does not name its issuer"), "{query}");
        }
        let evil = refused("code=a&iss=%1B%5B31m%0Aevil", Some(SILENT));
        assert!(!evil.contains(char::is_control), "{evil}");
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
            refused(query, Some(SILENT));
            refused(query, None);
        }
        assert!(refused(&format!("code={}", "x".repeat(lengths::HANDLE + 1)), None).contains("too long"));
        assert!(refused(&format!("error={}", "x".repeat(301)), None).contains("too long"));
        assert!(refused(&format!("code=a&iss={}", "x".repeat(2_001)), Some(SILENT)).contains("too long"));
    }

    #[test]
    fn each_error_has_its_meaning() {
        for (error, expected) in [
            ("access_denied", UpstreamProblem::Cancelled),
            ("login_required", UpstreamProblem::LoginRequired),
            ("interaction_required", UpstreamProblem::LoginRequired),
            ("consent_required", UpstreamProblem::LoginRequired),
            ("account_selection_required", UpstreamProblem::LoginRequired),
        ] {
            assert_eq!(read(&format!("error={error}&error_description=x"), Some(SILENT)), Err(expected));
        }
        for error in ["server_error", "temporarily_unavailable", "invalid_request", "unauthorized_client", "x%3Cb%3E"] {
            let read = read(&format!("error={error}&error_description=secret+words"), Some(SILENT));
            let Err(UpstreamProblem::Unavailable(cause)) = read else { panic!("{read:?}") };
            assert!(!cause.contains("secret words"), "{cause}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_tells_its_text(error in ".{0,40}", text in "[a-z]{20}") {
            let pairs = [("error", error.as_str()), ("error_description", text.as_str())];
            match code(&Parameters::from_pairs(pairs), Some(SILENT)) {
                Err(UpstreamProblem::Unavailable(cause) | UpstreamProblem::NotBelieved(cause)) => {
                    prop_assert!(!cause.contains(&text) && !cause.contains(char::is_control));
                }
                Err(UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
