//! Client scopes, and those of one client alone: they become identity scopes and resource scopes.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::{Import, ImportedObject, Moving, Read, Row};
use super::mappers::{self, Mapped, REALM_ROLES};
use super::{ITS_SCOPES, is_among, is_openid};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::{STANDARD_SCOPES, token_name};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::scope::{OFFLINE_ACCESS, OPENID};

/// Of these, what a client may ask for, and what they gave.
const WITHOUT_CLAIMS: [(&str, &str); 6] = [
    ("acr", "acr, which is in every ID token here"),
    (
        "basic",
        "sub and auth_time, which are in every ID token here",
    ),
    ("microprofile-jwt", "upn and groups, the roles"),
    ("organization", "organization"),
    ("service_account", "clientHost and clientAddress"),
    ("web-origins", "allowed-origins in access tokens"),
];

/// Client scopes: those about users become identity scopes; those that name an API as an audience,
/// or say nothing, become resource scopes. The APIs become resources.
pub fn read(realm: &Row<'_>, to: &mut Import) -> Read {
    let mut own = Vec::new();
    // First those that say which claim an attribute is.
    for row in realm.rows("clientScopes")? {
        let name = row.required("name")?;
        if !is_openid(&row)? {
            continue;
        }
        if is_among(ITS_SCOPES, &name) || to.scopes.contains(&name) {
            mappers::read_built_in(&row, &name, to)?;
        } else {
            own.push((name, row));
        }
    }
    for (name, row) in own {
        let mut scope = Moving::new(&row, format!("scope {name}"), to);
        match token_name(&name) {
            Ok(()) => scope.into_scope(name)?,
            Err(rule) => scope.note(format!("left out: a name of a scope {rule}")),
        }
    }
    Ok(())
}

const NOT_IN_ACCESS_TOKENS: &str = "\
    its claims are in UserInfo and ID tokens, and not in access tokens as there: an API that reads \
    them needs a resource scope with these claims";

/// What is said where a scope here gives its claims in one kind of token alone.
pub struct PlaceNotes {
    /// Of claims that were in both kinds.
    in_one: &'static str,
    /// Of claims that were in the other kind alone.
    in_none: &'static str,
}

pub const OF_PEOPLE: PlaceNotes = PlaceNotes {
    in_one: NOT_IN_ACCESS_TOKENS,
    in_none: "in no token here, as access tokens alone had them there, and it is a scope about \
              people. Register a resource scope with them",
};
const OF_API: PlaceNotes = PlaceNotes {
    in_one: "its claims are in access tokens alone here, as it is a scope of an API",
    in_none: "in no token here, as access tokens had none of them there, and it is a scope of an \
              API. Register an identity scope with them",
};

impl Moving<'_> {
    fn into_scope(mut self, name: String) -> Read {
        self.set("name", name.as_str());
        self.to.scopes.insert(name.clone());
        let mapped = self.mapped()?;
        if mapped.identity.has(REALM_ROLES) || mapped.access.has(REALM_ROLES) {
            self.to.role_scopes.insert(name);
        }
        self.set("description", self.text("description")?);
        if mapped.audiences.is_empty() && !mapped.identity.0.is_empty() {
            self.note_places(&mapped.access, &mapped.identity, &OF_PEOPLE);
            self.set("claims", mapped.identity.0);
            self.push(ObjectKind::IdentityScope);
        } else {
            self.note_places(&mapped.identity, &mapped.access, &OF_API);
            self.set("claims", mapped.access.0);
            api_scope(&self.of, self.ours, mapped.audiences, self.to);
        }
        Ok(())
    }

    /// Notes the claims that the scope gave where it does not give them here.
    pub fn note_places(
        &mut self,
        lost: &ImportedObject,
        given: &ImportedObject,
        notes: &PlaceNotes,
    ) {
        let mut in_none = Vec::new();
        for claim in lost.0.values() {
            if given.0.values().any(|other| other == claim) {
                self.note(notes.in_one);
            } else {
                in_none.extend(claim.as_str());
            }
        }
        if !in_none.is_empty() {
            self.note(format!("{}: {}", in_none.join(", "), notes.in_none));
        }
    }

    /// The scopes of a client, and those among them that it gets without asking. What its own
    /// mappers give becomes scopes that nobody else has.
    pub fn scopes(&mut self, client_id: &str, mapped: Mapped) -> Read<ClientScopes> {
        let defaults = self.texts("defaultClientScopes", "")?;
        let mut without_asking = BTreeSet::from_iter(defaults);
        let mut all = without_asking.clone();
        all.extend(self.texts("optionalClientScopes", "")?);
        note_its_own(&all, self.to);
        without_asking.retain(|name| !WITHOUT_CLAIMS.iter().any(|(other, _)| other == name));
        let own = add_own(client_id, mapped, self.to);
        without_asking.extend(own.iter().cloned());
        all.extend(without_asking.iter().cloned());
        // A scope whose name cannot be one has a line with the client, too.
        let scopes = &self.to.scopes;
        all.retain(|name| scopes.contains(name) || token_name(name).is_err());
        all.insert(OPENID.to_owned());
        without_asking
            .retain(|name| scopes.contains(name) && name != OPENID && name != OFFLINE_ACCESS);
        Ok(ClientScopes {
            own,
            all,
            without_asking,
        })
    }

    /// A scope here is for everybody who signs in to a client that has it, and `roles` names all.
    pub fn note_for_some(&mut self, name: &str, roles: &BTreeSet<String>) {
        let roles = if roles.is_empty() {
            String::from("none")
        } else {
            joined(", ", roles)
        };
        self.note(format!(
            "left out of scope: {name}: there it was for these roles alone: {roles}. Here \
             everybody gets it, with all that it says: add it where that is meant, or where \
             allowed_roles lets in nobody else"
        ));
    }
}

/// Adds a resource scope, and its resources.
fn api_scope(of: &str, mut ours: ImportedObject, audiences: BTreeSet<String>, to: &mut Import) {
    ours.set("resources", json!(audiences));
    to.push(ObjectKind::ResourceScope, of, ours);
    for name in audiences {
        if to.resources.insert(name.clone()) {
            let of = format!("resource {name}");
            to.push(ObjectKind::Resource, &of, [("name", json!(name))].into());
        }
    }
}

/// Notes what scopes of every realm gave there, and do not give here. Adds those that here have no
/// claims.
fn note_its_own(all: &BTreeSet<String>, to: &mut Import) {
    for (name, gave) in WITHOUT_CLAIMS {
        if all.contains(name) && to.scopes.insert(name.to_owned()) {
            let of = format!("scope {name}");
            to.note(&of, format!("has no claims here. There it gave {gave}"));
            let ours = [("name", json!(name)), ("show_in_discovery", json!(false))];
            to.push(ObjectKind::IdentityScope, &of, ours.into());
        }
    }
    for name in all {
        if name != OFFLINE_ACCESS && STANDARD_SCOPES.contains(&name.as_str()) {
            to.note(&format!("scope {name}"), NOT_IN_ACCESS_TOKENS);
        }
    }
}

/// Adds the scopes that no other client has, and returns their names.
fn add_own(client_id: &str, mapped: Mapped, to: &mut Import) -> Vec<String> {
    let mut names = Vec::new();
    if !mapped.identity.0.is_empty() {
        let name = free_name(client_id, "claims", to);
        let mut ours = hidden(&name, client_id);
        ours.set("claims", mapped.identity.0);
        to.push(ObjectKind::IdentityScope, &format!("scope {name}"), ours);
        names.push(name);
    }
    if !mapped.audiences.is_empty() || !mapped.access.0.is_empty() {
        let name = free_name(client_id, "api", to);
        let mut ours = hidden(&name, client_id);
        ours.set("claims", mapped.access.0);
        api_scope(&format!("scope {name}"), ours, mapped.audiences, to);
        names.push(name);
    }
    names
}

/// A name that no other scope has.
fn free_name(client_id: &str, kind: &str, to: &mut Import) -> String {
    let beginning: String = client_id.replace(' ', "-").chars().take(150).collect();
    let mut name = format!("{beginning}-{kind}");
    while !to.scopes.insert(name.clone()) {
        name.push_str("-own");
    }
    name
}

fn hidden(name: &str, client_id: &str) -> ImportedObject {
    ImportedObject::from([
        ("name", json!(name)),
        ("display_name", json!(format!("Data for {client_id}"))),
        ("show_in_discovery", json!(false)),
    ])
}

pub struct ClientScopes {
    /// What its own mappers give.
    own: Vec<String>,
    pub all: BTreeSet<String>,
    pub without_asking: BTreeSet<String>,
}

impl ClientScopes {
    /// Its own first, then the others in the realm's order. Where two of them give one claim, the
    /// first counts.
    pub fn in_order(&self, realm: &Row<'_>) -> Read<Vec<String>> {
        let of_realm = realm.texts("clientScopes", "name")?;
        let place = |name: &String| of_realm.iter().position(|other| other == name);
        let mut names = Vec::from_iter(self.all.iter().cloned());
        names.sort_by_key(|name| (!self.own.contains(name), place(name).unwrap_or(usize::MAX)));
        Ok(names)
    }

    /// Whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.without_asking.remove(name);
        self.all.remove(name)
    }
}
