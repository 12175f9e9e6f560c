//! Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document): the `client_id` is
//! an address, and the document there says what the client is called, where answers go and which
//! keys it has. The operator registers the address. Flow, method, scopes and hosts are what the
//! registration says: no document, whoever wrote it, makes more of a client.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::keys::key_set::{KeySet, PRIVATE_MEMBERS};
use crate::registration::names::is_invisible;
use crate::registration::problem::Contradiction;
use crate::registration::profile;
use crate::registration::walker::Walker;
use crate::words::client::{Client, ClientAuthenticationMethod, ClientLinks, GrantType};
use crate::words::json::{JsonObject, Members, SetMember};
use crate::words::reason::Reason;
use crate::words::redirect_uri::check_registered;
use crate::words::response_type::ResponseType;
use crate::words::scope::OFFLINE_ACCESS;
use crate::words::web_url::{WebUrl, check_document_url};

/// Members of `redirect_uris`.
const MOST_REDIRECT_URIS: usize = 20;
/// Characters of `client_name`.
const LONGEST_NAME: usize = 60;

/// The grants of a client that has a document.
const GRANTS: [GrantType; 2] = [GrantType::AuthorizationCode, GrantType::RefreshToken];

/// What the document says in place of the registration.
const TAKEN: [&str; 8] = [
    "client_name",
    "client_uri",
    "logo_uri",
    "policy_uri",
    "tos_uri",
    "redirect_uris",
    "jwks",
    "jwks_uri",
];

/// Fills in what follows from `metadata_document`, and notes what must not stand beside it.
pub(super) fn settle(walker: &mut Walker<'_>, client: &mut Client) {
    if let Err(rule) = check_document_url(client.client_id.as_str()) {
        walker.problem("client_id", rule);
    }
    note_beside(walker);
    if walker.value("grant_types").is_none() && client.scope.contains(OFFLINE_ACCESS) {
        client.grant_types.insert(GrantType::RefreshToken);
    }
    for (is_there, key, rule) in contradictions(client) {
        if is_there {
            walker.problem(key, rule);
        }
    }
    // The statements that redeem codes read these in what is stored.
    client.require_pkce = Some(true);
    let consent = *client.require_consent.get_or_insert(true);
    for (key, value) in [("require_pkce", true), ("require_consent", consent)] {
        walker.stored_as.set(key, value);
    }
}

/// Notes what the document says, or what cannot be beside a document.
fn note_beside(walker: &mut Walker<'_>) {
    let members = walker.members();
    let translated = members.keys().filter(|key| key.starts_with("client_name#"));
    let beside = TAKEN.into_iter().chain(["federated", "secrets"]);
    let beside = beside.filter(|key| members.contains_key(*key));
    for key in beside.chain(translated.map(String::as_str)) {
        walker.problem(key, "must be left out: metadata_document is true");
    }
}

#[rustfmt::skip]
fn contradictions(client: &Client) -> [Contradiction; 5] {
    let has_method = matches!(client.authentication,
        ClientAuthenticationMethod::None | ClientAuthenticationMethod::PrivateKeyJwt);
    [
        (!client.grant_types.iter().all(|grant_type| GRANTS.contains(grant_type)),
            "grant_types",
            "must have authorization_code and refresh_token alone: metadata_document is true"),
        (client.response_types != BTreeSet::from([ResponseType::CODE]),
            "response_types", "must be code alone: metadata_document is true"),
        (!has_method,
            "token_endpoint_auth_method",
            "must be none or private_key_jwt: metadata_document is true"),
        (client.allow_plain_pkce,
            "allow_plain_pkce", "must not be true: metadata_document is true"),
        (client.require_pkce == Some(false),
            "require_pkce", "must not be false: metadata_document is true"),
    ]
}

/// A client with what its document says.
pub struct DescribedClient {
    pub client: Client,
    /// What of the document does not count, for the operator.
    pub left_out: Vec<String>,
}

/// Reads the document that was found at the `client_id`. Members that are not taken are left out,
/// and so are links, a `jwks_uri` and redirect URIs on hosts that are not the client's, and what
/// the registered `profile` forbids.
pub fn read(registered: &Client, document: &Value) -> Result<DescribedClient, Reason> {
    let client_id = registered.client_id.as_str();
    let own = WebUrl::parse(client_id).map_err(|_| Reason::MalformedMetadataDocument)?;
    let members = document
        .as_object()
        .filter(|members| members.text("client_id") == Some(client_id));
    let members = members.ok_or(Reason::MalformedMetadataDocument)?;
    let listed = members.items("redirect_uris");
    if listed.len() > MOST_REDIRECT_URIS {
        return Err(Reason::MalformedMetadataDocument);
    }
    let method = members.get("token_endpoint_auth_method");
    if !is_method(registered, method) || has_secret(document) {
        return Err(Reason::MetadataDocumentMethod);
    }
    let redirect_uris = redirect_uris(registered, listed, own.host);
    if redirect_uris.is_empty() {
        return Err(Reason::MetadataDocumentRedirectUris);
    }
    let jwks = members.get("jwks");
    let link = |key| own_link(members, key, own.host);
    let mut client = Client {
        links: ClientLinks {
            client_uri: link("client_uri"),
            logo_uri: link("logo_uri"),
            policy_uri: link("policy_uri"),
            tos_uri: link("tos_uri"),
            initiate_login_uri: None,
        },
        jwks: jwks.filter(|jwks| KeySet::parse(jwks).is_some()).cloned(),
        // On no other host: whoever writes a document must not choose what we ask for.
        jwks_uri: link("jwks_uri"),
        redirect_uris,
        ..registered.clone()
    };
    if let Some(name) = members.text("client_name")
        && is_name(name)
    {
        client.client_name = name.into();
    }
    let left_out = left_out(document, &client);
    Ok(DescribedClient { client, left_out })
}

/// Whether the method is the registered one. No method is `none`.
fn is_method(registered: &Client, method: Option<&Value>) -> bool {
    matches!(
        (registered.authentication, method.map(Value::as_str)),
        (ClientAuthenticationMethod::None, None | Some(Some("none")))
            | (
                ClientAuthenticationMethod::PrivateKeyJwt,
                Some(Some("private_key_jwt"))
            )
    )
}

/// A secret that everybody can read, or a private key.
fn has_secret(document: &Value) -> bool {
    let secret = ["client_secret", "client_secret_expires_at"];
    let keys = document.get("jwks").map(|jwks| jwks.items("keys"));
    secret.iter().any(|member| document.get(member).is_some())
        || keys.is_some_and(|keys| keys.iter().any(is_private))
}

fn is_private(key: &Value) -> bool {
    let mut members = PRIVATE_MEMBERS.iter();
    members.any(|member| key.get(member).is_some())
}

/// Those of the listed URIs that answers may go to.
fn redirect_uris(registered: &Client, listed: &[Value], own_host: &str) -> Vec<String> {
    let mut open = Vec::new();
    for uri in listed.iter().filter_map(Value::as_str) {
        if may_answer_at(uri, own_host, &registered.redirect_hosts)
            && profile::takes_redirect_uri(registered, uri)
        {
            open.push(uri.to_owned());
        }
    }
    open
}

/// Whether answers may go there: by https to the document's host or a registered one, or to a
/// program on the person's own machine.
fn may_answer_at(uri: &str, own_host: &str, further: &BTreeSet<String>) -> bool {
    match WebUrl::parse(uri) {
        Err(_) => false,
        Ok(_) if check_registered(uri, false).is_err() => false,
        Ok(url) if url.https => url.host == own_host || further.contains(url.host),
        Ok(url) => url.is_loopback(),
    }
}

/// An address by https on the document's host.
fn own_link(members: &JsonObject, key: &str, own_host: &str) -> Option<String> {
    let text = members.text(key)?;
    let url = WebUrl::parse(text).ok()?;
    (url.https && url.host == own_host).then(|| text.to_owned())
}

fn is_name(name: &str) -> bool {
    let fits = name.chars().nth(LONGEST_NAME).is_none() && !name.trim().is_empty();
    fits && !name.chars().any(is_invisible)
}

/// The members that say nothing here, and the redirect URIs that are not the client's.
fn left_out(document: &Value, client: &Client) -> Vec<String> {
    let mut left_out = Vec::new();
    for (key, value) in document.as_object().into_iter().flatten() {
        if !counts(key, value, client) {
            left_out.push(key.clone());
        }
    }
    for uri in document.items("redirect_uris") {
        if !client.redirect_uris.iter().any(|kept| uri == kept) {
            left_out.push(format!("the redirect URI {uri}"));
        }
    }
    left_out
}

/// Whether the member is read, and the client has what it says.
fn counts(key: &str, value: &Value, client: &Client) -> bool {
    let links = &client.links;
    match key {
        "client_id" | "token_endpoint_auth_method" | "redirect_uris" => true,
        "client_name" => *value == client.client_name.plain,
        "client_uri" => links.client_uri.is_some(),
        "logo_uri" => links.logo_uri.is_some(),
        "policy_uri" => links.policy_uri.is_some(),
        "tos_uri" => links.tos_uri.is_some(),
        "jwks" => client.jwks.is_some(),
        "jwks_uri" => client.jwks_uri.is_some(),
        _ => false,
    }
}
