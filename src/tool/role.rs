//! `gatepost role remove`: a role goes, from its registration and from everybody who has it.

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::input;
use super::operator::Operator;
use super::output::{CommandResult, note, refuse, say};
use super::statements::role_removal::{
    FormerMember, clients_that_ask, count_members, take_from_some,
};
use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::words::identifiers::in_text;
use gatepost_registrar::events::{audit_event, told_field, user_event};
use gatepost_registrar::statements::catalogue_changes;
use gatepost_registration::plan::FieldChange;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::catalogue;
use gatepost_store::registry_writer::RegistryWriter;

/// The people come first, 500 at a time, and the registration last: whoever is interrupted finds
/// fewer people with the role, and goes on by the same command.
pub(super) fn remove(invocation: &Invocation, operator: &Operator) -> CommandResult {
    let role = invocation.value(0);
    let name = in_text(role);
    let entries = catalogue::load(&operator.store)?.value.entries;
    let is_registered = entries
        .iter()
        .any(|entry| entry.kind == ObjectKind::Role && entry.name == role);
    let members = count_members(&operator.store, role)?;
    if members == 0 && !is_registered {
        return refuse(format!(
            "nobody has the role {name}, and it is not registered"
        ));
    }
    check_settings(operator, role)?;
    let question = format!(
        "This removes the role {name} and takes it from {members} people. It ends nothing else: \
         they stay signed in, and keep their other roles."
    );
    input::confirm(invocation, &question)?;
    let mut taken = 0;
    loop {
        let batch = operator
            .store
            .change_registry(|writer| take_role(writer, role))?;
        if batch == 0 {
            break;
        }
        taken += batch;
        note(format!("taken from {taken} people"));
    }
    operator.store.change_registry(|writer| {
        check_clients(writer, role)?;
        let removed = catalogue_changes::remove_entry(writer, ObjectKind::Role, role)?;
        let Some(old) = removed else {
            return CommandResult::Ok(());
        };
        let detail = json!({"kind": "role", "name": role, "old": old});
        Ok(writer.audit(&audit_event("registration_removed", detail))?)
    })?;
    say(format!("removed the role {name}; {taken} people had it"))
}

/// Answers from how many people it was taken.
fn take_role(writer: &mut RegistryWriter<'_>, role: &str) -> CommandResult<usize> {
    check_clients(writer, role)?;
    let taken = take_from_some(writer, role)?;
    let events: Vec<AuditEvent<'_>> = taken.iter().map(change_of).collect();
    writer.audit_all(&events)?;
    Ok(taken.len())
}

fn change_of(member: &FormerMember) -> AuditEvent<'_> {
    let change = FieldChange {
        key: String::from("claims.role"),
        before: Some(member.before.clone()),
        after: member.after.clone(),
    };
    let detail: Value = json!({"fields": [told_field(&change)]});
    user_event("user_changed", &member.sub, detail)
}

fn check_settings(operator: &Operator, role: &str) -> CommandResult {
    let Some(administration) = &operator.config.administration else {
        return Ok(());
    };
    let name = in_text(role);
    if administration.is_admin_role(role) {
        return refuse(format!("GATEPOST_ADMIN_ROLE names the role {name}"));
    }
    if administration.given_roles.iter().any(|given| given == role) {
        return refuse(format!("GATEPOST_ADMIN_ROLES names the role {name}"));
    }
    Ok(())
}

fn check_clients(writer: &mut RegistryWriter<'_>, role: &str) -> CommandResult {
    let clients = clients_that_ask(writer, role)?;
    if clients.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = clients.iter().map(|client| in_text(client)).collect();
    refuse(format!(
        "\"allowed_roles\" of {} names the role {}: take it out there first",
        named.join(", "),
        in_text(role)
    ))
}
