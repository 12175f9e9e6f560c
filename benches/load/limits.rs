//! What this machine can do at most, measured in the same run: signatures, commits, look-ups, and
//! answers of tiny_http alone.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// The argument that makes this program a bare tiny_http.
pub const BARE_HTTP: &str = "bare-http";
/// About as long as our metadata document.
const BODY_LENGTH: usize = 2_500;

/// RSA-2048 signatures a second on all cores.
pub fn rsa_signatures(cores: usize) -> Result<f64, String> {
    let output = Command::new("openssl")
        .args([
            "speed",
            "-seconds",
            "1",
            "-multi",
            &cores.to_string(),
            "rsa2048",
        ])
        .output()
        .map_err(|error| format!("openssl: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with("rsa"))
        .ok_or("openssl speed says nothing")?;
    // rsa 2048 bits 0.000301s 0.000009s 3322.2 111111.1, and in newer ones more columns.
    let mut rates = line
        .split_whitespace()
        .filter(|field| !field.ends_with('s'))
        .filter_map(|field| field.parse::<f64>().ok());
    rates
        .find(|rate| *rate != 2_048.0)
        .ok_or_else(|| format!("openssl speed says {line}"))
}

/// What the limits of the database are measured with.
pub const TABLE: &str = "
DROP TABLE IF EXISTS pgbench_rows; CREATE TABLE pgbench_rows (id uuid PRIMARY KEY, at timestamptz);
DROP TABLE IF EXISTS pgbench_known; CREATE TABLE pgbench_known (id int PRIMARY KEY, at timestamptz);
INSERT INTO pgbench_known SELECT id, now() FROM generate_series(1, 10000) AS id";
/// One row, and one commit.
pub const COMMIT: &str = "INSERT INTO pgbench_rows VALUES (gen_random_uuid(), now());\n";
/// One row by its key.
pub const LOOK_UP: &str =
    "\\set id random(1, 10000)\nSELECT id, at FROM pgbench_known WHERE id = :id;\n";

/// How often a second as many connections run that script.
pub fn pgbench(
    database_url: &str,
    script: &str,
    connections: usize,
    seconds: u64,
) -> Result<f64, String> {
    let mut pgbench = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-j", "2", "-f", "/dev/stdin"])
        .args(["-c", &connections.to_string(), "-T", &seconds.to_string()])
        .arg(database_url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("pgbench: {error}"))?;
    if let Some(mut stdin) = pgbench.stdin.take() {
        stdin
            .write_all(script.as_bytes())
            .map_err(|error| error.to_string())?;
    }
    let output = pgbench
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .and_then(|rest| rest.split(' ').next());
    rate.and_then(|rate| rate.parse().ok())
        .ok_or_else(|| format!("pgbench says {text}"))
}

/// A process with nothing but tiny_http and the same number of workers; ends when dropped.
pub struct BareHttp {
    process: Child,
    pub address: SocketAddr,
}

impl BareHttp {
    pub fn start(workers: usize) -> Result<BareHttp, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut process = Command::new(program)
            .args([BARE_HTTP, &workers.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("no output")?;
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let address = line
            .trim()
            .parse()
            .map_err(|error| format!("{line}: {error}"))?;
        Ok(BareHttp { process, address })
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for BareHttp {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The life of that process. Its one answer passes for metadata, so that the same walker can check
/// it.
pub fn serve_bare_http(workers: usize) -> Result<(), String> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| error.to_string())?;
    let any_port: SocketAddr = ([127, 0, 0, 1], 0).into();
    // Set on the listener, each accepted connection inherits it.
    let listening = socket
        .set_tcp_nodelay(true)
        .and_then(|()| socket.bind(&any_port.into()));
    listening
        .and_then(|()| socket.listen(4_096))
        .map_err(|error| error.to_string())?;
    let listener: std::net::TcpListener = socket.into();
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let body = format!(
        "{{\"issuer\":\"http://{address}\",\"padding\":\"{}\"}}",
        "x".repeat(BODY_LENGTH)
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let server =
        tiny_http::Server::from_listener(listener, None).map_err(|error| error.to_string())?;
    println!("{address}");
    // tiny_http lets new connections wait behind busy ones until a further one comes.
    thread::spawn(move || {
        loop {
            drop(TcpStream::connect(address));
            thread::sleep(Duration::from_millis(20));
        }
    });
    let (server, answer): (_, Arc<[u8]>) = (Arc::new(server), answer.into_bytes().into());
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let (server, answer) = (Arc::clone(&server), Arc::clone(&answer));
            thread::spawn(move || {
                while let Ok(request) = server.recv() {
                    let mut writer = request.into_writer();
                    let _ = writer.write_all(&answer).and_then(|()| writer.flush());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}
