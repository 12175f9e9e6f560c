//! `session_state` (OpenID Connect Session Management §3.2): what a client's script compares, by way of our check-session
//! frame, to learn that the browser's sign-in changed. `static/check-session.js` computes the same text.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::protocol::words::hex;

/// SHA-256, in hex, of client, origin of the redirect URI, the browser's state and a salt, with a space between; then a
/// dot and the salt.
pub fn session_state(client_id: &str, origin: &str, browser_state: &str, salt: [u8; 16]) -> String {
    let salt = URL_SAFE_NO_PAD.encode(salt);
    let digest = Sha256::digest(format!("{client_id} {origin} {browser_state} {salt}"));
    format!("{}.{salt}", hex::encode(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_salted_hash_of_client_origin_and_browser() {
        // printf 'web https://rp.example abc AAAAAAAAAAAAAAAAAAAAAA' | sha256sum
        let expected = "b4fb79dbeaf0267e7b380b879001ce48a79e0e6867ebf864cfe58faa23d12728.AAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(session_state("web", "https://rp.example", "abc", [0; 16]), expected);
    }
}
