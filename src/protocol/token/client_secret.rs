//! Client secrets. Only digests are stored. A comparison takes the same time whether and whichever
//! secret matches.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::parameters;
use crate::words::secret::{SecretBytes, SecretText};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DigestAlgorithm {
    Sha256,
    Sha512,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SecretDigest {
    pub algorithm: DigestAlgorithm,
    pub digest: SecretBytes,
    /// From this time on the secret is refused.
    pub expires_at: Option<Instant>,
}

impl SecretDigest {
    /// The bytes that are sealed and stored: 1 for SHA-256 or 2 for SHA-512, then the digest.
    pub fn encode(&self) -> SecretBytes {
        let name = match self.algorithm {
            DigestAlgorithm::Sha256 => 1,
            DigestAlgorithm::Sha512 => 2,
        };
        SecretBytes::new([&[name], self.digest.expose()].concat())
    }

    pub fn decode(bytes: &[u8], expires_at: Option<Instant>) -> Option<SecretDigest> {
        let (name, digest) = bytes.split_first()?;
        let algorithm = match (name, digest.len()) {
            (1, 32) => DigestAlgorithm::Sha256,
            (2, 64) => DigestAlgorithm::Sha512,
            _ => return None,
        };
        Some(SecretDigest {
            algorithm,
            digest: SecretBytes::new(digest),
            expires_at,
        })
    }
}

/// Whether the secret is one of the registered ones. Without a registered one, it is compared with
/// a digest that nothing matches, so that an unknown client takes as long as a wrong secret.
pub fn matches_any(shown: Option<&SecretText>, registered: &[SecretDigest], now: Instant) -> bool {
    let dummy = [SecretDigest {
        algorithm: DigestAlgorithm::Sha256,
        digest: SecretBytes::new([0; 32]),
        expires_at: Some(Instant::from_micros(i64::MIN)),
    }];
    let compared = if registered.is_empty() {
        &dummy
    } else {
        registered
    };
    let digests = ShownDigests::of(shown);
    // Without an early exit, so that the time does not tell which secret matched.
    let mut found = false;
    for secret in compared {
        found |= digests.matches(secret, now);
    }
    found & shown.is_some_and(|shown| !shown.is_empty())
}

/// Both digests of the secret in the request, whichever algorithms are registered.
struct ShownDigests {
    sha256: [u8; 32],
    sha512: [u8; 64],
}

impl ShownDigests {
    fn of(secret: Option<&SecretText>) -> ShownDigests {
        let secret = secret
            .map(SecretText::expose)
            .unwrap_or_default()
            .as_bytes();
        ShownDigests {
            sha256: Sha256::digest(secret).into(),
            sha512: Sha512::digest(secret).into(),
        }
    }

    fn matches(&self, secret: &SecretDigest, now: Instant) -> bool {
        let shown: &[u8] = match secret.algorithm {
            DigestAlgorithm::Sha256 => &self.sha256,
            DigestAlgorithm::Sha512 => &self.sha512,
        };
        let equal = verify_slices_are_equal(shown, secret.digest.expose()).is_ok();
        equal & secret.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// The longest header: `client_id` and secret at their longest, form-encoded and in base64.
const MOST_HEADER_BYTES: usize = 16_384;

#[derive(Clone, Debug, PartialEq)]
pub struct BasicCredentials {
    pub client_id: ClientId,
    pub secret: SecretText,
}

/// Reads `Authorization: Basic`. RFC 6749 §2.3.1 wants both halves form-encoded, and many clients
/// send them raw. So this gives the form-decoded reading first, and the raw one where it differs.
/// `None` when neither can be read.
pub fn readings(header: &str) -> Option<Vec<BasicCredentials>> {
    // The scheme's case does not matter (RFC 7617 §2).
    let (scheme, encoded) = header.trim_matches(' ').split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("Basic") || encoded.len() > MOST_HEADER_BYTES {
        return None;
    }
    let user_pass =
        String::from_utf8(STANDARD.decode(encoded.trim_start_matches(' ')).ok()?).ok()?;
    let (client_id, secret) = user_pass.split_once(':')?;
    let mut readings = Vec::new();
    let decoded = parameters::decoded(client_id).zip(parameters::decoded(secret));
    let differs = match decoded {
        Some((name, password)) => {
            let differs = name != client_id || password != secret;
            readings.extend(credentials(name, password));
            differs
        }
        None => true,
    };
    if differs {
        readings.extend(credentials(client_id.to_owned(), secret.to_owned()));
    }
    (!readings.is_empty()).then_some(readings)
}

/// The credentials; `None` when a half is too long or has a NUL in it, or the name is empty.
fn credentials(client_id: String, secret: String) -> Option<BasicCredentials> {
    let too_long = |text: &str, most: usize| text.chars().nth(most).is_some();
    let overlong =
        too_long(&client_id, parameters::CLIENT_ID) || too_long(&secret, parameters::CLIENT_SECRET);
    if overlong || client_id.is_empty() || client_id.contains('\0') || secret.contains('\0') {
        return None;
    }
    Some(BasicCredentials {
        client_id: ClientId::new(client_id),
        secret: SecretText::new(secret),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_secret_an_ended_one_and_a_cut_digest_match_nothing() {
        let now = Instant::from_seconds(1_000);
        let of = |digest: &[u8], expires_at| SecretDigest {
            algorithm: DigestAlgorithm::Sha256,
            digest: SecretBytes::new(digest),
            expires_at,
        };
        let digest = |secret: &str| Sha256::digest(secret).to_vec();
        let registered = [
            of(&digest(""), None),
            of(&digest("ended"), Some(now)),
            of(&digest("cut")[..16], None),
            of(&[], None),
        ];
        for shown in [None, Some(""), Some("ended"), Some("cut"), Some("\0")] {
            assert!(
                !matches_any(shown.map(SecretText::new).as_ref(), &registered, now),
                "{shown:?}"
            );
        }
        assert!(matches_any(
            Some(&SecretText::new("ended")),
            &registered,
            Instant::from_seconds(999)
        ));
    }

    #[test]
    fn a_secret_is_found_among_others_whatever_its_algorithm_and_however_often() {
        let now = Instant::from_seconds(1_000);
        let of = |algorithm, digest: Vec<u8>| SecretDigest {
            algorithm,
            digest: SecretBytes::new(digest),
            expires_at: None,
        };
        let sha256 = |text: &str| of(DigestAlgorithm::Sha256, Sha256::digest(text).to_vec());
        let sha512 = |text: &str| of(DigestAlgorithm::Sha512, Sha512::digest(text).to_vec());
        let shown = SecretText::new("s3cret");
        let matches = |registered: &[SecretDigest]| matches_any(Some(&shown), registered, now);
        assert!(matches(&[sha256("s3cret")]) && matches(&[sha512("s3cret")]));
        assert!(matches(&[sha256("other"), sha512("s3cret")]));
        assert!(matches(&[sha512("s3cret"), sha256("other")]));
        assert!(matches(&[sha256("s3cret"), sha256("s3cret")]));
        assert!(!matches(&[]) && !matches(&[sha256("other"), sha512("other")]));
        assert!(!matches(&[of(
            DigestAlgorithm::Sha512,
            Sha256::digest("s3cret").to_vec()
        )]));
    }

    #[test]
    fn a_digest_is_stored_with_its_algorithm_and_read_back_by_it() {
        for (algorithm, length) in [(DigestAlgorithm::Sha256, 32), (DigestAlgorithm::Sha512, 64)] {
            let digest = SecretDigest {
                algorithm,
                digest: SecretBytes::new(vec![7; length]),
                expires_at: Some(Instant::from_seconds(1_000)),
            };
            let stored = digest.encode();
            assert_eq!(stored.expose().len(), 1 + length);
            let read = SecretDigest::decode(stored.expose(), digest.expires_at);
            assert_eq!(read, Some(digest));
        }
        let odd: [&[u8]; 7] = [&[], &[1], &[1; 34], &[1; 65], &[2; 33], &[3; 33], &[3; 65]];
        for bytes in odd {
            assert_eq!(SecretDigest::decode(bytes, None), None, "{bytes:?}");
        }
    }

    mod basic_credentials {
        use proptest::prelude::*;

        use super::super::*;

        fn basic(user_pass: &str) -> String {
            format!("Basic {}", STANDARD.encode(user_pass))
        }

        fn read(header: &str) -> Vec<(String, String)> {
            let readings = readings(header).unwrap_or_default();
            readings
                .iter()
                .map(|pair| (pair.client_id.to_string(), pair.secret.expose().to_owned()))
                .collect()
        }

        fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(client_id, secret)| (client_id.to_string(), secret.to_string()))
                .collect()
        }

        #[test]
        fn both_halves_are_form_decoded_and_the_raw_pair_is_kept_where_it_differs() {
            // RFC 6749 Appendix B: " %&+£€" in form encoding.
            let encoded = "+%25%26%2B%C2%A3%E2%82%AC";
            let readings = read(&basic(&format!("we%3Ab:{encoded}")));
            assert_eq!(
                readings,
                owned(&[("we:b", " %&+\u{a3}\u{20ac}"), ("we%3Ab", encoded)])
            );
        }

        #[test]
        fn the_raw_pair_is_kept_where_one_half_differs_and_not_where_none_does() {
            let rows: [(&str, &[(&str, &str)]); 5] = [
                ("web:s3cret", &[("web", "s3cret")]),
                ("web:", &[("web", "")]),
                ("w%65b:s3cret", &[("web", "s3cret"), ("w%65b", "s3cret")]),
                ("web:a+b", &[("web", "a b"), ("web", "a+b")]),
                // No form encoding at all: only the raw reading is left.
                ("web:100%:&=", &[("web", "100%:&=")]),
            ];
            for (sent, expected) in rows {
                assert_eq!(read(&basic(sent)), owned(expected), "{sent}");
            }
        }

        #[test]
        fn the_scheme_is_basic_and_the_header_of_bounded_length() {
            let encoded = STANDARD.encode("web:s3cret");
            let read_as = |header: String| !read(&header).is_empty();
            assert!(read_as(format!("bASIC {encoded}")));
            assert!(read_as(format!("  Basic   {encoded} ")));
            for scheme in ["Bearer", "Basi", "Basic:", ""] {
                assert!(!read_as(format!("{scheme} {encoded}")), "{scheme}");
            }
            assert!(!read_as(encoded.clone()) && !read_as(basic("web")));
            // Blanks count, so that nobody has a longer header read.
            let padded = |length: usize| format!("Basic {encoded:>length$}");
            assert!(read_as(padded(MOST_HEADER_BYTES)));
            assert!(!read_as(padded(MOST_HEADER_BYTES + 1)));
        }

        #[test]
        fn halves_have_bounds_and_no_nul_and_the_name_is_not_empty() {
            let name = "n".repeat(parameters::CLIENT_ID);
            let secret = "s".repeat(parameters::CLIENT_SECRET);
            assert_eq!(read(&basic(&format!("{name}:{secret}"))).len(), 1);
            for sent in [
                format!("{name}n:{secret}"),
                format!("{name}:{secret}s"),
                String::from(":s3cret"),
                String::from("w\0b:s3cret"),
                String::from("web:s\0"),
            ] {
                assert_eq!(readings(&basic(&sent)), None, "{sent:?}");
            }
            // Decoded, it has a NUL; as it stands, it has none.
            assert_eq!(read(&basic("web:%00")), owned(&[("web", "%00")]));
        }

        proptest! {
            #[test]
            fn encoded_credentials_are_read_back(client_id in "[^\0]{1,40}", secret in "[^\0]{0,40}") {
                let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let header = basic(&format!("{}:{}", encode(&client_id), encode(&secret)));
                prop_assert_eq!(read(&header).into_iter().next(), Some((client_id, secret)));
            }

            #[test]
            fn no_header_makes_it_panic(header in ".{0,60}") {
                let _ = readings(&header);
            }

            #[test]
            fn no_bytes_behind_base64_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
                let _ = readings(&format!("Basic {}", STANDARD.encode(bytes)));
            }
        }
    }
}
