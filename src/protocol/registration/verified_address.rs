//! What becomes of `email_verified` where somebody writes `email`. Everybody who writes it asks
//! here: documents, operators, and providers.

use serde_json::Value;

use crate::words::json::{JsonObject, SetMember};

const EMAIL: &str = "email";
const EMAIL_VERIFIED: &str = "email_verified";

/// What `email_verified` becomes, where a user who has `before` gets `email` and nothing is said of
/// the verification: the same for the same address; false for another one, if it was anything.
pub fn unsaid(before: &JsonObject, email: &Value) -> Option<Value> {
    let was = before.get(EMAIL_VERIFIED)?;
    let is_same = before.get(EMAIL) == Some(email);
    Some(if is_same {
        was.clone()
    } else {
        Value::from(false)
    })
}

/// All claims of a user who has `before` and gets those that were `written`.
pub fn settled(before: &JsonObject, mut written: JsonObject) -> JsonObject {
    if !written.contains_key(EMAIL_VERIFIED)
        && let Some(email) = written.get(EMAIL)
        && let Some(verified) = unsaid(before, email)
    {
        written.set(EMAIL_VERIFIED, verified);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_address_is_not_verified_unless_that_is_said() {
        let claims = |value: Value| value.as_object().cloned().unwrap();
        let verified = json!({"email": "a@example.com", "email_verified": true});
        for (before, written, after) in [
            (
                verified.clone(),
                json!({"email": "a@example.com"}),
                verified.clone(),
            ),
            (
                verified.clone(),
                json!({"email": "b@example.com"}),
                json!({"email": "b@example.com", "email_verified": false}),
            ),
            (
                verified.clone(),
                json!({"email": "b@example.com", "email_verified": true}),
                json!({"email": "b@example.com", "email_verified": true}),
            ),
            (verified, json!({"name": "A"}), json!({"name": "A"})),
            (
                json!({}),
                json!({"email": "a@example.com"}),
                json!({"email": "a@example.com"}),
            ),
            (
                json!({"email_verified": true}),
                json!({"email": "a@example.com"}),
                json!({"email": "a@example.com", "email_verified": false}),
            ),
        ] {
            assert_eq!(
                settled(&claims(before), claims(written.clone())),
                claims(after),
                "{written}"
            );
        }
    }
}
