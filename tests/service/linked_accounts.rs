//! Accounts elsewhere on the account page: what is listed and offered, who may link and for how
//! long, what unlinking ends, and that nobody loses their last way in.

use std::thread;

use gatepost::protocol::words::identifiers::{Sid, Subject};
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::linked_identities::{Link, Linked, Unlinked, link, unlink};
use gatepost::store::sessions;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, damaged, sign_in, text, userinfo, with_clients, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, RP1, document};
use crate::support::house::{House, as_far_as_upstream};
use crate::support::http::{Answer, encode};
use crate::support::traveller::Traveller;
use crate::support::upstream::{Fault, Place, SUBJECT};
use crate::support::waiting::{SOON, all_at_once, await_that};

/// Says why nothing was done.
#[track_caller]
fn refuses(answer: &Answer, sentence: &str) {
    refuses_for("the answer", answer, sentence);
}

#[track_caller]
fn refuses_for(case: &str, answer: &Answer, sentence: &str) {
    answer.assert_status_for(case, 200);
    answer.assert_says_for(case, "role=\"alert\"");
    answer.assert_says_for(case, sentence);
}

#[track_caller]
fn says(answer: &Answer, sentence: &str) {
    answer.assert_status_for(sentence, 200);
    answer.assert_says("role=\"status\"");
    answer.assert_says(sentence);
}

/// Two providers more: one of a tenant, one switched off.
fn with_hidden_providers() -> Value {
    let mut document = document();
    document["tenants"] = json!([{"name": "acme"}]);
    let provider = |name: &str, more: Value| {
        let issuer = format!("https://{name}.example");
        let hidden = json!({"name": name, "display_name": format!("Hidden {name}"), "issuer": issuer, "client_id": "gatepost"});
        with_members(hidden, &more)
    };
    document["identity_providers"] = json!([
        provider("of-acme", json!({"tenant": "acme"})),
        provider("switched-off", json!({"enabled": false}))
    ]);
    let carol = json!({"username": "carol", "tenant": "acme", "password": BOB_PASSWORD});
    document["users"].as_array_mut().unwrap().push(carol);
    document
}

/// Registers `up` anew, with these changes.
fn register_up(house: &House, changes: Value) {
    let mut document = document();
    document["identity_providers"] = json!([house.up.registration("up", changes)]);
    house.gatepost.apply(&document);
}

#[test]
fn the_page_lists_what_is_linked_and_offers_what_can_be() {
    let house = House::start_with(with_hidden_providers(), &json!({}), &[]);
    let mut alice = house.alice();
    let button = |name: &str| format!("name=\"provider\" value=\"{name}\"");
    let offers = |page: &Answer, name: &str| page.text().contains(&button(name));
    let page = house.account(&mut alice);
    assert!(offers(&page, "up"));
    assert!(offers(&page, "other"));
    page.assert_says("You have linked no other account");
    page.assert_says_not("Hidden");
    page.assert_says_not("of-acme");
    page.assert_says_not("switched-off");

    house.link(&mut alice, "other");
    let page = house.account(&mut alice);
    assert!(offers(&page, "up") && !offers(&page, "other"));
    page.assert_says(SUBJECT);
    page.assert_says("Linked since");
    let linked = json!({"by": "user", "issuer": house.other.issuer(), "upstream_subject": SUBJECT});
    assert_eq!(house.events("identity_linked"), [linked]);

    // What is not offered cannot be asked for: linked already, switched off, another tenant's,
    // unknown, not even a name.
    let visits = house.other.visits();
    for provider in "other switched-off of-acme unknown local ../up up\u{e9}".split(' ') {
        let answer = house.post(&mut alice, &[("decision", "link"), ("provider", provider)]);
        refuses_for(provider, &answer, "not available at the moment");
        answer.assert_stays_for(provider, 200);
    }
    for form in [
        &[("decision", "link")][..],
        &[("decision", "link"), ("provider", "")],
        &[("decision", "unlink")],
    ] {
        let answer = house.post(&mut alice, form);
        answer.assert_error_page(400, "GP1505", "nothing named");
    }
    assert_eq!(house.other.visits(), visits);

    // Nobody else sees it; who belongs to the tenant is offered the tenant's.
    let bobs = house.account(&mut house.signed_in("bob", BOB_PASSWORD));
    assert!(offers(&bobs, "other"));
    bobs.assert_says_not(SUBJECT);
    let mut carol = Traveller::new();
    let page = carol.visit(&house.address("/account?tenant=acme"));
    let answer = sign_in(house.browser(&mut carol), &page, "carol", BOB_PASSWORD);
    let page = carol.follow(&house.gatepost.base_url, answer);
    assert!(offers(&page, "of-acme"), "{}", page.text());
    assert!(offers(&page, "up"), "{}", page.text());
    assert!(!offers(&page, "switched-off"), "{}", page.text());
}

#[test]
fn an_account_elsewhere_is_shown_as_its_provider_says_once_that_is_known() {
    let house = House::start();
    let mut alice = house.alice();
    let said = json!({"email": "al<b>@elsewhere.example", "preferred_username": "al"});
    house.other.plan(|plan| plan.userinfo = said);
    house.link(&mut alice, "other");
    let shown = |alice: &mut Traveller| house.account(alice).text();
    let page = shown(&mut alice);
    page.assert_says("Identifier there");
    page.assert_says(&format!("<bdi>{SUBJECT}</bdi>"));
    house.through(&mut Traveller::new(), "other").unwrap();
    let page = shown(&mut alice);
    page.assert_says("Known there as");
    page.assert_says("<bdi>al&lt;b&gt;@elsewhere.example</bdi>");
    page.assert_says_not(SUBJECT);
    // What would hide something, or is too long, is passed over.
    for email in [&*"x".repeat(201), "a\u{202e}b@elsewhere.example"] {
        let said = json!(email);
        house.other.plan(|plan| plan.userinfo["email"] = said);
        house.through(&mut Traveller::new(), "other").unwrap();
        let page = shown(&mut alice);
        page.assert_says("<bdi>al</bdi>");
        page.assert_says_not(email);
    }
}

#[test]
fn the_operator_is_shown_what_an_issuer_is_called_now() {
    let house = House::start();
    let mut alice = house.alice();
    house.link(&mut alice, "other");
    let shown = || house.gatepost.shown("user show alice --json")["identities"].take();
    let linked = |names: &[&str]| json!([{"issuer": house.other.issuer(), "subject": SUBJECT, "providers": names, "claims": {}}]);
    assert_eq!(shown(), linked(&["other"]));
    let renamed = ["another", "other"].map(|name| house.other.registration(name, json!({})));
    let renamed = json!({"identity_providers": renamed});
    house.gatepost.apply(&renamed);
    assert_eq!(shown(), linked(&["another", "other"]));
    house.run_sql("DELETE FROM catalogue_entries WHERE name = 'other'");
    assert_eq!(shown(), linked(&["another"]));
    house.run_sql("DELETE FROM catalogue_entries WHERE name = 'another'");
    assert_eq!(shown(), linked(&[]));
}

#[test]
fn an_old_sign_in_is_asked_for_anew_and_comes_back_with_a_sentence() {
    let house = House::start();
    let mut alice = house.alice();
    let (visits, sessions) = (house.up.visits(), house.gatepost.database.count("sessions"));
    house.run_sql("UPDATE sessions SET auth_time = auth_time - interval '301 seconds'");
    let answer = house.post(&mut alice, &[("decision", "link"), ("provider", "up")]);
    answer.assert_leads_to("/login?r=");
    let page = alice.get(&house.address("/account?signed_in=anew"));
    page.assert_says_not("You have signed in again");
    // The session that there is will not do, however often one looks; going back to the account
    // changes nothing.
    let login = house.address(answer.location());
    for _ in 0..2 {
        let page = alice.get(&login);
        page.assert_status(200);
        page.assert_says("name=\"password\"");
    }
    assert_eq!(house.account(&mut alice).status, 200);

    let page = alice.get(&login);
    let wrong = sign_in(house.browser(&mut alice), &page, "alice", "wrong");
    assert_eq!((wrong.status, wrong.header("location")), (200, None));
    let answer = sign_in(house.browser(&mut alice), &page, "alice", ALICE_PASSWORD);
    answer.assert_status(303);
    assert_eq!(answer.location(), "/account?signed_in=anew");
    let page = alice.follow(&house.gatepost.base_url, answer);
    says(&page, "You have signed in again");
    // The same session, proven anew.
    assert_eq!(house.gatepost.database.count("sessions"), sessions);
    // And not a step upstream before that.
    assert_eq!(house.up.visits(), visits);
    house.link(&mut alice, "up");

    // Somebody else may sign in there as well, and is who they are.
    house.run_sql("UPDATE sessions SET auth_time = auth_time - interval '301 seconds'");
    let answer = house.post(&mut alice, &[("decision", "link"), ("provider", "other")]);
    let page = alice.get(&house.address(answer.location()));
    let answer = sign_in(house.browser(&mut alice), &page, "bob", BOB_PASSWORD);
    let page = alice.follow(&house.gatepost.base_url, answer);
    page.assert_says("Bob");
    page.assert_says_not("Alice");
    let of_bob = format!("linked_identities WHERE sub = '{}'", house.sub("bob"));
    assert_eq!(house.gatepost.database.count(&of_bob), 0);
}

#[test]
fn an_offer_is_for_its_session_its_form_and_its_moment() {
    let house = House::start();
    let mut alice = house.alice();
    let callback = house.at_the_gate(&mut alice, "up");
    let question = alice.get(&callback);
    let (offer, token) = (question.fields()["offer"].clone(), question.form_token());
    let post = |person: &mut Traveller, offer: &str, token: &str| {
        let decision = ("decision", "confirm_link");
        let form = [("form_token", token), ("offer", offer), decision];
        let answer = house.browser(person).post("/account", &form);
        assert_eq!(house.links(), 0, "{}", answer.text());
        answer
    };
    let account_token = |person: &mut Traveller| house.account(person).form_token();

    // Bob, with the form as it is, and with a token of a form of his own; alice from another
    // browser.
    let (mut bob, mut elsewhere) = (house.signed_in("bob", BOB_PASSWORD), house.alice());
    for person in [&mut bob, &mut elsewhere] {
        let own = account_token(person);
        for token in [&token, &own] {
            refuses(&post(person, &offer, token), "nothing was done");
        }
    }
    // Alice herself, but for the form: none, another page's, a damaged one; another text under the
    // same token.
    let own = account_token(&mut alice);
    let callback = house.at_the_gate(&mut alice, "other");
    let other = alice.get(&callback).fields();
    let damaged = damaged(&offer);
    for (offer, token) in [
        (&*offer, ""),
        (&offer, &own),
        (&offer, &token[1..]),
        (&damaged, &token),
        ("", &token),
        (&other["offer"], &token),
        (&offer, &other["form_token"]),
    ] {
        let answer = post(&mut alice, offer, token);
        refuses_for(&format!("{offer} {token}"), &answer, "nothing was done");
    }
    // From another site, or in the address.
    let decision = ("decision", "confirm_link");
    let form = [("form_token", &*token), ("offer", &offer), decision];
    for origin in ["https://evil.example", "null"] {
        let browser = house.browser(&mut alice);
        let answer = browser.post_from("/account", &[("Origin", origin)], &form);
        assert_eq!((answer.status, house.links()), (403, 0));
    }
    let query = format!("/account?{}", encode(&form));
    alice.get(&house.address(&query)).assert_status(200);
    assert_eq!(house.links(), 0);

    // Asked once more, and answered in a session that was proven anew meanwhile: drawn for another.
    let page = alice.visit(&house.address(&authorize_path("conf1", RP1, &[("prompt", "login")])));
    sign_in(house.browser(&mut alice), &page, "alice", ALICE_PASSWORD);
    refuses(&post(&mut alice, &offer, &token), "nothing was done");
    // Signed out: there is nobody to link it to.
    let callback = house.at_the_gate(&mut alice, "up");
    let question = alice.get(&callback);
    house.run_sql("UPDATE sessions SET ended_at = clock_timestamp()");
    let answer = house.confirm(&mut alice, &question);
    answer.assert_leads_to("/login?r=");
    assert_eq!(house.links(), 0);
}

/// The answer was read while the session lived; it ended before anything was written.
#[test]
fn a_session_that_ended_meanwhile_links_nothing() {
    let house = House::start();
    let _alice = house.alice();
    let store = house.gatepost.database.store();
    let sub = Subject::new(house.sub("alice"));
    let session = sessions::list_of_user(&store, &sub, 1).unwrap().remove(0);
    let new = Link {
        provider: Some("other"),
        ..linked_to(&sub, house.other.issuer())
    };
    let event = event_of(&sub, "identity_linked");
    let linked = || link(&store, &new, Some(&session), &event).unwrap();
    let database = &house.gatepost.database;
    database.run("UPDATE sessions SET ended_at = clock_timestamp()");
    assert_eq!(linked(), Linked::Nothing);
    assert_eq!(house.links(), 0);
    database.run("UPDATE sessions SET ended_at = NULL");
    assert_eq!(linked(), Linked::Added);
}

#[test]
fn an_offer_waits_five_minutes_and_only_while_its_provider_stands() {
    let house = House::start_with_a_clock_of_its_own();
    let mut alice = house.alice();
    let callback = house.at_the_gate(&mut alice, "up");
    let question = alice.get(&callback);
    // A provider that is disabled meanwhile, or turned into another.
    let moved = json!({"issuer": house.other.issuer()});
    for changes in [json!({"enabled": false}), moved] {
        register_up(&house, changes);
        let answer = house.confirm(&mut alice, &question);
        refuses(&answer, "not available at the moment");
        assert_eq!(house.links(), 0);
    }
    register_up(&house, json!({}));
    house.gatepost.travel(301);
    refuses(&house.confirm(&mut alice, &question), "too long");
    assert_eq!(house.links(), 0);
}

#[test]
fn what_was_sealed_for_another_page_is_no_offer_and_an_offer_opens_no_other_page() {
    let house = House::start();
    let mut alice = house.alice();
    let callback = house.at_the_gate(&mut alice, "up");
    let offer = alice.get(&callback).fields()["offer"].clone();
    for page in ["login", "consent", "logout", "device"] {
        let answer = alice.get(&house.address(&format!("/{page}?r={offer}")));
        answer.assert_error_page(400, "GP1504", page);
    }
    // The way to sign in, the way to link: each comes back as what it went for.
    let (_, query) = callback.split_once('?').unwrap();
    let mut members = form_urlencoded::parse(query.as_bytes());
    let (_, state) = members.find(|(name, _)| name == "state").unwrap();
    let signed_out = format!("/external/up/signed-out?state={state}");
    let opened = alice.get(&house.address(&signed_out));
    assert_eq!(opened.location(), "/logout");
    let before = house.gatepost.database.count("sessions");
    let again = alice.get(&callback);
    again.assert_status(400);
    again.assert_says_not("confirm_link");
    assert_eq!(house.links(), 0);
    assert_eq!(house.gatepost.database.count("sessions"), before);
}

#[test]
fn of_two_who_are_asked_the_first_gets_it_and_the_second_learns_no_name() {
    let house = House::start();
    let (mut alice, mut bob) = (house.alice(), house.signed_in("bob", BOB_PASSWORD));
    let asked = |person: &mut Traveller| {
        let callback = house.at_the_gate(person, "up");
        person.get(&callback)
    };
    let (hers, his) = (asked(&mut alice), asked(&mut bob));
    says(
        &house.confirm(&mut alice, &hers),
        "is linked. You can sign in",
    );
    says(&house.confirm(&mut alice, &hers), "was linked already");
    for answer in [house.confirm(&mut bob, &his), asked(&mut bob)] {
        refuses(&answer, "linked to another account here");
        answer.assert_says_not("Alice");
    }
    // Asked once more for the same, alice is told so, and asked nothing.
    house.run_sql("UPDATE linked_identities SET issuer = 'https://moved.example'");
    let callback = house.at_the_gate(&mut alice, "up");
    let issuer = house.up.issuer();
    house.run_sql(&format!("UPDATE linked_identities SET issuer = '{issuer}'"));
    let answer = alice.get(&callback);
    says(&answer, "was linked already");
    answer.assert_says_not("confirm_link");
    assert_eq!(house.links(), 1);
    assert_eq!(house.events("identity_linked").len(), 1);
}

#[test]
fn a_link_that_fails_there_is_explained_on_the_account_page() {
    let house = House::start();
    let mut alice = house.alice();
    house.other.fault(Place::Discovery, Fault::Status(500));
    let answer = house.post(&mut alice, &[("decision", "link"), ("provider", "other")]);
    refuses(&answer, "not available at the moment");
    let refused =
        json!({"code": null, "error": "access_denied", "error_description": "<b>no, Alice</b>"});
    let unknown = json!({"code": null, "error": "login_required"});
    let cases = [
        (refused, "did not finish"),
        (unknown, "did not finish"),
        (json!({"code": "another code"}), "cannot be used"),
    ];
    for (callback, sentence) in cases {
        house.up.plan(|plan| plan.callback = callback.clone());
        let callback = house.at_the_gate(&mut alice, "up");
        let answer = alice.get(&callback);
        refuses_for(sentence, &answer, sentence);
        answer.assert_says_not_for(sentence, "no, Alice");
        answer.assert_says_not("confirm_link");
    }
    assert_eq!(house.links(), 0);
    let failed = || house.events("identity_link_failed").len();
    await_that("each failure is told", SOON, || failed() >= 4);
}

#[test]
fn the_last_way_in_stays() {
    let house = House::start();
    // Somebody whom only the provider knows.
    let mut guest = Traveller::new();
    house.through(&mut guest, "up").unwrap();
    let answer = house.unlink(&mut guest, "Sign-in up");
    refuses(&answer, "could not sign in any more");
    assert_eq!(house.links(), 1);
    // A second account at a provider that is out of use is no way in.
    house.link(&mut guest, "other");
    let registered = |enabled: bool| {
        let changes = json!({"provision": false, "enabled": enabled});
        let mut document = document();
        document["identity_providers"] = json!([house.other.registration("other", changes)]);
        house.gatepost.apply(&document);
    };
    registered(false);
    let answer = house.unlink(&mut guest, "Sign-in up");
    refuses(&answer, "could not sign in any more");
    registered(true);

    // Two at once, each of which leaves the other: one goes.
    let sql = "SELECT DISTINCT sub FROM linked_identities";
    let database = &house.gatepost.database;
    let (sub, store) = (
        Subject::new(database.value::<String>(sql, &[])),
        database.store(),
    );
    let issuers = [house.up.issuer(), house.other.issuer()];
    let outcomes = all_at_once(2, |number| {
        let link = linked_to(&sub, issuers[number]);
        unlink(&store, &link, Some(&issuers), &event_of(&sub, "tested")).unwrap()
    });
    assert!(outcomes.contains(&Unlinked::Done), "{outcomes:?}");
    assert!(outcomes.contains(&Unlinked::LastWayIn), "{outcomes:?}");
    assert_eq!(house.links(), 1);

    // With a password every one of them may go.
    let mut alice = house.alice();
    let alices = house.sub("alice");
    house.run_sql(&format!("UPDATE linked_identities SET sub = '{alices}'"));
    let display_name = match outcomes[0] {
        Unlinked::Done => "Sign-in other",
        _ => "Sign-in up",
    };
    says(&house.unlink(&mut alice, display_name), "no longer linked");
    assert_eq!(house.links(), 0);
}

#[test]
fn a_sign_in_and_an_unlinking_of_the_same_moment_leave_no_session() {
    let house = House::start();
    house.link(&mut house.alice(), "other");
    let database = &house.gatepost.database;
    let standing = "sessions WHERE upstream_subject IS NOT NULL AND ended_at IS NULL";
    let alive = || database.count(standing);
    let mut other = database.client();
    let backend = other.query_one("SELECT pg_backend_pid()", &[]);
    let backend: i32 = backend.unwrap().get(0);

    // The link goes while somebody comes in by it: they wait, and find it gone.
    let (mut newcomer, mut known) = (Traveller::new(), house.alice());
    for (case, person) in [("a new session", &mut newcomer), ("their own", &mut known)] {
        let wishes = [("acr_values", "idp:other"), ("prompt", "login")];
        let callback = as_far_as_upstream(&house.gatepost, person, &wishes);
        let gone = "DELETE FROM linked_identities";
        let answer = database.meanwhile(gone, || person.get(&callback));
        answer.assert_error_page(400, "GP1711", case);
        assert_eq!(alive(), 0, "{case}");
        let again = house.through(&mut Traveller::new(), "other");
        assert!(again.is_none(), "{case}: nobody is known by it any more");
        house.link(&mut house.alice(), "other");
    }

    // Somebody comes in by it while it is unlinked: what the statement could not see yet is ended
    // behind it.
    let mut guest = Traveller::new();
    house.through(&mut guest, "other").unwrap();
    let mut coming = other.transaction().unwrap();
    let shared = "SELECT FROM linked_identities FOR KEY SHARE";
    coming.execute(shared, &[]).unwrap();
    let issuers = [house.other.issuer()];
    let (sub, store) = (Subject::new(house.sub("alice")), database.store());
    let link = linked_to(&sub, issuers[0]);
    let event = event_of(&sub, "identity_unlinked");
    let outcome = thread::scope(|scope| {
        let unlinked = scope.spawn(|| unlink(&store, &link, Some(&issuers), &event).unwrap());
        await_that("the unlinking waits", SOON, || {
            !database.waiting_behind(backend).is_empty()
        });
        let another = "INSERT INTO sessions SELECT (jsonb_populate_record(s, jsonb_build_object('handle_hash', '\\x00', 'sid', $1::text))).*
                       FROM sessions s WHERE upstream_subject IS NOT NULL AND ended_at IS NULL";
        let sid = coming.query_one(&format!("SELECT sid FROM {standing}"), &[]);
        let sid: String = sid.unwrap().get(0);
        let late = Sid::of_day(Sid::new(sid).day().unwrap(), [7; 16]);
        coming.execute(another, &[&late.as_str()]).unwrap();
        coming.commit().unwrap();
        unlinked.join().unwrap()
    });
    assert_eq!((outcome, alive()), (Unlinked::Done, 0));
    database.assert_count("audit_events WHERE event = 'session_ended'", 2);

    // Should that fail, the form that is sent again ends it.
    let mut alice = house.alice();
    house.link(&mut alice, "other");
    let identity = house.identity(&mut alice, "Sign-in other");
    house.unlink(&mut alice, "Sign-in other");
    house.run_sql("UPDATE sessions SET ended_at = NULL WHERE upstream_subject IS NOT NULL");
    assert!(alive() > 0);
    let form = [("decision", "unlink"), ("identity", &*identity)];
    refuses(&house.post(&mut alice, &form), "had ended already");
    assert_eq!(alive(), 0);
}

#[test]
fn unlinking_ends_what_came_through_it_and_takes_back_what_it_said() {
    let notified = json!({"backchannel_logout_uri": "https://rp.example/logout"});
    let mapped = json!({"claims": {"name": "name", "nick": "nickname"}});
    let document = with_clients(document(), &[("told", notified)]);
    let house = House::start_with(document, &mapped, &[]);
    let verified =
        |name: &str| json!({"email": format!("alice@{name}.example"), "email_verified": true});
    house.other.plan(|plan| plan.userinfo = verified("other"));
    let named = json!({"nick": "Al", "name": "Alice Upstairs"});
    house
        .up
        .plan(|plan| plan.userinfo = with_members(verified("up"), &named));
    let mut alice = house.alice();
    house.link(&mut alice, "up");
    house.link(&mut alice, "other");
    let alices = house.sub("alice");
    let claim = |name: &str| claims_of(&house, &alices)[name].clone();
    let claims = |names: [&str; 2]| names.map(claim);
    let unsaid = [Value::Null, json!("Alice Smith")];
    assert_eq!(claims(["nickname", "name"]), unsaid, "not by the link");

    // The same subject at both providers: two accounts all the same.
    let (mut through_up, mut through_other) = (Traveller::new(), Traveller::new());
    house.through(&mut through_other, "other").unwrap();
    house.through(&mut through_up, "up").unwrap();
    let said = [json!("alice@up.example"), json!(true)];
    assert_eq!(claims(["email", "email_verified"]), said);
    let said = [json!("Al"), json!("Alice Upstairs")];
    assert_eq!(claims(["nickname", "name"]), said);
    let tokens = [&mut through_up, &mut through_other].map(|person| house.tokens(person));
    let told = house.address(&authorize_path("told", RP1, &[]));
    through_up.get(&told).assert_status(303);
    let named =
        "UPDATE users SET claims = claims || '{\"name\": \"Alice\"}' WHERE username = 'alice'";
    house.run_sql(named);

    let mut bob = house.signed_in("bob", BOB_PASSWORD);
    let others = house.identity(&mut alice, "Sign-in other");
    let theirs = house.identity(&mut alice, "Sign-in up");
    for identity in [&*theirs, &others, "unknown", &alices] {
        let answer = house.post(&mut bob, &[("decision", "unlink"), ("identity", identity)]);
        refuses(&answer, "had ended already");
    }
    // Alice's own, but not from her form.
    for token in ["", "forged", "AAAA"] {
        let wish = [("decision", "unlink"), ("identity", &*theirs)];
        let form = [&[("form_token", token)], &wish[..]].concat();
        let answer = house.browser(&mut alice).post("/account", &form);
        refuses(&answer, "nothing was done");
    }
    assert_eq!(house.links(), 2);
    assert_eq!(house.events("identity_unlinked").len(), 0);

    says(&house.unlink(&mut alice, "Sign-in up"), "no longer linked");
    assert_eq!(house.links(), 1);
    assert!(!house.is_signed_in(&mut through_up));
    assert!(house.is_signed_in(&mut through_other));
    assert!(house.is_signed_in(&mut alice));
    let alive = tokens.map(|tokens| userinfo(&house.gatepost, text(&tokens, "access_token")));
    assert_eq!(alive.map(|answer| answer.status), [401, 200]);
    let due = "session_clients c JOIN sessions s USING (day, sid) WHERE c.client_id = 'told' AND s.ended_at IS NOT NULL \
               AND (c.due_at IS NOT NULL OR c.tries > 0)";
    assert_eq!(house.gatepost.database.count(due), 1);
    let left = claims_of(&house, &alices);
    assert_eq!(left["name"], "Alice", "what is hers is kept");
    // The other one verified another address.
    for gone in ["nickname", "email", "email_verified"] {
        assert_eq!(left.get(gone), None, "{gone}");
    }
    let detail = json!({"by": "user", "issuer": house.up.issuer(), "upstream_subject": SUBJECT});
    for event in ["identity_unlinked", "session_ended"] {
        let written = std::slice::from_ref(&detail);
        assert_eq!(house.events(event), written, "{event}");
    }

    // In the session that came through it, unlinking is signing out.
    assert!(house.unlink(&mut through_other, "Sign-in other").location() == "/logout");
    assert!(!house.is_signed_in(&mut through_other) && house.is_signed_in(&mut alice));
    assert_eq!(house.links(), 0);
}

/// A house whose provider `up` says roles, where `office` makes administrators, and somebody whom
/// `up` gave the role `staff` and an operator the role `office`: their subject.
fn with_an_administrator() -> (House, String) {
    let roles = json!({"claims": {"groups": "role"}});
    let house = House::start_with(document(), &roles, &[("GATEPOST_ADMIN_ROLE", "office")]);
    says_groups(&house, "staff");
    let told = house.through(&mut Traveller::new(), "up").unwrap();
    let sub = text(&told, "sub").to_owned();
    let added = format!("user role {sub} --add office");
    house.gatepost.run_line(&added);
    assert_eq!(roles_of(&house, &sub), json!(["staff", "office"]));
    (house, sub)
}

fn says_groups(house: &House, group: &str) {
    let groups = json!({"groups": [group]});
    house.up.plan(|plan| plan.id_token = groups);
}

fn roles_of(house: &House, sub: &str) -> Value {
    claims_of(house, sub)["role"].clone()
}

#[test]
fn unlinking_leaves_the_role_of_administrators() {
    let (house, sub) = with_an_administrator();
    // Stored is what the provider says, and not what its users have besides.
    house.through(&mut Traveller::new(), "up").unwrap();
    let sql = "SELECT claims -> 'role' FROM linked_identities WHERE sub = $1";
    let mut client = house.gatepost.database.client();
    let said: Value = client.query_one(sql, &[&sub]).unwrap().get(0);
    assert_eq!(said, json!(["staff"]));
    let identity = ["--issuer", house.up.issuer(), "--subject", SUBJECT];
    let unlink = [&["user", "unlink", sub.as_str()][..], &identity[..]].concat();
    house.gatepost.run_well(&unlink, "");
    assert_eq!(house.links(), 0);
    assert_eq!(roles_of(&house, &sub), json!(["staff", "office"]));
}

#[test]
fn a_role_that_is_taken_during_a_sign_in_stays_taken() {
    let (house, sub) = with_an_administrator();
    says_groups(&house, "sales");
    let role = r#"{"role": ["staff"]}"#;
    let taken = format!("UPDATE users SET claims = claims || '{role}' WHERE sub = '{sub}'");
    // The sign-in has read the role, and waits to write it.
    let database = &house.gatepost.database;
    let told = database.meanwhile(&taken, || house.through(&mut Traveller::new(), "up"));
    assert_eq!(told.unwrap()["sub"], json!(sub), "they are signed in");
    assert_eq!(roles_of(&house, &sub), json!(["sales"]));
}

fn claims_of(house: &House, sub: &str) -> Value {
    let sql = "SELECT claims FROM users WHERE sub = $1";
    let mut client = house.gatepost.database.client();
    client.query_one(sql, &[&sub]).unwrap().get(0)
}

/// Somebody whom `up` alone knows, and of whom it says this: their subject.
fn known_by_up(house: &House, said: Value) -> String {
    house.up.plan(|plan| plan.id_token = said);
    let told = house.through(&mut Traveller::new(), "up").unwrap();
    text(&told, "sub").to_owned()
}

/// The row about it of "What ends what" in docs/security.md.
#[test]
fn a_provider_that_is_switched_off_lets_nobody_in_and_ends_nothing() {
    let house = House::start();
    house.link(&mut house.alice(), "up");
    let mut alice = Traveller::new();
    house.through(&mut alice, "up").unwrap();
    let tokens = house.tokens(&mut alice);
    let moved = json!({"issuer": house.other.issuer()});
    for changes in [json!({"enabled": false}), moved] {
        register_up(&house, changes);
        assert!(!house.is_signed_in(&mut alice));
        let told = userinfo(&house.gatepost, text(&tokens, "access_token"));
        assert_eq!(told.status, 200, "what clients were given stays");
        assert_eq!(house.events("session_ended"), Vec::<Value>::new());
        register_up(&house, json!({}));
        assert!(house.is_signed_in(&mut alice));
    }
}

/// What a letter to an address of their own changes.
fn proved_by_letter(sub: &str) -> String {
    let proved = r#"{"email": "own@example.com", "email_verified": true}"#;
    format!(
        "UPDATE users SET claims = claims || '{proved}' WHERE sub = '{sub}';
         UPDATE linked_identities SET verified_email = '' WHERE sub = '{sub}'"
    )
}

/// The account at that issuer, as somebody's.
fn linked_to<'a>(sub: &'a Subject, issuer: &'a str) -> Link<'a> {
    Link {
        issuer,
        upstream_subject: SUBJECT,
        sub,
        provider: None,
    }
}

fn event_of<'a>(sub: &'a Subject, event: &'a str) -> AuditEvent<'a> {
    AuditEvent {
        event,
        sub: Some(sub),
        ..AuditEvent::default()
    }
}

/// Unlinks the account at `up`, as the operator does.
fn unlink_up(house: &House, sub: &str) -> Unlinked {
    let sub = Subject::new(sub.to_owned());
    let link = linked_to(&sub, house.up.issuer());
    let event = event_of(&sub, "identity_unlinked");
    unlink(&house.gatepost.database.store(), &link, None, &event).unwrap()
}

#[test]
fn an_address_that_is_proved_during_a_sign_in_does_not_verify_the_one_that_comes_in() {
    let house = House::start();
    let unverified = |email: &str| json!({"email": email, "email_verified": false});
    let sub = known_by_up(&house, unverified("old@up.example"));
    let said = unverified("victim@example.com");
    house.up.plan(|plan| plan.id_token = said.clone());
    // The sign-in has read that no address is verified, and waits to write another one.
    let database = &house.gatepost.database;
    let told = database.meanwhile(&proved_by_letter(&sub), || {
        house.through(&mut Traveller::new(), "up")
    });
    assert_eq!(told.unwrap()["sub"], json!(sub), "they are signed in");
    assert_eq!(claims_of(&house, &sub), said);
}

#[test]
fn an_unlinking_takes_back_nothing_that_was_changed_while_it_waited() {
    let house = House::start();
    let sub = known_by_up(&house, json!({"name": "Upstairs", "nickname": "Up"}));
    let named =
        format!("UPDATE users SET claims = claims || '{{\"name\": \"Own\"}}' WHERE sub = '{sub}'");
    let database = &house.gatepost.database;
    let outcome = database.meanwhile(&named, || unlink_up(&house, &sub));
    assert_eq!(outcome, Unlinked::Done);
    assert_eq!(claims_of(&house, &sub), json!({"name": "Own"}));
}

#[test]
fn what_was_verified_here_stays_so_when_the_account_that_verified_another_is_unlinked() {
    let scope = json!({"scope": "openid profile email phone"});
    let house = House::start_with(document(), &scope, &[]);
    let said = json!({
        "email": "old@up.example", "email_verified": true,
        "phone_number": "+49 30 1", "phone_number_verified": true,
    });
    let sub = known_by_up(&house, said);
    // An operator knows another number, a letter another address: the latter while the unlinking
    // waits for it.
    let number = ["phone_number=+49 30 2", "phone_number_verified=true"];
    let set = ["user", "set", &sub, number[0], number[1]];
    house.gatepost.run_well(&set, "");
    let database = &house.gatepost.database;
    let outcome = database.meanwhile(&proved_by_letter(&sub), || unlink_up(&house, &sub));
    assert_eq!(outcome, Unlinked::Done);
    let kept = json!({
        "email": "own@example.com", "email_verified": true,
        "phone_number": "+49 30 2", "phone_number_verified": true,
    });
    assert_eq!(claims_of(&house, &sub), kept);
}

/// What a third account verified is another address.
#[test]
fn an_address_that_stays_is_no_longer_verified_once_nobody_says_so() {
    let house = House::start();
    let said = json!({"email": "a@up.example", "email_verified": true});
    let sub = known_by_up(&house, said);
    house.gatepost.database.run(&format!(
        r#"INSERT INTO linked_identities (issuer, upstream_subject, sub, claims) VALUES
           ('https://second.example', 'a', '{sub}', '{{"email": "a@up.example"}}'),
           ('https://third.example', 'a', '{sub}',
            '{{"email": "b@up.example", "email_verified": true}}')"#
    ));
    assert_eq!(unlink_up(&house, &sub), Unlinked::Done);
    assert_eq!(claims_of(&house, &sub), json!({"email": "a@up.example"}));
}
