//! Which registrations name which others.

use serde_json::Value;

use super::super::catalogue_kind::CatalogueKind;

use super::super::super::named::named;

named! {
    /// What a registration can name.
    #[derive(PartialOrd, Ord)]
    pub enum Referent {
        Scope = "scope",
        Resource = "resource",
        Tenant = "tenant",
        IdentityProvider = "identity provider",
        ExtensionGrant = "grant type",
        Client = "client",
    }
}

impl Referent {
    /// What an entry of that kind can be named as; nothing names an assertion issuer.
    pub fn of_kind(kind: CatalogueKind) -> Option<Referent> {
        match kind {
            CatalogueKind::IdentityScope | CatalogueKind::ResourceScope => Some(Referent::Scope),
            CatalogueKind::Resource => Some(Referent::Resource),
            CatalogueKind::Tenant => Some(Referent::Tenant),
            CatalogueKind::IdentityProvider => Some(Referent::IdentityProvider),
            CatalogueKind::ExtensionGrant => Some(Referent::ExtensionGrant),
            CatalogueKind::AssertionIssuer => None,
        }
    }
}

/// What a registration names: of that kind, or a client's where there is none.
pub fn mentions(kind: Option<CatalogueKind>, document: &Value) -> Vec<(Referent, String)> {
    let places: &[(&str, Referent)] = match kind {
        Some(CatalogueKind::ResourceScope) => &[("/resources", Referent::Resource)],
        Some(CatalogueKind::IdentityProvider) => &[("/tenant", Referent::Tenant)],
        Some(CatalogueKind::AssertionIssuer) => {
            &[("/tenant", Referent::Tenant), ("/clients", Referent::Client), ("/scope", Referent::Scope)]
        }
        Some(
            CatalogueKind::IdentityScope
            | CatalogueKind::Resource
            | CatalogueKind::Tenant
            | CatalogueKind::ExtensionGrant,
        ) => &[],
        None => &[
            ("/scope", Referent::Scope),
            ("/tenants", Referent::Tenant),
            ("/identity_providers", Referent::IdentityProvider),
            ("/grant_types", Referent::ExtensionGrant),
            ("/token_exchange/from_clients", Referent::Client),
            ("/token_exchange/to_resources", Referent::Resource),
        ],
    };
    places.iter().flat_map(|(place, referent)| names(document.pointer(place), *referent)).collect()
}

fn names(value: Option<&Value>, referent: Referent) -> Vec<(Referent, String)> {
    let texts: Vec<&str> = match value {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    texts.into_iter().map(|text| (referent, text.to_owned())).collect()
}
