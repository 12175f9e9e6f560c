//! Registrations that contradict themselves, each refused with the reason.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::keys::key_set::{KeySet, read};
use crate::registration::problem::{Contradiction, DocumentProblem};
use crate::registration::profile;
use crate::registration::walker::Walker;
use crate::words::client::{
    AccessTokenTyp, AccessTokenType, Client, ClientAuthenticationMethod, GrantType,
    RefreshTokenUsage,
};
use crate::words::response_type::{ResponseMode, ResponseType};
use crate::words::scope::{OFFLINE_ACCESS, OPENID};
use crate::words::session::LOCAL;
use crate::words::strength::Strength;

/// Entries of `federated`.
const MOST_WORKLOADS: usize = 20;

/// Notes every contradiction. Where a value could not be read, it looks at the scopes alone: they
/// contradict nothing else.
pub(super) fn check(walker: &mut Walker<'_>, client: &Client, has_secrets: bool) {
    let mut all = Vec::new();
    if walker.values_hold || !client.scope.is_empty() {
        all.extend(of_default_scope(client));
    }
    if walker.values_hold {
        all.extend(of_flows(client));
        all.extend(of_grants(client));
        all.extend(of_answers(client));
        all.extend(of_credentials(client, has_secrets));
        all.extend(profile::contradictions(client));
    }
    for (is_there, key, rule) in all {
        if is_there {
            walker.problem(key, rule);
        }
    }
}

fn uses_code(client: &Client) -> bool {
    client.response_types.iter().any(|kind| kind.code)
}

/// Between response types, grant types and redirect URIs.
#[rustfmt::skip]
fn of_flows(client: &Client) -> [Contradiction; 8] {
    let code_grant = client.allows_grant(&GrantType::AuthorizationCode);
    let implicit_grant = client.allows_grant(&GrantType::Implicit);
    let code = uses_code(client);
    let tokens = client.response_types.iter().any(|kind| kind.returns_tokens());
    let access_token = client.response_types.iter().any(|kind| kind.token);
    [
        (code && !code_grant,
            "grant_types", "must contain authorization_code: response_types has a code"),
        (tokens && !implicit_grant,
            "grant_types",
            "must contain implicit: response_types has tokens from the authorization endpoint"),
        (code_grant && !code,
            "response_types", "must have a type with code: grant_types has authorization_code"),
        (implicit_grant && !tokens,
            "response_types", "must have a type with id_token or token: grant_types has implicit"),
        (access_token && !client.allow_access_tokens_via_browser,
            "response_types",
            "hands access tokens through the browser, where they leak: it needs \
             allow_access_tokens_via_browser"),
        (access_token && client.requires_dpop,
            "response_types",
            "hands access tokens through the browser, bound to no key: dpop_bound_access_tokens \
             contradicts it"),
        (!client.response_types.is_empty()
            && client.redirect_uris.is_empty()
            && !client.metadata_document,
            "redirect_uris", "is required: response_types need somewhere to answer to"),
        (!client.redirect_hosts.is_empty() && !client.metadata_document,
            "redirect_hosts", "needs metadata_document"),
    ]
}

/// Between the scopes that it may ask for, and those that it gets without asking.
#[rustfmt::skip]
fn of_default_scope(client: &Client) -> [Contradiction; 2] {
    let is_for_requests_alone = |name: &str| [OPENID, OFFLINE_ACCESS].contains(&name);
    let scope: BTreeSet<&str> = client.scope.iter().collect();
    [
        (client.default_scope.iter().any(|name| !scope.contains(name)),
            "default_scope", "must be a part of scope"),
        (client.default_scope.iter().any(is_for_requests_alone),
            "default_scope",
            "must not have openid or offline_access: a request asks for these itself"),
    ]
}

/// Between grant types and what each of them needs.
#[rustfmt::skip]
fn of_grants(client: &Client) -> [Contradiction; 13] {
    let client_credentials = client.allows_grant(&GrantType::ClientCredentials);
    let token_exchange = client.allows_grant(&GrantType::TokenExchange);
    let refresh_grant = client.allows_grant(&GrantType::RefreshToken);
    let confidential = client.is_confidential();
    let has_own_tokens =
        client_credentials && client.access_token_type == AccessTokenType::Reference;
    let asks_for_refresh = client.scope.contains(OFFLINE_ACCESS);
    let in_session = client.refresh_token_without_offline_access;
    let reuses = client.refresh_token_usage == RefreshTokenUsage::Reuse;
    let gives_id_jags = !client.id_jag.is_empty();
    let audiences: BTreeSet<&str> =
        client.id_jag.iter().map(|entry| entry.audience.as_str()).collect();
    [
        (client.allows_grant(&GrantType::Password) && !client.allows_identity_provider(LOCAL),
            "identity_providers", "must contain local: grant_types has password"),
        (client_credentials && !confidential,
            "grant_types",
            "has client_credentials, which only a client with credentials can use: it needs \
             secrets or keys"),
        (client.lifetimes.client_credentials_token.is_some() && !has_own_tokens,
            "client_credentials_token_lifetime",
            "needs the grant type client_credentials and the access_token_type reference, which \
             can be revoked"),
        (token_exchange && !confidential,
            "grant_types", "has token exchange, which is for confidential clients only"),
        (gives_id_jags && !token_exchange,
            "grant_types", "must contain token exchange: an ID-JAG is asked for by that"),
        (audiences.len() < client.id_jag.len(),
            "id_jag", "must not have the same audience twice"),
        (token_exchange && client.token_exchange.is_none() && !gives_id_jags,
            "token_exchange",
            "is required: grant_types has token exchange, and nothing says whose tokens"),
        (asks_for_refresh && !refresh_grant,
            "grant_types",
            "must contain refresh_token: scope has offline_access, which asks for a refresh token \
             that nobody could use"),
        (refresh_grant && !asks_for_refresh && !in_session,
            "scope",
            "must contain offline_access: grant_types has refresh_token, and no refresh token is \
             issued without it"),
        (in_session && !(refresh_grant && client.allows_grant(&GrantType::AuthorizationCode)),
            "refresh_token_without_offline_access",
            "needs the grant types authorization_code and refresh_token"),
        (in_session && reuses && client.profile.is_none(),
            "refresh_token_without_offline_access",
            "needs the refresh_token_usage rotate"),
        (refresh_grant && !client.grant_types.iter().any(brings_a_refresh_token),
            "grant_types",
            "has refresh_token beside grants that never give one: there is nothing to refresh"),
        (reuses && !confidential,
            "refresh_token_usage",
            "must be rotate: a public client's stolen refresh token is only noticed by rotation"),
    ]
}

/// How authorization requests are answered.
#[rustfmt::skip]
fn of_answers(client: &Client) -> [Contradiction; 3] {
    let is_web = |uri: &String| uri.starts_with("https:") || uri.starts_with("http:");
    let mode = client.default_response_mode;
    let usable = mode
        .is_none_or(|mode| client.response_types.iter().any(|kind| mode.is_legal_for(*kind)));
    [
        (uses_code(client) && client.require_pkce == Some(false) && !client.is_confidential(),
            "require_pkce", "must not be false: nothing else ties a public client's code to it"),
        (!usable,
            "default_response_mode", "is not allowed for any of the response_types"),
        (usable && mode == Some(ResponseMode::FormPost) && !client.redirect_uris.iter().all(is_web),
            "default_response_mode",
            "must not be form_post: a custom scheme cannot receive a post"),
    ]
}

/// What the client proves itself with.
#[rustfmt::skip]
fn of_credentials(client: &Client, has_secrets: bool) -> [Contradiction; 10] {
    let by_key = client.authentication == ClientAuthenticationMethod::PrivateKeyJwt;
    let has_keys = client.jwks.is_some() || client.jwks_uri.is_some();
    let federated = !client.federated.is_empty();
    let names_itself = client
        .federated
        .iter()
        .any(|entry| entry.issuer.as_deref() == Some(client.client_id.as_str()));
    let workloads: BTreeSet<_> = client
        .federated
        .iter()
        .map(|entry| (&entry.issuer, &entry.subject, &entry.claims))
        .collect();
    let confidential = client.is_confidential();
    let keys = client.jwks.as_ref().and_then(KeySet::parse);
    let none_fits = keys.is_some_and(|keys|
        !client.assertion_algorithms().iter().any(|alg| keys.has_key_for(*alg)));
    [
        (client.jwks.is_some() && client.jwks_uri.is_some(),
            "jwks", "must not stand beside jwks_uri"),
        (by_key && !has_keys && !federated && !client.metadata_document,
            "token_endpoint_auth_method",
            "is private_key_jwt, which needs jwks, jwks_uri or federated"),
        (federated && !by_key,
            "federated", "needs the token_endpoint_auth_method private_key_jwt"),
        (client.federated.len() > MOST_WORKLOADS,
            "federated", "must have 20 entries at most"),
        (workloads.len() < client.federated.len(),
            "federated", "must not have the same workload twice"),
        (names_itself,
            "federated",
            "must not have the client_id as an issuer: its own keys are jwks or jwks_uri"),
        // Keys are registered to authenticate by; a public client does not authenticate.
        (!confidential && has_keys,
            "token_endpoint_auth_method", "must be private_key_jwt: keys are registered"),
        (by_key && none_fits,
            "jwks", "has no key that fits token_endpoint_auth_signing_alg or the profile"),
        (has_secrets && client.authentication == ClientAuthenticationMethod::None,
            "secrets", "must be left out: token_endpoint_auth_method is none"),
        (has_secrets && by_key,
            "secrets", "must be left out: token_endpoint_auth_method is private_key_jwt"),
    ]
}

/// Client credentials, token exchange and assertions give none (RFC 6749 §4.4.3), nor does the
/// browser (§4.2.2).
fn brings_a_refresh_token(grant_type: &GrantType) -> bool {
    match grant_type {
        GrantType::AuthorizationCode
        | GrantType::Password
        | GrantType::DeviceCode
        | GrantType::Extension(_) => true,
        GrantType::Implicit
        | GrantType::RefreshToken
        | GrantType::ClientCredentials
        | GrantType::TokenExchange
        | GrantType::JwtBearer => false,
    }
}

/// The grant types that response types stand for (RFC 7591 §2.1, OpenID Connect Dynamic Client
/// Registration §2).
pub(super) fn grant_types_behind(response_types: &BTreeSet<ResponseType>) -> BTreeSet<GrantType> {
    let mut grant_types = BTreeSet::new();
    for response_type in response_types {
        if response_type.code {
            grant_types.insert(GrantType::AuthorizationCode);
        }
        if response_type.returns_tokens() {
            grant_types.insert(GrantType::Implicit);
        }
    }
    grant_types
}

/// What an installation gives clients that do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientDefaults {
    pub authorization_code_lifetime: Duration,
    pub id_token_lifetime: Duration,
    pub access_token_lifetime: Duration,
    pub refresh_token_lifetime: Duration,
    pub refresh_token_idle_lifetime: Duration,
    pub refresh_token_retry_window: Duration,
    pub refresh_token_retry_window_public: Duration,
    pub device_code_lifetime: Duration,
    pub device_interval: Duration,
    pub access_token_typ: AccessTokenTyp,
    /// What none of them may go below.
    pub minimum_acr: Strength,
    /// Ours: no client gets ID-JAGs for it.
    pub issuer: String,
}

impl ClientDefaults {
    /// `refresh_token_retry_window` of a client that does not say.
    pub(super) fn retry_window(&self, confidential: bool) -> Duration {
        if confidential {
            self.refresh_token_retry_window
        } else {
            self.refresh_token_retry_window_public
        }
    }
}

impl Default for ClientDefaults {
    fn default() -> ClientDefaults {
        ClientDefaults {
            authorization_code_lifetime: Duration::from_secs(60),
            id_token_lifetime: Duration::from_secs(300),
            access_token_lifetime: Duration::from_secs(3_600),
            refresh_token_lifetime: Duration::from_secs(2_592_000),
            refresh_token_idle_lifetime: Duration::from_secs(1_296_000),
            refresh_token_retry_window: Duration::from_secs(30),
            refresh_token_retry_window_public: Duration::from_secs(10),
            device_code_lifetime: Duration::from_secs(600),
            device_interval: Duration::from_secs(5),
            access_token_typ: AccessTokenTyp::AtJwt,
            minimum_acr: Strength::SignedIn,
            issuer: String::new(),
        }
    }
}

/// Reads a JWK set of public keys. Keys for something else than signatures may be in it.
pub fn jwks(value: &Value, path: &str, problems: &mut Vec<DocumentProblem>) -> Option<Value> {
    Walker::object(value, path, problems, |walker| {
        check_keys(walker);
        match KeySet::parse(value) {
            Some(set) if set.has_ambiguous_names() => {
                walker.problem("keys", "must give each key a kid of its own")
            }
            Some(_) => {}
            None => walker.problem("keys", "must not be more than 100"),
        }
        value.clone()
    })
}

fn check_keys(walker: &mut Walker<'_>) {
    let keys = walker.list("keys", |key, place, _| Some((place.to_owned(), read(key))));
    let keys = keys.unwrap_or_default();
    if keys.is_empty() {
        walker.problem("keys", "must be an array of at least one key");
    }
    let mut seen = BTreeSet::new();
    for (place, key) in keys {
        match key {
            Err(rule) => walker.note(place, rule),
            Ok(Some(named)) if !seen.insert(named.key.thumbprint()) => {
                walker.note(place, "is a key that stands in the set before");
            }
            Ok(Some(_) | None) => {}
        }
    }
}

/// Either the keys are registered, or the address where they are found.
pub(super) fn check_one_key_source(walker: &mut Walker<'_>) {
    if walker.value("jwks").is_some() == walker.value("jwks_uri").is_some() {
        walker.problem("jwks", "must be given, or jwks_uri: exactly one of the two");
    }
}
