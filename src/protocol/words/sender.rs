//! Who sends a request of the token endpoint, and what it is judged by.

use super::catalogue::Catalogue;
use super::client::Client;
use super::identifiers::KeyThumbprint;
use super::instant::Instant;

/// An authenticated client, with all else that is registered.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    pub client: &'a Client,
    pub catalogue: &'a Catalogue,
    /// We ourselves.
    pub issuer: &'a str,
    /// The key that it proved to hold.
    pub key: Option<KeyThumbprint>,
    pub now: Instant,
}
