//! Documents in which clients describe themselves. Whatever one says, the client stays what the
//! operator registered: only its name, its links, its keys and its redirect URIs come from there,
//! and these stay on its hosts. `url` says which hosts those are.
#![no_main]

use gatepost::protocol::keys::key_set::{KeySet, PRIVATE_MEMBERS};
use gatepost::protocol::registration::metadata_document;
use gatepost::protocol::words::client::{Client, ClientLinks};
use gatepost::protocol::words::redirect_uri::RedirectTarget;
use gatepost_fuzz::read_client;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use url::Url;

const CLIENT_ID: &str = "https://app.example/client.json";
const OWN_HOST: &str = "app.example";
const FURTHER_HOST: &str = "login.app.example";
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

fn registered(method: &str) -> Client {
    read_client(json!({
        "client_id": CLIENT_ID,
        "metadata_document": true,
        "token_endpoint_auth_method": method,
        "redirect_hosts": [FURTHER_HOST],
        "scope": "openid profile offline_access",
    }))
}

fn read_by_browsers(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn assert_is_its_own(redirect_uri: &str, client: &Client) {
    let url = read_by_browsers(redirect_uri);
    let host = url.host_str().expect("it has a host");
    let is_its = match url.scheme() {
        "https" => host == OWN_HOST || host == FURTHER_HOST,
        "http" => LOOPBACK.contains(&host),
        _ => false,
    };
    assert!(is_its, "{redirect_uri}");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    assert!(
        RedirectTarget::match_registered(redirect_uri, client).is_some(),
        "{redirect_uri}"
    );
}

fn assert_has_no_secret(document: &Value, client: &Client) {
    assert!(document.get("client_secret").is_none());
    let Some(jwks) = &client.jwks else {
        return;
    };
    assert!(KeySet::parse(jwks).is_some());
    let keys = jwks["keys"].as_array().expect("keys is a list");
    let has = |key: &Value, name: &&str| key.get(*name).is_some();
    assert!(
        !keys
            .iter()
            .any(|key| PRIVATE_MEMBERS.iter().any(|name| has(key, name)))
    );
}

fuzz_target!(|data: &[u8]| {
    let Ok(document) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    for method in ["none", "private_key_jwt"] {
        let registered = registered(method);
        let Ok(described) = metadata_document::read(&registered, &document) else {
            continue;
        };
        let client = described.client;
        assert_eq!(document["client_id"], CLIENT_ID);
        assert_eq!(
            document
                .get("token_endpoint_auth_method")
                .map_or("none", |sent| sent.as_str().unwrap_or("")),
            method
        );
        assert!((1..=20).contains(&client.redirect_uris.len()));
        for redirect_uri in &client.redirect_uris {
            assert_is_its_own(redirect_uri, &client);
        }
        let links = &client.links;
        let links = [
            &links.client_uri,
            &links.logo_uri,
            &links.policy_uri,
            &links.tos_uri,
        ];
        for link in links.into_iter().flatten() {
            let url = read_by_browsers(link);
            assert!(
                url.scheme() == "https" && url.host_str() == Some(OWN_HOST),
                "{link}"
            );
        }
        if let Some(jwks_uri) = &client.jwks_uri {
            assert_eq!(read_by_browsers(jwks_uri).scheme(), "https");
        }
        assert_has_no_secret(&document, &client);
        let name = &client.client_name.plain;
        assert!((1..=60).contains(&name.chars().count()) && !name.contains(char::is_control));
        let members = document.as_object().expect("it is an object");
        for left_out in &described.left_out {
            let is_told = members.contains_key(left_out.as_str());
            assert!(
                is_told || left_out.starts_with("the redirect URI "),
                "{left_out}"
            );
        }
        let otherwise = Client {
            client_name: registered.client_name.clone(),
            links: ClientLinks::default(),
            jwks: None,
            jwks_uri: None,
            redirect_uris: Vec::new(),
            ..client
        };
        assert_eq!(format!("{otherwise:?}"), format!("{registered:?}"));
    }
});
