//! A registered client as pages show it, and its logo, which comes from us: browsers of people who sign in tell nobody else.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Body, Response};
use crate::pages::frame::Client as ClientView;
use crate::pages::language::Language;
use crate::protocol::words::client::Client;
use crate::protocol::words::errors::TokenErrorCode;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::lengths;
use crate::protocol::words::reason::Reason;

/// Its name in that language and its links, with the address that we serve its logo at.
pub fn client_view<'a>(client: &'a Client, logo: Option<&'a str>, language: Language) -> ClientView<'a> {
    ClientView {
        name: language.of(&client.client_name),
        logo,
        home: client.links.client_uri.as_deref(),
        policy: client.links.policy_uri.as_deref(),
        terms: client.links.tos_uri.as_deref(),
    }
}

/// The address that we serve a client's logo at, where it registered one.
pub fn logo_address(app: &App, client: &Client) -> Option<String> {
    client.links.logo_uri.as_ref()?;
    let name = utf8_percent_encode(client.client_id.as_str(), NON_ALPHANUMERIC);
    Some(format!("{}/clients/{name}/logo", app.config.base_url.path()))
}

/// `/clients/{client_id}/logo`: what is registered, and a picture, or nothing.
pub fn logo(app: &App, encoded_client_id: &str) -> Result<Response, Failure> {
    let name = percent_decode_str(encoded_client_id).decode_utf8().map_err(|_| not_found())?;
    if name.contains('\0') || name.chars().nth(lengths::CLIENT_ID).is_some() {
        return Err(not_found());
    }
    let client = app.registry.client(&ClientId::new(name))?.ok_or_else(not_found)?;
    let uri = client.client.links.logo_uri.as_deref().filter(|_| client.client.enabled).ok_or_else(not_found)?;
    let logo = app.client_logos.find(&app.outbound, uri, app.now()).ok_or_else(not_found)?;
    Ok(Response::with_body(200, logo.media_type, Body::Shared(logo.bytes))
        .header("Cache-Control", "public, max-age=3600")
        .header("Content-Security-Policy", "default-src 'none'; sandbox"))
}

fn not_found() -> Failure {
    Failure::refused(404, TokenErrorCode::InvalidRequest, Reason::NotFound)
}
