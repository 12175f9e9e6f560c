//! Sessions that are bound to a key of their browser: Device Bound Session Credentials (DBSC, W3C
//! draft of February 2026).

/// Whether a session is bound to a key of its browser, and the request showed that it comes from
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// No key, or keys are not asked for.
    Unbound,
    /// The request brings the cookie that the key was proved for.
    Bound,
    /// The key came less than half a minute ago: the request may have left before.
    Crossing,
    /// The request does not show the key.
    Refused,
}
