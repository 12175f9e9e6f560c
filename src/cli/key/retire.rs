//! `gatepost key retire`: a private key leaked.

use std::thread;

use serde_json::json;

use super::rotate::{EVERYWHERE, Rotation};
use crate::app::key_keeping;
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::keys::key_schedule::current;
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::nearest::hint;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::SigningKeyRow;

pub(in crate::cli) const RETIRE: Command = Command {
    name: "key retire",
    values: &["KID"],
    options: &[],
    summary: "After a leak: takes a signing key out of the key set, refuses all that it signed, and signs with another.",
    example: "gatepost key retire NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::SigningKey);
    let (kid, mut rotation) = (invocation.value(0), Rotation::open(&operator, sealer, false)?);
    let change = |rotation: &Rotation| operator.store.change_registry(|writer| succeed(writer, rotation, kid));
    let signs = change(&rotation)?;
    if signs {
        // Published everywhere before it signs; and nobody signs with the leaked one any more when that is no longer published.
        rotation.hasten(&operator)?;
        change(&rotation)?;
        thread::sleep(EVERYWHERE);
    }
    let successor = operator.store.change_registry(|writer| retire(writer, &rotation, kid, signs))?;
    let mut text = String::from(
        "it is out of the key set, and what it signed is refused here; others refuse it once they read the key set anew",
    );
    if let Some(kid) = successor {
        text.push_str(&format!("\n{kid} signs from now on"));
    }
    output::line(&text)
}

/// Has the next key announced, or take over, where this one signs; answers whether it does.
fn succeed(writer: &mut RegistryWriter<'_>, rotation: &Rotation, kid: &str) -> Result<bool, Failure> {
    let rows = writer.signing_keys()?;
    let algorithm = find(&rows, kid)?.algorithm;
    let signs = signer(&rows, algorithm, rotation).is_some_and(|signer| signer == kid);
    if signs {
        rotation.perform(writer, algorithm, None)?;
    }
    Ok(signs)
}

fn find<'a>(rows: &'a [SigningKeyRow], kid: &str) -> Result<&'a SigningKeyRow, Failure> {
    rows.iter().find(|row| row.kid == kid).ok_or_else(|| {
        let hint = hint(kid, rows.iter().map(|row| row.kid.as_str()));
        Failure::Refused(format!("there is no signing key \"{}\"{hint}", kid.escape_debug()))
    })
}

fn signer(rows: &[SigningKeyRow], algorithm: SigningAlgorithm, rotation: &Rotation) -> Option<String> {
    current(&key_keeping::scheduled(rows), algorithm, rotation.now).map(|key| key.kid.clone())
}

/// Removes the key; answers the one that signs in its place, where it did.
fn retire(
    writer: &mut RegistryWriter<'_>,
    rotation: &Rotation,
    kid: &str,
    signed: bool,
) -> Result<Option<String>, Failure> {
    let rows = writer.signing_keys()?;
    let leaked = find(&rows, kid)?;
    writer.remove_signing_key(kid)?;
    let successor = signer(&rows, leaked.algorithm, rotation).filter(|_| signed);
    let detail = json!({"kid": kid, "alg": leaked.algorithm.as_str(), "old": key_keeping::times_of(leaked), "successor": successor});
    writer.audit(&audit_event("signing_key_retired", detail))?;
    Ok(successor)
}
