//! The master secret, and the keys that are derived from it: one for each purpose, so that a text
//! sealed for one use does not open for another. The master secret is never in the database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::random;
use crate::config::cause;
use gatepost_protocol::words::named::named;
use gatepost_protocol::words::secret::SecretBytes;

const LEAST_LENGTH: usize = 32;
/// How many lines a secret file may have. The first seals, all of them open. One byte of a sealed
/// text names the line.
const MOST_LINES: usize = 16;

named! {
    /// What a derived key is for. The label is part of the derivation: never change one.
    pub enum Purpose {
        AuthorizationCode = "authorization code",
        AccessToken = "access token",
        AuthorizeRequest = "authorize request",
        UpstreamState = "upstream state",
        UpstreamIdToken = "upstream ID token",
        RefreshToken = "refresh token",
        UserCode = "user code",
        DeviceCode = "device code",
        /// Tying forms to pages and browsers.
        FormToken = "form token",
        /// Links by which people set their password.
        PasswordLink = "password link",
        /// Links by which people make accounts.
        SignUpLink = "sign-up link",
        /// Links by which people make a passkey.
        PasskeyLink = "passkey link",
        /// Links that Gatepost sends itself.
        MailLink = "mail link",
        /// The factors proved before a second one.
        SecondFactor = "second factor",
        /// Wrapping what people's factors are checked by, in the database.
        Authenticator = "authenticator",
        SignInThrottle = "sign-in throttle",
        /// Whom browsers signed in before.
        KnownBrowser = "known browser",
        /// What browsers bring that have a session bound to their key.
        BoundSession = "bound session",
        /// Requests that clients pushed.
        PushedRequest = "pushed request",
        /// Nonces that DPoP proofs must have.
        DpopNonce = "DPoP nonce",
        /// Where the next page of a list of users begins.
        ScimCursor = "SCIM cursor",
        SigningKey = "signing key",
        /// Nonces of `gatepost doctor`.
        Doctor = "doctor",
        /// Wrapping digests of client secrets, and upstream client secrets, in the database.
        ClientSecret = "client secret",
    }
}

/// The lines of the secret file: the first is current, the others are still accepted.
#[derive(Debug)]
pub struct MasterSecret {
    lines: Vec<SecretBytes>,
}

/// A new line for a secret file: 32 random bytes in base64.
pub fn generate() -> String {
    STANDARD.encode(random::bytes::<LEAST_LENGTH>())
}

impl MasterSecret {
    /// Reads the file. Its owner and, so that root may own it, its group may read it; nobody else
    /// may do anything. The error says why the file cannot be used, and never what is in it.
    pub fn read(path: &Path) -> Result<MasterSecret, String> {
        MasterSecret::of_file(path)
            .map_err(|problem| format!("master secret {}: {problem}", path.display()))
    }

    fn of_file(path: &Path) -> Result<MasterSecret, String> {
        let metadata = fs::metadata(path).map_err(|error| cause(&error))?;
        if !metadata.is_file() {
            return Err(String::from("not a file"));
        }
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o037 != 0 {
            let advice = "lets others at it; chmod 0400 it, or 0440";
            return Err(format!("mode {mode:04o} {advice}"));
        }
        let text = fs::read_to_string(path).map_err(|error| cause(&error))?;
        MasterSecret::parse(&text)
    }

    /// Reads lines of base64, each at least 32 bytes decoded. Empty lines do not count.
    pub fn parse(text: &str) -> Result<MasterSecret, String> {
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        if lines.is_empty() {
            return Err(String::from("it is empty; `gatepost secret` makes one"));
        }
        if lines.len() > MOST_LINES {
            return Err(format!("it has more than {MOST_LINES} lines"));
        }
        let mut secrets = Vec::new();
        for (number, line) in (1..).zip(lines) {
            secrets.push(decoded(line, number)?);
        }
        Ok(MasterSecret { lines: secrets })
    }

    /// The keys of one installation. Another installation, or another issuer, has other keys.
    pub fn derive(&self, installation_id: &[u8; 16], issuer: &str) -> DerivedKeys {
        let salt = Salt::new(
            HKDF_SHA256,
            &[installation_id.as_slice(), issuer.as_bytes()].concat(),
        );
        DerivedKeys {
            lines: self
                .lines
                .iter()
                .map(|line| salt.extract(line.expose()))
                .collect(),
            issuer: issuer.to_owned(),
        }
    }
}

fn decoded(line: &str, number: usize) -> Result<SecretBytes, String> {
    let alphabets = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let bytes = alphabets
        .iter()
        .find_map(|alphabet| alphabet.decode(line).ok())
        .ok_or_else(|| format!("line {number} is not base64"))?;
    if bytes.len() < LEAST_LENGTH {
        return Err(format!(
            "line {number} is shorter than {LEAST_LENGTH} bytes; `gatepost secret` makes one"
        ));
    }
    Ok(SecretBytes::new(bytes))
}

/// Keys by purpose, one set per line of the secret file.
#[derive(Debug)]
pub struct DerivedKeys {
    lines: Vec<Prk>,
    issuer: String,
}

impl DerivedKeys {
    /// The keys of a purpose, the current line's first. With each comes the byte that names its
    /// line: it stays the same when the line moves in the file.
    pub fn keys(&self, purpose: Purpose) -> impl Iterator<Item = (u8, [u8; 32])> {
        self.lines.iter().map(move |line| {
            let [name, ..] = expand(line, "line name");
            (name, expand(line, purpose.as_str()))
        })
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// What belongs to the current line, where `lines` has one entry for each line of the secret.
#[allow(
    clippy::expect_used,
    reason = "`MasterSecret::parse` refuses a file without a line"
)]
pub(super) fn current<T>(lines: &[T]) -> &T {
    lines.first().expect("a master secret has a line")
}

#[allow(
    clippy::expect_used,
    reason = "the length is constant, and far below the limit"
)]
fn expand(line: &Prk, label: &str) -> [u8; 32] {
    let mut key = [0; 32];
    line.expand(&[b"gatepost ", label.as_bytes()], HKDF_SHA256)
        .and_then(|output| output.fill(&mut key))
        .expect("HKDF gives up to 255 times 32 bytes");
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivation_depends_on_everything_and_on_nothing_else() {
        let master = MasterSecret::parse(&STANDARD.encode([1; 32])).unwrap();
        let key = |id: &[u8; 16], issuer: &str, purpose| {
            master.derive(id, issuer).keys(purpose).next().unwrap()
        };
        let reference = key(&[2; 16], "https://a.example", Purpose::AccessToken);
        assert_eq!(
            reference,
            key(&[2; 16], "https://a.example", Purpose::AccessToken)
        );
        assert_ne!(
            reference,
            key(&[3; 16], "https://a.example", Purpose::AccessToken)
        );
        assert_ne!(
            reference,
            key(&[2; 16], "https://b.example", Purpose::AccessToken)
        );
        assert_ne!(
            reference.1,
            key(&[2; 16], "https://a.example", Purpose::AuthorizationCode).1
        );
        assert_eq!(
            master
                .derive(&[2; 16], "x")
                .keys(Purpose::AccessToken)
                .count(),
            1
        );
    }

    #[test]
    fn unfit_secrets_are_refused_without_being_shown() {
        let short = STANDARD.encode([7; 31]);
        for text in [
            "",
            "\n \n",
            "not base64!",
            short.as_str(),
            &format!("{}\n{short}", STANDARD.encode([7; 32])),
        ] {
            let problem = MasterSecret::parse(text).unwrap_err();
            assert!(!problem.contains(&short), "{problem}");
        }
        assert!(
            MasterSecret::parse(&format!("{}\n", STANDARD.encode([7; 32])).repeat(17)).is_err()
        );
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let path =
            std::env::temp_dir().join(format!("gatepost-master-secret-{}", std::process::id()));
        fs::write(&path, generate()).unwrap();
        for (mode, fit) in [
            (0o644, false),
            (0o660, false),
            (0o604, false),
            (0o640, true),
            (0o600, true),
            (0o400, true),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(MasterSecret::read(&path).is_ok(), fit, "{mode:o}");
        }
        fs::remove_file(&path).unwrap();
        assert!(
            MasterSecret::read(&path)
                .unwrap_err()
                .contains("gatepost-master-secret-")
        );
    }
}
