//! `gatepost client remove`.

use serde_json::Value;

use crate::cli::apply::enact::remove_clients;
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::Operator;
use crate::cli::output;
use crate::cli::prompt::{self, YES};
use crate::protocol::registration::Kind;
use crate::protocol::words::identifiers::ClientId;
use crate::store::clients;
use crate::store::registry_writer::RegistryWriter;

pub(in crate::cli) const REMOVE: Command = Command {
    name: "client remove",
    values: &["CLIENT_ID"],
    options: &[YES],
    summary: "Removes a client with its secrets and consents; its grants and tokens are over at once.",
    example: "gatepost client remove web",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let client_id = ClientId::new(invocation.value(0));
    clients::find(&operator.store, &client_id)?.value.ok_or_else(|| super::missing(&client_id))?;
    prompt::confirm(invocation, &format!("This removes {client_id} for good, with its secrets and consents."))?;
    operator.store.change_registry(|writer| {
        writer.client(&client_id)?.ok_or_else(|| super::missing(&client_id))?;
        if let Some(who) = who_names(writer, &client_id)? {
            return Err(Failure::Refused(format!("{client_id} is still named by {who}: apply that without it first")));
        }
        remove_clients(writer, &[&client_id])
    })?;
    output::line(&format!("removed {client_id}; what it was given is over"))
}

/// A registration that would be left pointing at nothing.
fn who_names(writer: &mut RegistryWriter<'_>, client_id: &ClientId) -> Result<Option<String>, Failure> {
    let names_it = |kind: Kind, document: &Value| {
        let mut mentions = kind.mentions(document).into_iter();
        mentions.any(|mention| mention.called == Kind::Client.called() && mention.name == client_id.as_str())
    };
    for entry in writer.catalogue()?.entries {
        if names_it(entry.kind, &entry.document) {
            return Ok(Some(format!("{} {}", entry.kind.as_str(), entry.name)));
        }
    }
    let others = writer.clients()?.into_iter().filter(|other| other.client_id != *client_id);
    let mut naming = others.filter(|other| names_it(Kind::Client, &other.metadata));
    Ok(naming.next().map(|other| format!("client {}", other.client_id)))
}
