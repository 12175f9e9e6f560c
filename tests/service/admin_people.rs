//! People at `/admin`: who looks after whom, and what they do to them.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::sign_in;
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::Mailbox;
use crate::support::phone::Phone;
use crate::support::scim::{self, ALL_SCOPES, Program};
use crate::support::tables::rows_of;
use crate::support::waiting::all_at_once;

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
/// What a name or an address of somebody else leads to.
const HELD: &str = "Somebody has this user name or e-mail address already.";
pub(crate) const ON: [(&str, &str); 2] = [
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
pub(crate) fn registered() -> Value {
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

pub(crate) fn start() -> Gatepost {
    Gatepost::start_with(&registered(), &ON)
}

/// A browser in which an administrator has signed in with a code that is so many steps away.
pub(crate) fn admin_by(gatepost: &Gatepost, name: &str, tenant: &str, step: i64) -> Browser {
    signed_in_by(gatepost, name, tenant, step).0
}

/// The same with the answer to the code.
pub(crate) fn signed_in_by(
    gatepost: &Gatepost,
    name: &str,
    tenant: &str,
    step: i64,
) -> (Browser, Answer) {
    let mut browser = gatepost.browser();
    let page = browser.visit(&format!("/admin?tenant={tenant}"));
    let asked = sign_in(&mut browser, &page, name, BOB_PASSWORD);
    let answer = browser.submit(&asked, &[("code", &code(step))]);
    assert_eq!(answer.status, 303, "{name}: {}", answer.text());
    answer.assert_leads_to("/admin/");
    (browser, answer)
}

pub(crate) fn boss(gatepost: &Gatepost) -> Browser {
    admin_by(gatepost, "boss", "", 0)
}

pub(crate) fn anna(gatepost: &Gatepost) -> Browser {
    admin_by(gatepost, "anna", "acme", 0)
}

pub(crate) fn person_page(name: &str) -> String {
    format!("/admin/people/sub%7C{name}")
}

/// Of the app that all administrators have, so many steps away.
fn code(step: i64) -> String {
    Phone::with_key(KEY.to_owned(), 0).code(step)
}

/// Who a search finds.
fn found(browser: &mut Browser, typed: &str) -> String {
    let page = browser.get(&format!("/admin/people?q={typed}"));
    page.assert_status(200);
    let text = page.text();
    let list = text.split("<tbody>").nth(1).unwrap_or_default();
    let names = list
        .split("<bdi>")
        .filter_map(|rest| rest.split_once(" of the office"));
    names.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
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
    for [typed, people] in rows_of(
        "
        a          | abe amy anna
        GUS        | gus
        nora@EX    | nora
        sub%7Croot | root
        my         |
                   | abe amy anna boss gina gus helper nora root tess
    ",
    ) {
        assert_eq!(found(&mut boss, typed), people, "{typed}");
    }
    for [name, tenant, people] in rows_of(
        "
        anna   | acme   | abe amy anna root tess
        gina   | globex | gina gus
        helper |        | abe amy anna root tess
    ",
    ) {
        let mut admin = admin_by(&gatepost, name, tenant, 0);
        assert_eq!(found(&mut admin, ""), people, "{name}");
        assert_eq!(found(&mut admin, "sub%7Cnora"), "", "{name}");
    }
}

/// What a form of that page carries, whichever it is.
fn carried(page: &Answer) -> Vec<(String, String)> {
    let hidden = |name: &str| page.attribute(&format!("name=\"{name}\""), "value");
    let names = ["form_token", "version", "batch"].into_iter();
    names
        .filter_map(|name| Some((name.to_owned(), hidden(name)?)))
        .collect()
}

/// Posts a form of that page to an address.
pub(crate) fn post_to(
    browser: &mut Browser,
    address: &str,
    page: &Answer,
    fields: &[(&str, &str)],
) -> Answer {
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
pub(crate) fn act(browser: &mut Browser, name: &str, fields: &[(&str, &str)]) -> Answer {
    let address = person_page(name);
    let page = browser.get(&address);
    assert_eq!(page.status, 200, "{name}: {}", page.text());
    post_to(browser, &address, &page, fields)
}

pub(crate) fn is_done(answer: &Answer) {
    tells(answer, r#"class="notice done""#);
    answer.assert_header("cache-control", "no-store");
}

pub(crate) fn tells(answer: &Answer, sentence: &str) {
    answer.assert_status(200);
    answer.assert_says(sentence);
}

/// Sends the form for somebody new.
fn invite(admin: &mut Browser, fields: &[(&str, &str)]) -> Answer {
    let page = admin.get("/admin/invite");
    post_to(admin, "/admin/invite", &page, fields)
}

pub(crate) fn row(gatepost: &Gatepost, name: &str) -> Value {
    let sql = "SELECT to_jsonb(u) - 'updated_at' AS user FROM users u WHERE sub = $1";
    let sub = format!("sub|{name}");
    let found = gatepost.database.client().query_one(sql, &[&sub]).unwrap();
    found.get(0)
}

/// The events about somebody that administrators caused.
pub(crate) fn events(gatepost: &Gatepost, sub: &str) -> Vec<(String, Value)> {
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
pub(crate) fn choose_password(gatepost: &Gatepost, link: &str, password: &str) -> Answer {
    let mut browser = gatepost.browser();
    let page = browser.visit(link);
    browser.submit(
        &page,
        &[("new_password", password), ("new_password_again", password)],
    )
}

pub(crate) fn shown_link(answer: &Answer) -> String {
    let text = answer.text();
    let (_, rest) = text.split_once("link-shown\">").expect("a link");
    rest.split_once('<').unwrap().0.to_owned()
}

#[test]
fn an_office_managers_week() {
    let gatepost = start();
    let version = || -> i64 {
        let sql = "SELECT registry_version FROM installation";
        gatepost.database.value(sql, &[])
    };
    let before = version();
    let mut boss = boss(&gatepost);
    // Who cannot sign in.
    let page = boss.get(&person_page("tess"));
    for part in "Acme/sales/App that shows codes/This address is confirmed./Enabled".split('/') {
        tells(&page, part);
    }
    let mut amy = signed_in_as(&gatepost, "amy", "acme");
    let mut elsewhere = signed_in_as(&gatepost, "amy", "acme");
    // Another duty.
    let other_duty = [
        ("name", "Amy Ames"),
        ("address", "amy@example.com"),
        ("role", "sales"),
        ("role", "staff"),
        ("decision", "save"),
    ];
    is_done(&act(&mut boss, "amy", &other_duty));
    assert_eq!(
        row(&gatepost, "amy")["claims"],
        json!({"name": "Amy Ames", "email": "amy@example.com", "email_verified": true, "role": ["sales", "staff"]})
    );
    let told = events(&gatepost, "sub|amy");
    assert_eq!(told[0].1["old"], json!({"role": ["staff"]}));
    assert_eq!(told[0].1["new"], json!({"role": ["sales", "staff"]}));
    let saved = state(&gatepost);
    is_done(&act(&mut boss, "amy", &other_duty));
    assert_eq!(state(&gatepost), saved, "nothing to save");
    assert!(is_signed_in(&mut amy), "roles end nothing");
    let [name, ..] = other_duty;
    let fields = [name, ("address", "new@example.com"), ("decision", "save")];
    is_done(&act(&mut boss, "amy", &fields));
    assert_eq!(
        row(&gatepost, "amy")["claims"],
        json!({"name": "Amy Ames", "email": "new@example.com", "email_verified": false})
    );
    // A laptop was stolen.
    let page = boss.get(&person_page("amy"));
    assert_eq!(page.text().matches("value=\"end_session\"").count(), 2);
    let sid = page.attribute("name=\"session\"", "value").unwrap();
    let end = [("session", sid.as_str()), ("decision", "end_session")];
    is_done(&act(&mut boss, "amy", &end));
    let live = [is_signed_in(&mut amy), is_signed_in(&mut elsewhere)];
    assert_eq!(live.iter().filter(|lives| **lives).count(), 1);
    is_done(&act(&mut boss, "amy", &end));
    is_done(&act(&mut boss, "amy", &[("decision", "end_all")]));
    assert!(!is_signed_in(&mut amy) && !is_signed_in(&mut elsewhere));
    // Somebody leaves, and comes back.
    let mut amy = signed_in_as(&gatepost, "amy", "acme");
    is_done(&act(&mut boss, "amy", &[("decision", "disable")]));
    assert!(!is_signed_in(&mut amy));
    assert_eq!(row(&gatepost, "amy")["enabled"], json!(false));
    assert!(boss.get("/admin/people?q=amy").text().contains("Disabled"));
    let page = boss.get(&person_page("amy"));
    let enable = [("decision", "enable")];
    is_done(&act(&mut boss, "amy", &enable));
    let told = events(&gatepost, "sub|amy").len();
    is_done(&post_to(&mut boss, &person_page("amy"), &page, &enable));
    is_done(&act(&mut boss, "amy", &enable));
    assert_eq!(events(&gatepost, "sub|amy").len(), told, "confirmed");
    signed_in_as(&gatepost, "amy", "acme");
    // A telephone was lost.
    is_done(&act(&mut boss, "tess", &[("decision", "remove_factors")]));
    let tess = row(&gatepost, "tess");
    assert_eq!(tess["strongest_acr"], "1");
    assert_eq!(tess["factors"], 2);
    signed_in_as(&gatepost, "tess", "acme");
    // A password was forgotten; there is no e-mail.
    let reset = act(&mut boss, "tess", &[("decision", "reset")]);
    let link = shown_link(&reset);
    tells(&reset, "nobody else");
    boss.get(&person_page("tess"))
        .assert_says_not_for("shown once", "/account/link");
    choose_password(&gatepost, &link, "another password of tess").assert_status(303);
    // No process has to read the registry anew.
    assert_eq!(version(), before);
    let told = |sub: &str| -> String {
        let all = events(&gatepost, sub);
        let by_her = all.iter().all(|(_, detail)| detail["admin"] == "sub|boss");
        assert!(by_her, "{all:?}");
        let events: Vec<&str> = all.iter().map(|(event, _)| event.as_str()).collect();
        events.join(" ")
    };
    let of_amy = "user_changed user_changed session_ended user_revoked user_changed user_changed";
    assert_eq!(told("sub|amy"), of_amy);
    assert_eq!(told("sub|tess"), "factor_removed link_made");
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
    assert_eq!(told[0].0.as_str(), "user_added");
    assert_eq!(told[0].1["admin"], "sub|anna");
    assert_eq!(told[0].1["new"], json!({"role": ["staff"]}));
    let other = ("username", "other");
    for (fields, sentence) in [
        (&[("username", "NEWT")][..], "is taken"),
        (&[("username", "")], "cannot be used here"),
        (&[("username", "a\u{202e}b")], "cannot be used here"),
        (&[("username", "amy@example.com")], "must be the same as"),
        (
            &[other, ("address", "nonsense")],
            "such as name@example.com",
        ),
        (&[other, ("address", "AMY@example.com")], HELD),
    ] {
        tells(&invite(&mut anna, fields), sentence);
    }
    // Neither a role nor a tenant that is not theirs to give.
    for role in ["office", "root"] {
        let answer = invite(&mut anna, &[("username", "spy"), ("role", role)]);
        answer.assert_error_page(400, "GP1505", "a role");
    }
    invite(&mut anna, &[("username", "spy"), ("tenant", "globex")]);
    let sql = "SELECT tenant FROM users WHERE username = 'spy'";
    assert_eq!(gatepost.database.value::<String>(sql, &[]), "acme");
    let mut boss = boss(&gatepost);
    let page = boss.get("/admin/invite");
    assert!(page.text().contains(">Globex</option>"));
    let fields = [("username", "far"), ("tenant", "initech")];
    let answer = post_to(&mut boss, "/admin/invite", &page, &fields);
    answer.assert_error_page(400, "GP1126", "an unknown tenant");
}

pub(crate) fn start_with_mail(mailbox: &Mailbox) -> Gatepost {
    let mut all = mailbox.settings().to_vec();
    all.extend(ON);
    Gatepost::start_with(&registered(), &all)
}

#[test]
fn with_mail_a_link_goes_to_the_confirmed_address_and_to_no_other() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let reset = act(&mut boss, "tess", &[("decision", "reset")]);
    tells(&reset, "on its way to");
    assert!(!reset.text().contains("/account/link"), "{}", reset.text());
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["tess@example.com"]);
    // It asks for the second factor, which stays.
    let mut browser = gatepost.browser();
    let asked = browser.visit(letter.link());
    let form = browser.submit(&asked, &[("code", &code(0))]);
    let form = browser.follow(form);
    let new = "another password of tess";
    let set = browser.submit(&form, &[("new_password", new), ("new_password_again", new)]);
    assert_eq!(set.status, 303, "{}", set.text());
    assert_eq!(row(&gatepost, "tess")["strongest_acr"], json!("2"));
    let set = mailbox.letter(2).text;
    set.assert_says("password of your account was set");

    // Another address is not confirmed. The old one is told, and no link goes to the new one.
    let fields = [
        ("name", "x"),
        ("address", "thief@example.com"),
        ("decision", "save"),
    ];
    is_done(&act(&mut boss, "tess", &fields));
    let notice = mailbox.letter(3);
    assert_eq!(notice.to, ["tess@example.com"]);
    for said in ["another e-mail address", "did this.", "When: "] {
        notice.text.assert_says(said);
    }
    for unsaid in ["127.0.0.1", "Browser"] {
        notice.text.assert_says_not(unsaid);
    }
    is_done(&act(&mut boss, "tess", &[("decision", "remove_factors")]));
    let refused = act(&mut boss, "tess", &[("decision", "reset")]);
    tells(&refused, "the e-mail address is not confirmed");
    assert!(!refused.text().contains("/account/link"));
    // Link, address, factors.
    assert_eq!(events(&gatepost, "sub|tess").len(), 3);

    // Somebody new gets theirs at the address of the invitation, and another one there.
    let nowhere = [("username", "newt"), ("address", "")];
    tells(&invite(&mut boss, &nowhere), "such as name@example.com");
    let fields = [
        ("username", "newt"),
        ("address", "newt@example.com"),
        ("tenant", "acme"),
    ];
    let invited = invite(&mut boss, &fields);
    tells(&invited, "newt@example.com");
    assert!(!invited.text().contains("/account/link"));
    let first = mailbox.letter(4);
    assert_eq!(first.to, ["newt@example.com"]);
    assert!(first.subject.contains("Your account"), "{}", first.subject);
    let reset = [("decision", "reset")];
    let again = post_to(&mut boss, &invited.action(), &invited, &reset);
    tells(&again, "on its way to");
    let second = mailbox.letter(5);
    choose_password(&gatepost, second.link(), BOB_PASSWORD).assert_status(303);
    signed_in_as(&gatepost, "newt", "acme");
    let over = gatepost.browser().get(first.link());
    over.assert_error_page(400, "GP1810", "one of the two");
}

#[test]
fn an_invitation_says_who_invites_to_which_company_and_what_to_do_if_it_was_unexpected() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let name = format!("\u{202e}<b>Olivia</b>\r\n\u{2066}Office {}", "x".repeat(60));
    let sql = "UPDATE users SET claims = claims || $1 WHERE username = 'boss'";
    let claims = json!({"name": name});
    gatepost.database.client().execute(sql, &[&claims]).unwrap();
    let shown = format!("<b>Olivia</b>Office {}", "x".repeat(40));
    assert_eq!(shown.len(), 60);
    for (number, tenant, company) in [(1, "acme", "Acme"), (2, "", "Gatepost")] {
        let username = format!("newt{number}");
        let fields = [
            ("username", username.as_str()),
            ("name", "Newt <i>Neu</i>"),
            ("address", "newt@example.com"),
            ("tenant", tenant),
        ];
        tells(&invite(&mut boss, &fields), "on its way to");
        let letter = mailbox.letter(number);
        for line in [
            "Hello Newt <i>Neu</i>,",
            &format!("{shown} invited you."),
            &format!("An account was made for you at {company}."),
            &format!("Account: {username}"),
            "If you did not expect this e-mail, you need not do anything: nothing changes unless \
             the link is used. Do not pass it on to anybody.",
        ] {
            let is_said = letter.text.lines().any(|one| one == line);
            assert!(is_said, "{line}: {}", letter.text);
            let escaped = line.replace('<', "&lt;").replace('>', "&gt;");
            letter.html().assert_says_for(line, &escaped);
        }
        assert!(!letter.html().contains("<b>") && !letter.html().contains("<i>"));
        let path = letter.link().strip_prefix(gatepost.origin()).unwrap();
        assert!("https://login.example.com".len() + path.len() <= 250);
    }
}

#[test]
fn no_letter_about_somebody_new_goes_where_an_administrator_sends_it_later() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let fields = [("username", "newt"), ("address", "newt@example.com")];
    let invited = invite(&mut boss, &fields);
    tells(&invited, "on its way to");
    mailbox.letter(1);
    let address = invited.action();
    for to in ["thief@example.com", "", "newt@example.com"] {
        let page = boss.get(&address);
        let fields = [("address", to), ("decision", "save")];
        is_done(&post_to(&mut boss, &address, &page, &fields));
        let page = boss.get(&address);
        let reset = post_to(&mut boss, &address, &page, &[("decision", "reset")]);
        tells(&reset, "the e-mail address is not confirmed");
        assert!(reset.text().contains("GP1832") || gatepost.log().contains("GP1832"));
    }
    let over = gatepost.browser().get(mailbox.letter(1).link());
    assert_eq!(over.status, 303, "{}", over.text());
}

#[test]
fn a_link_of_an_administrator_ends_when_roles_change_theirs_or_whose_it_is() {
    let mailbox = Mailbox::open();
    let new = "a password of the administrator";
    let late = [("new_password", new), ("new_password_again", new)];
    for with_mail in [true, false] {
        let gatepost = match with_mail {
            true => start_with_mail(&mailbox),
            false => start(),
        };
        let link_by = |browser: &mut Browser| {
            let before = mailbox.count();
            let reset = act(browser, "amy", &[("decision", "reset")]);
            match with_mail {
                true => {
                    // A notice may come first.
                    let mut letters = (before + 1..).map(|number| mailbox.letter(number));
                    let with_link = letters.find(|letter| letter.text.contains("/account/link"));
                    with_link.unwrap().link().to_owned()
                }
                false => shown_link(&reset),
            }
        };
        let is_over = |link: &str, what: &str| {
            let over = gatepost.browser().get(link);
            over.assert_error_page(400, "GP1810", what);
        };
        let mut boss = boss(&gatepost);
        let link = link_by(&mut boss);
        let mut open = gatepost.browser();
        let form = open.visit(&link);
        gatepost.run_line("user role amy --tenant acme --add root");
        is_over(&link, "a role that they cannot give");
        assert_eq!(open.submit(&form, &late).status, 400, "opened before");
        gatepost.run_line("user role amy --tenant acme --remove root");
        let link = link_by(&mut boss);
        let first = "a first password of hers";
        choose_password(&gatepost, &link, first).assert_status(303);

        let mut helper = admin_by(&gatepost, "helper", "", 0);
        let link = link_by(&mut helper);
        let form = open.visit(&link);
        gatepost.run_line("user role helper --remove office:acme");
        is_over(&link, "no administrator any more");
        assert_eq!(open.submit(&form, &late).status, 400, "opened before");
        gatepost.run_line("user role helper --add office:globex");
        is_over(&link, "an administrator of others");
        gatepost.run_line("user role helper --remove office:globex");
        gatepost.run_line("user role helper --add office:acme");
        gatepost.run_sql("UPDATE users SET enabled = false WHERE sub = 'sub|helper'");
        is_over(&link, "disabled");
        gatepost.run_sql("UPDATE users SET enabled = true WHERE sub = 'sub|helper'");
        // Whoever is an administrator again stands by it.
        choose_password(&gatepost, &link, new).assert_status(303);
        let link = link_by(&mut helper);
        assert_eq!(gatepost.browser().get(&link).status, 303);
        gatepost.run_line("user remove helper");
        is_over(&link, "removed");
    }
}

#[test]
fn nobody_is_called_by_the_address_of_somebody_else() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut anna = anna(&gatepost);
    let before = state(&gatepost);
    for address in ["root@example.com", "ROOT@example.com"] {
        let fields = [("username", address), ("address", address)];
        tells(&invite(&mut anna, &fields), "is taken");
    }
    assert_eq!(state(&gatepost), before);
    let newt = "newt@example.com";
    let invited = invite(&mut anna, &[("username", newt), ("address", newt)]);
    tells(&invited, "on its way to");
    let page = anna.get(&invited.action());
    let fields = [("address", "other@example.com"), ("decision", "save")];
    let refused = post_to(&mut anna, &invited.action(), &page, &fields);
    tells(&refused, "must be the same as");
}

#[test]
fn a_new_address_becomes_the_user_name_of_whoever_is_called_by_it() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let newt = "newt@example.com";
    let invited = invite(&mut anna, &[("username", newt), ("address", newt)]);
    tells(&invited, "A new address becomes their user name, too");
    let address = invited.action();
    let to = |anna: &mut Browser, new: &str| {
        let page = anna.get(&address);
        let fields = [
            ("address", new),
            ("also_username", "true"),
            ("decision", "save"),
        ];
        post_to(anna, &address, &page, &fields)
    };
    for taken in ["root@example.com", "AMY@example.com"] {
        tells(&to(&mut anna, taken), "is taken");
    }
    // Of another tenant.
    is_done(&to(&mut anna, "gus@example.com"));
    is_done(&to(&mut anna, "drake@example.com"));
    let sql = "SELECT count(*) FROM users WHERE username = 'drake@example.com'
        AND username_key = username AND claims->>'email' = username";
    assert_eq!(gatepost.database.value::<i64>(sql, &[]), 1);
    // Nobody else is renamed by it.
    let fields = [
        ("name", "x"),
        ("address", "x@example.com"),
        ("also_username", "true"),
        ("decision", "save"),
    ];
    is_done(&act(&mut anna, "amy", &fields));
    assert_eq!(row(&gatepost, "amy")["username"], "amy");
    let held = [
        ("name", "x"),
        ("address", "DRAKE@example.com"),
        ("decision", "save"),
    ];
    tells(&act(&mut anna, "amy", &held), HELD);
}

#[test]
fn letters_to_one_person_are_counted() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let reset = [("decision", "reset")];
    for number in 1..=10 {
        tells(&act(&mut boss, "amy", &reset), "on its way to");
        mailbox.letter(number);
    }
    let refused = act(&mut boss, "amy", &reset);
    refused.assert_error_page(429, "GP1502", "the eleventh of an hour");
    tells(&act(&mut boss, "tess", &reset), "on its way to");
    assert_eq!(mailbox.letter(11).to, ["tess@example.com"]);
}

/// Each form of a person's page.
const DEEDS: [&[(&str, &str)]; 7] = [
    &[
        ("name", "x"),
        ("address", "thief@example.com"),
        ("decision", "save"),
    ],
    &[("decision", "reset")],
    &[("decision", "disable")],
    &[("decision", "enable")],
    &[("decision", "end_all")],
    &[("decision", "end_session"), ("session", "SID")],
    &[("decision", "remove_factors")],
];

#[test]
fn who_is_out_of_reach_is_not_there() {
    let gatepost = start();
    signed_in_as(&gatepost, "gus", "globex");
    let sql = "SELECT sid FROM sessions WHERE sub = 'sub|gus'";
    let sid: String = gatepost.database.value(sql, &[]);
    let mut anna = anna(&gatepost);
    let own = anna.get(&person_page("amy"));
    let mut gina = admin_by(&gatepost, "gina", "globex", 0);
    let of_b = gina.get(&person_page("gus"));
    let before = state(&gatepost);
    let unknown = anna.get(&person_page("nobody"));
    is_nothing(&unknown, "unknown");
    let plain = |answer: &Answer| {
        let text = answer.text();
        let (before, rest) = text.split_once("<code>").unwrap();
        format!("{before}{}", rest.split_once("</code>").unwrap().1)
    };
    let mut tried = 0;
    for name in ["gus", "gina", "nora", "boss", "helper", "nobody"] {
        let address = person_page(name);
        let shown = anna.get(&address);
        is_nothing(&shown, name);
        assert_eq!(plain(&shown), plain(&unknown), "{name}: one and the same");
        for deed in DEEDS {
            let deed = deed.iter().map(|(field, value)| match *value {
                "SID" => (*field, sid.as_str()),
                value => (*field, value),
            });
            let deed: Vec<(&str, &str)> = deed.collect();
            // With the form of one of their own people, and with that of the other administrator.
            for page in [&own, &of_b] {
                is_nothing(&post_to(&mut anna, &address, page, &deed), name);
                tried += 1;
            }
        }
    }
    // A session of somebody else's, on the page of one of their own.
    let own_page = person_page("amy");
    let fields = [("session", sid.as_str()), ("decision", "end_session")];
    let answer = post_to(&mut anna, &own_page, &own, &fields);
    tells(&answer, "was changed meanwhile");
    let paths = "people/ people/%00 people/%ff people/sub%7Camy/more nothing people/sub|gus";
    for path in paths.split(' ') {
        is_nothing(&anna.get(&format!("/admin/{path}")), path);
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
    assert_eq!(state(&gatepost), before);
}

#[test]
fn nobody_acts_on_themselves_on_administrators_or_on_whoever_has_more_roles() {
    let gatepost = start();
    signed_in_as(&gatepost, "root", "acme");
    let mut anna = anna(&gatepost);
    let mut boss = boss(&gatepost);
    let before = state(&gatepost);
    for (browser, names) in [
        (&mut anna, &["anna", "root"][..]),
        (&mut boss, &["boss", "helper", "anna", "gina", "root"]),
    ] {
        for name in names {
            let address = person_page(name);
            let page = browser.get(&address);
            tells(&page, "You cannot change this person");
            assert!(!page.text().contains("<form"), "{name}");
            // The token of another page is for nobody here.
            let other = browser.get(&person_page("amy"));
            for deed in DEEDS {
                let answer = post_to(browser, &address, &other, deed);
                tells(&answer, "nothing was done");
            }
        }
    }
    assert_eq!(state(&gatepost), before);
}

#[test]
fn a_form_counts_for_one_person_in_one_session_as_they_were() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let mut boss = boss(&gatepost);
    let of_amy = anna.get(&person_page("amy"));
    let of_boss = boss.get(&person_page("abe"));
    let before = state(&gatepost);
    for deed in DEEDS {
        for page in [&of_amy, &of_boss] {
            let answer = post_to(&mut anna, &person_page("abe"), page, deed);
            tells(&answer, "The sign-in in this browser changed");
        }
    }
    // From elsewhere, and by a token in a header.
    let address = person_page("amy");
    let fields = [("decision", "disable")];
    let foreign = anna.post_from(&address, &[("Origin", "https://evil.example")], &fields);
    foreign.assert_error_page(403, "GP1009", "another origin");
    assert_eq!(state(&gatepost), before);

    // Somebody gives them a role, or moves them, between the page and the form.
    let role = "claims = claims || '{\"role\": [\"root\"]}'";
    for (what, change) in [
        ("a role", role),
        (
            "another tenant",
            "claims = claims - 'role', tenant = 'globex'",
        ),
        ("back again", "tenant = 'acme', enabled = true"),
    ] {
        let page = anna.get(&address);
        gatepost.run_sql(&format!("UPDATE users SET {change} WHERE sub = 'sub|amy'"));
        let before = state(&gatepost);
        for deed in DEEDS {
            let page = if page.status == 200 { &page } else { &of_amy };
            let answer = post_to(&mut anna, &address, page, deed);
            let text = answer.text();
            // They are enabled: that is confirmed.
            let is_told = text.contains("nothing was done")
                || text.contains("You cannot change")
                || deed == [("decision", "enable")] && text.contains(" can sign in again.")
                || answer.status == 404;
            assert!(is_told, "{what} {deed:?}: {text}");
        }
        assert_eq!(state(&gatepost), before, "{what}");
    }
    is_done(&act(&mut anna, "amy", &[("decision", "disable")]));
}

#[test]
fn the_statement_that_writes_asks_once_more() {
    // Ten at once, each with what it read: one writes.
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let amy = person_page("amy");
    let page = anna.get(&amy);
    let answers = all_at_once(10, |_| {
        post_to(&mut anna.clone(), &amy, &page, &[("decision", "end_all")])
    });
    let done = |answer: &&Answer| answer.text().contains(" is signed out everywhere.");
    assert_eq!(answers.iter().filter(done).count(), 1);
    assert_eq!(events(&gatepost, "sub|amy").len(), 1);
}

#[test]
fn a_page_needs_the_role_a_strong_sign_in_and_no_token() {
    let gatepost = start();
    // Without a session: to sign in, whoever they are.
    let mut nobody = gatepost.browser();
    let sent = nobody.get("/admin/people/sub%7Camy");
    sent.assert_leads_to("/login?r=");
    let asked = nobody.follow(sent);
    tells(&asked, "to look after people and applications");
    // Whoever has no such role learns nothing.
    let mut amy = signed_in_as(&gatepost, "amy", "acme");
    for path in "/admin /admin/people /admin/invite /admin/people/sub%7Camy".split(' ') {
        is_nothing(&amy.get(path), path);
        is_nothing(&amy.post(path, &[("decision", "disable")]), path);
    }
    let headers = [("Authorization", "Bearer something")];
    let by_token = gatepost.send("GET", "/admin/people", &headers, b"");
    assert!(by_token.location().starts_with("/login?r="));
    // A password alone is not enough, where the role is there.
    let mut boss = gatepost.browser();
    let page = boss.visit("/account");
    let asked = sign_in(&mut boss, &page, "boss", BOB_PASSWORD);
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(boss.get("/admin/people").location().starts_with("/login"));
    let mut boss = admin_by(&gatepost, "boss", "", 0);
    assert_eq!(boss.get("/admin/people").status, 200);
    gatepost.run_sql("UPDATE sessions SET acr = '1', amr = '{pwd}' WHERE sub = 'sub|boss'");
    let sent = boss.get("/admin/people");
    assert!(sent.location().starts_with("/login?r="), "{}", sent.text());
    let page = boss.follow(sent);
    let back = boss.submit(&page, &[("code", &code(1))]);
    assert_eq!(back.location(), "/admin/people");
    assert_eq!(boss.get("/admin/people").status, 200);
    // The role is asked at each request.
    gatepost.run_well(&["user", "role", "boss", "--remove", "office"], "");
    is_nothing(&boss.get("/admin/people"), "no longer");
    let form = [("decision", "disable"), ("form_token", "x")];
    is_nothing(&boss.post(&person_page("amy"), &form), "no longer");
}

#[test]
fn what_was_looked_for_is_still_there_after_the_sign_in() {
    let gatepost = start();
    for [path, back] in rows_of("
        /admin/people?q=amy%20%26%20b&tenant=acme&ui_locales=de | /admin/people?q=amy+%26+b&ui_locales=de
        /admin/audit?person=amy&day=2026-01-01&tenant=acme      | /admin/audit?person=amy&day=2026-01-01
        /admin?tenant=acme                                      | /admin/
    ") {
        let mut browser = gatepost.browser();
        let page = browser.visit(path);
        let asked = sign_in(&mut browser, &page, "anna", BOB_PASSWORD);
        gatepost.run_sql("UPDATE authenticators SET last_step = 0");
        let answer = browser.submit(&asked, &[("code", &code(0))]);
        assert_eq!(answer.location(), back, "{path}");
        assert_eq!(browser.get(answer.location()).status, 200, "{path}");
    }
}

#[test]
fn nobody_learns_of_other_tenants_by_a_name_that_is_taken() {
    let gatepost = start();
    gatepost.database.run(
        "INSERT INTO users (sub, tenant, enabled, claims) VALUES ('nameless-b', 'globex', true, '{}'), ('nameless-a', 'acme', true, '{}')",
    );
    let mut anna = anna(&gatepost);
    let mut invited = |name: &str| {
        invite(
            &mut anna,
            &[("username", name), ("address", "new@example.com")],
        )
    };
    tells(&invited("nameless-a"), "This user name is taken");
    shown_link(&invited("nameless-b"));
}

#[test]
fn a_change_needs_a_sign_in_of_the_last_hour() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let page = anna.get("/admin/invite");
    let older = "auth_time = auth_time - interval '61 minutes'";
    gatepost.run_sql(&format!(
        "UPDATE sessions SET {older} WHERE sub = 'sub|anna'"
    ));
    let before = state(&gatepost);
    anna.get(&person_page("amy"))
        .assert_status_for("to read it is enough", 200);
    let sent = act(&mut anna, "amy", &[("decision", "disable")]);
    assert_eq!(sent.status, 303);
    for much_is_typed_at in ["/admin/invite", "/admin/invite-several"] {
        let asked = anna.get(much_is_typed_at);
        assert!(asked.location().starts_with("/login?r="));
    }
    let invited = post_to(&mut anna, "/admin/invite", &page, &[("username", "newt")]);
    assert!(invited.location().starts_with("/login?r="));
    assert_eq!(state(&gatepost), before);
    let page = anna.follow(sent);
    page.assert_says_for("a session, but too old", "name=\"password\"");
    let asked = sign_in(&mut anna, &page, "anna", BOB_PASSWORD);
    let back = anna.submit(&asked, &[("code", &code(1))]);
    let undone = format!("{}?signed_in=anew", person_page("amy"));
    assert_eq!(back.location(), undone, "{}", back.text());
    let page = anna.follow(back);
    tells(&page, "more than an hour old, so nothing was done");
    let page = anna.get("/admin/invite?signed_in=anew");
    tells(&page, "so nothing was done");
    is_done(&act(&mut anna, "amy", &[("decision", "disable")]));
}

#[test]
fn a_passkey_can_be_required() {
    let phr = [ON[0], ON[1], ("GATEPOST_ADMIN_MINIMUM_ACR", "phr")];
    let gatepost = Gatepost::start_with(&registered(), &phr);
    let mut browser = gatepost.browser();
    let page = browser.visit("/admin");
    let asked = sign_in(&mut browser, &page, "boss", BOB_PASSWORD);
    let added = browser.submit(&asked, &[("code", &code(0))]);
    tells(&added, "Add a passkey");
    browser.get("/admin/people").assert_leads_to("/login?r=");
    for [role, given] in rows_of(
        "
        office      | staff,office
        office      | office:acme
        a,b         | staff
        office:acme | staff
    ",
    ) {
        let settings = [
            ("GATEPOST_ADMIN_ROLE", role),
            ("GATEPOST_ADMIN_ROLES", given),
        ];
        let refused = Gatepost::prepare(&settings).run(&["serve"], "");
        assert_eq!(refused.status.code(), Some(78), "{role} {given}");
    }
}

#[test]
fn what_is_typed_is_kept_shown_or_refused_and_never_breaks_a_page() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    let long = "ä".repeat(10_000);
    let texts = [
        "<script>alert(1)</script>",
        "\u{202e}evil\u{200f}",
        "\"'><b>&amp;",
        long.as_str(),
        "\u{0}",
        "a\nb\tc",
    ];
    let is_harmless = |answer: &Answer, statuses: &[u16], case: &str| {
        assert!(
            statuses.contains(&answer.status),
            "{case}: {}",
            answer.status
        );
        answer.assert_says_not_for(case, "<script>alert");
        answer.assert_says_not_for(case, "<b>&");
    };
    for (index, text) in texts.iter().enumerate() {
        for field in "name address role session version decision form_token".split(' ') {
            let mut fields = vec![
                ("name", "Amy"),
                ("address", "amy@example.com"),
                ("decision", "save"),
            ];
            fields.retain(|(name, _)| *name != field);
            fields.push((field, text));
            let page = boss.get(&person_page("amy"));
            let carried = carried(&page);
            let carried = carried.iter().filter(|(name, _)| name != field);
            let carried = carried.map(|(name, value)| (name.as_str(), value.as_str()));
            let all: Vec<(&str, &str)> = carried.chain(fields).collect();
            let answer = boss.post(&person_page("amy"), &all);
            is_harmless(&answer, &[200, 400], &format!("{field} {index}"));
        }
        for field in ["username", "name", "address", "tenant", "role"] {
            let mut fields = vec![("username", "newt"), ("address", "nowhere")];
            fields.retain(|(name, _)| *name != field);
            fields.push((field, text));
            let answer = invite(&mut boss, &fields);
            is_harmless(&answer, &[200, 400], &format!("{field} {index}"));
        }
        let query = form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let answer = boss.get(&format!("/admin/people?q={query}"));
        is_harmless(&answer, &[200, 400, 414], &format!("q {index}"));
    }
    let claims = row(&gatepost, "amy")["claims"].clone();
    assert_eq!(claims["email"], "amy@example.com");
    let name = claims["name"].as_str().unwrap();
    assert!(name.chars().count() <= 200, "{name}");
}

#[test]
fn programs_neither_make_nor_unmake_administrators() {
    let mut with_hr = scim::registered();
    with_hr["users"] = registered()["users"].clone();
    let mut gatepost = Gatepost::start_with(&with_hr, &[ON[0], ON[1], scim::ON[0]]);
    let hr = Program::new(&gatepost, "hr", ALL_SCOPES);
    let role = |role: &str| json!([{"value": role}, {"value": "staff"}]);
    let made = hr.add(json!({"userName": "mole", "roles": role("office")}));
    assert_eq!(made["roles"], json!([{"value": "staff"}]));
    let add = json!([{"op": "add", "path": "roles", "value": role("office:acme")}]);
    let changed = hr.patch("sub%7Cnora", add);
    changed.assert_member("roles", json!([{"value": "staff"}]));
    let before = row(&gatepost, "boss");
    for operation in [
        json!({"op": "remove", "path": "roles"}),
        json!({"op": "replace", "path": "displayName", "value": "x"}),
        json!({"op": "replace", "path": "emails", "value": [{"value": "thief@example.com"}]}),
        json!({"op": "replace", "path": "password", "value": "a password of the thief"}),
        json!({"op": "add", "path": "externalId", "value": "7"}),
    ] {
        let refused = hr.patch("sub%7Cboss", json!([operation]));
        refused.assert_status_for(operation, 403);
    }
    let deleted = hr.ask("DELETE", "Users/sub%7Cboss", &json!({}));
    deleted.assert_status(403);
    assert_eq!(row(&gatepost, "boss"), before);
    let disabled = hr.replace("sub%7Cboss", "active", false);
    disabled.assert_status(200);
    assert_eq!(row(&gatepost, "boss")["enabled"], json!(false));
    let dropped = "the role of administrators: dropped";
    assert_eq!(gatepost.log().matches(dropped).count(), 2);
    gatepost.set("GATEPOST_SMTP_URL", "smtp://localhost:9");
    gatepost.set("GATEPOST_MAIL_FROM", "gatepost@login.example");
    let make = "signup make --uses 1 --for 1d --role office";
    let refused = gatepost.refusal(&make.split(' ').collect::<Vec<_>>(), "");
    refused.assert_says("--role must not be one of administrators");
}
