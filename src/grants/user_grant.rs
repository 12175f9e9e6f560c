//! A grant that begins at the token endpoint: the request itself says whose it is. Its row is made here, then its tokens.

use serde_json::{Map, json};

use super::GrantContext;
use super::issue::{self, Issue, IssueGrant, IssueUser};
use crate::app::failure::Failure;
use crate::crypto::random;
use crate::protocol::access_token::StandsOn;
use crate::protocol::audience::Narrowed;
use crate::protocol::claims::ClaimNames;
use crate::protocol::client::Client;
use crate::protocol::epochs::Epochs;
use crate::protocol::identifiers::GrantId;
use crate::protocol::instant::Instant;
use crate::protocol::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::protocol::token_response::TokenResponse;
use crate::protocol::token_subject::TokenSubject;
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::grants::{self, NewGrant};
use crate::store::users::UserRow;

/// What is to be granted.
#[derive(Clone, Debug)]
pub struct UserGrant {
    /// To whom; without a browser session.
    pub sign_in: TokenSubject,
    /// The whole scope.
    pub scope: ScopeSet,
    /// `resource` of the request.
    pub resources: Vec<String>,
    /// What it stands on.
    pub epochs: Epochs,
    /// Name of the audit event.
    pub event: &'static str,
}

/// When a grant of that scope ends for good: with its refresh tokens, or without any with its one access token.
pub fn ends_at(scope: &ScopeSet, client: &Client, from: Instant) -> Instant {
    let lifetimes = &client.lifetimes;
    from.plus(if scope.contains(OFFLINE_ACCESS) { lifetimes.refresh_token } else { lifetimes.access_token })
}

/// Enters the grant and makes its tokens. `None` when user, client or consent do not stand.
pub fn begin(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    narrowed: Narrowed,
    grant: &UserGrant,
) -> Result<Option<TokenResponse>, Failure> {
    let new = new_grant(context, grant);
    let event = AuditEvent {
        event: grant.event,
        source: Some(context.request.source),
        request_id: Some(&context.request.id),
        ..AuditEvent::default()
    };
    let Some(user) = grants::begin(&context.app.store, &new, &event)? else { return Ok(None) };
    let begun = Begun { sign_in: &grant.sign_in, scope: &grant.scope, id: new.id, expires_at: new.expires_at };
    answer(context, snapshot, narrowed, begun, &user).map(Some)
}

fn new_grant(context: GrantContext<'_>, grant: &UserGrant) -> NewGrant {
    let client = &context.client.client;
    let expires_at = ends_at(&grant.scope, client, context.now);
    NewGrant {
        id: GrantId { day: expires_at.day(), random: random::bytes() },
        attempt: random::bytes(),
        client_id: client.client_id.clone(),
        sub: grant.sign_in.subject.clone(),
        scopes: grant.scope.iter().map(str::to_owned).collect(),
        resources: grant.resources.clone(),
        claims: json!({}),
        token_claims: Map::new(),
        session: None,
        tenant: grant.sign_in.tenant.clone(),
        identity_provider: grant.sign_in.identity_provider.clone(),
        auth_time: grant.sign_in.auth_time,
        amr: grant.sign_in.amr.clone(),
        acr: grant.sign_in.acr.clone(),
        offline: grant.scope.contains(OFFLINE_ACCESS),
        epochs: grant.epochs,
        issued_at: context.now,
        expires_at,
    }
}

/// A grant without a browser session that was entered just now.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// To whom.
    pub sign_in: &'a TokenSubject,
    /// The whole scope.
    pub scope: &'a ScopeSet,
    /// Its name.
    pub id: GrantId,
    /// Its absolute end.
    pub expires_at: Instant,
}

/// Makes the grant's first tokens.
pub fn answer(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    narrowed: Narrowed,
    begun: Begun<'_>,
    user: &UserRow,
) -> Result<TokenResponse, Failure> {
    let client = &context.client.client;
    let user = IssueUser {
        sign_in: begun.sign_in,
        user: &user.to_core(),
        grant: Some(IssueGrant::begun(begun.id, begun.expires_at, begun.scope, client)),
        claims: &ClaimNames::default(),
        nonce: None,
    };
    let stands_on = StandsOn::Grant(begun.id);
    let issue = Issue { client, scope: begun.scope, user: Some(user), stands_on, now: context.now };
    issue::tokens(context.app, snapshot, narrowed, &issue)
}
