//! Redemption: one code, one grant, whoever comes and however often.

use std::time::Duration;

use gatepost::keys::random;
use gatepost::protocol::device::device_code::DeviceDecision;
use gatepost::protocol::token::claims::ClaimNames;
use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::refresh_token::{RefreshHandle, Within};
use gatepost::protocol::words::epochs::{Epochs, SessionEpochs};
use gatepost::protocol::words::identifiers::{ClientId, GrantId, Sid, Subject};
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::protocol::words::session::SignIn;
use gatepost::registrar::statements::user_changes;
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::device_authorizations::{
    self, DeviceRedemption, Entered, NewDecision, NewDevice,
};
use gatepost::store::grants::{self, CodeRedemption, NewRefresh, Refreshed};
use gatepost::store::users::{self, UserRow};
use gatepost::store::{Store, StoreError, clients};
use serde_json::json;

use crate::store_users::{add_client, new_session, new_user, with_handle};
use crate::support::postgres::TestDatabase;
use crate::support::waiting::all_at_once;

/// Of one redemption, also when it is sent again.
const ATTEMPT: [u8; 16] = [7; 16];

/// A client, a user who signed in a second ago, and the store.
pub struct Scene {
    pub database: TestDatabase,
    pub store: Store,
    sid: Sid,
}

pub fn client_id() -> ClientId {
    ClientId::new("web")
}

fn alice() -> Subject {
    Subject::new("alice-sub")
}

pub fn scene() -> Scene {
    let database = TestDatabase::migrated();
    let store = database.store();
    add_client(&store, &client_id());
    let claims = json!({"name": "Alice"}).as_object().unwrap().clone();
    let user = UserRow {
        password_hash: None,
        claims,
        ..new_user("alice-sub", "alice")
    };
    user_changes::insert(&store, &user, &named("user_added")).unwrap();
    let session = new_session(&database, alice(), epochs(&store).0);
    let sid = session.sid.clone();
    let event = named("signed_in");
    let handle_hash = random::bytes();
    assert!(
        with_handle(&session, &handle_hash)
            .insert(&store, &event)
            .unwrap()
    );
    Scene {
        database,
        store,
        sid,
    }
}

/// Those of now: of a session, and of what its client gets.
fn epochs(store: &Store) -> (SessionEpochs, Epochs) {
    let found = users::find_for_client(store, &alice(), Some(&client_id()));
    let found = found.unwrap().unwrap();
    let client = clients::find(store, &client_id()).unwrap().value.unwrap();
    (found.session_epochs(), found.epochs(client.epoch))
}

impl Scene {
    /// A grant as a code issued now would carry it.
    pub fn grant(&self) -> Grant {
        let now = self.database.now();
        let expires_at = now.plus(Duration::from_secs(30 * 86_400));
        let sign_in = SignIn {
            subject: alice(),
            sid: Some(self.sid.clone()),
            tenant: None,
            identity_provider: None,
            auth_time: now,
            amr: vec![String::from("pwd")],
            acr: String::from("1"),
        };
        Grant {
            id: GrantId {
                day: expires_at.day(),
                random: random::bytes(),
            },
            client_id: client_id(),
            user: sign_in,
            scope: ScopeSet::parse("openid").unwrap(),
            resources: Vec::new(),
            claims: ClaimNames::default(),
            token_claims: serde_json::Map::new(),
            epochs: epochs(&self.store).1,
            generation: 0,
            issued_at: now,
            last_used_at: now,
            expires_at,
            revoked_at: None,
            confirmation: None,
        }
    }

    fn redeem(&self, grant: &Grant) -> CodeRedemption {
        self.redeem_by(grant, random::bytes())
    }

    fn redeem_by(&self, grant: &Grant, attempt: [u8; 16]) -> CodeRedemption {
        grants::redeem(&self.store, grant, attempt, &AuditEvent::default()).unwrap()
    }

    /// Whether a code that has expired and is sent again had given something that lived.
    fn revoke_replayed(&self, grant: &Grant, client_id: &ClientId) -> bool {
        let event = named("code_replayed");
        grants::revoke(&self.store, grant.id, Some(client_id), &event).unwrap()
    }

    /// Rows and those among them that still live.
    fn rows(&self) -> (i64, i64) {
        let sql = "SELECT count(*), count(*) FILTER (WHERE revoked_at IS NULL) FROM grants";
        let row = self.database.client().query_one(sql, &[]).unwrap();
        (row.get(0), row.get(1))
    }

    fn events(&self, name: &str) -> i64 {
        self.database.events(name)
    }
}

fn named(event: &str) -> AuditEvent<'_> {
    AuditEvent {
        event,
        ..AuditEvent::default()
    }
}

fn is_issued(redemption: &CodeRedemption) -> bool {
    match redemption {
        CodeRedemption::Issued(_) => true,
        CodeRedemption::Replayed
        | CodeRedemption::ReplayedAgain
        | CodeRedemption::NoLongerStands => false,
    }
}

#[test]
fn sixteen_redemptions_at_once_issue_once_and_leave_nothing_alive() {
    let scene = scene();
    for round in 0..100 {
        let grant = scene.grant();
        let issued = all_at_once(16, |_| is_issued(&scene.redeem(&grant)));
        let issued = issued.into_iter().filter(|issued| *issued).count();
        assert_eq!(issued, 1, "round {round}");
    }
    assert_eq!(scene.rows(), (100, 0));
    assert_eq!(scene.events("code_redeemed"), 100);
    // One each: the others found nothing left to revoke.
    assert_eq!(scene.events("code_replayed"), 100);
}

#[test]
fn the_same_attempt_twice_is_one_redemption() {
    let scene = scene();
    let grant = scene.grant();
    for _ in 0..2 {
        assert!(is_issued(&scene.redeem_by(&grant, ATTEMPT)));
    }
    assert_eq!((scene.rows(), scene.events("code_redeemed")), ((1, 1), 1));
    assert_eq!(scene.redeem(&grant), CodeRedemption::Replayed);
    assert_eq!(scene.redeem_by(&grant, ATTEMPT), CodeRedemption::Replayed);
    assert_eq!(scene.events("code_redeemed"), 1);
    assert_eq!(scene.events("code_replayed"), 1);
}

#[test]
fn a_grant_without_a_code_is_entered_once_and_only_while_its_user_stands() {
    let scene = scene();
    let without_session = || {
        let mut grant = scene.grant();
        grant.user.sid = None;
        grant
    };
    let grant = without_session();
    let begin = |grant: &Grant| {
        grants::begin(&scene.store, grant, ATTEMPT, &named("password_granted")).unwrap()
    };
    assert_eq!(begin(&grant).map(|user| user.subject), Some(alice()));
    // The same attempt, after its answer was lost.
    assert!(begin(&grant).is_some());
    assert_eq!(scene.rows(), (1, 1));
    assert_eq!(scene.events("password_granted"), 1);
    scene.database.run("UPDATE users SET enabled = false");
    assert_eq!(begin(&without_session()), None);
    assert_eq!((scene.rows(), scene.events("grant_refused")), ((2, 1), 1));
}

/// A device that alice has allowed.
fn allowed_device(scene: &Scene) -> [u8; 32] {
    let (device_code_hash, user_code_hash) = (random::bytes(), random::bytes());
    let scope = ScopeSet::parse("openid").unwrap();
    let new = NewDevice {
        device_code_hash,
        user_code_hash,
        client_id: &client_id(),
        scopes: &scope,
        resources: &[],
        acr_values: None,
        interval: Duration::from_secs(5),
        lifetime: Duration::from_secs(600),
        most_pending: 10,
    };
    let insert = |new: &NewDevice| device_authorizations::insert(&scene.store, new).unwrap();
    assert_eq!(insert(&new), Entered::Waiting);
    let again = NewDevice {
        device_code_hash: random::bytes(),
        ..new.clone()
    };
    assert_eq!(insert(&again), Entered::CodeTaken);
    let user = SignIn {
        sid: None,
        ..scene.grant().user
    };
    let decision = NewDecision {
        decision: DeviceDecision::Allowed,
        user: &user,
        scopes: &scope,
        session_epochs: epochs(&scene.store).0,
        client_epoch: epochs(&scene.store).1.client,
        ends_lapsed_consent: true,
    };
    let decide = || {
        let (codes, event) = ([user_code_hash], named("device_allowed"));
        device_authorizations::decide(&scene.store, &codes, &decision, &event).unwrap()
    };
    assert_eq!((decide(), decide()), (true, false));
    device_code_hash
}

#[test]
fn the_same_attempt_twice_redeems_a_device_once_and_another_never() {
    let scene = scene();
    let hash = allowed_device(&scene);
    let new = || (scene.grant(), random::bytes());
    let redeem = |(grant, attempt): &(Grant, [u8; 16])| {
        // Under whichever line of the master secret it was entered.
        let (hashes, event) = ([[0; 32], hash], AuditEvent::default());
        match device_authorizations::redeem(&scene.store, &hashes, grant, *attempt, &event).unwrap()
        {
            DeviceRedemption::Issued(user) => Some(user.subject),
            DeviceRedemption::Spent => None,
            DeviceRedemption::NoLongerStands => panic!("nothing was withdrawn"),
        }
    };
    let first = new();
    assert_eq!(redeem(&first), Some(alice()));
    assert_eq!(redeem(&first), Some(alice()));
    assert_eq!((redeem(&new()), redeem(&first)), (None, Some(alice())));
    assert_eq!(scene.rows(), (1, 1));
    assert_eq!(scene.events("device_allowed"), 1);
    assert_eq!(scene.events("device_code_redeemed"), 1);
}

#[test]
fn the_same_attempt_twice_is_one_refresh() {
    let scene = scene();
    let grant = Grant {
        scope: ScopeSet::parse("openid offline_access").unwrap(),
        ..scene.grant()
    };
    assert!(is_issued(&scene.redeem_by(&grant, ATTEMPT)));
    let handle = RefreshHandle {
        grant: grant.id,
        generation: 0,
    };
    let client_id = client_id();
    let of_reuse = |reuse| NewRefresh {
        handle,
        client_id: &client_id,
        attempt: random::bytes(),
        reuse,
        retry_window: Duration::from_secs(30),
        bind_to: None,
    };
    for (reuse, generation, told) in [(true, 0, 1), (false, 1, 2)] {
        let new = of_reuse(reuse);
        for _ in 0..2 {
            let refreshed = grants::refresh(&scene.store, &new, &AuditEvent::default()).unwrap();
            let made = matches!(refreshed, Some(Refreshed::Issued { generation: next, .. }) if next == generation);
            assert!(made, "{refreshed:?}");
        }
        assert_eq!(scene.events("refreshed"), told);
        assert_eq!(scene.events("refresh_repeated"), 0);
    }
    // Moved without being read first, and the answer lost: what was to be is past, and the grant is
    // read.
    let handle = RefreshHandle {
        generation: 1,
        ..handle
    };
    let now = Instant::from_seconds(0);
    let within = Within {
        in_session: false,
        scopes: vec!["openid", "offline_access"],
        tenants: vec![""],
        expires_after: now,
        used_after: now,
        acrs: None,
        confirmation: None,
    };
    let new = NewRefresh {
        handle,
        ..of_reuse(false)
    };
    let event = AuditEvent::default();
    let move_on = || grants::move_on(&scene.store, &new, &within, &event).unwrap();
    let next = |refreshed| match refreshed {
        Refreshed::Issued { generation, user } => (generation, user.subject),
        Refreshed::Revoked | Refreshed::NoLongerStands => panic!("{refreshed:?}"),
    };
    let (read, moved) = move_on().unwrap();
    assert_eq!(read.user, grant.user.clone());
    assert_eq!(read.generation, 1);
    assert_eq!(next(moved), (2, alice()));
    assert_eq!(move_on(), None);
    let repeated = grants::refresh(&scene.store, &new, &event).unwrap();
    assert_eq!(repeated.map(next), Some((2, alice())));
    assert_eq!(scene.events("refreshed"), 3);
    assert_eq!(scene.events("refresh_repeated"), 0);
    let mut reused = of_reuse(true);
    reused.handle = RefreshHandle {
        generation: 2,
        ..handle
    };
    let reuse = || grants::move_on(&scene.store, &reused, &within, &event).unwrap();
    assert!(reuse().is_some_and(|(_, refreshed)| next(refreshed) == (2, alice())));
    assert_eq!((reuse(), scene.events("refreshed")), (None, 4));
}

#[test]
fn burning_a_redeemed_code_revokes_what_it_gave() {
    let scene = scene();
    let grant = scene.grant();
    assert!(is_issued(&scene.redeem(&grant)));
    let (attempt, event) = (random::bytes(), AuditEvent::default());
    assert!(grants::burn(&scene.store, &grant, attempt, &event).unwrap());
    assert_eq!((scene.rows(), scene.events("code_replayed")), ((1, 0), 1));
}

#[test]
fn an_expired_code_that_was_never_redeemed_leaves_no_row() {
    let scene = scene();
    let grant = scene.grant();
    assert!(!scene.revoke_replayed(&grant, &client_id()));
    assert_eq!(scene.rows(), (0, 0));
    assert_eq!(scene.events("code_replayed"), 0);
}

#[test]
fn an_expired_code_that_was_redeemed_revokes_for_its_own_client_only() {
    let scene = scene();
    let grant = scene.grant();
    assert!(is_issued(&scene.redeem(&grant)));
    let stranger = ClientId::new("other");
    assert!(!scene.revoke_replayed(&grant, &stranger));
    assert_eq!(scene.rows(), (1, 1));
    assert!(scene.revoke_replayed(&grant, &client_id()));
    assert_eq!(scene.rows(), (1, 0));
    assert_eq!(scene.events("code_replayed"), 1);
}

/// What else a code stands on is ended over HTTP: `a_code_dies_with_what_it_stands_on`, and the table
/// of `what_ends_what.rs`. Of these, no request makes a session another user's.
#[test]
fn a_code_whose_session_is_another_users_is_spent_and_gives_nothing() {
    let scene = scene();
    let grant = scene.grant();
    scene.database.run("UPDATE sessions SET sub = 'bob'");
    assert_eq!(scene.redeem(&grant), CodeRedemption::NoLongerStands);
    assert_eq!(scene.rows(), (1, 0), "spent, and nothing alive");
    assert_eq!(scene.redeem(&grant), CodeRedemption::ReplayedAgain);
}

#[test]
fn a_replay_after_the_session_ended_still_revokes() {
    let scene = scene();
    let grant = scene.grant();
    assert!(is_issued(&scene.redeem(&grant)));
    let ended =
        "UPDATE sessions SET ended_at = clock_timestamp(); UPDATE users SET enabled = false";
    scene.database.run(ended);
    assert_eq!(scene.redeem(&grant), CodeRedemption::Replayed);
    assert_eq!(scene.rows(), (1, 0));
}

#[test]
fn a_redemption_is_one_transaction() {
    let scene = scene();
    let (grant, event) = (scene.grant(), named("code_redeemed"));
    let redeemed = grants::redeem(&scene.store, &grant, ATTEMPT, &event).unwrap();
    assert!(is_issued(&redeemed));
    let told = "audit_events WHERE event = 'code_redeemed'";
    scene.database.assert_count("grants", 1);
    scene.database.assert_count(told, 1);
    let transactions =
        format!("(SELECT xmin::text FROM grants UNION SELECT xmin::text FROM {told}) transactions");
    assert_eq!(scene.database.count(&transactions), 1);
}

#[test]
fn an_unmigrated_installation_is_an_error_not_an_issue() {
    let scene = scene();
    let grant = scene.grant();
    scene.database.run("DELETE FROM installation");
    let answer = grants::redeem(&scene.store, &grant, ATTEMPT, &AuditEvent::default());
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}
