//! `signing_keys`: public parts for everyone, private parts wrapped by `server/keys` and erased at
//! retirement.

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use super::Store;
use super::clients::{Versioned, registry_version};
use super::registry_writer::{RegistryReader, RegistryWriter};
use super::statement::bind;
use super::values::{column, read, unreadable};
use crate::Result;
use gatepost_protocol::keys::key_schedule::{KeyTimes, ScheduledKey};
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::secret::SecretBytes;

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
SELECT i.registry_version, k.* FROM installation i LEFT JOIN signing_keys k ON true
ORDER BY k.activates_at, k.kid";

pub fn load(store: &Store) -> Result<Versioned<Vec<SigningKeyRow>>> {
    versioned(&store.rows(bind!(LOAD))?)
}

fn versioned(rows: &[Row]) -> Result<Versioned<Vec<SigningKeyRow>>> {
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

fn key(row: &Row) -> Result<Option<SigningKeyRow>> {
    let Some(kid) = column::<Option<String>>(row, "kid")? else {
        return Ok(None);
    };
    let algorithm = SigningAlgorithm::from_name(column(row, "algorithm")?);
    Ok(Some(SigningKeyRow {
        kid,
        algorithm: algorithm.ok_or_else(|| unreadable("algorithm"))?,
        wrapped_private: column::<Option<&[u8]>>(row, "wrapped_private")?.map(SecretBytes::new),
        public_jwk: column::<Json<Value>>(row, "public_jwk")?.0,
        times: times(row)?,
    }))
}

fn times(row: &Row) -> Result<KeyTimes> {
    read!(row, KeyTimes { announced_at, activates_at, retires_at, unpublished_at, forgotten_at; })
}

const INSERT_KEY: &str = "
INSERT INTO signing_keys (kid, algorithm, wrapped_private, public_jwk, announced_at,
                          activates_at, retires_at, unpublished_at, forgotten_at)
VALUES (:kid::text, :algorithm::text, :wrapped_private::bytea, :public_jwk::jsonb,
        :announced_at::timestamptz, :activates_at::timestamptz, :retires_at::timestamptz,
        :unpublished_at::timestamptz, :forgotten_at::timestamptz)";

const REWRAP_KEY: &str =
    "UPDATE signing_keys SET wrapped_private = :wrapped_private::bytea WHERE kid = :kid::text";

const RESCHEDULE_KEY: &str = "
UPDATE signing_keys
SET activates_at = :activates_at::timestamptz, retires_at = :retires_at::timestamptz,
    unpublished_at = :unpublished_at::timestamptz, forgotten_at = :forgotten_at::timestamptz
WHERE kid = :kid::text";

const REMOVE_KEY: &str = "DELETE FROM signing_keys WHERE kid = :kid::text";

impl RegistryReader<'_> {
    /// Reads every key as it stands within this change, oldest first.
    pub fn signing_keys(&mut self) -> Result<Vec<SigningKeyRow>> {
        Ok(versioned(&self.read(bind!(LOAD))?)?.value)
    }
}

impl RegistryWriter<'_> {
    pub fn insert_signing_key(&mut self, key: &SigningKeyRow) -> Result {
        let bound = bind!(
            INSERT_KEY,
            kid = key.kid,
            algorithm = key.algorithm.as_str(),
            wrapped_private = key.wrapped_private.as_ref().map(SecretBytes::expose),
            public_jwk = Json(&key.public_jwk),
            announced_at = key.times.announced_at,
            activates_at = key.times.activates_at,
            retires_at = key.times.retires_at,
            unpublished_at = key.times.unpublished_at,
            forgotten_at = key.times.forgotten_at,
        );
        self.execute(bound).map(drop)
    }

    /// Puts another wrapping around a private part, or erases it with `None`.
    pub fn rewrap_signing_key(
        &mut self,
        kid: &str,
        wrapped_private: Option<&SecretBytes>,
    ) -> Result<bool> {
        let wrapped_private = wrapped_private.map(SecretBytes::expose);
        Ok(self.execute(bind!(REWRAP_KEY, kid, wrapped_private))? > 0)
    }

    /// Takes over a key's instants from `activates_at` on.
    pub fn reschedule_signing_key(&mut self, kid: &str, times: &KeyTimes) -> Result<bool> {
        let bound = bind!(
            RESCHEDULE_KEY,
            ..times {
                activates_at,
                retires_at,
                unpublished_at,
                forgotten_at
            },
            kid
        );
        Ok(self.execute(bound)? > 0)
    }

    pub fn remove_signing_key(&mut self, kid: &str) -> Result<bool> {
        Ok(self.execute(bind!(REMOVE_KEY, kid))? > 0)
    }
}
