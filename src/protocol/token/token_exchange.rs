//! Token exchange (RFC 8693): a confidential client shows a user's access token that was meant for
//! it, or that its registration lets it take over, and gets a narrower one for the next resource,
//! which ends with the one it was made from.

use serde_json::Value;

use super::access_token::AccessToken;
use super::audience::{Narrowed, aimed, is_target, resources_behind};
use super::delegation::{Actor, DEEPEST, Delegation, Exchanged, TokenOrigin};
use super::extension_grant::MAY_ACT;
use super::token_request::ExtensionRequest;
use crate::words::acr_values::tenant_stands;
use crate::words::client::Client;
use crate::words::json::{Members, SetMember};
use crate::words::reason::{
    Reason, Result, invalid_request, invalid_scope, invalid_target, unauthorized_client,
};
use crate::words::scope::{OFFLINE_ACCESS, OPENID};
use crate::words::secret::SecretText;
use crate::words::sender::Sender;

/// RFC 8693 §3
pub const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";

/// Not yet opened.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownToken {
    pub token: SecretText,
    /// Its type says that it is a JWT; one of ours is then the only thing it can be.
    pub must_be_jwt: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownTokens {
    pub subject: ShownToken,
    pub actor: Option<ShownToken>,
}

/// RFC 8693 §2.1. `invalid_request` where a parameter is missing, alone, or of a type not served.
pub fn read(request: &ExtensionRequest) -> Result<ShownTokens> {
    let subject = shown(request, "subject_token", "subject_token_type")?;
    let actor = shown(request, "actor_token", "actor_token_type")?;
    let requested = request.parameter("requested_token_type");
    if requested.is_some_and(|kind| kind != ACCESS_TOKEN_TYPE) {
        return Err(invalid_request(Reason::UnsupportedTokenType));
    }
    let subject = subject.ok_or_else(|| invalid_request(Reason::MissingSubjectToken))?;
    Ok(ShownTokens { subject, actor })
}

/// Both or neither.
fn shown(request: &ExtensionRequest, token: &str, kind: &str) -> Result<Option<ShownToken>> {
    match (request.parameter(token), request.parameter(kind)) {
        (Some(token), Some(ACCESS_TOKEN_TYPE)) => Ok(Some(ShownToken {
            token: SecretText::new(token),
            must_be_jwt: false,
        })),
        (Some(token), Some(JWT_TYPE)) => Ok(Some(ShownToken {
            token: SecretText::new(token),
            must_be_jwt: true,
        })),
        (Some(_), Some(_)) => Err(invalid_request(Reason::UnsupportedTokenType)),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) if token == "subject_token" => {
            Err(invalid_request(Reason::MissingSubjectToken))
        }
        (Some(_), None) | (None, Some(_)) => Err(invalid_request(Reason::InvalidActorToken)),
    }
}

#[derive(Clone, Copy)]
struct Rights<'a>(&'a Value);

impl<'a> Rights<'a> {
    fn lists(self, key: &str, name: &str) -> bool {
        self.0.texts(key).any(|listed| listed == name)
    }

    /// Issued to a client whose tokens may be exchanged, or meant for a resource that this client
    /// is the server of.
    fn may_take(self, token: &AccessToken) -> bool {
        self.lists("from_clients", token.client_id.as_str())
            || token
                .audience
                .iter()
                .any(|audience| self.lists("as_resources", audience))
    }
}

/// Whether the client may exchange anything at all: a confidential one that is registered for it.
pub fn check_client(client: &Client) -> Result {
    if client.is_confidential() && client.token_exchange.is_some() {
        return Ok(());
    }
    Err(unauthorized_client(Reason::ExchangeNotRegistered))
}

/// Both tokens are ours and live; `actor` is `None` where none was shown.
pub fn judge(
    request: &ExtensionRequest,
    subject: &AccessToken,
    actor: Option<&AccessToken>,
    sender: Sender<'_>,
) -> Result<Exchanged> {
    let client = sender.client;
    check_client(client)?;
    let rights = Rights(client.token_exchange.as_ref().unwrap_or(&Value::Null));
    let unfit = || invalid_request(Reason::InvalidSubjectToken);
    let user = subject.user.as_ref().ok_or_else(unfit)?;
    if !rights.may_take(subject) || !tenant_stands(user.tenant.as_ref(), client, sender.catalogue) {
        return Err(unfit());
    }
    let actor = acting(actor, subject, rights, client)?;
    if !may_act(subject.claims.get(MAY_ACT), &actor, sender.issuer) {
        return Err(invalid_request(Reason::ActorNotAllowed));
    }
    let before = subject
        .delegation
        .clone()
        .map(|before| (before.actors, before.origins));
    let (actors, origins) = before.unwrap_or_default();
    if actors.len() >= DEEPEST {
        return Err(invalid_request(Reason::DelegationTooDeep));
    }
    Ok(Exchanged {
        user: user.clone(),
        delegation: Delegation {
            actors: [actor].into_iter().chain(actors).collect(),
            origins: origins
                .into_iter()
                .chain([TokenOrigin::of(subject)])
                .collect(),
        },
        narrowed: narrowed(request, subject, rights, sender)?,
        claims: subject.claims.clone(),
        ends_at: subject.expires_at,
    })
}

/// The actor token's subject, or the client. For an actor token holds what holds for a subject
/// token, except that it may be the client's own, and speak for no user.
fn acting(
    actor: Option<&AccessToken>,
    subject: &AccessToken,
    rights: Rights<'_>,
    client: &Client,
) -> Result<Actor> {
    let Some(token) = actor else {
        return Ok(Actor::Client(client.client_id.clone()));
    };
    if token.client_id != client.client_id && !rights.may_take(token) {
        return Err(invalid_request(Reason::InvalidActorToken));
    }
    let Some(user) = &token.user else {
        return Ok(Actor::Client(token.client_id.clone()));
    };
    let tenant = subject.user.as_ref().and_then(|user| user.tenant.as_ref());
    if user.tenant.as_ref() != tenant {
        return Err(invalid_request(Reason::InvalidActorToken));
    }
    Ok(Actor::User(user.subject.clone()))
}

/// Every member of `may_act` must be the actor's (RFC 8693 §4.4).
fn may_act(claim: Option<&Value>, actor: &Actor, issuer: &str) -> bool {
    let Some(claim) = claim else { return true };
    let mut named = actor.to_json(None);
    named.set("iss", issuer);
    let Some(members) = claim.as_object() else {
        return false;
    };
    let names_somebody = members.contains_key("sub") || members.contains_key("client_id");
    names_somebody
        && members
            .iter()
            .all(|(name, value)| named.get(name) == Some(value))
}

fn narrowed(
    request: &ExtensionRequest,
    subject: &AccessToken,
    rights: Rights<'_>,
    sender: Sender<'_>,
) -> Result<Narrowed> {
    let Sender {
        client,
        catalogue,
        issuer,
        ..
    } = sender;
    let open = |name: &str| {
        let issuable = !matches!(name, OPENID | OFFLINE_ACCESS) && catalogue.kind(name).is_some();
        issuable && client.scope.contains(name) && subject.scope.contains(name)
    };
    let scope = match &request.scope {
        Some(scope) if scope.iter().all(open) => scope.clone(),
        Some(_) => return Err(invalid_scope(Reason::ScopeBeyondSubjectToken)),
        None => subject.scope.retain(open),
    };
    // `resource` is an address, `audience` a name; both mean registered resources (RFC 8693 §2.1).
    if !request.resources.iter().all(|resource| is_target(resource)) {
        return Err(invalid_target());
    }
    let further = request
        .audiences
        .iter()
        .filter(|audience| !request.resources.contains(audience));
    let mut chosen: Vec<String> = request.resources.iter().chain(further).cloned().collect();
    let behind = resources_behind(&scope, catalogue);
    let has_targets = !chosen.is_empty();
    if !has_targets {
        chosen = behind
            .iter()
            .filter(|name| rights.lists("to_resources", name))
            .map(ToString::to_string)
            .collect();
    }
    let allowed =
        |name: &String| rights.lists("to_resources", name) && behind.contains(&name.as_str());
    if !chosen.iter().all(allowed) {
        return Err(invalid_target());
    }
    let narrowed = aimed(&scope, &chosen, catalogue, issuer);
    // What was asked for by name and cannot be aimed anywhere is refused rather than left out.
    if request.scope.is_some() && !has_targets && narrowed.scope != scope {
        return Err(invalid_target());
    }
    if narrowed.scope.is_empty() {
        Err(invalid_scope(Reason::NoScopeLeft))
    } else {
        Ok(narrowed)
    }
}

#[cfg(test)]
mod tests;
