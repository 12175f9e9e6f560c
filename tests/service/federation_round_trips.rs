//! Ways to an upstream provider and back that somebody meddles with, or that a person walks as
//! people do: in two tabs, twice, backwards, not to the end. None signs anybody in who did not walk
//! it; each ends on a clear page.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{LEFT_OUT, authorize_path, changed, issued, redeem, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::house::{as_far_as_upstream, start_with_one_server};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::verified;
use crate::support::signer::Signer;
use crate::support::traveller::Traveller;
use crate::support::upstream::{Fault, Place, Upstream};

const STRAIGHT: (&str, &str) = ("acr_values", "idp:up");

/// A Gatepost with two providers, `up` and `other`, who are the same server.
struct House {
    upstream: Upstream,
    gatepost: Gatepost,
}

impl House {
    fn start() -> House {
        let providers = ["up", "other"].map(|name| (name, json!({})));
        let (upstream, gatepost) = start_with_one_server(document(), &providers);
        House { upstream, gatepost }
    }

    fn request(&self, changes: &[(&str, &str)]) -> String {
        let path = authorize_path("conf1", RP1, &changed(&[STRAIGHT], changes));
        format!("{}{path}", self.gatepost.base_url)
    }

    /// Goes as far as upstream, which has said yes: the callback's address, which nobody has been
    /// at yet.
    fn at_the_gate(&self, person: &mut Traveller, changes: &[(&str, &str)]) -> String {
        as_far_as_upstream(&self.gatepost, person, &changed(&[STRAIGHT], changes))
    }

    fn browser<'a>(&self, person: &'a mut Traveller) -> &'a mut Browser {
        person.at(&self.gatepost.base_url)
    }

    /// Users, sessions, linked identities.
    fn stored(&self) -> [i64; 3] {
        ["users", "sessions", "linked_identities"].map(|table| self.gatepost.database.count(table))
    }

    /// A clear page with a reason, that leads nowhere by itself, and nothing that stays.
    fn assert_refused(&self, answer: &Answer, before: [i64; 3], case: &str) {
        assert_eq!(answer.header("location"), None, "{case}");
        assert!(
            (400..500).contains(&answer.status),
            "{case}: {} {}",
            answer.status,
            answer.text()
        );
        assert!(answer.text().contains("GP17"), "{case}: {}", answer.text());
        assert!(!answer.text().contains("http-equiv"), "{case}");
        assert_eq!(self.stored(), before, "{case}");
    }

    /// The code leads to tokens of somebody who came from upstream.
    fn assert_signed_in(&self, answer: &Answer, case: &str) -> Value {
        let parameters = answer.query();
        assert!(
            parameters.contains_key("code"),
            "{case}: {} {}",
            answer.location(),
            answer.text()
        );
        let tokens = issued(&redeem(&self.gatepost, &parameters["code"]));
        let (_, claims) = verified(&self.gatepost, text(&tokens, "id_token"));
        claims
    }
}

/// An address with other parameters; [`LEFT_OUT`] leaves one out.
fn with(address: &str, changes: &[(&str, &str)]) -> String {
    let (path, query) = address.split_once('?').unwrap();
    let given: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let given: Vec<(&str, &str)> = given
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    format!("{path}?{}", encode(&changed(&given, changes)))
}

fn parameter(address: &str, name: &str) -> String {
    let (_, query) = address.split_once('?').unwrap();
    form_urlencoded::parse(query.as_bytes())
        .find(|(other, _)| other == name)
        .unwrap()
        .1
        .into_owned()
}

/// The page without the name of its own request.
fn page_text(answer: &Answer) -> String {
    let text = answer.text();
    let (before, rest) = text.split_once("<dt>Reference</dt><dd><code>").unwrap();
    format!("{before}{}", rest.split_once("</code>").unwrap().1)
}

#[test]
fn a_callback_is_taken_only_in_the_browser_and_at_the_place_it_is_for() {
    let house = House::start();
    let before = house.stored();
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    let code = parameter(&callback, "code");
    let tokens_asked = || house.upstream.received(Place::Token).len();

    let stranger = house.browser(&mut Traveller::new()).get(&callback);
    house.assert_refused(&stranger, before, "without a cookie");

    let mut other = Traveller::new();
    house.at_the_gate(&mut other, &[]);
    let answer = other.get(&callback);
    house.assert_refused(&answer, before, "with the cookie of another browser");
    // Under the right name, even.
    let flow = |browser: &Browser| {
        let cookie = browser
            .cookies
            .iter()
            .find(|(name, _)| name.contains("flow") || name.contains("external"));
        cookie
            .map(|(name, value)| (name.clone(), value.clone()))
            .unwrap()
    };
    let (name, _) = flow(house.browser(&mut person));
    let (_, value) = flow(house.browser(&mut other));
    house.browser(&mut other).cookies.insert(name, value);
    let answer = other.get(&callback);
    house.assert_refused(&answer, before, "with another value in the right cookie");

    let keep = house.browser(&mut person).cookies.clone();
    let state = parameter(&callback, "state");
    let mut tampered = Vec::new();
    for place in [0, 1, state.len() / 2, state.len() - 1] {
        let mut bytes = state.clone().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        tampered.push(String::from_utf8(bytes).unwrap());
    }
    tampered.extend([
        String::from("x"),
        format!("{state}A"),
        state[..state.len() - 4].to_owned(),
        "x".repeat(9_000),
    ]);
    let mut cases: Vec<(String, String)> = tampered
        .iter()
        .map(|state| {
            (
                format!("state {state}"),
                with(&callback, &[("state", state)]),
            )
        })
        .collect();
    let elsewhere =
        |name: &str| callback.replacen("/external/up/", &format!("/external/{name}/"), 1);
    cases.extend([
        (
            String::from("no state"),
            with(&callback, &[("state", LEFT_OUT)]),
        ),
        (String::from("another provider's place"), elsewhere("other")),
        (String::from("a place of nobody"), elsewhere("nobody")),
        (
            String::from("no code"),
            with(&callback, &[("code", LEFT_OUT)]),
        ),
        (
            String::from("state twice"),
            format!("{callback}&state={state}"),
        ),
        (
            String::from("code twice"),
            format!("{callback}&code={code}"),
        ),
    ]);
    let mut pages = Vec::new();
    for (case, address) in &cases {
        house.browser(&mut person).cookies = keep.clone();
        let answer = person.get(address);
        house.assert_refused(&answer, before, case);
        pages.push(page_text(&answer));
    }
    let bad_state = &pages[0];
    for ((case, _), page) in cases.iter().zip(&pages).take(11) {
        assert_eq!(
            page, bad_state,
            "{case}: says more than that of a state that is none"
        );
    }
    assert_eq!(tokens_asked(), 0, "nobody's code was redeemed");

    // All that spoilt nothing: the right browser at the right place comes in.
    house.browser(&mut person).cookies = keep.clone();
    let answer = person.get(&callback);
    house.assert_signed_in(&answer, "the right one");
    let after = house.stored();

    // Once. With the cookie kept, too: the code is upstream's to refuse.
    let answer = person.get(&callback);
    house.assert_refused(&answer, after, "replayed");
    let mut thief = Traveller::new();
    house.browser(&mut thief).cookies = keep;
    let answer = thief.get(&callback);
    house.assert_refused(&answer, after, "replayed with the cookie kept");
    let complaints = house.upstream.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:?}");

    for method in ["POST", "PUT", "DELETE"] {
        let path = callback.strip_prefix(&house.gatepost.base_url).unwrap();
        let answer = house.gatepost.send(method, path, &[], b"");
        assert_eq!(answer.status, 405, "{method}");
    }
}

#[test]
fn a_way_is_gone_once_though_its_cookie_is_kept_and_upstream_takes_its_code_again() {
    let mut house = House::start();
    house.upstream.plan(|plan| plan.takes_codes_again = true);
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    let kept = house.browser(&mut person).cookies.clone();
    // From several hands at once, at two servers over one database.
    let mut second = house.gatepost.beside();
    second.serve();
    let path = callback.strip_prefix(&house.gatepost.base_url).unwrap();
    let arrivals: Vec<Answer> = thread::scope(|scope| {
        let hands: Vec<_> = [&house.gatepost, &second, &house.gatepost, &second]
            .into_iter()
            .map(|gatepost| {
                let mut browser = gatepost.browser();
                browser.cookies = kept.clone();
                scope.spawn(move || browser.get(path))
            })
            .collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).collect()
    });
    let (came_in, over): (Vec<&Answer>, Vec<&Answer>) = arrivals
        .iter()
        .partition(|answer| answer.header("location").is_some());
    assert_eq!((came_in.len(), over.len()), (1, 3));
    house.assert_signed_in(came_in[0], "the first");
    let after = house.stored();
    house
        .gatepost
        .database
        .assert_count("audit_events WHERE event = 'signed_in'", 1);
    over.iter()
        .for_each(|answer| house.assert_refused(answer, after, "another hand"));

    // Later, within the session that began so, which is not renewed either.
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    let kept = house.browser(&mut person).cookies.clone();
    house.assert_signed_in(&person.get(&callback), "another way");
    let own = house.browser(&mut person).cookies.clone();
    let after = house.stored();
    house.browser(&mut person).cookies.extend(kept);
    let again = person.get(&callback);
    again.assert_error_page(400, "GP1711", "within the session");
    house.assert_refused(&again, after, "within the session");
    assert!(
        again
            .headers_named("set-cookie")
            .iter()
            .all(|cookie| cookie.contains("-flow-")),
        "no new handle"
    );
    assert!(
        own.iter()
            .all(|(name, value)| house.browser(&mut person).cookies.get(name) == Some(value))
    );
    // A second way in that same session renews it.
    let callback = house.at_the_gate(&mut person, &[("prompt", "login")]);
    house.assert_signed_in(&person.get(&callback), "anew");
    assert_eq!(house.stored(), after);
    second.stop();
    house.gatepost.stop();
    house
        .gatepost
        .database
        .assert_count("audit_events WHERE event = 'signed_in'", 3);
}

#[test]
fn what_was_sent_for_one_way_ends_no_other() {
    let house = House::start();
    let before = house.stored();
    // Somebody else's answer slipped in: the nonce is not the one of this way.
    let (mut victim, mut attacker) = (Traveller::new(), Traveller::new());
    let callback = house.at_the_gate(&mut victim, &[]);
    let injected = parameter(&house.at_the_gate(&mut attacker, &[]), "code");
    let answer = victim.get(&with(&callback, &[("code", &injected)]));
    house.assert_refused(&answer, before, "another way's code");

    // Two ways of the same browser, each with its own state, crossed.
    let mut person = Traveller::new();
    let (first, second) = (
        house.at_the_gate(&mut person, &[]),
        house.at_the_gate(&mut person, &[]),
    );
    let crossed = with(&first, &[("code", &parameter(&second, "code"))]);
    let answer = person.get(&crossed);
    house.assert_refused(&answer, before, "crossed");
    // The other one, which had its code stolen, is over as well; and begun anew it works.
    let answer = person.get(&second);
    house.assert_refused(&answer, before, "its code is spent");
    let answer = person.visit(&house.request(&[]));
    house.assert_signed_in(&answer, "begun anew");
}

#[test]
fn people_walk_in_tabs_and_backwards() {
    let house = House::start();
    let mut person = Traveller::new();
    let tabs: Vec<String> = ["one", "two"]
        .map(|state| house.at_the_gate(&mut person, &[("state", state)]))
        .into();
    // Both come to their end, the later one first.
    for (callback, state) in tabs.iter().zip(["one", "two"]).rev() {
        let answer = person.get(callback);
        assert_eq!(answer.query()["state"], state);
        house.assert_signed_in(&answer, state);
    }
    assert!(
        house
            .browser(&mut person)
            .cookies
            .keys()
            .all(|name| !name.contains("flow"))
    );

    // Six at once: the eldest is forgotten, the five others stand.
    let mut person = Traveller::new();
    let six: Vec<String> = (0..6)
        .map(|number| house.at_the_gate(&mut person, &[("nonce", &format!("n{number}"))]))
        .collect();
    let before = house.stored();
    let answer = person.get(&six[0]);
    house.assert_refused(&answer, before, "the eldest of six");
    for (number, callback) in six.iter().enumerate().skip(1) {
        let answer = person.get(callback);
        let claims = house.assert_signed_in(&answer, &format!("number {number}"));
        assert_eq!(claims["nonce"], format!("n{number}"));
    }

    // Back at the page of the sign-in, and through it once more, by whichever way.
    let mut person = Traveller::new();
    let plain = house.request(&[("acr_values", LEFT_OUT), ("prompt", "login")]);
    let page = person.visit(&plain);
    let answer = sign_in(house.browser(&mut person), &page, "alice", ALICE_PASSWORD);
    house.assert_signed_in(&answer, "by password");
    let answer = person.visit(&house.request(&[]));
    let claims = house.assert_signed_in(&answer, "by idp:up though alice is signed in by password");
    assert_eq!(claims["idp"], "up");
}

#[test]
fn a_long_state_travels_in_the_cookie_and_one_too_long_nowhere() {
    let house = House::start();
    for length in [10, 1_000, 2_000] {
        let state: String = (0..length)
            .map(|place: u32| char::from(b'a' + (place * place % 26) as u8))
            .collect();
        let mut person = Traveller::new();
        let answer = person.visit(&house.request(&[("state", &state)]));
        assert_eq!(answer.query()["state"], state, "{length}");
        house.assert_signed_in(&answer, &format!("a state of {length}"));
        let sent = house.upstream.asked()["state"].clone();
        assert!(
            sent.len() <= 2_000,
            "{} characters were sent upstream for {length}",
            sent.len()
        );
    }
    let before = (house.stored(), house.upstream.visits());
    let state = "z".repeat(4_096);
    let mut person = Traveller::new();
    let answer = person.visit(&house.request(&[("state", &state)]));
    assert!(
        answer
            .header("location")
            .is_none_or(|to| to.contains("error=")),
        "{}",
        answer.location()
    );
    assert!(answer.status < 500, "{} {}", answer.status, answer.text());
    assert!(
        house
            .browser(&mut person)
            .cookies
            .values()
            .all(|value| value.len() <= 3_500)
    );
    assert_eq!((house.stored(), house.upstream.visits()), before);
}

#[test]
fn nobody_is_sent_upstream_who_must_not_be() {
    let house = House::start();
    let visits = house.upstream.visits();
    let mut person = Traveller::new();
    for (case, changes) in [
        ("prompt=none", vec![("prompt", "none")]),
        ("an unknown provider", vec![("acr_values", "idp:nobody")]),
        (
            "a provider's name with a path",
            vec![("acr_values", "idp:../up")],
        ),
        ("the password", vec![("acr_values", "idp:local")]),
    ] {
        let answer = person.visit(&house.request(&changes));
        assert!(
            answer
                .header("location")
                .is_none_or(|to| to.starts_with(RP1)),
            "{case}: {:?}",
            answer.headers
        );
        assert_eq!(house.upstream.visits(), visits, "{case}");
    }

    // A sign-in that is too old after one round is too old: no second one.
    house
        .upstream
        .plan(|plan| plan.id_token = json!({"auth_time": crate::support::signer::now() - 3_600}));
    let answer = person.visit(&house.request(&[("max_age", "60")]));
    answer.assert_query("error", "login_required");
    assert_eq!(house.upstream.received(Place::Authorize).len(), 1);
    assert_eq!(house.upstream.asked()["max_age"], "60");
    house.upstream.behave();
    let answer = person.visit(&house.request(&[("max_age", "60")]));
    house.assert_signed_in(&answer, "fresh");
}

#[test]
fn first_sign_ins_at_the_same_moment_make_one_account() {
    let house = House::start();
    let before = house.stored();
    // As many as may wait for one provider, and so near that the first has not been given up when
    // the last is there.
    let arriving = [(); 3].map(|()| {
        let mut person = Traveller::new();
        let callback = house.at_the_gate(&mut person, &[]);
        (person, callback)
    });
    house.upstream.fault(Place::Token, Fault::Held);
    let subjects: BTreeSet<String> = thread::scope(|scope| {
        let house = &house;
        let all = arriving.map(|(mut person, callback)| {
            scope.spawn(move || {
                let answer = person.get(&callback);
                text(&house.assert_signed_in(&answer, "at once"), "sub").to_owned()
            })
        });
        house.upstream.await_held(all.len());
        house.upstream.let_go();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(subjects.len(), 1, "{subjects:?}");
    let after = house.stored();
    assert_eq!(
        [
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2]
        ],
        [1, 3, 1]
    );
}

#[test]
fn twenty_people_at_once_and_twenty_a_second_come_back_from_a_provider_that_takes_its_time() {
    let house = House::start();
    // Metadata and keys are known by now.
    let answer = Traveller::new().visit(&house.request(&[]));
    house.assert_signed_in(&answer, "at first");
    let before = house.stored();
    let crowds = [
        ("at once", 20, Duration::ZERO),
        ("20 a second", 60, Duration::from_millis(50)),
    ];
    for (what, people, apart) in crowds {
        let arriving: Vec<_> = (0..people)
            .map(|_| {
                let mut person = Traveller::new();
                let callback = house.at_the_gate(&mut person, &[]);
                (person, callback)
            })
            .collect();
        house
            .upstream
            .fault(Place::Token, Fault::Slow(Duration::from_millis(600)));
        thread::scope(|scope| {
            let mut arrived = Vec::new();
            for (mut person, callback) in arriving {
                arrived.push(scope.spawn(move || person.get(&callback)));
                thread::sleep(apart);
            }
            for one in arrived {
                one.join().unwrap().assert_carries_for(what, "code");
            }
        });
        house.upstream.let_go();
    }
    let after = house.stored();
    assert_eq!(
        [
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2]
        ],
        [0, 80, 0]
    );
}

#[test]
fn what_one_issuer_sent_is_never_shown_to_another_of_the_same_name() {
    let house = House::start();
    let before = house.stored();
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    let successor = Upstream::start_with(Signer::es256("first"));
    let mut document = document();
    document["identity_providers"] = json!([successor.registration("up", json!({}))]);
    house.gatepost.apply(&document);
    let answer = person.get(&callback);
    answer.assert_query("error", "temporarily_unavailable");
    assert_eq!(house.stored(), before);
    assert_eq!(house.upstream.received(Place::Token).len(), 0);
    assert_eq!(successor.visits(), 0, "the code is not for them");
}

#[test]
fn who_must_sign_in_anew_is_not_sent_where_that_cannot_be_asked_for() {
    let house = House::start();
    let registered = |values: Value| {
        let entry = house
            .upstream
            .registration("up", json!({"prompt_values_supported": values}));
        house
            .gatepost
            .apply(&json!({"identity_providers": [entry]}));
    };
    registered(json!(["none", "select_account"]));
    let visits = || house.upstream.received(Place::Authorize).len();
    let answer = Traveller::new().visit(&house.request(&[("prompt", "login")]));
    assert_eq!(answer.query()["error"].as_str(), "login_required");
    assert_eq!(visits(), 0);
    let answer = Traveller::new().visit(&house.request(&[]));
    house.assert_signed_in(&answer, "who need not is");
    registered(json!(["login"]));
    let answer = Traveller::new().visit(&house.request(&[("prompt", "login")]));
    house.assert_signed_in(&answer, "and who can be asked to");
    assert_eq!(house.upstream.asked()["prompt"], "login");
}

#[test]
fn a_way_that_ends_in_an_error_is_over_all_the_same() {
    let house = House::start();
    let flows = |browser: &Browser| {
        browser
            .cookies
            .keys()
            .filter(|name| name.contains("-flow-"))
            .count()
    };
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    assert_eq!(flows(house.browser(&mut person)), 1);
    house
        .gatepost
        .run_sql("ALTER TABLE linked_identities RENAME TO linked_identities_away");
    let answer = person.get(&callback);
    assert!(answer.status >= 500, "{} {}", answer.status, answer.text());
    assert_eq!(flows(house.browser(&mut person)), 0);
    house
        .gatepost
        .run_sql("ALTER TABLE linked_identities_away RENAME TO linked_identities");

    // What the client may ask for changed while they were away.
    let callback = house.at_the_gate(&mut person, &[]);
    house.gatepost.database.run("DELETE FROM clients WHERE client_id = 'conf1'; UPDATE installation SET registry_version = registry_version + 1");
    house.gatepost.settle();
    let answer = person.get(&callback);
    answer.assert_error_page(400, "GP", "a client that is gone");
    assert_eq!(flows(house.browser(&mut person)), 0);
}

#[test]
fn who_is_revoked_while_upstream_is_asked_signs_in_anew() {
    let house = House::start();
    let mut person = Traveller::new();
    let answer = person.visit(&house.request(&[]));
    let claims = house.assert_signed_in(&answer, "at first");
    let callback = house.at_the_gate(&mut person, &[("prompt", "login")]);
    let revoke = format!(
        "UPDATE users SET epoch = new_epoch() WHERE sub = '{}'",
        text(&claims, "sub")
    );
    house.upstream.fault(Place::Token, Fault::Held);
    let answer = thread::scope(|scope| {
        let back = scope.spawn(|| person.get(&callback));
        house.upstream.await_held(1);
        // As `user revoke` does, but without a process to start: upstream is given up after five
        // seconds.
        house.gatepost.database.run(&revoke);
        house.upstream.let_go();
        back.join().unwrap()
    });
    let again = house.assert_signed_in(&answer, "after that");
    assert_ne!(again["sid"], claims["sid"], "the old session is over");
    let silently = house
        .browser(&mut person)
        .get(&house.request(&[("prompt", "none")]));
    house.assert_signed_in(&silently, "and it lasts");
}
