//! People, as administrators look after them.

use super::Administrator;
use crate::app::failure::Failure;
use crate::http::Response;
use crate::pages;
use crate::pages::admin::AdminSection;
use crate::pages::admin::people::Search;
use crate::protocol::words::parameters;
use crate::store::admin_people;

/// How many people a search shows.
const MOST: i64 = 50;

/// Finds people by the beginning of what they are called.
pub(super) fn find(administrator: &Administrator<'_>) -> Result<Response, Failure> {
    let query = administrator.query()?;
    let typed = query
        .bounded("q", parameters::USERNAME)?
        .unwrap_or_default();
    let store = &administrator.turn.app.store;
    let found = admin_people::search(store, &administrator.reach(), typed.trim(), MOST)?;
    let search = Search {
        typed,
        found: &found,
        most: MOST,
    };
    let around = administrator.chrome(AdminSection::People);
    Ok(administrator.answer(pages::admin::people::search_page(around, search)))
}
