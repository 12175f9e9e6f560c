//! Signing in: passwords, links by which a user sets one, second factors and passkeys; the line of
//! those who wait for a password to be checked; the hashes of other programs; the CBOR of passkeys;
//! sessions that are bound to a key of their browser.

pub mod bound_session;
pub mod cbor;
pub mod imported_hash;
pub mod letters;
pub mod line;
pub mod mail_link;
pub mod passkey;
pub mod password;
pub mod password_link;
pub mod pbkdf2;
pub mod second_factor;
pub mod sign_up;
