//! `/healthz`: this process takes requests. `/readyz` (admin listener only): it can also answer them.

use crate::app::App;
use crate::http::{Body, Response};

/// Alive: the answer itself is the proof.
pub fn live() -> Response {
    text(200, "ok\n")
}

/// Ready once loaded, while the registry is fresh, clocks agree and partitions reach far enough ahead.
pub fn ready(app: Option<&App>) -> Response {
    match app.map(App::obstacle) {
        None => text(503, "not ready: waiting for the database\n"),
        Some(None) => text(200, "ready\n"),
        Some(Some(obstacle)) => text(503, obstacle),
    }
}

fn text(status: u16, words: &'static str) -> Response {
    Response::with_body(status, "text/plain; charset=utf-8", Body::Static(words.as_bytes()))
        .header("Cache-Control", "no-store")
}
