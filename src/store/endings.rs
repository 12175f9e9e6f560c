//! Confirms what an earlier request committed, most of all an ending. (What ends a refresh token is
//! told in `protocol/token/refresh_token.rs`.) When no standby acknowledges a commit the answer is
//! 503, but the row is there. A repeated request finds it, writes nothing, and so waits for no
//! standby. To answer "it is over" then, or "it is there", would promise too much: the next primary
//! may never have heard of it. So Gatepost commits something before it answers, which waits as the
//! first commit did.
//!
//! Everything that acknowledges an ending, or says that a change was made before, stands here.
//! `tests/hardship/standby.rs` walks all of it with the standby away.
//!
//! | who is asked | what ends | what is said where it had ended |
//! |---|---|---|
//! | `/connect/revocation` | an access token; a refresh token with its grant | 200 |
//! | `/account`: `end_session` | a session | that it had ended already |
//! | `/account`: `end_others` | the other sessions | as the first time |
//! | `/account`: `withdraw` | what a client has | that it had ended already |
//! | `/account`: `unlink` | a link, and what came by it | that it had ended already |
//! | `/account`: `remove_factor` | a factor, and all else | that it or the user changed meanwhile |
//! | `/account`: `change_password` | all else of the user | that the user changed meanwhile |
//! | `/account/link`, by a form | everything of the user | that the link cannot be used any more |
//! | `/logout` | the session of the browser | as the first time |
//! | `/connect/endsession` | the same; without a browser, the hint's | as the first time |
//! | `/external/{idp}/logout` | sessions that came from there | 400: that the token was used |
//! | `/admin/people/..` | a session, factors, all of the user | that the user changed meanwhile |
//! | `session end`, `grant revoke` | a session; a grant | that there is none, or no more |
//! | `user disable` | everything of the user | that it is so already |
//! | `user unlink`, `user factors --remove` | a link; a factor, and all else | that there is none |
//! | `user remove`, `client remove`, `key retire` | what stands on it | that there is none |
//! | `apply`, `migrate` | what it changes | that nothing changes |
//!
//! | who is asked | what was made | what is said where it is there |
//! |---|---|---|
//! | SCIM: `POST` | a user | 409: that somebody has the name |
//! | SCIM: `PUT`, `PATCH`, `DELETE` | what it changes | the user as they are; 404 |
//! | `/admin/invite` | a user | that the user name is taken |
//! | `/account/address`, by a form | an address | that the link cannot be used any more |
//! | `/join`, by a form | an account | the same; that the user name is taken |
//! | `/account`: `confirm_link` | a link | that it is linked already |
//! | `/account`, `/login`: a new factor | a factor | that the user changed meanwhile |
//! | `/admin/plan`, `plan` | what the document says | that nothing would change |
//! | `user add`, `user link`, `user set`, `user enable` | what it says | that it is there |
//! | `signup end`, `key rotate`, `key import`, `secret rotate` | what it says | that it was done |
//!
//! What names nothing of ours confirms nothing: a token, a session or a link that does not open, or
//! is another browser's. Neither does a page that is only looked at.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Store;
use super::audit_event::AuditEvent;
use super::mutex::Mutex;
use super::statement::{Bound, bind};
use super::values::column;
use crate::Result;

/// How long this process remembers what it has seen confirmed.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many endings it remembers; beyond that, it forgets all of them.
const MOST: usize = 10_000;

/// Commits something that is no row, where commits wait for standbys; otherwise it writes nothing.
pub const CONFIRM: &str = "
SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
            THEN pg_logical_emit_message(true, 'gatepost', '') END IS NOT NULL AS waits";

/// Endings that this process has seen confirmed, by what names each for good. A token or cookie
/// that is sent again and again makes one commit, not one each.
#[derive(Default)]
pub struct Confirmed(Mutex<HashMap<Vec<u8>, Instant>>);

impl Confirmed {
    fn has(&self, mark: &[u8]) -> bool {
        let confirmed = self.0.lock();
        confirmed
            .get(mark)
            .is_some_and(|at| at.elapsed() < REMEMBERED)
    }

    fn note(&self, mark: &[u8]) {
        let mut confirmed = self.0.lock();
        if confirmed.len() >= MOST {
            confirmed.clear();
        }
        confirmed.insert(mark.to_vec(), Instant::now());
    }
}

impl Store {
    /// Runs a statement that ends something, and answers whether it did. Its one row says so in the
    /// column `ended`; no row means that there is nothing of that name. What had ended before is
    /// confirmed on the same connection, so by the server that said so. `mark` names what can end
    /// but once.
    pub(super) fn end(
        &self,
        mark: Option<&[u8]>,
        bound: Bound<'_>,
        events: &[AuditEvent<'_>],
    ) -> Result<bool> {
        self.write(|connection| {
            let rows = connection.audited(bound, events)?;
            let Some(row) = rows.first() else {
                return Ok(false);
            };
            let ended: bool = column(row, "ended")?;
            if !ended && !mark.is_some_and(|mark| self.confirmed().has(mark)) {
                connection.query(bind!(CONFIRM))?;
            }
            if let Some(mark) = mark {
                self.confirmed().note(mark);
            }
            Ok(ended)
        })
    }

    /// Confirms what was found done, before the answer says so.
    pub fn confirm(&self) -> Result {
        self.write_rows(bind!(CONFIRM)).map(drop)
    }
}
