//! Tenants, scopes and resources of a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::keys::key_set::KeySet;
use crate::registration::client_rules::{check_one_key_source, jwks};
use crate::registration::names::{
    self, STANDARD_SCOPES, display_text, is_invisible, own_claim, plain_name, released_claim,
    require, token_name,
};
use crate::registration::provider::{acr_map, issuer, protected_url};
use crate::registration::walker::{Check, Walker, text};
use crate::words::catalogue::{
    AssertionIssuer, AssertionSubject, RegisteredResource, RegisteredScope, RegisteredTenant,
    SqlGrant,
};
use crate::words::client::{GrantType, SigningAlgorithm};
use crate::words::identifiers::TenantName;
use crate::words::scope::{ScopeKind, ScopeSet};

/// Reads one of `tenants`, of a document or stored, like every function here.
pub fn tenant(walker: &mut Walker<'_, '_>) -> RegisteredTenant {
    let name = walker.required("name", plain_name);
    let display_name = display_name(walker, &name);
    RegisteredTenant { name, display_name }
}

/// `display_name`; the name where it is absent.
pub(super) fn display_name(walker: &mut Walker<'_, '_>, name: &str) -> String {
    let said = walker.checked("display_name", display_text);
    said.unwrap_or_else(|| name.to_owned())
}

pub fn identity_scope(walker: &mut Walker<'_, '_>) -> RegisteredScope {
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(walker, released_claim);
    RegisteredScope {
        kind: ScopeKind::Identity,
        display_name: walker.localized("display_name", display_text, &name),
        description: walker.localized("description", description, ""),
        claims,
        renamed,
        required: walker.is_set("required"),
        emphasize: walker.is_set("emphasize"),
        show_in_discovery: walker.flag("show_in_discovery").unwrap_or(true),
        resources: Vec::new(),
        name,
    }
}

pub fn resource_scope(walker: &mut Walker<'_, '_>) -> RegisteredScope {
    let scope = identity_scope(walker);
    if STANDARD_SCOPES.contains(&scope.name.as_str()) {
        walker.problem("name", "is the name of a built-in identity scope");
    }
    let resources = walker.strings("resources", token_name).unwrap_or_default();
    RegisteredScope {
        kind: ScopeKind::Resource,
        resources,
        ..scope
    }
}

pub fn resource(walker: &mut Walker<'_, '_>) -> RegisteredResource {
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(walker, own_claim);
    RegisteredResource {
        display_name: display_name(walker, &name),
        claims,
        renamed,
        name,
    }
}

/// `claims`: an array of names, or an object from the stored name of a claim to the name that it
/// goes out under. Returns the names that go out, and for those that differ the stored name.
fn released_claims(
    walker: &mut Walker<'_, '_>,
    check: Check,
) -> (Vec<String>, BTreeMap<String, String>) {
    if !walker.value("claims").is_some_and(Value::is_object) {
        let names = walker.strings("claims", check).unwrap_or_default();
        return (names, BTreeMap::new());
    }
    let pairs: BTreeMap<String, String> =
        walker.map("claims", |source, name| new_name(source, name, check));
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut renamed = BTreeMap::new();
    for (source, name) in pairs {
        if !seen.insert(name.clone()) {
            let key = format!("claims.{}", source.escape_debug());
            walker.problem(&key, "goes out under a name that another has");
        } else if name != source {
            renamed.insert(name.clone(), source);
        }
        names.push(name);
    }
    (names, renamed)
}

/// The name that a claim goes out under.
fn new_name(source: &str, name: &Value, check: Check) -> Result<String, String> {
    let name = text(name)?;
    own_claim(source)?;
    check(name)?;
    Ok(name.to_owned())
}

fn description(text: &str) -> Result<(), &'static str> {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(is_invisible);
    require(
        acceptable,
        "must be at most 1000 characters, without control characters",
    )
}

pub fn read_extension_grant(walker: &mut Walker<'_, '_>) -> SqlGrant {
    let name = walker.required("name", grant_name);
    let function = walker.required("function", qualified_function);
    let (schema, function) = function.split_once('.').unwrap_or_default();
    SqlGrant {
        name,
        schema: schema.to_owned(),
        function: function.to_owned(),
    }
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
    match text.split_once('.') {
        Some((schema, function)) if is_identifier(schema) && is_identifier(function) => Ok(()),
        Some(_) | None => Err("must be a schema and a function, as legacy.redeem_key"),
    }
}

fn is_identifier(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = !text.starts_with(|character: char| character.is_ascii_digit());
    begins_well && (1..=63).contains(&text.len()) && text.bytes().all(is_word)
}

const SUBJECTS: [(&str, AssertionSubject); 2] = [
    ("link", AssertionSubject::Link),
    ("username", AssertionSubject::Username),
];

pub fn read_assertion_issuer(walker: &mut Walker<'_, '_>) -> AssertionIssuer {
    let issuer = walker.required("issuer", issuer);
    check_one_key_source(walker);
    walker.not_absent(
        "clients",
        "is required: the client_ids that may redeem its assertions",
    );
    let algs = algorithms(walker);
    let jwks = jwks_for(walker, &algs);
    let scope = walker.checked("scope", scope_names);
    let id_jag = walker.is_set("id_jag");
    let rule = "is for issuers with id_jag: only ID-JAGs tell an acr";
    let acr_map = acr_map(walker, id_jag, rule);
    AssertionIssuer {
        issuer,
        jwks,
        jwks_uri: walker.checked("jwks_uri", protected_url),
        algs,
        clients: BTreeSet::from_iter(
            walker
                .strings("clients", names::client_id)
                .unwrap_or_default(),
        ),
        scope: scope.as_deref().and_then(ScopeSet::parse),
        tenant: walker.checked("tenant", plain_name).map(TenantName::new),
        subject: walker
            .one_of("subject", &SUBJECTS)
            .unwrap_or(AssertionSubject::Link),
        id_jag,
        acr_map,
    }
}

/// `algs`. Ed25519 and EdDSA are one, and stored under the one name.
fn algorithms(walker: &mut Walker<'_, '_>) -> BTreeSet<SigningAlgorithm> {
    let known = SigningAlgorithm::ALL.map(SigningAlgorithm::as_str);
    walker.not_empty("algs", "must not be empty");
    let Some(names) = walker.strings_of("algs", algorithm, &known) else {
        return BTreeSet::from([SigningAlgorithm::Rs256]);
    };
    let algs = names
        .iter()
        .filter_map(|name| SigningAlgorithm::from_others(name));
    let algs: BTreeSet<SigningAlgorithm> = algs.collect();
    if names.iter().any(|name| name == SigningAlgorithm::ED25519) {
        let stored = algs.iter().map(|algorithm| algorithm.as_str()).collect();
        walker.stored_as.insert(String::from("algs"), stored);
    }
    algs
}

fn jwks_for(walker: &mut Walker<'_, '_>, algs: &BTreeSet<SigningAlgorithm>) -> Option<Value> {
    let jwks = walker.nested("jwks", jwks);
    if walker.values_hold
        && let Some(keys) = jwks.as_ref().and_then(KeySet::parse)
        && !algs.iter().any(|alg| keys.has_key_for(*alg))
    {
        walker.problem("jwks", "has no key that fits algs");
    }
    jwks
}

fn algorithm(name: &str) -> Result<(), &'static str> {
    SigningAlgorithm::from_others(name)
        .map(drop)
        .ok_or("must be one of RS256, ES256, EdDSA, Ed25519")
}

pub(super) fn scope_names(text: &str) -> Result<(), &'static str> {
    ScopeSet::parse(text)
        .map(drop)
        .ok_or("must be scope names separated by spaces")
}
