//! What another provider has registered, as a document of ours: pure, from a dump of its tables or
//! its own export. What would open something by being left out stays, and `plan` refuses what our
//! rules do.

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
    /// What is to be said, with those of whom it is said.
    notes: BTreeMap<String, Vec<String>>,
    /// What a client may ask for.
    scopes: BTreeSet<String>,
    /// Of each identity provider or login scheme.
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

    /// The document; and what was left out or set, and what to do, a line each. Ten are named, the
    /// others counted.
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

    /// Keeps an identity provider that can move.
    fn provider(&mut self, ours: ImportedObject) {
        let text = |key: &str| ours.0.get(key).and_then(Value::as_str).map(str::to_owned);
        let (name, issuer, secret) = (
            text("name").unwrap_or_default(),
            text("issuer"),
            text("client_secret"),
        );
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

    /// Makes a client of what was copied: leaves out what our rules refuse, and what it cannot have
    /// without that. `grant_types` are as they call them, `scope` is a list, and `require_pkce` is
    /// false where they do not.
    fn client(&mut self, of: &str, mut ours: ImportedObject) {
        let public = ours.is("token_endpoint_auth_method", "none");
        let check = if public {
            of_public_client
        } else {
            of_confidential_client
        };
        for member in ["redirect_uris", "post_logout_redirect_uris"] {
            let mut uris = ours.take(member);
            uris.retain(|uri| {
                let note = |rule| {
                    self.note(
                        &format!("{of} ({uri})"),
                        format!("left out of {member}: {rule}"),
                    )
                };
                check(uri).map_err(note).is_ok()
            });
            ours.set(member, uris);
        }
        let returns = ours.0.contains_key("redirect_uris");
        let (mut flows, mut grants) = (BTreeSet::new(), BTreeSet::new());
        for name in ours.take("grant_types") {
            match GRANTS.iter().find(|(theirs, ..)| *theirs == name) {
                None => self.note(
                    of,
                    format!("grant type {name} is left out: register it as an SQL function"),
                ),
                Some((_, true, _)) if !returns => {
                    self.note(of, format!("{name} is left out: it has no redirect URI"))
                }
                Some(("client_credentials", ..)) if public => {
                    self.note(of, format!("{name} is left out: it has no secret"))
                }
                Some((flow, _, types)) => {
                    flows.insert(*flow);
                    grants.extend(*types);
                }
            }
        }
        let via_browser = ours.is("allow_access_tokens_via_browser", true);
        let types = RESPONSE_TYPES
            .iter()
            .filter(|(flow, _, token)| flows.contains(flow) && (via_browser || !token));
        let types: Vec<&str> = types.map(|(_, name, _)| *name).collect();
        if flows.contains("implicit") {
            self.note(
                of,
                format!(
                    "set, as it has the implicit flow there: response_types {}",
                    types.join(", ")
                ),
            );
        }
        let refreshes = flows
            .iter()
            .any(|flow| !["implicit", "client_credentials"].contains(flow));
        let mut scope = ours.take("scope");
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
        grants.extend(
            scope
                .iter()
                .any(|name| name == OFFLINE_ACCESS)
                .then_some("refresh_token"),
        );
        ours.set("scope", scope.join(" "));
        let (has_secret, has_key) = (ours.0.contains_key("secrets"), ours.0.contains_key("jwks"));
        match (public, has_secret, has_key) {
            (true, ..) => ours
                .0
                .retain(|key, _| !["secrets", "jwks"].contains(&key.as_str())),
            (false, true, _) => drop(ours.0.remove("jwks")),
            (false, false, true) => ours.set("token_endpoint_auth_method", "private_key_jwt"),
            (false, false, false) => ours.set("confidential", true),
        }
        let uses_code = grants.contains("authorization_code");
        let without_pkce = ours.0.remove("require_pkce") == Some(json!(false)) && uses_code;
        ours.set(
            "require_pkce",
            (uses_code && !without_pkce && !public).then_some(true),
        );
        let of_apis = self
            .lists
            .get("resource_scopes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let has_api = of_apis
            .filter_map(|entry| entry.get("name"))
            .any(|name| scope.iter().any(|one| name == one));
        let notes = [
            (
                !public && !has_secret && !has_key,
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
                flows.contains("client_credentials") && !has_api,
                "give it a resource scope: its own tokens need one here",
            ),
        ];
        self.note_each(of, &notes);
        ours.0.extend([
            (String::from("grant_types"), json!(grants)),
            (String::from("response_types"), json!(types)),
        ]);
        self.push("clients", ours);
    }
}

/// An object of ours. What is empty is left out.
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

    /// A claim that is there once is a text, one that is there more than once an array.
    fn add_claim(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.get_mut(name) {
            None => self.set(name, value),
            Some(Value::Array(values)) if !values.contains(&value) => values.push(value),
            Some(one) if *one != value && !one.is_array() => *one = json!([one.take(), value]),
            Some(_) => {}
        }
    }

    /// As a user's claims: those that they can have.
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

/// What a member of theirs becomes: tables of ours, theirs, and how. `flag=true`: told where it is
/// not what they leave unsaid. `lifetime`: seconds, as long as ours may be; none for 0.
/// `texts=Column`: of texts, or of rows with one in that column. `secret`: a text, unless it is
/// masked.
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

/// An object of theirs. Their tools write a number as a text and a truth as 0 or 1: both are taken.
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

    fn named(&self, key: &str) -> Result<String, String> {
        self.text(key)?
            .ok_or_else(|| format!("{}: has no {key}", self.place))
    }

    /// Whether it is the second of two names, which are 0 and 1 as well.
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

    /// What stands in the lists of these names, each with its place.
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
            Some(members) => Row { place, members }.named(column),
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

/// Not `**********`, as an export masks it, and not `${vault.x}`, which is elsewhere.
fn is_clear(secret: &str) -> bool {
    !secret.starts_with("${") && !secret.bytes().all(|byte| byte == b'*')
}

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What they call a flow or grant, whether a browser comes back by it, and the grant types that it
/// takes here.
#[rustfmt::skip]
const GRANTS: [(&str, bool, &[&str]); 6] = [
    ("authorization_code", true, &["authorization_code"]),
    ("hybrid", true, &["authorization_code", "implicit"]),
    ("implicit", true, &["implicit"]),
    ("client_credentials", false, &["client_credentials"]),
    ("password", false, &["password"]),
    (DEVICE, false, &[DEVICE]),
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
