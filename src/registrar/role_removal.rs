//! A role that goes: from everybody who has it, and from the registration.

use serde_json::json;

use crate::events::{audit_event, told_field, user_event};
use crate::statements::catalogue_changes;
use crate::statements::role_removal::{FormerMember, take_from_some};
use gatepost_protocol::registration::ObjectKind;
use gatepost_registration::plan::FieldChange;
use gatepost_store::Result;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::registry_writer::RegistryWriter;

/// Takes the role from 500 people, or from all who are left. Answers from how many.
pub fn take_role(writer: &mut RegistryWriter<'_>, role: &str) -> Result<usize> {
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
    let detail = json!({"fields": [told_field(&change)]});
    user_event("user_changed", &member.sub, detail)
}

/// Removes the row of the role, if it has one.
pub fn unregister(writer: &mut RegistryWriter<'_>, role: &str) -> Result {
    let removed = catalogue_changes::remove_entry(writer, ObjectKind::Role, role)?;
    let Some(old) = removed else {
        return Ok(());
    };
    let detail = json!({"kind": "role", "name": role, "old": old});
    writer.audit(&audit_event("registration_removed", detail))
}
