//! Whether what a document names exists, and whether each name is given once: within the document
//! and against what is stored.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::document::Document;
use crate::mention::mentions;
use gatepost_protocol::registration::client::CONFIDENTIAL;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::{MEMBERSHIP_SCOPES, STANDARD_SCOPES, not_registered};
use gatepost_protocol::registration::problem::{DocumentProblem, MOST_MISTAKES};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::words::client::GrantType;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::session::LOCAL;

static BUILT_IN_GRANTS: [GrantType; 8] = GrantType::BUILT_IN;

/// With how many names, in all, those that nobody has are compared. A document can name a thousand
/// of them beside thousands of long ones.
const MOST_COMPARISONS: usize = 20_000;

/// What is registered already and stays.
#[derive(Default)]
pub struct Stored {
    /// Everything but the users, and whether it has stored secrets.
    pub objects: BTreeMap<(ObjectKind, String), bool>,
    /// Names of extension grants that the binary brings along.
    pub compiled_in_grants: BTreeSet<String>,
}

/// Notes what is wrong between objects. Looks at the document as it was written: what could not be
/// read is there, too, and so is not missed by others.
pub(super) fn check(
    value: &Value,
    document: &Document,
    stored: &Stored,
    problems: &mut Vec<DocumentProblem>,
) {
    let mut notes = Notes {
        noted: BTreeSet::from_iter(problems.iter().map(|problem| problem.path.clone())),
        problems,
        comparisons: MOST_COMPARISONS,
    };
    let known = known(document, stored);
    let mut first = FirstPlaces::new();
    for (kind, index, item) in items(value) {
        let place = format!("{}[{index}]", kind.list());
        note_same_names(kind, index, &item, &mut first, &mut notes);
        note_rivals(kind, &place, &item, stored, &first, &mut notes);
        note_unknown_names(kind, &place, &item, &known, &mut notes);
    }
    note_clients_that_become_public(document, stored, &mut notes);
}

/// What the object has of the names of those before it. Its own names are entered.
pub fn note_taken(
    kind: ObjectKind,
    index: usize,
    item: &Value,
    first: &mut FirstPlaces,
) -> Vec<DocumentProblem> {
    let mut problems = Vec::new();
    let mut notes = Notes {
        noted: BTreeSet::new(),
        problems: &mut problems,
        comparisons: 0,
    };
    let place = format!("{}[{index}]", kind.list());
    note_same_names(kind, index, item, first, &mut notes);
    note_rivals(kind, &place, item, &Stored::default(), first, &mut notes);
    problems
}

/// Where each name stood first, by kind and member.
pub type FirstPlaces = BTreeMap<(ObjectKind, &'static str, String), usize>;

struct Notes<'p> {
    /// Places where something was wrong before. Nothing more is noted there.
    noted: BTreeSet<String>,
    problems: &'p mut Vec<DocumentProblem>,
    /// How many names may still be compared to find the nearest one.
    comparisons: usize,
}

impl Notes<'_> {
    fn note(&mut self, place: String, rule: impl Into<String>) {
        if !self.noted.contains(&place) {
            self.problems.push(DocumentProblem::new(place, rule));
        }
    }
}

/// Notes a name that an object of the same kind had before, and enters it otherwise.
fn note_same_names(
    kind: ObjectKind,
    index: usize,
    item: &Value,
    first: &mut FirstPlaces,
    notes: &mut Notes<'_>,
) {
    let list = kind.list();
    for (key, name) in names(kind, item) {
        match first.entry((kind, key, name)) {
            Entry::Occupied(first) => notes.note(
                format!("{list}[{index}].{key}"),
                format!("is the same as that of {list}[{}]", first.get()),
            ),
            Entry::Vacant(first) => drop(first.insert(index)),
        }
    }
}

/// Notes a name that is taken by what shares a name space with it.
fn note_rivals(
    kind: ObjectKind,
    place: &str,
    item: &Value,
    stored: &Stored,
    first: &FirstPlaces,
    notes: &mut Notes<'_>,
) {
    let name = item.text(kind.name_key());
    let name = name.unwrap_or_default();
    let is_built_in =
        kind.called() == ObjectKind::IdentityScope.called() && STANDARD_SCOPES.contains(&name);
    if let Some((rival, rule)) = rival(kind).filter(|_| !is_built_in) {
        let is_stored = stored.objects.contains_key(&(rival, name.to_owned()));
        if is_stored || first.contains_key(&(rival, rival.name_key(), name.to_owned())) {
            notes.note(format!("{place}.{}", kind.name_key()), rule);
        }
    }
    if kind == ObjectKind::ExtensionGrant && stored.compiled_in_grants.contains(name) {
        notes.note(
            format!("{place}.name"),
            "is the name of a grant that this binary brings along",
        );
    }
}

/// Notes names in the object that nothing has.
fn note_unknown_names(
    kind: ObjectKind,
    place: &str,
    item: &Value,
    known: &BTreeMap<&'static str, BTreeSet<&str>>,
    notes: &mut Notes<'_>,
) {
    for mention in mentions(kind, item) {
        let member = format!("{place}.{}", mention.member);
        let names = known.get(mention.called);
        let is_known = names.is_some_and(|names| names.contains(mention.name));
        let is_noted = mention
            .index
            .is_some_and(|index| notes.noted.contains(&format!("{member}[{index}]")));
        if !is_known && !is_noted {
            // The nearest name is looked for where somebody may read it, and not for long.
            let is_read = notes.problems.len() < MOST_MISTAKES;
            let names = names.filter(|names| is_read && names.len() <= notes.comparisons);
            notes.comparisons -= names.map_or(0, BTreeSet::len);
            let names = names.into_iter().flatten().copied();
            notes.note(member, not_registered(mention.name, mention.called, names));
        }
    }
}

/// A client whose secrets are in the database alone must say how it authenticates.
fn note_clients_that_become_public(document: &Document, stored: &Stored, notes: &mut Notes<'_>) {
    let clients = document
        .entries
        .iter()
        .filter(|entry| entry.kind == ObjectKind::Client && entry.secrets.is_none());
    for entry in clients {
        let key = (entry.kind, entry.name.clone());
        if stored.objects.get(&key) != Some(&true) {
            continue;
        }
        let document = parse_own(&entry.document);
        let becomes_public = document.get(CONFIDENTIAL) == Some(&Value::Bool(false));
        if becomes_public && document.get("token_endpoint_auth_method").is_none() {
            notes.note(
                format!("{}.token_endpoint_auth_method", entry.place),
                "is required: this client has secrets in the database, and without secrets here \
                 it would become public; name client_secret_basic, client_secret_post or none, or \
                 give its secrets, or say \"confidential\": true",
            );
        }
    }
}

/// The kind that shares its names with this one. Whichever comes later in a document is refused.
fn rival(kind: ObjectKind) -> Option<(ObjectKind, &'static str)> {
    match kind {
        // A scope has one kind: the rules for tokens depend on it.
        ObjectKind::IdentityScope => Some((
            ObjectKind::ResourceScope,
            "is the name of a scope of the other kind",
        )),
        ObjectKind::ResourceScope => Some((
            ObjectKind::IdentityScope,
            "is the name of a scope of the other kind",
        )),
        // Both authenticate at introspection.
        ObjectKind::Client => Some((
            ObjectKind::Resource,
            "is the name of a resource; clients and resources share one name space",
        )),
        ObjectKind::Resource => Some((
            ObjectKind::Client,
            "is the client_id of a client; clients and resources share one name space",
        )),
        ObjectKind::Tenant
        | ObjectKind::Role
        | ObjectKind::IdentityProvider
        | ObjectKind::AssertionIssuer
        | ObjectKind::ExtensionGrant
        | ObjectKind::User => None,
    }
}

/// Everything in the lists of a document, with its kind and index.
fn items(document: &Value) -> impl Iterator<Item = (ObjectKind, usize, Value)> {
    ObjectKind::ALL.into_iter().flat_map(move |kind| {
        let items = document.texts(kind.list()).enumerate();
        items.map(move |(index, item)| (kind, index, parse_own(item)))
    })
}

/// The names that no other object of its kind may have, with the member that has each.
fn names(kind: ObjectKind, item: &Value) -> Vec<(&'static str, String)> {
    let text = |key| item.text(key).unwrap_or_default();
    let mut name = text(kind.name_key()).to_owned();
    let mut subject = "";
    if kind == ObjectKind::User {
        subject = text("sub");
        if !name.is_empty() {
            name = format!("{}\n{}", text("tenant"), name.to_lowercase());
        }
    }
    let mut names = vec![(kind.name_key(), name), ("sub", subject.to_owned())];
    names.retain(|(_, name)| !name.is_empty());
    names
}

/// Every name that exists once the document is applied, by what it is called.
fn known<'v>(
    document: &'v Document,
    stored: &'v Stored,
) -> BTreeMap<&'static str, BTreeSet<&'v str>> {
    let mut known = BTreeMap::from([
        (
            ObjectKind::IdentityProvider.called(),
            BTreeSet::from([LOCAL]),
        ),
        (ObjectKind::ExtensionGrant.called(), grant_types(stored)),
        (ObjectKind::ResourceScope.called(), built_in_scopes()),
    ]);
    for (kind, name) in stored.objects.keys() {
        known.entry(kind.called()).or_default().insert(name);
    }
    for entry in &document.entries {
        if !entry.name.is_empty() {
            let names = known.entry(entry.kind.called()).or_default();
            names.insert(&entry.name);
        }
    }
    known
}

fn grant_types(stored: &Stored) -> BTreeSet<&str> {
    let built_in = BUILT_IN_GRANTS.iter().map(GrantType::as_str);
    let compiled_in = stored.compiled_in_grants.iter().map(String::as_str);
    built_in.chain(compiled_in).collect()
}

fn built_in_scopes() -> BTreeSet<&'static str> {
    let scopes = STANDARD_SCOPES.into_iter().chain(MEMBERSHIP_SCOPES);
    scopes.collect()
}
