//! `gatepost client`: registered applications.

use std::net::{IpAddr, ToSocketAddrs};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::arguments::Invocation;
use super::input;
use super::operator::{Operator, await_everywhere};
use super::output::{self, CommandResult, Failure, FindingsReport, misuse, note, refuse, time};
use super::released_claims::released_claims;
use crate::statements::client_revocation;
use gatepost_protocol::registration::names::{SCIM_READ, SCIM_WRITE};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::registration::{
    self, DocumentProblem, ObjectKind, metadata_document, timestamp,
};
use gatepost_protocol::token::assertion::CLIENT_ASSERTION_TYPE;
use gatepost_protocol::token::client_secret::{SecretDigest, matches_any};
use gatepost_protocol::upstream::outbound_address::may_be_dialled;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::{
    Client, ClientAuthenticationMethod, GrantType, SigningAlgorithm,
};
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::{Members, SetMember};
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::web_url::WebUrl;
use gatepost_registrar::comparison::sealed_text;
use gatepost_registrar::enactment::remove_clients;
use gatepost_registrar::events::client_event;
use gatepost_registrar::statements::client_changes;
use gatepost_registration::client_checkup::{
    askable_scope, by_bound_session, examine, outlives_keys,
};
use gatepost_registration::finding::Finding;
use gatepost_registration::mention::mentions;
use gatepost_registration::{broken, fine, weak};
use gatepost_server::app::key_keeping::seasons;
use gatepost_server::app::metadata_documents::fetch_metadata_document;
use gatepost_server::config::Config;
use gatepost_server::keys::random;
use gatepost_server::outbound::{Asker, Deadline, OutboundError};
use gatepost_server::registry::{open_secret_digest, read_catalogue};
use gatepost_store::clients::{self, ClientRow, SecretRow};
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::signing_keys;

pub fn named(operator: &Operator, client_id: &ClientId) -> CommandResult<ClientRow> {
    clients::find(&operator.store, client_id)?
        .value
        .ok_or_else(|| missing(client_id))
}

/// Names are what somebody typed.
fn missing(client_id: &ClientId) -> Failure {
    Failure::Refused(format!(
        "there is no client \"{}\"",
        client_id.as_str().escape_debug()
    ))
}

pub fn list(operator: &Operator) -> CommandResult {
    let json = operator.has("--json");
    let mut objects = Vec::new();
    for row in clients::list(&operator.store)? {
        let mut object = shown(&row);
        if !json {
            object.set("grant_types", grant_types(operator, &row));
        }
        objects.push(object);
    }
    output::list(operator, objects)
}

/// Those in force, said or not; of a registration that is not served, those it says.
fn grant_types(operator: &Operator, row: &ClientRow) -> String {
    if let Ok(client) = read(operator, row) {
        return joined(" ", client.grant_types.iter().map(GrantType::as_str));
    }
    joined(" ", parse_own(&row.metadata).texts("grant_types"))
}

/// The registration as a server reads it.
pub fn read(operator: &Operator, row: &ClientRow) -> Result<Client, Vec<DocumentProblem>> {
    let metadata = parse_own(&row.metadata);
    registration::client::from_json(&metadata, "", &operator.config.client_defaults)
}

fn shown(row: &ClientRow) -> Value {
    let secrets: Vec<Value> = row.secrets.iter().map(told_secret).collect();
    json!({
        "client_id": row.client_id,
        "enabled": row.enabled,
        "secrets": secrets,
        "metadata": parse_own(&row.metadata),
    })
}

fn told_secret(secret: &SecretRow) -> Value {
    json!({"description": secret.description, "expires_at": secret.expires_at.map(time)})
}

pub fn show(operator: &Operator) -> CommandResult {
    let found = named(operator, &ClientId::new(operator.value(0)))?;
    output::object(operator.has("--json"), &shown(&found))
}

pub fn revoke(operator: &Operator) -> CommandResult {
    let client_id = ClientId::new(operator.value(0));
    let event = client_event("client_revoked", &client_id, json!({}));
    operator.store.change_registry(|writer| {
        if client_revocation::revoke_client(writer, &client_id, &event)? {
            Ok(())
        } else {
            Err(missing(&client_id))
        }
    })?;
    let name = client_id.in_text();
    say!("grants and tokens of {name} are over")?;
    await_everywhere();
    Ok(())
}

pub fn secret(invocation: &Invocation) -> CommandResult {
    let expires_at = expires_at(invocation)?;
    let description = invocation.option("--description").unwrap_or_default();
    registration::names::display_text(description)
        .or_else(|rule| misuse(format!("--description {rule}")))?;
    let operator = Operator::open(invocation)?;
    let now = operator.now()?;
    if expires_at.is_some_and(|expires_at| expires_at <= now) {
        return refuse("--expires-at is in the past: the secret would never be good");
    }
    let sealer = operator.sealers()?.client_secrets;
    let client_id = ClientId::new(invocation.value(0));
    let text = SecretText::new(format!(
        "gps_{}",
        BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>())
    ));
    let new = sealed_text(&text, description, expires_at, &sealer);
    let is_replaced = invocation.has("--replace");
    if is_replaced {
        input::confirm(
            invocation,
            &format!("This removes all other secrets of {}.", client_id.in_text()),
        )?;
    }
    operator.store.change_registry(|writer| {
        put_secret(&operator, writer, &client_id, &new, is_replaced)?;
        note("This secret is shown only now:");
        output::only_copy(text.expose())
    })
}

fn expires_at(invocation: &Invocation) -> CommandResult<Option<Instant>> {
    let Some(text) = invocation.option("--expires-at") else {
        return Ok(None);
    };
    let unread = "--expires-at must be a time as 2027-01-31T00:00:00Z";
    let read = timestamp::parse(text).map(Some);
    read.ok_or_else(|| Failure::usage(unread))
}

fn put_secret(
    operator: &Operator,
    writer: &mut RegistryWriter<'_>,
    client_id: &ClientId,
    new: &SecretRow,
    is_replaced: bool,
) -> CommandResult {
    let row = present(writer, client_id)?;
    check_takes_secrets(operator, &row)?;
    let old = if is_replaced { row.secrets } else { Vec::new() };
    client_changes::remove_secrets(
        writer,
        true,
        &old.iter()
            .map(|old| (client_id.as_str(), old.id))
            .collect::<Vec<_>>(),
    )?;
    client_changes::put_secrets(writer, true, &[(client_id.as_str(), new.clone())])?;
    let old: Vec<Value> = old.iter().map(told_secret).collect();
    let detail = json!({"replaced": is_replaced, "old": old, "new": told_secret(new)});
    writer.audit(&client_event("client_secret_made", client_id, detail))?;
    Ok(())
}

fn present(writer: &mut RegistryWriter<'_>, client_id: &ClientId) -> CommandResult<ClientRow> {
    let found = writer.reader.client(client_id)?;
    found.ok_or_else(|| missing(client_id))
}

fn check_takes_secrets(operator: &Operator, row: &ClientRow) -> CommandResult {
    let client = read(operator, row).map_err(|problems| Failure::of_document(&problems))?;
    match client.authentication {
        ClientAuthenticationMethod::AnySecret
        | ClientAuthenticationMethod::ClientSecretBasic
        | ClientAuthenticationMethod::ClientSecretPost => Ok(()),
        ClientAuthenticationMethod::None => refuse(
            "this client is public: register token_endpoint_auth_method client_secret_basic or \
             client_secret_post first",
        ),
        ClientAuthenticationMethod::PrivateKeyJwt => {
            refuse("this client authenticates with its own key (private_key_jwt)")
        }
    }
}

pub fn test(operator: &Operator) -> CommandResult {
    let sealer = operator.sealers()?.client_secrets;
    let row = named(operator, &ClientId::new(operator.value(0)))?;
    let mut client = read(operator, &row)
        .map_err(|problems| output::not_served(row.client_id.as_str(), &problems))?;
    let mut of_document = None;
    if client.metadata_document {
        of_document = Some(describe(operator, &mut client)?);
    }
    let now = operator.now()?;
    let secrets = row.secrets.iter();
    let digests: Vec<_> = secrets
        .map(|row| open_secret_digest(row, &sealer))
        .collect();
    let catalogue = catalogue(operator)?;
    let signing = signing(operator, now)?;
    let mut findings = examine(&client, &digests, &signing, &catalogue, now);
    findings.extend(outlives_keys(&client, seasons(&operator.config).publish));
    findings.extend(by_bound_session(&client, operator.config.bound_sessions));
    findings.extend(of_document);
    if operator.has("--secret") {
        findings.push(shown_secret(&row, &digests, now)?);
    }
    findings.extend(released_claims(&client, &catalogue));
    findings.extend(addresses(&client, &operator.config.outbound_allow));
    findings.extend(switched_off(&client, &catalogue, &operator.config));
    findings.push(fine!(
        "the issuer to copy into its settings: {}",
        operator.config.base_url.as_str()
    ));
    let tries = tries(operator.config.base_url.as_str(), &client, &catalogue);
    let text: String = tries.iter().map(|one| format!("\n\nTry: {one}")).collect();
    let examined = FindingsReport {
        name: row.client_id.as_str(),
        findings: &findings,
        text: &text,
        member: "try",
        value: json!(tries),
    };
    examined.print(operator)
}

/// What the client is registered for, and the settings have off.
fn switched_off(client: &Client, catalogue: &Catalogue, config: &Config) -> Vec<Finding> {
    let client_id = client.client_id.as_str();
    let takes_id_jags = catalogue
        .assertion_issuers
        .values()
        .any(|issuer| issuer.id_jag && issuer.clients.contains(client_id));
    let told = [
        (
            client.requires_pushed_requests && !config.pushed_requests,
            "it must push its requests, and GATEPOST_PUSHED_REQUESTS is off",
        ),
        (
            !client.id_jag.is_empty() && !config.id_jag,
            "it is registered to get ID-JAGs (id_jag), and GATEPOST_ID_JAG is off",
        ),
        (
            takes_id_jags && !config.id_jag,
            "an issuer of ID-JAGs names it, and GATEPOST_ID_JAG is off",
        ),
        (
            [SCIM_READ, SCIM_WRITE]
                .iter()
                .any(|name| client.scope.contains(name))
                && !config.scim,
            "it may ask for the scopes of SCIM, and GATEPOST_SCIM is off",
        ),
    ];
    let mut findings = Vec::new();
    for (is_off, text) in told {
        if is_off {
            findings.push(Finding::broken(text));
        }
    }
    findings
}

/// Adds what the client's metadata document says now, and tells what of it does not count.
pub fn describe(operator: &Operator, client: &mut Client) -> CommandResult<Finding> {
    let outbound = operator.outbound()?;
    let asker = Asker::Worker(&outbound);
    let found = fetch_metadata_document(asker, client, Deadline::usual());
    let read = found.and_then(|document| {
        metadata_document::read(client, &document).map_err(OutboundError::Unfit)
    });
    Ok(match read {
        Err(problem) => broken!("its metadata document: {problem}"),
        Ok(described) => {
            *client = described.client;
            let left_out = match described.left_out.join(", ") {
                none if none.is_empty() => String::from("nothing"),
                some => some,
            };
            let uris = client.redirect_uris.join(", ");
            fine!("its metadata document has the redirect URIs {uris}; left out of it: {left_out}")
        }
    })
}

/// The scopes and resources that are registered, as a server knows them.
pub fn catalogue(operator: &Operator) -> CommandResult<Catalogue> {
    let rows = gatepost_store::catalogue::load(&operator.store)?.value;
    Ok(read_catalogue(rows)?)
}

/// The algorithms that there is a signing key for.
pub fn signing(operator: &Operator, now: Instant) -> CommandResult<Vec<SigningAlgorithm>> {
    let keys = signing_keys::load(&operator.store)?.value;
    let mut able = Vec::new();
    for key in keys {
        if key.wrapped_private.is_some() && key.times.activates_at <= now {
            able.push(key.algorithm);
        }
    }
    Ok(able)
}

fn shown_secret(
    row: &ClientRow,
    digests: &[Option<SecretDigest>],
    now: Instant,
) -> CommandResult<Finding> {
    let shown = input::secret("Client secret: ")?;
    let found = row
        .secrets
        .iter()
        .zip(digests)
        .find(|(_, digest)| matches_any(Some(&shown), digest.as_slice(), now));
    Ok(match found {
        Some((secret, _)) if secret.description.is_empty() => fine!("that secret is right"),
        Some((secret, _)) => {
            fine!("that secret is right: \"{}\"", secret.description)
        }
        None => broken!("that secret is wrong, or has expired"),
    })
}

/// Addresses of the client that requests of ours would not reach.
fn addresses(client: &Client, allowed: &[Cidr]) -> Vec<Finding> {
    let logout = client.backchannel_logout.as_ref().map(|logout| &logout.uri);
    let mut named = vec![
        ("backchannel_logout_uri", logout),
        ("jwks_uri", client.jwks_uri.as_ref()),
        ("logo_uri", client.links.logo_uri.as_ref()),
    ];
    for entry in &client.federated {
        named.push(("federated.jwks_uri", entry.jwks_uri.as_ref()));
    }
    named
        .into_iter()
        .filter_map(|(key, url)| address(key, url?, allowed))
        .collect()
}

/// What is wrong with one of them.
fn address(key: &str, url: &str, allowed: &[Cidr]) -> Option<Finding> {
    let url = WebUrl::parse(url).ok()?;
    let host = url.host.trim_matches(['[', ']']);
    let port = url.port.unwrap_or(if url.https { 443 } else { 80 });
    let Ok(found) = (host, port).to_socket_addrs() else {
        return Some(weak!("{key}: no address is found here for {host}"));
    };
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    if found
        .iter()
        .any(|one| may_be_dialled(*one, url.https, allowed))
    {
        return None;
    }
    let address = found.first()?;
    let remedy = "no request goes there unless GATEPOST_OUTBOUND_ALLOW names it";
    Some(weak!(
        "{key}: {host} is {address}, which is private: {remedy}"
    ))
}

/// What shows that it works, with what is registered. No secret stands in it: curl asks.
fn tries(issuer: &str, client: &Client, catalogue: &Catalogue) -> Vec<String> {
    let client_id = encode(client.client_id.as_str());
    let shown = credentials(client, &client_id);
    let mut tries = Vec::new();
    if let Some(parameters) = sign_in(client, catalogue) {
        tries.push(if client.requires_pushed_requests {
            format!("curl {shown} -d '{parameters}' {issuer}/connect/par")
        } else {
            format!("{issuer}/connect/authorize?client_id={client_id}&{parameters}")
        });
    }
    if client.allows_grant(&GrantType::ClientCredentials) {
        let proof = if client.requires_dpop {
            "-H 'DPoP: PROOF' "
        } else {
            ""
        };
        tries.push(format!(
            "curl {proof}{shown} -d grant_type=client_credentials {issuer}/connect/token"
        ));
    }
    if client.allows_grant(&GrantType::DeviceCode) {
        tries.push(format!("curl {shown} {issuer}/connect/deviceauthorization"));
    }
    tries
}

fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The parameters of a sign-in that the registration allows.
fn sign_in(client: &Client, catalogue: &Catalogue) -> Option<String> {
    let uri = client.redirect_uris.first()?;
    let response_type = ResponseType::ALL
        .into_iter()
        .find(|known| client.response_types.contains(known))?;
    let scope = askable_scope(client, response_type, catalogue)?;
    // The challenge of RFC 7636 appendix B. It counts for a code alone.
    let challenge = if response_type.code {
        "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
    } else {
        ""
    };
    Some(format!(
        "response_type={}&scope={}&redirect_uri={}&state=try&nonce=try{challenge}",
        encode(&response_type.to_string()),
        encode(&scope.to_string()),
        encode(uri)
    ))
}

/// How curl proves the client. Words in capitals are to be filled in.
fn credentials(client: &Client, client_id: &str) -> String {
    match client.authentication {
        ClientAuthenticationMethod::None => format!("-d client_id={client_id}"),
        ClientAuthenticationMethod::AnySecret | ClientAuthenticationMethod::ClientSecretBasic => {
            format!("-u '{client_id}'")
        }
        ClientAuthenticationMethod::ClientSecretPost => {
            format!("-d client_id={client_id} -d client_secret=SECRET")
        }
        ClientAuthenticationMethod::PrivateKeyJwt => format!(
            "-d client_id={client_id} -d client_assertion_type={CLIENT_ASSERTION_TYPE} \
             -d client_assertion=JWT"
        ),
    }
}

pub fn remove(operator: &Operator) -> CommandResult {
    let client_id = ClientId::new(operator.value(0));
    operator.confirmed(named(operator, &client_id))?;
    let name = client_id.in_text();
    input::confirm(
        operator,
        &format!("This removes {name} for good, with its secrets and consents."),
    )?;
    operator.store.change_registry(|writer| {
        present(writer, &client_id)?;
        if let Some(who) = who_names(writer, &client_id)? {
            return refuse!("{name} is still named by {who}: apply that without it first");
        }
        remove_clients(writer, &[client_id])?;
        Ok(())
    })?;
    say!("removed {name}; what it was given is over")
}

/// A registration that would be left pointing at nothing.
fn who_names(
    writer: &mut RegistryWriter<'_>,
    client_id: &ClientId,
) -> CommandResult<Option<String>> {
    for entry in writer.reader.catalogue()?.entries {
        if names(entry.kind, &entry.document, client_id) {
            return Ok(Some(format!("{} {}", entry.kind.as_str(), entry.name)));
        }
    }
    for other in writer.reader.clients()? {
        let is_other = other.client_id != *client_id;
        if is_other && names(ObjectKind::Client, &parse_own(&other.metadata), client_id) {
            return Ok(Some(format!("client {}", other.client_id.in_text())));
        }
    }
    Ok(None)
}

fn names(kind: ObjectKind, document: &Value, client_id: &ClientId) -> bool {
    mentions(kind, document).iter().any(|mention| {
        mention.called == ObjectKind::Client.called() && mention.name == client_id.as_str()
    })
}
