//! What an identity provider must not take over from a registered one: a secret that somebody else
//! gave us, and accounts that were found by another claim.

use std::collections::{BTreeMap, BTreeSet};

use super::Comparison;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::DocumentProblem;
use gatepost_protocol::registration::provider;
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::words::identity_provider::{IdentityProvider, ProviderKind};

pub fn check(comparison: &Comparison, problems: &mut Vec<DocumentProblem>) {
    let Comparison {
        document,
        given,
        registered,
        ..
    } = comparison;
    let mut wanted = Vec::new();
    for (entry, given) in document.entries.iter().zip(given) {
        if entry.kind == ObjectKind::IdentityProvider
            && let Some(provider) = read(&entry.document)
        {
            wanted.push((entry, given, provider));
        }
    }
    let mut stored = BTreeMap::new();
    for ((kind, name), object) in &registered.objects {
        if *kind == ObjectKind::IdentityProvider
            && let Some(provider) = read(&object.document)
        {
            stored.insert(name.as_str(), (object, provider));
        }
    }
    let all = wanted
        .iter()
        .map(|(.., provider)| provider)
        .chain(stored.values().map(|(_, provider)| provider));
    let mut claims_by_endpoint = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (endpoint, claim) in all.filter_map(account_claim) {
        claims_by_endpoint
            .entry(endpoint)
            .or_default()
            .insert(claim);
    }
    for (entry, given, provider) in &wanted {
        let place = &entry.place;
        // The kept secret would be sent to an address that never had it.
        if given.client_secret.is_none()
            && let Some((object, before)) = stored.get(entry.name.as_str())
            && object.client_secret.is_some()
            && recipient(before) != recipient(provider)
        {
            let rule = "must be given anew: the one that is stored is another provider's, and not \
                        for this one to see";
            problems.push(DocumentProblem::new(format!("{place}.client_secret"), rule));
        }
        if let Some((endpoint, _)) = account_claim(provider)
            && let Some(claims) = claims_by_endpoint.get(endpoint)
            && claims.len() > 1
        {
            let rule = "must be the same wherever userinfo_endpoint is: what another claim says \
                        of somebody there may be what finds the account of somebody else";
            problems.push(DocumentProblem::new(format!("{place}.subject_claim"), rule));
        }
    }
}

fn recipient(provider: &IdentityProvider) -> &str {
    match &provider.kind {
        ProviderKind::OpenId { issuer } => issuer,
        ProviderKind::OAuth { token_endpoint, .. } => token_endpoint,
    }
}

/// By which claim it finds accounts, and where it reads that.
fn account_claim(provider: &IdentityProvider) -> Option<(&str, &str)> {
    match &provider.kind {
        ProviderKind::OAuth {
            userinfo_endpoint,
            subject_claim,
            ..
        } => Some((userinfo_endpoint, subject_claim)),
        ProviderKind::OpenId { .. } => None,
    }
}

fn read(document: &str) -> Option<IdentityProvider> {
    provider::from_json(&parse_own(document), "").ok()
}
