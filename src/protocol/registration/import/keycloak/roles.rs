//! Who has which role. A user's tokens there name roles that come by a group, by another role and
//! by default, too. Here all of them are the user's own.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Import, Row};
use super::{ITS_CLIENTS, is_among};

/// In every realm.
const ITS_ROLES: &str = "offline_access uma_authorization";
const OWN: &str = "so many users had these roles there by a group, by another role or by default. Each role is the user's own now: taking a group away takes no role";

/// A role of the realm by its name, and one of a client as `client/role`, as one client's role is
/// not another's.
type RoleName = String;

/// The roles that each role and each group brings along.
#[derive(Default)]
pub(super) struct Roles {
    composites: BTreeMap<RoleName, Vec<RoleName>>,
    /// By path, with those of the groups above.
    groups: BTreeMap<String, Vec<RoleName>>,
    /// The role that holds the default roles.
    default: RoleName,
    /// How many users got which role, and by what.
    given: BTreeMap<String, usize>,
}

/// The roles of an account.
#[derive(Default)]
struct HeldRoles {
    roles: Vec<RoleName>,
    /// Those that are not assigned to the account itself, each with what gives it.
    given: Vec<String>,
}

impl Roles {
    pub(super) fn read(realm: &Row<'_>) -> Result<Roles, String> {
        let mut roles = Roles {
            default: format!("default-roles-{}", realm.required("realm")?.to_lowercase()),
            ..Roles::default()
        };
        if let Some(default) = realm.nested("defaultRole")? {
            roles.default = default.required("name")?;
        }
        if let Some(all) = realm.nested("roles")? {
            for role in all.rows("realm")? {
                roles.add_composite(role.required("name")?, &role)?;
            }
            if let Some(of_clients) = all.nested("client")? {
                for client in of_clients.members.keys() {
                    for role in of_clients.rows(client)? {
                        let name = format!("{client}/{}", role.required("name")?);
                        roles.add_composite(name, &role)?;
                    }
                }
            }
        }
        for group in realm.rows("groups")? {
            roles.add_group(&group, &[])?;
        }
        Ok(roles)
    }

    fn add_composite(&mut self, name: RoleName, role: &Row<'_>) -> Result<(), String> {
        if let Some(parts) = role.nested("composites")? {
            let parts = named(&parts, "realm", "client")?;
            self.composites.insert(name, parts);
        }
        Ok(())
    }

    /// A group has the roles of the groups above it.
    fn add_group(&mut self, group: &Row<'_>, above: &[RoleName]) -> Result<(), String> {
        let own = named(group, "realmRoles", "clientRoles")?;
        let roles = [above, &own].concat();
        for below in group.rows("subGroups")? {
            self.add_group(&below, &roles)?;
        }
        self.groups.insert(group.required("path")?, roles);
        Ok(())
    }

    /// The roles of a user. Counts those that are not assigned to the user itself.
    pub(super) fn of_user(&mut self, row: &Row<'_>) -> Result<Vec<RoleName>, String> {
        let held = self.held_by(row)?;
        for one in held.given {
            *self.given.entry(one).or_default() += 1;
        }
        Ok(held.roles)
    }

    /// The same for the account of a client, which is no user here and not counted.
    pub(super) fn of_service_account(&self, row: &Row<'_>) -> Result<Vec<RoleName>, String> {
        Ok(self.held_by(row)?.roles)
    }

    /// The roles of an account, those of Keycloak's own clients left out.
    fn held_by(&self, row: &Row<'_>) -> Result<HeldRoles, String> {
        let assigned = named(row, "realmRoles", "clientRoles")?;
        let of_groups = row.texts("groups", "")?;
        let of_groups = of_groups
            .iter()
            .filter_map(|path| self.groups.get(path))
            .flatten();
        let is_default = |name: &&RoleName| **name == self.default;
        let sources = [
            ("", assigned.iter().collect::<Vec<_>>()),
            ("by another role", assigned.iter().collect()),
            ("by a group", of_groups.collect()),
            ("by default", assigned.iter().filter(is_default).collect()),
        ];
        let mut held = HeldRoles::default();
        for (source, names) in sources {
            let names: Vec<&RoleName> = names
                .into_iter()
                .filter(|name| source == "by default" || **name != self.default)
                .collect();
            let all = match source {
                "" => names.into_iter().cloned().collect(),
                _ => self.with_parts(names),
            };
            for name in all {
                if is_ours(&name) && name != self.default && !held.roles.contains(&name) {
                    if !source.is_empty() {
                        held.given.push(format!("role {name} ({source})"));
                    }
                    held.roles.push(name);
                }
            }
        }
        Ok(held)
    }

    /// The roles, and all that they bring along.
    fn with_parts(&self, names: Vec<&RoleName>) -> Vec<RoleName> {
        let mut seen = BTreeSet::new();
        let mut open = names;
        let mut all = Vec::new();
        while let Some(name) = open.pop() {
            if seen.insert(name) {
                all.push(name.clone());
                open.extend(self.composites.get(name).into_iter().flatten());
            }
        }
        all.sort();
        all
    }

    /// Says how many users got which role by what.
    pub(super) fn note_given(self, to: &mut Import) {
        for (of, users) in self.given {
            to.note(&format!("{of}: {users}"), OWN);
        }
    }
}

/// The roles that two members name: those of the realm, and those of clients.
fn named(row: &Row<'_>, of_realm: &str, of_clients: &str) -> Result<Vec<RoleName>, String> {
    let mut names = row.texts(of_realm, "")?;
    if let Some(roles) = row.nested(of_clients)? {
        for client in roles.members.keys() {
            let of_client = roles.texts(client, "")?;
            names.extend(of_client.iter().map(|role| format!("{client}/{role}")));
        }
    }
    Ok(names)
}

fn is_ours(name: &str) -> bool {
    let client = name.split_once('/').map(|(client, _)| client);
    !is_among(ITS_ROLES, name) && !client.is_some_and(|client| is_among(ITS_CLIENTS, client))
}
