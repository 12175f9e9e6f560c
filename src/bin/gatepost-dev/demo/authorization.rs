//! The front channel: what the demo asks at the authorization endpoint, and how it judges what
//! comes back. Pure.

use form_urlencoded::Serializer;
use sha2::{Digest, Sha256};

use super::json_web_token::base64url;
use super::{RelyingParty, Setback};

/// What the links on the demo's first page may add to a request; anything else is left out.
const PROMPTS: [&str; 4] = ["login", "consent", "select_account", "none"];
const RESPONSE_MODES: [&str; 1] = ["form_post"];

/// What a sign-in asks for by itself, of what the client may: a page about three things is read.
const USUAL_SCOPES: [&str; 4] = ["openid", "profile", "roles", "orders.read"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// The client that asks.
    pub(super) client_id: String,
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) code_verifier: String,
}

impl Attempt {
    /// The three values tie an answer to this browser and this sign-in.
    pub(super) fn new(
        client_id: &str,
        random: impl Fn() -> Result<String, Setback>,
    ) -> Result<Attempt, Setback> {
        Ok(Attempt {
            client_id: client_id.to_owned(),
            state: random()?,
            nonce: random()?,
            code_verifier: random()?,
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SignInRequest {
    pub(super) client_id: Option<String>,
    /// Everything that the client may ask for, and not only [`USUAL_SCOPES`].
    asks_for_everything: bool,
    prompt: Option<String>,
    response_mode: Option<String>,
}

impl SignInRequest {
    pub(super) fn from_query(query: &str) -> SignInRequest {
        let mut request = SignInRequest::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "client_id" => request.client_id = Some(value.into_owned()),
                "scope" => request.asks_for_everything = value == "all",
                "prompt" if PROMPTS.contains(&value.as_ref()) => {
                    request.prompt = Some(value.into_owned())
                }
                "response_mode" if RESPONSE_MODES.contains(&value.as_ref()) => {
                    request.response_mode = Some(value.into_owned());
                }
                _ => {}
            }
        }
        request
    }
}

/// OpenID Connect Core §3.1.2.1, with a PKCE challenge (RFC 7636 §4.2).
pub(super) fn url(
    authorization_endpoint: &str,
    relying_party: &RelyingParty,
    attempt: &Attempt,
    request: &SignInRequest,
) -> String {
    let registered = relying_party.scope.split(' ');
    let is_asked = |scope: &&str| request.asks_for_everything || USUAL_SCOPES.contains(scope);
    let scope: Vec<&str> = registered.filter(is_asked).collect();
    let mut query = Serializer::new(String::new());
    query
        .append_pair("client_id", &relying_party.client_id)
        .append_pair("response_type", "code")
        .append_pair("scope", &scope.join(" "))
        .append_pair("redirect_uri", &relying_party.redirect_uri())
        .append_pair("state", &attempt.state)
        .append_pair("nonce", &attempt.nonce)
        .append_pair(
            "code_challenge",
            &base64url(&Sha256::digest(attempt.code_verifier.as_bytes())),
        )
        .append_pair("code_challenge_method", "S256");
    for (name, value) in [
        ("prompt", &request.prompt),
        ("response_mode", &request.response_mode),
    ] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{authorization_endpoint}?{}", query.finish())
}

/// OpenID Connect RP-Initiated Logout §2, with the ID token as proof that it is the visitor's.
pub(super) fn end_session_url(
    end_session_endpoint: &str,
    relying_party: &RelyingParty,
    id_token: &str,
) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("id_token_hint", id_token).append_pair(
        "post_logout_redirect_uri",
        &relying_party.post_logout_redirect_uri(),
    );
    format!("{end_session_endpoint}?{}", query.finish())
}

/// The authorization response, not yet believed.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) state: String,
    iss: String,
    code: String,
    error: String,
    error_description: String,
}

impl Answer {
    /// From a query or a form body; what is absent stays empty.
    pub(super) fn parse(parameters: &str) -> Answer {
        let mut answer = Answer::default();
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            let field = match name.as_ref() {
                "state" => &mut answer.state,
                "iss" => &mut answer.iss,
                "code" => &mut answer.code,
                "error" => &mut answer.error,
                "error_description" => &mut answer.error_description,
                _ => continue,
            };
            *field = value.into_owned();
        }
        answer
    }

    /// The code, once the answer is known to come from `issuer` (RFC 9207 §2.4). The caller has
    /// matched `state`.
    pub(super) fn code(self, issuer: &str) -> Result<String, Setback> {
        if self.iss != issuer {
            return Err(Setback::new(
                "The answer comes from somebody else",
                "Its `iss` parameter does not name the provider that was asked.",
            ));
        }
        if !self.error.is_empty() {
            return Err(Setback::new(
                &format!("The provider answered: {}", self.error),
                self.error_description,
            ));
        }
        if self.code.is_empty() {
            return Err(Setback::new(
                "The answer has no code",
                "There is neither a `code` nor an `error` in it.",
            ));
        }
        Ok(self.code)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::relying_party;
    use super::*;

    fn attempt() -> Attempt {
        // The verifier of RFC 7636, appendix B.
        Attempt {
            client_id: String::from("demo"),
            state: String::from("the-state"),
            nonce: String::from("the-nonce"),
            code_verifier: String::from("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        }
    }

    fn parameters(url: &str) -> BTreeMap<String, String> {
        let query = url.split_once('?').unwrap().1;
        form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    #[test]
    fn the_request_carries_pkce_state_and_nonce() {
        let url = url(
            "http://op/authorize",
            &relying_party("http://op"),
            &attempt(),
            &SignInRequest::default(),
        );
        let parameters = parameters(&url);
        assert_eq!(
            parameters["code_challenge"],
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        assert_eq!(parameters["code_challenge_method"], "S256");
        assert_eq!(parameters["state"], "the-state");
        assert_eq!(parameters["nonce"], "the-nonce");
        assert_eq!(parameters["redirect_uri"], "http://localhost:8081/callback");
        assert!(!parameters.contains_key("prompt") && !parameters.contains_key("code_verifier"));
    }

    #[test]
    fn only_known_wishes_are_passed_on() {
        let wishes = SignInRequest::from_query("prompt=login&response_mode=form_post");
        let parameters = parameters(&url(
            "http://op/a",
            &relying_party("http://op"),
            &attempt(),
            &wishes,
        ));
        assert_eq!(
            (
                parameters["prompt"].as_str(),
                parameters["response_mode"].as_str()
            ),
            ("login", "form_post")
        );
        let others =
            SignInRequest::from_query("prompt=anything&response_mode=fragment&scope=other");
        assert_eq!(others, SignInRequest::default());
    }

    #[test]
    fn a_code_is_taken_only_from_the_issuer_that_was_asked() {
        let answer = |text: &str| Answer::parse(text).code("http://op");
        assert_eq!(answer("code=c&iss=http%3A%2F%2Fop").unwrap(), "c");
        assert!(answer("code=c&iss=http%3A%2F%2Fevil").is_err());
        assert!(answer("code=c").is_err());
        assert!(answer("iss=http%3A%2F%2Fop").is_err());
    }

    #[test]
    fn an_error_is_shown_by_its_name() {
        let parameters = "error=access_denied&error_description=No.&iss=http%3A%2F%2Fop&code=c";
        let setback = Answer::parse(parameters).code("http://op").unwrap_err();
        assert!(setback.heading.contains("access_denied"));
        assert_eq!(setback.detail, "No.");
    }
}
