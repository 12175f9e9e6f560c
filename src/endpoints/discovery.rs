//! `/.well-known/openid-configuration` (OpenID Connect Discovery §4) and RFC 8414's place for the same document.

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Body, Response};

/// Answers with the metadata, which comes from the tables that validate requests.
pub fn handle(app: &App) -> Result<Response, Failure> {
    let body = Body::Shared(app.discovery_document());
    Ok(Response::with_body(200, "application/json", body).header("Cache-Control", "public, max-age=3600"))
}
