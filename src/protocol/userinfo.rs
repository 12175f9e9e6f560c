//! UserInfo (OpenID Connect Core §5.3): who may ask, and what they read.

use serde_json::{Map, Value, json};

use super::access_token::AccessToken;
use super::bearer::BearerFailure;
use super::claims;
use super::instant::Instant;
use super::liveness::{self, LivenessFacts};
use super::scope::{Catalogue, OPENID};
use super::user::User;

/// Whether a token opens the UserInfo endpoint.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum UserInfoVerdict<'a> {
    /// Answer with this user's claims.
    Answer(&'a User),
    /// Refuse.
    Refuse(BearerFailure),
}

/// Judges a token of ours: alive, of a user, with `openid`; for whichever audience it was made.
pub fn judge<'a>(
    token: &AccessToken,
    user: Option<&'a User>,
    facts: &LivenessFacts,
    now: Instant,
) -> UserInfoVerdict<'a> {
    if !liveness::stands(token, user, facts, now) {
        return UserInfoVerdict::Refuse(BearerFailure::InvalidToken);
    }
    match user {
        Some(user) if token.user.is_some() && token.scope.contains(OPENID) => UserInfoVerdict::Answer(user),
        Some(_) | None => UserInfoVerdict::Refuse(BearerFailure::InsufficientScope),
    }
}

/// The answer: `sub`, and the claims that the token's identity scopes and requested names release.
pub fn response(token: &AccessToken, user: &User, catalogue: &Catalogue) -> Map<String, Value> {
    let names = claims::identity_claim_names(&token.scope, &token.userinfo_claims, catalogue);
    let mut members = claims::mapped(user, names);
    members.insert(String::from("sub"), json!(user.subject.as_str()));
    members
}
