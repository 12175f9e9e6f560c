//! A registered client: what it may do, with every default already filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Duration;

use serde_json::Value;

use super::identifiers::{ClientId, TenantName};
use super::instant::Day;
use super::named::named;
use super::response_type::ResponseType;
use super::scope::ScopeSet;
use crate::words::response_type::ResponseMode;
use crate::words::scope::LocalizedText;
use crate::words::strength::Strength;

#[derive(Clone, Debug)]
pub struct Client {
    pub client_id: ClientId,
    /// The `client_id` where none was registered.
    pub client_name: LocalizedText,
    /// Whether the `client_id` is the address of a document that says the client's name, links,
    /// redirect URIs and keys.
    pub metadata_document: bool,
    /// Hosts, besides that of the document, that its redirect URIs may have.
    pub redirect_hosts: BTreeSet<String>,
    pub links: ClientLinks,
    /// Whether people who may open it find it on their start page.
    pub on_start_page: bool,
    pub enabled: bool,
    pub profile: Option<Profile>,
    /// Each checked by `redirect_uri::check_registered`.
    pub redirect_uris: Vec<String>,
    pub post_logout_redirect_uris: Vec<String>,
    pub response_types: BTreeSet<ResponseType>,
    pub grant_types: BTreeSet<GrantType>,
    /// The most this client may ask for.
    pub scope: ScopeSet,
    /// What it gets of that without asking. See `audience::with_default_scope`.
    pub default_scope: ScopeSet,
    pub application_type: ApplicationType,
    pub authentication: ClientAuthenticationMethod,
    pub token_endpoint_auth_signing_alg: Option<SigningAlgorithm>,
    pub jwks: Option<Value>,
    pub jwks_uri: Option<String>,
    pub federated: Vec<WorkloadIdentity>,
    pub id_token_signed_response_alg: SigningAlgorithm,
    pub default_max_age: Option<u64>,
    pub frontchannel_logout: Option<LogoutUri>,
    pub backchannel_logout: Option<LogoutUri>,
    /// Absent means every one; `local` is the password login.
    pub identity_providers: Option<BTreeSet<String>>,
    pub tenants: Option<BTreeSet<TenantName>>,
    /// Users with one of these roles may use it; absent means everybody.
    pub allowed_roles: Option<BTreeSet<String>>,
    /// The weakest sign-in that it takes: its own, or the installation's where that is stronger.
    pub minimum_acr: Strength,
    /// Whether a session that is not bound to a key of its browser counts only right after its
    /// sign-in.
    pub require_bound_session: bool,
    pub require_consent: Option<bool>,
    pub allow_remember_consent: Option<bool>,
    /// `None` is without end.
    pub consent_lifetime: Option<Duration>,
    /// `require_pushed_authorization_requests` (RFC 9126 §6)
    pub requires_pushed_requests: bool,
    /// `dpop_bound_access_tokens` (RFC 9449 §5.2)
    pub requires_dpop: bool,
    /// `dpop_nonce`: its proofs must have a nonce that we gave out lately.
    pub requires_dpop_nonce: bool,
    pub require_pkce: Option<bool>,
    pub allow_plain_pkce: bool,
    /// The last day on which it may use flows that OAuth 2.1 has no more.
    pub legacy_until: Option<Day>,
    pub allow_access_tokens_via_browser: bool,
    pub iss_on_error: bool,
    pub default_response_mode: Option<ResponseMode>,
    pub access_token_type: AccessTokenType,
    pub access_token_typ: AccessTokenTyp,
    pub access_token_signed_response_alg: SigningAlgorithm,
    pub always_include_user_claims_in_id_token: bool,
    pub client_credentials_sub: bool,
    pub allowed_cors_origins: BTreeSet<String>,
    /// Static claims for its access tokens.
    pub claims: BTreeMap<String, Value>,
    pub lifetimes: Lifetimes,
    pub refresh_token_usage: RefreshTokenUsage,
    /// Whether a sign-in without `offline_access` brings a refresh token, which ends with its
    /// session.
    pub refresh_token_without_offline_access: bool,
    pub device_interval: Duration,
    pub token_exchange: Option<Value>,
    pub id_jag: Vec<IdJagEntry>,
}

/// Of a workload that another issuer knows: its tokens authenticate the client.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadIdentity {
    /// `None` where the subject is a SPIFFE ID: a JWT-SVID may lack `iss`.
    pub issuer: Option<String>,
    pub subject: String,
    /// What `aud` must be: our issuer where it is `None`.
    pub audience: Option<String>,
    /// Further claims, each of which must be this text.
    pub claims: BTreeMap<String, String>,
    pub jwks: Option<Value>,
    pub jwks_uri: Option<String>,
    /// 3600 s: the longest time from `iat` to `exp`.
    pub max_lifetime: Duration,
}

/// An authorization server elsewhere that the client may get ID-JAGs for.
#[derive(Clone, Debug)]
pub struct IdJagEntry {
    /// The issuer of that server.
    pub audience: String,
    /// What that server calls the client.
    pub client_id: String,
    pub resources: Vec<String>,
    pub scope: ScopeSet,
    /// Users with one of these roles; absent means everybody who may use the client.
    pub allowed_roles: Option<BTreeSet<String>>,
    pub minimum_acr: Strength,
    /// Whether the ID-JAG tells a verified e-mail address.
    pub email: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ClientLinks {
    pub client_uri: Option<String>,
    pub logo_uri: Option<String>,
    pub policy_uri: Option<String>,
    pub tos_uri: Option<String>,
    /// Where a sign-in begins there (OpenID Connect Core §4).
    pub initiate_login_uri: Option<String>,
}

/// Good for so long; all greater than zero. The defaults are beside them.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// 60 s; at most 600 s (RFC 6749 §4.1.2).
    pub authorization_code: Duration,
    pub id_token: Duration,
    pub access_token: Duration,
    /// Of a token that it gets for itself, where that is to live longer.
    pub client_credentials_token: Option<Duration>,
    /// 2592000 s, from the grant's beginning.
    pub refresh_token: Duration,
    /// 1296000 s, from the last use.
    pub refresh_token_idle: Duration,
    /// 30 s; public clients 10 s; 0 allowed.
    pub refresh_token_retry_window: Duration,
    pub device_code: Duration,
}

/// Where and how a client hears of a sign-out.
#[derive(Clone, Debug)]
pub struct LogoutUri {
    pub uri: String,
    /// Whether `iss` and `sid` go along.
    pub session_required: bool,
}

/// The order of variants is the order in metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantType {
    AuthorizationCode,
    Implicit,
    RefreshToken,
    ClientCredentials,
    Password,
    DeviceCode,
    TokenExchange,
    JwtBearer,
    Extension(String),
}

impl GrantType {
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
        let built_in = GrantType::BUILT_IN
            .into_iter()
            .find(|grant_type| grant_type.as_str() == name);
        built_in.unwrap_or_else(|| GrantType::Extension(name.to_owned()))
    }
}

named! {
    pub enum ApplicationType {
        Web = "web",
        Native = "native",
    }
}

named! {
    /// A set of rules that a client keeps as a whole.
    pub enum Profile {
        /// FAPI 2.0 Security Profile
        Fapi2 = "fapi2",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClientAuthenticationMethod {
    /// `none`: a public client; it has nothing to prove with.
    None,
    /// No method registered, but secrets are: header or body.
    AnySecret,
    /// `client_secret_basic`: header only.
    ClientSecretBasic,
    /// `client_secret_post`: body only.
    ClientSecretPost,
    PrivateKeyJwt,
}

impl ClientAuthenticationMethod {
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
#[derive(PartialEq)]
pub enum CodeBinding {
    /// A `code_challenge`: always of public clients, and of any with `require_pkce` true.
    Pkce,
    /// A `code_challenge`, or in an OpenID request a `nonce`: of confidential clients that do not
    /// say.
    PkceOrNonce,
    Neither,
}

named! {
    /// JWS algorithms we sign with (RFC 7518 §3.1, RFC 8037 §3.1).
    #[derive(PartialOrd, Ord)]
    pub enum SigningAlgorithm {
        Rs256 = "RS256",
        Es256 = "ES256",
        EdDsa = "EdDSA",
    }
}

impl SigningAlgorithm {
    /// What FAPI 2.0 §5.4.1 allows of them.
    pub const OF_FAPI2: [SigningAlgorithm; 2] = [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa];

    /// What RFC 9864 §2.2 calls `EdDSA` with the one curve that is taken here.
    pub const ED25519: &str = "Ed25519";

    /// The algorithm that others name, in what they signed or in a registration. What we sign has
    /// the names of `as_str` alone.
    pub fn from_others(name: &str) -> Option<SigningAlgorithm> {
        if name == SigningAlgorithm::ED25519 {
            Some(SigningAlgorithm::EdDsa)
        } else {
            SigningAlgorithm::from_name(name)
        }
    }
}

named! {
    pub enum AccessTokenType {
        Jwt = "jwt",
        /// A sealed handle that only our endpoints can read.
        Reference = "reference",
    }
}

named! {
    /// `typ` of access tokens.
    pub enum AccessTokenTyp {
        /// RFC 9068 §2.1
        AtJwt = "at+jwt",
        /// For resources whose libraries take no other. `client_id` still tells the token from an
        /// ID token.
        Jwt = "JWT",
    }
}

named! {
    pub enum RefreshTokenUsage {
        Rotate = "rotate",
        /// Confidential clients only.
        Reuse = "reuse",
    }
}

impl Client {
    /// Whether a user with that claim `role` may use it.
    pub fn is_open_to(&self, role: Option<&Value>) -> bool {
        allows_role(self.allowed_roles.as_ref(), role)
    }

    /// Whether it takes a sign-in of `acr`.
    pub fn takes(&self, acr: &str) -> bool {
        Strength::of(acr) >= self.minimum_acr
    }

    /// Whether the client can keep a secret (RFC 6749 §2.1).
    pub fn is_confidential(&self) -> bool {
        self.authentication.is_confidential()
    }

    /// Whether it is registered to get ID-JAGs.
    pub fn gets_id_jags(&self) -> bool {
        self.is_confidential() && !self.id_jag.is_empty()
    }

    /// What its authorization requests must hold so that a code stolen from them is of no use.
    pub fn code_binding(&self) -> CodeBinding {
        match (self.is_confidential(), self.require_pkce) {
            (false, _) | (true, Some(true)) => CodeBinding::Pkce,
            (true, None) => CodeBinding::PkceOrNonce,
            (true, Some(false)) => CodeBinding::Neither,
        }
    }

    /// The registered `token_endpoint_auth_signing_alg`, or else whatever its registered keys are
    /// for, as far as its profile allows it.
    pub fn assertion_algorithms(&self) -> Vec<SigningAlgorithm> {
        match (self.token_endpoint_auth_signing_alg, self.profile) {
            (Some(algorithm), _) => vec![algorithm],
            (None, Some(Profile::Fapi2)) => SigningAlgorithm::OF_FAPI2.to_vec(),
            (None, None) => SigningAlgorithm::ALL.to_vec(),
        }
    }

    /// Whether its ID tokens name the browser's session in `sid`. FAPI 2.0 wants none where no
    /// sign-out uses it.
    pub fn gets_sid(&self) -> bool {
        let signs_out = self.frontchannel_logout.is_some()
            || self.backchannel_logout.is_some()
            || !self.post_logout_redirect_uris.is_empty();
        match self.profile {
            Some(Profile::Fapi2) => signs_out,
            None => true,
        }
    }

    pub fn allows_grant(&self, grant_type: &GrantType) -> bool {
        self.grant_types.contains(grant_type)
    }

    /// `local` is the password login.
    pub fn allows_identity_provider(&self, name: &str) -> bool {
        self.identity_providers
            .as_ref()
            .is_none_or(|allowed| allowed.contains(name))
    }

    /// Whether people of one of these tenants may use it. An empty name stands for no tenant:
    /// whoever reaches those reaches every client.
    pub fn is_within(&self, reach: &[&str]) -> bool {
        let of_one = |tenants: &BTreeSet<TenantName>| {
            tenants
                .iter()
                .any(|tenant| reach.contains(&tenant.as_str()))
        };
        reach.contains(&"") || self.tenants.as_ref().is_none_or(of_one)
    }

    pub fn allows_tenant(&self, tenant: &TenantName) -> bool {
        self.tenants
            .as_ref()
            .is_none_or(|allowed| allowed.contains(tenant))
    }

    /// The tenant whose people alone may use it.
    pub fn only_tenant(&self) -> Option<&TenantName> {
        self.tenants
            .as_ref()
            .filter(|tenants| tenants.len() == 1)?
            .first()
    }
}

/// Whether the claim `role`, a text or a list of them, has one of the allowed roles.
pub fn allows_role(allowed: Option<&BTreeSet<String>>, role: Option<&Value>) -> bool {
    let Some(allowed) = allowed else {
        return true;
    };
    let roles = match role {
        Some(Value::Array(roles)) => roles.as_slice(),
        Some(role) => slice::from_ref(role),
        None => &[],
    };
    roles
        .iter()
        .filter_map(Value::as_str)
        .any(|role| allowed.contains(role))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples;
    use super::*;

    fn names<T: Ord>(texts: &[&str], name: impl Fn(&str) -> T) -> Option<BTreeSet<T>> {
        Some(texts.iter().map(|text| name(text)).collect())
    }

    #[test]
    fn grants_and_algorithms_are_read_by_their_names() {
        for grant_type in GrantType::BUILT_IN {
            assert_eq!(GrantType::from_name(grant_type.as_str()), grant_type);
        }
        let own = GrantType::from_name("urn:example:own");
        assert_eq!(own, GrantType::Extension(String::from("urn:example:own")));
        assert_eq!(own.as_str(), "urn:example:own");
        for (name, algorithm) in [
            ("Ed25519", Some(SigningAlgorithm::EdDsa)),
            ("EdDSA", Some(SigningAlgorithm::EdDsa)),
            ("ES256", Some(SigningAlgorithm::Es256)),
            ("none", None),
        ] {
            assert_eq!(SigningAlgorithm::from_others(name), algorithm, "{name}");
        }
    }

    #[test]
    fn the_fapi_profile_has_a_sid_only_where_a_sign_out_uses_it() {
        let plain = samples::client();
        let bank = Client {
            profile: Some(Profile::Fapi2),
            post_logout_redirect_uris: Vec::new(),
            frontchannel_logout: None,
            backchannel_logout: None,
            ..samples::client()
        };
        let address = LogoutUri {
            uri: String::from("https://bank.example/out"),
            session_required: false,
        };
        let uris = vec![String::from("https://bank.example/out")];
        let with_redirect = Client {
            post_logout_redirect_uris: uris,
            ..bank.clone()
        };
        let with_front = Client {
            frontchannel_logout: Some(address.clone()),
            ..bank.clone()
        };
        let with_back = Client {
            backchannel_logout: Some(address),
            ..bank.clone()
        };
        for (client, expected) in [
            (plain, true),
            (bank, false),
            (with_redirect, true),
            (with_front, true),
            (with_back, true),
        ] {
            assert_eq!(client.gets_sid(), expected, "{client:?}");
        }
    }

    #[test]
    fn a_client_is_open_to_the_roles_that_it_allows() {
        let open = samples::client();
        let closed = Client {
            allowed_roles: names(&["staff", "admin"], str::to_owned),
            ..open.clone()
        };
        for (role, is_allowed) in [
            (json!("staff"), true),
            (json!("guest"), false),
            (json!(["guest", "admin"]), true),
            (json!(["guest"]), false),
            (json!([]), false),
            (json!(7), false),
        ] {
            assert_eq!(closed.is_open_to(Some(&role)), is_allowed, "{role}");
            assert!(open.is_open_to(Some(&role)), "{role}");
        }
        assert!(open.is_open_to(None) && !closed.is_open_to(None));
    }

    #[test]
    fn a_client_takes_what_is_as_strong_as_it_asks_for() {
        let client = Client {
            minimum_acr: Strength::TwoFactors,
            ..samples::client()
        };
        for (acr, is_taken) in [("1", false), ("2", true), ("phr", true), ("other", false)] {
            assert_eq!(client.takes(acr), is_taken, "{acr}");
        }
    }

    #[test]
    fn a_client_signs_assertions_as_it_is_registered() {
        let algorithms = |algorithm, profile| {
            let client = Client {
                token_endpoint_auth_signing_alg: algorithm,
                profile,
                ..samples::client()
            };
            client.assertion_algorithms()
        };
        let es256 = SigningAlgorithm::Es256;
        assert_eq!(algorithms(Some(es256), None), [es256]);
        assert_eq!(algorithms(None, None), SigningAlgorithm::ALL);
        assert_eq!(
            algorithms(None, Some(Profile::Fapi2)),
            SigningAlgorithm::OF_FAPI2
        );
    }

    #[test]
    fn what_is_not_registered_is_not_allowed() {
        let any = samples::client();
        let bound = Client {
            identity_providers: names(&["corp"], str::to_owned),
            tenants: names(&["acme"], |name| TenantName::new(name)),
            ..any.clone()
        };
        assert!(bound.allows_grant(&GrantType::AuthorizationCode));
        assert!(!bound.allows_grant(&GrantType::Password));
        for (name, is_allowed) in [("corp", true), ("local", false)] {
            assert_eq!(bound.allows_identity_provider(name), is_allowed, "{name}");
            assert!(any.allows_identity_provider(name), "{name}");
        }
        for (name, is_allowed) in [("acme", true), ("globex", false)] {
            let tenant = TenantName::new(name);
            assert_eq!(bound.allows_tenant(&tenant), is_allowed, "{name}");
            assert!(any.allows_tenant(&tenant), "{name}");
            assert_eq!(bound.is_within(&[name]), is_allowed, "{name}");
            assert!(any.is_within(&[name]), "{name}");
        }
        assert!(bound.is_within(&["", "globex"]) && !bound.is_within(&[]));
    }
}
