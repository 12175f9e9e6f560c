//! Whoever holds a copy of the database holds nothing that opens anything; nor does whoever reads
//! the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws_lc_rs::signature::{self, Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use gatepost::app::{App, Extensions};
use gatepost::config::{Config, Source};
use gatepost::keys::master::{MasterSecret, Purpose};
use gatepost::protocol::words::identifiers::ClientId;
use gatepost::serve::database_settings;
use gatepost::store::Store;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::support::claims::Says;
use crate::support::flow::{VERIFIER, authorize_path, basic, redeem_as, sign_in, text, userinfo};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, CONF2_SECRET, Gatepost, MASTER_SECRET, RP1, RP2,
    document,
};
use crate::support::house::House;
use crate::support::http::{Answer, Browser, Connection, encode};
use crate::support::phone::add_app;
use crate::support::postgres::TestDatabase;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_SECRET, Place, SUBJECT};

const TYPED_BY_MISTAKE: &str = "a password typed as a user name";
const WRONG_PASSWORD: &str = "a wrong but telling password";
const NEW_PASSWORD: &str = "bob's next password, quite long";
/// Who try at once.
const THIEVES: usize = 4;
/// So that trying everything is judged by what it is, not by how often it comes.
const PATIENT: [(&str, &str); 5] = [
    ("GATEPOST_LOG", "debug"),
    ("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "1000000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "1000000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "1000000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR", "1000000"),
];

/// A day's use, and every secret that was used in it.
#[derive(Default)]
struct Day {
    /// Random handles: nobody guesses them from a digest.
    handles: BTreeSet<String>,
    /// What people or operators chose: a plain digest of it can be searched.
    chosen: BTreeSet<String>,
    /// Fresh at the end of the day, each good for one thing.
    code: String,
    access_tokens: Vec<String>,
    session: (String, String),
}

impl Day {
    fn note(&mut self, handle: &str) -> String {
        assert!(handle.len() >= 16, "{handle} would be found by chance");
        self.handles.insert(handle.to_owned());
        handle.to_owned()
    }

    fn note_cookies(&mut self, browser: &Browser) {
        for value in browser.cookies.values() {
            self.note(value);
        }
    }

    /// A page with a form: its token, and the sealed request in its address.
    fn note_page(&mut self, page: &Answer) {
        self.note(&page.form_token());
        let action = page.attribute("form ", "action").unwrap();
        self.note(action.split_once("r=").unwrap().1);
    }

    fn path(
        &mut self,
        number: u32,
        client: &str,
        redirect_uri: &str,
        changes: &[(&str, &str)],
    ) -> String {
        let state = self.note(&format!("state-of-request-number-{number:04}"));
        let nonce = self.note(&format!("nonce-of-request-number-{number:04}"));
        let own = [("state", state.as_str()), ("nonce", &nonce)];
        authorize_path(client, redirect_uri, &[&own, changes].concat())
    }

    fn note_code(&mut self, answer: &Answer) -> String {
        self.note(&answer.code())
    }

    fn note_tokens(&mut self, answer: &Answer) -> String {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let tokens = answer.json();
        for name in ["access_token", "id_token"] {
            tokens[name].as_str().map(|token| self.note(token));
        }
        tokens["access_token"].as_str().unwrap().to_owned()
    }

    /// Signs a person in at a client, after two mistakes.
    fn sign_in(
        &mut self,
        gatepost: &Gatepost,
        number: u32,
        person: &str,
        password: &str,
    ) -> Browser {
        let mut browser = gatepost.browser();
        let page = browser.visit(&self.path(number, "conf1", RP1, &[]));
        self.note_page(&page);
        self.note_cookies(&browser);
        for (name, wrong) in [(person, WRONG_PASSWORD), (TYPED_BY_MISTAKE, password)] {
            assert_ne!(sign_in(&mut browser, &page, name, wrong).status, 303);
            self.note_cookies(&browser);
        }
        let answer = sign_in(&mut browser, &page, person, password);
        self.note_cookies(&browser);
        let code = self.note_code(&answer);
        let tokens = redeem_as(gatepost, ("conf1", CONF1_SECRET), RP1, &code);
        self.note_tokens(&tokens);
        browser
    }

    /// Consent, remembered; a code redeemed twice, and one never.
    fn consent(&mut self, gatepost: &Gatepost, number: u32, browser: &mut Browser) {
        let page = browser.visit(&self.path(number, "conf2", RP2, &[]));
        self.note_page(&page);
        let answer = browser.decide(&page, "allow", &["profile"], true);
        let code = self.note_code(&answer);
        for expected in [200, 400] {
            let answer = redeem_as(gatepost, ("conf2", CONF2_SECRET), RP2, &code);
            assert_eq!(answer.status, expected);
            if expected == 200 {
                self.note_tokens(&answer);
            }
        }
        let silent = [("login_hint", "somebody"), ("prompt", "none")];
        let path = self.path(number + 1, "conf2", RP2, &silent);
        let left = browser.get(&path);
        self.note_code(&left);
    }

    fn spend(gatepost: &Gatepost, made_secret: &str) -> Day {
        let mut day = Day::default();
        let passwords = [ALICE_PASSWORD, BOB_PASSWORD, NEW_PASSWORD, WRONG_PASSWORD];
        let typed = [CONF1_SECRET, CONF2_SECRET, TYPED_BY_MISTAKE];
        day.chosen.extend(passwords.map(str::to_owned));
        day.chosen.extend(typed.map(str::to_owned));
        day.note(made_secret);
        day.note(&STANDARD.encode(MASTER_SECRET));
        day.note(VERIFIER);
        let mut bob = day.sign_in(gatepost, 1, "bob", BOB_PASSWORD);
        day.consent(gatepost, 10, &mut bob);
        gatepost.run_well(&["user", "password", "bob"], NEW_PASSWORD);
        let mut alice = day.sign_in(gatepost, 20, "alice", ALICE_PASSWORD);
        day.consent(gatepost, 30, &mut alice);
        for (client, secret) in [
            ("service", CONF1_SECRET),
            ("conf1", made_secret),
            ("conf1", CONF2_SECRET),
        ] {
            let authorization = [("Authorization", &*basic(client, secret))];
            let grant = ("grant_type", "client_credentials");
            let form = [grant, ("scope", "orders.read")];
            let answer = gatepost.post("/connect/token", &authorization, &form);
            if secret != CONF2_SECRET {
                day.note_tokens(&answer);
            }
        }
        let (phone, codes) = add_app(&mut alice, 0);
        day.note(&phone.key);
        for code in codes {
            day.chosen.insert(code.replace('-', ""));
            day.chosen.insert(code);
        }
        let link = gatepost.run_well(&["user", "reset", "bob", "--enrol"], "");
        day.note(link.trim().split_once("?l=").unwrap().1);
        day.fresh(gatepost, &mut alice);
        day
    }

    /// What is still good when the database is stolen.
    fn fresh(&mut self, gatepost: &Gatepost, alice: &mut Browser) {
        let (conf1, conf2) = (("conf1", CONF1_SECRET, RP1), ("conf2", CONF2_SECRET, RP2));
        for (number, (client, secret, redirect_uri)) in [(40, conf1), (41, conf2)] {
            let path = self.path(number, client, redirect_uri, &[]);
            let answer = alice.get(&path);
            let code = self.note_code(&answer);
            let token =
                self.note_tokens(&redeem_as(gatepost, (client, secret), redirect_uri, &code));
            self.access_tokens.push(token);
        }
        let path = self.path(42, "conf1", RP1, &[]);
        let answer = alice.get(&path);
        self.code = self.note_code(&answer);
        let mut cookies = alice.cookies.iter();
        let (name, value) = cookies.find(|(name, _)| name.contains("session")).unwrap();
        self.session = (name.clone(), value.clone());
    }
}

/// Everything in the database: as one text, and each value taken apart.
#[derive(Default)]
struct Dump {
    text: String,
    values: BTreeSet<Vec<u8>>,
    days: BTreeSet<i32>,
}

impl Dump {
    fn take(database: &TestDatabase) -> Dump {
        let mut client = database.client();
        let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'";
        let mut dump = Dump::default();
        for table in client.query(tables, &[&database.schema]).unwrap() {
            let table: String = table.get(0);
            let rows = format!("SELECT to_jsonb(t)::text FROM {table} t");
            for row in client.query(&rows, &[]).unwrap() {
                let row: String = row.get(0);
                dump.take_apart(&serde_json::from_str(&row).unwrap());
                dump.text.push_str(&row);
                dump.text.push('\n');
            }
        }
        dump
    }

    fn take_apart(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.take_text(name);
                    if let ("day" | "session_day", Some(day)) = (name.as_str(), member.as_i64()) {
                        self.days.insert(i32::try_from(day).unwrap());
                    }
                    self.take_apart(member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.take_apart(item)),
            Value::String(text) => self.take_text(text),
            Value::Number(number) => self.take_text(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The text, what it encodes, and its parts.
    fn take_text(&mut self, text: &str) {
        if !self.values.insert(text.as_bytes().to_vec()) {
            return;
        }
        self.values.extend(decoded(text));
        let parts = text.split(['$', '.', ' ', ',', ':', '=']);
        for part in parts.filter(|part| part.len() >= 8) {
            self.values.insert(part.as_bytes().to_vec());
            self.values.extend(decoded(part));
        }
    }

    fn holds(&self, needle: &[u8]) -> bool {
        let within = |value: &Vec<u8>| value.windows(needle.len()).any(|window| window == needle);
        let texts = encodings(needle);
        texts.iter().any(|text| self.text.contains(text)) || self.values.iter().any(within)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a text may stand for.
fn decoded(text: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let digits = text.strip_prefix("\\x").unwrap_or(text);
    if digits.len() >= 2
        && digits.len().is_multiple_of(2)
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        found.push((0..digits.len()).step_by(2).map(byte).collect());
    }
    let codes = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    found.extend(codes.iter().filter_map(|code| code.decode(text).ok()));
    found.retain(|bytes: &Vec<u8>| !bytes.is_empty());
    found
}

/// How bytes may be written.
fn encodings(bytes: &[u8]) -> BTreeSet<String> {
    let encoded = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|code| code.encode(bytes));
    let mut texts = BTreeSet::from(encoded);
    texts.insert(hex(bytes));
    texts.extend(String::from_utf8(bytes.to_vec()).ok());
    texts
}

/// Everything that would give a secret away where it is found.
fn traces(secret: &str, chosen: bool) -> Vec<Vec<u8>> {
    let bare = ["gpc_", "gpa_", "gps_"]
        .iter()
        .find_map(|prefix| secret.strip_prefix(prefix))
        .unwrap_or(secret);
    let mut traces = vec![secret.as_bytes().to_vec(), bare.as_bytes().to_vec()];
    traces.extend(decoded(bare).into_iter().filter(|bytes| bytes.len() >= 16));
    // The signature of a token, and each of its parts.
    traces.extend(
        secret
            .split('.')
            .skip(1)
            .map(|part| part.as_bytes().to_vec()),
    );
    if chosen {
        traces.extend([
            Sha256::digest(secret).to_vec(),
            Sha512::digest(secret).to_vec(),
        ]);
    }
    traces
}

/// Tries things on a running server, each on the same kept connection.
struct Thief<'a> {
    gatepost: &'a Gatepost,
    connection: Connection,
    session_cookie: String,
    /// A sign-in page of the thief's own: its address, token and browser cookie.
    page: (String, String, (String, String)),
}

impl<'a> Thief<'a> {
    fn new(gatepost: &'a Gatepost, session_cookie: &str) -> Thief<'a> {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let action = page.attribute("form ", "action").unwrap();
        let token = page.form_token();
        let cookie = browser.cookies.into_iter().next().unwrap();
        Thief {
            gatepost,
            connection: gatepost.connect(),
            session_cookie: session_cookie.to_owned(),
            page: (action, token, cookie),
        }
    }

    fn opens_session(&mut self, value: &str) -> bool {
        let cookie = format!("{}={value}", self.session_cookie);
        let path = authorize_path("conf1", RP1, &[("prompt", "none")]);
        let headers = [("Cookie", &*cookie)];
        let answer = self.connection.send("GET", &path, &headers, b"");
        answer.query().contains_key("code")
    }

    fn sign_in(&mut self, cookie: &str, token: &str, username: &str, password: &str) -> bool {
        let form = encode(&[
            ("form_token", token),
            ("username", username),
            ("password", password),
        ]);
        let cookie = format!("{}={cookie}", self.page.2.0);
        let action = &self.page.0;
        let path = action.strip_prefix(&self.gatepost.base_url);
        let path = path.unwrap_or(action);
        let headers = [("Cookie", &*cookie)];
        let answer = self.connection.post_raw(path, &headers, form.as_bytes());
        assert!(answer.status < 500, "{}", answer.text());
        assert!(answer.status != 429, "{}", answer.text());
        // Alice's password leads to the question for more.
        answer.status == 303 || answer.text().contains("Confirm that it is you")
    }

    fn is_password(&mut self, value: &str) -> bool {
        let (token, cookie) = (self.page.1.clone(), self.page.2.1.clone());
        let mut names = ["alice", "bob"].iter();
        names.any(|name| self.sign_in(&cookie, &token, name, value))
    }

    fn is_form_token(&mut self, value: &str) -> bool {
        let cookie = self.page.2.1.clone();
        self.sign_in(&cookie, value, "alice", ALICE_PASSWORD)
    }

    fn is_browser_cookie(&mut self, value: &str) -> bool {
        let token = self.page.1.clone();
        self.sign_in(value, &token, "alice", ALICE_PASSWORD)
    }

    fn is_sealed_request(&mut self, value: &str) -> bool {
        let path = format!("/login?{}", encode(&[("r", value)]));
        let answer = self.connection.send("GET", &path, &[], b"");
        // Without a request the page leads to the account page.
        let leads_away = value.is_empty() && answer.header("location") == Some("/account");
        answer.status != 400 && !leads_away
    }

    fn is_code(&mut self, value: &str) -> bool {
        let answer = redeem_as(self.gatepost, ("conf1", CONF1_SECRET), RP1, value);
        assert!(matches!(answer.status, 200 | 400), "{}", answer.text());
        answer.status == 200
    }

    fn is_access_token(&mut self, value: &str) -> bool {
        userinfo(self.gatepost, value).status == 200
    }

    fn is_client_secret(&mut self, value: &str) -> bool {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "conf1"),
            ("client_secret", value),
        ];
        let answer = self.connection.post("/connect/token", &[], &form);
        assert_ne!(answer.status, 429);
        answer.status == 200
    }

    /// Everything that a text opens.
    fn opened_by(&mut self, text: &str) -> Vec<&'static str> {
        let is_line = text
            .chars()
            .all(|character| (' '..='~').contains(&character));
        let is_cookie = is_line && !text.contains([' ', ';', ',', '"', '\\']);
        let mut opened = Vec::new();
        let mut tried = |what, works: bool| opened.extend(works.then_some(what));
        if is_cookie && text.len() < 4_000 {
            tried("session cookie", self.opens_session(text));
            tried("browser cookie", self.is_browser_cookie(text));
            for prefix in ["", "gpa_"] {
                let works = self.is_access_token(&format!("{prefix}{text}"));
                tried("access token", works);
            }
        }
        if text.len() < 7_000 {
            tried("form token", self.is_form_token(text));
            tried("sealed request", self.is_sealed_request(text));
            for prefix in ["", "gpc_"] {
                tried("code", self.is_code(&format!("{prefix}{text}")));
            }
        }
        for prefix in ["", "gps_"] {
            let works = self.is_client_secret(&format!("{prefix}{text}"));
            tried("client secret", works);
        }
        tried("password", self.is_password(text));
        opened
    }
}

/// Private keys in any form in which libraries take them, anywhere in a value.
fn private_key_in(value: &[u8], published: &BTreeSet<Vec<u8>>) -> Option<&'static str> {
    let text = String::from_utf8_lossy(value);
    if text.contains("PRIVATE KEY")
        || serde_json::from_str::<Value>(&text).is_ok_and(|json| has_private_member(&json))
    {
        return Some("text");
    }
    for start in (0..value.len()).filter(|start| value[*start] == 0x30) {
        let rest = &value[start..];
        let is_pkcs8 = rsa::RsaPrivateKey::from_pkcs8_der(rest).is_ok()
            || rsa::RsaPrivateKey::from_pkcs1_der(rest).is_ok()
            || signature::EcdsaKeyPair::from_pkcs8(
                &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
                rest,
            )
            .is_ok()
            || Ed25519KeyPair::from_pkcs8(rest).is_ok();
        if is_pkcs8 {
            return Some("DER");
        }
    }
    // Any 32 bytes are an Ed25519 key: whose?
    let seed = value
        .windows(32)
        .filter_map(|seed| Ed25519KeyPair::from_seed_unchecked(seed).ok());
    seed.map(|pair| pair.public_key().as_ref().to_vec())
        .any(|public| published.contains(&public))
        .then_some("seed")
}

fn has_private_member(json: &Value) -> bool {
    match json {
        Value::Object(members) => members.iter().any(|(name, value)| {
            matches!(name.as_str(), "d" | "p" | "q" | "dp" | "dq" | "qi" | "k")
                || has_private_member(value)
        }),
        Value::Array(items) => items.iter().any(has_private_member),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn serving(settings: &[(&str, &str)]) -> (Gatepost, String) {
    let mut gatepost = Gatepost::prepare(&[&PATIENT, settings].concat());
    let mut document = document();
    // The real code is tried last, after everything else.
    document["clients"][0]["authorization_code_lifetime"] = json!(600);
    gatepost.apply(&document);
    let made = gatepost.run_line("client secret conf1").trim().to_owned();
    gatepost.run_well(&["key", "rotate", "--algorithm", "RS256"], "");
    gatepost.run_well(&["key", "rotate", "--algorithm", "EdDSA", "--now"], "");
    gatepost.serve();
    (gatepost, made)
}

#[test]
fn nothing_in_a_stolen_database_opens_anything() {
    let (gatepost, made_secret) = serving(&[]);
    let day = Day::spend(&gatepost, &made_secret);
    let dump = Dump::take(&gatepost.database);
    for expected in [
        "First shop",
        "alice",
        "code_redeemed",
        "sign_in_failed",
        "$argon2id$",
        "kty",
    ] {
        let is_there = dump.text.contains(expected);
        assert!(is_there, "the dump is no dump: no {expected}");
    }
    let tables = "grants sessions consents client_secrets signing_keys sign_in_failures";
    for table in tables.split(' ') {
        assert!(gatepost.database.count(table) > 0, "{table}");
    }

    // None of what was used is in there.
    for (secrets, chosen) in [(&day.handles, false), (&day.chosen, true)] {
        for secret in secrets {
            for trace in traces(secret, chosen) {
                assert!(!dump.holds(&trace), "{secret} is in the database");
            }
        }
    }

    // No private key.
    let keys = gatepost
        .get("/.well-known/openid-configuration/jwks")
        .json();
    let keys = keys["keys"].as_array().unwrap().iter();
    let edwards = keys.filter(|key| key["kty"] == "OKP");
    let published = edwards.map(|key| URL_SAFE_NO_PAD.decode(text(key, "x")).unwrap());
    let published: BTreeSet<Vec<u8>> = published.collect();
    assert!(!published.is_empty());
    for value in &dump.values {
        assert_eq!(private_key_in(value, &published), None, "{}", hex(value));
    }

    // And nothing that is in there works.
    let texts = dump.values.iter().flat_map(|value| encodings(value));
    let mut texts: BTreeSet<String> = texts.collect();
    for random in dump.values.iter().filter(|value| value.len() == 32) {
        let handle =
            |day: &i32| URL_SAFE_NO_PAD.encode([&day.to_be_bytes(), random.as_slice()].concat());
        texts.extend(dump.days.iter().map(handle));
    }
    println!("{} values, {} texts to try", dump.values.len(), texts.len());
    assert!(texts.len() > 300);
    let texts: Vec<String> = texts.into_iter().collect();
    std::thread::scope(|scope| {
        for part in texts.chunks(texts.len().div_ceil(THIEVES)) {
            let mut thief = Thief::new(&gatepost, &day.session.0);
            scope.spawn(move || {
                for text in part {
                    let opened = thief.opened_by(text);
                    assert!(opened.is_empty(), "{text} opens {opened:?}");
                }
            });
        }
    });

    // The trying itself works: the real things open what they are for.
    let mut thief = Thief::new(&gatepost, &day.session.0);
    assert!(thief.opens_session(&day.session.1));
    assert!(thief.is_password(ALICE_PASSWORD) && thief.is_password(NEW_PASSWORD));
    assert!(thief.is_client_secret(CONF1_SECRET) && thief.is_client_secret(&made_secret));
    let mut tokens = day.access_tokens.iter();
    assert!(tokens.all(|token| thief.is_access_token(token)));
    let (token, cookie) = (thief.page.1.clone(), thief.page.2.1.clone());
    assert!(thief.is_form_token(&token) && thief.is_browser_cookie(&cookie));
    let sealed = thief.page.0.split_once("r=").unwrap().1.to_owned();
    assert!(thief.is_sealed_request(&sealed));
    assert!(thief.is_code(&day.code));
}

#[test]
fn what_was_said_between_us_and_an_identity_provider_is_neither_in_the_database_nor_in_the_log() {
    let house = House::start_with(document(), &json!({"sign_out": true}), &[]);
    let mut person = Traveller::new();
    house.through(&mut person, "up").unwrap();
    let dump = Dump::take(&house.gatepost.database);
    for expected in [SUBJECT, "user_provisioned"] {
        let is_there = dump.text.contains(expected);
        assert!(is_there, "the dump is no dump: no {expected}");
    }
    let kept = "sessions WHERE upstream_id_token IS NOT NULL";
    house.gatepost.database.assert_count(kept, 1);
    let said = |place, names: &[&str]| {
        let received = house.up.received(place).pop().unwrap();
        let values = names.iter().map(|name| received.parameters[*name].clone());
        values.collect::<Vec<_>>()
    };
    let mut secrets = said(Place::Authorize, &["state", "nonce", "code_challenge"]);
    secrets.extend(said(Place::Token, &["code", "code_verifier"]));
    let bearer = house.up.received(Place::UserInfo).pop().unwrap().headers["authorization"].clone();
    secrets.push(bearer.trim_start_matches("Bearer ").to_owned());
    // The ID token that was kept is the one that goes back at the end.
    let token = person.get(&house.address("/logout")).form_token();
    let form = [("form_token", token.as_str()), ("decision", "sign_out")];
    let signed_out = house.browser(&mut person).post("/logout", &form);
    secrets.push(signed_out.query()["id_token_hint"].clone());
    // A callback that fails is logged, too.
    let (state, code) = (&secrets[0], &secrets[3]);
    let callback = format!("/external/up/callback?state={state}&code={code}");
    let refused = person.get(&house.address(&callback));
    refused.assert_error_page(400, "GP1711", "a callback that nobody waits for");
    let log = house.gatepost.log();
    log.assert_says("GP1711");
    for secret in secrets.iter().map(String::as_str).chain([CLIENT_SECRET]) {
        assert!(secret.len() >= 16, "{secret} would be found by chance");
        assert!(!log.contains(secret), "{secret} is in the log");
        for trace in traces(secret, true) {
            assert!(!dump.holds(&trace), "{secret} is in the database");
        }
    }
}

#[test]
fn no_secret_stands_in_the_log_or_on_a_process() {
    let database = TestDatabase::empty();
    let url = database.url.clone();
    let mut gatepost = Gatepost::prepare_over(database, &PATIENT);
    let file = gatepost.private_file("database-url", &url);
    gatepost.unset("GATEPOST_DATABASE_URL");
    gatepost.set("GATEPOST_DATABASE_URL_FILE", &file.display().to_string());
    gatepost.apply(&document());
    let made_secret = gatepost.run_line("client secret conf1").trim().to_owned();
    gatepost.serve();
    let day = Day::spend(&gatepost, &made_secret);
    // What is wrong is logged, too.
    let forged = [("gpc_", &day.code), ("gpa_", &day.access_tokens[1])]
        .map(|(prefix, handle)| format!("{prefix}x{handle}"));
    redeem_as(&gatepost, ("conf1", CONF1_SECRET), RP2, &forged[0]);
    redeem_as(&gatepost, ("conf1", CONF2_SECRET), RP1, &day.code);
    userinfo(&gatepost, &forged[1]);
    gatepost.get(&format!("/login?r={}", day.code));
    let token = &day.access_tokens[1];
    gatepost.get(&format!("/connect/userinfo?access_token={token}"));
    let twice = [("code", &*day.code), ("code", &day.code)];
    let form = [&twice[..], &[("client_secret", CONF1_SECRET)]].concat();
    gatepost.post("/connect/token", &[], &form);
    gatepost.token("conf1", &[("client_secret", CONF1_SECRET)]);
    let cookie = format!("{}={}", day.session.0, day.session.1);
    gatepost.send("GET", "/nowhere", &[("Cookie", &cookie)], b"");

    let log = gatepost.log();
    assert!(log.lines().count() > 30, "{log}");
    log.assert_says("client_id=\"conf1\"");
    let secrets = || {
        let handles = day.handles.iter().map(|secret| (secret, false));
        handles.chain(day.chosen.iter().map(|secret| (secret, true)))
    };
    for (secret, chosen) in secrets() {
        let traces = traces(secret, chosen);
        for text in traces.iter().flat_map(|trace| encodings(trace)) {
            assert!(!log.contains(&text), "{secret} is in the log");
        }
    }
    assert!(!log.contains(&url));

    // On the processes stand paths of files, never what is in them. (`GATEPOST_DATABASE_URL` itself
    // would stand there: who puts a password into it is told by the README to use the file.)
    for process in [vec![gatepost.supervisor()], gatepost.server_processes()].concat() {
        for part in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{process}/{part}")).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.is_empty() && !text.contains(&url), "{part}: {text}");
            for (secret, _) in secrets() {
                assert!(!text.contains(secret.as_str()), "{secret} is in {part}");
            }
        }
        let arguments = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
        let arguments = arguments.split('\0').skip(1);
        let arguments: Vec<&str> = arguments.filter(|one| !one.is_empty()).collect();
        let is_known = matches!(arguments[..], ["serve"] | ["serve", "--server-process"]);
        assert!(is_known, "{arguments:?}");
    }
}

#[test]
fn printing_the_house_for_debugging_prints_no_secret() {
    let database = TestDatabase::empty();
    let (password, url) = ("hunter2-of-the-database", database.url.clone());
    let url = url.replacen("postgres@", &format!("postgres:{password}@"), 1);
    let gatepost = Gatepost::prepare_over(database, &[("GATEPOST_DATABASE_URL", &url)]);
    gatepost.apply(&document());
    let secret_file = gatepost.private_file("master", &STANDARD.encode(MASTER_SECRET));
    let mut source = Source::empty();
    for (name, value) in [
        ("GATEPOST_DATABASE_URL", url.as_str()),
        ("GATEPOST_GRANTS_DATABASE_URL", &url),
        ("GATEPOST_BASE_URL", &gatepost.base_url),
        ("GATEPOST_SECRET_FILE", &secret_file.display().to_string()),
    ] {
        source.set(name, value.to_owned()).unwrap();
    }
    let config = Arc::new(Config::load(&source).unwrap());
    let settings = database_settings(&config);
    let store = Store::open(&settings).unwrap();
    let master = MasterSecret::read(&secret_file).unwrap();
    let extensions = Extensions {
        table: &[],
        functions: Store::open_for_functions(&settings).unwrap(),
    };
    let app = App::load(Arc::clone(&config), store.clone(), &master, extensions).unwrap();
    let client = app.registry.client(&ClientId::new("conf1"));
    let client = client.unwrap().unwrap();
    assert_eq!(client.secrets.len(), 1);
    let installation = gatepost::store::installation::find(&store);
    let installation = installation.unwrap().unwrap();
    let derived = master.derive(&installation.id, &gatepost.base_url);
    let printed =
        format!("{config:#?}{config:?}{settings:?}{master:?}{derived:?}{app:?}{app:#?}{client:?}");
    printed.assert_says("First shop");
    assert!(printed.len() > 5_000, "{printed}");

    let purposes = [
        Purpose::AuthorizationCode,
        Purpose::AccessToken,
        Purpose::AuthorizeRequest,
        Purpose::RefreshToken,
        Purpose::UserCode,
        Purpose::FormToken,
        Purpose::SignInThrottle,
        Purpose::SigningKey,
        Purpose::ClientSecret,
    ];
    let mut secrets: Vec<Vec<u8>> =
        vec![MASTER_SECRET.to_vec(), password.into(), CONF1_SECRET.into()];
    secrets.push(Sha256::digest(CONF1_SECRET).to_vec());
    for purpose in purposes {
        secrets.extend(derived.keys(purpose).map(|(_, key)| key.to_vec()));
    }
    // As debugging prints bytes: in one line, and one to a line.
    let lines = |bytes: &[u8]| Vec::from_iter(bytes.iter().map(u8::to_string)).join(", ");
    let flat: String = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for secret in secrets {
        for text in encodings(&secret).into_iter().chain([lines(&secret)]) {
            assert!(!printed.contains(&text), "{text} is printed");
            assert!(!flat.contains(&text), "{text} is printed");
        }
    }
}
