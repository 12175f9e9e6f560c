//! Tenants, scopes and resources of a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::protocol::keys::key_set::KeySet;
use crate::protocol::registration::client_rules::jwks;
use crate::protocol::registration::names::{
    STANDARD_SCOPES, display_text, is_invisible, own_claim, plain_name, released_claim, token_name,
};
use crate::protocol::registration::provider::{acr_map, issuer, protected_url};
use crate::protocol::registration::walker::{Check, Walker, expected};
use crate::protocol::words::catalogue::{
    AssertionIssuer, AssertionSubject, RegisteredResource, RegisteredScope, RegisteredTenant,
    SqlGrant,
};
use crate::protocol::words::client::{GrantType, SigningAlgorithm};
use crate::protocol::words::identifiers::TenantName;
use crate::protocol::words::scope::{ScopeKind, ScopeSet};

/// Reads one of `tenants`, of a document or stored, like every function here.
pub fn tenant(walker: &mut Walker<'_, '_>) -> RegisteredTenant {
    let name = walker.required("name", plain_name);
    let display_name = walker
        .checked("display_name", display_text)
        .unwrap_or_else(|| name.clone());
    RegisteredTenant { name, display_name }
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
        required: walker.flag("required").unwrap_or(false),
        emphasize: walker.flag("emphasize").unwrap_or(false),
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
    let display_name = walker
        .checked("display_name", display_text)
        .unwrap_or_else(|| name.clone());
    RegisteredResource {
        display_name,
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
        return (
            walker.strings("claims", check).unwrap_or_default(),
            BTreeMap::new(),
        );
    }
    let pairs: BTreeMap<String, String> = walker.map("claims", |source, name| {
        let name = name.as_str().ok_or_else(|| expected("a string", name))?;
        own_claim(source).and_then(|()| check(name))?;
        Ok(name.to_owned())
    });
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut renamed = BTreeMap::new();
    for (source, name) in pairs {
        if !seen.insert(name.clone()) {
            walker.problem(
                &format!("claims.{}", source.escape_debug()),
                "goes out under a name that another has",
            );
        } else if name != source {
            renamed.insert(name.clone(), source);
        }
        names.push(name);
    }
    (names, renamed)
}

fn description(text: &str) -> Result<(), &'static str> {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(is_invisible);
    if acceptable {
        Ok(())
    } else {
        Err("must be at most 1000 characters, without control characters")
    }
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
    let identifier = |part: &str| {
        let begins_well = part
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins_well
            && part.len() <= 63
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let parts: Vec<&str> = text.split('.').collect();
    let fits = parts.len() == 2 && parts.into_iter().all(identifier);
    if fits {
        Ok(())
    } else {
        Err("must be a schema and a function, as legacy.redeem_key")
    }
}

pub fn read_assertion_issuer(walker: &mut Walker<'_, '_>) -> AssertionIssuer {
    let issuer = walker.required("issuer", issuer);
    if walker.value("jwks").is_some() == walker.value("jwks_uri").is_some() {
        walker.problem("jwks", "must be given, or jwks_uri: exactly one of the two");
    }
    if walker.value("clients").is_none() {
        walker.problem(
            "clients",
            "is required: the client_ids that may redeem its assertions",
        );
    }
    let known = SigningAlgorithm::ALL.map(SigningAlgorithm::as_str);
    walker.not_empty("algs", "must not be empty");
    let algs = walker.strings_of("algs", algorithm, &known);
    let algs = algs.unwrap_or_else(|| vec![String::from("RS256")]);
    let says_ed25519 = algs.iter().any(|name| name == SigningAlgorithm::ED25519);
    let algs: BTreeSet<SigningAlgorithm> = algs
        .iter()
        .filter_map(|name| SigningAlgorithm::from_others(name))
        .collect();
    if says_ed25519 {
        walker.stored_as.insert(
            String::from("algs"),
            algs.iter().map(|algorithm| algorithm.as_str()).collect(),
        );
    }
    let jwks = walker.nested("jwks", jwks);
    let keys = jwks
        .as_ref()
        .filter(|_| walker.values_hold)
        .and_then(KeySet::parse);
    if keys.is_some_and(|keys| !algs.iter().any(|alg| keys.has_key_for(*alg))) {
        walker.problem("jwks", "has no key that fits algs");
    }
    let scope = walker.checked("scope", scope_names);
    let subject = [
        ("link", AssertionSubject::Link),
        ("username", AssertionSubject::Username),
    ];
    let id_jag = walker.flag("id_jag").unwrap_or(false);
    let acr_map = acr_map(walker);
    if !acr_map.is_empty() && !id_jag {
        walker.problem(
            "acr_map",
            "is for issuers with id_jag: only ID-JAGs tell an acr",
        );
    }
    AssertionIssuer {
        issuer,
        jwks,
        jwks_uri: walker.checked("jwks_uri", protected_url),
        algs,
        clients: walker
            .strings("clients", token_name)
            .map(BTreeSet::from_iter)
            .unwrap_or_default(),
        scope: scope.as_deref().and_then(ScopeSet::parse),
        tenant: walker.checked("tenant", plain_name).map(TenantName::new),
        subject: walker
            .one_of("subject", &subject)
            .unwrap_or(AssertionSubject::Link),
        id_jag,
        acr_map,
    }
}

fn algorithm(name: &str) -> Result<(), &'static str> {
    SigningAlgorithm::from_others(name)
        .map(|_| ())
        .ok_or("must be one of RS256, ES256, EdDSA, Ed25519")
}

pub(super) fn scope_names(text: &str) -> Result<(), &'static str> {
    ScopeSet::parse(text)
        .map(|_| ())
        .ok_or("must be scope names separated by spaces")
}
