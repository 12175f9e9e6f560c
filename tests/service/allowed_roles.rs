//! `allowed_roles`: an application that is open to some people only, and what the others get.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::device::{self, DEVICE_CODE, TV};
use crate::support::flow::{
    authorize_path, code, issued, redeem_with, sign_in, text, userinfo, with_clients,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, Browser};
use crate::support::offline::{client, introspect_as};
use crate::support::tables::cases;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// `staff` and `direct` are open to staff and admins: alice is an admin, bob a user.
fn start() -> Gatepost {
    let roles = json!(["admin", "staff"]);
    let offline = "openid profile offline_access orders.read";
    let to_orders =
        |from: &str| json!({"from_clients": [from], "to_resources": ["https://orders.example"]});
    let clients = json!({
        "staff": {"allowed_roles": roles, "scope": offline, "grant_types": ["authorization_code", "refresh_token"]},
        "direct": {"allowed_roles": roles, "scope": "openid", "grant_types": ["password"], "response_types": [],
                   "redirect_uris": []},
        "everybody": {"scope": "openid orders.read"},
        "relay": {"scope": "orders.read", "grant_types": [EXCHANGE], "response_types": [], "redirect_uris": [],
                  "token_exchange": to_orders("staff")},
        "gateway": {"allowed_roles": roles, "scope": "orders.read", "grant_types": [EXCHANGE], "response_types": [],
                    "redirect_uris": [], "token_exchange": to_orders("everybody")},
    });
    let clients: Vec<(&str, Value)> = cases(&clients).map(|(id, one)| (id, one.clone())).collect();
    Gatepost::start_with(&with_clients(document(), &clients), &[])
}

fn signed_in_as(gatepost: &Gatepost, username: &str, password: &str) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, username, password).assert_leads_to(RP1);
    browser
}

fn give_role(gatepost: &Gatepost, username: &str, role: &str) {
    gatepost.run_well(&["user", "set", username, &format!("role={role}")], "");
}

/// A code for that path, redeemed as that client.
fn tokens(gatepost: &Gatepost, browser: &mut Browser, client_id: &str, path: &str) -> Value {
    let code = code(browser, path);
    issued(&redeem_with(gatepost, client_id, &code, &[]))
}

fn refresh(gatepost: &Gatepost, tokens: &Value) -> Answer {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(tokens, "refresh_token")),
    ];
    gatepost.token("staff", &form)
}

fn is_the_closed_page(page: &Answer, name: &str) {
    page.assert_stays(403);
    page.assert_says_each(&format!("not open to your account | {name}"));
    page.assert_says_not("value=\"continue\"");
}

#[test]
fn who_has_no_such_role_is_told_so_and_may_come_as_somebody_else() {
    let gatepost = start();
    let path = authorize_path("staff", RP1, &[]);
    let mut bob = signed_in_as(&gatepost, "bob", BOB_PASSWORD);
    let page = bob.get(&path);
    is_the_closed_page(&page, "Bob");
    page.assert_says("First shop");
    is_the_closed_page(&device::decide(&mut bob, &page, "continue", &[]), "Bob");
    let refused = device::decide(&mut bob, &page, "cancel", &[]);
    refused.assert_leads_to(&format!("{RP1}?error=access_denied&"));
    let silent = bob.get(&authorize_path("staff", RP1, &[("prompt", "none")]));
    assert_eq!(silent.query()["error"], "access_denied");
    gatepost.await_log("the reason", |log| log.contains("GP1139"));

    let form = device::decide(&mut bob, &page, "another", &[]);
    form.assert_says("name=\"password\"");
    let answer = sign_in(&mut bob, &form, "alice", ALICE_PASSWORD);
    answer.assert_leads_to(&format!("{RP1}?code="));
    // Everybody else's application is open to bob as before.
    signed_in_as(&gatepost, "bob", BOB_PASSWORD);
}

#[test]
fn who_signs_in_for_it_is_told_at_once_and_a_role_given_since_counts() {
    let gatepost = start();
    for prompt in ["", "login", "consent", "select_account"] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("staff", RP1, &[("prompt", prompt)]));
        is_the_closed_page(&sign_in(&mut browser, &page, "bob", BOB_PASSWORD), "Bob");
    }
    let mut browser = signed_in_as(&gatepost, "bob", BOB_PASSWORD);
    give_role(&gatepost, "bob", r#"["user", "staff"]"#);
    let path = authorize_path("staff", RP1, &[]);
    let tokens = tokens(&gatepost, &mut browser, "staff", &path);
    userinfo(&gatepost, text(&tokens, "access_token")).assert_status(200);
    for role in ["Staff", "sta", r#"["user", 7]"#, "null", r#"{"staff": 1}"#] {
        let sql = "UPDATE users SET claims = claims || jsonb_build_object('role', $1::jsonb) WHERE username = 'bob'";
        let role: Value = serde_json::from_str(role).unwrap_or_else(|_| json!(role));
        gatepost.database.client().execute(sql, &[&role]).unwrap();
        is_the_closed_page(&browser.get(&path), "Bob");
    }
}

#[test]
fn a_role_taken_away_ends_codes_and_refreshes_until_it_is_given_back() {
    let gatepost = start();
    let mut alice = signed_in_as(&gatepost, "alice", ALICE_PASSWORD);
    let path = authorize_path("staff", RP1, &[("scope", "openid offline_access")]);
    let tokens = tokens(&gatepost, &mut alice, "staff", &path);
    let late = code(&mut alice, &path);
    give_role(&gatepost, "alice", "user");
    redeem_with(&gatepost, "staff", &late, &[]).assert_refused(400, "invalid_grant", "code");
    for _ in 0..2 {
        refresh(&gatepost, &tokens).assert_refused(400, "invalid_grant", "refresh");
    }
    give_role(&gatepost, "alice", "staff");
    // What was refused has moved nothing; the code was spent.
    let refreshed = issued(&refresh(&gatepost, &tokens));
    userinfo(&gatepost, text(&refreshed, "access_token")).assert_status(200);
    let answer = redeem_with(&gatepost, "staff", &late, &[]);
    answer.assert_refused(400, "invalid_grant", "code once more");
}

/// What UserInfo and introspection say of an access token of that client.
fn is_alive(gatepost: &Gatepost, client_id: &str, token: &str) -> bool {
    let answer = userinfo(gatepost, token);
    let told = introspect_as(gatepost, (client_id, CONF1_SECRET), token);
    match answer.status {
        200 => {
            assert_eq!(answer.json()["sub"], told["sub"], "{told}");
            assert_eq!(told["active"], true, "{told}");
        }
        _ => {
            answer.assert_refused(401, "invalid_token", client_id);
            assert_eq!(told, json!({"active": false}), "{client_id}");
        }
    }
    answer.status == 200
}

fn exchange(gatepost: &Gatepost, client_id: &str, token: &str) -> Answer {
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    let form = [
        ("grant_type", EXCHANGE),
        ("subject_token", token),
        ("subject_token_type", kind),
    ];
    gatepost.token(client_id, &form)
}

#[test]
fn a_role_taken_away_ends_access_tokens_until_it_is_given_back() {
    let gatepost = start();
    let mut alice = signed_in_as(&gatepost, "alice", ALICE_PASSWORD);
    let mut token_of = |client_id: &str| {
        let path = authorize_path(client_id, RP1, &[("scope", "openid orders.read")]);
        let tokens = tokens(&gatepost, &mut alice, client_id, &path);
        text(&tokens, "access_token").to_owned()
    };
    let (staff, everybody) = (token_of("staff"), token_of("everybody"));
    let exchanged = |client_id: &str, token: &str| {
        let tokens = issued(&exchange(&gatepost, client_id, token));
        text(&tokens, "access_token").to_owned()
    };
    // One of a client that asks for a role, and one that was made from a token of such a client.
    let (gateway, relay) = (exchanged("gateway", &everybody), exchanged("relay", &staff));
    let is_active = |client_id, token: &str| {
        introspect_as(&gatepost, (client_id, CONF1_SECRET), token)["active"] == true
    };
    let all = || {
        let exchanged = [("gateway", &gateway), ("relay", &relay)]
            .map(|(client_id, token)| is_active(client_id, token));
        (
            is_alive(&gatepost, "staff", &staff),
            exchanged,
            is_alive(&gatepost, "everybody", &everybody),
        )
    };
    assert_eq!(all(), (true, [true, true], true));
    give_role(&gatepost, "alice", "user");
    assert_eq!(all(), (false, [false, false], true));
    let answer = exchange(&gatepost, "relay", &staff);
    answer.assert_refused(400, "invalid_request", "a subject token that is over");
    give_role(&gatepost, "alice", "staff");
    assert_eq!(all(), (true, [true, true], true));
    gatepost.run_well(&["user", "set", "alice", "role="], "");
    assert_eq!(all(), (false, [false, false], true), "no role at all");
}

#[test]
fn a_raised_minimum_acr_ends_access_tokens_of_weaker_sign_ins_until_it_is_lowered() {
    let mut document = with_clients(document(), &[("plain", json!({})), ("raised", json!({}))]);
    let mut gatepost = Gatepost::start_with(&document, &[]);
    let mut alice = signed_in_as(&gatepost, "alice", ALICE_PASSWORD);
    let [of_plain, of_raised] = ["plain", "raised"].map(|client_id| {
        let path = authorize_path(client_id, RP1, &[]);
        let tokens = tokens(&gatepost, &mut alice, client_id, &path);
        text(&tokens, "access_token").to_owned()
    });
    let own = [("grant_type", "client_credentials")];
    let own = issued(&gatepost.token("conf1", &own));
    let alive = |gatepost: &Gatepost| {
        [("plain", &of_plain), ("raised", &of_raised)]
            .map(|(client_id, token)| is_alive(gatepost, client_id, token))
    };
    for (minimum_acr, of_raised_lives) in [("1", true), ("2", false), ("phr", false), ("1", true)] {
        client(&mut document, "raised")["minimum_acr"] = json!(minimum_acr);
        gatepost.apply(&document);
        assert_eq!(alive(&gatepost), [true, of_raised_lives], "{minimum_acr}");
    }
    // The installation's minimum holds for all of them; a client's own token is no sign-in.
    gatepost.stop();
    gatepost.set("GATEPOST_MINIMUM_ACR", "2");
    gatepost.serve();
    assert_eq!(alive(&gatepost), [false, false]);
    let own = text(&own, "access_token");
    let told = introspect_as(&gatepost, ("conf1", CONF1_SECRET), own);
    assert_eq!(told["active"], true);
}

#[test]
fn no_other_grant_is_a_way_around() {
    let gatepost = start();
    let password = |username, password| {
        let form = [
            ("grant_type", "password"),
            ("username", username),
            ("password", password),
        ];
        gatepost.token("direct", &form)
    };
    assert_eq!(password("alice", ALICE_PASSWORD).status, 200);
    password("bob", BOB_PASSWORD).assert_refused(400, "invalid_grant", "password");
    let exchanged = |username, password| {
        let mut browser = signed_in_as(&gatepost, username, password);
        let path = authorize_path("everybody", RP1, &[("scope", "openid orders.read")]);
        let tokens = tokens(&gatepost, &mut browser, "everybody", &path);
        exchange(&gatepost, "gateway", text(&tokens, "access_token"))
    };
    assert_eq!(exchanged("alice", ALICE_PASSWORD).status, 200);
    exchanged("bob", BOB_PASSWORD).assert_refused(400, "invalid_request", "exchange");
    let told = "SELECT count(*) FROM audit_events WHERE event = 'password_granted'";
    assert_eq!(gatepost.database.value::<i64>(told, &[]), 1);
}

#[test]
fn a_device_is_allowed_and_gets_its_tokens_only_for_who_has_the_role() {
    let mut registered = device::document();
    client(&mut registered, TV)["allowed_roles"] = json!(["admin"]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let asked = device::ask(&gatepost, TV, &[]).json();
    device::allow(&mut gatepost.browser(), &asked);
    give_role(&gatepost, "alice", "user");
    device::poll(&gatepost, TV, &asked).assert_refused(400, "invalid_grant", DEVICE_CODE);
    let told = gatepost.run_line("audit list --event grant_refused");
    told.assert_says(TV);
    gatepost.run_line("grant list").assert_says_not(TV);

    let asked = device::ask(&gatepost, TV, &[]).json();
    let mut alice = gatepost.browser();
    let page = device::reach_decision(&mut alice, device::user_code(&asked));
    is_the_closed_page(&page, "Alice Smith");
    let answer = device::poll(&gatepost, TV, &asked);
    answer.assert_refused(400, "authorization_pending", "nobody has decided");
}
