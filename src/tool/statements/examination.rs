//! What `gatepost doctor` asks the database server. It reads catalogs and settings only, so it
//! works without rights to our tables.

use std::time::{Duration, Instant};

use postgres::Client;

use gatepost_registration::finding::{Finding, Verdict};
use gatepost_store::{Result, START_UP, Store, StoreError, bind};

/// `:connections` is the size of the pool. During a reload each machine has two processes.
const EXAMINE: &str = "
SELECT f.verdict, 'database: ' || f.text FROM pg_stat_archiver AS a,
    (SELECT sum(CASE name WHEN 'max_connections' THEN setting::int8
                          ELSE -setting::int8 END)::int8 AS most
     FROM pg_settings
     WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
    ) AS c,
    (SELECT :connections::int8 * 2
            * greatest(1, count(DISTINCT coalesce(client_addr::text, ''))) AS wanted
     FROM pg_stat_activity
     WHERE (usename, datname, application_name)
           = (current_user, current_database(), current_setting('application_name'))
    ) AS m,
LATERAL (VALUES
    (true, 'ok',
     format('Postgres %s answers role %s', current_setting('server_version'), current_user)),
    (current_setting('server_version_num')::int4 < 140000, 'fails', 'Postgres must be 14 or newer'),
    (current_setting('server_version_num')::int4 >= 190000, 'weak',
     'Gatepost was tried over Postgres 14 to 18, and this one is newer'),
    (current_setting('server_encoding') <> 'UTF8', 'fails',
     format('%s is in %s: create it with ENCODING ''UTF8'' TEMPLATE template0',
            current_database(), current_setting('server_encoding'))),
    (current_setting('is_superuser') = 'on', 'weak',
     format('role %s is a superuser: let it own its tables and nothing else', current_user)),
    (current_schema() IS NULL, 'fails',
     format('search_path is %s, and there is no such schema that role %s may use: make it, or mend the role or the URL',
            current_setting('search_path'), current_user)),
    (NOT has_schema_privilege(current_schema(), 'CREATE') OR EXISTS (
         SELECT FROM pg_class
         WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'p')
           AND NOT pg_has_role(relowner, 'USAGE')), 'fails',
     format(
         'role %s must own every table of schema %s and may CREATE there: partitions come and go',
         current_user, current_schema())),
    ('off' IN (current_setting('fsync'), current_setting('synchronous_commit')), 'weak',
     'fsync or synchronous_commit is off: when the server dies, a used code or refresh token may be good again'),
    (current_setting('default_transaction_isolation') <> 'read committed', 'fails',
     'transactions must be read committed: look at the role, the URL and the pooler'),
    (wanted > most, 'weak',
     format('a reload may need %s connections, and there are %s: raise max_connections',
            wanted, most)),
    (last_failed_time > coalesce(last_archived_time, '-infinity'), 'weak',
     'archiving fails: the log of Postgres says why'),
    (true, 'ok', CASE
         WHEN last_archived_time IS NOT NULL
         THEN format('its log was archived last at %s', last_archived_time)
         WHEN EXISTS (SELECT FROM pg_replication_slots WHERE active)
         THEN 'a replica or an archive follows it'
         ELSE 'nothing archives or follows it; whether pg_dump runs cannot be seen from here' END)
) AS f(is_so, verdict, text) WHERE f.is_so";

/// A commit that flushes the log and leaves no row.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'gatepost', '')";

const ROUND_TRIPS: usize = 10;

pub struct Examined {
    pub findings: Vec<Finding>,
    /// The median of some.
    pub round_trip: Duration,
}

pub fn examine(store: &Store, connections: u32) -> Result<Examined> {
    store.administer(|client| {
        let mut findings = Vec::new();
        let bound = bind!(EXAMINE, connections = i64::from(connections));
        for row in client.query(&bound.text(), bound.values)? {
            let verdict = Verdict::from_name(row.try_get(0)?).unwrap_or(Verdict::Broken);
            findings.push(Finding {
                verdict,
                text: row.try_get(1)?,
            });
        }
        let round_trip = median_round_trip(client)?;
        store.confirm()?;
        // The way there says nothing about the disk.
        let shortest = shortest_commit(client)?
            .saturating_sub(round_trip)
            .as_millis();
        let text = format!("database: a commit takes {shortest} ms");
        findings.push(if shortest < 100 {
            Finding::fine(text)
        } else {
            Finding::weak(text + ", and tokens wait")
        });
        Ok(Examined {
            findings,
            round_trip,
        })
    })
}

/// Asks nothing, as does the proof that an idle connection lives.
fn median_round_trip(client: &mut Client) -> Result<Duration> {
    let mut taken = [Duration::ZERO; ROUND_TRIPS];
    for taken in &mut taken {
        let begun = Instant::now();
        client.is_valid(START_UP)?;
        *taken = begun.elapsed();
    }
    taken.sort_unstable();
    Ok(taken[ROUND_TRIPS / 2])
}

fn shortest_commit(client: &mut Client) -> Result<Duration> {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        client.simple_query(COMMIT)?;
        shortest = shortest.min(begun.elapsed());
    }
    Ok(shortest)
}

fn no_transaction() -> StoreError {
    let text = "a pooler takes no transactions: in PgBouncer set pool_mode = session";
    StoreError::Refused(String::from(text))
}

/// Refuses a pooler that gives a connection's statements to another one of Postgres, where they
/// were not prepared. It shows only while that one is in use, so others are kept in use meanwhile.
pub fn keeps_statements(store: &Store) -> Result {
    store.administer(|client| {
        for _ in 0..3 {
            let prepared = client.prepare("SELECT 1")?;
            store.administer(|other| {
                // A pooler that shares connections by the statement hangs up here.
                let mut held = other.transaction().map_err(|_| no_transaction())?;
                // Where the pooler has no second one, this ends the wait for it.
                held.batch_execute("SET LOCAL idle_in_transaction_session_timeout = '2s'")?;
                client.query(&prepared, &[])?;
                Ok::<(), StoreError>(())
            })?;
        }
        Ok(())
    })
}
