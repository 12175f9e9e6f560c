//! How much happened, hour by hour.

use gatepost_store::{Result, Store, bind, read};
use postgres::Row;

/// What happened in an hour to people within reach.
pub struct HourlyCounts {
    pub hour: i32,
    /// Sign-ins, failed attempts, further failures, and what was turned away; none where the hour
    /// was not folded.
    pub counts: Option<Vec<i64>>,
}

fn hourly_counts(row: &Row) -> Result<HourlyCounts> {
    read!(row, HourlyCounts { hour, counts; })
}

const COUNTS: &str = "
SELECT h.hour, (SELECT ARRAY[
        coalesce(sum(c.n) FILTER (WHERE c.kind = 'signed_in'), 0),
        coalesce(sum(c.n) FILTER (WHERE c.kind = 'failed'), 0),
        coalesce(sum(c.n) FILTER (WHERE c.kind = 'more_failed'), 0),
        coalesce(sum(c.n) FILTER (WHERE c.kind = 'turned_away'), 0)]::int8[]
    FROM hourly_counts c
    WHERE c.hour = h.hour AND ('' = ANY(:reach::text[]) OR c.tenant = ANY(:reach::text[]))
    HAVING EXISTS (SELECT FROM folds f WHERE f.hour = h.hour)) AS counts
FROM generate_series(:first::int4, :last::int4) AS h (hour) ORDER BY h.hour";

/// Those hours, one after the other. An empty name in `reach` stands for no tenant, and reaches
/// everybody.
pub fn counts(store: &Store, reach: &[&str], first: i32, last: i32) -> Result<Vec<HourlyCounts>> {
    store.list(bind!(COUNTS, reach, first, last), hourly_counts)
}
