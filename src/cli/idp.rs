//! `gatepost idp`: the identity providers that people can sign in with.

mod checkup;

use serde_json::{Value, json};

use crate::protocol::registration::provider::{IdentityProvider, ProviderKind};
use crate::protocol::registration::{self, Kind};
use crate::protocol::words::identifiers::TenantName;
use crate::protocol::words::nearest::hint;
use crate::store::catalogue::{self, CatalogueRow};

use super::arguments::Invocation;
use super::command::{Command, JSON, Run};
use super::failure::Failure;
use super::operator::Operator;
use super::output;

pub(super) use checkup::TEST;

pub(super) const LIST: Command = Command {
    name: "idp list",
    values: &[],
    options: &[JSON],
    summary: "Lists the identity providers that people can sign in with.",
    example: "gatepost idp list",
    run: Run::Once(list),
};

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let mut rows = Vec::new();
    for stored in registered(&operator)? {
        rows.push(row(&read(&stored)?, stored.sealed_secret.is_some()));
    }
    let headings = ["NAME", "SPEAKS", "ISSUER", "ENABLED", "PROVISIONS", "TENANT", "SECRET"];
    output::list(invocation.has(JSON.name), &headings, &rows)
}

fn row(provider: &IdentityProvider, has_secret: bool) -> (Vec<String>, Value) {
    let yes = |is_so: bool| String::from(if is_so { "yes" } else { "no" });
    let speaks = match provider.kind {
        ProviderKind::OpenId { .. } => "OpenID Connect",
        ProviderKind::OAuth { .. } => "OAuth 2.0",
    };
    let tenant = provider.tenant.as_ref().map(TenantName::as_str);
    let cells = vec![
        provider.name.clone(),
        String::from(speaks),
        provider.authority().to_owned(),
        yes(provider.enabled),
        yes(provider.provision),
        tenant.unwrap_or_default().to_owned(),
        yes(has_secret),
    ];
    let value = json!({
        "name": provider.name,
        "display_name": provider.display_name,
        "speaks": speaks,
        "issuer": provider.authority(),
        "enabled": provider.enabled,
        "provision": provider.provision,
        "account_page": provider.account_page,
        "tenant": tenant,
        "has_secret": has_secret,
    });
    (cells, value)
}

pub(super) fn known(operator: &Operator) -> Result<Vec<IdentityProvider>, Failure> {
    Ok(registered(operator)?.iter().filter_map(|row| read(row).ok()).collect())
}

fn registered(operator: &Operator) -> Result<Vec<CatalogueRow>, Failure> {
    let entries = catalogue::load(&operator.store)?.value.entries;
    Ok(entries.into_iter().filter(|entry| entry.kind == Kind::IdentityProvider).collect())
}

fn named(operator: &Operator, name: &str) -> Result<CatalogueRow, Failure> {
    let mut all = registered(operator)?;
    match all.iter().position(|entry| entry.name == name) {
        Some(place) => Ok(all.swap_remove(place)),
        None => {
            let nearest = hint(name, all.iter().map(|entry| entry.name.as_str()));
            Err(Failure::Refused(format!("there is no identity provider {}{nearest}", name.escape_debug())))
        }
    }
}

fn read(row: &CatalogueRow) -> Result<IdentityProvider, Failure> {
    registration::provider::from_json(&row.document, "").map_err(|problems| {
        let rules: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::Refused(format!("{} is not served: {}", row.name, rules.join("; ")))
    })
}
