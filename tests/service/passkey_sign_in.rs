//! Passkeys over HTTP: what a browser is asked, what it may answer, and what is refused, by an
//! authenticator made for tests.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::passkeys::{AAGUID, Key, attested, data, object};
use crate::support::claims::Says;
use crate::support::flow::{authorize_path, decode_jwt, issued, redeem, sign_in, signed_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
use crate::support::offline::client;
use crate::support::phone::{Phone, add_app, recovery_codes};
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, await_that};

const HOST: &str = "localhost";

/// One passkey, and who has it.
pub(crate) struct Held {
    pub(crate) key: Key,
    pub(crate) id: String,
    pub(crate) user_handle: String,
}

pub(crate) fn options(page: &Answer) -> Value {
    let told = page.attribute("data-passkey=", "data-passkey");
    let told = told.unwrap_or_else(|| panic!("{}", page.text()));
    serde_json::from_str(&told).unwrap()
}

fn client_data(kind: &str, options: &Value, origin: &str) -> Vec<u8> {
    json!({"type": kind, "challenge": options["challenge"], "origin": origin, "crossOrigin": false})
        .to_string()
        .into_bytes()
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What a browser answers to that page for a new passkey of that id.
pub(crate) fn made(gatepost: &Gatepost, page: &Answer, key: &Key, id: &str) -> [String; 2] {
    let client_data = client_data("webauthn.create", &options(page), gatepost.origin());
    let attested = data(HOST, 0x45, 0, &attested(id.as_bytes(), &key.cose()));
    [encoded(&client_data), encoded(&object(&attested))]
}

fn page_to_add(browser: &mut Browser) -> Answer {
    let account = browser.visit("/account");
    browser.submit(&account, &[("decision", "add_passkey")])
}

fn post_new(browser: &mut Browser, page: &Answer, [client_data, object]: &[String; 2]) -> Answer {
    let fields = [
        ("decision", "add_passkey"),
        ("client_data", client_data),
        ("attestation_object", object),
        ("name", " Mine "),
    ];
    browser.submit(page, &fields)
}

/// Adds a passkey of that id in a browser that signed in just now.
pub(crate) fn add(gatepost: &Gatepost, browser: &mut Browser, id: &str) -> (Held, Answer) {
    let page = page_to_add(browser);
    add_at(gatepost, browser, &page, id)
}

/// Adds one at the page that asks for it.
fn add_at(gatepost: &Gatepost, browser: &mut Browser, page: &Answer, id: &str) -> (Held, Answer) {
    let held = Held {
        key: Key::es256(),
        id: encoded(id.as_bytes()),
        user_handle: text(&options(page)["user"], "id").to_owned(),
    };
    let answer = post_new(browser, page, &made(gatepost, page, &held.key, id));
    (held, answer)
}

/// What a browser answers to a page that asks for it.
pub(crate) fn shown(
    page: &Answer,
    held: &Held,
    origin: &str,
    kind: &str,
    count: u32,
) -> Vec<(&'static str, String)> {
    let client_data = client_data(kind, &options(page), origin);
    let shown = data(HOST, 0x05, count, b"");
    vec![
        ("decision", String::from("passkey")),
        ("id", held.id.clone()),
        ("client_data", encoded(&client_data)),
        ("authenticator_data", encoded(&shown)),
        ("signature", encoded(&held.key.sign(&shown, &client_data))),
        ("user_handle", held.user_handle.clone()),
    ]
}

/// To where the page's own passkey form goes.
pub(crate) fn post(
    browser: &mut Browser,
    page: &Answer,
    fields: &[(&'static str, String)],
) -> Answer {
    let action = page.attribute("data-passkey=", "action").unwrap();
    let token = page.form_token();
    let mut form = vec![("form_token", token.as_str())];
    form.extend(fields.iter().map(|(name, value)| (*name, value.as_str())));
    browser.post(&action, &form)
}

/// Shows a passkey that does not count, where the page asks for one.
pub(crate) fn show(
    gatepost: &Gatepost,
    browser: &mut Browser,
    page: &Answer,
    held: &Held,
) -> Answer {
    let fields = shown(page, held, gatepost.origin(), "webauthn.get", 0);
    post(browser, page, &fields)
}

fn with(
    fields: &[(&'static str, String)],
    name: &'static str,
    value: &str,
) -> Vec<(&'static str, String)> {
    let others = fields.iter().filter(|(other, _)| *other != name).cloned();
    others.chain([(name, value.to_owned())]).collect()
}

/// What the page has the browser told.
fn signals(page: &Answer) -> Option<Value> {
    let told = page.attribute("data-signals=", "data-signals")?;
    Some(serde_json::from_str(&told).unwrap())
}

fn is_refused(gatepost: &Gatepost, answer: &Answer, reason: &str, what: &str) {
    answer.assert_status_for(what, 200);
    // Browsers may delete what they are told of: only a passkey that nobody has.
    assert_eq!(signals(answer).is_some(), reason == "GP1819", "{what}");
    answer.assert_says_for(what, "The passkey was not accepted");
    answer.assert_sets_none("gatepost-session");
    gatepost.log().assert_says_for(what, reason);
}

#[test]
fn a_passkey_signs_in_once_for_its_own_page_in_its_own_browser() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    let (held, answer) = add(&gatepost, &mut own, "alices");
    recovery_codes(&answer);
    assert!(own.visit("/account").text().contains("Mine"));
    let path = authorize_path("conf1", RP1, &[]);
    let origin = gatepost.origin().to_owned();
    let mut browser = gatepost.browser();
    let (page, other_tab) = (browser.visit(&path), browser.visit(&path));
    let fields = shown(&page, &held, &origin, "webauthn.get", 0);
    let refused =
        |answer: &Answer, reason: &str, what: &str| is_refused(&gatepost, answer, reason, what);
    let answer = post(&mut browser, &other_tab, &fields);
    refused(&answer, "GP1817", "another tab's");
    let mut elsewhere = gatepost.browser();
    let foreign = elsewhere.visit(&path);
    let answer = post(&mut elsewhere, &foreign, &fields);
    refused(&answer, "GP1817", "another browser's");
    let new = page_to_add(&mut own);
    let evil = "https://evil.example";
    for (of, origin, kind, reason, what) in [
        (&new, &*origin, "webauthn.get", "GP1817", "for a new one"),
        (&page, &origin, "webauthn.create", "GP1812", "another type"),
        (&page, evil, "webauthn.get", "GP1812", "another origin"),
    ] {
        let answer = post(&mut browser, &page, &shown(of, &held, origin, kind, 0));
        refused(&answer, reason, what);
    }
    for [name, value, reason, what] in rows_of(
        "
        id                 |      | GP1819 | no id
        id                 | AAAA | GP1819 | an id that nobody has
        user_handle        | AAAA | GP1815 | somebody else's name
        signature          | AAAA | GP1815 | a signature of nothing
        signature          |      | GP1815 | no signature
        authenticator_data |      | GP1811 | no data
        client_data        |      | GP1811 | no client data
        client_data        | e30  | GP1812 | empty client data
        ",
    ) {
        let answer = post(&mut browser, &page, &with(&fields, name, value));
        refused(&answer, reason, what);
    }
    for (name, value) in [
        ("id", "%%"),
        ("client_data", "A=="),
        ("signature", "+"),
        ("authenticator_data", &"A".repeat(9_000)),
    ] {
        post(&mut browser, &page, &with(&fields, name, value)).assert_status_for(name, 400);
    }
    let doubled = [fields.clone(), vec![("id", held.id.clone())]].concat();
    assert_eq!(post(&mut browser, &page, &doubled).status, 400, "doubled");

    let (cookies, handle) = (browser.cookies.clone(), with(&fields, "user_handle", ""));
    let code = post(&mut browser, &page, &handle).code();
    let (_, claims) = decode_jwt(text(&issued(&redeem(&gatepost, &code)), "id_token"));
    assert_eq!(claims["acr"], "phr");
    assert_eq!(claims["amr"], json!(["hwk", "user", "mfa"]));
    let mut again = gatepost.browser();
    again.cookies = cookies.clone();
    refused(&post(&mut again, &page, &fields), "GP1817", "used before");

    // One that counts: the same answer sent twice is no copy, an older counter is one.
    let mut counting = gatepost.browser();
    let page = counting.visit(&path);
    let counted = |page: &Answer| shown(page, &held, &origin, "webauthn.get", 5);
    let (cookies, fields) = (counting.cookies.clone(), counted(&page));
    post(&mut counting, &page, &fields).assert_status(303);
    again.cookies = cookies;
    refused(&post(&mut again, &page, &fields), "GP1817", "sent twice");
    assert_eq!(gatepost.database.events("passkey_cloned"), 0);
    let mut copy = gatepost.browser();
    let page = copy.visit(&path);
    let answer = post(&mut copy, &page, &counted(&page));
    refused(&answer, "GP1816", "a copy");
    assert_eq!(gatepost.database.events("passkey_cloned"), 1);
}

/// Who has passkeys alone comes back by a recovery code, and no code is asked for where it makes
/// nothing stronger.
#[test]
fn a_recovery_code_stands_in_for_a_lost_passkey_once() {
    let mut registered = document();
    client(&mut registered, "conf2")["minimum_acr"] = json!("phr");
    let gatepost = Gatepost::start_with(&registered, &[]);
    let (_, answer) = add(&gatepost, &mut signed_in(&gatepost), "alices");
    let codes = recovery_codes(&answer);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let asked = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    asked.assert_says("name=\"code\"");
    let back = browser.submit(&asked, &[("code", &codes[0])]);
    back.assert_status(303);
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    page.assert_says_not("name=\"code\"");
    page.assert_says("Use a passkey");
    let again = browser.submit(&page, &[("code", &codes[1])]);
    again.assert_says("Confirm that it is you");
    // None is used up for nothing.
    assert_eq!(gatepost.database.events("recovery_code_used"), 1);
}

/// Who shows a passkey after the password has signed in whole; by itself it says nothing about
/// passwords.
#[test]
fn wrong_passwords_are_forgotten_with_a_passkey_after_the_right_one() {
    let gatepost = Gatepost::start();
    let (held, _) = add(&gatepost, &mut signed_in(&gatepost), "alices");
    let path = authorize_path("conf1", RP1, &[]);
    let mut browser = gatepost.browser();
    let fail = |browser: &mut Browser, times: usize| {
        for _ in 0..times {
            let page = browser.visit(&path);
            assert_eq!(sign_in(browser, &page, "alice", "wrong").status, 200);
        }
    };
    let show = |browser: &mut Browser, page: &Answer| {
        show(&gatepost, browser, page, &held).assert_status(303);
        browser.cookies.clear();
    };
    for _ in 0..2 {
        fail(&mut browser, 9);
        let page = browser.visit(&path);
        let asked = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        show(&mut browser, &asked);
    }
    fail(&mut browser, 9);
    let page = browser.visit(&path);
    show(&mut browser, &page);
    fail(&mut browser, 1);
    let page = browser.visit(&path);
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_status(429);
}

/// What the browser is told of the passkeys of whoever is signed in; who made them; and where
/// password managers learn of the page.
#[test]
fn their_owner_alone_sees_which_passkeys_there_are_and_a_nameless_one_is_called_by_its_make() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    assert_eq!(signals(&own.visit("/account")), None, "none yet");
    let (held, answer) = add(&gatepost, &mut own, "alices");
    recovery_codes(&answer);
    let told = json!({
        "rpId": "localhost", "userId": held.user_handle, "allAcceptedCredentialIds": [held.id],
        "name": "alice", "displayName": "Alice Smith",
    });
    assert_eq!(signals(&own.visit("/account")), Some(told));
    // A second one, without a name, and the first is removed.
    let page = page_to_add(&mut own);
    let [client_data, object] = made(&gatepost, &page, &Key::es256(), "unnamed");
    let fields = [
        ("decision", "add_passkey"),
        ("client_data", &client_data),
        ("attestation_object", &object),
    ];
    let account = own.submit(&page, &fields);
    account.assert_says("Bitwarden");
    let listed = |page: &Answer| signals(page).unwrap()["allAcceptedCredentialIds"].clone();
    let second = encoded(b"unnamed");
    assert_eq!(listed(&account), json!([held.id, second]));
    let factor = account.attribute("name=\"factor\"", "value").unwrap();
    let remove = [("decision", "remove_factor"), ("factor", &*factor)];
    let left = own.submit(&account, &remove);
    assert_eq!(listed(&left), json!([second]));
    let sql = "SELECT aaguid FROM authenticators WHERE kind = 'passkey'";
    let aaguid: Vec<u8> = gatepost.database.value(sql, &[]);
    assert_eq!(aaguid, AAGUID);
    // The removed one is nobody's now; the page that asks for a second factor tells nothing.
    let path = authorize_path("conf1", RP1, &[]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&path);
    let refused = show(&gatepost, &mut browser, &page, &held);
    let unknown = json!({"rpId": "localhost", "credentialId": held.id});
    assert_eq!(signals(&refused), Some(unknown));
    let asked = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let refused = show(&gatepost, &mut browser, &asked, &held);
    refused.assert_says("The passkey was not accepted");
    assert_eq!(signals(&refused), None);
}

/// The page's addresses are made from the base path, whatever that contains.
#[test]
fn passkeys_sign_in_below_a_base_path_that_looks_like_a_page() {
    for base_path in ["/my/login/app", "/login"] {
        let base_url = format!("http://localhost:PORT{base_path}");
        let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_BASE_URL", &base_url)]);
        let path = |path: &str| format!("{base_path}{path}");
        let endpoints = gatepost.get("/.well-known/passkey-endpoints");
        endpoints.assert_header("content-type", "application/json");
        let page = format!("{}/account#factors", gatepost.base_url);
        assert_eq!(endpoints.json(), json!({"enroll": page, "manage": page}));
        let mut own = gatepost.browser();
        let page = own.visit(&path("/account"));
        let back = sign_in(&mut own, &page, "alice", ALICE_PASSWORD);
        assert_eq!(back.location(), path("/account"));
        let account = own.visit(&path("/account"));
        let page = own.submit(&account, &[("decision", "add_passkey")]);
        let (held, added) = add_at(&gatepost, &mut own, &page, "alices");
        recovery_codes(&added);
        let mut browser = gatepost.browser();
        let german = authorize_path("conf1", RP1, &[("ui_locales", "de")]);
        let page = browser.visit(&path(&german));
        let action = page.attribute("data-passkey=", "action").unwrap();
        let begins = action.starts_with(&path("/login/second-factor?r="));
        assert!(begins && action.ends_with("&ui_locales=de"), "{action}");
        let answer = show(&gatepost, &mut browser, &page, &held);
        answer.assert_carries_for(base_path, "code");
    }
}

#[test]
fn a_passkey_is_one_persons_and_nobody_elses_second_factor() {
    let gatepost = Gatepost::start();
    let (alices, _) = add(&gatepost, &mut signed_in(&gatepost), "alices");
    let path = authorize_path("conf1", RP1, &[]);
    let mut bob = gatepost.browser();
    let page = bob.visit(&path);
    assert_eq!(sign_in(&mut bob, &page, "bob", BOB_PASSWORD).status, 303);
    // The same credential cannot be two people's.
    let (_, taken) = add(&gatepost, &mut bob, "alices");
    taken.assert_says("It was not added");
    add(&gatepost, &mut bob, "bobs");
    let mut browser = gatepost.browser();
    let page = browser.visit(&path);
    let asked = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    let answer = show(&gatepost, &mut browser, &asked, &alices);
    is_refused(&gatepost, &answer, "GP1815", "alice's for bob");
    // The challenge was not spent by that, and bob is still asked.
    answer.assert_says("Confirm that it is you");
    gatepost.run_well(&["user", "disable", "alice"], "");
    let mut browser = gatepost.browser();
    let page = browser.visit(&path);
    let answer = show(&gatepost, &mut browser, &page, &alices);
    is_refused(&gatepost, &answer, "GP1815", "of somebody disabled");
}

#[test]
fn what_is_no_new_passkey_adds_none_and_twenty_are_enough() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    let page = page_to_add(&mut own);
    let [client_data, whole] = made(&gatepost, &page, &Key::es256(), "alices");
    let mut post = |client_data: &str, object: &str| {
        let new = [client_data, object].map(str::to_owned);
        post_new(&mut own, &page, &new)
    };
    for (client_data, object, what) in [
        ("", whole.as_str(), "no client data"),
        ("e30", &whole, "empty client data"),
        (&client_data, "oA", "an empty map"),
        (&client_data, &whole[..whole.len() - 4], "cut"),
        (&client_data, "n____w", "a list without end"),
    ] {
        let answer = post(client_data, object);
        answer.assert_status_for(what, 200);
        answer.assert_says_for(what, "was not accepted");
    }
    let long = "A".repeat(11_000);
    for (client_data, object) in [("%", &*whole), (&client_data, "A=="), (&client_data, &long)] {
        post(client_data, object).assert_status_for(object, 400);
    }
    // A page of another session of hers is none of this one's.
    let mut other = signed_in(&gatepost);
    let foreign = page_to_add(&mut other);
    let new = made(&gatepost, &foreign, &Key::es256(), "alices");
    let answer = post_new(&mut own, &page, &new);
    answer.assert_says("was not accepted");
    assert_eq!(gatepost.run_line("user factors alice --json").trim(), "[]");

    let (_, first) = add(&gatepost, &mut own, "key-0");
    recovery_codes(&first);
    // The session has another handle since that page was drawn.
    let late = post_new(&mut own, &page, &[client_data, whole]);
    late.assert_says("changed while this page was open");
    let page = page_to_add(&mut own);
    for number in 1..20 {
        let (_, answer) = add(&gatepost, &mut own, &format!("key-{number}"));
        answer.assert_says_for(number, "The second factor is added");
        // The factors changed since that page was drawn.
        let (_, late) = add_at(&gatepost, &mut own, &page, "late");
        late.assert_says_for(number, "It was not added");
    }
    let (_, answer) = add(&gatepost, &mut own, "key-20");
    answer.assert_says("It was not added");
    let listed = gatepost.shown("user factors alice --json");
    let listed = listed.as_array().unwrap().iter();
    assert_eq!(listed.filter(|one| one["kind"] == "passkey").count(), 20);
}

#[test]
fn ten_thousand_guesses_of_a_code_are_answered_and_open_nothing() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    add_app(&mut own, 0);
    let mut thief = gatepost.browser();
    let page = thief.visit(&authorize_path("conf1", RP1, &[]));
    let asked = sign_in(&mut thief, &page, "alice", ALICE_PASSWORD);
    for number in 0..10_000 {
        let answer = thief.submit(&asked, &[("code", &format!("{number:06}"))]);
        let expected = if number < 5 { &[200, 429][..] } else { &[429] };
        let is_answered = expected.contains(&answer.status);
        assert!(is_answered, "{number}: {} {}", answer.status, answer.text());
    }
    let looked_at = "SELECT count(*) FROM audit_events WHERE event = 'second_factor_failed'";
    let failed: i64 = gatepost.database.value(looked_at, &[]);
    assert_eq!(failed, 5, "the others were not looked at");
}

/// Adds an app where there is a factor already.
fn add_another_app(browser: &mut Browser) -> Phone {
    let account = browser.visit("/account");
    let page = browser.submit(&account, &[("decision", "add_app")]);
    let phone = Phone::from_page(&page, 0);
    let added = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    added.assert_says("The second factor is added");
    phone
}

fn factors(gatepost: &Gatepost) -> String {
    let all = "SELECT string_agg(concat_ws(' ', kind, encode(id, 'hex'), encode(public_key, 'escape')), ',' ORDER BY kind, id)
               FROM authenticators";
    gatepost.database.value(all, &[])
}

#[test]
fn who_has_a_passkey_changes_factors_in_a_session_of_it_alone() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    let (held, _) = add(&gatepost, &mut own, "alices");
    let phone = add_another_app(&mut own);
    let path = authorize_path("conf1", RP1, &[]);
    // Password and code were phished, a moment ago.
    let mut thief = gatepost.browser();
    let page = thief.visit(&path);
    let asked = sign_in(&mut thief, &page, "alice", ALICE_PASSWORD);
    let back = thief.submit(&asked, &[("code", &phone.code(0))]);
    back.assert_status(303);
    let account = thief.visit("/account");
    let needed = "only a sign-in with it can change your second factors";
    account.assert_says(needed);
    for button in "add_app add_passkey remove_factor make_recovery_codes".split(' ') {
        account.assert_says_not_for(button, &format!("value=\"{button}\""));
    }
    let before = factors(&gatepost);
    for (decision, factor) in [
        ("add_app", ""),
        ("add_passkey", ""),
        ("remove_factor", "totp."),
        ("remove_factor", &format!("passkey.{}", held.id)),
        ("make_recovery_codes", ""),
        ("link", ""),
        ("unlink", ""),
    ] {
        let answer = thief.submit(&account, &[("decision", decision), ("factor", factor)]);
        answer.assert_says_for(decision, "role=\"alert\"");
        answer.assert_says_for(decision, needed);
    }
    // A page of the owner's own, in the thief's session.
    let page = page_to_add(&mut own);
    let [client_data, object] = made(&gatepost, &page, &Key::es256(), "thiefs");
    let fields = [
        ("decision", "add_passkey"),
        ("client_data", &client_data),
        ("attestation_object", &object),
    ];
    thief.submit(&account, &fields);
    assert_eq!(factors(&gatepost), before);
    gatepost.log().assert_says("GP1818");

    // The page leads to a sign-in with the passkey, and then it goes.
    let anew = thief.submit(&account, &[("decision", "sign_in_anew")]);
    let page = thief.follow(anew);
    let back = show(&gatepost, &mut thief, &page, &held);
    let account = thief.follow(back);
    account.assert_says_not(needed);
    recovery_codes(&thief.submit(&account, &[("decision", "make_recovery_codes")]));
    let remove = [("decision", "remove_factor"), ("factor", "totp.")];
    let removed = thief.submit(&account, &remove);
    removed.assert_says("The second factor is removed");
}

#[test]
fn a_known_credential_id_swaps_no_key_of_its_own_owner() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    let (held, _) = add(&gatepost, &mut own, "alices");
    let before = factors(&gatepost);
    let (_, again) = add(&gatepost, &mut own, "alices");
    again.assert_says("It was not added");
    assert_eq!(factors(&gatepost), before);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    show(&gatepost, &mut browser, &page, &held).assert_status(303);
}

#[test]
fn who_has_an_app_adds_the_first_passkey_in_the_middle_of_a_sign_in() {
    let mut registered = document();
    registered["clients"][0]["minimum_acr"] = json!("phr");
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut own = gatepost.browser();
    let page = own.visit("/account");
    sign_in(&mut own, &page, "alice", ALICE_PASSWORD).assert_status(303);
    add_app(&mut own, 0);
    let page = own.visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says_not_for("it is not the first", "Everywhere else");
    let (_, answer) = add_at(&gatepost, &mut own, &page, "alices");
    let code = answer.code();
    let (_, claims) = decode_jwt(text(&issued(&redeem(&gatepost, &code)), "id_token"));
    assert_eq!(claims["acr"], "phr");
}

#[test]
fn a_refused_passkey_is_a_failed_second_factor_only_after_a_right_password() {
    let gatepost = Gatepost::start();
    let mut own = signed_in(&gatepost);
    let (held, _) = add(&gatepost, &mut own, "alices");
    let told = |event: &str| gatepost.database.events(event);
    let mut visitor = gatepost.browser();
    let page = visitor.visit(&authorize_path("conf1", RP1, &[]));
    let garbage = |page: &Answer| {
        let fields = shown(page, &held, gatepost.origin(), "webauthn.get", 0);
        with(&fields, "signature", "AAAA")
    };
    for _ in 0..2 {
        let answer = post(&mut visitor, &page, &garbage(&page));
        is_refused(&gatepost, &answer, "GP1815", "garbage");
    }
    await_that("they are told", SOON, || told("passkey_refused") == 2);
    assert_eq!(told("second_factor_failed"), 0, "nobody showed a password");
    let asked = sign_in(&mut visitor, &page, "alice", ALICE_PASSWORD);
    let answer = post(&mut visitor, &asked, &garbage(&asked));
    is_refused(&gatepost, &answer, "GP1815", "beside a password");
    await_that("it is told", SOON, || told("second_factor_failed") == 1);
    assert_eq!(told("passkey_refused"), 2);
}
