//! `gatepost key`: signing keys.

mod import;
mod reset;
mod retire;
mod rotate;

use serde_json::{Value, json};

use crate::app::key_keeping;
use crate::protocol::keys::key_schedule::{KeyState, ScheduledKey, standing};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::instant::Instant;
use crate::store::signing_keys::{self, SigningKeyRow};

use super::arguments::Invocation;
use super::command::{Command, JSON, Run};
use super::failure::Failure;
use super::operator::Operator;
use super::output::{self, time};

pub(super) use import::IMPORT;
pub(super) use reset::RESET;
pub(super) use retire::RETIRE;
pub(super) use rotate::ROTATE;

pub(super) const LIST: Command = Command {
    name: "key list",
    values: &[],
    options: &[JSON],
    summary: "Lists the signing keys: what each does, since when, and until when.",
    example: "gatepost key list",
    run: Run::Once(list),
};

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let now = operator.now()?;
    let keys = signing_keys::load(&operator.store)?.value;
    let scheduled = key_keeping::scheduled(&keys);
    let rows: Vec<(Vec<String>, Value)> = keys.iter().map(|key| row(key, &scheduled, now)).collect();
    output::list(invocation.has("--json"), &["KID", "ALG", "STATE", "DOES", "SINCE", "UNTIL"], &rows)
}

fn row(key: &SigningKeyRow, keys: &[ScheduledKey], now: Instant) -> (Vec<String>, Value) {
    let standing = standing(&key.to_core(), keys, now);
    let (state, does) = words(standing.state);
    let until = standing.until.map(time);
    let cells = vec![
        key.kid.clone(),
        key.algorithm.as_str().to_owned(),
        state.to_owned(),
        does.to_owned(),
        time(standing.since),
        until.clone().unwrap_or_else(|| String::from("another follows")),
    ];
    let mut value = json!({
        "kid": key.kid,
        "alg": key.algorithm.as_str(),
        "state": state,
        "since": time(standing.since),
        "until": until,
        "has_private_part": key.wrapped_private.is_some(),
    });
    if let (Some(members), Value::Object(times)) = (value.as_object_mut(), key_keeping::times_of(key)) {
        members.extend(times);
    }
    (cells, value)
}

fn words(state: KeyState) -> (&'static str, &'static str) {
    match state {
        KeyState::Announced => ("announced", "is published, signs next"),
        KeyState::Signing => ("signing", "signs"),
        KeyState::Published => ("published", "is published for what it signed"),
        KeyState::Retired => ("retired", "checks id_token_hint only"),
    }
}

fn algorithms(invocation: &Invocation) -> Result<Vec<SigningAlgorithm>, Failure> {
    let Some(name) = invocation.option("--algorithm") else { return Ok(SigningAlgorithm::ALL.to_vec()) };
    let unknown =
        || Failure::Usage(format!("--algorithm must be RS256, ES256 or EdDSA, not \"{}\"", name.escape_debug()));
    Ok(vec![SigningAlgorithm::from_name(name).ok_or_else(unknown)?])
}
