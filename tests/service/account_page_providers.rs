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
        self.gatepost
            .apply(&json!({"identity_providers": [upstream.registration(name, changes)]}));
    }

    fn visit_staff(&self, person: &mut Traveller) -> Answer {
        person.visit(&self.address(&authorize_path("staff", RP1, &[])))
    }
}

fn names_up(page: &Answer) -> bool {
    page.text().contains("Sign-in up") || page.text().contains("value=\"up\"")
}

#[test]
fn a_provider_kept_from_the_account_page_is_told_to_nobody_there() {
    let house = start();
    let mut stranger = Traveller::new();
    let page = stranger.visit(&house.address("/account"));
    page.assert_says("Sign-in other");
    assert!(!names_up(&page), "{}", page.text());
    let answer = choose(house.browser(&mut stranger), &page, "up");
    answer.assert_error_page(400, "GP1505", "asked for all the same");
    assert!(!names_up(&answer), "{}", answer.text());
    assert!(house.up.visits() == 0, "{}", answer.text());

    // Whoever came by it through the client that allows it sees who they are, and is offered it no
    // more than others.
    let subject = ["--issuer", house.up.issuer(), "--subject", SUBJECT];
    house
        .gatepost
        .run_well(&[&["user", "link", "alice"], &subject[..]].concat(), "");
    let mut alice = Traveller::new();
    let answer = house.visit_staff(&mut alice);
    let tokens = issued(&redeem_with(
        &house.gatepost,
        "staff",
        &answer.query()["code"],
        &[],
    ));
    let claims = verified(&house.gatepost, text(&tokens, "id_token")).1;
    assert_eq!(claims["sub"], json!(house.sub("alice")));
    let page = alice.get(&house.address("/account"));
    assert_eq!(page.status, 200, "{}", page.text());
    page.assert_says("Alice Smith");
    assert!(!page.text().contains("name=\"provider\" value=\"up\""));
    let listed: Value =
        serde_json::from_str(&house.gatepost.run_well(&["idp", "list", "--json"], "")).unwrap();
    let up = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "up")
        .unwrap();
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
    house
        .visit_staff(&mut stranger)
        .assert_says("There is no account here for you");
    let page = stranger.visit(&house.address("/account"));
    let answer = choose(house.browser(&mut stranger), &page, "other");
    let account = stranger.follow(&house.gatepost.base_url, answer);
    account.assert_says("Your account");
    assert!(!names_up(&account), "{}", account.text());
    assert_eq!(house.links(), 1, "by the open provider");
    let visits = house.up.visits();
    let answer = house.post(&mut stranger, &[("decision", "link"), ("provider", "up")]);
    answer.assert_says(UNAVAILABLE);
    assert!(!names_up(&answer), "{}", answer.text());
    assert_eq!((house.up.visits(), house.links()), (visits, 1));
    house
        .visit_staff(&mut stranger)
        .assert_says("There is no account here for you");
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
    let sign_in = newcomer
        .follow_until(&site, answer, |next| next.contains("/external/"))
        .location()
        .to_owned();
    let (redeemed, users) = (
        house.up.received(Place::Token).len(),
        house.gatepost.database.count("users"),
    );

    house.register("up", json!({"account_page": false}));
    for answer in [alice.get(&callback), house.confirm(&mut asked, &question)] {
        answer.assert_says(UNAVAILABLE);
        answer.assert_says_not("confirm_link");
    }
    newcomer.get(&sign_in).assert_stays(200);
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
    assert!(!names_up(&page), "{}", page.text());
    let mut alice = house.alice();
    let answer = house.post(&mut alice, &[("decision", "link"), ("provider", "up")]);
    answer.assert_says(UNAVAILABLE);
    assert!(!names_up(&answer), "{}", answer.text());

    house
        .gatepost
        .apply(&json!({"clients": with_staff(true)["clients"]}));
    assert!(names_up(
        &Traveller::new().visit(&house.address("/account"))
    ));
}
