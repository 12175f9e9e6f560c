//! Where an authorization response may go, and the page that people see where it may go nowhere.

use serde_json::json;

use crate::support::flow::{authorize_path, signed_in};
use crate::support::gatepost::{Gatepost, RP1, RP2, document};

const NATIVE: &str = "http://127.0.0.1/cb";

#[test]
fn faults_of_client_and_redirect_uri_end_on_a_page() {
    let mut registered = document();
    registered["clients"][1]["enabled"] = json!(false);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let overlong = "c".repeat(201);
    for (client_id, redirect_uri, reason) in [
        ("", RP1, "GP1101"),
        ("nobody", RP1, "GP1102"),
        ("CONF1", RP1, "GP1102"),
        ("conf1 ", RP1, "GP1102"),
        ("conf1\r\nSet-Cookie: a=b", RP1, "GP1102"),
        ("conf1\u{202e}", RP1, "GP1102"),
        ("<script>alert(1)</script>", RP1, "GP1102"),
        (&overlong, RP1, "GP1003"),
        ("conf2", RP2, "GP1103"),
        ("conf1", "", "GP1104"),
        ("conf1", RP2, "GP1105"),
    ] {
        for mode in ["query", "fragment", "form_post", "nonsense"] {
            for prompt in ["", "none"] {
                let changes = [
                    ("response_mode", mode),
                    ("prompt", prompt),
                    ("scope", "nope"),
                    ("request", "x"),
                ];
                let answer = gatepost.get(&authorize_path(client_id, redirect_uri, &changes));
                answer.assert_error_page(400, reason, client_id);
                answer.assert_says_not_for(client_id, "<script");
                assert!(!answer.text().contains('\u{202e}'), "{client_id}");
            }
        }
    }
}

#[test]
fn nothing_is_ever_sent_to_an_unregistered_uri() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let overlong = format!("{RP1}?{}", "x".repeat(2_000));
    let plain = "
        https://rp1.example.evil.tld/cb https://rp1.example/cbX https://rp1.example/cb.evil
        https://rp1.example/cb/ https://rp1.example/cb? https://rp1.example/cb?x=1 https://rp1.example/cb#
        https://rp1.example/cb#x https://rp1.example/other https://rp1.example/other?a=c
        https://rp1.example/other?a=b&c=d https://rp1xexample/cb https://rp1.example/.*
        HTTPS://rp1.example/cb https://RP1.example/cb https://rp1.example/CB https://rp1.example:443/cb
        https://rp1.example:8443/cb https://rp1.example./cb http://rp1.example/cb //rp1.example/cb /cb
        https:rp1.example/cb https:///rp1.example/cb https://rp1.example/./cb https://rp1.example/x/../cb
        https://rp1.example/%63b https://rp1.example/cb%00 https://evil@rp1.example/cb
        https://rp1.example@evil.example/cb https://rp2.example/cb javascript:alert(1)
        data:text/html,<script>alert(1)</script> vbscript:x * x";
    let odd = [
        "https://rp1.example\\cb",
        "https://evil.example\\@rp1.example/cb",
        " https://rp1.example/cb",
        "https://rp1.example/cb ",
        "https://rp1.example/cb\r\nX: y",
        "https://rp1.example/cb\t",
        "https://rp1.examp\u{24c1}e/cb",
        "https://rp1\u{3002}example/cb",
        "https://rp1.example\u{ff0f}evil/cb",
        "https://rp1.example/cb\u{202e}",
        "https://rp1.example/cb https://rp2.example/cb",
        &overlong,
    ];
    for uri in plain.split_whitespace().chain(odd) {
        for mode in ["query", "fragment", "form_post"] {
            let path = authorize_path("conf1", uri, &[("response_mode", mode), ("prompt", "none")]);
            let reason = if uri == overlong { "GP1003" } else { "GP1105" };
            browser.get(&path).assert_error_page(400, reason, uri);
        }
        let page = gatepost.get(&authorize_path("conf1", uri, &[]));
        page.assert_says_not("evil");
        page.assert_says_not("alert(1)");
    }
}

#[test]
fn only_the_port_of_loopback_is_free() {
    let mut registered = document();
    let on_localhost = json!("http://localhost/cb");
    let uris = registered["clients"][3]["redirect_uris"].as_array_mut();
    uris.unwrap().push(on_localhost.clone());
    registered["clients"][0]["redirect_uris"] = json!([on_localhost]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let uris = "http://127.0.0.1/cb http://127.0.0.1:54321/cb http://127.0.0.1:1/cb
                http://localhost/cb http://localhost:54321/cb com.example.app:/cb";
    for uri in uris.split_whitespace() {
        let answer = gatepost.get(&authorize_path("native", uri, &[("prompt", "none")]));
        answer.assert_leads_to(&format!("{uri}?error=login_required&"));
    }
    let unfit = "
        http://127.0.0.1:1/other http://127.0.0.1:1/cb?x=1 http://127.0.0.1:0/cb http://127.0.0.1:65536/cb
        http://127.0.0.1:080/cb http://127.0.0.1:/cb http://127.0.0.1:+1/cb http://localhost:1/other
        http://localhost:1@evil/cb http://localhost.evil:1/cb https://localhost:1/cb http://127.0.0.2/cb
        http://127.1/cb http://2130706433/cb http://0x7f.0.0.1/cb http://[::1]/cb
        http://[::ffff:127.0.0.1]/cb http://127.0.0.1.evil/cb http://127.0.0.1@evil/cb
        http://127.0.0.1:1@evil/cb http://evil@127.0.0.1/cb https://127.0.0.1/cb https://127.0.0.1:1/cb
        com.example.app:/cb2 com.example.app://cb com.example.app:cb com.example.app2:/cb
        COM.example.app:/cb";
    for uri in unfit.split_whitespace() {
        let answer = gatepost.get(&authorize_path("native", uri, &[]));
        answer.assert_error_page(400, "GP1105", uri);
    }
    // A server knows its port.
    for (uri, fits) in [
        ("http://localhost/cb", true),
        ("http://localhost:1/cb", false),
    ] {
        let answer = gatepost.get(&authorize_path("conf1", uri, &[("prompt", "none")]));
        assert_eq!(answer.status == 303, fits, "{uri}: {}", answer.text());
    }
    // Nobody posts a form to an application.
    let by_form = ("response_mode", "form_post");
    let custom = authorize_path("native", "com.example.app:/cb", &[by_form]);
    assert_eq!(gatepost.get(&custom).query()["error"], "invalid_request");
    let loopback = authorize_path("native", NATIVE, &[by_form, ("prompt", "none")]);
    assert_eq!(gatepost.get(&loopback).fields()["error"], "login_required");
}

#[test]
fn a_dangerous_redirect_uri_put_into_the_database_by_hand_is_not_used() {
    let gatepost = Gatepost::start();
    let uris = "javascript:alert(1) data:text/html,x http://rp1.example/cb https://rp1.example/*";
    for uri in uris.split(' ') {
        gatepost.database.run(&format!(
            "UPDATE clients SET metadata = jsonb_set(metadata, '{{redirect_uris}}', '[\"{uri}\"]') WHERE client_id = 'conf1';
             UPDATE installation SET registry_version = registry_version + 1"
        ));
        gatepost.settle();
        for mode in ["query", "fragment", "form_post"] {
            let answer = gatepost.get(&authorize_path("conf1", uri, &[("response_mode", mode)]));
            answer.assert_stays_for(uri, 400);
            answer.assert_says_not_for(uri, "<form");
            answer.assert_says_not_for(uri, "alert");
        }
    }
}
