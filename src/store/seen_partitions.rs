//! The partitions that this process has seen. A statement planned for one of them takes less time
//! than one planned for all. Nothing else depends on what stands here: what is planned for days
//! without a partition, or for those of several, answers the same as ever.

use super::mutex::Mutex;

#[derive(Debug, Default)]
pub struct SeenPartitions(pub Mutex<Vec<SeenPartition>>);

/// One that has the days from `from` to the day before `to`.
#[derive(Debug)]
pub struct SeenPartition {
    pub table: String,
    pub from: i32,
    pub to: i32,
}

/// The same of the table that a statement calls `alias`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KnownPartition {
    pub alias: &'static str,
    pub from: i32,
    pub to: i32,
}

/// The partitions that a statement is planned for.
pub type Partitions = [Option<KnownPartition>; 3];

impl KnownPartition {
    pub fn condition(&self) -> String {
        let KnownPartition { alias, from, to } = self;
        format!("{alias}.day BETWEEN {from} AND {}", to - 1)
    }
}
