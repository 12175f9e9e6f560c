//! Revocation (RFC 7009): what is acknowledged is over, and asking tells nobody anything.

use serde_json::json;

use crate::support::flow::{basic, userinfo};
use crate::support::gatepost::Gatepost;
use crate::support::http::Answer;
use crate::support::offline::ORDERS;
use crate::support::offline::{
    CONF1, CONF2, PUB1, Party, REUSE, access, introspect_as, member, refresh, start, start_own,
};

const OFFLINE: &str = "openid profile orders.read offline_access";

fn post(gatepost: &Gatepost, party: Party, form: &[(&str, &str)]) -> Answer {
    party.ask(gatepost, "/connect/revocation", form)
}

#[test]
fn an_access_token_goes_alone_in_either_form_and_for_every_kind_of_client() {
    let (gatepost, mut browser) = start();
    for party in [CONF1, CONF2, PUB1] {
        let first = party.tokens(&gatepost, &mut browser, OFFLINE);
        let second = party.refresh(&gatepost, refresh(&first)).json();
        party.revoke(&gatepost, access(&first));
        assert_eq!(userinfo(&gatepost, access(&first)).status, 401);
        let told = introspect_as(&gatepost, ORDERS, access(&first));
        assert_eq!(told, json!({"active": false}));
        assert_eq!(userinfo(&gatepost, access(&second)).status, 200);
        assert_eq!(party.refresh(&gatepost, refresh(&second)).status, 200);
        party.revoke(&gatepost, access(&first));
    }
    let of_client = CONF1.of_itself(&gatepost);
    let told = || introspect_as(&gatepost, ORDERS, &of_client);
    assert_eq!(told()["active"], true);
    CONF1.revoke(&gatepost, &of_client);
    assert_eq!(told()["active"], false);
}

#[test]
fn any_generation_of_a_refresh_token_takes_the_whole_grant_along() {
    let (gatepost, mut browser) = start();
    for party in [CONF1, CONF2, PUB1, REUSE] {
        for presented in [0, 1, 2] {
            let first = party.tokens(&gatepost, &mut browser, OFFLINE);
            let second = party.refresh(&gatepost, refresh(&first)).json();
            let third = party.refresh(&gatepost, refresh(&second)).json();
            let family = [first, second, third];
            let other = party.tokens(&gatepost, &mut browser, OFFLINE);
            party.revoke(&gatepost, refresh(&family[presented]));
            for tokens in &family {
                assert_eq!(userinfo(&gatepost, access(tokens)).status, 401);
                party.assert_refresh_over(&gatepost, refresh(tokens));
            }
            userinfo(&gatepost, access(&other))
                .assert_status_for("another grant of the same pair lives", 200);
            party.revoke(&gatepost, refresh(&family[presented]));
        }
    }
    let counted = "SELECT count(*) FROM audit_events WHERE event = 'grant_revoked' AND sub IS NOT NULL AND client_id IS NOT NULL";
    assert_eq!(gatepost.database.value::<i64>(counted, &[]), 12);
}

#[test]
fn the_hint_never_prevents_it() {
    let (gatepost, mut browser) = start();
    let long = "x".repeat(5_000);
    for hint in ["access_token", "refresh_token", "unknown", "", &*long] {
        let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
        let for_access = [("token", access(&tokens)), ("token_type_hint", hint)];
        assert_eq!(post(&gatepost, CONF1, &for_access).status, 200);
        assert_eq!(userinfo(&gatepost, access(&tokens)).status, 401, "{hint}");
        let for_refresh = [("token_type_hint", hint), ("token", refresh(&tokens))];
        assert_eq!(post(&gatepost, CONF1, &for_refresh).status, 200);
        CONF1.assert_refresh_over(&gatepost, refresh(&tokens));
    }
}

#[test]
fn what_is_unknown_or_foreign_answers_alike_and_stays_as_it_is() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let code = CONF1.code(&mut browser, &[]);
    let gone = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let known = post(&gatepost, CONF1, &[("token", refresh(&gone))]);
    // Some libraries read every answer as JSON.
    known.assert_status(200);
    known.assert_header("content-type", "application/json");
    assert_eq!(known.text(), "{}");
    let damaged = format!("{}A", refresh(&tokens));
    for (party, token) in [
        (CONF2, access(&tokens)),
        (CONF2, refresh(&tokens)),
        (PUB1, refresh(&tokens)),
        (CONF1, damaged.as_str()),
        (CONF1, member(&tokens, "id_token")),
        (CONF1, code.as_str()),
        (CONF1, refresh(&gone)),
        (CONF1, "x"),
        (CONF1, "gpr_"),
        (CONF1, "gpa_AAAA"),
        (CONF1, "a.b.c"),
        (CONF1, "' OR 1=1 --"),
    ] {
        let answer = post(&gatepost, party, &[("token", token)]);
        let comparable = |answer: &Answer| {
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| name != "date" && name != "x-request-id");
            (answer.status, headers, answer.body.clone())
        };
        assert_eq!(comparable(&answer), comparable(&known), "{token}");
    }
    assert_eq!(userinfo(&gatepost, access(&tokens)).status, 200);
    assert_eq!(CONF1.refresh(&gatepost, refresh(&tokens)).status, 200);
    assert_eq!(CONF1.redeem(&gatepost, &code).status, 200);
    assert_eq!(gatepost.database.count("revoked_tokens"), 0);
}

#[test]
fn a_request_that_is_none_is_named() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let token = access(&tokens);
    let long = "x".repeat(8_193);
    let hint = ("token_type_hint", "a");
    for form in [
        &[][..],
        &[("token", "")],
        &[("token", token), ("token", token)],
        &[("token", token), hint, hint],
        &[("token", &long)],
        &[("Token", token)],
    ] {
        post(&gatepost, CONF1, form).assert_error(400, "invalid_request");
    }
    for in_query in [
        &format!("token={token}"),
        "client_secret=x",
        "client_assertion=x",
        "client_assertion_type=x",
    ] {
        let path = format!("/connect/revocation?{in_query}");
        let answer = CONF1.ask(&gatepost, &path, &[("token", token)]);
        answer.assert_error(400, "invalid_request");
    }
    for wrong in [basic("conf1", "wrong"), basic("nobody", "x")] {
        let headers = [("Authorization", &*wrong)];
        let answer = gatepost.post("/connect/revocation", &headers, &[("token", token)]);
        answer.assert_error(401, "invalid_client");
        answer.assert_header("www-authenticate", "Basic realm=\"gatepost\"");
    }
    let named = [("token", token), ("client_id", "conf1")];
    for form in [&named[..1], &named] {
        let answer = gatepost.post("/connect/revocation", &[], form);
        answer.assert_error(400, "invalid_client");
    }
    let json = [("Content-Type", "application/json")];
    let answer = gatepost.send("POST", "/connect/revocation", &json, b"{}");
    answer.assert_error(415, "invalid_request");
    let get = gatepost.get("/connect/revocation");
    get.assert_status(405);
    get.assert_header("allow", "POST, OPTIONS");
    assert_eq!(userinfo(&gatepost, token).status, 200);
}

#[test]
fn scripts_of_the_clients_own_pages_may_revoke() {
    let (gatepost, mut browser) = start();
    let tokens = PUB1.tokens(&gatepost, &mut browser, OFFLINE);
    let revoke = |origin: &str| {
        let form = [("token", access(&tokens)), ("client_id", "pub1")];
        gatepost.post("/connect/revocation", &[("Origin", origin)], &form)
    };
    let answer = revoke("https://app.example");
    answer.assert_header("access-control-allow-origin", "https://app.example");
    assert_eq!(answer.header("vary"), Some("Origin"));
    let foreign = revoke("https://rp1.example");
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let origin = ("Origin", "https://app.example");
    let preflight = [origin, ("Access-Control-Request-Method", "POST")];
    for (endpoint, status) in [("revocation", 204), ("introspect", 405)] {
        let path = format!("/connect/{endpoint}");
        let answer = gatepost.send("OPTIONS", &path, &preflight, b"");
        answer.assert_status_for(endpoint, status);
    }
}

#[test]
fn what_could_not_be_stored_is_not_acknowledged() {
    let (gatepost, mut browser) = start_own();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    gatepost.database.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE ON grants FOR EACH ROW EXECUTE FUNCTION refuse(); \
         CREATE TRIGGER refuse BEFORE INSERT ON revoked_tokens FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    for token in [refresh(&tokens), access(&tokens)] {
        let answer = post(&gatepost, CONF1, &[("token", token)]);
        answer.assert_error(503, "temporarily_unavailable");
        assert!(answer.header("retry-after").is_some());
        assert_eq!(userinfo(&gatepost, access(&tokens)).status, 200);
    }
    gatepost.run_sql("DROP TRIGGER refuse ON grants; DROP TRIGGER refuse ON revoked_tokens");
    CONF1.revoke(&gatepost, refresh(&tokens));
    assert_eq!(userinfo(&gatepost, access(&tokens)).status, 401);
}
