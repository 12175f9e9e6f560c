//! Users, sessions, consents, failures, and what a token stands on.

use std::time::Duration;

use gatepost::keys::random;
use gatepost::protocol::login::password::SignInWith;
use gatepost::protocol::token::access_token::{AccessToken, Jti, StandsOn};
use gatepost::protocol::words::epochs::SessionEpochs;
use gatepost::protocol::words::identifiers::{ClientId, GrantId, Sid, Subject, TenantName};
use gatepost::protocol::words::instant::Day;
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::protocol::words::secret::SecretText;
use gatepost::protocol::words::session::{Session, SignIn};
use gatepost::protocol::words::strength::Strength;
use gatepost::registrar::statements::{client_changes, user_changes};
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::partitions::{self, Horizons};
use gatepost::store::sessions::{self, FoundSession, NewSession};
use gatepost::store::sign_in_failures::{self, FailureBucket};
use gatepost::store::users::{self, SignInAccount, UserRow};
use gatepost::store::{Store, StoreError, consents, tokens};
use serde_json::{Map, json};

use crate::support::postgres::{HORIZONS, TestDatabase};
use crate::support::waiting::all_at_once;

pub fn event() -> AuditEvent<'static> {
    AuditEvent {
        event: "tested",
        ..AuditEvent::default()
    }
}

pub fn new_user(sub: &str, username: &str) -> UserRow {
    UserRow {
        sub: Subject::new(sub),
        username: Some(username.to_owned()),
        tenant: None,
        password_hash: Some(SecretText::new("hash")),
        enabled: true,
        valid_until: None,
        has_ended: false,
        claims: Map::new(),
        epoch: 0,
        factors: 0,
        strongest_acr: Strength::SignedIn,
    }
}

fn add(store: &Store, sub: &str, username: &str) -> Result<(), StoreError> {
    user_changes::insert(store, &new_user(sub, username), &event())
}

/// What a sign-in under that name finds.
fn account(store: &Store, username: &str) -> SignInAccount {
    users::find_for_sign_in(store, None, username, SignInWith::Username, None).unwrap()
}

/// Registers a client of that name.
pub fn add_client(store: &Store, client_id: &ClientId) {
    let client = (client_id, &json!({}), true);
    let added = store.change_registry(|writer| client_changes::upsert_clients(writer, &[client]));
    added.unwrap();
}

#[test]
fn an_unknown_name_has_its_canonical_form_too() {
    let database = TestDatabase::migrated();
    let account = account(&database.store(), "\u{ff2e}OBODY");
    assert_eq!((account.typed_key.as_str(), account.user), ("nobody", None));
}

#[test]
fn a_removed_subject_is_never_given_again() {
    let database = TestDatabase::migrated();
    let store = database.store();
    add(&store, "s", "alice").unwrap();
    let sub = Subject::new("s");
    let removed = store.change_registry(|writer| user_changes::remove_user(writer, &sub));
    assert!(removed.unwrap());
    let again = add(&store, "s", "alice");
    assert!(matches!(again, Err(StoreError::Taken(_))));
    add(&store, "s2", "alice").unwrap();
    let found = account(&store, "alice").user.unwrap();
    assert_eq!(found.user.sub.as_str(), "s2");
}

#[test]
fn a_new_password_ends_what_was_before_and_a_rehash_does_not() {
    let database = TestDatabase::migrated();
    let store = database.store();
    add(&store, "s", "alice").unwrap();
    let sub = Subject::new("s");
    let (old, new) = (SecretText::new("hash"), SecretText::new("hash2"));
    let user = || users::find(&store, &sub).unwrap().unwrap();
    let at_first = user().epoch;
    users::rehash(&store, &sub, &old, &new).unwrap();
    let user_now = user();
    assert_eq!(user_now.password_hash, Some(new.clone()));
    assert_eq!(user_now.epoch, at_first);
    // Somebody changed it meanwhile: the late rehash changes nothing.
    users::rehash(&store, &sub, &old, &SecretText::new("late")).unwrap();
    assert_eq!(user().password_hash, Some(new));
    let set = |sub: &Subject| {
        let newest = SecretText::new("hash3");
        users::set_password(&store, sub, None, &newest, None, &event()).unwrap()
    };
    assert!(set(&sub));
    assert_ne!(user().epoch, at_first);
    assert!(!set(&Subject::new("nobody")));
    // Each connection of the pool opens a chain: those rows do not count.
    database.assert_count("audit_events WHERE event <> 'chain_opened'", 2);
}

/// A session of somebody who signs in now.
pub fn new_session(database: &TestDatabase, subject: Subject, epochs: SessionEpochs) -> Session {
    let now = database.now();
    let day = now.plus(Duration::from_secs(40_000)).day();
    Session {
        day,
        sid: Sid::of_day(day, random::bytes()),
        subject,
        auth_time: now,
        amr: vec![String::from("pwd")],
        acr: String::from("1"),
        tenant: None,
        identity_provider: Some(String::from("local")),
        upstream_issuer: None,
        epochs,
        source: Some([192, 0, 2, 1].into()),
        user_agent: Some(String::from("Firefox/1")),
        created_at: now,
        used_at: now,
        expires_at: now.plus(Duration::from_secs(36_000)),
        ended_at: None,
        bound_to: None,
        bound_at: None,
        refused_at: None,
    }
}

/// A user with a session.
fn session(database: &TestDatabase, store: &Store) -> (Session, [u8; 32]) {
    add(store, "s", "alice").unwrap();
    let epochs = account(store, "alice").user.unwrap().session_epochs();
    let session = Session {
        tenant: Some(TenantName::new("acme")),
        ..new_session(database, Subject::new("s"), epochs)
    };
    let handle_hash = random::bytes();
    assert!(
        with_handle(&session, &handle_hash)
            .insert(store, &event())
            .unwrap()
    );
    (session, handle_hash)
}

/// What begins or renews that session under the hash of a handle.
pub fn with_handle<'a>(session: &'a Session, handle_hash: &'a [u8; 32]) -> NewSession<'a> {
    NewSession {
        session,
        handle_hash,
        arrival: None,
    }
}

/// The session of that day and handle.
fn found_session(store: &Store, day: Day, handle_hash: &[u8; 32]) -> Option<FoundSession> {
    sessions::find(store, day, handle_hash, None).unwrap()
}

#[test]
fn a_session_is_found_by_its_handle_alone_as_it_was_stored() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let (session, handle_hash) = session(&database, &store);
    let found = found_session(&store, session.day, &handle_hash).unwrap();
    assert_eq!(found.session, session);
    assert_eq!(found.user.unwrap().username.as_deref(), Some("alice"));
    assert_eq!(found_session(&store, session.day, &[0; 32]), None);
    let tomorrow = Day(session.day.0 + 1);
    assert_eq!(found_session(&store, tomorrow, &handle_hash), None);
}

#[test]
fn a_session_ends_once() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let (session, handle_hash) = session(&database, &store);
    assert!(sessions::end(&store, session.day, &session.sid, &event()).unwrap());
    assert!(!sessions::end(&store, session.day, &session.sid, &event()).unwrap());
    let found = found_session(&store, session.day, &handle_hash).unwrap();
    assert!(found.session.ended_at.is_some());
    assert!(!sessions::end(&store, session.day, &Sid::new("other"), &event()).unwrap());
}

#[test]
fn a_renewed_session_has_a_new_handle_and_keeps_its_sid() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let (session, old_hash) = session(&database, &store);
    let anew = Session {
        auth_time: database.now(),
        ..session.clone()
    };
    let new_hash = random::bytes();
    assert!(
        with_handle(&anew, &new_hash)
            .renew(&store, &event())
            .unwrap()
    );
    assert_eq!(found_session(&store, session.day, &old_hash), None);
    let renewed = found_session(&store, session.day, &new_hash)
        .unwrap()
        .session;
    assert_eq!(renewed.sid, session.sid.clone());
    assert_eq!(renewed.auth_time, anew.auth_time);
    let renews = |session: &Session| {
        let handle_hash = random::bytes();
        with_handle(session, &handle_hash)
            .renew(&store, &event())
            .unwrap()
    };
    let [mut of_another_user_epoch, mut of_another_installation] = [anew.clone(), anew.clone()];
    of_another_user_epoch.epochs.user = 1;
    of_another_installation.epochs.installation = 1;
    assert!(!renews(&of_another_user_epoch));
    assert!(!renews(&of_another_installation));
    sessions::end(&store, session.day, &session.sid, &event()).unwrap();
    assert!(!renews(&anew));
}

#[test]
fn a_withdrawn_consent_keeps_its_epoch_when_consent_is_given_again() {
    let database = TestDatabase::migrated();
    let store = database.store();
    add(&store, "s", "alice").unwrap();
    let (sub, client_id) = (Subject::new("s"), ClientId::new("web"));
    add_client(&store, &client_id);
    assert_eq!(consents::find(&store, &sub, &client_id).unwrap(), None);
    let scopes: ScopeSet = ["openid"].into_iter().collect();
    let given = consents::GivenConsent {
        sub: &sub,
        client_id: &client_id,
        asked_scopes: &scopes,
        scopes: &scopes,
        claims: &[],
        kept_epoch: None,
        expires_at: None,
        is_required: true,
    };
    consents::give(&store, &given, &event()).unwrap();
    let first = consents::find(&store, &sub, &client_id).unwrap().unwrap();
    assert_eq!((&first.consent.scope, first.epoch), (&scopes, 0));
    consents::withdraw(&store, &sub, &client_id, &event()).unwrap();
    let withdrawn = consents::find(&store, &sub, &client_id).unwrap().unwrap();
    assert!(withdrawn.consent.scope.is_empty() && withdrawn.epoch != 0);
    consents::give(&store, &given, &event()).unwrap();
    let again = consents::find(&store, &sub, &client_id).unwrap().unwrap();
    assert_eq!(again.consent.scope, scopes.clone());
    assert_eq!(again.epoch, withdrawn.epoch);
}

#[test]
fn what_a_token_stands_on_is_read_in_one_go_and_absence_shows() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let (session, _) = session(&database, &store);
    let client_id = ClientId::new("web");
    add_client(&store, &client_id);
    let token = token_of(&session, &client_id, &database);
    let standing = tokens::find(&store, &token).unwrap();
    let facts = &standing.facts;
    assert!(!facts.token_revoked && facts.grant.is_none() && facts.epochs.consent == 0);
    assert!(facts.client_enabled && !facts.session.unwrap().ended);
    assert_eq!(standing.user.unwrap().subject, session.subject);
    for _ in 0..2 {
        let (day, jti) = (token.expires_at.day(), token.jti.encode());
        tokens::revoke(&store, day, &jti, &event()).unwrap();
    }
    sessions::end(&store, session.day, &session.sid, &event()).unwrap();
    let facts = tokens::find(&store, &token).unwrap().facts;
    assert!(facts.token_revoked && facts.session.unwrap().ended);
    let mut of_bob = token.clone();
    of_bob.user.as_mut().unwrap().subject = Subject::new("bob");
    let strangers = tokens::find(&store, &of_bob).unwrap();
    assert!(strangers.user.is_none() && strangers.facts.session.is_none());
    let of_nobody = AccessToken {
        client_id: ClientId::new("gone"),
        user: None,
        ..token
    };
    let standing = tokens::find(&store, &of_nobody).unwrap();
    assert!(!standing.facts.client_enabled);
    assert!(standing.user.is_none());
    assert!(standing.facts.session.is_none());
}

/// It names the days of the partitions that the process has seen.
#[test]
fn a_statement_planned_for_one_partition_goes_on_when_that_is_gone_or_becomes_another() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let (session, _) = session(&database, &store);
    let token = token_of(&session, &ClientId::new("web"), &database);
    let (today, day) = (database.today(), token.expires_at.day());
    partitions::are_ahead(&store, &HORIZONS, today).unwrap();
    let facts = || tokens::find(&store, &token).unwrap().facts;
    let revoke = || tokens::revoke(&store, day, &token.jti.encode(), &event()).unwrap();
    assert!(!facts().token_revoked && facts().session.is_some());
    revoke();
    assert!(facts().token_revoked);
    database.run(
        "DO $$ DECLARE own regclass; BEGIN
             FOR own IN SELECT inhrelid FROM pg_inherits
                 WHERE inhparent IN (to_regclass('revoked_tokens'), to_regclass('sessions'))
             LOOP EXECUTE 'DROP TABLE ' || own; END LOOP;
         END $$",
    );
    assert!(!facts().token_revoked && facts().session.is_none());
    let wider = Horizons {
        revoked_tokens: Duration::from_secs(90 * 86_400),
        ..HORIZONS
    };
    partitions::make_as_leader(&mut database.client(), &wider, today).unwrap();
    revoke();
    assert!(facts().token_revoked);
}

fn token_of(session: &Session, client_id: &ClientId, database: &TestDatabase) -> AccessToken {
    let now = database.now();
    let grant = GrantId {
        day: database.today(),
        random: random::bytes(),
    };
    AccessToken {
        jti: Jti {
            stands_on: StandsOn::Grant(grant),
            random: random::bytes(),
        },
        client_id: client_id.clone(),
        user: Some(SignIn {
            subject: session.subject.clone(),
            sid: Some(session.sid.clone()),
            tenant: None,
            identity_provider: None,
            auth_time: session.auth_time,
            amr: session.amr.clone(),
            acr: String::from("1"),
        }),
        scope: ScopeSet::parse("openid").unwrap(),
        audience: vec![String::from("api")],
        userinfo_claims: Vec::new(),
        claims: serde_json::Map::new(),
        delegation: None,
        issued_at: now,
        expires_at: now.plus(Duration::from_secs(60)),
        confirmation: None,
    }
}

#[test]
fn failures_are_counted_exactly_also_at_once() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let bucket = |byte| FailureBucket {
        bucket: [byte; 32],
        window: Duration::from_secs(600),
    };
    all_at_once(8, |thread| {
        for _ in 0..10 {
            // Crosswise, where it could dead-lock.
            let mut pair = [bucket(1), bucket(2)];
            pair.rotate_left(thread % 2);
            sign_in_failures::record(&store, &pair).unwrap();
        }
    });
    let counts = sign_in_failures::find(&store, &[[1; 32], [2; 32], [3; 32]]).unwrap();
    let failures = Vec::from_iter(counts.iter().map(|count| count.failures));
    assert_eq!(failures, [80, 80]);
    sign_in_failures::clear(&store, &[1; 32]).unwrap();
    assert_eq!(sign_in_failures::find(&store, &[[1; 32]]).unwrap(), []);
}

#[test]
fn a_window_that_is_over_begins_anew() {
    let database = TestDatabase::migrated();
    let store = database.store();
    let bucket = FailureBucket {
        bucket: [1; 32],
        window: Duration::from_secs(600),
    };
    let record = || {
        let counts = sign_in_failures::record(&store, std::slice::from_ref(&bucket));
        counts.unwrap().remove(0)
    };
    record();
    assert_eq!(record().failures, 2);
    database.run("UPDATE sign_in_failures SET expires_at = clock_timestamp()");
    assert_eq!(sign_in_failures::find(&store, &[[1; 32]]).unwrap(), []);
    let count = record();
    assert_eq!(count.failures, 1);
    assert!(count.expires_at > database.now());
}

#[test]
fn failures_do_not_fill_the_database() {
    let database = TestDatabase::migrated();
    let store = database.store();
    database.run(
        "INSERT INTO sign_in_failures SELECT sha256(n::text::bytea), 1, clock_timestamp(), clock_timestamp() + n * interval '10 minutes'
         FROM generate_series(-700, 1000) AS n",
    );
    let clean = || Some(sign_in_failures::clean(&store, 100_000).unwrap());
    let removed: u64 = std::iter::from_fn(clean)
        .take_while(|count| *count > 0)
        .sum();
    assert_eq!((removed, database.count("sign_in_failures")), (701, 1000));
    while sign_in_failures::clean(&store, 600).unwrap() > 0 {}
    assert!(database.count("sign_in_failures") <= 600);
}
