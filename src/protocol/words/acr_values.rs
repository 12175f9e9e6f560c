//! `acr_values`: wishes about the sign-in. Besides plain values it carries `idp:` (which provider) and `tenant:` (within
//! which tenant). The rule that settles the tenant is the same for every grant, so it lives here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::identifiers::TenantName;
use super::named::named;
use super::reason::Reason;
use super::scope::Catalogue;
use super::session::LOCAL;
use crate::protocol::upstream::choices::Place;

named! {
    /// What a sign-in here is worth, the weakest first (OpenID Connect Core §2, `acr`).
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Strength {
        /// One factor.
        SignedIn = "1",
        TwoFactors = "2",
        /// A passkey that verified its user (OpenID EAP ACR Values §4).
        PhishingResistant = "phr",
    }
}

impl Strength {
    /// What an `acr` ranks as: a name that is none of ours is an identity provider's, and ranks as one factor.
    pub fn of(acr: &str) -> Strength {
        Strength::from_name(acr).unwrap_or(Strength::SignedIn)
    }
}

/// Whether a sign-in of `acr` is as good as `wanted`: that very one, or a weaker one of ours.
pub fn reaches(acr: &str, wanted: &str) -> bool {
    acr == wanted || Strength::from_name(wanted).is_some_and(|wanted| Strength::of(acr) >= wanted)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcrValues {
    /// The provider to sign in with: known, enabled, allowed to the client, and not of another tenant.
    pub identity_provider: Option<String>,
    /// A provider that was asked for and is none of that: for the log.
    pub dropped_identity_provider: Option<String>,
    /// The tenant to sign in within; without one, users without a tenant.
    pub tenant: Option<TenantName>,
    pub others: Vec<String>,
}

impl AcrValues {
    /// Reads the parameter. Only the tenant can be wrong (`UnknownTenant`); everything else is a wish.
    pub fn parse(text: Option<&str>, client: &Client, catalogue: &Catalogue) -> Result<AcrValues, Reason> {
        let words: Vec<&str> = text.unwrap_or_default().split(' ').filter(|word| !word.is_empty()).collect();
        let providers: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("idp:")).collect();
        let tenants = words.iter().filter_map(|word| word.strip_prefix("tenant:"));
        let tenant = settle_tenant(tenants, client, catalogue)?;
        let place = Place { client: Some(client), tenant: tenant.as_ref(), catalogue };
        let usable = |name: &&&str| place.allows(name);
        let is_plain = |word: &&&str| !word.starts_with("idp:") && !word.starts_with("tenant:");
        Ok(AcrValues {
            identity_provider: providers.iter().find(usable).map(|name| (*name).to_owned()),
            dropped_identity_provider: providers.iter().find(|name| !usable(name)).map(|name| (*name).to_owned()),
            others: words.iter().filter(is_plain).map(|word| (*word).to_owned()).collect(),
            tenant,
        })
    }
}

/// The tenant of a request that brings a password along: of `idp:` it may name `local` alone.
pub fn tenant_for_password(
    text: Option<&str>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Option<TenantName>, Reason> {
    let mut providers = text.unwrap_or_default().split(' ').filter_map(|word| word.strip_prefix("idp:"));
    if providers.any(|name| name != LOCAL) {
        return Err(Reason::IdentityProviderWithPassword);
    }
    Ok(AcrValues::parse(text, client, catalogue)?.tenant)
}

/// The tenant named, if it is registered and the client's; without a name the client's only one, else none.
pub fn settle_tenant<'a>(
    names: impl Iterator<Item = &'a str>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Option<TenantName>, Reason> {
    let named = named_tenant(names, catalogue, |tenant| client.allows_tenant(tenant))?;
    Ok(named.or_else(|| only_tenant(client).cloned()))
}

/// More than one name, an unknown or a disallowed one is `UnknownTenant`; where no tenant is registered, names are
/// ignored.
pub fn named_tenant<'a>(
    names: impl Iterator<Item = &'a str>,
    catalogue: &Catalogue,
    is_allowed: impl Fn(&TenantName) -> bool,
) -> Result<Option<TenantName>, Reason> {
    let names: Vec<&str> = if catalogue.tenants.is_empty() { Vec::new() } else { names.collect() };
    match names.as_slice() {
        [] => Ok(None),
        [name] => {
            let tenant = TenantName::new(*name);
            let usable = catalogue.tenants.contains_key(*name) && is_allowed(&tenant);
            if usable { Ok(Some(tenant)) } else { Err(Reason::UnknownTenant) }
        }
        [_, _, ..] => Err(Reason::UnknownTenant),
    }
}

/// Whether what was given within that tenant, or without one, would still be given.
pub fn tenant_stands(tenant: Option<&TenantName>, client: &Client, catalogue: &Catalogue) -> bool {
    match tenant {
        Some(tenant) => catalogue.tenants.contains_key(tenant.as_str()) && client.allows_tenant(tenant),
        None => only_tenant(client).is_none(),
    }
}

fn only_tenant(client: &Client) -> Option<&TenantName> {
    client.tenants.as_ref().filter(|tenants| tenants.len() == 1)?.first()
}

/// Every `acr` that a sign-in can end with: what discovery lists, and what an essential `acr` can ask for.
pub fn supported(catalogue: &Catalogue) -> BTreeSet<&str> {
    let enabled = catalogue.identity_providers.values().filter(|provider| provider.enabled);
    let ours = Strength::ALL.map(Strength::as_str);
    enabled.flat_map(|provider| provider.acr_map.values().map(String::as_str)).chain(ours).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::authorize::authorize_request::fixtures::{catalogue_with_tenants, client};

    proptest! {
        #[test]
        fn only_registered_names_come_through(text in "((idp:|tenant:)?(corp|local|former|acme|globex|x)? ?){0,6}") {
            if let Ok(parsed) = AcrValues::parse(Some(&text), &client(), &catalogue_with_tenants()) {
                prop_assert!(parsed.identity_provider.is_none_or(|name| name == "corp" || name == "local"));
                prop_assert!(parsed.tenant.is_none_or(|name| ["acme", "globex"].contains(&name.as_str())));
                prop_assert!(parsed.others.iter().all(|word| !word.starts_with("idp:") && !word.starts_with("tenant:") && !word.is_empty()));
            }
        }

    }
}
