//! The `r` of our pages' addresses: a request under seal. No page takes anything else from its address but how it is shown.

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::Request;
use crate::protocol::authorize::sealed_request::{SealedPurpose, SealedRequest};
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;

/// A request that was sealed, and the seal it came under.
#[derive(Clone, Debug)]
pub struct Opened {
    /// What lay under the seal.
    pub request: SealedRequest,
    /// The page's `r`.
    pub sealed: String,
}

/// Seals a request that came in now for the addresses of its pages.
pub fn seal(app: &App, purpose: SealedPurpose) -> Opened {
    let request = SealedRequest { received_at: app.now(), purpose };
    Opened { sealed: app.vault.authorize_requests.seal_text("", &request), request }
}

/// Opens the request in the address of one of our pages; refuses what is not ours and what has expired.
pub fn open(app: &App, request: &Request) -> Result<Opened, Failure> {
    let query = Parameters::parse(request.query.as_bytes())?;
    open_text(app, query.bounded("r", lengths::HANDLE)?.unwrap_or_default())
}

/// Opens a request that came another way than in an address.
pub fn open_text(app: &App, sealed: &str) -> Result<Opened, Failure> {
    let opened: SealedRequest = app.vault.authorize_requests.open_text("", sealed).ok_or_else(invalid)?;
    if app.now() >= opened.received_at.plus(app.config.authorization_request_lifetime) {
        return Err(Failure::bad_request(Reason::PageExpired));
    }
    Ok(Opened { request: opened, sealed: sealed.to_owned() })
}

/// The address of one of our pages with a request in it.
pub fn page(app: &App, page: &str, sealed: &str) -> String {
    format!("{}{page}?r={sealed}", app.config.base_url.path())
}

/// The address of this page does not hold what it should.
pub fn invalid() -> Failure {
    Failure::bad_request(Reason::SealedRequestInvalid)
}
