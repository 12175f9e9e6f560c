//! Tables of clients.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::problems;
use crate::protocol::client::*;
use crate::protocol::registration::Kind;
use crate::protocol::registration::client::from_json;
use crate::protocol::registration::defaults::ClientDefaults;
use crate::protocol::registration::document::Document;
use crate::protocol::registration::references::Stored;
use crate::protocol::response_type::ResponseType;
use crate::protocol::samples::{self, changed};

/// The one problem of a document with this client in it, where a provider `corp` is there to be named.
fn client_problem(members: Value) -> String {
    let mut client = json!({"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "secrets": [{"value": "a-secret-of-20-chars"}]});
    for (key, value) in members.as_object().unwrap() {
        client[key] = value.clone();
    }
    let corp = json!({"name": "corp", "issuer": "https://login.example", "client_id": "x"});
    let found = problems(&json!({"clients": [client], "identity_providers": [corp]}));
    assert_eq!(found.len(), 1, "{members}: {found:?}");
    found[0].clone()
}

/// The client as it is read back from what is stored of it, where that scope, tenant or grant is known.
fn client(members: Value) -> Client {
    let name = |kind: Kind, name: &str| ((kind, name.to_owned()), false);
    let objects = [name(Kind::ExtensionGrant, "urn:x:key"), name(Kind::IdentityProvider, "corp")].into();
    let known = Stored { objects, ..Stored::default() };
    let document = Document::from_json(&json!({"clients": [members]}), &ClientDefaults::default(), &known);
    from_json(&document.unwrap().entries[0].document, "client", &ClientDefaults::default()).unwrap()
}

#[test]
fn a_client_that_says_little_gets_the_defaults() {
    let client = client(json!({"client_id": "spa", "redirect_uris": ["http://localhost:3000/cb"]}));
    assert_eq!(client.client_name, "spa".into());
    assert_eq!(client.response_types, BTreeSet::from([ResponseType::CODE]));
    assert_eq!(client.grant_types, BTreeSet::from([GrantType::AuthorizationCode]));
    assert!(
        client.enabled
            && client.require_pkce.is_none()
            && client.allow_remember_consent.is_none()
            && !client.allow_plain_pkce
    );
    assert_eq!((client.authentication, client.require_consent), (ClientAuthenticationMethod::None, None));
    assert_eq!((client.identity_providers, client.tenants, client.consent_lifetime), (None, None, None));
    assert_eq!(client.lifetimes.refresh_token_retry_window, Duration::from_secs(10));
    assert_eq!(client.lifetimes.authorization_code, Duration::from_secs(60));
    assert_eq!(client.access_token_type, AccessTokenType::Jwt);
    assert_eq!(client.id_token_signed_response_alg, SigningAlgorithm::Rs256);
}

#[test]
fn what_is_stored_tells_what_its_secrets_told() {
    let basic = json!({"client_id": "m2m", "grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"});
    assert_eq!(client(basic).authentication, ClientAuthenticationMethod::ClientSecretBasic);
    let web = json!({"client_id": "web", "redirect_uris": ["https://a.example/cb"], "secrets": [{"value": "a-secret-of-20-chars"}], "client_uri": null});
    assert_eq!(client(web).authentication, ClientAuthenticationMethod::AnySecret);
    let spa = json!({"client_id": "spa", "redirect_uris": ["https://a.example/cb"], "claims": {"x": null}});
    assert_eq!(client(spa).claims, [(String::from("x"), Value::Null)].into());
    let error = from_json(
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
    let lifetimes = from_json(&metadata, "client", &defaults).unwrap().lifetimes;
    assert_eq!(lifetimes.access_token, Duration::from_secs(77));
    assert_eq!(lifetimes.refresh_token_idle, Duration::from_secs(600));
}

#[test]
fn a_misspelt_value_is_told_the_nearest_valid_one() {
    for (members, place, nearest) in [
        (json!({"response_types": ["cod"]}), "response_types[0]", "code"),
        (json!({"response_types": ["code id_tokn"]}), "response_types[0]", "code id_token"),
        (json!({"grant_types": ["authorization_code", "refresh_tokn"]}), "grant_types", "refresh_token"),
        (json!({"identity_providers": ["lokal"]}), "identity_providers", "local"),
        (json!({"identity_providers": ["crop"]}), "identity_providers", "corp"),
        (
            json!({"token_endpoint_auth_method": "client_secret_basik"}),
            "token_endpoint_auth_method",
            "client_secret_basic",
        ),
        (json!({"access_token_type": "jtw"}), "access_token_type", "jwt"),
        (json!({"default_response_mode": "form-post"}), "default_response_mode", "form_post"),
        (json!({"id_token_signed_response_alg": "EDDSA"}), "id_token_signed_response_alg", "EdDSA"),
    ] {
        let problem = client_problem(members.clone());
        let hint = format!("; the nearest is \"{nearest}\"");
        assert!(problem.starts_with(&format!("clients[0].{place}: ")) && problem.ends_with(&hint), "{problem}");
    }
    assert!(!client_problem(json!({"access_token_type": "opaque"})).contains("nearest"));
    // Names alone can be given in a language.
    assert!(client_problem(json!({"scope#de": "openid"})).starts_with("clients[0]: unknown key \"scope#de\""));
}

#[test]
fn wrong_values_of_a_client_are_named_with_place_and_rule() {
    for (members, place, rule) in [
        (json!({"client_id": 7}), "client_id", "expected a string, found a number"),
        (json!({"client_id": null}), "client_id", "is required"),
        (json!({"client_id": "a b"}), "client_id", "printable ASCII"),
        (json!({"client_id": "x".repeat(201)}), "client_id", "1 to 200"),
        (json!({"client_name": "a\u{202e}b"}), "client_name", "bidi"),
        (json!({"client_name#de": "a\u{202e}b"}), "client_name#de", "bidi"),
        (json!({"client_name#de": 7}), "client_name#de", "expected a string"),
        (json!({"client_name#": "A"}), "client_name#", "must name a language behind the #, as client_name#de"),
        (json!({"client_name#d e": "A"}), "client_name#d e", "must name a language"),
        (json!({"client_name#de": "A", "client_name#DE": "B"}), "client_name#de", "in other letters"),
        (json!({"logo_uri": "javascript:alert(1)"}), "logo_uri", "must begin with https://"),
        (json!({"logo_uri": "http://a.example/logo.png"}), "logo_uri", "must be https"),
        (json!({"redirect_uris": "https://a.example"}), "redirect_uris", "expected an array, found a string"),
        (json!({"redirect_uris": ["https://a.example", 1]}), "redirect_uris[1]", "expected a string, found a number"),
        (json!({"redirect_uris": ["https://a.example/#"]}), "redirect_uris[0]", "fragment"),
        (json!({"redirect_uris": ["https://a.example", "https://a.example"]}), "redirect_uris[1]", "twice"),
        (json!({"redirect_uris": ["myapp://cb"]}), "redirect_uris[0]", "only for public clients"),
        (json!({"post_logout_redirect_uris": ["http://a.example"]}), "post_logout_redirect_uris[0]", "http"),
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
        (json!({"jwks": {"keys": [{}]}}), "jwks.keys[0]", "must have a kty"),
        (json!({"jwks": {"keys": [{"kty": "RSA", "n": "x".repeat(168), "e": "AQAB"}]}}), "jwks.keys[0]", "2048"),
        (json!({"jwks": {"keys": [p256("k", 1), p256("k", 2)]}}), "jwks.keys", "a kid of its own"),
        (
            json!({"jwks": {"keys": [p256("k", 1), p256("l", 2), p256("m", 1)]}}),
            "jwks.keys[2]",
            "stands in the set before",
        ),
        (
            json!({"jwks": {"keys": [changed(p256("k", 1), json!({"y": p256("k", 2)["y"]}))]}}),
            "jwks.keys[0]",
            "not on its curve",
        ),
        (json!({"jwks_uri": "http://a.example/jwks"}), "jwks_uri", "must be https"),
        (json!({"default_max_age": -1}), "default_max_age", "whole number"),
        (json!({"frontchannel_logout_uri": "http://a.example"}), "frontchannel_logout_uri", "must be https"),
    ] {
        let problem = client_problem(members);
        let place = if place.is_empty() { String::from("clients[0]") } else { format!("clients[0].{place}") };
        assert!(problem.starts_with(&place) && problem.contains(rule), "{problem} | {place} | {rule}");
    }
}

#[test]
fn wrong_settings_of_a_client_are_named_with_place_and_rule() {
    for (members, place, rule) in [
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
            json!({"secrets": [{"value": "a-secret-of-20-chars", "expires_at": "2026-13-01T00:00:00Z"}]}),
            "secrets[0].expires_at",
            "RFC 3339",
        ),
        (json!({"redirect_uri": []}), "", "unknown key \"redirect_uri\"; the nearest is \"redirect_uris\""),
        (json!({"confidential": false}), "confidential", "contradicts secrets"),
        (
            json!({"confidential": true, "secrets": [], "token_endpoint_auth_method": "none"}),
            "confidential",
            "contradicts",
        ),
    ] {
        let problem = client_problem(members);
        let place = if place.is_empty() { String::from("clients[0]") } else { format!("clients[0].{place}") };
        assert!(problem.starts_with(&place) && problem.contains(rule), "{problem} | {place} | {rule}");
    }
}

fn assert_contradiction(members: Value, key: &str, reason: &str) {
    let problem = client_problem(members);
    let is_named = problem.starts_with(&format!("clients[0].{key}: ")) && problem.contains(reason);
    assert!(is_named, "{problem} | {reason}");
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
        (
            json!({"response_types": ["code"], "grant_types": ["client_credentials"]}),
            "grant_types",
            "authorization_code",
        ),
        (json!({"response_types": ["id_token"], "grant_types": []}), "grant_types", "implicit"),
        (json!({"redirect_uris": []}), "redirect_uris", "is required"),
        (json!({"grant_types": ["password"], "identity_providers": ["corp"]}), "identity_providers", "local"),
        (json!({"grant_types": ["client_credentials"], "secrets": public}), "grant_types", "needs secrets or keys"),
        (
            json!({"grant_types": ["urn:ietf:params:oauth:grant-type:token-exchange"], "secrets": public, "token_exchange": {}}),
            "grant_types",
            "confidential",
        ),
        (json!({"refresh_token_usage": "reuse", "secrets": public}), "refresh_token_usage", "rotation"),
        (json!({"require_pkce": false, "secrets": public}), "require_pkce", "public client"),
        (json!({"token_endpoint_auth_method": "none"}), "secrets", "none"),
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
        assert_contradiction(members, key, reason);
    }
}

#[test]
fn contradictions_about_keys_are_refused_with_the_reason() {
    let public = json!([]);
    for (members, key, reason) in [
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
            json!({"jwks_uri": "https://a.example/jwks", "secrets": public}),
            "token_endpoint_auth_method",
            "must be private_key_jwt",
        ),
        (
            json!({"token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "RS256",
                   "jwks": {"keys": [p256("k", 1)]}, "secrets": public}),
            "jwks",
            "no key that fits",
        ),
    ] {
        assert_contradiction(members, key, reason);
    }
}

#[test]
fn what_could_never_be_used_is_refused_with_the_reason() {
    for (members, key, reason) in [
        (json!({"scope": "openid offline_access"}), "grant_types", "must contain refresh_token"),
        (
            json!({"scope": "openid", "grant_types": ["authorization_code", "refresh_token"]}),
            "scope",
            "must contain offline_access",
        ),
        (
            json!({"scope": "offline_access", "grant_types": ["client_credentials", "refresh_token"]}),
            "grant_types",
            "nothing to refresh",
        ),
        (json!({"grant_types": ["urn:ietf:params:oauth:grant-type:token-exchange"]}), "token_exchange", "is required"),
        (json!({"secrets": [{"value": "fifteen chars.."}]}), "secrets[0].value", "16 to 256"),
    ] {
        let problem = client_problem(members);
        let place = format!("clients[0].{key}: ");
        assert!(problem.starts_with(&place) && problem.contains(reason), "{problem} | {reason}");
    }
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
