//! An upgrade, shown: an installation of the build before is filled and upgraded while it is in
//! use; then everything that was on its way goes on at this build; and nearly all, taken back, at
//! that. `make upgrade` builds the one before, and runs this.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a panic here is a failed test"
)]

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use gatepost::store::migrate::MIGRATIONS;
use serde_json::{Value, json};

use carried::{ALL, BOUND, Begin, Carried, ONWARD_ALONE};
use links::{PRINTED, SENT, address};
use support::device::{DEVICE_CODE, SCOPE, TV};
use support::flow::with_clients;
use support::gatepost::{ALICE_PASSWORD, Gatepost};
use support::http::Connection;
use support::mailbox::Mailbox;
use support::offline;
use support::postgres::TestDatabase;
use support::signer::Signer;
use support::upstream::Upstream;
use support::waiting::{SOON, await_that};

mod carried;
mod links;

#[allow(dead_code, reason = "the authenticator is needed here")]
#[path = "../service/passkeys.rs"]
mod passkeys;

#[allow(dead_code, reason = "no test binary uses all of it")]
#[path = "../support/mod.rs"]
mod support;

/// The installation, and a provider of other people's that it trusts.
struct World {
    gatepost: Gatepost,
    upstream: Upstream,
    mailbox: Mailbox,
    /// Whether the build before sends letters.
    sent_letters: bool,
    /// Where the build before lies, one program that has the server in it, and is replaced by
    /// `gatepost`.
    installed: PathBuf,
    /// Where `gatepostd` comes to lie.
    server: PathBuf,
}

/// Before the schema is migrated, and after it, by the same processes.
const ROUNDS: [&str; 2] = ["before", "migrated"];
/// By the new build.
const RELOADED: &str = "reloaded";
/// By the new build, before the one of before is put back.
const BACK: &str = "back";

fn user(name: &str, round: &str) -> String {
    format!("{}-{round}", name.replace(' ', "-"))
}

fn document(upstream: &Upstream) -> Value {
    let device = json!({
        "client_name": "Television", "grant_types": [DEVICE_CODE, "refresh_token"], "response_types": [],
        "redirect_uris": [], "scope": SCOPE, "token_endpoint_auth_method": "none"
    });
    let strong = json!({"minimum_acr": "2"});
    let mut document = with_clients(offline::document(), &[("strong", strong), (TV, device)]);
    let tv = offline::client(&mut document, TV);
    tv.as_object_mut().unwrap().remove("secrets");
    // An upgrade takes longer than the window of today.
    offline::client(&mut document, "conf1")["refresh_token_retry_window"] = json!(600);
    document["identity_providers"] = json!([upstream.registration("up", json!({}))]);
    for round in ROUNDS.into_iter().chain([RELOADED, BACK]) {
        let users = ALL.iter().chain(&PRINTED).chain(&BOUND).map(
            |(name, _)| json!({"username": user(name, round), "password": ALICE_PASSWORD, "claims": {"name": name}}),
        );
        let with_address = SENT.map(|(name, _)| {
            let user = user(name, round);
            let claims = json!({"name": name, "email": address(&user), "email_verified": true});
            json!({"username": user, "password": ALICE_PASSWORD, "claims": claims})
        });
        let all = document["users"].as_array_mut().unwrap();
        all.extend(users);
        all.extend(with_address);
    }
    document
}

impl World {
    /// Served by the build before.
    fn before() -> World {
        let before =
            std::env::var_os("UPGRADE_FROM").expect("`make upgrade` builds what this begins with");
        let upstream = Upstream::start_with(Signer::es256("first"));
        let settings = [
            ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8"),
            ("GATEPOST_REMEMBER_SESSION_LIFETIME", "2592000"),
        ];
        let mut gatepost = Gatepost::unprepared(TestDatabase::empty(), &settings);
        let installed = gatepost.private_file("gatepost", "");
        let server = installed.with_file_name("gatepostd");
        install(Path::new(&before), &installed);
        gatepost.binary.clone_from(&installed);
        // A build that knows no letters refuses their settings.
        let mailbox = Mailbox::open();
        // One without the command says how all commands are called.
        let help = gatepost.run(&["mail", "--help"], "").stdout;
        let sent_letters = String::from_utf8_lossy(&help).contains("gatepost mail test");
        if sent_letters {
            set_letters(&mut gatepost, &mailbox);
        }
        gatepost.run_well(&["migrate"], "");
        gatepost.apply(&document(&upstream));
        gatepost.serve();
        World {
            gatepost,
            upstream,
            mailbox,
            sent_letters,
            installed,
            server,
        }
    }

    /// Begins all that the build which serves can begin, each for a user of its own.
    fn begin(&self, round: &'static str) -> Vec<(String, Carried)> {
        let mut begun = self.begin_of(&ALL, round);
        begun.extend(self.begin_of(&PRINTED, round));
        if self.sent_letters {
            begun.extend(self.begin_of(&SENT, round));
        }
        if self.knows_dpop() {
            begun.extend(self.begin_of(&BOUND, round));
        }
        begun
    }

    fn begin_of(&self, begins: &[(&str, Begin)], round: &'static str) -> Vec<(String, Carried)> {
        let begun = begins
            .iter()
            .map(|(name, begin)| (format!("{name} ({round})"), begin(self, &user(name, round))));
        begun.collect()
    }

    fn knows_dpop(&self) -> bool {
        let discovery = self.gatepost.get("/.well-known/openid-configuration");
        discovery.json()["dpop_signing_alg_values_supported"].is_array()
    }

    /// All of it goes on at the build that serves.
    fn go_on(&self, begun: Vec<(String, Carried)>) {
        let mut failed = Vec::new();
        let number = begun.len();
        for (name, goes_on) in begun {
            if catch_unwind(AssertUnwindSafe(|| goes_on(self))).is_err() {
                failed.push(name);
            }
        }
        println!("{} of {number} went on", number - failed.len());
        let told = "what did not go on at the other build";
        assert!(failed.is_empty(), "{told}: {failed:#?}");
    }

    /// The level that the database stands at.
    fn level(&self) -> i32 {
        let newest = "SELECT max(level) FROM schema_migrations";
        self.gatepost.database.value(newest, &[])
    }

    /// The new binary, still lying beside the old one, looks at the database and migrates it.
    fn migrate(&mut self) {
        self.gatepost.binary = PathBuf::from(env!("CARGO_BIN_EXE_gatepost"));
        let missing = MIGRATIONS.len() - usize::try_from(self.level()).unwrap();
        let checked = self.gatepost.run(&["migrate", "--check"], "");
        let told = String::from_utf8(checked.stdout).unwrap();
        print!("{told}");
        assert_eq!(checked.status.success(), missing == 0, "{told}");
        assert_eq!(told.matches("would apply ").count(), missing, "{told}");
        let done = self.gatepost.run_well(&["migrate"], "");
        assert_eq!(done.matches("applied ").count(), missing, "{done}");
        self.gatepost.run_well(&["migrate", "--check"], "");
    }

    /// Puts the new programs in place, first `gatepostd`, and reloads.
    fn reload(&mut self) {
        let (supervisor, old) = (self.gatepost.supervisor(), self.gatepost.server_processes());
        install(Path::new(env!("CARGO_BIN_EXE_gatepostd")), &self.server);
        install(Path::new(env!("CARGO_BIN_EXE_gatepost")), &self.installed);
        self.gatepost.binary.clone_from(&self.installed);
        let mut kill = Command::new("kill");
        let killed = kill.args(["-HUP", &supervisor.to_string()]).status();
        assert!(killed.unwrap().success());
        let runs_new =
            |process: &u32| is_same_file(Path::new(&format!("/proc/{process}/exe")), &self.server);
        await_that("the new build alone serves", SOON, || {
            let now = self.gatepost.server_processes();
            now.len() == 1 && !old.contains(&now[0]) && runs_new(&now[0])
        });
        assert_eq!(self.gatepost.supervisor(), supervisor);
    }

    /// Does something while somebody asks for a user's claims all the time. One connection may be
    /// cut: the last that a process takes.
    fn while_in_use(&mut self, what: &str, work: impl FnOnce(&mut World)) {
        let (is_over, asked, cut) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        let token = carried::access_token(self, &user(ALL[0].0, ROUNDS[0]));
        let (port, bearer) = (self.gatepost.port, format!("Bearer {token}"));
        scope(|scope| {
            let asking = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) || asked.load(Ordering::Relaxed) < 20 {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let headers = [("Authorization", &*bearer)];
                    let answer = Connection::open(port).and_then(|mut connection| {
                        connection.try_send("GET", "/connect/userinfo", &headers, b"")
                    });
                    match answer {
                        Ok(answer) => assert_eq!(answer.status, 200, "{what}: {}", answer.text()),
                        Err(_) => drop(cut.fetch_add(1, Ordering::Relaxed)),
                    }
                    sleep(Duration::from_millis(5));
                }
            });
            let done = catch_unwind(AssertUnwindSafe(|| work(self)));
            is_over.store(true, Ordering::Relaxed);
            asking.join().unwrap();
            done.unwrap();
        });
        let (asked, cut) = (asked.into_inner(), cut.into_inner());
        println!("{what}: {asked} requests meanwhile, {cut} cut");
        assert!(cut <= 1, "{what}: {cut} of {asked} requests were cut");
    }

    /// Starts what is installed, as a service manager does that holds the socket open.
    fn start_over(&self, socket: &TcpListener) -> Running {
        let mut command = self.gatepost.command();
        let socket = OwnedFd::from(socket.try_clone().unwrap());
        command.arg("serve").stdin(Stdio::from(socket));
        let running = command.stderr(Stdio::null()).spawn().unwrap();
        self.gatepost.await_ready();
        Running(running)
    }

    /// Puts the one program of before in place of both, and restarts.
    fn go_back(&self, running: Running, socket: &TcpListener) -> Running {
        let before = std::env::var_os("UPGRADE_FROM").unwrap();
        install(Path::new(&before), &self.installed);
        std::fs::remove_file(&self.server).unwrap();
        running.stop();
        self.start_over(socket)
    }

    fn audit_events(&self) -> i64 {
        self.gatepost.database.count("audit_events")
    }
}

/// Has it send letters, once it is started again.
fn set_letters(gatepost: &mut Gatepost, mailbox: &Mailbox) {
    for (name, value) in &mailbox.settings()[..2] {
        gatepost.set(name, value);
    }
}

/// A service that ends with this value.
struct Running(Child);

impl Running {
    fn stop(mut self) {
        let told = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(told.unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }

    fn runs(&self, program: &Path) -> bool {
        is_same_file(Path::new(&format!("/proc/{}/exe", self.0.id())), program)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts a copy of a program in place of what lies there.
fn install(program: &Path, place: &Path) {
    let beside = place.with_extension("new");
    std::fs::copy(program, &beside).unwrap();
    std::fs::rename(&beside, place).unwrap();
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.dev(), file.ino()))
    };
    id(one).is_some_and(|own| Some(own) == id(other))
}

#[test]
fn an_upgrade_leaves_everything_alive_that_was_on_its_way() {
    let mut world = World::before();
    let new = Path::new(env!("CARGO_BIN_EXE_gatepost"));
    assert!(!is_same_file(&world.installed, new));
    let registered = world.gatepost.run_well(&["export"], "");
    let mut begun = world.begin(ROUNDS[0]);
    println!("before: {} things are on their way", begun.len());

    world.while_in_use("check and migrate", World::migrate);
    // Whoever signs in, refreshes and types codes now does so at the build before, over the new
    // schema.
    begun.extend(world.begin(ROUNDS[1]));
    println!("migrated: {} things are on their way", begun.len());

    let before = world.audit_events();
    world.while_in_use("reload", World::reload);
    let planned = world.gatepost.run(&["plan", "-"], &registered);
    let changes = String::from_utf8_lossy(&planned.stdout);
    let code = planned.status.code();
    assert_eq!(
        code,
        Some(0),
        "the registration is read otherwise: {changes}"
    );
    world.go_on(begun);

    assert!(world.audit_events() > before);
    let log = world.gatepost.log();
    let verify = ["audit", "verify", "--heads", "-"];
    let verified = world.gatepost.run(&verify, &log);
    let said = String::from_utf8([verified.stdout, verified.stderr].concat()).unwrap();
    assert!(verified.status.success(), "{said}");
    print!("{said}");
    // A supervisor of the new build, too. While the build before is older than DPoP and letters,
    // nothing of it can be bound to a key, or sent: the new one begins that, and another process of
    // it goes on.
    world.gatepost.stop();
    set_letters(&mut world.gatepost, &world.mailbox);
    world.gatepost.serve();
    let mut newest = world.begin_of(&BOUND, RELOADED);
    newest.extend(world.begin_of(&SENT, RELOADED));
    world.gatepost.stop();
    world.gatepost.serve();
    world.go_on(newest);
    carried::access_token(&world, &user(ALL[0].0, ROUNDS[0]));

    // And back. What is begun at the two programs goes on at the one.
    world.gatepost.stop();
    if !world.sent_letters {
        for (name, _) in &world.mailbox.settings()[..2] {
            world.gatepost.unset(name);
        }
    }
    let socket = TcpListener::bind(("127.0.0.1", world.gatepost.port)).unwrap();
    let ahead = world.start_over(&socket);
    assert!(ahead.runs(&world.server));
    let mut both_ways = [&ALL[..], &PRINTED].concat();
    if world.sent_letters {
        both_ways.extend(SENT);
    }
    both_ways.retain(|(name, _)| !ONWARD_ALONE.contains(name));
    let begun = world.begin_of(&both_ways, BACK);
    println!("ahead: {} things are on their way", begun.len());
    let mut back = None;
    world.while_in_use("back", |world| back = Some(world.go_back(ahead, &socket)));
    let back = back.unwrap();
    assert!(back.runs(&world.installed));
    world.go_on(begun);
    back.stop();
}
