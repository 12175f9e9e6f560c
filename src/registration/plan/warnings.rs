//! What somebody should know before a document is applied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Comparison, PlanStep, PlannedChange, allowed_roles};
use crate::contested_claims::{ContestedClaim, contested_claims};
use crate::document::DocumentEntry;
use crate::user::UserEntry;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::registration::catalogue::{identity_scope, resource_scope};
use gatepost_protocol::registration::client::from_json;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::REGISTRATION_WRITE;
use gatepost_protocol::registration::problem::shown;
use gatepost_protocol::registration::stored;
use gatepost_protocol::registration::timestamp::format_day;
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::token::claims::built_in_catalogue;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::legacy_flow::{FlowUse, LEGACY_UNTIL};
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::scope::ScopeSet;

/// The key by which an ID token has the claims of scopes.
const IN_ID_TOKEN: &str = "always_include_user_claims_in_id_token";

/// What those need who read the ID token alone.
pub const UNLESS_ASKED: &str = "software that does not ask UserInfo needs \
                                \"always_include_user_claims_in_id_token\": true";

const SIGN_IN_ANEW: &str = "everybody signs in at each visit (require_bound_session), because \
                            GATEPOST_BOUND_SESSIONS is off";

/// Clients whose names one line has.
const MOST_NAMED: usize = 10;

/// Of clients and users that are added or changed, in the order of the changes.
pub fn warnings(comparison: &Comparison, changes: &[PlannedChange<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut without_names = Vec::new();
    let mut signing_in_anew = Vec::new();
    for change in changes {
        if becomes_administrator(comparison, &change.step) {
            let name = shown(change.step.name());
            warnings.push(format!(
                "user {name} becomes an administrator (GATEPOST_ADMIN_ROLE)"
            ));
        }
        let PlanStep::Put(entry, before) = &change.step else {
            continue;
        };
        if entry.kind != ObjectKind::Client {
            continue;
        }
        let before = before.map(|before| &*before.document);
        if may_write(&entry.document) && !before.is_some_and(may_write) {
            let name = shown(&entry.name);
            let rule = "may change everything that is registered, and so is an operator";
            warnings.push(format!("client {name} {rule} ({REGISTRATION_WRITE})"));
        }
        if entry.document.contains(LEGACY_UNTIL) {
            warnings.extend(endings(comparison, entry));
        }
        if !comparison.bound_sessions
            && requires_bound_session(&entry.document)
            && !before.is_some_and(requires_bound_session)
        {
            signing_in_anew.push(shown(&entry.name));
        }
        if has_no_name_in_id_token(&entry.document) && !before.is_some_and(has_no_name_in_id_token)
        {
            without_names.push(shown(&entry.name));
        }
    }
    if !without_names.is_empty() {
        warnings.push(of_clients(&without_names, UNLESS_ASKED));
    }
    if !signing_in_anew.is_empty() {
        warnings.push(of_clients(&signing_in_anew, SIGN_IN_ANEW));
    }
    warnings.extend(of_roles(&unregistered_roles(comparison, changes)));
    warnings.extend(of_contested_claims(comparison));
    warnings
}

fn becomes_administrator(comparison: &Comparison, step: &PlanStep<'_>) -> bool {
    let Some(administration) = &comparison.administration else {
        return false;
    };
    let is_one = |user: &UserEntry| administration.has_admin_role(&user.claims);
    match step {
        PlanStep::AddUser { entry, .. } => is_one(entry),
        PlanStep::ChangeUser { before, entry, .. } => is_one(entry) && !is_one(before),
        PlanStep::Put(..) | PlanStep::Remove { .. } | PlanStep::RemoveUser { .. } => false,
    }
}

fn may_write(client: &str) -> bool {
    // To parse a client costs more than to look for the name.
    if !client.contains(REGISTRATION_WRITE) {
        return false;
    }
    let client = parse_own(client);
    let scope = client.text("scope");
    let mut names = scope.unwrap_or_default().split(' ');
    names.any(|name| name == REGISTRATION_WRITE)
}

fn requires_bound_session(client: &str) -> bool {
    // To parse a client costs more than to look for the name.
    client.contains("require_bound_session")
        && parse_own(client).get("require_bound_session") == Some(&Value::Bool(true))
}

/// Whether it is an application on a server that asks for people's names or addresses, and does not
/// say whether its ID tokens have them.
fn has_no_name_in_id_token(client: &str) -> bool {
    let is_asked_for = ["profile", "email"]
        .iter()
        .any(|name| client.contains(name));
    // To parse a client costs more than to look for the names.
    if !is_asked_for || client.contains(IN_ID_TOKEN) {
        return false;
    }
    let read = from_json(&parse_own(client), "", &ClientDefaults::default());
    read.is_ok_and(|client| {
        client.is_confidential()
            && client.response_types == BTreeSet::from([ResponseType::CODE])
            && (client.scope.contains("profile") || client.scope.contains("email"))
    })
}

/// One line for all these clients.
fn of_clients(clients: &[String], told: &str) -> String {
    match clients.split_at_checked(MOST_NAMED) {
        Some((named, more)) if !more.is_empty() => {
            let named = named.join(", ");
            format!("client {named} and {} more: {told}", more.len())
        }
        _ => format!("client {}: {told}", clients.join(", ")),
    }
}

/// A line for each claim that two scopes of a client give, with all such clients of the document,
/// changed or not.
fn of_contested_claims(comparison: &Comparison) -> Vec<String> {
    let catalogue = scopes_afterwards(comparison);
    let all: ScopeSet = catalogue.scopes.keys().map(String::as_str).collect();
    // Mostly there is none, and no client needs to be read.
    if contested_claims(&all, &catalogue).is_empty() {
        return Vec::new();
    }
    let mut clients: BTreeMap<ContestedClaim<'_>, Vec<String>> = BTreeMap::new();
    for entry in &comparison.document.entries {
        if entry.kind != ObjectKind::Client {
            continue;
        }
        let client = parse_own(&entry.document);
        let scope = client.text("scope");
        let scope = scope.and_then(ScopeSet::parse).unwrap_or_default();
        for contested in contested_claims(&scope, &catalogue) {
            let of_this = clients.entry(contested).or_default();
            of_this.push(shown(&entry.name));
        }
    }
    clients
        .iter()
        .map(|(contested, clients)| of_clients(clients, &contested.rule()))
        .collect()
}

/// The scopes that there are once the document is applied, and nothing else.
fn scopes_afterwards(comparison: &Comparison) -> Catalogue {
    let mut catalogue = built_in_catalogue();
    let registered = comparison.registered.objects.iter();
    let registered = registered.map(|((kind, _), object)| (*kind, &*object.document));
    let given = comparison.document.entries.iter();
    let given = given.map(|entry| (entry.kind, &*entry.document));
    for (kind, document) in registered.chain(given) {
        let scope = if kind == ObjectKind::IdentityScope {
            stored(&parse_own(document), "", identity_scope)
        } else if kind == ObjectKind::ResourceScope {
            stored(&parse_own(document), "", resource_scope)
        } else {
            continue;
        };
        if let Ok(scope) = scope {
            catalogue.scopes.insert(scope.name.clone(), scope);
        }
    }
    catalogue
}

/// Roles that clients ask for or people have, without being registered.
fn unregistered_roles(comparison: &Comparison, changes: &[PlannedChange<'_>]) -> BTreeSet<String> {
    let mut roles = BTreeSet::new();
    for change in changes {
        match &change.step {
            PlanStep::Put(entry, _) if entry.kind == ObjectKind::Client => {
                roles.extend(allowed_roles(&entry.document));
            }
            PlanStep::AddUser { entry, .. } | PlanStep::ChangeUser { entry, .. } => {
                roles.extend(roles_of(&entry.claims).into_iter().map(str::to_owned));
            }
            PlanStep::Put(..) | PlanStep::Remove { .. } | PlanStep::RemoveUser { .. } => {}
        }
    }
    let given = comparison.document.entries.iter();
    let given = given.filter(|entry| entry.kind == ObjectKind::Role);
    let given: BTreeSet<&str> = given.map(|entry| entry.name.as_str()).collect();
    let needs_no_registration = |role: &String| {
        let administration = comparison.administration.as_ref();
        if administration.is_some_and(|set| set.is_admin_role(role)) {
            return true;
        }
        let key = (ObjectKind::Role, role.clone());
        given.contains(role.as_str()) || comparison.registered.objects.contains_key(&key)
    };
    roles.retain(|role| !needs_no_registration(role));
    roles
}

/// One line for all these roles.
fn of_roles(roles: &BTreeSet<String>) -> Option<String> {
    let named = Vec::from_iter(roles.iter().take(MOST_NAMED).map(|role| shown(role)));
    let more = match roles.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "role {}{more}: not registered (\"roles\"), so that administrators see this name alone",
            named.join(", ")
        )
    })
}

/// The flows that a client will lose, each with its last use.
fn endings(comparison: &Comparison, entry: &DocumentEntry) -> Vec<String> {
    let document = parse_own(&entry.document);
    let Ok(client) = from_json(&document, "", &ClientDefaults::default()) else {
        return Vec::new();
    };
    let Some(last) = client.legacy_until.map(format_day) else {
        return Vec::new();
    };
    let mut endings = Vec::new();
    for flow in client.legacy_flows() {
        let client_id = client.client_id.clone();
        let used = match comparison.flow_uses.get(&FlowUse { client_id, flow }) {
            Some(day) => format!("last used on {}", format_day(*day)),
            None => String::from("no use is known"),
        };
        let name = shown(&entry.name);
        endings.push(format!(
            "client {name}: {} until {last}, {used}",
            flow.as_str()
        ));
    }
    endings
}
