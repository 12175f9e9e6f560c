//! A mail server that delivers nothing: it keeps the e-mails that it takes in memory, for the demo
//! application to show. It speaks as much SMTP (RFC 5321) as a client needs that sends one e-mail.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Trouble;

const MOST_KEPT: usize = 100;
/// Bytes of a whole conversation.
const LONGEST_CONVERSATION: u64 = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);

/// An e-mail as somebody reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CaughtMail {
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) date: String,
    pub(super) text: String,
}

/// The newest come first. Clones have the same e-mails.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox(Arc<Mutex<VecDeque<CaughtMail>>>);

impl Mailbox {
    pub(super) fn all(&self) -> Vec<CaughtMail> {
        self.lock().iter().cloned().collect()
    }

    fn keep(&self, mail: CaughtMail) {
        let mut kept = self.lock();
        kept.push_front(mail);
        kept.truncate(MOST_KEPT);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CaughtMail>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes e-mails into the mailbox, in threads that end with the process; answers where.
pub(super) fn start(mailbox: &Mailbox) -> Result<SocketAddr, Trouble> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| cannot_start(&error))?;
    let address = listener
        .local_addr()
        .map_err(|error| cannot_start(&error))?;
    let mailbox = mailbox.clone();
    thread::Builder::new()
        .name(String::from("mail"))
        .spawn(move || {
            for connection in listener.incoming().flatten() {
                let mailbox = mailbox.clone();
                // A client that goes away in the middle sends it again.
                let _ = thread::Builder::new()
                    .name(String::from("mail-client"))
                    .spawn(move || converse(&connection, &mailbox));
            }
        })
        .map_err(|error| cannot_start(&error))?;
    Ok(address)
}

fn cannot_start(error: &io::Error) -> Trouble {
    Trouble::new(format!(
        "the mail server that catches e-mails cannot start: {error}"
    ))
}

fn converse(connection: &TcpStream, mailbox: &Mailbox) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut client = connection;
    let mut lines = BufReader::new(connection.take(LONGEST_CONVERSATION));
    client.write_all(b"220 gatepost-dev catches e-mails\r\n")?;
    let mut to = String::new();
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let command = line.trim_end().to_owned();
        line.clear();
        let verb = command.split([' ', ':']).next().unwrap_or_default();
        let answer = match verb.to_ascii_uppercase().as_str() {
            "EHLO" | "HELO" => "250 gatepost-dev",
            "MAIL" | "RSET" | "NOOP" => "250 OK",
            "RCPT" => {
                to = address(&command).to_owned();
                "250 OK"
            }
            "DATA" => {
                client.write_all(b"354 End with a line that has a dot alone\r\n")?;
                mailbox.keep(read(&to, &data(&mut lines)?));
                "250 Caught"
            }
            "QUIT" => return client.write_all(b"221 Bye\r\n"),
            _ => "502 Not here",
        };
        client.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}

/// What stands between `<` and `>`.
fn address(command: &str) -> &str {
    let after = command.split_once('<').map_or("", |(_, after)| after);
    after.split('>').next().unwrap_or_default()
}

/// The lines up to a dot alone, without the dots that were doubled (RFC 5321 §4.5.2).
fn data(lines: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let content = line.trim_end_matches(['\r', '\n']);
        if content == "." {
            return Ok(text);
        }
        text.push_str(content.strip_prefix('.').unwrap_or(content));
        text.push('\n');
        line.clear();
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Reads an e-mail of Gatepost's: of others it shows what it can.
fn read(to: &str, message: &str) -> CaughtMail {
    let whole = Entity::read(message);
    CaughtMail {
        to: to.to_owned(),
        subject: words(whole.field("Subject")),
        date: whole.field("Date").to_owned(),
        text: whole.text(),
    }
}

/// An e-mail, or a part of one (RFC 2045 §2.4).
struct Entity<'a> {
    head: String,
    body: &'a str,
}

impl Entity<'_> {
    fn read(text: &str) -> Entity<'_> {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        Entity {
            // Long fields go on in lines that begin with a blank.
            head: head.replace("\n ", " "),
            body,
        }
    }

    fn field(&self, name: &str) -> &str {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).unwrap_or_default()
    }

    /// Of several parts, the text of the first: the plainest comes first (RFC 2046 §5.1.4).
    fn text(&self) -> String {
        let boundary = self.field("Content-Type").split_once("boundary=\"");
        if let Some((_, boundary)) = boundary {
            let line = format!("--{}\n", boundary.trim_end_matches('"'));
            let first = self.body.split(&line).nth(1).unwrap_or_default();
            // The end of the line before a boundary is part of the boundary.
            return Entity::read(first.strip_suffix('\n').unwrap_or(first)).text();
        }
        match self.field("Content-Transfer-Encoding") {
            "base64" => decoded(self.body),
            _ => self.body.to_owned(),
        }
    }
}

/// A field with its encoded words read (RFC 2047); blanks between two of them do not count.
fn words(field: &str) -> String {
    let mut text = String::new();
    for (index, word) in field.split(' ').enumerate() {
        let encoded = word
            .strip_prefix("=?utf-8?B?")
            .and_then(|word| word.strip_suffix("?="));
        match encoded {
            Some(encoded) => text.push_str(&decoded(encoded)),
            None => {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(word);
            }
        }
    }
    text
}

fn decoded(base64: &str) -> String {
    let base64: String = base64.split_whitespace().collect();
    let bytes = STANDARD.decode(base64).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, encoding: &str) -> String {
        let head = format!("Content-Transfer-Encoding: {encoding}\r\n\r\n");
        match encoding {
            "base64" => format!("{head}{}\r\n", STANDARD.encode(text)),
            _ => format!("{head}{text}\r\n"),
        }
    }

    #[test]
    fn what_a_client_sends_is_kept_as_somebody_reads_it() {
        let mailbox = Mailbox::default();
        let address = start(&mailbox).unwrap();
        for (subject, text) in [
            ("first", part("One line\r\n", "base64")),
            ("zweite \u{2709}", part("One line\r\n", "7bit")),
        ] {
            let mut client = TcpStream::connect(address).unwrap();
            let message = format!(
                "EHLO here\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<alice@example.com>\r\nDATA\r\n\
                 Subject: =?utf-8?B?{}?=\r\n =?utf-8?B?{}?=\r\nDate: now\r\n\
                 Content-Type: multipart/alternative; boundary=\"ab\"\r\n\r\n--ab\r\n{text}\
                 --ab\r\nContent-Type: text/html\r\n\r\n<p>One line\r\n--ab--\r\n.\r\nQUIT\r\n",
                STANDARD.encode(subject),
                STANDARD.encode("!"),
            );
            client.write_all(message.as_bytes()).unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            assert!(said.ends_with("250 Caught\r\n221 Bye\r\n"), "{said}");
        }
        let all = mailbox.all();
        let subjects: Vec<&str> = all.iter().map(|mail| mail.subject.as_str()).collect();
        assert_eq!(subjects, ["zweite \u{2709}!", "first!"]);
        assert_eq!(all[0].to, "alice@example.com");
        assert!(all.iter().all(|mail| mail.text == "One line\n"), "{all:?}");
        let alone = read("", "Subject: Plain\n\nOne line\nhttps://a.example/x\n");
        assert_eq!(alone.subject, "Plain");
        assert_eq!(alone.text, "One line\nhttps://a.example/x\n");
    }

    #[test]
    fn a_doubled_dot_is_one_and_a_lost_end_keeps_nothing() {
        let mut whole = "..a\r\nb\r\n.\r\n".as_bytes();
        assert_eq!(data(&mut whole).unwrap(), ".a\nb\n");
        assert!(data(&mut "a\r\n".as_bytes()).is_err());
    }
}
