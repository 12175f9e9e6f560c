//! `signing_keys`: public parts for everyone, private parts wrapped by `crypto` and erased at
//! retirement.

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use super::Store;
use super::clients::{Versioned, registry_version};
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::values::{Values, column, read};
use crate::protocol::keys::key_schedule::{KeyTimes, ScheduledKey};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::secret::SecretBytes;

#[derive(Clone, Debug, PartialEq)]
pub struct SigningKeyRow {
    /// RFC 7638 thumbprint, unless it was imported under another name.
    pub kid: String,
    pub algorithm: SigningAlgorithm,
    /// Wrapped PKCS#8; `None` once retired.
    pub wrapped_private: Option<SecretBytes>,
    pub public_jwk: Value,
    pub times: KeyTimes,
}

impl SigningKeyRow {
    pub fn to_core(&self) -> ScheduledKey {
        ScheduledKey {
            kid: self.kid.clone(),
            algorithm: self.algorithm,
            times: self.times,
            can_sign: self.wrapped_private.is_some(),
        }
    }
}

const LOAD: &str = "
SELECT i.registry_version, k.* FROM installation i LEFT JOIN signing_keys k ON true ORDER BY k.activates_at, k.kid";

pub fn load(store: &Store) -> Result<Versioned<Vec<SigningKeyRow>>, StoreError> {
    versioned(&store.read(|connection| connection.query(LOAD, &[]))?)
}

fn versioned(rows: &[Row]) -> Result<Versioned<Vec<SigningKeyRow>>, StoreError> {
    let registry_version = registry_version(rows)?;
    let value = rows
        .iter()
        .filter_map(|row| key(row).transpose())
        .collect::<Result<_, _>>()?;
    Ok(Versioned {
        registry_version,
        value,
    })
}

fn key(row: &Row) -> Result<Option<SigningKeyRow>, StoreError> {
    let Some(kid) = column::<Option<String>>(row, "kid")? else {
        return Ok(None);
    };
    let algorithm = SigningAlgorithm::from_name(column(row, "algorithm")?);
    Ok(Some(SigningKeyRow {
        kid,
        algorithm: algorithm
            .ok_or_else(|| StoreError::Corrupt(String::from("column algorithm")))?,
        wrapped_private: column::<Option<&[u8]>>(row, "wrapped_private")?.map(SecretBytes::new),
        public_jwk: column::<Json<Value>>(row, "public_jwk")?.0,
        times: times(row)?,
    }))
}

fn times(row: &Row) -> Result<KeyTimes, StoreError> {
    read!(row, KeyTimes { announced_at, activates_at, retires_at, unpublished_at, forgotten_at; })
}

const INSERT_KEY: &str = "
INSERT INTO signing_keys (kid, algorithm, wrapped_private, public_jwk, announced_at, activates_at, retires_at,
                          unpublished_at, forgotten_at)
VALUES ($1::text, $2::text, $3::bytea, $4::jsonb, $5::timestamptz, $6::timestamptz, $7::timestamptz, $8::timestamptz,
        $9::timestamptz)";

const REWRAP_KEY: &str = "UPDATE signing_keys SET wrapped_private = $2::bytea WHERE kid = $1::text";

const RESCHEDULE_KEY: &str = "
UPDATE signing_keys SET activates_at = $2::timestamptz, retires_at = $3::timestamptz, unpublished_at = $4::timestamptz,
                        forgotten_at = $5::timestamptz
WHERE kid = $1::text";

const REMOVE_KEY: &str = "DELETE FROM signing_keys WHERE kid = $1::text";

impl RegistryWriter<'_> {
    /// Reads every key as it stands within this change, oldest first.
    pub fn signing_keys(&mut self) -> Result<Vec<SigningKeyRow>, StoreError> {
        Ok(versioned(&self.transaction.query(LOAD, &[])?)?.value)
    }

    pub fn insert_signing_key(&mut self, key: &SigningKeyRow) -> Result<(), StoreError> {
        let wrapped = key.wrapped_private.as_ref().map(SecretBytes::expose);
        let KeyTimes {
            announced_at,
            activates_at,
            retires_at,
            unpublished_at,
            forgotten_at,
        } = &key.times;
        let what: Values<'_> = &[
            &key.kid,
            &key.algorithm.as_str(),
            &wrapped,
            &Json(&key.public_jwk),
        ];
        let when: Values<'_> = &[
            announced_at,
            activates_at,
            retires_at,
            unpublished_at,
            forgotten_at,
        ];
        self.execute(INSERT_KEY, &[what, when].concat()).map(drop)
    }

    /// Puts another wrapping around a private part, or erases it with `None`.
    pub fn rewrap_signing_key(
        &mut self,
        kid: &str,
        wrapped_private: Option<&SecretBytes>,
    ) -> Result<bool, StoreError> {
        let wrapped = wrapped_private.map(SecretBytes::expose);
        Ok(self.execute(REWRAP_KEY, &[&kid, &wrapped])? > 0)
    }

    /// Takes over a key's instants from `activates_at` on.
    pub fn reschedule_signing_key(
        &mut self,
        kid: &str,
        times: &KeyTimes,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[
            &kid,
            &times.activates_at,
            &times.retires_at,
            &times.unpublished_at,
            &times.forgotten_at,
        ];
        Ok(self.execute(RESCHEDULE_KEY, values)? > 0)
    }

    pub fn remove_signing_key(&mut self, kid: &str) -> Result<bool, StoreError> {
        Ok(self.execute(REMOVE_KEY, &[&kid])? > 0)
    }
}
