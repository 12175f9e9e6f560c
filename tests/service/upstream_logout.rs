//! The two ends of a session with an identity provider: signing out here signs out there and comes
//! back to where it would have ended; and a provider's own logout tokens end what came from it.

use std::thread::{self, sleep};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{
    authorize_path, choose, damaged, decode_jwt, sign_in, text, userinfo, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, RP1, document};
use crate::support::house::{House, as_far_as_upstream};
use crate::support::http::{Answer, encode};
use crate::support::signer::{Signer, now};
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Fault, Place, SUBJECT, change};
use crate::support::waiting::{SOON, await_that};

const DONE: &str = "https://rp1.example/done?a=b";
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

fn registered() -> Value {
    let mut document = document();
    document["clients"][0]["post_logout_redirect_uris"] = json!([DONE]);
    let framed = json!({"frontchannel_logout_uri": "https://framed.example/out", "backchannel_logout_uri": "https://framed.example/told"});
    with_clients(document, &[("framed", framed)])
}

fn start() -> House {
    House::start_with(registered(), &json!({"sign_out": true}), &[])
}

/// Somebody who signed in through a provider, and an ID token of ours that says so.
fn through(house: &House, provider: &str) -> (Traveller, String) {
    let mut person = Traveller::new();
    assert!(house.through(&mut person, provider).is_some(), "{provider}");
    let id_token = text(&house.tokens(&mut person), "id_token").to_owned();
    (person, id_token)
}

/// A client's wish that they sign out, and be sent to [`DONE`].
fn end_session(
    house: &House,
    person: &mut Traveller,
    id_token: &str,
    further: &[(&str, &str)],
) -> Answer {
    let sent = [
        ("id_token_hint", id_token),
        ("post_logout_redirect_uri", DONE),
        ("state", "s \"1\""),
    ];
    let query = encode(&[&sent, further].concat());
    person.get(&house.address(&format!("/connect/endsession?{query}")))
}

/// Signing out by oneself.
fn log_out(house: &House, person: &mut Traveller) -> Answer {
    let token = person.get(&house.address("/logout")).form_token();
    let form = [("form_token", &*token), ("decision", "sign_out")];
    house.browser(person).post("/logout", &form)
}

fn done() -> String {
    format!("{DONE}&state=s%20%221%22")
}

fn is_signed_out_page(answer: &Answer) -> bool {
    answer.status == 200 && answer.text().contains("<h1>You are signed out</h1>")
}

/// Sessions that have not ended, and ID tokens from upstream that are kept.
fn left(house: &House) -> (i64, i64) {
    let database = &house.gatepost.database;
    (
        database.count("sessions WHERE ended_at IS NULL"),
        database.count("sessions WHERE upstream_id_token IS NOT NULL"),
    )
}

#[test]
fn signing_out_here_goes_on_there_and_comes_back_to_where_it_would_have_ended() {
    let house = start();
    let (mut person, id_token) = through(&house, "up");
    assert_eq!(left(&house), (1, 1));
    let dump = "SELECT upstream_id_token FROM sessions";
    let kept: Vec<u8> = house.gatepost.database.value(dump, &[]);
    assert!(!String::from_utf8_lossy(&kept).contains("eyJ"), "sealed");

    let answer = end_session(&house, &mut person, &id_token, &[]);
    let endpoint = house.up.url(Place::EndSession);
    answer.assert_status(303);
    answer.assert_leads_to(&endpoint);
    // Over here before anybody is asked there.
    assert_eq!(left(&house), (0, 0));
    let (sent, back) = (answer.query(), house.address("/external/up/signed-out"));
    assert_eq!(&*sent["client_id"], CLIENT_ID);
    assert_eq!(&*sent["post_logout_redirect_uri"], &*back);
    let (_, hint) = decode_jwt(&sent["id_token_hint"]);
    assert_eq!(hint["iss"], json!(house.up.issuer()));
    assert_eq!(hint["sub"], json!(SUBJECT));
    assert!(!sent["state"].contains("rp1"), "{sent:?}");
    assert!(sent.len() == 4, "{sent:?}");
    let end = person.follow(&house.gatepost.base_url, answer);
    assert_eq!((end.status, end.location()), (303, &*done()));
    let came_back = |address: &String| address.starts_with(&format!("{back}?state="));
    assert!(person.went.iter().any(came_back), "{:?}", person.went);
    assert_eq!(house.up.received(Place::EndSession).len(), 1);

    // By oneself it ends on our own page.
    let (mut person, _) = through(&house, "up");
    let answer = log_out(&house, &mut person);
    answer.assert_leads_to(&endpoint);
    let end = person.follow(&house.gatepost.base_url, answer);
    assert!(is_signed_out_page(&end));
    assert!(!house.is_signed_in(&mut person));
    // Somebody who changes their mind signs out nowhere.
    let (mut person, _) = through(&house, "up");
    let token = person.get(&house.address("/logout")).form_token();
    house
        .browser(&mut person)
        .post("/logout", &[("form_token", &token), ("decision", "stay")]);
    assert!(house.is_signed_in(&mut person));
    assert_eq!(house.up.received(Place::EndSession).len(), 2);
}

#[test]
fn a_client_that_sends_no_browser_signs_nobody_out_there() {
    let house = start();
    let (mut person, id_token) = through(&house, "up");
    person.get(&house.address(&authorize_path("framed", RP1, &[])));
    let answer = end_session(&house, &mut Traveller::new(), &id_token, &[]);
    assert_eq!((answer.status, answer.location()), (303, &*done()));
    assert_eq!(left(&house), (0, 0));
    assert!(!house.is_signed_in(&mut person) && house.up.received(Place::EndSession).is_empty());
}

#[test]
fn applications_in_frames_are_told_before_the_browser_leaves() {
    let house = start();
    let (mut person, id_token) = through(&house, "up");
    person.get(&house.address(&authorize_path("framed", RP1, &[])));
    let page = end_session(&house, &mut person, &id_token, &[]);
    assert!(is_signed_out_page(&page), "{}", page.text());
    page.assert_says("https://framed.example/out?iss=");
    let refresh = page.header("refresh").unwrap().to_owned();
    let (seconds, onward) = refresh.split_once(";url=").unwrap();
    let leads_there = onward.starts_with(&house.up.url(Place::EndSession));
    assert!(seconds == "2" && leads_there, "{refresh}");
    page.assert_says("Sign out at");
    page.assert_says("Sign-in up");
    page.assert_says_not_for("that comes later", DONE);
    let link = page.attribute("rel=\"noreferrer\"", "href").unwrap();
    assert_eq!(link, onward);
    assert_eq!(person.visit(onward).location(), done());
}

#[test]
fn only_sessions_from_a_provider_that_wants_it_go_there() {
    let house = start();
    // A password; a provider without `sign_out`; one whose user typed a password since.
    let mut alice = house.alice();
    assert!(is_signed_out_page(&log_out(&house, &mut alice)));
    let mut linked = house.alice();
    house.link(&mut linked, "other");
    let (mut other, id_token) = through(&house, "other");
    assert_eq!(left(&house).1, 0, "no ID token is kept without need");
    let end = end_session(&house, &mut other, &id_token, &[]);
    assert_eq!(end.location(), done());
    house.link(&mut linked, "up");
    let (mut renewed, _) = through(&house, "up");
    let page = renewed.visit(&house.address(&authorize_path("conf1", RP1, &[("prompt", "login")])));
    sign_in(house.browser(&mut renewed), &page, "alice", ALICE_PASSWORD).assert_status(303);
    assert_eq!(left(&house).1, 0, "a later sign-in here takes it away");
    assert!(is_signed_out_page(&log_out(&house, &mut renewed)));
    // Nobody signed in: nobody to sign out there.
    let end = end_session(&house, &mut Traveller::new(), &id_token, &[]);
    assert_eq!(end.location(), done());
    assert!(house.up.received(Place::EndSession).is_empty());
    assert!(house.other.received(Place::EndSession).is_empty());
}

#[test]
fn a_provider_that_is_away_or_cannot_leaves_the_sign_out_complete() {
    let mut house = start();
    let unable = json!({"end_session_endpoint": null});
    house.up.plan(|plan| plan.discovery = unable);
    let (mut person, id_token) = through(&house, "up");
    let end = end_session(&house, &mut person, &id_token, &[]);
    assert_eq!(end.location(), done());
    assert_eq!(left(&house), (0, 0));
    // A new process knows nothing of a provider that does not answer.
    let (mut person, id_token) = through(&house, "up");
    house.up.fault(Place::Discovery, Fault::Status(500));
    house.gatepost.stop();
    house.gatepost.serve();
    let end = end_session(&house, &mut person, &id_token, &[]);
    assert_eq!(end.location(), done());
    assert_eq!(left(&house), (0, 0));
    assert!(house.up.received(Place::EndSession).is_empty());
}

#[test]
fn nothing_that_comes_back_leads_anywhere_but_where_the_sign_out_began() {
    let house = start();
    let (mut person, id_token) = through(&house, "up");
    let answer = end_session(&house, &mut person, &id_token, &[]);
    let state = answer.query()["state"].clone();
    // Of a client's request that was asked for only.
    let wish = encode(&[("client_id", "conf1"), ("post_logout_redirect_uri", DONE)]);
    let wish = house.address(&format!("/connect/endsession?{wish}"));
    let asked = house.alice().get(&wish);
    let sealed = asked.query()["r"].clone();
    let evil = [
        ("post_logout_redirect_uri", "https://evil.example"),
        ("redirect_uri", "https://evil.example"),
    ];
    let with = |state: &str| encode(&[&evil[..], &[("state", state)]].concat());
    for (provider, query) in [
        ("up", String::new()),
        ("up", encode(&evil)),
        ("up", with("https://evil.example")),
        ("up", with(&damaged(&state))),
        ("up", with(&sealed)),
        ("other", with(&state)),
        ("nobody", with(&state)),
        ("UP", with(&state)),
    ] {
        let path = format!("/external/{provider}/signed-out?{query}");
        let answer = person.get(&house.address(&path));
        assert_eq!(answer.status, 303, "{provider} {query}");
        assert_eq!(answer.location(), "/logout", "{provider} {query}");
    }
    let twice = format!("/external/up/signed-out?state={state}&state={state}");
    let answer = person.get(&house.address(&twice));
    answer.assert_error_page(400, "GP1002", "twice");
    let paths = "/external/up/signed-out/ /external//signed-out /external/up/x/signed-out
                 /external/up";
    for path in paths.split_whitespace() {
        let answer = person.get(&house.address(path));
        let leads_nowhere = answer.status == 404 || answer.location() == "/logout";
        assert!(leads_nowhere, "{path}: {}", answer.status);
    }
    let path = "/external/up/signed-out";
    house
        .gatepost
        .send("POST", path, &[], b"")
        .assert_status(405);
    // The state opens no other page, and no page's address is one.
    for page in ["login", "consent", "logout", "device"] {
        person
            .get(&house.address(&format!("/{page}?r={state}")))
            .assert_error_page(400, "GP1504", page);
    }

    // As it was sent, it leads there, twice if need be; no longer once the address is not
    // registered, or an hour is over.
    let back = house.address(&format!("/external/up/signed-out?state={state}"));
    for _ in 0..2 {
        assert_eq!(person.get(&back).location(), done());
    }
    // Who has signed in again meanwhile stays so.
    let (mut person, _) = through(&house, "up");
    let answer = log_out(&house, &mut person);
    let alone = answer.query()["state"].clone();
    house.through(&mut person, "up").unwrap();
    let answer = person.get(&house.address(&format!("/external/up/signed-out?state={alone}")));
    assert_eq!(answer.location(), "/logout");
    assert!(house.is_signed_in(&mut person));
    let mut document = registered();
    document["clients"][0]["post_logout_redirect_uris"] = json!([]);
    document["identity_providers"] =
        json!([house.up.registration("up", json!({"sign_out": true}))]);
    house.gatepost.apply(&document);
    let answer = Traveller::new().get(&back);
    assert!(is_signed_out_page(&answer), "{}", answer.text());
    answer.assert_says_not("rp1.example");
}

/// Between a departure and what the provider tells: they are dated by two clocks, which are some
/// milliseconds apart.
fn let_a_moment_pass() {
    sleep(Duration::from_millis(100));
}

/// Tells it as the provider does.
fn tell(house: &House, provider: &str, token: &str) -> Answer {
    let path = format!("/external/{provider}/logout");
    house.gatepost.post(&path, &[], &[("logout_token", token)])
}

#[test]
fn a_logout_token_ends_what_it_names_with_all_that_stands_on_it() {
    let house = start();
    let told = |claims: Value| tell(&house, "up", &house.up.logout_token(claims));
    let signed_in_with = |sid: &str| {
        house.up.plan(|plan| plan.id_token = json!({"sid": sid}));
        house.other.plan(|plan| plan.id_token = json!({"sid": sid}));
        through(&house, "up").0
    };
    let mut one = signed_in_with("sid-1");
    one.get(&house.address(&authorize_path("framed", RP1, &[])));
    let access_token = text(&house.tokens(&mut one), "access_token").to_owned();
    let mut alice = house.alice();
    house.link(&mut alice, "other");
    // The same subject and the same `sid`, said by another provider.
    let (mut other, _) = through(&house, "other");
    let mut two = signed_in_with("sid-2");

    // Named twice, both must fit.
    for claims in [
        json!({"sid": "sid-1", "sub": "somebody else"}),
        json!({"sid": "sid-3"}),
        json!({"sid": "SID-1"}),
        json!({"sid": "", "sub": null}),
        json!({"sub": SUBJECT.to_owned() + " "}),
    ] {
        let answer = told(claims.clone());
        let is_judged = [200, 400].contains(&answer.status);
        assert!(is_judged, "{claims}: {}", answer.text());
        assert!(house.is_signed_in(&mut one), "{claims}");
        assert!(house.is_signed_in(&mut two), "{claims}");
    }
    assert!(house.events("session_ended").is_empty());
    let answer = told(json!({"sid": "sid-1", "sub": null}));
    answer.assert_status(200);
    assert_eq!(answer.body.len(), 0, "{}", answer.text());
    answer.assert_header("cache-control", "no-store");
    answer.assert_header("pragma", "no-cache");
    assert!(!house.is_signed_in(&mut one));
    assert!(house.is_signed_in(&mut two));
    assert!(house.is_signed_in(&mut other));
    assert_eq!(userinfo(&house.gatepost, &access_token).status, 401);
    let due = "session_clients c JOIN sessions s USING (day, sid) WHERE s.ended_at IS NOT NULL AND (c.due_at IS NOT NULL OR c.tries > 0)";
    // Their clients hear of it.
    assert_eq!(house.gatepost.database.count(due), 1);
    let by = json!({"by": "identity_provider", "identity_provider": "up"});
    assert_eq!(house.events("session_ended"), std::slice::from_ref(&by));

    // By the person: each of their sessions, with an event for each.
    let_a_moment_pass();
    let mut three = signed_in_with("sid-3");
    assert_eq!(told(json!({})).status, 200);
    assert!(!house.is_signed_in(&mut two) && !house.is_signed_in(&mut three));
    assert!(house.is_signed_in(&mut other) && house.is_signed_in(&mut alice));
    assert_eq!(house.events("session_ended"), [by.clone(), by.clone(), by]);
    assert_eq!(left(&house).1, 0);
    // A session that came from there once, and was proven by a password since, is no longer theirs
    // to end.
    let subject = String::from("alice-there");
    house.up.plan(|plan| plan.subject = subject);
    let of_alice = || told(json!({"sub": "alice-there"})).status;
    house.link(&mut alice, "up");
    let mut proven = through(&house, "up").0;
    let page = proven.visit(&house.address(&authorize_path("conf1", RP1, &[("prompt", "login")])));
    sign_in(house.browser(&mut proven), &page, "alice", ALICE_PASSWORD);
    assert_eq!(of_alice(), 200);
    assert!(house.is_signed_in(&mut proven));
    // And one proven there since is.
    let_a_moment_pass();
    let page = proven.visit(&house.address(&authorize_path("conf1", RP1, &[("prompt", "login")])));
    let answer = choose(house.browser(&mut proven), &page, "up");
    proven.follow(&house.gatepost.base_url, answer);
    assert!(house.is_signed_in(&mut proven));
    assert_eq!(of_alice(), 200);
    assert!(!house.is_signed_in(&mut proven));
}

#[test]
fn whatever_else_is_posted_is_refused_alike_and_ends_nothing() {
    let house = start();
    let (mut person, _) = through(&house, "up");
    let good = || house.up.logout_token(json!({}));
    let refused = |answer: &Answer, case: &str| {
        answer.assert_status_for(case, 400);
        answer.assert_member_for(case, "error", "invalid_request");
        answer.assert_header_for(case, "cache-control", "no-store");
    };
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let json = ("Content-Type", "application/json");
    let path = "/external/up/logout";
    let token = |token: &str| format!("logout_token={token}");
    let twice = format!("{0}&{0}", token(&good()));
    let in_the_address = format!("{path}?{}", token(&good()));
    for (case, path, headers, body) in [
        ("nothing", path, &[form][..], ""),
        ("no type", path, &[], &token(&good())),
        ("JSON", path, &[json], "{}"),
        ("twice", path, &[form], &twice),
        ("no UTF-8", path, &[form], "logout_token=%ff"),
        ("NUL", path, &[form], "logout_token=%00"),
        ("too long", path, &[form], &token(&"a".repeat(17_000))),
        ("in the address", &in_the_address, &[form], ""),
    ] {
        let answer = house.gatepost.send("POST", path, headers, body.as_bytes());
        refused(&answer, case);
    }
    let of_other = house.other.logout_token(json!({"iss": house.up.issuer()}));
    let with_nonce = house.up.logout_token(json!({"nonce": "n"}));
    for (case, token) in [("another's key", of_other), ("with a nonce", with_nonce)] {
        refused(&tell(&house, "up", &token), case);
    }
    // Who is not registered is not told apart from who is not believed.
    let (unknown, bad) = (tell(&house, "nobody", &good()), tell(&house, "up", "a.b.c"));
    refused(&unknown, "an unknown provider");
    assert_eq!(unknown.body, bad.body);
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let answer = house.gatepost.send(method, path, &[], b"");
        answer.assert_status_for(method, 405);
        answer.assert_header_for(method, "allow", "POST");
    }
    assert!(house.is_signed_in(&mut person));

    // Disabled, a provider says nothing any more, not even about its own.
    let mut document = registered();
    document["identity_providers"] =
        json!([house.up.registration("up", json!({"enabled": false}))]);
    house.gatepost.apply(&document);
    house.up.behave();
    refused(&tell(&house, "up", &good()), "disabled");
}

/// What a provider's logout token may not be.
fn bad_logout_tokens(house: &House) -> Vec<(&'static str, String)> {
    let token = |changes: Value| house.up.logout_token(changes);
    let under = |changes: Value| {
        let mut header = json!({"typ": "logout+jwt"});
        change(&mut header, &changes);
        let mut claims = json!({
            "iss": house.up.issuer(), "aud": CLIENT_ID, "iat": now(), "exp": now() + 120, "sub": SUBJECT, "events": {}
        });
        let further = json!({"jti": format!("header-{header}"), "events": {EVENT: {}}});
        change(&mut claims, &further);
        house.up.logout_token_under(header, claims)
    };
    let right = token(json!({}));
    let (input, _) = right.rsplit_once('.').unwrap();
    let id_token = json!({"nonce": "n", "events": null, "jti": null});
    vec![
        ("nothing", String::new()),
        ("no JWT", String::from("a.b.c")),
        ("no signature", format!("{input}.")),
        ("alg none", under(json!({"alg": "none"}))),
        ("an unknown kid", under(json!({"kid": "unknown"}))),
        (
            "the type of something else",
            under(json!({"typ": "at+jwt"})),
        ),
        ("an ID token", token(id_token)),
        ("a nonce", token(json!({"nonce": "n"}))),
        (
            "another issuer",
            token(json!({"iss": house.other.issuer()})),
        ),
        ("another audience", token(json!({"aud": "somebody-else"}))),
        ("no audience", token(json!({"aud": null}))),
        ("no iat", token(json!({"iat": null}))),
        (
            "an iat far ahead",
            token(json!({"iat": now() + 3_600, "exp": now() + 7_200})),
        ),
        (
            "expired",
            token(json!({"iat": now() - 600, "exp": now() - 300})),
        ),
        ("no events", token(json!({"events": null}))),
        (
            "another event",
            token(json!({"events": {"http://schemas.openid.net/event/other": {}}})),
        ),
        (
            "an event that is no object",
            token(json!({"events": {EVENT: true}})),
        ),
        ("neither sub nor sid", token(json!({"sub": null}))),
        ("no jti", token(json!({"jti": null}))),
        ("of the other provider", house.other.logout_token(json!({}))),
    ]
}

#[test]
fn no_logout_token_but_the_right_one_ends_anything() {
    let house = start();
    let (mut person, _) = through(&house, "up");
    for (case, token) in bad_logout_tokens(&house) {
        let answer = tell(&house, "up", &token);
        answer.assert_status_for(case, 400);
        assert_eq!(answer.json()["error"], "invalid_request", "{case}");
        assert!(house.is_signed_in(&mut person), "{case}");
    }
    // Said twice, it ends nothing that began since.
    let token = house.up.logout_token(json!({}));
    assert_eq!(tell(&house, "up", &token).status, 200);
    assert!(!house.is_signed_in(&mut person));
    let_a_moment_pass();
    let (mut again, _) = through(&house, "up");
    assert_eq!(tell(&house, "up", &token).status, 400);
    assert!(house.is_signed_in(&mut again));
    // About somebody who is not here, there is nothing to do, and it is done.
    let about_another = house.up.logout_token(json!({"sub": "somebody-else"}));
    tell(&house, "up", &about_another).assert_status(200);
    assert!(house.is_signed_in(&mut again));
}

#[test]
fn who_sends_too_many_bad_ones_waits() {
    let settings = [("GATEPOST_LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE", "3")];
    let house = House::start_with(registered(), &json!({}), &settings);
    let (mut person, _) = through(&house, "up");
    for (provider, token) in [("up", "a.b.c"), ("nobody", "a.b.c"), ("up", "")] {
        assert_eq!(tell(&house, provider, token).status, 400);
    }
    let answer = tell(&house, "up", &house.up.logout_token(json!({})));
    answer.assert_status(429);
    assert_eq!(answer.json()["error"], "temporarily_unavailable");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait) && house.is_signed_in(&mut person));
    // Elsewhere nobody waits for it.
    let headers = [("X-Forwarded-For", "192.0.2.7")];
    let token = house.up.logout_token(json!({}));
    let form = [("logout_token", &*token)];
    let answer = house.gatepost.post("/external/up/logout", &headers, &form);
    answer.assert_status(200);
    assert!(!house.is_signed_in(&mut person));
}

#[test]
fn a_forged_kid_keeps_no_real_sign_in_from_new_keys() {
    let house = start();
    through(&house, "up");
    let forged = |kid: &str| {
        let claims = json!({
            "iss": house.up.issuer(), "aud": CLIENT_ID, "iat": now(), "exp": now() + 120, "sub": SUBJECT, "jti": kid,
            "events": {EVENT: {}}
        });
        let header = json!({"typ": "logout+jwt", "kid": kid});
        let token = house.up.logout_token_under(header, claims);
        tell(&house, "up", &token).status
    };
    let fetched = || house.up.received(Place::Jwks).len();
    let before = fetched();
    assert_eq!(forged("one"), 400);
    assert_eq!(forged("two"), 400);
    assert_eq!(forged("three"), 400);
    // Strangers make us look once a minute.
    assert_eq!(fetched(), before + 1);
    house.up.rotate(Signer::es256("second"));
    through(&house, "up");
    assert_eq!(fetched(), before + 2, "and a sign-in looks for itself,");
    let unknown = json!({"kid": "nobody's"});
    house.up.plan(|plan| plan.header = unknown);
    let path = authorize_path("conf1", RP1, &[("acr_values", "idp:up")]);
    for _ in 0..3 {
        let answer = Traveller::new().visit(&house.address(&path));
        assert_ne!(
            answer.header("location").map(|to| to.contains("code=")),
            Some(true),
            "{}",
            answer.text()
        );
    }
    assert_eq!(fetched(), before + 2, "once a minute as well");
}

#[test]
fn whoever_takes_over_a_providers_name_takes_over_none_of_its_sessions() {
    let house = start();
    let (mut person, id_token) = through(&house, "up");
    let is_alive = || left(&house).0 == 1;
    let renamed = |issuer: &str| {
        let mut document = registered();
        document["identity_providers"] = json!([house
            .up
            .registration("up", json!({"issuer": issuer, "sign_out": true}))]);
        house.gatepost.apply(&document);
    };
    renamed(house.other.issuer());
    // The same subject as another issuer counts them is somebody else.
    tell(&house, "up", &house.other.logout_token(json!({}))).assert_status(200);
    assert!(is_alive());
    tell(&house, "up", &house.up.logout_token(json!({}))).assert_status(400);
    assert!(is_alive());
    // Nor does the session count as one from there,
    assert!(!house.is_signed_in(&mut person));
    // nor does the new one hear who somebody is at the old one.
    let answer = end_session(&house, &mut person, &id_token, &[]);
    assert_eq!(answer.location(), done());
    assert!(!is_alive());
}

#[test]
fn a_strangers_token_fetches_nothing_and_learns_nothing() {
    let house = start();
    for place in [Place::Discovery, Place::Jwks] {
        house.up.fault(place, Fault::HangUp);
    }
    let theirs = house.other.logout_token(json!({}));
    let answers = ["up", "nobody"].map(|provider| {
        let answer = tell(&house, provider, &theirs);
        (answer.status, answer.body)
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!((answers[0].0, house.up.visits()), (400, 0));
    for body in "logout_token=%ff logout_token=a&logout_token=a token=a".split(' ') {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let post = |name: &str| {
            let path = format!("/external/{name}/logout");
            house
                .gatepost
                .send("POST", &path, &form, body.as_bytes())
                .body
        };
        assert_eq!(post("up"), post("nobody"), "{body}");
    }
}

#[test]
fn who_signed_out_there_while_they_were_on_their_way_does_not_come_in() {
    let house = start();
    let theirs = json!({"sid": "theirs"});
    house.up.plan(|plan| plan.id_token = theirs);
    let (_known, _) = through(&house, "up");
    let of_up = [("acr_values", "idp:up")];
    let sessions = || house.gatepost.database.count("sessions");
    for (claims, comes_in) in [
        (json!({"sub": null, "sid": "theirs"}), false),
        (json!({"sid": "theirs"}), false),
        (json!({}), false),
        (json!({"sub": null, "sid": "another"}), true),
        (json!({"sub": "another", "sid": "theirs"}), true),
        (json!({"sub": "another"}), true),
    ] {
        let mut person = Traveller::new();
        let callback = as_far_as_upstream(&house.gatepost, &mut person, &of_up);
        let_a_moment_pass();
        tell(&house, "up", &house.up.logout_token(claims.clone())).assert_status_for(&claims, 200);
        let before = sessions();
        let answer = person.get(&callback);
        let made = sessions() - before;
        assert_eq!(made, i64::from(comes_in), "{claims}: {}", answer.text());
        assert_eq!(house.is_signed_in(&mut person), comes_in, "{claims}");
        // Who leaves after that is another sign-in.
        let_a_moment_pass();
        let told = house.through(&mut Traveller::new(), "up");
        assert!(told.is_some(), "{claims}");
    }
}

/// Neither statement sees what the other is about to commit.
#[test]
fn who_comes_in_while_they_are_signed_out_there_is_signed_out_whichever_begins_first() {
    let house = start();
    through(&house, "up");
    let database = &house.gatepost.database;
    let of_up = [("acr_values", "idp:up")];
    let alive = "sessions WHERE ended_at IS NULL";
    let mut holder = database.client();
    let backend: i32 = holder
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);

    // The sign-in has begun, and waits for the row of its link.
    let mut first = Traveller::new();
    let callback = as_far_as_upstream(&house.gatepost, &mut first, &of_up);
    let_a_moment_pass();
    let token = house.up.logout_token(json!({}));
    let mut held = holder.transaction().unwrap();
    held.execute("SELECT FROM linked_identities FOR UPDATE", &[])
        .unwrap();
    let told = thread::scope(|scope| {
        let back = scope.spawn(|| first.get(&callback));
        await_that("the sign-in waits", SOON, || {
            let waiting = database.waiting_behind(backend);
            waiting.iter().any(|sql| sql.contains("FOR KEY SHARE"))
        });
        let told = scope.spawn(|| tell(&house, "up", &token));
        await_that("the token waits for it, or is answered", SOON, || {
            told.is_finished() || database.waiting_behind(backend).len() == 2
        });
        held.rollback().unwrap();
        back.join().unwrap();
        told.join().unwrap()
    });
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(database.count(alive), 0, "the sign-in began first");
    assert!(!house.is_signed_in(&mut first));

    // The token is being taken, and waits for the row of a session that it ends.
    let_a_moment_pass();
    through(&house, "up");
    let mut second = Traveller::new();
    let callback = as_far_as_upstream(&house.gatepost, &mut second, &of_up);
    let_a_moment_pass();
    let mut held = holder.transaction().unwrap();
    let locked = "SELECT FROM sessions WHERE ended_at IS NULL FOR UPDATE";
    held.execute(locked, &[]).unwrap();
    let token = house.up.logout_token(json!({}));
    let told = thread::scope(|scope| {
        let told = scope.spawn(|| tell(&house, "up", &token));
        await_that("the token waits", SOON, || {
            !database.waiting_behind(backend).is_empty()
        });
        second.get(&callback);
        held.rollback().unwrap();
        told.join().unwrap()
    });
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(database.count(alive), 0, "the token came first");
    assert!(!house.is_signed_in(&mut second));
}
