//! What people read in letters, and how a library for e-mail that is not ours reads them.

use serde_json::{Value, json};

use crate::letters::{ask, post_account, registered, start_with};
use crate::support::flow::{authorize_path, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1};
use crate::support::mailbox::{Letter, Mailbox};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// The longest link that leads to no application.
const LONGEST: usize = 250;

fn encodings(letter: &Letter) -> [&str; 2] {
    let parts = &letter.read["parts"];
    [0, 1].map(|at| parts[at]["encoding"].as_str().unwrap())
}

/// The addresses of the buttons.
fn buttons(letter: &Letter) -> Vec<String> {
    let links = letter.html().split("href=\"").skip(1);
    let link = |rest: &str| rest.split('"').next().unwrap().replace("&amp;", "&");
    links.map(link).collect()
}

#[track_caller]
fn assert_says(letter: &Letter, lines: &[&str]) {
    for line in lines {
        let (text, html) = (&letter.text, letter.html());
        assert!(text.lines().any(|one| one == *line), "{line}: {text}");
        let escaped = line.replace('&', "&amp;").replace('<', "&lt;");
        let escaped = escaped.replace('>', "&gt;");
        assert!(html.contains(&escaped), "{line}: {html}");
    }
}

#[test]
fn a_letter_is_text_and_a_document_that_loads_nothing_and_has_its_links_behind_buttons() {
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[]);
    ask(&gatepost, "alice");
    let letter = mailbox.letter(1);
    assert_eq!(letter.read["type"], "multipart/alternative");
    let parts = letter.read["parts"].as_array().unwrap();
    let types: Vec<&Value> = parts.iter().map(|part| &part["type"]).collect();
    assert_eq!(types, ["text/plain", "text/html"]);
    assert_eq!(encodings(&letter), ["7bit", "7bit"]);
    assert_says(
        &letter,
        &[
            "Hello Alice Smith,",
            "Somebody asked for a new password for your account. To choose one, open this link:",
            "Account: alice",
            "After that you can sign in, and go on to First shop.",
            "The request came from the IP address 127.0.0.1.",
        ],
    );
    // The link leads on to an application, so it is long: whoever reads does not see it.
    assert_eq!(buttons(&letter), [letter.link()]);
    let html = letter.html();
    assert_eq!(html.matches("http").count(), 1, "{html}");
    assert!(html.contains(">Choose your password</a>"), "{html}");
    for loads in ["<img", "src=", "url(", "<script", "<link", "@import"] {
        assert!(!html.contains(loads), "{loads}: {html}");
    }
    ask(&gatepost, "bob");
    let other = mailbox.letter(2);
    assert_ne!(letter.read["boundary"], other.read["boundary"]);
    assert!(letter.read["boundary"].as_str().unwrap().len() >= 32);
}

#[test]
fn names_are_escaped_cut_and_cleaned() {
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[]);
    let name = "<b>Bob</b>\r\n\r\n\u{202e}\u{2067}& <img src=x>".to_owned() + &"y".repeat(60);
    let claims = json!({"name": name});
    let sql = "UPDATE users SET claims = claims || $1 WHERE username = 'bob'";
    gatepost.database.client().execute(sql, &[&claims]).unwrap();
    ask(&gatepost, "bob");
    let letter = mailbox.letter(1);
    let shown = format!("<b>Bob</b>& <img src=x>{}", "y".repeat(37));
    assert_eq!(shown.len(), 60);
    assert_says(&letter, &[&format!("Hello {shown},")]);
    let html = letter.html();
    assert!(!html.contains("<b>") && !html.contains("<img"), "{html}");
    // Two people who share an address are greeted by neither name.
    ask(&gatepost, "shared@example.com");
    let shared = mailbox.letter(2);
    assert!(!shared.text.contains("Hello"), "{}", shared.text);
}

#[test]
fn ascii_goes_as_it_is_and_headers_are_encoded_only_where_they_must_be() {
    let mailbox = Mailbox::open();
    let cases = [
        ("Wonderland", "en", "Wonderland", false),
        ("Wonderland, Inc.", "en", "\"Wonderland, Inc.\"", false),
        ("\u{202e}Wonder\u{2066}land", "en", "Wonderland", false),
        ("Köln", "en", "=?utf-8?B?S8O2bG4=?=", true),
        ("Wonderland", "ja", "Wonderland", true),
    ];
    for (number, (brand, language, sender, is_encoded)) in (1..).zip(cases) {
        let brand_name = ("GATEPOST_BRAND_NAME", brand);
        let gatepost = start_with(&mailbox, &[brand_name, ("GATEPOST_LANGUAGE", language)]);
        gatepost.run_well(&["user", "reset", "bob", "--mail"], "");
        let letter = mailbox.letter(number);
        let sender = format!("From: {sender} <");
        assert!(letter.raw.contains(&sender), "{}", letter.raw);
        let plain = brand.replace(['\u{202e}', '\u{2066}'], "");
        assert_eq!(letter.read["sender"], json!(plain));
        assert!(letter.subject.contains(&plain), "{}", letter.subject);
        let raw = &letter.raw;
        assert_eq!(raw.contains("\r\nSubject: =?"), is_encoded, "{raw}");
        // The brand is in the title of the document, too.
        let expected = match (language, is_encoded) {
            ("en", false) => ["7bit", "7bit"],
            ("en", true) => ["7bit", "base64"],
            _ => ["base64", "base64"],
        };
        assert_eq!(encodings(&letter), expected, "{brand}");
    }
}

#[test]
fn a_notice_says_when_by_which_browser_from_where_and_what_to_press() {
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[]);
    let mut browser = signed_in(&gatepost);
    let firefox = (String::from("User-Agent"), FIREFOX.to_owned());
    browser.headers.push(firefox);
    let new = "a password of her own choosing";
    let present = ("present_password", ALICE_PASSWORD);
    let change = [("decision", "change_password"), present];
    let fields = [change, [("new_password", new), ("new_password_again", new)]].concat();
    let answer = post_account(&mut browser, &fields);
    assert!(answer.text().contains("changed"), "{}", answer.text());
    let letter = mailbox.letter(1);
    assert_says(
        &letter,
        &[
            "Hello Alice Smith,",
            "The password of your account was set or changed.",
            "Browser: Firefox · Linux",
            "The request came from the IP address 127.0.0.1.",
            "If it was not you, open your account and press “Sign out everywhere else” there. \
             Then change your password, if you have one.",
            "Account: alice",
            "If you cannot sign in any more, ask for help at once: somebody else may be in your \
             account.",
        ],
    );
    let sql = "SELECT to_char(at AT TIME ZONE 'UTC', 'FMDD Mon YYYY, HH24:MI') FROM audit_events \
               WHERE event = 'password_changed'";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    let moment: String = row.get(0);
    let mut lines = letter.text.lines();
    let when = lines.find_map(|line| line.strip_prefix("When: ")).unwrap();
    assert_eq!(when.len(), format!("{moment} UTC").len());
    let hour = moment.split_once(':').unwrap().0;
    assert!(when.starts_with(hour), "{moment}: {when}");
    let account = format!("{}/account", gatepost.origin());
    assert_eq!(buttons(&letter), [account.as_str()]);
    let account = signed_in_by(&gatepost).get("/account");
    account.assert_says("Sign out everywhere else");
}

/// Bob, who is signed in twice.
fn signed_in_by(gatepost: &Gatepost) -> crate::support::http::Browser {
    let mut browser = gatepost.browser();
    for _ in 0..2 {
        browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let password = crate::support::gatepost::BOB_PASSWORD;
        assert_eq!(sign_in(&mut browser, &page, "bob", password).status, 303);
    }
    browser
}

fn change_address(gatepost: &Gatepost, new: &str) {
    let fields = [("decision", "change_address"), ("new_address", new)];
    post_account(&mut signed_in(gatepost), &fields);
}

#[test]
fn links_that_lead_to_no_application_are_short() {
    let mailbox = Mailbox::open();
    let gatepost = start_with(&mailbox, &[]);
    gatepost.run_well(&["user", "invite", "carol", "--mail"], "");
    gatepost.run_well(&["user", "reset", "bob", "--mail"], "");
    gatepost.run_well(&["user", "reset", "ann", "--passkey", "--mail"], "");
    let link = gatepost.run_well(&["signup", "make", "--uses", "1", "--for", "1d"], "");
    let mut stranger = gatepost.browser();
    let page = stranger.visit(link.trim());
    stranger.submit(&page, &[("address", "somebody.new@example.com")]);
    mailbox.letter(4);
    change_address(&gatepost, "alice.liddell@example.com");
    mailbox.letter(5);
    for number in 1..=5 {
        let letter = mailbox.letter(number);
        let link = letter.link();
        // As at an issuer of this length.
        let issuer = "https://login.example.com".len();
        let length = link.len() - gatepost.origin().len() + issuer;
        assert!(length <= LONGEST, "{}: {length}: {link}", letter.subject);
        assert_eq!(buttons(&letter), [link]);
        assert_eq!(encodings(&letter), ["7bit", "7bit"]);
    }
}

/// A stranger chooses the address that these go to.
#[test]
fn nothing_that_people_chose_stands_in_a_letter_to_an_address_that_may_be_somebody_elses() {
    let mailbox = Mailbox::open();
    let mut document = registered();
    document["users"][0]["claims"]["name"] = json!("Buy at evil.example");
    let gatepost = Gatepost::start_with(&document, &mailbox.settings());
    change_address(&gatepost, "you@example.com");
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["you@example.com"]);
    for part in [&letter.text, letter.html(), &letter.subject] {
        assert!(!part.contains("evil") && !part.contains("alice"), "{part}");
    }
}
