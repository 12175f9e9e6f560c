//! Registrations that contradict themselves, each refused with the reason.

use std::collections::BTreeSet;

use crate::protocol::client::{Client, ClientAuthenticationMethod, GrantType, RefreshTokenUsage};
use crate::protocol::key_set::KeySet;
use crate::protocol::response_mode::ResponseMode;
use crate::protocol::response_type::ResponseType;

use super::super::scope::OFFLINE_ACCESS;
use super::super::session::LOCAL;
use super::walker::Walker;

type Rule = fn(&Client) -> Option<(&'static str, &'static str)>;

/// Each answers with the key to mend and why.
const RULES: [Rule; 19] = [
    code_needs_its_grant,
    browser_tokens_need_implicit,
    grants_need_a_response_type,
    access_tokens_via_browser,
    redirect_uris_where_needed,
    password_needs_local,
    client_credentials_need_a_secret,
    token_exchange_needs_a_secret,
    token_exchange_says_what,
    offline_access_needs_refresh_token,
    refresh_token_needs_offline_access,
    refresh_token_needs_a_user,
    reuse_needs_a_secret,
    public_clients_need_pkce,
    response_mode_must_be_usable,
    keys_come_one_way,
    private_key_jwt_needs_keys,
    keys_need_private_key_jwt,
    keys_fit_the_algorithm,
];

/// Notes every contradiction; looks for none where a value could not be read.
pub(super) fn check(walker: &mut Walker<'_, '_>, client: &Client, has_secrets: bool) {
    if !walker.values_hold {
        return;
    }
    for (key, rule) in RULES.iter().filter_map(|rule| rule(client)) {
        walker.problem(key, rule);
    }
    match client.authentication {
        ClientAuthenticationMethod::None if has_secrets => {
            walker.problem("secrets", "must be left out: token_endpoint_auth_method is none");
        }
        ClientAuthenticationMethod::PrivateKeyJwt if has_secrets => {
            walker.problem("secrets", "must be left out: token_endpoint_auth_method is private_key_jwt");
        }
        ClientAuthenticationMethod::None
        | ClientAuthenticationMethod::AnySecret
        | ClientAuthenticationMethod::ClientSecretBasic
        | ClientAuthenticationMethod::ClientSecretPost
        | ClientAuthenticationMethod::PrivateKeyJwt => {}
    }
}

/// The grant types that response types stand for (RFC 7591 §2.1, OpenID Connect Dynamic Client Registration §2).
pub(super) fn grant_types_behind(response_types: &BTreeSet<ResponseType>) -> BTreeSet<GrantType> {
    let code = response_types.iter().any(|response_type| response_type.code).then_some(GrantType::AuthorizationCode);
    let tokens = response_types.iter().any(|response_type| response_type.returns_tokens());
    code.into_iter().chain(tokens.then_some(GrantType::Implicit)).collect()
}

fn uses(client: &Client, wanted: fn(&ResponseType) -> bool) -> bool {
    client.response_types.iter().any(wanted)
}

fn code_needs_its_grant(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = uses(client, |kind| kind.code) && !client.allows_grant(&GrantType::AuthorizationCode);
    broken.then_some(("grant_types", "must contain authorization_code: response_types has a code"))
}

fn browser_tokens_need_implicit(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = uses(client, |kind| kind.returns_tokens()) && !client.allows_grant(&GrantType::Implicit);
    broken
        .then_some(("grant_types", "must contain implicit: response_types has tokens from the authorization endpoint"))
}

fn grants_need_a_response_type(client: &Client) -> Option<(&'static str, &'static str)> {
    if client.allows_grant(&GrantType::AuthorizationCode) && !uses(client, |kind| kind.code) {
        return Some(("response_types", "must have a type with code: grant_types has authorization_code"));
    }
    let broken = client.allows_grant(&GrantType::Implicit) && !uses(client, |kind| kind.returns_tokens());
    broken.then_some(("response_types", "must have a type with id_token or token: grant_types has implicit"))
}

fn access_tokens_via_browser(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = uses(client, |kind| kind.token) && !client.allow_access_tokens_via_browser;
    let rule = "hands access tokens through the browser, where they leak: it needs allow_access_tokens_via_browser";
    broken.then_some(("response_types", rule))
}

fn redirect_uris_where_needed(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = !client.response_types.is_empty() && client.redirect_uris.is_empty();
    broken.then_some(("redirect_uris", "is required: response_types need somewhere to answer to"))
}

fn password_needs_local(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.allows_grant(&GrantType::Password) && !client.allows_identity_provider(LOCAL);
    broken.then_some(("identity_providers", "must contain local: grant_types has password"))
}

fn client_credentials_need_a_secret(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.allows_grant(&GrantType::ClientCredentials) && !client.is_confidential();
    let rule = "has client_credentials, which only a client with credentials can use: it needs secrets or keys";
    broken.then_some(("grant_types", rule))
}

fn token_exchange_needs_a_secret(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.allows_grant(&GrantType::TokenExchange) && !client.is_confidential();
    broken.then_some(("grant_types", "has token exchange, which is for confidential clients only"))
}

fn token_exchange_says_what(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.allows_grant(&GrantType::TokenExchange) && client.token_exchange.is_none();
    broken.then_some(("token_exchange", "is required: grant_types has token exchange, and nothing says whose tokens"))
}

fn offline_access_needs_refresh_token(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.scope.contains(OFFLINE_ACCESS) && !client.allows_grant(&GrantType::RefreshToken);
    let rule =
        "must contain refresh_token: scope has offline_access, which asks for a refresh token that nobody could use";
    broken.then_some(("grant_types", rule))
}

fn refresh_token_needs_offline_access(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.allows_grant(&GrantType::RefreshToken) && !client.scope.contains(OFFLINE_ACCESS);
    let rule = "must contain offline_access: grant_types has refresh_token, and no refresh token is issued without it";
    broken.then_some(("scope", rule))
}

/// Client credentials, token exchange and assertions give none (RFC 6749 §4.4.3), nor does the browser (§4.2.2).
fn refresh_token_needs_a_user(client: &Client) -> Option<(&'static str, &'static str)> {
    let brings_one = |grant_type: &GrantType| match grant_type {
        GrantType::AuthorizationCode | GrantType::Password | GrantType::DeviceCode | GrantType::Extension(_) => true,
        GrantType::Implicit
        | GrantType::RefreshToken
        | GrantType::ClientCredentials
        | GrantType::TokenExchange
        | GrantType::JwtBearer => false,
    };
    let broken = client.allows_grant(&GrantType::RefreshToken) && !client.grant_types.iter().any(brings_one);
    broken
        .then_some(("grant_types", "has refresh_token beside grants that never give one: there is nothing to refresh"))
}

fn reuse_needs_a_secret(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.refresh_token_usage == RefreshTokenUsage::Reuse && !client.is_confidential();
    let rule = "must be rotate: a public client's stolen refresh token is only noticed by rotation";
    broken.then_some(("refresh_token_usage", rule))
}

fn public_clients_need_pkce(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = uses(client, |kind| kind.code) && client.require_pkce == Some(false) && !client.is_confidential();
    broken.then_some(("require_pkce", "must not be false: nothing else ties a public client's code to it"))
}

fn response_mode_must_be_usable(client: &Client) -> Option<(&'static str, &'static str)> {
    let mode = client.default_response_mode?;
    if !client.response_types.iter().any(|response_type| mode.is_legal_for(*response_type)) {
        return Some(("default_response_mode", "is not allowed for any of the response_types"));
    }
    let is_web = |uri: &String| uri.starts_with("https:") || uri.starts_with("http:");
    let broken = mode == ResponseMode::FormPost && !client.redirect_uris.iter().all(is_web);
    broken.then_some(("default_response_mode", "must not be form_post: a custom scheme cannot receive a post"))
}

fn keys_come_one_way(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = client.jwks.is_some() && client.jwks_uri.is_some();
    broken.then_some(("jwks", "must not stand beside jwks_uri"))
}

fn private_key_jwt_needs_keys(client: &Client) -> Option<(&'static str, &'static str)> {
    let by_key = client.authentication == ClientAuthenticationMethod::PrivateKeyJwt;
    let broken = by_key && client.jwks.is_none() && client.jwks_uri.is_none();
    broken.then_some(("token_endpoint_auth_method", "is private_key_jwt, which needs jwks or jwks_uri"))
}

/// Whoever registers keys means to prove itself by them; a public client would prove nothing.
fn keys_need_private_key_jwt(client: &Client) -> Option<(&'static str, &'static str)> {
    let broken = !client.is_confidential() && (client.jwks.is_some() || client.jwks_uri.is_some());
    broken.then_some(("token_endpoint_auth_method", "must be private_key_jwt: keys are registered"))
}

fn keys_fit_the_algorithm(client: &Client) -> Option<(&'static str, &'static str)> {
    if client.authentication != ClientAuthenticationMethod::PrivateKeyJwt {
        return None;
    }
    let keys = KeySet::parse(client.jwks.as_ref()?)?;
    let broken = !client.assertion_algorithms().iter().any(|alg| keys.has_key_for(*alg));
    broken.then_some(("jwks", "has no key that fits token_endpoint_auth_signing_alg"))
}
