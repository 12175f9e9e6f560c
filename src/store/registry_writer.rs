//! Changes to the registry: everything of one `apply` in one transaction, together with the version
//! bump that makes every process read anew, and with its audit events. Whoever only reads it does
//! so in a transaction that takes no lock.

use std::time::{Duration, Instant};

use postgres::{Client, IsolationLevel, Row, Transaction};

use super::Store;
use super::audit_chain::Chain;
use super::audit_event::{AuditEvent, EventAuthor};
use super::connection::require_time;
use super::endings::CONFIRM;
use super::error::StoreError;
use super::pool::LEAST_FOR_A_WRITE;
use super::statement::{Bound, Values, bind};
use super::values::column;
use crate::Result;
use crate::worker;
use gatepost_protocol::words::identifiers::{ClientId, Subject};

/// Raises the version first: its row's lock lets one change happen at a time.
///
/// The step is drawn. A change that no standby had is lost with its version when a standby becomes
/// the primary, and a process may hold what it read at that version. If versions were counted, the
/// next change would get the same version again, and that process would take the lost change for
/// today's. Versions still rise, so that the oldest of several is the smallest, and they stay
/// numbers that JSON carries exactly: below 2^53 for 16 million changes.
const BUMP: &str = "
WITH drawn AS (SELECT 1 + floor(random() * 1073741824)::int8 AS step)
UPDATE installation SET registry_version = registry_version + step FROM drawn
RETURNING registry_version - step AS version, registry_version AS version_afterwards,
          clock_timestamp() AS now";

const VERSION: &str = "SELECT registry_version FROM installation";

/// What is registered, in one transaction: that of a change, or one that only reads.
pub struct RegistryReader<'a> {
    pub(super) transaction: Transaction<'a>,
    version: i64,
    /// Whether the users that are found stay as they are until the end.
    pub holds_users: bool,
    /// Sends nothing from then on: the time of the request that it is for is over.
    send_before: Option<Instant>,
    is_to_be_confirmed: bool,
}

/// A change under way. Dropped without having written, or after an error, it leaves nothing behind.
pub struct RegistryWriter<'a> {
    pub reader: RegistryReader<'a>,
    store: &'a Store,
    chain: Chain,
    version_if_written: i64,
    /// Who makes the change, if it is a client.
    pub author: Option<EventAuthor>,
    pub(super) wrote: bool,
    /// Whose clients are called when it is done.
    pub revoked_users: Vec<Subject>,
    /// Who is called when it is done.
    pub revoked_clients: Vec<ClientId>,
}

impl Store {
    /// Runs `change` in one transaction, alone among changes, and bumps the registry's version with
    /// it. When `change` fails or writes nothing, nothing happens at all. Not retried: it may have
    /// been done when the connection breaks.
    pub fn change_registry<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut RegistryWriter<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let send_before = send_before(LEAST_FOR_A_WRITE);
        let (answer, chain) = self.administer(|client| {
            let mut writer = self.begin_change(client, send_before)?;
            let answer = change(&mut writer)?;
            Ok::<_, E>((answer, writer.commit()?))
        })?;
        if let Some(mut chain) = chain {
            chain.commit();
        }
        Ok(answer)
    }

    /// Reads what is registered, all of it as of one moment. Takes no lock: nobody who changes it
    /// meanwhile waits for this, or is waited for.
    pub fn read_registry<T, E: From<StoreError>>(
        &self,
        read: impl FnOnce(&mut RegistryReader<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let send_before = send_before(Duration::ZERO);
        self.administer(|client| {
            let mut reader = begin_reading(client, send_before)?;
            let answer = read(&mut reader)?;
            if reader.is_to_be_confirmed {
                drop(reader);
                self.committing(client, |client| Ok(client.query(CONFIRM, &[])?))?;
            }
            Ok(answer)
        })
    }

    fn begin_change<'a>(
        &'a self,
        client: &'a mut Client,
        send_before: Option<Instant>,
    ) -> Result<RegistryWriter<'a>> {
        let mut transaction = client.transaction()?;
        // Another change holds the lock for longer than we wait.
        let alone = transaction.query_opt(BUMP, &[]).map_err(StoreError::from);
        if alone.as_ref().is_err_and(StoreError::is_conflict) {
            let cause = "another change to the registry is under way; nothing was done, try again";
            return Err(StoreError::Conflict(String::from(cause)));
        }
        let alone = alone?.ok_or_else(|| {
            StoreError::Refused(String::from("no installation: run `gatepost migrate`"))
        })?;
        self.clock().adjust(column(&alone, "now")?, Duration::ZERO);
        Ok(RegistryWriter {
            reader: RegistryReader {
                transaction,
                version: column(&alone, "version")?,
                holds_users: true,
                send_before,
                is_to_be_confirmed: false,
            },
            store: self,
            chain: self.chains().begin_tentatively(),
            version_if_written: column(&alone, "version_afterwards")?,
            author: None,
            wrote: false,
            revoked_users: Vec::new(),
            revoked_clients: Vec::new(),
        })
    }
}

/// When the request that this thread serves, if it serves one, has only so much time left.
fn send_before(least: Duration) -> Option<Instant> {
    worker::budget().map(|budget| Instant::now() + budget.left.saturating_sub(least))
}

fn begin_reading(client: &mut Client, send_before: Option<Instant>) -> Result<RegistryReader<'_>> {
    let of_one_moment = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true);
    let mut transaction = of_one_moment.start()?;
    let found = transaction
        .query_opt(VERSION, &[])?
        .ok_or_else(StoreError::no_installation)?;
    Ok(RegistryReader {
        transaction,
        version: column(&found, "registry_version")?,
        holds_users: false,
        send_before,
        is_to_be_confirmed: false,
    })
}

impl RegistryReader<'_> {
    /// The version that was found.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Has confirmed what was read, on the same connection and once it is read: a standby has it
    /// before the answer says that it stands.
    pub fn confirm(&mut self) {
        self.is_to_be_confirmed = true;
    }

    pub fn read(&mut self, bound: Bound<'_>) -> Result<Vec<Row>> {
        self.read_as(&bound.text(), bound.values)
    }

    /// A statement that was written out, and changed.
    pub fn read_as(&mut self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        require_time(self.send_before)?;
        Ok(self.transaction.query(text, values)?)
    }

    /// A command without values, such as `SET LOCAL`.
    pub fn run(&mut self, command: &'static str) -> Result {
        require_time(self.send_before)?;
        Ok(self.transaction.batch_execute(command)?)
    }

    pub fn list<T, L: FromIterator<T>>(
        &mut self,
        bound: Bound<'_>,
        of: impl Fn(&Row) -> Result<T>,
    ) -> Result<L> {
        self.read(bound)?.iter().map(of).collect()
    }

    pub(super) fn read_one(&mut self, bound: Bound<'_>) -> Result<Row> {
        require_time(self.send_before)?;
        Ok(self.transaction.query_one(&bound.text(), bound.values)?)
    }
}

const CALL_CLIENTS: &str = "
UPDATE session_clients SET due_at = clock_timestamp()
WHERE (sub = ANY(:subs::text[]) OR client_id = ANY(:client_ids::text[]))
  AND due_at IS NULL AND tries = 0";

impl RegistryWriter<'_> {
    /// For a change that finds its work done: where commits wait for standbys it commits all the
    /// same, and waits.
    pub fn confirm(&mut self) -> Result {
        self.wrote |= column::<bool>(&self.reader.read_one(bind!(CONFIRM))?, "waits")?;
        Ok(())
    }

    /// Runs a statement that writes events: their rows are its last parameter.
    pub fn audited(&mut self, bound: Bound<'_>, events: &[AuditEvent<'_>]) -> Result<Vec<Row>> {
        let links = match &self.author {
            Some(author) => {
                let signed: Vec<_> = events.iter().map(|event| author.signed(event)).collect();
                self.chain.link(&signed)
            }
            None => self.chain.link(events),
        };
        let rows = self.query(Bound {
            values: &[bound.values, &[&links.0]].concat(),
            ..bound
        })?;
        self.chain.advance(&links, &rows)?;
        Ok(rows)
    }

    /// The version that is in force when this change is done.
    pub fn version_afterwards(&self) -> i64 {
        if self.wrote {
            self.version_if_written
        } else {
            self.reader.version
        }
    }

    pub fn query(&mut self, bound: Bound<'_>) -> Result<Vec<Row>> {
        self.wrote = true;
        self.reader.read(bound)
    }

    pub fn execute(&mut self, bound: Bound<'_>) -> Result<u64> {
        self.wrote = true;
        require_time(self.reader.send_before)?;
        let transaction = &mut self.reader.transaction;
        Ok(transaction.execute(&bound.text(), bound.values)?)
    }

    /// Commits what it wrote, and answers the chain of its events; `None` where it wrote nothing.
    fn commit(mut self) -> Result<Option<Chain>> {
        if !self.wrote {
            return Ok(None);
        }
        // Last, so that people who signed in meanwhile are among them.
        if !self.revoked_users.is_empty() || !self.revoked_clients.is_empty() {
            self.call_clients()?;
        }
        require_time(self.reader.send_before)?;
        self.store.commit(self.reader.transaction)?;
        Ok(Some(self.chain))
    }

    fn call_clients(&mut self) -> Result {
        let bound = bind!(
            CALL_CLIENTS,
            subs = self.revoked_users,
            client_ids = self.revoked_clients
        );
        let transaction = &mut self.reader.transaction;
        Ok(transaction.execute(&bound.text(), bound.values).map(drop)?)
    }
}
