//! The two documents every client starts from, and what changes in them while the server runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::flow::{
    authorize_path, code, decode_jwt, redeem, redeem_as, signed_in, userinfo, with_clients,
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
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap())
        .collect()
}

fn kids(gatepost: &Gatepost) -> BTreeSet<String> {
    published_keys(gatepost)
        .iter()
        .map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
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
    assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let metadata = answer.json();
    assert_eq!(
        gatepost
            .get("/.well-known/oauth-authorization-server")
            .json(),
        metadata
    );

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
    assert_eq!(
        list("id_token_signing_alg_values_supported"),
        BTreeSet::from(ALGORITHMS)
    );
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
    assert_eq!(
        list("response_modes_supported"),
        BTreeSet::from(["query", "fragment", "form_post"])
    );
    let authentication = list("token_endpoint_auth_methods_supported");
    assert!(authentication.is_superset(&BTreeSet::from([
        "client_secret_basic",
        "client_secret_post"
    ])));
    let [device, exchange] = ["device_code", "token-exchange"]
        .map(|name| format!("urn:ietf:params:oauth:grant-type:{name}"));
    let grants = [
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "password",
        "implicit",
        &device,
        &exchange,
    ];
    assert!(list("grant_types_supported").is_superset(&BTreeSet::from(grants)));
    assert!(list("scopes_supported").is_superset(&BTreeSet::from([
        "openid", "profile", "email", "address", "phone"
    ])));
    assert!(list("scopes_supported").is_superset(&BTreeSet::from(["roles", "orders.read"])));
    for claim in "sub iss auth_time acr name email_verified address phone_number role".split(' ') {
        assert!(list("claims_supported").contains(claim), "{claim}");
    }
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    assert_eq!(metadata["acr_values_supported"], json!(["1", "2", "phr"]));
    // pac4j takes the first.
    let first = &metadata["token_endpoint_auth_methods_supported"][0];
    assert_eq!(first, "client_secret_basic");
    // Nimbus, and so Spring, refuses the whole document for a value that it does not know, and for a
    // locale that is no language tag of RFC 5646.
    let known = BTreeSet::from(["none", "login", "consent", "select_account", "create"]);
    let prompts = list("prompt_values_supported");
    assert!(prompts.is_subset(&known), "{prompts:?}");
    assert!(prompts.is_superset(&BTreeSet::from(["none", "login", "consent"])));
    for locale in list("ui_locales_supported") {
        let mut subtags = locale.split('-');
        let language = subtags.next().unwrap();
        let is_language = (2..=3).contains(&language.len())
            && language.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_subtag = |subtag: &str| {
            (2..=8).contains(&subtag.len())
                && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    let spoken = BTreeSet::from([
        "de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "zh-Hans",
    ]);
    assert_eq!(list("ui_locales_supported"), spoken);
}

#[test]
fn the_metadata_has_registered_names_of_the_right_types_alone() {
    let gatepost = Gatepost::shared();
    let metadata = gatepost.get(DOCUMENT).json();
    for (name, value) in metadata.as_object().unwrap() {
        assert!(
            REGISTERED.contains(&name.as_str()),
            "{name} is not registered"
        );
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
            assert_eq!(
                members(value).len(),
                items.len(),
                "{name} repeats itself: {value}"
            );
        }
        if let Some(address) = value.as_str() {
            assert!(address.starts_with(&gatepost.base_url), "{name}: {value}");
            assert!(!address.contains(['?', '#', '@']), "{name}: {value}");
        }
    }
    for spoofed in ["evil.example", "localhost", "localhost:1"] {
        let raw = format!(
            "GET {DOCUMENT} HTTP/1.1\r\nHost: {spoofed}\r\nX-Forwarded-Host: {spoofed}\r\nX-Forwarded-Proto: https\r\n\r\n"
        );
        assert_eq!(body_of(gatepost.port, &raw), metadata, "{spoofed}");
    }
}

/// Sends bytes as they are; the JSON of the answer.
fn body_of(port: u16, raw: &str) -> Value {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(
            raw.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .unwrap();
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
    assert_eq!(
        members(&metadata["code_challenge_methods_supported"]),
        BTreeSet::from(["S256", "plain"])
    );
    assert!(!metadata.to_string().contains("Second shop"));
    assert!(!metadata.to_string().contains("conf1"));
}

#[test]
fn the_key_set_is_public_and_every_key_has_its_own_name() {
    let gatepost = Gatepost::shared();
    let answer = gatepost.get(JWKS);
    answer.assert_status(200);
    answer.assert_header("content-type", "application/json");
    assert_eq!(answer.header("cache-control"), Some("public, max-age=30"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let by_custom = gatepost.get("/.well-known/jwks.json");
    assert_eq!(by_custom.body, answer.body);
    assert_eq!(
        by_custom.header("cache-control"),
        answer.header("cache-control")
    );
    assert_eq!(
        answer
            .json()
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["keys"]
    );
    let keys = published_keys(&gatepost);
    assert_eq!(kids(&gatepost).len(), keys.len());
    let algorithms: BTreeSet<&str> = keys
        .iter()
        .map(|key| key["alg"].as_str().unwrap())
        .collect();
    assert_eq!(algorithms, BTreeSet::from(ALGORITHMS));
    for key in &keys {
        let (members, lengths): (&[&str], &[(&str, usize)]) = match key["kty"].as_str().unwrap() {
            "RSA" => (
                &["alg", "e", "kid", "kty", "n", "use"],
                &[("n", 256), ("e", 3)],
            ),
            "EC" => (
                &["alg", "crv", "kid", "kty", "use", "x", "y"],
                &[("x", 32), ("y", 32)],
            ),
            "OKP" => (&["alg", "crv", "kid", "kty", "use", "x"], &[("x", 32)]),
            other => panic!("{other}"),
        };
        let mut names: Vec<&str> = key
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        assert_eq!(names, members, "nothing private, nothing missing");
        assert_eq!(key["use"], "sig");
        assert!(!key["kid"].as_str().unwrap().trim().is_empty());
        for (name, length) in lengths {
            assert!(
                base64url(key[*name].as_str().unwrap()).len() >= *length,
                "{name} of {key}"
            );
        }
    }
}

#[test]
fn a_rotated_key_is_announced_at_once_and_signs_later() {
    let gatepost = Gatepost::start();
    let before = kids(&gatepost);
    let old = tokens(&gatepost);
    gatepost.run_well(&["key", "rotate", "--algorithm", "RS256"], "");
    await_that("the new key is announced", SOON, || {
        kids(&gatepost).len() == before.len() + 1
    });
    assert!(kids(&gatepost).is_superset(&before));
    let (header, _) = verified(&gatepost, tokens(&gatepost)["id_token"].as_str().unwrap());
    // Announced is not signing.
    assert!(before.contains(header["kid"].as_str().unwrap()));
    verified(&gatepost, old["id_token"].as_str().unwrap());
    // A second rotation does not make a third key while one is waiting.
    gatepost.run_well(&["key", "rotate", "--algorithm", "RS256"], "");
    gatepost.settle();
    assert_eq!(kids(&gatepost).len(), before.len() + 1);

    // Its time has come.
    gatepost.database.run(
        "UPDATE signing_keys SET announced_at = announced_at - interval '15 days', activates_at = activates_at - interval '15 days',
            retires_at = retires_at - interval '15 days', unpublished_at = unpublished_at - interval '14 days 1 hour'
         WHERE algorithm = 'RS256';
         UPDATE installation SET registry_version = registry_version + 1",
    );
    let signs_with_new = || {
        let (header, _) = verified(&gatepost, tokens(&gatepost)["id_token"].as_str().unwrap());
        !before.contains(header["kid"].as_str().unwrap())
    };
    await_that("the new key signs", SOON, signs_with_new);
    // The old one stays published.
    assert!(kids(&gatepost).is_superset(&before));
    verified(&gatepost, old["id_token"].as_str().unwrap());
    userinfo(&gatepost, old["access_token"].as_str().unwrap()).assert_status(200);
}

#[test]
fn a_key_replaced_at_once_signs_no_more_and_no_token_is_lost() {
    let clients = ALGORITHMS.map(|alg| {
        (
            alg.to_owned(),
            json!({"id_token_signed_response_alg": alg, "access_token_signed_response_alg": alg}),
        )
    });
    let clients: Vec<(&str, Value)> = clients
        .iter()
        .map(|(name, changes)| (name.as_str(), changes.clone()))
        .collect();
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    let mut issue = |alg: &str| {
        let code = code(&mut browser, &authorize_path(alg, RP1, &[]));
        redeem_as(&gatepost, (alg, CONF1_SECRET), RP1, &code).json()["access_token"]
            .as_str()
            .unwrap()
            .to_owned()
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
        assert!(
            !before.contains(header["kid"].as_str().unwrap()),
            "{alg} still signs with the old key"
        );
        assert_ne!(decode_jwt(old).0["kid"], header["kid"]);
        userinfo(&gatepost, old).assert_status_for(alg, 200);
        userinfo(&gatepost, &new).assert_status_for(alg, 200);
    }
    let private = "SELECT count(*) FROM signing_keys WHERE wrapped_private IS NOT NULL";
    let held: i64 = gatepost.database.value(private, &[]);
    assert_eq!(held, 3, "the private parts of the old keys are erased");
}
