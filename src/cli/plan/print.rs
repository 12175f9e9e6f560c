//! A plan as people and programs read it. Secrets are counted, never shown.

use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::output::{self, printable};
use crate::protocol::registration::plan::{Change, FieldChange, Plan, SecretChanges, Step, Verb};

const LONGEST: usize = 300;

const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const RED: &str = "\u{1b}[31m";
const PLAIN: &str = "\u{1b}[0m";

/// For people: a block for each object, removals first.
pub(super) fn text(plan: &Plan<'_>, colours: bool) -> String {
    let mut lines = Vec::new();
    let removed = plan.count(Verb::Remove);
    if removed > 0 {
        lines.push(format!(
            "--prune removes {removed}; what is removed, its tokens and its secrets do not come back:\n"
        ));
    }
    lines.extend(plan.changes.iter().map(|change| block(change, colours)));
    let unchanged = plan.unchanged;
    lines.push(if plan.changes.is_empty() {
        format!("Nothing would change; {unchanged} unchanged.")
    } else {
        let (added, changed) = (plan.count(Verb::Add), plan.count(Verb::Change));
        format!("\nWould add {added}, change {changed}, remove {removed}; {unchanged} unchanged.")
    });
    lines.join("\n")
}

fn block(change: &Change<'_>, colours: bool) -> String {
    let (sign, colour) = match change.verb {
        Verb::Add => ("+", GREEN),
        Verb::Change => ("~", YELLOW),
        Verb::Remove => ("-", RED),
    };
    let title = format!("{sign} {} {}", change.step.kind().as_str(), printable(change.step.name()));
    let title = format!("{title}{}", subject(&change.step));
    let title = if colours { format!("{colour}{title}{PLAIN}") } else { title };
    let fields = change.fields.iter().map(|field| line(field, change.verb));
    let secrets = secrets(&change.secrets).into_iter().map(|line| format!("    {line}"));
    [title].into_iter().chain(fields).chain(secrets).collect::<Vec<_>>().join("\n")
}

/// Users can have the names of others in other tenants.
fn subject(step: &Step<'_>) -> String {
    match step {
        Step::ChangeUser { subject, .. } | Step::RemoveUser { subject, .. } => format!(" (sub {subject})"),
        Step::AddUser { .. } | Step::Put(_) | Step::Remove { .. } => String::new(),
    }
}

fn line(field: &FieldChange, verb: Verb) -> String {
    let key = printable(&field.key);
    match (&field.before, &field.after) {
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let gone = before.iter().filter(|item| !after.contains(item)).map(|item| format!("-{}", shown(item)));
            let new = after.iter().filter(|item| !before.contains(item)).map(|item| format!("+{}", shown(item)));
            let items: Vec<String> = gone.chain(new).collect();
            format!("    {key}: {}", if items.is_empty() { String::from("another order") } else { items.join(" ") })
        }
        (Some(before), Some(after)) => format!("    {key}: {} -> {}", shown(before), shown(after)),
        (None, Some(after)) if verb == Verb::Add => format!("    {key}: {}", shown(after)),
        (None, Some(after)) => format!("    {key}: (none) -> {}", shown(after)),
        (Some(before), None) => format!("    {key}: {} -> (none)", shown(before)),
        (None, None) => format!("    {key}"),
    }
}

fn shown(value: &Value) -> String {
    let text = printable(&value.to_string());
    if text.chars().count() <= LONGEST {
        return text;
    }
    format!("{}...", text.chars().take(LONGEST).collect::<String>())
}

fn secrets(changes: &SecretChanges) -> Vec<String> {
    let mut lines = Vec::new();
    if !changes.added.is_empty() || !changes.removed.is_empty() {
        lines.push(format!("secrets: {} new, {} removed", changes.added.len(), changes.removed.len()));
    }
    if changes.client_secret.is_some() {
        lines.push(String::from("client_secret: another one"));
    }
    if changes.password {
        lines.push(String::from("password: a new one"));
    }
    lines
}

pub(super) fn json(plan: &Plan<'_>) -> Result<String, Failure> {
    let changes: Vec<Value> = plan.changes.iter().map(change).collect();
    output::pretty(&json!({
        "changes": changes,
        "added": plan.count(Verb::Add),
        "changed": plan.count(Verb::Change),
        "removed": plan.count(Verb::Remove),
        "unchanged": plan.unchanged,
    }))
}

fn change(change: &Change<'_>) -> Value {
    let action = match change.verb {
        Verb::Add => "add",
        Verb::Change => "change",
        Verb::Remove => "remove",
    };
    let fields: Vec<Value> = change
        .fields
        .iter()
        .map(|field| json!({"key": field.key, "before": field.before, "after": field.after}))
        .collect();
    json!({
        "action": action,
        "kind": change.step.kind().as_str(),
        "name": change.step.name(),
        "fields": fields,
        "secrets": {"added": change.secrets.added.len(), "removed": change.secrets.removed.len()},
        "client_secret_changed": change.secrets.client_secret.is_some(),
        "password_changed": change.secrets.password,
    })
}
