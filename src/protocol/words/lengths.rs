//! The longest values accepted from outside: in Unicode scalars after decoding, unless the name says bytes. Endpoints
//! choose the error that the parameter calls for.

pub const CLIENT_ID: usize = 200;
pub const CLIENT_SECRET: usize = 256;
/// `scope` as sent; a defaulted scope has no limit.
pub const SCOPE: usize = 2000;
pub const REDIRECT_URI: usize = 2000;
pub const STATE: usize = 4096;
pub const NONCE: usize = 1024;
/// `username`, and `login_hint`, which fills it in.
pub const USERNAME: usize = 256;
/// Hashing costs by the byte.
pub const PASSWORD_BYTES: usize = 1024;
/// RFC 7636 §4.1, as [`CODE_VERIFIER`].
pub const CODE_VERIFIER_LEAST: usize = 43;
pub const CODE_VERIFIER: usize = 128;
pub const CLAIMS: usize = 4096;
pub const RESOURCE: usize = 2000;
/// How often `resource` (and `audience` in token exchange) may be sent.
pub const RESOURCES: usize = 10;
/// Codes, tokens and other handles of ours.
pub const HANDLE: usize = 8192;
pub const ID_TOKEN_HINT: usize = 16 * 1024;
/// Also of `client_assertion` and `request`.
pub const ASSERTION: usize = 16 * 1024;
/// Every parameter without a row of its own.
pub const OTHER: usize = 300;
pub const QUERY_BYTES: usize = 32 * 1024;
/// A sealed authorization request; a longer one is refused when it comes in.
pub const SEALED_REQUEST: usize = 7000;
pub const AUTHORIZATION_CODE: usize = 2000;
