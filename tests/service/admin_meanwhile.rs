//! What an administrator finds done by somebody else between a page and its form.

use serde_json::{Value, json};

use crate::admin_people::{
    ON, act, admin_by, anna, boss, is_done, person_page, post_to, registered, row, start, tells,
};
use crate::support::gatepost::Gatepost;
use crate::support::http::Answer;

fn typed<'a>(name: &'a str, address: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("name", name),
        ("address", address),
        ("role", "staff"),
        ("decision", "save"),
    ]
}

fn value_of(page: &Answer, field: &str) -> Option<String> {
    page.attribute(&format!("name=\"{field}\""), "value")
}

#[test]
fn what_was_typed_and_what_is_stored_now_are_shown_to_whoever_was_slower() {
    let gatepost = start();
    let (mut boss, mut anna) = (boss(&gatepost), anna(&gatepost));
    let address = person_page("amy");
    let page = anna.get(&address);
    let ames = typed("Amy <b>Ames</b>", "ames@example.com");
    is_done(&act(&mut boss, "amy", &ames));
    let before = row(&gatepost, "amy");
    let adams = typed("Amy Adams", "adams@example.com");
    let slower = post_to(&mut anna, &address, &page, &adams);
    tells(&slower, "was changed meanwhile, so nothing was done");
    slower.assert_says("Stored now: <strong><bdi>Amy &lt;b&gt;Ames&lt;/b&gt;");
    slower.assert_says("Stored now: <strong><bdi>ames@example.com");
    for (field, typed) in [("name", "Amy Adams"), ("address", "adams@example.com")] {
        assert_eq!(value_of(&slower, field).as_deref(), Some(typed));
    }
    assert_eq!(row(&gatepost, "amy"), before);
    // What it shows can be sent.
    let fields = typed("Amy Adams", "ames@example.com");
    is_done(&post_to(&mut anna, &address, &slower, &fields));
    assert_eq!(row(&gatepost, "amy")["claims"]["name"], "Amy Adams");
    // What is so already is confirmed, whoever did it.
    is_done(&post_to(&mut anna, &address, &page, &fields));
    // What cannot be taken stays in the form.
    let unfit = act(&mut anna, "amy", &typed("Amy Bright", "nonsense"));
    tells(&unfit, "such as name@example.com");
    assert_eq!(value_of(&unfit, "name").as_deref(), Some("Amy Bright"));
}

#[test]
fn whoever_is_gone_is_said_to_be_gone_to_those_alone_who_saw_them() {
    let gatepost = start();
    let (mut boss, mut anna) = (boss(&gatepost), anna(&gatepost));
    let address = person_page("amy");
    let page = anna.get(&address);
    gatepost.run_well(&["user", "remove", "amy", "--tenant", "acme"], "");
    let gone = post_to(&mut anna, &address, &page, &[("decision", "disable")]);
    tells(&gone, "is not there any more, so nothing was done");
    let asked_for = anna.get(&address);
    asked_for.assert_error_page(404, "GP1007", "asked for");
    let other = boss.get(&person_page("abe"));
    let refused = post_to(&mut boss, &address, &other, &[("decision", "disable")]);
    refused.assert_error_page(404, "GP1007", "a form of somebody else");
}

#[test]
fn a_role_that_is_deleted_meanwhile_is_given_to_nobody_and_told() {
    let mut registered = registered();
    registered["roles"] = json!([{"name": "books", "given_by_administrators": true}]);
    let gatepost = Gatepost::start_with(&registered, &ON);
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    let address = person_page("amy");
    let page = anna.get(&address);
    let invite = anna.get("/admin/invite");
    let offers = |page: &Answer| page.text().matches("value=\"books\"").count();
    assert_eq!((offers(&page), offers(&invite)), (2, 2));
    gatepost.run_well(&["role", "remove", "books", "--yes"], "");
    gatepost.settle();
    let chosen = [("offered", "books"), ("role", "books"), ("role", "staff")];
    let before = row(&gatepost, "amy");
    let fields = [&typed("Amy Ames", "amy@example.com")[..], &chosen].concat();
    let refused = post_to(&mut anna, &address, &page, &fields);
    tells(&refused, "A role that you chose is not there any more");
    assert_eq!(value_of(&refused, "name").as_deref(), Some("Amy Ames"));
    assert_eq!(row(&gatepost, "amy"), before);
    assert_eq!(offers(&refused), 0);
    let fields = [&[("username", "newt"), ("name", "Newt")][..], &chosen].concat();
    let refused = post_to(&mut anna, "/admin/invite", &invite, &fields);
    tells(&refused, "A role that you chose is not there any more");
    let count = "SELECT count(*) FROM users WHERE username = 'newt'";
    assert_eq!(gatepost.database.value::<i64>(count, &[]), 0);
    assert_ne!(before["claims"]["role"], Value::Null);
    refused.assert_says("value=\"newt\"");
}

#[test]
fn a_role_that_is_gone_is_given_by_no_statement_though_the_server_has_not_heard() {
    let mut registered = registered();
    registered["roles"] = json!([{"name": "books", "given_by_administrators": true}]);
    let gatepost = Gatepost::start_with(&registered, &ON);
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    // Nothing tells the servers of it.
    let gone = "UPDATE roles SET document = document - 'given_by_administrators'";
    gatepost.database.run(gone);
    let before = row(&gatepost, "amy");
    let newt = [("username", "newt"), ("name", "Newt"), ("role", "books")];
    let lines = [("lines", "Newt,newt@example.com,newt,books")];
    let save = [&typed("Amy", "amy@example.com")[..], &[("role", "books")]].concat();
    for (address, fields) in [
        (&*person_page("amy"), &save[..]),
        ("/admin/invite", &newt),
        ("/admin/invite-several", &lines),
    ] {
        let page = anna.get(address);
        let refused = post_to(&mut anna, address, &page, fields);
        tells(&refused, "A role that you chose is not there any more");
    }
    assert_eq!(row(&gatepost, "amy"), before);
    let count = "SELECT count(*) FROM users WHERE username = 'newt'";
    assert_eq!(gatepost.database.value::<i64>(count, &[]), 0);
    is_done(&act(&mut anna, "amy", &typed("Amy", "amy@example.com")));
}
