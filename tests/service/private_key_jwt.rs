//! `private_key_jwt` (RFC 7523 §2.2, OpenID Connect Core §9) at every endpoint that authenticates
//! clients.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{basic, changed_members, with_further_clients, with_members};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::{Answer, encode};
use crate::support::jwt::forge;
use crate::support::signer::{Behaviour, Signer, WebServer, assertion, key_set, now};
use crate::support::tables::cases;
use crate::support::waiting::all_at_once;

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// A client that authenticates by keys, with members added.
fn client(client_id: &str, members: Value) -> Value {
    let client = json!({
        "client_id": client_id, "grant_types": ["client_credentials"], "response_types": [], "scope": "orders.read",
        "access_token_type": "reference", "token_endpoint_auth_method": "private_key_jwt"
    });
    with_members(client, &members)
}

fn with(clients: &[Value]) -> Value {
    with_further_clients(document(), clients)
}

/// Claims of a good assertion; each has a `jti` of its own.
fn claims(gatepost: &Gatepost, client_id: &str) -> Value {
    assertion(client_id, client_id, &gatepost.base_url)
}

fn send(gatepost: &Gatepost, path: &str, assertion: &str, further: &[(&str, &str)]) -> Answer {
    gatepost.post(path, &[], &[&proof(assertion)[..], further].concat())
}

/// What a client sends to prove itself.
fn proof(assertion: &str) -> [(&str, &str); 2] {
    let kind = ("client_assertion_type", ASSERTION_TYPE);
    [kind, ("client_assertion", assertion)]
}

fn ask(gatepost: &Gatepost, assertion: &str) -> Answer {
    send(gatepost, "/connect/token", assertion, &[GRANT])
}

/// 400 without a challenge, the constant text, and that reason in the log.
#[track_caller]
fn assert_unproven(gatepost: &Gatepost, answer: &Answer, code: &str, case: &str) {
    answer.assert_refused(400, "invalid_client", case);
    assert_eq!(answer.header("www-authenticate"), None, "{case}");
    answer.assert_member_for(case, "error_description", "Client authentication failed.");
    gatepost.last_line("/connect/").assert_says_for(case, code);
}

/// That of a token request with this assertion.
#[track_caller]
fn assert_no_proof(gatepost: &Gatepost, assertion: &str, code: &str, case: &str) {
    assert_unproven(gatepost, &ask(gatepost, assertion), code, case);
}

#[test]
fn each_algorithm_proves_its_client_at_every_endpoint() {
    let signers = [Signer::rs256("r"), Signer::es256("e"), Signer::ed25519("d")];
    let all = key_set(&signers.iter().collect::<Vec<_>>());
    let mut clients = vec![client("any", json!({"jwks": all}))];
    for signer in &signers {
        let members =
            json!({"jwks": key_set(&[signer]), "token_endpoint_auth_signing_alg": signer.alg});
        clients.push(client(signer.alg, members));
    }
    let gatepost = Gatepost::start_with(&with(&clients), &[]);
    for signer in &signers {
        for client_id in [signer.alg, "any"] {
            let fresh = || signer.sign(&claims(&gatepost, client_id));
            let answer = ask(&gatepost, &fresh());
            answer.assert_status_for(client_id, 200);
            let token = answer.json()["access_token"].as_str().unwrap().to_owned();
            let form = [("token", &*token)];
            let introspected = || send(&gatepost, "/connect/introspect", &fresh(), &form);
            introspected().assert_status(200);
            introspected().assert_member("active", true);
            let form = [form[0], ("client_id", client_id)];
            send(&gatepost, "/connect/revocation", &fresh(), &form).assert_status(200);
            assert_eq!(introspected().json(), json!({"active": false}));
        }
    }
    let rsa = &signers[0];
    let token_url = format!("{}/connect/token", gatepost.base_url);
    let usual = json!({"alg": "RS256"});
    let headers = json!({
        "no typ": {"alg": "RS256", "kid": "r"},
        "no kid": {"alg": "RS256", "typ": "JWT"},
        "its own typ": {"alg": "RS256", "kid": "r", "typ": "client-authentication+jwt"},
    });
    let claimed = json!({
        "token endpoint as aud": {"aud": token_url},
        "aud in an array": {"aud": [gatepost.base_url]},
        "expired within the skew": {"exp": now() - 30},
        "nearly ten minutes": {"exp": now() + 590},
        "a fraction": {"exp": now() as f64 + 60.5},
        "made a moment ahead": {"iat": now() + 30},
    });
    let unchanged = json!({});
    let headers = cases(&headers).map(|(case, header)| (case, header, &unchanged));
    let claimed = cases(&claimed).map(|(case, changes)| (case, &usual, changes));
    for (case, header, changes) in headers.chain(claimed) {
        let claims = changed_members(claims(&gatepost, "RS256"), changes);
        ask(&gatepost, &rsa.sign_under(header, &claims)).assert_status_for(case, 200);
    }
    let form = [GRANT, ("client_id", "RS256")];
    let assertion = rsa.sign(&claims(&gatepost, "RS256"));
    send(&gatepost, "/connect/token", &assertion, &form).assert_status(200);
    assert_discovered(&gatepost);
}

fn assert_discovered(gatepost: &Gatepost) {
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    for endpoint in ["token", "revocation", "introspection"] {
        let methods = &metadata[format!("{endpoint}_endpoint_auth_methods_supported")];
        let methods = methods.as_array().unwrap();
        assert!(methods.contains(&json!("private_key_jwt")));
        assert!(!methods.contains(&json!("client_secret_jwt")));
        let algs = &metadata[format!("{endpoint}_endpoint_auth_signing_alg_values_supported")];
        assert_eq!(algs, &json!(["RS256", "ES256", "EdDSA", "Ed25519"]));
    }
    let we_sign = &metadata["id_token_signing_alg_values_supported"];
    assert_eq!(we_sign, &json!(["RS256", "ES256", "EdDSA"]));
}

#[test]
fn ed25519_is_read_as_eddsa_in_keys_registrations_and_assertions() {
    let (signer, curve) = (Signer::ed25519("d"), Signer::es256("e"));
    let names = [json!("EdDSA"), json!("Ed25519"), Value::Null];
    let mut clients = Vec::new();
    for registered in &names {
        for of_key in &names {
            let key = changed_members(signer.jwk(), &json!({"alg": of_key}));
            let members =
                json!({"jwks": {"keys": [key]}, "token_endpoint_auth_signing_alg": registered});
            let client_id = format!("{registered}-{of_key}").replace('"', "");
            clients.push(client(&client_id, members));
        }
    }
    let of_curve = json!({"jwks": key_set(&[&curve]), "token_endpoint_auth_signing_alg": "ES256"});
    clients.push(client("curve", of_curve));
    let registered = with(&clients);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for client in &clients {
        let client_id = client["client_id"].as_str().unwrap();
        let assertion = |alg: &str| {
            let header = json!({"alg": alg, "kid": "d"});
            signer.sign_under(&header, &claims(&gatepost, client_id))
        };
        for alg in ["EdDSA", "Ed25519"] {
            match client_id {
                "curve" => assert_no_proof(&gatepost, &assertion(alg), "GP1231", alg),
                _ => ask(&gatepost, &assertion(alg)).assert_status_for(client_id, 200),
            }
        }
        for alg in ["ed25519", "ED25519", "Ed448", "ESP256"] {
            assert_no_proof(&gatepost, &assertion(alg), "GP1230", alg);
        }
    }
    // Stored and exported under the one name; written under the other, it is the same registration.
    let exported = gatepost.run_line("export");
    exported.assert_says_not(r#""token_endpoint_auth_signing_alg": "Ed25519""#);
    let of_one_name = exported.matches(r#""token_endpoint_auth_signing_alg": "EdDSA""#);
    assert_eq!(of_one_name.count(), 6, "{exported}");
    let again = gatepost.run_well(&["apply", "-"], &registered.to_string());
    assert!(again.starts_with("0 added, 0 changed, "), "{again}");
}

#[test]
fn what_proves_nothing_is_refused() {
    let [rsa, second, foreign] = ["r", "r2", "r"].map(Signer::rs256);
    let ec = Signer::es256("e");
    let of_two =
        json!({"jwks": key_set(&[&rsa, &second]), "token_endpoint_auth_signing_alg": "RS256"});
    let clients = [
        client("rsa", of_two),
        client("ec", json!({"jwks": key_set(&[&ec])})),
        client("off", json!({"jwks": key_set(&[&rsa]), "enabled": false})),
    ];
    let gatepost = Gatepost::start_with(&with(&clients), &[]);
    let usual = || claims(&gatepost, "rsa");
    let assert_no_proof =
        |assertion: &str, code: &str, case: &str| assert_no_proof(&gatepost, assertion, code, case);
    let good = rsa.sign(&usual());
    for alg in ["none", "None"] {
        let unsigned = forge(&json!({"alg": alg, "kid": "r"}), &usual(), |_| Vec::new());
        assert_no_proof(&unsigned, "GP1230", alg);
        let signed = forge(&json!({"alg": alg}), &usual(), |_| vec![1]);
        assert_no_proof(&signed, "GP1230", &format!("{alg} with something after it"));
    }
    for (alg, code) in [("HS256", "GP1230"), ("RS256", "GP1233")] {
        let hmac = rsa.forge_by_public_key(&json!({"alg": alg, "kid": "r"}), &usual());
        let case = format!("an HMAC with the public key, called {alg}");
        assert_no_proof(&hmac, code, &case);
    }
    let headers = json!({"GP1230": {
        "no alg": {"kid": "r"},
        "PS256": {"alg": "PS256", "kid": "r"},
        "RS512": {"alg": "RS512", "kid": "r"},
        "a critical extension": {"alg": "RS256", "kid": "r", "crit": ["exp"], "exp": 1},
        "an access token's typ": {"alg": "RS256", "kid": "r", "typ": "at+jwt"},
    }, "GP1231": {
        "a header that claims another": {"alg": "ES256", "kid": "r"},
    }, "GP1232": {
        "an unknown kid": {"alg": "RS256", "kid": "nobody"},
        "no kid among several keys": {"alg": "RS256"},
        "a path as kid": {"alg": "RS256", "kid": "../../../dev/null"},
        "SQL as kid": {"alg": "RS256", "kid": "r' OR '1'='1"},
    }, "GP1233": {
        "the other key's kid": {"alg": "RS256", "kid": "r2"},
    }});
    for (code, headers) in cases(&headers) {
        for (case, header) in cases(headers) {
            assert_no_proof(&rsa.sign_under(header, &usual()), code, case);
        }
    }
    let with_key = json!({"alg": "RS256", "kid": "r", "jwk": foreign.jwk()});
    let with_key = foreign.sign_under(&with_key, &usual());
    let (by_ec, by_foreign) = (ec.sign(&usual()), foreign.sign(&usual()));
    let other = rsa.sign(&usual());
    let [good_parts, other_parts] = [&good, &other].map(|jwt| jwt.split('.').collect::<Vec<_>>());
    let mixed = [good_parts[0], other_parts[1], good_parts[2]].join(".");
    let unsigned = format!("{}.{}.", good_parts[0], good_parts[1]);
    for (case, code, assertion) in [
        ("another algorithm than registered", "GP1231", &*by_ec),
        ("a foreign key of the same kid", "GP1233", &by_foreign),
        ("its own key along", "GP1233", &with_key),
        ("the payload of another", "GP1233", &mixed),
        ("an altered end", "GP1230", &format!("{good}!")),
        ("no signature", "GP1230", &unsigned),
        ("not a JWT", "GP1230", "assertion"),
    ] {
        assert_no_proof(assertion, code, case);
    }
    for (code, rows) in cases(&wrong_claims(&gatepost)) {
        for (case, changes) in cases(rows) {
            let claims = changed_members(usual(), changes);
            assert_no_proof(&rsa.sign(&claims), code, case);
        }
    }
    for (client_id, code) in [("off", "GP1310"), ("conf1", "GP1306"), ("pub1", "GP1306")] {
        assert_no_proof(&rsa.sign(&claims(&gatepost, client_id)), code, client_id);
    }
    let oversized = with_members(usual(), &json!({"filler": "x".repeat(13_000)}));
    let answer = ask(&gatepost, &rsa.sign(&oversized));
    answer.assert_refused(400, "invalid_client", "oversized");
    gatepost.last_line("/connect/").assert_says("GP1003");
    // None of that spent anything: the assertion made first is still good.
    ask(&gatepost, &good).assert_status(200);
    assert_not_mixed(&gatepost, &rsa);
    let form = [("token", "x")];
    let assertion = foreign.sign(&usual());
    let answer = send(&gatepost, "/connect/introspect", &assertion, &form);
    answer.assert_refused(401, "invalid_client", "introspection");
    answer.assert_header("www-authenticate", "Basic realm=\"gatepost\"");
}

/// Changes to claims after which they prove nothing, by the reason.
fn wrong_claims(gatepost: &Gatepost) -> Value {
    let issuer = &gatepost.base_url;
    json!({"GP1234": {
        "another issuer": {"iss": "ec"},
        "no issuer": {"iss": null},
    }, "GP1235": {
        "two audiences": {"aud": [issuer, "https://other.example"]},
        "another audience": {"aud": "https://other.example"},
        "the audience with a slash": {"aud": format!("{issuer}/")},
        "no audience": {"aud": null},
        "an audience object": {"aud": {"a": issuer}},
    }, "GP1236": {
        "expired": {"exp": now() - 62},
        "too far ahead": {"exp": now() + 700},
        "for ever": {"exp": 1e18},
        "no end": {"exp": null},
        "an end in words": {"exp": "soon"},
        "not before later": {"nbf": now() + 120},
        "made in the future": {"iat": now() + 120},
    }, "GP1237": {
        "no jti": {"jti": null},
        "an empty jti": {"jti": ""},
    }, "GP1230": {
        "no subject": {"sub": null},
        "NUL in the subject": {"sub": "rsa\0"},
    }, "GP1304": {
        "a subject nobody has": {"sub": "nobody"},
    }})
}

/// One way of authentication, and the registered one.
fn assert_not_mixed(gatepost: &Gatepost, rsa: &Signer) {
    let assertion = rsa.sign(&claims(gatepost, "rsa"));
    let [kind, proof] = proof(&assertion);
    let name = ("client_id", "rsa");
    let header = basic("rsa", "a-secret");
    let by_secret = gatepost.post("/connect/token", &[("Authorization", &header)], &[GRANT]);
    by_secret.assert_refused(401, "invalid_client", "a secret of a client with keys");
    let saml = "urn:ietf:params:oauth:client-assertion-type:saml2-bearer";
    let of_the_grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let of_kind = |kind| vec![GRANT, ("client_assertion_type", kind), proof];
    let by_body = vec![GRANT, name, ("client_secret", "a-secret")];
    let of_ec = vec![GRANT, kind, proof, ("client_id", "ec")];
    for (case, code, form) in [
        ("a secret in the body", "GP1306", by_body),
        ("nothing but the name", "GP1306", vec![GRANT, name]),
        ("another client_id", "GP1308", of_ec),
        ("saml", "GP1230", of_kind(saml)),
        ("the grant's name", "GP1230", of_kind(of_the_grant)),
        ("an empty type", "GP1230", of_kind("")),
        ("no type", "GP1230", vec![GRANT, proof]),
        ("a type and no assertion", "GP1230", vec![GRANT, kind, name]),
    ] {
        let answer = gatepost.post("/connect/token", &[], &form);
        assert_unproven(gatepost, &answer, code, case);
    }
    let header = basic("conf1", CONF1_SECRET);
    let by_header = [("Authorization", &*header)];
    let by_secret = [name, ("client_secret", "x")];
    let token = "/connect/token";
    let in_url = format!("{token}?client_assertion={assertion}");
    for (case, path, headers, further) in [
        ("a secret beside it", token, &[][..], &by_secret[..]),
        ("a header beside it", token, &by_header, &[]),
        ("two assertions", token, &[], &[proof]),
        ("in the URL", &in_url, &[], &[]),
    ] {
        let form = [&[GRANT, kind, proof], further].concat();
        let answer = gatepost.post(path, headers, &form);
        answer.assert_refused(400, "invalid_request", case);
    }
}

#[test]
fn explain_gives_the_servers_verdict_on_an_assertion() {
    let [own, fetched, foreign] = ["own", "far", "own"].map(Signer::es256);
    let rsa = Signer::rs256("rsa");
    let of_bank = json!({"profile": "fapi2", "jwks": key_set(&[&own, &rsa])});
    let mut bank = client("bank", of_bank);
    bank.as_object_mut().unwrap().remove("access_token_type");
    let keys = WebServer::start(Behaviour::Json(key_set(&[&fetched])));
    let of_far =
        json!({"jwks_uri": keys.url("/keys.json"), "token_endpoint_auth_signing_alg": "ES256"});
    let clients = [
        bank,
        client("plain", json!({"jwks": key_set(&[&own])})),
        client("far", of_far),
    ];
    let issuer_alone = [("GATEPOST_CLIENT_ASSERTION_AUDIENCE", "issuer")];
    let settings = [&OUTBOUND[..], &issuer_alone].concat();
    let gatepost = Gatepost::start_with(&with(&clients), &settings);
    let told = |assertion: &str| {
        let form = [&[GRANT], &proof(assertion)[..]].concat();
        let output = gatepost.run(&["explain", "-"], &encode(&form));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.success(), told)
    };
    let token_url = format!("{}/connect/token", gatepost.base_url);
    let of = |client_id: &str| claims(&gatepost, client_id);
    let bank = |changes: Value| own.sign(&changed_members(of("bank"), &changes));
    let plain = |changes: Value| own.sign(&changed_members(of("plain"), &changes));
    let unknown = own.sign_under(&json!({"alg": "ES256", "kid": "unknown"}), &of("plain"));
    let in_array = json!({"aud": [gatepost.base_url]});
    for (code, detail, assertion) in [
        ("GP1235", &*token_url, plain(json!({"aud": token_url}))),
        ("GP1235", "as a text", bank(in_array)),
        ("GP1235", &token_url, bank(json!({"aud": token_url}))),
        ("GP1236", "its iat is", bank(json!({"iat": now() + 20}))),
        ("GP1236", "s ago", plain(json!({"exp": now() - 100}))),
        ("GP1236", "its exp is", plain(json!({"exp": now() + 3_600}))),
        ("GP1236", "it has no exp", plain(json!({"exp": null}))),
        ("GP1237", "jti", plain(json!({"jti": null}))),
        ("GP1234", "its iss is bank", plain(json!({"iss": "bank"}))),
        ("GP1231", "its alg is RS256", rsa.sign(&of("bank"))),
        ("GP1232", "its kid is unknown", unknown),
        ("GP1233", "does not verify", foreign.sign(&of("plain"))),
        ("GP1231", "its alg is RS256", rsa.sign(&of("far"))),
    ] {
        let (is_good, told) = told(&assertion);
        assert!(!is_good && !told.contains(" gets "), "{code}: {told}");
        told.assert_says_for(detail, code);
        told.assert_says_for(code, detail);
        assert_no_proof(&gatepost, &assertion, code, detail);
    }
    // It is not used up, and the server takes it.
    let good = own.sign(&of("plain"));
    let (is_good, said) = told(&good);
    assert!(is_good && said.contains("its signature verifies"), "{said}");
    said.assert_says("it gets the scope orders.read");
    ask(&gatepost, &good).assert_status(200);
    // Nobody is asked for keys.
    let asked_before = keys.requests().len();
    let (is_good, said) = told(&fetched.sign(&of("far")));
    assert!(is_good && said.contains("are at jwks_uri"), "{said}");
    let late = changed_members(of("far"), &json!({"exp": now() - 100}));
    let (is_good, said) = told(&fetched.sign(&late));
    assert!(!is_good && said.contains("GP1236"), "{said}");
    assert_eq!(keys.requests().len(), asked_before);
}

#[test]
fn an_assertion_is_good_once_over_all_processes_and_endpoints() {
    let [one, other] = ["k", "k"].map(Signer::es256);
    let clients = [
        client("one", json!({"jwks": key_set(&[&one])})),
        client("other", json!({"jwks": key_set(&[&other])})),
    ];
    let gatepost = Gatepost::start_with(&with(&clients), &[]);
    let mut beside = gatepost.beside();
    beside.serve();
    let claims_of_one = claims(&gatepost, "one");
    let assertion = one.sign(&claims_of_one);
    ask(&gatepost, &assertion).assert_status(200);
    assert_no_proof(&gatepost, &assertion, "GP1238", "again");
    assert_no_proof(&beside, &assertion, "GP1238", "at a second process");
    let form = [("token", "x")];
    let revocation = send(&gatepost, "/connect/revocation", &assertion, &form);
    assert_unproven(&gatepost, &revocation, "GP1238", "at another endpoint");
    // Signed anew, ending later: the name decides.
    let later = changed_members(claims_of_one.clone(), &json!({"exp": now() + 61}));
    let anew = one.sign(&later);
    assert_no_proof(&gatepost, &anew, "GP1238", "the same jti signed anew");
    // The same name from somebody else is another assertion.
    let mut of_other = claims(&gatepost, "other");
    of_other["jti"] = claims_of_one["jti"].clone();
    ask(&beside, &other.sign(&of_other)).assert_status(200);
    // A request that fails later has spent its assertion all the same.
    let assertion = one.sign(&claims(&gatepost, "one"));
    let form = [("grant_type", "password")];
    send(&gatepost, "/connect/token", &assertion, &form).assert_status(400);
    assert_no_proof(&gatepost, &assertion, "GP1238", "after a failed request");
    let raced = one.sign(&claims(&gatepost, "one"));
    let statuses = all_at_once(8, |index| {
        let at = if index % 2 == 0 { &gatepost } else { &beside };
        ask(at, &raced).status
    });
    let given = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(given, 1, "{statuses:?}");
}

/// Our own requests may go to loopback; proxies that the environment names must not be asked.
const OUTBOUND: [(&str, &str); 4] = [
    ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8"),
    ("HTTP_PROXY", "http://127.0.0.1:1"),
    ("http_proxy", "http://127.0.0.1:1"),
    ("ALL_PROXY", "http://127.0.0.1:1"),
];

#[test]
fn keys_at_an_address_are_fetched_held_and_found_again_after_a_rotation() {
    let (old, new) = (Signer::rs256("old"), Signer::es256("new"));
    let server = WebServer::start(Behaviour::Json(key_set(&[&old])));
    let elsewhere = WebServer::start(Behaviour::Status(404));
    let remote = client("remote", json!({"jwks_uri": server.url("/keys.json")}));
    let gatepost = Gatepost::start_with(&with(&[remote]), &OUTBOUND);
    let fresh = |signer: &Signer| signer.sign(&claims(&gatepost, "remote"));
    for _ in 0..3 {
        ask(&gatepost, &fresh(&old)).assert_status(200);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].starts_with("GET /keys.json HTTP/1.1\r\n"));
    assert!(requests[0].contains("user-agent: Gatepost"));

    server.behave(Behaviour::Json(key_set(&[&new])));
    ask(&gatepost, &fresh(&new)).assert_status_for("a new key is looked for at once", 200);
    assert_eq!(server.requests().len(), 2);
    assert_no_proof(&gatepost, &fresh(&old), "GP1232", "the old key is gone");
    let stranger = Signer::es256("stranger");
    for _ in 0..20 {
        let by_stranger = fresh(&stranger);
        assert_no_proof(&gatepost, &by_stranger, "GP1232", "a key that is nowhere");
    }
    assert_eq!(server.requests().len(), 2, "at most one search a minute");
    // Where the header says keys are is of no interest.
    let tempting = json!({"alg": "ES256", "kid": "new", "jku": elsewhere.url("/jwks"), "x5u": elsewhere.url("/x5u")});
    let assertion = stranger.sign_under(&tempting, &claims(&gatepost, "remote"));
    assert_no_proof(&gatepost, &assertion, "GP1233", "jku and x5u");
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
    server.behave(Behaviour::Status(500));
    ask(&gatepost, &fresh(&new)).assert_status_for("what is held goes on counting", 200);
}

#[test]
fn keys_that_cannot_be_had_prove_nothing_and_hold_nobody_up() {
    let [signer, twin] = ["k", "k"].map(Signer::ed25519);
    let good = WebServer::start(Behaviour::Json(key_set(&[&signer])));
    let weak = json!({"kty": "RSA", "kid": "k", "n": "x".repeat(168), "e": "AQAB"});
    let silent = WebServer::start(Behaviour::Silent(Duration::from_secs(20)));
    let twins = Behaviour::Json(key_set(&[&signer, &twin]));
    let away = Behaviour::Redirect(302, good.url("/"));
    let failing = [
        ("endless", "GP1239", Behaviour::Endless),
        ("missing", "GP1239", Behaviour::Status(404)),
        ("redirected", "GP1239", away),
        ("no-set", "GP1239", Behaviour::Json(json!([]))),
        ("weak", "GP1232", Behaviour::Json(json!({"keys": [weak]}))),
        ("ambiguous", "GP1232", twins),
    ];
    let failing = failing.map(|(name, code, does)| (name, code, WebServer::start(does)));
    // Nobody listens there; nobody may be asked there.
    let nowhere = [
        ("down", String::from("http://127.0.0.1:1/")),
        ("private", String::from("https://10.0.0.1/")),
        ("metadata", String::from("https://169.254.169.254/latest")),
        ("untrusted", good.url("/").replace("http:", "https:")),
    ];
    let at = |name: &str, url: &str| client(name, json!({"jwks_uri": url}));
    let mut clients = vec![at("silent", &silent.url("/"))];
    let of_failing = |(name, _, server): &(&str, &str, WebServer)| at(name, &server.url("/"));
    clients.extend(failing.iter().map(of_failing));
    clients.extend(nowhere.iter().map(|(name, url)| at(name, url)));
    let gatepost = Gatepost::start_with(&with(&clients), &[OUTBOUND[0], ("GATEPOST_WORKERS", "8")]);
    let by = |name: &str| signer.sign(&claims(&gatepost, name));
    // Too long for a worker: one of the readers of bodies, half as many as there are workers,
    // answers it.
    let padding = "x".repeat(2_000);
    let long = [GRANT, ("padding", &*padding)];
    // Of one address at most half of those readers are held up.
    let from = |number: usize| format!("198.51.100.{number}");
    let by_long = |number: usize| {
        let assertion = by("silent");
        let form = [&proof(&assertion)[..], &long].concat();
        let headers = [("X-Forwarded-For", &*from(number))];
        gatepost.post("/connect/token", &headers, &form)
    };
    for (name, _) in &nowhere {
        assert_no_proof(&gatepost, &by(name), "GP1239", name);
    }
    for (name, code, _) in &failing {
        assert_no_proof(&gatepost, &by(name), code, name);
    }
    std::thread::scope(|scope| {
        let held_up: Vec<_> = (0..12)
            .map(|number| scope.spawn(move || by_long(number)))
            .collect();
        while silent.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let authorization = basic("service", CONF1_SECRET);
        let source = from(100);
        let headers = [
            ("Authorization", &*authorization),
            ("X-Forwarded-For", &source),
        ];
        let answer = gatepost.post("/connect/token", &headers, &long);
        answer.assert_status(200);
        let all_are_done = held_up.iter().all(|asked| asked.is_finished());
        assert!(!all_are_done, "the rest keeps serving meanwhile");
        for answer in held_up.into_iter().map(|asked| asked.join().unwrap()) {
            let error = answer.json()["error"].clone();
            let told = (answer.status, error.as_str().unwrap());
            let (refused, busy) = ((400, "invalid_client"), (503, "temporarily_unavailable"));
            assert!([refused, busy].contains(&told), "{told:?}");
        }
    });
    let requests = silent.requests().len();
    ask(&gatepost, &by("silent")).assert_status(400);
    // It is left in peace for a while.
    assert_eq!(silent.requests().len(), requests);
    let asked = good.requests();
    let followed = asked.iter().any(|request| request.starts_with("GET"));
    assert!(!followed, "no redirect is followed");
}
