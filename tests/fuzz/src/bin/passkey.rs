//! New passkeys and sign-ins with one. The first byte says what the rest is: an attestation object;
//! authenticator data behind our hash; what the browser says of the challenge. A passkey that is
//! taken was made for us by a verified user, and has a name and a key that passes the checks of key
//! sets. No signature that nobody made is one.
#![no_main]

use std::sync::LazyLock;

use gatepost::protocol::keys::jwt::PublicKey;
use gatepost::protocol::keys::key_set;
use gatepost::protocol::login::passkey::{Passkey, RelyingParty, challenge, register, verify};
use gatepost::protocol::words::reason::Reason;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sha2::{Digest, Sha256};

const PARTY: RelyingParty<'_> = RelyingParty {
    id: "login.example",
    origin: "https://login.example",
};
static HASH: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(PARTY.id).into());

fn check(data: &[u8], taken: Result<Passkey, Reason>) {
    let Ok(passkey) = taken else {
        return;
    };
    assert!((1..=1_023).contains(&passkey.id.len()));
    assert!(matches!(key_set::read(&passkey.key.to_jwk()), Ok(Some(_))));
    assert!(data.windows(32).any(|window| window == *HASH));
    assert!((0..=i64::from(u32::MAX)).contains(&passkey.sign_count));
}

/// `{"authData": data}`
fn attestation(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    let mut object = b"\xa1\x68authData\x59".to_vec();
    object.extend(length.to_be_bytes());
    object.extend(data);
    object
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => check(rest, register(PARTY, rest)),
        1 => {
            let object = attestation(&[HASH.as_slice(), rest].concat());
            let taken = register(PARTY, &object);
            if taken.is_ok() {
                let flags = rest.first().copied().unwrap_or_default();
                assert_eq!(flags & 0x45, 0x45, "present, verified, with a key");
            }
            check(&object, taken);
        }
        2 => {
            if challenge(rest, "webauthn.get", PARTY).is_ok() {
                let told: Value = serde_json::from_slice(rest).expect("it was read");
                assert_eq!(told["origin"], PARTY.origin);
                assert_eq!(told["type"], "webauthn.get");
                assert!(told["crossOrigin"] != true && told.get("topOrigin").is_none());
            }
        }
        _ => {
            let known = Passkey {
                id: vec![1],
                key: PublicKey::Ed25519 { x: [7; 32] },
                sign_count: 0,
                backup_eligible: false,
                aaguid: None,
            };
            let (shown, signature) = rest.split_at(rest.len() / 2);
            let shown = [HASH.as_slice(), shown].concat();
            assert!(verify(PARTY, &known, b"{}", &shown, signature).is_err());
        }
    }
});
