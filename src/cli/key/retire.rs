//! `gatepost key retire`: a private key leaked.

use serde_json::json;

use super::rotate::Rotation;
use crate::app::key_keeping::{self, new_key};
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::crypto::master::Purpose;
use crate::crypto::sealing::Sealer;
use crate::protocol::key_schedule::{announced, current};
use crate::protocol::nearest::hint;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::SigningKeyRow;

pub(in crate::cli) const RETIRE: Command = Command {
    name: "key retire",
    values: &["KID"],
    options: &[],
    summary: "After a leak: takes a signing key out of the key set at once, refuses all that it signed, and signs with another.",
    example: "gatepost key retire NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::SigningKey);
    let rotation = Rotation::open(&operator, sealer, true)?;
    let successor = operator.store.change_registry(|writer| retire(writer, &rotation, invocation.value(0)))?;
    let mut text = String::from(
        "it is out of the key set, and what it signed is refused here; others refuse it once they read the key set anew",
    );
    if let Some(kid) = successor {
        text.push_str(&format!("\n{kid} signs from now on"));
    }
    output::line(&text)
}

/// Removes the key; answers the one that signs in its place.
fn retire(writer: &mut RegistryWriter<'_>, rotation: &Rotation, kid: &str) -> Result<Option<String>, Failure> {
    let rows = writer.signing_keys()?;
    let Some(leaked) = rows.iter().find(|row| row.kid == kid) else {
        let hint = hint(kid, rows.iter().map(|row| row.kid.as_str()));
        return Err(Failure::Refused(format!("there is no signing key \"{}\"{hint}", kid.escape_debug())));
    };
    let scheduled = key_keeping::scheduled(&rows);
    let signs = current(&scheduled, leaked.algorithm, rotation.now).is_some_and(|signer| signer.kid == kid);
    writer.remove_signing_key(kid)?;
    let successor = if signs { Some(succeed(writer, rotation, leaked, &rows)?) } else { None };
    let detail = json!({"kid": kid, "alg": leaked.algorithm.as_str(), "old": key_keeping::times_of(leaked), "successor": successor});
    writer.audit(&audit_event("signing_key_retired", detail))?;
    Ok(successor)
}

/// The announced key is known to some already; otherwise a new one.
fn succeed(
    writer: &mut RegistryWriter<'_>,
    rotation: &Rotation,
    leaked: &SigningKeyRow,
    rows: &[SigningKeyRow],
) -> Result<String, Failure> {
    let scheduled = key_keeping::scheduled(rows);
    let next = announced(&scheduled, leaked.algorithm, rotation.now);
    if let Some(row) = next.and_then(|next| rows.iter().find(|row| row.kid == next.kid)) {
        let times = rotation.seasons.active_from(row.announced_at, rotation.now);
        writer.reschedule_signing_key(&row.rescheduled(times))?;
        return Ok(row.kid.clone());
    }
    let key = new_key(leaked.algorithm, rotation.times_of_new_key(), &rotation.sealer)?;
    writer.insert_signing_key(&key)?;
    Ok(key.kid)
}
