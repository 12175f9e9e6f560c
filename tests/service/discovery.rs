//! The two documents every client starts from, and what changes in them while the server runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::claims::Members;
use crate::support::flow::{
    authorize_path, code, decode_jwt, issued, redeem, redeem_as, signed_in, text, userinfo,
    with_clients,
};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1, document};
use crate::support::jwt::{base64url, published_keys, verified};
use crate::support::waiting::{SOON, await_that};

const DOCUMENT: &str = "/.well-known/openid-configuration";
const JWKS: &str = "/.well-known/openid-configuration/jwks";
const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

/// IANA "OAuth Authorization Server Metadata", as far as this server has use for it.
const REGISTERED: [&str; 38] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "revocation_endpoint",
    "introspection_endpoint",
    "device_authorization_endpoint",
    "pushed_authorization_request_endpoint",
    "end_session_endpoint",
    "check_session_iframe",
    "scopes_supported",
    "claims_supported",
    "claim_types_supported",
    "subject_types_supported",
    "response_types_supported",
    "response_modes_supported",
    "grant_types_supported",
    "prompt_values_supported",
    "code_challenge_methods_supported",
    "id_token_signing_alg_values_supported",
    "token_endpoint_auth_methods_supported",
    "token_endpoint_auth_signing_alg_values_supported",
    "revocation_endpoint_auth_methods_supported",
    "revocation_endpoint_auth_signing_alg_values_supported",
    "introspection_endpoint_auth_methods_supported",
    "introspection_endpoint_auth_signing_alg_values_supported",
    "dpop_signing_alg_values_supported",
    "acr_values_supported",
    "ui_locales_supported",
    "authorization_response_iss_parameter_supported",
    "claims_parameter_supported",
    "request_parameter_supported",
    "request_uri_parameter_supported",
    "frontchannel_logout_supported",
    "frontchannel_logout_session_supported",
    "backchannel_logout_supported",
    "backchannel_logout_session_supported",
];

fn members(value: &Value) -> BTreeSet<&str> {
    let members = value.as_array().unwrap().iter();
    members.map(|item| item.as_str().unwrap()).collect()
}

/// A set of words.
fn words(all: &str) -> BTreeSet<&str> {
    all.split(' ').collect()
}

fn kid_of(jwt: &str, gatepost: &Gatepost) -> String {
    text(&verified(gatepost, jwt).0, "kid").to_owned()
}

fn kids(gatepost: &Gatepost) -> BTreeSet<String> {
    let keys = published_keys(gatepost).into_iter();
    keys.map(|key| text(&key, "kid").to_owned()).collect()
}

fn tokens(gatepost: &Gatepost) -> Value {
    let mut browser = signed_in(gatepost);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    redeem(gatepost, &code).json()
}

#[test]
fn the_metadata_says_what_clients_and_the_certification_need() {
    let gatepost = Gatepost::shared();
    let answer = gatepost.get(DOCUMENT);
    answer.assert_status(200);
    answer.assert_header("content-type", "application/json");
    answer.assert_header("cache-control", "public, max-age=3600");
    answer.assert_header("access-control-allow-origin", "*");
    let metadata = answer.json();
    let by_oauth = gatepost.get("/.well-known/oauth-authorization-server");
    assert_eq!(by_oauth.json(), metadata);

    assert_eq!(metadata["issuer"], gatepost.base_url);
    for (name, path) in [
        ("authorization_endpoint", "/connect/authorize"),
        ("token_endpoint", "/connect/token"),
        ("userinfo_endpoint", "/connect/userinfo"),
        ("jwks_uri", JWKS),
        ("check_session_iframe", "/connect/checksession"),
    ] {
        assert_eq!(metadata[name], format!("{}{path}", gatepost.base_url));
    }
    let list = |name: &str| members(&metadata[name]);
    assert_eq!(metadata["subject_types_supported"], json!(["public"]));
    let algorithms = list("id_token_signing_alg_values_supported");
    assert_eq!(algorithms, BTreeSet::from(ALGORITHMS));
    let types = [
        "code",
        "id_token",
        "token",
        "id_token token",
        "code id_token",
        "code token",
        "code id_token token",
    ];
    assert_eq!(list("response_types_supported"), BTreeSet::from(types));
    let modes = list("response_modes_supported");
    assert_eq!(modes, words("query fragment form_post"));
    let authentication = list("token_endpoint_auth_methods_supported");
    assert!(authentication.is_superset(&words("client_secret_basic client_secret_post")));
    let [device, exchange] = ["device_code", "token-exchange"]
        .map(|name| format!("urn:ietf:params:oauth:grant-type:{name}"));
    let grants = format!(
        "authorization_code refresh_token client_credentials password implicit {device} {exchange}"
    );
    assert!(list("grant_types_supported").is_superset(&words(&grants)));
    let scopes = words("openid profile email address phone roles orders.read");
    assert!(list("scopes_supported").is_superset(&scopes));
    for claim in "sub iss auth_time acr name email_verified address phone_number role".split(' ') {
        assert!(list("claims_supported").contains(claim), "{claim}");
    }
    let methods = &metadata["code_challenge_methods_supported"];
    assert_eq!(methods, &json!(["S256"]));
    assert_eq!(metadata["acr_values_supported"], json!(["1", "2", "phr"]));
    // pac4j takes the first.
    let first = &metadata["token_endpoint_auth_methods_supported"][0];
    assert_eq!(first, "client_secret_basic");
    // Nimbus, and so Spring, refuses the whole document for a value that it does not know, and for a
    // locale that is no language tag of RFC 5646.
    let known = words("none login consent select_account create");
    let prompts = list("prompt_values_supported");
    assert!(prompts.is_subset(&known), "{prompts:?}");
    assert!(prompts.is_superset(&words("none login consent")));
    for locale in list("ui_locales_supported") {
        let mut subtags = locale.split('-');
        let language = subtags.next().unwrap();
        let is_small = language.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_language = (2..=3).contains(&language.len()) && is_small;
        let is_subtag = |subtag: &str| {
            let is_plain = subtag.bytes().all(|byte| byte.is_ascii_alphanumeric());
            (2..=8).contains(&subtag.len()) && is_plain
        };
        assert!(is_language && subtags.all(is_subtag), "{locale}");
    }
    for (flag, value) in [
        ("authorization_response_iss_parameter_supported", true),
        ("claims_parameter_supported", true),
        ("request_parameter_supported", false),
        ("request_uri_parameter_supported", false),
    ] {
        assert_eq!(metadata[flag], value, "{flag}");
    }
    let spoken = words("de en es fr it ja nl pl pt zh-Hans");
    assert_eq!(list("ui_locales_supported"), spoken);
}

#[test]
fn the_metadata_has_registered_names_of_the_right_types_alone() {
    let gatepost = Gatepost::shared();
    let metadata = gatepost.get(DOCUMENT).json();
    for (name, value) in metadata.as_object().unwrap() {
        assert!(REGISTERED.contains(&name.as_str()), "{name}");
        let right = match name.as_str() {
            "issuer" | "jwks_uri" | "check_session_iframe" => value.is_string(),
            _ if name.ends_with("_endpoint") => value.is_string(),
            _ if name.ends_with("_methods_supported") || name.ends_with("_values_supported") => {
                value.is_array()
            }
            _ if name.ends_with("_parameter_supported") || name.contains("logout") => {
                value.is_boolean()
            }
            _ => value.is_array(),
        };
        assert!(right, "{name}: {value}");
        if let Some(items) = value.as_array() {
            assert!(!items.is_empty(), "{name}: {value}");
            assert!(items.iter().all(Value::is_string), "{name}: {value}");
            let distinct = members(value).len();
            assert_eq!(distinct, items.len(), "{name} repeats itself: {value}");
        }
        if let Some(address) = value.as_str() {
            assert!(address.starts_with(&gatepost.base_url), "{name}: {value}");
            assert!(!address.contains(['?', '#', '@']), "{name}: {value}");
        }
    }
    for spoofed in ["evil.example", "localhost", "localhost:1"] {
        let hosts = format!("Host: {spoofed}\r\nX-Forwarded-Host: {spoofed}");
        let raw = format!("GET {DOCUMENT} HTTP/1.1\r\n{hosts}\r\nX-Forwarded-Proto: https\r\n\r\n");
        assert_eq!(body_of(gatepost.port, &raw), metadata, "{spoofed}");
    }
}

/// Sends bytes as they are; the JSON of the answer.
fn body_of(port: u16, raw: &str) -> Value {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let raw = raw.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    stream.write_all(raw.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn the_registration_shows_in_the_metadata_as_far_as_it_may() {
    let gatepost = Gatepost::start();
    let mut document = with_clients(document(), &[("old", json!({"allow_plain_pkce": true}))]);
    document["identity_scopes"][0]["show_in_discovery"] = json!(false);
    document["resource_scopes"][2]["show_in_discovery"] = json!(false);
    gatepost.apply(&document);
    let metadata = gatepost.get(DOCUMENT).json();
    let scopes = members(&metadata["scopes_supported"]);
    assert!(!scopes.contains("roles") && !scopes.contains("stock.read"));
    assert!(scopes.contains("orders.read"));
    assert!(!members(&metadata["claims_supported"]).contains("role"));
    let methods = members(&metadata["code_challenge_methods_supported"]);
    assert_eq!(methods, words("S256 plain"));
    assert!(!metadata.to_string().contains("Second shop"));
    assert!(!metadata.to_string().contains("conf1"));
}

#[test]
fn the_key_set_is_public_and_every_key_has_its_own_name() {
    let gatepost = Gatepost::shared();
    let answer = gatepost.get(JWKS);
    answer.assert_status(200);
    answer.assert_header("content-type", "application/json");
    answer.assert_header("cache-control", "public, max-age=30");
    answer.assert_header("access-control-allow-origin", "*");
    let by_custom = gatepost.get("/.well-known/jwks.json");
    assert_eq!(by_custom.body, answer.body);
    by_custom.assert_header("cache-control", "public, max-age=30");
    answer.json().assert_members("keys");
    let keys = published_keys(&gatepost);
    assert_eq!(kids(&gatepost).len(), keys.len());
    let algorithms: BTreeSet<&str> = keys.iter().map(|key| text(key, "alg")).collect();
    assert_eq!(algorithms, BTreeSet::from(ALGORITHMS));
    for key in &keys {
        let (members, lengths): (&str, &[(&str, usize)]) = match text(key, "kty") {
            "RSA" => ("alg e kid kty n use", &[("n", 256), ("e", 3)]),
            "EC" => ("alg crv kid kty use x y", &[("x", 32), ("y", 32)]),
            "OKP" => ("alg crv kid kty use x", &[("x", 32)]),
            other => panic!("{other}"),
        };
        // Nothing private, nothing missing.
        key.assert_members(members);
        assert_eq!(key["use"], "sig");
        assert!(!key["kid"].as_str().unwrap().trim().is_empty());
        for (name, length) in lengths {
            let number = base64url(text(key, name));
            assert!(number.len() >= *length, "{name} of {key}");
        }
    }
}

#[test]
fn a_rotated_key_is_announced_at_once_and_signs_later() {
    let gatepost = Gatepost::start();
    let before = kids(&gatepost);
    let old = tokens(&gatepost);
    gatepost.run_line("key rotate --algorithm RS256");
    await_that("the new key is announced", SOON, || {
        kids(&gatepost).len() == before.len() + 1
    });
    assert!(kids(&gatepost).is_superset(&before));
    // Announced is not signing.
    assert!(before.contains(&kid_of(text(&tokens(&gatepost), "id_token"), &gatepost)));
    verified(&gatepost, text(&old, "id_token"));
    // A second rotation does not make a third key while one is waiting.
    gatepost.run_line("key rotate --algorithm RS256");
    gatepost.settle();
    assert_eq!(kids(&gatepost).len(), before.len() + 1);

    // Its time has come.
    gatepost.database.run(
        "UPDATE signing_keys SET announced_at = announced_at - interval '15 days', activates_at = activates_at - interval '15 days',
            retires_at = retires_at - interval '15 days', unpublished_at = unpublished_at - interval '14 days 1 hour'
         WHERE algorithm = 'RS256';
         UPDATE installation SET registry_version = registry_version + 1",
    );
    let signs_with_new =
        || !before.contains(&kid_of(text(&tokens(&gatepost), "id_token"), &gatepost));
    await_that("the new key signs", SOON, signs_with_new);
    // The old one stays published.
    assert!(kids(&gatepost).is_superset(&before));
    verified(&gatepost, text(&old, "id_token"));
    userinfo(&gatepost, text(&old, "access_token")).assert_status(200);
}

#[test]
fn a_key_replaced_at_once_signs_no_more_and_no_token_is_lost() {
    let clients = ALGORITHMS.map(|alg| {
        let signed =
            json!({"id_token_signed_response_alg": alg, "access_token_signed_response_alg": alg});
        (alg, signed)
    });
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    let mut issue = |alg: &str| {
        let code = code(&mut browser, &authorize_path(alg, RP1, &[]));
        let tokens = issued(&redeem_as(&gatepost, (alg, CONF1_SECRET), RP1, &code));
        text(&tokens, "access_token").to_owned()
    };
    let before = kids(&gatepost);
    let old = ALGORITHMS.map(&mut issue);
    gatepost.run_well(&["key", "rotate", "--now"], "");
    gatepost.settle();
    assert_eq!(kids(&gatepost).len(), before.len() + 3);
    for (alg, old) in ALGORITHMS.into_iter().zip(&old) {
        let new = issue(alg);
        let (header, _) = verified(&gatepost, &new);
        assert_eq!(header["alg"], alg);
        // No longer with the old key.
        assert!(!before.contains(text(&header, "kid")), "{alg}");
        assert_ne!(decode_jwt(old).0["kid"], header["kid"]);
        userinfo(&gatepost, old).assert_status_for(alg, 200);
        userinfo(&gatepost, &new).assert_status_for(alg, 200);
    }
    let private = "SELECT count(*) FROM signing_keys WHERE wrapped_private IS NOT NULL";
    let held: i64 = gatepost.database.value(private, &[]);
    assert_eq!(held, 3, "the private parts of the old keys are erased");
}
