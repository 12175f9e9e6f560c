//! Whether a server takes an RSA key exchange: whoever gets its key later can read what was said
//! (RFC 9325 §4.2). The TLS library cannot offer one, so the first message is made by hand (RFC
//! 5246 §7.4.1.2).

use std::io::{self, Read, Write};
use std::net::IpAddr;

use super::certificate::connect;

/// TLS 1.2, 32 bytes that are random elsewhere, no session; the suites `TLS_RSA_WITH_AES_..`, and
/// the sign of secure renegotiation, without which some servers answer nobody; no compression.
const OFFER: &[u8] = b"\x03\x03gatepost doctor offers RSA alone\0\
    \0\x0e\0\x9c\0\x9d\0\x3c\0\x3d\0\x2f\0\x35\0\xff\x01\0";
/// The extension: RSA with SHA-256, SHA-384 and SHA-512.
const SIGNATURES: &[u8] = b"\0\x0d\0\x08\0\x06\x04\x01\x05\x01\x06\x01";

/// Offers that alone, and leaves once the first message of the answer has begun.
pub fn takes_rsa_key_exchange(host: &str, port: u16) -> io::Result<bool> {
    let mut stream = connect(host, port)?;
    stream.write_all(&client_hello(host))?;
    let mut answer = Vec::new();
    // A server may refuse by closing the connection.
    let _ended = stream.take(6).read_to_end(&mut answer);
    // A record of the handshake, and in it a ServerHello.
    Ok(matches!(*answer, [22, _, _, _, _, 2]))
}

fn client_hello(host: &str) -> Vec<u8> {
    let mut extensions = SIGNATURES.to_vec();
    // An address is no name (RFC 6066 §3).
    if host.parse::<IpAddr>().is_err() {
        let name = [b"\0", &*sized(host.as_bytes())].concat();
        extensions.extend([b"\0\0", &*sized(&sized(&name))].concat());
    }
    let message = [OFFER, &sized(&extensions)].concat();
    let handshake = [b"\x01\0", &*sized(&message)].concat();
    [b"\x16\x03\x01", &*sized(&handshake)].concat()
}

/// Its length in two bytes, and itself.
fn sized(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), content].concat()
}
