//! `--prune`: what a document leaves out goes, list by list. A list that the document does not have
//! is not its concern.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::problem::{DocumentProblem, shown};
use super::{Comparison, PlanStep, PlannedChange, SecretChanges, Verb};
use crate::protocol::registration::document::{Mention, ObjectKind};
use crate::protocol::registration::walker::parse_own;
use crate::protocol::words::identifiers::Subject;

/// The lists that are pruned, with the names each has.
#[derive(Clone, Debug, Default)]
pub struct Pruning(BTreeMap<ObjectKind, BTreeSet<String>>);

impl Pruning {
    /// Every list that the document has.
    pub fn of(document: &Value) -> Pruning {
        let named = |kind: ObjectKind| {
            let items = document.get(kind.list())?.as_array()?.iter();
            let name = |item: &Value| {
                parse_own(item.as_str()?)
                    .get(kind.name_key())?
                    .as_str()
                    .map(str::to_owned)
            };
            Some((kind, items.filter_map(name).collect()))
        };
        Pruning(ObjectKind::ALL.into_iter().filter_map(named).collect())
    }

    pub fn covers(&self, kind: ObjectKind) -> bool {
        self.0.contains_key(&kind)
    }

    /// Whether something registered under that name stays.
    pub(super) fn keeps(&self, kind: ObjectKind, name: &str) -> bool {
        self.0.get(&kind).is_none_or(|names| names.contains(name))
    }
}

/// Everything that goes, in an order in which nothing that stays is in between; notes what is still
/// needed.
pub(super) fn removals<'d>(
    comparison: &Comparison,
    problems: &mut Vec<DocumentProblem>,
) -> Vec<PlannedChange<'d>> {
    let Comparison {
        document,
        registered,
        users,
        pruning,
        ..
    } = comparison;
    let mut steps = Vec::new();
    if pruning.covers(ObjectKind::User) {
        let meant = document.users.iter().zip(&users.named);
        let kept: BTreeSet<&Subject> = meant
            .filter_map(|(user, named)| user.subject.as_ref().or(named.as_ref()))
            .collect();
        for (subject, user) in users
            .users
            .iter()
            .filter(|(subject, _)| !kept.contains(subject))
        {
            steps.push(PlanStep::RemoveUser {
                subject: subject.clone(),
                username: user.designation().to_owned(),
            });
        }
    }
    let given: BTreeSet<(ObjectKind, &str)> = document
        .entries
        .iter()
        .map(|entry| (entry.kind, entry.name.as_str()))
        .collect();
    let called: BTreeSet<(&str, &str)> = given
        .iter()
        .map(|(kind, name)| (kind.called(), *name))
        .collect();
    // Names that nothing will have any longer: a scope may come back as one of the other kind.
    let mut gone: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (kind, name) in registered
        .objects
        .keys()
        .filter(|(kind, name)| !pruning.keeps(*kind, name))
    {
        steps.push(PlanStep::Remove {
            kind: *kind,
            name: name.clone(),
        });
        gone.extend(Some((kind.called(), name.as_str())).filter(|name| !called.contains(name)));
    }
    // What the document does not name stays as it is: it must not be left pointing at nothing.
    let stays = |kind: ObjectKind, name: &String| {
        !given.contains(&(kind, name.as_str())) && pruning.keeps(kind, name)
    };
    for ((kind, name), object) in registered
        .objects
        .iter()
        .filter(|((kind, name), _)| stays(*kind, name))
    {
        for Mention {
            called,
            name: target,
            ..
        } in kind.mentions(&parse_own(&object.document))
        {
            if gone.contains(&(called, target)) {
                let rule = format!(
                    "is not in this document and names {called} {}, which would be removed",
                    shown(target)
                );
                problems.push(DocumentProblem::new(
                    format!("{} {}", kind.as_str(), shown(name)),
                    rule,
                ));
            }
        }
    }
    for tenant in users
        .tenants_of_others
        .iter()
        .filter(|_| !pruning.covers(ObjectKind::User))
    {
        if gone.contains(&(ObjectKind::Tenant.called(), tenant.as_str())) {
            let place = format!("tenant {}", shown(tenant));
            problems.push(DocumentProblem::new(
                place,
                "would be removed, but users who stay belong to it",
            ));
        }
    }
    let removal = |step| PlannedChange {
        verb: Verb::Remove,
        step,
        secrets: SecretChanges::default(),
    };
    steps.into_iter().map(removal).collect()
}
