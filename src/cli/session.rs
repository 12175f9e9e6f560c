//! `gatepost session`: browsers that are signed in.

use serde_json::{Value, json};

use crate::protocol::words::identifiers::{Sid, TenantName};
use crate::protocol::words::session::Session;
use crate::store::sessions;

use super::arguments::Invocation;
use super::command::{Command, JSON, OF_USER, Run, TENANT};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output::{self, time};
use super::user;

pub(super) const LIST: Command = Command {
    name: "session list",
    values: &[],
    options: &[OF_USER, TENANT, JSON],
    summary: "Lists the sessions that live.",
    example: "gatepost session list --user alice",
    run: Run::Once(list),
};

pub(super) const END: Command = Command {
    name: "session end",
    values: &["SID"],
    options: &[],
    summary: "Signs a browser out at once; what may stay without it (offline_access) stays.",
    example: "gatepost session end AABRKZ0Yt8b0u4u0g2c3a9l5x7E",
    run: Run::Once(end),
};

const PAGE: i64 = 1_000;

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let subject = user::chosen(&operator, invocation)?;
    let mut found: Vec<Session> = Vec::new();
    loop {
        let page = sessions::list(&operator.store, found.last(), subject.as_ref(), PAGE)?;
        let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
        found.extend(page);
        if is_last {
            break;
        }
    }
    let rows: Vec<(Vec<String>, Value)> = found.iter().map(row).collect();
    output::list(invocation.has("--json"), &["SID", "SUB", "PROVIDER", "SIGNED IN", "EXPIRES"], &rows)
}

fn row(session: &Session) -> (Vec<String>, Value) {
    let cells = vec![
        session.sid.as_str().to_owned(),
        session.subject.to_string(),
        session.identity_provider().to_owned(),
        time(session.auth_time),
        time(session.expires_at),
    ];
    let value = json!({
        "sid": session.sid.as_str(),
        "sub": session.subject.as_str(),
        "tenant": session.tenant.as_ref().map(TenantName::as_str),
        "identity_provider": session.identity_provider,
        "auth_time": time(session.auth_time),
        "expires_at": time(session.expires_at),
    });
    (cells, value)
}

fn end(invocation: &Invocation) -> Result<(), Failure> {
    let sid = Sid::new(invocation.value(0));
    let day = sid.day();
    let day = day.ok_or_else(|| Failure::Usage(String::from("SID must be as `gatepost session list` shows it")))?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let mut event = audit_event("session_ended", json!({"by": "operator"}));
    event.sid = Some(&sid);
    if !sessions::end(&operator.store, day, &sid, &event)? {
        return Err(Failure::Refused(String::from("there is no such session, or it has ended already")));
    }
    output::line(&format!("session {} is over", sid.as_str()))
}
