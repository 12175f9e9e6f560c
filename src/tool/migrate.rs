//! `gatepost migrate`: the schema, the installation's row, room for what expires, and the first
//! signing keys.

use postgres::Client;
use serde_json::{Value, json};

use crate::statements::installation_changes;
use crate::statements::schema::{self, Rehearsed};
use crate::statements::user_names::{self, Clash};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_registrar::events::{audit_event, told_field, user_event};
use gatepost_registrar::statements::user_changes;
use gatepost_registration::plan::FieldChange;
use gatepost_server::app::key_keeping;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::Sealers;
use gatepost_store::installation::{self, Installation};
use gatepost_store::migrate::MIGRATIONS;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::users::UserRow;
use gatepost_store::{StoreError, clients, partitions};

use super::arguments::Invocation;
use super::input;
use super::operator::{OpenDatabase, Operator};
use super::output::{CommandResult, Failure, misuse, refuse, say};
use super::sealed::{make_keys, reseal};
use super::user::{judged, not_added};

pub fn run(invocation: &Invocation) -> CommandResult {
    if invocation.has("--check") {
        rehearse(&OpenDatabase::open(invocation)?)?;
        let operator = Operator::open(invocation)?;
        installation::check_lowering(&operator.installation)?;
        return say("The database fits this program.");
    }
    let opened = OpenDatabase::open(invocation)?;
    // Before anything is written: without the secret the keys could not be wrapped.
    opened.master_secret()?;
    let renamings = renamings(invocation)?;
    let issuer = opened.config.base_url.as_str();
    // All of it alone: of several that begin at once, the others find everything made.
    opened.store.administer(|client| {
        schema::alone(client, |client| {
            install(client, invocation, &opened, &renamings)
        })
    })?;
    // What an earlier run did is told as done only where it holds for good.
    opened.store.confirm()?;
    opened
        .store
        .administer(|client| opened.store.committing(client, schema::analyze))?;
    say!("The database is ready for {issuer}.")
}

fn install(
    client: &mut Client,
    invocation: &Invocation,
    opened: &OpenDatabase,
    renamings: &[Renaming],
) -> CommandResult {
    let store = &opened.store;
    for name in schema::migrate_watched(store, client)? {
        say!("applied {name}")?;
    }
    if invocation.has("--rename-issuer") {
        rename_issuer(invocation, opened)?;
    }
    let issuer = opened.config.base_url.as_str();
    let ensured = store.committing(client, |client| {
        installation_changes::ensure(client, random::bytes(), issuer)
    });
    let installed = ensured.map_err(unless_ours)?;
    key_names(opened, &installed, renamings)?;
    let horizons = opened.horizons(clients::longest_lifetimes(store)?.value);
    let today = opened.now()?.day();
    store.committing(client, |client| {
        partitions::make_as_leader(client, &horizons, today)
    })?;
    for kid in make_missing_keys(opened, &opened.sealers_of(&installed)?.signing_keys)? {
        say!("made signing key {kid}")?;
    }
    Ok(())
}

fn rehearse(opened: &OpenDatabase) -> CommandResult {
    let rehearsed = opened
        .store
        .administer(|client| schema::rehearse(client, MIGRATIONS))?;
    for Rehearsed { name, took, told } in rehearsed {
        say!("would apply {name}: {} ms", took.as_millis())?;
        for line in told {
            say!("  {line}")?;
        }
    }
    Ok(())
}

/// What is stored is sealed for the issuer: all of it is sealed anew, in one change.
fn rename_issuer(invocation: &Invocation, opened: &OpenDatabase) -> CommandResult {
    let issuer = opened.config.base_url.as_str();
    let Some(found) = installation::find(&opened.store)? else {
        return Ok(());
    };
    if found.issuer == issuer {
        return say!("{issuer} is its issuer already");
    }
    input::confirm(
        invocation,
        &format!(
            "This renames {} to {issuer}: every code and token ends.",
            found.issuer
        ),
    )?;
    let master = opened.master_secret()?;
    let old = Sealers::new(&master.derive(&found.id, &found.issuer));
    let new = Sealers::new(&master.derive(&found.id, issuer));
    opened.store.change_registry(|writer| {
        reseal(writer, &old, &new)?;
        installation_changes::rename_issuer(writer, issuer)?;
        Ok::<_, Failure>(writer.audit(&audit_event(
            "issuer_renamed",
            json!({"old": found.issuer, "new": issuer}),
        ))?)
    })?;
    say!(
        "renamed {} to {issuer}; every code and token that was out is over",
        found.issuer
    )
}

/// What `--rename` asks for.
struct Renaming {
    sub: Subject,
    username: Option<String>,
}

fn renamings(invocation: &Invocation) -> CommandResult<Vec<Renaming>> {
    let mut renamings = Vec::new();
    for text in invocation.every("--rename") {
        let Some((sub, username)) = text.split_once('=') else {
            return misuse("write --rename SUB=NAME");
        };
        let entry = judged(&json!({"username": username}))?;
        renamings.push(Renaming {
            sub: Subject::new(sub),
            username: entry.username,
        });
    }
    Ok(renamings)
}

/// Where the database turns capitals into other small letters than before, user names and addresses
/// get other keys: all of them, or none where two names would get the same one.
fn key_names(
    opened: &OpenDatabase,
    installed: &Installation,
    renamings: &[Renaming],
) -> CommandResult {
    if installed.lowers_as_before == Some(true) {
        return match renamings {
            [] => Ok(()),
            [..] => refuse(
                "--rename is for names that became one in a restored database, and here none did",
            ),
        };
    }
    let changed = opened.store.change_registry(|writer| {
        // A restore has made the indexes. Otherwise the database itself has changed below them.
        if installed.lowers_as_before == Some(false) {
            user_names::index_users(writer)?;
        }
        for renaming in renamings {
            rename(writer, renaming)?;
        }
        let clashes = user_names::clashes(&mut writer.reader)?;
        if clashes.is_empty() {
            return Ok(user_names::key_names(writer)?);
        }
        let told: String = clashes.iter().map(told_clash).collect();
        refuse!(
            "{told}nothing was changed: name one of them otherwise, by \
             `gatepost migrate --rename SUB=NAME`"
        )
    })?;
    match changed {
        0 => Ok(()),
        count => say!("made the keys of {count} user names anew"),
    }
}

fn rename(writer: &mut RegistryWriter<'_>, renaming: &Renaming) -> CommandResult {
    let Renaming { sub, username } = renaming;
    let missing = || Failure::Refused(format!("--rename: there is no user with sub {sub}"));
    let before = user_changes::user(&mut writer.reader, sub)?.ok_or_else(missing)?;
    let change = FieldChange {
        key: String::from("username"),
        before: before.username.map(Value::from),
        after: username.clone().map(Value::from),
    };
    let renamed = UserRow {
        username: username.clone(),
        password_hash: None,
        ..before
    };
    user_changes::update_user(writer, &renamed).map_err(not_added)?;
    let detail = json!({"fields": [told_field(&change)]});
    Ok(writer.audit(&user_event("user_changed", sub, detail))?)
}

fn told_clash(clash: &Clash) -> String {
    let mut told = Vec::new();
    for (sub, username) in clash.subs.iter().zip(&clash.usernames) {
        told.push(format!("{sub} ({})", username.escape_debug()));
    }
    format!("these have one user name here: {}\n", told.join(", "))
}

/// A database of another issuer is a matter of settings.
fn unless_ours(error: StoreError) -> Failure {
    if let StoreError::Refused(text) = error {
        Failure::Configuration(text)
    } else {
        Failure::from(error)
    }
}

/// One key per algorithm that has none; signing at once, as nobody can hold an older key set yet.
fn make_missing_keys(opened: &OpenDatabase, sealer: &Sealer) -> CommandResult<Vec<String>> {
    let times = key_keeping::seasons(&opened.config).active_at_once(opened.now()?);
    opened.store.change_registry(|writer| {
        let present = writer.reader.signing_keys()?;
        let lacks = |algorithm| present.iter().all(|key| key.algorithm != algorithm);
        let mut made = Vec::new();
        for key in make_keys(writer, sealer, times, lacks)? {
            let alg = key.algorithm.as_str();
            let detail = json!({"kid": key.kid, "alg": alg, "new": key_keeping::times_of(&key)});
            writer.audit(&audit_event("signing_key_made", detail))?;
            made.push(format!("{} ({alg})", key.kid));
        }
        Ok(made)
    })
}
