//! Pushed authorization requests (RFC 9126): a client hands its request over before the browser
//! comes, and the browser brings a `request_uri` that stands for it. Ours *is* the request, sealed:
//! nothing is stored until it led to an answer with a code or tokens.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;

/// RFC 9126 §2.2
pub const REQUEST_URI: &str = "urn:ietf:params:oauth:request_uri:";
/// What comes behind it, before the sealed request.
pub const PREFIX: &str = "gpp_";
/// Characters of a `request_uri`: the browser's address must hold it.
pub const LONGEST: usize = 7_000;
pub const LIFETIME: Duration = Duration::from_secs(90);
/// How much longer than its pages go on it is remembered that it was used.
const MARGIN: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedRequest {
    pub id: [u8; 16],
    pub client_id: ClientId,
    pub expires_at: Instant,
    pub parameters: Parameters,
}

impl PushedRequest {
    /// The name under which it is noted as used up.
    pub fn name(&self) -> String {
        format!("par:{:032x}", u128::from_be_bytes(self.id))
    }

    /// When nothing can come of it any more, whether it was used or not. `pages`: how long the
    /// pages of a request go on.
    pub fn forgotten_at(&self, pages: Duration) -> Instant {
        self.expires_at.plus(pages).plus(MARGIN)
    }
}

/// The sealed request in a `request_uri` of ours, if the request has one and no other.
pub fn sealed(parameters: &Parameters) -> Option<&str> {
    let request_uri = parameters.single("request_uri").ok().flatten()?;
    request_uri.strip_prefix(REQUEST_URI)
}

/// Judges a request that was opened, or could not be. It may be opened many times until it ends.
pub fn judge(
    opened: Option<PushedRequest>,
    client_id: &ClientId,
    now: Instant,
) -> Result<PushedRequest, Reason> {
    let pushed = opened.ok_or(Reason::PushedRequestDamaged)?;
    if pushed.client_id != *client_id {
        return Err(Reason::PushedRequestOfAnother);
    }
    match now < pushed.expires_at {
        true => Ok(pushed),
        false => Err(Reason::PushedRequestExpired),
    }
}
