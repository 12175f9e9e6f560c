//! A client's registration, from JSON to [`Client`] with every default filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::client_rules;
use super::metadata_document;
use super::names::{self, display_text, own_claim, plain_name, token_name};
use super::problem::DocumentProblem;
use super::profile;
use super::provider::{issuer, protected_url};
use super::timestamp;
use super::walker::{Check, Walker, text};
use crate::registration::catalogue::scope_names;
use crate::registration::client_rules::{ClientDefaults, jwks};
use crate::words::client::{
    AccessTokenTyp, AccessTokenType, ApplicationType, Client, ClientAuthenticationMethod,
    ClientLinks, GrantType, IdJagEntry, Lifetimes, LogoutUri, Profile, RefreshTokenUsage,
    SigningAlgorithm, WorkloadIdentity,
};
use crate::words::identifiers::{ClientId, TenantName};
use crate::words::instant::Day;
use crate::words::legacy_flow::LEGACY_UNTIL;
use crate::words::redirect_uri;
use crate::words::response_type::{ResponseMode, ResponseType};
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
pub fn read(walker: &mut Walker<'_, '_>, defaults: &ClientDefaults) -> Client {
    let client_id = walker.required("client_id", names::client_id);
    let profile = walker.one_of("profile", &Profile::NAMED);
    let credentials = credentials(walker, profile);
    let confidential = credentials.method.is_confidential();
    let redirect_uri = redirect_uri_rule(confidential);
    let (grant_types, response_types) = flows(walker);
    let mut client = Client {
        client_name: walker.localized("client_name", display_text, &client_id),
        client_id: ClientId::new(client_id),
        metadata_document: walker.is_set("metadata_document"),
        redirect_hosts: redirect_hosts(walker),
        links: links(walker),
        enabled: walker.flag("enabled").unwrap_or(true),
        profile,
        redirect_uris: walker
            .strings("redirect_uris", redirect_uri)
            .unwrap_or_default(),
        post_logout_redirect_uris: walker
            .strings("post_logout_redirect_uris", redirect_uri)
            .unwrap_or_default(),
        response_types,
        grant_types,
        scope: scope(walker, "scope"),
        default_scope: scope(walker, "default_scope"),
        application_type: walker
            .one_of("application_type", &ApplicationType::NAMED)
            .unwrap_or(ApplicationType::Web),
        authentication: credentials.method,
        token_endpoint_auth_signing_alg: assertion_algorithm(walker),
        jwks: walker.nested("jwks", jwks),
        jwks_uri: walker.checked("jwks_uri", protected_url),
        federated: walker
            .objects("federated", workload_identity)
            .unwrap_or_default(),
        id_token_signed_response_alg: algorithm(walker, "id_token_signed_response_alg"),
        default_max_age: walker
            .seconds("default_max_age", 0..=LONGEST_LIFETIME)
            .map(|max_age| max_age.as_secs()),
        frontchannel_logout: logout(
            walker,
            "frontchannel_logout_uri",
            "frontchannel_logout_session_required",
        ),
        backchannel_logout: logout(
            walker,
            "backchannel_logout_uri",
            "backchannel_logout_session_required",
        ),
        identity_providers: walker.strings_or_all("identity_providers", plain_name),
        tenants: tenants(walker),
        allowed_roles: walker.strings_or_all("allowed_roles", display_text),
        minimum_acr: minimum_acr(walker).max(defaults.minimum_acr),
        require_consent: walker.flag("require_consent"),
        allow_remember_consent: walker.flag("allow_remember_consent"),
        consent_lifetime: walker.seconds("consent_lifetime", 1..=LONGEST_LIFETIME),
        requires_pushed_requests: walker.is_set("require_pushed_authorization_requests"),
        requires_dpop: walker.is_set("dpop_bound_access_tokens"),
        requires_dpop_nonce: walker.is_set("dpop_nonce"),
        require_pkce: walker.flag("require_pkce"),
        allow_plain_pkce: walker.is_set("allow_plain_pkce"),
        legacy_until: legacy_until(walker),
        allow_access_tokens_via_browser: walker.is_set("allow_access_tokens_via_browser"),
        iss_on_error: walker
            .flag("authorization_response_iss_on_error")
            .unwrap_or(true),
        default_response_mode: walker.one_of("default_response_mode", &ResponseMode::NAMED),
        access_token_type: walker
            .one_of("access_token_type", &AccessTokenType::NAMED)
            .unwrap_or(AccessTokenType::Jwt),
        access_token_typ: walker
            .one_of("access_token_typ", &AccessTokenTyp::NAMED)
            .unwrap_or(defaults.access_token_typ),
        access_token_signed_response_alg: algorithm(walker, "access_token_signed_response_alg"),
        always_include_user_claims_in_id_token: walker
            .is_set("always_include_user_claims_in_id_token"),
        client_credentials_sub: walker.flag("client_credentials_sub").unwrap_or(true),
        allowed_cors_origins: cors_origins(walker),
        claims: own_claims(walker),
        lifetimes: lifetimes(walker, confidential, defaults),
        refresh_token_usage: walker
            .one_of("refresh_token_usage", &RefreshTokenUsage::NAMED)
            .unwrap_or(RefreshTokenUsage::Rotate),
        device_interval: walker
            .seconds("device_interval", 1..=300)
            .unwrap_or(defaults.device_interval),
        token_exchange: walker.nested("token_exchange", token_exchange),
        id_jag: id_jags(walker, &defaults.issuer),
    };
    complete(walker, &mut client, &credentials);
    client
}

/// Fills in what its metadata document and its profile set, and notes contradictions.
fn complete(walker: &mut Walker<'_, '_>, client: &mut Client, credentials: &Credentials) {
    if client.metadata_document {
        metadata_document::settle(walker, client);
    }
    profile::fill_in(walker, client);
    client_rules::check(walker, client, credentials.has_secrets);
    let confidential = credentials.method.is_confidential();
    if credentials.said.is_some_and(|said| said != confidential) {
        walker.problem(
            CONFIDENTIAL,
            "contradicts secrets or token_endpoint_auth_method; leave it out",
        );
    }
}

/// How the client authenticates.
struct Credentials {
    method: ClientAuthenticationMethod,
    has_secrets: bool,
    /// `confidential`, where it is said.
    said: Option<bool>,
}

/// A client for which no method is registered is confidential where it has secrets, or where it
/// says so and names no secrets.
fn credentials(walker: &mut Walker<'_, '_>, profile: Option<Profile>) -> Credentials {
    let said = walker.flag(CONFIDENTIAL);
    let secrets = walker.value("secrets");
    let has_secrets = secrets.map(|secrets| secrets.as_array().is_some_and(|all| !all.is_empty()));
    let unsaid = match (profile, has_secrets.or(said)) {
        (Some(Profile::Fapi2), _) => ClientAuthenticationMethod::PrivateKeyJwt,
        (None, Some(true)) => ClientAuthenticationMethod::AnySecret,
        (None, Some(false) | None) => ClientAuthenticationMethod::None,
    };
    Credentials {
        method: walker
            .one_of("token_endpoint_auth_method", &METHODS)
            .unwrap_or(unsaid),
        has_secrets: has_secrets == Some(true),
        said,
    }
}

fn redirect_hosts(walker: &mut Walker<'_, '_>) -> BTreeSet<String> {
    let hosts = walker.strings("redirect_hosts", check_host_name);
    hosts.into_iter().flatten().collect()
}

fn cors_origins(walker: &mut Walker<'_, '_>) -> BTreeSet<String> {
    let origins = walker.strings("allowed_cors_origins", origin);
    origins.into_iter().flatten().collect()
}

fn own_claims(walker: &mut Walker<'_, '_>) -> BTreeMap<String, Value> {
    walker.map("claims", |name, value| {
        own_claim(name)?;
        Ok(value.clone())
    })
}

fn links(walker: &mut Walker<'_, '_>) -> ClientLinks {
    ClientLinks {
        client_uri: walker.checked("client_uri", web_url),
        logo_uri: walker.checked("logo_uri", protected_url),
        policy_uri: walker.checked("policy_uri", web_url),
        tos_uri: walker.checked("tos_uri", web_url),
    }
}

fn tenants(walker: &mut Walker<'_, '_>) -> Option<BTreeSet<TenantName>> {
    let names = walker.strings_or_all("tenants", plain_name)?;
    Some(names.into_iter().map(TenantName::new).collect())
}

fn scope(walker: &mut Walker<'_, '_>, key: &'static str) -> ScopeSet {
    let names = walker.checked(key, scope_names).unwrap_or_default();
    ScopeSet::parse(&names).unwrap_or_default()
}

fn minimum_acr(walker: &mut Walker<'_, '_>) -> Strength {
    walker
        .one_of("minimum_acr", &Strength::NAMED)
        .unwrap_or(Strength::SignedIn)
}

fn legacy_until(walker: &mut Walker<'_, '_>) -> Option<Day> {
    let last = walker.checked(LEGACY_UNTIL, calendar_day)?;
    timestamp::parse_day(&last)
}

fn calendar_day(text: &str) -> Result<(), &'static str> {
    let day = timestamp::parse_day(text);
    day.map(drop).ok_or("must be a day as 2027-01-31")
}

/// `grant_types` and `response_types`; what is absent follows from the other (RFC 7591 §2.1), or is
/// the code flow.
fn flows(walker: &mut Walker<'_, '_>) -> (BTreeSet<GrantType>, BTreeSet<ResponseType>) {
    let grant_types = grant_types(walker);
    let response_types = response_types(walker);
    let code = BTreeSet::from([ResponseType::CODE]);
    match (grant_types, response_types) {
        (Some(grant_types), Some(response_types)) => (grant_types, response_types),
        (Some(grant_types), None) => {
            let uses_code = grant_types.contains(&GrantType::AuthorizationCode);
            (grant_types, if uses_code { code } else { BTreeSet::new() })
        }
        (None, Some(response_types)) => (
            client_rules::grant_types_behind(&response_types),
            response_types,
        ),
        (None, None) => (BTreeSet::from([GrantType::AuthorizationCode]), code),
    }
}

fn grant_types(walker: &mut Walker<'_, '_>) -> Option<BTreeSet<GrantType>> {
    let names = walker.strings("grant_types", token_name)?;
    let grant_types = names.iter().map(|name| GrantType::from_name(name));
    Some(grant_types.collect())
}

fn response_types(walker: &mut Walker<'_, '_>) -> Option<BTreeSet<ResponseType>> {
    let texts = walker.strings_of("response_types", response_type, &RESPONSE_TYPES)?;
    let response_types = texts.iter().filter_map(|text| ResponseType::parse(text));
    Some(response_types.collect())
}

fn redirect_uri_rule(confidential: bool) -> Check {
    match confidential {
        true => of_confidential_client,
        false => of_public_client,
    }
}

pub fn of_public_client(uri: &str) -> Result<(), &'static str> {
    redirect_uri::check_registered(uri, true)
}

pub fn of_confidential_client(uri: &str) -> Result<(), &'static str> {
    redirect_uri::check_registered(uri, false)
}

/// `token_endpoint_auth_signing_alg`, which may have either name of `EdDSA`; it is stored under the
/// one.
fn assertion_algorithm(walker: &mut Walker<'_, '_>) -> Option<SigningAlgorithm> {
    let key = "token_endpoint_auth_signing_alg";
    let newer = (SigningAlgorithm::ED25519, SigningAlgorithm::EdDsa);
    let algorithm = walker.one_of(key, &[&SigningAlgorithm::NAMED[..], &[newer]].concat())?;
    walker
        .stored_as
        .insert(String::from(key), algorithm.as_str().into());
    Some(algorithm)
}

fn algorithm(walker: &mut Walker<'_, '_>, key: &'static str) -> SigningAlgorithm {
    walker
        .one_of(key, &SigningAlgorithm::NAMED)
        .unwrap_or(SigningAlgorithm::Rs256)
}

fn logout(
    walker: &mut Walker<'_, '_>,
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
    walker: &mut Walker<'_, '_>,
    confidential: bool,
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
            .unwrap_or(defaults.retry_window(confidential)),
    };
    if refresh_token_idle > refresh_token {
        walker.problem(
            "refresh_token_idle_lifetime",
            "must not be longer than refresh_token_lifetime",
        );
    }
    lifetimes
}

pub fn workload_identity(walker: &mut Walker<'_, '_>) -> WorkloadIdentity {
    let issuer = walker.checked("issuer", issuer);
    let subject = walker.required("subject", whole_subject);
    if issuer.is_none() && !subject.starts_with("spiffe://") {
        walker.problem("issuer", "is required, unless subject is a SPIFFE ID");
    }
    client_rules::check_one_key_source(walker);
    WorkloadIdentity {
        issuer,
        subject,
        audience: walker.checked("audience", display_text),
        claims: walker.map("claims", |_, value| text(value).map(str::to_owned)),
        jwks: walker.nested("jwks", jwks),
        jwks_uri: walker.checked("jwks_uri", protected_url),
        max_lifetime: walker
            .seconds("max_lifetime", 1..=86_400)
            .unwrap_or(Duration::from_secs(3_600)),
    }
}

/// Compared as a whole: a star would be a star.
fn whole_subject(text: &str) -> Result<(), &'static str> {
    match text.contains('*') {
        true => Err("must not have *: it is compared as a whole; register one entry a subject"),
        false if text.is_empty() => Err("must not be empty"),
        false => display_text(text),
    }
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

pub fn exchange(walker: &mut Walker<'_, '_>) {
    let lists: [(_, Check); 3] = [
        ("from_clients", names::client_id),
        ("as_resources", token_name),
        ("to_resources", token_name),
    ];
    for (key, check) in lists {
        walker.not_empty(key, "must not be empty");
        walker.strings(key, check);
    }
}

fn id_jags(walker: &mut Walker<'_, '_>, ours: &str) -> Vec<IdJagEntry> {
    let entries = walker.objects("id_jag", id_jag_entry).unwrap_or_default();
    if entries.iter().any(|entry| entry.audience == ours) {
        walker.problem("id_jag", "must not name this issuer: its tokens are here");
    }
    entries
}

pub fn id_jag_entry(walker: &mut Walker<'_, '_>) -> IdJagEntry {
    let scope = walker.required("scope", scope_names);
    let rule = "must name a resource there: without one no ID-JAG can be asked for";
    walker.not_empty("resources", rule);
    walker.not_absent("resources", rule);
    IdJagEntry {
        audience: walker.required("audience", issuer),
        client_id: walker.required("client_id", names::client_id),
        resources: walker.strings("resources", token_name).unwrap_or_default(),
        scope: ScopeSet::parse(&scope).unwrap_or_default(),
        allowed_roles: walker.strings_or_all("allowed_roles", display_text),
        minimum_acr: minimum_acr(walker),
        email: walker.is_set("email"),
    }
}

fn response_type(text: &str) -> Result<(), &'static str> {
    let rule = "must be code, id_token and token in any combination, separated by spaces";
    ResponseType::parse(text).map(drop).ok_or(rule)
}

fn web_url(text: &str) -> Result<(), &'static str> {
    WebUrl::parse(text).map(drop)
}

/// An origin as browsers send it (RFC 6454 §6.2).
fn origin(text: &str) -> Result<(), &'static str> {
    let url = WebUrl::parse(text)?;
    protected_url(text)?;
    if url.origin != text || url.port == Some(if url.https { 443 } else { 80 }) {
        return Err(
            "must be a scheme, host and port as browsers send them, as https://app.example.com",
        );
    }
    Ok(())
}
