//! The authorization endpoint: what is asked, what comes next, what is answered.

pub mod authorization_code;
pub mod authorize_request;
pub mod authorize_response;
pub mod consent;
pub mod interaction;
pub mod pkce;
pub mod pushed_request;
pub mod requested_claims;
