//! What is on its way during an upgrade: each is begun at the build before, and goes on at the new
//! one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::World;
use super::passkeys::{Key, attested, data, object};
use super::support::claims::Says;
use super::support::device::{self, SCOPE, TV, user_code};
use super::support::flow::{
    VERIFIER, authorize_path, basic, decode_jwt, is_signed_in, issued, redeem, sign_in, text,
    userinfo,
};
use super::support::gatepost::{ALICE_PASSWORD, RP1, RP2};
use super::support::house::as_far_as_upstream;
use super::support::http::{Answer, Browser};
use super::support::jwt::verified;
use super::support::offline::{
    CONF1, CONF2, ORDERS, PUB1, Party, access, introspect_as, member, refresh,
};
use super::support::phone::{Phone, add_app, recovery_codes};
use super::support::proofs::{for_form, for_token, sign, thumbprint};
use super::support::signer::Signer;
use super::support::traveller::Traveller;

/// The rest of it, at the new build.
pub(crate) type Carried = Box<dyn FnOnce(&World)>;

/// Begins it, for the user of that name.
pub(crate) type Begin = fn(&World, &str) -> Carried;

pub(crate) const ALL: [(&str, Begin); 28] = [
    ("session", session),
    ("remembered session", remembered_session),
    ("ΣΑΣ İsmail", sign_in_by_a_name_with_capitals),
    ("sign-in page", sign_in_page),
    ("sign-in page after a wrong password", sign_in_page_again),
    ("second-factor page", second_factor_page),
    (
        "second-factor page and recovery code",
        second_factor_page_and_recovery_code,
    ),
    ("app on the account page", app_on_the_account_page),
    ("app in a sign-in", app_in_a_sign_in),
    ("page of recovery codes", page_of_recovery_codes),
    ("new passkey", new_passkey),
    ("sign-in by passkey", sign_in_by_passkey),
    ("account page", account_page),
    ("sign-out page", sign_out_page),
    ("sign-out by a hint", sign_out_by_a_hint),
    ("code", code),
    ("tokens", tokens),
    (
        "refresh whose answer was lost",
        refresh_whose_answer_was_lost,
    ),
    ("reference token and consent", reference_token_and_consent),
    ("consent page", consent_page),
    ("offline grant", offline_grant),
    ("client's own token", clients_own_token),
    ("device that waits", device_that_waits),
    ("device page", device_page),
    ("device that was allowed", device_that_was_allowed),
    ("way to a provider", way_to_a_provider),
    ("code for a first proof", code_for_a_first_proof),
    (
        "refresh token for a first proof",
        refresh_token_for_a_first_proof,
    ),
];

/// What only a build that knows DPoP can begin: it is bound to a key.
pub(crate) const BOUND: [(&str, Begin); 3] = [
    ("bound code", bound_code),
    ("bound tokens of a public client", bound_tokens),
    ("bound reference token", bound_reference_token),
];

/// What the build before cannot go on with: it takes no page of second factors from this one, and
pub(crate) const ONWARD_ALONE: [&str; 9] = [
    "second-factor page",
    "second-factor page and recovery code",
    "app on the account page",
    "app in a sign-in",
    "new passkey",
    "sign-in by passkey",
    "opened enrolling link",
    "code for a first proof",
    "refresh token for a first proof",
];

const OFFLINE: &str = "openid profile offline_access";
const NEW_PASSWORD: &str = "a password of her own choosing";

pub(crate) fn request() -> String {
    authorize_path("conf1", RP1, &[])
}

/// The page after a right password.
pub(crate) fn password_at(browser: &mut Browser, user: &str, path: &str) -> Answer {
    let page = browser.visit(path);
    sign_in(browser, &page, user, ALICE_PASSWORD)
}

pub(crate) fn signed_in(world: &World, user: &str) -> Browser {
    let mut browser = world.gatepost.browser();
    let answer = password_at(&mut browser, user, &request());
    claims(world, &answer);
    browser
}

/// An access token, for whoever needs one.
pub(crate) fn access_token(world: &World, user: &str) -> String {
    access(&CONF1.tokens(&world.gatepost, &mut signed_in(world, user), "openid")).to_owned()
}

/// The way is at its end: `conf1` gets tokens. Claims of its ID token.
fn claims(world: &World, answer: &Answer) -> Value {
    answer.assert_status(303);
    let tokens = issued(&redeem(&world.gatepost, &answer.code()));
    verified(&world.gatepost, text(&tokens, "id_token")).1
}

pub(crate) fn signs_in(world: &World, user: &str, password: &str) -> bool {
    let mut browser = world.gatepost.browser();
    let page = browser.visit(&request());
    sign_in(&mut browser, &page, user, password).status == 303
}

fn session(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let name = json!("session");
    Box::new(move |world| {
        assert!(is_signed_in(&mut browser));
        let token =
            access(&CONF1.tokens(&world.gatepost, &mut browser, "openid profile")).to_owned();
        assert_eq!(userinfo(&world.gatepost, &token).json()["name"], name);
        browser.get("/account").assert_says("<h1>Your account</h1>");
    })
}

/// What the database makes of its letters is kept by the new build.
fn sign_in_by_a_name_with_capitals(_: &World, user: &str) -> Carried {
    let user = user.to_owned();
    Box::new(move |world| {
        assert!(signs_in(world, &user, ALICE_PASSWORD), "{user}");
        assert!(signs_in(world, &user.replace('Σ', "σ"), ALICE_PASSWORD));
    })
}

fn remembered_session(world: &World, user: &str) -> Carried {
    let mut browser = world.gatepost.browser();
    let page = browser.visit(&request());
    let user = ("username", user);
    let fields = [user, ("password", ALICE_PASSWORD), ("remember", "true")];
    let answer = browser.submit(&page, &fields);
    let cookies = answer.headers_named("set-cookie").join("\n");
    cookies.assert_says("Max-Age=");
    claims(world, &answer);
    Box::new(move |_| assert!(is_signed_in(&mut browser)))
}

fn sign_in_page(world: &World, user: &str) -> Carried {
    let (mut browser, user) = (world.gatepost.browser(), user.to_owned());
    let page = browser.visit(&request());
    Box::new(move |world| {
        let answer = sign_in(&mut browser, &page, &user, ALICE_PASSWORD);
        assert_eq!(claims(world, &answer)["nonce"], "the-nonce");
    })
}

fn sign_in_page_again(world: &World, user: &str) -> Carried {
    let (mut browser, user) = (world.gatepost.browser(), user.to_owned());
    let page = browser.visit(&request());
    let again = sign_in(&mut browser, &page, &user, "wrong");
    assert!(again.text().contains("is not correct"), "{}", again.text());
    Box::new(move |world| {
        claims(world, &sign_in(&mut browser, &again, &user, ALICE_PASSWORD));
    })
}

/// A browser at the page that asks for a code of an app; the phone, and the recovery codes.
fn before_the_second_factor(world: &World, user: &str) -> (Browser, Answer, Phone, Vec<String>) {
    let (phone, codes) = add_app(&mut signed_in(world, user), 0);
    let mut browser = world.gatepost.browser();
    let page = password_at(&mut browser, user, &request());
    page.assert_says("Confirm that it is you");
    (browser, page, phone, codes)
}

fn second_factor_page(world: &World, user: &str) -> Carried {
    let (mut browser, page, phone, _) = before_the_second_factor(world, user);
    Box::new(move |world| {
        let wrong = browser.submit(&page, &[("code", "000000")]);
        wrong.assert_says("That code is not right");
        let answer = browser.submit(&page, &[("code", &phone.code(0))]);
        assert_eq!(claims(world, &answer)["amr"], json!(["pwd", "otp", "mfa"]));
    })
}

fn second_factor_page_and_recovery_code(world: &World, user: &str) -> Carried {
    let (mut browser, page, _, codes) = before_the_second_factor(world, user);
    Box::new(move |world| {
        let answer = browser.submit(&page, &[("code", &codes[7])]);
        assert_eq!(claims(world, &answer)["acr"], "2");
        let again = browser.submit(&page, &[("code", &codes[7])]);
        again.assert_says_not_for("a recovery code counts once", "code=");
    })
}

fn app_on_the_account_page(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let account = browser.visit("/account");
    let page = browser.submit(&account, &[("decision", "add_app")]);
    let phone = Phone::from_page(&page, 0);
    Box::new(move |world| {
        let done = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(0))]);
        recovery_codes(&done);
        let told = claims(world, &browser.get(&request()));
        assert_eq!(told["acr"], "2", "the session goes on, and is stronger");
    })
}

fn app_in_a_sign_in(world: &World, user: &str) -> Carried {
    let mut browser = world.gatepost.browser();
    let page = password_at(&mut browser, user, &authorize_path("strong", RP1, &[]));
    page.assert_says("A second factor is needed here");
    let phone = Phone::from_page(&page, 0);
    Box::new(move |_| {
        let done = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(0))]);
        recovery_codes(&done);
        let answer = browser.submit(&done, &[("decision", "continue")]);
        answer.assert_leads_to(&format!("{RP1}?code="));
    })
}

fn page_of_recovery_codes(world: &World, user: &str) -> Carried {
    let mut browser = world.gatepost.browser();
    let page = password_at(&mut browser, user, &authorize_path("strong", RP1, &[]));
    let phone = Phone::from_page(&page, 0);
    let done = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    recovery_codes(&done);
    Box::new(move |_| {
        let answer = browser.submit(&done, &[("decision", "continue")]);
        answer.assert_leads_to(&format!("{RP1}?code="));
    })
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn options(page: &Answer) -> Value {
    let options = page.attribute("data-passkey=", "data-passkey");
    serde_json::from_str(&options.unwrap_or_else(|| panic!("no passkey in {}", page.text())))
        .unwrap()
}

pub(crate) fn client_data(world: &World, page: &Answer, kind: &str) -> Vec<u8> {
    let challenge = options(page)["challenge"].clone();
    json!({"type": kind, "challenge": challenge, "origin": world.gatepost.origin()})
        .to_string()
        .into_bytes()
}

fn page_for_a_passkey(browser: &mut Browser) -> Answer {
    let account = browser.visit("/account");
    browser.submit(&account, &[("decision", "add_passkey")])
}

fn add_passkey(world: &World, browser: &mut Browser, page: &Answer, key: &Key, id: &str) {
    let client_data = encoded(&client_data(world, page, "webauthn.create"));
    let attested = attested(id.as_bytes(), &key.cose());
    let object = encoded(&object(&data("localhost", 0x45, 0, &attested)));
    let fields = [
        ("decision", "add_passkey"),
        ("client_data", &client_data),
        ("attestation_object", &object),
        ("name", "Mine"),
    ];
    let done = browser.submit(page, &fields);
    recovery_codes(&done);
}

fn new_passkey(world: &World, user: &str) -> Carried {
    let (mut browser, user) = (signed_in(world, user), user.to_owned());
    let page = page_for_a_passkey(&mut browser);
    Box::new(move |world| {
        add_passkey(world, &mut browser, &page, &Key::es256(), &user);
        assert!(browser.visit("/account").text().contains("Mine"));
    })
}

fn sign_in_by_passkey(world: &World, user: &str) -> Carried {
    let (mut own, key, id) = (signed_in(world, user), Key::es256(), user.to_owned());
    let page = page_for_a_passkey(&mut own);
    add_passkey(world, &mut own, &page, &key, &id);
    let mut browser = world.gatepost.browser();
    let page = browser.visit(&request());
    Box::new(move |world| {
        let client_data = client_data(world, &page, "webauthn.get");
        let shown = data("localhost", 0x05, 0, b"");
        let signature = encoded(&key.sign(&shown, &client_data));
        let token = page.form_token();
        let fields = [
            ("form_token", token.as_str()),
            ("decision", "passkey"),
            ("id", &encoded(id.as_bytes())),
            ("client_data", &encoded(&client_data)),
            ("authenticator_data", &encoded(&shown)),
            ("signature", &signature),
            ("user_handle", ""),
        ];
        let answer = browser.post(&page.attribute("data-passkey=", "action").unwrap(), &fields);
        assert_eq!(claims(world, &answer)["acr"], "phr");
    })
}

fn account_page(world: &World, user: &str) -> Carried {
    let (mut browser, user) = (signed_in(world, user), user.to_owned());
    let page = browser.visit("/account");
    Box::new(move |world| {
        let fields = [
            ("decision", "change_password"),
            ("present_password", ALICE_PASSWORD),
            ("new_password", NEW_PASSWORD),
            ("new_password_again", NEW_PASSWORD),
        ];
        let answer = browser.submit_to("/account", &page, &fields);
        answer.assert_says("role=\"status\"");
        assert!(signs_in(world, &user, NEW_PASSWORD) && !signs_in(world, &user, ALICE_PASSWORD));
        assert!(is_signed_in(&mut browser), "this session goes on");
    })
}

fn sign_out_page(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let page = browser.visit("/logout");
    let cookies = browser.cookies.clone();
    Box::new(move |_| {
        let answer = browser.submit(&page, &[("decision", "sign_out")]);
        answer.assert_says("signed out");
        browser.cookies = cookies;
        assert!(!is_signed_in(&mut browser), "the session itself is over");
    })
}

fn sign_out_by_a_hint(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let tokens = CONF1.tokens(&world.gatepost, &mut browser, "openid");
    let cookies = browser.cookies.clone();
    Box::new(move |world| {
        let hint = member(&tokens, "id_token");
        browser.visit(&format!("/connect/endsession?id_token_hint={hint}"));
        browser.cookies = cookies;
        assert!(!is_signed_in(&mut browser));
        let told = CONF1.introspect(&world.gatepost, access(&tokens));
        assert_eq!(told["active"], false);
    })
}

fn code(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let code = CONF1.code(&mut browser, &[("scope", OFFLINE)]);
    let spent = CONF1.code(&mut browser, &[("scope", OFFLINE)]);
    let given = issued(&CONF1.redeem(&world.gatepost, &spent));
    Box::new(move |world| {
        let tokens = issued(&CONF1.redeem(&world.gatepost, &code));
        let (_, claims) = verified(&world.gatepost, member(&tokens, "id_token"));
        assert_eq!(claims["nonce"], "the-nonce");
        assert_eq!(userinfo(&world.gatepost, access(&tokens)).status, 200);
        issued(&CONF1.refresh(&world.gatepost, refresh(&tokens)));
        let again = CONF1.redeem(&world.gatepost, &spent);
        again.assert_error(400, "invalid_grant");
        CONF1.assert_refresh_over(&world.gatepost, refresh(&given));
    })
}

fn tokens(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let tokens = CONF1.tokens(&world.gatepost, &mut browser, OFFLINE);
    let revoked = CONF1.tokens(&world.gatepost, &mut browser, OFFLINE);
    CONF1.revoke(&world.gatepost, refresh(&revoked));
    Box::new(move |world| {
        let gatepost = &world.gatepost;
        verified(gatepost, member(&tokens, "id_token"));
        verified(gatepost, access(&tokens));
        assert_eq!(CONF1.introspect(gatepost, access(&tokens))["active"], true);
        assert_eq!(userinfo(gatepost, access(&tokens)).status, 200);
        let next = issued(&CONF1.refresh(gatepost, refresh(&tokens)));
        assert_eq!(CONF1.introspect(gatepost, access(&next))["active"], true);
        CONF1.assert_refresh_over(gatepost, refresh(&revoked));
        assert_eq!(userinfo(gatepost, access(&revoked)).status, 401);
    })
}

fn refresh_whose_answer_was_lost(world: &World, user: &str) -> Carried {
    let tokens = CONF1.tokens(&world.gatepost, &mut signed_in(world, user), OFFLINE);
    let lost = issued(&CONF1.refresh(&world.gatepost, refresh(&tokens)));
    Box::new(move |world| {
        let again = issued(&CONF1.refresh(&world.gatepost, refresh(&tokens)));
        issued(&CONF1.refresh(&world.gatepost, refresh(&again)));
        let told = CONF1.introspect(&world.gatepost, access(&lost));
        assert_eq!(told["active"], true);
    })
}

fn reference_token_and_consent(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let tokens = CONF2.tokens(&world.gatepost, &mut browser, "openid profile orders.read");
    Box::new(move |world| {
        let gatepost = &world.gatepost;
        let is_active = || introspect_as(gatepost, ORDERS, access(&tokens))["active"].clone();
        assert_eq!(is_active(), true);
        userinfo(gatepost, access(&tokens)).assert_member("name", "reference token and consent");
        let scope = [("scope", "openid profile orders.read")];
        let silent = browser.get(&authorize_path("conf2", RP2, &scope));
        silent.assert_carries_for("the consent is remembered", "code");
        CONF2.revoke(gatepost, access(&tokens));
        assert_eq!(is_active(), false);
    })
}

fn consent_page(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    page.assert_says("asks for access");
    Box::new(move |world| {
        let answer = browser.decide(&page, "allow", &["profile"], true);
        let tokens = issued(&CONF2.redeem(&world.gatepost, &answer.code()));
        let (_, claims) = decode_jwt(member(&tokens, "id_token"));
        assert_eq!(claims["nonce"], "the-nonce");
    })
}

fn offline_grant(world: &World, user: &str) -> Carried {
    let mut browser = signed_in(world, user);
    let tokens = CONF1.tokens(&world.gatepost, &mut browser, OFFLINE);
    let cookies = browser.cookies.clone();
    let page = browser.visit("/logout");
    browser.submit(&page, &[("decision", "sign_out")]);
    browser.cookies = cookies;
    Box::new(move |world| {
        assert!(!is_signed_in(&mut browser), "signed out before");
        issued(&CONF1.refresh(&world.gatepost, refresh(&tokens)));
    })
}

fn clients_own_token(world: &World, _: &str) -> Carried {
    let grant = ("grant_type", "client_credentials");
    let form = [grant, ("scope", "orders.read")];
    let tokens = issued(&world.gatepost.token("service", &form));
    Box::new(move |world| {
        let told = introspect_as(&world.gatepost, ORDERS, access(&tokens));
        assert_eq!(told["active"], true);
        assert_eq!(told["client_id"], "service");
    })
}

fn started(world: &World) -> Value {
    device::start(&world.gatepost, TV, &[("scope", SCOPE)])
}

/// The device gets its tokens, and they are good.
fn is_connected(world: &World, device: &Value) {
    device::pass_the_interval(&world.gatepost);
    let tokens = issued(&device::poll(&world.gatepost, TV, device));
    let refresh_token = ("refresh_token", refresh(&tokens));
    let form = [("grant_type", "refresh_token"), refresh_token];
    issued(&device::post(&world.gatepost, "/connect/token", TV, &form));
}

fn device_that_waits(world: &World, user: &str) -> Carried {
    let (mut browser, device) = (signed_in(world, user), started(world));
    device::poll(&world.gatepost, TV, &device).assert_error(400, "authorization_pending");
    Box::new(move |world| {
        device::allow(&mut browser, &device);
        is_connected(world, &device);
    })
}

fn device_page(world: &World, user: &str) -> Carried {
    let (mut browser, device) = (signed_in(world, user), started(world));
    let page = device::reach_decision(&mut browser, user_code(&device));
    Box::new(move |world| {
        let scopes = SCOPE.split(' ').skip(1).collect::<Vec<_>>();
        let answer = device::decide(&mut browser, &page, "allow", &scopes);
        answer.assert_says("Your device is connected");
        is_connected(world, &device);
    })
}

fn device_that_was_allowed(world: &World, user: &str) -> Carried {
    let device = started(world);
    device::allow(&mut signed_in(world, user), &device);
    Box::new(move |world| is_connected(world, &device))
}

fn way_to_a_provider(world: &World, user: &str) -> Carried {
    world.upstream.plan(|plan| plan.subject = user.to_owned());
    let mut person = Traveller::new();
    let callback = as_far_as_upstream(&world.gatepost, &mut person, &[("acr_values", "idp:up")]);
    let user = user.to_owned();
    Box::new(move |world| {
        world.upstream.plan(|plan| plan.subject = user);
        let answer = person.get(&callback);
        let answer = person.follow(&callback, answer);
        assert_eq!(claims(world, &answer)["nonce"], "the-nonce");
    })
}

const TOKEN: &str = "/connect/token";

/// Posts a form to the token endpoint as that client, with a proof by that key.
fn post_proving(world: &World, party: Party, key: &Signer, form: &[(&str, &str)]) -> Answer {
    let gatepost = &world.gatepost;
    let proof = for_form(gatepost, key, TOKEN);
    let authorization = party.secret.map(|secret| basic(party.client_id, secret));
    let mut headers = vec![("DPoP", proof.as_str())];
    let authorization = authorization.as_deref();
    headers.extend(authorization.map(|value| ("Authorization", value)));
    let mut form = form.to_vec();
    if party.secret.is_none() {
        form.push(("client_id", party.client_id));
    }
    gatepost.post(TOKEN, &headers, &form)
}

fn redeem_proving(world: &World, party: Party, key: &Signer, code: &str) -> Answer {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", party.redirect_uri),
        ("code_verifier", VERIFIER),
    ];
    post_proving(world, party, key, &form)
}

fn refresh_proving(world: &World, key: &Signer, tokens: &Value) -> Answer {
    let refresh_token = ("refresh_token", refresh(tokens));
    let form = [("grant_type", "refresh_token"), refresh_token];
    post_proving(world, PUB1, key, &form)
}

/// The refresh token of `tokens` is good with that key, and with nothing else.
fn is_of_key(world: &World, key: &Signer, tokens: &Value) {
    PUB1.assert_refresh_over(&world.gatepost, refresh(tokens));
    let other = Signer::es256("other");
    refresh_proving(world, &other, tokens).assert_error(400, "invalid_grant");
    let next = issued(&refresh_proving(world, key, tokens));
    assert_eq!(next["token_type"], "DPoP");
}

fn code_for_a_first_proof(world: &World, user: &str) -> Carried {
    let code = PUB1.code(&mut signed_in(world, user), &[("scope", OFFLINE)]);
    Box::new(move |world| {
        let key = Signer::es256("own");
        let tokens = issued(&redeem_proving(world, PUB1, &key, &code));
        assert_eq!(tokens["token_type"], "DPoP");
        is_of_key(world, &key, &tokens);
    })
}

fn refresh_token_for_a_first_proof(world: &World, user: &str) -> Carried {
    let tokens = PUB1.tokens(&world.gatepost, &mut signed_in(world, user), OFFLINE);
    Box::new(move |world| {
        let key = Signer::es256("own");
        let first = issued(&refresh_proving(world, &key, &tokens));
        is_of_key(world, &key, &first);
    })
}

fn bound_code(world: &World, user: &str) -> Carried {
    let key = Signer::es256("own");
    let bound = [("scope", OFFLINE), ("dpop_jkt", &thumbprint(&key))];
    let mut browser = signed_in(world, user);
    let code = PUB1.code(&mut browser, &bound);
    let stolen = PUB1.code(&mut browser, &bound);
    Box::new(move |world| {
        PUB1.redeem(&world.gatepost, &stolen)
            .assert_error(400, "invalid_grant");
        let tokens = issued(&redeem_proving(world, PUB1, &key, &code));
        is_of_key(world, &key, &tokens);
    })
}

fn bound_tokens(world: &World, user: &str) -> Carried {
    let key = Signer::es256("own");
    let code = PUB1.code(&mut signed_in(world, user), &[("scope", OFFLINE)]);
    let tokens = issued(&redeem_proving(world, PUB1, &key, &code));
    Box::new(move |world| {
        let gatepost = &world.gatepost;
        let token = access(&tokens);
        assert_eq!(userinfo(gatepost, token).status, 401, "without a proof");
        let proof = sign(&key, &for_token(gatepost, "/connect/userinfo", token));
        let authorization = format!("DPoP {token}");
        let headers = [("Authorization", authorization.as_str()), ("DPoP", &proof)];
        let answer = gatepost.send("GET", "/connect/userinfo", &headers, b"");
        answer.assert_status(200);
        is_of_key(world, &key, &tokens);
    })
}

fn bound_reference_token(world: &World, user: &str) -> Carried {
    let key = Signer::es256("own");
    let scope = [("scope", "openid profile orders.read")];
    let code = CONF2.code(&mut signed_in(world, user), &scope);
    let tokens = issued(&redeem_proving(world, CONF2, &key, &code));
    Box::new(move |world| {
        let told = introspect_as(&world.gatepost, ORDERS, access(&tokens));
        assert_eq!(told["active"], true);
        assert_eq!(told["token_type"], "DPoP");
        assert_eq!(told["cnf"]["jkt"], thumbprint(&key));
    })
}
