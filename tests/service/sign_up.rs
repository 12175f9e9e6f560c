//! `gatepost signup` and `/join`: links by which people make accounts themselves.

use std::thread;
use std::time::Duration;

use gatepost::protocol::words::identifiers::Subject;
use gatepost::protocol::words::secret::SecretText;
use gatepost::store::StoreError;
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::sign_up_links::{self, NewMember, SignUpLink};
use gatepost::tool::statements::sign_up_changes;
use serde_json::{Value, json};

use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::Mailbox;
use crate::support::postgres::TestDatabase;
use crate::support::waiting::{SOON, await_that};

const NEW: &str = "a password of their own choosing";
const SIGNED_UP: &str = "audit_events WHERE event = 'signed_up'";

fn start(mailbox: &Mailbox) -> Gatepost {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme"}]);
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({
        "username": "held", "password": BOB_PASSWORD, "claims": {"email": "Held@example.com"},
    }));
    let mut all = mailbox.settings().to_vec();
    all.push(("GATEPOST_SIGN_IN_WITH", "username,email"));
    Gatepost::start_with(&registered, &all)
}

fn make(gatepost: &Gatepost, options: &[&str]) -> String {
    let usual = ["signup", "make", "--uses", "5", "--for", "14d"];
    let link = gatepost.run_well(&[&usual, options].concat(), "");
    let link = link.trim().to_owned();
    let begins = format!("{}/join?l=gpj_", gatepost.base_url);
    assert!(link.starts_with(&begins), "{link}");
    link
}

fn opened(browser: &mut Browser, link: &str) -> Answer {
    let opened = browser.get(link);
    assert_eq!(opened.status, 303, "{}", opened.text());
    let (_, key) = link.split_once("?l=").unwrap();
    assert!(!opened.location().contains(key), "{}", opened.location());
    browser.follow(opened)
}

/// Asks for a letter to that address; answers what the page says.
fn ask(gatepost: &Gatepost, link: &str, address: &str) -> Answer {
    ask_by(gatepost.browser(), link, address)
}

/// The same from that address of the network.
fn ask_from(gatepost: &Gatepost, source: &str, link: &str, address: &str) -> Answer {
    let mut browser = gatepost.browser();
    browser.headers = vec![(String::from("X-Forwarded-For"), source.to_owned())];
    ask_by(browser, link, address)
}

fn ask_by(mut browser: Browser, link: &str, address: &str) -> Answer {
    let page = opened(&mut browser, link);
    let form = [("address", address)];
    browser.submit(&page, &form)
}

fn send(browser: &mut Browser, page: &Answer, username: &str) -> Answer {
    let form = [
        ("username", username),
        ("name", "New Comer"),
        ("new_password", NEW),
        ("new_password_again", NEW),
    ];
    browser.submit(page, &form)
}

fn signs_in(gatepost: &Gatepost, typed: &str, changes: &[(&str, &str)]) -> bool {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, changes));
    sign_in(&mut browser, &page, typed, NEW).status == 303
}

fn listed(gatepost: &Gatepost) -> Value {
    serde_json::from_str(&gatepost.run_well(&["signup", "list", "--json"], "")).unwrap()
}

fn is_over(answer: &Answer, what: &str) {
    answer.assert_error_page(400, "GP1810", what);
}

#[test]
fn somebody_proves_an_address_makes_an_account_and_signs_in() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let options = "--tenant acme --role guest --domain Example.com".split(' ');
    let link = make(&gatepost, &Vec::from_iter(options));
    let told = ask(&gatepost, &link, "new@example.com");
    assert!(told.text().contains("is on its way"), "{}", told.text());
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["new@example.com"]);
    assert_eq!(letter.subject, "Create your account at Gatepost");
    // A scanner's looks make nothing.
    for method in ["GET", "HEAD"] {
        let path = letter.link().strip_prefix(gatepost.origin()).unwrap();
        assert_eq!(gatepost.send(method, path, &[], b"").status, 303);
    }
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, letter.link());
    assert!(page.text().contains("new@example.com"), "{}", page.text());
    let elsewhere = gatepost.browser().get(&page.action());
    is_over(&elsewhere, "in another browser");
    let no_other = "must be the same as the e-mail address";
    for (username, told) in [
        ("", "Enter your user name."),
        ("other@example.com", no_other),
        ("b\u{ff20}example.com", no_other),
        ("zero\u{200b}width", "cannot be used here"),
    ] {
        let answer = send(&mut browser, &page, username);
        answer.assert_says_for(format!("{username:?}"), told);
    }
    let made = send(&mut browser, &page, "newcomer");
    assert_eq!(made.status, 303, "{}", made.text());
    browser.follow(made).assert_says("value=\"newcomer\"");
    let in_tenant = [("acr_values", "tenant:acme")];
    assert!(signs_in(&gatepost, "newcomer", &in_tenant));
    assert!(signs_in(&gatepost, "new@example.com", &in_tenant));
    assert!(!signs_in(&gatepost, "newcomer", &[]));
    let exported: Value = serde_json::from_str(&gatepost.run_well(&["export"], "")).unwrap();
    let users = exported["users"].as_array().unwrap();
    let is_theirs = |user: &&Value| user["username"] == "newcomer";
    let user = users.iter().find(is_theirs).unwrap();
    let claims = json!({
        "email": "new@example.com", "email_verified": true, "name": "New Comer", "role": ["guest"],
    });
    assert_eq!(&user["claims"], &claims);
    assert_eq!(user["tenant"], "acme");
    gatepost.database.assert_count(SIGNED_UP, 1);
    let row = &listed(&gatepost)[0];
    assert_eq!(row["used"], 1);
    assert_eq!(row["domain"], "example.com");

    // Its letter made it: it makes no other.
    is_over(&send(&mut browser, &page, "another"), "the form again");
    is_over(&gatepost.browser().get(letter.link()), "the letter again");
}

#[test]
fn nobody_is_told_which_addresses_have_an_account_but_their_owners() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let link = make(&gatepost, &["--domain", "example.com"]);
    let pages = ["new@example.com", "held@example.com", "x@elsewhere.example"].map(|address| {
        let answer = ask(&gatepost, &link, address);
        assert_eq!(answer.status, 200);
        answer.text()
    });
    assert!(pages.iter().all(|page| *page == pages[0]), "{pages:#?}");
    let mut letters = [mailbox.letter(1), mailbox.letter(2)];
    letters.sort_by(|one, other| one.to.cmp(&other.to));
    let [held, new] = letters;
    assert_eq!(held.to, ["held@example.com"]);
    assert!(held.text.contains("already"), "{}", held.text);
    assert!(!held.text.contains("gpu_"), "{}", held.text);
    assert!(new.link().contains("/join?l=gpu_"));
    for unfit in [
        "",
        "nobody",
        "a@b@c",
        "a b@example.com",
        "a@example.com\r\nBcc: b@example.com",
    ] {
        let answer = ask(&gatepost, &link, unfit);
        assert!(answer.text().contains("Enter an e-mail address"), "{unfit}");
    }
    assert_eq!(mailbox.count(), 2, "none elsewhere");
}

/// Whoever has a sign-up link can type anybody's address.
#[test]
fn letters_about_sign_ups_do_not_use_up_those_of_a_forgotten_password() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let verified = r#"UPDATE users SET claims = claims || '{"email_verified": true}'"#;
    gatepost.run_sql(&format!("{verified} WHERE username = 'held'"));
    let link = make(&gatepost, &[]);
    for number in 1..=3 {
        ask(&gatepost, &link, "held@example.com");
        assert_eq!(mailbox.letter(number).to, ["held@example.com"]);
    }
    ask(&gatepost, &link, "held@example.com");
    let withheld = "SELECT FROM audit_events WHERE event = 'letter_withheld'";
    let mut database = gatepost.database.client();
    await_that("the fourth to be withheld", SOON, || {
        !database.query(withheld, &[]).unwrap().is_empty()
    });

    forget(&gatepost, "held");
    let letter = mailbox.letter(4);
    assert!(letter.text.contains("Account: held"), "{}", letter.text);
}

/// Says that they forgot their password.
fn forget(gatepost: &Gatepost, name: &str) {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let page = browser.get(&page.attribute("/login/forgotten", "href").unwrap());
    let form = [("name", name)];
    browser.submit(&page, &form);
}

/// Waits until so many letters were withheld; answers the limits that kept them.
fn withheld(gatepost: &Gatepost, number: usize) -> Vec<String> {
    let mut database = gatepost.database.client();
    let asked = "SELECT detail ->> 'limit' FROM audit_events WHERE event = 'letter_withheld'";
    let mut limits = Vec::new();
    await_that("letters to be withheld", SOON, || {
        let rows = database.query(asked, &[]).unwrap();
        limits = rows.iter().map(|row| row.get(0)).collect();
        limits.len() >= number
    });
    limits
}

/// That so many letters came, and no more.
fn sent(mailbox: &Mailbox, number: usize) {
    mailbox.letter(number);
    assert_eq!(mailbox.count(), number);
}

#[test]
fn one_network_and_one_link_have_ten_letters_an_hour_whatever_addresses_are_typed() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let link = make(&gatepost, &[]);
    // Each from another /64 of one /48.
    for number in 0..14 {
        let source = format!("2001:db8:1:{number:x}::1");
        let address = format!("invented-{number}@example.com");
        ask_from(&gatepost, &source, &link, &address);
    }
    assert_eq!(withheld(&gatepost, 4), ["source"; 4]);
    sent(&mailbox, 10);
    // A link of five uses has fifteen letters, and one that can make one more account has ten.
    for number in 0..7 {
        let source = format!("2001:db8:2{number:x}::1");
        let address = format!("elsewhere-{number}@example.com");
        ask_from(&gatepost, &source, &link, &address);
    }
    let limits = withheld(&gatepost, 6);
    assert_eq!(limits.iter().filter(|limit| *limit == "link").count(), 2);
    sent(&mailbox, 15);
    let last = gatepost.run_well(&["signup", "make", "--uses", "1", "--for", "14d"], "");
    for number in 0..12 {
        let address = format!("last-{number}@example.com");
        let source = format!("192.0.2.{number}");
        ask_from(&gatepost, &source, last.trim(), &address);
    }
    withheld(&gatepost, 8);
    sent(&mailbox, 25);
}

#[test]
fn sign_ups_have_a_third_of_the_letters_of_an_hour_and_resets_the_others() {
    let mailbox = Mailbox::open();
    let mut registered = document();
    let claims = json!({"email": "alice@example.com", "email_verified": true});
    registered["users"][0]["claims"] = claims;
    let mut settings = mailbox.settings().to_vec();
    settings.push(("GATEPOST_LIMIT_LETTERS_PER_HOUR", "12"));
    let gatepost = Gatepost::start_with(&registered, &settings);
    let links = [make(&gatepost, &[]), make(&gatepost, &[])];
    for number in 0..9 {
        let source = format!("198.51.100.{number}");
        let address = format!("invented-{number}@example.com");
        ask_from(&gatepost, &source, &links[number % 2], &address);
    }
    assert_eq!(withheld(&gatepost, 5), ["sign_ups"; 5]);
    sent(&mailbox, 4);
    forget(&gatepost, "alice");
    assert_eq!(mailbox.letter(5).to, ["alice@example.com"]);
}

#[test]
fn a_taken_user_name_costs_nothing_and_what_is_over_makes_nothing() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let link = make(&gatepost, &[]);
    ask(&gatepost, &link, "new@example.com");
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, mailbox.letter(1).link());
    let taken = send(&mut browser, &page, "ALICE");
    taken.assert_says("This user name is taken");
    assert_eq!(listed(&gatepost)[0]["used"], 0);
    // Whoever tries many learns of ten an hour at most who is there.
    for _ in 0..9 {
        assert_eq!(send(&mut browser, &page, "bob").status, 200);
    }
    assert_eq!(send(&mut browser, &page, "bob").status, 429);
    let retry = mailbox.letter(1);
    let mut gatepost = gatepost;
    gatepost.stop();
    gatepost.serve();
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, retry.link());

    let id = listed(&gatepost)[0]["id"].as_str().unwrap().to_owned();
    gatepost.run_well(&["signup", "end", &id], "");
    is_over(&send(&mut browser, &page, "newcomer"), "ended meanwhile");
    let again = gatepost.browser().get(mailbox.letter(1).link());
    is_over(&again, "its letter");
    assert_eq!(listed(&gatepost)[0]["works"], false);
    // Its page is as ever, and no letter goes out.
    ask(&gatepost, &link, "other@example.com");
    gatepost.await_log("no letter", |log| {
        log.contains("no letter: the sign-up link is over")
    });
    assert_eq!(mailbox.count(), 1);
    let damaged = link.replace("gpj_", "gpj_A");
    is_over(&gatepost.browser().get(&damaged), "a damaged link");
    // The end of another link makes it no link, wherever it is joined on.
    let other = make(&gatepost, &["--tenant", "acme"]);
    let begin = link.find("gpj_").unwrap() + 4;
    for at in [begin + 8, link.len() / 2 + begin / 2, link.len() - 8] {
        let joined = format!("{}{}", &link[..at], &other[at..]);
        is_over(&gatepost.browser().get(&joined), "halves of two links");
    }
    let unknown = format!("{}/join?l=gpj_{}", gatepost.base_url, "A".repeat(64));
    is_over(&gatepost.browser().get(&unknown), "a made-up link");
    let made = "users WHERE username = 'newcomer'";
    gatepost.database.assert_count(made, 0);
}

#[test]
fn no_account_is_made_in_a_tenant_that_is_gone() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let link = make(&gatepost, &["--tenant", "acme"]);
    ask(&gatepost, &link, "new@example.com");
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, mailbox.letter(1).link());
    gatepost.run_well(&["apply", "-", "--prune", "--yes"], r#"{"tenants": []}"#);
    gatepost.settle();
    is_over(&send(&mut browser, &page, "newcomer"), "its tenant is gone");
}

#[test]
fn fifteen_at_once_on_a_link_of_five_uses_are_five_users() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let link = make(&gatepost, &[]);
    // Each from a source of its own: ten an hour is what one may ask for.
    let forms: Vec<(Browser, Answer)> = (0..15)
        .map(|number| {
            let mut browser = gatepost.browser();
            let source = format!("192.0.2.{number}");
            browser.headers = vec![(String::from("X-Forwarded-For"), source)];
            let page = opened(&mut browser, &link);
            let address = format!("member-{number}@example.com");
            let form = [("address", address.as_str())];
            assert_eq!(browser.submit(&page, &form).status, 200);
            let letter = mailbox.letter(number + 1);
            let page = opened(&mut browser, letter.link());
            (browser, page)
        })
        .collect();
    let threads: Vec<_> = forms
        .into_iter()
        .enumerate()
        .map(|(number, (mut browser, page))| {
            thread::spawn(move || send(&mut browser, &page, &format!("member-{number}")).status)
        })
        .collect();
    let answers: Vec<u16> = threads.into_iter().map(|one| one.join().unwrap()).collect();
    let made = answers.iter().filter(|status| **status == 303).count();
    assert_eq!(made, 5, "{answers:?}");
    let members = "users WHERE username LIKE 'member-%'";
    assert_eq!(gatepost.database.count(members), 5);
    assert_eq!(listed(&gatepost)[0]["used"], 5);
    gatepost.database.assert_count(SIGNED_UP, 5);
}

/// Neither statement sees the account that the other makes.
#[test]
fn two_letters_for_one_address_used_at_once_make_one_account() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let event = AuditEvent {
        event: "tested",
        ..AuditEvent::default()
    };
    let link = SignUpLink {
        id: [7; 16],
        tenant: None,
        roles: Vec::new(),
        domain: None,
        accounts_for: None,
        uses: 5,
        used: 0,
        expires_at: database.now().plus(Duration::from_secs(3_600)),
        ended_at: None,
    };
    sign_up_changes::insert(&store, &link, &event).unwrap();
    let password_hash = SecretText::new("hash");
    let claims = json!({"email": "new@example.com", "email_verified": true});
    let join = |letter: &str| {
        let new = NewMember {
            id: &link.id,
            letter,
            forgotten_at: link.expires_at,
            sub: &Subject::new(letter),
            username: letter,
            address: "new@example.com",
            password_hash: &password_hash,
            claims: claims.as_object().unwrap(),
        };
        loop {
            match sign_up_links::join(&store, &new, &event) {
                // On a slow machine the link is held for longer than a statement waits.
                Err(StoreError::Conflict(_)) => {}
                joined => return joined.unwrap(),
            }
        }
    };
    let mut holder = database.client();
    let own = holder.query_one("SELECT pg_backend_pid()", &[]);
    let backend: i32 = own.unwrap().get(0);
    let mut held = holder.transaction().unwrap();
    held.execute("SELECT FROM sign_up_links FOR UPDATE", &[])
        .unwrap();
    let mut made = thread::scope(|scope| {
        let join = &join;
        let both = ["one", "other"].map(|letter| scope.spawn(move || join(letter)));
        await_that("each waits for the link, or is done", SOON, || {
            let done = both.iter().filter(|one| one.is_finished()).count();
            done + database.waiting_behind(backend).len() == 2
        });
        held.rollback().unwrap();
        both.map(|one| one.join().unwrap())
    });
    made.sort_unstable();
    assert_eq!(made, [false, true]);
    assert!(!join("a third"), "the account is there to be seen");
    assert_eq!(database.count("users"), 1);
    assert_eq!(database.count("sign_up_links WHERE used = 1"), 1);
}

#[test]
fn a_link_from_before_the_setting_makes_no_administrator() {
    let mailbox = Mailbox::open();
    let mut gatepost = start(&mailbox);
    let roles = "--role office --role guest --role office:acme".split(' ');
    let link = make(&gatepost, &Vec::from_iter(roles));
    gatepost.stop();
    gatepost.set("GATEPOST_ADMIN_ROLE", "office");
    gatepost.serve();
    ask(&gatepost, &link, "new@example.com");
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, mailbox.letter(1).link());
    assert_eq!(send(&mut browser, &page, "newcomer").status, 303);
    let sql = "SELECT claims->'role' FROM users WHERE username = 'newcomer'";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    assert_eq!(row.get::<_, Value>(0), json!(["guest"]));
    let log = gatepost.log();
    assert!(log.contains("the role of administrators: dropped"), "{log}");
}

#[test]
fn without_a_mail_server_there_is_no_page_and_no_link() {
    let gatepost = Gatepost::start();
    assert_eq!(gatepost.get("/join").status, 404);
    let output = gatepost.run(&["signup", "make", "--uses", "1", "--for", "1d"], "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("GATEPOST_SMTP_URL is required"), "{told}");
}
