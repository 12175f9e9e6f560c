//! Signing keys over their whole life, and the master secret changed, moved and lost, with a server
//! running beside.

use std::process::Command;
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{basic, damaged, decode_jwt, issued, signed_in, text};
use crate::support::gatepost::{Gatepost, document};
use crate::support::http::{ask_alone, free_address};
use crate::support::jwt::{published_keys, verified};
use crate::support::phone::add_app;
use crate::support::waiting::{SOON, await_that};

const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

fn keys(gatepost: &Gatepost) -> Vec<Value> {
    let keys = gatepost.shown("key list --json");
    keys.as_array().unwrap().clone()
}

/// How many keys have this value of that name.
fn having(gatepost: &Gatepost, name: &str, value: Value) -> usize {
    let keys = keys(gatepost).into_iter();
    keys.filter(|key| key[name] == value).count()
}

/// Of its keys, with spaces between them.
fn states(gatepost: &Gatepost, algorithm: &str) -> String {
    let mut keys = keys(gatepost);
    keys.retain(|key| key["alg"] == algorithm);
    let states = keys.iter().map(|key| text(key, "state"));
    states.collect::<Vec<_>>().join(" ")
}

const SERVICE: [(&str, &str); 2] = [
    ("grant_type", "client_credentials"),
    ("scope", "orders.read"),
];

/// An access token of conf1, as JWT.
fn jwt(gatepost: &Gatepost) -> String {
    let answer = gatepost.token("conf1", &SERVICE);
    text(&issued(&answer), "access_token").to_owned()
}

fn kid(jwt: &str) -> String {
    text(&decode_jwt(jwt).0, "kid").to_owned()
}

fn is_active(gatepost: &Gatepost, token: &str) -> bool {
    let answer = gatepost.post_as("conf1", "/connect/introspect", &[("token", token)]);
    answer.json()["active"] == true
}

fn published(gatepost: &Gatepost) -> Vec<String> {
    let keys = published_keys(gatepost).into_iter();
    keys.map(|key| text(&key, "kid").to_owned()).collect()
}

/// The command ends so, and says these words on standard error.
#[track_caller]
fn assert_refused(gatepost: &Gatepost, arguments: &[&str], input: &str, code: i32, words: &str) {
    let refused = gatepost.run(arguments, input);
    assert_eq!(refused.status.code(), Some(code), "{refused:?}");
    String::from_utf8_lossy(&refused.stderr).assert_says(words);
}

/// Makes these the lines of its master secret, for commands and for the next start.
fn set_lines(gatepost: &mut Gatepost, bytes: &[u8]) {
    let lines: String = bytes.iter().copied().map(line).collect();
    let file = gatepost.private_file(&format!("lines {bytes:?}"), &lines);
    gatepost.set("GATEPOST_SECRET_FILE", file.to_str().unwrap());
}

/// Moves every key's times so many days into the past.
fn travel(gatepost: &Gatepost, days: i32) {
    let moved = "announced_at activates_at retires_at unpublished_at forgotten_at"
        .split(' ')
        .map(|column| format!("{column} = {column} - make_interval(days => {days})"));
    let moved = moved.collect::<Vec<_>>().join(", ");
    gatepost.run_sql(&format!("UPDATE signing_keys SET {moved}"));
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
    for algorithm in ALGORITHMS {
        assert_eq!(states(&one, algorithm), "signing");
    }
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
        assert_eq!(states(&one, algorithm), "signing announced");
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
        having(&one, "has_private_part", json!(true)) == 3
    });
    for algorithm in ALGORITHMS {
        assert_eq!(states(&one, algorithm), "published signing");
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
    assert_eq!(states(&one, "ES256"), "retired signing");
    one.stop();
    travel(&one, 60);
    one.serve();
    await_that("nothing follows", SOON, || keys(&one).len() == 9);
    one.stop();
    travel(&one, 30);
    one.serve();
    await_that("nothing is forgotten", SOON, || {
        having(&one, "alg", json!("EdDSA")) == 2
    });
    verified(&one, &jwt(&one));
}

#[test]
fn a_leaked_key_is_out_and_refused_at_once_and_another_signs() {
    let gatepost = Gatepost::start();
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
    let all = keys(&gatepost);
    assert!(all.iter().all(|key| key["kid"] != leaked.as_str()));

    // An announced one takes over at once.
    gatepost.run_line("key rotate --algorithm RS256");
    let mut all = keys(&gatepost).into_iter();
    let announced = all.find(|key| key["state"] == "announced").unwrap();
    gatepost.run_well(&["key", "retire", &kid(&next)], "");
    gatepost.settle();
    assert_eq!(kid(&jwt(&gatepost)), announced["kid"].as_str().unwrap());
    for typed in [damaged(&leaked).as_str(), leaked.as_str(), ""] {
        assert_refused(&gatepost, &["key", "retire", typed], "", 1, "");
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
    let gatepost = Gatepost::start();
    let import = ["key", "import", "-"];
    let rsa = openssl("openssl genrsa -traditional 2048");
    let imported = gatepost.run_well(&["key", "import", "-", "--now"], &rsa);
    gatepost.settle();
    let token = jwt(&gatepost);
    imported.assert_says(&kid(&token));
    verified(&gatepost, &token);
    assert_eq!(states(&gatepost, "RS256"), "published signing");
    assert_refused(&gatepost, &import, &rsa, 1, "is there already");

    for (line, algorithm) in [
        ("openssl ecparam -name prime256v1 -genkey", "ES256"),
        ("openssl genpkey -algorithm ED25519", "EdDSA"),
    ] {
        let file = gatepost.private_file(&format!("{algorithm}.pem"), &openssl(line));
        gatepost.run_well(&["key", "import", file.to_str().unwrap()], "");
        assert_eq!(states(&gatepost, algorithm), "signing announced");
    }
    gatepost.settle();
    assert_eq!(published(&gatepost).len(), 6);

    let before = keys(&gatepost);
    for (line, rule) in [
        ("genrsa 1024", "this one has 1024"),
        ("genrsa -3 2048", "must be 65537"),
        (
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384",
            "P-256",
        ),
        (
            "genpkey -algorithm ED25519 -aes128 -pass pass:x",
            "is encrypted",
        ),
        ("genrsa 2048 | openssl rsa -pubout", "that is a public key"),
    ] {
        let key = openssl(&format!("openssl {line}"));
        assert_refused(&gatepost, &import, &key, 1, rule);
    }
    for nothing in ["echo", "head -c 200000 /dev/zero | base64"] {
        assert_refused(&gatepost, &import, &openssl(nothing), 1, "one private key");
    }
    let open = gatepost.private_file("open.pem", &openssl("openssl genpkey -algorithm ED25519"));
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for (file, rule) in [
        (open.to_str().unwrap(), "lets others at it"),
        ("/nonexistent.pem", "cannot be read"),
    ] {
        assert_refused(&gatepost, &["key", "import", file], "", 1, rule);
    }
    assert_eq!(keys(&gatepost), before);
}

#[test]
fn an_imported_key_keeps_the_name_that_it_has_elsewhere() {
    let gatepost = Gatepost::start();
    let rsa = openssl("openssl genrsa -traditional 2048");
    for odd in ["", "caf\u{e9}", "two\nlines", &"x".repeat(201)] {
        assert_refused(
            &gatepost,
            &["key", "import", "-", "--kid", odd],
            &rsa,
            2,
            "",
        );
    }
    // IdentityServer's own form, and what must be escaped in a header.
    let name = "A0B1\"RS 256\\-x";
    gatepost.run_well(&["key", "import", "-", "--kid", name], &rsa);
    gatepost.settle();
    assert!(published(&gatepost).iter().any(|kid| kid == name));
    let other = openssl("openssl genrsa 2048");
    for (kid, rsa) in [("other", &rsa), (name, &other)] {
        let import = ["key", "import", "-", "--kid", kid];
        assert_refused(&gatepost, &import, rsa, 1, "is there already");
    }
    // What somebody else signed with it verifies by the key set, and ours names it, too.
    gatepost.run_line("key rotate --algorithm RS256 --now");
    gatepost.settle();
    let token = jwt(&gatepost);
    assert_eq!(kid(&token), name);
    verified(&gatepost, &token);
    let elsewhere = gatepost.private_file("old.pem", &rsa);
    let old = gatepost.private_file("old.txt", &token[..token.rfind('.').unwrap()]);
    let (key, signed) = (elsewhere.display(), old.display());
    let sign = format!("openssl dgst -sha256 -sign {key} -binary {signed} | base64 -w0");
    let signature = openssl(&sign).replace('+', "-").replace('/', "_");
    assert_eq!(
        token.rsplit('.').next().unwrap(),
        signature.trim_end_matches('=')
    );
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
    let rows = gatepost.database.client().query(query, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_new_first_line_seals_everything_anew_and_then_the_old_line_can_go() {
    let mut gatepost = Gatepost::start_with(&full_document(), &[]);
    let (token, before) = (jwt(&gatepost), sealed(&gatepost));
    set_lines(&mut gatepost, &[7, 42]);
    let said = gatepost.run_line("secret rotate");
    assert_eq!(said, "8 sealed anew under the first line, 0 were already\n");
    let after = sealed(&gatepost);
    assert!(after.len() == 8 && after.iter().all(|sealed| !before.contains(sealed)));
    let said = gatepost.run_line("secret rotate");
    assert_eq!(said, "0 sealed anew under the first line, 8 were already\n");
    assert_eq!(sealed(&gatepost), after);

    gatepost.stop();
    gatepost.serve();
    // Signed under the old line, kept under the new one.
    assert!(is_active(&gatepost, &token));
    set_lines(&mut gatepost, &[7]);
    gatepost.stop();
    gatepost.serve();
    assert!(is_active(&gatepost, &token));
    assert_eq!(kid(&jwt(&gatepost)), kid(&token));
    // The document still is what is registered: secrets are compared by what is sealed.
    gatepost.run_well(&["plan", "-"], &full_document().to_string());

    // What opens under no line is named, and nothing is done.
    set_lines(&mut gatepost, &[9]);
    for name in [
        "a secret of client conf1",
        "a secret of resource https://orders.example",
        "identity provider corp",
        "nothing was changed",
    ] {
        assert_refused(&gatepost, &["secret", "rotate"], "", 1, name);
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
    let mut gatepost = Gatepost::start();
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
    set_lines(&mut gatepost, &[7, 42]);
    gatepost.run_line("secret rotate");
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
    let mut gatepost = Gatepost::start();
    add_app(&mut signed_in(&gatepost), 0);
    let before = app_of(&gatepost, "alice");
    set_lines(&mut gatepost, &[7, 42]);
    thread::scope(|scope| {
        // The command waits here for what comes after the factors.
        let mut client = gatepost.database.client();
        let mut holding = client.transaction().unwrap();
        let held = "SELECT FROM signing_keys FOR UPDATE";
        assert!(!holding.query(held, &[]).unwrap().is_empty());
        let rotated = scope.spawn(|| gatepost.run_well(&["secret", "rotate"], ""));
        let is_new = || app_of(&gatepost, "alice") != before;
        await_that("factors are sealed anew", SOON, is_new);
        gatepost.database.run(
            "SET LOCAL lock_timeout = '100ms'; UPDATE authenticators SET last_step = last_step + 1 WHERE kind = 'totp'",
        );
        holding.rollback().unwrap();
        rotated.join().unwrap();
    });
    let again = gatepost.run_line("secret rotate");
    assert!(again.starts_with("0 sealed anew"), "{again}");
}

#[test]
fn with_a_lost_master_secret_reset_drops_what_is_lost_and_says_so() {
    let mut gatepost = Gatepost::start_with(&full_document(), &[]);
    let reset_nothing = |gatepost: &Gatepost| {
        let said = gatepost.run_line("key reset");
        said.assert_says("nothing to reset");
    };
    let token = jwt(&gatepost);
    gatepost.stop();
    reset_nothing(&gatepost);
    set_lines(&mut gatepost, &[9]);
    for command in "key rotate/client secret conf1/plan -".split('/') {
        let command = Vec::from_iter(command.split(' '));
        assert_refused(&gatepost, &command, "{}", 78, "`gatepost key reset`");
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
        told.assert_says(part);
    }
    for algorithm in ALGORITHMS {
        assert_eq!(states(&gatepost, algorithm), "published signing");
    }
    gatepost.serve();
    let secret = gatepost.run_well(&["client", "secret", "conf1"], "");
    gatepost.settle();
    let authorization = basic("conf1", secret.trim());
    let headers = [("Authorization", &*authorization)];
    let answer = gatepost.post("/connect/token", &headers, &SERVICE);
    answer.assert_status(200);
    gatepost.token("conf1", &SERVICE).assert_status(401);
    verified(&gatepost, &token);
    reset_nothing(&gatepost);
}

#[test]
fn a_server_that_cannot_open_the_keys_of_a_reset_says_so_and_not_that_the_database_is_away() {
    let admin = free_address();
    let settings = [("GATEPOST_ADMIN_LISTEN", &*admin)];
    let mut gatepost = Gatepost::start_with(&full_document(), &settings);
    assert_eq!(gatepost.run_line("healthcheck"), "ready\n");
    set_lines(&mut gatepost, &[9]);
    gatepost.run_line("key reset");
    let said = "degraded: a signing key does not open under the master secret that this process read when it started: \
                restart it once its file has the right one\n";
    let ready = || ask_alone(&admin, "GET /readyz").1;
    await_that("it is degraded", SOON, || ready().starts_with("degraded"));
    assert_eq!(ready(), said);
    assert_eq!(gatepost.run_well(&["healthcheck"], ""), said);
    let (_, metrics) = ask_alone(&admin, "GET /metrics");
    metrics.assert_says("\ngatepost_degraded 1\n");
    gatepost.stop();
    gatepost.serve();
    assert_eq!(gatepost.run_well(&["healthcheck"], ""), "ready\n");
}

#[test]
fn secrets_under_another_master_secret_do_not_count_and_are_named_while_everything_else_is_served()
{
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&full_document());
    gatepost.run_sql("UPDATE client_secrets SET sealed_digest = 'x' WHERE client_id = 'conf1'");
    gatepost.run_sql("UPDATE resource_secrets SET sealed_digest = 'x'");
    gatepost.serve();
    gatepost.token("conf1", &SERVICE).assert_status(401);
    gatepost.token("service", &SERVICE).assert_status(200);
    let log = gatepost.log();
    log.assert_says("client conf1: 1 of its secrets");
    log.assert_says("resource https://orders.example: 1 of its secrets");
    let test = ["client", "test", "conf1"];
    let tested = gatepost.run(&test, "");
    assert_eq!(tested.status.code(), Some(1), "{tested:?}");
    String::from_utf8_lossy(&tested.stdout).assert_says("1 of its secrets do not open");
    gatepost.run_well(&["client", "secret", "conf1", "--replace"], "");
    let tested = gatepost.run_line("client test conf1");
    tested.assert_says("secrets that are good: 1");
}

#[test]
fn a_database_moves_to_another_issuer_with_all_that_is_sealed() {
    let mut gatepost = Gatepost::start_with(&full_document(), &[]);
    let token = jwt(&gatepost);
    gatepost.stop();
    let old = gatepost.base_url.clone();
    let new = format!("{old}/id");
    gatepost.set("GATEPOST_BASE_URL", &new);
    assert_refused(&gatepost, &["migrate"], "", 78, "--rename-issuer");
    let done = gatepost.run_line("migrate --rename-issuer");
    let renamed = format!("renamed {old} to {new}; every code and token that was out is over");
    done.assert_says(&renamed);
    let again = gatepost.run_line("migrate --rename-issuer");
    again.assert_says("is its issuer already");
    gatepost.base_url = new.clone();
    gatepost.serve();
    let answer = gatepost.post_as("conf1", "/id/connect/token", &SERVICE);
    let fresh = text(&issued(&answer), "access_token").to_owned();
    assert_eq!(decode_jwt(&fresh).1["iss"].as_str(), Some(new.as_str()));
    assert_eq!(kid(&fresh), kid(&token));
    let introspected = gatepost.post_as("conf1", "/id/connect/introspect", &[("token", &token)]);
    assert_eq!(introspected.json(), json!({"active": false}));
    gatepost.run_well(&["plan", "-"], &full_document().to_string());
}
