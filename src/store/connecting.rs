//! The way to a first answer. A frozen server takes connections and says nothing, so nothing here
//! waits for one without a bound, and of several hosts only those that answer are connected to. TLS
//! always verifies chain and name.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Weak, mpsc};
use std::time::{Duration, Instant};

use postgres::config::Host;
use postgres::{Client, Config};
use r2d2::ManageConnection;
use r2d2_postgres::PostgresConnectionManager;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{StoreError, WAIT_FOR_STANDBY, not_reached, while_connecting};
use super::mutex::Mutex;
use crate::Result;
use crate::named_thread;

pub const START_UP: Duration = Duration::from_secs(5);
/// After how long the next host is tried, too: a check-out from the pool waits for both.
const HESITATION: Duration = Duration::from_secs(1);
/// Starts that may hang at one host: each has a thread and a socket for as long as the server is
/// frozen.
const STUCK_AT_ONCE: usize = 8;
/// How long the handshake of one that only asks whether somebody is there may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long such a host has for its answer of one byte; a living one takes milliseconds.
const ANSWER: Duration = Duration::from_secs(1);
/// `SSLRequest`: its length and its code. Every Postgres answers it with one byte, whether it has
/// TLS or not.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Set when the server gave up waiting for a standby: such a commit looks like success otherwise.
pub type Unacknowledged = Arc<AtomicBool>;

/// Makes connections, and knows where that hangs. Clones know the same.
#[derive(Clone)]
pub struct Connector {
    pub tls: MakeRustlsConnect,
    given_up: Arc<Mutex<Vec<GivenUpStart>>>,
}

/// A start that nobody waits for any more.
struct GivenUpStart {
    host: String,
    /// Dead once its thread has ended.
    thread: Weak<()>,
}

impl Connector {
    /// Trusts the certificates in `root_certificates` (PEM), or the system's where there is no such
    /// file.
    pub fn new(root_certificates: Option<&Path>) -> Result<Connector> {
        Ok(Connector {
            tls: tls(root_certificates)?,
            given_up: Arc::default(),
        })
    }

    /// Connects to the first host that answers and fits, and has `check` look at the connection. A
    /// host that hesitates does not delay the next; hosts where starts hang come last. A start that
    /// hangs keeps its thread, and this stops waiting for it.
    pub fn connect(
        &self,
        config: Config,
        check: impl Fn(&mut Client) -> Result<(), postgres::Error> + Send + Sync + 'static,
    ) -> Result<(Client, Unacknowledged)> {
        let deadline = Instant::now() + START_UP;
        let tls = self.tls.clone();
        // The notice callback belongs to one connection, so each has a manager of its own.
        let begin = Arc::new(move |config: Config| {
            let mut client = PostgresConnectionManager::new(config, tls.clone()).connect()?;
            check(&mut client).map(|()| client)
        });
        let mut hosts = hosts(config);
        hosts.sort_by_key(|host| self.hanging(&name(&host.config)) > 0);
        let mut connected = None;
        let (tell, told) = mpsc::channel();
        let mut started = Vec::new();
        for place in 0..hosts.len() {
            let Some(host) = hosts.get(place).filter(|host| host.answers) else {
                continue;
            };
            let name = name(&host.config);
            if self.hanging(&name) < STUCK_AT_ONCE {
                let config = host.config.clone();
                started.push(GivenUpStart {
                    thread: start(place, config, Arc::clone(&begin), tell.clone()),
                    host: name,
                });
                if let Ok(begun) = told.recv_timeout(HESITATION) {
                    connected = begun.or_note(&mut hosts);
                }
            }
            if connected.is_some() {
                break;
            }
        }
        drop(tell);
        while connected.is_none()
            && let Ok(begun) = told.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            connected = begun.or_note(&mut hosts);
        }
        self.given_up.lock().extend(started);
        connected.ok_or_else(|| StoreError::Unavailable(causes(hosts)))
    }

    /// How many starts hang at a host.
    fn hanging(&self, host: &str) -> usize {
        let mut starts = self.given_up.lock();
        starts.retain(|start| start.thread.strong_count() > 0);
        starts.iter().filter(|start| start.host == host).count()
    }
}

/// One of the hosts that the setting names.
struct ServerHost {
    /// Its place in the setting.
    index: usize,
    /// With this host alone.
    config: Config,
    answers: bool,
    /// Why it does not do. `None`: nothing has come of it yet.
    cause: Option<String>,
}

/// Why each host does not do, in the order of the setting: the log tells the same causes once.
fn causes(mut hosts: Vec<ServerHost>) -> String {
    hosts.sort_by_key(|host| host.index);
    let mut told = Vec::new();
    for host in &hosts {
        let silence = "it takes connections and does not answer";
        let cause = host.cause.as_deref().unwrap_or(silence);
        told.push(format!("{}: {cause}", place(&host.config)));
    }
    told.join("; ")
}

/// What came of a start.
struct Begun {
    /// The place of its host among those that are tried.
    place: usize,
    outcome: Result<(Client, Unacknowledged), String>,
}

impl Begun {
    /// The connection; or else its host is given the cause.
    fn or_note(self, hosts: &mut [ServerHost]) -> Option<(Client, Unacknowledged)> {
        match self.outcome {
            Ok(connected) => Some(connected),
            Err(cause) => {
                if let Some(host) = hosts.get_mut(self.place) {
                    host.cause = Some(cause);
                }
                None
            }
        }
    }
}

/// Begins in a thread of its own, which tells what came of it. The reference that this answers is
/// dead once that thread has ended.
fn start(
    place: usize,
    mut config: Config,
    begin: Arc<impl Fn(Config) -> Result<Client, postgres::Error> + Send + Sync + 'static>,
    tell: Sender<Begun>,
) -> Weak<()> {
    let unacknowledged = heed_notices(&mut config);
    let alive = Arc::new(());
    let started = Arc::downgrade(&alive);
    // One that cannot be started has ended.
    let _starting = named_thread::spawn("store-connect", move || {
        let outcome = match begin(config) {
            Ok(client) => Ok((client, unacknowledged)),
            Err(error) => Err(while_connecting(&error)),
        };
        drop(alive);
        drop(tell.send(Begun { place, outcome }));
    });
    started
}

fn heed_notices(config: &mut Config) -> Unacknowledged {
    let unacknowledged = Unacknowledged::default();
    let flag = Arc::clone(&unacknowledged);
    config.notice_callback(move |notice| {
        flag.fetch_or(notice.routine() == Some(WAIT_FOR_STANDBY), Ordering::SeqCst);
    });
    unacknowledged
}

/// Where a connection is tried, as the log names it.
fn place(config: &Config) -> String {
    let mut hosts = Vec::new();
    for (index, host) in config.get_hosts().iter().enumerate() {
        let port = port(config, index);
        hosts.push(match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
        });
    }
    let role = config.get_user().unwrap_or("(none)");
    format!(
        "{}, database {}, role {role}",
        hosts.join(" and "),
        config.get_dbname().unwrap_or(role)
    )
}

fn name(config: &Config) -> String {
    format!(
        "{:?} {:?} {:?}",
        config.get_hosts(),
        config.get_hostaddrs(),
        config.get_ports()
    )
}

/// The hosts in their order, each asked whether it answers. One alone is not asked.
fn hosts(config: Config) -> Vec<ServerHost> {
    let count = config.get_hosts().len();
    if count < 2 {
        return vec![ServerHost {
            index: 0,
            config,
            answers: true,
            cause: None,
        }];
    }
    let told = ask_each(&config);
    let mut deadline = Instant::now() + CONNECT + ANSWER;
    let mut answers = HashMap::new();
    // Until each has said something, or time is over.
    while let Ok(asked) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if asked.answer.is_ok() {
            deadline = deadline.min(Instant::now() + ANSWER);
        }
        answers.insert(asked.index, asked.answer);
    }
    let judged = |index| {
        let silent = Err(io::ErrorKind::TimedOut.into());
        let answer = answers.remove(&index).unwrap_or(silent);
        let address = answer.as_ref().copied().unwrap_or_default();
        Some(ServerHost {
            index,
            config: alone(&config, index, address)?,
            answers: answer.is_ok(),
            cause: answer.err().map(|error| not_reached(&error)),
        })
    };
    (0..count).filter_map(judged).collect()
}

/// What a host that was asked answered.
struct Asked {
    index: usize,
    /// The address at which it did; a Unix socket has none.
    answer: io::Result<Option<SocketAddr>>,
}

/// Asks each host in a thread of its own.
fn ask_each(config: &Config) -> Receiver<Asked> {
    let (tell, told) = mpsc::channel();
    for (index, host) in config.get_hosts().iter().cloned().enumerate() {
        let tell = tell.clone();
        let port = port(config, index);
        let address = config
            .get_hostaddrs()
            .get(index)
            .map(|address| SocketAddr::new(*address, port));
        // One that cannot be asked has not answered.
        let _asking = named_thread::spawn("store-ask", move || {
            let answer = ask(&host, address, port);
            let _heard = tell.send(Asked { index, answer });
        });
    }
    told
}

/// The address at which a host answers; a Unix socket has none.
fn ask(host: &Host, address: Option<SocketAddr>, port: u16) -> io::Result<Option<SocketAddr>> {
    let name = match host {
        Host::Tcp(name) => name,
        Host::Unix(directory) => {
            let mut stream = UnixStream::connect(directory.join(format!(".s.PGSQL.{port}")))?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.write_all(&SSL_REQUEST)?;
            return stream.read_exact(&mut [0]).map(|()| None);
        }
    };
    let addresses = match address {
        Some(address) => vec![address],
        None => (name.as_str(), port).to_socket_addrs()?.collect(),
    };
    let mut failed = io::ErrorKind::TimedOut.into();
    for address in addresses {
        match ask_at(&address) {
            Ok(()) => return Ok(Some(address)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn ask_at(address: &SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(address, CONNECT)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(&SSL_REQUEST)?;
    stream.read_exact(&mut [0])
}

fn port(config: &Config, index: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(index).or(ports.first()).copied().unwrap_or(5432)
}

/// The configuration with one of its hosts, at the address that answered: hosts can be added to a
/// configuration, and not be taken away.
fn alone(config: &Config, index: usize, address: Option<SocketAddr>) -> Option<Config> {
    let mut one = Config::new();
    match config.get_hosts().get(index)? {
        Host::Tcp(name) => one.host(name),
        Host::Unix(directory) => one.host_path(directory),
    };
    if let Some(address) = address {
        one.hostaddr(address.ip());
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.port(port(config, index))
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    Some(one)
}

fn tls(root_certificates: Option<&Path>) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| StoreError::Refused(String::from("TLS: no protocol version in common")))?
        .with_root_certificates(roots(root_certificates)?)
        .with_no_client_auth();
    // Postgres 17 wants it where TLS begins at once (`sslnegotiation=direct`).
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match file {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path).map_err(|_| {
                StoreError::Refused(format!("sslrootcert: cannot read {}", path.display()))
            })?;
            store.add_parsable_certificates(certificates.filter_map(Result::ok));
            if store.is_empty() {
                return Err(StoreError::Refused(format!(
                    "sslrootcert: no certificate in {}",
                    path.display()
                )));
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_where_and_why_and_no_password() {
        for (text, told) in [
            (
                "postgres://gatepost:canary@127.0.0.1:1/login",
                "127.0.0.1:1, database login, role gatepost: connection refused: start Postgres there",
            ),
            (
                "postgres://u:canary@nobody.invalid/d",
                "nobody.invalid:5432, database d, role u: DNS: ",
            ),
            (
                "host=/nonexistent user=u password=canary",
                "/nonexistent/.s.PGSQL.5432, database u, role u: socket not found: start Postgres on this machine",
            ),
        ] {
            let connector = Connector::new(None).unwrap();
            let failed = connector
                .connect(text.parse().unwrap(), |_| Ok(()))
                .map(drop);
            let failed = failed.unwrap_err().to_string();
            assert!(
                failed.starts_with(&format!("database unavailable: {told}"))
                    && !failed.contains("canary"),
                "{failed}"
            );
        }
    }

    #[test]
    fn a_missing_root_file_is_an_error_not_an_empty_trust() {
        assert!(tls(Some(Path::new("/nonexistent/ca.pem"))).is_err());
        assert!(tls(Some(Path::new("/dev/null"))).is_err());
    }
}
