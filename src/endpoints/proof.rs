//! How somebody proved who they are.

use crate::protocol::words::instant::Instant;
use crate::protocol::words::session::{LOCAL, PASSWORD};
use crate::protocol::words::strength::Strength;
use crate::store::upstream_sessions::Arrival;

#[derive(Clone, Debug)]
pub struct Proof {
    /// `local`, or the name of the upstream provider that vouches for them.
    pub identity_provider: String,
    pub amr: Vec<String>,
    pub acr: String,
    /// When they did; `None` is now.
    pub auth_time: Option<Instant>,
    /// How they came from upstream.
    pub upstream: Option<Arrival>,
    /// Whether the sign-in shall outlive the browser. `None` where nobody was asked: then a session
    /// stays as it is.
    pub remember: Option<bool>,
}

impl Proof {
    /// Their password, typed just now.
    pub fn password(remember: Option<bool>) -> Proof {
        Proof {
            identity_provider: String::from(LOCAL),
            amr: vec![String::from(PASSWORD)],
            acr: String::from(Strength::SignedIn.as_str()),
            auth_time: None,
            upstream: None,
            remember,
        }
    }

    pub fn is_from_upstream(&self) -> bool {
        self.identity_provider != LOCAL
    }

    /// Whether it is a password and nothing else.
    pub fn is_password_alone(&self) -> bool {
        !self.is_from_upstream() && Strength::of(&self.acr) == Strength::SignedIn
    }
}
