//! What the modules of the OpenID Foundation's plan `fapi2-security-profile-final-test-plan` do,
//! one test each, under the module's name without `fapi2-security-profile-final-`. The variant is
//! `plain_fapi`, `private_key_jwt`, `dpop`, `openid_connect`, `unsigned`, `plain_response`; what
//! `fapi_client_credentials_grant` leaves of it stands in `client_credentials`. They were written
//! from the modules, by us, and stand for the suite between its runs. `docs/evidence/conformance.md`
//! lists them.

mod client_and_code;
mod client_credentials;
mod first;
mod proofs;
mod pushed;
mod refused_proofs;
mod request;
mod scene;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The names of the tests in these files.
fn tests_in(files: &[&str]) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/fapi_modules");
    let mut names = Vec::new();
    for file in files {
        let source = fs::read_to_string(directory.join(file)).unwrap();
        let lines: Vec<&str> = source.lines().collect();
        for pair in lines.windows(2) {
            let name = pair[1]
                .strip_prefix("fn ")
                .and_then(|rest| rest.split('(').next());
            if let ("#[test]", Some(name)) = (pair[0], name) {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names
}

/// The rows of a table of the page: the module, and what comes of it.
fn rows_under(heading: &str) -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/evidence/conformance.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(heading).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let section = section.split("\n### ").next().unwrap();
    let cells = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.splitn(3, " |");
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let result = cells.next()?.trim().to_owned();
        Some((name, result))
    };
    section.lines().filter_map(cells).collect()
}

fn assert_listed(heading: &str, files: &[&str], passed: usize, review: usize) {
    let rows = rows_under(heading);
    let as_test = |name: &String| name.replace('-', "_").to_lowercase();
    let mut listed: Vec<String> = rows.keys().map(as_test).collect();
    listed.sort();
    assert_eq!(listed, tests_in(files), "{heading}");
    let count = |result: &str| rows.values().filter(|row| *row == result).count();
    let counts = [count("passed"), count("review"), count("skipped")];
    assert_eq!(counts, [passed, review, 1], "{heading}");
    assert_eq!(counts.iter().sum::<usize>(), rows.len(), "{heading}");
}

#[test]
fn each_module_that_the_page_lists_has_a_test_of_its_name() {
    let files = [
        "first.rs",
        "proofs.rs",
        "refused_proofs.rs",
        "request.rs",
        "client_and_code.rs",
        "pushed.rs",
    ];
    assert_listed("\n### The 56 modules", &files, 52, 3);
    assert_listed("\n### The 14 modules", &["client_credentials.rs"], 13, 0);
}
