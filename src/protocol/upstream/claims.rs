//! What a person's account here takes over from upstream: standard claims by the scopes that were asked for, and what the
//! registration maps. Done anew at each sign-in, from the ID token and UserInfo together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::registration::names::display_text;
use super::super::registration::provider::{IdentityProvider, ProviderKind};
use super::is_identifier;
use crate::protocol::token::claims::is_reserved;
use crate::protocol::words::acr_values::SIGNED_IN;
use crate::protocol::words::claim_shape::{PROFILE, shaped};

/// The longest value that is taken over, in bytes of JSON. A longer one is left out.
const LONGEST_VALUE: usize = 8_192;
/// The longest that all of it together may be, in bytes of JSON: it goes into tokens and answers, and each page reads it.
const LONGEST_TOGETHER: usize = 32_768;
const PUNCTUATION: usize = 4;
/// How deeply a value may be nested: whoever reads it within something else must still be able to.
const DEEPEST_VALUE: usize = 20;
const MOST_ROLES: usize = 200;

const ROLE: &str = "role";
/// Claims that say whether another was verified. They hold of what upstream itself verified, so only beside that.
const VERIFIED: [(&str, &str); 2] = [("email_verified", "email"), ("phone_number_verified", "phone_number")];
/// What a person recognizes an account by, the best first.
const LABELS: [&str; 6] = ["email", "preferred_username", "upn", "login", "username", "name"];
const OUR_LABELS: [&str; 4] = ["email", "preferred_username", "nickname", "name"];

/// Every claim that a sign-in at this provider fills or, where upstream does not have it, leaves empty: by our name, the
/// names there that it may come from, the first that is there counts; for roles, all.
fn sources(provider: &IdentityProvider) -> BTreeMap<&str, Vec<&str>> {
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (theirs, ours) in provider.claims.iter().filter(|(_, ours)| !is_reserved(ours)) {
        sources.entry(ours).or_default().push(theirs);
    }
    for name in standard_claims(provider) {
        let is_elsewhere = provider.claims.contains_key(name);
        if !is_elsewhere {
            sources.entry(name).or_insert_with(|| vec![name]);
        }
    }
    let verifies =
        |sources: &BTreeMap<&str, Vec<&str>>, name: &str| sources.get(name).is_some_and(|from| *from == [name]);
    for (flag, claim) in VERIFIED {
        if !(verifies(&sources, flag) && verifies(&sources, claim)) {
            sources.remove(flag);
        }
    }
    sources
}

/// Claims of the standard scopes (OpenID Connect Core §5.4) that are asked for upstream.
fn standard_claims(provider: &IdentityProvider) -> Vec<&'static str> {
    let of = |scope: &str| match scope {
        "profile" => PROFILE.to_vec(),
        "email" => vec!["email", "email_verified"],
        "phone" => vec!["phone_number", "phone_number_verified"],
        "address" => vec!["address"],
        _ => Vec::new(),
    };
    match provider.kind {
        ProviderKind::OpenId { .. } => provider.scope.iter().flat_map(of).collect(),
        ProviderKind::OAuth { .. } => Vec::new(),
    }
}

/// Whether UserInfo may have something that the ID token lacks: a claim that the registration names, or of a scope the
/// first thing it is asked for.
pub fn are_wanting(provider: &IdentityProvider, id_token: &Map<String, Value>) -> bool {
    let telling = [("profile", "name"), ("email", "email"), ("phone", "phone_number"), ("address", "address")];
    let of_scopes = telling.iter().filter(|(scope, _)| provider.scope.contains(scope)).map(|(_, claim)| *claim);
    provider.claims.keys().map(String::as_str).chain(of_scopes).any(|name| !id_token.contains_key(name))
}

/// The ID token's claims with what UserInfo adds; where both speak, the one that is signed counts. Whether an address was
/// verified counts only from whoever names that address: in between it may have become another one.
pub fn merged(id_token: &Map<String, Value>, user_info: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut merged = user_info.cloned().unwrap_or_default();
    merged.extend(id_token.clone());
    for (flag, claim) in VERIFIED {
        let named = merged.get(claim).cloned();
        let sources = [Some(id_token), user_info].into_iter().flatten();
        let said = sources.filter(|source| source.get(claim) == named.as_ref()).find_map(|source| source.get(flag));
        match said {
            Some(said) => merged.insert(flag.to_owned(), said.clone()),
            None => merged.remove(flag),
        };
    }
    merged
}

/// What is taken over of what upstream says, and our names of what was left out because it was too much. What is reserved or of
/// the wrong kind is left out, like a value that is too long; and of what is too much together the longest. What decides on
/// rights comes before all else.
pub fn mapped(provider: &IdentityProvider, upstream: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let mut claims = shaped_claims(provider, upstream);
    let lengths = claims.iter().map(|(name, value)| (name != ROLE, value.to_string().len(), name.clone()));
    let mut lengths: Vec<(bool, usize, String)> = lengths.collect();
    lengths.sort_unstable();
    let (mut room, mut left_out) = (LONGEST_TOGETHER, Vec::new());
    for (_, length, name) in lengths {
        let left = room.checked_sub(name.len() + length + PUNCTUATION).filter(|_| length <= LONGEST_VALUE);
        match left {
            Some(left) => room = left,
            None => {
                claims.remove(&name);
                left_out.push(name);
            }
        }
    }
    for (flag, claim) in VERIFIED {
        // Without what it is about it would speak of whatever else the account has there.
        if !claims.contains_key(claim) {
            claims.remove(flag);
        }
    }
    (claims, left_out)
}

fn shaped_claims(provider: &IdentityProvider, upstream: &Map<String, Value>) -> Map<String, Value> {
    let value_of = |ours: &str, theirs: &[&str]| {
        let value = match ours {
            ROLE => roles(provider, theirs.iter().filter_map(|name| upstream.get(*name)))?,
            // Only upstream's own boolean.
            _ if VERIFIED.iter().any(|(flag, _)| *flag == ours) => {
                upstream.get(ours).filter(|value| value.is_boolean())?.clone()
            }
            _ => theirs.iter().find_map(|name| upstream.get(*name).filter(|value| !value.is_null()))?.clone(),
        };
        shaped(ours, &value).filter(|value| is_storable(value, DEEPEST_VALUE))
    };
    let filled =
        sources(provider).into_iter().filter_map(|(ours, from)| Some((ours.to_owned(), value_of(ours, &from)?)));
    filled.collect()
}

/// What a sign-in there is worth here: by the provider's table, else as much as any.
pub fn acr(provider: &IdentityProvider, theirs: Option<&str>) -> String {
    let ours = theirs.and_then(|theirs| provider.acr_map.get(theirs));
    ours.cloned().unwrap_or_else(|| String::from(SIGNED_IN))
}

/// The values as they are; where there is a table, only what it makes of them.
fn roles<'a>(provider: &IdentityProvider, values: impl Iterator<Item = &'a Value>) -> Option<Value> {
    let texts = values.flat_map(|value| match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    });
    let roles: BTreeSet<&str> = if provider.role_map.is_empty() {
        texts.collect()
    } else {
        texts.filter_map(|text| provider.role_map.get(text)).flatten().map(String::as_str).collect()
    };
    (!roles.is_empty()).then(|| roles.into_iter().take(MOST_ROLES).map(Value::from).collect())
}

fn is_storable(value: &Value, depth: usize) -> bool {
    let inner = |value: &Value| depth.checked_sub(1).is_some_and(|left| is_storable(value, left));
    match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(values) => values.iter().all(inner),
        Value::Object(members) => members.iter().all(|(name, value)| !name.contains('\0') && inner(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

pub fn label(upstream: &Map<String, Value>) -> Option<String> {
    one_line(upstream, &LABELS).map(str::to_owned)
}

/// The same of what an account here has taken over from there, under our names.
pub fn known_as(taken_over: &Map<String, Value>) -> Option<&str> {
    one_line(taken_over, &OUR_LABELS)
}

fn one_line<'a>(claims: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    let fits = |text: &&str| !text.trim().is_empty() && display_text(text).is_ok();
    names.iter().find_map(|name| claims.get(*name)?.as_str().filter(fits))
}

/// The subject in the answer of a provider without ID tokens: a text as it is, a whole number in decimal. Nothing that
/// could be written in two ways.
pub fn oauth_subject(user_info: &Map<String, Value>, subject_claim: &str) -> Option<String> {
    let subject = match user_info.get(subject_claim)? {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    is_identifier(&subject).then_some(subject)
}

#[cfg(test)]
mod tests;
