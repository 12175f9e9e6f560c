//! Tables of what is neither client nor the document as a whole.

use serde_json::{Map, Value, json};

use super::{problems, read};
use crate::protocol::registration::provider::{ProviderKind, from_json};

/// `base` with these members laid over it, alone in its list.
fn listed(list: &str, base: Value, members: Value) -> Value {
    let mut object = base;
    for (key, value) in members.as_object().unwrap() {
        object[key] = value.clone();
    }
    json!({ list: [object] })
}

fn provider(members: Value) -> Value {
    listed("identity_providers", json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"}), members)
}

fn user(members: Value) -> Value {
    listed("users", json!({"username": "alice"}), members)
}

fn issuer(members: Value) -> Value {
    let base = json!({"issuer": "https://a.example", "clients": [], "jwks_uri": "https://a.example/jwks"});
    listed("assertion_issuers", base, members)
}

#[test]
fn mistakes_in_the_catalogue_are_named_with_place_and_rule() {
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
        (
            json!({"identity_scopes": [{"name": "x", "claims": {"department": "iss"}}]}),
            "identity_scopes[0].claims.department: is a reserved claim",
        ),
        (
            json!({"identity_scopes": [{"name": "x", "claims": {"sub": "login"}}]}),
            "identity_scopes[0].claims.sub: is a reserved claim",
        ),
        (
            json!({"resource_scopes": [{"name": "x", "claims": {"a": "c", "b": "c"}}]}),
            "resource_scopes[0].claims.b: goes out under a name that another has",
        ),
        (json!({"resources": [{"name": "r", "claims": {"a": 1}}]}), "resources[0].claims.a: expected a string"),
        (json!({"resources": [{"name": "r", "claims": "a"}]}), "resources[0].claims: expected an array"),
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
    ] {
        let found = problems(&document);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} | {found:?}");
    }
}

#[test]
fn mistakes_in_providers_are_named_with_place_and_rule() {
    let too_many: Map<String, Value> = (0..65).map(|number| (format!("c{number}"), json!("x"))).collect();
    for (document, expected) in [
        (provider(json!({"name": "local"})), "identity_providers[0].name: must not be local"),
        (provider(json!({"name": "../x"})), "identity_providers[0].name: must be 1 to 64"),
        (provider(json!({"issuer": null})), "identity_providers[0].issuer: is required"),
        (provider(json!({"issuer": "https://login.example/{tenant}"})), "identity_providers[0].issuer: must hold only"),
        (provider(json!({"issuer": "http://login.example"})), "identity_providers[0].issuer: must be https"),
        (provider(json!({"scope": "profile"})), "identity_providers[0].scope: must contain openid"),
        (provider(json!({"claims": {"x": "sub"}})), "identity_providers[0].claims.x: is a reserved claim"),
        (provider(json!({"claims": {"x": 1}})), "identity_providers[0].claims.x: expected a string"),
        (provider(json!({"claims": {"x": "email_verified"}})), "identity_providers[0].claims.x: can only come from"),
        (provider(json!({"role_map": {"x": "y"}})), "identity_providers[0].role_map: needs a claim that becomes role"),
        (provider(json!({"claims": too_many})), "identity_providers[0].claims: must have at most 64"),
        (provider(json!({"acr_map": {"mfa": 2}})), "identity_providers[0].acr_map.mfa: must be an acr"),
        (provider(json!({"acr_map": {"mfa": "a b"}})), "identity_providers[0].acr_map.mfa: must be an acr"),
        (provider(json!({"acr_map": {"m fa": "2"}})), "identity_providers[0].acr_map.m fa: must be an acr"),
        (
            provider(json!({"prompt_values_supported": ["login", "select-account"]})),
            "identity_providers[0].prompt_values_supported[1]: must be one of none, login",
        ),
        (
            provider(json!({"prompt_values_supported": "login"})),
            "identity_providers[0].prompt_values_supported: expected an array",
        ),
        (provider(json!({"role_map": {"x": 1}})), "identity_providers[0].role_map.x: must be a role"),
        (provider(json!({"client_secret": 1})), "identity_providers[0].client_secret: expected an object"),
        (
            provider(json!({"client_secret": {"file": "a", "env": "B"}})),
            "identity_providers[0].client_secret: must be a string",
        ),
    ] {
        let found = problems(&document);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} | {found:?}");
    }
}

#[test]
fn mistakes_in_users_are_named_with_place_and_rule() {
    for (document, expected) in [
        (user(json!({"username": "a\u{200b}b"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": "a\u{202e}b"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": "a\nb"})), "users[0].username: must not hold control, bidi"),
        (user(json!({"username": " a"})), "users[0].username: must not begin"),
        (user(json!({"username": ""})), "users[0].username: must be 1 to 256"),
        (user(json!({"username": "x".repeat(257)})), "users[0].username: must be 1 to 256"),
        (user(json!({"username": null})), "users[0].username: is required"),
        (json!({"users": [{"sub": "s-1"}]}), "users[0].username: is required"),
        (user(json!({"username": null, "sub": "s-1", "password": "a password"})), "users[0].username: is required"),
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
    ] {
        let found = problems(&document);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} | {found:?}");
    }
}

#[test]
fn mistakes_in_assertion_issuers_are_named_with_place_and_rule() {
    for (document, expected) in [
        (issuer(json!({"algs": ["none"]})), "assertion_issuers[0].algs[0]: must be one of RS256"),
        (issuer(json!({"algs": []})), "assertion_issuers[0].algs: must not be empty"),
        (issuer(json!({"jwks_uri": null})), "assertion_issuers[0].jwks: must be given"),
        (issuer(json!({"clients": null})), "assertion_issuers[0].clients: is required"),
        (issuer(json!({"scope": "a\"b"})), "assertion_issuers[0].scope: must be scope names"),
        (
            issuer(json!({"jwks_uri": null, "jwks": {"keys": [{"kty": "EC", "crv": "P-384"}]}})),
            "assertion_issuers[0].jwks: has no key that fits algs",
        ),
        (issuer(json!({"subject": "sub"})), "assertion_issuers[0].subject: must be one of link, username"),
    ] {
        let found = problems(&document);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{expected} | {found:?}");
    }
}

#[test]
fn a_provider_without_discovery_needs_all_its_endpoints() {
    let oauth = json!({"identity_providers": [{"name": "hub", "client_id": "x", "authorization_endpoint": "https://hub.example/a",
        "token_endpoint": "https://hub.example/t", "userinfo_endpoint": "https://api.hub.example/user", "subject_claim": "id",
        "claims": {"groups": "role"}, "role_map": {"staff": ["a", "b"], "boss": "admin"}}]});
    let document = read(&oauth).unwrap();
    let hub = from_json(&document.entries[0].document, "").unwrap();
    assert!(matches!(hub.kind, ProviderKind::OAuth { .. }));
    assert_eq!((hub.role_map["staff"].len(), hub.authority()), (2, "https://api.hub.example/user"));
    let corp = from_json(&read(&provider(json!({}))).unwrap().entries[0].document, "").unwrap();
    assert_eq!(corp.authority(), "https://login.example");
    for (key, value, rule) in [
        ("token_endpoint", Value::Null, "is required"),
        ("acr_map", json!({"mfa": "2"}), "is for providers with an issuer"),
        ("subject_claim", json!("email"), "never given to someone else"),
        ("subject_claim", json!("login"), "never given to someone else"),
        ("subject_claim", json!("username"), "never given to someone else"),
        ("subject_claim", json!("preferred_username"), "never given to someone else"),
        ("subject_claim", json!("name"), "never given to someone else"),
        ("subject_claim", json!("upn"), "never given to someone else"),
        ("subject_claim", json!("Email"), "never given to someone else"),
        ("subject_claim", json!("LOGIN"), "never given to someone else"),
        ("subject_claim", json!("userName"), "never given to someone else"),
        ("subject_claim", json!("emailAddress"), "never given to someone else"),
        ("subject_claim", json!("user-principal-name"), "never given to someone else"),
        ("subject_claim", json!("screen_name"), "never given to someone else"),
        ("subject_claim", json!("unique_name"), "never given to someone else"),
        ("subject_claim", json!("handle"), "never given to someone else"),
        ("subject_claim", json!("global_name"), "never given to someone else"),
        ("issuer", json!("https://hub.example"), "one or the other"),
        ("sign_out", json!(true), "for providers with an issuer"),
        ("emails_endpoint", json!("http://api.hub.example/emails"), "must be https"),
        ("emails_endpoint", json!("https://api.hub.example/emails"), "needs a claim that comes from it"),
        ("userinfo_endpoint", json!("http://api.hub.example/user"), "must be https"),
    ] {
        let mut broken = oauth.clone();
        broken["identity_providers"][0][key] = value;
        let found = problems(&broken);
        assert!(found.len() == 1 && found[0].contains(key) && found[0].contains(rule), "{found:?}");
    }
}

#[test]
fn people_whom_only_a_provider_knows_are_named_by_their_sub() {
    let document = json!({"users": [{"username": null, "sub": "s-1", "claims": {"name": "Nora"}}]});
    let read = read(&document).unwrap();
    assert_eq!((read.users[0].username.as_deref(), read.users[0].designation()), (None, "s-1"));
}
