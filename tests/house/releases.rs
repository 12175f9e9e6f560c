//! What says a version or a commit says the same one everywhere.

use crate::read;

/// Pages and examples that name the files of the present version. `docs/operate/upgrading.md` is
/// none of them: it names the version before, on purpose.
const NAMES_THE_VERSION: &[&str] = &[
    "README.md",
    "deploy/compose.yaml",
    "deploy/demo.yaml",
    "deploy/kubernetes.yaml",
    "docs/operate/packages.md",
    "docs/operate/trying-it.md",
];

/// The versions that a text names files, images or tags of Gatepost by.
fn versions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ["gatepost_", "gatepost:"] {
        for rest in text.split(mark).skip(1) {
            let version: String = rest
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
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
    for file in NAMES_THE_VERSION {
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
