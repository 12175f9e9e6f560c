//! A database that was migrated once, and is copied for each test: a copy takes a fifth of the time
//! that `gatepost migrate` takes.
//!
//! The next test binary of the same build finds it again, until the day is over.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::keys::master::MasterSecret;
use gatepost::keys::random;
use gatepost::protocol::words::secret::SecretBytes;
use gatepost::registry::Sealers;
use postgres::{Client, NoTls};

use super::gatepost::{MASTER_SECRET, write_private};
use super::postgres::{cluster, in_database};

const ISSUER: &str = "http://localhost:1";

/// The schema in the template.
pub const SCHEMA: &str = "template";

struct Template {
    name: String,
    installation_id: [u8; 16],
    /// Each signing key's `kid`, and its private part.
    keys: Vec<(String, SecretBytes)>,
}

/// Makes the database `name` from the template, as `gatepost migrate` would have made it for that
/// issuer. Its signing keys are those of all other copies.
pub fn copy(name: &str, issuer: &str) {
    static TEMPLATE: OnceLock<Template> = OnceLock::new();
    let template = TEMPLATE.get_or_init(Template::find);
    let statement = format!("CREATE DATABASE {name} TEMPLATE {}", template.name);
    connect(&cluster()).batch_execute(&statement).unwrap();
    let mut client = connect(&in_database(name));
    client
        .batch_execute(&format!(
            "ALTER SCHEMA {SCHEMA} RENAME TO {name}; SET search_path = {name}"
        ))
        .unwrap();
    let installation_id: [u8; 16] = random::bytes();
    let sealers = sealers(&installation_id, issuer);
    let mut transaction = client.transaction().unwrap();
    transaction
        .execute(
            "UPDATE installation SET id = $1, issuer = $2, epoch = new_epoch()",
            &[&&installation_id[..], &issuer],
        )
        .unwrap();
    for (kid, private) in &template.keys {
        let wrapped = sealers.signing_keys.seal(private.expose());
        let rewrapped = transaction
            .execute(
                "UPDATE signing_keys SET wrapped_private = $2 WHERE kid = $1",
                &[kid, &wrapped],
            )
            .unwrap();
        assert_eq!(rewrapped, 1);
    }
    transaction.commit().unwrap();
}

impl Template {
    /// Only one of the processes that ask at once makes it.
    fn find() -> Template {
        let mut client = connect(&cluster());
        let lock = "SELECT pg_advisory_lock(hashtext('gatepost_template'))";
        client.batch_execute(lock).unwrap();
        let name = Template::name(&mut client);
        let found = client
            .query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name])
            .unwrap();
        if found.is_none() {
            Template::make(&mut client, &name);
        }
        Template::read(name)
    }

    /// The template of this build and this day.
    fn name(client: &mut Client) -> String {
        let binary = std::fs::metadata(env!("CARGO_BIN_EXE_gatepost")).unwrap();
        let today = "SELECT extract(epoch FROM clock_timestamp())::int8 / 86400";
        let day: i64 = client.query_one(today, &[]).unwrap().get(0);
        format!(
            "gatepost_template_{day}_{}_{}_{}",
            binary.ino(),
            binary.mtime(),
            binary.mtime_nsec()
        )
    }

    fn make(client: &mut Client, name: &str) {
        let other_days = "SELECT datname FROM pg_database WHERE starts_with(datname, 'gatepost_template_') AND NOT starts_with(datname, $1)";
        let today = name.rsplitn(4, '_').last().unwrap();
        let making = "gatepost_template_making";
        for row in client.query(other_days, &[&today]).unwrap() {
            let old: String = row.get(0);
            let drop = format!("DROP DATABASE IF EXISTS {old} WITH (FORCE)");
            client.batch_execute(&drop).unwrap();
        }
        let create = format!("CREATE DATABASE {making}");
        client.batch_execute(&create).unwrap();
        let url = in_database(making);
        let schema = format!("CREATE SCHEMA {SCHEMA}");
        connect(&url).batch_execute(&schema).unwrap();
        let separator = if url.contains('?') { '&' } else { '?' };
        let secret_file = std::env::temp_dir().join(format!("{name}-secret"));
        write_private(&secret_file, &STANDARD.encode(MASTER_SECRET));
        let migrated = Command::new(env!("CARGO_BIN_EXE_gatepost"))
            .arg("migrate")
            .env_clear()
            .env(
                "GATEPOST_DATABASE_URL",
                format!("{url}{separator}options=-c%20search_path%3D{SCHEMA}"),
            )
            .env("GATEPOST_BASE_URL", ISSUER)
            .env("GATEPOST_SECRET_FILE", &secret_file)
            .output()
            .unwrap();
        std::fs::remove_file(&secret_file).unwrap();
        let said = String::from_utf8_lossy(&migrated.stderr);
        assert!(migrated.status.success(), "gatepost migrate: {said}");
        let rename = format!("ALTER DATABASE {making} RENAME TO {name}");
        client.batch_execute(&rename).unwrap();
    }

    fn read(name: String) -> Template {
        let mut client = connect(&in_database(&name));
        client
            .batch_execute(&format!("SET search_path = {SCHEMA}"))
            .unwrap();
        let id: Vec<u8> = client
            .query_one("SELECT id FROM installation", &[])
            .unwrap()
            .get(0);
        let installation_id = id.try_into().unwrap();
        let sealer = sealers(&installation_id, ISSUER).signing_keys;
        let rows = client
            .query("SELECT kid, wrapped_private FROM signing_keys", &[])
            .unwrap();
        let keys = rows
            .iter()
            .map(|row| {
                let private = sealer.open(row.get(1)).unwrap();
                (row.get(0), SecretBytes::new(private))
            })
            .collect();
        Template {
            name,
            installation_id,
            keys,
        }
    }
}

fn sealers(installation_id: &[u8; 16], issuer: &str) -> Sealers {
    let master = MasterSecret::parse(&STANDARD.encode(MASTER_SECRET)).unwrap();
    Sealers::new(&master.derive(installation_id, issuer))
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
