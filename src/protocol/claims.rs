//! User claims (OpenID Connect Core §5): which of them go out for which scopes, and in what shape. A claim that has no
//! usable value is left out; a name that the protocol itself speaks is never taken from a user's attributes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::codec::{Reader, Writer};
use super::scope::{Catalogue, OFFLINE_ACCESS, OPENID, RegisteredScope, ScopeKind, ScopeSet};
use super::user::User;

/// Names of claims asked for one by one (OpenID Connect Core §5.5), already held against the registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimNames {
    /// Members of `userinfo`.
    pub userinfo: Vec<String>,
    /// Members of `id_token`.
    pub id_token: Vec<String>,
}

/// What tokens and answers say in their own name.
const RESERVED: [&str; 36] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "nbf",
    "jti",
    "auth_time",
    "nonce",
    "acr",
    "amr",
    "azp",
    "at_hash",
    "c_hash",
    "s_hash",
    "sid",
    "client_id",
    "scope",
    "tenant",
    "idp",
    "typ",
    "cnf",
    "act",
    "may_act",
    "events",
    "active",
    "token_type",
    "token_use",
    "userinfo_claims",
    "sub_jwk",
    "_claim_names",
    "_claim_sources",
    "resource",
    "expires_in",
    "access_token",
    "id_token",
];

/// A built-in identity scope: name, display name, description, claims.
type BuiltIn = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// OpenID Connect Core §5.4 and §11.
const BUILT_IN: [BuiltIn; 6] = [
    (OPENID, "Your identity", "Recognise you when you sign in.", &[]),
    ("profile", "Your profile", "Name, picture, language and other profile data.", &PROFILE),
    ("email", "Your email address", "Your email address, and whether it was verified.", &["email", "email_verified"]),
    ("address", "Your postal address", "Your postal address.", &["address"]),
    (
        "phone",
        "Your phone number",
        "Your phone number, and whether it was verified.",
        &["phone_number", "phone_number_verified"],
    ),
    (OFFLINE_ACCESS, "Access while you are away", "Keep this access when you are not signed in.", &[]),
];

const PROFILE: [&str; 14] = [
    "name",
    "family_name",
    "given_name",
    "middle_name",
    "nickname",
    "preferred_username",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "updated_at",
];

const ADDRESS: [&str; 6] = ["formatted", "street_address", "locality", "region", "postal_code", "country"];

/// The scopes that exist without being registered. A registration of the same name replaces one.
pub fn built_in_scopes() -> Vec<RegisteredScope> {
    BUILT_IN.iter().map(built_in_scope).collect()
}

fn built_in_scope((name, display_name, description, claims): &BuiltIn) -> RegisteredScope {
    RegisteredScope {
        name: (*name).to_owned(),
        kind: ScopeKind::Identity,
        display_name: (*display_name).to_owned(),
        description: (*description).to_owned(),
        claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
        required: *name == OPENID,
        emphasize: *name == OFFLINE_ACCESS,
        show_in_discovery: true,
        resources: Vec::new(),
    }
}

/// Whether a claim of this name is the protocol's own and never a user's attribute.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Names that the identity scopes among `scope` release, and those asked for one by one.
pub fn identity_claim_names<'a>(
    scope: &ScopeSet,
    requested: &'a [String],
    catalogue: &'a Catalogue,
) -> BTreeSet<&'a str> {
    let released = scopes_of_kind(scope, ScopeKind::Identity, catalogue).flat_map(|registered| &registered.claims);
    released.chain(requested).map(String::as_str).collect()
}

/// Names that an access token carries: those of its resource scopes and of the resources it is meant for.
pub fn resource_claim_names<'a>(scope: &ScopeSet, audience: &[String], catalogue: &'a Catalogue) -> BTreeSet<&'a str> {
    let of_scopes = scopes_of_kind(scope, ScopeKind::Resource, catalogue).flat_map(|registered| &registered.claims);
    let resources = catalogue.resources.values().filter(|resource| audience.contains(&resource.name));
    let of_resources = resources.flat_map(|resource| &resource.claims);
    of_scopes.chain(of_resources).map(String::as_str).collect()
}

fn scopes_of_kind<'a>(
    scope: &ScopeSet,
    kind: ScopeKind,
    catalogue: &'a Catalogue,
) -> impl Iterator<Item = &'a RegisteredScope> {
    let granted: Vec<&RegisteredScope> = scope.iter().filter_map(|name| catalogue.scopes.get(name)).collect();
    granted.into_iter().filter(move |registered| registered.kind == kind)
}

/// The user's claims of those names, each in its standard shape; what has none is left out.
pub fn mapped<'a>(user: &User, names: impl IntoIterator<Item = &'a str>) -> Map<String, Value> {
    let open = names.into_iter().filter(|name| !is_reserved(name));
    open.filter_map(|name| Some((name.to_owned(), shaped(name, user.claims.get(name)?)?))).collect()
}

/// Adds members that are neither the protocol's own nor there already.
pub fn add_unreserved(claims: &mut Map<String, Value>, members: impl IntoIterator<Item = (String, Value)>) {
    for (name, value) in members {
        if !is_reserved(&name) && !claims.contains_key(&name) {
            claims.insert(name, value);
        }
    }
}

/// The value in the shape its claim demands (OpenID Connect Core §5.1); `None` where it has no such shape.
fn shaped(name: &str, value: &Value) -> Option<Value> {
    match name {
        "role" => roles(value),
        "email_verified" | "phone_number_verified" => boolean(value),
        "updated_at" => number(value),
        "address" => address(value),
        _ if is_standard_text(name) => text(value),
        _ => present(value),
    }
}

fn is_standard_text(name: &str) -> bool {
    PROFILE.contains(&name) || matches!(name, "email" | "phone_number")
}

fn text(value: &Value) -> Option<Value> {
    value.as_str().filter(|text| !text.trim().is_empty()).map(Value::from)
}

/// Always an array, so that a client need not tell one role from several.
fn roles(value: &Value) -> Option<Value> {
    let roles: Vec<Value> = match value {
        Value::Array(roles) => roles.iter().filter_map(text).collect(),
        Value::String(_) => text(value).into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    (!roles.is_empty()).then_some(Value::Array(roles))
}

fn boolean(value: &Value) -> Option<Value> {
    let flag = value.as_bool().or_else(|| value.as_str().and_then(|text| text.parse::<bool>().ok()));
    flag.map(Value::from)
}

fn number(value: &Value) -> Option<Value> {
    let from_text = || value.as_str().and_then(|text| text.parse::<i64>().ok()).map(Value::from);
    if value.is_number() { Some(value.clone()) } else { from_text() }
}

/// OpenID Connect Core §5.1.1; a plain text becomes the formatted address.
fn address(value: &Value) -> Option<Value> {
    let members: Map<String, Value> = match value {
        Value::String(_) => text(value).map(|text| (String::from("formatted"), text)).into_iter().collect(),
        Value::Object(members) => address_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Map::new(),
    };
    (!members.is_empty()).then_some(Value::Object(members))
}

fn address_members(members: &Map<String, Value>) -> Map<String, Value> {
    ADDRESS.iter().filter_map(|name| Some(((*name).to_owned(), text(members.get(*name)?)?))).collect()
}

fn present(value: &Value) -> Option<Value> {
    let empty = match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    (!empty).then(|| value.clone())
}

impl ClaimNames {
    /// Appends the byte form.
    pub fn write(&self, writer: &mut Writer) {
        writer.texts(self.userinfo.iter().map(String::as_str));
        writer.texts(self.id_token.iter().map(String::as_str));
    }

    /// Takes the byte form off the front.
    pub fn read(reader: &mut Reader<'_>) -> Option<ClaimNames> {
        Some(ClaimNames { userinfo: reader.texts()?, id_token: reader.texts()? })
    }
}
