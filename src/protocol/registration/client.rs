//! A client's registration, from JSON to [`Client`] with every default filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::protocol::client::{
    AccessTokenTyp, AccessTokenType, ApplicationType, Client, ClientAuthenticationMethod, ClientLinks, GrantType,
    Lifetimes, LogoutUri, RefreshTokenUsage, SigningAlgorithm,
};
use crate::protocol::identifiers::{ClientId, TenantName};
use crate::protocol::redirect_uri;
use crate::protocol::response_mode::ResponseMode;
use crate::protocol::response_type::ResponseType;
use crate::protocol::scope::ScopeSet;
use crate::protocol::web_url::WebUrl;

use super::assertion_issuer::scope_names;
use super::client_rules;
use super::client_secret::{self, RegisteredSecret};
use super::defaults::ClientDefaults;
use super::keys::jwks;
use super::names::{display_text, own_claim, plain_name, token_name};
use super::problem::{Problem, all_or_problems};
use super::provider::protected_url;
use super::walker::Walker;

/// Ten years: nothing that ends lives longer.
pub const LONGEST_LIFETIME: u64 = 315_360_000;

/// Whether the client has a secret or key of its own: stored and exported, where secrets are not.
const CONFIDENTIAL: &str = "confidential";

/// A client of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEntry {
    /// The client.
    pub client: Client,
    /// `secrets`; `None` leaves those already stored.
    pub secrets: Option<Vec<RegisteredSecret>>,
    /// What is stored: the registration without secrets. [`from_json`] reads it back.
    pub metadata: Value,
}

pub(super) const KEYS: &[&str] = &[
    "client_id",
    "client_name",
    "client_name#",
    "client_uri",
    "logo_uri",
    "policy_uri",
    "tos_uri",
    "redirect_uris",
    "post_logout_redirect_uris",
    "response_types",
    "grant_types",
    "scope",
    "application_type",
    "token_endpoint_auth_method",
    "token_endpoint_auth_signing_alg",
    "jwks",
    "jwks_uri",
    "id_token_signed_response_alg",
    "default_max_age",
    "frontchannel_logout_uri",
    "frontchannel_logout_session_required",
    "backchannel_logout_uri",
    "backchannel_logout_session_required",
    "enabled",
    "secrets",
    "identity_providers",
    "tenants",
    "require_consent",
    "allow_remember_consent",
    "consent_lifetime",
    "require_pkce",
    "allow_plain_pkce",
    "allow_access_tokens_via_browser",
    "authorization_response_iss_on_error",
    "default_response_mode",
    "access_token_type",
    "access_token_typ",
    "access_token_signed_response_alg",
    "always_include_user_claims_in_id_token",
    "client_credentials_sub",
    "allowed_cors_origins",
    "claims",
    "authorization_code_lifetime",
    "id_token_lifetime",
    "access_token_lifetime",
    "refresh_token_lifetime",
    "refresh_token_idle_lifetime",
    "refresh_token_usage",
    "refresh_token_retry_window",
    "device_code_lifetime",
    "device_interval",
    "token_exchange",
    CONFIDENTIAL,
];

const ALGORITHMS: [(&str, SigningAlgorithm); 3] =
    [("RS256", SigningAlgorithm::Rs256), ("ES256", SigningAlgorithm::Es256), ("EdDSA", SigningAlgorithm::EdDsa)];

/// Reads one of a document's `clients`. Whether it contradicts itself is judged, too; whether what it names exists is not.
pub(super) fn entry(
    value: &Value,
    path: &str,
    defaults: &ClientDefaults,
    problems: &mut Vec<Problem>,
) -> Option<ClientEntry> {
    let mut walker = Walker::open(value, path, KEYS, problems)?;
    let secrets = walker.list("secrets", client_secret::parse);
    let gives_secrets = secrets.as_ref().is_some_and(|secrets| !secrets.is_empty());
    let confidential = walker.flag(CONFIDENTIAL);
    let has_secrets = gives_secrets || (secrets.is_none() && confidential == Some(true));
    let client = client(&mut walker, has_secrets, defaults);
    client_rules::check(&mut walker, &client, gives_secrets);
    if confidential.is_some_and(|confidential| confidential != client.is_confidential()) {
        walker.problem(CONFIDENTIAL, "contradicts secrets or token_endpoint_auth_method; leave it out");
    }
    let metadata = stored_form(walker.members(), client.is_confidential());
    Some(ClientEntry { client, secrets, metadata })
}

/// Reads stored metadata; `path` stands before the places in problems. A registration that today's rules refuse is
/// refused here as well: the client is then as good as disabled, and the log says why.
pub fn from_json(metadata: &Value, path: &str, defaults: &ClientDefaults) -> Result<Client, Vec<Problem>> {
    all_or_problems(|problems| {
        let mut walker = Walker::open(metadata, path, KEYS, problems)?;
        let confidential = walker.flag(CONFIDENTIAL).unwrap_or(false);
        let client = client(&mut walker, confidential, defaults);
        client_rules::check(&mut walker, &client, false);
        Some(client)
    })
}

/// Stored metadata as a document gives it. That the client is confidential is said where nothing else says it: applied
/// where there are no secrets yet, it must not become a public one.
pub fn exported(metadata: &Value) -> Value {
    let mut members = metadata.as_object().cloned().unwrap_or_default();
    let is_told = members.contains_key("token_endpoint_auth_method");
    if is_told || members.get(CONFIDENTIAL) == Some(&Value::Bool(false)) {
        members.remove(CONFIDENTIAL);
    }
    Value::Object(members)
}

fn stored_form(members: &Map<String, Value>, confidential: bool) -> Value {
    let kept = members.iter().filter(|(key, value)| key.as_str() != "secrets" && !value.is_null());
    let mut metadata: Map<String, Value> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    metadata.insert(CONFIDENTIAL.to_owned(), Value::Bool(confidential));
    Value::Object(metadata)
}

fn client(walker: &mut Walker<'_, '_>, has_secrets: bool, defaults: &ClientDefaults) -> Client {
    let client_id = walker.required("client_id", token_name);
    let authentication = authentication(walker, has_secrets);
    let confidential = authentication.is_confidential();
    let (grant_types, response_types) = flows(walker);
    Client {
        client_name: walker.localized("client_name", display_text, &client_id),
        client_id: ClientId::new(client_id),
        links: links(walker),
        enabled: walker.flag("enabled").unwrap_or(true),
        redirect_uris: redirect_uris(walker, "redirect_uris", confidential),
        post_logout_redirect_uris: redirect_uris(walker, "post_logout_redirect_uris", confidential),
        response_types,
        grant_types,
        scope: scope(walker),
        application_type: walker.one_of("application_type", &APPLICATION_TYPES).unwrap_or(ApplicationType::Web),
        authentication,
        token_endpoint_auth_signing_alg: walker.one_of("token_endpoint_auth_signing_alg", &ALGORITHMS),
        jwks: walker.nested("jwks", jwks),
        jwks_uri: walker.checked("jwks_uri", protected_url),
        id_token_signed_response_alg: algorithm(walker, "id_token_signed_response_alg"),
        default_max_age: walker.number("default_max_age", (0, LONGEST_LIFETIME), " of seconds"),
        frontchannel_logout: logout(walker, "frontchannel_logout_uri", "frontchannel_logout_session_required"),
        backchannel_logout: logout(walker, "backchannel_logout_uri", "backchannel_logout_session_required"),
        identity_providers: walker.strings_or_all("identity_providers", plain_name),
        tenants: tenants(walker),
        require_consent: walker.flag("require_consent"),
        allow_remember_consent: walker.flag("allow_remember_consent"),
        consent_lifetime: walker.seconds("consent_lifetime", (1, LONGEST_LIFETIME)),
        require_pkce: walker.flag("require_pkce"),
        allow_plain_pkce: walker.flag("allow_plain_pkce").unwrap_or(false),
        allow_access_tokens_via_browser: walker.flag("allow_access_tokens_via_browser").unwrap_or(false),
        iss_on_error: walker.flag("authorization_response_iss_on_error").unwrap_or(true),
        default_response_mode: walker.one_of("default_response_mode", &RESPONSE_MODES),
        access_token_type: walker.one_of("access_token_type", &ACCESS_TOKEN_TYPES).unwrap_or(AccessTokenType::Jwt),
        access_token_typ: walker
            .one_of("access_token_typ", &AccessTokenTyp::NAMED)
            .unwrap_or(defaults.access_token_typ),
        access_token_signed_response_alg: algorithm(walker, "access_token_signed_response_alg"),
        always_include_user_claims_in_id_token: walker.flag("always_include_user_claims_in_id_token").unwrap_or(false),
        client_credentials_sub: walker.flag("client_credentials_sub").unwrap_or(true),
        allowed_cors_origins: walker.strings("allowed_cors_origins", origin).into_iter().flatten().collect(),
        claims: claims(walker),
        lifetimes: lifetimes(walker, confidential, defaults),
        refresh_token_usage: refresh_token_usage(walker),
        device_interval: walker.seconds("device_interval", (1, 300)).unwrap_or(defaults.device_interval),
        token_exchange: walker.nested("token_exchange", token_exchange),
    }
}

const APPLICATION_TYPES: [(&str, ApplicationType); 2] =
    [("web", ApplicationType::Web), ("native", ApplicationType::Native)];
const RESPONSE_MODES: [(&str, ResponseMode); 3] =
    [("query", ResponseMode::Query), ("fragment", ResponseMode::Fragment), ("form_post", ResponseMode::FormPost)];
/// What people write (OAuth 2.0 Multiple Response Type Encoding Practices §3, §5); any order of the words is taken.
const RESPONSE_TYPES: [&str; 7] =
    ["code", "id_token", "token", "id_token token", "code id_token", "code token", "code id_token token"];
const ACCESS_TOKEN_TYPES: [(&str, AccessTokenType); 2] =
    [("jwt", AccessTokenType::Jwt), ("reference", AccessTokenType::Reference)];

fn authentication(walker: &mut Walker<'_, '_>, has_secrets: bool) -> ClientAuthenticationMethod {
    let methods = [
        ("none", ClientAuthenticationMethod::None),
        ("client_secret_basic", ClientAuthenticationMethod::ClientSecretBasic),
        ("client_secret_post", ClientAuthenticationMethod::ClientSecretPost),
        ("private_key_jwt", ClientAuthenticationMethod::PrivateKeyJwt),
    ];
    let unsaid = if has_secrets { ClientAuthenticationMethod::AnySecret } else { ClientAuthenticationMethod::None };
    walker.one_of("token_endpoint_auth_method", &methods).unwrap_or(unsaid)
}

/// `grant_types` and `response_types`; what is absent follows from the other (RFC 7591 §2.1), or is the code flow.
fn flows(walker: &mut Walker<'_, '_>) -> (BTreeSet<GrantType>, BTreeSet<ResponseType>) {
    let grant_types = walker.strings("grant_types", token_name);
    let grant_types: Option<BTreeSet<GrantType>> =
        grant_types.map(|names| names.iter().map(|name| GrantType::from_name(name)).collect());
    let response_types = walker.strings_of("response_types", response_type, &RESPONSE_TYPES);
    let response_types: Option<BTreeSet<ResponseType>> =
        response_types.map(|texts| texts.iter().filter_map(|text| ResponseType::parse(text)).collect());
    let code = BTreeSet::from([ResponseType::CODE]);
    match (grant_types, response_types) {
        (Some(grant_types), Some(response_types)) => (grant_types, response_types),
        (Some(grant_types), None) => {
            let uses_code = grant_types.contains(&GrantType::AuthorizationCode);
            (grant_types, if uses_code { code } else { BTreeSet::new() })
        }
        (None, Some(response_types)) => (client_rules::grant_types_behind(&response_types), response_types),
        (None, None) => (BTreeSet::from([GrantType::AuthorizationCode]), code),
    }
}

fn links(walker: &mut Walker<'_, '_>) -> ClientLinks {
    ClientLinks {
        client_uri: walker.checked("client_uri", web_url),
        logo_uri: walker.checked("logo_uri", protected_url),
        policy_uri: walker.checked("policy_uri", web_url),
        tos_uri: walker.checked("tos_uri", web_url),
    }
}

fn redirect_uris(walker: &mut Walker<'_, '_>, key: &str, confidential: bool) -> Vec<String> {
    let check = if confidential { of_confidential_client } else { of_public_client };
    walker.strings(key, check).unwrap_or_default()
}

fn of_public_client(uri: &str) -> Result<(), &'static str> {
    redirect_uri::check_registered(uri, true)
}

fn of_confidential_client(uri: &str) -> Result<(), &'static str> {
    redirect_uri::check_registered(uri, false)
}

fn scope(walker: &mut Walker<'_, '_>) -> ScopeSet {
    let text = walker.checked("scope", scope_names).unwrap_or_default();
    ScopeSet::parse(&text).unwrap_or_default()
}

fn tenants(walker: &mut Walker<'_, '_>) -> Option<BTreeSet<TenantName>> {
    let names = walker.strings_or_all("tenants", plain_name)?;
    Some(names.into_iter().map(TenantName::new).collect())
}

fn algorithm(walker: &mut Walker<'_, '_>, key: &str) -> SigningAlgorithm {
    walker.one_of(key, &ALGORITHMS).unwrap_or(SigningAlgorithm::Rs256)
}

fn logout(walker: &mut Walker<'_, '_>, uri_key: &str, session_key: &str) -> Option<LogoutUri> {
    let session_required = walker.flag(session_key);
    let uri = walker.checked(uri_key, protected_url);
    if session_required.is_some() && walker.value(uri_key).is_none() {
        walker.problem(session_key, format!("needs {uri_key}"));
    }
    uri.map(|uri| LogoutUri { uri, session_required: session_required.unwrap_or(false) })
}

fn claims(walker: &mut Walker<'_, '_>) -> BTreeMap<String, Value> {
    let place = walker.place("claims");
    let mut claims = BTreeMap::new();
    for (name, value) in walker.object("claims").into_iter().flatten() {
        match own_claim(name) {
            Ok(()) => {
                claims.insert(name.clone(), value.clone());
            }
            Err(rule) => walker.note(format!("{place}.{}", name.escape_debug()), rule),
        }
    }
    claims
}

fn lifetimes(walker: &mut Walker<'_, '_>, confidential: bool, defaults: &ClientDefaults) -> Lifetimes {
    let mut lifetime = |key: &str, longest: u64| walker.seconds(key, (1, longest));
    let refresh_token = lifetime("refresh_token_lifetime", LONGEST_LIFETIME).unwrap_or(defaults.refresh_token_lifetime);
    let idle = lifetime("refresh_token_idle_lifetime", LONGEST_LIFETIME);
    let (authorization_code, id_token) =
        (lifetime("authorization_code_lifetime", 600), lifetime("id_token_lifetime", LONGEST_LIFETIME));
    let (access_token, device_code) =
        (lifetime("access_token_lifetime", LONGEST_LIFETIME), lifetime("device_code_lifetime", 86_400));
    if idle.is_some_and(|idle| idle > refresh_token) {
        walker.problem("refresh_token_idle_lifetime", "must not be longer than refresh_token_lifetime");
    }
    Lifetimes {
        authorization_code: authorization_code.unwrap_or(defaults.authorization_code_lifetime),
        id_token: id_token.unwrap_or(defaults.id_token_lifetime),
        access_token: access_token.unwrap_or(defaults.access_token_lifetime),
        refresh_token,
        refresh_token_idle: idle.unwrap_or(defaults.refresh_token_idle_lifetime.min(refresh_token)),
        refresh_token_retry_window: retry_window(walker, confidential, defaults),
        device_code: device_code.unwrap_or(defaults.device_code_lifetime),
    }
}

fn retry_window(walker: &mut Walker<'_, '_>, confidential: bool, defaults: &ClientDefaults) -> Duration {
    let unsaid =
        if confidential { defaults.refresh_token_retry_window } else { defaults.refresh_token_retry_window_public };
    walker.seconds("refresh_token_retry_window", (0, 600)).unwrap_or(unsaid)
}

fn refresh_token_usage(walker: &mut Walker<'_, '_>) -> RefreshTokenUsage {
    let usages = [("rotate", RefreshTokenUsage::Rotate), ("reuse", RefreshTokenUsage::Reuse)];
    walker.one_of("refresh_token_usage", &usages).unwrap_or(RefreshTokenUsage::Rotate)
}

pub(super) const TOKEN_EXCHANGE_KEYS: &[&str] = &["from_clients", "as_resources", "to_resources"];

/// RFC 8693: whose tokens this client may exchange, those meant for which resources, and for which resources.
fn token_exchange(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<Value> {
    let mut walker = Walker::open(value, path, TOKEN_EXCHANGE_KEYS, problems)?;
    for key in TOKEN_EXCHANGE_KEYS {
        walker.filled_strings(key, token_name, "must not be empty");
    }
    Some(value.clone())
}

fn response_type(text: &str) -> Result<(), &'static str> {
    let rule = "must be code, id_token and token in any combination, separated by spaces";
    ResponseType::parse(text).map(|_| ()).ok_or(rule)
}

fn web_url(text: &str) -> Result<(), &'static str> {
    WebUrl::parse(text).map(|_| ())
}

/// An origin as browsers send it (RFC 6454 §6.2).
fn origin(text: &str) -> Result<(), &'static str> {
    let url = WebUrl::parse(text)?;
    protected_url(text)?;
    if url.origin != text || url.port == Some(if url.https { 443 } else { 80 }) {
        return Err("must be a scheme, host and port as browsers send them, as https://app.example.com");
    }
    Ok(())
}
