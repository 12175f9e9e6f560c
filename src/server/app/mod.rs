//! What a handler may touch: settings, clock, store, registry and keys, handed down by reference.
//! There is nothing global.

mod administrators;
pub mod audit_keeping;
pub mod client_logos;
pub mod extension_grant;
pub mod failure;
pub mod fetched;
pub mod guesses;
pub mod hashing;
pub mod id_tokens;
pub mod key_keeping;
mod last_uses;
pub mod letters;
mod metadata;
pub mod metadata_documents;
pub mod password_rules;
pub mod seen_proofs;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use serde_json::Value;

use self::audit_keeping::AuditFailures;
use crate::app::failure::Result;
use crate::config::Config;
use crate::keys::master::{DerivedKeys, MasterSecret, Purpose};
use crate::keys::sealing::{Mac, Sealer};
use crate::metrics::{Counter, CountersByKind};
use crate::outbound::Outbound;
use crate::registry::{Registry, Sealers, Trouble};
use gatepost_protocol::keys::key_set::KeySet;
use gatepost_protocol::login::bound_session::Skipped;
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::upstream::metadata::UpstreamMetadata;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::named::named;
use gatepost_store::clients::LongestLifetimes;
use gatepost_store::clock::Clock;
use gatepost_store::mutex::Mutex;
use gatepost_store::partitions::{self, Horizons};
use gatepost_store::worker::Permits;
use gatepost_store::{Store, StoreError, installation, migrate};

pub use extension_grant::Extensions;
pub use hashing::cost;

use client_logos::ClientLogos;
use failure::Failure;
use fetched::Fetched;
use guesses::{Guesses, Source};
use hashing::Hashing;
use last_uses::LastUses;
use letters::Letters;
use password_rules::PasswordRules;
use seen_proofs::SeenProofs;

/// If the database has not confirmed the registry for so long, no token is issued by it, nobody
/// signs in, and nobody is told about tokens: a secret, a scope or a provider may be gone.
const OLDEST_REGISTRY: Duration = Duration::from_secs(30);
/// If the database has not confirmed the registry for so long, it counts as away.
const RECENT: Duration = Duration::from_secs(3);

/// The keys that seal and authenticate what we hand out and get back.
#[derive(Debug)]
pub struct Vault {
    pub authorization_codes: Sealer,
    pub access_tokens: Sealer,
    pub authorize_requests: Sealer,
    pub pushed_requests: Sealer,
    pub upstream_states: Sealer,
    pub upstream_id_tokens: Sealer,
    pub password_links: Sealer,
    pub passkey_links: Sealer,
    pub sign_up_links: Mac,
    /// Links that Gatepost sends itself.
    pub mail_links: Sealer,
    /// What was proved so far, apps that are being set up, and challenges of passkeys.
    pub second_factors: Sealer,
    /// Secrets of apps, and digests of recovery codes, in the database.
    pub authenticators: Sealer,
    pub doctor: Sealer,
    pub refresh_tokens: Mac,
    pub form_tokens: Mac,
    pub device_codes: Mac,
    pub user_codes: Mac,
    pub throttle_buckets: Mac,
    pub known_browsers: Sealer,
    /// What browsers bring that have a session bound to their key.
    pub bound_sessions: Sealer,
    pub scim_cursors: Sealer,
    pub dpop_nonces: Mac,
}

#[derive(Debug)]
pub struct App {
    pub config: Arc<Config>,
    pub clock: Arc<Clock>,
    pub store: Store,
    pub registry: Registry,
    pub vault: Vault,
    /// Failures that the audit log shall tell of.
    audit_failures: AuditFailures,
    last_uses: LastUses,
    pub client_logos: ClientLogos,
    pub client_failures: Guesses<(ClientId, Source)>,
    /// Attempts under names that are not registered, counted together. They have counters of their
    /// own, so that made-up names push no other counter out.
    pub made_up_failures: Guesses<(ClientId, Source)>,
    /// Device authorizations: not guesses, but limited like them.
    pub device_authorizations: Guesses<(ClientId, Source)>,
    pub user_code_failures: Guesses<Source>,
    pub user_code_failures_overall: Guesses<()>,
    pub extension_failures: Guesses<(ClientId, Source)>,
    pub seen_proofs: SeenProofs,
    pub logout_token_failures: Guesses<Source>,
    pub extensions: Extensions,
    /// How often a request named an identity provider that its client cannot have.
    pub dropped_identity_providers: Counter,
    pub factors_used: CountersByKind<FactorKind>,
    pub logout_calls: CountersByKind<LogoutCall>,
    pub bound_sessions: BoundSessionCounts,
    pub letters: Letters,
    /// Nonces of `gatepost doctor` that were answered in the last minute.
    pub doctor_nonces: Mutex<Vec<i64>>,
    /// For requests of our own.
    pub outbound: Outbound,
    pub key_sets: Fetched<KeySet>,
    pub upstream_documents: Fetched<UpstreamMetadata>,
    /// What clients say of themselves, by `client_id`.
    pub metadata_documents: Fetched<Value>,
    rendered: RwLock<Option<Arc<metadata::Rendered>>>,
    hashing: Hashing,
    pub password_rules: PasswordRules,
    /// Lists of users that are read at once.
    pub scim_lists: Permits,
    /// Documents that are compared at once.
    pub documents: Permits,
    /// Administrators who read many rows at once, each over a connection of its own.
    pub admin_surveys: Permits,
}

pub enum Standing {
    Ready,
    /// The registry cannot be read for the moment. Metadata and keys go on; everything that needs
    /// the database does not.
    Degraded(Trouble),
    NotReady(&'static str),
}

named! {
    /// How a back-channel logout that this process made ended, counted for `/metrics`.
    pub enum LogoutCall {
        Told = "told",
        /// Failed, and will be called again.
        Failed = "failed",
        GivenUp = "given_up",
    }
}

/// What browsers did about sessions that are bound to their key, counted for `/metrics`.
#[derive(Debug, Default)]
pub struct BoundSessionCounts {
    pub bound: Counter,
    pub binding_refused: Counter,
    pub refreshed: Counter,
    pub challenged: Counter,
    pub refresh_refused: Counter,
    /// Requests that did not show the key.
    pub unbound: CountersByKind<Skipped>,
}

#[derive(Debug)]
pub enum LoadError {
    /// The database is away, or does not do what is asked; try again.
    NotYet(StoreError),
    /// Trying again would not help; exit code 78.
    Unfit(String),
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> LoadError {
        match error {
            StoreError::Refused(problem) => LoadError::Unfit(problem),
            // A right that is missing, a pooler in between, a row that does not read: somebody may
            // mend it meanwhile.
            StoreError::Unavailable(_)
            | StoreError::Severed(_)
            | StoreError::Unacknowledged
            | StoreError::Cancelled(_)
            | StoreError::OutOfTime
            | StoreError::Busy
            | StoreError::Conflict(_)
            | StoreError::Taken(_)
            | StoreError::Corrupt(_)
            | StoreError::Denied(_)
            | StoreError::Query(_) => LoadError::NotYet(error),
        }
    }
}

impl App {
    /// Does every start-up check and reads everything for the first time.
    pub fn load(
        config: Arc<Config>,
        store: Store,
        master: &MasterSecret,
        extensions: Extensions,
    ) -> Result<App, LoadError> {
        extension_grant::check_table(extensions.table).map_err(LoadError::Unfit)?;
        migrate::check_level(&store)?;
        let Some(installation) = installation::find(&store)? else {
            return Err(LoadError::Unfit(String::from(
                "the database is empty: run `gatepost migrate`",
            )));
        };
        installation::check_issuer(&installation, config.base_url.as_str())?;
        installation::check_lowering(&installation)?;
        let derived = master.derive(&installation.id, config.base_url.as_str());
        let clock = Arc::clone(store.clock());
        let defaults = config.client_defaults.clone();
        let sealers = Sealers::new(&derived);
        let cache_bytes = config.client_cache_mib as usize * 1_024 * 1_024;
        let registry = Registry::load(
            store.clone(),
            Arc::clone(&clock),
            defaults,
            sealers,
            cache_bytes,
        )?;
        extension_grant::look_up_functions(&extensions.functions, &registry);
        let tracked = config.limits.tracked as usize;
        let limits = config.limits;
        Ok(App {
            vault: Vault::new(&derived),
            audit_failures: AuditFailures::default(),
            last_uses: LastUses::default(),
            client_logos: ClientLogos::default(),
            client_failures: Guesses::new(limits.client_failures_per_minute, tracked),
            made_up_failures: Guesses::new(limits.client_failures_per_minute, tracked),
            device_authorizations: Guesses::new(limits.device_authorizations_per_minute, tracked),
            user_code_failures: Guesses::new(limits.user_code_failures_per_minute, tracked),
            user_code_failures_overall: Guesses::new(
                limits.user_code_failures_per_minute_overall,
                1,
            ),
            extension_failures: Guesses::new(limits.extension_failures_per_minute, tracked),
            logout_token_failures: Guesses::new(limits.logout_token_failures_per_minute, tracked),
            seen_proofs: SeenProofs::new(tracked),
            extensions,
            doctor_nonces: Mutex::default(),
            dropped_identity_providers: Counter::default(),
            factors_used: CountersByKind::default(),
            logout_calls: CountersByKind::default(),
            bound_sessions: BoundSessionCounts::default(),
            letters: Letters::new(&config).map_err(LoadError::Unfit)?,
            outbound: Outbound::new(
                &config.outbound_allow,
                config.ca_file.as_deref(),
                config.upstream_places as usize,
            )
            .map_err(LoadError::Unfit)?,
            key_sets: Fetched::new(fetched::KEY_SETS),
            upstream_documents: Fetched::new(fetched::METADATA),
            metadata_documents: Fetched::new(fetched::CLIENT_DOCUMENTS),
            rendered: RwLock::default(),
            password_rules: PasswordRules::new(&config),
            scim_lists: Permits::new(2),
            documents: Permits::new(1),
            admin_surveys: Permits::new(2),
            hashing: Hashing::new(&config).map_err(LoadError::Unfit)?,
            config,
            clock,
            store,
            registry,
        })
    }

    pub fn has_grant(&self, name: &str) -> bool {
        self.extensions.table.iter().any(|grant| grant.name == name)
            || self
                .registry
                .snapshot()
                .catalogue
                .extension_grants
                .contains_key(name)
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The issuer: the base URL, byte for byte.
    pub fn issuer(&self) -> &str {
        self.config.base_url.as_str()
    }

    /// Refuses when the database has not confirmed the registry for too long.
    pub fn require_fresh_registry(&self) -> Result {
        if self.registry.age() > OLDEST_REGISTRY {
            Err(Failure::Busy)
        } else {
            Ok(())
        }
    }

    /// Does what is due about signing keys, unless another process does it. Answers a line for each
    /// step.
    pub fn keep_keys(&self) -> Result<Vec<String>, StoreError> {
        let seasons = key_keeping::seasons(&self.config);
        key_keeping::keep(
            &self.store,
            &self.registry.sealers().signing_keys,
            &seasons,
            self.now(),
        )
    }

    /// How long rows may be needed, by what is configured and registered.
    pub fn horizons(&self) -> Horizons {
        horizons(&self.config, &self.registry.snapshot().longest_lifetimes)
    }

    pub fn longest_access_token_lifetime(&self) -> Duration {
        self.horizons().revoked_tokens
    }

    /// The state of this process, for `/readyz`. It asks the database only while that answers.
    pub fn standing(&self) -> Standing {
        if self.registry.age() > OLDEST_REGISTRY {
            return Standing::NotReady(match self.registry.trouble() {
                Trouble::Silence => "the database has not answered for 30 seconds",
                trouble @ (Trouble::ForeignKey
                | Trouble::Unfit
                | Trouble::Denial
                | Trouble::Busy) => trouble.words(),
            });
        }
        if self.clock.is_in_doubt() {
            return Standing::NotReady(
                "this machine's clock is more than 30 seconds off the database's",
            );
        }
        if !self.hears_the_database() {
            return Standing::Degraded(self.registry.trouble());
        }
        match partitions::are_ahead(&self.store, &self.horizons(), self.now().day()) {
            Ok(true) if !self.store.denied_lately().is_empty() => {
                Standing::Degraded(Trouble::Denial)
            }
            Ok(true) => Standing::Ready,
            Ok(false) => Standing::NotReady("partitions do not reach far enough ahead"),
            Err(error) => Standing::Degraded(Trouble::of(&error)),
        }
    }

    /// Whether the database has confirmed what is registered within the last few seconds.
    pub fn hears_the_database(&self) -> bool {
        self.registry.age() < RECENT
    }
}

impl Vault {
    fn new(derived: &DerivedKeys) -> Vault {
        Vault {
            authorization_codes: Sealer::new(derived, Purpose::AuthorizationCode),
            access_tokens: Sealer::new(derived, Purpose::AccessToken),
            authorize_requests: Sealer::new(derived, Purpose::AuthorizeRequest),
            pushed_requests: Sealer::new(derived, Purpose::PushedRequest),
            upstream_states: Sealer::new(derived, Purpose::UpstreamState),
            upstream_id_tokens: Sealer::new(derived, Purpose::UpstreamIdToken),
            password_links: Sealer::new(derived, Purpose::PasswordLink),
            sign_up_links: Mac::new(derived, Purpose::SignUpLink),
            passkey_links: Sealer::new(derived, Purpose::PasskeyLink),
            mail_links: Sealer::of_kinds(derived, Purpose::MailLink),
            second_factors: Sealer::of_kinds(derived, Purpose::SecondFactor),
            authenticators: Sealer::new(derived, Purpose::Authenticator),
            doctor: Sealer::new(derived, Purpose::Doctor),
            refresh_tokens: Mac::new(derived, Purpose::RefreshToken),
            form_tokens: Mac::new(derived, Purpose::FormToken),
            device_codes: Mac::new(derived, Purpose::DeviceCode),
            user_codes: Mac::new(derived, Purpose::UserCode),
            throttle_buckets: Mac::new(derived, Purpose::SignInThrottle),
            known_browsers: Sealer::new(derived, Purpose::KnownBrowser),
            bound_sessions: Sealer::of_kinds(derived, Purpose::BoundSession),
            scim_cursors: Sealer::new(derived, Purpose::ScimCursor),
            dpop_nonces: Mac::new(derived, Purpose::DpopNonce),
        }
    }
}

/// The longest lifetime that a code can have (RFC 6749 §4.1.2).
const LONGEST_CODE: Duration = Duration::from_secs(600);
/// The longest assertion accepted ends ten minutes ahead; a day leaves room for clocks.
const LONGEST_ASSERTION: Duration = Duration::from_secs(86_400);

/// How long rows may be needed. A client that registers no lifetime of its own has the configured
/// one.
pub fn horizons(config: &Config, registered: &LongestLifetimes) -> Horizons {
    let defaults = &config.client_defaults;
    let access_token = registered
        .access_token
        .unwrap_or_default()
        .max(defaults.access_token_lifetime);
    let refresh_token = registered
        .refresh_token
        .unwrap_or_default()
        .max(defaults.refresh_token_lifetime);
    Horizons {
        grants: refresh_token.max(access_token + LONGEST_CODE),
        sessions: config
            .remember_session_lifetime
            .unwrap_or(config.session_lifetime)
            + access_token,
        revoked_tokens: access_token,
        used_assertions: LONGEST_ASSERTION,
        audit_events: Duration::from_secs(u64::from(config.audit_days) * 86_400),
    }
}
