//! One file, or folder, a program or a page of administrators.

pub mod admin;
pub mod client_token;
mod link_to_pass_on;
pub mod registration;
pub mod scim;
