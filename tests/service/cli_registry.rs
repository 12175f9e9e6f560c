//! `gatepost migrate` and `gatepost apply` on a real database.

use serde_json::{Value, json};

use crate::cli_support::Installation;
use crate::support::claims::Says;
use gatepost::store::migrate::MIGRATIONS;

const CANARIES: [&str; 5] = [
    "canary-client-91",
    "canary-resource-92",
    "canary-provider-93",
    "canary-password-94",
    "canary-variable-95",
];

fn document() -> Value {
    json!({
        "tenants": [{"name": "acme", "display_name": "ACME Ltd"}],
        "identity_scopes": [{"name": "roles", "claims": ["role"]}],
        "resource_scopes": [{"name": "orders.read", "resources": ["orders"]}],
        "resources": [{"name": "orders", "secrets": [{"value": CANARIES[1]}]}],
        "identity_providers": [{"name": "corp", "issuer": "https://login.example", "client_id": "x", "client_secret": CANARIES[2]}],
        "assertion_issuers": [{"issuer": "https://sts.example", "jwks_uri": "https://sts.example/jwks", "clients": ["web"], "scope": "orders.read"}],
        "clients": [
            {"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "scope": "openid roles orders.read",
             "secrets": [{"value": CANARIES[0], "description": "first"}], "identity_providers": ["local", "corp"]},
            {"client_id": "spa", "redirect_uris": ["https://spa.example/cb"], "scope": "openid"}
        ],
        "users": [
            {"username": "alice", "password": CANARIES[3], "claims": {"name": "Alice Smith", "role": ["admin"]}},
            {"username": "bob", "tenant": "acme", "sub": "bob-1", "password_hash": "$argon2id$v=19$m=7168,t=1,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo"}
        ]
    })
}

#[test]
fn migrating_twice_makes_one_installation_and_one_key_per_algorithm() {
    let installation = Installation::empty();
    assert_eq!(installation.run(&["migrate", "--check"]).code, 1);
    let first = installation.done(&["migrate"], "");
    first.assert_says("applied 0001_");
    assert!(first.matches("made signing key").count() == 3, "{first}");
    let keys = installation.list("key");
    let second = installation.done(&["migrate"], "");
    second.assert_says_not("applied");
    second.assert_says_not("made signing key");
    assert_eq!(installation.list("key"), keys);
    assert_eq!(installation.database.count("installation"), 1);
    assert_eq!(installation.run(&["migrate", "--check"]).code, 0);
}

/// Rows of a table, as Postgres plans with.
fn planned_rows(client: &mut postgres::Client, table: &str) -> f32 {
    let rows = "SELECT reltuples FROM pg_class WHERE oid = to_regclass($1)";
    client.query_one(rows, &[&table]).unwrap().get(0)
}

#[test]
fn migrating_counts_small_tables_and_leaves_out_one_that_is_locked() {
    let installation = Installation::empty();
    installation.done(&["migrate"], "");
    let mut client = installation.database.client();
    let levels = MIGRATIONS.len() as f32;
    for (table, rows) in [
        ("installation", 1.0),
        ("leader", 1.0),
        ("schema_migrations", levels),
    ] {
        let planned = planned_rows(&mut client, table);
        assert!((planned - rows).abs() < 0.1, "{table}");
    }
    let unlike = "UPDATE pg_class SET reltuples = 690 WHERE oid IN (to_regclass('installation'), to_regclass('leader'))";
    client.execute(unlike, &[]).unwrap();
    let mut vacuuming = installation.database.client();
    let mut vacuum = vacuuming.transaction().unwrap();
    vacuum
        .batch_execute("LOCK TABLE installation IN SHARE UPDATE EXCLUSIVE MODE")
        .unwrap();
    installation.done(&["migrate"], "");
    assert!(planned_rows(&mut client, "installation") > 600.0);
    assert!(planned_rows(&mut client, "leader") < 2.0);
}

#[test]
fn a_database_made_for_one_issuer_is_not_migrated_for_another() {
    let installation = Installation::migrated();
    for arguments in [&["migrate"][..], &["migrate", "--check"], &["user", "list"]] {
        let mut command = installation.command(arguments);
        command.env("GATEPOST_BASE_URL", "https://other.example");
        let answer = crate::cli_support::answer(command, "");
        answer.assert_refused(78, "https://id.example");
    }
}

#[test]
fn migrate_needs_the_master_secret_before_it_writes_anything() {
    let installation = Installation::empty();
    let mut command = installation.command(&["migrate"]);
    command
        .env_remove("GATEPOST_SECRET_FILE")
        .env_remove("CREDENTIALS_DIRECTORY");
    let answer = crate::cli_support::answer(command, "");
    answer.assert_refused(78, "GATEPOST_SECRET_FILE");
    assert_eq!(installation.run(&["migrate", "--check"]).code, 1);
}

#[test]
fn applying_again_changes_nothing() {
    let installation = Installation::migrated();
    let first = installation.apply(&document());
    assert_eq!(first.code, 0, "{first:?}");
    assert!(
        first.stdout.ends_with("10 added, 0 changed, 0 unchanged\n"),
        "{first:?}"
    );
    let (version, before) = (installation.registry_version(), installation.dump());
    let second = installation.apply(&document());
    assert_eq!(second.stdout, "0 added, 0 changed, 10 unchanged\n");
    assert_eq!(installation.registry_version(), version);
    assert_eq!(installation.dump(), before);
}

#[test]
fn a_change_touches_only_what_changed() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    let mut changed = document();
    changed["clients"][0]["client_name"] = json!("Web shop");
    changed["users"][0]["enabled"] = json!(false);
    changed["users"][0]["password"] = json!("another password");
    changed["identity_providers"][0]["client_secret"] = json!("another secret");
    let hash = |installation: &Installation| -> String {
        let query = "SELECT password_hash FROM users WHERE username = 'alice'";
        installation.database.value(query, &[])
    };
    let before = hash(&installation);
    let answer = installation.apply(&changed);
    assert_eq!(
        answer.stdout,
        "changed identity_provider corp\nchanged client web\nchanged user alice\n0 added, 3 changed, 7 unchanged\n"
    );
    // A password counts only when the user is new.
    assert_eq!(hash(&installation), before);
    let web = installation
        .list("client")
        .into_iter()
        .find(|client| client["client_id"] == "web")
        .unwrap();
    assert_eq!(web["metadata"]["client_name"], "Web shop");
    assert_eq!(web["secrets"][0]["description"], "first");
}

#[test]
fn objects_left_out_stay_and_secrets_follow_the_document_where_it_names_them() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    let client = |secrets: Value| {
        let mut client = json!({"client_id": "web", "redirect_uris": ["https://shop.example/cb"],
                                "token_endpoint_auth_method": "client_secret_basic"});
        if !secrets.is_null() {
            client["secrets"] = secrets;
        }
        json!({"clients": [client]})
    };
    let count = || installation.database.count("client_secrets");
    assert_eq!(installation.apply(&client(Value::Null)).code, 0);
    assert_eq!(count(), 1);
    assert_eq!(installation.list("user").len(), 2);
    assert_eq!(installation.list("client").len(), 2);
    let two = json!([{"value": CANARIES[0], "description": "first"}, {"sha256": "00".repeat(32), "expires_at": "2031-01-01T00:00:00Z"}]);
    assert_eq!(installation.apply(&client(two)).code, 0);
    assert_eq!(count(), 2);
    assert_eq!(installation.apply(&client(json!([]))).code, 0);
    assert_eq!(count(), 0);
}

#[test]
fn a_mistake_in_the_last_object_leaves_nothing_behind() {
    let installation = Installation::migrated();
    let before = installation.dump();
    let mut broken = document();
    broken["users"][1]["sub"] = json!("not a subject");
    broken["clients"][1]["scop"] = json!("openid");
    let answer = installation.apply(&broken);
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
    let places = [
        "clients[1] (spa): unknown key \"scop\"; the nearest is \"scope\"",
        "users[1] (bob).sub: must be 1 to 255",
        "nothing was applied",
    ];
    assert!(
        places.iter().all(|place| answer.stderr.contains(place)),
        "{answer:?}"
    );
    assert_eq!(installation.dump(), before);
}

#[test]
fn what_only_the_database_can_refuse_leaves_nothing_behind_either() {
    let installation = Installation::migrated();
    assert_eq!(
        installation
            .apply(&json!({"users": [{"username": "alice"}]}))
            .code,
        0
    );
    let before = installation.dump();
    let taken = json!({
        "clients": [{"client_id": "new", "grant_types": []}],
        "users": [{"username": "carol"}, {"username": "Alice", "sub": "another"}],
    });
    let answer = installation.apply(&taken);
    answer.assert_refused(
        1,
        "users[1] (Alice).username: is the user name of another user",
    );
    assert_eq!(installation.dump(), before);
}

#[test]
fn names_in_the_database_count_as_there() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    let good = json!({"clients": [{"client_id": "m2m", "grant_types": ["client_credentials"], "secrets": [{"value": "a-secret-of-20-chars"}], "scope": "orders.read"}]});
    assert_eq!(installation.apply(&good).code, 0);
    for (document, place) in [
        (
            json!({"resources": [{"name": "web"}]}),
            "resources[0] (web).name: is the client_id of a client",
        ),
        (
            json!({"clients": [{"client_id": "orders", "grant_types": []}]}),
            "clients[0] (orders).client_id: is the name of a resource",
        ),
        (
            json!({"identity_scopes": [{"name": "orders.read"}]}),
            "identity_scopes[0] (orders.read).name: is the name of a scope of the other kind",
        ),
        (
            json!({"clients": [{"client_id": "m2m", "grant_types": []}]}),
            "clients[0] (m2m).token_endpoint_auth_method: is required",
        ),
    ] {
        installation.apply(&document).assert_refused(1, place);
    }
}

#[test]
fn secrets_come_from_variables_and_files_and_a_missing_one_is_named() {
    let installation = Installation::migrated();
    let file = installation.write_private("client-secret", "from a file of mine\n");
    let client = |secret: Value| json!({"clients": [{"client_id": "m2m", "grant_types": ["client_credentials"], "secrets": [secret]}]});
    let apply = |document: &Value| {
        let mut command = installation.command(&["apply", "-"]);
        command.env("SHOP_SECRET", CANARIES[4]);
        crate::cli_support::answer(command, &document.to_string())
    };
    // What looks like a hash is the secret itself where a file has it.
    let hash = installation.write_private("hash", "$2b$12$abcdefghijklmnopqrstuu");
    for secret in [
        json!({"env": "SHOP_SECRET"}),
        json!({"file": file}),
        json!({"file": hash}),
    ] {
        let answer = apply(&client(secret.clone()));
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(apply(&client(secret)).stdout.contains("1 unchanged"));
    }
    for (secret, problem) in [
        (
            json!({"env": "SHOP_SECRET_MISSING"}),
            "clients[0] (m2m).secrets[0].env: names SHOP_SECRET_MISSING, which is not set",
        ),
        (
            json!({"file": "/nonexistent"}),
            "clients[0] (m2m).secrets[0].file: names a file that cannot be read",
        ),
    ] {
        apply(&client(secret)).assert_refused(1, problem);
    }
    assert!(
        CANARIES
            .iter()
            .all(|canary| !installation.dump().contains(canary))
    );
}

#[test]
fn no_secret_is_printed_or_stored_in_the_clear() {
    let installation = Installation::migrated();
    let mut broken = document();
    broken["users"][0]["enabled"] = json!(CANARIES[3]);
    broken["clients"][0][CANARIES[0]] = json!(1);
    for document in [document(), broken] {
        let answer = installation.apply(&document);
        let printed = format!("{}{}", answer.stdout, answer.stderr)
            .replace("unknown key \"canary-client-91\"", "");
        assert!(
            CANARIES.iter().all(|canary| !printed.contains(canary)),
            "{printed}"
        );
    }
    let dump = installation.dump();
    assert!(dump.contains("shop.example") && CANARIES.iter().all(|canary| !dump.contains(canary)));
    let secret = std::fs::read_to_string(installation.directory.join("secret")).unwrap();
    assert!(!dump.contains(secret.trim()));
}

#[test]
fn what_is_no_document_is_refused() {
    let installation = Installation::migrated();
    for (input, problem) in [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "expected an object, found an array"),
        ("{} {}", "is not JSON"),
        (
            r#"{"users": [], "users": []}"#,
            "key \"users\" stands twice",
        ),
    ] {
        let answer = installation.run_with(&["apply", "-"], input);
        answer.assert_refused(1, problem);
    }
    assert_eq!(installation.run(&["apply", "/nonexistent.json"]).code, 1);
    let file = installation.write_private("document.json", &document().to_string());
    installation
        .done(&["apply", file.to_str().unwrap()], "")
        .assert_says("10 added");
}
