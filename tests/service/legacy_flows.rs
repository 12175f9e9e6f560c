//! Flows that OAuth 2.1 has no more: until when a client may use them, and when it last did.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    VERIFIER, authorize_path, code, issued, redeem_with, signed_in, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::Answer;

const GONE: &str = "2020-02-29";

/// `past` could use them until 2020; `present` may for ten days to come; `open` says nothing.
fn registered(last: &str) -> Value {
    let old = |changes: Value| {
        let mut client = json!({
            "grant_types": ["authorization_code", "implicit", "password"], "response_types": ["code", "code token"],
            "scope": "openid profile", "require_pkce": false, "allow_plain_pkce": true,
            "allow_access_tokens_via_browser": true,
        });
        for (name, value) in changes.as_object().unwrap() {
            client[name] = value.clone();
        }
        client
    };
    with_clients(
        document(),
        &[
            ("past", old(json!({"legacy_until": GONE}))),
            ("present", old(json!({"legacy_until": last}))),
            ("open", old(json!({}))),
        ],
    )
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

/// Code, error, flow, and parameters.
type Refused = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Each by the parameters that it differs in from a good request.
const REQUESTS: [Refused; 3] = [
    (
        "GP1110",
        "unauthorized_client",
        "tokens through the browser",
        &[("response_type", "code token")],
    ),
    (
        "GP1119",
        "invalid_request",
        "neither PKCE nor nonce",
        &[
            ("code_challenge", ""),
            ("code_challenge_method", ""),
            ("nonce", ""),
        ],
    ),
    (
        "GP1122",
        "invalid_request",
        "plain PKCE",
        &[
            ("code_challenge", VERIFIER),
            ("code_challenge_method", "plain"),
        ],
    ),
];

fn by_password(gatepost: &Gatepost, client_id: &str) -> Answer {
    let form = [
        ("grant_type", "password"),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
        ("scope", "openid"),
    ];
    gatepost.token(client_id, &form)
}

fn last_line(gatepost: &Gatepost) -> String {
    let log = gatepost.log();
    let line = log.lines().rev().find(|line| line.contains("/connect/"));
    line.unwrap().to_owned()
}

#[test]
fn after_its_day_a_client_is_refused_what_oauth_2_1_has_no_more() {
    let (gatepost, _) = start();
    let mut browser = signed_in(&gatepost);
    for (reason, error, case, changes) in REQUESTS {
        let answer = browser.get(&authorize_path("past", RP1, changes));
        let location = answer.header("location").unwrap().to_owned();
        assert!(location.starts_with(RP1), "{case}: {location}");
        location.assert_says_for(case, &format!("error={error}"));
        assert!(location.contains("state=the-state"), "{case}: {location}");
        let line = last_line(&gatepost);
        assert!(line.contains(reason), "{case}: {line}");
        line.assert_says_for(case, "legacy_until");
        for client_id in ["present", "open"] {
            let answer = browser.get(&authorize_path(client_id, RP1, changes));
            let location = answer.header("location").unwrap().to_owned();
            assert!(
                location.contains("code="),
                "{case}, {client_id}: {location}"
            );
        }
        let address = format!(
            "{}{}",
            gatepost.origin(),
            authorize_path("past", RP1, changes)
        );
        let told = gatepost.run(&["explain", &address], "");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains(reason), "{told}");
        told.assert_says("legacy_until");
    }
    let refused = by_password(&gatepost, "past");
    refused.assert_refused(400, "unauthorized_client", "password");
    let line = last_line(&gatepost);
    assert!(line.contains("GP1203"), "{line}");
    line.assert_says("legacy_until");
    issued(&by_password(&gatepost, "present"));
    // All else goes on: PKCE with S256, or a nonce that comes back.
    for changes in [
        &[][..],
        &[("code_challenge", ""), ("code_challenge_method", "")],
    ] {
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
    for (_, _, _, changes) in REQUESTS {
        browser.get(&authorize_path(client_id, RP1, changes));
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
    let named: Vec<(&str, &str)> = written
        .iter()
        .map(|(client_id, flow, _)| (client_id.as_str(), flow.as_str()))
        .collect();
    assert_eq!(named, flows.map(|flow| ("present", flow)));
    let day_of = "SELECT DISTINCT to_char(date '1970-01-01' + day, 'YYYY-MM-DD') FROM flow_uses";
    let today: String = gatepost.database.value(day_of, &[]);
    gatepost.serve();
    let told = format!(
        "password grant (open, past [until {GONE}], present [until {last}, last used {today}])"
    );
    gatepost.await_log("the last use among the weak settings", |log| {
        log.contains(&told)
    });
    // Another day that ends them is told before it is applied, with the last use.
    let next = day(&gatepost, 20);
    let clients: Vec<Value> = registered(&next)["clients"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|client| client["client_id"] == "present")
        .cloned()
        .collect();
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
    let strict = with_clients(
        json!({"clients": [document()["clients"][0]]}),
        &[("strict", strict)],
    );
    gatepost.apply(&json!({"clients": [strict["clients"][1]]}));
    let tested = |client_id: &str| {
        let output = gatepost.run(&["client", "test", client_id], "");
        String::from_utf8(output.stdout).unwrap()
    };
    for (client_id, said) in [
        (
            "open",
            String::from("it uses legacy flows; OAuth 2.1 wants: code instead of"),
        ),
        (
            "present",
            format!("it uses legacy flows until {last}; OAuth 2.1 wants: code instead of"),
        ),
        (
            "past",
            String::from("it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", and: "),
        ),
        (
            "conf1",
            String::from(
                "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", and: token_endpoint_auth_method must be private_key_jwt",
            ),
        ),
        (
            "strict",
            String::from(
                "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", which fills in what the registration leaves out",
            ),
        ),
    ] {
        let told = tested(client_id);
        assert!(told.contains(&said), "{client_id}: {told}");
    }
}
