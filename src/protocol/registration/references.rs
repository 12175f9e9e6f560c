//! Whether what a document names exists, and whether names are given once: against itself and against what is stored.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::client::GrantType;
use crate::protocol::identifiers::TenantName;
use crate::protocol::scope::{ScopeKind, ScopeSet};

use super::super::session::LOCAL;
use super::client::ClientEntry;
use super::document::Document;
use super::names::{BUILT_IN_SCOPES, not_registered};
use super::problem::Problem;

/// What is registered already, as far as a document can name it.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Scopes and their kinds.
    pub scopes: BTreeMap<String, ScopeKind>,
    /// Names of resources.
    pub resources: BTreeSet<String>,
    /// Names of tenants.
    pub tenants: BTreeSet<String>,
    /// Names of identity providers.
    pub identity_providers: BTreeSet<String>,
    /// Names of extension grants.
    pub extension_grants: BTreeSet<String>,
    /// Names of extension grants that the binary brings along.
    pub compiled_in_grants: BTreeSet<String>,
    /// Every client, and whether it has stored secrets.
    pub clients: BTreeMap<String, bool>,
}

static BUILT_IN_GRANTS: [GrantType; 8] = GrantType::BUILT_IN;

/// Every name that will be there once the document is applied.
struct Known<'a> {
    scopes: BTreeSet<&'a str>,
    resources: BTreeSet<&'a str>,
    tenants: BTreeSet<&'a str>,
    identity_providers: BTreeSet<&'a str>,
    grant_types: BTreeSet<&'a str>,
    clients: BTreeSet<&'a str>,
}

pub(super) fn check(document: &Document, stored: &Stored) -> Vec<Problem> {
    let known = Known::collect(document, stored);
    let mut problems = Vec::new();
    check_duplicates(document, &mut problems);
    check_scope_kinds(document, stored, &mut problems);
    check_name_space(document, stored, &mut problems);
    for (index, entry) in document.resource_scopes.iter().enumerate() {
        let place = format!("resource_scopes[{index}].resources");
        each(&mut problems, &place, &known.resources, "resource", entry.object.resources.iter().map(String::as_str));
    }
    for (index, entry) in document.identity_providers.iter().enumerate() {
        check_tenant(&mut problems, &format!("identity_providers[{index}]"), &known, entry.object.tenant.as_ref());
    }
    for (index, entry) in document.assertion_issuers.iter().enumerate() {
        let (place, issuer) = (format!("assertion_issuers[{index}]"), &entry.object);
        check_tenant(&mut problems, &place, &known, issuer.tenant.as_ref());
        check_scope(&mut problems, &place, &known, issuer.scope.as_ref().unwrap_or(&ScopeSet::default()));
        let clients = issuer.clients.iter().map(String::as_str);
        each(&mut problems, &format!("{place}.clients"), &known.clients, "client", clients);
    }
    for (index, entry) in document.extension_grants.iter().enumerate() {
        if stored.compiled_in_grants.contains(&entry.object.name) {
            let rule = "is the name of a grant that this binary brings along";
            problems.push(Problem::new(format!("extension_grants[{index}].name"), rule));
        }
    }
    for (index, entry) in document.clients.iter().enumerate() {
        check_client(&mut problems, &format!("clients[{index}]"), &known, entry, stored);
    }
    for (index, user) in document.users.iter().enumerate() {
        check_tenant(&mut problems, &format!("users[{index}]"), &known, user.tenant.as_ref());
    }
    problems
}

impl<'a> Known<'a> {
    fn collect(document: &'a Document, stored: &'a Stored) -> Known<'a> {
        let scopes = document.identity_scopes.iter().chain(&document.resource_scopes);
        Known {
            scopes: BTreeSet::from(BUILT_IN_SCOPES)
                .into_iter()
                .chain(stored.scopes.keys().map(String::as_str))
                .chain(scopes.map(|entry| entry.object.name.as_str()))
                .collect(),
            resources: joined(
                stored.resources.iter(),
                document.resources.iter().map(|entry| &entry.object.resource.name),
            ),
            tenants: joined(stored.tenants.iter(), document.tenants.iter().map(|entry| &entry.object.name)),
            identity_providers: joined(
                stored.identity_providers.iter(),
                document.identity_providers.iter().map(|entry| &entry.object.name),
            )
            .into_iter()
            .chain([LOCAL])
            .collect(),
            grant_types: joined(
                stored.extension_grants.iter().chain(&stored.compiled_in_grants),
                document.extension_grants.iter().map(|entry| &entry.object.name),
            )
            .into_iter()
            .chain(BUILT_IN_GRANTS.iter().map(GrantType::as_str))
            .collect(),
            clients: stored
                .clients
                .keys()
                .map(String::as_str)
                .chain(document.clients.iter().map(|entry| entry.client.client_id.as_str()))
                .collect(),
        }
    }
}

fn joined<'a>(
    stored: impl Iterator<Item = &'a String>,
    document: impl Iterator<Item = &'a String>,
) -> BTreeSet<&'a str> {
    stored.chain(document).map(String::as_str).collect()
}

fn check_client(problems: &mut Vec<Problem>, place: &str, known: &Known<'_>, entry: &ClientEntry, stored: &Stored) {
    let client = &entry.client;
    check_scope(problems, place, known, &client.scope);
    let tenants = client.tenants.iter().flatten().map(TenantName::as_str);
    each(problems, &format!("{place}.tenants"), &known.tenants, "tenant", tenants);
    let providers = client.identity_providers.iter().flatten().map(String::as_str);
    each(problems, &format!("{place}.identity_providers"), &known.identity_providers, "identity provider", providers);
    let grant_types = client.grant_types.iter().map(GrantType::as_str);
    each(problems, &format!("{place}.grant_types"), &known.grant_types, "grant type", grant_types);
    for (key, names, kind) in [
        ("from_clients", &known.clients, "client"),
        ("as_resources", &known.resources, "resource"),
        ("to_resources", &known.resources, "resource"),
    ] {
        let listed = client.token_exchange.iter().filter_map(|exchange| exchange.get(key)?.as_array()).flatten();
        let listed = listed.filter_map(serde_json::Value::as_str);
        each(problems, &format!("{place}.token_exchange.{key}"), names, kind, listed);
    }
    let keeps_secrets = entry.secrets.is_none() && stored.clients.get(client.client_id.as_str()) == Some(&true);
    if keeps_secrets && entry.metadata.get("token_endpoint_auth_method").is_none() && !client.is_confidential() {
        let rule = "is required: this client has secrets in the database, and without secrets here it would become public; \
                    name client_secret_basic, client_secret_post or none, or give its secrets, or say \"confidential\": true";
        problems.push(Problem::new(format!("{place}.token_endpoint_auth_method"), rule));
    }
}

fn check_scope(problems: &mut Vec<Problem>, place: &str, known: &Known<'_>, scope: &ScopeSet) {
    each(problems, &format!("{place}.scope"), &known.scopes, "scope", scope.iter());
}

fn check_tenant(problems: &mut Vec<Problem>, place: &str, known: &Known<'_>, tenant: Option<&TenantName>) {
    let tenant = tenant.map(TenantName::as_str).into_iter();
    each(problems, &format!("{place}.tenant"), &known.tenants, "tenant", tenant);
}

fn each<'n>(
    problems: &mut Vec<Problem>,
    place: &str,
    known: &BTreeSet<&str>,
    kind: &str,
    names: impl Iterator<Item = &'n str>,
) {
    for name in names.filter(|name| !name.is_empty() && !known.contains(name)) {
        problems.push(Problem::new(place, not_registered(name, kind, known.iter().copied())));
    }
}

/// A scope is of one kind: the token rules go by it.
fn check_scope_kinds(document: &Document, stored: &Stored, problems: &mut Vec<Problem>) {
    let identity: BTreeSet<&str> = document.identity_scopes.iter().map(|entry| entry.object.name.as_str()).collect();
    for (list, entries, other) in [
        ("identity_scopes", &document.identity_scopes, ScopeKind::Resource),
        ("resource_scopes", &document.resource_scopes, ScopeKind::Identity),
    ] {
        for (index, entry) in entries.iter().enumerate() {
            let name = entry.object.name.as_str();
            let in_both = other == ScopeKind::Identity && identity.contains(name);
            let built_in = BUILT_IN_SCOPES.contains(&name);
            if !built_in && (in_both || stored.scopes.get(name) == Some(&other)) {
                let rule = "is the name of a scope of the other kind";
                problems.push(Problem::new(format!("{list}[{index}].name"), rule));
            }
        }
    }
}

/// Resources and clients share one name space: both authenticate at introspection.
fn check_name_space(document: &Document, stored: &Stored, problems: &mut Vec<Problem>) {
    let resources: BTreeSet<&str> =
        document.resources.iter().map(|entry| entry.object.resource.name.as_str()).collect();
    for (index, entry) in document.clients.iter().enumerate() {
        let name = entry.client.client_id.as_str();
        if resources.contains(name) || stored.resources.contains(name) {
            let rule = "is the name of a resource; clients and resources share one name space";
            problems.push(Problem::new(format!("clients[{index}].client_id"), rule));
        }
    }
    for (index, entry) in document.resources.iter().enumerate() {
        if stored.clients.contains_key(&entry.object.resource.name) {
            let rule = "is the client_id of a client; clients and resources share one name space";
            problems.push(Problem::new(format!("resources[{index}].name"), rule));
        }
    }
}

fn check_duplicates(document: &Document, problems: &mut Vec<Problem>) {
    let scopes = |entries: &[super::document::Entry<crate::protocol::scope::RegisteredScope>]| {
        entries.iter().map(|entry| entry.object.name.clone()).collect()
    };
    let users = document.users.iter().map(|user| {
        let tenant = user.tenant.as_ref().map(TenantName::as_str).unwrap_or_default();
        format!("{tenant}\n{}", user.username.as_deref().unwrap_or_default().to_lowercase())
    });
    let lists: [(&str, &str, Vec<String>); 8] = [
        ("tenants", "name", document.tenants.iter().map(|entry| entry.object.name.clone()).collect()),
        ("identity_scopes", "name", scopes(&document.identity_scopes)),
        ("resource_scopes", "name", scopes(&document.resource_scopes)),
        ("resources", "name", document.resources.iter().map(|entry| entry.object.resource.name.clone()).collect()),
        (
            "identity_providers",
            "name",
            document.identity_providers.iter().map(|entry| entry.object.name.clone()).collect(),
        ),
        (
            "assertion_issuers",
            "issuer",
            document.assertion_issuers.iter().map(|entry| entry.object.issuer.clone()).collect(),
        ),
        ("extension_grants", "name", document.extension_grants.iter().map(|entry| entry.object.name.clone()).collect()),
        ("clients", "client_id", document.clients.iter().map(|entry| entry.client.client_id.to_string()).collect()),
    ];
    for (list, key, names) in lists {
        repeated(problems, list, key, names);
    }
    repeated(problems, "users", "username", users.filter(|name| !name.ends_with('\n')).collect());
    let subjects = document.users.iter().map(|user| user.subject.as_ref().map(ToString::to_string).unwrap_or_default());
    repeated(problems, "users", "sub", subjects.collect());
}

fn repeated(problems: &mut Vec<Problem>, list: &str, key: &str, names: Vec<String>) {
    let mut seen = BTreeMap::new();
    for (index, name) in names.into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        if let Some(first) = seen.get(&name) {
            problems.push(Problem::new(
                format!("{list}[{index}].{key}"),
                format!("is the same as that of {list}[{first}]"),
            ));
        } else {
            seen.insert(name, index);
        }
    }
}
