//! Which pages may call the token endpoint and its neighbours from a script: those that the client registered.

use super::client::Client;
use super::redirect_uri::origin_of;

/// Whether `origin` (the header's value) is that of one of the client's redirect URIs, or one of its `allowed_cors_origins`.
/// Compared byte for byte; `null` is the origin of anyone and therefore of nobody.
pub fn allowed_origin(client: &Client, origin: &str) -> bool {
    let is_redirect_origin =
        || client.redirect_uris.iter().any(|uri| origin_of(uri).is_some_and(|known| known == origin));
    origin != "null" && (client.allowed_cors_origins.contains(origin) || is_redirect_origin())
}
