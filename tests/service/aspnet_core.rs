//! What the OpenID Connect handler of ASP.NET Core 10 sends is replayed against the registration of
//! `docs/connect/aspnet.md`, and what it wants of the answers is looked for. **This is a replay**:
//! the requests were read in the handler's source (`tests/fixtures/aspnet-core-10.json`); no .NET
//! runs here.
//!
//! The handler pushes its request wherever discovery has an endpoint for that
//! (`PushedAuthorizationBehavior.UseIfAvailable`), so one that worked yesterday begins to push as
//! soon as Gatepost offers it.

use std::fs;

use serde_json::{Value, json};

use crate::support::flow::{issued, sign_in, text, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::verified;
use crate::support::tables::rows_of;

const CALLBACK: &str = "https://shop.example.com/signin-oidc";
const SECRET: &str = "a secret / of the + shop & its %41 handler";

/// The handler, with what it read of discovery.
struct Handler<'a> {
    gatepost: &'a Gatepost,
    fixture: Value,
    metadata: Value,
}

impl Handler<'_> {
    fn start(gatepost: &Gatepost) -> Handler<'_> {
        let fixture = include_str!("../fixtures/aspnet-core-10.json");
        let metadata = gatepost.get("/.well-known/openid-configuration").json();
        assert_eq!(text(&metadata, "issuer"), gatepost.base_url);
        Handler {
            gatepost,
            fixture: serde_json::from_str(fixture).unwrap(),
            metadata,
        }
    }

    /// Names and values of a part of the fixture, with its places filled in.
    fn fields(&self, part: &str, place: &str, filling: &str) -> Vec<(String, String)> {
        let fields = self.fixture[part]["fields"].as_array().unwrap();
        let filled = |value: &Value| {
            let value = value.as_str().unwrap();
            let value = value.replace("{secret}", SECRET);
            value.replace(place, filling)
        };
        let fields = fields.iter();
        fields
            .map(|field| (filled(&field[0]), filled(&field[1])))
            .collect()
    }

    /// Sends a form as .NET's `HttpClient` does.
    fn send(&self, endpoint: &str, form: &[(String, String)]) -> Answer {
        let headers = self.fields("back_channel_headers", "{}", "");
        let path = text(&self.metadata, endpoint).strip_prefix(&self.gatepost.base_url);
        self.gatepost
            .post(path.unwrap(), &borrowed(&headers), &borrowed(form))
    }

    /// Pushes the request, with values changed.
    fn push(&self, changes: &[(&str, &str)]) -> Answer {
        let mut form = self.fields("request", "{}", "");
        form.extend(self.fields("added_to_the_push", "{}", ""));
        for (changed, value) in changes {
            let mut fields = form.iter_mut();
            fields.find(|(name, _)| name == changed).unwrap().1 = (*value).to_owned();
        }
        self.send("pushed_authorization_request_endpoint", &form)
    }

    /// Where the handler sends the browser.
    fn challenge(&self) -> String {
        let has_endpoint = self.metadata["pushed_authorization_request_endpoint"].is_string();
        let mut query = if has_endpoint {
            let pushed = self.push(&[]);
            assert_eq!(pushed.status, 201, "{}", pushed.text());
            let answer = pushed.json();
            let request_uri = text(&answer, "request_uri");
            self.fields("redirect_after_the_push", "{request_uri}", request_uri)
        } else {
            self.fields("request", "{}", "")
        };
        query.extend(self.fields("added_to_each_redirect", "{}", ""));
        let endpoint = text(&self.metadata, "authorization_endpoint");
        format!("{endpoint}?{}", encode(&borrowed(&query)))
    }

    fn redeem(&self, code: &str) -> Answer {
        self.send("token_endpoint", &self.fields("redemption", "{code}", code))
    }

    fn sent(&self, name: &str) -> String {
        let fields = self.fields("request", "{}", "");
        let named = fields.into_iter().find(|(field, _)| field == name);
        named.unwrap().1
    }
}

fn borrowed(fields: &[(String, String)]) -> Vec<(&str, &str)> {
    fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// The registration of the page, with a secret in place of the file.
fn registration() -> Value {
    let page = fs::read_to_string("docs/connect/aspnet.md").unwrap();
    let (_, block) = page.split_once("```json\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut shown: Value = serde_json::from_str(block).unwrap();
    shown["clients"][0]["secrets"] = json!([{"value": SECRET}]);
    let mut document = document();
    let clients = document["clients"].as_array_mut().unwrap();
    clients.append(shown["clients"].as_array_mut().unwrap());
    document
}

fn start(settings: &[(&str, &str)]) -> Gatepost {
    Gatepost::start_with(&registration(), settings)
}

/// Opens the sign-in page, and signs alice in there.
fn signs_in(browser: &mut Browser, address: &str) -> Answer {
    let page = browser.visit(address);
    assert_eq!(page.status, 200, "{}", page.text());
    let signed = sign_in(browser, &page, "alice", ALICE_PASSWORD);
    browser.follow(signed)
}

/// What the handler does with an answer until somebody is signed in.
fn assert_takes(handler: &Handler<'_>, answer: &Answer) {
    let (mode, fields) = answer.response_to(CALLBACK);
    assert_eq!(mode, "form_post");
    // `state` leads to the cookie of the request, so every byte of it counts.
    assert_eq!(fields["state"], handler.sent("state"));
    assert_eq!(fields.get("error"), None);
    let tokens = issued(&handler.redeem(&fields["code"]));
    // It demands both (IDX21336), and keeps the third.
    for name in ["access_token", "id_token", "refresh_token"] {
        assert!(tokens[name].is_string(), "{name}: {tokens}");
    }
    let (_, claims) = verified(handler.gatepost, text(&tokens, "id_token"));
    assert_eq!(claims["iss"], handler.metadata["issuer"]);
    assert_eq!(claims["aud"], "web-aspnet");
    assert_eq!(claims["nonce"], handler.sent("nonce"));
    let info = userinfo(handler.gatepost, text(&tokens, "access_token"));
    assert_eq!(info.json()["sub"], claims["sub"]);
    // A second redemption, as by a form that is sent twice.
    let again = handler.redeem(&fields["code"]);
    assert_eq!(again.json()["error"], "invalid_grant");
}

#[test]
fn it_pushes_its_request_since_discovery_offers_that_and_is_answered_by_a_form() {
    let gatepost = start(&[]);
    let handler = Handler::start(&gatepost);
    // With `true` it would refuse to work where its own option is `Disable`.
    let demanded = "require_pushed_authorization_requests";
    assert_eq!(handler.metadata.get(demanded), None);
    let address = handler.challenge();
    let (_, query) = address.split_once('?').unwrap();
    let names: Vec<&str> = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap().0)
        .collect();
    let expected = ["client_id", "request_uri", "x-client-SKU", "x-client-ver"];
    assert_eq!(names, expected);
    let answer = signs_in(&mut gatepost.browser(), &address);
    assert_takes(&handler, &answer);
}

#[test]
fn it_signs_in_all_the_same_where_pushed_requests_are_off() {
    let gatepost = start(&[("GATEPOST_PUSHED_REQUESTS", "off")]);
    let handler = Handler::start(&gatepost);
    let address = handler.challenge();
    assert!(!address.contains("request_uri="), "{address}");
    assert!(!address.contains("client_secret"), "{address}");
    let answer = signs_in(&mut gatepost.browser(), &address);
    assert_takes(&handler, &answer);
}

#[test]
fn it_hears_that_the_person_cancelled() {
    let gatepost = start(&[]);
    let handler = Handler::start(&gatepost);
    let mut browser = gatepost.browser();
    let page = browser.visit(&handler.challenge());
    let form = [("decision", "cancel")];
    let cancelled = browser.submit(&page, &form);
    let (mode, fields) = cancelled.response_to(CALLBACK);
    assert_eq!(mode, "form_post");
    assert_eq!(fields["error"], "access_denied");
    assert_eq!(fields["state"], handler.sent("state"));
}

/// The handler reads `error` and `error_description` of JSON, puts both into its exception, and
/// throws another one for anything else. The browser never comes here.
#[test]
fn it_is_told_in_json_why_its_request_was_not_taken() {
    let gatepost = start(&[]);
    let handler = Handler::start(&gatepost);
    for [name, value, error, named] in rows_of(
        "
        client_secret | that of before                      | invalid_client      | GP1305
        redirect_uri  | http://shop.example.com/signin-oidc | invalid_request     | GP1105
        scope         | openid mail                         | invalid_scope       | GP1115
        response_type | id_token                            | unauthorized_client | GP1110
    ",
    ) {
        let told = handler.push(&[(name, value)]);
        let answer = told.json();
        let said = (told.status, text(&answer, "error"));
        assert_eq!(said, (400, error), "{name}");
        let description = text(&answer, "error_description");
        assert!(!description.is_empty(), "{name}");
        gatepost.await_log(named, |log| log.contains(named));
    }
}
