//! `/start`: the applications that a person may open, and nothing that they may not.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{sign_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};

const HOSTILE: &str = "A</a><script>alert(1)</script>";

fn person(name: &str, tenant: Option<&str>, role: Value) -> Value {
    json!({
        "sub": format!("sub|{name}"), "username": name, "password": BOB_PASSWORD,
        "tenant": tenant, "claims": {"name": format!("{name} of the office"), "role": role},
    })
}

fn registered() -> Value {
    let home = |name: &str| format!("https://{name}.example/");
    let mut registered = with_clients(
        document(),
        &[
            (
                "begun",
                json!({"client_name": "Bookkeeping", "client_uri": home("home"),
                    "initiate_login_uri": "https://books.example/in?shop=a%2Fb"}),
            ),
            (
                "drawn",
                json!({"client_name": "Kiosk", "client_uri": "http://kiosk.example/", "logo_uri": home("logo")}),
            ),
            (
                "named",
                json!({"client_name": HOSTILE, "client_uri": home("hostile")}),
            ),
            (
                "staffed",
                json!({"client_name": "Payroll", "client_uri": home("staff"), "allowed_roles": ["staff"]}),
            ),
            (
                "acme",
                json!({"client_name": "Acme only", "client_uri": home("acme"), "tenants": ["acme"]}),
            ),
            (
                "both",
                json!({"client_name": "Both tenants", "client_uri": home("both"), "tenants": ["acme", "globex"]}),
            ),
            (
                "hidden",
                json!({"client_name": "Hidden", "client_uri": home("hidden"), "on_start_page": false}),
            ),
            (
                "off",
                json!({"client_name": "Off", "client_uri": home("off"), "enabled": false}),
            ),
            ("nowhere", json!({"client_name": "Nowhere"})),
            (
                "program",
                json!({"client_name": "Program", "client_uri": home("program"),
                    "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": []}),
            ),
        ],
    );
    registered["clients"].as_array_mut().unwrap().push(json!({
        "client_id": "https://agent.example/client.json", "metadata_document": true,
        "scope": "openid",
    }));
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}, {"name": "globex", "display_name": "Globex"}]);
    let people = [
        person("amy", Some("acme"), json!("office")),
        person("gus", Some("globex"), json!(["sales", "staff"])),
    ];
    registered["users"].as_array_mut().unwrap().extend(people);
    registered
}

/// The names of the applications on a page, in their order.
fn applications(page: &Answer) -> Vec<String> {
    let text = page.text();
    let (_, list) = text.split_once("<ul class=\"applications\">").unwrap();
    let (list, _) = list.split_once("</ul>").unwrap();
    let names = list.split("<bdi>").skip(1);
    names
        .filter_map(|rest| Some(rest.split_once("</bdi>")?.0.to_owned()))
        .collect()
}

fn started(browser: &mut Browser, address: &str, name: &str, password: &str) -> Answer {
    let page = browser.visit(address);
    page.assert_says_for(name, "to open your applications");
    let answer = sign_in(browser, &page, name, password);
    answer.assert_leads_to_for(name, "/start");
    browser.follow(answer)
}

#[test]
fn everybody_finds_what_they_may_open_and_nothing_else() {
    let gatepost = Gatepost::start_with(&registered(), &[("GATEPOST_ADMIN_ROLE", "office")]);
    let escaped = "A&lt;/a&gt;&lt;script&gt;alert(1)&lt;/script&gt;";
    let all = [escaped, "Bookkeeping", "Both tenants", "Kiosk"];
    let mut alice = gatepost.browser();
    let page = started(&mut alice, "/start", "alice", ALICE_PASSWORD);
    assert_eq!(applications(&page), all);
    page.assert_says(
        "href=\"https://books.example/in?shop=a%2Fb&amp;iss=http%3A%2F%2Flocalhost%3A",
    );
    page.assert_says("href=\"http://kiosk.example/\"");
    page.assert_says("src=\"/clients/drawn/logo\"");
    page.assert_says_not("/clients/begun/logo");
    page.assert_says("href=\"/account\"");
    page.assert_says_not("Look after people");
    page.assert_header("x-frame-options", "DENY");
    page.assert_header("referrer-policy", "no-referrer");
    page.assert_header("cache-control", "no-store");
    // By tenant and by role; the session of the browser counts, of whatever tenant it is.
    let mut amy = gatepost.browser();
    let page = started(&mut amy, "/start?tenant=acme", "amy", BOB_PASSWORD);
    let within = [escaped, "Acme only", "Bookkeeping", "Both tenants", "Kiosk"];
    assert_eq!(applications(&page), within);
    page.assert_says("href=\"/admin\"");
    assert_eq!(applications(&amy.get("/start")), within);
    let mut gus = gatepost.browser();
    let page = started(&mut gus, "/start?tenant=globex", "gus", BOB_PASSWORD);
    let names = [escaped, "Bookkeeping", "Both tenants", "Kiosk", "Payroll"];
    assert_eq!(applications(&page), names);
    // Another tenant's page is for who signs in there.
    amy.get("/start?tenant=globex").assert_leads_to("/login?r=");
    gus.visit("/start?ui_locales=de")
        .assert_says("href=\"/account?ui_locales=de\"");
}

#[test]
fn the_base_address_leads_there_and_looking_writes_nothing() {
    let gatepost = Gatepost::lent_with(&document(), &[]);
    let mut alice = gatepost.browser();
    let page = started(&mut alice, "/start", "alice", ALICE_PASSWORD);
    page.assert_says("There is no application for you here yet.");
    let written = || {
        [
            "sessions",
            "session_clients",
            "consents",
            "grants",
            "audit_events",
        ]
        .map(|table| gatepost.database.count(table))
    };
    let before = written();
    for browser in [&mut alice, &mut gatepost.browser()] {
        let answer = browser.get("/?ui_locales=de");
        answer.assert_status(303);
        assert_eq!(answer.location(), "/start?ui_locales=de");
    }
    alice.visit("/start");
    let head = gatepost.send("HEAD", "/start", &[], b"");
    assert_eq!((head.status, head.body.len()), (303, 0));
    assert_eq!(gatepost.post("/start", &[], &[]).status, 405);
    assert_eq!(written(), before);
}

#[test]
fn an_address_that_begins_a_sign_in_is_https() {
    let gatepost = Gatepost::shared();
    for uri in "http://localhost/in javascript:alert(1) https://a.example/#x in".split(' ') {
        let document = with_clients(document(), &[("odd", json!({"initiate_login_uri": uri}))]);
        let output = gatepost.run(&["plan", "-"], &document.to_string());
        assert!(!output.status.success(), "{uri}");
        String::from_utf8_lossy(&output.stderr).assert_says_for(uri, "initiate_login_uri");
    }
}
