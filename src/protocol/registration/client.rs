//! A client's registration, from JSON to [`Client`] with every default filled in.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::client_rules;
use super::key_table::key_table;
use super::metadata_document;
use super::names::{self, display_text, own_claim, plain_name, require, token_name};
use super::problem::DocumentProblem;
use super::profile;
use super::provider::{issuer, protected_url};
use super::timestamp;
use super::walker::{Check, Walker, text};
use crate::registration::client_rules::{ClientDefaults, jwks};
use crate::words::client::{
    AccessTokenType, ApplicationType, Client, ClientAuthenticationMethod, ClientLinks, GrantType,
    IdJagEntry, Lifetimes, LogoutUri, Profile, RefreshTokenUsage, SigningAlgorithm,
    WorkloadIdentity,
};
use crate::words::identifiers::{ClientId, TenantName};
use crate::words::instant::Day;
use crate::words::json::SetMember;
use crate::words::legacy_flow::LEGACY_UNTIL;
use crate::words::named::Named;
use crate::words::redirect_uri;
use crate::words::response_type::ResponseType;
use crate::words::rule::RuleKept;
use crate::words::scope::ScopeSet;
use crate::words::strength::Strength;
use crate::words::web_url::{WebUrl, check_host_name};

/// The longest lifetime of anything that ends: ten years.
pub const LONGEST_LIFETIME: u64 = 315_360_000;

/// Whether the client has a secret or key of its own. It is stored and exported where the secrets
/// are not.
pub const CONFIDENTIAL: &str = "confidential";

/// `token_endpoint_auth_method`
pub const METHODS: [(&str, ClientAuthenticationMethod); 4] = [
    ("none", ClientAuthenticationMethod::None),
    (
        "client_secret_basic",
        ClientAuthenticationMethod::ClientSecretBasic,
    ),
    (
        "client_secret_post",
        ClientAuthenticationMethod::ClientSecretPost,
    ),
    ("private_key_jwt", ClientAuthenticationMethod::PrivateKeyJwt),
];
/// What people write (OAuth 2.0 Multiple Response Type Encoding Practices §3, §5); any order of the
/// words is taken.
const RESPONSE_TYPES: [&str; 7] = [
    "code",
    "id_token",
    "token",
    "id_token token",
    "code id_token",
    "code token",
    "code id_token token",
];

/// Reads stored metadata. `path` is put before the places of problems. A registration that today's
/// rules refuse is refused here as well: the client is then as good as disabled, and the log says
/// why.
pub fn from_json(
    metadata: &Value,
    path: &str,
    defaults: &ClientDefaults,
) -> Result<Client, Vec<DocumentProblem>> {
    super::stored(metadata, path, |walker| read(walker, defaults))
}

/// Stored metadata, as a document has it. It says that the client is confidential where nothing
/// else says so. Otherwise it would become a public client where the document is applied and no
/// secrets are.
pub fn exported(metadata: &Value) -> Value {
    let mut members = metadata.as_object().cloned().unwrap_or_default();
    let is_told = members.contains_key("token_endpoint_auth_method");
    if is_told || members.get(CONFIDENTIAL) == Some(&Value::Bool(false)) {
        members.remove(CONFIDENTIAL);
    }
    Value::Object(members)
}

/// Reads a client, of a document or stored. Notes contradictions within it. Whether what it names
/// exists is not judged here.
pub fn read(walker: &mut Walker<'_>, defaults: &ClientDefaults) -> Client {
    let profile = walker.one_of("profile");
    let authentication = authentication(walker, profile);
    let mut client = read_keys(walker, profile, authentication, defaults);
    complete(walker, &mut client);
    client
}

/// Fills in what its metadata document and its profile set, and notes contradictions.
fn complete(walker: &mut Walker<'_>, client: &mut Client) {
    if client.metadata_document {
        metadata_document::settle(walker, client);
    }
    profile::fill_in(walker, client);
    let has_secrets = has_secrets(walker) == Some(true);
    client_rules::check(walker, client, has_secrets);
    let said = walker.value(CONFIDENTIAL).and_then(Value::as_bool);
    if said.is_some_and(|said| said != client.is_confidential()) {
        walker.problem(
            CONFIDENTIAL,
            "contradicts secrets or token_endpoint_auth_method; leave it out",
        );
    }
}

/// A client for which no method is registered is confidential where it has secrets, or where it
/// says so and names no secrets.
fn authentication(walker: &mut Walker<'_>, profile: Option<Profile>) -> ClientAuthenticationMethod {
    let said = walker.flag(CONFIDENTIAL);
    let unsaid = match (profile, has_secrets(walker).or(said)) {
        (Some(Profile::Fapi2), _) => ClientAuthenticationMethod::PrivateKeyJwt,
        (None, Some(true)) => ClientAuthenticationMethod::AnySecret,
        (None, Some(false) | None) => ClientAuthenticationMethod::None,
    };
    walker
        .choice("token_endpoint_auth_method", &METHODS)
        .unwrap_or(unsaid)
}

/// `None` where nothing is said of secrets.
fn has_secrets(walker: &mut Walker<'_>) -> Option<bool> {
    let secrets = walker.value("secrets")?;
    Some(secrets.as_array().is_some_and(|all| !all.is_empty()))
}

key_table! {
    fn read_keys(
        walker,
        said_profile: Option<Profile>,
        method: ClientAuthenticationMethod,
        defaults: &ClientDefaults
    ) -> Client;
    pub const CLIENT_KEYS;
    /// `client_id` | its name at this server: 1 to 200 printable ASCII characters, spaces within it
    /// alone, and no `"` or `\`. Commands and logs print one with a space in quotes | required
    client_id => ClientId::new(walker.required("client_id", names::client_id));
    /// `metadata_document` | `true`: the `client_id` is an `https` address, and [the document
    /// there](../connect/metadata-documents.md) says name, links, redirect URIs and keys | `false`
    metadata_document: is_set;
    /// `redirect_hosts` | hosts, besides its own, to which that document may have answers sent |
    /// none
    redirect_hosts: strings(check_host_name);
    /// `client_name`, `client_uri`, `policy_uri`, `tos_uri` | what the pages show and link to;
    /// error pages lead back to `client_uri` | the `client_id`, none
    ///
    /// `client_name#de` | its name in one language,
    /// [here](../operate/registering.md#names-in-several-languages) German | `client_name`
    client_name: localized(display_text, client_id.as_str());
    /// `application_type` | `web` or `native` (RFC 7591). Gatepost keeps and exports it, but judges
    /// a redirect URI by its scheme and host; with a `profile`, only `native` may have `http` |
    /// `web`
    application_type: one_of or ApplicationType::Web;
    /// `logo_uri` | a PNG, JPEG, WebP or GIF of at most 256 KiB, by https, or http on this machine.
    /// [Gatepost fetches and serves it](../operate/registering.md#logos) | none
    ///
    /// `initiate_login_uri` | where a sign-in begins there (OpenID Connect Core §4): https. The
    /// [start page](../operate/start-page.md) leads there, with `iss` | `client_uri`
    links => links(walker);
    /// `on_start_page` | `false` hides it from the [start page](../operate/start-page.md) | `true`
    on_start_page: flag or true;
    /// `enabled` | `false` refuses the client, and ends its grants and tokens | `true`
    enabled: flag or true;
    /// `profile` | `fapi2` [holds the client to the FAPI 2.0 Security Profile](../connect/fapi.md):
    /// it sets what the registration does not say, and refuses what contradicts it | none
    profile => said_profile;
    /// `redirect_uris` | compared byte for byte. One on `127.0.0.1` or `[::1]` without a port fits
    /// with any port, and so does one on `localhost` of a public client | required with a response
    /// type
    redirect_uris: strings(redirect_uri(method));
    /// `post_logout_redirect_uris` | where a person may go after signing out; compared byte for
    /// byte | none
    post_logout_redirect_uris: strings(redirect_uri(method));
    /// `frontchannel_logout_uri`, `backchannel_logout_uri` | where Gatepost tells the client that a
    /// [session ended](../connect/signing-out.md): https, or http on this machine, without a
    /// fragment | none
    ///
    /// `frontchannel_logout_session_required`, `backchannel_logout_session_required` | accepted;
    /// `iss` and `sid` are always sent | `false`
    frontchannel_logout =>
        logout(walker, "frontchannel_logout_uri", "frontchannel_logout_session_required");
    backchannel_logout =>
        logout(walker, "backchannel_logout_uri", "backchannel_logout_session_required");
    /// `response_types` | `code`, `id_token`, `token`, `id_token token`, `code id_token`, `code
    /// token`, `code id_token token`; words in any order | `["code"]`
    response_types => response_types(walker);
    /// `grant_types` | `authorization_code` (for `code`), `implicit` (for `id_token` and `token`),
    /// `client_credentials`, `refresh_token`, `urn:ietf:params:oauth:grant-type:device_code`,
    /// `password` (only for what cannot open a browser), [token
    /// exchange](../connect/token-exchange.md), [JWT bearer](../connect/assertions.md), [your
    /// own](../operate/own-grants-sql.md) | `["authorization_code"]`
    grant_types => grant_types(walker, &response_types);
    /// `allow_access_tokens_via_browser` | must be `true` for every `response_type` with `token` |
    /// `false`
    allow_access_tokens_via_browser: is_set;
    /// `scope` | the scopes that it may ask for, separated by spaces. `offline_access` and the
    /// grant type `refresh_token` go together: one without the other is refused, but with
    /// `refresh_token_without_offline_access` | none
    scope: scopes or ScopeSet::default();
    /// `default_scope` | [the part of `scope` that it gets without
    /// asking](../connect/tokens-and-claims.md#scopes-without-asking) | none
    default_scope: scopes or ScopeSet::default();
    /// `secrets` | one or several: see [secrets](#secrets). At least 16 characters each. Better:
    /// let `gatepost client secret` make one | none
    ///
    /// `confidential` | `true`: the client needs a secret, though this document has none. `gatepost
    /// export` writes it | `true` with secrets
    ///
    /// `token_endpoint_auth_method` | `client_secret_basic`, `client_secret_post`,
    /// `private_key_jwt`, or `none` for a public client | with secrets: header or body; without:
    /// `none`
    authentication => method;
    /// `jwks` or `jwks_uri`, `token_endpoint_auth_signing_alg` | [public
    /// keys](../connect/client-keys.md) for `private_key_jwt`, and the algorithm it signs with:
    /// `RS256`, `ES256`, `EdDSA` (or its newer name `Ed25519`) | none; any that the keys fit
    jwks: nested(jwks);
    jwks_uri: checked(protected_url);
    token_endpoint_auth_signing_alg => assertion_algorithm(walker);
    /// `federated` | [workloads whose tokens authenticate it](../connect/pipelines.md), without a
    /// secret: a list, 20 at most | none
    federated: objects(workload_identity) or Vec::new();
    /// `require_pushed_authorization_requests` | `true` takes only requests that it
    /// [pushed](../connect/pushed-requests.md) (RFC 9126) | `false`
    requires_pushed_requests => walker.is_set("require_pushed_authorization_requests");
    /// `dpop_bound_access_tokens` | `true` takes only token requests with a proof: its tokens are
    /// [bound to a key](../connect/dpop.md) (RFC 9449) | `false`
    requires_dpop => walker.is_set("dpop_bound_access_tokens");
    /// `dpop_nonce` | `true` takes only proofs with a nonce that Gatepost gave out in the last
    /// minutes | `false`
    requires_dpop_nonce => walker.is_set("dpop_nonce");
    /// `require_pkce` | `true` requires PKCE of any client. `false` requires neither [PKCE nor a
    /// nonce](../connect/tokens-and-claims.md#pkce-or-a-nonce), of confidential clients only |
    /// public clients: PKCE; confidential ones: PKCE or a nonce
    require_pkce: flag;
    /// `allow_plain_pkce` | also accept the method `plain` | `false`
    allow_plain_pkce: is_set;
    /// `legacy_until` | the last day, as `2027-01-31`, on which it may use [flows that OAuth 2.1
    /// has no more](../connect/grades.md#end-legacy-flows) | without end
    legacy_until => legacy_until(walker);
    /// `require_consent` | `true` asks people for consent. `false` asks only if the request does |
    /// `false`, but [`true` for redirect URIs on one's own
    /// machine](../operate/registering.md#consent)
    require_consent: flag;
    /// `allow_remember_consent`, `consent_lifetime` | whether Gatepost remembers the consent, and
    /// for how long | `true`, but [not on one's own machine](../operate/registering.md#consent);
    /// without end
    allow_remember_consent: flag;
    consent_lifetime: seconds(1..=LONGEST_LIFETIME);
    /// `authorization_response_iss_on_error` | `false` leaves `iss` (RFC 9207) out of error
    /// answers. For [mod_auth_openidc](../connect/mod-auth-openidc.md) alone | `true`
    iss_on_error => walker.flag("authorization_response_iss_on_error").unwrap_or(true);
    /// `default_response_mode` | `query`, `fragment` or `form_post`, for response types that allow
    /// it | `query` for `code`
    default_response_mode: one_of;
    /// `default_max_age` | how old a sign-in may be, in seconds | any age
    default_max_age => default_max_age(walker);
    /// `access_token_type` | `jwt` or `reference` | `jwt`
    access_token_type: one_of or AccessTokenType::Jwt;
    /// `access_token_typ` | the `typ` of its [JWT access
    /// tokens](../connect/tokens-and-claims.md#the-typ-of-access-tokens): `at+jwt` or `JWT` |
    /// `GATEPOST_ACCESS_TOKEN_TYP`
    access_token_typ: one_of or defaults.access_token_typ;
    /// `access_token_signed_response_alg`, `id_token_signed_response_alg` | `RS256`, `ES256` or
    /// `EdDSA` | `RS256`
    access_token_signed_response_alg: one_of or SigningAlgorithm::Rs256;
    id_token_signed_response_alg: one_of or SigningAlgorithm::Rs256;
    /// `always_include_user_claims_in_id_token` | `true` puts the user's claims into the ID token,
    /// too, not only at UserInfo | `false`
    always_include_user_claims_in_id_token: is_set;
    /// `client_credentials_sub` | whether tokens without a user have `sub`, which is then the
    /// `client_id` (RFC 9068 §2.2) | `true`
    client_credentials_sub: flag or true;
    /// `claims` | fixed claims for its access tokens: an object | none
    claims: map(own_claim_value);
    /// `token_exchange` | which tokens it may exchange, and for which resources. See [token
    /// exchange](../connect/token-exchange.md) | none
    token_exchange: nested(token_exchange);
    /// `id_jag` | [authorization servers elsewhere that it may get ID-JAGs
    /// for](../connect/id-jag.md): a list, of confidential clients with the grant type token
    /// exchange | none
    id_jag => id_jags(walker, &defaults.issuer);
    /// `tenants`, `identity_providers` | who may sign in to it. Two or more `tenants` do not keep
    /// out [people of no tenant](../operate/tenants.md#people-of-no-tenant). `local` is the
    /// password sign-in; other names are [identity providers](../providers/README.md) | all
    tenants => tenants(walker);
    identity_providers: strings_or_all(plain_name);
    /// `allowed_roles` | [only people with one of these
    /// roles](../operate/registering.md#who-may-use-an-application) (the claim `role`) may use it |
    /// everybody
    allowed_roles: strings_or_all(display_text);
    /// `minimum_acr` | the weakest sign-in it accepts: `1`, `2` or `phr`. See [second
    /// factors](../operate/second-factors.md). `GATEPOST_MINIMUM_ACR` still holds | `1`
    minimum_acr => minimum_acr(walker).max(defaults.minimum_acr);
    /// `require_bound_session` | `true`: 90 seconds after a sign-in, people sign in again unless
    /// their browser has [bound its session to a key](../operate/bound-sessions.md) | `false`
    require_bound_session: is_set;
    /// `allowed_cors_origins` | origins of its scripts, besides those of its redirect URIs | none
    allowed_cors_origins: strings(origin);
    /// `authorization_code_lifetime`, `id_token_lifetime`, `access_token_lifetime` | how long these
    /// are valid. Codes: at most 600 | as `GATEPOST_AUTHORIZATION_CODE_LIFETIME` and the settings
    /// like it say: 60, 300, 3600
    ///
    /// `client_credentials_token_lifetime` | how long a token without a user is valid, for
    /// [programs that can hold only a fixed
    /// token](../operate/scim.md#if-your-program-can-hold-only-a-fixed-token). Needs
    /// `access_token_type` `reference` | as `access_token_lifetime`
    ///
    /// `refresh_token_lifetime`, `refresh_token_idle_lifetime`, `refresh_token_retry_window` | from
    /// the beginning of the grant; from its last use; how long a lost answer is repeated | as
    /// `GATEPOST_REFRESH_TOKEN_LIFETIME` and the settings like it say: 2592000, 1296000, 30 (public
    /// clients 10)
    lifetimes => lifetimes(walker, authentication, defaults);
    /// `refresh_token_usage` | `rotate` gives a new refresh token each time. `reuse` keeps the
    /// first; for confidential clients only | `rotate`
    refresh_token_usage: one_of or RefreshTokenUsage::Rotate;
    /// `refresh_token_without_offline_access` | `true` gives a refresh token by each sign-in in a
    /// browser, [until the session ends](../connect/refresh-and-revocation.md#until-signing-out) |
    /// `false`
    refresh_token_without_offline_access: is_set;
    /// `device_code_lifetime`, `device_interval` | how long a device code is valid, and the seconds
    /// between two polls | 600, 5
    device_interval: seconds(1..=300) or defaults.device_interval;
}

fn links(walker: &mut Walker<'_>) -> ClientLinks {
    ClientLinks {
        client_uri: walker.checked("client_uri", web_url),
        logo_uri: walker.checked("logo_uri", protected_url),
        policy_uri: walker.checked("policy_uri", web_url),
        tos_uri: walker.checked("tos_uri", web_url),
        initiate_login_uri: walker.checked("initiate_login_uri", https_url),
    }
}

fn tenants(walker: &mut Walker<'_>) -> Option<BTreeSet<TenantName>> {
    let names = walker.strings_or_all("tenants", plain_name)?;
    Some(names.into_iter().map(TenantName::new).collect())
}

fn own_claim_value(name: &str, value: &Value) -> Result<Value, String> {
    own_claim(name)?;
    Ok(value.clone())
}

fn default_max_age(walker: &mut Walker<'_>) -> Option<u64> {
    let max_age = walker.seconds("default_max_age", 0..=LONGEST_LIFETIME)?;
    Some(max_age.as_secs())
}

fn minimum_acr(walker: &mut Walker<'_>) -> Strength {
    walker.one_of("minimum_acr").unwrap_or(Strength::SignedIn)
}

fn legacy_until(walker: &mut Walker<'_>) -> Option<Day> {
    let last = walker.checked(LEGACY_UNTIL, calendar_day)?;
    timestamp::parse_day(&last)
}

fn calendar_day(text: &str) -> RuleKept {
    let day = timestamp::parse_day(text);
    day.map(drop).ok_or("must be a day as 2027-01-31")
}

/// What is absent follows from `response_types` (RFC 7591 §2.1).
fn grant_types(
    walker: &mut Walker<'_>,
    response_types: &BTreeSet<ResponseType>,
) -> BTreeSet<GrantType> {
    match walker.strings_of("grant_types", token_name, &[]) {
        Some(names) => names
            .iter()
            .map(|name| GrantType::from_name(name))
            .collect(),
        None => client_rules::grant_types_behind(response_types),
    }
}

/// What is absent follows from `grant_types`, or is the code flow.
fn response_types(walker: &mut Walker<'_>) -> BTreeSet<ResponseType> {
    if let Some(texts) = walker.strings_of("response_types", response_type, &RESPONSE_TYPES) {
        return texts
            .iter()
            .filter_map(|text| ResponseType::parse(text))
            .collect();
    }
    let code_grant = GrantType::AuthorizationCode;
    let grant_types = walker.value("grant_types").and_then(Value::as_array);
    let uses_code =
        grant_types.is_none_or(|names| names.iter().any(|name| name == code_grant.as_str()));
    uses_code
        .then_some(ResponseType::CODE)
        .into_iter()
        .collect()
}

fn redirect_uri(authentication: ClientAuthenticationMethod) -> Check {
    if authentication.is_confidential() {
        of_confidential_client
    } else {
        of_public_client
    }
}

pub fn of_public_client(uri: &str) -> RuleKept {
    redirect_uri::check_registered(uri, true)
}

pub fn of_confidential_client(uri: &str) -> RuleKept {
    redirect_uri::check_registered(uri, false)
}

/// `token_endpoint_auth_signing_alg`, which may have either name of `EdDSA`; it is stored under the
/// one.
fn assertion_algorithm(walker: &mut Walker<'_>) -> Option<SigningAlgorithm> {
    let key = "token_endpoint_auth_signing_alg";
    let newer = (SigningAlgorithm::ED25519, SigningAlgorithm::EdDsa);
    let algorithm = walker.choice(key, &[SigningAlgorithm::CHOICES, &[newer]].concat())?;
    walker.stored_as.set(key, algorithm.as_str());
    Some(algorithm)
}

fn logout(
    walker: &mut Walker<'_>,
    uri_key: &'static str,
    session_key: &'static str,
) -> Option<LogoutUri> {
    let session_required = walker.flag(session_key);
    let uri = walker.checked(uri_key, protected_url);
    if session_required.is_some() && walker.value(uri_key).is_none() {
        walker.problem(session_key, format!("needs {uri_key}"));
    }
    uri.map(|uri| LogoutUri {
        uri,
        session_required: session_required.unwrap_or(false),
    })
}

fn lifetimes(
    walker: &mut Walker<'_>,
    authentication: ClientAuthenticationMethod,
    defaults: &ClientDefaults,
) -> Lifetimes {
    let mut lifetime =
        |key, longest: u64, unsaid: Duration| walker.seconds(key, 1..=longest).unwrap_or(unsaid);
    let refresh_token = lifetime(
        "refresh_token_lifetime",
        LONGEST_LIFETIME,
        defaults.refresh_token_lifetime,
    );
    let unsaid = defaults.refresh_token_idle_lifetime.min(refresh_token);
    let refresh_token_idle = lifetime("refresh_token_idle_lifetime", LONGEST_LIFETIME, unsaid);
    let lifetimes = Lifetimes {
        authorization_code: lifetime(
            "authorization_code_lifetime",
            600,
            defaults.authorization_code_lifetime,
        ),
        id_token: lifetime(
            "id_token_lifetime",
            LONGEST_LIFETIME,
            defaults.id_token_lifetime,
        ),
        access_token: lifetime(
            "access_token_lifetime",
            LONGEST_LIFETIME,
            defaults.access_token_lifetime,
        ),
        refresh_token,
        refresh_token_idle,
        device_code: lifetime(
            "device_code_lifetime",
            86_400,
            defaults.device_code_lifetime,
        ),
        client_credentials_token: walker
            .seconds("client_credentials_token_lifetime", 1..=LONGEST_LIFETIME),
        refresh_token_retry_window: walker
            .seconds("refresh_token_retry_window", 0..=600)
            .unwrap_or(defaults.retry_window(authentication.is_confidential())),
    };
    if refresh_token_idle > refresh_token {
        walker.problem(
            "refresh_token_idle_lifetime",
            "must not be longer than refresh_token_lifetime",
        );
    }
    lifetimes
}

pub fn workload_identity(walker: &mut Walker<'_>) -> WorkloadIdentity {
    client_rules::check_one_key_source(walker);
    let workload = read_workload(walker);
    if workload.issuer.is_none() && !workload.subject.starts_with("spiffe://") {
        walker.problem("issuer", "is required, unless subject is a SPIFFE ID");
    }
    workload
}

key_table! {
    fn read_workload(walker) -> WorkloadIdentity;
    pub const FEDERATED_KEYS;
    /// `issuer` | its tokens' `iss`. May be left out where `subject` begins with `spiffe://` |
    /// required
    issuer: checked(issuer);
    /// `subject` | their `sub`, compared as a whole | required
    subject: required(whole_subject);
    /// `claims` | further claims, and the text that each must be: an object | none
    claims: map(|_, value| text(value).map(str::to_owned));
    /// `audience` | what their `aud` must be | your issuer
    audience: checked(display_text);
    /// `jwks` or `jwks_uri` | the public keys that they are signed with: RS256, ES256, EdDSA | one
    /// of the two
    jwks: nested(jwks);
    jwks_uri: checked(protected_url);
    /// `max_lifetime` | the longest time from their `iat` to their `exp`, in seconds; at most 86400
    /// | 3600
    max_lifetime: seconds(1..=86_400) or Duration::from_secs(3_600);
}

/// Compared as a whole: a star would be a star.
fn whole_subject(text: &str) -> RuleKept {
    if text.contains('*') {
        return Err("must not have *: it is compared as a whole; register one entry a subject");
    }
    require(!text.is_empty(), "must not be empty")?;
    display_text(text)
}

/// RFC 8693: whose tokens this client may exchange, those meant for which resources, and for which
/// resources.
pub(super) fn token_exchange(
    value: &Value,
    path: &str,
    problems: &mut Vec<DocumentProblem>,
) -> Option<Value> {
    Walker::object(value, path, problems, exchange).map(|()| value.clone())
}

pub fn exchange(walker: &mut Walker<'_>) {
    let lists: [(_, Check); 3] = [
        ("from_clients", names::client_id),
        ("as_resources", token_name),
        ("to_resources", token_name),
    ];
    for (key, check) in lists {
        walker.not_empty(key, "must not be empty");
        walker.strings_of(key, check, &[]);
    }
}

fn id_jags(walker: &mut Walker<'_>, ours: &str) -> Vec<IdJagEntry> {
    let entries = walker.objects("id_jag", id_jag_entry).unwrap_or_default();
    if entries.iter().any(|entry| entry.audience == ours) {
        walker.problem("id_jag", "must not name this issuer: its tokens are here");
    }
    entries
}

key_table! {
    pub fn id_jag_entry(walker) -> IdJagEntry;
    pub const ID_JAG_KEYS;
    /// `audience` | the issuer of that server; each once | required
    audience: required(issuer);
    /// `client_id` | what that server calls the client | required
    client_id: required(names::client_id);
    /// `resources` | the resources there that the client may go to | required
    resources => resources_there(walker);
    /// `scope` | the scopes there that it may have | required
    scope => scope_there(walker);
    /// `allowed_roles` | only for people with one of these roles (the claim `role`) | everybody who
    /// may use the client
    allowed_roles: strings_or_all(display_text);
    /// `minimum_acr` | the weakest sign-in that it is given for: `1`, `2` or `phr` | `1`
    minimum_acr => minimum_acr(walker);
    /// `email` | `true`: the ID-JAG has the person's e-mail address, if it is verified | `false`
    email: is_set;
}

fn resources_there(walker: &mut Walker<'_>) -> Vec<String> {
    let rule = "must name a resource there: without one no ID-JAG can be asked for";
    walker.not_empty("resources", rule);
    walker.not_absent("resources", rule);
    walker.strings("resources", token_name)
}

fn scope_there(walker: &mut Walker<'_>) -> ScopeSet {
    walker.not_absent("scope", "is required");
    walker.scopes("scope").unwrap_or_default()
}

fn response_type(text: &str) -> RuleKept {
    let rule = "must be code, id_token and token in any combination, separated by spaces";
    ResponseType::parse(text).map(drop).ok_or(rule)
}

fn web_url(text: &str) -> RuleKept {
    WebUrl::parse(text).map(drop)
}

/// Also on this machine: that is what the standard says of it (OpenID Connect Registration §2).
fn https_url(text: &str) -> RuleKept {
    WebUrl::parse(text)?
        .https
        .then_some(())
        .ok_or("must begin with https://")
}

/// An origin as browsers send it (RFC 6454 §6.2).
fn origin(text: &str) -> RuleKept {
    let url = WebUrl::parse(text)?;
    protected_url(text)?;
    if url.origin != text || url.port == Some(if url.https { 443 } else { 80 }) {
        return Err(
            "must be a scheme, host and port as browsers send them, as https://app.example.com",
        );
    }
    Ok(())
}
