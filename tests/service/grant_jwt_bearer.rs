//! `grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer` (RFC 7523 §2.1): somebody else's word
//! for who a user is.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::flow::{basic, userinfo};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::Answer;
use crate::support::jwt::forge;
use crate::support::signer::{Behaviour, Signer, WebServer, key_set, now};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Issuers: one whose subjects are linked, one whose subjects are user names, one for a tenant, one
/// provider.
const IDP: &str = "https://idp.example";
const NAMES: &str = "https://names.example/realm";
const ACME: &str = "https://acme.example";
const CORP: &str = "https://corp.example";

/// Refusals count as guesses, and there are many here.
const PATIENT: (&str, &str) = ("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "1000");

fn broker(client_id: &str, members: Value) -> Value {
    let mut client = json!({
        "client_id": client_id, "response_types": [],
        "grant_types": [GRANT, "urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "scope": "openid profile offline_access orders.read orders.write stock.read", "secrets": [{"value": CONF1_SECRET}]
    });
    for (name, value) in members.as_object().unwrap() {
        client[name] = value.clone();
    }
    client
}

fn issuer(issuer: &str, signer: &Signer, members: Value) -> Value {
    let mut entry = json!({
        "issuer": issuer, "jwks": key_set(&[signer]), "algs": [signer.alg], "clients": ["broker"],
        "scope": "openid profile offline_access orders.read"
    });
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry
}

fn with(clients: &[Value], issuers: &[Value]) -> Value {
    let mut document = document();
    document["clients"]
        .as_array_mut()
        .unwrap()
        .extend(clients.iter().cloned());
    document["assertion_issuers"] = json!(issuers);
    document["tenants"] = json!([{"name": "acme"}, {"name": "globex"}]);
    let users = document["users"].as_array_mut().unwrap();
    users.push(json!({"username": "carol", "tenant": "acme", "claims": {"name": "Carol of Acme"}}));
    users.push(
        json!({"username": "carol", "tenant": "globex", "claims": {"name": "Carol of Globex"}}),
    );
    users.push(json!({"username": "dave", "enabled": false}));
    document
}

fn claims(gatepost: &Gatepost, issuer: &str, subject: &str) -> Value {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let jti = URL_SAFE_NO_PAD.encode(
        aws_lc_rs::rand::generate::<[u8; 16]>(&random)
            .unwrap()
            .expose(),
    );
    json!({"iss": issuer, "sub": subject, "aud": gatepost.base_url, "exp": now() + 60, "jti": jti})
}

fn changed(mut claims: Value, name: &str, value: Value) -> Value {
    let members = claims.as_object_mut().unwrap();
    drop(if value.is_null() {
        members.remove(name)
    } else {
        members.insert(name.to_owned(), value)
    });
    claims
}

fn ask_as(
    gatepost: &Gatepost,
    client_id: &str,
    assertion: &str,
    further: &[(&str, &str)],
) -> Answer {
    let form = [("grant_type", GRANT), ("assertion", assertion)];
    gatepost.token(client_id, &[&form, further].concat())
}

fn ask(gatepost: &Gatepost, assertion: &str, further: &[(&str, &str)]) -> Answer {
    ask_as(gatepost, "broker", assertion, further)
}

fn link(gatepost: &Gatepost, username: &str, issuer: &str, subject: &str) {
    gatepost.run_well(
        &[
            "user",
            "link",
            username,
            "--issuer",
            issuer,
            "--subject",
            subject,
        ],
        "",
    );
}

/// The reason in the log line of the last token request.
fn last_reason(gatepost: &Gatepost) -> String {
    let log = gatepost.log();
    let line = log
        .lines()
        .rev()
        .find(|line| line.contains("path=/connect/token"))
        .unwrap();
    let start = line
        .find("GP1")
        .unwrap_or_else(|| panic!("no reason in {line}"));
    line[start..start + 6].to_owned()
}

/// The one public text, and that reason in the log.
fn assert_invalid(gatepost: &Gatepost, answer: &Answer, code: &str, case: &str) {
    answer.assert_refused(400, "invalid_grant", case);
    answer.assert_member_for(case, "error_description", "The grant is not valid.");
    assert_eq!(last_reason(gatepost), code, "{case}");
}

#[test]
fn ed25519_is_read_as_eddsa_and_registered_under_either_name() {
    let signers = [Signer::ed25519("d"), Signer::ed25519_by_its_newer_name("d")];
    let [older, newer] = &signers;
    let both = json!({"algs": ["Ed25519", "EdDSA", "RS256"]});
    let issuers = [
        issuer(IDP, older, json!({})),
        issuer(NAMES, newer, json!({})),
        issuer(ACME, newer, both),
    ];
    let registered = with(&[broker("broker", json!({}))], &issuers);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for (name, signer) in [(IDP, older), (NAMES, newer), (ACME, newer)] {
        link(&gatepost, "alice", name, "hers");
        for alg in ["EdDSA", "Ed25519"] {
            let assertion = signer.sign_under(
                &json!({"alg": alg, "kid": "d"}),
                &claims(&gatepost, name, "hers"),
            );
            let answer = ask(&gatepost, &assertion, &[]);
            assert_eq!(answer.status, 200, "{name} {alg}: {}", answer.text());
        }
    }
    let exported: Value = serde_json::from_str(&gatepost.run_well(&["export"], "")).unwrap();
    let mut algs: Vec<&Value> = Vec::new();
    algs.extend(
        exported["assertion_issuers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|issuer| &issuer["algs"]),
    );
    algs.sort_by_key(|algs| algs.to_string());
    assert_eq!(
        algs,
        [
            &json!(["EdDSA"]),
            &json!(["EdDSA"]),
            &json!(["RS256", "EdDSA"])
        ]
    );
    let again = gatepost.run_well(&["apply", "-"], &registered.to_string());
    assert!(again.starts_with("0 added, 0 changed, "), "{again}");
}

fn members(answer: &Answer) -> Vec<String> {
    answer.json().as_object().unwrap().keys().cloned().collect()
}

#[test]
fn a_linked_subject_gets_a_token_that_speaks_for_the_user_here() {
    let signer = Signer::rs256("k");
    let clients = [broker("broker", json!({}))];
    let gatepost = Gatepost::start_with(&with(&clients, &[issuer(IDP, &signer, json!({}))]), &[]);
    link(&gatepost, "alice", IDP, "248289761001");
    let fresh = || signer.sign(&claims(&gatepost, IDP, "248289761001"));
    let answer = ask(&gatepost, &fresh(), &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        members(&answer),
        [
            "access_token",
            "expires_in",
            "id_token",
            "scope",
            "token_type"
        ],
        "no refresh token"
    );
    answer.assert_member_for(
        "the client's and the issuer's, nothing offline",
        "scope",
        "openid profile orders.read",
    );
    answer.assert_header("cache-control", "no-store");
    answer.assert_header("pragma", "no-cache");
    let access_token = answer.json()["access_token"].as_str().unwrap().to_owned();
    let info = userinfo(&gatepost, &access_token).json();
    assert_eq!(info["name"], "Alice Smith");
    assert_ne!(info["sub"], "248289761001", "the subject is ours");
    let (header, token) = crate::support::jwt::verified(&gatepost, &access_token);
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(token["client_id"], "broker");
    assert_eq!(token["sub"], info["sub"]);
    assert_eq!(token.get("sid"), None);
    assert_eq!(token["aud"], "https://orders.example");

    let narrow = ask(&gatepost, &fresh(), &[("scope", "orders.read")]);
    narrow.assert_status(200);
    assert_eq!(
        members(&narrow),
        ["access_token", "expires_in", "scope", "token_type"]
            .map(String::from)
            .to_vec()
    );
    let elsewhere = ask(
        &gatepost,
        &fresh(),
        &[("resource", "https://stock.example")],
    );
    elsewhere.assert_refused(400, "invalid_target", "a resource of other scopes");
    let token_url = format!("{}/connect/token", gatepost.base_url);
    for (case, claims) in [
        (
            "the token endpoint as aud",
            changed(
                claims(&gatepost, IDP, "248289761001"),
                "aud",
                json!(token_url),
            ),
        ),
        (
            "aud in an array",
            changed(
                claims(&gatepost, IDP, "248289761001"),
                "aud",
                json!([gatepost.base_url]),
            ),
        ),
    ] {
        ask(&gatepost, &signer.sign(&claims), &[]).assert_status_for(case, 200);
    }
    let untyped = signer.sign_under(
        &json!({"alg": "RS256"}),
        &claims(&gatepost, IDP, "248289761001"),
    );
    ask(&gatepost, &untyped, &[]).assert_status_for("neither typ nor kid", 200);
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    assert!(
        metadata["grant_types_supported"]
            .as_array()
            .unwrap()
            .contains(&json!(GRANT))
    );

    gatepost.run_well(&["user", "revoke", "alice"], "");
    userinfo(&gatepost, &access_token)
        .assert_status_for("what was given ends with the rest of the user's", 401);
    gatepost.run_well(
        &[
            "user",
            "unlink",
            "alice",
            "--issuer",
            IDP,
            "--subject",
            "248289761001",
        ],
        "",
    );
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &fresh(), &[]),
        "GP1247",
        "unlinked",
    );
}

#[test]
fn what_is_no_good_assertion_is_refused() {
    let (signer, second, foreign, ec) = (
        Signer::rs256("k"),
        Signer::rs256("k2"),
        Signer::rs256("k"),
        Signer::es256("k"),
    );
    let idp = issuer(IDP, &signer, json!({"jwks": key_set(&[&signer, &second])}));
    let clients = [
        broker("broker", json!({})),
        broker("outsider", json!({})),
        broker(
            "without",
            json!({"grant_types": ["client_credentials"], "scope": "orders.read"}),
        ),
    ];
    let gatepost = Gatepost::start_with(&with(&clients, &[idp]), &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    let usual = || claims(&gatepost, IDP, "1");
    let public = signer.jwk()["n"].as_str().unwrap().to_owned();
    let by_public_key = |input: &[u8]| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_bytes());
        aws_lc_rs::hmac::sign(&key, input).as_ref().to_vec()
    };
    let good = signer.sign(&usual());
    let server = WebServer::start(Behaviour::Json(key_set(&[&foreign])));
    let tempting = json!({"alg": "RS256", "kid": "k", "jku": server.url("/"), "x5u": server.url("/"), "jwk": foreign.jwk()});
    for (case, code, assertion) in [
        (
            "alg none",
            "GP1241",
            forge(&json!({"alg": "none"}), &usual(), |_| Vec::new()),
        ),
        (
            "alg none, signed",
            "GP1241",
            forge(&json!({"alg": "none"}), &usual(), |_| vec![1]),
        ),
        (
            "HS256 with the public key",
            "GP1241",
            forge(
                &json!({"alg": "HS256", "kid": "k"}),
                &usual(),
                by_public_key,
            ),
        ),
        (
            "HMAC called RS256",
            "GP1243",
            forge(
                &json!({"alg": "RS256", "kid": "k"}),
                &usual(),
                by_public_key,
            ),
        ),
        (
            "an algorithm that is not registered",
            "GP1242",
            ec.sign(&usual()),
        ),
        (
            "an unknown kid",
            "GP1242",
            signer.sign_under(&json!({"alg": "RS256", "kid": "x"}), &usual()),
        ),
        (
            "no kid among several keys",
            "GP1242",
            signer.sign_under(&json!({"alg": "RS256"}), &usual()),
        ),
        (
            "the other key's kid",
            "GP1243",
            signer.sign_under(&json!({"alg": "RS256", "kid": "k2"}), &usual()),
        ),
        ("a foreign key", "GP1243", foreign.sign(&usual())),
        (
            "keys of its own along",
            "GP1243",
            foreign.sign_under(&tempting, &usual()),
        ),
        (
            "an access token's typ",
            "GP1241",
            signer.sign_under(
                &json!({"alg": "RS256", "kid": "k", "typ": "at+jwt"}),
                &usual(),
            ),
        ),
        (
            "a client assertion's typ",
            "GP1241",
            signer.sign_under(
                &json!({"alg": "RS256", "kid": "k", "typ": "client-authentication+jwt"}),
                &usual(),
            ),
        ),
        (
            "a critical extension",
            "GP1241",
            signer.sign_under(
                &json!({"alg": "RS256", "kid": "k", "crit": ["b64"], "b64": true}),
                &usual(),
            ),
        ),
        ("no JWT", "GP1241", String::from("assertion")),
        ("an altered end", "GP1241", format!("{good}=")),
    ] {
        assert_invalid(&gatepost, &ask(&gatepost, &assertion, &[]), code, case);
    }
    assert_eq!(
        server.requests(),
        Vec::<String>::new(),
        "nobody is asked where the header says"
    );
    for (case, code, claims) in wrong_claims(&gatepost) {
        assert_invalid(
            &gatepost,
            &ask(&gatepost, &signer.sign(&claims), &[]),
            code,
            case,
        );
    }
    assert_invalid(
        &gatepost,
        &ask_as(&gatepost, "outsider", &good, &[]),
        "GP1241",
        "a client that is not named",
    );
    let answer = ask_as(&gatepost, "without", &good, &[]);
    answer.assert_refused(400, "unauthorized_client", "a client without the grant");
    assert_bad_requests(&gatepost, &good);
    ask(&gatepost, &good, &[]).assert_status_for("none of that spent the good one", 200);
}

/// Claims of the issuer that are good for nothing, each with the reason.
fn wrong_claims(gatepost: &Gatepost) -> Vec<(&'static str, &'static str, Value)> {
    let usual = || claims(gatepost, IDP, "1");
    let two = json!([gatepost.base_url, "https://other.example"]);
    let metadata: Value = gatepost.get("/.well-known/openid-configuration").json();
    vec![
        (
            "an unknown issuer",
            "GP1241",
            changed(usual(), "iss", json!("https://other.example")),
        ),
        (
            "the issuer with a slash",
            "GP1241",
            changed(usual(), "iss", json!(format!("{IDP}/"))),
        ),
        (
            "ourselves as issuer",
            "GP1241",
            changed(usual(), "iss", metadata["issuer"].clone()),
        ),
        ("no issuer", "GP1241", changed(usual(), "iss", Value::Null)),
        ("no subject", "GP1244", changed(usual(), "sub", Value::Null)),
        (
            "a number as subject",
            "GP1244",
            changed(usual(), "sub", json!(1)),
        ),
        ("two audiences", "GP1244", changed(usual(), "aud", two)),
        (
            "another audience",
            "GP1244",
            changed(usual(), "aud", json!("https://other.example")),
        ),
        (
            "the client as audience",
            "GP1244",
            changed(usual(), "aud", json!("broker")),
        ),
        (
            "no audience",
            "GP1244",
            changed(usual(), "aud", Value::Null),
        ),
        (
            "expired",
            "GP1244",
            changed(usual(), "exp", json!(now() - 62)),
        ),
        (
            "too far ahead",
            "GP1244",
            changed(usual(), "exp", json!(now() + 700)),
        ),
        ("no end", "GP1244", changed(usual(), "exp", Value::Null)),
        (
            "not before later",
            "GP1244",
            changed(usual(), "nbf", json!(now() + 120)),
        ),
        (
            "made in the future",
            "GP1244",
            changed(usual(), "iat", json!(now() + 120)),
        ),
        ("no jti", "GP1244", changed(usual(), "jti", Value::Null)),
        (
            "somebody unknown",
            "GP1247",
            changed(usual(), "sub", json!("2")),
        ),
        (
            "a user name where links count",
            "GP1247",
            changed(usual(), "sub", json!("alice")),
        ),
        ("NUL", "GP1247", changed(usual(), "sub", json!("1\0"))),
        (
            "SQL",
            "GP1247",
            changed(usual(), "sub", json!("' OR '1'='1")),
        ),
        (
            "a very long subject",
            "GP1247",
            changed(usual(), "sub", json!("1".repeat(2_000))),
        ),
    ]
}

fn assert_bad_requests(gatepost: &Gatepost, good: &str) {
    let header = [("Authorization", basic("broker", CONF1_SECRET))];
    let header = [(header[0].0, header[0].1.as_str())];
    let grant = ("grant_type", GRANT);
    let long = "x".repeat(16_385);
    for (case, form) in [
        ("no assertion", vec![grant]),
        ("an empty assertion", vec![grant, ("assertion", "")]),
        (
            "two assertions",
            vec![grant, ("assertion", good), ("assertion", good)],
        ),
        ("oversized", vec![grant, ("assertion", &long)]),
    ] {
        gatepost
            .post("/connect/token", &header, &form)
            .assert_refused(400, "invalid_request", case);
    }
    for scope in [
        "orders.write",
        "openid orders.write",
        "offline_access",
        "nope",
        "email",
    ] {
        ask(gatepost, good, &[("scope", scope)]).assert_refused(400, "invalid_scope", scope);
    }
    let with_unknown_tenant = ask(gatepost, good, &[("acr_values", "tenant:nope")]);
    with_unknown_tenant.assert_refused(400, "invalid_request", "an unknown tenant");
    let in_url = format!("/connect/token?assertion={good}");
    gatepost
        .post(&in_url, &header, &[grant])
        .assert_refused(400, "invalid_request", "in the URL");
    let unproven = gatepost.post(
        "/connect/token",
        &[],
        &[grant, ("assertion", good), ("client_id", "broker")],
    );
    unproven.assert_refused(400, "invalid_client", "the client must prove itself");
}

#[test]
fn an_assertion_is_good_once_over_all_processes() {
    let signer = Signer::ed25519("k");
    let clients = [broker("broker", json!({})), broker("other", json!({}))];
    let idp = issuer(IDP, &signer, json!({"clients": ["broker", "other"]}));
    let gatepost = Gatepost::start_with(&with(&clients, &[idp]), &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    let mut beside = gatepost.beside();
    beside.serve();
    let assertion = signer.sign(&claims(&gatepost, IDP, "1"));
    assert_eq!(ask(&gatepost, &assertion, &[]).status, 200);
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &assertion, &[]),
        "GP1245",
        "again",
    );
    assert_invalid(
        &beside,
        &ask(&beside, &assertion, &[]),
        "GP1245",
        "at a second process",
    );
    assert_invalid(
        &gatepost,
        &ask_as(&gatepost, "other", &assertion, &[]),
        "GP1245",
        "by another client",
    );
    // One that names nobody is spent as well, so that nobody can be linked to it afterwards.
    let early = signer.sign(&claims(&gatepost, IDP, "2"));
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &early, &[]),
        "GP1247",
        "before the link",
    );
    link(&gatepost, "bob", IDP, "2");
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &early, &[]),
        "GP1245",
        "after the link",
    );
    let raced = signer.sign(&claims(&gatepost, IDP, "2"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked = (0..8).map(|index| {
            let (at, raced) = (if index % 2 == 0 { &gatepost } else { &beside }, &raced);
            scope.spawn(move || ask(at, raced, &[]).status)
        });
        asked
            .collect::<Vec<_>>()
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    });
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
}

#[test]
fn an_issuer_that_is_removed_is_believed_nowhere_any_more() {
    let signer = Signer::ed25519("k");
    let idp = issuer(IDP, &signer, json!({}));
    let registered = with(&[broker("broker", json!({}))], &[idp]);
    let gatepost = Gatepost::start_with(&registered, &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    let mut beside = gatepost.beside();
    beside.serve();
    for at in [&gatepost, &beside] {
        let assertion = signer.sign(&claims(&gatepost, IDP, "1"));
        assert_eq!(ask(at, &assertion, &[]).status, 200);
    }
    let none = json!({"assertion_issuers": []}).to_string();
    gatepost.run_well(&["apply", "-", "--prune", "--yes"], &none);
    gatepost.settle();
    beside.settle();
    for at in [&gatepost, &beside] {
        let assertion = signer.sign(&claims(&gatepost, IDP, "1"));
        assert_invalid(at, &ask(at, &assertion, &[]), "GP1241", "of one removed");
    }
}

#[test]
fn whom_a_subject_means_is_the_registrations_to_say() {
    let signer = Signer::es256("k");
    let one = |client: &str| json!({"clients": [client], "subject": "username"});
    let mut acme = one("acme");
    acme["tenant"] = json!("acme");
    let mut corp = json!({"clients": ["of-corp", "broker"]});
    corp["subject"] = json!("link");
    let issuers = [
        issuer(IDP, &signer, json!({"clients": ["broker"]})),
        issuer(NAMES, &signer, one("broker")),
        issuer(ACME, &signer, acme),
        issuer(CORP, &signer, corp),
    ];
    let clients = [
        broker("broker", json!({"identity_providers": ["local"]})),
        broker("acme", json!({"tenants": ["acme"]})),
        broker("of-corp", json!({"identity_providers": ["corp"]})),
    ];
    let mut document = with(&clients, &issuers);
    document["identity_providers"] =
        json!([{"name": "corp", "issuer": CORP, "client_id": "gatepost"}]);
    let gatepost = Gatepost::start_with(&document, &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    link(&gatepost, "alice", CORP, "c1");
    let name_of = |client: &str, issuer: &str, subject: &str| {
        let answer = ask_as(
            &gatepost,
            client,
            &signer.sign(&claims(&gatepost, issuer, subject)),
            &[],
        );
        assert_eq!(answer.status, 200, "{issuer} {subject}: {}", answer.text());
        let token = answer.json()["access_token"].as_str().unwrap().to_owned();
        let info = userinfo(&gatepost, &token).json();
        (
            info["name"].as_str().unwrap().to_owned(),
            info["sub"].as_str().unwrap().to_owned(),
        )
    };
    let (name, sub) = name_of("broker", IDP, "1");
    assert_eq!(name, "Alice Smith");
    assert_eq!(
        name_of("broker", NAMES, "BOB").0,
        "Bob",
        "user names are compared as at sign-in"
    );
    assert_eq!(name_of("acme", ACME, "carol").0, "Carol of Acme");
    assert_eq!(name_of("of-corp", CORP, "c1").0, "Alice Smith");
    for (case, code, client, issuer, subject) in [
        (
            "our own sub where links count",
            "GP1247",
            "broker",
            IDP,
            sub.as_str(),
        ),
        (
            "our own sub where names count",
            "GP1247",
            "broker",
            NAMES,
            &sub,
        ),
        ("a link of another issuer", "GP1247", "broker", IDP, "c1"),
        (
            "a subject that is linked, where names count",
            "GP1247",
            "broker",
            NAMES,
            "1",
        ),
        ("a name of a tenant", "GP1247", "broker", NAMES, "carol"),
        ("a name of no tenant", "GP1247", "acme", ACME, "alice"),
        ("a disabled user", "GP1261", "broker", NAMES, "dave"),
        (
            "a provider that the client does not allow",
            "GP1261",
            "broker",
            CORP,
            "c1",
        ),
    ] {
        let assertion = signer.sign(&claims(&gatepost, issuer, subject));
        assert_invalid(
            &gatepost,
            &ask_as(&gatepost, client, &assertion, &[]),
            code,
            case,
        );
    }
}

#[test]
fn keys_at_an_address_follow_the_issuer() {
    let (old, new) = (Signer::rs256("old"), Signer::rs256("new"));
    let server = WebServer::start(Behaviour::Json(key_set(&[&old])));
    let remote = |issuer_name: &str, jwks_uri: String| {
        issuer(
            issuer_name,
            &old,
            json!({"jwks": null, "jwks_uri": jwks_uri}),
        )
    };
    let issuers = [
        remote(IDP, server.url("/keys")),
        remote(NAMES, String::from("http://127.0.0.1:1/keys")),
    ];
    let settings = [PATIENT, ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")];
    let gatepost = Gatepost::start_with(&with(&[broker("broker", json!({}))], &issuers), &settings);
    link(&gatepost, "alice", IDP, "1");
    let fresh = |signer: &Signer| signer.sign(&claims(&gatepost, IDP, "1"));
    assert_eq!(ask(&gatepost, &fresh(&old), &[]).status, 200);
    assert_eq!(ask(&gatepost, &fresh(&old), &[]).status, 200);
    assert_eq!(server.requests().len(), 1);
    server.behave(Behaviour::Json(key_set(&[&new])));
    assert_eq!(ask(&gatepost, &fresh(&new), &[]).status, 200);
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &fresh(&old), &[]),
        "GP1242",
        "the old key is gone",
    );
    let unreachable = old.sign(&claims(&gatepost, NAMES, "1"));
    assert_invalid(
        &gatepost,
        &ask(&gatepost, &unreachable, &[]),
        "GP1246",
        "no keys to be had",
    );
}

#[test]
fn only_what_was_looked_at_counts_as_a_guess() {
    let signer = Signer::es256("k");
    let nowhere = json!({"jwks": null, "jwks_uri": "http://127.0.0.1:1/keys"});
    let issuers = [
        issuer(IDP, &signer, json!({})),
        issuer(NAMES, &signer, nowhere),
    ];
    let settings = [
        ("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "2"),
        ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8"),
    ];
    let gatepost = Gatepost::start_with(&with(&[broker("broker", json!({}))], &issuers), &settings);
    for _ in 0..4 {
        let unreachable = ask(
            &gatepost,
            &signer.sign(&claims(&gatepost, NAMES, "alice")),
            &[],
        );
        assert_invalid(&gatepost, &unreachable, "GP1246", "no keys to be had");
    }
    let unknown = || {
        ask(
            &gatepost,
            &signer.sign(&claims(&gatepost, IDP, "nobody")),
            &[],
        )
        .status
    };
    assert_eq!([unknown(), unknown(), unknown()], [400, 400, 429]);
}

#[test]
fn links_are_made_by_the_operator_and_belong_to_one_user() {
    let signer = Signer::es256("k");
    let gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&with(
        &[broker("broker", json!({}))],
        &[issuer(IDP, &signer, json!({}))],
    ));
    let run = |arguments: &[&str]| {
        let output = gatepost.run(arguments, "");
        (
            output.status.code(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let link = ["user", "link", "alice", "--issuer", IDP, "--subject", "1"];
    assert_eq!(run(&link), (Some(0), format!("alice is 1 at {IDP}\n")));
    assert_eq!(run(&link), (Some(0), String::from("that is so already\n")));
    let shown: Value = serde_json::from_str(&run(&["user", "show", "alice", "--json"]).1).unwrap();
    assert_eq!(
        shown["identities"],
        json!([{"claims": {}, "issuer": IDP, "subject": "1", "providers": []}])
    );
    for (case, code, arguments) in [
        (
            "somebody else's",
            1,
            vec!["user", "link", "bob", "--issuer", IDP, "--subject", "1"],
        ),
        (
            "an issuer nobody registered",
            1,
            vec![
                "user",
                "link",
                "bob",
                "--issuer",
                "https://x.example",
                "--subject",
                "1",
            ],
        ),
        (
            "nobody",
            1,
            vec!["user", "link", "nobody", "--issuer", IDP, "--subject", "2"],
        ),
        (
            "no subject",
            2,
            vec!["user", "link", "bob", "--issuer", IDP],
        ),
        (
            "an empty subject",
            2,
            vec!["user", "link", "bob", "--issuer", IDP, "--subject", ""],
        ),
        (
            "no issuer",
            2,
            vec!["user", "link", "bob", "--subject", "2"],
        ),
        (
            "not bob's to lose",
            1,
            vec!["user", "unlink", "bob", "--issuer", IDP, "--subject", "1"],
        ),
    ] {
        let (status, said) = run(&arguments);
        assert_eq!(status, Some(code), "{case}: {said}");
    }
    let unlink = ["user", "unlink", "alice", "--issuer", IDP, "--subject", "1"];
    assert_eq!((run(&unlink).0, run(&unlink).0), (Some(0), Some(1)));
    assert_eq!(
        run(&["user", "link", "bob", "--issuer", IDP, "--subject", "1"]).0,
        Some(0),
        "free again"
    );
    gatepost.run_well(&["user", "remove", "bob"], "");
    assert_eq!(run(&link).0, Some(0), "a link goes with its user");
}
