//! A registered client: what it may do, with every default already filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::identifiers::{ClientId, TenantName};
use super::jwt;
use super::localized_text::LocalizedText;
use super::response_mode::ResponseMode;
use super::response_type::ResponseType;
use super::scope::ScopeSet;

/// One client's registration (RFC 7591 §2 and OpenID Connect Dynamic Client Registration §2 for the shared names).
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// `client_id`
    pub client_id: ClientId,
    /// `client_name`; the `client_id` where none was registered.
    pub client_name: LocalizedText,
    /// `client_uri`, `logo_uri`, `policy_uri`, `tos_uri`
    pub links: ClientLinks,
    /// `enabled`
    pub enabled: bool,
    /// `redirect_uris`, each checked by `redirect_uri::check_registered`.
    pub redirect_uris: Vec<String>,
    /// `post_logout_redirect_uris`
    pub post_logout_redirect_uris: Vec<String>,
    /// `response_types`
    pub response_types: BTreeSet<ResponseType>,
    /// `grant_types`
    pub grant_types: BTreeSet<GrantType>,
    /// `scope`: the most this client may ask for.
    pub scope: ScopeSet,
    /// `application_type`
    pub application_type: ApplicationType,
    /// Whether the client has a secret or key of its own, and how it proves that.
    pub authentication: ClientAuthenticationMethod,
    /// `token_endpoint_auth_signing_alg`, of client assertions.
    pub token_endpoint_auth_signing_alg: Option<SigningAlgorithm>,
    /// `jwks`, the client's own public keys.
    pub jwks: Option<Value>,
    /// `jwks_uri`
    pub jwks_uri: Option<String>,
    /// `id_token_signed_response_alg`; RS256 by default.
    pub id_token_signed_response_alg: SigningAlgorithm,
    /// `default_max_age`, seconds.
    pub default_max_age: Option<u64>,
    /// `frontchannel_logout_uri` and `frontchannel_logout_session_required`
    pub frontchannel_logout: Option<LogoutUri>,
    /// `backchannel_logout_uri` and `backchannel_logout_session_required`
    pub backchannel_logout: Option<LogoutUri>,
    /// `identity_providers`; absent means every one, `local` is the password login.
    pub identity_providers: Option<BTreeSet<String>>,
    /// `tenants`; absent means every one.
    pub tenants: Option<BTreeSet<TenantName>>,
    /// `require_consent`; `None` when the registration does not say.
    pub require_consent: Option<bool>,
    /// `allow_remember_consent`; `None` when the registration does not say.
    pub allow_remember_consent: Option<bool>,
    /// `consent_lifetime`; `None` is without end.
    pub consent_lifetime: Option<Duration>,
    /// `require_pkce`; `None` when the registration does not say.
    pub require_pkce: Option<bool>,
    /// `allow_plain_pkce`
    pub allow_plain_pkce: bool,
    /// `allow_access_tokens_via_browser`
    pub allow_access_tokens_via_browser: bool,
    /// `authorization_response_iss_on_error`: whether refused authorization requests are answered with `iss` (RFC 9207).
    pub iss_on_error: bool,
    /// `default_response_mode`
    pub default_response_mode: Option<ResponseMode>,
    /// `access_token_type`
    pub access_token_type: AccessTokenType,
    /// `access_token_typ`
    pub access_token_typ: AccessTokenTyp,
    /// `access_token_signed_response_alg`; RS256 by default.
    pub access_token_signed_response_alg: SigningAlgorithm,
    /// `always_include_user_claims_in_id_token`
    pub always_include_user_claims_in_id_token: bool,
    /// `client_credentials_sub`
    pub client_credentials_sub: bool,
    /// `allowed_cors_origins`
    pub allowed_cors_origins: BTreeSet<String>,
    /// `claims`: static claims for this client's access tokens.
    pub claims: BTreeMap<String, Value>,
    /// `*_lifetime`
    pub lifetimes: Lifetimes,
    /// `refresh_token_usage`
    pub refresh_token_usage: RefreshTokenUsage,
    /// `device_interval`
    pub device_interval: Duration,
    /// `token_exchange`, as registered.
    pub token_exchange: Option<Value>,
}

/// What the login and consent pages show beside the client's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLinks {
    /// `client_uri`
    pub client_uri: Option<String>,
    /// `logo_uri`
    pub logo_uri: Option<String>,
    /// `policy_uri`
    pub policy_uri: Option<String>,
    /// `tos_uri`
    pub tos_uri: Option<String>,
}

/// How long what a client gets is good for. Seconds as registered; all greater than zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// 60 s; at most 600 s (RFC 6749 §4.1.2).
    pub authorization_code: Duration,
    /// 300 s
    pub id_token: Duration,
    /// 3600 s
    pub access_token: Duration,
    /// 2592000 s, from the grant's beginning.
    pub refresh_token: Duration,
    /// 1296000 s, from the last use.
    pub refresh_token_idle: Duration,
    /// 30 s; public clients 10 s; 0 allowed.
    pub refresh_token_retry_window: Duration,
    /// 600 s
    pub device_code: Duration,
}

/// Where and how a client hears of a sign-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutUri {
    /// The registered URI.
    pub uri: String,
    /// Whether `iss` and `sid` must go along.
    pub session_required: bool,
}

/// `grant_types`. The order of variants is the order in metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantType {
    /// `authorization_code`
    AuthorizationCode,
    /// `implicit`: tokens straight from the authorization endpoint.
    Implicit,
    /// `refresh_token`
    RefreshToken,
    /// `client_credentials`
    ClientCredentials,
    /// `password`
    Password,
    /// `urn:ietf:params:oauth:grant-type:device_code`
    DeviceCode,
    /// `urn:ietf:params:oauth:grant-type:token-exchange`
    TokenExchange,
    /// `urn:ietf:params:oauth:grant-type:jwt-bearer`
    JwtBearer,
    /// A registered extension grant, by its name.
    Extension(String),
}

impl GrantType {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            GrantType::AuthorizationCode => "authorization_code",
            GrantType::Implicit => "implicit",
            GrantType::RefreshToken => "refresh_token",
            GrantType::ClientCredentials => "client_credentials",
            GrantType::Password => "password",
            GrantType::DeviceCode => "urn:ietf:params:oauth:grant-type:device_code",
            GrantType::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
            GrantType::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            GrantType::Extension(name) => name,
        }
    }

    /// Those that are there without being registered.
    pub const BUILT_IN: [GrantType; 8] = [
        GrantType::AuthorizationCode,
        GrantType::Implicit,
        GrantType::RefreshToken,
        GrantType::ClientCredentials,
        GrantType::Password,
        GrantType::DeviceCode,
        GrantType::TokenExchange,
        GrantType::JwtBearer,
    ];

    /// The built-in grant of that name, or an extension so called.
    pub fn from_name(name: &str) -> GrantType {
        let built_in = GrantType::BUILT_IN.into_iter().find(|grant_type| grant_type.as_str() == name);
        built_in.unwrap_or_else(|| GrantType::Extension(name.to_owned()))
    }
}

/// `application_type` (OpenID Connect Dynamic Client Registration §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationType {
    /// `web`
    Web,
    /// `native`
    Native,
}

/// How a client proves who it is at the token endpoint (`token_endpoint_auth_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthenticationMethod {
    /// `none`: a public client; it has nothing to prove with.
    None,
    /// No method registered, but secrets are: header or body.
    AnySecret,
    /// `client_secret_basic`: header only.
    ClientSecretBasic,
    /// `client_secret_post`: body only.
    ClientSecretPost,
    /// `private_key_jwt`
    PrivateKeyJwt,
}

impl ClientAuthenticationMethod {
    /// Whether the client is confidential (RFC 6749 §2.1).
    pub fn is_confidential(self) -> bool {
        match self {
            ClientAuthenticationMethod::None => false,
            ClientAuthenticationMethod::AnySecret
            | ClientAuthenticationMethod::ClientSecretBasic
            | ClientAuthenticationMethod::ClientSecretPost
            | ClientAuthenticationMethod::PrivateKeyJwt => true,
        }
    }
}

/// What must tie an authorization code to the request it answers (RFC 9700 §2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeBinding {
    /// A `code_challenge`: always of public clients, and of any with `require_pkce` true.
    Pkce,
    /// A `code_challenge`, or in an OpenID request a `nonce`: of confidential clients that do not say.
    PkceOrNonce,
    /// Neither: `require_pkce` false.
    Neither,
}

/// JWS algorithms we sign with (RFC 7518 §3.1, RFC 8037 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, 2048-bit keys.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl SigningAlgorithm {
    /// Every algorithm, in the order of the metadata.
    pub const ALL: [SigningAlgorithm; 3] = [SigningAlgorithm::Rs256, SigningAlgorithm::Es256, SigningAlgorithm::EdDsa];

    /// The name in a JOSE header.
    pub fn as_str(self) -> &'static str {
        match self {
            SigningAlgorithm::Rs256 => "RS256",
            SigningAlgorithm::Es256 => "ES256",
            SigningAlgorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of that name.
    pub fn from_name(name: &str) -> Option<SigningAlgorithm> {
        SigningAlgorithm::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

/// `access_token_type`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTokenType {
    /// `jwt` (RFC 9068)
    Jwt,
    /// `reference`: a sealed handle that only our endpoints can read.
    Reference,
}

/// `access_token_typ`: what the header of a JWT access token says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTokenTyp {
    /// `at+jwt` (RFC 9068 §2.1)
    AtJwt,
    /// `JWT`, for resources whose libraries take no other. Its `client_id` still tells it from an ID token.
    Jwt,
}

impl AccessTokenTyp {
    /// Both, with their names in registrations and headers.
    pub const NAMED: [(&str, AccessTokenTyp); 2] =
        [(jwt::ACCESS_TOKEN_TYP, AccessTokenTyp::AtJwt), (jwt::ID_TOKEN_TYP, AccessTokenTyp::Jwt)];

    /// The name in a JOSE header.
    pub fn as_str(self) -> &'static str {
        match self {
            AccessTokenTyp::AtJwt => jwt::ACCESS_TOKEN_TYP,
            AccessTokenTyp::Jwt => jwt::ID_TOKEN_TYP,
        }
    }
}

/// `refresh_token_usage`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshTokenUsage {
    /// `rotate`
    Rotate,
    /// `reuse`: confidential clients only.
    Reuse,
}

impl Client {
    /// Whether the client can keep a secret (RFC 6749 §2.1).
    pub fn is_confidential(&self) -> bool {
        self.authentication.is_confidential()
    }

    /// What its authorization requests must hold so that a code stolen from them is of no use.
    pub fn code_binding(&self) -> CodeBinding {
        match (self.is_confidential(), self.require_pkce) {
            (false, _) | (true, Some(true)) => CodeBinding::Pkce,
            (true, None) => CodeBinding::PkceOrNonce,
            (true, Some(false)) => CodeBinding::Neither,
        }
    }

    /// What its assertions may be signed with: the registered `token_endpoint_auth_signing_alg`, or else whatever its
    /// registered keys are for.
    pub fn assertion_algorithms(&self) -> Vec<SigningAlgorithm> {
        self.token_endpoint_auth_signing_alg.map_or_else(|| SigningAlgorithm::ALL.to_vec(), |alg| vec![alg])
    }

    /// Whether this grant type is registered.
    pub fn allows_grant(&self, grant_type: &GrantType) -> bool {
        self.grant_types.contains(grant_type)
    }

    /// Whether users may sign in with that identity provider for this client; `local` is the password login.
    pub fn allows_identity_provider(&self, name: &str) -> bool {
        self.identity_providers.as_ref().is_none_or(|allowed| allowed.contains(name))
    }

    /// Whether users of that tenant may sign in for this client.
    pub fn allows_tenant(&self, tenant: &TenantName) -> bool {
        self.tenants.as_ref().is_none_or(|allowed| allowed.contains(tenant))
    }
}
