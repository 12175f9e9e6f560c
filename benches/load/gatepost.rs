//! A Gatepost of our own to load: the release build, over a database of its own in the cluster that
//! `TEST_DATABASE_URL` names, with default settings, and SCIM. `BENCH_GATEPOST_X` in the environment is
//! `GATEPOST_X` in its.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postgres::{Client, NoTls};
use serde_json::{Value, json};

use crate::http::{self, Connections};
use crate::provider::{ClientSettings, Settings};

const REDIRECT_URI: &str = "https://app.example/cb";
const SECRET: &str = "a-client-secret-of-some-length-0123456789";
const USERNAME: &str = "alice";
pub const PASSWORD: &str = "correct horse battery staple";
/// Who looks after people, and the key of the app that shows their codes.
pub const ADMINISTRATOR: &str = "olivia";
pub const ADMINISTRATORS_KEY: &[u8; 20] = b"Hello!\xde\xad\xbe\xefHello!\xde\xad\xbe\xef";
const ADMINISTRATORS_KEY_BASE32: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";

/// A running Gatepost; ends when dropped.
pub struct Gatepost {
    pub settings: Settings,
    /// From the start of the process to the first answer that needs the database, on a migrated
    /// database.
    pub start_to_ready: Duration,
    /// A shell that ends the server when this process is gone, however it goes.
    shell: Child,
    leash: Option<ChildStdin>,
    directory: PathBuf,
}

/// Says which process serves, and ends it when its input ends.
const SHELL: &str = "\"$0\" serve </dev/null >/dev/null & echo $!; read gone; kill $!; wait $!";

impl Gatepost {
    /// Migrates, applies what the flows need, and serves. `options` are the query of the database's
    /// URL.
    pub fn start(cluster: &str, options: &str) -> Result<Gatepost, String> {
        let port = free_port()?;
        let database_url = new_database(cluster, &format!("bench_{port}"))? + options;
        let directory = std::env::temp_dir().join(format!("gatepost-bench-{port}"));
        let environment = environment(port, &database_url, &directory)?;
        run(&environment, &["migrate"], "")?;
        run(&environment, &["apply", "-"], &document().to_string())?;
        let log = File::create(directory.join("log")).map_err(|error| error.to_string())?;
        let started = Instant::now();
        let mut command = Command::new("sh");
        command
            .args(["-c", SHELL, env!("CARGO_BIN_EXE_gatepost")])
            .env_clear();
        command
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(&environment);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut shell = command
            .spawn()
            .map_err(|error| format!("gatepost serve: {error}"))?;
        let leash = shell.stdin.take();
        let pid = served_by(&mut shell)?;
        let settings = settings(port, pid, database_url);
        let mut gatepost = Gatepost {
            settings,
            start_to_ready: Duration::ZERO,
            shell,
            leash,
            directory,
        };
        gatepost.wait_until_ready(port, started)?;
        Ok(gatepost)
    }

    fn wait_until_ready(&mut self, port: u16, started: Instant) -> Result<(), String> {
        let address = ([127, 0, 0, 1], port).into();
        while started.elapsed() < Duration::from_secs(20) {
            let mut client =
                http::Client::new(address, &format!("localhost:{port}"), Connections::New);
            if client
                .get("/.well-known/openid-configuration")
                .is_ok_and(|answer| answer.status == 200)
            {
                self.start_to_ready = started.elapsed();
                return Ok(());
            }
            sleep(Duration::from_millis(2));
        }
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        Err(format!("gatepost does not get ready:\n{log}"))
    }
}

impl Drop for Gatepost {
    fn drop(&mut self) {
        drop(self.leash.take());
        let _ = self.shell.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn served_by(shell: &mut Child) -> Result<u32, String> {
    let mut line = String::new();
    let stdout = shell.stdout.take().ok_or("no output")?;
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|error| error.to_string())?;
    line.trim()
        .parse()
        .map_err(|error| format!("the shell says {line}: {error}"))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|error| error.to_string())
}

fn new_database(cluster: &str, name: &str) -> Result<String, String> {
    let mut client = Client::connect(cluster, NoTls).map_err(|error| error.to_string())?;
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .map_err(|error| error.to_string())?;
    let (server, _) = cluster
        .rsplit_once('/')
        .ok_or("TEST_DATABASE_URL names no database")?;
    Ok(format!("{server}/{name}"))
}

fn environment(
    port: u16,
    database_url: &str,
    directory: &PathBuf,
) -> Result<BTreeMap<String, String>, String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let secret_file = directory.join("secret");
    let secret = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&secret_file);
    let written = secret.and_then(|mut file| file.write_all(STANDARD.encode([42; 32]).as_bytes()));
    written.map_err(|error| error.to_string())?;
    let own = [
        ("GATEPOST_DATABASE_URL", database_url.to_owned()),
        ("GATEPOST_BASE_URL", format!("http://localhost:{port}")),
        ("GATEPOST_LISTEN", format!("127.0.0.1:{port}")),
        ("GATEPOST_ADMIN_LISTEN", String::new()),
        ("GATEPOST_SECRET_FILE", secret_file.display().to_string()),
        ("GATEPOST_SCIM", String::from("on")),
        ("GATEPOST_ADMIN_ROLE", String::from("admin")),
        ("GATEPOST_ADMIN_ROLES", String::from("clerk")),
    ];
    let given = std::env::vars().filter_map(|(name, value)| {
        Some((
            name.strip_prefix("BENCH_")
                .filter(|name| name.starts_with("GATEPOST_"))?
                .to_owned(),
            value,
        ))
    });
    Ok(own
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(given)
        .collect())
}

fn gatepost(environment: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    command
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(environment);
    command
}

fn run(
    environment: &BTreeMap<String, String>,
    arguments: &[&str],
    input: &str,
) -> Result<(), String> {
    let mut command = gatepost(environment);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("gatepost: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input closes it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "gatepost {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn settings(port: u16, pid: u32, database_url: String) -> Settings {
    let scopes = clients().into_iter().map(|(part, scope, _)| (part, scope));
    let client = |part: &str, scope: &str| ClientSettings {
        client_id: part.to_owned(),
        client_secret: SECRET.to_owned(),
        scope: scope.to_owned(),
    };
    Settings {
        name: String::from("Gatepost"),
        issuer: format!("http://localhost:{port}"),
        redirect_uri: REDIRECT_URI.to_owned(),
        username: USERNAME.to_owned(),
        password: PASSWORD.to_owned(),
        clients: scopes
            .map(|(part, scope)| (part.to_owned(), client(part, scope)))
            .collect(),
        pid: Some(pid),
        database_url: Some(database_url),
    }
}

/// The parts, their scope, and what their registration has beyond the common members. People have
/// consented to the clients of the code flow, which is looked up in every flow.
fn clients() -> Vec<(&'static str, &'static str, Value)> {
    let service = |kind: &str, alg: &str| json!({"grant_types": ["client_credentials"], "access_token_type": kind, "access_token_signed_response_alg": alg});
    let web = |kind: &str| {
        json!({"grant_types": ["authorization_code"], "response_types": ["code"], "redirect_uris": [REDIRECT_URI],
               "access_token_type": kind, "require_consent": true})
    };
    let offline = || {
        let mut client = web("reference");
        client["grant_types"] = json!(["authorization_code", "refresh_token"]);
        client
    };
    let es256 = |mut client: Value| {
        client["id_token_signed_response_alg"] = json!("ES256");
        client
    };
    vec![
        ("reference", "orders.read", service("reference", "RS256")),
        ("rs256", "orders.read", service("jwt", "RS256")),
        ("es256", "orders.read", service("jwt", "ES256")),
        ("eddsa", "orders.read", service("jwt", "EdDSA")),
        ("scim", "scim.write", service("reference", "RS256")),
        ("code", "openid profile email", web("reference")),
        (
            "code_es256",
            "openid profile email",
            es256(web("reference")),
        ),
        ("code_jwt", "openid profile email", web("jwt")),
        ("refresh", "openid profile offline_access", offline()),
        (
            "refresh_es256",
            "openid profile offline_access",
            es256(offline()),
        ),
        ("refresh_oauth", "orders.read offline_access", offline()),
    ]
}

fn document() -> Value {
    let clients = clients().into_iter().map(|(part, scope, mut client)| {
        client["client_id"] = json!(part);
        client["client_name"] = json!(part);
        client["scope"] = json!(scope);
        client["secrets"] = json!([{"value": SECRET}]);
        client
    });
    json!({
        "resource_scopes": [{"name": "orders.read", "display_name": "Read orders", "resources": ["https://orders.example"]},
                            {"name": "scim.write", "resources": ["urn:gatepost:scim"]}],
        "resources": [{"name": "https://orders.example"}, {"name": "urn:gatepost:scim"}],
        "clients": clients.collect::<Vec<_>>(),
        "users": [{"username": USERNAME, "password": PASSWORD,
                   "claims": {"name": "Alice Smith", "email": "alice@example.com", "email_verified": true}},
                  {"username": ADMINISTRATOR, "password": PASSWORD, "totp": ADMINISTRATORS_KEY_BASE32,
                   "claims": {"name": "Olivia Office", "role": "admin"}}]
    })
}
