//! `used_assertions`: assertions that were taken once, by who signed them and a hash of their `jti`, until they would
//! not be taken any more. Of a logout token it is kept for as long as well whom it was about; of a sign-in upstream, the way
//! that ended with it.

use sha2::{Digest, Sha256};

use super::Store;
use super::error::StoreError;
use crate::protocol::words::instant::Instant;

const INSERT: &str = "
INSERT INTO used_assertions (day, issuer, jti_hash) VALUES ($1::int4, $2::text, $3::bytea)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING";

/// Takes an assertion: `false` when it was taken before, by whichever process.
pub fn take(store: &Store, issuer: &str, jti: &str, forgotten_at: Instant) -> Result<bool, StoreError> {
    let (day, jti_hash) = key(jti, forgotten_at);
    store.write(|connection| connection.execute(INSERT, &[&day, &issuer, &jti_hash])).map(|rows| rows == 1)
}

/// The day that an assertion lies under, and the hash of its `jti`.
pub(super) fn key(jti: &str, forgotten_at: Instant) -> (i32, Vec<u8>) {
    (forgotten_at.day().0, Sha256::digest(jti.as_bytes()).to_vec())
}

/// What a logout token leaves beside its `jti`: whom it was about, the session or the subject or both.
pub(super) fn whom(sid: Option<&str>, subject: Option<&str>) -> Vec<u8> {
    let whom = serde_json::json!({"logout": [sid, subject]});
    Sha256::digest(whom.to_string().as_bytes()).to_vec()
}
