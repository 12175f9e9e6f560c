//! What may become a password (NIST SP 800-63B §5.1.1.2). Its length counts, and a list of the most
//! guessed passwords. No kinds of characters are demanded.

use std::time::Duration;

use serde_json::Value;

use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::named::named;

/// In bytes.
pub const LONGEST_PASSWORD: usize = 1_024;

/// The bounds of an imported Argon2 hash. It may take no more memory or time than a setting could.
pub const MOST_MEMORY_KIB: u32 = 1_048_576;
pub const MOST_PASSES: u32 = 20;

/// In characters, whatever the setting says.
pub const SHORTEST_PASSWORD: u32 = 8;

/// The most guessed passwords of eight characters and more, in lower case.
const MOST_GUESSED: &str = include_str!("most_guessed.txt");

/// Why a text cannot become a password.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PasswordFlaw {
    /// Than so many characters.
    TooShort(u32),
    TooLong,
    HasNul,
    TooCommon,
}

impl PasswordFlaw {
    /// The rule that the password breaks, without the password.
    pub fn rule(self) -> &'static str {
        match self {
            PasswordFlaw::TooShort(SHORTEST_PASSWORD) => "must be at least 8 characters",
            PasswordFlaw::TooShort(_) => {
                "must have as many characters as GATEPOST_PASSWORD_MIN_LENGTH says"
            }
            PasswordFlaw::TooLong => "must be at most 1024 bytes",
            PasswordFlaw::HasNul => "must not hold a NUL character",
            PasswordFlaw::TooCommon => "must not be one of the most guessed passwords",
        }
    }
}

/// Checks a new password, by all rules but the list of the installation. `least` is in characters.
pub fn check_new(text: &str, least: u32) -> Result<(), PasswordFlaw> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if length < least {
        return Err(PasswordFlaw::TooShort(least));
    }
    if text.len() > LONGEST_PASSWORD {
        return Err(PasswordFlaw::TooLong);
    }
    if text.contains('\0') {
        return Err(PasswordFlaw::HasNul);
    }
    let lower = text.to_lowercase();
    if MOST_GUESSED.lines().any(|guess| guess == lower) {
        return Err(PasswordFlaw::TooCommon);
    }
    Ok(())
}

named! {
    /// What people can type to say who they are.
    pub enum SignInWith {
        Username = "username",
        UsernameOrAddress = "username,email",
    }
}

/// The verified e-mail address of a user, as failures are counted by it. `None` where it has other
/// than ASCII characters: what Postgres makes of those is not known here.
pub fn address_key(claims: &JsonObject) -> Option<String> {
    let address = claims.text("email")?;
    let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
    (is_verified && address.is_ascii()).then(|| address.to_ascii_lowercase())
}

#[derive(Clone, Copy, Debug)]
pub struct Failures {
    pub count: u32,
    pub last_at: Instant,
    pub window_ends_at: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// Failures for this account, from this source.
    pub account_and_source: Option<Failures>,
    pub source: Option<Failures>,
    /// Failures for this account, from everywhere, over an hour.
    pub account: Option<Failures>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PasswordLimits {
    pub account_and_source: u32,
    pub source: u32,
    /// Failures per account and hour. Beyond that, a source that is new to the account waits.
    pub account: u32,
    pub new_source_wait: Duration,
}

impl PasswordLimits {
    /// The limits for what was typed. Failures count by that, so an account with a name and an
    /// address is counted twice: each has half, and both together have no more than one.
    pub fn by(self, with: SignInWith) -> PasswordLimits {
        match with {
            SignInWith::Username => self,
            SignInWith::UsernameOrAddress => PasswordLimits {
                account_and_source: (self.account_and_source / 2).max(1),
                account: (self.account / 2).max(1),
                ..self
            },
        }
    }
}

/// The verdict on an attempt, before the password is checked.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    Admit,
    Wait(Duration),
    /// The same, and the source must be noted. The account is under attack, and the source is new
    /// to it.
    Introduce(Duration),
}

pub fn admit(counters: &Counters, limits: &PasswordLimits, now: Instant) -> Admission {
    let waits = [
        exhausted(counters.account_and_source, limits.account_and_source, now),
        exhausted(counters.source, limits.source, now),
    ];
    if let Some(wait) = waits.into_iter().flatten().max()
        && !wait.is_zero()
    {
        return Admission::Wait(wait);
    }
    if counters
        .account
        .is_none_or(|failures| failures.count <= limits.account)
    {
        return Admission::Admit;
    }
    match counters.account_and_source {
        None => Admission::Introduce(limits.new_source_wait),
        Some(failures) => {
            let wait = failures.last_at.plus(limits.new_source_wait).since(now);
            if wait.is_zero() {
                Admission::Admit
            } else {
                Admission::Wait(wait)
            }
        }
    }
}

/// How long it is until failures count anew, if there are as many as the limit.
fn exhausted(failures: Option<Failures>, limit: u32, now: Instant) -> Option<Duration> {
    let failures = failures.filter(|failures| failures.count >= limit)?;
    Some(failures.window_ends_at.since(now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn length_counts_characters_below_and_bytes_above() {
        let check = |text: &str| check_new(text, 8);
        assert_eq!(check("äöüäöüä"), Err(PasswordFlaw::TooShort(8)));
        assert_eq!(check("äöüäöüäö"), Ok(()));
        assert_eq!(check_new("äöüäöüäö", 9), Err(PasswordFlaw::TooShort(9)));
        assert_eq!(check(&"x".repeat(1_024)), Ok(()));
        assert_eq!(check(&"x".repeat(1_025)), Err(PasswordFlaw::TooLong));
        assert_eq!(check(&"ä".repeat(513)), Err(PasswordFlaw::TooLong));
        assert_eq!(check("with\0nul\0inside"), Err(PasswordFlaw::HasNul));
    }

    #[test]
    fn each_flaw_says_its_rule() {
        for (flaw, rule) in [
            (PasswordFlaw::TooShort(8), "at least 8 characters"),
            (PasswordFlaw::TooShort(12), "GATEPOST_PASSWORD_MIN_LENGTH"),
            (PasswordFlaw::TooLong, "at most 1024 bytes"),
            (PasswordFlaw::HasNul, "NUL"),
            (PasswordFlaw::TooCommon, "most guessed"),
        ] {
            assert!(flaw.rule().contains(rule), "{flaw:?}");
        }
    }

    #[test]
    fn failures_are_counted_by_a_verified_address_of_ascii() {
        let key = |email: &str, verified: Value| {
            let claims = json!({"email": email, "email_verified": verified});
            address_key(claims.as_object().unwrap())
        };
        let own = Some(String::from("alice@example.com"));
        assert_eq!(key("Alice@Example.com", json!(true)), own);
        assert_eq!(key("alice@example.com", json!(false)), None);
        assert_eq!(key("alice@example.com", json!("true")), None);
        assert_eq!(key("alice@b\u{fc}cher.example", json!(true)), None);
        assert_eq!(address_key(&JsonObject::new()), None);
    }

    #[test]
    fn who_can_type_name_or_address_has_half_the_failures_for_each() {
        let limits = |account_and_source: u32, account: u32| PasswordLimits {
            account_and_source,
            source: 50,
            account,
            new_source_wait: Duration::from_secs(60),
        };
        assert_eq!(limits(10, 300).by(SignInWith::Username), limits(10, 300));
        let halved = |limits: PasswordLimits| limits.by(SignInWith::UsernameOrAddress);
        assert_eq!(halved(limits(10, 300)), limits(5, 150));
        assert_eq!(halved(limits(1, 1)), limits(1, 1));
    }

    #[test]
    fn the_most_guessed_are_refused_in_any_case() {
        for text in MOST_GUESSED.lines() {
            assert!(
                text.chars().count() >= 8 && text.to_lowercase() == text,
                "{text} can never match"
            );
            assert_eq!(check_new(text, 8), Err(PasswordFlaw::TooCommon), "{text}");
        }
        assert!(check_new("PassWord", 8).is_err());
        assert!(check_new("correct horse battery staple", 8).is_ok());
    }

    mod throttle {
        use super::super::*;

        const LIMITS: PasswordLimits = PasswordLimits {
            account_and_source: 10,
            source: 50,
            account: 300,
            new_source_wait: Duration::from_secs(60),
        };

        fn at(seconds: i64) -> Instant {
            Instant::from_seconds(seconds)
        }

        fn failures(count: u32) -> Option<Failures> {
            (count > 0).then_some(Failures {
                count,
                last_at: at(1_000),
                window_ends_at: at(1_600),
            })
        }

        #[test]
        fn whoever_failed_too_often_waits_and_an_attack_from_everywhere_locks_nobody() {
            use Admission::{Admit, Introduce, Wait};
            let seconds = Duration::from_secs;
            for ([account_and_source, source, account], now, expected) in [
                ([9, 9, 9], 1_001, Admit),
                ([10, 10, 10], 1_001, Wait(seconds(599))),
                ([10, 10, 10], 1_600, Admit),
                ([0, 50, 0], 1_100, Wait(seconds(500))),
                ([0, 0, 300], 1_001, Admit),
                ([0, 0, 301], 1_001, Introduce(seconds(60))),
                ([1, 0, 301], 1_001, Wait(seconds(59))),
                ([1, 0, 301], 1_060, Admit),
            ] {
                let counters = Counters {
                    account_and_source: failures(account_and_source),
                    source: failures(source),
                    account: failures(account),
                };
                assert_eq!(
                    admit(&counters, &LIMITS, at(now)),
                    expected,
                    "{counters:?} {now}"
                );
            }
        }
    }
}
