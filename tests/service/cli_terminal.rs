//! What commands ask at a terminal before they do what cannot be undone; times with units; lists
//! that are searched; what `client test` says about addresses.

use std::process::Command;

use serde_json::{Value, json};

use crate::cli_support::{Answer, Installation, answer};
use crate::support::claims::Says;
use crate::support::postgres::ISSUER;

/// Runs it at a terminal of its own, at which somebody types this; what it says is its standard
/// output.
fn at_a_terminal(installation: &Installation, arguments: &[&str], typed: &str) -> Answer {
    let command = installation.command(arguments);
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let line: Vec<String> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    answer(script, typed)
}

fn document() -> Value {
    let client = |id: &str| {
        json!({"client_id": id, "client_name": format!("The {id}"), "redirect_uris": ["https://shop.example/cb"],
               "scope": "openid", "secrets": [{"value": format!("{id}-secret-of-some-length")}]})
    };
    json!({"identity_scopes": [{"name": "openid"}], "clients": [client("shop"), client("Stock"), client("staff")]})
}

#[test]
fn what_cannot_be_undone_is_asked_about_at_a_terminal_and_nowhere_else() {
    let installation = Installation::migrated();
    installation.done(&["apply", "-"], &document().to_string());
    installation.done(&["user", "add", "alice", "--no-password"], "");
    let key = installation.list("key")[0]["kid"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut smaller = document();
    smaller["clients"].as_array_mut().unwrap().truncate(2);
    let smaller = installation.write_private("smaller.json", &smaller.to_string());
    let renamed = [
        "migrate",
        "--rename-issuer",
        "--base-url",
        "https://new.example",
    ];
    let before = installation.dump();
    let irreversible: [(&[&str], &str); 9] = [
        (
            &["apply", smaller.to_str().unwrap(), "--prune"],
            "client staff\r\nThis removes 1 for good",
        ),
        (
            &["client", "remove", "staff"],
            "This removes staff for good",
        ),
        (
            &["client", "secret", "shop", "--replace"],
            "This removes all other secrets of shop.",
        ),
        (
            &["user", "factors", "alice", "--remove-all"],
            "This removes second factors of alice",
        ),
        (&["user", "remove", "alice"], "This removes alice for good"),
        (&["key", "rotate", "--now"], "This erases the private part"),
        (&["key", "retire", &key], "out of the key set for good"),
        (&["revoke", "--everything"], "everybody signs in again"),
        (
            &renamed,
            "This renames https://id.example to https://new.example",
        ),
    ];
    for (arguments, question) in irreversible {
        let refused = at_a_terminal(&installation, arguments, "y\n");
        assert!(refused.stdout.contains(question), "{refused:?}");
        refused.stdout.assert_says("Type yes to go on:");
        assert!(
            refused.code == 1 && refused.stdout.contains("nothing was changed"),
            "{arguments:?}: {refused:?}"
        );
    }
    let without_chains = |dump: String| {
        dump.lines()
            .filter(|line| !line.contains("chain_opened"))
            .count()
    };
    // Nothing was changed.
    assert_eq!(without_chains(installation.dump()), without_chains(before));
    let agreed = at_a_terminal(
        &installation,
        &["apply", smaller.to_str().unwrap(), "--prune"],
        "yes\n",
    );
    assert!(agreed.code == 0, "{agreed:?}");
    agreed.stdout.assert_says("1 removed");
    // What removes nothing, and whoever says so beforehand, is not asked.
    for (arguments, told) in [
        (
            &["apply", smaller.to_str().unwrap(), "--prune"][..],
            "3 unchanged",
        ),
        (&["client", "remove", "Stock", "--yes"], "removed Stock"),
        (&["client", "secret", "shop"], "gps_"),
        (&["key", "rotate"], "RS256"),
    ] {
        let done = at_a_terminal(&installation, arguments, "");
        assert!(done.code == 0, "{done:?}");
        assert!(done.stdout.contains(told), "{done:?}");
        done.stdout.assert_says_not("Type yes");
    }
    for arguments in [&["key", "retire", &key][..], &renamed] {
        installation.done(arguments, "");
    }
}

#[test]
fn times_have_units_and_are_kept_as_numbers() {
    let installation = Installation::migrated();
    let mut given = document();
    for (key, text) in [
        ("access_token_lifetime", "15m"),
        ("refresh_token_lifetime", "30d"),
        ("id_token_lifetime", "90s"),
        ("consent_lifetime", "12h"),
        ("default_max_age", "10m"),
        ("device_interval", "7s"),
    ] {
        given["clients"][0][key] = json!(text);
    }
    installation.done(&["apply", "-"], &given.to_string());
    let exported: Value = serde_json::from_str(&installation.done(&["export"], "")).unwrap();
    let mut clients = exported["clients"].as_array().unwrap().iter();
    let shop = clients
        .find(|client| client["client_id"] == "shop")
        .unwrap();
    for (key, seconds) in [
        ("access_token_lifetime", 900),
        ("refresh_token_lifetime", 2_592_000),
        ("id_token_lifetime", 90),
        ("consent_lifetime", 43_200),
        ("default_max_age", 600),
        ("device_interval", 7),
    ] {
        assert_eq!(shop[key], json!(seconds), "{key}");
    }
    let again = installation.apply(&given);
    again.stdout.assert_says("0 added, 0 changed, 4 unchanged");
    for (key, text, rule) in [
        (
            "access_token_lifetime",
            json!("15 m"),
            "must be a whole number of seconds from 1 to 315360000, or as \"15m\"",
        ),
        (
            "authorization_code_lifetime",
            json!("11m"),
            "must be a whole number of seconds from 1 to 600",
        ),
        (
            "id_token_lifetime",
            json!(true),
            "expected a whole number of seconds, or a text as \"15m\"",
        ),
    ] {
        let mut wrong = document();
        wrong["clients"][0][key] = text;
        installation.apply(&wrong).assert_refused(1, rule);
    }
    for (text, code) in [
        ("12h", 0),
        ("43200", 0),
        ("12", 0),
        ("11y", 78),
        ("0s", 78),
        ("-5s", 78),
    ] {
        let told = installation.run(&["export", "--session-lifetime", text]);
        assert_eq!(told.code, code, "{text}: {told:?}");
        assert_eq!(
            told.stderr.contains("or a time as 90s, 15m, 12h or 30d"),
            code == 78,
            "{told:?}"
        );
    }
    // What counts no seconds has no unit.
    assert_eq!(
        installation.run(&["export", "--audit-days", "30d"]).code,
        78
    );
}

#[test]
fn lists_are_searched_and_cut() {
    let installation = Installation::migrated();
    installation.done(&["apply", "-"], &document().to_string());
    // No subject has a dot, so that none is found by chance.
    for name in ["alice.north", "albert.north", "bob"] {
        installation.done(
            &[
                "user",
                "add",
                name,
                "--no-password",
                "--claims",
                r#"{"email":"x@corp.example"}"#,
            ],
            "",
        );
    }
    let count = |arguments: &[&str]| {
        let json = installation.done(&[arguments, &["--json"]].concat(), "");
        serde_json::from_str::<Vec<Value>>(&json).unwrap().len()
    };
    for (arguments, found) in [
        (&["client", "list"][..], 3),
        (&["client", "list", "sto"], 1),
        (&["client", "list", "SHOP.EXAMPLE"], 3),
        (&["client", "list", "SHOP.EXAMPLE", "--limit", "2"], 2),
        (&["client", "list", "client_name"], 0),
        (&["user", "list", ".north"], 2),
        (&["user", "list", "corp.example", "--limit", "1"], 1),
        (&["user", "list", "--limit", "2"], 2),
        (&["session", "list", "alice"], 0),
        (&["key", "list", "es256"], 1),
        (&["idp", "list", "corp", "--limit", "9"], 0),
        (&["audit", "list", "user_added"], 3),
        (&["audit", "list", "ALBERT"], 1),
        (&["audit", "list", "user_added", "--limit", "2"], 2),
    ] {
        assert_eq!(count(arguments), found, "{arguments:?}");
    }
    let table = installation.done(&["client", "list", "sto"], "");
    assert!(table.starts_with("CLIENT_ID"), "{table}");
    table.assert_says("Stock");
    table.assert_says_not("staff");
    for arguments in [
        &["client", "list", "--limit", "0"][..],
        &["user", "list", "--limit", "x"],
        &["key", "list", "a", "b"],
    ] {
        assert_eq!(installation.run(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn client_test_tells_the_issuer_pkce_and_addresses_out_of_reach() {
    let installation = Installation::migrated();
    let mut given = document();
    let client = &mut given["clients"][0];
    client["require_pkce"] = json!(true);
    client["backchannel_logout_uri"] = json!("https://10.0.0.7/logout");
    client["jwks_uri"] = json!("https://nobody.invalid/jwks");
    client["logo_uri"] = json!("https://[::1]:8443/logo.png");
    installation.done(&["apply", "-"], &given.to_string());
    let tested = installation.done(&["client", "test", "shop"], "");
    for line in [
        format!("ok    the issuer to copy into its settings: {ISSUER}\n"),
        String::from("ok    this client must send PKCE: code_challenge, with S256\n"),
        String::from(
            "weak  backchannel_logout_uri: 10.0.0.7 is 10.0.0.7, which is private: no request goes there unless",
        ),
        String::from("weak  jwks_uri: no address is found here for nobody.invalid\n"),
        String::from("weak  logo_uri: ::1 is ::1, which is private"),
    ] {
        assert!(tested.contains(&line), "{line}: {tested}");
    }
    // Who reads the ID token alone is told what to register.
    let staff = installation.done(&["client", "test", "staff"], "");
    staff.assert_says("\"always_include_user_claims_in_id_token\": true");
    given["clients"][0]["scope"] = json!("openid email");
    given["clients"][0]["always_include_user_claims_in_id_token"] = json!(true);
    installation.done(&["apply", "-"], &given.to_string());
    let tested = installation.done(&["client", "test", "shop"], "");
    for place in [
        "in the ID token: sub, email, email_verified\n",
        "at UserInfo: sub, email, email_verified\n",
        "in the access token: sub\n",
    ] {
        let line = format!("ok    claims of a person {place}");
        assert!(tested.contains(&line), "{line}: {tested}");
    }
    assert!(!tested.contains("always_include"), "{tested}");
    let allowed = installation.line("client test shop --outbound-allow 10.0.0.0/8,::1");
    assert!(!allowed.contains("which is private"), "{allowed}");
    installation
        .line("client test staff")
        .assert_says_not("must send PKCE");
}
