//! How much room each table takes, its partitions together; for metrics.

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::values::column;

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
       (pg_total_relation_size(t.oid) + coalesce(sum(pg_total_relation_size(i.inhrelid)), 0))::int8 AS bytes
FROM pg_class ours
JOIN pg_class t ON t.relnamespace = ours.relnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
LEFT JOIN pg_inherits i ON i.inhparent = t.oid
WHERE ours.oid = to_regclass('installation')
GROUP BY t.oid, t.relname
ORDER BY t.relname";

pub fn read(store: &Store) -> Result<Vec<TableSize>, StoreError> {
    let rows = store.read(|connection| connection.query(SIZES, &[]))?;
    rows.iter().map(size).collect()
}

fn size(row: &Row) -> Result<TableSize, StoreError> {
    Ok(TableSize { table: column(row, "name")?, partitions: column(row, "partitions")?, bytes: column(row, "bytes")? })
}
