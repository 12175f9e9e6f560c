//! OpenID Connect Session Management: the browser's state, `session_state`, and the frame that
//! compares them. That the frame's script does is `tests/e2e/session_management.test.mjs`'s to
//! show.

use sha2::{Digest, Sha256};

use crate::support::flow::{authorize_path, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};

const FRAME: &str = "/connect/checksession";

/// The value of the browser's state, which is 128 bits in base64url.
fn state_of(browser: &Browser) -> String {
    let (_, state) = browser
        .cookies
        .iter()
        .find(|(name, _)| name.starts_with("gatepost-state-"))
        .unwrap();
    assert_eq!(crate::support::jwt::base64url(state).len(), 16);
    state.clone()
}

/// What a client at `origin` is told, computed anew.
fn matches(session_state: &str, client_id: &str, origin: &str, browser_state: &str) -> bool {
    let (hash, salt) = session_state.split_once('.').unwrap();
    assert!(salt.len() >= 16, "{session_state}");
    assert!(!session_state.contains(' '), "{session_state}");
    let digest = Sha256::digest(format!("{client_id} {origin} {browser_state} {salt}"));
    hash == digest
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
}

fn silent(browser: &mut Browser, changes: &[(&str, &str)]) -> Answer {
    browser.get(&authorize_path(
        "conf1",
        RP1,
        &[&[("prompt", "none")], changes].concat(),
    ))
}

fn sign_out(browser: &mut Browser) -> Answer {
    let page = browser.get("/logout");
    browser.submit(&page, &[("decision", "sign_out")])
}

#[test]
fn session_state_follows_the_browsers_state_from_sign_in_to_sign_out() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert!(
        !browser
            .cookies
            .keys()
            .any(|name| name.starts_with("gatepost-state-")),
        "nobody is signed in"
    );
    let first =
        sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).query()["session_state"].clone();
    let alices = state_of(&browser);
    assert!(matches(&first, "conf1", "https://rp1.example", &alices));
    for wrong in ["conf2", "conf1 "] {
        assert!(!matches(&first, wrong, "https://rp1.example", &alices));
    }

    // Asked again, nothing changed but the salt.
    let again = silent(&mut browser, &[]).query()["session_state"].clone();
    assert_ne!(again, first);
    assert!(matches(&again, "conf1", "https://rp1.example", &alices));
    assert_eq!(state_of(&browser), alices);

    // Signing in anew, as the same user or as another.
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let renewed = state_of(&browser);
    assert!(renewed != alices);
    assert!(matches(
        &answer.query()["session_state"],
        "conf1",
        "https://rp1.example",
        &renewed
    ));
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let answer = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    let bobs = state_of(&browser);
    assert!(bobs != renewed);
    assert!(matches(
        &answer.query()["session_state"],
        "conf1",
        "https://rp1.example",
        &bobs
    ));

    let done = sign_out(&mut browser);
    assert_eq!(
        done.headers_named("set-cookie").len(),
        2,
        "{:?}",
        done.headers
    );
    let nobodys = state_of(&browser);
    assert!(nobodys != bobs);
    assert!(!matches(
        &answer.query()["session_state"],
        "conf1",
        "https://rp1.example",
        &nobodys
    ));
    let refused = silent(&mut browser, &[]).query();
    assert_eq!(refused["error"], "login_required");
    assert!(!refused.contains_key("session_state"));
}

#[test]
fn a_browser_that_lost_its_state_is_given_one() {
    let gatepost = Gatepost::shared();
    for lost in [
        "",
        "short",
        "not+base64url+not+base64",
        "AAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
        let mut browser = signed_in(&gatepost);
        let name = browser
            .cookies
            .keys()
            .find(|name| name.starts_with("gatepost-state-"))
            .unwrap()
            .clone();
        browser.cookies.insert(name, lost.to_owned());
        let answer = silent(&mut browser, &[]);
        assert!(
            matches(
                &answer.query()["session_state"],
                "conf1",
                "https://rp1.example",
                &state_of(&browser)
            ),
            "{lost}"
        );
        assert_eq!(
            silent(&mut browser, &[]).headers_named("set-cookie").len(),
            0,
            "once is enough"
        );
    }
}

#[test]
fn session_state_is_for_openid_requests_of_web_clients_wherever_the_answer_goes() {
    let mut document = document();
    document["clients"][3]["require_consent"] = false.into();
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let state = state_of(&browser);
    assert!(
        !silent(&mut browser, &[("scope", "orders.read")])
            .query()
            .contains_key("session_state")
    );
    let fragment = silent(&mut browser, &[("response_mode", "fragment")]).fragment();
    assert!(matches(
        &fragment["session_state"],
        "conf1",
        "https://rp1.example",
        &state
    ));
    let fields = silent(&mut browser, &[("response_mode", "form_post")]).fields();
    assert!(matches(
        &fields["session_state"],
        "conf1",
        "https://rp1.example",
        &state
    ));
    let mut native = |uri: &str| {
        browser
            .get(&authorize_path("native", uri, &[("prompt", "none")]))
            .query()
    };
    assert!(matches(
        &native("http://127.0.0.1:4711/cb")["session_state"],
        "native",
        "http://127.0.0.1:4711",
        &state
    ));
    // A custom scheme has no origin, and nothing that could frame us.
    let app = native("com.example.app:/cb");
    assert!(app.contains_key("code"), "{app:?}");
    assert!(!app.contains_key("session_state"), "{app:?}");
}

#[test]
fn any_site_may_frame_the_page_and_only_its_own_script_runs_in_it() {
    let mut gatepost = Gatepost::prepare(&[]);
    gatepost.launch();
    while !gatepost.serves("/healthz") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let page = gatepost.get(FRAME);
    page.assert_status(200);
    page.assert_header("content-type", "text/html; charset=utf-8");
    assert_eq!(page.header("x-frame-options"), None);
    let policy = "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors *";
    assert_eq!(page.header("content-security-policy"), Some(policy));
    assert_eq!(page.headers_named("set-cookie").len(), 0);
    let cookie = page.attribute("data-cookie", "data-cookie").unwrap();
    assert!(cookie.starts_with("gatepost-state-"), "{cookie}");
    let script = gatepost.get(&page.attribute("script src", "src").unwrap());
    script.assert_header("content-type", "text/javascript; charset=utf-8");
    // ES5: old browsers stop at the first word they do not know.
    for newer in [
        "=>",
        "`",
        "let ",
        "const ",
        "class ",
        "async ",
        "padStart",
        "includes(",
    ] {
        assert!(!script.text().contains(newer), "{newer}");
    }
    assert_eq!(gatepost.send("HEAD", FRAME, &[], b"").status, 200);
    for method in ["POST", "OPTIONS", "PUT"] {
        let refused = gatepost.send(method, FRAME, &[], b"");
        assert_eq!(refused.status, 405, "{method}");
        refused.assert_header_for(method, "allow", "GET, HEAD");
    }
}

#[test]
fn behind_tls_the_cookie_is_bound_to_this_host() {
    let gatepost = Gatepost::start_with(
        &document(),
        &[("GATEPOST_BASE_URL", "https://login.example/auth")],
    );
    let page = gatepost.get("/auth/connect/checksession");
    assert!(
        page.attribute("data-cookie", "data-cookie")
            .unwrap()
            .starts_with("__Host-gatepost-state-")
    );
    assert!(
        page.attribute("script src", "src")
            .unwrap()
            .starts_with("/auth/static/check-session.js?v=")
    );
    let metadata = gatepost
        .get("/auth/.well-known/openid-configuration")
        .json();
    assert_eq!(
        metadata["check_session_iframe"],
        "https://login.example/auth/connect/checksession"
    );
    // Whoever asks whether the process lives need not know the path.
    for path in ["/healthz", "/auth/healthz"] {
        assert_eq!(gatepost.get(path).text(), "ok\n", "{path}");
    }
    assert_eq!(gatepost.get("/connect/checksession").status, 404);
}
