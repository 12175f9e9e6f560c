//! Identity providers, and what of their claims counts here.

use serde_json::{Value, json};

use super::super::links::is_disabled;
use super::super::{Import, Moving, Read, Row};
use super::is_among;

/// Of the providers that do not say what they are for, those by which nobody signs in.
const WITHOUT_SIGN_IN: &str = "kubernetes spiffe jwt-authorization-grant";

pub fn read(realm: &Row<'_>, to: &mut Import) -> Read {
    for row in realm.rows("identityProviders")? {
        let of = format!("identity provider {}", row.required("alias")?);
        let mut provider = Moving::new(&row, of, to);
        if !signs_in(&row)? {
            provider.note(
                "left out: nobody signs in by it there. Where it vouches for clients, register \
                 their keys (private_key_jwt); where it vouches for people, an assertion issuer",
            );
            continue;
        }
        let is_google = row.required("providerId")? == "google";
        provider.set("issuer", is_google.then_some("https://accounts.google.com"));
        provider.copy("identity provider of Keycloak")?;
        let mut is_each_time = false;
        if let Some(config) = row.nested("config")? {
            config.copy("identity provider of Keycloak", &mut provider.ours)?;
            is_each_time = config.text("syncMode")?.as_deref() == Some("FORCE");
        }
        // Where no scope is registered, Keycloak asks for `openid` alone. Of Google it asks for
        // more, as Gatepost does by default.
        if !is_google {
            provider.ours.0.entry("scope").or_insert(json!("openid"));
        }
        let has_issuer = provider.ours.has("issuer");
        let is_trusted = row.flag("trustEmail")?;
        let is_link = row.flag("linkOnly")?;
        if is_link {
            provider.set("enabled", false);
        }
        let notes = [
            (
                is_link,
                "set: enabled false, as nobody may sign in by it there",
            ),
            (
                has_issuer && !is_each_time,
                "syncMode is not FORCE: there most claims were taken over at the first sign-in \
                 alone. Here they are at each sign-in, and replace those of the user: name in its \
                 scope and claims only what shall be",
            ),
            (
                has_issuer && is_trusted,
                "trustEmail: there its addresses were verified, whatever it said. Here \
                 email_verified is what it says, and people sign in by such an address only with \
                 trust_email: set it where you trust its owner with the accounts",
            ),
            (
                has_issuer && !is_trusted,
                "trustEmail is off: there an address from it was not verified. Here applications \
                 read the email_verified that it says: leave email out of its scope where they \
                 must not",
            ),
        ];
        provider.note_each(&notes);
        provider.into_provider();
    }
    Ok(())
}

const UNLINKED: &str = "\
    so many people have no link to it. There a sign-in with the address of an account led to that \
    account. Here it makes a second one: set provision false, and link them by \
    `gatepost user link`";

/// Notes the providers that are in use, and how many people have no link to each.
pub fn note_unlinked(to: &mut Import) {
    let mut unlinked = Vec::new();
    let providers = to.imported("identity_providers");
    for provider in providers.filter(|provider| !is_disabled(provider)) {
        let issuer = provider["issuer"].to_string();
        let has_link = |user: &Value| user["identities"].to_string().contains(&issuer);
        let people = to.imported("users").filter(|user| !has_link(user)).count();
        if people > 0 {
            let name = provider["name"].as_str().unwrap_or_default();
            unlinked.push(format!("identity provider {name}: {people}"));
        }
    }
    for of in unlinked {
        to.note(&of, UNLINKED);
    }
}

/// Whether people sign in by it. Some vouch for clients alone.
pub fn signs_in(row: &Row<'_>) -> Read<bool> {
    let types = row.texts("types", "")?;
    if types.is_empty() {
        let kind = row.text("providerId")?.unwrap_or_default();
        return Ok(!is_among(WITHOUT_SIGN_IN, &kind));
    }
    Ok(types.iter().any(|kind| kind == "USER_AUTHENTICATION"))
}
