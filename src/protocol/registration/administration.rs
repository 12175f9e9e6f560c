//! Who looks after people at `/admin`, after whom, and what they may do to them. The role that
//! makes an administrator is given and taken by commands and documents alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::words::catalogue::RegisteredRole;
use crate::words::claim_shape::listed;
use crate::words::identifiers::TenantName;
use crate::words::json::{JsonObject, SetMember};
use crate::words::strength::Strength;

const ROLE: &str = "role";

/// By name.
pub type RegisteredRoles = BTreeMap<String, RegisteredRole>;

#[derive(Clone, Debug)]
pub struct Administration {
    /// `GATEPOST_ADMIN_ROLE`
    pub role: String,
    /// `GATEPOST_ADMIN_ROLES`: what administrators may give.
    pub given_roles: Vec<String>,
    /// `GATEPOST_ADMIN_MINIMUM_ACR`
    pub minimum_acr: Strength,
    /// `GATEPOST_ADMIN_BOUND_SESSION`
    pub requires_bound_session: bool,
}

/// The claim is a string or an array of them.
pub fn roles_of(claims: &JsonObject) -> Vec<&str> {
    let roles = claims.get(ROLE).map(listed).into_iter().flatten();
    roles.filter_map(Value::as_str).collect()
}

/// Writes the claim; without roles there is none.
pub fn set_roles(claims: &mut JsonObject, roles: &[impl Clone + Into<Value>]) {
    if roles.is_empty() {
        claims.remove(ROLE);
    } else {
        claims.set(ROLE, roles);
    }
}

impl Administration {
    /// Whether the role makes an administrator, of everybody or of one tenant.
    pub fn is_admin_role(&self, role: &str) -> bool {
        let behind = role.strip_prefix(&self.role);
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(':'))
    }

    pub fn has_admin_role(&self, claims: &JsonObject) -> bool {
        roles_of(claims).iter().any(|role| self.is_admin_role(role))
    }

    /// The tenants whose people a user looks after; an empty name stands for no tenant. Whoever is
    /// of a tenant never reaches another one.
    pub fn reach(
        &self,
        tenant: Option<&TenantName>,
        claims: &JsonObject,
        registered: &BTreeSet<&str>,
    ) -> Vec<String> {
        let roles = roles_of(claims);
        let has_role = roles.contains(&self.role.as_str());
        let mut reach = Vec::new();
        for name in registered.iter().copied().chain([""]) {
            let is_reached = match tenant {
                Some(tenant) => has_role && name == tenant.as_str(),
                None if has_role => true,
                None => roles.iter().any(|role| self.is_role_for(name, role)),
            };
            if is_reached {
                reach.push(name.to_owned());
            }
        }
        reach
    }

    fn is_role_for(&self, tenant: &str, role: &str) -> bool {
        let behind = role.strip_prefix(&self.role);
        behind.and_then(|behind| behind.strip_prefix(':')) == Some(tenant) && !tenant.is_empty()
    }

    /// What administrators may give: the roles of the setting, and the registered ones that say so.
    pub fn roles_to_give(&self, registered: &RegisteredRoles) -> Vec<String> {
        let mut roles = self.given_roles.clone();
        for (name, role) in registered {
            let is_new = !roles.contains(name) && !self.is_admin_role(name);
            if role.given_by_administrators && is_new {
                roles.push(name.clone());
            }
        }
        roles
    }

    /// Whether somebody with these claims has only roles that administrators may give. The
    /// statements that write ask the same.
    pub fn may_change(&self, claims: &JsonObject, registered: &RegisteredRoles) -> bool {
        let given = self.roles_to_give(registered);
        let may_give = |role: &str| given.iter().any(|given| given == role);
        let mut roles = claims.get(ROLE).map(listed).into_iter().flatten();
        roles.all(|role| role.as_str().is_some_and(may_give))
    }

    /// The claims but for the roles of administrators.
    pub fn without_admin_roles(&self, claims: &JsonObject) -> JsonObject {
        let mut rest = claims.clone();
        self.keep_admin_roles(&JsonObject::new(), &mut rest);
        rest
    }

    /// Keeps the roles of administrators as they were `before`, whatever a program or a provider
    /// wrote. `true` where that makes a difference.
    pub fn keep_admin_roles(&self, before: &JsonObject, claims: &mut JsonObject) -> bool {
        let had = self.admin_roles(before);
        if had == self.admin_roles(claims) {
            return false;
        }
        let written = claims.clone();
        let mut roles = roles_of(&written);
        roles.retain(|role| !self.is_admin_role(role));
        roles.extend(had);
        set_roles(claims, &roles);
        true
    }

    fn admin_roles<'c>(&self, claims: &'c JsonObject) -> Vec<&'c str> {
        let mut roles = roles_of(claims);
        roles.retain(|role| self.is_admin_role(role));
        roles
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn administration() -> Administration {
        Administration {
            role: String::from("office"),
            given_roles: vec![String::from("staff"), String::from("sales")],
            minimum_acr: Strength::TwoFactors,
            requires_bound_session: false,
        }
    }

    fn claims(role: Value) -> JsonObject {
        let mut claims = JsonObject::new();
        if !role.is_null() {
            claims.insert(ROLE.to_owned(), role);
        }
        claims
    }

    #[test]
    fn a_role_reaches_everybody_a_tenant_or_nobody() {
        let registered = BTreeSet::from(["acme", "globex"]);
        let everybody: &[&str] = &["acme", "globex", ""];
        for (tenant, role, reach) in [
            (None, json!("office"), everybody),
            (None, json!(["staff", "office"]), everybody),
            (None, json!("office:acme"), &["acme"]),
            (
                None,
                json!(["office:acme", "office:globex"]),
                &["acme", "globex"],
            ),
            (None, json!("office:"), &[]),
            (None, json!("office:initech"), &[]),
            (None, json!("officer"), &[]),
            (None, json!({"office": true}), &[]),
            (None, Value::Null, &[]),
            (Some("acme"), json!("office"), &["acme"]),
            (Some("acme"), json!(["office", "office:globex"]), &["acme"]),
            (Some("acme"), json!("office:acme"), &[]),
            (Some("acme"), json!("office:globex"), &[]),
            (Some("initech"), json!("office"), &[]),
        ] {
            let tenant = tenant.map(TenantName::new);
            let found = administration().reach(tenant.as_ref(), &claims(role.clone()), &registered);
            assert_eq!(found, reach, "{tenant:?} {role}");
        }
    }

    #[test]
    fn whoever_has_another_role_is_not_changed() {
        let role = |name: &str, given_by_administrators| RegisteredRole {
            name: name.to_owned(),
            display_name: name.into(),
            description: "".into(),
            given_by_administrators,
        };
        let registered = [
            role("books", true),
            role("vault", false),
            role("office", true),
            role("office:acme", true),
        ];
        let registered = registered.map(|role| (role.name.clone(), role)).into();
        for (role, may) in [
            (Value::Null, true),
            (json!([]), true),
            (json!("staff"), true),
            (json!(["staff", "sales"]), true),
            (json!(["staff", "books"]), true),
            (json!("vault"), false),
            (json!("office"), false),
            (json!(["staff", "office"]), false),
            (json!("office:acme"), false),
            (json!("root"), false),
            (json!(["staff", 1]), false),
            (json!({"staff": true}), false),
            (json!(false), false),
        ] {
            assert_eq!(
                administration().may_change(&claims(role.clone()), &registered),
                may,
                "{role}"
            );
        }
    }

    #[test]
    fn nobody_else_gives_or_takes_the_role() {
        for (before, written, after) in [
            (Value::Null, json!(["staff"]), None),
            (
                Value::Null,
                json!(["staff", "office"]),
                Some(json!(["staff"])),
            ),
            (Value::Null, json!("office:acme"), Some(Value::Null)),
            (json!("office"), Value::Null, Some(json!(["office"]))),
            (
                json!("office"),
                json!(["staff"]),
                Some(json!(["staff", "office"])),
            ),
            (json!(["office", "staff"]), json!(["office"]), None),
        ] {
            let mut now = claims(written.clone());
            let differs = administration().keep_admin_roles(&claims(before), &mut now);
            assert_eq!(differs, after.is_some(), "{written}");
            assert_eq!(now, claims(after.unwrap_or(written)));
        }
    }
}
