//! Users of a document.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::hash_form;
use gatepost_protocol::login::imported_hash::ImportedHash;
use gatepost_protocol::login::password::{
    self, MOST_MEMORY_KIB, MOST_PASSES, PasswordFlaw, SHORTEST_PASSWORD,
};
use gatepost_protocol::login::second_factor::from_base32;
use gatepost_protocol::registration::key_table::key_table;
use gatepost_protocol::registration::names::{plain_name, require};
use gatepost_protocol::registration::user::{check_claim, check_username, valid_until};
use gatepost_protocol::registration::walker::Walker;
use gatepost_protocol::token::jwt_bearer::is_possible_subject;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::rule::RuleKept;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};

/// One user, of a document or registered: then with a subject, and a hash where there is a
/// password.
#[derive(Clone, Debug)]
pub struct UserEntry {
    /// `sub`; `None` lets the server draw one when the user is new.
    pub subject: Option<Subject>,
    /// `username`; `None` for people whom only an identity provider knows.
    pub username: Option<String>,
    pub credential: Option<Credential>,
    pub tenant: Option<TenantName>,
    pub enabled: bool,
    /// `None`: without an end.
    pub valid_until: Option<Instant>,
    pub claims: JsonObject,
    /// `totp`: the secret of an app that shows codes; counts only when the user is new.
    pub totp: Option<SecretBytes>,
    /// `identities`; `None` leaves those that are there.
    pub identities: Option<BTreeSet<Identity>>,
}

/// Who somebody is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    pub issuer: String,
    pub subject: String,
}

/// Whose they are.
pub type Owners = BTreeMap<Identity, Subject>;

impl UserEntry {
    /// What operators call the user: the user name, or else the subject.
    pub fn designation(&self) -> &str {
        self.username
            .as_deref()
            .or(self.subject.as_ref().map(Subject::as_str))
            .unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Credential {
    /// `password`: counts only when the user is new.
    Password(SecretText),
    /// `password_hash`: a PHC string of Argon2 or PBKDF2, or a hash of bcrypt, compared as text.
    Hash(SecretText),
}

pub fn read(walker: &mut Walker<'_>) -> UserEntry {
    let user = read_keys(walker);
    // `null` must be said: a user whose name was only forgotten must not lose it. A password alone
    // opens nothing.
    let is_nameless = walker.members().get("username").is_some_and(Value::is_null);
    if !(is_nameless && user.subject.is_some() && user.credential.is_none()) {
        walker.not_absent(
            "username",
            "is required; null for a user with a sub and without a password",
        );
    }
    user
}

key_table! {
    fn read_keys(walker) -> UserEntry;
    pub const USER_KEYS;
    /// `sub` | the subject identifier: 1 to 255 printable characters without spaces. It never
    /// changes, and is never used again | a random one for a new user
    subject => walker.checked("sub", subject).map(Subject::new);
    /// `username` | the name to sign in with. It is unique in its tenant; case does not count.
    /// `null` for people who only sign in with an identity provider | required
    username: checked(check_username);
    /// `password` | the first password. It is ignored for a user who is already there | none
    ///
    /// `password_hash` | an Argon2 or PBKDF2 hash in PHC form (`$argon2id$v=19$...`,
    /// `$pbkdf2-sha256$i=600000,l=32$...`) or one of bcrypt (`$2b$12$...`), or as Django, passlib
    /// and LDAP servers write these, for [moving in](../move/from-anywhere.md). A different one
    /// replaces the password; one at another cost than yours only until the user has one at yours,
    /// by a sign-in or a new password | none
    credential => credential(walker);
    /// `identities` | the linked identities at [identity providers](../providers/README.md):
    /// `[{"issuer", "subject"}]`. If you give it, the user has exactly these. An identity of
    /// another user is refused | links stay as they are
    identities => walker.objects("identities", identity).map(BTreeSet::from_iter);
    /// `totp` | the secret of an app that shows codes, in base32. It is ignored for a user who is
    /// already there | none
    totp => walker.checked("totp", totp_secret).and_then(|text| from_base32(&text));
    /// `tenant` | the [tenant](../operate/tenants.md) of the user | none
    tenant => walker.checked("tenant", plain_name).map(TenantName::new);
    /// `enabled` | `false` refuses their sign-in, and ends their sessions, grants and tokens |
    /// `true`
    enabled: flag or true;
    /// `valid_until` | [until when](../operate/people.md#people-who-leave) they are there: a moment
    /// with its zone, `2027-01-31T18:00:00Z`, or a day, `2027-01-31`, to its end in UTC. Then ends
    /// by itself what `"enabled": false` ends | without an end
    valid_until => {
        let text = walker.checked("valid_until", |text| valid_until(text).map(drop));
        text.and_then(|text| valid_until(&text).ok())
    };
    /// `claims` | their claims: an object, which replaces all claims. `gatepost user set` changes
    /// single ones. The standard ones have their types: `locale` is a language tag, `de-DE` or
    /// `de_DE` | none
    claims: map(claim);
}

fn claim(name: &str, value: &Value) -> Result<Value, String> {
    check_claim(name, value)?;
    Ok(value.clone())
}

fn credential(walker: &mut Walker<'_>) -> Option<Credential> {
    if walker.value("password").is_some() && walker.value("password_hash").is_some() {
        walker.problem("password", "must not stand beside password_hash");
    }
    let password = walker.checked("password", new_password);
    let hash = walker.string("password_hash").map(password_hash);
    match (password, hash) {
        (Some(password), _) => Some(Credential::Password(SecretText::new(password))),
        (None, Some(Ok(hash))) => Some(Credential::Hash(SecretText::new(hash))),
        (None, Some(Err(rule))) => {
            walker.problem("password_hash", rule);
            None
        }
        (None, None) => None,
    }
}

fn new_password(text: &str) -> RuleKept {
    password::check_new(text, SHORTEST_PASSWORD).map_err(PasswordFlaw::rule)
}

fn totp_secret(text: &str) -> RuleKept {
    let secret = from_base32(text).map(drop);
    secret.ok_or("must be 16 to 64 bytes in base32")
}

key_table! {
    pub fn identity(walker) -> Identity;
    pub const IDENTITY_KEYS;
    /// `issuer` | the identity provider's issuer, as its discovery document has it; for a provider
    /// without OpenID its `userinfo_endpoint` | required
    issuer: required(present);
    /// `subject` | who they are there: the `sub` of its ID tokens; for a provider without OpenID
    /// the value of its `subject_claim` | required
    subject: required(present);
}

fn present(text: &str) -> RuleKept {
    require(
        !text.is_empty() && is_possible_subject(text),
        "must be 1 to 256 characters, without control characters",
    )
}

fn subject(text: &str) -> RuleKept {
    let fits = (1..=255).contains(&text.len()) && text.as_bytes().iter().all(u8::is_ascii_graphic);
    require(
        fits,
        "must be 1 to 255 printable ASCII characters without spaces",
    )
}

/// Reads a hash of a password, and gives it the form in which it is stored. The parts of an Argon2
/// hash are parsed again where it is used.
pub fn password_hash(text: &str) -> Result<String, String> {
    let stored = hash_form::stored(text);
    if is_argon2(&stored) || ImportedHash::parse(&stored).is_some() {
        return Ok(stored);
    }
    let rule = "must be an Argon2 hash in PHC form, as $argon2id$v=19$m=19456,t=2,p=1$...$... \
                with m up to 1048576 and t up to 20, or a PBKDF2 hash, as \
                $pbkdf2-sha256$i=10000,l=32$...$... with at most 2000000 rounds (6000000 over all \
                blocks of the key), a salt of 8 to 48 bytes, a key of 16 to 64, or a bcrypt \
                hash, as $2b$12$... with a cost from 04 to 14";
    Err(match hash_form::name(text) {
        Some(form) => format!("{rule}; this is {form}"),
        None => rule.to_owned(),
    })
}

fn is_argon2(text: &str) -> bool {
    let fields: Vec<&str> = text.split('$').collect();
    let known = matches!(fields.get(1), Some(&"argon2id" | &"argon2i" | &"argon2d"));
    let complete = (5..=6).contains(&fields.len()) && fields.first() == Some(&"");
    let tail_is_full = fields.iter().skip(1).all(|field| !field.is_empty());
    let cost = fields.iter().find(|field| field.starts_with("m="));
    let cost = cost.copied().unwrap_or_default();
    let is_bounded = is_within(cost, "m=", MOST_MEMORY_KIB) && is_within(cost, "t=", MOST_PASSES);
    let is_plain = text.len() <= 1_024 && text.as_bytes().iter().all(u8::is_ascii_graphic);
    known && complete && tail_is_full && is_bounded && is_plain
}

/// Whether `m=` or `t=` of a cost such as `m=19456,t=2,p=1` is at most so much.
fn is_within(cost: &str, name: &str, most: u32) -> bool {
    let mut parts = cost.split(',');
    let value = parts.find_map(|part| part.strip_prefix(name)?.parse::<u32>().ok());
    value.is_some_and(|value| value <= most)
}
