//! Passwords that another program hashed with PBKDF2 or bcrypt: they sign in, become Argon2id by that, and
//! time does not tell whose they are.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

use crate::support::flow::{authorize_path, basic, sign_in, with_clients};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1, document};
use crate::support::timing::{assert_not_told_apart, welch};
use crate::support::waiting::{SOON, await_that};

/// Of "my password", each made by aspnetcore, those of bcrypt by libxcrypt.
const HASHES: [&str; 8] = [
    "$pbkdf2$i=1000,l=32$AAECAwQFBgcICQoLDA0ODw$rpAhDA39MskNvTWLm4IByFWNLHRFH3cnjPhNS7R9biY",
    "$pbkdf2$i=250,l=16$CF+0zJ9MnKU6VlP54Si0VQ$3dXpXnvIoeVrI12kdzwPTA",
    "$pbkdf2-sha256$i=250000,l=32$RKRC6PYO7xj6RtzmVw39b/c2IBkUSbXU/buetI3n+0g$d+bR1SwV8CO1Jd72r4C08OLvplNlCDc3oQZ8efcW+jQ",
    "$pbkdf2-sha512$i=50,l=16$4zC+Hf4VnGqR0wHPZ6SAaA$cEOAeqWVjQ+s4BEgbloh8A",
    "$pbkdf2-sha512$i=250,l=64$ltWLnBsxH6G1J8Wnx9PDw3wY5L9KN75L/hhlyAF9TsQ$Quqv4OkVYmc4VJl9AGZzmRTxSkP7LtVi9IWyUxX8IAAfZ8v+ZfhjCcudtC1YERSqE1OEdXLW9VukPuJWBBjLuw",
    "$2a$04$abcdefghijklmnopqrstuuR/sMB5BEXmOMYfypgggoVc1NiqGSQrS",
    "$2b$04$abcdefghijklmnopqrstuuR/sMB5BEXmOMYfypgggoVc1NiqGSQrS",
    "$2y$04$abcdefghijklmnopqrstuuR/sMB5BEXmOMYfypgggoVc1NiqGSQrS",
];

/// Of "my password" as well, each with what is stored of it: by Django 5.2.6, and by passlib 1.7.4 and for LDAP.
const REWRITTEN: [(&str, &str); 12] = [
    (
        "pbkdf2_sha256$1000$Zx9Kq2vLw8Tn4RbY7Hs1Md$bEOuH4Kg53hhIClKxRPYHfl1IKZmFCEZBv0LHAMhPOY=",
        "$pbkdf2-sha256$i=1000,l=32$Wng5S3Eydkx3OFRuNFJiWTdIczFNZA$bEOuH4Kg53hhIClKxRPYHfl1IKZmFCEZBv0LHAMhPOY",
    ),
    (
        "pbkdf2_sha256$1000$abcdEFGH1234$i9pb8lGa5DyqWKox6GnOBFa8xKlvNqpa7UV16SFqgV0=",
        "$pbkdf2-sha256$i=1000,l=32$YWJjZEVGR0gxMjM0$i9pb8lGa5DyqWKox6GnOBFa8xKlvNqpa7UV16SFqgV0",
    ),
    (
        "pbkdf2_sha1$1000$Zx9Kq2vLw8Tn4RbY7Hs1Md$vZfCVBKnXlFskvzabfWfnFJ3vVk=",
        "$pbkdf2$i=1000,l=20$Wng5S3Eydkx3OFRuNFJiWTdIczFNZA$vZfCVBKnXlFskvzabfWfnFJ3vVk",
    ),
    (
        "argon2$argon2id$v=19$m=64,t=1,p=1$Wng5S3Eydkx3OFRuNFJiWTdIczFNZA$ntHMVhx4cRNgH6LrbNLcLlg31gmNLixsGB3oxhpBjRw",
        "$argon2id$v=19$m=64,t=1,p=1$Wng5S3Eydkx3OFRuNFJiWTdIczFNZA$ntHMVhx4cRNgH6LrbNLcLlg31gmNLixsGB3oxhpBjRw",
    ),
    (
        "bcrypt$$2b$04$npA9f4X0rhXiwcD9wHKHVemkIOR7551uaoEFi636.yG6Rz94Xe3My",
        "$2b$04$npA9f4X0rhXiwcD9wHKHVemkIOR7551uaoEFi636.yG6Rz94Xe3My",
    ),
    (
        "$pbkdf2$1000$..........8$goemTbvhcxzoOv/FfH.w766dASM",
        "$pbkdf2$i=1000,l=20$++++++++++8$goemTbvhcxzoOv/FfH+w766dASM",
    ),
    (
        "$pbkdf2-sha256$1000$....................AQ$GWXOQxx3bS1xxZcMvjBQbWPLLqllOf/X7.AESedoQFY",
        "$pbkdf2-sha256$i=1000,l=32$++++++++++++++++++++AQ$GWXOQxx3bS1xxZcMvjBQbWPLLqllOf/X7+AESedoQFY",
    ),
    (
        "$pbkdf2-sha512$1000$....................AQ$iNUCO896wApL4gHs2Lk84rDZe6xHKkKWhT3Vo3lZ6ucS.XdnWbMzh0aNYZ7tJh2VPKawEv0WDSsXaEObcukX0Q",
        "$pbkdf2-sha512$i=1000,l=64$++++++++++++++++++++AQ$iNUCO896wApL4gHs2Lk84rDZe6xHKkKWhT3Vo3lZ6ucS+XdnWbMzh0aNYZ7tJh2VPKawEv0WDSsXaEObcukX0Q",
    ),
    (
        "{PBKDF2-SHA256}1000$....................AQ$GWXOQxx3bS1xxZcMvjBQbWPLLqllOf/X7.AESedoQFY",
        "$pbkdf2-sha256$i=1000,l=32$++++++++++++++++++++AQ$GWXOQxx3bS1xxZcMvjBQbWPLLqllOf/X7+AESedoQFY",
    ),
    (
        "{PBKDF2-SHA1}1000$....................AQ$6MXK75zDuFcL.wjg8ULnmHyOxck",
        "$pbkdf2$i=1000,l=20$++++++++++++++++++++AQ$6MXK75zDuFcL+wjg8ULnmHyOxck",
    ),
    (
        "{ARGON2}$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$vRruD9xoyQbEwP24TLa4dkRE4hpHZx+cUQIrYeziEuk",
        "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$vRruD9xoyQbEwP24TLa4dkRE4hpHZx+cUQIrYeziEuk",
    ),
    (
        "{crypt}$2b$04$abcdefghijklmnopqrstuuR/sMB5BEXmOMYfypgggoVc1NiqGSQrS",
        "$2b$04$abcdefghijklmnopqrstuuR/sMB5BEXmOMYfypgggoVc1NiqGSQrS",
    ),
];

fn stored(gatepost: &Gatepost, username: &str) -> String {
    let asked = "SELECT password_hash FROM users WHERE username = $1::text";
    gatepost.database.value(asked, &[&username])
}

#[test]
fn an_imported_password_signs_in_and_is_argon2id_from_then_on() {
    let as_it_is = HASHES.map(|hash| (hash, hash));
    let hashes = [&as_it_is[..], &REWRITTEN].concat();
    let mut registered = document();
    for (index, (hash, _)) in hashes.iter().enumerate() {
        let user = json!({"sub": format!("old-{index}"), "username": format!("old-{index}"), "password_hash": hash});
        registered["users"].as_array_mut().unwrap().push(user);
    }
    let gatepost = Gatepost::start_with(&registered, &[]);
    for (index, (hash, kept)) in hashes.iter().enumerate() {
        let name = format!("old-{index}");
        let try_it = |password: &str| {
            let mut browser = gatepost.browser();
            let page = browser.visit(&authorize_path("conf1", RP1, &[]));
            sign_in(&mut browser, &page, &name, password).status
        };
        assert_eq!(try_it("My password"), 200);
        assert_eq!(stored(&gatepost, &name), *kept);
        assert_eq!(try_it("my password"), 303, "{hash}");
        assert!(stored(&gatepost, &name).starts_with("$argon2id$v=19$m=7168,t=1,p=1$"));
        assert_eq!(try_it("my password"), 303, "{hash}");
        assert_eq!(try_it("My password"), 200, "{hash}");
    }
    // What they had before they came does not come back with the document that brought it.
    gatepost.apply(&registered);
    let count = "SELECT count(*) FROM users WHERE pbkdf2 IS NOT NULL OR password_hash LIKE '$2%'";
    assert_eq!(gatepost.database.value::<i64>(count, &[]), 0);
}

#[test]
fn of_a_long_password_bcrypt_had_the_beginning_and_argon2id_has_all() {
    let cut = "0123456789".repeat(7) + "01";
    // Made by libxcrypt of these 72 bytes.
    let hash = "$2b$04$abcdefghijklmnopqrstuum2G75IXDN/xsgbNa/hCiPSKyIHQd70S";
    let mut registered = document();
    let user = json!({"username": "long", "password_hash": hash});
    registered["users"].as_array_mut().unwrap().push(user);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let try_it = |password: &str| {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        sign_in(&mut browser, &page, "long", password).status
    };
    let typed = cut.clone() + " and more";
    assert_eq!(try_it(&typed), 303);
    assert_eq!(try_it(&cut), 200, "it is the whole password by now");
    assert_eq!(try_it(&typed), 303);
}

/// A hash of a password that nobody has.
fn hash(rounds: u32) -> String {
    let part = |length| STANDARD_NO_PAD.encode(vec![7; length]);
    format!("$pbkdf2-sha256$i={rounds},l=32${}${}", part(16), part(32))
}

/// Tries the one or the other of two names, with a wrong password.
fn trial_of(gatepost: &Gatepost, names: [&'static str; 2]) -> impl FnMut(usize) {
    let authorization = basic("direct", CONF1_SECRET);
    let mut connection = gatepost.connect();
    move |which| {
        let form = [
            ("grant_type", "password"),
            ("username", names[which]),
            ("password", "wrong password"),
        ];
        let answer = connection.post(
            "/connect/token",
            &[("Authorization", &authorization)],
            &form,
        );
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
}

const WITHOUT_LIMITS: [(&str, &str); 3] = [
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "1000000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "1000000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR", "1000000"),
];

#[test]
fn time_does_not_tell_a_name_with_a_hash_of_bcrypt_from_an_unknown_one() {
    let direct = json!({"grant_types": ["password"], "response_types": [], "redirect_uris": [], "scope": "openid"});
    let mut registered = with_clients(document(), &[("direct", direct)]);
    let hash = |cost: &str| format!("$2y${cost}$abcdefghijklmnopqrstuu{}", ".".repeat(31));
    for (name, cost) in [("mia", "07"), ("noa", "07"), ("rare", "10")] {
        let user = json!({"username": name, "password_hash": hash(cost)});
        registered["users"].as_array_mut().unwrap().push(user);
    }
    let gatepost = Gatepost::start_with(&registered, &WITHOUT_LIMITS);
    let mut try_imported = trial_of(&gatepost, ["unknown", "mia"]);
    welch(20, &mut try_imported);
    assert_not_told_apart("unknown against bcrypt", 300, &mut try_imported);
    let mut try_rarer = trial_of(&gatepost, ["unknown", "rare"]);
    let is_told = (0..3).any(|_| welch(20, &mut try_rarer) < -4.5);
    assert!(is_told, "a rarer hash can be told, and is not");
}

#[test]
fn time_does_not_tell_an_imported_name_from_an_unknown_one() {
    let direct = json!({"grant_types": ["password"], "response_types": [], "redirect_uris": [], "scope": "openid"});
    let mut registered = with_clients(document(), &[("direct", direct)]);
    let user = |name: &str, rounds: u32| json!({"username": name, "password_hash": hash(rounds)});
    let users: Vec<Value> = [("mia", 20_000), ("noa", 20_000), ("rare", 200_000)]
        .map(|(name, rounds)| user(name, rounds))
        .into();
    registered["users"].as_array_mut().unwrap().extend(users);
    let gatepost = Gatepost::start_with(&registered, &WITHOUT_LIMITS);
    let mut try_imported = trial_of(&gatepost, ["unknown", "mia"]);
    welch(20, &mut try_imported);
    assert_not_told_apart("unknown against imported", 1_000, &mut try_imported);
    let try_own = trial_of(&gatepost, ["alice", "mia"]);
    assert_not_told_apart("of one's own against imported", 200, try_own);
    // One of another cost: the measure tells what there is to tell.
    let mut try_rarer = trial_of(&gatepost, ["unknown", "rare"]);
    let is_told = (0..3).any(|_| welch(20, &mut try_rarer) < -4.5);
    assert!(is_told, "a rarer hash can be told, and is not");
}

#[test]
fn the_commonest_hash_is_looked_up_anew_once_its_users_have_signed_in() {
    let mut registered = document();
    let users: Vec<Value> = [hash(1_000), hash(1_000), hash(600_000)]
        .iter()
        .enumerate()
        .map(|(index, hash)| json!({"username": format!("u{index}"), "password_hash": hash}))
        .collect();
    registered["users"].as_array_mut().unwrap().extend(users);
    let gatepost = Gatepost::start_with(
        &registered,
        &[("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "10000")],
    );
    let mut attempts = 0;
    let mut attempt = || {
        attempts += 1;
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let begun = Instant::now();
        sign_in(&mut browser, &page, &format!("nobody-{attempts}"), "wrong").assert_status(200);
        begun.elapsed()
    };
    let before = attempt().min(attempt());
    let argon2 = "$argon2id$v=19$m=7168,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    let rehashed = "UPDATE users SET password_hash = $1::text WHERE pbkdf2 LIKE '%i=1000,%'";
    assert_eq!(
        gatepost
            .database
            .client()
            .execute(rehashed, &[&argon2])
            .unwrap(),
        2
    );
    gatepost.run_well(&["user", "set", "alice", "nickname=al"], "");
    await_that("a check of the one that is left", SOON, || {
        attempt() > before * 3
    });
}
