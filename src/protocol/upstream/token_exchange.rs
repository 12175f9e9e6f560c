//! The code for tokens (RFC 6749 §4.1.3, §5), and UserInfo: what is sent, and how answers are read. An answer that is not
//! exactly what it should be is refused in words that operators understand; nothing of it is repeated but error codes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::super::lengths;
use super::super::parameters::Parameters;
use super::super::secret::SecretText;
use super::metadata::SecretTransport;
use super::{UpstreamProblem, shown};

#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    pub code: &'a SecretText,
    pub redirect_uri: &'a str,
    pub code_verifier: &'a SecretText,
    pub client_id: &'a str,
    /// `client_secret` and how it travels; without one we are a public client there.
    pub secret: Option<(&'a SecretText, SecretTransport)>,
}

impl TokenRequest<'_> {
    pub fn fields(&self) -> Vec<(&'static str, &str)> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", self.code.expose()),
            ("redirect_uri", self.redirect_uri),
            ("code_verifier", self.code_verifier.expose()),
        ];
        match self.secret {
            Some((_, SecretTransport::Basic)) => {}
            Some((secret, SecretTransport::Post)) => {
                fields.extend([("client_id", self.client_id), ("client_secret", secret.expose())]);
            }
            None => fields.push(("client_id", self.client_id)),
        }
        fields
    }

    /// `Authorization`: both halves are form-encoded before they are joined (RFC 6749 §2.3.1).
    pub fn authorization(&self) -> Option<SecretText> {
        let (secret, transport) = self.secret?;
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = || format!("{}:{}", encoded(self.client_id), encoded(secret.expose()));
        (transport == SecretTransport::Basic).then(|| SecretText::new(format!("Basic {}", STANDARD.encode(pair()))))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub content_type: Option<&'a str>,
    pub body: &'a [u8],
}

#[derive(Clone, Debug)]
pub struct UpstreamTokens {
    /// `access_token`: fit for an `Authorization` header.
    pub access_token: SecretText,
    pub id_token: Option<SecretText>,
}

/// Reads an answer of the token endpoint. `may_be_form`: older OAuth 2.0 providers answer as forms.
pub fn tokens(answer: &Answer<'_>, may_be_form: bool) -> Result<UpstreamTokens, UpstreamProblem> {
    let members = if may_be_form && is_form(answer.content_type) { form(answer) } else { json_object(answer) };
    // An error has a body of its own, whatever its status: some answer 200.
    if let Some(error) = members.as_ref().and_then(|members| members.get("error")) {
        return Err(refused(error.as_str().unwrap_or_default()));
    }
    check_status("the token endpoint", answer.status)?;
    let members = members.ok_or_else(|| unavailable("the token endpoint's answer is no JSON object"))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("Bearer")) {
        return Err(unavailable("the token endpoint's token_type is not Bearer"));
    }
    let access_token = text("access_token").filter(|token| is_bearer_token(token));
    let access_token = access_token.ok_or_else(|| unavailable("the token endpoint's answer has no access_token"))?;
    Ok(UpstreamTokens { access_token: SecretText::new(access_token), id_token: text("id_token").map(SecretText::new) })
}

/// Reads an answer of the UserInfo endpoint.
pub fn user_info(answer: &Answer<'_>) -> Result<Map<String, Value>, UpstreamProblem> {
    check_status("the userinfo endpoint", answer.status)?;
    json_object(answer).ok_or_else(|| unavailable("the userinfo endpoint's answer is no JSON object"))
}

pub(super) fn check_status(endpoint: &str, status: u16) -> Result<(), UpstreamProblem> {
    match status {
        200 => Ok(()),
        300..=399 => Err(unavailable(&format!("{endpoint} redirects (status {status}), which is not followed"))),
        _ => Err(unavailable(&format!("{endpoint} answered with status {status}"))),
    }
}

/// A code that is not taken there was not given to us, or was used; every other error is the registration's fault or theirs.
fn refused(error: &str) -> UpstreamProblem {
    match error {
        "invalid_grant" | "bad_verification_code" => {
            UpstreamProblem::NotBelieved(format!("the token endpoint does not take the code: {}", shown(error)))
        }
        "invalid_client" | "unauthorized_client" | "incorrect_client_credentials" => {
            unavailable(&format!("the token endpoint does not take our client_id and client_secret: {}", shown(error)))
        }
        other => unavailable(&format!("the token endpoint answered with the error {}", shown(other))),
    }
}

pub(super) fn unavailable(cause: &str) -> UpstreamProblem {
    UpstreamProblem::Unavailable(cause.to_owned())
}

fn json_object(answer: &Answer<'_>) -> Option<Map<String, Value>> {
    serde_json::from_slice(answer.body).ok()
}

fn is_form(content_type: Option<&str>) -> bool {
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// `None` also where a member is there twice: it could be read in two ways.
fn form(answer: &Answer<'_>) -> Option<Map<String, Value>> {
    let parameters = Parameters::parse(answer.body).ok()?;
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name).collect();
    parameters.refuse_repeated(&names).ok()?;
    Some(parameters.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect())
}

/// RFC 6750 §2.1, and no more than fits a header.
fn is_bearer_token(token: &str) -> bool {
    token.len() <= lengths::ASSERTION && token.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

    fn request<'a>(secret: Option<(&'a SecretText, SecretTransport)>, code: &'a SecretText) -> TokenRequest<'a> {
        TokenRequest { code, redirect_uri: "https://op.example/cb", code_verifier: code, client_id: "a b:c%", secret }
    }

    fn read(status: u16, content_type: &str, body: &str, may_be_form: bool) -> Result<UpstreamTokens, UpstreamProblem> {
        tokens(&Answer { status, content_type: Some(content_type), body: body.as_bytes() }, may_be_form)
    }

    fn json_answer(status: u16, body: &Value) -> Result<UpstreamTokens, UpstreamProblem> {
        read(status, "application/json", &body.to_string(), false)
    }

    fn cause(read: Result<UpstreamTokens, UpstreamProblem>) -> String {
        match read {
            Err(UpstreamProblem::Unavailable(cause)) => cause,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_secret_travels_one_way_alone() {
        let (code, secret) = (SecretText::new("c"), SecretText::new("p+ß:"));
        let basic = request(Some((&secret, SecretTransport::Basic)), &code);
        let header = basic.authorization().unwrap();
        let pair = STANDARD.decode(header.expose().strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(pair, b"a+b%3Ac%25:p%2B%C3%9F%3A");
        assert!(!basic.fields().iter().any(|(name, _)| name.starts_with("client_")));
        let post = request(Some((&secret, SecretTransport::Post)), &code);
        assert!(post.authorization().is_none());
        assert_eq!(post.fields()[4..], [("client_id", "a b:c%"), ("client_secret", "p+ß:")]);
        let public = request(None, &code);
        assert!(public.authorization().is_none());
        assert_eq!(public.fields()[4..], [("client_id", "a b:c%")]);
        assert!(!format!("{basic:?}{post:?}").contains("p+ß"));
    }

    #[test]
    fn tokens_are_read_from_json_and_where_allowed_from_forms() {
        let both = json!({"access_token": "at", "token_type": "bearer", "id_token": "a.b.c", "expires_in": 60});
        let read_back = json_answer(200, &both).unwrap();
        assert_eq!((read_back.access_token.expose(), read_back.id_token.unwrap().expose()), ("at", "a.b.c"));
        let body = "access_token=gho_x&scope=user%3Aemail&token_type=bearer";
        assert_eq!(read(200, FORM, body, true).unwrap().access_token.expose(), "gho_x");
        assert!(cause(read(200, FORM, body, false)).contains("no JSON object"));
        assert!(cause(read(200, "text/plain", body, true)).contains("no JSON object"));
        let twice = "access_token=a&access_token=b&token_type=bearer";
        assert!(cause(read(200, FORM, twice, true)).contains("no JSON object"));
    }

    #[test]
    fn an_error_is_one_whatever_its_status() {
        for status in [200, 400, 401, 500] {
            for error in ["invalid_grant", "bad_verification_code"] {
                let answer = json!({"error": error, "error_description": "secret words", "access_token": "x", "token_type": "Bearer"});
                let Err(UpstreamProblem::NotBelieved(cause)) = json_answer(status, &answer) else { panic!("{status}") };
                assert!(cause.contains(error) && !cause.contains("secret words"), "{cause}");
            }
            for error in ["invalid_client", "incorrect_client_credentials"] {
                let told = cause(json_answer(status, &json!({"error": error})));
                assert!(told.contains("does not take our client_id"), "{told}");
            }
            let told = cause(json_answer(status, &json!({"error": "x\u{1b}[31m\n"})));
            assert!(told.contains("x\\u{1b}[31m\\n"), "{told}");
            assert!(cause(json_answer(status, &json!({"error": {"code": 7}}))).contains("with the error"));
        }
        assert!(matches!(
            read(200, FORM, "error=bad_verification_code&error_description=x", true),
            Err(UpstreamProblem::NotBelieved(_))
        ));
    }

    #[test]
    fn what_is_no_answer_is_refused_in_words() {
        let good = json!({"access_token": "at", "token_type": "Bearer"});
        let without = |name: &str| {
            let mut answer = good.clone();
            answer.as_object_mut().unwrap().remove(name);
            answer
        };
        for (status, answer, words) in [
            (302, good.clone(), "redirects (status 302), which is not followed"),
            (307, good.clone(), "redirects"),
            (500, good.clone(), "status 500"),
            (429, json!({}), "status 429"),
            (201, good.clone(), "status 201"),
            (200, json!([good.clone()]), "no JSON object"),
            (200, json!("x"), "no JSON object"),
            (200, without("token_type"), "token_type is not Bearer"),
            (200, json!({"access_token": "at", "token_type": "DPoP"}), "token_type is not Bearer"),
            (200, json!({"access_token": "at", "token_type": ["Bearer"]}), "token_type is not Bearer"),
            (200, without("access_token"), "no access_token"),
            (200, json!({"access_token": "", "token_type": "Bearer"}), "no access_token"),
            (200, json!({"access_token": 7, "token_type": "Bearer"}), "no access_token"),
            (200, json!({"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}), "no access_token"),
            (200, json!({"access_token": "x".repeat(20_000), "token_type": "Bearer"}), "no access_token"),
        ] {
            let told = cause(json_answer(status, &answer));
            assert!(told.contains(words), "{status}: {told}");
        }
        assert!(cause(read(200, "application/json", "<html>", true)).contains("no JSON object"));
    }

    #[test]
    fn user_info_is_an_object_and_nothing_else() {
        let read = |status, body: &str| {
            user_info(&Answer { status, content_type: Some("application/json"), body: body.as_bytes() })
        };
        assert_eq!(read(200, r#"{"sub": "u"}"#).unwrap().get("sub"), Some(&json!("u")));
        for (status, body) in
            [(200, "eyJhbGciOiJSUzI1NiJ9.e30.AA"), (200, "[]"), (200, ""), (301, "{}"), (401, "{}"), (204, "")]
        {
            assert!(matches!(read(status, body), Err(UpstreamProblem::Unavailable(_))), "{status} {body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..80), status in 100_u16..600, form in any::<bool>()) {
            let answer = Answer { status, content_type: Some(FORM), body: &body };
            let _ = tokens(&answer, form);
            let _ = user_info(&answer);
        }
    }
}
