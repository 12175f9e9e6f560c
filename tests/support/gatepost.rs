//! The real binary over a schema of its own: migrated, with a document applied, serving on a free
//! port.

use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::flow::basic;
use super::http::{Answer, Browser, Connection, free_port};
use super::postgres::TestDatabase;
use super::proxy::Proxy;
use super::shared::Shared;
use super::waiting::{SOON, await_lines_of, await_that};
use super::{record, secrets, template};

/// Secret of the confidential clients in [`document`]; `conf2` has `CONF2_SECRET`.
pub const CONF1_SECRET: &str = "conf1-secret-with-some-length";
pub const CONF2_SECRET: &str = "conf2-secret-with-some-length";
pub const ALICE_PASSWORD: &str = "correct horse battery staple";
pub const BOB_PASSWORD: &str = "bob's quite long password";
pub const RP1: &str = "https://rp1.example/cb";
pub const RP2: &str = "https://rp2.example/cb";
pub const RPS: &str = "https://app.example/cb";

/// What the file named by `GATEPOST_SECRET_FILE` has, unless a test names another.
pub const MASTER_SECRET: [u8; 32] = [42; 32];

/// What people's passwords are hashed with: cheap, so that tests sign in quickly. The parameters
/// have a test of their own.
pub const CHEAP_HASHING: [(&str, &str); 2] = [
    ("GATEPOST_ARGON2_MEMORY_KIB", "7168"),
    ("GATEPOST_ARGON2_PASSES", "1"),
];

/// What decides what `gatepost migrate` writes.
const DECIDE_AT_MIGRATION: [&str; 4] = [
    "GATEPOST_DATABASE_URL",
    "GATEPOST_SECRET_FILE",
    "GATEPOST_AUDIT_DAYS",
    "GATEPOST_REMEMBER_SESSION_LIFETIME",
];

/// How the names begin of what decides nothing of what `gatepost apply` writes.
const SERVING: [&str; 7] = [
    "GATEPOST_ADMIN_LISTEN",
    "GATEPOST_DATABASE_CONNECTIONS",
    "GATEPOST_LIMIT_",
    "GATEPOST_LISTEN",
    "GATEPOST_LOG",
    "GATEPOST_MAIL_",
    "GATEPOST_SMTP_",
];

/// A running Gatepost.
pub struct Gatepost {
    pub database: Arc<TestDatabase>,
    /// The issuer: `http://localhost:PORT` unless the settings say otherwise.
    pub base_url: String,
    pub port: u16,
    /// What is run and started: the build under test, unless a test says otherwise.
    pub binary: PathBuf,
    directory: PathBuf,
    settings: Vec<(String, String)>,
    serving: Option<Serving>,
}

/// `gatepost serve` below a shell that ends it when this process is gone, however it goes, and then
/// takes the directory away.
struct Serving {
    shell: Child,
    leash: Option<ChildStdin>,
}

impl Gatepost {
    /// Serves [`document`].
    pub fn start() -> Gatepost {
        Gatepost::start_with(&document(), &[])
    }

    /// Serves a document of one's own under further settings.
    pub fn start_with(document: &Value, settings: &[(&str, &str)]) -> Gatepost {
        let mut gatepost = Gatepost::registered(document, settings);
        gatepost.serve();
        gatepost
    }

    /// The one that serves [`document`] to all tests of this process.
    pub fn shared() -> Shared {
        Gatepost::shared_with(&document(), &[])
    }

    /// The one that serves this document under these settings to all tests of this process.
    pub fn shared_with(document: &Value, settings: &[(&str, &str)]) -> Shared {
        Shared::find(document, settings, false)
    }

    /// Serves [`document`] to one test at a time.
    pub fn lent() -> Shared {
        Gatepost::lent_with(&document(), &[])
    }

    /// Serves this document under these settings to one test at a time. It finds no session, grant,
    /// consent or event of those before it.
    pub fn lent_with(document: &Value, settings: &[(&str, &str)]) -> Shared {
        Shared::find(document, settings, true)
    }

    /// Migrated, with a document applied, not serving.
    fn registered(document: &Value, settings: &[(&str, &str)]) -> Gatepost {
        let hashing = CHEAP_HASHING.map(|(name, _)| name);
        let mut deciding = settings.to_vec();
        deciding.retain(|(name, _)| !SERVING.iter().any(|begin| name.starts_with(begin)));
        if names_none_of(settings, &hashing) && *document == self::document() {
            deciding.clear();
        }
        if names_none_of(settings, &DECIDE_AT_MIGRATION)
            && names_none_of(&deciding, &["GATEPOST_BASE_URL"])
            && let Some(template) = template::registered(document, &deciding)
        {
            secrets::learn_from_document(document);
            return Gatepost::copied(settings, |issuer| {
                TestDatabase::registered(template, issuer)
            });
        }
        let gatepost = Gatepost::prepare(settings);
        gatepost.apply(document);
        gatepost
    }

    /// Serves [`document`] by a clock that [`Gatepost::travel`] sets forward.
    pub fn start_with_a_clock_of_its_own() -> Gatepost {
        let mut gatepost = Gatepost::prepare_over(TestDatabase::with_a_clock_of_its_own(), &[]);
        gatepost.apply(&document());
        gatepost.serve();
        gatepost
    }

    /// Serves [`document`] over a database behind a proxy.
    pub fn start_behind_a_proxy() -> (Gatepost, Proxy) {
        Gatepost::start_behind_a_proxy_with(&[])
    }

    /// The same under further settings.
    pub fn start_behind_a_proxy_with(settings: &[(&str, &str)]) -> (Gatepost, Proxy) {
        let database = TestDatabase::empty();
        let proxy = Proxy::start();
        let url = database.url_through("127.0.0.1", proxy.port, "");
        let all = [settings, &[("GATEPOST_DATABASE_URL", &*url)]].concat();
        let mut gatepost = Gatepost::prepare_over(database, &all);
        gatepost.apply(&document());
        gatepost.serve();
        (gatepost, proxy)
    }

    /// Sets the clock forward, and waits until a running server has seen it.
    pub fn travel(&self, seconds: u32) {
        let before = self.log_length();
        self.database.travel(seconds);
        if self.serving.is_some() {
            self.await_log_since(before, "the clock set forward", |log| {
                log.contains("ms behind the database's")
            });
        }
    }

    /// Waits until a running server goes by the registry as it stands.
    pub fn settle(&self) {
        let asked = "SELECT registry_version FROM installation";
        let wanted: i64 = self.database.value(asked, &[]);
        self.await_log(&format!("version {wanted} of the registry"), |log| {
            let versions = log
                .lines()
                .filter_map(|line| line.split_once("registry version ")?.1.split(' ').next());
            versions
                .filter_map(|version| version.parse().ok())
                .any(|version: i64| version >= wanted)
        });
    }

    /// Waits until the log of a running server says so.
    pub fn await_log(&self, what: &str, holds: impl Fn(&str) -> bool) {
        self.await_log_since(0, what, holds);
    }

    /// Waits until what a running server logs behind the first `length` bytes says so. Each look
    /// reads no more than is new.
    pub fn await_log_since(&self, length: u64, what: &str, holds: impl Fn(&str) -> bool) {
        let mut log = Vec::new();
        await_that(what, SOON, || {
            let known = u64::try_from(log.len()).unwrap();
            log.extend(self.log_bytes_since(length + known));
            holds(&String::from_utf8_lossy(&log))
        });
    }

    /// Migrated, nothing applied, not serving. `PORT` in a setting stands for the port. Nearly all
    /// have the same signing keys.
    pub fn prepare(settings: &[(&str, &str)]) -> Gatepost {
        if names_none_of(settings, &DECIDE_AT_MIGRATION) {
            return Gatepost::copied(settings, TestDatabase::ready);
        }
        Gatepost::prepare_over(TestDatabase::empty(), settings)
    }

    fn copied(settings: &[(&str, &str)], database: impl FnOnce(&str) -> TestDatabase) -> Gatepost {
        let port = free_port();
        let base_url = base_url(settings, port);
        let database = database(&base_url);
        Gatepost::configured(Arc::new(database), port, base_url, settings)
    }

    /// The same over a given empty database, to which the settings may lead another way. Its
    /// signing keys are its own: `gatepost migrate` makes them.
    pub fn prepare_over(database: TestDatabase, settings: &[(&str, &str)]) -> Gatepost {
        let gatepost = Gatepost::unprepared(database, settings);
        gatepost.run_well(&["migrate"], "");
        gatepost
    }

    /// Settings over a database that nobody has migrated.
    pub fn unprepared(database: TestDatabase, settings: &[(&str, &str)]) -> Gatepost {
        let port = free_port();
        let base_url = base_url(settings, port);
        Gatepost::configured(Arc::new(database), port, base_url, settings)
    }

    /// Another Gatepost of the same issuer over the same database, on a port of its own; not
    /// serving.
    pub fn beside(&self) -> Gatepost {
        let port = free_port();
        let mut other =
            Gatepost::configured(Arc::clone(&self.database), port, self.base_url.clone(), &[]);
        let kept = self
            .settings
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "GATEPOST_LISTEN"));
        let listen = (String::from("GATEPOST_LISTEN"), format!("127.0.0.1:{port}"));
        other.settings = kept.cloned().chain([listen]).collect();
        other
    }

    fn configured(
        database: Arc<TestDatabase>,
        port: u16,
        base_url: String,
        settings: &[(&str, &str)],
    ) -> Gatepost {
        let directory = std::env::temp_dir().join(format!("gatepost-{}-{port}", database.schema));
        std::fs::create_dir_all(&directory).unwrap();
        let secret_file = directory.join("secret");
        write_private(&secret_file, &STANDARD.encode(MASTER_SECRET));
        secrets::learn(&STANDARD.encode(MASTER_SECRET));
        // Each takes Postgres 5 ms. Of five, three may write at once, as of six; where writes hang, more may.
        let is_service = env!("CARGO_CRATE_NAME") == "service";
        let connections = if is_service { "5" } else { "8" };
        let own = [
            ("GATEPOST_DATABASE_URL", database.url.clone()),
            ("GATEPOST_BASE_URL", base_url.clone()),
            ("GATEPOST_LISTEN", format!("127.0.0.1:{port}")),
            ("GATEPOST_ADMIN_LISTEN", String::new()),
            ("GATEPOST_SECRET_FILE", secret_file.display().to_string()),
            ("GATEPOST_DATABASE_CONNECTIONS", String::from(connections)),
            ("GATEPOST_LOG", String::from("debug")),
        ];
        let own = own
            .into_iter()
            .chain(CHEAP_HASHING.map(|(name, value)| (name, String::from(value))));
        let given: Vec<(String, String)> = settings
            .iter()
            .map(|(name, value)| (name.to_string(), value.replace("PORT", &port.to_string())))
            .collect();
        let overridden = |name: &str| given.iter().any(|(other, _)| other == name);
        let kept = own
            .filter(|(name, _)| !overridden(name))
            .map(|(name, value)| (name.to_string(), value));
        let settings = kept.chain(given.clone()).collect();
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_gatepost"));
        Gatepost {
            database,
            base_url,
            port,
            binary,
            directory,
            settings,
            serving: None,
        }
    }

    /// Changes a setting. A running server goes on with the old one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a setting away.
    pub fn unset(&mut self, name: &str) {
        self.settings.retain(|(other, _)| other != name);
    }

    /// A file of its own that only its owner may read.
    pub fn private_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        write_private(&path, text);
        path
    }

    /// Runs a command; its exit code and output.
    pub fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command();
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let (printed, said) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        secrets::assert_none_in(&said, &format!("gatepost {arguments:?}"));
        record::write(
            &format!("gatepost {arguments:?}"),
            &format!("{}\n{printed}\n{said}", output.status),
        );
        output
    }

    /// Has a token or a request explained. Nothing that a request leaves behind may be other after
    /// it: no grant, event, count of guesses, used assertion or key.
    pub fn explain(&self, what: &str) -> Output {
        let tables = [
            "audit_events",
            "consents",
            "device_authorizations",
            "grants",
            "linked_identities",
            "revoked_lasting_tokens",
            "revoked_tokens",
            "session_clients",
            "sessions",
            "sign_in_failures",
            "signing_keys",
            "used_assertions",
            "users",
        ];
        // A server tells of a person's end by itself, once, and perhaps just then.
        let ends = self.database.events("user_expired");
        let before = self.digests(&tables);
        let output = self.run(&["explain", "-"], what);
        let after = self.digests(&tables);
        if self.database.events("user_expired") > ends {
            return self.explain(what);
        }
        assert_eq!(after, before, "explaining changed something");
        output
    }

    /// A digest of all rows of each table.
    pub fn digests(&self, tables: &[&'static str]) -> Vec<(&'static str, String)> {
        let digest = |table| -> String {
            let rows = "coalesce(string_agg(held::text, ' ' ORDER BY held::text), '')";
            let read = format!("SELECT md5({rows}) FROM {table} AS held");
            self.database.value(&read, &[])
        };
        tables.iter().map(|table| (*table, digest(table))).collect()
    }

    /// Runs a command that must succeed; what it printed.
    pub fn run_well(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "gatepost {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same of a command that is written as a line: its words have no spaces.
    pub fn run_line(&self, line: &str) -> String {
        self.run_well(&line.split(' ').collect::<Vec<_>>(), "")
    }

    /// The JSON that such a command prints.
    pub fn shown(&self, line: &str) -> Value {
        serde_json::from_str(&self.run_line(line)).unwrap()
    }

    /// What the audit log tells of the events of that name, the last one first.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let events = self.shown(&format!("audit list --event {name} --json"));
        events.as_array().unwrap().clone()
    }

    /// What a command says that refuses what was typed (exit code 2), or to do it (1).
    pub fn refusal(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        assert!(
            matches!(code, Some(1 | 2)),
            "gatepost {arguments:?}: {output:?}"
        );
        said
    }

    /// What `apply` says of a document that it refuses: the exit code is 1.
    pub fn apply_refused(&self, document: &Value) -> String {
        let output = self.run(&["apply", "-"], &document.to_string());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Applies a document, and waits until a running server goes by it.
    pub fn apply(&self, document: &Value) {
        secrets::learn_from_document(document);
        self.run_well(&["apply", "-"], &document.to_string());
        if self.serving.is_some() {
            self.settle();
        }
    }

    /// The binary with this installation's settings.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(passed_on());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a statement in its database.
    pub fn run_sql(&self, sql: &str) {
        self.database.run(sql);
    }

    /// Starts the server and waits until it is ready.
    pub fn serve(&mut self) {
        self.launch();
        self.await_ready();
    }

    /// Starts the server and waits for nothing.
    pub fn launch(&mut self) {
        let log = std::fs::File::create(self.log_file()).unwrap();
        let script = "\"$0\" serve </dev/null & server=$!; read end; kill $server; wait $server; \
                      [ \"$end\" = stop ] || rm -rf \"$1\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(&self.binary);
        shell.arg(&self.directory).env_clear().envs(passed_on());
        shell.envs(self.settings.iter().map(|(name, value)| (name, value)));
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log);
        let mut shell = shell.spawn().unwrap();
        let leash = shell.stdin.take();
        self.serving = Some(Serving { shell, leash });
    }

    /// Waits until the server has loaded everything.
    pub fn await_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !record::without(|| self.is_ready()) {
            assert!(
                Instant::now() < deadline,
                "the server does not get ready:\n{}",
                self.log()
            );
            sleep(Duration::from_millis(20));
        }
    }

    /// The whole address of a path below the issuer.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    /// The path of the issuer; empty when it has none.
    pub fn base_path(&self) -> &str {
        let authority = self
            .base_url
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        authority
            .find('/')
            .and_then(|start| authority.get(start..))
            .unwrap_or_default()
    }

    /// Scheme, host and port of the issuer.
    pub fn origin(&self) -> &str {
        self.base_url.trim_end_matches(self.base_path())
    }

    /// Whether it has loaded what it needs.
    pub fn is_ready(&self) -> bool {
        self.serves(&format!(
            "{}/.well-known/openid-configuration",
            self.base_path()
        ))
    }

    /// Whether somebody listens and answers 200 there.
    pub fn serves(&self, path: &str) -> bool {
        Connection::open(self.port)
            .and_then(|mut connection| connection.try_send("GET", path, &[], b""))
            .is_ok_and(|answer| answer.status == 200)
    }

    /// Ends the server in order. Whatever level it logged at, nothing secret stands in its log.
    pub fn stop(&mut self) {
        if let Some(mut serving) = self.serving.take() {
            // A shell that somebody has killed reads nothing.
            let _ = serving.leash.take().unwrap().write_all(b"stop\n");
            serving.shell.wait().unwrap();
            if !std::thread::panicking() {
                secrets::assert_none_in(&self.log(), "the server");
            }
        }
    }

    /// The supervisor's process id.
    pub fn supervisor(&self) -> u32 {
        let shell = self.serving.as_ref().unwrap().shell.id();
        *children_of(shell).first().unwrap()
    }

    /// Process ids of the server processes, oldest first; usually one.
    pub fn server_processes(&self) -> Vec<u32> {
        children_of(self.supervisor())
    }

    /// What the server has logged so far, all of it: the threads that write have come to rest.
    pub fn log(&self) -> String {
        self.log_since(0)
    }

    /// The same without the first `length` bytes.
    pub fn log_since(&self, length: u64) -> String {
        let shell = self.serving.iter().map(|serving| serving.shell.id());
        let all = || {
            shell
                .clone()
                .flat_map(children_of)
                .flat_map(|pid| [vec![pid], children_of(pid)].concat())
        };
        await_lines_of(all);
        String::from_utf8_lossy(&self.log_bytes_since(length)).into_owned()
    }

    /// The last line of the log that has these words.
    pub fn last_line(&self, words: &str) -> String {
        let log = self.log();
        let line = log.lines().rev().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("no {words} in {log}"))
            .to_owned()
    }

    /// How many bytes the server has logged so far.
    pub fn log_length(&self) -> u64 {
        std::fs::metadata(self.log_file()).map_or(0, |file| file.len())
    }

    fn log_bytes_since(&self, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(mut log) = std::fs::File::open(self.log_file()) {
            log.seek(SeekFrom::Start(length)).unwrap();
            log.read_to_end(&mut bytes).unwrap();
        }
        bytes
    }

    fn log_file(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// A connection without cookies.
    pub fn connect(&self) -> Connection {
        Connection::open(self.port).unwrap()
    }

    /// A request on a connection of its own.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.connect().send(method, path, headers, body)
    }

    /// A GET on a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// A form post on a connection of its own.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Answer {
        self.connect().post(path, headers, form)
    }

    /// A form post of a client whose secret is that of `conf1`.
    pub fn post_as(&self, client_id: &str, path: &str, form: &[(&str, &str)]) -> Answer {
        let authorization = basic(client_id, CONF1_SECRET);
        self.post(path, &[("Authorization", &authorization)], form)
    }

    /// A token request of such a client.
    pub fn token(&self, client_id: &str, form: &[(&str, &str)]) -> Answer {
        self.post_as(client_id, "/connect/token", form)
    }

    /// A browser with an empty cookie jar.
    pub fn browser(&self) -> Browser {
        Browser::new(self.port, self.origin())
    }

    /// The same of somebody at that address, which a proxy in front of us names.
    pub fn browser_at(&self, address: &str) -> Browser {
        let mut browser = self.browser();
        let forwarded = (String::from("X-Forwarded-For"), String::from(address));
        browser.headers.push(forwarded);
        browser
    }
}

impl Drop for Gatepost {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            eprintln!("--- log of the server ---\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// What a process gets of our own environment. The second is where it counts what runs, under
/// `make coverage`. Of the system's certificates it gets none: reading some hundred takes each
/// process as long as a hash does.
fn passed_on() -> impl Iterator<Item = (&'static str, OsString)> {
    let names = ["PATH", "LLVM_PROFILE_FILE"];
    let kept = names
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    kept.chain([("SSL_CERT_FILE", OsString::from("/dev/null"))])
}

/// Children are listed by the thread that started them.
pub fn children_of(parent: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let mut children: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    children.sort_unstable();
    children
}

fn names_none_of(settings: &[(&str, &str)], names: &[&str]) -> bool {
    settings.iter().all(|(name, _)| !names.contains(name))
}

fn base_url(settings: &[(&str, &str)], port: u16) -> String {
    let given = settings
        .iter()
        .find(|(name, _)| *name == "GATEPOST_BASE_URL")
        .map(|(_, value)| *value);
    given
        .unwrap_or("http://localhost:PORT")
        .replace("PORT", &port.to_string())
}

pub fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Two confidential clients, two public ones, a service, two users: what most tests work with.
pub fn document() -> Value {
    json!({
        "identity_scopes": [
            {"name": "roles", "display_name": "Your roles", "description": "What you may do", "claims": ["role"]}
        ],
        "resource_scopes": [
            {"name": "orders.read", "display_name": "Read orders", "resources": ["https://orders.example"], "claims": ["role"]},
            {"name": "orders.write", "display_name": "Change orders", "resources": ["https://orders.example"]},
            {"name": "stock.read", "display_name": "Read stock", "resources": ["https://stock.example"]}
        ],
        "resources": [{"name": "https://orders.example"}, {"name": "https://stock.example"}],
        "clients": [
            {
                "client_id": "conf1", "client_name": "First shop", "redirect_uris": [RP1, "https://rp1.example/other?a=b"],
                "response_types": ["code"], "grant_types": ["authorization_code", "client_credentials"],
                "scope": "openid profile email roles orders.read orders.write stock.read",
                "secrets": [{"value": CONF1_SECRET}]
            },
            {
                "client_id": "conf2", "client_name": "Second shop", "redirect_uris": [RP2],
                "response_types": ["code"], "grant_types": ["authorization_code"], "scope": "openid profile",
                "access_token_type": "reference", "require_consent": true, "secrets": [{"value": CONF2_SECRET}]
            },
            {
                "client_id": "pub1", "client_name": "Browser app", "redirect_uris": [RPS],
                "response_types": ["code"], "grant_types": ["authorization_code"], "scope": "openid profile",
                "token_endpoint_auth_method": "none"
            },
            {
                "client_id": "native", "client_name": "Native app", "application_type": "native",
                "redirect_uris": ["http://127.0.0.1/cb", "com.example.app:/cb"],
                "response_types": ["code"], "grant_types": ["authorization_code"], "scope": "openid profile",
                "token_endpoint_auth_method": "none"
            },
            {
                "client_id": "service", "client_name": "Nightly job", "grant_types": ["client_credentials"], "response_types": [],
                "scope": "orders.read orders.write stock.read", "access_token_type": "reference",
                "secrets": [{"value": CONF1_SECRET}]
            }
        ],
        "users": [
            {"username": "alice", "password": ALICE_PASSWORD, "claims": {
                "name": "Alice Smith", "given_name": "Alice", "family_name": "Smith", "role": ["admin"],
                "email": "alice@example.com", "email_verified": true}},
            {"username": "bob", "password": BOB_PASSWORD, "claims": {"name": "Bob", "role": "user"}}
        ]
    })
}
