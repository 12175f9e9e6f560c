//! `--prune`: what a document leaves out is removed, list by list. A list that the document does
//! not have is left alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Comparison, PlanStep, PlannedChange, SecretChanges};
use crate::mention::mentions;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::{DocumentProblem, shown};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::words::identifiers::Subject;

/// The lists that are pruned, with the names each has.
#[derive(Default)]
pub struct Pruning(BTreeMap<ObjectKind, BTreeSet<String>>);

impl Pruning {
    /// Every list that the document has.
    pub fn of(document: &Value) -> Pruning {
        let mut lists = BTreeMap::new();
        for kind in ObjectKind::ALL {
            if let Some(Value::Array(items)) = document.get(kind.list()) {
                let names = items.iter().filter_map(|item| name(kind, item));
                lists.insert(kind, names.collect());
            }
        }
        Pruning(lists)
    }

    pub fn covers(&self, kind: ObjectKind) -> bool {
        self.0.contains_key(&kind)
    }

    /// Whether something registered under that name stays.
    pub fn keeps(&self, kind: ObjectKind, name: &str) -> bool {
        self.0.get(&kind).is_none_or(|names| names.contains(name))
    }
}

fn name(kind: ObjectKind, item: &Value) -> Option<String> {
    let object = parse_own(item.as_str()?);
    Some(object.get(kind.name_key())?.as_str()?.to_owned())
}

/// Everything that is removed, in an order that leaves nothing in use without what it needs. Notes
/// what is still needed.
pub fn removals<'d>(
    comparison: &'d Comparison,
    problems: &mut Vec<DocumentProblem>,
) -> Vec<PlannedChange<'d>> {
    let objects = objects_to_remove(comparison);
    let called: BTreeSet<Name<'_>> = comparison
        .document
        .entries
        .iter()
        .map(|entry| (entry.kind.called(), entry.name.as_str()))
        .collect();
    // Names that nothing has afterwards. A scope may come back as one of the other kind.
    let gone: BTreeSet<Name<'_>> = objects
        .iter()
        .map(|(kind, name)| (kind.called(), name.as_str()))
        .filter(|name| !called.contains(name))
        .collect();
    note_names_left_behind(comparison, &gone, problems);
    note_tenants_in_use(comparison, &gone, problems);
    note_roles(comparison, problems);
    let mut steps = users_to_remove(comparison);
    for (kind, name) in objects {
        steps.push(PlanStep::Remove { kind: *kind, name });
    }
    steps.into_iter().map(removal).collect()
}

fn removal(step: PlanStep<'_>) -> PlannedChange<'_> {
    PlannedChange {
        step,
        secrets: SecretChanges::default(),
    }
}

/// A name, after what it is called: [`ObjectKind::called`].
type Name<'a> = (&'static str, &'a str);

fn objects_to_remove(comparison: &Comparison) -> Vec<&(ObjectKind, String)> {
    let registered = comparison.registered.objects.keys();
    registered
        .filter(|(kind, name)| !comparison.pruning.keeps(*kind, name))
        .filter(|(kind, _)| *kind != ObjectKind::Role)
        .collect()
}

fn users_to_remove(comparison: &Comparison) -> Vec<PlanStep<'_>> {
    if !comparison.pruning.covers(ObjectKind::User) {
        return Vec::new();
    }
    let users = &comparison.users;
    let mut kept = BTreeSet::<&Subject>::new();
    for (user, named) in comparison.document.users.iter().zip(&users.named) {
        kept.extend(user.subject.as_ref().or(named.as_ref()));
    }
    let mut steps = Vec::new();
    for (subject, user) in &users.users {
        if !kept.contains(subject) {
            steps.push(PlanStep::RemoveUser {
                subject,
                username: user.designation(),
            });
        }
    }
    steps
}

/// What the document does not name stays as it is: it must not be left naming nothing.
fn note_names_left_behind(
    comparison: &Comparison,
    gone: &BTreeSet<Name<'_>>,
    problems: &mut Vec<DocumentProblem>,
) {
    let given: BTreeSet<(ObjectKind, &str)> = comparison
        .document
        .entries
        .iter()
        .map(|entry| (entry.kind, entry.name.as_str()))
        .collect();
    for ((kind, name), object) in &comparison.registered.objects {
        let stays = comparison.pruning.keeps(*kind, name);
        if !stays || given.contains(&(*kind, name.as_str())) {
            continue;
        }
        for mention in mentions(*kind, &parse_own(&object.document)) {
            if gone.contains(&(mention.called, mention.name)) {
                let place = format!("{} {}", kind.as_str(), shown(name));
                let rule = format!(
                    "is not in this document and names {} {}, which would be removed",
                    mention.called,
                    shown(mention.name)
                );
                problems.push(DocumentProblem::new(place, rule));
            }
        }
    }
}

/// A role goes by a command of its own, which takes it from people.
fn note_roles(comparison: &Comparison, problems: &mut Vec<DocumentProblem>) {
    for (kind, name) in comparison.registered.objects.keys() {
        if *kind == ObjectKind::Role && !comparison.pruning.keeps(*kind, name) {
            let name = shown(name);
            let rule = format!(
                "is not in this document: `gatepost role remove {name}` removes it, and takes it \
                 from people"
            );
            problems.push(DocumentProblem::new(format!("role {name}"), rule));
        }
    }
}

fn note_tenants_in_use(
    comparison: &Comparison,
    gone: &BTreeSet<Name<'_>>,
    problems: &mut Vec<DocumentProblem>,
) {
    if comparison.pruning.covers(ObjectKind::User) {
        return;
    }
    for tenant in &comparison.users.tenants_of_others {
        if gone.contains(&(ObjectKind::Tenant.called(), tenant.as_str())) {
            problems.push(DocumentProblem::new(
                format!("tenant {}", shown(tenant)),
                "would be removed, but users who stay belong to it",
            ));
        }
    }
}
