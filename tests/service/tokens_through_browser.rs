//! ID tokens and access tokens straight from the authorization endpoint: what they say, what they
//! are bound to, and for how long they live.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::claims::Members;
use crate::support::flow::{
    authorize_path, changed, issued, names, redeem_as, redeem_with, sign_in, signed_in, text,
    userinfo, with_clients, with_members,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::Browser;
use crate::support::jwt::{base64url, half_hash, verified};

const HYBRID: &str = "code id_token token";

fn registered() -> Value {
    let all = json!({
        "response_types": ["code", "id_token", "token", "id_token token", "code id_token", "code token", HYBRID],
        "grant_types": ["authorization_code", "implicit", "refresh_token"], "allow_access_tokens_via_browser": true,
        "scope": "openid profile email roles orders.read stock.read offline_access",
    });
    let with = |change: Value| with_members(all.clone(), &change);
    let clients = [
        ("all", all.clone()),
        ("reference", with(json!({"access_token_type": "reference"}))),
        (
            "always",
            with(json!({"always_include_user_claims_in_id_token": true})),
        ),
        (
            "EdDSA",
            with(json!({"id_token_signed_response_alg": "EdDSA"})),
        ),
        (
            "ES256",
            with(json!({"id_token_signed_response_alg": "ES256"})),
        ),
        ("short", with(json!({"access_token_lifetime": 4}))),
    ];
    with_clients(document(), &clients)
}

/// What a signed-in browser is given.
fn given(
    browser: &mut Browser,
    client_id: &str,
    response_type: &str,
    changes: &[(&str, &str)],
) -> BTreeMap<String, String> {
    let usual = [
        ("response_type", response_type),
        ("scope", "openid profile"),
        ("prompt", "none"),
    ];
    let path = authorize_path(client_id, RP1, &changed(&usual, changes));
    let (_, got) = browser.get(&path).response_to(RP1);
    let is_given = !got.contains_key("error");
    assert!(is_given, "{response_type} {changes:?}: {got:?}");
    got
}

fn active(gatepost: &Gatepost, client_id: &str, token: &str) -> Value {
    issued(&gatepost.post_as(client_id, "/connect/introspect", &[("token", token)]))
}

#[test]
fn an_id_token_is_bound_to_what_travels_with_it() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (client_id, alg) in [
        ("all", "RS256"),
        ("EdDSA", "EdDSA"),
        ("ES256", "ES256"),
        ("reference", "RS256"),
    ] {
        for response_type in ["id_token", "id_token token", "code id_token", HYBRID] {
            let got = given(&mut browser, client_id, response_type, &[]);
            let (header, claims) = verified(&gatepost, &got["id_token"]);
            assert_eq!(header["alg"], json!(alg));
            assert_eq!(header["typ"], "JWT");
            let hash = |name: &str| got.get(name).map(|text| json!(half_hash(alg, text)));
            let case = format!("{client_id} {response_type}");
            for (name, of) in [("at_hash", "access_token"), ("c_hash", "code")] {
                assert_eq!(claims.get(name).cloned(), hash(of), "{case} {name}");
            }
            assert_eq!(claims["nonce"], "the-nonce");
            assert_eq!(claims["aud"], json!(client_id));
            assert_eq!(claims["iss"], gatepost.base_url);
            let lifetime = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
            assert_eq!(lifetime, 300);
            assert_eq!(claims["amr"], json!(["pwd"]));
            assert_eq!(claims["acr"], "1");
            assert!(claims["auth_time"].as_i64().unwrap() <= claims["iat"].as_i64().unwrap());
            assert!(!text(&claims, "sid").is_empty());
        }
    }
}

#[test]
fn both_id_tokens_of_a_hybrid_answer_name_the_same_sign_in() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for response_type in ["code id_token", HYBRID] {
        let front = given(&mut browser, "all", response_type, &[]);
        let tokens = issued(&redeem_with(&gatepost, "all", &front["code"], &[]));
        let (_, front) = verified(&gatepost, &front["id_token"]);
        let (_, back) = verified(&gatepost, text(&tokens, "id_token"));
        for name in "iss sub aud nonce sid auth_time amr acr".split(' ') {
            assert_eq!(front[name], back[name], "{name}");
        }
        assert_eq!(back.get("c_hash"), None, "only beside the code");
        let at_hash = half_hash("RS256", text(&tokens, "access_token"));
        assert_eq!(back["at_hash"], at_hash);
    }
}

#[test]
fn scope_claims_are_in_an_id_token_only_where_nothing_else_can_tell_them() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (client_id, response_type) in [
        ("all", "id_token"),
        ("all", "id_token token"),
        ("all", "code id_token"),
        ("all", HYBRID),
        ("always", "id_token"),
        ("always", "id_token token"),
        ("always", "code id_token"),
        ("always", HYBRID),
    ] {
        let told = client_id == "always" || response_type == "id_token";
        let scope = [("scope", "openid email roles")];
        let got = given(&mut browser, client_id, response_type, &scope);
        let (_, claims) = verified(&gatepost, &got["id_token"]);
        let case = format!("{client_id} {response_type}: {claims}");
        let has_email = claims.get("email").is_some() && claims["email_verified"] == true;
        assert_eq!(has_email, told, "{case}");
        let has_role = claims.get("role") == Some(&json!(["admin"]));
        assert_eq!(has_role, told, "{case}");
        assert_eq!(claims.get("name"), None, "{case}");
    }
}

#[test]
fn claims_asked_for_by_name_come_with_the_code_where_there_is_one() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let claims = r#"{"id_token":{"email":null},"userinfo":{"given_name":{"essential":true}}}"#;
    for (response_type, at_once) in [
        ("id_token", true),
        ("id_token token", true),
        ("code id_token", false),
        (HYBRID, false),
    ] {
        let asked = [("claims", claims), ("scope", "openid")];
        let got = given(&mut browser, "all", response_type, &asked);
        let (_, front) = verified(&gatepost, &got["id_token"]);
        let has_email = front.get("email").is_some();
        assert_eq!(has_email, at_once, "{response_type}: {front}");
        let for_userinfo = front.get("given_name");
        assert_eq!(for_userinfo, None, "{response_type}");
        if let Some(code) = got.get("code") {
            let tokens = issued(&redeem_with(&gatepost, "all", code, &[]));
            let (_, back) = verified(&gatepost, text(&tokens, "id_token"));
            assert_eq!(back["email"], "alice@example.com");
        }
        if let Some(token) = got.get("access_token") {
            let told = userinfo(&gatepost, token).json();
            assert_eq!(names(&told), ["given_name", "sub"], "{response_type}");
        }
    }
}

#[test]
fn an_access_token_through_the_browser_is_one_like_any_other() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let scope = "openid profile orders.read";
    for response_type in ["id_token token", "code token", HYBRID] {
        let got = given(&mut browser, "all", response_type, &[("scope", scope)]);
        let (header, claims) = verified(&gatepost, &got["access_token"]);
        assert_eq!(header["typ"], "at+jwt");
        assert_eq!(claims["client_id"], "all");
        assert_eq!(claims["scope"], json!(scope));
        assert_eq!(claims["aud"], "https://orders.example");
        assert_eq!(got["scope"].as_str(), scope);
        assert_eq!(claims["role"], json!(["admin"]));
        let told = userinfo(&gatepost, &got["access_token"]).json();
        told.assert_members("family_name given_name name preferred_username sub");
        let told = active(&gatepost, "all", &got["access_token"]);
        assert_eq!(told["active"], true, "{told}");
        assert_eq!(told["sid"], claims["sid"], "{told}");
    }
    // For resources alone: there is a user, and nothing for userinfo.
    let scope = ("scope", "orders.read stock.read");
    let got = given(&mut browser, "all", "token", &[scope, ("nonce", "")]);
    let (_, claims) = verified(&gatepost, &got["access_token"]);
    let audience = ["https://orders.example", "https://stock.example"];
    assert_eq!(claims["aud"], json!(audience));
    assert!(claims["sub"].is_string(), "{claims}");
    assert!(claims["auth_time"].is_number(), "{claims}");
    assert_eq!(userinfo(&gatepost, &got["access_token"]).status, 403);
    let resource = ("resource", "https://stock.example");
    let got = given(&mut browser, "all", "token", &[scope, resource]);
    let (_, claims) = verified(&gatepost, &got["access_token"]);
    assert_eq!(claims["aud"], "https://stock.example");
    assert_eq!(claims["scope"], "stock.read");
    assert_eq!(got["scope"], "stock.read");

    let got = given(&mut browser, "reference", "id_token token", &[]);
    assert!(got["access_token"].starts_with("gpa_"));
    userinfo(&gatepost, &got["access_token"]).assert_member("name", "Alice Smith");
}

#[test]
fn each_has_a_name_of_its_own_and_runs_out() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let mut jtis = BTreeSet::new();
    for _ in 0..8 {
        let got = given(&mut browser, "short", "id_token token", &[]);
        assert_eq!(got["expires_in"], "4");
        let (_, claims) = verified(&gatepost, &got["access_token"]);
        jtis.insert(text(&claims, "jti").to_owned());
    }
    // 96 random bits and four epochs, and no grant.
    assert!(jtis.len() == 8, "{jtis:?}");
    let are_whole = jtis.iter().all(|jti| base64url(jti).len() == 44);
    assert!(are_whole, "{jtis:?}");
    let token = given(&mut browser, "short", "id_token token", &[])["access_token"].clone();
    assert_eq!(userinfo(&gatepost, &token).status, 200);
    std::thread::sleep(std::time::Duration::from_millis(4_100));
    assert_eq!(userinfo(&gatepost, &token).status, 401);
}

#[test]
fn offline_access_means_nothing_without_a_code_and_saves_no_token_of_the_browser() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let offline = [("scope", "openid offline_access")];
    let got = given(&mut browser, "all", "id_token token", &offline);
    assert_eq!(got["scope"], "openid");
    let got = given(&mut browser, "all", HYBRID, &offline);
    let tokens = issued(&redeem_with(&gatepost, "all", &got["code"], &[]));
    assert_eq!(tokens["scope"], "openid offline_access");
    assert_eq!(userinfo(&gatepost, &got["access_token"]).status, 200);
    let page = browser.get("/logout");
    browser.submit_to("/logout", &page, &[("decision", "sign_out")]);
    // The grant may stay while the person is away; what came through the browser ends with the
    // session.
    userinfo(&gatepost, text(&tokens, "access_token")).assert_status(200);
    assert_eq!(userinfo(&gatepost, &got["access_token"]).status, 401);
    let refresh_token = ("refresh_token", text(&tokens, "refresh_token"));
    let form = [("grant_type", "refresh_token"), refresh_token];
    gatepost.token("all", &form).assert_status(200);
}

#[test]
fn a_replayed_code_does_not_take_the_browsers_token_along_but_a_revocation_does() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for client_id in ["all", "reference"] {
        let got = given(&mut browser, client_id, HYBRID, &[]);
        let other = given(&mut browser, client_id, HYBRID, &[]);
        let token = &got["access_token"];
        let redeem = || redeem_as(&gatepost, (client_id, CONF1_SECRET), RP1, &got["code"]);
        let tokens = issued(&redeem());
        assert_eq!(redeem().json()["error"], "invalid_grant");
        userinfo(&gatepost, text(&tokens, "access_token")).assert_status(401);
        // It was handed out by the user's own browser, not for the code.
        assert_eq!(userinfo(&gatepost, token).status, 200);
        gatepost.post_as(client_id, "/connect/revocation", &[("token", token)]);
        assert_eq!(userinfo(&gatepost, token).status, 401);
        let told = active(&gatepost, client_id, token);
        assert_eq!(told, json!({"active": false}));
        assert_eq!(userinfo(&gatepost, &other["access_token"]).status, 200);
    }
}

#[test]
fn right_after_a_revocation_a_new_sign_in_gets_tokens_that_live() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for _ in 0..3 {
        let before = given(&mut browser, "all", HYBRID, &[])["access_token"].clone();
        gatepost.run_well(&["user", "revoke", "alice"], "");
        assert_eq!(userinfo(&gatepost, &before).status, 401);
        let page = browser.visit(&authorize_path("all", RP1, &[("response_type", HYBRID)]));
        let got = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).fragment();
        let told = userinfo(&gatepost, &got["access_token"]);
        told.assert_status_for("dead by the mark that came before it", 200);
        let (_, claims) = verified(&gatepost, &got["id_token"]);
        let is_later = claims["iat"].as_i64() >= claims["auth_time"].as_i64();
        assert!(is_later, "{claims}");
    }
}

#[test]
fn signing_in_as_someone_else_ends_the_first_ones_tokens() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let alices = given(&mut browser, "all", "id_token token", &[])["access_token"].clone();
    let anew = [("response_type", "id_token token"), ("prompt", "login")];
    let anew = authorize_path("all", RP1, &anew);
    let page = browser.visit(&anew);
    let again = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).fragment();
    userinfo(&gatepost, &alices).assert_status_for("the same person, the same session", 200);
    let sid = |token: &str| verified(&gatepost, token).1["sid"].clone();
    assert_eq!(sid(&again["access_token"]), sid(&alices));
    let page = browser.visit(&anew);
    let bobs = sign_in(&mut browser, &page, "bob", BOB_PASSWORD).fragment();
    for token in [&alices, &again["access_token"]] {
        assert_eq!(userinfo(&gatepost, token).status, 401);
    }
    assert_eq!(userinfo(&gatepost, &bobs["access_token"]).status, 200);
}
