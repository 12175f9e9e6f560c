//! `gatepost key import`: a private key that somebody else made.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::rotate::Rotation;
use crate::app::key_keeping::{key_of, times_of};
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output::{self, time};
use crate::cli::reading::unread;
use crate::keys::key_import::{self, ImportedKey};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::words::secret::SecretText;
use crate::store::registry_writer::RegistryWriter;

pub(in crate::cli) const IMPORT: Command = Command {
    name: "key import",
    values: &["FILE"],
    options: &[CommandOption {
        name: "--now",
        value: None,
        meaning: "sign with it after 2 seconds and erase the old private part; otherwise it is announced for longer",
    }],
    summary: "Takes over a private key in PEM: PKCS#8, PKCS#1 or EC; RSA, P-256 or Ed25519 (- reads standard input).",
    example: "gatepost key import - < key.pem",
    run: Run::Once(run),
};

const LONGEST: u64 = 65_536;

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let pem = read(invocation.value(0))?;
    let key = key_import::read(&pem).map_err(Failure::Refused)?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::SigningKey);
    let mut rotation = Rotation::open(&operator, sealer, false)?;
    let (kid, mut line) = operator.store.change_registry(|writer| import(writer, &rotation, &key))?;
    if invocation.has("--now") {
        rotation.hasten(&operator)?;
        line = operator.store.change_registry(|writer| rotation.perform(writer, key.algorithm, Some(&kid)))?;
    }
    output::line(&line)
}

fn import(
    writer: &mut RegistryWriter<'_>,
    rotation: &Rotation,
    key: &ImportedKey,
) -> Result<(String, String), Failure> {
    let rows = writer.signing_keys()?;
    let row = key_of(key.algorithm, &key.pkcs8, rotation.times_of_new_key(), &rotation.sealer)?;
    if rows.iter().any(|present| present.kid == row.kid) {
        return Err(Failure::Refused(format!("signing key {} is there already", row.kid)));
    }
    writer.insert_signing_key(&row)?;
    let replaced = rotation.take_over(writer, &rows, &row)?;
    let alg = key.algorithm.as_str();
    let detail = json!({"kid": row.kid, "alg": alg, "new": times_of(&row), "replaced": replaced});
    writer.audit(&audit_event("signing_key_imported", detail))?;
    let line = format!("{alg}: {} signs from {}", row.kid, time(row.times.activates_at));
    Ok((row.kid, line))
}

/// From standard input, or from a file that nobody else can read: a key that others had is none.
fn read(file: &str) -> Result<SecretText, Failure> {
    let name = if file == "-" { String::from("standard input") } else { file.escape_debug().to_string() };
    let unread = |error: io::Error| unread(&name, &error);
    let mut bytes = Vec::new();
    if file == "-" {
        io::stdin().lock().take(LONGEST).read_to_end(&mut bytes).map_err(unread)?;
    } else {
        check_mode(Path::new(file)).map_err(unread)??;
        fs::File::open(file).map_err(unread)?.take(LONGEST).read_to_end(&mut bytes).map_err(unread)?;
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::Refused(format!("{name} is not PEM")))?;
    Ok(SecretText::new(text))
}

fn check_mode(path: &Path) -> io::Result<Result<(), Failure>> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o037 == 0 {
        return Ok(Ok(()));
    }
    let name = path.display();
    Ok(Err(Failure::Refused(format!("{name}: mode {mode:04o} lets others at it; chmod 0400 it, or 0440"))))
}
