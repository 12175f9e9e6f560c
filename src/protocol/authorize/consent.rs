//! What a user allowed a client, and how long it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::token::grant::Grant;
use crate::token::refresh_token;
use crate::words::client::Client;
use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::scope::ScopeSet;

#[derive(Clone, Debug, PartialEq)]
pub struct Consent {
    /// Empty after it was withdrawn.
    pub scope: ScopeSet,
    pub claims: BTreeSet<String>,
    pub given_at: Instant,
}

impl Consent {
    /// Whether the user allowed all of `scope` and `claims`, and it still counts. `lifetime` is the
    /// client's `consent_lifetime`.
    pub fn covers(
        &self,
        scope: &ScopeSet,
        claims: &BTreeSet<String>,
        lifetime: Option<Duration>,
        now: Instant,
    ) -> bool {
        self.stands(lifetime, now) && scope.is_within(&self.scope) && claims.is_subset(&self.claims)
    }

    /// Whether it is neither withdrawn nor older than `lifetime`.
    pub fn stands(&self, lifetime: Option<Duration>, now: Instant) -> bool {
        !self.scope.is_empty() && lifetime.is_none_or(|lifetime| now < self.given_at.plus(lifetime))
    }
}

#[derive(Debug, PartialEq)]
pub struct Allowance {
    pub client_id: ClientId,
    pub scope: ScopeSet,
    pub since: Instant,
}

impl Allowance {
    /// What a remembered consent allows; `None` when it no longer counts. `expires_at` is the end
    /// that was stored with it.
    pub fn of_consent(
        consent: &Consent,
        expires_at: Option<Instant>,
        client: &Client,
        now: Instant,
    ) -> Option<Allowance> {
        let stands =
            consent.stands(client.consent_lifetime, now) && expires_at.is_none_or(|end| now < end);
        stands.then(|| Allowance {
            client_id: client.client_id.clone(),
            scope: consent.scope.clone(),
            since: consent.given_at,
        })
    }

    /// What an offline grant allows while its refresh token can be used; `None` after that.
    pub fn of_grant(grant: &Grant, client: &Client, now: Instant) -> Option<Allowance> {
        let stands = grant.is_offline()
            && grant.revoked_at.is_none()
            && now < refresh_token::ends_at(grant, client, None);
        stands.then(|| Allowance {
            client_id: client.client_id.clone(),
            scope: grant.scope.clone(),
            since: grant.issued_at,
        })
    }

    fn and(self, other: Allowance) -> Allowance {
        let scope = self.scope.iter().chain(other.scope.iter()).collect();
        Allowance {
            client_id: self.client_id,
            scope,
            since: self.since.min(other.since),
        }
    }
}

/// One entry for each client, in the order of `client_id`: all scopes that it has, since the
/// earliest of them.
pub fn merged(allowances: impl IntoIterator<Item = Allowance>) -> Vec<Allowance> {
    let mut merged: BTreeMap<ClientId, Allowance> = BTreeMap::new();
    for allowance in allowances {
        let whole = match merged.remove(&allowance.client_id) {
            Some(before) => before.and(allowance),
            None => allowance,
        };
        merged.insert(whole.client_id.clone(), whole);
    }
    merged.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_or_less_is_covered_until_it_lapses_or_is_withdrawn() {
        for (given, scope, claims, lifetime, now, covered) in [
            (
                "openid email",
                "email openid",
                &["name"][..],
                None,
                i64::MAX,
                true,
            ),
            ("openid email", "openid", &[], None, 1000, true),
            ("openid email", "openid", &[], Some(10), 1009, true),
            ("openid email", "openid email phone", &[], None, 1000, false),
            (
                "openid email",
                "openid",
                &["name", "phone_number"],
                None,
                1000,
                false,
            ),
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
            let (scope, lifetime) = (
                ScopeSet::parse(scope).unwrap(),
                lifetime.map(Duration::from_secs),
            );
            assert_eq!(
                consent.covers(&scope, &claims, lifetime, Instant::from_seconds(now)),
                covered,
                "{scope} {now}"
            );
        }
    }

    mod allowance {
        use std::collections::BTreeSet;
        use std::time::Duration;

        use super::super::*;
        use crate::words::samples::{self, NOW, scope};

        const HOUR: Duration = Duration::from_secs(3_600);

        fn consent() -> Consent {
            Consent {
                scope: scope("openid email"),
                claims: BTreeSet::new(),
                given_at: NOW,
            }
        }

        fn grant() -> Grant {
            samples::given("openid offline_access")
        }

        #[test]
        fn a_consent_counts_until_it_lapses_or_is_withdrawn() {
            let counts = |consent: &Consent, end, client: &Client, now| {
                Allowance::of_consent(consent, end, client, now).is_some()
            };
            let (client, later) = (samples::client(), NOW.plus(HOUR));
            let hourly = Client {
                consent_lifetime: Some(HOUR),
                ..samples::client()
            };
            assert!(counts(&consent(), None, &client, later));
            assert!(counts(
                &consent(),
                Some(later),
                &hourly,
                later.minus(Duration::from_micros(1))
            ));
            assert!(!counts(&consent(), None, &hourly, later));
            assert!(!counts(&consent(), Some(later), &client, later));
            assert!(!counts(
                &Consent {
                    scope: ScopeSet::default(),
                    ..consent()
                },
                None,
                &client,
                later
            ));
        }

        #[test]
        fn a_grant_counts_while_it_can_be_refreshed() {
            let counts =
                |grant: &Grant, now| Allowance::of_grant(grant, &samples::client(), now).is_some();
            assert!(counts(&grant(), NOW));
            assert!(!counts(
                &Grant {
                    revoked_at: Some(NOW),
                    ..grant()
                },
                NOW
            ));
            assert!(!counts(&samples::given("openid"), NOW));
            assert!(!counts(
                &Grant {
                    expires_at: NOW,
                    ..grant()
                },
                NOW
            ));
            let idle = samples::client().lifetimes.refresh_token_idle;
            assert!(!counts(&grant(), NOW.plus(idle)));
            assert!(counts(
                &grant(),
                NOW.plus(idle).minus(Duration::from_micros(1))
            ));
        }

        #[test]
        fn what_one_application_has_is_shown_as_one() {
            let allowance = |client_id: &str, names: &str, since| Allowance {
                client_id: ClientId::new(client_id),
                scope: scope(names),
                since,
            };
            let (first, second) = (NOW, NOW.plus(HOUR));
            let merged = merged([
                allowance("web", "openid email", second),
                allowance("app", "openid", second),
                allowance("web", "openid offline_access", first),
            ]);
            assert_eq!(
                merged,
                [
                    allowance("app", "openid", second),
                    allowance("web", "openid email offline_access", first)
                ]
            );
        }
    }
}
