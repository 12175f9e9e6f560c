//! The catalogue: everything that is registered and is neither a client nor a user.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::client::SigningAlgorithm;
use super::identifiers::TenantName;
use super::identity_provider::IdentityProvider;
use super::named::named;
use super::scope::{LocalizedText, ScopeKind, ScopeSet};

#[derive(Clone, Debug)]
pub struct RegisteredScope {
    pub name: String,
    pub kind: ScopeKind,
    /// The registered `display_name`, or the name where there is none.
    pub display_name: LocalizedText,
    pub description: LocalizedText,
    /// Names of the user claims that it releases, as clients receive them.
    pub claims: Vec<String>,
    /// Claims that are stored under another name: from the name in tokens to the stored name.
    pub renamed: BTreeMap<String, String>,
    /// Cannot be unticked on the consent page.
    pub required: bool,
    /// Shown as sensitive on the consent page.
    pub emphasize: bool,
    pub show_in_discovery: bool,
    /// The APIs behind a resource scope: audiences of its tokens.
    pub resources: Vec<String>,
    /// Whether it exists without being registered.
    pub is_built_in: bool,
}

#[derive(Clone, Debug)]
pub struct RegisteredResource {
    /// Its audience value, and its name at introspection.
    pub name: String,
    pub display_name: String,
    /// Names of the user claims in access tokens for it, as APIs receive them.
    pub claims: Vec<String>,
    pub renamed: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct RegisteredTenant {
    pub name: String,
    pub display_name: String,
}

/// A role, as administrators see it. Roles that are not registered work as well: clients ask for
/// them, and people have them.
#[derive(Clone, Debug)]
pub struct RegisteredRole {
    pub name: String,
    /// The registered `display_name`, or the name where there is none.
    pub display_name: LocalizedText,
    pub description: LocalizedText,
    /// Whether administrators give it, besides those of `GATEPOST_ADMIN_ROLES`.
    pub given_by_administrators: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    pub scopes: BTreeMap<String, RegisteredScope>,
    pub resources: BTreeMap<String, RegisteredResource>,
    pub tenants: BTreeMap<String, RegisteredTenant>,
    pub roles: BTreeMap<String, RegisteredRole>,
    /// Identity providers by name, without `local`.
    pub identity_providers: BTreeMap<String, IdentityProvider>,
    /// Providers that no enabled client allows. Nobody can sign in with one of these.
    pub idle_identity_providers: BTreeSet<String>,
    pub extension_grants: BTreeMap<String, SqlGrant>,
    pub assertion_issuers: BTreeMap<String, AssertionIssuer>,
    /// Whether any client may use the PKCE method `plain`. Discovery lists the method then.
    pub plain_pkce: bool,
    /// Whether any enabled client describes itself in a metadata document.
    pub metadata_documents: bool,
}

impl Catalogue {
    pub fn kind(&self, scope: &str) -> Option<ScopeKind> {
        self.scopes.get(scope).map(|registered| registered.kind)
    }

    /// What a tenant is called.
    pub fn tenant_name<'a>(&'a self, name: &'a str) -> &'a str {
        let registered = self.tenants.get(name);
        registered.map_or(name, |tenant| &tenant.display_name)
    }
}

/// A grant type answered by a SQL function.
#[derive(Clone, Debug)]
pub struct SqlGrant {
    pub name: String,
    pub schema: String,
    pub function: String,
}

#[derive(Clone, Debug)]
pub struct AssertionIssuer {
    pub issuer: String,
    pub jwks: Option<Value>,
    pub jwks_uri: Option<String>,
    pub algs: BTreeSet<SigningAlgorithm>,
    pub clients: BTreeSet<String>,
    /// `scope`: the most such a grant can carry; absent means all of the client's.
    pub scope: Option<ScopeSet>,
    pub tenant: Option<TenantName>,
    /// `subject`: how `sub` finds a user.
    pub subject: AssertionSubject,
    /// Whether it sends ID-JAGs, and nothing else.
    pub id_jag: bool,
    /// `acr_map`: from an `acr` there to one here.
    pub acr_map: BTreeMap<String, String>,
}

named! {
    pub enum AssertionSubject {
        /// Among the identities linked to that issuer.
        Link = "link",
        Username = "username",
    }
}
