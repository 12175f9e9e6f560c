//! A registered client as pages show it.

use crate::pages::frame::Client as ClientView;
use crate::protocol::client::Client;

/// Its name and links, with the address that we serve its logo at.
pub fn client_view<'a>(client: &'a Client, logo: Option<&'a str>) -> ClientView<'a> {
    ClientView {
        name: &client.client_name,
        logo,
        home: client.links.client_uri.as_deref(),
        policy: client.links.policy_uri.as_deref(),
        terms: client.links.tos_uri.as_deref(),
    }
}
