//! What a partition costs that fills from empty: code flows over tables that ANALYZE saw at some
//! fifty rows and nobody looked at since, as Gatepost serves them and with the plans that Postgres
//! would make by itself. A generic plan stays until the next ANALYZE, and at fifty rows the
//! cheapest one reads the partition from end to end.
//!
//! Each measurement has the CPU of a flow beside its rate. The server touches no table: where its
//! own CPU rises with that of Postgres, it is the machine that became slower, not the tables.

use std::time::Duration;

use postgres::{Client, NoTls};

use crate::Target;
use crate::drive::{Load, Outcome};
use crate::flows::{Flow, Walker};
use crate::gatepost::Gatepost;
use crate::http::Connections;
use crate::usage::Usage;

/// Flows before ANALYZE.
const ROWS: usize = 57;
const FLOW: Flow = Flow::Code("code");

/// Nothing looks at the partitions again.
const NO_AUTOVACUUM: &str = "
DO $$ DECLARE partition text; BEGIN
    FOR partition IN SELECT c.oid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                     WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', partition);
    END LOOP;
END $$";

const SCANNED: &str = "
SELECT coalesce(sum(seq_tup_read), 0)::int8 FROM pg_stat_user_tables WHERE relid IN (SELECT inhrelid FROM pg_inherits)";

/// Measures the first and the last tenth of those seconds with both, and prints the table.
pub fn run(cluster: &str, connections: usize, seconds: u64) -> Result<(), String> {
    println!(
        "| plans | first flows/s | CPU ms, server + Postgres | p99 ms | flows between | last flows/s | \
         CPU ms, server + Postgres | p99 ms | rows read by scans |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    // What the URL says goes before what Gatepost sets.
    for (name, options) in [
        ("as served", ""),
        (
            "as Postgres makes them",
            "?options=-c%20enable_seqscan%3Don",
        ),
    ] {
        let own = Gatepost::start(cluster, options)?;
        let url = own
            .settings
            .database_url
            .clone()
            .ok_or("no database to look into")?;
        let mut client = Client::connect(&url, NoTls).map_err(|error| error.to_string())?;
        client
            .batch_execute(NO_AUTOVACUUM)
            .map_err(|error| error.to_string())?;
        let target = Target::new(own.settings.clone())?;
        let mut walker = Walker::prepare(&target.provider, FLOW, Connections::KeptAlive, 0)?;
        (0..ROWS).try_for_each(|_| walker.walk(FLOW))?;
        client
            .batch_execute("ANALYZE")
            .map_err(|error| error.to_string())?;
        // Connections begin anew each time, so each has a second before it that does not count.
        let drive = |tenths| {
            let load = Load {
                connections,
                kind: Connections::KeptAlive,
                warm_up: Duration::from_secs(1),
                duration: Duration::from_secs(seconds.max(10) * tenths / 10),
            };
            target.drive(FLOW, load)
        };
        let first = drive(1)?;
        let between = drive(8)?.0.latencies.len();
        let last = drive(1)?;
        // The last counts reach the statistics when their connections end.
        drop(own);
        let scanned: i64 = client
            .query_one(SCANNED, &[])
            .map_err(|error| error.to_string())?
            .get(0);
        println!(
            "| {name} | {} | {between} | {} | {scanned} |",
            told(&first),
            told(&last)
        );
    }
    Ok(())
}

fn told((outcome, usage): &(Outcome, Usage)) -> String {
    let flows = outcome.latencies.len() as f64;
    format!(
        "{:.0} | {:.2} + {:.2} | {:.1}",
        outcome.rate(),
        usage.server * 1_000.0 / flows,
        usage.postgres * 1_000.0 / flows,
        outcome.percentile(99)
    )
}
