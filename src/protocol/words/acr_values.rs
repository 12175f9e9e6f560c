//! `acr_values`: what a client wishes about the sign-in. Beside authentication context classes it
//! takes `idp:NAME` (sign in with this provider) and `tenant:NAME` (within this tenant). Every
//! grant settles the tenant by the rule in this file.

use std::collections::BTreeSet;

use super::catalogue::Catalogue;
use super::client::Client;
use super::identifiers::TenantName;
use super::place::SignInPlace;
use super::reason::Reason;
use super::session::LOCAL;
use super::strength::Strength;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcrValues {
    /// The provider to sign in with: known, enabled, allowed to the client, and not of another
    /// tenant.
    pub identity_provider: Option<String>,
    /// A provider that was asked for and is not usable. It is ignored, and the log says so.
    pub dropped_identity_provider: Option<String>,
    /// The tenant whose users may sign in. `None`: users without a tenant.
    pub tenant: Option<TenantName>,
    pub others: Vec<String>,
}

impl AcrValues {
    /// Reads the parameter. An unknown tenant is an error (`UnknownTenant`). All other values are
    /// wishes, and are ignored where they cannot be met.
    pub fn parse(
        text: Option<&str>,
        client: &Client,
        catalogue: &Catalogue,
    ) -> Result<AcrValues, Reason> {
        let words = text.unwrap_or_default().split(' ');
        let tenants = words
            .clone()
            .filter_map(|word| word.strip_prefix("tenant:"));
        let tenant = settle_tenant(tenants, client, catalogue)?;
        let place = SignInPlace {
            client: Some(client),
            tenant: tenant.as_ref(),
            catalogue,
        };
        let mut identity_provider = None;
        let mut dropped_identity_provider = None;
        let mut others = Vec::new();
        for word in words {
            if let Some(name) = word.strip_prefix("idp:") {
                let first = if place.allows(name) {
                    &mut identity_provider
                } else {
                    &mut dropped_identity_provider
                };
                first.get_or_insert_with(|| name.to_owned());
            } else if !word.is_empty() && !word.starts_with("tenant:") {
                others.push(word.to_owned());
            }
        }
        Ok(AcrValues {
            identity_provider,
            dropped_identity_provider,
            tenant,
            others,
        })
    }
}

/// The tenant of a request with a password in it (the password grant). It may name no other
/// provider than `local`.
pub fn tenant_for_password(
    text: Option<&str>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Option<TenantName>, Reason> {
    let mut providers = text
        .unwrap_or_default()
        .split(' ')
        .filter_map(|word| word.strip_prefix("idp:"));
    if providers.any(|name| name != LOCAL) {
        return Err(Reason::IdentityProviderWithPassword);
    }
    Ok(AcrValues::parse(text, client, catalogue)?.tenant)
}

/// The named tenant, if it is registered and the client may use it. Without a name: the client's
/// only tenant, or none where the client has several or none.
pub fn settle_tenant<'a>(
    names: impl Iterator<Item = &'a str>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Option<TenantName>, Reason> {
    let named = named_tenant(names, catalogue, |tenant| client.allows_tenant(tenant))?;
    Ok(named.or_else(|| client.only_tenant().cloned()))
}

/// The one tenant in `names`. Several names, an unknown one and one that is not allowed are
/// `UnknownTenant`. Where no tenant is registered, names are ignored.
pub fn named_tenant<'a>(
    names: impl Iterator<Item = &'a str>,
    catalogue: &Catalogue,
    is_allowed: impl Fn(&TenantName) -> bool,
) -> Result<Option<TenantName>, Reason> {
    let names: Vec<&str> = if catalogue.tenants.is_empty() {
        Vec::new()
    } else {
        names.collect()
    };
    match names.as_slice() {
        [] => Ok(None),
        [name] => {
            let tenant = TenantName::new(*name);
            let usable = catalogue.tenants.contains_key(*name) && is_allowed(&tenant);
            if usable {
                Ok(Some(tenant))
            } else {
                Err(Reason::UnknownTenant)
            }
        }
        [_, _, ..] => Err(Reason::UnknownTenant),
    }
}

/// Whether a grant that was given within this tenant (or without one) would still be given today.
pub fn tenant_stands(tenant: Option<&TenantName>, client: &Client, catalogue: &Catalogue) -> bool {
    match tenant {
        Some(tenant) => {
            catalogue.tenants.contains_key(tenant.as_str()) && client.allows_tenant(tenant)
        }
        None => client.only_tenant().is_none(),
    }
}

/// Every `acr` that a sign-in can have. Discovery lists them, and an essential `acr` may name only
/// these.
pub fn supported(catalogue: &Catalogue) -> BTreeSet<&str> {
    let enabled = catalogue
        .identity_providers
        .values()
        .filter(|provider| provider.enabled);
    let ours = Strength::ALL.map(Strength::as_str);
    enabled
        .flat_map(|provider| provider.acr_map.values().map(String::as_str))
        .chain(ours)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::authorize::authorize_request::fixtures::{catalogue_with_tenants, client};

    fn acme() -> Option<TenantName> {
        Some(TenantName::new("acme"))
    }

    fn of_tenants(names: Option<&[&str]>) -> Client {
        let names = names.map(|names| names.iter().map(|name| TenantName::new(*name)));
        Client {
            tenants: names.map(Iterator::collect),
            ..client()
        }
    }

    #[test]
    fn each_word_is_what_its_beginning_says() {
        let text = "idp:former tenant:acme urn:x idp:corp idp:local 2";
        let parsed = AcrValues::parse(Some(text), &client(), &catalogue_with_tenants()).unwrap();
        assert_eq!(
            parsed,
            AcrValues {
                identity_provider: Some(String::from("corp")),
                dropped_identity_provider: Some(String::from("former")),
                tenant: acme(),
                others: vec![String::from("urn:x"), String::from("2")],
            }
        );
    }

    #[test]
    fn the_tenant_is_the_one_that_is_named_or_the_only_one() {
        let catalogue = catalogue_with_tenants();
        let (any, one) = (of_tenants(None), of_tenants(Some(&["acme"])));
        let two = of_tenants(Some(&["acme", "globex"]));
        for (client, names, tenant) in [
            (&any, &[][..], Ok(None)),
            (&any, &["acme"], Ok(acme())),
            (&any, &["nobody"], Err(Reason::UnknownTenant)),
            (&any, &["acme", "acme"], Err(Reason::UnknownTenant)),
            (&one, &[], Ok(acme())),
            (&one, &["globex"], Err(Reason::UnknownTenant)),
            (&two, &[], Ok(None)),
            (&two, &["acme"], Ok(acme())),
        ] {
            let settled = settle_tenant(names.iter().copied(), client, &catalogue);
            assert_eq!(settled, tenant, "{names:?}");
        }
        let globex = Some(TenantName::new("globex"));
        let gone = Some(TenantName::new("gone"));
        for (client, tenant, stands) in [
            (&any, None, true),
            (&any, globex.clone(), true),
            (&any, gone, false),
            (&one, None, false),
            (&one, acme(), true),
            (&one, globex, false),
            (&two, None, true),
        ] {
            let found = tenant_stands(tenant.as_ref(), client, &catalogue);
            assert_eq!(found, stands, "{tenant:?}");
        }
    }

    #[test]
    fn a_password_is_for_no_provider_elsewhere() {
        let catalogue = catalogue_with_tenants();
        let refused = Err(Reason::IdentityProviderWithPassword);
        for (text, tenant) in [
            (Some("tenant:acme idp:local"), Ok(acme())),
            (None, Ok(None)),
            (Some("tenant:acme idp:corp"), refused),
        ] {
            let found = tenant_for_password(text, &client(), &catalogue);
            assert_eq!(found, tenant, "{text:?}");
        }
    }

    #[test]
    fn classes_of_providers_that_are_enabled_are_supported() {
        let mut catalogue = catalogue_with_tenants();
        for (name, acr) in [("corp", "urn:gold"), ("former", "urn:silver")] {
            let provider = catalogue.identity_providers.get_mut(name).unwrap();
            provider.acr_map = [(String::from("there"), acr.to_owned())].into();
        }
        assert_eq!(supported(&catalogue), ["1", "2", "phr", "urn:gold"].into());
    }

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
