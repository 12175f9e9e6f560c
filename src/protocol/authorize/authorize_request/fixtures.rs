//! Registrations and requests for the core's tests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic here is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{AuthorizeError, AuthorizeRequest, validate};
use crate::registration::provider;
use crate::words::catalogue::{Catalogue, RegisteredTenant};
use crate::words::client::*;
use crate::words::identifiers::ClientId;
use crate::words::identity_provider::IdentityProvider;
use crate::words::instant::Instant;
use crate::words::parameters::Parameters;
use crate::words::response_type::ResponseType;
use crate::words::samples::{self, registered_scope, resource};
use crate::words::scope::*;

pub const REDIRECT_URI: &str = "https://rp1.example/cb";
/// RFC 7636 appendix B.
pub const CODE_CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub const RECEIVED_AT: Instant = Instant::from_seconds(1_800_000_000);

/// A confidential client that may use everything.
pub fn client() -> Client {
    Client {
        client_id: ClientId::new("conf1"),
        client_name: "conf1".into(),
        redirect_uris: vec![REDIRECT_URI.to_owned()],
        response_types: BTreeSet::from(ResponseType::ALL),
        grant_types: BTreeSet::from([
            GrantType::AuthorizationCode,
            GrantType::Implicit,
            GrantType::RefreshToken,
        ]),
        scope: ScopeSet::parse("openid profile email offline_access orders.read stock.read")
            .unwrap(),
        allow_access_tokens_via_browser: true,
        ..samples::client()
    }
}

/// The same client without a secret, registered for other redirect URIs.
pub fn public_client(redirect_uris: &[&str]) -> Client {
    Client {
        authentication: ClientAuthenticationMethod::None,
        redirect_uris: redirect_uris.iter().map(|uri| (*uri).to_owned()).collect(),
        ..client()
    }
}

/// Scopes of both kinds, two resources, two identity providers of which one is disabled; no
/// tenants.
pub fn catalogue() -> Catalogue {
    let scopes = [
        registered_scope("openid", ScopeKind::Identity, &["sub"], &[]),
        registered_scope("profile", ScopeKind::Identity, &["name", "given_name"], &[]),
        registered_scope("email", ScopeKind::Identity, &["email"], &[]),
        registered_scope("address", ScopeKind::Identity, &["address"], &[]),
        registered_scope("offline_access", ScopeKind::Identity, &[], &[]),
        registered_scope(
            "orders.read",
            ScopeKind::Resource,
            &["role"],
            &[
                "https://api.example/orders",
                "https://api.example/gone",
                "orders",
            ],
        ),
        registered_scope(
            "stock.read",
            ScopeKind::Resource,
            &[],
            &["https://api.example/stock"],
        ),
    ];
    let resources = [
        "https://api.example/orders",
        "https://api.example/stock",
        "https://api.example/free",
        "orders",
    ];
    Catalogue {
        scopes: scopes
            .into_iter()
            .map(|scope| (scope.name.clone(), scope))
            .collect(),
        resources: resources
            .into_iter()
            .map(|name| (name.to_owned(), resource(name, &[])))
            .collect(),
        identity_providers: BTreeMap::from([
            ("corp".to_owned(), identity_provider("corp", true)),
            ("former".to_owned(), identity_provider("former", false)),
        ]),
        ..Catalogue::default()
    }
}

pub fn identity_provider(name: &str, enabled: bool) -> IdentityProvider {
    let issuer = format!("https://login.{name}.example");
    let document =
        json!({"name": name, "enabled": enabled, "issuer": issuer, "client_id": "gatepost"});
    provider::from_json(&document, "identity_provider").unwrap()
}

pub fn catalogue_with_tenants() -> Catalogue {
    let tenant = |name: &str| {
        (
            name.to_owned(),
            RegisteredTenant {
                name: name.to_owned(),
                display_name: name.to_owned(),
            },
        )
    };
    Catalogue {
        tenants: BTreeMap::from([tenant("acme"), tenant("globex")]),
        ..catalogue()
    }
}

#[derive(Clone, Debug)]
pub struct Asking(Vec<(String, String)>);

/// A valid request of [`client`], to be changed.
pub fn asking() -> Asking {
    let valid = [
        ("client_id", "conf1"),
        ("redirect_uri", REDIRECT_URI),
        ("response_type", "code"),
        ("scope", "openid"),
        ("state", "s-1"),
        ("nonce", "n-1"),
        ("code_challenge", CODE_CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    Asking(
        valid
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    )
}

impl Asking {
    pub fn without(mut self, name: &str) -> Asking {
        self.0.retain(|(known, _)| known != name);
        self
    }

    /// With one more value, whether there is one or not.
    pub fn also(mut self, name: &str, value: &str) -> Asking {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn with(self, name: &str, value: &str) -> Asking {
        self.without(name).also(name, value)
    }

    pub fn parameters(&self) -> Parameters {
        Parameters::from_pairs(
            self.0
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
    }

    pub fn judged_for(&self, client: &Client) -> Result<AuthorizeRequest, AuthorizeError> {
        validate(&self.parameters(), client, &catalogue(), RECEIVED_AT)
    }

    pub fn judged(&self) -> Result<AuthorizeRequest, AuthorizeError> {
        self.judged_for(&client())
    }
}
