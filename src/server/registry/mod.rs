//! What is registered, held in memory: clients by `client_id`, the catalogue and the keys whole.
//! Once a second the database is asked for its version; an entry counts only while it was read at
//! the current one, so a change is in force everywhere a second after its commit.

mod loading;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant as Monotonic};

use crate::keys::master::{DerivedKeys, Purpose};
use crate::keys::sealing::Sealer;
use crate::registry::loading::{Cached, ClientCache};
pub use crate::registry::loading::{
    KeyRing, TextSet, catalogue as read_catalogue, open as open_secret_digest,
};
use gatepost_protocol::login::imported_hash::ImportedHash;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::token::client_secret::SecretDigest;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::clients::{self, ClientRow, LongestLifetimes};
use gatepost_store::clock::Clock;
use gatepost_store::installation::{self, InstallationReading};
use gatepost_store::{Result, Store, StoreError, catalogue, signing_keys, users};

/// A client and its secrets.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    pub client: Client,
    pub secrets: Vec<SecretDigest>,
    /// What it gets stands on these, as of the registration that it is judged by.
    pub epoch: i64,
    pub installation_epoch: i64,
}

/// Everything but the clients, as of one version.
#[derive(Debug)]
pub struct Snapshot {
    pub version: i64,
    pub catalogue: Catalogue,
    /// Digests of the resources' secrets, by resource name.
    pub resource_secrets: BTreeMap<String, Vec<SecretDigest>>,
    /// `client_secret` of each identity provider that has one, by its name; `None` where it does
    /// not open.
    pub provider_secrets: BTreeMap<String, Option<SecretText>>,
    pub keys: KeyRing,
    /// Every `client_id`: for any other the database is not asked.
    pub client_ids: TextSet,
    /// Of all redirect URIs and `allowed_cors_origins`: who may send a preflight, which names no
    /// client.
    pub origins: TextSet,
    pub longest_lifetimes: LongestLifetimes,
    /// What a check of most imported hashes costs that were left when this was read; `None`
    /// where there were none.
    pub usual_imported_hash: Option<ImportedHash>,
}

#[derive(Debug)]
pub struct Sealers {
    /// Digests of the secrets of clients and resources.
    pub client_secrets: Sealer,
    pub signing_keys: Sealer,
    /// What people's second factors are checked by.
    pub authenticators: Sealer,
}

impl Sealers {
    /// A factor's secret, which opens for that user alone.
    pub fn seal_factor(&self, sub: &Subject, secret: &[u8]) -> Vec<u8> {
        self.authenticators
            .seal(&[sub.as_str().as_bytes(), b"\0", secret].concat())
    }

    pub fn new(derived: &DerivedKeys) -> Sealers {
        Sealers {
            client_secrets: Sealer::new(derived, Purpose::ClientSecret),
            signing_keys: Sealer::new(derived, Purpose::SigningKey),
            authenticators: Sealer::new(derived, Purpose::Authenticator),
        }
    }
}

/// Why the last look at the database did not confirm what is held here.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Silence,
    /// A signing key is wrapped under a master secret that this process does not have.
    ForeignKey,
    /// The database answers what cannot be taken over.
    Unfit,
    /// The database answers, and does not do everything.
    Denial,
    /// No connection to the database was free in time.
    Busy,
}

impl Trouble {
    /// What an error says of the database.
    pub fn of(error: &StoreError) -> Trouble {
        match error {
            StoreError::Denied(_) => Trouble::Denial,
            StoreError::Busy | StoreError::OutOfTime => Trouble::Busy,
            error if error.is_passing() => Trouble::Silence,
            _ => Trouble::Unfit,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Trouble::Silence => "the database does not answer",
            Trouble::ForeignKey => {
                "a signing key does not open under the master secret that this process read when \
                 it started: restart it once its file has the right one"
            }
            Trouble::Denial => {
                "the database denied something within the last minute, a write or a right: the log \
                 says what"
            }
            Trouble::Busy => "every database connection is in use",
            Trouble::Unfit => "what is registered cannot be read: the log says why",
        }
    }
}

/// An error with what it tells the operator.
struct Unread {
    trouble: Trouble,
    error: StoreError,
}

impl Unread {
    fn of_keys(error: StoreError) -> Unread {
        let trouble = if matches!(error, StoreError::Refused(_)) {
            Trouble::ForeignKey
        } else {
            Trouble::of(&error)
        };
        Unread { trouble, error }
    }
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Unread {
        Unread {
            trouble: Trouble::of(&error),
            error,
        }
    }
}

/// A correction of the clock that the log tells of: less than that is drift.
const TOLD_MILLISECONDS: i64 = 500;

/// Sets the clock by the database's, which was looked at about halfway between question and answer.
fn follow(clock: &Clock, reading: &InstallationReading) {
    let uncertainty = reading.took / 2;
    let now = reading
        .now
        .plus(reading.asked.elapsed().saturating_sub(uncertainty));
    let milliseconds = clock.adjust(now, uncertainty) / 1_000;
    if milliseconds.abs() >= TOLD_MILLISECONDS {
        let side = if milliseconds < 0 {
            "ahead of"
        } else {
            "behind"
        };
        log::info!(
            "the clock was {} ms {side} the database's and goes by that now",
            milliseconds.abs()
        );
    }
}

#[derive(Debug)]
pub struct Registry {
    store: Store,
    clock: Arc<Clock>,
    defaults: ClientDefaults,
    sealers: Sealers,
    snapshot: RwLock<Arc<Snapshot>>,
    clients: ClientCache,
    version: AtomicI64,
    started: Monotonic,
    /// Milliseconds after `started` at which the database last told its version.
    confirmed_at: AtomicU64,
    trouble: RwLock<Trouble>,
}

impl Registry {
    /// Reads everything for the first time. `Refused` when a key that signs or is announced cannot
    /// be unwrapped.
    pub fn load(
        store: Store,
        clock: Arc<Clock>,
        defaults: ClientDefaults,
        sealers: Sealers,
        client_cache_bytes: usize,
    ) -> Result<Registry> {
        let reading = installation::read(&store)?;
        follow(&clock, &reading);
        let snapshot =
            read_snapshot(&store, &sealers, clock.now()).map_err(|unread| unread.error)?;
        log::debug!("registry version {} is in force", snapshot.version);
        Ok(Registry {
            version: AtomicI64::new(snapshot.version),
            snapshot: RwLock::new(Arc::new(snapshot)),
            clients: ClientCache::new(client_cache_bytes),
            started: Monotonic::now(),
            confirmed_at: AtomicU64::new(0),
            // Until it answers, that is what is wrong.
            trouble: RwLock::new(Trouble::Silence),
            store,
            clock,
            defaults,
            sealers,
        })
    }

    pub fn sealers(&self) -> &Sealers {
        &self.sealers
    }

    /// Asks the database for its version and clock, and reads anew what has changed. Called once a
    /// second.
    pub fn refresh(&self) -> Result {
        let outcome = self.read_anew();
        let trouble = match &outcome {
            Ok(()) => Trouble::Silence,
            Err(unread) => unread.trouble,
        };
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = trouble;
        outcome.map_err(|unread| unread.error)
    }

    fn read_anew(&self) -> Result<(), Unread> {
        let reading = installation::read(&self.store)?;
        follow(&self.clock, &reading);
        self.version
            .store(reading.registry_version, Ordering::Release);
        if self.snapshot().version != reading.registry_version {
            let snapshot = read_snapshot(&self.store, &self.sealers, self.clock.now())?;
            let version = snapshot.version;
            *self
                .snapshot
                .write()
                .unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
            log::debug!("registry version {version} is in force");
        }
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.confirmed_at.store(elapsed, Ordering::Release);
        Ok(())
    }

    /// How long ago the database last confirmed what is held here.
    pub fn age(&self) -> Duration {
        let confirmed_at = Duration::from_millis(self.confirmed_at.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(confirmed_at)
    }

    /// Why [`Registry::age`] grows: the last error, or silence.
    pub fn trouble(&self) -> Trouble {
        *self.trouble.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn cached_clients(&self) -> u64 {
        self.clients.len() as u64
    }

    /// Catalogue, keys and origins as of now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client or a resource with secrets has that name.
    pub fn knows(&self, name: &ClientId) -> bool {
        let snapshot = self.snapshot();
        snapshot.client_ids.contains(name.as_str())
            || snapshot.resource_secrets.contains_key(name.as_str())
    }

    /// The client of that name, disabled ones too; one whose registration cannot be read, or breaks
    /// today's rules, counts as not there. One read when it is not held at the current version;
    /// none for a name that no client has.
    pub fn client(&self, client_id: &ClientId) -> Result<Option<Arc<RegisteredClient>>> {
        if !self.snapshot().client_ids.contains(client_id.as_str()) {
            return Ok(None);
        }
        let version = self.version.load(Ordering::Acquire);
        if let Cached::Held(client) = self.clients.find(client_id, version) {
            return Ok(client);
        }
        let found = clients::find(&self.store, client_id)?;
        let length = found.value.as_ref().map_or(0, |row| row.metadata.len());
        let client = found.value.and_then(|row| self.served(row));
        self.clients
            .keep(client_id, found.registry_version, client.clone(), length);
        Ok(client)
    }

    fn served(&self, row: ClientRow) -> Option<Arc<RegisteredClient>> {
        match loading::client(row, &self.defaults, &self.sealers.client_secrets) {
            Ok(client) => Some(Arc::new(client)),
            Err(error) => {
                log::error!("not served: {error}");
                None
            }
        }
    }
}

fn read_snapshot(store: &Store, sealers: &Sealers, now: Instant) -> Result<Snapshot, Unread> {
    let catalogue = catalogue::load(store)?;
    let keys = signing_keys::load(store)?;
    let clients = clients::names_and_origins(store, TextSet::of)?;
    let [client_ids, origins] = clients.value;
    let longest_lifetimes = clients::longest_lifetimes(store)?;
    let ring =
        KeyRing::unwrap_all(keys.value, &sealers.signing_keys, now).map_err(Unread::of_keys)?;
    // The oldest of the versions: if another was read later, the next refresh reads all of them
    // again.
    let version = catalogue
        .registry_version
        .min(keys.registry_version)
        .min(clients.registry_version)
        .min(longest_lifetimes.registry_version);
    Ok(Snapshot {
        version,
        resource_secrets: loading::resource_secrets(&catalogue.value, &sealers.client_secrets),
        provider_secrets: loading::provider_secrets(&catalogue.value, &sealers.client_secrets),
        catalogue: loading::catalogue(catalogue.value)?,
        keys: ring,
        client_ids,
        origins,
        longest_lifetimes: longest_lifetimes.value,
        usual_imported_hash: users::usual_imported_hash(store)?,
    })
}
