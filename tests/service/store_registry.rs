//! The registry: changes are whole, versioned and audited.

use std::collections::BTreeSet;

use gatepost::protocol::keys::key_schedule::KeyTimes;
use gatepost::protocol::registration::ObjectKind;
use gatepost::protocol::registration::walker::parse_own;
use gatepost::protocol::words::client::SigningAlgorithm;
use gatepost::protocol::words::identifiers::ClientId;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::secret::SecretBytes;
use gatepost::registrar::statements::{catalogue_changes, client_changes};
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::catalogue::{self, CatalogueRow};
use gatepost::store::clients::{self, SecretRow};
use gatepost::store::signing_keys::{self, SigningKeyRow};
use gatepost::store::{Store, StoreError, installation};
use gatepost::tool::statements::everything_revoked;
use serde_json::json;

use crate::support::postgres::TestDatabase;
use crate::support::waiting::all_at_once;

fn web() -> ClientId {
    ClientId::new("web")
}

fn secret(number: u8) -> SecretRow {
    SecretRow {
        id: [number; 16],
        sealed_digest: SecretBytes::new([number; 40]),
        description: format!("secret {number}"),
        expires_at: Some(Instant::from_seconds(4_000_000_000)),
    }
}

fn entry(kind: ObjectKind, name: &str) -> CatalogueRow {
    CatalogueRow {
        kind,
        name: name.to_owned(),
        document: json!({"name": name}),
        sealed_secret: None,
        secrets: Vec::new(),
    }
}

fn version(database: &TestDatabase) -> i64 {
    let read = installation::read(&database.store()).unwrap();
    read.registry_version
}

#[test]
fn a_client_is_read_with_its_secrets_and_the_version_of_the_same_moment() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let metadata = json!({"client_name": "Web", "scope": "openid"});
    let written = store.change_registry(|writer| {
        let other = ClientId::new("other");
        let web = web();
        let secrets = [(web.as_str(), secret(1)), (web.as_str(), secret(2))];
        client_changes::upsert_clients(writer, &[(&web, &metadata, true)])?;
        client_changes::put_secrets(writer, true, &secrets)?;
        client_changes::upsert_clients(writer, &[(&other, &json!({}), false)])
    });
    written.unwrap();
    let found = clients::find(&store, &web()).unwrap();
    assert_eq!(found.registry_version, version(&database));
    let client = found.value.unwrap();
    assert_eq!(parse_own(&client.metadata), metadata);
    assert!(client.enabled);
    assert_eq!(client.secrets, [secret(1), secret(2)]);
    let all = clients::list(&store).unwrap();
    let secrets = all.iter().map(|client| client.secrets.len());
    assert_eq!(Vec::from_iter(secrets), [0, 2]);
    let unknown = clients::find(&store, &ClientId::new("WEB")).unwrap();
    assert_eq!(unknown.registry_version, found.registry_version);
    assert_eq!(unknown.value, None);
}

#[test]
fn a_change_that_fails_leaves_nothing_and_one_that_writes_nothing_bumps_nothing() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let before = version(&database);
    let failed: Result<(), StoreError> = store.change_registry(|writer| {
        client_changes::upsert_clients(writer, &[(&web(), &json!({}), true)])?;
        writer.audit(&AuditEvent {
            event: "client_changed",
            ..AuditEvent::default()
        })?;
        Err(StoreError::Refused(String::from("contradiction")))
    });
    assert!(failed.is_err());
    let read = store.change_registry(|writer| writer.reader.clients());
    read.unwrap();
    assert_eq!(version(&database), before);
    database.assert_count("clients", 0);
    database.assert_count("audit_events", 0);
}

#[test]
fn changes_happen_one_after_the_other() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let versions = BTreeSet::from_iter(all_at_once(8, |_| add_a_client(&store)));
    assert_eq!((versions.len(), database.count("clients")), (8, 8));
    assert_eq!(versions.last(), Some(&version(&database)));
}

/// Answers the version that it makes.
fn add_a_client(store: &Store) -> i64 {
    store
        .change_registry(|writer| {
            let name = ClientId::new(format!("client {}", writer.reader.clients()?.len()));
            client_changes::upsert_clients(writer, &[(&name, &json!({}), true)])?;
            Ok::<_, StoreError>(writer.version_afterwards())
        })
        .unwrap()
}

/// A process may hold what it read at a version that no standby ever had.
#[test]
fn a_version_that_was_lost_in_a_failover_does_not_come_again() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let before = version(&database);
    let changes: [fn(&Store) -> i64; 2] = [add_a_client, |store| {
        everything_revoked::revoke_everything(store, &AuditEvent::default()).unwrap();
        installation::read(store).unwrap().registry_version
    }];
    for change in changes {
        let changed = || {
            database.run(&format!(
                "DELETE FROM clients; UPDATE installation SET registry_version = {before}"
            ));
            change(&store)
        };
        let lost = changed();
        let next = changed();
        let drawn = before + 1..=before + (1 << 30);
        assert!(drawn.contains(&lost) && drawn.contains(&next));
        assert_ne!(lost, next);
    }
}

#[test]
fn disabling_ends_what_was_issued_and_another_change_does_not() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let upsert = |enabled| {
        store
            .change_registry(|writer| {
                client_changes::upsert_clients(writer, &[(&web(), &json!({}), enabled)])
            })
            .unwrap()
    };
    let epoch = || clients::find(&store, &web()).unwrap().value.unwrap().epoch;
    upsert(true);
    let registered = epoch();
    upsert(true);
    assert_eq!(epoch(), registered);
    upsert(false);
    let disabled = epoch();
    assert_ne!(disabled, registered);
    upsert(false);
    upsert(true);
    assert_eq!(epoch(), disabled);
}

#[test]
fn the_catalogue_comes_whole_and_scopes_share_their_names() {
    let database = TestDatabase::migrated();
    let store = database.store();
    assert!(catalogue::load(&store).unwrap().value.entries.is_empty());
    let written = store.change_registry(|writer| {
        catalogue_changes::upsert_entry(writer, &entry(ObjectKind::IdentityScope, "profile"))?;
        catalogue_changes::upsert_entry(writer, &entry(ObjectKind::Resource, "orders"))?;
        client_changes::put_secrets(writer, false, &[("orders", secret(3))])?;
        let plain = json!({"allow_plain_pkce": true});
        client_changes::upsert_clients(writer, &[(&web(), &plain, true)])
    });
    written.unwrap();
    let loaded = catalogue::load(&store).unwrap();
    assert_eq!(loaded.registry_version, version(&database));
    assert!(loaded.value.plain_pkce);
    let entries = loaded.value.entries.iter();
    let names = entries.map(|entry| (entry.kind, entry.name.as_str(), entry.secrets.len()));
    let profile = (ObjectKind::IdentityScope, "profile", 0);
    let orders = (ObjectKind::Resource, "orders", 1);
    assert_eq!(Vec::from_iter(names), [profile, orders]);
    let doubled = store.change_registry(|writer| {
        catalogue_changes::upsert_entry(writer, &entry(ObjectKind::ResourceScope, "profile"))
    });
    assert!(matches!(doubled, Err(StoreError::Taken(_))), "{doubled:?}");
    let remove = || {
        let removed = store.change_registry(|writer| {
            catalogue_changes::remove_entry(writer, ObjectKind::Resource, "orders")
        });
        removed.unwrap().is_some()
    };
    assert!(remove());
    assert_eq!(database.count("resource_secrets"), 0);
    assert!(!remove());
}

#[test]
fn longest_lifetimes_are_those_registered() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let none = clients::longest_lifetimes(&store).unwrap().value;
    assert_eq!(none, clients::LongestLifetimes::default());
    let longest = store.change_registry(|writer| {
        let long = json!({"refresh_token_lifetime": 7_776_000});
        let short = json!({"refresh_token_lifetime": 5, "access_token_lifetime": 60});
        client_changes::upsert_clients(writer, &[(&web(), &long, true)])?;
        let b = ClientId::new("b");
        client_changes::upsert_clients(writer, &[(&b, &short, true)])?;
        writer.reader.longest_lifetimes()
    });
    let longest = longest.unwrap();
    let seconds =
        |lifetime: Option<std::time::Duration>| lifetime.map(|lifetime| lifetime.as_secs());
    assert_eq!(seconds(longest.refresh_token), Some(7_776_000));
    assert_eq!(seconds(longest.access_token), Some(60));
}

#[test]
fn a_key_is_stored_rescheduled_erased_and_forgotten() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let at = Instant::from_seconds;
    let mut key = SigningKeyRow {
        kid: String::from("k1"),
        algorithm: SigningAlgorithm::Es256,
        wrapped_private: Some(SecretBytes::new(*b"wrapped")),
        public_jwk: json!({"kty": "EC"}),
        times: KeyTimes {
            announced_at: at(1),
            activates_at: at(2),
            retires_at: at(3),
            unpublished_at: at(4),
            forgotten_at: at(5),
        },
    };
    assert!(signing_keys::load(&store).unwrap().value.is_empty());
    let insert =
        |key: &SigningKeyRow| store.change_registry(|writer| writer.insert_signing_key(key));
    insert(&key).unwrap();
    assert_eq!(signing_keys::load(&store).unwrap().value, [key.clone()]);
    assert!(matches!(insert(&key), Err(StoreError::Taken(_))));
    (key.times.retires_at, key.wrapped_private) = (at(4), None);
    let rescheduled = store.change_registry(|writer| {
        writer.reschedule_signing_key(&key.kid, &key.times)?;
        writer.rewrap_signing_key("k1", None)
    });
    rescheduled.unwrap();
    assert_eq!(signing_keys::load(&store).unwrap().value, [key.clone()]);
    key.times.retires_at = at(1);
    let rescheduled =
        store.change_registry(|writer| writer.reschedule_signing_key(&key.kid, &key.times));
    assert!(rescheduled.is_err(), "retired before it signs");
    let removed = store.change_registry(|writer| writer.remove_signing_key("k1"));
    assert!(removed.unwrap());
}
