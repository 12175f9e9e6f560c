//! The layers inside a crate, or inside a folder of one: which of its parts may use which, and that
//! no more than a few files use each other in a circle. Which crate may use which stands in the
//! manifests, and the compiler holds it. Unit tests may use whatever they need.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{CRATES, SourceFile, sources};

struct Layers {
    module: &'static str,
    /// From the top layer down, one a line. A part uses its own files and those of later rows. Read
    /// from the last row up, each file builds only on what was read before.
    rows: &'static str,
}

/// The first row of `server/endpoints` decides which page comes next: the pages below know no other
/// page. Of `store`, the tables come first, then the way to a connection, then what the tables are
/// written with.
const FLOORS: &[Layers] = &[
    Layers {
        module: "protocol",
        rows: "
            sealed_request
            upstream
            audit registration
            discovery
            logout
            login
            authorize
            device
            token
            keys
            words",
    },
    Layers {
        module: "server",
        rows: "
            serve
            arguments logging supervisor
            server
            dispatch
            endpoints
            pages
            app
            registry
            keys outbound
            config http metrics",
    },
    Layers {
        module: "server/endpoints",
        rows: "
            conversation
            links start
            account answer device letters logout
            pushed_request upstream
            forgotten token
            consent login
            transaction
            current_session
            bound_session
            cookies discovery forms metrics notices
            answers
            static_files",
    },
    Layers {
        module: "manage",
        rows: "
            endpoints
            pages scim
            statements",
    },
    Layers {
        module: "store",
        rows: "
            applications authenticators catalogue device_authorizations disowned_sign_ins flow_uses folds \
                grants installation linked_identities migrate partitions sign_in_failures sign_up_links \
                signing_keys user_ends
            clients sessions
            consents upstream_sessions
            tokens
            users
            audit_events session_clients session_endings
            registry_writer
            pool
            database_url endings supply watchdog
            connection
            audit_chain connecting
            audit_event statement values
            error seen_partitions
            clock worker
            mutex named_thread",
    },
];

/// Files that use each other have to be read together.
const MOST_FILES_IN_A_CIRCLE: usize = 4;

/// Which files each file uses, by path.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The module of a file: `protocol::words` for `protocol/words/mod.rs`.
fn module(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap();
    let of_folder = path.strip_suffix("/mod").or(path.strip_suffix("/lib"));
    of_folder.unwrap_or(path).replace('/', "::")
}

fn uses(files: &[SourceFile]) -> Uses {
    let modules = files.iter().map(|file| (module(&file.path), &*file.path));
    let modules: BTreeMap<String, &str> = modules.collect();
    let mut uses = Uses::new();
    for file in files {
        let paths = file.paths_used(&module(&file.path));
        let used = paths.iter().filter_map(|path| file_of(path, &modules));
        let others = used.filter(|used| *used != file.path);
        uses.insert(file.path.clone(), others.map(str::to_owned).collect());
    }
    uses
}

/// The file with what a path names: that of the longest module which the path begins with.
fn file_of<'a>(path: &str, modules: &BTreeMap<String, &'a str>) -> Option<&'a str> {
    let mut rest = Some(path);
    while let Some(path) = rest {
        if let Some(file) = modules.get(path) {
            return Some(file);
        }
        rest = path.rsplit_once("::").map(|(before, _)| before);
    }
    None
}

/// The part of `module` that a file lies in; none for files elsewhere and for the module's own file.
fn part<'a>(path: &'a str, module: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(module)?.strip_prefix('/')?;
    let name = inside.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (name != "mod" && name != "lib").then_some(name)
}

fn breaches(layers: &Layers, uses: &Uses) -> Vec<String> {
    let is_in = |row: &str, part: &str| row.split_whitespace().any(|one| one == part);
    let row = |part: &str| layers.rows.lines().position(|row| is_in(row, part));
    let mut found = Vec::new();
    for (file, used) in uses {
        let Some(from) = part(file, layers.module) else {
            continue;
        };
        if row(from).is_none() {
            found.push(format!("{file} has no layer in {}", layers.module));
        }
        for other in used {
            let Some(to) = part(other, layers.module) else {
                continue;
            };
            if from != to && row(from) >= row(to) {
                found.push(format!("{file} uses {other}"));
            }
        }
    }
    found
}

fn circles(uses: &Uses) -> BTreeSet<BTreeSet<&str>> {
    let reached = uses
        .keys()
        .map(|file| (file.as_str(), reached_from(file, uses)));
    let reached: BTreeMap<&str, BTreeSet<&str>> = reached.collect();
    let circle_of = |file: &&'_ str| -> BTreeSet<&str> {
        let reaches_back = |other: &&&str| reached[**other].contains(file);
        reached[*file]
            .iter()
            .filter(reaches_back)
            .copied()
            .collect()
    };
    let circles = reached.keys().map(circle_of);
    circles.filter(|circle| !circle.is_empty()).collect()
}

/// All files that `file` uses, and those that these use, and so on.
fn reached_from<'a>(file: &'a str, uses: &'a Uses) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        for used in &uses[next] {
            if reached.insert(used.as_str()) {
                open.push(used);
            }
        }
    }
    reached
}

fn large_circles<'a>(module: &str, uses: &'a Uses) -> Vec<BTreeSet<&'a str>> {
    let mut circles = circles(uses);
    circles.retain(|circle| circle.len() > MOST_FILES_IN_A_CIRCLE);
    let touches = |circle: &BTreeSet<&str>| circle.iter().any(|file| part(file, module).is_some());
    circles.into_iter().filter(touches).collect()
}

#[test]
fn parts_of_a_room_use_only_the_floors_below() {
    let uses = uses(sources());
    for layers in FLOORS {
        let found = breaches(layers, &uses);
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }
}

#[test]
fn no_more_than_four_files_use_each_other_in_a_circle() {
    let uses = uses(sources());
    for crate_folder in CRATES.split(' ') {
        let found = large_circles(crate_folder, &uses);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_rules_about_floors_catch_what_they_should() {
    let layers = Layers {
        module: "hall",
        rows: "top\nleft right\ncellar",
    };
    let file = |path: &str, text: &str| SourceFile::new(path, text);
    let found = |files: &[SourceFile]| breaches(&layers, &uses(files));
    let caught = [
        ("cellar", "use crate::hall::top::door::Door;"),
        (
            "cellar",
            "use super::{\n    left::Lamp,\n    top::door,\n};",
        ),
        ("left", "use super::right;"),
        ("left", "fn f() -> crate::hall::top::Door {}"),
        ("attic", "use std::fmt;"),
    ];
    for (part, text) in caught {
        let case = file(&format!("hall/{part}.rs"), text);
        let others = ["top/mod", "top/door", "right"];
        let [top, door, right] = others.map(|part| file(&format!("hall/{part}.rs"), ""));
        let files = [case, top, door, right];
        assert_eq!(found(&files).len(), 1, "{files:?}");
    }
    let in_top =
        "use self::door::Door;\nuse super::left;\nuse crate::hall::{self, cellar::{a, b}};";
    let in_left = "use super::cellar;\n#[cfg(test)]\nmod tests {\n    use crate::hall::top;\n}";
    let fine = [
        file("hall/mod.rs", "use self::top::door;"),
        file("hall/top/mod.rs", in_top),
        file("hall/top/door.rs", "use super::Door; // use crate::attic;"),
        file("hall/left.rs", in_left),
        file("hall/cellar.rs", "use std::fmt::{self, Debug};"),
    ];
    assert_eq!(found(&fine), Vec::<String>::new());

    let ring = |length: usize| -> Vec<SourceFile> {
        let next = |at: usize| format!("use super::f{}::F;", (at + 1) % length);
        let file_of = |at| file(&format!("hall/f{at}.rs"), &next(at));
        (0..length).map(file_of).collect()
    };
    let four = uses(&ring(4));
    let five = uses(&ring(5));
    assert_eq!(circles(&four).len(), 1);
    assert!(large_circles("hall", &four).is_empty());
    assert_eq!(large_circles("hall", &five).len(), 1);
}
