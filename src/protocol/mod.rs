//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision. Nothing here does I/O,
//! reads a clock, draws randomness or logs; all of it is tested without a server.

pub mod forwarded;
pub mod instant;
pub mod secret;
