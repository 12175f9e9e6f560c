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
use crate::support::http::{Answer, Browser};
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

const REMOVAL: [(&str, &str); 2] = [("decision", "remove_factor"), ("factor", "totp.")];

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

impl<'a> Ending<'a> {
    /// What answers so once it is over.
    fn of(
        name: &'static str,
        acknowledged: (u16, &'static str),
        send: impl FnMut() -> Answer + Send + 'a,
    ) -> Ending<'a> {
        Ending {
            name,
            send: Box::new(send),
            acknowledged,
            is_remembered: false,
        }
    }

    fn remembered(mut self) -> Ending<'a> {
        self.is_remembered = true;
        self
    }

    fn assert_it_waits_in_vain(&mut self, case: &str) {
        let began = Instant::now();
        let answer = (self.send)();
        let case = format!("{}, {case}", self.name);
        answer.assert_status_for(&case, 503);
        let was_asked = answer.header("retry-after").is_some() && began.elapsed() > WAITED;
        assert!(was_asked, "{case}: not asked");
    }

    fn assert_it_is_acknowledged(&mut self, case: &str) {
        let began = Instant::now();
        let answer = (self.send)();
        let case = format!("{}, {case}", self.name);
        let (status, words) = self.acknowledged;
        answer.assert_status_for(&case, status);
        answer.assert_says_for(&case, words);
        let took = began.elapsed();
        assert!(took < AT_ONCE, "{case}: {took:?}");
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
        let mut connection = gatepost.connect();
        party.post(&mut connection, "/connect/revocation", &[("token", &token)])
    };
    Ending::of(name, (200, ""), send).remembered()
}

/// One of the account page's forms, from a browser that is signed in.
fn form<'a>(
    name: &'static str,
    mut browser: Browser,
    form: &[(&str, &str)],
    done: &'static str,
) -> Ending<'a> {
    let page = browser.get("/account");
    form_of(name, browser, "/account", &page, form, (200, done))
}

/// The form behind an operator's link. Opened and sent in one browser, it is that link's one use.
fn link<'a>(house: &House, name: &'static str, command: &[&str]) -> Ending<'a> {
    let mut browser = house.gatepost.browser();
    let page = browser.visit(house.gatepost.run_well(command, "").trim());
    let has_key = page.text().contains("class=\"key\"");
    let phone = has_key.then(|| Phone::from_page(&page, 0));
    let new = "a password of their own choosing";
    let send = move || {
        // The one of this moment: that of a minute ago is no longer looked at.
        let code = phone.as_ref().map(|phone| phone.code(0));
        let code = ("code", &*code.unwrap_or_default());
        let fields = [("new_password", new), ("new_password_again", new), code];
        browser.submit(&page, &fields)
    };
    Ending::of(name, GONE, send)
}

fn sids(house: &House, username: &str) -> Vec<String> {
    let sql = "SELECT sid FROM sessions s JOIN users u USING (sub) WHERE u.username = $1 ORDER BY s.created_at";
    let mut client = house.gatepost.database.client();
    let rows = client.query(sql, &[&username]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Everything that acknowledges an ending to people and clients, each of something of its own: the
/// table of `src/store/endings.rs`, a row for a row. What ends by a command follows below.
fn endings(house: &House) -> Vec<Ending<'_>> {
    let gatepost = &house.gatepost;
    let nothing = "role=\"alert\"";
    let mut alice = signed_in(gatepost);
    let alone = CONF1.tokens(gatepost, &mut alice, OFFLINE);
    let family = CONF1.tokens(gatepost, &mut alice, OFFLINE);
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
    let hinting = |id_token: &str| format!("/connect/endsession?id_token_hint={id_token}");
    let (hint, without_browser) = (hinting(&id_token), hinting(&without_browser));
    house.through(&mut from_upstream, "up").unwrap();
    let logout_token = house.up.logout_token(json!({}));
    let signed_out = (200, "<h1>You are signed out</h1>");
    let end_session = [("decision", "end_session"), ("session", &*ended)];
    let withdraw = [("decision", "withdraw"), ("client_id", "conf2")];
    let unlink = [("decision", "unlink"), ("identity", &*identity)];
    let other_sessions = [("decision", "end_others")];
    let enrol = ["user", "reset", "erin", "--enrol"];
    let sign_out = move || {
        let form = [("form_token", &*token), ("decision", "sign_out")];
        asked.post("/logout", &form)
    };
    let tell = move || {
        let form = [("logout_token", &*logout_token)];
        gatepost.post("/external/up/logout", &[], &form)
    };
    let silently = move || gatepost.get(&without_browser);
    vec![
        revocation(gatepost, "an access token", CONF1, access(&alone)),
        revocation(gatepost, "a refresh token", CONF1, refresh(&family)),
        form("a session", linked.clone(), &end_session, nothing).remembered(),
        form(
            "all other sessions",
            here,
            &other_sessions,
            "role=\"status\"",
        ),
        form("a consent", linked.clone(), &withdraw, nothing),
        form("an account elsewhere", linked, &unlink, nothing),
        form("a second factor", with_an_app.clone(), &REMOVAL, nothing),
        link(house, "a link", &["user", "reset", "dora"]),
        link(house, "a link that enrols", &enrol),
        Ending::of("a sign-out", signed_out, sign_out).remembered(),
        Ending::of("a client's sign-out", signed_out, move || hinted.get(&hint)).remembered(),
        Ending::of(
            "a client's sign-out without a browser",
            signed_out,
            silently,
        )
        .remembered(),
        // It was taken: that is said only once it stays so.
        Ending::of("a logout token", (400, "invalid_request"), tell).remembered(),
    ]
}

fn for_each(endings: &mut [Ending<'_>], check: impl Fn(&mut Ending<'_>) + Sync) {
    // Fewer than connections: each shall wait for the standby, not for its turn.
    for endings in endings.chunks_mut(5) {
        scope(|scope| {
            for ending in endings {
                scope.spawn(|| check(ending));
            }
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
    let unknown = format!("gpr_{}", "A".repeat(60));
    let mut refused = revocation(gatepost, "what nobody issued", CONF1, &unknown);
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
    let of_gina = house.browser(&mut of_gina).clone();
    let changed_meanwhile = [
        ("fred", form("a factor", of_fred.clone(), &REMOVAL, "")),
        ("gina", form("a password", of_gina, &change, "")),
    ];
    let mut reader = gatepost.browser();
    let opened = gatepost.run_line("user reset hugo");
    let opened = reader.visit(opened.trim()).action();
    let mut stranger = gatepost.browser();
    stranger.cookies.clone_from(&signed_in(gatepost).cookies);
    for value in stranger.cookies.values_mut() {
        *value = format!("AAAAAA{}", "B".repeat(42));
    }

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
    refused.assert_it_is_acknowledged("standby away");
    let named = [("decision", "unlink"), ("identity", "of nobody")];
    let nothing = "role=\"alert\"";
    let mut never = form("a link that never was", signed_in_before, &named, nothing);
    never.assert_it_is_acknowledged("standby away");
    let used = "SET synchronous_commit = local; UPDATE users SET epoch = new_epoch() WHERE username = 'hugo'";
    gatepost.database.run(used);
    let over = |answer: Answer| answer.assert_error_page(400, "GP1810", "a link");
    over(reader.get(&opened));
    over(reader.post(&opened.replace("?r=", "?r=A"), &[]));
    over(gatepost.browser().post(&opened, &[]));
    for mut browser in [stranger, gatepost.browser()] {
        browser.get("/logout").assert_says("You are signed out");
    }
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
    let resource = json!({"name": "urn:gatepost:admin"});
    push(&mut registered, "resources", resource);
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
fn form_of<'a>(
    name: &'static str,
    mut browser: Browser,
    address: &str,
    page: &Answer,
    fields: &[(&str, &str)],
    acknowledged: (u16, &'static str),
) -> Ending<'a> {
    let (address, token) = (address.to_owned(), page.form_token());
    let fields = [&[("form_token", &*token)], fields].concat();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let form = Vec::from_iter(fields.into_iter().map(owned));
    Ending::of(name, acknowledged, move || {
        let fields = form.iter().map(|(name, value)| (&**name, &**value));
        browser.post(&address, &fields.collect::<Vec<_>>())
    })
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
    let name = ("name", "Newt New");
    let invited = [("username", "newt"), name, ("address", "newt@example.com")];

    let mut alice = signed_in(gatepost);
    let account = alice.get("/account");
    let asked = [
        ("decision", "change_address"),
        ("new_address", "new@example.com"),
    ];
    let asked = alice.submit_to("/account", &account, &asked);
    asked.assert_status(200);
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
    let taken = (200, "This user name is taken.");
    let by_scim = move || hr.ask("POST", "Users", &new);
    let planned = move || {
        let authorization = format!("Bearer {own}");
        let json = ("Content-Type", "application/json");
        let headers = [("Authorization", &*authorization), json];
        gatepost.send("POST", "/admin/plan", &headers, plan.to_string().as_bytes())
    };
    let confirm = move || house.confirm(&mut linking, &question);
    let by_link = "an account by a sign-up link";
    vec![
        Ending::of("a user over SCIM", (409, "uniqueness"), by_scim),
        Ending::of("a plan", (200, "\"changes\":[]"), planned),
        form_of(
            "an invitation",
            boss,
            &invite.action(),
            &invite,
            &invited,
            taken,
        ),
        form_of("an address", alice, &address.action(), &address, &[], GONE),
        form_of(by_link, joining, &join.action(), &join, &joined, GONE),
        Ending::of("an account elsewhere", (200, "role=\"status\""), confirm),
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
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
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
    let backend = other.query_one("SELECT pg_backend_pid()", &[]);
    let backend: i32 = backend.unwrap().get(0);
    let mut changing = other.transaction().unwrap();
    let held = "SELECT FROM users FOR UPDATE";
    changing.batch_execute(held).unwrap();
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
    let command = command.args(arguments).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
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
    let listed = gatepost.shown("grant list --json");
    let (grant, sid) = (text(&listed[0], "grant"), text(&listed[0], "sid"));
    let ended = [
        format!("grant revoke {grant}"),
        format!("session end {sid}"),
        String::from("user disable bob"),
    ];
    for command in &ended {
        gatepost.run_line(command);
    }
    let as_it_is = gatepost.private_file("as-it-is", &gatepost.run_well(&["export"], ""));
    gatepost.run_well(&["signup", "make", "--uses", "5", "--for", "14d"], "");
    let listed = gatepost.shown("signup list --json");
    let link_id = text(&listed[0], "id");
    gatepost.run_well(&["signup", "end", link_id], "");
    let (as_it_is, elsewhere) = (as_it_is.display(), "https://elsewhere.example");
    let missing = format!(
        "migrate
         plan {as_it_is}
         user add alice --no-password
         signup end {link_id}
         user unlink alice --issuer {elsewhere} --subject s
         user factors alice --remove totp.
         user remove nobody --yes
         client remove nothing --yes
         key retire nothing --yes"
    );
    let begin = |line: &str| begun(&gatepost, &Vec::from_iter(line.trim().split(' ')));

    let _back_at_last = BackAtLast(&cluster);
    cluster.await_a_standby(true);
    // A command is more patient than a request: half a minute.
    let commands = missing.lines().chain(ended[..2].iter().map(String::as_str));
    let begun_at_once = Vec::from_iter(commands.map(|command| (command, begin(command))));
    for (command, waiting) in begun_at_once {
        let output = waiting.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command:?}: {said}");
        assert!(said.contains("standby"), "{command:?}: {said}");
    }
    for command in [&*ended[2], &format!("apply {as_it_is}")] {
        let mut waiting = begin(command);
        sleep(WAITED);
        let is_over = waiting.try_wait().unwrap().is_some();
        assert!(!is_over, "{command:?} does not wait");
        cluster.await_a_standby(false);
        await_that("the command ends", SOON, || {
            waiting.try_wait().unwrap().is_some()
        });
        let output = waiting.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
        cluster.await_a_standby(true);
    }
    // Whoever ends the wait gets what looks like success.
    let mut waiting = begin("user enable bob");
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
