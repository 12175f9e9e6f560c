//! Tables of documents, right and wrong.

mod client;
mod objects;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::protocol::client::ClientAuthenticationMethod;

use super::defaults::ClientDefaults;
use super::document::Document;
use super::provider::ProviderKind;
use super::references::Stored;
use super::{Kind, Problem, catalogue, client as of_client, extension_grant, provider, stored};

fn read(value: &Value) -> Result<Document, Vec<Problem>> {
    Document::from_json(value, &ClientDefaults::default(), &Stored::default())
}

fn problems(value: &Value) -> Vec<String> {
    read(value).expect_err("must be refused").iter().map(Problem::to_string).collect()
}

#[test]
fn the_document_of_the_readme_is_read_whole() {
    let document = read(&json!({
        "tenants": [{"name": "acme", "display_name": "ACME Ltd"}],
        "identity_scopes": [{"name": "profile", "display_name": "Profile", "description": "", "claims": ["name", "given_name"],
                             "required": false, "emphasize": false, "show_in_discovery": true}],
        "resource_scopes": [{"name": "orders.read", "display_name": "Read orders", "claims": ["role"], "resources": ["orders"]}],
        "resources": [{"name": "orders", "display_name": "Orders API", "secrets": [{"value": "a-secret-of-20-chars"}], "claims": []}],
        "identity_providers": [{"name": "corp", "display_name": "Corporate", "enabled": true, "issuer": "https://login.example.com",
                                "client_id": "gp", "client_secret": "...", "scope": "openid profile email",
                                "claims": {"groups": "role"}, "role_map": {}, "provision": true, "tenant": null, "sign_out": false}],
        "assertion_issuers": [], "extension_grants": [{"name": "urn:example:legacy-key", "function": "legacy.redeem_key"}],
        "clients": [{"client_id": "web", "client_name": "Web shop", "redirect_uris": ["https://shop.example.com/cb"],
                     "response_types": ["code"], "grant_types": ["authorization_code", "refresh_token"],
                     "scope": "openid profile orders.read offline_access", "secrets": [{"value": "a-secret-of-20-chars"}],
                     "identity_providers": ["local", "corp"]}],
        "users": [{"sub": null, "username": "alice", "password": "correct horse", "tenant": null, "enabled": true,
                   "claims": {"name": "Alice Smith", "role": ["admin"]}}]
    }))
    .unwrap();
    let entry = |place: &str| document.entries.iter().find(|entry| entry.place == place).unwrap();
    assert_eq!(stored(&entry("tenants[0]").document, "", catalogue::tenant).unwrap().display_name, "ACME Ltd");
    let scope = stored(&entry("resource_scopes[0]").document, "", catalogue::resource_scope).unwrap();
    assert_eq!(scope.resources, ["orders"]);
    let corp = provider::from_json(&entry("identity_providers[0]").document, "").unwrap();
    assert!(matches!(corp.kind, ProviderKind::OpenId { issuer } if issuer == "https://login.example.com"));
    assert!(entry("identity_providers[0]").client_secret.is_some());
    assert_eq!(entry("identity_providers[0]").document.get("client_secret"), None);
    assert_eq!(entry("resources[0]").document.get("secrets"), None);
    let grant = stored(&entry("extension_grants[0]").document, "", extension_grant::read).unwrap();
    assert_eq!((grant.schema.as_str(), grant.function.as_str()), ("legacy", "redeem_key"));
    let web = of_client::from_json(&entry("clients[0]").document, "", &ClientDefaults::default()).unwrap();
    assert_eq!(web.authentication, ClientAuthenticationMethod::AnySecret);
    assert_eq!(entry("clients[0]").document.get("secrets"), None);
    assert_eq!(document.users[0].subject, None);
    assert_eq!(read(&json!({})), Ok(Document::default()));
}

#[test]
fn what_a_document_names_must_exist() {
    let found = problems(&json!({
        "resource_scopes": [{"name": "orders.read", "resources": ["order"]}],
        "resources": [{"name": "orders"}],
        "assertion_issuers": [{"issuer": "https://a.example", "jwks_uri": "https://a.example/j", "clients": ["weeb"], "tenant": "acme", "scope": "x"}],
        "clients": [{"client_id": "web", "redirect_uris": ["https://a.example/cb"], "scope": "openid ordes.read", "tenants": ["t"],
                     "identity_providers": ["local", "corp"], "grant_types": ["authorization_code", "urn:x"],
                     "token_exchange": {"from_clients": ["wep"], "to_resources": ["r"]}}],
        "users": [{"username": "alice", "tenant": "acme"}],
    }));
    let expected = [
        "resource_scopes[0].resources: names \"order\", which is not a registered resource; the nearest is \"orders\"",
        "assertion_issuers[0].tenant: names \"acme\", which is not a registered tenant",
        "assertion_issuers[0].scope: names \"x\"",
        "assertion_issuers[0].clients: names \"weeb\", which is not a registered client; the nearest is \"web\"",
        "clients[0].scope: names \"ordes.read\", which is not a registered scope; the nearest is \"orders.read\"",
        "clients[0].tenants: names \"t\"",
        "clients[0].identity_providers: names \"corp\"",
        "clients[0].grant_types: names \"urn:x\", which is not a registered grant type",
        "clients[0].token_exchange.from_clients: names \"wep\"",
        "clients[0].token_exchange.to_resources: names \"r\"",
        "users[0].tenant: names \"acme\"",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} | {expected}");
    }
}

#[test]
fn what_is_stored_counts_as_there() {
    let known = Stored {
        objects: BTreeMap::from([
            ((Kind::Resource, "orders".to_owned()), false),
            ((Kind::ExtensionGrant, "urn:x".to_owned()), false),
            ((Kind::ResourceScope, "orders.write".to_owned()), false),
            ((Kind::Client, "web".to_owned()), true),
            ((Kind::Client, "spa".to_owned()), false),
        ]),
        compiled_in_grants: BTreeSet::from(["urn:y".to_owned()]),
    };
    let read = |value: &Value| Document::from_json(value, &ClientDefaults::default(), &known);
    let scope = json!({"name": "orders.read", "resources": ["orders"]});
    let extension = json!({"client_id": "x", "grant_types": ["urn:x"]});
    assert!(read(&json!({"resource_scopes": [scope], "clients": [extension]})).is_ok());
    for (document, place) in [
        (json!({"clients": [{"client_id": "orders", "grant_types": []}]}), "clients[0].client_id"),
        (json!({"resources": [{"name": "web"}]}), "resources[0].name"),
        (json!({"identity_scopes": [{"name": "orders.write"}]}), "identity_scopes[0].name"),
        (json!({"extension_grants": [{"name": "urn:y", "function": "a.b"}]}), "extension_grants[0].name"),
        (json!({"clients": [{"client_id": "web", "grant_types": []}]}), "clients[0].token_endpoint_auth_method"),
    ] {
        let found = read(&document).expect_err("refused");
        assert_eq!(found.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), [place]);
    }
    for kept in [
        json!({"client_id": "web", "grant_types": [], "token_endpoint_auth_method": "client_secret_basic"}),
        json!({"client_id": "web", "grant_types": [], "secrets": []}),
        json!({"client_id": "spa", "grant_types": []}),
    ] {
        assert!(read(&json!({"clients": [kept]})).is_ok(), "{kept}");
    }
}

#[test]
fn a_name_is_given_once() {
    let client = json!({"client_id": "web", "grant_types": []});
    for (document, place) in [
        (json!({"clients": [client, client]}), "clients[1].client_id"),
        (json!({"clients": [client], "resources": [{"name": "web"}]}), "clients[0].client_id"),
        (json!({"identity_scopes": [{"name": "x"}], "resource_scopes": [{"name": "x"}]}), "resource_scopes[0].name"),
        (json!({"resource_scopes": [{"name": "x"}, {"name": "y"}, {"name": "x"}]}), "resource_scopes[2].name"),
        (json!({"tenants": [{"name": "x"}, {"name": "x"}]}), "tenants[1].name"),
        (json!({"users": [{"username": "Alice"}, {"username": "alice"}]}), "users[1].username"),
        (json!({"users": [{"username": "a", "sub": "1"}, {"username": "b", "sub": "1"}]}), "users[1].sub"),
    ] {
        let found = read(&document).expect_err("refused");
        assert_eq!(found.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), [place]);
    }
    let tenants =
        json!({"tenants": [{"name": "a"}], "users": [{"username": "alice"}, {"username": "alice", "tenant": "a"}]});
    assert!(read(&tenants).is_ok());
}

#[test]
fn nul_is_found_wherever_it_hides() {
    for document in [
        json!({"users": [{"username": "a", "claims": {"x": {"y": ["\u{0}"]}}}]}),
        json!({"clients": [{"client_id": "c", "grant_types": [], "claims": {"x": "a\u{0}"}}]}),
        json!({"tenants": [{"name": "a\u{0}"}]}),
        json!({"users": [{"username": "a", "claims": {"x": {"\u{0}": 1}}}]}),
    ] {
        assert!(problems(&document).iter().any(|problem| problem.contains("NUL")), "{document}");
    }
}

#[test]
fn every_mistake_is_told_at_once_in_the_order_of_the_document() {
    let found = problems(&json!({
        "users": [{"username": "a", "enabled": 1}],
        "clients": [{"client_id": "ok", "grant_types": []}, {"client_id": 1, "scop": "x", "redirect_uris": [1]}],
        "tenants": [{"name": ""}],
    }));
    let places: Vec<&str> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        ["tenants[0].name", "clients[1]", "clients[1].client_id", "clients[1].redirect_uris[0]", "users[0].enabled"]
    );
}

#[test]
fn no_secret_stands_in_a_problem_or_in_what_is_stored() {
    let canary = "canary-5f1c-of-many-characters";
    let document = json!({
        "clients": [{"client_id": "c", "redirect_uris": ["https://a.example"], "secrets": [{"value": canary}], "unknown": canary}],
        "users": [{"username": "a", "password": canary, "enabled": 1}],
        "identity_providers": [{"name": "p", "issuer": "https://a.example", "client_id": "x", "client_secret": canary, "enabled": canary}],
        "resources": [{"name": "r", "secrets": [{"sha256": canary}]}],
    });
    assert!(!problems(&document).join("\n").contains(canary));
    let document = read(&json!({
        "clients": [{"client_id": "c", "redirect_uris": ["https://a.example"], "secrets": [{"value": canary}]}],
        "users": [{"username": "a", "password": canary}],
        "identity_providers": [{"name": "p", "issuer": "https://a.example", "client_id": "x", "client_secret": canary}],
    }));
    assert!(!format!("{:?}", document.unwrap()).contains(canary));
}

/// Any JSON whose keys are often ours.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(&["https://a.example/cb", "code", "openid", "password", "2027-01-01T00:00:00Z"][..])
            .prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(
            &[
                "clients",
                "users",
                "resources",
                "identity_providers",
                "tenants",
                "client_id",
                "name",
                "username",
                "secrets",
                "value",
                "sha256",
                "redirect_uris",
                "response_types",
                "grant_types",
                "scope",
                "claims",
                "jwks",
                "keys",
                "token_exchange",
                "expires_at",
                "issuer",
                "role_map",
                "address",
                "refresh_token_lifetime",
                "assertion_issuers",
            ][..]
        )
        .prop_map(str::to_owned),
        ".{0,8}",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_it_panic_and_a_problem_is_one_line(document in any_json()) {
        for problem in read(&document).err().into_iter().flatten() {
            prop_assert!(!problem.to_string().chars().any(char::is_control), "{problem:?}");
        }
    }
}
