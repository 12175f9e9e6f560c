//! The commands of the documentation, typed as they stand there, those of each page against a server
//! of its own with people, clients and a sign-in. What cannot be typed here stands with its reason
//! in `tests/fixtures/commands_elsewhere.txt`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::documentation::{fill_in_secrets, registrations};
use crate::support::blocks::{self, Block};
use crate::support::flow::{access_token, authorize_path, sign_in, signed_in};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::mailbox::Mailbox;

/// What the script of docs/move/identityserver.md makes of a database with one client.
const DUMP: &str = r#"{
    "Clients": [{"Id": 1, "ClientId": "mvc", "Enabled": true, "RequireClientSecret": false}],
    "ClientGrantTypes": [{"ClientId": 1, "GrantType": "authorization_code"}],
    "ClientRedirectUris": [{"ClientId": 1, "RedirectUri": "https://shop.example/cb"}],
    "ClientScopes": [{"ClientId": 1, "Scope": "openid"}],
    "IdentityResources": [{"Id": 1, "Name": "openid", "Enabled": true}]
}"#;

/// As of a release, of which only one file was downloaded: `previews.txt`.
const SUMS: &str = "\
c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8  previews.txt
0000000000000000000000000000000000000000000000000000000000000000  another
";

/// A machine on which somebody types.
struct Machine {
    gatepost: Gatepost,
    folder: PathBuf,
    /// An access token of alice's.
    token: String,
    _mailbox: Mailbox,
}

impl Machine {
    fn start(block: &Block) -> Machine {
        let mailbox = Mailbox::open();
        let mut settings = mailbox.settings().to_vec();
        settings.push(("GATEPOST_ID_JAG", "on"));
        settings.push(("GATEPOST_SCIM", "on"));
        settings.push(("GATEPOST_ADMIN_API", "on"));
        let gatepost = Gatepost::start_with(&installed(), &settings);
        for registration in registrations_of(block) {
            // An example that contradicts what is installed is refused as a whole.
            gatepost.run(&["apply", "-"], &registration.to_string());
        }
        gatepost.settle();
        let mut browser = signed_in(&gatepost);
        let token = access_token(&gatepost, &mut browser, "openid");
        let name: String = block.name.replace(['/', ' '], "-");
        let folder = std::env::temp_dir().join(format!("gatepost-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let machine = Machine {
            gatepost,
            folder,
            token,
            _mailbox: mailbox,
        };
        machine.lay_out();
        machine
    }

    /// The files that pages speak of, and the commands of a machine that is not this one.
    fn lay_out(&self) {
        let page = fs::read_to_string("docs/operate/people.md").unwrap();
        let (_, csv) = page.split_once("```text\n").unwrap();
        self.file("people.csv", csv.split_once("```").unwrap().0);
        let one = json!({"clients": [{"client_id": "new", "redirect_uris": ["https://new.example/cb"],
            "scope": "openid", "token_endpoint_auth_method": "client_secret_basic"}]});
        self.file("registration.json", &one.to_string());
        self.file("names.txt", "alice\n");
        self.file("previews.txt", "one\ntwo\n");
        self.file("SHA256SUMS", SUMS);
        self.file("gatepost.log", &self.gatepost.log());
        self.file("dump.json", DUMP);
        let realm = include_str!("../fixtures/keycloak-realm.json");
        self.file("realm.json", realm);
        for (name, text) in samples() {
            self.file(&name, &text);
        }
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let key = Command::new("openssl").arg("genpkey").args(curve).output();
        let key = String::from_utf8(key.unwrap().stdout).unwrap();
        self.file("AuthKey_ABC123DEFG.p8", &key);
        self.file("scim.json", "{}");
        self.file("pipeline.json", "{}");
        self.file("people.json", r#"{"users": [{"username": "carol"}]}"#);
        // `--follow` stays until it is interrupted.
        self.program(
            "sudo",
            "case \"$*\" in *--follow*) timeout --signal INT 2 \"$@\" || true; exit 0;; esac; exec \"$@\"",
        );
        let curl = "exec /usr/bin/curl --silent --show-error \"${@//https:\\/\\/login.example.com/$ISSUER}\"";
        self.program("curl", curl);
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn program(&self, name: &str, text: &str) {
        fs::create_dir_all(self.folder.join("bin")).unwrap();
        let path = self.file(&format!("bin/{name}"), &format!("#!/bin/bash\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Types a block, without a terminal. Each command that fails is written down.
    fn type_in(&self, block: &Block) -> Output {
        let text = block.text.replace("/var/log/gatepost.log", "gatepost.log");
        let script =
            format!("set -uo pipefail\ntrap 'echo \"failed with $?: $BASH_COMMAND\"' ERR\n{text}");
        let ours = Path::new(env!("CARGO_BIN_EXE_gatepost")).parent().unwrap();
        let path = format!(
            "{}/bin:{}:/usr/bin:/bin",
            self.folder.display(),
            ours.display()
        );
        let mut bash = Command::new("setsid");
        bash.args(["--wait", "bash", "-c", &script])
            .current_dir(&self.folder)
            .env_clear();
        for (name, value) in self.gatepost.command().get_envs() {
            bash.env(name, value.unwrap_or_default());
        }
        bash.env("PATH", path)
            .env("HOME", &self.folder)
            .env("LANG", "C.UTF-8")
            .env("ISSUER", &self.gatepost.base_url);
        let mut child = bash
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = self.what_is_asked(&block.text);
        // A command that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(asked.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What somebody types when a command asks.
    fn what_is_asked(&self, commands: &str) -> String {
        if !commands.contains("explain -") {
            return String::from("a passphrase of their own\n");
        }
        self.token.clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The files that docs/move/from-anywhere.md shows. The name of each stands last before it.
fn samples() -> Vec<(String, String)> {
    let page = fs::read_to_string("docs/move/from-anywhere.md").unwrap();
    let parts: Vec<&str> = page.split("```text\n").collect();
    let shown = parts.iter().zip(parts.iter().skip(1));
    let named = shown.map(|(before, after)| {
        let name = before.rsplit('`').nth(1).unwrap();
        (
            name.to_owned(),
            after.split("```").next().unwrap().to_owned(),
        )
    });
    named.collect()
}

/// What the pages take for given: alice, carol without a password, and the client web.
fn installed() -> Value {
    let mut document = document();
    document["users"] = json!([document["users"][0], {"username": "carol"}]);
    document["clients"].as_array_mut().unwrap().push(json!({
        "client_id": "web", "redirect_uris": ["https://shop.example.com/callback"],
        "scope": "openid profile", "secrets": [{"value": "a-secret-of-sixteen"}]
    }));
    document
}

fn page_of(block: &Block) -> &str {
    block.name.split_once(' ').unwrap().0
}

/// What the page of a block registers.
fn registrations_of(block: &Block) -> Vec<Value> {
    let page = page_of(block);
    let folder = Path::new(page).parent().unwrap().to_str().unwrap();
    if folder.is_empty() {
        return Vec::new();
    }
    let of_folder = registrations(folder).into_iter();
    let mut found: Vec<Value> = of_folder
        .filter(|(found, _)| found == page)
        .map(|(_, document)| document)
        .collect();
    found.iter_mut().for_each(fill_in_secrets);
    found
}

/// What went wrong, by what was printed: commands that failed, and requests that are none.
fn complaints(output: &Output) -> Vec<String> {
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    // That something would change is what `plan` is asked for, and here no server has counted yet.
    let meant = [
        "failed with 3: sudo gatepost plan ",
        "failed with 1: sudo gatepost user list --not-signed-in-for 90d",
    ];
    let is_wrong = |line: &&str| {
        let is_meant = meant.iter().any(|begin| line.starts_with(begin));
        let failed = line.starts_with("failed with ") && !is_meant;
        failed
            || line.contains("invalid_request")
            || line.contains("invalid_document")
            || line.contains("messages:2.0:Error")
            || line.contains("unsupported_grant_type")
    };
    let wrong: Vec<String> = printed
        .lines()
        .filter(is_wrong)
        .map(str::to_owned)
        .collect();
    if wrong.is_empty() {
        return wrong;
    }
    [wrong, vec![said.into_owned()]].concat()
}

#[test]
fn every_block_of_commands_can_be_typed_as_it_stands() {
    let elsewhere = blocks::elsewhere();
    let here: Vec<Block> = blocks::all()
        .into_iter()
        .filter(|block| !elsewhere.contains_key(&block.name))
        .collect();
    assert!(here.len() > 15, "{}", here.len());
    let mut wrong = Vec::new();
    for of_page in here.chunk_by(|one, next| page_of(one) == page_of(next)) {
        let mut machine = Machine::start(&of_page[0]);
        for (index, block) in of_page.iter().enumerate() {
            let mut found = complaints(&machine.type_in(block));
            // What it needs, one before it may have taken away.
            if !found.is_empty() && index > 0 {
                machine = Machine::start(block);
                found = complaints(&machine.type_in(block));
            }
            if !found.is_empty() {
                wrong.push(format!("{}: {}", block.name, found.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_handed_out_of_a_person_is_what_is_stored_of_her() {
    let block = blocks::all()
        .into_iter()
        .find(|block| block.name == "docs/operate/personal-data.md 1")
        .unwrap();
    let machine = Machine::start(&block);
    let mut sql = machine.gatepost.database.client();
    sql.batch_execute(
        "INSERT INTO linked_identities (issuer, upstream_subject, sub, claims) \
             SELECT 'https://corp.example', 'upstream-7', sub, '{\"nickname\": \"al\"}' FROM users WHERE username = 'alice'; \
         INSERT INTO consents (sub, client_id, scopes, claims) SELECT sub, 'web', '{profile}', '{}' FROM users WHERE username = 'alice' \
             ON CONFLICT DO NOTHING",
    )
    .unwrap();
    let output = machine.type_in(&block);
    assert!(complaints(&output).is_empty(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    for stored in [
        "alice@example.com",
        "\"upstream-7\"",
        "\"nickname\": \"al\"",
        "\"client_id\": \"web\"",
        "\"user_agent\"",
        "\"signed_in\"",
    ] {
        assert!(printed.contains(stored), "{stored}: {printed}");
    }
}

#[test]
fn people_from_anywhere_sign_in_by_their_passwords_as_who_they_were() {
    let mut blocks = blocks::all();
    blocks.retain(|block| block.name.starts_with("docs/move/from-anywhere.md "));
    let machine = Machine::start(&blocks[0]);
    let gatepost = &machine.gatepost;
    for block in &blocks {
        let output = machine.type_in(block);
        assert!(complaints(&output).is_empty(), "{}: {output:?}", block.name);
        let users = machine.folder.join("users.json");
        gatepost.run_well(&["apply", users.to_str().unwrap()], "");
        fs::remove_file(users).unwrap();
    }
    let one = |column: &str, username: &str| -> Option<String> {
        let sql = format!("SELECT {column} FROM users WHERE username = $1::text");
        gatepost.database.value(&sql, &[&username])
    };
    for (username, sub) in [
        ("mia", "7"),
        ("dora", "1f0c2e6a-7d0b-4b43-9d1e-2f6b0a3c4d5e"),
        ("lea@example.com", "auth0|5dea9f9c82dd7c0e76e4ec93"),
        (
            "ida",
            "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
        ),
        ("john", "7f0c2e6a-7d0b-4b43-9d1e-2f6b0a3c4d5e"),
        // As Dex makes it of that user and the connector.
        (
            "admin@example.com",
            "CiQwOGE4Njg0Yi1kYjg4LTRiNzMtOTBhOS0zY2QxNjYxZjU0NjYSBWxvY2Fs",
        ),
        ("zoe", "177073608051458051"),
        ("kim@example.com", "9f425a8d-7efc-4768-8f23-7647a74fdf13"),
    ] {
        assert_eq!(one("sub", username).as_deref(), Some(sub));
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let answer = sign_in(&mut browser, &page, username, "my password");
        assert_eq!(answer.status, 303, "{username}: {}", answer.text());
    }
    for username in ["noa", "emil", "eu@example.com", "kai"] {
        assert_eq!(one("password_hash", username), None, "{username}");
    }
}

#[test]
fn a_command_that_fails_is_noticed() {
    for text in [
        "sudo gatepost user show nobody\n",
        "curl https://login.example.com/connect/token -d client_id=pub1 -d grant_type=code\n",
    ] {
        let block = Block {
            name: format!("README.md {}", text.len()),
            text: String::from(text),
        };
        let output = Machine::start(&block).type_in(&block);
        assert!(!complaints(&output).is_empty(), "{text}{output:?}");
    }
}
