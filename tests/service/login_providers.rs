//! Identity providers on the way in: which of them a request offers, when it goes straight to one,
//! and what happens when one cannot be reached. What comes back from there: `federation.rs` and its
//! neighbours.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::device::{DEVICE_CODE, enter, start, user_code};
use crate::support::flow::{
    code, decode_jwt, redeem, request_of, sign_in, signed_in, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser, free_port};
use crate::support::signer::now;
use crate::support::tables::rows_of;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Place, Plan, Upstream};
use crate::support::waiting::SOON;

const ALLOWED: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");
/// Names and display names of every provider, those of hidden ones among them.
const NAMES: [&str; 10] = [
    "corp",
    "Corporate",
    "hub-1",
    "Zebra hub",
    "acme-ad",
    "ACME directory",
    "former",
    "Former one",
    "away",
    "Far away",
];
/// What the page says when a provider cannot be reached.
const UNAVAILABLE: &str = "the other service is not available at the moment";

/// Clients by what they allow, and five providers: two for everybody, one of a tenant, one
/// disabled, one that is away.
fn registered(upstream: &Upstream) -> Value {
    let allowing = |names: &[&str]| json!({"identity_providers": names});
    let mut registered = with_clients(
        document(),
        &[
            ("local-only", allowing(&["local"])),
            ("corp-only", allowing(&["corp"])),
            ("two", allowing(&["hub-1", "corp"])),
            ("former-only", allowing(&["former"])),
            ("former-or-local", allowing(&["former", "local"])),
            ("away-only", allowing(&["away"])),
            ("away-or-local", allowing(&["away", "local"])),
            (
                "acme-only",
                json!({"identity_providers": ["acme-ad", "local"], "tenants": ["acme"]}),
            ),
            (
                "asking",
                json!({"identity_providers": ["corp"], "require_consent": true}),
            ),
        ],
    );
    let tv = json!({
        "client_id": "tv", "client_name": "Television", "grant_types": [DEVICE_CODE], "response_types": [], "redirect_uris": [],
        "scope": "openid profile", "token_endpoint_auth_method": "none", "identity_providers": ["local", "corp"]
    });
    let mut clients = vec![tv.clone(), tv.clone(), tv];
    for (client, client_id) in clients.iter_mut().zip(["tv", "corp-tv", "strict-tv"]) {
        client["client_id"] = json!(client_id);
        if client_id != "tv" {
            client["identity_providers"] = json!(["corp"]);
        }
    }
    clients[2]["default_max_age"] = json!(60);
    registered["clients"]
        .as_array_mut()
        .unwrap()
        .extend(clients);
    registered["tenants"] =
        json!([{"name": "acme", "display_name": "ACME Ltd"}, {"name": "globex"}]);
    let of_acme = json!({"username": "alice", "password": BOB_PASSWORD, "tenant": "acme"});
    registered["users"].as_array_mut().unwrap().push(of_acme);
    registered["identity_providers"] = json!([
        upstream.registration("corp", json!({"display_name": "Corporate"})),
        upstream.oauth_registration("hub-1", json!({"display_name": "Zebra hub"})),
        upstream.registration("acme-ad", json!({"display_name": "ACME directory", "tenant": "acme"})),
        upstream.registration("former", json!({"display_name": "Former one", "enabled": false})),
        upstream.registration(
            "away",
            json!({"display_name": "Far away", "issuer": format!("http://127.0.0.1:{}", free_port())})
        ),
    ]);
    registered
}

fn serving() -> (Gatepost, Upstream) {
    let upstream = Upstream::start();
    let gatepost = Gatepost::start_with(&registered(&upstream), &[ALLOWED]);
    (gatepost, upstream)
}

/// What the page offers, in its order: `local` for the password form.
fn offered(page: &Answer) -> Vec<String> {
    page.assert_stays(200);
    let text = page.text();
    let has_form = text.contains("name=\"password\"");
    let form = has_form.then_some("local").into_iter();
    let buttons = text.split("name=\"identity_provider\" value=\"").skip(1);
    let buttons = buttons.map(|rest| rest.split_once('"').unwrap().0);
    form.chain(buttons).map(str::to_owned).collect()
}

/// Asserts that nothing in the answer names a provider but these.
fn names_only(answer: &Answer, shown: &[&str], what: &str) {
    let whole = format!("{:?}{}", answer.headers, answer.text());
    for name in NAMES {
        let may = shown.contains(&name);
        let tells = whole.contains(name);
        assert!(may || !tells, "{what} tells of {name}: {whole}");
    }
}

/// The names of these providers, and what they are called on a page.
fn shown_as(ways: &str) -> Vec<&str> {
    let called = |name| match name {
        "corp" => "Corporate",
        "hub-1" => "Zebra hub",
        "away" => "Far away",
        "acme-ad" => "ACME directory",
        other => other,
    };
    let ways = ways.split(' ').filter(|name| *name != "local");
    ways.flat_map(|name| [name, called(name)]).collect()
}

/// Presses the button of a provider.
fn press(browser: &mut Browser, page: &Answer, provider: &str) -> Answer {
    browser.submit(page, &[("identity_provider", provider)])
}

/// Asserts that an answer sends the browser upstream, and gives it the flow's cookie; what is asked
/// there.
fn goes_upstream(answer: &Answer, upstream: &Upstream, what: &str) -> BTreeMap<String, String> {
    let endpoint = format!("{}?", upstream.url(Place::Authorize));
    let location = answer
        .header("location")
        .unwrap_or_else(|| panic!("{what}: {} {}", answer.status, answer.text()));
    assert!(location.starts_with(&endpoint), "{what}: {location}");
    assert_eq!((answer.status, answer.body.len()), (303, 0), "{what}");
    let cookies = answer.headers_named("set-cookie");
    let has_flow = cookies.iter().any(|cookie| cookie.contains("flow-"));
    assert!(has_flow, "{what}: {cookies:?}");
    answer.query()
}

fn is_shown_with_a_problem(page: &Answer, sentence: &str, ways: &[&str], what: &str) {
    page.assert_says_for(what, "role=\"alert\"");
    assert!(page.text().contains(sentence), "{what}: {}", page.text());
    assert_eq!(offered(page), ways, "{what}");
}

#[test]
fn the_page_offers_what_the_request_allows_and_names_nothing_else() {
    let (gatepost, upstream) = serving();
    // What a request names and cannot have is dropped: the last four.
    for [client_id, acr_values, ways] in rows_of(
        "
        conf1           |             | local corp away hub-1
        conf1           | idp:local   | local
        conf1           | tenant:acme | local acme-ad corp away hub-1
        two             |             | corp hub-1
        local-only      |             | local
        former-or-local |             | local
        acme-only       |             | local acme-ad
        local-only      | idp:corp    | local
        former-or-local | idp:former  | local
        local-only      | idp:nowhere | local
        two             | idp:acme-ad | corp hub-1
        ",
    ) {
        let mut browser = gatepost.browser();
        let what = format!("{client_id} {acr_values}");
        let page = browser.visit(&request_of(client_id, &[("acr_values", acr_values)]));
        assert_eq!(offered(&page).join(" "), ways, "{what}");
        names_only(&page, &shown_as(ways), &what);
        page.assert_says_not_for(&what, "Sign in with <strong><bdi></bdi>");
    }
    let languages = [
        ("de", "Mit "),
        ("pl", "Zaloguj się przez "),
        ("ja", " でログイン"),
    ];
    for (language, words) in languages {
        let path = request_of("two", &[("ui_locales", language)]);
        let page = gatepost.browser().visit(&path);
        page.assert_says_for(language, words);
        page.assert_says_for(language, "<bdi>Corporate</bdi>");
    }
    let account = gatepost.browser().visit("/account");
    assert_eq!(offered(&account).join(" "), "local corp away hub-1");
    names_only(&account, &shown_as("corp away hub-1"), "account");
    let account = gatepost.browser().visit("/account?tenant=acme");
    assert_eq!(offered(&account).join(" "), "local acme-ad corp away hub-1");
    assert_eq!(upstream.visits(), 0, "nobody was asked for a page");
}

#[test]
fn a_provider_that_the_request_names_or_that_is_the_only_one_is_gone_to_at_once() {
    let (gatepost, upstream) = serving();
    let wishes = [
        ("prompt", "login"),
        ("max_age", "60"),
        ("login_hint", "alice@example.com"),
        ("ui_locales", "fr de"),
    ];
    for (client_id, acr_values, callback) in [
        ("conf1", "idp:corp", "corp"),
        ("two", "idp:hub-1", "hub-1"),
        ("corp-only", "", "corp"),
        ("acme-only", "idp:acme-ad", "acme-ad"),
    ] {
        let changes = [&[("acr_values", acr_values)], &wishes[..]].concat();
        let asked = request_of(client_id, &changes);
        let answer = gatepost.browser().get(&asked);
        let upstreams = goes_upstream(&answer, &upstream, client_id);
        let callback = format!("{}/external/{callback}/callback", gatepost.base_url);
        assert_eq!(upstreams["redirect_uri"], callback);
        assert_eq!(upstreams["client_id"].as_str(), CLIENT_ID);
        assert_eq!(upstreams["response_type"].as_str(), "code");
        assert_eq!(upstreams["code_challenge_method"], "S256");
        for (name, value) in wishes {
            let sent = upstreams.get(name).map(String::as_str);
            assert_eq!(sent, Some(value), "{client_id} {name}");
        }
        // Posted from elsewhere, the request comes without cookies: they are looked at on a page of
        // ours.
        let (_, query) = asked.split_once('?').unwrap();
        let origin = [("Origin", "https://rp1.example")];
        let mut browser = gatepost.browser();
        let mut elsewhere = gatepost.connect();
        let answer = elsewhere.post_raw("/connect/authorize", &origin, query.as_bytes());
        answer.assert_leads_to("/login?r=");
        let posted = browser.get(answer.location());
        let again = goes_upstream(&posted, &upstream, client_id);
        for name in ["state", "code_challenge"] {
            assert_ne!(again[name], upstreams[name], "{name}");
        }
        // To ask where an address leads is not to go there.
        let head = gatepost.send("HEAD", answer.location(), &[], b"");
        assert_eq!((head.status, head.header("location")), (204, None));
        assert_eq!(head.headers_named("set-cookie").len(), 0);
    }
    let plain = gatepost.browser().get(&request_of("corp-only", &[]));
    let upstreams = goes_upstream(&plain, &upstream, "plain");
    for unasked in ["prompt", "max_age", "login_hint"] {
        assert_eq!(upstreams.get(unasked), None, "{upstreams:?}");
    }
    assert_eq!(upstreams["nonce"].len(), 22);
}

#[test]
fn with_prompt_none_nobody_is_sent_anywhere() {
    let (gatepost, upstream) = serving();
    let mut browser = gatepost.browser();
    for (client_id, acr_values) in [
        ("conf1", "idp:corp"),
        ("corp-only", ""),
        ("two", ""),
        ("former-only", ""),
        ("away-only", ""),
        ("conf1", "idp:away"),
    ] {
        for asked in [&mut browser, &mut signed_in(&gatepost)] {
            let answer = asked.get(&request_of(
                client_id,
                &[("acr_values", acr_values), ("prompt", "none")],
            ));
            assert_eq!(
                answer.query()["error"],
                "login_required",
                "{client_id} {acr_values}"
            );
            assert!(
                !answer
                    .headers_named("set-cookie")
                    .iter()
                    .any(|cookie| cookie.contains("flow-"))
            );
        }
    }
    assert_eq!(upstream.visits(), 0);
}

#[test]
fn a_session_counts_where_its_provider_does() {
    let (gatepost, upstream) = serving();
    let of = |browser: &mut Browser, provider: &str| {
        gatepost.database.run(&format!(
            "UPDATE sessions SET identity_provider = '{provider}'"
        ));
        browser
            .get(&request_of("conf1", &[("prompt", "none")]))
            .query()
    };
    let mut browser = signed_in(&gatepost);
    // One of the password login: not for a client that does not allow it, nor where another one is
    // named.
    goes_upstream(
        &browser.get(&request_of("corp-only", &[])),
        &upstream,
        "corp-only",
    );
    goes_upstream(
        &browser.get(&request_of("conf1", &[("acr_values", "idp:corp")])),
        &upstream,
        "idp:corp",
    );
    assert_eq!(
        offered(&browser.visit(&request_of("two", &[]))),
        ["corp", "hub-1"]
    );
    code(&mut browser, &request_of("local-only", &[]));

    assert!(of(&mut browser, "corp").contains_key("code"));
    for (client_id, acr_values) in [("corp-only", ""), ("conf1", "idp:corp"), ("two", "")] {
        code(
            &mut browser,
            &request_of(client_id, &[("acr_values", acr_values)]),
        );
    }
    assert_eq!(
        offered(&browser.visit(&request_of("local-only", &[]))),
        ["local"]
    );
    assert_eq!(
        offered(&browser.visit(&request_of("conf1", &[("acr_values", "idp:local")]))),
        ["local"]
    );
    goes_upstream(
        &browser.get(&request_of("two", &[("acr_values", "idp:hub-1")])),
        &upstream,
        "idp:hub-1",
    );
    assert_eq!(browser.visit("/account").status, 200);
    assert!(browser.visit("/account").text().contains("Alice Smith"));

    // Switched off, gone, or come to be of a tenant since: whoever they vouched for signs in anew.
    for provider in ["former", "nowhere", "acme-ad"] {
        assert_eq!(
            of(&mut browser, provider)["error"],
            "login_required",
            "{provider}"
        );
        assert_eq!(
            offered(&browser.visit(&request_of("former-or-local", &[]))),
            ["local"],
            "{provider}"
        );
        let account = browser.visit("/account");
        assert!(
            offered(&account).contains(&String::from("local")),
            "{provider}"
        );
        assert!(!account.text().contains(provider), "{provider}");
    }
    let page = browser.visit(&request_of("former-or-local", &[]));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(answer.query().contains_key("code"), "{}", answer.location());
    gatepost.database.assert_count(
        "sessions WHERE identity_provider = 'local' AND ended_at IS NULL",
        1,
    );
}

#[test]
fn a_client_without_the_password_login_shows_no_form_and_takes_no_password() {
    let (gatepost, _upstream) = serving();
    let mut browser = gatepost.browser();
    let page = browser.visit(&request_of("two", &[]));
    assert_eq!(offered(&page), ["corp", "hub-1"]);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    answer.assert_error_page(400, "GP1505", "a password");
    assert!(
        !answer
            .headers_named("set-cookie")
            .iter()
            .any(|cookie| cookie.contains("session"))
    );
    // There is no way in at all where all that a client allows is switched off.
    for browser in [&mut browser, &mut signed_in(&gatepost)] {
        let refused = browser.visit(&request_of("former-only", &[]));
        assert_eq!(refused.query()["error"], "access_denied");
        names_only(&refused, &[], "former-only");
    }
}

#[test]
fn a_button_leads_upstream_only_from_its_own_page_and_where_it_is_offered() {
    let (gatepost, upstream) = serving();
    let mut browser = gatepost.browser();
    let page = browser.visit(&request_of("two", &[]));
    let token = page.form_token();
    for provider in [
        "former",
        "acme-ad",
        "away",
        "local",
        "nowhere",
        "Corporate",
        "CORP",
        "corp ",
        "../corp",
        "\"><script>",
    ] {
        let answer = press(&mut browser, &page, provider);
        answer.assert_error_page(400, "GP1505", provider);
        names_only(&answer, &[], provider);
        assert_eq!(answer.headers_named("set-cookie").len(), 0, "{provider}");
    }
    let twice = [
        ("form_token", token.as_str()),
        ("identity_provider", "corp"),
        ("identity_provider", "hub-1"),
    ];
    browser
        .post(&page.action(), &twice)
        .assert_error_page(400, "GP1002", "two at once");
    // Without the token of this page in this browser nobody is sent anywhere.
    let foreign = gatepost
        .browser()
        .visit(&request_of("two", &[]))
        .form_token();
    for wrong in ["", "x", foreign.as_str()] {
        let answer = browser.post(
            &page.action(),
            &[("form_token", wrong), ("identity_provider", "corp")],
        );
        is_shown_with_a_problem(&answer, "no longer up to date", &["corp", "hub-1"], wrong);
    }
    let form = [
        ("form_token", token.as_str()),
        ("identity_provider", "corp"),
    ];
    let elsewhere = [("Origin", "https://evil.example")];
    browser
        .post_from(&page.action(), &elsewhere, &form)
        .assert_error_page(403, "GP1009", "from elsewhere");
    assert_eq!(upstream.visits(), 0);

    // Two tabs: each has its own way upstream, and both cookies stay.
    let other = browser.visit(&request_of("two", &[("state", "other")]));
    let first = goes_upstream(&press(&mut browser, &page, "corp"), &upstream, "first tab");
    let second = goes_upstream(
        &press(&mut browser, &other, "hub-1"),
        &upstream,
        "second tab",
    );
    assert_ne!(first["state"], second["state"]);
    assert_eq!(
        browser
            .cookies
            .keys()
            .filter(|name| name.contains("flow-"))
            .count(),
        2
    );
    let cancelled = [("form_token", token.as_str()), ("decision", "cancel")];
    browser
        .post(&page.action(), &cancelled)
        .assert_query("error", "access_denied");
}

#[test]
fn a_provider_that_is_away_is_no_dead_end() {
    let (gatepost, upstream) = serving();
    let mut browser = gatepost.browser();
    // Where there is another way, the page says so, and the other way works.
    for client_id in ["away-or-local", "conf1"] {
        let page = browser.visit(&request_of(client_id, &[]));
        let again = press(&mut browser, &page, "away");
        let ways = if client_id == "conf1" {
            &["local", "corp", "away", "hub-1"][..]
        } else {
            &["local", "away"]
        };
        is_shown_with_a_problem(&again, UNAVAILABLE, ways, client_id);
        let answer = sign_in(&mut browser, &again, "alice", ALICE_PASSWORD);
        assert!(answer.query().contains_key("code"), "{client_id}");
        browser = gatepost.browser();
    }
    // Where there is none, or none that the request asks for, the client is told, as its success
    // would travel.
    for (client_id, acr_values) in [
        ("away-only", ""),
        ("conf1", "idp:away"),
        ("away-or-local", "idp:away"),
    ] {
        let asked = [("acr_values", acr_values), ("response_mode", "fragment")];
        let answer = browser.get(&request_of(client_id, &asked));
        let told = answer.fragment();
        assert_eq!(
            (told["error"].as_str(), told["state"].as_str()),
            ("temporarily_unavailable", "the-state"),
            "{client_id}"
        );
        assert_eq!(told["iss"], gatepost.base_url);
        names_only(&answer, &[], client_id);
    }
    let posted = browser.visit(&request_of("away-only", &[("response_mode", "form_post")]));
    assert_eq!(posted.fields()["error"], "temporarily_unavailable");
    assert_eq!(upstream.visits(), 0);
    let audited =
        "audit_events WHERE event = 'external_sign_in_failed' AND detail->>'reason' = 'GP1724'";
    let deadline = Instant::now() + SOON;
    while gatepost.database.count(audited) == 0 {
        assert!(Instant::now() < deadline, "nothing was audited");
        sleep(Duration::from_millis(50));
    }
    let log = gatepost.log();
    assert!(log.contains("GP1724"), "{log}");
    log.assert_says("client_id=\"away-only\"");
}

#[test]
fn devices_and_the_account_page_offer_providers_as_well() {
    let (gatepost, upstream) = serving();
    let mut browser = gatepost.browser();
    let device = start(&gatepost, "tv", &[]);
    let page = enter(&mut browser, user_code(&device));
    assert_eq!(offered(&page), ["local", "corp"]);
    names_only(&page, &["corp", "Corporate"], "tv");
    let asked = goes_upstream(&press(&mut browser, &page, "corp"), &upstream, "tv");
    assert_eq!(
        asked["redirect_uri"],
        format!("{}/external/corp/callback", gatepost.base_url)
    );
    // An address alone leads nowhere, only the code does.
    let shown = browser.visit(&page.action());
    shown.assert_says("name=\"user_code\"");
    let device = start(&gatepost, "corp-tv", &[]);
    goes_upstream(
        &enter(&mut gatepost.browser(), user_code(&device)),
        &upstream,
        "corp-tv",
    );
    let device = start(&gatepost, "tv", &[("acr_values", "idp:corp")]);
    goes_upstream(
        &enter(&mut signed_in(&gatepost), user_code(&device)),
        &upstream,
        "tv by corp",
    );

    let account = browser.visit("/account?ui_locales=de");
    let asked = goes_upstream(&press(&mut browser, &account, "corp"), &upstream, "account");
    assert_eq!(asked.get("ui_locales").map(String::as_str), Some("de"));
    let away = browser.visit("/account");
    is_shown_with_a_problem(
        &press(&mut browser, &away, "away"),
        UNAVAILABLE,
        &["local", "corp", "away", "hub-1"],
        "account",
    );
}

#[test]
fn who_says_they_are_someone_else_is_asked_upstream_who_they_are() {
    let (gatepost, upstream) = serving();
    let mut browser = signed_in(&gatepost);
    gatepost.run_sql("UPDATE sessions SET identity_provider = 'corp'");
    let decide = |browser: &mut Browser, page: &Answer, decision: &str| {
        browser.submit(page, &[("decision", decision)])
    };
    let chooser = browser.visit(&request_of("corp-only", &[("prompt", "select_account")]));
    assert!(chooser.text().contains("Choose an account") && chooser.text().contains("Alice Smith"));
    // An account is offered, or another one.
    assert!(offered(&chooser).is_empty());
    let asked = goes_upstream(
        &decide(&mut browser, &chooser, "another"),
        &upstream,
        "chooser",
    );
    assert_eq!(
        asked.get("prompt").map(String::as_str),
        Some("select_account")
    );
    decide(&mut browser, &chooser, "continue").assert_carries("code");

    let consent = browser.visit(&request_of("asking", &[]));
    consent.assert_says("asks for access");
    let asked = goes_upstream(
        &decide(&mut browser, &consent, "another"),
        &upstream,
        "consent",
    );
    assert_eq!(
        asked.get("prompt").map(String::as_str),
        Some("select_account")
    );

    // Whom nobody here gave a user name is called as they are there.
    upstream.plan(|plan| plan.id_token = json!({"name": "Carla of Corp"}));
    let mut carla = Traveller::new();
    let choosing = |client_id| {
        format!(
            "{}{}",
            gatepost.base_url,
            request_of(client_id, &[("prompt", "select_account")])
        )
    };
    carla.visit(&choosing("corp-only")).assert_carries("code");
    let chooser = carla.visit(&choosing("conf1"));
    chooser.assert_says("<strong><bdi>Carla of Corp</bdi></strong>.");

    // With more than one way the page comes first, and remembers it.
    let chooser = browser.visit(&request_of("two", &[("prompt", "select_account login")]));
    // Prompt=login comes first.
    assert_eq!(offered(&chooser), ["corp", "hub-1"]);
    let chooser = browser.visit(&request_of("two", &[("prompt", "select_account")]));
    let page = decide(&mut browser, &chooser, "another");
    assert_eq!(offered(&page), ["corp", "hub-1"]);
    let fields = page.fields();
    assert_eq!(fields.get("someone_else").map(String::as_str), Some("true"));
    let form = [
        ("form_token", fields["form_token"].as_str()),
        ("someone_else", "true"),
        ("identity_provider", "corp"),
    ];
    let asked = goes_upstream(&browser.post(&page.action(), &form), &upstream, "page");
    assert_eq!(
        asked.get("prompt").map(String::as_str),
        Some("select_account")
    );
}

/// Presses the button, and goes there and back.
fn go_and_return(
    gatepost: &Gatepost,
    person: &mut Traveller,
    page: &Answer,
    provider: &str,
) -> Answer {
    let answer = press(person.at(&gatepost.base_url), page, provider);
    person.follow(&gatepost.base_url, answer)
}

#[test]
fn who_was_not_signed_in_there_may_choose_again_or_the_client_is_told() {
    let (gatepost, upstream) = serving();
    let refused = |error: &str| Plan {
        callback: json!({"code": null, "error": error}),
        ..Plan::default()
    };
    for (error, sentence, told, code) in [
        (
            "access_denied",
            "was cancelled or refused there",
            "access_denied",
            "GP1722",
        ),
        (
            "login_required",
            "could not sign you in the way that is needed here",
            "login_required",
            "GP1723",
        ),
        (
            "temporarily_unavailable",
            UNAVAILABLE,
            "temporarily_unavailable",
            "GP1724",
        ),
    ] {
        upstream.plan(|plan| *plan = refused(error));
        let mut person = Traveller::new();
        let page = person.visit(&format!("{}{}", gatepost.base_url, request_of("two", &[])));
        let again = go_and_return(&gatepost, &mut person, &page, "corp");
        is_shown_with_a_problem(&again, sentence, &["corp", "hub-1"], error);
        let answer = person.visit(&format!(
            "{}{}",
            gatepost.base_url,
            request_of("corp-only", &[])
        ));
        assert_eq!(answer.query()["error"].as_str(), told);
        assert_eq!(answer.query()["state"].as_str(), "the-state");
        let named = person.visit(&format!(
            "{}{}",
            gatepost.base_url,
            request_of("conf1", &[("acr_values", "idp:corp")])
        ));
        assert_eq!(named.query()["error"], told);
        // Where no client waits in this browser, the page is shown, however little it offers.
        let device = start(&gatepost, "corp-tv", &[]);
        let sent = enter(person.at(&gatepost.base_url), user_code(&device));
        let shown = person.follow(&gatepost.base_url, sent);
        is_shown_with_a_problem(&shown, sentence, &["corp"], error);
        let account = person.visit(&format!("{}/account", gatepost.base_url));
        let again = go_and_return(&gatepost, &mut person, &account, "corp");
        is_shown_with_a_problem(&again, sentence, &["local", "corp", "away", "hub-1"], error);
        let mut browser = gatepost.browser();
        browser
            .get(&request_of("conf1", &[("prompt", "none")]))
            .assert_query("error", "login_required");
        let log = gatepost.log();
        log.assert_says(&format!(
            "reason=\"{code}\" detail=\"identity provider corp"
        ));
    }
    upstream.behave();
}

#[test]
fn an_answer_that_is_not_believed_ends_on_a_page_with_a_way_back() {
    let (gatepost, upstream) = serving();
    upstream.plan(|plan| plan.id_token = json!({"nonce": "another"}));
    for client_id in ["two", "corp-only"] {
        let mut person = Traveller::new();
        let straight = request_of(client_id, &[("acr_values", "idp:corp")]);
        let page = person.visit(&format!("{}{straight}", gatepost.base_url));
        page.assert_error_page(400, "GP1725", client_id);
        assert!(!page.text().contains("nonce"), "{}", page.text());
        let back = page.attribute("a class=\"button\"", "href").unwrap();
        assert!(back.starts_with("/login?r="), "{back}");
        upstream.behave();
        let answer = person.visit(&format!("{}{back}", gatepost.base_url));
        assert!(answer.query().contains_key("code"), "{}", answer.location());
        upstream.plan(|plan| plan.id_token = json!({"nonce": "another"}));
    }
}

#[test]
fn a_sign_in_upstream_that_is_not_enough_is_not_asked_for_again() {
    let (gatepost, upstream) = serving();
    let long_ago = || Plan {
        id_token: json!({"auth_time": now() - 3_600}),
        ..Plan::default()
    };
    upstream.plan(|plan| *plan = long_ago());
    for (name, value) in [("prompt", "login"), ("max_age", "60"), ("max_age", "0")] {
        let mut person = Traveller::new();
        let address = format!(
            "{}{}",
            gatepost.base_url,
            request_of("corp-only", &[(name, value)])
        );
        let before = upstream.received(Place::Authorize).len();
        let answer = person.visit(&address);
        assert_eq!(answer.query()["error"], "login_required", "{name}={value}");
        answer.assert_query(
            "error_description",
            "The user's sign-in is older than asked for.",
        );
        // One round.
        assert_eq!(upstream.received(Place::Authorize).len(), before + 1);
        // They are signed in all the same, for whoever asks for less.
        let plain = person.visit(&format!(
            "{}{}",
            gatepost.base_url,
            request_of("corp-only", &[])
        ));
        assert!(plain.query().contains_key("code"), "{}", plain.location());
        assert_eq!(upstream.received(Place::Authorize).len(), before + 1);
    }
    // Nobody chooses an account twice, however long ago they signed in there.
    let mut person = Traveller::new();
    let choosing = request_of("corp-only", &[("prompt", "select_account")]);
    let answer = person.visit(&format!("{}{choosing}", gatepost.base_url));
    assert!(answer.query().contains_key("code"), "{}", answer.location());
    assert_eq!(
        upstream.asked().get("prompt").map(String::as_str),
        Some("select_account")
    );
    // A device is told on a page: its client waits elsewhere.
    let device = start(&gatepost, "strict-tv", &[]);
    let sent = enter(person.at(&gatepost.base_url), user_code(&device));
    let page = person.follow(&gatepost.base_url, sent);
    assert_eq!(upstream.asked()["max_age"], "60");
    page.assert_error_page(400, "GP1721", "device");
    upstream.behave();
    let sent = enter(person.at(&gatepost.base_url), user_code(&device));
    let page = person.follow(&gatepost.base_url, sent);
    assert!(page.text().contains(user_code(&device)), "{}", page.text());
    assert!(page.action().starts_with("/device?r="), "{}", page.text());
}

#[test]
fn nobody_joins_a_tenant_by_writing_it_into_an_address() {
    let (gatepost, upstream) = serving();
    let by = |acr_values: &str| {
        format!(
            "{}{}",
            gatepost.base_url,
            request_of("conf1", &[("acr_values", acr_values)])
        )
    };
    let users = gatepost.database.count("users");
    let refused = Traveller::new().visit(&by("idp:corp tenant:acme"));
    refused.assert_error_page(403, "GP1714", "a provider of no tenant");
    assert_eq!(gatepost.database.count("users"), users);
    let answer = Traveller::new().visit(&by("idp:corp"));
    let newcomer = redeem(&gatepost, &answer.query()["code"]).json();
    assert!(
        decode_jwt(newcomer["id_token"].as_str().unwrap())
            .1
            .get("tenant")
            .is_none()
    );

    upstream.plan(|plan| plan.subject = String::from("somebody-of-acme"));
    let mut person = Traveller::new();
    let answer = person.visit(&by("idp:acme-ad tenant:acme"));
    let newcomer = redeem(&gatepost, &answer.query()["code"]).json();
    assert_eq!(
        decode_jwt(newcomer["id_token"].as_str().unwrap()).1["tenant"],
        "acme"
    );
    assert_eq!(gatepost.database.count("users"), users + 2);
    // Who is of the tenant comes in by a provider of none as well: it is the same account there.
    let answer = Traveller::new().visit(&by("idp:corp tenant:acme"));
    assert!(answer.query().contains_key("code"), "{}", answer.location());
    let silent = person.get(&format!(
        "{}{}",
        gatepost.base_url,
        request_of("conf1", &[("prompt", "none")])
    ));
    silent.assert_query_for(
        "a session of acme is none elsewhere",
        "error",
        "login_required",
    );
}
