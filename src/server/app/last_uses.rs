//! The last day on which each client was used: it got a token, or somebody who was signed in. The
//! same for each flow that OAuth 2.1 has no more. Requests note it in memory alone, and the
//! housekeeper writes it: once a day and client, or flow.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::App;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::legacy_flow::{FlowUse, LegacyFlow};
use gatepost_store::mutex::Mutex;
use gatepost_store::{applications, flow_uses};

#[derive(Debug, Default)]
pub struct LastUses(Mutex<NotedUses>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Used {
    Client(ClientId),
    Flow(FlowUse),
}

#[derive(Debug, Default)]
struct NotedUses {
    today: Option<Day>,
    /// What was used today.
    used: BTreeSet<Used>,
    /// What is still to be written.
    unwritten: BTreeMap<Used, Day>,
}

impl NotedUses {
    fn note(&mut self, used: Used, today: Day) {
        if self.today != Some(today) {
            self.today = Some(today);
            self.used.clear();
        }
        if self.used.insert(used.clone()) {
            self.unwritten.insert(used, today);
        }
    }
}

impl App {
    pub fn note_use(&self, client_id: &ClientId) {
        let used = Used::Client(client_id.clone());
        self.last_uses.0.lock().note(used, self.now().day());
    }

    pub fn note_flow(&self, client_id: &ClientId, flow: LegacyFlow) {
        let client_id = client_id.clone();
        let used = Used::Flow(FlowUse { client_id, flow });
        self.last_uses.0.lock().note(used, self.now().day());
    }

    /// Writes what was noted since the last time. What cannot be written waits for the next time.
    pub fn write_last_uses(&self) {
        let unwritten = mem::take(&mut self.last_uses.0.lock().unwritten);
        let mut clients = BTreeMap::new();
        let mut flows = BTreeMap::new();
        for (used, day) in unwritten.clone() {
            match used {
                Used::Client(client_id) => {
                    clients.insert(client_id, day);
                }
                Used::Flow(used) => {
                    flows.insert(used, day);
                }
            }
        }
        let written = applications::note_uses(&self.store, &clients)
            .and_then(|()| flow_uses::note(&self.store, &flows));
        if let Err(error) = written {
            log::warn!("last uses of clients could not be written: {error}");
            let mut noted = self.last_uses.0.lock();
            for (used, day) in unwritten {
                noted.unwritten.entry(used).or_insert(day);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_each_of_its_flows_is_written_once_a_day() {
        let mut noted = NotedUses::default();
        let client = |client_id: &str| Used::Client(ClientId::new(client_id));
        let flow = |client_id: &str, flow: LegacyFlow| {
            let client_id = ClientId::new(client_id);
            Used::Flow(FlowUse { client_id, flow })
        };
        for (used, day, is_new) in [
            (client("web"), 1, true),
            (client("web"), 1, false),
            (client("app"), 1, true),
            (flow("web", LegacyFlow::Password), 1, true),
            (flow("web", LegacyFlow::PlainPkce), 1, true),
            (flow("web", LegacyFlow::Password), 1, false),
            (client("web"), 2, true),
            (client("web"), 2, false),
            (flow("web", LegacyFlow::Password), 2, true),
            (client("app"), 2, true),
        ] {
            noted.note(used.clone(), Day(day));
            let unwritten = mem::take(&mut noted.unwritten);
            let expected = is_new.then(|| (used.clone(), Day(day)));
            assert_eq!(unwritten, expected.into_iter().collect(), "{used:?} {day}");
        }
    }
}
