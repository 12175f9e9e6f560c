//! What each hour of the audit log comes to: `user_uses`, `client_user_uses` and `hourly_counts`.
//! `folds` has the hours that were folded. An hour is told by its number since 1970, in UTC.
//!
//! An event carries a moment from before its commit. So an hour is folded ten minutes after its
//! end, and twice more with the hours behind it. What it came to before is replaced.

use std::time::Duration;

use postgres::{Client, GenericClient};

use super::Store;
use super::statement::{Bound, bind};
use super::values::column;
use crate::Result;
use gatepost_protocol::words::instant::Instant;

/// How long after its end an hour is folded.
const PATIENCE: Duration = Duration::from_secs(600);
/// Hours that are folded at once. There are many after an upgrade: the newest come first.
const MOST: i64 = 24;

// None is of before the installation. While the newest one is missing, the two before it are folded
// again.
const DUE: &str = "
SELECT h.hour FROM installation i CROSS JOIN LATERAL generate_series(
    greatest(:earliest::int4, floor(extract(epoch FROM i.created_at) / 3600)::int4),
    :newest::int4) AS h (hour)
WHERE NOT EXISTS (SELECT FROM folds f WHERE f.hour = h.hour)
   OR h.hour > :newest::int4 - 3
      AND NOT EXISTS (SELECT FROM folds f WHERE f.hour = :newest::int4)
ORDER BY h.hour DESC LIMIT :most::int8";

// Of two leaders the second leaves it to the first. The number is ours alone; a database may hold
// several installations.
const ALONE: &str =
    "SELECT pg_try_advisory_xact_lock(7307468, hashtext(current_schema())) AS is_alone";

const CLEAR: &str = "
WITH marked AS (INSERT INTO folds (hour) VALUES (:hour::int4) ON CONFLICT DO NOTHING)
DELETE FROM hourly_counts WHERE hour = :hour::int4";

// Whoever is removed meanwhile is waited for, or waits.
const FOLD: &str = "
WITH events AS (
    SELECT a.sub, a.client_id,
           CASE a.event WHEN 'failures_not_told' THEN a.detail ->> 'event'
               ELSE a.event END AS event,
           CASE WHEN a.event IN ('failures_not_told', 'more_failures')
               THEN (a.detail ->> 'count')::int8 ELSE 1 END AS n,
           CASE a.event WHEN 'more_failures'
               THEN (a.detail ->> 'turned_away')::int8 END AS turned_away
    FROM audit_events a
    WHERE a.at >= to_timestamp(:hour::int4 * 3600.0)
      AND a.at < to_timestamp((:hour::int4 + 1) * 3600.0)
      AND a.event IN ('signed_in', 'password_granted', 'refreshed', 'refresh_repeated',
          'code_redeemed', 'device_code_redeemed', 'grant_begun', 'sign_in_failed',
          'second_factor_failed', 'passkey_refused', 'external_sign_in_failed',
          'password_change_refused', 'failures_not_told', 'more_failures')
), told AS MATERIALIZED (
    SELECT sub, client_id, event, sum(n) AS n, sum(turned_away) AS turned_away
    FROM events GROUP BY sub, client_id, event
), counted AS (
    INSERT INTO hourly_counts (hour, tenant, kind, n)
    SELECT :hour::int4, coalesce(u.tenant, ''), k.kind, sum(k.n)
    FROM told t LEFT JOIN users u ON u.sub = t.sub
    CROSS JOIN LATERAL (VALUES
        (CASE WHEN t.event = 'signed_in' THEN 'signed_in'
              WHEN t.event = 'more_failures' THEN 'more_failed'
              WHEN t.event IN ('sign_in_failed', 'second_factor_failed', 'passkey_refused',
                  'external_sign_in_failed', 'password_change_refused') THEN 'failed' END, t.n),
        ('turned_away', t.turned_away)) AS k (kind, n)
    WHERE k.kind IS NOT NULL AND k.n > 0
    GROUP BY coalesce(u.tenant, ''), k.kind
), people AS (
    SELECT u.sub FROM users u
    WHERE u.sub IN (SELECT sub FROM told
        WHERE event IN ('signed_in', 'password_granted', 'refreshed', 'refresh_repeated'))
      AND NOT EXISTS (SELECT FROM user_uses o WHERE o.sub = u.sub AND o.day >= :hour::int4 / 24)
    ORDER BY u.sub FOR KEY SHARE
), used AS (
    INSERT INTO user_uses AS o (sub, day) SELECT sub, :hour::int4 / 24 FROM people
    ON CONFLICT (sub) DO UPDATE SET day = greatest(o.day, excluded.day)
), pairs AS (
    SELECT u.sub, c.client_id
    FROM (SELECT DISTINCT sub, client_id FROM told
          WHERE event IN ('code_redeemed', 'device_code_redeemed', 'password_granted',
              'grant_begun', 'refreshed', 'refresh_repeated')) AS t
    JOIN users u ON u.sub = t.sub JOIN clients c ON c.client_id = t.client_id
    WHERE NOT EXISTS (SELECT FROM client_user_uses o WHERE o.sub = t.sub
        AND o.client_id = t.client_id AND o.day >= :hour::int4 / 24)
    ORDER BY u.sub, c.client_id FOR KEY SHARE OF u, c
)
INSERT INTO client_user_uses AS o (sub, client_id, day)
SELECT sub, client_id, :hour::int4 / 24 FROM pairs
ON CONFLICT (sub, client_id) DO UPDATE SET day = greatest(o.day, excluded.day)";

const FORGET: &str = "
WITH forgotten AS (DELETE FROM folds WHERE hour < :earliest::int4)
DELETE FROM hourly_counts WHERE hour < :earliest::int4";

const NEWEST: &str = "SELECT max(f.hour) AS hour FROM folds f";

/// The newest hour that was folded.
pub fn newest(store: &Store) -> Result<Option<i32>> {
    column(&store.one(bind!(NEWEST))?, "hour")
}

/// Folds what is due, at most `MOST` hours, and forgets the counts of those that the log has no
/// more: it keeps events for `kept`. Answers how many hours were folded.
pub fn fold(store: &Store, now: Instant, kept: Duration) -> Result<usize> {
    let earliest = now.minus(kept).hour();
    let newest = now.minus(PATIENCE).hour() - 1;
    store.execute(bind!(FORGET, earliest))?;
    let due = bind!(DUE, earliest, newest, most = MOST);
    let hours: Vec<i32> = store.list(due, |row| column(row, "hour"))?;
    // Mostly there is none, and a connection of its own takes longer than to ask.
    if hours.is_empty() {
        return Ok(0);
    }
    store.administer(|client| {
        for hour in &hours {
            fold_hour(store, client, *hour)?;
        }
        Ok(hours.len())
    })
}

/// One hour, wholly or not at all; not while another process is at it.
fn fold_hour(store: &Store, client: &mut Client, hour: i32) -> Result {
    let mut folding = client.transaction()?;
    if !column(&folding.query_one(ALONE, &[])?, "is_alone")? {
        return Ok(());
    }
    run(&mut folding, bind!(CLEAR, hour))?;
    run(&mut folding, bind!(FOLD, hour))?;
    store.commit(folding)
}

fn run(client: &mut impl GenericClient, bound: Bound<'_>) -> Result {
    Ok(client.execute(&bound.text(), bound.values).map(drop)?)
}
