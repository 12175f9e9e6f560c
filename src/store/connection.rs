//! One connection of the pool: its prepared statements, its age, and whether it may be used again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::Json;
use postgres::{CancelToken, Client, Config, Row, SimpleQueryMessage, Statement};
use r2d2::{CustomizeConnection, ManageConnection};
use serde_json::Value;

use super::audit_chain::{Alternatives, Chain, Chains, Links};
use super::audit_event::{AuditEvent, INSERT};
use super::connecting::{Connector, Unacknowledged};
use super::error::{AWAY_TARGET, FunctionAnswer, StoreError, ends_connection, loses_statements};
use super::mutex::Mutex;
use super::seen_partitions::{Partitions, SeenPartitions, under};
use super::statement::{Bound, Values, bind, written_for};
use super::values::column;
use crate::Result;
use crate::named_thread;

/// How long a connection that was idle may take to prove that it lives.
pub const PROOF_OF_LIFE: Duration = Duration::from_millis(500);

/// How many statements a connection keeps prepared. Some are prepared once for each partition that
/// they name, and each takes memory of its backend.
const STATEMENTS: usize = 200;

/// A pooled connection. Each statement is prepared once and then kept.
pub struct Connection {
    pub client: Client,
    pub cancel_token: Arc<CancelToken>,
    /// By where its text and its names lie, which is shorter to hash than the text.
    statements: HashMap<([usize; 3], Partitions), Statement>,
    chain: Chain,
    seen_partitions: Arc<SeenPartitions>,
    /// Whether the statement at hand names partitions.
    names_partitions: bool,
    pub last_used: Instant,
    generation: u64,
    pub discarded: bool,
    /// Found broken while in use: others may be, too.
    pub lost: bool,
    /// Sends nothing from then on: the request's time is over, or too short for a write.
    pub send_before: Option<Instant>,
    /// Set by the watchdog: a cancel request may still be on its way to this backend.
    pub cancelled: Arc<AtomicBool>,
    /// Of its pool.
    pub is_retired: Arc<AtomicBool>,
    unacknowledged: Unacknowledged,
}

pub(super) fn require_time(send_before: Option<Instant>) -> Result {
    match send_before {
        Some(time) if Instant::now() >= time => Err(StoreError::OutOfTime),
        _ => Ok(()),
    }
}

impl Connection {
    /// A statement without values is asked for seldom, as at the start: one round trip, where
    /// preparing it first takes two.
    pub fn query(&mut self, bound: Bound<'_>) -> Result<Vec<Row>> {
        if bound.values.is_empty() {
            require_time(self.send_before)?;
            let rows = self.client.query_typed(&bound.text(), &[]);
            return self.judged(rows);
        }
        let statement = self.prepared(bound)?;
        require_time(self.send_before)?;
        let rows = self.client.query(&statement, bound.values);
        self.judged(rows)
    }

    pub fn query_opt(&mut self, bound: Bound<'_>) -> Result<Option<Row>> {
        Ok(self.query(bound)?.into_iter().next())
    }

    pub fn query_one(&mut self, bound: Bound<'_>) -> Result<Row> {
        self.query_opt(bound)?
            .ok_or_else(StoreError::no_installation)
    }

    pub fn execute(&mut self, bound: Bound<'_>) -> Result<u64> {
        let statement = self.prepared(bound)?;
        require_time(self.send_before)?;
        let touched = self.client.execute(&statement, bound.values);
        self.judged(touched)
    }

    /// Runs a statement that writes events. Their rows are its last parameter, and the column
    /// `audited` of its answer has the hashes of those that it wrote.
    pub fn audited(&mut self, bound: Bound<'_>, events: &[AuditEvent<'_>]) -> Result<Vec<Row>> {
        let links = self.chain.link(events);
        self.linked(bound, &links)
    }

    fn linked(&mut self, bound: Bound<'_>, links: &Links) -> Result<Vec<Row>> {
        let rows = self.query(Bound {
            values: &[bound.values, &[&links.0]].concat(),
            ..bound
        })?;
        self.chain.advance(links, &rows)?;
        Ok(rows)
    }

    /// Runs a statement that writes one of these events, or none. Its values come last, one by one,
    /// which takes Postgres less time than rows; the column `audited` of its answer has the hash.
    /// The row that opens the chain comes before, alone.
    pub(super) fn audited_alternatively(
        &mut self,
        bound: Bound<'_>,
        events: &Alternatives<'_>,
    ) -> Result<Vec<Row>> {
        let at = self.chain.now();
        if let Some(opening) = self.chain.link_opening(at) {
            self.linked(bind!(INSERT), &opening)?;
        }
        let link = self.chain.link_alternatives(events, at);
        let [first, second, _] = bound.days;
        let rows = self.query(Bound {
            values: &[bound.values, &link.values()].concat(),
            days: [first, second, under("audit_events", Some(link.row.day))],
            ..bound
        })?;
        self.chain.advance_alternatively(link, &rows)?;
        Ok(rows)
    }

    /// Runs a statement around a function that is not ours, prepared anew each time: it may have
    /// been replaced meanwhile. Its one column is `answer`. What the function itself objects is
    /// told apart from what went wrong.
    pub fn call(&mut self, sql: &str, values: Values<'_>) -> Result<FunctionAnswer> {
        require_time(self.send_before)?;
        self.names_partitions = false;
        let rows = self.client.query(sql, values);
        let objection = rows.as_ref().err().and_then(FunctionAnswer::objection);
        match (self.judged(rows), objection) {
            (Ok(rows), _) => {
                let answer = rows.first();
                let answer = answer.map(|row| column::<Option<Json<Value>>>(row, "answer"));
                let answer = answer.transpose()?.flatten();
                Ok(answer.map_or(FunctionAnswer::Null, |Json(value)| {
                    FunctionAnswer::Value(value)
                }))
            }
            (Err(_), Some(objection)) => Ok(objection),
            (Err(error), None) => Err(error),
        }
    }

    fn prepared(&mut self, bound: Bound<'_>) -> Result<Statement> {
        let Bound { sql, names, .. } = bound;
        let place = [sql.as_ptr().addr(), sql.len(), names.as_ptr().addr()];
        let seen = &self.seen_partitions;
        let partitions = bound.days.map(|day| seen.of(day?));
        self.names_partitions = partitions.iter().any(Option::is_some);
        let place = (place, partitions);
        if let Some(statement) = self.statements.get(&place) {
            return Ok(statement.clone());
        }
        require_time(self.send_before)?;
        let prepared = self.client.prepare(&written_for(sql, names, &partitions));
        let statement = self.judged(prepared)?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(place, statement.clone());
        Ok(statement)
    }

    /// Decides whether this connection outlives the answer, and whether the answer may be believed.
    fn judged<T>(&mut self, answer: Result<T, postgres::Error>) -> Result<T> {
        match answer {
            Ok(_) if self.unacknowledged.load(Ordering::SeqCst) => {
                self.discarded = true;
                Err(StoreError::Unacknowledged)
            }
            Ok(value) => Ok(value),
            // A partition that was seen is dropped: the next try names the table.
            Err(error)
                if error.code() == Some(&SqlState::UNDEFINED_TABLE) && self.names_partitions =>
            {
                self.seen_partitions.forget();
                Err(StoreError::Conflict(error.to_string()))
            }
            Err(error) => {
                self.lost |= error.code().is_none_or(ends_connection);
                self.discarded |= error.code().is_some_and(loses_statements);
                Err(StoreError::from(error))
            }
        }
    }

    /// Whether some connection was found dead after this one was made.
    pub fn is_before(&self, generation: &AtomicU64) -> bool {
        self.generation < generation.load(Ordering::SeqCst)
    }
}

pub type Away = Arc<Mutex<Vec<(StoreError, Instant)>>>;

/// How often the log hears of what has not changed.
const AGAIN: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct Connections {
    pub config: Config,
    pub connector: Connector,
    /// Grows with each connection found dead: whatever was connected before is suspect.
    pub generation: Arc<AtomicU64>,
    pub chains: Chains,
    pub seen_partitions: Arc<SeenPartitions>,
    /// Why there has been no connection since there was one, and when the log was told so.
    pub away: Away,
    /// Whether the server's settings were compared with those asked for.
    pub compared: Arc<AtomicBool>,
    /// Whether a statement hangs on a connection of this pool, so that there shall be another pool.
    pub is_retired: Arc<AtomicBool>,
}

impl Connections {
    /// Tells the log why there is no connection: once until there is one again, and once a minute.
    /// Several causes may take turns meanwhile.
    fn tell(&self, error: Option<&StoreError>) {
        let mut away = self.away.lock();
        let Some(error) = error else {
            return away.clear();
        };
        if !away
            .iter()
            .any(|(told, at)| told == error && at.elapsed() < AGAIN)
        {
            log::warn!(target: AWAY_TARGET, "{error}");
            away.retain(|(told, _)| told != error);
            away.push((error.clone(), Instant::now()));
        }
    }
}

/// Warns where a pooler in between drops, without a word, the settings that a connection asks for.
fn compare_settings(asked_for: &str, client: &mut Client) -> Result<(), postgres::Error> {
    let shown = client
        .simple_query("SELECT setting, source FROM pg_settings WHERE name = 'statement_timeout'")?;
    for message in &shown {
        let SimpleQueryMessage::Row(row) = message else {
            continue;
        };
        let setting = row.get(0).unwrap_or_default();
        if row.get(1) != Some("client")
            && !asked_for.contains(&format!("-c statement_timeout={setting} "))
        {
            log::warn!(
                "statement_timeout is {setting} ms, not what Gatepost asks for: \
                 a pooler in between drops such settings. \
                 Set them for the role by ALTER ROLE ... SET; \
                 docs/operate/several-machines.md has them"
            );
        }
    }
    Ok(())
}

impl ManageConnection for Connections {
    type Connection = Connection;
    type Error = StoreError;

    fn connect(&self) -> Result<Connection> {
        if self.is_retired.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable(String::from(
                "another pool makes connections now",
            )));
        }
        let generation = self.generation.load(Ordering::SeqCst);
        let compared = Arc::clone(&self.compared);
        let asked_for = self.config.get_options().unwrap_or_default().to_owned();
        let check = move |client: &mut Client| {
            if compared.swap(true, Ordering::SeqCst) {
                return Ok(());
            }
            compare_settings(&asked_for, client)
        };
        let connected = self.connector.connect(self.config.clone(), check);
        self.tell(connected.as_ref().err());
        let (client, unacknowledged) = connected?;
        Ok(self.fresh(client, unacknowledged, generation))
    }

    fn is_valid(&self, connection: &mut Connection) -> Result {
        Ok(connection.client.is_valid(PROOF_OF_LIFE)?)
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.discarded
            || connection.lost
            || connection.cancelled.load(Ordering::SeqCst)
            || connection.client.is_closed()
            || connection.is_before(&self.generation)
            || self.is_retired.load(Ordering::SeqCst)
    }
}

impl Connections {
    fn fresh(&self, client: Client, unacknowledged: Unacknowledged, generation: u64) -> Connection {
        Connection {
            cancel_token: Arc::new(client.cancel_token()),
            client,
            statements: HashMap::new(),
            chain: self.chains.begin(),
            seen_partitions: Arc::clone(&self.seen_partitions),
            names_partitions: false,
            last_used: Instant::now(),
            generation,
            discarded: false,
            lost: false,
            send_before: None,
            cancelled: Arc::new(AtomicBool::new(false)),
            is_retired: Arc::clone(&self.is_retired),
            unacknowledged,
        }
    }
}

/// Closes connections on a thread of its own: closing one that still waits for an answer waits for
/// it, too, and a frozen server would hold up the request that found it dead.
#[derive(Debug)]
pub struct ClosedElsewhere;

impl CustomizeConnection<Connection, StoreError> for ClosedElsewhere {
    fn on_release(&self, connection: Connection) {
        if named_thread::spawn("store-close", move || drop(connection)).is_err() {
            log::warn!("no thread to close a database connection with");
        }
    }
}
