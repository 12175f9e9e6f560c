//! The move from another provider, as the documentation walks through it: dump, import, apply, and
//! everybody signs in as before.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    VERIFIER, authorize_path, basic, decode_jwt, redeem_as, sign_in, text, userinfo,
};
use crate::support::gatepost::Gatepost;
use crate::support::jwt::{forge, verified};
use crate::support::phone::Phone;
use crate::support::postgres::TestDatabase;
use crate::support::signer::{Signer, now};
use crate::support::tables::rows_of;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, CLIENT_SECRET, SUBJECT, Upstream};

const PASSWORD: &str = "Pass123$";
const OWN_HASH: &str = "$argon2id$v=19$m=7168,t=1,p=1$";

pub fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("tests/fixtures/{name}")).unwrap()
}

fn shell(script: &str, directory: &std::path::Path, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("sh");
    command
        .arg("-ec")
        .arg(script)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    output.stdout
}

struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path =
            std::env::temp_dir().join(format!("gatepost-moving-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The dump that the documentation's script makes of a database of that kind, with what the page
/// says for SQLite; `rows` is what the script calls for the rows of a table.
fn dump(kind: &str, database: &str, rows: &str, directory: &Directory) -> String {
    let page = std::fs::read_to_string("docs/move/identityserver.md").unwrap();
    let begins = format!("| {kind} | `rows() ");
    let query = page
        .lines()
        .find_map(|line| line.strip_prefix(&begins))
        .unwrap();
    let (_, script) = page.split_once("```sh\ntables=").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let script = format!(
        "DATABASE='{database}'\nrows() {}\ntables={}",
        query.strip_suffix("` |").unwrap(),
        script.replace(ROWS, rows)
    );
    shell(&script, &directory.0, b"");
    let mut made = "dump.json";
    if kind == "SQLite" {
        let mended = "jq -c . dump.json > mended.json";
        page.assert_says(mended);
        shell(mended, &directory.0, b"");
        made = "mended.json";
    }
    std::fs::read_to_string(directory.0.join(made)).unwrap()
}

/// How the page's script asks for the rows of a table.
const ROWS: &str = "rows $table)";

/// The page's way to ask for them where they are ABP's.
fn rows_of_abp() -> String {
    let page = std::fs::read_to_string("docs/move/identityserver.md").unwrap();
    let (_, way) = page.split_once("`rows $(echo").unwrap();
    let (way, _) = way.split_once('`').unwrap();
    format!("rows $(echo{way})")
}

/// With every value replaced for which there is another.
fn rewritten(value: &Value, other: &impl Fn(&Value) -> Option<Value>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| rewritten(item, other)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.clone(), rewritten(member, other)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            other(value).unwrap_or_else(|| value.clone())
        }
    }
}

pub fn gatepost(settings: &[(&str, &str)]) -> Gatepost {
    Gatepost::prepare(&[&[("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")], settings].concat())
}

pub fn import(gatepost: &Gatepost, arguments: &[&str], dump: &str) -> (Value, String) {
    let output = gatepost.run(&[&["import"], arguments, &["--all"]].concat(), dump);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{notes}");
    (serde_json::from_slice(&output.stdout).unwrap(), notes)
}

fn plan(gatepost: &Gatepost, document: &Value) -> (Option<i32>, String) {
    let output = gatepost.run(&["plan", "-"], &document.to_string());
    let said = String::from_utf8([output.stdout, output.stderr].concat());
    (output.status.code(), said.unwrap())
}

/// Applied, and exported with its links: neither changes anything when it is applied.
pub fn moves_in_for_good(gatepost: &Gatepost, document: &Value) {
    gatepost.run_well(&["apply", "-"], &document.to_string());
    let (code, said) = plan(gatepost, document);
    assert_eq!(code, Some(0), "{said}");
    let exported = gatepost.run_well(&["export", "--identities"], "");
    let applied = gatepost.run_well(&["apply", "-"], &exported);
    assert!(applied.contains("0 added, 0 changed"), "{applied}");
}

/// The `sub` that a user signs in to.
fn signs_in(
    gatepost: &Gatepost,
    client_id: &str,
    redirect_uri: &str,
    username: &str,
    password: &str,
) -> String {
    let mut browser = gatepost.browser();
    let path = authorize_path(client_id, redirect_uri, &[("scope", "openid")]);
    let page = browser.visit(&path);
    let answer = sign_in(&mut browser, &page, username, password);
    assert_eq!(answer.status, 303, "{username}: {}", answer.text());
    let answer = browser.get(&path);
    let asked = "SELECT password_hash FROM users WHERE username = $1::text";
    let stored: String = gatepost.database.value(asked, &[&username]);
    assert!(stored.starts_with(OWN_HASH), "{username}");
    redeemed(gatepost, client_id, redirect_uri, &answer.query()["code"])
}

/// The `sub` that a public client gets for a code.
fn redeemed(gatepost: &Gatepost, client_id: &str, redirect_uri: &str, code: &str) -> String {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", VERIFIER),
        ("client_id", client_id),
    ];
    let tokens = gatepost.post("/connect/token", &[], &form).json();
    let (_, claims) = verified(gatepost, text(&tokens, "id_token"));
    text(&claims, "sub").to_owned()
}

fn error_of(gatepost: &Gatepost, client_id: &str, secret: &str) -> Value {
    let form = [("grant_type", "refresh_token"), ("refresh_token", "x")];
    let header = basic(client_id, secret);
    let answer = gatepost.post("/connect/token", &[("Authorization", &header)], &form);
    answer.json()["error"].clone()
}

/// Renames the tables as ABP has them.
const TO_ABP: &str = r#"
sqlite3 is.db "SELECT name FROM sqlite_master WHERE type = 'table'" |
 while read -r name; do
 case $name in AspNet*) abp=Abp${name#AspNet};; *) abp=IdentityServer$name;; esac;
 sqlite3 is.db "ALTER TABLE \"$name\" RENAME TO \"$abp\"";
 done
"#;

/// What becomes of the same rows in each schema and as each database writes them.
fn imported_from_each_database(gatepost: &Gatepost, corp: &str) -> Vec<(Value, String)> {
    let arguments = ["identityserver", "-", "--issuer", corp];
    let mut imported = Vec::new();
    for schema in ["identityserver4-4.1", "duende-7"] {
        let sql = fixture(&format!("{schema}.sql")) + &fixture("identityserver-rows.sql");
        let postgres = TestDatabase::empty();
        postgres.client().batch_execute(&sql).unwrap();
        let directory = Directory::new(schema);
        // Bytes as .NET writes them, which are no UTF-8.
        let blob = "UPDATE \"AspNetUserPasskeys\" SET \"CredentialId\" = x'00ff8041';";
        shell("sqlite3 is.db", &directory.0, (sql + blob).as_bytes());
        let mut dumps = vec![
            dump("Postgres", &postgres.url, ROWS, &directory),
            dump("SQLite", "is.db", ROWS, &directory),
        ];
        shell(TO_ABP, &directory.0, b"");
        dumps.push(dump("SQLite", "is.db", &rows_of_abp(), &directory));
        imported.extend(dumps.iter().map(|dump| import(gatepost, &arguments, dump)));
    }
    // SQL Server writes bits as true and false and times with a T, MySQL bits as 0 and 1; others
    // numbers as texts.
    let for_json = fixture("identityserver-for-json.json");
    let rows: Value = serde_json::from_str(&for_json).unwrap();
    let as_bit = |value: &Value| value.as_bool().map(|bit| json!(u8::from(bit)));
    let bits = rewritten(&rows, &as_bit);
    let texts = rewritten(&rows, &|value| {
        (value.is_number() || value.is_boolean()).then(|| json!(value.to_string()))
    });
    for written in [for_json, bits.to_string(), texts.to_string()] {
        imported.push(import(gatepost, &arguments, &written));
    }
    imported
}

#[test]
fn an_identity_server_moves_with_its_clients_people_and_key() {
    let up = Upstream::start_with(Signer::es256("first"));
    let mut gatepost = gatepost(&[("GATEPOST_SCOPE_CLAIM", "array")]);
    let corp = format!("Corp={}", up.issuer());
    let imported = imported_from_each_database(&gatepost, &corp);
    let (document, notes) = imported[0].clone();
    for other in &imported {
        assert_eq!(*other, (document.clone(), notes.clone()));
    }
    for said in [
        "client mvc: a secret is left out: X509Thumbprint",
        "user bob: the second factor is left out",
        "user carol: sign-ins by Facebook are left out",
        "user carol: AspNetUserPasskeys: passkeys stay behind",
        "GATEPOST_SCOPE_CLAIM=array",
    ] {
        notes.assert_says(said);
    }

    // Nothing opens by accident.
    let (code, told) = plan(&gatepost, &document);
    assert_eq!(code, Some(1), "{told}");
    told.assert_says("names \"Corp\", which is not a registered identity provider");
    let google = json!({"name": "Google", "issuer": "https://accounts.google.com", "client_id": "x", "client_secret": "y"});
    let providers = json!({"identity_providers": [up.registration("Corp", json!({})), google]});
    gatepost.run_well(&["apply", "-"], &providers.to_string());
    let genrsa = "openssl genrsa -traditional 2048";
    let pem = shell(genrsa, &std::env::temp_dir(), b"");
    let pem = String::from_utf8(pem).unwrap();
    gatepost.run_well(&["key", "import", "-", "--kid", "A1B2RS256", "--now"], &pem);
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();

    // Clients.
    for client_id in ["client", "mvc", "hybrid", "console", "only-corp"] {
        let [right, wrong] =
            ["secret", "secret2"].map(|secret| error_of(&gatepost, client_id, secret));
        assert_ne!(right, "invalid_client", "{client_id}");
        assert_eq!(wrong, "invalid_client", "{client_id}");
    }
    let post = |client_id: &str, path: &str, form: &[(&str, &str)]| {
        let header = basic(client_id, "secret");
        gatepost
            .post(path, &[("Authorization", &header)], form)
            .json()
    };
    let form = [("grant_type", "client_credentials")];
    let answer = post("client", "/connect/token", &form);
    let token = text(&answer, "access_token");
    let (header, claims) = verified(&gatepost, token);
    assert_eq!(header["kid"], "A1B2RS256");
    assert_eq!(&claims["sub"], &Value::Null);
    assert_eq!(claims["client_tier"], "gold");
    assert_eq!(claims["client_unit"], json!(["a", "b"]));
    assert_eq!(claims["scope"], json!(["api1"]));
    assert_eq!(claims["aud"], "urn:api");
    let introspected = post("urn:api", "/connect/introspect", &[("token", token)]);
    assert_eq!(introspected["active"], true);

    // People, and who they were elsewhere.
    let sub = |last: u8| format!("5be86359-073c-434b-ad2d-a3932222dab{last}");
    let spa = "https://app.example/spa";
    for (last, username) in [(1, "alice"), (2, "bob"), (3, "carol")] {
        assert_eq!(
            signs_in(&gatepost, "spa", spa, username, PASSWORD),
            sub(last)
        );
    }
    let mut person = Traveller::new();
    let rp3 = "https://rp3.example/cb";
    let path = authorize_path("only-corp", rp3, &[("scope", "openid")]);
    let answer = person.visit(&format!("{}{path}", gatepost.base_url));
    let code = &answer.query()["code"];
    let redeemed = redeem_as(&gatepost, ("only-corp", "secret"), rp3, code);
    let (_, claims) = decode_jwt(text(&redeemed.json(), "id_token"));
    assert_eq!(claims["sub"], sub(1));

    // A token of the old server: good by the key set, and nothing to us.
    let directory = Directory::new("key");
    std::fs::write(directory.0.join("key.pem"), &pem).unwrap();
    let claims = json!({"iss": gatepost.base_url, "sub": sub(1), "aud": "urn:api", "exp": now() + 600, "scope": ["openid"]});
    let header = json!({"alg": "RS256", "kid": "A1B2RS256", "typ": "at+jwt"});
    let old = forge(&header, &claims, |input| {
        shell("openssl dgst -sha256 -sign key.pem", &directory.0, input)
    });
    assert_eq!(verified(&gatepost, &old).1["sub"], sub(1));
    assert_eq!(userinfo(&gatepost, &old).status, 401);
}

/// The values of all members with one of these names.
fn values_of(value: &Value, names: &[&str]) -> Vec<String> {
    match value {
        Value::Array(items) => items
            .iter()
            .flat_map(|item| values_of(item, names))
            .collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, member)| match member {
                Value::String(text) if names.contains(&name.as_str()) => vec![text.clone()],
                Value::Array(items) if names.contains(&name.as_str()) => {
                    let texts = items.iter().filter_map(Value::as_str);
                    texts.map(str::to_owned).collect()
                }
                other => values_of(other, names),
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn people_of_a_realm_sign_in_by_the_same_address_as_before() {
    let mut gatepost = gatepost(&[("GATEPOST_SIGN_IN_WITH", "username,email")]);
    let mut realm: Value = serde_json::from_str(&fixture("keycloak-realm.json")).unwrap();
    let users = realm["users"].as_array_mut().unwrap();
    let shared = json!("CAROL@shop.example");
    let dan = users.iter_mut().find(|user| user["username"] == "dan");
    dan.unwrap()["email"] = shared;
    let (doubting, notes) = import(&gatepost, &["keycloak", "-"], &realm.to_string());
    assert!(notes.contains("1 that several users have"), "{notes}");
    let trusting = ["keycloak", "-", "--trust-email"];
    let (document, notes) = import(&gatepost, &trusting, &realm.to_string());
    assert!(notes.contains("0 that are not verified"), "{notes}");
    let is_verified = |document: &Value, name: &str| {
        let users = document["users"].as_array().unwrap();
        let user = users.iter().find(|user| user["username"] == name).unwrap();
        user["claims"]["email_verified"].clone()
    };
    assert_eq!(is_verified(&doubting, "jack"), false);
    assert_eq!(is_verified(&document, "jack"), true);
    gatepost.run_well(&["apply", "-"], &document.to_string());
    gatepost.serve();
    let spa = ("orders-spa", "https://spa.example/callback");
    let signs_in = |typed: &str, password: &str| {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path(spa.0, spa.1, &[("scope", "openid")]));
        sign_in(&mut browser, &page, typed, password).status == 303
    };
    let usual = "a password of the fixture";
    assert!(signs_in("bob@shop.example", "bob's own long password"));
    assert!(signs_in("Jack@shop.example", usual));
    assert!(signs_in("carol", usual) && !signs_in("carol@shop.example", usual));
}

#[test]
fn a_realm_file_that_somebody_wrote_moves_in_with_its_passwords_and_names() {
    let mut gatepost = gatepost(&[]);
    let password = "correct horse battery";
    let client = |name: &str| json!({"clientId": name, "publicClient": true, "redirectUris": ["https://shop.example/cb"]});
    let realm = json!({
        "realm": "shop", "clients": [client("My shop"), client("b\u{fc}cher"), client(&"x".repeat(201))],
        "users": [{"username": "ada", "email": "ada@shop.example", "credentials": [{"type": "password", "value": password}]}],
    });
    let (document, notes) = import(&gatepost, &["keycloak", "-"], &realm.to_string());
    assert_eq!(document["clients"].as_array().unwrap().len(), 1, "{notes}");
    notes.assert_says("client b\u{fc}cher, client x");
    notes.assert_says("x: left out: client_id must be");
    assert!(!notes.contains(password), "{notes}");
    let (code, text) = plan(&gatepost, &document);
    assert!(code == Some(3), "{text}");
    text.assert_says("+ client \"My shop\"\n");
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();
    let shop = ("My shop", "https://shop.example/cb");
    let sub = signs_in(&gatepost, shop.0, shop.1, "ada", password);
    let shown = gatepost.run_well(&["user", "show", "ada", "--json"], "");
    assert!(shown.contains(&sub), "{shown}");
    let listed = gatepost.run_well(&["client", "list"], "");
    assert!(listed.contains("\n\"My shop\"  "), "{listed}");
    let tested = gatepost.run_well(&["client", "test", "My shop"], "");
    assert!(tested.contains("client_id=My+shop&"), "{tested}");
    let told = gatepost.run_well(&["audit", "list", "--event", "code_redeemed"], "");
    assert!(told.contains("  \"My shop\"  "), "{told}");
    let revoked = gatepost.run(&["client", "revoke", "My shop"], "");
    let revoked = String::from_utf8(revoked.stdout).unwrap();
    revoked.assert_says("tokens of \"My shop\" are over");
}

/// The realm's own key, as the page takes it out of the export, among others that are not meant.
fn key_of(realm: &mut Value) -> String {
    let providers = &mut realm["components"]["org.keycloak.keys.KeyProvider"];
    let providers = providers.as_array_mut().unwrap();
    let is_generated = |one: &&Value| one["providerId"] == "rsa-generated";
    let signing = providers.iter().find(is_generated).unwrap().clone();
    let certificate = signing["config"]["certificate"][0].as_str().unwrap();
    let key = signing["config"]["privateKey"][0].as_str().unwrap();
    let other = |changed: Value| {
        let mut other = signing.clone();
        other["config"]["privateKey"] = json!(["another"]);
        let config = other["config"].as_object_mut().unwrap();
        config.extend(changed.as_object().unwrap().clone());
        other
    };
    providers.insert(0, other(json!({"priority": ["50"]})));
    providers.extend([
        other(json!({"priority": ["200"], "keyUse": ["enc"], "algorithm": ["RSA-OAEP"]})),
        other(json!({"priority": ["200"], "algorithm": ["PS256"]})),
        other(json!({"priority": ["200"], "active": ["false"]})),
    ]);
    let page = std::fs::read_to_string("docs/move/keycloak.md").unwrap();
    let (_, commands) = page.split_once("   jq -r ").unwrap();
    let (commands, _) = commands.split_once("   sudo ").unwrap();
    let directory = Directory::new("key");
    std::fs::write(directory.0.join("realm.json"), realm.to_string()).unwrap();
    let script = format!("jq -r {commands}\nprintf %s \"$KID\"");
    let kid = String::from_utf8(shell(&script, &directory.0, b"")).unwrap();
    let of_certificate = format!(
        "echo {certificate} | base64 -d | openssl x509 -inform DER -pubkey -noout \\
         | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | basenc --base64url | tr -d '=\\n'"
    );
    let expected = shell(&of_certificate, &directory.0, b"");
    assert_eq!(kid, String::from_utf8(expected).unwrap());
    let pem = std::fs::read_to_string(directory.0.join("key.pem")).unwrap();
    assert!(pem.contains(key), "{pem}");
    pem
}

/// Exported by Keycloak itself; only the other provider is one that the test can ask.
#[test]
fn a_realm_of_keycloak_moves_with_its_clients_and_people() {
    let up = Upstream::start_with(Signer::es256("first"));
    let mut gatepost = gatepost(&[]);
    let mut realm: Value = serde_json::from_str(&fixture("keycloak-realm.json")).unwrap();
    let config = &mut realm["identityProviders"][0]["config"];
    assert_eq!(config["clientSecret"], "partner-secret");
    for (key, value) in [
        ("issuer", up.issuer()),
        ("clientId", CLIENT_ID),
        ("clientSecret", CLIENT_SECRET),
    ] {
        config[key] = json!(value);
    }
    let subject = &mut realm["users"][1]["federatedIdentities"][0]["userId"];
    assert_eq!(subject.take(), "partner-4711");
    *subject = json!(SUBJECT);
    let (document, notes) = import(&gatepost, &["keycloak", "-"], &realm.to_string());
    let wildcard = "client orders-web: number 2 of redirect_uris is left out: ";
    for said in [
        wildcard,
        "people sign in by e-mail address there, too: set GATEPOST_SIGN_IN_WITH=username,email",
        "1 that are not verified",
        "client orders-web, client signed, client tv: set, as there: access_token_typ JWT",
        "client reports: webOrigins * is left out",
        "user jack: was to confirm the e-mail address first",
        "group /staff: attributes",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    notes.assert_says_not("second factor");
    notes.assert_says_not("the password");
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();

    let secret = "orders-web-secret-0123456789abcdef";
    assert_eq!(error_of(&gatepost, "orders-web", secret), "invalid_grant");
    assert_eq!(
        error_of(&gatepost, "orders-web", "another"),
        "invalid_client"
    );
    let form = [("grant_type", "client_credentials")];
    let answer = gatepost
        .post(
            "/connect/token",
            &[("Authorization", &basic("orders-web", secret))],
            &form,
        )
        .json();
    assert_eq!(
        verified(&gatepost, answer["access_token"].as_str().unwrap()).0["typ"],
        "JWT"
    );

    // No line has a secret, and the document no private key.
    let keys = ["privateKey", "ecdsaPrivateKey", "saml.signing.private.key"];
    let private = values_of(&realm, &keys);
    let secrets = values_of(&realm, &["secret", "clientSecret", "secretData"]);
    assert!(private.len() >= 4 && secrets.len() >= 20);
    for key in &private {
        assert!(!document.to_string().contains(key.as_str()));
    }
    for secret in private.iter().chain(&secrets) {
        assert!(!notes.contains(secret.as_str()), "{notes}");
    }
    let pem = key_of(&mut realm);
    gatepost.run_well(&["key", "import", "-", "--kid", "realm", "--now"], &pem);

    let spa = ("orders-spa", "https://spa.example/callback");
    let bob = "a8c80f4a-026d-4e3e-b882-080c65ca0c16";
    assert_eq!(
        signs_in(&gatepost, spa.0, spa.1, "bob", "bob's own long password"),
        bob
    );
    let link = "SELECT sub FROM linked_identities WHERE issuer = $1 AND upstream_subject = $2 AND provider = 'partner'";
    let linked: String = gatepost.database.value(link, &[&up.issuer(), &SUBJECT]);
    assert_eq!(linked, bob);
    let through = [("scope", "openid"), ("acr_values", "idp:partner")];
    let answer = Traveller::new().visit(&format!(
        "{}{}",
        gatepost.base_url,
        authorize_path(spa.0, spa.1, &through)
    ));
    assert_eq!(
        redeemed(&gatepost, spa.0, spa.1, &answer.query()["code"]),
        bob
    );

    // Her password alone does not do.
    let path = authorize_path(spa.0, spa.1, &[("scope", "openid")]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&path);
    let page = sign_in(&mut browser, &page, "alice", "correct horse battery staple");
    page.assert_status(200);
    assert!(page.text().contains("name=\"code\""), "{}", page.text());
    let phone = Phone::with_key(String::from("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"), 0);
    let code = phone.code(0);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    browser.submit(&page, &[("code", wrong)]).assert_status(200);
    browser.submit(&page, &[("code", &code)]).assert_status(303);
    let answer = browser.get(&path);
    let sub = redeemed(&gatepost, spa.0, spa.1, &answer.query()["code"]);
    assert_eq!(sub, "1a2c9f09-3f49-4356-919e-ab08aa51e6f5");
    let asked = "SELECT password_hash, claims -> 'role' FROM users WHERE username = 'alice'";
    let row = gatepost.database.client().query_one(asked, &[]).unwrap();
    // It had another cost than ours.
    assert!(row.get::<_, &str>(0).starts_with(OWN_HASH));
    let roles = json!([
        "employee",
        "orders-web/approver",
        "orders-web/buyer",
        "customer"
    ]);
    assert_eq!(row.get::<_, Value>(1), roles);
    // A document changes no factor, and an export tells none.
    let exported = gatepost.run_line("export --identities");
    exported.assert_says_not("totp");
    let added = "audit_events WHERE event = 'factor_added'";
    gatepost.database.assert_count(added, 1);
    let bad = json!({"users": [{"username": "eve", "totp": "GEZDGNBV"}]});
    let (code, text) = plan(&gatepost, &bad);
    assert!(code == Some(1), "{text}");
    text.assert_says("users[0] (eve).totp: must be 16 to 64 bytes in base32");
}

/// What is no dump of an IdentityServer, and what is said of it.
const NO_DUMPS: &str = r#"
                                                                    | is empty
SELECT                                                              | is not JSON
{"Clients": [{"Id": 1                                               | is not JSON
[]                                                                  | expected an object
{}                                                                  | it has none of Clients
{"Clients": {}}                                                     | dump.Clients: expected an array, found an object
{"Clients": ["web"]}                                                | Clients[0]: expected an object
{"Clients": [{"Id": 1}]}                                            | Clients[0]: has no ClientId
{"Clients": [{"Id": 1, "ClientId": "c1"}, {"Id": 1, "ClientId": "c1"}]} | Clients[1]: has the Id of another row
{"Clients": [{"ClientId": "c", "Enabled": "maybe"}]}                | Enabled: is neither false nor true
{"Clients": [{"ClientId": "c", "AccessTokenLifetime": "soon"}]}     | is no number of seconds
{"Clients": [{"ClientId": "c", "AccessTokenType": "Paper"}]}        | is neither Jwt nor Reference
{"Clients": [{"ClientId": "c", "RedirectUris": "x"}]}               | RedirectUris: expected an array
{"Clients": [{"Id": 1, "ClientId": "c1"}], "ClientIdPRestrictions": [{"Provider": "Corp"}]}
                                                                    | ClientIdPRestrictions[0]: has no ClientId
{"AspNetUsers": [{"UserName": "a"}]}                                | AspNetUsers[0]: has no Id
"#;

/// The same of realms.
const NO_REALMS: &str = r#"
{"realm": "x", "users": [{}                                         | is not JSON
[]                                                                  | it is an array, as of several realms
{"clients": []}                                                     | has no realm
{"realm": "x", "users": [{"id": "a"}]}                              | users[0]: has no username
{"realm": "x", "clients": [{"clientId": "a", "attributes": 1}]}     | attributes: expected an object
"#;

#[test]
fn what_is_no_dump_is_refused_with_its_place() {
    let gatepost = gatepost(&[]);
    let refused = |arguments: &[&str], dump: &str| {
        let output = gatepost.run(&[&["import"], arguments].concat(), dump);
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let row = |id: u8| json!({"Id": id, "ClientId": format!("c{id}")});
    for (kind, table) in [("identityserver", NO_DUMPS), ("keycloak", NO_REALMS)] {
        for [dump, rule] in rows_of(table) {
            let (code, text) = refused(&[kind, "-"], dump);
            assert_eq!(code, Some(1), "{dump}: {text}");
            text.assert_says_for(dump, rule);
        }
    }
    for issuer in ["Corp", "=https://x.example", "Corp="] {
        let (code, text) = refused(&["identityserver", "-", "--issuer", issuer], "{}");
        assert_eq!(code, Some(2), "{issuer}: {text}");
    }
    // What `plan` would refuse is left out.
    let nul =
        json!({"Clients": [{"ClientId": "c\0", "AllowedGrantTypes": ["client_credentials"]}]});
    let twice = json!({"Clients": [row(1), {"Id": 2, "ClientId": "c1"}]});
    for (dump, rule) in [
        (nul, "must be 1 to 200 printable ASCII"),
        (twice, "is the same as that of clients[0]"),
    ] {
        let (document, notes) = import(&gatepost, &["identityserver", "-"], &dump.to_string());
        notes.assert_says(&format!("left out: client_id {rule}"));
        let (code, text) = plan(&gatepost, &document);
        assert_ne!(code, Some(1), "{text}");
    }
    // Large ones are read whole, up to a limit.
    let directory = Directory::new("large");
    let large = directory.0.join("large.json");
    let mut file = std::fs::File::create(&large).unwrap();
    file.write_all(b"{\"Clients\": [], \"Other\": \"").unwrap();
    (0..200).for_each(|_| file.write_all(&[b'x'; 1_048_576]).unwrap());
    file.write_all(b"\"}").unwrap();
    assert_eq!(
        import(&gatepost, &["identityserver", large.to_str().unwrap()], "").0,
        json!({})
    );
    file.set_len(257 * 1_048_576).unwrap();
    let (code, text) = refused(&["identityserver", large.to_str().unwrap()], "");
    assert!(code == Some(1), "{text}");
    text.assert_says("has more than 256 MiB");
}
