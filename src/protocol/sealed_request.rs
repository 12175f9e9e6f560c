//! What travels sealed in the address of a page of ours: what was asked for, when, and what the address is for. Who signed
//! in and what they agreed to is never in it.

use serde::{Deserialize, Serialize};

use super::instant::Instant;
use super::parameters::Parameters;

/// What the address of a page is for. A request sealed for one purpose is none for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SealedPurpose {
    /// An authorization request.
    Authorize,
    /// A device that waits for its user.
    Device,
    /// The account page.
    Account,
    /// Linking an identity provider to an account.
    Link,
    /// A sign-out that a client asked for.
    Logout,
    /// A sign-out that was done here and goes on upstream: where it ends once the browser is back.
    SignedOut,
}

/// A request under seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedRequest {
    /// What it is for.
    pub purpose: SealedPurpose,
    /// When it came in.
    pub received_at: Instant,
    /// What was asked, decoded: percent-encoding would triple a long state, and the address of a page must stay short.
    pub parameters: Parameters,
}
