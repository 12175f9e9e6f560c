//! The kinds of objects that are registered, and which other objects each names.

use serde_json::Value;

/// A kind of object: one list of a document has all of a kind. The order is that in which `--prune`
/// removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A member that names other objects: its place, and what it names.
type Naming = (&'static str, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention<'v> {
    /// The member, as `token_exchange.from_clients`.
    pub member: &'static str,
    /// The position in it, when it is an array.
    pub index: Option<usize>,
    /// What is meant, as in [`ObjectKind::called`].
    pub called: &'static str,
    pub name: &'v str,
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

    /// The word for one object, its list, the member with its name, what others call it, and what
    /// it names.
    #[rustfmt::skip]
    const fn row(self)
        -> (&'static str, &'static str, &'static str, &'static str, &'static [Naming]) {
        match self {
            ObjectKind::Tenant => ("tenant", "tenants", "name", "tenant", &[]),
            ObjectKind::Role => ("role", "roles", "name", "role", &[]),
            ObjectKind::IdentityScope =>
                ("identity_scope", "identity_scopes", "name", "scope", &[]),
            ObjectKind::ResourceScope => (
                "resource_scope", "resource_scopes", "name", "scope",
                &[("resources", "resource")],
            ),
            ObjectKind::Resource => ("resource", "resources", "name", "resource", &[]),
            ObjectKind::IdentityProvider => (
                "identity_provider", "identity_providers", "name", "identity provider",
                &[("tenant", "tenant")],
            ),
            ObjectKind::AssertionIssuer => (
                "assertion_issuer", "assertion_issuers", "issuer", "assertion issuer",
                &[("tenant", "tenant"), ("scope", "scope"), ("clients", "client")],
            ),
            ObjectKind::ExtensionGrant =>
                ("extension_grant", "extension_grants", "name", "grant type", &[]),
            ObjectKind::Client => (
                "client", "clients", "client_id", "client",
                &[
                    ("scope", "scope"), ("tenants", "tenant"),
                    ("identity_providers", "identity provider"), ("grant_types", "grant type"),
                    ("token_exchange.from_clients", "client"),
                    ("token_exchange.as_resources", "resource"),
                    ("token_exchange.to_resources", "resource"),
                ],
            ),
            ObjectKind::User => ("user", "users", "username", "user", &[("tenant", "tenant")]),
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

    /// Everything that a registration of this kind names. Members that are not what they should be
    /// name nothing.
    pub fn mentions(self, document: &Value) -> Vec<Mention<'_>> {
        let mut found = Vec::new();
        for (member, called) in self.row().4.iter().copied() {
            let mut keys = member.split('.');
            let named = keys.try_fold(document, |value, key| value.get(key));
            for (index, name) in named.map(names_in).unwrap_or_default() {
                found.push(Mention {
                    member,
                    index,
                    called,
                    name,
                });
            }
        }
        found
    }
}

/// The words of a text, or the texts of an array, with their positions in it.
fn names_in(member: &Value) -> Vec<(Option<usize>, &str)> {
    let mut names = Vec::new();
    match member {
        Value::String(text) => {
            let words = text.split(' ').filter(|name| !name.is_empty());
            names.extend(words.map(|name| (None, name)));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                names.extend(item.as_str().map(|name| (Some(index), name)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
    names
}
