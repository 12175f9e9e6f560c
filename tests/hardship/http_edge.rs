//! The edge of the house: methods, paths, and a base URL with a path of its own.

use serde_json::Value;

use crate::support::flow::{VERIFIER, authorize_path, redeem, sign_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::Answer;
use crate::support::jwt::verified;

const TOKEN: &str = "/connect/token";

#[test]
fn every_endpoint_names_the_methods_it_takes() {
    let gatepost = Gatepost::start();
    let endpoints = [
        ("/", "GET, HEAD"),
        ("/healthz", "GET, HEAD"),
        ("/static/app.css", "GET, HEAD"),
        ("/.well-known/openid-configuration", "GET, HEAD, OPTIONS"),
        (
            "/.well-known/oauth-authorization-server",
            "GET, HEAD, OPTIONS",
        ),
        (
            "/.well-known/openid-configuration/jwks",
            "GET, HEAD, OPTIONS",
        ),
        ("/connect/authorize", "GET, POST"),
        (TOKEN, "POST, OPTIONS"),
        ("/connect/userinfo", "GET, HEAD, POST, OPTIONS"),
        ("/login", "GET, HEAD, POST"),
        ("/consent", "GET, HEAD, POST"),
        ("/logout", "GET, HEAD, POST"),
    ];
    for (path, allowed) in endpoints {
        for method in [
            "GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "get", "Post",
            "G%01T", "QUERY",
        ] {
            let answer = gatepost.send(method, path, &[], b"");
            let is_allowed = allowed.split(", ").any(|known| known == method);
            assert_eq!(
                answer.status != 405,
                is_allowed,
                "{method} {path}: {}",
                answer.status
            );
            if !is_allowed {
                assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
                assert!(
                    !answer.text().contains(method) || method == "GET" || method == "POST",
                    "an echo: {method} {path}"
                );
            }
        }
    }
    let answer = gatepost.send(
        "GET",
        "/connect/token?grant_type=client_credentials",
        &[],
        b"",
    );
    answer.assert_refused(405, "invalid_request", "GET");
}

#[test]
fn head_answers_as_get_does_without_its_body() {
    let gatepost = Gatepost::start();
    let paths = "/static/icon.svg /healthz /static/app.css /.well-known/openid-configuration
                 /.well-known/openid-configuration/jwks";
    for path in paths.split_whitespace() {
        let (head, get) = (gatepost.send("HEAD", path, &[], b""), gatepost.get(path));
        let lasting = |answer: &Answer| {
            answer
                .headers
                .iter()
                .filter(|(name, _)| name != "date" && name != "x-request-id")
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(lasting(&head), lasting(&get), "{path}");
        assert!(!get.body.is_empty(), "{path}");
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let gatepost = Gatepost::start();
    for path in [
        "/nowhere",
        "/connect",
        "/connect/",
        "/connect/token/",
        "/connect/token;x",
        "/connect%2Ftoken",
        "/connect/%74oken",
        "//connect/token",
        "/./connect/token",
        "/x/../connect/token",
        "/Connect/Token",
        "/connect/TOKEN",
        "/CONNECT/USERINFO",
        "/.Well-Known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/.well-known/openid-configuration/JWKS",
        "/.well-known/oauth-authorization-server/x",
        "/LOGIN",
        "/metrics",
        "/readyz",
        "/static",
        "/static/",
        "/static/../Cargo.toml",
        "/static/../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2fetc/passwd",
        "/static/..%5c..%5cetc/passwd",
        "/static//etc/passwd",
        "/static/app.css/",
        "/static/app.css%00",
        "/static/app.css%00.svg",
        "/static/App.css",
        "/static/.",
        "//etc/passwd",
        "/etc/passwd",
        "/%00",
    ] {
        for method in ["GET", "POST"] {
            let answer = gatepost.send(method, path, &[], b"");
            let is_static = path.starts_with("/static/");
            assert_eq!(
                answer.status,
                if is_static && method == "POST" {
                    405
                } else {
                    404
                },
                "{method} {path}"
            );
            answer.assert_says_not_for(path, "root:");
            answer.assert_says_not_for(path, "passwd");
        }
    }
    for header in ["X-Original-URI", "X-Rewrite-URL", "X-Original-URL"] {
        gatepost
            .send("GET", "/nowhere", &[(header, "/healthz")], b"")
            .assert_status_for(header, 404);
    }
    let overridden = gatepost.send(
        "POST",
        "/healthz",
        &[("X-HTTP-Method-Override", "GET")],
        b"",
    );
    assert_eq!(overridden.status, 405);
    let host = gatepost.send(
        "GET",
        "/.well-known/openid-configuration",
        &[("X-Forwarded-Host", "evil.example")],
        b"",
    );
    assert_eq!(host.json()["issuer"], gatepost.base_url);
}

#[test]
fn below_a_base_path_everything_is_found_and_nothing_beside_it() {
    let gatepost = Gatepost::start_with(
        &document(),
        &[("GATEPOST_BASE_URL", "http://localhost:PORT/auth")],
    );
    let metadata: Value = gatepost
        .get("/auth/.well-known/openid-configuration")
        .json();
    assert_eq!(
        gatepost
            .get("/.well-known/oauth-authorization-server/auth")
            .json(),
        metadata
    );
    assert_eq!(metadata["issuer"], gatepost.base_url);
    for (name, path) in [
        ("authorization_endpoint", "/connect/authorize"),
        ("token_endpoint", TOKEN),
        ("userinfo_endpoint", "/connect/userinfo"),
        ("jwks_uri", "/.well-known/openid-configuration/jwks"),
    ] {
        assert_eq!(metadata[name], format!("{}{path}", gatepost.base_url));
    }
    for path in [
        "/",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/auth",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/auth/",
        "/auth/.well-known/oauth-authorization-server",
        "/connect/token",
        "/static/app.css",
        "/authx",
        "/authconnect/token",
        "/AUTH/connect/token",
        "/auth/auth/connect/token",
    ] {
        assert_eq!(gatepost.get(path).status, 404, "{path}");
    }
    // Whoever asks whether the process lives need not know the path.
    for path in ["/auth/static/app.css", "/healthz", "/auth/healthz"] {
        assert_eq!(gatepost.get(path).status, 200, "{path}");
    }
    for path in ["/auth", "/auth/"] {
        let answer = gatepost.get(path);
        assert_eq!(answer.status, 303, "{path}");
        assert_eq!(answer.header("location"), Some("/auth/start"), "{path}");
    }

    let mut browser = gatepost.browser();
    let page = browser.visit(&format!("/auth{}", authorize_path("conf1", RP1, &[])));
    for link in page
        .text()
        .split(['"', '\''])
        .filter(|text| text.starts_with('/'))
    {
        assert!(link.starts_with("/auth/"), "{link}");
    }
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let parameters = answer.query();
    assert_eq!(parameters["iss"], gatepost.base_url);
    let form = [
        ("grant_type", "authorization_code"),
        ("code", parameters["code"].as_str()),
        ("redirect_uri", RP1),
        ("code_verifier", VERIFIER),
    ];
    let tokens = gatepost.post_as("conf1", "/auth/connect/token", &form);
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    let access_token = tokens.json()["access_token"].as_str().unwrap().to_owned();
    let (_, claims) = verified(&gatepost, &access_token);
    assert_eq!(claims["iss"], gatepost.base_url);
    assert_eq!(claims["aud"], format!("{}/resources", gatepost.base_url));
    let bearer = format!("Bearer {access_token}");
    let told = gatepost.send(
        "GET",
        "/auth/connect/userinfo",
        &[("Authorization", &bearer)],
        b"",
    );
    told.assert_status(200);
    assert_eq!(told.json()["name"], "Alice Smith");
    assert_eq!(userinfo(&gatepost, &access_token).status, 404);
    assert_eq!(redeem(&gatepost, &parameters["code"]).status, 404);
}
