//! Keycloak's users: their claims, passwords, second factors and links.

use serde_json::{Value, json};

use super::mappers::{GROUP_NAMES, REALM_ROLES, is_vouched};
use super::roles::Roles;
use super::{GROUPS, ROLE, is_among};
use crate::{Import, ImportedObject, Moving, Read, Row, is_clear};
use gatepost_protocol::login::pbkdf2::Pbkdf2Hash;
use gatepost_protocol::login::second_factor::{STEP, from_base32, to_base32};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::token::claims::PREFERRED_USERNAME;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_registration::user::password_hash;

const ITS_ACTIONS: &str = "\
    CONFIGURE_RECOVERY_AUTHN_CODES CONFIGURE_TOTP TERMS_AND_CONDITIONS UPDATE_EMAIL \
    UPDATE_PROFILE VERIFY_EMAIL VERIFY_PROFILE idp_link update_user_locale \
    webauthn-register webauthn-register-passwordless";

/// What of the realm a user needs.
pub struct Realm<'r> {
    pub roles: &'r mut Roles,
    /// Whether addresses had to be confirmed before a sign-in.
    pub confirms_addresses: bool,
}

/// Reads a user of the realm.
pub fn user(row: &Row<'_>, realm: &mut Realm<'_>, to: &mut Import) -> Read {
    let of = format!("user {}", row.required("username")?);
    let mut user = Moving::new(row, of, to);
    let claims = user.claims_of_keycloak(realm.roles)?;
    user.copy("user of Keycloak")?;
    let claims = claims.into_claims(&user.of, user.to);
    user.set("claims", claims);
    for credential in row.rows("credentials")? {
        user.add_credential(&credential)?;
    }
    user.add_identities(
        ["federatedIdentities", "identityProvider", "userId"],
        |_| String::from("that provider does not move"),
    )?;
    user.note_actions(realm.confirms_addresses)?;
    user.push(ObjectKind::User);
    Ok(())
}

impl Moving<'_> {
    fn claims_of_keycloak(&mut self, roles: &mut Roles) -> Read<ImportedObject> {
        let row = self.row;
        let mut claims = self.attributes()?;
        let names = [row.text("firstName")?, row.text("lastName")?];
        let names: Vec<String> = names.into_iter().flatten().collect();
        claims.set("name", (!names.is_empty()).then(|| names.join(" ")));
        row.copy("claims of Keycloak", &mut claims)?;
        // The user name there. Here it goes out as this without being a claim.
        claims.0.remove(PREFERRED_USERNAME);
        claims.doubt_addresses();
        // By their paths.
        let groups = row.texts("groups", "")?;
        if self.to.sources.contains(GROUP_NAMES) {
            let names = groups.iter().filter_map(|path| roles.group_name(path));
            claims.set(GROUP_NAMES, names.collect::<Vec<_>>());
        }
        claims.set(GROUPS, groups);
        let names = roles.of_user(row)?;
        if self.to.sources.contains(REALM_ROLES) {
            let of_realm = names.iter().filter(|name| roles.is_of_realm(name));
            claims.set(REALM_ROLES, of_realm.cloned().collect::<Vec<_>>());
        }
        claims.set(ROLE, names);
        Ok(claims)
    }

    /// Attributes become claims. Some realms let people write them themselves: they must not say
    /// what Keycloak would.
    fn attributes(&mut self) -> Read<ImportedObject> {
        let mut claims = ImportedObject::default();
        let Some(attributes) = self.nested("attributes")? else {
            return Ok(claims);
        };
        let mut members = attributes.members.clone();
        for value in members.values_mut().filter(|value| value.is_string()) {
            // Keycloak takes one text for a list of one.
            *value = json!([value.take()]);
        }
        let attributes = Row {
            members: &members,
            ..attributes
        };
        for name in attributes.members.keys() {
            if is_vouched(name) || self.to.attributes.is_taken(name) {
                self.note(format!(
                    "attribute {name} is left out: the claim of that name has another source"
                ));
                continue;
            }
            let values = attributes.texts(name, "")?;
            let value = self.to.attributes.value(name, &values);
            if values.len() > 1 && !value.is_array() {
                let line = format!(
                    "attribute {name} has several values: the claim is the first of them, as \
                     there. A claim that has all needs a mapper with multivalued"
                );
                self.note(line);
            }
            claims.set(&self.to.attributes.claim(name), value);
        }
        claims.set("address", self.to.attributes.address(&attributes)?);
        Ok(claims)
    }

    /// Notes what the user was to do at the next sign-in.
    fn note_actions(&mut self, confirms_addresses: bool) -> Read {
        for action in self.texts("requiredActions", "")? {
            if action == "UPDATE_PASSWORD" {
                self.note(
                    "the password was to be changed first, and stays good here: `gatepost user \
                     reset` makes a link for another, `gatepost user password` ends it at once",
                );
                continue;
            }
            let action = if is_among(ITS_ACTIONS, &action) {
                action.as_str()
            } else {
                "an action of your own"
            };
            self.note(format!(
                "was to do this at the next sign-in, and is not asked to here: {action}"
            ));
        }
        let has_address = self.value("email").is_some();
        if confirms_addresses && has_address && !self.flag("emailVerified")? {
            self.note("was to confirm the e-mail address first, and is not asked to here");
        }
        Ok(())
    }

    /// A password or a second factor.
    fn add_credential(&mut self, credential: &Row<'_>) -> Read {
        let clear = credential.text("value")?.filter(|value| is_clear(value));
        let kind = match &clear {
            Some(_) => credential
                .text("type")?
                .unwrap_or_else(|| String::from("password")),
            None => credential.required("type")?,
        };
        if kind == "password-history" {
            self.to.note("realm", EARLIER_PASSWORDS);
            return Ok(());
        }
        if kind != "password" {
            self.add_factor(credential, &kind);
            return Ok(());
        }
        if credential.flag("temporary")? {
            self.note(
                "the password is left out: it was to be changed first. Run `gatepost user invite`",
            );
            return Ok(());
        }
        match (clear, phc(credential)) {
            (Some(password), _) => self.set("password", password),
            (None, Some(hash)) => self.set("password_hash", hash),
            (None, None) => self.note(
                "the password is left out: its hash has a form or a cost that is not taken here. \
                 Run `gatepost user invite`",
            ),
        }
        Ok(())
    }

    /// The first app whose codes are like ours moves. Other factors do not.
    fn add_factor(&mut self, credential: &Row<'_>, kind: &str) {
        let is_first = kind == "otp" && !self.ours.has("totp");
        if let Some(secret) = totp(credential).filter(|_| is_first) {
            self.set("totp", secret);
            return;
        }
        let known = FACTORS.iter().find(|(theirs, _)| *theirs == kind);
        let called = known.map_or("of another kind", |(_, called)| called);
        self.note(format!("a second factor is left out: {called}"));
        let name = self.ours.0.text("username");
        self.to.without_factor.extend(name.map(str::to_owned));
    }
}

const EARLIER_PASSWORDS: &str =
    "passwords that people had before stay behind: a new password here may be one of them";

/// Kinds of second factors.
const FACTORS: [(&str, &str); 4] = [
    (
        "otp",
        "an app whose codes are others than ours, or a second one",
    ),
    ("webauthn", "a security key (WebAuthn)"),
    ("webauthn-passwordless", "a passkey (WebAuthn)"),
    ("recovery-authn-codes", "recovery codes"),
];

/// A part of a credential: JSON in a text.
fn part(credential: &Row<'_>, key: &str) -> Option<Value> {
    serde_json::from_str(&credential.text(key).ok()??).ok()
}

/// The secret of an app, in base32, if its codes are like ours (six digits, SHA-1, 30 seconds). It
/// is there as the bytes of a text, or in base32.
pub fn totp(credential: &Row<'_>) -> Option<String> {
    let secret = part(credential, "secretData")?;
    let how = part(credential, "credentialData")?;
    let is = |key: &str, wanted: Value| how.get(key) == Some(&wanted);
    let ours = is("subType", json!("totp")) && is("digits", json!(6)) && is("period", json!(STEP));
    let value = secret
        .text("value")
        .filter(|_| ours && is("algorithm", json!("HmacSHA1")))?;
    let is_base32 = is("secretEncoding", json!("BASE32"));
    let text = if is_base32 {
        value.to_owned()
    } else {
        to_base32(&SecretBytes::new(value))
    };
    from_base32(&text).map(|_| text)
}

/// A password in PHC form.
pub fn phc(credential: &Row<'_>) -> Option<String> {
    let secret = part(credential, "secretData")?;
    let how = part(credential, "credentialData")?;
    let encoded = |name: &str| Some(secret.text(name)?.trim_end_matches('=').to_owned());
    let key = encoded("value")?;
    let algorithm = how.text("algorithm")?;
    // Extensions for bcrypt keep its whole hash as the key.
    if algorithm.eq_ignore_ascii_case("bcrypt") {
        return password_hash(&key).ok();
    }
    let salt = encoded("salt")?;
    let rounds = how.get("hashIterations")?.as_u64()?;
    if algorithm == "argon2" {
        let text = format!("{}${salt}${key}", argon2_beginning(&how, rounds)?);
        return password_hash(&text).ok();
    }
    // Four characters are three bytes.
    let text = format!(
        "${algorithm}$i={rounds},l={}${salt}${key}",
        key.len() * 3 / 4
    );
    Pbkdf2Hash::parse(&text).is_some().then_some(text)
}

/// How a password of Argon2 in PHC form begins: up to its salt.
fn argon2_beginning(how: &Value, rounds: u64) -> Option<String> {
    let parameter = |name: &str| how.get("additionalParameters")?.get(name)?.get(0)?.as_str();
    let version = match parameter("version")? {
        "1.0" => 16,
        _ => 19,
    };
    let kind = parameter("type")?;
    let memory = parameter("memory")?;
    let lanes = parameter("parallelism")?;
    Some(format!(
        "$argon2{kind}$v={version}$m={memory},t={rounds},p={lanes}"
    ))
}
