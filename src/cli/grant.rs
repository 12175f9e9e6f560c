//! `gatepost grant`: what users allowed clients.

use serde_json::{Value, json};

use crate::protocol::words::grant::Grant;
use crate::protocol::words::identifiers::{ClientId, GrantId, Sid, TenantName};
use crate::store::audit_events::AuditEvent;
use crate::store::{clients, grants};

use super::arguments::Invocation;
use super::command::{Command, CommandOption, JSON, OF_USER, Run, TENANT};
use super::failure::Failure;
use super::operator::Operator;
use super::output::{self, time};
use super::{client, user};

pub(super) const LIST: Command = Command {
    name: "grant list",
    values: &[],
    options: &[
        OF_USER,
        TENANT,
        CommandOption { name: "--client", value: Some("CLIENT_ID"), meaning: "those of this client alone" },
        JSON,
    ],
    summary: "Lists the grants that live: who allowed which client what, and until when.",
    example: "gatepost grant list --user alice",
    run: Run::Once(list),
};

pub(super) const REVOKE: Command = Command {
    name: "grant revoke",
    values: &["GRANT"],
    options: &[],
    summary: "Ends a grant at once, with its refresh token and access tokens.",
    example: "gatepost grant revoke AABRKZ0Yt8b0u4u0g2c3a9l5x7E",
    run: Run::Once(revoke),
};

const PAGE: i64 = 1_000;

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let subject = user::chosen(&operator, invocation)?;
    let client_id = invocation.option("--client").map(ClientId::new);
    if let Some(client_id) = &client_id {
        clients::find(&operator.store, client_id)?.value.ok_or_else(|| client::missing(client_id))?;
    }
    let mut found: Vec<Grant> = Vec::new();
    loop {
        let after = found.last().map(|grant| grant.id);
        let page = grants::list(&operator.store, after, subject.as_ref(), client_id.as_ref(), PAGE)?;
        let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
        found.extend(page);
        if is_last {
            break;
        }
    }
    let rows: Vec<(Vec<String>, Value)> = found.iter().map(row).collect();
    let headings = ["GRANT", "CLIENT_ID", "SUB", "OFFLINE", "LAST USED", "EXPIRES", "SCOPE"];
    output::list(invocation.has("--json"), &headings, &rows)
}

fn row(grant: &Grant) -> (Vec<String>, Value) {
    let cells = vec![
        grant.id.to_text(),
        grant.client_id.to_string(),
        grant.user.subject.to_string(),
        String::from(if grant.is_offline() { "yes" } else { "no" }),
        time(grant.last_used_at),
        time(grant.expires_at),
        grant.scope.to_string(),
    ];
    let value = json!({
        "grant": grant.id.to_text(),
        "client_id": grant.client_id.as_str(),
        "sub": grant.user.subject.as_str(),
        "sid": grant.user.sid.as_ref().map(Sid::as_str),
        "tenant": grant.user.tenant.as_ref().map(TenantName::as_str),
        "scope": grant.scope.to_string(),
        "offline": grant.is_offline(),
        "issued_at": time(grant.issued_at),
        "last_used_at": time(grant.last_used_at),
        "expires_at": time(grant.expires_at),
    });
    (cells, value)
}

fn revoke(invocation: &Invocation) -> Result<(), Failure> {
    let text = invocation.value(0);
    let id = GrantId::from_text(text);
    let id = id.ok_or_else(|| Failure::Usage(String::from("GRANT must be as `gatepost grant list` shows it")))?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let over = || Failure::Refused(String::from("there is no such grant, or it is revoked already"));
    let grant = grants::find(&operator.store, id, None)?.ok_or_else(over)?;
    let event = AuditEvent { event: "grant_revoked", detail: json!({"by": "operator"}), ..AuditEvent::of(&grant) };
    if !grants::revoke(&operator.store, id, None, &event)? {
        return Err(over());
    }
    output::line(&format!("grant {text} and its tokens are over"))
}
