//! What most commands stand on: the settings, the database they name, and the keys of its installation.

use std::time::Duration;

use serde_json::Value;

use crate::app;
use crate::config::Config;
use crate::keys::master::{DerivedKeys, MasterSecret, Purpose};
use crate::keys::password::PasswordHashing;
use crate::keys::random;
use crate::keys::sealing::Sealer;
use crate::protocol::audit::audit_chain::COMMAND;
use crate::protocol::words::instant::Instant;
use crate::store::audit_events::AuditEvent;
use crate::store::clients::LongestLifetimes;
use crate::store::installation::{self, Installation};
use crate::store::partitions::Horizons;
use crate::store::signing_keys::{self, SigningKeyRow};
use crate::store::{DatabaseSettings, Store, migrate};

use super::arguments::Invocation;
use super::failure::Failure;

pub(super) struct Operator {
    pub(super) config: Config,
    pub(super) store: Store,
}

impl Operator {
    /// Connects to nothing yet.
    pub(super) fn open(invocation: &Invocation) -> Result<Operator, Failure> {
        let config = invocation.config()?;
        let settings = DatabaseSettings {
            url: config.database_url.clone(),
            connections: 1,
            workers: 5,
            cancel_after: Duration::from_secs(30),
            stuck_after: Duration::from_secs(60),
            process: format!("{COMMAND}{:016x}", u64::from_be_bytes(random::bytes())),
            audit_days: u16::try_from(config.audit_days).unwrap_or(u16::MAX),
        };
        let store = Store::open(&settings).map_err(|error| Failure::Configuration(error.to_string()))?;
        Ok(Operator { config, store })
    }

    /// For a database that this program and these settings fit.
    pub(super) fn open_installed(invocation: &Invocation) -> Result<(Operator, Installation), Failure> {
        let operator = Operator::open(invocation)?;
        migrate::check_level(&operator.store)?;
        let found = installation::find(&operator.store)?;
        let found = found.ok_or_else(|| Failure::Refused(String::from("no installation: run `gatepost migrate`")))?;
        let moved = |error: crate::store::StoreError| Failure::Configuration(error.to_string());
        installation::check_issuer(&found, operator.config.base_url.as_str()).map_err(moved)?;
        operator.store.clock().adjust(operator.now()?, Duration::ZERO);
        Ok((operator, found))
    }

    pub(super) fn derived_keys(&self, installation: &Installation) -> Result<DerivedKeys, Failure> {
        let derived = self.master_secret()?.derive(&installation.id, &installation.issuer);
        let sealer = Sealer::new(&derived, Purpose::SigningKey);
        let keys = signing_keys::load(&self.store)?.value;
        let foreign = |key: &SigningKeyRow| {
            key.wrapped_private.as_ref().is_some_and(|wrapped| sealer.open(wrapped.expose()).is_none())
        };
        // What is sealed under another secret could be opened by nobody: nothing is written.
        match keys.iter().find(|key| foreign(key)) {
            None => Ok(derived),
            Some(key) => Err(Failure::Configuration(format!(
                "GATEPOST_SECRET_FILE is not the master secret of this database, or a line of it is missing: signing key {} does \
                 not open under it (when it is lost for good: `gatepost key reset`)",
                key.kid
            ))),
        }
    }

    pub(super) fn master_secret(&self) -> Result<MasterSecret, Failure> {
        let missing =
            "GATEPOST_SECRET_FILE is required: `gatepost secret > FILE` makes one, readable by its owner only";
        let path = self.config.secret_file.as_ref().ok_or_else(|| Failure::Configuration(String::from(missing)))?;
        MasterSecret::read(path).map_err(Failure::Configuration)
    }

    pub(super) fn password_hashing(&self) -> Result<PasswordHashing, Failure> {
        PasswordHashing::new(app::cost(&self.config)).map_err(Failure::Configuration)
    }

    pub(super) fn horizons(&self, registered: LongestLifetimes) -> Horizons {
        app::horizons(&self.config, &registered)
    }

    pub(super) fn now(&self) -> Result<Instant, Failure> {
        Ok(installation::read(&self.store)?.now)
    }
}

pub(super) fn audit_event(event: &str, detail: Value) -> AuditEvent<'_> {
    AuditEvent { event, detail, ..AuditEvent::default() }
}
