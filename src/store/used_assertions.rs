//! `used_assertions`: assertions that were taken once, by who signed them and a hash of their `jti`, until they would
//! not be taken any more.

use sha2::{Digest, Sha256};

use super::error::StoreError;
use super::{NamedQuery, Store};
use crate::protocol::instant::Instant;

const INSERT: &str = "
INSERT INTO used_assertions (day, issuer, jti_hash) VALUES ($1::int4, $2::text, $3::bytea)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING";

/// Takes an assertion: `false` when it was taken before, by whichever process.
pub fn take(store: &Store, issuer: &str, jti: &str, forgotten_at: Instant) -> Result<bool, StoreError> {
    let (day, jti_hash) = (forgotten_at.day().0, Sha256::digest(jti.as_bytes()).to_vec());
    store.write(|connection| connection.execute(INSERT, &[&day, &issuer, &jti_hash])).map(|rows| rows == 1)
}

pub(super) const QUERIES: &[NamedQuery] = &[("used_assertions::INSERT", INSERT)];
