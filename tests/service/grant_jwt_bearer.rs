//! `grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer` (RFC 7523 §2.1): somebody else's word
//! for who a user is.

use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{changed_members, issued, text, userinfo};
use crate::support::flow::{with_further_clients, with_members};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::Answer;
use crate::support::jwt::{forge, verified};
use crate::support::signer::{Behaviour, Signer, WebServer, assertion, key_set, now};
use crate::support::tables::cases;
use crate::support::waiting::all_at_once;

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
    let client = json!({
        "client_id": client_id, "response_types": [],
        "grant_types": [GRANT, "urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "scope": "openid profile offline_access orders.read orders.write stock.read", "secrets": [{"value": CONF1_SECRET}]
    });
    with_members(client, &members)
}

fn issuer(issuer: &str, signer: &Signer, members: Value) -> Value {
    let entry = json!({
        "issuer": issuer, "jwks": key_set(&[signer]), "algs": [signer.alg], "clients": ["broker"],
        "scope": "openid profile offline_access orders.read"
    });
    with_members(entry, &members)
}

fn with(clients: &[Value], issuers: &[Value]) -> Value {
    let mut document = with_further_clients(document(), clients);
    document["assertion_issuers"] = json!(issuers);
    document["tenants"] = json!([{"name": "acme"}, {"name": "globex"}]);
    let users = document["users"].as_array_mut().unwrap();
    for (tenant, name) in [("acme", "Carol of Acme"), ("globex", "Carol of Globex")] {
        users.push(json!({"username": "carol", "tenant": tenant, "claims": {"name": name}}));
    }
    users.push(json!({"username": "dave", "enabled": false}));
    document
}

/// The usual client, and these issuers.
fn with_issuers(issuers: &[Value]) -> Value {
    with(&[broker("broker", json!({}))], issuers)
}

fn claims(gatepost: &Gatepost, issuer: &str, subject: &str) -> Value {
    assertion(issuer, subject, &gatepost.base_url)
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
    gatepost.run_line(&format!(
        "user link {username} --issuer {issuer} --subject {subject}"
    ));
}

/// The one public text, and that reason in the log.
#[track_caller]
fn assert_invalid(gatepost: &Gatepost, answer: &Answer, code: &str, case: &str) {
    answer.assert_refused(400, "invalid_grant", case);
    answer.assert_member_for(case, "error_description", "The grant is not valid.");
    gatepost
        .last_line("path=/connect/token")
        .assert_says_for(case, code);
}

/// That of a request with this assertion.
#[track_caller]
fn assert_no_grant(gatepost: &Gatepost, assertion: &str, code: &str, case: &str) {
    assert_invalid(gatepost, &ask(gatepost, assertion, &[]), code, case);
}

#[test]
fn ed25519_is_read_as_eddsa_and_registered_under_either_name() {
    let [older, newer] = [Signer::ed25519("d"), Signer::ed25519_by_its_newer_name("d")];
    let both = json!({"algs": ["Ed25519", "EdDSA", "RS256"]});
    let registered = with_issuers(&[
        issuer(IDP, &older, json!({})),
        issuer(NAMES, &newer, json!({})),
        issuer(ACME, &newer, both),
    ]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for (name, signer) in [(IDP, &older), (NAMES, &newer), (ACME, &newer)] {
        link(&gatepost, "alice", name, "hers");
        for alg in ["EdDSA", "Ed25519"] {
            let header = json!({"alg": alg, "kid": "d"});
            let assertion = signer.sign_under(&header, &claims(&gatepost, name, "hers"));
            ask(&gatepost, &assertion, &[]).assert_status_for(format!("{name} {alg}"), 200);
        }
    }
    let exported = gatepost.shown("export");
    let issuers = exported["assertion_issuers"].as_array().unwrap().iter();
    let mut algs: Vec<String> = issuers.map(|issuer| issuer["algs"].to_string()).collect();
    algs.sort();
    assert_eq!(
        algs,
        [r#"["EdDSA"]"#, r#"["EdDSA"]"#, r#"["RS256","EdDSA"]"#]
    );
    let again = gatepost.run_well(&["apply", "-"], &registered.to_string());
    assert!(again.starts_with("0 added, 0 changed, "), "{again}");
}

#[test]
fn a_linked_subject_gets_a_token_that_speaks_for_the_user_here() {
    const SUBJECT: &str = "248289761001";
    let signer = Signer::rs256("k");
    let registered = with_issuers(&[issuer(IDP, &signer, json!({}))]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    link(&gatepost, "alice", IDP, SUBJECT);
    let usual = || claims(&gatepost, IDP, SUBJECT);
    let answer = ask(&gatepost, &signer.sign(&usual()), &[]);
    let tokens = issued(&answer);
    // No refresh token; the scope is the client's and the issuer's, and nothing offline.
    tokens.assert_members("access_token expires_in id_token scope token_type");
    assert_eq!(tokens["scope"], "openid profile orders.read");
    answer.assert_header("cache-control", "no-store");
    answer.assert_header("pragma", "no-cache");
    let access_token = text(&tokens, "access_token");
    let info = userinfo(&gatepost, access_token).json();
    assert_eq!(info["name"], "Alice Smith");
    assert_ne!(info["sub"], SUBJECT, "the subject is ours");
    let (header, token) = verified(&gatepost, access_token);
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(token["client_id"], "broker");
    assert_eq!(token["sub"], info["sub"]);
    assert_eq!(token.get("sid"), None);
    assert_eq!(token["aud"], "https://orders.example");

    let narrow = ask(
        &gatepost,
        &signer.sign(&usual()),
        &[("scope", "orders.read")],
    );
    issued(&narrow).assert_members("access_token expires_in scope token_type");
    let stock = [("resource", "https://stock.example")];
    let elsewhere = ask(&gatepost, &signer.sign(&usual()), &stock);
    elsewhere.assert_refused(400, "invalid_target", "a resource of other scopes");
    let token_url = format!("{}/connect/token", gatepost.base_url);
    let taken = json!({
        "the token endpoint as aud": {"aud": token_url},
        "aud in an array": {"aud": [gatepost.base_url]},
    });
    for (case, changes) in cases(&taken) {
        let assertion = signer.sign(&changed_members(usual(), changes));
        ask(&gatepost, &assertion, &[]).assert_status_for(case, 200);
    }
    let untyped = signer.sign_under(&json!({"alg": "RS256"}), &usual());
    ask(&gatepost, &untyped, &[]).assert_status_for("neither typ nor kid", 200);
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    let grant_types = metadata["grant_types_supported"].as_array().unwrap();
    assert!(grant_types.contains(&json!(GRANT)));

    gatepost.run_line("user revoke alice");
    let ended = userinfo(&gatepost, access_token);
    ended.assert_status_for("what was given ends with the rest of the user's", 401);
    gatepost.run_line(&format!(
        "user unlink alice --issuer {IDP} --subject {SUBJECT}"
    ));
    assert_no_grant(&gatepost, &signer.sign(&usual()), "GP1247", "unlinked");
}

#[test]
fn what_is_no_good_assertion_is_refused() {
    let [signer, second, foreign] = ["k", "k2", "k"].map(Signer::rs256);
    let ec = Signer::es256("k");
    let idp = issuer(IDP, &signer, json!({"jwks": key_set(&[&signer, &second])}));
    let machine = json!({"grant_types": ["client_credentials"], "scope": "orders.read"});
    let clients = [
        broker("broker", json!({})),
        broker("outsider", json!({})),
        broker("without", machine),
    ];
    let gatepost = Gatepost::start_with(&with(&clients, &[idp]), &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    let usual = || claims(&gatepost, IDP, "1");
    let assert_no_grant =
        |assertion: &str, code: &str, case: &str| assert_no_grant(&gatepost, assertion, code, case);
    let good = signer.sign(&usual());
    for (case, signature) in [("alg none", vec![]), ("alg none, signed", vec![1])] {
        let forged = forge(&json!({"alg": "none"}), &usual(), |_| signature.clone());
        assert_no_grant(&forged, "GP1241", case);
    }
    for (alg, code) in [("HS256", "GP1241"), ("RS256", "GP1243")] {
        let hmac = signer.forge_by_public_key(&json!({"alg": alg, "kid": "k"}), &usual());
        assert_no_grant(
            &hmac,
            code,
            &format!("an HMAC with the public key, called {alg}"),
        );
    }
    let headers = json!({"GP1241": {
        "an access token's typ": {"alg": "RS256", "kid": "k", "typ": "at+jwt"},
        "a client assertion's typ": {"alg": "RS256", "kid": "k", "typ": "client-authentication+jwt"},
        "a critical extension": {"alg": "RS256", "kid": "k", "crit": ["b64"], "b64": true},
    }, "GP1242": {
        "an unknown kid": {"alg": "RS256", "kid": "x"},
        "no kid among several keys": {"alg": "RS256"},
    }, "GP1243": {
        "the other key's kid": {"alg": "RS256", "kid": "k2"},
    }});
    for (code, headers) in cases(&headers) {
        for (case, header) in cases(headers) {
            assert_no_grant(&signer.sign_under(header, &usual()), code, case);
        }
    }
    assert_no_grant(
        &ec.sign(&usual()),
        "GP1242",
        "an algorithm that is not registered",
    );
    assert_no_grant(&foreign.sign(&usual()), "GP1243", "a foreign key");
    let server = WebServer::start(Behaviour::Json(key_set(&[&foreign])));
    let tempting = json!({"alg": "RS256", "kid": "k", "jku": server.url("/"), "x5u": server.url("/"), "jwk": foreign.jwk()});
    let tempting = foreign.sign_under(&tempting, &usual());
    assert_no_grant(&tempting, "GP1243", "keys of its own along");
    assert_no_grant("assertion", "GP1241", "no JWT");
    assert_no_grant(&format!("{good}="), "GP1241", "an altered end");
    // Nobody is asked where the header says.
    assert_eq!(server.requests(), Vec::<String>::new());
    for (code, rows) in cases(&wrong_claims(&gatepost)) {
        for (case, changes) in cases(rows) {
            let claims = changed_members(usual(), changes);
            assert_no_grant(&signer.sign(&claims), code, case);
        }
    }
    let of_outsider = ask_as(&gatepost, "outsider", &good, &[]);
    assert_invalid(
        &gatepost,
        &of_outsider,
        "GP1241",
        "a client that is not named",
    );
    let answer = ask_as(&gatepost, "without", &good, &[]);
    answer.assert_refused(400, "unauthorized_client", "a client without the grant");
    assert_bad_requests(&gatepost, &good);
    ask(&gatepost, &good, &[]).assert_status_for("none of that spent the good one", 200);
}

/// Changes after which the issuer's claims are good for nothing, by the reason.
fn wrong_claims(gatepost: &Gatepost) -> Value {
    let metadata: Value = gatepost.get("/.well-known/openid-configuration").json();
    json!({"GP1241": {
        "an unknown issuer": {"iss": "https://other.example"},
        "the issuer with a slash": {"iss": format!("{IDP}/")},
        "ourselves as issuer": {"iss": metadata["issuer"]},
        "no issuer": {"iss": null},
    }, "GP1244": {
        "no subject": {"sub": null},
        "a number as subject": {"sub": 1},
        "two audiences": {"aud": [gatepost.base_url, "https://other.example"]},
        "another audience": {"aud": "https://other.example"},
        "the client as audience": {"aud": "broker"},
        "no audience": {"aud": null},
        "expired": {"exp": now() - 62},
        "too far ahead": {"exp": now() + 700},
        "no end": {"exp": null},
        "not before later": {"nbf": now() + 120},
        "made in the future": {"iat": now() + 120},
        "no jti": {"jti": null},
    }, "GP1247": {
        "somebody unknown": {"sub": "2"},
        "a user name where links count": {"sub": "alice"},
        "NUL": {"sub": "1\0"},
        "SQL": {"sub": "' OR '1'='1"},
        "a very long subject": {"sub": "1".repeat(2_000)},
    }})
}

fn assert_bad_requests(gatepost: &Gatepost, good: &str) {
    let grant = ("grant_type", GRANT);
    let proof = ("assertion", good);
    let long = "x".repeat(16_385);
    for (case, form) in [
        ("no assertion", vec![grant]),
        ("an empty assertion", vec![grant, ("assertion", "")]),
        ("two assertions", vec![grant, proof, proof]),
        ("oversized", vec![grant, ("assertion", &long)]),
    ] {
        let answer = gatepost.token("broker", &form);
        answer.assert_refused(400, "invalid_request", case);
    }
    let beyond = "orders.write|openid orders.write|offline_access|nope|email";
    for scope in beyond.split('|') {
        ask(gatepost, good, &[("scope", scope)]).assert_refused(400, "invalid_scope", scope);
    }
    let with_unknown_tenant = ask(gatepost, good, &[("acr_values", "tenant:nope")]);
    with_unknown_tenant.assert_refused(400, "invalid_request", "an unknown tenant");
    let in_url = format!("/connect/token?assertion={good}");
    let in_url = gatepost.post_as("broker", &in_url, &[grant]);
    in_url.assert_refused(400, "invalid_request", "in the URL");
    let unproven = [grant, proof, ("client_id", "broker")];
    let unproven = gatepost.post("/connect/token", &[], &unproven);
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
    ask(&gatepost, &assertion, &[]).assert_status(200);
    assert_no_grant(&gatepost, &assertion, "GP1245", "again");
    assert_no_grant(&beside, &assertion, "GP1245", "at a second process");
    let of_other = ask_as(&gatepost, "other", &assertion, &[]);
    assert_invalid(&gatepost, &of_other, "GP1245", "by another client");
    // One that names nobody is spent as well, so that nobody can be linked to it afterwards.
    let early = signer.sign(&claims(&gatepost, IDP, "2"));
    assert_no_grant(&gatepost, &early, "GP1247", "before the link");
    link(&gatepost, "bob", IDP, "2");
    assert_no_grant(&gatepost, &early, "GP1245", "after the link");
    let raced = signer.sign(&claims(&gatepost, IDP, "2"));
    let statuses = all_at_once(8, |index| {
        let at = if index % 2 == 0 { &gatepost } else { &beside };
        ask(at, &raced, &[]).status
    });
    let given = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(given, 1, "{statuses:?}");
}

#[test]
fn an_issuer_that_is_removed_is_believed_nowhere_any_more() {
    let signer = Signer::ed25519("k");
    let registered = with_issuers(&[issuer(IDP, &signer, json!({}))]);
    let gatepost = Gatepost::start_with(&registered, &[PATIENT]);
    link(&gatepost, "alice", IDP, "1");
    let mut beside = gatepost.beside();
    beside.serve();
    let fresh = || signer.sign(&claims(&gatepost, IDP, "1"));
    for at in [&gatepost, &beside] {
        ask(at, &fresh(), &[]).assert_status(200);
    }
    let none = json!({"assertion_issuers": []}).to_string();
    gatepost.run_well(&["apply", "-", "--prune", "--yes"], &none);
    gatepost.settle();
    beside.settle();
    for at in [&gatepost, &beside] {
        assert_no_grant(at, &fresh(), "GP1241", "of one removed");
    }
}

#[test]
fn whom_a_subject_means_is_the_registrations_to_say() {
    let signer = Signer::es256("k");
    let of_names = json!({"subject": "username"});
    let of_acme = json!({"clients": ["acme"], "subject": "username", "tenant": "acme"});
    let of_corp = json!({"clients": ["of-corp", "broker"], "subject": "link"});
    let issuers = [
        issuer(IDP, &signer, json!({})),
        issuer(NAMES, &signer, of_names),
        issuer(ACME, &signer, of_acme),
        issuer(CORP, &signer, of_corp),
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
    let asked = |client: &str, issuer: &str, subject: &str| {
        let assertion = signer.sign(&claims(&gatepost, issuer, subject));
        ask_as(&gatepost, client, &assertion, &[])
    };
    let claims_of = |client: &str, issuer: &str, subject: &str| {
        let tokens = issued(&asked(client, issuer, subject));
        userinfo(&gatepost, text(&tokens, "access_token")).json()
    };
    let alice = claims_of("broker", IDP, "1");
    assert_eq!(alice["name"], "Alice Smith");
    // User names are compared as at sign-in.
    assert_eq!(claims_of("broker", NAMES, "BOB")["name"], "Bob");
    assert_eq!(claims_of("acme", ACME, "carol")["name"], "Carol of Acme");
    assert_eq!(claims_of("of-corp", CORP, "c1")["name"], "Alice Smith");
    let refused = |case: &str, code: &str, client: &str, issuer: &str, subject: &str| {
        assert_invalid(&gatepost, &asked(client, issuer, subject), code, case);
    };
    let sub = text(&alice, "sub");
    refused(
        "our own sub where links count",
        "GP1247",
        "broker",
        IDP,
        sub,
    );
    refused(
        "our own sub where names count",
        "GP1247",
        "broker",
        NAMES,
        sub,
    );
    refused("a link of another issuer", "GP1247", "broker", IDP, "c1");
    refused(
        "a subject that is linked, where names count",
        "GP1247",
        "broker",
        NAMES,
        "1",
    );
    refused("a name of a tenant", "GP1247", "broker", NAMES, "carol");
    refused("a name of no tenant", "GP1247", "acme", ACME, "alice");
    refused("a disabled user", "GP1261", "broker", NAMES, "dave");
    refused(
        "a provider that the client does not allow",
        "GP1261",
        "broker",
        CORP,
        "c1",
    );
}

#[test]
fn keys_at_an_address_follow_the_issuer() {
    let [old, new] = ["old", "new"].map(Signer::rs256);
    let server = WebServer::start(Behaviour::Json(key_set(&[&old])));
    let remote = |name: &str, jwks_uri: String| {
        issuer(name, &old, json!({"jwks": null, "jwks_uri": jwks_uri}))
    };
    let registered = with_issuers(&[
        remote(IDP, server.url("/keys")),
        remote(NAMES, String::from("http://127.0.0.1:1/keys")),
    ]);
    let settings = [PATIENT, ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")];
    let gatepost = Gatepost::start_with(&registered, &settings);
    link(&gatepost, "alice", IDP, "1");
    let fresh = |signer: &Signer| signer.sign(&claims(&gatepost, IDP, "1"));
    for _ in 0..2 {
        ask(&gatepost, &fresh(&old), &[]).assert_status(200);
    }
    assert_eq!(server.requests().len(), 1);
    server.behave(Behaviour::Json(key_set(&[&new])));
    ask(&gatepost, &fresh(&new), &[]).assert_status(200);
    assert_no_grant(&gatepost, &fresh(&old), "GP1242", "the old key is gone");
    let unreachable = old.sign(&claims(&gatepost, NAMES, "1"));
    assert_no_grant(&gatepost, &unreachable, "GP1246", "no keys to be had");
}

#[test]
fn only_what_was_looked_at_counts_as_a_guess() {
    let signer = Signer::es256("k");
    let nowhere = json!({"jwks": null, "jwks_uri": "http://127.0.0.1:1/keys"});
    let registered = with_issuers(&[
        issuer(IDP, &signer, json!({})),
        issuer(NAMES, &signer, nowhere),
    ]);
    let settings = [
        ("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "2"),
        ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8"),
    ];
    let gatepost = Gatepost::start_with(&registered, &settings);
    for _ in 0..4 {
        let unreachable = signer.sign(&claims(&gatepost, NAMES, "alice"));
        assert_no_grant(&gatepost, &unreachable, "GP1246", "no keys to be had");
    }
    for status in [400, 400, 429] {
        let unknown = signer.sign(&claims(&gatepost, IDP, "nobody"));
        ask(&gatepost, &unknown, &[]).assert_status(status);
    }
}

#[test]
fn links_are_made_by_the_operator_and_belong_to_one_user() {
    let signer = Signer::es256("k");
    let gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&with_issuers(&[issuer(IDP, &signer, json!({}))]));
    let run = |line: &str| {
        let output = gatepost.run(&line.split(' ').collect::<Vec<_>>(), "");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.code().unwrap(), said)
    };
    let link = format!("user link alice --issuer {IDP} --subject 1");
    assert_eq!(run(&link), (0, format!("alice is 1 at {IDP}\n")));
    assert_eq!(run(&link), (0, String::from("that is so already\n")));
    let shown = gatepost.shown("user show alice --json");
    let linked = json!([{"claims": {}, "issuer": IDP, "subject": "1", "providers": []}]);
    assert_eq!(shown["identities"], linked);
    for (code, line) in [
        // Somebody else's; an issuer that nobody registered; nobody.
        (1, format!("user link bob --issuer {IDP} --subject 1")),
        (
            1,
            String::from("user link bob --issuer https://x.example --subject 1"),
        ),
        (1, format!("user link nobody --issuer {IDP} --subject 2")),
        // No subject, an empty one, no issuer.
        (2, format!("user link bob --issuer {IDP}")),
        (2, format!("user link bob --issuer {IDP} --subject ")),
        (2, String::from("user link bob --subject 2")),
        // Not bob's to lose.
        (1, format!("user unlink bob --issuer {IDP} --subject 1")),
    ] {
        let (status, said) = run(&line);
        assert_eq!(status, code, "{line}: {said}");
    }
    let unlink = format!("user unlink alice --issuer {IDP} --subject 1");
    assert_eq!((run(&unlink).0, run(&unlink).0), (0, 1));
    let (status, said) = run(&format!("user link bob --issuer {IDP} --subject 1"));
    assert_eq!(status, 0, "free again: {said}");
    gatepost.run_line("user remove bob");
    assert_eq!(run(&link).0, 0, "a link goes with its user");
}
