//! What an identity provider must not take over from a registered one: a secret that somebody else
//! gave us, and accounts that were found by another claim.

use std::collections::BTreeMap;

use super::super::problem::DocumentProblem;
use super::super::provider;
use super::{Comparison, RegisteredObject};
use crate::protocol::registration::document::ObjectKind;
use crate::protocol::registration::walker::parse_own;
use crate::protocol::words::identity_provider::{IdentityProvider, ProviderKind};

pub(super) fn check(comparison: &Comparison, problems: &mut Vec<DocumentProblem>) {
    let Comparison {
        document,
        given,
        registered,
        ..
    } = comparison;
    let of_kind = |kind: ObjectKind| kind == ObjectKind::IdentityProvider;
    let entries = document
        .entries
        .iter()
        .zip(given)
        .filter(|(entry, _)| of_kind(entry.kind));
    let wanted: Vec<_> = entries
        .filter_map(|(entry, given)| Some((entry, given, read(&entry.document)?)))
        .collect();
    let stored = registered
        .objects
        .iter()
        .filter(|((kind, _), _)| of_kind(*kind));
    let stored: BTreeMap<&str, _> = stored
        .filter_map(|((_, name), object)| Some((name.as_str(), (object, read(&object.document)?))))
        .collect();
    for (entry, given, provider) in &wanted {
        let place = &entry.place;
        let before = stored.get(entry.name.as_str());
        // The kept secret would be sent to an address that never had it.
        let keeps_anothers = |(object, before): &(&RegisteredObject, IdentityProvider)| {
            object.client_secret.is_some() && recipient(before) != recipient(provider)
        };
        if given.client_secret.is_none() && before.is_some_and(keeps_anothers) {
            let rule = "must be given anew: the one that is stored is another provider's, and not \
                        for this one to see";
            problems.push(DocumentProblem::new(format!("{place}.client_secret"), rule));
        }
        let mut others = wanted
            .iter()
            .map(|(.., other)| other)
            .chain(stored.values().map(|(_, other)| other));
        if others.any(|other| finds_accounts_otherwise(provider, other)) {
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

fn finds_accounts_otherwise(one: &IdentityProvider, other: &IdentityProvider) -> bool {
    let ProviderKind::OAuth {
        userinfo_endpoint,
        subject_claim,
        ..
    } = &one.kind
    else {
        return false;
    };
    match &other.kind {
        ProviderKind::OAuth {
            userinfo_endpoint: same,
            subject_claim: another,
            ..
        } => same == userinfo_endpoint && another != subject_claim,
        ProviderKind::OpenId { .. } => false,
    }
}

fn read(document: &str) -> Option<IdentityProvider> {
    provider::from_json(&parse_own(document), "").ok()
}
