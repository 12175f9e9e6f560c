//! When a signing key is announced, signs, stays published and is forgotten; and which of these
//! steps is due now.

use std::time::Duration;

use crate::words::client::SigningAlgorithm;
use crate::words::instant::Instant;

/// How long a private key is kept after another key has begun to sign. A process whose clock is
/// behind still signs with it.
const HANDOVER: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy)]
pub struct KeySeasons {
    pub announce: Duration,
    pub sign: Duration,
    /// After its last signature.
    pub publish: Duration,
    /// Kept after that, to check hints.
    pub hint: Duration,
}

/// The times from which a key is published, signs, no longer signs, is no longer published, and no
/// longer checks hints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyTimes {
    pub announced_at: Instant,
    pub activates_at: Instant,
    pub retires_at: Instant,
    pub unpublished_at: Instant,
    pub forgotten_at: Instant,
}

impl KeySeasons {
    pub fn announced_at(&self, now: Instant) -> KeyTimes {
        self.active_from(now, now.plus(self.announce))
    }

    /// The times of an installation's first key, or of a key whose predecessor is no longer
    /// trusted.
    pub fn active_at_once(&self, now: Instant) -> KeyTimes {
        self.active_from(now, now)
    }

    pub fn active_from(&self, announced_at: Instant, activates_at: Instant) -> KeyTimes {
        self.retiring_at(announced_at, activates_at, activates_at.plus(self.sign))
    }

    /// The same key, when its successor takes over earlier or later than planned.
    pub fn retiring_at(
        &self,
        announced_at: Instant,
        activates_at: Instant,
        retires_at: Instant,
    ) -> KeyTimes {
        let unpublished_at = retires_at.plus(self.publish);
        KeyTimes {
            announced_at,
            activates_at,
            retires_at,
            unpublished_at,
            forgotten_at: unpublished_at.plus(self.hint),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledKey {
    pub kid: String,
    pub algorithm: SigningAlgorithm,
    pub times: KeyTimes,
    pub can_sign: bool,
}

/// The youngest key that may sign. Where no key follows, it signs even past its time.
pub fn current(
    keys: &[ScheduledKey],
    algorithm: SigningAlgorithm,
    now: Instant,
) -> Option<&ScheduledKey> {
    able(keys, algorithm)
        .filter(|key| key.times.activates_at <= now)
        .max_by_key(|key| key.times.activates_at)
}

pub fn announced(
    keys: &[ScheduledKey],
    algorithm: SigningAlgorithm,
    now: Instant,
) -> Option<&ScheduledKey> {
    able(keys, algorithm)
        .filter(|key| now < key.times.activates_at)
        .min_by_key(|key| key.times.activates_at)
}

fn able(keys: &[ScheduledKey], algorithm: SigningAlgorithm) -> impl Iterator<Item = &ScheduledKey> {
    keys.iter()
        .filter(move |key| key.algorithm == algorithm && key.can_sign)
}

#[derive(Debug, PartialEq)]
pub enum KeyStep {
    Make {
        algorithm: SigningAlgorithm,
        times: KeyTimes,
    },
    Reschedule {
        kid: String,
        times: KeyTimes,
    },
    /// Erase the private key: another key has signed for a while.
    Erase {
        kid: String,
    },
    Forget {
        kid: String,
    },
}

/// The step that is due, so that each algorithm always has a key that signs and, in time, an
/// announced one to follow it. After the step, nothing is due.
#[must_use]
pub fn due(keys: &[ScheduledKey], seasons: &KeySeasons, now: Instant) -> Vec<KeyStep> {
    let mut steps: Vec<KeyStep> = SigningAlgorithm::ALL
        .into_iter()
        .flat_map(|algorithm| succession(keys, algorithm, seasons, now))
        .collect();
    for key in keys {
        let signer = current(keys, key.algorithm, now);
        let is_replaced = signer.is_some_and(|signer| {
            signer.times.activates_at > key.times.activates_at
                && signer.times.activates_at.plus(HANDOVER) <= now
        });
        if key.can_sign && is_replaced {
            steps.push(KeyStep::Erase {
                kid: key.kid.clone(),
            });
        } else if !key.can_sign && key.times.forgotten_at <= now {
            steps.push(KeyStep::Forget {
                kid: key.kid.clone(),
            });
        }
    }
    steps
}

fn succession(
    keys: &[ScheduledKey],
    algorithm: SigningAlgorithm,
    seasons: &KeySeasons,
    now: Instant,
) -> Vec<KeyStep> {
    match (
        current(keys, algorithm, now),
        announced(keys, algorithm, now),
    ) {
        (None, None) => vec![KeyStep::Make {
            algorithm,
            times: seasons.active_at_once(now),
        }],
        // The clock went back. The key signs all the same, and gets its times again when the clock
        // has caught up.
        (None, Some(next)) if now < next.times.announced_at => Vec::new(),
        (None, Some(next)) => vec![reschedule(
            next,
            seasons.active_from(next.times.announced_at, now),
        )],
        (Some(signer), Some(next)) if signer.times.retires_at < next.times.activates_at => {
            vec![ending(signer, seasons, next.times.activates_at)]
        }
        (Some(_), Some(_)) => Vec::new(),
        (Some(signer), None) if now < signer.times.retires_at.minus(seasons.announce) => Vec::new(),
        (Some(signer), None) => {
            let activates_at = signer.times.retires_at.max(now.plus(seasons.announce));
            let made = KeyStep::Make {
                algorithm,
                times: seasons.active_from(now, activates_at),
            };
            if activates_at == signer.times.retires_at {
                vec![made]
            } else {
                vec![made, ending(signer, seasons, activates_at)]
            }
        }
    }
}

fn ending(key: &ScheduledKey, seasons: &KeySeasons, at: Instant) -> KeyStep {
    let times = &key.times;
    reschedule(
        key,
        seasons.retiring_at(times.announced_at, times.activates_at, at),
    )
}

fn reschedule(key: &ScheduledKey, times: KeyTimes) -> KeyStep {
    KeyStep::Reschedule {
        kid: key.kid.clone(),
        times,
    }
}

#[cfg(test)]
mod tests {
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

    fn key(kid: &str, algorithm: SigningAlgorithm, times: KeyTimes) -> ScheduledKey {
        ScheduledKey {
            kid: kid.to_owned(),
            algorithm,
            times,
            can_sign: true,
        }
    }

    /// Does what is due; answers how much that was.
    fn keep(keys: &mut Vec<ScheduledKey>, now: Instant, made: &mut u32) -> usize {
        let steps = due(keys, &SEASONS, now);
        for step in &steps {
            match step {
                KeyStep::Make { algorithm, times } => {
                    *made += 1;
                    keys.push(key(&format!("key {made}"), *algorithm, *times));
                }
                KeyStep::Reschedule { kid, times } => {
                    keys.iter_mut()
                        .filter(|key| key.kid == *kid)
                        .for_each(|key| key.times = *times);
                }
                KeyStep::Erase { kid } => {
                    keys.iter_mut()
                        .filter(|key| key.kid == *kid)
                        .for_each(|key| key.can_sign = false);
                }
                KeyStep::Forget { kid } => keys.retain(|key| key.kid != *kid),
            }
        }
        steps.len()
    }

    #[test]
    fn over_years_every_algorithm_signs_without_a_gap_and_with_keys_announced_in_time() {
        let (mut keys, mut made) = (Vec::new(), 0);
        let mut signers: Vec<String> = Vec::new();
        for hour in 0..24 * 800 {
            let now = day(0).plus(Duration::from_secs(3_600 * hour));
            keep(&mut keys, now, &mut made);
            assert_eq!(keep(&mut keys, now, &mut made), 0, "something is due twice");
            for algorithm in SigningAlgorithm::ALL {
                let signer = current(&keys, algorithm, now)
                    .unwrap_or_else(|| panic!("no {algorithm:?} key"));
                assert!(
                    signer.times.announced_at.plus(SEASONS.announce) <= now
                        || signer.times.announced_at == day(0)
                );
                if !signers.contains(&signer.kid) {
                    signers.push(signer.kid.clone());
                }
            }
            let private = keys.iter().filter(|key| key.can_sign).count();
            assert!(
                (3..=9).contains(&private) && keys.len() <= 12,
                "{private} of {}",
                keys.len()
            );
        }
        assert_eq!(signers.len(), 27, "one each 90 days, of each kind");
    }

    #[test]
    fn a_key_without_its_private_half_is_forgotten_in_its_time() {
        let eddsa = SigningAlgorithm::EdDsa;
        let over = ScheduledKey {
            can_sign: false,
            ..key("over", eddsa, SEASONS.active_at_once(day(0)))
        };
        let forget = KeyStep::Forget {
            kid: String::from("over"),
        };
        let keys = [over];
        assert!(!due(&keys, &SEASONS, day(193)).contains(&forget));
        assert!(due(&keys, &SEASONS, day(194)).contains(&forget));
    }

    #[test]
    fn a_private_key_is_erased_an_hour_after_another_has_begun_to_sign() {
        let eddsa = SigningAlgorithm::EdDsa;
        let first = key("first", eddsa, SEASONS.active_at_once(day(0)));
        let next = key("next", eddsa, SEASONS.active_from(day(76), day(90)));
        let keys = [first, next];
        let erase = KeyStep::Erase {
            kid: String::from("first"),
        };
        for (seconds, is_due) in [(3_599, false), (3_600, true)] {
            let now = day(90).plus(Duration::from_secs(seconds));
            let steps = due(&keys, &SEASONS, now);
            assert_eq!(steps.contains(&erase), is_due, "{seconds}");
        }
    }

    #[test]
    fn one_key_follows_another_without_a_gap() {
        let eddsa = SigningAlgorithm::EdDsa;
        let steps = |keys: &[ScheduledKey], now| succession(keys, eddsa, &SEASONS, day(now));
        let first = key("first", eddsa, SEASONS.active_at_once(day(0)));
        let following = |activates_at: u32| {
            let times = SEASONS.active_from(day(76), day(activates_at));
            [first.clone(), key("next", eddsa, times)]
        };
        let longer = KeyStep::Reschedule {
            kid: String::from("first"),
            times: SEASONS.retiring_at(day(0), day(0), day(100)),
        };
        assert_eq!(steps(&following(100), 80), [longer]);
        assert_eq!(steps(&following(90), 80), []);
        assert_eq!(steps(&following(85), 80), []);
        let alone = [first];
        assert_eq!(steps(&alone, 75), []);
        let made = KeyStep::Make {
            algorithm: eddsa,
            times: SEASONS.active_from(day(76), day(90)),
        };
        assert_eq!(steps(&alone, 76), [made]);
        // Before its own announcement, the clock went back.
        let next = key("next", eddsa, SEASONS.active_from(day(10), day(24)));
        let at_once = KeyStep::Reschedule {
            kid: String::from("next"),
            times: SEASONS.active_from(day(10), day(10)),
        };
        let alone = [next];
        assert_eq!(steps(&alone, 9), []);
        assert_eq!(steps(&alone, 10), [at_once]);
    }

    #[test]
    fn a_gap_is_closed_at_once() {
        let eddsa = SigningAlgorithm::EdDsa;
        let next = key("next", eddsa, SEASONS.active_from(day(0), day(14)));
        // After a long stop, a key is announced anew before it signs, and the old one goes on until
        // then.
        let late = succession(std::slice::from_ref(&next), eddsa, &SEASONS, day(500));
        let made = KeyStep::Make {
            algorithm: eddsa,
            times: SEASONS.active_from(day(500), day(514)),
        };
        let times = SEASONS.retiring_at(day(0), day(14), day(514));
        assert_eq!(
            late,
            [
                made,
                KeyStep::Reschedule {
                    kid: String::from("next"),
                    times
                }
            ]
        );
        let steps = succession(std::slice::from_ref(&next), eddsa, &SEASONS, day(3));
        assert_eq!(
            steps,
            [KeyStep::Reschedule {
                kid: String::from("next"),
                times: SEASONS.active_from(day(0), day(3))
            }]
        );
        let made = KeyStep::Make {
            algorithm: eddsa,
            times: SEASONS.active_at_once(day(3)),
        };
        assert_eq!(
            succession(
                &[ScheduledKey {
                    can_sign: false,
                    ..next
                }],
                eddsa,
                &SEASONS,
                day(3)
            ),
            [made]
        );
    }
}
