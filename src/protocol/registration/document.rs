//! The whole document.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::catalogue;
use super::client::{self, CONFIDENTIAL};
use super::client_secret::{self, RegisteredSecret, SecretSource};
use super::defaults::ClientDefaults;
use super::kind::Kind;
use super::problem::Problem;
use super::references::{self, Stored};
use super::user::{self, UserEntry};
use super::walker::Walker;
use super::{assertion_issuer, extension_grant, provider};

/// A document in which everything is in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Everything but the users, in the document's order.
    pub entries: Vec<Entry>,
    pub users: Vec<UserEntry>,
}

/// An object of a document, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub kind: Kind,
    /// Where it stands, as `clients[3]`.
    pub place: String,
    pub name: String,
    /// To be stored: itself as registered, without secrets and nulls. [`super::stored`] reads it back.
    pub document: Value,
    /// `secrets` of a client or resource; `None` leaves those already stored.
    pub secrets: Option<Vec<RegisteredSecret>>,
    /// `client_secret`, ours at an identity provider; `None` leaves the one already stored.
    pub client_secret: Option<SecretSource>,
}

impl Document {
    /// Reads a document and judges it against itself and against what is stored. The error holds every problem.
    pub fn from_json(value: &Value, defaults: &ClientDefaults, stored: &Stored) -> Result<Document, Vec<Problem>> {
        let mut problems = Vec::new();
        find_nul(value, "", &mut problems);
        let document = Walker::object(value, "", &mut problems, |walker| {
            let mut document = Document::default();
            for kind in Kind::ALL {
                if kind == Kind::User {
                    let user =
                        |value: &Value, path: &str, problems: &mut _| Walker::object(value, path, problems, user::read);
                    document.users = walker.list(kind.list(), user).unwrap_or_default();
                } else {
                    let entry = |value: &Value, path: &str, problems: &mut _| {
                        Walker::object(value, path, problems, |walker| entry(walker, kind, defaults, path))
                    };
                    document.entries.extend(walker.list(kind.list(), entry).unwrap_or_default());
                }
            }
            document
        });
        if let Some(document) = &document {
            references::check(value, document, stored, &mut problems);
        }
        problems.sort_by_key(place_order);
        document.filter(|_| problems.is_empty()).ok_or(problems)
    }
}

fn entry(walker: &mut Walker<'_, '_>, kind: Kind, defaults: &ClientDefaults, place: &str) -> Entry {
    let (mut secrets, mut client_secret) = (None, None);
    if matches!(kind, Kind::Client | Kind::Resource) {
        secrets = walker.list("secrets", client_secret::parse);
    }
    let mut confidential = None;
    match kind {
        Kind::Tenant => drop(catalogue::tenant(walker)),
        Kind::IdentityScope => drop(catalogue::identity_scope(walker)),
        Kind::ResourceScope => drop(catalogue::resource_scope(walker)),
        Kind::Resource => drop(catalogue::resource(walker)),
        Kind::IdentityProvider => {
            client_secret = walker.nested("client_secret", client_secret::parse_source);
            drop(provider::read(walker));
        }
        Kind::AssertionIssuer => drop(assertion_issuer::read(walker)),
        Kind::ExtensionGrant => drop(extension_grant::read(walker)),
        Kind::Client => confidential = Some(client::read(walker, defaults).is_confidential()),
        Kind::User => drop(user::read(walker)),
    }
    let is_secret = |key: &str| matches!(key, "secrets" | "client_secret");
    let kept = walker.members().iter().filter(|(key, value)| !is_secret(key) && !value.is_null());
    let mut document: Map<String, Value> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    document.extend(confidential.map(|confidential| (CONFIDENTIAL.to_owned(), json!(confidential))));
    let name = document.get(kind.name_key()).and_then(Value::as_str).unwrap_or_default().to_owned();
    Entry { kind, place: place.to_owned(), name, document: Value::Object(document), secrets, client_secret }
}

/// What an object of each list can have, and the objects within a client: the README explains each. `client_name#` is
/// `client_name#de` and so on.
pub fn keys() -> Vec<(&'static str, BTreeSet<String>)> {
    let defaults = ClientDefaults::default();
    let of_kind = |kind: Kind| Walker::keys(|walker| drop(entry(walker, kind, &defaults, "")));
    let lists = Kind::ALL.into_iter().map(|kind| (kind.list(), of_kind(kind)));
    let nested = [
        ("secrets", Walker::keys(|walker| drop(client_secret::read(walker)))),
        ("token_exchange", Walker::keys(client::exchange)),
    ];
    lists.chain(nested).collect()
}

/// Postgres stores no NUL, neither in text nor in jsonb.
fn find_nul(value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let rule = "must not hold a NUL character";
    match value {
        Value::String(text) if text.contains('\0') => problems.push(Problem::new(path, rule)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| find_nul(item, &format!("{path}[{index}]"), problems));
        }
        Value::Object(members) => {
            for (key, member) in members {
                let shown = key.escape_debug();
                let place = if path.is_empty() { shown.to_string() } else { format!("{path}.{shown}") };
                if key.contains('\0') {
                    problems.push(Problem::new(&place, rule));
                }
                find_nul(member, &place, problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn place_order(problem: &Problem) -> (usize, usize) {
    let list = problem.path.split(['[', '.']).next().unwrap_or_default();
    let index = problem.path.split(['[', ']']).nth(1).and_then(|index| index.parse().ok());
    (Kind::ALL.iter().position(|kind| kind.list() == list).map_or(0, |position| position + 1), index.unwrap_or(0))
}
