//! The kinds of objects that are registered.

/// A kind of object: one list of a document has all of a kind. The order is that in which `--prune`
/// removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    Client,
    IdentityScope,
    ResourceScope,
    Resource,
    Tenant,
    IdentityProvider,
    AssertionIssuer,
    ExtensionGrant,
    Role,
    User,
}

impl ObjectKind {
    /// Every kind, in the order of a document's lists.
    pub const ALL: [ObjectKind; 10] = [
        ObjectKind::Tenant,
        ObjectKind::Role,
        ObjectKind::IdentityScope,
        ObjectKind::ResourceScope,
        ObjectKind::Resource,
        ObjectKind::IdentityProvider,
        ObjectKind::AssertionIssuer,
        ObjectKind::ExtensionGrant,
        ObjectKind::Client,
        ObjectKind::User,
    ];

    /// The word for one object, its list, the member with its name, and what others call it.
    const fn row(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            ObjectKind::Tenant => ("tenant", "tenants", "name", "tenant"),
            ObjectKind::Role => ("role", "roles", "name", "role"),
            ObjectKind::IdentityScope => ("identity_scope", "identity_scopes", "name", "scope"),
            ObjectKind::ResourceScope => ("resource_scope", "resource_scopes", "name", "scope"),
            ObjectKind::Resource => ("resource", "resources", "name", "resource"),
            ObjectKind::IdentityProvider => (
                "identity_provider",
                "identity_providers",
                "name",
                "identity provider",
            ),
            ObjectKind::AssertionIssuer => (
                "assertion_issuer",
                "assertion_issuers",
                "issuer",
                "assertion issuer",
            ),
            ObjectKind::ExtensionGrant => {
                ("extension_grant", "extension_grants", "name", "grant type")
            }
            ObjectKind::Client => ("client", "clients", "client_id", "client"),
            ObjectKind::User => ("user", "users", "username", "user"),
        }
    }

    /// The word for one object, for people and the database.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn list(self) -> &'static str {
        self.row().1
    }

    pub const fn name_key(self) -> &'static str {
        self.row().2
    }

    /// What others call it. Both kinds of scopes are called scopes.
    pub const fn called(self) -> &'static str {
        self.row().3
    }
}
