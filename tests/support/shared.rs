//! Servers that the tests of a process share, or use one after the other: one for each registration
//! and its settings. It starts when the first test asks for it, and ends with the process, or when
//! too many are idle.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

use super::gatepost::Gatepost;
use super::secrets;

/// So many run on while no test uses them: each keeps its connections to the cluster.
const IDLE: usize = 6;

/// Guesses and requests of all tests come from one address. Those that are about a limit have a
/// server of their own.
const ROOMY: [(&str, &str); 8] = [
    ("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "100000"),
    ("GATEPOST_LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE", "100000"),
    ("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "100000"),
    ("GATEPOST_LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE", "100000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "100000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR", "100000"),
    ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "100000"),
    ("GATEPOST_LIMIT_USER_CODE_FAILURES_PER_MINUTE", "100000"),
];

/// What requests left in the database goes before the next test is lent it.
const CLEARED: [&str; 10] = [
    "audit_events",
    "consents",
    "device_authorizations",
    "grants",
    "revoked_lasting_tokens",
    "revoked_tokens",
    "session_clients",
    "sessions",
    "sign_in_failures",
    "used_assertions",
];

/// All there are, the one asked for last at the end.
static SERVERS: Mutex<Vec<Arc<Server>>> = Mutex::new(Vec::new());

/// What a server is for.
#[derive(Clone, PartialEq)]
pub struct Kind {
    document: Value,
    settings: Vec<(String, String)>,
    /// One test at a time has it.
    lent: bool,
}

struct Server {
    kind: Kind,
    /// Set by the test that came first; the others wait for it.
    gatepost: OnceLock<Gatepost>,
}

/// One of them in the hands of a test, which looks for secrets in the log when it is done.
pub struct Shared {
    server: Arc<Server>,
    /// How many bytes the log had when the test got it.
    log_before: u64,
}

impl Shared {
    /// The server of that registration under these settings.
    pub fn find(document: &Value, settings: &[(&str, &str)], lent: bool) -> Shared {
        let owned = |(name, value): &(&str, &str)| (String::from(*name), String::from(*value));
        let kind = Kind {
            document: document.clone(),
            settings: settings.iter().map(owned).collect(),
            lent,
        };
        let server = Server::find(&kind);
        if let Some(used_before) = server.gatepost.get().filter(|_| lent) {
            let deleted = CLEARED.map(|table| format!("DELETE FROM {table};"));
            used_before.database.run(&deleted.concat());
        }
        let gatepost = server
            .gatepost
            .get_or_init(|| Gatepost::start_with(document, &[&ROOMY, settings].concat()));
        let log_before = gatepost.log_length();
        Shared { server, log_before }
    }

    /// What the server has logged since this test got it; of other tests too.
    pub fn log(&self) -> String {
        self.log_since(self.log_before)
    }

    /// The server of one's own that it was made from.
    pub fn own(&mut self) -> &mut Gatepost {
        let server = Arc::get_mut(&mut self.server).unwrap();
        server.gatepost.get_mut().unwrap()
    }
}

impl Server {
    /// One of that kind. Those that are idle beyond the number that may be end.
    fn find(kind: &Kind) -> Arc<Server> {
        let is_idle = |server: &Arc<Server>| Arc::strong_count(server) == 1;
        let mut servers = SERVERS.lock().unwrap();
        let fits = |server: &Arc<Server>| server.kind == *kind && (!kind.lent || is_idle(server));
        let server = match servers.iter().position(fits) {
            Some(index) => servers.remove(index),
            None => Arc::new(Server {
                kind: kind.clone(),
                gatepost: OnceLock::new(),
            }),
        };
        let idle = servers.iter().filter(|server| is_idle(server)).count();
        let mut more_than_may_be = idle.saturating_sub(IDLE);
        let superfluous = servers.extract_if(.., |server| {
            let ends = more_than_may_be > 0 && is_idle(server);
            more_than_may_be -= usize::from(ends);
            ends
        });
        let superfluous: Vec<Arc<Server>> = superfluous.collect();
        servers.push(Arc::clone(&server));
        drop(servers);
        drop(superfluous);
        server
    }

    /// No further test gets it.
    fn take_away(self: &Arc<Server>) {
        let mut servers = SERVERS.lock().unwrap();
        servers.retain(|server| !Arc::ptr_eq(server, self));
    }
}

impl Deref for Shared {
    type Target = Gatepost;

    fn deref(&self) -> &Gatepost {
        self.server.gatepost.get().unwrap()
    }
}

/// A server of one's own, where some tests share theirs and others do not.
impl From<Gatepost> for Shared {
    fn from(gatepost: Gatepost) -> Shared {
        let kind = Kind {
            document: Value::Null,
            settings: Vec::new(),
            lent: true,
        };
        Shared {
            server: Arc::new(Server {
                kind,
                gatepost: OnceLock::from(gatepost),
            }),
            log_before: 0,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.server.take_away();
            eprintln!("--- log of the shared server ---\n{}", self.log());
        } else {
            secrets::assert_none_in(&self.log(), "the shared server");
        }
    }
}
