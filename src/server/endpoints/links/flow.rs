//! What becomes of a link, of whichever kind:
//!
//! 1. `GET PAGE?l=LINK`. The link is opened and judged, and leaves the address at once: the next
//!    one has it under seal, with a hash of this browser's pre-session cookie. That address is good
//!    in this browser alone, and for ten minutes. Nothing was changed: mail scanners open links,
//!    too.
//! 2. `GET PAGE?r=SEALED`. Browser and time are held against it, the link is judged anew, and its
//!    form is drawn.
//! 3. `POST PAGE?r=SEALED`. The same, but the form is taken. Whoever posts to a link that is over
//!    may have used it a moment ago: that is confirmed before they are told.

use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::transaction;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::pages::error::Problem;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::identifiers;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretBytes;

/// Where those go on who set a password or make a passkey.
pub const ACCOUNT: &str = "/account/link";

/// What differs between links by what they are for.
pub trait Link {
    /// Whom or what it is for, as stored now.
    type Target;
    /// Where it leads.
    const PAGE: &'static str = ACCOUNT;
    /// Whether a browser without a pre-session cookie gets one with it.
    const SETS_COOKIE: bool = true;

    /// Whom or what it is for; `None` where it is over.
    fn judge(&self, app: &App) -> Result<Option<Self::Target>>;

    /// Draws the form, or takes it. The link is good.
    fn answer(&self, page: &TiedPage<'_>, target: Self::Target) -> Result<Response>;
}

/// A request with a link.
pub struct LinkRequest<'a> {
    /// With the link under seal in its address.
    pub page: TiedPage<'a>,
    /// Whether the link was sealed just now.
    pub is_first: bool,
    /// Whether its form is no longer good.
    pub is_late: bool,
}

impl LinkRequest<'_> {
    /// `tied`: the name of the browser that the form is good in.
    pub fn meet<L: Link>(&self, tied: Option<&str>, link: &L) -> Result<Response> {
        let page = &self.page;
        let name = name_of(&page.browser.value);
        let is_tied = tied.is_none_or(|tied| tied == name && !self.is_late);
        if page.path != L::PAGE || !is_tied {
            return Ok(over(page.presentation));
        }
        match link.judge(page.app)? {
            Some(_) if self.is_first => {
                let response = answers::see_other(page.address(page.path));
                Ok(if L::SETS_COOKIE {
                    page.browser.carried_by(&page.app.config, response)
                } else {
                    response
                })
            }
            Some(target) => link.answer(page, target),
            None => is_over(page),
        }
    }
}

pub fn name_of(browser: &SecretBytes) -> String {
    identifiers::encode(&Sha256::digest(browser.expose()))
}

/// On to the form with what is new under seal.
pub fn on_to_form(page: &TiedPage<'_>, purpose: SealedPurpose) -> Response {
    let sealed = transaction::seal(page.app, purpose).sealed;
    let address = transaction::page_address(page.app, page.path, &sealed);
    answers::see_other(page.presentation.in_its_language(address))
}

pub fn over(presentation: Presentation<'_>) -> Response {
    answers::error_page(&presentation, Problem::LinkOver, Reason::LinkOver)
}

/// Says that the link cannot be used any more. Whoever sends its form may have used it by that a
/// moment ago.
pub fn is_over(page: &TiedPage<'_>) -> Result<Response> {
    if page.is_post() {
        page.app.store.confirm()?;
    }
    Ok(over(page.presentation))
}
