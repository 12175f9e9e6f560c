//! `sign_in_failures`: wrong guesses within a window, counted in the database so that restarts and
//! further processes forget nothing. A bucket is a keyed hash that the caller makes of account,
//! source or both; the store sees no names.

use std::time::Duration;

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::statement::bind;
use super::values::{column, read, unreadable};
use gatepost_protocol::words::instant::Instant;

/// A counter to raise, and for how long it counts from its first failure on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureBucket {
    pub bucket: [u8; 32],
    pub window: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
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
pub fn find(store: &Store, buckets: &[[u8; 32]]) -> Result<Vec<FailureCount>, StoreError> {
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
pub fn record(store: &Store, buckets: &[FailureBucket]) -> Result<Vec<FailureCount>, StoreError> {
    let seconds = |entry: &FailureBucket| i32::try_from(entry.window.as_secs()).unwrap_or(i32::MAX);
    let bound = bind!(
        RECORD,
        buckets = names(buckets),
        windows = buckets.iter().map(seconds).collect::<Vec<_>>(),
    );
    store.write_rows(bound)?.iter().map(count).collect()
}

const CLEAR: &str = "DELETE FROM sign_in_failures WHERE bucket = :bucket::bytea";

/// Forgets the failures of one bucket, after a success.
pub fn clear(store: &Store, bucket: &[u8; 32]) -> Result<(), StoreError> {
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
pub fn take_back(
    store: &Store,
    buckets: &[FailureBucket],
    forgotten: &[[u8; 32]],
) -> Result<(), StoreError> {
    let bound = bind!(
        TAKE_BACK,
        buckets = names(buckets),
        forgotten = forgotten
            .iter()
            .map(<[u8; 32]>::as_slice)
            .collect::<Vec<_>>(),
    );
    store.execute(bound).map(drop)
}

fn names(buckets: &[FailureBucket]) -> Vec<&[u8]> {
    buckets.iter().map(|entry| &entry.bucket[..]).collect()
}

const CLEAN: &str = "
DELETE FROM sign_in_failures WHERE bucket IN (
    SELECT bucket FROM sign_in_failures
    WHERE expires_at <= clock_timestamp() OR (SELECT count(*) FROM sign_in_failures) > :most::int8
    ORDER BY expires_at LIMIT 500
    FOR UPDATE SKIP LOCKED)";

/// Removes up to 500 counters whose window is over, or, with more than `most` of them there, those
/// that end first; answers how many. Called until it answers less than 500.
pub fn clean(store: &Store, most: i64) -> Result<u64, StoreError> {
    store.execute(bind!(CLEAN, most))
}

fn count(row: &Row) -> Result<FailureCount, StoreError> {
    let bucket = column::<&[u8]>(row, "bucket")?.try_into();
    read!(row, FailureCount { failures, last_at, expires_at;
        bucket: bucket.map_err(|_| unreadable("bucket"))?,
    })
}
