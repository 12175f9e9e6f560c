//! Signing in with user name and password: one way for the login page and every grant that takes a
//! password. Unknown users, wrong passwords and disabled accounts end alike, in like time.

use std::time::Duration;

use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Result};
use crate::endpoints::login::known_browser;
use crate::endpoints::login::wrong_passwords::{Admitted, Buckets};
use crate::http::Request;
use crate::keys::password::PasswordVerdict;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, Subject, TenantName};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::sign_in_failures;
use gatepost_store::users::{self, CurrentUser};

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

/// The password in a field of a form.
pub fn password_in<'a>(form: &'a Parameters, field: &str) -> Result<Option<&'a str>> {
    let password = form.single(field)?;
    if password.is_some_and(|password| password.len() > parameters::PASSWORD_BYTES) {
        return Err(Failure::bad_request(Reason::OverlongParameter));
    }
    Ok(password)
}

/// Tries a password.
pub fn attempt(app: &App, attempt: &Attempt<'_>) -> Result<PasswordOutcome> {
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
    match (verdict, account.user.filter(|found| found.user.may_act())) {
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
            buckets.count_failure(app)?;
            Ok(PasswordOutcome::Wrong { user })
        }
    }
}

/// Takes as much time as a try. A client must not see whether a password was looked at.
pub fn cost_as_much(app: &App, attempt: &Attempt<'_>) -> Result {
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
