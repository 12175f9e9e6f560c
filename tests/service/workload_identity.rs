//! Clients without a secret: the token that a platform gives to a pipeline or a pod authenticates
//! it (RFC 7523 §2.2 with an issuer elsewhere).

use serde_json::{Value, json};

use crate::documentation::registrations;
use crate::support::blocks;
use crate::support::claims::Says;
use crate::support::flow::{changed_members, issued, text, with_further_clients, with_members};
use crate::support::gatepost::{Gatepost, document};
use crate::support::http::{Answer, encode};
use crate::support::offline;
use crate::support::signer::{Behaviour, Signer, WebServer, key_set, now};
use crate::support::tables::cases;

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

/// The client with the entries of these platforms, whose keys are registered with them.
fn registered(platforms: &[&Platform]) -> Value {
    let entries = platforms.iter().map(|platform| {
        let keys = key_set(&[&platform.signer]);
        with_members(platform.entry.clone(), &json!({"jwks": keys}))
    });
    with_further_clients(document(), &[client(&entries.collect::<Vec<_>>())])
}

/// The platform's token, for this issuer, with changes.
fn token(gatepost: &Gatepost, platform: &Platform, changes: &Value) -> String {
    let audience = json!({"aud": [gatepost.base_url]});
    let claims = with_members(platform.token.clone(), &audience);
    let signer = &platform.signer;
    let mut header = json!({"alg": signer.alg, "kid": signer.kid});
    if let Some(typ) = platform.typ {
        header["typ"] = json!(typ);
    }
    signer.sign_under(&header, &changed_members(claims, changes))
}

fn ask(gatepost: &Gatepost, assertion_type: &str, assertion: &str) -> Answer {
    gatepost.post("/connect/token", &[], &form(assertion_type, assertion))
}

fn form<'a>(assertion_type: &'a str, assertion: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("grant_type", "client_credentials"),
        ("client_id", "deploy"),
        ("client_assertion_type", assertion_type),
        ("client_assertion", assertion),
    ]
}

#[track_caller]
fn assert_unproven(gatepost: &Gatepost, assertion: &str, code: &str, case: &str) {
    let answer = ask(gatepost, ASSERTION_TYPE, assertion);
    answer.assert_refused(400, "invalid_client", case);
    answer.assert_member_for(case, "error_description", "Client authentication failed.");
    gatepost.last_line("/connect/").assert_says_for(case, code);
}

#[test]
fn each_platforms_token_authenticates_its_client_as_often_as_it_is_sent() {
    let platforms = platforms();
    let mut registered = registered(&platforms.iter().collect::<Vec<_>>());
    let deploy = offline::client(&mut registered, "deploy");
    let spiffe = platforms.iter().position(|one| one.name == "SPIFFE");
    deploy["federated"][spiffe.unwrap()]["jwks"]["keys"][0]["use"] = json!("jwt-svid");
    let gatepost = Gatepost::start_with(&registered, &[]);
    for platform in &platforms {
        let assertion = token(&gatepost, platform, &json!({}));
        for _ in 0..2 {
            let answer = ask(&gatepost, platform.assertion_type, &assertion);
            answer.assert_status_for(platform.name, 200);
            assert_eq!(text(&issued(&answer), "scope"), "orders.read");
        }
        let [_, own @ ..] = form(platform.assertion_type, &assertion);
        let form = [&own[..], &[("token", "x")]].concat();
        let shown = gatepost.post("/connect/introspect", &[], &form);
        assert_eq!(shown.json(), json!({"active": false}), "{}", platform.name);
    }
}

#[test]
fn a_token_that_is_bent_anywhere_authenticates_nobody() {
    let platforms = platforms();
    let github = &platforms[0];
    let gatepost = Gatepost::start_with(&registered(&[github, &platforms[2]]), &[]);
    let ours = gatepost.base_url.as_str();
    let bent = json!({"GP1174": {
        "another branch": {"sub": "repo:acme@12/shop@34:ref:refs/heads/topic"},
        "a pull request": {"sub": "repo:acme@12/shop@34:pull_request"},
        "another repository": {"sub": "repo:acme@12/shed@35:environment:production"},
        "a repository of that name made anew": {"repository_id": "99"},
        "another issuer": {"iss": "https://token.actions.evil.example"},
        "our issuer": {"iss": ours},
        "no issuer": {"iss": null},
    }, "GP1232": {
        // Its own issuer must be verified by its own keys.
        "the issuer of another entry": {"iss": KUBERNETES, "sub": "system:serviceaccount:shop:deploy"},
        // As if the client had made it: it has no keys of its own.
        "the client as issuer": {"iss": "deploy", "sub": "deploy"},
    }, "GP1235": {
        "another audience": {"aud": "https://github.com/acme"},
        "two audiences": {"aud": [ours, "https://github.com/acme"]},
        "the token endpoint": {"aud": format!("{ours}/connect/token")},
    }, "GP1236": {
        "expired": {"exp": now() - 61},
        "not valid yet": {"nbf": now() + 120},
        "without an end": {"exp": null},
    }, "GP1175": {
        "good for a day": {"exp": now() + 86_400},
    }, "GP1230": {
        "no subject": {"sub": null},
    }});
    for (code, rows) in cases(&bent) {
        for (case, changes) in cases(rows) {
            assert_unproven(&gatepost, &token(&gatepost, github, changes), code, case);
        }
    }
    let signer = Signer::rs256("github");
    let stranger = Platform {
        signer,
        ..self::platforms().remove(0)
    };
    let forged = token(&gatepost, &stranger, &json!({}));
    assert_unproven(&gatepost, &forged, "GP1233", "another key");
    let typ = Some("at+jwt");
    let access_token = Platform {
        typ,
        ..self::platforms().remove(0)
    };
    let forged = token(&gatepost, &access_token, &json!({}));
    assert_unproven(&gatepost, &forged, "GP1230", "an access token");
    // Without client_id nobody is named, and another client has no such entry.
    let good = token(&gatepost, github, &json!({}));
    let form = form(ASSERTION_TYPE, &good);
    let nameless = [form[0], form[2], form[3]];
    let of_another = [form[0], ("client_id", "conf1"), form[2], form[3]];
    for (case, form) in [("nameless", &nameless[..]), ("of another", &of_another)] {
        let answer = gatepost.post("/connect/token", &[], form);
        answer.assert_refused(400, "invalid_client", case);
    }
    ask(&gatepost, ASSERTION_TYPE, &good).assert_status(200);
}

#[test]
fn the_log_says_whose_token_it_was_and_never_shows_it() {
    let platforms = platforms();
    let github = &platforms[0];
    let gatepost = Gatepost::start_with(&registered(&[github]), &[]);
    let subject = format!("repo:acme@12/shop@34:ref:refs/heads/{}", "x".repeat(300));
    let assertion = token(&gatepost, github, &json!({"sub": subject}));
    assert_unproven(&gatepost, &assertion, "GP1174", "a long branch");
    let line = gatepost.last_line("/connect/");
    line.assert_says(GITHUB);
    line.assert_says("repo:acme@12/shop@34:ref:refs/heads/xxx");
    line.assert_says_not(&"x".repeat(200));
    line.assert_says_for("what is cut off is not told", "xxx...");
    let payload = assertion.split('.').nth(1).unwrap();
    assert!(!gatepost.log().contains(payload));
    gatepost
        .run_line("audit list --json")
        .assert_says("client_authentication_failed");
}

#[test]
fn a_platforms_keys_are_fetched_and_looked_for_again_after_a_rotation() {
    let mut github = platforms().remove(0);
    let server = WebServer::start(Behaviour::Json(key_set(&[&github.signer])));
    let mut entry = github.entry.clone();
    entry["jwks_uri"] = json!(server.url("/.well-known/jwks"));
    let registered = with_further_clients(document(), &[client(&[entry])]);
    let gatepost = Gatepost::start_with(&registered, &OUTBOUND);
    for _ in 0..3 {
        let assertion = token(&gatepost, &github, &json!({}));
        ask(&gatepost, ASSERTION_TYPE, &assertion).assert_status(200);
    }
    assert_eq!(server.requests().len(), 1);
    github.signer = Signer::rs256("next");
    server.behave(Behaviour::Json(key_set(&[&github.signer])));
    let assertion = token(&gatepost, &github, &json!({}));
    ask(&gatepost, ASSERTION_TYPE, &assertion).assert_status(200);
    // What is held goes on counting while the platform does not answer.
    server.behave(Behaviour::Status(500));
    ask(&gatepost, ASSERTION_TYPE, &assertion).assert_status(200);
    // A token of nobody here makes no request.
    let before = server.requests().len();
    let of_nobody = json!({"sub": "repo:evil@1/x@2:ref:refs/heads/main"});
    let foreign = token(&gatepost, &github, &of_nobody);
    assert_unproven(&gatepost, &foreign, "GP1174", "of nobody");
    assert_eq!(server.requests().len(), before);
}

#[test]
fn what_leaves_the_door_open_is_refused_or_told() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let keys = key_set(&[&Signer::es256("k")]);
    let is_refused = |entries: &[Value], rule: &str| {
        let document = json!({"clients": [client(entries)]});
        let told = gatepost.refusal(&["plan", "-"], &document.to_string());
        told.assert_says_for(json!(entries), rule);
    };
    let good = json!({"issuer": GITHUB, "subject": PRODUCTION, "jwks": keys});
    let with = |changes: Value| changed_members(good.clone(), &changes);
    for (rule, changes) in [
        ("federated[0].subject", json!({"subject": "repo:acme@12/*"})),
        ("federated[0].issuer", json!({"issuer": null})),
        ("federated[0].subject", json!({"subject": null})),
        ("federated[0].claims.ref", json!({"claims": {"ref": 7}})),
        ("federated[0].max_lifetime", json!({"max_lifetime": 86_401})),
        ("federated[0]", json!({"branch": "main"})),
        (
            "federated[0].issuer",
            json!({"issuer": "http://ci.example.com"}),
        ),
        ("must not be empty", json!({"subject": ""})),
    ] {
        is_refused(&[with(changes)], rule);
    }
    let many = (0..21).map(|number| with(json!({"subject": format!("s-{number}")})));
    is_refused(&many.collect::<Vec<_>>(), "20 entries at most");
    is_refused(&[good.clone(), good.clone()], "the same workload twice");

    let weak = [
        ("repo:acme/shop:environment:production", "taken anew"),
        ("repo:acme@12/shop@34:pull_request", "pull request"),
    ];
    let entries =
        weak.map(|(subject, _)| with(json!({"subject": subject, "audience": "https://x.example"})));
    gatepost.apply(&json!({"clients": [client(&entries)]}));
    let output = gatepost.run(&["client", "test", "deploy"], "");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    for (_, warning) in weak {
        told.assert_says(warning);
    }
    told.assert_says("audience takes tokens");
    // What was applied comes back as it was.
    let mut exported = gatepost.shown("export");
    let deploy = offline::client(&mut exported, "deploy");
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
        .unwrap_or_else(|| panic!("{printed}{said}{}", gatepost.last_line("/connect/")))
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
        if entry["claims"].is_object() {
            claims = with_members(claims, &entry["claims"]);
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
    let file = file.display().to_string();
    let of_pod = steps[2]
        .text
        .replace("/var/run/secrets/gatepost/token", &file);
    let tokens = [
        type_in(&gatepost, &steps[0].text, &actions),
        type_in(&gatepost, &steps[1].text, &[("GATEPOST_ID_TOKEN", &gitlab)]),
        type_in(&gatepost, &of_pod, &[]),
    ];
    for token in tokens {
        assert_eq!(token.split('.').count(), 3, "{token}");
    }
    let requests = platform.requests();
    requests[0].assert_says("&audience=https://login.example.com ");
    requests[0].assert_says("Bearer of-the-runner");
}

#[test]
fn a_token_of_this_issuer_is_refused_before_it_is_registered_and_a_foreign_audience_is_weak() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let keys = key_set(&[&Signer::es256("k")]);
    let entry = |issuer: &str, audience: &str| json!({"issuer": issuer, "subject": "x", "audience": audience, "jwks": keys});
    let (ours, foreign) = (gatepost.base_url.as_str(), "https://vault.example");
    let document = json!({"clients": [client(&[entry(GITHUB, ours), entry(ours, ours)])]});
    for command in ["plan", "apply"] {
        let told = gatepost.refusal(&[command, "-"], &document.to_string());
        told.assert_says("federated[1].issuer: must not be this issuer");
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
    let reversed: Vec<&Platform> = platforms.iter().rev().collect();
    let gatepost = Gatepost::start_with(&registered(&reversed), &[]);
    let issuer = &gatepost.base_url;
    let main = json!({"sub": "repo:acme@12/shop@34:ref:refs/heads/main"});
    let fits = format!("it fits federated[3] | {PRODUCTION} | it gets the scope orders.read");
    let in_sub = "GP1174 | refs/heads/main | federated[3] is nearest, and differs in sub";
    let in_id = "GP1174 | federated[3] is nearest, and differs in repository_id";
    for (changes, said) in [
        (json!({}), &*fits),
        (main, in_sub),
        (json!({"repository_id": "35"}), in_id),
        (
            json!({"iss": issuer}),
            "GP1174 | it is a token of this issuer",
        ),
        (
            json!({"aud": "https://vault.example"}),
            "GP1235 | federated[3]",
        ),
        (json!({"exp": now() - 100}), "GP1236 | federated[3]"),
        (json!({"exp": now() + 100_000}), "GP1175 | federated[3]"),
    ] {
        let is_good = changes == json!({});
        let assertion = token(&gatepost, github, &changes);
        let request = encode(&form(ASSERTION_TYPE, &assertion));
        let output = gatepost.run(&["explain", "-"], &request);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.success(), is_good, "{changes}: {told}");
        for text in said.split(" | ") {
            told.assert_says_for(&changes, text);
        }
        told.assert_says_not(&assertion);
        // The server says the same.
        let answer = ask(&gatepost, ASSERTION_TYPE, &assertion);
        assert_eq!(
            answer.status == 200,
            is_good,
            "{changes}: {}",
            answer.text()
        );
    }
}
