//! Pushed authorization requests (RFC 9126).

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    VERIFIER, basic, challenge, code, issued, redeem, sign_in, signed_in, text, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::tables::rows_of;
use crate::support::waiting::all_at_once;

const REQUEST_URI: &str = "urn:ietf:params:oauth:request_uri:gpp_";

fn registered() -> Value {
    let pushing = json!({"require_pushed_authorization_requests": true, "scope": "openid profile"});
    let public = json!({
        "token_endpoint_auth_method": "none", "secrets": null, "grant_types": ["authorization_code"], "scope": "openid",
    });
    let consenting = json!({"require_consent": true, "scope": "openid profile"});
    let clients = [
        ("pushing", pushing),
        ("consenting", consenting),
        ("open", public),
    ];
    with_clients(document(), &clients)
}

/// A good request, with parameters changed; one changed to an empty text is left out.
fn parameters(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let challenge = challenge();
    let mut all = vec![
        ("response_type", "code"),
        ("redirect_uri", RP1),
        ("scope", "openid"),
        ("state", "st-pushed"),
        ("nonce", "n-pushed"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        all.push((name, value));
    }
    all.retain(|(_, value)| !value.is_empty());
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    all.into_iter().map(owned).collect()
}

fn borrowed(parameters: &[(String, String)]) -> Vec<(&str, &str)> {
    let borrowed = parameters.iter().map(|(name, value)| (&**name, &**value));
    borrowed.collect()
}

fn push(gatepost: &Gatepost, client_id: &str, changes: &[(&str, &str)]) -> Answer {
    gatepost.post_as(client_id, "/connect/par", &borrowed(&parameters(changes)))
}

fn request_uri(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let pushed = answer.json();
    assert_eq!(pushed["expires_in"], json!(90));
    let request_uri = text(&pushed, "request_uri").to_owned();
    assert!(request_uri.starts_with(REQUEST_URI), "{request_uri}");
    request_uri
}

fn path(client_id: &str, request_uri: &str, further: &[(&str, &str)]) -> String {
    let own = [("client_id", client_id), ("request_uri", request_uri)];
    format!("/connect/authorize?{}", encode(&[&own, further].concat()))
}

fn used(gatepost: &Gatepost) -> i64 {
    gatepost.database.count("used_assertions")
}

#[test]
fn a_pushed_request_leads_to_one_code_and_what_the_browser_adds_counts_for_nothing() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let rows = used(&gatepost);
    let uri = request_uri(&push(&gatepost, "conf1", &[]));
    assert_eq!(used(&gatepost), rows, "a push writes nothing");
    // The browser's own parameters are others than were pushed.
    let added = [
        ("state", "st-other"),
        ("scope", "openid email"),
        ("redirect_uri", "https://evil.example/cb"),
    ];
    let opened = browser.get(&path("conf1", &uri, &added));
    let location = opened.location().to_owned();
    assert!(location.starts_with(RP1), "{location}");
    let query = opened.query();
    assert_eq!(query["state"], "st-pushed");
    let tokens = issued(&redeem(&gatepost, &query["code"]));
    let id_token = crate::support::flow::decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token["nonce"], json!("n-pushed"));
    assert_eq!(text(&tokens, "scope"), "openid");
    assert_eq!(used(&gatepost), rows + 1);
    // Once more, in this browser and in another one.
    let again = browser.get(&path("conf1", &uri, &[]));
    again.assert_error_page(400, "GP1154", "used before");
    let advice = "This link was used before, and is good for one sign-in.";
    assert!(again.text().contains(advice), "{}", again.text());
    let mut other = signed_in(&gatepost);
    other
        .get(&path("conf1", &uri, &[]))
        .assert_error_page(400, "GP1154", "used elsewhere");
}

#[test]
fn that_it_was_used_is_said_in_the_language_of_the_request() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let uri = request_uri(&push(&gatepost, "conf1", &[("ui_locales", "de")]));
    let mut browser = signed_in(&gatepost);
    assert_eq!(browser.get(&path("conf1", &uri, &[])).status, 303);
    let again = browser.get(&path("conf1", &uri, &[]));
    assert_eq!(again.status, 400);
    let text = again.text();
    assert!(text.contains("GP1154"), "{text}");
    text.assert_says("lang=\"de\"");
    let advice = "Dieser Link wurde schon benutzt";
    assert!(text.contains(advice), "{text}");
}

#[test]
fn a_request_may_be_opened_many_times_until_it_led_somewhere() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let uri = request_uri(&push(&gatepost, "consenting", &[]));
    let mut browser = gatepost.browser();
    for _ in 0..3 {
        let page = browser.visit(&path("consenting", &uri, &[]));
        assert_eq!(page.status, 200);
    }
    let page = browser.visit(&path("consenting", &uri, &[]));
    let signed = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let consent = browser.follow(signed);
    // No is no answer that uses it up.
    let denied = browser.decide(&consent, "deny", &[], false);
    assert_eq!(denied.query()["error"], "access_denied");
    assert_eq!(denied.query()["state"], "st-pushed");
    let consent = browser.visit(&path("consenting", &uri, &[]));
    let allowed = browser.decide(&consent, "allow", &[], false);
    allowed.assert_carries("code");
    // The same page a second time.
    let twice = browser.decide(&consent, "allow", &[], false);
    twice.assert_error_page(400, "GP1154", "from the page of before");
}

#[test]
fn of_many_at_once_one_gets_a_code() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut beside = gatepost.beside();
    beside.serve();
    let uri = request_uri(&push(&gatepost, "conf1", &[]));
    let browser = signed_in(&gatepost);
    let cookies = browser.cookie_header();
    let path = path("conf1", &uri, &[]);
    let statuses = all_at_once(16, |number| {
        let at = if number % 2 == 0 { &gatepost } else { &beside };
        at.send("GET", &path, &[("Cookie", &cookies)], b"").status
    });
    let counted = |known: &[u16]| {
        statuses
            .iter()
            .filter(|status| known.contains(status))
            .count()
    };
    assert_eq!(
        (counted(&[302, 303]), counted(&[400])),
        (1, 15),
        "{statuses:?}"
    );
}

#[test]
fn who_pushes_is_authenticated_and_told_at_once_what_is_wrong() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let guessed = basic("conf1", "not-the-secret-of-it");
    let (headers, form) = ([("Authorization", &*guessed)], [("response_type", "code")]);
    let wrong = gatepost.post("/connect/par", &headers, &form);
    wrong.assert_refused(401, "invalid_client", "a wrong secret");
    let nobody = gatepost.post("/connect/par", &[], &[("response_type", "code")]);
    nobody.assert_refused(400, "invalid_client", "nobody");
    let long = "x".repeat(5_000);
    for [name, value, error] in rows_of(&format!(
        "
        redirect_uri   | https://evil.example/cb              | invalid_request
        redirect_uri   |                                      | invalid_request
        response_type  |                                      | invalid_request
        response_type  | token                                | unauthorized_client
        response_type  | nonsense                             | unsupported_response_type
        scope          | openid unknown.scope                 | invalid_scope
        resource       | https://unknown.example              | invalid_target
        request        | e30.e30.x                            | request_not_supported
        request_uri    | urn:ietf:params:oauth:request_uri:x  | invalid_request
        prompt         | none login                           | invalid_request
        code_challenge | short                                | invalid_request
        client_id      | conf2                                | invalid_client
        login_hint     | {long}                               | invalid_request
        "
    )) {
        let changes = &[(name, value)];
        let answer = push(&gatepost, "conf1", changes);
        let status = if error == "invalid_client" { 401 } else { 400 };
        let case = format!("{changes:?}");
        answer.assert_stays_for(&case, status);
        answer.assert_member_for(&case, "error", error);
    }
    let query = "client_secret=in-the-log";
    let good = parameters(&[]);
    let good = borrowed(&good);
    let authorization = basic("conf1", CONF1_SECRET);
    let headers = [("Authorization", authorization.as_str())];
    let in_url = gatepost.post(&format!("/connect/par?{query}"), &headers, &good);
    in_url.assert_refused(400, "invalid_request", "a secret in the URL");
    let long = "n".repeat(900);
    let state = "s".repeat(1_900);
    let claims = json!({"userinfo": {"name": {"value": "v".repeat(3_500)}}}).to_string();
    let changes = [("nonce", &*long), ("state", &state), ("claims", &claims)];
    let answer = push(&gatepost, "conf1", &changes);
    answer.assert_refused(400, "invalid_request", "too long");
    for method in ["GET", "PUT", "DELETE"] {
        let answer = gatepost.send(method, "/connect/par", &[], b"");
        assert_eq!(answer.status, 405, "{method}");
    }
    let json = [("Content-Type", "application/json")];
    gatepost
        .send("POST", "/connect/par", &json, b"{}")
        .assert_status(400);
}

#[test]
fn a_request_uri_is_its_clients_alone_and_no_other_text_is_one() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let uri = request_uri(&push(&gatepost, "conf1", &[]));
    let mut browser = gatepost.browser();
    let mut open = |client_id: &str, uri: &str, code: &str| {
        let answer = browser.get(&path(
            client_id,
            uri,
            &[("redirect_uri", RP1), ("state", "s")],
        ));
        answer.assert_error_page(400, code, uri);
        let error = "(invalid_request_uri)";
        assert!(answer.text().contains(error), "{code}: {}", answer.text());
        assert_eq!(answer.header("location"), None);
    };
    open("conf2", &uri, "GP1152");
    open("nobody", &uri, "GP1152");
    let middle = uri.len() / 2;
    let another = if &uri[middle..=middle] == "A" {
        "B"
    } else {
        "A"
    };
    let (beginning, end) = (&uri[..middle], &uri[middle + 1..]);
    open("conf1", &format!("{beginning}{another}{end}"), "GP1151");
    open("conf1", &uri[..uri.len() - 4], "GP1151");
    open("conf1", REQUEST_URI, "GP1151");
    let of_others = "urn:ietf:params:oauth:request_uri:6esc_11ACC5bwc014ltc14eY22c";
    open("conf1", of_others, "GP1151");
    // An address elsewhere is never fetched, and told as before.
    let further = [
        ("redirect_uri", RP1),
        ("response_type", "code"),
        ("state", "s"),
    ];
    let elsewhere = path("conf1", "https://client.example/request.jwt", &further);
    let elsewhere = browser.get(&elsewhere);
    assert_eq!(elsewhere.query()["error"], "request_uri_not_supported");
    assert_eq!(browser.visit(&path("conf1", &uri, &[])).status, 200);
    gatepost.travel(91);
    let late = browser.get(&path("conf1", &uri, &[]));
    late.assert_error_page(400, "GP1153", "after its end");
    let advice = "It took too long to get here, so this link is no longer good.";
    late.assert_says(advice);
}

#[test]
fn a_client_may_have_to_push_and_a_public_one_may() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let direct = encode(&borrowed(&parameters(&[("client_id", "pushing")])));
    let refused = browser.get(&format!("/connect/authorize?{direct}"));
    assert_eq!(refused.query()["error"], "invalid_request");
    assert_eq!(refused.query()["state"], "st-pushed");
    let uri = request_uri(&push(&gatepost, "pushing", &[("client_id", "pushing")]));
    assert!(!code(&mut browser, &path("pushing", &uri, &[])).is_empty());

    let public = parameters(&[("client_id", "open")]);
    let pushed = gatepost.post("/connect/par", &[], &borrowed(&public));
    let uri = request_uri(&pushed);
    let granted = code(&mut browser, &path("open", &uri, &[]));
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", "open"),
        ("code", granted.as_str()),
        ("redirect_uri", RP1),
        ("code_verifier", VERIFIER),
    ];
    let redeemed = gatepost.post("/connect/token", &[], &form);
    redeemed.assert_status(200);
}

#[test]
fn discovery_names_the_endpoint_where_it_is_there() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    let endpoint = format!("{}/connect/par", gatepost.base_url);
    let told = &metadata["pushed_authorization_request_endpoint"];
    assert_eq!(*told, json!(endpoint));
    assert_eq!(metadata.get("require_pushed_authorization_requests"), None);
    let without = Gatepost::start_with(&registered(), &[("GATEPOST_PUSHED_REQUESTS", "off")]);
    let metadata = without.get("/.well-known/openid-configuration").json();
    assert_eq!(metadata.get("pushed_authorization_request_endpoint"), None);
    assert_eq!(push(&without, "conf1", &[]).status, 404);
    // A page may push from another origin, as it may ask for tokens.
    let origin = ("Origin", "https://rp1.example");
    let headers = [origin, ("Access-Control-Request-Method", "POST")];
    let preflight = gatepost.send("OPTIONS", "/connect/par", &headers, b"");
    assert!(preflight.status < 300, "{}", preflight.status);
    let _: Browser = without.browser();
}

#[test]
fn explain_judges_what_was_pushed_and_says_who_must_push() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let explained = |path: &str| {
        let output = gatepost.run(&["explain", &gatepost.address(path)], "");
        let told = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), told)
    };
    let uri = request_uri(&push(&gatepost, "pushing", &[]));
    let (is_good, told) = explained(&path("pushing", &uri, &[]));
    assert!(is_good && told.contains("it is good"), "{told}");
    assert!(told.starts_with("weak"), "{told}");
    assert!(told.contains("GP1154"), "{told}");
    let (is_good, told) = explained(&path("conf1", &uri, &[]));
    assert!(!is_good && told.contains("GP1152"), "{told}");
    let direct = encode(&borrowed(&parameters(&[("client_id", "pushing")])));
    let (is_good, told) = explained(&format!("/connect/authorize?{direct}"));
    assert!(!is_good && told.contains("GP1155"), "{told}");
}
