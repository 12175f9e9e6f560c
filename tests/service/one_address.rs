//! Of two ways at once by which an address comes to somebody, or somebody is called by it, one
//! does. Neither statement sees what the other is about to commit.

use std::thread;
use std::time::Duration;

use gatepost::keys::random;
use gatepost::manage::statements::scim_users;
use gatepost::protocol::login::password::SignInWith;
use gatepost::protocol::words::epochs::SessionEpochs;
use gatepost::protocol::words::secret::SecretText;
use gatepost::protocol::words::session::Session;
use gatepost::registrar::statements::user_changes;
use gatepost::store::sign_up_links::{self, NewMember, SignUpLink};
use gatepost::store::users::{self, UserRow};
use gatepost::store::{Store, StoreError};
use gatepost::tool::statements::sign_up_changes;
use serde_json::{Map, Value, json};

use crate::store_users::{event, new_session, new_user, with_handle};
use crate::support::postgres::TestDatabase;
use crate::support::waiting::{SOON, await_that};

/// The ways by which an address comes to somebody, or a name that reads like it.
const WAYS: &str = "sign-up|letter|invitation|new in SCIM|renamed in SCIM";

fn claims(of: Value) -> Map<String, Value> {
    of.as_object().unwrap().clone()
}

struct House {
    database: TestDatabase,
    store: Store,
    link: SignUpLink,
}

/// Somebody who is about to get the address.
struct Candidate {
    way: &'static str,
    user: UserRow,
    session: Session,
}

impl House {
    fn open() -> House {
        let database = TestDatabase::migrated();
        let store = database.store();
        let link = SignUpLink {
            id: [7; 16],
            tenant: None,
            roles: Vec::new(),
            domain: None,
            accounts_for: None,
            uses: 1_000,
            used: 0,
            expires_at: database.now().plus(Duration::from_secs(3_600)),
            ended_at: None,
        };
        sign_up_changes::insert(&store, &link, &event()).unwrap();
        House {
            database,
            store,
            link,
        }
    }

    /// Those who are somebody already have a session.
    fn candidate(&self, way: &'static str, name: &str, address: &str) -> Candidate {
        let mut user = new_user(name, name);
        if way == "invitation" {
            user.claims = claims(json!({"email": address}));
        }
        let none = SessionEpochs {
            installation: 0,
            user: 0,
        };
        let mut session = new_session(&self.database, user.sub.clone(), none);
        if !["sign-up", "new in SCIM"].contains(&way) {
            user_changes::insert(&self.store, &user, &event()).unwrap();
            let found =
                users::find_for_sign_in(&self.store, None, name, SignInWith::Username, None);
            let found = found.unwrap().user.unwrap();
            session.epochs = found.session_epochs();
            user = found.user;
            let handle_hash = random::bytes();
            let new = with_handle(&session, &handle_hash);
            new.insert(&self.store, &event()).unwrap();
        }
        Candidate { way, user, session }
    }

    fn get(&self, candidate: &Candidate, address: &str) -> Result<(), StoreError> {
        let Candidate { way, user, session } = candidate;
        let store = &self.store;
        let hash = SecretText::new("another hash");
        let verified = claims(json!({"email": address, "email_verified": true}));
        match *way {
            "sign-up" => {
                let new = NewMember {
                    id: &self.link.id,
                    letter: user.sub.as_str(),
                    forgotten_at: self.link.expires_at,
                    sub: &user.sub,
                    username: user.sub.as_str(),
                    address,
                    password_hash: &hash,
                    claims: &verified,
                };
                sign_up_links::join(store, &new, &event()).map(drop)
            }
            "letter" => {
                users::change_address(store, user, session, None, address, &event()).map(drop)
            }
            "invitation" => {
                let sub = &user.sub;
                let is_set = users::set_password(store, sub, None, &hash, Some(address), &event())?;
                assert!(is_set, "the password is theirs in any case");
                Ok(())
            }
            "new in SCIM" => {
                let new = UserRow {
                    username: Some(address.to_owned()),
                    password_hash: None,
                    claims: Map::new(),
                    ..user.clone()
                };
                match scim_users::insert(store, &new, None, &[event()]) {
                    Err(StoreError::Taken(_)) => Ok(()),
                    answer => answer.map(drop),
                }
            }
            _ => {
                let mut renamed = scim_users::find(store, &[String::new()], &user.sub)?.unwrap();
                renamed.row.username = Some(address.to_owned());
                match scim_users::update(store, &[String::new()], &renamed, None, &[event()]) {
                    Err(StoreError::Taken(_)) => Ok(()),
                    answer => answer.map(drop),
                }
            }
        }
    }

    /// On a slow machine a row is held for longer than a statement waits.
    fn get_at_last(&self, candidate: &Candidate, address: &str) {
        loop {
            match self.get(candidate, address) {
                Err(StoreError::Conflict(_)) => {}
                answer => return answer.unwrap(),
            }
        }
    }

    /// How many have it as an address that counts, or are called so.
    fn holders(&self, address: &str) -> i64 {
        self.database.count(&format!(
            "users WHERE username_key = '{address}'
             OR claims->>'email' = '{address}' AND claims->'email_verified' = 'true'"
        ))
    }
}

#[test]
fn of_any_two_ways_at_once_one_gives_the_address() {
    let house = House::open();
    let mut tried = 0;
    for (index, first) in WAYS.split('|').enumerate() {
        for second in WAYS.split('|').skip(index) {
            let address = format!("{index}-{tried}@example.com");
            let both = [
                house.candidate(first, &format!("{tried}-first"), &address),
                house.candidate(second, &format!("{tried}-second"), &address),
            ];
            let mut holder = house.database.client();
            let backend = "SELECT pg_backend_pid()";
            let backend: i32 = holder.query_one(backend, &[]).unwrap().get(0);
            // Whoever has taken the address waits for one of these rows, and the other one for them.
            let mut held = holder.transaction().unwrap();
            let hold = format!(
                "SELECT FROM sign_up_links FOR UPDATE; SELECT FROM users FOR UPDATE;
                 INSERT INTO users (sub, username, username_key, claims)
                 VALUES ('holder', '{address}', '{address}', '{{}}')"
            );
            held.batch_execute(&hold).unwrap();
            thread::scope(|scope| {
                let running = both.each_ref().map(|one| {
                    let (house, address) = (&house, &address);
                    scope.spawn(move || house.get_at_last(one, address))
                });
                await_that("each waits, or is done", SOON, || {
                    let done = running.iter().filter(|one| one.is_finished()).count();
                    done + house.database.waiting_behind(backend).len() >= 2
                });
                held.rollback().unwrap();
                for one in running {
                    one.join().unwrap();
                }
            });
            assert_eq!(house.holders(&address), 1, "{first}, {second}");
            tried += 1;
        }
    }
    assert_eq!(tried, 15);
}

#[test]
fn an_address_that_was_given_up_can_come_to_somebody_else_at_once() {
    let house = House::open();
    for (number, way) in WAYS.split('|').enumerate() {
        let one = house.candidate("letter", &format!("one-{number}"), "");
        let address = format!("{number}@example.com");
        house.get_at_last(&one, &address);
        assert_eq!(house.holders(&address), 1, "{way}");
        let other = house.candidate(way, &format!("other-{number}"), &address);
        house.get_at_last(&other, &address);
        assert_eq!(house.holders(&address), 1, "{way}: it is taken");
        let (store, session) = (&house.store, &one.session);
        let old = Some(address.as_str());
        let new = format!("new-{number}@example.com");
        assert!(users::change_address(store, &one.user, session, old, &new, &event()).unwrap());
        assert_eq!(house.holders(&address), 0, "{way}");
        house.get_at_last(&other, &address);
        assert_eq!(house.holders(&address), 1, "{way}: it is free");
    }
}
