//! Users: found by `sub` where the document gives one, by name otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Comparison, FieldChange, PlanStep, PlannedChange, SecretChanges, Verb};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::{DocumentProblem, shown};
use gatepost_protocol::registration::user::{Credential, Identity, UserEntry};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::words::identifiers::{Subject, TenantName};

/// What happens to each user of the document. `None` for a user who is registered just so. Notes
/// names and subjects that somebody else has.
pub(super) fn changes<'d>(
    comparison: &'d Comparison,
    problems: &mut Vec<DocumentProblem>,
) -> Vec<Option<PlannedChange<'d>>> {
    let Comparison {
        document,
        users,
        pruning,
        ..
    } = comparison;
    let mut meant: BTreeMap<Subject, usize> = BTreeMap::new();
    let issuers = issuers(comparison);
    let mut identities = BTreeSet::<&Identity>::new();
    let by_sub: BTreeSet<&Subject> = document
        .users
        .iter()
        .filter_map(|entry| entry.subject.as_ref())
        .collect();
    let named = users.named.iter().flatten();
    let kept: BTreeSet<&Subject> = named.chain(by_sub.iter().copied()).collect();
    let mut changes = Vec::new();
    for (index, entry) in document.users.iter().enumerate() {
        let named = users.named.get(index).and_then(Option::as_ref);
        let subject = entry.subject.as_ref().or(named);
        let found = users.meant(index, entry);
        // With pruning, the other user is removed before, unless the document has their `sub`.
        let is_taken = named != subject
            && named
                .is_some_and(|named| by_sub.contains(named) || !pruning.covers(ObjectKind::User));
        let is_removed = entry
            .subject
            .as_ref()
            .is_some_and(|subject| users.removed.contains(subject));
        let first = found.and_then(|(subject, _)| meant.insert(subject.clone(), index));
        let place = |member: &str| format!("users[{index}]{member}");
        if let Some(first) = first {
            problems.push(DocumentProblem::new(
                place(""),
                format!("is the same user as users[{first}]"),
            ));
        } else if is_taken {
            problems.push(DocumentProblem::new(
                place(".username"),
                "is the user name of another user",
            ));
        } else if is_removed {
            let rule = "is the sub of a user who was removed: it is never given again";
            problems.push(DocumentProblem::new(place(".sub"), rule));
        } else {
            for identity in entry.identities.iter().flatten() {
                // What a mistake has left empty is nobody's.
                if identity.issuer.is_empty() || identity.subject.is_empty() {
                    continue;
                }
                let owner = users.owners.get(identity);
                let is_own = owner.is_some() && owner == found.map(|(subject, _)| subject);
                let rule = if !identities.insert(identity) {
                    "has an identity that another user of the document has, too"
                } else if owner
                    .is_some_and(|owner| kept.contains(owner) || !pruning.covers(ObjectKind::User))
                    && !is_own
                {
                    "has an identity that is another user's"
                } else if !is_own && !issuers.contains(&identity.issuer) {
                    "has an issuer that no identity provider and no assertion issuer is \
                     registered with"
                } else {
                    continue;
                };
                let whose = format!(
                    "{rule}: {} at {}",
                    shown(&identity.subject),
                    shown(&identity.issuer)
                );
                problems.push(DocumentProblem::new(place(".identities"), whose));
            }
            changes.push(change(entry, index, found, &comparison.own_hash));
        }
    }
    changes
}

/// The issuers that an identity can be of. A link to any other would only wait for a mistake.
fn issuers(comparison: &Comparison) -> BTreeSet<String> {
    let Comparison {
        document,
        registered,
        pruning,
        ..
    } = comparison;
    let mut issuers = BTreeSet::new();
    for ((kind, name), object) in &registered.objects {
        if pruning.keeps(*kind, name) {
            issuers.extend(issuer(*kind, &object.document));
        }
    }
    for entry in &document.entries {
        issuers.extend(issuer(entry.kind, &entry.document));
    }
    issuers
}

fn issuer(kind: ObjectKind, document: &str) -> Option<String> {
    if !matches!(
        kind,
        ObjectKind::IdentityProvider | ObjectKind::AssertionIssuer
    ) {
        return None;
    }
    let document = parse_own(document);
    let issuer = document
        .get("issuer")
        .or(document.get("userinfo_endpoint"))?;
    Some(issuer.as_str()?.to_owned())
}

/// Notes users whose subject is a client's name, and clients whose name is a user's subject. In a
/// client's own token its name is the `sub`, and resources recognise such tokens by that.
pub(super) fn keep_apart(comparison: &Comparison, problems: &mut Vec<DocumentProblem>) {
    let Comparison {
        document,
        registered,
        users,
        pruning,
        ..
    } = comparison;
    let clients = document
        .entries
        .iter()
        .filter(|entry| entry.kind == ObjectKind::Client);
    let named: BTreeSet<&str> = clients.clone().map(|entry| entry.name.as_str()).collect();
    let is_kept = |name: &str| {
        registered
            .objects
            .contains_key(&(ObjectKind::Client, name.to_owned()))
            && pruning.keeps(ObjectKind::Client, name)
    };
    for (index, entry) in document.users.iter().enumerate() {
        if let Some(subject) = entry.subject.as_ref().map(Subject::as_str)
            && (named.contains(subject) || is_kept(subject))
        {
            let rule =
                "is the client_id of a client: a resource could not tell the user from the client";
            problems.push(DocumentProblem::new(format!("users[{index}].sub"), rule));
        }
    }
    for entry in clients {
        if users
            .of_clients
            .contains(&Subject::new(entry.name.as_str()))
        {
            let place = format!("{}.client_id", entry.place);
            let rule = "is the sub of a user, or once was: a resource could not tell the client \
                        from the user";
            problems.push(DocumentProblem::new(place, rule));
        }
    }
}

fn change<'d>(
    entry: &'d UserEntry,
    index: usize,
    found: Option<(&Subject, &'d UserEntry)>,
    own_hash: &str,
) -> Option<PlannedChange<'d>> {
    let Some((subject, before)) = found else {
        let secrets = SecretChanges {
            password: entry.credential.is_some(),
            ..SecretChanges::default()
        };
        return Some(PlannedChange {
            verb: Verb::Add,
            step: PlanStep::AddUser { entry, index },
            secrets,
        });
    };
    // A `password` is not compared: it is only the first one. An imported hash is compared until
    // the user has one of ours: it is what they had before they moved, and they may have another by
    // now.
    let is_later = has_own_hash(before, own_hash) && !has_own_hash(entry, own_hash);
    let password_hash = match &entry.credential {
        Some(Credential::Hash(hash)) if entry.credential != before.credential && !is_later => {
            Some(hash)
        }
        Some(Credential::Hash(_) | Credential::Password(_)) | None => None,
    };
    let secrets = SecretChanges {
        password: password_hash.is_some(),
        ..SecretChanges::default()
    };
    let step = PlanStep::ChangeUser {
        subject: subject.clone(),
        before,
        entry,
        index,
        password_hash,
    };
    super::change(true, step, secrets)
}

fn has_own_hash(user: &UserEntry, own_hash: &str) -> bool {
    match &user.credential {
        Some(Credential::Hash(hash)) => hash.expose().starts_with(own_hash),
        Some(Credential::Password(_)) | None => false,
    }
}

/// The claim `role` is a text or a list of them.
pub(super) fn roles(user: &UserEntry) -> Vec<&str> {
    let roles = match user.claims.get("role") {
        Some(Value::Array(roles)) => roles.as_slice(),
        Some(role) => std::slice::from_ref(role),
        None => &[],
    };
    roles.iter().filter_map(Value::as_str).collect()
}

pub(super) fn fields(before: Option<&UserEntry>, after: &UserEntry) -> Vec<FieldChange> {
    let with_links = after.identities.is_some();
    super::compare_fields(
        before
            .map(|user| form(user, with_links))
            .unwrap_or_default(),
        form(after, with_links),
        "",
    )
}

fn form(user: &UserEntry, with_links: bool) -> Value {
    let username = user.username.as_deref();
    let tenant = user.tenant.as_ref().map(TenantName::as_str);
    let given = [
        ("username", username.map(Value::from)),
        ("tenant", tenant.map(Value::from)),
    ];
    let said = [
        ("enabled", Some(json!(user.enabled))),
        ("claims", Some(json!(user.claims))),
    ];
    let linked = with_links.then(|| ("identities", Some(json!(user.identities))));
    said.into_iter()
        .chain(given)
        .chain(linked)
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}
