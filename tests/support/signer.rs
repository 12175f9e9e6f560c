//! Somebody else with a key pair, made and used without any code of the product; and a web server
//! of theirs.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatepost::keys::random;
use rsa::RsaPublicKey;
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::traits::PublicKeyParts;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::jwt::forge;

/// Seconds since the epoch.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// A key pair under a name.
pub struct Signer {
    pub kid: String,
    pub alg: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub fn rs256(kid: &str) -> Signer {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        Signer {
            kid: kid.to_owned(),
            alg: "RS256",
            pair: Pair::Rsa(pair),
        }
    }

    pub fn es256(kid: &str) -> Signer {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Signer {
            kid: kid.to_owned(),
            alg: "ES256",
            pair: Pair::P256(pair),
        }
    }

    pub fn ed25519(kid: &str) -> Signer {
        Signer {
            kid: kid.to_owned(),
            alg: "EdDSA",
            pair: Pair::Ed25519(Ed25519KeyPair::generate().unwrap()),
        }
    }

    /// The same kind of key, under the name that RFC 9864 gives its algorithm.
    pub fn ed25519_by_its_newer_name(kid: &str) -> Signer {
        Signer {
            alg: "Ed25519",
            ..Signer::ed25519(kid)
        }
    }

    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::Rsa(pair) => {
                let public = RsaPublicKey::from_pkcs1_der(pair.public_key().as_ref()).unwrap();
                let (n, e) = (
                    public.n().to_be_bytes_trimmed_vartime(),
                    public.e().to_be_bytes_trimmed_vartime(),
                );
                json!({"kty": "RSA", "kid": self.kid, "n": text(&n), "e": text(&e)})
            }
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": self.kid, "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": text(pair.public_key().as_ref())})
            }
        }
    }

    /// A JWT with the usual header.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_under(
            &json!({"alg": self.alg, "kid": self.kid, "typ": "JWT"}),
            claims,
        )
    }

    /// A JWT with a header of one's own; the signature is this key's, whatever the header says.
    pub fn sign_under(&self, header: &Value, claims: &Value) -> String {
        forge(header, claims, |input| match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    input,
                    &mut signature,
                )
                .unwrap();
                signature
            }
            Pair::P256(pair) => pair
                .sign(&SystemRandom::new(), input)
                .unwrap()
                .as_ref()
                .to_vec(),
            Pair::Ed25519(pair) => pair.sign(input).as_ref().to_vec(),
        })
    }
}

impl Signer {
    /// A JWT with an HMAC under what everybody knows of an RSA key.
    pub fn forge_by_public_key(&self, header: &Value, claims: &Value) -> String {
        let public = self.jwk()["n"].as_str().unwrap().to_owned();
        forge(header, claims, |input| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes());
            hmac::sign(&key, input).as_ref().to_vec()
        })
    }
}

/// Claims of an assertion that is good for a minute, with a `jti` of its own.
pub fn assertion(issuer: &str, subject: &str, audience: &str) -> Value {
    let jti = URL_SAFE_NO_PAD.encode(random::bytes::<16>());
    json!({"iss": issuer, "sub": subject, "aud": audience, "exp": now() + 60, "jti": jti})
}

/// A JWK set of these keys.
pub fn key_set(signers: &[&Signer]) -> Value {
    json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()})
}

/// What a web server does with a request.
#[derive(Clone)]
pub enum Behaviour {
    /// Answers 200 with this JSON.
    Json(Value),
    /// Answers with this status and `Location`.
    Redirect(u16, String),
    /// Answers with this status and nothing.
    Status(u16),
    /// Answers 200 with this `Content-Type` and text.
    Text(&'static str, String),
    /// Answers 200 with this JSON, after so long.
    Late(Duration, Value),
    /// Says nothing for so long.
    Silent(Duration),
    /// Sends without end.
    Endless,
}

/// A web server on loopback that does as it is told.
pub struct WebServer {
    pub port: u16,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub fn start(behaviour: Behaviour) -> WebServer {
        WebServer::serve(behaviour, None)
    }

    /// By TLS, with a certificate beside which its key lies.
    pub fn start_tls(behaviour: Behaviour, certificate: &Path) -> WebServer {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap();
        let chain = chain.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(certificate.with_extension("key")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        WebServer::serve(behaviour, Some(Arc::new(config.unwrap())))
    }

    fn serve(behaviour: Behaviour, tls: Option<Arc<ServerConfig>>) -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = WebServer {
            port,
            behaviour: Arc::new(Mutex::new(behaviour)),
            requests: Arc::default(),
        };
        let (behaviour, requests) = (Arc::clone(&server.behaviour), Arc::clone(&server.requests));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (behaviour, requests) = (Arc::clone(&behaviour), Arc::clone(&requests));
                let tls = tls.clone();
                thread::spawn(move || match tls {
                    None => answer(stream, &behaviour, &requests),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        let stream = StreamOwned::new(connection, stream);
                        answer(stream, &behaviour, &requests);
                    }
                });
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// The heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: impl Read + Write,
    behaviour: &Mutex<Behaviour>,
    requests: &Mutex<Vec<String>>,
) {
    requests.lock().unwrap().push(head_of(&mut stream));
    let behaviour = behaviour.lock().unwrap().clone();
    // The other side may have had enough.
    let _ = behave(&mut stream, behaviour);
    let _ = stream.flush();
}

fn head_of(stream: &mut impl Read) -> String {
    let (mut read, mut buffer) = (Vec::new(), [0; 1_024]);
    while !read.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

fn behave(stream: &mut impl Write, behaviour: Behaviour) -> std::io::Result<()> {
    match behaviour {
        Behaviour::Json(value) => behave(
            stream,
            Behaviour::Text("application/json", value.to_string()),
        ),
        Behaviour::Late(time, value) => {
            thread::sleep(time);
            behave(stream, Behaviour::Json(value))
        }
        Behaviour::Text(content_type, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        }
        Behaviour::Redirect(status, location) => {
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
            )
        }
        Behaviour::Status(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
        }
        Behaviour::Silent(time) => {
            thread::sleep(time);
            Ok(())
        }
        Behaviour::Endless => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{{\"keys\":["
            )?;
            loop {
                stream.write_all(&[b' '; 65_536])?;
            }
        }
    }
}
