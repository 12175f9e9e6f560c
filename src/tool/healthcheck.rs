//! `gatepost healthcheck`: asks the running server whether it is ready, for containers and scripts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use gatepost_server::config::{ListenAddress, Listeners, cause};
use gatepost_server::server::reachable;

use super::arguments::Invocation;
use super::output::{self, CommandResult, say};

const PATIENCE: Duration = Duration::from_secs(3);

pub fn run(invocation: &Invocation) -> CommandResult {
    // It also runs where the installation is not root's, and asks the usual address without any
    // settings.
    let listeners = Listeners::load(&invocation.given_source()?)?;
    let (listener, path, word) = match listeners.admin {
        Some(address) => (ListenAddress::Tcp(address), "/readyz", "ready"),
        None => (listeners.main, "/healthz", "alive"),
    };
    let (answer, place) = match listener {
        ListenAddress::Tcp(address) => (
            over_tcp(address, "localhost", path),
            format!("http://{}{path}", reachable(address)),
        ),
        ListenAddress::Unix(socket) => (
            over_unix(&socket, path),
            format!("{path} over unix:{}", socket.display()),
        ),
    };
    say(judged(answer, word, &place)?)
}

/// The server's words where it is what `word` says.
fn judged(answer: std::io::Result<Answer>, word: &str, place: &str) -> CommandResult<String> {
    match answer {
        Ok(answer) if answer.status.starts_with("HTTP/1.1 200 ") => Ok(answer.said(word)),
        Ok(answer) => {
            let status = answer.status.escape_debug();
            refuse!(
                "{}: {place} answers \"{status}\"",
                answer.said(&format!("not {word}"))
            )
        }
        Err(error) => {
            let cause = cause(&error);
            refuse!("not {word}: {place}: {cause}: is `gatepost serve` running?")
        }
    }
}

pub struct Answer {
    pub status: String,
    said: String,
}

impl Answer {
    /// Its own words where they are about `word`: `degraded` is neither that nor its contrary, and
    /// says why.
    fn said(&self, word: &str) -> String {
        let tells = [word, "degraded: "]
            .iter()
            .any(|beginning| self.said.starts_with(beginning));
        if tells {
            output::printable(&self.said)
        } else {
            word.to_owned()
        }
    }
}

pub fn over_tcp(address: SocketAddr, host: &str, path: &str) -> std::io::Result<Answer> {
    let stream = TcpStream::connect_timeout(&reachable(address), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    ask(stream, host, path)
}

fn over_unix(socket: &Path, path: &str) -> std::io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    ask(stream, "localhost", path)
}

/// At most four kilobytes are waited for.
fn ask(mut stream: impl Read + Write, host: &str, path: &str) -> std::io::Result<Answer> {
    // In one piece: a server may answer, and close, once it has seen the beginning.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let outcome = stream.take(4_096).read_to_end(&mut answer);
    // What came before counts: a server need not close.
    if answer.is_empty() {
        outcome?;
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok(Answer {
        status: first_line(head),
        said: first_line(body),
    })
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_end().to_owned()
}
