//! The link by which a user sets their password. It is sealed and stored nowhere. It holds the
//! user's epoch, which changes with the password, with a revocation, and when they are disabled. So
//! it works once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::login::mail_link::address_and_roles_hash;
use crate::words::identifiers::Subject;
use crate::words::instant::Instant;
use crate::words::session::User;

/// Links begin with this, so that secret scanners find them.
pub const PREFIX: &str = "gpl_";
/// For how long the address of the form is good, in the browser that opened the link.
pub const FORM_LIFETIME: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordLink {
    pub subject: Subject,
    pub epoch: i64,
    pub installation_epoch: i64,
    /// What `factors_and_roles` says, where an administrator made it.
    pub factors: i64,
    pub origin: PasswordLinkOrigin,
    pub expires_at: Instant,
}

/// Who made a link, and what for. Under the seal this stands where a `bool` was: the order counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PasswordLinkOrigin {
    /// An operator.
    Plain,
    /// An operator; the user also sets up an app that shows codes.
    Enrolling,
    /// This administrator.
    ByAdministrator(Subject),
    /// A program, which makes nobody an administrator: it is over when somebody else did.
    ByProgram,
}

impl PasswordLink {
    /// Whether the link is good for the user as stored now. The user must have a name to sign in
    /// with.
    pub fn stands(&self, user: &User, installation_epoch: i64, now: Instant) -> bool {
        let is_as_it_was =
            user.epoch == self.epoch && installation_epoch == self.installation_epoch;
        let is_theirs = user.enabled && is_as_it_was && user.subject == self.subject;
        now < self.expires_at && is_theirs && user.username.is_some()
    }
}

/// The user's factors, with a mark of their address and roles: as by the hash of a letter's link,
/// an administrator's link is over when these are others.
pub fn factors_and_roles(factors: i64, claims: &Map<String, Value>) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = address_and_roles_hash(claims);
    factors ^ i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Links to make a passkey begin with this.
pub const PASSKEY_PREFIX: &str = "gpk_";

/// The link by which a user makes a passkey that takes the place of everything they signed in with
/// before: of their password, and of their factors. It works once, as the other does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyLink {
    pub link: PasswordLink,
    /// What `mail_link::address_hash` says of the user's address, where a letter brought the link:
    /// it is over when they have another.
    pub address_hash: Option<[u8; 32]>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::{self, NOW};

    #[test]
    fn an_administrators_link_is_over_with_other_factors_roles_or_address() {
        let of = |claims| samples::user(claims).claims;
        let alice = of(serde_json::json!({"email": "a@example.com", "role": ["staff"]}));
        let made_on = factors_and_roles(3, &alice);
        assert_eq!(factors_and_roles(3, &alice), made_on);
        assert_ne!(factors_and_roles(4, &alice), made_on);
        // Neither the factors nor the rest alone.
        assert_ne!(made_on, 3);
        assert_eq!(factors_and_roles(0, &alice) ^ 3, made_on);
        for others in [
            serde_json::json!({"email": "a@example.com", "role": ["admin"]}),
            serde_json::json!({"email": "b@example.com", "role": ["staff"]}),
            serde_json::json!({}),
        ] {
            assert_ne!(factors_and_roles(3, &of(others)), made_on);
        }
    }

    #[test]
    fn an_origin_is_written_as_the_bool_before_it() {
        let text = |origin: &PasswordLinkOrigin| postcard::to_allocvec(origin).unwrap();
        let before = |enrols: bool| postcard::to_allocvec(&enrols).unwrap();
        assert_eq!(text(&PasswordLinkOrigin::Plain), before(false));
        assert_eq!(text(&PasswordLinkOrigin::Enrolling), before(true));
    }

    #[test]
    fn a_link_dies_with_its_time_its_epoch_and_its_user() {
        let user = User {
            username: Some(String::from("alice")),
            ..samples::user(serde_json::json!({}))
        };
        let (subject, epoch) = (user.subject.clone(), user.epoch);
        let link = PasswordLink {
            subject,
            epoch,
            installation_epoch: 7,
            factors: 0,
            origin: PasswordLinkOrigin::Plain,
            expires_at: NOW.plus(Duration::from_secs(1)),
        };
        assert!(link.stands(&user, 7, NOW) && !link.stands(&user, 8, NOW));
        assert!(!link.stands(&user, 7, link.expires_at));
        for user in [
            User {
                epoch: epoch + 1,
                ..user.clone()
            },
            User {
                enabled: false,
                ..user.clone()
            },
            User {
                username: None,
                ..user.clone()
            },
            User {
                subject: Subject::new("bob"),
                ..user
            },
        ] {
            assert!(!link.stands(&user, 7, NOW), "{user:?}");
        }
    }
}
