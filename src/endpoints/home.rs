//! The base URL itself: a quiet page for whoever comes by.

use super::answers::{self, Presentation};
use crate::app::App;
use crate::http::{Request, Response};
use crate::pages;

/// Says what this is.
pub fn handle(app: &App, request: &Request) -> Response {
    let presentation = Presentation { config: &app.config, request };
    answers::plain_page(200, presentation.draw("", pages::home::page))
}
