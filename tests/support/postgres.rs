//! A schema of its own for each test, in the cluster that `TEST_DATABASE_URL` names, or a database
//! of its own where one that is ready is copied. Without a cluster a test fails.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gatepost::keys::random;
use gatepost::protocol::words::instant::{Day, Instant};
use gatepost::protocol::words::secret::SecretText;
use gatepost::store::partitions::{self, Horizons};
use gatepost::store::{DatabaseSettings, Store};
use gatepost::tool::statements::{installation_changes, schema};
use postgres::{Client, NoTls};

use super::template::{self, Template};
use super::waiting::{SOON, await_that};

pub const ISSUER: &str = "https://id.example";
pub const INSTALLATION_ID: [u8; 16] = [7; 16];

/// Lifetimes as they are by default.
pub const HORIZONS: Horizons = Horizons {
    grants: Duration::from_secs(30 * 86_400),
    sessions: Duration::from_secs(36_000 + 3_600),
    revoked_tokens: Duration::from_secs(3_600),
    used_assertions: Duration::from_secs(3_600),
    audit_events: Duration::from_secs(400 * 86_400),
};

/// One schema; dropped with everything in it.
pub struct TestDatabase {
    pub schema: String,
    /// The URL of the schema's database, with the schema as search path.
    pub url: String,
    /// The URL of the schema's database.
    around: String,
    /// There is nothing else in that database, and it has the schema's name.
    is_whole: bool,
    /// For the statements of tests: one takes Postgres a fifth of what a connection takes.
    kept: Kept,
}

/// A connection that is kept for the next who asks. Of several at once each has its own.
struct Kept(Mutex<Option<Client>>);

impl Kept {
    const fn none() -> Kept {
        Kept(Mutex::new(None))
    }

    /// Asks over the one that is kept, or over a new one where it is gone or in use.
    fn ask<T>(
        &self,
        url: &str,
        ask: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        let place = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = place().take();
        let lives = kept
            .as_mut()
            .is_some_and(|kept| kept.is_valid(SOON).is_ok());
        let mut client = match kept {
            Some(kept) if lives => kept,
            _ => Client::connect(url, NoTls)?,
        };
        let answer = ask(&mut client)?;
        *place() = Some(client);
        Ok(answer)
    }
}

impl TestDatabase {
    /// An empty schema.
    pub fn empty() -> TestDatabase {
        TestDatabase::empty_in(cluster())
    }

    /// An empty schema in the database of that URL.
    pub fn empty_in(around: String) -> TestDatabase {
        let schema = new_name();
        connect(&around)
            .batch_execute(&format!("CREATE SCHEMA {schema}"))
            .unwrap();
        let url = with_options(&around, &schema, "");
        TestDatabase {
            schema,
            url,
            around,
            is_whole: false,
            kept: Kept::none(),
        }
    }

    /// An empty schema in a database of its own, where ICU makes small letters of capitals.
    pub fn empty_under_icu() -> TestDatabase {
        TestDatabase::empty_created("ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'und'")
    }

    /// An empty schema in a database of its own that is created so.
    pub fn empty_created(how: &str) -> TestDatabase {
        let name = new_name();
        run_in_cluster(&format!("CREATE DATABASE {name} TEMPLATE template0 {how}")).unwrap();
        let around = in_database(&name);
        connect(&around)
            .batch_execute(&format!("CREATE SCHEMA {name}"))
            .unwrap();
        TestDatabase {
            url: with_options(&around, &name, ""),
            schema: name,
            around,
            is_whole: true,
            kept: Kept::none(),
        }
    }

    /// A database as `gatepost migrate` leaves it for that issuer.
    pub fn ready(issuer: &str) -> TestDatabase {
        TestDatabase::copied(|name| template::migrated().copy(name, issuer))
    }

    /// The same with the registration of that template.
    pub fn registered(template: &Template, issuer: &str) -> TestDatabase {
        TestDatabase::copied(|name| template.copy(name, issuer))
    }

    fn copied(copy: impl FnOnce(&str) -> Client) -> TestDatabase {
        let schema = template::copy_name();
        let kept = Kept(Mutex::new(Some(copy(&schema))));
        let around = in_database(&schema);
        TestDatabase {
            url: with_options(&around, &schema, ""),
            schema,
            around,
            is_whole: true,
            kept,
        }
    }

    /// An empty schema whose clock [`TestDatabase::travel`] sets forward, for everything made in it
    /// later.
    pub fn with_a_clock_of_its_own() -> TestDatabase {
        let mut database = TestDatabase::empty();
        // Functions of a schema named before pg_catalog are found first.
        database.url = with_options(
            &database.around,
            &format!("{},pg_catalog", database.schema),
            "",
        );
        database.run(
            "CREATE TABLE travelled (seconds int NOT NULL); INSERT INTO travelled VALUES (0);
             CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
             'SELECT pg_catalog.clock_timestamp() + seconds * interval ''1 second'' FROM travelled'",
        );
        database
    }

    /// Sets the clock of its own forward.
    pub fn travel(&self, seconds: u32) {
        self.run(&format!(
            "UPDATE travelled SET seconds = seconds + {seconds}"
        ));
    }

    /// Migrated, with its installation and partitions, and without keys.
    pub fn migrated() -> TestDatabase {
        TestDatabase::copied(template::copy_bare)
    }

    /// A plain connection into the schema.
    pub fn client(&self) -> Client {
        connect(&self.url)
    }

    /// The store, as a server would open it.
    pub fn store(&self) -> Store {
        Store::open(&settings(&self.url)).unwrap()
    }

    /// The URL with further server settings: `-c name=value`.
    pub fn url_with(&self, options: &str) -> String {
        with_options(&self.around, &self.schema, options)
    }

    /// The same, through another address.
    pub fn url_through(&self, host: &str, port: u16, options: &str) -> String {
        let config: postgres::Config = self.around.parse().unwrap();
        let user = config.get_user().unwrap();
        let password = config
            .get_password()
            .map(|password| format!(":{}", String::from_utf8_lossy(password)));
        let database = config.get_dbname().unwrap_or("postgres");
        let url = format!(
            "postgres://{user}{}@{host}:{port}/{database}",
            password.unwrap_or_default()
        );
        with_options(&url, &self.schema, options)
    }

    /// The database's clock.
    pub fn now(&self) -> Instant {
        let micros = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
        Instant::from_micros(self.value(micros, &[]))
    }

    pub fn today(&self) -> Day {
        self.now().day()
    }

    /// Rows in a table.
    pub fn count(&self, table: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {table}"), &[])
    }

    /// The statements that wait for that backend, or for one that waits for it.
    pub fn waiting_behind(&self, backend: i32) -> Vec<String> {
        let sql = "WITH RECURSIVE behind AS (
                       SELECT $1::int4 AS pid
                       UNION
                       SELECT a.pid FROM pg_stat_activity a
                       JOIN behind b ON b.pid = ANY (pg_blocking_pids(a.pid)))
                   SELECT a.query FROM behind JOIN pg_stat_activity a USING (pid) WHERE pid <> $1";
        let rows = self.ask(|client| client.query(sql, &[&backend]));
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Acts while somebody else changes something, who is done once the act waits for them.
    pub fn meanwhile<T: Send>(&self, change: &str, act: impl FnOnce() -> T + Send) -> T {
        let mut other = self.client();
        let backend = "SELECT pg_backend_pid()";
        let backend: i32 = other.query_one(backend, &[]).unwrap().get(0);
        let mut changing = other.transaction().unwrap();
        changing.batch_execute(change).unwrap();
        thread::scope(|scope| {
            let acting = scope.spawn(act);
            await_that("somebody waits", SOON, || {
                !self.waiting_behind(backend).is_empty()
            });
            changing.commit().unwrap();
            acting.join().unwrap()
        })
    }

    /// Runs a statement: what an operator, or time, does to the database.
    pub fn run(&self, sql: &str) {
        self.ask(|client| client.batch_execute(sql));
    }

    /// Asks over the connection that is kept for that. What it sets stays set, so it sets nothing.
    pub fn ask<T>(&self, ask: impl FnOnce(&mut Client) -> Result<T, postgres::Error>) -> T {
        self.kept.ask(&self.url, ask).unwrap()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let schema = &self.schema;
        if self.is_whole {
            self.kept = Kept::none();
            let drop = format!("DROP DATABASE IF EXISTS {schema} WITH (FORCE)");
            let _gone = run_in_cluster(&drop);
        } else if let Ok(mut client) = Client::connect(&self.around, NoTls) {
            let gone = client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
            drop(gone);
        }
    }
}

/// Makes what [`TestDatabase::migrated`] has.
pub fn migrate(client: &mut Client) {
    schema::migrate(client).unwrap();
    installation_changes::ensure(client, INSTALLATION_ID, ISSUER).unwrap();
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
    let now = Instant::from_micros(client.query_one(now, &[]).unwrap().get(0));
    partitions::make_missing(client, &HORIZONS, now.day()).unwrap();
}

/// Settings of a small server.
pub fn settings(url: &str) -> DatabaseSettings {
    DatabaseSettings {
        url: SecretText::new(url),
        connections: 8,
        workers: 20,
        cancel_after: Duration::from_secs(3),
        stuck_after: Duration::from_secs(8),
        process: String::from("test"),
        audit_days: 400,
    }
}

/// The cluster's own URL.
pub fn cluster() -> String {
    std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL is not set: run make test, or tests/with-postgres cargo test")
    })
}

/// Runs a statement in the cluster's own database, such as makes and drops databases.
pub fn run_in_cluster(sql: &str) -> Result<(), postgres::Error> {
    static KEPT: Kept = Kept::none();
    KEPT.ask(&cluster(), |client| client.batch_execute(sql))
}

/// The URL of another database of the cluster.
pub fn in_database(name: &str) -> String {
    let cluster = cluster();
    let (before, options) = cluster.split_once('?').unwrap_or((&cluster, ""));
    let (server, _) = before.rsplit_once('/').unwrap();
    if options.is_empty() {
        format!("{server}/{name}")
    } else {
        format!("{server}/{name}?{options}")
    }
}

fn new_name() -> String {
    let random: String = random::bytes::<8>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("test_{random}")
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

fn with_options(url: &str, schema: &str, options: &str) -> String {
    let options = format!("-c search_path={schema} {options}")
        .trim_end()
        .replace(' ', "%20")
        .replace('=', "%3D");
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}application_name={schema}&options={options}")
}
