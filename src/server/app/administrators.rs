//! Whom administrators look after, by what is stored now.

use std::collections::BTreeSet;

use super::App;
use crate::http::Request;
use gatepost_protocol::registration::administration::Administration;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::json::JsonObject;
use gatepost_store::Result;
use gatepost_store::users::{self, UserRow};

impl App {
    /// The tenants whose people a user looks after; an empty name stands for no tenant.
    pub fn reach_of(&self, administration: &Administration, user: &UserRow) -> Vec<String> {
        let snapshot = self.registry.snapshot();
        let tenants = snapshot.catalogue.tenants.keys();
        let registered: BTreeSet<&str> = tenants.map(String::as_str).collect();
        administration.reach(user.tenant.as_ref(), &user.claims, &registered)
    }

    /// Whether a role makes somebody with these claims an administrator.
    pub fn is_administrator(&self, claims: &JsonObject) -> bool {
        let administration = self.config.administration.as_ref();
        administration.is_some_and(|set| set.has_admin_role(claims))
    }

    /// Takes the roles of administrators out of the claims of somebody new, or who had none. What
    /// gives them is told to the log.
    pub fn drop_admin_roles(&self, request: &Request, giver: &str, claims: &mut JsonObject) {
        let administration = self.config.administration.as_ref();
        let before = JsonObject::new();
        if administration.is_some_and(|set| set.keep_admin_roles(&before, claims)) {
            let id = &request.id;
            log::warn!("request {id}: {giver} gives the role of administrators: dropped");
        }
    }

    /// Whether a link that this administrator made for a person still counts: they are there, are
    /// enabled, reach the person, and may give all of the person's roles.
    pub fn may_look_after(&self, admin: &Subject, person: &UserRow) -> Result<bool> {
        let Some(administration) = &self.config.administration else {
            return Ok(false);
        };
        let found = users::find_for_client(&self.store, admin, None)?;
        let tenant = person.tenant.as_ref().map_or("", |tenant| tenant.as_str());
        let Some(admin) = found else {
            return Ok(false);
        };
        let reach = self.reach_of(administration, &admin.user);
        let roles = &self.registry.snapshot().catalogue.roles;
        Ok(admin.user.may_act()
            && reach.iter().any(|reached| reached == tenant)
            && administration.may_change(&person.claims, roles))
    }
}
