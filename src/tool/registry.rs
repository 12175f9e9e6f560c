//! `gatepost plan`, `apply` and `export`: the registry as a document. `apply` makes it what a
//! document says, in one transaction; applying it again changes nothing.

mod progress;

use std::fs;
use std::io::{self, Read};
use std::process::ExitCode;

use serde_json::Value;

use self::progress::Progress;
use super::arguments::Invocation;
use super::input::{asks, confirm, unread, utf8};
use super::operator::Operator;
use super::output::{self, CommandResult, Failure, misuse, printable, say};
use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::words::identifiers::in_text;
use gatepost_protocol::words::joined::joined;
use gatepost_registrar::{DocumentOrigin, Registrar, comparison, told};
use gatepost_registration::document as exported;
use gatepost_registration::plan::{FieldChange, Plan, PlanStep, PlannedChange, Verb};
use gatepost_registration::strict_json;
use gatepost_server::logging;
use gatepost_server::serve::function_settings;
use gatepost_store::Store;
use gatepost_store::registry_writer::RegistryWriter;

const EXIT_CHANGES: u8 = 3;

/// Prints what `apply` would do, and does nothing.
pub fn plan(invocation: &Invocation) -> CommandResult<ExitCode> {
    logging::start_plainly();
    let json = invocation.has("--json");
    let (text, is_empty) = planned(invocation, |plan| {
        let text = if json {
            output::pretty(&told(plan))?
        } else {
            plan_text(invocation, plan)
        };
        Ok((text, plan.changes.is_empty()))
    })?;
    say(text)?;
    Ok(if is_empty {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_CHANGES)
    })
}

pub fn apply(invocation: &Invocation) -> CommandResult {
    // Asked before the change begins: nobody else waits for the answer.
    if invocation.has("--prune") && asks(invocation) {
        let removed = planned(invocation, |plan| Ok(removals(plan)))?;
        if !removed.is_empty() {
            let shown = joined("\n", removed.iter().take(MOST_LISTED));
            let count = removed.len();
            confirm(
                invocation,
                &format!("{shown}\nThis removes {count} for good, with tokens and secrets."),
            )?;
        }
    }
    let report = with_document(invocation, |operator, registrar, document| {
        let prunes = invocation.has("--prune");
        registrar.applied(document, prunes, |writer, plan| {
            perform(operator, registrar, writer, plan)?;
            Ok(report(invocation, plan))
        })
    })?;
    say(report)
}

fn removals(plan: &Plan<'_>) -> Vec<String> {
    let mut removals = Vec::new();
    for change in &plan.changes {
        if change.verb() == Verb::Remove {
            removals.push(named(change));
        }
    }
    removals
}

fn perform(
    operator: &Operator,
    registrar: &Registrar<'_>,
    writer: &mut RegistryWriter<'_>,
    plan: &Plan<'_>,
) -> CommandResult {
    if plan.changes.is_empty() {
        return Ok(writer.confirm()?);
    }
    let mut progress = Progress::of(plan.changes.len());
    let hashing = operator.password_hashing()?;
    let today = operator.now()?.day();
    let advance = |steps| progress.advance(steps);
    Ok(registrar.enact(writer, plan, &hashing, today, advance)?)
}

fn report(invocation: &Invocation, plan: &Plan<'_>) -> String {
    let mut report = listing(invocation, plan, done).concat();
    let [added, changed, removed] =
        [Verb::Add, Verb::Change, Verb::Remove].map(|verb| plan.count(verb));
    report.push_str(&format!(
        "{added} added, {changed} changed, {} unchanged",
        plan.unchanged
    ));
    if removed > 0 {
        report.push_str(&format!(", {removed} removed"));
    }
    report
}

fn done(change: &PlannedChange<'_>) -> String {
    let done = match change.verb() {
        Verb::Add => "added",
        Verb::Change => "changed",
        Verb::Remove => "removed",
    };
    format!("{done} {}\n", named(change))
}

/// What a change is about.
fn named(change: &PlannedChange<'_>) -> String {
    let step = &change.step;
    let name = in_text(&printable(step.name()));
    format!("{} {name}", step.kind().as_str())
}

/// Tells `tell` what the document that FILE names would change.
fn planned<T>(
    invocation: &Invocation,
    tell: impl FnOnce(&Plan<'_>) -> CommandResult<T>,
) -> CommandResult<T> {
    with_document(invocation, |_, registrar, document| {
        let prunes = invocation.has("--prune");
        registrar.planned(document, prunes, |plan, _| tell(plan))
    })
}

/// Reads the document that FILE names, and opens what it is compared with.
fn with_document<T>(
    invocation: &Invocation,
    act: impl FnOnce(&Operator, &Registrar<'_>, Value) -> CommandResult<T>,
) -> CommandResult<T> {
    let document = read(invocation.value(0), u64::MAX, strict_json::parse)?;
    let operator = Operator::open(invocation)?;
    let sealers = operator.sealers()?;
    let functions = Store::open_for_functions(&function_settings(&operator.config))?;
    let registrar = Registrar {
        config: &operator.config,
        store: &operator.store,
        sealers: &sealers,
        compiled_in_grants: invocation.extension_grants,
        origin: DocumentOrigin::Command {
            functions: &functions,
        },
    };
    act(&operator, &registrar, document)
}

/// Reads and parses it, unless it has more bytes than that; `-` is standard input. The error says
/// which, what is wrong, and where.
pub fn read(
    file: &str,
    most: u64,
    parse: impl FnOnce(&str) -> Result<Value, String>,
) -> CommandResult<Value> {
    let name = called(file);
    let text = text_of(file, most)?;
    if text.trim().is_empty() {
        return refuse!("{name} is empty, and so is not JSON; {{}} is the smallest document");
    }
    let begins = if text.trim_start().starts_with('{') {
        ""
    } else {
        "; a document is an object, and begins with {"
    };
    parse(&text).or_else(|error| refuse!("{name} is not JSON: {error}{begins}"))
}

pub fn called(file: &str) -> String {
    match file {
        "-" => String::from("standard input"),
        file => file.escape_debug().to_string(),
    }
}

/// The same as text, without a byte order mark.
pub fn text_of(file: &str, most: u64) -> CommandResult<String> {
    let name = called(file);
    if file.is_empty() {
        return misuse("FILE is an empty name; - is standard input");
    }
    let bytes = bytes_of(file, most.saturating_add(1));
    let bytes = bytes.map_err(|error| unread(&name, &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return refuse!("{name} has more than {} MiB", most / 1_048_576);
    }
    let mut text = utf8(&name, bytes)?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// At most `most` of them.
pub fn bytes_of(file: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == "-" {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

pub fn export(operator: &Operator) -> CommandResult {
    let document = operator.store.read_registry(|reader| {
        let registered = comparison::registered(reader, None)?;
        let mut users = comparison::all_users(reader)?;
        if operator.has("--identities") {
            comparison::add_identities(reader, &mut users, &[])?;
        }
        Ok::<_, Failure>(exported::document(&registered, &users))
    })?;
    say(output::pretty(&document)?)
}

const MOST_LISTED: usize = 100;

/// What is told of each change; where there are many more, and nobody wants all, of the first, and
/// how many there are by kind.
fn listing(
    invocation: &Invocation,
    plan: &Plan<'_>,
    told: impl Fn(&PlannedChange<'_>) -> String,
) -> Vec<String> {
    let all = plan.changes.len();
    let listed = if invocation.has("--verbose") {
        all
    } else {
        all.min(MOST_LISTED)
    };
    let mut texts: Vec<String> = plan.changes.iter().take(listed).map(told).collect();
    if listed < all {
        texts.push(format!(
            "and {} more (--verbose lists all); {}\n",
            all - listed,
            counts(plan)
        ));
    }
    texts
}

/// How many changes there are of each kind.
fn counts(plan: &Plan<'_>) -> String {
    let mut counts = Vec::new();
    for kind in ObjectKind::ALL {
        let of_kind = plan.changes.iter();
        let count = of_kind.filter(|change| change.step.kind() == kind).count();
        if count > 0 {
            counts.push(format!("{count} in {}", kind.list()));
        }
    }
    counts.join(", ")
}

/// For people: a block for each object, removals first.
fn plan_text(invocation: &Invocation, plan: &Plan<'_>) -> String {
    let mut lines = Vec::new();
    let colours = output::wants_colours();
    let removed = plan.count(Verb::Remove);
    if removed > 0 {
        lines.push(format!(
            "--prune removes {removed}; what is removed, its tokens and its secrets do not come \
             back:\n"
        ));
    }
    lines.extend(listing(invocation, plan, |change| {
        block(change, plan, colours)
    }));
    for warning in plan.warnings.iter().take(MOST_LISTED) {
        lines.push(format!("warning: {warning}"));
    }
    let unchanged = plan.unchanged;
    lines.push(if plan.changes.is_empty() {
        format!("Nothing would change; {unchanged} unchanged.")
    } else {
        let added = plan.count(Verb::Add);
        let changed = plan.count(Verb::Change);
        format!("\nWould add {added}, change {changed}, remove {removed}; {unchanged} unchanged.")
    });
    lines.join("\n")
}

fn block(change: &PlannedChange<'_>, plan: &Plan<'_>, colours: bool) -> String {
    let mut lines = vec![title(change, colours)];
    for field in change.fields() {
        lines.push(line(&field, change.verb()));
    }
    for (role, clients) in plan.opened_by(change) {
        let clients = joined(", ", clients.iter().map(|name| in_text(name)));
        let role = printable(role);
        lines.push(format!("    role {role}: opens {clients} (allowed_roles)"));
    }
    lines.extend(secrets(change));
    lines.join("\n")
}

fn title(change: &PlannedChange<'_>, colours: bool) -> String {
    let (sign, colour) = match change.verb() {
        Verb::Add => ("+", "32"),
        Verb::Change => ("~", "33"),
        Verb::Remove => ("-", "31"),
    };
    let title = format!("{sign} {}", named(change));
    // Users can have the names of others in other tenants.
    let title = match &change.step {
        PlanStep::ChangeUser { subject, .. } | PlanStep::RemoveUser { subject, .. } => {
            format!("{title} (sub {subject})")
        }
        PlanStep::AddUser { .. } | PlanStep::Put(..) | PlanStep::Remove { .. } => title,
    };
    if colours {
        format!("\u{1b}[{colour}m{title}\u{1b}[0m")
    } else {
        title
    }
}

fn secrets(change: &PlannedChange<'_>) -> Vec<String> {
    let secrets = &change.secrets;
    let mut lines = Vec::new();
    if !secrets.added.is_empty() || !secrets.removed.is_empty() {
        lines.push(format!(
            "    secrets: {} new, {} removed",
            secrets.added.len(),
            secrets.removed.len()
        ));
    }
    if secrets.client_secret.is_some() {
        lines.push(String::from("    client_secret: another one"));
    }
    if secrets.password {
        lines.push(String::from("    password: a new one"));
    }
    lines
}

fn line(field: &FieldChange, verb: Verb) -> String {
    let key = printable(&field.key);
    match (&field.before, &field.after) {
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            format!("    {key}: {}", items(before, after))
        }
        (Some(before), Some(after)) => format!("    {key}: {} -> {}", shown(before), shown(after)),
        (None, Some(after)) if verb == Verb::Add => format!("    {key}: {}", shown(after)),
        (None, Some(after)) => format!("    {key}: (none) -> {}", shown(after)),
        (Some(before), None) => format!("    {key}: {} -> (none)", shown(before)),
        (None, None) => format!("    {key}"),
    }
}

fn items(before: &[Value], after: &[Value]) -> String {
    let mut items = Vec::new();
    for item in before {
        if !after.contains(item) {
            items.push(format!("-{}", shown(item)));
        }
    }
    for item in after {
        if !before.contains(item) {
            items.push(format!("+{}", shown(item)));
        }
    }
    if items.is_empty() {
        return String::from("another order");
    }
    items.join(" ")
}

fn shown(value: &Value) -> String {
    let text = printable(&value.to_string());
    if text.chars().count() <= 300 {
        return text;
    }
    format!("{}...", text.chars().take(300).collect::<String>())
}
