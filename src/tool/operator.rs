//! What most commands stand on: the settings, the database they name, and the keys of its
//! installation.

use std::io::{self, Write};
use std::ops::Deref;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::arguments::Invocation;
use super::output::{CommandResult, Failure, note};
use gatepost_protocol::audit::audit_chain::COMMAND;
use gatepost_protocol::words::instant::Instant;
use gatepost_server::app;
use gatepost_server::config::Config;
use gatepost_server::keys::master::{DerivedKeys, MasterSecret};
use gatepost_server::keys::password::PasswordHashing;
use gatepost_server::outbound::Outbound;
use gatepost_server::registry::Sealers;
use gatepost_store::clients::LongestLifetimes;
use gatepost_store::installation::{self, Installation};
use gatepost_store::named_thread;
use gatepost_store::partitions::Horizons;
use gatepost_store::signing_keys;
use gatepost_store::{DatabaseSettings, Interruption, Result, Store, migrate};

/// Every process reads once a second what is new.
pub const EVERYWHERE: Duration = Duration::from_secs(2);

/// Waits until every process has heard of a revocation. Until it has, it gives clients tokens that
/// are revoked already.
pub fn await_everywhere() {
    note(
        "Ask for new tokens when this command ends, in 2 seconds. A process that has not heard of \
         the revocation yet gives tokens that are refused as long as they live.",
    );
    thread::sleep(EVERYWHERE);
}

/// What was typed, the settings, and the database that they name.
pub struct OpenDatabase {
    invocation: Invocation,
    pub config: Config,
    pub store: Store,
}

impl Deref for OpenDatabase {
    type Target = Invocation;

    fn deref(&self) -> &Invocation {
        &self.invocation
    }
}

/// The same with an installation in it, for which this program and these settings fit.
pub struct Operator {
    pub database: OpenDatabase,
    pub installation: Installation,
}

impl Deref for Operator {
    type Target = OpenDatabase;

    fn deref(&self) -> &OpenDatabase {
        &self.database
    }
}

impl Operator {
    pub fn open(invocation: &Invocation) -> CommandResult<Operator> {
        let database = OpenDatabase::open(invocation)?;
        migrate::check_level(&database.store)?;
        let found = installation::find(&database.store)?;
        let installation =
            found.ok_or_else(|| Failure::refused("no installation: run `gatepost migrate`"))?;
        installation::check_issuer(&installation, database.config.base_url.as_str())
            .map_err(|moved| Failure::Configuration(moved.to_string()))?;
        if names_people(invocation) {
            installation::check_lowering(&installation)?;
        }
        database
            .store
            .clock()
            .adjust(database.now()?, Duration::ZERO);
        Ok(Operator {
            database,
            installation,
        })
    }

    /// What the installation's own secrets are derived from.
    pub fn derived(&self) -> CommandResult<DerivedKeys> {
        let Installation { id, issuer, .. } = &self.installation;
        Ok(self.master_secret()?.derive(id, issuer))
    }

    pub fn unchecked_sealers(&self) -> CommandResult<Sealers> {
        Ok(Sealers::new(&self.derived()?))
    }

    /// By the master secret of this database: the server could not open what another seals.
    pub fn sealers(&self) -> CommandResult<Sealers> {
        self.sealers_of(&self.installation)
    }
}

impl OpenDatabase {
    /// Connects to nothing yet.
    pub fn open(invocation: &Invocation) -> CommandResult<OpenDatabase> {
        let config = invocation.config()?;
        let of_server = gatepost_server::serve::database_settings(&config);
        let settings = DatabaseSettings {
            connections: 1,
            workers: 5,
            cancel_after: Duration::from_secs(30),
            stuck_after: Duration::from_secs(60),
            process: format!("{COMMAND}{}", of_server.process),
            ..of_server
        };
        let store = Store::open_for_operator(&settings, Arc::new(|| end(IN_DOUBT)))
            .map_err(|error| Failure::Configuration(error.to_string()))?;
        heed_signals(store.clone())?;
        Ok(OpenDatabase {
            invocation: invocation.clone(),
            config,
            store,
        })
    }

    pub fn sealers_of(&self, installation: &Installation) -> CommandResult<Sealers> {
        let Installation { id, issuer, .. } = installation;
        let sealers = Sealers::new(&self.master_secret()?.derive(id, issuer));
        for key in signing_keys::load(&self.store)?.value {
            if let Some(wrapped) = &key.wrapped_private
                && sealers.signing_keys.open(wrapped.expose()).is_none()
            {
                return Err(Failure::Configuration(format!(
                    "GATEPOST_SECRET_FILE is not the master secret of this database, or a line of \
                     it is missing: signing key {} does not open under it (when it is lost for \
                     good: `gatepost key reset`)",
                    key.kid
                )));
            }
        }
        Ok(sealers)
    }

    pub fn master_secret(&self) -> CommandResult<MasterSecret> {
        let missing = "GATEPOST_SECRET_FILE is required: `gatepost secret > FILE` makes one, \
                       readable by its owner only";
        let path = self
            .config
            .secret_file
            .as_ref()
            .ok_or_else(|| Failure::Configuration(String::from(missing)))?;
        MasterSecret::read(path).map_err(Failure::Configuration)
    }

    /// For requests of our own, as a server makes them.
    pub fn outbound(&self) -> CommandResult<Outbound> {
        let ca_file = self.config.ca_file.as_deref();
        Outbound::new(&self.config.outbound_allow, ca_file, 1).map_err(Failure::Configuration)
    }

    pub fn password_hashing(&self) -> CommandResult<PasswordHashing> {
        PasswordHashing::new(app::cost(&self.config)).map_err(Failure::Configuration)
    }

    pub fn horizons(&self, registered: LongestLifetimes) -> Horizons {
        app::horizons(&self.config, &registered)
    }

    /// What a removal does not find may be gone by an earlier try, whose wait for a standby was cut
    /// off. That is confirmed before the command says that nothing is there.
    pub fn confirmed<T>(&self, found: CommandResult<T>) -> CommandResult<T> {
        if found.is_err() {
            self.store.confirm()?;
        }
        found
    }

    pub fn now(&self) -> CommandResult<Instant> {
        Ok(installation::read(&self.store)?.now)
    }
}

/// What the database did not answer although it was cancelled.
const IN_DOUBT: &str = "the database does not answer: it may be done; repeat it";

/// Cancels what the database does for a command that somebody interrupts: it would go on with it,
/// and hold its locks, for as long as it waits for a standby. The command tells how that ended.
fn heed_signals(store: Store) -> CommandResult {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    named_thread::spawn("signals", move || {
        for signal in signals.forever() {
            match store.interrupt() {
                Interruption::Idle => {
                    let _ = emulate_default_handler(signal);
                }
                Interruption::Answered => {}
                Interruption::Undone => end("interrupted: nothing was done"),
                Interruption::InDoubt => end(IN_DOUBT),
            }
        }
    })?;
    Ok(())
}

/// Ends the process in the place of the thread that works.
fn end(told: &str) {
    log::logger().flush();
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "gatepost: {told}");
    process::exit(1)
}

/// Whether the command changes people, or finds somebody by name.
fn names_people(invocation: &Invocation) -> bool {
    let command = invocation.command.name;
    match command {
        "user list" => false,
        "plan" | "apply" => true,
        _ => command.starts_with("user ") || invocation.has("--user"),
    }
}

/// Every row, or as many as are asked for where no word is; a thousand at a time. `page` reads so
/// many behind the last.
pub fn all<T>(
    invocation: &Invocation,
    page: impl Fn(Option<&T>, i64) -> Result<Vec<T>>,
) -> CommandResult<Vec<T>> {
    let enough = invocation
        .limit()?
        .filter(|_| invocation.word().is_none())
        .unwrap_or(usize::MAX);
    let mut found: Vec<T> = Vec::new();
    loop {
        let rows = page(found.last(), 1_000)?;
        let is_last = rows.len() < 1_000;
        found.extend(rows);
        if is_last || found.len() >= enough {
            return Ok(found);
        }
    }
}
