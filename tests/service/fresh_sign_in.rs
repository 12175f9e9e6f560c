//! Sign-ins that must be fresh, at providers that cannot or will not tell how old theirs are: for a
//! client, and before somebody links an account.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, choose, sign_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, RP1, document};
use crate::support::house::House;
use crate::support::http::Answer;
use crate::support::signer::now;
use crate::support::traveller::Traveller;
use crate::support::upstream::SUBJECT;

impl House {
    /// Their sign-ins are six minutes old.
    fn wait_six_minutes(&self) {
        self.gatepost
            .run_sql("UPDATE sessions SET auth_time = auth_time - interval '6 minutes'");
    }

    /// Asks to link, and is sent to sign in anew: that page.
    fn sent_to_sign_in(&self, person: &mut Traveller, provider: &str) -> Answer {
        let answer = self.post(person, &[("decision", "link"), ("provider", provider)]);
        assert!(answer.status == 303, "{}", answer.text());
        answer.assert_leads_to("/login?");
        person.follow(&self.gatepost.base_url, answer)
    }

    /// The same for whoever signs in by `up`, which is gone to: the page that this ends on.
    fn signed_in_anew(&self, person: &mut Traveller) -> Answer {
        let page = self.sent_to_sign_in(person, "other");
        let answer = choose(self.browser(person), &page, "up");
        person.follow(&self.gatepost.base_url, answer)
    }
}

/// `up` as the registration has it.
fn start(changes: &Value) -> House {
    House::start_with(document(), changes, &[])
}

#[test]
fn a_provider_that_does_not_tell_when_somebody_signed_in_cannot_meet_a_max_age() {
    let strict = with_clients(
        document(),
        &[("up-only", json!({"identity_providers": ["up"]}))],
    );
    let house = House::start_with(strict, &json!({}), &[]);
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": null}));
    let path =
        |max_age: &str| house.address(&authorize_path("up-only", RP1, &[("max_age", max_age)]));
    let answer = Traveller::new().visit(&path("60"));
    assert_eq!(
        answer.query().get("error").map(String::as_str),
        Some("login_required"),
        "{}",
        answer.text()
    );
    assert_eq!(house.gatepost.database.count("sessions"), 0);
    // What is no time is nothing to believe.
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": "today"}));
    Traveller::new()
        .visit(&path("60"))
        .assert_error_page(400, "GP1725", "no time");
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": null}));
    let answer = Traveller::new().visit(&house.address(&authorize_path("up-only", RP1, &[])));
    answer.assert_carries_for("not asked for, not missed", "code");
}

#[test]
fn who_must_sign_in_anew_where_login_is_not_known_chooses_their_account_there() {
    let house = start(&json!({"prompt_values_supported": ["none", "consent", "select_account"]}));
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": null}));
    let mut guest = Traveller::new();
    house.through(&mut guest, "up").unwrap();
    house.wait_six_minutes();
    let page = house.signed_in_anew(&mut guest);
    assert_eq!(
        house.up.asked().get("prompt").map(String::as_str),
        Some("select_account")
    );
    page.assert_says("You have signed in again");
    house.at_the_gate(&mut guest, "other");

    // A client that asks for a new sign-in asked for more than that.
    let path = authorize_path(
        "conf1",
        RP1,
        &[("prompt", "login"), ("acr_values", "idp:up")],
    );
    let (visits, answer) = (house.up.visits(), guest.visit(&house.address(&path)));
    assert_eq!(house.up.visits(), visits, "{}", answer.text());
    assert_eq!(
        &*answer.query()["error"],
        "login_required",
        "{}",
        answer.text()
    );
}

#[test]
fn a_sign_in_that_was_not_anew_links_nothing_and_says_so() {
    let house = start(&json!({}));
    let mut guest = Traveller::new();
    house.through(&mut guest, "up").unwrap();
    house.wait_six_minutes();
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": now() - 3_600}));
    let page = house.signed_in_anew(&mut guest);
    assert_eq!(
        house.up.asked().get("prompt").map(String::as_str),
        Some("login")
    );
    let text = page.text();
    text.assert_says("role=\"alert\"");
    text.assert_says("more than five minutes old");
    assert!(!text.contains("You have signed in again"));
    let german = guest
        .get(&house.address("/account?signed_in=anew&ui_locales=de"))
        .text();
    assert!(german.contains("mehr als fünf Minuten"), "{german}");
    let answer = house.post(&mut guest, &[("decision", "link"), ("provider", "other")]);
    answer.assert_leads_to("/login?");

    house.up.plan(|plan| plan.id_token = json!({}));
    house
        .signed_in_anew(&mut guest)
        .assert_says("You have signed in again");
}

#[test]
fn who_has_a_password_links_by_it_whatever_a_provider_says() {
    let house = start(&json!({}));
    let subject = ["--issuer", house.up.issuer(), "--subject", SUBJECT];
    house
        .gatepost
        .run_well(&[&["user", "link", "alice"], &subject[..]].concat(), "");
    // Somebody at alice's computer, which her account elsewhere lets in without a question, now and
    // again.
    let mut somebody = Traveller::new();
    assert_eq!(
        house.through(&mut somebody, "up").unwrap()["sub"],
        json!(house.sub("alice"))
    );
    let path = authorize_path(
        "conf1",
        RP1,
        &[("acr_values", "idp:up"), ("prompt", "login")],
    );
    somebody.visit(&house.address(&path)).assert_carries("code");
    let visits = house.other.visits();
    let page = house.sent_to_sign_in(&mut somebody, "other");
    page.assert_says("name=\"password\"");
    page.assert_says_not("Sign-in up");
    let answer = choose(house.browser(&mut somebody), &page, "up");
    answer.assert_error_page(400, "GP1505", "another way all the same");
    assert_eq!((house.other.visits(), house.links()), (visits, 1));

    // Alice herself.
    let answer = sign_in(house.browser(&mut somebody), &page, "alice", ALICE_PASSWORD);
    let page = somebody.follow(&house.gatepost.base_url, answer);
    page.assert_says("You have signed in again");
    house.link(&mut somebody, "other");
    assert_eq!(house.links(), 2);
}
