//! Tables of documents beside what is registered.

use serde_json::{Value, json};

use super::*;
use crate::strict_json::parse;
use crate::user::Credential;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::words::identifiers::TenantName;

fn registered() -> RegisteredObjects {
    let object = |document: Value| RegisteredObject {
        document: document.to_string().into(),
        client_secret: Some(SecretText::new("old")),
        secrets: vec![],
    };
    let web = json!({"client_id": "web", "scope": "openid orders.read", "grant_types": ["client_credentials"], "confidential": true});
    let objects = [
        (ObjectKind::Client, "web", web),
        (ObjectKind::Tenant, "acme", json!({"name": "acme"})),
        (
            ObjectKind::ResourceScope,
            "orders.read",
            json!({"name": "orders.read", "resources": ["orders"]}),
        ),
        (ObjectKind::Resource, "orders", json!({"name": "orders"})),
        (
            ObjectKind::IdentityProvider,
            "corp",
            json!({"name": "corp", "issuer": "https://login.example", "client_id": "x", "tenant": "acme"}),
        ),
    ];
    let objects = objects.map(|(kind, name, document)| ((kind, name.to_owned()), object(document)));
    RegisteredObjects {
        objects: objects.into(),
    }
}

fn users() -> RegisteredUsers {
    let user = |username: &str, tenant: Option<&str>| UserEntry {
        subject: Some(Subject::new(format!("s-{username}"))),
        username: Some(username.to_owned()),
        tenant: tenant.map(TenantName::new),
        credential: Some(Credential::Hash(SecretText::new(
            "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA",
        ))),
        enabled: true,
        valid_until: None,
        claims: json!({"name": "Alice"}).as_object().unwrap().clone(),
        totp: None,
        identities: Some(BTreeSet::new()),
    };
    RegisteredUsers {
        users: [
            (Subject::new("s-alice"), user("alice", None)),
            (Subject::new("s-bob"), user("bob", Some("acme"))),
        ]
        .into(),
        ..RegisteredUsers::default()
    }
}

/// What would happen, as `verb kind name keys`; or what is wrong.
fn planned(
    value: &Value,
    prune: bool,
    adjust: impl FnOnce(&mut RegisteredUsers),
) -> Result<Vec<String>, Vec<String>> {
    let texts = |problems: Vec<DocumentProblem>| {
        problems
            .iter()
            .map(DocumentProblem::to_string)
            .collect::<Vec<_>>()
    };
    let value = &parse(&value.to_string()).unwrap();
    let pruning = if prune {
        Pruning::of(value)
    } else {
        Pruning::default()
    };
    let registered = registered();
    let document = Document::from_json(
        value,
        &ClientDefaults::default(),
        &registered.names(&pruning),
    )
    .map_err(texts)?;
    let mut users = users();
    let named = document.users.iter().map(|entry| {
        let fits = |(_, user): &(&Subject, &UserEntry)| {
            user.username == entry.username && user.tenant == entry.tenant
        };
        users
            .users
            .iter()
            .find(fits)
            .map(|(subject, _)| subject.clone())
    });
    users.named = named.collect();
    adjust(&mut users);
    let given = vec![GivenSecrets::default(); document.entries.len()];
    let own_hash = String::from("$argon2id$v=19$m=1,t=1,p=1$");
    let comparison = Comparison {
        flow_uses: BTreeMap::new(),
        administration: None,
        bound_sessions: false,
        document,
        given,
        registered,
        users,
        pruning,
        own_hash,
    };
    let plan = make(&comparison).map_err(texts)?;
    let line = |change: &PlannedChange<'_>| {
        let keys: Vec<String> = change.fields().into_iter().map(|field| field.key).collect();
        format!(
            "{:?} {} {} {}",
            change.verb(),
            change.step.kind().as_str(),
            change.step.name(),
            keys.join(",")
        )
        .trim_end()
        .to_owned()
    };
    Ok(plan.changes.iter().map(line).collect())
}

fn plan(value: &Value) -> Vec<String> {
    planned(value, false, |_| ()).unwrap()
}

#[test]
fn numbers_are_compared_by_value() {
    for (before, after, same) in [
        ("100", "1e2", true),
        ("1.5", "1.50", true),
        ("1", "2", false),
        ("1.0", "1", true),
    ] {
        let value = |text: &str| -> Value {
            serde_json::from_str(&format!("{{\"a\": [{text}]}}")).unwrap()
        };
        assert_eq!(
            compare_fields(value(before), value(after), "").is_empty(),
            same,
            "{before} {after}"
        );
    }
}

#[test]
fn users_are_found_by_subject_or_by_name() {
    let claims = json!({"name": "Alice"});
    assert_eq!(
        plan(
            &json!({"users": [{"username": "alice", "claims": claims, "password": "does not count here"}]})
        ),
        [""; 0]
    );
    assert_eq!(
        plan(&json!({"users": [{"sub": "s-alice", "username": "alicia", "claims": claims}]})),
        ["Change user alicia username"]
    );
    assert_eq!(
        plan(&json!({"users": [{"username": "carol"}]})),
        ["Add user carol claims,enabled,username"]
    );
    let hash = "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA";
    assert_eq!(
        plan(&json!({"users": [{"username": "alice", "claims": claims, "password_hash": hash}]})),
        [""; 0]
    );
    let another = format!("{hash}o");
    assert_eq!(
        plan(
            &json!({"users": [{"username": "alice", "claims": claims, "password_hash": another}]})
        ),
        ["Change user alice"]
    );
    // What they had where they came from counts while they have nothing of their own here.
    for theirs in [
        "$argon2id$v=19$m=7168,t=5,p=1$c2FsdA$aGFzaA",
        "$pbkdf2-sha256$i=1000,l=16$BwcHBwcHBwcHBwcHBwcHBw$BwcHBwcHBwcHBwcHBwcHBw",
    ] {
        let document =
            json!({"users": [{"username": "alice", "claims": claims, "password_hash": theirs}]});
        assert_eq!(plan(&document), [""; 0], "{theirs}");
        for before in [
            None,
            Some(Credential::Hash(SecretText::new(
                "$argon2id$v=19$m=2,t=1,p=1$c2FsdA$aGFzaA",
            ))),
        ] {
            let adjust = |users: &mut RegisteredUsers| {
                users
                    .users
                    .get_mut(&Subject::new("s-alice"))
                    .unwrap()
                    .credential = before
            };
            assert_eq!(
                planned(&document, false, adjust).unwrap(),
                ["Change user alice"],
                "{theirs}"
            );
        }
    }
}

#[test]
fn names_and_subjects_of_others_are_refused() {
    for (user, problem) in [
        (
            json!({"sub": "s-bob", "username": "alice"}),
            "users[0] (alice).username: is the user name of another user",
        ),
        (
            json!({"sub": "gone", "username": "dora"}),
            "users[0] (dora).sub: is the sub of a user who was removed",
        ),
    ] {
        let removed = |users: &mut RegisteredUsers| users.removed = [Subject::new("gone")].into();
        let problems = planned(&json!({"users": [user]}), false, removed).unwrap_err();
        assert!(
            problems.len() == 1 && problems[0].starts_with(problem),
            "{problems:?}"
        );
    }
    let twice = json!({"users": [{"username": "alice"}, {"sub": "s-alice", "username": "other"}]});
    assert_eq!(
        planned(&twice, false, |_| ()).unwrap_err(),
        ["users[1] (other): is the same user as users[0]"]
    );
    // With pruning, whoever has the name goes first; but not if the document keeps them.
    let renamed = json!({"sub": "s-bob", "username": "alice"});
    let kept = json!({"sub": "s-alice", "username": "alicia"});
    assert!(planned(&json!({"users": [renamed]}), true, |_| ()).is_ok());
    assert_eq!(
        planned(&json!({"users": [renamed, kept]}), true, |_| ()).unwrap_err(),
        ["users[0] (alice).username: is the user name of another user"]
    );
}

#[test]
fn nobody_is_called_what_a_client_is() {
    let dora = json!([{"sub": "web", "username": "dora"}]);
    let public = |client_id: &str| json!([{"client_id": client_id, "redirect_uris": ["https://a.example/cb"]}]);
    let of_user = "users[0] (dora).sub: is the client_id of a client: a resource could not tell the user from the client";
    let of_client = |name: &str| {
        format!(
            "clients[0] ({name}).client_id: is the sub of a user, or once was: a resource could not tell the client from the user"
        )
    };
    let planned = |document: &Value, prune: bool| {
        planned(document, prune, |users| {
            users.of_clients = [Subject::new("s-alice"), Subject::new("gone")].into()
        })
    };
    for (document, prune, problem) in [
        (json!({"users": dora}), false, of_user.to_owned()),
        (
            json!({"users": dora, "clients": public("web")}),
            true,
            of_user.to_owned(),
        ),
        (
            json!({"users": [{"sub": "shop", "username": "dora"}], "clients": public("shop")}),
            false,
            of_user.to_owned(),
        ),
        (
            json!({"clients": public("s-alice")}),
            false,
            of_client("s-alice"),
        ),
        (
            json!({"clients": public("gone"), "users": []}),
            true,
            of_client("gone"),
        ),
    ] {
        assert_eq!(
            planned(&document, prune).unwrap_err(),
            [problem],
            "{document}"
        );
    }
    // A client that this very document removes leaves its name to others.
    let pruned = planned(&json!({"users": dora, "clients": []}), true).unwrap();
    assert!(
        pruned.contains(&String::from("Remove client web")),
        "{pruned:?}"
    );
}

#[test]
fn a_scope_may_come_back_as_one_of_the_other_kind() {
    let document = json!({"identity_scopes": [{"name": "orders.read"}], "resource_scopes": []});
    let expected = [
        "Remove resource_scope orders.read",
        "Add identity_scope orders.read",
    ];
    assert_eq!(planned(&document, true, |_| ()).unwrap(), expected);
}

#[test]
fn a_provider_takes_neither_the_secret_nor_the_accounts_of_another() {
    let refused = |providers: Value| match planned(
        &json!({"identity_providers": providers}),
        false,
        |_| (),
    ) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .iter()
            .map(|problem| problem.split_once(':').unwrap().0.to_owned())
            .collect(),
    };
    let corp = |issuer: &str| json!({"name": "corp", "issuer": issuer, "client_id": "y", "tenant": "acme"});
    assert_eq!(refused(json!([corp("https://login.example")])), [""; 0]);
    assert_eq!(
        refused(json!([corp("https://other.example")])),
        ["identity_providers[0] (corp).client_secret"]
    );
    assert_eq!(
        refused(json!([corp("https://login.example/")])),
        ["identity_providers[0] (corp).client_secret"]
    );
    let hub = |name: &str, subject_claim: &str| {
        let url = |path: &str| format!("https://hub.example/{path}");
        json!({
            "name": name, "client_id": "y", "authorization_endpoint": url("a"), "token_endpoint": url("t"),
            "userinfo_endpoint": url("u"), "subject_claim": subject_claim
        })
    };
    assert_eq!(
        refused(json!([hub("hub", "id"), hub("hub-2", "id")])),
        [""; 0]
    );
    assert_eq!(
        refused(json!([hub("corp", "id")])),
        ["identity_providers[0] (corp).client_secret"]
    );
    let both = [
        "identity_providers[0] (hub).subject_claim",
        "identity_providers[1] (hub-2).subject_claim",
    ];
    assert_eq!(
        refused(json!([hub("hub", "id"), hub("hub-2", "node_id")])),
        both
    );
}
