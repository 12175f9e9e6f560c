//! Public keys that clients and assertion issuers register (RFC 7517 §5).

use serde_json::Value;

use super::problem::Problem;
use super::walker::{Walker, expected};

/// Members that only private and symmetric keys have (RFC 7518 §6).
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Reads a JWK set of public keys.
pub(super) fn jwks(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<Value> {
    let mut walker = Walker::open(value, path, &["keys"], problems)?;
    let keys = walker.items("keys").unwrap_or_default();
    if keys.is_empty() {
        walker.problem("keys", "must be an array of at least one key");
    }
    for (place, key) in keys {
        let Some(members) = key.as_object() else {
            walker.note(place, expected("an object", key));
            continue;
        };
        if PRIVATE_MEMBERS.iter().any(|member| members.contains_key(*member)) {
            walker.note(place, "holds a private or symmetric key; register the public part only");
        } else if !matches!(members.get("kty").and_then(Value::as_str), Some("RSA" | "EC" | "OKP")) {
            walker.note(format!("{place}.kty"), "must be RSA, EC or OKP");
        }
    }
    Some(value.clone())
}
