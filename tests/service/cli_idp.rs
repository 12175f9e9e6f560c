//! `gatepost idp list` and `idp test` against servers on loopback that say right and wrong things,
//! and the providers of the examples of the documentation.

use serde_json::{Value, json};

use crate::cli_support::{Answer, Installation, answer};
use crate::documentation;
use crate::support::claims::Says;
use crate::support::signer::{Behaviour, Signer, WebServer, key_set};

const SECRET: &str = "upstream-client-secret-Zx81";

/// A discovery document of this server that is its key set as well; `null` takes a member away.
fn documents(server: &WebServer, signers: &[&Signer], changes: &Value) -> Value {
    let mut document = json!({
        "issuer": server.url(""), "authorization_endpoint": server.url("/auth"), "token_endpoint": server.url("/token"),
        "jwks_uri": server.url("/keys"), "userinfo_endpoint": server.url("/me"),
        "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256"], "response_types_supported": ["code"]
    });
    document["keys"] = key_set(signers)["keys"].clone();
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn provider(changes: &Value) -> Value {
    let mut provider = json!({"name": "corp", "client_id": "gatepost", "client_secret": SECRET});
    for (name, value) in changes.as_object().unwrap() {
        provider[name] = value.clone();
    }
    json!({"identity_providers": [provider]})
}

fn registered(installation: &Installation, changes: &Value) {
    let applied = installation.apply(&provider(changes));
    assert_eq!(applied.code, 0, "{applied:?}");
}

/// `idp test corp`, where loopback may be reached.
fn tested(installation: &Installation) -> Answer {
    let mut command = installation.command(&["idp", "test", "corp"]);
    command.env("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");
    let answer = answer(command, "");
    assert!(!format!("{answer:?}").contains(SECRET));
    answer
}

#[test]
fn a_provider_in_order_is_found_in_order_and_told_what_to_register() {
    let (installation, signer) = (Installation::migrated(), Signer::es256("k1"));
    let server = WebServer::start(Behaviour::Status(500));
    server.behave(Behaviour::Json(documents(&server, &[&signer], &json!({}))));
    registered(&installation, &json!({"issuer": server.url("")}));
    let found = tested(&installation);
    assert_eq!(found.code, 0, "{found:?}");
    for line in [
        "ok    it is enabled",
        "ok    ID tokens are taken with RS256, ES256",
        "ok    its keys can be had",
        "\n  redirect URI: https://id.example/external/corp/callback\n",
        "has such a field: https://id.example/external/corp/logout",
    ] {
        assert!(found.stdout.contains(line), "{line}: {}", found.stdout);
    }
    let asked: Vec<String> = server
        .requests()
        .iter()
        .map(|head| head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        asked,
        [
            "GET /.well-known/openid-configuration HTTP/1.1",
            "GET /keys HTTP/1.1"
        ]
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|head| !head.contains("uthorization"))
    );
    let mut as_json = installation.command(&["idp", "test", "corp", "--json"]);
    as_json.env("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");
    let told = answer(as_json, "");
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        told["register_there"]["redirect_uri"],
        json!("https://id.example/external/corp/callback")
    );
    assert!(
        told["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|finding| finding["verdict"] == "ok"),
        "{told}"
    );
    let listed = installation.done(&["idp", "list"], "");
    assert!(
        listed.starts_with("NAME  SPEAKS          ISSUER"),
        "{listed}"
    );
    listed.assert_says(&format!("corp  OpenID Connect  {}", server.url("")));
    assert_eq!(installation.list("idp")[0]["has_secret"], json!(true));
}

#[test]
fn what_is_wrong_with_a_provider_is_said_in_words() {
    let installation = Installation::migrated();
    let (signer, server) = (
        Signer::es256("k1"),
        WebServer::start(Behaviour::Status(500)),
    );
    registered(&installation, &json!({"issuer": server.url("")}));
    let with = |changes: Value| Behaviour::Json(documents(&server, &[&signer], &changes));
    for (behaviour, words) in [
        (
            Behaviour::Status(404),
            vec!["fails discovery at ", "the server answered with status 404"],
        ),
        (
            Behaviour::Redirect(302, server.url("/x")),
            vec!["redirects (status 302), which is not followed"],
        ),
        (Behaviour::Endless, vec!["fails discovery at "]),
        (
            Behaviour::Json(json!(["x"])),
            vec!["the discovery document is no JSON object"],
        ),
        (
            with(json!({"issuer": "https://evil.example\u{1b}[2J"})),
            vec!["https://evil.example\\u{1b}[2J", &server.url("")],
        ),
        (
            with(json!({"token_endpoint": null})),
            vec!["has no token_endpoint"],
        ),
        (
            with(json!({"token_endpoint": "http://login.example/t"})),
            vec!["token_endpoint in the discovery document must be https"],
        ),
        (
            with(json!({"id_token_signing_alg_values_supported": ["HS256", "none"]})),
            vec!["none of RS256, ES256 and EdDSA"],
        ),
        (
            with(json!({"keys": []})),
            vec![
                "ok    its discovery document",
                "fails among its keys (jwks_uri) is none",
            ],
        ),
        (
            with(json!({"keys": "x"})),
            vec!["fails its keys at ", "the answer is no JWK set"],
        ),
        (
            with(json!({"jwks_uri": "https://10.0.0.1/keys"})),
            vec!["fails its keys at ", "GATEPOST_OUTBOUND_ALLOW"],
        ),
        (
            with(json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]})),
            vec!["fails its token endpoint takes neither"],
        ),
    ] {
        server.behave(behaviour);
        let found = tested(&installation);
        assert_eq!(found.code, 1, "{words:?}: {found:?}");
        assert!(
            words.iter().all(|word| found.stdout.contains(word)),
            "{words:?}: {}",
            found.stdout
        );
        found.stderr.assert_says("corp cannot work as it is");
        assert!(!found.stdout.contains('\u{1b}'), "{found:?}");
    }
    server.behave(with(json!({})));
    let unreachable = installation.run(&["idp", "test", "corp"]);
    assert!(unreachable.code == 1);
    unreachable
        .stdout
        .assert_says("GATEPOST_OUTBOUND_ALLOW does not name it");
    let unknown = installation.run(&["idp", "test", "crop"]);
    unknown.assert_refused(1, "the nearest is \"corp\"");
}

#[test]
fn a_secret_that_is_missing_or_does_not_open_is_told() {
    let (installation, signer) = (Installation::migrated(), Signer::rs256("k1"));
    let server = WebServer::start(Behaviour::Status(500));
    server.behave(Behaviour::Json(documents(&server, &[&signer], &json!({}))));
    registered(&installation, &json!({"issuer": server.url("")}));
    // As if the line of the master secret that it was sealed under were lost.
    installation.database.run(
        "UPDATE catalogue_entries SET sealed_secret = set_byte(sealed_secret, 30, get_byte(sealed_secret, 30) # 1)",
    );
    let lost = tested(&installation);
    assert!(lost.code == 1, "{lost:?}");
    lost.stdout
        .assert_says("fails its client_secret does not open");
    installation
        .database
        .run("UPDATE catalogue_entries SET sealed_secret = NULL");
    let missing = tested(&installation);
    assert!(missing.code == 1, "{missing:?}");
    missing
        .stdout
        .assert_says("fails no client_secret is registered");
    assert_eq!(installation.list("idp")[0]["has_secret"], json!(false));
}

#[test]
fn a_provider_without_openid_is_tested_and_linked_by_its_endpoints() {
    let installation = Installation::migrated();
    let server = WebServer::start(Behaviour::Status(401));
    let hub = |token: String| {
        json!({"authorization_endpoint": server.url("/a"), "token_endpoint": token, "userinfo_endpoint": server.url("/user"),
               "subject_claim": "id"})
    };
    registered(&installation, &hub(server.url("/t")));
    let found = tested(&installation);
    assert_eq!(found.code, 0, "{found:?}");
    found
        .stdout
        .assert_says("its userinfo_endpoint answers (status 401");
    found.stdout.assert_says_not("/logout");
    let link = ["user", "link", "alice", "--subject", "583231", "--issuer"];
    installation.done(&["user", "add", "alice", "--no-password"], "");
    let (authority, another) = (server.url("/user"), server.url("/a"));
    let by_authority = [&link[..], &[authority.as_str()]].concat();
    assert!(
        installation
            .done(&by_authority, "")
            .starts_with("alice is 583231 at ")
    );
    let by_another = [&link[..], &[another.as_str()]].concat();
    installation
        .run(&by_another)
        .stderr
        .assert_says("no identity provider");
    found
        .stdout
        .assert_says("ok    nobody says which values of prompt it takes");
    let mut with_emails = hub(server.url("/t"));
    with_emails["claims"] = json!({"email": "email"});
    with_emails["emails_endpoint"] = json!(server.url("/user/emails"));
    with_emails["prompt_values_supported"] = json!(["select_account"]);
    registered(&installation, &with_emails);
    let found = tested(&installation);
    found
        .stdout
        .assert_says("its emails_endpoint answers (status 401");
    found
        .stdout
        .assert_says("ok    prompt may be select_account, as registered");
    with_emails["emails_endpoint"] = json!("http://127.0.0.1:1/user/emails");
    registered(&installation, &with_emails);
    let refused = tested(&installation);
    assert!(refused.code == 1, "{refused:?}");
    refused.stdout.assert_says("fails its emails_endpoint: ");
    registered(&installation, &hub(String::from("http://127.0.0.1:1/t")));
    let refused = tested(&installation);
    assert!(refused.code == 1, "{refused:?}");
    refused.stdout.assert_says("fails its token_endpoint: ");
}

#[test]
fn the_examples_of_the_documentation_are_taken_as_they_stand() {
    let examples = documentation::registrations("docs/providers");
    let installation = Installation::migrated();
    for (page, mut document) in examples {
        for provider in document["identity_providers"].as_array_mut().unwrap() {
            provider["client_secret"] = json!(SECRET);
        }
        let applied = installation.apply(&document);
        assert_eq!(applied.code, 0, "{page}: {applied:?}");
    }
    let names: Vec<String> = installation
        .list("idp")
        .iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        ["apple", "corp", "entra", "github", "google", "keycloak"]
    );
    let common = json!({"issuer": "https://login.microsoftonline.com/{tenantid}/v2.0"});
    assert!(
        installation
            .apply(&provider(&common))
            .stderr
            .contains("issuer"),
        "a template is no issuer"
    );
}
