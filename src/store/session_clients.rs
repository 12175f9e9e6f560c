//! `session_clients`: which clients got something in a session and want to hear of its end. A row
//! is entered when the client first gets something; the statement that ends the session makes it
//! due; from then on the rows that are due are the queue of back-channel calls, which any process
//! may take from.

use super::Store;
use super::statement::bind;
use super::values::{column, read};
use crate::Result;
use gatepost_protocol::words::identifiers::{ClientId, Sid, Subject};
use gatepost_protocol::words::instant::Day;

// A row that a call was due for already means that the client was told of an end that was not the
// session's (its own revocation): it has signed the person in anew and wants to hear of the next. A
// row as it should be is left alone, not even locked. The session's row is, so that it does not end
// meanwhile.
const ENTER: &str = "
INSERT INTO session_clients (day, sid, client_id, sub)
SELECT s.day, s.sid, :client_id::text, s.sub
FROM sessions s
WHERE s.day = :day::int4 AND s.sid = :sid::text AND s.ended_at IS NULL
  AND NOT EXISTS (SELECT FROM session_clients c
                  WHERE c.day = :day::int4 AND c.sid = :sid::text
                    AND c.client_id = :client_id::text AND c.due_at IS NULL AND c.tries = 0)
FOR SHARE OF s
ON CONFLICT (day, sid, client_id) DO UPDATE
SET first_at = clock_timestamp(), due_at = NULL, tries = 0, notified_at = NULL";

/// Notes that a client with a logout URI got something in a session that lives.
pub fn enter(store: &Store, day: Day, sid: &Sid, client_id: &ClientId) -> Result {
    store.execute(bind!(ENTER, day, sid, client_id)).map(drop)
}

const LIST: &str = "
SELECT client_id FROM session_clients
WHERE day = :day::int4 AND sid = :sid::text
ORDER BY first_at, client_id";

/// The clients of a session, in the order in which they first got something.
pub fn list(store: &Store, day: Day, sid: &Sid) -> Result<Vec<ClientId>> {
    store.list(bind!(LIST, day, sid), |row| column(row, "client_id"))
}

const CALL_LATE: &str = "
UPDATE session_clients c SET due_at = clock_timestamp()
FROM unnest(:days::int4[], :sids::text[]) AS named (day, sid)
JOIN sessions s ON s.day = named.day AND s.sid = named.sid AND s.ended_at IS NOT NULL
WHERE c.day = s.day AND c.sid = s.sid AND c.due_at IS NULL AND c.tries = 0";

/// Has those clients called that entered a session while it ended. The statement that ends a
/// session waits for them, and still does not see their rows: they came after it began. The ending
/// is done and is answered as that, also where this fails.
pub fn call_late(store: &Store, ended: &[Sid]) {
    if ended.is_empty() {
        return;
    }
    let days: Vec<Option<Day>> = ended.iter().map(Sid::day).collect();
    if let Err(error) = store.execute(bind!(CALL_LATE, days, sids = ended)) {
        log::warn!("clients that entered a session while it ended are not called: {error}");
    }
}

/// A call to make: the client is to hear that this session is over.
pub struct DueCall {
    pub day: Day,
    pub sid: Sid,
    pub client_id: ClientId,
    pub sub: Subject,
    /// Which try this is, from 1.
    pub tries: i32,
}

/// Tries in all: at once, after a minute, eight minutes later.
pub const MOST_TRIES: i32 = 3;

// The next try is written down before this one is made: should this process die meanwhile, another
// one makes it. Clients take turns: one that does not answer, and has many sessions to hear of,
// holds up itself.
//
// Thousands may be due at once, and Postgres then plans by statistics of a time when none was. So
// the statement looks at no more than the 500 calls that are due longest and the 500 that became
// due last. Those last ones let a client have its turn at once, however many calls of another
// client wait before its own. Each row is then found by its key: the LIMIT 1 keeps Postgres from
// looking for it among all that are due.
const TAKE: &str = "
WITH waiting AS MATERIALIZED (
    (SELECT day, sid, client_id, due_at FROM session_clients
     WHERE due_at <= statement_timestamp() AND tries < 3
     ORDER BY due_at LIMIT 500)
    UNION
    (SELECT day, sid, client_id, due_at FROM session_clients
     WHERE due_at <= statement_timestamp() AND tries < 3
     ORDER BY due_at DESC LIMIT 500)
), in_turn AS (
    SELECT day, sid, client_id, due_at,
           row_number() OVER (PARTITION BY client_id ORDER BY due_at) AS turn
    FROM waiting
    ORDER BY turn, due_at
), due AS (
    SELECT locked.day, locked.sid, locked.client_id
    FROM in_turn w CROSS JOIN LATERAL (
        SELECT c.day, c.sid, c.client_id, c.due_at, c.tries
        FROM session_clients c
        WHERE c.day = w.day AND c.sid = w.sid AND c.client_id = w.client_id
        LIMIT 1
        FOR UPDATE SKIP LOCKED) AS locked
    WHERE locked.due_at <= statement_timestamp() AND locked.tries < 3
    LIMIT :most::int8
)
UPDATE session_clients c
SET tries = c.tries + 1,
    due_at = clock_timestamp()
             + CASE c.tries WHEN 0 THEN interval '1 minute' ELSE interval '8 minutes' END
FROM due
WHERE c.day = due.day AND c.sid = due.sid AND c.client_id = due.client_id
RETURNING c.day, c.sid, c.client_id, c.sub, c.tries";

/// Takes up to `most` calls that are due, for this process alone.
pub fn take(store: &Store, most: i64) -> Result<Vec<DueCall>> {
    let taken = store.write_rows(bind!(TAKE, most))?;
    taken
        .iter()
        .map(|row| read!(row, DueCall { day, sid, client_id, sub, tries; }))
        .collect()
}

#[derive(Clone, Copy, PartialEq)]
pub enum CallOutcome {
    Told,
    /// It did not; there is another try unless this was the last.
    Failed,
    /// No client is called.
    Moot,
}

// Not when the client signed the person in again while it was called: that is another matter.
const SETTLE: &str = "
UPDATE session_clients
SET notified_at = CASE WHEN :told::bool THEN clock_timestamp() END,
    due_at = CASE WHEN :again::bool THEN due_at END
WHERE day = :day::int4 AND sid = :sid::text
  AND client_id = :client_id::text AND tries = :tries::int4";

/// Writes down how a call ended.
pub fn settle(store: &Store, call: &DueCall, outcome: CallOutcome) -> Result {
    let told = outcome == CallOutcome::Told;
    let again = outcome == CallOutcome::Failed && call.tries < MOST_TRIES;
    let bound = bind!(
        SETTLE,
        ..call {
            day,
            sid,
            client_id,
            tries
        },
        told,
        again
    );
    store.execute(bound).map(drop)
}
