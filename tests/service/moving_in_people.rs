//! What one needs on the day of a move for many people: links for all, and a plan that tells whom
//! it lets in and what is wrong with the document, all of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, document};
use crate::support::http::free_port;

/// With carol, who has no password, and dora, who is disabled.
fn start() -> Gatepost {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({"username": "carol"}));
    users.push(json!({"username": "dora", "enabled": false, "password": ALICE_PASSWORD}));
    users.push(json!({"username": "it's erin", "password": ALICE_PASSWORD}));
    Gatepost::start_with(&registered, &[])
}

fn said(output: &std::process::Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

#[test]
fn links_for_many_stand_in_a_new_file_alone() {
    let gatepost = start();
    let path = std::env::temp_dir().join(format!("gatepost-links-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let file = path.to_str().unwrap();
    let reset = ["user", "reset", "--enrol", "--from", "-", "--links", file];

    // Whoever cannot have one is told, everybody at once, before anything is written.
    let refused = gatepost.run(&reset, "alice\nnobody\ncarol\ndora\nnone\n");
    let text = said(&refused);
    for line in [
        "nobody: there is no user \"nobody\"",
        "none: there is no user \"none\"",
        "carol: that user has nothing to reset",
        "dora: that user cannot sign in",
        "no link was made",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(refused.status.code(), Some(1));
    assert!(!path.exists());

    let done = gatepost.run_well(&reset, "\u{feff}alice\r\n\nit's erin\nalice\nALICE\n");
    assert!(done.starts_with("2 links are in "), "{done}");
    assert!(!done.contains("gpl_"), "{done}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let links = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = links.lines().collect();
    assert_eq!(lines.len(), 2, "{links}");
    for (line, name) in lines.iter().zip(["alice", "it's erin"]) {
        let (user, link) = line.split_once('\t').unwrap();
        assert_eq!(user, name);
        let page = gatepost
            .browser()
            .visit(link.strip_prefix(gatepost.origin()).unwrap());
        assert_eq!(page.status, 200, "{}", page.text());
        page.assert_says(name.trim_start_matches("it's "));
    }

    // Never written over, and made by both options or neither.
    let again = gatepost.run(&reset, "alice\n");
    assert!(
        said(&again).contains("cannot be made: "),
        "{}",
        said(&again)
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), links);
    for arguments in [
        &["user", "reset", "--from", "-"][..],
        &["user", "reset", "alice", "--from", "-", "--links", file],
        &["user", "reset", "--links", file],
        &["user", "reset", "--from", "-", "--links", "-"],
        &["user", "reset"],
    ] {
        let output = gatepost.run(arguments, "alice\n");
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
    let empty = gatepost.run(&reset, "\n");
    assert!(
        said(&empty).contains("no link was made"),
        "{}",
        said(&empty)
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_last_line_of_an_import_is_a_command_that_makes_the_links() {
    let gatepost = start();
    let hash = "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg==";
    let user = |id: &str, name: &str| json!({"Id": id, "UserName": name, "TwoFactorEnabled": true, "PasswordHash": hash});
    let dump = json!({"AspNetUsers": [user("u", "o'neil \\n"), user("v", "ada")]});
    let imported = gatepost.run(&["import", "identityserver", "-"], &dump.to_string());
    let notes = String::from_utf8(imported.stderr).unwrap();
    let document = String::from_utf8(imported.stdout).unwrap();
    gatepost.run_well(&["apply", "-"], &document);
    let links = links_by(&gatepost, notes.lines().last().unwrap());
    let names: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ada", "o'neil \\n"]);
}

/// Types the command of that line, and reads the names and links of the file that it makes.
pub fn links_by(gatepost: &Gatepost, line: &str) -> Vec<(String, String)> {
    let (_, command) = line.split_once("FILE: ").unwrap();
    let path = std::env::temp_dir().join(format!("gatepost-made-{}", free_port()));
    let _ = std::fs::remove_file(&path);
    let command = command.replace("FILE", path.to_str().unwrap());
    let ours = Path::new(env!("CARGO_BIN_EXE_gatepost")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]);
    for (name, value) in gatepost.command().get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let done = shell
        .env("PATH", format!("{}:/usr/bin:/bin", ours.display()))
        .output()
        .unwrap();
    assert!(done.status.success(), "{command}: {}", said(&done));
    let links = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines = links.lines().map(|line| line.split_once('\t').unwrap());
    lines
        .map(|(name, link)| (name.to_owned(), link.to_owned()))
        .collect()
}

#[test]
fn a_plan_marks_roles_that_open_clients() {
    let gatepost = start();
    let with_role = |role: Value| json!({"users": [{"username": "carol", "claims": {"role": role}}, {"username": "new", "password": "a password of the new one", "claims": {"role": "boss"}}]});
    let clients = json!({"clients": [
        {"client_id": "books", "grant_types": ["authorization_code"], "redirect_uris": ["https://a.example/cb"], "scope": "openid", "allowed_roles": ["boss"]},
    ]});
    gatepost.run_well(&["apply", "-"], &clients.to_string());
    let planned = |document: &Value, arguments: &[&str]| {
        said(&gatepost.run(&[&["plan", "-"], arguments].concat(), &document.to_string()))
    };
    let text = planned(&with_role(json!(["boss", "clerk"])), &[]);
    let line = "    role boss: opens books (allowed_roles)\n";
    assert_eq!(text.matches(line).count(), 2, "{text}");
    assert!(!text.contains("role clerk: opens"), "{text}");
    let told: Value =
        serde_json::from_str(&planned(&with_role(json!("boss")), &["--json"])).unwrap();
    assert_eq!(told["changes"][0]["opens"], json!({"boss": ["books"]}));
    // A role that somebody has is no news; a client of the document counts, too.
    gatepost.run_well(&["apply", "-"], &with_role(json!("boss")).to_string());
    let mut both = with_role(json!(["boss", "clerk"]));
    both["clients"] = clients["clients"].clone();
    both["clients"][0]["allowed_roles"] = json!(["clerk"]);
    let text = planned(&both, &[]);
    assert!(text.contains("role clerk: opens books"), "{text}");
    assert!(!text.contains("role boss: opens"), "{text}");
}

#[test]
fn conflicts_with_users_are_told_with_all_other_mistakes() {
    let gatepost = start();
    let document = json!({
        "clients": [{"client_id": "bad\0", "scope": "gone"}],
        "users": [
            {"username": "carol", "sub": "another"},
            {"username": "new", "claims": {"iss": "x"}, "identities": [{"issuer": "https://nowhere.example", "subject": "1"}, {"issuer": "", "subject": ""}]},
        ],
    });
    let output = gatepost.run(&["plan", "-"], &document.to_string());
    let text = said(&output);
    for line in [
        "users[0] (carol).username: is the user name of another user",
        "users[1] (new).claims.iss: is a reserved claim",
        "users[1] (new).identities: has an issuer that no identity provider",
        "must not hold a NUL",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(text.matches("has an issuer").count(), 1, "{text}");
    assert_eq!(output.status.code(), Some(1));
}
