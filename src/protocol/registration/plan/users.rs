//! Users: found by `sub` where the document gives one, by name otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::problem::Problem;
use super::super::user::{Credential, UserEntry};
use super::{Change, Comparison, FieldChange, SecretChanges, Step, Verb};
use crate::protocol::registration::document::Kind;
use crate::protocol::words::identifiers::{Subject, TenantName};

/// What happens to each user of the document; `None` for one who is registered just so. Notes names and subjects that are
/// somebody else's.
pub(super) fn changes<'d>(comparison: &'d Comparison, problems: &mut Vec<Problem>) -> Vec<Option<Change<'d>>> {
    let Comparison { document, users, pruning, .. } = comparison;
    let mut meant: BTreeMap<Subject, usize> = BTreeMap::new();
    let mut changes = Vec::new();
    for (index, entry) in document.users.iter().enumerate() {
        let named = users.named.get(index).and_then(Option::as_ref);
        let subject = entry.subject.as_ref().or(named);
        let found = subject.and_then(|subject| users.users.get_key_value(subject));
        // Pruned, the other one is gone before.
        let is_taken = named.is_some_and(|named| Some(named) != subject) && !pruning.covers(Kind::User);
        let is_removed = entry.subject.as_ref().is_some_and(|subject| users.removed.contains(subject));
        let first = found.and_then(|(subject, _)| meant.insert(subject.clone(), index));
        let place = |member: &str| format!("users[{index}]{member}");
        if let Some(first) = first {
            problems.push(Problem::new(place(""), format!("is the same user as users[{first}]")));
        } else if is_taken {
            problems.push(Problem::new(place(".username"), "is the user name of another user"));
        } else if is_removed {
            let rule = "is the sub of a user who was removed: it is never given again";
            problems.push(Problem::new(place(".sub"), rule));
        } else {
            changes.push(change(entry, index, found));
        }
    }
    changes
}

/// Notes users whose subject is a client's name, and clients whose name is a user's subject: in a client's own token its name
/// is the `sub`, and resources tell such tokens by that.
pub(super) fn keep_apart(comparison: &Comparison, problems: &mut Vec<Problem>) {
    let Comparison { document, registered, users, pruning, .. } = comparison;
    let clients = document.entries.iter().filter(|entry| entry.kind == Kind::Client);
    let named: BTreeSet<&str> = clients.clone().map(|entry| entry.name.as_str()).collect();
    let is_kept = |name: &str| {
        registered.objects.contains_key(&(Kind::Client, name.to_owned())) && pruning.keeps(Kind::Client, name)
    };
    for (index, entry) in document.users.iter().enumerate() {
        if entry.subject.as_ref().map(Subject::as_str).is_some_and(|name| named.contains(name) || is_kept(name)) {
            let rule = "is the client_id of a client: a resource could not tell the user from the client";
            problems.push(Problem::new(format!("users[{index}].sub"), rule));
        }
    }
    for entry in clients.filter(|entry| users.of_clients.contains(&Subject::new(entry.name.as_str()))) {
        let rule = "is the sub of a user, or once was: a resource could not tell the client from the user";
        problems.push(Problem::new(format!("{}.client_id", entry.place), rule));
    }
}

fn change<'d>(entry: &'d UserEntry, index: usize, found: Option<(&Subject, &'d UserEntry)>) -> Option<Change<'d>> {
    let Some((subject, before)) = found else {
        let secrets = SecretChanges { password: entry.credential.is_some(), ..SecretChanges::default() };
        return Some(Change { verb: Verb::Add, step: Step::AddUser { entry, index }, secrets });
    };
    // A `password` does not count here: it is only the first one.
    let password_hash = match &entry.credential {
        Some(Credential::Hash(hash)) if entry.credential != before.credential => Some(hash),
        Some(Credential::Hash(_) | Credential::Password(_)) | None => None,
    };
    let secrets = SecretChanges { password: password_hash.is_some(), ..SecretChanges::default() };
    let step = Step::ChangeUser { subject: subject.clone(), before, entry, index, password_hash };
    super::change(true, step, secrets)
}

pub(super) fn fields(before: Option<&UserEntry>, after: &UserEntry) -> Vec<FieldChange> {
    super::compare_fields(before.map(form).as_ref(), &form(after), "")
}

fn form(user: &UserEntry) -> Value {
    let (username, tenant) = (user.username.as_deref(), user.tenant.as_ref().map(TenantName::as_str));
    let given = [("username", username.map(Value::from)), ("tenant", tenant.map(Value::from))];
    let said = [("enabled", Some(json!(user.enabled))), ("claims", Some(json!(user.claims)))];
    said.into_iter().chain(given).filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
