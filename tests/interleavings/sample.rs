//! One client, one user, and what that user gave the client.

use std::sync::LazyLock;
use std::time::Duration;

use gatepost::protocol::registration;
use gatepost::protocol::registration::client_rules::ClientDefaults;
use gatepost::protocol::token::claims::{ClaimNames, built_in_catalogue};
use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::epochs::{Epochs, SessionEpochs};
use gatepost::protocol::words::identifiers::{ClientId, GrantId, Sid, Subject};
use gatepost::protocol::words::instant::{Day, Instant};
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::protocol::words::session::{Session, SignIn, User};
use serde_json::json;

use crate::statements::EpochsHeld;

/// 2026-11-20T00:00:00Z
pub const NOW: Instant = Instant::from_seconds(1_795_132_800);
pub const REDIRECT_URI: &str = "https://shop.example.com/cb";
pub const OFFLINE: &str = "openid offline_access";
pub const ONLINE: &str = "openid";

/// A public client, for which the key of a refresh token counts.
pub static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let metadata = json!({
        "client_id": "web",
        "token_endpoint_auth_method": "none",
        "redirect_uris": [REDIRECT_URI],
        "grant_types": ["authorization_code", "refresh_token"],
        "scope": OFFLINE,
    });
    registration::client::from_json(&metadata, "", &ClientDefaults::default()).unwrap()
});

pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(built_in_catalogue);

pub fn alice() -> User {
    User {
        subject: Subject::new("alice-sub"),
        username: Some(String::from("alice")),
        tenant: None,
        enabled: true,
        valid_until: None,
        claims: serde_json::Map::new(),
        epoch: 0,
    }
}

fn sign_in() -> SignIn {
    SignIn {
        subject: Subject::new("alice-sub"),
        sid: Some(Sid::new("sid-1")),
        tenant: None,
        identity_provider: None,
        auth_time: NOW,
        amr: vec![String::from("pwd")],
        acr: String::from("1"),
    }
}

pub fn session(epochs: SessionEpochs, ended_at: Option<Instant>) -> Session {
    let SignIn {
        subject,
        auth_time,
        amr,
        acr,
        ..
    } = sign_in();
    Session {
        day: Day(0),
        sid: Sid::new("sid-1"),
        subject,
        auth_time,
        amr,
        acr,
        tenant: None,
        identity_provider: None,
        upstream_issuer: None,
        epochs,
        source: None,
        user_agent: None,
        created_at: NOW,
        used_at: NOW,
        expires_at: NOW.plus(Duration::from_secs(36_000)),
        ended_at,
        bound_to: None,
        bound_at: None,
        refused_at: None,
    }
}

/// A grant as its code carries it.
pub fn grant(scope: &str, epochs: EpochsHeld) -> Grant {
    let expires_at = grant_end();
    Grant {
        id: GrantId {
            day: expires_at.day(),
            random: [7; 16],
        },
        client_id: ClientId::new("web"),
        user: sign_in(),
        scope: ScopeSet::parse(scope).unwrap(),
        resources: Vec::new(),
        claims: ClaimNames::default(),
        token_claims: serde_json::Map::new(),
        epochs: facts_of(epochs),
        generation: 0,
        issued_at: NOW,
        last_used_at: NOW,
        expires_at,
        revoked_at: None,
        confirmation: None,
    }
}

/// When it ends.
pub fn grant_end() -> Instant {
    NOW.plus(Duration::from_secs(2_592_000))
}

pub fn facts_of(epochs: EpochsHeld) -> Epochs {
    Epochs {
        installation: epochs.installation.into(),
        client: epochs.client.into(),
        user: epochs.user.into(),
        consent: epochs.consent.into(),
    }
}
