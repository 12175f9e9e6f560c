//! The last day on which each client was used: it got a token, or somebody who was signed in. The
//! same for each flow that OAuth 2.1 has no more. Requests note it in memory alone, and the
//! housekeeper writes it: once a day and client, or flow.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::App;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Day;
use crate::protocol::words::legacy_flow::{FlowUse, LegacyFlow};
use crate::store::{StoreError, applications, flow_uses};

#[derive(Debug, Default)]
pub(super) struct LastUses {
    clients: Noted<ClientId>,
    flows: Noted<FlowUse>,
}

#[derive(Debug)]
struct Noted<U>(Mutex<NotedUses<U>>);

#[derive(Debug)]
struct NotedUses<U> {
    today: Option<Day>,
    /// What was used today.
    used: BTreeSet<U>,
    /// What is still to be written.
    unwritten: BTreeMap<U, Day>,
}

impl<U> Default for Noted<U> {
    fn default() -> Noted<U> {
        Noted(Mutex::default())
    }
}

impl<U> Default for NotedUses<U> {
    fn default() -> NotedUses<U> {
        NotedUses {
            today: None,
            used: BTreeSet::new(),
            unwritten: BTreeMap::new(),
        }
    }
}

impl<U: Ord + Clone> Noted<U> {
    fn lock(&self) -> MutexGuard<'_, NotedUses<U>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what was noted since the last time. What cannot be written waits for the next time.
    fn write_by(&self, write: impl FnOnce(&BTreeMap<U, Day>) -> Result<(), StoreError>) {
        let unwritten = mem::take(&mut self.lock().unwritten);
        if let Err(error) = write(&unwritten) {
            log::warn!("last uses of clients could not be written: {error}");
            let mut noted = self.lock();
            for (used, day) in unwritten {
                noted.unwritten.entry(used).or_insert(day);
            }
        }
    }
}

impl<U: Ord + Clone> NotedUses<U> {
    fn note(&mut self, used: &U, today: Day) {
        if self.today != Some(today) {
            self.today = Some(today);
            self.used.clear();
        }
        if !self.used.contains(used) {
            self.used.insert(used.clone());
            self.unwritten.insert(used.clone(), today);
        }
    }
}

impl App {
    pub fn note_use(&self, client_id: &ClientId) {
        let today = self.now().day();
        self.last_uses.clients.lock().note(client_id, today);
    }

    pub fn note_flow(&self, client_id: &ClientId, flow: LegacyFlow) {
        let client_id = client_id.clone();
        let today = self.now().day();
        let used = FlowUse { client_id, flow };
        self.last_uses.flows.lock().note(&used, today);
    }

    pub fn write_last_uses(&self) {
        let LastUses { clients, flows } = &self.last_uses;
        clients.write_by(|unwritten| applications::note_uses(&self.store, unwritten));
        flows.write_by(|unwritten| flow_uses::note(&self.store, unwritten));
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
