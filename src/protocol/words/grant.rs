//! A grant: what a user allowed a client at one sign-in, as its row remembers it.

use super::identifiers::{ClientId, GrantId};
use super::instant::Instant;
use super::scope::ScopeSet;
use super::session::SignIn;
use crate::protocol::token::access_token::{AccessToken, Jti, StandsOn};
use crate::protocol::token::claims::ClaimNames;

use serde_json::{Map, Value};

/// One grant's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name.
    pub id: GrantId,
    /// Whose it is.
    pub client_id: ClientId,
    /// Who signed in, and how.
    pub user: SignIn,
    /// What was granted; narrower answers do not change it.
    pub scope: ScopeSet,
    /// `resource` of the authorization request; empty when it named none.
    pub resources: Vec<String>,
    /// Names of claims asked for by the `claims` parameter.
    pub claims: ClaimNames,
    /// Claims of its access tokens that an extension grant gave.
    pub token_claims: Map<String, Value>,
    /// `offline_access` was granted: it outlives its session.
    pub offline: bool,
    /// How often its refresh token has moved on.
    pub generation: i32,
    /// When the authorization was given.
    pub issued_at: Instant,
    /// When it was redeemed, or last refreshed.
    pub last_used_at: Instant,
    /// Its absolute end.
    pub expires_at: Instant,
    /// When somebody revoked it.
    pub revoked_at: Option<Instant>,
}

impl Grant {
    /// An access token that would stand exactly as long as the grant does: for all of it, issued and ending with it.
    pub fn as_access_token(&self) -> AccessToken {
        AccessToken {
            jti: Jti { stands_on: StandsOn::Grant(self.id), random: [0; 12] },
            client_id: self.client_id.clone(),
            user: Some(SignIn { identity_provider: None, ..self.user.clone() }),
            scope: self.scope.clone(),
            audience: self.resources.clone(),
            userinfo_claims: self.claims.userinfo.clone(),
            claims: self.token_claims.clone(),
            delegation: None,
            issued_at: self.issued_at,
            expires_at: self.expires_at,
        }
    }
}
