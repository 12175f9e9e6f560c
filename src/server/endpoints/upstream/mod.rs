//! Signing in with somebody else's provider: the way there, and the way back. Nothing is stored
//! before the person is back and who they are there is verified; until then everything travels
//! sealed with the browser.

pub mod callback;
pub mod departure;
pub mod logout;
mod provider;

pub use provider::fetch_metadata;
