//! Turns to hash a password: as many at once as there are cores and memory. Requests wait for a
//! turn in a line, and strangers cannot fill the places of known browsers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::App;
use super::failure::Failure;
use super::guesses::Source;
use crate::app::failure::Result;
use crate::config::Config;
use crate::http::Request;
use crate::keys::password::{Cost, PasswordHashing, PasswordVerdict};
use gatepost_protocol::login::imported_hash::ImportedHash;
use gatepost_protocol::login::line::{AccountHash, LineLimits, Number, PasswordLine};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::mutex::Mutex;
use gatepost_store::worker::{self, Permit, Permits};

/// Requests that may wait for their turn. Each waits in a thread that is not one of the workers.
/// Otherwise a few dozen strangers at once would keep all workers busy, or most people would have
/// to be turned away.
pub const PLACES_IN_LINE: usize = STRANGERS_IN_LINE + ACCOUNTS_IN_LINE;
const STRANGERS_IN_LINE: usize = 40;
const ACCOUNTS_IN_LINE: usize = 16;
/// How long a request waits in line; a hash takes some 20 ms. What is left of its time is for the
/// database.
const PATIENCE: Duration = Duration::from_secs(3);
/// After so many hashes without a request for a token, about a second, all cores hash again.
const MOST_TOKENS_AHEAD: u64 = 64;

/// The memory that hashes take at once: half of the smallest limit that we ship. Without a limit of
/// processor time a container counts the cores of its whole machine.
const MOST_TOGETHER_KIB: usize = 256 * 1_024;

#[derive(Debug)]
pub(super) struct Hashing {
    passwords: PasswordHashing,
    line: Mutex<PasswordLine<Origin>>,
    /// A turn ended.
    moved: Condvar,
    /// Hashes that leave a core to tokens.
    beside_tokens: Permits,
    /// Tokens asked for lately, less the one that a sign-in brings.
    tokens_ahead: AtomicU64,
}

/// Where a password comes from. Strangers wait in one line for each origin.
#[derive(Debug, PartialEq)]
struct Origin {
    source: Source,
    /// The client that brings the password, by the `password` grant.
    client_id: Option<ClientId>,
}

impl Hashing {
    pub(super) fn new(config: &Config) -> Result<Hashing, String> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let limits = LineLimits {
            at_once: at_once(cores, config.argon2.memory_kib as usize),
            strangers: STRANGERS_IN_LINE,
            accounts: ACCOUNTS_IN_LINE,
        };
        Ok(Hashing {
            passwords: PasswordHashing::new(cost(config))?,
            line: Mutex::new(PasswordLine::new(limits)),
            moved: Condvar::new(),
            beside_tokens: Permits::new((cores - 1).max(1)),
            tokens_ahead: AtomicU64::new(0),
        })
    }

    /// Waits in line, and is not one of the workers meanwhile. `None` when the line is full, or the
    /// wait is too long.
    fn await_turn(&self, account: Option<AccountHash>, origin: Origin) -> Option<Number> {
        let deadline = Instant::now() + PATIENCE;
        let mut line = self.line.lock();
        let number = line.enter(account, origin);
        if !line.has_turn(number) {
            // Nobody waits while a thread is started.
            drop(line);
            worker::stand_up();
            line = self.line.lock();
        }
        while !line.has_turn(number) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !line.is_waiting(number) {
                line.leave(number);
                return None;
            }
            line = self
                .moved
                .wait_timeout(line, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Some(number)
    }
}

/// A turn. It ends when dropped, also when the holder panics.
pub struct HashingTurn<'a> {
    hashing: &'a Hashing,
    number: Number,
    imported: Option<ImportedHash>,
    beside_tokens: Option<Permit<'a>>,
}

impl HashingTurn<'_> {
    /// Checks a password. Without a stored hash the answer is `Wrong`, after the same time.
    pub fn verify(&self, stored: Option<&SecretText>, password: &SecretText) -> PasswordVerdict {
        self.hashing.passwords.verify(
            stored.map(SecretText::expose),
            self.imported.as_ref(),
            password,
        )
    }

    pub fn hash(&self, password: &SecretText) -> Result<SecretText> {
        self.hashing
            .passwords
            .hash(password)
            .map(SecretText::new)
            .map_err(Failure::Internal)
    }
}

impl Drop for HashingTurn<'_> {
    fn drop(&mut self) {
        self.hashing.line.lock().leave(self.number);
        // Any of those who wait may be the next.
        self.hashing.moved.notify_all();
    }
}

impl App {
    /// How many more strangers may wait for a hash.
    pub fn free_hashing_places(&self) -> u64 {
        self.hashing.line.lock().room() as u64
    }

    /// A client asks for a token or about one: more of them than sign-ins, and hashes leave them a
    /// core. Such a request wakes this process and Postgres in turn, and each waits for the end of
    /// a time slice where all cores hash.
    pub fn token_is_asked_for(&self) {
        let one_more = |ahead: u64| Some((ahead + 1).min(MOST_TOKENS_AHEAD));
        let _ =
            self.hashing
                .tokens_ahead
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
    }

    /// A turn to hash: as many at once as there are cores and memory, and one core less beside
    /// tokens. Who asks waits by `account`, if the browser vouches for one, otherwise by source,
    /// and by the client that brings the password.
    pub fn take_hashing_turn(
        &self,
        request: &Request,
        client_id: Option<&ClientId>,
        account: Option<AccountHash>,
    ) -> Result<HashingTurn<'_>> {
        let begun = Instant::now();
        let origin = Origin {
            source: Source::of(request.source),
            client_id: client_id.cloned(),
        };
        let number = self
            .hashing
            .await_turn(account, origin)
            .ok_or(Failure::Busy)?;
        worker::spend(begun.elapsed());
        let hashing = &self.hashing;
        let mut turn = HashingTurn {
            hashing,
            number,
            imported: self.registry.snapshot().usual_imported_hash.clone(),
            beside_tokens: None,
        };
        let one_less = |ahead: u64| ahead.checked_sub(1);
        if hashing
            .tokens_ahead
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            turn.beside_tokens = Some(hashing.beside_tokens.take(PATIENCE).ok_or(Failure::Busy)?);
        }
        Ok(turn)
    }

    pub fn password_hashing(&self) -> &PasswordHashing {
        &self.hashing.passwords
    }

    pub fn release_hashing_memory(&self) {
        self.hashing.passwords.release_memory();
    }
}

/// How many passwords are hashed at once; one also where a hash takes more than all that memory.
fn at_once(cores: usize, memory_kib: usize) -> usize {
    (MOST_TOGETHER_KIB / memory_kib).clamp(1, cores)
}

pub fn cost(config: &Config) -> Cost {
    Cost {
        memory_kib: config.argon2.memory_kib,
        passes: config.argon2.passes,
        lanes: config.argon2.lanes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_at_once_are_bounded_by_cores_and_by_memory() {
        for (cores, memory_kib, most) in [
            (1, 19_456, 1),
            (4, 19_456, 4),
            (64, 19_456, 13),
            (64, 7_168, 36),
            (64, 65_536, 4),
            (64, 262_144, 1),
            (64, 1_048_576, 1),
        ] {
            let found = at_once(cores, memory_kib);
            assert_eq!(found, most, "{cores} cores, {memory_kib} KiB");
            assert!(found == 1 || found * memory_kib <= MOST_TOGETHER_KIB);
        }
    }
}
