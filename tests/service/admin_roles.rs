//! Roles at `/admin`: who has them, what they open, taking and deleting them; and the report of who
//! may open what.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::admin_people::{ON, admin_by, events, post_to};
use crate::support::claims::Says;
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};
use crate::support::waiting::{SOON, await_that};

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";

fn person(name: &str, tenant: &str, roles: &[&str]) -> Value {
    let mut person = json!({
        "sub": format!("sub|{name}"), "username": name, "password": BOB_PASSWORD,
        "claims": {"name": format!("{name} Brandt"), "role": roles},
    });
    if !tenant.is_empty() {
        person["tenant"] = json!(tenant);
    }
    if roles.contains(&"office") {
        person["totp"] = json!(KEY);
    }
    person
}

fn application(client_id: &str, more: &Value) -> Value {
    let mut client = json!({
        "client_id": client_id, "client_name": format!("The {client_id}"), "scope": "openid",
        "redirect_uris": [format!("https://{client_id}.example/cb")],
        "grant_types": ["authorization_code"], "token_endpoint_auth_method": "none",
    });
    let client_members = client.as_object_mut().unwrap();
    client_members.extend(more.as_object().unwrap().clone());
    client
}

fn registered(people: Vec<Value>) -> Value {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme"}, {"name": "globex"}]);
    registered["roles"] = json!([
        {"name": "books", "display_name": "Bookkeeping", "description": "Opens the ledger", "given_by_administrators": true},
        {"name": "archive", "display_name": "The archive", "given_by_administrators": true},
        {"name": "vault", "display_name": "The vault"},
    ]);
    registered["clients"] = json!([
        application("ledger", &json!({"allowed_roles": ["books", "vault"]})),
        application("intranet", &json!({})),
        application(
            "globex-only",
            &json!({"allowed_roles": ["books"], "tenants": ["globex"]})
        ),
        application(
            "robot",
            &json!({"grant_types": ["client_credentials"], "redirect_uris": [], "scope": "", "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://robot.example/jwks"})
        ),
    ]);
    registered["users"] = Value::from(people);
    registered
}

fn scene() -> Gatepost {
    let people = vec![
        person("boss", "", &["office"]),
        person("anna", "acme", &["office"]),
        person("ann", "", &["books", "staff"]),
        person("ben", "acme", &["books"]),
        person("gus", "globex", &["books"]),
        person("gil", "globex", &["secret-project"]),
        person("vic", "", &["vault", "books"]),
        person("cleo", "", &["archive"]),
    ];
    Gatepost::start_with(&registered(people), &ON)
}

fn says(page: &Answer, sentence: &str) {
    page.assert_says_for(sentence, sentence);
}

fn does_not_say(page: &Answer, sentence: &str) {
    page.assert_says_not_for(sentence, sentence);
}

fn roles_of(gatepost: &Gatepost, name: &str) -> String {
    let asked = "SELECT coalesce(claims ->> 'role', '') FROM users WHERE username = $1";
    gatepost.database.value(asked, &[&name])
}

fn take(browser: &mut Browser, page: &Answer, names: &[&str]) -> Answer {
    let subs = Vec::from_iter(names.iter().map(|name| format!("sub|{name}")));
    let ticked = subs.iter().map(|sub| ("person", sub.as_str()));
    let fields = Vec::from_iter([("decision", "take")].into_iter().chain(ticked));
    post_to(browser, "/admin/roles/books", page, &fields)
}

#[test]
fn roles_are_listed_with_whom_they_have_within_reach_alone() {
    let gatepost = scene();
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let page = boss.get("/admin/roles");
    page.assert_says_each("Bookkeeping | Opens the ledger | The vault | secret-project | staff");
    says(&page, "People: 4");
    let people = boss.get("/admin/people");
    says(&people, "<option value=\"staff\">staff</option>");
    says(&people, "<option value=\"vault\">The vault</option>");
    let page = boss.get("/admin/roles/books");
    page.assert_says_each("Opens the ledger | The ledger | The globex-only");
    page.assert_says_each("Found: 4 | ann Brandt | gus Brandt");
    // Nothing of another tenant is shown or counted.
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    let page = anna.get("/admin/roles");
    says(&page, "People: 1");
    does_not_say(&page, "secret-project");
    let page = anna.get("/admin/roles/books");
    says(&page, "Found: 1");
    page.assert_says_none("gus | ann Brandt | globex-only | Delete");
    let page = anna.get("/admin/roles/secret-project");
    says(&page, "This role is not there, or no longer.");
    assert_eq!(anna.get("/admin/roles/secret-project%00").status, 404);
}

#[test]
fn whoever_takes_a_role_from_people_of_a_page_stays_on_it() {
    let name = |number| format!("p{number:02}");
    let mut people = Vec::from_iter((0..27).map(|number| person(&name(number), "", &["archive"])));
    people.push(person("boss", "", &["office"]));
    let gatepost = Gatepost::start_with(&registered(people), &ON);
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let behind = "/admin/roles/archive?after=sub%7Cp24&ui_locales=en";
    let page = boss.get(behind);
    says(&page, "No application asks for this role.");
    let form = "action=\"/admin/roles/archive?after=sub%7Cp24&amp;ui_locales=en\"";
    says(&page, form);
    let ticked = [("decision", "take"), ("person", "sub|p25")];
    let taken = post_to(&mut boss, behind, &page, &ticked);
    says(&taken, "The role was taken from ");
    says(&taken, "p26 Brandt");
    does_not_say(&taken, "p24 Brandt");
    let ticked = [("decision", "take"), ("person", "sub|p26")];
    let emptied = post_to(&mut boss, behind, &taken, &ticked);
    says(&emptied, "Previous page");
    does_not_say(&emptied, "Take it from those ticked");
}

#[test]
fn a_role_is_taken_from_all_who_are_ticked_or_from_nobody() {
    let gatepost = scene();
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let page = boss.get("/admin/roles/books");
    says(&take(&mut boss, &page, &[]), "Tick at least one person.");
    // Vic has a role that the administrator may not give; nobody has that subject.
    does_not_say(&page, "value=\"sub|vic\"");
    for with in ["vic", "nobody"] {
        says(&take(&mut boss, &page, &["ann", with]), "Nothing was done.");
        assert_eq!(roles_of(&gatepost, "ann"), r#"["books", "staff"]"#);
    }
    let taken = take(&mut boss, &page, &["ann", "gus"]);
    taken.assert_says_each("The role was taken from | ann Brandt, gus Brandt | Found: 2");
    assert_eq!(roles_of(&gatepost, "ann"), r#"["staff"]"#);
    assert_eq!(roles_of(&gatepost, "gus"), "");
    for (sub, old, new) in [
        ("sub|ann", json!(["books", "staff"]), json!(["staff"])),
        ("sub|gus", json!(["books"]), json!([])),
    ] {
        let (event, detail) = events(&gatepost, sub).pop().unwrap();
        assert_eq!(event, "user_changed");
        assert_eq!(detail["by"], "admin");
        assert_eq!(
            (&detail["old"]["role"], &detail["new"]["role"]),
            (&old, &new)
        );
    }
    // Somebody else was faster.
    says(&take(&mut boss, &page, &["ann"]), "Nothing was done.");
    // Whoever is out of reach is as good as not there.
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    let page = anna.get("/admin/roles/books");
    says(&take(&mut anna, &page, &["vic"]), "Nothing was done.");
    // The row of the role decides when it is written.
    gatepost.run_sql("UPDATE roles SET document = document - 'given_by_administrators'");
    says(&take(&mut anna, &page, &["ben"]), "Nothing was done.");
    assert_eq!(roles_of(&gatepost, "ben"), r#"["books"]"#);
}

#[test]
fn a_role_is_deleted_once_nothing_asks_for_it() {
    let gatepost = scene();
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let mut delete = |role: &str| {
        let address = format!("/admin/roles/{role}");
        let page = boss.get(&address);
        post_to(&mut boss, &address, &page, &[("decision", "delete")])
    };
    says(&delete("staff"), "GATEPOST_ADMIN_ROLES names it");
    // Of somebody whom the administrator may not change, or not to be given by them.
    for role in ["books", "vault"] {
        says(&delete(role), "somebody whom you cannot change");
    }
    gatepost.run_sql("UPDATE users SET claims = '{\"role\": \"books\"}' WHERE username = 'vic'");
    let asked_for = "while applications ask for it: <strong><bdi>The globex-only, The ledger";
    says(&delete("books"), asked_for);
    assert_eq!(roles_of(&gatepost, "ben"), r#"["books"]"#);
    assert_eq!(gatepost.database.count("roles"), 3);
    let epoch = "SELECT epoch FROM users WHERE username = 'cleo'";
    let before: i64 = gatepost.database.value(epoch, &[]);
    let deleted = "<bdi>The archive</bdi></strong> was deleted";
    says(&delete("archive"), deleted);
    assert_eq!(roles_of(&gatepost, "cleo"), "");
    assert_eq!(gatepost.database.value::<i64>(epoch, &[]), before);
    let event = "SELECT detail ->> 'admin' FROM audit_events WHERE event = 'registration_removed'";
    assert_eq!(gatepost.database.value::<String>(event, &[]), "sub|boss");
    // Meanwhile it went.
    gatepost.run_sql("UPDATE clients SET metadata = metadata - 'allowed_roles'");
    gatepost.run_well(&["role", "remove", "books", "--yes"], "");
    let gone = "This role is not there, or no longer.";
    await_that("the role is gone", SOON, || {
        delete("books").text().contains(gone)
    });
}

#[test]
fn whoever_may_not_delete_a_role_hears_of_no_clients_that_ask_for_it() {
    let gatepost = scene();
    gatepost.database.run(
        "UPDATE users SET claims = '{\"role\": [\"books\", \"vault\"]}' WHERE username = 'ben'",
    );
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    for (role, sentence) in [
        ("staff", "cannot be deleted here"),
        ("books", "somebody whom you cannot change"),
    ] {
        let address = format!("/admin/roles/{role}");
        let page = anna.get(&address);
        let refused = post_to(&mut anna, &address, &page, &[("decision", "delete")]);
        says(&refused, sentence);
        does_not_say(&refused, "globex-only");
    }
}

/// More than are sorted by their names for each page.
#[test]
fn every_member_stands_on_a_page_however_many_there_are() {
    let gatepost = scene();
    gatepost.database.run(
        "INSERT INTO users (sub, username, username_key, claims, tenant, enabled)
         SELECT 'sub|bulk' || n, 'bulk' || n, 'bulk' || n, '{\"role\": \"books\"}', 'acme', n <> 7
         FROM generate_series(1, 2100) AS n",
    );
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    for list in ["/admin/roles/books?", "/admin/people?role=books"] {
        let mut page = anna.get(list);
        says(&page, "Found: more than 1000");
        let mut all_by = |link: &str| {
            let mut seen = BTreeSet::from_iter(people_on(&page));
            while let Some(next) = linked_to(&page, link) {
                page = anna.get(&next);
                seen.extend(people_on(&page));
            }
            seen
        };
        let seen = all_by("after");
        assert_eq!(seen.len(), 2_101, "{list}");
        assert_eq!(all_by("before"), seen, "{list}");
    }
    let disabled = anna.get("/admin/people?role=books&state=disabled");
    does_not_say(&disabled, "Found:");
    let further = linked_to(&disabled, "after").expect("2,000 of 2,101 were looked at");
    let rest = anna.get(&further);
    let found = people_on(&disabled).into_iter().chain(people_on(&rest));
    assert_eq!(Vec::from_iter(found), ["sub%7Cbulk7"]);
    // Of words that too many have, the page says so.
    let mut page = anna.get("/admin/people?q=bulk");
    while let Some(next) = linked_to(&page, "after") {
        page = anna.get(&next);
    }
    says(&page, "Write more of the name to find the others.");
    let disabled = anna.get("/admin/people?q=bulk&state=disabled");
    does_not_say(&disabled, "more than 0");
}

/// Where the link leads that has this parameter.
fn linked_to(page: &Answer, parameter: &str) -> Option<String> {
    let links = page.text();
    let mut addresses = links.split("href=\"").skip(1);
    let address = addresses.find(|rest| {
        let address = rest.split('"').next().unwrap();
        address.contains(&format!("{parameter}="))
    })?;
    Some(address.split('"').next().unwrap().replace("&amp;", "&"))
}

/// The subjects of the table, as they stand in addresses.
fn people_on(page: &Answer) -> Vec<String> {
    let text = page.text();
    let rows = text.split("/admin/people/sub%7C").skip(1);
    let names = rows.map(|row| row.split(['"', '?']).next().unwrap());
    let mut subs = Vec::from_iter(names.map(|name| format!("sub%7C{name}")));
    subs.dedup();
    subs
}

#[test]
fn who_may_open_an_application_is_told_there_and_by_the_person() {
    let gatepost = scene();
    gatepost.database.run(
        "UPDATE users SET enabled = false WHERE username = 'gus';
         INSERT INTO client_user_uses VALUES ('sub|ann', 'ledger', 20000)",
    );
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let page = boss.get("/admin/applications/ledger");
    says(
        &page,
        "Roles<br><bdi>Bookkeeping</bdi><br><bdi>The vault</bdi>",
    );
    says(&page, "<h1><bdi>The ledger</bdi></h1>");
    page.assert_says_each("Who may open it | Found: 3 | ann Brandt | vic Brandt");
    page.assert_says_none("gus Brandt | type=\"checkbox\"");
    let everybody = boss.get("/admin/applications/intranet");
    says(&everybody, "<span class=\"badge warning\">Everybody</span>");
    let mut anna = admin_by(&gatepost, "anna", "acme", 0);
    let page = anna.get("/admin/applications/ledger");
    says(&page, "Found: 1");
    does_not_say(&page, "ann Brandt");

    let ann = boss.get("/admin/people/sub%7Cann");
    ann.assert_says_each("Bookkeeping | The ledger | open to everybody: 1");
    ann.assert_says_each("Help them sign in | End access");
    says(
        &ann,
        "Last used on <time datetime=\"2024-10-04\">4 Oct 2024</time>",
    );
    does_not_say(&ann, "globex-only");
    let vic = boss.get("/admin/people/sub%7Cvic");
    says(&vic, "The vault");
    says(
        &vic,
        "<span class=\"badge warning\">You cannot give this role</span>",
    );
}

#[test]
fn the_report_has_a_row_for_each_person_and_role() {
    let mut people = vec![
        person("=cmd|'/c'!A1", "", &["books"]),
        person("gus", "globex", &["books", "vault"]),
        person("off", "", &["books"]),
    ];
    people[2]["enabled"] = json!(false);
    people.extend((0..1_100).map(|number| person(&format!("p{number:04}"), "acme", &["vault"])));
    for person in &mut people {
        person.as_object_mut().unwrap().remove("password");
    }
    let gatepost = Gatepost::start_with(&registered(people), &[]);
    gatepost.database.run(
        "UPDATE role_members SET since = '2026-03-01T10:00:00Z';
         UPDATE role_members SET since = NULL WHERE sub = 'sub|p0000';
         INSERT INTO client_user_uses VALUES ('sub|gus', 'ledger', 20000);
         INSERT INTO client_uses VALUES ('intranet', 20001)",
    );
    let report = gatepost.run_well(&["access", "--csv"], "");
    let lines = Vec::from_iter(report.lines());
    let heads = "client_id,application,user_name,name,sub,role,since,last_used";
    assert_eq!(lines[0], heads);
    for row in [
        "intranet,The intranet,*,,*,,,2024-10-05",
        "globex-only,The globex-only,gus,gus Brandt,sub|gus,books,2026-03-01T10:00:00Z,",
        "ledger,The ledger,'=cmd|'/c'!A1,'=cmd|'/c'!A1 Brandt,sub|=cmd|'/c'!A1,books,2026-03-01T10:00:00Z,",
        "ledger,The ledger,gus,gus Brandt,sub|gus,books,2026-03-01T10:00:00Z,2024-10-04",
        "ledger,The ledger,gus,gus Brandt,sub|gus,vault,2026-03-01T10:00:00Z,2024-10-04",
        "ledger,The ledger,p0000,p0000 Brandt,sub|p0000,vault,,",
    ] {
        assert!(lines.contains(&row), "{row}: {:?}", &lines[..9]);
    }
    // Robot and off are not there.
    assert_eq!(lines.len(), 1 + 1 + 1 + 2 + 1 + 1_100);
    let of_one = gatepost.run_well(&["access", "--user", "GUS", "--client", "ledger"], "");
    assert_eq!(of_one.lines().count(), 3, "{of_one}");
    assert!(of_one.starts_with("CLIENT_ID  APPLICATION"), "{of_one}");
}

#[test]
fn what_is_open_to_several_tenants_is_open_to_people_without_one() {
    let people = vec![
        person("boss", "", &["office"]),
        person("ann", "", &["books"]),
        person("gus", "globex", &["books"]),
    ];
    let mut registered = registered(people);
    let several = json!({"allowed_roles": ["books"], "tenants": ["acme", "globex"]});
    let clients = registered["clients"].as_array_mut().unwrap();
    clients.push(application("several", &several));
    let gatepost = Gatepost::start_with(&registered, &ON);
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    let application = boss.get("/admin/applications/several");
    application.assert_says_each("Found: 2 | ann Brandt | gus Brandt");
    let ann = boss.get("/admin/people/sub%7Cann");
    says(&ann, "The several");
    does_not_say(&ann, "globex-only");
    let report = gatepost.run_well(&["access", "--client", "several"], "");
    report.assert_says_each("sub|ann | sub|gus");
}
