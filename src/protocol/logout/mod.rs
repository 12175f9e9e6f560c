//! The way out: RP-initiated, front-channel and back-channel logout.

pub mod end_session;
