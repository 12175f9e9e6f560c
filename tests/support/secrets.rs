//! What must stand in no log: every registered secret and password, and every token, code and
//! cookie that a test was given. [`super::http`] learns from each answer, [`super::gatepost`]
//! searches what each server and command said.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use serde_json::Value;

use super::http::Answer;

/// What is shorter says nothing: test words such as "wrong" stand in logs for other reasons.
const LEAST: usize = 16;
/// Where secrets travel, in JSON, forms, queries and fragments.
const NAMES: [&str; 7] = [
    "access_token",
    "refresh_token",
    "id_token",
    "code",
    "device_code",
    "form_token",
    "client_secret",
];

/// The last bytes of each secret: a token's beginning is the same for many.
static LEARNT: LazyLock<Mutex<HashSet<[u8; LEAST]>>> = LazyLock::new(Mutex::default);

/// Remembers one.
pub fn learn(secret: &str) {
    if let Some(tail) = secret.as_bytes().last_chunk() {
        LEARNT.lock().unwrap().insert(*tail);
    }
}

/// Remembers the passwords and secrets that a registration brings.
pub fn learn_from_document(document: &Value) {
    for user in document["users"].as_array().into_iter().flatten() {
        user["password"].as_str().into_iter().for_each(learn);
    }
    for kind in ["clients", "resources"] {
        let secrets = document[kind]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["secrets"].as_array());
        secrets
            .flatten()
            .filter_map(|secret| secret["value"].as_str())
            .for_each(learn);
    }
}

/// Remembers what an answer hands out: in its cookies, its address, its JSON, the hidden fields of
/// its forms.
pub fn learn_from_answer(answer: &Answer) {
    for cookie in answer.headers_named("set-cookie") {
        cookie.split(['=', ';']).nth(1).into_iter().for_each(learn);
    }
    for location in answer.headers_named("location") {
        for part in location.split(['?', '#']).skip(1) {
            for (name, value) in form_urlencoded::parse(part.as_bytes()) {
                learn_named(&name, &value);
            }
        }
    }
    if let Ok(Value::Object(members)) = serde_json::from_slice(&answer.body) {
        for (name, value) in &members {
            value
                .as_str()
                .into_iter()
                .for_each(|value| learn_named(name, value));
        }
    }
    let text = String::from_utf8_lossy(&answer.body);
    for tag in text
        .split('<')
        .filter(|tag| tag.starts_with("input type=\"hidden\""))
    {
        let attribute =
            |name: &str| Some(tag.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0);
        if let (Some(name), Some(value)) = (attribute("name"), attribute("value")) {
            learn_named(name, value);
        }
    }
}

fn learn_named(name: &str, value: &str) {
    if NAMES.contains(&name) {
        learn(value);
    }
}

/// The first line of `text` that holds a secret.
pub fn leak_in(text: &str) -> Option<&str> {
    let learnt = LEARNT.lock().unwrap();
    text.lines().find(|line| {
        line.as_bytes()
            .windows(LEAST)
            .any(|window| learnt.contains(window))
    })
}

/// Fails when something secret stands in what `who` said.
pub fn assert_none_in(text: &str, who: &str) {
    if let Some(line) = leak_in(text) {
        panic!("{who} said a secret: {line}");
    }
}
