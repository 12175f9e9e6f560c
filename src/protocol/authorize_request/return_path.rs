//! Where an error goes, decided before anything else is known to be right: it travels as the success would have, as far as
//! the request lets one tell what that is.

use super::super::client::Client;
use super::super::identifiers::ClientId;
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
    pub(super) client_id: ClientId,
    pub(super) to: RedirectTarget,
    pub(super) mode: ResponseMode,
    pub(super) state: Option<String>,
    pub(super) silent: bool,
    pub(super) with_iss: bool,
}

impl ReturnPath {
    /// Finds the way back for a request of which only client and redirect URI are known to be right.
    pub(super) fn find(parameters: &Parameters, client: &Client, to: RedirectTarget) -> ReturnPath {
        let unverified = request_object::way_back(parameters);
        let mode = error_mode(parameters, &unverified, client, &to);
        let silent = parameters.single("prompt") == Ok(Some("none"));
        let (client_id, with_iss) = (client.client_id.clone(), client.iss_on_error);
        ReturnPath { client_id, mode, state: state(parameters, unverified), silent, with_iss, to }
    }

    /// Sends a refusal along this way.
    pub(super) fn refuse(self, refusal: Refusal) -> AuthorizeError {
        let Refusal { code, reason, detail } = refusal;
        let ReturnPath { client_id, to, mode, state, silent, with_iss } = self;
        AuthorizeError::Redirect { client_id, to, mode, state, silent, with_iss, code, reason, detail }
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

#[cfg(test)]
mod tests {
    use super::super::super::errors::AuthorizeErrorCode;
    use super::super::fixtures::*;
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    type Answer = (AuthorizeErrorCode, Reason, ResponseMode, Option<String>);

    fn answer_for(asked: &Asking, client: &Client) -> Answer {
        match asked.judged_for(client) {
            Err(AuthorizeError::Redirect { mode, state, code, reason, .. }) => (code, reason, mode, state),
            other => panic!("{asked:?}: {other:?}"),
        }
    }

    fn answer(asked: &Asking) -> Answer {
        answer_for(asked, &client())
    }

    fn type_and_mode(response_type: &str, response_mode: &str) -> Asking {
        asking().with("response_type", response_type).with("response_mode", response_mode)
    }

    #[test]
    fn success_takes_the_mode_asked_for_or_the_default() {
        let client = client();
        for (response_type, response_mode, expected) in [
            ("code", "", ResponseMode::Query),
            ("code", "query", ResponseMode::Query),
            ("code", "fragment", ResponseMode::Fragment),
            ("code", "form_post", ResponseMode::FormPost),
            ("code id_token", "", ResponseMode::Fragment),
            ("code token", "fragment", ResponseMode::Fragment),
            ("id_token", "form_post", ResponseMode::FormPost),
        ] {
            let request = type_and_mode(response_type, response_mode).judged_for(&client).unwrap();
            assert_eq!(request.response_mode, expected, "{response_type} {response_mode}");
        }
    }

    #[test]
    fn a_clients_default_mode_counts_only_where_it_is_legal() {
        let prefers = |mode| Client { default_response_mode: Some(mode), ..client() };
        let mode = |asked: Asking, client: &Client| asked.judged_for(client).unwrap().response_mode;
        assert_eq!(mode(type_and_mode("code", ""), &prefers(ResponseMode::Fragment)), ResponseMode::Fragment);
        assert_eq!(mode(type_and_mode("id_token", ""), &prefers(ResponseMode::FormPost)), ResponseMode::FormPost);
        assert_eq!(mode(type_and_mode("id_token", ""), &prefers(ResponseMode::Query)), ResponseMode::Fragment);
        assert_eq!(mode(type_and_mode("code", "query"), &prefers(ResponseMode::Fragment)), ResponseMode::Query);
    }

    #[test]
    fn a_missing_type_is_answered_in_the_mode_sent_or_in_the_query() {
        for (response_mode, expected) in [
            ("", ResponseMode::Query),
            ("query", ResponseMode::Query),
            ("fragment", ResponseMode::Fragment),
            ("form_post", ResponseMode::FormPost),
            ("web_message", ResponseMode::Query),
        ] {
            let (code, reason, mode, state) = answer(&type_and_mode("", response_mode));
            assert_eq!((code, reason), (AuthorizeErrorCode::InvalidRequest, Reason::MissingResponseType));
            assert_eq!((mode, state.as_deref()), (expected, Some("s-1")), "{response_mode}");
        }
    }

    #[test]
    fn an_unknown_type_that_names_a_token_is_not_answered_in_the_query() {
        for (response_type, response_mode, expected) in [
            ("none", "", ResponseMode::Query),
            ("none", "fragment", ResponseMode::Fragment),
            ("none", "form_post", ResponseMode::FormPost),
            ("none", "jwt", ResponseMode::Query),
            ("code code", "", ResponseMode::Query),
            ("tokens", "", ResponseMode::Query),
            ("token none", "", ResponseMode::Fragment),
            ("token none", "query", ResponseMode::Fragment),
            ("id_token id_token", "", ResponseMode::Fragment),
            ("id_token  token", "form_post", ResponseMode::FormPost),
            ("id_token x", "jwt", ResponseMode::Fragment),
        ] {
            let (code, _, mode, _) = answer(&type_and_mode(response_type, response_mode));
            assert_eq!(
                (code, mode),
                (AuthorizeErrorCode::UnsupportedResponseType, expected),
                "{response_type} {response_mode}"
            );
        }
    }

    #[test]
    fn an_illegal_mode_is_answered_in_the_types_own() {
        for (response_type, response_mode, reason, expected) in [
            ("code", "web_message", Reason::UnknownResponseMode, ResponseMode::Query),
            ("code", "QUERY", Reason::UnknownResponseMode, ResponseMode::Query),
            ("code", "query.jwt", Reason::UnknownResponseMode, ResponseMode::Query),
            ("token", "web_message", Reason::UnknownResponseMode, ResponseMode::Fragment),
            ("token", "query", Reason::IllegalResponseMode, ResponseMode::Fragment),
            ("id_token", "query", Reason::IllegalResponseMode, ResponseMode::Fragment),
            ("code id_token", "query", Reason::IllegalResponseMode, ResponseMode::Fragment),
            ("code token", "query", Reason::IllegalResponseMode, ResponseMode::Fragment),
        ] {
            let (code, told, mode, _) = answer(&type_and_mode(response_type, response_mode));
            assert_eq!(code, AuthorizeErrorCode::InvalidRequest);
            assert_eq!((told, mode), (reason, expected), "{response_type} {response_mode}");
        }
    }

    #[test]
    fn repeated_type_or_mode_is_answered_in_the_query() {
        for asked in [
            asking().also("response_type", "token"),
            type_and_mode("token", "").also("response_type", "id_token"),
            type_and_mode("code", "form_post").also("response_mode", "form_post"),
            type_and_mode("code", "form_post").also("response_type", "code"),
        ] {
            let (code, reason, mode, state) = answer(&asked);
            assert_eq!((code, reason), (AuthorizeErrorCode::InvalidRequest, Reason::RepeatedParameter));
            assert_eq!((mode, state.as_deref()), (ResponseMode::Query, Some("s-1")), "{asked:?}");
        }
    }

    #[test]
    fn a_repeated_or_overlong_state_is_not_given_back() {
        for asked in
            [asking().also("state", "s-2"), asking().also("state", "s-1"), asking().with("state", &"s".repeat(4097))]
        {
            let (code, _, _, state) = answer(&asked.with("response_mode", "fragment"));
            assert_eq!((code, state), (AuthorizeErrorCode::InvalidRequest, None));
        }
        assert_eq!(answer(&asking().without("state").with("scope", "nope")).3, None);
        assert_eq!(answer(&asking().with("scope", "nope")).3.as_deref(), Some("s-1"));
    }

    #[test]
    fn no_form_is_posted_to_a_custom_scheme() {
        let app = public_client(&["com.example.app:/cb"]);
        let asked = type_and_mode("code", "form_post").with("redirect_uri", "com.example.app:/cb");
        let (code, reason, mode, _) = answer_for(&asked, &app);
        assert_eq!(
            (code, reason, mode),
            (AuthorizeErrorCode::InvalidRequest, Reason::IllegalResponseMode, ResponseMode::Query)
        );
        assert_eq!(answer_for(&asked.clone().without("response_type"), &app).2, ResponseMode::Query);
        let prefers_forms = Client { default_response_mode: Some(ResponseMode::FormPost), ..app };
        assert_eq!(
            asked.without("response_mode").judged_for(&prefers_forms).unwrap().response_mode,
            ResponseMode::Query
        );
    }

    fn jws(payload: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.", part(r#"{"alg":"none"}"#), part(payload))
    }

    #[test]
    fn a_request_object_is_refused_where_its_sender_listens() {
        let bare = asking().without("state");
        let object = jws(
            r#"{"state":"inside","response_mode":"form_post","redirect_uri":"https://evil.example/","response_type":"token"}"#,
        );
        let (code, _, mode, state) = answer(&bare.clone().with("request", &object));
        assert_eq!(
            (code, mode, state.as_deref()),
            (AuthorizeErrorCode::RequestNotSupported, ResponseMode::FormPost, Some("inside"))
        );
        // What the query says wins, and nothing but these two is read.
        let (_, _, mode, state) = answer(&asking().with("response_mode", "fragment").with("request", &object));
        assert_eq!((mode, state.as_deref()), (ResponseMode::Fragment, Some("s-1")));
        let (code, _, mode, _) =
            answer(&bare.clone().without("response_type").with("request", &jws(r#"{"response_type":"token"}"#)));
        assert_eq!((code, mode), (AuthorizeErrorCode::RequestNotSupported, ResponseMode::Query));
        assert_eq!(answer(&asking().also("state", "s-2").with("request", &object)).3, None);
    }

    #[test]
    fn a_request_that_is_no_jws_says_nothing() {
        let bare = asking().without("state");
        let valid = jws(r#"{"state":"inside"}"#);
        let overlong_state = jws(&format!(r#"{{"state":"{}"}}"#, "s".repeat(4097)));
        let large = jws(&format!(r#"{{"state":"inside","x":"{}"}}"#, "x".repeat(16 * 1024)));
        for object in [
            "x",
            "..",
            "a.b.c",
            &valid.replace('.', ""),
            &format!("{valid}.x"),
            &format!("{valid}!"),
            &format!("x{valid}"),
            &jws("[]"),
            &jws(r#"{"state":5}"#),
            &jws(r#"{"state":"a\u0000b"}"#),
            &overlong_state,
            &large,
        ] {
            let (code, _, mode, state) = answer(&bare.clone().with("request", object));
            assert_eq!(
                (code, mode, state),
                (AuthorizeErrorCode::RequestNotSupported, ResponseMode::Query, None),
                "{object}"
            );
        }
        // Two objects contradict each other; one that is not refused for itself is never read.
        assert_eq!(answer(&bare.clone().with("request", &valid).also("request", "x")).3, None);
        let (code, _, _, state) = answer(&bare.with("request_uri", "https://rp1.example/r#x"));
        assert_eq!((code, state), (AuthorizeErrorCode::RequestUriNotSupported, None));
    }

    #[test]
    fn request_objects_come_before_every_other_fault() {
        let broken = asking().without("response_type").without("scope").also("nonce", "n-2");
        assert_eq!(answer(&broken.clone().with("request", "x")).0, AuthorizeErrorCode::RequestNotSupported);
        assert_eq!(answer(&broken.clone().with("request_uri", "x")).0, AuthorizeErrorCode::RequestUriNotSupported);
        assert_eq!(
            answer(&broken.with("request_uri", "x").with("request", "x")).0,
            AuthorizeErrorCode::RequestNotSupported
        );
    }
}
