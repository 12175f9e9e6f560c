//! `/connect/endsession`: who is asked, who is sent where, and that nobody is sent anywhere else.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    access_token, authorize_path, damaged, decode_jwt, is_signed_in, sign_in, signed_in, text,
    tokens, userinfo, with_members,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::{base64url, forge, published_keys};
use crate::support::postgres::TestDatabase;
use crate::support::record::masked;
use crate::support::tables::rows_of;

const DONE: &str = "https://rp1.example/done?a=%20b";
const OTHERS_DONE: &str = "https://rp2.example/done";

fn registered() -> Value {
    let mut document = document();
    document["clients"][0]["post_logout_redirect_uris"] = json!([DONE, "https://rp1.example/bye"]);
    // Every hint of these tests has expired: that is no reason to refuse one.
    document["clients"][0]["id_token_lifetime"] = json!(1);
    document["clients"][1]["post_logout_redirect_uris"] = json!([OTHERS_DONE]);
    document
}

fn id_token(gatepost: &Gatepost, browser: &mut Browser) -> String {
    text(&tokens(gatepost, browser, "conf1", "openid"), "id_token").to_owned()
}

/// Where bob has signed in.
fn bob(gatepost: &Gatepost) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    browser
}

fn path(parameters: &[(&str, &str)]) -> String {
    let mut sent = parameters.to_vec();
    sent.retain(|(_, value)| !value.is_empty());
    format!("/connect/endsession?{}", encode(&sent))
}

fn confirm(browser: &mut Browser, page: &Answer, decision: &str) -> Answer {
    browser.submit(page, &[("decision", decision)])
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// At the registered address, with `state` and nothing else.
    Back,
    /// The page that asks, and what comes of agreeing.
    Asked(&'static Outcome),
    /// The page that says that it is done; with a link back, where somebody may take it.
    Done { link: bool },
    /// An error page.
    Refused(&'static str),
}

use Outcome::{Asked, Back, Done, Refused};

const DONE_ALONE: Outcome = Done { link: false };
const DONE_WITH_LINK: Outcome = Done { link: true };

fn done_with_state() -> String {
    format!("{DONE}&state=the%20state")
}

fn assert_outcome(browser: &mut Browser, answer: Answer, expected: Outcome, case: &str) {
    match expected {
        Back => assert_eq!(answer.location(), done_with_state(), "{case}"),
        Asked(then) => {
            answer.assert_leads_to_for(case, "/logout?r=");
            assert!(is_signed_in(browser), "{case}: asking signs nobody out");
            let page = browser.follow(answer);
            assert_eq!((page.status, page.header("refresh")), (200, None), "{case}");
            page.assert_says_for(case, "Sign out?");
            page.assert_says_for(case, "Alice Smith");
            let answer = confirm(browser, &page, "sign_out");
            assert_outcome(browser, answer, *then, case);
        }
        Done { link } => {
            answer.assert_stays_for(case, 200);
            assert_eq!(answer.header("refresh"), None, "{case}");
            answer.assert_says_for(case, "You are signed out");
            let leads = answer.attribute("a class=\"button\"", "href");
            assert_eq!(leads, link.then(done_with_state), "{case}");
            assert!(!masked(&answer.text()).contains("evil"), "{case}");
            answer.assert_says_not_for(case, "<iframe");
        }
        Refused(reason) => answer.assert_error_page(400, reason, case),
    }
}

/// By name, each an `id_token_hint` that somebody could send.
fn hints(gatepost: &Gatepost, browser: &mut Browser) -> BTreeMap<&'static str, String> {
    let own = id_token(gatepost, browser);
    let mut bobs = bob(gatepost);
    let (header, claims) = decode_jwt(&own);
    let kid = &header["kid"];
    let with = |changed: &str, value: &str| with_members(claims.clone(), &json!({changed: value}));
    let (signing_input, signature) = own.rsplit_once('.').unwrap();
    let own_signature = base64url(signature);
    let (first, rest) = own_signature.split_first().unwrap();
    let damaged = [&[first ^ 1], rest].concat();
    let no_alg = json!({"alg": "none", "kid": kid, "typ": "JWT"});
    let with_secret = json!({"alg": "HS256", "kid": kid, "typ": "JWT"});
    let modulus = text(&published_keys(gatepost)[0], "kid").to_owned();
    let unsigned = forge(&no_alg, &claims, |_| Vec::new());
    let of_mallory = with("sub", "mallory");
    let for_other = with("aud", "conf2");
    let kept = |_: &[u8]| own_signature.clone();
    let known = |_: &[u8]| modulus.clone().into_bytes();
    let damaged = |_: &[u8]| damaged.clone();
    let dotless = unsigned.trim_end_matches('.').to_owned();
    BTreeMap::from([
        ("bob's", id_token(gatepost, &mut bobs)),
        ("not a token", String::from("not-a-token")),
        ("unsigned, with a dot less", dotless),
        ("unsigned", unsigned),
        (
            "signed with what all know",
            forge(&with_secret, &claims, known),
        ),
        ("damaged signature", forge(&header, &claims, damaged)),
        ("another's signature", forge(&header, &of_mallory, kept)),
        ("another audience", forge(&header, &for_other, kept)),
        ("without signature", signing_input.to_owned()),
        ("an access token", access_token(gatepost, browser, "openid")),
        ("own", own),
    ])
}

#[test]
fn every_pairing_of_hint_client_address_and_session_leads_where_it_should() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let hints = hints(&gatepost, &mut browser);
    const AGREE_BACK: Outcome = Asked(&Back);
    const AGREE_DONE: Outcome = Asked(&DONE_ALONE);
    const ADDED: &str = "https://rp1.example/done?a=%20b&c=d";
    const SHORTER: &str = "https://rp1.example/done";
    const WITH_FRAGMENT: &str = "https://rp1.example/done?a=%20b#evil";
    // Hint, client_id, post_logout_redirect_uri, what comes of it with alice signed in, and with
    // nobody.
    let mut cases = vec![
        ("", "", "", AGREE_DONE, DONE_ALONE),
        ("", "", DONE, AGREE_DONE, DONE_ALONE),
        ("", "conf1", "", AGREE_DONE, DONE_ALONE),
        ("", "conf1", DONE, AGREE_BACK, DONE_WITH_LINK),
        ("", "conf1", ADDED, AGREE_DONE, DONE_ALONE),
        ("", "conf1", "https://evil.example/", AGREE_DONE, DONE_ALONE),
        ("", "conf1", OTHERS_DONE, AGREE_DONE, DONE_ALONE),
        ("", "conf2", DONE, AGREE_DONE, DONE_ALONE),
        ("", "nobody", DONE, Refused("GP1102"), Refused("GP1102")),
        ("own", "", DONE, Back, Back),
        ("own", "conf1", DONE, Back, Back),
        ("own", "conf2", DONE, Refused("GP1160"), Refused("GP1160")),
        ("own", "nobody", DONE, Refused("GP1160"), Refused("GP1160")),
        ("own", "", "", DONE_ALONE, DONE_ALONE),
        ("own", "", ADDED, DONE_ALONE, DONE_ALONE),
        ("own", "", OTHERS_DONE, DONE_ALONE, DONE_ALONE),
        ("own", "", SHORTER, DONE_ALONE, DONE_ALONE),
        ("own", "", RP1, DONE_ALONE, DONE_ALONE),
        ("own", "", "//evil.example/", DONE_ALONE, DONE_ALONE),
        ("own", "", "javascript:alert(1)", DONE_ALONE, DONE_ALONE),
        ("own", "", WITH_FRAGMENT, DONE_ALONE, DONE_ALONE),
        ("bob's", "", DONE, AGREE_BACK, Back),
        ("bob's", "conf1", ADDED, AGREE_DONE, DONE_ALONE),
    ];
    let forged = hints.keys().filter(|name| !["own", "bob's"].contains(name));
    cases.extend(forged.map(|name| (*name, "conf1", DONE, Refused("GP1128"), Refused("GP1128"))));
    sleep(Duration::from_millis(1_100));
    for (hint, client_id, uri, signed_in_outcome, outcome) in cases {
        let sent = path(&[
            ("id_token_hint", hints.get(hint).map_or("", String::as_str)),
            ("client_id", client_id),
            ("post_logout_redirect_uri", uri),
            ("state", "the state"),
        ]);
        let case = format!("{hint:?} {client_id} {uri}");
        let mut nobody = gatepost.browser();
        let answer = nobody.get(&sent);
        assert_outcome(&mut nobody, answer, outcome, &format!("nobody, {case}"));
        let mut alice = signed_in(&gatepost);
        let answer = alice.get(&sent);
        assert_outcome(&mut alice, answer, signed_in_outcome, &case);
        let stays = matches!(signed_in_outcome, Refused(_));
        assert_eq!(is_signed_in(&mut alice), stays, "{case}");
    }
    // Where nobody was signed in, the session of the hint ended; with somebody, theirs alone.
    assert!(!is_signed_in(&mut browser));
}

#[test]
fn the_hint_of_another_session_of_the_same_person_ends_the_one_that_is_there() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let hint = id_token(&gatepost, &mut browser);
    let used = access_token(&gatepost, &mut browser, "openid");
    let mut elsewhere = signed_in(&gatepost);
    let ended = elsewhere.get(&path(&[("id_token_hint", &hint)]));
    assert_outcome(&mut elsewhere, ended, DONE_ALONE, "another session of hers");
    assert!(!is_signed_in(&mut elsewhere) && is_signed_in(&mut browser));
    let ended = browser.get(&path(&[("id_token_hint", &hint)]));
    assert_outcome(&mut browser, ended, DONE_ALONE, "the session of the hint");
    assert_eq!(userinfo(&gatepost, &used).status, 401);
}

/// How many sessions have ended, with who asked for it and the session, of each event that tells
/// so.
fn ended(gatepost: &Gatepost) -> (i64, Vec<Value>) {
    let events = gatepost.events("signed_out");
    let mut told = Vec::new();
    for event in events {
        told.push(json!([event["client_id"], event["sid"], event["detail"]]));
    }
    let ended = "sessions WHERE ended_at IS NOT NULL";
    (gatepost.database.count(ended), told)
}

#[test]
fn a_client_that_sends_no_browser_ends_the_session_of_its_id_token_and_no_other() {
    let mut registered = registered();
    registered["clients"][0]["frontchannel_logout_uri"] = json!("https://rp1.example/out");
    let gatepost = Gatepost::start_with(&registered, &[]);
    let (mut browser, mut elsewhere) = (signed_in(&gatepost), signed_in(&gatepost));
    let hint = id_token(&gatepost, &mut browser);
    let used = access_token(&gatepost, &mut browser, "openid");
    let sent = path(&[("id_token_hint", &hint), ("client_id", "conf1")]);
    // A request of a browser may be such a post, without its cookies: only what follows it can
    // tell.
    let posted = gatepost.post("/connect/endsession", &[], &[("id_token_hint", &hint)]);
    let onward = posted.location();
    for (path, status) in [(onward, 204), (&sent, 405)] {
        gatepost.send("HEAD", path, &[], b"").assert_status(status);
    }
    assert_eq!(ended(&gatepost), (0, vec![]), "a look ahead, and a post");
    assert!(is_signed_in(&mut browser));

    for _ in 0..2 {
        let answer = gatepost.get(&sent);
        let mut nobody = gatepost.browser();
        let case = "the page without any frame";
        assert_outcome(&mut nobody, answer, DONE_ALONE, case);
    }
    // Hers, and not what she has elsewhere.
    assert!(!is_signed_in(&mut browser) && is_signed_in(&mut elsewhere));
    assert_eq!(userinfo(&gatepost, &used).status, 401);
    let sid = decode_jwt(&hint).1["sid"].clone();
    let told = json!(["conf1", sid, {"by": "id_token_hint"}]);
    assert_eq!(ended(&gatepost), (1, vec![told]));

    // Whoever follows the redirect of a post, and whoever wants to go back, gets there.
    let hint = id_token(&gatepost, &mut elsewhere);
    let form = [
        ("id_token_hint", hint.as_str()),
        ("post_logout_redirect_uri", DONE),
        ("state", "s"),
    ];
    let posted = gatepost.post("/connect/endsession", &[], &form);
    let answer = gatepost.get(posted.location());
    assert_eq!(answer.location(), format!("{DONE}&state=s"));
    assert!(!is_signed_in(&mut elsewhere));
    assert_eq!(ended(&gatepost).0, 2);
}

#[test]
fn without_a_browser_nothing_ends_but_what_a_good_hint_names() {
    let mut registered = registered();
    let direct = json!({
        "client_id": "direct", "grant_types": ["password"], "response_types": [], "redirect_uris": [],
        "scope": "openid", "secrets": [{"value": CONF1_SECRET}]
    });
    registered["clients"].as_array_mut().unwrap().push(direct);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let nothing_ends = |hint: &str, further: &[(&str, &str)], expected: Outcome, case: &str| {
        let answer = gatepost.get(&path(&[&[("id_token_hint", hint)], further].concat()));
        assert_outcome(&mut gatepost.browser(), answer, expected, case);
        assert_eq!(ended(&gatepost), (0, vec![]), "{case}");
    };
    let mut hints = hints(&gatepost, &mut browser);
    let own = hints.remove("own").unwrap();
    hints.remove("bob's");
    for (name, hint) in &hints {
        nothing_ends(hint, &[], Refused("GP1128"), name);
    }
    let other = [("client_id", "conf2")];
    nothing_ends(&own, &other, Refused("GP1160"), "another client's hint");

    // An ID token that names no session: its user has some.
    let form = [
        ("grant_type", "password"),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
        ("scope", "openid"),
    ];
    let tokens = gatepost.token("direct", &form).json();
    let without_sid = text(&tokens, "id_token");
    assert_eq!(decode_jwt(without_sid).1.get("sid"), None);
    nothing_ends(without_sid, &[], DONE_ALONE, "a subject alone");

    let sid = decode_jwt(&own).1["sid"].as_str().unwrap().to_owned();
    let of_session = |change: &str| format!("UPDATE sessions SET {change} WHERE sid = '{sid}'");
    let of_user = |change: &str| format!("UPDATE users SET {change} WHERE username = 'alice'");
    let given_to = |username: &str| {
        let sub = format!("(SELECT sub FROM users WHERE username = '{username}')");
        of_session(&format!("sub = {sub}"))
    };
    let year =
        |sign: &str| of_session(&format!("expires_at = expires_at {sign} interval '1 year'"));
    let known_again = format!("UPDATE sessions SET sid = '{sid}' WHERE sid = '{sid}x'");
    let back = "UPDATE users SET sub = s.sub FROM sessions s WHERE users.sub = 'gone'";
    let back = format!("{back} AND s.sid = '{sid}'");
    for (case, end, undo) in [
        (
            "an unknown sid",
            of_session("sid = sid || 'x'"),
            known_again,
        ),
        ("a removed user", of_user("sub = 'gone'"), back),
        (
            "a disabled user",
            of_user("enabled = false"),
            of_user("enabled = true"),
        ),
        ("bob's session", given_to("bob"), given_to("alice")),
        ("a session that ran out", year("-"), year("+")),
    ] {
        gatepost.database.run(&end);
        nothing_ends(&own, &[], DONE_ALONE, case);
        gatepost.database.run(&undo);
    }
    let mut document = self::registered();
    document["clients"][0]["enabled"] = json!(false);
    gatepost.apply(&document);
    nothing_ends(&own, &[], Refused("GP1103"), "a disabled client");
    gatepost.apply(&self::registered());
    // All of it undone, it ends: so each of these kept it alive.
    gatepost.get(&path(&[("id_token_hint", &own)]));
    assert_eq!(ended(&gatepost).0, 1);
}

#[test]
fn somebody_elses_hint_ends_nothing_of_theirs_where_a_person_is_signed_in() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let (mut alice, mut bob) = (signed_in(&gatepost), bob(&gatepost));
    let answer = alice.get(&path(&[("id_token_hint", &id_token(&gatepost, &mut bob))]));
    assert_outcome(&mut alice, answer, Asked(&DONE_ALONE), "bob's hint");
    assert!(is_signed_in(&mut bob) && !is_signed_in(&mut alice));
}

#[test]
fn state_comes_back_byte_for_byte_and_alone() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let hint = id_token(&gatepost, &mut browser);
    let back = |state: &str| {
        let sent = [
            ("id_token_hint", hint.as_str()),
            ("post_logout_redirect_uri", "https://rp1.example/bye"),
            ("state", state),
        ];
        gatepost.get(&path(&sent))
    };
    assert_eq!(back("").location(), "https://rp1.example/bye");
    let long = "~".repeat(4_096);
    let all = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \u{e9}\u{1f600}\u{202e}\r\nSet-Cookie: a=b&post_logout_redirect_uri=https://evil.example/";
    for state in [all, "{\"a\":\"b&c=d\"}", "%2e%00", " ", long.as_str()] {
        let answer = back(state);
        answer.assert_leads_to("https://rp1.example/bye?");
        let sent = BTreeMap::from([(String::from("state"), state.to_owned())]);
        assert_eq!(answer.query(), sent);
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\+{}".contains(&byte);
        assert!(answer.location().bytes().all(plain));
    }
    back(&"~".repeat(4_097)).assert_error_page(400, "GP1003", "a character too many");
    let long = "\u{20ac}".repeat(4_096);
    let posted = gatepost.post("/connect/endsession", &[], &[("state", &long)]);
    posted.assert_error_page(400, "GP1129", "too long for an address");
}

#[test]
fn a_post_from_elsewhere_is_taken_in_and_answered_where_the_cookie_is() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let hint = id_token(&gatepost, &mut browser);
    let form = [
        ("id_token_hint", hint.as_str()),
        ("post_logout_redirect_uri", DONE),
        ("state", "s"),
    ];
    let foreign = [
        ("Origin", "https://rp1.example"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    // Lax cookies stay away from such a post, and nothing in the query counts.
    let query = "client_id=conf2&state=x&state=y";
    let answer = gatepost.post(&format!("/connect/endsession?{query}"), &foreign, &form);
    let (page, secret) = answer.location().split_once("?r=").unwrap();
    assert_eq!(page, "/logout");
    assert!(!secret.contains(&hint[..20]) && answer.headers_named("set-cookie").is_empty());
    let address = answer.location().to_owned();
    // Even with the cookie there, the post itself ends nothing.
    browser.post_from("/connect/endsession", &foreign, &form);
    assert!(is_signed_in(&mut browser));
    // To look ahead ends nothing either.
    let cookie = browser.cookie_header();
    let head = gatepost.send("HEAD", &address, &[("Cookie", &cookie)], b"");
    head.assert_stays(204);
    assert!(is_signed_in(&mut browser));
    assert_eq!(browser.get(&address).location(), format!("{DONE}&state=s"));
    assert!(!is_signed_in(&mut browser));
    // Nobody there, and the hint is genuine.
    assert_eq!(browser.get(&address).location(), format!("{DONE}&state=s"));
    let head = gatepost.send("HEAD", &address, &[], b"");
    head.assert_stays(204);

    for content_type in ["text/plain", "application/json", "multipart/form-data"] {
        let headers = [("Content-Type", content_type)];
        let answer = gatepost.send("POST", "/connect/endsession", &headers, b"state=s");
        answer.assert_error_page(415, "GP1005", content_type);
    }
    for method in ["HEAD", "PUT", "DELETE", "OPTIONS"] {
        let answer = gatepost.send(method, "/connect/endsession", &[], b"");
        answer.assert_status_for(method, 405);
        answer.assert_header_for(method, "allow", "GET, POST");
    }
    let shared = gatepost.send("GET", "/connect/endsession", &foreign[..1], b"");
    assert_eq!(shared.header("access-control-allow-origin"), None);
}

#[test]
fn what_is_malformed_is_refused_before_anybody_is_asked() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let long = |name: &str, length| format!("{name}={}", "a".repeat(length));
    let address = long("post_logout_redirect_uri=https://rp1.example/?x", 2_000);
    for (query, reason) in [
        ("state=%ff", "GP1001"),
        ("state=%00", "GP1001"),
        ("post_logout_redirect_uri=%zz", "GP1001"),
        ("state=a&state=a", "GP1002"),
        ("id_token_hint=&id_token_hint=a", "GP1002"),
        ("client_id=conf1&client_id=conf1", "GP1002"),
        (&long("client_id", 201), "GP1003"),
        (&address, "GP1003"),
        (&long("id_token_hint", 16_385), "GP1003"),
        (&long("logout_hint", 301), "GP1003"),
        (&long("ui_locales", 301), "GP1003"),
    ] {
        let answer = browser.get(&format!("/connect/endsession?{query}"));
        answer.assert_error_page(400, reason, query);
    }
    assert!(is_signed_in(&mut browser));
    // Unknown parameters, and hints at whom to sign out, are nobody's problem.
    let odd = "x=1&x=2&logout_hint=bob&ui_locales=xx%20de&post_logout_redirect_uri=";
    let page = browser.visit(&format!("/connect/endsession?{odd}"));
    page.assert_says_each("Abmelden? | lang=\"de\"");
}

#[test]
fn only_the_form_that_was_drawn_for_this_wish_and_this_session_signs_out() {
    let mut gatepost = Gatepost::prepare_over(TestDatabase::with_a_clock_of_its_own(), &[]);
    gatepost.apply(&registered());
    gatepost.serve();
    let mut browser = signed_in(&gatepost);
    let ask = |browser: &mut Browser, state: &str| {
        let sent = [
            ("client_id", "conf1"),
            ("post_logout_redirect_uri", DONE),
            ("state", state),
        ];
        browser.visit(&path(&sent))
    };
    let page = ask(&mut browser, "one");
    page.assert_says("First shop");
    assert!(page.action().starts_with("/logout?r="), "{}", page.text());
    let other = ask(&mut browser, "two").form_token();
    let plain = browser.get("/logout").form_token();
    for wrong in [other, plain, String::new(), String::from("x")] {
        let form = [("form_token", &*wrong), ("decision", "sign_out")];
        let answer = browser.post(&page.action(), &form);
        answer.assert_says("changed while");
        assert!(is_signed_in(&mut browser), "{}", answer.text());
    }
    assert_eq!(confirm(&mut browser, &page, "stay").location(), "/");
    confirm(&mut browser, &page, "SIGN_OUT").assert_error_page(400, "GP1505", "decision");
    let token = page.form_token();
    let foreign = [("Origin", "https://rp1.example")];
    let form = [("form_token", token.as_str()), ("decision", "sign_out")];
    let answer = browser.post_from(&page.action(), &foreign, &form);
    answer.assert_error_page(403, "GP1009", "origin");
    assert!(is_signed_in(&mut browser));

    // One kind of sealed request is not another, none can be made up, and none lasts.
    let secret_of = |address: &str| address.split_once("?r=").unwrap().1.to_owned();
    let sealed = secret_of(&page.action());
    let login = gatepost.get(&authorize_path("conf1", RP1, &[]));
    for (path, case) in [
        (format!("/login?r={sealed}"), "to sign in"),
        (
            format!("/logout?r={}", secret_of(login.location())),
            "to sign out",
        ),
        (format!("/logout?r={}", damaged(&sealed)), "damaged"),
        (
            String::from("/logout?r=https://evil.example/"),
            "an address",
        ),
    ] {
        let answer = gatepost.get(&path);
        answer.assert_error_page(400, "GP1504", case);
    }
    gatepost.travel(3_601);
    confirm(&mut browser, &page, "sign_out").assert_error_page(400, "GP1503", "late");
    assert!(is_signed_in(&mut browser));
}

#[test]
fn a_hint_counts_for_as_long_as_its_key_is_kept_and_its_client_is_there() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let hint = id_token(&gatepost, &mut browser);
    let sent = path(&[("id_token_hint", &hint), ("post_logout_redirect_uri", DONE)]);
    let kid = decode_jwt(&hint).0["kid"].as_str().unwrap().to_owned();
    let shift = |columns: &str| {
        gatepost.database.run(&format!(
            "UPDATE signing_keys SET {columns} WHERE kid = '{kid}';
             UPDATE installation SET registry_version = registry_version + 1"
        ));
        gatepost.settle();
    };
    gatepost.run_well(&["key", "rotate", "--now"], "");
    shift(
        "wrapped_private = NULL, announced_at = now() - interval '9 days', activates_at = now() - interval '8 days',
         retires_at = now() - interval '7 days', unpublished_at = now() - interval '6 days'",
    );
    let mut keys = published_keys(&gatepost).into_iter();
    assert!(keys.all(|key| key["kid"] != kid.as_str()));
    assert_eq!(gatepost.get(&sent).location(), DONE);
    shift("forgotten_at = now() - interval '5 days'");
    let forgotten = gatepost.get(&sent);
    forgotten.assert_error_page(400, "GP1128", "forgotten");

    let mut browser = signed_in(&gatepost);
    let hint = id_token(&gatepost, &mut browser);
    let sent = path(&[("id_token_hint", &hint), ("post_logout_redirect_uri", DONE)]);
    let mut document = registered();
    document["clients"][0]["post_logout_redirect_uris"] = json!(["https://rp1.example/elsewhere"]);
    gatepost.apply(&document);
    gatepost.get(&sent).assert_stays(200);
    gatepost.log().assert_says("reason=\"GP1161\"");
    document["clients"][0]["enabled"] = json!(false);
    gatepost.apply(&document);
    let disabled = gatepost.get(&sent);
    disabled.assert_error_page(400, "GP1103", "disabled");
}

#[test]
fn discovery_names_the_way_out() {
    let gatepost = Gatepost::shared();
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    let endpoint = format!("{}/connect/endsession", gatepost.base_url);
    assert_eq!(metadata["end_session_endpoint"], endpoint);
    let flags = "frontchannel_logout frontchannel_logout_session backchannel_logout
                 backchannel_logout_session";
    for flag in flags.split_whitespace() {
        assert_eq!(metadata[format!("{flag}_supported")], json!(true), "{flag}");
    }
}

#[test]
fn who_stays_signed_in_goes_on_in_the_language_they_were_asked_in() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for [asked, heading, home] in rows_of(
        "
        /connect/endsession?ui_locales=xx%20de | Abmelden?       | /?ui_locales=de
        /logout?ui_locales=fr-CA               | Se déconnecter\u{202f}? | /?ui_locales=fr
        /logout                                | Sign out?       | /
        /logout?ui_locales=xx                  | Sign out?       | /
    ",
    ) {
        let page = browser.visit(asked);
        page.assert_says_for(asked, heading);
        let answer = confirm(&mut browser, &page, "stay");
        assert_eq!((answer.status, answer.location()), (303, home), "{asked}");
        let start = browser.follow(answer);
        let account = start.attribute("href=\"/account", "href").unwrap();
        let account = browser.get(&account);
        let language = |page: &Answer| page.attribute("html lang", "lang").unwrap();
        assert_eq!(language(&start), language(&page), "{asked}");
        assert_eq!(language(&account), language(&page), "{asked}");
    }
    assert!(is_signed_in(&mut browser));
}
