//! The parameters that are a rule of their own: response type, nonce, PKCE, max_age, claims, resources.

use super::super::client::Client;
use super::super::errors::AuthorizeErrorCode;
use super::super::lengths;
use super::super::parameters::Parameters;
use super::super::pkce::{CodeChallenge, CodeChallengeMethod};
use super::super::reason::Reason;
use super::super::redirect_uri::is_absolute_uri;
use super::super::requested_claims::RequestedClaims;
use super::super::response_type::ResponseType;
use super::super::scope::{Catalogue, OPENID, RegisteredScope, ScopeKind, ScopeSet};
use super::{RESOURCE, Refusal, Registered, invalid_request, is_reachable, owned, single};

/// `response_type`: known, answered by this server, the client's own, and no token through the browser unless registered.
pub(super) fn response_type(
    parameters: &Parameters,
    client: &Client,
    supported: &[ResponseType],
) -> Result<ResponseType, Refusal> {
    let sent = single(parameters, "response_type")?.ok_or_else(|| invalid_request(Reason::MissingResponseType))?;
    let known = ResponseType::parse(sent).filter(|response_type| supported.contains(response_type));
    let response_type = known
        .ok_or_else(|| Refusal::new(AuthorizeErrorCode::UnsupportedResponseType, Reason::UnsupportedResponseType))?;
    if !client.response_types.contains(&response_type) {
        return Err(Refusal::new(AuthorizeErrorCode::UnauthorizedClient, Reason::UnregisteredResponseType));
    }
    if response_type.token && !client.allow_access_tokens_via_browser {
        return Err(Refusal::new(AuthorizeErrorCode::UnauthorizedClient, Reason::TokensThroughBrowser));
    }
    Ok(response_type)
}

/// `nonce`: needed by every type that returns an ID token from here (OpenID Connect Core §3.2.2.1, §3.3.2.11).
pub(super) fn nonce(parameters: &Parameters, response_type: ResponseType) -> Result<Option<String>, Refusal> {
    let nonce = owned(parameters, "nonce")?;
    if response_type.id_token && nonce.is_none() { Err(invalid_request(Reason::MissingNonce)) } else { Ok(nonce) }
}

/// `code_challenge`: needed with a code unless a confidential client is registered otherwise; ignored without one.
pub(super) fn code_challenge(
    parameters: &Parameters,
    response_type: ResponseType,
    client: &Client,
) -> Result<Option<CodeChallenge>, Refusal> {
    if !response_type.code {
        return Ok(None);
    }
    // Sent empty, or with a method beside it, the client means to use PKCE: going on without would take its protection away.
    let meant = parameters.was_sent("code_challenge") || single(parameters, "code_challenge_method")?.is_some();
    let required = client.require_pkce || !client.is_confidential();
    let Some(challenge) = single(parameters, "code_challenge")? else {
        return if meant || required { Err(invalid_request(Reason::MissingCodeChallenge)) } else { Ok(None) };
    };
    let method = CodeChallengeMethod::parse(single(parameters, "code_challenge_method")?).map_err(invalid_request)?;
    if method == CodeChallengeMethod::Plain && !client.allow_plain_pkce {
        return Err(invalid_request(Reason::PlainPkce));
    }
    CodeChallenge::parse(challenge, method).map(Some).map_err(invalid_request)
}

/// `max_age`: one to eighteen ASCII digits.
pub(super) fn max_age(parameters: &Parameters, client: &Client) -> Result<Option<u64>, Refusal> {
    let Some(sent) = single(parameters, "max_age")? else {
        return Ok(client.default_max_age);
    };
    // `parse` alone would take a sign.
    let digits = sent.len() <= 18 && sent.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = if digits { sent.parse::<u64>().ok() } else { None };
    seconds.map(Some).ok_or_else(|| invalid_request(Reason::MalformedMaxAge))
}

/// `claims`: means something in OpenID requests only. An essential `acr` out of reach ends the request at once.
pub(super) fn claims(
    parameters: &Parameters,
    scope: &ScopeSet,
    registered: &Registered<'_>,
) -> Result<RequestedClaims, Refusal> {
    let Some(sent) = single(parameters, "claims")? else {
        return Ok(RequestedClaims::default());
    };
    let claims = RequestedClaims::parse(sent, registered.client, registered.catalogue).map_err(invalid_request)?;
    if !scope.contains(OPENID) {
        return Ok(RequestedClaims::default());
    }
    if !is_reachable(&claims) {
        let code = AuthorizeErrorCode::UnmetAuthenticationRequirements;
        return Err(Refusal::new(code, Reason::UnmetAuthenticationRequirements));
    }
    Ok(claims)
}

/// `resource` (RFC 8707 §2): each a registered resource behind one of the scopes asked for.
pub(super) fn resources(
    parameters: &Parameters,
    scope: &ScopeSet,
    catalogue: &Catalogue,
) -> Result<Vec<String>, Refusal> {
    if parameters.all(RESOURCE).nth(lengths::RESOURCES).is_some() {
        return Err(invalid_request(Reason::RepeatedParameter));
    }
    let mut resources: Vec<String> = Vec::new();
    for sent in parameters.all(RESOURCE).filter(|sent| !sent.is_empty()) {
        if sent.chars().nth(lengths::RESOURCE).is_some() {
            return Err(invalid_request(Reason::OverlongParameter));
        }
        if !is_behind(sent, scope, catalogue) {
            return Err(Refusal::with_detail(AuthorizeErrorCode::InvalidTarget, Reason::UnknownResource, sent));
        }
        if !resources.iter().any(|known| known == sent) {
            resources.push(sent.to_owned());
        }
    }
    Ok(resources)
}

fn is_behind(resource: &str, scope: &ScopeSet, catalogue: &Catalogue) -> bool {
    let leads_there = |registered: &RegisteredScope| {
        registered.kind == ScopeKind::Resource && registered.resources.iter().any(|name| name == resource)
    };
    let named = || scope.iter().filter_map(|name| catalogue.scopes.get(name)).any(leads_there);
    is_absolute_uri(resource) && catalogue.resources.contains_key(resource) && named()
}
