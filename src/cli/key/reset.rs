//! `gatepost key reset`: the master secret is lost.

use serde_json::json;

use crate::app::key_keeping::{self, new_key};
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::cli::prompt::{self, YES};
use crate::cli::sealed::Sealed;
use crate::protocol::keys::key_schedule::{KeySeasons, current};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::instant::Instant;
use crate::registry::Sealers;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::SigningKeyRow;

pub(in crate::cli) const RESET: Command = Command {
    name: "key reset",
    values: &[],
    options: &[YES],
    summary: "After the master secret was lost: drops what does not open under the present one, makes new keys, says what is lost.",
    example: "gatepost key reset",
    run: Run::Once(run),
};

const ALSO_LOST: &str = "\
Also lost: every authorization code, refresh token and reference access token that is out; people sign in again, or
applications ask again. Access tokens that are JWTs stay good until they expire. Passwords, sessions and consents stay.";

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealers = Sealers::new(&operator.master_secret()?.derive(&installation.id, &installation.issuer));
    let lost = operator.store.change_registry(|writer| lost(writer, &sealers))?;
    if lost.is_empty() {
        return output::line("everything opens under this master secret: there is nothing to reset");
    }
    // The wrong file looks just like a lost secret.
    prompt::confirm(
        invocation,
        &format!(
            "These do not open under GATEPOST_SECRET_FILE, and would be dropped:\n{}\nWith the right secret they would open. Is \
             it lost for good?",
            lost.join("\n")
        ),
    )?;
    let (now, seasons) = (operator.now()?, key_keeping::seasons(&operator.config));
    // What is dropped is named nowhere else for people.
    operator.store.change_registry(|writer| {
        let lines = reset(writer, &sealers, &seasons, now)?;
        output::only_copy(&lines.join("\n"))
    })
}

fn lost(writer: &mut RegistryWriter<'_>, sealers: &Sealers) -> Result<Vec<String>, Failure> {
    let all = Sealed::all(writer)?;
    Ok(all.iter().filter(|one| !one.opens(sealers)).map(Sealed::name).collect())
}

fn reset(
    writer: &mut RegistryWriter<'_>,
    sealers: &Sealers,
    seasons: &KeySeasons,
    now: Instant,
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for one in Sealed::all(writer)?.into_iter().filter(|one| !one.opens(sealers)) {
        one.erase(writer)?;
        if let Sealed::Key(row, _) = &one {
            end(writer, row, seasons, now)?;
        }
        lines.push(format!("dropped {}{}", one.name(), remedy(&one)));
    }
    let scheduled = key_keeping::scheduled(&writer.signing_keys()?);
    for algorithm in SigningAlgorithm::ALL {
        if current(&scheduled, algorithm, now).is_none() {
            let key = new_key(algorithm, seasons.active_at_once(now), &sealers.signing_keys)?;
            writer.insert_signing_key(&key)?;
            lines.push(format!("made {} key {}, which signs from now on", algorithm.as_str(), key.kid));
        }
    }
    writer.audit(&audit_event("keys_reset", json!({"done": lines})))?;
    lines.push(String::from(ALSO_LOST));
    Ok(lines)
}

/// A key that never signed goes; one that did stays published for what it signed.
fn end(
    writer: &mut RegistryWriter<'_>,
    row: &SigningKeyRow,
    seasons: &KeySeasons,
    now: Instant,
) -> Result<(), Failure> {
    if now <= row.times.activates_at {
        writer.remove_signing_key(&row.kid)?;
    } else if now < row.times.retires_at {
        let times = seasons.retiring_at(row.times.announced_at, row.times.activates_at, now);
        writer.reschedule_signing_key(&row.kid, &times)?;
    }
    Ok(())
}

fn remedy(one: &Sealed) -> String {
    match one {
        Sealed::Key(..) => String::new(),
        Sealed::ClientSecret(client_id, _) => format!(": `gatepost client secret {client_id}` makes another"),
        Sealed::ResourceSecret(..) => String::from(": apply a document that gives it another"),
        Sealed::ProviderSecret(..) => String::from(": apply a document that gives it again"),
    }
}
