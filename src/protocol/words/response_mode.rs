//! How an authorization response travels (OAuth 2.0 Multiple Response Type Encoding Practices §2.1, Form Post Response
//! Mode).

use super::named::named;
use super::response_type::ResponseType;

named! {
    #[derive(PartialOrd, Ord, Hash)]
    pub enum ResponseMode {
        Query = "query",
        Fragment = "fragment",
        FormPost = "form_post",
    }
}

impl ResponseMode {
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
