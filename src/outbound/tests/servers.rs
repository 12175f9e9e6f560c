//! Servers of one connection at a time, on loopback; and a certificate authority by the openssl command.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, fs, process, thread};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(super) struct PlainServer {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicBool>,
}

impl PlainServer {
    /// Every connection gets its request read and is then the closure's, which may stay while the server is open.
    pub(super) fn start(answer: impl Fn(&mut TcpStream, &AtomicBool) + Send + Sync + 'static) -> PlainServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, open) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(true)));
        let (seen, is_open, answer) = (Arc::clone(&requests), Arc::clone(&open), Arc::new(answer));
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                if !is_open.load(Ordering::Relaxed) {
                    return;
                }
                let (seen, is_open, answer) = (Arc::clone(&seen), Arc::clone(&is_open), Arc::clone(&answer));
                thread::spawn(move || {
                    seen.lock().unwrap().push(read_request(&mut stream));
                    answer(&mut stream, &is_open);
                });
            }
        });
        PlainServer { port, requests, open }
    }

    /// Speaks first, and not HTTP.
    pub(super) fn greeting(text: &'static str) -> PlainServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.write_all(text.as_bytes());
            }
        });
        PlainServer { port, requests: Arc::default(), open: Arc::default() }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Ends what stays while the server is open.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    /// The URL of a port that nobody listens at any more.
    pub(super) fn into_unused_url(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port())
    }
}

impl Drop for PlainServer {
    fn drop(&mut self) {
        self.close();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Head and body, as far as `Content-Length` says.
fn read_request(stream: &mut impl Read) -> String {
    let (mut read, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines().filter_map(|line| line.strip_prefix("content-length: "));
            let length: usize = lines.next_back().map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => return text,
        }
    }
}

/// Says `sealed` over TLS.
pub(super) struct TlsServer {
    port: u16,
}

impl TlsServer {
    pub(super) fn start(certificate: &Path) -> TlsServer {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(certificate.with_extension("key")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(connection, stream);
                read_request(&mut stream);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsealed");
            }
        });
        TlsServer { port }
    }

    pub(super) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.port)
    }
}

/// A certificate authority in a directory of its own.
pub(super) struct Authority {
    directory: PathBuf,
    file: PathBuf,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Authority {
    pub(super) fn new() -> Authority {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("gatepost-ca-{}-{number}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority { file: directory.join("ca.pem"), directory };
        authority.openssl("ca", &["-subj", "/CN=Test authority", "-addext", "keyUsage=critical,keyCertSign"]);
        authority
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// A certificate for these names; its key lies beside it.
    pub(super) fn certificate(&self, names: &str) -> PathBuf {
        let key = self.file.with_extension("key");
        let alternative = format!("subjectAltName={names}");
        let issuer = ["-CA", self.file.to_str().unwrap(), "-CAkey", key.to_str().unwrap(), "-subj", "/CN=Test server"];
        let extensions = ["-addext", &alternative, "-addext", "basicConstraints=critical,CA:FALSE"];
        let name = format!("server-{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.openssl(&name, &[&issuer, &extensions[..]].concat())
    }

    fn openssl(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let certificate = self.directory.join(format!("{name}.pem"));
        let output = Command::new("openssl")
            .args(["req", "-x509", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(arguments)
            .arg("-keyout")
            .arg(certificate.with_extension("key"))
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        certificate
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
