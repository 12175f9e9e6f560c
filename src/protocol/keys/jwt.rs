//! JSON Web Signature, compact form (RFC 7515 §3.1), as far as it needs no key. `alg` chooses nothing: verifiers
//! compare it with their own record of the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::protocol::words::client::SigningAlgorithm;

/// Of an id_token. Access tokens of clients registered so have it, too: `client_id` is in every access token and in no
/// id_token, and tells them apart.
pub const ID_TOKEN_TYP: &str = "JWT";
/// RFC 9068 §2.1
pub const ACCESS_TOKEN_TYP: &str = "at+jwt";
/// OpenID Connect Back-Channel Logout §2.4
pub const LOGOUT_TOKEN_TYP: &str = "logout+jwt";

/// Longer ones are not looked at.
pub const MOST_BYTES: usize = 16 * 1_024;

/// Nobody has checked its signature yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedJws {
    /// One of ours, and only a claim.
    pub alg: SigningAlgorithm,
    pub kid: Option<String>,
    pub typ: Option<String>,
    /// The first two parts as they came.
    pub signing_input: String,
    pub unverified_payload: Vec<u8>,
    pub signature: Vec<u8>,
}

/// RFC 7515 §5.1
pub fn signing_input(alg: SigningAlgorithm, kid: &str, typ: &str, claims: &impl Serialize) -> String {
    let header = json!({ "alg": alg.as_str(), "kid": kid, "typ": typ }).to_string();
    let payload = serde_json::to_vec(claims).unwrap_or_default();
    format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload))
}

pub fn assemble(signing_input: &str, signature: &[u8]) -> String {
    format!("{signing_input}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// `at_hash` and `c_hash` (OpenID Connect Core §3.1.3.6, §3.3.2.11): the left half of the text's hash, by the hash of
/// the id_token's own signature.
pub fn half_hash(alg: SigningAlgorithm, text: &str) -> String {
    let hash: Vec<u8> = match alg {
        SigningAlgorithm::Rs256 | SigningAlgorithm::Es256 => Sha256::digest(text.as_bytes()).to_vec(),
        SigningAlgorithm::EdDsa => Sha512::digest(text.as_bytes()).to_vec(),
    };
    let half = hash.len() / 2;
    let (left, _) = hash.split_at(half);
    URL_SAFE_NO_PAD.encode(left)
}

impl UnverifiedJws {
    /// `None` unless it has three parts of strict base64url and a header that names one of our algorithms and no
    /// extension that must be understood (`crit`). Keys offered in the header (`jwk`, `jku`, `x5u`, `x5c`) are not
    /// looked at.
    pub fn parse(text: &str) -> Option<UnverifiedJws> {
        if text.len() > MOST_BYTES {
            return None;
        }
        let (signing_input, signature) = text.rsplit_once('.')?;
        let (header, payload) = signing_input.split_once('.')?;
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return None;
        }
        let header: Map<String, Value> = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        if header.contains_key("crit") {
            return None;
        }
        Some(UnverifiedJws {
            alg: SigningAlgorithm::from_name(header.get("alg")?.as_str()?)?,
            kid: optional_text(&header, "kid")?,
            typ: optional_text(&header, "typ")?,
            signing_input: signing_input.to_owned(),
            unverified_payload: URL_SAFE_NO_PAD.decode(payload).ok()?,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    /// RFC 7519 §3; to be believed only after the signature was verified.
    pub fn unverified_claims(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.unverified_payload).ok()
    }
}

/// The outer `None`: the member is there, and is no text.
fn optional_text(header: &Map<String, Value>, name: &str) -> Option<Option<String>> {
    match header.get(name) {
        None => Some(None),
        Some(value) => value.as_str().map(|text| Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn jws(header: &str, payload: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", encode(header), encode(payload), encode("signature"))
    }

    #[test]
    fn at_hash_and_c_hash_of_openid_connect_core_a_3_and_a_4() {
        let access_token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";
        assert_eq!(half_hash(SigningAlgorithm::Rs256, access_token), "77QmUPtjPfzWtF2AnpK9RQ");
        let code = "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk";
        assert_eq!(half_hash(SigningAlgorithm::Es256, code), "LDktKdoQak3Pk0cnXxCltA");
        // SHA-512("abc"), FIPS 180-4: ddaf35a193617aba cc417349ae204131 12e6fa4e89a97ea2 0a9eeee64b55d39a ...
        let half = URL_SAFE_NO_PAD.decode(half_hash(SigningAlgorithm::EdDsa, "abc")).unwrap();
        assert_eq!(half.len(), 32);
        assert_eq!(half[..4], [0xdd, 0xaf, 0x35, 0xa1]);
        assert_eq!(half[28..], [0x4b, 0x55, 0xd3, 0x9a]);
    }

    #[test]
    fn the_structure_of_rfc_7515_a_2_is_taken_apart() {
        // Header and payload of the RS256 example; its signature is not of interest here.
        let text = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.AQID";
        let jws = UnverifiedJws::parse(text).unwrap();
        assert_eq!((jws.alg, jws.kid.as_deref(), jws.typ.as_deref()), (SigningAlgorithm::Rs256, None, None));
        assert_eq!(jws.signature, [1, 2, 3]);
        assert_eq!(jws.unverified_claims().unwrap().get("exp"), Some(&json!(1_300_819_380)));
        assert_eq!(assemble(&jws.signing_input, &jws.signature), text);
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
        let [header, payload, signature] = parts[..] else { panic!("three parts") };
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

    proptest! {
        #[test]
        fn no_parts_make_it_panic(header in ".{0,40}", payload in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = format!("{}.{}.AA", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
            let _ = UnverifiedJws::parse(&text).map(|jws| jws.unverified_claims());
        }
    }
}
