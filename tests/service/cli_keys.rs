//! Signing keys over their whole life, and the master secret changed, moved and lost, with a server
//! running beside.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{basic, damaged, decode_jwt, signed_in};
use crate::support::gatepost::{Gatepost, document};
use crate::support::http::{ask_alone, free_address};
use crate::support::jwt::{published_keys, verified};
use crate::support::phone::add_app;
use crate::support::waiting::{SOON, await_that};

const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

fn keys(gatepost: &Gatepost) -> Vec<Value> {
    serde_json::from_str(&gatepost.run_well(&["key", "list", "--json"], "")).unwrap()
}

fn states(gatepost: &Gatepost, algorithm: &str) -> Vec<String> {
    let of = |key: &Value| key["alg"] == algorithm;
    keys(gatepost)
        .iter()
        .filter(|key| of(key))
        .map(|key| key["state"].as_str().unwrap().to_owned())
        .collect()
}

/// An access token of conf1, as JWT.
fn jwt(gatepost: &Gatepost) -> String {
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "orders.read"),
    ];
    let answer = gatepost.token("conf1", &form);
    answer.json()["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", answer.text()))
        .to_owned()
}

fn kid(jwt: &str) -> String {
    decode_jwt(jwt).0["kid"].as_str().unwrap().to_owned()
}

fn is_active(gatepost: &Gatepost, token: &str) -> bool {
    gatepost
        .post_as("conf1", "/connect/introspect", &[("token", token)])
        .json()["active"]
        == true
}

fn published(gatepost: &Gatepost) -> Vec<String> {
    published_keys(gatepost)
        .iter()
        .map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
}

/// Moves every key's times so many days into the past.
fn travel(gatepost: &Gatepost, days: i32) {
    let moved = [
        "announced_at",
        "activates_at",
        "retires_at",
        "unpublished_at",
        "forgotten_at",
    ]
    .map(|column| format!("{column} = {column} - make_interval(days => {days})"))
    .join(", ");
    gatepost
        .database
        .client()
        .batch_execute(&format!("UPDATE signing_keys SET {moved}"))
        .unwrap();
}

#[test]
fn keys_are_announced_take_over_and_are_erased_in_time_by_one_process_alone() {
    let mut one = Gatepost::prepare(&[]);
    one.apply(&document());
    travel(&one, 75);
    let mut other = one.beside();
    for gatepost in [&mut one, &mut other] {
        gatepost.launch();
    }
    for gatepost in [&one, &other] {
        gatepost.await_ready();
    }
    // 90 days of use less 14 of announcement: on day 75 there is nothing to do yet.
    assert!(
        ALGORITHMS
            .iter()
            .all(|algorithm| states(&one, algorithm) == ["signing"])
    );
    other.stop();
    one.stop();

    travel(&one, 2);
    other.launch();
    one.launch();
    for gatepost in [&one, &other] {
        gatepost.await_ready();
    }
    await_that("no keys are announced", SOON, || keys(&one).len() == 6);
    for algorithm in ALGORITHMS {
        // One process alone announced.
        assert_eq!(states(&one, algorithm), ["signing", "announced"]);
    }
    let listed = keys(&one);
    let pair: Vec<&Value> = listed.iter().filter(|key| key["alg"] == "RS256").collect();
    // The one ends when the other begins.
    assert_eq!(pair[0]["retires_at"], pair[1]["activates_at"]);
    assert_eq!(pair[0]["until"], pair[1]["activates_at"]);
    assert_eq!(pair[1]["until"], pair[1]["activates_at"]);
    one.settle();
    assert_eq!(published(&one).len(), 6);
    let before = jwt(&one);
    assert_eq!(kid(&before), pair[0]["kid"].as_str().unwrap());
    one.stop();
    other.stop();

    // The new ones sign; what the old ones signed still counts, and they stay published.
    travel(&one, 15);
    one.serve();
    await_that("nothing is erased", SOON, || {
        keys(&one)
            .iter()
            .filter(|key| key["has_private_part"] == true)
            .count()
            == 3
    });
    for algorithm in ALGORITHMS {
        assert_eq!(states(&one, algorithm), ["published", "signing"]);
    }
    one.settle();
    let after = jwt(&one);
    assert_eq!(kid(&after), pair[1]["kid"].as_str().unwrap());
    verified(&one, &after);
    assert!(is_active(&one, &before) && published(&one).len() == 6);
    one.stop();

    // Out of the key set; then forgotten.
    travel(&one, 15);
    one.serve();
    await_that("nothing leaves the key set", SOON, || {
        published(&one).len() == 3
    });
    assert_eq!(
        (states(&one, "ES256"), published(&one).len()),
        (vec![String::from("retired"), String::from("signing")], 3)
    );
    one.stop();
    travel(&one, 60);
    one.serve();
    await_that("nothing follows", SOON, || keys(&one).len() == 9);
    one.stop();
    travel(&one, 30);
    one.serve();
    await_that("nothing is forgotten", SOON, || {
        keys(&one)
            .iter()
            .filter(|key| key["alg"] == "EdDSA")
            .count()
            == 2
    });
    verified(&one, &jwt(&one));
}

#[test]
fn a_leaked_key_is_out_and_refused_at_once_and_another_signs() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.serve();
    let token = jwt(&gatepost);
    let leaked = kid(&token);
    assert!(is_active(&gatepost, &token));
    let told = gatepost.run_well(&["key", "retire", &leaked], "");
    gatepost.settle();
    assert!(!published(&gatepost).contains(&leaked) && !is_active(&gatepost, &token));
    let next = jwt(&gatepost);
    assert!(kid(&next) != leaked, "{told}");
    told.assert_says(&format!("{} signs from now on", kid(&next)));
    verified(&gatepost, &next);
    assert!(
        keys(&gatepost)
            .iter()
            .all(|key| key["kid"] != leaked.as_str())
    );

    // An announced one takes over at once.
    gatepost.run_well(&["key", "rotate", "--algorithm", "RS256"], "");
    let announced = keys(&gatepost)
        .into_iter()
        .find(|key| key["state"] == "announced")
        .unwrap();
    gatepost.run_well(&["key", "retire", &kid(&next)], "");
    gatepost.settle();
    assert_eq!(kid(&jwt(&gatepost)), announced["kid"].as_str().unwrap());
    let near = damaged(&leaked);
    for typed in [near.as_str(), leaked.as_str(), ""] {
        let refused = gatepost.run(&["key", "retire", typed], "");
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    }
}

/// A key of OpenSSL's.
fn openssl(line: &str) -> String {
    let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn imported_keys_are_announced_or_sign_at_once_and_weak_ones_are_refused() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.serve();
    let rsa = openssl("openssl genrsa -traditional 2048");
    let imported = gatepost.run_well(&["key", "import", "-", "--now"], &rsa);
    gatepost.settle();
    let token = jwt(&gatepost);
    assert!(imported.contains(&kid(&token)), "{imported}");
    verified(&gatepost, &token);
    assert_eq!(states(&gatepost, "RS256"), ["published", "signing"]);
    let again = gatepost.run(&["key", "import", "-"], &rsa);
    assert!(
        again.status.code() == Some(1)
            && String::from_utf8_lossy(&again.stderr).contains("is there already")
    );

    for (line, algorithm) in [
        ("openssl ecparam -name prime256v1 -genkey", "ES256"),
        ("openssl genpkey -algorithm ED25519", "EdDSA"),
    ] {
        let file = gatepost.private_file(&format!("{algorithm}.pem"), &openssl(line));
        gatepost.run_well(&["key", "import", file.to_str().unwrap()], "");
        assert_eq!(states(&gatepost, algorithm), ["signing", "announced"]);
    }
    gatepost.settle();
    assert_eq!(published(&gatepost).len(), 6);

    let before = keys(&gatepost);
    for (line, rule) in [
        ("openssl genrsa 1024", "this one has 1024"),
        ("openssl genrsa -3 2048", "must be 65537"),
        (
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384",
            "P-256",
        ),
        (
            "openssl genpkey -algorithm ED25519 -aes128 -pass pass:x",
            "is encrypted",
        ),
        (
            "openssl genrsa 2048 | openssl rsa -pubout 2>/dev/null",
            "that is a public key",
        ),
        ("echo", "one private key"),
        ("head -c 200000 /dev/zero | base64", "one private key"),
    ] {
        let refused = gatepost.run(&["key", "import", "-"], &openssl(line));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1), "{line}: {said}");
        assert!(said.contains(rule), "{line}: {said}");
    }
    let open = gatepost.private_file("open.pem", &openssl("openssl genpkey -algorithm ED25519"));
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for (file, rule) in [
        (open.to_str().unwrap(), "lets others at it"),
        ("/nonexistent.pem", "cannot be read"),
    ] {
        let refused = gatepost.run(&["key", "import", file], "");
        assert!(
            refused.status.code() == Some(1)
                && String::from_utf8_lossy(&refused.stderr).contains(rule),
            "{refused:?}"
        );
    }
    assert_eq!(keys(&gatepost), before);
}

#[test]
fn an_imported_key_keeps_the_name_that_it_has_elsewhere() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.serve();
    let rsa = openssl("openssl genrsa -traditional 2048");
    for odd in ["", "caf\u{e9}", "two\nlines", &"x".repeat(201)] {
        let refused = gatepost.run(&["key", "import", "-", "--kid", odd], &rsa);
        assert!(refused.status.code() == Some(2), "{refused:?}");
    }
    // IdentityServer's own form, and what must be escaped in a header.
    let name = "A0B1\"RS 256\\-x";
    gatepost.run_well(&["key", "import", "-", "--kid", name], &rsa);
    gatepost.settle();
    assert!(
        published(&gatepost).contains(&String::from(name)),
        "{:?}",
        published(&gatepost)
    );
    for (kid, rsa) in [
        ("other", rsa.clone()),
        (name, openssl("openssl genrsa 2048")),
    ] {
        let again = gatepost.run(&["key", "import", "-", "--kid", kid], &rsa);
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.code() == Some(1), "{said}");
        said.assert_says("is there already");
    }
    // What somebody else signed with it verifies by the key set, and ours names it, too.
    gatepost.run_well(&["key", "rotate", "--algorithm", "RS256", "--now"], "");
    gatepost.settle();
    let token = jwt(&gatepost);
    assert_eq!(kid(&token), name);
    verified(&gatepost, &token);
    let elsewhere = gatepost.private_file("old.pem", &rsa);
    let old = gatepost.private_file("old.txt", &token[..token.rfind('.').unwrap()]);
    let line = format!(
        "openssl dgst -sha256 -sign {} -binary {} | base64 -w0",
        elsewhere.display(),
        old.display()
    );
    let signature = openssl(&line)
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    assert_eq!(token.rsplit('.').next().unwrap(), signature);
}

fn line(byte: u8) -> String {
    format!("{}\n", STANDARD.encode([byte; 32]))
}

/// The shared document, with a secret at a resource and one at an identity provider.
fn full_document() -> Value {
    let mut document = document();
    document["resources"][0]["secrets"] = json!([{"value": "a-resource-secret"}]);
    document["identity_providers"] = json!([{"name": "corp", "issuer": "https://login.example", "client_id": "x", "client_secret": "an-upstream-secret"}]);
    document
}

fn sealed(gatepost: &Gatepost) -> Vec<Vec<u8>> {
    let query = "SELECT wrapped_private FROM signing_keys WHERE wrapped_private IS NOT NULL
                 UNION ALL SELECT sealed_digest FROM client_secrets UNION ALL SELECT sealed_digest FROM resource_secrets
                 UNION ALL SELECT sealed_secret FROM catalogue_entries WHERE sealed_secret IS NOT NULL ORDER BY 1";
    gatepost
        .database
        .client()
        .query(query, &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect()
}

#[test]
fn a_new_first_line_seals_everything_anew_and_then_the_old_line_can_go() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&full_document());
    gatepost.serve();
    let (token, before) = (jwt(&gatepost), sealed(&gatepost));
    let both = gatepost.private_file("both", &format!("{}{}", line(7), line(42)));
    gatepost.set("GATEPOST_SECRET_FILE", both.to_str().unwrap());
    assert_eq!(
        gatepost.run_well(&["secret", "rotate"], ""),
        "8 sealed anew under the first line, 0 were already\n"
    );
    let after = sealed(&gatepost);
    assert!(after.len() == 8 && after.iter().all(|sealed| !before.contains(sealed)));
    assert_eq!(
        gatepost.run_well(&["secret", "rotate"], ""),
        "0 sealed anew under the first line, 8 were already\n"
    );
    assert_eq!(sealed(&gatepost), after);

    gatepost.stop();
    gatepost.serve();
    // Signed under the old line, kept under the new one.
    assert!(is_active(&gatepost, &token));
    let alone = gatepost.private_file("alone", &line(7));
    gatepost.set("GATEPOST_SECRET_FILE", alone.to_str().unwrap());
    gatepost.stop();
    gatepost.serve();
    assert!(is_active(&gatepost, &token));
    assert_eq!(kid(&jwt(&gatepost)), kid(&token));
    // The document still is what is registered: secrets are compared by what is sealed.
    let planned = gatepost.run(&["plan", "-"], &full_document().to_string());
    assert_eq!(planned.status.code(), Some(0), "{planned:?}");

    // What opens under no line is named, and nothing is done.
    let foreign = gatepost.private_file("foreign", &line(9));
    gatepost.set("GATEPOST_SECRET_FILE", foreign.to_str().unwrap());
    let refused = gatepost.run(&["secret", "rotate"], "");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    for name in [
        "a secret of client conf1",
        "a secret of resource https://orders.example",
        "identity provider corp",
        "nothing was changed",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert_eq!(sealed(&gatepost), after);
}

/// The sealed secret of the app of whoever is called so.
fn app_of(gatepost: &Gatepost, username: &str) -> Vec<u8> {
    let query = "SELECT a.secret FROM authenticators a JOIN users USING (sub)
                 WHERE a.kind = 'totp' AND username = $1";
    let row = gatepost.database.client().query_one(query, &[&username]);
    row.unwrap().get(0)
}

const REPLACE_APP: &str = "
    UPDATE authenticators a SET secret = $1 FROM users u
    WHERE u.sub = a.sub AND a.kind = 'totp' AND u.username = $2";

#[test]
fn a_new_app_stays_and_nobody_waits_while_the_secret_is_rotated() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.serve();
    add_app(&mut signed_in(&gatepost), 0);
    // More factors than are sealed anew at once.
    gatepost.database.run(
        "INSERT INTO users (sub, username, username_key)
         SELECT name, name, name FROM generate_series(1, 150) n, concat('person-', lpad(n::text, 3, '0')) name;
         INSERT INTO authenticators (sub, kind, id, secret, last_step)
         SELECT u.sub, 'totp', '', a.secret, 0 FROM users u, authenticators a
         WHERE u.username LIKE 'person-%' AND a.kind = 'totp'",
    );
    let (first, last) = ("person-001", "person-150");
    let before = app_of(&gatepost, last);
    let both = gatepost.private_file("both", &format!("{}{}", line(7), line(42)));
    gatepost.set("GATEPOST_SECRET_FILE", both.to_str().unwrap());
    gatepost.run_well(&["secret", "rotate"], "");
    let (new, first_sealed) = (app_of(&gatepost, last), app_of(&gatepost, first));
    assert!(new != before && first_sealed != before);
    // Once more, and meanwhile the last person replaces their app: by one that is sealed under the
    // new line, as processes do.
    let mut people = gatepost.database.client();
    for person in [first, last] {
        assert_eq!(people.execute(REPLACE_APP, &[&before, &person]).unwrap(), 1);
    }
    thread::scope(|scope| {
        let mut client = gatepost.database.client();
        let mut replacing = client.transaction().unwrap();
        replacing.execute(REPLACE_APP, &[&new, &last]).unwrap();
        let rotated = scope.spawn(|| gatepost.run_well(&["secret", "rotate"], ""));
        let waits = "pg_stat_activity WHERE wait_event_type = 'Lock'
                     AND query LIKE '%UPDATE authenticators%SET secret%'";
        await_that("the command waits", SOON, || {
            gatepost.database.count(waits) > 0
        });
        replacing.commit().unwrap();
        rotated.join().unwrap();
    });
    assert_eq!(app_of(&gatepost, last), new, "the old app is back");
    assert_ne!(app_of(&gatepost, first), before);
}

#[test]
fn factors_are_sealed_anew_and_free_again_before_the_command_is_done() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.serve();
    add_app(&mut signed_in(&gatepost), 0);
    let before = app_of(&gatepost, "alice");
    let both = gatepost.private_file("both", &format!("{}{}", line(7), line(42)));
    gatepost.set("GATEPOST_SECRET_FILE", both.to_str().unwrap());
    thread::scope(|scope| {
        // The command waits here for what comes after the factors.
        let mut client = gatepost.database.client();
        let mut holding = client.transaction().unwrap();
        let held = "SELECT FROM signing_keys FOR UPDATE";
        assert!(!holding.query(held, &[]).unwrap().is_empty());
        let rotated = scope.spawn(|| gatepost.run_well(&["secret", "rotate"], ""));
        await_that("factors are sealed anew", SOON, || {
            app_of(&gatepost, "alice") != before
        });
        gatepost.database.run(
            "SET lock_timeout = '100ms'; UPDATE authenticators SET last_step = last_step + 1 WHERE kind = 'totp'",
        );
        holding.rollback().unwrap();
        rotated.join().unwrap();
    });
    assert!(
        gatepost
            .run_line("secret rotate")
            .starts_with("0 sealed anew")
    );
}

#[test]
fn with_a_lost_master_secret_reset_drops_what_is_lost_and_says_so() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&full_document());
    gatepost.serve();
    let token = jwt(&gatepost);
    gatepost.stop();
    gatepost
        .run_line("key reset")
        .assert_says("nothing to reset");
    let new = gatepost.private_file("new", &line(9));
    gatepost.set("GATEPOST_SECRET_FILE", new.to_str().unwrap());
    for command in [
        &["key", "rotate"][..],
        &["client", "secret", "conf1"],
        &["plan", "-"],
    ] {
        let refused = gatepost.run(command, "{}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(78), "{command:?}: {said}");
        assert!(said.contains("`gatepost key reset`"), "{command:?}: {said}");
    }
    let told = gatepost.run_well(&["key", "reset"], "");
    for part in [
        "dropped signing key",
        "dropped a secret of client conf1: `gatepost client secret conf1` makes another",
        "dropped a secret of resource https://orders.example",
        "dropped the client_secret of identity provider corp",
        "made RS256 key",
        "Also lost: every authorization code",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(
        ALGORITHMS.map(|algorithm| states(&gatepost, algorithm)),
        ALGORITHMS.map(|_| vec!["published", "signing"])
    );
    gatepost.serve();
    let secret = gatepost.run_well(&["client", "secret", "conf1"], "");
    gatepost.settle();
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "orders.read"),
    ];
    let answer = gatepost.post(
        "/connect/token",
        &[("Authorization", &basic("conf1", secret.trim()))],
        &form,
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    gatepost.token("conf1", &form).assert_status(401);
    verified(&gatepost, &token);
    gatepost
        .run_line("key reset")
        .assert_says("nothing to reset");
}

#[test]
fn a_server_that_cannot_open_the_keys_of_a_reset_says_so_and_not_that_the_database_is_away() {
    let admin = free_address();
    let mut gatepost = Gatepost::prepare(&[("GATEPOST_ADMIN_LISTEN", &admin)]);
    gatepost.apply(&full_document());
    gatepost.serve();
    assert_eq!(gatepost.run_well(&["healthcheck"], ""), "ready\n");
    let new = gatepost.private_file("new", &line(9));
    gatepost.set("GATEPOST_SECRET_FILE", new.to_str().unwrap());
    gatepost.run_well(&["key", "reset"], "");
    let said = "degraded: a signing key does not open under the master secret that this process read when it started: \
                restart it once its file has the right one\n";
    let deadline = Instant::now() + SOON;
    while !ask_alone(&admin, "GET /readyz").1.starts_with("degraded") {
        assert!(Instant::now() < deadline, "{}", gatepost.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ask_alone(&admin, "GET /readyz").1, said);
    assert_eq!(gatepost.run_well(&["healthcheck"], ""), said);
    assert!(
        ask_alone(&admin, "GET /metrics")
            .1
            .contains("\ngatepost_degraded 1\n")
    );
    gatepost.stop();
    gatepost.serve();
    assert_eq!(gatepost.run_well(&["healthcheck"], ""), "ready\n");
}

#[test]
fn secrets_under_another_master_secret_do_not_count_and_are_named_while_everything_else_is_served()
{
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&full_document());
    let mut client = gatepost.database.client();
    client
        .batch_execute("UPDATE client_secrets SET sealed_digest = 'x' WHERE client_id = 'conf1'")
        .unwrap();
    client
        .batch_execute("UPDATE resource_secrets SET sealed_digest = 'x'")
        .unwrap();
    gatepost.serve();
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "orders.read"),
    ];
    gatepost.token("conf1", &form).assert_status(401);
    gatepost.token("service", &form).assert_status(200);
    for name in [
        "client conf1: 1 of its secrets",
        "resource https://orders.example: 1 of its secrets",
    ] {
        assert!(gatepost.log().contains(name), "{name}");
    }
    let tested = gatepost.run(&["client", "test", "conf1"], "");
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.code() == Some(1), "{said}");
    said.assert_says("1 of its secrets do not open");
    gatepost.run_well(&["client", "secret", "conf1", "--replace"], "");
    gatepost
        .run_line("client test conf1")
        .assert_says("secrets that are good: 1");
}

#[test]
fn a_database_moves_to_another_issuer_with_all_that_is_sealed() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&full_document());
    gatepost.serve();
    let token = jwt(&gatepost);
    gatepost.stop();
    let (old, new) = (
        gatepost.base_url.clone(),
        format!("{}/id", gatepost.base_url),
    );
    gatepost.set("GATEPOST_BASE_URL", &new);
    let refused = gatepost.run(&["migrate"], "");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(78), "{said}");
    said.assert_says("--rename-issuer");
    let done = gatepost.run_well(&["migrate", "--rename-issuer"], "");
    done.assert_says(&format!(
        "renamed {old} to {new}; every code and token that was out is over"
    ));
    gatepost
        .run_line("migrate --rename-issuer")
        .assert_says("is its issuer already");
    gatepost.base_url = new.clone();
    gatepost.serve();
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "orders.read"),
    ];
    let answer = gatepost.post_as("conf1", "/id/connect/token", &form);
    let fresh = answer.json()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(decode_jwt(&fresh).1["iss"].as_str(), Some(new.as_str()));
    assert_eq!(kid(&fresh), kid(&token));
    let introspected = gatepost.post_as("conf1", "/id/connect/introspect", &[("token", &token)]);
    assert_eq!(introspected.json(), json!({"active": false}));
    assert_eq!(
        gatepost
            .run(&["plan", "-"], &full_document().to_string())
            .status
            .code(),
        Some(0)
    );
}
