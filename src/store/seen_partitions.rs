//! The partitions that this process has seen. A statement that names one takes less time than one
//! that is planned for all. Nothing else depends on what stands here: where none is known, a
//! statement names the table, and answers the same.

use super::mutex::Mutex;
use gatepost_protocol::words::instant::Day;

#[derive(Debug, Default)]
pub struct SeenPartitions(pub Mutex<Vec<SeenPartition>>);

/// One that has the days from `from` to the day before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeenPartition {
    pub table: &'static str,
    pub from: i32,
    pub to: i32,
}

/// The partitions that a statement names in place of their tables.
pub type Partitions = [Option<SeenPartition>; 3];

/// The day under which a statement looks in a table, or writes to it.
#[derive(Clone, Copy)]
pub struct DayOfTable {
    table: &'static str,
    day: Day,
}

/// The same where there is a day.
pub fn under(table: &'static str, day: Option<Day>) -> Option<DayOfTable> {
    Some(DayOfTable { table, day: day? })
}

impl SeenPartitions {
    pub fn of(&self, wanted: DayOfTable) -> Option<SeenPartition> {
        let has_day = |seen: &&SeenPartition| {
            seen.table == wanted.table && (seen.from..seen.to).contains(&wanted.day.0)
        };
        self.0.lock().iter().find(has_day).copied()
    }

    /// They are seen anew with the next upkeep.
    pub fn forget(&self) {
        self.0.lock().clear();
    }
}
