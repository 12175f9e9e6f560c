//! What the targets share: one registration, and questions that several of them ask.

use std::collections::BTreeMap;

use gatepost::import::Import;
use gatepost::protocol::registration::client::from_json;
use gatepost::protocol::registration::client_rules::ClientDefaults;
use gatepost::protocol::token::claims::built_in_catalogue;
use gatepost::protocol::words::catalogue::{Catalogue, RegisteredResource, RegisteredScope};
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::scope::ScopeKind;
use gatepost::registration::document::Document;
use gatepost::registration::strict_json::parse;
use serde_json::{Value, json};

/// 2026-11-20T00:00:00Z
pub const NOW: Instant = Instant::from_seconds(1_795_132_800);

pub const REDIRECT_URIS: [&str; 4] = [
    "https://rp1.example/cb",
    "https://rp1.example:8443/cb?a=b",
    "http://127.0.0.1/cb",
    "http://[::1]/cb",
];

/// A confidential client that may use all that a registration can allow.
pub fn client() -> Client {
    read_client(json!({
        "client_id": "conf1",
        "confidential": true,
        "redirect_uris": REDIRECT_URIS,
        "grant_types": ["authorization_code", "implicit", "refresh_token", "client_credentials", "password",
            "urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:token-exchange",
            "urn:ietf:params:oauth:grant-type:jwt-bearer"],
        "response_types": ["code", "id_token", "id_token token", "code id_token", "code token", "code id_token token"],
        "scope": "openid profile email address offline_access orders.read",
        "allow_access_tokens_via_browser": true,
        "token_exchange": {"from_clients": ["app"]},
        "require_pkce": false,
    }))
}

/// A public client with these redirect URIs.
pub fn public_client(redirect_uris: &[&str]) -> Client {
    read_client(json!({
        "client_id": "app",
        "token_endpoint_auth_method": "none",
        "redirect_uris": redirect_uris,
        "scope": "openid profile",
    }))
}

/// What is registered with this metadata.
pub fn read_client(metadata: Value) -> Client {
    from_json(&metadata, "", &ClientDefaults::default()).expect("the client is in order")
}

/// The built-in scopes, and a resource scope with its resource.
pub fn catalogue() -> Catalogue {
    let mut catalogue = built_in_catalogue();
    let resource = String::from("https://api.example/orders");
    let orders = RegisteredScope {
        name: String::from("orders.read"),
        kind: ScopeKind::Resource,
        display_name: "orders.read".into(),
        description: "".into(),
        claims: vec![String::from("role")],
        renamed: BTreeMap::new(),
        required: false,
        emphasize: false,
        show_in_discovery: true,
        resources: vec![resource.clone()],
        is_built_in: false,
    };
    catalogue.scopes.insert(orders.name.clone(), orders);
    let registered = RegisteredResource {
        name: resource.clone(),
        display_name: resource.clone(),
        claims: Vec::new(),
        renamed: BTreeMap::new(),
    };
    catalogue.resources.insert(resource, registered);
    catalogue
}

/// The texts of the members with these names, wherever they stand. Short texts and texts without a
/// digit could stand in a sentence of ours by chance: they are left out.
pub fn secrets<'v>(value: &'v Value, names: &[&str]) -> Vec<&'v str> {
    let mut found = Vec::new();
    collect(value, names, false, &mut found);
    found
}

fn collect<'v>(value: &'v Value, names: &[&str], is_secret: bool, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => {
            // libFuzzer learns our own sentences and paths, and they may tell themselves. These have
            // spaces, brackets, or fewer than two digits.
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            let is_ours = text.contains([' ', '[']) || digits < 2;
            let is_telling = text.len() >= 12 && !is_ours;
            if is_secret && is_telling {
                found.push(text);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(item, names, is_secret, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let is_secret = is_secret || names.contains(&name.as_str());
                collect(member, names, is_secret, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same without the texts in the members of these names. The names of members stay, within them,
/// too: a line may name a member.
pub fn without(value: &Value, names: &[&str]) -> Value {
    without_texts(value, names, false)
}

fn without_texts(value: &Value, names: &[&str], is_secret: bool) -> Value {
    match value {
        Value::Array(items) => {
            let items = items.iter();
            items
                .map(|item| without_texts(item, names, is_secret))
                .collect()
        }
        Value::Object(members) => {
            let stays = members.iter().map(|(name, member)| {
                let is_secret = is_secret || names.contains(&name.as_str());
                (name.clone(), without_texts(member, names, is_secret))
            });
            Value::Object(stays.collect())
        }
        Value::String(_) if is_secret => Value::Null,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What rules show as examples: what was sent may be a part of one.
const EXAMPLES: &str = "\n$argon2id$v=19$m=19456,t=2,p=1$...$...\n\
    $pbkdf2-sha256$i=10000,l=32$...$...\n2027-01-31T00:00:00Z";

/// No line of ours tells a secret, unless it stands elsewhere in what was sent, too.
pub fn assert_untold(lines: &[String], sent: &Value, names: &[&str]) {
    let secrets = secrets(sent, names);
    if secrets.is_empty() {
        return;
    }
    let elsewhere = texts(&without(sent, names)).join("\n") + EXAMPLES;
    for secret in secrets {
        for line in lines {
            let is_told = line.contains(secret) && !elsewhere.contains(secret);
            assert!(!is_told, "{secret:?} is told: {line}");
        }
    }
}

/// What comes of the export of another program: a document of which nothing is refused in itself. No
/// line tells one of the export's secrets.
pub fn assert_importable(import: Import, sent: &Value, secrets: &[&str]) {
    let (document, lines) = import.finish(true);
    assert_untold(&lines, sent, secrets);
    let document = parse(&document.to_string()).expect("it is JSON");
    let judged = Document::judge(&document, &ClientDefaults::default());
    let problems = judged.problems.iter();
    let told: Vec<String> = problems.map(|problem| problem.to_string()).collect();
    assert!(told.is_empty(), "{told:?}");
}

/// Every text and every name in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            let mut found = Vec::new();
            for (name, member) in members {
                found.push(name.clone());
                found.extend(texts(member));
            }
            found
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
