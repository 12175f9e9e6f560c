//! The base URL itself: a quiet page for whoever comes by.

use super::answers::{self, Presentation};
use crate::app::App;
use crate::http::{Request, Response};
use crate::pages;

/// Says what this is.
pub fn handle(app: &App, request: &Request) -> Response {
    let presentation = Presentation { config: &app.config, request };
    let account = presentation.in_its_language(format!("{}/account", app.config.base_url.path()));
    answers::plain_page(200, presentation.draw("", |chrome| pages::home::page(chrome, &account)))
}
