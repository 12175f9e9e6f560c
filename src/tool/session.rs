//! `gatepost session`, `gatepost grant`, `gatepost revoke`: browsers that are signed in, and what
//! users allowed clients.

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::operator::{Operator, all, await_everywhere};
use super::output::{self, CommandResult, Failure, misuse, refuse, say, time};
use super::{client, input, user};
use crate::statements::everything_revoked;
use gatepost_protocol::token::grant::Grant;
use gatepost_protocol::words::identifiers::{ClientId, GrantId, Sid};
use gatepost_protocol::words::session::Session;
use gatepost_registrar::events::audit_event;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::{grants, sessions};

pub fn list(operator: &Operator) -> CommandResult {
    let subject = user::chosen(operator)?;
    let found = all(operator, |last: Option<&(Session, _)>, most| {
        sessions::list(
            &operator.store,
            last.map(|(session, _)| session),
            subject.as_ref(),
            most,
        )
    })?;
    let shown = found.iter().map(|(session, username)| {
        let is_bound = operator.config.bound_sessions && session.bound_to.is_some();
        shown_session(session, username.as_deref(), is_bound)
    });
    output::list(operator, shown.collect())
}

fn shown_session(session: &Session, username: Option<&str>, is_bound: bool) -> Value {
    json!({
        "sid": session.sid,
        "sub": session.subject,
        "username": username,
        "tenant": session.tenant,
        "identity_provider": session.identity_provider(),
        "source": session.source,
        "user_agent": session.user_agent,
        "bound": is_bound,
        "auth_time": time(session.auth_time),
        "created_at": time(session.created_at),
        "used_at": time(session.used_at),
        "expires_at": time(session.expires_at),
    })
}

pub fn end(invocation: &Invocation) -> CommandResult {
    let sid = Sid::new(invocation.value(0));
    let Some(day) = sid.day() else {
        return misuse("SID must be as `gatepost session list` shows it");
    };
    let operator = Operator::open(invocation)?;
    let event = AuditEvent {
        sid: Some(&sid),
        ..audit_event("session_ended", json!({"by": "operator"}))
    };
    if !sessions::end(&operator.store, day, &sid, &event)? {
        return refuse("there is no such session, or it has ended already");
    }
    say!("session {} is over", sid.as_str())
}

pub fn list_grants(operator: &Operator) -> CommandResult {
    let subject = user::chosen(operator)?;
    let client_id = chosen_client(operator)?;
    let found = all(operator, |last: Option<&(Grant, _)>, most| {
        grants::list(
            &operator.store,
            last.map(|(grant, _)| grant.id),
            subject.as_ref(),
            client_id.as_ref(),
            most,
        )
    })?;
    let shown = found.iter();
    let shown = shown.map(|(grant, username)| shown_grant(grant, username.as_deref()));
    output::list(operator, shown.collect())
}

/// The one that `--client` names, which must be registered.
fn chosen_client(operator: &Operator) -> CommandResult<Option<ClientId>> {
    let client_id = operator.option("--client").map(ClientId::new);
    if let Some(client_id) = &client_id {
        client::named(operator, client_id)?;
    }
    Ok(client_id)
}

fn shown_grant(grant: &Grant, username: Option<&str>) -> Value {
    json!({
        "grant": grant.id.to_text(),
        "client_id": grant.client_id,
        "sub": grant.user.subject,
        "username": username,
        "sid": grant.user.sid,
        "tenant": grant.user.tenant,
        "scope": grant.scope.to_string(),
        "offline": grant.is_offline(),
        "issued_at": time(grant.issued_at),
        "last_used_at": time(grant.last_used_at),
        "expires_at": time(grant.expires_at),
    })
}

pub fn revoke_grant(invocation: &Invocation) -> CommandResult {
    let text = invocation.value(0);
    let Some(id) = GrantId::from_text(text) else {
        return misuse("GRANT must be as `gatepost grant list` shows it");
    };
    let operator = Operator::open(invocation)?;
    let over = || Failure::refused("there is no such grant, or it is revoked already");
    let grant = grants::find(&operator.store, id, None)?.ok_or_else(over)?;
    let event = AuditEvent {
        event: "grant_revoked",
        detail: json!({"by": "operator"}),
        ..AuditEvent::of(&grant)
    };
    if !grants::revoke(&operator.store, id, None, &event)? {
        return Err(over());
    }
    say!("grant {text} and its tokens are over")
}

/// After a leak, or after the database was restored from a copy that does not know the latest
/// revocations.
pub fn revoke_everything(operator: &Operator) -> CommandResult {
    let question = format!(
        "This ends every session, grant and token of {}: everybody signs in again.",
        operator.installation.issuer
    );
    input::confirm(operator, &question)?;
    everything_revoked::revoke_everything(
        &operator.store,
        &audit_event("everything_revoked", json!({})),
    )?;
    say("every session, grant and token until now is over; people sign in again")?;
    everything_revoked::call_all_revoked(&operator.store).or_else(|error| {
        refuse!("{error}; not all clients hear of it yet: run the command again")
    })?;
    await_everywhere();
    Ok(())
}
