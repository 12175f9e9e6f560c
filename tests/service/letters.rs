//! Letters: forgotten passwords, links that Gatepost sends, what is withheld, and what a mail
//! server may do wrong.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, lets_in, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::house::House;
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::{Keys, Letter, Mailbox, PASSWORD};
use crate::support::phone::add_app;
use crate::support::timing::{assert_not_told_apart, welch};
use crate::support::traveller::Traveller;
use crate::support::waiting::{SOON, await_that, threads_of};

const NEW: &str = "a password of her own choosing";

/// Alice and Bob, who have an address each; a user of the same address as Alice; one without a
/// password; and one whose address nobody verified.
pub(super) fn registered() -> Value {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    let address = |text: &str| json!({"email": text, "email_verified": true});
    users[1]["claims"] = address("bob@example.com");
    for (name, claims) in [
        ("ann", address("shared@example.com")),
        ("ben", address("shared@example.com")),
        ("dora", json!({"email": "dora@example.com"})),
        ("emil", address("emil@bücher.example")),
    ] {
        users.push(json!({"username": name, "claims": claims, "password": BOB_PASSWORD}));
    }
    users.push(json!({"username": "carol", "claims": address("carol@example.com")}));
    registered
}

pub(super) fn start_with(mailbox: &Mailbox, more: &[(&str, &str)]) -> Gatepost {
    let mut all = mailbox.settings().to_vec();
    all.extend(more);
    Gatepost::start_with(&registered(), &all)
}

fn start(mailbox: &Mailbox) -> Gatepost {
    start_with(mailbox, &[])
}

fn forgotten(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let link = page.attribute("/login/forgotten", "href").unwrap();
    browser.get(&link)
}

fn ask_on(browser: &mut Browser, page: &Answer, name: &str) -> Answer {
    browser.submit(page, &[("name", name)])
}

/// Asks for a letter, as somebody who comes from the first shop.
pub(super) fn ask(gatepost: &Gatepost, name: &str) -> Answer {
    let mut browser = gatepost.browser();
    let page = forgotten(&mut browser);
    let answer = ask_on(&mut browser, &page, name);
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    answer
}

fn set(browser: &mut Browser, page: &Answer, new: &str) -> Answer {
    browser.submit(page, &[("new_password", new), ("new_password_again", new)])
}

fn is_over(answer: &Answer, what: &str) {
    answer.assert_error_page(400, "GP1810", what);
}

/// How many of these events there are, and the detail of the last.
fn events(gatepost: &Gatepost, name: &str) -> Vec<Value> {
    let sql = "SELECT detail FROM audit_events WHERE event = $1 ORDER BY at";
    let rows = gatepost.database.client().query(sql, &[&name]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn letter_of(gatepost: &Gatepost, mailbox: &Mailbox, name: &str) -> Letter {
    let before = mailbox.count();
    ask(gatepost, name);
    mailbox.letter(before + 1)
}

#[test]
fn who_forgot_their_password_sets_another_and_goes_on_where_they_came_from() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let mut elsewhere = signed_in(&gatepost);
    let told = ask(&gatepost, "alice").text();
    assert!(told.contains("is on its way"), "{told}");
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["alice@example.com"]);
    assert_eq!(letter.subject, "Choose a new password at Gatepost");
    for part in ["Account: alice", "First shop", "127.0.0.1", "was not you"] {
        assert!(letter.text.contains(part), "{part}: {}", letter.text);
    }
    assert!(letter.raw.contains("Auto-Submitted: auto-generated"));
    // A scanner's looks change nothing, and leave nothing behind.
    for method in ["GET", "HEAD", "GET"] {
        let path = letter.link().strip_prefix(gatepost.origin()).unwrap();
        let answer = gatepost.send(method, path, &[], b"");
        answer.assert_status(303);
        answer.assert_header("referrer-policy", "no-referrer");
        let (_, key) = path.split_once("?l=").unwrap();
        assert!(!answer.location().contains(key), "{}", answer.location());
    }
    let mut browser = gatepost.browser();
    let opened = browser.get(letter.link());
    let stranger = gatepost.browser().get(opened.location());
    is_over(&stranger, "another browser");
    let page = browser.follow(opened);
    assert!(page.text().contains("alice"), "{}", page.text());
    let forged = [
        ("form_token", "x"),
        ("new_password", NEW),
        ("new_password_again", NEW),
    ];
    assert_eq!(browser.post(&page.action(), &forged).status, 200);
    assert!(set(&mut browser, &page, "short").text().contains("8 char"));
    let same = set(&mut browser, &page, ALICE_PASSWORD);
    assert!(same.text().contains("must not be the present one"));
    assert!(lets_in(&gatepost, "alice", ALICE_PASSWORD), "nothing yet");
    let answer = set(&mut browser, &page, NEW);
    assert_eq!(answer.status, 303, "{}", answer.text());
    let set_at = answer.location().to_owned();
    let page = browser.follow(answer);
    let text = page.text();
    text.assert_says("Your password is set. Sign in with it.");
    text.assert_says("First shop");
    assert_eq!(page.attribute("id=\"username\"", "value").unwrap(), "alice");
    // What says so is sealed for this request: another one's page does not say it.
    let other = browser.get(&authorize_path("conf1", RP1, &[("state", "another")]));
    let (_, note) = set_at.split_once("password_set=").unwrap();
    for note in [note, "gpw_AAAA", "true"] {
        let stolen = browser.get(&format!("{}&password_set={note}", other.location()));
        let text = stolen.text();
        assert!(text.contains("First shop") && !text.contains("password is set"));
    }
    let back = sign_in(&mut browser, &page, "alice", NEW);
    back.assert_leads_to(RP1);
    back.assert_carries("code");
    assert!(!lets_in(&gatepost, "alice", ALICE_PASSWORD));
    let silent = elsewhere.get(&authorize_path("conf1", RP1, &[("prompt", "none")]));
    assert_eq!(silent.query()["error"], "login_required");
    is_over(&gatepost.browser().get(letter.link()), "used");
    // Their address is told what happened.
    let notice = mailbox.letter(2);
    assert_eq!(notice.to, ["alice@example.com"]);
    assert!(notice.text.contains("password of your account was set"));
    assert_eq!(events(&gatepost, "password_set_by_link").len(), 1);
    await_that("both letters are in the audit log", SOON, || {
        let sent = events(&gatepost, "letter_sent");
        sent == [json!({"letter": "reset"}), json!({"letter": "notice"})]
    });
    assert!(!gatepost.log().contains("gpm_"), "the log has the link");
}

#[test]
fn the_page_is_the_same_for_everybody_and_takes_only_what_may_be_a_name() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    gatepost.run_well(&["user", "disable", "bob"], "");
    let mut browser = gatepost.browser();
    let page = forgotten(&mut browser);
    let bare = |answer: &Answer| {
        let id = answer.header("x-request-id").unwrap_or("-").to_owned();
        answer.text().replace(&id, "ID")
    };
    let known = bare(&ask_on(&mut browser, &page, "alice@example.com"));
    let long = "a".repeat(300);
    for name in [
        "nobody@example.com",
        "bob",
        "dora",
        "emil",
        "carol",
        "two\r\nlines",
        "alice\0",
        &long,
    ] {
        assert_eq!(bare(&ask_on(&mut browser, &page, name)), known, "{name:?}");
    }
    // Ten an hour from one source, then the same page and no letter.
    for _ in 0..6 {
        assert_eq!(bare(&ask_on(&mut browser, &page, "alice")), known);
    }
    for name in ["", "  "] {
        let again = ask_on(&mut browser, &page, name);
        assert!(again.text().contains("There is a problem"), "{name:?}");
    }
    let forged = [("form_token", "x"), ("name", "alice")];
    let again = browser.post(&page.action(), &forged);
    again.assert_says("no longer up to date");
    let form = [("form_token", &*page.form_token()), ("name", "alice")];
    let stranger = gatepost.browser().post(&page.action(), &form);
    assert!(stranger.text().contains("no longer up to date"));
    await_that("the letter that is withheld is told", SOON, || {
        let limits: Vec<Value> = events(&gatepost, "letter_withheld");
        limits.contains(&json!({"limit": "source"}))
            && limits.contains(&json!({"limit": "address"}))
    });
    // Alice's three, and the one that tells Carol that she has no password.
    let mut told: Vec<String> = (1..=4).flat_map(|at| mailbox.letter(at).to).collect();
    told.sort();
    let [alice, carol] = ["alice@example.com", "carol@example.com"];
    assert_eq!(told, [alice, alice, alice, carol]);
    assert_eq!(mailbox.count(), 4);
}

#[test]
fn one_letter_names_everybody_of_an_address_and_says_who_has_no_password() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let letter = letter_of(&gatepost, &mailbox, "Shared@Example.com");
    assert_eq!(letter.to, ["shared@example.com"]);
    for part in ["Account: ann\nhttp", "Account: ben\nhttp"] {
        assert!(letter.text.contains(part), "{part}: {}", letter.text);
    }
    let carol = letter_of(&gatepost, &mailbox, "carol");
    assert!(carol.text.contains("has no password"), "{}", carol.text);
    assert!(!carol.text.contains("http"), "{}", carol.text);
}

/// A provider lets anybody in under any address that they call theirs.
#[test]
fn accounts_of_strangers_push_nobody_out_of_their_letter() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    // The owner's row comes behind theirs, wherever Postgres begins to read.
    gatepost.database.run(
        "INSERT INTO users (sub, claims)
         SELECT 'stranger-' || n, '{\"email\": \"owner@example.com\"}'
         FROM generate_series(1, 300) AS n;
         INSERT INTO users (sub, username, username_key, password_hash, claims)
         SELECT 'owner', 'owner', 'owner', password_hash,
                '{\"email\": \"owner@example.com\", \"email_verified\": true}'
         FROM users WHERE username = 'alice'",
    );
    let letter = letter_of(&gatepost, &mailbox, "owner@example.com");
    assert_eq!(letter.to, ["owner@example.com"]);
    letter.text.assert_says("Account: owner\nhttp");
    letter.text.assert_says_not("stranger");
}

#[test]
fn who_has_a_second_factor_shows_it_before_they_set_a_password() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let (phone, codes) = add_app(&mut signed_in(&gatepost), 0);
    assert!(mailbox.letter(1).text.contains("second factor was added"));
    let letter = letter_of(&gatepost, &mailbox, "alice");
    let mut browser = gatepost.browser();
    let page = browser.visit(letter.link());
    assert!(!page.text().contains("new_password"), "{}", page.text());
    // The password's form cannot be posted past it.
    let skipped = set(&mut browser, &page, NEW);
    skipped.assert_says_not("new_password");
    assert!(signs_in_to_code(&gatepost, ALICE_PASSWORD), "nothing yet");
    let wrong = browser.submit(&page, &[("code", &phone.code(-1))]);
    assert!(wrong.text().contains("not correct") || wrong.text().contains("not right"));
    assert_eq!(events(&gatepost, "recovery_code_used").len(), 0);
    // An address of the form that was not earned does not open elsewhere.
    let shown = browser.submit(&page, &[("code", &codes[0])]);
    assert_eq!(shown.status, 303, "{}", shown.text());
    is_over(&gatepost.browser().get(shown.location()), "another browser");
    assert_eq!(events(&gatepost, "recovery_code_used").len(), 1);
    let form = browser.follow(shown);
    assert!(form.text().contains("new_password"), "{}", form.text());
    assert_eq!(set(&mut browser, &form, NEW).status, 303);
    assert!(signs_in_to_code(&gatepost, NEW), "it stays asked for");
}

/// Whether the password leads to the page that asks for a code.
fn signs_in_to_code(gatepost: &Gatepost, password: &str) -> bool {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let asked = sign_in(&mut browser, &page, "alice", password);
    asked.status == 200 && asked.text().contains("name=\"code\"")
}

#[test]
fn a_mailed_link_dies_with_what_it_was_made_on() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    for (user, command) in [
        ("alice", &["user", "password", "alice"][..]),
        ("bob", &["user", "disable", "bob"]),
        ("ann", &["user", "set", "ann", "email=new@example.com"]),
        ("ben", &["user", "revoke", "ben"]),
    ] {
        let letter = letter_of(&gatepost, &mailbox, user);
        let mut browser = gatepost.browser();
        let page = browser.visit(letter.link());
        gatepost.run_well(command, "the operator's choice\n");
        is_over(&set(&mut browser, &page, NEW), user);
        is_over(&gatepost.browser().get(letter.link()), user);
    }
    // A further factor, of somebody who has one, draws no new epoch.
    let letter = letter_of(&gatepost, &mailbox, "alice");
    let mut browser = gatepost.browser();
    let page = browser.visit(letter.link());
    let added = "UPDATE users SET factors = factors + 1 WHERE username = 'alice'";
    gatepost.database.run(added);
    is_over(&set(&mut browser, &page, NEW), "another factor");
    for wrong in ["gpm_", "gpm_AAAA", "gpe_AAAA", "gpw_AAAA"] {
        is_over(&gatepost.get(&format!("/account/link?l={wrong}")), wrong);
        is_over(&gatepost.get(&format!("/account/address?l={wrong}")), wrong);
    }
}

#[test]
fn without_a_mail_server_there_is_no_trace_of_letters() {
    let gatepost = Gatepost::start();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says_not("Forgot");
    let address = page.action().replace("/login?", "/login/forgotten?");
    let answer = browser.get(&address);
    answer.assert_error_page(404, "GP1007", "no page");
    let account = signed_in(&gatepost).get("/account");
    assert!(!account.text().contains("new_address"));
    assert_eq!(gatepost.get("/account/address").status, 404);
    let refused = gatepost.run(&["mail", "test", "a@b.example"], "");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("GATEPOST_SMTP_URL"));
}

#[test]
fn invitations_go_by_mail_and_verify_the_address() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let said = gatepost.run_well(&["user", "invite", "carol", "--mail"], "");
    assert!(said.contains("sent to carol@example.com"), "{said}");
    let letter = mailbox.letter(1);
    assert_eq!(letter.subject, "Your account at Gatepost");
    gatepost.run_well(&["user", "set", "carol", "email_verified=false"], "");
    let mut browser = gatepost.browser();
    let page = browser.visit(letter.link());
    let answer = set(&mut browser, &page, NEW);
    let page = browser.follow(answer);
    assert_eq!(page.attribute("id=\"username\"", "value").unwrap(), "carol");
    sign_in(&mut browser, &page, "carol", NEW).assert_leads_to("/start");
    let account = browser.visit("/account");
    account.assert_says("carol@example.com");
    account.assert_says_not("is not confirmed");
    let claims = "{\"email\":\"fritz@example.com\",\"locale\":\"de-AT\"}";
    gatepost.run_line(&format!("user add fritz --claims {claims} --invite --mail"));
    let letter = mailbox.letter(2);
    assert_eq!(letter.subject, "Ihr Konto bei Gatepost");
    let reset = gatepost.run_well(&["user", "reset", "bob", "--mail"], "");
    assert!(reset.contains("sent to bob@example.com"), "{reset}");
    assert!(mailbox.letter(3).text.contains("Account: bob\nhttp"));
    for (arguments, told) in [
        (&["user", "reset", "dora", "--mail"][..], "is not verified"),
        (&["user", "reset", "emil", "--mail"], "after the @"),
        (&["user", "reset", "bob", "--mail", "--json"], "--json"),
        (&["user", "add", "gina", "--invite", "--mail"], "no e-mail"),
        (&["user", "add", "gina", "--mail"], "--invite"),
        (&["mail", "test", "a b@example.com"], "ADDRESS"),
    ] {
        let text = gatepost.refusal(arguments, "");
        text.assert_says_for(format!("{arguments:?}"), told);
    }
    assert!(!gatepost.run_well(&["user", "list"], "").contains("gina"));
    let said = gatepost.run_well(&["mail", "test", "you@example.com"], "");
    assert!(said.contains("250 Kept as 4"), "{said}");
    assert_eq!(mailbox.letter(4).to, ["you@example.com"]);
}

#[test]
fn a_letter_that_no_page_asked_for_speaks_the_language_of_the_house_unless_the_person_has_another()
{
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[("GATEPOST_LANGUAGE", "de")]);
    let invite = |name: &str, claims: Value| {
        let add = format!("user add {name} --claims {claims} --invite --mail");
        gatepost.run_line(&add);
    };
    invite("fritz", json!({"email": "fritz@example.com"}));
    assert_eq!(mailbox.letter(1).subject, "Ihr Konto bei Gatepost");
    let british = json!({"email": "gina@example.com", "locale": "en-GB"});
    invite("gina", british);
    assert_eq!(mailbox.letter(2).subject, "Your account at Gatepost");
    // A page that asks says in what language.
    ask(&gatepost, "bob");
    let subject = mailbox.letter(3).subject;
    assert!(subject.starts_with("Ein neues Passwort"), "{subject}");
}

pub(super) fn post_account(browser: &mut Browser, fields: &[(&str, &str)]) -> Answer {
    let page = browser.get("/account");
    browser.submit_to("/account", &page, fields)
}

fn change_address(browser: &mut Browser, new: &str) -> Answer {
    let fields = [("decision", "change_address"), ("new_address", new)];
    post_account(browser, &fields)
}

/// A page of alice's says that her password is changed.
fn change_password(submit: impl FnOnce(&[(&str, &str)]) -> Answer) {
    let fields = [
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", NEW),
        ("new_password_again", NEW),
    ];
    submit(&fields).assert_says("changed");
}

fn bob_signed_in(gatepost: &Gatepost) -> Browser {
    let mut bob = gatepost.browser();
    let page = bob.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut bob, &page, "bob", BOB_PASSWORD).assert_status(303);
    bob
}

#[test]
fn a_new_address_counts_once_its_letter_was_answered_by_whoever_asked() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let mut before = signed_in(&gatepost);
    let mut browser = signed_in(&gatepost);
    for wrong in ["", "alice", "a@b.example, c@d.example", "<a@b.example>"] {
        let answer = change_address(&mut browser, wrong);
        answer.assert_says_for(wrong, "Enter an e-mail address");
    }
    let answer = change_address(&mut browser, "new@example.com");
    answer.assert_says("is on its way to");
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["new@example.com"]);
    // Not for a stranger or somebody else, not in a session that began before, not by looking, and
    // not without the form's token.
    let mut bob = bob_signed_in(&gatepost);
    for other in [&mut before, &mut bob] {
        let page = other.visit(letter.link());
        page.assert_says("Sign in first");
    }
    let stranger = gatepost.browser().visit(letter.link());
    stranger.assert_says("Sign in first");
    let page = browser.visit(letter.link());
    assert!(page.text().contains("Use <strong><bdi>new@example.com"));
    browser.post(&page.action(), &[("form_token", "x")]);
    assert!(browser.get("/account").text().contains("alice@example.com"));
    let done = browser.submit(&page, &[]);
    done.assert_says("address was changed");
    assert!(done.text().contains("new@example.com"));
    let notice = mailbox.letter(2);
    assert_eq!(notice.to, ["alice@example.com"]);
    assert!(notice.text.contains("another e-mail address"));
    is_over(&browser.visit(letter.link()), "used");
    let claims = gatepost.shown("user show alice --json");
    assert_eq!(claims["claims"]["email"], "new@example.com");
    assert_eq!(claims["claims"]["email_verified"], true);
    assert_eq!(events(&gatepost, "address_changed").len(), 1);
}

/// Each asked while nobody had it.
#[test]
fn an_address_that_two_ask_for_is_the_first_ones_who_confirms_it() {
    for sign_in_with in ["username", "username,email"] {
        let mailbox = Mailbox::open();
        let gatepost = start_with(&mailbox, &[("GATEPOST_SIGN_IN_WITH", sign_in_with)]);
        let mut alice = signed_in(&gatepost);
        let mut bob = bob_signed_in(&gatepost);
        let confirm = |browser: &mut Browser, number: usize, address: &str| {
            change_address(browser, address);
            let letter = mailbox.letter(number);
            browser.visit(letter.link())
        };
        let of_alice = confirm(&mut alice, 1, "new@example.com");
        let of_bob = confirm(&mut bob, 2, "New@example.com");
        let done = alice.submit(&of_alice, &[]);
        done.assert_says("address was changed");
        // The third letter tells Alice's old address.
        mailbox.letter(3);
        is_over(&bob.submit(&of_bob, &[]), sign_in_with);
        let shown = gatepost.shown("user show bob --json");
        assert_eq!(shown["claims"]["email"], "bob@example.com");
        assert_eq!(events(&gatepost, "address_changed").len(), 1);
        let shared = events(&gatepost, "address_shared");
        assert!(shared.iter().all(|one| one["by"] != "user"), "{shared:?}");
    }
}

#[test]
fn people_are_told_of_changes_of_their_ways_in() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let mut browser = signed_in(&gatepost);
    change_password(|fields| post_account(&mut browser, fields));
    let letter = mailbox.letter(1);
    assert_eq!(letter.subject, "Your account at Gatepost was changed");
    let told = "password of your account was set or changed";
    letter.text.assert_says(told);
}

/// Each is a way in that stays when the password changes.
#[test]
fn people_are_told_of_new_recovery_codes_and_of_accounts_elsewhere() {
    let mailbox = Mailbox::open();
    let house = House::start_with(registered(), &json!({}), &mailbox.settings());
    let mut alice = house.alice();
    add_app(house.browser(&mut alice), 0);
    let page = alice.visit(&house.address("/account"));
    let decision = [("decision", "make_recovery_codes")];
    house.browser(&mut alice).submit(&page, &decision);
    house.link(&mut alice, "other");
    house.unlink(&mut alice, "Sign-in other");
    // They leave on two threads, so any may come first.
    let letters = [1, 2, 3, 4].map(|number| mailbox.letter(number));
    for letter in &letters {
        assert_eq!(letter.to, ["alice@example.com"]);
    }
    let recovery_codes = "New recovery codes were made; the old ones no longer work.";
    for (told, times) in [
        ("second factor was added", 1),
        (recovery_codes, 1),
        ("was linked to your account", 1),
        ("is no longer linked to your account", 1),
    ] {
        let telling = letters.iter().filter(|letter| letter.text.contains(told));
        assert_eq!(telling.count(), times, "{told}: {letters:?}");
    }
}

/// Where a provider's word alone verifies an address, that provider would choose who gets the link
/// to an account that has a password of its own.
#[test]
fn no_letter_goes_to_an_address_that_only_a_provider_without_trust_calls_verified() {
    const UP: &str = "up@example.com";
    for (changes, is_trusted) in [(json!({}), false), (json!({"trust_email": true}), true)] {
        let mailbox = Mailbox::open();
        let house = House::start_with(registered(), &changes, &mailbox.settings());
        let gatepost = &house.gatepost;
        house.up.plan(|plan| {
            plan.userinfo = json!({"email": UP, "email_verified": true});
        });
        let mut alice = house.alice();
        house.link(&mut alice, "up");
        house.through(&mut Traveller::new(), "up").unwrap();
        // Carol has no other way in than the provider.
        let issuer = house.up.issuer();
        let link = ["user", "link", "carol", "--issuer", issuer];
        gatepost.run_well(&[&link[..], &["--subject", "carol-there"]].concat(), "");
        let carol = String::from("carol-there");
        house.up.plan(|plan| plan.subject = carol);
        house.through(&mut Traveller::new(), "up").unwrap();

        for command in [
            &["user", "reset", "alice", "--mail"][..],
            &["user", "reset", "alice", "--passkey", "--mail"],
            &["user", "invite", "carol", "--mail"],
        ] {
            let output = gatepost.run(command, "");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), is_trusted, "{command:?}: {told}");
            assert_eq!(told.contains("trust_email"), !is_trusted, "{told}");
        }
        let letters_to = |address: &str| {
            let all = (1..=mailbox.count()).map(|number| mailbox.letter(number));
            Vec::from_iter(all.filter(|letter| letter.to == [address]))
        };
        // Where none is expected, one that waited would come before the second to somebody else.
        let await_all_to_up = |other: &str, address: &str, expected: usize, why: &str| {
            for number in 1..=2 {
                ask(gatepost, other);
                await_that("another letter", SOON, || {
                    letters_to(address).len() == number
                });
            }
            // The lane has two threads: the last may still be on its way.
            await_that(why, SOON, || letters_to(UP).len() >= expected);
            assert_eq!(letters_to(UP).len(), expected, "{changes}: {why}");
        };
        let expected = |letters: usize| if is_trusted { letters } else { 0 };
        change_password(|fields| house.post(&mut alice, fields));
        await_all_to_up("bob", "bob@example.com", expected(4), "a new password");

        let new = ("new_address", "new@example.com");
        house.post(&mut alice, &[("decision", "change_address"), new]);
        await_that("the letter to the new address", SOON, || {
            !letters_to("new@example.com").is_empty()
        });
        let page = alice.visit(letters_to("new@example.com")[0].link());
        let form = [];
        let done = house.browser(&mut alice).submit(&page, &form);
        assert!(done.text().contains("was changed"), "{}", done.text());
        await_all_to_up("ann", "shared@example.com", expected(5), "a new address");
    }
}

#[test]
fn an_unlinking_is_told_where_no_provider_without_trust_chose_the_address() {
    const UP: &str = "up@example.com";
    for (changes, letters) in [(json!({}), 0), (json!({"trust_email": true}), 1)] {
        let mailbox = Mailbox::open();
        let house = House::start_with(registered(), &changes, &mailbox.settings());
        house.up.plan(|plan| {
            plan.userinfo = json!({"email": UP, "email_verified": true});
        });
        let mut alice = house.alice();
        house.link(&mut alice, "up");
        house.through(&mut Traveller::new(), "up").unwrap();
        house.unlink(&mut alice, "Sign-in up");
        // Where none is expected, one that waited would come before the second to somebody else.
        let written = || -> Vec<Letter> {
            let numbers = 1..=mailbox.count();
            numbers.map(|number| mailbox.letter(number)).collect()
        };
        for number in 1..=2 {
            ask(&house.gatepost, "bob");
            await_that("another letter", SOON, || {
                let to_bob = |letter: &&Letter| letter.to == ["bob@example.com"];
                written().iter().filter(to_bob).count() == number
            });
        }
        let told = || written().iter().filter(|letter| letter.to == [UP]).count();
        // The lane has two threads: it may still be on its way.
        await_that("the letter about the unlinking", SOON, || told() >= letters);
        assert_eq!(told(), letters, "{changes}");
    }
}

#[test]
fn letters_speak_the_language_of_the_page_and_name_where_help_is() {
    let mailbox = Mailbox::open();
    let help = "https://help.example/sign-in";
    let brand = "Köln =?utf-8?Q?x?=, <a@b.example>";
    let settings = [
        ("GATEPOST_BRAND_HELP_URL", help),
        ("GATEPOST_BRAND_NAME", brand),
    ];
    let gatepost = start_with(&mailbox, &settings);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[("ui_locales", "pl")]));
    assert!(page.text().contains(help), "{}", page.text());
    let link = page.attribute("/login/forgotten", "href").unwrap();
    let page = browser.get(&link);
    assert!(page.text().contains("lang=\"pl\"") && page.text().contains(help));
    ask_on(&mut browser, &page, "alice");
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["alice@example.com"]);
    assert_eq!(letter.subject, format!("Nowe hasło w {brand}"));
    assert!(letter.text.contains(help) && letter.text.contains("Konto: alice"));
    let subjects = letter.raw.matches("\r\nSubject: ").count();
    assert_eq!(subjects, 1, "{}", letter.raw);
    let over = gatepost.get("/account/link?l=gpm_AAAA");
    assert!(over.text().contains(help), "{}", over.text());
}

fn secured_settings(keys: &Keys, gatepost: &str) -> Vec<(&'static str, String)> {
    let password = keys.file("password");
    std::fs::write(&password, PASSWORD).unwrap();
    vec![
        ("GATEPOST_SMTP_URL", gatepost.to_owned()),
        ("GATEPOST_MAIL_FROM", String::from("gatepost@mail.test")),
        (
            "GATEPOST_SMTP_PASSWORD_FILE",
            password.display().to_string(),
        ),
        (
            "GATEPOST_CA_FILE",
            keys.file("ca.pem").display().to_string(),
        ),
    ]
}

#[test]
fn password_and_letter_leave_only_under_tls_with_the_right_name() {
    let keys = Keys::make();
    let send = |mailbox: &Mailbox, scheme: &str| {
        let url = format!("{scheme}://postbox@localhost:{}", mailbox.port);
        let settings = secured_settings(&keys, &url);
        let settings = settings.iter().map(|(name, value)| (*name, &**value));
        let settings: Vec<(&str, &str)> = settings.collect();
        let gatepost = Gatepost::prepare(&settings);
        let output = gatepost.run(&["mail", "test", "you@example.com"], "");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let no_secret_in = |mailbox: &Mailbox| {
        let talk = mailbox.talk();
        assert!(!talk.contains("AUTH PLAIN "), "{talk}");
        assert!(!talk.contains("MAIL FROM"), "{talk}");
        assert_eq!(mailbox.count(), 0);
    };
    for (certificate, cause) in [
        ("wrong", "not valid for name"),
        ("foreign", "UnknownIssuer"),
    ] {
        let mailbox = Mailbox::secured(&keys, certificate);
        let said = send(&mailbox, "smtp");
        assert!(said.contains(cause), "{said}");
        no_secret_in(&mailbox);
        let mailbox = Mailbox::wrapped(&keys, certificate);
        let said = send(&mailbox, "smtps");
        assert!(said.contains("was not sent"), "{said}");
        no_secret_in(&mailbox);
    }
    let mailbox = Mailbox::secured(&keys, "right");
    for (fault, cause) in [
        ("no-starttls", "STARTTLS is not supported"),
        ("injected", "not sent"),
    ] {
        mailbox.becomes(fault);
        let said = send(&mailbox, "smtp");
        assert!(said.contains(cause), "{fault}: {said}");
        no_secret_in(&mailbox);
    }
    mailbox.becomes("ok");
    let said = send(&mailbox, "smtp");
    assert!(said.contains("250 Kept as 1"), "{said}");
    assert!(mailbox.letter(1).was_secret);
    assert!(!mailbox.talk().contains("AUTH PLAIN "));
}

#[test]
fn whatever_the_mail_server_does_pages_go_on_and_letters_come_once_it_is_well() {
    let mailbox = Mailbox::open();
    let mut gatepost = start(&mailbox);
    for (fault, user) in [
        ("hang", "alice"),
        ("crawl", "bob"),
        ("flood", "carol"),
        ("later", "ann"),
    ] {
        mailbox.becomes(fault);
        let told = ask(&gatepost, user).text();
        assert!(told.contains("is on its way"), "{fault}");
    }
    await_that("a try fails", SOON, || {
        // Two at most are under way, whatever hangs.
        assert!(sending(&gatepost) <= 2);
        gatepost.log().contains("is tried again")
    });
    mailbox.becomes("ok");
    let mut told: Vec<String> = (1..=4).flat_map(|at| late(&mailbox, at).to).collect();
    told.sort();
    let expected = ["alice@", "bob@", "carol@", "shared@"].map(|one| format!("{one}example.com"));
    assert_eq!(told, expected);
    mailbox.becomes("never");
    ask(&gatepost, "bob");
    await_that("it is given up", SOON, || {
        let log = gatepost.log();
        log.contains("was not sent: permanent error (554)")
    });
    let tries = || gatepost.log().matches("is tried again").count();
    let before = tries();
    mailbox.becomes("drop");
    ask(&gatepost, "carol");
    await_that("a try fails", SOON, || tries() > before);
    mailbox.becomes("ok");
    assert_eq!(late(&mailbox, 5).to, ["carol@example.com"]);
    let before = tries();
    mailbox.becomes("later");
    ask(&gatepost, "bob");
    await_that("a try fails", SOON, || tries() > before);
    mailbox.becomes("hang");
    ask(&gatepost, "alice");
    gatepost.stop();
    assert_eq!(mailbox.count(), 5);
    let log = gatepost.log();
    assert!(log.contains("a letter was not sent: the process ends"));
}

#[test]
fn a_process_that_is_killed_loses_the_letters_under_way_and_nothing_else() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    mailbox.becomes("hang");
    ask(&gatepost, "alice");
    await_that("the letter is under way", SOON, || sending(&gatepost) == 1);
    let process = gatepost.server_processes()[0].to_string();
    let killed = Command::new("kill").args(["-9", &process]).status();
    assert!(killed.unwrap().success());
    mailbox.becomes("ok");
    await_that("another process serves", SOON, || gatepost.is_ready());
    let letter = letter_of(&gatepost, &mailbox, "alice");
    assert_eq!(letter.to, ["alice@example.com"]);
}

/// Threads that talk to the mail server.
fn sending(gatepost: &Gatepost) -> usize {
    let processes = gatepost.server_processes();
    let names = processes
        .into_iter()
        .flat_map(|pid| threads_of(pid, "comm"));
    names.filter(|name| name.trim() == "letter").count()
}

#[test]
fn the_page_stays_while_the_database_is_away_and_the_letter_comes_after_it() {
    let mailbox = Mailbox::open();
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy_with(&mailbox.settings());
    let mut browser = gatepost.browser();
    let page = forgotten(&mut browser);
    let link = letter_of(&gatepost, &mailbox, "alice");
    let form = browser.visit(link.link());
    proxy.cut(true);
    let told = ask_on(&mut browser, &page, "alice");
    assert!(told.status == 200 && told.text().contains("is on its way"));
    assert_eq!(set(&mut browser, &form, NEW).status, 503);
    proxy.cut(false);
    late(&mailbox, 2);
}

#[test]
fn time_tells_nobody_who_exists() {
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[("GATEPOST_LIMIT_LETTERS_PER_HOUR", "1000000")]);
    gatepost.run_well(&["user", "disable", "bob"], "");
    let mut browser = gatepost.browser();
    let page = forgotten(&mut browser);
    let action = page.action();
    let cookie = browser.cookie_header();
    let token = page.form_token();
    let mut connection = gatepost.connect();
    let mut number = 0_u32;
    let mut try_name = |name: &str| {
        number += 1;
        // Each from elsewhere, but for those whose source has had its letters.
        let [_, _, high, low] = number.to_be_bytes();
        let source = match name {
            "limited" => String::from("192.0.2.1"),
            _ => format!("198.18.{high}.{low}"),
        };
        let headers = [("Cookie", &*cookie), ("X-Forwarded-For", &source)];
        let form = [("form_token", &*token), ("name", name)];
        let answer = connection.post(&action, &headers, &form);
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for name in ["alice", "bob", "limited"] {
        let names = ["unknown", name];
        welch(100, |which| try_name(names[which]));
        let what = format!("unknown against {name}");
        assert_not_told_apart(&what, 1_000, |which| try_name(names[which]));
    }
}

#[test]
fn doctor_says_whether_letters_can_go_out() {
    let mailbox = Mailbox::open();
    let gatepost = start(&mailbox);
    let said = |gatepost: &Gatepost| {
        let output = gatepost.run(&["doctor"], "");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&gatepost).contains("ok    mail: the mail server lets us in"));
    mailbox.becomes("hang");
    assert!(said(&gatepost).contains("fails mail: no letter would go out"));
    let without = Gatepost::start();
    assert!(!said(&without).contains("mail:"));
}

/// A letter that comes at a later try.
fn late(mailbox: &Mailbox, number: usize) -> Letter {
    await_that("a later try succeeds", SOON * 5, || {
        mailbox.count() >= number
    });
    mailbox.letter(number)
}
