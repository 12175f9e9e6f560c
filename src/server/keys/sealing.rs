//! Sealing by AES-256-GCM-SIV (RFC 8452): nobody else can read or change a sealed value. Purpose
//! and issuer are associated data, so a text sealed for one use opens in no other. Where several
//! kinds of text share a purpose, their prefix is associated data, too.
//!
//! And message authentication by HMAC-SHA256 (RFC 2104), for forms, throttle buckets, user codes
//! and refresh tokens.

use std::borrow::Cow;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::master::{DerivedKeys, Purpose, current};
use super::random;
use gatepost_protocol::words::identifiers::KeyThumbprint;

/// Sealed texts with more characters are not opened. None that we make is so long.
const LONGEST: usize = 8_192;
/// The first byte under the seal of a text. If you change a sealed type, raise it: sealed fields
/// are read by position.
const VERSION: u8 = 1;
/// The first byte of a text that is bound to a key, whose thumbprint stands behind the value.
/// Processes that know nothing of keys refuse it.
const BOUND: u8 = 2;

/// What was under a seal, and the key that its holder must prove to have.
pub struct Opened<T> {
    pub value: T,
    pub bound_to: Option<KeyThumbprint>,
}

/// Seals and opens for one purpose, under every line of the master secret.
#[derive(Debug)]
pub struct Sealer {
    lines: Vec<LineKey>,
    /// Purpose and issuer.
    associated_data: Vec<u8>,
    /// Whether a text is sealed with its prefix.
    seals_prefixes: bool,
}

/// The key from one line of the master secret.
#[derive(Debug)]
struct LineKey {
    /// Names the line, also after it moved. Two lines may have the same name.
    name: u8,
    key: LessSafeKey,
}

#[allow(clippy::expect_used, reason = "lengths that the cipher takes")]
impl LineKey {
    fn new(name: u8, key: &[u8; 32]) -> LineKey {
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("AES-256 has keys of 32 bytes");
        LineKey {
            name,
            key: LessSafeKey::new(key),
        }
    }

    fn seal(&self, associated_data: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = random::bytes();
        let mut sealed = Vec::with_capacity(plain.len() + 64);
        sealed.push(self.name);
        sealed.extend(nonce);
        sealed.extend_from_slice(plain);
        let (_, ciphertext) = sealed.split_at_mut(1 + NONCE_LEN);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(associated_data);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aad, ciphertext)
            .expect("up to 2^36 bytes can be sealed");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    fn open(&self, associated_data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let rest = sealed.strip_prefix(&[self.name])?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_LEN>()?;
        let mut plain = ciphertext.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(associated_data);
        let length = self.key.open_in_place(nonce, aad, &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

impl Sealer {
    pub fn new(derived: &DerivedKeys, purpose: Purpose) -> Sealer {
        let lines = derived.keys(purpose);
        Sealer {
            lines: lines.map(|(name, key)| LineKey::new(name, &key)).collect(),
            associated_data: format!("{}\n{}", purpose.as_str(), derived.issuer()).into_bytes(),
            seals_prefixes: false,
        }
    }

    /// For a purpose that texts of several kinds share, each with a prefix of its own, which may be
    /// empty. The prefix is sealed with the text, so none opens as one of another kind, even if its
    /// bytes could be read as one.
    ///
    /// A purpose with one kind of text does without. So an authorization code or an access token of
    /// this build opens on machines that are still to be upgraded.
    pub fn of_kinds(derived: &DerivedKeys, purpose: Purpose) -> Sealer {
        Sealer {
            seals_prefixes: true,
            ..Sealer::new(derived, purpose)
        }
    }

    /// Seals under the current line: a byte naming the line, the nonce, the ciphertext with its
    /// tag.
    pub fn seal(&self, plain: &[u8]) -> Vec<u8> {
        current(&self.lines).seal(&self.associated_data, plain)
    }

    /// Opens what `seal` made; `None` for anything else.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.open_with(&self.associated_data, sealed)
    }

    fn open_with(&self, associated_data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| line.open(associated_data, sealed))
    }

    /// Whether it was sealed under the current line, as `seal` would now.
    pub fn seals_alike(&self, sealed: &[u8]) -> bool {
        let line = current(&self.lines);
        line.open(&self.associated_data, sealed).is_some()
    }

    /// The associated data of a text. Neither purpose nor issuer contains a line feed.
    fn data_of_text(&self, prefix: &str) -> Cow<'_, [u8]> {
        let data = self.associated_data.as_slice();
        if self.seals_prefixes {
            [data, b"\n", prefix.as_bytes()].concat().into()
        } else {
            data.into()
        }
    }

    /// Seals a value into `prefix` and base64url characters: a handle that secret scanners find by
    /// its prefix.
    pub fn seal_text(&self, prefix: &str, value: &impl Serialize) -> String {
        self.seal_version(VERSION, prefix, value)
    }

    /// Opens what `seal_text` made with the same prefix; `None` for anything else.
    pub fn open_text<T: DeserializeOwned>(&self, prefix: &str, text: &str) -> Option<T> {
        let plain = self.open_plain(prefix, text)?;
        whole(plain.strip_prefix(&[VERSION])?)
    }

    /// The same for what may be bound to a key. Without a key it is the text of `seal_text`.
    pub fn seal_bound(
        &self,
        prefix: &str,
        value: &impl Serialize,
        bound_to: Option<KeyThumbprint>,
    ) -> String {
        match bound_to {
            Some(key) => self.seal_version(BOUND, prefix, &(value, key)),
            None => self.seal_text(prefix, value),
        }
    }

    /// Opens what `seal_bound` made with the same prefix; `None` for anything else.
    pub fn open_bound<T: DeserializeOwned>(&self, prefix: &str, text: &str) -> Option<Opened<T>> {
        let plain = self.open_plain(prefix, text)?;
        if let Some(plain) = plain.strip_prefix(&[BOUND]) {
            let (value, key) = whole(plain)?;
            let bound_to = Some(key);
            return Some(Opened { value, bound_to });
        }
        let value = whole(plain.strip_prefix(&[VERSION])?)?;
        let bound_to = None;
        Some(Opened { value, bound_to })
    }

    #[allow(
        clippy::expect_used,
        reason = "our types serialise, and memory takes it"
    )]
    fn seal_version(&self, version: u8, prefix: &str, value: &impl Serialize) -> String {
        let mut plain = Vec::with_capacity(1_024);
        plain.push(version);
        let plain = postcard::to_extend(value, plain).expect("a sealed type can be written down");
        let sealed = current(&self.lines).seal(&self.data_of_text(prefix), &plain);
        [prefix, &URL_SAFE_NO_PAD.encode(sealed)].concat()
    }

    fn open_plain(&self, prefix: &str, text: &str) -> Option<Vec<u8>> {
        let encoded = text
            .strip_prefix(prefix)
            .filter(|encoded| encoded.len() <= LONGEST)?;
        let sealed = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let opened = self.open_with(&self.data_of_text(prefix), &sealed);
        // The release before sealed no prefixes, and pages that it drew must go on. Delete
        // `or_else` in the next release but one.
        opened.or_else(|| self.open(&sealed))
    }
}

/// The value, with nothing behind it.
fn whole<T: DeserializeOwned>(plain: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(plain).ok()?;
    rest.is_empty().then_some(value)
}

#[derive(Debug)]
pub struct Mac {
    keys: Vec<hmac::Key>,
}

impl Mac {
    pub fn new(derived: &DerivedKeys, purpose: Purpose) -> Mac {
        Mac {
            keys: derived
                .keys(purpose)
                .map(|(_, key)| hmac::Key::new(hmac::HMAC_SHA256, &key))
                .collect(),
        }
    }

    /// The tag of a message made of parts, under the current line.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        tag(current(&self.keys), parts)
    }

    /// The tag under every line, the current one first. A stored tag is found by one of them,
    /// whichever line it was made under.
    pub fn tags(&self, parts: &[&[u8]]) -> Vec<[u8; 32]> {
        self.keys.iter().map(|key| tag(key, parts)).collect()
    }

    /// Whether `presented` is the tag of that message under any line, in constant time for each.
    pub fn verify(&self, parts: &[&[u8]], presented: &[u8]) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| verify_slices_are_equal(&tag(key, parts), presented).is_ok())
    }
}

/// Of the parts, each after its length, so that no two lists of parts make the same message.
#[allow(clippy::expect_used, reason = "the algorithm fixes the length")]
fn tag(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut message = hmac::Context::with_key(key);
    for part in parts {
        message.update(&(part.len() as u64).to_be_bytes());
        message.update(part);
    }
    let tag = message.sign();
    tag.as_ref().try_into().expect("SHA-256 gives 32 bytes")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::master::MasterSecret;
    use super::*;
    use gatepost_protocol::authorize::authorization_code::AuthorizationCode;
    use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest};
    use gatepost_protocol::token::access_token::AccessToken;
    use gatepost_protocol::token::delegation::{Actor, Delegation, TokenOrigin};
    use gatepost_protocol::words::identifiers::{ClientId, Subject};
    use gatepost_protocol::words::parameters::Parameters;
    use gatepost_protocol::words::samples;

    fn derived(secrets: &str, issuer: &str) -> DerivedKeys {
        MasterSecret::parse(secrets)
            .unwrap()
            .derive(&[9; 16], issuer)
    }

    fn secret(byte: u8) -> String {
        base64::engine::general_purpose::STANDARD.encode([byte; 32])
    }

    #[test]
    fn any_changed_byte_and_any_cut_closes_it_for_good() {
        let sealer = Sealer::new(
            &derived(&secret(1), "https://a.example"),
            Purpose::AccessToken,
        );
        let sealed = sealer.seal(b"alice");
        assert_ne!(sealed, sealer.seal(b"alice"), "two seals differ");
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert_eq!(sealer.open(&changed), None, "byte {index}");
            assert_eq!(sealer.open(&sealed[..index]), None, "cut at {index}");
        }
    }

    #[test]
    fn other_purposes_issuers_secrets_and_prefixes_do_not_open() {
        let opened = |secrets: u8, issuer: &str, purpose, prefix: &str, text: &str| {
            Sealer::new(&derived(&secret(secrets), issuer), purpose)
                .open_text::<String>(prefix, text)
        };
        let (here, there) = ("https://a.example", "https://b.example");
        let text = Sealer::new(&derived(&secret(1), here), Purpose::AccessToken)
            .seal_text("gpa_", &"alice");
        assert_eq!(
            opened(1, here, Purpose::AccessToken, "gpa_", &text).as_deref(),
            Some("alice")
        );
        assert_eq!(
            opened(1, here, Purpose::AuthorizationCode, "gpa_", &text),
            None
        );
        assert_eq!(opened(1, here, Purpose::AccessToken, "gpc_", &text), None);
        assert_eq!(opened(1, there, Purpose::AccessToken, "gpa_", &text), None);
        assert_eq!(opened(2, here, Purpose::AccessToken, "gpa_", &text), None);
    }

    /// The kinds that share `Purpose::SecondFactor`: tickets, apps that are being set up,
    /// challenges of passkeys.
    const KINDS: [&str; 3] = ["gpf_", "gpo_", ""];

    #[test]
    fn texts_that_share_a_purpose_open_under_their_own_prefix_alone() {
        let sealer = Sealer::of_kinds(
            &derived(&secret(1), "https://a.example"),
            Purpose::SecondFactor,
        );
        for kind in KINDS {
            let text = sealer.seal_text(kind, &"alice");
            let sealed = text.strip_prefix(kind).unwrap();
            for other in KINDS {
                let opened = sealer.open_text::<String>(other, &format!("{other}{sealed}"));
                assert_eq!(opened.is_some(), kind == other, "{kind} as {other}");
            }
            assert_eq!(
                sealer.open(&URL_SAFE_NO_PAD.decode(sealed).unwrap()),
                None,
                "{kind} without a prefix"
            );
        }
    }

    /// Goes with what reads the form of the build before.
    #[test]
    fn a_text_that_the_build_before_sealed_still_opens() {
        let derived = derived(&secret(1), "https://a.example");
        let before = Sealer::new(&derived, Purpose::SecondFactor);
        let sealer = Sealer::of_kinds(&derived, Purpose::SecondFactor);
        for kind in KINDS {
            let text = before.seal_text(kind, &"alice");
            assert_eq!(
                sealer.open_text::<String>(kind, &text).as_deref(),
                Some("alice"),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_old_line_still_opens_when_it_is_no_longer_the_first() {
        let old = Sealer::new(
            &derived(&secret(1), "https://a.example"),
            Purpose::AccessToken,
        );
        let sealed = old.seal(b"alice");
        let rotated = derived(
            &format!("{}\n{}", secret(2), secret(1)),
            "https://a.example",
        );
        let sealer = Sealer::new(&rotated, Purpose::AccessToken);
        assert_eq!(sealer.open(&sealed).unwrap(), b"alice");
        assert_eq!(old.open(&sealer.seal(b"alice")), None);
        assert!(sealer.seals_alike(&sealer.seal(b"alice")) && !sealer.seals_alike(&sealed));
        assert!(
            old.seals_alike(&sealed) && !old.seals_alike(b"") && !old.seals_alike(&sealed[..9])
        );
    }

    #[test]
    fn what_travels_sealed_opens_as_it_was_and_whole() {
        let sealer = Sealer::new(
            &derived(&secret(1), "https://a.example"),
            Purpose::AccessToken,
        );
        fn opened<T: Serialize + DeserializeOwned>(sealer: &Sealer, value: &T) -> Option<T> {
            let text = sealer.seal_text("", value);
            let plain = sealer
                .open(&URL_SAFE_NO_PAD.decode(&text).unwrap())
                .unwrap();
            let opens = |plain: &[u8]| {
                sealer
                    .open_text::<T>("", &URL_SAFE_NO_PAD.encode(sealer.seal(plain)))
                    .is_some()
            };
            assert!(opens(&plain));
            assert!(!opens(&[&plain[..], &[0]].concat()), "something behind it");
            assert!(
                !opens(&[&[VERSION + 1], &plain[1..]].concat()),
                "another version"
            );
            assert!(
                (0..plain.len()).all(|length| !opens(&plain[..length])),
                "cut"
            );
            sealer.open_text("", &text)
        }
        let code = samples::authorization_code();
        assert_eq!(opened(&sealer, &code), Some(code));
        let origins = vec![TokenOrigin::of(&samples::access_token())];
        let actors = vec![
            Actor::Client(ClientId::new("orders")),
            Actor::User(Subject::new("bob")),
        ];
        let exchanged = AccessToken {
            claims: json!({ "a": [1.5, null, "\u{e9}"], "b": { "c": true } })
                .as_object()
                .unwrap()
                .clone(),
            delegation: Some(Delegation { actors, origins }),
            ..samples::access_token()
        };
        for token in [
            AccessToken {
                user: None,
                ..samples::access_token()
            },
            exchanged,
        ] {
            assert_eq!(opened(&sealer, &token), Some(token));
        }
        let parameters =
            Parameters::from_pairs([("state", "a b\u{e9}"), ("state", ""), ("client_id", "web")]);
        let request = SealedRequest {
            received_at: samples::NOW,
            purpose: SealedPurpose::Authorize(parameters),
        };
        assert_eq!(opened(&sealer, &request), Some(request));
        let trip = samples::round_trip();
        assert_eq!(opened(&sealer, &trip), Some(trip));
    }

    /// Goes on with each process that knows nothing of keys.
    #[test]
    fn what_is_bound_to_no_key_is_sealed_as_before_there_were_keys() {
        let sealer = Sealer::new(
            &derived(&secret(1), "https://a.example"),
            Purpose::AccessToken,
        );
        let sealed = |plain: &[u8]| URL_SAFE_NO_PAD.encode(sealer.seal(plain));
        fn written(fields: &impl Serialize) -> Vec<u8> {
            postcard::to_extend(fields, vec![1]).unwrap()
        }
        let token = samples::access_token();
        let code = samples::authorization_code();
        let grant = &code.grant;
        // Field by field, as they stood then.
        let fields_of_token = written(&(
            (token.jti, &token.client_id, &token.user, &token.scope),
            (
                &token.audience,
                &token.userinfo_claims,
                "{}",
                &token.delegation,
            ),
            (token.issued_at, token.expires_at),
        ));
        let fields_of_code = written(&(
            (grant.id, &grant.client_id, &grant.user, &grant.scope),
            (&grant.resources, &grant.claims, "{}", &grant.epochs),
            (
                grant.generation,
                grant.issued_at,
                grant.last_used_at,
                grant.expires_at,
            ),
            (
                grant.revoked_at,
                code.redirect_uri_hash,
                &code.challenge,
                &code.nonce,
            ),
            (code.response_type, code.expires_at),
        ));
        let opened = sealer.open_bound::<AccessToken>("", &sealed(&fields_of_token));
        let opened = opened.unwrap();
        assert_eq!((&opened.value, opened.bound_to), (&token, None));
        let opened = sealer.open_bound::<AuthorizationCode>("", &sealed(&fields_of_code));
        let opened = opened.unwrap();
        assert_eq!((&opened.value, opened.bound_to), (&code, None));
        for (text, fields) in [
            (sealer.seal_bound("", &token, None), &fields_of_token),
            (sealer.seal_bound("", &code, None), &fields_of_code),
        ] {
            let sealed = URL_SAFE_NO_PAD.decode(text).unwrap();
            assert_eq!(sealer.open(&sealed).as_ref(), Some(fields));
        }
    }

    #[test]
    fn what_is_bound_to_a_key_opens_with_it_and_as_nothing_else() {
        let sealer = Sealer::new(
            &derived(&secret(1), "https://a.example"),
            Purpose::AccessToken,
        );
        let key = KeyThumbprint([7; 32]);
        let token = samples::access_token();
        let text = sealer.seal_bound("gpa_", &token, Some(key));
        let opened = sealer.open_bound::<AccessToken>("gpa_", &text).unwrap();
        assert_eq!((opened.value, opened.bound_to), (token, Some(key)));
        assert_eq!(sealer.open_text::<AccessToken>("gpa_", &text), None);
        let sealed = URL_SAFE_NO_PAD.decode(&text[4..]).unwrap();
        let plain = sealer.open(&sealed).unwrap();
        assert_eq!(plain.first(), Some(&BOUND));
        let opens = |plain: &[u8]| {
            let text = URL_SAFE_NO_PAD.encode(sealer.seal(plain));
            sealer.open_bound::<AccessToken>("", &text).is_some()
        };
        assert!(opens(&plain) && !opens(&[&plain[..], &[0]].concat()));
        assert!((0..plain.len()).all(|length| !opens(&plain[..length])));
        assert!(!opens(&[&[BOUND + 1], &plain[1..]].concat()));
    }

    fn mac(lines: &[u8], purpose: Purpose) -> Mac {
        let lines: Vec<String> = lines.iter().map(|byte| secret(*byte)).collect();
        Mac::new(&derived(&lines.join("\n"), "https://a.example"), purpose)
    }

    #[test]
    fn a_tag_holds_for_its_message_purpose_and_secret_alone() {
        let form = mac(&[1], Purpose::FormToken);
        let tag = form.tag(&[b"ab", b"c"]);
        assert!(
            form.verify(&[b"ab", b"c"], &tag)
                && mac(&[2, 1], Purpose::FormToken).verify(&[b"ab", b"c"], &tag)
        );
        for other in [&[&b"a"[..], b"bc"][..], &[b"ab", b"c", b""]] {
            assert!(!form.verify(other, &tag));
        }
        assert!(!form.verify(&[b"ab", b"c"], &tag[..31]) && !form.verify(&[b"ab", b"c"], b""));
        assert!(!mac(&[1], Purpose::UserCode).verify(&[b"ab", b"c"], &tag));
        assert!(!mac(&[2], Purpose::FormToken).verify(&[b"ab", b"c"], &tag));
    }

    #[test]
    fn what_an_older_line_made_is_found_under_the_new_one() {
        let [both, new, old] = [&[2, 1][..], &[2], &[1]].map(|lines| mac(lines, Purpose::UserCode));
        let message: &[&[u8]] = &[b"BCDFGHJK"];
        assert_eq!(both.tags(message), [new.tag(message), old.tag(message)]);
        assert_eq!(both.tag(message), new.tag(message));
    }

    proptest! {
        #[test]
        fn no_plain_text_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let sealer = Sealer::new(&derived(&secret(1), "https://a.example"), Purpose::AccessToken);
            let text = URL_SAFE_NO_PAD.encode(sealer.seal(&[&[VERSION], &bytes[..]].concat()));
            let _ = (sealer.open_text::<AuthorizationCode>("", &text), sealer.open_text::<AccessToken>("", &text));
        }
    }
}
