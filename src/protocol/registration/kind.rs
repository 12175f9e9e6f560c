//! The kinds of what can be registered, and what everything that deals with registrations must know of each.

use serde_json::Value;

/// What stands in one of the lists of a document. In the order in which `--prune` removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Client,
    IdentityScope,
    ResourceScope,
    Resource,
    Tenant,
    IdentityProvider,
    AssertionIssuer,
    ExtensionGrant,
    User,
}

/// A member that names other objects: its place, and what it names.
type Naming = (&'static str, &'static str);

/// A name that stands in a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention<'v> {
    /// The member, as `token_exchange.from_clients`.
    pub member: &'static str,
    /// Where in it, when it is an array.
    pub index: Option<usize>,
    /// What is meant, as in [`Kind::called`].
    pub called: &'static str,
    pub name: &'v str,
}

impl Kind {
    /// Every kind, in the order of a document's lists.
    pub const ALL: [Kind; 9] = [
        Kind::Tenant,
        Kind::IdentityScope,
        Kind::ResourceScope,
        Kind::Resource,
        Kind::IdentityProvider,
        Kind::AssertionIssuer,
        Kind::ExtensionGrant,
        Kind::Client,
        Kind::User,
    ];

    /// The word for one, its list, the member that names it, what others name it as, and whom it names.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, &'static str, &'static str, &'static str, &'static [Naming]) {
        match self {
            Kind::Tenant => ("tenant", "tenants", "name", "tenant", &[]),
            Kind::IdentityScope => ("identity_scope", "identity_scopes", "name", "scope", &[]),
            Kind::ResourceScope => ("resource_scope", "resource_scopes", "name", "scope", &[("resources", "resource")]),
            Kind::Resource => ("resource", "resources", "name", "resource", &[]),
            Kind::IdentityProvider => (
                "identity_provider", "identity_providers", "name", "identity provider", &[("tenant", "tenant")],
            ),
            Kind::AssertionIssuer => (
                "assertion_issuer", "assertion_issuers", "issuer", "assertion issuer",
                &[("tenant", "tenant"), ("scope", "scope"), ("clients", "client")],
            ),
            Kind::ExtensionGrant => ("extension_grant", "extension_grants", "name", "grant type", &[]),
            Kind::Client => (
                "client", "clients", "client_id", "client",
                &[
                    ("scope", "scope"), ("tenants", "tenant"), ("identity_providers", "identity provider"),
                    ("grant_types", "grant type"), ("token_exchange.from_clients", "client"),
                    ("token_exchange.as_resources", "resource"), ("token_exchange.to_resources", "resource"),
                ],
            ),
            Kind::User => ("user", "users", "username", "user", &[("tenant", "tenant")]),
        }
    }

    /// One of it, as people and the database read it.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub const fn list(self) -> &'static str {
        self.row().1
    }

    pub const fn name_key(self) -> &'static str {
        self.row().2
    }

    /// What others name it as: both kinds of scopes are scopes.
    pub const fn called(self) -> &'static str {
        self.row().3
    }

    /// Everything that a registration of this kind names. Members that are not what they should be name nothing.
    pub fn mentions(self, document: &Value) -> Vec<Mention<'_>> {
        let mut found = Vec::new();
        for (member, called) in self.row().4.iter().copied() {
            match member.split('.').try_fold(document, |value, key| value.get(key)) {
                Some(Value::String(text)) => {
                    let names = text.split(' ').filter(|name| !name.is_empty());
                    found.extend(names.map(|name| Mention { member, index: None, called, name }));
                }
                Some(Value::Array(items)) => {
                    let names = items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_str()?)));
                    found.extend(names.map(|(index, name)| Mention { member, index: Some(index), called, name }));
                }
                Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
            }
        }
        found
    }
}
