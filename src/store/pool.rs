//! The way to a connection: a bounded lane, a pool that never blocks for long, and a watch over
//! what runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use postgres::{CancelToken, Client, Row, Transaction};

use super::audit_chain::{Alternatives, Chains};
use super::audit_event::AuditEvent;
use super::connecting::{Connector, Unacknowledged};
use super::connection::{Connection, Connections, PROOF_OF_LIFE, require_time};
use super::database_url::{
    ADMINISTRATIVE_OPTIONS, DatabaseUrl, FUNCTION_OPTIONS, OPERATOR_OPTIONS, PARTITION_OPTIONS,
    SERVING_OPTIONS, SURVEY_OPTIONS,
};
use super::endings::Confirmed;
use super::error::StoreError;
use super::mutex::Mutex;
use super::seen_partitions::SeenPartitions;
use super::statement::Bound;
use super::supply::{CHECK_OUT_PATIENCE, Supplies};
use super::watchdog::{A_YEAR, Interruption, RequestEnd, Watchdog};
use crate::Result;
use crate::clock::Clock;
use crate::worker::{self, GiveUp, Permit, Permits};
use gatepost_protocol::words::secret::SecretText;

/// How long a worker waits for its place in the lane. Meanwhile it serves nobody else. A request
/// that comes back from an identity provider or from hashing keeps no worker, and cannot be sent
/// again: it waits as long as for a connection.
const LANE_PATIENCE: Duration = Duration::from_millis(250);
/// No write is sent for a request that could not wait so long for its answer.
pub const LEAST_FOR_A_WRITE: Duration = Duration::from_millis(1_500);
/// Of the places in the lane and of the connections, a quarter and at least so many are kept for
/// reads: writes may all be waiting for a standby.
const KEPT_FOR_READS: usize = 3;
/// How long a statement that was denied speaks for the next.
const LATELY: Duration = Duration::from_secs(60);
const WORKERS_KEPT_FREE: usize = 4;

#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    pub url: SecretText,
    pub connections: u32,
    /// Worker threads of the server; all but four may use the database at once.
    pub workers: usize,
    /// A statement older than this is cancelled: 3 s.
    pub cancel_after: Duration,
    /// A statement older than this makes [`Store::is_stuck`] true: 5 s.
    pub stuck_after: Duration,
    /// Names this process in audit events; random, new at each start.
    pub process: String,
    /// Days that audit events are kept.
    pub audit_days: u16,
}

/// The database. Cheap to clone; every table's functions take it by reference.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    supplies: Supplies,
    lane: Permits,
    /// Places in the lane, and connections, that writes may take.
    writers: Permits,
    writing: Permits,
    generation: Arc<AtomicU64>,
    watchdog: Watchdog,
    url: DatabaseUrl,
    connector: Connector,
    clock: Arc<Clock>,
    chains: Chains,
    confirmed: Confirmed,
    seen_partitions: Arc<SeenPartitions>,
    /// What the server answered that it does not do, and when last.
    denied: Mutex<BTreeMap<String, Instant>>,
    /// Ends a command that the database does not answer although it was cancelled.
    give_up: Option<GiveUp>,
}

/// How many requests may do what at once.
struct Places {
    /// Use the database.
    lane: usize,
    /// Write, or wait for a connection to write on.
    writers: usize,
    /// Write on a connection.
    writing: usize,
}

impl Store {
    /// Reads the settings and starts the pool. Connects to nothing yet: the server starts without
    /// its database.
    pub fn open(settings: &DatabaseSettings) -> Result<Store> {
        Store::open_placed(settings, &SERVING_OPTIONS, None)
    }

    /// The same for a command of an operator, which may take longer than a request. `give_up` ends
    /// one that the database does not answer although it was cancelled.
    pub fn open_for_operator(settings: &DatabaseSettings, give_up: GiveUp) -> Result<Store> {
        // The server takes the last of two settings of one name.
        let options = [&SERVING_OPTIONS[..], &OPERATOR_OPTIONS].concat();
        Store::open_placed(settings, &options, Some(give_up))
    }

    fn open_placed(
        settings: &DatabaseSettings,
        options: &[(&str, &str)],
        give_up: Option<GiveUp>,
    ) -> Result<Store> {
        let lane = settings.workers.saturating_sub(WORKERS_KEPT_FREE).max(1);
        let for_writes = |all: usize| (all - KEPT_FOR_READS.max(all / 4).min(all / 2)).max(1);
        let places = Places {
            lane,
            writers: for_writes(lane),
            writing: for_writes(settings.connections as usize),
        };
        let idle = settings.connections.min(2);
        Store::open_with(settings, options, idle, places, give_up)
    }

    /// The same for functions that operators write: each call has one second, a quarter of the
    /// workers call at once, and no connection is made before the first call.
    pub fn open_for_functions(settings: &DatabaseSettings) -> Result<Store> {
        let lane = (settings.workers / 4).max(1);
        let connections = u32::try_from(lane).unwrap_or(u32::MAX);
        let settings = DatabaseSettings {
            connections,
            ..settings.clone()
        };
        let places = Places {
            lane,
            writers: lane,
            writing: lane,
        };
        Store::open_with(&settings, &FUNCTION_OPTIONS, 0, places, None)
    }

    fn open_with(
        settings: &DatabaseSettings,
        options: &[(&str, &str)],
        idle: u32,
        places: Places,
        give_up: Option<GiveUp>,
    ) -> Result<Store> {
        let url = DatabaseUrl::parse(settings.url.expose())?;
        let connector = Connector::new(url.root_certificates.as_deref())?;
        let generation = Arc::<AtomicU64>::default();
        let clock = Arc::new(Clock::default());
        let chains = Chains::new(
            Arc::clone(&clock),
            settings.process.clone(),
            settings.audit_days,
        );
        let seen_partitions = Arc::<SeenPartitions>::default();
        let connections = Connections {
            config: url.config(options),
            connector: connector.clone(),
            generation: Arc::clone(&generation),
            chains: chains.clone(),
            seen_partitions: Arc::clone(&seen_partitions),
            away: Arc::default(),
            compared: Arc::default(),
            is_retired: Arc::default(),
        };
        let size = settings.connections.max(1);
        let watchdog = Watchdog::start(
            settings.cancel_after,
            settings.stuck_after,
            size as usize,
            connector.tls.clone(),
        )
        .map_err(|_| {
            StoreError::Refused(String::from("cannot start the database watchdog's thread"))
        })?;
        Ok(Store(Arc::new(Inner {
            supplies: Supplies::new(connections, size, idle),
            lane: Permits::new(places.lane),
            writers: Permits::new(places.writers),
            writing: Permits::new(places.writing),
            generation,
            watchdog,
            url,
            connector,
            clock,
            chains,
            confirmed: Confirmed::default(),
            seen_partitions,
            denied: Mutex::default(),
            give_up,
        })))
    }

    /// Whether a statement hangs that could not be cancelled; should it stay, this process had
    /// better make way for a new one.
    pub fn is_stuck(&self) -> bool {
        self.0.watchdog.is_stuck()
    }

    /// The last minute's refusal of the server (read-only, disk full): reads may go on, so nothing
    /// else shows it.
    pub fn denied_lately(&self) -> BTreeSet<String> {
        let mut denied = self.0.denied.lock();
        denied.retain(|_, at| at.elapsed() < LATELY);
        denied.keys().cloned().collect()
    }

    pub fn answers_anew(&self) -> bool {
        self.connect(&SERVING_OPTIONS)
            .is_ok_and(|(mut client, _)| client.is_valid(PROOF_OF_LIFE).is_ok())
    }

    /// Whether there is no connection, and none could be made.
    pub fn is_away(&self) -> bool {
        self.0.supplies.current().is_away()
    }

    /// Opens the connections that there may be, so that they are ready before requests come.
    pub fn open_connections(&self) {
        self.0.supplies.current().open_connections();
    }

    /// Runs migrations, `apply` and the like on a connection of its own, with time-outs of its own.
    /// The watchdog looks only after what a request waits for. What no standby acknowledged is no
    /// success.
    pub fn administer<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&mut Client) -> Result<T, E>,
    ) -> Result<T, E> {
        let (answer, unacknowledged) = self.aside(&ADMINISTRATIVE_OPTIONS, work)?;
        if unacknowledged.load(Ordering::SeqCst) {
            Err(StoreError::Unacknowledged.into())
        } else {
            Ok(answer)
        }
    }

    /// Commits. Nobody watches the work of a command, or the upkeep of a server, which may be long;
    /// its commit is watched. It may wait for a standby that is lost, and what it has locked keeps
    /// others waiting meanwhile.
    pub fn commit(&self, transaction: Transaction<'_>) -> Result {
        self.watched(transaction.cancel_token(), || Ok(transaction.commit()?))
    }

    /// The same of what commits by itself.
    pub fn committing<T>(
        &self,
        client: &mut Client,
        work: impl FnOnce(&mut Client) -> Result<T>,
    ) -> Result<T> {
        self.watched(client.cancel_token(), || work(client))
    }

    fn watched<T>(&self, token: CancelToken, commit: impl FnOnce() -> Result<T>) -> Result<T> {
        // A request is watched as a whole.
        if worker::budget().is_some() {
            return commit();
        }
        let cancelled = Arc::<AtomicBool>::default();
        let request = self.request_end();
        let watchdog = &self.0.watchdog;
        let watched = watchdog.watch(
            Arc::new(token),
            Arc::clone(&cancelled),
            Arc::default(),
            request,
        )?;
        let done = commit()?;
        drop(watched);
        // Its wait was ended, which looks like success.
        if cancelled.load(Ordering::SeqCst) {
            return Err(StoreError::Unacknowledged);
        }
        Ok(done)
    }

    /// Cancels whatever this process waits for, and sends nothing more from then on.
    pub fn interrupt(&self) -> Interruption {
        self.0.watchdog.interrupt()
    }

    /// Works on a connection of its own, watched where a request waits for it.
    fn aside<T, E: From<StoreError>>(
        &self,
        options: &[(&str, &str)],
        work: impl FnOnce(&mut Client) -> Result<T, E>,
    ) -> Result<(T, Unacknowledged), E> {
        let begun = Instant::now();
        let request = worker::budget().map(|budget| RequestEnd::after(budget.left, budget.give_up));
        let (mut client, unacknowledged) = self.connect(options)?;
        let token = Arc::new(client.cancel_token());
        let watchdog = &self.0.watchdog;
        let watched = match request {
            Some(_) => watchdog.watch(token, Arc::default(), Arc::default(), request)?,
            None => watchdog.note(token)?,
        };
        let answer = work(&mut client);
        drop(watched);
        worker::spend(begun.elapsed());
        Ok((answer?, unacknowledged))
    }

    /// Reads many rows for an administrator, over a connection of its own: those of requests are
    /// planned for look-ups by keys.
    pub fn survey<T>(&self, work: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
        Ok(self.aside(&SURVEY_OPTIONS, work)?.0)
    }

    /// A connection of its own for partitions: gives up on a lock after 100 ms.
    pub fn connect_for_partitions(&self) -> Result<Client> {
        Ok(self.connect(&PARTITION_OPTIONS)?.0)
    }

    /// The clock that events are dated by. Each reading of the database's clock adjusts it.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.0.clock
    }

    pub fn chains(&self) -> &Chains {
        &self.0.chains
    }

    pub fn confirmed(&self) -> &Confirmed {
        &self.0.confirmed
    }

    pub fn seen_partitions(&self) -> &SeenPartitions {
        &self.0.seen_partitions
    }

    /// The pool's connections, the idle ones among them, and how many it may have.
    pub fn pool_figures(&self) -> [u32; 3] {
        self.0.supplies.current().figures()
    }

    /// Runs something that changes nothing: once more after a conflict or on a fresh connection.
    pub fn read<T>(&self, work: impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        self.again_if(StoreError::is_conflict_or_severed, Duration::ZERO, work)
    }

    /// Runs one writing statement: once more only after a conflict, which certainly did nothing.
    pub fn write<T>(&self, work: impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        self.again_if(StoreError::is_conflict, LEAST_FOR_A_WRITE, work)
    }

    /// Runs one statement that writes one of these events, or none, and recognises its own earlier
    /// commit: once more also when the answer was lost.
    pub fn write_once_more(&self, bound: Bound<'_>, events: &Alternatives<'_>) -> Result<Vec<Row>> {
        self.again_if(
            StoreError::is_conflict_or_severed,
            LEAST_FOR_A_WRITE,
            |connection| connection.audited_alternatively(bound, events),
        )
    }

    /// The one row that a statement finds; it changes nothing, and may run twice.
    pub fn find<T>(&self, bound: Bound<'_>, of: impl Fn(&Row) -> Result<T>) -> Result<Option<T>> {
        self.read(|connection| connection.query_opt(bound))?
            .as_ref()
            .map(of)
            .transpose()
    }

    /// The one row that there always is.
    pub fn one(&self, bound: Bound<'_>) -> Result<Row> {
        self.read(|connection| connection.query_one(bound))
    }

    /// Each row that is found.
    pub fn list<T, L: FromIterator<T>>(
        &self,
        bound: Bound<'_>,
        of: impl Fn(&Row) -> Result<T>,
    ) -> Result<L> {
        self.rows(bound)?.iter().map(of).collect()
    }

    /// The rows as they come.
    pub fn rows(&self, bound: Bound<'_>) -> Result<Vec<Row>> {
        self.read(|connection| connection.query(bound))
    }

    /// Runs a statement that writes no event; answers its rows.
    pub fn write_rows(&self, bound: Bound<'_>) -> Result<Vec<Row>> {
        self.write(|connection| connection.query(bound))
    }

    /// Runs a statement that writes no event; answers how many rows it touched.
    pub fn execute(&self, bound: Bound<'_>) -> Result<u64> {
        self.write(|connection| connection.execute(bound))
    }

    /// Runs one statement that writes these events: once more only after a conflict, which
    /// certainly did nothing.
    pub fn write_all_audited(
        &self,
        bound: Bound<'_>,
        events: &[AuditEvent<'_>],
    ) -> Result<Vec<Row>> {
        self.write(|connection| connection.audited(bound, events))
    }

    /// The same with one event.
    pub fn write_audited(&self, bound: Bound<'_>, event: &AuditEvent<'_>) -> Result<Vec<Row>> {
        self.write_all_audited(bound, std::slice::from_ref(event))
    }

    /// The same where no row of an answer means that there was nothing to change: then `false`.
    pub fn change(&self, bound: Bound<'_>, event: &AuditEvent<'_>) -> Result<bool> {
        Ok(!self.write_audited(bound, event)?.is_empty())
    }

    /// Runs it, and again after such an error, within what the request that this thread serves has
    /// left, if it serves one. `least` is what must be left when a statement is sent; a read needs
    /// none.
    fn again_if<T>(
        &self,
        is_such: impl Fn(&StoreError) -> bool,
        least: Duration,
        work: impl Fn(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        match self.once(least, &work) {
            Err(error) if is_such(&error) => self.once(least, &work),
            answer => answer,
        }
    }

    fn once<T>(&self, least: Duration, work: impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let answer = self.in_lane(self.request_end(), least, work);
        worker::spend(begun.elapsed());
        answer
    }

    fn in_lane<T>(
        &self,
        request: Option<RequestEnd>,
        least: Duration,
        work: impl Fn(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let send_before = request
            .as_ref()
            .map(|end| end.at.checked_sub(least).unwrap_or(end.at));
        require_time(send_before)?;
        let patience = if worker::has_post() {
            LANE_PATIENCE
        } else {
            CHECK_OUT_PATIENCE
        };
        if least.is_zero() {
            let _place = take(&self.0.lane, patience, send_before)?;
            return self.on_connection(request, send_before, work);
        }
        let _among_writers = take(&self.0.writers, patience, send_before)?;
        let _place = take(&self.0.lane, patience, send_before)?;
        let _writing = take(&self.0.writing, CHECK_OUT_PATIENCE, send_before)?;
        self.on_connection(request, send_before, work)
    }

    fn on_connection<T>(
        &self,
        request: Option<RequestEnd>,
        send_before: Option<Instant>,
        work: impl Fn(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let mut connection = self.0.supplies.current().check_out(send_before)?;
        connection.send_before = send_before;
        // Before `watch`, which notes what is to be given back should this thread hang.
        let _looking = worker::before_waiting();
        let watched = self.0.watchdog.watch(
            Arc::clone(&connection.cancel_token),
            Arc::clone(&connection.cancelled),
            Arc::clone(&connection.is_retired),
            request,
        )?;
        let answer = work(&mut connection);
        drop(watched);
        connection.last_used = Instant::now();
        if connection.lost {
            self.0.generation.fetch_add(1, Ordering::SeqCst);
        }
        if let Err(StoreError::Denied(cause)) = &answer {
            let mut denied = self.0.denied.lock();
            denied.insert(cause.clone(), Instant::now());
        }
        answer
    }

    /// Of the request that this thread serves, or of the command.
    fn request_end(&self) -> Option<RequestEnd> {
        match worker::budget() {
            Some(budget) => Some(RequestEnd::after(budget.left, budget.give_up)),
            None => Some(RequestEnd::after(A_YEAR, self.0.give_up.clone()?)),
        }
    }

    fn connect(&self, options: &[(&str, &str)]) -> Result<(Client, Unacknowledged)> {
        let config = self.0.url.config(options);
        self.0.connector.connect(config, |_| Ok(()))
    }
}

fn take(permits: &Permits, patience: Duration, until: Option<Instant>) -> Result<Permit<'_>> {
    let left = match until {
        Some(time) => time.saturating_duration_since(Instant::now()),
        None => Duration::MAX,
    };
    permits.take(patience.min(left)).ok_or(StoreError::Busy)
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Store")
    }
}
