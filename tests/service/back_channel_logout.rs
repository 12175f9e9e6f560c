//! Back-channel logout: every end of a session is told to the clients that had a part in it, once
//! each, whatever befalls them or us meanwhile; and nobody else's server is ever asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;

use gatepost::store::audit_events::AuditEvent;
use gatepost::tool::statements::everything_revoked;
use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{
    access_token, authorize_path, code, decode_jwt, sign_in, signed_in, text, tokens, userinfo,
    with_clients, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Browser, ask_alone, free_address, free_port};
use crate::support::jwt::verified;
use crate::support::postgres::TestDatabase;
use crate::support::waiting::{SOON, await_that};

/// How a client answers.
#[derive(Clone, Debug)]
enum Manner {
    Status(u16),
    /// To somewhere else.
    Redirect(String),
    /// Not before it is too late.
    Slow,
}

/// A client's server: it writes down what it is told.
#[derive(Clone)]
struct Receiver {
    port: u16,
    manner: Arc<Mutex<Manner>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn start(manner: Manner) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = Receiver {
            port,
            manner: Arc::new(Mutex::new(manner)),
            told: Arc::default(),
        };
        let server = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.answer(stream));
            }
        });
        receiver
    }

    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                break;
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split_once("content-length: ")
            .map_or("0", |(_, rest)| rest.split("\r\n").next().unwrap());
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        self.told.lock().unwrap().push(format!("{head}{body}"));
        let manner = self.manner.lock().unwrap().clone();
        let answer = match manner {
            Manner::Status(status) => {
                format!("HTTP/1.1 {status} So\r\nContent-Length: 2\r\n\r\nok")
            }
            Manner::Redirect(to) => {
                format!("HTTP/1.1 307 There\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
            }
            Manner::Slow => {
                sleep(Duration::from_secs(7));
                String::from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        };
        // Whoever asked may have given up.
        drop(reader.get_mut().write_all(answer.as_bytes()));
    }

    fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/logged/out?from=gatepost", self.port)
    }

    fn calls(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    fn requests(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// The tokens it was told, checked as a client checks them; there are this many, and soon.
    fn tokens(&self, gatepost: &Gatepost, count: usize) -> Vec<Value> {
        await_that("calls", SOON, || self.calls() >= count);
        let requests = self.requests();
        assert_eq!(requests.len(), count, "{requests:?}");
        let tokens = requests
            .iter()
            .map(|request| logout_token(gatepost, request));
        tokens.collect()
    }
}

/// Time enough for a call that must not be made.
fn await_nothing() {
    sleep(Duration::from_millis(2_200));
}

/// The claims in a request, whose shape and signature must be right.
fn logout_token(gatepost: &Gatepost, request: &str) -> Value {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let line = "POST /logged/out?from=gatepost HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    let content_type = "\r\ncontent-type: application/x-www-form-urlencoded";
    head.to_ascii_lowercase().assert_says(content_type);
    let token = body.strip_prefix("logout_token=").unwrap();
    let (header, claims) = verified(gatepost, token);
    assert_eq!(header["typ"], "logout+jwt");
    claims.assert_members("aud events exp iat iss jti sid sub");
    assert_eq!(claims["iss"], json!(gatepost.base_url));
    let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    assert_eq!(claims["events"], events);
    let [issued, expires] = ["iat", "exp"].map(|name| claims[name].as_i64().unwrap());
    assert_eq!(expires - issued, 120);
    assert!(claims["jti"].as_str().unwrap().len() >= 22);
    claims
}

const ALLOWED: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");

fn told_at(receiver: &Receiver) -> Value {
    json!({"backchannel_logout_uri": receiver.uri(), "backchannel_logout_session_required": true})
}

/// One client `told`, with a server that answers 200.
fn scene() -> (Gatepost, Receiver) {
    let receiver = Receiver::start(Manner::Status(200));
    let document = with_clients(document(), &[("told", told_at(&receiver))]);
    (Gatepost::start_with(&document, &[ALLOWED]), receiver)
}

fn sign_out(browser: &mut Browser) {
    let page = browser.get("/logout");
    let answer = browser.submit(&page, &[("decision", "sign_out")]);
    answer.assert_says("You are signed out");
}

fn on_account_page(browser: &mut Browser, form: &[(&str, &str)]) {
    let page = browser.get("/account");
    let answer = browser.submit_to("/account", &page, form);
    answer.assert_status(200);
    answer.assert_says_not("role=\"alert\"");
}

fn sid(tokens: &Value) -> String {
    let (_, claims) = decode_jwt(text(tokens, "id_token"));
    text(&claims, "sid").to_owned()
}

/// Tries, whether told, and whether another try is to come, by client.
fn queue(gatepost: &Gatepost) -> BTreeMap<String, (i32, bool, bool)> {
    let sql =
        "SELECT client_id, tries, notified_at IS NOT NULL, due_at IS NOT NULL FROM session_clients";
    let rows = gatepost.database.client().query(sql, &[]).unwrap();
    let rows = rows.iter();
    rows.map(|row| (row.get(0), (row.get(1), row.get(2), row.get(3))))
        .collect()
}

/// Waits until the entry of the client `told` is so.
fn await_entry(gatepost: &Gatepost, entry: (i32, bool, bool)) {
    await_that("the entry", SOON, || queue(gatepost)["told"] == entry);
}

fn hurry(gatepost: &Gatepost) {
    let due = "UPDATE session_clients SET due_at = clock_timestamp() WHERE due_at IS NOT NULL";
    gatepost.run_sql(due);
}

#[test]
fn a_client_is_told_once_by_a_token_that_its_keys_verify() {
    let receivers = [(); 3].map(|()| Receiver::start(Manner::Status(204)));
    let with_alg = |receiver: &Receiver, alg: &str| {
        let mut client = told_at(receiver);
        client["id_token_signed_response_alg"] = json!(alg);
        client
    };
    let clients = [
        ("rsa", told_at(&receivers[0])),
        ("curve", with_alg(&receivers[1], "ES256")),
        ("edwards", with_alg(&receivers[2], "EdDSA")),
        ("unused", told_at(&receivers[0])),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[ALLOWED]);
    let mut browser = signed_in(&gatepost);
    let mut elsewhere = signed_in(&gatepost);
    code(&mut elsewhere, &authorize_path("rsa", RP1, &[]));
    let used = ["rsa", "curve", "edwards"];
    let gave = used.map(|client_id| tokens(&gatepost, &mut browser, client_id, "openid"));
    sign_out(&mut browser);
    let mut ids = Vec::new();
    for (receiver, (client_id, gave)) in receivers.iter().zip(used.iter().zip(&gave)) {
        let claims = &receiver.tokens(&gatepost, 1)[0];
        let id_token = decode_jwt(text(gave, "id_token")).1;
        assert_eq!(claims["sid"], id_token["sid"]);
        assert_eq!(claims["sub"], id_token["sub"]);
        assert_eq!(claims["aud"], *client_id);
        ids.push(claims["jti"].clone());
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    await_nothing();
    assert!(receivers.iter().all(|receiver| receiver.calls() == 1));
    // A token that says that something is over opens nothing, and is called no hint.
    let request = receivers[0].requests().remove(0);
    let token = request.split_once("logout_token=").unwrap().1;
    let hint = gatepost.get(&format!("/connect/endsession?id_token_hint={token}"));
    hint.assert_error_page(400, "GP1128", "a logout token as a hint");
    userinfo(&gatepost, token).assert_status(401);
    let explained = gatepost.run(&["explain", "-"], token);
    assert!(!explained.status.success(), "{explained:?}");
    String::from_utf8_lossy(&explained.stdout).assert_says("GP1128");
}

#[test]
fn every_end_of_a_session_is_told_and_nothing_else_is() {
    let (gatepost, receiver) = scene();
    let mut before = 0;
    let mut is_told = |what: &str, expected: usize, end: &mut dyn FnMut(&mut Browser, &Value)| {
        // Sessions of the cases before live on.
        gatepost.database.run("DELETE FROM session_clients");
        let mut browser = signed_in(&gatepost);
        let gave = tokens(&gatepost, &mut browser, "told", "openid");
        end(&mut browser, &gave);
        if expected == 0 {
            await_nothing();
        }
        let claims = receiver.tokens(&gatepost, before + expected);
        for claims in &claims[before..] {
            assert_eq!(claims["sid"], sid(&gave), "{what}");
        }
        before += expected;
    };
    let run = |line: &str| drop(gatepost.run_line(line));
    // What ends no session.
    let anew = "the same person signs in anew, and tokens end";
    is_told(anew, 0, &mut |browser, gave| {
        let page = browser.visit(&authorize_path("told", RP1, &[("prompt", "login")]));
        sign_in(browser, &page, "alice", ALICE_PASSWORD);
        let again = tokens(&gatepost, browser, "told", "openid");
        assert_eq!(sid(&again), sid(gave));
        access_token(&gatepost, browser, "openid");
        gatepost.run_sql("UPDATE grants SET revoked_at = now()");
        let expire = "expires_at = clock_timestamp() - interval '1 second'";
        gatepost.run_sql(&format!("UPDATE sessions SET {expire}"));
        run("user revoke bob");
        run("client revoke conf1");
    });
    // What does.
    is_told("sign-out here", 1, &mut |browser, _| sign_out(browser));
    let hinted = |gave: &Value| {
        let hint = text(gave, "id_token");
        format!("/connect/endsession?id_token_hint={hint}")
    };
    is_told("sign-out by the client", 1, &mut |browser, gave| {
        browser.get(&hinted(gave)).assert_status(200);
    });
    is_told("sign-out, server to server", 1, &mut |_, gave| {
        gatepost.get(&hinted(gave)).assert_status(200);
    });
    is_told("somebody else signs in", 1, &mut |browser, _| {
        let page = browser.visit(&authorize_path("told", RP1, &[("prompt", "login")]));
        assert_eq!(sign_in(browser, &page, "bob", BOB_PASSWORD).status, 303);
    });
    is_told("their account's page, from elsewhere", 1, &mut |_, gave| {
        let mut elsewhere = signed_in(&gatepost);
        let sid = sid(gave);
        let end = [("decision", "end_session"), ("session", sid.as_str())];
        on_account_page(&mut elsewhere, &end);
    });
    let by_hand = "another password by their own hand, from elsewhere";
    is_told(by_hand, 1, &mut |_, _| {
        let mut elsewhere = signed_in(&gatepost);
        code(&mut elsewhere, &authorize_path("told", RP1, &[]));
        let form = [
            ("decision", "change_password"),
            ("present_password", ALICE_PASSWORD),
            ("new_password", "a new password of hers"),
            ("new_password_again", "a new password of hers"),
        ];
        gatepost.run_sql("CREATE TABLE kept AS SELECT sub, password_hash FROM users");
        on_account_page(&mut elsewhere, &form);
        let silently = authorize_path("told", RP1, &[("prompt", "none")]);
        elsewhere.get(&silently).assert_carries("code");
        // For the sign-ins that follow.
        gatepost.database.run(
            "UPDATE users u SET password_hash = k.password_hash FROM kept k WHERE k.sub = u.sub",
        );
    });
    is_told("session end", 1, &mut |_, gave| {
        run(&format!("session end {}", sid(gave)))
    });
    is_told("user revoke", 1, &mut |_, _| run("user revoke alice"));
    is_told("another password", 1, &mut |_, _| {
        gatepost.run_well(&["user", "password", "alice"], ALICE_PASSWORD);
    });
    is_told("user disable", 1, &mut |_, _| run("user disable alice"));
    run("user enable alice");
    is_told("a user is disabled by apply", 1, &mut |_, _| {
        let mut document = with_clients(document(), &[("told", told_at(&receiver))]);
        document["users"][0]["enabled"] = json!(false);
        gatepost.apply(&document);
    });
    run("user enable alice");
    is_told("user remove", 1, &mut |_, _| run("user remove alice"));
}

#[test]
fn a_client_that_is_revoked_is_told_of_its_sessions_and_again_of_what_follows() {
    let (gatepost, receiver) = scene();
    let mut browser = signed_in(&gatepost);
    let gave = tokens(&gatepost, &mut browser, "told", "openid");
    gatepost.run_well(&["client", "revoke", "told"], "");
    assert_eq!(receiver.tokens(&gatepost, 1)[0]["sid"], sid(&gave));
    await_entry(&gatepost, (1, true, false));
    // The session goes on: when it is used to sign in there again, its end is news.
    for _ in 0..2 {
        code(&mut browser, &authorize_path("told", RP1, &[]));
        assert_eq!(queue(&gatepost)["told"], (0, false, false));
    }
    sign_out(&mut browser);
    assert_eq!(receiver.tokens(&gatepost, 2)[1]["sid"], sid(&gave));
    // What is disabled hears of it, too; what is gone has no address any more.
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &authorize_path("told", RP1, &[]));
    let told = with_members(told_at(&receiver), &json!({"enabled": false}));
    gatepost.apply(&with_clients(document(), &[("told", told)]));
    receiver.tokens(&gatepost, 3);
}

#[test]
fn a_client_that_fails_is_tried_three_times_and_holds_up_nobody() {
    let elsewhere = Receiver::start(Manner::Status(200));
    let well = Receiver::start(Manner::Status(200));
    let broken = Receiver::start(Manner::Status(500));
    let slow = Receiver::start(Manner::Slow);
    let moved = Receiver::start(Manner::Redirect(elsewhere.uri()));
    let down = free_port();
    let down = json!({"backchannel_logout_uri": format!("http://127.0.0.1:{down}/")});
    let front = json!({"frontchannel_logout_uri": "https://rp1.example/out"});
    let clients = [
        ("broken", told_at(&broken)),
        ("down", down),
        ("front", front),
        ("moved", told_at(&moved)),
        ("slow", told_at(&slow)),
        ("well", told_at(&well)),
    ];
    let document = with_clients(document(), &clients);
    let admin = free_address();
    let gatepost = Gatepost::start_with(&document, &[ALLOWED, ("GATEPOST_ADMIN_LISTEN", &admin)]);
    let mut browser = signed_in(&gatepost);
    for (client_id, _) in &clients {
        code(&mut browser, &authorize_path(client_id, RP1, &[]));
    }
    sign_out(&mut browser);
    await_that("call to the slow one", SOON, || slow.calls() == 1);
    // Everybody else is served meanwhile, and told.
    well.tokens(&gatepost, 1);
    let token = access_token(&gatepost, &mut signed_in(&gatepost), "openid");
    userinfo(&gatepost, &token).assert_status(200);
    let failing = ["broken", "down", "moved", "slow"];
    let all = |state: (i32, bool, bool)| {
        let queue = queue(&gatepost);
        failing.iter().all(|client_id| queue[*client_id] == state)
            && queue["well"] == (1, true, false)
            && queue["front"] == (1, false, false)
    };
    await_that("failures", SOON, || {
        gatepost.log().matches("(try 1 of 3)").count() == failing.len()
    });
    assert!(all((1, false, true)), "{:?}", queue(&gatepost));
    let minutes =
        "SELECT bool_and(due_at BETWEEN clock_timestamp() + interval '40 s' AND clock_timestamp() + interval '60 s')
                   FROM session_clients WHERE due_at IS NOT NULL";
    assert!(gatepost.database.value::<bool>(minutes, &[]));
    // The slow one need not be waited for again.
    slow.behave(Manner::Status(404));
    for (tries, state) in [(2, (2, false, true)), (3, (3, false, false))] {
        hurry(&gatepost);
        // Entered before the call is made.
        await_that("tries", SOON, || {
            all(state) && [&broken, &moved, &slow].map(Receiver::calls) == [tries; 3]
        });
    }
    hurry(&gatepost);
    await_nothing();
    assert_eq!([&broken, &moved, &slow].map(Receiver::calls), [3; 3]);
    assert_eq!((well.calls(), elsewhere.calls()), (1, 0));
    let log = gatepost.log();
    log.assert_says("back-channel logout of client broken failed (try 3 of 3): it answered 500");
    assert!(!log.contains("eyJ"), "no token is logged");
    let (_, metrics) = ask_alone(&admin, "GET /metrics");
    let failing = failing.len();
    for (outcome, count) in [("told", 1), ("failed", 2 * failing), ("given_up", failing)] {
        let line = format!("gatepost_backchannel_logouts_total{{outcome=\"{outcome}\"}} {count}\n");
        metrics.assert_says(&line);
    }
}

#[test]
fn a_client_that_answers_nobody_and_has_much_to_hear_holds_up_itself() {
    let well = Receiver::start(Manner::Status(200));
    let slow = Receiver::start(Manner::Slow);
    let clients = [("slow", told_at(&slow)), ("well", told_at(&well))];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[ALLOWED]);
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &authorize_path("well", RP1, &[]));
    let due = "INSERT INTO session_clients (day, sid, client_id, sub, due_at)
               SELECT day, sid || number, 'slow', sub, clock_timestamp() FROM sessions, generate_series(1, 3000) AS number";
    gatepost.database.run(due);
    await_that("calls to the slow one", SOON, || slow.calls() > 0);
    sign_out(&mut browser);
    await_that("call to the other", SOON, || well.calls() == 1);
    // One handful when it signed out, another with it.
    assert!(slow.calls() <= 16, "{}", slow.calls());
}

#[test]
fn an_address_of_ones_own_network_is_not_called_unless_allowed() {
    let receiver = Receiver::start(Manner::Status(200));
    let by_name = json!({"backchannel_logout_uri": format!("http://localhost:{}/", receiver.port)});
    let link_local = json!({"backchannel_logout_uri": "https://169.254.169.254/latest/meta-data/"});
    let private = json!({"backchannel_logout_uri": "https://10.0.0.1/"});
    let clients = [
        ("told", told_at(&receiver)),
        ("named", by_name),
        ("link-local", link_local),
        ("private", private),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    for (client_id, _) in &clients {
        code(&mut browser, &authorize_path(client_id, RP1, &[]));
    }
    sign_out(&mut browser);
    let refusal = "GATEPOST_OUTBOUND_ALLOW does not name it";
    await_that("refusals", SOON, || {
        gatepost.log().matches(refusal).count() == 4
    });
    for (client_id, row) in queue(&gatepost) {
        assert_eq!(row, (1, false, true), "{client_id}");
    }
    assert_eq!(receiver.calls(), 0);
}

#[test]
fn what_is_due_outlives_the_process_that_owes_it() {
    let (mut gatepost, receiver) = scene();
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &authorize_path("told", RP1, &[]));
    // The process dies while the client takes its time.
    receiver.behave(Manner::Slow);
    sign_out(&mut browser);
    await_that("call", SOON, || receiver.calls() == 1);
    for process in gatepost.server_processes() {
        let mut kill = std::process::Command::new("kill");
        let killed = kill.args(["-9", &process.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    receiver.behave(Manner::Status(503));
    gatepost.await_ready();
    assert_eq!(queue(&gatepost)["told"], (1, false, true));
    hurry(&gatepost);
    await_that("second call", SOON, || {
        queue(&gatepost)["told"] == (2, false, true) && receiver.calls() == 2
    });
    // And the whole installation stands still for a while.
    gatepost.stop();
    hurry(&gatepost);
    receiver.behave(Manner::Status(200));
    gatepost.serve();
    await_entry(&gatepost, (3, true, false));
    hurry(&gatepost);
    await_nothing();
    assert_eq!(receiver.calls(), 3);
    // A session that ends while nobody serves is told when somebody does.
    let mut browser = signed_in(&gatepost);
    let gave = tokens(&gatepost, &mut browser, "told", "openid");
    gatepost.stop();
    gatepost.run_well(&["session", "end", &sid(&gave)], "");
    gatepost.serve();
    let claims = receiver.tokens(&gatepost, 4);
    assert_eq!(claims[3]["sid"], sid(&gave));
}

#[test]
fn several_processes_share_the_calls_and_make_each_once() {
    let (gatepost, receiver) = scene();
    let mut other = gatepost.beside();
    other.serve();
    let mut sids = Vec::from_iter((0..12).map(|_| {
        let mut browser = signed_in(&gatepost);
        sid(&tokens(&gatepost, &mut browser, "told", "openid"))
    }));
    gatepost.run_well(&["revoke", "--everything"], "");
    let claims = receiver.tokens(&gatepost, 12);
    let told = claims.iter().map(|claims| text(claims, "sid").to_owned());
    let mut told: Vec<String> = told.collect();
    told.sort_unstable();
    sids.sort_unstable();
    assert_eq!(told, sids);
    await_nothing();
    assert_eq!(receiver.calls(), 12);
}

#[test]
fn everything_ends_at_once_though_calls_are_held_up_and_the_next_run_makes_those() {
    let (gatepost, receiver) = scene();
    let mut browser = signed_in(&gatepost);
    let gave = tokens(&gatepost, &mut browser, "told", "openid");
    let mut holder = gatepost.database.client();
    let mut holding = holder.transaction().unwrap();
    let held = "UPDATE session_clients SET first_at = first_at";
    holding.execute(held, &[]).unwrap();
    let told = gatepost.refusal(&["revoke", "--everything"], "");
    told.assert_says("run the command again");
    let access_token = text(&gave, "access_token");
    userinfo(&gatepost, access_token).assert_status(401);
    holding.rollback().unwrap();
    await_nothing();
    assert_eq!(receiver.calls(), 0);
    gatepost.run_well(&["revoke", "--everything"], "");
    assert_eq!(receiver.tokens(&gatepost, 1)[0]["sid"], sid(&gave));
}

#[test]
fn thousands_of_sessions_that_were_revoked_are_told_and_none_that_began_later() {
    let database = TestDatabase::migrated();
    database.run(
        "INSERT INTO users (sub, username, username_key) VALUES ('alice', 'alice', 'alice');
         INSERT INTO clients (client_id, metadata, enabled, origins)
         SELECT 'app-' || n, '{\"require_consent\": true}', true, '{}'
         FROM generate_series(1, 3) AS n",
    );
    database.run(include_str!("../support/filled.sql"));
    let store = database.store();
    everything_revoked::revoke_everything(&store, &AuditEvent::default()).unwrap();
    database.run(
        "UPDATE sessions s SET installation_epoch = i.epoch
         FROM installation i WHERE s.sub = 'filled-1';
         UPDATE session_clients SET tries = 1 WHERE sub = 'filled-2'",
    );
    let all = database.count("session_clients");
    // More than two pieces.
    assert!(all > 3_000, "{all}");
    everything_revoked::call_all_revoked(&store).unwrap();
    let due = database.count("session_clients WHERE due_at IS NOT NULL");
    // Each of the two has a session with three clients.
    assert_eq!(due, all - 6);
    let of_the_two = "session_clients WHERE sub IN ('filled-1', 'filled-2') AND due_at IS NOT NULL";
    assert_eq!(database.count(of_the_two), 0);
}

#[test]
fn a_client_that_enters_a_session_while_it_ends_is_told() {
    let (gatepost, receiver) = scene();
    let mut browser = signed_in(&gatepost);
    let entering = "SELECT FROM sessions FOR SHARE;
                    INSERT INTO session_clients (day, sid, client_id, sub)
                    SELECT day, sid, 'told', sub FROM sessions";
    let leaving = || sign_out(&mut browser);
    gatepost.database.meanwhile(entering, leaving);
    receiver.tokens(&gatepost, 1);
}

#[test]
fn whoever_wants_no_call_any_more_gets_none() {
    let (gatepost, receiver) = scene();
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &authorize_path("told", RP1, &[]));
    let moved = Receiver::start(Manner::Status(200));
    let mut second = signed_in(&gatepost);
    gatepost.apply(&with_clients(document(), &[("told", told_at(&moved))]));
    code(&mut second, &authorize_path("told", RP1, &[]));
    sign_out(&mut second);
    assert_eq!(moved.tokens(&gatepost, 1).len(), 1);
    gatepost.apply(&with_clients(document(), &[("told", json!({}))]));
    sign_out(&mut browser);
    await_that("note", SOON, || queue(&gatepost)["told"].0 == 1);
    await_nothing();
    assert_eq!((receiver.calls(), moved.calls()), (0, 1));
}
