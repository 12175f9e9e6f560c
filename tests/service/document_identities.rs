//! Who somebody is elsewhere, as a document says: given, left alone, taken away, never another's.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD};
use crate::support::house::House;
use crate::support::traveller::Traveller;
use crate::support::upstream::SUBJECT;

fn plan(house: &House, document: &Value) -> (Option<i32>, String) {
    let output = house.gatepost.run(&["plan", "-"], &document.to_string());
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_document_links_leaves_alone_and_unlinks() {
    let house = House::start();
    let issuer = house.other.issuer().to_owned();
    let users = |of_alice: Value, of_bob: Value| {
        let mut alice =
            json!({"username": "alice", "password": ALICE_PASSWORD, "claims": {"name": "Alice"}});
        let mut bob =
            json!({"username": "bob", "password": BOB_PASSWORD, "claims": {"name": "Bob"}});
        alice["identities"] = of_alice;
        bob["identities"] = of_bob;
        json!({"users": [alice, bob]})
    };
    let theirs = |subject: &str| json!([{"issuer": issuer, "subject": subject}]);
    // Nobody is that.
    assert!(house.through(&mut Traveller::new(), "other").is_none());

    let linked = users(theirs(SUBJECT), theirs("b"));
    let (code, text) = plan(&house, &linked);
    assert!(code == Some(3), "{text}");
    text.assert_says(&format!(
        "+{{\"issuer\":\"{issuer}\",\"subject\":\"{SUBJECT}\"}}"
    ));
    house.gatepost.apply(&linked);
    assert_eq!((plan(&house, &linked).0, house.links()), (Some(0), 2));
    assert_eq!(
        house.events("identity_linked")[0]["upstream_subject"],
        SUBJECT
    );
    let mut elsewhere = Traveller::new();
    assert_eq!(
        house.through(&mut elsewhere, "other").unwrap()["sub"],
        house.sub("alice")
    );

    // Left out, they stay; and somebody else's are nobody's to have.
    assert_eq!(plan(&house, &users(Value::Null, Value::Null)).0, Some(0));
    for (document, problem) in [
        (
            users(Value::Null, theirs(SUBJECT)),
            "users[1] (bob).identities: has an identity that is another user's",
        ),
        (
            users(theirs("c"), theirs("c")),
            "users[1] (bob).identities: has an identity that another user of the document has, too",
        ),
        (
            users(
                json!([{"issuer": "https://x.example", "subject": "c"}]),
                Value::Null,
            ),
            "users[0] (alice).identities: has an issuer that no",
        ),
        (
            users(json!([{"issuer": "", "subject": "c"}]), Value::Null),
            "users[0] (alice).identities[0].issuer: must be",
        ),
        (
            users(json!([{"issuer": issuer}]), Value::Null),
            "users[0] (alice).identities[0].subject: is required",
        ),
        (
            users(json!("x"), Value::Null),
            "users[0] (alice).identities: expected an array",
        ),
    ] {
        let (code, text) = plan(&house, &document);
        assert!(code == Some(1) && text.contains(problem), "{text}");
    }
    // Not even when who is left out goes: alice stays.
    let moved = users(Value::Null, theirs(SUBJECT)).to_string();
    let output = house.gatepost.run(&["plan", "-", "--prune"], &moved);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1), "{text}");
    text.assert_says("has an identity that is another user's");
    // An export changes nothing, with and without.
    house
        .gatepost
        .run_line("export")
        .assert_says_not("identities");
    let exported: Value =
        serde_json::from_str(&house.gatepost.run_well(&["export", "--identities"], "")).unwrap();
    let of_alice = exported["users"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["username"] == "alice")
        .unwrap();
    assert_eq!(of_alice["identities"], theirs(SUBJECT));
    let planned = plan(&house, &exported);
    assert_eq!(planned.0, Some(0), "{}", planned.1);

    // Taken away: no way in any more, and who came in by it is out.
    assert!(house.is_signed_in(&mut elsewhere));
    house.gatepost.apply(&users(json!([]), Value::Null));
    assert_eq!(house.links(), 1);
    assert!(!house.is_signed_in(&mut elsewhere));
    assert!(house.through(&mut Traveller::new(), "other").is_none());
    assert_eq!(house.events("identity_unlinked").len(), 1);
    assert_eq!(house.events("session_ended").len(), 1);
    // What began through it during that change and was not ended, as the command died behind it, the
    // same document ends. It changes nothing.
    house
        .gatepost
        .run_sql("UPDATE sessions SET ended_at = NULL WHERE upstream_subject IS NOT NULL");
    let alive = || {
        house
            .gatepost
            .database
            .count("sessions WHERE upstream_subject IS NOT NULL AND ended_at IS NULL")
    };
    assert_eq!(plan(&house, &users(json!([]), Value::Null)).0, Some(0));
    assert_eq!(alive(), 1, "a plan ends nothing");
    house.gatepost.apply(&users(Value::Null, Value::Null));
    assert_eq!(alive(), 1, "it does not say who somebody is elsewhere");
    house.gatepost.apply(&users(json!([]), Value::Null));
    assert_eq!(alive(), 0);
    let ended = house.events("session_ended");
    assert_eq!((ended.len(), &ended[1]), (2, &ended[0]));
    // Free again, it can be bob's; pruned, the one who had it is gone before.
    house.gatepost.apply(&users(Value::Null, theirs(SUBJECT)));
    assert_eq!(
        house.through(&mut Traveller::new(), "other").unwrap()["sub"],
        house.sub("bob")
    );
    let last = json!({"users": [{"username": "carol", "identities": theirs(SUBJECT)}]});
    assert_eq!(plan(&house, &last).0, Some(1));
    house
        .gatepost
        .run_well(&["apply", "--prune", "-"], &last.to_string());
    assert_eq!(house.links(), 1);
    assert!(house.through(&mut Traveller::new(), "other").unwrap()["sub"] == house.sub("carol"));
}
