//! What a provider answers: a code, with the browser it sends back (RFC 6749 §4.1.2, OpenID Connect
//! Core §3.1.2.6, RFC 9207); then its endpoints: tokens for the code (RFC 6749 §4.1.3, §5),
//! UserInfo, and e-mail addresses. A provider may also post the code (OAuth 2.0 Form Post Response
//! Mode). An answer that is not exactly what it should be is refused in
//! words that operators understand; nothing of it is repeated but error codes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{UpstreamProblem, shown};
use crate::registration::names::display_text;
use crate::upstream::Result;
use crate::words::identity_provider::IdentityProvider;
use crate::words::json::{JsonObject, Members, SetMember};
use crate::words::parameters::{self, Parameters};
use crate::words::secret::SecretText;

/// What is read of it; everything but `state`, which finds the round trip.
const READ: [&str; 5] = ["code", "error", "error_description", "iss", "state"];

/// The code; or why there is none. `issuer` is whose answer it must be (`None` for a provider that
/// has no issuer); it must say so where the metadata announces that. What upstream says in words is
/// not looked at.
pub fn code(
    parameters: &Parameters,
    issuer: Option<&str>,
    announces_iss: bool,
) -> Result<SecretText> {
    if parameters.refuse_repeated(&READ).is_err() {
        return not_believed("a parameter of the answer is repeated");
    }
    // Before anything else (RFC 9207 §2.4): an answer of another provider must not even be able to
    // fail as this one's.
    if let Some(issuer) = issuer {
        check_issuer(parameters, issuer, announces_iss)?;
    }
    match (
        bounded(parameters, "code", parameters::HANDLE)?,
        bounded(parameters, "error", parameters::OTHER)?,
    ) {
        (Some(code), None) => Ok(SecretText::new(code)),
        (None, Some("access_denied")) => Err(UpstreamProblem::Cancelled),
        (
            None,
            Some(
                "login_required"
                | "interaction_required"
                | "account_selection_required"
                | "consent_required",
            ),
        ) => Err(UpstreamProblem::LoginRequired),
        (None, Some(other)) => Err(answered_with(
            other,
            format!("the provider answered the request with {}", shown(other)),
        )),
        (Some(_), Some(_)) => not_believed("the answer has a code and an error"),
        (None, None) => not_believed("the answer has neither a code nor an error"),
    }
}

fn check_issuer(parameters: &Parameters, issuer: &str, announces_iss: bool) -> Result {
    match bounded(parameters, "iss", parameters::REDIRECT_URI)? {
        Some(sent) if sent == issuer => Ok(()),
        Some(other) => not_believed(&format!(
            "the answer is of another issuer (iss): {}",
            shown(other)
        )),
        None if announces_iss => {
            not_believed("the answer does not name its issuer (iss), as announced")
        }
        None => Ok(()),
    }
}

fn bounded<'a>(parameters: &'a Parameters, name: &str, most: usize) -> Result<Option<&'a str>> {
    let too_long = |_| UpstreamProblem::NotBelieved(format!("the answer's {name} is too long"));
    parameters.bounded(name, most).map_err(too_long)
}

fn not_believed<T>(cause: &str) -> Result<T> {
    Err(UpstreamProblem::not_believed(cause))
}

/// The most bytes that a provider may post.
const MOST_POSTED: usize = 4_096;
/// The names in `user`, which Apple posts beside the code, with the claims that they become.
const NAMES: [(&str, &str); 2] = [("firstName", "given_name"), ("lastName", "family_name")];

/// Which parameters of a posted answer go on. Of `user`, only the names do. `None` where the body
/// is too long, or no form.
pub fn passed_on(body: &[u8]) -> Option<Vec<(&'static str, String)>> {
    if body.len() > MOST_POSTED {
        return None;
    }
    let posted = Parameters::parse(body).ok()?;
    let mut passed = Vec::new();
    for name in ["code", "error", "iss", "state"] {
        passed.extend(posted.all(name).map(|value| (name, value.to_owned())));
    }
    let user = posted.single("user").ok().flatten();
    let user: Value = serde_json::from_str(user.unwrap_or_default()).unwrap_or_default();
    for (theirs, ours) in NAMES {
        let name = user.get("name").and_then(|name| name.text(theirs));
        passed.extend(
            name.filter(|name| is_name(name))
                .map(|name| (ours, name.to_owned())),
        );
    }
    Some(passed)
}

/// The names that were passed on. They came by the browser, so they are what the person says.
pub fn own_word(parameters: &Parameters) -> JsonObject {
    let mut said = JsonObject::new();
    for (_, claim) in NAMES {
        if let Ok(Some(name)) = parameters.single(claim)
            && is_name(name)
        {
            said.insert(claim.to_owned(), Value::from(name));
        }
    }
    said
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && display_text(text).is_ok()
}

/// `Authorization` with our client_secret: both halves are form-encoded before they are joined (RFC
/// 6749 §2.3.1).
pub fn basic(client_id: &str, secret: &SecretText) -> SecretText {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(client_id), encoded(secret.expose()));
    SecretText::new(format!("Basic {}", STANDARD.encode(pair)))
}

#[derive(Debug)]
pub struct UpstreamTokens {
    pub access_token: SecretText,
    pub id_token: Option<SecretText>,
}

/// Reads an answer of the token endpoint. `content_type` is given where older OAuth 2.0 providers
/// may answer as forms.
pub fn tokens(status: u16, content_type: Option<&str>, body: &[u8]) -> Result<UpstreamTokens> {
    let is_form = content_type.is_some_and(|said| is_media_type(said, FORM));
    let members: Option<JsonObject> = if is_form {
        form(body)
    } else {
        serde_json::from_slice(body).ok()
    };
    // An error has a body of its own, whatever its status: some answer 200.
    if let Some(error) = members.as_ref().and_then(|members| members.get("error")) {
        return Err(refused(status, error.as_str().unwrap_or_default()));
    }
    check_status(TOKEN_ENDPOINT, status)?;
    match members {
        Some(members) => bearer_tokens(&members),
        None => Err(unfit("answer is no JSON object")),
    }
}

const TOKEN_ENDPOINT: &str = "the token endpoint";

fn unfit(what: &str) -> UpstreamProblem {
    UpstreamProblem::Unusable(format!("{TOKEN_ENDPOINT}'s {what}"))
}

fn bearer_tokens(members: &JsonObject) -> Result<UpstreamTokens> {
    // Some leave it out, and most clients take the token then.
    let is_bearer_or_unsaid = match members.get("token_type") {
        None => true,
        Some(said) => said
            .as_str()
            .is_some_and(|said| said.eq_ignore_ascii_case("Bearer")),
    };
    if !is_bearer_or_unsaid {
        return Err(unfit("token_type is not Bearer"));
    }
    let access_token = members
        .filled("access_token")
        .filter(|token| is_bearer(token))
        .ok_or_else(|| unfit("answer has no access_token"))?;
    Ok(UpstreamTokens {
        access_token: SecretText::new(access_token),
        id_token: members.filled("id_token").map(SecretText::new),
    })
}

/// RFC 6750 §2.1, and no more than fits a header.
fn is_bearer(token: &str) -> bool {
    token.len() <= parameters::ASSERTION && token.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// Reads an answer that must be JSON of this kind: `kind` is what it is called.
pub fn json<T: DeserializeOwned>(
    endpoint: &str,
    kind: &str,
    status: u16,
    body: &[u8],
) -> Result<T> {
    check_status(endpoint, status)?;
    serde_json::from_slice(body)
        .map_err(|_| UpstreamProblem::Unusable(format!("{endpoint}'s answer is no JSON {kind}")))
}

fn check_status(endpoint: &str, status: u16) -> Result {
    let what = match status {
        200 => return Ok(()),
        300..=399 => format!("{endpoint} redirects (status {status}), which is not followed"),
        _ => format!("{endpoint} answered with status {status}"),
    };
    Err(if says_to_come_again(status) {
        UpstreamProblem::Unavailable(what)
    } else {
        UpstreamProblem::Unusable(what)
    })
}

/// Whether a status says that the same request may succeed later (RFC 9110 §15.5.9, §15.6; RFC 8470
/// §5.2; RFC 6585 §4).
pub fn says_to_come_again(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// The problem that an error code tells of (RFC 6749 §4.1.2.1).
fn answered_with(error: &str, cause: String) -> UpstreamProblem {
    match error {
        "server_error" | "temporarily_unavailable" => UpstreamProblem::Unavailable(cause),
        _ => UpstreamProblem::Unusable(cause),
    }
}

/// A code that is not taken there was not given to us, or was used; every other error is the
/// registration's fault or theirs.
fn refused(status: u16, error: &str) -> UpstreamProblem {
    let shown = shown(error);
    match error {
        "invalid_grant" | "bad_verification_code" => UpstreamProblem::NotBelieved(format!(
            "the token endpoint does not take the code: {shown}"
        )),
        "invalid_client" | "unauthorized_client" | "incorrect_client_credentials" => {
            UpstreamProblem::Unusable(format!(
                "the token endpoint does not take our client_id and client_secret: {shown}"
            ))
        }
        _ => {
            let cause = format!("the token endpoint answered with the error {shown}");
            if says_to_come_again(status) {
                UpstreamProblem::Unavailable(cause)
            } else {
                answered_with(error, cause)
            }
        }
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Whether `Content-Type` names this media type, with or without parameters.
pub fn is_media_type(content_type: &str, wanted: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(wanted)
}

/// `None` also where a member is there twice: it could be read in two ways.
fn form(body: &[u8]) -> Option<JsonObject> {
    let parameters = Parameters::parse(body).ok()?;
    let mut members = JsonObject::new();
    for (name, value) in parameters.iter() {
        let before = members.insert(name.to_owned(), Value::from(value));
        if before.is_some() {
            return None;
        }
    }
    Some(members)
}

/// Whether the addresses of an account at a provider without OpenID are to be asked for: the
/// registration maps one, or whether it is verified, and the userinfo answer has not got that.
pub fn wants_emails(provider: &IdentityProvider, user_info: &JsonObject) -> bool {
    let is_mapped = |name: &str| provider.claims.contains_key(name);
    let has_email = user_info.filled("email").is_some();
    let has_verified = user_info
        .get("email_verified")
        .is_some_and(Value::is_boolean);
    is_mapped("email") && !has_email || is_mapped("email_verified") && !(has_email && has_verified)
}

/// The userinfo answer with the primary one of these addresses (GitHub's `GET /user/emails`: an
/// array of `{"email", "primary", "verified"}`) in the place of its own: an address and whether it
/// is verified come from one source.
pub fn with_primary_email(mut user_info: JsonObject, addresses: &[JsonObject]) -> JsonObject {
    let primary = addresses
        .iter()
        .find(|address| address.get("primary") == Some(&Value::Bool(true)));
    let Some(primary) = primary else {
        return user_info;
    };
    let Some(email) = primary.filled("email") else {
        return user_info;
    };
    user_info.set("email", email);
    match primary.get("verified") {
        Some(Value::Bool(verified)) => {
            user_info.insert(String::from("email_verified"), Value::from(*verified))
        }
        Some(_) | None => user_info.remove("email_verified"),
    };
    user_info
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::authorize::authorize_request::fixtures::identity_provider;

    const ISSUER: Option<&str> = Some("https://up.example");

    fn read_code(query: &str, issuer: Option<&str>, announces_iss: bool) -> Result<String> {
        let parameters = Parameters::parse(query.as_bytes()).unwrap();
        code(&parameters, issuer, announces_iss).map(|code| code.expose().to_owned())
    }

    fn refused_code(query: &str, issuer: Option<&str>, announces_iss: bool) -> String {
        match read_code(query, issuer, announces_iss) {
            Err(UpstreamProblem::NotBelieved(cause)) => cause,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn of_what_is_posted_the_answer_goes_on_and_of_the_person_two_names() {
        let user = |user: &str| {
            let user: String = form_urlencoded::byte_serialize(user.as_bytes()).collect();
            format!("code=c&state=s&user={user}&id_token=t&session_state=x")
        };
        let name = |name: &str| user(&json!({"name": {"firstName": name}}).to_string());
        let only = |names: &[(&'static str, &'static str)]| {
            let answer = [("code", "c"), ("state", "s")];
            Some([&answer[..], names].concat())
        };
        let long = "x".repeat(201);
        for (body, expected) in [
            (
                user(r#"{"name":{"firstName":"<b>","lastName":"N"},"email":"e@x.example"}"#),
                only(&[("given_name", "<b>"), ("family_name", "N")]),
            ),
            (
                user(r#"{"name": {"lastName": "N", "firstName": 7}}"#),
                only(&[("family_name", "N")]),
            ),
            (name(" "), only(&[])),
            (name("a\u{202e}b"), only(&[])),
            (name("a\nb"), only(&[])),
            (name(&long), only(&[])),
            (name("Zo\u{eb}"), only(&[("given_name", "Zo\u{eb}")])),
            (user("no JSON"), only(&[])),
            (user(&"[".repeat(500)), only(&[])),
            (user("[]"), only(&[])),
            (user("{\"name\": \"N\"}"), only(&[])),
            (user(""), only(&[])),
            (String::from("code=c&state=s"), only(&[])),
            (
                String::from("code=c&state=s&user={}&user={}&given_name=G"),
                only(&[]),
            ),
            (
                String::from("state=s&error=e&error_description=d&iss=i&code=a&code=b"),
                Some(vec![
                    ("code", "a"),
                    ("code", "b"),
                    ("error", "e"),
                    ("iss", "i"),
                    ("state", "s"),
                ]),
            ),
            (String::new(), Some(Vec::new())),
            (String::from("code=%ff"), None),
            (format!("code={}", "c".repeat(4_092)), None),
        ] {
            let passed = passed_on(body.as_bytes());
            let read = passed.as_ref().map(|passed| {
                let pairs = passed.iter().map(|(name, value)| (*name, value.as_str()));
                pairs.collect::<Vec<_>>()
            });
            assert_eq!(read, expected, "{body}");
            let names = expected.into_iter().flatten();
            let names = names.filter(|(name, _)| name.ends_with("_name"));
            let said: JsonObject = names
                .map(|(name, said)| (name.to_owned(), json!(said)))
                .collect();
            let pairs = read.into_iter().flatten();
            assert_eq!(own_word(&Parameters::from_pairs(pairs)), said, "{body}");
        }
        let whole = format!("code={}", "c".repeat(4_091));
        assert!(passed_on(whole.as_bytes()).is_some());
        let twice = Parameters::from_pairs([("given_name", "A"), ("given_name", "B")]);
        assert_eq!(own_word(&twice), JsonObject::new());
    }

    #[test]
    fn addresses_are_asked_for_where_one_is_wanted_and_missing() {
        let wanted = |mapped: &[&str], user_info: Value| {
            let mut provider = identity_provider("hub", true);
            let mapped = mapped
                .iter()
                .map(|name| ((*name).to_owned(), (*name).to_owned()));
            provider.claims = mapped.collect();
            wants_emails(&provider, user_info.as_object().unwrap())
        };
        let (address, verified) = (&["email"][..], &["email_verified"][..]);
        for (mapped, user_info, is_wanted) in [
            (&[][..], json!({}), false),
            (address, json!({}), true),
            (address, json!({"email": ""}), true),
            (
                address,
                json!({"email": null, "email_verified": true}),
                true,
            ),
            (address, json!({"email": "a@hub.example"}), false),
            (verified, json!({"email": "a@hub.example"}), true),
            (verified, json!({"email_verified": true}), true),
            (
                verified,
                json!({"email": "a@hub.example", "email_verified": "true"}),
                true,
            ),
            (
                verified,
                json!({"email": "a@hub.example", "email_verified": false}),
                false,
            ),
        ] {
            assert_eq!(
                wanted(mapped, user_info.clone()),
                is_wanted,
                "{mapped:?} {user_info}"
            );
        }
    }

    #[test]
    fn a_redirect_is_told_as_one() {
        assert_eq!(check_status("the endpoint", 200), Ok(()));
        for (status, told) in [(302, "redirects (status 302)"), (404, "status 404")] {
            let Err(UpstreamProblem::Unusable(cause)) = check_status("the endpoint", status) else {
                panic!("{status} is fine")
            };
            assert!(cause.contains(told), "{cause}");
            assert_eq!(cause.contains("not followed"), status == 302, "{cause}");
        }
    }

    #[test]
    fn what_passes_by_itself_is_told_from_what_somebody_must_mend() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(says_to_come_again(status), "{status}");
            for body in ["<html>", r#"{"error": "slow_down_please"}"#] {
                let told = tokens(status, None, body.as_bytes());
                assert!(
                    matches!(told, Err(UpstreamProblem::Unavailable(_))),
                    "{status} {told:?}"
                );
            }
        }
        for status in [201, 204, 301, 400, 401, 403, 404, 405, 410, 415, 451] {
            assert!(!says_to_come_again(status), "{status}");
            let told = tokens(status, None, b"<html>");
            assert!(
                matches!(told, Err(UpstreamProblem::Unusable(_))),
                "{status} {told:?}"
            );
        }
        for (error, passes) in [
            ("server_error", true),
            ("temporarily_unavailable", true),
            ("invalid_client", false),
            ("invalid_request", false),
            ("unauthorized_client", false),
            ("invalid_scope", false),
            ("no_such_word", false),
        ] {
            let query = format!("error={error}&state=s");
            let by_browser = read_code(&query, None, false).unwrap_err();
            let body = json!({ "error": error }).to_string();
            let by_endpoint = tokens(400, None, body.as_bytes()).unwrap_err();
            for problem in [by_browser, by_endpoint] {
                let is_passing = matches!(problem, UpstreamProblem::Unavailable(_));
                let is_unusable = matches!(problem, UpstreamProblem::Unusable(_));
                assert_eq!((is_passing, is_unusable), (passes, !passes), "{problem:?}");
            }
        }
    }

    #[test]
    fn a_code_of_the_expected_issuer_is_taken() {
        for (query, issuer, announced) in [
            ("code=abc&state=s", ISSUER, false),
            (
                "code=abc&state=s&iss=https%3A%2F%2Fup.example",
                ISSUER,
                false,
            ),
            (
                "code=abc&state=s&iss=https%3A%2F%2Fup.example&session_state=x&session_state=y",
                ISSUER,
                true,
            ),
            ("code=abc&state=s&error=", ISSUER, false),
            ("code=abc&state=s&iss=https%3A%2F%2Fgithub.com", None, false),
            ("code=abc&state=s", None, false),
        ] {
            assert_eq!(
                read_code(query, issuer, announced),
                Ok(String::from("abc")),
                "{query}"
            );
        }
    }

    #[test]
    fn an_answer_of_another_issuer_is_not_believed_whatever_it_says() {
        for query in [
            "code=abc&iss=https%3A%2F%2Fevil.example",
            "code=abc&iss=https%3A%2F%2Fup.example%2F",
            "error=access_denied&iss=https%3A%2F%2Fevil.example",
            "code=a&iss=%1B%5B31m%0Aevil",
        ] {
            for announced in [false, true] {
                let cause = refused_code(query, ISSUER, announced);
                assert!(
                    cause.contains("another issuer") && !cause.contains(char::is_control),
                    "{cause}"
                );
            }
        }
        for query in ["code=abc", "code=abc&iss=", "error=access_denied"] {
            assert!(
                refused_code(query, ISSUER, true).contains("does not name its issuer"),
                "{query}"
            );
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_believed() {
        for query in [
            "",
            "state=s",
            "code=&state=s",
            "code=a&code=b",
            "code=a&code=a",
            "code=a&error=access_denied",
            "error=access_denied&error=login_required",
            "code=a&iss=https%3A%2F%2Fup.example&iss=https%3A%2F%2Fup.example",
            "code=a&state=x&state=y",
        ] {
            refused_code(query, ISSUER, false);
            refused_code(query, None, false);
        }
        for (query, most) in [
            ("code=", parameters::HANDLE),
            ("error=", parameters::OTHER),
            ("code=a&iss=", 2_000),
        ] {
            assert!(
                refused_code(&format!("{query}{}", "x".repeat(most + 1)), ISSUER, false)
                    .contains("too long")
            );
        }
    }

    const FORM: Option<&str> = Some("application/x-www-form-urlencoded; charset=utf-8");

    /// The access token, or why there is none.
    fn read(status: u16, content_type: Option<&str>, body: &str) -> String {
        match tokens(status, content_type, body.as_bytes()) {
            Ok(tokens) => tokens.access_token.expose().to_owned(),
            Err(UpstreamProblem::Unavailable(cause) | UpstreamProblem::Unusable(cause)) => cause,
            Err(UpstreamProblem::NotBelieved(cause)) => format!("not believed: {cause}"),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_halves_of_the_header_are_form_encoded() {
        let header = basic("a b:c%", &SecretText::new("p+\u{df}:"));
        let pair = STANDARD
            .decode(header.expose().strip_prefix("Basic ").unwrap())
            .unwrap();
        assert_eq!(pair, b"a+b%3Ac%25:p%2B%C3%9F%3A");
    }

    #[test]
    fn tokens_are_read_from_json_and_where_allowed_from_forms() {
        let as_form = "access_token=gho_x&scope=user%3Aemail&token_type=bearer";
        for (content_type, body, expected) in [
            (
                None,
                r#"{"access_token": "at", "token_type": "bearer", "expires_in": 60}"#,
                "at",
            ),
            (
                Some("application/json"),
                r#"{"access_token": "at", "token_type": "Bearer"}"#,
                "at",
            ),
            (None, r#"{"access_token": "at"}"#, "at"),
            (FORM, as_form, "gho_x"),
            (
                None,
                as_form,
                "the token endpoint's answer is no JSON object",
            ),
            (
                Some("text/plain"),
                as_form,
                "the token endpoint's answer is no JSON object",
            ),
            (
                FORM,
                "access_token=a&access_token=b&token_type=bearer",
                "the token endpoint's answer is no JSON object",
            ),
            (
                Some("application/json"),
                "<html>",
                "the token endpoint's answer is no JSON object",
            ),
            (
                FORM,
                "error=bad_verification_code&error_description=x",
                "not believed: the token endpoint does not take the code: \"bad_verification_code\"",
            ),
        ] {
            assert_eq!(
                read(200, content_type, body),
                expected,
                "{content_type:?} {body}"
            );
        }
    }

    #[test]
    fn an_error_is_one_whatever_its_status_and_only_its_code_is_told() {
        for status in [200, 400, 401, 500] {
            for (error, words) in [
                (
                    json!("invalid_grant"),
                    "not believed: the token endpoint does not take the code: \"invalid_grant\"",
                ),
                (
                    json!("invalid_client"),
                    "does not take our client_id and client_secret: \"invalid_client\"",
                ),
                (
                    json!("incorrect_client_credentials"),
                    "does not take our client_id",
                ),
                (json!("x\u{1b}[31m\n"), "with the error \"x\\u{1b}[31m\\n\""),
                (json!({"code": 7}), "with the error"),
            ] {
                let body = json!({"error": error, "error_description": "secret words", "access_token": "x", "token_type": "Bearer"});
                let told = read(status, None, &body.to_string());
                assert!(
                    told.contains(words) && !told.contains("secret words"),
                    "{status}: {told}"
                );
            }
        }
    }

    /// Beside what `tests/service/federation_hostile.rs` has them answer.
    #[test]
    fn what_is_no_answer_is_refused_in_words() {
        let of =
            |access_token: Value| json!({"access_token": access_token, "token_type": "Bearer"});
        for (status, answer, words) in [
            (201, of(json!("at")), "status 201"),
            (
                200,
                json!({"access_token": "at", "token_type": ""}),
                "token_type is not Bearer",
            ),
            (
                200,
                json!({"access_token": "at", "token_type": "DPoP"}),
                "token_type is not Bearer",
            ),
            (
                200,
                json!({"access_token": "at", "token_type": ["Bearer"]}),
                "token_type is not Bearer",
            ),
            (200, of(json!("")), "no access_token"),
            (200, of(json!("a\r\nX-Evil: 1")), "no access_token"),
            (200, of(json!("x".repeat(20_000))), "no access_token"),
        ] {
            let told = read(status, None, &answer.to_string());
            assert!(told.contains(words), "{status}: {told}");
        }
    }

    #[test]
    fn the_primary_address_is_taken_with_its_own_flag_and_no_other() {
        let (own, address) = (
            json!({"email": "own@b.example", "email_verified": true}),
            "a@b.example",
        );
        for (addresses, expected) in [
            (json!([]), own.clone()),
            (
                json!([{"email": address, "primary": false, "verified": true}]),
                own.clone(),
            ),
            (json!([{"email": address, "verified": true}]), own.clone()),
            (
                json!([{"email": address, "primary": "true", "verified": true}]),
                own.clone(),
            ),
            (
                json!([{"email": null, "primary": true, "verified": true}]),
                own.clone(),
            ),
            (
                json!([{"email": "", "primary": true, "verified": true}]),
                own.clone(),
            ),
            (
                json!([{"email": address, "primary": true, "verified": "true"}]),
                json!({"email": address}),
            ),
            (
                json!([{"email": "x@b.example", "primary": false, "verified": true}, {"email": address, "primary": true, "verified": false}]),
                json!({"email": address, "email_verified": false}),
            ),
        ] {
            let read: Vec<JsonObject> =
                json("it", "array", 200, addresses.to_string().as_bytes()).unwrap();
            let taken = with_primary_email(own.as_object().unwrap().clone(), &read);
            assert_eq!(Value::Object(taken), expected, "{addresses}");
        }
        for (status, body) in [
            (404, "[]"),
            (302, "[]"),
            (200, "{}"),
            (200, "[1]"),
            (200, "null"),
            (200, "<html>"),
        ] {
            let read: Result<Vec<JsonObject>, _> = json("it", "array", status, body.as_bytes());
            assert!(
                matches!(read, Err(UpstreamProblem::Unusable(_))),
                "{status} {body}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..80), status in 100_u16..600, form in any::<bool>()) {
            let _ = tokens(status, FORM.filter(|_| form), &body);
        }
    }
}
