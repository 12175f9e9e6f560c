//! What a user allowed a client, and for how long that counts.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::protocol::words::instant::Instant;
use crate::protocol::words::scope::ScopeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// None once it was withdrawn.
    pub scope: ScopeSet,
    pub claims: BTreeSet<String>,
    pub given_at: Instant,
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
        !self.scope.is_empty() && lifetime.is_none_or(|lifetime| now < self.given_at.plus(lifetime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_or_less_is_covered_until_it_lapses_or_is_withdrawn() {
        for (given, scope, claims, lifetime, now, covered) in [
            ("openid email", "email openid", &["name"][..], None, i64::MAX, true),
            ("openid email", "openid", &[], None, 1000, true),
            ("openid email", "openid", &[], Some(10), 1009, true),
            ("openid email", "openid email phone", &[], None, 1000, false),
            ("openid email", "openid", &["name", "phone_number"], None, 1000, false),
            ("openid email", "openid", &["email"], None, 1000, false),
            ("openid email", "openid", &[], Some(10), 1010, false),
            ("", "", &[], None, 1002, false),
        ] {
            let consent = Consent {
                scope: ScopeSet::parse(given).unwrap(),
                claims: BTreeSet::from(["name".to_owned()]),
                given_at: Instant::from_seconds(1000),
            };
            let claims = claims.iter().map(|name| (*name).to_owned()).collect();
            let (scope, lifetime) = (ScopeSet::parse(scope).unwrap(), lifetime.map(Duration::from_secs));
            assert_eq!(consent.covers(&scope, &claims, lifetime, Instant::from_seconds(now)), covered, "{scope} {now}");
        }
    }
}
