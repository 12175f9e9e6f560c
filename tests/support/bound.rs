//! A browser with Device Bound Session Credentials, played by a program: it registers a key for the
//! session of its sign-in, and proves it, without any code of the product.

use serde_json::{Value, json};

use super::flow::{authorize_path, sign_in};
use super::gatepost::{ALICE_PASSWORD, Gatepost, RP1};
use super::http::{Answer, Browser};
use super::signer::Signer;

/// What a server needs that binds sessions.
pub const SETTINGS: [(&str, &str); 2] = [
    ("GATEPOST_BASE_URL", "https://login.example"),
    ("GATEPOST_BOUND_SESSIONS", "on"),
];

const PREFIX: &str = "__Host-gatepost-bound-";

/// Signed in, with a key that the session is bound to.
pub struct BoundBrowser {
    pub browser: Browser,
    pub key: Signer,
    /// The challenge of the sign-in.
    pub offered: String,
    /// The answer to the registration.
    pub instructions: Value,
}

impl BoundBrowser {
    pub fn sign_in(gatepost: &Gatepost) -> BoundBrowser {
        let (browser, answer) = signed_in(gatepost);
        let key = Signer::es256("device");
        let offered = challenge_offered(&answer).unwrap();
        let bound = bind(gatepost, &[&registration(&key, &offered)]);
        bound.assert_status(200);
        let mut browser = BoundBrowser {
            browser,
            key,
            offered,
            instructions: bound.json(),
        };
        browser.take_cookie(&bound);
        browser
    }

    pub fn identifier(&self) -> &str {
        self.instructions["session_identifier"].as_str().unwrap()
    }

    /// The name of the bound cookie.
    pub fn cookie(&self) -> &str {
        self.instructions["credentials"][0]["name"]
            .as_str()
            .unwrap()
    }

    pub fn take_cookie(&mut self, answer: &Answer) {
        let (name, value) = bound_cookie(answer).unwrap();
        self.browser.cookies.insert(name, value);
    }

    /// The same browser as somebody has it who copied the session cookie alone.
    pub fn copied(&self) -> Browser {
        let mut thief = self.browser.clone();
        thief.cookies.remove(self.cookie()).unwrap();
        thief
    }

    /// Asks for the next cookie with these lines of `Secure-Session-Response`.
    pub fn refresh(&self, gatepost: &Gatepost, proofs: &[&str]) -> Answer {
        refresh(gatepost, self.identifier(), proofs)
    }

    /// Asks without a proof, as the first time, and proves the challenge.
    pub fn proof(&self, gatepost: &Gatepost) -> String {
        proof(&self.key, &challenge(&self.refresh(gatepost, &[])))
    }
}

/// A browser in which alice signs in, and the answer to her password.
pub fn signed_in(gatepost: &Gatepost) -> (Browser, Answer) {
    let mut browser = gatepost.browser();
    let answer = signed_in_with(&mut browser);
    (browser, answer)
}

/// The answer to her password in that browser, whoever is signed in there.
pub fn signed_in_with(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let answer = sign_in(browser, &page, "alice", ALICE_PASSWORD);
    answer.assert_status(303);
    answer
}

/// The challenge with which an answer offers to bind the session.
pub fn challenge_offered(answer: &Answer) -> Option<String> {
    let offer = answer.header("secure-session-registration")?;
    let rest = offer
        .strip_prefix("(ES256 RS256);path=\"/session/bind\";challenge=\"")
        .unwrap();
    Some(rest.strip_suffix('"').unwrap().to_owned())
}

/// A proof that brings its key.
pub fn registration(key: &Signer, challenge: &str) -> String {
    let header = json!({"typ": "dbsc+jwt", "alg": key.alg, "jwk": key.jwk()});
    key.sign_under(&header, &json!({"jti": challenge}))
}

/// A proof by a key that is known.
pub fn proof(key: &Signer, challenge: &str) -> String {
    let header = json!({"typ": "dbsc+jwt", "alg": key.alg});
    key.sign_under(&header, &json!({"jti": challenge}))
}

pub fn bind(gatepost: &Gatepost, proofs: &[&str]) -> Answer {
    let headers: Vec<_> = proofs.iter().map(|proof| (RESPONSE, *proof)).collect();
    gatepost.send("POST", "/session/bind", &headers, b"")
}

pub fn refresh(gatepost: &Gatepost, identifier: &str, proofs: &[&str]) -> Answer {
    let mut headers: Vec<_> = proofs.iter().map(|proof| (RESPONSE, *proof)).collect();
    headers.push(("Sec-Secure-Session-Id", identifier));
    gatepost.send("POST", "/session/refresh", &headers, b"")
}

const RESPONSE: &str = "Secure-Session-Response";

/// The challenge of an answer that asks for a proof.
pub fn challenge(answer: &Answer) -> String {
    answer.assert_status(403);
    let header = answer.header("secure-session-challenge").unwrap();
    let (challenge, _) = header[1..].split_once("\";id=\"").unwrap();
    challenge.to_owned()
}

/// Name and value of the bound cookie that an answer sets.
pub fn bound_cookie(answer: &Answer) -> Option<(String, String)> {
    let cookies = answer.headers_named("set-cookie");
    let cookie = cookies.iter().find(|cookie| cookie.starts_with(PREFIX))?;
    let (pair, attributes) = cookie.split_once(';').unwrap();
    let (name, value) = pair.split_once('=').unwrap();
    let usual = " Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax";
    assert_eq!(attributes, usual, "{cookie}");
    Some((name.to_owned(), value.to_owned()))
}

/// Has the half minute pass that requests may cross in.
pub fn pass_half_a_minute(gatepost: &Gatepost) {
    gatepost.run_sql("UPDATE sessions SET bound_at = bound_at - interval '31 seconds'");
}
