//! How wrong passwords are counted: by account and source, by source, and by account alone. An
//! account is what was typed, whether there is one or not: a user name, or an address. Buckets of
//! account and source are keyed hashes that nobody can look up without the source. So a bucket of
//! the account alone keeps until when some source waits, for administrators to see.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::app::App;
use crate::app::failure::Result;
use crate::app::guesses::Source;
use gatepost_protocol::login::password::{
    Admission, Counters, Failures, PasswordLimits, address_key, admit,
};
use gatepost_protocol::words::identifiers::TenantName;
use gatepost_protocol::words::instant::Instant;
use gatepost_store::sign_in_failures::{self, AccountFailures, FailureBucket, FailureCount};
use gatepost_store::users::CurrentUser;

pub const HOUR: Duration = Duration::from_secs(3_600);

/// Whether an attempt is looked at.
pub(super) enum Admitted {
    /// It is, after so many that were wrong.
    Now(Counters),
    AfterWait(Duration),
}

/// Where the failures of an account are counted, as it was typed.
pub struct Buckets {
    pub(super) account_and_source: [u8; 32],
    /// Not where the source stands for many people.
    pub(super) source: Option<[u8; 32]>,
    /// Failures from everywhere.
    pub account: [u8; 32],
    /// Keeps until when a source waits that failed too often.
    pub lock: [u8; 32],
    /// Failures before its moment count no more.
    pub pardon: [u8; 32],
}

impl Buckets {
    pub(super) fn of(
        app: &App,
        tenant: Option<&TenantName>,
        typed_key: &str,
        source: IpAddr,
    ) -> Buckets {
        let source = Source::of(source).bytes();
        let tenant = tenant.map_or("", TenantName::as_str).as_bytes();
        let account = typed_key.as_bytes();
        let name = |parts: &[&[u8]]| app.vault.throttle_buckets.tag(parts);
        Buckets {
            account_and_source: name(&[b"account and source", tenant, account, &source]),
            source: Some(name(&[b"source", &source])),
            account: name(&[b"account", tenant, account]),
            lock: name(&[b"locked account", tenant, account]),
            pardon: name(&[b"pardoned account", tenant, account]),
        }
    }

    pub(super) fn admit(&self, app: &App) -> Result<Admitted> {
        let mut asked = vec![self.account_and_source, self.account, self.pardon];
        asked.extend(self.source);
        let counts = read(app, &asked)?;
        let pardoned_at = moment_of(&counts, self.pardon);
        let standing = |bucket| {
            let failures = failures_of(&counts, bucket);
            failures.filter(|failures| Some(failures.last_at) > pardoned_at)
        };
        let counters = Counters {
            account_and_source: standing(self.account_and_source),
            source: self.source.and_then(|source| failures_of(&counts, source)),
            account: standing(self.account),
        };
        Ok(match admit(&counters, &limits(app), app.now()) {
            Admission::Admit => Admitted::Now(counters),
            Admission::Wait(wait) => Admitted::AfterWait(wait),
            Admission::Introduce(wait) => {
                self.record(app, &[in_window(app, self.account_and_source)])?;
                Admitted::AfterWait(wait)
            }
        })
    }

    /// Counts a wrong password.
    pub(super) fn count_failure(&self, app: &App) -> Result {
        let account = FailureBucket {
            bucket: self.account,
            window: HOUR,
        };
        let mut counted = vec![in_window(app, self.account_and_source), account];
        counted.extend(self.source.map(|source| in_window(app, source)));
        self.record(app, &counted)
    }

    fn record(&self, app: &App, counted: &[FailureBucket]) -> Result {
        let of = AccountFailures {
            counted,
            source: self.source,
            pardon: self.pardon,
            account_and_source: self.account_and_source,
            most: limits(app).account_and_source,
            lock: self.lock,
        };
        Ok(sign_in_failures::record_of_account(&app.store, &of)?)
    }
}

fn in_window(app: &App, bucket: [u8; 32]) -> FailureBucket {
    FailureBucket {
        bucket,
        window: app.config.limits.password_window,
    }
}

/// By their buckets.
pub type Counts = BTreeMap<[u8; 32], FailureCount>;

/// Counts of those buckets. Fails with the database alone.
pub fn read(app: &App, buckets: &[[u8; 32]]) -> Result<Counts> {
    let counts = sign_in_failures::find(&app.store, buckets)?;
    Ok(counts
        .into_iter()
        .map(|count| (count.bucket, count))
        .collect())
}

pub fn moment_of(counts: &Counts, bucket: [u8; 32]) -> Option<Instant> {
    counts.get(&bucket).map(|count| count.last_at)
}

fn failures_of(counts: &Counts, bucket: [u8; 32]) -> Option<Failures> {
    let count = counts.get(&bucket)?;
    Some(Failures {
        count: u32::try_from(count.failures).unwrap_or(0),
        last_at: count.last_at,
        window_ends_at: count.expires_at,
    })
}

fn limits(app: &App) -> PasswordLimits {
    let limits = &app.config.limits;
    let limits = PasswordLimits {
        account_and_source: limits.password_failures_per_account,
        source: limits.password_failures_per_source,
        account: limits.password_failures_per_hour,
        new_source_wait: limits.password_new_source_wait,
    };
    limits.by(app.config.sign_in_with)
}

/// Where the failures of a user are counted: by name and by address.
pub fn of_user(app: &App, found: &CurrentUser, source: IpAddr) -> Vec<Buckets> {
    let tenant = found.user.tenant.as_ref();
    let address_key = address_key(&found.user.claims);
    let keys = [&found.username_key, &address_key].into_iter().flatten();
    keys.map(|key| Buckets::of(app, tenant, key, source))
        .collect()
}

/// Where the wrong passwords of this user from this source are counted: by name and by address. A
/// whole sign-in forgets them: `attempt` does where a password is enough, else whoever takes the
/// factor that comes after it.
pub fn counted_wrong(app: &App, found: &CurrentUser, source: IpAddr) -> Vec<[u8; 32]> {
    let all = of_user(app, found, source);
    all.iter().map(|one| one.account_and_source).collect()
}

/// Forgets the wrong passwords of somebody from the source that their new password comes from.
pub fn forget_of_source(app: &App, found: &CurrentUser, source: IpAddr) -> Result {
    let all = of_user(app, found, source);
    let forgotten: Vec<_> = all
        .iter()
        .flat_map(|one| [one.account_and_source, one.lock])
        .collect();
    Ok(sign_in_failures::take_back(&app.store, &[], &forgotten)?)
}
