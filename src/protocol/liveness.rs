//! Whether what was issued still stands: the one rule for userinfo, introspection and every later use of a token. What a
//! token names and the database does not have is dead.

use std::time::Duration;

use super::access_token::AccessToken;
use super::instant::Instant;
use super::user::User;

/// How far ahead of `now` another process of ours may have stamped a token.
const SKEW: Duration = Duration::from_secs(60);

/// What the database says about everything a token stands on; one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivenessFacts {
    /// Whether this very token was revoked.
    pub token_revoked: bool,
    /// The grant its `jti` names; `None` when there is no such row (or the token names none).
    pub grant: Option<GrantFacts>,
    /// The session its `sid` names; `None` when there is no such row (or the token names none).
    pub session: Option<SessionFacts>,
    /// The client; `None` when it is gone.
    pub client: Option<ClientFacts>,
    /// Where the user's consent to this client was withdrawn: what was issued until then is dead.
    pub consent_revoked_before: Option<Instant>,
    /// `gatepost revoke --everything`
    pub installation_tokens_valid_after: Option<Instant>,
}

/// A grant's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantFacts {
    /// Revoked, or burnt.
    pub revoked: bool,
    /// `offline_access` was granted: it outlives its session.
    pub offline: bool,
    /// Its absolute expiry.
    pub expires_at: Instant,
}

/// A session's row. Its natural end does not end tokens, signing out does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Signed out, or ended by an operator.
    pub ended: bool,
}

/// A client's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// `enabled`
    pub enabled: bool,
    /// Nothing of this client issued at or before this instant is good any more.
    pub tokens_valid_after: Instant,
}

/// Whether the token and all it stands on are alive. `user` is the row of the token's subject.
pub fn stands(token: &AccessToken, user: Option<&User>, facts: &LivenessFacts, now: Instant) -> bool {
    let issued_after = |instant: Option<Instant>| instant.is_none_or(|instant| token.issued_at > instant);
    !token.is_expired(now)
        && token.issued_at <= now.plus(SKEW)
        && !facts.token_revoked
        && issued_after(facts.installation_tokens_valid_after)
        && issued_after(facts.consent_revoked_before)
        && facts.client.is_some_and(|client| client.enabled && issued_after(Some(client.tokens_valid_after)))
        && grant_stands(token, facts, now)
        && session_stands(token, facts)
        && user_stands(token, user)
}

fn grant_stands(token: &AccessToken, facts: &LivenessFacts, now: Instant) -> bool {
    token.jti.grant.is_none() || facts.grant.is_some_and(|grant| !grant.revoked && now < grant.expires_at)
}

fn session_stands(token: &AccessToken, facts: &LivenessFacts) -> bool {
    let in_session = token.user.as_ref().is_some_and(|user| user.sid.is_some());
    let offline = token.jti.grant.is_some() && facts.grant.is_some_and(|grant| grant.offline);
    !in_session || offline || facts.session.is_some_and(|session| !session.ended)
}

fn user_stands(token: &AccessToken, user: Option<&User>) -> bool {
    let Some(named) = &token.user else {
        return true;
    };
    user.is_some_and(|user| user.enabled && user.subject == named.subject && token.issued_at > user.tokens_valid_after)
}
