//! The sealed requests in the addresses of our pages: how they are sealed and opened.

use super::expired::{Unopened, without_request};
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::http::{Method, Request};
use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;

/// A request that was sealed, and the seal it came under.
pub struct Opened {
    pub request: SealedRequest,
    pub sealed: String,
}

/// Seals a request that came in now. Its seal goes into the addresses of its pages.
pub fn seal(app: &App, purpose: SealedPurpose) -> Opened {
    let request = SealedRequest {
        received_at: app.now(),
        purpose,
    };
    Opened {
        sealed: app.vault.authorize_requests.seal_text("", &request),
        request,
    }
}

/// Opens the request in the address of one of our pages. Refuses a request that we did not seal.
/// Whoever comes with one that has expired, or with none, is led to where they can begin.
pub fn open(app: &App, request: &Request) -> Result<Opened> {
    let query = request.query_parameters()?;
    match query.bounded("r", parameters::HANDLE)? {
        None if request.method != Method::Post => Err(without_request(app, request)),
        sealed => open_text(app, sealed.unwrap_or_default())
            .map_err(|unopened| unopened.answered(app, request)),
    }
}

/// Opens a request that did not come in an address.
pub fn open_text(app: &App, sealed: &str) -> Result<Opened, Unopened> {
    let opened: SealedRequest = app
        .vault
        .authorize_requests
        .open_text("", sealed)
        .ok_or(Unopened::Invalid)?;
    if app.now()
        >= opened
            .received_at
            .plus(app.config.authorization_request_lifetime)
    {
        return Err(Unopened::Expired(Box::new(opened)));
    }
    Ok(Opened {
        request: opened,
        sealed: sealed.to_owned(),
    })
}

/// The address of one of our pages with a request in it.
pub fn page_address(app: &App, page: &str, sealed: &str) -> String {
    format!("{}{page}?r={sealed}", app.config.base_url.path())
}

/// The address of this page holds no request, or one for another page.
pub fn invalid() -> Failure {
    Failure::bad_request(Reason::SealedRequestInvalid)
}
