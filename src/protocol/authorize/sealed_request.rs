//! What travels sealed in the address of a page of ours: what was asked for, when, and what the address is for. Who signed
//! in and what they agreed to is never in it.

use serde::{Deserialize, Serialize};

use crate::protocol::device::device_code::UserCode;
use crate::protocol::login::password_link::PasswordLink;
use crate::protocol::logout::end_session::{EndSessionRequest, UpstreamReturn};
use crate::protocol::upstream::account::LinkOffer;
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters::Parameters;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedRequest {
    pub received_at: Instant,
    pub purpose: SealedPurpose,
}

/// What the address of a page is for, and what was asked. A request sealed for one purpose is none for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SealedPurpose {
    /// An authorization request, decoded: percent-encoding would triple a long state, and the address must stay short.
    Authorize(Parameters),
    Device(UserCode),
    /// The account page, within a tenant or any.
    Account {
        tenant: Option<String>,
        ui_locales: Option<String>,
        /// They shall sign in anew, whatever session there is.
        anew: bool,
        /// By their password and nothing else.
        by_password: bool,
    },
    Link(LinkOffer),
    /// Unlinking one from this person's account: asked for again, it still tells which one is gone.
    Unlink {
        sub: Subject,
        issuer: String,
        upstream_subject: String,
        provider: String,
    },
    /// The form behind a link of the operator's, for the browser of which this is a hash.
    SetPassword {
        link: PasswordLink,
        browser: String,
    },
    Logout(EndSessionRequest),
    /// A sign-out that was done here and goes on upstream: where it ends once the browser is back.
    SignedOut(UpstreamReturn),
}
