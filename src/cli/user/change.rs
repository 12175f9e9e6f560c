//! `gatepost user role|set|disable|enable|remove`: what changes about somebody.

use serde_json::{Map, Value, json};

use crate::cli::apply::enact::remove_user;
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, JSON, Run, TENANT};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::cli::prompt::{self, YES};
use crate::protocol::registration::plan::FieldChange;
use crate::protocol::registration::user::is_possible_claim;
use crate::protocol::words::identifiers::TenantName;
use crate::store::registry_writer::RegistryWriter;
use crate::store::users::UserRow;

use super::told;

pub(in crate::cli) const ROLE: Command = Command {
    name: "user role",
    values: &["USERNAME"],
    options: &[
        CommandOption { name: "--add", value: Some("ROLE"), meaning: "give this role; may be repeated" },
        CommandOption { name: "--remove", value: Some("ROLE"), meaning: "take this role away; may be repeated" },
        TENANT,
        JSON,
    ],
    summary: "Gives and takes roles (the claim `role`), and lists those that a user has then.",
    example: "gatepost user role alice --add editor --remove admin",
    run: Run::Once(role),
};

pub(in crate::cli) const SET: Command = Command {
    name: "user set",
    values: &["USERNAME", "CLAIM=VALUE..."],
    options: &[TENANT],
    summary: "Changes single claims of a user: a VALUE is JSON if it reads as such, else a text; an empty one takes the claim away.",
    example: "gatepost user set alice email=alice@example.com email_verified=true nickname=",
    run: Run::Once(set),
};

pub(in crate::cli) const DISABLE: Command = Command {
    name: "user disable",
    values: &["USERNAME"],
    options: &[TENANT],
    summary: "Keeps a user from signing in, and ends their sessions, grants and tokens at once.",
    example: "gatepost user disable alice",
    run: Run::Once(disable),
};

pub(in crate::cli) const ENABLE: Command = Command {
    name: "user enable",
    values: &["USERNAME"],
    options: &[TENANT],
    summary: "Lets a user sign in again; what was ended stays ended.",
    example: "gatepost user enable alice",
    run: Run::Once(enable),
};

pub(in crate::cli) const REMOVE: Command = Command {
    name: "user remove",
    values: &["USERNAME"],
    options: &[TENANT, YES],
    summary: "Removes a user for good: all of theirs is over, and their sub is never given to anybody again.",
    example: "gatepost user remove alice",
    run: Run::Once(remove),
};

fn change<T>(
    invocation: &Invocation,
    change: impl FnOnce(&mut RegistryWriter<'_>, UserRow) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let username = invocation.value(0);
    let tenant = invocation.option(TENANT.name).map(TenantName::new);
    operator.store.change_registry(|writer| {
        let found = writer.user_by_name(tenant.as_ref(), username)?;
        change(writer, found.ok_or_else(|| super::missing(username))?)
    })
}

fn write(writer: &mut RegistryWriter<'_>, user: &UserRow, detail: Value) -> Result<(), Failure> {
    writer.update_user(user)?;
    let mut event = audit_event("user_changed", detail);
    event.sub = Some(&user.sub);
    Ok(writer.audit(&event)?)
}

fn disable(invocation: &Invocation) -> Result<(), Failure> {
    set_enabled(invocation, false, "cannot sign in any longer; what was signed in is over")
}

fn enable(invocation: &Invocation) -> Result<(), Failure> {
    set_enabled(invocation, true, "can sign in again")
}

fn set_enabled(invocation: &Invocation, enabled: bool, done: &str) -> Result<(), Failure> {
    let text = change(invocation, |writer, user| {
        if user.enabled == enabled {
            writer.confirm()?;
            let word = if enabled { "enabled" } else { "disabled" };
            return Ok(format!("{} is {word} already", user.designation()));
        }
        let user = UserRow { enabled, ..user };
        write(writer, &user, json!({"old": {"enabled": !enabled}, "new": {"enabled": enabled}}))?;
        Ok(format!("{} {done}", user.designation()))
    })?;
    output::line(&text)
}

fn remove(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = super::named(&operator, invocation, invocation.value(0))?;
    let (name, sub) = (user.designation(), &user.sub);
    prompt::confirm(invocation, &format!("This removes {name} for good; sub {sub} is never given again."))?;
    operator.store.change_registry(|writer| remove_user(writer, sub))?;
    output::line(&format!("removed {name}; sub {sub} is never given again"))
}

fn set(invocation: &Invocation) -> Result<(), Failure> {
    let wanted = wanted_claims(&invocation.values_from(1))?;
    let text = change(invocation, |writer, mut user| {
        let claims = &mut user.claims;
        let mut changes = Vec::new();
        for (name, after) in wanted {
            let before = match &after {
                Some(value) => claims.insert(name.clone(), value.clone()),
                None => claims.remove(&name),
            };
            if before != after {
                changes.push(FieldChange { key: format!("claims.{name}"), before, after });
            }
        }
        if changes.is_empty() {
            return Ok(format!("{} has these claims already", user.designation()));
        }
        let fields: Vec<Value> = changes.iter().map(told::field).collect();
        write(writer, &user, json!({"fields": fields}))?;
        let names: Vec<&str> = changes.iter().filter_map(|change| change.key.strip_prefix("claims.")).collect();
        Ok(format!("changed {} of {}", names.join(", "), user.designation()))
    })?;
    output::line(&text)
}

/// Name and value of each, judged by the rules of a document; `None` takes a claim away.
fn wanted_claims(typed: &[&str]) -> Result<Vec<(String, Option<Value>)>, Failure> {
    let mut wanted = Vec::new();
    for assignment in typed {
        let (name, text) = assignment.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("\"{}\" is no CLAIM=VALUE, as email=alice@example.com", assignment.escape_debug()))
        })?;
        // A telephone number is a text, though it reads as a number.
        let json = serde_json::from_str(text).ok().filter(|value| is_possible_claim(name, value));
        wanted.push((name.to_owned(), (!text.is_empty()).then(|| json.unwrap_or_else(|| json!(text)))));
    }
    let given: Map<String, Value> =
        wanted.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    super::judged(&json!({"username": "anybody", "claims": given}))?;
    Ok(wanted)
}

fn role(invocation: &Invocation) -> Result<(), Failure> {
    let (added, removed) = (invocation.every("--add"), invocation.every("--remove"));
    if let Some(role) = added.iter().find(|role| role.trim().is_empty() || role.chars().any(char::is_control)) {
        return Err(Failure::Usage(format!("--add \"{}\" is not a role", role.escape_debug())));
    }
    let roles = change(invocation, |writer, mut user| {
        let before = roles_of(&user.claims);
        let mut roles: Vec<String> = before.iter().filter(|role| !removed.contains(&role.as_str())).cloned().collect();
        for role in added {
            if !roles.iter().any(|present| present == role) {
                roles.push(role.to_owned());
            }
        }
        if roles != before {
            user.claims.insert(String::from("role"), json!(roles));
            if roles.is_empty() {
                user.claims.remove("role");
            }
            write(writer, &user, json!({"old": {"role": before}, "new": {"role": roles}}))?;
        }
        Ok(roles)
    })?;
    let rows: Vec<(Vec<String>, Value)> = roles.into_iter().map(|role| (vec![role.clone()], json!(role))).collect();
    output::list(invocation.has(JSON.name), &["ROLE"], &rows)
}

/// The claim is a string or an array of them.
fn roles_of(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("role") {
        Some(Value::String(role)) => vec![role.clone()],
        Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}
