//! `/connect/checksession` (OpenID Connect Session Management §3.3): the one page of ours that anybody may frame. It reads
//! one cookie of its own and knows nothing else; neither session nor database is asked.

use crate::config::Config;
use crate::endpoints::{answers, cookies, static_files};
use crate::http::Response;
use crate::pages;

/// Answers with the page.
pub fn handle(config: &Config) -> Response {
    let script = format!("{}/static/check-session.js?v={}", config.base_url.path(), static_files::version());
    answers::frameable_page(pages::check_session::page(&cookies::browser_state_cookie_name(config), &script))
}
