//! Signing in with a password.

pub mod password;
pub mod password_link;
pub mod second_factor;
