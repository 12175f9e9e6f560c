//! `installation`: the one row that has the issuer, the registry's version, and the time.
//! How much room each table takes is read here, too.

use std::time::{Duration, Instant as Monotonic};

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::statement::bind;
use super::values::{column, id, read};
use crate::Result;
use gatepost_protocol::words::instant::Instant;

/// What the once-a-second read of every process learns.
#[derive(Debug)]
pub struct InstallationReading {
    /// Grows with every change to the registry.
    pub registry_version: i64,
    /// The database's clock at some moment between question and answer.
    pub now: Instant,
    /// When the statement was sent, without the wait for a connection.
    pub asked: Monotonic,
    pub took: Duration,
}

#[derive(Debug)]
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
pub fn epoch(store: &Store) -> Result<i64> {
    column(&store.one(bind!(EPOCH))?, "epoch")
}

const READ: &str = "SELECT registry_version, clock_timestamp() AS now FROM installation";

pub fn read(store: &Store) -> Result<InstallationReading> {
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

pub const FIND: &str = "
SELECT i.id, i.issuer, l.lowered = {lowered} AS lowers_as_before
FROM installation i LEFT JOIN lowering l ON true";

/// Reads the issuer of this database; `None` before the first `migrate`.
pub fn find(store: &Store) -> Result<Option<Installation>> {
    store.find(bind!(FIND), installation)
}

pub fn check_issuer(installation: &Installation, issuer: &str) -> Result {
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
pub fn check_lowering(installation: &Installation) -> Result {
    if installation.lowers_as_before == Some(true) {
        return Ok(());
    }
    Err(StoreError::Refused(String::from(
        "this database turns capitals into other small letters than the one that its user names \
         were kept in, as after a restore under another locale provider: run `gatepost migrate`, \
         which makes the keys of all names anew",
    )))
}

/// The installation of a row of [`FIND`].
pub fn installation(row: &Row) -> Result<Installation> {
    read!(row, Installation { issuer, lowers_as_before; id: id(row, "id")? })
}

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

pub fn table_sizes(store: &Store) -> Result<Vec<TableSize>> {
    store.list(
        bind!(SIZES),
        |row| read!(row, TableSize { partitions, bytes; table: column(row, "name")? }),
    )
}
