//! The device grant in steps: what the device does, and what its user does with a browser.

use serde_json::{Value, json};

use super::flow::{changed, sign_in, with_clients};
use super::gatepost::{self, ALICE_PASSWORD, CONF1_SECRET, Gatepost};
use super::http::{Answer, Browser};

pub const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
pub const SCOPE: &str = "openid profile roles orders.read orders.write offline_access";
/// Public: most devices are.
pub const TV: &str = "tv";
/// Confidential, with the secret of `conf1`.
pub const BOX: &str = "box";

/// The usual document with two clients on devices.
pub fn document() -> Value {
    with_devices(&[])
}

/// The same with further clients, each as the television with changes.
pub fn with_devices(further: &[(&str, Value)]) -> Value {
    let public = json!({
        "client_name": "Television", "grant_types": [DEVICE_CODE, "refresh_token"], "response_types": [], "redirect_uris": [],
        "scope": SCOPE, "secrets": [], "token_endpoint_auth_method": "none", "allowed_cors_origins": ["https://tv.example"]
    });
    let changed = |changes: &Value| {
        let mut client = public.clone();
        for (name, value) in changes.as_object().unwrap() {
            client[name] = value.clone();
        }
        client
    };
    let confidential = json!({
        "client_name": "Set-top box", "secrets": [{"value": CONF1_SECRET}], "token_endpoint_auth_method": "client_secret_basic",
        "access_token_type": "reference"
    });
    let mut clients = vec![(TV, public.clone()), (BOX, changed(&confidential))];
    clients.extend(
        further
            .iter()
            .map(|(client_id, changes)| (*client_id, changed(changes))),
    );
    let mut document = with_clients(gatepost::document(), &clients);
    for client in document["clients"].as_array_mut().unwrap() {
        if client["token_endpoint_auth_method"] == "none" {
            client.as_object_mut().unwrap().remove("secrets");
        }
    }
    document
}

/// Posts as a client: the box authenticates, everybody else names itself.
pub fn post(gatepost: &Gatepost, path: &str, client_id: &str, form: &[(&str, &str)]) -> Answer {
    if client_id == BOX {
        return gatepost.post_as(BOX, path, form);
    }
    gatepost.post(path, &[], &[form, &[("client_id", client_id)]].concat())
}

/// A device authorization request.
pub fn ask(gatepost: &Gatepost, client_id: &str, form: &[(&str, &str)]) -> Answer {
    post(gatepost, "/connect/deviceauthorization", client_id, form)
}

/// One that must succeed.
pub fn start(gatepost: &Gatepost, client_id: &str, form: &[(&str, &str)]) -> Value {
    let answer = ask(gatepost, client_id, form);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// A poll.
pub fn poll(gatepost: &Gatepost, client_id: &str, device: &Value) -> Answer {
    poll_with(gatepost, client_id, device, &[])
}

/// A poll with changes.
pub fn poll_with(
    gatepost: &Gatepost,
    client_id: &str,
    device: &Value,
    changes: &[(&str, &str)],
) -> Answer {
    let usual = [
        ("grant_type", DEVICE_CODE),
        ("device_code", device["device_code"].as_str().unwrap()),
    ];
    post(
        gatepost,
        "/connect/token",
        client_id,
        &changed(&usual, changes),
    )
}

/// Lets the interval of every device pass.
pub fn pass_the_interval(gatepost: &Gatepost) {
    gatepost
        .database
        .run("UPDATE device_authorizations SET polled_at = polled_at - interval '1 hour'");
}

/// The code a device shows.
pub fn user_code(device: &Value) -> &str {
    device["user_code"].as_str().unwrap()
}

/// Types a code; what comes next.
pub fn enter(browser: &mut Browser, code: &str) -> Answer {
    let page = browser.get("/device");
    send_code(browser, &page, code)
}

/// Sends the page that asks for the code.
pub fn send_code(browser: &mut Browser, page: &Answer, code: &str) -> Answer {
    browser.submit(page, &[("user_code", code)])
}

/// Types a code as alice, who signs in unless she is; the page that asks for the decision.
pub fn reach_decision(browser: &mut Browser, code: &str) -> Answer {
    let page = enter(browser, code);
    if page.text().contains("name=\"password\"") {
        return sign_in(browser, &page, "alice", ALICE_PASSWORD);
    }
    page
}

/// Decides, with these optional scopes ticked.
pub fn decide(browser: &mut Browser, page: &Answer, decision: &str, scopes: &[&str]) -> Answer {
    browser.decide(page, decision, scopes, false)
}

/// Everything the device asked for, allowed by alice.
pub fn allow(browser: &mut Browser, device: &Value) {
    let page = reach_decision(browser, user_code(device));
    let answer = decide(
        browser,
        &page,
        "allow",
        &SCOPE.split(' ').skip(1).collect::<Vec<_>>(),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.assert_says("Your device is connected");
}
