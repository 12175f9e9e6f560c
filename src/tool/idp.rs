//! `gatepost idp`: the identity providers that people can sign in with.

use serde_json::{Map, Value, json};

use super::operator::Operator;
use super::output::{self, CommandResult, FindingsReport};
use super::provider_checkup::{ProviderAnswers, SecretStanding, examine};
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::registration::{ObjectKind, provider};
use gatepost_protocol::upstream::external_url;
use gatepost_protocol::words::identity_provider::{IdentityProvider, ProviderKind};
use gatepost_protocol::words::json::SetMember;
use gatepost_registration::finding::Finding;
use gatepost_server::endpoints::token::assertions::fetch_key_set;
use gatepost_server::endpoints::upstream::fetch_metadata;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::outbound::{Asker, Deadline, Outbound, OutboundRequest};
use gatepost_store::catalogue::{self, CatalogueRow};

pub fn list(operator: &Operator) -> CommandResult {
    let mut objects = Vec::new();
    for stored in registered(operator)? {
        objects.push(shown(&read(&stored)?, stored.sealed_secret.is_some()));
    }
    output::list(operator, objects)
}

fn shown(provider: &IdentityProvider, has_secret: bool) -> Value {
    json!({
        "name": provider.name,
        "display_name": provider.display_name,
        "speaks": match provider.kind {
            ProviderKind::OpenId { .. } => "OpenID Connect",
            ProviderKind::OAuth { .. } => "OAuth 2.0",
        },
        "issuer": provider.authority(),
        "enabled": provider.enabled,
        "provision": provider.provision,
        "account_page": provider.account_page,
        "tenant": provider.tenant,
        "has_secret": has_secret,
    })
}

pub fn known(operator: &Operator) -> CommandResult<Vec<IdentityProvider>> {
    Ok(registered(operator)?
        .iter()
        .filter_map(|row| read(row).ok())
        .collect())
}

pub fn registered(operator: &Operator) -> CommandResult<Vec<CatalogueRow>> {
    let entries = catalogue::load(&operator.store)?.value.entries;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.kind == ObjectKind::IdentityProvider)
        .collect())
}

pub fn read(row: &CatalogueRow) -> CommandResult<IdentityProvider> {
    provider::from_json(&row.document, "")
        .map_err(|problems| output::not_served(&row.name, &problems))
}

/// Whether people can sign in at a provider, as far as it can be asked without one of them.
pub fn test(operator: &Operator) -> CommandResult {
    let name = operator.value(0);
    let row = named(operator, name)?;
    let provider = read(&row)?;
    let sealers = operator.unchecked_sealers()?;
    let outbound = operator.outbound()?;
    let findings = tried(&outbound, &sealers.client_secrets, &row, &provider);
    let mut text = String::from("\n\nRegister there:");
    let mut register = Map::new();
    for [member, words, end] in addresses(&provider) {
        let url = external_url(operator.config.base_url.as_str(), name, end);
        text += &format!("\n  {words}: {url}");
        register.set(member, url);
    }
    let examined = FindingsReport {
        name,
        findings: &findings,
        text: &text,
        member: "register_there",
        value: Value::Object(register),
    };
    examined.print(operator)
}

fn named(operator: &Operator, name: &str) -> CommandResult<CatalogueRow> {
    let all = registered(operator)?;
    if let Some(found) = all.iter().find(|entry| entry.name == name) {
        return Ok(found.clone());
    }
    let nearest = hint(name, all.iter().map(|entry| entry.name.as_str()));
    refuse!(
        "there is no identity provider {}{nearest}",
        name.escape_debug()
    )
}

/// Our addresses that the provider must know: how JSON names each, what the pages of providers call
/// it, and how it ends.
fn addresses(provider: &IdentityProvider) -> Vec<[&'static str; 3]> {
    let mut addresses = vec![["redirect_uri", "redirect URI", "callback"]];
    if let ProviderKind::OpenId { .. } = provider.kind {
        if provider.sign_out {
            addresses.push([
                "post_logout_redirect_uri",
                "post-logout redirect URI",
                "signed-out",
            ]);
        }
        let words = "back-channel logout URI, where it has such a field";
        addresses.push(["backchannel_logout_uri", words, "logout"]);
    }
    addresses
}

pub fn tried(
    outbound: &Outbound,
    sealer: &Sealer,
    row: &CatalogueRow,
    of: &IdentityProvider,
) -> Vec<Finding> {
    let sealed = row.sealed_secret.as_ref();
    let secret = match sealed.map(|sealed| sealer.open(sealed.expose()).is_some()) {
        None => SecretStanding::Absent,
        Some(true) => SecretStanding::Opens,
        Some(false) => SecretStanding::Lost,
    };
    examine(of, secret, &ask(outbound, of))
}

/// Each question has the usual time: what is slow shall show as what it is.
fn ask(outbound: &Outbound, provider: &IdentityProvider) -> ProviderAnswers {
    match &provider.kind {
        ProviderKind::OpenId { issuer } => {
            let asker = Asker::Worker(outbound);
            let metadata =
                fetch_metadata(asker, issuer, Deadline::usual()).map_err(|error| error.to_string());
            let keys = match &metadata {
                Ok(metadata) => Some(
                    fetch_key_set(asker, &metadata.jwks_uri, Deadline::usual())
                        .map_err(|error| error.to_string()),
                ),
                Err(_) => None,
            };
            let metadata = metadata.map(Box::new);
            ProviderAnswers::OpenId { metadata, keys }
        }
        ProviderKind::OAuth {
            token_endpoint,
            userinfo_endpoint,
            emails_endpoint,
            ..
        } => ProviderAnswers::OAuth {
            token: knock(outbound, token_endpoint),
            userinfo: knock(outbound, userinfo_endpoint),
            emails: emails_endpoint.as_deref().map(|url| knock(outbound, url)),
        },
    }
}

fn knock(outbound: &Outbound, url: &str) -> Result<u16, String> {
    match outbound.send(&OutboundRequest::get(url)) {
        Ok(answer) => Ok(answer.status),
        Err(error) => Err(error.to_string()),
    }
}
