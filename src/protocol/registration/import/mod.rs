//! What another provider has registered, as one of our documents. It is made from a dump of its
//! tables or from its own export, without I/O. What would open something if it were left out stays
//! in, and `plan` refuses what our rules refuse.

pub mod identity_server;
pub mod keycloak;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::client::{LONGEST_LIFETIME, of_confidential_client, of_public_client};
use super::user::is_possible_claim;
use super::walker::expected;
use crate::protocol::words::scope::OFFLINE_ACCESS;

/// What has been read so far.
#[derive(Default)]
pub struct Import {
    lists: Map<String, Value>,
    /// The notes, each with those that it is about.
    notes: BTreeMap<String, Vec<String>>,
    /// What a client may ask for.
    scopes: BTreeSet<String>,
    /// The issuer of each identity provider or login scheme.
    issuers: BTreeMap<String, String>,
}

impl Import {
    fn note(&mut self, of: &str, text: impl Into<String>) {
        self.notes
            .entry(text.into())
            .or_default()
            .push(of.to_owned());
    }

    /// Those that hold.
    fn note_each(&mut self, of: &str, notes: &[(bool, &str)]) {
        notes
            .iter()
            .filter(|(holds, _)| *holds)
            .for_each(|(_, text)| self.note(of, *text));
    }

    fn push(&mut self, list: &str, ours: ImportedObject) {
        let list = self.lists.entry(list).or_insert_with(|| json!([]));
        list.as_array_mut()
            .into_iter()
            .for_each(|list| list.push(json!(ours.0)));
    }

    /// The document, and one line for each note: what was left out or set, and what to do. A line
    /// names ten, and counts the others.
    pub fn finish(self) -> (Value, Vec<String>) {
        let line = |(text, all): (String, Vec<String>)| match all.split_at_checked(10) {
            Some((named, more)) if !more.is_empty() => {
                format!("{} and {} more: {text}", named.join(", "), more.len())
            }
            Some(_) | None => format!("{}: {text}", all.join(", ")),
        };
        (
            Value::Object(self.lists),
            self.notes.into_iter().map(line).collect(),
        )
    }

    /// Adds an identity provider, if it has an issuer.
    fn provider(&mut self, ours: ImportedObject) {
        let text = |key: &str| ours.0.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").unwrap_or_default();
        let issuer = text("issuer");
        let secret = text("client_secret");
        let nowhere = (
            issuer.is_none(),
            "left out: it has no issuer, so register it by hand",
        );
        self.note_each(
            &format!("identity provider {name}"),
            &[nowhere, (secret.is_none(), "give its client_secret")],
        );
        if let Some(issuer) = issuer {
            self.issuers.entry(name).or_insert(issuer);
            self.push("identity_providers", ours);
        }
    }

    /// Makes a client of the copied members. It leaves out what our rules refuse, and what the
    /// client cannot have without that. `grant_types` have their names for them, `scope` is a list,
    /// and `require_pkce` is false where they do not require it.
    fn client(&mut self, of: &str, mut ours: ImportedObject) {
        let public = ours.is("token_endpoint_auth_method", "none");
        self.keep_uris(of, &mut ours, public);
        let flows = self.flows(of, &mut ours, public);
        let has_flow = |name: &str| flows.iter().any(|flow| flow.name == name);
        let response_types = response_types(&flows, &ours);
        if has_flow("implicit") {
            let types = response_types.join(", ");
            self.note(
                of,
                format!("set, as it has the implicit flow there: response_types {types}"),
            );
        }
        let refreshes = flows
            .iter()
            .any(|flow| !["implicit", "client_credentials"].contains(&flow.name));
        let scope = self.known_scope(of, ours.take("scope"), refreshes);
        let mut grants: BTreeSet<&str> =
            flows.iter().flat_map(|flow| flow.grants).copied().collect();
        let is_offline = scope.iter().any(|name| name == OFFLINE_ACCESS);
        grants.extend(is_offline.then_some("refresh_token"));
        let lacks_credentials = !public && !settle_credentials(&mut ours);
        if public {
            ours.0.remove("secrets");
            ours.0.remove("jwks");
        }
        let uses_code = grants.contains("authorization_code");
        let without_pkce = ours.0.remove("require_pkce") == Some(json!(false)) && uses_code;
        let must_pkce = uses_code && !without_pkce && !public;
        ours.set("require_pkce", must_pkce.then_some(true));
        let notes = [
            (
                lacks_credentials,
                "has no secret that can move: make one by `gatepost client secret`",
            ),
            (
                without_pkce && public,
                "was not required to use PKCE. Gatepost requires it of public clients",
            ),
            (
                without_pkce && !public,
                "was not required to use PKCE. Gatepost requires PKCE or a nonce, unless you set \"require_pkce\": false",
            ),
            (
                has_flow("client_credentials") && !self.has_api(&scope),
                "give it a resource scope: its own tokens need one here",
            ),
        ];
        self.note_each(of, &notes);
        ours.set("scope", scope.join(" "));
        let lists = [
            ("grant_types", json!(grants)),
            ("response_types", json!(response_types)),
        ];
        for (member, list) in lists {
            ours.0.insert(String::from(member), list);
        }
        self.push("clients", ours);
    }

    /// Leaves out the redirect URIs that our rules refuse.
    fn keep_uris(&mut self, of: &str, ours: &mut ImportedObject, public: bool) {
        let check = if public {
            of_public_client
        } else {
            of_confidential_client
        };
        for member in ["redirect_uris", "post_logout_redirect_uris"] {
            let mut kept = ours.take(member);
            kept.retain(|uri| match check(uri) {
                Ok(()) => true,
                Err(rule) => {
                    let note = format!("left out of {member}: {rule}");
                    self.note(&format!("{of} ({uri})"), note);
                    false
                }
            });
            ours.set(member, kept);
        }
    }

    /// The flows and grants that the client can have here.
    fn flows(&mut self, of: &str, ours: &mut ImportedObject, public: bool) -> Vec<&'static Flow> {
        let has_uris = ours.0.contains_key("redirect_uris");
        let mut flows = Vec::new();
        for name in ours.take("grant_types") {
            let why_not = match FLOWS.iter().find(|flow| flow.name == name) {
                None => format!("grant type {name} is left out: register it as an SQL function"),
                Some(flow) if flow.returns && !has_uris => {
                    format!("{name} is left out: it has no redirect URI")
                }
                Some(flow) if flow.name == "client_credentials" && public => {
                    format!("{name} is left out: it has no secret")
                }
                Some(flow) => {
                    flows.push(flow);
                    continue;
                }
            };
            self.note(of, why_not);
        }
        flows
    }

    /// The scopes that are there, without `offline_access` where nothing could refresh.
    fn known_scope(&mut self, of: &str, mut scope: Vec<String>, refreshes: bool) -> Vec<String> {
        scope.retain(|name| {
            let is_known = self.scopes.contains(name);
            if !is_known {
                self.note(
                    of,
                    format!("left out of scope: {name}: no enabled scope has that name"),
                );
            }
            is_known && (refreshes || name != OFFLINE_ACCESS)
        });
        scope
    }

    /// Whether one of these is a resource scope.
    fn has_api(&self, scope: &[String]) -> bool {
        let of_apis = self.lists.get("resource_scopes").and_then(Value::as_array);
        let names = of_apis
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.get("name"));
        names
            .into_iter()
            .any(|name| scope.iter().any(|one| name == one))
    }
}

/// Keeps the secrets of a confidential client, or else its keys. Returns whether it has any.
fn settle_credentials(ours: &mut ImportedObject) -> bool {
    let has_secret = ours.0.contains_key("secrets");
    let has_key = ours.0.contains_key("jwks");
    match (has_secret, has_key) {
        (true, _) => drop(ours.0.remove("jwks")),
        (false, true) => ours.set("token_endpoint_auth_method", "private_key_jwt"),
        (false, false) => ours.set("confidential", true),
    }
    has_secret || has_key
}

fn response_types(flows: &[&Flow], ours: &ImportedObject) -> Vec<&'static str> {
    let via_browser = ours.is("allow_access_tokens_via_browser", true);
    let has_flow = |name: &str| flows.iter().any(|flow| flow.name == name);
    let types = RESPONSE_TYPES
        .iter()
        .filter(|(flow, _, token)| has_flow(flow) && (via_browser || !token));
    types.map(|(_, name, _)| *name).collect()
}

/// An object of our document. Empty members are left out.
#[derive(Default)]
struct ImportedObject(Map<String, Value>);

impl<const N: usize> From<[(&str, Value); N]> for ImportedObject {
    fn from(members: [(&str, Value); N]) -> ImportedObject {
        let mut object = ImportedObject::default();
        members
            .into_iter()
            .for_each(|(key, value)| object.set(key, value));
        object
    }
}

impl ImportedObject {
    fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if ![Value::Null, json!([]), json!({})].contains(&value) {
            self.0.insert(key.to_owned(), value);
        }
    }

    fn is(&self, key: &str, value: impl Into<Value>) -> bool {
        self.0.get(key) == Some(&value.into())
    }

    fn take(&mut self, key: &str) -> Vec<String> {
        self.0
            .remove(key)
            .and_then(|list| serde_json::from_value(list).ok())
            .unwrap_or_default()
    }

    /// Adds a claim. A claim with one value is a text, and one with several is an array.
    fn add_claim(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.get_mut(name) {
            None => self.set(name, value),
            Some(Value::Array(values)) if !values.contains(&value) => values.push(value),
            Some(one) if *one != value && !one.is_array() => *one = json!([one.take(), value]),
            Some(_) => {}
        }
    }

    /// The claims that a user can have.
    fn into_claims(self, of: &str, to: &mut Import) -> Value {
        let (kept, lost): (Map<_, _>, Map<_, _>) = self
            .0
            .into_iter()
            .partition(|(name, value)| is_possible_claim(name, value));
        let note = |name| {
            format!("left out of claims: {name}: reserved for the token, or of another form")
        };
        lost.keys().for_each(|name| to.note(of, note(name)));
        Value::Object(kept)
    }
}

/// How each member of theirs is copied, in tables of three columns: our name, their name, and the
/// kind. `flag=true`: a flag that is told where it differs from what they leave unsaid. `lifetime`:
/// seconds, at most as long as ours may be, and absent for 0. `texts=Column`: an array of texts, or
/// of rows with a text in that column. `secret`: a text that is absent where it is masked.
const MEMBERS: &str = include_str!("members.txt");

fn table(name: &str) -> impl Iterator<Item = [&'static str; 3]> {
    let found = MEMBERS
        .split("\n\n")
        .filter_map(|table| table.split_once('\n'))
        .find(|(title, _)| *title == name);
    let words = |line: &'static str| line.split_whitespace().collect::<Vec<_>>().try_into().ok();
    found
        .map_or("", |(_, lines)| lines)
        .lines()
        .filter_map(words)
}

/// An object of their document. Their tools write a number as a text and a truth as 0 or 1, so both
/// are read.
struct Row<'v> {
    place: String,
    members: &'v Map<String, Value>,
}

impl<'v> Row<'v> {
    fn of(place: String, value: &'v Value) -> Result<Row<'v>, String> {
        let members = value
            .as_object()
            .ok_or_else(|| format!("{place}: {}", expected("an object", value)))?;
        Ok(Row { place, members })
    }

    fn value(&self, key: &str) -> Option<&'v Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// Absent where it is empty.
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let text = self
            .value(key)
            .map(|value| plain(&format!("{}.{key}", self.place), value))
            .transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn required(&self, key: &str) -> Result<String, String> {
        self.text(key)?
            .ok_or_else(|| format!("{}: has no {key}", self.place))
    }

    /// Whether the member is the second of two names. The names may be written as 0 and 1.
    fn second(&self, key: &str, names: [&str; 2], unsaid: bool) -> Result<bool, String> {
        let Some(text) = self.text(key)? else {
            return Ok(unsaid);
        };
        let found = names
            .into_iter()
            .zip(["0", "1"])
            .position(|one| text.eq_ignore_ascii_case(one.0) || text == one.1);
        let rule = || {
            format!(
                "{}.{key}: is neither {} nor {}",
                self.place, names[0], names[1]
            )
        };
        found.map(|found| found == 1).ok_or_else(rule)
    }

    fn flag(&self, key: &str, unsaid: bool) -> Result<bool, String> {
        self.second(key, ["false", "true"], unsaid)
    }

    fn seconds(&self, key: &str) -> Result<Option<u64>, String> {
        let number = |text: String| {
            text.parse()
                .map_err(|_| format!("{}.{key}: is no number of seconds", self.place))
        };
        let seconds: Option<u64> = self.text(key)?.map(number).transpose()?;
        Ok(seconds
            .filter(|seconds| *seconds > 0)
            .map(|seconds| seconds.min(LONGEST_LIFETIME)))
    }

    /// The items of the lists of these names, each with its place.
    fn list(&self, keys: &str) -> Result<Vec<(String, &'v Value)>, String> {
        let mut all = Vec::new();
        for (key, value) in keys
            .split(',')
            .filter_map(|key| Some((key, self.value(key)?)))
        {
            let place = format!("{}.{key}", self.place);
            let items = value
                .as_array()
                .ok_or_else(|| format!("{place}: {}", expected("an array", value)))?;
            all.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (format!("{place}[{index}]"), item)),
            );
        }
        Ok(all)
    }

    fn texts(&self, keys: &str, column: &str) -> Result<Vec<String>, String> {
        let text = |(place, value): (String, &Value)| match value.as_object() {
            Some(members) => Row { place, members }.required(column),
            None => plain(&place, value),
        };
        self.list(keys)?.into_iter().map(text).collect()
    }

    fn rows(&self, keys: &str) -> Result<Vec<Row<'v>>, String> {
        self.list(keys)?
            .into_iter()
            .map(|(place, value)| Row::of(place, value))
            .collect()
    }

    fn nested(&self, key: &str) -> Result<Option<Row<'v>>, String> {
        self.value(key)
            .map(|value| Row::of(format!("{}.{key}", self.place), value))
            .transpose()
    }

    fn copy(&self, members: &str, into: &mut ImportedObject) -> Result<(), String> {
        for [ours, theirs, how] in table(members) {
            let value = match how.split_once('=') {
                Some(("texts", column)) => Value::from(self.texts(theirs, column)?),
                Some((_, unsaid)) => {
                    let unsaid = unsaid == "true";
                    Value::from(Some(self.flag(theirs, unsaid)?).filter(|flag| *flag != unsaid))
                }
                None if how == "lifetime" => Value::from(self.seconds(theirs)?),
                None => Value::from(
                    self.text(theirs)?
                        .filter(|text| how != "secret" || is_clear(text)),
                ),
            };
            into.set(ours, value);
        }
        Ok(())
    }
}

fn plain(place: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("{place}: {}", expected("a text", value)))
        }
    }
}

/// Whether a secret is there: not masked as `**********`, and not a reference such as `${vault.x}`.
fn is_clear(secret: &str) -> bool {
    !secret.starts_with("${") && !secret.bytes().all(|byte| byte == b'*')
}

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

struct Flow {
    /// As they call it.
    name: &'static str,
    /// Whether a browser comes back by it.
    returns: bool,
    /// The grant types that it takes here.
    grants: &'static [&'static str],
}

const fn flow(name: &'static str, returns: bool, grants: &'static [&'static str]) -> Flow {
    Flow {
        name,
        returns,
        grants,
    }
}

const FLOWS: [Flow; 6] = [
    flow("authorization_code", true, &["authorization_code"]),
    flow("hybrid", true, &["authorization_code", "implicit"]),
    flow("implicit", true, &["implicit"]),
    flow("client_credentials", false, &["client_credentials"]),
    flow("password", false, &["password"]),
    flow(DEVICE, false, &[DEVICE]),
];

/// The response types of each flow, and whether an access token comes by the browser in them.
#[rustfmt::skip]
const RESPONSE_TYPES: [(&str, &str, bool); 7] = [
    ("authorization_code", "code", false),
    ("implicit", "id_token", false),
    ("implicit", "token", true),
    ("implicit", "id_token token", true),
    ("hybrid", "code id_token", false),
    ("hybrid", "code token", true),
    ("hybrid", "code id_token token", true),
];
