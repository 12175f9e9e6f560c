//! Claims of assertions that others signed: of clients, of workloads, of users and ID-JAGs. What is
//! taken names us and whom it should, lives now and no longer than it may, and gives no more than
//! the registration.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use gatepost::protocol::keys::jwt::{ID_JAG_TYP, UnverifiedJws};
use gatepost::protocol::token::assertion::{self, ExpectedAssertion};
use gatepost::protocol::token::{id_jag, workload_identity};
use gatepost::protocol::words::catalogue::{AssertionIssuer, AssertionSubject};
use gatepost::protocol::words::client::{SigningAlgorithm, WorkloadIdentity};
use gatepost::protocol::words::identifiers::KeyThumbprint;
use gatepost::protocol::words::scope::OFFLINE_ACCESS;
use gatepost::protocol::words::sender::Sender;
use gatepost_fuzz::{NOW, catalogue, client};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

const OURS: &str = "https://login.example";
const TOKEN_URL: &str = "https://login.example/connect/token";
const THEIRS: &str = "https://idp.example";
const SUBJECT: &str = "repo:acme/shop";

/// Times are kept in microseconds, and what is finer is cut off.
const TICK: f64 = 1e-6;

fn now() -> f64 {
    NOW.seconds() as f64
}

/// The claim as a number of seconds. It was read as one.
fn seconds(claims: &Map<String, Value>, name: &str) -> f64 {
    claims[name].as_f64().expect("a number")
}

/// Whether this is the whole audience, as a text or the only one of a list.
fn is_only(audience: &Value, wanted: &str) -> bool {
    *audience == json!(wanted) || *audience == json!([wanted])
}

fn assert_begun(claims: &Map<String, Value>, skew: f64) {
    for name in ["nbf", "iat"] {
        if claims.contains_key(name) {
            assert!(seconds(claims, name) <= now() + skew + TICK);
        }
    }
}

fn of_a_client(claims: &Map<String, Value>) {
    let audiences = [String::from(OURS), String::from(TOKEN_URL)];
    let expected = ExpectedAssertion {
        issuer: "conf1",
        subject: Some("conf1"),
        audiences: &audiences,
    };
    if let Ok(taken) = assertion::judge(claims, expected, NOW) {
        assert!(claims["iss"] == "conf1" && claims["sub"] == "conf1" && taken.subject == "conf1");
        assert!(
            audiences
                .iter()
                .any(|audience| is_only(&claims["aud"], audience))
        );
        assert!(!taken.jti.is_empty() && claims["jti"] == json!(taken.jti));
        let expires_at = seconds(claims, "exp");
        assert!(now() - 60.0 < expires_at && expires_at <= now() + 660.0 + TICK);
        assert!(
            taken.forgotten_at > NOW && taken.forgotten_at <= NOW.plus(Duration::from_secs(720))
        );
        assert_begun(claims, 60.0);
    }
    if assertion::judge_for_fapi2(claims, OURS, NOW).is_ok() {
        assert_eq!(claims["aud"], OURS);
        assert_begun(claims, 10.0);
    }
}

fn of_a_workload(claims: &Map<String, Value>) {
    let entries = [WorkloadIdentity {
        issuer: Some(String::from(THEIRS)),
        subject: String::from(SUBJECT),
        audience: None,
        claims: BTreeMap::from([(String::from("repository_id"), String::from("34"))]),
        jwks: None,
        jwks_uri: None,
        max_lifetime: Duration::from_secs(3_600),
    }];
    let _ = workload_identity::nearest(&entries, claims);
    assert!(workload_identity::whose(claims).chars().count() < 420);
    let Some(entry) = workload_identity::registered(&entries, claims, OURS) else {
        return;
    };
    assert!(claims["iss"] == THEIRS && claims["sub"] == SUBJECT && claims["repository_id"] == "34");
    if workload_identity::judge(claims, entry, OURS, NOW).is_ok() {
        assert!(is_only(&claims["aud"], OURS));
        let expires_at = seconds(claims, "exp");
        assert!(now() < expires_at + 60.0 && expires_at <= now() + 3_660.0 + TICK);
        assert_begun(claims, 60.0);
    }
}

fn id_jag(data: &[u8], claims: &Map<String, Value>) {
    let client = client();
    let catalogue = catalogue();
    let issuer = AssertionIssuer {
        issuer: String::from(THEIRS),
        jwks: None,
        jwks_uri: None,
        algs: [SigningAlgorithm::Es256].into(),
        clients: [String::from("conf1")].into(),
        scope: None,
        tenant: None,
        subject: AssertionSubject::Link,
        id_jag: true,
        acr_map: BTreeMap::from([(String::from("gold"), String::from("2"))]),
    };
    let jws = UnverifiedJws {
        alg: SigningAlgorithm::Es256,
        kid: None,
        typ: Some(String::from(ID_JAG_TYP)),
        signing_input: String::new(),
        unverified_payload: data.to_vec(),
        signature: Vec::new(),
    };
    for proved in [None, Some(KeyThumbprint([1; 32]))] {
        let sender = Sender {
            client: &client,
            catalogue: &catalogue,
            issuer: OURS,
            key: proved,
            now: NOW,
        };
        let Ok(proposal) = id_jag::propose(&jws, &issuer, sender) else {
            continue;
        };
        assert_eq!(claims["client_id"], "conf1");
        assert!(claims.contains_key("iat"));
        if let Some(confirmed) = claims.get("cnf") {
            assert_eq!(
                confirmed["jkt"],
                proved.expect("a proof came, too").to_text()
            );
        }
        let [resource] = proposal.resources.as_slice() else {
            panic!("it is for one resource: {:?}", proposal.resources);
        };
        assert!(catalogue.resources.contains_key(resource));
        let scope = proposal.scope.expect("it names its scope");
        assert!(
            scope
                .iter()
                .all(|name| client.scope.contains(name) && name != OFFLINE_ACCESS)
        );
        if let Some(sent) = claims.get("scope") {
            let sent = sent.as_str().expect("it is a text");
            assert!(
                scope
                    .iter()
                    .all(|name| sent.split(' ').any(|word| word == name))
            );
        }
        assert!(
            proposal
                .acr
                .is_none_or(|acr| acr == "2" && claims["acr"] == "gold")
        );
        assert!(proposal.subject.is_none() && proposal.claims.is_empty());
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(data) else {
        return;
    };
    of_a_client(&claims);
    of_a_workload(&claims);
    id_jag(data, &claims);
});
