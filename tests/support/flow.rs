//! The code flow in steps, as tests walk it.

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic here is a failed test")]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::gatepost::Gatepost;
use super::http::{Answer, Browser, encode};

/// A verifier of 43 characters and more.
pub const VERIFIER: &str = "a-code-verifier-of-more-than-43-characters-0123456789";

/// Its S256 challenge.
pub fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

/// `Authorization: Basic`, both halves form-encoded first.
pub fn basic(client_id: &str, client_secret: &str) -> String {
    let half = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", half(client_id), half(client_secret))))
}

/// A request that is fine, with parameters added or replaced; one replaced by an empty text is left out.
pub fn authorize_path(client_id: &str, redirect_uri: &str, changes: &[(&str, &str)]) -> String {
    let challenge = challenge();
    let usual = [
        ("client_id", client_id),
        ("redirect_uri", redirect_uri),
        ("response_type", "code"),
        ("scope", "openid profile"),
        ("state", "the-state"),
        ("nonce", "the-nonce"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let changed = |name: &str| changes.iter().any(|(other, _)| *other == name);
    let kept = usual.into_iter().filter(|(name, _)| !changed(name));
    let added = changes.iter().copied().filter(|(_, value)| !value.is_empty());
    format!("/connect/authorize?{}", encode(&kept.chain(added).collect::<Vec<_>>()))
}

/// Fills in the sign-in page and sends it.
pub fn sign_in(browser: &mut Browser, page: &Answer, username: &str, password: &str) -> Answer {
    let action = page.attribute("<form", "action").or_else(|| page.attribute("form ", "action")).unwrap();
    let token = page.attribute("name=\"form_token\"", "value").unwrap();
    browser.post(&action, &[("form_token", &token), ("username", username), ("password", password)])
}

/// Sends the consent page with a decision and all optional scopes of the request ticked.
pub fn decide(browser: &mut Browser, page: &Answer, decision: &str, scopes: &[&str], remember: bool) -> Answer {
    let action = page.attribute("form ", "action").unwrap();
    let token = page.attribute("name=\"form_token\"", "value").unwrap();
    let mut form = vec![("form_token", token.as_str()), ("decision", decision)];
    form.extend(scopes.iter().map(|scope| ("scope", *scope)));
    if remember {
        form.push(("remember", "true"));
    }
    browser.post(&action, &form)
}

/// Signs alice in with that browser, through any request of `conf1`.
pub fn signed_in(gatepost: &Gatepost) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", super::gatepost::RP1, &[]));
    let answer = sign_in(&mut browser, &page, "alice", super::gatepost::ALICE_PASSWORD);
    assert_eq!(answer.status, 303, "{}", answer.text());
    browser
}

/// A fresh code for a request of a signed-in browser that needs no page.
pub fn code(browser: &mut Browser, path: &str) -> String {
    let answer = browser.get(path);
    answer.query().remove("code").unwrap_or_else(|| panic!("no code in {}", answer.location()))
}

/// Redeems a code as `conf1`.
pub fn redeem(gatepost: &Gatepost, code: &str) -> Answer {
    redeem_as(gatepost, ("conf1", super::gatepost::CONF1_SECRET), super::gatepost::RP1, code)
}

/// Redeems a code as a confidential client.
pub fn redeem_as(gatepost: &Gatepost, (client_id, secret): (&str, &str), redirect_uri: &str, code: &str) -> Answer {
    gatepost.post(
        "/connect/token",
        &[("Authorization", &basic(client_id, secret))],
        &[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", VERIFIER),
        ],
    )
}

/// Asks userinfo with a token.
pub fn userinfo(gatepost: &Gatepost, access_token: &str) -> Answer {
    let bearer = format!("Bearer {access_token}");
    gatepost.connect().send("GET", "/connect/userinfo", &[("Authorization", &bearer)], b"")
}

/// Header and claims of a JWT, unverified.
pub fn decode_jwt(jwt: &str) -> (Value, Value) {
    let part = |index: usize| {
        let bytes = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(index).unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    (part(0), part(1))
}
