//! Issuers whose JWTs are taken as grants (RFC 7523 §2.1).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::protocol::keys::key_set::KeySet;
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::identifiers::TenantName;
use crate::protocol::words::scope::ScopeSet;

use super::keys::jwks;
use super::names::{plain_name, token_name};
use super::provider::{issuer, protected_url};
use super::walker::Walker;

#[derive(Clone, Debug, PartialEq)]
pub struct AssertionIssuer {
    pub issuer: String,
    pub jwks: Option<Value>,
    pub jwks_uri: Option<String>,
    pub algs: BTreeSet<SigningAlgorithm>,
    pub clients: BTreeSet<String>,
    /// `scope`: the most such a grant can carry; absent means all of the client's.
    pub scope: Option<ScopeSet>,
    pub tenant: Option<TenantName>,
    /// `subject`: how `sub` finds a user.
    pub subject: AssertionSubject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssertionSubject {
    /// `link`: among the identities linked to that issuer.
    Link,
    Username,
}

pub fn read(walker: &mut Walker<'_, '_>) -> AssertionIssuer {
    let issuer = walker.required("issuer", issuer);
    if walker.value("jwks").is_some() == walker.value("jwks_uri").is_some() {
        walker.problem("jwks", "must be given, or jwks_uri: exactly one of the two");
    }
    if walker.value("clients").is_none() {
        walker.problem("clients", "is required: the client_ids that may redeem its assertions");
    }
    let known = SigningAlgorithm::ALL.map(SigningAlgorithm::as_str);
    walker.not_empty("algs", "must not be empty");
    let algs = walker.strings_of("algs", algorithm, &known);
    let algs = algs.unwrap_or_else(|| vec![String::from("RS256")]);
    let algs: BTreeSet<SigningAlgorithm> = algs.iter().filter_map(|name| SigningAlgorithm::from_name(name)).collect();
    let jwks = walker.nested("jwks", jwks);
    let keys = jwks.as_ref().filter(|_| walker.values_hold).and_then(KeySet::parse);
    if keys.is_some_and(|keys| !algs.iter().any(|alg| keys.has_key_for(*alg))) {
        walker.problem("jwks", "has no key that fits algs");
    }
    let scope = walker.checked("scope", scope_names);
    let subject = [("link", AssertionSubject::Link), ("username", AssertionSubject::Username)];
    AssertionIssuer {
        issuer,
        jwks,
        jwks_uri: walker.checked("jwks_uri", protected_url),
        algs,
        clients: walker.strings("clients", token_name).map(BTreeSet::from_iter).unwrap_or_default(),
        scope: scope.as_deref().and_then(ScopeSet::parse),
        tenant: walker.checked("tenant", plain_name).map(TenantName::new),
        subject: walker.one_of("subject", &subject).unwrap_or(AssertionSubject::Link),
    }
}

fn algorithm(name: &str) -> Result<(), &'static str> {
    SigningAlgorithm::from_name(name).map(|_| ()).ok_or("must be one of RS256, ES256, EdDSA")
}

pub(super) fn scope_names(text: &str) -> Result<(), &'static str> {
    ScopeSet::parse(text).map(|_| ()).ok_or("must be scope names separated by spaces")
}
