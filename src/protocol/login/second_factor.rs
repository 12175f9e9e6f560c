//! Second factors beside a password: the codes of an app (TOTP, RFC 6238) and recovery codes. Also
//! the factors proved so far, which travel sealed in the page that asks for more.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, sign};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::words::identifiers::Subject;
use crate::words::instant::Instant;
use crate::words::named::named;
use crate::words::secret::SecretBytes;
use crate::words::strength::Strength;

/// How long a user may take from one factor to the next.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(300);

/// How many codes of one account are looked at within a time.
#[derive(Clone, Copy)]
pub struct CodeLimit {
    pub most: i32,
    pub window: Duration,
}

/// From one source.
pub const MOST_CODES_OF_A_SOURCE: CodeLimit = CodeLimit {
    most: 5,
    window: Duration::from_secs(600),
};
/// From everywhere, of the account's app. This does not lock a user out: recovery codes, which
/// cannot be guessed, still work.
pub const MOST_CODES_OF_AN_APP: [CodeLimit; 2] = [
    CodeLimit {
        most: 50,
        window: Duration::from_secs(3_600),
    },
    CodeLimit {
        most: 100,
        window: Duration::from_secs(86_400),
    },
];

/// How many seconds a code is good for.
pub const STEP: i64 = 30;
/// 32 characters that are not taken for one another.
const RECOVERY_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

named! {
    pub enum FactorKind {
        Totp = "totp",
        Passkey = "passkey",
        RecoveryCode = "recovery_code",
    }
}

impl FactorKind {
    /// The strength that a user who has this factor can reach with it. A recovery code stands in
    /// for a factor that was lost, and makes nothing reachable by itself.
    pub fn reaches(self) -> Strength {
        match self {
            FactorKind::Totp => Strength::TwoFactors,
            FactorKind::Passkey => Strength::PhishingResistant,
            // For users who have lost their factor.
            FactorKind::RecoveryCode => Strength::SignedIn,
        }
    }
}

/// What a user has proved so far. There is no session yet, or there is one that is to be made
/// stronger.
#[derive(Serialize, Deserialize)]
pub struct Ticket {
    pub subject: Subject,
    /// The user's epochs as they were read. If they changed since, the sign-in begins anew.
    pub epoch: i64,
    pub factors: i64,
    pub amr: Vec<String>,
    pub auth_time: Instant,
    /// Whether the sign-in shall outlive the browser.
    pub remember: bool,
    /// Whether the request goes on without a further factor.
    pub may_skip: bool,
    pub expires_at: Instant,
    /// [`tie`] to the request and the browser.
    pub tie: [u8; 32],
}

/// An app that is being set up: its secret, which is stored once the app has shown that it has it.
#[derive(Serialize, Deserialize)]
pub struct OfferedApp {
    pub secret: [u8; 20],
    pub subject: Subject,
    pub factors: i64,
    pub expires_at: Instant,
}

/// A hash of a sealed request and of one browser: of its pre-session cookie, or of the handle of
/// its session.
pub fn tie(sealed_request: &str, browser: &SecretBytes) -> [u8; 32] {
    Sha256::new()
        .chain_update(Sha256::digest(sealed_request))
        .chain_update(browser.expose())
        .finalize()
        .into()
}

/// `amr` with one more method (RFC 8176 §2).
pub fn with_factor(amr: &[String], methods: &[&str]) -> Vec<String> {
    let before = amr
        .iter()
        .map(String::as_str)
        .filter(|method| *method != "mfa" && !methods.contains(method));
    before
        .chain(methods.iter().copied())
        .chain(["mfa"])
        .map(str::to_owned)
        .collect()
}

/// What was typed where a code is asked for. Spaces and hyphens do not count.
#[derive(Debug, PartialEq)]
pub enum Typed {
    Totp([u8; 6]),
    /// SHA-256 of it.
    RecoveryCode([u8; 32]),
    /// Neither kind of code. It does not count as a guess.
    Neither,
}

pub fn typed(text: &str) -> Typed {
    let kept = text.bytes().filter(|byte| !matches!(byte, b' ' | b'-'));
    let kept: Vec<u8> = kept.map(|byte| byte.to_ascii_lowercase()).collect();
    match <[u8; 6]>::try_from(kept.as_slice()) {
        Ok(digits) if digits.iter().all(u8::is_ascii_digit) => Typed::Totp(digits),
        Ok(_) | Err(_)
            if kept.len() == 10 && kept.iter().all(|byte| RECOVERY_ALPHABET.contains(byte)) =>
        {
            Typed::RecoveryCode(Sha256::digest(&kept).into())
        }
        Ok(_) | Err(_) => Typed::Neither,
    }
}

/// The time step of a code: the present one or one beside it, later than the last that was taken
/// (RFC 6238 §5.2).
pub fn step_of(
    code: [u8; 6],
    secret: &SecretBytes,
    last_step: Option<i64>,
    now: Instant,
) -> Option<i64> {
    let present = now.seconds().div_euclid(STEP);
    let mut steps = [present - 1, present, present + 1]
        .into_iter()
        .filter(|step| last_step.is_none_or(|last| *step > last));
    steps.find(|step| verify_slices_are_equal(&totp(secret, *step), &code).is_ok())
}

/// RFC 4226 §5.3, RFC 6238 §4.2
#[allow(
    clippy::expect_used,
    reason = "HMAC-SHA-1 gives 20 bytes, and the text of six digits has six"
)]
fn totp(secret: &SecretBytes, step: i64) -> [u8; 6] {
    let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.expose());
    let tag = sign(&key, &step.to_be_bytes());
    let last = tag.as_ref().last().expect("a tag has 20 bytes");
    let rest = tag.as_ref().get(usize::from(last & 0xf)..);
    let bytes = rest.and_then(<[u8]>::first_chunk);
    let bytes = bytes.expect("at most 15 of 20 bytes come before");
    let number = (u32::from_be_bytes(*bytes) & 0x7fff_ffff) % 1_000_000;
    let digits = format!("{number:06}");
    let digits = digits.as_bytes().first_chunk();
    *digits.expect("the number is padded to six digits")
}

/// A recovery code as it is shown: 50 random bits in two groups.
pub fn recovery_code(random: [u8; 10]) -> String {
    let letters = random
        .iter()
        .filter_map(|byte| RECOVERY_ALPHABET.get(usize::from(byte & 31)));
    let code: String = letters.copied().map(char::from).collect();
    let (one, other) = code.split_at(5);
    format!("{one}-{other}")
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A secret as it is typed into an app: base32 (RFC 4648 §6), without padding.
pub fn to_base32(secret: &SecretBytes) -> String {
    let bits = secret.expose().chunks(5).flat_map(|chunk| {
        let number = chunk.iter().enumerate().fold(0_u64, |sum, (at, byte)| {
            sum + (u64::from(*byte) << (32 - 8 * at))
        });
        (0..chunk.len() * 8)
            .step_by(5)
            .map(move |at| usize::try_from(number >> (35 - at) & 31).unwrap_or(0))
    });
    bits.filter_map(|index| BASE32.get(index))
        .copied()
        .map(char::from)
        .collect()
}

/// Reads base32. `None` where it is not a secret of 16 to 64 bytes (RFC 4226 §4).
pub fn from_base32(text: &str) -> Option<SecretBytes> {
    let mut bytes = Vec::new();
    let mut held = 0_u32;
    let mut width = 0;
    for letter in text.trim_end_matches('=').bytes() {
        let digit = BASE32
            .iter()
            .position(|one| *one == letter.to_ascii_uppercase())?;
        (held, width) = ((held << 5) + u32::try_from(digit).ok()?, width + 5);
        if width >= 8 {
            width -= 8;
            bytes.extend((held >> width).to_be_bytes().last());
        }
    }
    (16..=64)
        .contains(&bytes.len())
        .then(|| SecretBytes::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B: the last six of its eight digits.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = SecretBytes::new(*b"12345678901234567890");
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(totp(&secret, seconds / 30), code.as_bytes(), "{seconds}");
        }
    }

    #[test]
    fn a_factor_reaches_its_strength_and_a_recovery_code_none() {
        assert_eq!(FactorKind::Totp.reaches(), Strength::TwoFactors);
        assert_eq!(FactorKind::Passkey.reaches(), Strength::PhishingResistant);
        assert_eq!(FactorKind::RecoveryCode.reaches(), Strength::SignedIn);
    }

    #[test]
    fn a_tie_is_to_one_request_and_one_browser() {
        let browser = |text: &str| SecretBytes::new(text);
        let tied = tie("request", &browser("cookie"));
        assert_eq!(tie("request", &browser("cookie")), tied);
        assert_ne!(tie("request", &browser("another")), tied);
        assert_ne!(tie("another", &browser("cookie")), tied);
        // Where one ends and the other begins is part of it.
        assert_ne!(tie("requestc", &browser("ookie")), tied);
    }

    #[test]
    fn a_code_counts_beside_its_own_step_and_once() {
        let secret = SecretBytes::new(*b"12345678901234567890");
        let at = Instant::from_seconds;
        let code = totp(&secret, 100);
        for (seconds, found) in [
            (2_969, None),
            (2_970, Some(100)),
            (3_029, Some(100)),
            (3_059, Some(100)),
            (3_060, None),
        ] {
            assert_eq!(
                step_of(code, &secret, None, at(seconds)),
                found,
                "{seconds}"
            );
            assert_eq!(
                step_of(code, &secret, Some(99), at(seconds)),
                found,
                "{seconds}"
            );
            assert_eq!(
                step_of(code, &secret, Some(100), at(seconds)),
                None,
                "{seconds}"
            );
        }
    }

    #[test]
    fn what_is_typed_is_a_code_of_one_kind_or_none() {
        let code = recovery_code([0, 31, 32, 63, 64, 95, 96, 127, 128, 255]);
        assert_eq!(code, "0z0z0-z0z0z");
        let hash = Typed::RecoveryCode(Sha256::digest("0z0z0z0z0z").into());
        for text in ["0z0z0-z0z0z", " 0Z0z0 z0z0Z", "0z0z0z0z0z-"] {
            assert_eq!(typed(text), hash, "{text}");
        }
        assert_eq!(typed("123 456"), Typed::Totp(*b"123456"));
        for text in [
            "",
            "12345",
            "1234567",
            "12345a",
            "0z0z0-z0z0",
            "0z0z0-z0z0i",
            "\u{661}23456",
            "123456789012",
        ] {
            assert_eq!(typed(text), Typed::Neither, "{text}");
        }
    }

    #[test]
    fn methods_stand_in_the_order_of_their_use() {
        let amr = |amr: &[&str]| amr.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        let both = with_factor(&amr(&["pwd"]), &["otp"]);
        assert_eq!(both, amr(&["pwd", "otp", "mfa"]));
        assert_eq!(
            with_factor(&both, &["hwk", "user"]),
            amr(&["pwd", "otp", "hwk", "user", "mfa"])
        );
    }

    /// RFC 4648 §10
    #[test]
    fn a_key_is_typed_in_base32() {
        let secret = SecretBytes::new(*b"12345678901234567890");
        let text = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        assert_eq!(to_base32(&secret), text);
        let texts = [
            "",
            "MY",
            "MZXQ",
            "MZXW6",
            "MZXW6YQ",
            "MZXW6YTB",
            "MZXW6YTBOI",
        ];
        for (length, text) in texts.into_iter().enumerate() {
            assert_eq!(
                to_base32(&SecretBytes::new(b"foobar"[..length].to_vec())),
                text
            );
            assert_eq!(from_base32(text), None, "too short: {text}");
        }
        assert_eq!(
            (from_base32(text), from_base32(&text.to_lowercase())),
            (Some(secret.clone()), Some(secret))
        );
        for length in 16..=64 {
            let secret = SecretBytes::new((0..length).map(|byte| byte * 3).collect::<Vec<u8>>());
            assert_eq!(
                from_base32(&format!("{}==", to_base32(&secret))),
                Some(secret)
            );
        }
        for text in [
            &text[..24],
            &text.replace('G', "1"),
            &text.replace('G', " "),
            &text.repeat(4),
            &format!("={text}"),
        ] {
            assert_eq!(from_base32(text), None, "{text}");
        }
    }
}
