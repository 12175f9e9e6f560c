//! A grant that begins at the token endpoint, without a browser session: its row, and its first tokens.

use serde_json::Map;

use super::GrantContext;
use super::issue::{self, Issue, IssueGrant, IssueUser};
use crate::app::failure::Failure;
use crate::keys::random;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::Narrowed;
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::client::Client;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::GrantId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::protocol::words::session::SignIn;
use crate::registry::Snapshot;
use crate::store::grants::NewGrant;
use crate::store::users::UserRow;

/// When a grant of that scope ends for good: with its refresh tokens, or without any with its one access token.
pub fn ends_at(scope: &ScopeSet, client: &Client, from: Instant) -> Instant {
    let lifetimes = &client.lifetimes;
    from.plus(if scope.contains(OFFLINE_ACCESS) { lifetimes.refresh_token } else { lifetimes.access_token })
}

/// The row of a grant that begins now.
pub fn new_grant(
    context: GrantContext<'_>,
    sign_in: SignIn,
    scope: ScopeSet,
    resources: &[String],
    epochs: Epochs,
) -> NewGrant {
    let client = &context.client.client;
    let expires_at = ends_at(&scope, client, context.now);
    NewGrant {
        id: GrantId { day: expires_at.day(), random: random::bytes() },
        attempt: random::bytes(),
        client_id: client.client_id.clone(),
        sign_in,
        scope,
        resources: resources.to_vec(),
        claims: ClaimNames::default(),
        token_claims: Map::new(),
        epochs,
        issued_at: context.now,
        expires_at,
    }
}

/// Makes the first tokens of a grant that was entered just now.
pub fn answer(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    narrowed: Narrowed,
    (sign_in, scope): (&SignIn, &ScopeSet),
    (id, expires_at): (GrantId, Instant),
    user: &UserRow,
) -> Result<TokenResponse, Failure> {
    let client = &context.client.client;
    let user = IssueUser {
        sign_in,
        user: &user.to_core(),
        grant: Some(IssueGrant::begun(id, expires_at, scope, client)),
        claims: &ClaimNames::default(),
        nonce: None,
    };
    let issue = Issue { client, scope, user: Some(user), stands_on: StandsOn::Grant(id), now: context.now };
    issue::tokens(context.app, snapshot, narrowed, &issue)
}
