//! Message authentication: HMAC-SHA256 (RFC 2104) for forms, throttle buckets, user codes and refresh tokens.

use aws_lc_rs::hmac;

use super::master::{DerivedKeys, Purpose};

#[derive(Debug)]
pub struct Mac {
    keys: Vec<hmac::Key>,
}

impl Mac {
    pub fn new(derived: &DerivedKeys, purpose: Purpose) -> Mac {
        Mac { keys: derived.keys(purpose).map(|(_, key)| hmac::Key::new(hmac::HMAC_SHA256, &key)).collect() }
    }

    /// The tag of a message made of parts. Lengths go in as well, so that no two lists of parts share a message.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.keys.first().map(|key| tag(key, parts)).unwrap_or_default()
    }

    /// The tag under every line, the current one first: by whichever it was stored, it is found.
    pub fn tags(&self, parts: &[&[u8]]) -> Vec<[u8; 32]> {
        self.keys.iter().map(|key| tag(key, parts)).collect()
    }

    /// Whether `presented` is the tag of that message under any line, in constant time for each.
    pub fn verify(&self, parts: &[&[u8]], presented: &[u8]) -> bool {
        let message = message(parts);
        self.keys.iter().any(|key| hmac::verify(key, &message, presented).is_ok())
    }
}

fn tag(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let tag = hmac::sign(key, &message(parts));
    tag.as_ref().first_chunk().copied().unwrap_or_default()
}

fn message(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| [&(part.len() as u64).to_be_bytes(), *part].concat()).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::super::master::MasterSecret;
    use super::*;

    fn mac(lines: &[u8], purpose: Purpose) -> Mac {
        let lines: Vec<String> = lines.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
        Mac::new(&MasterSecret::parse(&lines.join("\n")).unwrap().derive(&[9; 16], "https://a.example"), purpose)
    }

    #[test]
    fn a_tag_holds_for_its_message_purpose_and_secret_alone() {
        let form = mac(&[1], Purpose::FormToken);
        let tag = form.tag(&[b"ab", b"c"]);
        assert!(form.verify(&[b"ab", b"c"], &tag) && mac(&[2, 1], Purpose::FormToken).verify(&[b"ab", b"c"], &tag));
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
}
