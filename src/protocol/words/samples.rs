//! One registered client, user and catalogue that the tests of the core vary.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic here is a failed test"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use serde_json::{Value, json};

use super::client::{
    AccessTokenTyp, AccessTokenType, ApplicationType, Client, ClientAuthenticationMethod,
    ClientLinks, GrantType, Lifetimes, RefreshTokenUsage, SigningAlgorithm,
};
use super::identifiers::{ClientId, GrantId, Sid, Subject, TenantName};
use super::instant::{Day, Instant};
use super::response_type::ResponseType;
use super::scope::{ScopeKind, ScopeSet};
use super::secret::SecretText;
use super::sender::Sender;
use super::session::{Session, SignIn};
use crate::authorize::authorization_code::{AuthorizationCode, redirect_uri_hash};
use crate::authorize::pkce::{CodeChallenge, CodeChallengeMethod};
use crate::keys::jwt::PublicKey;
use crate::token::access_token::{AccessToken, Jti, StandsOn};
use crate::token::claims::{ClaimNames, built_in_scopes};
use crate::token::grant::{Given, Grant};
use crate::upstream::round_trip::RoundTrip;
use crate::words::catalogue::{Catalogue, RegisteredResource, RegisteredScope, RegisteredTenant};
use crate::words::epochs::{Epochs, SessionEpochs};
use crate::words::session::User;
use crate::words::strength::Strength;

/// 2026-11-20T00:00:00Z
pub const NOW: Instant = Instant::from_seconds(1_795_132_800);

/// The public key of that private number.
pub fn p256(number: u8) -> PublicKey {
    let mut private = [0; 32];
    private[31] = number;
    let point = PrivateKey::from_private_key(&ECDH_P256, &private)
        .unwrap()
        .compute_public_key()
        .unwrap();
    let (x, y) = point.as_ref()[1..].split_at(32);
    PublicKey::P256 {
        x: x.try_into().unwrap(),
        y: y.try_into().unwrap(),
    }
}

/// Without a key, at [`NOW`].
pub fn sender<'a>(client: &'a Client, catalogue: &'a Catalogue) -> Sender<'a> {
    Sender {
        client,
        catalogue,
        issuer: "https://op.example",
        key: None,
        now: NOW,
    }
}

pub fn scope(text: &str) -> ScopeSet {
    ScopeSet::parse(text).unwrap()
}

/// A JSON object with other members; `null` takes one away.
pub fn changed(mut object: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(name);
        } else {
            object[name] = value.clone();
        }
    }
    object
}

/// By the password, just now.
pub fn session() -> Session {
    Session {
        day: Day(0),
        subject: Subject::new("alice-subject"),
        sid: Sid::new("sid-1"),
        auth_time: NOW,
        amr: vec![String::from("pwd")],
        acr: String::from("1"),
        tenant: None,
        identity_provider: None,
        upstream_issuer: None,
        epochs: SessionEpochs {
            installation: 1,
            user: 2,
        },
        expires_at: NOW,
        source: None,
        user_agent: None,
        created_at: NOW,
        used_at: NOW,
        ended_at: None,
        bound_to: None,
        bound_at: None,
        refused_at: None,
    }
}

/// Its code_verifier is that of RFC 7636 appendix B.
pub fn round_trip() -> RoundTrip {
    RoundTrip {
        linking: None,
        provider: String::from("corp"),
        issuer: String::from("https://up.example"),
        flow: [7; 8],
        cookie_hash: [9; 32],
        nonce: String::from("n-0S6_WzA2Mj"),
        code_verifier: SecretText::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        begun_at: NOW,
        max_age: Some(0),
        request: Some(String::from("r")),
    }
}

pub fn client() -> Client {
    Client {
        client_id: ClientId::new("web"),
        client_name: "Web shop".into(),
        metadata_document: false,
        redirect_hosts: [].into(),
        links: ClientLinks::default(),
        on_start_page: true,
        enabled: true,
        profile: None,
        redirect_uris: vec![String::from("https://shop.example.com/cb")],
        post_logout_redirect_uris: Vec::new(),
        response_types: [ResponseType::CODE].into(),
        grant_types: [GrantType::AuthorizationCode, GrantType::ClientCredentials].into(),
        scope: scope("openid profile email offline_access orders.read orders.write stock"),
        application_type: ApplicationType::Web,
        authentication: ClientAuthenticationMethod::AnySecret,
        token_endpoint_auth_signing_alg: None,
        jwks: None,
        jwks_uri: None,
        federated: Vec::new(),
        id_token_signed_response_alg: SigningAlgorithm::Rs256,
        default_max_age: None,
        frontchannel_logout: None,
        backchannel_logout: None,
        identity_providers: None,
        tenants: None,
        allowed_roles: None,
        minimum_acr: Strength::SignedIn,
        require_bound_session: false,
        require_consent: None,
        allow_remember_consent: None,
        consent_lifetime: None,
        requires_pushed_requests: false,
        requires_dpop: false,
        requires_dpop_nonce: false,
        require_pkce: None,
        default_scope: ScopeSet::default(),
        allow_plain_pkce: false,
        legacy_until: None,
        allow_access_tokens_via_browser: false,
        iss_on_error: true,
        default_response_mode: None,
        access_token_type: AccessTokenType::Jwt,
        access_token_typ: AccessTokenTyp::AtJwt,
        access_token_signed_response_alg: SigningAlgorithm::Rs256,
        always_include_user_claims_in_id_token: false,
        client_credentials_sub: true,
        allowed_cors_origins: [].into(),
        claims: BTreeMap::new(),
        lifetimes: lifetimes(),
        refresh_token_usage: RefreshTokenUsage::Rotate,
        refresh_token_without_offline_access: false,
        device_interval: Duration::from_secs(5),
        token_exchange: None,
        id_jag: Vec::new(),
    }
}

fn lifetimes() -> Lifetimes {
    Lifetimes {
        authorization_code: Duration::from_secs(60),
        id_token: Duration::from_secs(300),
        access_token: Duration::from_secs(3_600),
        client_credentials_token: None,
        refresh_token: Duration::from_secs(2_592_000),
        refresh_token_idle: Duration::from_secs(1_296_000),
        refresh_token_retry_window: Duration::from_secs(30),
        device_code: Duration::from_secs(600),
    }
}

fn tenant(name: &str) -> RegisteredTenant {
    RegisteredTenant {
        name: name.to_owned(),
        display_name: name.to_owned(),
    }
}

/// The built-in scopes, `roles`, and four resource scopes over two resources and none.
pub fn catalogue() -> Catalogue {
    let mut scopes = built_in_scopes();
    scopes.push(registered_scope(
        "roles",
        ScopeKind::Identity,
        &["role"],
        &[],
    ));
    scopes.push(registered_scope(
        "orders.read",
        ScopeKind::Resource,
        &["role"],
        &["https://orders.example.com/"],
    ));
    scopes.push(registered_scope(
        "orders.write",
        ScopeKind::Resource,
        &[],
        &["https://orders.example.com/"],
    ));
    scopes.push(registered_scope(
        "stock",
        ScopeKind::Resource,
        &[],
        &["stock"],
    ));
    scopes.push(registered_scope("ping", ScopeKind::Resource, &[], &[]));
    let resources = [
        resource("https://orders.example.com/", &["email"]),
        resource("stock", &[]),
    ];
    Catalogue {
        scopes: scopes
            .into_iter()
            .map(|scope| (scope.name.clone(), scope))
            .collect(),
        resources: resources
            .into_iter()
            .map(|resource| (resource.name.clone(), resource))
            .collect(),
        tenants: BTreeMap::from([(String::from("acme"), tenant("acme"))]),
        ..Catalogue::default()
    }
}

pub fn registered_scope(
    name: &str,
    kind: ScopeKind,
    claims: &[&str],
    resources: &[&str],
) -> RegisteredScope {
    RegisteredScope {
        name: name.to_owned(),
        kind,
        display_name: name.into(),
        description: "".into(),
        claims: claims.iter().map(|claim| claim.to_string()).collect(),
        renamed: BTreeMap::new(),
        required: false,
        emphasize: false,
        show_in_discovery: true,
        resources: resources
            .iter()
            .map(|resource| resource.to_string())
            .collect(),
        is_built_in: false,
    }
}

pub fn resource(name: &str, claims: &[&str]) -> RegisteredResource {
    RegisteredResource {
        name: name.to_owned(),
        display_name: name.to_owned(),
        claims: claims.iter().map(|claim| claim.to_string()).collect(),
        renamed: BTreeMap::new(),
    }
}

pub fn user(claims: Value) -> User {
    User {
        subject: Subject::new("alice-subject"),
        username: Some(String::from("alice")),
        tenant: None,
        enabled: true,
        valid_until: None,
        claims: serde_json::from_value(claims).unwrap(),
        epoch: EPOCHS.user,
    }
}

pub fn alice() -> User {
    user(
        json!({ "name": "Alice Smith", "email": "alice@example.com", "email_verified": true, "role": ["admin"] }),
    )
}

pub const EPOCHS: Epochs = Epochs {
    installation: 1,
    client: 2,
    user: 3,
    consent: 0,
};

pub fn grant() -> GrantId {
    GrantId {
        day: Day(20_777),
        random: [7; 16],
    }
}

pub fn sign_in() -> SignIn {
    SignIn {
        subject: Subject::new("alice-subject"),
        sid: Some(Sid::new("sid-1")),
        tenant: Some(TenantName::new("acme")),
        identity_provider: None,
        auth_time: NOW.minus(Duration::from_secs(10)),
        amr: vec![String::from("pwd")],
        acr: String::from("1"),
    }
}

pub fn claim_names() -> ClaimNames {
    ClaimNames {
        userinfo: vec![String::from("name")],
        id_token: vec![String::from("email")],
    }
}

pub fn access_token() -> AccessToken {
    AccessToken {
        jti: Jti {
            stands_on: StandsOn::Grant(grant()),
            random: [9; 12],
        },
        client_id: ClientId::new("web"),
        user: Some(sign_in()),
        scope: scope("openid orders.read"),
        audience: vec![String::from("https://orders.example.com/")],
        userinfo_claims: vec![String::from("name")],
        claims: serde_json::Map::new(),
        delegation: None,
        issued_at: NOW,
        expires_at: NOW.plus(Duration::from_secs(3_600)),
        confirmation: None,
    }
}

/// `code_verifier` of [`authorization_code`], whose challenge is plain.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// `redirect_uri` of [`authorization_code`].
pub const REDIRECT_URI: &str = "https://shop.example.com/cb";

/// A grant of that scope, given now.
pub fn given(names: &str) -> Grant {
    Grant {
        id: grant(),
        claims: claim_names(),
        expires_at: NOW.plus(Duration::from_secs(2_592_000)),
        ..Grant::given(
            [9; 16],
            &client(),
            Given {
                user: sign_in(),
                scope: scope(names),
                epochs: EPOCHS,
                session_ends_at: None,
            },
            NOW,
            Duration::ZERO,
        )
    }
}

pub fn authorization_code() -> AuthorizationCode {
    AuthorizationCode {
        grant: Grant {
            scope: scope("openid profile orders.read"),
            resources: vec![String::from("https://orders.example.com/")],
            ..given("openid")
        },
        redirect_uri_hash: redirect_uri_hash(REDIRECT_URI),
        challenge: Some(
            CodeChallenge::parse(VERIFIER, CodeChallengeMethod::Plain)
                .unwrap()
                .digest(),
        ),
        nonce: Some(String::from("n-0S6_WzA2Mj \u{e9}")),
        response_type: ResponseType::CODE,
        expires_at: NOW.plus(Duration::from_secs(60)),
        confirmation: None,
    }
}

/// RFC 9449 §4.1, figure 2.
pub const DPOP_PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";

/// What Chromium 156.0.8078.108 sent for a key of either kind: the proof that registers it, and the
/// proof of a refresh. Their challenges are `registration-challenge-` and `refresh-challenge-`,
/// followed by the algorithm.
pub const CHROMIUM_PROOFS: [[&str; 2]; 2] = [
    [
        "eyJhbGciOiJFUzI1NiIsImp3ayI6eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6IndZRTVlNjFGVllNS2xGX0RjODB3bHFzUzJJNWFkUzVHbEVUTUQ3TEJaSFUiLCJ5IjoiR0pTZllmaHpTRzFZN3h0dVpKT2M5bnJvUEZGZktKWkZKeVNqZlFKMFYxbyJ9LCJ0eXAiOiJkYnNjK2p3dCJ9.eyJqdGkiOiJyZWdpc3RyYXRpb24tY2hhbGxlbmdlLUVTMjU2In0.VN39eDMzGN5G74WJCOyrQsGaz6Xqh3MTHJygn8kXlA8-lSWVHkf5_l8YpBvI0_g1OckFrvQI1bWFgXo1LKDJ-g",
        "eyJhbGciOiJFUzI1NiIsInR5cCI6ImRic2Mrand0In0.eyJqdGkiOiJyZWZyZXNoLWNoYWxsZW5nZS1FUzI1NiJ9.giE9cXpnYUBpV9qAtnU3U08AL2WjWCO_zqUe5mZQDmtyD61nj5kP4k_0eLc0prhyqagilJ1YBfJG6yK4qaWpIg",
    ],
    [
        "eyJhbGciOiJSUzI1NiIsImp3ayI6eyJlIjoiQVFBQiIsImt0eSI6IlJTQSIsIm4iOiJ2SUQzTFhMZDRnZkQ3S3JiSkFpSjU5cm1GX05jbVVpWm85ZEEzUENNWlppUVAzdzVqaFh0eVRPczAwbUN6M19hamFOaEJMV3hOUHVwS2Y2QmxUREFSeHdtaWtsTnNYYmlQbEhNZkhhRHpCcDlMcUMxbTFBTUZMczFVT0E4LVpoOS16LU5ackdtamxSRGFTVzVGX0dCS2t3VzRLaGRQaDVEaDVCWVVLRm8wZGhhcV9tSlB4eXpicUZUaGF6RFNoNEZKbEFXTnNmVlU0ajZENDJsLUc2dURhLTdKcHNVU3p4YV82U2FJSGNxVzl2U2NOdWRZQ0JjOFY3OW9sSWZlMnhPckVoZzdXTkhIQ3RDZlhEM3ZBaTR2UnlGN183djk1YkJNMHJJTnFEcG1GejRZcGEtWEJ1T1VXSVN5aEh1SVJVdDlQRGppU3JVLTR1RTVqUzRySldJUncifSwidHlwIjoiZGJzYytqd3QifQ.eyJqdGkiOiJyZWdpc3RyYXRpb24tY2hhbGxlbmdlLVJTMjU2In0.pEA0KrgmMyXWcesPhvmpzHh9tz1JeDBAvCzjq6ZPl8btxxVUYQ_kfsPq-tUuvIgxhqhagKnv6ym2u-cy2tVB40aau92FmBsVubXo4TRIQpEXrLIyHpjmW4t6AD_yetImqWj5eXJK8ODjHjMMbkQWHDcbMxTbxHDdiBIkX4rGbcMSr3up4NZRFv-OadXQSbN9vU7NLrLiBDjahttuzxTRJPjvbwb0Na7-iVwqnkh9XGpCC1JuDJfO3kALXehQdBZXubzHCeI0KL7L5xUBcpe6TbegIJIXiq2rkUrhJyTbQDPqwYZ5EMVuDo5Rf5xb9RirwjOlmS37zC-sZw0mJVAhcg",
        "eyJhbGciOiJSUzI1NiIsInR5cCI6ImRic2Mrand0In0.eyJqdGkiOiJyZWZyZXNoLWNoYWxsZW5nZS1SUzI1NiJ9.K7NfzauFHmciiRuLKfYSxBAKZm9wHtWEEdKwTUJMDeUa7H0wuRTyiSzJ5OR27DEoJw9NUuGmxfnzPVaCIqBHsiMeogvVcXK52yGi4PMv54PNo-jbiVdTJw-qTz0RlbIslMeG9qFL2axUh3xSnyaQQK-LMRxM8i4eo_6PoJE3UOaXD_evAOPIRMEgNlUp_aj_tQw7EZ35E2qgDcOSxwLtGEObzL3dbHu_0G3K3cZo-taDFh3Wc9EwHFCvuc7Fhhg8R5Y927O8sY5P6WdTdWDKNDczHkqDGjQb_s8t-4BfLovRMM9auAyqfRMp9Y58cmyi5LqnVv5NLJsexiYiZ1qlaQ",
    ],
];
