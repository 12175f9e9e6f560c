//! Flows that OAuth 2.1 has no more: until when a client may use them, and when it last did.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, issued, redeem_with, signed_in, with_clients, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::Answer;
use crate::support::tables::rows_of;

const GONE: &str = "2020-02-29";

/// `past` could use them until 2020; `present` may for ten days to come; `open` says nothing.
fn registered(last: &str) -> Value {
    let old = |changes: Value| {
        let client = json!({
            "grant_types": ["authorization_code", "implicit", "password"], "response_types": ["code", "code token"],
            "scope": "openid profile", "require_pkce": false, "allow_plain_pkce": true,
            "allow_access_tokens_via_browser": true,
        });
        with_members(client, &changes)
    };
    let past = ("past", old(json!({"legacy_until": GONE})));
    let present = ("present", old(json!({"legacy_until": last})));
    with_clients(document(), &[past, present, ("open", old(json!({})))])
}

/// Days from today, by the clock of the database.
fn day(gatepost: &Gatepost, ahead: i32) -> String {
    let asked = "SELECT to_char((now() AT TIME ZONE 'UTC')::date + $1::int4, 'YYYY-MM-DD')";
    let mut database = gatepost.database.client();
    database.query_one(asked, &[&ahead]).unwrap().get(0)
}

fn start() -> (Gatepost, String) {
    let mut gatepost = Gatepost::prepare(&[]);
    let last = day(&gatepost, 10);
    gatepost.apply(&registered(&last));
    gatepost.serve();
    (gatepost, last)
}

/// Code, error and flow of each, and the parameters that it differs in from a good request.
const REQUESTS: &str = "
    GP1110 | unauthorized_client | tokens through the browser | response_type=code token
    GP1119 | invalid_request | neither PKCE nor nonce | code_challenge=&code_challenge_method=&nonce=
    GP1122 | invalid_request | plain PKCE | code_challenge=a-challenge-of-more-than-43-characters-0123456789\
        &code_challenge_method=plain";

type Request = ([&'static str; 3], Vec<(&'static str, &'static str)>);

fn requests() -> Vec<Request> {
    let row = |[reason, error, flow, changes]: [&'static str; 4]| {
        let changes = changes.split('&').map(|change| change.split_once('='));
        ([reason, error, flow], changes.map(Option::unwrap).collect())
    };
    rows_of(REQUESTS).into_iter().map(row).collect()
}

fn by_password(gatepost: &Gatepost, client_id: &str) -> Answer {
    let grant = [("grant_type", "password"), ("scope", "openid")];
    let person = [("username", "alice"), ("password", ALICE_PASSWORD)];
    gatepost.token(client_id, &[grant, person].concat())
}

#[test]
fn after_its_day_a_client_is_refused_what_oauth_2_1_has_no_more() {
    let (gatepost, _) = start();
    let mut browser = signed_in(&gatepost);
    for ([reason, error, case], changes) in requests() {
        let answer = browser.get(&authorize_path("past", RP1, &changes));
        let location = answer.header("location").unwrap().to_owned();
        assert!(location.starts_with(RP1), "{case}: {location}");
        location.assert_says_for(case, &format!("error={error}"));
        assert!(location.contains("state=the-state"), "{case}: {location}");
        let line = gatepost.last_line("/connect/");
        assert!(line.contains(reason), "{case}: {line}");
        line.assert_says_for(case, "legacy_until");
        for client_id in ["present", "open"] {
            let answer = browser.get(&authorize_path(client_id, RP1, &changes));
            let case = format!("{case}, {client_id}");
            answer.location().assert_says_for(case, "code=");
        }
        let path = authorize_path("past", RP1, &changes);
        let address = format!("{}{path}", gatepost.origin());
        let told = gatepost.run(&["explain", &address], "");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains(reason), "{told}");
        told.assert_says("legacy_until");
    }
    let refused = by_password(&gatepost, "past");
    refused.assert_refused(400, "unauthorized_client", "password");
    let line = gatepost.last_line("/connect/");
    assert!(line.contains("GP1203"), "{line}");
    line.assert_says("legacy_until");
    issued(&by_password(&gatepost, "present"));
    // All else goes on: PKCE with S256, or a nonce that comes back.
    let without_pkce = [("code_challenge", ""), ("code_challenge_method", "")];
    for changes in [&[][..], &without_pkce] {
        let code = code(&mut browser, &authorize_path("past", RP1, changes));
        let sent: &[(&str, &str)] = match changes.is_empty() {
            true => &[],
            false => &[("code_verifier", crate::support::flow::LEFT_OUT)],
        };
        issued(&redeem_with(&gatepost, "past", &code, sent));
    }
}

fn uses(gatepost: &Gatepost) -> Vec<(String, String, String)> {
    let asked = "SELECT client_id, flow, xmin::text FROM flow_uses ORDER BY client_id, flow";
    let rows = gatepost.database.client().query(asked, &[]).unwrap();
    let row = |row: &postgres::Row| (row.get(0), row.get(1), row.get(2));
    rows.iter().map(row).collect()
}

fn use_all(gatepost: &Gatepost, client_id: &str) {
    let mut browser = signed_in(gatepost);
    for (_, changes) in requests() {
        browser.get(&authorize_path(client_id, RP1, &changes));
    }
    by_password(gatepost, client_id);
}

#[test]
fn the_last_use_of_each_flow_is_kept_and_told() {
    let (mut gatepost, last) = start();
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &authorize_path("open", RP1, &[]));
    use_all(&gatepost, "past");
    use_all(&gatepost, "present");
    use_all(&gatepost, "present");
    // A process that ends writes what is not written yet.
    gatepost.stop();
    let flows = [
        "neither PKCE nor nonce",
        "password grant",
        "plain PKCE",
        "tokens through the browser",
    ];
    let written = uses(&gatepost);
    let named = written
        .iter()
        .map(|(client_id, flow, _)| (&**client_id, &**flow));
    assert_eq!(Vec::from_iter(named), flows.map(|flow| ("present", flow)));
    let day_of = "SELECT DISTINCT to_char(date '1970-01-01' + day, 'YYYY-MM-DD') FROM flow_uses";
    let today: String = gatepost.database.value(day_of, &[]);
    gatepost.serve();
    let present = format!("present [until {last}, last used {today}]");
    let told = format!("password grant (open, past [until {GONE}], {present})");
    let what = "the last use among the weak settings";
    gatepost.await_log(what, |log| log.contains(&told));
    // Another day that ends them is told before it is applied, with the last use.
    let next = day(&gatepost, 20);
    let mut changed = registered(&next);
    let clients = changed["clients"].as_array_mut().unwrap();
    clients.retain(|client| client["client_id"] == "present");
    let changed = json!({ "clients": clients }).to_string();
    let output = gatepost.run(&["plan", "-"], &changed);
    let plan = String::from_utf8(output.stdout).unwrap();
    for flow in flows {
        let line =
            format!("warning: client \"present\": {flow} until {next}, last used on {today}");
        assert!(plan.contains(&line), "{line}: {plan}");
    }
    let output = gatepost.run(&["plan", "-", "--json"], &changed);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 4, "{plan}");
    // Whoever is removed takes theirs along.
    gatepost.run_well(&["client", "remove", "present", "--yes"], "");
    assert_eq!(uses(&gatepost), []);
}

#[test]
fn a_day_that_is_none_is_refused_and_client_test_tells_the_grade() {
    let (gatepost, last) = start();
    for day in ["2027-02-30", "tomorrow", "2027-01-31T00:00:00Z", ""] {
        let document = registered(day).to_string();
        let output = gatepost.run(&["plan", "-"], &document);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        told.assert_says_for(day, "legacy_until: must be a day as 2027-01-31");
    }
    let strict = json!({
        "token_endpoint_auth_method": "private_key_jwt", "secrets": null, "grant_types": ["authorization_code"],
        "jwks": {"keys": [crate::support::signer::Signer::es256("k").jwk()]}, "require_pkce": true,
        "token_endpoint_auth_signing_alg": "ES256", "require_pushed_authorization_requests": true,
        "id_token_signed_response_alg": "ES256", "access_token_signed_response_alg": "ES256", "scope": "openid",
    });
    let first = json!({"clients": [document()["clients"][0]]});
    let strict = with_clients(first, &[("strict", strict)]);
    gatepost.apply(&json!({"clients": [strict["clients"][1]]}));
    let tested = |client_id: &str| {
        let output = gatepost.run(&["client", "test", client_id], "");
        String::from_utf8(output.stdout).unwrap()
    };
    let wants = "OAuth 2.1 wants: code instead of";
    let open = format!("it uses legacy flows; {wants}");
    let until = format!("it uses legacy flows until {last}; {wants}");
    let keeps = "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", ";
    let keys = format!("{keeps}and: token_endpoint_auth_method must be private_key_jwt");
    let left_out = format!("{keeps}which fills in what the registration leaves out");
    for (client_id, said) in [
        ("open", &open),
        ("present", &until),
        ("past", &format!("{keeps}and: ")),
        ("conf1", &keys),
        ("strict", &left_out),
    ] {
        let told = tested(client_id);
        told.assert_says_for(client_id, said);
    }
}
