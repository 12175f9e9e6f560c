//! How a relying party checks an ID token (OpenID Connect Core §3.1.3.7) and a logout token (OpenID
//! Connect Back-Channel Logout §2.6). Pure: keys and time are arguments.

use std::fmt;

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::json_web_token::{UnverifiedToken, base64url, decode, signed_part};

#[derive(Clone, Copy, Debug)]
pub(super) struct Parties<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) now: u64,
}

#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) nonce: &'a str,
    /// For `at_hash`.
    pub(super) access_token: &'a str,
}

const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    Expired,
    Nonce,
    AccessTokenHash,
    NoLogout,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Malformed => "It is not a JSON Web Token.",
            Refusal::Algorithm => "It is not signed with RS256, as this client is registered.",
            Refusal::UnknownKey => "The provider publishes no key with its `kid`.",
            Refusal::Signature => "Its signature is wrong.",
            Refusal::Issuer => "Its `iss` is another provider.",
            Refusal::Audience => "Its `aud` is another client.",
            Refusal::Expired => "It has expired.",
            Refusal::Nonce => "Its `nonce` is not that of this sign-in.",
            Refusal::AccessTokenHash => "Its `at_hash` belongs to another access token.",
            Refusal::NoLogout => "It does not say that a session is over.",
        })
    }
}

/// The claims of an ID token that stands every check; `keys` is the provider's key set (RFC 7517
/// §5).
pub(super) fn verify(
    token: &str,
    keys: &Value,
    parties: &Parties<'_>,
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    let claims = genuine(token, keys, parties)?.payload;
    if text(&claims, "nonce") != Some(expected.nonce) {
        return Err(Refusal::Nonce);
    }
    match text(&claims, "at_hash") {
        Some(hash) if hash != left_half_hash(expected.access_token) => {
            Err(Refusal::AccessTokenHash)
        }
        Some(_) | None => Ok(claims),
    }
}

/// The `sid` of a logout token that stands every check.
pub(super) fn verify_logout(
    token: &str,
    keys: &Value,
    parties: &Parties<'_>,
) -> Result<String, Refusal> {
    let UnverifiedToken {
        header, payload, ..
    } = genuine(token, keys, parties)?;
    let is_logout = text(&header, "typ") == Some("logout+jwt")
        && payload.get("nonce").is_none()
        && payload
            .get("events")
            .is_some_and(|events| events.get(LOGOUT_EVENT).is_some_and(Value::is_object));
    text(&payload, "sid")
        .filter(|_| is_logout)
        .map(str::to_owned)
        .ok_or(Refusal::NoLogout)
}

fn genuine(token: &str, keys: &Value, parties: &Parties<'_>) -> Result<UnverifiedToken, Refusal> {
    let parsed = UnverifiedToken::parse(token).ok_or(Refusal::Malformed)?;
    if text(&parsed.header, "alg") != Some("RS256") {
        return Err(Refusal::Algorithm);
    }
    let key = published_key(keys, text(&parsed.header, "kid")).ok_or(Refusal::UnknownKey)?;
    key.verify(
        &RSA_PKCS1_2048_8192_SHA256,
        signed_part(token).as_bytes(),
        &parsed.signature,
    )
    .map_err(|_| Refusal::Signature)?;
    let claims = &parsed.payload;
    if text(claims, "iss") != Some(parties.issuer) {
        return Err(Refusal::Issuer);
    }
    if !is_for(claims.get("aud"), parties.client_id) {
        return Err(Refusal::Audience);
    }
    if claims
        .get("exp")
        .and_then(Value::as_u64)
        .is_none_or(|expires| expires <= parties.now)
    {
        return Err(Refusal::Expired);
    }
    Ok(parsed)
}

fn published_key(keys: &Value, kid: Option<&str>) -> Option<RsaPublicKeyComponents<Vec<u8>>> {
    let fits =
        |key: &&Value| text(key, "kty") == Some("RSA") && kid.is_some() && text(key, "kid") == kid;
    let key = keys.get("keys")?.as_array()?.iter().find(fits)?;
    Some(RsaPublicKeyComponents {
        n: decode(text(key, "n")?)?,
        e: decode(text(key, "e")?)?,
    })
}

/// `aud` names this client, and nobody beside it.
fn is_for(audience: Option<&Value>, client_id: &str) -> bool {
    match audience {
        Some(Value::String(only)) => only == client_id,
        Some(Value::Array(several)) => {
            !several.is_empty() && several.iter().all(|one| one.as_str() == Some(client_id))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

/// `at_hash` for RS256 (OpenID Connect Core §3.1.3.6).
fn left_half_hash(access_token: &str) -> String {
    let digest = Sha256::digest(access_token.as_bytes());
    base64url(digest.get(..16).unwrap_or_default())
}

fn text<'a>(object: &'a Value, member: &str) -> Option<&'a str> {
    object.get(member).and_then(Value::as_str)
}

#[cfg(test)]
pub(super) mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
    use rsa::RsaPublicKey;
    use rsa::pkcs1::DecodeRsaPublicKey;
    use rsa::traits::PublicKeyParts;
    use serde_json::json;

    use super::*;

    pub(crate) struct SigningKey(RsaKeyPair);

    impl SigningKey {
        pub(crate) fn generate() -> SigningKey {
            SigningKey(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
        }

        pub(crate) fn key_set(&self) -> Value {
            let public = RsaPublicKey::from_pkcs1_der(self.0.public_key().as_ref()).unwrap();
            let (n, e) = (base64url(&public.n_bytes()), base64url(&public.e_bytes()));
            json!({"keys": [{"kty": "RSA", "use": "sig", "kid": "k1", "n": n, "e": e}]})
        }

        pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| base64url(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let mut signature = vec![0; self.0.public_modulus_len()];
            self.0
                .sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    signed.as_bytes(),
                    &mut signature,
                )
                .unwrap();
            format!("{signed}.{}", base64url(&signature))
        }
    }

    pub(crate) fn header() -> Value {
        json!({"alg": "RS256", "kid": "k1", "typ": "JWT"})
    }

    const PARTIES: Parties<'_> = Parties {
        issuer: "http://op",
        client_id: "demo",
        now: 999,
    };

    fn claims() -> Value {
        let at_hash = left_half_hash("the-access-token");
        json!({"iss": "http://op", "aud": "demo", "exp": 1_000, "nonce": "n", "sub": "s", "at_hash": at_hash})
    }

    fn judged(token: &str, keys: &Value) -> Result<Value, Refusal> {
        verify(
            token,
            keys,
            &PARTIES,
            &Expected {
                nonce: "n",
                access_token: "the-access-token",
            },
        )
    }

    #[test]
    fn only_a_token_that_says_so_ends_a_session() {
        let key = SigningKey::generate();
        let logout_header = json!({"alg": "RS256", "kid": "k1", "typ": "logout+jwt"});
        let logout = json!({"iss": "http://op", "aud": "demo", "exp": 1_000, "sid": "s1", "events": {LOGOUT_EVENT: {}}});
        let judged = |header: &Value, claims: &Value| {
            verify_logout(&key.sign(header, claims), &key.key_set(), &PARTIES)
        };
        assert_eq!(judged(&logout_header, &logout), Ok(String::from("s1")));
        assert_eq!(judged(&header(), &logout), Err(Refusal::NoLogout));
        assert_eq!(judged(&logout_header, &claims()), Err(Refusal::NoLogout));
        let cases = [
            ("nonce", json!("n"), Refusal::NoLogout),
            ("sid", Value::Null, Refusal::NoLogout),
            ("events", json!({"another": {}}), Refusal::NoLogout),
            ("events", json!({LOGOUT_EVENT: true}), Refusal::NoLogout),
            ("iss", json!("http://evil"), Refusal::Issuer),
            ("aud", json!("other"), Refusal::Audience),
            ("exp", json!(999), Refusal::Expired),
        ];
        for (member, value, refusal) in cases {
            let mut wrong = logout.clone();
            wrong[member] = value;
            assert_eq!(judged(&logout_header, &wrong), Err(refusal), "{member}");
        }
    }

    #[test]
    fn a_genuine_token_yields_its_claims() {
        let key = SigningKey::generate();
        assert_eq!(
            judged(&key.sign(&header(), &claims()), &key.key_set()),
            Ok(claims())
        );
    }

    #[test]
    fn at_hash_is_computed_as_in_the_specification() {
        // OpenID Connect Core, appendix A.3.
        assert_eq!(
            left_half_hash("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"),
            "77QmUPtjPfzWtF2AnpK9RQ"
        );
    }

    #[test]
    fn a_token_with_one_wrong_claim_is_refused() {
        let key = SigningKey::generate();
        let cases = [
            ("iss", json!("http://evil"), Refusal::Issuer),
            ("aud", json!("other"), Refusal::Audience),
            ("aud", json!(["demo", "other"]), Refusal::Audience),
            ("aud", json!([]), Refusal::Audience),
            ("exp", json!(999), Refusal::Expired),
            ("exp", json!("1000"), Refusal::Expired),
            ("nonce", json!("another"), Refusal::Nonce),
            ("nonce", Value::Null, Refusal::Nonce),
            ("at_hash", json!("AAAA"), Refusal::AccessTokenHash),
        ];
        for (member, value, refusal) in cases {
            let mut wrong = claims();
            wrong[member] = value;
            assert_eq!(
                judged(&key.sign(&header(), &wrong), &key.key_set()),
                Err(refusal),
                "{member}"
            );
        }
    }

    #[test]
    fn a_token_that_another_key_signed_is_refused() {
        let (key, other) = (SigningKey::generate(), SigningKey::generate());
        assert_eq!(
            judged(&other.sign(&header(), &claims()), &key.key_set()),
            Err(Refusal::Signature)
        );
        let unknown = json!({"alg": "RS256", "kid": "k2"});
        assert_eq!(
            judged(&key.sign(&unknown, &claims()), &key.key_set()),
            Err(Refusal::UnknownKey)
        );
        let nameless = json!({"alg": "RS256"});
        assert_eq!(
            judged(&key.sign(&nameless, &claims()), &key.key_set()),
            Err(Refusal::UnknownKey)
        );
    }

    #[test]
    fn the_algorithm_is_not_the_tokens_to_choose() {
        let key = SigningKey::generate();
        for alg in ["none", "HS256", "rs256"] {
            let token = key.sign(&json!({"alg": alg, "kid": "k1"}), &claims());
            assert_eq!(judged(&token, &key.key_set()), Err(Refusal::Algorithm));
        }
        assert_eq!(
            judged("gpa_reference", &key.key_set()),
            Err(Refusal::Malformed)
        );
    }
}
