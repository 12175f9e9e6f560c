//! What a user allowed a client, and for how long that counts.

use std::collections::BTreeSet;
use std::time::Duration;

use super::instant::Instant;
use super::scope::ScopeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    pub scope: ScopeSet,
    pub claims: BTreeSet<String>,
    pub given_at: Instant,
    /// Nothing given up to then counts.
    pub revoked_before: Option<Instant>,
}

impl Consent {
    /// Whether it answers for all of `scope` and `claims`. `lifetime` is the client's `consent_lifetime`.
    pub fn covers(
        &self,
        scope: &ScopeSet,
        claims: &BTreeSet<String>,
        lifetime: Option<Duration>,
        now: Instant,
    ) -> bool {
        self.stands(lifetime, now) && scope.is_within(&self.scope) && claims.is_subset(&self.claims)
    }

    /// Neither withdrawn nor lapsed.
    pub fn stands(&self, lifetime: Option<Duration>, now: Instant) -> bool {
        let withdrawn = self.revoked_before.is_some_and(|revoked_before| self.given_at <= revoked_before);
        let lapsed = lifetime.is_some_and(|lifetime| self.given_at.plus(lifetime) <= now);
        !withdrawn && !lapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_or_less_is_covered_until_it_lapses_or_is_withdrawn() {
        for (revoked_before, scope, claims, lifetime, now, covered) in [
            (None, "email openid", &["name"][..], None, i64::MAX, true),
            (None, "openid", &[], None, 1000, true),
            (None, "openid", &[], Some(10), 1009, true),
            (Some(999), "openid", &[], None, 1000, true),
            (None, "openid email phone", &[], None, 1000, false),
            (None, "openid", &["name", "phone_number"], None, 1000, false),
            (None, "openid", &["email"], None, 1000, false),
            (None, "openid", &[], Some(10), 1010, false),
            (Some(1000), "openid", &[], None, 1002, false),
            (Some(1001), "openid", &[], None, 1002, false),
        ] {
            let consent = Consent {
                scope: ScopeSet::parse("openid email").unwrap(),
                claims: BTreeSet::from(["name".to_owned()]),
                given_at: Instant::from_seconds(1000),
                revoked_before: revoked_before.map(Instant::from_seconds),
            };
            let claims = claims.iter().map(|name| (*name).to_owned()).collect();
            let (scope, lifetime) = (ScopeSet::parse(scope).unwrap(), lifetime.map(Duration::from_secs));
            assert_eq!(consent.covers(&scope, &claims, lifetime, Instant::from_seconds(now)), covered, "{scope} {now}");
        }
    }
}
