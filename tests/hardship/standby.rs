//! Commits wait for a standby that is away. An ending, or any other change, is then answered with
//! 503, and its row is there all the same: whoever sends it again must not be told that it is over,
//! or there, for the next primary may never hear of it.

use std::process::{Child, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use gatepost::protocol::words::instant::Day;
use gatepost::store::{StoreError, partitions};

use crate::support::claims::Says;
use crate::support::cluster::{Cluster, signal};
use crate::support::flow::{sign_in, signed_in, text, with_clients};
use crate::support::gatepost::{BOB_PASSWORD, Gatepost};
use crate::support::house::House;
use crate::support::http::{Answer, Browser, encode};
use crate::support::mailbox::Mailbox;
use crate::support::offline::{self, CONF1, CONF2, Party, access, refresh};
use crate::support::phone::{self, Phone};
use crate::support::postgres::{HORIZONS, TestDatabase};
use crate::support::scim::{self, Program};
use crate::support::traveller::Traveller;
use crate::support::waiting::{SOON, await_that};

const OWN_PASSWORD: &str = "a long password of one's own";
const OFFLINE: &str = "openid profile orders.read offline_access";
/// A statement that waits for a standby is cancelled after 3 s.
const WAITED: Duration = Duration::from_secs(2);
/// Less than that, and as much as a busy machine may take.
const AT_ONCE: Duration = Duration::from_millis(2_900);
/// A command that waits for a standby does so for half a minute.
const COMMAND_AT_ONCE: Duration = Duration::from_secs(10);

/// Something that ends something, as often as it is sent.
struct Ending<'a> {
    name: &'static str,
    send: Box<dyn FnMut() -> Answer + Send + 'a>,
    /// What says that it is over.
    acknowledged: (u16, &'static str),
    /// Whether it is the one thing that can end but once: what was seen confirmed is remembered.
    is_remembered: bool,
}

/// Else what the test made could not be removed.
struct BackAtLast<'a>(&'a Cluster);

impl Drop for BackAtLast<'_> {
    fn drop(&mut self) {
        self.0.await_a_standby(false);
    }
}

impl Ending<'_> {
    fn assert_it_waits_in_vain(&mut self, case: &str) {
        let began = Instant::now();
        let answer = (self.send)();
        assert_eq!(
            answer.status,
            503,
            "{}, {case}: acknowledged: {}",
            self.name,
            answer.text()
        );
        assert!(
            answer.header("retry-after").is_some() && began.elapsed() > WAITED,
            "{}, {case}: not asked",
            self.name
        );
    }

    fn assert_it_is_acknowledged(&mut self, case: &str) {
        let began = Instant::now();
        let answer = (self.send)();
        let (status, words) = self.acknowledged;
        assert_eq!(
            answer.status,
            status,
            "{}, {case}: {}",
            self.name,
            answer.text()
        );
        assert!(
            answer.text().contains(words),
            "{}, {case}: {}",
            self.name,
            answer.text()
        );
        assert!(
            began.elapsed() < AT_ONCE,
            "{}, {case}: {:?}",
            self.name,
            began.elapsed()
        );
    }
}

fn revocation<'a>(
    gatepost: &'a Gatepost,
    name: &'static str,
    party: Party,
    token: &str,
) -> Ending<'a> {
    let token = token.to_owned();
    let send = move || {
        party.post(
            &mut gatepost.connect(),
            "/connect/revocation",
            &[("token", &token)],
        )
    };
    Ending {
        name,
        send: Box::new(send),
        acknowledged: (200, ""),
        is_remembered: true,
    }
}

/// One of the account page's forms, from a browser that is signed in.
fn form<'a>(
    name: &'static str,
    mut browser: Browser,
    form: &[(&str, &str)],
    done: &'static str,
) -> Ending<'a> {
    let token = browser.get("/account").form_token();
    let fields = form
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    let fields: Vec<_> = fields
        .chain([(String::from("form_token"), token)])
        .collect();
    let send = move || {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        browser.post("/account", &fields)
    };
    Ending {
        name,
        send: Box::new(send),
        acknowledged: (200, done),
        is_remembered: false,
    }
}

/// The form behind an operator's link. Opened and sent in one browser, it is that link's one use.
fn link<'a>(house: &House, name: &'static str, command: &[&str]) -> Ending<'a> {
    let mut browser = house.gatepost.browser();
    let page = browser.visit(house.gatepost.run_well(command, "").trim());
    let phone = page
        .text()
        .contains("class=\"key\"")
        .then(|| Phone::from_page(&page, 0));
    let new = "a password of their own choosing";
    let send = move || {
        // The one of this moment: that of a minute ago is no longer looked at.
        let code = phone
            .as_ref()
            .map(|phone| phone.code(0))
            .unwrap_or_default();
        let fields = [
            ("new_password", new),
            ("new_password_again", new),
            ("code", &code),
        ];
        browser.submit(&page, &fields)
    };
    Ending {
        name,
        send: Box::new(send),
        acknowledged: (400, "cannot be used any more"),
        is_remembered: false,
    }
}

fn sids(house: &House, username: &str) -> Vec<String> {
    let sql = "SELECT sid FROM sessions s JOIN users u USING (sub) WHERE u.username = $1 ORDER BY s.created_at";
    let rows = house
        .gatepost
        .database
        .client()
        .query(sql, &[&username])
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Everything that acknowledges an ending to people and clients, each of something of its own: the
/// table of `src/store/endings.rs`, a row for a row. What ends by a command follows below.
fn endings(house: &House) -> Vec<Ending<'_>> {
    let gatepost = &house.gatepost;
    let nothing = "role=\"alert\"";
    let mut alice = signed_in(gatepost);
    let (alone, family) = (
        CONF1.tokens(gatepost, &mut alice, OFFLINE),
        CONF1.tokens(gatepost, &mut alice, OFFLINE),
    );
    CONF2.tokens(gatepost, &mut alice, OFFLINE);
    let ended = sids(house, "alice").pop().unwrap();
    let bob = |house: &House| house.signed_in("bob", BOB_PASSWORD);
    let (_elsewhere, mut here) = (bob(house), bob(house));
    let here = house.browser(&mut here).clone();
    let mut linked = house.alice();
    house.link(&mut linked, "other");
    let identity = house.identity(&mut linked, "Sign-in other");
    let linked = house.browser(&mut linked).clone();

    let mut with_an_app = house.signed_in("chloe", OWN_PASSWORD);
    let with_an_app = house.browser(&mut with_an_app);
    phone::add_app(with_an_app, 0);

    let (mut asked, mut hinted, mut from_upstream) =
        (house.alice(), house.alice(), Traveller::new());
    let token = asked.get(&house.address("/logout")).form_token();
    let mut asked = house.browser(&mut asked).clone();
    let id_token = text(&house.tokens(&mut hinted), "id_token").to_owned();
    let mut hinted = house.browser(&mut hinted).clone();
    let without_browser = text(&house.tokens(&mut house.alice()), "id_token").to_owned();
    let without_browser = format!(
        "/connect/endsession?{}",
        encode(&[("id_token_hint", &without_browser)])
    );
    house.through(&mut from_upstream, "up").unwrap();
    let logout_token = house.up.logout_token(json!({}));
    let signed_out = |name, send| Ending {
        name,
        send,
        acknowledged: (200, "<h1>You are signed out</h1>"),
        is_remembered: true,
    };
    vec![
        revocation(gatepost, "an access token", CONF1, access(&alone)),
        revocation(gatepost, "a refresh token", CONF1, refresh(&family)),
        Ending {
            is_remembered: true,
            ..form(
                "a session",
                linked.clone(),
                &[("decision", "end_session"), ("session", &ended)],
                nothing,
            )
        },
        form(
            "all other sessions",
            here,
            &[("decision", "end_others")],
            "role=\"status\"",
        ),
        form(
            "a consent",
            linked.clone(),
            &[("decision", "withdraw"), ("client_id", "conf2")],
            nothing,
        ),
        form(
            "an account elsewhere",
            linked,
            &[("decision", "unlink"), ("identity", &identity)],
            nothing,
        ),
        form(
            "a second factor",
            with_an_app.clone(),
            &[("decision", "remove_factor"), ("factor", "totp.")],
            nothing,
        ),
        link(house, "a link", &["user", "reset", "dora"]),
        link(
            house,
            "a link that enrols",
            &["user", "reset", "erin", "--enrol"],
        ),
        signed_out(
            "a sign-out",
            Box::new(move || {
                asked.post(
                    "/logout",
                    &[("form_token", &token), ("decision", "sign_out")],
                )
            }),
        ),
        signed_out(
            "a client's sign-out",
            Box::new(move || {
                hinted.get(&format!(
                    "/connect/endsession?{}",
                    encode(&[("id_token_hint", &id_token)])
                ))
            }),
        ),
        signed_out(
            "a client's sign-out without a browser",
            Box::new(move || gatepost.get(&without_browser)),
        ),
        Ending {
            name: "a logout token",
            send: Box::new(move || {
                gatepost.post(
                    "/external/up/logout",
                    &[],
                    &[("logout_token", &logout_token)],
                )
            }),
            // It was taken: that is said only once it stays so.
            acknowledged: (400, "invalid_request"),
            is_remembered: true,
        },
    ]
}

fn for_each(endings: &mut [Ending<'_>], check: impl Fn(&mut Ending<'_>) + Sync) {
    // Fewer than connections: each shall wait for the standby, not for its turn.
    for endings in endings.chunks_mut(5) {
        scope(|scope| {
            endings
                .iter_mut()
                .for_each(|ending| drop(scope.spawn(|| check(ending))))
        });
    }
}

#[test]
fn an_ending_sent_again_is_acknowledged_only_once_a_standby_has_it() {
    let cluster = Cluster::start();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let mut registered = offline::document();
    for username in ["chloe", "dora", "erin", "fred", "gina", "hugo"] {
        let user = json!({"username": username, "password": OWN_PASSWORD});
        registered["users"].as_array_mut().unwrap().push(user);
    }
    let house = House::start_over(database, registered, &json!({}), &[]);
    let mut endings = endings(&house);
    let gatepost = &house.gatepost;
    let refused = revocation(
        gatepost,
        "what nobody issued",
        CONF1,
        &format!("gpr_{}", "A".repeat(60)),
    );
    let signed_in_before = signed_in(gatepost);
    let mut of_fred = house.signed_in("fred", OWN_PASSWORD);
    let of_fred = house.browser(&mut of_fred);
    phone::add_app(of_fred, 0);
    let mut of_gina = house.signed_in("gina", OWN_PASSWORD);
    let new = "quite another long password";
    let change = [
        ("decision", "change_password"),
        ("present_password", OWN_PASSWORD),
        ("new_password", new),
        ("new_password_again", new),
    ];
    let changed_meanwhile = [
        (
            "fred",
            form(
                "a factor",
                of_fred.clone(),
                &[("decision", "remove_factor"), ("factor", "totp.")],
                "",
            ),
        ),
        (
            "gina",
            form(
                "a password",
                house.browser(&mut of_gina).clone(),
                &change,
                "",
            ),
        ),
    ];
    let mut reader = gatepost.browser();
    let opened = reader
        .visit(gatepost.run_well(&["user", "reset", "hugo"], "").trim())
        .action();
    let mut stranger = gatepost.browser();
    stranger.cookies.clone_from(&signed_in(gatepost).cookies);
    stranger
        .cookies
        .values_mut()
        .for_each(|value| *value = format!("AAAAAA{}", "B".repeat(42)));

    let _back_at_last = BackAtLast(&cluster);
    cluster.await_a_standby(true);
    for_each(&mut endings, |ending| {
        ending.assert_it_waits_in_vain("sent once")
    });
    for_each(&mut endings, |ending| {
        ending.assert_it_waits_in_vain("sent again")
    });
    for (username, ending) in changed_meanwhile {
        assert_it_waits_in_vain_when_changed_meanwhile(gatepost, username, ending);
    }
    // A refusal waits for nobody, nor does what names nothing of ours, nor who only looks.
    let began = Instant::now();
    [refused]
        .iter_mut()
        .for_each(|ending| ending.assert_it_is_acknowledged("standby away"));
    let named = [("decision", "unlink"), ("identity", "of nobody")];
    form(
        "a link that never was",
        signed_in_before,
        &named,
        "role=\"alert\"",
    )
    .assert_it_is_acknowledged("standby away");
    let used = "SET synchronous_commit = local; UPDATE users SET epoch = new_epoch() WHERE username = 'hugo'";
    gatepost.database.run(used);
    let over = |answer: Answer| answer.assert_error_page(400, "GP1810", "a link");
    over(reader.get(&opened));
    over(reader.post(&opened.replace("?r=", "?r=A"), &[]));
    over(gatepost.browser().post(&opened, &[]));
    stranger.get("/logout").assert_says("You are signed out");
    gatepost
        .browser()
        .get("/logout")
        .assert_says("You are signed out");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());

    cluster.await_a_standby(false);
    for_each(&mut endings, |ending| {
        ending.assert_it_is_acknowledged("standby back")
    });
    cluster.await_a_standby(true);
    for_each(&mut endings, |ending| match ending.is_remembered {
        true => ending.assert_it_is_acknowledged("confirmed before"),
        false => ending.assert_it_waits_in_vain("another time"),
    });
}

/// Sends it while that user is changed by somebody else, and the change is committed just before
/// the statement sees it.
fn assert_it_waits_in_vain_when_changed_meanwhile(
    gatepost: &Gatepost,
    username: &str,
    mut ending: Ending<'_>,
) {
    let change = format!(
        "SET LOCAL synchronous_commit = local;
         UPDATE users SET factors = factors + 1, epoch = new_epoch() WHERE username = '{username}'"
    );
    let waits = || ending.assert_it_waits_in_vain("changed meanwhile");
    gatepost.database.meanwhile(&change, waits);
}

/// What an operator registers for the programs and the administrator who make things below.
fn with_programs() -> Value {
    let mut registered = scim::registered();
    let push = |registered: &mut Value, list: &str, entry: Value| {
        registered[list].as_array_mut().unwrap().push(entry);
    };
    push(
        &mut registered,
        "resources",
        json!({"name": "urn:gatepost:admin"}),
    );
    for scope in ["registration.read", "registration.write"] {
        let scope = json!({"name": scope, "resources": ["urn:gatepost:admin"]});
        push(&mut registered, "resource_scopes", scope);
    }
    let boss = json!({
        "username": "boss", "password": OWN_PASSWORD, "totp": BOSS_KEY,
        "claims": {"role": "office"},
    });
    push(&mut registered, "users", boss);
    let pipeline = json!({
        "client_name": "Pipeline", "grant_types": ["client_credentials"], "response_types": [],
        "redirect_uris": [], "scope": "registration.read registration.write",
    });
    with_clients(registered, &[("pipeline", pipeline)])
}

const BOSS_KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";

/// A form of a page, sent from the browser that it was drawn for.
fn page_form<'a>(
    name: &'static str,
    mut browser: Browser,
    page: &Answer,
    fields: &[(&str, &str)],
    acknowledged: (u16, &'static str),
) -> Ending<'a> {
    let address = page.action();
    let token = page.form_token();
    let mut form = vec![(String::from("form_token"), token)];
    form.extend(
        fields
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string())),
    );
    let send = move || {
        let fields = form
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        browser.post(&address, &fields.collect::<Vec<_>>())
    };
    Ending {
        name,
        send: Box::new(send),
        acknowledged,
        is_remembered: false,
    }
}

const GONE: (u16, &str) = (400, "cannot be used any more");

/// Everything that says of something that it is there already, each of something of its own: the
/// second table of `src/store/endings.rs`.
fn makings<'a>(house: &'a House, mailbox: &Mailbox) -> Vec<Ending<'a>> {
    let gatepost = &house.gatepost;
    let hr = Program::hr(gatepost);
    let new = json!({"schemas": [scim::USER], "userName": "by.scim"});
    let own = scim::token_of(gatepost, "pipeline", "registration.read registration.write");
    let plan = json!({"tenants": [{"name": "unsaved"}]});

    let mut boss = gatepost.browser();
    let page = boss.visit("/admin");
    let asked = sign_in(&mut boss, &page, "boss", OWN_PASSWORD);
    let code = Phone::with_key(BOSS_KEY.to_owned(), 0).code(0);
    boss.submit(&asked, &[("code", &code)]).assert_status(303);
    let invite = boss.get("/admin/invite");
    let invited = [
        ("username", "newt"),
        ("name", "Newt New"),
        ("address", "newt@example.com"),
    ];

    let mut alice = signed_in(gatepost);
    let account = alice.get("/account");
    let token = account.form_token();
    let asked = [
        ("form_token", token.as_str()),
        ("decision", "change_address"),
        ("new_address", "new@example.com"),
    ];
    assert_eq!(alice.post("/account", &asked).status, 200);
    let address = alice.visit(mailbox.letter(1).link());

    let link = gatepost.run_well(&["signup", "make", "--uses", "5", "--for", "14d"], "");
    let mut joining = gatepost.browser();
    let asking = joining.visit(link.trim());
    let asked = [("address", "joined@example.com")];
    assert_eq!(joining.submit(&asking, &asked).status, 200);
    let join = joining.visit(mailbox.letter(2).link());
    let joined = [
        ("username", "joined"),
        ("new_password", OWN_PASSWORD),
        ("new_password_again", OWN_PASSWORD),
    ];

    let mut linking = house.signed_in("bob", BOB_PASSWORD);
    let callback = house.at_the_gate(&mut linking, "other");
    let question = linking.get(&callback);
    vec![
        Ending {
            name: "a user over SCIM",
            send: Box::new(move || hr.ask("POST", "Users", &new)),
            acknowledged: (409, "uniqueness"),
            is_remembered: false,
        },
        Ending {
            name: "a plan",
            send: Box::new(move || {
                let authorization = format!("Bearer {own}");
                let headers = [
                    ("Authorization", authorization.as_str()),
                    ("Content-Type", "application/json"),
                ];
                let body = plan.to_string();
                gatepost.send("POST", "/admin/plan", &headers, body.as_bytes())
            }),
            acknowledged: (200, "\"changes\":[]"),
            is_remembered: false,
        },
        page_form(
            "an invitation",
            boss,
            &invite,
            &invited,
            (200, "This user name is taken."),
        ),
        page_form("an address", alice, &address, &[], GONE),
        page_form(
            "an account by a sign-up link",
            joining,
            &join,
            &joined,
            GONE,
        ),
        Ending {
            name: "an account elsewhere",
            send: Box::new(move || house.confirm(&mut linking, &question)),
            acknowledged: (200, "role=\"status\""),
            is_remembered: false,
        },
    ]
}

#[test]
fn what_is_there_already_is_told_only_once_a_standby_has_it() {
    let cluster = Cluster::start();
    let mailbox = Mailbox::open();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let on = [
        ("GATEPOST_ADMIN_ROLE", "office"),
        ("GATEPOST_ADMIN_API", "on"),
        ("GATEPOST_SCIM", "on"),
    ];
    let settings = [&mailbox.settings()[..], &on].concat();
    let house = House::start_over(database, with_programs(), &json!({}), &settings);
    let gatepost = &house.gatepost;
    let mut makings = makings(&house, &mailbox);
    let unsaved = gatepost.private_file("unsaved", r#"{"tenants": [{"name": "unsaved"}]}"#);

    let _back_at_last = BackAtLast(&cluster);
    cluster.await_a_standby(true);
    // Done here, and told to nobody. Others change what is registered afterwards, all the same.
    let mut applying = begun(gatepost, &["apply", unsaved.to_str().unwrap()]);
    await_that("it waits for a standby", SOON, || waiting(gatepost) == 1);
    signal("INT", &[applying.id()]);
    assert_eq!(applying.wait().unwrap().code(), Some(1));
    for_each(&mut makings, |making| {
        making.assert_it_waits_in_vain("sent once")
    });
    for_each(&mut makings, |making| {
        making.assert_it_waits_in_vain("sent again")
    });
    // A page that is only looked at waits for nobody, nor does a plan that would change something.
    let began = Instant::now();
    let other = gatepost.private_file("other", r#"{"tenants": [{"name": "other"}]}"#);
    let planned = gatepost.run(&["plan", other.to_str().unwrap()], "");
    assert_eq!(planned.status.code(), Some(3), "{planned:?}");
    gatepost.run_well(&["export"], "");
    assert!(began.elapsed() < COMMAND_AT_ONCE, "{:?}", began.elapsed());

    cluster.await_a_standby(false);
    for_each(&mut makings, |making| {
        making.assert_it_is_acknowledged("standby back")
    });
    cluster.await_a_standby(true);
    for_each(&mut makings, |making| {
        making.assert_it_waits_in_vain("another time")
    });
}

/// Backends of an installation that wait for a standby.
fn waiting(gatepost: &Gatepost) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE wait_event = 'SyncRep' AND application_name = $1";
    let database = &gatepost.database;
    let row = database.client().query_one(sql, &[&database.schema]);
    row.unwrap().get(0)
}

/// How a command ended, and what it said.
fn ended(command: Child) -> (Option<i32>, String) {
    let output = command.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_command_ends_its_wait_for_a_standby_and_tells_how() {
    let cluster = Cluster::start();
    let gatepost = Gatepost::prepare_over(TestDatabase::empty_in(cluster.url.clone()), &[]);
    gatepost.apply(&offline::document());
    let database = &gatepost.database;
    let store = database.store();
    let _back_at_last = BackAtLast(&cluster);
    cluster.await_a_standby(true);
    let done = (Some(1), "done on this database; no standby has it");
    let assert_told = |command: Child, (code, words): (Option<i32>, &str), case: &str| {
        let (ended_with, said) = ended(command);
        assert!(ended_with == code && said.contains(words), "{case}: {said}");
        await_that("nothing waits any more", SOON, || waiting(&gatepost) == 0);
    };

    // Half a minute after its commit.
    let began = Instant::now();
    assert_told(begun(&gatepost, &["user", "disable", "bob"]), done, "late");
    let took = began.elapsed();
    assert!((29..40).contains(&took.as_secs()), "{took:?}");
    assert!(!enabled(&gatepost, "bob"), "it is done here");

    // As soon as it is interrupted; then nobody holds the registry's lock.
    for (signal_name, command) in [("INT", "enable"), ("TERM", "disable")] {
        let waiting_command = begun(&gatepost, &["user", command, "bob"]);
        await_that("it waits for a standby", SOON, || waiting(&gatepost) == 1);
        let began = Instant::now();
        signal(signal_name, &[waiting_command.id()]);
        assert_told(waiting_command, done, signal_name);
        assert!(began.elapsed() < COMMAND_AT_ONCE, "{:?}", began.elapsed());
        assert_eq!(enabled(&gatepost, "bob"), command == "enable");
    }

    // Before its commit.
    let mut other = database.client();
    let backend: i32 = other
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);
    let mut changing = other.transaction().unwrap();
    changing
        .batch_execute("SELECT FROM users FOR UPDATE")
        .unwrap();
    let early = begun(&gatepost, &["user", "enable", "bob"]);
    await_that("it waits for a row", SOON, || {
        !database.waiting_behind(backend).is_empty()
    });
    signal("INT", &[early.id()]);
    assert_told(early, (Some(1), "nothing was done"), "early");
    changing.rollback().unwrap();
    assert!(!enabled(&gatepost, "bob"));

    // A server's upkeep leaves the lead to whoever applies a document.
    let began = Instant::now();
    let today = database.today();
    let kept = partitions::maintain(&store, &HORIZONS, Day(today.0 + 60));
    assert_eq!(kept.unwrap_err(), StoreError::Unacknowledged);
    assert!(began.elapsed() < AT_ONCE * 2, "{:?}", began.elapsed());
    database.run("SELECT FROM leader FOR UPDATE NOWAIT; ROLLBACK");

    // Without an answer.
    let lost = begun(&gatepost, &["user", "enable", "bob"]);
    await_that("it waits for a standby", SOON, || waiting(&gatepost) == 1);
    let frozen = cluster.freeze();
    signal("TERM", &[lost.id()]);
    let (code, said) = ended(lost);
    drop(frozen);
    assert!(code == Some(1) && said.contains("may be done"), "{said}");
}

fn enabled(gatepost: &Gatepost, username: &str) -> bool {
    let sql = "SELECT enabled FROM users WHERE username = $1";
    let row = gatepost.database.client().query_one(sql, &[&username]);
    row.unwrap().get(0)
}

#[test]
fn a_change_that_takes_long_before_its_commit_is_not_cut() {
    let gatepost = Gatepost::prepare(&[]);
    gatepost.database.run(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(35); RETURN NEW; END';
         CREATE TRIGGER slow BEFORE INSERT ON catalogue_entries
         FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    gatepost.apply(&json!({"tenants": [{"name": "acme"}]}));
}

fn begun(gatepost: &Gatepost, arguments: &[&str]) -> Child {
    let mut command = gatepost.command();
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_command_that_finds_it_done_says_so_only_once_a_standby_has_it() {
    let cluster = Cluster::start();
    let mailbox = Mailbox::open();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let mut gatepost = Gatepost::prepare_over(database, &mailbox.settings());
    gatepost.apply(&offline::document());
    gatepost.serve();
    CONF1.tokens(&gatepost, &mut signed_in(&gatepost), OFFLINE);
    let listed: Value =
        serde_json::from_str(&gatepost.run_well(&["grant", "list", "--json"], "")).unwrap();
    let (grant, sid) = (text(&listed[0], "grant"), text(&listed[0], "sid"));
    let ended: [&[&str]; 3] = [
        &["grant", "revoke", grant],
        &["session", "end", sid],
        &["user", "disable", "bob"],
    ];
    ended
        .iter()
        .for_each(|command| drop(gatepost.run_well(command, "")));
    let as_it_is = gatepost.private_file("as-it-is", &gatepost.run_well(&["export"], ""));
    gatepost.run_well(&["signup", "make", "--uses", "5", "--for", "14d"], "");
    let listed: Value =
        serde_json::from_str(&gatepost.run_well(&["signup", "list", "--json"], "")).unwrap();
    let link_id = text(&listed[0], "id");
    gatepost.run_well(&["signup", "end", link_id], "");
    let missing: [&[&str]; 9] = [
        &["migrate"],
        &["plan", as_it_is.to_str().unwrap()],
        &["user", "add", "alice", "--no-password"],
        &["signup", "end", link_id],
        &[
            "user",
            "unlink",
            "alice",
            "--issuer",
            "https://elsewhere.example",
            "--subject",
            "s",
        ],
        &["user", "factors", "alice", "--remove", "totp."],
        &["user", "remove", "nobody", "--yes"],
        &["client", "remove", "nothing", "--yes"],
        &["key", "retire", "nothing", "--yes"],
    ];

    let _back_at_last = BackAtLast(&cluster);
    cluster.await_a_standby(true);
    // A command is more patient than a request: half a minute.
    let commands = [&ended[..2], &missing[..]].concat();
    let begun_at_once: Vec<_> = commands
        .into_iter()
        .map(|command| (command, begun(&gatepost, command)))
        .collect();
    for (command, waiting) in begun_at_once {
        let output = waiting.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command:?}: {said}");
        assert!(said.contains("standby"), "{command:?}: {said}");
    }
    for command in [ended[2], &["apply", as_it_is.to_str().unwrap()]] {
        let mut waiting = begun(&gatepost, command);
        sleep(WAITED);
        assert!(
            waiting.try_wait().unwrap().is_none(),
            "{command:?} does not wait"
        );
        cluster.await_a_standby(false);
        await_that("the command ends", SOON, || {
            waiting.try_wait().unwrap().is_some()
        });
        let output = waiting.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        cluster.await_a_standby(true);
    }
    // Whoever ends the wait gets what looks like success.
    let mut waiting = begun(&gatepost, &["user", "enable", "bob"]);
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let mut client = gatepost.database.client();
    await_that("its wait is ended", SOON, || {
        !client.query(cancel, &[]).unwrap().is_empty()
    });
    await_that("the command ends", SOON, || {
        waiting.try_wait().unwrap().is_some()
    });
    let output = waiting.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    said.assert_says("standby");
}
