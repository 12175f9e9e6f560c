//! What the tokens of a code say: exact claims, signatures, shapes and audiences.

use serde_json::{Value, json};

use crate::support::claims::Members;
use crate::support::flow::{
    authorize_path, code, issued, names, redeem, redeem_with, request_of, sign_in, signed_in, text,
    tokens, userinfo, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::jwt::{half_hash, verified};
use crate::support::offline::client;

/// For how long the claims say that it lives.
fn lifetime(claims: &Value) -> i64 {
    claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap()
}

#[test]
fn an_access_token_never_outlives_its_grant() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &request_of("conf1", &[]));
    let mut longer = document();
    longer["clients"][0]["access_token_lifetime"] = json!(86_400);
    gatepost.apply(&longer);
    // The code was sealed with a grant that ends an hour after it.
    let response = issued(&redeem(&gatepost, &code));
    let expires_in = response["expires_in"].as_i64().unwrap();
    assert!((3_600..=3_660).contains(&expires_in), "{response}");
    let (_, claims) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(lifetime(&claims), expires_in);
}

#[test]
fn tokens_carry_exactly_what_they_should() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let scope = "openid profile email roles orders.read stock.read";
    let response = tokens(&gatepost, &mut browser, "conf1", scope);
    response.assert_members("access_token expires_in id_token scope token_type");
    assert_eq!(response["scope"], scope);
    let access_token = text(&response, "access_token");
    let (header, claims) = verified(&gatepost, access_token);
    assert_eq!(names(&header), ["alg", "kid", "typ"]);
    assert_eq!(header["alg"], "RS256");
    assert_eq!(header["typ"], "at+jwt");
    claims.assert_members("acr amr aud auth_time client_id exp iat iss jti nbf role scope sid sub");
    assert_eq!(claims["iss"], gatepost.base_url);
    let audience = ["https://orders.example", "https://stock.example"];
    assert_eq!(claims["aud"], json!(audience));
    assert_eq!(claims["client_id"], "conf1");
    assert_eq!(claims["scope"], response["scope"]);
    let issued_at = claims["iat"].as_i64().unwrap();
    assert_eq!(claims["nbf"], issued_at - 10, "for clocks that are behind");
    assert_eq!(lifetime(&claims), 3_600);
    assert_eq!(claims["amr"], json!(["pwd"]));
    assert_eq!(claims["acr"], "1");
    assert_eq!(claims["role"], json!(["admin"]));

    let (header, id) = verified(&gatepost, text(&response, "id_token"));
    assert_eq!(names(&header), vec!["alg", "kid", "typ"]);
    assert_eq!(header["typ"], "JWT");
    id.assert_members("acr amr at_hash aud auth_time exp iat iss nonce sid sub");
    assert_eq!(id["iss"], json!(gatepost.base_url));
    assert_eq!(id["aud"], "conf1");
    assert_eq!(id["acr"], "1");
    assert_eq!(id["sub"], claims["sub"]);
    assert_eq!(id["sid"], claims["sid"]);
    assert_eq!(id["auth_time"], claims["auth_time"]);
    assert_eq!(lifetime(&id), 300);
    assert_eq!(id["at_hash"], half_hash("RS256", access_token));
    assert!(id["auth_time"].as_i64().unwrap() <= id["iat"].as_i64().unwrap());
    assert_ne!(id["sub"], "alice");
}

#[test]
fn without_openid_there_is_no_id_token_and_the_audience_is_the_resource() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let asked = request_of("conf1", &[("scope", "stock.read"), ("nonce", "")]);
    let response = issued(&redeem(&gatepost, &code(&mut browser, &asked)));
    response.assert_members("access_token expires_in scope token_type");
    let (_, claims) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(claims["aud"], "https://stock.example");
    assert_eq!(claims.get("role"), None);
    let answer = userinfo(&gatepost, text(&response, "access_token"));
    answer.assert_refused(403, "insufficient_scope", "no openid");
}

#[test]
fn a_resource_alone_asks_for_the_scopes_behind_it() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let asked = |resource: &str| request_of("conf1", &[("scope", ""), ("resource", resource)]);
    let asked_code = code(&mut browser, &asked("https://orders.example"));
    let response = issued(&redeem(&gatepost, &asked_code));
    assert_eq!(response["scope"], "orders.read orders.write");
    let (_, claims) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(claims["aud"], "https://orders.example");
    assert_eq!(claims["scope"], response["scope"]);
    let refused = browser.get(&asked("https://nowhere.example"));
    refused.assert_query("error", "invalid_target");
}

#[test]
fn a_nonce_comes_back_byte_for_byte_and_only_when_sent() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let (long, ascii) = ("\u{1f600}".repeat(1_024), "n".repeat(1_024));
    let id_token = |code: &str| {
        let tokens = issued(&redeem(&gatepost, code));
        verified(&gatepost, text(&tokens, "id_token")).1
    };
    let odd = ["a b+c%20&d=e#\"\\<>'", "\u{e9}\u{301} \u{202e}\u{4e2d}"];
    for nonce in [odd[0], odd[1], &ascii, &long] {
        let answer = browser.get(&request_of("conf1", &[("nonce", nonce)]));
        // Sealed, such a code is longer than a code may be, unless the nonce is short in bytes as
        // well.
        let Some(code) = answer.query().remove("code") else {
            assert_eq!(answer.query()["error"].as_str(), "invalid_request");
            assert!(nonce.len() > 1_024);
            continue;
        };
        assert_eq!(id_token(&code)["nonce"], nonce);
    }
    let code = code(&mut browser, &request_of("conf1", &[("nonce", "")]));
    assert_eq!(id_token(&code).get("nonce"), None);
}

#[test]
fn tokens_are_signed_with_the_algorithm_the_client_registered() {
    let registered = |id: &str, access: &str| json!({"id_token_signed_response_alg": id, "access_token_signed_response_alg": access});
    let clients = [
        ("rs", registered("RS256", "ES256")),
        ("es", registered("ES256", "EdDSA")),
        ("ed", registered("EdDSA", "RS256")),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    for (client_id, registration) in &clients {
        let code = code(&mut browser, &request_of(client_id, &[]));
        let response = issued(&redeem_with(&gatepost, client_id, &code, &[]));
        let (header, id) = verified(&gatepost, text(&response, "id_token"));
        let alg = text(registration, "id_token_signed_response_alg");
        assert_eq!(header["alg"], alg);
        let access_token = text(&response, "access_token");
        assert_eq!(id["at_hash"], half_hash(alg, access_token), "{alg}");
        let (header, _) = verified(&gatepost, access_token);
        let alg = text(registration, "access_token_signed_response_alg");
        assert_eq!(header["alg"], alg);
        userinfo(&gatepost, text(&response, "access_token")).assert_status_for(client_id, 200);
    }
}

#[test]
fn a_client_shapes_its_tokens_by_its_registration() {
    let shaped = json!({
        "access_token_lifetime": 120, "id_token_lifetime": 60, "always_include_user_claims_in_id_token": true,
        "claims": {"department": "sales", "role": "robot"}
    });
    let by_reference = json!({"access_token_type": "reference", "claims": {"department": "sales"}});
    let registered = with_clients(document(), &[("shaped", shaped), ("byref", by_reference)]);
    let gatepost = Gatepost::start_with(&registered, &[("GATEPOST_SCOPE_CLAIM", "array")]);
    let mut browser = signed_in(&gatepost);
    let scope = "openid profile email roles stock.read";
    let response = tokens(&gatepost, &mut browser, "shaped", scope);
    assert_eq!(response["expires_in"], 120);
    let (_, access) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(access["scope"], json!(Vec::from_iter(scope.split(' '))));
    assert_eq!(access["department"], "sales");
    assert_eq!(access["role"], json!(["robot"]));
    assert_eq!(lifetime(&access), 120);
    let (_, id) = verified(&gatepost, text(&response, "id_token"));
    assert_eq!(lifetime(&id), 60);
    assert_eq!(id["name"], "Alice Smith");
    assert_eq!(id["email_verified"], true);
    assert_eq!(id["role"], json!(["admin"]));
    assert_eq!(id.get("department"), None);
    // The user's own value goes before the client's.
    let response = tokens(&gatepost, &mut browser, "shaped", "openid orders.read");
    let (_, access) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(access["role"], json!(["admin"]));
    userinfo(&gatepost, text(&response, "access_token")).assert_status(200);

    let scope = "openid profile orders.read";
    let response = tokens(&gatepost, &mut browser, "byref", scope);
    let reference = text(&response, "access_token");
    let is_handle = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    assert!(reference.starts_with("gpa_"), "{reference}");
    assert!(reference.bytes().all(is_handle), "{reference}");
    let (_, id) = verified(&gatepost, text(&response, "id_token"));
    assert_eq!(id["at_hash"], half_hash("RS256", reference));
    assert_eq!(userinfo(&gatepost, reference).json()["name"], "Alice Smith");
}

#[test]
fn a_resource_narrows_the_token_and_a_foreign_one_leaves_the_code_usable() {
    const ORDERS: &str = "https://orders.example";
    const STOCK: &str = "https://stock.example";
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let scope = ("scope", "openid orders.read stock.read");
    let open = code(&mut browser, &request_of("conf1", &[scope]));
    let bound = request_of("conf1", &[scope, ("resource", ORDERS)]);
    let bound = code(&mut browser, &bound);
    let [orders, stock, elsewhere] = [ORDERS, STOCK, "https://elsewhere.example"];
    let (below, part) = ("https://orders.example/x", "https://orders.example#f");
    for (code, resources, error) in [
        (&open, &[elsewhere][..], "invalid_target"),
        (&open, &[orders, elsewhere], "invalid_target"),
        (&open, &["orders"], "invalid_target"),
        (&open, &[below], "invalid_target"),
        (&open, &[part], "invalid_target"),
        (&open, &[orders; 11], "invalid_request"),
        (&bound, &[stock], "invalid_target"),
        (&bound, &[orders, stock], "invalid_target"),
    ] {
        let resources = resources.iter().map(|resource| ("resource", *resource));
        let resources = Vec::from_iter(resources);
        let answer = redeem_with(&gatepost, "conf1", code, &resources);
        answer.assert_refused(400, error, &format!("{resources:?}"));
    }
    assert_eq!(gatepost.database.count("grants"), 0);
    let twice = [("resource", STOCK), ("resource", STOCK)];
    let narrowed = issued(&redeem_with(&gatepost, "conf1", &open, &twice));
    let (_, claims) = verified(&gatepost, text(&narrowed, "access_token"));
    assert_eq!(claims["aud"], json!(STOCK));
    assert_eq!(claims["scope"], "openid stock.read");
    assert_eq!(narrowed["scope"], "openid stock.read");
    let bound = issued(&redeem(&gatepost, &bound));
    let (_, claims) = verified(&gatepost, text(&bound, "access_token"));
    assert_eq!(claims["aud"], json!(ORDERS));
    assert_eq!(claims["scope"], "openid orders.read");
}

#[test]
fn claims_asked_for_by_name_reach_the_tokens_they_were_asked_for() {
    let by_reference = json!({"access_token_type": "reference"});
    let document = with_clients(document(), &[("byref", by_reference)]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let claims = json!({
        "userinfo": {"email": null, "phone_number": null, "iss": null},
        "id_token": {"name": {"essential": true}, "role": null, "aud": null, "address": null}
    })
    .to_string();
    for client_id in ["conf1", "byref"] {
        let asked = [("scope", "openid"), ("claims", &*claims)];
        let code = code(&mut browser, &request_of(client_id, &asked));
        let response = issued(&redeem_with(&gatepost, client_id, &code, &[]));
        let (_, id) = verified(&gatepost, text(&response, "id_token"));
        assert_eq!(id["name"], "Alice Smith");
        assert_eq!(id["role"], json!(["admin"]));
        assert_eq!(id["aud"], json!(client_id));
        assert_eq!(id.get("email"), None);
        assert_eq!(id.get("address"), None);
        let told = userinfo(&gatepost, text(&response, "access_token")).json();
        assert_eq!(names(&told), vec!["email", "sub"]);
        assert_eq!(told["email"], "alice@example.com");
    }
}

#[test]
fn the_tenant_and_the_provider_that_were_asked_for_are_named() {
    let mut document = with_clients(document(), &[("acme-shop", json!({"tenants": ["acme"]}))]);
    document["tenants"] = json!([{"name": "acme", "display_name": "ACME Ltd"}, {"name": "other", "display_name": "Other"}]);
    let users = document["users"].as_array_mut().unwrap();
    users.push(json!({"username": "alice", "tenant": "acme", "password": "another long password", "claims": {}}));
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = gatepost.browser();
    let wishes = [("acr_values", "idp:local"), ("scope", "openid")];
    let asked = request_of("acme-shop", &wishes);
    let page = browser.visit(&asked);
    let other = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    other.assert_status_for("the alice without a tenant", 200);
    let answer = sign_in(&mut browser, &page, "alice", "another long password");
    let response = redeem_with(&gatepost, "acme-shop", &answer.code(), &[]);
    let response = issued(&response);
    let (_, id) = verified(&gatepost, text(&response, "id_token"));
    assert_eq!(id["tenant"], "acme");
    assert_eq!(id["idp"], "local");
    let (_, access) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(access["tenant"], "acme");
    assert_eq!(access.get("idp"), None);
    userinfo(&gatepost, text(&response, "access_token")).assert_status(200);
    // A client that may no longer have users of that tenant gets none of their tokens.
    let late = code(&mut browser, &asked);
    client(&mut document, "acme-shop")["tenants"] = json!(["other"]);
    gatepost.apply(&document);
    let answer = redeem_with(&gatepost, "acme-shop", &late, &[]);
    answer.assert_refused(400, "invalid_grant", "tenant taken away");
}

#[test]
fn an_access_token_of_typ_jwt_is_one_all_the_same_and_never_a_hint() {
    let [old, own] = ["JWT", "at+jwt"].map(|typ| json!({"access_token_typ": typ}));
    let registered = with_clients(document(), &[("old", old), ("own", own)]);
    let mut gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let mut issued_to = |gatepost: &Gatepost, client_id: &str| {
        let scope = "openid profile orders.read";
        let tokens = tokens(gatepost, &mut browser, client_id, scope);
        let (header, _) = verified(gatepost, text(&tokens, "access_token"));
        (tokens, header["typ"].as_str().unwrap().to_owned())
    };
    let (tokens, typ) = issued_to(&gatepost, "old");
    assert_eq!(typ, "JWT");
    let (access_token, id_token) = (text(&tokens, "access_token"), text(&tokens, "id_token"));
    let is_active = |token: &str| {
        let told = gatepost.post_as("old", "/connect/introspect", &[("token", token)]);
        issued(&told)["active"] == true
    };
    // A post ends nothing by itself.
    let hinted = |token: &str| {
        let form = [("id_token_hint", token)];
        gatepost.post("/connect/endsession", &[], &form).status
    };
    userinfo(&gatepost, access_token).assert_status(200);
    assert!(is_active(access_token));
    assert_eq!(hinted(access_token), 400);
    userinfo(&gatepost, id_token).assert_status(401);
    assert!(!is_active(id_token));
    assert_eq!(hinted(id_token), 303);
    let hint =
        |token: &str| authorize_path("old", RP1, &[("id_token_hint", token), ("prompt", "none")]);
    let refused = gatepost.get(&hint(access_token));
    let why = "The id_token_hint is not an ID token of this issuer.";
    refused.assert_query("error_description", why);
    let silent = gatepost.get(&hint(id_token));
    silent.assert_query("error", "login_required");
    let form = [("token", access_token)];
    let revoked = gatepost.post_as("old", "/connect/revocation", &form);
    revoked.assert_status(200);
    userinfo(&gatepost, access_token).assert_status(401);
    assert!(!is_active(access_token));
    // The installation's own word is for clients that say nothing.
    assert_eq!(issued_to(&gatepost, "conf1").1, "at+jwt");
    gatepost.stop();
    gatepost.set("GATEPOST_ACCESS_TOKEN_TYP", "JWT");
    gatepost.serve();
    assert_eq!(issued_to(&gatepost, "conf1").1.as_str(), "JWT");
    assert_eq!(issued_to(&gatepost, "own").1.as_str(), "at+jwt");
}
