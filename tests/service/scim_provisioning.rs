//! What Entra and Okta are documented to send over SCIM (`tests/fixtures/scim`) gets the answers
//! that they are documented to expect.

use serde_json::Value;

use crate::support::flow::text;
use crate::support::gatepost::Gatepost;
use crate::support::scim::{ON, Program, registered};

/// Whether all of `expected` is in `answer`: more members may be there, but no more elements.
fn assert_within(expected: &Value, answer: &Value, what: &str) {
    match (expected, answer) {
        (Value::Object(members), Value::Object(_)) => {
            for (name, value) in members {
                assert_within(value, &answer[name], &format!("{what}: {name}"));
            }
        }
        (Value::Array(elements), Value::Array(shown)) => {
            assert_eq!(elements.len(), shown.len(), "{what}: {answer}");
            for (element, one) in elements.iter().zip(shown) {
                assert_within(element, one, what);
            }
        }
        (expected, answer) => assert_eq!(expected, answer, "{what}"),
    }
}

fn play(fixture: &str, least: usize) {
    let gatepost = Gatepost::start_with(&registered(), &ON);
    let program = Program::hr(&gatepost);
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let exchanges = fixture["exchanges"].as_array().unwrap();
    assert!(exchanges.len() >= least);
    let mut id = String::new();
    for exchange in exchanges {
        let exchange = exchange.to_string().replace("{id}", &id);
        let exchange: Value = serde_json::from_str(&exchange).unwrap();
        let what = text(&exchange, "what");
        let answer = program.ask(
            text(&exchange, "method"),
            text(&exchange, "path"),
            &exchange["body"],
        );
        let status = u64::from(answer.status);
        assert_eq!(
            Some(status),
            exchange["status"].as_u64(),
            "{what}: {}",
            answer.text()
        );
        if status == 204 {
            assert_eq!(answer.text(), "", "{what}");
            continue;
        }
        let shown = answer.json();
        assert_within(&exchange["answer"], &shown, what);
        if status == 201 {
            id = text(&shown, "id").to_owned();
        }
    }
    assert!(!id.is_empty());
}

#[test]
fn what_entra_is_documented_to_send_gets_the_documented_answers() {
    play(include_str!("../fixtures/scim/entra.json"), 21);
}

#[test]
fn what_okta_is_documented_to_send_gets_the_documented_answers() {
    play(include_str!("../fixtures/scim/okta.json"), 12);
}
