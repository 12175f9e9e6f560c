//! Clients that describe themselves: the operator registers the address of a document, and the
//! document says the rest (draft-ietf-oauth-client-id-metadata-document).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    VERIFIER, authorize_path, changed_members, decode_jwt, issued, sign_in, signed_in, text,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, document};
use crate::support::http::Answer;
use crate::support::mailbox::Keys;
use crate::support::signer::{Behaviour, Signer, WebServer, assertion, key_set};
use crate::support::tables::cases;
use crate::support::timing::within;
use crate::support::waiting::{SOON, all_at_once, await_that};

const WEB: &str = "https://app.example/cb";
const SCOPE: &str = "openid profile offline_access orders.read";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The site of a client, and a Gatepost that may ask it.
struct Scene {
    gatepost: Gatepost,
    site: WebServer,
    keys: Keys,
}

impl Scene {
    /// With a client for each path below its site.
    fn start(paths: &[&str], changes: &Value) -> Scene {
        let keys = Keys::make();
        let site = WebServer::start_tls(Behaviour::Status(404), &keys.file("right.pem"));
        let ca = keys.file("ca.pem").display().to_string();
        let settings = [
            ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8"),
            ("GATEPOST_CA_FILE", ca.as_str()),
        ];
        let mut document = document();
        let clients = document["clients"].as_array_mut().unwrap();
        for path in paths {
            clients.push(registration(&url(&site, path), changes));
        }
        let gatepost = Gatepost::start_with(&document, &settings);
        Scene {
            gatepost,
            site,
            keys,
        }
    }

    /// The same, with a file that says by how many seconds the server's machine has aged.
    fn start_ageing(paths: &[&str], changes: &Value) -> (Scene, PathBuf) {
        let mut scene = Scene::start(paths, changes);
        let gatepost = &mut scene.gatepost;
        let aged = gatepost.private_file("aged", "0");
        let source = gatepost.private_file("ageing.c", &ageing_by(&aged));
        let library = source.with_extension("so");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"])
            .args([&library, &source]);
        assert!(cc.status().unwrap().success());
        gatepost.stop();
        gatepost.set("LD_PRELOAD", library.to_str().unwrap());
        gatepost.serve();
        (scene, aged)
    }

    /// Has the server's machine age by so many seconds, all in all. Waits until it has heard the
    /// database at that age: before, it signs nobody in.
    fn age(&self, aged: &Path, seconds: u64) {
        // In one piece, so that no reader finds half of it.
        let next = aged.with_extension("next");
        fs::write(&next, seconds.to_string()).unwrap();
        fs::rename(&next, aged).unwrap();
        await_that("the registry is fresh", SOON, || {
            let form = [("grant_type", "client_credentials")];
            self.gatepost.token("conf1", &form).status == 200
        });
    }

    fn url(&self, path: &str) -> String {
        url(&self.site, path)
    }

    /// What the client at that path says of itself, with changes.
    fn serve(&self, path: &str, changes: &Value) {
        let document = self.document(path, changes);
        self.site.behave(Behaviour::Json(document));
    }

    fn document(&self, path: &str, changes: &Value) -> Value {
        let document = json!({
            "client_id": self.url(path), "client_name": "Agent", "scope": "orders.write",
            "redirect_uris": [WEB, "http://127.0.0.1/cb", "http://localhost/cb", "https://evil.example/cb",
                "http://app.example/cb", "com.example.app:/cb"],
            "grant_types": ["authorization_code"],
        });
        changed_members(document, changes)
    }

    fn ask(&self, path: &str) -> Answer {
        let request = authorize_path(&self.url(path), WEB, &[("scope", SCOPE)]);
        self.gatepost.get(&request)
    }

    fn redeem(&self, path: &str, redirect_uri: &str, code: &str) -> Answer {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", &self.url(path)),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", VERIFIER),
        ];
        self.gatepost.post("/connect/token", &[], &form)
    }
}

fn url(site: &WebServer, path: &str) -> String {
    format!("https://localhost:{}{path}", site.port)
}

fn registration(client_id: &str, changes: &Value) -> Value {
    let registration = json!({
        "client_id": client_id, "metadata_document": true, "scope": SCOPE, "redirect_hosts": ["app.example"],
    });
    changed_members(registration, changes)
}

#[test]
fn a_client_that_describes_itself_signs_people_in() {
    let scene = Scene::start(&["/agent.json"], &json!({}));
    let path = "/agent.json";
    let logo = json!({"logo_uri": "https://elsewhere.example/logo.png"});
    scene.serve(path, &logo);
    let gatepost = &scene.gatepost;
    let discovery = gatepost.get("/.well-known/openid-configuration").json();
    assert_eq!(discovery["client_id_metadata_document_supported"], true);
    let mut browser = signed_in(gatepost);
    let asked = authorize_path(&scene.url(path), WEB, &[("scope", SCOPE)]);
    let page = browser.visit(&asked);
    let shown =
        "Agent</bdi>|belongs to|localhost</bdi>|answer goes to|app.example</bdi>|name=\"remember\"";
    for words in shown.split('|') {
        page.assert_says(words);
    }
    for words in ["a program on this computer", "client-logo"] {
        page.assert_says_not(words);
    }
    let scopes = ["profile", "offline_access", "orders.read"];
    let answer = browser.decide(&page, "allow", &scopes, true);
    let tokens = issued(&scene.redeem(path, WEB, &answer.query()["code"]));
    let (_, claims) = decode_jwt(text(&tokens, "access_token"));
    assert_eq!(claims["client_id"], json!(scene.url(path)));
    assert_eq!(text(&tokens, "scope"), SCOPE);
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", &scene.url(path)),
        ("refresh_token", text(&tokens, "refresh_token")),
    ];
    issued(&gatepost.post("/connect/token", &[], &form));
    // Remembered, and by a document that is fetched once.
    let again = browser.get(&asked);
    assert!(again.query().contains_key("code"), "{}", again.text());
    assert_eq!(scene.site.requests().len(), 1);
    let wide = authorize_path(&scene.url(path), WEB, &[("scope", "openid orders.write")]);
    assert_eq!(browser.get(&wide).query()["error"], "invalid_scope");
    let bare = authorize_path(&scene.url(path), WEB, &[("code_challenge", "")]);
    assert_eq!(browser.get(&bare).query()["error"], "invalid_request");
}

#[test]
fn an_answer_to_this_computer_is_warned_of_and_asked_for_each_time() {
    let changes = json!({"allow_remember_consent": true});
    let scene = Scene::start(&["/agent.json"], &changes);
    let path = "/agent.json";
    scene.serve(path, &json!({}));
    let mut browser = signed_in(&scene.gatepost);
    // Any port, and localhost too: the document is written for the machines of others.
    let here = "http://127.0.0.1:4711/cb http://localhost:52345/cb http://localhost/cb";
    for uri in here.split(' ') {
        let asked = authorize_path(&scene.url(path), uri, &[("scope", "openid profile")]);
        for _ in 0..2 {
            let page = browser.visit(&asked);
            page.assert_says_for(uri, "a program on this computer");
            page.assert_says_not_for(uri, "name=\"remember\"");
            let answer = browser.decide(&page, "allow", &["profile"], true);
            issued(&scene.redeem(path, uri, &answer.query()["code"]));
        }
    }
    let others = "https://evil.example/cb http://app.example/cb com.example.app:/cb \
                  http://127.0.0.1:4711/other http://[::1]/cb https://localhost/cb";
    for uri in others.split(' ') {
        let refused = browser.get(&authorize_path(&scene.url(path), uri, &[]));
        refused.assert_error_page(400, "GP1105", uri);
    }
}

#[test]
fn a_faulty_document_is_refused_for_what_is_wrong_with_it() {
    let faults = json!({"GP1171": {
        "another client_id": {"client_id": "https://localhost/agent.json"},
        "no client_id": {"client_id": null},
        "too many": {"redirect_uris": vec![WEB; 21]},
        "too long": {"client_name": "x".repeat(5_120)},
    }, "GP1172": {
        "a secret": {"client_secret": "s3cret"},
        "a private key": {"jwks": {"keys": [{"kty": "EC", "d": "x"}]}},
        "a symmetric key": {"jwks": {"keys": [{"kty": "oct", "k": "x"}]}},
        "another method": {"token_endpoint_auth_method": "private_key_jwt"},
        "a secret's method": {"token_endpoint_auth_method": "client_secret_post"},
        "no method's name": {"token_endpoint_auth_method": 7},
    }, "GP1173": {
        "nowhere to go": {"redirect_uris": ["https://evil.example/cb"]},
        "no list": {"redirect_uris": WEB},
    }});
    let text = |content_type, text: &str| Behaviour::Text(content_type, String::from(text));
    let elsewhere = Behaviour::Redirect(302, String::from("https://localhost/agent.json"));
    let unheard = [
        ("away", Behaviour::Status(500)),
        ("not there", Behaviour::Status(404)),
        ("another success", Behaviour::Status(204)),
        ("a page", text("text/html", "{}")),
        ("no type", text("", "{}")),
        ("elsewhere", elsewhere),
    ];
    let others = [
        ("an array", Behaviour::Json(json!([]))),
        ("no JSON", text("application/json", "{")),
        ("without end", Behaviour::Endless),
    ];
    // One client for each: after a failure there is a pause.
    let paths: Vec<String> = (0..32).map(|number| format!("/{number}.json")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let scene = Scene::start(&paths, &json!({}));
    let mut next = paths.iter().copied();
    for (code, rows) in cases(&faults) {
        for (case, changes) in cases(rows) {
            let path = next.next().unwrap();
            scene.serve(path, changes);
            scene.ask(path).assert_error_page(400, code, case);
            if case == "a secret" {
                let request = authorize_path(&scene.url(path), WEB, &[]);
                let output = scene.gatepost.run(&["explain", &request], "");
                let told = String::from_utf8(output.stdout).unwrap();
                assert_eq!(told.matches(code).count(), 1, "{told}");
            }
        }
    }
    for (case, behaviour) in others {
        scene.site.behave(behaviour);
        let answer = scene.ask(next.next().unwrap());
        answer.assert_error_page(400, "GP1171", case);
    }
    for (case, behaviour) in unheard {
        scene.site.behave(behaviour);
        let answer = scene.ask(next.next().unwrap());
        answer.assert_error_page(503, "GP1170", case);
        assert_eq!(answer.header("retry-after"), Some("10"), "{case}");
    }
    // With parameters, and in a type of its own.
    for content_type in ["Application/JSON; charset=utf-8", "application/cimd+json"] {
        let path = next.next().unwrap();
        let document = scene.document(path, &json!({})).to_string();
        scene.site.behave(Behaviour::Text(content_type, document));
        scene.ask(path).assert_status_for(content_type, 303);
    }
    // A name that could pass for another is not taken.
    for name in [&*"x".repeat(61), "Agent\u{202e}", "  "] {
        let path = next.next().unwrap();
        scene.serve(path, &json!({"client_name": name}));
        let mut browser = signed_in(&scene.gatepost);
        let page = browser.visit(&authorize_path(&scene.url(path), WEB, &[]));
        page.assert_says_for(name, &format!("{}</bdi>", scene.url(path)));
    }
}

#[test]
fn one_request_fetches_and_none_for_a_while_after_a_failure() {
    let silent = (1..4).map(|number| format!("/silent-{number}.json"));
    let silent: Vec<String> = silent.collect();
    let mut paths = vec!["/late.json", "/away.json"];
    paths.extend(silent.iter().map(String::as_str));
    let scene = Scene::start(&paths, &json!({}));
    let late = scene.document("/late.json", &json!({}));
    let late = Behaviour::Late(Duration::from_secs(1), late);
    scene.site.behave(late);
    let asked = authorize_path(&scene.url("/late.json"), WEB, &[]);
    let statuses = all_at_once(6, |_| scene.gatepost.get(&asked).status);
    assert_eq!(statuses, [303; 6]);
    assert_eq!(scene.site.requests().len(), 1);

    scene.site.behave(Behaviour::Status(503));
    for _ in 0..3 {
        let answer = scene.ask("/away.json");
        answer.assert_error_page(503, "GP1170", "away");
    }
    assert_eq!(scene.site.requests().len(), 2);

    let is_silent = Behaviour::Silent(Duration::from_secs(20));
    scene.site.behave(is_silent);
    let mut silent = silent.iter();
    within(Duration::from_secs(8), "silent", || {
        // What was silent is remembered: each is another.
        let answer = scene.ask(silent.next().unwrap());
        answer.assert_error_page(503, "GP1170", "silent");
    });
}

/// A C library that sets the clock of a machine's age forward, by the seconds in a file. Threads
/// sleep until moments of that clock: the kernel is told of them by its own. Only server processes
/// age, which have the listener as their standard input: to their supervisor, minutes without a
/// beat would be a process that hangs.
fn ageing_by(file: &Path) -> String {
    let file = file.display();
    format!(
        r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <linux/futex.h>
        #include <stdio.h>
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <time.h>

        typedef long call(long, long, long, long, long, long, long);

        static int is_server_process;

        __attribute__((constructor)) static void begin(void) {{
            struct stat input;
            is_server_process = fstat(0, &input) == 0 && S_ISSOCK(input.st_mode);
        }}

        static long aged(void) {{
            if (!is_server_process) return 0;
            long seconds = 0;
            FILE *file = fopen("{file}", "r");
            if (file) {{
                if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
                fclose(file);
            }}
            return seconds;
        }}

        static long kernel(long number, long a, long b, long c, long d, long e, long f) {{
            static call *real;
            if (!real) real = (call *)dlsym(RTLD_NEXT, "syscall");
            return real(number, a, b, c, d, e, f);
        }}

        int clock_gettime(clockid_t clock, struct timespec *now) {{
            int result = kernel(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
            if (result == 0 && clock == CLOCK_MONOTONIC) now->tv_sec += aged();
            return result;
        }}

        long syscall(long number, long a, long b, long c, long d, long e, long f) {{
            struct timespec until;
            int is_wait = number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
            if (is_wait && d && !(b & FUTEX_CLOCK_REALTIME)) {{
                until = *(struct timespec *)d;
                until.tv_sec -= aged();
                d = (long)&until;
            }}
            return kernel(number, a, b, c, d, e, f);
        }}
        "#
    )
}

#[test]
fn a_document_is_asked_for_after_ten_minutes_and_does_for_an_hour_while_it_is_away() {
    let (scene, aged) = Scene::start_ageing(&["/agent.json"], &json!({}));
    let minutes = |minutes: u64| scene.age(&aged, minutes * 60);
    scene.serve("/agent.json", &json!({}));
    assert_eq!(scene.ask("/agent.json").status, 303);
    minutes(9);
    assert_eq!(scene.ask("/agent.json").status, 303);
    assert_eq!(scene.site.requests().len(), 1, "it is fresh");
    scene.site.behave(Behaviour::Status(503));
    for (age, requests) in [(11, 2), (59, 3)] {
        minutes(age);
        assert_eq!(scene.ask("/agent.json").status, 303, "{age} minutes");
        assert_eq!(scene.site.requests().len(), requests, "{age} minutes");
    }
    minutes(61);
    scene
        .ask("/agent.json")
        .assert_error_page(503, "GP1170", "61 minutes");
    minutes(62);
    scene.serve("/agent.json", &json!({}));
    assert_eq!(scene.ask("/agent.json").status, 303, "it is there again");
    // It was one process all the time: another would have begun without a document.
    assert_eq!(scene.site.requests().len(), 5);
    let log = scene.gatepost.log();
    assert_eq!(log.matches("cannot be had").count(), 3, "{log}");
}

#[test]
fn a_document_does_for_its_hour_while_all_places_to_ask_for_a_newer_one_are_taken() {
    let paths = ["/agent.json", "/silent.json"];
    let (mut scene, aged) = Scene::start_ageing(&paths, &json!({}));
    scene.gatepost.stop();
    scene.gatepost.set("GATEPOST_UPSTREAM_PLACES", "1");
    scene.gatepost.serve();
    scene.serve("/agent.json", &json!({}));
    assert_eq!(scene.ask("/agent.json").status, 303);
    scene.age(&aged, 11 * 60);
    scene
        .site
        .behave(Behaviour::Silent(Duration::from_secs(20)));
    thread::scope(|scope| {
        let hanging = scope.spawn(|| scene.ask("/silent.json").status);
        await_that("the place is taken", SOON, || {
            scene.site.requests().len() == 2
        });
        scene.ask("/agent.json").assert_status(303);
        assert_eq!(hanging.join().unwrap(), 503);
    });
    assert_eq!(scene.site.requests().len(), 2, "nobody else asked");
}

#[test]
fn a_document_that_no_longer_fits_the_registration_is_asked_for_again_after_a_pause() {
    let path = "/agent.json";
    let (scene, aged) = Scene::start_ageing(&[path], &json!({}));
    scene.serve(path, &json!({"redirect_uris": [WEB]}));
    assert_eq!(scene.ask(path).status, 303);
    // The client moves: the operator registers its new host, and its document names it.
    let new = "https://new.example/cb";
    let hosts = json!({"redirect_hosts": ["new.example"]});
    let moved = registration(&scene.url(path), &hosts);
    scene.gatepost.apply(&json!({"clients": [moved]}));
    scene.serve(path, &json!({"redirect_uris": [WEB]}));
    let ask = || {
        let request = authorize_path(&scene.url(path), new, &[("scope", SCOPE)]);
        scene.gatepost.get(&request)
    };
    scene.age(&aged, 11);
    ask().assert_error_page(400, "GP1173", "the document has not moved yet");
    assert_eq!(scene.site.requests().len(), 2);
    scene.serve(path, &json!({"redirect_uris": [new]}));
    ask().assert_error_page(400, "GP1173", "too soon to ask again");
    assert_eq!(scene.site.requests().len(), 2);
    scene.age(&aged, 22);
    assert_eq!(ask().status, 303);
    assert_eq!(scene.site.requests().len(), 3);
}

#[test]
fn a_document_that_turns_bad_during_a_sign_in_does_not_end_it() {
    let scene = Scene::start(&["/agent.json"], &json!({"require_consent": false}));
    scene.serve("/agent.json", &json!({}));
    let mut browser = scene.gatepost.browser();
    let page = browser.visit(&authorize_path(&scene.url("/agent.json"), WEB, &[]));
    let evil = json!({"redirect_uris": ["https://evil.example/cb"]});
    scene.serve("/agent.json", &evil);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let answer = browser.follow(answer);
    issued(&scene.redeem("/agent.json", WEB, &answer.query()["code"]));
}

#[test]
fn keys_of_the_document_authenticate_the_client() {
    let method = json!({"token_endpoint_auth_method": "private_key_jwt"});
    let paths = ["/inline.json", "/uri.json", "/away.json", "/elsewhere.json"];
    let scene = Scene::start(&paths, &method);
    let gatepost = &scene.gatepost;
    let [first, second] = ["first", "second"].map(Signer::es256);
    let keys = Behaviour::Json(key_set(&[&first]));
    let jwks = WebServer::start_tls(keys, &scene.keys.file("right.pem"));
    let ask = |path: &str, signer: &Signer| {
        let client_id = scene.url(path);
        let mut claims = assertion(&client_id, &client_id, &gatepost.base_url);
        claims["jti"] = json!(format!("{path} {}", signer.kid));
        let assertion = signer.sign(&claims);
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", "none"),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", &assertion),
        ];
        gatepost.post("/connect/token", &[], &form)
    };
    let with = |members: Value| changed_members(method.clone(), &members);
    scene.serve("/inline.json", &with(json!({"jwks": key_set(&[&first])})));
    // It is the client: its token is no good.
    ask("/inline.json", &first).assert_refused(400, "invalid_grant", "inline");
    ask("/inline.json", &second).assert_refused(400, "invalid_client", "another's");
    let elsewhere = format!("https://127.0.0.1:{}/keys", jwks.port);
    scene.serve("/elsewhere.json", &with(json!({"jwks_uri": elsewhere})));
    ask("/elsewhere.json", &first).assert_refused(400, "invalid_client", "keys on another host");
    let told = gatepost.run(&["client", "test", &scene.url("/elsewhere.json")], "");
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("jwks_uri"), "is left out: {told}");
    scene.serve("/uri.json", &with(json!({"jwks_uri": url(&jwks, "/keys")})));
    ask("/uri.json", &first).assert_refused(400, "invalid_grant", "by address");
    jwks.behave(Behaviour::Json(key_set(&[&second])));
    ask("/uri.json", &second).assert_refused(400, "invalid_grant", "rotated");
    scene.site.behave(Behaviour::Status(500));
    ask("/away.json", &first).assert_refused(400, "invalid_client", "away");
    assert!(gatepost.log().contains("GP1170"));
    // Held, although its site is away.
    ask("/uri.json", &second).assert_refused(400, "invalid_client", "replayed");
}

#[test]
fn no_document_leads_into_the_operators_network() {
    let inside = WebServer::start(Behaviour::Json(json!({})));
    let addresses = [
        format!("https://127.0.0.1:{}/agent.json", inside.port),
        format!("https://localhost:{}/agent.json", inside.port),
        format!("https://[::1]:{}/agent.json", inside.port),
        String::from("https://10.0.0.1/agent.json"),
        String::from("https://169.254.169.254/latest/meta-data"),
        String::from("https://192.168.0.1/agent.json"),
        String::from("https://172.16.0.1/agent.json"),
        String::from("https://100.64.0.1/agent.json"),
        String::from("https://0.0.0.0/agent.json"),
        String::from("https://[fd00::1]/agent.json"),
        String::from("https://[fe80::1]/agent.json"),
        String::from("https://[64:ff9b::a00:1]/agent.json"),
    ];
    let mut document = document();
    for address in &addresses {
        let clients = document["clients"].as_array_mut().unwrap();
        clients.push(registration(address, &json!({})));
    }
    let gatepost = Gatepost::start_with(&document, &[]);
    for address in &addresses {
        let answer = gatepost.get(&authorize_path(address, WEB, &[]));
        answer.assert_error_page(503, "GP1170", address);
    }
    assert_eq!(inside.requests(), Vec::<String>::new());
}

#[test]
fn apply_refuses_what_the_document_says_and_what_is_weaker() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let good = "https://agent.example.com/oauth/client.json";
    let told = |client: &Value| {
        let output = gatepost.run(&["plan", "-"], &json!({"clients": [client]}).to_string());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(told(&registration(good, &json!({}))), "");
    let unfit = "agent http://agent.example.com/client.json https://agent.example.com \
                 https://agent.example.com/ https://user@agent.example.com/client.json \
                 https://agent.example.com/client.json?a=b https://agent.example.com/client.json#a \
                 https://agent.example.com/a/../client.json https://agent.example.com/%2E/client.json";
    for client_id in unfit.split(' ') {
        let told = told(&registration(client_id, &json!({})));
        told.assert_says_for(client_id, ".client_id");
    }
    // Each is refused by its own name.
    let of_the_document = json!({
        "client_name": "Agent",
        "client_name#de": "Agent",
        "client_uri": "https://agent.example.com/",
        "logo_uri": "https://agent.example.com/l.png",
        "redirect_uris": [WEB],
        "jwks": key_set(&[&Signer::es256("k")]),
        "jwks_uri": "https://agent.example.com/keys",
        "secrets": [{"value": "a-secret-of-some-length"}],
        "token_endpoint_auth_method": "client_secret_basic",
        "grant_types": ["authorization_code", "client_credentials", "refresh_token"],
        "response_types": ["code", "code id_token"],
        "allow_plain_pkce": true,
        "require_pkce": false,
    });
    let unlike = json!({"metadata_document": false, "redirect_uris": [WEB], "scope": "openid"});
    let others = [
        ("token_endpoint_auth_method", json!({"confidential": true})),
        (
            "redirect_hosts[0]",
            json!({"redirect_hosts": ["https://app.example"]}),
        ),
        (
            "redirect_hosts[0]",
            json!({"redirect_hosts": ["app.example:8443"]}),
        ),
        (
            "redirect_hosts[0]",
            json!({"redirect_hosts": ["*.example"]}),
        ),
        ("redirect_hosts", unlike),
    ];
    let by_name = cases(&of_the_document).map(|(key, value)| (key, json!({key: value})));
    for (key, changes) in by_name.chain(others) {
        told(&registration(good, &changes)).assert_says_for(&changes, &format!(".{key}"));
    }
    let client = registration(good, &json!({}));
    gatepost.apply(&json!({"clients": [client]}));
    // What was applied is as it was, and stays so.
    let again = gatepost.run(&["plan", "-"], &json!({"clients": [client]}).to_string());
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    gatepost.settle();
    let supported = || {
        let discovery = gatepost.get("/.well-known/openid-configuration").json();
        discovery["client_id_metadata_document_supported"].clone()
    };
    assert_eq!(supported(), json!(true));
    gatepost.apply(&json!({"clients": [registration(good, &json!({"enabled": false}))]}));
    gatepost.settle();
    assert_eq!(supported(), Value::Null);
    let answer = gatepost.get(&authorize_path(good, WEB, &[]));
    answer.assert_error_page(400, "GP1103", "disabled");
}

#[test]
fn who_is_not_registered_is_sent_to_the_operator_whose_log_has_what_to_apply() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let client_id = "https://agent.example.com/oauth/client.json";
    let answer = gatepost.get(&authorize_path(client_id, WEB, &[]));
    answer.assert_error_page(400, "GP1169", "not registered");
    answer.assert_says("Ask the operator");
    let request = authorize_path(client_id, WEB, &[]);
    let output = gatepost.run(&["explain", &request], "");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("GP1169"), "{told}");
    told.assert_says("to register it, apply");
    let log = gatepost.log();
    let (_, line) = log.split_once("to register it, apply ").unwrap();
    gatepost.run_well(&["apply", "-"], line.lines().next().unwrap());
    let shown = gatepost.run_well(&["client", "show", client_id], "");
    assert!(shown.contains("metadata_document: true"), "{shown}");
    let others = "http://agent.example.com/client.json https://agent.example.com/ agent";
    for other in others.split(' ') {
        let answer = gatepost.get(&authorize_path(other, WEB, &[]));
        answer.assert_error_page(400, "GP1102", other);
        assert!(!answer.text().contains("Ask the operator"), "{other}");
    }
}

#[test]
fn what_the_registered_profile_forbids_is_left_out_of_the_document() {
    let bank = json!({"profile": "fapi2", "token_endpoint_auth_method": "private_key_jwt"});
    let scene = Scene::start(&["/bank.json"], &bank);
    let client_id = scene.url("/bank.json");
    let keys = key_set(&[&Signer::es256("key")]);
    let method = json!({"token_endpoint_auth_method": "private_key_jwt", "jwks": keys});
    scene.serve("/bank.json", &method);
    let told = scene.gatepost.run_well(&["client", "test", &client_id], "");
    let taken = "the redirect URIs https://app.example/cb;";
    assert!(told.contains(taken), "{told}");
    for left_out in ["http://127.0.0.1/cb", "http://localhost/cb"] {
        let left_out = format!("the redirect URI \"{left_out}\"");
        assert!(told.contains(&left_out), "{left_out}: {told}");
    }
}

#[test]
fn commands_and_pushed_requests_read_the_document_too() {
    let scene = Scene::start(&["/agent.json"], &json!({}));
    let client_id = scene.url("/agent.json");
    let too_much = json!({"client_name": "x".repeat(61), "tos_uri": "https://evil.example/"});
    scene.serve("/agent.json", &too_much);
    let told = scene.gatepost.run_well(&["client", "test", &client_id], "");
    for words in [
        "the redirect URIs https://app.example/cb, http://127.0.0.1/cb, http://localhost/cb;",
        "client_name, grant_types, scope, tos_uri, the redirect URI \"https://evil.example/cb\"",
        "com.example.app:/cb",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let request = authorize_path(&client_id, WEB, &[("scope", "openid")]);
    let explained = scene.gatepost.run_well(&["explain", &request], "");
    assert!(explained.contains("it is good"), "{explained}");
    let (_, form) = request.split_once('?').unwrap();
    let mut connection = scene.gatepost.connect();
    let pushed = connection.post_raw("/connect/par", &[], form.as_bytes());
    pushed.assert_status(201);
    scene.site.behave(Behaviour::Status(404));
    let output = scene.gatepost.run(&["client", "test", &client_id], "");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{told}");
    told.assert_says("status 404");
}
