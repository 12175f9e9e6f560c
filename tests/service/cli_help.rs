//! `gatepost help`: the reference in a terminal.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::gatepost::Gatepost;
use crate::support::http::{ask_alone, free_address};

/// Exit code and what was printed; help needs no settings.
fn help(words: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    let output = command
        .arg("help")
        .args(words)
        .env_clear()
        .output()
        .unwrap();
    let text =
        String::from_utf8(output.stdout).unwrap() + std::str::from_utf8(&output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn every_topic_prints_its_rows_and_fits_a_terminal() {
    let (code, text) = help(&[]);
    let topics: Vec<&str> = text
        .split("Topics:")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .collect();
    assert!(code == 0 && topics.len() > 15, "{text}");
    for topic in topics {
        let (code, text) = help(&[topic]);
        assert!(code == 0 && text.lines().count() > 4, "{topic}: {text}");
        // A word alone may be longer, as an address is.
        let wide = text
            .lines()
            .find(|line| line.chars().count() > 80 && line.split_whitespace().count() > 1);
        assert_eq!(wide, None, "{topic}");
        assert!(!text.contains("]("), "{topic} shows Markdown: {text}");
        assert!(!text.contains("<br>"), "{topic} shows Markdown: {text}");
    }
}

#[test]
fn whatever_has_a_row_is_found_by_its_name() {
    for (words, told) in [
        (
            &["GP1211"][..],
            "Send the code_verifier that belongs to the code_challenge.",
        ),
        (&["gp1211"], "GP1211"),
        (&["GATEPOST_LISTEN"], "default"),
        (&["redirect_uris"], "From `gatepost help client`"),
        (&["user"], "gatepost user add"),
        (&["user"], "password_hash"),
        (&["key", "rotate"], "--algorithm"),
        (&["/connect/token"], "/connect/token"),
        (&["refresh_token_replayed"], "From `gatepost help events`"),
        (&["gatepost_ready"], "/readyz"),
    ] {
        let (code, text) = help(words);
        assert!(code == 0 && text.contains(told), "{words:?}: {text}");
    }
    for (words, page) in [
        (&["csv"][..], "docs/operate/people.md\n    Many at once"),
        (&["unlock"], "docs/questions.md\n    Somebody is locked out"),
        (&["lockout"], "docs/operate/limits.md\n    Guessing"),
        (
            &["MFA"],
            "docs/operate/second-factors.md\n    Second factors",
        ),
        (&["subpath"], "docs/questions.md\n    Running below a path"),
        (&["picture"], "Can people change their name and picture?"),
        (&["forgotten", "password"], "    Forgotten passwords\n"),
        (&["mail"], "docs/operate/mail.md\n    Mail: forgotten"),
    ] {
        let (code, text) = help(words);
        let (_, pages) = text.split_once("Pages of the documentation:").unwrap();
        assert!(code == 0 && pages.contains(page), "{words:?}: {text}");
    }
    for (word, near) in [
        ("setings", "the nearest is \"settings\""),
        ("GP9999", "there is no help"),
        ("", "there is no help"),
    ] {
        let (code, text) = help(&[word]);
        assert!(code == 2 && text.contains(near), "{word}: {text}");
    }
}

#[test]
fn the_first_word_of_commands_alone_prints_them_as_a_table() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    let typed = command.arg("user").env_clear().output().unwrap();
    let text = String::from_utf8(typed.stdout).unwrap();
    assert!(typed.status.success() && typed.stderr.is_empty(), "{text}");
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  user "))
        .collect();
    assert!(rows.len() > 10, "{text}");
    assert!(
        rows[0].starts_with("  user add              Adds a user"),
        "{text}"
    );
}

#[test]
fn the_metrics_of_the_reference_are_those_that_are_served() {
    let address = free_address();
    let _gatepost = Gatepost::start_with(
        &crate::support::gatepost::document(),
        &[("GATEPOST_ADMIN_LISTEN", &address)],
    );
    let (_, text) = ask_alone(&address, "GET /metrics");
    let served = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let rows = include_str!("../../docs/reference/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let told = rows.filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        Some((name.split('{').next()?, rest.split(" |").next()?))
    });
    let (served, told): (BTreeMap<&str, &str>, BTreeMap<&str, &str>) =
        (served.collect(), told.collect());
    assert!(served.len() > 20);
    assert_eq!(told, served);
}
