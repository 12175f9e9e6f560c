//! Proofs at a protected resource that are refused, and a few odd ones that are good.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::scene::{Proof, Resource, Suite, change, random_text};
use crate::support::flow::{damaged, text};
use crate::support::jwt::forge;
use crate::support::signer::Signer;

/// What a proof becomes on its way: the header lines.
type Make<'m> = Box<dyn Fn(Proof<'_>) -> Vec<(String, String)> + 'm>;

fn line(text: String) -> Vec<(String, String)> {
    vec![(String::from("DPoP"), text)]
}

/// With another value of a member of the header; `null` leaves it out.
fn header(name: &'static str, value: Value) -> Make<'static> {
    Box::new(move |mut proof| {
        change(&mut proof.header, &[(name, value.clone())]);
        line(proof.text())
    })
}

/// The same of a claim.
fn claim(name: &'static str, value: Value) -> Make<'static> {
    Box::new(move |mut proof| {
        change(&mut proof.claims, &[(name, value.clone())]);
        line(proof.text())
    })
}

/// With a public key that has its private part beside it.
fn private_key(mut proof: Proof<'_>) -> Vec<(String, String)> {
    proof.header["jwk"]["d"] = json!(URL_SAFE_NO_PAD.encode([7; 32]));
    line(proof.text())
}

fn unsigned(mut proof: Proof<'_>) -> Vec<(String, String)> {
    proof.header["alg"] = json!("none");
    line(forge(&proof.header, &proof.claims, |_| Vec::new()))
}

fn with_more(mut proof: Proof<'_>) -> Vec<(String, String)> {
    proof.header["unknown_header"] = json!("x");
    proof.claims["unknown_claim"] = json!({"x": [1]});
    line(proof.text())
}

/// The 31 requests of the module, at this resource of the first client's.
pub(super) fn assert_judged(suite: &Suite, path: &str, access_token: &str) {
    let resource = |scheme| Resource {
        path,
        scheme,
        ..Resource::userinfo(suite.first, access_token)
    };
    let usual: Make<'_> = Box::new(|proof| line(proof.text()));
    let ask = |make: &Make<'_>| suite.resource(&resource("DPoP"), make).status;
    let url = suite.url(path);
    let (shouted, with_port) = other_spellings(&url);
    let other_key = Signer::es256("other");
    let rsa = Signer::rs256("rsa");
    let by = |key: &'static str| -> Make<'_> {
        let (rsa, other_key) = (&rsa, &other_key);
        Box::new(move |proof| {
            let key = if key == "rsa" { rsa } else { other_key };
            let mut header = proof.header.clone();
            header["alg"] = json!(key.alg);
            header["jwk"] = key.jwk();
            line(key.sign_under(&header, &proof.claims))
        })
    };
    let good: Vec<(&str, Make<'_>)> = vec![
        (
            "a header in capitals",
            Box::new(|proof| vec![(String::from("DPOP"), proof.text())]),
        ),
        (
            "htu with query and fragment",
            claim("htu", json!(format!("{url}?a=b#c"))),
        ),
        ("htu without them", claim("htu", json!(url))),
        ("unknown members", Box::new(with_more)),
        ("htu in other letters", claim("htu", json!(shouted))),
        ("htu with a port", claim("htu", json!(with_port))),
    ];
    let now = suite.now();
    let bad: Vec<(&str, Make<'_>)> = vec![
        (
            "two headers",
            Box::new(|proof| [line(proof.text()), line(proof.text())].concat()),
        ),
        (
            "no JWT",
            Box::new(|proof| line(proof.text().replace('.', ""))),
        ),
        ("no typ", header("typ", json!(null))),
        ("no alg", header("alg", json!(null))),
        ("no jwk", header("jwk", json!(null))),
        ("no jti", claim("jti", json!(null))),
        ("no htm", claim("htm", json!(null))),
        ("no htu", claim("htu", json!(null))),
        ("no iat", claim("iat", json!(null))),
        ("no ath", claim("ath", json!(null))),
        ("another typ", header("typ", json!("JWT"))),
        ("RS256", by("rsa")),
        ("unsigned", Box::new(unsigned)),
        (
            "a broken signature",
            Box::new(|proof| line(damaged(&proof.text()))),
        ),
        ("a private key", Box::new(private_key)),
        ("another htm", claim("htm", json!("PUT"))),
        ("another htu", claim("htu", json!(format!("{url}/other")))),
        (
            "another ath",
            claim("ath", json!("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")),
        ),
        ("another key", by("other")),
        ("no proof", Box::new(|_| Vec::new())),
    ];
    for (case, make) in &good {
        assert_eq!(ask(make), 200, "{case}");
    }
    for (case, make) in &bad {
        let status = ask(make);
        assert!([400, 401].contains(&status), "{case}: {status}");
    }
    // Whoever is given a nonce asks once more, and the suite expects that to succeed. So who is an
    // hour off must not be given one.
    for iat in [now + 3_600, now - 3_600] {
        suite.forget_nonce();
        assert_eq!(ask(&claim("iat", json!(iat))), 401, "{iat}");
        assert!(!suite.has_nonce(), "{iat}");
    }
    assert_eq!(ask(&usual), 200);
    let again = claim("jti", json!(random_text(22)));
    assert_eq!([ask(&again), ask(&again)], [200, 401]);
    let bearer = suite.resource(&resource("Bearer"), &|_| Vec::new());
    assert_eq!(bearer.status, 401);
    // All that failed for its proof: the token is as good as before.
    assert_eq!(ask(&usual), 200);
}

/// The address with scheme and host in capitals, and with the port that it has anyhow.
fn other_spellings(url: &str) -> (String, String) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let shouted = format!("{}://{}/{path}", scheme.to_uppercase(), host.to_uppercase());
    (shouted, format!("{scheme}://{host}:443/{path}"))
}

#[test]
fn dpop_negative_tests() {
    let mut suite = Suite::start();
    let tokens = suite.tokens(&[]);
    assert_judged(
        &suite,
        super::scene::USERINFO,
        text(&tokens, "access_token"),
    );
}
