//! A grant: what a user allowed a client at one sign-in. Until it is redeemed it lies in the code that promises it; from
//! then on its row remembers it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::protocol::token::access_token::{AccessToken, Jti, StandsOn, json_text};
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::words::client::Client;
use crate::protocol::words::identifiers::{ClientId, GrantId};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::protocol::words::session::SignIn;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its day is that of `expires_at`.
    pub id: GrantId,
    pub client_id: ClientId,
    pub user: SignIn,
    /// What was granted; narrower answers do not change it.
    pub scope: ScopeSet,
    /// `resource` of the authorization request; empty when it named none.
    pub resources: Vec<String>,
    /// Names of claims asked for by the `claims` parameter.
    pub claims: ClaimNames,
    /// Claims of its access tokens that an extension grant gave.
    #[serde(with = "json_text")]
    pub token_claims: Map<String, Value>,
    pub epochs: Epochs,
    /// How often its refresh token has moved on.
    pub generation: i32,
    /// When the authorization was given.
    pub issued_at: Instant,
    /// When it was redeemed, or last refreshed.
    pub last_used_at: Instant,
    pub expires_at: Instant,
    pub revoked_at: Option<Instant>,
}

impl Grant {
    /// A grant given now, that waits `redeemable` long to be redeemed. It ends for good with its refresh tokens, or
    /// without any with the one access token of its last moment.
    pub fn given(
        random: [u8; 16],
        client: &Client,
        user: SignIn,
        scope: ScopeSet,
        epochs: Epochs,
        now: Instant,
        redeemable: Duration,
    ) -> Grant {
        let expires_at = match scope.contains(OFFLINE_ACCESS) {
            true => now.plus(client.lifetimes.refresh_token),
            false => now.plus(redeemable).plus(client.lifetimes.access_token),
        };
        Grant {
            id: GrantId { day: expires_at.day(), random },
            client_id: client.client_id.clone(),
            user,
            scope,
            resources: Vec::new(),
            claims: ClaimNames::default(),
            token_claims: Map::new(),
            epochs,
            generation: 0,
            issued_at: now,
            last_used_at: now,
            expires_at,
            revoked_at: None,
        }
    }

    /// With `offline_access` it outlives its session.
    pub fn is_offline(&self) -> bool {
        self.scope.contains(OFFLINE_ACCESS)
    }

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

/// What a code, a grant or a token of a user carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epochs {
    pub installation: i64,
    pub client: i64,
    pub user: i64,
    /// Of the user's consent to the client: 0 until it is withdrawn or lapses for the first time.
    pub consent: i64,
}

/// What a browser session carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEpochs {
    pub installation: i64,
    pub user: i64,
}

impl SessionEpochs {
    /// With those of the client, and of the user's consent to it.
    pub fn at_client(self, client: i64, consent: i64) -> Epochs {
        Epochs { installation: self.installation, client, user: self.user, consent }
    }
}
