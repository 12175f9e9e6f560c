//! `gatepost role remove`: a role goes, from its registration and from everybody who has it.

use super::input;
use super::operator::Operator;
use super::output::{CommandResult, Failure, note};
use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::words::identifiers::in_text;
use gatepost_protocol::words::joined::joined;
use gatepost_registrar::role_removal::{take_role, unregister};
use gatepost_registrar::statements::role_removal::{clients_that_ask, count_members};
use gatepost_store::catalogue;
use gatepost_store::registry_writer::RegistryWriter;

/// The people come first, 500 at a time, and the registration last: whoever is interrupted finds
/// fewer people with the role, and goes on by the same command.
pub fn remove(operator: &Operator) -> CommandResult {
    let role = operator.value(0);
    let name = in_text(role);
    let entries = catalogue::load(&operator.store)?.value.entries;
    let is_registered = entries
        .iter()
        .any(|entry| entry.kind == ObjectKind::Role && entry.name == role);
    let members = count_members(&operator.store, role)?;
    if members == 0 && !is_registered {
        return refuse!("nobody has the role {name}, and it is not registered");
    }
    check_settings(operator, role, members)?;
    let question = format!(
        "This removes the role {name} and takes it from {members} people. It ends nothing else: \
         they stay signed in, and keep their other roles."
    );
    input::confirm(operator, &question)?;
    let mut taken = 0;
    let mut is_held = members > 0;
    while is_held {
        let batch = operator.store.change_registry(|writer| {
            check_clients(writer, role)?;
            Ok::<_, Failure>(take_role(writer, role)?)
        })?;
        is_held = batch > 0;
        if is_held {
            taken += batch;
            note(format!("taken from {taken} people"));
        }
    }
    operator.store.change_registry(|writer| {
        check_clients(writer, role)?;
        Ok::<_, Failure>(unregister(writer, role)?)
    })?;
    say!("removed the role {name}; {taken} people had it")
}

/// A role of administrators goes while nobody has it: where one is registered, `plan --prune` names
/// this command.
fn check_settings(operator: &Operator, role: &str, members: i64) -> CommandResult {
    let Some(administration) = &operator.config.administration else {
        return Ok(());
    };
    let name = in_text(role);
    if administration.is_admin_role(role) && members > 0 {
        return refuse!(
            "GATEPOST_ADMIN_ROLE names the role {name}: take it from its {members} people first"
        );
    }
    if administration.given_roles.iter().any(|given| given == role) {
        return refuse!("GATEPOST_ADMIN_ROLES names the role {name}");
    }
    Ok(())
}

fn check_clients(writer: &mut RegistryWriter<'_>, role: &str) -> CommandResult {
    let clients = clients_that_ask(writer, role)?;
    if clients.is_empty() {
        return Ok(());
    }
    let named = joined(", ", clients.iter().map(|client| in_text(client)));
    let role = in_text(role);
    refuse!("\"allowed_roles\" of {named} names the role {role}: take it out there first")
}
