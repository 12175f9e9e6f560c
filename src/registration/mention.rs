//! Which other objects each registered object names.

use serde_json::Value;

use gatepost_protocol::registration::ObjectKind;

/// A member that names other objects: its place, and what it names.
type Naming = (&'static str, &'static str);

pub struct Mention<'v> {
    /// The member, as `token_exchange.from_clients`.
    pub member: &'static str,
    /// The position in it, when it is an array.
    pub index: Option<usize>,
    /// What is meant, as in [`ObjectKind::called`].
    pub called: &'static str,
    pub name: &'v str,
}

/// The members of a kind that name others.
const fn namings(kind: ObjectKind) -> &'static [Naming] {
    match kind {
        ObjectKind::Tenant
        | ObjectKind::Role
        | ObjectKind::IdentityScope
        | ObjectKind::Resource
        | ObjectKind::ExtensionGrant => &[],
        ObjectKind::ResourceScope => &[("resources", "resource")],
        ObjectKind::IdentityProvider | ObjectKind::User => &[("tenant", "tenant")],
        ObjectKind::AssertionIssuer => &[
            ("tenant", "tenant"),
            ("scope", "scope"),
            ("clients", "client"),
        ],
        ObjectKind::Client => &[
            ("scope", "scope"),
            ("tenants", "tenant"),
            ("identity_providers", "identity provider"),
            ("grant_types", "grant type"),
            ("token_exchange.from_clients", "client"),
            ("token_exchange.as_resources", "resource"),
            ("token_exchange.to_resources", "resource"),
        ],
    }
}

/// Everything that a registration of this kind names. Members that are not what they should be
/// name nothing.
pub fn mentions(kind: ObjectKind, document: &Value) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    for (member, called) in namings(kind).iter().copied() {
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
