//! The provider under load, as its own metadata and a small file of settings describe it. Nothing
//! here is particular to Gatepost.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{Client, Connections};

/// What to call, and as whom: the file that `--against` reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// For the table.
    pub name: String,
    /// `http://localhost:PORT...`: only plain HTTP is spoken.
    pub issuer: String,
    pub redirect_uri: String,
    pub username: String,
    pub password: String,
    /// By the part they play: `reference`, `rs256`, `es256`, `eddsa` (client_credentials with an
    /// access token of that kind), `code`, `code_es256` (ID token), `code_jwt`, `refresh`,
    /// `refresh_es256`, `refresh_oauth` (without `openid`) (code flow). A flow whose client is missing is left out.
    pub clients: BTreeMap<String, ClientSettings>,
    /// The process whose CPU and memory count, with all below it.
    pub pid: Option<u32>,
    /// Where its commits can be counted.
    pub database_url: Option<String>,
}

/// A confidential client that may use `client_secret_basic`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSettings {
    pub client_id: String,
    pub client_secret: String,
    pub scope: String,
}

/// Settings with what discovery says.
#[derive(Clone, Debug)]
pub struct Provider {
    pub settings: Settings,
    pub address: SocketAddr,
    /// `localhost:PORT`
    pub authority: String,
    pub discovery_path: String,
    pub metadata: Value,
    /// Instead of the one user, any of `many-1` to that.
    pub many_users: Option<u64>,
}

impl Settings {
    /// Something that answers with a document and has nothing else of a provider.
    pub fn bare(issuer: &str, pid: u32) -> Settings {
        Settings {
            name: String::from("tiny_http alone"),
            issuer: issuer.to_owned(),
            redirect_uri: String::new(),
            username: String::new(),
            password: String::new(),
            clients: BTreeMap::new(),
            pid: Some(pid),
            database_url: None,
        }
    }
}

impl ClientSettings {
    /// `Authorization`, both halves form-encoded first (RFC 6749 §2.3.1).
    pub fn basic(&self) -> String {
        let half =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        format!(
            "Basic {}",
            STANDARD.encode(format!(
                "{}:{}",
                half(&self.client_id),
                half(&self.client_secret)
            ))
        )
    }
}

impl Provider {
    /// Reads the provider's metadata.
    pub fn discover(settings: Settings) -> Result<Provider, String> {
        let rest = settings
            .issuer
            .strip_prefix("http://")
            .ok_or("only http:// is spoken here")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let with_port = if authority.contains(':') {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        let addresses = with_port
            .to_socket_addrs()
            .map_err(|error| format!("{authority}: {error}"))?;
        // `localhost` may mean both; whoever listens on one of them only, listens on this one.
        let address = addresses
            .min_by_key(|address| address.is_ipv6())
            .ok_or("no address")?;
        let discovery_path = format!(
            "{}/.well-known/openid-configuration",
            path.trim_end_matches('/')
        );
        let mut client = Client::new(address, authority, Connections::New);
        let metadata = client.get(&discovery_path)?.expect(200)?.json()?;
        if metadata["issuer"] != settings.issuer.as_str() {
            return Err(format!(
                "the issuer is {}, not {}",
                metadata["issuer"], settings.issuer
            ));
        }
        Ok(Provider {
            address,
            authority: authority.to_owned(),
            discovery_path,
            metadata,
            settings,
            many_users: None,
        })
    }

    /// A new client of this provider.
    pub fn client(&self, connections: Connections) -> Client {
        Client::new(self.address, &self.authority, connections)
    }

    /// Path of an endpoint, if there is one.
    pub fn endpoint(&self, name: &str) -> Option<String> {
        self.metadata[name]
            .as_str()
            .and_then(|address| self.path_of(address))
    }

    /// The path of an address of this provider, absolute or not; `None` for one elsewhere.
    pub fn path_of(&self, address: &str) -> Option<String> {
        if address.starts_with('/') {
            return Some(address.to_owned());
        }
        let rest = address
            .strip_prefix("http://")?
            .strip_prefix(self.authority.as_str())?;
        rest.starts_with('/').then(|| rest.to_owned())
    }

    /// Who signs in, and with what.
    pub fn user(&self) -> (String, &str) {
        let drawn = self
            .many_users
            .map(|count| format!("many-{}", rand::random_range(1..=count)));
        (
            drawn.unwrap_or_else(|| self.settings.username.clone()),
            &self.settings.password,
        )
    }
}
