//! Where an error goes, decided before anything else is known to be right: it travels as the success would have, as far as
//! the request lets one tell what that is.

use super::super::client::Client;
use super::super::lengths;
use super::super::parameters::Parameters;
use super::super::reason::Reason;
use super::super::redirect_uri::RedirectTarget;
use super::super::response_mode::ResponseMode;
use super::super::response_type::ResponseType;
use super::request_object::{self, UnverifiedWayBack};
use super::{AuthorizeError, Refusal};

/// The way back to the client.
pub(super) struct ReturnPath {
    pub(super) to: RedirectTarget,
    pub(super) mode: ResponseMode,
    pub(super) state: Option<String>,
}

impl ReturnPath {
    /// Finds the way back for a request of which only client and redirect URI are known to be right.
    pub(super) fn find(parameters: &Parameters, client: &Client, to: RedirectTarget) -> ReturnPath {
        let unverified = request_object::way_back(parameters);
        let mode = error_mode(parameters, &unverified, client, &to);
        ReturnPath { mode, state: state(parameters, unverified), to }
    }

    /// Sends a refusal along this way.
    pub(super) fn refuse(self, refusal: Refusal) -> AuthorizeError {
        let Refusal { code, reason, detail } = refusal;
        AuthorizeError::Redirect { to: self.to, mode: self.mode, state: self.state, code, reason, detail }
    }
}

/// The mode of an answer to a well-understood `response_type`: the one asked for, else the client's default where that is
/// legal, else the type's.
pub(super) fn choose_mode(
    asked: Option<&str>,
    response_type: ResponseType,
    client: &Client,
    to: &RedirectTarget,
) -> Result<ResponseMode, Reason> {
    let legal = |mode: &ResponseMode| mode.is_legal_for(response_type) && reaches(*mode, to);
    let Some(asked) = asked else {
        let preferred = client.default_response_mode.filter(legal);
        return Ok(preferred.unwrap_or_else(|| ResponseMode::default_for(response_type)));
    };
    let mode = ResponseMode::from_name(asked).ok_or(Reason::UnknownResponseMode)?;
    if legal(&mode) { Ok(mode) } else { Err(Reason::IllegalResponseMode) }
}

/// A form cannot be posted to an installed application.
fn reaches(mode: ResponseMode, to: &RedirectTarget) -> bool {
    mode != ResponseMode::FormPost || !to.is_custom_scheme()
}

/// A state that is repeated or too long is not given back at all.
fn state(parameters: &Parameters, unverified: UnverifiedWayBack) -> Option<String> {
    match parameters.bounded("state", lengths::STATE) {
        Ok(Some(state)) => Some(state.to_owned()),
        Ok(None) => unverified.state,
        Err(_) => None,
    }
}

fn error_mode(
    parameters: &Parameters,
    unverified: &UnverifiedWayBack,
    client: &Client,
    to: &RedirectTarget,
) -> ResponseMode {
    let (Ok(asked), Ok(response_type)) = (parameters.single("response_mode"), parameters.single("response_type"))
    else {
        return ResponseMode::Query;
    };
    let asked = asked.or(unverified.response_mode.as_deref());
    let words = response_type.unwrap_or_default();
    match ResponseType::parse(words) {
        Some(known) => choose_mode(asked, known, client, to).unwrap_or_else(|_| ResponseMode::default_for(known)),
        None => mode_of_unknown_type(asked, words, to),
    }
}

/// A type that cannot be read still shows whether it was about tokens, which never travel in a query.
fn mode_of_unknown_type(asked: Option<&str>, words: &str, to: &RedirectTarget) -> ResponseMode {
    let names_tokens = words.split(' ').any(|word| word == "token" || word == "id_token");
    let usable = |mode: &ResponseMode| reaches(*mode, to) && !(names_tokens && *mode == ResponseMode::Query);
    let fallback = if names_tokens { ResponseMode::Fragment } else { ResponseMode::Query };
    asked.and_then(ResponseMode::from_name).filter(usable).unwrap_or(fallback)
}
