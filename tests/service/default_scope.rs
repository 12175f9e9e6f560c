//! `default_scope`: what a client gets of its scopes without asking for them.

use serde_json::{Value, json};

use crate::support::device;
use crate::support::flow::{
    access_token, authorize_path, basic, code, decode_jwt, issued, redeem_with, signed_in, tokens,
    userinfo, with_clients,
};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::Browser;
use crate::support::shared::Shared;

const DEFAULT: &str = "profile roles orders.read";

fn gatepost() -> Shared {
    let scope = "openid profile email roles orders.read stock.read offline_access";
    let default = json!({"scope": scope, "default_scope": DEFAULT, "grant_types": ["authorization_code", "refresh_token", "client_credentials"]});
    let mut asking = default.clone();
    asking["require_consent"] = json!(true);
    let implicit = json!({
        "scope": scope, "default_scope": DEFAULT, "grant_types": ["authorization_code", "implicit", "refresh_token"],
        "response_types": ["code", "id_token", "token", "id_token token"], "allow_access_tokens_via_browser": true,
    });
    let clients = [
        ("default", default),
        ("asking", asking),
        ("implicit", implicit),
    ];
    Gatepost::shared_with(&with_clients(document(), &clients), &[])
}

/// The scope of the tokens that a code is redeemed for, and what they are.
fn scope_for(gatepost: &Gatepost, browser: &mut Browser, asked: &[(&str, &str)]) -> Value {
    let code = code(browser, &authorize_path("default", RP1, asked));
    issued(&redeem_with(gatepost, "default", &code, &[]))
}

#[test]
fn a_default_scope_is_added_to_what_a_request_names() {
    let gatepost = gatepost();
    let mut browser = signed_in(&gatepost);
    let asked = scope_for(&gatepost, &mut browser, &[("scope", "openid email")]);
    assert_eq!(asked["scope"], "openid email profile roles orders.read");
    let token = asked["access_token"].as_str().unwrap();
    assert_eq!(decode_jwt(token).1["aud"], "https://orders.example");
    let told = userinfo(&gatepost, token).json();
    assert_eq!(told["name"], "Alice Smith");
    assert_eq!(told["role"], json!(["admin"]));
    // Without `openid` there is no claim of a user to add.
    let asked = scope_for(&gatepost, &mut browser, &[("scope", "stock.read")]);
    assert_eq!(asked["scope"], "stock.read orders.read");
    // A request without scope gets what needs no ID token.
    for scope in ["", " "] {
        let asked = scope_for(&gatepost, &mut browser, &[("scope", scope)]);
        assert_eq!(asked["scope"], "orders.read", "{scope:?}");
        assert!(asked.get("id_token").is_none());
    }
    // Where `resource` decides, nothing is added.
    let stock = [("scope", ""), ("resource", "https://stock.example")];
    let asked = scope_for(&gatepost, &mut browser, &stock);
    assert_eq!(asked["scope"], "stock.read");
    // A refresh asks for less than the grant as ever.
    let asked = [("scope", "openid offline_access")];
    let asked = scope_for(&gatepost, &mut browser, &asked);
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", asked["refresh_token"].as_str().unwrap()),
        ("scope", "openid"),
    ];
    let authorization = basic("default", CONF1_SECRET);
    let authorization = [("Authorization", authorization.as_str())];
    let refreshed = issued(&gatepost.post("/connect/token", &authorization, &refresh));
    assert_eq!(refreshed["scope"], "openid");
    // The token endpoint gives all allowed scopes where none is named, as without a default.
    let own = [("grant_type", "client_credentials")];
    let own = issued(&gatepost.post("/connect/token", &authorization, &own));
    assert_eq!(own["scope"], "orders.read stock.read");
}

#[test]
fn without_a_default_scope_a_request_gets_what_it_names() {
    let gatepost = gatepost();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid");
    assert_eq!(userinfo(&gatepost, &token).json().get("name"), None);
    let named = tokens(&gatepost, &mut browser, "conf1", "openid");
    assert_eq!(named["scope"], "openid");
    for scope in ["", " "] {
        let answer = browser.get(&authorize_path("conf1", RP1, &[("scope", scope)]));
        assert_eq!(answer.query()["error"], "invalid_scope", "{scope:?}");
    }
}

#[test]
fn a_response_type_gets_those_of_the_default_scope_that_it_takes() {
    let gatepost = gatepost();
    let mut browser = signed_in(&gatepost);
    let mut fragment = |response_type: &str, scope: &str| {
        let asked = [("response_type", response_type), ("scope", scope)];
        let answer = browser.get(&authorize_path("implicit", RP1, &asked));
        answer.fragment()
    };
    let alone = fragment("id_token", "openid");
    let claims = decode_jwt(&alone["id_token"]).1;
    assert_eq!(claims["name"], "Alice Smith");
    let alone = fragment("token", "stock.read");
    assert_eq!(alone["scope"], "stock.read orders.read");
    let both = fragment("id_token token", "openid");
    assert_eq!(both["scope"], "openid profile roles orders.read");
    assert_eq!(fragment("id_token", " ")["error"], "invalid_scope");
}

#[test]
fn people_are_asked_about_the_default_scope_and_can_leave_it_out() {
    let gatepost = gatepost();
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&authorize_path("asking", RP1, &[("scope", "openid")]));
    assert!(page.text().contains("Read orders"), "{}", page.text());
    let answer = browser.decide(&page, "allow", &["profile"], false);
    let code = &answer.query()["code"];
    let issued = issued(&redeem_with(&gatepost, "asking", code, &[]));
    assert_eq!(issued["scope"], "openid profile");
}

#[test]
fn a_device_gets_the_default_scope_with_what_it_names() {
    let further = [("kiosk", json!({"default_scope": DEFAULT}))];
    let gatepost = Gatepost::start_with(&device::with_devices(&further), &[]);
    let mut browser = gatepost.browser();
    let shown = device::start(&gatepost, "kiosk", &[("scope", "openid")]);
    let page = device::reach_decision(&mut browser, device::user_code(&shown));
    let ticked: Vec<&str> = DEFAULT.split(' ').collect();
    device::decide(&mut browser, &page, "allow", &ticked);
    let polled = issued(&device::poll(&gatepost, "kiosk", &shown));
    assert_eq!(polled["scope"], "openid profile roles orders.read");
    // A device that names none gets all, as before.
    let shown = device::start(&gatepost, "kiosk", &[]);
    device::allow(&mut browser, &shown);
    let polled = issued(&device::poll(&gatepost, "kiosk", &shown));
    assert_eq!(polled["scope"], device::SCOPE);
}
