//! `acr_values`: wishes about the sign-in. Besides plain values it carries `idp:` (which provider) and `tenant:` (within
//! which tenant). The rule that settles the tenant is the same for every grant, so it lives here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::client::Client;
use super::identifiers::TenantName;
use super::reason::Reason;
use super::scope::Catalogue;
use super::session::LOCAL;

/// What every completed sign-in here is worth (OpenID Connect Core §2, `acr`).
pub const SIGNED_IN: &str = "1";

/// Wishes about the sign-in, judged against what is registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcrValues {
    /// The provider to sign in with: known, enabled and allowed to the client.
    pub identity_provider: Option<String>,
    /// A provider that was asked for and is none of that: for the log.
    pub dropped_identity_provider: Option<String>,
    /// The tenant to sign in within; without one, users without a tenant.
    pub tenant: Option<TenantName>,
    /// The remaining values, in order of preference.
    pub others: Vec<String>,
}

impl AcrValues {
    /// Reads the parameter. Only the tenant can be wrong (`UnknownTenant`); everything else is a wish.
    pub fn parse(text: Option<&str>, client: &Client, catalogue: &Catalogue) -> Result<AcrValues, Reason> {
        let words: Vec<&str> = text.unwrap_or_default().split(' ').filter(|word| !word.is_empty()).collect();
        let providers: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("idp:")).collect();
        let usable = |name: &&&str| is_usable_identity_provider(name, client, catalogue);
        let is_plain = |word: &&&str| !word.starts_with("idp:") && !word.starts_with("tenant:");
        Ok(AcrValues {
            identity_provider: providers.iter().find(usable).map(|name| (*name).to_owned()),
            dropped_identity_provider: providers.iter().find(|name| !usable(name)).map(|name| (*name).to_owned()),
            tenant: settle_tenant(words.iter().filter_map(|word| word.strip_prefix("tenant:")), client, catalogue)?,
            others: words.iter().filter(is_plain).map(|word| (*word).to_owned()).collect(),
        })
    }
}

/// The tenant of a sign-in: the one named, if it is registered and the client allows it; without a name the client's only one,
/// else none. More than one name, an unknown or a disallowed one is `UnknownTenant`; where no tenant is registered at all,
/// names are ignored.
pub fn settle_tenant<'a>(
    names: impl Iterator<Item = &'a str>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Option<TenantName>, Reason> {
    let names: Vec<&str> = if catalogue.tenants.is_empty() { Vec::new() } else { names.collect() };
    match names.as_slice() {
        [] => Ok(only_tenant(client)),
        [name] => {
            let tenant = TenantName::new(*name);
            let allowed = catalogue.tenants.contains_key(*name) && client.allows_tenant(&tenant);
            if allowed { Ok(Some(tenant)) } else { Err(Reason::UnknownTenant) }
        }
        [_, _, ..] => Err(Reason::UnknownTenant),
    }
}

fn only_tenant(client: &Client) -> Option<TenantName> {
    let tenants = client.tenants.as_ref().filter(|tenants| tenants.len() == 1)?;
    tenants.first().cloned()
}

/// Whether users may be sent to that provider for this client: registered, enabled, allowed. `local` is always registered.
pub fn is_usable_identity_provider(name: &str, client: &Client, catalogue: &Catalogue) -> bool {
    let enabled = |provider: &Value| provider.get("enabled").and_then(Value::as_bool).unwrap_or(true);
    let known = name == LOCAL || catalogue.identity_providers.get(name).is_some_and(enabled);
    known && client.allows_identity_provider(name)
}

/// Every `acr` that a sign-in can end with: what discovery lists, and what an essential `acr` can ask for.
pub fn supported() -> BTreeSet<&'static str> {
    BTreeSet::from([SIGNED_IN])
}
