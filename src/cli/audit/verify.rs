//! `gatepost audit verify`: reads every row there is, and tells which are not as they were written.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::protocol::audit::audit_chain::Head;
use crate::protocol::audit::audit_heads::heads_in;
use crate::protocol::audit::audit_verification::{Finding, Verdict, Verification, Wrong};
use crate::protocol::registration::timestamp;
use crate::store::audit_events;

use super::super::arguments::Invocation;
use super::super::command::{Command, CommandOption, Run};
use super::super::failure::Failure;
use super::super::operator::Operator;
use super::super::output::{self, printable};
use super::super::reading::unread;

pub(in super::super) const VERIFY: Command = Command {
    name: "audit verify",
    values: &[],
    options: &[CommandOption {
        name: "--heads",
        value: Some("FILE"),
        meaning: "a log of `gatepost serve`, or - for standard input: shows cut ends and missing chains, too",
    }],
    summary: "Finds audit events that were changed, removed or put in, and names them. Exit code 1 when there is one.",
    example: "gatepost audit verify --heads /var/log/gatepost.log",
    run: Run::Once(verify),
};

fn verify(invocation: &Invocation) -> Result<(), Failure> {
    // Before the rows: what a line tells of is there by then.
    let heads = invocation.option("--heads").map(read_heads).transpose()?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let is_held = heads.is_some();
    let mut verification = Verification::new(heads.unwrap_or_default(), operator.now()?.day());
    audit_events::read_through(&operator.store, |(row, hash, after)| verification.row(&row, hash, after))?;
    report(&verification.finish(), is_held)
}

fn read_heads(path: &str) -> Result<Vec<Head>, Failure> {
    let read = match path {
        "-" => heads_of(io::stdin().lock()),
        path => File::open(path).and_then(|file| heads_of(BufReader::new(file))),
    };
    let name = if path == "-" { String::from("standard input") } else { printable(path) };
    let heads = read.map_err(|error| unread(&name, &error))?;
    if heads.is_empty() {
        return Err(Failure::Refused(format!(
            "no line of {name} tells audit heads: give --heads the log of `gatepost serve`, which tells them each minute"
        )));
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

fn report(verdict: &Verdict, is_held: bool) -> Result<(), Failure> {
    let Verdict { rows, chains, findings } = verdict;
    for finding in findings {
        output::line(&sentence(finding))?;
    }
    if !findings.is_empty() {
        let count = findings.len();
        return Err(Failure::Refused(format!(
            "the audit log is not as it was written; findings: {count}, rows: {rows}"
        )));
    }
    let ends =
        if is_held { "and so are the ends that the heads name" } else { "as far as chains tell; ends need --heads" };
    let empty = if is_held {
        "the audit log is empty, and the heads name no row that should be there"
    } else {
        "the audit log is empty: it was emptied, or all of it was older than GATEPOST_AUDIT_DAYS; --heads tells which"
    };
    output::line(&match rows {
        0 => empty.to_owned(),
        _ => format!("every row is as it was written, {ends}; rows: {rows}, chains: {chains}"),
    })
}

fn sentence(finding: &Finding) -> String {
    let Finding { wrong, chain, seq, at } = finding;
    let what = match wrong {
        Wrong::Changed => format!("row {seq} is not what was written there"),
        Wrong::Inserted => format!("row {seq} was put in"),
        Wrong::Removed { to } if to == seq => format!("row {seq} was removed"),
        Wrong::Removed { to } => format!("rows {seq} to {to} were removed"),
        Wrong::ChainRemoved => format!("the whole chain was removed, rows 0 to {seq}"),
        Wrong::HeadsDiffer => format!("heads contradict one another at row {seq}: not all of them are the server's"),
    };
    let when = match (at, wrong) {
        (Some(at), Wrong::Changed | Wrong::Inserted) => format!(", at {}", timestamp::format_to_the_microsecond(*at)),
        (Some(at), Wrong::Removed { .. } | Wrong::ChainRemoved | Wrong::HeadsDiffer) => {
            format!(", after {}", timestamp::format_to_the_microsecond(*at))
        }
        (None, _) => String::new(),
    };
    format!("chain {}: {what}{when}", printable(chain))
}
