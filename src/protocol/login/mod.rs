//! Signing in with a password.

pub mod cbor;
pub mod line;
pub mod passkey;
pub mod password;
pub mod password_link;
pub mod pbkdf2;
pub mod second_factor;
