//! Tenants, scopes and resources of a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::keys::key_set::KeySet;
use crate::registration::client_rules::{check_one_key_source, jwks};
use crate::registration::key_table::key_table;
use crate::registration::names::{
    self, STANDARD_SCOPES, display_text, is_invisible, own_claim, plain_name, released_claim,
    require, token_name,
};
use crate::registration::provider::{acr_map, issuer, protected_url};
use crate::registration::walker::{Check, Walker, text};
use crate::words::catalogue::{
    AssertionIssuer, AssertionSubject, RegisteredResource, RegisteredRole, RegisteredScope,
    RegisteredTenant, SqlGrant,
};
use crate::words::client::{GrantType, SigningAlgorithm};
use crate::words::identifiers::TenantName;
use crate::words::json::SetMember;
use crate::words::rule::RuleKept;
use crate::words::scope::ScopeKind;

key_table! {
    /// Reads one of `tenants`, of a document or stored, like every function here.
    pub fn tenant(walker) -> RegisteredTenant;
    pub const TENANT_KEYS;
    /// `name` | as in `acr_values=tenant:<name>` | required
    name: required(plain_name);
    /// `display_name` | what the pages call it | the name
    display_name => display_name(walker, &name);
}

key_table! {
    pub fn role(walker) -> RegisteredRole;
    pub const ROLE_KEYS;
    /// `name` | as in the claim `role` and a client's `allowed_roles` | required
    name: required(display_text);
    /// `display_name`, `description` | what the administrators' pages call it, and a line about it
    /// | the name; none
    ///
    /// `display_name#de`, `description#de` | the same in one language,
    /// [here](../operate/registering.md#names-in-several-languages) German | `display_name`,
    /// `description`
    display_name: localized(display_text, &name);
    description: localized(description, "");
    /// `given_by_administrators` | `true`: administrators may give and take it at `/admin`, as
    /// those of `GATEPOST_ADMIN_ROLES` | `false`
    given_by_administrators: is_set;
}

/// `display_name`; the name where it is absent.
pub(super) fn display_name(walker: &mut Walker<'_>, name: &str) -> String {
    let said = walker.checked("display_name", display_text);
    said.unwrap_or_else(|| name.to_owned())
}

key_table! {
    pub fn identity_scope(walker) -> RegisteredScope;
    pub const IDENTITY_SCOPE_KEYS;
    /// `name` | as in `scope` | required
    name: required(token_name);
    kind => ScopeKind::Identity;
    /// `display_name`, `description` | its name, and a line about it, on the consent, device and
    /// account pages | the name; none
    ///
    /// `display_name#de`, `description#de` | the same in one language,
    /// [here](../operate/registering.md#names-in-several-languages) German | `display_name`,
    /// `description`
    display_name: localized(display_text, &name);
    description: localized(description, "");
    /// `claims` | the user's claims that it gives: [an array, or an object that renames
    /// them](../connect/tokens-and-claims.md#which-claims-go-where) | none
    claims => released_claims(walker, released_claim);
    renamed => renamed_claims(walker);
    /// `required` | `true`: people cannot leave it out when they consent | `false`
    required: is_set;
    /// `emphasize` | `true`: the consent page marks it, so that people look twice | `false`
    emphasize: is_set;
    /// `show_in_discovery` | `false` keeps it out of `scopes_supported` | `true`
    show_in_discovery: flag or true;
    resources => Vec::new();
    is_built_in => false;
}

pub fn resource_scope(walker: &mut Walker<'_>) -> RegisteredScope {
    let scope = identity_scope(walker);
    if STANDARD_SCOPES.contains(&scope.name.as_str()) {
        walker.problem("name", "is the name of a built-in identity scope");
    }
    let resources = walker.strings("resources", token_name);
    RegisteredScope {
        kind: ScopeKind::Resource,
        resources,
        ..scope
    }
}

key_table! {
    pub fn resource(walker) -> RegisteredResource;
    pub const RESOURCE_KEYS;
    /// `name` | the `aud` of its tokens, and its name at introspection | required
    name: required(token_name);
    /// `display_name` | for whoever reads the registration; no page shows it | the name
    ///
    /// `secrets` | its secrets for introspection, as a client has them | none
    display_name => display_name(walker, &name);
    /// `claims` | the user's claims that access tokens for it carry | none
    claims => released_claims(walker, own_claim);
    renamed => renamed_claims(walker);
}

/// `claims`: an array of names, or an object from the stored name of a claim to the name that it
/// goes out under. Returns the names that go out.
fn released_claims(walker: &mut Walker<'_>, check: Check) -> Vec<String> {
    if !walker.value("claims").is_some_and(Value::is_object) {
        return walker.strings("claims", check);
    }
    let pairs: BTreeMap<String, String> =
        walker.map("claims", |source, name| new_name(source, name, check));
    let mut seen = BTreeSet::new();
    for (source, name) in &pairs {
        if !seen.insert(name) {
            let key = format!("claims.{}", source.escape_debug());
            walker.problem(&key, "goes out under a name that another has");
        }
    }
    pairs.into_values().collect()
}

/// For the names that differ, the stored name.
fn renamed_claims(walker: &mut Walker<'_>) -> BTreeMap<String, String> {
    let pairs = walker.value("claims").and_then(Value::as_object);
    let mut renamed = BTreeMap::new();
    for (source, name) in pairs.into_iter().flatten() {
        if let Some(name) = name.as_str().filter(|name| name != source) {
            renamed.insert(name.to_owned(), source.clone());
        }
    }
    renamed
}

/// The name that a claim goes out under.
fn new_name(source: &str, name: &Value, check: Check) -> Result<String, String> {
    let name = text(name)?;
    own_claim(source)?;
    check(name)?;
    Ok(name.to_owned())
}

fn description(text: &str) -> RuleKept {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(is_invisible);
    require(
        acceptable,
        "must be at most 1000 characters, without control characters",
    )
}

pub fn read_extension_grant(walker: &mut Walker<'_>) -> SqlGrant {
    let name = walker.required("name", grant_name);
    let function = walker.required("function", qualified_function);
    let (schema, function) = function.split_once('.').unwrap_or_default();
    SqlGrant {
        name,
        schema: schema.to_owned(),
        function: function.to_owned(),
    }
}

fn grant_name(name: &str) -> RuleKept {
    let is_built_in = GrantType::BUILT_IN.contains(&GrantType::from_name(name));
    require(!is_built_in, "is the name of a built-in grant")?;
    token_name(name)
}

fn qualified_function(text: &str) -> RuleKept {
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

pub fn read_assertion_issuer(walker: &mut Walker<'_>) -> AssertionIssuer {
    check_one_key_source(walker);
    walker.not_absent(
        "clients",
        "is required: the client_ids that may redeem its assertions",
    );
    let issuer = read_keys(walker);
    if walker.values_hold
        && let Some(keys) = issuer.jwks.as_ref().and_then(KeySet::parse)
        && !issuer.algs.iter().any(|alg| keys.has_key_for(*alg))
    {
        walker.problem("jwks", "has no key that fits algs");
    }
    issuer
}

key_table! {
    fn read_keys(walker) -> AssertionIssuer;
    pub const ASSERTION_ISSUER_KEYS;
    /// `issuer` | the `iss` of its assertions, byte for byte | required
    issuer: required(issuer);
    /// `jwks` or `jwks_uri` | its keys, [as for clients](../connect/client-keys.md) | one of them
    /// required
    jwks: nested(jwks);
    jwks_uri: checked(protected_url);
    /// `algs` | the algorithms it signs with: `RS256`, `ES256`, `EdDSA` (or its newer name
    /// `Ed25519`) | `["RS256"]`
    algs => algorithms(walker);
    /// `clients` | the clients that may redeem its assertions | required
    clients: strings(names::client_id);
    /// `scope` | the scopes that a token may carry, within those of the client | all of the client
    scope: scopes;
    /// `subject` | how its `sub` finds the user: `link`, by linked identities; `username`, by user
    /// name. It is never taken as a `sub` of Gatepost | `link`
    subject: one_of or AssertionSubject::Link;
    /// `tenant` | the tenant of its users | users without a tenant
    tenant => walker.checked("tenant", plain_name).map(TenantName::new);
    /// `id_jag` | `true`: it sends [ID-JAGs](../connect/id-jag.md), and nothing else | `false`
    id_jag: is_set;
    /// `acr_map` | with `id_jag`: an object from an `acr` there to the `acr` here | every sign-in
    /// there is `1`
    acr_map => acr_map(walker, id_jag, "is for issuers with id_jag: only ID-JAGs tell an acr");
}

/// `algs`. Ed25519 and EdDSA are one, and stored under the one name.
fn algorithms(walker: &mut Walker<'_>) -> BTreeSet<SigningAlgorithm> {
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
        let stored: Value = algs.iter().map(|algorithm| algorithm.as_str()).collect();
        walker.stored_as.set("algs", stored);
    }
    algs
}

fn algorithm(name: &str) -> RuleKept {
    SigningAlgorithm::from_others(name)
        .map(drop)
        .ok_or("must be one of RS256, ES256, EdDSA, Ed25519")
}
