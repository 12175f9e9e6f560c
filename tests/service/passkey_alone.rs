//! `gatepost user invite|reset --passkey`: people who have a passkey and no password.

use serde_json::json;

use crate::passkey_sign_in::{Held, add, encoded, made, options, post, shown};
use crate::passkeys::Key;
use crate::support::flow::{authorize_path, decode_jwt, issued, lets_in, redeem, signed_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::Mailbox;
use crate::support::phone::{Phone, add_app, recovery_codes};

/// With carol, who has no password.
fn start() -> Gatepost {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({"username": "carol"}));
    Gatepost::start_with(&registered, &[])
}

fn link(gatepost: &Gatepost, arguments: &[&str]) -> String {
    let link = gatepost.run_well(arguments, "").trim().to_owned();
    let begins = format!("{}/account/link?l=gpk_", gatepost.base_url);
    assert!(link.starts_with(&begins), "{link}");
    link
}

fn opened(browser: &mut Browser, link: &str) -> Answer {
    let opened = browser.get(link);
    let (_, key) = link.split_once("?l=").unwrap();
    assert!(!opened.location().contains(key), "{}", opened.location());
    browser.follow(opened)
}

/// Makes the passkey that the page asks for.
fn make(gatepost: &Gatepost, browser: &mut Browser, page: &Answer, id: &str) -> (Held, Answer) {
    let key = Key::es256();
    let user_handle = options(page)["user"]["id"].as_str().unwrap().to_owned();
    let [client_data, object] = made(gatepost, page, &key, id);
    let fields = [
        ("client_data", client_data.as_str()),
        ("attestation_object", object.as_str()),
        ("name", "Mine"),
    ];
    let answer = browser.submit(page, &fields);
    let id = encoded(id.as_bytes());
    (
        Held {
            key,
            id,
            user_handle,
        },
        answer,
    )
}

/// Signs in by it on the page for `conf1`, and answers what the ID token says.
fn signs_in(gatepost: &Gatepost, browser: &mut Browser, held: &Held) -> serde_json::Value {
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let origin = gatepost.origin().to_owned();
    let fields = shown(&page, held, &origin, "webauthn.get", 0);
    let answer = post(browser, &page, &fields);
    let code = answer
        .query()
        .remove("code")
        .unwrap_or_else(|| panic!("{}", answer.text()));
    decode_jwt(text(&issued(&redeem(gatepost, &code)), "id_token")).1
}

#[test]
fn whoever_is_invited_makes_a_passkey_once_and_signs_in_by_it_alone() {
    let gatepost = start();
    let link = link(&gatepost, &["user", "invite", "carol", "--passkey"]);
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, &link);
    assert!(page.text().contains("Set up your passkey") && page.text().contains("carol"));
    assert!(page.text().contains("Passkeys need JavaScript"));
    // A page that another browser opened is not this one's.
    let stolen = gatepost.browser().get(&page.action());
    stolen.assert_error_page(400, "GP1810", "in another browser");
    let (held, answer) = make(&gatepost, &mut browser, &page, "carols");
    let sign_in_page = browser.follow(answer);
    sign_in_page.assert_says("Your passkey is set up.");
    let again = make(&gatepost, &mut browser, &page, "another").1;
    again.assert_error_page(400, "GP1810", "a second time");
    gatepost
        .browser()
        .get(&link)
        .assert_error_page(400, "GP1810", "the link again");

    let claims = signs_in(&gatepost, &mut browser, &held);
    assert_eq!(claims["acr"], "phr");
    assert_eq!(claims["amr"], json!(["hwk", "user", "mfa"]));
    assert!(!lets_in(&gatepost, "carol", "any password at all"));
    let codes = "authenticators WHERE kind = 'recovery_code'";
    assert_eq!(gatepost.database.count(codes), 0, "alone they open nothing");
}

#[test]
fn the_last_passkey_of_somebody_without_a_password_stays() {
    let gatepost = start();
    let link = link(&gatepost, &["user", "invite", "carol", "--passkey"]);
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, &link);
    let (held, _) = make(&gatepost, &mut browser, &page, "carols");
    signs_in(&gatepost, &mut browser, &held);
    let account = browser.visit("/account");
    for absent in ["add_app", "make_recovery_codes", "change_password"] {
        account.assert_says_not_for(absent, absent);
    }
    let remove = [
        ("decision", "remove_factor"),
        ("factor", &format!("passkey.{}", held.id)),
    ];
    let refused = browser.submit(&account, &remove);
    refused.assert_says("your last passkey was not removed");
    assert!(gatepost.log().contains("GP1804"));
    // By hand, what the page does not offer.
    for decision in ["add_app", "make_recovery_codes"] {
        let answer = browser.submit(&account, &[("decision", decision)]);
        assert!(!answer.text().contains("qr-code") && !answer.text().contains("class=\"codes\""));
    }
    // With another one it goes.
    let (second, added) = add(&gatepost, &mut browser, "second");
    added.assert_says("The second factor is added");
    let account = browser.visit("/account");
    let removed = browser.submit(&account, &remove);
    assert!(removed.text().contains("is removed"), "{}", removed.text());
    signs_in(&gatepost, &mut gatepost.browser(), &second);
}

#[test]
fn a_reset_takes_password_and_factors_away_when_the_link_is_used() {
    let gatepost = start();
    let mut before = signed_in(&gatepost);
    let (old, _) = add(&gatepost, &mut before, "old");
    let link = link(&gatepost, &["user", "reset", "alice", "--passkey"]);
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, &link);
    // The same device may make it.
    assert_eq!(options(&page)["excludeCredentials"], json!([]));
    signs_in(&gatepost, &mut gatepost.browser(), &old);
    let (held, _) = make(&gatepost, &mut browser, &page, "new");
    signs_in(&gatepost, &mut browser, &held);
    assert!(!lets_in(&gatepost, "alice", ALICE_PASSWORD));
    let here = before.get(&authorize_path("conf1", RP1, &[("prompt", "none")]));
    assert_eq!(here.query()["error"], "login_required");
    assert_eq!(gatepost.database.count("authenticators"), 1);
    let without = "users WHERE username = 'alice' AND password_hash IS NULL";
    assert_eq!(gatepost.database.count(without), 1);
    // A password that the operator gives her is asked for beside the passkey.
    gatepost.run_well(&["user", "password", "alice"], BOB_PASSWORD);
    assert!(!lets_in(&gatepost, "alice", BOB_PASSWORD));
}

#[test]
fn commands_say_which_of_the_two_fits() {
    let gatepost = start();
    for (arguments, told) in [
        (
            &["user", "invite", "alice", "--passkey"][..],
            "gatepost user reset",
        ),
        (
            &["user", "reset", "carol", "--passkey"],
            "gatepost user invite",
        ),
        (
            &["user", "invite", "carol", "--passkey", "--enrol"],
            "does not go with",
        ),
    ] {
        let error = gatepost.refusal(arguments, "");
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}

#[test]
fn a_link_goes_by_letter_and_is_over_once_the_address_is_another() {
    let mailbox = Mailbox::open();
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    let claims = json!({"email": "carol@example.com", "locale": "fr"});
    users.push(json!({"username": "carol", "claims": claims}));
    let gatepost = Gatepost::start_with(&registered, &mailbox.settings());
    let invite = ["user", "invite", "carol", "--passkey", "--mail"];
    let said = gatepost.run_well(&invite, "");
    assert!(said.contains("sent to carol@example.com"), "{said}");
    let first = mailbox.letter(1);
    assert!(first.text.contains("clé d’accès"), "{}", first.text);
    assert!(first.link().contains("?l=gpk_"), "{}", first.text);
    let mut browser = gatepost.browser();
    let page = opened(&mut browser, first.link());
    assert_eq!(page.status, 200, "{}", page.text());
    gatepost.run_well(&["user", "set", "carol", "email=other@example.com"], "");
    // In the browser that opened it before, too.
    assert_eq!(browser.get(first.link()).status, 400);
    let (_, refused) = make(&gatepost, &mut browser, &page, "late");
    assert_eq!(refused.status, 400, "{}", refused.text());
    gatepost.run_well(&invite, "");
    let second = mailbox.letter(2);
    let page = opened(&mut browser, second.link());
    let (held, answer) = make(&gatepost, &mut browser, &page, "own");
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(signs_in(&gatepost, &mut browser, &held)["acr"], "phr");
    assert_eq!(browser.get(second.link()).status, 400);
}

/// Somebody else may have made the link, or used it.
#[test]
fn letters_tell_all_that_a_link_of_the_operator_changes() {
    let mailbox = Mailbox::open();
    let gatepost = Gatepost::start_with(&document(), &mailbox.settings());
    let tell = |numbers: [usize; 3], sentences: [&str; 3]| {
        let text = numbers.map(|number| mailbox.letter(number).text).concat();
        for sentence in sentences {
            assert_eq!(text.matches(sentence).count(), 1, "{sentence}: {text}");
        }
    };
    let added = "A second factor was added to your account.";
    let removed = "A second factor was removed from your account.";
    add_app(&mut signed_in(&gatepost), 0);
    assert!(mailbox.letter(1).text.contains(added));

    // Another phone, in place of the first one.
    let enrolling = gatepost.run_well(&["user", "reset", "alice", "--enrol"], "");
    let mut browser = gatepost.browser();
    let page = browser.visit(enrolling.trim());
    let phone = Phone::from_page(&page, 0);
    let new = "a password of her own choosing";
    let fields = [
        ("new_password", new),
        ("new_password_again", new),
        ("code", &phone.code(-1)),
    ];
    recovery_codes(&browser.submit(&page, &fields));
    let set = "The password of your account was set or changed.";
    tell([2, 3, 4], [set, added, removed]);

    // A passkey, in place of everything.
    let link = link(&gatepost, &["user", "reset", "alice", "--passkey"]);
    let page = opened(&mut browser, &link);
    make(&gatepost, &mut browser, &page, "own");
    let gone = "The password of your account was removed.";
    tell([5, 6, 7], [gone, added, removed]);
    assert_eq!(mailbox.count(), 7);
}
