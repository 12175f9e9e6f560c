//! A provider's metadata as we need it (OpenID Connect Discovery 1.0 §3, §4.3): where to send people and requests, and
//! what is spoken there. What is wrong with a document is said in words, as operators read it.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::super::client::SigningAlgorithm;
use super::super::discovery::{CONFIGURATION_PATH, endpoint_url};
use super::super::web_url::WebUrl;
use super::shown;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamMetadata {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    /// `token_endpoint_auth_methods_supported`: how a client_secret goes there; `None` where none can.
    pub authentication: Option<SecretTransport>,
    /// Whether it says that clients without a secret are served (`none` among those methods).
    pub serves_public_clients: bool,
    /// `id_token_signing_alg_values_supported`, as far as we verify them; never empty.
    pub algorithms: Vec<SigningAlgorithm>,
    /// `authorization_response_iss_parameter_supported` (RFC 9207 §3)
    pub announces_iss: bool,
    /// `prompt_values_supported` (Initiating User Registration via OpenID Connect 1.0); `None` where it does not say.
    pub prompt_values: Option<BTreeSet<String>>,
}

const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

/// How a client_secret goes to the token endpoint (RFC 6749 §2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretTransport {
    Basic,
    Post,
}

/// What is wrong with a document. `Display` is for the log and for operators; what the document says is escaped in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataProblem {
    NoObject,
    Missing(&'static str),
    Malformed(&'static str),
    OtherIssuer {
        registered: String,
        found: String,
    },
    /// A member is no address that is spoken to; the rule it breaks.
    Address(&'static str, &'static str),
    /// No algorithm of theirs is one of ours.
    NoAlgorithm,
    NoCodeFlow,
    /// PKCE is served, but not with S256.
    NoS256,
}

/// Where the document of an issuer is (OpenID Connect Discovery 1.0 §4).
pub fn address(issuer: &str) -> String {
    endpoint_url(issuer, CONFIGURATION_PATH)
}

/// Reads the document of the provider that is registered with `issuer`.
pub fn read(document: &Value, issuer: &str) -> Result<UpstreamMetadata, MetadataProblem> {
    let members = document.as_object().ok_or(MetadataProblem::NoObject)?;
    let found = text(members, "issuer")?.ok_or(MetadataProblem::Missing("issuer"))?;
    if found != issuer {
        return Err(MetadataProblem::OtherIssuer { registered: issuer.to_owned(), found: found.to_owned() });
    }
    check_flow(members)?;
    Ok(UpstreamMetadata {
        authorization_endpoint: required_endpoint(members, "authorization_endpoint")?,
        token_endpoint: required_endpoint(members, "token_endpoint")?,
        jwks_uri: required_endpoint(members, "jwks_uri")?,
        userinfo_endpoint: endpoint(members, "userinfo_endpoint")?,
        end_session_endpoint: endpoint(members, "end_session_endpoint")?,
        authentication: authentication(members)?,
        serves_public_clients: list(members, AUTH_METHODS)?.is_some_and(|methods| methods.contains(&"none")),
        algorithms: algorithms(members)?,
        announces_iss: flag(members, "authorization_response_iss_parameter_supported")?,
        prompt_values: list(members, "prompt_values_supported")?
            .map(|values| values.into_iter().map(str::to_owned).collect()),
    })
}

fn check_flow(members: &Map<String, Value>) -> Result<(), MetadataProblem> {
    // Required, and yet some leave it out; a list without the one flow that we speak is plain enough.
    if list(members, "response_types_supported")?.is_some_and(|types| !types.contains(&"code")) {
        return Err(MetadataProblem::NoCodeFlow);
    }
    if list(members, "code_challenge_methods_supported")?.is_some_and(|methods| !methods.contains(&"S256")) {
        return Err(MetadataProblem::NoS256);
    }
    Ok(())
}

/// Absent means client_secret_basic.
fn authentication(members: &Map<String, Value>) -> Result<Option<SecretTransport>, MetadataProblem> {
    let Some(methods) = list(members, AUTH_METHODS)? else {
        return Ok(Some(SecretTransport::Basic));
    };
    let known = [("client_secret_basic", SecretTransport::Basic), ("client_secret_post", SecretTransport::Post)];
    Ok(known.into_iter().find(|(name, _)| methods.contains(name)).map(|(_, transport)| transport))
}

/// RS256 must be among them, so it is what absence means.
fn algorithms(members: &Map<String, Value>) -> Result<Vec<SigningAlgorithm>, MetadataProblem> {
    let names = list(members, "id_token_signing_alg_values_supported")?.unwrap_or_else(|| vec!["RS256"]);
    let ours: Vec<SigningAlgorithm> =
        SigningAlgorithm::ALL.into_iter().filter(|algorithm| names.contains(&algorithm.as_str())).collect();
    if ours.is_empty() { Err(MetadataProblem::NoAlgorithm) } else { Ok(ours) }
}

fn required_endpoint(members: &Map<String, Value>, name: &'static str) -> Result<String, MetadataProblem> {
    endpoint(members, name)?.ok_or(MetadataProblem::Missing(name))
}

fn endpoint(members: &Map<String, Value>, name: &'static str) -> Result<Option<String>, MetadataProblem> {
    let Some(url) = text(members, name)? else { return Ok(None) };
    match WebUrl::parse(url) {
        Ok(parsed) if parsed.is_protected() => Ok(Some(url.to_owned())),
        Ok(_) => Err(MetadataProblem::Address(name, "must be https")),
        Err(rule) => Err(MetadataProblem::Address(name, rule)),
    }
}

/// A member that is null counts as absent.
fn present<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn text<'a>(members: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, MetadataProblem> {
    present(members, name).map(|value| value.as_str().ok_or(MetadataProblem::Malformed(name))).transpose()
}

fn list<'a>(members: &'a Map<String, Value>, name: &'static str) -> Result<Option<Vec<&'a str>>, MetadataProblem> {
    let Some(value) = present(members, name) else { return Ok(None) };
    let texts = value.as_array().and_then(|values| values.iter().map(Value::as_str).collect());
    texts.ok_or(MetadataProblem::Malformed(name)).map(Some)
}

fn flag(members: &Map<String, Value>, name: &'static str) -> Result<bool, MetadataProblem> {
    present(members, name).map_or(Ok(false), |value| value.as_bool().ok_or(MetadataProblem::Malformed(name)))
}

impl fmt::Display for MetadataProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetadataProblem::NoObject => formatter.write_str("the discovery document is no JSON object"),
            MetadataProblem::Missing(name) => write!(formatter, "the discovery document has no {name}"),
            MetadataProblem::Malformed(name) => {
                write!(formatter, "{name} in the discovery document is not of the kind it must be")
            }
            MetadataProblem::OtherIssuer { registered, found } => write!(
                formatter,
                "the discovery document is of the issuer {}, and {} is registered: both must be the same, byte for byte",
                shown(found),
                shown(registered)
            ),
            MetadataProblem::Address(name, rule) => write!(formatter, "{name} in the discovery document {rule}"),
            MetadataProblem::NoAlgorithm => {
                formatter.write_str("it signs ID tokens with none of RS256, ES256 and EdDSA, which are verified here")
            }
            MetadataProblem::NoCodeFlow => formatter.write_str("it does not serve response_type code"),
            MetadataProblem::NoS256 => formatter.write_str("it serves PKCE without the method S256"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://login.example.com/realms/corp";

    fn document() -> Value {
        json!({
            "issuer": ISSUER, "authorization_endpoint": "https://login.example.com/auth",
            "token_endpoint": "https://login.example.com/token", "jwks_uri": "https://login.example.com/keys",
            "response_types_supported": ["code", "id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"]
        })
    }

    fn with(name: &str, value: Value) -> Value {
        let mut document = document();
        document[name] = value;
        document
    }

    fn read_with(name: &str, value: Value) -> Result<UpstreamMetadata, MetadataProblem> {
        read(&with(name, value), ISSUER)
    }

    #[test]
    fn the_least_there_must_be_is_enough() {
        let expected = UpstreamMetadata {
            authorization_endpoint: String::from("https://login.example.com/auth"),
            token_endpoint: String::from("https://login.example.com/token"),
            jwks_uri: String::from("https://login.example.com/keys"),
            userinfo_endpoint: None,
            end_session_endpoint: None,
            authentication: Some(SecretTransport::Basic),
            serves_public_clients: false,
            algorithms: vec![SigningAlgorithm::Rs256],
            announces_iss: false,
            prompt_values: None,
        };
        assert_eq!(read(&document(), ISSUER), Ok(expected));
    }

    #[test]
    fn the_document_is_below_the_issuer() {
        let expected = "https://login.example.com/realms/corp/.well-known/openid-configuration";
        assert_eq!(address(ISSUER), expected);
        assert_eq!(address(&format!("{ISSUER}/")), expected);
        assert_eq!(address("https://a.example"), "https://a.example/.well-known/openid-configuration");
    }

    #[test]
    fn an_issuer_is_the_registered_one_byte_for_byte() {
        for found in [
            "https://login.example.com/realms/corp/",
            "https://LOGIN.example.com/realms/corp",
            "http://login.example.com/realms/corp",
            "https://login.example.com:443/realms/corp",
            "https://login.example.com/realms/%63orp",
            "https://login.microsoftonline.com/{tenantid}/v2.0",
            "",
        ] {
            let registered = String::from(ISSUER);
            let problem = MetadataProblem::OtherIssuer { registered, found: String::from(found) };
            assert_eq!(read_with("issuer", json!(found)), Err(problem), "{found}");
        }
        let told = read_with("issuer", json!("evil\u{1b}[31m")).unwrap_err().to_string();
        assert!(told.contains(ISSUER) && told.contains("evil\\u{1b}[31m"), "{told}");
        let long = read_with("issuer", json!("x".repeat(100_000))).unwrap_err().to_string();
        assert!(long.len() < 1_000, "{}", long.len());
    }

    #[test]
    fn what_is_missing_or_malformed_is_named() {
        for name in ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"] {
            assert_eq!(read_with(name, json!(null)), Err(MetadataProblem::Missing(name)));
            let mut without = document();
            without.as_object_mut().unwrap().remove(name);
            assert_eq!(read(&without, ISSUER), Err(MetadataProblem::Missing(name)));
            assert_eq!(read_with(name, json!(7)), Err(MetadataProblem::Malformed(name)));
        }
        for (name, value) in [
            ("userinfo_endpoint", json!([])),
            ("end_session_endpoint", json!(true)),
            ("response_types_supported", json!("code")),
            ("id_token_signing_alg_values_supported", json!(["RS256", 7])),
            ("token_endpoint_auth_methods_supported", json!({})),
            ("code_challenge_methods_supported", json!("S256")),
            ("prompt_values_supported", json!("login")),
            ("authorization_response_iss_parameter_supported", json!("true")),
        ] {
            assert_eq!(read_with(name, value), Err(MetadataProblem::Malformed(name)));
        }
        for document in [json!(null), json!([]), json!("x"), json!(1)] {
            assert_eq!(read(&document, ISSUER), Err(MetadataProblem::NoObject));
        }
    }

    #[test]
    fn addresses_that_others_could_read_on_the_way_are_refused() {
        for name in
            ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint", "end_session_endpoint"]
        {
            for url in
                "http://login.example.com/x|http://10.0.0.1/x|http://127.0.0.1.evil.example/x|//login.example.com/x|\
                /token|file:///etc/passwd|javascript:alert(1)|https://user@login.example.com/x|\
                https://login.example.com/x#y|https://login.example.com\\x|"
                    .split('|')
            {
                let problem = read_with(name, json!(url)).unwrap_err();
                assert!(matches!(problem, MetadataProblem::Address(named, _) if named == name), "{name} {url}");
            }
            assert!(read_with(name, json!("http://127.0.0.1:8080/x")).is_ok());
        }
    }

    #[test]
    fn the_secret_goes_by_the_header_where_it_can() {
        for (methods, expected) in [
            (json!(null), Some(SecretTransport::Basic)),
            (json!(["client_secret_post", "client_secret_basic"]), Some(SecretTransport::Basic)),
            (json!(["private_key_jwt", "client_secret_post"]), Some(SecretTransport::Post)),
            (json!(["private_key_jwt", "none"]), None),
            (json!(["CLIENT_SECRET_BASIC"]), None),
            (json!([]), None),
        ] {
            let read = read_with("token_endpoint_auth_methods_supported", methods.clone()).unwrap();
            assert_eq!(read.authentication, expected, "{methods}");
        }
    }

    #[test]
    fn only_algorithms_that_both_know_count() {
        let read = |names: Value| read_with("id_token_signing_alg_values_supported", names);
        assert_eq!(
            read(json!(["none", "HS256", "EdDSA", "PS256", "RS256"])).unwrap().algorithms,
            [SigningAlgorithm::Rs256, SigningAlgorithm::EdDsa]
        );
        assert_eq!(read(json!(null)).unwrap().algorithms, [SigningAlgorithm::Rs256]);
        for names in [json!([]), json!(["none"]), json!(["HS256", "RS512"]), json!(["rs256"])] {
            assert_eq!(read(names), Err(MetadataProblem::NoAlgorithm));
        }
    }

    #[test]
    fn a_provider_without_the_code_flow_or_s256_is_of_no_use() {
        let no_code = json!(["id_token", "code id_token"]);
        assert_eq!(read_with("response_types_supported", no_code), Err(MetadataProblem::NoCodeFlow));
        assert!(read_with("response_types_supported", json!(null)).is_ok());
        for methods in [json!([]), json!(["plain"]), json!(["s256"])] {
            assert_eq!(read_with("code_challenge_methods_supported", methods), Err(MetadataProblem::NoS256));
        }
        assert!(read_with("code_challenge_methods_supported", json!(["plain", "S256"])).is_ok());
    }

    proptest! {
        #[test]
        fn no_document_makes_it_panic(name in "issuer|jwks_uri|token_endpoint|[a-z_]{1,20}", text in ".{0,60}") {
            for value in [json!(text), json!([text]), json!({"x": text})] {
                if let Err(problem) = read_with(&name, value) {
                    prop_assert!(!problem.to_string().contains(char::is_control));
                }
            }
        }
    }
}
