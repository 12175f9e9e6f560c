//! What a client's `profile` means: the settings that it fills in where the registration says
//! nothing, and those that contradict it. The assertion's claims are judged by
//! `protocol::token::assertion`.

use std::time::Duration;

use super::problem::Contradiction;
use super::walker::Walker;
use crate::words::client::{
    ApplicationType, Client, ClientAuthenticationMethod, GrantType, Profile, RefreshTokenUsage,
    SigningAlgorithm,
};
use crate::words::response_type::ResponseType;

/// FAPI 2.0 §5.3.2.1
const LONGEST_CODE: Duration = Duration::from_secs(60);

/// The grants that FAPI 2.0 speaks of.
const GRANTS: [GrantType; 3] = [
    GrantType::AuthorizationCode,
    GrantType::RefreshToken,
    GrantType::ClientCredentials,
];

/// Fills in what the registration does not say. How the client authenticates is known already.
pub(super) fn fill_in(walker: &mut Walker<'_>, client: &mut Client) {
    match client.profile {
        Some(Profile::Fapi2) => fill_in_unsaid(client, |key| walker.value(key).is_none()),
        None => {}
    }
}

fn fill_in_unsaid(client: &mut Client, mut is_unsaid: impl FnMut(&'static str) -> bool) {
    if is_unsaid("require_pushed_authorization_requests") {
        client.requires_pushed_requests = true;
    }
    if is_unsaid("dpop_bound_access_tokens") {
        client.requires_dpop = true;
    }
    if is_unsaid("dpop_nonce") {
        client.requires_dpop_nonce = true;
    }
    if is_unsaid("require_pkce") {
        client.require_pkce = Some(true);
    }
    if is_unsaid("refresh_token_usage") {
        client.refresh_token_usage = RefreshTokenUsage::Reuse;
    }
    if is_unsaid("id_token_signed_response_alg") {
        client.id_token_signed_response_alg = SigningAlgorithm::Es256;
    }
    if is_unsaid("access_token_signed_response_alg") {
        client.access_token_signed_response_alg = SigningAlgorithm::Es256;
    }
    if is_unsaid("authorization_code_lifetime") {
        let lifetime = &mut client.lifetimes.authorization_code;
        *lifetime = LONGEST_CODE.min(*lifetime);
    }
}

/// What the profile forbids, and the registration says all the same.
pub(super) fn contradictions(client: &Client) -> Vec<Contradiction> {
    match client.profile {
        Some(Profile::Fapi2) => forbidden_by_fapi2(client),
        None => Vec::new(),
    }
}

/// Whether the profile lets answers go there, also where the registration does not list it.
pub(super) fn takes_redirect_uri(client: &Client, uri: &str) -> bool {
    match client.profile {
        Some(Profile::Fapi2) => !is_unencrypted(client, uri) && !is_localhost(uri),
        None => true,
    }
}

/// http is for native applications, on the person's own machine.
fn is_unencrypted(client: &Client, uri: &str) -> bool {
    client.application_type == ApplicationType::Web && uri.starts_with("http:")
}

/// A name that other machines may answer to (RFC 8252 §8.3).
fn is_localhost(uri: &str) -> bool {
    uri.starts_with("http://localhost")
}

/// What a client must change before it can have the profile, key by key. What the profile would
/// fill in is not among it. That a registration says one of these keys all the same is told when
/// the profile is applied: here only `require_pkce` shows whether it was said.
pub fn wanted_by_fapi2(client: &Client) -> Vec<String> {
    let mut filled = client.clone();
    let says_pkce = client.require_pkce.is_some();
    fill_in_unsaid(&mut filled, |key| key != "require_pkce" || !says_pkce);
    let mut wanted = Vec::new();
    for (is_there, key, rule) in forbidden_by_fapi2(&filled) {
        if is_there {
            let (rule, _) = rule.split_once(": profile").unwrap_or((rule, ""));
            wanted.push(format!("{key} {rule}"));
        }
    }
    wanted
}

#[rustfmt::skip]
fn forbidden_by_fapi2(client: &Client) -> Vec<Contradiction> {
    vec![
        (client.authentication != ClientAuthenticationMethod::PrivateKeyJwt,
            "token_endpoint_auth_method", "must be private_key_jwt: profile is fapi2"),
        (client.token_endpoint_auth_signing_alg == Some(SigningAlgorithm::Rs256),
            "token_endpoint_auth_signing_alg", "must be ES256 or EdDSA: profile is fapi2"),
        (!client.federated.is_empty(),
            "federated", "must be left out: profile is fapi2, and the client's own key proves it"),
        (!client.grant_types.iter().all(|grant| GRANTS.contains(grant)),
            "grant_types",
            "must have authorization_code, refresh_token and client_credentials alone: profile is \
             fapi2"),
        (client.response_types.iter().any(|kind| *kind != ResponseType::CODE),
            "response_types", "must be code alone: profile is fapi2"),
        (client.redirect_uris.iter().any(|uri| is_unencrypted(client, uri)),
            "redirect_uris",
            "must be https: profile is fapi2, and http on one's own machine is for \
             application_type native"),
        (client.redirect_uris.iter().any(|uri| is_localhost(uri)),
            "redirect_uris",
            "must say 127.0.0.1 or [::1] in the place of localhost: profile is fapi2"),
        (!client.requires_pushed_requests,
            "require_pushed_authorization_requests", "must be true: profile is fapi2"),
        (!client.requires_dpop,
            "dpop_bound_access_tokens", "must be true: profile is fapi2"),
        (!client.requires_dpop_nonce,
            "dpop_nonce", "must be true: profile is fapi2"),
        (client.require_pkce != Some(true),
            "require_pkce", "must be true: profile is fapi2"),
        (client.allow_plain_pkce,
            "allow_plain_pkce", "must be false: profile is fapi2"),
        (!client.iss_on_error,
            "authorization_response_iss_on_error", "must be true: profile is fapi2"),
        (client.refresh_token_usage != RefreshTokenUsage::Reuse,
            "refresh_token_usage",
            "must be reuse: profile is fapi2, whose refresh tokens are bound to the client and do \
             not rotate"),
        (client.refresh_token_without_offline_access,
            "refresh_token_without_offline_access", "must be false: profile is fapi2"),
        (client.id_token_signed_response_alg == SigningAlgorithm::Rs256,
            "id_token_signed_response_alg", "must be ES256 or EdDSA: profile is fapi2"),
        (client.access_token_signed_response_alg == SigningAlgorithm::Rs256,
            "access_token_signed_response_alg", "must be ES256 or EdDSA: profile is fapi2"),
        (client.lifetimes.authorization_code > LONGEST_CODE,
            "authorization_code_lifetime", "must be 60 at most: profile is fapi2"),
    ]
}
