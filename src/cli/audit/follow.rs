//! `gatepost audit list --follow`: what comes, each event once, as soon as it is committed.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::print;
use crate::cli::failure::Failure;
use crate::cli::operator::Operator;
use crate::cli::output;
use crate::protocol::audit::audit_chain::AuditRow;
use crate::protocol::words::instant::Instant;
use crate::store::audit_events::{self, EventFilter};
use crate::store::{Store, StoreError, installation};

const PAUSE: Duration = Duration::from_secs(1);
/// Events are dated a moment before their transaction shows that it writes any.
const LATE: Duration = Duration::from_secs(15);

/// What tells an event from all others, with when it was: chain and place.
type Name = (Instant, String, i64);

fn name(event: &AuditRow) -> Name {
    (event.at, event.chain.clone(), event.seq)
}

/// Looks at the same time again for as long as a transaction may still bring events of it.
struct Follower<'a> {
    store: &'a Store,
    filter: &'a EventFilter,
    /// No event from before can come any more.
    since: Instant,
    /// Those seen that are not from before.
    seen: BTreeSet<Name>,
}

impl Follower<'_> {
    /// What is there by now and was not seen before, the earliest first.
    fn look(&mut self) -> Result<Vec<AuditRow>, StoreError> {
        // Asked before the rows are: whatever shows after them was under way by then, or began later.
        let since = open_since(self.store)?.max(self.since);
        let asked = self.filter.since.map_or(self.since, |asked| asked.max(self.since));
        let window = EventFilter { since: Some(asked), ..self.filter.clone() };
        let mut rows = audit_events::list(self.store, &window, i64::MAX)?;
        rows.retain(|event| self.seen.insert(name(event)));
        self.since = since;
        self.seen.retain(|(at, _, _)| *at >= since);
        Ok(rows)
    }
}

/// Nothing that is not committed yet is dated before.
fn open_since(store: &Store) -> Result<Instant, StoreError> {
    let under_way = audit_events::under_way(store)?;
    Ok(installation::read(store)?.now.minus(under_way + LATE))
}

/// Prints the latest, `limit` at most, then what comes, until nobody reads it or the command is ended. While the database
/// is away it waits, and says so.
pub(super) fn follow(operator: &Operator, filter: &EventFilter, limit: i64, json: bool) -> Result<(), Failure> {
    let store = &operator.store;
    let mut follower = Follower { store, filter, since: open_since(store)?, seen: BTreeSet::new() };
    // What is there before the first is printed does not come any more, printed or not.
    follower.look()?;
    for event in audit_events::list(store, filter, limit)? {
        follower.seen.insert(name(&event));
        print(&event, json)?;
    }
    let mut is_away = false;
    loop {
        thread::sleep(PAUSE);
        match follower.look() {
            Ok(rows) => {
                if is_away {
                    output::note("the database answers again");
                }
                is_away = false;
                rows.iter().try_for_each(|event| print(event, json))?;
            }
            Err(error) if error.is_passing() => {
                if !is_away {
                    output::note(&format!("{error}; trying again"));
                }
                is_away = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
