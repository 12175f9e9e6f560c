//! What a signing key is for now.

use gatepost_protocol::keys::key_schedule::{ScheduledKey, announced, current};
use gatepost_protocol::words::instant::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyState {
    /// In the JWKS, and does not sign yet.
    Announced,
    Signing,
    /// In the JWKS, for what it signed.
    Published,
    /// Only checks hints.
    Retired,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyStanding {
    pub state: KeyState,
    pub since: Instant,
    /// `None` until another key follows.
    pub until: Option<Instant>,
}

pub fn standing(key: &ScheduledKey, keys: &[ScheduledKey], now: Instant) -> KeyStanding {
    let times = key.times;
    let signer = current(keys, key.algorithm, now);
    if now < times.activates_at {
        return KeyStanding {
            state: KeyState::Announced,
            since: times.announced_at,
            until: Some(times.activates_at),
        };
    }
    if signer.is_some_and(|signer| signer.kid == key.kid) {
        return KeyStanding {
            state: KeyState::Signing,
            since: times.activates_at,
            until: signs_until(key, keys, now),
        };
    }
    if now < times.unpublished_at {
        let replaced = signer.map_or(times.retires_at, |signer| signer.times.activates_at);
        return KeyStanding {
            state: KeyState::Published,
            since: times.retires_at.min(replaced),
            until: Some(times.unpublished_at),
        };
    }
    KeyStanding {
        state: KeyState::Retired,
        since: times.unpublished_at,
        until: Some(times.forgotten_at),
    }
}

fn signs_until(signer: &ScheduledKey, keys: &[ScheduledKey], now: Instant) -> Option<Instant> {
    let retires_at = signer.times.retires_at;
    match announced(keys, signer.algorithm, now) {
        Some(next) => Some(next.times.activates_at),
        None => (now < retires_at).then_some(retires_at),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gatepost_protocol::keys::key_schedule::{KeySeasons, KeyTimes};
    use gatepost_protocol::words::client::SigningAlgorithm;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    const SEASONS: KeySeasons = KeySeasons {
        announce: Duration::from_secs(86_400 * 14),
        sign: Duration::from_secs(86_400 * 90),
        publish: Duration::from_secs(86_400 * 14),
        hint: Duration::from_secs(86_400 * 90),
    };

    fn day(day: u32) -> Instant {
        Instant::from_seconds(1_795_132_800).plus(DAY * day)
    }

    fn key(kid: &str, times: KeyTimes) -> ScheduledKey {
        ScheduledKey {
            kid: kid.to_owned(),
            algorithm: SigningAlgorithm::EdDsa,
            times,
            can_sign: true,
        }
    }

    #[test]
    fn a_key_is_announced_signs_stays_published_and_checks_hints() {
        let first = key("first", SEASONS.active_at_once(day(0)));
        let next = key("next", SEASONS.active_from(day(76), day(90)));
        let alone = [first.clone()];
        let both = [first.clone(), next.clone()];
        let early = key("early", SEASONS.active_at_once(day(50)));
        let replaced = [first.clone(), early];
        let (announced, signing) = (KeyState::Announced, KeyState::Signing);
        let (published, retired) = (KeyState::Published, KeyState::Retired);
        for (key, keys, now, state, since, until) in [
            (&first, &alone[..], 0, signing, 0, Some(90)),
            (&first, &alone, 89, signing, 0, Some(90)),
            (&first, &alone, 90, signing, 0, None),
            (&first, &both, 89, signing, 0, Some(90)),
            (&next, &both, 89, announced, 76, Some(90)),
            (&next, &both, 90, signing, 90, Some(180)),
            (&first, &both, 90, published, 90, Some(104)),
            (&first, &both, 103, published, 90, Some(104)),
            (&first, &both, 104, retired, 104, Some(194)),
            (&first, &replaced, 60, published, 50, Some(104)),
        ] {
            let standing = standing(key, keys, day(now));
            let expected = KeyStanding {
                state,
                since: day(since),
                until: until.map(day),
            };
            assert_eq!(standing, expected, "{} on day {now}", key.kid);
        }
        assert_eq!(
            super::announced(&both, SigningAlgorithm::EdDsa, day(89)),
            Some(&next)
        );
        assert_eq!(
            super::announced(&both, SigningAlgorithm::EdDsa, day(90)),
            None
        );
    }
}
