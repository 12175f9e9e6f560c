//! `gatepost access`: who may open which application, for a review.

use super::arguments::Invocation;
use super::client;
use super::operator::Operator;
use super::output::{CommandResult, Failure, say, table};
use super::statements::access::{Behind, COLUMNS, PART, applications, called, openers};
use gatepost_protocol::words::identifiers::ClientId;

/// The columns of the report.
const SHOWN: usize = 8;

/// A part at a time: however many people there are, it holds no more of them.
pub fn report(operator: &Operator) -> CommandResult {
    let store = &operator.store;
    if let Some(client_id) = operator.option("--client") {
        client::named(operator, &ClientId::new(client_id))?;
    }
    let user = operator.option("--user");
    let subs = user.map(|name| called(store, name)).transpose()?;
    if subs.as_ref().is_some_and(Vec::is_empty) {
        let name = user.unwrap_or_default();
        return refuse!("there is no user {name:?}");
    }
    let headings = COLUMNS.map(String::from);
    if operator.has("--csv") {
        print(operator, vec![headings])?;
    }
    for client_id in applications(store, operator.option("--client"))? {
        let mut behind = Behind::default();
        loop {
            let rows = openers(store, &client_id, subs.as_deref(), &behind)?;
            let is_last = rows.len() < PART;
            if let Some([.., sub, role, _, _, tenant]) = rows.last() {
                behind = Behind {
                    role: role.clone(),
                    tenant: tenant.clone(),
                    sub: sub.clone(),
                };
                print(operator, rows)?;
            }
            if is_last {
                break;
            }
        }
    }
    Ok(())
}

fn print(invocation: &Invocation, rows: Vec<[String; 9]>) -> CommandResult {
    let shown = rows.into_iter().map(|row| row.into_iter().take(SHOWN));
    if !invocation.has("--csv") {
        let headings = COLUMNS.iter().take(SHOWN).map(|name| name.to_uppercase());
        return table(headings.collect(), shown.map(Iterator::collect).collect());
    }
    let mut written = csv::Writer::from_writer(Vec::new());
    for row in shown {
        written.write_record(row.map(harmless)).map_err(unwritten)?;
    }
    let written = written.into_inner().map_err(unwritten)?;
    say(String::from_utf8_lossy(&written))
}

/// A spreadsheet takes what begins so for a formula, and may pass over other control characters
/// before it.
fn harmless(mut cell: String) -> String {
    cell.retain(|letter| !letter.is_control() || matches!(letter, '\t' | '\r' | '\n'));
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        format!("'{cell}")
    } else {
        cell
    }
}

fn unwritten(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}
