//! A Postgres of our own that commits honestly is killed, frozen and restarted under load. A ledger
//! holds what clients were told, and all of it must still be true afterwards.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, signal};
use crate::support::flow::{authorize_path, sign_in, signed_in, userinfo};
use crate::support::gatepost::{BOB_PASSWORD, Gatepost};
use crate::support::http::{Answer, Browser};
use crate::support::offline::{CONF1, CONF2, PUB1, Party, access, document, refresh};
use crate::support::postgres::TestDatabase;
use crate::support::waiting::await_that;

const OFFLINE: &str = "openid profile orders.read offline_access";
const PARTIES: [Party; 3] = [CONF1, CONF2, PUB1];
/// Nobody waits longer for an answer: five seconds, and two for a busy machine.
const PATIENCE: Duration = Duration::from_secs(7);
/// All is well so soon after the database is back, where nothing else runs.
const RECOVERY: Duration = Duration::from_secs(3);
/// For how long all must be well then, without a break.
const WELL: Duration = Duration::from_secs(1);
/// How much longer a busy machine may take for that, or for anything else.
const SOON: Duration = Duration::from_secs(20);
/// Of a failure that lasts longer somebody is told: a request waits 2 s for a connection, and 250
/// ms for its turn to.
const LONG: Duration = Duration::from_millis(2_750);
const CONNECTIONS: usize = 4;
/// More than connections: some still ask when each connection hangs.
const CLIENTS: usize = 10;

/// A Gatepost, and after it the cluster it stands on.
struct Scene {
    gatepost: Gatepost,
    cluster: Cluster,
}

impl Scene {
    fn set() -> Scene {
        let cluster = Cluster::start();
        let database = TestDatabase::empty_in(cluster.url.clone());
        let connections = CONNECTIONS.to_string();
        let settings = [
            ("GATEPOST_DATABASE_CONNECTIONS", connections.as_str()),
            // An answer that was lost is asked for again until the database is back: ten seconds
            // frozen, and then some.
            ("GATEPOST_REFRESH_TOKEN_RETRY_WINDOW_PUBLIC", "60"),
        ];
        let mut gatepost = Gatepost::prepare_over(database, &settings);
        let mut document = document();
        for client in document["clients"].as_array_mut().unwrap() {
            // A code that is refused at the end was spent, not late.
            client["authorization_code_lifetime"] = json!(600);
        }
        gatepost.apply(&document);
        gatepost.serve();
        Scene { gatepost, cluster }
    }
}

/// What the client of one grant was told.
struct Life {
    party: Party,
    code: String,
    /// Of the redemption and of each refresh.
    generations: Vec<Value>,
    revoked: Revoked,
}

#[derive(Clone, Copy, PartialEq)]
enum Revoked {
    Nothing,
    AccessToken,
    Grant,
}

struct Asked {
    began: Instant,
    ended: Instant,
    status: u16,
}

/// A failure of the database: from its beginning until the database was back, and until all was
/// well.
#[derive(Debug)]
struct Outage {
    name: &'static str,
    began: Instant,
    over: Instant,
    well: Instant,
}

#[derive(Default)]
struct Ledger {
    asked: Mutex<Vec<Asked>>,
    lives: Mutex<Vec<Life>>,
    /// Redemptions that were answered with 503: done or not.
    doubtful: Mutex<usize>,
    done: AtomicBool,
}

impl Ledger {
    fn ask(&self, ask: impl FnOnce() -> Answer) -> Answer {
        let began = Instant::now();
        let answer = ask();
        self.asked.lock().unwrap().push(Asked {
            began,
            ended: Instant::now(),
            status: answer.status,
        });
        if answer.status == 503 {
            let seconds = answer
                .header("retry-after")
                .and_then(|seconds| seconds.parse::<u32>().ok());
            assert!(seconds.is_some(), "503 without Retry-After");
        }
        answer
    }

    /// Asks until the answer is another than 503.
    fn insist(&self, ask: impl Fn() -> Answer) -> Answer {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(20), "503 for ever");
            let answer = self.ask(&ask);
            if answer.status != 503 {
                return answer;
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// One grant from its code to its end, or as far as it gets.
    fn live(
        &self,
        gatepost: &Gatepost,
        browser: &mut Browser,
        party: Party,
        revoked: Revoked,
    ) -> Option<Life> {
        let path = authorize_path(party.client_id, party.redirect_uri, &[("scope", OFFLINE)]);
        let answer = self.ask(|| browser.get(&path));
        if answer.status == 503 {
            return None;
        }
        let code = answer.query()["code"].clone();
        let answer = self.ask(|| party.redeem(gatepost, &code));
        if answer.status == 503 {
            *self.doubtful.lock().unwrap() += 1;
            return None;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut life = Life {
            party,
            code,
            generations: vec![answer.json()],
            revoked,
        };
        for _ in 0..3 {
            let newest = life.generations.last().unwrap();
            let told = self.insist(|| userinfo(gatepost, access(newest)));
            assert_eq!(told.status, 200, "an acknowledged token: {}", told.text());
            // A refresh without an answer is asked for again, and the family lives.
            let next = self.insist(|| party.refresh(gatepost, refresh(newest)));
            next.assert_status_for("an acknowledged refresh token", 200);
            life.generations.push(next.json());
        }
        self.end(gatepost, &life);
        Some(life)
    }

    /// Revokes as the life is to end. From the acknowledgement on, nobody gets anything any more.
    fn end(&self, gatepost: &Gatepost, life: &Life) {
        let newest = life.generations.last().unwrap();
        let token = match life.revoked {
            Revoked::Nothing => return,
            Revoked::AccessToken => access(newest),
            Revoked::Grant => refresh(newest),
        };
        let revoke = || {
            let mut connection = gatepost.connect();
            let form = [("token", token)];
            life.party
                .post(&mut connection, "/connect/revocation", &form)
        };
        self.insist(revoke).assert_status(200);
        let told = self.insist(|| userinfo(gatepost, access(newest)));
        told.assert_status(401);
    }

    fn run_client(&self, gatepost: &Gatepost, mut browser: Browser, number: usize) {
        for round in number.. {
            if self.done.load(Ordering::SeqCst) {
                return;
            }
            let revoked = match round % 4 {
                1 => Revoked::AccessToken,
                3 => Revoked::Grant,
                _ => Revoked::Nothing,
            };
            let life = self.live(gatepost, &mut browser, PARTIES[round % 3], revoked);
            self.lives.lock().unwrap().extend(life);
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nobody was refused for a while, although everybody asked.
    fn await_wellness(&self) {
        let since = Instant::now();
        await_that("nobody is refused any more", SOON, || {
            let asked = self.asked.lock().unwrap();
            let served = |asked: &&Asked| asked.status != 503 && asked.began >= since;
            let row = || asked.iter().rev().take_while(served);
            let lasts = |first: &Asked| first.began.elapsed() >= WELL;
            row().count() > CLIENTS && row().last().is_some_and(lasts)
        });
    }

    fn assert_answers_came_in_time(&self, outages: &[Outage]) {
        let asked = self.asked.lock().unwrap();
        for outage in outages {
            let during = |asked: &&Asked| asked.ended >= outage.began && asked.began <= outage.well;
            let took = |asked: &Asked| asked.ended - asked.began;
            let longest = asked.iter().filter(during).map(took).max();
            let refused = asked.iter().filter(during);
            let refused = refused.filter(|asked| asked.status == 503);
            let late = |asked: &Asked| asked.ended.saturating_duration_since(outage.over);
            let last = refused.clone().map(late).max();
            let (name, refused) = (outage.name, refused.count());
            println!("{name}: {refused} refused, longest {longest:?}, last {last:?}");
            let long = outage.over - outage.began > LONG;
            assert!(refused > 0 || !long, "{}: nobody was told", outage.name);
        }
        let took = asked.iter().map(|asked| asked.ended - asked.began);
        let longest = took.max().unwrap();
        assert!(longest <= PATIENCE, "{longest:?}");
    }
}

/// One failure after the other, with time to recover between them.
fn break_the_database(cluster: &Cluster, ledger: &Ledger) -> Vec<Outage> {
    type Failure<'a> = (&'static str, &'a dyn Fn());
    let kill = || {
        cluster.kill();
        sleep(LONG + Duration::from_millis(250));
        cluster.restart();
    };
    let freeze = || {
        let frozen = cluster.freeze();
        sleep(PATIENCE + Duration::from_secs(3));
        drop(frozen);
    };
    let failures: [Failure<'_>; 5] = [
        ("kill -9", &kill),
        ("SIGSTOP", &freeze),
        ("pg_ctl restart -m fast", &|| cluster.restart()),
        ("pg_terminate_backend", &|| cluster.terminate_connections()),
        ("kill -9 again", &kill),
    ];
    sleep(WELL);
    let told = failures.map(|(name, fail)| {
        let began = Instant::now();
        fail();
        let over = Instant::now();
        sleep(RECOVERY);
        ledger.await_wellness();
        let well = Instant::now();
        sleep(Duration::from_millis(200));
        Outage {
            name,
            began,
            over,
            well,
        }
    });
    told.into()
}

#[test]
fn nothing_acknowledged_is_lost_when_postgres_fails_under_load_and_all_is_well_soon_after() {
    let Scene { gatepost, cluster } = Scene::set();
    let mut browser = signed_in(&gatepost);
    for party in PARTIES {
        // Consent is given where it is asked for, so that the load needs no page.
        party.tokens(&gatepost, &mut browser, OFFLINE);
    }
    let before = usize::try_from(gatepost.database.count("grants")).unwrap();
    let process = gatepost.server_processes();
    let ledger = Ledger::default();
    let outages = thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut same = gatepost.browser();
            same.cookies = browser.cookies.clone();
            let (ledger, gatepost) = (&ledger, &gatepost);
            scope.spawn(move || ledger.run_client(gatepost, same, number));
        }
        // Also when it fails, the load comes to its end.
        let outages = scope.spawn(|| {
            let outages = break_the_database(&cluster, &ledger);
            await_that("many lived", SOON, || {
                ledger.lives.lock().unwrap().len() > 100
            });
            outages
        });
        let outages = outages.join();
        ledger.done.store(true, Ordering::SeqCst);
        outages.unwrap()
    });
    ledger.assert_answers_came_in_time(&outages);
    let now = gatepost.server_processes();
    assert_eq!(now, process, "the server process was replaced");
    let grants = usize::try_from(gatepost.database.count("grants")).unwrap() - before;
    let lives = ledger.lives.into_inner().unwrap();
    let doubtful = ledger.doubtful.into_inner().unwrap();
    let acknowledged = lives.len();
    println!("{acknowledged} redemptions acknowledged, {doubtful} in doubt, {grants} grants");
    let expected = acknowledged..=acknowledged + doubtful;
    assert!(expected.contains(&grants), "{grants} grants");
    for_each(&lives, |life| {
        assert_newest_generation_stands(&gatepost, life)
    });
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '31 seconds'");
    for_each(&lives, |life| {
        assert_what_is_spent_stays_spent(&gatepost, life)
    });
}

fn for_each(lives: &[Life], check: impl Fn(&Life) + Sync) {
    thread::scope(|scope| {
        for some in lives.chunks(lives.len().div_ceil(4)) {
            scope.spawn(|| some.iter().for_each(&check));
        }
    });
}

/// The last acknowledged refresh was kept, and so was the revocation after it.
fn assert_newest_generation_stands(gatepost: &Gatepost, life: &Life) {
    let newest = life.generations.last().unwrap();
    let oldest = life.generations.first().unwrap();
    let (of_newest, of_oldest) = match life.revoked {
        Revoked::Nothing => (200, 200),
        Revoked::AccessToken => (401, 200),
        Revoked::Grant => (401, 401),
    };
    assert_eq!(userinfo(gatepost, access(newest)).status, of_newest);
    assert_eq!(userinfo(gatepost, access(oldest)).status, of_oldest);
    let answer = life.party.refresh(gatepost, refresh(newest));
    let (refreshes, stands) = (answer.status == 200, life.revoked != Revoked::Grant);
    assert_eq!(refreshes, stands, "{}", answer.text());
}

/// A predecessor outside the window is a replay, and a code is good for one redemption: each ends
/// the grant.
fn assert_what_is_spent_stays_spent(gatepost: &Gatepost, life: &Life) {
    let newest = life.generations.last().unwrap();
    if life.party.client_id != CONF1.client_id {
        life.party
            .assert_refresh_over(gatepost, refresh(&life.generations[2]));
    }
    let again = life.party.redeem(gatepost, &life.code);
    again.assert_error(400, "invalid_grant");
    life.party.assert_refresh_over(gatepost, refresh(newest));
    assert_eq!(userinfo(gatepost, access(&life.generations[0])).status, 401);
}

/// What is taken back: each acknowledged an instant before the kill.
#[derive(Clone, Copy, Debug)]
enum Taken {
    ReferenceToken,
    Jwt,
    RefreshToken,
    AllOfBob,
}

#[test]
fn every_acknowledged_revocation_holds_after_kill_9_of_postgres_alone_and_with_the_server() {
    let scene = Scene::set();
    let mut browser = signed_in(&scene.gatepost);
    for taken in [
        Taken::ReferenceToken,
        Taken::Jwt,
        Taken::RefreshToken,
        Taken::AllOfBob,
    ] {
        for with_the_server in [false, true] {
            let mut bobs = bobs_browser(&scene.gatepost);
            let parties = match taken {
                Taken::ReferenceToken => vec![CONF2],
                Taken::Jwt => vec![CONF1],
                Taken::RefreshToken | Taken::AllOfBob => PARTIES.into(),
            };
            let owner = match taken {
                Taken::AllOfBob => &mut bobs,
                _ => &mut browser,
            };
            let mut issued: Vec<(Party, Value)> = Vec::new();
            for party in parties {
                issued.push((party, party.tokens(&scene.gatepost, owner, OFFLINE)));
            }
            take_back(&scene.gatepost, taken, &issued);
            fall_and_rise(&scene, with_the_server);
            for (party, tokens) in &issued {
                let shown = once_served(|| userinfo(&scene.gatepost, access(tokens)));
                assert_eq!(shown.status, 401, "{taken:?} {with_the_server}");
                let alone = matches!(taken, Taken::ReferenceToken | Taken::Jwt);
                let refreshed = once_served(|| party.refresh(&scene.gatepost, refresh(tokens)));
                let expected = if alone { 200 } else { 400 };
                refreshed.assert_status_for(format!("{taken:?}"), expected);
            }
        }
    }
}

/// The first answer that the database had a part in: a connection from before the fall may be found
/// dead by a request.
fn once_served(ask: impl Fn() -> Answer) -> Answer {
    let deadline = Instant::now() + SOON;
    loop {
        let answer = ask();
        if answer.status != 503 || Instant::now() >= deadline {
            return answer;
        }
        sleep(Duration::from_millis(100));
    }
}

fn bobs_browser(gatepost: &Gatepost) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path(CONF1.client_id, CONF1.redirect_uri, &[]));
    sign_in(&mut browser, &page, "bob", BOB_PASSWORD).assert_status(303);
    browser
}

fn take_back(gatepost: &Gatepost, taken: Taken, issued: &[(Party, Value)]) {
    for (_, tokens) in issued {
        assert_eq!(userinfo(gatepost, access(tokens)).status, 200);
    }
    match taken {
        Taken::ReferenceToken | Taken::Jwt => issued
            .iter()
            .for_each(|(party, tokens)| party.revoke(gatepost, access(tokens))),
        Taken::RefreshToken => issued
            .iter()
            .for_each(|(party, tokens)| party.revoke(gatepost, refresh(tokens))),
        Taken::AllOfBob => drop(gatepost.run_well(&["user", "revoke", "bob"], "")),
    }
}

/// Kills Postgres, and the server process with it if wanted, and waits until they are back.
fn fall_and_rise(scene: &Scene, with_the_server: bool) {
    let old = scene.gatepost.server_processes();
    scene.cluster.kill();
    if with_the_server {
        signal("KILL", &old);
    }
    scene.cluster.restart();
    let deadline = Instant::now() + 2 * SOON;
    let path = authorize_path(CONF1.client_id, CONF1.redirect_uri, &[]);
    loop {
        let processes = scene.gatepost.server_processes();
        let replaced =
            !processes.is_empty() && processes.iter().all(|process| !old.contains(process));
        // Its answer to a stranger needs the registry and a connection.
        let asks = replaced || !with_the_server;
        if asks && scene.gatepost.is_ready() && scene.gatepost.get(&path).status != 503 {
            assert!(
                with_the_server || processes == old,
                "the server process was replaced"
            );
            return;
        }
        assert!(
            Instant::now() < deadline,
            "not back: {}",
            scene.gatepost.log()
        );
        sleep(Duration::from_millis(20));
    }
}
