//! How an error reaches the client. This is decided once client and redirect URI are known to be
//! right, and before anything else is checked. The error travels the way the success would have, as
//! far as the request shows what that is.

use super::request_object::{self, UnverifiedWayBack};
use crate::words::client::Client;
use crate::words::identifiers::ClientId;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::Reason;
use crate::words::redirect_uri::RedirectTarget;
use crate::words::response_type::{ResponseMode, ResponseType};

#[derive(Clone, Debug, PartialEq)]
pub struct ReturnPath {
    pub client_id: ClientId,
    pub to: RedirectTarget,
    /// `response_mode`, or the default that applies.
    pub mode: ResponseMode,
    /// `state`, which goes back byte for byte. `None` where it was repeated, too long or not sent.
    pub state: Option<String>,
    /// Whether the request said `prompt=none`. The client may wait for the answer in a frame then.
    pub silent: bool,
    /// Whether an error response has `iss` in it: the client's
    /// `authorization_response_iss_on_error`.
    pub with_iss: bool,
}

impl ReturnPath {
    /// Finds the way back. Only client and redirect URI were checked so far.
    pub(crate) fn find(parameters: &Parameters, client: &Client, to: RedirectTarget) -> ReturnPath {
        let unverified = request_object::way_back(parameters);
        let mode = error_mode(parameters, &unverified, client, &to);
        let silent = parameters.single("prompt") == Ok(Some("none"));
        let client_id = client.client_id.clone();
        let with_iss = client.iss_on_error;
        ReturnPath {
            client_id,
            mode,
            state: state(parameters, unverified),
            silent,
            with_iss,
            to,
        }
    }
}

/// The response mode for a known `response_type`: the requested one, else the client's default
/// where that is allowed with this type, else the default of the type.
pub(crate) fn choose_mode(
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
    if legal(&mode) {
        Ok(mode)
    } else {
        Err(Reason::IllegalResponseMode)
    }
}

/// A form cannot be posted to an installed application, so a custom scheme takes redirects only.
fn reaches(mode: ResponseMode, to: &RedirectTarget) -> bool {
    mode != ResponseMode::FormPost || !to.is_custom_scheme()
}

/// A `state` that was repeated or is too long does not go back.
fn state(parameters: &Parameters, unverified: UnverifiedWayBack) -> Option<String> {
    match parameters.bounded("state", parameters::STATE) {
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
    let (Ok(asked), Ok(response_type)) = (
        parameters.single("response_mode"),
        parameters.single("response_type"),
    ) else {
        return ResponseMode::Query;
    };
    let asked = asked.or(unverified.response_mode.as_deref());
    let words = response_type.unwrap_or_default();
    match ResponseType::parse(words) {
        Some(known) => choose_mode(asked, known, client, to)
            .unwrap_or_else(|_| ResponseMode::default_for(known)),
        None => mode_of_unknown_type(asked, words, to),
    }
}

/// The response mode for an unknown `response_type`. Tokens never travel in a query, and an unknown
/// type still shows whether it names one.
fn mode_of_unknown_type(asked: Option<&str>, words: &str, to: &RedirectTarget) -> ResponseMode {
    let names_tokens = words
        .split(' ')
        .any(|word| word == "token" || word == "id_token");
    let usable =
        |mode: &ResponseMode| reaches(*mode, to) && !(names_tokens && *mode == ResponseMode::Query);
    let fallback = if names_tokens {
        ResponseMode::Fragment
    } else {
        ResponseMode::Query
    };
    asked
        .and_then(ResponseMode::from_name)
        .filter(usable)
        .unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::fixtures::*;
    use super::super::{AuthorizeError, Ending};
    use super::ResponseMode::*;
    use super::*;
    use crate::words::reason::AuthorizeErrorCode as Code;

    type Answer = (Code, Reason, ResponseMode, Option<String>);

    fn answer_for(asked: &Asking, client: &Client) -> Answer {
        match asked.judged_for(client) {
            Err(AuthorizeError::Redirect(path, refusal)) => {
                (refusal.code, refusal.reason, path.mode, path.state)
            }
            other => panic!("{asked:?}: {other:?}"),
        }
    }

    fn answer(asked: &Asking) -> Answer {
        answer_for(asked, &client())
    }

    fn type_and_mode(response_type: &str, response_mode: &str) -> Asking {
        asking()
            .with("response_type", response_type)
            .with("response_mode", response_mode)
    }

    #[test]
    fn every_error_has_a_mode_and_none_about_tokens_goes_in_the_query() {
        let (missing, unknown_type) =
            (Reason::MissingResponseType, Reason::UnsupportedResponseType);
        let (unknown, illegal) = (Reason::UnknownResponseMode, Reason::IllegalResponseMode);
        for (response_type, response_mode, reason, expected) in [
            ("", "", missing, Query),
            ("", "query", missing, Query),
            ("", "fragment", missing, Fragment),
            ("", "form_post", missing, FormPost),
            ("", "web_message", missing, Query),
            ("none", "", unknown_type, Query),
            ("none", "fragment", unknown_type, Fragment),
            ("none", "form_post", unknown_type, FormPost),
            ("none", "jwt", unknown_type, Query),
            ("code code", "", unknown_type, Query),
            ("tokens", "", unknown_type, Query),
            ("token none", "", unknown_type, Fragment),
            ("token none", "query", unknown_type, Fragment),
            ("id_token id_token", "", unknown_type, Fragment),
            ("id_token  token", "form_post", unknown_type, FormPost),
            ("id_token x", "jwt", unknown_type, Fragment),
            ("code", "web_message", unknown, Query),
            ("code", "QUERY", unknown, Query),
            ("code", "query.jwt", unknown, Query),
            ("token", "web_message", unknown, Fragment),
            ("token", "query", illegal, Fragment),
            ("id_token", "query", illegal, Fragment),
            ("code id_token", "query", illegal, Fragment),
            ("code token", "query", illegal, Fragment),
        ] {
            let (code, error, mode, state) = answer(&type_and_mode(response_type, response_mode));
            let expected_code = if reason == unknown_type {
                Code::UnsupportedResponseType
            } else {
                Code::InvalidRequest
            };
            let case = format!("{response_type} {response_mode}");
            assert_eq!(
                (code, error, mode, state.as_deref()),
                (expected_code, reason, expected, Some("s-1")),
                "{case}"
            );
        }
    }

    #[test]
    fn what_is_repeated_is_answered_in_the_query_and_no_odd_state_given_back() {
        for asked in [
            asking().also("response_type", "token"),
            type_and_mode("token", "").also("response_type", "id_token"),
            type_and_mode("code", "form_post").also("response_mode", "form_post"),
            type_and_mode("code", "form_post").also("response_type", "code"),
        ] {
            let repeated = (
                Code::InvalidRequest,
                Reason::RepeatedParameter,
                Query,
                Some(String::from("s-1")),
            );
            assert_eq!(answer(&asked), repeated, "{asked:?}");
        }
        let states = [asking().also("state", "s-2"), asking().also("state", "s-1")];
        for asked in states
            .into_iter()
            .chain([asking().with("state", &"s".repeat(4097))])
        {
            let (code, _, _, state) = answer(&asked.with("response_mode", "fragment"));
            assert_eq!((code, state), (Code::InvalidRequest, None));
        }
        assert_eq!(
            answer(&asking().without("state").with("scope", "nope")).3,
            None
        );
    }

    #[test]
    fn no_form_is_posted_to_a_custom_scheme() {
        let app = public_client(&["com.example.app:/cb"]);
        let asked = type_and_mode("code", "form_post").with("redirect_uri", "com.example.app:/cb");
        let (code, reason, mode, _) = answer_for(&asked, &app);
        assert_eq!(
            (code, reason, mode),
            (Code::InvalidRequest, Reason::IllegalResponseMode, Query)
        );
        assert_eq!(
            answer_for(&asked.clone().without("response_type"), &app).2,
            Query
        );
        let prefers_forms = Client {
            default_response_mode: Some(FormPost),
            ..app
        };
        let judged = asked
            .without("response_mode")
            .judged_for(&prefers_forms)
            .unwrap();
        assert!(matches!(
            judged.ending,
            Ending::Client(ReturnPath { mode: Query, .. })
        ));
    }

    #[test]
    fn an_unread_request_object_says_no_more_than_a_query_could() {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let jws = |payload: &str| format!("{}.{}.", part(r#"{"alg":"none"}"#), part(payload));
        let of_state = |state: &str| jws(&format!(r#"{{"state":"{state}"}}"#));
        let (good, long, bare) = (
            of_state("inside"),
            "s".repeat(4097),
            asking().without("state"),
        );
        for (request, expected) in [
            (good.clone(), Some("inside")),
            (good.replace('.', ""), None),
            (format!("{good}.x"), None),
            (format!("x{good}"), None),
            (jws("[]"), None),
            (jws(r#"{"state":5}"#), None),
            (of_state(r"a\u0000b"), None),
            (of_state(&long), None),
            (
                jws(&format!(r#"{{"state":"inside","x":"{}"}}"#, long.repeat(4))),
                None,
            ),
        ] {
            let (code, _, _, state) = answer(&bare.clone().with("request", &request));
            assert_eq!(
                (code, state.as_deref()),
                (Code::RequestNotSupported, expected),
                "{request:.200}"
            );
        }
        assert_eq!(
            answer(&asking().with("request", &good)).3.as_deref(),
            Some("s-1"),
            "the query wins"
        );
        assert_eq!(
            answer(&bare.with("request", &good).also("request", "x")).3,
            None,
            "two contradict each other"
        );
    }
}
