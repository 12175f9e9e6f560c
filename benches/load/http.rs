//! A plain HTTP/1.1 client that costs little, so that what is measured is the server: one
//! connection, one request at a time, the answer read into a buffer that is used again.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may leave a request without a byte of an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    KeptAlive,
    /// One for each request.
    New,
}

/// One client.
pub struct Client {
    address: SocketAddr,
    authority: String,
    connections: Connections,
    stream: Option<TcpStream>,
    received: Vec<u8>,
    answer: Answer,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

/// What is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outgoing<'a> {
    pub path: &'a str,
    /// `Authorization`
    pub authorization: Option<&'a str>,
    /// `Cookie`
    pub cookie: Option<&'a str>,
    /// `X-Forwarded-For`
    pub forwarded_for: Option<&'a str>,
    /// A form makes it a POST.
    pub form: Option<&'a str>,
    /// A document in JSON makes it a POST, too.
    pub json: Option<&'a str>,
}

impl Answer {
    /// The first value of a header; the name in lower case.
    pub fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.headers(name).next()
    }

    /// All values of a header.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self
            .head
            .split("\r\n")
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        lines
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Result<serde_json::Value, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("{error} in {}", self.text()))
    }

    /// The answer, if it has that status.
    pub fn expect(&self, status: u16) -> Result<&Answer, String> {
        if self.status == status {
            return Ok(self);
        }
        let end = self.text().chars().take(300).collect::<String>();
        Err(format!("status {} instead of {status}: {end}", self.status))
    }
}

impl Client {
    pub fn new(address: SocketAddr, authority: &str, connections: Connections) -> Client {
        let (authority, received, answer) = (authority.to_owned(), Vec::new(), Answer::default());
        Client {
            address,
            authority,
            connections,
            stream: None,
            received,
            answer,
        }
    }

    /// GET.
    pub fn get(&mut self, path: &str) -> Result<&Answer, String> {
        self.send(&Outgoing {
            path,
            ..Outgoing::default()
        })
    }

    /// Sends a request and waits for its answer. A kept connection that the server has closed
    /// meanwhile is replaced once.
    pub fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<&Answer, String> {
        let request = self.request(outgoing);
        let was_open = self.stream.is_some();
        let mut done = self.exchange(&request);
        if was_open
            && done
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
        {
            done = self.exchange(&request);
        }
        match done {
            Ok(()) => Ok(&self.answer),
            Err(error) => {
                self.stream = None;
                Err(format!(
                    "{}: {error}",
                    outgoing.path.split('?').next().unwrap_or_default()
                ))
            }
        }
    }

    fn request(&self, outgoing: &Outgoing<'_>) -> Vec<u8> {
        let body = outgoing.form.or(outgoing.json);
        let method = if body.is_some() { "POST" } else { "GET" };
        let mut request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\n",
            outgoing.path, self.authority
        );
        let fields = [
            ("Authorization", outgoing.authorization),
            ("Cookie", outgoing.cookie),
            ("X-Forwarded-For", outgoing.forwarded_for),
            (
                "Connection",
                (self.connections == Connections::New).then_some("close"),
            ),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                request.extend([name, ": ", value, "\r\n"]);
            }
        }
        if let Some(body) = body {
            let kind = match outgoing.form {
                Some(_) => "application/x-www-form-urlencoded",
                None => "application/json",
            };
            request.push_str(&format!("Content-Type: {kind}\r\n"));
            request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        } else {
            request.push_str("\r\n");
        }
        request.into_bytes()
    }

    fn exchange(&mut self, request: &[u8]) -> io::Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        self.received.clear();
        stream
            .write_all(request)
            .map_err(|_| io::Error::from(io::ErrorKind::ConnectionReset))?;
        let must_close = self.read(&mut stream)?;
        if self.connections == Connections::KeptAlive && !must_close {
            self.stream = Some(stream);
        }
        Ok(())
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Reads one answer; says whether the connection ends with it.
    fn read(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        let head_end = loop {
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                break end;
            }
            if self.more(stream)? == 0 {
                let nothing = self.received.is_empty();
                return Err(if nothing {
                    io::ErrorKind::ConnectionReset
                } else {
                    io::ErrorKind::UnexpectedEof
                }
                .into());
            }
        };
        self.answer.head.clear();
        self.answer
            .head
            .push_str(&String::from_utf8_lossy(&self.received[..head_end]));
        let status = self
            .answer
            .head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        self.answer.status = status.ok_or(io::ErrorKind::InvalidData)?;
        let is_chunked = self
            .answer
            .header("transfer-encoding")
            .is_some_and(|value| value.contains("chunked"));
        let length = self
            .answer
            .header("content-length")
            .and_then(|length| length.parse::<usize>().ok());
        let closes = self
            .answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.answer.body.clear();
        if is_chunked {
            self.chunks(stream, head_end + 4)?;
        } else {
            let end = head_end + 4 + length.unwrap_or(0);
            while self.received.len() < end {
                if self.more(stream)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.answer
                .body
                .extend_from_slice(&self.received[head_end + 4..end]);
        }
        Ok(closes)
    }

    /// RFC 9112 §7.1; other providers answer so.
    fn chunks(&mut self, stream: &mut TcpStream, mut start: usize) -> io::Result<()> {
        loop {
            let line_end = loop {
                match find(&self.received[start..], b"\r\n") {
                    Some(end) => break start + end,
                    None if self.more(stream)? == 0 => {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    None => {}
                }
            };
            let line = String::from_utf8_lossy(&self.received[start..line_end]).into_owned();
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
            let size = size.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let end = line_end + 2 + size + 2;
            while self.received.len() < end {
                if self.more(stream)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.answer
                .body
                .extend_from_slice(&self.received[line_end + 2..end - 2]);
            start = end;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn more(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let mut piece = [0; 16_384];
        let count = stream.read(&mut piece)?;
        self.received.extend_from_slice(&piece[..count]);
        Ok(count)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
