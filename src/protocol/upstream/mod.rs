//! Gatepost as a client of another provider: the requests, the answers, and which of them are
//! believed.

pub mod account;
pub mod answers;
pub mod choices;
pub mod claims;
pub mod id_token;
pub mod metadata;
pub mod outbound_address;
pub mod round_trip;

use std::time::Duration;

use super::discovery::endpoint_url;
use crate::registration::problem::quoted;
use crate::words::json::{JsonObject, Members};
use crate::words::reason::Reason;
use crate::words::secret::SecretText;
use id_token::IdTokenFacts;

/// Who somebody is at a provider. With the provider's `authority`, the subject is the key of their
/// account here.
pub struct UpstreamIdentity {
    pub facts: IdTokenFacts,
    /// Claims under our names, roles by the provider's table among them.
    pub claims: JsonObject,
    /// The claims, under our names, that were too long to be taken over.
    pub left_out: Vec<String>,
    /// What a person recognizes the account by (a name or address), for pages; `None` where nothing
    /// fits.
    pub label: Option<String>,
    pub id_token: Option<SecretText>,
    /// Names that came by the person's browser. The provider does not vouch for them.
    pub own_word: JsonObject,
}

const SKEW: Duration = Duration::from_secs(60);
/// How old a token may be when it is shown for the first time. Some providers date theirs five
/// minutes back.
const OLDEST: Duration = Duration::from_secs(600);

/// One of our addresses that a provider must know: `callback` (the `redirect_uri`), `logout` (the
/// `backchannel_logout_uri`) or `signed-out` (the `post_logout_redirect_uri`).
pub fn external_url(base_url: &str, provider: &str, page: &str) -> String {
    endpoint_url(base_url, &format!("/external/{provider}/{page}"))
}

/// An upstream identifier of a user or a session: bounded, and without characters that a column or
/// a log cannot hold.
fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(255).is_none() && !text.contains(char::is_control)
}

/// An identifier in a token. `None` where the member is not one.
fn identifier(members: &JsonObject, name: &str) -> Option<String> {
    let text = members.text(name).filter(|text| is_identifier(text));
    text.map(str::to_owned)
}

fn shown(text: &str) -> String {
    quoted(text, 200)
}

/// What was asked for; or why nobody can sign in by it.
pub type Result<T = (), E = UpstreamProblem> = core::result::Result<T, E>;

#[derive(Debug, PartialEq)]
pub enum UpstreamProblem {
    /// The user cancelled at the provider, or was refused.
    Cancelled,
    /// Upstream cannot sign anybody in as asked (`login_required`, `interaction_required` and their
    /// like), or cannot be asked to.
    LoginRequired,
    /// Too many requests wait for other servers already.
    Busy,
    /// The provider is away, too slow, or asks to come again. The cause is for the log and the
    /// operator.
    Unavailable(String),
    /// The provider's answer cannot be used, and will not be until somebody mends something, there
    /// or here. The cause is for the log and the operator.
    Unusable(String),
    /// The answer did not verify. The cause is for the log, the audit and the operator, and holds
    /// no secret.
    NotBelieved(String),
}

impl UpstreamProblem {
    pub fn unavailable(cause: &str) -> UpstreamProblem {
        UpstreamProblem::Unavailable(cause.to_owned())
    }

    pub fn unusable(cause: &str) -> UpstreamProblem {
        UpstreamProblem::Unusable(cause.to_owned())
    }

    pub fn not_believed(cause: &str) -> UpstreamProblem {
        UpstreamProblem::NotBelieved(cause.to_owned())
    }

    pub fn reason(&self) -> Reason {
        match self {
            UpstreamProblem::Cancelled => Reason::UpstreamCancelled,
            UpstreamProblem::LoginRequired => Reason::UpstreamLoginRequired,
            UpstreamProblem::Busy => Reason::Overloaded,
            UpstreamProblem::Unavailable(_) => Reason::UpstreamUnavailable,
            UpstreamProblem::Unusable(_) => Reason::UpstreamUnusable,
            UpstreamProblem::NotBelieved(_) => Reason::UpstreamNotBelieved,
        }
    }

    pub fn detail(&self, provider: &str) -> String {
        match self {
            UpstreamProblem::Unavailable(cause)
            | UpstreamProblem::Unusable(cause)
            | UpstreamProblem::NotBelieved(cause) => {
                format!("identity provider {provider}: {cause}")
            }
            UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired | UpstreamProblem::Busy => {
                format!("identity provider {provider}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_knows_our_addresses_by_its_own_name() {
        let address = external_url("https://id.example/sso", "up", "callback");
        assert_eq!(address, "https://id.example/sso/external/up/callback");
    }

    #[test]
    fn the_log_names_the_provider_and_the_cause() {
        let rows = [
            (UpstreamProblem::Cancelled, "identity provider up"),
            (UpstreamProblem::LoginRequired, "identity provider up"),
            (UpstreamProblem::Busy, "identity provider up"),
            (
                UpstreamProblem::unavailable("late"),
                "identity provider up: late",
            ),
            (
                UpstreamProblem::not_believed("old"),
                "identity provider up: old",
            ),
        ];
        for (problem, detail) in rows {
            assert_eq!(problem.detail("up"), detail);
        }
    }
}
