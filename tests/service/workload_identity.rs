//! Clients without a secret: the token that a platform gives to a pipeline or a pod authenticates
//! it (RFC 7523 §2.2 with an issuer elsewhere).

use serde_json::{Value, json};

use crate::documentation::registrations;
use crate::support::blocks;
use crate::support::claims::Says;
use crate::support::flow::{issued, text};
use crate::support::gatepost::{Gatepost, document};
use crate::support::http::Answer;
use crate::support::signer::{Behaviour, Signer, WebServer, key_set, now};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const SPIFFE_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
const GITHUB: &str = "https://token.actions.githubusercontent.com";
const PRODUCTION: &str = "repo:acme@12/shop@34:environment:production";
const GITLAB: &str = "https://gitlab.example.com";
const KUBERNETES: &str = "https://kubernetes.default.svc.cluster.local";
const OUTBOUND: [(&str, &str); 1] = [("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")];

/// What each platform puts into its tokens.
struct Platform {
    name: &'static str,
    entry: Value,
    token: Value,
    /// `typ` of its header.
    typ: Option<&'static str>,
    assertion_type: &'static str,
    signer: Signer,
}

fn platforms() -> Vec<Platform> {
    let service_account = "system:serviceaccount:shop:deploy";
    let spiffe = "spiffe://acme.example/ns/shop/sa/deploy";
    vec![
        Platform {
            name: "GitHub Actions",
            entry: json!({"issuer": GITHUB, "subject": PRODUCTION, "claims": {"repository_id": "34"}}),
            token: json!({
                "iss": GITHUB, "sub": PRODUCTION, "jti": "e5b1", "repository": "acme/shop", "repository_id": "34",
                "repository_owner_id": "12", "environment": "production", "iat": now() - 5, "nbf": now() - 305, "exp": now() + 300,
            }),
            typ: Some("JWT"),
            assertion_type: ASSERTION_TYPE,
            signer: Signer::rs256("github"),
        },
        Platform {
            name: "GitLab",
            entry: json!({
                "issuer": GITLAB, "subject": "project_path:acme/shop:ref_type:branch:ref:main", "max_lifetime": 86400,
            }),
            // The end is the time-out of the job.
            token: json!({
                "iss": GITLAB, "sub": "project_path:acme/shop:ref_type:branch:ref:main", "project_id": "7",
                "iat": now() - 5, "nbf": now() - 10, "exp": now() + 40_000,
            }),
            typ: Some("JWT"),
            assertion_type: ASSERTION_TYPE,
            signer: Signer::rs256("gitlab"),
        },
        Platform {
            name: "Kubernetes",
            entry: json!({"issuer": KUBERNETES, "subject": service_account}),
            token: json!({
                "iss": KUBERNETES, "sub": service_account, "iat": now() - 5, "nbf": now() - 5, "exp": now() + 3_000,
                "kubernetes.io": {"namespace": "shop", "serviceaccount": {"name": "deploy"}},
            }),
            typ: None,
            assertion_type: ASSERTION_TYPE,
            signer: Signer::rs256("cluster"),
        },
        Platform {
            name: "SPIFFE",
            entry: json!({"subject": spiffe}),
            token: json!({"sub": spiffe, "iat": now() - 5, "exp": now() + 300}),
            typ: Some("JOSE"),
            assertion_type: SPIFFE_TYPE,
            signer: Signer::es256("spire"),
        },
    ]
}

fn client(entries: &[Value]) -> Value {
    json!({
        "client_id": "deploy", "grant_types": ["client_credentials"], "response_types": [], "scope": "orders.read",
        "token_endpoint_auth_method": "private_key_jwt", "federated": entries,
    })
}

fn registered(clients: &[Value]) -> Value {
    let mut document = document();
    let all = document["clients"].as_array_mut().unwrap();
    all.extend(clients.iter().cloned());
    document
}

/// The platform's token, for this issuer, with changes.
fn token(gatepost: &Gatepost, platform: &Platform, changes: &Value) -> String {
    let mut claims = platform.token.clone();
    claims["aud"] = json!([gatepost.base_url]);
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    let signer = &platform.signer;
    let mut header = json!({"alg": signer.alg, "kid": signer.kid});
    if let Some(typ) = platform.typ {
        header["typ"] = json!(typ);
    }
    signer.sign_under(&header, &claims)
}

fn ask(gatepost: &Gatepost, assertion_type: &str, assertion: &str) -> Answer {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", "deploy"),
        ("client_assertion_type", assertion_type),
        ("client_assertion", assertion),
    ];
    gatepost.post("/connect/token", &[], &form)
}

fn last_line(gatepost: &Gatepost) -> String {
    let log = gatepost.log();
    let line = log.lines().rev().find(|line| line.contains("/connect/"));
    line.unwrap().to_owned()
}

#[track_caller]
fn assert_unproven(gatepost: &Gatepost, answer: &Answer, code: &str, case: &str) {
    answer.assert_refused(400, "invalid_client", case);
    answer.assert_member_for(case, "error_description", "Client authentication failed.");
    let line = last_line(gatepost);
    assert!(line.contains(code), "{case}: {line}");
}

#[test]
fn each_platforms_token_authenticates_its_client_as_often_as_it_is_sent() {
    let platforms = platforms();
    let entries = platforms.iter().map(|platform| {
        let mut entry = platform.entry.clone();
        let mut keys = key_set(&[&platform.signer]);
        if platform.name == "SPIFFE" {
            keys["keys"][0]["use"] = json!("jwt-svid");
        }
        entry["jwks"] = keys;
        entry
    });
    let entries: Vec<Value> = entries.collect();
    let gatepost = Gatepost::start_with(&registered(&[client(&entries)]), &[]);
    for platform in &platforms {
        let assertion = token(&gatepost, platform, &json!({}));
        for _ in 0..2 {
            let answer = ask(&gatepost, platform.assertion_type, &assertion);
            assert_eq!(
                answer.status,
                200,
                "{}: {}",
                platform.name,
                last_line(&gatepost)
            );
            assert_eq!(text(&issued(&answer), "scope"), "orders.read");
        }
        let shown = gatepost.post(
            "/connect/introspect",
            &[],
            &[
                ("client_id", "deploy"),
                ("client_assertion_type", platform.assertion_type),
                ("client_assertion", &assertion),
                ("token", "x"),
            ],
        );
        assert_eq!(shown.json(), json!({"active": false}), "{}", platform.name);
    }
}

#[test]
fn a_token_that_is_bent_anywhere_authenticates_nobody() {
    let platforms = platforms();
    let github = &platforms[0];
    let mut entry = github.entry.clone();
    entry["jwks"] = key_set(&[&github.signer]);
    let mut cluster = platforms[2].entry.clone();
    cluster["jwks"] = key_set(&[&platforms[2].signer]);
    let gatepost = Gatepost::start_with(&registered(&[client(&[entry, cluster])]), &[]);
    let ours = gatepost.base_url.clone();
    let bent = [
        (
            "another branch",
            json!({"sub": "repo:acme@12/shop@34:ref:refs/heads/topic"}),
            "GP1174",
        ),
        (
            "a pull request",
            json!({"sub": "repo:acme@12/shop@34:pull_request"}),
            "GP1174",
        ),
        (
            "another repository",
            json!({"sub": "repo:acme@12/shed@35:environment:production"}),
            "GP1174",
        ),
        (
            "a repository of that name made anew",
            json!({"repository_id": "99"}),
            "GP1174",
        ),
        (
            "another issuer",
            json!({"iss": "https://token.actions.evil.example"}),
            "GP1174",
        ),
        ("our issuer", json!({"iss": ours}), "GP1174"),
        ("no issuer", json!({"iss": null}), "GP1174"),
        // Its own issuer must be verified by its own keys.
        (
            "the issuer of another entry",
            json!({"iss": KUBERNETES, "sub": "system:serviceaccount:shop:deploy"}),
            "GP1232",
        ),
        // As if the client had made it: it has no keys of its own.
        (
            "the client as issuer",
            json!({"iss": "deploy", "sub": "deploy"}),
            "GP1232",
        ),
        (
            "another audience",
            json!({"aud": "https://github.com/acme"}),
            "GP1235",
        ),
        (
            "two audiences",
            json!({"aud": [ours, "https://github.com/acme"]}),
            "GP1235",
        ),
        (
            "the token endpoint",
            json!({"aud": format!("{ours}/connect/token")}),
            "GP1235",
        ),
        ("expired", json!({"exp": now() - 61}), "GP1236"),
        ("not valid yet", json!({"nbf": now() + 120}), "GP1236"),
        ("without an end", json!({"exp": null}), "GP1236"),
        ("good for a day", json!({"exp": now() + 86_400}), "GP1175"),
        ("no subject", json!({"sub": null}), "GP1230"),
    ];
    for (case, changes, code) in bent {
        let answer = ask(
            &gatepost,
            ASSERTION_TYPE,
            &token(&gatepost, github, &changes),
        );
        assert_unproven(&gatepost, &answer, code, case);
    }
    let stranger = Platform {
        signer: Signer::rs256("github"),
        ..self::platforms().remove(0)
    };
    let forged = token(&gatepost, &stranger, &json!({}));
    assert_unproven(
        &gatepost,
        &ask(&gatepost, ASSERTION_TYPE, &forged),
        "GP1233",
        "another key",
    );
    let access_token = Platform {
        typ: Some("at+jwt"),
        ..self::platforms().remove(0)
    };
    let forged = token(&gatepost, &access_token, &json!({}));
    assert_unproven(
        &gatepost,
        &ask(&gatepost, ASSERTION_TYPE, &forged),
        "GP1230",
        "an access token",
    );
    // Without client_id nobody is named.
    let good = token(&gatepost, github, &json!({}));
    let form = [
        ("grant_type", "client_credentials"),
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", &good),
    ];
    let nameless = gatepost.post("/connect/token", &[], &form);
    nameless.assert_refused(400, "invalid_client", "without client_id");
    // Another client has no such entry.
    let other = [&form[..], &[("client_id", "conf1")]].concat();
    let answer = gatepost.post("/connect/token", &[], &other);
    answer.assert_refused(400, "invalid_client", "of another");
    assert_eq!(ask(&gatepost, ASSERTION_TYPE, &good).status, 200);
}

#[test]
fn the_log_says_whose_token_it_was_and_never_shows_it() {
    let platforms = platforms();
    let github = &platforms[0];
    let mut entry = github.entry.clone();
    entry["jwks"] = key_set(&[&github.signer]);
    let gatepost = Gatepost::start_with(&registered(&[client(&[entry])]), &[]);
    let subject = format!("repo:acme@12/shop@34:ref:refs/heads/{}", "x".repeat(300));
    let assertion = token(&gatepost, github, &json!({"sub": subject}));
    let answer = ask(&gatepost, ASSERTION_TYPE, &assertion);
    assert_unproven(&gatepost, &answer, "GP1174", "a long branch");
    let line = last_line(&gatepost);
    assert!(line.contains(GITHUB), "{line}");
    line.assert_says("repo:acme@12/shop@34:ref:refs/heads/xxx");
    assert!(!line.contains(&"x".repeat(200)), "{line}");
    line.assert_says_for("what is cut off is not told", "xxx...");
    let payload = assertion.split('.').nth(1).unwrap();
    assert!(!gatepost.log().contains(payload));
    let events = gatepost.run_well(&["audit", "list", "--json"], "");
    assert!(events.contains("client_authentication_failed"), "{events}");
}

#[test]
fn a_platforms_keys_are_fetched_and_looked_for_again_after_a_rotation() {
    let mut platforms = platforms();
    let mut github = platforms.remove(0);
    let server = WebServer::start(Behaviour::Json(key_set(&[&github.signer])));
    let mut entry = github.entry.clone();
    entry["jwks_uri"] = json!(server.url("/.well-known/jwks"));
    let gatepost = Gatepost::start_with(&registered(&[client(&[entry])]), &OUTBOUND);
    for _ in 0..3 {
        let assertion = token(&gatepost, &github, &json!({}));
        assert_eq!(ask(&gatepost, ASSERTION_TYPE, &assertion).status, 200);
    }
    assert_eq!(server.requests().len(), 1);
    github.signer = Signer::rs256("next");
    server.behave(Behaviour::Json(key_set(&[&github.signer])));
    let assertion = token(&gatepost, &github, &json!({}));
    assert_eq!(ask(&gatepost, ASSERTION_TYPE, &assertion).status, 200);
    // What is held goes on counting while the platform does not answer.
    server.behave(Behaviour::Status(500));
    assert_eq!(ask(&gatepost, ASSERTION_TYPE, &assertion).status, 200);
    // A token of nobody here makes no request.
    let before = server.requests().len();
    let foreign = token(
        &gatepost,
        &github,
        &json!({"sub": "repo:evil@1/x@2:ref:refs/heads/main"}),
    );
    assert_unproven(
        &gatepost,
        &ask(&gatepost, ASSERTION_TYPE, &foreign),
        "GP1174",
        "of nobody",
    );
    assert_eq!(server.requests().len(), before);
}

#[test]
fn what_leaves_the_door_open_is_refused_or_told() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let keys = key_set(&[&Signer::es256("k")]);
    let with = |entry: Value| {
        let mut entry = entry;
        entry["jwks"] = keys.clone();
        json!({"clients": [client(&[entry])]})
    };
    for (entry, rule) in [
        (
            json!({"issuer": GITHUB, "subject": "repo:acme@12/*"}),
            "federated[0].subject",
        ),
        (json!({"subject": PRODUCTION}), "federated[0].issuer"),
        (json!({"issuer": GITHUB}), "federated[0].subject"),
        (
            json!({"issuer": GITHUB, "subject": PRODUCTION, "claims": {"ref": 7}}),
            "federated[0].claims.ref",
        ),
        (
            json!({"issuer": GITHUB, "subject": PRODUCTION, "max_lifetime": 86_401}),
            "federated[0].max_lifetime",
        ),
        (
            json!({"issuer": GITHUB, "subject": PRODUCTION, "branch": "main"}),
            "federated[0]",
        ),
        (
            json!({"issuer": "http://ci.example.com", "subject": "x"}),
            "federated[0].issuer",
        ),
    ] {
        let output = gatepost.run(&["plan", "-"], &with(entry.clone()).to_string());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{entry}: {told}");
        assert!(told.contains(rule), "{entry}: {told}");
    }
    let many: Vec<Value> = (0..21)
        .map(|number| json!({"issuer": GITHUB, "subject": format!("s-{number}"), "jwks": keys}))
        .collect();
    let output = gatepost.run(
        &["plan", "-"],
        &json!({"clients": [client(&many)]}).to_string(),
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("20 entries at most"));

    let twice = json!({"issuer": GITHUB, "subject": PRODUCTION, "jwks": keys});
    let empty = json!({"issuer": GITHUB, "subject": "", "jwks": keys});
    for (entries, rule) in [
        (vec![twice.clone(), twice], "the same workload twice"),
        (vec![empty], "must not be empty"),
    ] {
        let document = json!({"clients": [client(&entries)]});
        let output = gatepost.run(&["plan", "-"], &document.to_string());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(rule), "{told}");
    }

    let weak = [
        ("repo:acme/shop:environment:production", "taken anew"),
        ("repo:acme@12/shop@34:pull_request", "pull request"),
    ];
    let entries: Vec<Value> = weak
        .iter()
        .map(|(subject, _)| json!({"issuer": GITHUB, "subject": subject, "jwks": keys, "audience": "https://x.example"}))
        .collect();
    gatepost.apply(&json!({"clients": [client(&entries)]}));
    let output = gatepost.run(&["client", "test", "deploy"], "");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    for (_, warning) in weak {
        assert!(told.contains(warning), "{told}");
    }
    assert!(told.contains("audience takes tokens"), "{told}");
    // What was applied comes back as it was.
    let exported: Value = serde_json::from_str(&gatepost.run_well(&["export"], "")).unwrap();
    let clients = exported["clients"].as_array().unwrap();
    let deploy = clients
        .iter()
        .find(|one| one["client_id"] == "deploy")
        .unwrap();
    assert_eq!(deploy["federated"], json!(entries));
}

/// Types a block of the page where the platform's token is at hand; answers what `token` became.
fn type_in(gatepost: &Gatepost, commands: &str, environment: &[(&str, &str)]) -> String {
    let folder = std::env::temp_dir().join(format!("gatepost-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("curl");
    let curl = "#!/bin/bash\nexec /usr/bin/curl \"${@//https:\\/\\/login.example.com\\/connect/$ISSUER/connect}\"\n";
    std::fs::write(&path, curl).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    let script = format!("set -euo pipefail\n{commands}\necho \"it is $token\"");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .env("ISSUER", &gatepost.base_url)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let token = printed.lines().find_map(|line| line.strip_prefix("it is "));
    token
        .unwrap_or_else(|| panic!("{printed}{said}{}", last_line(gatepost)))
        .to_owned()
}

/// The blocks of commands of docs/connect/pipelines.md, in their order: GitHub, GitLab, Kubernetes.
#[test]
fn the_steps_of_the_page_get_a_token_for_a_pipeline_and_for_a_pod() {
    let page = "docs/connect/pipelines.md";
    let steps = blocks::all().into_iter();
    let steps: Vec<_> = steps.filter(|block| block.name.starts_with(page)).collect();
    assert_eq!(steps.len(), 3);
    let signer = Signer::es256("platform");
    let keys = WebServer::start(Behaviour::Json(key_set(&[&signer])));
    let gatepost = Gatepost::start_with(&document(), &OUTBOUND);
    let mut assertions = Vec::new();
    for (found, mut registration) in registrations("docs/connect") {
        if found != page {
            continue;
        }
        let entry = &mut registration["clients"][0]["federated"][0];
        // The platform's keys are those of the stand-in.
        match entry["jwks"].is_null() {
            true => entry["jwks_uri"] = json!(keys.url("/jwks")),
            false => entry["jwks"] = key_set(&[&signer]),
        }
        let mut claims = json!({
            "iss": entry["issuer"], "sub": entry["subject"], "aud": gatepost.base_url, "iat": now(), "exp": now() + 300,
        });
        for (name, value) in entry["claims"].as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        assertions.push(signer.sign(&claims));
        gatepost.apply(&registration);
    }
    gatepost.settle();
    let [github, gitlab, pod] = <[String; 3]>::try_from(assertions).unwrap();
    let platform = WebServer::start(Behaviour::Json(json!({"count": 1, "value": github})));
    let asked = platform.url("/token?api-version=2.0");
    let actions = [
        ("ACTIONS_ID_TOKEN_REQUEST_URL", asked.as_str()),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-runner"),
    ];
    let file = gatepost.private_file("token", &pod);
    let of_pod = steps[2].text.replace(
        "/var/run/secrets/gatepost/token",
        &file.display().to_string(),
    );
    let tokens = [
        type_in(&gatepost, &steps[0].text, &actions),
        type_in(&gatepost, &steps[1].text, &[("GATEPOST_ID_TOKEN", &gitlab)]),
        type_in(&gatepost, &of_pod, &[]),
    ];
    for token in tokens {
        assert_eq!(token.split('.').count(), 3, "{token}");
    }
    let requests = platform.requests();
    assert!(
        requests[0].contains("&audience=https://login.example.com "),
        "{}",
        requests[0]
    );
    assert!(
        requests[0].contains("Bearer of-the-runner"),
        "{}",
        requests[0]
    );
}

#[test]
fn a_token_of_this_issuer_is_refused_before_it_is_registered_and_a_foreign_audience_is_weak() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let keys = key_set(&[&Signer::es256("k")]);
    let entry = |issuer: &str, audience: &str| json!({"issuer": issuer, "subject": "x", "audience": audience, "jwks": keys});
    let (ours, foreign) = (gatepost.base_url.as_str(), "https://vault.example");
    let document = json!({"clients": [client(&[entry(GITHUB, ours), entry(ours, ours)])]});
    for command in ["plan", "apply"] {
        let output = gatepost.run(&[command, "-"], &document.to_string());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let rule = "federated[1].issuer: must not be this issuer";
        assert!(!output.status.success() && told.contains(rule), "{told}");
    }
    gatepost.apply(&json!({"clients": [client(&[entry(GITHUB, ours)])]}));
    gatepost.settle();
    let weak = "tokens that were made for somebody else";
    assert!(!gatepost.log().contains(weak), "our own audience");
    gatepost.apply(&json!({"clients": [client(&[entry(GITHUB, foreign)])]}));
    gatepost.await_log("the weak settings", |log| {
        log.contains(&format!("{weak} (deploy)"))
    });
}

#[test]
fn explain_tells_which_entry_a_token_fits_or_what_differs() {
    let platforms = platforms();
    let github = &platforms[0];
    let entries: Vec<Value> = platforms
        .iter()
        .rev()
        .map(|platform| {
            let mut entry = platform.entry.clone();
            entry["jwks"] = key_set(&[&platform.signer]);
            entry
        })
        .collect();
    let gatepost = Gatepost::start_with(&registered(&[client(&entries)]), &[]);
    for (changes, good, said) in [
        (
            json!({}),
            true,
            vec![
                "it fits federated[3]",
                PRODUCTION,
                "it gets the scope orders.read",
            ],
        ),
        (
            json!({"sub": "repo:acme@12/shop@34:ref:refs/heads/main"}),
            false,
            vec![
                "GP1174",
                "refs/heads/main",
                "federated[3] is nearest, and differs in sub",
            ],
        ),
        (
            json!({"repository_id": "35"}),
            false,
            vec![
                "GP1174",
                "federated[3] is nearest, and differs in repository_id",
            ],
        ),
        (
            json!({"iss": gatepost.base_url}),
            false,
            vec!["GP1174", "it is a token of this issuer"],
        ),
        (
            json!({"aud": "https://vault.example"}),
            false,
            vec!["GP1235", "federated[3]"],
        ),
        (
            json!({"exp": now() - 100}),
            false,
            vec!["GP1236", "federated[3]"],
        ),
        (
            json!({"exp": now() + 100_000}),
            false,
            vec!["GP1175", "federated[3]"],
        ),
    ] {
        let assertion = token(&gatepost, github, &changes);
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "deploy"),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", &assertion),
        ];
        let output = gatepost.run(&["explain", "-"], &crate::support::http::encode(&form));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.success(), good, "{changes}: {told}");
        for text in said {
            assert!(told.contains(text), "{changes}, {text}: {told}");
        }
        assert!(!told.contains(&assertion), "{told}");
        // The server says the same.
        let answer = ask(&gatepost, ASSERTION_TYPE, &assertion);
        assert_eq!(answer.status == 200, good, "{changes}: {}", answer.text());
    }
}
