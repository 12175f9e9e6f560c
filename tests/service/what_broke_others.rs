//! What broke comparable software and had no test here: docs/evidence/what-broke-others.md names
//! each.

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, issued, text, userinfo, with_clients};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::http::{Answer, encode};
use crate::support::mailbox::Mailbox;
use crate::support::scim::{ON, Program, registered, user_names};

const FORGED: [(&str, &str); 4] = [
    ("Forwarded", "host=evil.example;proto=http"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "http"),
    ("X-Original-Host", "evil.example"),
];

/// Links in letters, redirects and metadata are made of the base URL alone.
#[test]
fn no_header_of_a_request_changes_where_a_letter_leads() {
    let mailbox = Mailbox::open();
    let mut registered = document();
    let claims = json!({"email": "bob@example.com", "email_verified": true});
    registered["users"][1]["claims"] = claims;
    let gatepost = Gatepost::start_with(&registered, &mailbox.settings());
    let mut browser = gatepost.browser();
    for (name, value) in FORGED {
        browser.headers.push((name.to_owned(), value.to_owned()));
    }
    let opened = browser.get(&authorize_path("conf1", RP1, &[]));
    assert!(
        !opened.location().contains("evil.example"),
        "{}",
        opened.location()
    );
    let page = browser.follow(opened);
    let page = browser.get(&page.attribute("/login/forgotten", "href").unwrap());
    let form = [("name", "bob")];
    browser.submit(&page, &form).assert_status(200);
    let letter = mailbox.letter(1);
    let begins = format!("{}/account/link?l=", gatepost.base_url);
    assert!(letter.link().starts_with(&begins), "{}", letter.link());
    let metadata = browser.get("/.well-known/openid-configuration");
    assert_eq!(metadata.json()["issuer"], json!(gatepost.base_url));
    assert!(!metadata.text().contains("evil.example"));
}

/// A token that lost its end, or got a byte more or less, is none.
#[test]
fn a_reference_token_that_is_cut_or_bent_opens_nothing() {
    let client = json!({
        "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": [],
        "scope": "orders.read", "access_token_type": "reference",
    });
    let gatepost = Gatepost::start_with(&with_clients(document(), &[("short", client)]), &[]);
    let ask = |path: &str, form: &[(&str, &str)]| gatepost.post_as("short", path, form);
    let answer = ask("/connect/token", &[("grant_type", "client_credentials")]);
    let token = text(&issued(&answer), "access_token").to_owned();
    let is_active = |token: &str| {
        ask("/connect/introspect", &[("token", token)]).json()["active"] == json!(true)
    };
    assert!(is_active(&token));
    let end = token.len();
    let bent = (1..=12)
        .map(|cut| token[..end - cut].to_owned())
        .chain([end / 2, 10].map(|at| format!("{}{}", &token[..at], &token[at + 1..])))
        .chain([
            format!("{token}A"),
            format!("A{token}"),
            token.to_ascii_uppercase(),
        ]);
    for bent in bent {
        assert!(!is_active(&bent), "{bent}");
        assert_eq!(userinfo(&gatepost, &bent).status, 401, "{bent}");
        // Says that it is over, and ends nothing.
        ask("/connect/revocation", &[("token", &bent)]).assert_status_for(&bent, 200);
    }
    assert!(is_active(&token));
}

#[test]
fn a_bearer_token_stands_behind_one_space() {
    let gatepost = Gatepost::shared();
    for header in [
        "Bearer\tx",
        "Bearer",
        "Bearer  ",
        "Bearerx",
        "Bearer x\ty",
        "Bearer,x",
    ] {
        let answer = gatepost.send(
            "GET",
            "/connect/userinfo",
            &[("Authorization", header)],
            b"",
        );
        assert!(
            [400, 401].contains(&answer.status),
            "{header:?}: {}",
            answer.status
        );
        let challenges = answer.headers_named("www-authenticate");
        let first = challenges.first().copied().unwrap_or_default();
        assert!(first.starts_with("Bearer"), "{header:?}: {challenges:?}");
    }
}

/// What lies outside a client's tenants is not even counted for it, and a cursor is as it was made.
#[test]
fn a_list_of_users_tells_nothing_of_others_and_takes_no_cursor_but_its_own() {
    let gatepost = Gatepost::start_with(&registered(), &ON);
    let hr = Program::hr(&gatepost);
    let ours = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User";
    for number in 0..5 {
        let tenant = if number < 3 { "acme" } else { "globex" };
        let mut user = json!({"userName": format!("u{number}")});
        user[ours] = json!({"tenant": tenant});
        hr.add(user);
    }
    let acmes = Program::new(&gatepost, "acmes", "scim.read");
    let all = acmes.get("Users").json();
    assert_eq!(all["totalResults"], json!(3));
    let mut names = user_names(&all);
    names.sort_unstable();
    assert_eq!(names, ["u0", "u1", "u2"]);
    assert_eq!(acmes.get("Users?count=0").json()["totalResults"], json!(3));
    let foreign = encode(&[("filter", "userName eq \"u4\"")]);
    acmes
        .get(&format!("Users?{foreign}"))
        .assert_member("totalResults", json!(0));

    let first = acmes.get("Users?cursor=&count=1").json();
    let cursor = text(&first, "nextCursor").to_owned();
    let at = |cursor: &str| -> Answer {
        let query = encode(&[("count", "1"), ("cursor", cursor)]);
        acmes.get(&format!("Users?{query}"))
    };
    assert_eq!(at(&cursor).status, 200);
    let middle = cursor.len() / 2;
    let another = if &cursor[middle..=middle] == "A" {
        "B"
    } else {
        "A"
    };
    for bent in [
        format!("{}{another}{}", &cursor[..middle], &cursor[middle + 1..]),
        cursor[..cursor.len() - 1].to_owned(),
        format!("{cursor}' OR 1=1 --"),
        String::from("' OR 1=1 --"),
    ] {
        let answer = at(&bent);
        assert_eq!(answer.status, 400, "{bent}: {}", answer.text());
        assert_eq!(answer.json()["scimType"], json!("invalidCursor"), "{bent}");
    }
    let filter = encode(&[("filter", "userName eq \"x' OR '1'='1\"")]);
    let found: Value = acmes.get(&format!("Users?{filter}")).json();
    assert_eq!(found["totalResults"], json!(0));
}
