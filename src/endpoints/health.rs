//! `/healthz`: this process takes requests. `/readyz` (admin listener only): it can also answer them.

use crate::app::{App, Standing};
use crate::http::{Body, Response};

/// Alive: the answer itself is the proof.
pub fn live() -> Response {
    text(200, "ok\n")
}

/// Ready once loaded, while the registry is fresh, clocks agree and partitions reach far enough ahead. One that could not
/// be read anew a moment ago leaves it in service, degraded: mostly no other process would be better off.
pub fn ready(app: Option<&App>) -> Response {
    match app.map(App::standing) {
        None => text(503, "not ready: waiting for the database\n"),
        Some(Standing::Ready) => text(200, "ready\n"),
        Some(Standing::Degraded(trouble)) => text(200, format!("degraded: {}\n", trouble.words())),
        Some(Standing::NotReady(why)) => text(503, format!("not ready: {why}\n")),
    }
}

fn text(status: u16, words: impl Into<String>) -> Response {
    Response::with_body(status, "text/plain; charset=utf-8", Body::Owned(words.into().into_bytes()))
        .header("Cache-Control", "no-store")
}
