//! The rules of the architecture that no compiler checks: who may use whom, what the core must not touch,
//! how long things may be, and that every dependency is argued for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "a panic is how a test fails"
)]

#[path = "support/blocks.rs"]
mod blocks;
#[path = "architecture/layers.rs"]
mod layers;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/releases.rs"]
mod releases;
#[path = "architecture/source.rs"]
mod source;
#[path = "support/tables.rs"]
#[allow(dead_code, reason = "no test binary uses all of it")]
mod tables;
#[path = "architecture/tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gatepost::dispatch::route::{Audience, RoutePath};
use gatepost::dispatch::routes;
use gatepost::manage;
use gatepost::protocol::audit::audit_chain::EVENTS;
use gatepost::protocol::login::bound_session;
use gatepost::registration;
use source::{SourceFile, sources};
use tables::rows_of;

/// What decides and does nothing else.
const PURE: [&str; 4] = ["protocol/", "registration/", "import/", "manage/scim/"];

/// What it must not name. Value types such as `std::net::IpAddr` are fine.
const BANNED_IN_THE_CORE: [&str; 20] = [
    "tiny_http",
    "postgres",
    "r2d2",
    "maud",
    "ureq",
    "socket2",
    "rand",
    "log",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "SystemTime",
    "Instant::now",
    "std::fs",
    "std::env",
    "std::thread",
    "std::process",
    "std::os",
    "std::time::Instant",
];

/// Places where markup is passed on unescaped, with how often: each was looked at.
const PRE_ESCAPED: &[(&str, usize)] = &[];

/// `let (a, b) = (x, y);` hides two statements in one line; a parameter that is a tuple has no
/// name. These only fall.
const MOST_TUPLE_LETS: usize = 3;
const MOST_TUPLE_PARAMETERS: usize = 4;

/// Lines of more than 100 columns. Two are checks of the database, each a text that cannot be
/// broken. It only falls.
const MOST_LONG_LINES: usize = 2;

/// Names that stand for two public types or more: whoever searches for one finds the other. It only
/// falls.
const MOST_DOUBLED_TYPE_NAMES: usize = 10;

/// Tokens of what can be read in one go.
const LONGEST_FUNCTION: usize = 700;
/// Of ten functions, nine have no more tokens.
const MOST_TOKENS_OF_NINE_IN_TEN: usize = 230;
/// Closures on 1,000 lines: more of them hide which thing happens first.
const MOST_CLOSURES: usize = 40;
const LONGEST_FILE: usize = 4_000;

/// Files that are longer.
const LONG_FILES: &[&str] = &[];

/// Functions that are longer: file and name.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// Crates of other people in the binary, of all versions.
const CRATE_BUDGET: usize = 156;

/// Crates that are there in two versions, each with its reason.
const DOUBLED: &str = "
base64 | ureq and lettre are on 0.23; postgres-protocol, and we with it, on 0.22
const-oid | x509-cert, through tokio-postgres-rustls, is one generation behind rsa
der | x509-cert, through tokio-postgres-rustls, is one generation behind rsa
spki | x509-cert, through tokio-postgres-rustls, is one generation behind rsa
syn | at build time only: serde's macros are on 3, maud's and der's on 2
";

/// Which crates of ours each crate of ours uses, in the product. No other test is needed that
/// imports run downwards: a crate that is not named there cannot be imported.
const USES: &str = "
protocol |
registration | protocol
import | protocol registration
store | protocol
server | protocol store
registrar | protocol registration server store
manage | protocol registrar registration server store
tool | import protocol registrar registration server store
";

#[test]
fn each_crate_uses_those_below_it() {
    for [folder, used] in rows_of(USES) {
        let manifest = read(&format!("src/{folder}/Cargo.toml"));
        let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap();
        let ours = dependencies
            .lines()
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.strip_prefix("gatepost-"))
            .map(|line| line.split(['.', ' ']).next().unwrap());
        let ours: Vec<&str> = ours.collect();
        let expected: Vec<&str> = used.split_whitespace().collect();
        assert_eq!(ours, expected, "src/{folder}/Cargo.toml");
    }
}

#[test]
fn the_core_is_pure() {
    let is_pure = |file: &&SourceFile| PURE.iter().any(|part| file.path.starts_with(part));
    for file in sources().iter().filter(is_pure) {
        for banned in BANNED_IN_THE_CORE {
            assert!(!file.names(banned), "src/{} names {banned}", file.path);
        }
    }
}

#[test]
fn statements_stand_in_the_store_and_beside_those_who_alone_need_them() {
    let mut files = 0;
    for file in sources() {
        let path = &file.path;
        let is_home = path.starts_with("store/") || path.contains("/statements/");
        let runs_one = file.names("bind!") || file.names("Bound");
        assert!(is_home || !runs_one, "src/{path} runs one of its own");
        files += usize::from(is_home && file.names("bind!"));
    }
    assert!(files > 30, "{files}");
}

#[test]
fn gatepostd_starts_no_program_but_itself_and_gatepost_becomes_it() {
    let starting = sources()
        .iter()
        .filter(|file| modules::module_of(file).linked && file.product_names("Command::new"));
    let mut paths: Vec<&str> = starting.map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["server/supervisor/process.rs", "tool/serve.rs"]);
}

#[test]
fn nothing_is_unsafe_and_no_markup_goes_unescaped_unseen() {
    let mut unescaped = BTreeMap::new();
    for file in sources() {
        assert!(!file.names("unsafe"), "src/{} is unsafe", file.path);
        let count = file.count("PreEscaped(");
        if count > 0 {
            unescaped.insert(file.path.clone(), count);
        }
    }
    let expected = PRE_ESCAPED.iter();
    let expected = expected.map(|(path, count)| (String::from(*path), *count));
    assert_eq!(unescaped, expected.collect());
}

/// The files that the two programs link.
fn linked() -> impl Iterator<Item = &'static SourceFile> {
    let is_linked = |file: &&SourceFile| modules::module_of(file).linked;
    sources().iter().filter(is_linked)
}

/// The sum over them of what is counted in the tokens of each.
fn counted(count: fn(&[&str]) -> usize) -> usize {
    linked().map(|file| count(&file.tokens())).sum()
}

#[test]
fn functions_and_files_can_be_read_in_one_go() {
    let mut long_functions = BTreeSet::new();
    let mut long_files = BTreeSet::new();
    for file in linked() {
        let tokens = file.tokens();
        if tokens.len() > LONGEST_FILE {
            long_files.insert(file.path.as_str());
        }
        let functions = tokens::functions(&tokens).into_iter();
        let long = functions.filter(|(_, length)| *length > LONGEST_FUNCTION);
        long_functions.extend(long.map(|(name, _)| (file.path.as_str(), name)));
    }
    let may = LONG_FILES.iter().copied().collect();
    assert_eq!(long_files, may, "there are, and may be");
    let may = LONG_FUNCTIONS.iter().copied().collect();
    assert_eq!(long_functions, may, "there are, and may be");
}

#[test]
fn every_file_says_what_it_is_for_and_what_the_core_may_refuse_says_when() {
    let mut missing = Vec::new();
    for file in sources() {
        let text = read(&format!("src/{}", file.path));
        if !text.starts_with("//! ") {
            missing.push(format!("src/{} has no head comment", file.path));
        }
        let is_core = modules::module_of(file).core;
        for (at, start) in text.match_indices("\npub fn ").filter(|_| is_core) {
            let signature = text[at + start.len()..].split('{').next().unwrap();
            let before = text[..=at].rsplit("\n\n").next().unwrap();
            if signature.contains("-> Result<") && !before.starts_with("///") {
                missing.push(format!("src/{}: fn {signature}", file.path));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn nothing_grows_unseen() {
    let modules = modules::tokens_of_modules();
    let long_lines: usize = linked().map(SourceFile::long_lines).sum();
    let lines: usize = linked().map(|file| file.code_lines).sum();
    let closures = counted(tokens::closures) * 1_000 / lines;
    let parameters = counted(tokens::tuple_parameters);
    let nine_in_ten = tokens_of_nine_in_ten();
    let held = [
        ("tuple lets", counted(tokens::tuple_lets), MOST_TUPLE_LETS),
        ("tuple parameters", parameters, MOST_TUPLE_PARAMETERS),
        ("long lines", long_lines, MOST_LONG_LINES),
        (
            "tokens of nine functions in ten",
            nine_in_ten,
            MOST_TOKENS_OF_NINE_IN_TEN,
        ),
        ("closures on 1,000 lines", closures, MOST_CLOSURES),
    ];
    println!("{modules:#?}\n{held:#?}");
    let grown: Vec<_> = Vec::from_iter(held.iter().filter(|(_, there, most)| there > most));
    assert!(grown.is_empty(), "there are, and may be: {grown:?}");
}

fn tokens_of_nine_in_ten() -> usize {
    let mut lengths = Vec::new();
    for file in linked() {
        for (_, length) in tokens::functions(&file.tokens()) {
            lengths.push(length);
        }
    }
    lengths.sort_unstable();
    lengths[lengths.len() * 9 / 10]
}

#[test]
fn a_name_stands_for_one_type() {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in linked() {
        for name in tokens::public_types(&file.tokens()) {
            places.entry(name).or_default().push(&file.path);
        }
    }
    assert!(places.len() > 300, "the types were not found");
    places.retain(|_, files| files.len() > 1);
    let doubled = places.len();
    assert!(doubled <= MOST_DOUBLED_TYPE_NAMES, "{doubled}: {places:#?}");
}

#[test]
fn every_dependency_is_argued_for() {
    let declared = declared_dependencies(&manifest());
    let argued = argued_dependencies(&read("docs/evidence/crates.md"));
    let understood = declared.contains("tiny_http") && declared.contains("proptest");
    assert!(understood, "the manifest was not understood");
    let mut names: BTreeSet<String> = argued.keys().cloned().collect();
    // It is built into tests alone.
    names.insert(String::from("proptest"));
    let sides = "Cargo.toml on the left, the table of crates.md on the right";
    assert_eq!(declared, names, "{sides}");
    for (name, reason) in argued {
        assert!(reason.len() >= 20, "{name} has no reason but {reason:?}");
    }
}

/// What lies in a folder.
fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// `tests/e2e/connect.test.mjs` runs each of them.
#[test]
fn the_programs_of_the_documentation_are_those_that_run() {
    let pages = paths_in(Path::new("docs/connect")).into_iter();
    let pages: Vec<String> = pages
        .map(|page| fs::read_to_string(page).unwrap())
        .collect();
    let mut programs = Vec::new();
    for folder in paths_in(Path::new("tests/e2e/connect")) {
        programs.extend(paths_in(&folder));
    }
    let is_listing = |extension: &OsStr| ["mod", "sum", "lock"].iter().any(|one| extension == *one);
    programs.retain(|path| !path.extension().is_some_and(is_listing));
    assert!(programs.len() > 8, "{programs:?}");
    for program in programs {
        let text = format!("\n{}```\n", fs::read_to_string(&program).unwrap());
        let stands = pages.iter().any(|page| page.contains(&text));
        assert!(stands, "{} stands on no page as it is", program.display());
    }
}

#[test]
fn the_reference_is_what_the_binary_says() {
    let directory = std::env::temp_dir().join(format!("gatepost-reference-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let mut gatepost = Command::new(env!("CARGO_BIN_EXE_gatepost"));
    let made = gatepost.arg("reference").arg(&directory).status();
    assert!(made.unwrap().success());
    let page = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.file_name().unwrap().to_owned(), text)
    };
    let pages = |folder: &Path| BTreeMap::from_iter(paths_in(folder).into_iter().map(page));
    let (made, kept) = (pages(&directory), pages(Path::new("docs/reference")));
    fs::remove_dir_all(&directory).unwrap();
    let is_kept = made.len() == 8 && made == kept;
    assert!(is_kept, "run `gatepost reference docs/reference`");
}

#[test]
fn the_reference_explains_every_key_of_a_registration() {
    for (list, keys) in registration::document::keys() {
        assert!(!keys.is_empty(), "{list}");
        let told = explained("registration", list);
        assert_eq!(keys, told, "keys of {list}: taken, and in the reference");
    }
}

#[test]
fn the_reference_explains_every_audit_event_and_every_path() {
    let events: BTreeSet<String> = EVENTS.iter().map(|&event| event.to_owned()).collect();
    assert_eq!(events, explained("audit", ""));
    let told = explained("endpoints", "Endpoints");
    let exact = route_paths().filter_map(|path| match path {
        RoutePath::Exact("" | "/") => None,
        RoutePath::Exact(path) => Some(path),
        RoutePath::Below(_) | RoutePath::Between(..) | RoutePath::AllBetween(..) => None,
    });
    let paths: Vec<&str> = exact.collect();
    assert!(paths.len() > 15, "{paths:?}");
    let missing: Vec<_> = paths.iter().filter(|path| !told.contains(**path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn route_paths() -> impl Iterator<Item = RoutePath> {
    let tables = [routes::ROUTES, manage::ROUTES];
    tables.into_iter().flatten().map(|route| route.path)
}

/// An exact path may lie below another one, and goes before it.
#[test]
fn no_path_has_two_routes() {
    let mut exact = BTreeSet::new();
    let mut ranges: Vec<(&str, &str)> = Vec::new();
    for path in route_paths() {
        let range = match path {
            RoutePath::Exact(path) => {
                assert!(exact.insert(path), "{path} stands twice");
                continue;
            }
            RoutePath::Below(before) => (before, ""),
            RoutePath::Between(before, after) | RoutePath::AllBetween(before, after) => {
                (before, after)
            }
        };
        let overlaps = ranges.iter().find(|other| {
            let begins = range.0.starts_with(other.0) || other.0.starts_with(range.0);
            let ends = range.1.ends_with(other.1) || other.1.ends_with(range.1);
            begins && ends
        });
        assert_eq!(overlaps, None, "beside {range:?}");
        ranges.push(range);
    }
    assert!(exact.len() > 25 && ranges.len() > 5, "{exact:?} {ranges:?}");
}

/// Browsers refresh a bound session before requests below those paths alone. What lies elsewhere
/// reads no session, or leads on.
#[test]
fn every_page_that_reads_a_session_lies_where_browsers_refresh_it() {
    const ELSEWHERE: &str =
        "/ /.well-known/change-password /clients/ /connect/checksession /static/";
    let is_below = |path: &str| {
        let covers = |covering: &&str| {
            let rest = path.strip_prefix(*covering);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        bound_session::PATHS.iter().any(covers)
    };
    for route in [routes::ROUTES, manage::ROUTES].into_iter().flatten() {
        let (RoutePath::Exact(path)
        | RoutePath::Below(path)
        | RoutePath::Between(path, _)
        | RoutePath::AllBetween(path, _)) = route.path;
        if matches!(route.audience, Audience::Person) {
            let is_elsewhere = path.is_empty() || ELSEWHERE.split(' ').any(|one| one == path);
            assert!(is_below(path) || is_elsewhere, "{path}");
        }
    }
}

/// Every page, from the root, with its text.
fn pages_below(folder: &str, pages: &mut Vec<(String, String)>) {
    for path in paths_in(Path::new(folder)) {
        let name = path.to_str().unwrap();
        if path.is_dir() {
            pages_below(name, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push((name.to_owned(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The anchors of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let headings = lines.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let kept = |heading: String| heading.chars().filter(kept).collect::<String>();
    headings
        .map(|heading| kept(heading).replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let names = ["README.md", "CHANGELOG.md", "SECURITY.md"].map(String::from);
    let mut pages = Vec::from(names.map(|name| (name.clone(), read(&name))));
    pages_below("docs", &mut pages);
    assert!(pages.len() > 30, "{}", pages.len());
    let mut dead = Vec::new();
    for (page, text) in &pages {
        let links = text.split("](").skip(1);
        let links = links.map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => PathBuf::from(page),
                _ => Path::new(page).parent().unwrap().join(path),
            };
            let there = fs::read_to_string(&target)
                .map(|text| anchor.is_empty() || anchors(&text).contains(anchor));
            if !there.unwrap_or(anchor.is_empty() && target.exists()) {
                dead.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Whether a file has a test of this name: a function, or the words of a test in the browser.
fn has_test(file: &str, name: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let function = format!("fn {name}(");
    let before = text.split_once(&function).map(|(before, _)| before);
    before.is_some_and(|before| before.trim_end().ends_with("#[test]"))
        || text.contains(&format!("test(\"{name}\""))
}

/// The tests that a cell of a table names, as code, and that are not there: behind each file its
/// tests, with commas between them.
fn missing_tests(cell: &str) -> Vec<String> {
    let parts: Vec<&str> = cell.split('`').collect();
    let code = parts.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    let code: Vec<[&str; 2]> = code.collect();
    let mut missing = Vec::new();
    let mut file = "";
    let nothing = [["", ""]];
    for ([before, name], next) in code.iter().zip(code.iter().skip(1).chain(&nothing)) {
        if name.starts_with("tests/") || name.starts_with("src/") {
            file = name;
            if next[0] != " " {
                missing.push(format!("{file} without a test"));
            }
        } else if file.is_empty() || ![" ", ", "].contains(before) {
            file = "";
        } else if !has_test(file, name) {
            missing.push(format!("no such test: {file} {name}"));
        }
    }
    missing
}

#[test]
fn what_broke_others_is_told_with_number_address_and_tests_that_are_there() {
    let page = read("docs/evidence/what-broke-others.md");
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| number |");
    let rows: Vec<&str> = page.lines().filter(is_row).collect();
    assert!(rows.len() > 200, "{}", rows.len());
    let has_tests = |row: &&&str| row.contains("`tests/") || row.contains("`src/");
    let with_tests = rows.iter().filter(has_tests).count();
    let without = rows.len() - with_tests;
    let told = [with_tests, without].map(|count| format!("({count} rows)"));
    assert!(told.iter().all(|told| page.contains(told)), "{told:?}");
    let mut numbers = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [number, product, fault, here] = cells.as_slice() else {
            wrong.push(format!("not four cells: {row}"));
            continue;
        };
        let Some((names, address)) = number.trim_start_matches('[').split_once("](") else {
            wrong.push(format!("no link: {row}"));
            continue;
        };
        if !address.starts_with("https://") || product.is_empty() || fault.len() < 20 {
            wrong.push(format!("no address, product or fault: {row}"));
        }
        for name in names.split(", ") {
            if !(name.starts_with("CVE-") || name.starts_with("GHSA-")) || !numbers.insert(name) {
                wrong.push(format!("no number, or one that stands twice: {name}"));
            }
        }
        // A test is its file and its name, both as code. Without one there is a reason in words.
        if !here.contains('`') && here.len() < 12 {
            wrong.push(format!("neither a test nor a reason: {row}"));
        }
        wrong.extend(missing_tests(here));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_threat_has_a_rule_and_tests_that_are_there_or_the_reason_why_there_is_none() {
    let page = read("docs/evidence/threats.md");
    let lines: Vec<&str> = page.lines().collect();
    let mut told = BTreeSet::new();
    let mut wrong = Vec::new();
    for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
        // The line above the dashes is the table's head.
        if !line.starts_with("| ") || next.starts_with("|---") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [who, threat, rule, tests] = cells.as_slice() else {
            wrong.push(format!("not four cells: {line}"));
            continue;
        };
        if threat.len() < 10 || rule.len() < 5 {
            wrong.push(format!("no threat or no rule: {line}"));
        }
        if !told.insert(format!("{who}: {threat}")) {
            wrong.push(format!("stands twice: {line}"));
        }
        let reasons = ["Untested: ", "Not kept: ", "Not here: "];
        let names_a_test = tests.starts_with("`tests/") || tests.starts_with("`src/");
        if !names_a_test && !reasons.iter().any(|reason| tests.starts_with(*reason)) {
            wrong.push(format!("neither a test nor a reason: {line}"));
        }
        wrong.extend(missing_tests(tests));
    }
    assert!(told.len() > 150, "{}", told.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How many blocks of commands nobody types. It only falls.
const TYPED_BY_NOBODY: usize = 24;

#[test]
fn ever_fewer_commands_of_the_documentation_are_typed_by_nobody() {
    let blocks = blocks::all();
    let empty = blocks.iter().find(|block| block.text.trim().is_empty());
    assert!(empty.is_none(), "{empty:?}");
    let blocks: BTreeSet<String> = blocks.into_iter().map(|block| block.name).collect();
    let elsewhere = blocks::elsewhere();
    let is_gone = |name: &&String| !blocks.contains(*name);
    let gone: Vec<&String> = elsewhere.keys().filter(is_gone).collect();
    assert!(gone.is_empty(), "there are no such blocks: {gone:?}");
    let mut of_nobody = Vec::new();
    for (name, reason) in &elsewhere {
        match reason.strip_prefix("nobody: ") {
            Some(why) => {
                assert!(why.len() > 10, "{name} has no reason");
                of_nobody.push(name);
            }
            None => assert!(Path::new(reason).exists(), "{name}: {reason} is no test"),
        }
    }
    let count = of_nobody.len();
    assert_eq!(
        count, TYPED_BY_NOBODY,
        "there are, and may be: {of_nobody:#?}"
    );
}

/// Changes of the core that no unit test notices (`make mutants`). It only falls.
const SURVIVING_MUTANTS: usize = 0;

#[test]
fn each_change_that_no_test_notices_has_a_reason() {
    let list = read("tests/mutants/survivors.txt");
    let rows: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    for row in &rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.len(), 3, "not file, change and reason: {row}");
        let is_told = cells[0].starts_with("src/protocol/") && Path::new(cells[0]).exists();
        assert!(is_told && !cells[1].is_empty(), "{row}");
        assert!(cells[2].len() > 20, "no reason: {row}");
    }
    assert_eq!(rows.len(), SURVIVING_MUTANTS, "there are, and may be");
}

/// Where somebody who has not seen the documentation finds an answer: page below `docs`, heading,
/// and words that stand below it.
const QUESTIONS: &str = "
How do I run it in Kubernetes? | operate/kubernetes | Kubernetes | deploy/kubernetes.yaml
How do people sign in to kubectl? | connect/kubernetes | Signing in to Kubernetes | kubelogin
How does an app on a phone sign in? | connect/mobile | AppAuth | PKCE, state and nonce come by themselves
How long does an app stay signed in? | connect/mobile | AppAuth | refresh_token_idle_lifetime
How do I connect PHP? | connect/php | PHP | php -S
How do I connect Ruby or Rails? | connect/ruby | Ruby (OmniAuth: Sinatra, Rails) | omniauth_openid_connect
How do I register preview deployments? | connect/previews | A client of their own, registered by CI | previews.txt
Why is there no wildcard in redirect URIs? | connect/previews
    | Preview deployments and wildcards in redirect URIs | byte for byte
How do I go back one version? | operate/upgrading | Going back one version | compatible_from
What is stored of a person? | operate/personal-data | What is stored of a person | audit_events
How do I delete a person? | operate/personal-data | Delete it | gatepost user remove
How do I add many people from a CSV? | operate/people | Many at once | people.csv
What if a user name changes? | operate/people | A user name that changes | which stays
How do I try it on macOS, Windows or Fedora? | operate/trying-it
    | Trying it on macOS, Windows and Fedora | deploy/demo.yaml
Does it work behind Traefik? | operate/proxies/traefik | Traefik | was tried by hand
How does an API ask for a stronger sign-in? | connect/step-up
    | The API: step-up at your API | insufficient_user_authentication
How do I put a sign-in in front of something? | connect/oauth2-proxy | oauth2-proxy | backend_logout_url
How do roles get into Grafana? | connect/grafana | Grafana | role_attribute_path
Why is the session empty? | connect/generic-oauth | The session is empty | always_include_user_claims_in_id_token
What is GP1119, neither PKCE nor a nonce? | connect/generic-oauth | Neither PKCE nor a nonce | passport-openidconnect
What is invalid_scope? | connect/generic-oauth | When it goes wrong | invalid_scope
Does it do SAML, or SCIM? | ../README | What it does not do | SAML
Does Spring Boot 4 take the access tokens? | connect/java-spring | Spring Boot | validateType(false)
How do I use a private CA in Rust? | connect/rust | Rust | CA_FILE
Who has not signed in for 90 days? | questions | Who has not signed in for 90 days? | --not-signed-in-for
How do I unlock somebody? | questions | Somebody is locked out | Let them try now
What is a stolen cookie worth? | operate/bound-sessions | What it protects from | go on for 11 minutes
Does it run below a path? | questions | Running below a path | handle_path
Where is the audience? | questions | aud is missing or wrong | {issuer}/resources
Is there impersonation? | questions | Can I sign in as somebody else (impersonation)? | act
What is the port itself for? | operate/limits | The port itself | Without a proxy
Who did what last night? | operate/audit | The audit log | --until
";

#[test]
fn help_searches_the_headings_that_the_pages_have() {
    let made = Command::new("tests/headings").output().unwrap();
    let made = String::from_utf8(made.stdout).unwrap();
    let is_kept = made == read("src/tool/headings.txt");
    assert!(is_kept, "run `tests/headings >src/tool/headings.txt`");
}

/// The pages that a text links to, from its own page.
fn links(page: &str, text: &str) -> BTreeSet<String> {
    let folder = Path::new(page).parent().unwrap();
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
    let pages = targets.filter_map(|link| fs::canonicalize(folder.join(link)).ok());
    let here = fs::canonicalize(".").unwrap();
    pages
        .filter_map(|page| Some(page.strip_prefix(&here).ok()?.display().to_string()))
        .filter(|page| page.ends_with(".md"))
        .collect()
}

/// What stands below a heading, up to the next one of its rank or above.
fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let is_it =
        |line: &&str| line.starts_with('#') && line.trim_start_matches('#').trim() == heading;
    let line = text.lines().find(is_it)?;
    let rank = line.len() - line.trim_start_matches('#').len();
    let (_, below) = text.split_once(&format!("{line}\n"))?;
    // A page has one heading of the first rank; `# ` in a block of commands is a remark.
    let ends = (2..=rank)
        .filter_map(|rank| below.find(&format!("\n{} ", "#".repeat(rank))))
        .min();
    Some(&below[..ends.unwrap_or(below.len())])
}

#[test]
fn questions_are_answered_two_steps_from_the_readmes_first_screen() {
    let readme = read("README.md");
    let (first_screen, _) = readme.split_once("## What it does not do").unwrap();
    let mut near = links("README.md", first_screen);
    for page in near.clone() {
        near.extend(links(&page, &read(&page)));
    }
    near.insert(String::from("README.md"));
    let questions: Vec<[&str; 4]> = rows_of(QUESTIONS);
    assert!(questions.len() >= 20);
    let mut open = Vec::new();
    for [question, page, heading, words] in questions {
        let page = format!("docs/{page}.md").replace("docs/../", "");
        let text = read(&page);
        let answered = section(&text, heading).is_some_and(|section| section.contains(words));
        if !near.contains(&page) || !answered {
            open.push(question);
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
}

/// aws-lc-sys is built anew, and all that stands on it, whenever this variable is another than
/// before.
#[test]
fn make_builds_what_cargo_builds() {
    let target = "shown: ; @echo moment=$$SOURCE_DATE_EPOCH";
    let mut make = Command::new("make");
    make.args(["--silent", "--eval", target, "shown"]);
    let told = make.env_remove("SOURCE_DATE_EPOCH").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "moment=\n");
}

#[test]
fn the_readme_is_short() {
    let length = read("README.md").len();
    assert!(
        length <= 12 * 1024,
        "{length} bytes; write a page of docs/ instead"
    );
}

#[test]
fn the_shipped_proxies_pass_on_every_header_field_that_is_read() {
    const CALLS: [&str; 4] = [
        "headers.first(\"",
        "headers.all(\"",
        "field.equiv(\"",
        "field_values(request, \"",
    ];
    let mut names = BTreeSet::new();
    for file in sources() {
        let text = read(&format!("src/{}", file.path));
        for rest in CALLS.iter().flat_map(|call| text.split(call).skip(1)) {
            names.insert(rest.split('"').next().unwrap().to_lowercase());
        }
    }
    // Each proxy frames what it sends by itself.
    for own in "connection content-length expect transfer-encoding".split(' ') {
        names.remove(own);
    }
    for name in ["cookie", "sec-purpose", "x-request-id"] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
    let nginx = read("deploy/nginx.conf").to_lowercase();
    let haproxy = read("deploy/haproxy.cfg");
    let (_, kept) = haproxy.split_once("del-header ^(?!(").unwrap();
    let kept: BTreeSet<&str> = kept.split_once(')').unwrap().0.split('|').collect();
    // Where proofs are read, the visitor's own fields pass: two lines of one must arrive as two.
    let with_proofs = ["if ($http_dpop", "proxy_pass_request_headers on;"];
    assert_eq!(with_proofs.map(|line| nginx.matches(line).count()), [3, 3]);
    for name in names {
        let passes = name == "dpop" || nginx.contains(&format!("proxy_set_header {name} "));
        assert!(passes, "nginx drops {name}");
        assert!(kept.contains(name.as_str()), "HAProxy drops {name}");
    }
}

/// The rows of the table of sizes: what is counted, and tokens.
fn claimed_sizes() -> BTreeMap<String, usize> {
    let page = read("docs/working-on-it.md");
    let (_, section) = page.split_once("\n## Reading it\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut sizes = BTreeMap::new();
    for line in section.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", what, tokens, ""] = cells.as_slice()
            && let Ok(tokens) = tokens.replace(',', "").parse()
        {
            sizes.insert((*what).to_owned(), tokens);
        }
    }
    sizes
}

/// `make size` counts in another program, so the two check each other.
#[test]
fn the_documentation_says_how_much_there_is_to_read() {
    let mut size = Command::new("tests/size");
    let printed = size
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut sizes = BTreeMap::new();
    for line in printed.lines() {
        let (what, count) = line.rsplit_once(' ').unwrap();
        let count: usize = count.replace(',', "").parse().unwrap();
        sizes.insert(what.trim(), count);
    }
    let claimed = claimed_sizes();
    let counts = (sizes.len(), claimed.len());
    assert_eq!(counts, (6, 6), "{sizes:?} {claimed:?}");
    for (what, there) in &sizes {
        let claimed = claimed.get(*what).copied().unwrap_or_default();
        let is_near = claimed.abs_diff(*there) * 50 <= *there;
        assert!(
            is_near,
            "{what} has {there}; docs/working-on-it.md says {claimed}"
        );
    }
    let modules = modules::tokens_of_modules();
    let rooms = modules
        .iter()
        .filter(|(module, _)| module.starts_with("protocol"));
    let by_rooms: usize = rooms.map(|(_, tokens)| tokens).sum();
    assert_eq!(sizes["the pure core, `protocol`"], by_rooms);
}

/// Lines of Rust that are neither blank nor a comment, as `cloc` counts them.
fn lines_of_code(folders: &[&str]) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let is_here = |file: &&SourceFile| folders.iter().any(|folder| file.path.starts_with(folder));
    let texts = sources()
        .iter()
        .filter(is_here)
        .map(|file| read(&format!("src/{}", file.path)));
    texts.map(|text| text.lines().filter(is_code).count()).sum()
}

#[test]
fn the_readme_says_how_many_lines_the_server_has() {
    let server = ["protocol/", "store/", "server/"];
    let beside = ["registration/", "registrar/", "manage/"];
    let readme = read("README.md");
    let whole = lines_of_code(&[server, beside].concat());
    for there in [lines_of_code(&server), whole] {
        let near = (there * 49 / 50 / 1_000..=there * 51 / 50 / 1_000 + 1)
            .any(|thousands| readme.contains(&format!("{thousands},000")));
        assert!(near, "the README says another number than {there}");
    }
}

#[test]
fn the_crate_budget_holds() {
    let crates = crates_in_the_binary();
    let count = crates.len();
    assert!(
        count <= CRATE_BUDGET,
        "{count} crates of others, {CRATE_BUDGET} allowed"
    );
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &crates {
        *versions.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    versions.retain(|_, count| *count > 1);
    let doubled: Vec<&str> = versions.into_keys().collect();
    let allowed = rows_of(DOUBLED).into_iter().map(|[name, _reason]| name);
    let allowed: Vec<&str> = allowed.collect();
    assert_eq!(
        doubled, allowed,
        "doubled on the left, allowed on the right"
    );
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The manifest that names each crate of others once, with its version.
fn manifest() -> String {
    read("Cargo.toml")
}

/// Crates of other people that manifests declare.
fn declared_dependencies(manifest: &str) -> BTreeSet<String> {
    let mut declared = BTreeSet::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if matches!(section, "[workspace.dependencies]")
            && let Some((name, _)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = name.trim().split('.').next().unwrap();
            declared.insert(name.to_owned());
        }
    }
    declared.retain(|name| !is_ours(name));
    declared
}

fn is_ours(name: &str) -> bool {
    name == "gatepost" || name.starts_with("gatepost-")
}

/// The names in the first column of the tables under this heading of a page of the reference; of
/// all without one.
fn explained(page: &str, heading: &str) -> BTreeSet<String> {
    let text = read(&format!("docs/reference/{page}.md"));
    let is_here = |section: &&str| {
        section.lines().next().unwrap().trim_matches('`') == heading || heading.is_empty()
    };
    let lines = text.split("\n## ").filter(is_here).flat_map(str::lines);
    let rows = lines.filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    let names = cells.flat_map(|cell| cell.split('`').step_by(2));
    let names = names.map(|name| name.split_inclusive('#').next().unwrap());
    names.map(str::to_owned).collect()
}

/// The rows of the table under "## What it depends on": name and reason.
fn argued_dependencies(page: &str) -> BTreeMap<String, String> {
    let heading = "\n## Why each is there, and what it may do\n";
    let section = page.split(heading).nth(1).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut argued = BTreeMap::new();
    for row in rows {
        let (name, rest) = row.split_once("` | ").unwrap();
        let (reason, _) = rest.split_once(" |").unwrap();
        // A crate without a reason is there through another one.
        if !reason.trim().is_empty() {
            argued.insert(name.to_owned(), reason.trim().to_owned());
        }
    }
    argued
}

fn crates_in_the_binary() -> BTreeSet<String> {
    let arguments = "tree --locked --target x86_64-unknown-linux-gnu -e normal,build --prefix none";
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(arguments.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    // A crate that was listed before is marked by an asterisk; a blank line stands between two of
    // our own.
    let is_theirs = |line: &&str| !line.is_empty() && !is_ours(line.split(' ').next().unwrap());
    let lines = text.lines().filter(is_theirs);
    lines
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .collect()
}

/// What `audit list --event` knows, and what is written, are the same.
#[test]
fn every_event_that_is_written_can_be_asked_for() {
    let known: BTreeSet<&str> = EVENTS.into_iter().collect();
    let mut written = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(format!("src/{}", file.path)).unwrap();
        for mark in ["event: \"", "event(\"", "note_failure(\"", "audit_event(\""] {
            for rest in text.split(mark).skip(1) {
                written.insert(rest.split('"').next().unwrap().to_owned());
            }
        }
    }
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    written.retain(|name| !name.is_empty() && name.bytes().all(is_name));
    assert!(written.len() > 40, "{written:?}");
    written.retain(|name| !known.contains(name.as_str()));
    assert!(written.is_empty(), "{written:?}");
}
