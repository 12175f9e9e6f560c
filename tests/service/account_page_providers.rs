//! Providers that the account page does not offer: no name of them reaches whoever comes without a
//! client, and nobody lets themselves in through one by linking it there.

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, choose, issued, redeem_with, text, with_clients};
use crate::support::gatepost::{RP1, document};
use crate::support::house::House;
use crate::support::http::Answer;
use crate::support::jwt::verified;
use crate::support::traveller::Traveller;
use crate::support::upstream::{Place, SUBJECT};

const UNAVAILABLE: &str = "not available at the moment";

/// `up` is the staff's: closed to new people, kept from the account page, and the only way into the
/// client `staff`.
fn start() -> House {
    let staff = json!({"identity_providers": ["up"]});
    let closed = json!({"provision": false, "account_page": false});
    House::start_with(with_clients(document(), &[("staff", staff)]), &closed, &[])
}

impl House {
    /// Registers the provider anew.
    fn register(&self, name: &str, changes: Value) {
        let upstream = if name == "up" { &self.up } else { &self.other };
        let entry = upstream.registration(name, changes);
        self.gatepost.apply(&json!({"identity_providers": [entry]}));
    }

    fn visit_staff(&self, person: &mut Traveller) -> Answer {
        person.visit(&self.address(&authorize_path("staff", RP1, &[])))
    }
}

#[track_caller]
fn assert_does_not_name_up(page: &Answer) {
    page.assert_says_none("Sign-in up | value=\"up\"");
}

#[test]
fn a_provider_kept_from_the_account_page_is_told_to_nobody_there() {
    let house = start();
    let mut stranger = Traveller::new();
    let page = stranger.visit(&house.address("/account"));
    page.assert_says("Sign-in other");
    assert_does_not_name_up(&page);
    let answer = choose(house.browser(&mut stranger), &page, "up");
    answer.assert_error_page(400, "GP1505", "asked for all the same");
    assert_does_not_name_up(&answer);
    assert_eq!(house.up.visits(), 0);

    // Whoever came by it through the client that allows it sees who they are, and is offered it no
    // more than others.
    let issuer = house.up.issuer();
    let link = format!("user link alice --issuer {issuer} --subject {SUBJECT}");
    house.gatepost.run_line(&link);
    let mut alice = Traveller::new();
    let answer = house.visit_staff(&mut alice);
    let code = &answer.query()["code"];
    let tokens = issued(&redeem_with(&house.gatepost, "staff", code, &[]));
    let claims = verified(&house.gatepost, text(&tokens, "id_token")).1;
    assert_eq!(claims["sub"], json!(house.sub("alice")));
    let page = alice.get(&house.address("/account"));
    page.assert_status(200);
    page.assert_says("Alice Smith");
    page.assert_says_not("name=\"provider\" value=\"up\"");
    let listed = house.gatepost.shown("idp list --json");
    let mut listed = listed.as_array().unwrap().iter();
    let up = listed.find(|one| one["name"] == "up").unwrap();
    assert_eq!(up["account_page"], false);
    assert_eq!(up["provision"], false);
    let exported = house.gatepost.run_well(&["export"], "");
    assert!(exported.contains("account_page"), "{exported}");
    assert_eq!(
        house.gatepost.run(&["plan", "-"], &exported).status.code(),
        Some(0)
    );
}

#[test]
fn nobody_lets_themselves_in_by_linking_a_provider_kept_from_the_account_page() {
    let house = start();
    house.register("other", json!({"provision": true}));
    let mut stranger = Traveller::new();
    let refused = house.visit_staff(&mut stranger);
    refused.assert_says("There is no account here for you");
    let page = stranger.visit(&house.address("/account"));
    let answer = choose(house.browser(&mut stranger), &page, "other");
    let account = stranger.follow(&house.gatepost.base_url, answer);
    account.assert_says("Your account");
    assert_does_not_name_up(&account);
    assert_eq!(house.links(), 1, "by the open provider");
    let visits = house.up.visits();
    let answer = house.post(&mut stranger, &[("decision", "link"), ("provider", "up")]);
    answer.assert_says(UNAVAILABLE);
    assert_does_not_name_up(&answer);
    assert_eq!((house.up.visits(), house.links()), (visits, 1));
    let refused = house.visit_staff(&mut stranger);
    refused.assert_says("There is no account here for you");
}

#[test]
fn what_began_before_a_provider_was_kept_from_the_account_page_ends_there() {
    let house = House::start();
    let (mut alice, mut asked, mut newcomer) = (house.alice(), house.alice(), Traveller::new());
    let callback = house.at_the_gate(&mut alice, "up");
    let at_the_question = house.at_the_gate(&mut asked, "up");
    let question = asked.get(&at_the_question);
    question.assert_says("confirm_link");
    let page = newcomer.visit(&house.address("/account"));
    let answer = choose(house.browser(&mut newcomer), &page, "up");
    let site = house.gatepost.base_url.clone();
    let sign_in = newcomer.follow_until(&site, answer, |next| next.contains("/external/"));
    let redeemed = house.up.received(Place::Token).len();
    let users = house.gatepost.database.count("users");

    house.register("up", json!({"account_page": false}));
    for answer in [alice.get(&callback), house.confirm(&mut asked, &question)] {
        answer.assert_says(UNAVAILABLE);
        answer.assert_says_not("confirm_link");
    }
    newcomer.get(sign_in.location()).assert_stays(200);
    assert_eq!(house.links(), 0);
    assert_eq!(house.gatepost.database.count("users"), users);
    // No code was redeemed.
    assert_eq!(house.up.received(Place::Token).len(), redeemed);
}

#[test]
fn a_provider_that_no_enabled_client_allows_is_not_offered_for_the_account() {
    let mut document = document();
    for client in document["clients"].as_array_mut().unwrap() {
        client["identity_providers"] = json!(["local", "other"]);
    }
    let with_staff = |enabled: bool| {
        let staff = json!({"identity_providers": ["up"], "enabled": enabled});
        with_clients(document.clone(), &[("staff", staff)])
    };
    let house = House::start_with(with_staff(false), &json!({}), &[]);
    let page = Traveller::new().visit(&house.address("/account"));
    page.assert_says("Sign-in other");
    assert_does_not_name_up(&page);
    let mut alice = house.alice();
    let answer = house.post(&mut alice, &[("decision", "link"), ("provider", "up")]);
    answer.assert_says(UNAVAILABLE);
    assert_does_not_name_up(&answer);

    let enabled = json!({"clients": with_staff(true)["clients"]});
    house.gatepost.apply(&enabled);
    let page = Traveller::new().visit(&house.address("/account"));
    page.assert_says_each("Sign-in up | value=\"up\"");
}
