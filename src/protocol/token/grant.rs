//! A grant: what a user allowed a client at one sign-in. Before it is redeemed, the authorization
//! code carries it under a seal. Redeeming the code writes it as a row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::access_token::{AccessToken, Jti, StandsOn, json_text};
use super::audience::{Narrowed, narrow_granted};
use super::claims::ClaimNames;
use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::epochs::Epochs;
use crate::words::identifiers::{ClientId, GrantId, KeyThumbprint};
use crate::words::instant::Instant;
use crate::words::json::JsonObject;
use crate::words::reason::TokenError;
use crate::words::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::words::session::SignIn;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Its day is the day of `expires_at`.
    pub id: GrantId,
    pub client_id: ClientId,
    pub user: SignIn,
    /// What was granted. A token answer with a narrower scope does not change it.
    pub scope: ScopeSet,
    /// The `resource` parameters of the authorization request (RFC 8707), or what an extension
    /// grant proposed in their place; empty without any.
    pub resources: Vec<String>,
    /// Names of claims asked for by the `claims` parameter.
    pub claims: ClaimNames,
    /// Claims that an extension grant puts into the access tokens of this grant.
    #[serde(with = "json_text")]
    pub token_claims: JsonObject,
    pub epochs: Epochs,
    /// How often the refresh token was exchanged for its successor.
    pub generation: i32,
    /// When the authorization was given.
    pub issued_at: Instant,
    /// When it was redeemed, or last refreshed.
    pub last_used_at: Instant,
    pub expires_at: Instant,
    pub revoked_at: Option<Instant>,
    /// The key that its refresh tokens are bound to. It is set when the grant is entered; a code
    /// has its own.
    #[serde(skip)]
    pub confirmation: Option<KeyThumbprint>,
}

/// What a user gives a client.
pub struct Given {
    pub user: SignIn,
    pub scope: ScopeSet,
    /// The epochs at which it is given.
    pub epochs: Epochs,
    /// The end of the browser session that it is given in.
    pub session_ends_at: Option<Instant>,
}

impl Grant {
    /// A grant that is given now, and can be redeemed for `redeemable`. With `offline_access` it
    /// expires when its refresh tokens do. Without, it expires with the last access token that it
    /// can give: one that is issued at the end of `redeemable`; or, where it can be refreshed, with
    /// the session.
    pub fn given(
        random: [u8; 16],
        client: &Client,
        given: Given,
        now: Instant,
        redeemable: Duration,
    ) -> Grant {
        let Given {
            user,
            scope,
            epochs,
            session_ends_at,
        } = given;
        let of_refresh_tokens = now.plus(client.lifetimes.refresh_token);
        let of_access_tokens = now.plus(redeemable).plus(client.lifetimes.access_token);
        let expires_at = match session_ends_at {
            _ if scope.contains(OFFLINE_ACCESS) => of_refresh_tokens,
            Some(end) if client.refresh_token_without_offline_access => {
                end.max(of_access_tokens).min(of_refresh_tokens)
            }
            Some(_) | None => of_access_tokens,
        };
        Grant {
            id: GrantId {
                day: expires_at.day(),
                random,
            },
            client_id: client.client_id.clone(),
            user,
            scope,
            resources: Vec::new(),
            claims: ClaimNames::default(),
            token_claims: JsonObject::new(),
            epochs,
            generation: 0,
            issued_at: now,
            last_used_at: now,
            expires_at,
            revoked_at: None,
            confirmation: None,
        }
    }

    /// Whether the grant lives on after its session ends.
    pub fn is_offline(&self) -> bool {
        self.scope.contains(OFFLINE_ACCESS)
    }

    /// Whether it brings refresh tokens, where the client may refresh.
    pub fn brings_refresh_tokens(&self, client: &Client) -> bool {
        let in_session = client.refresh_token_without_offline_access && self.user.sid.is_some();
        self.is_offline() || in_session
    }

    /// The scope and audience of a token for these resources, or for all that were granted.
    pub fn narrowed(
        &self,
        resources: &[String],
        catalogue: &Catalogue,
        issuer: &str,
    ) -> Result<Narrowed, TokenError> {
        narrow_granted(&self.scope, resources, &self.resources, catalogue, issuer)
    }

    /// An access token with all that was granted, issued with the grant and ending with it.
    /// Whatever asks whether a token still stands can be asked about the grant by this token.
    pub fn as_access_token(&self) -> AccessToken {
        AccessToken {
            jti: Jti {
                stands_on: StandsOn::Grant(self.id),
                random: [0; 12],
            },
            client_id: self.client_id.clone(),
            user: Some(self.user.clone()),
            scope: self.scope.clone(),
            audience: self.resources.clone(),
            userinfo_claims: self.claims.userinfo.clone(),
            claims: self.token_claims.clone(),
            delegation: None,
            issued_at: self.issued_at,
            expires_at: self.expires_at,
            confirmation: None,
        }
    }
}
