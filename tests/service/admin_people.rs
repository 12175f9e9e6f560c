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
        person = with_app(person);
    }
    if !role.is_null() {
        person["claims"]["role"] = role;
    }
    if let Some(tenant) = tenant {
        person["tenant"] = json!(tenant);
    }
    person
}

fn with_app(mut person: Value) -> Value {
    person["totp"] = json!(KEY);
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
        with_app(person("tess", Some("acme"), json!("sales"))),
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
    assert_eq!(found(&mut boss, "").len(), 10);
    for (name, tenant, people) in [
        ("anna", "acme", &["abe", "amy", "anna", "root", "tess"][..]),
        ("gina", "globex", &["gina", "gus"]),
        ("helper", "", &["abe", "amy", "anna", "root", "tess"]),
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

/// What a form of that page carries, whichever it is.
fn carried(page: &Answer) -> Vec<(String, String)> {
    let hidden = |name: &str| page.attribute(&format!("name=\"{name}\""), "value");
    let names = ["form_token", "version"].into_iter();
    names
        .filter_map(|name| Some((name.to_owned(), hidden(name)?)))
        .collect()
}

/// Posts a form of that page to an address.
fn post_to(browser: &mut Browser, address: &str, page: &Answer, fields: &[(&str, &str)]) -> Answer {
    let carried = carried(page);
    let carried = carried
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    browser.post(
        address,
        &carried.chain(fields.iter().copied()).collect::<Vec<_>>(),
    )
}

/// Does something to a person by the form of their page.
fn act(browser: &mut Browser, name: &str, fields: &[(&str, &str)]) -> Answer {
    let address = person_page(name);
    let page = browser.get(&address);
    assert_eq!(page.status, 200, "{name}: {}", page.text());
    post_to(browser, &address, &page, fields)
}

fn is_done(answer: &Answer) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("The change is made."), "{text}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

fn tells(answer: &Answer, sentence: &str) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains(sentence), "{sentence}: {text}");
}

fn row(gatepost: &Gatepost, name: &str) -> Value {
    let sql = "SELECT to_jsonb(u) - 'updated_at' AS user FROM users u WHERE sub = $1";
    let sub = format!("sub|{name}");
    let found = gatepost.database.client().query_one(sql, &[&sub]).unwrap();
    found.get(0)
}

/// The events about somebody that administrators caused.
fn events(gatepost: &Gatepost, sub: &str) -> Vec<(String, Value)> {
    let sql = "SELECT event, detail FROM audit_events WHERE sub = $1 AND detail->>'by' = 'admin' ORDER BY at";
    let rows = gatepost.database.client().query(sql, &[&sub]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Everything that an administrator could have written.
fn state(gatepost: &Gatepost) -> (Value, i64) {
    let sql = "SELECT jsonb_agg(to_jsonb(u) ORDER BY u.sub), (SELECT count(*) FROM audit_events WHERE detail->>'by' = 'admin'),
        (SELECT count(*) FROM sessions WHERE ended_at IS NULL) FROM users u";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    let events: i64 = row.get(1);
    let sessions: i64 = row.get(2);
    (row.get(0), events * 1_000 + sessions)
}

fn signed_in_as(gatepost: &Gatepost, name: &str, tenant: &str) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&format!("/account?tenant={tenant}"));
    let answer = sign_in(&mut browser, &page, name, BOB_PASSWORD);
    assert_eq!(answer.status, 303, "{name}: {}", answer.text());
    browser
}

fn is_signed_in(browser: &mut Browser) -> bool {
    browser.get("/account?tenant=acme").status == 200
}

/// Opens a link and chooses a password there.
fn choose_password(gatepost: &Gatepost, link: &str, password: &str) -> Answer {
    let mut browser = gatepost.browser();
    let page = browser.visit(link);
    send(
        &mut browser,
        &page,
        &[("new_password", password), ("new_password_again", password)],
    )
}

fn shown_link(answer: &Answer) -> String {
    let text = answer.text();
    let (_, rest) = text.split_once("link-shown\">").expect("a link");
    rest.split_once('<').unwrap().0.to_owned()
}

#[test]
fn an_office_managers_week() {
    let gatepost = start();
    let version = || -> i64 {
        let sql = "SELECT registry_version FROM installation";
        gatepost
            .database
            .client()
            .query_one(sql, &[])
            .unwrap()
            .get(0)
    };
    let before = version();
    let mut boss = boss(&gatepost);
    // Who cannot sign in.
    let page = boss.get(&person_page("tess"));
    for part in [
        "Acme",
        "sales",
        "App that shows codes",
        "This address is confirmed.",
        "Enabled",
    ] {
        tells(&page, part);
    }
    let mut amy = signed_in_as(&gatepost, "amy", "acme");
    let mut elsewhere = signed_in_as(&gatepost, "amy", "acme");
    // Another duty.
    let saved = act(
        &mut boss,
        "amy",
        &[
            ("name", "Amy Ames"),
            ("address", "amy@example.com"),
            ("role", "sales"),
            ("role", "staff"),
            ("decision", "save"),
        ],
    );
    is_done(&saved);
    assert_eq!(
        row(&gatepost, "amy")["claims"],
        json!({"name": "Amy Ames", "email": "amy@example.com", "email_verified": true, "role": ["sales", "staff"]})
    );
    assert!(is_signed_in(&mut amy), "roles end nothing");
    let fields = [
        ("name", "Amy Ames"),
        ("address", "new@example.com"),
        ("decision", "save"),
    ];
    is_done(&act(&mut boss, "amy", &fields));
    assert_eq!(
        row(&gatepost, "amy")["claims"],
        json!({"name": "Amy Ames", "email": "new@example.com", "email_verified": false})
    );
    // A laptop was stolen.
    let page = boss.get(&person_page("amy"));
    assert_eq!(page.text().matches("value=\"end_session\"").count(), 2);
    let sid = page.attribute("name=\"session\"", "value").unwrap();
    is_done(&act(
        &mut boss,
        "amy",
        &[("session", &sid), ("decision", "end_session")],
    ));
    let live = [is_signed_in(&mut amy), is_signed_in(&mut elsewhere)];
    assert_eq!(live.iter().filter(|lives| **lives).count(), 1);
    let again = act(
        &mut boss,
        "amy",
        &[("session", &sid), ("decision", "end_session")],
    );
    tells(&again, "was changed meanwhile");
    is_done(&act(&mut boss, "amy", &[("decision", "end_all")]));
    assert!(!is_signed_in(&mut amy) && !is_signed_in(&mut elsewhere));
    // Somebody leaves, and comes back.
    let mut amy = signed_in_as(&gatepost, "amy", "acme");
    is_done(&act(&mut boss, "amy", &[("decision", "disable")]));
    assert!(!is_signed_in(&mut amy));
    assert_eq!(row(&gatepost, "amy")["enabled"], json!(false));
    assert!(boss.get("/admin/people?q=amy").text().contains("Disabled"));
    is_done(&act(&mut boss, "amy", &[("decision", "enable")]));
    signed_in_as(&gatepost, "amy", "acme");
    // A telephone was lost.
    is_done(&act(&mut boss, "tess", &[("decision", "remove_factors")]));
    let tess = row(&gatepost, "tess");
    assert_eq!(
        (&tess["strongest_acr"], &tess["factors"]),
        (&json!("1"), &json!(2))
    );
    signed_in_as(&gatepost, "tess", "acme");
    // A password was forgotten; there is no e-mail.
    let reset = act(&mut boss, "tess", &[("decision", "reset")]);
    let link = shown_link(&reset);
    tells(&reset, "nobody else");
    assert!(
        !boss
            .get(&person_page("tess"))
            .text()
            .contains("/account/link"),
        "shown once"
    );
    assert_eq!(
        choose_password(&gatepost, &link, "another password of tess").status,
        303
    );
    assert_eq!(
        version(),
        before,
        "no process has to read the registry anew"
    );
    let told = |sub: &str| -> Vec<String> {
        let all = events(&gatepost, sub);
        assert!(
            all.iter().all(|(_, detail)| detail["admin"] == "sub|boss"),
            "{all:?}"
        );
        all.into_iter().map(|(event, _)| event).collect()
    };
    assert_eq!(
        told("sub|amy"),
        [
            "user_changed",
            "user_changed",
            "session_ended",
            "user_revoked",
            "user_changed",
            "user_changed"
        ]
    );
    assert_eq!(told("sub|tess"), ["factor_removed", "link_made"]);
    assert!(!gatepost.log().contains("gpl_"), "the log has the link");
}

#[test]
fn somebody_who_starts_is_invited_by_a_link_where_there_is_no_mail() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let page = anna.get("/admin/invite");
    assert!(!page.text().contains("<select"), "only one tenant");
    let fields = [
        ("username", "newt"),
        ("name", "Newt New"),
        ("address", ""),
        ("role", "staff"),
    ];
    let answer = post_to(&mut anna, "/admin/invite", &page, &fields);
    let link = shown_link(&answer);
    tells(&answer, "Newt New");
    assert_eq!(choose_password(&gatepost, &link, BOB_PASSWORD).status, 303);
    signed_in_as(&gatepost, "newt", "acme");
    let sql = "SELECT sub, claims FROM users WHERE username = 'newt' AND tenant = 'acme'";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    assert_eq!(
        row.get::<_, Value>(1),
        json!({"name": "Newt New", "role": ["staff"]})
    );
    let told = events(&gatepost, row.get(0));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].0.as_str(), &told[0].1["admin"]),
        ("user_added", &json!("sub|anna"))
    );
    for (fields, sentence) in [
        (&[("username", "NEWT")][..], "is taken"),
        (&[("username", "")], "Enter your user name"),
        (&[("username", "a\u{202e}b")], "cannot be used here"),
        (&[("username", "amy@example.com")], "must be your own"),
        (
            &[("username", "other"), ("address", "nonsense")],
            "such as name@example.com",
        ),
    ] {
        let page = anna.get("/admin/invite");
        tells(
            &post_to(&mut anna, "/admin/invite", &page, fields),
            sentence,
        );
    }
    // Neither a role nor a tenant that is not theirs to give.
    let page = anna.get("/admin/invite");
    for fields in [
        [("username", "spy"), ("role", "office")],
        [("username", "spy"), ("role", "root")],
    ] {
        let answer = post_to(&mut anna, "/admin/invite", &page, &fields);
        answer.assert_error_page(400, "GP1505", "a role");
    }
    let fields = [("username", "spy"), ("tenant", "globex")];
    post_to(&mut anna, "/admin/invite", &page, &fields);
    let sql = "SELECT tenant FROM users WHERE username = 'spy'";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    assert_eq!(row.get::<_, String>(0), "acme");
    let mut boss = boss(&gatepost);
    let page = boss.get("/admin/invite");
    assert!(page.text().contains(">Globex</option>"));
    let fields = [("username", "far"), ("tenant", "initech")];
    let answer = post_to(&mut boss, "/admin/invite", &page, &fields);
    answer.assert_error_page(400, "GP1126", "an unknown tenant");
}
