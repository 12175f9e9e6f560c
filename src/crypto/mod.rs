//! Keys and what is done with them: sealing, MACs, signatures, password hashing, randomness. No I/O but reading the
//! master secret's file; nothing here knows of the database.

pub mod keyring;
pub mod master;
pub mod password;
pub mod purpose;
pub mod random;
pub mod secrets;
pub mod signing;
pub mod verifying;

use std::fmt;

/// A failure that is not the outside's fault: an unusable file, key or setting. Holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptoError(pub(crate) String);

impl CryptoError {
    fn new(cause: impl Into<String>) -> CryptoError {
        CryptoError(cause.into())
    }
}

impl fmt::Display for CryptoError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for CryptoError {}
