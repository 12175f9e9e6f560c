//! Public keys of others (RFC 7517). Weak keys and keys that are not for signatures are left out.
//! Where two keys share a name and an algorithm, neither is used.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use serde_json::Value;

use crate::keys::jwt::PublicKey;
use crate::words::client::SigningAlgorithm;
use crate::words::json::JsonObject;
use crate::words::rule::RuleKept;

/// A set with more is a mistake.
const MOST_KEYS: usize = 100;

/// Members that only private and symmetric keys have (RFC 7518 §6).
pub const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The usable ones of a JWK set.
#[derive(Debug, Default, PartialEq)]
pub struct KeySet(Vec<NamedKey>);

#[derive(Debug, PartialEq)]
pub struct NamedKey {
    pub kid: Option<String>,
    pub key: PublicKey,
}

#[derive(Debug, PartialEq)]
pub enum KeyChoice<'a> {
    One(&'a PublicKey),
    /// A newer set may have it.
    Unknown,
    /// Guessing is not verifying.
    Ambiguous,
}

impl KeySet {
    /// Reads a JWK set. `None` when it is not one, or holds more keys than anybody needs.
    pub fn parse(value: &Value) -> Option<KeySet> {
        let jwks = value.as_object()?.get("keys")?.as_array()?;
        if jwks.len() > MOST_KEYS {
            return None;
        }
        let mut keys: Vec<NamedKey> = Vec::new();
        for key in jwks.iter().filter_map(|jwk| read(jwk).ok().flatten()) {
            // The same key twice is one key.
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Some(KeySet(keys))
    }

    /// The key called `kid`. Without a name: the only key for `alg` (OpenID Connect Core §10.1). A
    /// key without a name goes by its thumbprint (RFC 7638).
    pub fn choose(&self, alg: SigningAlgorithm, kid: Option<&str>) -> KeyChoice<'_> {
        let fits = |named: &&NamedKey| {
            named.key.algorithm() == alg && kid.is_none_or(|kid| named.goes_by(kid))
        };
        let mut fitting = self.0.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (None, _) => KeyChoice::Unknown,
            (Some(only), None) => KeyChoice::One(&only.key),
            (Some(_), Some(_)) => KeyChoice::Ambiguous,
        }
    }

    pub fn has_key_for(&self, alg: SigningAlgorithm) -> bool {
        self.0.iter().any(|key| key.key.algorithm() == alg)
    }

    /// Whether two keys share name and algorithm, so that neither can ever be chosen.
    pub fn has_ambiguous_names(&self) -> bool {
        self.0.iter().any(|named| {
            let kid = named.kid.as_deref();
            kid.is_some() && self.choose(named.key.algorithm(), kid) == KeyChoice::Ambiguous
        })
    }
}

impl NamedKey {
    fn goes_by(&self, kid: &str) -> bool {
        match &self.kid {
            Some(own) => own == kid,
            None => self.key.thumbprint() == kid,
        }
    }
}

/// Reads a key that verifies signatures: its name in a set, and the one algorithm that fits its
/// kind. `None` for a key for encryption or for an algorithm that we do not use, which is not an
/// error (RFC 7517 §5). The error is the rule that the key breaks.
pub fn read(jwk: &Value) -> Result<Option<NamedKey>, &'static str> {
    let members = jwk.as_object().ok_or("must be an object")?;
    let kty = text(members, "kty")?.ok_or("must have a kty")?;
    if kty == "oct"
        || PRIVATE_MEMBERS
            .iter()
            .any(|name| members.contains_key(*name))
    {
        return Err("holds a private or symmetric key; register the public part only");
    }
    let kid = text(members, "kid")?.map(str::to_owned);
    let is_ours = matches!(
        (kty, text(members, "crv")?),
        ("RSA", _) | ("EC", Some("P-256")) | ("OKP", Some("Ed25519"))
    );
    if !is_ours || !is_for_signatures(members)? {
        return Ok(None);
    }
    let key = PublicKey::from_jwk(jwk).ok_or("is not a well-formed public key")?;
    check_strength(&key)?;
    if !is_for_algorithm(members, key.algorithm())? {
        return Ok(None);
    }
    Ok(Some(NamedKey { kid, key }))
}

/// `use` and `key_ops` (RFC 7517 §4.2, §4.3).
fn is_for_signatures(jwk: &JsonObject) -> Result<bool, &'static str> {
    let operations = match jwk.get("key_ops") {
        None => true,
        Some(Value::Array(operations)) => operations.iter().any(|operation| operation == "verify"),
        Some(_) => return Err("has key_ops that are no array"),
    };
    // The second is that of a SPIFFE bundle.
    let purposes = ["sig", "jwt-svid"];
    Ok(operations && text(jwk, "use")?.is_none_or(|purpose| purposes.contains(&purpose)))
}

/// `alg` (RFC 7517 §4.4).
fn is_for_algorithm(jwk: &JsonObject, algorithm: SigningAlgorithm) -> Result<bool, &'static str> {
    let alg = text(jwk, "alg")?;
    Ok(alg.is_none_or(|alg| SigningAlgorithm::from_others(alg) == Some(algorithm)))
}

/// Refuses weak keys. RSA below 2048 bits can be broken by those who can pay (NIST SP 800-131A), an
/// exponent of 1 signs nothing, and a point that is not on its curve is not a key (RFC 7518
/// §6.2.1).
fn check_strength(key: &PublicKey) -> RuleKept {
    let (n, e) = match key {
        PublicKey::Rsa { n, e } => (n, e),
        PublicKey::P256 { x, y } => {
            let point = [&[4], x.as_slice(), y].concat();
            let parsed = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
            return parsed
                .map(drop)
                .map_err(|_| "is a point that is not on its curve");
        }
        PublicKey::Ed25519 { .. } => return Ok(()),
    };
    if !(2_048..=8_192).contains(&bits(n)) {
        return Err("is an RSA key of fewer than 2048 or more than 8192 bits");
    }
    let odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
    if !(2..=33).contains(&bits(e)) || !odd(e) || !odd(n) {
        return Err("is not a well-formed RSA key");
    }
    Ok(())
}

/// Without leading zeros.
fn bits(number: &[u8]) -> u32 {
    let mut significant = number.iter().skip_while(|byte| **byte == 0);
    let first = significant
        .next()
        .map_or(0, |byte| u8::BITS - byte.leading_zeros());
    u32::try_from(significant.count())
        .unwrap_or(u32::MAX)
        .saturating_mul(u8::BITS)
        .saturating_add(first)
}

fn text<'a>(jwk: &'a JsonObject, name: &str) -> Result<Option<&'a str>, &'static str> {
    match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("has a member that should be a string and is none"),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::words::samples;

    fn rsa(bits: usize) -> Value {
        let n = vec![0xff; bits / 8];
        json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode(n), "e": "AQAB" })
    }

    fn p256(number: u8) -> Value {
        samples::p256(number).to_jwk()
    }

    fn with(mut jwk: Value, name: &str, value: Value) -> Value {
        jwk[name] = value;
        jwk
    }

    fn set(keys: &[Value]) -> KeySet {
        KeySet::parse(&json!({ "keys": keys })).unwrap()
    }

    #[test]
    fn a_set_is_read_up_to_its_bound() {
        let of = |count: usize| KeySet::parse(&json!({"keys": vec![p256(1); count]}));
        let most = of(MOST_KEYS).unwrap();
        assert!(most.has_key_for(SigningAlgorithm::Es256));
        assert!(!most.has_key_for(SigningAlgorithm::EdDsa));
        assert_eq!(of(MOST_KEYS + 1), None);
    }

    #[test]
    fn a_key_is_found_by_name_and_algorithm() {
        let (one, two) = (
            with(p256(1), "kid", json!("one")),
            with(p256(2), "kid", json!("two")),
        );
        let set = set(&[one.clone(), two, with(rsa(2_048), "kid", json!("one"))]);
        let expected = PublicKey::from_jwk(&one).unwrap();
        assert_eq!(
            set.choose(SigningAlgorithm::Es256, Some("one")),
            KeyChoice::One(&expected)
        );
        assert!(matches!(
            set.choose(SigningAlgorithm::Rs256, Some("one")),
            KeyChoice::One(PublicKey::Rsa { .. })
        ));
        assert!(matches!(
            set.choose(SigningAlgorithm::Rs256, None),
            KeyChoice::One(PublicKey::Rsa { .. })
        ));
        assert_eq!(
            set.choose(SigningAlgorithm::Rs256, Some("two")),
            KeyChoice::Unknown
        );
        assert_eq!(
            set.choose(SigningAlgorithm::EdDsa, None),
            KeyChoice::Unknown
        );
        assert_eq!(
            set.choose(SigningAlgorithm::Es256, None),
            KeyChoice::Ambiguous
        );
        assert_eq!(
            set.choose(SigningAlgorithm::Es256, Some("")),
            KeyChoice::Unknown
        );
        // One without a name goes by its thumbprint alone.
        let mut jwk = p256(1);
        let thumbprint = jwk.as_object_mut().unwrap().remove("kid").unwrap();
        let unnamed = self::set(&[jwk]);
        assert_eq!(
            unnamed.choose(SigningAlgorithm::Es256, thumbprint.as_str()),
            KeyChoice::One(&expected)
        );
        assert_eq!(
            unnamed.choose(SigningAlgorithm::Es256, Some("other")),
            KeyChoice::Unknown
        );
    }

    #[test]
    fn two_keys_of_one_name_are_none() {
        let twins = set(&[
            with(p256(1), "kid", json!("k")),
            with(p256(2), "kid", json!("k")),
        ]);
        assert_eq!(
            twins.choose(SigningAlgorithm::Es256, Some("k")),
            KeyChoice::Ambiguous
        );
        assert!(twins.has_ambiguous_names());
        let same = set(&[p256(1), p256(1)]);
        assert!(matches!(
            same.choose(SigningAlgorithm::Es256, None),
            KeyChoice::One(_)
        ));
        assert!(!same.has_ambiguous_names());
        let kinds = set(&[
            with(p256(1), "kid", json!("k")),
            with(rsa(2_048), "kid", json!("k")),
        ]);
        assert!(!kinds.has_ambiguous_names());
    }

    #[test]
    fn what_is_for_something_else_is_left_alone() {
        #[rustfmt::skip]
        let rows = [
            with(p256(1), "use", json!("enc")), with(p256(1), "key_ops", json!(["encrypt"])),
            with(p256(1), "key_ops", json!([])), with(p256(1), "alg", json!("ES384")),
            with(rsa(2_048), "alg", json!("PS256")), with(rsa(2_048), "alg", json!("RSA-OAEP")),
            with(p256(1), "crv", json!("P-384")), json!({ "kty": "OKP", "crv": "X25519", "x": "AA" }),
            json!({ "kty": "OKP", "crv": "Ed448", "x": "AA" }), json!({ "kty": "AKP", "alg": "ML-DSA-44" }),
        ];
        let x = p256(1)["x"].clone();
        let ed25519 = |alg: &str| json!({"kty": "OKP", "crv": "Ed25519", "x": x, "alg": alg});
        for alg in ["EdDSA", "Ed25519"] {
            assert!(
                set(&[ed25519(alg)]).has_key_for(SigningAlgorithm::EdDsa),
                "{alg}"
            );
        }
        for jwk in rows
            .into_iter()
            .chain(["Ed448", "ES256", "ed25519"].map(ed25519))
        {
            assert_eq!(read(&jwk), Ok(None), "{jwk}");
            assert_eq!(set(&[jwk]), KeySet::default());
        }
        assert!(matches!(
            read(&with(p256(1), "key_ops", json!(["verify"]))),
            Ok(Some(_))
        ));
        assert!(matches!(
            read(&with(rsa(2_048), "alg", json!("RS256"))),
            Ok(Some(_))
        ));
    }

    #[test]
    fn weak_private_and_malformed_keys_are_refused() {
        #[rustfmt::skip]
        let rows = [
            json!(null), json!([]), json!({}), json!({ "kty": 7 }), json!({ "kty": "oct", "k": "c2VjcmV0" }),
            json!({ "kty": "oct" }), with(rsa(2_048), "d", json!("AQ")), with(p256(1), "d", json!("AQ")), rsa(1_024),
            rsa(2_040), rsa(8_200), with(rsa(2_048), "e", json!("AQ")), with(rsa(2_048), "e", json!("AA")),
            with(rsa(2_048), "e", json!("")), with(rsa(2_048), "e", json!("BA")),
            with(rsa(2_048), "e", json!("////////")), with(rsa(2_048), "e", json!(65_537)),
            with(rsa(2_048), "n", json!("not base64url!")), with(rsa(2_048), "n", json!("")),
            with(p256(1), "x", json!("AA")), with(p256(1), "y", json!(null)),
            with(p256(1), "y", p256(2)["y"].clone()), PublicKey::P256 { x: [0; 32], y: [0; 32] }.to_jwk(),
            PublicKey::P256 { x: [0xff; 32], y: [0xff; 32] }.to_jwk(), with(p256(1), "kid", json!(1)),
            with(p256(1), "use", json!(["sig"])), with(p256(1), "key_ops", json!("verify")),
            with(p256(1), "alg", json!(null)), json!({ "kty": "OKP", "crv": "Ed25519", "x": "AA" }),
        ];
        for jwk in rows {
            assert!(read(&jwk).is_err(), "{jwk}");
            assert_eq!(set(&[jwk]), KeySet::default());
        }
        // Leading zeros make no key longer.
        let padded = URL_SAFE_NO_PAD.encode([vec![0; 128], vec![0xff; 128]].concat());
        assert!(read(&with(rsa(2_048), "n", json!(padded))).is_err());
        assert!(matches!(read(&rsa(2_048)), Ok(Some(_))));
        assert!(matches!(read(&rsa(8_192)), Ok(Some(_))));
    }

    #[test]
    fn what_is_no_set_is_none() {
        let many: Vec<Value> = (0..=MOST_KEYS).map(|_| p256(1)).collect();
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "keys": {} }),
            json!({ "keys": null }),
            json!({ "keys": many }),
        ] {
            assert_eq!(KeySet::parse(&value), None);
        }
        assert_eq!(
            KeySet::parse(&json!({ "keys": [], "more": 1 })),
            Some(KeySet::default())
        );
    }

    proptest! {
        #[test]
        fn no_members_make_it_panic(kty in "RSA|EC|OKP|oct|.{0,3}", crv in "P-256|Ed25519|.{0,3}", n in "[A-Za-z0-9_-]{0,400}", e in "[A-Za-z0-9_-]{0,8}") {
            let _ = KeySet::parse(&json!({ "keys": [{ "kty": kty, "crv": crv, "n": n, "e": e, "x": n, "y": e }] }));
        }
    }
}
