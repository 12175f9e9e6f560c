//! All audit events, one after the other.

use postgres::IsolationLevel;

use gatepost_protocol::words::instant::Day;
use gatepost_store::audit_events::{StoredEvent, stored};
use gatepost_store::{Result, Store, bind};

const PAGE: &str = "
SELECT day, at, chain, seq, previous, hash, event, client_id, sub, sid, source, request_id,
       detail::text AS detail
FROM audit_events
WHERE (day, chain, seq) > (:day::int4, :chain::text, :seq::int8)
ORDER BY day, chain, seq LIMIT :limit::int8";

const PAGE_ROWS: usize = 5_000;

/// Passes on every row by day, chain and place, for the verification: all as of one moment, since
/// what comes meanwhile would show without what it follows.
pub fn read_through(store: &Store, mut visit: impl FnMut(StoredEvent)) -> Result {
    store.administer(|client| {
        let of_one_moment = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true);
        let mut transaction = of_one_moment.start()?;
        let limit = i64::try_from(PAGE_ROWS).unwrap_or(i64::MAX);
        let mut day = Day(i32::MIN);
        let mut chain = String::new();
        let mut seq = 0;
        loop {
            let page = bind!(PAGE, day, chain, seq, limit);
            let rows = transaction.query(&page.text(), page.values)?;
            for row in &rows {
                let event = stored(row)?;
                day = event.0.day;
                chain.clone_from(&event.0.chain);
                seq = event.0.seq;
                visit(event);
            }
            if rows.len() < PAGE_ROWS {
                return Ok(());
            }
        }
    })
}
