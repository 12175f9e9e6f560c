//! ASP.NET Core Identity: users, their claims, passwords, second factors and links.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde_json::{Value, json};

use super::{claim_name, instant};
use crate::{Import, ImportedObject, Moving, Read, Row};
use gatepost_protocol::login::pbkdf2::Pbkdf2Hash;
use gatepost_protocol::login::second_factor::from_base32;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::user::is_possible_claim;
use gatepost_protocol::token::claims::PREFERRED_USERNAME;
use gatepost_protocol::words::instant::Instant;

/// A lockout that ends within this was not meant for good.
const DAY: Duration = Duration::from_secs(86_400);

/// A role, and the claims of all who have it.
pub struct Role {
    name: String,
    claims: Vec<AddedClaim>,
}

struct AddedClaim {
    name: String,
    value: Value,
}

impl Role {
    pub fn of(row: &Row<'_>) -> Read<Role> {
        let claims = row.rows("AspNetRoleClaims")?;
        Ok(Role {
            name: row.required("Name")?,
            claims: claims.iter().map(added_claim).collect::<Result<_, _>>()?,
        })
    }
}

fn added_claim(row: &Row<'_>) -> Read<AddedClaim> {
    let name = claim_name(&row.required("ClaimType")?);
    let text = row.text("ClaimValue")?.unwrap_or_default();
    let value = claim_value(&name, text);
    Ok(AddedClaim { name, value })
}

pub fn user(row: &Row<'_>, roles: &BTreeMap<String, Role>, now: Instant, to: &mut Import) -> Read {
    let sub = row.required("Id")?;
    let username = row.text("UserName")?;
    let of = format!("user {}", username.as_ref().unwrap_or(&sub));
    let mut user = Moving::new(row, of, to);
    let claims = user.claims_of_aspnet(username.as_deref(), roles)?;
    let stored = row.text("PasswordHash")?;
    let password_hash = stored.as_deref().and_then(phc);
    let password_hash = password_hash.filter(|_| username.is_some());
    let lockout = Lockout::of(row, now)?;
    user.second_factor()?;
    let is_unconfirmed = row.value("Email").is_some() && !row.flag_or("EmailConfirmed", true)?;
    let notes = [
        (
            stored.is_some() && password_hash.is_none(),
            "the password is left out: it is no hash of ASP.NET Core Identity. \
             Run `gatepost user invite`",
        ),
        (
            lockout == Lockout::Lasting,
            "disabled, as locked out there: `gatepost user enable`",
        ),
        (
            lockout == Lockout::Passing,
            "is locked out there for a while, and not here",
        ),
        (
            is_unconfirmed,
            "has an e-mail address that is not confirmed. Where that kept people out there, it \
             does not here",
        ),
    ];
    user.note_each(&notes);
    user.ours
        .0
        .insert(String::from("username"), json!(username));
    user.set("sub", sub);
    user.set("enabled", lockout != Lockout::Lasting);
    let claims = claims.into_claims(&user.of, user.to);
    user.set("claims", claims);
    user.set("password_hash", password_hash);
    user.add_identities(
        ["AspNetUserLogins", "LoginProvider", "ProviderKey"],
        |scheme| format!("say --issuer {scheme}=ISSUER"),
    )?;
    user.push(ObjectKind::User);
    Ok(())
}

/// Whether wrong passwords, or somebody, locked the account.
#[derive(Clone, Copy, PartialEq)]
enum Lockout {
    None,
    /// Over within a day: wrong passwords lock for minutes.
    Passing,
    Lasting,
}

impl Lockout {
    fn of(row: &Row<'_>, now: Instant) -> Read<Lockout> {
        let Some(end) = row.text("LockoutEnd")? else {
            return Ok(Lockout::None);
        };
        if !row.flag_or("LockoutEnabled", true)? {
            return Ok(Lockout::None);
        }
        Ok(match instant(&end) {
            Some(end) if end <= now => Lockout::None,
            Some(end) if end <= now.plus(DAY) => Lockout::Passing,
            _ => Lockout::Lasting,
        })
    }
}

impl Moving<'_> {
    /// The key of an app moves. Other factors do not, and a key that was never confirmed is none.
    fn second_factor(&mut self) -> Read {
        if !self.flag("TwoFactorEnabled")? {
            return Ok(());
        }
        let mut has_codes = false;
        for token in self.rows("AspNetUserTokens")? {
            if token.required("LoginProvider")? != "[AspNetUserStore]" {
                continue;
            }
            let value = token.text("Value")?.unwrap_or_default();
            match token.required("Name")?.as_str() {
                "AuthenticatorKey" if from_base32(&value).is_some() => self.set("totp", value),
                "RecoveryCodes" => has_codes = true,
                _ => {}
            }
        }
        let other = other_factor(self.row)?;
        if !self.ours.has("totp") {
            self.note(format!("the second factor is left out: {other}"));
            self.to.without_factor.extend(self.text("UserName")?);
        }
        if has_codes {
            self.note("recovery codes are left out: people make new ones on the account page");
        }
        Ok(())
    }

    fn claims_of_aspnet(
        &mut self,
        username: Option<&str>,
        roles: &BTreeMap<String, Role>,
    ) -> Read<ImportedObject> {
        let mut claims = ImportedObject::default();
        for claim in self.rows("AspNetUserClaims")? {
            let AddedClaim { name, value } = added_claim(&claim)?;
            claims.add_claim(&name, value);
        }
        // Their profile service uses the user name where no claim has the name.
        claims.0.entry("name").or_insert(json!(username));
        // Here the user name goes out as this without being a claim.
        if claims.is(PREFERRED_USERNAME, username) {
            claims.0.remove(PREFERRED_USERNAME);
        }
        self.keep_columns(&mut claims)?;
        self.row.copy("claims of AspNetUsers", &mut claims)?;
        claims.doubt_addresses();
        self.add_roles(&mut claims, roles)?;
        Ok(claims)
    }

    /// Takes away the claims that have a column. Whether an address is confirmed is said of the
    /// address in the column, and not of one in an old claim.
    fn keep_columns(&mut self, claims: &mut ImportedObject) -> Read {
        for (column, address) in [("Email", "email"), ("PhoneNumber", "phone_number")] {
            if self.text(column)?.is_none() {
                continue;
            }
            for claim in [address.to_owned(), format!("{address}_verified")] {
                if claims.0.remove(&claim).is_some() {
                    self.note(format!(
                        "its claim {claim} of AspNetUserClaims is left out: AspNetUsers has a \
                         column for it, which counts"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The claim `role`, and the claims of each role.
    fn add_roles(&mut self, claims: &mut ImportedObject, roles: &BTreeMap<String, Role>) -> Read {
        for id in self.texts("AspNetUserRoles", "RoleId")? {
            let Some(role) = roles.get(&id) else {
                self.note("a role is left out: it is not among AspNetRoles");
                continue;
            };
            claims.add_claim("role", role.name.as_str());
            for claim in &role.claims {
                claims.add_claim(&claim.name, claim.value.clone());
            }
        }
        Ok(())
    }
}

/// What is a second factor there where there is no app.
fn other_factor(row: &Row<'_>) -> Read<&'static str> {
    let by_mail = row.value("Email").is_some() && row.flag("EmailConfirmed")?;
    let by_sms = row.value("PhoneNumber").is_some() && row.flag("PhoneNumberConfirmed")?;
    Ok(match (by_mail, by_sms) {
        (true, true) => "codes by e-mail or SMS",
        (true, false) => "codes by e-mail",
        (false, true) => "codes by SMS",
        (false, false) => "no app, and no confirmed address or number",
    })
}

/// The value of a claim, which is a text there even where it must not be one here. .NET writes
/// `True`.
fn claim_value(name: &str, text: String) -> Value {
    let typed = [&text, &text.to_lowercase()]
        .into_iter()
        .find_map(|text| serde_json::from_str(text).ok());
    let text = json!(text);
    match typed {
        Some(typed) if !is_possible_claim(name, &text) => typed,
        _ => text,
    }
}

/// A hash of version 2 (a zero, salt, key) or 3 (a one; pseudorandom function, rounds and length of
/// the salt, each four bytes; salt, key) in PHC form.
pub fn phc(hash: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(hash).ok()?;
    let (prf, rounds, (salt, key)) = match bytes.split_first()? {
        (0, rest) if rest.len() == 16 + 32 => (0, 1_000, rest.split_at_checked(16)?),
        (1, rest) => {
            let (prf, rest) = number(rest)?;
            let (rounds, rest) = number(rest)?;
            let (salt_length, rest) = number(rest)?;
            (prf, rounds, rest.split_at_checked(salt_length)?)
        }
        _ => return None,
    };
    let name = ["pbkdf2", "pbkdf2-sha256", "pbkdf2-sha512"].get(prf)?;
    let [salt, encoded] = [salt, key].map(|part| BASE64_STANDARD_NO_PAD.encode(part));
    let text = format!("${name}$i={rounds},l={}${salt}${encoded}", key.len());
    Pbkdf2Hash::parse(&text).is_some().then_some(text)
}

/// A number of four bytes, and what stands behind it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    let number = usize::try_from(u32::from_be_bytes(*number)).ok()?;
    Some((number, rest))
}
