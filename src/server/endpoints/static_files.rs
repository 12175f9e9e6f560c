//! `/static/*`: the stylesheet, icons and the four scripts, embedded in the binary; the brand's
//! colour and logo; and the logos of clients.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::config::{self, Brand, Config};
use crate::http::{Body, Request, Response};
use crate::pages::brand::brand_css;
use crate::pages::frame::BRAND_LOGO;
use gatepost_protocol::registration::user::media_type;
use gatepost_protocol::words::identifiers::{self, ClientId};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const FILES: [(&str, &str, &[u8]); 7] = [
    ("app.css", CSS, include_bytes!("../../../static/app.css")),
    (
        "check-session.js",
        SCRIPT,
        include_bytes!("../../../static/check-session.js"),
    ),
    (
        "application.svg",
        "image/svg+xml",
        include_bytes!("../../../static/application.svg"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("../../../static/icon.svg"),
    ),
    (
        "times.js",
        SCRIPT,
        include_bytes!("../../../static/times.js"),
    ),
    (
        "passkey.js",
        SCRIPT,
        include_bytes!("../../../static/passkey.js"),
    ),
    (
        "form-post.js",
        SCRIPT,
        include_bytes!("../../../static/form-post.js"),
    ),
];

/// Answers with a file, which browsers may keep. An address of another version is asked for while
/// one build or colour follows another: what this one has must not be kept under it.
pub fn handle(config: &Config, request: &Request, name: &str) -> Result<Response> {
    let asked = request.query.strip_prefix("v=");
    let caching = if asked.is_none_or(|asked| asked == version(config)) {
        "public, max-age=86400"
    } else {
        "no-store"
    };
    Ok(file(config, name)?.header("Cache-Control", caching))
}

/// Names are looked up in a table: there is no file system to traverse.
fn file(config: &Config, name: &str) -> Result<Response> {
    if name == "brand.css" {
        let css = brand_css(config.brand.color.ok_or_else(not_found)?);
        return Ok(Response::with_body(200, CSS, Body::Owned(css.into_bytes())));
    }
    if name == BRAND_LOGO {
        return brand_logo(config);
    }
    let file = FILES.iter().find(|(file, _, _)| *file == name);
    let (_, content_type, bytes) = file.ok_or_else(not_found)?;
    Ok(Response::with_body(200, content_type, Body::Static(bytes)))
}

/// The operator's logo. An SVG may hold scripts, which run when it is opened by itself: not here.
fn brand_logo(config: &Config) -> Result<Response> {
    let path = config.brand.logo.as_ref().ok_or_else(not_found)?;
    let bytes = fs::read(path).map_err(|_| not_found())?;
    let content_type = picture(path, &bytes).ok_or_else(not_found)?;
    let response = Response::with_body(200, content_type, Body::Owned(bytes));
    Ok(response.header(
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    ))
}

/// Its media type, whichever kind of picture its name says.
fn picture(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    if path.extension()? != "svg" {
        return media_type(bytes);
    }
    let is_drawing = String::from_utf8_lossy(bytes).contains("<svg");
    is_drawing.then_some("image/svg+xml")
}

/// Why the operator's logo cannot be shown.
pub fn logo_fault(brand: &Brand) -> Option<String> {
    let path = brand.logo.as_ref()?;
    let cause = match fs::read(path) {
        Ok(bytes) if picture(path, &bytes).is_some() => return None,
        Ok(_) => String::from("it is no picture"),
        Err(error) => config::cause(&error),
    };
    let file = path.display();
    Some(format!(
        "GATEPOST_BRAND_LOGO: {file} cannot be read ({cause}), so pages show the name instead"
    ))
}

/// Eight hex digits over every embedded file and the brand's colours: part of their addresses, so
/// that the pages of a new binary, or of new settings, get their own files.
pub fn version(config: &Config) -> &'static str {
    // A process has the same settings as long as it lives.
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let colors = config.brand.color.map(brand_css).unwrap_or_default();
        let mut digest = Sha256::new_with_prefix(colors);
        for (_, _, bytes) in &FILES {
            digest.update(bytes);
        }
        let version = identifiers::encode(&digest.finalize());
        version.chars().take(8).collect()
    })
}

/// `/clients/{client_id}/logo`: what is registered, and a picture. It comes from us, so that
/// browsers of people who sign in tell nobody else. Where it cannot be had there is one of ours: a
/// page without scripts cannot take an empty picture away.
pub fn client_logo(app: &App, encoded_client_id: &str) -> Result<Response> {
    let client_id = decoded(encoded_client_id).ok_or_else(not_found)?;
    let registered = app.registry.client(&client_id)?.ok_or_else(not_found)?;
    let client = app.described(&registered).map_err(|_| not_found())?;
    let uri = client
        .client
        .links
        .logo_uri
        .as_deref()
        .filter(|_| client.client.enabled)
        .ok_or_else(not_found)?;
    let response = match app.client_logos.find(&app.outbound, uri, app.now()) {
        Some(logo) => Response::with_body(200, logo.media_type, Body::Shared(logo.bytes))
            .header("Cache-Control", "public, max-age=3600"),
        None => file(&app.config, "application.svg")?.header("Cache-Control", "no-store"),
    };
    Ok(response.header("Content-Security-Policy", "default-src 'none'; sandbox"))
}

/// `None` for what no client can be called.
fn decoded(encoded_client_id: &str) -> Option<ClientId> {
    let name = percent_decode_str(encoded_client_id).decode_utf8().ok()?;
    if name.contains('\0') || name.chars().nth(parameters::CLIENT_ID).is_some() {
        return None;
    }
    Some(ClientId::new(name))
}

fn not_found() -> Failure {
    Failure::refused(404, TokenErrorCode::InvalidRequest, Reason::NotFound)
}
