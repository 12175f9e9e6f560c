//! The way to a first answer. A frozen server takes connections and says nothing, so nothing here
//! waits for one without a bound, and of several hosts only those that answer are connected to. TLS
//! always verifies chain and name.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use postgres::config::Host;
use postgres::{Client, Config};
use r2d2::ManageConnection;
use r2d2_postgres::PostgresConnectionManager;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{StoreError, WAIT_FOR_STANDBY, while_connecting};

pub(super) const START_UP: Duration = Duration::from_secs(5);
/// After how long the next host is tried, too: a check-out from the pool waits for both.
const HESITATION: Duration = Duration::from_secs(1);
/// Starts that may hang at one host: each has a thread and a socket for as long as the server is
/// frozen.
const STUCK_AT_ONCE: usize = 8;
/// Starts that were given up, by their host; gone when they end.
static STUCK: Mutex<Vec<(String, Weak<()>)>> = Mutex::new(Vec::new());
/// How long the handshake of one that only asks whether somebody is there may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long such a host has for its answer of one byte; a living one takes milliseconds.
const ANSWER: Duration = Duration::from_secs(1);
/// `SSLRequest`: its length and its code. Every Postgres answers it with one byte, whether it has
/// TLS or not.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Set when the server gave up waiting for a standby: such a commit looks like success otherwise.
pub(super) type Unacknowledged = Arc<AtomicBool>;

/// Connects to the first host that answers and fits, and has `check` look at the connection. A host
/// that hesitates does not delay the next; hosts where starts hang come last. A start that hangs
/// keeps its thread, and this stops waiting for it.
pub(super) fn connect(
    config: Config,
    tls: MakeRustlsConnect,
    check: impl Fn(&mut Client) -> Result<(), postgres::Error> + Send + Sync + 'static,
) -> Result<(Client, Unacknowledged), StoreError> {
    let deadline = Instant::now() + START_UP;
    let everywhere = place(&config);
    // The notice callback belongs to one connection, so each has a manager of its own.
    let begin = Arc::new(move |config: Config| {
        let mut client = PostgresConnectionManager::new(config, tls.clone()).connect()?;
        check(&mut client).map(|()| client)
    });
    let mut hosts: Vec<_> = answering(config)
        .into_iter()
        .map(|config| (stuck(&name(&config)), config))
        .collect();
    hosts.sort_by_key(|(stuck, _)| *stuck > 0);
    let silence = if hosts.is_empty() {
        "no host answers"
    } else {
        "it takes connections and does not answer"
    };
    let mut answer = Err(StoreError::Unavailable(format!("{everywhere}: {silence}")));
    let (tell, told) = mpsc::channel();
    let mut started = Vec::new();
    for (stuck, config) in hosts {
        if answer.is_ok() {
            break;
        }
        if stuck < STUCK_AT_ONCE {
            let host = name(&config);
            started.push((host, start(config, Arc::clone(&begin), tell.clone())));
            answer = told.recv_timeout(HESITATION).unwrap_or(answer);
        }
    }
    drop(tell);
    while answer.is_err()
        && let Ok(begun) = told.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        answer = begun;
    }
    STUCK
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(started);
    answer
}

type Begun = Result<(Client, Unacknowledged), StoreError>;

/// Begins in a thread of its own, which tells what came of it. The reference that this answers is
/// dead once that thread has ended.
fn start(
    mut config: Config,
    begin: Arc<impl Fn(Config) -> Result<Client, postgres::Error> + Send + Sync + 'static>,
    tell: Sender<Begun>,
) -> Weak<()> {
    let unacknowledged = heed_notices(&mut config);
    let alive = Arc::new(());
    let started = Arc::downgrade(&alive);
    // One that cannot be started has ended.
    let _starting = thread::Builder::new()
        .name(String::from("store-connect"))
        .spawn(move || {
            let place = place(&config);
            let begun = match begin(config) {
                Ok(client) => Ok((client, unacknowledged)),
                Err(error) => Err(StoreError::Unavailable(format!(
                    "{place}: {}",
                    while_connecting(&error)
                ))),
            };
            drop(alive);
            drop(tell.send(begun));
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

fn stuck(host: &str) -> usize {
    let mut stuck = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    stuck.retain(|(_, start)| start.strong_count() > 0);
    stuck.iter().filter(|(name, _)| name == host).count()
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

/// The hosts that answer, in their order, each in a configuration of its own. One alone is not
/// asked.
fn answering(config: Config) -> Vec<Config> {
    if config.get_hosts().len() < 2 {
        return vec![config];
    }
    let told = ask_each(&config);
    let mut deadline = Instant::now() + CONNECT + ANSWER;
    let mut answered = Vec::new();
    // Until each has said something, or time is over.
    while let Ok(answer) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if let Some(answer) = answer {
            answered.push(answer);
            deadline = deadline.min(Instant::now() + ANSWER);
        }
    }
    answered.sort_unstable_by_key(|(index, _)| *index);
    answered
        .into_iter()
        .filter_map(|(index, address)| alone(&config, index, address))
        .collect()
}

/// Asks each host in a thread of its own. One that answers is told by its place among them, with
/// the address; of one that does not, `None` is told.
fn ask_each(config: &Config) -> Receiver<Option<(usize, Option<SocketAddr>)>> {
    let (tell, told) = mpsc::channel();
    for (index, host) in config.get_hosts().iter().cloned().enumerate() {
        let tell = tell.clone();
        let port = port(config, index);
        let address = config
            .get_hostaddrs()
            .get(index)
            .map(|address| SocketAddr::new(*address, port));
        // One that cannot be asked has not answered.
        let _asking = thread::Builder::new()
            .name(String::from("store-ask"))
            .spawn(move || {
                let answered = ask(&host, address, port).ok();
                let _heard = tell.send(answered.map(|address| (index, address)));
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
    addresses
        .into_iter()
        .find(|address| ask_at(address).is_ok())
        .map(Some)
        .ok_or(io::ErrorKind::TimedOut.into())
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

/// A connector that trusts the certificates in `root_certificates` (PEM), or the system's where
/// there is no such file.
pub(super) fn tls(root_certificates: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| StoreError::Refused(String::from("TLS: no protocol version in common")))?
        .with_root_certificates(roots(root_certificates)?)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, StoreError> {
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
            let tls = tls(None).unwrap();
            let failed = connect(text.parse().unwrap(), tls, |_| Ok(())).map(drop);
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
