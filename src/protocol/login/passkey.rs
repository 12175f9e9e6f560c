//! Passkeys (WebAuthn Level 3 §7): what a new one must show, and what signing in with one must.
//! Attestation statements are not read: the make of the hardware decides nothing.

use std::net::Ipv4Addr;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::cbor::{Item, read};
use crate::keys::jwt::PublicKey;
use crate::keys::key_set;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::reason::Reason;

/// COSE algorithms that are asked for, in this order: EdDSA, ES256, RS256.
pub const ALGORITHMS: [i64; 3] = [-8, -7, -257];

const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const ATTESTED: u8 = 0x40;

/// What a challenge is for. It travels sealed and is not stored. The database notes when it is
/// spent.
#[derive(Serialize, Deserialize)]
pub struct Challenge {
    /// For a new passkey; `None` for signing in with one.
    pub new: Option<NewPasskey>,
    /// Ties the challenge to the request and the browser, as [`tie`](super::second_factor::tie)
    /// does a ticket.
    pub tie: [u8; 32],
    pub random: [u8; 16],
    pub expires_at: Instant,
}

#[derive(Serialize, Deserialize)]
pub struct NewPasskey {
    /// The user's `factors`, as they were when the page was drawn.
    pub factors: i64,
    /// The user, as their passkeys call them.
    pub user_handle: Vec<u8>,
}

/// The host that the passkeys of a base URL belong to. An IP address can have no passkeys (§5.1.3).
pub fn host(base_url: &str) -> Option<&str> {
    let (_, rest) = base_url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let host = authority
        .split_once(':')
        .map_or(authority, |(host, _)| host);
    (host.parse::<Ipv4Addr>().is_err() && !authority.starts_with('[')).then_some(host)
}

/// As whom browsers know us.
#[derive(Clone, Copy)]
pub struct RelyingParty<'a> {
    /// The host of the base URL.
    pub id: &'a str,
    pub origin: &'a str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Passkey {
    pub id: Vec<u8>,
    pub key: PublicKey,
    pub sign_count: i64,
    pub backup_eligible: bool,
    /// The make of its authenticator, as the browser said. Nothing proves it.
    pub aaguid: Option<Vec<u8>>,
}

/// Names of the commonest makes, each behind its AAGUID.
const MAKES: &str = include_str!("makes_of_passkeys.txt");

/// What people call the make of an authenticator.
pub fn make(aaguid: &[u8]) -> Option<&'static str> {
    let digits: String = aaguid.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut makes = MAKES.lines();
    makes.find_map(|line| line.strip_prefix(&digits)?.strip_prefix(' '))
}

/// The challenge in the browser's `clientDataJSON`, if that is of this kind and of our origin
/// (§7.1, §7.2).
pub fn challenge(
    client_data: &[u8],
    kind: &str,
    party: RelyingParty<'_>,
) -> Result<Vec<u8>, Reason> {
    let data: JsonObject =
        serde_json::from_slice(client_data).map_err(|_| Reason::PasskeyMalformed)?;
    let text = |name: &str| data.text(name);
    let is_framed = data
        .get("crossOrigin")
        .is_some_and(|value| *value != Value::Bool(false))
        || data.contains_key("topOrigin");
    if text("type") != Some(kind) || text("origin") != Some(party.origin) || is_framed {
        return Err(Reason::PasskeyElsewhere);
    }
    URL_SAFE_NO_PAD
        .decode(text("challenge").unwrap_or_default())
        .map_err(|_| Reason::PasskeyMalformed)
}

/// Reads a new passkey from its attestation object.
pub fn register(party: RelyingParty<'_>, attestation_object: &[u8]) -> Result<Passkey, Reason> {
    let (object, rest) = read(attestation_object).ok_or(Reason::PasskeyMalformed)?;
    let Some(Item::Bytes(data)) = object
        .get(&Item::Text("authData"))
        .filter(|_| rest.is_empty())
    else {
        return Err(Reason::PasskeyMalformed);
    };
    let (flags, sign_count, attested) = shown(party, data)?;
    if flags & ATTESTED == 0 {
        return Err(Reason::PasskeyMalformed);
    }
    let (aaguid, attested) = attested
        .split_at_checked(16)
        .ok_or(Reason::PasskeyMalformed)?;
    let (id, key) = attested_credential(attested).ok_or(Reason::PasskeyMalformed)?;
    let (key, _) = read(key).ok_or(Reason::PasskeyMalformed)?;
    let key = cose_key(&key).ok_or(Reason::PasskeyKey)?;
    Ok(Passkey {
        id: id.to_vec(),
        key,
        sign_count,
        backup_eligible: flags & BACKUP_ELIGIBLE != 0,
        aaguid: Some(aaguid.to_vec()),
    })
}

/// The id, and the key with what follows it, of attested credential data (§6.5.1) behind the
/// AAGUID: the length of the id, the id, the key. Extensions may follow.
fn attested_credential(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (id, key) = rest.split_at_checked(length)?;
    (!id.is_empty() && length <= 1_023).then_some((id, key))
}

/// Checks a sign-in with a passkey. Returns its new signature counter.
pub fn verify(
    party: RelyingParty<'_>,
    known: &Passkey,
    client_data: &[u8],
    authenticator_data: &[u8],
    signature: &[u8],
) -> Result<i64, Reason> {
    let (flags, sign_count, _) = shown(party, authenticator_data)?;
    let message = [authenticator_data, &Sha256::digest(client_data)].concat();
    check_signature(&known.key, &message, signature)?;
    if (flags & BACKUP_ELIGIBLE != 0) != known.backup_eligible {
        return Err(Reason::PasskeyMalformed);
    }
    // Some authenticators do not count. If one counts and its counter does not grow, it was copied
    // (§6.1.1).
    if known.sign_count > 0 && sign_count <= known.sign_count {
        Err(Reason::PasskeyCloned)
    } else {
        Ok(sign_count)
    }
}

fn check_signature(key: &PublicKey, message: &[u8], signature: &[u8]) -> Result<(), Reason> {
    let verified = match key {
        PublicKey::P256 { x, y } => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, [&[4], &x[..], y].concat())
                .verify(message, signature)
        }
        PublicKey::Ed25519 { x } => UnparsedPublicKey::new(&ED25519, x).verify(message, signature),
        PublicKey::Rsa { n, e } => {
            RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        }
    };
    verified.map_err(|_| Reason::PasskeySignature)
}

/// The `amr` of a sign-in with a passkey (RFC 8176 §2). A passkey that can be copied to other
/// devices is not called hardware.
pub fn methods(backup_eligible: bool) -> [&'static str; 2] {
    if backup_eligible {
        ["swk", "user"]
    } else {
        ["hwk", "user"]
    }
}

/// The flags and the counter of authenticator data, and what follows them (§6.1). The data must be
/// for us, and its user verified.
fn shown<'a>(party: RelyingParty<'_>, data: &'a [u8]) -> Result<(u8, i64, &'a [u8]), Reason> {
    let (hash, rest) = data
        .split_first_chunk::<32>()
        .ok_or(Reason::PasskeyMalformed)?;
    let ([flags, count @ ..], rest) = rest
        .split_first_chunk::<5>()
        .ok_or(Reason::PasskeyMalformed)?;
    if hash[..] != Sha256::digest(party.id)[..] {
        return Err(Reason::PasskeyElsewhere);
    }
    if flags & USER_PRESENT == 0 || flags & USER_VERIFIED == 0 {
        return Err(Reason::PasskeyUnverified);
    }
    // A passkey that cannot be backed up is never backed up.
    if flags & BACKED_UP != 0 && flags & BACKUP_ELIGIBLE == 0 {
        return Err(Reason::PasskeyMalformed);
    }
    Ok((*flags, i64::from(u32::from_be_bytes(*count)), rest))
}

/// A COSE key (RFC 9053 §7). Its algorithm must be one that was asked for, and the key must pass
/// the checks for key sets.
fn cose_key(key: &Item<'_>) -> Option<PublicKey> {
    let key = match (number(key, 1)?, number(key, 3)?, number(key, -1)) {
        (1, -8, Some(6)) => PublicKey::Ed25519 {
            x: coordinate(key, -2)?,
        },
        (2, -7, Some(1)) => PublicKey::P256 {
            x: coordinate(key, -2)?,
            y: coordinate(key, -3)?,
        },
        (3, -257, _) => PublicKey::Rsa {
            n: bytes(key, -1).filter(|n| n.len() <= 512)?.to_vec(),
            e: bytes(key, -2)?.to_vec(),
        },
        _ => return None,
    };
    key_set::read(&key.to_jwk()).ok()?.map(|named| named.key)
}

fn number(key: &Item<'_>, label: i64) -> Option<i64> {
    let Item::Integer(number) = key.get(&Item::Integer(label))? else {
        return None;
    };
    Some(*number)
}

fn coordinate(key: &Item<'_>, label: i64) -> Option<[u8; 32]> {
    bytes(key, label)?.try_into().ok()
}

fn bytes<'a>(key: &Item<'a>, label: i64) -> Option<&'a [u8]> {
    let Item::Bytes(bytes) = key.get(&Item::Integer(label))? else {
        return None;
    };
    Some(bytes)
}

#[cfg(test)]
mod tests;
