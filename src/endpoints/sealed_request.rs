//! Requests that travel through our pages, sealed into the `r` parameter of each page's address: what was asked and when,
//! and what for. Nothing of them is stored, and nothing in them says who signed in or what they agreed to.

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::Request;
use crate::pages::language::Language;
use crate::protocol::codec::{Reader, Writer};
use crate::protocol::instant::Instant;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;

/// What a sealed request is for; one is never taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An authorization request.
    Authorize,
    /// A request to sign out.
    EndSession,
}

impl Purpose {
    /// The first byte of what is sealed.
    fn byte(self) -> u8 {
        match self {
            Purpose::Authorize => 1,
            Purpose::EndSession => 2,
        }
    }
}

/// A request as it came out of an address.
#[derive(Debug)]
pub struct OpenedRequest {
    /// As it stands in the address.
    pub sealed: String,
    /// What was sealed.
    pub parameters: Parameters,
    /// When it was made.
    pub received_at: Instant,
}

/// Seals a request; `None` when the address of a page would get too long.
pub fn seal(app: &App, purpose: Purpose, parameters: &Parameters, received_at: Instant) -> Option<String> {
    let mut writer = Writer::new();
    writer.u8(purpose.byte());
    writer.instant(received_at);
    // Decoded: percent-encoding would triple a long state, and the address of a page must stay short.
    writer.texts(parameters.iter().flat_map(|(name, value)| [name, value]));
    let sealed = app.vault.authorize_requests.seal_text("", &writer.finish());
    (sealed.len() <= lengths::SEALED_REQUEST).then_some(sealed)
}

/// Opens the request in the address of one of our pages; `None` when the address has none.
///
/// # Errors
/// A page, when it is not one of ours for this purpose, or too old.
pub fn reopen(app: &App, purpose: Purpose, request: &Request) -> Result<Option<OpenedRequest>, Failure> {
    let query = Parameters::parse(request.query.as_bytes()).map_err(Failure::bad_request)?;
    let Some(sealed) = query.bounded("r", lengths::HANDLE).map_err(Failure::bad_request)? else { return Ok(None) };
    let opened = open(app, purpose, sealed).ok_or_else(|| Failure::bad_request(Reason::SealedRequestInvalid))?;
    if app.now() >= opened.received_at.plus(app.config.authorization_request_lifetime) {
        return Err(Failure::bad_request(Reason::PageExpired));
    }
    Ok(Some(opened))
}

/// The address of one of our pages for a sealed request. The language stands in it, so that whatever becomes of the request
/// there is told in that language.
pub fn address(app: &App, page: &str, sealed: &str, ui_locales: Option<&str>) -> String {
    let language = ui_locales.and_then(Language::asked_for);
    let language = language.map(|language| format!("&ui_locales={}", language.tag())).unwrap_or_default();
    format!("{}{page}?r={sealed}{language}", app.config.base_url.path())
}

fn open(app: &App, purpose: Purpose, sealed: &str) -> Option<OpenedRequest> {
    let opened = app.vault.authorize_requests.open_text("", sealed)?;
    let mut reader = Reader::new(&opened);
    if reader.u8()? != purpose.byte() {
        return None;
    }
    let (received_at, texts) = (reader.instant()?, reader.texts()?);
    reader.finish()?;
    let (pairs, []) = texts.as_chunks::<2>() else { return None };
    let parameters = Parameters::from_pairs(pairs.iter().map(|[name, value]| (name.as_str(), value.as_str())));
    Some(OpenedRequest { sealed: sealed.to_owned(), parameters, received_at })
}
