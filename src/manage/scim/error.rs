//! What a SCIM request is refused with (RFC 7644 §3.12).

use serde_json::{Value, json};

use gatepost_protocol::words::named::named;

named! {
    /// `scimType` (RFC 7644 §3.12, table 9; the last two by RFC 9865 §2.1.3).
    pub enum ScimType {
        InvalidFilter = "invalidFilter",
        Uniqueness = "uniqueness",
        Mutability = "mutability",
        InvalidSyntax = "invalidSyntax",
        InvalidPath = "invalidPath",
        NoTarget = "noTarget",
        InvalidValue = "invalidValue",
        InvalidCursor = "invalidCursor",
        InvalidCount = "invalidCount",
    }
}

impl ScimType {
    /// 400 with this `scimType`.
    pub fn because(self, detail: impl Into<String>) -> ScimError {
        ScimError {
            status: 400,
            scim_type: Some(self),
            detail: detail.into(),
        }
    }
}

/// What was asked for; or why it is refused.
pub type Result<T = (), E = ScimError> = core::result::Result<T, E>;

#[derive(Debug, PartialEq)]
pub struct ScimError {
    pub status: u16,
    pub scim_type: Option<ScimType>,
    /// What is wrong, for whoever wrote the client. It never repeats what was sent.
    pub detail: String,
}

impl ScimError {
    /// A refusal that no `scimType` tells more of.
    pub fn plain(status: u16, detail: impl Into<String>) -> ScimError {
        ScimError {
            status,
            scim_type: None,
            detail: detail.into(),
        }
    }

    pub fn invalid_value(detail: impl Into<String>) -> ScimError {
        ScimType::InvalidValue.because(detail)
    }

    /// The body of the answer.
    pub fn body(&self) -> Value {
        let schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
        let status = self.status.to_string();
        match self.scim_type.map(ScimType::as_str) {
            Some(scim_type) => json!({
                "schemas": schemas, "status": status, "scimType": scim_type, "detail": self.detail,
            }),
            None => json!({"schemas": schemas, "status": status, "detail": self.detail}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_its_status_as_text_and_a_type_where_there_is_one() {
        let schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
        let typed = json!({
            "schemas": schemas, "status": "400", "scimType": "invalidValue", "detail": "wrong",
        });
        assert_eq!(ScimError::invalid_value("wrong").body(), typed);
        let plain = json!({"schemas": schemas, "status": "404", "detail": "nobody"});
        assert_eq!(ScimError::plain(404, "nobody").body(), plain);
    }
}
