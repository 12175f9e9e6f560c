//! ID-JAGs: identity assertion authorization grants
//! (draft-ietf-oauth-identity-assertion-authz-grant-04). The authorization server that people sign
//! in to gives a client an ID-JAG for another server, and that one redeems it for an access token,
//! so that nobody signs in twice. We are either of the two: [`propose`] judges the ID-JAG of
//! somebody else, [`judge`] the request for one of ours.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::access_token::AccessToken;
use super::assertion::{numeric_date, single};
use super::audience::meant;
use super::claims::Object;
use super::extension_grant::Proposal;
use super::jwt_bearer::{invalid_grant, of_issuer};
use super::liveness::{self, LivenessFacts, check_registration, consent_has_lapsed};
use super::token_request::ExtensionRequest;
use crate::protocol::keys::jwt::UnverifiedJws;
use crate::protocol::words::catalogue::{AssertionIssuer, Catalogue};
use crate::protocol::words::client::{Client, IdJagEntry, allows_role};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use crate::protocol::words::scope::{OPENID, ScopeSet};
use crate::protocol::words::session::{SignIn, User};
use crate::protocol::words::strength::Strength;

pub const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
/// What discovery calls servers that redeem ID-JAGs.
pub const GRANT_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// `token_type` of an answer with an ID-JAG: it opens nothing by itself (RFC 8693 §2.2.1).
pub const NOT_APPLICABLE: &str = "N_A";
pub const LIFETIME: Duration = Duration::from_secs(300);

/// Judges an ID-JAG beyond what is asked of any assertion, and proposes what it may give here. Its
/// signature is verified after this, before anything is issued.
pub fn propose(
    jws: &UnverifiedJws,
    issuer: &AssertionIssuer,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<Proposal, TokenError> {
    let claims = jws.unverified_claims().unwrap_or_default();
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    // Here a DPoP proof of the request is to be compared with `cnf.jkt`, and the access token bound
    // to that key. Until proofs are taken, an ID-JAG that wants one is good for nothing.
    if claims.contains_key("cnf") {
        return Err(invalid_grant(Reason::IdJagOfKey));
    }
    let is_clients =
        client.is_confidential() && text("client_id") == Some(client.client_id.as_str());
    let resource = claims.get("resource").and_then(single);
    let resource =
        resource.and_then(|one| meant(one, |name| catalogue.resources.contains_key(name)));
    let Some(resource) = resource.filter(|_| is_clients) else {
        return Err(invalid_grant(Reason::IdJagNotTaken));
    };
    let scope = match claims.get("scope") {
        None => Some(of_issuer(issuer, client)),
        Some(scope) => scope
            .as_str()
            .and_then(ScopeSet::parse)
            .map(|scope| of_issuer(issuer, client).retain(|name| scope.contains(name))),
    };
    if scope.is_none() || !claims.contains_key("iat") {
        return Err(invalid_grant(Reason::AssertionClaims));
    }
    Ok(Proposal {
        scope,
        acr: text("acr")
            .and_then(|theirs| issuer.acr_map.get(theirs))
            .cloned(),
        auth_time: claims.get("auth_time").and_then(numeric_date),
        resources: vec![resource],
        ..Proposal::default()
    })
}

/// Whether a token exchange asks for an ID-JAG.
pub fn is_asked(request: &ExtensionRequest) -> bool {
    request.parameter("requested_token_type") == Some(ID_JAG_TYPE)
}

/// The ID token that was shown, not yet opened, if the client may get ID-JAGs at all.
pub fn read<'a>(request: &'a ExtensionRequest, client: &Client) -> Result<&'a str, TokenError> {
    if !client.is_confidential() || client.id_jag.is_empty() {
        return Err(TokenError::new(
            TokenErrorCode::UnauthorizedClient,
            Reason::ExchangeNotRegistered,
        ));
    }
    let refused = |reason| TokenError::new(TokenErrorCode::InvalidRequest, reason);
    // Nobody else acts for the user.
    if request.parameter("actor_token").is_some() {
        return Err(refused(Reason::InvalidActorToken));
    }
    let token = request.parameter("subject_token");
    match (token, request.parameter("subject_token_type")) {
        (Some(token), Some(ID_TOKEN_TYPE)) => Ok(token),
        (Some(_), Some(_)) => Err(refused(Reason::UnsupportedTokenType)),
        (None, _) | (_, None) => Err(refused(Reason::MissingSubjectToken)),
    }
}

/// The claims of an ID token of ours, as those of an access token that stands on the same. `None`
/// where no grant can be found by it.
pub fn as_access_token(mut claims: Map<String, Value>, issuer: &str) -> Option<AccessToken> {
    // Access tokens may have the same `typ`. They have this claim.
    if claims.contains_key("client_id") {
        return None;
    }
    let client_id = claims.get("aud")?.clone();
    claims.insert(String::from("client_id"), client_id);
    claims.insert(String::from("scope"), json!(OPENID));
    AccessToken::from_verified_claims(&claims, issuer)
}

/// What an ID-JAG of ours is given for.
#[derive(Clone, Debug, PartialEq)]
pub struct IdJagGrant<'a> {
    pub entry: &'a IdJagEntry,
    pub resource: String,
    pub scope: ScopeSet,
    pub sign_in: &'a SignIn,
    pub user: &'a User,
}

/// Whether the client gets the ID-JAG that it asks for with its ID token. What ends a refresh token
/// ends this. The registered entry stands for the user's consent.
pub fn judge<'a>(
    request: &ExtensionRequest,
    token: &'a AccessToken,
    user: Option<&'a User>,
    facts: &LivenessFacts,
    client: &'a Client,
    catalogue: &Catalogue,
    now: Instant,
) -> Result<IdJagGrant<'a>, TokenError> {
    let refused = |code, reason| Err(TokenError::new(code, reason));
    let invalid_target = || TokenError::new(TokenErrorCode::InvalidTarget, Reason::InvalidTarget);
    let unfit = || TokenError::new(TokenErrorCode::InvalidRequest, Reason::InvalidSubjectToken);
    let named = |entry: &&IdJagEntry| request.audiences == [entry.audience.as_str()];
    let entry = client
        .id_jag
        .iter()
        .find(named)
        .ok_or_else(invalid_target)?;
    let is_name = |name: &str| entry.resources.iter().any(|resource| resource == name);
    let resource = match request.resources.as_slice() {
        [resource] => meant(resource, is_name),
        [] | [_, _, ..] => None,
    };
    let resource = resource.ok_or_else(invalid_target)?;
    let scope = match &request.scope {
        Some(asked) => entry.scope.retain(|name| asked.contains(name)),
        None => entry.scope.clone(),
    };
    if scope.is_empty() {
        return refused(TokenErrorCode::InvalidScope, Reason::NoScopeLeft);
    }
    let sign_in = token.user.as_ref().ok_or_else(unfit)?;
    let user = user.ok_or_else(unfit)?;
    let role = user.claims.get("role");
    if !client.is_open_to(role) || !allows_role(entry.allowed_roles.as_ref(), role) {
        return refused(TokenErrorCode::InvalidGrant, Reason::NotOpenToUser);
    }
    if Strength::of(&sign_in.acr) < entry.minimum_acr.max(client.minimum_acr) {
        let code = TokenErrorCode::InsufficientUserAuthentication;
        return refused(code, Reason::AcrBelowMinimum);
    }
    let stands = check_registration(sign_in, &token.scope, client, catalogue).is_ok()
        && !consent_has_lapsed(token.issued_at, client, facts, now)
        && liveness::stands(token, Some(client), Some(user), facts, now);
    let granted = IdJagGrant {
        entry,
        resource,
        scope,
        sign_in,
        user,
    };
    stands.then_some(granted).ok_or_else(unfit)
}

impl IdJagGrant<'_> {
    /// The claims to sign.
    pub fn claims(&self, issuer: &str, jti: &str, now: Instant) -> Object<14> {
        let sign_in = self.sign_in;
        let claims = &self.user.claims;
        // Others may find people by their address, so it must be theirs.
        let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
        let email = claims
            .get("email")
            .filter(|_| self.entry.email && is_verified);
        let own = [
            ("iss", json!(issuer)),
            ("sub", json!(sign_in.subject)),
            ("aud", json!(self.entry.audience)),
            ("jti", json!(jti)),
            ("iat", json!(now.seconds())),
            ("exp", json!(now.plus(LIFETIME).seconds())),
            ("client_id", json!(self.entry.client_id)),
            ("resource", json!(self.resource)),
            ("scope", json!(self.scope.to_string())),
            ("auth_time", json!(sign_in.auth_time.seconds())),
            ("acr", json!(sign_in.acr)),
            ("amr", json!(sign_in.amr)),
            ("tenant", json!(sign_in.tenant)),
            ("email", json!(email)),
        ];
        // `cnf` stands here once the request can prove a key (DPoP).
        Object(own, Map::new())
    }
}
