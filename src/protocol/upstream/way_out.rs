//! What becomes of a sign-in that failed upstream: another try on the login page, an answer to the client, or a page that
//! says no. Words of the provider's own go nowhere but into the log.

use super::super::authorize_request::Refusal;
use super::super::errors::AuthorizeErrorCode;
use super::super::reason::Reason;
use super::UpstreamProblem;
use super::choices::Choices;

/// Where somebody goes on who did not get in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayOut {
    /// The login page, which says what happened. Nobody is sent straight upstream from there.
    ChooseAgain,
    /// The client is told.
    TellClient(Refusal),
    /// A page that tells them, with the way back to the login page: whoever answered so, the client shall not hear of it.
    Page,
}

impl UpstreamProblem {
    /// The reason that goes with it.
    pub fn reason(&self) -> Reason {
        match self {
            UpstreamProblem::Cancelled => Reason::UpstreamCancelled,
            UpstreamProblem::LoginRequired => Reason::UpstreamLoginRequired,
            UpstreamProblem::Busy => Reason::Overloaded,
            UpstreamProblem::Unavailable(_) => Reason::UpstreamUnavailable,
            UpstreamProblem::NotBelieved(_) => Reason::UpstreamNotBelieved,
        }
    }

    /// What the log may know beyond that, of a failure with the provider of that name.
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

    /// `error` of the answer to a client; `None` when it is told nothing.
    fn error_code(&self) -> Option<AuthorizeErrorCode> {
        match self {
            UpstreamProblem::Cancelled => Some(AuthorizeErrorCode::AccessDenied),
            UpstreamProblem::LoginRequired => Some(AuthorizeErrorCode::LoginRequired),
            UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => Some(AuthorizeErrorCode::TemporarilyUnavailable),
            UpstreamProblem::NotBelieved(_) => None,
        }
    }
}

/// Decides it for a sign-in with `provider`, among these choices; `has_client` is whether a client waits for an answer that
/// travels through this browser.
pub fn way_out(problem: &UpstreamProblem, provider: &str, choices: &Choices, has_client: bool) -> WayOut {
    match problem.error_code() {
        None => WayOut::Page,
        Some(code) if has_client && !choices.has_other_than(provider) => {
            WayOut::TellClient(Refusal::new(code, problem.reason()))
        }
        Some(_) => WayOut::ChooseAgain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(password: bool, providers: &[&str]) -> Choices {
        Choices { password, providers: providers.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn problems() -> [(UpstreamProblem, AuthorizeErrorCode); 4] {
        [
            (UpstreamProblem::Cancelled, AuthorizeErrorCode::AccessDenied),
            (UpstreamProblem::LoginRequired, AuthorizeErrorCode::LoginRequired),
            (UpstreamProblem::Busy, AuthorizeErrorCode::TemporarilyUnavailable),
            (UpstreamProblem::Unavailable(String::from("no route")), AuthorizeErrorCode::TemporarilyUnavailable),
        ]
    }

    #[test]
    fn who_has_another_way_may_choose_it() {
        for (problem, _) in problems() {
            for choices in [choices(true, &["corp"]), choices(false, &["corp", "hub"]), choices(true, &[])] {
                assert_eq!(way_out(&problem, "corp", &choices, true), WayOut::ChooseAgain, "{problem:?} {choices:?}");
            }
        }
    }

    #[test]
    fn where_there_is_no_other_way_the_client_is_told() {
        for (problem, code) in problems() {
            for choices in [choices(false, &["corp"]), choices(false, &[])] {
                let WayOut::TellClient(refusal) = way_out(&problem, "corp", &choices, true) else {
                    panic!("{problem:?} is told to nobody")
                };
                assert_eq!((refusal.code, refusal.reason), (code, problem.reason()));
                assert_eq!(way_out(&problem, "corp", &choices, false), WayOut::ChooseAgain, "nobody to tell");
            }
        }
    }

    #[test]
    fn what_is_not_believed_is_told_to_the_person_alone() {
        let problem = UpstreamProblem::NotBelieved(String::from("the nonce is another one"));
        for choices in [choices(true, &["corp"]), choices(false, &["corp"]), choices(false, &[])] {
            for has_client in [true, false] {
                assert_eq!(way_out(&problem, "corp", &choices, has_client), WayOut::Page);
            }
        }
    }
}
