//! `response_mode`: how an authorization response travels (OAuth 2.0 Multiple Response Type Encoding Practices §2.1,
//! OAuth 2.0 Form Post Response Mode).

use super::response_type::ResponseType;

/// A known way to travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResponseMode {
    /// In the redirect URI's query.
    Query,
    /// In the redirect URI's fragment.
    Fragment,
    /// As a form the browser posts.
    FormPost,
}

impl ResponseMode {
    /// Every mode, in the order of the metadata.
    pub const ALL: [ResponseMode; 3] = [ResponseMode::Query, ResponseMode::Fragment, ResponseMode::FormPost];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ResponseMode::Query => "query",
            ResponseMode::Fragment => "fragment",
            ResponseMode::FormPost => "form_post",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<ResponseMode> {
        ResponseMode::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Whether this mode may carry what `response_type` returns: tokens never travel in a query.
    pub fn is_legal_for(self, response_type: ResponseType) -> bool {
        match self {
            ResponseMode::Query => !response_type.returns_tokens(),
            ResponseMode::Fragment | ResponseMode::FormPost => true,
        }
    }

    /// The mode used where none is asked for.
    pub fn default_for(response_type: ResponseType) -> ResponseMode {
        if response_type.returns_tokens() { ResponseMode::Fragment } else { ResponseMode::Query }
    }
}
