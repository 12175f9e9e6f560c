//! People at `/admin`: who looks after whom, and what they do to them.

use serde_json::{Value, json};

use crate::support::flow::sign_in;
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};
use crate::support::phone::{Phone, send};

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const ON: [(&str, &str); 2] = [
    ("GATEPOST_ADMIN_ROLE", "office"),
    ("GATEPOST_ADMIN_ROLES", "staff,sales"),
];

/// Somebody with a subject, a password and, if they have a role of administrators, an app that
/// shows codes.
fn person(name: &str, tenant: Option<&str>, role: Value) -> Value {
    let mut person = json!({
        "sub": format!("sub|{name}"), "username": name, "password": BOB_PASSWORD,
        "claims": {"name": format!("{name} of the office"), "email": format!("{name}@example.com"), "email_verified": true},
    });
    if role.to_string().contains("office") {
        person["totp"] = json!(KEY);
    }
    if !role.is_null() {
        person["claims"]["role"] = role;
    }
    if let Some(tenant) = tenant {
        person["tenant"] = json!(tenant);
    }
    person
}

/// Administrators of everybody, of each tenant and of one tenant from outside, and their people.
fn registered() -> Value {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}, {"name": "globex", "display_name": "Globex"}]);
    let people = [
        person("boss", None, json!("office")),
        person("helper", None, json!("office:acme")),
        person("anna", Some("acme"), json!(["staff", "office"])),
        person("gina", Some("globex"), json!(["office"])),
        person("amy", Some("acme"), json!(["staff"])),
        person("abe", Some("acme"), Value::Null),
        person("root", Some("acme"), json!(["staff", "root"])),
        person("gus", Some("globex"), json!("staff")),
        person("nora", None, Value::Null),
    ];
    registered["users"].as_array_mut().unwrap().extend(people);
    registered
}

fn start() -> Gatepost {
    Gatepost::start_with(&registered(), &ON)
}

/// A browser in which an administrator has signed in with a code that is so many steps away.
fn admin_by(gatepost: &Gatepost, name: &str, tenant: &str, step: i64) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&format!("/admin?tenant={tenant}"));
    let asked = sign_in(&mut browser, &page, name, BOB_PASSWORD);
    let code = Phone::with_key(KEY.to_owned(), 0).code(step);
    let answer = send(&mut browser, &asked, &[("code", &code)]);
    assert_eq!(answer.status, 303, "{name}: {}", answer.text());
    assert!(
        answer.location().starts_with("/admin/"),
        "{}",
        answer.location()
    );
    browser
}

fn boss(gatepost: &Gatepost) -> Browser {
    admin_by(gatepost, "boss", "", 0)
}

fn anna(gatepost: &Gatepost) -> Browser {
    admin_by(gatepost, "anna", "acme", 0)
}

fn person_page(name: &str) -> String {
    format!("/admin/people/sub%7C{name}")
}

/// Who a search finds.
fn found(browser: &mut Browser, typed: &str) -> Vec<String> {
    let page = browser.get(&format!("/admin/people?q={typed}"));
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    let names = text
        .split("<bdi>")
        .filter_map(|rest| rest.split_once(" of the office"));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn is_nothing(answer: &Answer, what: &str) {
    answer.assert_error_page(404, "GP1007", what);
}

#[test]
fn it_is_not_there_unless_a_role_is_set() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    for path in ["/admin", "/admin/people", "/admin/invite"] {
        is_nothing(&gatepost.get(path), path);
    }
}

#[test]
fn each_administrator_finds_their_own_people() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    assert_eq!(found(&mut boss, "a"), ["abe", "amy", "anna"]);
    assert_eq!(found(&mut boss, "GUS"), ["gus"]);
    assert_eq!(found(&mut boss, "nora@EX"), ["nora"]);
    assert_eq!(found(&mut boss, "sub%7Croot"), ["root"]);
    assert_eq!(found(&mut boss, "my"), Vec::<String>::new());
    assert_eq!(found(&mut boss, "").len(), 9);
    for (name, tenant, people) in [
        ("anna", "acme", &["abe", "amy", "anna", "root"][..]),
        ("gina", "globex", &["gina", "gus"]),
        ("helper", "", &["abe", "amy", "anna", "root"]),
    ] {
        let mut admin = admin_by(&gatepost, name, tenant, 0);
        assert_eq!(found(&mut admin, ""), people, "{name}");
        assert_eq!(
            found(&mut admin, "sub%7Cnora"),
            Vec::<String>::new(),
            "{name}"
        );
    }
}
