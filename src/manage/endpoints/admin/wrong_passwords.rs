//! The wrong passwords of people, as administrators see and pardon them.

use std::net::IpAddr;

use crate::pages::admin::person::WrongPasswords;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_server::app::App;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::login::wrong_passwords::{
    Buckets, Counts, HOUR, moment_of, of_user, read,
};
use gatepost_store::sign_in_failures::{self, FailureBucket};
use gatepost_store::users::CurrentUser;

/// How often in an hour an administrator may let somebody try again.
const MOST_PARDONS: i32 = 3;

/// Looks up the wrong passwords of each of these users, in one statement. The source counts for
/// nothing.
pub fn look_up(app: &App, users: &[&CurrentUser], source: IpAddr) -> Result<Vec<WrongPasswords>> {
    let all: Vec<Vec<Buckets>> = users.iter().map(|one| of_user(app, one, source)).collect();
    let asked: Vec<_> = all
        .iter()
        .flatten()
        .flat_map(|one| [one.account, one.lock, one.pardon])
        .collect();
    let counts = read(app, &asked)?;
    Ok(all.iter().map(|of_user| told(of_user, &counts)).collect())
}

fn told(of_user: &[Buckets], counts: &Counts) -> WrongPasswords {
    let mut told = WrongPasswords::default();
    for of in of_user {
        let count = counts.get(&of.account);
        told.count += count.map_or(0, |count| i64::from(count.failures));
        let pardoned_at = moment_of(counts, of.pardon);
        let lock = counts.get(&of.lock);
        let lock = lock.filter(|lock| Some(lock.last_at) > pardoned_at);
        told.locked_until = told.locked_until.max(lock.map(|lock| lock.expires_at));
    }
    told
}

/// The buckets that pardon the wrong passwords of a user, by name and by address, for as long as
/// one of them could count. The source counts for nothing.
pub fn pardons(app: &App, found: &CurrentUser, source: IpAddr) -> Vec<FailureBucket> {
    let pardon = |one: Buckets| FailureBucket {
        bucket: one.pardon,
        window: app.config.limits.password_window.max(HOUR),
    };
    of_user(app, found, source)
        .into_iter()
        .map(pardon)
        .collect()
}

/// Counts one more pardon of a user. `false` where there were too many within an hour.
pub fn count_pardon(app: &App, sub: &Subject) -> Result<bool> {
    let parts: [&[u8]; 2] = [b"pardons", sub.as_str().as_bytes()];
    let counted = FailureBucket {
        bucket: app.vault.throttle_buckets.tag(&parts),
        window: HOUR,
    };
    let counts = sign_in_failures::record(&app.store, &[counted])?;
    Ok(counts.iter().all(|count| count.failures <= MOST_PARDONS))
}
