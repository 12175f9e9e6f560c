//! `gatepost idp test`: whether people can sign in at a provider, as far as it can be asked without one of them.

use serde_json::{Map, Value, json};

use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, JSON, Run};
use crate::cli::failure::Failure;
use crate::cli::findings;
use crate::cli::operator::Operator;
use crate::cli::output;
use crate::endpoints::token::assertions::fetch_key_set;
use crate::endpoints::upstream::fetch_metadata;
use crate::outbound::{Asker, Deadline, Outbound, OutboundRequest};
use crate::protocol::registration::provider::{IdentityProvider, ProviderKind};
use crate::protocol::upstream::checkup::{Asked, SecretStanding, examine};
use crate::protocol::upstream::external_url;
use crate::protocol::words::finding::Finding;
use crate::registry::Sealers;

pub(in crate::cli) const TEST: Command = Command {
    name: "idp test",
    values: &["NAME"],
    options: &[JSON],
    summary: "Asks an identity provider for its metadata and keys and says what is wrong; exit code 1 when nobody can sign in there.",
    example: "gatepost idp test corp",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let row = super::named(&operator, invocation.value(0))?;
    let provider = super::read(&row)?;
    let sealers = Sealers::new(&operator.master_secret()?.derive(&installation.id, &installation.issuer));
    let (allow, ca_file) = (&operator.config.outbound_allow, operator.config.ca_file.as_deref());
    let outbound = Outbound::new(allow, ca_file, 1).map_err(Failure::Configuration)?;
    let sealed = row.sealed_secret.as_ref();
    let secret = match sealed.map(|sealed| sealers.client_secrets.open(sealed.expose()).is_some()) {
        None => SecretStanding::Absent,
        Some(true) => SecretStanding::Opens,
        Some(false) => SecretStanding::Lost,
    };
    let findings = examine(&provider, secret, &ask(&outbound, &provider));
    print(invocation, &operator, &provider, &findings)?;
    findings::require_working(&provider.name, &findings)
}

/// Each question has the usual time: what is slow shall show as what it is.
fn ask(outbound: &Outbound, provider: &IdentityProvider) -> Asked {
    match &provider.kind {
        ProviderKind::OpenId { issuer } => {
            let metadata = fetch_metadata(outbound, issuer, Deadline::usual()).map_err(|error| error.to_string());
            let keys = metadata.as_ref().ok().map(|metadata| {
                fetch_key_set(Asker::Worker(outbound), &metadata.jwks_uri, Deadline::usual())
                    .map_err(|error| error.to_string())
            });
            Asked::OpenId { metadata, keys }
        }
        ProviderKind::OAuth { token_endpoint, userinfo_endpoint, emails_endpoint, .. } => Asked::OAuth {
            token: knock(outbound, token_endpoint),
            userinfo: knock(outbound, userinfo_endpoint),
            emails: emails_endpoint.as_deref().map(|url| knock(outbound, url)),
        },
    }
}

fn knock(outbound: &Outbound, url: &str) -> Result<u16, String> {
    outbound.send(&OutboundRequest::get(url)).map(|answer| answer.status).map_err(|error| error.to_string())
}

fn print(
    invocation: &Invocation,
    operator: &Operator,
    provider: &IdentityProvider,
    findings: &[Finding],
) -> Result<(), Failure> {
    let addresses = addresses(operator.config.base_url.as_str(), provider);
    if invocation.has(JSON.name) {
        let register: Map<String, Value> =
            addresses.into_iter().map(|address| (address.name.to_owned(), json!(address.url))).collect();
        let all = json!({"findings": findings::json(findings), "register_there": register});
        return output::line(&output::pretty(&all)?);
    }
    let mut text = findings::text(findings);
    text.push_str("\n\nRegister there:");
    for Address { words, url, .. } in addresses {
        text.push_str(&format!("\n  {words}: {url}"));
    }
    output::line(&text)
}

/// An address of ours that the provider must know.
struct Address {
    name: &'static str,
    /// As providers' pages call it.
    words: &'static str,
    url: String,
}

fn addresses(base_url: &str, provider: &IdentityProvider) -> Vec<Address> {
    let name = provider.name.as_str();
    let redirect =
        Address { name: "redirect_uri", words: "redirect URI", url: external_url(base_url, name, "callback") };
    let back_channel = || Address {
        name: "backchannel_logout_uri",
        words: "back-channel logout URI, where it has such a field",
        url: external_url(base_url, name, "logout"),
    };
    let signed_out = || Address {
        name: "post_logout_redirect_uri",
        words: "post-logout redirect URI",
        url: external_url(base_url, name, "signed-out"),
    };
    match provider.kind {
        ProviderKind::OAuth { .. } => vec![redirect],
        ProviderKind::OpenId { .. } if provider.sign_out => vec![redirect, signed_out(), back_channel()],
        ProviderKind::OpenId { .. } => vec![redirect, back_channel()],
    }
}
