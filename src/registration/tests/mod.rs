//! Documents, right and wrong.

mod any;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client_secret::SecretMaterial;
use super::document::Document;
use super::references::Stored;
use crate::strict_json::parse;
use gatepost_protocol::registration::client::from_json as client_from_json;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::registration::{DocumentProblem, ObjectKind};
use gatepost_protocol::words::client::*;
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::samples::{self, changed};

fn read(value: &Value) -> Result<Document, Vec<DocumentProblem>> {
    read_beside(value, &Stored::default())
}

fn read_beside(value: &Value, stored: &Stored) -> Result<Document, Vec<DocumentProblem>> {
    Document::from_json(
        &parse(&value.to_string()).unwrap(),
        &ClientDefaults::default(),
        stored,
    )
}

fn problems(value: &Value) -> Vec<String> {
    read(value)
        .expect_err("must be refused")
        .iter()
        .map(DocumentProblem::to_string)
        .collect()
}

/// `base` with these members laid over it, alone in its list; what it may name is there.
fn beside(kind: &str, members: Value) -> Value {
    let url = |path: &str| format!("https://hub.example/{path}");
    let (list, base) = match kind {
        "client" => {
            let secret = json!([{"value": "a-secret-of-20-chars"}]);
            (
                "clients",
                json!({"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "secrets": secret}),
            )
        }
        "provider" => (
            "identity_providers",
            json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"}),
        ),
        "hub" => (
            "identity_providers",
            json!({"name": "hub", "client_id": "x", "authorization_endpoint": url("a"),
            "token_endpoint": url("t"), "userinfo_endpoint": url("u"), "subject_claim": "id"}),
        ),
        "user" => ("users", json!({"username": "alice"})),
        "issuer" => {
            let base = json!({"issuer": "https://a.example", "clients": [], "jwks_uri": "https://a.example/jwks"});
            ("assertion_issuers", base)
        }
        _ => return members,
    };
    let corp = json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"});
    let mut document = if list == "clients" {
        json!({"identity_providers": [corp]})
    } else {
        json!({})
    };
    document[list] = json!([changed(base, members)]);
    document
}

fn assert_refused(kind: &str, members: Value, place: &str, rule: &str) {
    let found = problems(&beside(kind, members.clone()));
    let is_told =
        found.len() == 1 && found[0].starts_with(&format!("{place}: ")) && found[0].contains(rule);
    assert!(is_told, "{kind} {members} => {place} | {rule}: {found:?}");
}

#[test]
fn each_mistake_is_named_with_place_and_rule() {
    let rows = include_str!("refused.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for row in rows {
        let (object, problem) = row.split_once(" => ").unwrap();
        let ((kind, members), (place, rule)) = (
            object.split_once(' ').unwrap(),
            problem.split_once(" | ").unwrap(),
        );
        assert_refused(kind, serde_json::from_str(members).unwrap(), place, rule);
    }
    let too_many: Map<String, Value> = (0..65)
        .map(|number| (format!("c{number}"), json!("x")))
        .collect();
    assert_refused(
        "provider",
        json!({"claims": too_many}),
        "identity_providers[0].claims",
        "must have at most 64",
    );
    assert_refused(
        "user",
        json!({"username": "x".repeat(257)}),
        "users[0].username",
        "must be 1 to 256",
    );
    assert_refused(
        "client",
        json!({"client_id": "x".repeat(201)}),
        "clients[0].client_id",
        "1 to 200",
    );
}

#[test]
fn a_default_scope_is_judged_beside_other_mistakes() {
    let told = |scope: &str| {
        let members = json!({"scope": scope, "default_scope": "profile", "logo_uri": "no address"});
        let found = problems(&beside("client", members));
        found
            .iter()
            .any(|problem| problem.starts_with("clients[0].default_scope: must be a part"))
    };
    assert!(told("openid email"));
    assert!(!told("openid profile"));
    // Of a scope that cannot be read it is no part in any case.
    assert!(!told("openid \""));
}

#[test]
fn keys_are_public_strong_and_told_apart() {
    let other_y = changed(p256("k", 1), json!({"y": p256("k", 2)["y"]}));
    for (keys, place, rule) in [
        (
            json!([{"kty": "RSA", "n": "x".repeat(168), "e": "AQAB"}]),
            "jwks.keys[0]",
            "2048",
        ),
        (
            json!([p256("k", 1), p256("k", 2)]),
            "jwks.keys",
            "a kid of its own",
        ),
        (
            json!([p256("k", 1), p256("l", 2), p256("m", 1)]),
            "jwks.keys[2]",
            "stands in the set before",
        ),
        (json!([other_y]), "jwks.keys[0]", "not on its curve"),
    ] {
        assert_refused(
            "client",
            json!({"jwks": {"keys": keys}}),
            &format!("clients[0].{place}"),
            rule,
        );
    }
    let unfit = json!({"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "RS256",
                       "jwks": {"keys": [p256("k", 1)]}, "secrets": []});
    assert_refused("client", unfit, "clients[0].jwks", "no key that fits");
}

#[test]
fn digests_come_in_hex_and_base64() {
    for text in [
        "61".repeat(32),
        format!("{}YWE=", "YWFh".repeat(10)),
        format!("{}YWE", "YWFh".repeat(10)),
    ] {
        let read = read(&beside("client", json!({"secrets": [{"sha256": text}]}))).unwrap();
        let secrets = read.entries.last().unwrap().secrets.as_ref().unwrap();
        assert!(
            matches!(&secrets[0].material, SecretMaterial::Sha256(digest) if digest.expose() == [0x61; 32]),
            "{text}"
        );
    }
}

/// The client as it is read back from what is stored of it, where that scope, tenant or grant is
/// known.
fn client(members: Value) -> Client {
    let name = |kind: ObjectKind, name: &str| ((kind, name.to_owned()), false);
    let objects = [
        name(ObjectKind::ExtensionGrant, "urn:x:key"),
        name(ObjectKind::IdentityProvider, "corp"),
    ]
    .into();
    let known = Stored {
        objects,
        ..Stored::default()
    };
    let document = read_beside(&json!({"clients": [members]}), &known);
    client_from_json(
        &parse_own(&document.unwrap().entries[0].document),
        "client",
        &ClientDefaults::default(),
    )
    .unwrap()
}

#[test]
fn a_client_that_says_little_gets_the_defaults() {
    let client = client(json!({"client_id": "spa", "redirect_uris": ["http://localhost:3000/cb"]}));
    assert_eq!(client.client_name, "spa".into());
    assert_eq!(client.response_types, BTreeSet::from([ResponseType::CODE]));
    assert_eq!(
        client.grant_types,
        BTreeSet::from([GrantType::AuthorizationCode])
    );
    assert!(
        client.enabled
            && client.require_pkce.is_none()
            && client.allow_remember_consent.is_none()
            && !client.allow_plain_pkce
    );
    assert_eq!(
        (client.authentication, client.require_consent),
        (ClientAuthenticationMethod::None, None)
    );
    assert_eq!(
        (
            client.identity_providers,
            client.tenants,
            client.consent_lifetime
        ),
        (None, None, None)
    );
    assert_eq!(
        client.lifetimes.refresh_token_retry_window,
        Duration::from_secs(10)
    );
    assert_eq!(client.lifetimes.authorization_code, Duration::from_secs(60));
    assert_eq!(client.access_token_type, AccessTokenType::Jwt);
    assert_eq!(client.id_token_signed_response_alg, SigningAlgorithm::Rs256);
}

#[test]
fn a_client_of_the_fapi_profile_says_little_and_keeps_it_whole() {
    let client = client(json!({
        "client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://a.example/cb"],
        "jwks": {"keys": [p256("k", 1)]}
    }));
    assert_eq!(
        client.authentication,
        ClientAuthenticationMethod::PrivateKeyJwt
    );
    assert_eq!(
        client.assertion_algorithms(),
        [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa]
    );
    assert!(client.requires_pushed_requests && client.code_binding() == CodeBinding::Pkce);
    assert!(client.requires_dpop && client.requires_dpop_nonce);
    assert_eq!(client.refresh_token_usage, RefreshTokenUsage::Reuse);
    for signed in [
        client.id_token_signed_response_alg,
        client.access_token_signed_response_alg,
    ] {
        assert_eq!(signed, SigningAlgorithm::Es256);
    }
    assert_eq!(client.lifetimes.authorization_code, Duration::from_secs(60));
    // What it says itself, it keeps.
    let said = json!({
        "client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://a.example/cb"], "jwks": {"keys": [p256("k", 1)]},
        "authorization_code_lifetime": 30, "id_token_signed_response_alg": "EdDSA"
    });
    let said = self::client(said);
    assert_eq!(said.lifetimes.authorization_code, Duration::from_secs(30));
    assert_eq!(said.id_token_signed_response_alg, SigningAlgorithm::EdDsa);
    let long = ClientDefaults {
        authorization_code_lifetime: Duration::from_secs(600),
        ..ClientDefaults::default()
    };
    let metadata = json!({
        "client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://a.example/cb"], "jwks_uri": "https://a.example/jwks"
    });
    let bounded = client_from_json(&metadata, "client", &long).unwrap();
    assert_eq!(
        bounded.lifetimes.authorization_code,
        Duration::from_secs(60)
    );
    let unfit = json!({"profile": "fapi2", "secrets": [], "jwks": {"keys": [{"kty": "RSA", "n": samples_rsa(), "e": "AQAB"}]}});
    assert_refused("client", unfit, "clients[0].jwks", "no key that fits");
}

/// A modulus of 2048 bits.
fn samples_rsa() -> String {
    format!("{}Q", "x".repeat(341))
}

#[test]
fn what_is_stored_tells_what_its_secrets_told() {
    let basic = json!({"client_id": "m2m", "grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"});
    assert_eq!(
        client(basic).authentication,
        ClientAuthenticationMethod::ClientSecretBasic
    );
    let web = json!({"client_id": "web", "redirect_uris": ["https://a.example/cb"], "secrets": [{"value": "a-secret-of-20-chars"}], "client_uri": null});
    assert_eq!(
        client(web).authentication,
        ClientAuthenticationMethod::AnySecret
    );
    let spa = json!({"client_id": "spa", "redirect_uris": ["https://a.example/cb"], "claims": {"x": null}});
    assert_eq!(
        client(spa).claims,
        [(String::from("x"), Value::Null)].into()
    );
    let error = client_from_json(
        &json!({"client_id": "x", "grant_types": ["client_credentials"]}),
        "client",
        &ClientDefaults::default(),
    );
    assert_eq!(error.unwrap_err().len(), 1);
}

#[test]
fn defaults_of_the_installation_reach_the_client() {
    let defaults = ClientDefaults {
        access_token_lifetime: Duration::from_secs(77),
        refresh_token_idle_lifetime: Duration::from_secs(5_000),
        ..ClientDefaults::default()
    };
    let metadata = json!({"client_id": "m2m", "grant_types": ["client_credentials"], "confidential": true, "refresh_token_lifetime": 600});
    let lifetimes = client_from_json(&metadata, "client", &defaults)
        .unwrap()
        .lifetimes;
    assert_eq!(lifetimes.access_token, Duration::from_secs(77));
    assert_eq!(lifetimes.refresh_token_idle, Duration::from_secs(600));
}

#[test]
fn what_looks_like_a_contradiction_and_is_none_is_taken() {
    for members in [
        json!({"client_id": "m2m", "grant_types": ["client_credentials"], "secrets": [{"value": "a-secret-of-20-chars"}]}),
        json!({"client_id": "resource-only", "grant_types": []}),
        json!({"client_id": "ropc", "grant_types": ["password", "refresh_token"], "scope": "offline_access"}),
        json!({"client_id": "key", "grant_types": ["urn:x:key", "refresh_token"], "scope": "offline_access"}),
        json!({"client_id": "short", "grant_types": [], "secrets": [{"sha256": "00".repeat(32)}, {"env": "S"}]}),
        json!({"client_id": "long", "grant_types": [], "secrets": [{"value": "sixteen chars..."}]}),
        json!({"client_id": "imp", "response_types": ["id_token"], "redirect_uris": ["https://a.example"]}),
        json!({"client_id": "hyb", "response_types": ["code id_token", "token code"], "redirect_uris": ["https://a.example"],
               "allow_access_tokens_via_browser": true, "default_response_mode": "fragment"}),
        json!({"client_id": "ropc", "grant_types": ["password"]}),
        json!({"client_id": "day", "grant_types": ["authorization_code", "refresh_token"], "redirect_uris": ["https://a.example"],
               "refresh_token_without_offline_access": true}),
        json!({"client_id": "ropc", "grant_types": ["password"], "identity_providers": ["local", "corp"]}),
        json!({"client_id": "conf", "redirect_uris": ["https://a.example"], "secrets": [{"env": "S"}], "require_pkce": false,
               "refresh_token_usage": "reuse"}),
        json!({"client_id": "native", "application_type": "native", "redirect_uris": ["com.example:/cb", "http://127.0.0.1/cb"]}),
        json!({"client_id": "jwt", "redirect_uris": ["https://a.example"], "token_endpoint_auth_method": "private_key_jwt",
               "jwks": {"keys": [p256("k", 1), {"kty": "RSA", "use": "enc", "n": "AA", "e": "AQ"}]}, "refresh_token_retry_window": 0}),
    ] {
        client(members);
    }
}

fn p256(kid: &str, number: u8) -> Value {
    changed(samples::p256(number).to_jwk(), json!({"kid": kid}))
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
            ((ObjectKind::Resource, "orders".to_owned()), false),
            ((ObjectKind::ExtensionGrant, "urn:x".to_owned()), false),
            (
                (ObjectKind::ResourceScope, "orders.write".to_owned()),
                false,
            ),
            ((ObjectKind::Client, "web".to_owned()), true),
            ((ObjectKind::Client, "spa".to_owned()), false),
        ]),
        compiled_in_grants: BTreeSet::from(["urn:y".to_owned()]),
    };
    let read = |value: &Value| read_beside(value, &known);
    let scope = json!({"name": "orders.read", "resources": ["orders"]});
    let extension = json!({"client_id": "x", "grant_types": ["urn:x"]});
    assert!(read(&json!({"resource_scopes": [scope], "clients": [extension]})).is_ok());
    for (document, place) in [
        (
            json!({"identity_scopes": [{"name": "orders.write"}]}),
            "identity_scopes[0].name",
        ),
        (
            json!({"extension_grants": [{"name": "urn:y", "function": "a.b"}]}),
            "extension_grants[0].name",
        ),
    ] {
        assert_refused_at(read(&document), place);
    }
    for kept in [
        json!({"client_id": "web", "grant_types": [], "token_endpoint_auth_method": "client_secret_basic"}),
        json!({"client_id": "web", "grant_types": [], "secrets": []}),
        json!({"client_id": "spa", "grant_types": []}),
    ] {
        assert!(read(&json!({"clients": [kept]})).is_ok(), "{kept}");
    }
}

fn assert_refused_at(found: Result<Document, Vec<DocumentProblem>>, place: &str) {
    let found = found.expect_err("refused");
    let places: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(places, [place]);
}

#[test]
fn a_name_is_given_once() {
    let client = json!({"client_id": "web", "grant_types": []});
    for (document, place) in [
        (json!({"clients": [client, client]}), "clients[1].client_id"),
        (
            json!({"clients": [client], "resources": [{"name": "web"}]}),
            "clients[0].client_id",
        ),
        (
            json!({"identity_scopes": [{"name": "x"}], "resource_scopes": [{"name": "x"}]}),
            "resource_scopes[0].name",
        ),
        (
            json!({"resources": [{"name": "email"}], "clients": [{"client_id": "email", "grant_types": []}]}),
            "clients[0].client_id",
        ),
        (
            json!({"resource_scopes": [{"name": "x"}, {"name": "y"}, {"name": "x"}]}),
            "resource_scopes[2].name",
        ),
        (
            json!({"users": [{"username": "a", "sub": "1"}, {"username": "b", "sub": "1"}]}),
            "users[1].sub",
        ),
    ] {
        assert_refused_at(read(&document), place);
    }
    let tenants = json!({"tenants": [{"name": "a"}], "users": [{"username": "alice"}, {"username": "alice", "tenant": "a"}]});
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
        assert!(
            problems(&document)
                .iter()
                .any(|problem| problem.contains("NUL")),
            "{document}"
        );
    }
}

#[test]
fn every_mistake_is_told_at_once_in_the_order_of_the_document() {
    let found = problems(&json!({
        "users": [{"username": "a", "enabled": 1}],
        "clients": [{"client_id": "ok", "grant_types": []}, {"client_id": 1, "scop": "x", "redirect_uris": [1]}],
        "tenants": [{"name": ""}],
    }));
    let places: Vec<&str> = found
        .iter()
        .map(|problem| problem.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "tenants[0].name",
            "clients[1]",
            "clients[1].client_id",
            "clients[1].redirect_uris[0]",
            "users[0].enabled"
        ]
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

#[test]
fn mistakes_of_every_sort_are_told_in_one_round() {
    let told = problems(&json!({
        "identity_scopes": [{"name": "x", "required": "yes"}],
        "clients": [
            {"client_id": "a", "redirect_uris": 5, "scope": "openid zebra", "grant_types": ["refresh_token"]},
            {"client_id": "b", "redirect_uris": ["https://b.example/cb"], "scope": "wombat"},
            {"client_id": "b", "redirect_uris": ["https://b.example/cb"], "scope": "openid", "identity_providers": ["nobody"]},
        ],
        "users": [{"username": "u", "enabled": 1, "tenant": "none"}],
    }));
    let wanted = [
        "identity_scopes[0].required: expected",
        "clients[0].redirect_uris: expected",
        "clients[0].scope: names \"zebra\"",
        "clients[1].scope: names \"wombat\"",
        "clients[2].client_id: is the same",
        "clients[2].identity_providers: names \"nobody\"",
        "users[0].enabled: expected",
        "users[0].tenant: names \"none\"",
    ];
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.starts_with(wanted), "{told}");
    }
    assert_eq!(told.len(), wanted.len());
}
