//! Users: found by `sub` where the document gives one, by name otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Comparison, FieldChange, PlanStep, PlannedChange, RegisteredUser, SecretChanges};
use crate::user::{Credential, Identity, UserEntry};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::{DocumentProblem, shown};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::json::SetMember;

/// What happens to each user of the document. `None` for a user who is registered just so. Notes
/// names and subjects that somebody else has.
pub fn changes<'d>(
    comparison: &'d Comparison,
    problems: &mut Vec<DocumentProblem>,
) -> Vec<Option<PlannedChange<'d>>> {
    let mut neighbours = Neighbours::new(comparison);
    let mut changes = Vec::new();
    for (index, entry) in comparison.document.users.iter().enumerate() {
        let registered = comparison.users.meant(index, entry);
        if let Some(problem) = neighbours.clash(index, entry, registered) {
            problems.push(problem);
            continue;
        }
        for identity in entry.identities.iter().flatten() {
            if let Some(rule) = neighbours.identity_clash(identity, registered) {
                let subject = shown(&identity.subject);
                let rule = format!("{rule}: {subject} at {}", shown(&identity.issuer));
                let place = format!("users[{index}].identities");
                problems.push(DocumentProblem::new(place, rule));
            }
        }
        changes.push(change(entry, index, registered, &comparison.own_hash));
    }
    changes
}

/// Whom a user of the document must not be taken for.
struct Neighbours<'d> {
    comparison: &'d Comparison,
    /// Each `sub` of the document.
    subjects: BTreeSet<&'d Subject>,
    /// Registered users whom the document means, by `sub` or by name.
    kept: BTreeSet<&'d Subject>,
    issuers: BTreeSet<String>,
    /// The users met so far, with their places in the document.
    met: BTreeMap<&'d Subject, usize>,
    /// The identities of the users met so far.
    identities: BTreeSet<&'d Identity>,
}

impl<'d> Neighbours<'d> {
    fn new(comparison: &'d Comparison) -> Neighbours<'d> {
        let entries = comparison.document.users.iter();
        let subjects: BTreeSet<_> = entries.filter_map(|entry| entry.subject.as_ref()).collect();
        let mut kept = subjects.clone();
        kept.extend(comparison.users.named.iter().flatten());
        Neighbours {
            comparison,
            subjects,
            kept,
            issuers: issuers(comparison),
            met: BTreeMap::new(),
            identities: BTreeSet::new(),
        }
    }

    /// What keeps the user at that place from being `registered`, or a new one.
    fn clash(
        &mut self,
        index: usize,
        entry: &UserEntry,
        registered: Option<RegisteredUser<'d>>,
    ) -> Option<DocumentProblem> {
        let users = &self.comparison.users;
        let named = users.named.get(index).and_then(Option::as_ref);
        let given = entry.subject.as_ref();
        let first = registered.and_then(|user| self.met.insert(user.subject, index));
        let (member, rule) = if let Some(first) = first {
            ("", format!("is the same user as users[{first}]"))
        } else if given.is_some()
            && named.is_some_and(|named| Some(named) != given && self.stays(named, &self.subjects))
        {
            let rule = "is the user name of another user";
            (".username", rule.to_owned())
        } else if given.is_some_and(|given| users.removed.contains(given)) {
            let rule = "is the sub of a user who was removed: it is never given again";
            (".sub", rule.to_owned())
        } else {
            return None;
        };
        Some(DocumentProblem::new(
            format!("users[{index}]{member}"),
            rule,
        ))
    }

    /// Whether somebody is there when the document is applied. With pruning, only those are whom
    /// it keeps.
    fn stays(&self, user: &Subject, kept: &BTreeSet<&Subject>) -> bool {
        kept.contains(user) || !self.comparison.pruning.covers(ObjectKind::User)
    }

    /// What keeps an identity from being that of the `registered` user, or of a new one.
    fn identity_clash(
        &mut self,
        identity: &'d Identity,
        registered: Option<RegisteredUser<'d>>,
    ) -> Option<&'static str> {
        // What a mistake has left empty is nobody's.
        if identity.issuer.is_empty() || identity.subject.is_empty() {
            return None;
        }
        if !self.identities.insert(identity) {
            return Some("has an identity that another user of the document has, too");
        }
        let owner = self.comparison.users.owners.get(identity);
        if owner.is_some() && owner == registered.map(|user| user.subject) {
            return None;
        }
        if owner.is_some_and(|owner| self.stays(owner, &self.kept)) {
            return Some("has an identity that is another user's");
        }
        let rule = "has an issuer that no identity provider and no assertion issuer is registered \
                    with";
        (!self.issuers.contains(&identity.issuer)).then_some(rule)
    }
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
pub fn keep_apart(comparison: &Comparison, problems: &mut Vec<DocumentProblem>) {
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
    registered: Option<RegisteredUser<'d>>,
    own_hash: &str,
) -> Option<PlannedChange<'d>> {
    let Some(RegisteredUser { subject, before }) = registered else {
        let secrets = SecretChanges::of_password(entry.credential.is_some());
        return super::change(PlanStep::AddUser { entry, index }, secrets);
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
    let secrets = SecretChanges::of_password(password_hash.is_some());
    let step = PlanStep::ChangeUser {
        subject,
        before,
        entry,
        index,
        password_hash,
    };
    super::change(step, secrets)
}

fn has_own_hash(user: &UserEntry, own_hash: &str) -> bool {
    match &user.credential {
        Some(Credential::Hash(hash)) => hash.expose().starts_with(own_hash),
        Some(Credential::Password(_)) | None => false,
    }
}

pub fn fields(before: Option<&UserEntry>, after: &UserEntry) -> Vec<FieldChange> {
    let with_links = after.identities.is_some();
    let before = before.map(|user| form(user, with_links));
    super::compare_fields(before.unwrap_or_default(), form(after, with_links), "")
}

/// What is compared. What is not given, or cannot differ, is left out.
fn form(user: &UserEntry, with_links: bool) -> Value {
    let mut form = json!({"enabled": user.enabled, "claims": user.claims});
    if let Some(end) = user.valid_until {
        form.set("valid_until", timestamp::format(end));
    }
    if let Some(username) = &user.username {
        form.set("username", username.as_str());
    }
    if let Some(tenant) = &user.tenant {
        form.set("tenant", tenant.as_str());
    }
    if with_links {
        form.set("identities", json!(user.identities));
    }
    form
}
