//! Front-channel logout: which applications' pages are framed when a session ends, and where the
//! person goes on to.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, issued, redeem_with, sign_in, signed_in, text, tokens,
    with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::tables::rows_of;

const DONE: &str = "https://rp1.example/done";

fn registered() -> Value {
    let quiet = json!({"post_logout_redirect_uris": [DONE], "frontchannel_logout_uri": null});
    let shop = json!({"client_name": "A \"<shop>\"", "frontchannel_logout_uri": "https://shop.example:8443/out?lang=%20en",
                      "frontchannel_logout_session_required": true, "post_logout_redirect_uris": [DONE]});
    let wiki =
        json!({"client_name": "Wiki", "frontchannel_logout_uri": "https://wiki.example/out"});
    let same = json!({"client_name": "Wiki search", "frontchannel_logout_uri": "https://wiki.example:443/search/out"});
    let unused = json!({"frontchannel_logout_uri": "https://unused.example/out"});
    let clients = [
        ("quiet", quiet),
        ("shop", shop),
        ("wiki", wiki),
        ("search", same),
        ("unused", unused),
    ];
    with_clients(document(), &clients)
}

fn use_clients(browser: &mut Browser, clients: &[&str]) {
    for client_id in clients {
        code(browser, &authorize_path(client_id, RP1, &[]));
    }
}

fn end_session(browser: &mut Browser, id_token: &str, further: &[(&str, &str)]) -> Answer {
    let sent = [&[("id_token_hint", id_token)], further].concat();
    browser.get(&format!("/connect/endsession?{}", encode(&sent)))
}

/// `src` and `title` of the page's frames, entities undone, in order.
fn frames(page: &Answer) -> Vec<(String, String)> {
    let text = page.text();
    let tags = text.split('<').filter(|tag| tag.starts_with("iframe "));
    tags.map(|tag| {
        assert!(tag.contains(" hidden"), "{tag}");
        let value = |name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\"")).unwrap();
            rest.split_once('"').unwrap().0
        };
        let plain = |text: &str| {
            text.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&amp;", "&")
        };
        (plain(value("src")), plain(value("title")))
    })
    .collect()
}

#[test]
fn the_page_frames_exactly_the_sessions_clients_and_goes_on() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    // Used twice, framed once.
    use_clients(&mut browser, &["shop", "quiet", "shop", "wiki", "search"]);
    let told = tokens(&gatepost, &mut browser, "shop", "openid");
    let id_token = text(&told, "id_token");
    let sid = text(&decode_jwt(id_token).1, "sid").to_owned();
    // Another session of hers, and somebody else's, are not concerned.
    let mut elsewhere = signed_in(&gatepost);
    use_clients(&mut elsewhere, &["unused"]);

    let back = ("post_logout_redirect_uri", DONE);
    let page = end_session(&mut browser, id_token, &[back, ("state", "a;b,c d\"")]);
    page.assert_stays(200);
    let told = encode(&[("iss", &gatepost.base_url), ("sid", &sid)]);
    let framed = |address: &str, name: &str| {
        let src = format!("https://{address}{told}");
        (src, format!("Signing out of {name}"))
    };
    let expected = [
        framed("shop.example:8443/out?lang=%20en&", "A \"<shop>\""),
        framed("wiki.example/out?", "Wiki"),
        framed("wiki.example:443/search/out?", "Wiki search"),
    ];
    assert_eq!(frames(&page), expected);
    page.assert_header(
        "content-security-policy",
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
         frame-src https://shop.example:8443 https://wiki.example",
    );
    page.assert_header("x-frame-options", "DENY");
    page.assert_header("referrer-policy", "no-referrer");
    let address = format!("{DONE}?state=a%3Bb%2Cc%20d%22");
    page.assert_header("refresh", &format!("2;url={address}"));
    let button = page.attribute("a class=\"button\"", "href");
    assert_eq!(button, Some(address));
    page.assert_says_each("being signed out, too | in a moment");
    let silently = authorize_path("conf1", RP1, &[("prompt", "none")]);
    browser.get(&silently).assert_carries("error");

    // Once it is over there is nobody to tell: straight on.
    let again = end_session(&mut browser, id_token, &[back]);
    assert_eq!(again.location(), DONE);
}

#[test]
fn without_frames_the_way_back_is_straight_and_without_a_way_back_the_page_stays() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let quiet = tokens(&gatepost, &mut browser, "quiet", "openid");
    let back = [("post_logout_redirect_uri", DONE)];
    let answer = end_session(&mut browser, text(&quiet, "id_token"), &back);
    assert_eq!(answer.location(), DONE);

    // Signing out by oneself frames as well; nobody named a place to go on to.
    let mut browser = signed_in(&gatepost);
    use_clients(&mut browser, &["wiki"]);
    let page = browser.get("/logout");
    assert!(frames(&page).is_empty(), "asking signs nobody out");
    let done = browser.submit_to("/logout", &page, &[("decision", "sign_out")]);
    assert_eq!(frames(&done).len(), 1);
    assert_eq!(done.header("refresh"), None);
    assert_eq!(done.header("location"), None);
    done.assert_says_none("in a moment | class=\"button\"");

    // The same when the address that was named is not registered.
    let mut browser = signed_in(&gatepost);
    let shop = tokens(&gatepost, &mut browser, "shop", "openid");
    let evil = [
        ("post_logout_redirect_uri", "https://evil.example/"),
        ("state", "evil"),
    ];
    let done = end_session(&mut browser, text(&shop, "id_token"), &evil);
    assert_eq!((frames(&done).len(), done.header("refresh")), (1, None));
    assert!(!done.text().contains("evil"));
}

#[test]
fn a_sign_in_as_somebody_else_leaves_the_frames_of_the_old_session_behind() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    use_clients(&mut browser, &["shop"]);
    let page = browser.visit(&authorize_path("wiki", RP1, &[("prompt", "login")]));
    let answer = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    let code = &answer.query()["code"];
    let bobs = issued(&redeem_with(&gatepost, "wiki", code, &[]));
    let page = end_session(&mut browser, text(&bobs, "id_token"), &[]);
    let framed = frames(&page);
    assert_eq!(framed.len(), 1, "{framed:?}");
    assert!(framed[0].0.starts_with("https://wiki.example/out?"));
}

#[test]
fn only_clients_that_want_to_hear_of_it_are_noted_and_each_once() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let used = ["quiet", "conf1", "shop", "shop", "wiki", "shop"];
    use_clients(&mut browser, &used);
    // A sign-in of the same person anew keeps the session, and with it who has a part in it.
    let page = browser.visit(&authorize_path("shop", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let noted =
        "SELECT c.client_id, s.ended_at IS NULL AND c.due_at IS NULL AND c.sub = s.sub AS lives
         FROM session_clients c JOIN sessions s USING (day, sid) ORDER BY 1";
    let rows = gatepost.database.client().query(noted, &[]).unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["shop", "wiki"]);
    assert!(rows.iter().all(|row| row.get::<_, bool>(1)));
}

#[test]
fn registrations_that_could_lead_astray_are_refused() {
    let gatepost = Gatepost::prepare(&[]);
    for [key, value] in rows_of(
        "
        frontchannel_logout_uri   | http://shop.example/out
        frontchannel_logout_uri   | https://shop.example/out#x
        frontchannel_logout_uri   | javascript:alert(1)
        frontchannel_logout_uri   | https://shop.example;script-src/out
        backchannel_logout_uri    | http://shop.example/out
        backchannel_logout_uri    | https://shop.example/out#x
        backchannel_logout_uri    | https://user@shop.example/
        backchannel_logout_uri    | file:///etc/passwd
        post_logout_redirect_uris | http://shop.example/
        post_logout_redirect_uris | https://shop.example/#x
        post_logout_redirect_uris | https://*.shop.example/
        post_logout_redirect_uris | javascript:alert(1)
    ",
    ) {
        let value = match key.ends_with('s') {
            true => json!([value]),
            false => json!(value),
        };
        let document = with_clients(document(), &[("astray", json!({ key: value }))]);
        let said = gatepost.apply_refused(&document);
        said.assert_says_for(value, key);
    }
    for channel in ["frontchannel", "backchannel"] {
        let session_required = format!("{channel}_logout_session_required");
        let document = with_clients(
            document(),
            &[("astray", json!({ &session_required: true }))],
        );
        let said = gatepost.apply_refused(&document);
        said.assert_says(&session_required);
    }
    let fine = json!({"frontchannel_logout_uri": "http://localhost:8081/out", "backchannel_logout_uri": "http://127.0.0.1/out",
                      "post_logout_redirect_uris": ["http://[::1]:1/", "https://other.example/"]});
    let document = with_clients(document(), &[("fine", fine)]);
    gatepost.run_well(&["apply", "-"], &document.to_string());
}
