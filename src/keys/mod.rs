//! Keys and what is done with them: randomness, the master secret and the keys derived from it, sealing, message
//! authentication, signatures, password hashes. Nothing here knows the database.

pub mod key_import;
pub mod mac;
pub mod master;
pub mod password;
pub mod random;
pub mod sealing;
pub mod signing;
