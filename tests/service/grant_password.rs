//! `grant_type=password`: for the clients registered for it, under the limits of the login page.

use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{
    LEFT_OUT, authorize_path, basic, changed, issued, names, sign_in, text, userinfo, with_clients,
    with_members,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::Answer;
use crate::support::jwt::{half_hash, verified};
use crate::support::offline::client;
use crate::support::shared::Shared;
use crate::support::waiting::{SOON, await_that};

const SCOPE: &str = "openid profile roles orders.read orders.write offline_access";
/// What a client may have that gets no refresh tokens.
const ONCE: &str = "openid profile roles orders.read orders.write";
const CAROL_PASSWORD: &str = "carol of acme is here";
const DAVE_PASSWORD: &str = "dave was here before";

fn registration() -> Value {
    let direct = |changes: Value| {
        let client = json!({
            "grant_types": ["password", "refresh_token"], "response_types": [], "redirect_uris": [], "scope": SCOPE
        });
        with_members(client, &changes)
    };
    let once = |scope: &str| json!({"grant_types": ["password"], "scope": scope});
    let public = json!({"secrets": [], "token_endpoint_auth_method": "none", "access_token_type": "reference"});
    let machine = with_members(
        once("orders.read"),
        &json!({"access_token_type": "reference"}),
    );
    let clients = [
        ("direct", direct(json!({}))),
        ("public", direct(public)),
        ("acme-only", direct(json!({"tenants": ["acme"]}))),
        ("both", direct(json!({"tenants": ["acme", "globex"]}))),
        ("once", direct(once(ONCE))),
        ("scopeless", direct(once(""))),
        ("machine", direct(machine)),
    ];
    let mut document = with_clients(document(), &clients);
    document["tenants"] = json!([{"name": "acme", "display_name": "ACME"}, {"name": "globex"}]);
    let users = document["users"].as_array_mut().unwrap();
    users.push(json!({"username": "carol", "tenant": "acme", "password": CAROL_PASSWORD, "claims": {"name": "Carol"}}));
    users.push(json!({"username": "dave", "password": DAVE_PASSWORD, "enabled": false}));
    document
}

fn start() -> Shared {
    Gatepost::lent_with(&registration(), &[])
}

/// A server that a test may change.
fn start_own() -> Gatepost {
    Gatepost::start_with(&registration(), &[])
}

/// Asks for alice as a client with the secret of `conf1`, from an address of the documentation's.
fn ask_from(
    gatepost: &Gatepost,
    source: &str,
    client_id: &str,
    changes: &[(&str, &str)],
) -> Answer {
    let authorization = basic(client_id, CONF1_SECRET);
    let headers = [
        ("Authorization", authorization.as_str()),
        ("X-Forwarded-For", source),
    ];
    gatepost.post("/connect/token", &headers, &changed(&USUAL, changes))
}

fn ask(gatepost: &Gatepost, client_id: &str, changes: &[(&str, &str)]) -> Answer {
    ask_from(gatepost, "192.0.2.1", client_id, changes)
}

/// What opens it, which each request must have.
const USUAL: [(&str, &str); 3] = [
    ("grant_type", "password"),
    ("username", "alice"),
    ("password", ALICE_PASSWORD),
];

#[track_caller]
fn assert_userinfo(gatepost: &Gatepost, tokens: &Value, status: u16) {
    userinfo(gatepost, text(tokens, "access_token")).assert_status(status);
}

/// Failures that the log tells of once there are so many: they are written a moment after the
/// answer.
fn failures_told(gatepost: &Gatepost, least: i64) -> i64 {
    let told = || gatepost.database.events("sign_in_failed");
    await_that("failures are told", SOON, || told() >= least);
    told()
}

#[test]
fn a_password_gives_tokens_of_its_user_without_a_session() {
    let gatepost = start_own();
    let answer = ask(&gatepost, "direct", &[("scope", SCOPE)]);
    answer.assert_header("cache-control", "no-store");
    answer.assert_header("pragma", "no-cache");
    let tokens = issued(&answer);
    tokens.assert_members("access_token expires_in id_token refresh_token scope token_type");
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], SCOPE);
    let (header, id_token) = verified(&gatepost, text(&tokens, "id_token"));
    assert_eq!(header["typ"], "JWT");
    id_token.assert_members("acr amr at_hash aud auth_time exp iat iss sub");
    assert_eq!(id_token["amr"], json!(["pwd"]));
    assert_eq!(id_token["acr"], "1");
    let at_hash = half_hash("RS256", text(&tokens, "access_token"));
    assert_eq!(id_token["at_hash"], at_hash);
    let (_, access) = verified(&gatepost, text(&tokens, "access_token"));
    assert_eq!(access.get("sid"), None);
    assert_eq!(access["sub"], id_token["sub"]);
    assert_eq!(access["aud"], "https://orders.example");
    assert_eq!(access["role"], json!(["admin"]));
    let told = userinfo(&gatepost, text(&tokens, "access_token")).json();
    assert_eq!(told["sub"], id_token["sub"]);
    assert_eq!(told["name"], "Alice Smith");

    // One row, and what it gives is refreshed and revoked as any other.
    gatepost.database.assert_count("grants", 1);
    gatepost.database.assert_count("sessions", 0);
    assert_eq!(gatepost.database.events("password_granted"), 1);
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&tokens, "refresh_token")),
    ];
    let refreshed = issued(&gatepost.token("direct", &refresh));
    let (_, again) = verified(&gatepost, text(&refreshed, "id_token"));
    assert_eq!(again["auth_time"], id_token["auth_time"]);
    assert_eq!(again.get("sid"), None);
    let form = [("token", text(&refreshed, "refresh_token"))];
    let revoked = gatepost.post_as("direct", "/connect/revocation", &form);
    revoked.assert_status(200);
    assert_userinfo(&gatepost, &refreshed, 401);
    let discovery = gatepost.get("/.well-known/openid-configuration").json();
    let grant_types = discovery["grant_types_supported"].as_array();
    assert!(grant_types.unwrap().contains(&json!("password")));
}

#[test]
fn what_is_given_right_after_a_revocation_is_reached_by_the_next() {
    let gatepost = start_own();
    for _ in 0..2 {
        gatepost.run_line("user revoke alice");
        let tokens = issued(&ask(&gatepost, "direct", &[]));
        assert_userinfo(&gatepost, &tokens, 200);
        gatepost.run_line("client revoke direct");
        assert_userinfo(&gatepost, &tokens, 401);
        gatepost.settle();
    }
}

#[test]
fn scopes_are_those_asked_for_or_all_that_the_client_may_have() {
    let gatepost = start();
    let offline = "orders.read offline_access";
    let (orders, stock) = ("https://orders.example", "https://stock.example");
    for (client_id, changes, scope, members) in [
        ("direct", &[][..], SCOPE, 6),
        ("direct", &[("scope", "")], SCOPE, 6),
        ("direct", &[("scope", "orders.read")], "orders.read", 4),
        ("direct", &[("scope", offline)], offline, 5),
        ("direct", &[("scope", "openid")], "openid", 5),
        ("direct", &[("resource", orders)], SCOPE, 6),
        ("once", &[], ONCE, 5),
        ("machine", &[], "orders.read", 4),
    ] {
        let answer = issued(&ask(&gatepost, client_id, changes));
        assert_eq!(answer["scope"], scope, "{client_id} {changes:?}");
        assert_eq!(names(&answer).len(), members, "{client_id} {changes:?}");
    }
    for (client_id, changes, error) in [
        ("direct", ("scope", "openid email"), "invalid_scope"),
        ("direct", ("scope", "openid nope"), "invalid_scope"),
        ("direct", ("scope", "openid \"x\""), "invalid_scope"),
        ("direct", ("scope", " "), "invalid_scope"),
        ("scopeless", ("x", "y"), "invalid_scope"),
        ("machine", ("scope", "openid"), "invalid_scope"),
        ("once", ("scope", "openid offline_access"), "invalid_scope"),
        ("direct", ("resource", stock), "invalid_target"),
        ("direct", ("resource", "orders"), "invalid_target"),
    ] {
        let answer = ask(&gatepost, client_id, &[changes]);
        answer.assert_refused(400, error, &format!("{client_id} {changes:?}"));
    }
    // Without the grant row's `offline_access` it ends with its access token.
    let lasting = "SELECT count(*) FROM grants WHERE NOT offline AND expires_at > redeemed_at + interval '3601 seconds'";
    assert_eq!(gatepost.database.value::<i64>(lasting, &[]), 0);
}

#[test]
fn what_is_missing_repeated_or_too_long_is_refused_by_name() {
    let gatepost = start();
    let (long_name, long_password, long_acr) =
        ("u".repeat(257), "p".repeat(1_025), "a".repeat(301));
    for (change, error) in [
        (("username", LEFT_OUT), "invalid_request"),
        (("username", ""), "invalid_request"),
        (("password", LEFT_OUT), "invalid_request"),
        (("password", ""), "invalid_request"),
        (("username", &long_name), "invalid_request"),
        (("password", &long_password), "invalid_request"),
        (("acr_values", &long_acr), "invalid_request"),
        (("grant_type", "Password"), "unsupported_grant_type"),
    ] {
        ask(&gatepost, "direct", &[change]).assert_refused(400, error, &format!("{change:?}"));
    }
    for name in ["username", "password", "acr_values", "scope"] {
        let form = [&USUAL[..], &[(name, "x"), (name, "")]].concat();
        let answer = gatepost.token("direct", &form);
        answer.assert_refused(400, "invalid_request", name);
    }
    for query in ["username=alice", "password=x", "acr_values=x"] {
        let path = format!("/connect/token?{query}");
        let answer = gatepost.post_as("direct", &path, &USUAL);
        answer.assert_refused(400, "invalid_request", query);
    }
    // The longest that is borne is merely wrong.
    let (name, password) = ("\u{e9}".repeat(256), "p".repeat(1_024));
    let edge = [("username", &*name), ("password", &*password)];
    ask(&gatepost, "direct", &edge).assert_refused(400, "invalid_grant", "the edge");
}

#[test]
fn only_a_client_that_is_registered_for_it_and_for_the_password_login_may_ask() {
    let gatepost = start_own();
    ask(&gatepost, "conf1", &[]).assert_refused(400, "unauthorized_client", "not registered");
    let answer = ask(&gatepost, "conf1", &[("username", LEFT_OUT)]);
    answer.assert_refused(400, "unauthorized_client", "before parameters");
    let stranger = [("grant_type", "password"), ("client_id", "direct")];
    let stranger = gatepost.post("/connect/token", &[], &stranger);
    stranger.assert_refused(400, "invalid_client", "no secret");
    let form = [&USUAL[..], &[("client_id", "public")]].concat();
    let public = issued(&gatepost.post("/connect/token", &[], &form));
    assert!(text(&public, "access_token").starts_with("gpa_"));
    // Without the password login the grant cannot be registered; a row that says so all the same
    // serves nobody.
    let mut document = registration();
    client(&mut document, "direct")["identity_providers"] = json!(["corp"]);
    let said = gatepost.apply_refused(&document);
    said.assert_says("must contain local");
    gatepost.database.run(
        "UPDATE clients SET metadata = jsonb_set(metadata, '{identity_providers}', '[\"corp\"]') WHERE client_id = 'direct';
         UPDATE installation SET registry_version = registry_version + 1",
    );
    gatepost.settle();
    ask(&gatepost, "direct", &[]).assert_refused(401, "invalid_client", "without local");
}

#[test]
fn unknown_wrong_disabled_and_throttled_are_told_alike() {
    let gatepost = start_own();
    let refused = |source: &str, username: &str, password: &str| {
        let guess = [("username", username), ("password", password)];
        let answer = ask_from(&gatepost, source, "direct", &guess);
        answer.assert_refused(400, "invalid_grant", username);
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(answer.header("www-authenticate"), None);
        answer.text()
    };
    // Ten are told of each minute: all of these shall fall into the same one.
    gatepost.database.run(
        "SELECT pg_sleep(61 - passed) FROM (SELECT extract(second FROM clock_timestamp())::float8 AS passed) AS minute
         WHERE passed > 40",
    );
    let wrong = refused("192.0.2.2", "alice", "wrong");
    assert_eq!(refused("192.0.2.2", "nobody", "wrong"), wrong);
    // Disabled.
    assert_eq!(refused("192.0.2.2", "dave", DAVE_PASSWORD), wrong);
    // Of a tenant that was not named.
    assert_eq!(refused("192.0.2.2", "carol", CAROL_PASSWORD), wrong);
    let nearly = format!("{ALICE_PASSWORD} ");
    assert_eq!(refused("192.0.2.2", "alice", &nearly), wrong);
    assert_eq!(failures_told(&gatepost, 5), 5);
    for _ in 0..8 {
        refused("192.0.2.2", "alice", "wrong");
    }
    let tried = || {
        let tried = "SELECT max(failures) FROM sign_in_failures";
        gatepost.database.value::<i32>(tried, &[])
    };
    let before = tried();
    // Throttled.
    assert_eq!(refused("192.0.2.2", "ALICE", ALICE_PASSWORD), wrong);
    assert_eq!(tried(), before, "what was not looked at is no failure");
    // More are told as a number once the minute is over.
    assert_eq!(failures_told(&gatepost, 10), 10);
    // Neither the other account, nor another source is concerned; no grant was made for a refusal.
    let bob = [("username", "bob"), ("password", BOB_PASSWORD)];
    issued(&ask_from(&gatepost, "192.0.2.2", "direct", &bob));
    let alice = [("username", "Alice")];
    issued(&ask_from(&gatepost, "192.0.2.3", "direct", &alice));
    assert_eq!(gatepost.database.count("grants"), 2);
    // One counter over page and endpoint, whichever client brings the guess.
    ask_from(&gatepost, "192.0.2.2", "once", &[]).assert_member("error", "invalid_grant");
    let mut browser = gatepost.browser_at("192.0.2.2");
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_status(429);
}

#[test]
fn guesses_on_the_login_page_count_here() {
    let gatepost = start_own();
    let mut browser = gatepost.browser_at("192.0.2.9");
    for _ in 0..10 {
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        assert_eq!(sign_in(&mut browser, &page, "alice", "wrong").status, 200);
    }
    let answer = ask_from(&gatepost, "192.0.2.9", "direct", &[]);
    answer.assert_refused(400, "invalid_grant", "throttled");
    issued(&ask_from(&gatepost, "192.0.2.10", "direct", &[]));
}

/// An application's server is the source of everybody who signs in by its form.
#[test]
fn who_guesses_at_an_application_with_a_secret_keeps_nobody_else_out() {
    let settings = [("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "3")];
    let gatepost = Gatepost::start_with(&registration(), &settings);
    let guess = |source: &str, client_id: &str, username: &str| {
        let wrong = [("username", username), ("password", "a wrong guess")];
        let answer = ask_from(&gatepost, source, client_id, &wrong);
        answer.assert_refused(400, "invalid_grant", username);
    };
    for username in ["bob", "carol", "dave", "eve", "frank"] {
        guess("192.0.2.20", "direct", username);
    }
    issued(&ask_from(&gatepost, "192.0.2.20", "direct", &[]));
    // One account has its limit there, too.
    for _ in 0..10 {
        guess("192.0.2.20", "direct", "alice");
    }
    let refused = ask_from(&gatepost, "192.0.2.20", "direct", &[]);
    refused.assert_refused(400, "invalid_grant", "ten for alice");
    issued(&ask_from(&gatepost, "192.0.2.21", "direct", &[]));

    // A client without a secret runs where the person is, or where the guesser is.
    let public = |username: &str, password: &str| {
        let form = [
            ("grant_type", "password"),
            ("client_id", "public"),
            ("username", username),
            ("password", password),
        ];
        let headers = [("X-Forwarded-For", "192.0.2.22")];
        gatepost.post("/connect/token", &headers, &form)
    };
    for username in ["bob", "carol", "eve"] {
        let answer = public(username, "a wrong guess");
        answer.assert_refused(400, "invalid_grant", username);
    }
    let refused = public("alice", ALICE_PASSWORD);
    refused.assert_refused(400, "invalid_grant", "three from one source");
}

#[test]
fn the_tenant_is_named_or_the_clients_only_one() {
    let gatepost = start();
    let carol = [("username", "carol"), ("password", CAROL_PASSWORD)];
    let with = |acr_values: &'static str| [&carol[..], &[("acr_values", acr_values)]].concat();
    for (client_id, changes) in [
        ("direct", with("tenant:acme")),
        ("direct", with("1 tenant:acme idp:local")),
        ("acme-only", carol.to_vec()),
        ("acme-only", with("tenant:acme")),
        ("both", with("tenant:acme")),
    ] {
        let tokens = issued(&ask(&gatepost, client_id, &changes));
        let (_, claims) = verified(&gatepost, text(&tokens, "id_token"));
        assert_eq!(claims["tenant"], "acme", "{client_id} {changes:?}");
        assert_eq!(claims.get("idp"), None);
    }
    for (client_id, changes) in [
        ("both", carol.to_vec()),
        ("acme-only", vec![]),
        ("direct", vec![("acr_values", "tenant:acme")]),
    ] {
        ask(&gatepost, client_id, &changes).assert_refused(400, "invalid_grant", client_id);
    }
    for (client_id, acr_values) in [
        ("direct", "tenant:nope"),
        ("direct", "tenant:"),
        ("direct", "tenant:acme tenant:acme"),
        ("acme-only", "tenant:globex"),
        ("direct", "idp:corp"),
        ("direct", "idp:"),
        ("direct", "idp:local idp:corp"),
    ] {
        let answer = ask(&gatepost, client_id, &with(acr_values));
        answer.assert_refused(400, "invalid_request", acr_values);
    }
    let local = [("acr_values", "idp:local something else")];
    issued(&ask(&gatepost, "direct", &local));
}

#[test]
fn a_changed_password_ends_what_the_old_one_gave() {
    let gatepost = start_own();
    let tokens = issued(&ask(&gatepost, "direct", &[]));
    let new = "an entirely new passphrase";
    gatepost.run_well(&["user", "password", "alice"], new);
    assert_userinfo(&gatepost, &tokens, 401);
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&tokens, "refresh_token")),
    ];
    let answer = gatepost.token("direct", &form);
    answer.assert_refused(400, "invalid_grant", "refresh");
    ask(&gatepost, "direct", &[]).assert_refused(400, "invalid_grant", "the old password");
    let anew = issued(&ask(&gatepost, "direct", &[("password", new)]));
    assert_userinfo(&gatepost, &anew, 200);
}
