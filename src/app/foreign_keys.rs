//! Key sets of others, as registered or fetched and held.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::failure::Failure;
use super::fetched::{Fetched, Shelf};
use crate::outbound::{Asker, Deadline, OutboundError, OutboundRequest};
use crate::protocol::keys::key_set::KeySet;

pub use super::fetched::Provenance;

const SHELF: Shelf = Shelf { fresh: Duration::from_secs(600), stale: Duration::from_secs(3_600) };

#[derive(Clone, Copy, Debug)]
pub enum KeySource<'a> {
    Inline(&'a Value),
    Uri(&'a str),
}

impl<'a> KeySource<'a> {
    /// What a registration says; `None` when it has no keys.
    pub fn of(jwks: &'a Option<Value>, jwks_uri: &'a Option<String>) -> Option<KeySource<'a>> {
        jwks.as_ref().map(KeySource::Inline).or(jwks_uri.as_deref().map(KeySource::Uri))
    }
}

#[derive(Debug)]
pub struct ForeignKeys(Fetched<KeySet>);

impl Default for ForeignKeys {
    fn default() -> ForeignKeys {
        ForeignKeys(Fetched::new(SHELF))
    }
}

impl ForeignKeys {
    pub fn find(
        &self,
        asker: Asker<'_>,
        keys: KeySource<'_>,
        deadline: Deadline,
    ) -> Result<Option<Arc<KeySet>>, Failure> {
        match keys {
            KeySource::Inline(jwks) => Ok(KeySet::parse(jwks).map(Arc::new)),
            KeySource::Uri(url) => had(self.0.find(asker, url, deadline, || fetch_key_set(asker, url, deadline))),
        }
    }

    /// A newer set than `seen`, if there may be one by now.
    pub fn find_newer(
        &self,
        asker: Asker<'_>,
        keys: KeySource<'_>,
        deadline: Deadline,
        seen: (&Arc<KeySet>, Provenance),
    ) -> Result<Option<Arc<KeySet>>, Failure> {
        match keys {
            KeySource::Inline(_) => Ok(None),
            KeySource::Uri(url) => {
                let fetch = || fetch_key_set(asker, url, deadline);
                had(self.0.find_newer(asker, url, deadline, seen, fetch))
            }
        }
    }
}

/// Why a set cannot be had is logged by whom fetched it.
fn had(found: Result<Arc<KeySet>, OutboundError>) -> Result<Option<Arc<KeySet>>, Failure> {
    match found {
        Ok(set) => Ok(Some(set)),
        Err(OutboundError::Busy) => Err(Failure::Busy),
        Err(_) => Ok(None),
    }
}

/// Refused when nothing answers in time, or when the answer is no JWK set (RFC 7517 §5).
pub fn fetch_key_set(asker: Asker<'_>, url: &str, deadline: Deadline) -> Result<KeySet, OutboundError> {
    let request = OutboundRequest::get(url).header("Accept", "application/jwk-set+json, application/json");
    let answer = asker.send(&request.by(deadline))?.require_ok()?;
    let set = answer.json().as_ref().and_then(KeySet::parse);
    set.ok_or_else(|| OutboundError::Failed(String::from("the answer is no JWK set")))
}
