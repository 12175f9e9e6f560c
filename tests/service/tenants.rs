//! Tenants and identity providers by name: whom a sign-in is for, what a session of another is
//! worth, and that what was given within a tenant ends where the client no longer has it. The page
//! and its form: `authorize_sign_in.rs`.

use serde_json::{Value, json};

use crate::support::flow::{asks_to_sign_in, authorize_path, code, decode_jwt, sign_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1};
use crate::support::http::Browser;
use crate::support::offline::{CONF1, access, client, document, refresh};

const OFFLINE: &str = "openid profile offline_access";

/// Two tenants; an alice in `acme`, another without a tenant.
fn registered() -> Value {
    let mut registered = document();
    registered["tenants"] =
        json!([{"name": "acme", "display_name": "ACME Ltd"}, {"name": "globex"}]);
    let of_acme = json!({"username": "alice", "password": BOB_PASSWORD, "tenant": "acme"});
    registered["users"].as_array_mut().unwrap().push(of_acme);
    registered
}

fn path(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

fn signed_in_at(gatepost: &Gatepost, tenant: &str, password: &str) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[("acr_values", tenant)]));
    sign_in(&mut browser, &page, "alice", password).assert_carries_for(tenant, "code");
    browser
}

fn silently(browser: &mut Browser, acr_values: &str) -> Result<String, String> {
    let mut answer = browser
        .get(&path(&[("acr_values", acr_values), ("prompt", "none")]))
        .query();
    answer
        .remove("code")
        .ok_or_else(|| answer.remove("error").unwrap())
}

#[test]
fn a_session_counts_for_its_own_tenant_alone() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut of_acme = signed_in_at(&gatepost, "tenant:acme", BOB_PASSWORD);
    let mut of_none = signed_in_at(&gatepost, "", ALICE_PASSWORD);
    for (browser, own) in [(&mut of_acme, "tenant:acme"), (&mut of_none, "")] {
        for acr_values in ["tenant:acme", "tenant:globex", ""] {
            let answer = silently(browser, acr_values);
            if acr_values == own {
                assert!(answer.is_ok(), "{own}");
            } else {
                assert_eq!(
                    answer,
                    Err(String::from("login_required")),
                    "{own} for {acr_values}"
                );
                assert!(asks_to_sign_in(
                    &browser.visit(&path(&[("acr_values", acr_values)]))
                ));
            }
        }
    }
    // The token says where, and who signs in elsewhere leaves the first session.
    let code = code(
        &mut of_acme,
        &path(&[("acr_values", "tenant:acme 1"), ("scope", OFFLINE)]),
    );
    let tokens = CONF1.redeem(&gatepost, &code).json();
    assert_eq!(
        decode_jwt(tokens["id_token"].as_str().unwrap()).1["tenant"],
        "acme"
    );
    assert_eq!(decode_jwt(access(&tokens)).1["tenant"], "acme");
    let again = CONF1.refresh(&gatepost, refresh(&tokens)).json();
    assert_eq!(
        decode_jwt(again["id_token"].as_str().unwrap()).1["tenant"],
        "acme"
    );
    let page = of_acme.visit(&path(&[]));
    assert!(asks_to_sign_in(&page) && !page.text().contains("ACME"));
    let answer = sign_in(&mut of_acme, &page, "alice", ALICE_PASSWORD);
    let plain = CONF1.redeem(&gatepost, &answer.query()["code"]).json();
    let subject = |tokens: &Value| decode_jwt(tokens["id_token"].as_str().unwrap()).1;
    assert_ne!(subject(&plain)["sub"], subject(&tokens)["sub"]);
    assert_eq!(subject(&plain).get("tenant"), None);
    assert_eq!(
        silently(&mut of_acme, "tenant:acme"),
        Err(String::from("login_required"))
    );
}

#[test]
fn what_was_given_within_a_tenant_ends_where_the_client_has_it_no_more() {
    let whole = registered();
    let gatepost = Gatepost::start_with(&whole, &[]);
    let of_tenant = |names: Value| {
        let mut document = whole.clone();
        client(&mut document, "conf1")["tenants"] = names;
        document
    };
    let mut of_acme = signed_in_at(&gatepost, "tenant:acme", BOB_PASSWORD);
    let mut of_none = signed_in_at(&gatepost, "", ALICE_PASSWORD);
    let at_acme = [("acr_values", "tenant:acme"), ("scope", OFFLINE)];
    let acme = CONF1.tokens_with(&gatepost, &mut of_acme, &at_acme);
    let none = CONF1.tokens(&gatepost, &mut of_none, OFFLINE);
    let acme_code = CONF1.code(&mut of_acme, &at_acme);
    let none_code = CONF1.code(&mut of_none, &[]);
    // One tenant among several: users without one stay, others go.
    gatepost.apply(&of_tenant(json!(["globex", "acme"])));
    let acme = CONF1.refresh(&gatepost, refresh(&acme)).json();
    let none = CONF1.refresh(&gatepost, refresh(&none)).json();
    // The only tenant: who has none belongs to the client no more.
    gatepost.apply(&of_tenant(json!(["acme"])));
    CONF1
        .refresh(&gatepost, refresh(&none))
        .assert_member("error", "invalid_grant");
    CONF1
        .redeem(&gatepost, &none_code)
        .assert_member("error", "invalid_grant");
    let acme = CONF1.refresh(&gatepost, refresh(&acme)).json();
    assert_eq!(userinfo(&gatepost, access(&acme)).status, 200);
    gatepost.apply(&of_tenant(json!(["globex"])));
    CONF1
        .refresh(&gatepost, refresh(&acme))
        .assert_member("error", "invalid_grant");
    CONF1
        .redeem(&gatepost, &acme_code)
        .assert_member("error", "invalid_grant");
    assert_eq!(
        silently(&mut of_acme, "tenant:acme"),
        Err(String::from("invalid_request"))
    );
    assert_eq!(
        silently(&mut of_acme, ""),
        Err(String::from("login_required")),
        "globex is the only one now"
    );
}

#[test]
fn a_user_name_is_told_where_it_is_unique() {
    let mut registered = registered();
    let gatepost = Gatepost::start_with(&registered, &[]);
    let [mut of_acme, mut of_none] = [
        signed_in_at(&gatepost, "tenant:acme", BOB_PASSWORD),
        signed_in_at(&gatepost, "", ALICE_PASSWORD),
    ];
    let told = |browser: &mut Browser, tenant: &str| {
        let changes = [("acr_values", tenant), ("scope", "openid profile")];
        let tokens = CONF1.tokens_with(&gatepost, browser, &changes);
        let claims = userinfo(&gatepost, access(&tokens)).json();
        claims.get("preferred_username").cloned()
    };
    let tested = || gatepost.run_well(&["client", "test", "conf1"], "");
    let line = "preferred_username is the user name of people without a tenant";
    let alice = Some(json!("alice"));
    for tenants in [json!(null), json!(["acme", "globex"])] {
        client(&mut registered, "conf1")["tenants"] = tenants;
        gatepost.apply(&registered);
        assert_eq!(told(&mut of_acme, "tenant:acme"), None);
        assert_eq!(told(&mut of_none, ""), alice);
        assert!(tested().contains(line), "{}", tested());
    }
    client(&mut registered, "conf1")["tenants"] = json!(["acme"]);
    gatepost.apply(&registered);
    assert_eq!(told(&mut of_acme, "tenant:acme"), alice);
    assert!(!tested().contains(line), "{}", tested());
    client(&mut registered, "conf1")["scope"] = json!("openid email offline_access");
    client(&mut registered, "conf1")["tenants"] = json!(null);
    gatepost.apply(&registered);
    assert!(
        !tested().contains(line),
        "it has no such claim: {}",
        tested()
    );
}

#[test]
fn a_session_of_another_provider_than_the_one_asked_for_is_none() {
    let mut registered = document();
    registered["identity_providers"] = json!([
        {"name": "corp", "issuer": "https://corp.example", "client_id": "gatepost", "client_secret": "x", "scope": "openid"},
        {"name": "former", "issuer": "https://former.example", "client_id": "gatepost", "client_secret": "x",
         "scope": "openid", "enabled": false}
    ]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in_at(&gatepost, "", ALICE_PASSWORD);
    for (acr_values, expected) in [
        ("idp:local", Ok(())),
        ("idp:corp", Err("login_required")),
        // Dropped: known to nobody, or switched off.
        ("idp:former", Ok(())),
        ("idp:nope", Ok(())),
        ("idp:nope idp:corp", Err("login_required")),
    ] {
        let answer = silently(&mut browser, acr_values);
        assert_eq!(
            answer.map(drop),
            expected.map_err(String::from),
            "{acr_values}"
        );
    }
    gatepost.run_sql("UPDATE sessions SET identity_provider = 'corp'");
    assert!(silently(&mut browser, "").is_ok() && silently(&mut browser, "idp:corp").is_ok());
    assert_eq!(
        silently(&mut browser, "idp:local"),
        Err(String::from("login_required"))
    );
    let page = browser.visit(&path(&[("acr_values", "idp:local")]));
    assert!(asks_to_sign_in(&page), "the password form alone");
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(answer.query().contains_key("code"));
    // A provider that was switched off vouches for nobody any more.
    gatepost.run_sql("UPDATE sessions SET identity_provider = 'former'");
    assert_eq!(
        silently(&mut browser, ""),
        Err(String::from("login_required"))
    );
}
