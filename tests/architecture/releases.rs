//! What says a version or a commit says the same one everywhere.

use std::collections::BTreeSet;

use crate::{declared_dependencies, manifest, read};

/// Pages and examples that name the files of the present version. `docs/operate/upgrading.md` is
/// none of them: it names the version before, on purpose.
const NAMES_THE_VERSION: &str = "README.md deploy/compose.yaml deploy/demo.yaml deploy/helm/values.yaml deploy/kubernetes.yaml \
    docs/operate/packages.md docs/operate/trying-it.md";

/// The versions that a text names files, images or tags of Gatepost by.
fn versions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ["gatepost_", "gatepost:"] {
        for rest in text.split(mark).skip(1) {
            let is_of_version = |c: &char| c.is_ascii_digit() || *c == '.';
            let version: String = rest.chars().take_while(is_of_version).collect();
            let version = version.trim_end_matches('.');
            if version.split('.').count() == 3 {
                found.push(version.to_owned());
            }
        }
    }
    found
}

#[test]
fn one_version_is_named_everywhere() {
    let own = env!("CARGO_PKG_VERSION");
    for file in NAMES_THE_VERSION.split(' ') {
        let named = versions(&read(file));
        assert!(!named.is_empty(), "{file} names no version");
        for version in named {
            assert_eq!(version, own, "{file}");
        }
    }
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find(|line| line.starts_with("## "));
    let newest = newest.unwrap_or_default();
    assert!(newest.starts_with(&format!("## {own} - ")), "{newest}");
    assert!(read("docs/releasing.md").contains(&format!("`git tag -s v{own}`")));
}

/// Name and version of each crate in the first table of the page on crates.
fn looked_at(page: &str) -> BTreeSet<(String, String)> {
    let mut crates = BTreeSet::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", name, _, version, _, _, _, _, ""] = cells.as_slice()
            && let Some(name) = name.strip_prefix('`')
            && let Some(name) = name.strip_suffix('`')
        {
            crates.insert((name.to_owned(), (*version).to_owned()));
        }
    }
    crates
}

/// Name and version of each crate that is locked.
fn locked() -> BTreeSet<(String, String)> {
    let lock = read("Cargo.lock");
    let value = |package: &str, key: &str| {
        let mark = format!("\n{key} = \"");
        let rest = package.split(mark.as_str()).nth(1)?;
        Some(rest.split('"').next()?.to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|package| Some((value(package, "name")?, value(package, "version")?)))
        .collect()
}

#[test]
fn each_direct_crate_was_looked_at_in_the_version_that_is_built_in() {
    let looked_at = looked_at(&read("docs/evidence/crates.md"));
    let locked = locked();
    assert!(locked.len() > 100, "Cargo.lock was not understood");
    let stale: Vec<_> = looked_at.difference(&locked).collect();
    assert!(stale.is_empty(), "no such version any more: {stale:?}");
    let named: BTreeSet<String> = looked_at.into_iter().map(|(name, _)| name).collect();
    let mut missing = declared_dependencies(&manifest());
    // It is built into tests alone.
    missing.retain(|name| name != "proptest" && !named.contains(name));
    assert!(missing.is_empty(), "no row in crates.md: {missing:?}");
}

/// `make release` looks for these words, and calls what it made a trial.
#[test]
fn either_an_address_stands_in_the_security_policy_or_the_words_that_there_is_none() {
    let words = "There is no address yet";
    assert!(read("Makefile").contains(&format!("grep -q \"{words}\" SECURITY.md")));
    let policy = read("SECURITY.md");
    let (beginning, _) = policy.split_once("## Which versions get fixes").unwrap();
    let has_address = beginning.contains("mailto:") || beginning.contains("](https://");
    let is_told = has_address != beginning.contains(words);
    assert!(is_told, "an address, or the words that there is none");
}
