//! Token exchange (RFC 8693): whose tokens, for which resources, on whose behalf, and what ends the
//! new token.

use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{
    access_token, authorize_path, code, damaged, issued, redeem_with, signed_in, text, tokens,
    userinfo, with_clients, with_members,
};
use crate::support::gatepost::{BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::jwt::verified;
use crate::support::offline::client;
use crate::support::shared::Shared;
use crate::support::tables::{cases, rows_of};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ORDERS: &str = "https://orders.example";
const STOCK: &str = "https://stock.example";

/// `web` gets the users' tokens; `gateway` exchanges those, `chain` any of the two and its own;
/// `orders` takes what is meant for the orders resource.
fn registration() -> Value {
    let service = |changes: Value| {
        let service = json!({
            "grant_types": [GRANT, "client_credentials"], "response_types": [], "redirect_uris": [],
            "scope": "openid orders.read stock.read",
            "token_exchange": {"from_clients": ["web"], "to_resources": [STOCK]},
        });
        with_members(service, &changes)
    };
    let web = json!({
        "grant_types": ["authorization_code", "refresh_token"], "access_token_type": "reference",
        "scope": "openid profile offline_access orders.read orders.write stock.read",
    });
    let all = json!({"from_clients": ["web", "gateway", "chain", "by-reference"], "to_resources": [STOCK, ORDERS]});
    let to_both = json!({"from_clients": ["web"], "to_resources": [STOCK, ORDERS]});
    let by_reference = json!({"token_exchange": to_both, "access_token_type": "reference"});
    let as_orders = json!({"as_resources": [ORDERS], "to_resources": [STOCK]});
    let orders = json!({"token_exchange": as_orders, "scope": "stock.read orders.read"});
    let clients = [
        ("web", web),
        ("gateway", service(json!({}))),
        ("chain", service(json!({"token_exchange": all}))),
        ("by-reference", service(by_reference)),
        ("orders", service(orders)),
        (
            "of-acme",
            service(json!({"scope": "stock.read", "tenants": ["acme"]})),
        ),
    ];
    let mut document = with_clients(document(), &clients);
    document["tenants"] = json!([{"name": "acme"}]);
    document["resources"] =
        json!([{"name": ORDERS}, {"name": STOCK, "secrets": [{"value": CONF1_SECRET}]}]);
    document
}

fn start() -> Shared {
    Gatepost::lent_with(&registration(), &[])
}

/// A server that a test may change.
fn start_own() -> Gatepost {
    Gatepost::start_with(&registration(), &[])
}

fn exchange_with(gatepost: &Gatepost, client_id: &str, form: &[(&str, &str)]) -> Answer {
    let form = [&[("grant_type", GRANT)], form].concat();
    gatepost.token(client_id, &form)
}

fn exchange(gatepost: &Gatepost, client_id: &str, token: &str, form: &[(&str, &str)]) -> Answer {
    exchange_with(gatepost, client_id, &[&subject(token), form].concat())
}

/// What says whose token is exchanged.
fn subject(token: &str) -> [(&str, &str); 2] {
    [
        ("subject_token", token),
        ("subject_token_type", ACCESS_TOKEN),
    ]
}

fn exchanged(gatepost: &Gatepost, client_id: &str, token: &str) -> String {
    let response = issued(&exchange(gatepost, client_id, token, &[]));
    text(&response, "access_token").to_owned()
}

fn introspected(gatepost: &Gatepost, token: &str) -> Value {
    issued(&gatepost.post_as(STOCK, "/connect/introspect", &[("token", token)]))
}

fn lives(gatepost: &Gatepost, token: &str) -> bool {
    introspected(gatepost, token)["active"] == true
}

fn revoke(gatepost: &Gatepost, client_id: &str, token: &str) {
    let answer = gatepost.post_as(client_id, "/connect/revocation", &[("token", token)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn of_web(gatepost: &Gatepost, browser: &mut Browser, scope: &str) -> String {
    text(&tokens(gatepost, browser, "web", scope), "access_token").to_owned()
}

#[test]
fn a_token_becomes_a_narrower_one_that_says_who_acts() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let scope = "openid profile offline_access orders.read stock.read";
    let token = of_web(&gatepost, &mut browser, scope);
    let form = [("requested_token_type", ACCESS_TOKEN)];
    let response = issued(&exchange(&gatepost, "gateway", &token, &form));
    response.assert_members("access_token expires_in issued_token_type scope token_type");
    assert_eq!(response["issued_token_type"], json!(ACCESS_TOKEN));
    assert_eq!(response["token_type"], "Bearer");
    // What it may not take to stock stays behind.
    assert_eq!(response["scope"], "stock.read");
    let jwt = text(&response, "access_token");
    let (header, claims) = verified(&gatepost, jwt);
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(claims["aud"], json!(STOCK));
    assert_eq!(claims["client_id"], "gateway");
    let actor = json!({"sub": "gateway", "client_id": "gateway"});
    assert_eq!(claims["act"], actor);
    let original = introspected(&gatepost, &token);
    assert_eq!(claims["sub"], original["sub"]);
    assert_eq!(claims["sid"], original["sid"]);
    assert!(claims["exp"].as_i64() <= original["exp"].as_i64() && claims["auth_time"].is_i64());
    let told = introspected(&gatepost, jwt);
    assert_eq!(told["active"], true);
    assert_eq!(told["act"], claims["act"]);
    assert_eq!(told["sub"], claims["sub"]);
    userinfo(&gatepost, jwt).assert_refused(403, "insufficient_scope", "it has no openid");
    // As a handle it says the same.
    let reference = exchanged(&gatepost, "by-reference", &token);
    let told = introspected(&gatepost, &reference);
    assert!(reference.starts_with("gpa_"));
    let actor = json!({"sub": "by-reference", "client_id": "by-reference"});
    assert_eq!(told["act"], actor);
    // A resource server exchanges what was meant for it, whichever client got it.
    let for_orders = access_token(&gatepost, &mut browser, "openid orders.read stock.read");
    let (_, claims) = verified(&gatepost, &exchanged(&gatepost, "orders", &for_orders));
    assert_eq!(claims["scope"], "stock.read");
    assert_eq!(claims["act"]["sub"], "orders");
    let as_jwt = [("subject_token", &*for_orders), ("subject_token_type", JWT)];
    exchange_with(&gatepost, "orders", &as_jwt).assert_status(200);
}

#[test]
fn scope_and_target_stay_within_token_client_and_registration() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let token = of_web(&gatepost, &mut browser, "openid orders.read stock.read");
    let both = [
        ("resource", ORDERS),
        ("audience", STOCK),
        ("audience", ORDERS),
    ];
    for (form, scope, audience) in [
        (&[("scope", "stock.read")][..], "stock.read", json!(STOCK)),
        (&[("resource", ORDERS)], "orders.read", json!(ORDERS)),
        (
            &[("resource", "https://stock.example/")],
            "stock.read",
            json!(STOCK),
        ),
        (&[("audience", STOCK)], "stock.read", json!(STOCK)),
        (&both, "orders.read stock.read", json!([ORDERS, STOCK])),
        (&[], "orders.read stock.read", json!([ORDERS, STOCK])),
    ] {
        let response = issued(&exchange(&gatepost, "chain", &token, form));
        let (_, claims) = verified(&gatepost, text(&response, "access_token"));
        assert_eq!(response["scope"], json!(scope), "{form:?}");
        assert_eq!(&claims["aud"], &audience, "{form:?}");
    }
    for [error, client_id, form] in rows_of(
        "
        invalid_scope   | chain   | scope=openid
        invalid_scope   | chain   | scope=stock.read openid
        invalid_scope   | gateway | scope=offline_access
        invalid_scope   | chain   | scope=orders.write
        invalid_scope   | chain   | scope=nope
        invalid_target  | gateway | scope=orders.read
        invalid_target  | gateway | resource=https://orders.example
        invalid_target  | chain   | resource=https://elsewhere.example
        invalid_target  | chain   | audience=elsewhere
        invalid_target  | chain   | resource=https://stock.example & resource=https://stock.example/x
        invalid_target  | chain   | scope=stock.read & resource=https://orders.example
        invalid_request | chain   | scope=stock.read & scope=stock.read
        invalid_request | chain   | unknown=a & unknown=b
        ",
    ) {
        let form = form.split(" & ").map(|pair| pair.split_once('=').unwrap());
        let answer = exchange(&gatepost, client_id, &token, &form.collect::<Vec<_>>());
        answer.assert_refused(400, error, client_id);
    }
    let eleven = exchange(&gatepost, "chain", &token, &[("audience", STOCK); 11]);
    eleven.assert_refused(400, "invalid_request", "eleven audiences");
    let only_openid = of_web(&gatepost, &mut browser, "openid");
    let answer = exchange(&gatepost, "chain", &only_openid, &[]);
    answer.assert_refused(400, "invalid_scope", "nothing is left");
}

#[test]
fn other_tokens_and_other_clients_get_nothing() {
    let gatepost = start_own();
    let mut browser = signed_in(&gatepost);
    let scope = "openid offline_access stock.read";
    let whole = tokens(&gatepost, &mut browser, "web", scope);
    let token = text(&whole, "access_token");
    let answer = exchange(&gatepost, "conf1", token, &[]);
    answer.assert_refused(400, "unauthorized_client", "without the grant");
    let public = [("grant_type", GRANT), ("client_id", "pub1")];
    let public = gatepost.post("/connect/token", &[], &[public, subject(token)].concat());
    public.assert_refused(400, "unauthorized_client", "a public client");
    for client_id in ["orders", "of-acme"] {
        let answer = exchange(&gatepost, client_id, token, &[]);
        answer.assert_refused(400, "invalid_request", client_id);
    }
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "stock.read"),
    ];
    let service = issued(&gatepost.token("gateway", &form));
    let foreign = access_token(&gatepost, &mut browser, "openid stock.read");
    let damaged = damaged(token);
    let long = "x".repeat(8_193);
    for (case, shown) in [
        ("a refresh token", text(&whole, "refresh_token")),
        ("an ID token", text(&whole, "id_token")),
        ("a client's own token", text(&service, "access_token")),
        ("another client's", &foreign),
        ("damaged", &damaged),
        ("nothing of ours", "nonsense"),
        ("overlong", &long),
    ] {
        exchange(&gatepost, "gateway", shown, &[]).assert_refused(400, "invalid_request", case);
    }
    let id_token_type = "urn:ietf:params:oauth:token-type:id_token";
    let [of_token, of_type] = subject(token);
    let called = |kind| ("subject_token_type", kind);
    let wanted = ("requested_token_type", JWT);
    let of_actor = ("actor_token_type", ACCESS_TOKEN);
    for (case, form) in [
        ("nothing", vec![]),
        ("no type", vec![of_token]),
        ("no token", vec![of_type]),
        ("an empty token", vec![("subject_token", ""), of_type]),
        ("called a JWT", vec![of_token, called(JWT)]),
        ("called an ID token", vec![of_token, called(id_token_type)]),
        ("two tokens", vec![of_token, of_token, of_type]),
        ("a JWT wanted", vec![of_token, of_type, wanted]),
        ("an actor", vec![of_token, of_type, ("actor_token", token)]),
        ("an actor's type", vec![of_token, of_type, of_actor]),
    ] {
        let answer = exchange_with(&gatepost, "gateway", &form);
        answer.assert_refused(400, "invalid_request", case);
    }
    // Nothing was a guess, so nobody is made to wait.
    assert_eq!(exchange(&gatepost, "gateway", token, &[]).status, 200);
    // Exchanges write nothing.
    assert_eq!(gatepost.database.count("grants"), 2);
}

#[test]
fn the_new_token_ends_with_everything_that_the_old_one_stands_on() {
    let gatepost = start_own();
    let mut browser = signed_in(&gatepost);
    let scope = "openid offline_access orders.read stock.read";
    // The subject token, by its client: and what hangs on it, over several hands.
    let token = of_web(&gatepost, &mut browser, scope);
    let first = exchanged(&gatepost, "by-reference", &token);
    let second = exchanged(&gatepost, "chain", &token);
    let third = exchanged(&gatepost, "chain", &first);
    assert!(lives(&gatepost, &first) && lives(&gatepost, &second) && lives(&gatepost, &third));
    revoke(&gatepost, "by-reference", &first);
    assert!(!lives(&gatepost, &first));
    assert!(!lives(&gatepost, &third));
    assert!(lives(&gatepost, &second));
    assert!(lives(&gatepost, &token));
    exchange(&gatepost, "chain", &first, &[]).assert_refused(400, "invalid_request", "revoked");
    revoke(&gatepost, "web", &token);
    assert!(!lives(&gatepost, &second));
    let answer = exchange(&gatepost, "chain", &second, &[]);
    answer.assert_refused(400, "invalid_request", "made from a revoked one");
    userinfo(&gatepost, &second).assert_refused(401, "invalid_token", "also at userinfo");
    // Its grant, by the refresh token; a JWT as well as a handle.
    let whole = tokens(&gatepost, &mut browser, "web", scope);
    let made = exchanged(&gatepost, "gateway", text(&whole, "access_token"));
    assert!(lives(&gatepost, &made));
    revoke(&gatepost, "web", text(&whole, "refresh_token"));
    assert!(!lives(&gatepost, &made));
    // A replayed code, which ends what its first redemption gave.
    let path = authorize_path("web", RP1, &[("scope", scope)]);
    let replayed = code(&mut browser, &path);
    let redeemed = issued(&redeem_with(&gatepost, "web", &replayed, &[]));
    let made = exchanged(&gatepost, "gateway", text(&redeemed, "access_token"));
    redeem_with(&gatepost, "web", &replayed, &[]).assert_refused(400, "invalid_grant", "replay");
    assert!(!lives(&gatepost, &made));
    // The client it was issued to, and the one that exchanged it.
    for client_id in ["web", "gateway"] {
        let token = of_web(&gatepost, &mut browser, scope);
        let made = exchanged(&gatepost, "gateway", &token);
        gatepost.run_well(&["client", "revoke", client_id], "");
        assert!(!lives(&gatepost, &made), "{client_id}");
        gatepost.settle();
    }
    // Signing out ends what is not offline; an offline grant outlives it, and so does what came
    // from it.
    let [online, offline] = ["openid stock.read", scope].map(|scope| {
        let token = of_web(&gatepost, &mut browser, scope);
        exchanged(&gatepost, "gateway", &token)
    });
    gatepost.run_sql("UPDATE sessions SET ended_at = clock_timestamp()");
    assert!(!lives(&gatepost, &online) && lives(&gatepost, &offline));
    // The user.
    gatepost.run_well(&["user", "revoke", "alice"], "");
    assert!(!lives(&gatepost, &offline));
}

#[test]
fn it_expires_with_the_token_it_was_made_from() {
    let gatepost = start_own();
    let mut browser = signed_in(&gatepost);
    let mut document = registration();
    client(&mut document, "web")["access_token_lifetime"] = json!(50);
    gatepost.apply(&document);
    let token = of_web(&gatepost, &mut browser, "openid stock.read");
    let response = issued(&exchange(&gatepost, "gateway", &token, &[]));
    let made = text(&response, "access_token");
    let (_, claims) = verified(&gatepost, made);
    assert_eq!(claims["exp"], introspected(&gatepost, &token)["exp"]);
    assert!(response["expires_in"].as_u64().unwrap() <= 50);
}

#[test]
fn actors_are_named_in_order_and_four_at_most() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let token = of_web(&gatepost, &mut browser, "openid orders.read stock.read");
    let mut bob = gatepost.browser();
    let page = bob.visit(&authorize_path("conf1", RP1, &[]));
    crate::support::flow::sign_in(&mut bob, &page, "bob", BOB_PASSWORD);
    let of_bob = of_web(&gatepost, &mut bob, "openid stock.read");
    let bobs_sub = introspected(&gatepost, &of_bob)["sub"].clone();
    let with_actor = |client_id: &str, actor: &str| {
        let form = [("actor_token", actor), ("actor_token_type", ACCESS_TOKEN)];
        exchange(&gatepost, client_id, &token, &form)
    };
    let by_bob = issued(&with_actor("chain", &of_bob));
    let (_, claims) = verified(&gatepost, text(&by_bob, "access_token"));
    assert_eq!(claims["act"], json!({"sub": bobs_sub}));
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "stock.read"),
    ];
    let own = issued(&gatepost.token("chain", &form));
    let by_client = issued(&with_actor("chain", text(&own, "access_token")));
    let client = json!({"sub": "chain", "client_id": "chain"});
    let (_, claims) = verified(&gatepost, text(&by_client, "access_token"));
    assert_eq!(claims["act"], client);
    let foreign = access_token(&gatepost, &mut bob, "openid stock.read");
    for (case, actor) in [("another client's", &*foreign), ("nonsense", "nonsense")] {
        with_actor("chain", actor).assert_refused(400, "invalid_request", case);
    }
    revoke(&gatepost, "web", &of_bob);
    with_actor("chain", &of_bob).assert_refused(400, "invalid_request", "a revoked actor token");
    // Over and over, the former actor within.
    let mut last = text(&by_bob, "access_token").to_owned();
    for depth in 2..=4 {
        last = exchanged(&gatepost, "chain", &last);
        let (_, claims) = verified(&gatepost, &last);
        let mut act = &claims["act"];
        for _ in 1..depth {
            assert_eq!(act["sub"], "chain");
            act = &act["act"];
        }
        assert_eq!((act, act.get("act")), (&json!({"sub": bobs_sub}), None));
    }
    assert!(lives(&gatepost, &last));
    let answer = exchange(&gatepost, "chain", &last, &[]);
    answer.assert_refused(400, "invalid_request", "a fifth actor");
}

#[test]
fn may_act_names_the_only_one_who_may() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.database.run("CREATE FUNCTION answer(parameters jsonb, client jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT (parameters ->> ''answer'')::jsonb'");
    let grant = json!({"grant_types": ["urn:example:answer"], "response_types": [], "redirect_uris": [], "scope": "stock.read"});
    let mut document = with_clients(registration(), &[("legacy", grant)]);
    document["extension_grants"] = json!([{"name": "urn:example:answer", "function": format!("{}.answer", gatepost.database.schema)}]);
    let carol = json!({"sub": "carol-1", "username": "carol"});
    document["users"].as_array_mut().unwrap().push(carol);
    let clients = document["clients"].as_array_mut().unwrap();
    let exchanging = |client: &&mut Value| client["token_exchange"]["from_clients"].is_array();
    for client in clients.iter_mut().filter(exchanging) {
        client["token_exchange"]["from_clients"] = json!(["legacy", "gateway"]);
    }
    gatepost.apply(&document);
    gatepost.serve();
    let subject = |may_act: Value| {
        let answer = json!({"subject": "carol-1", "claims": {"may_act": may_act, "tier": "gold"}});
        let answer = answer.to_string();
        let form = [("grant_type", "urn:example:answer"), ("answer", &*answer)];
        let answer = gatepost.token("legacy", &form);
        text(&issued(&answer), "access_token").to_owned()
    };
    let for_gateway = subject(json!({"client_id": "gateway"}));
    let (_, claims) = verified(&gatepost, &exchanged(&gatepost, "gateway", &for_gateway));
    assert_eq!(claims["tier"], "gold");
    assert_eq!(claims["act"]["sub"], "gateway");
    let answer = exchange(&gatepost, "chain", &for_gateway, &[]);
    answer.assert_refused(400, "invalid_request", "somebody else");
    let onwards = exchanged(&gatepost, "gateway", &for_gateway);
    let answer = exchange(&gatepost, "chain", &onwards, &[]);
    answer.assert_refused(400, "invalid_request", "also further on");
    for nobody in [
        json!({"sub": "carol-1"}),
        json!({"sub": "gateway", "iss": "https://elsewhere.example"}),
    ] {
        let answer = exchange(&gatepost, "gateway", &subject(nobody), &[]);
        answer.assert_refused(400, "invalid_request", "nobody");
    }
}

#[test]
fn what_contradicts_itself_is_not_registered() {
    let gatepost = Gatepost::start();
    let secrets = json!([{"value": CONF1_SECRET}]);
    let contradictions = json!({
        "confidential clients only": {
            "token_endpoint_auth_method": "none", "token_exchange": {"from_clients": ["conf1"]},
        },
        "token_exchange": {"secrets": secrets},
        "not a registered client": {"secrets": secrets, "token_exchange": {"from_clients": ["nobody"]}},
        "must not be empty": {"secrets": secrets, "token_exchange": {"from_clients": []}},
        "not a registered resource":
            {"secrets": secrets, "token_exchange": {"from_clients": ["conf1"], "to_resources": ["nowhere"]}},
        "from_clients": {"secrets": secrets, "token_exchange": {"from_client": ["conf1"]}},
    });
    for (said, client) in cases(&contradictions) {
        let usual = json!({"client_id": "x", "grant_types": [GRANT], "scope": "stock.read"});
        let client = with_members(usual, client);
        let heard = gatepost.refusal(&["apply", "-"], &json!({"clients": [client]}).to_string());
        heard.assert_says_for(client, said);
    }
}
