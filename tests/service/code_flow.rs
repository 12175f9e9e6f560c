//! The code flow from the first request to the claims, as a browser and a client walk it.

use serde_json::json;

use crate::support::flow::{
    authorize_path, code, decode_jwt, redeem, redeem_as, sign_in, signed_in, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, CONF2_SECRET, Gatepost, RP1, RP2};

#[test]
fn a_person_signs_in_and_the_client_learns_who_it_is() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path(
        "conf1",
        RP1,
        &[("scope", "openid profile roles orders.read")],
    ));
    assert_eq!(page.status, 200);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    answer.assert_leads_to(&format!("{RP1}?"));
    let parameters = answer.query();
    assert_eq!(
        parameters.keys().collect::<Vec<_>>(),
        ["code", "iss", "session_state", "state"]
    );
    assert_eq!(parameters["state"].as_str(), "the-state");
    assert_eq!(&parameters["iss"], &gatepost.base_url);

    let tokens = redeem(&gatepost, &parameters["code"]);
    tokens.assert_status(200);
    tokens.assert_header("pragma", "no-cache");
    let tokens = tokens.json();
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], "openid profile roles orders.read");
    let (header, claims) = decode_jwt(tokens["id_token"].as_str().unwrap());
    assert_eq!(header["alg"], "RS256");
    assert_eq!(header["typ"], "JWT");
    assert_eq!(claims["aud"], "conf1");
    assert_eq!(claims["nonce"], "the-nonce");
    let (header, access) = decode_jwt(tokens["access_token"].as_str().unwrap());
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(access["aud"], "https://orders.example");
    assert_eq!(access["role"], json!(["admin"]));

    let told = userinfo(&gatepost, tokens["access_token"].as_str().unwrap());
    assert_eq!(told.status, 200);
    let told = told.json();
    assert_eq!(told["sub"], claims["sub"]);
    assert_eq!(told["name"], "Alice Smith");
    assert_eq!(told["role"], json!(["admin"]));
    assert_eq!(told.get("email"), None);
}

#[test]
fn second_redemption_is_refused_and_revokes_the_first_tokens() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let tokens = redeem(&gatepost, &code).json();
    let access_token = tokens["access_token"].as_str().unwrap();
    assert_eq!(userinfo(&gatepost, access_token).status, 200);
    let again = redeem(&gatepost, &code);
    again.assert_status(400);
    assert_eq!(again.json()["error"], "invalid_grant");
    assert_eq!(userinfo(&gatepost, access_token).status, 401);
}

#[test]
fn consent_is_asked_once_and_remembered() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf2", RP2, &[]);
    let page = browser.visit(&path);
    assert!(page.text().contains("Second shop"), "{}", page.text());
    let answer = browser.decide(&page, "allow", &["profile"], true);
    let first = answer.query().remove("code").unwrap();
    let tokens = redeem_as(&gatepost, ("conf2", CONF2_SECRET), RP2, &first).json();
    assert!(tokens["access_token"].as_str().unwrap().starts_with("gpa_"));
    userinfo(&gatepost, tokens["access_token"].as_str().unwrap()).assert_status(200);
    let second = code(&mut browser, &path);
    redeem_as(&gatepost, ("conf2", CONF2_SECRET), RP2, &second).assert_status(200);
}
