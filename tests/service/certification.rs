//! What the OpenID certification tests look at, in their order: discovery, keys, and the
//! authorization endpoint with everything that comes of it. A comment names what a line of the
//! suite asks; the token endpoint and the way out have files of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{
    LEFT_OUT, authorize_path, challenge, changed, issued, names, redeem_with, sign_in, text,
    userinfo, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::{forge, half_hash, published_keys, verified};
use crate::support::shared::Shared;
use crate::support::tables::rows_of;

const ISSUER: &str = "https://op.example";
const CONFIGURATION: &str = "/.well-known/openid-configuration";
const TYPES: [&str; 6] = [
    "code",
    "id_token",
    "id_token token",
    "code id_token",
    "code token",
    "code id_token token",
];
/// Those that come to an ID token.
const WITH_ID_TOKEN: [&str; 5] = [
    "code",
    "id_token",
    "id_token token",
    "code id_token",
    "code id_token token",
];
const WITH_QUERY: &str = "https://rp1.example/other?a=b";
const NONCE: &str = "n-0123456789abcdefghijklmnopqrstuvwxyz-._~A";
/// 128 characters, among them everything that need not be encoded.
const STATE: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW~XY";

/// The provider of the suite's alias, and the person at its browser. `rp` does not use PKCE; `asks`
/// wants consent.
struct Suite {
    op: Shared,
    browser: Browser,
}

impl Suite {
    fn start() -> Suite {
        let all = json!({
            "response_types": TYPES, "grant_types": ["authorization_code", "implicit", "refresh_token"],
            "allow_access_tokens_via_browser": true, "require_pkce": false,
            "scope": "openid profile email address phone offline_access"
        });
        let mut asks = all.clone();
        asks["require_consent"] = json!(true);
        let mut document = with_clients(document(), &[("rp", all), ("asks", asks)]);
        let demo: Value =
            serde_json::from_str(include_str!("../../src/bin/gatepost-dev/demo.json")).unwrap();
        document["users"][0]["claims"] = demo["users"][0]["claims"].clone();
        let op = Gatepost::shared_with(&document, &[("GATEPOST_BASE_URL", ISSUER)]);
        let browser = op.browser();
        Suite { op, browser }
    }

    fn signed_in() -> Suite {
        let mut suite = Suite::start();
        let page = suite.ask("code", &[]);
        suite.enter_password(&page).assert_status(303);
        suite
    }

    /// What the browser gets to see for a request of `rp`.
    fn ask(&mut self, response_type: &str, changes: &[(&str, &str)]) -> Answer {
        self.browser.visit(&path("rp", response_type, changes))
    }

    fn enter_password(&mut self, page: &Answer) -> Answer {
        assert!(shows_login(page), "{}", page.text());
        sign_in(&mut self.browser, page, "alice", ALICE_PASSWORD)
    }

    /// What the client gets, without any page.
    fn told(&mut self, response_type: &str, changes: &[(&str, &str)]) -> BTreeMap<String, String> {
        self.ask(response_type, changes).response_to(RP1).1
    }

    /// The error that the client gets, without any page.
    fn error(&mut self, response_type: &str, changes: &[(&str, &str)]) -> Option<String> {
        self.told(response_type, changes).remove("error")
    }

    /// Header and claims of the ID token of this answer, whichever endpoint it comes from.
    fn id_token(&self, got: &BTreeMap<String, String>) -> (Value, Value) {
        match got.get("id_token") {
            Some(id_token) => verified(&self.op, id_token),
            None => verified(&self.op, text(&self.tokens(got), "id_token")),
        }
    }

    fn tokens(&self, got: &BTreeMap<String, String>) -> Value {
        issued(&self.redeem(got))
    }

    fn redeem(&self, got: &BTreeMap<String, String>) -> Answer {
        redeem_with(&self.op, "rp", &got["code"], &[("code_verifier", LEFT_OUT)])
    }
}

fn path(client_id: &str, response_type: &str, changes: &[(&str, &str)]) -> String {
    let usual = [
        ("response_type", response_type),
        ("scope", "openid"),
        ("state", STATE),
        ("nonce", NONCE),
        ("code_challenge", ""),
        ("code_challenge_method", ""),
    ];
    authorize_path(client_id, RP1, &changed(&usual, changes))
}

/// The same to another address, whatever the client has registered.
fn path_to(redirect_uri: &str, changes: &[(&str, &str)]) -> String {
    let [usual, other] = [RP1, redirect_uri].map(|uri| encode(&[("redirect_uri", uri)]));
    path("rp", "code", changes).replace(&usual, &other)
}

fn shows_login(answer: &Answer) -> bool {
    answer.status == 200 && answer.text().contains("name=\"password\"")
}

fn members(value: &Value) -> BTreeSet<&str> {
    let members = value.as_array().unwrap().iter();
    members.map(|item| item.as_str().unwrap()).collect()
}

/// The metadata has all of these members in the list of that name.
#[track_caller]
fn assert_lists(metadata: &Value, name: &str, wanted: &str) {
    let listed = members(&metadata[name]);
    let mut wanted = wanted.split(' ');
    assert!(wanted.all(|one| listed.contains(one)), "{name}: {listed:?}");
}

#[test]
fn c1_discovery() {
    let mut suite = Suite::signed_in();
    // 1, 2: JSON without a redirect; the issuer is the address before the suffix, and the `iss` of
    // everything.
    let answer = suite.op.get(CONFIGURATION);
    answer.assert_status(200);
    answer.assert_header("content-type", "application/json");
    let metadata = answer.json();
    assert_eq!(metadata["issuer"], ISSUER);
    let got = suite.told("code id_token token", &[]);
    assert_eq!(got["iss"].as_str(), ISSUER);
    assert_eq!(suite.id_token(&got).1["iss"], json!(ISSUER));
    assert_eq!(verified(&suite.op, &got["access_token"]).1["iss"], ISSUER);
    // 3, 4: what must and should be there.
    let names = "authorization_endpoint token_endpoint jwks_uri userinfo_endpoint
                 check_session_iframe";
    for name in names.split_whitespace() {
        let address = text(&metadata, name);
        assert!(address.starts_with("https://op.example/"), "{name}");
    }
    let types = BTreeSet::from(TYPES);
    assert!(members(&metadata["response_types_supported"]).is_superset(&types));
    assert_eq!(metadata["subject_types_supported"], json!(["public"]));
    assert_lists(&metadata, "id_token_signing_alg_values_supported", "RS256");
    assert_lists(&metadata, "claims_supported", "sub name email address");
    // 5: every address is https.
    for (name, value) in metadata.as_object().unwrap() {
        let is_address =
            name.ends_with("_endpoint") || name.ends_with("_uri") || name.ends_with("_iframe");
        let secure = |address: &str| address.starts_with("https://");
        assert!(
            !is_address || value.as_str().is_some_and(secure),
            "{name}: {value}"
        );
        // 8: names and types. Whether each name is registered is for tests/discovery.rs.
        let is_flag = name.ends_with("_parameter_supported") || name.contains("channel_logout");
        let is_right = value.is_boolean() == is_flag && (is_flag || value.is_array());
        assert!(value.is_string() || is_right, "{name}: {value}");
    }
    // 6, 7, 9, 10
    for [name, wanted] in rows_of(
        "
        scopes_supported                      | openid profile email address phone offline_access
        grant_types_supported                 | authorization_code implicit refresh_token
        token_endpoint_auth_methods_supported | client_secret_basic client_secret_post
        code_challenge_methods_supported      | S256
    ",
    ) {
        assert_lists(&metadata, name, wanted);
    }
    assert_eq!(metadata["request_parameter_supported"], false);
    assert_eq!(metadata["request_uri_parameter_supported"], false);
    let of_objects = "request_object_signing_alg_values_supported";
    assert_eq!(metadata.get(of_objects), None);
    // 11: canonical BCP 47.
    for locale in members(&metadata["ui_locales_supported"]) {
        let (language, rest) = locale.split_once('-').unwrap_or((locale, "Hans"));
        let title = rest.starts_with(|first: char| first.is_ascii_uppercase());
        let small = language.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(small && title, "{locale}");
    }
    // 12: each acr value may be asked for, and one of them comes back.
    let supported = members(&metadata["acr_values_supported"]);
    for acr in &supported {
        let got = suite.told("id_token", &[("acr_values", acr)]);
        let (_, claims) = suite.id_token(&got);
        assert!(supported.contains(text(&claims, "acr")), "{acr}");
    }
}

#[test]
fn c2_keys() {
    let mut suite = Suite::signed_in();
    // 1, 2: public, complete, each with a name of its own.
    let keys = published_keys(&suite.op);
    let kids: BTreeSet<&str> = keys.iter().map(|key| text(key, "kid")).collect();
    assert!(kids.len() == keys.len() && kids.iter().all(|kid| !kid.trim().is_empty()));
    for key in &keys {
        assert!(key["use"] == "sig", "{key}");
        assert!(key["alg"].is_string() && key["kty"].is_string(), "{key}");
        let mut private = "d p q dp dq qi k".split(' ');
        assert!(private.all(|name| key.get(name).is_none()), "{key}");
        for value in ["n", "e", "x", "y"]
            .iter()
            .filter_map(|name| key.get(*name))
        {
            let number = crate::support::jwt::base64url(value.as_str().unwrap());
            assert!(!number.is_empty(), "{key}");
        }
    }
    // 3: a rotated key has a new name and new material, the old one stays for a while; `kid` names
    // the one that signed.
    let old = suite.told("id_token", &[])["id_token"].clone();
    suite.op.run_well(&["key", "rotate", "--now"], "");
    suite.op.settle();
    let new = suite.told("id_token", &[])["id_token"].clone();
    let kid = |id_token: &str| text(&verified(&suite.op, id_token).0, "kid").to_owned();
    assert!(kids.contains(kid(&old).as_str()) && !kids.contains(kid(&new).as_str()));
    let keys = published_keys(&suite.op);
    let moduli: Vec<&Value> = keys.iter().filter_map(|key| key.get("n")).collect();
    assert!(moduli.len() == 2 && moduli[0] != moduli[1]);
}

#[test]
fn c3_what_comes_in() {
    let mut suite = Suite::signed_in();
    // 1: a form post does what the query does.
    let request = path("rp", "code", &[]);
    let (_, query) = request.split_once('?').unwrap();
    let mut connection = suite.op.connect();
    let posted = connection.post_raw("/connect/authorize", &[], query.as_bytes());
    let (_, got) = suite.browser.follow(posted).response_to(RP1);
    assert_eq!(got["state"], STATE);
    // 2, 3: order, unknown parameters, and everything that must not be an error.
    let reversed = query.split('&').rev().collect::<Vec<_>>().join("&");
    let answer = suite.browser.get(&format!("/connect/authorize?{reversed}"));
    answer.assert_carries("code");
    let hint = suite.told("id_token", &[])["id_token"].clone();
    let claims =
        r#"{"userinfo":{"name":{"essential":true}},"id_token":{"auth_time":{"essential":true}}}"#;
    let challenge = challenge();
    for (name, value) in [
        ("extra", "foobar"),
        ("scope", "email openid profile"),
        ("display", "popup"),
        ("display", "page"),
        ("ui_locales", "se"),
        ("claims_locales", "se"),
        ("login_hint", "buffy@rp1.example"),
        ("login_hint", "\u{1f9db}"),
        ("acr_values", "urn:mace:incommon:iap:silver 1 2"),
        ("claims", claims),
        ("id_token_hint", &hint),
        ("code_challenge", &challenge),
        ("nonce", "0123456789-._~0123456789-._~0123456789-._~0"),
    ] {
        let further = if name == "code_challenge" {
            ("code_challenge_method", "S256")
        } else {
            ("x", "y")
        };
        for response_type in TYPES {
            let got = suite.told(response_type, &[(name, value), further]);
            let is_good = !got.contains_key("error") && got["state"] == STATE;
            assert!(is_good, "{response_type} {name}={value}: {got:?}");
        }
    }
    let page = suite.ask("code", &[("prompt", "consent")]);
    page.assert_says("asks for access");
    // 4, 5: the redirect URI comes first, is compared byte for byte, and its query stays.
    for wrong in [
        &format!("{RP1}/extra"),
        &format!("{RP1}?foo=bar"),
        "https://rp1.example/other?a=c",
        "https://rp1.example/other",
        "",
    ] {
        for mode in ["", "form_post"] {
            let mode = ("response_mode", mode);
            let request = path_to(wrong, &[mode, ("scope", "nope"), ("response_type", "x")]);
            let answer = suite.browser.get(&request);
            answer.assert_error_page(400, "GP110", wrong);
        }
    }
    let answer = suite.browser.get(&path_to(WITH_QUERY, &[]));
    answer.assert_leads_to("https://rp1.example/other?a=b&code=");
    // 6: without a type there is nothing to imply a fragment.
    for (mode, place) in [("", "query"), ("form_post", "form_post")] {
        let changes = [("response_type", ""), ("response_mode", mode)];
        let (went, told) = suite.ask("code", &changes).response_to(RP1);
        assert_eq!(went, place);
        assert_eq!(told["error"], "invalid_request", "{place}");
        assert_eq!(told["state"], STATE, "{place}");
    }
    // 7: nonce.
    for response_type in TYPES {
        let error = suite.error(response_type, &[("nonce", "")]);
        let needs_one = response_type.split(' ').any(|word| word == "id_token");
        let wanted = needs_one.then_some("invalid_request");
        assert_eq!(error.as_deref(), wanted, "{response_type}");
    }
    // 8: request objects; `state` may be in there alone.
    let inside = json!({"state": "inside", "nonce": "x"});
    let object = forge(&json!({"alg": "none"}), &inside, |_| Vec::new());
    let outside = [("request", &*object), ("state", ""), ("nonce", "")];
    let got = suite.told("code", &outside);
    assert_eq!(got["error"].as_str(), "request_not_supported");
    assert_eq!(got["state"].as_str(), "inside");
    let request_uri = ("request_uri", "https://rp1.example/request.jwt#hash");
    let error = suite.error("code", &[request_uri]).unwrap();
    assert_eq!(error, "request_uri_not_supported");
    // 9: PKCE with the longest verifier; it is optional for this client.
    let verifier = "v".repeat(128);
    let challenge = base64_sha256(&verifier);
    let method = ("code_challenge_method", "S256");
    let got = suite.told("code", &[("code_challenge", &challenge), method]);
    let verifier = [("code_verifier", &*verifier)];
    issued(&redeem_with(&suite.op, "rp", &got["code"], &verifier));
    let got = suite.told("code", &[]);
    suite.tokens(&got);
}

fn base64_sha256(text: &str) -> String {
    use base64::Engine;
    use sha2::Digest;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(text))
}

#[test]
fn c4_the_session() {
    let mut suite = Suite::start();
    // 1: without a session there is an error; with one the same person at once.
    for response_type in TYPES {
        let error = suite.error(response_type, &[("prompt", "none")]);
        assert_eq!(error.unwrap(), "login_required", "{response_type}");
    }
    // 9: a bad request is refused before any page.
    let error = suite.error("id_token", &[("nonce", "")]);
    assert_eq!(error.unwrap(), "invalid_request");
    // 8: everything survives the login page, posted requests too.
    let request = path("rp", "code id_token", &[("response_mode", "form_post")]);
    let (_, query) = request.split_once('?').unwrap();
    let mut connection = suite.op.connect();
    let posted = connection.post_raw("/connect/authorize", &[], query.as_bytes());
    let page = suite.browser.follow(posted);
    let (went, got) = suite.enter_password(&page).response_to(RP1);
    assert_eq!((went, got["state"].as_str()), ("form_post", STATE));
    let (_, first) = suite.id_token(&got);
    assert_eq!(first["nonce"], NONCE);
    for response_type in WITH_ID_TOKEN {
        let got = suite.told(response_type, &[("prompt", "none")]);
        let (_, claims) = suite.id_token(&got);
        assert_eq!(claims["sub"], first["sub"], "{response_type}");
        assert_eq!(claims["auth_time"], first["auth_time"], "{response_type}");
    }
    // 2: consent that was given is remembered.
    let page = suite.browser.visit(&path("asks", "code", &[]));
    let allowed = suite.browser.decide(&page, "allow", &[], true);
    allowed.assert_carries("code");
    let silently = suite
        .browser
        .get(&path("asks", "code", &[("prompt", "none")]));
    silently.assert_carries("code");
    // 3, 5: prompt=login asks although there is a session, tells a later time, and does not ask
    // twice.
    sleep(Duration::from_millis(2_100));
    let page = suite.ask("code", &[("prompt", "login")]);
    let got = suite.enter_password(&page).response_to(RP1).1;
    let (_, second) = suite.id_token(&got);
    assert!(second["auth_time"].as_i64() > first["auth_time"].as_i64());
    assert!(second["sub"] == first["sub"]);
    // 4: a session that is young enough is not asked, one that is not is.
    let young = suite.told("code", &[("max_age", "15000")]);
    assert_eq!(suite.id_token(&young).1["auth_time"], second["auth_time"]);
    sleep(Duration::from_millis(2_100));
    let page = suite.ask("code", &[("max_age", "1")]);
    let got = suite.enter_password(&page).response_to(RP1).1;
    let (_, third) = suite.id_token(&got);
    assert!(third["auth_time"].as_i64() > second["auth_time"].as_i64());
    let page = suite.ask("code", &[("max_age", "0")]);
    suite.enter_password(&page).assert_carries("code");
    // 6: one's own ID token is a hint.
    let hint = suite.told("id_token", &[])["id_token"].clone();
    let hinted = [("prompt", "none"), ("id_token_hint", &*hint)];
    let got = suite.told("code id_token", &hinted);
    assert_eq!(suite.id_token(&got).1["sub"], first["sub"]);
    // 7: a login hint stands in the form.
    let mut other = suite.op.browser();
    let page = other.visit(&path("rp", "code", &[("login_hint", "bob@rp1.example")]));
    let username = page.attribute("name=\"username\"", "value");
    assert_eq!(username.as_deref(), Some("bob@rp1.example"));
}

#[test]
fn c5_what_comes_back() {
    let mut suite = Suite::signed_in();
    let mut codes = BTreeSet::new();
    for response_type in TYPES {
        // 1, 3: the place, for success and error; the state of either.
        let went = match response_type {
            "code" => "query",
            _ => "fragment",
        };
        for (mode, went) in [("", went), ("form_post", "form_post")] {
            let answer = suite.ask(response_type, &[("response_mode", mode)]);
            let (arrived, got) = answer.response_to(RP1);
            assert_eq!(arrived, went);
            assert_eq!(got["state"].as_str(), STATE);
            assert_eq!(got["iss"].as_str(), ISSUER);
            let stateless = [("response_mode", mode), ("state", "")];
            let stateless = suite.told(response_type, &stateless);
            assert!(!stateless.contains_key("state"));
            let changes = [
                ("response_mode", mode),
                ("prompt", "none"),
                ("max_age", "0"),
            ];
            let (arrived, error) = suite.ask(response_type, &changes).response_to(RP1);
            assert_eq!(arrived, went);
            assert_eq!(error["state"].as_str(), STATE);
            assert_eq!(error["error"].as_str(), "login_required");
            // 6: nothing beside the error's own parameters, and plain words.
            let allowed = "error error_description error_uri state session_state iss";
            for name in error.keys() {
                assert!(allowed.split(' ').any(|one| one == name), "{error:?}");
            }
            let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            assert!(error["error_description"].bytes().all(plain));
            // 4: what belongs to an access token.
            if got.contains_key("access_token") {
                assert!(got["token_type"] == "Bearer");
                assert!(got["expires_in"].parse::<u32>().unwrap() > 0);
            }
            // 7: codes.
            if let Some(code) = got.get("code") {
                let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                assert!(code.len() >= 43, "{code}");
                assert!(code.bytes().all(safe), "{code}");
                assert!(codes.insert(code.clone()), "{code}");
            }
        }
    }
    // 2: the page that posts: escaped, with a script its policy lets run.
    let odd = [("response_mode", "form_post"), ("state", "\"'<>&")];
    let answer = suite.ask("code id_token", &odd);
    answer.assert_says("value=\"&quot;");
    answer.assert_says("&lt;&gt;&amp;");
    let policy = answer.header("content-security-policy").unwrap();
    policy.assert_says("script-src 'self'");
    assert_eq!(answer.fields()["state"], "\"'<>&");
}

#[test]
fn c6_the_id_token() {
    let mut suite = Suite::signed_in();
    let asked = [
        ("max_age", "15000"),
        ("acr_values", "1"),
        ("scope", "openid profile"),
    ];
    for response_type in WITH_ID_TOKEN {
        let got = suite.told(response_type, &asked);
        let (header, claims) = suite.id_token(&got);
        // 1 to 5, 9
        assert!(header["alg"] == "RS256", "{header}");
        assert!(header["kid"].is_string(), "{header}");
        assert!(text(&claims, "sub").len() <= 255 && text(&claims, "sub").is_ascii());
        assert_eq!(claims["iss"], json!(ISSUER));
        assert_eq!(claims["aud"], "rp");
        assert_eq!(claims["acr"], "1");
        for time in ["exp", "iat", "auth_time"] {
            assert!(claims[time].is_i64(), "{claims}");
        }
        assert!(!text(&claims, "sid").is_empty());
        if response_type != "code" {
            let hash = |name: &str| got.get(name).map(|token| json!(half_hash("RS256", token)));
            for (member, token) in [("at_hash", "access_token"), ("c_hash", "code")] {
                let told = claims.get(member).cloned();
                assert_eq!(told, hash(token), "{response_type} {member}");
            }
        }
        // 6: claims of scopes only where no access token tells them. 7: nothing unusual.
        let tells_name = claims.get("name").is_some();
        assert_eq!(
            tells_name,
            response_type == "id_token",
            "{response_type}: {claims}"
        );
        for unusual in ["idp", "role", "tenant"] {
            assert_eq!(claims.get(unusual), None, "{claims}");
        }
        // 8: the same person at both endpoints.
        if got.contains_key("code") && got.contains_key("id_token") {
            let (_, back) = verified(&suite.op, text(&suite.tokens(&got), "id_token"));
            assert_eq!(back["sub"], claims["sub"], "{response_type}");
            assert_eq!(back["iss"], claims["iss"], "{response_type}");
        }
    }
    // 2: no nonce is echoed that was not sent.
    let got = suite.told("code", &[("nonce", "")]);
    assert_eq!(suite.id_token(&got).1.get("nonce"), None);
}

#[test]
fn c7_userinfo() {
    let mut suite = Suite::signed_in();
    let scope = "openid profile email address phone offline_access";
    let got = suite.told("code id_token token", &[("scope", scope)]);
    let (_, id_token) = suite.id_token(&got);
    let tokens = suite.tokens(&got);
    // 1, 2: GET, POST with the header, POST with the token in the form; whatever the scheme's case.
    let token = text(&tokens, "access_token");
    let told = userinfo(&suite.op, token);
    told.assert_status(200);
    told.assert_member("sub", id_token["sub"].clone());
    let told = told.json();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let header = format!("{scheme} {token}");
        for method in ["GET", "POST"] {
            let headers = [("Authorization", &*header)];
            let answer = suite.op.send(method, "/connect/userinfo", &headers, b"");
            assert_eq!(answer.json(), told, "{method} {scheme}");
        }
    }
    let form = [("access_token", token)];
    let answer = suite.op.post("/connect/userinfo", &[], &form);
    assert_eq!(answer.json(), told);
    // 3: tokens of every flow, and refreshed ones.
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&tokens, "refresh_token")),
    ];
    let refreshed = issued(&suite.op.token("rp", &refresh));
    let refreshed = userinfo(&suite.op, text(&refreshed, "access_token"));
    assert_eq!(refreshed.json(), told);
    for response_type in ["id_token token", "code token", "code id_token token"] {
        let got = suite.told(response_type, &[]);
        let told = userinfo(&suite.op, &got["access_token"]).json();
        assert_eq!(told, json!({"sub": id_token["sub"]}), "{response_type}");
    }
    // 7: what a code's second use revoked, and what never was one.
    let got = suite.told("code", &[]);
    let tokens = suite.tokens(&got);
    suite.redeem(&got).assert_status(400);
    for dead in [text(&tokens, "access_token"), "unknown"] {
        let answer = userinfo(&suite.op, dead);
        answer.assert_status_for(dead, 401);
        let challenge = answer.header("www-authenticate").unwrap();
        challenge.assert_says_for(dead, "invalid_token");
    }
}

/// Whether a claim has the type its name asks for.
fn fits(name: &str, value: &Value) -> bool {
    let is_text = |text: &str| !text.trim().is_empty() && text != "null";
    let is_text = |value: &Value| value.as_str().is_some_and(is_text);
    let is_time = |seconds: i64| (631_152_000..=4_000_000_000).contains(&seconds);
    let is_date = |date: &str| date.len() == 10 && date > "1850";
    match (name, value) {
        ("email_verified" | "phone_number_verified", _) => value.is_boolean(),
        ("updated_at", _) => value.as_i64().is_some_and(is_time),
        ("address", Value::Object(address)) => address.values().all(is_text),
        ("birthdate", _) => value.as_str().is_some_and(is_date),
        _ => is_text(value),
    }
}

#[test]
fn c7_user_data() {
    let mut suite = Suite::signed_in();
    // 4, 5: every standard claim of its scope and in its type; 6: of no other.
    let profile = "birthdate family_name gender given_name locale middle_name name nickname picture preferred_username \
        profile sub updated_at website zoneinfo";
    for (scope, expected) in [
        ("profile", profile),
        ("email", "email email_verified sub"),
        ("address", "address sub"),
        ("phone", "phone_number phone_number_verified sub"),
    ] {
        let got = suite.told("id_token token", &[("scope", &format!("openid {scope}"))]);
        let claims = userinfo(&suite.op, &got["access_token"]).json();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(names(&claims), expected, "{scope}");
        for (name, value) in claims.as_object().unwrap() {
            assert!(fits(name, value), "{name}: {value}");
        }
    }
    let claims = r#"{"userinfo":{"name":{"essential":true}}}"#;
    let got = suite.told("id_token token", &[("claims", claims)]);
    let told = userinfo(&suite.op, &got["access_token"]).json();
    told.assert_members("name sub");
}
