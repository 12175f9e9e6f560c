//! What is registered, as administrators see it: nothing here changes anything.

use super::Administrator;
use crate::endpoints::{decoded, not_found};
use crate::pages::admin::applications::{application_page, list_page};
use crate::statements::people_list::PeopleAsked;
use gatepost_protocol::words::identifiers::{ClientId, TenantName};
use gatepost_protocol::words::parameters;
use gatepost_registrar::examined_client::ExaminedClient;
use gatepost_registrar::statements::applications::{self, UsedClient};
use gatepost_server::app::App;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::http::Response;

/// Applications of one page.
const MOST: usize = 100;

impl Administrator<'_> {
    pub fn list_applications(&self) -> Result<Response> {
        let app = self.context.app;
        let query = self.query()?;
        let after = query.bounded("after", parameters::CLIENT_ID)?;
        let reach = self.acting.reach;
        let limit = i64::try_from(MOST).unwrap_or(i64::MAX - 1) + 1;
        let mut rows =
            applications::list(&app.store, reach, None, after.unwrap_or_default(), limit)?;
        let has_more = rows.len() > MOST;
        rows.truncate(MOST);
        let last = rows.last().filter(|_| has_more);
        let next = last.map(|last| &last.row.client_id);
        let shown: Vec<ExaminedClient> = rows
            .iter()
            .filter_map(|used| within(app, used, reach))
            .collect();
        Ok(scripted_page(200, list_page(self.around, &shown, next)))
    }

    /// `name` is the client's, as it stands in the path.
    pub fn show_application(&self, name: &str) -> Result<Response> {
        let app = self.context.app;
        let client_id = ClientId::new(decoded(name)?);
        // The database is not asked about made-up names.
        if app.registry.client(&client_id)?.is_none() {
            return Err(not_found());
        }
        let reach = self.acting.reach;
        let used = applications::list(&app.store, reach, Some(&client_id), "", 1)?.pop();
        let found = used.and_then(|used| within(app, &used, reach));
        let found = found.ok_or_else(not_found)?;
        let permit = self.survey()?;
        let grants = applications::count_grants(&app.store, reach, &client_id)
            .inspect_err(|error| {
                let name = client_id.in_text();
                log::info!("grants of {name} were not counted: {error}");
            })
            .ok();
        drop(permit);
        let client = &found.client;
        let is_open = |tenant: &&&str| match **tenant {
            "" => client.only_tenant().is_none(),
            name => client.allows_tenant(&TenantName::new(name)),
        };
        let roles = client.allowed_roles.iter().flatten().map(String::as_str);
        let asked = PeopleAsked {
            tenants: &Vec::from_iter(reach.iter().filter(is_open).copied()),
            roles: Some(&Vec::from_iter(roles)),
            state: "enabled",
            ..PeopleAsked::default()
        };
        let people = self.list_people(asked)?;
        Ok(scripted_page(
            200,
            application_page(self.around, &found, grants, &people),
        ))
    }
}

/// `None` where it is not served, or not within reach.
fn within(app: &App, used: &UsedClient, reach: &[&str]) -> Option<ExaminedClient> {
    let examined = ExaminedClient::examine(app, used, reach)?;
    examined.client.is_within(reach).then_some(examined)
}
