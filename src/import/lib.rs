//! What another provider has registered, as one of our documents. It is made from a dump of its
//! tables or from its own export, without I/O. `sound` leaves out what our rules refuse. What would
//! open something if it were left out stays in: `plan` refuses a provider that nobody registered.

mod addresses;
pub mod identity_server;
pub mod keycloak;
mod known;
mod links;
mod notes;
mod row;
mod sound;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde_json::{Map, Value, json};

use self::keycloak::attributes::MappedAttributes;
use self::notes::Notes;
use self::row::{Row, is_among, is_clear, plain, table};
use gatepost_protocol::registration::client::{of_confidential_client, of_public_client};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::token_name;
use gatepost_protocol::registration::user::is_possible_claim;
use gatepost_protocol::words::client::GrantType;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::scope::{OFFLINE_ACCESS, OPENID};
use gatepost_protocol::words::session::LOCAL;
use gatepost_registration::references::FirstPlaces;

/// What is read; or why the whole cannot be.
type Read<T = ()> = Result<T, String>;

/// What has been read so far.
#[derive(Default)]
pub struct Import {
    lists: JsonObject,
    /// Where each name stood first in them.
    first: FirstPlaces,
    /// Whoever is somebody elsewhere.
    identities: BTreeSet<String>,
    notes: Notes,
    /// What a client may ask for.
    scopes: BTreeSet<String>,
    resources: BTreeSet<String>,
    /// Clients and resources share one name space.
    clients: BTreeSet<String>,
    /// Claims of users that a scope gives.
    sources: BTreeSet<String>,
    /// Scopes that give roles, beside the built-in one.
    role_scopes: BTreeSet<String>,
    /// Whether people could type their e-mail address in place of the user name.
    signs_in_by_address: bool,
    /// What mappers of Keycloak make of attributes.
    attributes: MappedAttributes,
    /// User names of those whose second factor did not move.
    without_factor: BTreeSet<String>,
    /// The issuer of each identity provider or login scheme.
    issuers: BTreeMap<String, String>,
}

impl Import {
    fn note(&mut self, of: &str, text: impl Into<String>) {
        self.notes.add(of, text.into());
    }

    /// Those that hold.
    fn note_each(&mut self, of: &str, notes: &[(bool, &str)]) {
        for (holds, text) in notes {
            if *holds {
                self.note(of, *text);
            }
        }
    }

    /// The objects of that list of the document.
    fn imported(&self, list: &str) -> impl Iterator<Item = &Value> {
        self.lists.items(list).iter()
    }

    /// The document, and what there is to say: how people sign in; the notes below their headings,
    /// those of the last one only with `all`; then the commands for people who need a link.
    pub fn finish(self, all: bool) -> (Value, Vec<String>) {
        let mut lines = Vec::from_iter(self.user_names());
        let commands = self.commands();
        lines.extend(self.notes.under_headings(all));
        lines.push(String::new());
        lines.extend(commands);
        (Value::Object(self.lists), lines)
    }

    /// How many people will type a name that is not their e-mail address; or what lets them go on
    /// typing that.
    fn user_names(&self) -> Option<String> {
        let users = self.lists.get("users").and_then(Value::as_array)?;
        if self.signs_in_by_address {
            return Some(self.by_address());
        }
        let others = users.iter().filter(|user| has_another_name(user)).count();
        Some(format!(
            "people sign in by user name here, not by e-mail address: {others} of {} have a user \
             name that is not their address",
            users.len()
        ))
    }
}

/// One of their objects on its way into our document.
struct Moving<'a> {
    row: &'a Row<'a>,
    /// What notes call it.
    of: String,
    /// What it becomes.
    ours: ImportedObject,
    to: &'a mut Import,
}

impl<'a> Deref for Moving<'a> {
    type Target = Row<'a>;

    fn deref(&self) -> &Row<'a> {
        self.row
    }
}

impl<'a> Moving<'a> {
    fn new(row: &'a Row<'a>, of: String, to: &'a mut Import) -> Moving<'a> {
        Moving {
            row,
            of,
            ours: ImportedObject::default(),
            to,
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.to.note(&self.of, text);
    }

    fn note_each(&mut self, notes: &[(bool, &str)]) {
        self.to.note_each(&self.of, notes);
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.ours.set(key, value);
    }

    /// Copies the members that the table names.
    fn copy(&mut self, table: &str) -> Read {
        self.row.copy(table, &mut self.ours)
    }

    /// False where our rules refuse the whole object.
    fn push(self, kind: ObjectKind) -> bool {
        self.to.push(kind, &self.of, self.ours)
    }

    /// Accounts elsewhere: the list of links, and the members of one that name the provider and
    /// the account there. `why_not` says why none is known of a provider.
    fn add_identities(&mut self, links: [&str; 3], why_not: fn(&str) -> String) -> Read {
        let [links, provider, subject] = links;
        let mut identities = Vec::new();
        for link in self.rows(links)? {
            let name = link.required(provider)?;
            match self.to.issuers.get(&name) {
                Some(issuer) => {
                    identities.push(json!({"issuer": issuer, "subject": link.required(subject)?}))
                }
                None => {
                    let why_not = why_not(&name);
                    self.note(format!("sign-ins by {name} are left out: {why_not}"));
                }
            }
        }
        self.set("identities", identities);
        Ok(())
    }

    /// Makes an identity provider of the copied members, if it has an issuer.
    fn into_provider(mut self) {
        let text = |key: &str| self.ours.0.text(key).map(str::to_owned);
        let name = text("name").unwrap_or_default();
        let issuer = text("issuer");
        let scope = text("scope");
        let notes = [
            (
                issuer.is_none(),
                "left out: it has no issuer, so register it by hand",
            ),
            (text("client_secret").is_none(), "give its client_secret"),
        ];
        self.note_each(&notes);
        if let Some(scope) = scope {
            let scope = self.asked_scope(&scope);
            self.set("scope", scope);
        }
        let Some(issuer) = issuer else {
            return;
        };
        if self
            .to
            .push(ObjectKind::IdentityProvider, &self.of, self.ours)
        {
            self.to.issuers.entry(name).or_insert(issuer);
        }
    }

    /// What a provider is asked for: `openid` in any case, there as here.
    fn asked_scope(&mut self, scope: &str) -> String {
        let mut names = Vec::new();
        for name in scope.split_whitespace() {
            match token_name(name) {
                Ok(()) => names.push(name),
                Err(rule) => self.note(format!("left out of scope: {name}: it {rule}")),
            }
        }
        if !names.contains(&OPENID) {
            names.insert(0, OPENID);
        }
        names.join(" ")
    }

    /// Makes a client of the copied members. It leaves out what our rules refuse, and what the
    /// client cannot have without that. `grant_types` have their names for them, `scope` is a list,
    /// and `require_pkce` is false where they do not require it.
    fn into_client(mut self) {
        let public = self.ours.is("token_endpoint_auth_method", "none");
        self.keep_uris(public);
        let flows = self.flows(public);
        let response_types = response_types(&flows, &self.ours);
        if flows.contains(&IMPLICIT) {
            let types = response_types.join(", ");
            self.note(format!(
                "set, as it has the implicit flow there: response_types {types}"
            ));
        }
        let refreshes = flows
            .iter()
            .any(|flow| ![IMPLICIT, "client_credentials"].contains(flow));
        let scope = self.known_scope(refreshes);
        let mut grants = BTreeSet::from_iter(flows.iter().copied());
        if grants.remove(HYBRID) {
            grants.extend(["authorization_code", IMPLICIT]);
        }
        let is_offline = scope.iter().any(|name| name == OFFLINE_ACCESS);
        let in_session = grants.contains("authorization_code") && self.ours.has(IN_SESSION);
        if !in_session {
            self.ours.0.remove(IN_SESSION);
        }
        grants.extend((is_offline || in_session).then_some("refresh_token"));
        let has_secret = self.ours.has("secrets");
        let has_key = self.ours.has("jwks") || self.ours.has("jwks_uri");
        settle_credentials(&mut self.ours, public);
        let uses_code = grants.contains("authorization_code");
        let without_pkce = self.ours.0.remove("require_pkce") == Some(json!(false)) && uses_code;
        let must_pkce = uses_code && !without_pkce && !public;
        self.set("require_pkce", must_pkce.then_some(true));
        let notes = [
            (
                in_session,
                "set, as there: refresh_token_without_offline_access. Each refresh gives the next \
                 token, which a client must keep",
            ),
            (
                public && (has_secret || has_key),
                "is a public client, so its secrets are left out: let it send none, or register a \
                 token_endpoint_auth_method",
            ),
            (
                !public && has_secret && has_key,
                "has a key beside its secret, which is left out, as a client proves itself in one \
                 way: for the key, register jwks and private_key_jwt instead of secrets",
            ),
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
                "was not required to use PKCE. Gatepost requires PKCE or a nonce, unless you set \
                 \"require_pkce\": false",
            ),
            (
                flows.contains(&"client_credentials") && !self.has_api(&scope),
                "give it a resource scope: its own tokens need one here",
            ),
        ];
        self.note_each(&notes);
        self.set("scope", scope.join(" "));
        self.ours.0.insert("grant_types".into(), json!(grants));
        self.ours
            .0
            .insert("response_types".into(), json!(response_types));
        self.push(ObjectKind::Client);
    }

    /// Leaves out the redirect URIs that our rules refuse. They may hold secrets, so their numbers
    /// are told.
    fn keep_uris(&mut self, public: bool) {
        let check = if public {
            of_public_client
        } else {
            of_confidential_client
        };
        for member in ["redirect_uris", "post_logout_redirect_uris"] {
            let mut kept = self.ours.take(member);
            let mut index = 0;
            kept.retain(|uri| {
                index += 1;
                let checked = check(uri);
                if let Err(rule) = checked {
                    self.note(format!("number {index} of {member} is left out: {rule}"));
                }
                checked.is_ok()
            });
            // Of a public client, what is left without TLS leads to a program on the person's own
            // machine.
            let is_native = kept.iter().any(|uri| !uri.starts_with("https://"));
            if public && is_native && member == "redirect_uris" {
                self.note(NATIVE);
            }
            self.set(member, kept);
        }
    }

    /// The flows and grants that the client can have here.
    fn flows(&mut self, public: bool) -> Vec<&'static str> {
        let has_uris = self.ours.has("redirect_uris");
        let providers = self.ours.0.items("identity_providers");
        let is_local = providers.is_empty() || providers.iter().any(|name| name == LOCAL);
        let mut flows = Vec::new();
        for name in self.ours.take("grant_types") {
            let why_not = match FLOWS.into_iter().find(|flow| *flow == name) {
                None if name == GrantType::TokenExchange.as_str() => String::from(
                    "token exchange is left out: register token_exchange, with the clients or \
                     resources whose tokens it may exchange, and the resources that it may reach",
                ),
                None => String::from(
                    "a grant type of your own is left out: register it as an SQL function",
                ),
                Some(flow) if is_among(RETURNING, flow) && !has_uris => {
                    format!("{name} is left out: it has no redirect URI")
                }
                Some("client_credentials") if public => {
                    format!("{name} is left out: it has no secret")
                }
                Some("password") if !is_local => {
                    format!("{name} is left out: its people sign in by providers alone")
                }
                Some(flow) => {
                    flows.push(flow);
                    continue;
                }
            };
            self.note(why_not);
        }
        flows
    }

    /// The scopes that are there, without `offline_access` where nothing could refresh.
    fn known_scope(&mut self, refreshes: bool) -> Vec<String> {
        let mut scope = self.ours.take("scope");
        scope.retain(|name| {
            let is_known = self.to.scopes.contains(name);
            if !is_known {
                self.note(format!(
                    "left out of scope: {name}: no enabled scope has that name"
                ));
            }
            is_known && (refreshes || name != OFFLINE_ACCESS)
        });
        scope
    }

    /// Whether one of these is a resource scope.
    fn has_api(&self, scope: &[String]) -> bool {
        let of_apis = self.to.imported("resource_scopes");
        let mut names = of_apis.filter_map(|entry| entry.get("name"));
        names.any(|name| scope.iter().any(|one| name == one))
    }
}

const NATIVE: &str = "\
    people are asked for consent each time here, as any program on their machine can pose as it \
    (loopback, or a scheme of its own). \"require_consent\": false asks nobody; \
    \"allow_remember_consent\": true asks once, on loopback alone";

/// Whether the user name is not the e-mail address.
fn has_another_name(user: &Value) -> bool {
    let address = user.pointer("/claims/email").and_then(Value::as_str);
    let name = user.text("username");
    name.zip(address)
        .is_some_and(|(name, address)| !name.eq_ignore_ascii_case(address))
}

/// Keeps the secrets of a confidential client, or else its keys. A public client keeps neither.
fn settle_credentials(ours: &mut ImportedObject, public: bool) {
    if public {
        ours.0.remove("secrets");
    }
    if public || ours.has("secrets") {
        ours.0.remove("jwks");
        ours.0.remove("jwks_uri");
    } else if ours.has("jwks") || ours.has("jwks_uri") {
        ours.set("token_endpoint_auth_method", "private_key_jwt");
    } else {
        ours.set("confidential", true);
    }
}

fn response_types(flows: &[&str], ours: &ImportedObject) -> Vec<String> {
    // A token that comes by the browser is bound to no key.
    let via_browser = ours.is("allow_access_tokens_via_browser", true)
        && !ours.is("dpop_bound_access_tokens", true);
    let is_had = |kind: &ResponseType| {
        let flow = match kind {
            &ResponseType::CODE => "authorization_code",
            kind if kind.code => HYBRID,
            _ => IMPLICIT,
        };
        flows.contains(&flow) && (via_browser || !kind.token)
    };
    let types = ResponseType::ALL.iter().filter(|kind| is_had(kind));
    types.map(ToString::to_string).collect()
}

/// An object of our document. Empty members are left out.
#[derive(Default)]
pub struct ImportedObject(JsonObject);

impl<const N: usize> From<[(&str, Value); N]> for ImportedObject {
    fn from(members: [(&str, Value); N]) -> ImportedObject {
        let mut object = ImportedObject::default();
        for (key, value) in members {
            object.set(key, value);
        }
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

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
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

    /// An address that was not verified there is not verified here: tokens said so.
    fn doubt_addresses(&mut self) {
        for (address, verified) in [
            ("email", "email_verified"),
            ("phone_number", "phone_number_verified"),
        ] {
            if self.0.contains_key(address) {
                self.0.entry(verified).or_insert(json!(false));
            }
        }
    }

    /// The claims that a user can have.
    fn into_claims(self, of: &str, to: &mut Import) -> Value {
        let (kept, lost): (Map<_, _>, Map<_, _>) = self.0.into_iter().partition(|(name, value)| {
            // Postgres stores no NUL.
            let holds_nul = value.to_string().contains("\\u0000");
            is_possible_claim(name, value) && !holds_nul
        });
        for name in lost.keys() {
            to.note(
                of,
                format!("left out of claims: {name}: reserved for the token, or of another form"),
            );
        }
        Value::Object(kept)
    }
}

const IN_SESSION: &str = "refresh_token_without_offline_access";
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The flows and grants that a client can have here, as they call them.
const FLOWS: [&str; 6] = [
    "authorization_code",
    HYBRID,
    IMPLICIT,
    "client_credentials",
    "password",
    DEVICE,
];
/// Those by which a browser comes back.
const RETURNING: &str = "authorization_code hybrid implicit";
const HYBRID: &str = "hybrid";
const IMPLICIT: &str = "implicit";
