//! `--prune`: what a document leaves out goes, list by list. A list that the document does not have is not its concern.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::catalogue_kind::CatalogueKind;
use super::super::document::Document;
use super::super::problem::{Problem, shown};
use super::references::{Referent, mentions};
use super::registered::{Registered, RegisteredUsers};
use super::{Change, SecretChanges, Step, Verb};
use crate::protocol::identifiers::{ClientId, Subject};

/// The lists that are pruned, with the names each has.
#[derive(Clone, Debug, Default)]
pub struct Pruning(BTreeMap<String, BTreeSet<String>>);

impl Pruning {
    /// Every list that the document has.
    pub fn of(document: &Value) -> Pruning {
        let lists = document.as_object().into_iter().flatten();
        let named = |(list, items): (&String, &Value)| {
            let kind = CatalogueKind::ALL.into_iter().find(|kind| kind.list() == list);
            let key = kind.map_or("client_id", CatalogueKind::name_key);
            let names = items.as_array()?.iter().filter_map(|item| item.get(key)?.as_str().map(str::to_owned));
            Some((list.clone(), names.collect()))
        };
        Pruning(lists.filter_map(named).collect())
    }

    /// Whether that list is pruned.
    pub fn covers(&self, list: &str) -> bool {
        self.0.contains_key(list)
    }

    /// Whether something registered under that name stays.
    pub(super) fn keeps(&self, list: &str, name: &str) -> bool {
        self.0.get(list).is_none_or(|names| names.contains(name))
    }
}

/// Everything that goes, in an order in which nothing that stays is in between; notes what is still needed.
pub(super) fn removals<'d>(
    document: &Document,
    registered: &Registered,
    users: &RegisteredUsers,
    pruning: &Pruning,
    problems: &mut Vec<Problem>,
) -> Vec<Change<'d>> {
    let mut removals = Vec::new();
    for subject in removed_users(document, users, pruning) {
        let username = users.users.get(&subject).and_then(|user| user.username.clone());
        let username = username.unwrap_or_else(|| subject.to_string());
        removals.push(removal(Step::RemoveUser { subject, username }));
    }
    for name in registered.clients.keys().filter(|name| !pruning.keeps("clients", name)) {
        removals.push(removal(Step::RemoveClient(ClientId::new(name.clone()))));
    }
    for (kind, name) in registered.entries.keys().filter(|(kind, name)| !pruning.keeps(kind.list(), name)) {
        removals.push(removal(Step::RemoveEntry { kind: *kind, name: name.clone() }));
    }
    let gone = gone(document, &removals);
    check_what_stays(document, registered, pruning, &gone, problems);
    for tenant in users.tenants_of_others.iter().filter(|_| !pruning.covers("users")) {
        if gone.contains(&(Referent::Tenant, tenant.clone())) {
            let place = format!("tenant {}", shown(tenant));
            problems.push(Problem::new(place, "would be removed, but users who stay belong to it"));
        }
    }
    removals
}

fn removal(step: Step<'_>) -> Change<'_> {
    Change { verb: Verb::Remove, step, fields: Vec::new(), secrets: SecretChanges::default() }
}

fn removed_users(document: &Document, users: &RegisteredUsers, pruning: &Pruning) -> Vec<Subject> {
    if !pruning.covers("users") {
        return Vec::new();
    }
    let kept: BTreeSet<&Subject> = document.users.iter().filter_map(|user| user.subject.as_ref()).collect();
    let unnamed = document.users.iter().zip(&users.named).filter(|(user, _)| user.subject.is_none());
    let kept: BTreeSet<&Subject> =
        kept.into_iter().chain(unnamed.filter_map(|(_, subject)| subject.as_ref())).collect();
    users.users.keys().filter(|subject| !kept.contains(subject)).cloned().collect()
}

/// Names that nothing will have any longer: a scope may come back as one of the other kind.
fn gone(document: &Document, removals: &[Change<'_>]) -> BTreeSet<(Referent, String)> {
    let scopes = document.identity_scopes.iter().chain(&document.resource_scopes);
    let present: BTreeSet<&str> = scopes.map(|entry| entry.object.name.as_str()).collect();
    let referent = |change: &Change<'_>| match &change.step {
        Step::RemoveEntry { kind, name } => Some((Referent::of_kind(*kind)?, name.clone())),
        Step::RemoveClient(client_id) => Some((Referent::Client, client_id.to_string())),
        Step::PutEntry { .. }
        | Step::PutClient(_)
        | Step::AddUser { .. }
        | Step::ChangeUser { .. }
        | Step::RemoveUser { .. } => None,
    };
    let gone = removals.iter().filter_map(referent);
    gone.filter(|(referent, name)| *referent != Referent::Scope || !present.contains(name.as_str())).collect()
}

/// What the document does not name stays as it is: it must not be left pointing at nothing.
fn check_what_stays(
    document: &Document,
    registered: &Registered,
    pruning: &Pruning,
    gone: &BTreeSet<(Referent, String)>,
    problems: &mut Vec<Problem>,
) {
    if gone.is_empty() {
        return;
    }
    let given: BTreeSet<(&str, &str)> = names_of(document);
    let entries = registered.entries.iter().map(|((kind, name), entry)| {
        (kind.list(), kind.as_str(), name.as_str(), mentions(Some(*kind), &entry.document))
    });
    let clients = registered.clients.iter();
    let clients = clients.map(|(name, client)| ("clients", "client", name.as_str(), mentions(None, &client.metadata)));
    for (list, kind, name, mentioned) in entries.chain(clients) {
        if given.contains(&(list, name)) || !pruning.keeps(list, name) {
            continue;
        }
        for (referent, target) in mentioned.into_iter().filter(|mentioned| gone.contains(mentioned)) {
            let (what, target) = (referent.as_str(), shown(&target));
            let rule = format!("is not in this document and names {what} {target}, which would be removed");
            problems.push(Problem::new(format!("{kind} {}", shown(name)), rule));
        }
    }
}

fn names_of(document: &Document) -> BTreeSet<(&str, &str)> {
    let clients = document.clients.iter().map(|entry| ("clients", entry.client.client_id.as_str()));
    let scopes = document.resource_scopes.iter().map(|entry| ("resource_scopes", entry.object.name.as_str()));
    let providers = document.identity_providers.iter().map(|entry| ("identity_providers", entry.object.name.as_str()));
    let issuers = document.assertion_issuers.iter().map(|entry| ("assertion_issuers", entry.object.issuer.as_str()));
    clients.chain(scopes).chain(providers).chain(issuers).collect()
}
