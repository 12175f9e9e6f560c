//! Ways to an upstream provider and back that somebody meddles with, or that a person walks as
//! people do: in two tabs, twice, backwards, not to the end. None signs anybody in who did not walk
//! it; each ends on a clear page.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{LEFT_OUT, authorize_path, changed, issued, redeem, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::house::{as_far_as_upstream, start_with_one_server};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::verified;
use crate::support::signer::Signer;
use crate::support::traveller::Traveller;
use crate::support::upstream::{Fault, Place, Upstream};
use crate::support::waiting::all_at_once;

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

    /// What there is more of them than before.
    fn added(&self, before: [i64; 3]) -> [i64; 3] {
        let after = self.stored();
        std::array::from_fn(|index| after[index] - before[index])
    }

    /// A clear page with a reason, that leads nowhere by itself, and nothing that stays.
    fn assert_refused(&self, answer: &Answer, before: [i64; 3], case: &str) {
        assert!((400..500).contains(&answer.status), "{case}");
        answer.assert_stays_for(case, answer.status);
        answer.assert_says_for(case, "GP17");
        answer.assert_says_not_for(case, "http-equiv");
        assert_eq!(self.stored(), before, "{case}");
    }

    /// The code leads to tokens of somebody who came from upstream.
    fn assert_signed_in(&self, answer: &Answer, case: &str) -> Value {
        answer.assert_carries_for(case, "code");
        let tokens = issued(&redeem(&self.gatepost, &answer.query()["code"]));
        verified(&self.gatepost, text(&tokens, "id_token")).1
    }
}

/// An address with other parameters; [`LEFT_OUT`] leaves one out.
fn with(address: &str, changes: &[(&str, &str)]) -> String {
    let (path, query) = address.split_once('?').unwrap();
    let given = form_urlencoded::parse(query.as_bytes()).into_owned();
    let given: Vec<(String, String)> = given.collect();
    let given = given.iter().map(|(name, value)| (&**name, &**value));
    let given: Vec<(&str, &str)> = given.collect();
    format!("{path}?{}", encode(&changed(&given, changes)))
}

fn parameter(address: &str, name: &str) -> String {
    let (_, query) = address.split_once('?').unwrap();
    let mut all = form_urlencoded::parse(query.as_bytes());
    let (_, value) = all.find(|(other, _)| other == name).unwrap();
    value.into_owned()
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
        let mut cookies = browser.cookies.clone().into_iter();
        let is_flow = |name: &str| name.contains("flow") || name.contains("external");
        cookies.find(|(name, _)| is_flow(name)).unwrap()
    };
    let (name, _) = flow(house.browser(&mut person));
    let (_, value) = flow(house.browser(&mut other));
    house.browser(&mut other).cookies.insert(name, value);
    let answer = other.get(&callback);
    house.assert_refused(&answer, before, "with another value in the right cookie");

    let keep = house.browser(&mut person).cookies.clone();
    let state = parameter(&callback, "state");
    let mut states = Vec::new();
    for place in [0, 1, state.len() / 2, state.len() - 1] {
        let mut bytes = state.clone().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        states.push(String::from_utf8(bytes).unwrap());
    }
    states.extend(["x", LEFT_OUT].map(str::to_owned));
    states.extend([format!("{state}A"), "x".repeat(9_000)]);
    states.push(state[..state.len() - 4].to_owned());
    let states = states
        .iter()
        .map(|state| with(&callback, &[("state", state)]));
    let place_of = |name: &str| callback.replacen("/up/", &format!("/{name}/"), 1);
    // The first eleven say the same.
    let mut addresses: Vec<String> = states.collect();
    addresses.extend([place_of("other"), place_of("nobody")]);
    addresses.push(with(&callback, &[("code", LEFT_OUT)]));
    addresses.push(format!("{callback}&state={state}"));
    addresses.push(format!("{callback}&code={code}"));
    let mut pages = Vec::new();
    for address in &addresses {
        house.browser(&mut person).cookies = keep.clone();
        let answer = person.get(address);
        house.assert_refused(&answer, before, address);
        pages.push(page_text(&answer));
    }
    for (address, page) in addresses.iter().zip(&pages).take(11) {
        assert_eq!(page, &pages[0], "{address}: not as of a state that is none");
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
    let arrivals = all_at_once(4, |number| {
        let mut browser = [&house.gatepost, &second][number % 2].browser();
        browser.cookies = kept.clone();
        browser.get(path)
    });
    let (came_in, over): (Vec<&Answer>, Vec<&Answer>) = arrivals
        .iter()
        .partition(|answer| answer.header("location").is_some());
    assert_eq!((came_in.len(), over.len()), (1, 3));
    house.assert_signed_in(came_in[0], "the first");
    let after = house.stored();
    let sign_ins = "audit_events WHERE event = 'signed_in'";
    house.gatepost.database.assert_count(sign_ins, 1);
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
    let mut set = again.headers_named("set-cookie").into_iter();
    assert!(set.all(|cookie| cookie.contains("-flow-")), "no new handle");
    let kept = house.browser(&mut person).cookies.clone();
    assert!(
        own.iter()
            .all(|(name, value)| kept.get(name) == Some(value))
    );
    // A second way in that same session renews it.
    let callback = house.at_the_gate(&mut person, &[("prompt", "login")]);
    house.assert_signed_in(&person.get(&callback), "anew");
    assert_eq!(house.stored(), after);
    second.stop();
    house.gatepost.stop();
    house.gatepost.database.assert_count(sign_ins, 3);
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
    let [first, second] = [(); 2].map(|()| house.at_the_gate(&mut person, &[]));
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
    let tabs = ["one", "two"].map(|state| house.at_the_gate(&mut person, &[("state", state)]));
    // Both come to their end, the later one first.
    for (callback, state) in tabs.iter().zip(["one", "two"]).rev() {
        let answer = person.get(callback);
        assert_eq!(answer.query()["state"], state);
        house.assert_signed_in(&answer, state);
    }
    let mut left = house.browser(&mut person).cookies.keys();
    assert!(left.all(|name| !name.contains("flow")));

    // Six at once: the eldest is forgotten, the five others stand.
    let mut person = Traveller::new();
    let six = [0, 1, 2, 3, 4, 5]
        .map(|number| house.at_the_gate(&mut person, &[("nonce", &format!("n{number}"))]));
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
        let letters = (0..length).map(|place: u32| char::from(b'a' + (place * place % 26) as u8));
        let state: String = letters.collect();
        let mut person = Traveller::new();
        let answer = person.visit(&house.request(&[("state", &state)]));
        assert_eq!(answer.query()["state"], state, "{length}");
        house.assert_signed_in(&answer, &format!("a state of {length}"));
        let sent = house.upstream.asked()["state"].clone();
        assert!(sent.len() <= 2_000, "{length}: {}", sent.len());
    }
    let before = (house.stored(), house.upstream.visits());
    let state = "z".repeat(4_096);
    let mut person = Traveller::new();
    let answer = person.visit(&house.request(&[("state", &state)]));
    let leads = answer.header("location").unwrap_or("error=");
    leads.assert_says("error=");
    assert!(answer.status < 500, "{} {}", answer.status, answer.text());
    let mut cookies = house.browser(&mut person).cookies.values();
    assert!(cookies.all(|value| value.len() <= 3_500));
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
    assert_eq!(house.added(before), [1, 3, 1]);
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
    assert_eq!(house.added(before), [0, 80, 0]);
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
        let values = json!({"prompt_values_supported": values});
        let entry = house.upstream.registration("up", values);
        let document = json!({"identity_providers": [entry]});
        house.gatepost.apply(&document);
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
        let names = browser.cookies.keys();
        names.filter(|name| name.contains("-flow-")).count()
    };
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, &[]);
    assert_eq!(flows(house.browser(&mut person)), 1);
    let rename = |from: &str, to: &str| {
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        house.gatepost.run_sql(&rename);
    };
    rename("linked_identities", "linked_identities_away");
    let answer = person.get(&callback);
    assert!(answer.status >= 500, "{} {}", answer.status, answer.text());
    assert_eq!(flows(house.browser(&mut person)), 0);
    rename("linked_identities_away", "linked_identities");

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
    let sub = text(&claims, "sub");
    let revoke = format!("UPDATE users SET epoch = new_epoch() WHERE sub = '{sub}'");
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
    let silently = house.request(&[("prompt", "none")]);
    let silently = house.browser(&mut person).get(&silently);
    house.assert_signed_in(&silently, "and it lasts");
}
