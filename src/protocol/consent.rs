//! What a user allowed a client, and for how long that counts.

use std::collections::BTreeSet;
use std::time::Duration;

use super::instant::Instant;
use super::scope::ScopeSet;

/// A remembered consent of one user to one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The scopes granted.
    pub scope: ScopeSet,
    /// Names of single claims granted by the `claims` parameter.
    pub claims: BTreeSet<String>,
    /// When it was last given.
    pub given_at: Instant,
    /// When it was last withdrawn: nothing given up to then counts.
    pub revoked_before: Option<Instant>,
}

impl Consent {
    /// Whether this consent answers for all of `scope` and `claims`. `lifetime` is the client's `consent_lifetime`; `None` is without end.
    pub fn covers(
        &self,
        scope: &ScopeSet,
        claims: &BTreeSet<String>,
        lifetime: Option<Duration>,
        now: Instant,
    ) -> bool {
        let withdrawn = self.revoked_before.is_some_and(|revoked_before| self.given_at <= revoked_before);
        let expired = lifetime.is_some_and(|lifetime| self.given_at.plus(lifetime) <= now);
        !withdrawn && !expired && scope.is_within(&self.scope) && claims.is_subset(&self.claims)
    }
}
