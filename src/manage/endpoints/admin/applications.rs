//! What is registered, as administrators see it: nothing here changes anything.

use percent_encoding::percent_decode_str;

use super::{Administrator, not_found};
use crate::pages::admin::AdminSection;
use crate::pages::admin::applications::{application_page, list_page};
use gatepost_protocol::words::identifiers::{ClientId, in_text};
use gatepost_protocol::words::parameters;
use gatepost_registrar::examined_client::ExaminedClient;
use gatepost_registrar::statements::applications::{self, UsedClient};
use gatepost_server::app::App;
use gatepost_server::app::failure::Failure;
use gatepost_server::http::Response;

/// Applications of one page.
const MOST: usize = 100;

impl Administrator<'_> {
    pub(super) fn list_applications(&self) -> Result<Response, Failure> {
        let app = self.context.app;
        let query = self.query()?;
        let after = query.bounded("after", parameters::CLIENT_ID)?;
        let reach = self.reach;
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
        Ok(self.shown(AdminSection::Applications, |around| {
            list_page(around, &shown, next, reach)
        }))
    }

    /// `name` is the client's, as it stands in the path.
    pub(super) fn show_application(&self, name: &str) -> Result<Response, Failure> {
        let app = self.context.app;
        let name = percent_decode_str(name).decode_utf8();
        let client_id = ClientId::new(name.map_err(|_| not_found())?.as_ref());
        // The database is not asked about made-up names.
        if app.registry.client(&client_id)?.is_none() {
            return Err(not_found());
        }
        let reach = self.reach;
        let used = applications::list(&app.store, reach, Some(&client_id), "", 1)?.pop();
        let found = used.and_then(|used| within(app, &used, reach));
        let found = found.ok_or_else(not_found)?;
        let _permit = self.survey()?;
        let grants = applications::count_grants(&app.store, reach, &client_id)
            .inspect_err(|error| {
                let name = in_text(client_id.as_str());
                log::info!("grants of {name} were not counted: {error}");
            })
            .ok();
        Ok(self.shown(AdminSection::Applications, |around| {
            application_page(around, &found, grants, reach)
        }))
    }
}

/// `None` where it is not served, or not within reach.
fn within(app: &App, used: &UsedClient, reach: &[&str]) -> Option<ExaminedClient> {
    let examined = ExaminedClient::examine(app, used, reach)?;
    examined.client.is_within(reach).then_some(examined)
}
