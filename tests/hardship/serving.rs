//! A running service to send bytes to: the real binary, started with a listening socket as standard
//! input or by setting.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::support::waiting::{await_lines_of, await_that};

/// How long any single answer is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A supervisor with its server process; both end with this value.
pub struct Service {
    pub supervisor: Child,
    pub address: SocketAddr,
    directory: PathBuf,
}

/// A directory of its own for one test.
pub fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("gatepost-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// `gatepost serve` with settings that are valid and lead to no database.
pub fn serve_command(program: &str, directory: &Path) -> Command {
    let secret = directory.join("secret");
    fs::write(&secret, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&secret, mode).unwrap();
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .unwrap();
    // A shell in between can set limits; exec leaves only the service.
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -n ${DESCRIPTORS:-1024}; exec \"$0\" serve",
            program,
        ])
        .env(
            "GATEPOST_DATABASE_URL",
            "postgres://nobody@127.0.0.1:1/none",
        )
        .env("GATEPOST_BASE_URL", "http://localhost:8080")
        .env("GATEPOST_SECRET_FILE", secret)
        .env("GATEPOST_ADMIN_LISTEN", "")
        .env("GATEPOST_WORKERS", "16")
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stderr(Stdio::from(log));
    command
}

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_gatepost");
/// What `gatepost serve` becomes.
pub const SERVER: &str = env!("CARGO_BIN_EXE_gatepostd");

/// Puts a copy of a program in place of what lies there. Made by somebody else: what this process
/// has open for writing, a child that another thread starts meanwhile has open too, and a file that
/// is being written is not run.
pub fn install(program: &str, at: &Path) {
    let copied = Command::new("sh")
        .args([
            "-c",
            "cp -p \"$0\" \"$1.new\" && mv \"$1.new\" \"$1\"",
            program,
        ])
        .arg(at)
        .status();
    assert!(copied.unwrap().success());
}

impl Service {
    /// A service on a TCP port of its own.
    pub fn start(name: &str) -> Service {
        Service::start_with(name, &[])
    }

    /// The same, with further environment variables.
    pub fn start_with(name: &str, environment: &[(&str, &str)]) -> Service {
        let directory = scratch(name);
        let mut command = serve_command(PROGRAM, &directory);
        command.envs(environment.iter().copied());
        Service::start_command(command, directory)
    }

    /// Runs `command` with a listening socket as standard input, and waits until it serves.
    pub fn start_command(mut command: Command, directory: PathBuf) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let supervisor = command
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        let service = Service {
            supervisor,
            address,
            directory,
        };
        assert_eq!(service.connect().get("/healthz").status, 200);
        service
    }

    pub fn connect(&self) -> Wire<TcpStream> {
        Wire::over(connect(self.address))
    }

    /// The process ids of the server processes, oldest first.
    pub fn server_processes(&self) -> Vec<u32> {
        children_of(self.supervisor.id())
    }

    /// The only server process.
    pub fn server_process(&self) -> u32 {
        await_that("there is one server process", PATIENCE, || {
            self.server_processes().len() == 1
        });
        self.server_processes()[0]
    }

    pub fn signal(&self, signal: &str) {
        send_signal(self.supervisor.id(), signal);
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait_for(&mut self.supervisor)
    }

    pub fn log(&self) -> String {
        await_lines_of(|| [self.server_processes(), vec![self.supervisor.id()]].concat());
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    pub fn is_healthy(&self) -> bool {
        self.connect().get("/healthz").status == 200
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the service ---\n{}", self.log());
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A connection whose source is another address of this machine.
pub fn connect_from(source: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let mut children: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect();
    children.sort_unstable();
    children
}

/// None of a process that is gone. A zombie is, once it has no thread left but its first, which may
/// end before others.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let (state, parent, threads) = (fields.first()?, fields.get(1)?, fields.get(17)?);
    let is_gone = *state == "X" || (*state == "Z" && *threads == "1");
    if is_gone { None } else { parent.parse().ok() }
}

pub fn is_alive(pid: u32) -> bool {
    parent_of(pid).is_some()
}

pub fn send_signal(pid: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill -{signal} {pid}");
}

/// Kills a process and waits until it is gone: a thread that is woken to die while it waits for
/// connections may take one more, which ends with it.
pub fn kill(pid: u32) {
    send_signal(pid, "KILL");
    await_that("the killed process is gone", PATIENCE, || !is_alive(pid));
}

/// The supervisor learns that a process is open with one of its beats, and tells nobody.
pub fn serve_for_a_while() {
    sleep(Duration::from_secs(3));
}

/// What systemd is told, read as it comes: who tells is held up where nobody reads.
pub struct Notices(Receiver<String>);

impl Notices {
    pub fn at(socket: UnixDatagram) -> Notices {
        let (told, notices) = channel();
        spawn(move || {
            let mut buffer = [0; 256];
            while let Ok(length) = socket.recv(&mut buffer) {
                if told
                    .send(String::from_utf8_lossy(&buffer[..length]).into_owned())
                    .is_err()
                {
                    return;
                }
            }
        });
        Notices(notices)
    }

    pub fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).expect("a notice")
    }

    pub fn await_one(&self, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.next() != wanted {
            assert!(Instant::now() < deadline, "{wanted}");
        }
    }
}

pub fn wait_for(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the process does not end");
}

/// One connection, bytes in and answers out.
pub struct Wire<S: Read + Write> {
    stream: BufReader<S>,
}

/// An answer as it was received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn says_close(&self) -> bool {
        self.headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("connection") && value == "close")
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl<S: Read + Write> Wire<S> {
    pub fn over(stream: S) -> Wire<S> {
        Wire {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what may meet a closed connection.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.answer()
    }

    pub fn post(&mut self, path: &str, body: &[u8]) -> Answer {
        self.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ));
        self.send(body);
        self.answer()
    }

    pub fn answer(&mut self) -> Answer {
        self.read_answer(true).expect("an answer")
    }

    pub fn answer_without_body(&mut self) -> Answer {
        self.read_answer(false).expect("an answer")
    }

    /// `None` when the connection ended instead.
    pub fn read_answer(&mut self, with_body: bool) -> Option<Answer> {
        let status_line = self.line()?;
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        let length = answer
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        if with_body {
            answer.body = vec![0; length];
            self.stream.read_exact(&mut answer.body).unwrap();
        }
        Some(answer)
    }

    /// Whether the other side closes without a further byte, but the line ends by which it looks
    /// whether we are there.
    pub fn ends(&mut self) -> bool {
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return true,
                Ok(_) if matches!(byte, [b'\r' | b'\n']) => {}
                Ok(_) => return false,
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
        }
    }
}

impl Wire<TcpStream> {
    /// Fails when a byte arrives, but for the line ends by which an ended connection is looked at.
    pub fn read_nothing_for(&mut self, duration: Duration) {
        let until = Instant::now() + duration;
        let mut byte = [0];
        while let Some(rest) = until
            .checked_duration_since(Instant::now())
            .filter(|rest| !rest.is_zero())
        {
            self.stream.get_ref().set_read_timeout(Some(rest)).unwrap();
            match self.stream.read(&mut byte) {
                Ok(count) => assert!(
                    count == 1 && matches!(byte, [b'\r' | b'\n']),
                    "{count} bytes arrived: {byte:?}"
                ),
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                    "{error}"
                ),
            }
        }
    }
}

impl<S: Read + Write> Wire<S> {
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(
                line.strip_suffix("\r\n")
                    .expect("lines end with CR LF")
                    .to_owned(),
            ),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}
