//! What people and clients see while the database is away.

use crate::support::flow::{authorize_path, code, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1};

#[test]
fn an_outage_is_a_page_for_people_and_an_error_for_silent_clients() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf1", RP1, &[]);
    let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
    let mut stranger = gatepost.browser();
    let page = stranger.visit(&path);
    let logout = browser.get("/logout");
    code(&mut browser, &path);

    proxy.cut(true);
    let answers = [
        ("authorize", browser.get(&path)),
        (
            "login",
            sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD),
        ),
        ("logout", browser.get("/logout")),
        ("sign out", {
            let token = logout.fields().remove("form_token").unwrap();
            browser.post(
                "/logout",
                &[("form_token", &token), ("decision", "sign_out")],
            )
        }),
    ];
    let dutch = browser.get(&authorize_path("conf1", RP1, &[("ui_locales", "nl-BE")]));
    assert!(
        dutch
            .text()
            .contains("<h1>We kunnen op dit moment niet antwoorden</h1>"),
        "{}",
        dutch.text()
    );
    for (what, answer) in &answers {
        answer.assert_error_page(503, "GP1901", what);
        assert!(answer.header("retry-after").is_some(), "{what}");
        assert_eq!(answer.headers_named("set-cookie").len(), 0, "{what}");
        for inside in [
            "postgres",
            "SQL",
            "127.0.0.1",
            "connection",
            "role",
            "server",
        ] {
            assert!(!answer.text().contains(inside), "{what}: {inside}");
        }
    }
    let got = browser.get(&silent).query();
    assert_eq!(
        (got["error"].as_str(), got["state"].as_str()),
        ("temporarily_unavailable", "the-state")
    );
    // Who brings no cookie is asked to sign in without the database.
    assert!(
        gatepost
            .browser()
            .visit(&path)
            .text()
            .contains("name=\"password\"")
    );
    assert_eq!(
        gatepost.get("/.well-known/openid-configuration").status,
        200
    );

    proxy.cut(false);
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    code(&mut browser, &silent);
    assert!(
        sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD)
            .query()
            .contains_key("code")
    );
}
