//! `gatepostd` without what administrators and their programs use: it refuses the settings that
//! need them, has none of their addresses, and judges their links as the whole one does. `make bare`
//! builds it, and runs this.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a panic here is a failed test"
)]

use std::process::Command;

use serde_json::{Value, json};

use support::flow::{authorize_path, sign_in, text};
use support::gatepost::{BOB_PASSWORD, Gatepost, RP1};
use support::phone::Phone;
use support::scim::{self, Program};

#[allow(dead_code, reason = "no test binary uses all of it")]
#[path = "../support/mod.rs"]
mod support;

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const OURS: &str = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User";
const NEW: &str = "a password of her own choosing";
/// What needs the routes that it lacks.
const NEEDS: [(&str, &str); 3] = [
    ("GATEPOST_SCIM", "on"),
    ("GATEPOST_ADMIN_API", "on"),
    ("GATEPOST_ADMIN_ROLE", "office"),
];

/// Serves the same installation by the bare server from now on: `gatepost serve` becomes what lies
/// beside it.
fn serve_bare(gatepost: &mut Gatepost) {
    gatepost.stop();
    for (name, _) in NEEDS {
        gatepost.unset(name);
    }
    let bare = std::env::var_os("GATEPOSTD_BARE").expect("`make bare` builds what this asks");
    let tool = gatepost.private_file("gatepost", "");
    let server = gatepost.private_file("gatepostd", "");
    for (program, place) in [
        (env!("CARGO_BIN_EXE_gatepost").into(), &tool),
        (bare, &server),
    ] {
        // What this process has open for writing, nobody runs.
        let copied = Command::new("cp").arg(program).arg(place).status();
        assert!(copied.unwrap().success());
        let made = Command::new("chmod").arg("755").arg(place).status();
        assert!(made.unwrap().success());
    }
    gatepost.binary = tool;
    gatepost.serve();
    let running = std::fs::read_link(format!("/proc/{}/exe", gatepost.supervisor()));
    assert_eq!(running.unwrap(), std::fs::canonicalize(server).unwrap());
}

/// With an administrator, somebody whom they look after, and somebody who has no password yet.
fn registered() -> Value {
    let mut registered = scim::registered();
    let people = [
        json!({"sub": "sub|boss", "username": "boss", "password": BOB_PASSWORD, "totp": KEY, "claims": {"role": "office"}}),
        json!({"sub": "sub|amy", "username": "amy", "password": BOB_PASSWORD}),
        json!({"username": "carol"}),
    ];
    registered["users"].as_array_mut().unwrap().extend(people);
    registered
}

#[test]
fn it_does_not_start_with_a_setting_that_needs_what_it_lacks() {
    let mut gatepost = Gatepost::start_with(&registered(), &[]);
    serve_bare(&mut gatepost);
    gatepost.stop();
    for (name, value) in NEEDS {
        gatepost.set(name, value);
        let output = gatepost.run(&["serve"], "");
        let said = String::from_utf8(output.stderr).unwrap();
        let told = format!(
            "gatepost: {name} is set, and this gatepostd was built without the feature manage, which it needs\n"
        );
        assert_eq!((output.status.code(), said), (Some(78), told));
        gatepost.unset(name);
    }
}

/// A link that an administrator is shown for somebody.
fn link_of_administrator(gatepost: &Gatepost, name: &str) -> String {
    let mut boss = gatepost.browser();
    let page = boss.visit("/admin");
    let asked = sign_in(&mut boss, &page, "boss", BOB_PASSWORD);
    let code = Phone::with_key(KEY.to_owned(), 0).code(0);
    assert_eq!(boss.submit(&asked, &[("code", &code)]).status, 303);
    let address = format!("/admin/people/sub%7C{name}");
    let page = boss.get(&address);
    let carried = |name: &str| {
        page.attribute(&format!("name=\"{name}\""), "value")
            .unwrap()
    };
    let (token, version) = (carried("form_token"), carried("version"));
    let form = [
        ("form_token", token.as_str()),
        ("version", &version),
        ("decision", "reset"),
    ];
    let shown = boss.post(&address, &form).text();
    let (_, rest) = shown.split_once("link-shown\">").expect(&shown);
    rest.split_once('<').unwrap().0.to_owned()
}

fn link_of_program(gatepost: &Gatepost) -> String {
    let dana = Program::hr(gatepost).add(json!({"userName": "dana", OURS: {"invite": "link"}}));
    text(&dana[OURS], "inviteLink").to_owned()
}

#[test]
fn its_addresses_are_not_there_and_links_are_judged_as_by_the_whole_server() {
    let settings = [NEEDS[0], NEEDS[2]];
    let mut gatepost = Gatepost::start_with(&registered(), &settings);
    let by_administrator = link_of_administrator(&gatepost, "amy");
    let by_program = link_of_program(&gatepost);
    let by_operator = gatepost
        .run_well(&["user", "invite", "carol"], "")
        .trim()
        .to_owned();
    let links = [&by_administrator, &by_program, &by_operator];
    let judged = |gatepost: &Gatepost| links.map(|link| gatepost.browser().get(link).status);
    assert_eq!(judged(&gatepost), [303, 303, 303]);
    // Where nobody is an administrator, nobody answers for their links.
    gatepost.stop();
    for (name, _) in settings {
        gatepost.unset(name);
    }
    gatepost.serve();
    let by_whole = judged(&gatepost);
    assert_eq!(by_whole, [400, 303, 303]);

    serve_bare(&mut gatepost);
    assert_eq!(judged(&gatepost), by_whole);
    for (link, name) in [(&by_program, "dana"), (&by_operator, "carol")] {
        let mut browser = gatepost.browser();
        let form = browser.visit(link);
        let new = [("new_password", NEW), ("new_password_again", NEW)];
        assert_eq!(browser.submit(&form, &new).status, 303, "{name}");
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        sign_in(&mut browser, &page, name, NEW).assert_status_for(name, 303);
    }
    let paths = "/admin /admin/people /admin/export /scim/v2/Users
                 /scim/v2/ServiceProviderConfig";
    for path in paths.split_whitespace() {
        assert_eq!(gatepost.get(path).status, 404, "{path}");
    }
    for path in "/admin/people/sub%7Camy /admin/plan /admin/apply /scim/v2/Users".split(' ') {
        gatepost
            .post(path, &[], &[("a", "b")])
            .assert_status_for(path, 404);
    }
}
