//! The lane of letters. A request leaves an errand here and answers at once; threads of the lane
//! look up whom it concerns, write the letter and send it. All of it is in memory: a table would
//! hold links that still work.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::guesses::{Guesses, Source};
use crate::config::Config;
use crate::metrics::CountersByKind;
use crate::outbound::{Postman, Undelivered};
use gatepost_protocol::login::letters::{MOST_OF_SOURCE, Withheld};
use gatepost_protocol::login::sign_up::SignUpId;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant as Moment;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::named::named;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::web_url::WebUrl;
use gatepost_store::mutex::Mutex;
use gatepost_store::named_thread;
use gatepost_store::users::UserRow;

/// Each tells whoever tries it that somebody is called so.
const MOST_TAKEN_NAMES: u32 = 10;
/// Errands and letters that may wait.
const MOST_WAITING: usize = 1_000;
/// Errands of sign-ups are taken while fewer wait. The other places are for people who forgot their
/// password, and for users.
const MOST_BEFORE_JOIN: usize = MOST_WAITING / 2;
/// How long after each try that failed comes the next. After the last there is none.
const PAUSES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];
/// How long a letter may be under way. Then it is tried again, whatever becomes of this try.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a letter is wanted for.
#[derive(Clone, Debug)]
pub enum Errand {
    /// Somebody typed a user name or an address, and says that it is theirs.
    Forgotten {
        typed: SecretText,
        /// The sealed request that they sign in for.
        sealed: String,
        /// Their source had its letters. The look-up is made all the same, as time would tell.
        is_withheld: bool,
    },
    /// Somebody wants to make an account for this address, by a sign-up link.
    Join {
        id: SignUpId,
        to: MailAddress,
    },
    /// A user wants to have this address.
    NewAddress {
        sub: Subject,
        to: MailAddress,
        link: SecretText,
    },
    /// Something about a user changed.
    Notice {
        sub: Subject,
        username: String,
        /// What the person is called.
        greeted: String,
        to: MailAddress,
        change: AccountChange,
        /// What the administrator is called who did it; `None` where nobody did it for them.
        by: Option<String>,
    },
    /// Somebody signed in with their password, in a browser that is not known to be theirs.
    NewBrowser {
        user: Box<UserRow>,
        installation_epoch: i64,
        /// Names the browser. One form that was sent twice has one name.
        browser: [u8; 32],
    },
    /// The link of such a letter disabled the account of this person.
    Disabled(Box<UserRow>),
    Written(Letter),
}

#[derive(Clone, Copy, Debug)]
pub enum AccountChange {
    Password,
    /// A passkey took its place.
    PasswordRemoved,
    Address,
    FactorAdded,
    FactorRemoved,
    /// New ones took the place of the old ones.
    RecoveryCodes,
    /// An account elsewhere can be used to sign in.
    Linked,
    Unlinked,
    /// It ends then by itself.
    Ends(Moment),
}

/// A letter that only has to be sent.
#[derive(Clone, Debug)]
pub struct Letter {
    pub to: MailAddress,
    pub message: SecretBytes,
    /// Whom it concerns.
    pub subs: Vec<Subject>,
    /// What the audit log calls it.
    pub kind: &'static str,
}

/// The request that wanted it.
#[derive(Clone, Debug)]
pub struct AskedBy {
    pub source: IpAddr,
    pub request_id: String,
    /// The language of the pages that asked, by its tag.
    pub language: &'static str,
    /// As people call it; `None` for a program.
    pub browser: Option<String>,
    pub at: Moment,
}

#[derive(Debug)]
pub struct WaitingLetter {
    pub errand: Errand,
    pub asked: AskedBy,
    tries: usize,
    due: Instant,
}

#[derive(Debug)]
pub struct Letters {
    postman: Option<Arc<Postman>>,
    line: Mutex<LetterLine>,
    moved: Condvar,
    /// Letters that each source asked for.
    pub sources: Guesses<Source>,
    /// User names that somebody has, tried by whoever got a letter at this address.
    pub taken_names: Guesses<String>,
    pub counts: LetterTotals,
}

#[derive(Debug, Default)]
struct LetterLine {
    waiting: VecDeque<WaitingLetter>,
    under_way: usize,
}

named! {
    /// How a try ended, as `/metrics` calls it.
    pub enum LetterTry {
        Sent = "sent",
        /// Failed, and will be tried again.
        Failed = "failed",
        GivenUp = "given_up",
    }
}

/// For `/metrics`.
#[derive(Debug, Default)]
pub struct LetterTotals {
    pub tries: CountersByKind<LetterTry>,
    pub withheld: CountersByKind<Withheld>,
}

/// How a try ended.
pub enum LetterOutcome {
    /// With the server's last answer.
    Sent(String),
    Failed(Undelivered),
}

impl Letters {
    pub(super) fn new(config: &Config) -> Result<Letters, String> {
        Ok(Letters {
            postman: postman(config)?.map(Arc::new),
            line: Mutex::default(),
            moved: Condvar::new(),
            sources: Guesses::per_hour(MOST_OF_SOURCE, config.limits.tracked as usize),
            taken_names: Guesses::per_hour(MOST_TAKEN_NAMES, config.limits.tracked as usize),
            counts: LetterTotals::default(),
        })
    }

    /// Whether the line is less than half full: there is room for an errand without a letter.
    pub fn has_room(&self) -> bool {
        self.line.lock().waiting.len() < MOST_WAITING / 2
    }

    /// The address that letters come from; `None` where there is no e-mail.
    pub fn from(&self) -> Option<&MailAddress> {
        self.postman.as_ref().map(|postman| &postman.from)
    }

    /// Takes an errand; `false` when too many wait.
    pub fn enter(&self, errand: Errand, asked: AskedBy) -> bool {
        let most = match errand {
            Errand::Join { .. } => MOST_BEFORE_JOIN,
            _ => MOST_WAITING,
        };
        let mut line = self.line.lock();
        if line.waiting.len() >= most {
            return false;
        }
        line.waiting.push_back(WaitingLetter {
            errand,
            asked,
            tries: 0,
            due: Instant::now(),
        });
        self.moved.notify_all();
        true
    }

    /// Takes one back whose try failed; `false` when that was the last try.
    pub fn enter_again(&self, waiting: WaitingLetter) -> bool {
        let Some(pause) = PAUSES.get(waiting.tries) else {
            return false;
        };
        let again = WaitingLetter {
            tries: waiting.tries + 1,
            due: Instant::now() + *pause,
            ..waiting
        };
        self.line.lock().waiting.push_back(again);
        self.moved.notify_all();
        true
    }

    /// Waits for one that is due. Call [`Letters::done`] after it.
    pub fn next(&self) -> WaitingLetter {
        let mut line = self.line.lock();
        loop {
            let now = Instant::now();
            let due = line.waiting.iter().position(|one| one.due <= now);
            if let Some(next) = due.and_then(|at| line.waiting.remove(at)) {
                line.under_way += 1;
                return next;
            }
            let first = line.waiting.iter().map(|one| one.due).min();
            let pause = first.map_or(PATIENCE, |due| due.saturating_duration_since(now));
            let waited = self.moved.wait_timeout(line, pause);
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn done(&self) {
        let mut line = self.line.lock();
        line.under_way = line.under_way.saturating_sub(1);
        self.moved.notify_all();
    }

    /// Tries to send a letter. A try that takes too long has failed, though it may still succeed:
    /// join the thread before the next, so that no more of them hang than the lane has threads.
    pub fn send(&self, letter: &Letter) -> (LetterOutcome, Option<JoinHandle<()>>) {
        let Some(postman) = self.postman.clone() else {
            return (failed("there is no e-mail"), None);
        };
        let Letter { to, message, .. } = letter.clone();
        let (tell, told) = mpsc::channel();
        let sending = move || drop(tell.send(postman.send(&to, message.expose())));
        let started = named_thread::spawn("letter", sending);
        let thread = match started {
            Ok(thread) => thread,
            Err(error) => return (failed(&format!("no thread: {error}")), None),
        };
        let tried = match told.recv_timeout(PATIENCE) {
            Ok(Ok(answer)) => LetterOutcome::Sent(answer),
            Ok(Err(undelivered)) => LetterOutcome::Failed(undelivered),
            Err(_) => failed("it took longer than 10 s"),
        };
        (tried, Some(thread))
    }

    pub fn waiting(&self) -> u64 {
        let line = self.line.lock();
        (line.waiting.len() + line.under_way) as u64
    }

    /// Waits until every letter that is due was tried, but not longer than until `ends`. What waits
    /// then is lost, and the log says so.
    pub fn close(&self, ends: Instant) {
        let mut line = self.line.lock();
        loop {
            let now = Instant::now();
            let is_due = line.waiting.iter().any(|one| one.due <= now);
            if now >= ends || line.under_way == 0 && !is_due {
                break;
            }
            let waited = self
                .moved
                .wait_timeout(line, ends.saturating_duration_since(now));
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for WaitingLetter { asked, .. } in line.waiting.drain(..) {
            let id = &asked.request_id;
            log::warn!("request {id}: a letter was not sent: the process ends");
        }
    }
}

/// It may be tried again.
fn failed(cause: &str) -> LetterOutcome {
    LetterOutcome::Failed(Undelivered {
        is_final: false,
        cause: cause.to_owned(),
    })
}

/// Whoever takes letters to the server; `None` where no server is set. The error says what is wrong
/// with the settings.
pub fn postman(config: &Config) -> Result<Option<Postman>, String> {
    let Some(mail) = &config.mail else {
        return Ok(None);
    };
    let host = WebUrl::parse(config.base_url.as_str()).map_or("localhost", |url| url.host);
    Postman::new(mail, host, config.ca_file.as_deref()).map(Some)
}
