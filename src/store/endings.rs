//! Endings that were there already. When no standby acknowledges a commit the answer is 503, but the row is there. A repeated
//! request finds it, writes nothing, and so waits for no standby. To answer "it is over" then would promise too much: the next
//! primary may never have heard of it. So Gatepost commits something before it answers, which waits as the ending did.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::{Values, column};

/// How long this process remembers what it has seen confirmed.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many endings it remembers; beyond that, it forgets all of them.
const MOST: usize = 10_000;

/// Commits something that is no row, where commits wait for standbys; otherwise it writes nothing.
pub(super) const CONFIRM: &str = "
SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' THEN pg_logical_emit_message(true, 'gatepost', '') END
       IS NOT NULL AS waits";

/// Endings that this process has seen confirmed, by what names each for good. A token or cookie that is sent again and again
/// makes one commit, not one each.
#[derive(Default)]
pub(super) struct Confirmed(Mutex<HashMap<Vec<u8>, Instant>>);

impl Confirmed {
    fn has(&self, mark: &[u8]) -> bool {
        let confirmed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        confirmed.get(mark).is_some_and(|at| at.elapsed() < REMEMBERED)
    }

    fn note(&self, mark: &[u8]) {
        let mut confirmed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if confirmed.len() >= MOST {
            confirmed.clear();
        }
        confirmed.insert(mark.to_vec(), Instant::now());
    }
}

impl Store {
    /// Runs a statement that ends something, and answers whether it did. Its one row says so in the column `ended`; no row
    /// means that there is nothing of that name. What had ended before is confirmed on the same connection, so by the server
    /// that said so. `mark` names what can end but once.
    pub(super) fn end(
        &self,
        mark: Option<&[u8]>,
        sql: &'static str,
        values: Values<'_>,
        events: &[AuditEvent<'_>],
    ) -> Result<bool, StoreError> {
        self.write(|connection| {
            let rows = connection.audited(sql, values, events, Together::InOrder)?;
            let Some(row) = rows.first() else { return Ok(false) };
            let ended: bool = column(row, "ended")?;
            if !ended && !mark.is_some_and(|mark| self.confirmed().has(mark)) {
                connection.query(CONFIRM, &[])?;
            }
            if let Some(mark) = mark {
                self.confirmed().note(mark);
            }
            Ok(ended)
        })
    }

    /// Confirms an ending that was found done, before the answer says so.
    pub fn confirm(&self) -> Result<(), StoreError> {
        self.write(|connection| connection.query(CONFIRM, &[])).map(drop)
    }
}
