//! What an authenticator shows, made here byte by byte.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::*;
use crate::words::samples;

const PARTY: RelyingParty<'static> = RelyingParty {
    id: "login.example",
    origin: "https://login.example",
};
const VERIFIED: u8 = USER_PRESENT | USER_VERIFIED;

/// Authenticator data for this host.
fn data_for(host: &str, flags: u8, count: u32, attested: &[u8]) -> Vec<u8> {
    let hash = Sha256::digest(host);
    [&hash[..], &[flags], &count.to_be_bytes(), attested].concat()
}

fn attested(id: &[u8], key: &[u8]) -> Vec<u8> {
    let length = u16::try_from(id.len()).unwrap().to_be_bytes();
    [&[0; 16][..], &length, id, key].concat()
}

/// `{"authData": data}`
fn object(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    [b"\xa1\x68authData\x59", &length[..], data].concat()
}

fn ed25519(x: &[u8]) -> Vec<u8> {
    let length = u8::try_from(x.len()).unwrap();
    [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, length], x].concat()
}

fn p256(x: &[u8], y: &[u8]) -> Vec<u8> {
    let begins = [0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20];
    [&begins, x, &[0x22, 0x58, 0x20], y].concat()
}

fn rsa(n: &[u8]) -> Vec<u8> {
    let length = u16::try_from(n.len()).unwrap().to_be_bytes();
    let begins = [0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x59];
    [&begins, &length[..], n, &[0x21, 0x43, 1, 0, 1]].concat()
}

fn signer() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap()
}

fn public(signer: &Ed25519KeyPair) -> [u8; 32] {
    signer.public_key().as_ref().try_into().unwrap()
}

fn coordinates(key: &PublicKey) -> ([u8; 32], [u8; 32]) {
    let PublicKey::P256 { x, y } = key else {
        panic!("{key:?}")
    };
    (*x, *y)
}

fn registered(flags: u8, attested: &[u8]) -> Result<Passkey, Reason> {
    register(PARTY, &object(&data_for(PARTY.id, flags, 7, attested)))
}

/// IANA COSE Algorithms: EdDSA, ES256, RS256
#[test]
fn the_browser_is_asked_for_keys_that_can_be_read() {
    assert_eq!(ALGORITHMS, [-8, -7, -257]);
}

#[test]
fn a_passkey_is_read_with_each_kind_of_key() {
    let ed = PublicKey::Ed25519 {
        x: public(&signer()),
    };
    let ec = samples::p256(1);
    let (x, y) = coordinates(&ec);
    let n = vec![0xff; 256];
    let of_rsa = PublicKey::Rsa {
        n: n.clone(),
        e: vec![1, 0, 1],
    };
    for (key, written) in [
        (ed, ed25519(&public(&signer()))),
        (ec, p256(&x, &y)),
        (of_rsa, rsa(&n)),
    ] {
        for eligible in [0, BACKUP_ELIGIBLE, BACKUP_ELIGIBLE | BACKED_UP] {
            let passkey = Passkey {
                id: vec![1, 2, 3],
                key: key.clone(),
                sign_count: 7,
                backup_eligible: eligible != 0,
                aaguid: Some(vec![0; 16]),
            };
            let shown = attested(&[1, 2, 3], &written);
            let flags = VERIFIED | ATTESTED | eligible;
            assert_eq!(registered(flags, &shown), Ok(passkey.clone()));
            // Extensions may follow the key.
            let extended = [&shown[..], &[0xa0]].concat();
            assert_eq!(registered(flags, &extended), Ok(passkey));
        }
    }
}

#[test]
fn what_shows_no_verified_user_of_ours_makes_no_passkey() {
    let shown = attested(&[1], &ed25519(&public(&signer())));
    let whole = VERIFIED | ATTESTED;
    for (flags, reason) in [
        (VERIFIED, Reason::PasskeyMalformed),
        (ATTESTED | USER_PRESENT, Reason::PasskeyUnverified),
        (ATTESTED | USER_VERIFIED, Reason::PasskeyUnverified),
        (whole | BACKED_UP, Reason::PasskeyMalformed),
    ] {
        assert_eq!(registered(flags, &shown), Err(reason), "{flags:#x}");
    }
    let elsewhere = object(&data_for("other.example", whole, 7, &shown));
    let refused = Err(Reason::PasskeyElsewhere);
    assert_eq!(register(PARTY, &elsewhere), refused);
}

#[test]
fn what_is_cut_off_or_has_something_behind_it_is_malformed() {
    let malformed = Err(Reason::PasskeyMalformed);
    let whole = VERIFIED | ATTESTED;
    let data = data_for(
        PARTY.id,
        whole,
        7,
        &attested(&[1], &ed25519(&public(&signer()))),
    );
    assert!(register(PARTY, &object(&data)).is_ok());
    for length in 0..data.len() {
        let cut = register(PARTY, &object(&data[..length]));
        assert_eq!(cut, malformed, "{length}");
    }
    let sent = object(&data);
    for length in 0..sent.len() {
        assert_eq!(register(PARTY, &sent[..length]), malformed, "{length}");
    }
    assert_eq!(register(PARTY, &[&sent[..], &[0]].concat()), malformed);
    assert_eq!(register(PARTY, b"\xa1\x68authData\x61a"), malformed);
    assert_eq!(register(PARTY, b"\xa1\x68authdata\x40"), malformed);
    let named = |length: usize| {
        let id = vec![1; length];
        registered(whole, &attested(&id, &ed25519(&public(&signer()))))
    };
    assert_eq!(named(0), malformed);
    assert_eq!(named(1_023).map(|passkey| passkey.id.len()), Ok(1_023));
    assert_eq!(named(1_024), malformed);
}

#[test]
fn a_key_that_was_not_asked_for_or_is_none_is_refused() {
    let x = public(&signer());
    let (px, py) = coordinates(&samples::p256(1));
    let changed = |mut key: Vec<u8>, place: usize, byte: u8| {
        key[place] = byte;
        key
    };
    for key in [
        // kty, alg, crv and the labels of x and y, each another.
        changed(ed25519(&x), 2, 2),
        changed(ed25519(&x), 4, 0x26),
        changed(ed25519(&x), 6, 7),
        changed(ed25519(&x), 7, 0x22),
        ed25519(&x[..31]),
        changed(p256(&px, &py), 2, 1),
        changed(p256(&px, &py), 4, 0x27),
        changed(p256(&px, &py), 6, 2),
        p256(&px, &px),
        changed(rsa(&[0xff; 256]), 2, 2),
        changed(rsa(&[0xff; 256]), 6, 1),
        rsa(&[0xff; 255]),
        rsa(&[0xff; 513]),
        vec![0xa0],
        vec![0x00],
    ] {
        let refused = registered(VERIFIED | ATTESTED, &attested(&[1], &key));
        assert_eq!(refused, Err(Reason::PasskeyKey), "{key:x?}");
    }
    let longest = attested(&[1], &rsa(&[0xff; 512]));
    assert!(registered(VERIFIED | ATTESTED, &longest).is_ok());
}

const CLIENT_DATA: &[u8] = b"{}";

fn message(data: &[u8]) -> Vec<u8> {
    [data, &Sha256::digest(CLIENT_DATA)].concat()
}

/// A sign-in by a passkey that stood at a count, with authenticator data of these flags and count.
fn signed_in(known: i64, eligible_before: bool, flags: u8, count: u32) -> Result<i64, Reason> {
    let signer = signer();
    let data = data_for(PARTY.id, flags, count, &[]);
    let known = Passkey {
        id: vec![1],
        key: PublicKey::Ed25519 { x: public(&signer) },
        sign_count: known,
        backup_eligible: eligible_before,
        aaguid: None,
    };
    let signature = signer.sign(&message(&data));
    verify(PARTY, &known, CLIENT_DATA, &data, signature.as_ref())
}

/// A signature of the private key 1 over [`message`] of the data below. It was made once: signing
/// takes randomness, which has no place here.
const BY_P256: &[u8] = &[
    0x30, 0x45, 0x02, 0x20, 0x20, 0x6a, 0x8f, 0x5e, 0x3f, 0x34, 0x37, 0x1e, 0xb4, 0x8a, 0x6e, 0x3f,
    0x6a, 0xe8, 0xd4, 0x59, 0x6c, 0xe3, 0x89, 0xfa, 0x41, 0xf2, 0x02, 0x42, 0x0a, 0xd7, 0x79, 0xb4,
    0xa3, 0x2c, 0x1a, 0xfd, 0x02, 0x21, 0x00, 0xc0, 0xa1, 0x63, 0xe9, 0xe0, 0x30, 0x00, 0x7f, 0xc0,
    0x22, 0x22, 0x1c, 0xb0, 0xa0, 0xc1, 0xd1, 0x65, 0xd0, 0x29, 0x30, 0xfc, 0xd6, 0x92, 0x1f, 0xc4,
    0xfc, 0x5e, 0x92, 0x05, 0x89, 0x24, 0xad,
];

#[test]
fn a_sign_in_is_signed_by_the_key_over_both_data() {
    let signer = signer();
    let data = data_for(PARTY.id, VERIFIED, 1, &[]);
    let by_ed = signer.sign(&message(&data));
    let of_ed = PublicKey::Ed25519 { x: public(&signer) };
    for (key, signature, other) in [
        (&of_ed, by_ed.as_ref(), BY_P256),
        (&samples::p256(1), BY_P256, by_ed.as_ref()),
    ] {
        let known = Passkey {
            id: vec![1],
            key: key.clone(),
            sign_count: 0,
            backup_eligible: false,
            aaguid: None,
        };
        let verified = |client_data: &[u8], data: &[u8], signature: &[u8]| {
            verify(PARTY, &known, client_data, data, signature)
        };
        assert_eq!(verified(CLIENT_DATA, &data, signature), Ok(1));
        let refused = Err(Reason::PasskeySignature);
        assert_eq!(verified(b"{} ", &data, signature), refused);
        let later = data_for(PARTY.id, VERIFIED, 2, &[]);
        assert_eq!(verified(CLIENT_DATA, &later, signature), refused);
        assert_eq!(verified(CLIENT_DATA, &data, other), refused);
        assert_eq!(verified(CLIENT_DATA, &data, b""), refused);
        let elsewhere = data_for("other.example", VERIFIED, 1, &[]);
        let refused = Err(Reason::PasskeyElsewhere);
        assert_eq!(verified(CLIENT_DATA, &elsewhere, signature), refused);
    }
}

#[test]
fn a_counter_grows_where_there_is_one_and_the_flags_stay() {
    let cloned = Err(Reason::PasskeyCloned);
    for (known, count, expected) in [
        (0, 0, Ok(0)),
        (0, 1, Ok(1)),
        (5, 6, Ok(6)),
        (5, 5, cloned),
        (5, 4, cloned),
        (5, 0, cloned),
        (1, 1, cloned),
        (0, u32::MAX, Ok(i64::from(u32::MAX))),
    ] {
        let outcome = signed_in(known, false, VERIFIED, count);
        assert_eq!(outcome, expected, "{known} {count}");
    }
    let malformed = Err(Reason::PasskeyMalformed);
    let eligible = VERIFIED | BACKUP_ELIGIBLE;
    assert_eq!(signed_in(0, true, eligible, 1), Ok(1));
    assert_eq!(signed_in(0, true, eligible | BACKED_UP, 1), Ok(1));
    assert_eq!(signed_in(0, false, eligible, 1), malformed);
    assert_eq!(signed_in(0, true, VERIFIED, 1), malformed);
    let unverified = Err(Reason::PasskeyUnverified);
    assert_eq!(signed_in(0, false, USER_PRESENT, 1), unverified);
    assert_eq!(signed_in(0, false, USER_VERIFIED, 1), unverified);
}

#[test]
fn the_browser_says_what_for_and_where_and_in_no_frame() {
    let sent = |changes: Value| {
        let data = json!({
            "type": "webauthn.get", "origin": PARTY.origin, "challenge": "AQID",
        });
        let data = samples::changed(data, changes).to_string();
        challenge(data.as_bytes(), "webauthn.get", PARTY)
    };
    assert_eq!(sent(json!({})), Ok(vec![1, 2, 3]));
    assert_eq!(sent(json!({"crossOrigin": false})), Ok(vec![1, 2, 3]));
    for changes in [
        json!({"type": "webauthn.create"}),
        json!({"type": null}),
        json!({"origin": "https://login.example:8443"}),
        json!({"origin": null}),
        json!({"crossOrigin": true}),
        json!({"crossOrigin": "false"}),
        json!({"topOrigin": PARTY.origin}),
    ] {
        let refused = sent(changes.clone());
        assert_eq!(refused, Err(Reason::PasskeyElsewhere), "{changes}");
    }
    let malformed = Err(Reason::PasskeyMalformed);
    assert_eq!(sent(json!({"challenge": "AQID="})), malformed);
    for data in [&b""[..], b"[]", b"{", b"\xff"] {
        assert_eq!(challenge(data, "webauthn.get", PARTY), malformed);
    }
}

#[test]
fn passkeys_belong_to_a_host_that_has_a_name() {
    for (base_url, expected) in [
        ("https://login.example", Some("login.example")),
        ("https://login.example/auth", Some("login.example")),
        ("http://localhost:8080/", Some("localhost")),
        ("https://192.0.2.1", None),
        ("https://192.0.2.1:8443/auth", None),
        ("https://[::1]:8443", None),
        ("login.example", None),
    ] {
        assert_eq!(host(base_url), expected, "{base_url}");
    }
}

#[test]
fn a_passkey_that_can_be_copied_is_software() {
    assert_eq!(methods(true), ["swk", "user"]);
    assert_eq!(methods(false), ["hwk", "user"]);
}

#[test]
fn each_make_is_named_behind_an_aaguid() {
    assert_eq!(make(&[0; 16]), None);
    for line in MAKES.lines() {
        let (aaguid, name) = line.split_once(' ').unwrap();
        let bytes = u128::from_str_radix(aaguid, 16).unwrap().to_be_bytes();
        assert_eq!((aaguid.len(), make(&bytes)), (32, Some(name)));
    }
}
