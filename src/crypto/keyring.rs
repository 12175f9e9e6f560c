//! Every key derived from the master secret for one installation and issuer (HKDF-SHA256, RFC 5869): sealing with
//! AES-256-GCM-SIV (RFC 8452) and HMAC-SHA256.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::master::{MasterLine, MasterSecret};
use super::purpose::{MacPurpose, SealingPurpose};
use super::{CryptoError, random};
use crate::protocol::secret::SecretBytes;

/// Longer texts are not even decoded.
pub const MOST_SEALED_CHARACTERS: usize = 8_192;

/// The keys of one installation. Made once at start.
pub struct Keyring {
    issuer: String,
    current: Line,
    /// Still accepted.
    older: Vec<Line>,
}

struct Line {
    name: u8,
    sealing: Vec<(SealingPurpose, LessSafeKey)>,
    macs: Vec<(MacPurpose, hmac::Key)>,
}

impl Keyring {
    /// Derives every key. Another installation id or issuer gives other keys.
    pub fn derive(master: &MasterSecret, installation_id: &[u8; 16], issuer: &str) -> Result<Keyring, CryptoError> {
        let salt = [&installation_id[..], issuer.as_bytes()].concat();
        let mut lines =
            master.lines.iter().map(|line| Line::derive(line, &salt)).collect::<Result<Vec<_>, _>>()?.into_iter();
        let current = lines.next().ok_or_else(|| CryptoError::new("the master secret is empty"))?;
        Ok(Keyring { issuer: issuer.to_owned(), current, older: lines.collect() })
    }

    /// Seals into text: the purpose's prefix and base64url of line name, nonce, ciphertext and tag.
    pub fn seal(&self, purpose: SealingPurpose, plaintext: &[u8]) -> Result<String, CryptoError> {
        let mut text = String::from(purpose.prefix());
        URL_SAFE_NO_PAD.encode_string(self.wrap(purpose, plaintext)?.expose(), &mut text);
        Ok(text)
    }

    /// Opens a sealed text. `None` whatever is wrong with it: forged, damaged, over-long, of another purpose or issuer,
    /// of a master line that is gone.
    pub fn open(&self, purpose: SealingPurpose, unverified_text: &str) -> Option<Vec<u8>> {
        if unverified_text.len() > MOST_SEALED_CHARACTERS {
            return None;
        }
        let encoded = unverified_text.strip_prefix(purpose.prefix())?;
        self.unwrap(purpose, &URL_SAFE_NO_PAD.decode(encoded).ok()?)
    }

    /// Seals into bytes, for the database.
    pub fn wrap(&self, purpose: SealingPurpose, plaintext: &[u8]) -> Result<SecretBytes, CryptoError> {
        let nonce = random::bytes::<NONCE_LEN>();
        let mut sealed = plaintext.to_vec();
        let failed = || CryptoError::new("sealing failed");
        let key = self.current.sealing_key(purpose).ok_or_else(failed)?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.associated(purpose), &mut sealed)
            .map_err(|_| failed())?;
        Ok(SecretBytes::new([&[self.current.name][..], &nonce, &sealed].concat()))
    }

    /// Opens sealed bytes; only the line they name is tried.
    pub fn unwrap(&self, purpose: SealingPurpose, sealed: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = sealed.split_first()?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.lines().find(|line| line.name == *name)?.sealing_key(purpose)?;
        let mut buffer = ciphertext.to_vec();
        let opened = key.open_in_place(Nonce::assume_unique_for_key(*nonce), self.associated(purpose), &mut buffer);
        let length = opened.ok()?.len();
        buffer.truncate(length);
        Some(buffer)
    }

    /// Whether sealed bytes are under the current line; those that are not are to be wrapped again.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.first() == Some(&self.current.name)
    }

    /// A MAC over several parts, under the current line. Each part goes in with its length: moving a byte from one to
    /// the next gives another MAC.
    pub fn mac(&self, purpose: MacPurpose, parts: &[&[u8]]) -> Result<[u8; 32], CryptoError> {
        let failed = || CryptoError::new("MAC failed");
        let key = self.current.mac_key(purpose).ok_or_else(failed)?;
        hmac::sign(key, &framed(parts)).as_ref().try_into().map_err(|_| failed())
    }

    /// Checks a MAC in constant time, under any line still accepted.
    #[must_use]
    pub fn verify_mac(&self, purpose: MacPurpose, parts: &[&[u8]], unverified_mac: &[u8]) -> bool {
        let message = framed(parts);
        let mut keys = self.lines().filter_map(|line| line.mac_key(purpose));
        keys.any(|key| hmac::verify(key, &message, unverified_mac).is_ok())
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        std::iter::once(&self.current).chain(&self.older)
    }

    fn associated(&self, purpose: SealingPurpose) -> Aad<Vec<u8>> {
        Aad::from(framed(&[purpose.label().as_bytes(), self.issuer.as_bytes()]))
    }
}

impl Line {
    fn derive(line: &MasterLine, salt: &[u8]) -> Result<Line, CryptoError> {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(line.bytes.expose());
        let sealing = SealingPurpose::ALL.into_iter().map(|purpose| {
            let key = UnboundKey::new(&AES_256_GCM_SIV, &expand(&root, purpose.label())?);
            Ok((purpose, LessSafeKey::new(key.map_err(|_| CryptoError::new("key derivation failed"))?)))
        });
        let macs = MacPurpose::ALL
            .into_iter()
            .map(|purpose| Ok((purpose, hmac::Key::new(hmac::HMAC_SHA256, &expand(&root, purpose.label())?))));
        Ok(Line { name: line.name, sealing: sealing.collect::<Result<_, _>>()?, macs: macs.collect::<Result<_, _>>()? })
    }

    fn sealing_key(&self, purpose: SealingPurpose) -> Option<&LessSafeKey> {
        self.sealing.iter().find(|(own, _)| *own == purpose).map(|(_, key)| key)
    }

    fn mac_key(&self, purpose: MacPurpose) -> Option<&hmac::Key> {
        self.macs.iter().find(|(own, _)| *own == purpose).map(|(_, key)| key)
    }
}

fn expand(root: &hkdf::Prk, label: &str) -> Result<[u8; 32], CryptoError> {
    let mut key = [0; 32];
    let filled = root.expand(&[label.as_bytes()], hkdf::HKDF_SHA256).and_then(|expanded| expanded.fill(&mut key));
    filled.map_err(|_| CryptoError::new("key derivation failed"))?;
    Ok(key)
}

/// Parts, each behind its length.
fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let mut message = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    const ISSUER: &str = "https://id.example";

    fn keyring(lines: &[&str], id: u8, issuer: &str) -> Keyring {
        Keyring::derive(&MasterSecret::parse(&lines.join("\n")).unwrap(), &[id; 16], issuer).unwrap()
    }

    #[test]
    fn the_same_secret_installation_and_issuer_give_the_same_keys() {
        let sealed = keyring(&[FIRST], 1, ISSUER).seal(SealingPurpose::Code, b"grant").unwrap();
        assert_eq!(keyring(&[FIRST], 1, ISSUER).open(SealingPurpose::Code, &sealed).unwrap(), b"grant");
        for other in
            [keyring(&[SECOND], 1, ISSUER), keyring(&[FIRST], 2, ISSUER), keyring(&[FIRST], 1, "https://id.example/")]
        {
            assert_eq!(other.open(SealingPurpose::Code, &sealed), None);
        }
    }

    #[test]
    fn derived_keys_never_change_from_release_to_release() {
        // Computed independently: HMAC(HKDF(ikm 00..1f, salt 01*16 || issuer, label), len(8) || "x").
        let mac = keyring(&[FIRST], 1, ISSUER).mac(MacPurpose::FormToken, &[b"x"]).unwrap();
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5b2eb02a1645dad1b2f1effc1aad0b2897b5f4650dd0ea3cd2f556152251ab92");
    }

    #[test]
    fn no_purpose_opens_what_was_sealed_for_another() {
        let keyring = keyring(&[FIRST], 1, ISSUER);
        for made in SealingPurpose::ALL {
            let sealed = keyring.wrap(made, b"x").unwrap();
            for tried in SealingPurpose::ALL {
                assert_eq!(keyring.unwrap(tried, sealed.expose()).is_some(), made == tried, "{made:?} as {tried:?}");
            }
        }
        for made in MacPurpose::ALL {
            let mac = keyring.mac(made, &[b"x"]).unwrap();
            for tried in MacPurpose::ALL {
                assert_eq!(keyring.verify_mac(tried, &[b"x"], &mac), made == tried, "{made:?} as {tried:?}");
            }
        }
    }

    #[test]
    fn an_older_line_still_opens_until_it_is_taken_out() {
        let old = keyring(&[FIRST], 1, ISSUER);
        let (sealed, mac) =
            (old.seal(SealingPurpose::Request, b"x").unwrap(), old.mac(MacPurpose::RefreshToken, &[b"x"]).unwrap());
        let both = keyring(&[SECOND, FIRST], 1, ISSUER);
        assert_eq!(both.open(SealingPurpose::Request, &sealed).unwrap(), b"x");
        assert!(both.verify_mac(MacPurpose::RefreshToken, &[b"x"], &mac));
        assert!(!both.is_current(old.wrap(SealingPurpose::KeyWrapping, b"x").unwrap().expose()));
        assert!(both.is_current(both.wrap(SealingPurpose::KeyWrapping, b"x").unwrap().expose()));
        let new = keyring(&[SECOND], 1, ISSUER);
        assert_eq!(new.open(SealingPurpose::Request, &sealed), None);
        assert!(!new.verify_mac(MacPurpose::RefreshToken, &[b"x"], &mac));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let keyring = keyring(&[SECOND, FIRST], 1, ISSUER);
        let sealed = keyring.wrap(SealingPurpose::Code, b"subject and client").unwrap();
        for index in 0..sealed.expose().len() {
            for bit in 0..8 {
                let mut forged = sealed.expose().to_vec();
                forged[index] ^= 1 << bit;
                assert_eq!(keyring.unwrap(SealingPurpose::Code, &forged), None, "byte {index} bit {bit}");
            }
            assert_eq!(keyring.unwrap(SealingPurpose::Code, &sealed.expose()[..index]), None, "cut at {index}");
        }
    }

    #[test]
    fn sealed_texts_hold_only_handle_characters_and_never_repeat() {
        let keyring = keyring(&[FIRST], 1, ISSUER);
        let (one, two) =
            (keyring.seal(SealingPurpose::Code, b"x").unwrap(), keyring.seal(SealingPurpose::Code, b"x").unwrap());
        assert_ne!(one, two);
        assert!(one.starts_with("gpc_"));
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        assert!(keyring.seal(SealingPurpose::AccessToken, b"x").unwrap().starts_with("gpa_"));
    }

    #[test]
    fn texts_that_are_over_long_or_not_canonical_base64_are_refused() {
        let keyring = keyring(&[FIRST], 1, ISSUER);
        let long = keyring.seal(SealingPurpose::Request, &[0; 7_000]).unwrap();
        assert!(long.len() > MOST_SEALED_CHARACTERS);
        assert_eq!(keyring.open(SealingPurpose::Request, &long), None);
        let good = keyring.seal(SealingPurpose::Code, b"x").unwrap();
        for bad in [
            format!("{good}="),
            format!("{good} "),
            good.replace("gpc_", "gpa_"),
            good.replace("gpc_", ""),
            String::from("gpc_"),
        ] {
            assert_eq!(keyring.open(SealingPurpose::Code, &bad), None, "{bad}");
        }
    }

    #[test]
    fn parts_of_a_mac_do_not_run_into_each_other() {
        let keyring = keyring(&[FIRST], 1, ISSUER);
        let mac = keyring.mac(MacPurpose::FormToken, &[b"ab", b"c"]).unwrap();
        assert!(keyring.verify_mac(MacPurpose::FormToken, &[b"ab", b"c"], &mac));
        for parts in [&[&b"a"[..], &b"bc"[..]][..], &[&b"abc"[..]][..], &[&b"ab"[..], &b"c"[..], &b""[..]][..]] {
            assert!(!keyring.verify_mac(MacPurpose::FormToken, parts, &mac));
        }
        assert!(!keyring.verify_mac(MacPurpose::FormToken, &[b"ab", b"c"], &mac[..31]));
        assert!(!keyring.verify_mac(MacPurpose::FormToken, &[b"ab", b"c"], b""));
    }
}
