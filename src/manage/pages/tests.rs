//! Whatever the names from outside are, the administrators' pages keep their structure.

use std::collections::BTreeSet;
use std::slice;

use serde_json::json;

use super::admin::applications::application_page;
use super::admin::audit::{AuditPage, audit_page};
use super::admin::explanation::explain_page;
use super::admin::people::PeoplePage;
use super::admin::roles::{RoleView, list_page, role_page};
use super::admin::{self, AdminChrome};
use crate::statements::audit_log::{AuditSearch, SeenEvent};
use crate::statements::hourly_counts::HourlyCounts;
use crate::statements::people_list::PeopleAsked;
use crate::statements::roles::{ListedRole, Opened};
use gatepost_protocol::audit::audit_chain::AuditRow;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::samples::{self, NOW};
use gatepost_registrar::examined_client::ExaminedClient;
use gatepost_registrar::explanation::Explained;
use gatepost_registration::finding::Finding;
use gatepost_server::config::Brand;
use gatepost_server::pages::frame::{Chrome, PageForm, about};
use gatepost_server::pages::language::Language;
use gatepost_server::pages::names_from_outside::{
    Page, assert_forms_post_with_one_token, assert_names_are_isolated,
    assert_names_keep_the_structure,
};

const ACTION: &str = "/auth/admin/explain?x='\"<>";

pub fn brand(name: &str) -> Brand {
    Brand {
        name: name.to_owned(),
        logo: None,
        color: None,
        privacy_url: None,
        terms_url: None,
        help_url: None,
    }
}

/// What is around a page of somebody who reaches everybody, and is called as the brand.
pub fn around<'a>(
    brand: &'a Brand,
    catalogue: &'a Catalogue,
    language: Language,
) -> AdminChrome<'a> {
    let chrome = Chrome {
        brand,
        texts: language.texts(),
        base_path: "/auth",
        assets_version: &brand.name,
        request_id: &brand.name,
        least_password: 8,
    };
    AdminChrome {
        administrator: &brand.name,
        chrome,
        section: "applications",
        ui_locales: "de",
        catalogue,
        reach: &[""],
        roles_to_give: &[],
        by_letter: true,
    }
}

/// Every page of applications and events in one language, with `name` wherever a name from outside
/// can stand.
fn pages(language: Language, name: &str) -> Vec<Page> {
    let brand = brand(name);
    let catalogue = Catalogue::default();
    let around = around(&brand, &catalogue, language);
    let form = PageForm {
        chrome: around.chrome,
        action: String::from(ACTION),
        token: String::from("TOKEN"),
    };
    let client = Client {
        client_id: ClientId::new(name),
        client_name: name.into(),
        ..samples::client()
    };
    let mut pages = Vec::new();
    let mut add = |name: &str, markup: maud::Markup| {
        pages.push(Page {
            name: name.to_owned(),
            html: markup.into_string(),
        });
    };
    let findings = vec![Finding::broken(name), Finding::fine(name)];
    let application = ExaminedClient {
        client: client.clone(),
        findings: findings.clone(),
        used_on: Some(Day(20_000)),
    };
    let next = Some(&client.client_id);
    let people = PeoplePage {
        page: "applications/x",
        asked: PeopleAsked::default(),
        is_search: false,
        has_ticks: true,
        soon: Instant::from_seconds(0)..Instant::from_seconds(0),
        locked_out: BTreeSet::new(),
        people: vec![],
        count: Some(String::from("17")),
        is_cut: false,
        next: None,
        previous: None,
    };
    let applications = slice::from_ref(&application);
    add(
        "applications",
        admin::applications::list_page(around, applications, next),
    );
    add(
        "application",
        application_page(around, &application, Some(10_001), &people),
    );
    let opened = [Opened {
        role: Some(name.to_owned()),
        client_id: Some(ClientId::new(name)),
        name: Some(name.to_owned()),
        used_on: Some(Day(20_000)),
        to_everybody: 1,
    }];
    let told = Err(about(language.texts().role_is_asked_for, name));
    let view = RoleView {
        role: name,
        opened: &opened,
        people: &people,
        is_given: true,
        may_be_deleted: true,
        told: Some(&told),
    };
    add("role", role_page(around, &form, view));
    let listed = [ListedRole {
        name: name.to_owned(),
        people: 1_001,
    }];
    add("roles", list_page(around, &listed, None));
    let about = json!({"scope": {"received": name, "registered": name}});
    let explained = Explained {
        findings,
        about: about.as_object().unwrap().clone(),
    };
    add(
        "explanation",
        explain_page(around, &form, true, Some(&explained)),
    );
    let row = AuditRow {
        day: Day(20_000),
        at: NOW,
        chain: String::new(),
        seq: 1,
        previous: [0; 32],
        event: String::from("factor_removed"),
        client_id: Some(name.to_owned()),
        sub: Some(String::from("alice")),
        sid: None,
        source: None,
        request_id: None,
        detail: String::from(r#"{"reason": "GP1211", "by": "admin", "admin": "bob"}"#),
    };
    let found = [SeenEvent {
        row,
        person: Some(name.to_owned()),
        administrator: Some(name.to_owned()),
        admin: Some(String::from("bob")),
        client: Some(name.to_owned()),
    }];
    let hours = [Some(vec![0, 3, 2, 1]), None].map(|counts| HourlyCounts { hour: 0, counts });
    let asked = AuditPage {
        search: AuditSearch {
            event: name,
            person: name,
            day: name,
            reference: name,
        },
        found: &found,
        has_more: true,
        hours: &hours,
    };
    add("audit", audit_page(around, asked));
    pages
}

#[test]
fn names_from_outside_are_shown_whole_and_never_change_the_structure() {
    assert_names_keep_the_structure(pages);
}

#[test]
fn names_in_sentences_are_isolated_from_their_direction() {
    let name = "\u{202e}evil";
    assert_names_are_isolated(pages(Language::English, name), name);
}

#[test]
fn the_bar_keeps_the_language() {
    for page in pages(Language::French, "x") {
        for way in ["/auth/logout?ui_locales=fr", "/auth/account?ui_locales=fr"] {
            assert!(page.html.contains(way), "{}: {way}", page.name);
        }
    }
}

#[test]
fn the_form_posts_and_carries_the_form_token() {
    for page in pages(Language::English, "x") {
        assert_forms_post_with_one_token(&page, |_| ACTION);
    }
}
