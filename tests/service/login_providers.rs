//! Identity providers on the way in: which of them a request offers, when it goes straight to one,
//! and what happens when one cannot be reached. What comes back from there: `federation.rs` and its
//! neighbours.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::device::{DEVICE_CODE, enter, start, user_code};
use crate::support::flow::{
    decode_jwt, redeem, request_of, sign_in, signed_in, text, with_clients, with_further_clients,
    with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser, free_port};
use crate::support::signer::now;
use crate::support::tables::rows_of;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Place, Plan, Upstream};
use crate::support::waiting::{SOON, await_that};

const ALLOWED: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");
/// Names and display names of every provider, those of hidden ones among them.
const NAMES: &str =
    "corp|Corporate|hub-1|Zebra hub|acme-ad|ACME directory|former|Former one|away|Far away";
/// What the page says when a provider cannot be reached.
const UNAVAILABLE: &str = "the other service is not available at the moment";

/// Clients by what they allow, and five providers: two for everybody, one of a tenant, one
/// disabled, one that is away.
fn registered(upstream: &Upstream) -> Value {
    let allowing = |names: &str| json!({"identity_providers": Vec::from_iter(names.split(' '))});
    let of_acme = json!({"identity_providers": ["acme-ad", "local"], "tenants": ["acme"]});
    let asking = json!({"identity_providers": ["corp"], "require_consent": true});
    let clients = [
        ("local-only", allowing("local")),
        ("corp-only", allowing("corp")),
        ("two", allowing("hub-1 corp")),
        ("former-only", allowing("former")),
        ("former-or-local", allowing("former local")),
        ("away-only", allowing("away")),
        ("away-or-local", allowing("away local")),
        ("acme-only", of_acme),
        ("asking", asking),
    ];
    let registered = with_clients(document(), &clients);
    let tv = json!({
        "client_id": "tv", "client_name": "Television", "grant_types": [DEVICE_CODE], "response_types": [], "redirect_uris": [],
        "scope": "openid profile", "token_endpoint_auth_method": "none", "identity_providers": ["local", "corp"]
    });
    let device = |client_id, changes| {
        let tv = with_members(tv.clone(), &changes);
        with_members(tv, &json!({"client_id": client_id}))
    };
    let strict = json!({"identity_providers": ["corp"], "default_max_age": 60});
    let clients = [
        device("tv", json!({})),
        device("corp-tv", allowing("corp")),
        device("strict-tv", strict),
    ];
    let mut registered = with_further_clients(registered, &clients);
    registered["tenants"] =
        json!([{"name": "acme", "display_name": "ACME Ltd"}, {"name": "globex"}]);
    let of_acme = json!({"username": "alice", "password": BOB_PASSWORD, "tenant": "acme"});
    registered["users"].as_array_mut().unwrap().push(of_acme);
    let provider = |name: &str, display_name: &str, further: Value| {
        let named = json!({"display_name": display_name});
        upstream.registration(name, with_members(named, &further))
    };
    let away = format!("http://127.0.0.1:{}", free_port());
    registered["identity_providers"] = json!([
        provider("corp", "Corporate", json!({})),
        upstream.oauth_registration("hub-1", json!({"display_name": "Zebra hub"})),
        provider("acme-ad", "ACME directory", json!({"tenant": "acme"})),
        provider("former", "Former one", json!({"enabled": false})),
        provider("away", "Far away", json!({"issuer": away})),
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
    for name in NAMES.split('|') {
        let is_told = whole.contains(name) && !shown.contains(&name);
        assert!(!is_told, "{what} tells of {name}: {whole}");
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
    answer.assert_leads_to_for(what, &endpoint);
    assert_eq!((answer.status, answer.body.len()), (303, 0), "{what}");
    let cookies = answer.headers_named("set-cookie");
    let has_flow = cookies.iter().any(|cookie| cookie.contains("flow-"));
    assert!(has_flow, "{what}: {cookies:?}");
    answer.query()
}

fn is_shown_with_a_problem(page: &Answer, sentence: &str, ways: &[&str], what: &str) {
    page.assert_says_for(what, "role=\"alert\"");
    page.assert_says_for(what, sentence);
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
            let asked_for = [("acr_values", acr_values), ("prompt", "none")];
            let answer = asked.get(&request_of(client_id, &asked_for));
            let case = format!("{client_id} {acr_values}");
            answer.assert_query_for(case, "error", "login_required");
            answer.assert_sets_none("flow-");
        }
    }
    assert_eq!(upstream.visits(), 0);
}

#[test]
fn a_session_counts_where_its_provider_does() {
    let (gatepost, upstream) = serving();
    let get = |browser: &mut Browser, client_id: &str, acr_values: &str| {
        browser.get(&request_of(client_id, &[("acr_values", acr_values)]))
    };
    let offers = |browser: &mut Browser, client_id: &str, acr_values: &str| {
        let path = request_of(client_id, &[("acr_values", acr_values)]);
        offered(&browser.visit(&path)).join(" ")
    };
    let of = |browser: &mut Browser, provider: &str| {
        let sql = format!("UPDATE sessions SET identity_provider = '{provider}'");
        gatepost.database.run(&sql);
        browser.get(&request_of("conf1", &[("prompt", "none")]))
    };
    let mut browser = signed_in(&gatepost);
    // One of the password login: not for a client that does not allow it, nor where another one is
    // named.
    for (client_id, acr_values) in [("corp-only", ""), ("conf1", "idp:corp")] {
        let answer = get(&mut browser, client_id, acr_values);
        goes_upstream(&answer, &upstream, client_id);
    }
    assert_eq!(offers(&mut browser, "two", ""), "corp hub-1");
    get(&mut browser, "local-only", "").code();

    of(&mut browser, "corp").code();
    for (client_id, acr_values) in [("corp-only", ""), ("conf1", "idp:corp"), ("two", "")] {
        get(&mut browser, client_id, acr_values).code();
    }
    assert_eq!(offers(&mut browser, "local-only", ""), "local");
    assert_eq!(offers(&mut browser, "conf1", "idp:local"), "local");
    let answer = get(&mut browser, "two", "idp:hub-1");
    goes_upstream(&answer, &upstream, "idp:hub-1");
    let account = browser.visit("/account");
    account.assert_status(200);
    account.assert_says("Alice Smith");

    // Switched off, gone, or come to be of a tenant since: whoever they vouched for signs in anew.
    for provider in ["former", "nowhere", "acme-ad"] {
        let silent = of(&mut browser, provider);
        silent.assert_query_for(provider, "error", "login_required");
        let ways = offers(&mut browser, "former-or-local", "");
        assert_eq!(ways, "local", "{provider}");
        let account = browser.visit("/account");
        let has_form = offered(&account).iter().any(|way| way == "local");
        assert!(has_form, "{provider}");
        account.assert_says_not(provider);
    }
    let page = browser.visit(&request_of("former-or-local", &[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).code();
    let local = "sessions WHERE identity_provider = 'local' AND ended_at IS NULL";
    gatepost.database.assert_count(local, 1);
}

#[test]
fn a_client_without_the_password_login_shows_no_form_and_takes_no_password() {
    let (gatepost, _upstream) = serving();
    let mut browser = gatepost.browser();
    let page = browser.visit(&request_of("two", &[]));
    assert_eq!(offered(&page), ["corp", "hub-1"]);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    answer.assert_error_page(400, "GP1505", "a password");
    answer.assert_sets_none("session");
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
    let wrong = "former|acme-ad|away|local|nowhere|Corporate|CORP|corp |../corp|\"><script>";
    for provider in wrong.split('|') {
        let answer = press(&mut browser, &page, provider);
        answer.assert_error_page(400, "GP1505", provider);
        names_only(&answer, &[], provider);
        assert_eq!(answer.headers_named("set-cookie").len(), 0, "{provider}");
    }
    let both = [
        ("identity_provider", "corp"),
        ("identity_provider", "hub-1"),
    ];
    let twice = browser.submit(&page, &both);
    twice.assert_error_page(400, "GP1002", "two at once");
    // Without the token of this page in this browser nobody is sent anywhere.
    let foreign = gatepost.browser().visit(&request_of("two", &[]));
    let foreign = foreign.form_token();
    let form = |token| [("form_token", token), ("identity_provider", "corp")];
    for wrong in ["", "x", &foreign] {
        let answer = browser.post(&page.action(), &form(wrong));
        is_shown_with_a_problem(&answer, "no longer up to date", &["corp", "hub-1"], wrong);
    }
    let origin = [("Origin", "https://evil.example")];
    let elsewhere = browser.post_from(&page.action(), &origin, &form(&token));
    elsewhere.assert_error_page(403, "GP1009", "from elsewhere");
    assert_eq!(upstream.visits(), 0);

    // Two tabs: each has its own way upstream, and both cookies stay.
    let other = browser.visit(&request_of("two", &[("state", "other")]));
    let first = goes_upstream(&press(&mut browser, &page, "corp"), &upstream, "first tab");
    let second = press(&mut browser, &other, "hub-1");
    let second = goes_upstream(&second, &upstream, "second tab");
    assert_ne!(first["state"], second["state"]);
    let names = browser.cookies.keys();
    assert_eq!(names.filter(|name| name.contains("flow-")).count(), 2);
    let cancelled = [("form_token", token.as_str()), ("decision", "cancel")];
    let cancelled = browser.post(&page.action(), &cancelled);
    cancelled.assert_query("error", "access_denied");
}

#[test]
fn a_provider_that_is_away_is_no_dead_end() {
    let (gatepost, upstream) = serving();
    let mut browser = gatepost.browser();
    // Where there is another way, the page says so, and the other way works.
    let all = &["local", "corp", "away", "hub-1"][..];
    for (client_id, ways) in [("away-or-local", &["local", "away"][..]), ("conf1", all)] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&request_of(client_id, &[]));
        let again = press(&mut browser, &page, "away");
        is_shown_with_a_problem(&again, UNAVAILABLE, ways, client_id);
        let answer = sign_in(&mut browser, &again, "alice", ALICE_PASSWORD);
        answer.assert_carries_for(client_id, "code");
    }
    // Where there is none, or none that the request asks for, the client is told, as its success
    // would travel.
    for [client_id, acr_values] in rows_of(
        "
        away-only     |
        conf1         | idp:away
        away-or-local | idp:away
        ",
    ) {
        let asked = [("acr_values", acr_values), ("response_mode", "fragment")];
        let answer = browser.get(&request_of(client_id, &asked));
        let told = answer.fragment();
        assert_eq!(told["error"], "temporarily_unavailable", "{client_id}");
        assert_eq!(told["state"], "the-state", "{client_id}");
        assert_eq!(told["iss"], gatepost.base_url);
        names_only(&answer, &[], client_id);
    }
    let posted = browser.visit(&request_of("away-only", &[("response_mode", "form_post")]));
    assert_eq!(posted.fields()["error"], "temporarily_unavailable");
    assert_eq!(upstream.visits(), 0);
    let audited =
        "audit_events WHERE event = 'external_sign_in_failed' AND detail->>'reason' = 'GP1724'";
    await_that("it is audited", SOON, || {
        gatepost.database.count(audited) > 0
    });
    let log = gatepost.log();
    log.assert_says("GP1724");
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
    let callback = gatepost.address("/external/corp/callback");
    assert_eq!(asked["redirect_uri"], callback);
    // An address alone leads nowhere, only the code does.
    let shown = browser.visit(&page.action());
    shown.assert_says("name=\"user_code\"");
    let device = start(&gatepost, "corp-tv", &[]);
    let sent = enter(&mut gatepost.browser(), user_code(&device));
    goes_upstream(&sent, &upstream, "corp-tv");
    let device = start(&gatepost, "tv", &[("acr_values", "idp:corp")]);
    let sent = enter(&mut signed_in(&gatepost), user_code(&device));
    goes_upstream(&sent, &upstream, "tv by corp");

    let account = browser.visit("/account?ui_locales=de");
    let asked = goes_upstream(&press(&mut browser, &account, "corp"), &upstream, "account");
    assert_eq!(asked["ui_locales"], "de");
    let account = browser.visit("/account");
    let away = press(&mut browser, &account, "away");
    let ways = ["local", "corp", "away", "hub-1"];
    is_shown_with_a_problem(&away, UNAVAILABLE, &ways, "account");
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
    chooser.assert_says("Choose an account");
    chooser.assert_says("Alice Smith");
    // An account is offered, or another one.
    assert!(offered(&chooser).is_empty());
    let another = decide(&mut browser, &chooser, "another");
    let asked = goes_upstream(&another, &upstream, "chooser");
    assert_eq!(asked["prompt"], "select_account");
    decide(&mut browser, &chooser, "continue").assert_carries("code");

    let consent = browser.visit(&request_of("asking", &[]));
    consent.assert_says("asks for access");
    let another = decide(&mut browser, &consent, "another");
    let asked = goes_upstream(&another, &upstream, "consent");
    assert_eq!(asked["prompt"], "select_account");

    // Whom nobody here gave a user name is called as they are there.
    upstream.plan(|plan| plan.id_token = json!({"name": "Carla of Corp"}));
    let mut carla = Traveller::new();
    let choosing = |client_id| {
        let path = request_of(client_id, &[("prompt", "select_account")]);
        gatepost.address(&path)
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
    assert_eq!(fields["someone_else"], "true");
    let form = [("someone_else", "true"), ("identity_provider", "corp")];
    let asked = goes_upstream(&browser.submit(&page, &form), &upstream, "page");
    assert_eq!(asked["prompt"], "select_account");
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
    for [error, sentence, code] in rows_of(&format!(
        "
        access_denied           | was cancelled or refused there                     | GP1722
        login_required          | could not sign you in the way that is needed here  | GP1723
        temporarily_unavailable | {UNAVAILABLE} | GP1724
        "
    )) {
        upstream.plan(|plan| *plan = refused(error));
        let mut person = Traveller::new();
        let page = person.visit(&gatepost.address(&request_of("two", &[])));
        let again = go_and_return(&gatepost, &mut person, &page, "corp");
        is_shown_with_a_problem(&again, sentence, &["corp", "hub-1"], error);
        let answer = person.visit(&gatepost.address(&request_of("corp-only", &[])));
        answer.assert_query("error", error);
        answer.assert_query("state", "the-state");
        let named = request_of("conf1", &[("acr_values", "idp:corp")]);
        let named = person.visit(&gatepost.address(&named));
        named.assert_query("error", error);
        // Where no client waits in this browser, the page is shown, however little it offers.
        let device = start(&gatepost, "corp-tv", &[]);
        let sent = enter(person.at(&gatepost.base_url), user_code(&device));
        let shown = person.follow(&gatepost.base_url, sent);
        is_shown_with_a_problem(&shown, sentence, &["corp"], error);
        let account = person.visit(&format!("{}/account", gatepost.base_url));
        let again = go_and_return(&gatepost, &mut person, &account, "corp");
        is_shown_with_a_problem(&again, sentence, &["local", "corp", "away", "hub-1"], error);
        let silent = request_of("conf1", &[("prompt", "none")]);
        let silent = gatepost.browser().get(&silent);
        silent.assert_query("error", "login_required");
        let line = format!("reason=\"{code}\" detail=\"identity provider corp");
        gatepost.log().assert_says(&line);
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
        let page = person.visit(&gatepost.address(&straight));
        page.assert_error_page(400, "GP1725", client_id);
        page.assert_says_not("nonce");
        let back = page.attribute("a class=\"button\"", "href").unwrap();
        assert!(back.starts_with("/login?r="), "{back}");
        upstream.behave();
        person.visit(&gatepost.address(&back)).code();
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
        let address = gatepost.address(&request_of("corp-only", &[(name, value)]));
        let before = upstream.received(Place::Authorize).len();
        let answer = person.visit(&address);
        answer.assert_query_for(format!("{name}={value}"), "error", "login_required");
        let why = "The user's sign-in is older than asked for.";
        answer.assert_query("error_description", why);
        // One round.
        assert_eq!(upstream.received(Place::Authorize).len(), before + 1);
        // They are signed in all the same, for whoever asks for less.
        let plain = gatepost.address(&request_of("corp-only", &[]));
        person.visit(&plain).code();
        assert_eq!(upstream.received(Place::Authorize).len(), before + 1);
    }
    // Nobody chooses an account twice, however long ago they signed in there.
    let mut person = Traveller::new();
    let choosing = request_of("corp-only", &[("prompt", "select_account")]);
    person.visit(&gatepost.address(&choosing)).code();
    assert_eq!(upstream.asked()["prompt"], "select_account");
    // A device is told on a page: its client waits elsewhere.
    let device = start(&gatepost, "strict-tv", &[]);
    let sent = enter(person.at(&gatepost.base_url), user_code(&device));
    let page = person.follow(&gatepost.base_url, sent);
    assert_eq!(upstream.asked()["max_age"], "60");
    page.assert_error_page(400, "GP1721", "device");
    upstream.behave();
    let sent = enter(person.at(&gatepost.base_url), user_code(&device));
    let page = person.follow(&gatepost.base_url, sent);
    page.assert_says(user_code(&device));
    assert!(page.action().starts_with("/device?r="), "{}", page.text());
}

#[test]
fn nobody_joins_a_tenant_by_writing_it_into_an_address() {
    let (gatepost, upstream) = serving();
    let by = |acr_values: &str| {
        let path = request_of("conf1", &[("acr_values", acr_values)]);
        gatepost.address(&path)
    };
    let id_token = |answer: &Answer| {
        let tokens = redeem(&gatepost, &answer.code()).json();
        decode_jwt(text(&tokens, "id_token")).1
    };
    let users = gatepost.database.count("users");
    let refused = Traveller::new().visit(&by("idp:corp tenant:acme"));
    refused.assert_error_page(403, "GP1714", "a provider of no tenant");
    assert_eq!(gatepost.database.count("users"), users);
    let newcomer = id_token(&Traveller::new().visit(&by("idp:corp")));
    assert_eq!(newcomer.get("tenant"), None);

    upstream.plan(|plan| plan.subject = String::from("somebody-of-acme"));
    let mut person = Traveller::new();
    let newcomer = id_token(&person.visit(&by("idp:acme-ad tenant:acme")));
    assert_eq!(newcomer["tenant"], "acme");
    assert_eq!(gatepost.database.count("users"), users + 2);
    // Who is of the tenant comes in by a provider of none as well: it is the same account there.
    Traveller::new().visit(&by("idp:corp tenant:acme")).code();
    let silent = gatepost.address(&request_of("conf1", &[("prompt", "none")]));
    let silent = person.get(&silent);
    let case = "a session of acme is none elsewhere";
    silent.assert_query_for(case, "error", "login_required");
}
