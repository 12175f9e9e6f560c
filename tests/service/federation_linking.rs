//! Linking an account elsewhere to one's own from `/account`: who may, what it takes, and what it
//! never does.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::gatepost::BOB_PASSWORD;
use crate::support::house::House;
use crate::support::http::Answer;
use crate::support::traveller::Traveller;
use crate::support::upstream::SUBJECT;

#[test]
fn an_account_elsewhere_is_linked_by_a_yes_to_a_page_that_names_it() {
    let house = House::start();
    house.other.plan(|plan| {
        plan.userinfo = json!({"name": "Alice <Elsewhere>", "email": "al@elsewhere.example"})
    });
    let mut alice = house.alice();
    let callback = house.at_the_gate(&mut alice, "other");
    let question = alice.get(&callback);
    question.assert_status(200);
    question.assert_says_each("Sign-in other | Alice Smith");
    question.assert_says(SUBJECT);
    let names = ["Alice &lt;Elsewhere&gt;", "al@elsewhere.example"];
    let shown = question.text();
    assert!(names.iter().any(|name| shown.contains(name)), "{shown}");
    assert_eq!(house.links(), 0, "asked is not answered");
    assert!(house.through(&mut Traveller::new(), "other").is_none());

    let answer = house.confirm(&mut alice, &question);
    answer.assert_status(200);
    assert_eq!(house.links(), 1, "{}", answer.text());
    let claims = house.through(&mut Traveller::new(), "other").unwrap();
    assert_eq!(claims["sub"], json!(house.sub("alice")));
    assert_eq!(claims["idp"], "other");
    // Answered twice it is the same; and nobody else gets it.
    house.confirm(&mut alice, &question);
    let mut bob = house.signed_in("bob", BOB_PASSWORD);
    let callback = house.at_the_gate(&mut bob, "other");
    let page = bob.get(&callback);
    page.assert_says_not("confirm_link");
    page.assert_says("another account");
    let answer = house.confirm(&mut bob, &question);
    answer.assert_says("role=\"alert\"");
    assert_eq!(house.links(), 1);

    // Taken away again, whoever came by it is signed out, and finds no account.
    let mut elsewhere = Traveller::new();
    house.through(&mut elsewhere, "other").unwrap();
    let page = alice.get(&house.address("/account"));
    let identity = page.attribute("name=\"identity\"", "value").unwrap();
    let unlink = [("decision", "unlink"), ("identity", identity.as_str())];
    house.post(&mut bob, &unlink);
    assert_eq!(house.links(), 1, "not bob's to take away");
    house.post(&mut alice, &unlink);
    assert_eq!(house.links(), 0);
    assert!(!house.is_signed_in(&mut elsewhere));
    assert!(house.is_signed_in(&mut alice));
    assert!(house.through(&mut Traveller::new(), "other").is_none());
}

#[test]
fn who_links_must_say_there_who_they_are_as_far_as_the_provider_asks() {
    let mut house = House::start();
    let mut alice = house.alice();
    let announced = json!({"prompt_values_supported": ["none", "login", "consent"]});
    for (values, discovery, prompt) in [
        (json!(null), json!({}), Some("select_account")),
        (json!(["login"]), json!({}), Some("login")),
        (json!(["none", "consent"]), json!({}), None),
        (json!(null), announced.clone(), Some("login")),
        (json!(["select_account"]), announced, Some("select_account")),
    ] {
        house.up.plan(|plan| plan.discovery = discovery);
        // Metadata is held for an hour: only another process asks anew.
        house.gatepost.stop();
        let changes = json!({"prompt_values_supported": values});
        let entry = house.up.registration("up", changes);
        let document = json!({"identity_providers": [entry]});
        house.gatepost.apply(&document);
        house.gatepost.serve();
        house.at_the_gate(&mut alice, "up");
        let asked = house.up.asked().remove("prompt");
        assert_eq!(asked.as_deref(), prompt, "{values}");
    }
    let exported = house.gatepost.run_well(&["export"], "");
    exported.assert_says("prompt_values_supported");
    // Nothing to do.
    house.gatepost.run_well(&["plan", "-"], &exported);
}

#[test]
fn a_way_begun_to_link_is_for_that_session_and_signs_nobody_in() {
    let house = House::start();
    let mut alice = house.alice();
    let users = house.gatepost.database.count("users");
    let database = &house.gatepost.database;
    let sessions = || database.count("sessions WHERE ended_at IS NULL");
    let callback = house.at_the_gate(&mut alice, "up");
    let keep = house.browser(&mut alice).cookies.clone();
    let refused = |answer: &Answer, case: &str| {
        assert_eq!(answer.header("location"), None, "{case}");
        answer.assert_says_not_for(case, "confirm_link");
        assert_eq!(house.links(), 0, "{case}");
        assert_eq!(house.gatepost.database.count("users"), users, "{case}");
    };

    let before = sessions();
    refused(&Traveller::new().get(&callback), "in a browser of nobody");
    let mut bob = house.signed_in("bob", BOB_PASSWORD);
    refused(&bob.get(&callback), "in bob's browser");
    // Bob's session beside alice's cookies: a browser in which somebody else has signed in
    // meanwhile.
    let bobs = house.browser(&mut bob).cookies.clone();
    house.browser(&mut alice).cookies.extend(bobs);
    refused(&alice.get(&callback), "after bob signed in");
    // And one in which nobody is signed in any more.
    let mut nobody = Traveller::new();
    let flows = keep.iter().filter(|(name, _)| !name.contains("session"));
    let flows = flows.map(|(name, value)| (name.clone(), value.clone()));
    house.browser(&mut nobody).cookies = flows.collect();
    refused(&nobody.get(&callback), "after signing out");
    assert_eq!(sessions(), before + 1, "bob's own is the only new one");

    // Begun in time or not at all: a sign-in an hour ago is asked for again first.
    house.browser(&mut alice).cookies = keep;
    let older = "UPDATE sessions SET auth_time = auth_time - interval '1 hour'";
    house.gatepost.run_sql(older);
    let visits = house.up.visits();
    let link = [("decision", "link"), ("provider", "up")];
    let answer = house.post(&mut alice, &link);
    answer.assert_leads_to("/login?");
    assert_eq!(house.up.visits(), visits);
    // No link begins with a GET, from another site, or without the form's token.
    let evil = [("Origin", "https://evil.example")];
    for answer in [
        alice.get(&house.address("/account?decision=link&provider=up")),
        house.browser(&mut alice).post("/account", &link),
        house
            .browser(&mut alice)
            .post_from("/account", &evil, &link),
    ] {
        assert_eq!(answer.header("location"), None, "{}", answer.text());
    }
    assert_eq!((house.up.visits(), house.links()), (visits, 0));
}

#[test]
fn a_sign_in_never_links_whoever_is_signed_in() {
    let house = House::start();
    let mut alice = house.alice();
    let claims = house.through(&mut alice, "up").unwrap();
    assert_ne!(claims["sub"], house.sub("alice"));
    let of_alice = format!("linked_identities WHERE sub = '{}'", house.sub("alice"));
    assert_eq!(house.gatepost.database.count(&of_alice), 0);
    assert!(house.through(&mut alice, "other").is_none());
    assert_eq!(house.gatepost.database.count(&of_alice), 0);
}
