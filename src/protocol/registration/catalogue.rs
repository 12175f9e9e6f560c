//! Tenants, scopes, resources and extension grants of a document.

use serde_json::Value;

use crate::protocol::client::GrantType;
use crate::protocol::scope::{RegisteredResource, RegisteredScope, RegisteredTenant, ScopeKind};

use super::client_secret::{self, RegisteredSecret};
use super::names::{BUILT_IN_SCOPES, display_text, own_claim, plain_name, released_claim, token_name};
use super::problem::Problem;
use super::walker::Walker;

/// A resource and what it authenticates with at introspection.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceEntry {
    /// The resource.
    pub resource: RegisteredResource,
    /// `secrets`; `None` leaves those already stored.
    pub secrets: Option<Vec<RegisteredSecret>>,
}

/// A grant type answered by a SQL function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionGrant {
    /// `name`: the grant type.
    pub name: String,
    /// Schema of `function`.
    pub schema: String,
    /// Name of `function` in that schema.
    pub function: String,
}

const SCOPE_KEYS: [&str; 7] =
    ["name", "display_name", "description", "claims", "required", "emphasize", "show_in_discovery"];
const RESOURCE_SCOPE_KEYS: [&str; 8] =
    ["name", "display_name", "description", "claims", "required", "emphasize", "show_in_discovery", "resources"];

/// Reads one of `tenants`.
pub fn tenant(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredTenant> {
    let mut walker = Walker::open(value, path, &["name", "display_name"], problems)?;
    let name = walker.required("name", plain_name);
    let display_name = walker.checked("display_name", display_text).unwrap_or_else(|| name.clone());
    Some(RegisteredTenant { name, display_name })
}

/// Reads one of `identity_scopes`.
pub fn identity_scope(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredScope> {
    let mut walker = Walker::open(value, path, &SCOPE_KEYS, problems)?;
    Some(scope(&mut walker, ScopeKind::Identity))
}

/// Reads one of `resource_scopes`.
pub fn resource_scope(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredScope> {
    let mut walker = Walker::open(value, path, &RESOURCE_SCOPE_KEYS, problems)?;
    let scope = scope(&mut walker, ScopeKind::Resource);
    if BUILT_IN_SCOPES.contains(&scope.name.as_str()) {
        walker.problem("name", "is the name of a built-in identity scope");
    }
    Some(scope)
}

fn scope(walker: &mut Walker<'_, '_>, kind: ScopeKind) -> RegisteredScope {
    let name = walker.required("name", token_name);
    RegisteredScope {
        kind,
        display_name: walker.checked("display_name", display_text).unwrap_or_else(|| name.clone()),
        description: walker.checked("description", description).unwrap_or_default(),
        claims: walker.strings("claims", released_claim).unwrap_or_default(),
        required: walker.flag("required").unwrap_or(false),
        emphasize: walker.flag("emphasize").unwrap_or(false),
        show_in_discovery: walker.flag("show_in_discovery").unwrap_or(true),
        resources: walker.strings("resources", token_name).unwrap_or_default(),
        name,
    }
}

/// Reads one of `resources`.
pub fn resource(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<ResourceEntry> {
    let mut walker = Walker::open(value, path, &["name", "display_name", "secrets", "claims"], problems)?;
    let name = walker.required("name", token_name);
    let resource = RegisteredResource {
        display_name: walker.checked("display_name", display_text).unwrap_or_else(|| name.clone()),
        claims: walker.strings("claims", own_claim).unwrap_or_default(),
        name,
    };
    Some(ResourceEntry { resource, secrets: walker.list("secrets", client_secret::parse) })
}

/// Reads one of `extension_grants`.
pub fn extension_grant(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<ExtensionGrant> {
    let mut walker = Walker::open(value, path, &["name", "function"], problems)?;
    let name = walker.required("name", grant_name);
    let function = walker.required("function", qualified_function);
    let (schema, function) = function.split_once('.').unwrap_or_default();
    Some(ExtensionGrant { name, schema: schema.to_owned(), function: function.to_owned() })
}

fn grant_name(name: &str) -> Result<(), &'static str> {
    match GrantType::from_name(name) {
        GrantType::Extension(_) => token_name(name),
        GrantType::AuthorizationCode
        | GrantType::Implicit
        | GrantType::RefreshToken
        | GrantType::ClientCredentials
        | GrantType::Password
        | GrantType::DeviceCode
        | GrantType::TokenExchange
        | GrantType::JwtBearer => Err("is the name of a built-in grant"),
    }
}

fn qualified_function(text: &str) -> Result<(), &'static str> {
    let identifier = |part: &str| {
        let begins_well = part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins_well && part.len() <= 63 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() == 2 && parts.into_iter().all(identifier) {
        return Ok(());
    }
    Err("must be a schema and a function, as legacy.redeem_key")
}

fn description(text: &str) -> Result<(), &'static str> {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(super::names::is_invisible);
    if acceptable { Ok(()) } else { Err("must be at most 1000 characters, without control characters") }
}
