//! Pages that stood open too long, and addresses that were kept: the person is led on, or told
//! where to begin. Nothing that an old form held counts.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::device::{self, TV, enter, user_code};
use crate::support::flow::{
    authorize_path, challenge, code, decode_jwt, issued, redeem, sign_in, signed_in, text,
    with_clients,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::house::House;
use crate::support::http::{Answer, Browser, encode};
use crate::support::postgres::TestDatabase;
use crate::support::traveller::Traveller;

const HOUR: u32 = 3_600;
const EXPIRED: &str = "<h1>This page had expired</h1>";
const AT_THE_APPLICATION: &str = "Go back to the application";
const HERE: &str = "Start again here.";
const HOME: &str = "https://rp1.example/home";

fn start(document: &Value) -> Gatepost {
    start_under(document, &[])
}

fn start_under(document: &Value, settings: &[(&str, &str)]) -> Gatepost {
    let mut gatepost = Gatepost::prepare_over(TestDatabase::with_a_clock_of_its_own(), settings);
    gatepost.apply(document);
    gatepost.serve();
    gatepost
}

/// `homely` says where its users begin; `off` does, too, and is disabled.
fn with_homes() -> Value {
    with_clients(
        document(),
        &[
            ("homely", json!({"client_uri": HOME})),
            ("off", json!({"client_uri": HOME, "enabled": false})),
        ],
    )
}

fn request(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

fn assert_leads_home(page: &Answer, case: &str) {
    let text = page.text();
    let button = format!("<a class=\"button\" href=\"{HOME}\" rel=\"noreferrer\">Back to ");
    assert!(text.contains(&button), "{case}: {text}");
}

/// The sign-in page of a request that begins anew, from where an old page leads.
fn begun_anew(browser: &mut Browser, answer: &Answer, old: &Answer) -> Answer {
    assert_eq!(answer.status, 303, "{}", answer.text());
    let address = answer.location();
    assert!(address.starts_with("/login?r="), "{address}");
    assert_ne!(address, old.action());
    let page = browser.get(address);
    assert_eq!(page.status, 200, "{}", page.text());
    let told = page.text();
    assert!(told.contains("no longer up to date") && told.contains("name=\"password\""));
    page
}

#[test]
fn a_request_that_expired_begins_anew_once_and_within_a_day() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser();
    let old = browser.visit(&request(&[("state", "kept"), ("nonce", "n-kept")]));
    gatepost.travel(HOUR);
    // Loaded again, and sent with a right password: neither signs in.
    for sent in [false, true] {
        let answer = match sent {
            true => sign_in(&mut browser, &old, "alice", ALICE_PASSWORD),
            false => browser.get(&old.action()),
        };
        begun_anew(&mut browser, &answer, &old);
    }
    assert_eq!(gatepost.database.count("sessions"), 0);
    let answer = browser.get(&old.action());
    let fresh = begun_anew(&mut browser, &answer, &old);
    let answer = sign_in(&mut browser, &fresh, "alice", ALICE_PASSWORD);
    assert_eq!(answer.query()["state"], "kept");
    let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
    assert_eq!(decode_jwt(text(&tokens, "id_token")).1["nonce"], "n-kept");

    let mut other = gatepost.browser();
    let old = other.visit(&request(&[]));
    gatepost.travel(HOUR);
    let answer = other.get(&old.action());
    let fresh = begun_anew(&mut other, &answer, &old);
    gatepost.travel(HOUR);
    let over = sign_in(&mut other, &fresh, "alice", ALICE_PASSWORD);
    over.assert_error_page(400, "GP1503", "a second time");
    assert!(over.text().contains(EXPIRED) && over.text().contains(AT_THE_APPLICATION));

    let old = other.visit(&request(&[]));
    gatepost.travel(24 * HOUR - 1);
    let answer = other.get(&old.action());
    begun_anew(&mut other, &answer, &old);
    gatepost.travel(1);
    let over = other.get(&old.action());
    over.assert_error_page(400, "GP1503", "after a day");
    assert!(over.text().contains(EXPIRED));
}

#[test]
fn whoever_signed_in_meanwhile_goes_on_and_prompt_login_asks_all_the_same() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser();
    let plain = browser.visit(&request(&[("state", "plain")]));
    let fresh = browser.visit(&request(&[("prompt", "login")]));
    gatepost.travel(HOUR);
    let page = browser.visit(&request(&[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let answer = browser.visit(&plain.action());
    assert_eq!(answer.query()["state"], "plain");
    let page = browser.visit(&fresh.action());
    assert!(page.text().contains("name=\"password\""), "{}", page.text());
    // Whoever typed a name, or wanted another account, does not go on as Alice.
    let as_another = format!("{}&someone_else=true", plain.action());
    for answer in [
        sign_in(&mut browser, &plain, "bob", BOB_PASSWORD),
        browser.get(&as_another),
    ] {
        let page = browser.follow(answer);
        assert!(page.text().contains("name=\"password\""), "{}", page.text());
    }
}

#[test]
fn a_sign_out_that_no_application_asked_for_begins_here() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = signed_in(&gatepost);
    let question = browser.visit("/connect/endsession");
    gatepost.travel(HOUR);
    let over = browser.get(&question.action());
    over.assert_error_page(400, "GP1503", "no application");
    assert!(over.text().contains("href=\"/logout\""), "{}", over.text());
}

#[test]
fn nobody_can_send_what_marks_a_request_as_begun_anew() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser();
    let old = browser.visit(&request(&[("begun_anew", "true")]));
    assert!(!old.text().contains("no longer up to date"));
    gatepost.travel(HOUR);
    let answer = browser.get(&old.action());
    begun_anew(&mut browser, &answer, &old);
}

#[test]
fn an_application_that_says_where_it_is_at_home_is_the_way_back() {
    let gatepost = start(&with_homes());
    let mut browser = gatepost.browser();
    let old = browser.visit(&authorize_path("homely", RP1, &[("ui_locales", "de")]));
    gatepost.travel(HOUR);
    for answer in [
        sign_in(&mut browser, &old, "alice", ALICE_PASSWORD),
        browser.get(&old.action()),
    ] {
        answer.assert_error_page(400, "GP1503", "expired");
        let text = answer.text();
        text.assert_says("<h1>Diese Seite war abgelaufen</h1>");
        let button = format!("href=\"{HOME}\" rel=\"noreferrer\">Zurück zu ");
        assert!(text.contains(&button), "{text}");
    }
    assert_eq!(gatepost.database.count("sessions"), 0);
}

#[test]
fn pages_of_our_own_begin_anew_at_their_address() {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}]);
    let gatepost = start_under(&registered, &[("GATEPOST_ADMIN_ROLE", "office")]);
    let addresses = [
        "/account",
        "/account?tenant=acme&ui_locales=de",
        "/admin/people?name=a%26b&tenant=acme",
        "/admin/audit",
    ];
    let mut browser = gatepost.browser();
    let pages = addresses.map(|address| browser.visit(address));
    gatepost.travel(48 * HOUR);
    for (address, page) in addresses.into_iter().zip(&pages) {
        for answer in [
            sign_in(&mut browser, page, "alice", ALICE_PASSWORD),
            browser.get(&page.action()),
        ] {
            assert_eq!((answer.status, answer.location()), (303, address));
            let anew = browser.visit(answer.location());
            assert!(anew.text().contains("name=\"password\""), "{address}");
        }
    }
    assert_eq!(gatepost.database.count("sessions"), 0);
}

#[test]
fn what_does_not_begin_anew_says_where_it_begins() {
    let homely = json!({
        "client_uri": HOME, "grant_types": ["authorization_code"], "response_types": ["code"],
        "redirect_uris": [RP1], "scope": "openid", "secrets": [{"value": CONF1_SECRET}],
        "token_endpoint_auth_method": "client_secret_basic",
    });
    let gatepost = start(&device::with_devices(&[("homely", homely)]));
    let mut browser = signed_in(&gatepost);
    let mut stranger = gatepost.browser();
    let pushed = gatepost.post_as(
        "homely",
        "/connect/par",
        &[
            ("response_type", "code"),
            ("redirect_uri", RP1),
            ("scope", "openid"),
            ("code_challenge", &challenge()),
            ("code_challenge_method", "S256"),
        ],
    );
    let request_uri = text(&pushed.json(), "request_uri").to_owned();
    let own = [
        ("client_id", "homely"),
        ("request_uri", request_uri.as_str()),
    ];
    let pushed = stranger.visit(&format!("/connect/authorize?{}", encode(&own)));
    let waiting = device::start(&gatepost, TV, &[]);
    let device = enter(&mut stranger, user_code(&waiting));
    let asked = [("client_id", "homely"), ("ui_locales", "en")];
    let sign_out = browser.visit(&format!("/connect/endsession?{}", encode(&asked)));
    gatepost.travel(HOUR);

    let over = sign_in(&mut stranger, &pushed, "alice", ALICE_PASSWORD);
    over.assert_error_page(400, "GP1503", "pushed");
    assert!(over.text().contains(EXPIRED) && over.text().contains(AT_THE_APPLICATION));
    assert_leads_home(&over, "pushed");

    let over = sign_in(&mut stranger, &device, "alice", ALICE_PASSWORD);
    over.assert_error_page(400, "GP1503", "device");
    assert!(over.text().contains(EXPIRED) && over.text().contains(HERE));
    let way_on = over.attribute("class=\"button\"", "href").unwrap();
    stranger
        .get(&way_on)
        .assert_says_for(&way_on, "id=\"user-code\"");

    let over = browser.post(&sign_out.action(), &[("decision", "sign_out")]);
    over.assert_error_page(400, "GP1503", "sign-out");
    assert!(over.text().contains(EXPIRED) && over.text().contains(AT_THE_APPLICATION));
    assert_leads_home(&over, "sign-out");
    code(&mut browser, &request(&[("prompt", "none")]));
}

#[test]
fn a_way_upstream_that_took_too_long_begins_anew() {
    let house = House::start_over(
        TestDatabase::with_a_clock_of_its_own(),
        document(),
        &json!({}),
        &[("GATEPOST_AUTHORIZATION_REQUEST_LIFETIME", "60")],
    );
    let mut person = Traveller::new();
    let page = person.visit(&house.address(&request(&[("state", "kept")])));
    let site = house.gatepost.base_url.clone();
    let form = [("identity_provider", "up")];
    let answer = house.browser(&mut person).submit(&page, &form);
    let at_the_gate = person.follow_until(&site, answer, |next| next.contains("/external/"));
    house.gatepost.travel(61);
    let answer = person.get(at_the_gate.location());
    let browser = house.browser(&mut person);
    let fresh = begun_anew(browser, &answer, &page);
    let answer = sign_in(browser, &fresh, "alice", ALICE_PASSWORD);
    assert_eq!(answer.query()["state"], "kept");
}

#[test]
fn a_bookmarked_page_leads_to_the_account_page() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    for page in ["/login", "/consent", "/login/second-factor"] {
        for address in [page.to_owned(), format!("{page}?r=")] {
            for answer in [browser.get(&address), browser.head(&address)] {
                answer.assert_status_for(&address, 303);
                assert_eq!(answer.location(), "/account", "{address}");
            }
        }
        browser
            .post(page, &[])
            .assert_error_page(400, "GP1504", page);
    }
    let page = browser.visit("/login?ui_locales=de");
    page.assert_says("<html lang=\"de\">");
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(browser.follow(answer).text().contains("Ihr Konto"));
}

#[test]
fn an_error_page_that_knows_the_application_leads_back_to_it() {
    let gatepost = Gatepost::start_with(&with_homes(), &[]);
    let mut browser = gatepost.browser();
    for (case, address) in [
        (
            "address",
            authorize_path("homely", "https://evil.example/", &[]),
        ),
        ("no address", authorize_path("homely", "", &[])),
        ("disabled", authorize_path("off", RP1, &[])),
        (
            "sign-out",
            String::from("/connect/endsession?client_id=off"),
        ),
    ] {
        let page = browser.get(&address);
        assert_eq!(page.status, 400, "{case}");
        assert_leads_home(&page, case);
    }
    let login = browser.visit(&authorize_path("homely", RP1, &[]));
    let page = browser.submit(&login, &[("decision", "unheard-of")]);
    page.assert_error_page(400, "GP1505", "an action that the page has not");
    assert_leads_home(&page, "action");
    let foreign = [("Origin", "https://evil.example")];
    let page = browser.post_from(&login.action(), &foreign, &[]);
    page.assert_error_page(403, "GP1009", "another site");
    assert_leads_home(&page, "another site");
    // Who is no client, or says no address, is led nowhere.
    for address in [
        authorize_path("nobody", RP1, &[]),
        authorize_path("conf1", "https://evil.example/", &[]),
    ] {
        let page = browser.get(&address);
        assert!(!page.text().contains("class=\"button\""), "{}", page.text());
    }
}
