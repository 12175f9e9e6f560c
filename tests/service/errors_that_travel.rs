//! From an answer to its line in the log: the request's id, the reason's sentence, and what
//! developers are told while an installation is for development.

use serde_json::Value;

use crate::cli_support::{Installation, answer};
use crate::support::claims::Says;
use crate::support::flow::{authorize_path, basic, text};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, Connection, free_port};
use crate::support::waiting::{SOON, await_that};

const TOKEN: &str = "/connect/token";
const STRANGE: &str = "https://evil.example/\"<b>é";

fn own_token(gatepost: &Gatepost, headers: &[(&str, &str)], scope: &str) -> Answer {
    let authorization = basic("conf1", CONF1_SECRET);
    let headers = [&[("Authorization", authorization.as_str())], headers].concat();
    let form = [("grant_type", "client_credentials"), ("scope", scope)];
    gatepost.post(TOKEN, &headers, &form)
}

fn id(answer: &Answer) -> String {
    let id = answer.header("x-request-id");
    let id = id.unwrap_or_else(|| panic!("{} has no id", answer.status));
    id.to_owned()
}

fn is_ours(id: &str) -> bool {
    id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The log's line about the request of this answer.
fn line(gatepost: &Gatepost, id: &str) -> String {
    let begins = format!("id={id} ");
    gatepost.await_log(&begins, |log| log.contains(&begins));
    gatepost.last_line(&begins)
}

#[test]
fn every_answer_has_an_id_that_the_log_and_the_page_have_too() {
    let admin = free_port();
    let admin_listen = format!("127.0.0.1:{admin}");
    let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_ADMIN_LISTEN", &admin_listen)]);
    let paths =
        "/ /healthz /.well-known/openid-configuration /connect/token /nowhere /static/none /login";
    for path in paths.split(' ') {
        let answer = gatepost.get(path);
        let id = id(&answer);
        assert!(is_ours(&id), "{path}: {id}");
        let status = format!("status={}", answer.status);
        line(&gatepost, &id).assert_says_for(path, &status);
        let content_type = answer.header("content-type").unwrap_or_default();
        let is_page = answer.status >= 400 && content_type.contains("html");
        let shown = format!("<code><span>{id}</span></code>");
        let shows_id = answer.text().replace("</span><span>", "").contains(&shown);
        assert_eq!(is_page, shows_id, "{path}");
    }
    let ask = |port: u16, path: &str, headers: &[(&str, &str)], status: u16| {
        let mut connection = Connection::open(port).unwrap();
        let answer = connection.try_send("GET", path, headers, b"").unwrap();
        answer.assert_status(status);
        assert!(is_ours(&id(&answer)), "{status}");
    };
    let too_long = format!("/?{}", "a".repeat(40_000));
    ask(gatepost.port, &too_long, &[], 414);
    ask(gatepost.port, "/", &[("Host", "other.example")], 400);
    ask(admin, "/metrics", &[], 200);
}

#[test]
fn the_id_of_a_trusted_proxy_is_taken_where_it_is_harmless_and_of_nobody_else() {
    let gatepost = Gatepost::start();
    let longest = "a".repeat(64);
    for given in ["7", "3c24f403-c36b.09e5_X", longest.as_str()] {
        let answer = own_token(&gatepost, &[("X-Request-Id", given)], "nope");
        assert_eq!(id(&answer), given);
        line(&gatepost, given).assert_says_for(given, "status=400");
    }
    let too_long = "a".repeat(65);
    let is_replaced = |gatepost: &Gatepost, headers: &[(&str, &str)]| {
        let answer = own_token(gatepost, headers, "nope");
        assert!(is_ours(&id(&answer)), "{headers:?}");
    };
    for given in [
        "", "a b", "a\"b", "<b>", "a,b", "a;b", "a/b", "a=b", &too_long,
    ] {
        is_replaced(&gatepost, &[("X-Request-Id", given)]);
    }
    let twice = [("X-Request-Id", "one"), ("X-Request-Id", "two")];
    is_replaced(&gatepost, &twice);
    // What it is called in the audit log finds it there.
    let wrong = [
        ("grant_type", "client_credentials"),
        ("client_id", "conf1"),
        ("client_secret", "wrong"),
    ];
    gatepost.post(TOKEN, &[("X-Request-Id", "wrong-secret-1")], &wrong);
    let found = || gatepost.run_line("audit list Wrong-Secret-1 --json");
    await_that("the event", SOON, || found().contains("wrong-secret-1"));
    let found: Vec<Value> = serde_json::from_str(&found()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["request_id"], "wrong-secret-1");
    let trusting_nobody = Gatepost::start_with(&document(), &[("GATEPOST_TRUSTED_PROXIES", "")]);
    is_replaced(&trusting_nobody, &[("X-Request-Id", "mine")]);
}

#[test]
fn the_log_names_the_trace_of_a_request_in_the_form_of_the_w3c_and_in_no_other() {
    let gatepost = Gatepost::start();
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let line_of = |sent: &[(&str, &str)]| line(&gatepost, &id(&own_token(&gatepost, sent, "nope")));
    line_of(&[("traceparent", good)]).assert_says(&format!(" traceparent=\"{good}\""));
    let bent = [
        good.to_uppercase(),
        good.replacen("00-", "01-", 1),
        good.replacen("00-", "ff-", 1),
        format!("{good}-00"),
        good[..54].to_owned(),
        good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        good.replace("00f067aa0ba902b7", &"0".repeat(16)),
        good.replace('-', "_"),
        good.replacen("4b", "\"b", 1),
        String::new(),
    ];
    for value in &bent {
        let line = line_of(&[("traceparent", value)]);
        assert!(!line.contains("traceparent"), "{value}: {line}");
    }
    let line = line_of(&[("traceparent", good), ("Traceparent", good)]);
    assert!(!line.contains("traceparent"), "{line}");
}

#[test]
fn the_log_has_the_reasons_sentence_a_refused_origin_and_an_ignored_audience() {
    let gatepost = Gatepost::start();
    let refused = own_token(&gatepost, &[("Origin", "https://evil.example")], "nope");
    refused.assert_refused(400, "invalid_scope", "as ever");
    let line_of = |answer: &Answer| line(&gatepost, &id(answer));
    let told = line_of(&refused);
    told.assert_says("detail=\"nope\" refused_origin=\"https://evil.example\" why=\"");
    // What it is, and what to do.
    let (_, why) = told.split_once("why=\"").unwrap();
    why.assert_says(". ");
    let from = |origin| line_of(&own_token(&gatepost, &[("Origin", origin)], ""));
    from("a\u{1}\"b").assert_says("status=400");
    // Its own origins are no news, and without one nothing is said.
    from("https://rp1.example").assert_says_not("refused_origin");
    assert!(!line_of(&own_token(&gatepost, &[], "")).contains("why="));
    let preflight = gatepost.send("OPTIONS", TOKEN, &[("Origin", "https://evil.example")], b"");
    preflight.assert_status(204);
    line_of(&preflight).assert_says("refused_origin=\"https://evil.example\"");
    let audience = [("audience", "https://api.example/\n")];
    let asked = gatepost.get(&authorize_path("conf1", RP1, &audience));
    asked.assert_status(303);
    let sentence = "client conf1 sent audience \"https://api.example/\\n\" at authorize: ignored";
    gatepost.await_log("the audience", |log| log.contains(sentence));
    let discovery = gatepost.get("/.well-known/openid-configuration");
    discovery.assert_header("access-control-expose-headers", "X-Request-Id");
}

#[test]
fn with_error_details_answers_say_what_the_log_says() {
    for on in [false, true] {
        let settings = [("GATEPOST_ERROR_DETAILS", if on { "on" } else { "off" })];
        let gatepost = Gatepost::start_with(&document(), &settings);
        let description = |answer: &Answer| text(&answer.json(), "error_description").to_owned();
        let refused = own_token(&gatepost, &[], "nope\u{e9}\\");
        let told = description(&refused);
        let plain = |byte: u8| matches!(byte, 0x20..0x7f) && !matches!(byte, b'"' | b'\\');
        assert!(told.bytes().all(plain), "{told}");
        assert_eq!(told.contains("[GP1"), on, "{told}");
        let told = description(&own_token(&gatepost, &[], "nope"));
        assert_eq!(told.ends_with(": nope]"), on);
        let beyond = authorize_path("conf1", RP1, &[("scope", "openid nope")]);
        let told = &gatepost.get(&beyond).query()["error_description"];
        assert_eq!(told.ends_with(" [GP1115: nope]"), on, "{told}");
        let page = gatepost.get(&authorize_path("conf1", STRANGE, &[]));
        page.assert_error_page(400, "GP1105", "a strange redirect URI");
        let both = format!("[GP1105: received https://evil.example/?&lt;b&gt;?; registered {RP1}");
        assert_eq!(page.text().contains(&both), on, "{}", page.text());
        assert!(!page.text().contains("<b>"));
        let long = format!("https://a.example/{}", "a".repeat(1_900));
        let long = gatepost.get(&authorize_path("conf1", &long, &[]));
        long.assert_status(400);
        assert!(long.text().len() < 10_000, "{}", long.text());
        // Loopback: nobody but those on this machine reads them.
        assert!(!gatepost.log().contains("GATEPOST_ERROR_DETAILS"));
    }
}

#[test]
fn serve_warns_where_strangers_would_read_the_details() {
    let settings = [
        ("GATEPOST_BASE_URL", "https://login.example.com"),
        ("GATEPOST_ERROR_DETAILS", "on"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    gatepost.await_log("the warning", |log| {
        log.contains("GATEPOST_ERROR_DETAILS is on: whoever asks is told")
    });
    let installation = Installation::empty();
    let mut command = installation.command(&["export"]);
    command.env("GATEPOST_ERROR_DETAILS", "yes");
    let answer = answer(command, "");
    answer.assert_refused(78, "must be one of off, on");
}

#[test]
fn an_absent_database_is_told_once_with_where_and_why() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    let free = free_port();
    let away = format!("postgres://gatepost:canary@127.0.0.1:{free}/login");
    gatepost.set("GATEPOST_DATABASE_URL", &away);
    gatepost.launch();
    let told = format!(
        "WARN  database unavailable: 127.0.0.1:{free}, database login, role gatepost: connection refused: start Postgres there"
    );
    gatepost.await_log("why it is away", |log| log.contains(&told));
    let ended = std::time::Instant::now() + std::time::Duration::from_secs(4);
    while std::time::Instant::now() < ended {
        assert_eq!(own_token(&gatepost, &[], "").status, 503);
    }
    let log = gatepost.log();
    assert_eq!(log.matches(&told).count(), 1, "{log}");
    assert!(!log.contains("canary"), "{log}");
    assert!(!log.lines().any(|line| line.contains("ERROR")), "{log}");
    // Whoever typed a command is told once, too.
    let output = gatepost.run(&["user", "list"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    let told = told.strip_prefix("WARN  ").unwrap();
    assert_eq!(said, format!("gatepost: {told}\n"));
}

#[test]
fn a_database_that_goes_comes_back_and_goes_again_is_told_of_twice() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let times = |words: &str| gatepost.log().matches(words).count();
    let count = || times("WARN  database unavailable: 127.0.0.1:");
    let back = "the database answers again";
    assert_eq!(own_token(&gatepost, &[], "").status, 200);
    for _ in 0..2 {
        let before = count();
        proxy.cut(true);
        gatepost.await_log("why it is away", |_| count() > before);
        std::thread::sleep(std::time::Duration::from_secs(4));
        // It is tried several times a second; each cause is told once.
        assert!(count() - before <= 3, "{}", gatepost.log());
        let known = times(back);
        proxy.cut(false);
        gatepost.await_log("its return", |log| log.matches(back).count() > known);
    }
}
