//! `sign_in_failures`: wrong guesses within a window, counted in the database so that restarts and
//! further processes forget nothing. A bucket is a keyed hash that the caller makes of account,
//! source or both; the store sees no names.

use std::time::Duration;

use postgres::Row;

use super::Store;
use super::statement::bind;
use super::values::{column, each, read, unreadable};
use crate::Result;
use gatepost_protocol::words::instant::Instant;

/// A counter to raise, and for how long it counts from its first failure on.
#[derive(Clone)]
pub struct FailureBucket {
    pub bucket: [u8; 32],
    pub window: Duration,
}

#[derive(Debug, PartialEq)]
pub struct FailureCount {
    pub bucket: [u8; 32],
    /// Failures in the present window.
    pub failures: i32,
    pub last_at: Instant,
    pub expires_at: Instant,
}

const FIND: &str = "
SELECT bucket, failures, last_at, expires_at FROM sign_in_failures
WHERE bucket = ANY(:buckets::bytea[]) AND expires_at > clock_timestamp()";

/// Reads counters; those without failures in their window are left out.
pub fn find(store: &Store, buckets: &[[u8; 32]]) -> Result<Vec<FailureCount>> {
    let buckets: Vec<&[u8]> = buckets.iter().map(|bucket| &bucket[..]).collect();
    store.list(bind!(FIND, buckets), count)
}

/// Buckets are taken in one order by everybody, so that two sign-ins never wait for each other
/// crosswise.
const RECORD: &str = "
INSERT INTO sign_in_failures (bucket, failures, last_at, expires_at)
SELECT b.bucket, 1, clock_timestamp(), clock_timestamp() + b.seconds * interval '1 second'
FROM unnest(:buckets::bytea[], :windows::int4[]) AS b (bucket, seconds) ORDER BY b.bucket
ON CONFLICT (bucket) DO UPDATE
SET failures = CASE WHEN sign_in_failures.expires_at <= clock_timestamp() THEN 1
                    ELSE least(sign_in_failures.failures + 1, 1000000) END,
    last_at = clock_timestamp(),
    expires_at = CASE WHEN sign_in_failures.expires_at <= clock_timestamp() THEN excluded.expires_at
                      ELSE sign_in_failures.expires_at END
RETURNING bucket, failures, last_at, expires_at";

/// Counts one failure in each bucket; answers the counters as they stand then. The buckets must
/// differ.
pub fn record(store: &Store, buckets: &[FailureBucket]) -> Result<Vec<FailureCount>> {
    let bound = bind!(RECORD, buckets = names(buckets), windows = windows(buckets),);
    store.write_rows(bound)?.iter().map(count).collect()
}

/// What the failures of an account bring about, beside what each counter says.
pub struct AccountFailures<'a> {
    /// The counters to raise. They must differ.
    pub counted: &'a [FailureBucket],
    /// The one of them that is of a source alone: no pardon of an account concerns it.
    pub source: Option<[u8; 32]>,
    /// Failures before the moment of this bucket count no more.
    pub pardon: [u8; 32],
    /// The counter whose source waits, once it has so many failures.
    pub account_and_source: [u8; 32],
    pub most: u32,
    /// The bucket that then keeps until when.
    pub lock: [u8; 32],
}

// Whoever takes the row of the lock has taken that of the account before: a sum has to have seen
// all that was counted.
const RECORD_OF_ACCOUNT: &str = "
WITH counted AS (
    INSERT INTO sign_in_failures AS f (bucket, failures, last_at, expires_at)
    SELECT b.bucket, 1, clock_timestamp(), clock_timestamp() + b.seconds * interval '1 second'
    FROM unnest(:buckets::bytea[], :windows::int4[]) AS b (bucket, seconds) ORDER BY b.bucket
    ON CONFLICT (bucket) DO UPDATE
    SET (failures, last_at, expires_at) = (
        SELECT CASE WHEN n.is_anew THEN 1 ELSE least(f.failures + 1, 1000000) END,
               clock_timestamp(),
               CASE WHEN n.is_anew THEN excluded.expires_at ELSE f.expires_at END
        FROM (SELECT f.expires_at <= clock_timestamp()
                  OR f.bucket IS DISTINCT FROM :source::bytea AND EXISTS (
                      SELECT FROM sign_in_failures p
                      WHERE p.bucket = :pardon::bytea AND p.expires_at > clock_timestamp()
                        AND p.last_at >= f.last_at) AS is_anew) AS n)
    RETURNING f.bucket, f.failures, f.expires_at
), waiting AS (
    SELECT max(expires_at) FILTER (
        WHERE bucket = :account_and_source::bytea AND failures >= :most::int4) AS ends_at
    FROM counted
)
INSERT INTO sign_in_failures AS f (bucket, failures, last_at, expires_at)
SELECT :lock::bytea, 1, clock_timestamp(), ends_at FROM waiting WHERE ends_at IS NOT NULL
ON CONFLICT (bucket) DO UPDATE
SET last_at = excluded.last_at, expires_at = greatest(f.expires_at, excluded.expires_at)";

/// Counts one failure of an account in each of its counters. One that was pardoned begins anew.
pub fn record_of_account(store: &Store, of: &AccountFailures<'_>) -> Result {
    let bound = bind!(
        RECORD_OF_ACCOUNT,
        buckets = names(of.counted),
        windows = windows(of.counted),
        source = of.source.as_ref().map(<[u8; 32]>::as_slice),
        pardon = &of.pardon[..],
        account_and_source = &of.account_and_source[..],
        most = i32::try_from(of.most).unwrap_or(i32::MAX),
        lock = &of.lock[..],
    );
    store.execute(bound).map(drop)
}

const CLEAR: &str = "DELETE FROM sign_in_failures WHERE bucket = :bucket::bytea";

/// Forgets the failures of one bucket, after a success.
pub fn clear(store: &Store, bucket: &[u8; 32]) -> Result {
    store.execute(bind!(CLEAR, bucket = &bucket[..])).map(drop)
}

const TAKE_BACK: &str = "
WITH forgotten AS (
    DELETE FROM sign_in_failures WHERE bucket = ANY(:forgotten::bytea[])
)
UPDATE sign_in_failures SET failures = greatest(failures - 1, 0)
WHERE bucket = ANY(:buckets::bytea[])";

/// Takes back attempts that were counted before the code proved right, and forgets the failures of
/// other buckets.
pub fn take_back(store: &Store, buckets: &[FailureBucket], forgotten: &[[u8; 32]]) -> Result {
    let bound = bind!(
        TAKE_BACK,
        buckets = names(buckets),
        forgotten = each(forgotten, |bucket| &bucket[..]),
    );
    store.execute(bound).map(drop)
}

/// As statements take them.
pub fn names(buckets: &[FailureBucket]) -> Vec<&[u8]> {
    each(buckets, |entry| &entry.bucket[..])
}

/// How long each of them counts, in seconds.
pub fn windows(buckets: &[FailureBucket]) -> Vec<i32> {
    let seconds = |entry: &FailureBucket| i32::try_from(entry.window.as_secs());
    each(buckets, |entry| seconds(entry).unwrap_or(i32::MAX))
}

const CLEAN: &str = "
DELETE FROM sign_in_failures WHERE bucket IN (
    SELECT bucket FROM sign_in_failures
    WHERE expires_at <= clock_timestamp() OR (SELECT count(*) FROM sign_in_failures) > :most::int8
    ORDER BY expires_at LIMIT 500
    FOR UPDATE SKIP LOCKED)";

/// Removes up to 500 counters whose window is over, or, with more than `most` of them there, those
/// that end first; answers how many. Called until it answers less than 500.
pub fn clean(store: &Store, most: i64) -> Result<u64> {
    store.execute(bind!(CLEAN, most))
}

fn count(row: &Row) -> Result<FailureCount> {
    let bucket = column::<&[u8]>(row, "bucket")?.try_into();
    read!(row, FailureCount { failures, last_at, expires_at;
        bucket: bucket.map_err(|_| unreadable("bucket"))?,
    })
}
