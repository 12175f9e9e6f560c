//! Who has which role. A user's tokens there name roles that come by a group, by another role and
//! by default, too. Here all of them are the user's own.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Import, Read, Row};
use super::{ITS_CLIENTS, ROLES, is_among};

/// In every realm.
const ITS_ROLES: &str = "offline_access uma_authorization";
const OWN: &str = "\
    so many users had these roles there by a group, by another role or by default. Each role is \
    the user's own now: taking a group away takes no role";
const AMBIGUOUS: &str = "\
    two roles have this name here, as a role of a client is CLIENT/ROLE: nobody gets either of \
    them, or a role that they bring along. Rename one there";

const OF_KEYCLOAK: &str = "\
    so many users had these roles of clients that every realm of Keycloak has. They are left out: \
    for those who look after people see GATEPOST_ADMIN_ROLE";
const SHARED_PATH: &str = "\
    two groups have this path, as a name may have a slash: nobody gets the roles or the name of \
    either by it. Rename one there";

/// A role of the realm by its name, and one of a client as `client/role`, as one client's role is
/// not another's.
type RoleName = String;

/// The roles that each role and each group brings along.
#[derive(Default)]
pub struct Roles {
    composites: BTreeMap<RoleName, Vec<RoleName>>,
    /// By path. Two groups may have one path, as a name may have a slash.
    groups: BTreeMap<String, Vec<Group>>,
    /// The role that holds the default roles.
    default: RoleName,
    /// What is held by whoever has the same roles of their own and the same groups.
    held: BTreeMap<Vec<String>, HeldRoles>,
    /// Whose role has which name: a client's, or the realm's, which is `""`.
    owners: BTreeMap<RoleName, BTreeSet<String>>,
    /// Of a client scope (`scope NAME`): who gets it has one of these roles. Of a client (`client
    /// ID`): its tokens name these roles alone, where they do not name all.
    mapped: BTreeMap<String, BTreeSet<RoleName>>,
    /// The client scopes that some people did not get there, each with the roles of those who did.
    for_some: RolesOfScopes,
}

pub type RolesOfScopes = BTreeMap<String, BTreeSet<RoleName>>;

/// What a client has to do with roles.
pub struct ClientRoles {
    /// Those of its service account.
    pub own: Vec<RoleName>,
    /// The scopes that are for everybody here, and say all, and were for these roles alone there.
    pub for_some: RolesOfScopes,
}

struct Group {
    name: String,
    /// With those of the groups above.
    roles: Vec<RoleName>,
}

/// A role of an account.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct HeldRole {
    name: RoleName,
    /// What gives it; nothing where it is assigned to the account itself.
    source: &'static str,
}

#[derive(Default)]
struct HeldRoles {
    roles: Vec<HeldRole>,
    /// Those of them that move.
    ours: Vec<RoleName>,
    /// How many users hold just these.
    users: usize,
}

impl Roles {
    pub fn read(realm: &Row<'_>) -> Read<Roles> {
        let mut roles = Roles {
            default: format!("default-roles-{}", realm.required("realm")?.to_lowercase()),
            ..Roles::default()
        };
        if let Some(default) = realm.nested("defaultRole")? {
            roles.default = default.required("name")?;
        }
        roles.add_roles(realm)?;
        for group in realm.rows("groups")? {
            roles.add_group(&group, &[])?;
        }
        for mapping in realm.rows("scopeMappings")? {
            roles.add_mapped("", &mapping)?;
        }
        if let Some(of_clients) = realm.nested("clientScopeMappings")? {
            for client in of_clients.members.keys() {
                for mapping in of_clients.rows(client)? {
                    roles.add_mapped(client, &mapping)?;
                }
            }
        }
        // So that every name is known before the first user gets a role.
        for user in realm.rows("users")? {
            roles.named(&user, "realmRoles", "clientRoles")?;
        }
        Ok(roles)
    }

    fn add_roles(&mut self, realm: &Row<'_>) -> Read {
        let Some(all) = realm.nested("roles")? else {
            return Ok(());
        };
        for role in all.rows("realm")? {
            self.add_role("", &role)?;
        }
        if let Some(of_clients) = all.nested("client")? {
            for client in of_clients.members.keys() {
                for role in of_clients.rows(client)? {
                    self.add_role(client, &role)?;
                }
            }
        }
        Ok(())
    }

    /// The name of a client's role, or of the realm's (`""`).
    fn name(&mut self, client: &str, role: &str) -> RoleName {
        let name = match client {
            "" => role.to_owned(),
            client => format!("{client}/{role}"),
        };
        let owners = self.owners.entry(name.clone()).or_default();
        owners.insert(client.to_owned());
        name
    }

    pub fn is_of_realm(&self, name: &RoleName) -> bool {
        self.owners
            .get(name)
            .is_some_and(|owners| owners.contains(""))
    }

    /// Whether two roles would be one here.
    fn is_ambiguous(&self, name: &RoleName) -> bool {
        let owners = self.owners.get(name);
        owners.is_some_and(|owners| owners.len() > 1)
    }

    fn add_role(&mut self, client: &str, role: &Row<'_>) -> Read {
        let name = self.name(client, &role.required("name")?);
        if let Some(parts) = role.nested("composites")? {
            let parts = self.named(&parts, "realm", "client")?;
            self.composites.insert(name, parts);
        }
        Ok(())
    }

    fn add_mapped(&mut self, client: &str, mapping: &Row<'_>) -> Read {
        let of = match mapping.text("clientScope")? {
            Some(scope) => format!("scope {scope}"),
            None => format!("client {}", mapping.text("client")?.unwrap_or_default()),
        };
        for role in mapping.texts("roles", "")? {
            let name = self.name(client, &role);
            self.mapped.entry(of.clone()).or_default().insert(name);
        }
        Ok(())
    }

    /// A group has the roles of the groups above it.
    fn add_group(&mut self, group: &Row<'_>, above: &[RoleName]) -> Read {
        let own = self.named(group, "realmRoles", "clientRoles")?;
        let roles = [above, &own].concat();
        for below in group.rows("subGroups")? {
            self.add_group(&below, &roles)?;
        }
        let path = group.required("path")?;
        let name = match group.text("name")? {
            Some(name) => name,
            None => path.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let groups = self.groups.entry(path).or_default();
        groups.push(Group { name, roles });
        Ok(())
    }

    /// The group of that path, if it is one group's.
    fn group(&self, path: &str) -> Option<&Group> {
        match self.groups.get(path)?.as_slice() {
            [group] => Some(group),
            _ => None,
        }
    }

    /// The name of the group of that path; nothing where it could be the one or the other.
    pub fn group_name<'p>(&'p self, path: &'p str) -> Option<&'p str> {
        if self.groups.contains_key(path) {
            return self.group(path).map(|group| group.name.as_str());
        }
        path.rsplit('/').next()
    }

    /// The roles of a user. Counts those that are not assigned to the user itself.
    pub fn of_user(&mut self, row: &Row<'_>) -> Read<Vec<RoleName>> {
        let held = self.held_by(row)?;
        held.users += 1;
        Ok(held.ours.clone())
    }

    /// The same of a client and its service account, which is no user here and not counted.
    pub fn of_client(
        &mut self,
        row: &Row<'_>,
        account: Option<&Row<'_>>,
        role_scopes: &BTreeSet<String>,
    ) -> Read<ClientRoles> {
        let mut own = Vec::new();
        if let Some(account) = account {
            let held = self.held_by(account)?;
            own.extend(held.ours.iter().cloned());
        }
        let mut for_some = self.for_some.clone();
        if !names_all_roles(row)? {
            let names = self.in_tokens_of(row)?;
            own.retain(|role| names.contains(role));
            for scope in role_scopes {
                for_some.insert(scope.clone(), names.clone());
            }
            for_some.insert(ROLES.to_owned(), names);
        }
        Ok(ClientRoles { own, for_some })
    }

    /// The roles that tokens of a client name, where they do not name all: its own, and those that
    /// are mapped to it or to the client scopes that it has by default.
    fn in_tokens_of(&self, row: &Row<'_>) -> Read<BTreeSet<RoleName>> {
        let client_id = row.required("clientId")?;
        let mut names = Vec::new();
        for scope in row.texts("defaultClientScopes", "")? {
            if let Some(mapped) = self.mapped.get(&format!("scope {scope}")) {
                names.extend(mapped);
            }
        }
        if let Some(mapped) = self.mapped.get(&format!("client {client_id}")) {
            names.extend(mapped);
        }
        for (name, owners) in &self.owners {
            if owners.contains(&client_id) {
                names.push(name);
            }
        }
        Ok(self.with_parts(names).into_iter().collect())
    }

    /// Finds the client scopes that some of these people did not get. A role that is a default one,
    /// and everybody's, keeps nobody out.
    pub fn find_for_some(&mut self, people: &[&Row<'_>]) -> Read {
        for person in people {
            self.held_by(person)?;
        }
        let by_default = self.with_parts(vec![&self.default]);
        for (of, roles) in &self.mapped {
            let Some(scope) = of.strip_prefix("scope ") else {
                continue;
            };
            let roles = BTreeSet::from_iter(self.with_parts(roles.iter().collect()));
            let gets = |held: &HeldRoles| held.roles.iter().any(|role| roles.contains(&role.name));
            // So far people alone were looked at.
            let is_for_all =
                by_default.iter().any(|role| roles.contains(role)) && self.held.values().all(gets);
            if !is_for_all {
                self.for_some.insert(scope.to_owned(), roles);
            }
        }
        Ok(())
    }

    fn held_by(&mut self, row: &Row<'_>) -> Read<&mut HeldRoles> {
        let assigned = self.named(row, "realmRoles", "clientRoles")?;
        let groups = row.texts("groups", "")?;
        let key = [assigned.as_slice(), &[String::new()], &groups].concat();
        if self.held.contains_key(&key) {
            return Ok(self.held.entry(key).or_default());
        }
        let roles = self.with_sources(&assigned, &groups);
        let held = self.held.entry(key).or_default();
        let names = roles.iter().map(|role| &role.name);
        held.ours = names.filter(|name| is_ours(name)).cloned().collect();
        held.roles = roles;
        Ok(held)
    }

    /// The roles of whoever has these roles of their own and these groups. Each has the first
    /// source that gives it.
    fn with_sources(&self, assigned: &[RoleName], groups: &[String]) -> Vec<HeldRole> {
        let (by_default, own): (Vec<_>, Vec<_>) =
            assigned.iter().partition(|name| **name == self.default);
        let sources = [
            ("", own.iter().copied().cloned().collect()),
            ("by another role", self.with_parts(own)),
            ("by a group", self.with_parts(self.of_groups(groups))),
            ("by default", self.with_parts(by_default)),
        ];
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for (source, names) in sources {
            for name in names {
                let is_new = seen.insert(name.clone());
                if is_new && name != self.default && !self.is_ambiguous(&name) {
                    all.push(HeldRole { name, source });
                }
            }
        }
        all
    }

    /// The roles of these groups, but not the default one.
    fn of_groups(&self, paths: &[String]) -> Vec<&RoleName> {
        let groups = paths.iter().filter_map(|path| self.group(path));
        let roles = groups.flat_map(|group| &group.roles);
        roles.filter(|name| **name != self.default).collect()
    }

    /// The roles, and all that they bring along.
    fn with_parts(&self, names: Vec<&RoleName>) -> Vec<RoleName> {
        let mut seen = BTreeSet::new();
        let mut open = names;
        let mut all = Vec::new();
        while let Some(name) = open.pop() {
            if !self.is_ambiguous(name) && seen.insert(name) {
                all.push(name.clone());
                open.extend(self.composites.get(name).into_iter().flatten());
            }
        }
        all.sort();
        all
    }

    /// The roles that two members name: those of the realm, and those of clients.
    fn named(&mut self, row: &Row<'_>, of_realm: &str, of_clients: &str) -> Read<Vec<RoleName>> {
        let mut names = Vec::new();
        for role in row.texts(of_realm, "")? {
            names.push(self.name("", &role));
        }
        if let Some(roles) = row.nested(of_clients)? {
            for client in roles.members.keys() {
                for role in roles.texts(client, "")? {
                    names.push(self.name(client, &role));
                }
            }
        }
        Ok(names)
    }

    /// Says how many users got which role by what, and which roles nobody got.
    pub fn note_given(self, to: &mut Import) {
        self.note_shared_names(to);
        let mut given = BTreeMap::<&HeldRole, usize>::new();
        for held in self.held.values().filter(|held| held.users > 0) {
            for role in &held.roles {
                *given.entry(role).or_default() += held.users;
            }
        }
        for (HeldRole { name, source }, users) in given {
            let by_default = *source == "by default" || is_among(ITS_ROLES, name);
            match (is_ours(name), *source) {
                (true, "") => {}
                (true, source) => to.note(&format!("role {name} ({source}): {users}"), OWN),
                (false, _) if by_default => {}
                (false, "") => to.note(&format!("role {name}: {users}"), OF_KEYCLOAK),
                (false, source) => {
                    to.note(&format!("role {name} ({source}): {users}"), OF_KEYCLOAK)
                }
            }
        }
    }

    fn note_shared_names(&self, to: &mut Import) {
        for name in self.owners.keys().filter(|name| self.is_ambiguous(name)) {
            to.note(&format!("role {name}"), AMBIGUOUS);
        }
        for (path, groups) in &self.groups {
            if groups.len() > 1 {
                to.note(&format!("group {path}"), SHARED_PATH);
            }
        }
    }
}

/// Whether tokens of a client name all roles that somebody has.
pub fn names_all_roles(client: &Row<'_>) -> Read<bool> {
    let unsaid = !client.flag("consentRequired")?;
    client.flag_or("fullScopeAllowed", unsaid)
}

fn is_ours(name: &str) -> bool {
    let client = name.split_once('/').map(|(client, _)| client);
    !is_among(ITS_ROLES, name) && !client.is_some_and(|client| is_among(ITS_CLIENTS, client))
}
