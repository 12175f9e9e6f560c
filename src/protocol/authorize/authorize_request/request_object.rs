//! Requests as JWTs, by value (`request`) or by reference (`request_uri`; OpenID Connect Core §6).
//! Both are refused. To ignore them would lose the parameters in them. A refused `request` is read
//! only for how the refusal travels back: its `state` and `response_mode`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::AuthorizeRefusal;
use crate::words::json::{JsonObject, Members};
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{AuthorizeErrorCode, Reason};

/// What a refused request object says about the way back. It was not verified.
pub(crate) struct UnverifiedWayBack {
    pub(crate) state: Option<String>,
    pub(crate) response_mode: Option<String>,
}

pub(crate) fn refuse(parameters: &Parameters) -> Result<(), AuthorizeRefusal> {
    if was_filled(parameters, "request") {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::RequestNotSupported,
            Reason::RequestObjectUnsupported,
        ));
    }
    if was_filled(parameters, "request_uri") {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::RequestUriNotSupported,
            Reason::RequestUriUnsupported,
        ));
    }
    Ok(())
}

/// Reads `state` and `response_mode` from a `request` that has the form of a JWS. Anything else
/// gives neither.
pub(crate) fn way_back(parameters: &Parameters) -> UnverifiedWayBack {
    let request = parameters
        .single("request")
        .ok()
        .flatten()
        .filter(|request| request.len() <= parameters::ASSERTION);
    let payload = request.and_then(payload).unwrap_or_default();
    // The same limits as for `state` in a query.
    let sendable =
        |state: &String| !state.contains('\0') && state.chars().count() <= parameters::STATE;
    UnverifiedWayBack {
        state: payload.filled("state").map(str::to_owned).filter(sendable),
        response_mode: payload.filled("response_mode").map(str::to_owned),
    }
}

fn was_filled(parameters: &Parameters, name: &str) -> bool {
    parameters.all(name).any(|value| !value.is_empty())
}

fn payload(jws: &str) -> Option<JsonObject> {
    let mut parts = jws.split('.');
    let header = parts.next()?;
    let payload = parts.next()?;
    let signature = parts.next()?;
    let is_jws = parts.next().is_none()
        && object(header).is_some()
        && URL_SAFE_NO_PAD.decode(signature).is_ok();
    if is_jws { object(payload) } else { None }
}

fn object(part: &str) -> Option<JsonObject> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
