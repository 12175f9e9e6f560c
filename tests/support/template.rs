//! Databases that were made once, and are copied for each test: one that was migrated, one that has
//! the usual registration besides, and one for tests of the store. A copy takes a tenth of the time
//! that the commands take.
//!
//! The next test binary of the same build finds them again, until the day is over. So do copies that
//! a process left behind: it ends without dropping those that its tests shared.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::keys::master::MasterSecret;
use gatepost::keys::random;
use gatepost::keys::sealing::Sealer;
use gatepost::protocol::words::secret::SecretBytes;
use gatepost::registry::Sealers;
use postgres::{Client, NoTls};

use super::gatepost::{CHEAP_HASHING, MASTER_SECRET, document, write_private};
use super::postgres::{self as databases, cluster, in_database};

const ISSUER: &str = "http://localhost:1";

/// How the name of each template begins.
const MARK: &str = "gatepost_template_";

/// How the name of each copy begins.
const COPY: &str = "gatepost_copy_";

/// The schema in the template.
pub const SCHEMA: &str = "template";

struct Template {
    name: String,
    /// How Postgres copies it.
    strategy: &'static str,
    keys: Vec<Sealed>,
    client_secrets: Vec<Sealed>,
}

/// What each copy has under a seal of its own.
struct Sealed {
    /// Finds its row again.
    row: String,
    plain: SecretBytes,
}

/// A name that no copy has had.
pub fn copy_name() -> String {
    let drawn = u64::from_ne_bytes(random::bytes());
    format!("{}{drawn:016x}", of_today(COPY))
}

/// Makes the database `name`, as `gatepost migrate` would have made it for that issuer. Its signing
/// keys are those of all other copies.
pub fn copy_migrated(name: &str, issuer: &str) {
    migrated().copy(name, issuer);
}

/// The same as `gatepost apply` would have left it, given [`document`]. Its people's `sub` and
/// password hashes are those of all other such copies.
pub fn copy_registered(name: &str, issuer: &str) {
    registered().copy(name, issuer);
}

/// The same as [`databases::migrate`] leaves it: no other issuer, no keys.
pub fn copy_bare(name: &str) {
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
    drop(bare.copy_files(name));
}

fn migrated() -> &'static Template {
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
            run_in(making, &["migrate"], "");
        })
    })
}

/// A database with an empty schema.
fn create(name: &str) {
    connect(&cluster())
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .unwrap();
    connect(&in_database(name))
        .batch_execute(&format!("CREATE SCHEMA {SCHEMA}"))
        .unwrap();
}

fn registered() -> &'static Template {
    static REGISTERED: OnceLock<Template> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        let text = document().to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        // Postgres cuts a name off behind 63 bytes.
        let name = format!("{}_{:x}", migrated().name, hasher.finish() >> 32);
        Template::find(&name, |making| {
            migrated().copy(making, ISSUER);
            let rename = format!("ALTER SCHEMA {making} RENAME TO {SCHEMA}");
            connect(&in_database(making))
                .batch_execute(&rename)
                .unwrap();
            run_in(making, &["apply", "-"], &text);
        })
    })
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
fn run_in(database: &str, arguments: &[&str], input: &str) {
    let url = in_database(database);
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}options=-c%20search_path%3D{SCHEMA}");
    let secret_file = std::env::temp_dir().join(format!("{database}-secret"));
    write_private(&secret_file, &STANDARD.encode(MASTER_SECRET));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command
        .args(arguments)
        .env_clear()
        .env("GATEPOST_DATABASE_URL", url)
        .env("GATEPOST_BASE_URL", ISSUER)
        .env("GATEPOST_SECRET_FILE", &secret_file)
        .envs(CHEAP_HASHING)
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
        let keys = "SELECT kid, wrapped_private FROM signing_keys";
        let client_secrets = "SELECT encode(id, 'hex'), sealed_digest FROM client_secrets";
        Template {
            name: String::from(name),
            strategy,
            keys: opened(&mut client, keys, &sealers.signing_keys),
            client_secrets: opened(&mut client, client_secrets, &sealers.client_secrets),
        }
    }

    /// Copies all as it is; a connection into the copy.
    fn copy_files(&self, name: &str) -> Client {
        let template = &self.name;
        let create = format!(
            "CREATE DATABASE {name} TEMPLATE {template} {}",
            self.strategy
        );
        connect(&cluster()).batch_execute(&create).unwrap();
        let mut client = connect(&in_database(name));
        client
            .batch_execute(&format!(
                "ALTER SCHEMA {SCHEMA} RENAME TO {name}; SET search_path = {name}"
            ))
            .unwrap();
        client
    }

    fn copy(&self, name: &str, issuer: &str) {
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
        for (all, sealer, update) in [
            (
                &self.keys,
                &sealers.signing_keys,
                "UPDATE signing_keys SET wrapped_private = $2 WHERE kid = $1",
            ),
            (
                &self.client_secrets,
                &sealers.client_secrets,
                "UPDATE client_secrets SET sealed_digest = $2 WHERE id = decode($1, 'hex')",
            ),
        ] {
            for Sealed { row, plain } in all {
                let sealed = sealer.seal(plain.expose());
                let updated = transaction.execute(update, &[row, &sealed]).unwrap();
                assert_eq!(updated, 1);
            }
        }
        transaction.commit().unwrap();
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

fn opened(client: &mut Client, select: &str, sealer: &Sealer) -> Vec<Sealed> {
    let rows = client.query(select, &[]).unwrap();
    rows.iter()
        .map(|row| Sealed {
            row: row.get(0),
            plain: SecretBytes::new(sealer.open(row.get(1)).unwrap()),
        })
        .collect()
}

fn sealers(installation_id: &[u8; 16], issuer: &str) -> Sealers {
    let master = MasterSecret::parse(&STANDARD.encode(MASTER_SECRET)).unwrap();
    Sealers::new(&master.derive(installation_id, issuer))
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
