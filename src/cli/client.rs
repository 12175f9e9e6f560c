//! `gatepost client`: registered applications.

mod checkup;
mod removal;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::keys::master::Purpose;
use crate::keys::random;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::{self, timestamp};
use crate::protocol::words::client::{ClientAuthenticationMethod, GrantType};
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::SecretText;
use crate::store::clients::{self, ClientRow, SecretRow};

use super::apply::secrets;
use super::arguments::Invocation;
use super::command::{Command, CommandOption, JSON, Run};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output::{self, time};

pub(super) use checkup::TEST;
pub(super) use removal::REMOVE;

pub(super) const LIST: Command = Command {
    name: "client list",
    values: &[],
    options: &[JSON],
    summary: "Lists all clients.",
    example: "gatepost client list",
    run: Run::Once(list),
};

pub(super) const SHOW: Command = Command {
    name: "client show",
    values: &["CLIENT_ID"],
    options: &[JSON],
    summary: "Shows one client: what is registered, and its secrets' descriptions and ends.",
    example: "gatepost client show web",
    run: Run::Once(show),
};

pub(super) const SECRET: Command = Command {
    name: "client secret",
    values: &["CLIENT_ID"],
    options: &[
        CommandOption { name: "--description", value: Some("TEXT"), meaning: "what it is for" },
        CommandOption {
            name: "--expires-at",
            value: Some("TIME"),
            meaning: "as 2027-01-31T00:00:00Z; never otherwise",
        },
        CommandOption { name: "--replace", value: None, meaning: "remove all its other secrets" },
    ],
    summary: "Makes a new secret for a confidential client and prints it this once; older ones stay valid.",
    example: "gatepost client secret web --replace",
    run: Run::Once(secret),
};

pub(super) const REVOKE: Command = Command {
    name: "client revoke",
    values: &["CLIENT_ID"],
    options: &[],
    summary: "Ends all grants and tokens of a client at once; it can get new ones.",
    example: "gatepost client revoke web",
    run: Run::Once(revoke),
};

fn revoke(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let client_id = ClientId::new(invocation.value(0));
    let mut event = audit_event("client_revoked", json!({}));
    event.client_id = Some(&client_id);
    operator.store.change_registry(|writer| match writer.revoke_client(&client_id, &event)? {
        true => Ok(()),
        false => Err(missing(&client_id)),
    })?;
    output::line(&format!("grants and tokens of {client_id} are over"))
}

/// Names are what somebody typed.
pub(super) fn missing(client_id: &ClientId) -> Failure {
    Failure::Refused(format!("there is no client \"{}\"", client_id.as_str().escape_debug()))
}

fn show(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let client_id = ClientId::new(invocation.value(0));
    let found = clients::find(&operator.store, &client_id)?.value.ok_or_else(|| missing(&client_id))?;
    output::object(invocation.has(JSON.name), &row(&found, &operator).1)
}

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let clients = clients::list(&operator.store)?;
    let rows: Vec<(Vec<String>, Value)> = clients.iter().map(|client| row(client, &operator)).collect();
    output::list(invocation.has("--json"), &["CLIENT_ID", "NAME", "ENABLED", "SECRETS", "GRANT_TYPES", "SCOPE"], &rows)
}

fn row(row: &ClientRow, operator: &Operator) -> (Vec<String>, Value) {
    let text = |key: &str| row.metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cells = vec![
        row.client_id.to_string(),
        text("client_name"),
        String::from(if row.enabled { "yes" } else { "no" }),
        row.secrets.len().to_string(),
        grant_types(row, operator),
        text("scope"),
    ];
    let secrets: Vec<Value> = row
        .secrets
        .iter()
        .map(|secret| json!({"description": secret.description, "expires_at": secret.expires_at.map(time)}))
        .collect();
    let value = json!({
        "client_id": row.client_id.as_str(), "enabled": row.enabled, "secrets": secrets, "metadata": row.metadata,
    });
    (cells, value)
}

/// Those in force, said or not; of a registration that is not served, those it says.
fn grant_types(row: &ClientRow, operator: &Operator) -> String {
    let read = registration::client::from_json(&row.metadata, "", &operator.config.client_defaults);
    let said = || row.metadata.get("grant_types").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&str> = match &read {
        Ok(client) => client.grant_types.iter().map(GrantType::as_str).collect(),
        Err(_) => said().filter_map(Value::as_str).collect(),
    };
    names.join(" ")
}

fn secret(invocation: &Invocation) -> Result<(), Failure> {
    let expires_at = invocation.option("--expires-at").map(read_time).transpose()?;
    let description = invocation.option("--description").unwrap_or_default();
    registration::names::display_text(description).map_err(|rule| Failure::Usage(format!("--description {rule}")))?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let now = operator.now()?;
    if expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Failure::Refused(String::from("--expires-at is in the past: the secret would never be good")));
    }
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::ClientSecret);
    let client_id = ClientId::new(invocation.value(0));
    let text = SecretText::new(format!("gps_{}", BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>())));
    let new = secrets::sealed_text(&text, description, expires_at, &sealer);
    operator.store.change_registry(|writer| {
        let row = writer.client(&client_id)?.ok_or_else(|| missing(&client_id))?;
        check_takes_secrets(&operator, &row)?;
        if invocation.has("--replace") {
            let old: Vec<_> = row.secrets.iter().map(|old| (client_id.as_str(), old.id)).collect();
            writer.remove_secrets(true, &old)?;
        }
        writer.put_secrets(true, &[(client_id.as_str(), new.clone())])?;
        let is_replaced = invocation.has("--replace");
        let old: Vec<Value> = row.secrets.iter().filter(|_| is_replaced).map(told_secret).collect();
        let detail = json!({"replaced": is_replaced, "old": old, "new": told_secret(&new)});
        let mut event = audit_event("client_secret_made", detail);
        event.client_id = Some(&client_id);
        writer.audit(&event)?;
        output::note("This secret is shown only now:");
        output::only_copy(text.expose())
    })
}

fn told_secret(secret: &SecretRow) -> Value {
    json!({"description": secret.description, "expires_at": secret.expires_at.map(timestamp::format)})
}

fn check_takes_secrets(operator: &Operator, row: &ClientRow) -> Result<(), Failure> {
    let client = registration::client::from_json(&row.metadata, "", &operator.config.client_defaults)
        .map_err(|problems| Failure::of_document(&problems))?;
    match client.authentication {
        ClientAuthenticationMethod::AnySecret
        | ClientAuthenticationMethod::ClientSecretBasic
        | ClientAuthenticationMethod::ClientSecretPost => Ok(()),
        ClientAuthenticationMethod::None => Err(Failure::Refused(String::from(
            "this client is public: register token_endpoint_auth_method client_secret_basic or client_secret_post first",
        ))),
        ClientAuthenticationMethod::PrivateKeyJwt => {
            Err(Failure::Refused(String::from("this client authenticates with its own key (private_key_jwt)")))
        }
    }
}

fn read_time(text: &str) -> Result<Instant, Failure> {
    let rule = "--expires-at must be a time as 2027-01-31T00:00:00Z";
    timestamp::parse(text).ok_or_else(|| Failure::Usage(String::from(rule)))
}
