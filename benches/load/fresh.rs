//! What a partition costs that fills from empty: code flows over tables that ANALYZE saw at some fifty rows and nobody
//! looked at since, as Gatepost serves them and with the plans that Postgres would make by itself. A generic plan stays
//! until the next ANALYZE, and at fifty rows the cheapest one reads the partition from end to end.

use std::time::Duration;

use postgres::{Client, NoTls};

use crate::drive::{Load, drive};
use crate::flows::{Flow, Walker};
use crate::gatepost::Gatepost;
use crate::http::Connections;
use crate::provider::Provider;

/// Flows before ANALYZE.
const ROWS: usize = 57;
/// Measured one after the other.
const ROUNDS: usize = 5;
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

/// Measures both, and prints the table.
pub fn run(cluster: &str, connections: usize, seconds: u64) -> Result<(), String> {
    let rounds: Vec<String> = (1..=ROUNDS).map(|round| format!("{round}. flows/s")).collect();
    println!("| plans | {} | rows read by scans |\n|---|{}--:|", rounds.join(" | "), "--:|".repeat(ROUNDS));
    // What the URL says goes before what Gatepost sets.
    for (name, options) in [("as served", ""), ("as Postgres makes them", "?options=-c%20enable_seqscan%3Don")] {
        let own = Gatepost::start(cluster, options)?;
        let url = own.settings.database_url.clone().ok_or("no database to look into")?;
        let mut client = Client::connect(&url, NoTls).map_err(|error| error.to_string())?;
        client.batch_execute(NO_AUTOVACUUM).map_err(|error| error.to_string())?;
        let provider = Provider::discover(own.settings.clone())?;
        let mut walker = Walker::prepare(&provider, FLOW, Connections::KeptAlive, 0)?;
        (0..ROWS).try_for_each(|_| walker.walk(FLOW))?;
        client.batch_execute("ANALYZE").map_err(|error| error.to_string())?;
        let load = Load {
            connections,
            kind: Connections::KeptAlive,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(seconds),
        };
        let nothing = || ();
        let round =
            |_| drive(&provider, FLOW, load, nothing, nothing).map(|(outcome, ..)| format!("{:.0}", outcome.rate()));
        let rates = (0..ROUNDS).map(round).collect::<Result<Vec<String>, String>>()?;
        // The last counts reach the statistics when their connections end.
        drop(own);
        let scanned: i64 = client.query_one(SCANNED, &[]).map_err(|error| error.to_string())?.get(0);
        println!("| {name} | {} | {scanned} |", rates.join(" | "));
    }
    Ok(())
}
