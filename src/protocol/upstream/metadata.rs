//! The part of a provider's metadata that we need (OpenID Connect Discovery 1.0 §3, §4.3): where
//! users and requests are sent, and what the provider supports. Errors are sentences for operators,
//! with quoted values escaped.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::discovery::{CONFIGURATION_PATH, endpoint_url};
use super::shown;
use crate::words::client::SigningAlgorithm;
use crate::words::json::JsonObject;
use crate::words::web_url::WebUrl;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpstreamMetadata {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    /// How the client secret is sent, by `token_endpoint_auth_methods_supported`. `None` where no
    /// method is one of ours.
    pub authentication: Option<SecretTransport>,
    /// Whether clients without a secret are served (`none` among those methods).
    pub serves_public_clients: bool,
    /// The algorithms of `id_token_signing_alg_values_supported` that we verify. Without any, no
    /// token of the provider is believed.
    pub algorithms: Vec<SigningAlgorithm>,
    /// `authorization_response_iss_parameter_supported` (RFC 9207 §3)
    pub announces_iss: bool,
    /// `prompt_values_supported` (Initiating User Registration via OpenID Connect 1.0). `None`
    /// where it is absent.
    pub prompt_values: Option<BTreeSet<String>>,
    /// `response_modes_supported`
    pub response_modes: Option<BTreeSet<String>>,
    /// `scopes_supported`
    pub scopes: Option<BTreeSet<String>>,
}

const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

/// How the client secret is sent to the token endpoint (RFC 6749 §2.3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SecretTransport {
    Basic,
    Post,
}

/// The address of an issuer's discovery document (OpenID Connect Discovery 1.0 §4).
pub fn address(issuer: &str) -> String {
    endpoint_url(issuer, CONFIGURATION_PATH)
}

pub fn read(document: &Value, issuer: &str) -> Result<UpstreamMetadata, String> {
    let members = document
        .as_object()
        .ok_or("the discovery document is no JSON object")?;
    check_issuer(members, issuer)?;
    check_flow(members)?;
    // Absent means client_secret_basic.
    let methods = list(members, AUTH_METHODS)?.unwrap_or_else(|| vec!["client_secret_basic"]);
    let algorithms = algorithms(members)?;
    let announces_iss = present(
        members,
        "authorization_response_iss_parameter_supported",
        Value::as_bool,
    )?;
    Ok(UpstreamMetadata {
        authorization_endpoint: required(members, "authorization_endpoint")?,
        token_endpoint: required(members, "token_endpoint")?,
        jwks_uri: required(members, "jwks_uri")?,
        userinfo_endpoint: endpoint(members, "userinfo_endpoint")?,
        end_session_endpoint: endpoint(members, "end_session_endpoint")?,
        authentication: transport(&methods),
        serves_public_clients: methods.contains(&"none"),
        algorithms,
        announces_iss: announces_iss.unwrap_or_default(),
        prompt_values: set(members, "prompt_values_supported")?,
        response_modes: set(members, "response_modes_supported")?,
        scopes: set(members, "scopes_supported")?,
    })
}

fn check_issuer(members: &JsonObject, issuer: &str) -> Result<(), String> {
    let found = text(members, "issuer")?.ok_or_else(|| missing("issuer"))?;
    if found == issuer {
        return Ok(());
    }
    Err(format!(
        "the discovery document is of the issuer {}, and {} is registered: both must be the \
         same, byte for byte",
        shown(found),
        shown(issuer)
    ))
}

/// The code flow with PKCE. `response_types_supported` is required, and still some providers leave
/// it out. A list without the one flow that we speak is refused.
fn check_flow(members: &JsonObject) -> Result<(), String> {
    let types = list(members, "response_types_supported")?;
    if types.is_some_and(|types| !types.contains(&"code")) {
        return Err(String::from("it does not serve response_type code"));
    }
    let methods = list(members, "code_challenge_methods_supported")?;
    if methods.is_some_and(|methods| !methods.contains(&"S256")) {
        return Err(String::from("it serves PKCE without the method S256"));
    }
    Ok(())
}

fn algorithms(members: &JsonObject) -> Result<Vec<SigningAlgorithm>, String> {
    // RS256 is mandatory, so absence means RS256.
    let names =
        list(members, "id_token_signing_alg_values_supported")?.unwrap_or_else(|| vec!["RS256"]);
    let known: Vec<SigningAlgorithm> = names
        .into_iter()
        .filter_map(SigningAlgorithm::from_others)
        .collect();
    let mut algorithms = SigningAlgorithm::ALL.to_vec();
    algorithms.retain(|algorithm| known.contains(algorithm));
    if algorithms.is_empty() {
        return Err(String::from(
            "it signs ID tokens with none of RS256, ES256 and EdDSA, which are verified here",
        ));
    }
    Ok(algorithms)
}

fn transport(methods: &[&str]) -> Option<SecretTransport> {
    if methods.contains(&"client_secret_basic") {
        Some(SecretTransport::Basic)
    } else if methods.contains(&"client_secret_post") {
        Some(SecretTransport::Post)
    } else {
        None
    }
}

fn missing(name: &str) -> String {
    format!("the discovery document has no {name}")
}

fn required(members: &JsonObject, name: &str) -> Result<String, String> {
    endpoint(members, name)?.ok_or_else(|| missing(name))
}

fn endpoint(members: &JsonObject, name: &str) -> Result<Option<String>, String> {
    let Some(url) = text(members, name)? else {
        return Ok(None);
    };
    match WebUrl::parse(url) {
        Ok(parsed) if parsed.is_protected() => Ok(Some(url.to_owned())),
        Ok(_) => Err(format!("{name} in the discovery document must be https")),
        Err(rule) => Err(format!("{name} in the discovery document {rule}")),
    }
}

fn text<'a>(members: &'a JsonObject, name: &str) -> Result<Option<&'a str>, String> {
    present(members, name, Value::as_str)
}

fn list<'a>(members: &'a JsonObject, name: &str) -> Result<Option<Vec<&'a str>>, String> {
    present(members, name, |value| {
        value.as_array()?.iter().map(Value::as_str).collect()
    })
}

fn set(members: &JsonObject, name: &str) -> Result<Option<BTreeSet<String>>, String> {
    let listed = list(members, name)?;
    Ok(listed.map(|values| values.into_iter().map(str::to_owned).collect()))
}

/// A member of the wanted type. `null` counts as absent.
fn present<'a, T>(
    members: &'a JsonObject,
    name: &str,
    of_kind: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = members.get(name).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let malformed = || format!("{name} in the discovery document is not of the kind it must be");
    of_kind(value).map(Some).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::words::samples::changed;

    const ISSUER: &str = "https://login.example.com/realms/corp";

    fn document() -> Value {
        json!({
            "issuer": ISSUER, "authorization_endpoint": "https://login.example.com/auth",
            "token_endpoint": "https://login.example.com/token", "jwks_uri": "https://login.example.com/keys",
            "response_types_supported": ["code", "id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"]
        })
    }

    fn read_with(name: &str, value: Value) -> Result<UpstreamMetadata, String> {
        read(&changed(document(), json!({ name: value })), ISSUER)
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
            let told = read_with("issuer", json!(found)).unwrap_err();
            assert!(
                told.contains(&format!(
                    "is of the issuer \"{found}\", and \"{ISSUER}\" is registered"
                )),
                "{told}"
            );
        }
        assert!(
            read_with("issuer", json!("x".repeat(100_000)))
                .unwrap_err()
                .len()
                < 1_000
        );
    }

    #[test]
    fn what_is_missing_or_malformed_is_named() {
        for name in [
            "issuer",
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
        ] {
            assert_eq!(read_with(name, json!(null)), Err(missing(name)));
            let mut null = document();
            null[name] = json!(null);
            assert_eq!(read(&null, ISSUER), Err(missing(name)));
        }
        for (name, value) in [
            ("issuer", json!(7)),
            ("token_endpoint", json!(7)),
            ("userinfo_endpoint", json!([])),
            ("response_types_supported", json!("code")),
            ("id_token_signing_alg_values_supported", json!(["RS256", 7])),
            ("token_endpoint_auth_methods_supported", json!({})),
            ("code_challenge_methods_supported", json!("S256")),
            ("prompt_values_supported", json!("login")),
            (
                "authorization_response_iss_parameter_supported",
                json!("true"),
            ),
        ] {
            assert!(
                read_with(name, value)
                    .unwrap_err()
                    .starts_with(&format!("{name} in the discovery document is not of"))
            );
        }
        for document in [json!(null), json!([]), json!("x"), json!(1)] {
            assert!(
                read(&document, ISSUER)
                    .unwrap_err()
                    .contains("no JSON object")
            );
        }
    }

    #[test]
    fn addresses_that_others_could_read_on_the_way_are_refused() {
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
            "userinfo_endpoint",
            "end_session_endpoint",
        ] {
            for url in
                "http://login.example.com/x|http://10.0.0.1/x|http://127.0.0.1.evil.example/x|//login.example.com/x|\
                /token|file:///etc/passwd|javascript:alert(1)|https://user@login.example.com/x|\
                https://login.example.com/x#y|https://login.example.com\\x|"
                    .split('|')
            {
                let problem = read_with(name, json!(url)).unwrap_err();
                assert!(problem.starts_with(&format!("{name} in the discovery document ")), "{name} {url}");
            }
            assert!(read_with(name, json!("http://127.0.0.1:8080/x")).is_ok());
        }
    }

    #[test]
    fn what_is_spoken_there_must_be_spoken_here() {
        for (methods, expected) in [
            (
                json!(["client_secret_post", "client_secret_basic"]),
                Some(SecretTransport::Basic),
            ),
            (
                json!(["private_key_jwt", "client_secret_post"]),
                Some(SecretTransport::Post),
            ),
            (json!(["private_key_jwt", "none"]), None),
            (json!(["CLIENT_SECRET_BASIC"]), None),
            (json!([]), None),
        ] {
            assert_eq!(
                read_with(AUTH_METHODS, methods.clone())
                    .unwrap()
                    .authentication,
                expected,
                "{methods}"
            );
        }
        let algorithms = "id_token_signing_alg_values_supported";
        let both = read_with(
            algorithms,
            json!(["none", "HS256", "EdDSA", "PS256", "RS256"]),
        )
        .unwrap()
        .algorithms;
        assert_eq!(both, [SigningAlgorithm::Rs256, SigningAlgorithm::EdDsa]);
        for names in [
            json!(["Ed25519"]),
            json!(["Ed25519", "EdDSA"]),
            json!(["Ed448", "Ed25519"]),
        ] {
            assert_eq!(
                read_with(algorithms, names).unwrap().algorithms,
                [SigningAlgorithm::EdDsa]
            );
        }
        assert_eq!(
            read_with(algorithms, json!(null)).unwrap().algorithms,
            [SigningAlgorithm::Rs256]
        );
        assert!(read_with("code_challenge_methods_supported", json!(["plain", "S256"])).is_ok());
        assert!(read_with("response_types_supported", json!(null)).is_ok());
        for (name, value, words) in [
            (algorithms, json!([]), "it signs ID tokens with none"),
            (
                algorithms,
                json!(["none", "HS256", "RS512", "rs256"]),
                "it signs ID tokens with none",
            ),
            (
                "response_types_supported",
                json!(["id_token", "code id_token"]),
                "response_type code",
            ),
            (
                "code_challenge_methods_supported",
                json!([]),
                "without the method S256",
            ),
            (
                "code_challenge_methods_supported",
                json!(["plain", "s256"]),
                "without the method S256",
            ),
        ] {
            assert!(
                read_with(name, value.clone()).unwrap_err().contains(words),
                "{name} {value}"
            );
        }
    }

    #[test]
    fn a_document_is_looked_for_below_its_issuer() {
        let expected = "https://login.example.com/realms/corp/.well-known/openid-configuration";
        assert_eq!(address(ISSUER), expected);
        assert_eq!(
            missing("jwks_uri"),
            "the discovery document has no jwks_uri"
        );
    }

    proptest! {
        #[test]
        fn no_document_makes_it_panic(name in "issuer|jwks_uri|token_endpoint|[a-z_]{1,20}", text in ".{0,60}") {
            for value in [json!(text), json!([text]), json!({"x": text})] {
                if let Err(problem) = read_with(&name, value) {
                    prop_assert!(!problem.contains(char::is_control));
                }
            }
        }
    }
}
