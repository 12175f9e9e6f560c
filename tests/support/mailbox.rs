//! A mail server that keeps what it takes, and can fail in every way: `mail_server.py`.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

use super::http::free_port;
use super::secrets;
use super::waiting::{SOON, await_that};

/// Whom the server lets in, where it has a certificate.
pub const PASSWORD: &str = "canary-of-the-mail-server";
const SENDER: &str = "gatepost@mail.test";

pub struct Mailbox {
    pub port: u16,
    url: String,
    folder: PathBuf,
    /// Its process id.
    server: String,
}

/// Asks the process that begins and ends the mail servers of this one; answers its line.
fn ask_postmaster(line: &str) -> io::Result<String> {
    static PROCESS: LazyLock<Mutex<Child>> = LazyLock::new(|| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-W", "ignore", "tests/support/mail_server.py"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Mutex::new(command.spawn().unwrap())
    });
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(process.stdin.as_mut().unwrap(), "{line}")?;
    let mut answers = BufReader::new(process.stdout.as_mut().unwrap()).lines();
    answers
        .next()
        .unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
}

/// A letter as it came.
#[derive(Debug)]
pub struct Letter {
    pub to: Vec<String>,
    pub was_secret: bool,
    /// As sent, with its header.
    pub raw: String,
    /// What a library for e-mail reads in it (`as_read` in `mail_server.py`).
    pub read: Value,
    pub subject: String,
    pub text: String,
}

impl Letter {
    /// The first link in it.
    pub fn link(&self) -> &str {
        let found = self.text.lines().find(|line| line.starts_with("http"));
        found.unwrap_or_else(|| panic!("no link: {}", self.text))
    }

    /// The second of its parts.
    pub fn html(&self) -> &str {
        let part = &self.read["parts"][1];
        assert_eq!(part["type"], "text/html", "{}", self.raw);
        part["text"].as_str().unwrap()
    }
}

impl Mailbox {
    /// In the clear, for this machine alone.
    pub fn open() -> Mailbox {
        Mailbox::start("ok", None)
    }

    /// With STARTTLS and a user, for whom `certificate` of `keys` counts.
    pub fn secured(keys: &Keys, certificate: &str) -> Mailbox {
        Mailbox::start("ok", Some((keys, certificate)))
    }

    /// With TLS from the first byte.
    pub fn wrapped(keys: &Keys, certificate: &str) -> Mailbox {
        Mailbox::start("tls", Some((keys, certificate)))
    }

    fn start(mode: &str, keys: Option<(&Keys, &str)>) -> Mailbox {
        let port = free_port();
        let name = format!("gatepost-mail-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mode"), mode).unwrap();
        let mut begin = format!("begin\t{}\t{port}", folder.display());
        if let Some((keys, certificate)) = keys {
            let file = |ending: &str| keys.file(&format!("{certificate}.{ending}"));
            begin += &format!("\t{}\t{}", file("pem").display(), file("key").display());
        }
        let server = ask_postmaster(&begin).unwrap();
        assert!(server.parse::<u32>().is_ok(), "{begin}: {server}");
        secrets::learn(PASSWORD);
        Mailbox {
            port,
            url: format!("smtp://localhost:{port}"),
            folder,
            server,
        }
    }

    /// The settings of a Gatepost that sends by it; nobody is told of new browsers, as tests sign in
    /// from many.
    pub fn settings(&self) -> [(&str, &str); 3] {
        [
            ("GATEPOST_SMTP_URL", &self.url),
            ("GATEPOST_MAIL_FROM", SENDER),
            ("GATEPOST_NEW_BROWSER_MAIL", "off"),
        ]
    }

    /// How it is from the next connection on.
    pub fn becomes(&self, mode: &str) {
        let next = self.folder.join("next");
        std::fs::write(&next, mode).unwrap();
        std::fs::rename(next, self.folder.join("mode")).unwrap();
    }

    /// Every byte that came in the clear.
    pub fn talk(&self) -> String {
        let talk = std::fs::read(self.folder.join("talk")).unwrap_or_default();
        String::from_utf8_lossy(&talk).into_owned()
    }

    pub fn count(&self) -> usize {
        let kept = std::fs::read_dir(&self.folder).unwrap();
        let of_letters =
            kept.filter(|file| file.as_ref().unwrap().path().extension() == Some("eml".as_ref()));
        of_letters.count()
    }

    /// The letter of that number, from 1, once it is there.
    pub fn letter(&self, number: usize) -> Letter {
        let file = |ending: &str| self.folder.join(format!("{number}.{ending}"));
        await_that(&format!("letter {number} comes"), SOON, || {
            file("eml").exists()
        });
        let envelope: Value =
            serde_json::from_slice(&std::fs::read(file("json")).unwrap()).unwrap();
        let raw = std::fs::read_to_string(file("eml")).unwrap();
        let read: Value =
            serde_json::from_slice(&std::fs::read(file("read.json")).unwrap()).unwrap();
        assert_eq!(read["defects"], Value::Array(Vec::new()), "{raw}");
        let text = read["parts"][0]["text"].as_str().unwrap();
        let text = text.replace("\r\n", "\n");
        for line in text.lines().filter(|line| line.starts_with("http")) {
            secrets::learn(line);
        }
        Letter {
            to: serde_json::from_value(envelope["to"].clone()).unwrap(),
            was_secret: envelope["tls"] == true,
            subject: read["headers"]["Subject"].as_str().unwrap().to_owned(),
            text,
            raw,
            read,
        }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        // A test that fails already says more than this would.
        let _ = ask_postmaster(&format!("end\t{}", self.server));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A CA of one's own, and what it certified.
pub struct Keys {
    folder: PathBuf,
}

impl Keys {
    /// `right` is for localhost, `wrong` for another name, `foreign` by another CA.
    pub fn make() -> Keys {
        let name = format!("gatepost-keys-{}-{}", std::process::id(), free_port());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let keys = Keys { folder };
        for ca in ["ca", "other-ca"] {
            keys.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={ca} \
                 -keyout {ca}.key -out {ca}.pem"
            ));
        }
        for (name, host, ca) in [
            ("right", "localhost", "ca"),
            ("wrong", "elsewhere.test", "ca"),
            ("foreign", "localhost", "other-ca"),
        ] {
            keys.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={host} \
                 -addext subjectAltName=DNS:{host} -addext basicConstraints=CA:FALSE \
                 -CA {ca}.pem -CAkey {ca}.key -keyout {name}.key -out {name}.pem"
            ));
        }
        keys
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs it among the files.
    pub fn openssl(&self, line: &str) {
        let done = Command::new("openssl")
            .args(line.split_whitespace())
            .current_dir(Path::new(&self.folder))
            .output()
            .unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
