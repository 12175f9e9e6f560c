//! A browser session as decisions see it. Sessions that were ended, and users that are gone, are not loaded.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::protocol::words::acr_values::Strength;
use crate::protocol::words::grant::SessionEpochs;
use crate::protocol::words::identifiers::{Sid, Subject, TenantName};
use crate::protocol::words::instant::{Day, Instant};

/// The identity provider's name of the password login.
pub const LOCAL: &str = "local";
/// `amr` of a password (RFC 8176 §2).
pub const PASSWORD: &str = "pwd";

/// A signed-in user, and how they signed in: what a code remembers and every token of a grant repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    pub subject: Subject,
    pub sid: Option<Sid>,
    pub tenant: Option<TenantName>,
    /// `idp`, where the request named one; access tokens do not tell it.
    pub identity_provider: Option<String>,
    pub auth_time: Instant,
    /// RFC 8176
    pub amr: Vec<String>,
    pub acr: String,
}

impl SignIn {
    /// Of a user whom no browser session speaks for.
    pub fn without_session(user: &User, amr: Vec<String>, auth_time: Instant) -> SignIn {
        SignIn {
            subject: user.subject.clone(),
            sid: None,
            tenant: user.tenant.clone(),
            identity_provider: None,
            auth_time,
            amr,
            acr: String::from(Strength::SignedIn.as_str()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub day: Day,
    pub sid: Sid,
    pub subject: Subject,
    /// When they last proved who they are.
    pub auth_time: Instant,
    /// RFC 8176
    pub amr: Vec<String>,
    pub acr: String,
    pub tenant: Option<TenantName>,
    /// The identity provider; `None` and `local` are the password login.
    pub identity_provider: Option<String>,
    /// The issuer that this name stood for when they did; `None` for the password login.
    pub upstream_issuer: Option<String>,
    pub epochs: SessionEpochs,
    /// Where it began, or was last signed in to anew.
    pub source: Option<IpAddr>,
    /// What the browser called itself there, at most 200 characters of it.
    pub user_agent: Option<String>,
    pub created_at: Instant,
    /// To the hour.
    pub used_at: Instant,
    pub expires_at: Instant,
    pub ended_at: Option<Instant>,
}

impl Session {
    /// The provider's name, `local` for the password login.
    pub fn identity_provider(&self) -> &str {
        self.identity_provider.as_deref().unwrap_or(LOCAL)
    }

    pub fn is_alive(&self, now: Instant) -> bool {
        now < self.expires_at
    }

    /// Whether somebody is signed in by it: not ended, not run out, and nothing revoked that it stands on. The epochs of now are
    /// `None` when there is no such user any more, or they are disabled.
    pub fn stands(&self, epochs_now: Option<SessionEpochs>, now: Instant) -> bool {
        self.ended_at.is_none() && self.is_alive(now) && epochs_now == Some(self.epochs)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct User {
    pub subject: Subject,
    /// None where only an identity provider knows them.
    pub username: Option<String>,
    pub tenant: Option<TenantName>,
    /// Whether they may sign in, and what they gave stands.
    pub enabled: bool,
    /// As registered or as an identity provider sent them.
    pub claims: Map<String, Value>,
    /// What stands on this user carries it.
    pub epoch: i64,
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, NOW};
    use super::*;

    #[test]
    fn a_session_stands_only_on_everything_at_once() {
        let session = Session { expires_at: NOW.plus(std::time::Duration::from_secs(50)), ..samples::session() };
        let epochs = session.epochs;
        assert!(session.stands(Some(epochs), NOW));
        for now in [None, Some(SessionEpochs { user: 4, ..epochs }), Some(SessionEpochs { installation: 4, ..epochs })]
        {
            assert!(!session.stands(now, NOW), "{now:?}");
        }
        for dead in [Session { ended_at: Some(NOW), ..session.clone() }, Session { expires_at: NOW, ..session }] {
            assert!(!dead.stands(Some(epochs), NOW), "{dead:?}");
        }
    }
}
