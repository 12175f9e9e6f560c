//! The device grant (RFC 8628): its codes, and the verdict on a poll.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::token::audience::{narrow, requested_scope, with_default_scope, with_registered_names};
use crate::token::token_request::{resources, scope};
use crate::words::acr_values::AcrValues;
use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{
    Reason, Result, TokenError, TokenErrorCode, invalid_grant, invalid_request,
};
use crate::words::response_type::ResponseType;
use crate::words::scope::ScopeSet;

/// Secret scanners find device codes by it.
pub const PREFIX: &str = "gpd_";

/// Without vowels, so that a code is never a word, and without letters that look like digits (RFC
/// 8628 §6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Letters in a user code. Eight of twenty letters have 34 bits. That is enough for a code that
/// lives for minutes, when guesses are limited.
const LENGTH: usize = 8;

/// The code that a device shows and a person types, as `XXXX-XXXX`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserCode(String);

impl UserCode {
    /// Makes a code from random bytes. Bytes above 239 are not used, as they would make some
    /// letters likelier than others. `None` when too few bytes are left.
    pub fn draw(random: &[u8]) -> Option<UserCode> {
        let even = random.iter().filter(|byte| **byte < 240);
        let letters: String = even
            .take(LENGTH)
            .filter_map(|byte| LETTERS.get(usize::from(byte % 20)))
            .copied()
            .map(char::from)
            .collect();
        (letters.len() == LENGTH).then_some(UserCode(letters))
    }

    /// Reads what a person typed. Case, hyphens and spaces do not count.
    pub fn parse(typed: &str) -> Option<UserCode> {
        let counts = |letter: &char| {
            !letter.is_whitespace() && !matches!(letter, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
        };
        let upper = typed.to_ascii_uppercase();
        let letters: String = upper.chars().filter(counts).collect();
        let whole = letters.len() == LENGTH && letters.bytes().all(|byte| LETTERS.contains(&byte));
        whole.then_some(UserCode(letters))
    }

    pub fn letters(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at_checked(LENGTH / 2).unwrap_or((&self.0, ""));
        write!(formatter, "{first}-{second}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceDecision {
    Allowed,
    Denied,
}

#[derive(Clone, Copy, Debug)]
pub struct PollFacts {
    pub redeemed: bool,
    pub expired: bool,
    /// `None` until the user decides.
    pub decision: Option<DeviceDecision>,
    /// Whether the device polled again before the interval was over.
    pub early: bool,
}

/// Judges a poll (RFC 8628 §3.5). `None` is an unknown code, or a code of another client. A device
/// that polls too early is told to slow down while the user decides; a decision is told at once.
pub fn judge_poll(facts: Option<PollFacts>) -> Result {
    let Some(facts) = facts.filter(|facts| !facts.redeemed) else {
        return Err(invalid_grant(Reason::UnknownDeviceCode));
    };
    let refuse = |code, reason| Err(TokenError::new(code, reason));
    match (facts.expired, facts.decision, facts.early) {
        (true, _, _) => refuse(TokenErrorCode::ExpiredToken, Reason::DeviceCodeExpired),
        (false, Some(DeviceDecision::Denied), _) => {
            refuse(TokenErrorCode::AccessDenied, Reason::DeviceDenied)
        }
        (false, None, true) => refuse(TokenErrorCode::SlowDown, Reason::DevicePolledTooEarly),
        (false, None, false) => refuse(TokenErrorCode::AuthorizationPending, Reason::DevicePending),
        (false, Some(DeviceDecision::Allowed), _) => Ok(()),
    }
}

pub fn is_still_allowed(scope: &ScopeSet, client: &Client, catalogue: &Catalogue) -> bool {
    scope.is_within(&client.scope) && scope.iter().all(|name| catalogue.kind(name).is_some())
}

/// The parameters of a device authorization request. None of them may stand in the URL.
pub const PARAMETERS: [&str; 7] = [
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "scope",
    "resource",
    "acr_values",
];

/// Parameters that may be sent only once.
pub const SINGLE_PARAMETERS: [&str; 6] = [
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "scope",
    "acr_values",
];

pub struct DeviceAuthorizationRequest {
    pub scope: ScopeSet,
    pub resources: Vec<String>,
    /// The parameter as sent. It is read again when the user comes.
    pub acr_values: Option<String>,
}

impl DeviceAuthorizationRequest {
    pub fn from_form(
        parameters: &Parameters,
        client: &Client,
        catalogue: &Catalogue,
        issuer: &str,
    ) -> Result<DeviceAuthorizationRequest> {
        let acr_values = parameters
            .bounded("acr_values", parameters::OTHER)
            .map_err(invalid_request)?;
        let scope = scope(parameters)?
            .map(|named| with_default_scope(&named, ResponseType::CODE, client, catalogue));
        let scope = requested_scope(scope.as_ref(), client, catalogue)?;
        let resources = resources(&with_registered_names(parameters, catalogue))?;
        AcrValues::parse(acr_values, client, catalogue).map_err(invalid_request)?;
        narrow(&scope, &resources, &[], catalogue, issuer)?;
        Ok(DeviceAuthorizationRequest {
            scope,
            resources,
            acr_values: acr_values.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::words::samples::{self, registered_scope};
    use crate::words::scope::ScopeKind;

    #[test]
    fn what_was_asked_for_counts_while_client_and_catalogue_have_it() {
        let scope = |text: &str| ScopeSet::parse(text).unwrap();
        let known = ["orders.read", "stock.read"];
        let known = known.map(|name| registered_scope(name, ScopeKind::Resource, &[], &[]));
        let catalogue = Catalogue {
            scopes: known.map(|scope| (scope.name.clone(), scope)).into(),
            ..Catalogue::default()
        };
        let client = Client {
            scope: scope("orders.read gone"),
            ..samples::client()
        };
        for (asked, allowed) in [
            ("orders.read", true),
            ("stock.read", false),
            ("orders.read stock.read", false),
            ("gone", false),
            ("orders.read gone", false),
        ] {
            let is_allowed = is_still_allowed(&scope(asked), &client, &catalogue);
            assert_eq!(is_allowed, allowed, "{asked}");
        }
    }

    #[test]
    fn case_hyphens_and_spaces_do_not_count() {
        for typed in [
            "BCDF-GHJK",
            "bcdfghjk",
            " bcdf ghjk ",
            "b-c-d-f-g-h-j-k",
            "BCDF\u{2013}GHJK",
            "BCDF\u{a0}GHJK",
        ] {
            assert_eq!(
                UserCode::parse(typed)
                    .map(|code| code.to_string())
                    .as_deref(),
                Some("BCDF-GHJK"),
                "{typed:?}"
            );
        }
        for typed in [
            "",
            "-",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "ABCD-EFGH",
            "BCDF_GHJK",
            "BCDF-GHJ1",
            "BCDFGHJ\u{212a}",
        ] {
            assert_eq!(UserCode::parse(typed), None, "{typed:?}");
        }
    }

    #[test]
    fn every_letter_is_as_likely_as_any_other() {
        let mut counts = [0; 20];
        for byte in 0..=255_u8 {
            if let Some(code) = UserCode::draw(&[byte; 8]) {
                let letter = code.letters().bytes().next().unwrap();
                counts[LETTERS.iter().position(|other| *other == letter).unwrap()] += 1;
            }
        }
        assert_eq!(counts, [12; 20]);
        assert_eq!(UserCode::draw(&[7; 7]), None);
        let some_unusable = [0, 255, 1, 2, 250, 3, 4, 5, 6, 7];
        assert_eq!(
            UserCode::draw(&some_unusable).unwrap().to_string(),
            "BCDF-GHJK"
        );
    }

    #[test]
    fn a_poll_is_told_the_first_that_holds() {
        let waiting = PollFacts {
            redeemed: false,
            expired: false,
            decision: None,
            early: false,
        };
        let allowed = PollFacts {
            decision: Some(DeviceDecision::Allowed),
            ..waiting
        };
        let denied = PollFacts {
            decision: Some(DeviceDecision::Denied),
            ..waiting
        };
        for (facts, expected) in [
            (None, Err(("invalid_grant", Reason::UnknownDeviceCode))),
            (
                Some(PollFacts {
                    redeemed: true,
                    expired: true,
                    ..allowed
                }),
                Err(("invalid_grant", Reason::UnknownDeviceCode)),
            ),
            (
                Some(PollFacts {
                    expired: true,
                    early: true,
                    ..waiting
                }),
                Err(("expired_token", Reason::DeviceCodeExpired)),
            ),
            (
                Some(PollFacts {
                    expired: true,
                    ..allowed
                }),
                Err(("expired_token", Reason::DeviceCodeExpired)),
            ),
            (
                Some(PollFacts {
                    expired: true,
                    ..denied
                }),
                Err(("expired_token", Reason::DeviceCodeExpired)),
            ),
            (
                Some(PollFacts {
                    early: true,
                    ..denied
                }),
                Err(("access_denied", Reason::DeviceDenied)),
            ),
            (
                Some(PollFacts {
                    early: true,
                    ..waiting
                }),
                Err(("slow_down", Reason::DevicePolledTooEarly)),
            ),
            (
                Some(waiting),
                Err(("authorization_pending", Reason::DevicePending)),
            ),
            (Some(allowed), Ok(())),
            (
                Some(PollFacts {
                    early: true,
                    ..allowed
                }),
                Ok(()),
            ),
        ] {
            let verdict = judge_poll(facts).map_err(|error| (error.code.as_str(), error.reason));
            assert_eq!(verdict, expected, "{facts:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(random in any::<[u8; 32]>()) {
            let code = UserCode::draw(&random).unwrap();
            prop_assert_eq!(UserCode::parse(&code.to_string()), Some(code.clone()));
            prop_assert_eq!(UserCode::parse(&code.letters().to_lowercase()), Some(code));
        }

        #[test]
        fn no_text_makes_reading_panic(text in "\\PC{0,20}") {
            let _ = UserCode::parse(&text);
        }
    }
}
