//! Clients by name, each with the version it was read at; bounded. A name that no client has never comes here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::RegisteredClient;
use crate::protocol::words::identifiers::ClientId;

/// Entries held at most; on reaching that the cache starts over.
const MOST_ENTRIES: usize = 10_000;

type Held = (i64, Option<Arc<RegisteredClient>>);

#[derive(Debug)]
pub(super) struct ClientCache(Mutex<HashMap<ClientId, Held>>);

impl ClientCache {
    pub(super) fn new() -> ClientCache {
        ClientCache(Mutex::new(HashMap::new()))
    }

    /// What is held at `version`: the outer `None` is "ask the database", the inner one "no such client".
    #[allow(clippy::option_option, reason = "absent from the cache and absent from the registry are two answers")]
    pub(super) fn find(&self, client_id: &ClientId, version: i64) -> Option<Option<Arc<RegisteredClient>>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(client_id).filter(|(read_at, _)| *read_at == version).map(|(_, client)| client.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn keep(&self, client_id: &ClientId, version: i64, client: Option<Arc<RegisteredClient>>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST_ENTRIES {
            held.clear();
        }
        held.insert(client_id.clone(), (version, client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_only_at_its_version() {
        let (cache, name) = (ClientCache::new(), ClientId::new("nobody"));
        assert!(cache.find(&name, 1).is_none());
        cache.keep(&name, 1, None);
        assert!(cache.find(&name, 1).is_some_and(|client| client.is_none()));
        assert!(cache.find(&name, 2).is_none());
    }

    #[test]
    fn more_clients_than_that_do_not_fill_the_memory() {
        let cache = ClientCache::new();
        for number in 0..MOST_ENTRIES * 2 + 1 {
            cache.keep(&ClientId::new(number.to_string()), 1, None);
        }
        assert!(cache.0.lock().unwrap().len() <= MOST_ENTRIES);
    }
}
