//! What Keycloak's tokens said before the move, ours say after it, or a line of the import says
//! what became of it. The realm and the tokens were recorded from Keycloak itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::moving_in::{fixture, gatepost, import, moves_in_for_good};
use crate::support::device;
use crate::support::flow::{
    VERIFIER, authorize_path, basic, decode_jwt, issued, sign_in, userinfo,
};
use crate::support::gatepost::Gatepost;
use crate::support::http::{Answer, Browser};
use crate::support::phone::Phone;
use crate::support::signer::{Signer, now};

const ALICE_KEY: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

/// The secrets and redirect URIs of the clients that people sign in to.
const CLIENTS: [(&str, &str, &str); 5] = [
    (
        "orders-web",
        "orders-web-secret-0123456789abcdef",
        "https://orders.example/callback",
    ),
    ("orders-spa", "", "https://spa.example/callback"),
    (
        "reports",
        "reports-secret-0123456789abcdefghi",
        "https://reports.example/cb",
    ),
    ("legacy", "", "https://legacy.example/cb"),
    (
        "narrow",
        "narrow-secret-0123456789abcdefghij",
        "https://narrow.example/cb",
    ),
];

/// What a line of the import tells about.
#[derive(Clone, Copy)]
struct Told {
    claim: &'static str,
    /// `""` is every client.
    client: &'static str,
    line: &'static str,
}

const fn told(client: &'static str, claim: &'static str, line: &'static str) -> Told {
    Told {
        claim,
        client,
        line,
    }
}

const WITHOUT_AZP: &str = "tokens have no azp";

/// Claims that UserInfo or ID tokens do not have as they had.
const IN_USERINFO: [Told; 4] = [
    told("", "azp", WITHOUT_AZP),
    told("", "acr", "scope acr: has no claims here"),
    told("reports", "tier", "tier is in access tokens alone here"),
    told(
        "",
        "region",
        "scope orders: its claims are in access tokens alone",
    ),
];

const ROLES: &str = "roles are the claim role";
const NOT_IN_ACCESS_TOKENS: &str = "and not in access tokens as there";

/// The same of access tokens.
const IN_ACCESS_TOKENS: [Told; 13] = [
    told("", "azp", WITHOUT_AZP),
    told("", "acr", "scope acr: has no claims here"),
    told(
        "",
        "allowed-origins",
        "There it gave allowed-origins in access tokens",
    ),
    told("", "realm_access", ROLES),
    told("", "resource_access", ROLES),
    told("", "name", NOT_IN_ACCESS_TOKENS),
    told("", "given_name", NOT_IN_ACCESS_TOKENS),
    told("", "family_name", NOT_IN_ACCESS_TOKENS),
    told("", "preferred_username", NOT_IN_ACCESS_TOKENS),
    told("", "email", NOT_IN_ACCESS_TOKENS),
    told("", "email_verified", NOT_IN_ACCESS_TOKENS),
    told("", "groups", "scope memberships"),
    told("", "department", "scope department"),
];

/// The same of those that clients get for themselves.
const IN_OWN_TOKENS: [Told; 3] = [
    told("", "sub", "its own tokens have its client_id as sub"),
    told("", "clientHost", "scope service_account: has no claims"),
    told("", "clientAddress", "scope service_account: has no claims"),
];

struct Moved {
    gatepost: Gatepost,
    notes: String,
}

impl Moved {
    /// Each claim of theirs is ours, or told of.
    fn compare(&self, record: &Value, kind: &str, ours: &Value, lines: &[Told]) {
        let client = record["client"].as_str().unwrap();
        for (name, theirs) in record[kind].as_object().unwrap() {
            // These are compared by themselves: here `scope` has what is added.
            if ["aud", "scope"].contains(&name.as_str()) || ours.get(name) == Some(theirs) {
                continue;
            }
            let about = |told: &&Told| {
                told.claim == name && (told.client.is_empty() || told.client == client)
            };
            let line = lines.iter().find(about).map(|told| told.line);
            assert!(
                line.is_some_and(|line| self.notes.contains(line)),
                "{kind} {name}: {theirs} became {:?} without a line: {record}",
                ours.get(name)
            );
        }
    }
}

fn words(text: &Value) -> BTreeSet<String> {
    let text = text.as_str().unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A claim with one text or several.
fn texts(value: &Value) -> BTreeSet<String> {
    let items = value.as_array().cloned();
    let items = items.unwrap_or_else(|| vec![value.clone()]);
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The roles of their access token, as one list.
fn roles(access_token: &Value) -> BTreeSet<String> {
    let own = ["offline_access", "uma_authorization", "default-roles-shop"];
    let mut all = texts(&access_token["realm_access"]["roles"]);
    all.retain(|role| !own.contains(&role.as_str()));
    let of_clients = access_token["resource_access"].as_object();
    for (client, roles) in of_clients.into_iter().flatten() {
        if client != "account" {
            let roles = texts(&roles["roles"]);
            all.extend(roles.iter().map(|role| format!("{client}/{role}")));
        }
    }
    all
}

/// Each audience of an access token of theirs is one of ours, which has no other, or a client that
/// came by a role, of which a line tells.
fn compare_audiences(moved: &Moved, theirs: &Value, ours: &Value) {
    let theirs = texts(&theirs["aud"]);
    let mut here = texts(&ours["aud"]);
    here.retain(|audience| !audience.ends_with("/resources"));
    assert!(here.is_subset(&theirs), "{here:?}: {theirs:?}");
    let mut lost = theirs.difference(&here);
    let line = "scope roles: aud of access tokens named the clients of whose roles";
    let is_told = |client: &String| !client.contains("://") && moved.notes.contains(line);
    assert!(lost.all(is_told), "{here:?}: {theirs:?}: {}", moved.notes);
}

fn signed_in(gatepost: &Gatepost, username: &str) -> Browser {
    let password = match username {
        "alice" => "correct horse battery staple",
        "bob" => "bob's own long password",
        _ => "a password of the fixture",
    };
    let mut browser = gatepost.browser();
    let (client, _, uri) = CLIENTS[1];
    let page = browser.visit(&authorize_path(client, uri, &[("scope", "openid")]));
    let answer = sign_in(&mut browser, &page, username, password);
    let answer = match username {
        "alice" => {
            let phone = Phone::with_key(String::from(ALICE_KEY), 0);
            browser.submit(&answer, &[("code", &phone.code(0))])
        }
        _ => answer,
    };
    assert_eq!(answer.status, 303, "{username}: {}", answer.text());
    browser
}

fn tokens_of(gatepost: &Gatepost, browser: &mut Browser, client: &str, scope: &str) -> Value {
    let client = CLIENTS.iter().find(|(name, ..)| *name == client).unwrap();
    tokens_by_code(gatepost, browser, *client, scope)
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// By a client with that secret, or signed assertion, and redirect URI.
fn tokens_by_code(
    gatepost: &Gatepost,
    browser: &mut Browser,
    client: (&str, &str, &str),
    scope: &str,
) -> Value {
    let (client, secret, uri) = client;
    let mut answer: Answer = browser.visit(&authorize_path(client, uri, &[("scope", scope)]));
    if answer.status == 200 {
        let scopes: Vec<&str> = vec!["profile", "email"];
        answer = browser.decide(&answer, "allow", &scopes, false);
    }
    let code = answer.query()["code"].clone();
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", uri),
        ("code_verifier", VERIFIER),
        ("client_id", client),
    ];
    if secret.matches('.').count() == 2 {
        let assertion = [
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", secret),
        ];
        return issued(&gatepost.post("/connect/token", &[], &[&form[..], &assertion].concat()));
    }
    let authorization = basic(client, secret);
    let header = [("Authorization", authorization.as_str())];
    let header: &[(&str, &str)] = if secret.is_empty() { &[] } else { &header };
    issued(&gatepost.post("/connect/token", header, &form))
}

/// The tokens that somebody got by a client.
fn of_a_person(moved: &Moved, record: &Value, issued: &Value) {
    let access_token = issued["access_token"].as_str().unwrap();
    let told = userinfo(&moved.gatepost, access_token).json();
    let id_token = decode_jwt(issued["id_token"].as_str().unwrap()).1;
    let access_token = decode_jwt(access_token).1;
    moved.compare(record, "userinfo", &told, &IN_USERINFO);
    moved.compare(record, "id_token", &id_token, &IN_USERINFO);
    moved.compare(record, "access_token", &access_token, &IN_ACCESS_TOKENS);
    let theirs = &record["access_token"];
    assert_eq!(id_token["aud"], record["client"]);
    assert!(words(&issued["scope"]).is_superset(&words(&record["scope"])));
    compare_audiences(moved, theirs, &access_token);
    // The tokens of `narrow` had some of the roles alone: it has none here, and its line.
    if record["client"] == "narrow" {
        assert_eq!(told.get("role"), None, "{record}");
    } else {
        assert_eq!(texts(&told["role"]), roles(theirs), "{record}");
    }
}

/// `tv` (by a device) and `signed` (by its keys) are not among the recorded clients. They have the
/// scopes of `legacy`, no mappers and all roles, so Keycloak gives by them what it gives by
/// `legacy`. The keys of `signed` are at an address; here they stand in the realm. The other clients of the realm bring no tokens: `warehouse` is an API, and the last one
/// speaks SAML.
#[test]
fn clients_that_were_not_recorded_give_what_another_like_them_gave() {
    let mut gatepost = gatepost(&[]);
    let realm = fixture("keycloak-realm.json");
    let (document, _) = import(&gatepost, &["keycloak", "-"], &realm);
    let signed = |document: &Value| {
        let mut clients = document["clients"].as_array().unwrap().iter();
        let signed = clients.find(|client| client["client_id"] == "signed");
        signed.unwrap().clone()
    };
    let by_address = signed(&document);
    assert_eq!(by_address["jwks_uri"], "https://signed.example/jwks");
    assert_eq!(by_address["token_endpoint_auth_method"], "private_key_jwt");
    let mut realm: Value = serde_json::from_str(&realm).unwrap();
    let signer = Signer::rs256("first");
    let clients = realm["clients"].as_array_mut().unwrap();
    let theirs = clients
        .iter_mut()
        .find(|client| client["clientId"] == "signed");
    let attributes = &mut theirs.unwrap()["attributes"];
    attributes["use.jwks.url"] = json!("false");
    attributes["use.jwks.string"] = json!("true");
    attributes["jwks.string"] = json!(json!({ "keys": [signer.jwk()] }).to_string());
    let (document, notes) = import(&gatepost, &["keycloak", "-"], &realm.to_string());
    assert_eq!(signed(&document)["jwks"]["keys"][0]["kid"], "first");
    let of_tokens = |client_id: &str| {
        let mut clients = realm["clients"].as_array().unwrap().iter();
        let client = clients.find(|client| client["clientId"] == client_id);
        let keys = [
            "protocolMappers",
            "defaultClientScopes",
            "optionalClientScopes",
            "fullScopeAllowed",
        ];
        keys.map(|key| client.unwrap().get(key).cloned())
    };
    for client_id in ["tv", "signed"] {
        assert_eq!(of_tokens(client_id), of_tokens("legacy"));
    }
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();
    let moved = Moved { gatepost, notes };
    let records: Vec<Value> = serde_json::from_str(&fixture("keycloak-tokens.json")).unwrap();
    let of_legacy = records.iter().filter(|record| record["client"] == "legacy");
    let mut seen = 0;
    for record in of_legacy {
        let username = record["user"].as_str().unwrap();
        let mut browser = signed_in(&moved.gatepost, username);
        let claims = json!({"iss": "signed", "sub": "signed", "aud": moved.gatepost.base_url, "exp": now() + 60, "jti": username});
        let assertion = signer.sign(&claims);
        let code = ("signed", assertion.as_str(), "https://signed.example/cb");
        let by_code = tokens_by_code(&moved.gatepost, &mut browser, code, "openid");
        let by_device = tokens_by_device(&moved.gatepost, &mut browser);
        for (client, issued) in [("signed", by_code), ("tv", by_device)] {
            let mut record = record.clone();
            record["client"] = json!(client);
            of_a_person(&moved, &record, &issued);
            seen += 1;
        }
    }
    assert_eq!(seen, 4);
}

fn tokens_by_device(gatepost: &Gatepost, browser: &mut Browser) -> Value {
    let started = device::start(gatepost, "tv", &[("scope", "openid")]);
    let page = device::enter(browser, device::user_code(&started));
    let scopes = ["profile", "email", "roles"];
    let done = device::decide(browser, &page, "allow", &scopes);
    assert_eq!(done.status, 200, "{}", done.text());
    issued(&device::poll(gatepost, "tv", &started))
}

#[test]
fn what_tokens_of_keycloak_said_ours_say_or_a_line_tells() {
    let mut gatepost = gatepost(&[]);
    let (document, notes) = import(
        &gatepost,
        &["keycloak", "-"],
        &fixture("keycloak-realm.json"),
    );
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();
    let moved = Moved { gatepost, notes };
    let records: Vec<Value> = serde_json::from_str(&fixture("keycloak-tokens.json")).unwrap();
    let mut browsers: BTreeMap<String, Browser> = BTreeMap::new();
    let mut clients = BTreeSet::new();
    for record in &records {
        let client = record["client"].as_str().unwrap();
        clients.insert(client);
        let Some(username) = record["user"].as_str() else {
            of_the_client(&moved, record, client);
            continue;
        };
        let browser = browsers
            .entry(username.to_owned())
            .or_insert_with(|| signed_in(&moved.gatepost, username));
        let asked = record["asked"].as_str().unwrap();
        let issued = tokens_of(&moved.gatepost, browser, client, asked);
        of_a_person(&moved, record, &issued);
    }
    assert_eq!((browsers.len(), clients.len()), (10, 6));
    let line = "client narrow: left out of scope: roles: there it was for these roles alone: none";
    assert!(moved.notes.contains(line), "{}", moved.notes);
}

/// The lines about requests that come by no browser say what happens.
#[test]
fn a_request_for_a_password_gets_what_the_lines_say() {
    let mut gatepost = gatepost(&[]);
    let mut realm: Value = serde_json::from_str(&fixture("keycloak-realm.json")).unwrap();
    let clients = realm["clients"].as_array_mut().unwrap();
    for client in clients {
        client["directAccessGrantsEnabled"] = json!(client["clientId"] == "orders-web");
    }
    let (document, notes) = import(&gatepost, &["keycloak", "-"], &realm.to_string());
    for line in [
        "client orders-web: the grant password gives the scopes that the request names",
        "client orders-web: the grant password refuses people who have a second factor",
        "orders-web, client tv: a request to the token or device endpoint that names no scope gets all",
    ] {
        assert!(notes.contains(line), "{line}: {notes}");
    }
    gatepost.run_well(&["apply", "-"], &document.to_string());
    gatepost.serve();
    let (client, secret, _) = CLIENTS[0];
    let authorization = basic(client, secret);
    let header = [("Authorization", authorization.as_str())];
    let answer = |username: &str, password: &str, more: &[(&str, &str)]| {
        let form = [
            ("grant_type", "password"),
            ("username", username),
            ("password", password),
        ];
        gatepost.post("/connect/token", &header, &[&form, more].concat())
    };
    let bob = |more: &[(&str, &str)]| {
        let answer = answer("bob", "bob's own long password", more);
        words(&issued(&answer)["scope"])
    };
    let asked = bob(&[("scope", "openid email")]);
    assert_eq!(asked, words(&json!("openid email")));
    let ours = document["clients"].as_array().unwrap().iter();
    let ours = ours.clone().find(|ours| ours["client_id"] == client);
    assert_eq!(bob(&[]), words(&ours.unwrap()["scope"]));
    let refused = answer("alice", "correct horse battery staple", &[]);
    assert_eq!(refused.json()["error"], "invalid_grant");
}

/// The token of a client for itself.
fn of_the_client(moved: &Moved, record: &Value, client: &str) {
    let secret = format!("{client}-secret-0123456789abcdefghijklmn");
    let length = "orders-web-secret-0123456789abcdef".len();
    let authorization = basic(client, &secret[..length]);
    let form = [("grant_type", "client_credentials")];
    let header = [("Authorization", authorization.as_str())];
    let answer = issued(&moved.gatepost.post("/connect/token", &header, &form));
    let claims = decode_jwt(answer["access_token"].as_str().unwrap()).1;
    let theirs = &record["access_token"];
    let lines = [IN_ACCESS_TOKENS.as_slice(), &IN_OWN_TOKENS].concat();
    moved.compare(record, "access_token", &claims, &lines);
    if client == "jobs" {
        assert_eq!(texts(&claims["role"]), roles(theirs));
        compare_audiences(moved, theirs, &claims);
        assert_eq!(claims["sub"], json!("jobs"));
    } else {
        assert_eq!(claims.get("role"), None);
        assert!(moved.notes.contains("its service account had these roles"));
    }
}
