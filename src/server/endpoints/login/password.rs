//! Signing in with user name and password: one way for the login page and every grant that takes a
//! password. Unknown users, wrong passwords and disabled accounts end alike, in like time.

use std::net::IpAddr;
use std::time::Duration;

use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::login::known_browser;
use crate::http::Request;
use crate::keys::password::PasswordVerdict;
use gatepost_protocol::login::password::{
    Admission, Counters, Failures, PasswordLimits, address_key, admit,
};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, Subject, TenantName};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::sign_in_failures::{self, FailureBucket, FailureCount};
use gatepost_store::users::{self, CurrentUser};

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The tenant of the sign-in, from the request or the client; never from a form.
    pub tenant: Option<&'a TenantName>,
    /// Or their e-mail address, where that is taken.
    pub username: &'a str,
    pub password: &'a SecretText,
    /// The request that brought user name and password.
    pub request: &'a Request,
    /// The client, if a client brings the password.
    pub client: Option<&'a Client>,
}

#[derive(Debug)]
pub enum PasswordOutcome {
    /// The user, as read before the password was looked at.
    Accepted(Box<CurrentUser>),
    Wrong {
        /// The user of that name, where there is one.
        user: Option<Subject>,
    },
    /// The password was not looked at: too many wrong ones came before.
    Throttled(Duration),
}

impl Attempt<'_> {
    fn client_id(&self) -> Option<&ClientId> {
        self.client.map(|client| &client.client_id)
    }

    /// Whether its source stands for one person. That of a confidential client stands for everybody
    /// who signs in by it: the wrong passwords of one must not keep the others out.
    fn source_is_of_one_person(&self) -> bool {
        !self.client.is_some_and(Client::is_confidential)
    }
}

struct Buckets {
    account_and_source: [u8; 32],
    /// Not where the source stands for many people.
    source: Option<[u8; 32]>,
    account: [u8; 32],
}

/// The password in a field of a form.
pub fn password_in<'a>(form: &'a Parameters, field: &str) -> Result<Option<&'a str>, Failure> {
    let password = form.single(field)?;
    if password.is_some_and(|password| password.len() > parameters::PASSWORD_BYTES) {
        return Err(Failure::bad_request(Reason::OverlongParameter));
    }
    Ok(password)
}

/// Tries a password.
pub fn attempt(app: &App, attempt: &Attempt<'_>) -> Result<PasswordOutcome, Failure> {
    let account = users::find_for_sign_in(
        &app.store,
        attempt.tenant,
        attempt.username,
        app.config.sign_in_with,
        attempt.client_id(),
    )?;
    let mut buckets = Buckets::of(
        app,
        attempt.tenant,
        &account.typed_key,
        attempt.request.source,
    );
    buckets.source = buckets.source.filter(|_| attempt.source_is_of_one_person());
    if let Admitted::AfterWait(wait) = buckets.admit(app)? {
        return Ok(PasswordOutcome::Throttled(wait));
    }
    let user = account.user.as_ref().map(|found| found.user.sub.clone());
    // Cookies that come with a client's request say nothing: a script of another origin may have
    // sent it.
    let known = match attempt.client {
        Some(_) => None,
        None => known_browser::account(app, attempt.request, user.as_ref()),
    };
    // The counters are looked at again once it is this attempt's turn to hash, and a wrong password
    // is counted before the turn ends: many guesses at once are no way around the limit.
    let hashing = app.take_hashing_turn(attempt.request, attempt.client_id(), known)?;
    let counters = match buckets.admit(app)? {
        Admitted::Now(counters) => counters,
        Admitted::AfterWait(wait) => return Ok(PasswordOutcome::Throttled(wait)),
    };
    let stored = account
        .user
        .as_ref()
        .and_then(|found| found.user.password_hash.as_ref());
    let verdict = hashing.verify(stored, attempt.password);
    match (verdict, account.user.filter(|found| found.user.enabled)) {
        (PasswordVerdict::Right | PasswordVerdict::RightButOutdated, Some(found)) => {
            // Where a second factor is to follow, the wrong ones are forgotten once that is right:
            // see `counted_wrong`.
            if counters.account_and_source.is_some()
                && found.user.strongest_acr == Strength::SignedIn
            {
                sign_in_failures::clear(&app.store, &buckets.account_and_source)?;
            }
            if let (PasswordVerdict::RightButOutdated, Some(old)) =
                (verdict, &found.user.password_hash)
            {
                users::rehash(
                    &app.store,
                    &found.user.sub,
                    old,
                    &hashing.hash(attempt.password)?,
                )?;
            }
            Ok(PasswordOutcome::Accepted(Box::new(found)))
        }
        _ => {
            let account = FailureBucket {
                bucket: buckets.account,
                window: HOUR,
            };
            let mut counted = vec![buckets.note(app, buckets.account_and_source), account];
            counted.extend(buckets.source.map(|source| buckets.note(app, source)));
            sign_in_failures::record(&app.store, &counted)?;
            Ok(PasswordOutcome::Wrong { user })
        }
    }
}

/// Where the wrong passwords of this user from this source are counted: by name and by address. A
/// whole sign-in forgets them: `attempt` does where a password is enough, else whoever takes the
/// factor that comes after it.
pub fn counted_wrong(app: &App, found: &CurrentUser, source: IpAddr) -> Vec<[u8; 32]> {
    let all = buckets_of_user(app, found, source);
    all.iter().map(|one| one.account_and_source).collect()
}

/// How many wrong passwords of this user there were within an hour, from everywhere.
pub fn count_wrong(app: &App, found: &CurrentUser, source: IpAddr) -> Result<i64, Failure> {
    let all = buckets_of_user(app, found, source);
    let buckets: Vec<[u8; 32]> = all.iter().map(|one| one.account).collect();
    let counts = sign_in_failures::find(&app.store, &buckets)?;
    Ok(counts.iter().map(|count| i64::from(count.failures)).sum())
}

/// By name and by address.
fn buckets_of_user(app: &App, found: &CurrentUser, source: IpAddr) -> Vec<Buckets> {
    let tenant = found.user.tenant.as_ref();
    let address_key = address_key(&found.user.claims);
    let keys = [&found.username_key, &address_key].into_iter().flatten();
    keys.map(|key| Buckets::of(app, tenant, key, source))
        .collect()
}

/// Takes as much time as a try. A client must not see whether a password was looked at.
pub fn cost_as_much(app: &App, attempt: &Attempt<'_>) -> Result<(), Failure> {
    let hashing = app.take_hashing_turn(attempt.request, attempt.client_id(), None)?;
    let _: PasswordVerdict = hashing.verify(None, attempt.password);
    Ok(())
}

/// Tells the audit log of a wrong password, and of the user whose it should be. A name that nobody
/// has is not told: what was typed as a user name is sometimes a password.
pub fn record_failure(
    app: &App,
    request: &Request,
    client_id: Option<&ClientId>,
    user: Option<&Subject>,
) {
    let whose = user.map_or(Concerned::Nobody, Concerned::User);
    let reason = Reason::WrongPassword;
    app.note_failure("sign_in_failed", request, client_id, whose, reason);
}

/// Whether an attempt is looked at.
enum Admitted {
    /// It is, after so many that were wrong.
    Now(Counters),
    AfterWait(Duration),
}

impl Buckets {
    fn of(app: &App, tenant: Option<&TenantName>, typed_key: &str, source: IpAddr) -> Buckets {
        let source = Source::of(source).bytes();
        let tenant = tenant.map_or("", TenantName::as_str).as_bytes();
        let account = typed_key.as_bytes();
        let name = |parts: &[&[u8]]| app.vault.throttle_buckets.tag(parts);
        Buckets {
            account_and_source: name(&[b"account and source", tenant, account, &source]),
            source: Some(name(&[b"source", &source])),
            account: name(&[b"account", tenant, account]),
        }
    }

    fn admit(&self, app: &App) -> Result<Admitted, Failure> {
        let mut read = vec![self.account_and_source, self.account];
        read.extend(self.source);
        let counts = sign_in_failures::find(&app.store, &read)?;
        let counters = Counters {
            account_and_source: failures_of(&counts, self.account_and_source),
            source: self.source.and_then(|source| failures_of(&counts, source)),
            account: failures_of(&counts, self.account),
        };
        Ok(match admit(&counters, &limits(app), app.now()) {
            Admission::Admit => Admitted::Now(counters),
            Admission::Wait(wait) => Admitted::AfterWait(wait),
            Admission::Introduce(wait) => {
                sign_in_failures::record(&app.store, &[self.note(app, self.account_and_source)])?;
                Admitted::AfterWait(wait)
            }
        })
    }

    fn note(&self, app: &App, bucket: [u8; 32]) -> FailureBucket {
        FailureBucket {
            bucket,
            window: app.config.limits.password_window,
        }
    }
}

fn failures_of(counts: &[FailureCount], bucket: [u8; 32]) -> Option<Failures> {
    let count = counts.iter().find(|count| count.bucket == bucket)?;
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
