//! `gatepost audit`: who did what, when and from where; and whether that is still what was written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::input::unread;
use super::operator::Operator;
use super::output::{self, CommandResult, misuse, note, printable, refuse, say};
use super::user;
use crate::audit_heads::heads_in;
use crate::audit_verification::{ChainFinding, ChainVerdict, Verification, Wrong};
use crate::statements::audit_list::{self, EventFilter};
use crate::statements::audit_pages;
use gatepost_protocol::audit::audit_chain::{AuditRow, EVENTS, Head};
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::identifiers::{Subject, in_text};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_store::{Result, Store, installation, users};

const LIMIT: i64 = 100;

pub fn list(invocation: &Invocation) -> CommandResult {
    if invocation.has("--sub") && invocation.has("--user") {
        return misuse("--user and --sub both name whom it is about: give one of them");
    }
    let mut filter = asked(invocation)?;
    let limit = invocation
        .limit()?
        .and_then(|limit| limit.try_into().ok())
        .unwrap_or(LIMIT);
    let operator = Operator::open(invocation)?;
    if let Some(subject) = user::chosen(&operator)? {
        filter.sub = Some(subject.to_string());
    } else if let Some(sub) = &filter.sub {
        check_subject(&operator, sub)?;
    }
    let json = invocation.has("--json");
    if invocation.has("--follow") {
        return follow(&operator, &filter, limit, json);
    }
    show(&audit_list::list(&operator.store, &filter, limit)?, json)
}

/// Which events are asked for; refused where none would ever be found.
fn asked(invocation: &Invocation) -> CommandResult<EventFilter> {
    let filter = EventFilter {
        event: name(invocation, "--event")?,
        client_id: name(invocation, "--client")?,
        sub: name(invocation, "--sub")?,
        since: time(invocation, "--since")?,
        until: time(invocation, "--until")?,
        request_id: None,
        word: invocation.word().map(str::to_lowercase),
    };
    if let Some(event) = &filter.event {
        check_event(event)?;
    }
    if let (Some(since), Some(until)) = (filter.since, filter.until)
        && since >= until
    {
        return misuse("--since must be before --until: nothing lies between");
    }
    Ok(filter)
}

/// What is no name of an event would find nothing for ever.
fn check_event(event: &str) -> CommandResult {
    if EVENTS.contains(&event) {
        return Ok(());
    }
    let shown = event.escape_debug();
    let hint = hint(event, EVENTS);
    let rule = format!(
        "--event \"{shown}\" is no name of an event{hint}; there are {}",
        EVENTS.join(", ")
    );
    misuse(rule)
}

pub fn show(found: &[AuditRow], json: bool) -> CommandResult {
    if json {
        return say(output::pretty(&found.iter().map(value).collect())?);
    }
    let headings = ["AT", "EVENT", "CLIENT_ID", "SUB", "SOURCE", "DETAIL"]
        .map(String::from)
        .to_vec();
    output::table(headings, found.iter().map(cells).collect())
}

fn name(invocation: &Invocation, option: &str) -> CommandResult<Option<String>> {
    match invocation.option(option) {
        Some("") => misuse(format!("{option} is empty; leave it out for all")),
        given => Ok(given.map(str::to_owned)),
    }
}

/// Somebody's, or one that only events know any longer: any other would find nothing for ever.
fn check_subject(operator: &Operator, sub: &str) -> CommandResult {
    let of_subject = EventFilter {
        sub: Some(sub.to_owned()),
        ..EventFilter::default()
    };
    let is_known = users::find(&operator.store, &Subject::new(sub))?.is_some()
        || !audit_list::list(&operator.store, &of_subject, 1)?.is_empty();
    let sub = sub.escape_debug();
    let unknown = format!("no user and no event has the sub \"{sub}\"; --user takes a user name");
    if is_known { Ok(()) } else { refuse(unknown) }
}

fn time(invocation: &Invocation, name: &str) -> CommandResult<Option<Instant>> {
    let Some(text) = invocation.option(name) else {
        return Ok(None);
    };
    let read = timestamp::parse(text).or_else(|| timestamp::parse(&format!("{text}T00:00:00Z")));
    match read {
        Some(time) => Ok(Some(time)),
        None => misuse(format!(
            "{name} must be a time as 2027-01-31T08:00:00Z, or a day as 2027-01-31"
        )),
    }
}

fn print(event: &AuditRow, json: bool) -> CommandResult {
    if json {
        return say(value(event).to_string());
    }
    say(joined(
        "  ",
        cells(event).iter().map(|cell| printable(cell)),
    ))
}

fn cells(event: &AuditRow) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| String::from("-"));
    vec![
        timestamp::format_to_the_microsecond(event.at),
        event.event.clone(),
        or_dash(&event.client_id.as_deref().map(in_text)),
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

const PAUSE: Duration = Duration::from_secs(1);
/// Events are dated a moment before their transaction shows that it writes any.
const LATE: Duration = Duration::from_secs(15);

/// Looks at the same time again for as long as a transaction may still bring events of it.
struct Follower<'a> {
    store: &'a Store,
    filter: &'a EventFilter,
    /// No event from before can come any more.
    since: Instant,
    /// Those seen that are not from before, by time, chain and place.
    seen: BTreeSet<(Instant, String, i64)>,
}

impl Follower<'_> {
    fn see(&mut self, event: &AuditRow) -> bool {
        self.seen.insert((event.at, event.chain.clone(), event.seq))
    }

    /// What is there by now and was not seen before, the earliest first.
    fn look(&mut self) -> Result<Vec<AuditRow>> {
        // Asked before the rows are: whatever shows after them was under way by then, or began
        // later.
        let since = open_since(self.store)?.max(self.since);
        let asked = self
            .filter
            .since
            .map_or(self.since, |asked| asked.max(self.since));
        let window = EventFilter {
            since: Some(asked),
            ..self.filter.clone()
        };
        let mut rows = audit_list::list(self.store, &window, i64::MAX)?;
        rows.retain(|event| self.see(event));
        self.since = since;
        self.seen.retain(|(at, _, _)| *at >= since);
        Ok(rows)
    }
}

/// Nothing that is not committed yet is dated before.
fn open_since(store: &Store) -> Result<Instant> {
    let under_way = audit_list::under_way(store)?;
    Ok(installation::read(store)?.now.minus(under_way + LATE))
}

/// Prints the latest, `limit` at most, then what comes, until nobody reads it or the command is
/// ended. While the database is away it waits, and says so.
fn follow(operator: &Operator, filter: &EventFilter, limit: i64, json: bool) -> CommandResult {
    let store = &operator.store;
    let mut follower = Follower {
        store,
        filter,
        since: open_since(store)?,
        seen: BTreeSet::new(),
    };
    // What is there before the first is printed does not come any more, printed or not.
    follower.look()?;
    for event in audit_list::list(store, filter, limit)? {
        follower.see(&event);
        print(&event, json)?;
    }
    let mut is_away = false;
    loop {
        thread::sleep(PAUSE);
        match follower.look() {
            Ok(rows) => {
                if is_away {
                    note("the database answers again");
                }
                is_away = false;
                for event in &rows {
                    print(event, json)?;
                }
            }
            Err(error) if error.is_passing() => {
                if !is_away {
                    note(format!("{error}; trying again"));
                }
                is_away = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub fn verify(invocation: &Invocation) -> CommandResult {
    // Before the rows: what a line tells of is there by then.
    let heads = invocation.option("--heads").map(read_heads).transpose()?;
    let operator = Operator::open(invocation)?;
    let is_held = heads.is_some();
    let mut verification = Verification::new(heads.unwrap_or_default(), operator.now()?.day());
    audit_pages::read_through(&operator.store, |(row, hash, after)| {
        verification.row(&row, hash, after)
    })?;
    let ChainVerdict {
        rows,
        chains,
        findings,
    } = verification.finish();
    for finding in &findings {
        say(sentence(finding))?;
    }
    if !findings.is_empty() {
        let count = findings.len();
        return refuse!("the audit log is not as it was written; findings: {count}, rows: {rows}");
    }
    say(soundness(rows, chains, is_held))
}

fn read_heads(path: &str) -> CommandResult<Vec<Head>> {
    let read = match path {
        "-" => heads_of(io::stdin().lock()),
        path => File::open(path).and_then(|file| heads_of(BufReader::new(file))),
    };
    let name = if path == "-" {
        String::from("standard input")
    } else {
        printable(path)
    };
    let heads = read.map_err(|error| unread(&name, &error))?;
    if heads.is_empty() {
        return refuse!(
            "no line of {name} tells audit heads: give --heads the log of `gatepost serve`, which \
             tells them each minute"
        );
    }
    Ok(heads)
}

/// A log may hold bytes that are no text.
fn heads_of(log: impl BufRead) -> io::Result<Vec<Head>> {
    let mut heads: Vec<Head> = Vec::new();
    for line in log.split(b'\n') {
        heads.extend(heads_in(&String::from_utf8_lossy(&line?)));
    }
    Ok(heads)
}

/// What is told of a log without findings, held against heads or not.
fn soundness(rows: u64, chains: usize, is_held: bool) -> String {
    let ends = if is_held {
        "and so are the ends that the heads name"
    } else {
        "as far as chains tell; ends need --heads"
    };
    let empty = if is_held {
        "the audit log is empty, and the heads name no row that should be there"
    } else {
        "the audit log is empty: it was emptied, or all of it was older than GATEPOST_AUDIT_DAYS; \
         --heads tells which"
    };
    match rows {
        0 => empty.to_owned(),
        _ => format!("every row is as it was written, {ends}; rows: {rows}, chains: {chains}"),
    }
}

fn sentence(finding: &ChainFinding) -> String {
    let ChainFinding {
        wrong,
        chain,
        seq,
        at,
    } = finding;
    let what = match wrong {
        Wrong::Changed => format!("row {seq} is not what was written there"),
        Wrong::Inserted => format!("row {seq} was put in"),
        Wrong::Removed { to } if to == seq => format!("row {seq} was removed"),
        Wrong::Removed { to } => format!("rows {seq} to {to} were removed"),
        Wrong::ChainRemoved => format!("the whole chain was removed, rows 0 to {seq}"),
        Wrong::HeadsDiffer => {
            format!("heads contradict one another at row {seq}: not all of them are the server's")
        }
    };
    let word = match wrong {
        Wrong::Changed | Wrong::Inserted => "at",
        Wrong::Removed { .. } | Wrong::ChainRemoved | Wrong::HeadsDiffer => "after",
    };
    let when = match at {
        Some(at) => format!(", {word} {}", timestamp::format_to_the_microsecond(*at)),
        None => String::new(),
    };
    format!("chain {}: {what}{when}", printable(chain))
}
