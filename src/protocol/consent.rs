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

    const GIVEN: Instant = Instant::from_seconds(1000);

    fn consent() -> Consent {
        let claims = BTreeSet::from(["name".to_owned()]);
        Consent { scope: ScopeSet::parse("openid email").unwrap(), claims, given_at: GIVEN, revoked_before: None }
    }

    fn covers(consent: &Consent, scope: &str, claims: &[&str], lifetime: Option<u64>, now: i64) -> bool {
        let claims = claims.iter().map(|name| (*name).to_owned()).collect();
        let lifetime = lifetime.map(Duration::from_secs);
        consent.covers(&ScopeSet::parse(scope).unwrap(), &claims, lifetime, Instant::from_seconds(now))
    }

    #[test]
    fn the_same_or_less_is_covered() {
        assert!(covers(&consent(), "email openid", &["name"], None, i64::MAX));
        assert!(covers(&consent(), "openid", &[], None, 1000));
        assert!(covers(&consent(), "openid", &[], Some(10), 1009));
        assert!(covers(
            &Consent { revoked_before: Some(Instant::from_seconds(999)), ..consent() },
            "openid",
            &[],
            None,
            1000
        ));
    }

    #[test]
    fn a_request_that_grew_is_not() {
        assert!(!covers(&consent(), "openid email phone", &[], None, 1000));
        assert!(!covers(&consent(), "openid", &["name", "phone_number"], None, 1000));
        assert!(!covers(&consent(), "openid", &["email"], None, 1000));
    }

    #[test]
    fn an_expired_or_withdrawn_consent_covers_nothing() {
        assert!(!covers(&consent(), "openid", &[], Some(10), 1010));
        assert!(!covers(&consent(), "openid", &[], Some(10), 5000));
        for revoked_before in [1000, 1001] {
            let withdrawn = Consent { revoked_before: Some(Instant::from_seconds(revoked_before)), ..consent() };
            assert!(!covers(&withdrawn, "openid", &[], None, 1002), "{revoked_before}");
        }
    }
}
