//! Tables of documents, right and wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::protocol::client::*;
use crate::protocol::response_type::ResponseType;
use crate::protocol::scope::{Catalogue, RegisteredResource};

use super::client::{from_json, from_stored};
use super::defaults::ClientDefaults;
use super::document::Document;
use super::problem::Problem;
use super::provider::ProviderKind;
use super::references::Stored;

fn read(value: &Value) -> Result<Document, Vec<Problem>> {
    let (catalogue, clients) = (Catalogue::default(), BTreeMap::new());
    Document::from_json(value, &ClientDefaults::default(), &Stored { catalogue: &catalogue, clients: &clients })
}

fn problems(value: &Value) -> Vec<String> {
    read(value).expect_err("must be refused").iter().map(Problem::to_string).collect()
}

/// The one problem of a document with this client in it, where a provider `corp` is there to be named.
fn client_problem(members: Value) -> String {
    let mut client =
        json!({"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "secrets": [{"value": "s"}]});
    for (key, value) in members.as_object().unwrap() {
        client[key] = value.clone();
    }
    let corp = json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"});
    let found = problems(&json!({"clients": [client], "identity_providers": [corp]}));
    assert_eq!(found.len(), 1, "{members}: {found:?}");
    found[0].clone()
}

fn client(members: Value) -> Client {
    let mut problems = Vec::new();
    let entry = from_json(&members, "clients[0]", &ClientDefaults::default(), &mut problems);
    assert_eq!(problems, [], "{members}");
    entry.unwrap().client
}

#[test]
fn the_document_of_the_readme_is_read_whole() {
    let document = read(&json!({
        "tenants": [{"name": "acme", "display_name": "ACME Ltd"}],
        "identity_scopes": [{"name": "profile", "display_name": "Profile", "description": "", "claims": ["name", "given_name"],
                             "required": false, "emphasize": false, "show_in_discovery": true}],
        "resource_scopes": [{"name": "orders.read", "display_name": "Read orders", "claims": ["role"], "resources": ["orders"]}],
        "resources": [{"name": "orders", "display_name": "Orders API", "secrets": [{"value": "..."}], "claims": []}],
        "identity_providers": [{"name": "corp", "display_name": "Corporate", "enabled": true, "issuer": "https://login.example.com",
                                "client_id": "gp", "client_secret": "...", "scope": "openid profile email",
                                "claims": {"groups": "role"}, "role_map": {}, "provision": true, "tenant": null, "sign_out": false}],
        "assertion_issuers": [], "extension_grants": [{"name": "urn:example:legacy-key", "function": "legacy.redeem_key"}],
        "clients": [{"client_id": "web", "client_name": "Web shop", "redirect_uris": ["https://shop.example.com/cb"],
                     "response_types": ["code"], "grant_types": ["authorization_code", "refresh_token"],
                     "scope": "openid profile orders.read offline_access", "secrets": [{"value": "..."}],
                     "identity_providers": ["local", "corp"]}],
        "users": [{"sub": null, "username": "alice", "password": "correct horse", "tenant": null, "enabled": true,
                   "claims": {"name": "Alice Smith", "role": ["admin"]}}]
    }))
    .unwrap();
    assert_eq!(document.tenants[0].object.display_name, "ACME Ltd");
    assert_eq!(document.resource_scopes[0].object.resources, ["orders"]);
    assert!(
        matches!(&document.identity_providers[0].object.kind, ProviderKind::OpenId { issuer } if issuer == "https://login.example.com")
    );
    assert_eq!(document.identity_providers[0].document.get("client_secret"), None);
    assert_eq!(document.resources[0].document.get("secrets"), None);
    assert_eq!(document.extension_grants[0].object.schema, "legacy");
    assert_eq!(document.clients[0].client.authentication, ClientAuthenticationMethod::AnySecret);
    assert_eq!(document.clients[0].metadata.get("secrets"), None);
    assert_eq!(document.users[0].subject, None);
    assert_eq!(read(&json!({})), Ok(Document::default()));
}

#[test]
fn a_client_that_says_little_gets_the_defaults() {
    let client = client(json!({"client_id": "spa", "redirect_uris": ["http://localhost:3000/cb"]}));
    assert_eq!(client.client_name, "spa");
    assert_eq!(client.response_types, BTreeSet::from([ResponseType::CODE]));
    assert_eq!(client.grant_types, BTreeSet::from([GrantType::AuthorizationCode]));
    assert!(client.enabled && client.require_pkce && client.allow_remember_consent && !client.allow_plain_pkce);
    assert_eq!((client.authentication, client.require_consent), (ClientAuthenticationMethod::None, None));
    assert_eq!((client.identity_providers, client.tenants, client.consent_lifetime), (None, None, None));
    assert_eq!(client.lifetimes.refresh_token_retry_window, Duration::from_secs(10));
    assert_eq!(client.lifetimes.authorization_code, Duration::from_secs(60));
    assert_eq!(client.access_token_type, AccessTokenType::Jwt);
    assert_eq!(client.id_token_signed_response_alg, SigningAlgorithm::Rs256);
}

#[test]
fn what_is_stored_reads_back_as_the_same_client() {
    for members in [
        json!({"client_id": "web", "redirect_uris": ["https://a.example/cb"], "secrets": [{"value": "s"}], "client_uri": null}),
        json!({"client_id": "spa", "redirect_uris": ["https://a.example/cb"], "claims": {"x": null}}),
        json!({"client_id": "m2m", "grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"}),
        json!({"client_id": "x", "grant_types": ["urn:x:y", "password"], "secrets": [{"sha256": "00".repeat(32)}],
               "access_token_lifetime": 60, "token_exchange": {"from_clients": ["web"]}, "tenants": ["acme"]}),
    ] {
        let mut problems = Vec::new();
        let entry = from_json(&members, "clients[0]", &ClientDefaults::default(), &mut problems).unwrap();
        assert_eq!(problems, []);
        assert_eq!(from_stored(&entry.metadata, &ClientDefaults::default()), Ok(entry.client));
    }
    let error =
        from_stored(&json!({"client_id": "x", "grant_types": ["client_credentials"]}), &ClientDefaults::default());
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
    let lifetimes = from_stored(&metadata, &defaults).unwrap().lifetimes;
    assert_eq!(lifetimes.access_token, Duration::from_secs(77));
    assert_eq!(lifetimes.refresh_token_idle, Duration::from_secs(600));
}

#[test]
fn wrong_values_of_a_client_are_named_with_place_and_rule() {
    for (members, place, rule) in [
        (json!({"client_id": 7}), "client_id", "expected a string, found a number"),
        (json!({"client_id": null}), "client_id", "is required"),
        (json!({"client_id": "a b"}), "client_id", "printable ASCII"),
        (json!({"client_id": "x".repeat(201)}), "client_id", "1 to 200"),
        (json!({"client_name": "a\u{202e}b"}), "client_name", "bidi"),
        (json!({"logo_uri": "javascript:alert(1)"}), "logo_uri", "must begin with https://"),
        (json!({"redirect_uris": "https://a.example"}), "redirect_uris", "expected an array, found a string"),
        (json!({"redirect_uris": ["https://a.example", 1]}), "redirect_uris[1]", "expected a string, found a number"),
        (json!({"redirect_uris": ["https://a.example/#"]}), "redirect_uris[0]", "fragment"),
        (json!({"redirect_uris": ["https://a.example", "https://a.example"]}), "redirect_uris[1]", "twice"),
        (json!({"redirect_uris": ["myapp://cb"]}), "redirect_uris[0]", "public clients only"),
        (json!({"post_logout_redirect_uris": ["http://a.example"]}), "post_logout_redirect_uris[0]", "must be https"),
        (json!({"response_types": ["none"]}), "response_types[0]", "must be code"),
        (json!({"grant_types": {}}), "grant_types", "expected an array, found an object"),
        (json!({"scope": ["openid"]}), "scope", "expected a string, found an array"),
        (json!({"scope": "open\"id"}), "scope", "separated by spaces"),
        (json!({"application_type": "spa"}), "application_type", "must be one of web, native"),
        (
            json!({"token_endpoint_auth_method": "client_secret_jwt"}),
            "token_endpoint_auth_method",
            "must be one of none",
        ),
        (json!({"id_token_signed_response_alg": "none"}), "id_token_signed_response_alg", "must be one of RS256"),
        (
            json!({"access_token_signed_response_alg": "HS256"}),
            "access_token_signed_response_alg",
            "RS256, ES256, EdDSA",
        ),
        (json!({"jwks": {"keys": []}}), "jwks.keys", "at least one key"),
        (json!({"jwks": {"keys": [{"kty": "RSA", "d": "x"}]}}), "jwks.keys[0]", "public part only"),
        (json!({"jwks": {"keys": [{"kty": "oct", "k": "x"}]}}), "jwks.keys[0]", "public part only"),
        (json!({"jwks": {"keys": [{}]}}), "jwks.keys[0].kty", "must be RSA"),
        (json!({"jwks_uri": "http://a.example/jwks"}), "jwks_uri", "must be https"),
        (json!({"default_max_age": -1}), "default_max_age", "whole number"),
        (json!({"frontchannel_logout_uri": "http://a.example"}), "frontchannel_logout_uri", "must be https"),
        (
            json!({"backchannel_logout_session_required": true}),
            "backchannel_logout_session_required",
            "needs backchannel_logout_uri",
        ),
        (json!({"enabled": "yes"}), "enabled", "expected true or false, found a string"),
        (json!({"identity_providers": []}), "identity_providers", "leave it out to allow every one"),
        (json!({"tenants": []}), "tenants", "leave it out to allow every one"),
        (json!({"consent_lifetime": 0}), "consent_lifetime", "from 1"),
        (json!({"default_response_mode": "web_message"}), "default_response_mode", "query, fragment, form_post"),
        (json!({"access_token_type": "opaque"}), "access_token_type", "jwt, reference"),
        (json!({"allowed_cors_origins": ["https://a.example/"]}), "allowed_cors_origins[0]", "as browsers send them"),
        (
            json!({"allowed_cors_origins": ["https://a.example:443"]}),
            "allowed_cors_origins[0]",
            "as browsers send them",
        ),
        (json!({"allowed_cors_origins": ["*"]}), "allowed_cors_origins[0]", "wildcards"),
        (json!({"allowed_cors_origins": ["null"]}), "allowed_cors_origins[0]", "must begin with"),
        (json!({"claims": {"sub": "x"}}), "claims.sub", "reserved"),
        (json!({"claims": {"a b": "x"}}), "claims.a b", "without spaces"),
        (json!({"claims": []}), "claims", "expected an object, found an array"),
        (json!({"authorization_code_lifetime": 601}), "authorization_code_lifetime", "from 1 to 600"),
        (json!({"authorization_code_lifetime": 0}), "authorization_code_lifetime", "from 1 to 600"),
        (json!({"id_token_lifetime": 0}), "id_token_lifetime", "from 1"),
        (json!({"access_token_lifetime": -1}), "access_token_lifetime", "from 1"),
        (json!({"access_token_lifetime": 1e300}), "access_token_lifetime", "from 1"),
        (
            json!({"access_token_lifetime": "3600"}),
            "access_token_lifetime",
            "expected a whole number of seconds, found a string",
        ),
        (json!({"refresh_token_lifetime": 999_999_999_999_u64}), "refresh_token_lifetime", "from 1 to 315360000"),
        (
            json!({"refresh_token_lifetime": 60, "refresh_token_idle_lifetime": 61}),
            "refresh_token_idle_lifetime",
            "not be longer",
        ),
        (json!({"refresh_token_retry_window": 601}), "refresh_token_retry_window", "from 0 to 600"),
        (json!({"refresh_token_usage": "once"}), "refresh_token_usage", "rotate, reuse"),
        (json!({"device_code_lifetime": 0}), "device_code_lifetime", "from 1"),
        (json!({"device_interval": 0}), "device_interval", "from 1"),
        (json!({"token_exchange": {"from": []}}), "", "unknown key \"from\"; the nearest is \"from_clients\""),
        (json!({"token_exchange": {"to_resources": []}}), "token_exchange.to_resources", "must not be empty"),
        (
            json!({"secrets": [{"value": "s", "expires_at": "2026-13-01T00:00:00Z"}]}),
            "secrets[0].expires_at",
            "RFC 3339",
        ),
        (json!({"redirect_uri": []}), "", "unknown key \"redirect_uri\"; the nearest is \"redirect_uris\""),
        (json!({"confidential": true}), "", "unknown key \"confidential\""),
    ] {
        let problem = client_problem(members);
        let place = if place.is_empty() { String::from("clients[0]") } else { format!("clients[0].{place}") };
        assert!(problem.starts_with(&place) && problem.contains(rule), "{problem} | {place} | {rule}");
    }
}

#[test]
fn contradictions_of_a_client_are_refused_with_the_reason() {
    let public = json!([]);
    for (members, key, reason) in [
        (json!({"response_types": ["token"]}), "response_types", "allow_access_tokens_via_browser"),
        (json!({"response_types": ["code id_token token"]}), "response_types", "allow_access_tokens_via_browser"),
        (
            json!({"response_types": ["id_token"], "grant_types": ["authorization_code", "implicit"]}),
            "response_types",
            "code",
        ),
        (
            json!({"response_types": ["code"], "grant_types": ["implicit", "authorization_code"]}),
            "response_types",
            "implicit",
        ),
        (json!({"response_types": ["code"], "grant_types": ["refresh_token"]}), "grant_types", "authorization_code"),
        (json!({"response_types": ["id_token"], "grant_types": []}), "grant_types", "implicit"),
        (json!({"redirect_uris": []}), "redirect_uris", "is required"),
        (json!({"grant_types": ["password"], "identity_providers": ["corp"]}), "identity_providers", "local"),
        (json!({"grant_types": ["client_credentials"], "secrets": public}), "grant_types", "needs secrets or keys"),
        (
            json!({"grant_types": ["urn:ietf:params:oauth:grant-type:token-exchange"], "secrets": public}),
            "grant_types",
            "confidential",
        ),
        (json!({"refresh_token_usage": "reuse", "secrets": public}), "refresh_token_usage", "rotation"),
        (json!({"require_pkce": false, "secrets": public}), "require_pkce", "public client"),
        (json!({"token_endpoint_auth_method": "none"}), "secrets", "none"),
        (
            json!({"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://a.example/jwks"}),
            "secrets",
            "private_key_jwt",
        ),
        (
            json!({"token_endpoint_auth_method": "private_key_jwt", "secrets": public}),
            "token_endpoint_auth_method",
            "needs jwks",
        ),
        (json!({"jwks": {"keys": [{"kty": "EC"}]}, "jwks_uri": "https://a.example/jwks"}), "jwks", "beside jwks_uri"),
        (
            json!({"default_response_mode": "query", "response_types": ["id_token"]}),
            "default_response_mode",
            "not allowed",
        ),
        (
            json!({"default_response_mode": "form_post", "redirect_uris": ["myapp://cb"], "secrets": public}),
            "default_response_mode",
            "post",
        ),
    ] {
        let problem = client_problem(members);
        assert!(
            problem.starts_with(&format!("clients[0].{key}: ")) && problem.contains(reason),
            "{problem} | {reason}"
        );
    }
}

#[test]
fn what_looks_like_a_contradiction_and_is_none_is_taken() {
    for members in [
        json!({"client_id": "m2m", "grant_types": ["client_credentials"], "secrets": [{"value": "s"}]}),
        json!({"client_id": "resource-only", "grant_types": []}),
        json!({"client_id": "imp", "response_types": ["id_token"], "redirect_uris": ["https://a.example"]}),
        json!({"client_id": "hyb", "response_types": ["code id_token", "token code"], "redirect_uris": ["https://a.example"],
               "allow_access_tokens_via_browser": true, "default_response_mode": "fragment"}),
        json!({"client_id": "ropc", "grant_types": ["password"]}),
        json!({"client_id": "ropc", "grant_types": ["password"], "identity_providers": ["local", "corp"]}),
        json!({"client_id": "conf", "redirect_uris": ["https://a.example"], "secrets": [{"env": "S"}], "require_pkce": false,
               "refresh_token_usage": "reuse"}),
        json!({"client_id": "native", "application_type": "native", "redirect_uris": ["com.example:/cb", "http://127.0.0.1/cb"]}),
        json!({"client_id": "jwt", "redirect_uris": ["https://a.example"], "token_endpoint_auth_method": "private_key_jwt",
               "jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "x", "y": "y"}]}, "refresh_token_retry_window": 0}),
    ] {
        client(members);
    }
}

#[test]
fn mistakes_outside_clients_are_named_with_place_and_rule() {
    let provider = |members: Value| {
        let mut provider = json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"});
        for (key, value) in members.as_object().unwrap() {
            provider[key] = value.clone();
        }
        json!({"identity_providers": [provider]})
    };
    let user = |members: Value| {
        let mut user = json!({"username": "alice"});
        for (key, value) in members.as_object().unwrap() {
            user[key] = value.clone();
        }
        json!({"users": [user]})
    };
    let issuer = |jwks: &str, members: Value| {
        let mut issuer = json!({"issuer": "https://a.example", "clients": []});
        issuer[jwks] = json!("https://a.example/jwks");
        for (key, value) in members.as_object().unwrap() {
            issuer[key] = value.clone();
        }
        json!({"assertion_issuers": [issuer]})
    };
    for (document, expected) in [
        (json!([]), "the document: expected an object, found an array"),
        (json!({"client": []}), "the document: unknown key \"client\"; the nearest is \"clients\""),
        (json!({"clients": {}}), "clients: expected an array, found an object"),
        (json!({"clients": ["web"]}), "clients[0]: expected an object, found a string"),
        (json!({"tenants": [{}]}), "tenants[0].name: is required"),
        (json!({"tenants": [{"name": "a b"}]}), "tenants[0].name: must be 1 to 64"),
        (
            json!({"identity_scopes": [{"name": "x", "resources": ["r"]}]}),
            "identity_scopes[0]: unknown key \"resources\"",
        ),
        (
            json!({"identity_scopes": [{"name": "x", "claims": ["iss"]}]}),
            "identity_scopes[0].claims[0]: is a reserved claim",
        ),
        (json!({"resource_scopes": [{"name": "email"}]}), "resource_scopes[0].name: is the name of a built-in"),
        (
            json!({"resource_scopes": [{"name": "x", "required": 1}]}),
            "resource_scopes[0].required: expected true or false",
        ),
        (json!({"resources": [{"name": "r", "secrets": [{}]}]}), "resources[0].secrets[0]: must have exactly one"),
        (
            json!({"extension_grants": [{"name": "password", "function": "a.b"}]}),
            "extension_grants[0].name: is the name of a built-in",
        ),
        (
            json!({"extension_grants": [{"name": "x", "function": "b"}]}),
            "extension_grants[0].function: must be a schema",
        ),
        (
            json!({"extension_grants": [{"name": "x", "function": "a.b; DROP"}]}),
            "extension_grants[0].function: must be a schema",
        ),
        (provider(json!({"name": "local"})), "identity_providers[0].name: must not be local"),
        (provider(json!({"name": "../x"})), "identity_providers[0].name: must be 1 to 64"),
        (provider(json!({"issuer": null})), "identity_providers[0].issuer: is required"),
        (provider(json!({"issuer": "https://login.example/{tenant}"})), "identity_providers[0].issuer: must hold only"),
        (provider(json!({"issuer": "http://login.example"})), "identity_providers[0].issuer: must be https"),
        (provider(json!({"scope": "profile"})), "identity_providers[0].scope: must contain openid"),
        (provider(json!({"claims": {"x": "sub"}})), "identity_providers[0].claims.x: is a reserved claim"),
        (provider(json!({"claims": {"x": 1}})), "identity_providers[0].claims.x: expected a string"),
        (provider(json!({"role_map": {"x": 1}})), "identity_providers[0].role_map.x: must be a role"),
        (provider(json!({"client_secret": 1})), "identity_providers[0].client_secret: expected an object"),
        (
            provider(json!({"client_secret": {"file": "a", "env": "B"}})),
            "identity_providers[0].client_secret: must be a string",
        ),
        (user(json!({"username": "a\u{200b}b"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": "a\u{202e}b"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": "a\nb"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": " a"})), "users[0].username: must not begin"),
        (user(json!({"username": ""})), "users[0].username: must be 1 to 256"),
        (user(json!({"username": "x".repeat(257)})), "users[0].username: must be 1 to 256"),
        (user(json!({"sub": "a b"})), "users[0].sub: must be 1 to 255"),
        (user(json!({"sub": "é"})), "users[0].sub: must be 1 to 255"),
        (user(json!({"password": "short"})), "users[0].password: must be at least 8"),
        (user(json!({"password": "password"})), "users[0].password: must not be one of the most guessed"),
        (
            user(json!({"password": "long enough", "password_hash": "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA"})),
            "users[0].password: must not stand beside",
        ),
        (user(json!({"password_hash": "$2b$12$abc"})), "users[0].password_hash: must be an Argon2"),
        (user(json!({"password_hash": "argon2id"})), "users[0].password_hash: must be an Argon2"),
        (user(json!({"claims": {"iss": "x"}})), "users[0].claims.iss: is a reserved claim"),
        (user(json!({"claims": {"email_verified": "true"}})), "users[0].claims.email_verified: must be true or false"),
        (user(json!({"claims": {"role": [1]}})), "users[0].claims.role: must be a string or an array"),
        (user(json!({"claims": {"updated_at": "now"}})), "users[0].claims.updated_at: must be a number"),
        (user(json!({"claims": {"address": "x"}})), "users[0].claims.address: must be an object"),
        (user(json!({"claims": {"name": 1}})), "users[0].claims.name: must be a string"),
        (user(json!({"passwort": "x"})), "users[0]: unknown key \"passwort\"; the nearest is \"password\""),
        (issuer("jwks_uri", json!({"algs": ["none"]})), "assertion_issuers[0].algs[0]: must be one of RS256"),
        (issuer("jwks_uri", json!({"algs": []})), "assertion_issuers[0].algs: must not be empty"),
        (issuer("jwks_uri", json!({"jwks_uri": null})), "assertion_issuers[0].jwks: must be given"),
        (issuer("jwks_uri", json!({"clients": null})), "assertion_issuers[0].clients: is required"),
        (issuer("jwks_uri", json!({"subject": "sub"})), "assertion_issuers[0].subject: must be one of link, username"),
    ] {
        let found = problems(&document);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} | {found:?}");
    }
}

#[test]
fn a_provider_without_discovery_needs_all_its_endpoints() {
    let oauth = json!({"identity_providers": [{"name": "hub", "client_id": "x", "authorization_endpoint": "https://hub.example/a",
        "token_endpoint": "https://hub.example/t", "userinfo_endpoint": "https://api.hub.example/user", "subject_claim": "id",
        "role_map": {"staff": ["a", "b"], "boss": "admin"}}]});
    let document = read(&oauth).unwrap();
    assert!(matches!(document.identity_providers[0].object.kind, ProviderKind::OAuth { .. }));
    assert_eq!(document.identity_providers[0].object.role_map["staff"].len(), 2);
    for (key, value, rule) in [
        ("token_endpoint", Value::Null, "is required"),
        ("subject_claim", json!("email"), "never given to someone else"),
        ("subject_claim", json!("login"), "never given to someone else"),
        ("issuer", json!("https://hub.example"), "one or the other"),
        ("userinfo_endpoint", json!("http://api.hub.example/user"), "must be https"),
    ] {
        let mut broken = oauth.clone();
        broken["identity_providers"][0][key] = value;
        let found = problems(&broken);
        assert!(found.len() == 1 && found[0].contains(key) && found[0].contains(rule), "{found:?}");
    }
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
    let mut catalogue = Catalogue::default();
    let orders = RegisteredResource { name: "orders".into(), display_name: "Orders".into(), claims: vec![] };
    catalogue.resources.insert("orders".into(), orders);
    catalogue.extension_grants.insert("urn:x".into());
    let clients = BTreeMap::from([("web".to_owned(), true), ("spa".to_owned(), false)]);
    let stored = Stored { catalogue: &catalogue, clients: &clients };
    let read = |value: &Value| Document::from_json(value, &ClientDefaults::default(), &stored);
    let scope = json!({"name": "orders.read", "resources": ["orders"]});
    let extension = json!({"client_id": "x", "grant_types": ["urn:x"]});
    assert!(read(&json!({"resource_scopes": [scope], "clients": [extension]})).is_ok());
    for (document, place) in [
        (json!({"clients": [{"client_id": "orders", "grant_types": []}]}), "clients[0].client_id"),
        (json!({"resources": [{"name": "web"}]}), "resources[0].name"),
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
    let canary = "canary-5f1c";
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
