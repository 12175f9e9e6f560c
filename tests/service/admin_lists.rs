//! The list of people at `/admin`: pages, words, filters, and what is asked before it is done.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::admin_people::{ON, admin_by, post_to};
use crate::support::flow::with_members;
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};
use crate::support::tables::rows_of;

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";

fn person(name: &str, full_name: &str, more: &Value) -> Value {
    let person = json!({
        "sub": format!("sub|{name}"), "username": name,
        "claims": {"name": full_name, "email": format!("{name}@wonderland.example")},
    });
    with_members(person, more)
}

fn scene(people: Vec<Value>) -> (Gatepost, Browser) {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}]);
    registered["roles"] = json!([
        {"name": "books", "display_name": "Bookkeeping", "description": "Opens the ledger", "given_by_administrators": true},
        {"name": "vault", "display_name": "The vault"},
    ]);
    let secrets = json!({"password": BOB_PASSWORD, "totp": KEY});
    let mut boss = person("boss", "Zoe Boss", &secrets);
    let mut anna = person("anna", "Anna Acme", &secrets);
    anna["tenant"] = json!("acme");
    for admin in [&mut boss, &mut anna] {
        admin["claims"]["role"] = json!("office");
    }
    registered["users"] = Value::from([people, vec![boss, anna]].concat());
    let gatepost = Gatepost::start_with(&registered, &ON);
    let boss = admin_by(&gatepost, "boss", "", 0);
    (gatepost, boss)
}

/// The names of a page of people.
fn names(page: &Answer) -> Vec<String> {
    page.assert_status(200);
    let text = page.text();
    let list = text.split("<tbody>").nth(1).unwrap_or_default();
    let rows = list.split("<th scope=\"row\">").skip(1);
    let name = |row: &str| {
        row.split("<bdi>")
            .nth(1)?
            .split("</bdi>")
            .next()
            .map(str::to_owned)
    };
    rows.map(|row| name(row).unwrap()).collect()
}

fn found(browser: &mut Browser, query: &str) -> Vec<String> {
    names(&browser.get(&format!("/admin/people?{query}")))
}

/// The address behind a link of the page with these words.
fn way(page: &Answer, words: &str) -> Option<String> {
    let text = page.text();
    let (before, _) = text.split_once(&format!(">{words}</a>"))?;
    let address = before.rsplit("href=\"").next()?.split('"').next()?;
    Some(address.replace("&amp;", "&"))
}

#[test]
fn everybody_is_on_one_page_there_and_back() {
    let people = (0..58).map(|number| {
        let tenant = match number % 3 {
            0 => json!({"tenant": "acme"}),
            _ => json!({}),
        };
        let name = format!("Person {number:02}");
        person(&format!("p{number:02}"), &name, &tenant)
    });
    let (_gatepost, mut boss) = scene(people.collect());
    let mut page = boss.get("/admin/people");
    page.assert_says("Found: 60");
    assert_eq!(way(&page, "Previous page"), None);
    let mut pages = vec![names(&page)];
    while let Some(next) = way(&page, "Next page") {
        page = boss.get(&next);
        pages.push(names(&page));
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [25, 25, 10]);
    let all = pages.concat();
    let mut sorted = all.clone();
    sorted.sort_by_key(|name| name.to_lowercase());
    assert_eq!(all, sorted);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 60);
    let mut back = vec![names(&page)];
    while let Some(previous) = way(&page, "Previous page") {
        page = boss.get(&previous);
        if names(&page).is_empty() {
            break;
        }
        back.push(names(&page));
    }
    back.reverse();
    assert_eq!(back, pages);
    // A cursor that is nobody begins at the first.
    assert_eq!(found(&mut boss, "after=nobody"), pages[0]);
}

#[test]
fn a_family_name_finds_its_person_within_reach_alone() {
    let (gatepost, mut boss) = scene(vec![
        person("dinah", "Dinah Brandt", &json!({})),
        person("bea", "Bea Müller-Lüdenscheidt", &json!({})),
        person("kasia", "Katarzyna Wójcik", &json!({"tenant": "acme"})),
        person("odile", "Odile O’Brandt", &json!({"tenant": "acme"})),
        person("tom", "Tom %_ Percent", &json!({})),
    ]);
    for (query, expected) in [
        ("q=brandt", &["Dinah Brandt", "Odile O’Brandt"][..]),
        ("q=BRAN", &["Dinah Brandt", "Odile O’Brandt"]),
        ("q=dinah+brandt", &["Dinah Brandt"]),
        ("q=brandt+di", &["Dinah Brandt"]),
        ("q=randt", &[]),
        ("q=brandt+kasia", &[]),
        ("q=l%C3%BCden", &["Bea Müller-Lüdenscheidt"]),
        ("q=M%C3%BCller-L%C3%BC", &["Bea Müller-Lüdenscheidt"]),
        ("q=%EF%BC%B7%C3%B3jcik", &["Katarzyna Wójcik"]),
        ("q=kasia@wonderland.example", &["Katarzyna Wójcik"]),
        ("q=sub%7Ctom", &["Tom %_ Percent"]),
        ("q=%25", &[]),
        ("q=%27%3B--", &[]),
    ] {
        assert_eq!(found(&mut boss, query), expected, "{query}");
    }
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    assert_eq!(found(&mut anna, "q=brandt"), ["Odile O’Brandt"]);
    assert_eq!(found(&mut anna, "q=sub%7Cdinah"), Vec::<String>::new());
    // Another tenant's is no cursor.
    assert_eq!(found(&mut anna, "after=sub%7Cdinah"), found(&mut anna, ""));
}

#[test]
fn people_are_found_by_role_and_state() {
    let with_role = |name: &str, role: &str| {
        let mut person = person(name, name, &json!({}));
        person["claims"]["role"] = json!([role]);
        person
    };
    let with = |name: &str, more: Value| person(name, name, &more);
    let (_gatepost, mut boss) = scene(vec![
        with_role("ann", "books"),
        with_role("ben", "vault"),
        with("cleo", json!({"password": BOB_PASSWORD})),
        with("dan", json!({"password": BOB_PASSWORD, "totp": KEY})),
        with("eve", json!({"password": BOB_PASSWORD, "enabled": false})),
    ]);
    for [query, expected] in rows_of(
        "
        role=books                   | ann
        role=books&q=a               | ann
        role=books&q=b               |
        role=nothing                 |
        state=invited                | ann ben
        state=invited&role=vault     | ben
        state=disabled               | eve
        state=no-second-factor       | cleo
        state=no-second-factor&q=dan |
    ",
    ) {
        let found = found(&mut boss, query).join(" ");
        assert_eq!(found, expected, "{query}");
    }
    let page = boss.get("/admin/people?role=books");
    page.assert_says("Bookkeeping");
}

#[test]
fn administrators_give_the_registered_roles_that_say_so() {
    let (gatepost, mut boss) = scene(vec![person("ann", "Ann", &json!({}))]);
    let address = "/admin/people/sub%7Cann";
    let page = boss.get(address);
    page.assert_says_each("Bookkeeping | Opens the ledger");
    page.assert_says_not("The vault");
    let save = |role: &'static str| {
        let address = ("address", "ann@wonderland.example");
        [
            ("decision", "save"),
            ("name", "Ann"),
            address,
            ("role", role),
        ]
    };
    post_to(&mut boss, address, &page, &save("books")).assert_status(200);
    let role = || -> String {
        let role = "SELECT claims ->> 'role' FROM users WHERE sub = 'sub|ann'";
        gatepost.database.value(role, &[])
    };
    assert_eq!(role(), "[\"books\"]");
    let page = boss.get(address);
    post_to(&mut boss, address, &page, &save("vault")).assert_status(400);
    // The row of the role decides when it is written, whatever the server has read.
    let page = boss.get(address);
    gatepost.run_sql("UPDATE roles SET document = document - 'given_by_administrators'");
    let answer = post_to(&mut boss, address, &page, &[("decision", "disable")]);
    answer.assert_says("nothing was done");
}

#[test]
fn what_does_not_come_back_is_asked_first_and_told_after() {
    let secrets = json!({"password": BOB_PASSWORD, "totp": KEY});
    let (_gatepost, mut boss) = scene(vec![person("ann", "Ann <b>", &secrets)]);
    let address = "/admin/people/sub%7Cann";
    for [label, decision, asks, told] in rows_of("
        Remove all second factors | remove_factors | The factors do not come back | All second factors of
        Sign out everywhere | end_all | What has ended does not come back | is signed out everywhere.
        Disable | disable | cannot sign in until you enable them | is disabled, and signed out everywhere.
    ") {
        let page = boss.get(address);
        let asking = boss.get(&way(&page, label).unwrap());
        asking.assert_says_each(&format!("{asks} | Ann &lt;b&gt;"));
        asking.assert_says_not("Ann <b>");
        let done = post_to(&mut boss, address, &asking, &[("decision", decision)]);
        done.assert_says(told);
    }
    // Nobody is asked about what they may not do.
    let own = boss.get("/admin/people/sub%7Cboss?ask=disable");
    own.assert_says("You cannot change this person");
}
