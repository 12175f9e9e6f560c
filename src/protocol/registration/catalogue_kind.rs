//! The kinds of what is registered besides clients and users, and where each stands in a document.

/// What an entry of the catalogue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CatalogueKind {
    /// `identity_scopes`
    IdentityScope,
    /// `resource_scopes`
    ResourceScope,
    /// `resources`
    Resource,
    /// `tenants`
    Tenant,
    /// `identity_providers`
    IdentityProvider,
    /// `assertion_issuers`
    AssertionIssuer,
    /// `extension_grants`
    ExtensionGrant,
}

impl CatalogueKind {
    /// Every kind, in the order of a document's lists.
    pub const ALL: [CatalogueKind; 7] = [
        CatalogueKind::Tenant,
        CatalogueKind::IdentityScope,
        CatalogueKind::ResourceScope,
        CatalogueKind::Resource,
        CatalogueKind::IdentityProvider,
        CatalogueKind::AssertionIssuer,
        CatalogueKind::ExtensionGrant,
    ];

    /// One of it, as people and the database read it.
    pub fn as_str(self) -> &'static str {
        match self {
            CatalogueKind::IdentityScope => "identity_scope",
            CatalogueKind::ResourceScope => "resource_scope",
            CatalogueKind::Resource => "resource",
            CatalogueKind::Tenant => "tenant",
            CatalogueKind::IdentityProvider => "identity_provider",
            CatalogueKind::AssertionIssuer => "assertion_issuer",
            CatalogueKind::ExtensionGrant => "extension_grant",
        }
    }

    /// Its list in a document.
    pub fn list(self) -> &'static str {
        match self {
            CatalogueKind::IdentityScope => "identity_scopes",
            CatalogueKind::ResourceScope => "resource_scopes",
            CatalogueKind::Resource => "resources",
            CatalogueKind::Tenant => "tenants",
            CatalogueKind::IdentityProvider => "identity_providers",
            CatalogueKind::AssertionIssuer => "assertion_issuers",
            CatalogueKind::ExtensionGrant => "extension_grants",
        }
    }

    /// The member that names it.
    pub fn name_key(self) -> &'static str {
        match self {
            CatalogueKind::AssertionIssuer => "issuer",
            CatalogueKind::IdentityScope
            | CatalogueKind::ResourceScope
            | CatalogueKind::Resource
            | CatalogueKind::Tenant
            | CatalogueKind::IdentityProvider
            | CatalogueKind::ExtensionGrant => "name",
        }
    }
}
