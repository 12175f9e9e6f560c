//! Signing in with somebody else's provider: the way there, and the way back. Nothing is stored
//! before the person is back and who they are there is verified; until then everything travels
//! sealed with the browser.

mod callback;
mod departure;
pub mod logout;
mod provider;

use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::Visit;

pub use callback::{handle as callback, over};
pub use departure::depart;
pub use provider::fetch_metadata;

pub const FAILED: &str = "external_sign_in_failed";

#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    SignIn {
        visit: &'a Visit,
        /// As somebody else than this browser is known to be, there or here: they shall be asked
        /// who they are.
        someone_else: bool,
    },
    Link(&'a PresentSession),
}
