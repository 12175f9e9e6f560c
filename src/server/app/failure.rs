//! Why a request failed, on its way to the one place that turns it into an answer.

use std::time::Duration;

use crate::http::Response;
use gatepost_protocol::authorize::authorize_request::AuthorizeError;
use gatepost_protocol::registration::DocumentProblem;
use gatepost_protocol::token::extension_grant;
use gatepost_protocol::token::userinfo::{BearerFailure, TokenScheme};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use gatepost_store::StoreError;

/// What a request needs; or why it failed.
pub type Result<T = (), E = Failure> = core::result::Result<T, E>;

/// What a handler returns instead of a response. `dispatch` makes a page or a JSON object of it,
/// and the log line.
#[derive(Debug)]
pub enum Failure {
    Refused(Refusal),
    /// An authorization request was refused: a page, or an error that travels to the client.
    Authorize(AuthorizeError),
    /// An access token is not what is needed: none with the scope that is named.
    Unadmitted {
        failure: BearerFailure,
        scheme: TokenScheme,
        scope: &'static str,
    },
    /// A document of what is registered has these mistakes.
    MistakenDocument(Vec<DocumentProblem>),
    /// An extension grant said no, in its own words where it has some.
    RefusedByGrant(extension_grant::GrantRefusal),
    /// Too many wrong guesses; come back later.
    Throttled {
        reason: Reason,
        retry_after: Duration,
    },
    /// The answer itself, made where it is known what the person can do.
    Answered(Box<Response>),
    /// The database cannot be asked right now, or the lane to it is full.
    Unavailable(StoreError),
    /// What must be stored could not be, whatever the cause: the client must come again, so 503.
    /// This is for revocations (RFC 7009 §2.2.1), and for the keys of sessions.
    NotStored(StoreError),
    Busy,
    /// A fault of ours, or of an extension. The cause goes to the log.
    Internal(String),
    /// A failure whose answer has a header more: it sets or removes a cookie, or gives a nonce.
    WithHeader {
        name: &'static str,
        value: String,
        failure: Box<Failure>,
    },
    About {
        client_id: ClientId,
        /// The grant type it asked for, at the token endpoint.
        grant: Option<String>,
        failure: Box<Failure>,
    },
}

/// A refusal with everything both tiers of the answer need.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    /// `error` of a JSON answer; pages do not show it.
    pub error: TokenErrorCode,
    pub reason: Reason,
    /// For the log alone.
    pub detail: Option<String>,
    pub challenge: Option<&'static str>,
}

impl Failure {
    /// A refusal of a malformed or disallowed request: 400 `invalid_request` unless `error` says
    /// more.
    pub fn refused(status: u16, error: TokenErrorCode, reason: Reason) -> Failure {
        Failure::Refused(Refusal {
            status,
            error,
            reason,
            detail: None,
            challenge: None,
        })
    }

    /// The same failure, with what its log line and its answer must say about the request.
    #[must_use]
    pub fn about(self, client_id: &ClientId, grant: Option<&str>) -> Failure {
        Failure::About {
            client_id: client_id.clone(),
            grant: grant.map(str::to_owned),
            failure: Box::new(self),
        }
    }

    /// 400 `invalid_request`, or the page of that status.
    pub fn bad_request(reason: Reason) -> Failure {
        Failure::refused(400, TokenErrorCode::InvalidRequest, reason)
    }
}

/// Why something did not come about.
pub enum Stopped<R> {
    /// It was judged, and is refused. Whoever asked says how that is answered.
    Refused(R),
    /// It could not be judged.
    Failed(Failure),
}

impl<R> Stopped<R> {
    /// Why it is refused, where it was judged.
    pub fn refusal(self) -> Result<R> {
        match self {
            Stopped::Refused(refusal) => Ok(refusal),
            Stopped::Failed(failure) => Err(failure),
        }
    }

    /// The same, refused for what `describe` makes of it.
    pub fn map<S>(self, describe: impl FnOnce(R) -> S) -> Stopped<S> {
        match self {
            Stopped::Refused(refusal) => Stopped::Refused(describe(refusal)),
            Stopped::Failed(failure) => Stopped::Failed(failure),
        }
    }
}

impl<R, F: Into<Failure>> From<F> for Stopped<R> {
    fn from(failure: F) -> Stopped<R> {
        Stopped::Failed(failure.into())
    }
}

impl From<TokenError> for Failure {
    /// Token errors are 400 (RFC 6749 §5.2); client authentication sets its own status.
    fn from(error: TokenError) -> Failure {
        let TokenError {
            code,
            reason,
            detail,
        } = error;
        Failure::Refused(Refusal {
            status: 400,
            error: code,
            reason,
            detail,
            challenge: None,
        })
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Failure {
        Failure::bad_request(reason)
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
