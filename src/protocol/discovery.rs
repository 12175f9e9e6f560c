//! The provider's metadata (OpenID Connect Discovery §3, RFC 8414 §2; one document serves both), made from the tables
//! that validate requests. Only names that are registered with IANA.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::client::{ClientAuthenticationMethod, GrantType, SigningAlgorithm};
use super::code_challenge::CodeChallengeMethod;
use super::response_mode::ResponseMode;
use super::response_type::ResponseType;
use super::scope::{Catalogue, RegisteredScope, ScopeKind};

/// Path of the authorization endpoint, below the base URL's own.
pub const AUTHORIZE_PATH: &str = "/connect/authorize";
/// Path of the token endpoint.
pub const TOKEN_PATH: &str = "/connect/token";
/// Path of the UserInfo endpoint.
pub const USERINFO_PATH: &str = "/connect/userinfo";
/// Path of the key set.
pub const JWKS_PATH: &str = "/.well-known/openid-configuration/jwks";
/// Path of the OpenID metadata.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Path of the RFC 8414 metadata; it stands before the base URL's own path, not below it.
pub const AUTHORIZATION_SERVER_PATH: &str = "/.well-known/oauth-authorization-server";

/// Claims the id_token has in its own name.
const PROTOCOL_CLAIMS: [&str; 12] =
    ["sub", "iss", "aud", "exp", "iat", "auth_time", "amr", "acr", "sid", "nonce", "at_hash", "c_hash"];

/// Values of `prompt`, in the order of the metadata.
const PROMPT_VALUES: [&str; 4] = ["none", "login", "consent", "select_account"];

/// Paths of the endpoints that exist beside authorize, token, userinfo and jwks; `None` where this build has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherEndpoints {
    /// `revocation_endpoint`
    pub revocation: Option<&'static str>,
    /// `introspection_endpoint`
    pub introspection: Option<&'static str>,
    /// `device_authorization_endpoint`
    pub device_authorization: Option<&'static str>,
    /// `end_session_endpoint`; with it go the logout channels.
    pub end_session: Option<&'static str>,
    /// `check_session_iframe`
    pub check_session: Option<&'static str>,
}

/// What the document is made from.
#[derive(Clone, Debug)]
pub struct Provider<'a> {
    /// `issuer`, byte for byte; every address begins with it.
    pub issuer: &'a str,
    /// Scopes and claims.
    pub catalogue: &'a Catalogue,
    /// Response types the authorization endpoint serves.
    pub response_types: &'a [ResponseType],
    /// Grant types this build serves.
    pub grant_types: &'a [GrantType],
    /// Algorithms there is a key for.
    pub signing_algorithms: &'a [SigningAlgorithm],
    /// Ways of client authentication this build serves.
    pub authentication_methods: &'a [ClientAuthenticationMethod],
    /// `acr` values that can come about.
    pub acr_values: &'a [String],
    /// Languages of the pages (BCP 47).
    pub ui_locales: &'a [&'a str],
    /// Endpoints that not every build has.
    pub further_endpoints: FurtherEndpoints,
}

/// The metadata document.
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
    let address = |path: &str| json!(format!("{}{path}", provider.issuer.trim_end_matches('/')));
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
    vec![
        ("scopes_supported", Some(json!(scopes(provider.catalogue)))),
        ("claims_supported", Some(json!(claims(provider.catalogue)))),
        ("claim_types_supported", Some(json!(["normal"]))),
        ("subject_types_supported", Some(json!(["public"]))),
        ("response_types_supported", Some(texts(provider.response_types))),
        ("response_modes_supported", Some(json!(ResponseMode::ALL.map(ResponseMode::as_str)))),
        ("grant_types_supported", Some(texts(provider.grant_types.iter().map(GrantType::as_str)))),
        ("prompt_values_supported", Some(json!(PROMPT_VALUES))),
        ("code_challenge_methods_supported", Some(challenge_methods(provider.catalogue))),
        (
            "id_token_signing_alg_values_supported",
            Some(texts(provider.signing_algorithms.iter().map(|alg| alg.as_str()))),
        ),
        ("token_endpoint_auth_methods_supported", Some(methods.clone())),
        ("revocation_endpoint_auth_methods_supported", further.revocation.map(|_| methods)),
        ("introspection_endpoint_auth_methods_supported", further.introspection.map(|_| confidential)),
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

fn shown(catalogue: &Catalogue) -> impl Iterator<Item = &RegisteredScope> {
    catalogue.scopes.values().filter(|scope| scope.show_in_discovery)
}

fn scopes(catalogue: &Catalogue) -> Vec<&str> {
    shown(catalogue).map(|scope| scope.name.as_str()).collect()
}

/// The protocol's own claims, then those of the identity scopes shown.
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

/// Wire names, each once.
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
