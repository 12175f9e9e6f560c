//! Why a request did not get what it asked for, on its way to the one place that turns it into an answer.

use std::time::Duration;

use crate::protocol::authorize_request::AuthorizeError;
use crate::protocol::errors::{TokenError, TokenErrorCode};
use crate::protocol::identifiers::ClientId;
use crate::protocol::reason::Reason;
use crate::store::StoreError;

/// What a handler returns instead of a response. `dispatch` makes a page or a JSON object of it, and the log line.
#[derive(Debug)]
pub enum Failure {
    /// The request was wrong.
    Refused(Refusal),
    /// An authorization request was refused: a page, or an error that travels to the client.
    Authorize(AuthorizeError),
    /// Too many wrong guesses; come back later.
    Throttled {
        /// Which guesses.
        reason: Reason,
        /// How long to wait.
        retry_after: Duration,
    },
    /// The database cannot be asked right now, or the lane to it is full.
    Unavailable(StoreError),
    /// A lane of this process is full.
    Busy,
    /// Something that must not happen did; the cause is for the log.
    Internal(String),
}

/// A refusal with everything both tiers of the answer need.
#[derive(Debug)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// `error` of a JSON answer; pages do not show it.
    pub error: TokenErrorCode,
    /// Its code and description go out.
    pub reason: Reason,
    /// For the log alone.
    pub detail: Option<String>,
    /// `WWW-Authenticate`, where the answer needs one.
    pub challenge: Option<&'static str>,
    /// The client concerned, once it is known who it is.
    pub client_id: Option<ClientId>,
}

impl Failure {
    /// A refusal of a malformed or disallowed request: 400 `invalid_request` unless `error` says more.
    pub fn refused(status: u16, error: TokenErrorCode, reason: Reason) -> Failure {
        Failure::Refused(Refusal { status, error, reason, detail: None, challenge: None, client_id: None })
    }

    /// The same failure, with the client it concerns.
    #[must_use]
    pub fn of_client(self, client_id: &ClientId) -> Failure {
        match self {
            Failure::Refused(refusal) => Failure::Refused(Refusal { client_id: Some(client_id.clone()), ..refusal }),
            other @ (Failure::Authorize(_)
            | Failure::Throttled { .. }
            | Failure::Unavailable(_)
            | Failure::Busy
            | Failure::Internal(_)) => other,
        }
    }

    /// 400 `invalid_request`, or the page of that status.
    pub fn bad_request(reason: Reason) -> Failure {
        Failure::refused(400, TokenErrorCode::InvalidRequest, reason)
    }
}

impl From<TokenError> for Failure {
    /// Token errors are 400 (RFC 6749 §5.2); client authentication sets its own status.
    fn from(error: TokenError) -> Failure {
        Failure::refused(400, error.code, error.reason)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Unavailable(error)
    }
}

impl From<AuthorizeError> for Failure {
    fn from(error: AuthorizeError) -> Failure {
        Failure::Authorize(error)
    }
}
