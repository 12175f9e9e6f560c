//! `installation`: the one row that has the issuer, the registry's version, and the time.
//! How much room each table takes is read here, too.

use std::time::{Duration, Instant as Monotonic};

use postgres::{Client, Row};

use super::Store;
use super::audit_event::AuditEvent;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::statement::bind;
use super::values::{column, id, read};
use gatepost_protocol::words::instant::Instant;

/// What the once-a-second read of every process learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallationReading {
    /// Grows with every change to the registry.
    pub registry_version: i64,
    /// The database's clock at some moment between question and answer.
    pub now: Instant,
    /// When the statement was sent, without the wait for a connection.
    pub asked: Monotonic,
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// 16 random bytes made at the first `migrate`; salts every derived key.
    pub id: [u8; 16],
    /// `GATEPOST_BASE_URL` at the first `migrate`.
    pub issuer: String,
    /// Whether the database makes the small letters that the keys of user names were made of;
    /// `None` before that was compared.
    pub lowers_as_before: Option<bool>,
}

const EPOCH: &str = "SELECT epoch FROM installation";

/// What everything that is issued stands on.
pub fn epoch(store: &Store) -> Result<i64, StoreError> {
    column(&store.one(bind!(EPOCH))?, "epoch")
}

const READ: &str = "SELECT registry_version, clock_timestamp() AS now FROM installation";

pub fn read(store: &Store) -> Result<InstallationReading, StoreError> {
    let (row, asked, took) = store.read(|connection| {
        let asked = Monotonic::now();
        let row = connection.query_one(bind!(READ))?;
        Ok((row, asked, asked.elapsed()))
    })?;
    Ok(InstallationReading {
        registry_version: column(&row, "registry_version")?,
        now: column(&row, "now")?,
        asked,
        took,
    })
}

const FIND: &str = "
SELECT i.id, i.issuer, l.lowered = {lowered} AS lowers_as_before
FROM installation i LEFT JOIN lowering l ON true";

/// Reads the issuer of this database; `None` before the first `migrate`.
pub fn find(store: &Store) -> Result<Option<Installation>, StoreError> {
    store.find(bind!(FIND), installation)
}

const CREATE: &str = "
WITH made AS (
    INSERT INTO installation (id, issuer) VALUES (:id::bytea, :issuer::text)
    ON CONFLICT (only_row) DO NOTHING RETURNING id
)
INSERT INTO lowering (lowered) SELECT {lowered} FROM made";

/// Makes the row where there is none; answers the row that stands. Refused when that one has
/// another issuer: tokens, codes and wrapped keys are bound to it.
pub fn ensure(
    client: &mut Client,
    new_id: [u8; 16],
    issuer: &str,
) -> Result<Installation, StoreError> {
    let created = bind!(CREATE, id = &new_id[..], issuer);
    client.execute(&created.text(), created.values)?;
    let found = installation(&client.query_one(&bind!(FIND).text(), &[])?)?;
    check_issuer(&found, issuer)?;
    Ok(found)
}

pub fn check_issuer(installation: &Installation, issuer: &str) -> Result<(), StoreError> {
    if installation.issuer == issuer {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "this database belongs to issuer {}, but GATEPOST_BASE_URL is {issuer}: use the one, or a \
         database of its own for the other, or move it with `gatepost migrate --rename-issuer`",
        installation.issuer
    )))
}

/// User names and addresses are looked up in small letters. Under another locale provider some are
/// not found, and would be given to others.
pub fn check_lowering(installation: &Installation) -> Result<(), StoreError> {
    if installation.lowers_as_before == Some(true) {
        return Ok(());
    }
    Err(StoreError::Refused(String::from(
        "this database turns capitals into other small letters than the one that its user names \
         were kept in, as after a restore under another locale provider: run `gatepost migrate`, \
         which makes the keys of all names anew",
    )))
}

const KEEP_LOWERED: &str = "
INSERT INTO lowering (lowered) VALUES ({lowered})
ON CONFLICT (only_row) DO UPDATE SET lowered = excluded.lowered";

const RENAME: &str = "UPDATE installation SET issuer = :issuer::text";

impl RegistryWriter<'_> {
    /// Makes this the database of another issuer. Everything sealed must be sealed anew in the same
    /// transaction.
    pub fn rename_issuer(&mut self, issuer: &str) -> Result<(), StoreError> {
        self.execute(bind!(RENAME, issuer)).map(drop)
    }

    /// From then on this database counts as the one that the keys of user names were made in.
    pub fn keep_lowered(&mut self) -> Result<(), StoreError> {
        self.execute(bind!(KEEP_LOWERED)).map(drop)
    }
}

// The version goes up, too: a client's own token takes the epoch from what a process holds in
// memory. It goes up by a step that is drawn, as at every change of the registry.
const REVOKE_EVERYTHING: &str = "
WITH revoked AS (
    UPDATE installation
    SET epoch = new_epoch(),
        registry_version = registry_version + 1 + floor(random() * 1073741824)::int8
    RETURNING id
)
INSERT INTO audit_events SELECT a.* FROM revoked, unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Ends everything at once. Clients are called by [`super::session_clients::call_all_revoked`].
pub fn revoke_everything(store: &Store, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    store
        .write_audited(bind!(REVOKE_EVERYTHING), audit)
        .map(drop)
}

fn installation(row: &Row) -> Result<Installation, StoreError> {
    read!(row, Installation { issuer, lowers_as_before; id: id(row, "id")? })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    pub table: String,
    /// Partitions it is in; 0 when it is in one piece.
    pub partitions: i64,
    /// On disk, indexes included.
    pub bytes: i64,
}

const SIZES: &str = "
SELECT t.relname::text AS name, count(i.inhrelid) AS partitions,
       (pg_total_relation_size(t.oid)
        + coalesce(sum(pg_total_relation_size(i.inhrelid)), 0))::int8 AS bytes
FROM pg_class ours
JOIN pg_class t
  ON t.relnamespace = ours.relnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
LEFT JOIN pg_inherits i ON i.inhparent = t.oid
WHERE ours.oid = to_regclass('installation')
GROUP BY t.oid, t.relname
ORDER BY t.relname";

pub fn table_sizes(store: &Store) -> Result<Vec<TableSize>, StoreError> {
    store.list(
        bind!(SIZES),
        |row| read!(row, TableSize { partitions, bytes; table: column(row, "name")? }),
    )
}
