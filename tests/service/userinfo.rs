//! `/connect/userinfo`: how it is asked, and which tokens open it.

use std::net::TcpListener;
use std::thread::sleep;
use std::time::Duration;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::flow::{
    access_token, basic, damaged, decode_jwt, signed_in, text, tokens, userinfo, with_clients,
};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::{Answer, encode};
use crate::support::jwt::{base64url, forge, published_keys};
use crate::support::postgres::TestDatabase;
use crate::support::tables::rows_of;

const PATH: &str = "/connect/userinfo";

fn send(
    gatepost: &Gatepost,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    gatepost.send(method, path, headers, body.as_bytes())
}

/// A refusal whose challenge names the same error as its body.
fn assert_challenged(answer: &Answer, status: u16, error: &str, case: &str) {
    answer.assert_refused(status, error, case);
    let challenge = answer.header("www-authenticate");
    let challenge = challenge.unwrap_or_else(|| panic!("{case}: no challenge"));
    let beginning = format!("Bearer realm=\"gatepost\", error=\"{error}\"");
    assert!(challenge.starts_with(&beginning), "{case}: {challenge}");
    let asks_for_scope = challenge.contains("scope=\"openid\"");
    let is_about_scope = error == "insufficient_scope";
    assert_eq!(asks_for_scope, is_about_scope, "{case}: {challenge}");
}

fn assert_dead(gatepost: &Gatepost, token: &str, case: &str) {
    assert_challenged(&userinfo(gatepost, token), 401, "invalid_token", case);
}

/// Method, headers, body.
type Sent<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn a_token_is_taken_from_the_header_or_a_form_body() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid profile");
    let bearer = format!("Bearer {token}");
    let body = encode(&[("access_token", &token)]);
    let (lower, spaced) = (format!("bearer {token}"), format!("BEARER   {token}"));
    let header = ("Authorization", &*bearer);
    let json = ("Content-Type", "application/json");
    let charset = format!("{}; charset=utf-8", FORM.1);
    let requests: [Sent; 8] = [
        ("GET", &[header], ""),
        ("GET", &[("Authorization", &lower)], ""),
        ("GET", &[("Authorization", &spaced)], ""),
        ("POST", &[header], ""),
        ("POST", &[header, json], ""),
        ("POST", &[header, FORM], "x=1"),
        ("POST", &[FORM], &body),
        ("POST", &[("Content-Type", &charset)], &body),
    ];
    for (method, headers, body) in requests {
        let answer = send(&gatepost, method, PATH, headers, body);
        let case = format!("{method} {headers:?}");
        answer.assert_status_for(&case, 200);
        answer.assert_header("content-type", "application/json");
        answer.assert_header("cache-control", "no-store");
        answer.assert_header("pragma", "no-cache");
        assert_eq!(answer.header("www-authenticate"), None);
        answer.assert_member_for(&case, "name", "Alice Smith");
    }
    send(&gatepost, "HEAD", PATH, &[("Authorization", &bearer)], "").assert_status(200);
}

#[test]
fn without_a_token_there_is_a_bare_challenge() {
    let gatepost = Gatepost::shared();
    let basic = basic("conf1", CONF1_SECRET);
    let requests: [Sent; 9] = [
        ("GET", &[], ""),
        ("HEAD", &[], ""),
        ("POST", &[], ""),
        ("POST", &[FORM], "x=1"),
        ("POST", &[FORM], "access_token="),
        ("GET", &[("Authorization", "Bearer")], ""),
        ("GET", &[("Authorization", "Bearer ")], ""),
        ("GET", &[("Authorization", &basic)], ""),
        ("GET", &[("Authorization", "")], ""),
    ];
    for (method, headers, body) in requests {
        let answer = send(&gatepost, method, PATH, headers, body);
        assert_eq!(answer.status, 401, "{method} {headers:?} {body}");
        assert_eq!(answer.body.len(), 0, "{method} {headers:?} {body}");
        let challenges = answer.headers_named("www-authenticate");
        let [bearer, dpop] = [
            "Bearer realm=\"gatepost\"",
            "DPoP algs=\"ES256 EdDSA Ed25519\"",
        ];
        assert_eq!(challenges, [bearer, dpop], "{method} {headers:?}");
    }
}

#[test]
fn a_token_in_the_query_or_two_tokens_are_refused() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid");
    let bearer = format!("Bearer {token}");
    let header = ("Authorization", bearer.as_str());
    let body = encode(&[("access_token", &token)]);
    let in_query = format!("{PATH}?{body}");
    let twice = format!("{body}&{body}");
    let not_b64 = format!("Bearer {token} x");
    let requests: [(&str, Sent); 9] = [
        (&in_query, ("GET", &[], "")),
        (&in_query, ("GET", &[header], "")),
        (&in_query, ("POST", &[header], "")),
        ("/connect/userinfo?access_token=", ("GET", &[header], "")),
        (PATH, ("POST", &[header, FORM], &body)),
        (PATH, ("POST", &[FORM], &twice)),
        (PATH, ("GET", &[header, header], "")),
        (PATH, ("GET", &[("Authorization", &not_b64)], "")),
        (PATH, ("GET", &[("Authorization", "Bearer \"x\"")], "")),
    ];
    for (path, (method, headers, body)) in requests {
        let answer = send(&gatepost, method, path, headers, body);
        let case = format!("{method} {path} {headers:?} {body}");
        assert_challenged(&answer, 400, "invalid_request", &case);
    }
    for malformed in "access_token=%ff access_token=% x=%zz access_token=%00".split(' ') {
        let answer = send(&gatepost, "POST", PATH, &[FORM], malformed);
        answer.assert_refused(400, "invalid_request", malformed);
    }
    let boundary = "multipart/form-data; boundary=x";
    for content_type in ["application/json", "text/plain", boundary] {
        let headers = [("Content-Type", content_type)];
        let answer = send(&gatepost, "POST", PATH, &headers, &body);
        answer.assert_refused(415, "invalid_request", content_type);
    }
    send(&gatepost, "POST", PATH, &[], &body).assert_refused(415, "invalid_request", "no type");
}

#[test]
fn nothing_forged_is_believed() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let all = tokens(&gatepost, &mut browser, "conf1", "openid profile");
    let token = all["access_token"].as_str().unwrap();
    let (header, claims) = decode_jwt(token);
    let keys = published_keys(&gatepost);
    let key = keys.iter().find(|key| key["kid"] == header["kid"]).unwrap();
    let with = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        header
    };
    let own = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let by_own_key = |input: &[u8]| {
        let mut signature = vec![0; own.public_modulus_len()];
        let random = SystemRandom::new();
        let signed = own.sign(&RSA_PKCS1_SHA256, &random, input, &mut signature);
        signed.unwrap();
        signature
    };
    let by_hmac = |secret: &[u8]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        move |input: &[u8]| hmac::sign(&key, input).as_ref().to_vec()
    };
    let unsigned = |_: &[u8]| Vec::new();
    let mut forged: Vec<String> = Vec::new();
    for none in ["none", "None", "NONE", "nOnE", ""] {
        forged.push(forge(&with("alg", json!(none)), &claims, unsigned));
        forged.push(forge(&with("alg", json!(none)), &claims, |_| vec![0]));
    }
    forged.push(forge(&header, &claims, unsigned));
    let modulus = base64url(key["n"].as_str().unwrap());
    let n = key["n"].as_str().unwrap();
    for secret in [&modulus, n.as_bytes(), key.to_string().as_bytes(), b"x"] {
        let hs256 = with("alg", json!("HS256"));
        forged.push(forge(&hs256, &claims, by_hmac(secret)));
        forged.push(forge(&header, &claims, by_hmac(secret)));
    }
    forged.push(forge(&header, &claims, by_own_key));
    for alg in ["RS512", "PS256", "ES256", "EdDSA", "rs256"] {
        forged.push(forge(&with("alg", json!(alg)), &claims, by_own_key));
    }
    let texts = ["../../dev/null", "' or 1=1--", &"k".repeat(4_000), ""].map(|kid| json!(kid));
    let others = [json!(null), json!(1), json!([]), json!({"a": 1})];
    for kid in texts.into_iter().chain(others) {
        forged.push(forge(&with("kid", kid), &claims, by_own_key));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/jwks", listener.local_addr().unwrap());
    let jwk = json!({"kty": "RSA", "e": "AQAB", "n": key["n"], "kid": header["kid"]});
    for (name, value) in [
        ("jku", json!(address)),
        ("x5u", json!(address)),
        ("jwk", jwk),
        ("crit", json!(["exp"])),
        ("crit", json!([])),
    ] {
        forged.push(forge(&with(name, value), &claims, by_own_key));
    }
    for token in &forged {
        assert_dead(&gatepost, token, token);
    }
    // Somebody fetched the forger's keys.
    assert!(listener.accept().is_err());
    assert_eq!(userinfo(&gatepost, token).status, 200);
}

#[test]
fn a_true_signature_is_good_for_what_it_signed_alone() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let all = tokens(&gatepost, &mut browser, "conf1", "openid profile");
    let token = all["access_token"].as_str().unwrap();
    let (mut header, claims) = decode_jwt(token);
    let [head, body, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("{token}")
    };
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    header["typ"] = json!("JWT");
    let mut other = claims.clone();
    other["scope"] = json!("openid profile email");
    let (of_type, of_scope) = (encoded(&header), encoded(&other));
    let (flipped, half) = (damaged(signature), &signature[..signature.len() / 2]);
    let mut forged = vec![
        format!("{of_type}.{body}.{signature}"),
        format!("{head}.{of_scope}.{signature}"),
        format!("{head}.{body}.{flipped}"),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!("{token}.{signature}"),
        format!("{head}.{body}.{half}"),
        format!("{token}="),
        format!("gpa_{}", "A".repeat(200)),
        "a".repeat(8_193),
    ];
    let id_token = all["id_token"].as_str().unwrap();
    let others = [id_token, "garbage", "a.b.c", "...", "gpa_"];
    forged.extend(others.map(str::to_owned));
    for token in &forged {
        assert_dead(&gatepost, token, token);
    }
    assert_eq!(userinfo(&gatepost, token).status, 200);
    assert!(!gatepost.log().contains(signature), "a token in the log");
}

#[test]
fn tokens_of_another_installation_are_strangers() {
    let here = Gatepost::start();
    let mut there = Gatepost::prepare_over(TestDatabase::empty(), &[]);
    there.apply(&document());
    there.serve();
    for client_id in ["conf1", "byref"] {
        let clients = [("byref", json!({"access_token_type": "reference"}))];
        there.apply(&with_clients(document(), &clients));
        let mut browser = signed_in(&there);
        let foreign = tokens(&there, &mut browser, client_id, "openid");
        let foreign = text(&foreign, "access_token").to_owned();
        assert_eq!(userinfo(&there, &foreign).status, 200);
        assert_dead(&here, &foreign, client_id);
    }
}

#[test]
fn a_token_without_openid_or_without_a_user_is_not_enough() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let without = access_token(&gatepost, &mut browser, "orders.read");
    let is_not_enough = |token: &str, case: &str| {
        assert_challenged(&userinfo(&gatepost, token), 403, "insufficient_scope", case);
    };
    is_not_enough(&without, "no openid");
    for client_id in ["conf1", "service"] {
        let form = [("grant_type", "client_credentials")];
        let own = gatepost.token(client_id, &form).json();
        is_not_enough(text(&own, "access_token"), "a client's own token");
    }
    let elsewhere = access_token(&gatepost, &mut browser, "openid orders.read");
    userinfo(&gatepost, &elsewhere).assert_status_for("whatever its audience", 200);
}

#[test]
fn an_expired_token_is_refused_in_either_form() {
    let brief = json!({"access_token_lifetime": 1});
    let by_reference = json!({"access_token_lifetime": 1, "access_token_type": "reference"});
    let clients = [("brief", brief), ("briefref", by_reference)];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    let issued = clients.map(|(client_id, _)| tokens(&gatepost, &mut browser, client_id, "openid"));
    sleep(Duration::from_millis(1_100));
    for tokens in issued {
        assert!(tokens["expires_in"].as_i64().unwrap() <= 1);
        assert_dead(&gatepost, text(&tokens, "access_token"), "expired");
    }
}

#[test]
fn a_token_dies_with_what_it_stands_on() {
    let clients = [("byref", json!({"access_token_type": "reference"}))];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let broken = rows_of("
        UPDATE users SET enabled = false                 | UPDATE users SET enabled = true
        UPDATE clients SET enabled = false               | UPDATE clients SET enabled = true
        UPDATE sessions SET ended_at = clock_timestamp() | UPDATE sessions SET ended_at = NULL
        UPDATE grants SET revoked_at = clock_timestamp() | UPDATE grants SET revoked_at = NULL
        UPDATE users SET epoch = epoch + 1               | UPDATE users SET epoch = epoch - 1
        UPDATE clients SET epoch = epoch + 1             | UPDATE clients SET epoch = epoch - 1
        UPDATE installation SET epoch = epoch + 1        | UPDATE installation SET epoch = epoch - 1
        INSERT INTO consents (sub, client_id, scopes, claims, epoch) SELECT sub, client_id, '{}', '{}', 1 FROM users, clients
                                                         | DELETE FROM consents
        DELETE FROM sessions                             | SELECT 1
        DELETE FROM grants                               | SELECT 1
        DELETE FROM users                                | SELECT 1
    ");
    let mut browser = signed_in(&gatepost);
    for [end, mend] in broken {
        if end.starts_with("DELETE") {
            browser = signed_in(&gatepost);
        }
        for client_id in ["conf1", "byref"] {
            let all = tokens(&gatepost, &mut browser, client_id, "openid");
            let token = all["access_token"].as_str().unwrap();
            assert_eq!(userinfo(&gatepost, token).status, 200, "before {end}");
            if client_id == "byref" || !end.starts_with("DELETE") {
                gatepost.database.run(end);
                assert_dead(&gatepost, token, end);
                gatepost.database.run(mend);
            }
        }
    }
    // Who comes under the same name is somebody else.
    gatepost.apply(&document());
    let mut browser = signed_in(&gatepost);
    userinfo(&gatepost, &access_token(&gatepost, &mut browser, "openid")).assert_status(200);
}

#[test]
fn a_revoked_token_takes_no_other_along() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let [first, second] = [(); 2].map(|()| access_token(&gatepost, &mut browser, "openid"));
    let (_, claims) = decode_jwt(&first);
    let day = i32::try_from(claims["exp"].as_i64().unwrap() / 86_400).unwrap();
    let jti = base64url(text(&claims, "jti"));
    let revoke = "INSERT INTO revoked_tokens (day, jti) VALUES ($1, $2)";
    let mut client = gatepost.database.client();
    client.execute(revoke, &[&day, &jti]).unwrap();
    assert_dead(&gatepost, &first, "revoked");
    assert_eq!(userinfo(&gatepost, &second).status, 200);
}

#[test]
fn a_recreated_user_is_another_subject() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid");
    let sub = userinfo(&gatepost, &token).json()["sub"].clone();
    gatepost.run_sql("DELETE FROM users WHERE username = 'alice'");
    gatepost.apply(&document());
    assert_dead(&gatepost, &token, "the old alice");
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid");
    assert_ne!(userinfo(&gatepost, &token).json()["sub"], sub);
}
