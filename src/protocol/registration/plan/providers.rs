//! What an identity provider must not take over from what is registered already: a secret that somebody else gave us, and
//! accounts that were found by another claim.

use super::super::catalogue_kind::CatalogueKind;
use super::super::document::Document;
use super::super::problem::Problem;
use super::super::provider::{self, IdentityProvider, ProviderKind};
use super::registered::{Registered, RegisteredEntry};
use super::secrets::GivenSecrets;

/// Checks every provider of a document.
pub(super) fn check(document: &Document, given: &GivenSecrets, registered: &Registered, problems: &mut Vec<Problem>) {
    for (index, entry) in document.identity_providers.iter().enumerate() {
        let wanted = &entry.object;
        let place = format!("identity_providers[{index}]");
        let stored = registered.entries.get(&(CatalogueKind::IdentityProvider, wanted.name.clone()));
        let is_given = given.providers.get(index).is_some_and(Option::is_some);
        if !is_given && stored.is_some_and(|stored| keeps_a_secret_of_another(wanted, stored)) {
            let rule = "must be given anew: the one that is stored is another provider's, and not for this one to see";
            problems.push(Problem::new(format!("{place}.client_secret"), rule));
        }
        let others = document.identity_providers.iter().map(|entry| entry.object.clone());
        if others.chain(all_read(registered)).any(|other| finds_accounts_otherwise(wanted, &other)) {
            let rule = "must be the same wherever userinfo_endpoint is: what another claim says of somebody there may be \
                        what finds the account of somebody else";
            problems.push(Problem::new(format!("{place}.subject_claim"), rule));
        }
    }
}

/// Whether the secret that stays would go where it never went.
fn keeps_a_secret_of_another(wanted: &IdentityProvider, stored: &RegisteredEntry) -> bool {
    let recipient = |provider: &IdentityProvider| match &provider.kind {
        ProviderKind::OpenId { issuer } => issuer.clone(),
        ProviderKind::OAuth { token_endpoint, .. } => token_endpoint.clone(),
    };
    let before = read(stored).map(|before| recipient(&before));
    stored.client_secret.is_some() && before.is_some_and(|before| before != recipient(wanted))
}

fn finds_accounts_otherwise(one: &IdentityProvider, other: &IdentityProvider) -> bool {
    let ProviderKind::OAuth { userinfo_endpoint, subject_claim, .. } = &one.kind else { return false };
    match &other.kind {
        ProviderKind::OAuth { userinfo_endpoint: same, subject_claim: another, .. } => {
            same == userinfo_endpoint && another != subject_claim
        }
        ProviderKind::OpenId { .. } => false,
    }
}

fn all_read(registered: &Registered) -> impl Iterator<Item = IdentityProvider> {
    let of_kind = registered.entries.iter().filter(|((kind, _), _)| *kind == CatalogueKind::IdentityProvider);
    of_kind.filter_map(|(_, entry)| read(entry))
}

fn read(entry: &RegisteredEntry) -> Option<IdentityProvider> {
    provider::from_json(&entry.document, "").ok()
}
