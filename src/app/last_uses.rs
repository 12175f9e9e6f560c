//! The last day on which each client was used: it got a token, or somebody who was signed in.
//! Requests note it in memory alone, and the
//! housekeeper writes it: once a day and client.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::App;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Day;
use crate::store::applications;

#[derive(Debug, Default)]
pub(super) struct LastUses(Mutex<NotedUses>);

#[derive(Debug, Default)]
struct NotedUses {
    today: Option<Day>,
    /// Clients that were used today.
    clients: BTreeSet<ClientId>,
    /// What is still to be written.
    unwritten: BTreeMap<ClientId, Day>,
}

impl LastUses {
    fn lock(&self) -> MutexGuard<'_, NotedUses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotedUses {
    fn note(&mut self, client_id: &ClientId, today: Day) {
        if self.today != Some(today) {
            self.today = Some(today);
            self.clients.clear();
        }
        if !self.clients.contains(client_id) {
            self.clients.insert(client_id.clone());
            self.unwritten.insert(client_id.clone(), today);
        }
    }
}

impl App {
    pub fn note_use(&self, client_id: &ClientId) {
        self.last_uses.lock().note(client_id, self.now().day());
    }

    /// Writes what was noted since the last time. What cannot be written waits for the next time.
    pub fn write_last_uses(&self) {
        let unwritten = mem::take(&mut self.last_uses.lock().unwritten);
        if let Err(error) = applications::note_uses(&self.store, &unwritten) {
            log::warn!("last uses of clients could not be written: {error}");
            let mut noted = self.last_uses.lock();
            for (client_id, day) in unwritten {
                noted.unwritten.entry(client_id).or_insert(day);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_written_once_a_day() {
        let mut noted = NotedUses::default();
        for (client_id, day, is_new) in [
            ("web", 1, true),
            ("web", 1, false),
            ("app", 1, true),
            ("web", 2, true),
            ("web", 2, false),
            ("app", 2, true),
        ] {
            noted.note(&ClientId::new(client_id), Day(day));
            let unwritten = mem::take(&mut noted.unwritten);
            let expected = is_new.then(|| (ClientId::new(client_id), Day(day)));
            assert_eq!(
                unwritten,
                expected.into_iter().collect(),
                "{client_id} {day}"
            );
        }
    }
}
