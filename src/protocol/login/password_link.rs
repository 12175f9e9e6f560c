//! The link by which a user sets their password. It is sealed and stored nowhere. It holds the
//! user's epoch, which changes with the password, with a revocation, and when they are disabled. So
//! it works once.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::login::mail_link::{address_and_roles_hash, address_hash};
use crate::words::identifiers::Subject;
use crate::words::instant::Instant;
use crate::words::json::JsonObject;
use crate::words::session::User;

/// Links begin with this, so that secret scanners find them.
pub const PREFIX: &str = "gpl_";
/// For how long the address of the form is good, in the browser that opened the link.
pub const FORM_LIFETIME: Duration = Duration::from_secs(600);

/// Whom a link is for, as they were when it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkUser {
    pub subject: Subject,
    pub epoch: i64,
    pub installation_epoch: i64,
}

impl LinkUser {
    /// Whether this is the user, enabled, and nothing was revoked since.
    pub fn is(&self, user: &User, installation_epoch: i64) -> bool {
        user.enabled
            && user.subject == self.subject
            && user.epoch == self.epoch
            && installation_epoch == self.installation_epoch
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct PasswordLink {
    pub user: LinkUser,
    /// What `LinkOrigin::mark` says.
    pub factors: i64,
    pub origin: LinkOrigin<Enrolling>,
    pub expires_at: Instant,
}

/// Who made a link, and what for. Under the seal this stands where a `bool` was, or an `Option`:
/// the order counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LinkOrigin<Wish> {
    /// An operator; or the user, who forgot their password.
    Plain,
    /// The same, with something that goes with this kind of link.
    With(Wish),
    /// This administrator. It is over when they could not make it any more.
    ByAdministrator(Subject),
    /// A program, which makes nobody an administrator: it is over when somebody else did.
    ByProgram,
    /// A sign-in of the user in a new browser: by it they say that it was not theirs.
    NewBrowser,
}

/// The user also sets up an app that shows codes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enrolling;

impl<Wish> LinkOrigin<Wish> {
    fn is_by_administrator(&self) -> bool {
        matches!(self, LinkOrigin::ByAdministrator(_))
    }

    /// The user's factors; of a link that an administrator made, with a mark of their address and
    /// roles. As by the hash of a letter's link, it is over when these are others.
    pub fn mark(&self, factors: i64, claims: &JsonObject) -> i64 {
        if !self.is_by_administrator() {
            return factors;
        }
        let [a, b, c, d, e, f, g, h, ..] = address_and_roles_hash(claims);
        factors ^ i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Of the user's address; with the roles, where an administrator made the link.
    pub fn address_hash(&self, claims: &JsonObject) -> [u8; 32] {
        if self.is_by_administrator() {
            address_and_roles_hash(claims)
        } else {
            address_hash(claims)
        }
    }
}

impl PasswordLink {
    /// Whether the link is good for the user as stored now. The user must have a name to sign in
    /// with.
    pub fn stands(&self, user: &User, factors: i64, installation_epoch: i64, now: Instant) -> bool {
        now < self.expires_at
            && self.user.is(user, installation_epoch)
            && self.origin.mark(factors, &user.claims) == self.factors
            && user.username.is_some()
    }
}

/// Links to make a passkey begin with this.
pub const PASSKEY_PREFIX: &str = "gpk_";

/// The link by which a user makes a passkey that takes the place of everything they signed in with
/// before: of their password, and of their factors. It works once, as the other does.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
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
        let origin = LinkOrigin::<Enrolling>::ByAdministrator(Subject::new("admin"));
        let made_on = origin.mark(3, &alice);
        assert_eq!(origin.mark(3, &alice), made_on);
        assert_ne!(origin.mark(4, &alice), made_on);
        // Neither the factors nor the rest alone.
        assert_ne!(made_on, 3);
        assert_eq!(origin.mark(0, &alice) ^ 3, made_on);
        assert_eq!(LinkOrigin::<Enrolling>::ByProgram.mark(3, &alice), 3);
        for others in [
            serde_json::json!({"email": "a@example.com", "role": ["admin"]}),
            serde_json::json!({"email": "b@example.com", "role": ["staff"]}),
            serde_json::json!({}),
        ] {
            assert_ne!(origin.mark(3, &of(others)), made_on);
        }
    }

    #[test]
    fn an_origin_is_written_as_the_bool_before_it() {
        let text = |origin: &LinkOrigin<Enrolling>| postcard::to_allocvec(origin).unwrap();
        let before = |enrols: bool| postcard::to_allocvec(&enrols).unwrap();
        assert_eq!(text(&LinkOrigin::Plain), before(false));
        assert_eq!(text(&LinkOrigin::With(Enrolling)), before(true));
    }

    #[test]
    fn a_link_dies_with_its_time_its_epoch_and_its_user() {
        let user = User {
            username: Some(String::from("alice")),
            ..samples::user(serde_json::json!({}))
        };
        let (subject, epoch) = (user.subject.clone(), user.epoch);
        let made_for = LinkUser {
            subject,
            epoch,
            installation_epoch: 7,
        };
        let link = PasswordLink {
            user: made_for,
            factors: 0,
            origin: LinkOrigin::Plain,
            expires_at: NOW.plus(Duration::from_secs(1)),
        };
        assert!(link.stands(&user, 0, 7, NOW) && !link.stands(&user, 0, 8, NOW));
        assert!(!link.stands(&user, 1, 7, NOW) && !link.stands(&user, 0, 7, link.expires_at));
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
            assert!(!link.stands(&user, 0, 7, NOW), "{user:?}");
        }
    }
}
