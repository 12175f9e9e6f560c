//! `GET /scim/v2/Users`: users by a filter, in pages by number (RFC 7644 §3.4.2.4) or by cursor
//! (RFC 9865).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LIST_RESPONSE, ScimRequest};
use crate::scim::error::{ScimError, ScimType};
use crate::scim::filter;
use crate::scim::projection::Projection;
use crate::scim::resource;
use crate::statements::scim_users::{self, PageStart, ScimUser, UserFilter};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::http::Response;

/// Of a page.
const MOST_USERS: i64 = 200;
const USUAL_USERS: i64 = 100;
/// How many users a page looks at that shows those of one `active` alone.
const MOST_LOOKED_AT: i64 = 2_000;
const CURSOR: &str = "gps_";

pub struct ListRequest<'a> {
    asked: &'a ScimRequest<'a>,
    filter: UserFilter,
    /// From 1.
    first: i64,
    count: i64,
    /// Where the page begins, if it is one by cursor.
    after: Option<PageStart>,
    projection: Projection,
}

/// Where the next page begins, and what it is a page of.
#[derive(Serialize, Deserialize)]
struct Cursor {
    tenant: String,
    sub: String,
    active: Option<bool>,
    client_id: ClientId,
}

impl<'a> ListRequest<'a> {
    pub fn read(asked: &'a ScimRequest<'a>) -> Result<ListRequest<'a>> {
        let query = asked.query()?;
        let filter = match query.single("filter")? {
            Some(text) => filter::parse(text)?,
            None => UserFilter::default(),
        };
        let count = number(query, "count")?.unwrap_or(USUAL_USERS);
        let first = number(query, "startIndex")?.unwrap_or(1);
        let mut list = ListRequest {
            asked,
            filter,
            first: first.max(1),
            count: count.clamp(0, MOST_USERS),
            after: None,
            projection: asked.projection()?,
        };
        list.after = match query.single("cursor")? {
            Some(cursor) => Some(list.opened(cursor)?),
            // An empty one asks for the first page.
            None => query.was_sent("cursor").then(PageStart::default),
        };
        Ok(list)
    }

    fn opened(&self, cursor: &str) -> Result<PageStart, ScimError> {
        let opened: Option<Cursor> = self.asked.app.vault.scim_cursors.open_text(CURSOR, cursor);
        match opened {
            Some(cursor)
                if cursor.active == self.filter.active
                    && cursor.client_id == self.asked.client_id =>
            {
                Ok(PageStart {
                    tenant: cursor.tenant,
                    sub: cursor.sub,
                    skipped: 0,
                })
            }
            _ => Err(ScimType::InvalidCursor
                .because("cursor must come from nextCursor, with the same filter")),
        }
    }

    pub fn answer(&self) -> Result<Response> {
        // Lists are long reads, and sign-ins need the connections.
        let permit = self.asked.app.scim_lists.take(Duration::ZERO);
        let _permit = permit.ok_or(Failure::Busy)?;
        if filter::names_somebody(&self.filter) {
            return self.named();
        }
        match &self.after {
            Some(start) => self.page_after(start),
            None if self.filter.active.is_some() => Err(ScimType::InvalidFilter
                .because("active alone is a filter for pages by cursor")
                .into()),
            None => self.page_by_number(),
        }
    }

    /// A few users: one, mostly.
    fn named(&self) -> Result<Response> {
        let ScimRequest { app, reach, .. } = self.asked;
        let all = scim_users::look_up(&app.store, reach, &self.filter, MOST_USERS)?;
        let members = self.numbered(all.len());
        let skipped = usize::try_from(self.first - 1).unwrap_or(usize::MAX);
        let page: Vec<ScimUser> = all
            .into_iter()
            .skip(skipped)
            .take(usize::try_from(self.count).unwrap_or_default())
            .collect();
        Ok(self.listed(&page, members))
    }

    fn page_by_number(&self) -> Result<Response> {
        let ScimRequest { app, reach, .. } = self.asked;
        let start = PageStart {
            skipped: self.first - 1,
            ..PageStart::default()
        };
        let total = scim_users::count(&app.store, reach)?;
        let page = scim_users::page(&app.store, reach, &start, self.count)?;
        let members = self.numbered(total);
        Ok(self.listed(&page, members))
    }

    fn page_after(&self, start: &PageStart) -> Result<Response> {
        let active = self.filter.active;
        let most = if active.is_some() {
            MOST_LOOKED_AT
        } else {
            self.count
        };
        let ScimRequest { app, reach, .. } = self.asked;
        let users = scim_users::page(&app.store, reach, start, most)?;
        let mut has_more = number_of(&users) == most;
        let mut page = Vec::new();
        let mut last = None;
        for user in users {
            if number_of(&page) == self.count {
                has_more = true;
                break;
            }
            last = Some(self.cursor_after(&user));
            if active.is_none_or(|active| active == user.row.enabled) {
                page.push(user);
            }
        }
        let mut members = JsonObject::new();
        if let Some(last) = last.filter(|_| has_more) {
            let next = app.vault.scim_cursors.seal_text(CURSOR, &last);
            members.set("nextCursor", next);
        }
        Ok(self.listed(&page, members))
    }

    fn cursor_after(&self, user: &ScimUser) -> Cursor {
        let tenant = user.row.tenant.as_ref();
        Cursor {
            tenant: tenant.map(ToString::to_string).unwrap_or_default(),
            sub: user.row.sub.to_string(),
            active: self.filter.active,
            client_id: self.asked.client_id.clone(),
        }
    }

    fn numbered(&self, total: impl Into<Value>) -> JsonObject {
        let mut members = JsonObject::new();
        members.set("totalResults", total);
        members.set("startIndex", self.first);
        members
    }

    fn listed(&self, page: &[ScimUser], mut members: JsonObject) -> Response {
        let resources: Vec<JsonObject> = page
            .iter()
            .map(|user| {
                let location = self.asked.location(&user.row.sub);
                resource::show(user, &location, &self.projection)
            })
            .collect();
        members.set("schemas", [LIST_RESPONSE]);
        members.set("itemsPerPage", resources.len());
        members.set("Resources", resources);
        super::json_answer(200, &members)
    }
}

fn number_of(users: &[ScimUser]) -> i64 {
    i64::try_from(users.len()).unwrap_or(i64::MAX)
}

fn number(query: &Parameters, name: &str) -> Result<Option<i64>> {
    let Some(text) = query.single(name)? else {
        return Ok(None);
    };
    let number = text.parse().ok();
    let rule = || ScimError::invalid_value(format!("{name} must be a whole number"));
    Ok(Some(number.ok_or_else(rule)?))
}
