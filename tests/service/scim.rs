//! Users over SCIM (RFC 7643, RFC 7644, RFC 9865), as Entra, Okta and scripts look after them.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::changed_members;
use crate::support::flow::{
    access_token, authorize_path, issued, sign_in, signed_in, text, tokens, userinfo, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1};
use crate::support::http::{Answer, encode};
use crate::support::mailbox::Mailbox;
use crate::support::phone::add_app;
use crate::support::scim::{
    ALL_SCOPES, ON, PATCH, Program, USER, registered, shared, start, token_of, user_names,
};
use crate::support::tables::cases;
use crate::support::waiting::{SOON, all_at_once, await_that};

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const OURS: &str = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User";
const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const PASSWORD: &str = "dana's rather long password";

fn assert_error(answer: &Answer, status: u16, scim_type: Option<&str>, case: &str) {
    assert_eq!(answer.status, status, "{case}: {}", answer.text());
    answer.assert_header_for(case, "content-type", "application/scim+json");
    let error = answer.json();
    assert_eq!(error["schemas"], json!([ERROR]), "{case}");
    assert_eq!(error["status"], json!(status.to_string()), "{case}");
    assert_eq!(error["scimType"].as_str(), scim_type, "{case}: {error}");
}

fn assert_invalid(answer: &Answer, case: &str) {
    assert_error(answer, 400, Some("invalidValue"), case);
}

#[test]
fn it_is_not_there_unless_it_is_switched_on() {
    let mut gatepost = Gatepost::start_with(&registered(), &[]);
    for path in ["Users", "ServiceProviderConfig", "Schemas", "Bulk"] {
        assert_error(&Program::hr(&gatepost).get(path), 404, None, path);
    }
    let told = |gatepost: &Gatepost| {
        let output = gatepost.run(&["client", "test", "hr"], "");
        String::from_utf8(output.stdout).unwrap()
    };
    let off = "fails it may ask for the scopes of SCIM, and GATEPOST_SCIM is off";
    assert!(told(&gatepost).contains(off), "{}", told(&gatepost));
    gatepost.set("GATEPOST_SCIM", "on");
    assert!(!told(&gatepost).contains("SCIM"), "{}", told(&gatepost));
}

#[test]
fn a_scope_that_was_taken_away_is_gone_from_the_tokens_that_have_it() {
    let gatepost = start();
    let hr = Program::hr(&gatepost);
    assert_eq!(hr.get("Users").status, 200);
    let mut document = registered();
    let clients = document["clients"].as_array_mut().unwrap();
    clients.retain(|client| client["client_id"] == "hr");
    clients[0]["scope"] = json!("scim.write");
    let less = json!({"clients": clients});
    gatepost.run_well(&["apply", "-"], &less.to_string());
    gatepost.settle();
    assert_error(&hr.get("Users"), 403, None, "taken away");
}

#[test]
fn only_a_program_with_the_right_token_is_let_in() {
    let gatepost = shared();
    let ask = |token: &str, method: &str| {
        let body = json!({"schemas": [USER], "userName": "x"});
        Program::with(&gatepost, token).ask(method, "Users", &body)
    };
    let bare = gatepost.get("/scim/v2/Users");
    assert_error(&bare, 401, None, "no token");
    let challenges = bare.headers_named("www-authenticate");
    let dpop = "DPoP algs=\"ES256 EdDSA Ed25519\"";
    assert_eq!(challenges, ["Bearer realm=\"gatepost\"", dpop]);
    assert_error(&ask("nonsense", "GET"), 401, None, "no token of ours");
    let other = token_of(&gatepost, "service", "orders.read");
    assert_error(&ask(&other, "GET"), 401, None, "another resource");
    let read = token_of(&gatepost, "hr", "scim.read");
    assert_eq!(ask(&read, "GET").status, 200);
    let refused = ask(&read, "POST");
    assert_error(&refused, 403, None, "may only read");
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("scope=\"scim.write\""), "{challenge}");
    assert!(!challenge.contains("openid"), "{challenge}");
    refused.assert_says("scope scim.write");
    let write = token_of(&gatepost, "hr", "scim.write");
    assert_error(&ask(&write, "GET"), 403, None, "may only write");
    let mut browser = signed_in(&gatepost);
    let of_user = tokens(&gatepost, &mut browser, "app", "openid scim.read");
    let of_user = text(&of_user, "access_token");
    assert_error(&ask(of_user, "GET"), 403, None, "of a user");
    let plain = access_token(&gatepost, &mut browser, "openid");
    assert_error(&ask(&plain, "GET"), 401, None, "of a user, for nobody");
    let reference = token_of(&gatepost, "byref", "scim.read");
    assert_eq!(ask(&reference, "GET").status, 200);
    let revoked = gatepost.post_as("byref", "/connect/revocation", &[("token", &reference)]);
    assert_eq!(revoked.status, 200);
    assert_error(&ask(&reference, "GET"), 401, None, "revoked");
}

#[test]
fn somebody_comes_changes_and_leaves() {
    let gatepost = start();
    let version = "SELECT registry_version FROM installation";
    let version = || -> i64 { gatepost.database.value(version, &[]) };
    let before = version();
    let hr = Program::hr(&gatepost);
    let resource = json!({
        "schemas": [USER, ENTERPRISE, OURS], "userName": "dana", "externalId": "4711", "active": true,
        "displayName": "Dana Doe", "name": {"givenName": "Dana", "familyName": "Doe", "formatted": "ignored"},
        "emails": [{"value": "home@example.com", "type": "home"}, {"value": "dana@example.com", "primary": true}],
        "roles": [{"value": "staff"}], "title": "ignored", "id": "ignored",
        ENTERPRISE: {"department": "Sales", "manager": {"value": "ignored"}}, OURS: {"emailVerified": true},
    });
    let answer = hr.ask("POST", "Users", &resource);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let dana = answer.json();
    let id = text(&dana, "id").to_owned();
    let encoded = id.replace('-', "%2D").replace('_', "%5F");
    let location = format!("{}/scim/v2/Users/{encoded}", gatepost.base_url);
    assert_eq!(answer.header("location"), Some(location.as_str()));
    assert_eq!(answer.header("etag"), dana["meta"]["version"].as_str());
    assert_eq!(dana["meta"]["location"], json!(location));
    let emails = json!([{"value": "dana@example.com", "type": "work", "primary": true}]);
    assert_eq!(dana["emails"], emails);
    let name = json!({"givenName": "Dana", "familyName": "Doe"});
    assert_eq!(dana["name"], name);
    assert_eq!(dana["roles"], json!([{"value": "staff"}]));
    assert_eq!(dana[ENTERPRISE], json!({"department": "Sales"}));
    assert_eq!(dana[OURS], json!({"emailVerified": true}));
    assert_eq!(dana["schemas"], json!([USER, ENTERPRISE, OURS]));
    assert!(dana.get("title").is_none() && dana.get("password").is_none());
    assert_eq!(hr.get(&format!("Users/{id}")).json(), dana);

    // The claims are those of any user.
    gatepost.run_line("user list --json").assert_says("dana");

    let answer = hr.replace(&id, "name.familyName", "Roe");
    answer.assert_status(200);
    assert_eq!(answer.json()["name"]["familyName"], json!("Roe"));
    assert_ne!(answer.json()["meta"]["version"], dana["meta"]["version"]);
    let unchanged = hr.replace(&id, "name.familyName", "Roe");
    assert_eq!(unchanged.json(), answer.json());

    // PUT is the whole resource; what is write-only, `active`, the roles and the tenant stay
    // without being said.
    let whole =
        json!({"schemas": [USER], "userName": "dana", "emails": [{"value": "new@example.com"}]});
    let answer = hr.ask("PUT", &format!("Users/{id}"), &whole);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let dana = answer.json();
    assert_eq!(dana.get("name"), None);
    assert_eq!(dana.get("externalId"), None);
    assert_eq!(dana["roles"], json!([{"value": "staff"}]));
    assert_eq!(dana["active"], json!(true));
    // The address is another one.
    assert_eq!(dana[OURS], json!({"emailVerified": false}));

    for said in [json!([]), Value::Null] {
        let given = json!([{"op": "add", "path": "roles", "value": [{"value": "by-hand"}]}]);
        assert_eq!(hr.patch(&id, given).status, 200);
        let said = json!({"schemas": [USER], "userName": "dana", "roles": said});
        let answer = hr.ask("PUT", &format!("Users/{id}"), &said);
        assert_eq!(answer.json().get("roles"), None, "{}", answer.text());
    }

    let gone = hr.ask("DELETE", &format!("Users/{id}"), &Value::Null);
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    for method in ["GET", "DELETE"] {
        let answer = hr.ask(method, &format!("Users/{id}"), &Value::Null);
        assert_error(&answer, 404, None, method);
    }
    // No process has to read the registry anew.
    assert_eq!(version(), before);
    for name in ["user_added", "user_changed", "user_removed"] {
        let events = gatepost.events(name);
        let of_hr = events.iter().find(|event| event["client_id"] == "hr");
        assert_eq!(of_hr.unwrap()["sub"], json!(id), "{name}: {events:?}");
    }
    let listed = gatepost.run_line("audit list --json");
    listed.assert_says_not("new@example.com");
}

#[test]
fn a_new_user_name_shows_at_once_and_the_old_one_nowhere() {
    let gatepost = start();
    let hr = Program::new(&gatepost, "hr", ALL_SCOPES);
    let dana = hr.add(json!({"userName": "dana", "displayName": "Dana", "password": PASSWORD}));
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, "dana", PASSWORD);
    let token = access_token(&gatepost, &mut browser, "openid profile");
    let told = || {
        let claims = userinfo(&gatepost, &token).json();
        ["preferred_username", "name"].map(|name| text(&claims, name).to_owned())
    };
    let renamed = |name: &str| {
        hr.replace(text(&dana, "id"), "userName", name)
            .assert_status(200);
    };
    assert_eq!(told(), ["dana", "Dana"]);
    // What an import wrote as a claim goes with the name that it repeats.
    gatepost.run_line("user set dana preferred_username=dana");
    renamed("dana.doe");
    // The name is its own attribute.
    assert_eq!(told(), ["dana.doe", "Dana"]);
    gatepost.run_line("user set dana.doe preferred_username=Dee");
    renamed("dana");
    assert_eq!(told(), ["Dee", "Dana"], "what was chosen stays");
}

#[test]
fn whoever_is_deactivated_is_out_at_once() {
    let gatepost = start();
    let hr = Program::hr(&gatepost);
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid profile");
    assert_eq!(userinfo(&gatepost, &token).status, 200);
    let alice = hr.named("ALICE");
    let id = text(&alice, "id");
    let off = json!([{"op": "Replace", "path": "active", "value": "False"}]);
    let off = hr.patch(id, off);
    assert_eq!(off.json()["active"], json!(false), "{}", off.text());
    assert_eq!(userinfo(&gatepost, &token).status, 401);
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert_eq!(page.status, 200, "the session is over");
    let on = json!({"op": "Replace", "path": "active", "value": true});
    let on = hr.patch(id, json!([on]));
    assert_eq!(on.json()["active"], json!(true), "{}", on.text());
    userinfo(&gatepost, &token).assert_status_for("what was over stays over", 401);
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_status(303);
}

#[test]
fn a_version_that_is_past_changes_nothing() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "vera"}));
    let path = format!("Users/{}", text(&dana, "id"));
    let first = text(&dana["meta"], "version").to_owned();
    let body = |name: &str| json!({"schemas": [PATCH], "Operations": [{"op": "add", "path": "displayName", "value": name}]});
    let ask = |method: &str, body: &Value, tag: &str| {
        hr.ask_with(method, &path, body, &[("If-Match", tag)])
    };
    assert_eq!(ask("PATCH", &body("Dana"), &first).status, 200);
    for (method, body) in [("PATCH", body("Mallory")), ("DELETE", Value::Null)] {
        assert_error(&ask(method, &body, &first), 412, None, "the version before");
    }
    assert_eq!(hr.get(&path).json()["displayName"], json!("Dana"));
    assert_eq!(ask("PATCH", &body("Eve"), "W/\"1\", *").status, 200);
    let now = hr.get(&path).json();
    ask("DELETE", &Value::Null, text(&now["meta"], "version")).assert_status(204);
}

#[test]
fn many_who_write_one_user_at_once_all_have_their_way() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "wanda"}));
    let id = text(&dana, "id");
    let statuses = all_at_once(8, |number| {
        let role =
            json!([{"op": "add", "path": "roles", "value": [{"value": format!("r{number}")}]}]);
        hr.patch(id, role).status
    });
    let taken = statuses.iter().filter(|status| **status == 200).count();
    let are_known = statuses.iter().all(|status| [200, 409].contains(status));
    assert!(are_known, "{statuses:?}");
    let shown = hr.get(&format!("Users/{id}")).json();
    let roles = shown["roles"].as_array().map_or(0, Vec::len);
    // What was acknowledged is there, and nothing else.
    assert_eq!(roles, taken);
}

#[test]
fn each_filter_finds_whom_it_names() {
    let gatepost = start();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "Dana", "externalId": "x\"1", "emails": [{"value": "Dana@Example.com"}]}));
    hr.add(json!({"userName": "erin", "externalId": "2", "active": false}));
    let id = text(&dana, "id");
    for filter in [
        String::from("userName eq \"dana\""),
        format!("id eq \"{id}\""),
        String::from(r#"externalId eq "x\"1""#),
        String::from("emails[type eq \"work\"].value eq \"dana@example.COM\""),
        String::from("emails.value eq \"dana@example.com\" and active eq true"),
        format!("userName eq \"DANA\" and id eq \"{id}\""),
    ] {
        assert_eq!(hr.found(&filter), ["Dana"], "{filter}");
    }
    for filter in [
        "userName eq \"nobody\"",
        "userName eq \"dana\" and active eq false",
        "userName eq \"dana\" and externalId eq \"2\"",
        "externalId eq \"X\"",
    ] {
        assert_eq!(hr.found(filter), [""; 0], "{filter}");
    }
    let inactive = ("filter", "active eq false");
    let by_number = hr.get(&format!("Users?{}", encode(&[inactive])));
    let case = "active alone, by number";
    assert_error(&by_number, 400, Some("invalidFilter"), case);
    let by_cursor = hr.get(&format!("Users?{}", encode(&[inactive, ("cursor", "")])));
    assert_eq!(user_names(&by_cursor.json()), ["erin"]);
}

#[test]
fn lists_come_in_pages_by_number_and_by_cursor() {
    let gatepost = start();
    let hr = Program::hr(&gatepost);
    for number in 0..7 {
        hr.add(json!({"userName": format!("u{number}"), "active": number % 2 == 0}));
    }
    let everybody = hr.get("Users").json();
    assert_eq!(everybody["totalResults"], 9);
    assert_eq!(everybody["startIndex"], 1);
    let all = user_names(&everybody);
    assert_eq!(all.len(), 9);
    let page = hr.get("Users?startIndex=3&count=2").json();
    assert_eq!(user_names(&page), all[2..4]);
    assert_eq!(page["totalResults"], 9);
    assert_eq!(page["itemsPerPage"], 2);
    assert_eq!(hr.get("Users?count=0").json()["totalResults"], json!(9));
    let first = hr.get("Users?startIndex=-4&count=1").json();
    assert_eq!(user_names(&first), all[..1]);
    assert_eq!(user_names(&hr.get("Users?startIndex=10").json()), [""; 0]);
    let walk = |filter: &str| {
        let mut cursor = String::new();
        let mut seen = Vec::new();
        loop {
            let query = encode(&[("count", "2"), ("cursor", &cursor), ("filter", filter)]);
            let query = query.trim_end_matches("&filter=").to_owned();
            let page = hr.get(&format!("Users?{query}")).json();
            assert!(page.get("totalResults").is_none(), "{page}");
            seen.extend(user_names(&page));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => return (seen, cursor),
            }
        }
    };
    let (walked, last) = walk("");
    assert_eq!(walked, all);
    let (inactive, _) = walk("active eq false");
    assert_eq!(inactive.len(), 3, "{inactive:?}");
    for (cursor, filter) in [("gps_nonsense", ""), (last.as_str(), "active eq true")] {
        let query = encode(&[("cursor", cursor), ("filter", filter)]);
        let query = query.trim_end_matches("&filter=");
        let answer = hr.get(&format!("Users?{query}"));
        assert_error(&answer, 400, Some("invalidCursor"), cursor);
    }
    let both = Program::new(&gatepost, "both", "scim.read");
    let answer = both.get(&format!("Users?{}", encode(&[("cursor", &last)])));
    assert_error(&answer, 400, Some("invalidCursor"), "another client's");
}

#[test]
fn a_client_of_a_tenant_reaches_nobody_else() {
    let gatepost = start();
    let hr = Program::hr(&gatepost);
    let acmes = Program::new(&gatepost, "acmes", "scim.read scim.write");
    let both = Program::new(&gatepost, "both", "scim.read scim.write");
    let own = acmes.add(json!({"userName": "alice"}));
    assert_eq!(own[OURS]["tenant"], json!("acme"));
    let other = hr.add(json!({"userName": "alice", OURS: {"tenant": "globex"}}));
    let id = text(&other, "id");
    let none = hr.found("userName eq \"alice\"");
    assert_eq!(none.len(), 3, "whoever has no tenants reaches all");
    assert_eq!(acmes.found("userName eq \"alice\"").len(), 1);
    assert_eq!(both.found("userName eq \"alice\"").len(), 2);
    assert_eq!(acmes.found(&format!("id eq \"{id}\"")), [""; 0]);
    let path = format!("Users/{id}");
    let change = json!({"schemas": [PATCH], "Operations": [{"op": "replace", "path": "active", "value": false}]});
    let whole = json!({"schemas": [USER], "userName": "mallory"});
    for (method, body) in [
        ("GET", Value::Null),
        ("PATCH", change),
        ("PUT", whole),
        ("DELETE", Value::Null),
    ] {
        assert_error(&acmes.ask(method, &path, &body), 404, None, method);
    }
    assert_eq!(hr.get(&path).json(), other, "nothing was written");
    for (program, tenant) in [(&acmes, "globex"), (&both, "nowhere"), (&hr, "nowhere")] {
        let body = json!({"schemas": [USER], "userName": "x", OURS: {"tenant": tenant}});
        assert_invalid(&program.ask("POST", "Users", &body), tenant);
    }
    let unnamed = json!({"schemas": [USER], "userName": "x"});
    assert_invalid(&both.ask("POST", "Users", &unnamed), "of two, none named");
    let moved = hr.replace(id, &format!("{OURS}:tenant"), "acme");
    assert_error(&moved, 400, Some("mutability"), "a tenant is for good");
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    hr.add(json!({"userName": "whoever"}));
    let deep = (0..9).fold(json!(1), |inner, _| json!({"x": inner}));
    let wrong = json!({
        "no language tag": {"locale": "de_DE.UTF-8"},
        "no schema": {"schemas": null},
        "no user name": {"userName": null},
        "an empty user name": {"userName": ""},
        "a number": {"userName": 7},
        "NUL": {"userName": "a\0b"},
        "bidi": {"userName": "a\u{202e}b"},
        "too long": {"userName": "x".repeat(257)},
        "a flag": {"active": "perhaps"},
        "a name": {"name": "Dana"},
        "an invitation": {OURS: {"invite": "pigeon"}},
    });
    let user =
        |changes: &Value| changed_members(json!({"schemas": [USER], "userName": "x"}), changes);
    for (case, changes) in cases(&wrong) {
        assert_invalid(&hr.ask("POST", "Users", &user(changes)), case);
    }
    let refused = |case: &str, body: Value, status: u16, scim_type: &str| {
        let answer = hr.ask("POST", "Users", &body);
        assert_error(&answer, status, Some(scim_type), case);
    };
    refused("an array", json!([]), 400, "invalidSyntax");
    refused("too deep", user(&json!({"y": deep})), 400, "invalidSyntax");
    let taken = user(&json!({"userName": "WHOEVER"}));
    refused("taken", taken, 409, "uniqueness");
    let raw = |content_type: &str, body: &[u8]| {
        let authorization = ("Authorization", hr.authorization.as_str());
        let headers = [authorization, ("Content-Type", content_type)];
        let mut connection = gatepost.connect();
        connection.send("POST", "/scim/v2/Users", &headers, body)
    };
    let scim = "application/scim+json";
    assert_error(&raw(scim, b"{"), 400, Some("invalidSyntax"), "no JSON");
    assert_error(&raw(scim, b"\xff"), 400, Some("invalidSyntax"), "no UTF-8");
    assert_error(&raw("text/plain", b"{}"), 415, None, "no JSON by its type");
    let large = raw("application/json", &vec![b' '; 70_000]);
    assert_error(&large, 413, None, "too large");
    for path in "Users/nobody Users/%00 Users/%ff Groups Users/a/b Schemas/x".split(' ') {
        assert_error(&hr.get(path), 404, None, path);
    }
    for path in ["Bulk", "Me", ".search", "Users/.search"] {
        assert_error(&hr.ask("POST", path, &json!({})), 501, None, path);
    }
    for (method, path) in [("PUT", "Users"), ("POST", "Users/x")] {
        assert_error(&hr.ask(method, path, &json!({})), 405, None, path);
    }
    assert_invalid(&hr.get("Users?count=many"), "no number");
    let contains = hr.get("Users?filter=userName%20co%20%22x%22");
    assert_error(&contains, 400, Some("invalidFilter"), "contains");
}

#[test]
fn an_external_id_has_256_characters_at_most() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    // No two of its characters are the same, so that Postgres cannot make it shorter.
    let different = |length: u32| -> String {
        let letters = (0..length).map(|one| char::from_u32(0x4e00 + one).unwrap());
        letters.collect()
    };
    let dana = hr.add(json!({"userName": "exter", "externalId": different(256)}));
    assert_eq!(dana["externalId"], json!(different(256)));
    let found = hr.found(&format!("externalId eq \"{}\"", different(256)));
    assert_eq!(found, ["exter"]);
    let id = text(&dana, "id");
    for length in [257, 3_000] {
        let named = |name: &str| json!({"schemas": [USER], "userName": name, "externalId": different(length)});
        let replacing =
            json!([{"op": "replace", "path": "externalId", "value": different(length)}]);
        let replaced = hr.ask("PUT", &format!("Users/{id}"), &named("exter"));
        for (case, answer) in [
            ("POST", hr.ask("POST", "Users", &named("extern"))),
            ("PUT", replaced),
            ("PATCH", hr.patch(id, replacing)),
        ] {
            assert_invalid(&answer, case);
        }
    }
}

#[test]
fn of_more_roles_than_may_be_sent_all_are_shown_and_those_that_are_taken_are_gone() {
    let mut registered = registered();
    let roles: Vec<String> = (0..250).map(|one| format!("role-{one}")).collect();
    let many = json!({"sub": "many-1", "username": "many", "claims": {"role": roles}});
    registered["users"].as_array_mut().unwrap().push(many);
    let gatepost = Gatepost::start_with(&registered, &ON);
    let hr = Program::hr(&gatepost);
    let shown = |roles: &[String]| -> Value {
        let elements = roles.iter().map(|role| json!({"value": role}));
        elements.collect()
    };
    assert_eq!(hr.get("Users/many-1").json()["roles"], shown(&roles));
    let take = json!([{"op": "remove", "path": "roles[value eq \"role-0\"]"}]);
    let taken = hr.patch("many-1", take);
    assert_eq!(taken.status, 200, "{}", taken.text());
    assert_eq!(taken.json()["roles"], shown(&roles[1..]));
    let add = json!([{"op": "add", "path": "roles", "value": [{"value": "one more"}]}]);
    let refused = hr.patch("many-1", add);
    assert_error(&refused, 400, Some("invalidValue"), "one more");
    let sql = "SELECT claims -> 'role' FROM users WHERE sub = 'many-1'";
    let stored: Value = gatepost.database.value(sql, &[]);
    assert_eq!(stored, json!(roles[1..]));
}

#[test]
fn a_password_is_set_only_where_that_is_allowed() {
    let gatepost = start();
    let plain = Program::hr(&gatepost);
    let setting = Program::new(&gatepost, "hr", ALL_SCOPES);
    let signs_in = |name: &str| {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        sign_in(&mut browser, &page, name, PASSWORD).status == 303
    };
    plain.add(json!({"userName": "dana", "password": PASSWORD}));
    assert!(!signs_in("dana"), "the scope was not asked for");
    let erin = setting.add(json!({"userName": "erin", "password": PASSWORD}));
    assert!(signs_in("erin"));
    let set = |user: &Value, password: &str| {
        let set = json!([{"op": "add", "path": "password", "value": password}]);
        setting.patch(text(user, "id"), set)
    };
    assert_invalid(&set(&erin, "short"), "the rules of the account page");
    let mut alice = signed_in(&gatepost);
    add_app(&mut alice, 0);
    let refused = set(&setting.named("alice"), PASSWORD);
    assert_error(&refused, 403, None, "somebody with a second factor");
}

#[test]
fn an_invitation_is_a_link_that_sets_a_password() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "invited", OURS: {"invite": "link"}}));
    let link = text(&dana[OURS], "inviteLink").to_owned();
    let mut browser = gatepost.browser();
    let page = browser.visit(link.strip_prefix(&gatepost.base_url).unwrap());
    page.assert_status(200);
    let fields = page.fields();
    let shown = fields.iter().map(|(name, value)| (&**name, &**value));
    let own = [("new_password", PASSWORD), ("new_password_again", PASSWORD)];
    let form: Vec<(&str, &str)> = shown.chain(own).collect();
    browser.post(&page.action(), &form).assert_status(303);
    let shown = hr.get(&format!("Users/{}", text(&dana, "id"))).json();
    // In one answer alone.
    assert!(shown[OURS].get("inviteLink").is_none());
}

#[test]
fn what_there_is_is_described() {
    let gatepost = shared();
    let hr = Program::new(&gatepost, "hr", "scim.read");
    let config = hr.get("ServiceProviderConfig").json();
    assert_eq!(config["patch"]["supported"], json!(true));
    assert_eq!(config["pagination"]["cursor"], json!(true));
    assert_eq!(hr.get("ResourceTypes").json()["totalResults"], json!(1));
    hr.get("ResourceTypes/User")
        .assert_member("endpoint", "/Users");
    let schemas = hr.get("Schemas").json();
    let schemas = schemas["Resources"].as_array().unwrap().iter();
    let listed: Vec<&str> = schemas.map(|one| text(one, "id")).collect();
    assert_eq!(listed, [USER, ENTERPRISE, OURS]);
    for schema in listed {
        let one = hr.get(&format!("Schemas/{schema}")).json();
        assert_eq!(one["id"], json!(schema));
        let location = format!("{}/scim/v2/Schemas/{schema}", gatepost.base_url);
        assert_eq!(one["meta"]["location"], json!(location));
    }
}

#[test]
fn an_address_of_somebody_is_made_verified_only_where_passwords_may_be_set() {
    let gatepost = start();
    let plain = Program::hr(&gatepost);
    let setting = Program::new(&gatepost, "hr", ALL_SCOPES);
    let alice = plain.named("alice");
    let id = text(&alice, "id");
    let address =
        json!({"op": "replace", "path": "emails", "value": [{"value": "evil@evil.example"}]});
    let verified = json!({"op": "replace", "path": format!("{OURS}:emailVerified"), "value": true});
    let both = json!([address, verified]);
    let is_verified = |answer: Answer| answer.json()[OURS]["emailVerified"].clone();
    let refused = plain.patch(id, both.clone());
    assert_error(&refused, 403, None, "another address, verified");
    assert_eq!(is_verified(plain.patch(id, json!([address]))), json!(false));
    let refused = plain.patch(id, json!([verified]));
    assert_error(&refused, 403, None, "the same address, verified");
    assert_eq!(is_verified(setting.patch(id, both)), json!(true));
    let same =
        json!({"schemas": [USER], "userName": "alice", "emails": [{"value": "evil@evil.example"}]});
    let same = plain.ask("PUT", &format!("Users/{id}"), &same);
    assert_eq!(is_verified(same), json!(true));
    let removal = json!([{"op": "remove", "path": format!("{OURS}:emailVerified")}]);
    let withdrawn = plain.patch(id, removal);
    assert!(withdrawn.json().get(OURS).is_none(), "{}", withdrawn.text());
    let shown = gatepost.run_line("user show alice --json");
    shown.assert_says_not("email_verified");
    setting.patch(id, json!([verified]));
    let sharing = json!({"userName": "dana", "emails": [{"value": "evil@evil.example"}], OURS: {"emailVerified": true}});
    plain.add(sharing);
    let listed = gatepost.run_line("audit list --json");
    listed.assert_says("address_shared");
}

#[test]
fn what_is_told_of_a_user_is_written_with_the_change_or_not_at_all() {
    let gatepost = start();
    let setting = Program::new(&gatepost, "hr", ALL_SCOPES);
    // Each event with the transaction that wrote it.
    let written = |id: &str| -> Vec<(String, String)> {
        let sql = "SELECT event, xmin::text FROM audit_events WHERE sub = $1 ORDER BY at, seq";
        let rows = gatepost.database.client().query(sql, &[&id]).unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let names = |events: &[(String, String)]| -> Vec<String> {
        events.iter().map(|(event, _)| event.clone()).collect()
    };
    let dana = setting.add(json!({
        "userName": "dana", "emails": [{"value": "Alice@example.com"}],
        OURS: {"emailVerified": true, "invite": "link"},
    }));
    let events = written(text(&dana, "id"));
    let expected = ["user_added", "address_shared", "link_made"];
    assert_eq!(names(&events), expected);
    let are_of_one = events.iter().all(|(_, by)| *by == events[0].1);
    assert!(are_of_one, "{events:?}");
    let shared_with = json!({"by": "scim", "with": setting.named("alice")["id"]});
    assert_eq!(gatepost.events("address_shared")[0]["detail"], shared_with);

    let erin = setting.add(json!({"userName": "erin"}));
    let id = text(&erin, "id");
    let address =
        json!({"op": "replace", "path": "emails", "value": [{"value": "alice@example.com"}]});
    let verified = json!({"op": "replace", "path": format!("{OURS}:emailVerified"), "value": true});
    for what in ["changed", "repeated"] {
        let answer = setting.patch(id, json!([address, verified]));
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        let events = written(id);
        let all = ["user_added", "user_changed", "address_shared"];
        assert_eq!(names(&events), all, "{what}");
        assert_eq!(events[1].1, events[2].1, "{what}");
    }
}

#[test]
fn a_query_that_is_wrong_is_refused_before_anything_is_written() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "quentin"}));
    let path = format!("Users/{}", text(&dana, "id"));
    let twice = |path: &str| format!("{path}?attributes=id&attributes=userName");
    let erin = json!({"schemas": [USER], "userName": "query"});
    for (method, path) in [("POST", "Users"), ("PUT", &path), ("DELETE", &path)] {
        assert_error(&hr.ask(method, &twice(path), &erin), 400, None, method);
    }
    assert_eq!(hr.get(&path).json(), dana);
    assert_eq!(hr.found("userName eq \"query\""), [""; 0]);
}

#[test]
fn nobody_is_called_as_the_subject_of_somebody_without_a_user_name() {
    let mut registered = registered();
    let nameless = json!({"sub": "nameless-1", "username": null});
    registered["users"].as_array_mut().unwrap().push(nameless);
    let gatepost = Gatepost::start_with(&registered, &ON);
    let hr = Program::hr(&gatepost);
    let taken = json!({"schemas": [USER], "userName": "nameless-1"});
    let added = hr.ask("POST", "Users", &taken);
    assert_error(&added, 409, Some("uniqueness"), "as somebody new");
    let dana = hr.add(json!({"userName": "dana"}));
    let path = format!("Users/{}", text(&dana, "id"));
    let renamed = hr.ask("PUT", &path, &taken);
    assert_error(&renamed, 409, None, "as somebody who is there");
    // Whose subject it is keeps it.
    let own = json!({"schemas": [USER], "userName": "nameless-1", "displayName": "Nobody"});
    assert_eq!(hr.ask("PUT", "Users/nameless-1", &own).status, 200);
}

#[test]
fn a_password_that_is_not_taken_keeps_nobody_from_being_disabled() {
    let gatepost = start();
    let setting = Program::new(&gatepost, "hr", ALL_SCOPES);
    let mut alice = signed_in(&gatepost);
    add_app(&mut alice, 0);
    let alice = setting.named("alice");
    let id = text(&alice, "id");
    let whole =
        json!({"schemas": [USER], "userName": "alice", "active": false, "password": PASSWORD});
    let answer = setting.ask("PUT", &format!("Users/{id}"), &whole);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["active"], json!(false));
    let names = gatepost.events("user_changed")[0]["detail"]["changed"].to_string();
    names.assert_says("active");
    names.assert_says_not("password");
}

#[test]
fn nobody_is_called_by_the_address_of_somebody_else() {
    let mut registered = registered();
    registered["users"].as_array_mut().unwrap().extend([
        json!({"sub": "boss-1", "username": "boss", "claims": {"email": "boss@example.com", "email_verified": true, "role": "office"}}),
        json!({"sub": "eve-1", "username": "eve", "claims": {"email": "eve@example.com"}}),
        json!({"sub": "acme-1", "username": "amy", "tenant": "acme", "claims": {"email": "amy@example.com", "email_verified": true}}),
    ]);
    let settings = [ON[0], ("GATEPOST_ADMIN_ROLE", "office")];
    let gatepost = Gatepost::start_with(&registered, &settings);
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({
        "userName": "dana@corp.example", "emails": [{"value": "dana@example.com"}], OURS: {"emailVerified": true},
    }));
    let id = text(&dana, "id");
    let path = format!("Users/{id}");
    let whole = |name: &str| json!({"schemas": [USER], "userName": name, "emails": [{"value": "dana@example.com"}]});
    for name in ["boss@example.com", "BOSS@Example.com", "dana@example.com"] {
        let somebody = json!({"schemas": [USER], "userName": name});
        let added = hr.ask("POST", "Users", &somebody);
        assert_error(&added, 409, Some("uniqueness"), name);
    }
    for name in ["boss@example.com", "BOSS@Example.com"] {
        let replaced = hr.ask("PUT", &path, &whole(name));
        assert_error(&replaced, 409, Some("uniqueness"), name);
        let renamed = hr.replace(id, "userName", name);
        assert_error(&renamed, 409, Some("uniqueness"), name);
        let named = json!({"op": "replace", "value": {"userName": name}});
        assert_error(&hr.patch(id, json!([named])), 409, Some("uniqueness"), name);
    }
    assert_eq!(hr.get(&path).json()["userName"], "dana@corp.example");
    // Their own, one that nobody has, one that does not count, and one of another tenant.
    let free = "dana@example.com dana@other.example eve@example.com amy@example.com";
    for name in free.split(' ') {
        hr.ask("PUT", &path, &whole(name))
            .assert_status_for(name, 200);
    }
    // Who is called so already can be changed.
    let shared = json!({"email": "amy@example.com", "email_verified": true}).to_string();
    let late = ["user", "add", "late", "--no-password", "--claims", &shared];
    gatepost.run_well(&late, "");
    hr.replace(id, "displayName", "Dana").assert_status(200);
}

#[test]
fn an_address_is_removed_where_the_request_names_it() {
    let gatepost = shared();
    let hr = Program::hr(&gatepost);
    let dana = hr.add(json!({"userName": "adam", "emails": [{"value": "adam@example.com"}]}));
    let id = text(&dana, "id");
    let removed = |value: Value| {
        let removal = json!([{"op": "remove", "path": "emails", "value": value}]);
        let answer = hr.patch(id, removal);
        answer.assert_status(200);
        answer.json().get("emails").is_none()
    };
    let other = json!({"value": "other@example.com", "primary": true});
    let third = json!({"value": "third@example.com"});
    let own = json!({"value": "Adam@example.com"});
    assert!(!removed(json!([{"value": "other@example.com"}])));
    assert!(!removed(json!([other, third])));
    assert!(removed(json!([{"value": "other@example.com"}, own])));
}

#[test]
fn a_role_that_entra_writes_in_json_is_its_name() {
    let gatepost = start_with_boss();
    let hr = Program::hr(&gatepost);
    let role = |name: &str| {
        let whole = json!({"id": "1", "value": name, "displayName": "A role"});
        Value::from(whole.to_string())
    };
    let roles_of = |answer: &Value| -> Vec<String> {
        let roles = answer["roles"].as_array().into_iter().flatten();
        roles.map(|role| text(role, "value").to_owned()).collect()
    };
    let dana = hr.add(json!({"userName": "dana", "roles": [{"value": role("editor"), "primary": true}, {"value": role("office")}]}));
    assert_eq!(roles_of(&dana), ["editor"]);
    let id = text(&dana, "id");
    let patched = |operation: Value| {
        let answer = hr.patch(id, json!([operation]));
        assert_eq!(answer.status, 200, "{operation}: {}", answer.text());
        roles_of(&answer.json())
    };
    let add = |value: Value| json!({"op": "Add", "path": "roles", "value": value});
    for name in ["lead", "office"] {
        let roles = json!([{"value": role(name)}]);
        assert_eq!(patched(add(roles)), ["editor", "lead"], "{name}");
    }
    let below = json!({"op": "Replace", "path": "roles[primary eq \"True\"].value", "value": role("office")});
    assert!(patched(below).is_empty());
    let without_path = json!({"op": "add", "value": {"roles": [{"value": role("editor")}, {"value": role("office")}]}});
    assert_eq!(patched(without_path), ["editor"]);
    let removed = json!({"op": "remove", "path": "roles", "value": [{"value": role("editor")}]});
    assert!(patched(removed).is_empty());
    let whole = json!({"schemas": [USER], "userName": "dana", "roles": [{"value": role("cook")}, {"value": role("office")}]});
    let replaced = hr.ask("PUT", &format!("Users/{id}"), &whole);
    assert_eq!(roles_of(&replaced.json()), ["cook"]);
    let filtered = format!("roles[value eq {}]", role("cook"));
    assert!(patched(json!({"op": "remove", "path": filtered})).is_empty());
    // What the build before stored goes, too.
    for op in [
        json!({"op": "remove", "path": "roles", "value": [{"value": role("cook")}]}),
        json!({"op": "remove", "path": "roles", "value": [{"value": "cook"}]}),
    ] {
        let stored = json!({"role": [role("cook"), "guest"]}).to_string();
        let sql = format!("UPDATE users SET claims = claims || '{stored}' WHERE username = 'dana'");
        gatepost.database.run(&sql);
        let shown = hr.ask("GET", &format!("Users/{id}"), &json!({}));
        assert_eq!(roles_of(&shown.json()), ["cook", "guest"]);
        assert_eq!(patched(op), ["guest"]);
    }
    let none_left = json!({"op": "remove", "path": "roles"});
    assert!(patched(none_left).is_empty());
    let nested = r#"{"value":"{\"value\":\"office\"}"}"#;
    for text in [r#"{"id":"1"}"#, nested, "{"] {
        let roles = json!([{"value": text}]);
        assert_invalid(&hr.patch(id, json!([add(roles.clone())])), text);
        let new = json!({"schemas": [USER], "userName": "erin", "roles": roles});
        assert_invalid(&hr.ask("POST", "Users", &new), text);
        assert_invalid(&hr.ask("PUT", &format!("Users/{id}"), &new), text);
    }
    let others = "users WHERE claims::text LIKE '%office%' AND username <> 'boss'";
    gatepost.database.assert_count(others, 0);
}

/// With boss, who has the role of administrators, and an external id from before.
fn start_with_boss() -> Gatepost {
    let mut registered = registered();
    let boss = json!({
        "sub": "boss-1", "username": "boss", "claims": {"name": "Boss", "role": ["office", "staff"]},
    });
    registered["users"].as_array_mut().unwrap().push(boss);
    let settings = [ON[0], ("GATEPOST_ADMIN_ROLE", "office")];
    let gatepost = Gatepost::start_with(&registered, &settings);
    gatepost.run_sql("UPDATE users SET external_id = '00u7' WHERE sub = 'boss-1'");
    gatepost
}

#[test]
fn an_administrator_who_leaves_is_disabled_whatever_else_the_request_says() {
    let gatepost = start_with_boss();
    let hr = Program::hr(&gatepost);
    let setting = Program::new(&gatepost, "hr", ALL_SCOPES);
    let path = "Users/boss-1";
    let before = hr.get(path).json();
    // As Okta sends it: without roles and external id, which would be taken from them.
    let whole = |changes: Value| {
        let whole = json!({
            "schemas": [USER], "id": "boss-1", "userName": "boss@okta.local", "name": {"givenName": "Bo"},
            "emails": [{"primary": true, "value": "boss@okta.local", "type": "work"}], "groups": [],
        });
        with_members(whole, &changes)
    };
    let assert_only_active = |answer: &Answer, active: bool, case: &str| {
        assert_eq!(answer.status, 200, "{case}: {}", answer.text());
        let mut expected = before.clone();
        expected["active"] = json!(active);
        expected["meta"] = answer.json()["meta"].clone();
        assert_eq!(answer.json(), expected, "{case}");
    };
    for (case, changes) in [("active", json!({"active": true})), ("unsaid", json!({}))] {
        assert_error(&hr.ask("PUT", path, &whole(changes)), 403, None, case);
    }
    assert_eq!(hr.get(path).json(), before);

    let with_password = whole(json!({"active": false, "password": PASSWORD}));
    let left = setting.ask("PUT", path, &with_password);
    assert_only_active(&left, false, "the first time");
    let repeated = setting.ask("PUT", path, &with_password);
    assert_only_active(&repeated, false, "repeated");
    let repeated = hr.ask("PUT", path, &whole(json!({"active": false})));
    assert_only_active(&repeated, false, "repeated by another");
    let unsaid = hr.ask("PUT", path, &whole(json!({})));
    assert_error(&unsaid, 403, None, "disabled, and that is not said");
    let named = json!({"op": "replace", "path": "displayName", "value": "Mallory"});
    assert_error(&hr.patch("boss-1", json!([named])), 403, None, "disabled");

    let active = |active: bool| json!({"op": "replace", "path": "active", "value": active});
    let back = json!([named, active(true)]);
    assert_error(&hr.patch("boss-1", back), 403, None, "more than active");
    assert_only_active(&hr.patch("boss-1", json!([active(true)])), true, "back");
    let left = hr.patch("boss-1", json!([named, active(false)]));
    assert_only_active(&left, false, "by PATCH");

    // No program sets their password.
    let without = "users WHERE sub = 'boss-1' AND password_hash IS NULL";
    gatepost.database.assert_count(without, 1);
    let events = gatepost.events("user_changed");
    assert_eq!(events.len(), 3, "{events:?}");
    for event in events {
        assert_eq!(event["detail"]["changed"], json!(["active"]), "{event}");
    }
}

#[test]
fn an_invitation_of_a_program_is_over_once_its_user_is_an_administrator() {
    let mailbox = Mailbox::open();
    let [server, sender, quiet] = mailbox.settings();
    let office = ("GATEPOST_ADMIN_ROLE", "office");
    let settings = [ON[0], office, server, sender, quiet];
    let gatepost = Gatepost::start_with(&registered(), &settings);
    let hr = Program::hr(&gatepost);
    let role = |name: &str, change: &str, role: &str| {
        gatepost.run_line(&format!("user role {name} {change} {role}"));
    };
    for (name, invite) in [("dora", "link"), ("erin", "mail")] {
        let address = format!("{name}@example.com");
        let added = hr.add(json!({
            "userName": name, "emails": [{"value": address}], OURS: {"invite": invite},
        }));
        let link = match added[OURS]["inviteLink"].as_str() {
            Some(link) => link.to_owned(),
            None => mailbox.letter(1).link().to_owned(),
        };
        let mut open = gatepost.browser();
        let form = open.visit(&link);
        assert_eq!(form.status, 200, "{invite}: {}", form.text());
        role(name, "--add", "office");
        let over = gatepost.browser().get(&link);
        over.assert_error_page(400, "GP1810", invite);
        let new = [("new_password", PASSWORD), ("new_password_again", PASSWORD)];
        let late = open.submit(&form, &new);
        late.assert_error_page(400, "GP1810", "opened before");
        let own = gatepost.run_well(&["user", "invite", name], "");
        gatepost.browser().visit(own.trim()).assert_status(200);
        // Other roles change nothing: a program gives them after it has made somebody.
        role(name, "--remove", "office");
        role(name, "--add", "staff");
        assert_eq!(open.submit(&form, &new).status, 303, "{invite}");
    }
}

#[test]
fn an_invitation_goes_by_letter_and_an_address_that_changes_is_told_at_the_old_one() {
    let mailbox = Mailbox::open();
    let [server, sender, quiet] = mailbox.settings();
    let settings = [ON[0], server, sender, quiet];
    let gatepost = Gatepost::start_with(&registered(), &settings);
    let hr = Program::new(&gatepost, "hr", ALL_SCOPES);
    let invited = json!({
        "userName": "dana", "locale": "de", "emails": [{"value": "dana@example.com"}], OURS: {"invite": "mail"},
    });
    let dana = hr.add(invited);
    assert!(dana[OURS].get("inviteLink").is_none(), "{dana}");
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["dana@example.com"]);
    let mut browser = gatepost.browser();
    let opened = browser.get(letter.link());
    let page = browser.follow(opened);
    assert_eq!(page.status, 200, "{}", page.text());
    let form = [("new_password", PASSWORD), ("new_password_again", PASSWORD)];
    browser.submit(&page, &form).assert_status(303);
    let id = text(&dana, "id");
    let shown = hr.get(&format!("Users/{id}")).json();
    assert_eq!(shown[OURS]["emailVerified"], json!(true), "{shown}");

    let before = mailbox.count();
    hr.replace(id, "emails", json!([{"value": "new@example.com"}]))
        .assert_status(200);
    let notice = mailbox.letter(before + 1);
    assert_eq!(notice.to, ["dana@example.com"], "the address of before");

    let eve = json!({"schemas": [USER], "userName": "eve"});
    let bent = json!({
        "nowhere to send it": {OURS: {"invite": "mail"}},
        "a bent address": {"emails": [{"value": "no address"}], OURS: {"invite": "mail"}},
        "another wish": {OURS: {"invite": "pigeon"}},
    });
    for (case, changes) in cases(&bent) {
        let resource = with_members(eve.clone(), changes);
        assert_invalid(&hr.ask("POST", "Users", &resource), case);
    }
    assert_eq!(hr.found("userName eq \"eve\"").len(), 0);
    let without = start();
    let hr = Program::hr(&without);
    let invited = json!({"emails": [{"value": "eve@example.com"}], OURS: {"invite": "mail"}});
    let answer = hr.ask("POST", "Users", &with_members(eve, &invited));
    assert_invalid(&answer, "without a mail server");
}

/// The partitions of the tables whose rows live as long as tokens do.
fn partitions(gatepost: &Gatepost) -> Vec<String> {
    let asked = "SELECT relname::text FROM pg_class
                 WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
                   AND relname ~ '^(grants|sessions|session_clients|revoked_tokens|used_assertions)_[0-9]' ORDER BY 1";
    let rows = gatepost.database.client().query(asked, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_program_that_can_hold_only_a_fixed_token_gets_one_that_lives_long_and_can_be_revoked() {
    let mut gatepost = start();
    let before = partitions(&gatepost);
    let fixed = |changes: Value| {
        let client = json!({
            "client_id": "fixed", "grant_types": ["client_credentials"], "response_types": [], "scope": "scim.read scim.write",
            "access_token_type": "reference", "client_credentials_token_lifetime": "730d",
            "secrets": [{"value": CONF1_SECRET}],
        });
        json!({"clients": [with_members(client, &changes)]})
    };
    let refused = json!({
        "the access_token_type reference": {"access_token_type": "jwt"},
        "needs the grant type client_credentials":
            {"grant_types": ["authorization_code"], "response_types": ["code"], "redirect_uris": [RP1]},
        "from 1 to 315360000": {"client_credentials_token_lifetime": 315_360_001},
    });
    for (rule, changes) in cases(&refused) {
        let told = gatepost.refusal(&["plan", "-"], &fixed(changes.clone()).to_string());
        told.assert_says("client_credentials_token_lifetime");
        told.assert_says(rule);
    }
    gatepost.apply(&fixed(json!({})));
    gatepost.settle();
    // Other clients' rows go as they went, and this one's other tokens live as long as others'.
    assert_eq!(partitions(&gatepost), before);
    let asked = || issued(&gatepost.token("fixed", &[("grant_type", "client_credentials")]));
    let answers = [asked(), asked(), asked()];
    assert_eq!(answers[0]["expires_in"], json!(730 * 86_400));
    let [first, second, third] = answers.map(|answer| text(&answer, "access_token").to_owned());
    let by = |token: &str| Program::with(&gatepost, token).get("Users").status;
    assert_eq!([&first, &second, &third].map(|token| by(token)), [200; 3]);
    let revoke = |token: &str, client_id: &str| {
        let answer = gatepost.post_as(client_id, "/connect/revocation", &[("token", token)]);
        answer.assert_status(200);
    };
    revoke(&first, "hr");
    assert_eq!(by(&first), 200, "of another client");
    revoke(&first, "fixed");
    revoke(&first, "fixed");
    let statuses = [&first, &second, &third].map(|token| by(token));
    assert_eq!(statuses, [401, 200, 200]);
    gatepost.database.assert_count("revoked_tokens", 0);
    gatepost.database.assert_count("revoked_lasting_tokens", 1);
    assert_eq!(gatepost.events("access_token_revoked").len(), 1);
    gatepost.run_line("client revoke fixed");
    gatepost.settle();
    assert_eq!([&first, &second, &third].map(|token| by(token)), [401; 3]);
    gatepost.await_log("the weak settings", |log| {
        log.contains("tokens of long life (fixed)")
    });
    let told = gatepost.run(&["client", "test", "fixed"], "");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("its tokens live long"), "{told}");
    // A build of before keeps what is revoked of tokens of some hours there, too.
    gatepost.apply(&fixed(
        json!({"client_id": "daily", "client_credentials_token_lifetime": "12h"}),
    ));
    gatepost.settle();
    let daily = issued(&gatepost.token("daily", &[("grant_type", "client_credentials")]));
    let daily = text(&daily, "access_token");
    assert_eq!(by(daily), 200);
    revoke(daily, "daily");
    gatepost.run_sql(
        "WITH kept AS (DELETE FROM revoked_tokens RETURNING jti, day) \
         INSERT INTO revoked_lasting_tokens (jti, day) SELECT jti, day FROM kept",
    );
    assert_eq!(by(daily), 401);
    // What was revoked is forgotten once it would have expired.
    gatepost.run_sql("UPDATE revoked_lasting_tokens SET day = day - 733");
    gatepost.stop();
    gatepost.serve();
    await_that("revocations to be forgotten", SOON, || {
        gatepost.database.count("revoked_lasting_tokens") == 0
    });
}
