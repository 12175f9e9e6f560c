//! One file, or folder, a program or a page of administrators.

pub mod admin;
pub mod client_token;
pub mod registration;
pub mod scim;
