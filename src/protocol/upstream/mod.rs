//! We as a client of somebody else's provider: what is asked there, what comes back, and how far it is believed.

pub mod account;
mod ask;
pub mod authorization;
pub mod callback;
pub mod checkup;
pub mod choices;
pub mod claims;
pub mod emails;
pub mod id_token;
pub mod link;
pub mod logout_token;
pub mod metadata;
pub mod round_trip;
pub mod token_exchange;
pub mod way_out;

use std::time::Duration;

use serde_json::{Map, Value};

use super::instant::Instant;
use super::secret::SecretText;

pub use ask::{Ask, PromptValues};

#[derive(Clone, Debug)]
pub struct UpstreamIdentity {
    /// Half of the account's key: the issuer; for a provider without one, its `userinfo_endpoint`.
    pub issuer: String,
    /// The other half: the subject there, not empty, at most 255 characters, free of NUL.
    pub subject: String,
    /// Claims under our names, roles by the provider's table among them.
    pub claims: Map<String, Value>,
    /// Our names of claims that were too much to be taken over.
    pub left_out: Vec<String>,
    /// What a person recognizes the account by (a name or address), for pages; `None` where nothing fits.
    pub label: Option<String>,
    /// `auth_time` as upstream says.
    pub auth_time: Option<Instant>,
    /// `acr` under our names, by the provider's table.
    pub acr: String,
    /// `amr` as upstream says; empty when it does not.
    pub amr: Vec<String>,
    /// `sid` as upstream says: what its logout tokens name.
    pub sid: Option<String>,
    /// The ID token itself, for signing out there.
    pub id_token: Option<SecretText>,
}

/// Whom a logout token is about: at least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamLogout {
    /// `sub`: all sessions of this person there.
    pub subject: Option<String>,
    /// `sid`: that session there.
    pub sid: Option<String>,
}

/// What clocks may differ by.
const SKEW: Duration = Duration::from_secs(60);
/// How long ago a token may have been made that is shown for the first time. Some providers date theirs five minutes back.
const OLDEST: Duration = Duration::from_secs(600);

/// An identifier of upstream's, of a person or a session: bounded, and free of what no column and no log can hold.
fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(255).is_none() && !text.contains(char::is_control)
}

/// An identifier in a token; `None` where the member is none.
fn identifier(members: &Map<String, Value>, name: &str) -> Option<String> {
    members.get(name)?.as_str().filter(|text| is_identifier(text)).map(str::to_owned)
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(200).collect();
    format!("\"{}\"", cut.escape_debug())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamProblem {
    /// They cancelled there, or were refused there.
    Cancelled,
    /// Upstream cannot sign anybody in as asked (`login_required`, `interaction_required` and their like), or cannot be asked
    /// to.
    LoginRequired,
    /// Too many of our workers wait for other servers already.
    Busy,
    /// Not there, too slow, or not able to answer; the cause is for the log and the operator.
    Unavailable(String),
    /// What came back is not believed; the cause is for the log, the audit and the operator, and holds nothing secret.
    NotBelieved(String),
}
