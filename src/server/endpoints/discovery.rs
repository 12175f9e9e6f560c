//! What tells whoever comes by what this is: the metadata, the public keys, and for people the way
//! to the start page.

use serde_json::json;

use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::answers::{self, Presentation};
use crate::http::{Body, Request, Response};

/// `/.well-known/openid-configuration` (OpenID Connect Discovery §4) and RFC 8414's place for the
/// same document, which comes from the tables that validate requests.
pub fn metadata(app: &App) -> Result<Response> {
    Ok(public(
        Body::Shared(app.discovery_document()),
        "public, max-age=3600",
    ))
}

/// `/.well-known/openid-configuration/jwks` (RFC 7517 §5). It may be kept for half a minute alone:
/// Kubernetes' API server asks again no earlier, and refuses until then what a new key signs.
pub fn jwks(app: &App) -> Result<Response> {
    Ok(public(
        Body::Shared(app.jwks_document()),
        "public, max-age=30",
    ))
}

/// `/.well-known/passkey-endpoints`, by which password managers lead people to their passkeys.
pub fn passkey_endpoints(app: &App) -> Result<Response> {
    let page = format!("{}/account#factors", app.issuer());
    let endpoints = json!({"enroll": page, "manage": page});
    Ok(public(
        Body::Owned(endpoints.to_string().into_bytes()),
        "public, max-age=3600",
    ))
}

fn public(body: Body, cache_control: &'static str) -> Response {
    Response::with_body(200, "application/json", body).header("Cache-Control", cache_control)
}

/// The base URL itself: on to the start page, whoever asks.
pub fn home(app: &App, request: &Request) -> Response {
    let start = app.config.base_url.path_of("/start");
    answers::see_other(Presentation::of(app, request).in_its_language(start))
}
