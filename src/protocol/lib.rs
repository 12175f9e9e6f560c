//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision.
//! Nothing here does I/O, reads a clock, draws randomness or logs; all of it is tested without a
//! server.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "verdicts are matched in full: whoever adds one decides everywhere what it means"
)]

pub mod audit;
pub mod authorize;
pub mod device;
pub mod discovery;
pub mod keys;
pub mod login;
pub mod logout;
pub mod registration;
pub mod sealed_request;
pub mod token;
pub mod upstream;
pub mod words;
