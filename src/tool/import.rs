//! `gatepost import`: what another provider has, as a document for `gatepost apply`. Opens nothing
//! and needs no settings; what was left out goes to standard error.

use serde_json::Value;

use super::arguments::Invocation;
use super::output::{self, CommandResult, Failure, misuse, note, say};
use super::registry;
use gatepost_import::{Import, identity_server, keycloak};
use gatepost_store::clock::time_of_day;

pub fn from_identity_server(invocation: &Invocation) -> CommandResult {
    let issuers = invocation
        .every("--issuer")
        .into_iter()
        .map(issuer)
        .collect::<Result<_, _>>()?;
    print(invocation, |dump| {
        identity_server::read(dump, issuers, time_of_day())
    })
}

/// A scheme, and the issuer that it stands for.
fn issuer(typed: &str) -> CommandResult<(String, String)> {
    match typed.split_once('=') {
        Some((scheme, issuer)) if !scheme.is_empty() && !issuer.is_empty() => {
            Ok((scheme.to_owned(), issuer.to_owned()))
        }
        _ => misuse(format!(
            "--issuer {typed:?} is no SCHEME=ISSUER, as Corp=https://login.example.com"
        )),
    }
}

pub fn from_keycloak(invocation: &Invocation) -> CommandResult {
    print(invocation, |realm| {
        let mut import = keycloak::read(&realm)?;
        if invocation.has("--trust-email") {
            import.trust_addresses();
        }
        Ok(import)
    })
}

fn print(
    invocation: &Invocation,
    read: impl FnOnce(Value) -> Result<Import, String>,
) -> CommandResult {
    let parse = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
    let theirs = registry::read(invocation.value(0), 256 * 1_048_576, parse)?;
    let import = read(theirs).map_err(Failure::Refused)?;
    let (document, lines) = import.finish(invocation.has("--all"));
    say(output::pretty(&document)?)?;
    for line in lines {
        note(output::printable(&line));
    }
    Ok(())
}
