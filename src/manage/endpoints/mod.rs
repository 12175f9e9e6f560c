//! One file, or folder, a program or a page of administrators; and what all of them need.

pub mod admin;
pub mod client_token;
pub mod registration;
pub mod scim;

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_server::app::failure::{Failure, Result};

/// Whoever has no business here learns nothing.
fn not_found() -> Failure {
    Failure::refused(404, TokenErrorCode::InvalidRequest, Reason::NotFound)
}

/// A name that stands in the path.
fn decoded(sent: &str) -> Result<Cow<'_, str>> {
    let decoded = percent_decode_str(sent).decode_utf8().ok();
    let name = decoded.filter(|name| !name.contains('\0'));
    name.ok_or_else(not_found)
}
