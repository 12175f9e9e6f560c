//! Servers of one connection at a time, on loopback; and a certificate authority by the openssl
//! command.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers every request alike, for as long as the tests run.
pub struct Server {
    port: u16,
    connections: Arc<AtomicU32>,
}

impl Server {
    pub fn plain(status: &str, headers: &str, body: &str) -> Server {
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        Server::start(move |mut stream| answer_with(&mut stream, &answer))
    }

    /// Says `sealed` over TLS.
    pub fn tls(certificate: &Path) -> Server {
        let chain = CertificateDer::pem_file_iter(certificate)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let key = PrivateKeyDer::from_pem_file(certificate.with_extension("key")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = Arc::new(
            builder
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .unwrap(),
        );
        Server::start(move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsealed";
            answer_with(&mut StreamOwned::new(connection, stream), answer);
        })
    }

    fn start(serve: impl Fn(TcpStream) + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                counted.fetch_add(1, Ordering::Relaxed);
                serve(stream);
            }
        });
        Server { port, connections }
    }

    pub fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/", self.port)
    }

    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Closed only after the client did: what it sent unread would take the answer away.
fn answer_with(stream: &mut (impl Read + Write), answer: &str) {
    let _ = stream.read(&mut [0; 4_096]);
    let _ = stream.write_all(answer.as_bytes());
    let _ = io::copy(stream, &mut io::sink());
}

/// A certificate authority in a directory of its own.
pub struct Authority {
    directory: PathBuf,
    file: PathBuf,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Authority {
    pub fn new() -> Authority {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("gatepost-ca-{}-{number}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority {
            file: directory.join("ca.pem"),
            directory,
        };
        authority.openssl(
            "ca",
            &[
                "-subj",
                "/CN=Test authority",
                "-addext",
                "keyUsage=critical,keyCertSign",
            ],
        );
        authority
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// A certificate for these names; its key lies beside it.
    pub fn certificate(&self, names: &str) -> PathBuf {
        let key = self.file.with_extension("key");
        let alternative = format!("subjectAltName={names}");
        let issuer = [
            "-CA",
            self.file.to_str().unwrap(),
            "-CAkey",
            key.to_str().unwrap(),
            "-subj",
            "/CN=Test server",
        ];
        let extensions = [
            "-addext",
            &alternative,
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        let name = format!("server-{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.openssl(&name, &[&issuer, &extensions[..]].concat())
    }

    fn openssl(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let certificate = self.directory.join(format!("{name}.pem"));
        let output = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-days",
                "2",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ])
            .args(arguments)
            .arg("-keyout")
            .arg(certificate.with_extension("key"))
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        certificate
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
