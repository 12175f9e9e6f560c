//! The provider's metadata (OpenID Connect Discovery §3, RFC 8414 §2; one document serves both), made from the tables
//! that validate requests. Only names that are registered with IANA.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::client::{ClientAuthenticationMethod, GrantType, SigningAlgorithm};
use super::pkce::CodeChallengeMethod;
use super::response_mode::ResponseMode;
use super::response_type::ResponseType;
use super::scope::{Catalogue, RegisteredScope, ScopeKind};

/// Below the base URL's own path.
pub const AUTHORIZE_PATH: &str = "/connect/authorize";
pub const TOKEN_PATH: &str = "/connect/token";
pub const REVOCATION_PATH: &str = "/connect/revocation";
pub const INTROSPECTION_PATH: &str = "/connect/introspect";
pub const DEVICE_AUTHORIZATION_PATH: &str = "/connect/deviceauthorization";
pub const END_SESSION_PATH: &str = "/connect/endsession";
pub const USERINFO_PATH: &str = "/connect/userinfo";
pub const CHECK_SESSION_PATH: &str = "/connect/checksession";
pub const JWKS_PATH: &str = "/.well-known/openid-configuration/jwks";
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// It stands before the base URL's own path, not below it (RFC 8414 §3.1).
pub const AUTHORIZATION_SERVER_PATH: &str = "/.well-known/oauth-authorization-server";

/// Those the id_token has in its own name.
const PROTOCOL_CLAIMS: [&str; 12] =
    ["sub", "iss", "aud", "exp", "iat", "auth_time", "amr", "acr", "sid", "nonce", "at_hash", "c_hash"];

/// In the order of the metadata.
const PROMPT_VALUES: [&str; 4] = ["none", "login", "consent", "select_account"];

/// `None` where this build has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherEndpoints {
    pub revocation: Option<&'static str>,
    pub introspection: Option<&'static str>,
    pub device_authorization: Option<&'static str>,
    /// With it go the logout channels.
    pub end_session: Option<&'static str>,
    pub check_session: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Provider<'a> {
    /// Byte for byte; every address begins with it.
    pub issuer: &'a str,
    pub catalogue: &'a Catalogue,
    pub grant_types: &'a [GrantType],
    /// There is a key for each.
    pub signing_algorithms: &'a [SigningAlgorithm],
    pub authentication_methods: &'a [ClientAuthenticationMethod],
    pub acr_values: &'a [String],
    /// BCP 47
    pub ui_locales: &'a [&'a str],
    pub further_endpoints: FurtherEndpoints,
}

/// Below the issuer, whose last slash counts once.
pub fn endpoint_url(issuer: &str, path: &str) -> String {
    format!("{}{path}", issuer.trim_end_matches('/'))
}

pub fn document(provider: &Provider<'_>) -> Map<String, Value> {
    let mut metadata = Map::new();
    for (name, value) in endpoints(provider).into_iter().chain(capabilities(provider)).chain(flags(provider)) {
        if let Some(value) = value {
            metadata.insert(name.to_owned(), value);
        }
    }
    metadata
}

type Member = (&'static str, Option<Value>);

fn endpoints(provider: &Provider<'_>) -> Vec<Member> {
    let address = |path: &str| json!(endpoint_url(provider.issuer, path));
    let further = provider.further_endpoints;
    vec![
        ("issuer", Some(json!(provider.issuer))),
        ("authorization_endpoint", Some(address(AUTHORIZE_PATH))),
        ("token_endpoint", Some(address(TOKEN_PATH))),
        ("userinfo_endpoint", Some(address(USERINFO_PATH))),
        ("jwks_uri", Some(address(JWKS_PATH))),
        ("revocation_endpoint", further.revocation.map(address)),
        ("introspection_endpoint", further.introspection.map(address)),
        ("device_authorization_endpoint", further.device_authorization.map(address)),
        ("end_session_endpoint", further.end_session.map(address)),
        ("check_session_iframe", further.check_session.map(address)),
    ]
}

fn capabilities(provider: &Provider<'_>) -> Vec<Member> {
    let methods = json!(authentication_methods(provider.authentication_methods));
    let confidential = json!(authentication_methods(&confidential_only(provider.authentication_methods)));
    let further = provider.further_endpoints;
    // What signs here also verifies there; which of them a client may use is its registration's to say.
    let by_key = provider.authentication_methods.contains(&ClientAuthenticationMethod::PrivateKeyJwt);
    let assertions = by_key.then(|| texts(SigningAlgorithm::ALL.map(SigningAlgorithm::as_str)));
    vec![
        ("scopes_supported", Some(json!(scopes(provider.catalogue)))),
        ("claims_supported", Some(json!(claims(provider.catalogue)))),
        ("claim_types_supported", Some(json!(["normal"]))),
        ("subject_types_supported", Some(json!(["public"]))),
        ("response_types_supported", Some(texts(ResponseType::ALL))),
        ("response_modes_supported", Some(json!(ResponseMode::ALL.map(ResponseMode::as_str)))),
        ("grant_types_supported", Some(texts(grant_types(provider).map(GrantType::as_str)))),
        ("prompt_values_supported", Some(json!(PROMPT_VALUES))),
        ("code_challenge_methods_supported", Some(challenge_methods(provider.catalogue))),
        (
            "id_token_signing_alg_values_supported",
            Some(texts(provider.signing_algorithms.iter().map(|alg| alg.as_str()))),
        ),
        ("token_endpoint_auth_methods_supported", Some(methods.clone())),
        ("token_endpoint_auth_signing_alg_values_supported", assertions.clone()),
        ("revocation_endpoint_auth_methods_supported", further.revocation.map(|_| methods)),
        ("revocation_endpoint_auth_signing_alg_values_supported", further.revocation.and_then(|_| assertions.clone())),
        ("introspection_endpoint_auth_methods_supported", further.introspection.map(|_| confidential)),
        ("introspection_endpoint_auth_signing_alg_values_supported", further.introspection.and(assertions)),
        ("acr_values_supported", Some(json!(provider.acr_values))),
        ("ui_locales_supported", (!provider.ui_locales.is_empty()).then(|| json!(provider.ui_locales))),
    ]
}

fn flags(provider: &Provider<'_>) -> Vec<Member> {
    let logout = Some(json!(provider.further_endpoints.end_session.is_some()));
    vec![
        ("authorization_response_iss_parameter_supported", Some(json!(true))),
        ("claims_parameter_supported", Some(json!(true))),
        ("request_parameter_supported", Some(json!(false))),
        ("request_uri_parameter_supported", Some(json!(false))),
        ("frontchannel_logout_supported", logout.clone()),
        ("frontchannel_logout_session_supported", logout.clone()),
        ("backchannel_logout_supported", logout.clone()),
        ("backchannel_logout_session_supported", logout),
    ]
}

fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Value {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// Those of the token endpoint, and what stands for tokens straight from the authorization endpoint (RFC 7591 §2).
fn grant_types<'a>(provider: &Provider<'a>) -> impl Iterator<Item = &'a GrantType> {
    provider.grant_types.iter().chain(&[GrantType::Implicit])
}

fn shown(catalogue: &Catalogue) -> impl Iterator<Item = &RegisteredScope> {
    catalogue.scopes.values().filter(|scope| scope.show_in_discovery)
}

fn scopes(catalogue: &Catalogue) -> Vec<&str> {
    shown(catalogue).map(|scope| scope.name.as_str()).collect()
}

/// The protocol's own, then those of the identity scopes shown.
fn claims(catalogue: &Catalogue) -> Vec<&str> {
    let identity = shown(catalogue).filter(|scope| scope.kind == ScopeKind::Identity);
    let released: BTreeSet<&str> = identity.flat_map(|scope| &scope.claims).map(String::as_str).collect();
    PROTOCOL_CLAIMS.into_iter().chain(released.into_iter().filter(|name| !PROTOCOL_CLAIMS.contains(name))).collect()
}

fn challenge_methods(catalogue: &Catalogue) -> Value {
    let offered = |method: &CodeChallengeMethod| match method {
        CodeChallengeMethod::Plain => catalogue.plain_pkce,
        CodeChallengeMethod::S256 => true,
    };
    json!(CodeChallengeMethod::ALL.into_iter().filter(offered).map(CodeChallengeMethod::as_str).collect::<Vec<&str>>())
}

fn confidential_only(methods: &[ClientAuthenticationMethod]) -> Vec<ClientAuthenticationMethod> {
    methods.iter().copied().filter(|method| method.is_confidential()).collect()
}

/// Each once.
fn authentication_methods(methods: &[ClientAuthenticationMethod]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for name in methods.iter().flat_map(|method| wire_names(*method)) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
}

fn wire_names(method: ClientAuthenticationMethod) -> &'static [&'static str] {
    match method {
        ClientAuthenticationMethod::None => &["none"],
        ClientAuthenticationMethod::AnySecret => &["client_secret_basic", "client_secret_post"],
        ClientAuthenticationMethod::ClientSecretBasic => &["client_secret_basic"],
        ClientAuthenticationMethod::ClientSecretPost => &["client_secret_post"],
        ClientAuthenticationMethod::PrivateKeyJwt => &["private_key_jwt"],
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::catalogue;
    use super::super::token_request::SERVED_GRANT_TYPES;
    use super::*;

    const METHODS: [ClientAuthenticationMethod; 4] = [
        ClientAuthenticationMethod::ClientSecretBasic,
        ClientAuthenticationMethod::ClientSecretPost,
        ClientAuthenticationMethod::AnySecret,
        ClientAuthenticationMethod::None,
    ];

    fn metadata(catalogue: &Catalogue, further_endpoints: FurtherEndpoints) -> Value {
        Value::Object(document(&Provider {
            issuer: "https://op.example/idp",
            catalogue,
            grant_types: &SERVED_GRANT_TYPES,
            signing_algorithms: &SigningAlgorithm::ALL,
            authentication_methods: &METHODS,
            acr_values: &[String::from("1")],
            ui_locales: &["en", "de"],
            further_endpoints,
        }))
    }

    fn every_endpoint() -> FurtherEndpoints {
        FurtherEndpoints {
            revocation: Some("/connect/revocation"),
            introspection: Some("/connect/introspect"),
            device_authorization: Some("/connect/deviceauthorization"),
            end_session: Some("/connect/endsession"),
            check_session: Some(CHECK_SESSION_PATH),
        }
    }

    #[test]
    fn addresses_begin_with_the_issuer_and_absent_endpoints_are_not_named() {
        let document = metadata(&catalogue(), FurtherEndpoints::default());
        assert_eq!(document["issuer"], json!("https://op.example/idp"));
        assert_eq!(document["token_endpoint"], json!("https://op.example/idp/connect/token"));
        assert_eq!(document["jwks_uri"], json!("https://op.example/idp/.well-known/openid-configuration/jwks"));
        for name in ["revocation", "introspection", "device_authorization", "end_session"] {
            assert!(document.get(format!("{name}_endpoint")).is_none(), "{name}");
        }
        assert!(document.get("check_session_iframe").is_none());
        assert!(document.get("revocation_endpoint_auth_methods_supported").is_none());
        assert_eq!(document["backchannel_logout_supported"], json!(false));
        let full = metadata(&catalogue(), every_endpoint());
        assert_eq!(full["revocation_endpoint"], json!("https://op.example/idp/connect/revocation"));
        assert_eq!(full["frontchannel_logout_session_supported"], json!(true));
        assert_eq!(
            full["introspection_endpoint_auth_methods_supported"],
            json!(["client_secret_basic", "client_secret_post"])
        );
    }
}
