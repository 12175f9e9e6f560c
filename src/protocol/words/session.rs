//! A browser session as decisions see it. Sessions that were ended, and users that are gone, are
//! not loaded.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::claim_set::{ClaimSet, ClaimValue};
use crate::words::epochs::SessionEpochs;
use crate::words::identifiers::{KeyThumbprint, Sid, Subject, TenantName};
use crate::words::instant::{Day, Instant};
use crate::words::json::JsonObject;
use crate::words::strength::Strength;

/// The identity provider's name of the password login.
pub const LOCAL: &str = "local";
/// `amr` of a password (RFC 8176 §2).
pub const PASSWORD: &str = "pwd";

/// How long after a sign-in a user may change how they sign in. A stranger at an unattended browser
/// must not add a way in.
pub const FRESH_SIGN_IN: Duration = Duration::from_secs(300);

/// A signed-in user, and how they signed in: what a code remembers and every token of a grant
/// repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// Adds the claims about the sign-in that every token has. Access tokens and ID tokens add
    /// `sid`, ID tokens `idp`.
    pub fn add_claims<'a>(&'a self, claims: &mut ClaimSet<'a>) {
        claims
            .text("sub", self.subject.as_str())
            .text("tenant", self.tenant.as_ref().map(TenantName::as_str))
            .set("auth_time", self.auth_time.seconds())
            .add("amr", ClaimValue::Texts(&self.amr))
            .text("acr", self.acr.as_str());
    }
}

#[derive(Clone, Debug, PartialEq)]
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
    /// The key of the browser that it is bound to, and since when.
    pub bound_to: Option<KeyThumbprint>,
    pub bound_at: Option<Instant>,
    /// When a request that did not show that key was last told of. To the hour.
    pub refused_at: Option<Instant>,
}

impl Session {
    /// The provider's name, `local` for the password login.
    pub fn identity_provider(&self) -> &str {
        self.identity_provider.as_deref().unwrap_or(LOCAL)
    }

    pub fn is_alive(&self, now: Instant) -> bool {
        now < self.expires_at
    }

    /// The session once its device is to be remembered no longer. It ends as one that never was
    /// remembered: `lifetime` after it began. Where that is over, it counts as begun `now`, with
    /// the sign-in that asks for this.
    pub fn no_longer_remembered(self, lifetime: Duration, now: Instant) -> Session {
        let is_over = self.created_at.plus(lifetime) <= now;
        let created_at = if is_over { now } else { self.created_at };
        let expires_at = self.expires_at.min(created_at.plus(lifetime));
        Session {
            created_at,
            expires_at,
            ..self
        }
    }

    /// Whether the user may add or remove ways to sign in now. A user who has a password or a
    /// passkey here must have used it: a provider may send back a stranger at an unattended browser
    /// without a question, and not say when it last asked one.
    pub fn may_change_ways_in(&self, has_own_way_in: bool, now: Instant) -> bool {
        let is_by_password = self.identity_provider() == LOCAL;
        (is_by_password || !has_own_way_in) && now < self.auth_time.plus(FRESH_SIGN_IN)
    }

    /// Whether somebody is signed in by it: not ended, not run out, and nothing revoked that it
    /// stands on. The epochs of now are `None` when there is no such user any more, or they are
    /// disabled.
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
    /// When that ends by itself; `None`: never. What they are given ends no later.
    pub valid_until: Option<Instant>,
    /// As registered or as an identity provider sent them.
    pub claims: JsonObject,
    /// What stands on this user carries it.
    pub epoch: i64,
}

impl User {
    /// How long lives what is given now, and would live for `lifetime`.
    pub fn at_most(&self, lifetime: Duration, now: Instant) -> Duration {
        let left = self.valid_until.map(|end| end.since(now));
        left.map_or(lifetime, |left| left.min(lifetime))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, NOW};
    use super::*;

    #[test]
    fn a_device_that_is_no_longer_remembered_has_a_session_like_any_other() {
        let at = |hours: u64| NOW.plus(Duration::from_secs(hours * 3_600));
        let remembered = |hours| Session {
            created_at: NOW,
            expires_at: at(hours),
            ..samples::session()
        };
        for (lasts, now, began, ends) in [
            (720, 1, 0, 10),
            (720, 9, 0, 10),
            (720, 10, 10, 20),
            (720, 700, 700, 710),
            (720, 715, 715, 720),
            (5, 1, 0, 5),
        ] {
            let session =
                remembered(lasts).no_longer_remembered(Duration::from_secs(36_000), at(now));
            assert_eq!(
                (session.created_at, session.expires_at),
                (at(began), at(ends)),
                "{lasts} hours, {now} later"
            );
        }
    }

    #[test]
    fn ways_in_are_changed_soon_after_a_sign_in_by_a_way_of_ones_own() {
        for (provider, has_own_way_in, seconds, may) in [
            (None, true, 0, true),
            (None, true, 299, true),
            (None, true, 300, false),
            (None, true, 301, false),
            (None, false, 0, true),
            (Some("corp"), true, 0, false),
            (Some("corp"), false, 0, true),
            (Some("corp"), false, 300, false),
        ] {
            let session = Session {
                identity_provider: provider.map(str::to_owned),
                ..samples::session()
            };
            let now = NOW.plus(Duration::from_secs(seconds));
            let found = session.may_change_ways_in(has_own_way_in, now);
            assert_eq!(found, may, "{provider:?} {has_own_way_in} {seconds}");
        }
    }

    #[test]
    fn a_session_stands_only_on_everything_at_once() {
        let session = Session {
            expires_at: NOW.plus(Duration::from_secs(50)),
            ..samples::session()
        };
        let epochs = session.epochs;
        assert!(session.stands(Some(epochs), NOW));
        for now in [
            None,
            Some(SessionEpochs { user: 4, ..epochs }),
            Some(SessionEpochs {
                installation: 4,
                ..epochs
            }),
        ] {
            assert!(!session.stands(now, NOW), "{now:?}");
        }
        for dead in [
            Session {
                ended_at: Some(NOW),
                ..session.clone()
            },
            Session {
                expires_at: NOW,
                ..session
            },
        ] {
            assert!(!dead.stands(Some(epochs), NOW), "{dead:?}");
        }
    }
}
