//! Everything a person sees: pure functions from the domain's values to HTML. No page needs a
//! script, none carries inline code or style (the content security policy forbids both), and every
//! value is escaped by maud: nothing here is pre-escaped. Every visible sentence stands in
//! [`texts`].

pub mod account;
pub mod brand;
pub mod consent;
pub mod error;
pub mod forgotten;
pub mod form_problem;
pub mod frame;
pub mod icons;
pub mod join;
pub mod language;
pub mod letters;
pub mod login;
pub mod logout;
pub mod moment;
#[cfg(any(test, feature = "testing"))]
pub mod names_from_outside;
pub mod password_link;
pub mod second_factor;
pub mod sign_ins;
pub mod start;
pub mod texts;
pub mod user_agent;

#[cfg(test)]
mod tests;
