//! Secrets in a document: where they are, or their digests. Variables and files are read elsewhere:
//! this file does no I/O.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::hash_form;
use gatepost_protocol::registration::names::{display_text, require};
use gatepost_protocol::registration::problem::DocumentProblem;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::registration::walker::{Check, Walker};
use gatepost_protocol::words::identifiers;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::rule::RuleKept;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};

#[derive(Debug)]
pub struct RegisteredSecret {
    pub material: SecretMaterial,
    pub expires_at: Option<Instant>,
    pub description: String,
}

#[derive(Debug)]
pub enum SecretMaterial {
    Text(SecretSource),
    Sha256(SecretBytes),
    Sha512(SecretBytes),
}

#[derive(Debug)]
pub enum SecretSource {
    Value(SecretText),
    Environment(String),
    /// `file`: the content of this file, without its last line break.
    File(String),
}

const SOURCES: [&str; 3] = ["value", "env", "file"];

pub(super) fn parse(
    value: &Value,
    path: &str,
    problems: &mut Vec<DocumentProblem>,
) -> Option<RegisteredSecret> {
    Walker::object(value, path, problems, read).flatten()
}

pub(super) fn read(walker: &mut Walker<'_>) -> Option<RegisteredSecret> {
    let expires_at = walker.string("expires_at").map(timestamp::parse);
    if expires_at == Some(None) {
        walker.problem(
            "expires_at",
            "must be a time as in RFC 3339, such as 2027-01-31T00:00:00Z",
        );
    }
    let description = walker
        .checked("description", display_text)
        .unwrap_or_default();
    if walker.count(&SOURCES) + walker.count(&["sha256", "sha512"]) != 1 {
        walker.problem(
            "",
            "must have exactly one of value, env, file, sha256 and sha512",
        );
        return None;
    }
    let value = walker.members().text("value");
    if let Some(form) = value.and_then(hash_form::name) {
        let rule = "here it would be the secret itself. Give the plain secret, or its sha256. If \
                    this is the plain secret, name a file with it";
        walker.problem("value", format!("looks like a hash ({form}): {rule}"));
    }
    let sha256 = digest(walker, "sha256", 32).map(SecretMaterial::Sha256);
    let sha512 = digest(walker, "sha512", 64).map(SecretMaterial::Sha512);
    let material = sha256
        .or(sha512)
        .or_else(|| source(walker, check_own).map(SecretMaterial::Text));
    Some(RegisteredSecret {
        material: material?,
        expires_at: expires_at.flatten(),
        description,
    })
}

/// Reads our own secret at another provider: a text, or an object with `value`, `env` or `file`.
pub(super) fn parse_source(
    value: &Value,
    path: &str,
    problems: &mut Vec<DocumentProblem>,
) -> Option<SecretSource> {
    if let Some(text) = value.as_str() {
        if let Err(rule) = secret_text(text) {
            problems.push(DocumentProblem::new(path, rule));
        }
        return Some(SecretSource::Value(SecretText::new(text)));
    }
    Walker::object(value, path, problems, read_source).flatten()
}

fn read_source(walker: &mut Walker<'_>) -> Option<SecretSource> {
    if walker.count(&SOURCES) != 1 {
        walker.problem(
            "",
            "must be a string, or have exactly one of value, env and file",
        );
        return None;
    }
    source(walker, secret_text)
}

fn source(walker: &mut Walker<'_>, check: Check) -> Option<SecretSource> {
    let value = walker
        .checked("value", check)
        .map(|text| SecretSource::Value(SecretText::new(text)));
    let environment = walker
        .checked("env", variable_name)
        .map(SecretSource::Environment);
    let file = walker.checked("file", file_name).map(SecretSource::File);
    value.or(environment).or(file)
}

/// A digest in hex or base64. The error never shows it.
fn digest(walker: &mut Walker<'_>, key: &'static str, length: usize) -> Option<SecretBytes> {
    let text = walker.string(key)?;
    let bytes = if text.len() == length * 2 {
        identifiers::decode(text)
    } else {
        BASE64_STANDARD
            .decode(text)
            .or_else(|_| BASE64_URL_SAFE_NO_PAD.decode(text))
            .ok()
    };
    let bytes = bytes.filter(|bytes| bytes.len() == length);
    if bytes.is_none() {
        walker.problem(key, format!("must be {length} bytes in hex or base64"));
    }
    bytes.map(SecretBytes::new)
}

/// The rule for our own secret at another provider. Apple's are JWTs.
pub fn secret_text(text: &str) -> RuleKept {
    let fits = (1..=2_048).contains(&text.chars().count()) && !text.contains('\0');
    require(fits, "must be 1 to 2048 characters")
}

/// The fewest characters of a secret by which a client or resource proves itself to us.
pub const SHORTEST: usize = 16;

/// The rule for secrets of clients and resources. They are kept as plain digests, since a slow hash
/// would cost more than a token. So only the limit of guesses per source protects a short one.
pub fn check_own(text: &str) -> RuleKept {
    let fits = (SHORTEST..=256).contains(&text.chars().count()) && !text.contains('\0');
    require(
        fits,
        "must be 16 to 256 characters: a shorter secret can be guessed; \
             `gatepost client secret` makes a long one",
    )
}

fn variable_name(name: &str) -> RuleKept {
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    require(plain, "must be the name of an environment variable")
}

fn file_name(name: &str) -> RuleKept {
    let fits = !name.is_empty() && !name.contains('\0');
    require(fits, "must be the path of a file")
}
