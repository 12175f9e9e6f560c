//! An authenticator made for these tests, and everything that can be wrong with what one sends.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use gatepost::protocol::login::passkey::{
    Passkey, RelyingParty, challenge, host, register, verify,
};
use gatepost::protocol::words::reason::Reason;
use rsa::RsaPublicKey;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::traits::PublicKeyParts;
use serde_json::json;
use sha2::{Digest, Sha256};

const PARTY: RelyingParty<'_> = RelyingParty {
    id: "login.example.com",
    origin: "https://login.example.com",
};

pub(crate) enum Key {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

fn head(kind: u8, length: usize) -> Vec<u8> {
    match u16::try_from(length).unwrap() {
        small @ 0..24 => vec![kind << 5 | u8::try_from(small).unwrap()],
        long => [&[kind << 5 | 25][..], &long.to_be_bytes()].concat(),
    }
}

fn bytes(value: &[u8]) -> Vec<u8> {
    [head(2, value.len()), value.to_vec()].concat()
}

fn text(value: &str) -> Vec<u8> {
    [head(3, value.len()), value.as_bytes().to_vec()].concat()
}

fn integer(value: i64) -> Vec<u8> {
    let (kind, number) = match value {
        ..0 => (1, -1 - value),
        _ => (0, value),
    };
    head(kind, usize::try_from(number).unwrap())
}

fn map(members: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let head = head(5, members.len());
    let members = members.iter().flat_map(|(key, value)| [key, value]);
    head.iter().chain(members.flatten()).copied().collect()
}

impl Key {
    fn all() -> [Key; 3] {
        let ed = Ed25519KeyPair::generate().unwrap();
        let rsa = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        [Key::es256(), Key::EdDsa(ed), Key::Rs256(rsa)]
    }

    pub(crate) fn es256() -> Key {
        Key::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap())
    }

    pub(crate) fn cose(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let of = |kty, alg| vec![(integer(1), integer(kty)), (integer(3), integer(alg))];
        match self {
            Key::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                let point = [
                    (integer(-1), integer(1)),
                    (integer(-2), bytes(x)),
                    (integer(-3), bytes(y)),
                ];
                [of(2, -7), point.to_vec()].concat()
            }
            Key::EdDsa(pair) => {
                let point = [
                    (integer(-1), integer(6)),
                    (integer(-2), bytes(pair.public_key().as_ref())),
                ];
                [of(1, -8), point.to_vec()].concat()
            }
            Key::Rs256(pair) => {
                let public = RsaPublicKey::from_pkcs1_der(pair.public_key().as_ref()).unwrap();
                let (n, e) = (public.n().to_be_bytes(), public.e().to_be_bytes());
                let numbers = vec![(integer(-1), bytes(&n)), (integer(-2), bytes(&e))];
                [of(3, -257), numbers].concat()
            }
        }
    }

    pub(crate) fn sign(&self, data: &[u8], client_data: &[u8]) -> Vec<u8> {
        let message = [data, &Sha256::digest(client_data)].concat();
        let random = SystemRandom::new();
        match self {
            Key::Es256(pair) => pair.sign(&random, &message).unwrap().as_ref().to_vec(),
            Key::EdDsa(pair) => pair.sign(&message).as_ref().to_vec(),
            Key::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, &message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }
}

pub(crate) fn data(id: &str, flags: u8, count: u32, attested: &[u8]) -> Vec<u8> {
    let id = Sha256::digest(id);
    [&id[..], &[flags], &count.to_be_bytes(), attested].concat()
}

/// Bitwarden's.
pub(crate) const AAGUID: [u8; 16] = 0xd548_826e_79b4_db40_a3d8_1111_6f7e_8349_u128.to_be_bytes();

pub(crate) fn attested(id: &[u8], key: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let length = u16::try_from(id.len()).unwrap().to_be_bytes();
    [&AAGUID[..], &length, id, &map(key)].concat()
}

pub(crate) fn object(data: &[u8]) -> Vec<u8> {
    map(&[
        (text("fmt"), text("none")),
        (text("attStmt"), map(&[])),
        (text("authData"), bytes(data)),
    ])
}

fn new(key: &Key) -> Vec<u8> {
    let attested = attested(b"credential", &key.cose());
    object(&data(PARTY.id, 0x45, 0, &attested))
}

fn client_data(kind: &str, origin: &str) -> Vec<u8> {
    json!({"type": kind, "challenge": "AQID", "origin": origin, "crossOrigin": false, "other_keys_can_be_added_here": "x"})
        .to_string()
        .into_bytes()
}

#[test]
fn each_algorithm_registers_and_signs_in() {
    let client_data = client_data("webauthn.get", PARTY.origin);
    for key in Key::all() {
        let known = register(PARTY, &new(&key)).unwrap();
        assert_eq!(known.id.as_slice(), &b"credential"[..]);
        assert_eq!(known.sign_count, 0);
        assert!(!known.backup_eligible);
        let shown = data(PARTY.id, 0x05, 7, b"");
        let signature = key.sign(&shown, &client_data);
        let verify = |client_data: &[u8], signature: &[u8]| {
            verify(PARTY, &known, client_data, &shown, signature)
        };
        assert_eq!(verify(&client_data, &signature), Ok(7));
        let other = Key::es256().sign(&shown, &client_data);
        let refused = Err(Reason::PasskeySignature);
        assert_eq!(verify(&client_data, &other), refused);
        assert_eq!(verify(b"{}", &signature), refused);
    }
}

#[test]
fn a_new_passkey_is_for_us_checked_its_user_and_has_a_key_that_was_asked_for() {
    let key = Key::es256();
    let with = |flags, id: &[u8], cose: &[(Vec<u8>, Vec<u8>)]| {
        object(&data(PARTY.id, flags, 0, &attested(id, cose)))
    };
    let changed = |index: usize, value: Vec<u8>| {
        let mut cose = key.cose();
        cose[index].1 = value;
        with(0x45, b"id", &cose)
    };
    let rsa = |n: usize, e: &[u8]| {
        let n = [vec![0xff; n]].concat();
        let cose = [
            (integer(1), integer(3)),
            (integer(3), integer(-257)),
            (integer(-1), bytes(&n)),
            (integer(-2), bytes(e)),
        ];
        with(0x45, b"id", &cose)
    };
    let whole = new(&key);
    assert!(register(PARTY, &rsa(256, &[1, 0, 1])).is_ok());
    assert!(register(PARTY, &rsa(512, &[1, 0, 1])).is_ok());
    let more = [&whole[..], &[0]].concat();
    let flagged = |flags| with(flags, b"id", &key.cose());
    let elsewhere = data("example.com", 0x45, 0, &attested(b"id", &key.cose()));
    let malformed = [
        ("nothing", Vec::new()),
        ("cut", whole[..whole.len() - 1].to_vec()),
        ("more behind it", more),
        ("no key in it", flagged(0x05)),
        ("copied, and not made for it", flagged(0x55)),
        ("no id", with(0x45, b"", &key.cose())),
        ("a long id", with(0x45, &[7; 1_024], &key.cose())),
    ];
    let unverified = [
        ("not verified", flagged(0x41)),
        ("not present", flagged(0x44)),
    ];
    let of_another_key = [
        ("another algorithm", changed(1, integer(-35))),
        ("another curve", changed(2, integer(2))),
        ("a point off the curve", changed(3, bytes(&[1; 32]))),
        ("a short coordinate", changed(3, bytes(&[1; 31]))),
        ("RSA of 1024", rsa(128, &[1, 0, 1])),
        ("RSA of 8192", rsa(1_024, &[1, 0, 1])),
        ("an exponent of one", rsa(256, &[1])),
    ];
    for (reason, cases) in [
        (Reason::PasskeyMalformed, &malformed[..]),
        (Reason::PasskeyUnverified, &unverified),
        (
            Reason::PasskeyElsewhere,
            &[("another host", object(&elsewhere))],
        ),
        (Reason::PasskeyKey, &of_another_key),
    ] {
        for (what, object) in cases {
            assert_eq!(register(PARTY, object), Err(reason), "{what}");
        }
    }
}

#[test]
fn signing_in_is_for_us_checks_the_user_and_counts_on() {
    let key = Key::es256();
    let client_data = client_data("webauthn.get", PARTY.origin);
    let judged = |id: &str, flags, before, count, eligible| {
        let known = Passkey {
            sign_count: before,
            backup_eligible: eligible,
            ..register(PARTY, &new(&key)).unwrap()
        };
        let shown = data(id, flags, count, b"");
        let signature = key.sign(&shown, &client_data);
        verify(PARTY, &known, &client_data, &shown, &signature)
    };
    let elsewhere = Err(Reason::PasskeyElsewhere);
    for (id, flags, before, count, eligible, expected) in [
        (PARTY.id, 0x05, 0, 0, false, Ok(0)),
        (PARTY.id, 0x1d, 0, 0, true, Ok(0)),
        (PARTY.id, 0x0d, 3, 4, true, Ok(4)),
        (PARTY.id, 0x05, 3, 3, false, Err(Reason::PasskeyCloned)),
        (PARTY.id, 0x05, 3, 0, false, Err(Reason::PasskeyCloned)),
        (PARTY.id, 0x05, 0, 0, true, Err(Reason::PasskeyMalformed)),
        (PARTY.id, 0x0d, 0, 0, false, Err(Reason::PasskeyMalformed)),
        (PARTY.id, 0x15, 0, 0, true, Err(Reason::PasskeyMalformed)),
        (PARTY.id, 0x01, 0, 0, false, Err(Reason::PasskeyUnverified)),
        ("example.com", 0x05, 0, 0, false, elsewhere),
    ] {
        let found = judged(id, flags, before, count, eligible);
        let case = format!("{id} {flags:x} {before} {count} {eligible}");
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn what_the_browser_says_is_of_this_kind_and_of_our_own_page() {
    let said = |more: serde_json::Value| {
        let mut all = json!({"type": "webauthn.get", "challenge": "AQID", "origin": PARTY.origin});
        let more = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        challenge(all.to_string().as_bytes(), "webauthn.get", PARTY)
    };
    assert_eq!(said(json!({})), Ok(vec![1, 2, 3]));
    let further = json!({"crossOrigin": false, "more": [1]});
    assert_eq!(said(further), Ok(vec![1, 2, 3]));
    for elsewhere in [
        json!({"type": "webauthn.create"}),
        json!({"origin": "https://login.example.com/"}),
        json!({"origin": "http://login.example.com"}),
        json!({"origin": "https://LOGIN.example.com"}),
        json!({"crossOrigin": true}),
        json!({"crossOrigin": "false"}),
        json!({"topOrigin": "https://login.example.com"}),
    ] {
        let found = said(elsewhere.clone());
        assert_eq!(found, Err(Reason::PasskeyElsewhere), "{elsewhere}");
    }
    let refused = Err(Reason::PasskeyMalformed);
    for malformed in ["", "[]", "{", "\"x\""] {
        let found = challenge(malformed.as_bytes(), "webauthn.get", PARTY);
        assert_eq!(found, refused, "{malformed}");
    }
    assert_eq!(said(json!({"challenge": "A=="})), refused);
}

#[test]
fn addresses_of_numbers_have_no_passkeys() {
    let host_name = Some("login.example.com");
    for (base_url, expected) in [
        ("https://login.example.com", host_name),
        ("https://login.example.com:8443/id", host_name),
        ("http://localhost:8080", Some("localhost")),
        ("http://127.0.0.1:8080", None),
        ("http://[::1]:8080/id", None),
    ] {
        assert_eq!(host(base_url), expected, "{base_url}");
    }
}

#[test]
fn a_million_mutations_make_no_panic() {
    let keys = Key::all();
    let objects: Vec<Vec<u8>> = keys.iter().map(new).collect();
    let client_data = client_data("webauthn.get", PARTY.origin);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    let mut mutated = |whole: &[u8]| {
        let mut bytes = whole.to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = u8::try_from(random(256)).unwrap(),
                1 => bytes[at] ^= 1 << random(8),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, u8::try_from(random(256)).unwrap()),
            }
        }
        bytes
    };
    for round in 0..900_000 {
        match round % 4 {
            0 => drop(challenge(&mutated(&client_data), "webauthn.get", PARTY)),
            index => drop(register(PARTY, &mutated(&objects[index - 1]))),
        }
    }
    let known = objects
        .iter()
        .map(|object| register(PARTY, object).unwrap());
    let known: Vec<Passkey> = known.collect();
    let shown = data(PARTY.id, 0x05, 1, b"");
    let signatures = keys.iter().map(|key| key.sign(&shown, &client_data));
    let signatures: Vec<Vec<u8>> = signatures.collect();
    for round in 0..100_000 {
        let index = round % 3;
        let (data, signature) = match round % 2 {
            0 => (mutated(&shown), signatures[index].clone()),
            _ => (shown.clone(), mutated(&signatures[index])),
        };
        let _: Result<i64, Reason> = verify(PARTY, &known[index], &client_data, &data, &signature);
    }
}
