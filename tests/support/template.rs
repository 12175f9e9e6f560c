//! Databases that were made once, and are copied for each test: one that was migrated, one for each
//! registration that tests begin with, and one for tests of the store. A copy takes a tenth of the
//! time that the commands take.
//!
//! The next test binary of the same build finds them again, until the day is over. So do copies that
//! a process left behind: it ends without dropping those that its tests shared.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::keys::master::MasterSecret;
use gatepost::keys::random;
use gatepost::keys::sealing::Sealer;
use gatepost::protocol::words::secret::SecretBytes;
use gatepost::registry::Sealers;
use postgres::{Client, NoTls};
use serde_json::Value;

use super::gatepost::{CHEAP_HASHING, MASTER_SECRET, document, write_private};
use super::postgres::{self as databases, cluster, in_database, run_in_cluster};

const ISSUER: &str = "http://localhost:1";

/// How the name of each template begins.
const MARK: &str = "gatepost_template_";

/// How the name of each copy begins.
const COPY: &str = "gatepost_copy_";

/// The schema in the template.
pub const SCHEMA: &str = "template";

pub struct Template {
    name: String,
    /// How Postgres copies it.
    strategy: &'static str,
    sealed: Vec<Sealed>,
}

/// What each copy has under a seal of its own.
struct Sealed {
    place: &'static SealedColumn,
    /// Where its row lies.
    row: String,
    plain: SecretBytes,
}

struct SealedColumn {
    table: &'static str,
    name: &'static str,
    /// Which rows have something sealed there.
    rows: &'static str,
    sealer: fn(&Sealers) -> &Sealer,
}

/// All that a registration may have under a seal.
static SEALED_COLUMNS: [SealedColumn; 5] = [
    SealedColumn {
        table: "signing_keys",
        name: "wrapped_private",
        rows: "true",
        sealer: |sealers| &sealers.signing_keys,
    },
    SealedColumn {
        table: "client_secrets",
        name: "sealed_digest",
        rows: "true",
        sealer: |sealers| &sealers.client_secrets,
    },
    SealedColumn {
        table: "resource_secrets",
        name: "sealed_digest",
        rows: "true",
        sealer: |sealers| &sealers.client_secrets,
    },
    SealedColumn {
        table: "catalogue_entries",
        name: "sealed_secret",
        rows: "sealed_secret IS NOT NULL",
        sealer: |sealers| &sealers.client_secrets,
    },
    SealedColumn {
        table: "authenticators",
        name: "secret",
        rows: "kind = 'totp'",
        sealer: |sealers| &sealers.authenticators,
    },
];

/// A name that no copy has had.
pub fn copy_name() -> String {
    let drawn = u64::from_ne_bytes(random::bytes());
    format!("{}{drawn:016x}", of_today(COPY))
}

/// As [`databases::migrate`] leaves it: no issuer of its own, no keys. A connection into the copy.
pub fn copy_bare(name: &str) -> Client {
    static BARE: OnceLock<Template> = OnceLock::new();
    let bare = BARE.get_or_init(|| {
        Template::find(&format!("{}_bare", migrated().name), |making| {
            create(making);
            let mut client = connect(&in_database(making));
            let path = format!("SET search_path = {SCHEMA}");
            client.batch_execute(&path).unwrap();
            databases::migrate(&mut client);
        })
    });
    bare.copy_files(name)
}

/// As `gatepost migrate` leaves it. The signing keys of all copies are the same.
pub fn migrated() -> &'static Template {
    static MIGRATED: OnceLock<Template> = OnceLock::new();
    MIGRATED.get_or_init(|| {
        let mut client = connect(&cluster());
        let today = of_today(MARK);
        let binary = std::fs::metadata(env!("CARGO_BIN_EXE_gatepost")).unwrap();
        let (inode, seconds, nanoseconds) = (binary.ino(), binary.mtime(), binary.mtime_nsec());
        let name = format!("{today}{inode}_{seconds}_{nanoseconds}");
        Template::find(&name, |making| {
            drop_those_of_other_days(&mut client);
            create(making);
            run_in(making, &["migrate"], "", &[]);
        })
    })
}

/// As `gatepost apply` leaves the migrated one under these settings, given the document. The `sub`
/// and the password hash of each of its people are the same in all copies. None for the first of
/// this process who asks, unless it is the usual document: many others come once.
pub fn registered(of: &Value, settings: &[(&str, &str)]) -> Option<&'static Template> {
    static ASKED_FOR: Mutex<BTreeMap<String, &'static OnceLock<Template>>> =
        Mutex::new(BTreeMap::new());
    let key = format!("{settings:?} {of}");
    let mut asked_for = ASKED_FOR.lock().unwrap();
    let is_worth_it = asked_for.contains_key(&key) || *of == document();
    let new = || Box::leak(Box::<OnceLock<Template>>::default()) as &_;
    let template = *asked_for.entry(key.clone()).or_insert_with(new);
    drop(asked_for);
    is_worth_it.then(|| template.get_or_init(|| register(&key, &of.to_string(), settings)))
}

fn register(key: &str, document: &str, settings: &[(&str, &str)]) -> Template {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    // Postgres cuts a name off behind 63 bytes.
    let name = format!("{}_{:x}", migrated().name, hasher.finish() >> 32);
    Template::find(&name, |making| {
        let rename = format!("ALTER SCHEMA {making} RENAME TO {SCHEMA}");
        let mut client = migrated().copy(making, ISSUER);
        client.batch_execute(&rename).unwrap();
        drop(client);
        run_in(making, &["apply", "-"], document, settings);
    })
}

/// A database with an empty schema.
fn create(name: &str) {
    run_in_cluster(&format!("CREATE DATABASE {name}")).unwrap();
    connect(&in_database(name))
        .batch_execute(&format!("CREATE SCHEMA {SCHEMA}"))
        .unwrap();
}

/// How the names of what is made today begin.
fn of_today(mark: &str) -> String {
    let since_1970 = UNIX_EPOCH.elapsed().unwrap().as_secs();
    format!("{mark}{}_", since_1970 / 86_400)
}

fn drop_those_of_other_days(client: &mut Client) {
    let others = "SELECT datname FROM pg_database
        WHERE starts_with(datname, $1) AND NOT starts_with(datname, $2)
        AND datname NOT IN (SELECT datname FROM pg_stat_activity WHERE datname IS NOT NULL)";
    for mark in [MARK, COPY] {
        for row in client.query(others, &[&mark, &of_today(mark)]).unwrap() {
            let old: String = row.get(0);
            let drop = format!("DROP DATABASE IF EXISTS {old} WITH (FORCE)");
            client.batch_execute(&drop).unwrap();
        }
    }
}

/// Runs a command that must succeed on the database of a template.
fn run_in(database: &str, arguments: &[&str], input: &str, settings: &[(&str, &str)]) {
    let url = in_database(database);
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}options=-c%20search_path%3D{SCHEMA}");
    // Another process may make one of that name in another cluster.
    let file = format!("{database}-{}-secret", std::process::id());
    let secret_file = std::env::temp_dir().join(file);
    write_private(&secret_file, &STANDARD.encode(MASTER_SECRET));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command
        .args(arguments)
        .env_clear()
        .env("GATEPOST_DATABASE_URL", url)
        .env("GATEPOST_BASE_URL", ISSUER)
        .env("GATEPOST_SECRET_FILE", &secret_file)
        .envs(CHEAP_HASHING)
        .envs(settings.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut given = child.stdin.take().unwrap();
    given.write_all(input.as_bytes()).unwrap();
    drop(given);
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&secret_file).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "gatepost {arguments:?}: {said}");
}

impl Template {
    /// Only one of the processes that ask at once makes it: under another name, so that one of that
    /// name is whole.
    fn find(name: &str, make: impl FnOnce(&str)) -> Template {
        let mut client = connect(&cluster());
        let lock = "SELECT pg_advisory_lock(hashtext('gatepost_template'))";
        client.batch_execute(lock).unwrap();
        let found = client
            .query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name])
            .unwrap();
        if found.is_none() {
            let making = "gatepost_template_making";
            // Of one that failed.
            run_in_cluster(&format!("DROP DATABASE IF EXISTS {making}")).unwrap();
            make(making);
            let rename = format!("ALTER DATABASE {making} RENAME TO {name}");
            client.batch_execute(&rename).unwrap();
        }
        Template::read(name, strategy(&mut client))
    }

    fn read(name: &str, strategy: &'static str) -> Template {
        let mut client = connect(&in_database(name));
        client
            .batch_execute(&format!("SET search_path = {SCHEMA}"))
            .unwrap();
        let id: Vec<u8> = client
            .query_one("SELECT id FROM installation", &[])
            .unwrap()
            .get(0);
        let sealers = sealers(&id.try_into().unwrap(), ISSUER);
        let mut sealed = Vec::new();
        for place in &SEALED_COLUMNS {
            let SealedColumn {
                table,
                name,
                rows,
                sealer,
            } = place;
            let select = format!("SELECT ctid::text, {name} FROM {table} WHERE {rows}");
            for row in client.query(&select, &[]).unwrap() {
                let plain = sealer(&sealers).open(row.get(1)).unwrap();
                sealed.push(Sealed {
                    place,
                    row: row.get(0),
                    plain: SecretBytes::new(plain),
                });
            }
        }
        Template {
            name: String::from(name),
            strategy,
            sealed,
        }
    }

    /// Copies all as it is; a connection into the copy.
    fn copy_files(&self, name: &str) -> Client {
        let template = &self.name;
        let create = format!(
            "CREATE DATABASE {name} TEMPLATE {template} {}",
            self.strategy
        );
        run_in_cluster(&create).unwrap();
        let mut client = connect(&in_database(name));
        client
            .batch_execute(&format!(
                "ALTER SCHEMA {SCHEMA} RENAME TO {name}; SET search_path = {name}; \
                 SET application_name = {name}"
            ))
            .unwrap();
        client
    }

    /// Makes the database `name` of it, as the commands would have made it for that issuer. A
    /// connection into it.
    pub fn copy(&self, name: &str, issuer: &str) -> Client {
        let mut client = self.copy_files(name);
        let installation_id: [u8; 16] = random::bytes();
        let sealers = sealers(&installation_id, issuer);
        let mut transaction = client.transaction().unwrap();
        transaction
            .execute(
                "UPDATE installation SET id = $1, issuer = $2, epoch = new_epoch()",
                &[&&installation_id[..], &issuer],
            )
            .unwrap();
        for Sealed { place, row, plain } in &self.sealed {
            let SealedColumn {
                table,
                name,
                sealer,
                ..
            } = place;
            let update = format!("UPDATE {table} SET {name} = $2 WHERE ctid = $1::text::tid");
            let sealed = sealer(&sealers).seal(plain.expose());
            let updated = transaction.execute(&update, &[row, &sealed]).unwrap();
            assert_eq!(updated, 1);
        }
        transaction.commit().unwrap();
        client
    }
}

/// From Postgres 15 on: copying its files takes a third of what copying it page by page through the
/// log takes, which Postgres does by itself.
fn strategy(client: &mut Client) -> &'static str {
    let asked = "SELECT current_setting('server_version_num')::int4 >= 150000";
    let knows_strategies: bool = client.query_one(asked, &[]).unwrap().get(0);
    if knows_strategies {
        "STRATEGY file_copy"
    } else {
        ""
    }
}

fn sealers(installation_id: &[u8; 16], issuer: &str) -> Sealers {
    let master = MasterSecret::parse(&STANDARD.encode(MASTER_SECRET)).unwrap();
    Sealers::new(&master.derive(installation_id, issuer))
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
