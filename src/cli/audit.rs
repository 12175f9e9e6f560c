//! `gatepost audit`: who did what, when and from where; and whether that is still what was written.

mod follow;
mod verify;

use serde_json::{Value, json};

pub(super) use verify::VERIFY;

use follow::follow;

use crate::protocol::audit::audit_chain::{AuditRow, EVENTS};
use crate::protocol::registration::timestamp;
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::nearest::hint;
use crate::store::audit_events::{self, EventFilter};
use crate::store::users;

use super::arguments::Invocation;
use super::command::{Command, CommandOption, JSON, Run, TENANT};
use super::failure::Failure;
use super::operator::Operator;
use super::output::{self, printable};
use super::user;

pub(super) const LIST: Command = Command {
    name: "audit list",
    values: &[],
    options: &[
        CommandOption { name: "--event", value: Some("NAME"), meaning: "these alone, as sign_in_failed" },
        CommandOption { name: "--client", value: Some("CLIENT_ID"), meaning: "those about this client alone" },
        CommandOption { name: "--user", value: Some("USERNAME"), meaning: "those about this user alone" },
        TENANT,
        CommandOption { name: "--sub", value: Some("SUBJECT"), meaning: "those about this user, also after their end" },
        CommandOption { name: "--since", value: Some("TIME"), meaning: "not before, as 2027-01-31T08:00:00Z" },
        CommandOption { name: "--until", value: Some("TIME"), meaning: "before" },
        CommandOption { name: "--limit", value: Some("NUMBER"), meaning: "the latest so many; 100 unless told" },
        CommandOption { name: "--follow", value: None, meaning: "stay, and print what comes, a line each" },
        JSON,
    ],
    summary: "Lists what happened: the latest events, the earliest of them first.",
    example: "gatepost audit list --event sign_in_failed --since 2027-01-31T08:00:00Z",
    run: Run::Once(list),
};

const LIMIT: i64 = 100;
/// Listed at most: all of it is held at once.
const MOST: i64 = 100_000;

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let mut filter = filter(invocation)?;
    let limit = limit(invocation)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    if let Some(subject) = user::chosen(&operator, invocation)? {
        filter.sub = Some(subject.to_string());
    } else if let Some(sub) = &filter.sub {
        check_subject(&operator, sub)?;
    }
    if invocation.has("--follow") {
        return follow(&operator, &filter, limit, invocation.has("--json"));
    }
    let found = audit_events::list(&operator.store, &filter, limit)?;
    let rows: Vec<(Vec<String>, Value)> = found.iter().map(|event| (cells(event), value(event))).collect();
    output::list(invocation.has("--json"), &["AT", "EVENT", "CLIENT_ID", "SUB", "SOURCE", "DETAIL"], &rows)
}

fn filter(invocation: &Invocation) -> Result<EventFilter, Failure> {
    if invocation.has("--sub") && invocation.has("--user") {
        return Err(Failure::Usage(String::from("--user and --sub both name whom it is about: give one of them")));
    }
    let filter = EventFilter {
        event: name(invocation, "--event")?,
        client_id: name(invocation, "--client")?,
        sub: name(invocation, "--sub")?,
        since: time(invocation, "--since")?,
        until: time(invocation, "--until")?,
    };
    check_event(filter.event.as_deref())?;
    match (filter.since, filter.until) {
        (Some(since), Some(until)) if since >= until => {
            Err(Failure::Usage(String::from("--since must be before --until: nothing lies between")))
        }
        _ => Ok(filter),
    }
}

fn name(invocation: &Invocation, option: &str) -> Result<Option<String>, Failure> {
    match invocation.option(option) {
        Some("") => Err(Failure::Usage(format!("{option} is empty; leave it out for all"))),
        given => Ok(given.map(str::to_owned)),
    }
}

/// What is no name of an event would find nothing for ever.
fn check_event(event: Option<&str>) -> Result<(), Failure> {
    let Some(event) = event.filter(|event| !EVENTS.contains(event)) else { return Ok(()) };
    let (shown, hint) = (event.escape_debug(), hint(event, EVENTS));
    Err(Failure::Usage(format!("--event \"{shown}\" is no name of an event{hint}; there are {}", EVENTS.join(", "))))
}

/// Somebody's, or one that only events know any longer: any other would find nothing for ever.
fn check_subject(operator: &Operator, sub: &str) -> Result<(), Failure> {
    let of_subject = EventFilter { sub: Some(sub.to_owned()), ..EventFilter::default() };
    let is_known = users::find(&operator.store, &Subject::new(sub))?.is_some()
        || !audit_events::list(&operator.store, &of_subject, 1)?.is_empty();
    let sub = sub.escape_debug();
    let unknown = format!("no user and no event has the sub \"{sub}\"; --user takes a user name");
    if is_known { Ok(()) } else { Err(Failure::Refused(unknown)) }
}

fn time(invocation: &Invocation, name: &str) -> Result<Option<Instant>, Failure> {
    let Some(text) = invocation.option(name) else { return Ok(None) };
    let read = timestamp::parse(text).or_else(|| timestamp::parse(&format!("{text}T00:00:00Z")));
    let unread = || Failure::Usage(format!("{name} must be a time as 2027-01-31T08:00:00Z, or a day as 2027-01-31"));
    read.map(Some).ok_or_else(unread)
}

fn limit(invocation: &Invocation) -> Result<i64, Failure> {
    let Some(text) = invocation.option("--limit") else { return Ok(LIMIT) };
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| Failure::Usage(format!("--limit must be a number from 1 to {MOST}")))
}

fn print(event: &AuditRow, json: bool) -> Result<(), Failure> {
    if json {
        return output::line(&value(event).to_string());
    }
    let cells: Vec<String> = cells(event).iter().map(|cell| printable(cell)).collect();
    output::line(&cells.join("  "))
}

fn cells(event: &AuditRow) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| String::from("-"));
    vec![
        timestamp::format_to_the_microsecond(event.at),
        event.event.clone(),
        or_dash(&event.client_id),
        or_dash(&event.sub),
        or_dash(&event.source),
        event.detail.clone(),
    ]
}

fn value(event: &AuditRow) -> Value {
    json!({
        "at": timestamp::format_to_the_microsecond(event.at),
        "event": event.event,
        "client_id": event.client_id,
        "sub": event.sub,
        "sid": event.sid,
        "source": event.source,
        "request_id": event.request_id,
        "detail": serde_json::from_str(&event.detail).unwrap_or(Value::Null),
        "chain": event.chain,
        "seq": event.seq,
    })
}
