//! What becomes of a sign-in that failed upstream: another try on the login page, an answer to the client, or a page that
//! says no. Words of the provider's own go nowhere but into the log.

use super::UpstreamProblem;
use super::choices::Choices;
use crate::protocol::authorize::authorize_request::Refusal;
use crate::protocol::words::errors::AuthorizeErrorCode;
use crate::protocol::words::reason::Reason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayOut {
    /// The login page, which says what happened. Nobody is sent straight upstream from there.
    ChooseAgain,
    TellClient(Refusal),
    /// A page that tells them, with the way back to the login page: whoever answered so, the client shall not hear of it.
    Page,
}

impl UpstreamProblem {
    pub fn reason(&self) -> Reason {
        match self {
            UpstreamProblem::Cancelled => Reason::UpstreamCancelled,
            UpstreamProblem::LoginRequired => Reason::UpstreamLoginRequired,
            UpstreamProblem::Busy => Reason::Overloaded,
            UpstreamProblem::Unavailable(_) => Reason::UpstreamUnavailable,
            UpstreamProblem::NotBelieved(_) => Reason::UpstreamNotBelieved,
        }
    }

    pub fn detail(&self, provider: &str) -> String {
        match self {
            UpstreamProblem::Unavailable(cause) | UpstreamProblem::NotBelieved(cause) => {
                format!("identity provider {provider}: {cause}")
            }
            UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired | UpstreamProblem::Busy => {
                format!("identity provider {provider}")
            }
        }
    }
}

/// Decides it for a sign-in with `provider`, among these choices; `has_client` is whether a client waits for an answer that
/// travels through this browser.
pub fn way_out(problem: &UpstreamProblem, provider: &str, choices: &Choices, has_client: bool) -> WayOut {
    let code = match problem {
        UpstreamProblem::Cancelled => AuthorizeErrorCode::AccessDenied,
        UpstreamProblem::LoginRequired => AuthorizeErrorCode::LoginRequired,
        UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => AuthorizeErrorCode::TemporarilyUnavailable,
        UpstreamProblem::NotBelieved(_) => return WayOut::Page,
    };
    if has_client && !choices.has_other_than(provider) {
        WayOut::TellClient(Refusal::new(code, problem.reason()))
    } else {
        WayOut::ChooseAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_another_way_may_choose_it_and_else_the_client_is_told() {
        let choices = |password: bool, providers: &[&str]| Choices {
            password,
            providers: providers.iter().map(|name| (*name).to_owned()).collect(),
        };
        let several = [choices(true, &["corp"]), choices(false, &["corp", "hub"]), choices(true, &[])];
        let alone = [choices(false, &["corp"]), choices(false, &[])];
        for (problem, code) in [
            (UpstreamProblem::Cancelled, Some(AuthorizeErrorCode::AccessDenied)),
            (UpstreamProblem::LoginRequired, Some(AuthorizeErrorCode::LoginRequired)),
            (UpstreamProblem::Busy, Some(AuthorizeErrorCode::TemporarilyUnavailable)),
            (UpstreamProblem::unavailable("no route"), Some(AuthorizeErrorCode::TemporarilyUnavailable)),
            // What is not believed is told to the person alone.
            (UpstreamProblem::not_believed("the nonce is another one"), None),
        ] {
            let on_page = if code.is_some() { WayOut::ChooseAgain } else { WayOut::Page };
            let told = code.map_or(WayOut::Page, |code| WayOut::TellClient(Refusal::new(code, problem.reason())));
            assert!(several.iter().all(|choices| way_out(&problem, "corp", choices, true) == on_page), "{problem:?}");
            for choices in &alone {
                assert_eq!(way_out(&problem, "corp", choices, true), told);
                assert_eq!(way_out(&problem, "corp", choices, false), on_page, "nobody to tell");
            }
        }
    }
}
