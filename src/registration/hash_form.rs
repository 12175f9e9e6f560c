//! The forms in which other programs write hashes of passwords: their names, and how those that
//! are understood here are stored.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;

/// Each form with the ways in which it begins. The case of letters does not count.
const FORMS: [(&str, &[&str]); 15] = [
    ("Argon2", &["$argon2", "argon2$", "{argon2"]),
    (
        "PBKDF2",
        &[
            "$pbkdf2",
            "pbkdf2_",
            "pbkdf2:",
            "{pbkdf2",
            "{pkcs5s2}",
            "$p5k2$",
        ],
    ),
    (
        "bcrypt of a SHA-256",
        &["bcrypt_sha256$", "$bcrypt-sha256$"],
    ),
    (
        "bcrypt",
        &[
            "$2a$",
            "$2b$",
            "$2x$",
            "$2y$",
            "bcrypt$",
            "{bcrypt}",
            "{blf-crypt}",
        ],
    ),
    ("sha512crypt", &["$6$", "{crypt}$6$"]),
    ("sha256crypt", &["$5$", "{crypt}$5$"]),
    ("md5crypt", &["$1$", "$apr1$", "{crypt}$1$"]),
    ("yescrypt", &["$y$", "{crypt}$y$"]),
    ("crypt", &["{crypt}"]),
    ("scrypt", &["$scrypt$", "$7$", "scrypt$", "scrypt:"]),
    ("phpass", &["$p$", "$h$"]),
    ("a salted SHA", &["{ssha", "sha1$"]),
    ("a SHA without a salt", &["{sha"]),
    ("MD5", &["{md5}", "{smd5}", "md5$"]),
    ("a hash of ASP.NET Core Identity", &["aqaaaa"]),
];

/// The name of the form of a hash, by its beginning. `None` where it looks like no hash.
pub fn name(text: &str) -> Option<&'static str> {
    let begins_with = |prefix: &&str| {
        text.get(..prefix.len())
            .is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    let mut forms = FORMS.iter();
    let (name, _) = forms.find(|(_, prefixes)| prefixes.iter().any(begins_with))?;
    Some(name)
}

/// What Django and LDAP write before a hash that is complete without it.
const LABELS: [&str; 7] = [
    "argon2$",
    "bcrypt$$",
    "{ARGON2}$",
    "{ARGON2ID}$",
    "{BCRYPT}$",
    "{BLF-CRYPT}$",
    "{CRYPT}$",
];

/// A hash as it is stored here. A text that is none, or that needs no change, stays as it is.
pub fn stored(text: &str) -> String {
    for label in LABELS {
        if let Some((beginning, hash)) = text.split_at_checked(label.len())
            && beginning.eq_ignore_ascii_case(label)
        {
            return format!("${hash}");
        }
    }
    phc_of_pbkdf2(text).unwrap_or_else(|| text.to_owned())
}

/// The PHC form of Django's `pbkdf2_sha256$ROUNDS$SALT$KEY`, of passlib's
/// `$pbkdf2-sha256$ROUNDS$SALT$KEY` and of its `{PBKDF2-SHA256}ROUNDS$SALT$KEY`.
fn phc_of_pbkdf2(text: &str) -> Option<String> {
    let fields = text
        .split(['$', '{', '}'])
        .filter(|field| !field.is_empty());
    let fields: [&str; 4] = fields.collect::<Vec<_>>().try_into().ok()?;
    let [name, rounds, salt, key] = fields;
    let rounds: u32 = rounds.parse().ok()?;
    let name = match name.to_ascii_lowercase().replace('_', "-").as_str() {
        "pbkdf2" | "pbkdf2-sha1" => "pbkdf2",
        "pbkdf2-sha256" => "pbkdf2-sha256",
        "pbkdf2-sha512" => "pbkdf2-sha512",
        _ => return None,
    };
    // Django's salt is the text itself. passlib writes a dot for the plus of base64.
    let salt = if text.starts_with("pbkdf2_") {
        BASE64_STANDARD_NO_PAD.encode(salt)
    } else {
        salt.replace('.', "+")
    };
    let key = key.trim_end_matches('=').replace('.', "+");
    let length = BASE64_STANDARD_NO_PAD.decode(&key).ok()?.len();
    Some(format!("${name}$i={rounds},l={length}${salt}${key}"))
}
