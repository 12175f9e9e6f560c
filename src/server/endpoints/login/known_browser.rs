//! Whom a browser signed in before: a keyed hash of the account, and the day, sealed beside the
//! pre-session value. Where many wait to have a password looked at, such a browser has a place of
//! its own for that account. A stolen cookie is worth this place and nothing else, and says neither
//! whose it is nor since when.

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::endpoints::cookies;
use crate::http::{Request, Response};
use gatepost_protocol::login::line::AccountHash;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Day;

const GOOD_FOR_DAYS: i32 = 30;
const GOOD_FOR_SECONDS: u32 = 30 * 86_400;

#[derive(Serialize, Deserialize)]
struct Known {
    account: AccountHash,
    signed_in_on: Day,
}

/// Has the browser remember that this user signed in today, and nobody else.
pub fn remember(app: &App, response: Response, user: &Subject) -> Response {
    let account = app.vault.throttle_buckets.tag(&message(user.as_str()));
    let seal = app.vault.known_browsers.seal_text(
        "",
        &Known {
            account,
            signed_in_on: app.now().day(),
        },
    );
    cookies::set_sealed_pre_session(&app.config, response, &seal, GOOD_FOR_SECONDS)
}

/// The account of this user, if the browser signed them in within the last days. Takes as much time
/// where there is no such user.
pub fn account(app: &App, request: &Request, user: Option<&Subject>) -> Option<AccountHash> {
    let seal = cookies::seal_beside_pre_session(&app.config, request)?;
    let known: Known = app.vault.known_browsers.open_text("", seal)?;
    let is_theirs = app
        .vault
        .throttle_buckets
        .verify(&message(user.map_or("", Subject::as_str)), &known.account);
    (is_theirs && known.is_good_on(app.now().day())).then_some(known.account)
}

impl Known {
    fn is_good_on(&self, today: Day) -> bool {
        today.0.saturating_sub(self.signed_in_on.0) <= GOOD_FOR_DAYS
    }
}

fn message(user: &str) -> [&[u8]; 2] {
    [b"known browser", user.as_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_known_for_thirty_days() {
        let known = Known {
            account: [1; 32],
            signed_in_on: Day(100),
        };
        // By another machine's clock it may have been tomorrow.
        assert!(
            [99, 100, 130]
                .iter()
                .all(|today| known.is_good_on(Day(*today)))
        );
        assert!(!known.is_good_on(Day(131)));
    }
}
