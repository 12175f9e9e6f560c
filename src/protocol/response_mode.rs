//! How an authorization response travels (OAuth 2.0 Multiple Response Type Encoding Practices §2.1, Form Post Response
//! Mode).

use super::response_type::ResponseType;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResponseMode {
    Query,
    Fragment,
    FormPost,
}

impl ResponseMode {
    /// In the order of the metadata.
    pub const ALL: [ResponseMode; 3] = [ResponseMode::Query, ResponseMode::Fragment, ResponseMode::FormPost];

    pub fn as_str(self) -> &'static str {
        match self {
            ResponseMode::Query => "query",
            ResponseMode::Fragment => "fragment",
            ResponseMode::FormPost => "form_post",
        }
    }

    pub fn from_name(name: &str) -> Option<ResponseMode> {
        ResponseMode::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Tokens never travel in a query.
    pub fn is_legal_for(self, response_type: ResponseType) -> bool {
        match self {
            ResponseMode::Query => !response_type.returns_tokens(),
            ResponseMode::Fragment | ResponseMode::FormPost => true,
        }
    }

    pub fn default_for(response_type: ResponseType) -> ResponseMode {
        if response_type.returns_tokens() { ResponseMode::Fragment } else { ResponseMode::Query }
    }
}
