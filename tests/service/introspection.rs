//! Introspection (RFC 7662): what whom a token is for is told, and that nobody else is told
//! anything.

use serde_json::{Value, json};

use crate::support::flow::{basic, decode_jwt, signed_in};
use crate::support::gatepost::Gatepost;
use crate::support::http::Browser;
use crate::support::offline::{
    CONF1, CONF2, ORDERS, PUB1, REUSE, STOCK, access, document, introspect_as, member, refresh,
};
use crate::support::shared::Shared;
use crate::support::tables::rows_of;

const BOTH: &str = "openid profile orders.read stock.read offline_access";

fn start() -> (Shared, Browser) {
    let gatepost = Gatepost::shared_with(&document(), &[]);
    let browser = signed_in(&gatepost);
    (gatepost, browser)
}

fn inactive() -> Value {
    json!({"active": false})
}

#[test]
fn a_resource_learns_what_is_its_own_business() {
    let (gatepost, mut browser) = start();
    for party in [CONF1, CONF2, PUB1] {
        let tokens = party.tokens(&gatepost, &mut browser, BOTH);
        let (_, id_token) = decode_jwt(member(&tokens, "id_token"));
        let told = introspect_as(&gatepost, ORDERS, access(&tokens));
        assert_eq!(told["active"], true);
        assert_eq!(told["scope"], "orders.read");
        assert_eq!(told["aud"], json!(ORDERS.0));
        assert_eq!(told["client_id"], json!(party.client_id));
        for name in ["sub", "sid", "auth_time", "acr"] {
            assert!(!told[name].is_null(), "{name}: {told}");
            assert!(told[name] == id_token[name], "{name}: {told}");
        }
        assert_eq!(told["iss"], json!(gatepost.base_url));
        assert_eq!(told["token_type"], "Bearer");
        assert_eq!(told["role"], json!(["admin"]));
        assert_eq!(told.get("email"), None);
        let [from, to] = ["iat", "exp"].map(|name| told[name].as_i64().unwrap());
        assert_eq!(to - from, 3_600);
        assert!(told["jti"].as_str().unwrap().len() == 43);
        assert!(told["nbf"].is_i64());
        assert!(told.get("tenant").is_none());
        let told = introspect_as(&gatepost, STOCK, access(&tokens));
        assert_eq!(told["scope"], "stock.read");
        assert_eq!(told["email"], "alice@example.com");
        assert_eq!(told.get("role"), None);
    }
    let proof = [("client_id", ORDERS.0), ("client_secret", ORDERS.1)];
    let in_body = [&[("token", "x")], &proof[..]].concat();
    let answer = gatepost.post("/connect/introspect", &[], &in_body);
    assert_eq!(answer.json(), inactive());
    let discovery = gatepost.get("/.well-known/openid-configuration").json();
    for (name, path) in [
        ("introspection", "introspect"),
        ("revocation", "revocation"),
    ] {
        let address = format!("{}/connect/{path}", gatepost.base_url);
        assert_eq!(discovery[format!("{name}_endpoint")], address);
    }
    let methods = &discovery["introspection_endpoint_auth_methods_supported"];
    let [header, body] = ["client_secret_basic", "client_secret_post"];
    assert_eq!(methods, &json!([header, body, "private_key_jwt"]));
}

#[test]
fn a_resource_learns_nothing_of_tokens_for_others() {
    let (gatepost, mut browser) = start();
    let orders = CONF1.tokens(&gatepost, &mut browser, "openid orders.read offline_access");
    let changes = [("scope", BOTH), ("resource", ORDERS.0)];
    let bound = CONF1.tokens_with(&gatepost, &mut browser, &changes);
    let plain = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    for token in [access(&orders), access(&bound)] {
        assert_eq!(introspect_as(&gatepost, STOCK, token), inactive());
    }
    let of_nobody = [
        access(&plain),
        refresh(&orders),
        member(&orders, "id_token"),
    ];
    for token in of_nobody.into_iter().chain(["x", "gpa_AAAA", "a.b.c"]) {
        assert_eq!(
            introspect_as(&gatepost, STOCK, token),
            inactive(),
            "{token}"
        );
        assert_eq!(
            introspect_as(&gatepost, ORDERS, token),
            inactive(),
            "{token}"
        );
    }
}

#[test]
fn a_client_learns_of_its_own_tokens_and_of_no_others() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, BOTH);
    let told = CONF1.introspect(&gatepost, access(&tokens));
    assert_eq!(told["scope"], json!(BOTH));
    assert_eq!(told["aud"], json!([ORDERS.0, STOCK.0]));
    let told = CONF1.introspect(&gatepost, refresh(&tokens));
    let mut names: Vec<&String> = told.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["active", "exp", "scope", "sub"]);
    let ends = told["exp"].as_i64().unwrap() - gatepost.database.now().seconds();
    let idle = 1_295_900..=1_296_000;
    assert!(idle.contains(&ends), "the idle end comes first: {ends}");
    assert_eq!(told["scope"], json!(BOTH));
    assert_eq!(told["active"], true);
    for token in [access(&tokens), refresh(&tokens)] {
        assert_eq!(CONF2.introspect(&gatepost, token), inactive());
        assert_eq!(REUSE.introspect(&gatepost, token), inactive());
    }
    let told = CONF1.introspect(&gatepost, &CONF1.of_itself(&gatepost));
    assert_eq!(told["active"], true);
    assert_eq!(told["sub"], json!(CONF1.client_id));
    for name in ["sid", "auth_time", "acr"] {
        assert_eq!(told.get(name), None, "{told}");
    }
}

#[test]
fn what_is_over_is_inactive() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let mut browser = signed_in(&gatepost);
    let first = CONF2.tokens(&gatepost, &mut browser, BOTH);
    let second = CONF2.refresh(&gatepost, refresh(&first)).json();
    // Only the newest refresh token is active.
    assert_eq!(CONF2.introspect(&gatepost, refresh(&first)), inactive());
    CONF2.assert_active(&gatepost, refresh(&second), "the newest");
    for [end, undo] in rows_of(
        "
        UPDATE users SET enabled = false | UPDATE users SET enabled = true
        UPDATE users SET epoch = epoch + 1 | UPDATE users SET epoch = epoch - 1
        UPDATE clients SET epoch = epoch + 1 | UPDATE clients SET epoch = epoch - 1
        UPDATE installation SET epoch = epoch + 1 | UPDATE installation SET epoch = epoch - 1
        UPDATE consents SET epoch = epoch + 1 | UPDATE consents SET epoch = epoch - 1
        UPDATE grants SET revoked_at = clock_timestamp() | UPDATE grants SET revoked_at = NULL
        UPDATE grants SET expires_at = clock_timestamp() - interval '1 s'
            | UPDATE grants SET expires_at = clock_timestamp() + interval '20 d'
    ",
    ) {
        gatepost.database.run(end);
        for token in [access(&second), refresh(&second)] {
            assert_eq!(CONF2.introspect(&gatepost, token), inactive(), "{end}");
        }
        let told = introspect_as(&gatepost, ORDERS, access(&second));
        assert_eq!(told, inactive(), "{end}");
        gatepost.database.run(undo);
        CONF2.assert_active(&gatepost, refresh(&second), undo);
        CONF2.assert_active(&gatepost, access(&second), undo);
    }
}

#[test]
fn whoever_proves_nothing_is_told_nothing() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, BOTH);
    let token = ("token", access(&tokens));
    for header in [
        basic("conf1", "wrong"),
        basic("nobody", "x"),
        basic(ORDERS.0, STOCK.1),
        basic(ORDERS.0, ""),
        basic("pub1", ""),
        basic("pub1", "x"),
        String::from("Bearer x"),
        format!("Bearer {}", access(&tokens)),
    ] {
        let headers = [("Authorization", &*header)];
        let answer = gatepost.post("/connect/introspect", &headers, &[token]);
        answer.assert_error(401, "invalid_client");
        answer.assert_header_for(&header, "www-authenticate", "Basic realm=\"gatepost\"");
    }
    for form in [
        &[token][..],
        &[token, ("client_id", "pub1")],
        &[token, ("client_id", ORDERS.0)],
        &[token, ("client_id", "conf1"), ("client_secret", "wrong")],
    ] {
        let answer = gatepost.post("/connect/introspect", &[], form);
        answer.assert_error(401, "invalid_client");
    }
    let get = gatepost.get("/connect/introspect");
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
    let orders = basic(ORDERS.0, ORDERS.1);
    let headers = [("Authorization", orders.as_str())];
    for form in [&[][..], &[("token", "")], &[token, token]] {
        let answer = gatepost.post("/connect/introspect", &headers, form);
        answer.assert_error(400, "invalid_request");
    }
    let of_token = format!("token={}", access(&tokens));
    for in_query in [&*of_token, "client_assertion=x", "client_assertion_type=x"] {
        let path = format!("/connect/introspect?{in_query}");
        let answer = gatepost.post(&path, &headers, &[token]);
        answer.assert_error(400, "invalid_request");
    }
    let text = [headers[0], ("Content-Type", "text/plain")];
    let answer = gatepost.send("POST", "/connect/introspect", &text, b"token=x");
    answer.assert_error(415, "invalid_request");
    let headers = [headers[0], ("Origin", "https://rp1.example")];
    let page = gatepost.post("/connect/introspect", &headers, &[token]);
    page.assert_status(200);
    assert_eq!(page.header("access-control-allow-origin"), None);
}

#[test]
fn guessing_a_resources_secret_is_limited() {
    let three = [("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "3")];
    let gatepost = Gatepost::start_with(&document(), &three);
    let wrong = basic(ORDERS.0, "x");
    let headers = [("Authorization", &*wrong)];
    let guess = || gatepost.post("/connect/introspect", &headers, &[("token", "x")]);
    for _ in 0..3 {
        assert_eq!(guess().status, 401);
    }
    let limited = guess();
    limited.assert_error(429, "temporarily_unavailable");
    assert!(limited.header("retry-after").is_some());
    // Another resource is not concerned.
    assert_eq!(introspect_as(&gatepost, STOCK, "x"), inactive());
}
