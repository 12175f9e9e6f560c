//! The examples of the documentation: what they register is taken as it stands there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gatepost::protocol::registration::kind::ObjectKind;
use serde_json::{Value, json};

use crate::cli_support::Installation;
use crate::support::blocks::pages_below;

/// The JSON blocks of the pages below a directory that are registrations, each with its page.
pub(crate) fn registrations(directory: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for page in pages_below(Path::new(directory)) {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text
            .split("```json\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
        {
            let value: Value = serde_json::from_str(block)
                .unwrap_or_else(|error| panic!("{page:?}: {error}\n{block}"));
            if ObjectKind::ALL
                .iter()
                .any(|kind| value[kind.list()].is_array())
            {
                found.push((page.display().to_string(), value));
            }
        }
    }
    found
}

/// The commands of `gatepost` in the pages, as they are typed, each with its page.
fn commands() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for page in [
        vec![PathBuf::from("README.md")],
        pages_below(Path::new("docs")),
    ]
    .concat()
    {
        for line in std::fs::read_to_string(&page).unwrap().lines() {
            let line = line.trim_start().trim_start_matches("sudo ");
            let begins = |word: &str| {
                line.strip_prefix("gatepost ")
                    .is_some_and(|rest| rest.starts_with(word))
            };
            if line.starts_with("gatepost ") && !begins("serve") {
                found.push((page.display().to_string(), line.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_command_of_the_documentation_can_be_typed() {
    let found = commands();
    assert!(found.len() > 40, "{}", found.len());
    let elsewhere =
        std::env::temp_dir().join(format!("gatepost-documentation-{}", std::process::id()));
    std::fs::create_dir(&elsewhere).unwrap();
    let wrong = found.iter().filter(|(_, line)| {
        let program = Path::new(env!("CARGO_BIN_EXE_gatepost")).parent().unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-c", line])
            .current_dir(&elsewhere)
            .stdin(Stdio::null())
            .env_clear();
        // Nothing that this machine may have installed is touched, as there is a setting.
        bash.env("GATEPOST_LOG", "info");
        // What a loop around the line would say.
        bash.env("event", "factor_added");
        let done = bash
            .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
            .output()
            .unwrap();
        // Without settings nothing is done; a mistake in the words is told before.
        done.status.code() == Some(2)
    });
    let wrong: Vec<_> = wrong.collect();
    std::fs::remove_dir_all(&elsewhere).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Gives an example the secrets that its page leaves to its reader.
pub(crate) fn fill_in_secrets(document: &mut Value) {
    for provider in document["identity_providers"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        provider["client_secret"] = json!("a-secret-of-sixteen");
    }
    without_files(document);
}

/// Secrets in files that no machine of the tests has.
fn without_files(value: &mut Value) {
    match value {
        Value::Object(members) if members.contains_key("file") => {
            *value = json!({"value": "a-secret-of-sixteen"})
        }
        Value::Object(members) => members.values_mut().for_each(without_files),
        Value::Array(items) => items.iter_mut().for_each(without_files),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_registration_of_the_documentation_can_be_applied() {
    let installation = Installation::migrated();
    let examples = registrations("docs");
    assert!(examples.len() > 10, "{}", examples.len());
    let mut refused = Vec::new();
    // grant_extension_sql runs that page, whose function must be there first.
    for (page, mut document) in examples
        .into_iter()
        .filter(|(page, _)| !page.ends_with("own-grants-sql.md"))
    {
        fill_in_secrets(&mut document);
        let planned = installation.run_with(&["plan", "-"], &document.to_string());
        if planned.code != 3 {
            refused.push(format!("{page}: {}{document:#}", planned.stderr));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
