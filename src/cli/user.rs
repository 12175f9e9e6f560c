//! `gatepost user`: people who sign in.

mod change;
mod link;
mod show;
pub(super) mod told;

use serde_json::{Map, Value, json};

use crate::keys::random;
use crate::protocol::registration::{self, Kind, user::UserEntry};
use crate::protocol::words::identifiers::{Subject, TenantName};
use crate::protocol::words::secret::SecretText;
use crate::store::users::{self, UserRow};
use crate::store::{StoreError, catalogue};

use super::arguments::Invocation;
use super::command::{Command, CommandOption, JSON, Run, TENANT};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::{output, prompt};

pub(super) use change::{DISABLE, ENABLE, REMOVE, ROLE, SET};
pub(super) use link::{LINK, UNLINK};
pub(super) use show::SHOW;

pub(super) const ADD: Command = Command {
    name: "user add",
    values: &["USERNAME"],
    options: &[
        TENANT,
        CommandOption { name: "--claims", value: Some("JSON"), meaning: "claims, as {\"name\": \"Alice Smith\"}" },
        CommandOption {
            name: "--sub",
            value: Some("SUB"),
            meaning: "the subject identifier; drawn at random otherwise",
        },
        CommandOption { name: "--no-password", value: None, meaning: "for people who sign in elsewhere" },
    ],
    summary: "Adds a user; asks for the password, or reads it from standard input.",
    example: "gatepost user add alice --tenant acme",
    run: Run::Once(add),
};

pub(super) const PASSWORD: Command = Command {
    name: "user password",
    values: &["USERNAME"],
    options: &[TENANT],
    summary: "Gives a user another password and ends all that was signed in with the old one.",
    example: "gatepost user password alice",
    run: Run::Once(password),
};

pub(super) const LIST: Command = Command {
    name: "user list",
    values: &[],
    options: &[JSON],
    summary: "Lists all users.",
    example: "gatepost user list --json",
    run: Run::Once(list),
};

pub(super) const REVOKE: Command = Command {
    name: "user revoke",
    values: &["USERNAME"],
    options: &[TENANT],
    summary: "Ends a user's sessions, grants and tokens at once; they can sign in again.",
    example: "gatepost user revoke alice",
    run: Run::Once(revoke),
};

const PAGE: i64 = 1_000;

fn add(invocation: &Invocation) -> Result<(), Failure> {
    let entry = judged(&described(invocation)?)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    check_tenant(&operator, entry.tenant.as_ref())?;
    let password_hash = if invocation.has("--no-password") { None } else { Some(hashed_password(&operator)?) };
    let new = UserRow {
        sub: entry.subject.unwrap_or_else(new_subject),
        username: entry.username,
        tenant: entry.tenant,
        password_hash,
        enabled: true,
        claims: entry.claims,
        epoch: 0,
    };
    let mut event = audit_event("user_added", told::added(&new));
    event.sub = Some(&new.sub);
    users::insert(&operator.store, &new, &event).map_err(taken)?;
    output::line(&format!("added {} with sub {}", invocation.value(0), new.sub))
}

fn judged(described: &Value) -> Result<UserEntry, Failure> {
    registration::stored(described, "", registration::user::read).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::Refused(lines.join("\n"))
    })
}

/// The user as a document would describe it, so that one set of rules judges both.
fn described(invocation: &Invocation) -> Result<Value, Failure> {
    let claims = match invocation.option("--claims") {
        None => json!({}),
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Failure::Usage(format!("--claims must be a JSON object: {error}")))?,
    };
    Ok(json!({
        "username": invocation.value(0),
        "tenant": invocation.option("--tenant"),
        "sub": invocation.option("--sub"),
        "claims": claims,
    }))
}

fn check_tenant(operator: &Operator, tenant: Option<&TenantName>) -> Result<(), Failure> {
    let Some(tenant) = tenant else { return Ok(()) };
    let entries = catalogue::load(&operator.store)?.value.entries;
    if entries.iter().any(|entry| entry.kind == Kind::Tenant && entry.name == tenant.as_str()) {
        return Ok(());
    }
    Err(Failure::Refused(format!("there is no tenant {tenant}; `gatepost apply` registers tenants")))
}

pub(super) fn new_subject() -> Subject {
    Subject::of_random(random::bytes())
}

fn hashed_password(operator: &Operator) -> Result<SecretText, Failure> {
    let password = prompt::new_password()?;
    operator.password_hashing()?.hash(&password).map(SecretText::new).map_err(Failure::Refused)
}

fn taken(error: StoreError) -> Failure {
    let StoreError::Taken(constraint) = &error else { return Failure::from(error) };
    let rule = if constraint == "users_pkey" || constraint == "removed_subjects" {
        "that sub is somebody's already, or once was, or is the client_id of a client"
    } else {
        "that user name is taken in this tenant"
    };
    Failure::Refused(String::from(rule))
}

fn password(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let username = invocation.value(0);
    let user = named(&operator, invocation, username)?;
    if user.username.is_none() {
        return Err(Failure::Refused(String::from(
            "that user has no user name to sign in with; they sign in with an identity provider",
        )));
    }
    let hash = hashed_password(&operator)?;
    let mut event = audit_event("password_changed", json!({"by": "operator"}));
    event.sub = Some(&user.sub);
    if !users::set_password(&operator.store, &user.sub, &hash, &event)? {
        return Err(missing(username));
    }
    output::line(&format!("{} has a new password; what was signed in before is over", user.designation()))
}

/// In the tenant that `--tenant` names; one without a name by their subject.
pub(super) fn named(operator: &Operator, invocation: &Invocation, username: &str) -> Result<UserRow, Failure> {
    let tenant = invocation.option("--tenant").map(TenantName::new);
    let found = users::find_for_sign_in(&operator.store, tenant.as_ref(), username, None)?.user;
    if let Some(found) = found {
        return Ok(found.user);
    }
    let of_subject = users::find(&operator.store, &Subject::new(username))?;
    let found = of_subject.filter(|user| user.username.is_none() && user.tenant == tenant);
    found.ok_or_else(|| missing(username))
}

pub(super) fn chosen(operator: &Operator, invocation: &Invocation) -> Result<Option<Subject>, Failure> {
    let username = invocation.option("--user");
    username.map(|username| named(operator, invocation, username).map(|user| user.sub)).transpose()
}

fn missing(username: &str) -> Failure {
    Failure::Refused(format!("there is no user \"{}\" there", username.escape_debug()))
}

fn revoke(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let mut event = audit_event("user_revoked", json!({}));
    event.sub = Some(&user.sub);
    if !users::revoke(&operator.store, &user.sub, &event)? {
        return Err(missing(user.designation()));
    }
    output::line(&format!("sessions, grants and tokens of {} are over", user.designation()))
}

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let mut found: Vec<UserRow> = Vec::new();
    loop {
        let after = found.last().map(|user| user.sub.to_string()).unwrap_or_default();
        let page = users::list(&operator.store, &after, PAGE)?;
        let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
        found.extend(page);
        if is_last {
            break;
        }
    }
    found.sort_by(|one, other| (&one.tenant, &one.username).cmp(&(&other.tenant, &other.username)));
    let rows: Vec<(Vec<String>, Value)> = found.iter().map(row).collect();
    output::list(invocation.has("--json"), &["USERNAME", "TENANT", "SUB", "ENABLED", "PASSWORD"], &rows)
}

fn row(user: &UserRow) -> (Vec<String>, Value) {
    let tenant = user.tenant.as_ref().map(TenantName::as_str);
    let has_password = user.password_hash.is_some();
    let yes = |yes: bool| String::from(if yes { "yes" } else { "no" });
    let cells = vec![
        user.username.clone().unwrap_or_default(),
        tenant.unwrap_or_default().to_owned(),
        user.sub.to_string(),
        yes(user.enabled),
        yes(has_password),
    ];
    let claims: &Map<String, Value> = &user.claims;
    let value = json!({
        "username": user.username, "tenant": tenant, "sub": user.sub.as_str(), "enabled": user.enabled,
        "has_password": has_password, "claims": claims,
    });
    (cells, value)
}
