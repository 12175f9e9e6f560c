//! The whole document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client_secret::{self, RegisteredSecret, SecretSource};
use crate::plan::RegisteredObjects;
use crate::references::{self, Stored};
use crate::user::{self, UserEntry};
use gatepost_protocol::registration::client::{self, CONFIDENTIAL};
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::DocumentProblem;
use gatepost_protocol::registration::walker::{Walker, parse_own};
use gatepost_protocol::registration::{catalogue, provider, timestamp};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::json::{Members, SetMember};

/// Members with secrets: they are stored apart from their object.
const SECRETS: [&str; 2] = ["secrets", "client_secret"];

/// A document in which everything is in order.
#[derive(Debug, Default)]
pub struct Document {
    /// Everything but the users, in the document's order.
    pub entries: Vec<DocumentEntry>,
    pub users: Vec<UserEntry>,
}

#[derive(Debug)]
pub struct DocumentEntry {
    pub kind: ObjectKind,
    /// Where it stands, as `clients[3]`.
    pub place: String,
    pub name: String,
    /// What is stored: the object as registered, without secrets and nulls. [`parse_own`] and
    /// `gatepost_protocol::registration::stored` read it back.
    pub document: Box<str>,
    /// `secrets` of a client or resource. `None` keeps the stored ones.
    pub secrets: Option<Vec<RegisteredSecret>>,
    /// `client_secret`: our secret at an identity provider. `None` keeps the stored one.
    pub client_secret: Option<SecretSource>,
}

/// A document as far as it could be read, and what is wrong with it.
pub struct JudgedDocument {
    /// `None` where it is no object.
    pub document: Option<Document>,
    pub problems: Vec<DocumentProblem>,
}

impl Document {
    /// Judges the document that `strict_json::parse` read: in itself and against what is stored.
    /// The error holds every problem.
    pub fn from_json(
        value: &Value,
        defaults: &ClientDefaults,
        stored: &Stored,
    ) -> Result<Document, Vec<DocumentProblem>> {
        let JudgedDocument { document, problems } =
            Document::judge(value, defaults).beside(value, stored);
        document.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Judges the document in itself. What could be read of a document that has mistakes is there,
    /// too: the caller may find more.
    pub fn judge(value: &Value, defaults: &ClientDefaults) -> JudgedDocument {
        let mut problems = Vec::new();
        let document = Walker::object(value, "", &mut problems, |walker| {
            Document::read(walker, defaults)
        });
        JudgedDocument { document, problems }
    }

    fn read(walker: &mut Walker<'_>, defaults: &ClientDefaults) -> Document {
        let mut document = Document::default();
        for kind in ObjectKind::ALL {
            if kind == ObjectKind::User {
                let users = walker.list(kind.list(), |text, path, problems| {
                    Walker::object(&item(text, path, problems), path, problems, user::read)
                });
                document.users = users.unwrap_or_default();
            } else {
                let entries = walker.list(kind.list(), |text, path, problems| {
                    Walker::object(&item(text, path, problems), path, problems, |walker| {
                        entry(walker, kind, defaults, path)
                    })
                });
                document.entries.extend(entries.unwrap_or_default());
            }
        }
        document
    }
}

impl JudgedDocument {
    /// Judges it against what is stored, too. `value` is the document as it was written.
    pub fn beside(mut self, value: &Value, stored: &Stored) -> JudgedDocument {
        if let Some(document) = &self.document {
            references::check(value, document, stored, &mut self.problems);
        }
        self.problems.sort_by_key(place_order);
        self
    }
}

impl Document {
    /// Entries of `federated` with our own issuer: a token of ours never authenticates a client.
    pub fn own_tokens(&self, our_issuer: &str) -> Vec<DocumentProblem> {
        let mut problems = Vec::new();
        for entry in &self.entries {
            if entry.kind != ObjectKind::Client || !entry.document.contains(our_issuer) {
                continue;
            }
            let client = parse_own(&entry.document);
            for (index, workload) in client.items("federated").iter().enumerate() {
                if workload.text("issuer") == Some(our_issuer) {
                    let place = format!("{}.federated[{index}].issuer", entry.place);
                    let rule = "must not be this issuer: its tokens authenticate no client";
                    problems.push(DocumentProblem::new(place, rule));
                }
            }
        }
        problems
    }
}

/// What a document that comes over HTTP may not have: what runs in the database, or what people
/// sign in with. An empty list of users is no slip of somebody who prunes, but everybody's end.
pub fn refused_over_http(value: &Value, prunes: bool) -> Vec<DocumentProblem> {
    let grants = ObjectKind::ExtensionGrant.list();
    let users = ObjectKind::User.list();
    let mut problems = Vec::new();
    if value.get(grants).is_some() {
        let rule = "is not taken over HTTP: use `gatepost apply`";
        problems.push(DocumentProblem::new(grants, rule));
    }
    if prunes && value.get(users).is_some() {
        let rule = "is not pruned over HTTP: leave it out, or prune";
        problems.push(DocumentProblem::new(users, rule));
    }
    let rule = "is not taken over HTTP: send the user a link";
    let of_signing_in = ["password", "password_hash", "totp"];
    note_members(value, users, &of_signing_in, rule, &mut problems);
    problems
}

/// Notes every object of a list that has one of these members.
fn note_members(
    value: &Value,
    list: &str,
    keys: &[&str],
    rule: &str,
    problems: &mut Vec<DocumentProblem>,
) {
    for (index, item) in value.items(list).iter().enumerate() {
        let item = parse_own(item.as_str().unwrap_or_default());
        for key in keys {
            if item.get(key).is_some_and(|value| !value.is_null()) {
                let place = format!("{list}[{index}].{key}");
                problems.push(DocumentProblem::new(place, rule));
            }
        }
    }
}

/// What a document of somebody who only reads may not have: comparing it would tell who is here,
/// and whether a secret is the right one.
pub fn beyond_reading(value: &Value) -> Vec<DocumentProblem> {
    let rule = "needs registration.write";
    let users = ObjectKind::User.list();
    let mut problems = Vec::new();
    for kind in ObjectKind::ALL {
        note_members(value, kind.list(), &SECRETS, rule, &mut problems);
    }
    if value.get(users).is_some() {
        problems.push(DocumentProblem::new(users, rule));
    }
    name_problems(&mut problems, value);
    problems
}

impl Document {
    /// The same of problems that are found later.
    pub fn name_problems(&self, problems: &mut [DocumentProblem]) {
        let mut entries = BTreeMap::new();
        for entry in &self.entries {
            entries.insert(entry.place.as_str(), entry.name.as_str());
        }
        for problem in problems {
            let Some((object, _)) = problem.split() else {
                continue;
            };
            let name = entries.get(object).copied();
            let name = name.or_else(|| self.user_at(object).map(UserEntry::designation));
            problem.name = name.and_then(shown_name);
        }
    }

    /// The user at a place such as `users[3]`.
    fn user_at(&self, place: &str) -> Option<&UserEntry> {
        let index = place.strip_prefix("users[")?.trim_end_matches(']');
        self.users.get(index.parse::<usize>().ok()?)
    }
}

/// Tells in each problem what the object at its place is called.
pub fn name_problems(problems: &mut [DocumentProblem], value: &Value) {
    // Mistakes of one object follow each other, and it is parsed once.
    let mut last: Option<(String, Option<String>)> = None;
    for problem in problems {
        let Some((object, _)) = problem.split() else {
            continue;
        };
        let known = last.take().filter(|(known, _)| known == object);
        let named = known.unwrap_or_else(|| (object.to_owned(), name_at(object, value)));
        problem.name = named.1.clone();
        last = Some(named);
    }
}

/// The name of the object at a place such as `clients[3]`.
fn name_at(object: &str, value: &Value) -> Option<String> {
    let (list, index) = object.strip_suffix(']')?.split_once('[')?;
    let kind = ObjectKind::ALL
        .into_iter()
        .find(|kind| kind.list() == list)?;
    let item = value.get(list)?.get(index.parse::<usize>().ok()?)?;
    let item = parse_own(item.as_str()?);
    shown_name(item.get(kind.name_key())?.as_str()?)
}

fn shown_name(name: &str) -> Option<String> {
    let name: String = name.chars().take(80).collect();
    Some(name.escape_debug().to_string()).filter(|name| !name.is_empty())
}

fn item(text: &Value, path: &str, problems: &mut Vec<DocumentProblem>) -> Value {
    let text = text.as_str().unwrap_or_default();
    let value = parse_own(text);
    if text.contains("\\u0000")
        && let Some(place) = place_of_nul(&value)
    {
        let rule = "must not hold a NUL character";
        problems.push(DocumentProblem::new(format!("{path}{place}"), rule));
    }
    value
}

fn entry(
    walker: &mut Walker<'_>,
    kind: ObjectKind,
    defaults: &ClientDefaults,
    place: &str,
) -> DocumentEntry {
    let mut secrets = None;
    if matches!(kind, ObjectKind::Client | ObjectKind::Resource) {
        secrets = walker.list("secrets", client_secret::parse);
    }
    let mut client_secret = None;
    if kind == ObjectKind::IdentityProvider {
        client_secret = walker.nested("client_secret", client_secret::parse_source);
    }
    read_object(walker, kind, defaults);
    let document = stored_members(walker);
    let name = document
        .get(kind.name_key())
        .and_then(|name| name.as_str())
        .unwrap_or_default()
        .to_owned();
    DocumentEntry {
        kind,
        place: place.to_owned(),
        name,
        document: json!(document).to_string().into(),
        secrets,
        client_secret,
    }
}

/// Reads the object for its mistakes. Of a client it stores whether it is confidential.
fn read_object(walker: &mut Walker<'_>, kind: ObjectKind, defaults: &ClientDefaults) {
    match kind {
        ObjectKind::Tenant => drop(catalogue::tenant(walker)),
        ObjectKind::Role => drop(catalogue::role(walker)),
        ObjectKind::IdentityScope => drop(catalogue::identity_scope(walker)),
        ObjectKind::ResourceScope => drop(catalogue::resource_scope(walker)),
        ObjectKind::Resource => drop(catalogue::resource(walker)),
        ObjectKind::IdentityProvider => drop(provider::read(walker)),
        ObjectKind::AssertionIssuer => drop(catalogue::read_assertion_issuer(walker)),
        ObjectKind::ExtensionGrant => drop(catalogue::read_extension_grant(walker)),
        ObjectKind::Client => {
            let confidential = client::read(walker, defaults).is_confidential();
            walker.stored_as.set(CONFIDENTIAL, confidential);
        }
        ObjectKind::User => drop(user::read(walker)),
    }
}

fn stored_members<'w>(walker: &'w Walker<'_>) -> BTreeMap<&'w str, &'w Value> {
    let mut members = BTreeMap::new();
    for (key, value) in walker.members().iter().chain(&walker.stored_as) {
        if !SECRETS.contains(&key.as_str()) && !value.is_null() {
            members.insert(key.as_str(), value);
        }
    }
    members
}

/// The keys that an object of each list can have, and the objects within a client. The reference
/// explains each. `client_name#` stands for `client_name#de` and so on.
pub fn keys() -> Vec<(&'static str, BTreeSet<String>)> {
    let defaults = ClientDefaults::default();
    let mut keys = Vec::new();
    for kind in ObjectKind::ALL {
        let of_kind = Walker::keys(|walker| entry(walker, kind, &defaults, ""));
        keys.push((kind.list(), of_kind));
    }
    keys.extend([
        ("secrets", Walker::keys(client_secret::read)),
        ("federated", Walker::keys(client::workload_identity)),
        ("token_exchange", Walker::keys(client::exchange)),
        ("id_jag", Walker::keys(client::id_jag_entry)),
        ("identities", Walker::keys(user::identity)),
    ]);
    keys
}

/// Where the first NUL of a value stands, as `.claims.x[1]`. Postgres stores none, neither in text
/// nor in jsonb. The others are not told: the places of thousands of them, each behind the same
/// long key, would fill the memory.
fn place_of_nul(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(format!("[{index}]{}", place_of_nul(item)?))),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let place = if key.contains('\0') {
                String::new()
            } else {
                place_of_nul(member)?
            };
            Some(format!(".{}{place}", key.escape_debug()))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn place_order(problem: &DocumentProblem) -> (usize, usize) {
    let list = problem.path.split(['[', '.']).next().unwrap_or_default();
    let position = ObjectKind::ALL.iter().position(|kind| kind.list() == list);
    let index = problem.path.split(['[', ']']).nth(1).unwrap_or_default();
    (
        position.map_or(0, |position| position + 1),
        index.parse().unwrap_or(0),
    )
}

/// The document. Applied to the installation it came from, it changes nothing.
pub fn document(registered: &RegisteredObjects, users: &BTreeMap<Subject, UserEntry>) -> Value {
    let lists = ObjectKind::ALL.map(|kind| (kind.list(), Vec::new()));
    let mut lists: BTreeMap<&str, Vec<Value>> = lists.into();
    for ((kind, _), object) in &registered.objects {
        let mut document = parse_own(&object.document);
        if *kind == ObjectKind::Client {
            document = client::exported(&document);
        }
        lists.entry(kind.list()).or_default().push(document);
    }
    lists.insert(ObjectKind::User.list(), users.values().map(user).collect());
    json!(lists)
}

fn user(user: &UserEntry) -> Value {
    let mut told = json!({
        "sub": user.subject.as_ref().map(Subject::as_str),
        "username": user.username,
        "tenant": user.tenant,
        "enabled": user.enabled,
        "claims": user.claims,
    });
    if let Some(end) = user.valid_until {
        told.set("valid_until", timestamp::format(end));
    }
    if let Some(identities) = &user.identities {
        told.set("identities", json!(identities));
    }
    told
}
