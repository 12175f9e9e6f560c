//! The longest values accepted from outside, in one place. In Unicode scalars after decoding, unless the name says bytes.
//! Endpoints pass these to `Parameters::bounded` and choose the error that the parameter calls for.

/// `client_id`
pub const CLIENT_ID: usize = 200;
/// `client_secret`
pub const CLIENT_SECRET: usize = 256;
/// `scope` as sent; a defaulted scope has no limit.
pub const SCOPE: usize = 2000;
/// `redirect_uri`, `post_logout_redirect_uri`
pub const REDIRECT_URI: usize = 2000;
/// `state`
pub const STATE: usize = 4096;
/// `nonce`
pub const NONCE: usize = 1024;
/// `username`, and `login_hint`, which fills it in.
pub const USERNAME: usize = 256;
/// `password`, in bytes: hashing costs by the byte.
pub const PASSWORD_BYTES: usize = 1024;
/// The shortest `code_challenge` and `code_verifier` (RFC 7636 §4.1).
pub const CODE_VERIFIER_LEAST: usize = 43;
/// The longest `code_challenge` and `code_verifier` (RFC 7636 §4.1).
pub const CODE_VERIFIER: usize = 128;
/// `claims`
pub const CLAIMS: usize = 4096;
/// One `resource`
pub const RESOURCE: usize = 2000;
/// How often `resource` (and `audience` in token exchange) may be sent.
pub const RESOURCES: usize = 10;
/// Codes, tokens and other handles of ours.
pub const HANDLE: usize = 8192;
/// `id_token_hint`
pub const ID_TOKEN_HINT: usize = 16 * 1024;
/// `assertion`, `client_assertion`, `request`
pub const ASSERTION: usize = 16 * 1024;
/// Every parameter without a row of its own.
pub const OTHER: usize = 300;
/// A query string, in bytes.
pub const QUERY_BYTES: usize = 32 * 1024;
/// A sealed authorization request; a longer one is refused when it comes in.
pub const SEALED_REQUEST: usize = 7000;
/// A sealed authorization code.
pub const AUTHORIZATION_CODE: usize = 2000;
