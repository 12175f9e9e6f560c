//! Everything a person sees: pure functions from a view (borrowed data) to HTML. No page needs a script, none carries inline
//! code or style (the content security policy forbids both), and every value is escaped by maud: nothing here is pre-escaped.
//! Every visible sentence stands in [`texts`].

pub mod account;
pub mod brand;
pub mod check_session;
pub mod consent;
pub mod device;
pub mod error;
pub mod form_post;
pub mod frame;
pub mod home;
pub mod language;
pub mod link;
pub mod login;
pub mod logout;
pub mod texts;

#[cfg(test)]
mod safety_tests;
#[cfg(test)]
mod samples;
