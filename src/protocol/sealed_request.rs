//! What the addresses of our pages carry under a seal: what was asked for, when, and what the
//! address is for. It never says who signed in or what they agreed to.

use serde::{Deserialize, Serialize};

use crate::authorize::pushed_request::PushedRequest;
use crate::device::device_code::UserCode;
use crate::login::mail_link::{AddressLink, MailLink};
use crate::login::password_link::{PasskeyLink, PasswordLink};
use crate::login::sign_up::{JoinLink, SignUpId};
use crate::logout::end_session::{EndSessionRequest, UpstreamReturn};
use crate::upstream::account::LinkOffer;
use crate::words::identifiers::Subject;
use crate::words::instant::Instant;
use crate::words::parameters::Parameters;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct SealedRequest {
    pub received_at: Instant,
    pub purpose: SealedPurpose,
}

/// What the address of a page is for. A request that was sealed for one purpose is refused for
/// another.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum SealedPurpose {
    /// The parameters of an authorization request, decoded. Percent-encoding would make a long
    /// `state` three times longer, and addresses must stay short.
    Authorize(Parameters),
    Device(UserCode),
    Account(Visit),
    Link(LinkOffer),
    /// Unlinks an account elsewhere from the account of `sub`. A repeated request can still say
    /// which account is unlinked.
    Unlink {
        sub: Subject,
        issuer: String,
        upstream_subject: String,
        provider: String,
    },
    /// The form behind a link from the operator. `browser` is a hash of the browser's pre-session
    /// cookie.
    SetPassword {
        link: PasswordLink,
        browser: String,
    },
    Logout(EndSessionRequest),
    /// A sign-out that is done here and goes on at an identity provider. It says where the browser
    /// goes after its return.
    SignedOut(UpstreamReturn),
    /// The form behind a link that Gatepost sent. `browser` is as in `SetPassword`.
    MailLink {
        link: MailLink,
        browser: String,
        /// Whether a second factor was shown here, of a user who has one.
        factor_shown: bool,
    },
    /// The question whether to take another address.
    NewAddress(AddressLink),
    /// The form behind a link by which somebody makes a passkey. `browser` is as in `SetPassword`.
    SetPasskey {
        link: PasskeyLink,
        browser: String,
    },
    /// The page behind a sign-up link, which asks for an address.
    SignUp(SignUpId),
    /// The form behind a letter, which makes an account. `browser` is as in `SetPassword`.
    Join {
        link: JoinLink,
        browser: String,
    },
    /// An authorization request that its client pushed.
    Pushed(PushedRequest),
    /// A page below `/admin`, by its path; the others as in [`Visit`].
    Admin {
        page: String,
        tenant: Option<String>,
        ui_locales: Option<String>,
        anew: bool,
    },
    Start(Visit),
    /// The account page, where somebody signs in again to add a factor. `decision` is what they
    /// asked for there, as its form posts it.
    AddFactor {
        visit: Visit,
        decision: String,
    },
}

/// Of a page of ours.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// For users of this tenant only.
    pub tenant: Option<String>,
    pub ui_locales: Option<String>,
    /// Whether the person must sign in again, even with a session.
    pub anew: bool,
    /// Whether only the password counts for that.
    pub by_password: bool,
}
