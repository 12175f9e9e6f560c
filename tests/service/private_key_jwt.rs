//! `private_key_jwt` (RFC 7523 §2.2, OpenID Connect Core §9) at every endpoint that authenticates
//! clients.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::basic;
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::Answer;
use crate::support::jwt::forge;
use crate::support::signer::{Behaviour, Signer, WebServer, key_set, now};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// A client that authenticates by keys, with members added.
fn client(client_id: &str, members: Value) -> Value {
    let mut client = json!({
        "client_id": client_id, "grant_types": ["client_credentials"], "response_types": [], "scope": "orders.read",
        "access_token_type": "reference", "token_endpoint_auth_method": "private_key_jwt"
    });
    for (name, value) in members.as_object().unwrap() {
        client[name] = value.clone();
    }
    client
}

fn with(clients: &[Value]) -> Value {
    let mut document = document();
    document["clients"]
        .as_array_mut()
        .unwrap()
        .extend(clients.iter().cloned());
    document
}

/// Claims of a good assertion; each has a `jti` of its own.
fn claims(gatepost: &Gatepost, client_id: &str) -> Value {
    let jti = URL_SAFE_NO_PAD.encode(
        aws_lc_rs::rand::generate::<[u8; 16]>(&aws_lc_rs::rand::SystemRandom::new())
            .unwrap()
            .expose(),
    );
    json!({"iss": client_id, "sub": client_id, "aud": gatepost.base_url, "exp": now() + 60, "jti": jti})
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

fn send(gatepost: &Gatepost, path: &str, assertion: &str, further: &[(&str, &str)]) -> Answer {
    let form = [
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", assertion),
    ];
    gatepost.post(path, &[], &[&form, further].concat())
}

fn ask(gatepost: &Gatepost, assertion: &str) -> Answer {
    send(gatepost, "/connect/token", assertion, &[GRANT])
}

/// The reason in the log line of the last request.
fn last_reason(gatepost: &Gatepost) -> String {
    let log = gatepost.log();
    let line = log
        .lines()
        .rev()
        .find(|line| line.contains("/connect/"))
        .unwrap();
    let start = line
        .find("GP1")
        .unwrap_or_else(|| panic!("no reason in {line}"));
    line[start..start + 6].to_owned()
}

/// 400 without a challenge, the constant text, and that reason in the log.
fn assert_unproven(gatepost: &Gatepost, answer: &Answer, code: &str, case: &str) {
    answer.assert_refused(400, "invalid_client", case);
    assert_eq!(answer.header("www-authenticate"), None, "{case}");
    answer.assert_member_for(case, "error_description", "Client authentication failed.");
    assert_eq!(last_reason(gatepost), code, "{case}");
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
            assert_eq!(answer.status, 200, "{client_id}: {}", answer.text());
            let token = answer.json()["access_token"].as_str().unwrap().to_owned();
            let looked_at = send(
                &gatepost,
                "/connect/introspect",
                &fresh(),
                &[("token", &token)],
            );
            looked_at.assert_status(200);
            assert_eq!(looked_at.json()["active"], true, "{}", looked_at.text());
            let revoked = send(
                &gatepost,
                "/connect/revocation",
                &fresh(),
                &[("token", &token), ("client_id", client_id)],
            );
            assert_eq!(revoked.status, 200, "{}", revoked.text());
            let looked_at = send(
                &gatepost,
                "/connect/introspect",
                &fresh(),
                &[("token", &token)],
            );
            assert_eq!(looked_at.json(), json!({"active": false}));
        }
    }
    let rsa = &signers[0];
    let usual = || claims(&gatepost, "RS256");
    let token_url = format!("{}/connect/token", gatepost.base_url);
    for (case, header, claims) in [
        ("no typ", json!({"alg": "RS256", "kid": "r"}), usual()),
        ("no kid", json!({"alg": "RS256", "typ": "JWT"}), usual()),
        (
            "its own typ",
            json!({"alg": "RS256", "kid": "r", "typ": "client-authentication+jwt"}),
            usual(),
        ),
        (
            "token endpoint as aud",
            json!({"alg": "RS256", "kid": "r"}),
            changed(usual(), "aud", json!(token_url)),
        ),
        (
            "aud in an array",
            json!({"alg": "RS256"}),
            changed(usual(), "aud", json!([gatepost.base_url])),
        ),
        (
            "expired within the skew",
            json!({"alg": "RS256"}),
            changed(usual(), "exp", json!(now() - 30)),
        ),
        (
            "nearly ten minutes",
            json!({"alg": "RS256"}),
            changed(usual(), "exp", json!(now() + 590)),
        ),
        (
            "a fraction",
            json!({"alg": "RS256"}),
            changed(usual(), "exp", json!(now() as f64 + 60.5)),
        ),
        (
            "made a moment ahead",
            json!({"alg": "RS256"}),
            changed(usual(), "iat", json!(now() + 30)),
        ),
    ] {
        let answer = ask(&gatepost, &rsa.sign_under(&header, &claims));
        assert_eq!(answer.status, 200, "{case}: {}", answer.text());
    }
    let with_client_id = send(
        &gatepost,
        "/connect/token",
        &rsa.sign(&usual()),
        &[GRANT, ("client_id", "RS256")],
    );
    assert_eq!(with_client_id.status, 200);
    assert_discovered(&gatepost);
}

fn assert_discovered(gatepost: &Gatepost) {
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    for endpoint in ["token", "revocation", "introspection"] {
        let methods = metadata[format!("{endpoint}_endpoint_auth_methods_supported")]
            .as_array()
            .unwrap();
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
    const NAMES: [&str; 2] = ["EdDSA", "Ed25519"];
    let (signer, curve) = (Signer::ed25519("d"), Signer::es256("e"));
    let mut clients = Vec::new();
    for registered in ["EdDSA", "Ed25519", ""] {
        for of_key in ["EdDSA", "Ed25519", ""] {
            let named = |name: &str| {
                if name.is_empty() {
                    json!(null)
                } else {
                    json!(name)
                }
            };
            let key = changed(signer.jwk(), "alg", named(of_key));
            let members = json!({"jwks": {"keys": [key]}, "token_endpoint_auth_signing_alg": named(registered)});
            clients.push(client(&format!("{registered}-{of_key}"), members));
        }
    }
    clients.push(client(
        "curve",
        json!({"jwks": key_set(&[&curve]), "token_endpoint_auth_signing_alg": "ES256"}),
    ));
    let registered = with(&clients);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for client in &clients {
        let client_id = client["client_id"].as_str().unwrap();
        for alg in NAMES {
            let header = json!({"alg": alg, "kid": "d"});
            let answer = ask(
                &gatepost,
                &signer.sign_under(&header, &claims(&gatepost, client_id)),
            );
            match client_id {
                "curve" => assert_unproven(&gatepost, &answer, "GP1231", alg),
                _ => assert_eq!(answer.status, 200, "{client_id} {alg}: {}", answer.text()),
            }
        }
        for alg in ["ed25519", "ED25519", "Ed448", "ESP256"] {
            let refused = ask(
                &gatepost,
                &signer.sign_under(
                    &json!({"alg": alg, "kid": "d"}),
                    &claims(&gatepost, client_id),
                ),
            );
            assert_unproven(&gatepost, &refused, "GP1230", alg);
        }
    }
    // Stored and exported under the one name; written under the other, it is the same registration.
    let exported = gatepost.run_well(&["export"], "");
    exported.assert_says_not(r#""token_endpoint_auth_signing_alg": "Ed25519""#);
    assert_eq!(
        exported
            .matches(r#""token_endpoint_auth_signing_alg": "EdDSA""#)
            .count(),
        6,
        "{exported}"
    );
    let again = gatepost.run_well(&["apply", "-"], &registered.to_string());
    assert!(again.starts_with("0 added, 0 changed, "), "{again}");
}

#[test]
fn what_proves_nothing_is_refused() {
    let (rsa, second, ec, foreign) = (
        Signer::rs256("r"),
        Signer::rs256("r2"),
        Signer::es256("e"),
        Signer::rs256("r"),
    );
    let gatepost = Gatepost::start_with(
        &with(&[
            client(
                "rsa",
                json!({"jwks": key_set(&[&rsa, &second]), "token_endpoint_auth_signing_alg": "RS256"}),
            ),
            client("ec", json!({"jwks": key_set(&[&ec])})),
            client("off", json!({"jwks": key_set(&[&rsa]), "enabled": false})),
        ]),
        &[],
    );
    let usual = || claims(&gatepost, "rsa");
    let public = rsa.jwk()["n"].as_str().unwrap().to_owned();
    let by_public_key = |input: &[u8]| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public.as_bytes());
        aws_lc_rs::hmac::sign(&key, input).as_ref().to_vec()
    };
    let of = |claims: Value| rsa.sign(&claims);
    let under = |header: Value| rsa.sign_under(&header, &usual());
    let good = of(usual());
    let oversized = of(changed(usual(), "filler", json!("x".repeat(13_000))));
    for (case, code, assertion) in [
        (
            "alg none",
            "GP1230",
            forge(&json!({"alg": "none", "kid": "r"}), &usual(), |_| {
                Vec::new()
            }),
        ),
        (
            "alg none with something after it",
            "GP1230",
            forge(&json!({"alg": "none"}), &usual(), |_| vec![1]),
        ),
        (
            "alg None",
            "GP1230",
            forge(&json!({"alg": "None"}), &usual(), |_| vec![1]),
        ),
        (
            "HS256 with the public key",
            "GP1230",
            forge(
                &json!({"alg": "HS256", "kid": "r"}),
                &usual(),
                by_public_key,
            ),
        ),
        (
            "HMAC called RS256",
            "GP1233",
            forge(
                &json!({"alg": "RS256", "kid": "r"}),
                &usual(),
                by_public_key,
            ),
        ),
        ("no alg", "GP1230", under(json!({"kid": "r"}))),
        (
            "PS256",
            "GP1230",
            under(json!({"alg": "PS256", "kid": "r"})),
        ),
        (
            "RS512",
            "GP1230",
            under(json!({"alg": "RS512", "kid": "r"})),
        ),
        (
            "a critical extension",
            "GP1230",
            under(json!({"alg": "RS256", "kid": "r", "crit": ["exp"], "exp": 1})),
        ),
        (
            "an access token's typ",
            "GP1230",
            under(json!({"alg": "RS256", "kid": "r", "typ": "at+jwt"})),
        ),
        (
            "another algorithm than registered",
            "GP1231",
            ec.sign(&usual()),
        ),
        (
            "a header that claims another",
            "GP1231",
            under(json!({"alg": "ES256", "kid": "r"})),
        ),
        (
            "an unknown kid",
            "GP1232",
            under(json!({"alg": "RS256", "kid": "nobody"})),
        ),
        (
            "no kid among several keys",
            "GP1232",
            under(json!({"alg": "RS256"})),
        ),
        (
            "a path as kid",
            "GP1232",
            under(json!({"alg": "RS256", "kid": "../../../dev/null"})),
        ),
        (
            "SQL as kid",
            "GP1232",
            under(json!({"alg": "RS256", "kid": "r' OR '1'='1"})),
        ),
        (
            "the other key's kid",
            "GP1233",
            under(json!({"alg": "RS256", "kid": "r2"})),
        ),
        (
            "a foreign key of the same kid",
            "GP1233",
            foreign.sign(&usual()),
        ),
        (
            "its own key along",
            "GP1233",
            foreign.sign_under(
                &json!({"alg": "RS256", "kid": "r", "jwk": foreign.jwk()}),
                &usual(),
            ),
        ),
        ("an altered end", "GP1230", format!("{}!", good)),
        (
            "no signature",
            "GP1230",
            good.rsplit_once('.').unwrap().0.to_owned() + ".",
        ),
        ("the payload of another", "GP1233", {
            let other = of(usual());
            let (parts, others): (Vec<_>, Vec<_>) =
                (good.split('.').collect(), other.split('.').collect());
            format!("{}.{}.{}", parts[0], others[1], parts[2])
        }),
        ("not a JWT", "GP1230", String::from("assertion")),
    ] {
        assert_unproven(&gatepost, &ask(&gatepost, &assertion), code, case);
    }
    for (case, code, claims) in wrong_claims(&gatepost) {
        assert_unproven(&gatepost, &ask(&gatepost, &of(claims)), code, case);
    }
    let answer = ask(&gatepost, &oversized);
    answer.assert_refused(400, "invalid_client", "oversized");
    assert_eq!(last_reason(&gatepost), "GP1003");
    // None of that spent anything: the assertion made first is still good.
    assert_eq!(ask(&gatepost, &good).status, 200);
    assert_not_mixed(&gatepost, &rsa);
    assert_introspection_challenges(&gatepost, &foreign);
}

/// Claims that prove nothing, each with the reason.
fn wrong_claims(gatepost: &Gatepost) -> Vec<(&'static str, &'static str, Value)> {
    let usual = || claims(gatepost, "rsa");
    vec![
        (
            "another issuer",
            "GP1234",
            changed(usual(), "iss", json!("ec")),
        ),
        ("no issuer", "GP1234", changed(usual(), "iss", Value::Null)),
        ("no subject", "GP1230", changed(usual(), "sub", Value::Null)),
        (
            "two audiences",
            "GP1235",
            changed(
                usual(),
                "aud",
                json!([gatepost.base_url, "https://other.example"]),
            ),
        ),
        (
            "another audience",
            "GP1235",
            changed(usual(), "aud", json!("https://other.example")),
        ),
        (
            "the audience with a slash",
            "GP1235",
            changed(usual(), "aud", json!(format!("{}/", gatepost.base_url))),
        ),
        (
            "no audience",
            "GP1235",
            changed(usual(), "aud", Value::Null),
        ),
        (
            "an audience object",
            "GP1235",
            changed(usual(), "aud", json!({"a": gatepost.base_url})),
        ),
        (
            "expired",
            "GP1236",
            changed(usual(), "exp", json!(now() - 62)),
        ),
        (
            "too far ahead",
            "GP1236",
            changed(usual(), "exp", json!(now() + 700)),
        ),
        ("for ever", "GP1236", changed(usual(), "exp", json!(1e18))),
        ("no end", "GP1236", changed(usual(), "exp", Value::Null)),
        (
            "an end in words",
            "GP1236",
            changed(usual(), "exp", json!("soon")),
        ),
        (
            "not before later",
            "GP1236",
            changed(usual(), "nbf", json!(now() + 120)),
        ),
        (
            "made in the future",
            "GP1236",
            changed(usual(), "iat", json!(now() + 120)),
        ),
        ("no jti", "GP1237", changed(usual(), "jti", Value::Null)),
        ("an empty jti", "GP1237", changed(usual(), "jti", json!(""))),
        (
            "NUL in the subject",
            "GP1230",
            changed(usual(), "sub", json!("rsa\0")),
        ),
        (
            "a subject nobody has",
            "GP1304",
            changed(usual(), "sub", json!("nobody")),
        ),
        ("a disabled client", "GP1310", claims(gatepost, "off")),
        ("a secret's client", "GP1306", claims(gatepost, "conf1")),
        ("a public client", "GP1306", claims(gatepost, "pub1")),
    ]
}

/// One way of authentication, and the registered one.
fn assert_not_mixed(gatepost: &Gatepost, rsa: &Signer) {
    let fresh = || rsa.sign(&claims(gatepost, "rsa"));
    let by_secret = gatepost.post(
        "/connect/token",
        &[("Authorization", &basic("rsa", "a-secret"))],
        &[GRANT],
    );
    by_secret.assert_refused(401, "invalid_client", "a secret of a client with keys");
    let by_body = gatepost.post(
        "/connect/token",
        &[],
        &[GRANT, ("client_id", "rsa"), ("client_secret", "a-secret")],
    );
    assert_unproven(gatepost, &by_body, "GP1306", "a secret in the body");
    let by_name = gatepost.post("/connect/token", &[], &[GRANT, ("client_id", "rsa")]);
    assert_unproven(gatepost, &by_name, "GP1306", "nothing but the name");
    let other_name = send(
        gatepost,
        "/connect/token",
        &fresh(),
        &[GRANT, ("client_id", "ec")],
    );
    assert_unproven(
        gatepost,
        &other_name,
        "GP1308",
        "another client_id beside it",
    );
    let with_secret = send(
        gatepost,
        "/connect/token",
        &fresh(),
        &[GRANT, ("client_id", "rsa"), ("client_secret", "x")],
    );
    with_secret.assert_refused(400, "invalid_request", "a secret beside it");
    let form = [
        GRANT,
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", &fresh()),
    ];
    let header = [("Authorization", basic("conf1", CONF1_SECRET))];
    let with_header = gatepost.post("/connect/token", &[(header[0].0, &header[0].1)], &form);
    with_header.assert_refused(400, "invalid_request", "a header beside it");
    let twice = [form[0], form[1], form[2], form[2]];
    let answer = gatepost.post("/connect/token", &[], &twice);
    answer.assert_refused(400, "invalid_request", "two assertions");
    for (case, kind) in [
        (
            "saml",
            "urn:ietf:params:oauth:client-assertion-type:saml2-bearer",
        ),
        (
            "the grant's name",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ),
        ("empty", ""),
    ] {
        let form = [
            GRANT,
            ("client_assertion_type", kind),
            ("client_assertion", &fresh()),
        ];
        assert_unproven(
            gatepost,
            &gatepost.post("/connect/token", &[], &form),
            "GP1230",
            case,
        );
    }
    let typeless = [GRANT, ("client_assertion", &fresh())];
    assert_unproven(
        gatepost,
        &gatepost.post("/connect/token", &[], &typeless),
        "GP1230",
        "no type",
    );
    let nothing = [
        GRANT,
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_id", "rsa"),
    ];
    assert_unproven(
        gatepost,
        &gatepost.post("/connect/token", &[], &nothing),
        "GP1230",
        "a type and no assertion",
    );
    let in_url = gatepost.post(
        &format!("/connect/token?client_assertion={}", fresh()),
        &[],
        &form,
    );
    in_url.assert_refused(400, "invalid_request", "in the URL");
}

fn assert_introspection_challenges(gatepost: &Gatepost, foreign: &Signer) {
    let assertion = foreign.sign(&claims(gatepost, "rsa"));
    let answer = send(
        gatepost,
        "/connect/introspect",
        &assertion,
        &[("token", "x")],
    );
    answer.assert_refused(401, "invalid_client", "introspection");
    answer.assert_header("www-authenticate", "Basic realm=\"gatepost\"");
}

#[test]
fn explain_gives_the_servers_verdict_on_an_assertion() {
    let (own, fetched, foreign) = (
        Signer::es256("own"),
        Signer::es256("far"),
        Signer::es256("own"),
    );
    let rsa = Signer::rs256("rsa");
    let mut bank = client(
        "bank",
        json!({"profile": "fapi2", "jwks": key_set(&[&own, &rsa])}),
    );
    bank.as_object_mut().unwrap().remove("access_token_type");
    let keys = WebServer::start(Behaviour::Json(key_set(&[&fetched])));
    let clients = [
        bank,
        client("plain", json!({"jwks": key_set(&[&own])})),
        client(
            "far",
            json!({"jwks_uri": keys.url("/keys.json"), "token_endpoint_auth_signing_alg": "ES256"}),
        ),
    ];
    let issuer_alone = [("GATEPOST_CLIENT_ASSERTION_AUDIENCE", "issuer")];
    let settings = [&OUTBOUND[..], &issuer_alone].concat();
    let gatepost = Gatepost::start_with(&with(&clients), &settings);
    let told = |assertion: &str| {
        let form = [
            GRANT,
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", assertion),
        ];
        let output = gatepost.run(&["explain", "-"], &crate::support::http::encode(&form));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.success(), told)
    };
    let token_url = format!("{}/connect/token", gatepost.base_url);
    let with = |client_id: &str, name: &str, value: Value| {
        changed(claims(&gatepost, client_id), name, value)
    };
    let bank = |name: &str, value: Value| own.sign(&with("bank", name, value));
    let plain = |name: &str, value: Value| own.sign(&with("plain", name, value));
    let unknown = json!({"alg": "ES256", "kid": "unknown"});
    for (code, detail, assertion) in [
        ("GP1235", &*token_url, plain("aud", json!(token_url))),
        (
            "GP1235",
            "as a text",
            bank("aud", json!([gatepost.base_url])),
        ),
        ("GP1235", &token_url, bank("aud", json!(token_url))),
        ("GP1236", "its iat is", bank("iat", json!(now() + 20))),
        ("GP1236", "s ago", plain("exp", json!(now() - 100))),
        ("GP1236", "its exp is", plain("exp", json!(now() + 3_600))),
        ("GP1236", "it has no exp", plain("exp", Value::Null)),
        ("GP1237", "jti", plain("jti", Value::Null)),
        ("GP1234", "its iss is bank", plain("iss", json!("bank"))),
        (
            "GP1231",
            "its alg is RS256",
            rsa.sign(&claims(&gatepost, "bank")),
        ),
        (
            "GP1232",
            "its kid is unknown",
            own.sign_under(&unknown, &claims(&gatepost, "plain")),
        ),
        (
            "GP1233",
            "does not verify",
            foreign.sign(&claims(&gatepost, "plain")),
        ),
        (
            "GP1231",
            "its alg is RS256",
            rsa.sign(&claims(&gatepost, "far")),
        ),
    ] {
        let (is_good, told) = told(&assertion);
        assert!(!is_good && !told.contains(" gets "), "{code}: {told}");
        assert!(told.contains(code), "{code}, {detail}: {told}");
        assert!(told.contains(detail), "{code}, {detail}: {told}");
        assert_unproven(&gatepost, &ask(&gatepost, &assertion), code, detail);
    }
    // It is not used up, and the server takes it.
    let good = own.sign(&claims(&gatepost, "plain"));
    let (is_good, said) = told(&good);
    assert!(is_good && said.contains("its signature verifies"), "{said}");
    assert!(said.contains("it gets the scope orders.read"), "{said}");
    assert_eq!(ask(&gatepost, &good).status, 200);
    // Nobody is asked for keys.
    let asked_before = keys.requests().len();
    let (is_good, said) = told(&fetched.sign(&claims(&gatepost, "far")));
    assert!(is_good && said.contains("are at jwks_uri"), "{said}");
    let late = changed(claims(&gatepost, "far"), "exp", json!(now() - 100));
    let (is_good, said) = told(&fetched.sign(&late));
    assert!(!is_good && said.contains("GP1236"), "{said}");
    assert_eq!(keys.requests().len(), asked_before);
}

#[test]
fn an_assertion_is_good_once_over_all_processes_and_endpoints() {
    let (one, other) = (Signer::es256("k"), Signer::es256("k"));
    let clients = [
        client("one", json!({"jwks": key_set(&[&one])})),
        client("other", json!({"jwks": key_set(&[&other])})),
    ];
    let gatepost = Gatepost::start_with(&with(&clients), &[]);
    let mut beside = gatepost.beside();
    beside.serve();
    let claims_of_one = claims(&gatepost, "one");
    let assertion = one.sign(&claims_of_one);
    assert_eq!(ask(&gatepost, &assertion).status, 200);
    assert_unproven(&gatepost, &ask(&gatepost, &assertion), "GP1238", "again");
    assert_unproven(
        &beside,
        &ask(&beside, &assertion),
        "GP1238",
        "at a second process",
    );
    let revocation = send(
        &gatepost,
        "/connect/revocation",
        &assertion,
        &[("token", "x")],
    );
    assert_unproven(&gatepost, &revocation, "GP1238", "at another endpoint");
    // Signed anew, ending later: the name decides.
    let again = one.sign(&changed(claims_of_one.clone(), "exp", json!(now() + 61)));
    assert_unproven(
        &gatepost,
        &ask(&gatepost, &again),
        "GP1238",
        "the same jti signed anew",
    );
    // The same name from somebody else is another assertion.
    let mut of_other = claims(&gatepost, "other");
    of_other["jti"] = claims_of_one["jti"].clone();
    assert_eq!(ask(&beside, &other.sign(&of_other)).status, 200);
    // A request that fails later has spent its assertion all the same.
    let assertion = one.sign(&claims(&gatepost, "one"));
    let failed = send(
        &gatepost,
        "/connect/token",
        &assertion,
        &[("grant_type", "password")],
    );
    assert_eq!(failed.status, 400);
    assert_unproven(
        &gatepost,
        &ask(&gatepost, &assertion),
        "GP1238",
        "after a failed request",
    );
    assert_race_has_one_winner(&gatepost, &beside, &one);
}

fn assert_race_has_one_winner(gatepost: &Gatepost, beside: &Gatepost, signer: &Signer) {
    let assertion = signer.sign(&claims(gatepost, "one"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked = (0..8).map(|index| {
            let (at, assertion) = (if index % 2 == 0 { gatepost } else { beside }, &assertion);
            scope.spawn(move || ask(at, assertion).status)
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
    let (server, elsewhere) = (
        WebServer::start(Behaviour::Json(key_set(&[&old]))),
        WebServer::start(Behaviour::Status(404)),
    );
    let remote = client("remote", json!({"jwks_uri": server.url("/keys.json")}));
    let gatepost = Gatepost::start_with(&with(&[remote]), &OUTBOUND);
    let fresh = |signer: &Signer| signer.sign(&claims(&gatepost, "remote"));
    for _ in 0..3 {
        assert_eq!(ask(&gatepost, &fresh(&old)).status, 200);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].starts_with("GET /keys.json HTTP/1.1\r\n"));
    assert!(requests[0].contains("user-agent: Gatepost"));

    server.behave(Behaviour::Json(key_set(&[&new])));
    ask(&gatepost, &fresh(&new)).assert_status_for("a new key is looked for at once", 200);
    assert_eq!(server.requests().len(), 2);
    assert_unproven(
        &gatepost,
        &ask(&gatepost, &fresh(&old)),
        "GP1232",
        "the old key is gone",
    );
    let stranger = Signer::es256("stranger");
    for _ in 0..20 {
        assert_unproven(
            &gatepost,
            &ask(&gatepost, &fresh(&stranger)),
            "GP1232",
            "a key that is nowhere",
        );
    }
    assert_eq!(server.requests().len(), 2, "at most one search a minute");
    // Where the header says keys are is of no interest.
    let tempting = json!({"alg": "ES256", "kid": "new", "jku": elsewhere.url("/jwks"), "x5u": elsewhere.url("/x5u")});
    let assertion = stranger.sign_under(&tempting, &claims(&gatepost, "remote"));
    assert_unproven(
        &gatepost,
        &ask(&gatepost, &assertion),
        "GP1233",
        "jku and x5u",
    );
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
    server.behave(Behaviour::Status(500));
    ask(&gatepost, &fresh(&new)).assert_status_for("what is held goes on counting", 200);
}

#[test]
fn keys_that_cannot_be_had_prove_nothing_and_hold_nobody_up() {
    let signer = Signer::ed25519("k");
    let good = WebServer::start(Behaviour::Json(key_set(&[&signer])));
    let (weak, twins) = (
        json!({"kty": "RSA", "kid": "k", "n": "x".repeat(168), "e": "AQAB"}),
        Signer::ed25519("k"),
    );
    let failing: Vec<(&str, &str, WebServer)> = [
        (
            "silent",
            "GP1239",
            Behaviour::Silent(Duration::from_secs(20)),
        ),
        ("endless", "GP1239", Behaviour::Endless),
        ("missing", "GP1239", Behaviour::Status(404)),
        (
            "redirected",
            "GP1239",
            Behaviour::Redirect(302, good.url("/")),
        ),
        ("no-set", "GP1239", Behaviour::Json(json!([]))),
        ("weak", "GP1232", Behaviour::Json(json!({"keys": [weak]}))),
        (
            "ambiguous",
            "GP1232",
            Behaviour::Json(key_set(&[&signer, &twins])),
        ),
    ]
    .into_iter()
    .map(|(name, code, behaviour)| (name, code, WebServer::start(behaviour)))
    .collect();
    let mut clients: Vec<Value> = failing
        .iter()
        .map(|(name, _, server)| client(name, json!({"jwks_uri": server.url("/")})))
        .collect();
    // Nobody listens there; nobody may be asked there.
    clients.push(client("down", json!({"jwks_uri": "http://127.0.0.1:1/"})));
    clients.push(client("private", json!({"jwks_uri": "https://10.0.0.1/"})));
    clients.push(client(
        "metadata",
        json!({"jwks_uri": "https://169.254.169.254/latest"}),
    ));
    clients.push(client(
        "untrusted",
        json!({"jwks_uri": good.url("/").replace("http:", "https:")}),
    ));
    let gatepost = Gatepost::start_with(&with(&clients), &[OUTBOUND[0], ("GATEPOST_WORKERS", "8")]);
    let by_key = |name: &str| ask(&gatepost, &signer.sign(&claims(&gatepost, name)));
    // Too long for a worker: one of the readers of bodies, half as many as there are workers,
    // answers it.
    let padding = ("padding", "x".repeat(2_000));
    let long = [GRANT, (padding.0, padding.1.as_str())];
    // Of one address at most half of those readers are held up.
    let from = |number: usize| format!("198.51.100.{number}");
    let by_long = |number: usize| {
        let assertion = signer.sign(&claims(&gatepost, "silent"));
        let form = [
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", assertion.as_str()),
        ];
        gatepost.post(
            "/connect/token",
            &[("X-Forwarded-For", &from(number))],
            &[&form, &long[..]].concat(),
        )
    };
    for name in ["down", "private", "metadata", "untrusted"] {
        assert_unproven(&gatepost, &by_key(name), "GP1239", name);
    }
    for (name, code, _) in failing.iter().filter(|(name, ..)| *name != "silent") {
        assert_unproven(&gatepost, &by_key(name), code, name);
    }
    std::thread::scope(|scope| {
        let held_up: Vec<_> = (0..12)
            .map(|number| scope.spawn(move || by_long(number)))
            .collect();
        while failing[0].2.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let authorization = basic("service", CONF1_SECRET);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-Forwarded-For", &from(100)),
        ];
        let others = gatepost.post("/connect/token", &headers, &long);
        assert_eq!(others.status, 200, "{}", others.text());
        assert!(
            !held_up.iter().all(|asked| asked.is_finished()),
            "the rest keeps serving meanwhile"
        );
        for answer in held_up.into_iter().map(|asked| asked.join().unwrap()) {
            let error = answer.json()["error"].clone();
            assert!(matches!(
                (answer.status, error.as_str().unwrap()),
                (400, "invalid_client") | (503, "temporarily_unavailable")
            ));
        }
    });
    let requests = failing[0].2.requests().len();
    assert_eq!(
        (by_key("silent").status, failing[0].2.requests().len()),
        (400, requests),
        "it is left in peace for a while"
    );
    assert_eq!(
        good.requests()
            .iter()
            .filter(|request| request.starts_with("GET"))
            .count(),
        0,
        "no redirect is followed"
    );
}
