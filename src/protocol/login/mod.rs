//! Signing in with a password.

pub mod password;
