//! Which pages may call the token endpoint and its neighbours from a script: those that the client registered.

use super::client::Client;
use super::redirect_uri::origin_of;

/// Whether `origin` is that of a redirect URI or an `allowed_cors_origins` of the client's, byte for byte. `null` is
/// nobody's.
pub fn allowed_origin(client: &Client, origin: &str) -> bool {
    let is_redirect_origin =
        || client.redirect_uris.iter().any(|uri| origin_of(uri).is_some_and(|known| known == origin));
    origin != "null" && (client.allowed_cors_origins.contains(origin) || is_redirect_origin())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::authorize::authorize_request::fixtures::public_client;

    fn application() -> Client {
        let mut client = public_client(&["https://rp1.example/cb", "http://localhost:3000/cb", "com.example.app:/cb"]);
        client.allowed_cors_origins = BTreeSet::from(["https://spa.example".to_owned(), "null".to_owned()]);
        client
    }

    #[test]
    fn registered_origins_are_allowed_and_no_others() {
        for origin in ["https://rp1.example", "http://localhost:3000", "https://spa.example"] {
            assert!(allowed_origin(&application(), origin), "{origin}");
        }
        #[rustfmt::skip]
        let rows = [
            "", "*", "null", "https://evil.example", "https://rp1.example.evil.example", "https://rp1.example/",
            "https://rp1.example/cb", "https://rp1.example:443", "https://rp1.example:8443", "http://rp1.example",
            "HTTPS://RP1.EXAMPLE", "https://sub.rp1.example", "http://localhost", "http://localhost:3001",
            "com.example.app:", "com.example.app://", "https://rp1.example https://evil.example",
        ];
        for origin in rows {
            assert!(!allowed_origin(&application(), origin), "{origin}");
        }
    }
}
