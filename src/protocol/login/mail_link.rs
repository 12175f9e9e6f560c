//! Links that Gatepost sends to people itself. Each is sealed, and stored nowhere. It holds what it
//! was made on: the user's epoch, their factors and the address that it was sent to. So it works
//! once, and no longer when any of these is another.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::login::letters::stored_address;
use crate::login::password_link::{LinkOrigin, LinkUser};
use crate::words::identifiers::Sid;
use crate::words::instant::Instant;
use crate::words::json::JsonObject;
use crate::words::session::{Session, User};

/// Links to set a password begin with this, so that secret scanners find them.
pub const PREFIX: &str = "gpm_";
/// The same of links that confirm an address.
pub const ADDRESS_PREFIX: &str = "gpe_";
/// The same of what tells the sign-in page that a password was set.
pub const NOTE_PREFIX: &str = "gpw_";
pub const RESET_LIFETIME: Duration = Duration::from_secs(1_800);
/// Three days.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(259_200);
/// A day.
pub const NEW_BROWSER_LIFETIME: Duration = Duration::from_secs(86_400);
pub const ADDRESS_LIFETIME: Duration = Duration::from_secs(3_600);
/// The longest sealed request that a link carries: letters are read, and so are their links.
pub const LONGEST_REQUEST: usize = 1_500;

/// Sets a password; or says that a sign-in was not theirs, as its origin tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MailLink {
    pub user: LinkUser,
    pub factors: i64,
    /// What `LinkOrigin::address_hash` says of the address that it was sent to.
    pub address_hash: [u8; 32],
    pub expires_at: Instant,
    pub origin: LinkOrigin<OnTheWay>,
}

/// They forgot their password on the way to a client: the sealed request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnTheWay(pub String);

impl MailLink {
    /// Whether the link is good for the user as stored now. The user must have a name to sign in
    /// with.
    pub fn stands(&self, user: &User, factors: i64, installation_epoch: i64, now: Instant) -> bool {
        let claims = &user.claims;
        let hashes = [address_hash(claims), address_and_roles_hash(claims)];
        now < self.expires_at
            && self.user.is(user, installation_epoch)
            && factors == self.factors
            && hashes.contains(&self.address_hash)
            && user.username.is_some()
    }
}

/// Gives a user another address.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct AddressLink {
    pub user: LinkUser,
    /// Of the address that they had when they asked.
    pub old_hash: [u8; 32],
    pub new: String,
    /// The session that asked, in links of the build before; empty in shorter ones.
    pub sid: Sid,
    /// In those shorter ones, when the session began that asked.
    pub asked_at: Instant,
    pub expires_at: Instant,
}

impl AddressLink {
    /// Whether the link is good for the user as stored now.
    pub fn stands(&self, user: &User, installation_epoch: i64, now: Instant) -> bool {
        now < self.expires_at
            && self.user.is(user, installation_epoch)
            && address_hash(&user.claims) == self.old_hash
    }

    /// Whether it counts in this session of the user: in the one that asked, or one that began
    /// later.
    pub fn counts_in(&self, session: &Session) -> bool {
        session.sid == self.sid || session.auth_time >= self.asked_at
    }
}

/// Tells the sign-in page, for one sealed request, who has just set their password.
#[derive(Serialize, Deserialize)]
pub struct PasswordSetNote {
    pub username: String,
    request_hash: [u8; 32],
}

impl PasswordSetNote {
    pub fn new(username: &str, sealed_request: &str) -> PasswordSetNote {
        PasswordSetNote {
            username: username.to_owned(),
            request_hash: Sha256::digest(sealed_request).into(),
        }
    }

    /// Whether it was made for this request: no other's page can be made to say it.
    pub fn is_for(&self, sealed_request: &str) -> bool {
        self.request_hash == <[u8; 32]>::from(Sha256::digest(sealed_request))
    }
}

/// Of the address that is stored, verified or not.
pub fn address_hash(claims: &JsonObject) -> [u8; 32] {
    Sha256::digest(stored_address(claims).unwrap_or_default()).into()
}

/// The same of the roles, too: a link that an administrator made must not lead to a role that they
/// cannot give.
pub fn address_and_roles_hash(claims: &JsonObject) -> [u8; 32] {
    let roles = claims.get("role").map(Value::to_string);
    let hash = Sha256::new_with_prefix(address_hash(claims));
    hash.chain_update(roles.unwrap_or_default())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::words::identifiers::Subject;
    use crate::words::samples::{self, NOW};

    fn alice() -> User {
        User {
            username: Some(String::from("alice")),
            ..samples::user(json!({"email": "alice@example.com"}))
        }
    }

    fn of(user: &User) -> LinkUser {
        LinkUser {
            subject: user.subject.clone(),
            epoch: user.epoch,
            installation_epoch: 7,
        }
    }

    #[test]
    fn a_link_dies_with_its_time_and_with_what_it_was_made_on() {
        let user = alice();
        let link = MailLink {
            user: of(&user),
            factors: 2,
            address_hash: address_hash(&user.claims),
            expires_at: NOW.plus(Duration::from_secs(1)),
            origin: LinkOrigin::Plain,
        };
        assert!(link.stands(&user, 2, 7, NOW));
        assert!(!link.stands(&user, 2, 8, NOW) && !link.stands(&user, 3, 7, NOW));
        assert!(!link.stands(&user, 2, 7, link.expires_at));
        let epoch = user.epoch + 1;
        let elsewhere = samples::user(json!({"email": "alice@example.org"})).claims;
        for user in [
            User { epoch, ..alice() },
            User {
                enabled: false,
                ..alice()
            },
            User {
                username: None,
                ..alice()
            },
            User {
                subject: Subject::new("bob"),
                ..alice()
            },
            User {
                claims: elsewhere,
                ..alice()
            },
        ] {
            assert!(!link.stands(&user, 2, 7, NOW), "{user:?}");
        }
    }

    #[test]
    fn an_origin_is_written_as_the_option_before_it() {
        let text = |origin: &LinkOrigin<OnTheWay>| postcard::to_allocvec(origin).unwrap();
        let before = |request: Option<&str>| postcard::to_allocvec(&request).unwrap();
        assert_eq!(text(&LinkOrigin::Plain), before(None));
        let request = LinkOrigin::With(OnTheWay(String::from("a")));
        assert_eq!(text(&request), before(Some("a")));
    }

    #[test]
    fn a_change_of_address_counts_in_the_session_that_asked_or_a_later_one() {
        let user = alice();
        let session = samples::session();
        let link = AddressLink {
            user: of(&user),
            old_hash: address_hash(&user.claims),
            new: String::from("new@example.com"),
            sid: session.sid.clone(),
            asked_at: session.auth_time.plus(Duration::from_secs(60)),
            expires_at: NOW.plus(Duration::from_secs(1)),
        };
        assert!(link.stands(&user, 7, NOW) && !link.stands(&user, 8, NOW));
        assert!(!link.stands(&user, 7, link.expires_at));
        let claims = samples::user(json!({"email": "new@example.com"})).claims;
        assert!(!link.stands(&User { claims, ..user }, 7, NOW));
        assert!(link.counts_in(&session));
        let mut other = Session {
            sid: Sid::new("another"),
            ..session
        };
        assert!(!link.counts_in(&other), "it began before");
        other.auth_time = link.asked_at;
        assert!(link.counts_in(&other));
    }

    #[test]
    fn a_note_is_for_one_request() {
        let note = PasswordSetNote::new("alice", "sealed");
        assert!(note.is_for("sealed") && !note.is_for("another"));
    }
}
