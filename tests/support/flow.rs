//! The code flow in steps, as tests walk it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1};
use super::http::{Answer, Browser, encode};
use super::upstream::change;

/// A verifier of 43 characters and more.
pub const VERIFIER: &str = "a-code-verifier-of-more-than-43-characters-0123456789";

/// Its S256 challenge.
pub fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

/// `Authorization: Basic`, both halves form-encoded first.
pub fn basic(client_id: &str, client_secret: &str) -> String {
    let half = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!(
        "Basic {}",
        STANDARD.encode(format!("{}:{}", half(client_id), half(client_secret)))
    )
}

/// The same in base64url but for its last character.
pub fn damaged(encoded: &str) -> String {
    let last = encoded.chars().last().unwrap();
    format!(
        "{}{}",
        encoded.strip_suffix(last).unwrap(),
        if last == 'A' { 'Q' } else { 'A' }
    )
}

/// A request that is fine, with parameters added or replaced; one replaced by an empty text is left
/// out.
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
    let added = changes
        .iter()
        .copied()
        .filter(|(_, value)| !value.is_empty());
    format!(
        "/connect/authorize?{}",
        encode(&kept.chain(added).collect::<Vec<_>>())
    )
}

/// The same for a client that is answered at `RP1`.
pub fn request_of(client_id: &str, changes: &[(&str, &str)]) -> String {
    authorize_path(client_id, RP1, changes)
}

/// Fills in the sign-in page and sends it.
pub fn sign_in(browser: &mut Browser, page: &Answer, username: &str, password: &str) -> Answer {
    let action = page
        .attribute("<form", "action")
        .or_else(|| page.attribute("form ", "action"))
        .unwrap();
    browser.submit_to(
        &action,
        page,
        &[("username", username), ("password", password)],
    )
}

/// Presses the button of an identity provider on the sign-in page.
pub fn choose(browser: &mut Browser, page: &Answer, provider: &str) -> Answer {
    browser.submit(page, &[("identity_provider", provider)])
}

/// Whether it is the page that asks for a password.
pub fn asks_to_sign_in(page: &Answer) -> bool {
    page.status == 200 && page.text().contains("name=\"password\"")
}

/// Whether somebody gets in with that password, in a browser that nobody has used.
pub fn lets_in(gatepost: &Gatepost, username: &str, password: &str) -> bool {
    let mut browser = gatepost.browser();
    let page = browser.visit(&request_of("conf1", &[]));
    sign_in(&mut browser, &page, username, password).status == 303
}

/// Whether the browser's session is enough for a request of `conf1` that shows no page.
pub fn is_signed_in(browser: &mut Browser) -> bool {
    let answer = browser.get(&request_of("conf1", &[("prompt", "none")]));
    let answer = answer.query();
    let carries_code = answer.contains_key("code");
    assert!(
        carries_code || answer["error"] == "login_required",
        "{answer:?}"
    );
    carries_code
}

/// Signs alice in with that browser, through any request of `conf1`.
pub fn signed_in(gatepost: &Gatepost) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert_eq!(answer.status, 303, "{}", answer.text());
    browser
}

/// A fresh code for a request of a signed-in browser that needs no page.
pub fn code(browser: &mut Browser, path: &str) -> String {
    browser.get(path).code()
}

/// Redeems a code as `conf1`.
pub fn redeem(gatepost: &Gatepost, code: &str) -> Answer {
    redeem_as(gatepost, ("conf1", CONF1_SECRET), RP1, code)
}

/// Redeems a code as a confidential client.
pub fn redeem_as(
    gatepost: &Gatepost,
    (client_id, secret): (&str, &str),
    redirect_uri: &str,
    code: &str,
) -> Answer {
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
    gatepost.connect().send(
        "GET",
        "/connect/userinfo",
        &[("Authorization", &bearer)],
        b"",
    )
}

/// Header and claims of a JWT, unverified.
pub fn decode_jwt(jwt: &str) -> (Value, Value) {
    let part = |index: usize| {
        let bytes = URL_SAFE_NO_PAD
            .decode(jwt.split('.').nth(index).unwrap())
            .unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    (part(0), part(1))
}

/// Members of the request, with some changed, repeated, or [`LEFT_OUT`].
pub fn changed<'a>(
    usual: &[(&'a str, &'a str)],
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let kept = usual
        .iter()
        .filter(|(name, _)| !changes.iter().any(|(other, _)| other == name));
    kept.chain(changes.iter().filter(|(_, value)| *value != LEFT_OUT))
        .copied()
        .collect()
}

/// A value that stands for a parameter that is not there.
pub const LEFT_OUT: &str = "<left out>";

/// The object with these members, instead of its own of the same names.
pub fn with_members(mut object: Value, members: &Value) -> Value {
    let members = members.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(members);
    object
}

/// The same; a member that is `null` is taken away.
pub fn changed_members(mut object: Value, changes: &Value) -> Value {
    change(&mut object, changes);
    object
}

/// Adds clients to a document: each is as `conf1`, with changes.
pub fn with_clients(mut document: Value, clients: &[(&str, Value)]) -> Value {
    let usual = document["clients"][0].clone();
    for (client_id, changes) in clients {
        let mut client = with_members(usual.clone(), changes);
        client["client_id"] = Value::from(*client_id);
        document["clients"].as_array_mut().unwrap().push(client);
    }
    document
}

/// Adds whole clients to a document.
pub fn with_further_clients(mut document: Value, clients: &[Value]) -> Value {
    let all = document["clients"].as_array_mut().unwrap();
    all.extend(clients.iter().cloned());
    document
}

/// Redeems at `RP1` as a client with the secret of `conf1`, with changes to an otherwise right
/// request.
pub fn redeem_with(
    gatepost: &Gatepost,
    client_id: &str,
    code: &str,
    changes: &[(&str, &str)],
) -> Answer {
    let usual = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", RP1),
        ("code_verifier", VERIFIER),
    ];
    let authorization = basic(client_id, CONF1_SECRET);
    gatepost.post(
        "/connect/token",
        &[("Authorization", &authorization)],
        &changed(&usual, changes),
    )
}

/// The response of a request that must have succeeded.
pub fn issued(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// A member that must be a text.
pub fn text<'a>(members: &'a Value, name: &str) -> &'a str {
    members[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {members}"))
}

/// Names of members, sorted.
pub fn names(members: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = members
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// Tokens for alice, of a signed-in browser, through a client like `conf1`.
pub fn tokens(gatepost: &Gatepost, browser: &mut Browser, client_id: &str, scope: &str) -> Value {
    let code = code(
        browser,
        &authorize_path(client_id, RP1, &[("scope", scope)]),
    );
    issued(&redeem_with(gatepost, client_id, &code, &[]))
}

/// An access token of `conf1` for alice.
pub fn access_token(gatepost: &Gatepost, browser: &mut Browser, scope: &str) -> String {
    text(&tokens(gatepost, browser, "conf1", scope), "access_token").to_owned()
}
