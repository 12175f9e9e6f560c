//! `/.well-known/openid-configuration/jwks`: the public keys (RFC 7517 §5).

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Body, Response};

/// Answers with the key set.
pub fn handle(app: &App) -> Result<Response, Failure> {
    let body = Body::Shared(app.jwks_document());
    Ok(Response::with_body(200, "application/json", body).header("Cache-Control", "public, max-age=3600"))
}
