//! JSON Web Signature, compact form (RFC 7515 §3.1), as far as it needs no key. `alg` chooses
//! nothing: verifiers compare it with their own record of the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::words::claim_shape::optional;
use crate::words::client::{AccessTokenTyp, SigningAlgorithm};
use crate::words::identifiers::KeyThumbprint;
use crate::words::json::{JsonObject, Members, SetMember};

/// The `typ` of an ID token. An access token may have it, too, where its client is registered so.
/// The two differ by `client_id`: every access token has it, and no ID token.
pub const ID_TOKEN_TYP: &str = AccessTokenTyp::Jwt.as_str();
pub const ACCESS_TOKEN_TYP: &str = AccessTokenTyp::AtJwt.as_str();
/// OpenID Connect Back-Channel Logout §2.4
pub const LOGOUT_TOKEN_TYP: &str = "logout+jwt";
/// draft-ietf-oauth-identity-assertion-authz-grant-04 §3
pub const ID_JAG_TYP: &str = "oauth-id-jag+jwt";

/// Longer tokens are refused unread.
pub const MOST_BYTES: usize = 16 * 1_024;

/// A JWS whose signature is not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct UnverifiedJws {
    /// An algorithm that we know. So far the token only claims it.
    pub alg: SigningAlgorithm,
    pub kid: Option<String>,
    pub typ: Option<String>,
    /// The first two parts as they came: what was signed.
    pub signing_input: String,
    pub unverified_payload: Vec<u8>,
    pub signature: Vec<u8>,
}

/// What is signed (RFC 7515 §5.1). `typ` is one of our words, with nothing to escape. `kid` may
/// come from somebody else.
#[allow(
    clippy::expect_used,
    reason = "claims are maps with text keys, which can always be written as JSON"
)]
pub fn signing_input(
    alg: SigningAlgorithm,
    kid: &str,
    typ: &str,
    claims: &impl Serialize,
) -> String {
    let header = format!(
        r#"{{"alg":"{}","kid":{},"typ":"{typ}"}}"#,
        alg.as_str(),
        Value::from(kid)
    );
    let mut payload = Vec::with_capacity(1_024);
    serde_json::to_writer(&mut payload, claims).expect("claims can be written as JSON");
    let mut input = String::with_capacity(2_048);
    URL_SAFE_NO_PAD.encode_string(header, &mut input);
    input.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut input);
    input
}

pub fn assemble(mut signing_input: String, signature: &[u8]) -> String {
    signing_input.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut signing_input);
    signing_input
}

/// `at_hash` and `c_hash` (OpenID Connect Core §3.1.3.6, §3.3.2.11): the left half of the text's
/// hash, by the hash of the id_token's own signature.
pub fn half_hash(alg: SigningAlgorithm, text: &str) -> String {
    let left_half = |hash: &[u8]| {
        let (left, _) = hash.split_at(hash.len() / 2);
        URL_SAFE_NO_PAD.encode(left)
    };
    match alg {
        SigningAlgorithm::Rs256 | SigningAlgorithm::Es256 => left_half(&Sha256::digest(text)),
        SigningAlgorithm::EdDsa => left_half(&Sha512::digest(text)),
    }
}

impl UnverifiedJws {
    /// Reads a JWS. `None` unless it has three parts of strict base64url and a header that names
    /// one of our algorithms and no extension that must be understood (`crit`). Keys in the header
    /// (`jwk`, `jku`, `x5u`, `x5c`) are ignored here.
    pub fn parse(text: &str) -> Option<UnverifiedJws> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let (signing_input, signature) = text.rsplit_once('.')?;
        let (header, payload) = signing_input.split_once('.')?;
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return None;
        }
        let header = members(header)?;
        if header.contains_key("crit") {
            return None;
        }
        let text = |name| optional(header.get(name), |value| value.as_str().map(str::to_owned));
        Some(UnverifiedJws {
            alg: SigningAlgorithm::from_others(header.text("alg")?)?,
            kid: text("kid").ok()?,
            typ: text("typ").ok()?,
            signing_input: signing_input.to_owned(),
            unverified_payload: URL_SAFE_NO_PAD.decode(payload).ok()?,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    /// The key in the header, which proofs alone bring: those of DPoP, and the first of a bound
    /// session. It says nothing of who signed.
    pub fn embedded_key(&self) -> Option<Value> {
        let (header, _) = self.signing_input.split_once('.')?;
        members(header)?.remove("jwk")
    }

    /// The claims (RFC 7519 §3). Believe them only after the signature was verified.
    pub fn unverified_claims(&self) -> Option<JsonObject> {
        serde_json::from_slice(&self.unverified_payload).ok()
    }
}

/// The members of the header, from its base64url.
fn members(header: &str) -> Option<JsonObject> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()
}

/// Plain numbers, big-endian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PublicKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// Both coordinates in full length.
    P256 {
        x: [u8; 32],
        y: [u8; 32],
    },
    Ed25519 {
        x: [u8; 32],
    },
}

impl PublicKey {
    /// Reads a JWK. `None` for one that `to_jwk` would not write.
    pub fn from_jwk(jwk: &Value) -> Option<PublicKey> {
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(jwk.text(name)?).ok();
        let coordinate = |name: &str| <[u8; 32]>::try_from(bytes(name)?).ok();
        match (jwk.text("kty")?, jwk.text("crv")) {
            ("RSA", None) => Some(PublicKey::Rsa {
                n: bytes("n")?,
                e: bytes("e")?,
            }),
            ("EC", Some("P-256")) => Some(PublicKey::P256 {
                x: coordinate("x")?,
                y: coordinate("y")?,
            }),
            ("OKP", Some("Ed25519")) => Some(PublicKey::Ed25519 {
                x: coordinate("x")?,
            }),
            _ => None,
        }
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        match self {
            PublicKey::Rsa { .. } => SigningAlgorithm::Rs256,
            PublicKey::P256 { .. } => SigningAlgorithm::Es256,
            PublicKey::Ed25519 { .. } => SigningAlgorithm::EdDsa,
        }
    }

    /// The thumbprint (RFC 7638 §3): the SHA-256 over the required members in alphabetical order,
    /// which is the order of our objects.
    pub fn key_thumbprint(&self) -> KeyThumbprint {
        KeyThumbprint(Sha256::digest(self.required_members().to_string()).into())
    }

    /// The thumbprint as text.
    pub fn thumbprint(&self) -> String {
        self.key_thumbprint().to_text()
    }

    /// For signatures only.
    pub fn to_jwk(&self) -> Value {
        let mut jwk = self.required_members();
        jwk.set("use", "sig");
        jwk.set("alg", self.algorithm().as_str());
        jwk.set("kid", self.thumbprint());
        jwk
    }

    fn required_members(&self) -> Value {
        let octets = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let integer = |bytes: &[u8]| octets(fewest_octets(bytes));
        match self {
            PublicKey::Rsa { n, e } => json!({"kty": "RSA", "n": integer(n), "e": integer(e)}),
            PublicKey::P256 { x, y } => {
                json!({"kty": "EC", "crv": "P-256", "x": octets(x), "y": octets(y)})
            }
            PublicKey::Ed25519 { x } => json!({"kty": "OKP", "crv": "Ed25519", "x": octets(x)}),
        }
    }
}

/// RFC 7518 §2
fn fewest_octets(mut number: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = number {
        number = rest;
    }
    number
}

/// Each key once, under its name.
pub fn document<'a>(keys: impl IntoIterator<Item = (&'a str, &'a PublicKey)>) -> Value {
    let mut distinct: Vec<(&str, &PublicKey)> = Vec::new();
    for (kid, key) in keys {
        if distinct
            .iter()
            .all(|(_, known)| known.thumbprint() != key.thumbprint())
        {
            distinct.push((kid, key));
        }
    }
    let mut jwks = Vec::new();
    for (kid, key) in distinct {
        let mut jwk = key.to_jwk();
        jwk.set("kid", kid);
        jwks.push(jwk);
    }
    json!({ "keys": jwks })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn jws(header: &str, payload: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.{}",
            encode(header),
            encode(payload),
            encode("signature")
        )
    }

    #[test]
    fn at_hash_and_c_hash_of_openid_connect_core_a_3_and_a_4() {
        let access_token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";
        assert_eq!(
            half_hash(SigningAlgorithm::Rs256, access_token),
            "77QmUPtjPfzWtF2AnpK9RQ"
        );
        let code = "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk";
        assert_eq!(
            half_hash(SigningAlgorithm::Es256, code),
            "LDktKdoQak3Pk0cnXxCltA"
        );
        // SHA-512("abc"), FIPS 180-4: ddaf35a193617aba cc417349ae204131 12e6fa4e89a97ea2
        // 0a9eeee64b55d39a ...
        let half = URL_SAFE_NO_PAD
            .decode(half_hash(SigningAlgorithm::EdDsa, "abc"))
            .unwrap();
        assert_eq!(half.len(), 32);
        assert_eq!(half[..4], [0xdd, 0xaf, 0x35, 0xa1]);
        assert_eq!(half[28..], [0x4b, 0x55, 0xd3, 0x9a]);
    }

    #[test]
    fn the_structure_of_rfc_7515_a_2_is_taken_apart() {
        // Header and payload of the RS256 example; its signature is not of interest here.
        let text = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.AQID";
        let jws = UnverifiedJws::parse(text).unwrap();
        assert_eq!(
            (jws.alg, jws.kid.as_deref(), jws.typ.as_deref()),
            (SigningAlgorithm::Rs256, None, None)
        );
        assert_eq!(jws.signature, [1, 2, 3]);
        assert_eq!(
            jws.unverified_claims().unwrap().get("exp"),
            Some(&json!(1_300_819_380))
        );
        assert_eq!(assemble(jws.signing_input.clone(), &jws.signature), text);
    }

    #[test]
    fn headers_that_are_not_ours_are_refused() {
        #[rustfmt::skip]
        let rows = [
            r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"alg":"rs256"}"#, r#"{"alg":"RS512"}"#,
            r#"{"alg":["RS256"]}"#, r#"{"alg":null}"#, r#"{}"#, r#"{"alg":"RS256","crit":["exp"],"exp":1}"#,
            r#"{"alg":"RS256","crit":[]}"#, r#"{"alg":"RS256","kid":null}"#, r#"{"alg":"RS256","kid":7}"#,
            r#"{"alg":"RS256","typ":{}}"#, r#"["RS256"]"#, r#""RS256""#, r#"{"alg":"RS256"}{}"#, "", "not json",
        ];
        for header in rows {
            assert_eq!(UnverifiedJws::parse(&jws(header, "{}")), None, "{header}");
        }
    }

    #[test]
    fn a_form_that_is_not_strict_is_refused() {
        let good = jws(r#"{"alg":"RS256"}"#, "{}");
        assert!(UnverifiedJws::parse(&good).is_some());
        let parts: Vec<&str> = good.split('.').collect();
        let [header, payload, signature] = parts[..] else {
            panic!("three parts")
        };
        for text in [
            String::new(),
            String::from(".."),
            format!("{header}.{payload}"),
            format!("{header}.{payload}."),
            format!(".{payload}.{signature}"),
            format!("{header}..{signature}"),
            format!("{good}.{signature}"),
            format!("{good}="),
            format!("{good}\n"),
            format!(" {good}"),
            format!("{header}=.{payload}.{signature}"),
            format!("{header}.{payload}.AR"), // a bit beyond the last byte is set
            format!("{header}.{payload}.+/8"),
            jws(r#"{"alg":"RS256"}"#, &"x".repeat(MOST_BYTES)),
        ] {
            assert_eq!(UnverifiedJws::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn a_token_has_sixteen_kibibytes_at_most() {
        let long = |payload: usize| jws(r#"{"alg":"RS256"}"#, &"x".repeat(payload));
        assert_eq!(long(12_262).len(), 16_384);
        assert!(UnverifiedJws::parse(&long(12_262)).is_some());
        assert_eq!(UnverifiedJws::parse(&long(12_263)), None);
    }

    #[test]
    fn a_key_in_the_header_is_told_to_whoever_asks_for_it() {
        let with_key = jws(r#"{"alg":"EdDSA","jwk":{"kty":"OKP"}}"#, "{}");
        let key = UnverifiedJws::parse(&with_key).unwrap().embedded_key();
        assert_eq!(key, Some(json!({"kty": "OKP"})));
        let without = jws(r#"{"alg":"EdDSA"}"#, "{}");
        assert_eq!(UnverifiedJws::parse(&without).unwrap().embedded_key(), None);
    }

    #[test]
    fn what_is_signed_is_header_and_claims() {
        let text = signing_input(
            SigningAlgorithm::Es256,
            r#"a "key""#,
            "at+jwt",
            &json!({"iss": "joe"}),
        );
        let parts: Vec<Vec<u8>> = text
            .split('.')
            .map(|part| URL_SAFE_NO_PAD.decode(part).unwrap())
            .collect();
        let header = br#"{"alg":"ES256","kid":"a \"key\"","typ":"at+jwt"}"#;
        assert_eq!(parts, [&header[..], br#"{"iss":"joe"}"#]);
    }

    proptest! {
        #[test]
        fn no_parts_make_it_panic(header in ".{0,40}", payload in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = format!("{}.{}.AA", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
            let _ = UnverifiedJws::parse(&text).map(|jws| jws.unverified_claims());
        }
    }

    mod jwks {
        use super::super::*;

        fn bytes(text: &str) -> Vec<u8> {
            URL_SAFE_NO_PAD.decode(text).unwrap()
        }

        /// RFC 7638 §3.1, RFC 7517 Appendix A.1, RFC 8037 Appendix A.2.
        fn keys() -> [PublicKey; 3] {
            let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
            let (x, y) = (
                "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
                "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
            );
            let ed25519 = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
            [
                PublicKey::Rsa {
                    n: bytes(n),
                    e: vec![1, 0, 1],
                },
                PublicKey::P256 {
                    x: bytes(x).try_into().unwrap(),
                    y: bytes(y).try_into().unwrap(),
                },
                PublicKey::Ed25519 {
                    x: bytes(ed25519).try_into().unwrap(),
                },
            ]
        }

        #[test]
        fn keys_are_published_under_their_thumbprint_and_read_back() {
            let [rsa, p256, ed25519] = keys();
            assert_eq!(
                rsa.thumbprint(),
                "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
            );
            assert_eq!(
                ed25519.thumbprint(),
                "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
            );
            // Nothing private is among them.
            for (key, members) in [
                (rsa, "alg e kid kty n use"),
                (p256, "alg crv kid kty use x y"),
                (ed25519, "alg crv kid kty use x"),
            ] {
                let jwk = key.to_jwk();
                assert_eq!(
                    jwk.as_object()
                        .unwrap()
                        .keys()
                        .cloned()
                        .collect::<Vec<_>>()
                        .join(" "),
                    members
                );
                assert_eq!(PublicKey::from_jwk(&jwk), Some(key));
            }
        }

        #[test]
        fn a_document_has_each_key_once_under_its_first_name() {
            let [rsa, p256, ed25519] = keys();
            let named = [("a", &rsa), ("b", &p256), ("c", &rsa), ("d", &ed25519)];
            let document = document(named);
            let listed = document["keys"].as_array().unwrap();
            let of = |name: &str, key: &PublicKey| {
                let mut jwk = key.to_jwk();
                jwk["kid"] = json!(name);
                jwk
            };
            assert_eq!(listed, &[of("a", &rsa), of("b", &p256), of("d", &ed25519)]);
        }

        #[test]
        fn leading_zeros_change_no_name() {
            let [rsa, ..] = keys();
            let PublicKey::Rsa { n, .. } = &rsa else {
                panic!("{rsa:?}")
            };
            let padded = PublicKey::Rsa {
                n: [&[0, 0][..], n].concat(),
                e: vec![0, 1, 0, 1],
            };
            assert_eq!(
                (padded.thumbprint(), padded.to_jwk()),
                (rsa.thumbprint(), rsa.to_jwk())
            );
            // A coordinate keeps its full length (RFC 7518 §6.2.1.2).
            let short = PublicKey::P256 {
                x: [0; 32],
                y: [0; 32],
            };
            assert_eq!(short.to_jwk()["x"].as_str().map(str::len), Some(43));
        }
    }
}
