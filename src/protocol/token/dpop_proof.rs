//! DPoP proofs (RFC 9449 §4): a JWT that a client makes for one request, signed by a key that it
//! brings along. What is issued to the request is bound to that key, and good for its holder alone.
//!
//! This file reads a proof and judges its claims. The caller verifies the signature in between,
//! holds the nonces, and remembers which proofs it took.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::assertion::numeric_date;
use crate::keys::jwt::{PublicKey, UnverifiedJws};
use crate::keys::key_set;
use crate::words::client::SigningAlgorithm;
use crate::words::identifiers::KeyThumbprint;
use crate::words::instant::Instant;
use crate::words::json::Members;
use crate::words::reason::{Reason, TokenErrorCode};

/// In metadata and challenges.
pub const ALGORITHMS: [&str; 3] = ["ES256", "EdDSA", SigningAlgorithm::ED25519];

/// The header of an answer that gives a nonce out (RFC 9449 §8.1).
pub const NONCE_HEADER: &str = "DPoP-Nonce";

const TYP: &str = "dpop+jwt";
const OLDEST: Duration = Duration::from_secs(60);
const FURTHEST_AHEAD: Duration = Duration::from_secs(10);
/// For how long a proof may be taken, counted from when it was first seen.
pub const REMEMBERED: Duration = Duration::from_secs(70);
const LONGEST_JTI: usize = 256;
/// For how many seconds the same nonce is given out.
pub const NONCE_SECONDS: i64 = 150;

/// Tells a proof from all others.
pub type ProofName = [u8; 32];

/// A proof whose signature is not checked yet.
pub struct UnverifiedProof {
    pub jws: UnverifiedJws,
    pub key: PublicKey,
}

/// What a proof must have been made for.
#[derive(Clone, Copy)]
pub struct ExpectedProof<'a> {
    pub method: &'a str,
    /// Without query.
    pub address: &'a str,
}

/// What a proof says that it was made for.
#[derive(Debug, PartialEq)]
pub struct MadeFor {
    pub method: String,
    pub address: String,
    pub at: Instant,
}

/// The proof that came with a request. Whoever sent it holds the key.
#[derive(Debug, PartialEq)]
pub struct DpopProof {
    pub key: KeyThumbprint,
    pub name: ProofName,
    pub nonce: Option<String>,
    /// `ath`: the hash of the access token that it goes with.
    pub token_hash: Option<String>,
}

impl UnverifiedProof {
    /// Reads the header `DPoP` (RFC 9449 §4.3): one line, one JWT, with a public key.
    pub fn read(headers: &[&str]) -> Result<UnverifiedProof, Reason> {
        UnverifiedProof::parse(headers).ok_or(Reason::ProofMalformed)
    }

    fn parse(headers: &[&str]) -> Option<UnverifiedProof> {
        // Two lines that a proxy joined have a comma, which no JWT has.
        let [header] = headers else {
            return None;
        };
        let jws = UnverifiedJws::parse(header.trim_matches([' ', '\t']))?;
        let key = key_set::read(&jws.embedded_key()?).ok()??.key;
        let is_taken = jws.alg != SigningAlgorithm::Rs256 && jws.alg == key.algorithm();
        (is_taken && is_one(&jws)).then_some(UnverifiedProof { jws, key })
    }

    /// For what method and address it says it was made, and when.
    pub fn made_for(&self) -> Option<MadeFor> {
        let claims = self.jws.unverified_claims()?;
        Some(MadeFor {
            method: claims.text("htm")?.to_owned(),
            address: claims.text("htu")?.to_owned(),
            at: numeric_date(claims.get("iat")?)?,
        })
    }

    /// Judges the claims after the signature was verified, the time before anything that a nonce
    /// would mend.
    pub fn judge(&self, expected: ExpectedProof<'_>, now: Instant) -> Result<DpopProof, Reason> {
        let claims = self.jws.unverified_claims();
        let claims = claims.ok_or(Reason::ProofMalformed)?;
        let address = claims.text("htu").and_then(normalised);
        let is_here = address.is_some() && address == normalised(expected.address);
        if claims.text("htm") != Some(expected.method) || !is_here {
            return Err(Reason::ProofElsewhere);
        }
        let issued_at = claims.get("iat").and_then(numeric_date);
        let is_of_now = |at: Instant| now <= at.plus(OLDEST) && at <= now.plus(FURTHEST_AHEAD);
        if !issued_at.is_some_and(is_of_now) {
            return Err(Reason::ProofTime);
        }
        let jti = claims
            .text("jti")
            .filter(|jti| !jti.is_empty() && jti.len() <= LONGEST_JTI);
        let jti = jti.ok_or(Reason::ProofReplayed)?;
        let key = self.key.key_thumbprint();
        Ok(DpopProof {
            key,
            name: Sha256::digest([&key.0[..], jti.as_bytes()].concat()).into(),
            nonce: claims.text("nonce").map(str::to_owned),
            token_hash: claims.text("ath").map(str::to_owned),
        })
    }
}

impl DpopProof {
    /// Whether it was made for this access token.
    pub fn is_for_token(&self, access_token: &str) -> bool {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(access_token));
        self.token_hash.as_deref() == Some(hash.as_str())
    }
}

/// Whether a JWT says that it is a proof.
pub fn is_one(jws: &UnverifiedJws) -> bool {
    jws.typ.as_deref() == Some(TYP)
}

/// `error` for a proof that is refused.
pub fn error(reason: Reason) -> TokenErrorCode {
    if reason == Reason::ProofNonce {
        TokenErrorCode::UseDpopNonce
    } else {
        TokenErrorCode::InvalidDpopProof
    }
}

/// The buckets of time whose nonces are good: the one of now, which is given out, the one before,
/// and the one after, which a process whose clock is ahead gives out already.
pub fn nonce_buckets(now: Instant) -> [i64; 3] {
    let bucket = now.seconds().div_euclid(NONCE_SECONDS);
    [bucket, bucket - 1, bucket + 1]
}

/// How RFC 3986 §6.2 compares addresses: scheme and host without regard to case, without a default
/// port, and with the path's characters written in one way. Here also without query and fragment
/// (RFC 9449 §4.3).
pub fn normalised(address: &str) -> Option<String> {
    let address = address.split(['?', '#']).next()?;
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "https" => ":443",
        _ => ":80",
    };
    // Behind another port it is none, and what has two is no address.
    let is_host = |rest: &&str| !rest.contains(':') || rest.ends_with(']');
    let bare = authority.strip_suffix(default_port).filter(is_host);
    let authority = bare.unwrap_or(&authority);
    Some(format!(
        "{scheme}://{authority}{}",
        written_in_one_way(path)
    ))
}

/// A path with unreserved characters as they are, and other percent-encoded ones in capitals
/// (RFC 3986 §6.2.2.1, §6.2.2.2). A `%` that encodes nothing stays.
fn written_in_one_way(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let encoded = piece.split_at_checked(2);
        let decoded = encoded.and_then(|(digits, rest)| Some((byte(digits)?, rest)));
        match decoded {
            Some((byte, rest)) if is_unreserved(byte) => {
                written.push(char::from(byte));
                written.push_str(rest);
            }
            Some((byte, rest)) => written.push_str(&format!("%{byte:02X}{rest}")),
            None => written.push_str(&format!("%{piece}")),
        }
    }
    written
}

/// The byte of two hexadecimal digits. `from_str_radix` alone would accept a sign.
fn byte(digits: &str) -> Option<u8> {
    let is_hex = digits.as_bytes().iter().all(u8::is_ascii_hexdigit);
    let read = u8::from_str_radix(digits, 16).ok();
    read.filter(|_| is_hex)
}

/// RFC 3986 §2.3
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::words::json::JsonObject;
    use crate::words::samples::DPOP_PROOF;

    const EXAMPLE_AT: i64 = 1_562_262_616;
    const EXPECTED: ExpectedProof<'static> = ExpectedProof {
        method: "POST",
        address: "https://server.example.com/token",
    };

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(seconds)
    }

    fn header(changed: &[(&str, Value)]) -> JsonObject {
        let jwk = json!({
            "kty": "EC", "crv": "P-256",
            "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
            "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
        });
        let mut header = JsonObject::from_iter([
            (String::from("typ"), json!(TYP)),
            (String::from("alg"), json!("ES256")),
            (String::from("jwk"), jwk),
        ]);
        for (name, value) in changed {
            header.insert((*name).to_owned(), value.clone());
        }
        header
    }

    fn proof(header: &JsonObject, claims: &Value) -> String {
        let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
        let header = encode(json!(header).to_string());
        format!("{header}.{}.AAAA", encode(claims.to_string()))
    }

    fn claims() -> Value {
        json!({
            "jti": "-BwC3ESc6acc2lTc", "htm": "POST", "htu": EXPECTED.address, "iat": EXAMPLE_AT,
        })
    }

    fn judged(claims: &Value, now: i64) -> Result<DpopProof, Reason> {
        let text = proof(&header(&[]), claims);
        UnverifiedProof::read(&[&text])?.judge(EXPECTED, at(now))
    }

    #[test]
    fn the_example_of_rfc_9449_is_read_and_bound_to_its_key() {
        let unverified = UnverifiedProof::read(&[DPOP_PROOF]).unwrap();
        let proof = unverified.judge(EXPECTED, at(EXAMPLE_AT)).unwrap();
        // RFC 9449 §6.1, figure 8.
        let jkt = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
        assert_eq!(proof.key.to_text(), jkt);
        assert_eq!(KeyThumbprint::from_text(jkt), Some(proof.key));
        assert_eq!((proof.nonce, proof.token_hash), (None, None));
    }

    #[test]
    fn the_ath_of_rfc_9449_is_that_of_its_token() {
        // RFC 9449 §7.1, figures 12 and 13.
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        let proof = DpopProof {
            key: KeyThumbprint([1; 32]),
            name: [2; 32],
            nonce: None,
            token_hash: Some(String::from("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")),
        };
        assert!(proof.is_for_token(token));
        assert!(!proof.is_for_token("another"));
        let without = DpopProof {
            token_hash: None,
            ..proof
        };
        assert!(!without.is_for_token(token));
    }

    #[test]
    fn what_is_no_proof_is_refused_unread() {
        let x = json!("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs");
        let private = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "d": x});
        let ed25519 = json!({"kty": "OKP", "crv": "Ed25519", "x": x});
        let rsa = json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0xff; 256]), "e": "AQAB"});
        let rows = [
            header(&[("typ", json!("JWT"))]),
            header(&[("typ", json!(null))]),
            header(&[("alg", json!("EdDSA"))]),
            header(&[("alg", json!("none"))]),
            header(&[("alg", json!("HS256"))]),
            header(&[("alg", json!("RS256")), ("jwk", rsa)]),
            header(&[("jwk", json!(null))]),
            header(&[("jwk", json!("0ZcOCORZNYy"))]),
            header(&[("jwk", ed25519.clone())]),
            header(&[("alg", json!("EdDSA")), ("jwk", private)]),
            header(&[("crit", json!(["jwk"]))]),
        ];
        for header in rows {
            let text = proof(&header, &claims());
            let read = UnverifiedProof::read(&[&text]);
            assert_eq!(read.err(), Some(Reason::ProofMalformed), "{header:?}");
        }
        let good = proof(&header(&[]), &claims());
        let joined = format!("{good}, {good}");
        let no_lines: [&[&str]; 6] = [
            &[],
            &[&good, &good],
            &[&joined],
            &[""],
            &["a.b.c"],
            &["\u{e9}"],
        ];
        for lines in no_lines {
            let read = UnverifiedProof::read(lines);
            assert_eq!(read.err(), Some(Reason::ProofMalformed), "{lines:?}");
        }
        for alg in ["EdDSA", "Ed25519"] {
            let header = header(&[("alg", json!(alg)), ("jwk", ed25519.clone())]);
            let text = proof(&header, &claims());
            assert!(UnverifiedProof::read(&[&text]).is_ok(), "{alg}");
        }
    }

    #[test]
    fn the_claims_are_those_of_this_request() {
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            claims
        };
        let long = "j".repeat(LONGEST_JTI + 1);
        #[rustfmt::skip]
        let rows = [
            ("htm", json!("GET"), Reason::ProofElsewhere),
            ("htm", json!("post"), Reason::ProofElsewhere),
            ("htm", json!(null), Reason::ProofElsewhere),
            ("htu", json!("https://server.example.com/other"), Reason::ProofElsewhere),
            ("htu", json!("https://server.example.com/token/"), Reason::ProofElsewhere),
            ("htu", json!("https://server.example.com/TOKEN"), Reason::ProofElsewhere),
            ("htu", json!("http://server.example.com/token"), Reason::ProofElsewhere),
            ("htu", json!("https://server.example.com:8443/token"), Reason::ProofElsewhere),
            ("htu", json!("https://other@server.example.com/token"), Reason::ProofElsewhere),
            ("htu", json!("/token"), Reason::ProofElsewhere),
            ("htu", json!(""), Reason::ProofElsewhere),
            ("htu", json!(null), Reason::ProofElsewhere),
            ("iat", json!(EXAMPLE_AT - 61), Reason::ProofTime),
            ("iat", json!(EXAMPLE_AT + 11), Reason::ProofTime),
            ("iat", json!(1e300), Reason::ProofTime),
            ("iat", json!(EXAMPLE_AT.to_string()), Reason::ProofTime),
            ("iat", json!(null), Reason::ProofTime),
            ("jti", json!(""), Reason::ProofReplayed),
            ("jti", json!(long), Reason::ProofReplayed),
            ("jti", json!(7), Reason::ProofReplayed),
        ];
        for (name, value, reason) in rows {
            let claims = with(name, value);
            assert_eq!(judged(&claims, EXAMPLE_AT), Err(reason), "{claims}");
        }
        #[rustfmt::skip]
        let good = [
            ("htu", json!("HTTPS://Server.Example.COM:443/token?a=b#c")),
            ("iat", json!(EXAMPLE_AT - 60)), ("iat", json!(EXAMPLE_AT + 10)),
            ("jti", json!("j")), ("jti", json!("j".repeat(LONGEST_JTI))), ("nbf", json!(EXAMPLE_AT + 900)), ("exp", json!(1)),
        ];
        for (name, value) in good {
            let claims = with(name, value);
            assert!(judged(&claims, EXAMPLE_AT).is_ok(), "{claims}");
        }
    }

    #[test]
    fn addresses_that_are_written_in_different_ways_are_one() {
        let path = |path: &str| format!("https://server.example.com{path}");
        #[rustfmt::skip]
        let rows = [
            ("/token", "/%74oken", true), ("/token", "/%74%6F%6b%65n", true),
            ("/a-b", "/a%2Db", true), ("/a_b", "/a%5fb", true), ("/a~b", "/a%7eb", true),
            ("/a.b", "/a%2Eb", true), ("/a%2Fb", "/a%2fb", true), ("/%C3%A9", "/%c3%a9", true),
            // What is reserved means another thing where it is encoded.
            ("/a/b", "/a%2Fb", false), ("/a;b", "/a%3Bb", false),
            // Once is enough.
            ("/a", "/%2561", false), ("/%41", "/%2541", false),
            // What encodes nothing is only itself.
            ("/a%", "/a%", true), ("/a%", "/a%25", false), ("/a%2", "/a%2", true),
            ("/a%zz", "/a%ZZ", false), ("/a%+1", "/a%01", false), ("/é%4", "/é%4", true),
            ("/token", "/TOKEN", false), ("/token", "/%54oken", false),
        ];
        for (one, other, are_one) in rows {
            let [left, right] = [one, other].map(|text| normalised(&path(text)));
            assert_eq!(left == right, are_one, "{one} {other}: {left:?} {right:?}");
        }
        let mut claims = claims();
        claims["htu"] = json!("https://SERVER.example.com/%74oken");
        assert!(judged(&claims, EXAMPLE_AT).is_ok());
    }

    #[test]
    fn a_proof_says_what_it_was_made_for_before_it_is_judged() {
        let read = |claims: &Value| {
            let text = proof(&header(&[]), claims);
            UnverifiedProof::read(&[&text]).unwrap().made_for()
        };
        let made_for = MadeFor {
            method: String::from("POST"),
            address: EXPECTED.address.to_owned(),
            at: at(EXAMPLE_AT),
        };
        assert_eq!(read(&claims()), Some(made_for));
        for name in ["htm", "htu", "iat"] {
            let mut claims = claims();
            claims[name] = json!([]);
            assert_eq!(read(&claims), None, "{name}");
        }
        assert_eq!(read(&json!([])), None);
    }

    #[test]
    fn the_nonce_and_the_hash_of_the_token_are_those_of_the_claims() {
        let mut claims = claims();
        claims["nonce"] = json!("n");
        claims["ath"] = json!("h");
        let proof = judged(&claims, EXAMPLE_AT).unwrap();
        assert_eq!(proof.nonce.as_deref(), Some("n"));
        assert_eq!(proof.token_hash.as_deref(), Some("h"));
    }

    #[test]
    fn a_client_that_lacks_a_nonce_is_told_so_and_any_other_that_its_proof_is_bad() {
        let missing = error(Reason::ProofNonce);
        assert_eq!(missing, TokenErrorCode::UseDpopNonce);
        for reason in [Reason::ProofMalformed, Reason::ProofTime] {
            assert_eq!(error(reason), TokenErrorCode::InvalidDpopProof);
        }
    }

    #[test]
    fn an_address_is_compared_without_case_default_port_and_query() {
        for (address, same) in [
            ("HTTP://Op.Example:80/a?b#c", Some("http://op.example/a")),
            ("https://op.example:443/A", Some("https://op.example/A")),
            ("https://op.example:80/a", Some("https://op.example:80/a")),
            ("http://op.example:443/a", Some("http://op.example:443/a")),
            ("https://op.example", Some("https://op.example")),
            ("https://[::1]:443/a", Some("https://[::1]/a")),
            ("http://[::80]/a", Some("http://[::80]/a")),
            (
                "http://op.example:8080:80/a",
                Some("http://op.example:8080:80/a"),
            ),
            ("https://op.example#https://b/", Some("https://op.example")),
            ("op.example/a", None),
            ("?https://op.example/a", None),
        ] {
            assert_eq!(normalised(address).as_deref(), same, "{address}");
        }
    }

    #[test]
    fn a_proof_has_the_name_of_its_jti_and_key() {
        let one = judged(&claims(), EXAMPLE_AT).unwrap();
        let mut other = claims();
        other["iat"] = json!(EXAMPLE_AT - 1);
        assert_eq!(judged(&other, EXAMPLE_AT).unwrap().name, one.name);
        other["jti"] = json!("another");
        assert_ne!(judged(&other, EXAMPLE_AT).unwrap().name, one.name);
    }

    #[test]
    fn a_nonce_is_good_in_its_bucket_and_in_those_beside_it() {
        let given = |seconds: i64| nonce_buckets(at(seconds))[0];
        for (given_at, now, is_good) in [
            (149, 150, true),
            (150, 149, true),
            (0, 299, true),
            (0, 300, false),
            (300, 149, false),
            (-1, 0, true),
        ] {
            let buckets = nonce_buckets(at(now));
            assert_eq!(
                buckets.contains(&given(given_at)),
                is_good,
                "{given_at} {now}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(header in ".{0,80}", claims in ".{0,80}", htu in ".{0,60}") {
            let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let text = format!("{}.{}.AAAA", encode(&header), encode(&claims));
            let _ = UnverifiedProof::read(&[&text]).map(|proof| proof.judge(EXPECTED, at(0)));
            let _ = normalised(&htu);
        }
    }
}
