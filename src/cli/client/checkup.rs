//! `gatepost client test`: whether a client can work, and what to try it with.

use serde_json::json;

use crate::cli::apply::secrets;
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, JSON, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::Operator;
use crate::cli::{findings, idp, output, prompt};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::registration;
use crate::protocol::registration::client_checkup::examine;
use crate::protocol::token::assertion::CLIENT_ASSERTION_TYPE;
use crate::protocol::token::client_secret::{SecretDigest, matches_any};
use crate::protocol::words::client::{Client, ClientAuthenticationMethod, GrantType, SigningAlgorithm};
use crate::protocol::words::finding::Finding;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::store::clients::{self, ClientRow};
use crate::store::signing_keys;

pub(in crate::cli) const TEST: Command = Command {
    name: "client test",
    values: &["CLIENT_ID"],
    options: &[
        CommandOption {
            name: "--secret",
            value: None,
            meaning: "ask for its secret, or read it from standard input, and say whether it is right",
        },
        JSON,
    ],
    summary: "Says whether a client can work, what is weak about it, and what to try it with; exit code 1 when it cannot.",
    example: "gatepost client test web",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::ClientSecret);
    let client_id = ClientId::new(invocation.value(0));
    let row = clients::find(&operator.store, &client_id)?.value.ok_or_else(|| super::missing(&client_id))?;
    let client = registration::client::from_json(&row.metadata, "", &operator.config.client_defaults);
    let client = client.map_err(|problems| {
        let rules: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::Refused(format!("{client_id} is not served: {}", rules.join("; ")))
    })?;
    let now = operator.now()?;
    let digests: Vec<Option<SecretDigest>> = row.secrets.iter().map(|row| secrets::opened(row, &sealer)).collect();
    let mut findings = examine(&client, &digests, &signing(&operator, now)?, &idp::known(&operator)?, now);
    if invocation.has("--secret") {
        findings.push(shown_secret(&row, &digests, now)?);
    }
    print(invocation, &operator, &client, &findings)?;
    findings::require_working(client_id.as_str(), &findings)
}

fn signing(operator: &Operator, now: Instant) -> Result<Vec<SigningAlgorithm>, Failure> {
    let keys = signing_keys::load(&operator.store)?.value;
    let able = keys.iter().filter(|key| key.wrapped_private.is_some() && key.times.activates_at <= now);
    Ok(able.map(|key| key.algorithm).collect())
}

fn shown_secret(row: &ClientRow, digests: &[Option<SecretDigest>], now: Instant) -> Result<Finding, Failure> {
    let shown = prompt::secret("Client secret: ")?;
    let is_shown = |digest: &Option<SecretDigest>| {
        let digest = digest.iter().cloned().collect::<Vec<_>>();
        matches_any(Some(&shown), &digest, now)
    };
    let found = row.secrets.iter().zip(digests).find(|(_, digest)| is_shown(digest));
    Ok(match found {
        Some((secret, _)) if secret.description.is_empty() => Finding::fine("that secret is right"),
        Some((secret, _)) => Finding::fine(format!("that secret is right: \"{}\"", secret.description)),
        None => Finding::broken("that secret is wrong, or has expired"),
    })
}

fn print(invocation: &Invocation, operator: &Operator, client: &Client, findings: &[Finding]) -> Result<(), Failure> {
    let tries = tries(operator.config.base_url.as_str(), client);
    if invocation.has(JSON.name) {
        let all = json!({"findings": findings::json(findings), "try": tries});
        return output::line(&output::pretty(&all)?);
    }
    let mut text = findings::text(findings);
    for one in tries {
        text.push_str(&format!("\n\nTry: {one}"));
    }
    output::line(&text)
}

/// What shows that it works, with what is registered. No secret stands in it: curl asks.
fn tries(issuer: &str, client: &Client) -> Vec<String> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let (client_id, scope) = (encode(client.client_id.as_str()), encode(&client.scope.to_string()));
    let mut tries = Vec::new();
    if let Some(uri) = client.redirect_uris.first().filter(|_| client.allows_grant(&GrantType::AuthorizationCode)) {
        // The challenge of RFC 7636 appendix B.
        tries.push(format!(
            "{issuer}/connect/authorize?client_id={client_id}&response_type=code&scope={scope}&redirect_uri={}\
             &state=try&nonce=try&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
            encode(uri)
        ));
    }
    let shown = credentials(client, &client_id);
    if client.allows_grant(&GrantType::ClientCredentials) {
        tries.push(format!("curl {shown} -d grant_type=client_credentials {issuer}/connect/token"));
    }
    if client.allows_grant(&GrantType::DeviceCode) {
        tries.push(format!("curl {shown} {issuer}/connect/deviceauthorization"));
    }
    tries
}

/// How curl proves the client. Words in capitals are to be filled in.
fn credentials(client: &Client, client_id: &str) -> String {
    match client.authentication {
        ClientAuthenticationMethod::None => format!("-d client_id={client_id}"),
        ClientAuthenticationMethod::AnySecret | ClientAuthenticationMethod::ClientSecretBasic => {
            format!("-u '{client_id}'")
        }
        ClientAuthenticationMethod::ClientSecretPost => format!("-d client_id={client_id} -d client_secret=SECRET"),
        ClientAuthenticationMethod::PrivateKeyJwt => {
            format!("-d client_assertion_type={CLIENT_ASSERTION_TYPE} -d client_assertion=JWT")
        }
    }
}
