//! The authorization response (RFC 6749 §4.1.2, OAuth 2.0 Multiple Response Type Encoding
//! Practices, RFC 9207): its parameters, and the encoder that puts them into a redirect or a form.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::words::reason::AuthorizeErrorCode;
use crate::words::redirect_uri::RedirectTarget;
use crate::words::response_type::ResponseMode;
use crate::words::scope::ScopeSet;
use crate::words::secret::SecretText;

/// All characters but the unreserved ones of RFC 3986 §2.3. A space becomes `%20`, which every
/// decoder understands; not all understand `+`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub type ResponseParameters = Vec<(&'static str, String)>;

#[derive(Default)]
pub struct Issued {
    pub code: Option<SecretText>,
    pub id_token: Option<SecretText>,
    pub access_token: Option<FrontChannelAccessToken>,
}

pub struct FrontChannelAccessToken {
    pub access_token: SecretText,
    pub expires_in: u64,
    pub scope: ScopeSet,
}

/// What a success tells the client, in the order in which it is sent.
pub struct AuthorizeSuccess<'a> {
    pub issued: &'a Issued,
    pub state: Option<&'a str>,
    /// OpenID Connect Session Management §2. Only for requests with `openid`.
    pub session_state: Option<&'a str>,
    pub issuer: &'a str,
}

impl AuthorizeSuccess<'_> {
    pub fn parameters(&self) -> ResponseParameters {
        let Issued {
            code,
            id_token,
            access_token,
        } = self.issued;
        let mut parameters = ResponseParameters::new();
        let code = code.as_ref().map(SecretText::expose);
        add(&mut parameters, "code", code);
        let id_token = id_token.as_ref().map(SecretText::expose);
        add(&mut parameters, "id_token", id_token);
        if let Some(token) = access_token {
            parameters.push(("access_token", token.access_token.expose().to_owned()));
            parameters.push(("token_type", "Bearer".to_owned()));
            parameters.push(("expires_in", token.expires_in.to_string()));
            parameters.push(("scope", token.scope.to_string()));
        }
        add(&mut parameters, "state", self.state);
        add(&mut parameters, "session_state", self.session_state);
        add(&mut parameters, "iss", Some(self.issuer));
        parameters
    }
}

/// What an error tells the client. `issuer` is `None` for clients that take an error with `iss` for
/// something else.
pub fn error_parameters(
    code: AuthorizeErrorCode,
    description: String,
    state: Option<&str>,
    issuer: Option<&str>,
) -> ResponseParameters {
    let mut parameters = vec![
        ("error", code.as_str().to_owned()),
        ("error_description", description),
    ];
    add(&mut parameters, "state", state);
    add(&mut parameters, "iss", issuer);
    parameters
}

fn add(parameters: &mut ResponseParameters, name: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        parameters.push((name, value.to_owned()));
    }
}

#[derive(PartialEq)]
pub enum Delivery {
    Redirect {
        location: String,
    },
    /// A page with a form that posts itself.
    Form {
        action: String,
        /// Names and values, not escaped.
        fields: ResponseParameters,
    },
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both hold codes and tokens.
        match self {
            Delivery::Redirect { .. } => formatter.write_str("Redirect([redacted])"),
            Delivery::Form { .. } => formatter.write_str("Form([redacted])"),
        }
    }
}

pub fn deliver(
    target: &RedirectTarget,
    mode: ResponseMode,
    parameters: ResponseParameters,
) -> Delivery {
    match mode {
        ResponseMode::Query => Delivery::Redirect {
            location: with_query(target.uri(), &parameters),
        },
        ResponseMode::Fragment => Delivery::Redirect {
            location: format!("{}#{}", target.uri(), encode(&parameters)),
        },
        ResponseMode::FormPost => Delivery::Form {
            action: target.uri().to_owned(),
            fields: parameters,
        },
    }
}

/// Adds parameters to the query of `uri`, which has no fragment. What stands in the query stays
/// byte for byte.
pub fn with_query(uri: &str, parameters: &[(&'static str, String)]) -> String {
    let separator = match uri.split_once('?') {
        _ if parameters.is_empty() => "",
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    [uri, separator, &encode(parameters)].concat()
}

fn encode(parameters: &[(&'static str, String)]) -> String {
    let mut text = String::with_capacity(1_024);
    for (name, value) in parameters {
        let before = if text.is_empty() { "" } else { "&" };
        text.extend([before, name, "="]);
        text.extend(utf8_percent_encode(value, ENCODED));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::authorize_request::fixtures::public_client;
    use super::*;
    use crate::words::parameters::Parameters;

    fn target(uri: &str) -> RedirectTarget {
        RedirectTarget::match_registered(uri, &public_client(&[uri])).unwrap()
    }

    fn location(uri: &str, mode: ResponseMode, parameters: &ResponseParameters) -> String {
        match deliver(&target(uri), mode, parameters.clone()) {
            Delivery::Redirect { location } => location,
            Delivery::Form { .. } => panic!("a form"),
        }
    }

    fn read(encoded: &str) -> Vec<(String, String)> {
        let parameters = Parameters::parse(encoded.as_bytes()).unwrap();
        parameters
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_success_names_what_is_issued_in_its_order_and_nothing_else() {
        let named = |issued: &Issued, state, session_state| {
            let success = AuthorizeSuccess {
                issued,
                state,
                session_state,
                issuer: "https://op.example",
            };
            let parameters = success.parameters();
            let parts = parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            parts.collect::<Vec<_>>().join(" ")
        };
        let secret = |text: &str| Some(SecretText::new(text));
        let code_alone = Issued {
            code: secret("c"),
            ..Issued::default()
        };
        assert_eq!(
            named(&code_alone, None, None),
            "code=c iss=https://op.example"
        );
        let all = Issued {
            id_token: secret("i"),
            access_token: Some(FrontChannelAccessToken {
                access_token: SecretText::new("a"),
                expires_in: 60,
                scope: ScopeSet::parse("openid").unwrap(),
            }),
            ..code_alone
        };
        assert_eq!(
            named(&all, Some("s"), Some("x")),
            "code=c id_token=i access_token=a token_type=Bearer expires_in=60 scope=openid \
             state=s session_state=x iss=https://op.example"
        );
    }

    #[test]
    fn an_error_names_state_and_issuer_where_the_client_is_told_them() {
        let named = |state, issuer| {
            let code = AuthorizeErrorCode::AccessDenied;
            let parameters = error_parameters(code, String::from("no"), state, issuer);
            let parts = parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            parts.collect::<Vec<_>>().join(" ")
        };
        let error = "error=access_denied error_description=no";
        assert_eq!(named(None, None), error);
        let both = named(Some("s"), Some("https://op.example"));
        assert_eq!(both, format!("{error} state=s iss=https://op.example"));
    }

    #[test]
    fn a_form_goes_to_the_target_with_its_parameters_and_shows_nothing_in_logs() {
        let one = vec![("code", "c0de".to_owned())];
        let uri = "https://rp1.example/cb?x=1";
        let form = deliver(&target(uri), ResponseMode::FormPost, one.clone());
        let expected = Delivery::Form {
            action: uri.to_owned(),
            fields: one.clone(),
        };
        assert_eq!(form, expected);
        let redirect = deliver(&target(uri), ResponseMode::Query, one);
        assert_eq!(
            format!("{form:?} {redirect:?}"),
            "Form([redacted]) Redirect([redacted])"
        );
    }

    #[test]
    fn an_existing_query_stays_byte_for_byte() {
        let one = vec![("a", "1".to_owned())];
        for (uri, expected) in [
            ("https://rp1.example/cb", "https://rp1.example/cb?a=1"),
            ("https://rp1.example", "https://rp1.example?a=1"),
            ("https://rp1.example/cb?", "https://rp1.example/cb?a=1"),
            (
                "https://rp1.example/cb?x=%20+y",
                "https://rp1.example/cb?x=%20+y&a=1",
            ),
            ("https://rp1.example/cb?x&", "https://rp1.example/cb?x&a=1"),
            (
                "https://rp1.example/cb?x=1?",
                "https://rp1.example/cb?x=1?&a=1",
            ),
            ("com.example.app:/cb", "com.example.app:/cb?a=1"),
        ] {
            assert_eq!(location(uri, ResponseMode::Query, &one), expected);
        }
        assert_eq!(
            with_query("https://rp1.example/cb", &[]),
            "https://rp1.example/cb"
        );
    }

    #[test]
    fn a_state_cannot_smuggle_a_parameter_a_fragment_or_a_header() {
        let state = "a&code=evil#x%25 \u{e9} \u{1f600}\r\nSet-Cookie: a=b;'\"<>\\+";
        let parameters = vec![("code", "good".to_owned()), ("state", state.to_owned())];
        for mode in [ResponseMode::Query, ResponseMode::Fragment] {
            let location = location("https://rp1.example/cb", mode, &parameters);
            assert!(
                location
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"\"'<>\\+".contains(&byte)),
                "{location}"
            );
            let (_, sent) = location.split_once(['?', '#']).unwrap();
            assert_eq!(
                read(sent),
                [
                    ("code".to_owned(), "good".to_owned()),
                    ("state".to_owned(), state.to_owned())
                ]
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(state in "[^\0]{0,64}", uri in "https://rp1\\.example/[a-z]{0,3}(\\?([a-z]=[0-9]&?){0,2})?") {
            let parameters = vec![("code", "c".to_owned()), ("state", state.clone())];
            let expected = [("code".to_owned(), "c".to_owned()), ("state".to_owned(), state)];
            let query = location(&uri, ResponseMode::Query, &parameters);
            prop_assert!(query.starts_with(&uri));
            let read_query = read(query.split_once('?').unwrap().1);
            prop_assert!(read_query.ends_with(&expected));
            let before = uri.split_once('?').map_or(0, |(_, query)| query.split('&').filter(|pair| !pair.is_empty()).count());
            prop_assert_eq!(read_query.len(), before + 2);
            let fragment = location(&uri, ResponseMode::Fragment, &parameters);
            let (before_fragment, after) = fragment.split_once('#').unwrap();
            prop_assert_eq!(before_fragment, uri);
            prop_assert_eq!(read(after), expected);
        }
    }
}
