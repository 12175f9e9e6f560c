//! `/admin/export`, `/admin/plan`, `/admin/apply`: what is registered, as a pipeline changes it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{issued, signed_in, text, tokens, with_clients, with_members};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::Answer;
use crate::support::shared::Shared;
use crate::support::timing::within;

const ON: [(&str, &str); 1] = [("GATEPOST_ADMIN_API", "on")];
const ALL_SCOPES: &str = "registration.read registration.write";
const EXPORT: &str = "/admin/export";
const PLAN: &str = "/admin/plan";

fn registered() -> Value {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}]);
    let resources = registered["resources"].as_array_mut().unwrap();
    resources.push(json!({"name": "urn:gatepost:admin"}));
    let scopes = registered["resource_scopes"].as_array_mut().unwrap();
    for scope in ["registration.read", "registration.write"] {
        scopes.push(json!({"name": scope, "resources": ["urn:gatepost:admin"]}));
    }
    let program = json!({
        "client_name": "Pipeline", "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": [],
        "scope": ALL_SCOPES,
    });
    let changed = |change: Value| with_members(program.clone(), &change);
    let app = json!({"scope": "openid registration.read registration.write"});
    let clients = [
        ("pipeline", program.clone()),
        ("byref", changed(json!({"access_token_type": "reference"}))),
        ("acmes", changed(json!({"tenants": ["acme"]}))),
        ("app", app),
    ];
    with_clients(registered, &clients)
}

pub fn start() -> Gatepost {
    Gatepost::start_with(&registered(), &ON)
}

/// The same, of which other tests ask too.
pub fn shared() -> Shared {
    Gatepost::shared_with(&registered(), &ON)
}

fn token_of(gatepost: &Gatepost, client_id: &str, scope: &str) -> String {
    let form = [("grant_type", "client_credentials"), ("scope", scope)];
    let answer = gatepost.token(client_id, &form);
    text(&issued(&answer), "access_token").to_owned()
}

fn ask(gatepost: &Gatepost, token: &str, method: &str, path: &str, body: &[u8]) -> Answer {
    let authorization = format!("Bearer {token}");
    let json = ("Content-Type", "application/json");
    let headers = [("Authorization", &*authorization), json];
    gatepost.send(method, path, &headers, body)
}

/// A pipeline with its token.
struct Pipeline<'a> {
    gatepost: &'a Gatepost,
    token: String,
}

impl<'a> Pipeline<'a> {
    fn new(gatepost: &'a Gatepost) -> Pipeline<'a> {
        let token = token_of(gatepost, "pipeline", ALL_SCOPES);
        Pipeline { gatepost, token }
    }

    fn export(&self) -> Value {
        issued(&ask(self.gatepost, &self.token, "GET", EXPORT, b""))
    }

    fn send(&self, path: &str, body: &[u8]) -> Answer {
        ask(self.gatepost, &self.token, "POST", path, body)
    }

    fn post(&self, path: &str, document: &Value) -> Answer {
        self.send(path, document.to_string().as_bytes())
    }

    fn plan(&self, document: &Value) -> Value {
        issued(&self.post(PLAN, document))
    }

    fn apply(&self, document: &Value, version: &Value) -> Answer {
        self.post(&format!("/admin/apply?version={version}"), document)
    }

    /// Applies it as long as what it changes is what was planned.
    fn apply_as_planned(&self, document: &Value, planned: &Value) -> Answer {
        let (version, digest) = (
            &planned["registry_version"],
            text(planned, "changes_digest"),
        );
        let path = format!("/admin/apply?version={version}&changes={digest}");
        self.post(&path, document)
    }
}

/// 100 KB of JSON.
fn long_document() -> String {
    format!("{{{}}}", " ".repeat(100_000))
}

/// The first half of a long document, on a connection of its own.
fn begin_to_send(gatepost: &Gatepost, token: &str, body: &str) -> TcpStream {
    let mut sender = TcpStream::connect(("127.0.0.1", gatepost.port)).unwrap();
    let length = body.len();
    let head = format!(
        "POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
    );
    sender.write_all(head.as_bytes()).unwrap();
    sender.write_all(&body.as_bytes()[..50_000]).unwrap();
    // Until a thread reads it.
    std::thread::sleep(Duration::from_millis(500));
    sender
}

fn new_client(client_id: &str) -> Value {
    json!({"clients": [{
        "client_id": client_id, "client_name": "New", "redirect_uris": ["https://new.example/cb"], "scope": "openid",
        "secrets": [{"value": CONF1_SECRET}],
    }]})
}

fn counts(answer: &Value) -> [u64; 3] {
    ["added", "changed", "removed"].map(|name| answer[name].as_u64().unwrap())
}

fn assert_refused(answer: &Answer, status: u16, error: &str, case: &str) {
    assert_eq!(answer.status, status, "{case}: {}", answer.text());
    assert_eq!(answer.json()["error"], error, "{case}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{case}");
}

/// The places of the mistakes that are told.
fn places(answer: &Answer) -> Vec<String> {
    assert_refused(answer, 400, "invalid_document", "mistakes");
    let told = answer.json();
    let problems = told["problems"].as_array().unwrap();
    assert_eq!(told["mistakes"], json!(problems.len()));
    let place = |problem: &Value| {
        assert!(!text(problem, "rule").is_empty());
        text(problem, "place").to_owned()
    };
    problems.iter().map(place).collect()
}

#[test]
fn a_document_is_exported_planned_and_applied_and_applied_again_changes_nothing() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let exported = pipeline.export();
    let by_command = gatepost.run_well(&["export"], "");
    let mut by_command: Value = serde_json::from_str(&by_command).unwrap();
    for list in ["users", "extension_grants"] {
        by_command.as_object_mut().unwrap().remove(list);
    }
    assert_eq!(exported, by_command);
    let unchanged = pipeline.plan(&exported);
    assert_eq!(counts(&unchanged), [0, 0, 0]);

    let mut wanted = exported;
    let clients = wanted["clients"].as_array_mut().unwrap();
    clients.push(new_client("shop")["clients"][0].clone());
    let planned = pipeline.plan(&wanted);
    assert_eq!(counts(&planned), [1, 0, 0]);
    // To plan changes nothing.
    assert_eq!(planned["registry_version"], unchanged["registry_version"]);
    let by_command = gatepost.run(&["plan", "--json", "-"], &wanted.to_string());
    let by_command: Value = serde_json::from_slice(&by_command.stdout).unwrap();
    assert_eq!(planned["changes"], by_command["changes"]);
    assert_eq!(planned["unchanged"], by_command["unchanged"]);

    let done = pipeline.apply(&wanted, &planned["registry_version"]);
    done.assert_status(200);
    done.assert_header("cache-control", "no-store");
    done.assert_says_not(CONF1_SECRET);
    let done = done.json();
    assert_eq!(done["changes"], planned["changes"]);
    let before = planned["registry_version"].as_i64().unwrap();
    let version = done["registry_version"].as_i64().unwrap();
    let further = before + 1..=before + (1 << 30);
    assert!(further.contains(&version), "{version}");

    let again = pipeline.apply(&wanted, &planned["registry_version"]);
    assert_eq!(again.status, 200, "what was done is confirmed");
    assert_eq!(counts(&again.json()), [0, 0, 0]);
    assert_eq!(again.json()["registry_version"], done["registry_version"]);

    gatepost.settle();
    let shown = gatepost.run_well(&["client", "show", "shop", "--json"], "");
    assert!(shown.contains("https://new.example/cb"), "{shown}");
    let events = gatepost.events("client_changed");
    let mut events = events.iter();
    let event = events.find(|event| event["client_id"] == "shop").unwrap();
    assert_eq!(event["detail"]["by"], "client");
    assert_eq!(event["detail"]["by_client"], "pipeline");
    assert_eq!(event["source"], "127.0.0.1");
    assert!(event["request_id"].is_string(), "{event}");
}

#[test]
fn what_somebody_else_changed_meanwhile_is_not_overwritten() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let document = new_client("shop");
    let planned = pipeline.plan(&document);
    gatepost.run_well(&["apply", "-"], &new_client("other").to_string());
    let refused = pipeline.apply(&document, &planned["registry_version"]);
    assert_refused(&refused, 409, "invalid_request", "moved");
    let planned = pipeline.plan(&document);
    assert_eq!(counts(&planned), [1, 0, 0], "nothing was done");
    let done = pipeline.apply(&document, &planned["registry_version"]);
    done.assert_status(200);
    for version in ["", "?version=", "?version=x", "?version=1&version=1"] {
        let answer = pipeline.post(&format!("/admin/apply{version}"), &document);
        assert_refused(&answer, 400, "invalid_request", version);
    }
}

#[test]
fn what_changed_of_a_user_since_the_plan_is_not_undone() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    // It says nothing of `enabled`.
    let document = json!({"users": [{"username": "alice", "claims": {"role": "buyer"}}]});
    let planned = pipeline.plan(&document);
    let version = &planned["registry_version"];
    let apply = |planned: &Value| {
        assert_eq!(planned["registry_version"], *version);
        pipeline.apply_as_planned(&document, planned)
    };
    let unseen = pipeline.apply(&document, version);
    assert_refused(&unseen, 400, "invalid_request", "no digest");
    let switched_off = "UPDATE users SET enabled = false WHERE username = 'alice'";
    let is_enabled = || {
        let one = "SELECT enabled FROM users WHERE username = 'alice'";
        gatepost.database.value::<bool>(one, &[])
    };
    gatepost.run_sql(switched_off);
    let refused = apply(&planned);
    assert_refused(&refused, 409, "invalid_request", "a user was disabled");
    assert!(!is_enabled());
    let seen = pipeline.plan(&document);
    assert_eq!(seen["registry_version"], *version);
    assert!(seen.to_string().contains("\"enabled\""), "{seen}");
    let done = apply(&seen);
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(is_enabled());
    for planned in [&planned, &seen] {
        let again = apply(planned);
        assert_eq!(again.status, 200, "what was done is confirmed");
        assert_eq!(counts(&again.json()), [0, 0, 0]);
    }
}

#[test]
fn applying_again_ends_the_sessions_that_a_failure_left() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    signed_in(&gatepost);
    // As if alice had come by an account elsewhere, which was taken away, and the end of her
    // session had failed.
    gatepost.database.run(
        "UPDATE sessions SET upstream_issuer = 'https://gone.example', upstream_subject = 'a'",
    );
    let alive = || gatepost.database.count("sessions WHERE ended_at IS NULL");
    let sql = "SELECT jsonb_build_object('username', username, 'claims', claims, 'identities', '[]'::jsonb)
               FROM users WHERE username = 'alice'";
    let mut database = gatepost.database.client();
    let alice: Value = database.query_one(sql, &[]).unwrap().get(0);
    let document = json!({"users": [alice]});
    let planned = pipeline.plan(&document);
    assert_eq!((counts(&planned), alive()), ([0, 0, 0], 1));
    let done = pipeline.apply_as_planned(&document, &planned);
    done.assert_status(200);
    assert_eq!(alive(), 0);
    let sql = "SELECT detail FROM audit_events WHERE event = 'session_ended'";
    let detail: Value = database.query_one(sql, &[]).unwrap().get(0);
    let told = ["by", "by_client", "issuer", "upstream_subject"].map(|name| text(&detail, name));
    assert_eq!(told, ["client", "pipeline", "https://gone.example", "a"]);
}

#[test]
fn what_changes_of_a_user_while_a_document_is_applied_is_not_overwritten() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let sql = "SELECT sub FROM users WHERE username = 'alice'";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    let sub: String = row.get(0);
    for named in [
        json!({"username": "alice"}),
        json!({"sub": sub, "username": "alice"}),
    ] {
        let mut user = named.clone();
        user["claims"] = json!({"role": format!("buyer {}", named.to_string().len())});
        let document = json!({"users": [user]});
        let planned = pipeline.plan(&document);
        let mut database = gatepost.database.client();
        let mut change = database.transaction().unwrap();
        let switched_off = "UPDATE users SET enabled = NOT enabled, claims = claims || '{\"x\": 1}' WHERE username = 'alice'";
        change.execute(switched_off, &[]).unwrap();
        std::thread::scope(|scope| {
            let applied = scope.spawn(|| pipeline.apply_as_planned(&document, &planned));
            std::thread::sleep(Duration::from_millis(300));
            change.commit().unwrap();
            let refused = applied.join().unwrap();
            assert_refused(&refused, 409, "invalid_request", "changed meanwhile");
        });
        let sql = "SELECT claims FROM users WHERE username = 'alice'";
        let claims: Value = database.query_one(sql, &[]).unwrap().get(0);
        assert_eq!(claims["x"], json!(1), "{claims}");
        let back =
            "UPDATE users SET enabled = true, claims = claims - 'x' WHERE username = 'alice'";
        gatepost.run_sql(back);
    }
}

#[test]
fn what_is_left_out_goes_only_where_the_document_says_so() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let mut document = pipeline.export();
    let clients = document["clients"].as_array_mut().unwrap();
    clients.retain(|client| client["client_id"] != "native");
    assert_eq!(counts(&pipeline.plan(&document)), [0, 0, 0]);
    document["prune"] = json!(true);
    let planned = pipeline.plan(&document);
    assert_eq!(counts(&planned), [0, 0, 1]);
    let done = pipeline.apply(&document, &planned["registry_version"]);
    assert_eq!(counts(&done.json()), [0, 0, 1]);
    let everybody = gatepost.run_well(&["user", "list", "--json"], "");
    assert!(everybody.contains("alice"), "{everybody}");
    document["users"] = json!([]);
    assert_eq!(places(&pipeline.post(PLAN, &document)), ["users"]);
    document["prune"] = json!("yes");
    assert_eq!(places(&pipeline.post(PLAN, &document)), ["prune"]);
}

#[test]
fn every_mistake_is_told_with_its_place_and_nothing_is_done() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let secret_file = gatepost.private_file("secret", "a-secret-of-the-server");
    let document = json!({
        "extension_grants": [],
        "identity_providers": [{
            "name": "corp", "display_name": "Corp", "issuer": "https://corp.example", "client_id": "us",
            "client_secret": {"file": secret_file},
        }],
        "clients": [
            {"client_id": "spa", "redirect_uris": ["https://spa.example/#x"], "scope": "openid nonsense"},
            {"client_id": "job", "redirect_uris": ["https://job.example/cb"], "scope": "openid",
             "secrets": [{"file": secret_file}, {"env": "GATEPOST_DATABASE_URL"}]},
        ],
        "users": [
            {"username": "a", "password": "a rather long password"},
            {"username": "b", "password_hash": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"},
            {"username": "c", "totp": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"},
            {"username": "d", "password": null},
        ],
    });
    let before = pipeline.export();
    for path in [PLAN, "/admin/apply?version=1&changes=x"] {
        let answer = pipeline.post(path, &document);
        let places = places(&answer);
        let expected = "extension_grants|clients[0] (spa).redirect_uris[0]|clients[0] (spa).scope|\
            clients[1] (job).secrets[0]|clients[1] (job).secrets[1]|\
            identity_providers[0] (corp).client_secret|users[0] (a).password|\
            users[1] (b).password_hash|users[2] (c).totp";
        for place in expected.split('|') {
            let is_told = places.iter().any(|told| told == place);
            assert!(is_told, "{place}: {places:?}");
        }
        let is_told = places.iter().any(|place| place.contains("(d)"));
        assert!(!is_told, "{places:?}");
        answer.assert_says_not("of-the-server");
    }
    assert_eq!(pipeline.export(), before);
    let deep = "[".repeat(60_000);
    let doubled = "{\"clients\": [], \"clients\": []}";
    for body in ["", "{", "[]", "\"x\"", doubled, &deep] {
        let answer = pipeline.send(PLAN, body.as_bytes());
        assert_eq!(places(&answer), ["the document"], "{body}");
    }
    let answer = pipeline.send(PLAN, b"\xff");
    assert_eq!(places(&answer), ["the document"]);
    // People without a password of their own are taken.
    let answer = pipeline.plan(&json!({"users": [{"username": "d", "password": null}]}));
    assert_eq!(counts(&answer), [1, 0, 0]);
}

/// Documents of up to 1 MiB with thousands of things of which each could be compared with each
/// other, and a mistake.
fn documents_to_compare_within() -> Vec<String> {
    let list = |count: usize, one: &dyn Fn(usize) -> String| {
        let all: Vec<String> = (0..count).map(one).collect();
        all.join(",")
    };
    let client = |members: &str| {
        let required = "\"client_id\":\"many\",\"redirect_uris\":[\"https://many.example/cb\"]";
        format!("\"clients\":[{{{required},{members}}}]")
    };
    let renamed = list(45_000, &|number| format!("\"a{number}\":\"b{number}\""));
    let id_jag = list(13_000, &|number| {
        let rest = "\"client_id\":\"x\",\"scope\":\"s\",\"resources\":[\"r\"]";
        format!("{{\"audience\":\"https://a/{number}\",{rest}}}")
    });
    let federated = list(14_000, &|number| {
        let rest = "\"issuer\":\"https://a\",\"jwks_uri\":\"https://a\"";
        format!("{{\"subject\":\"s{number}\",{rest}}}")
    });
    let scope: String = (0..60_000).map(|number| format!("a{number} ")).collect();
    let tenants = list(2_500, &|number| {
        format!("{{\"name\":\"the-tenant-with-number-{number}\"}}")
    });
    let unknown = list(1_000, &|number| {
        format!("\"one-tenant-with-number-{number}x\"")
    });
    let long_key = "k".repeat(400_000);
    let zeros = list(250_000, &|_| String::from("0"));
    let long_name = "a".repeat(300_000);
    let scopes = format!("\"scope\":\"{scope}\",\"default_scope\":\"{scope}\"");
    let of_nobody = client(&format!("\"tenants\":[{unknown}]"));
    let beginnings = client(&format!("\"scope\":\"{}\"", "aaa ".repeat(1_000)));
    let members = [
        format!("\"identity_scopes\":[{{\"name\":\"x\",\"claims\":{{{renamed},\"iss\":\"y\"}}}}]"),
        client(&format!("\"id_jag\":[{id_jag}]")),
        client(&format!("\"federated\":[{federated}]")),
        client(&scopes),
        // Names that nobody has, each near to thousands.
        format!("\"tenants\":[{tenants}],{of_nobody}"),
        // Names that nobody has, each the beginning of a very long one.
        format!("\"identity_scopes\":[{{\"name\":\"{long_name}\"}}],{beginnings}"),
        // Each place behind a very long key.
        client(&format!("\"{long_key}\":[{zeros}],\"x\":\"\\u0000\"")),
    ];
    members.map(|members| format!("{{{members}}}")).into()
}

#[test]
fn a_document_that_takes_long_to_judge_is_refused_soon() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let tenants = |count: usize| {
        let names = (0..count).map(|name| json!({"name": format!("t{name}")}));
        json!({"tenants": names.collect::<Vec<_>>()})
    };
    let answer = pipeline.post(PLAN, &tenants(5_001));
    assert_eq!(places(&answer), ["the document"]);
    answer.assert_says("in parts");
    assert_eq!(counts(&pipeline.plan(&tenants(5_000))), [5_000, 0, 0]);
    let unknown = (0..45_000).map(|key| format!("\"registratio{key}\":1,"));
    let unknown: String = unknown.collect();
    let scopes: String = (0..70_000).map(|scope| format!("profil{scope} ")).collect();
    let documents = [
        format!("{{{unknown}\"clients\":[]}}"),
        format!("{{\"clients\":[{{{unknown}\"client_id\":\"many\"}}]}}"),
        format!("{{\"clients\":[{{\"client_id\":\"many\",\"scope\":\"{scopes}\"}}]}}"),
    ];
    for document in documents.into_iter().chain(documents_to_compare_within()) {
        let start: String = document.chars().take(60).collect();
        let body = document.as_bytes();
        let answer = within(Duration::from_secs(4), &start, || pipeline.send(PLAN, body));
        assert_refused(&answer, 400, "invalid_document", &start);
        assert!(answer.json()["problems"].as_array().unwrap().len() <= 1_000);
        assert!(answer.body.len() < 1_000_000, "{start}");
    }
}

#[test]
fn only_a_program_with_the_right_token_is_let_in() {
    let gatepost = shared();
    let export = |token: &str| ask(&gatepost, token, "GET", EXPORT, b"");
    let bare = gatepost.get(EXPORT);
    assert_eq!((bare.status, bare.body.len()), (401, 0));
    let challenges = bare.headers_named("www-authenticate");
    let dpop = "DPoP algs=\"ES256 EdDSA Ed25519\"";
    assert_eq!(challenges, ["Bearer realm=\"gatepost\"", dpop]);
    assert_refused(&export("nonsense"), 401, "invalid_token", "none of ours");
    let other = export(&token_of(&gatepost, "service", "orders.read"));
    assert_refused(&other, 401, "invalid_token", "for another resource");

    let read = token_of(&gatepost, "pipeline", "registration.read");
    assert_eq!(export(&read).status, 200);
    assert_eq!(ask(&gatepost, &read, "POST", PLAN, b"{}").status, 200);
    let apply = "/admin/apply?version=1";
    let refused = ask(&gatepost, &read, "POST", apply, b"{}");
    assert_refused(&refused, 403, "insufficient_scope", "may only read");
    let challenge = refused.header("www-authenticate").unwrap();
    challenge.assert_says("scope=\"registration.write\"");
    let told = refused.json();
    let description = text(&told, "error_description");
    assert!(
        description.ends_with("the scope registration.write."),
        "{told}"
    );
    let write = token_of(&gatepost, "pipeline", "registration.write");
    export(&write).assert_status_for("the one scope has the other in it", 200);

    let mut browser = signed_in(&gatepost);
    let scope = "openid registration.read registration.write";
    let of_user = tokens(&gatepost, &mut browser, "app", scope);
    let of_user = text(&of_user, "access_token");
    let refused = export(of_user);
    assert_refused(&refused, 403, "insufficient_scope", "of a user");
    refused.assert_says("without a user");
    let tenants = token_of(&gatepost, "acmes", ALL_SCOPES);
    let refused = export(&tenants);
    assert_refused(&refused, 403, "access_denied", "of a tenant's client");
    let challenge = refused.header("www-authenticate").unwrap();
    challenge.assert_says("access_denied");
    let cookies = browser.cookie_header();
    let by_cookie = gatepost.send("GET", EXPORT, &[("Cookie", &cookies)], b"");
    assert_eq!(by_cookie.status, 401, "a cookie is no token");

    let reference = token_of(&gatepost, "byref", ALL_SCOPES);
    let authorization = format!("Bearer {reference}");
    let origin = ("Origin", "https://rp1.example");
    let headers = [("Authorization", &*authorization), origin];
    let shared = gatepost.send("GET", EXPORT, &headers, b"");
    shared.assert_status(200);
    assert_eq!(shared.header("access-control-allow-origin"), None);
    let revoked = gatepost.post_as("byref", "/connect/revocation", &[("token", &reference)]);
    assert_eq!(revoked.status, 200);
    assert_refused(&export(&reference), 401, "invalid_token", "revoked");
    let names = [
        "acmes, app, byref and 1 more",
        "acmes, app, byref, pipeline",
    ];
    let line = |names| format!("registration.write, which changes everything ({names})");
    let lines = names.map(line);
    gatepost.await_log("the weak settings", |log| {
        lines.iter().any(|line| log.contains(line))
    });
}

#[test]
fn who_only_reads_learns_nothing_of_people_and_secrets() {
    let gatepost = start();
    let read = token_of(&gatepost, "pipeline", "registration.read");
    let document = json!({
        "clients": [
            {"client_id": "rp1", "secrets": [{"value": CONF1_SECRET}]},
            {"client_id": "rp2", "secrets": null},
        ],
        "resources": [{"name": "urn:gatepost:admin", "secrets": []}],
        "identity_providers": [{"name": "corp", "client_secret": {"value": "guessed"}}],
        "users": [{"username": "alice"}],
    });
    let plan = |document: &Value| {
        let body = document.to_string();
        ask(&gatepost, &read, "POST", PLAN, body.as_bytes())
    };
    let answer = plan(&document);
    let refused = [
        "resources[0] (urn:gatepost:admin).secrets",
        "identity_providers[0] (corp).client_secret",
        "clients[0] (rp1).secrets",
        "users",
    ];
    assert_eq!(places(&answer), refused);
    let document = json!({"tenants": [{"name": "new"}]});
    let answer = plan(&document);
    assert_eq!(counts(&answer.json()), [1, 0, 0]);
    // Whether somebody has that subject, or once had it.
    let sql = "SELECT sub FROM users WHERE username = 'alice'";
    let alice: String = gatepost.database.value(sql, &[]);
    gatepost.run_sql("INSERT INTO removed_subjects (sub) VALUES ('gone')");
    let pipeline = Pipeline::new(&gatepost);
    for (client_id, is_taken) in [(alice.as_str(), true), ("gone", true), ("nobody", false)] {
        let document = json!({"clients": [{
            "client_id": client_id, "redirect_uris": ["https://new.example/cb"], "scope": "openid",
        }]});
        let answer = plan(&document);
        answer.assert_status_for(client_id, 200);
        assert_eq!(counts(&answer.json()), [1, 0, 0], "{client_id}");
        let answer = pipeline.post(PLAN, &document);
        answer.assert_status_for(client_id, if is_taken { 400 } else { 200 });
        if is_taken {
            answer.assert_says_for(client_id, "is the sub of a user, or once was");
        }
    }
}

#[test]
fn a_scope_that_was_taken_away_is_gone_from_the_tokens_that_have_it() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let mut document = registered();
    let clients = document["clients"].as_array_mut().unwrap();
    clients.retain(|client| client["client_id"] == "pipeline");
    clients[0]["scope"] = json!("registration.read");
    let less = json!({"clients": clients});
    gatepost.run_well(&["apply", "-"], &less.to_string());
    gatepost.settle();
    pipeline.export();
    let back = json!({"clients": registered()["clients"]});
    let refused = pipeline.apply(&back, &json!(1));
    assert_refused(&refused, 403, "insufficient_scope", "taken away");
}

#[test]
fn it_is_not_there_unless_it_is_switched_on() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let token = token_of(&gatepost, "pipeline", ALL_SCOPES);
    let answer = ask(&gatepost, &token, "GET", EXPORT, b"");
    assert_refused(&answer, 404, "invalid_request", EXPORT);
    for path in [PLAN, "/admin/apply?version=1"] {
        let answer = ask(&gatepost, &token, "POST", path, b"{}");
        assert_refused(&answer, 404, "invalid_request", path);
    }
    let long = vec![b' '; 70_000];
    assert_eq!(ask(&gatepost, &token, "POST", PLAN, &long).status, 413);
}

#[test]
fn methods_types_and_lengths_are_held_to() {
    let gatepost = shared();
    let pipeline = Pipeline::new(&gatepost);
    for (method, path) in [
        ("POST", EXPORT),
        ("GET", PLAN),
        ("GET", "/admin/apply?version=1"),
        ("DELETE", PLAN),
        ("OPTIONS", PLAN),
    ] {
        let answer = ask(&gatepost, &pipeline.token, method, path, b"");
        assert_refused(&answer, 405, "invalid_request", method);
    }
    let authorization = format!("Bearer {}", pipeline.token);
    let post = |content_type: &str, body: &[u8]| {
        let content_type = ("Content-Type", content_type);
        let headers = [("Authorization", &*authorization), content_type];
        gatepost.send("POST", PLAN, &headers, body)
    };
    assert_refused(&post("text/plain", b"{}"), 415, "invalid_request", "type");
    assert_eq!(post("application/json; charset=utf-8", b"{}").status, 200);
    assert_eq!(post("application/json", b"\xef\xbb\xbf{}").status, 200);
    let padded = |length: usize| format!("{{{}}}", " ".repeat(length - 2)).into_bytes();
    assert_eq!(post("application/json", &padded(1_048_576)).status, 200);
    let headers = [("Content-Length", "1048577"), ("Expect", "100-continue")];
    let answer = gatepost.connect().try_send("GET", PLAN, &headers, b"");
    assert_eq!(answer.unwrap().status, 413);
    // Elsewhere bodies are as short as ever.
    let answer = gatepost.send("POST", "/connect/token", &[], &padded(70_000));
    assert_eq!(answer.status, 413);
}

#[test]
fn of_two_long_documents_at_once_one_is_told_to_come_again_and_one_after_the_other_all_are_taken() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let body = long_document();
    let mut slow = begin_to_send(&gatepost, &pipeline.token, &body);
    let processes = gatepost.server_processes();
    // More than connections may be given up before another process takes over.
    for _ in 0..40 {
        let second = pipeline.send(PLAN, body.as_bytes());
        assert_refused(&second, 503, "temporarily_unavailable", "the second");
        assert!(second.header("retry-after").is_some());
    }
    assert_eq!(gatepost.server_processes(), processes);
    let short = pipeline.send(PLAN, b"{}");
    short.assert_status_for("a short one is read at once", 200);
    slow.write_all(&body.as_bytes()[50_000..]).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for number in 0..200 {
        pipeline
            .send(PLAN, body.as_bytes())
            .assert_status_for(number, 200);
    }
}

#[test]
fn many_users_are_applied_in_time_and_more_are_refused() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let users = |count: usize| {
        let users = (0..count).map(|number| json!({"username": format!("many-{number}")}));
        json!({"users": users.collect::<Vec<_>>()})
    };
    let document = users(500);
    let planned = pipeline.plan(&document);
    let done = pipeline.apply_as_planned(&document, &planned);
    assert_eq!(counts(&issued(&done)), [500, 0, 0]);
    let refused = pipeline.post(PLAN, &users(2_001));
    refused.assert_status(400);
    refused.assert_says("2000 users");
}

#[test]
fn who_has_no_token_keeps_nobody_from_sending_a_long_document() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let body = long_document();
    let other = token_of(&gatepost, "service", "orders.read");
    let damaged = format!("{}x", pipeline.token);
    for token in ["", "gpa_x", "a.b.c", &other, &damaged] {
        let answer = ask(&gatepost, token, "POST", PLAN, body.as_bytes());
        assert_eq!(answer.status, 413, "{token}");
        let _sender = begin_to_send(&gatepost, token, &body);
        let long = pipeline.send(PLAN, body.as_bytes());
        long.assert_status_for(format!("beside {token}"), 200);
    }
}

#[test]
fn a_change_that_another_one_keeps_waiting_is_answered_in_time_and_was_not_made() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    let document = new_client("shop");
    let planned = pipeline.plan(&document);
    let mut other = gatepost.database.client();
    let mut held = other.transaction().unwrap();
    let hold = "UPDATE installation SET registry_version = registry_version";
    held.execute(hold, &[]).unwrap();
    let answer = within(Duration::from_secs(5), "held up", || {
        let answer = pipeline.apply(&document, &planned["registry_version"]);
        assert_refused(&answer, 503, "temporarily_unavailable", "held up");
        answer
    });
    assert!(answer.header("retry-after").is_some());
    held.rollback().unwrap();
    let planned = pipeline.plan(&document);
    // Plan tells whether it was done.
    assert_eq!(counts(&planned), [1, 0, 0]);
    let done = pipeline.apply(&document, &planned["registry_version"]);
    done.assert_status(200);
}

#[test]
fn what_was_answered_is_there_after_the_process_is_killed() {
    let gatepost = start();
    let pipeline = Pipeline::new(&gatepost);
    for number in 0..5 {
        let document = new_client(&format!("shop{number}"));
        let planned = pipeline.plan(&document);
        let done = pipeline.apply(&document, &planned["registry_version"]);
        done.assert_status(200);
        let process = gatepost.server_processes()[0].to_string();
        let killed = Command::new("kill").args(["-9", &process]).status();
        assert!(killed.unwrap().success());
        gatepost.await_ready();
        let after = pipeline.plan(&document);
        assert_eq!(counts(&after), [0, 0, 0], "shop{number}");
    }
    let events = gatepost.run_line("audit list --event client_changed --json");
    for number in 0..5 {
        events.assert_says(&format!("\"shop{number}\""));
    }
}

/// Nothing but curl and a shell.
#[test]
fn a_pipeline_with_nothing_but_curl_applies_a_document() {
    let gatepost = start();
    let file = gatepost.private_file("registration.json", &new_client("shop").to_string());
    let script = r#"
        set -euo pipefail
        token=$(curl -sf -u "pipeline:$SECRET" -d grant_type=client_credentials -d "scope=registration.read registration.write" \
            "$BASE/connect/token" | sed -E 's/.*"access_token":"([^"]*)".*/\1/')
        post() { curl -sf -H "Authorization: Bearer $token" -H "Content-Type: application/json" --data-binary "@$FILE" "$1"; }
        version=$(post "$BASE/admin/plan" | sed -E 's/.*"registry_version":([0-9]*).*/\1/')
        post "$BASE/admin/apply?version=$version"
    "#;
    let output = Command::new("bash")
        .args(["-c", script])
        .env("SECRET", CONF1_SECRET)
        .env("BASE", &gatepost.base_url)
        .env("FILE", &file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts(&done), [1, 0, 0]);
    let shown = gatepost.run_well(&["client", "show", "shop", "--json"], "");
    assert!(shown.contains("https://new.example/cb"), "{shown}");
}

/// What the page has people type.
#[test]
fn the_pipeline_of_the_page_fails_where_it_is_refused() {
    let gatepost = start();
    let page = std::fs::read_to_string("docs/operate/registration-over-http.md").unwrap();
    let blocks = page
        .split("```sh\n")
        .map(|block| block.split("```").next().unwrap());
    let block = blocks
        .filter(|block| block.contains("/admin/apply?"))
        .last()
        .unwrap();
    let script = block
        .replace("https://login.example.com", &gatepost.base_url)
        .replace("only-an-example-make-your-own", CONF1_SECRET);
    let moved = script.replace("version=", "version=1");
    let unknown = json!({"clients": [{"client_id": "shop", "scope": "nonsense"}]});
    for (script, document, is_done) in [
        (&script, &unknown, false),
        (&moved, &new_client("shop"), false),
        (&script, &new_client("shop"), true),
    ] {
        let file = gatepost.private_file("registration.json", &document.to_string());
        let output = Command::new("bash")
            .args(["-c", script])
            .current_dir(file.parent().unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.success(), is_done, "{output:?}");
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(told.contains("error_description"), !is_done, "{told}");
    }
}

#[test]
fn the_recipe_for_opentofu_plans_and_applies_its_document() {
    let gatepost = start();
    let told = ["plan", "apply", "plan"].map(|command| {
        let output = Command::new("deploy/opentofu/registration")
            .arg(command)
            .env("ISSUER", &gatepost.base_url)
            .env("CLIENT_ID", "pipeline")
            .env("CLIENT_SECRET", CONF1_SECRET)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    let added = "{\"added\":1,\"changed\":0,\"removed\":0}\n";
    assert_eq!(told[1], format!("{}{added}", told[0]));
    assert_eq!([&told[0], &told[2]], ["add client wiki\n", ""]);
}
