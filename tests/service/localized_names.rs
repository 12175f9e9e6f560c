//! Names that clients and scopes have in single languages, on every page that names them.

use serde_json::{Value, json};

use crate::support::device::{DEVICE_CODE, TV, document, enter, start, user_code};
use crate::support::flow::{authorize_path, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP2};
use crate::support::http::Answer;

/// `conf2` asks for consent, the television for a decision.
fn registered() -> Value {
    let mut registered = document();
    for client in registered["clients"].as_array_mut().unwrap() {
        if client["client_id"] == "conf2" {
            client["client_name#de"] = json!("Zweiter Laden");
            client["client_name#ja-JP"] = json!("二号店");
            client["scope"] = json!("openid profile orders.read");
            client["grant_types"]
                .as_array_mut()
                .unwrap()
                .push(json!(DEVICE_CODE));
        }
        if client["client_id"] == TV {
            client["client_name#de"] = json!("Fernseher");
        }
    }
    for scope in registered["resource_scopes"].as_array_mut().unwrap() {
        if scope["name"] == "orders.read" {
            scope["display_name"] = json!("Read orders");
            scope["display_name#de"] = json!("Bestellungen lesen");
            scope["description"] = json!("Every order of yours.");
            scope["description#DE-at"] = json!("Alle Ihre Bestellungen.");
        }
    }
    registered
}

fn shows(page: &Answer, shown: &[&str], hidden: &[&str]) {
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    assert!(
        shown.iter().all(|words| text.contains(words)),
        "{shown:?}: {text}"
    );
    assert!(
        !hidden.iter().any(|words| text.contains(words)),
        "{hidden:?}: {text}"
    );
}

#[test]
fn every_page_names_clients_and_scopes_in_its_own_language() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let path = |ui_locales: &str, more: &[(&str, &str)]| {
        let usual = [
            ("scope", "openid profile orders.read"),
            ("ui_locales", ui_locales),
        ];
        authorize_path("conf2", RP2, &[&usual, more].concat())
    };
    let mut browser = gatepost.browser();
    shows(
        &browser.visit(&path("de", &[])),
        &["Zweiter Laden"],
        &["Second shop"],
    );
    let mut browser = signed_in(&gatepost);
    shows(
        &browser.visit(&path("de", &[("prompt", "select_account")])),
        &["Zweiter Laden"],
        &["Second shop"],
    );
    let german = [
        "Zweiter Laden",
        "Bestellungen lesen",
        "Alle Ihre Bestellungen.",
    ];
    let plain = ["Second shop", "Read orders", "Every order of yours."];
    shows(&browser.visit(&path("de-CH", &[])), &german, &plain);
    shows(&browser.visit(&path("en", &[])), &plain, &german);
    // Where one name is not there in a language, the one without a tag is.
    shows(
        &browser.visit(&path("ja", &[])),
        &["二号店", "Read orders"],
        &["Second shop", "Bestellungen"],
    );

    let page = browser.visit(&path("de", &[]));
    browser
        .decide(&page, "allow", &["profile", "orders.read"], true)
        .assert_status(303);
    shows(
        &browser.get("/account?ui_locales=de"),
        &german[..2],
        &plain[..2],
    );
    let page = browser.get("/account?ui_locales=de");
    let form = [("decision", "withdraw"), ("client_id", "conf2")];
    shows(
        &browser.submit_to("/account?ui_locales=de", &page, &form),
        &["Zweiter Laden"],
        &["Second shop"],
    );

    let device = start(&gatepost, TV, &[("scope", "openid orders.read")]);
    browser
        .headers
        .push((String::from("Accept-Language"), String::from("de")));
    shows(
        &enter(&mut browser, user_code(&device)),
        &["Fernseher", "Bestellungen lesen"],
        &["Television", "Read orders"],
    );
    let mut stranger = gatepost.browser();
    stranger
        .headers
        .push((String::from("Accept-Language"), String::from("de")));
    let page = enter(&mut stranger, user_code(&device));
    shows(&page, &["Fernseher"], &["Television"]);
    shows(
        &sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD),
        &["Fernseher"],
        &["Television"],
    );
}

#[test]
fn names_in_other_languages_come_back_from_an_export_and_are_planned_one_by_one() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&registered());
    let exported = gatepost.run_well(&["export"], "");
    let mut document: Value = serde_json::from_str(&exported).unwrap();
    let client = document["clients"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|client| client["client_id"] == "conf2");
    let client = client.unwrap();
    assert_eq!(client["client_name#de"], "Zweiter Laden");
    assert_eq!(client["client_name#ja-JP"], "二号店");
    assert_eq!(
        gatepost.run(&["plan", "-"], &exported).status.code(),
        Some(0)
    );
    client["client_name#de"] = json!("Neuer Laden");
    client.as_object_mut().unwrap().remove("client_name#ja-JP");
    let plan = gatepost.run(&["plan", "-"], &document.to_string());
    let plan = (plan.status.code(), String::from_utf8(plan.stdout).unwrap());
    assert!(plan.0 == Some(3), "{plan:?}");
    assert!(plan.1.contains("client_name#de"), "{plan:?}");
    assert!(plan.1.contains("client_name#ja-JP"), "{plan:?}");
    gatepost.apply(&document);
    assert_eq!(
        gatepost
            .run(&["plan", "-"], &document.to_string())
            .status
            .code(),
        Some(0)
    );
    gatepost.serve();
    shows(
        &gatepost
            .browser()
            .visit(&authorize_path("conf2", RP2, &[("ui_locales", "de")])),
        &["Neuer Laden"],
        &["Zweiter Laden"],
    );
}
