//! The demo application against a small provider made for the purpose.

use std::sync::mpsc;

use serde_json::{Value, json};

use super::id_token::tests::{SigningKey, header};
use super::*;

pub(super) fn relying_party(issuer: &str) -> RelyingParty {
    RelyingParty {
        issuer: issuer.to_owned(),
        base_url: String::from("http://localhost:8081"),
        client_id: String::from("demo"),
        client_name: String::from("Demo application"),
        allowed_roles: Vec::new(),
        client_secret: String::from("secret"),
        scope: String::from("openid roles"),
    }
}

#[derive(Debug)]
struct TokenRequest {
    authorization: String,
    body: String,
}

/// Answers discovery, keys, token and UserInfo like a provider that has just signed in Alice.
struct FakeProvider {
    issuer: String,
    requests: mpsc::Receiver<TokenRequest>,
    nonce: mpsc::Sender<String>,
}

impl FakeProvider {
    fn start(userinfo_sub: &'static str) -> FakeProvider {
        let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", server.server_addr().to_ip().unwrap());
        let (request_sender, requests) = mpsc::channel();
        let (nonce, nonces) = mpsc::channel::<String>();
        let base = issuer.clone();
        thread::spawn(move || {
            let key = SigningKey::generate();
            while let Ok(mut request) = server.recv() {
                let path = request.url().to_owned();
                let answer = match path.as_str() {
                    "/token" => {
                        request_sender
                            .send(TokenRequest::read(&mut request))
                            .unwrap();
                        token_response(&key, &base, &nonces.recv().unwrap())
                    }
                    "/keys" => key.key_set(),
                    "/userinfo" => json!({"sub": userinfo_sub, "name": "Alice", "role": ["admin"]}),
                    _ => metadata(&base),
                };
                request
                    .respond(tiny_http::Response::from_string(answer.to_string()))
                    .unwrap();
            }
        });
        FakeProvider {
            issuer,
            requests,
            nonce,
        }
    }
}

impl TokenRequest {
    fn read(request: &mut tiny_http::Request) -> TokenRequest {
        let authorization = request
            .headers()
            .iter()
            .find(|header| header.field.equiv("Authorization"));
        let authorization = authorization
            .map(|header| header.value.to_string())
            .unwrap_or_default();
        let mut body = String::new();
        request.as_reader().read_to_string(&mut body).unwrap();
        TokenRequest {
            authorization,
            body,
        }
    }
}

fn metadata(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "userinfo_endpoint": format!("{base}/userinfo"),
        "end_session_endpoint": format!("{base}/end"),
        "jwks_uri": format!("{base}/keys"),
    })
}

fn token_response(key: &SigningKey, issuer: &str, nonce: &str) -> Value {
    let claims = json!({"iss": issuer, "aud": "demo", "exp": seconds_now() + 300, "nonce": nonce, "sub": "alice-sub"});
    json!({
        "access_token": "gpa_reference", "token_type": "Bearer", "expires_in": 3600, "scope": "openid roles",
        "id_token": key.sign(&header(), &claims),
    })
}

fn get(path: &str, query: &str, cookie: Option<&str>) -> Incoming {
    Incoming {
        method: Method::Get,
        path: path.to_owned(),
        query: query.to_owned(),
        cookie: cookie.map(str::to_owned),
        body: String::new(),
    }
}

fn header_of<'a>(outgoing: &'a Outgoing, name: &str) -> &'a str {
    outgoing
        .headers
        .iter()
        .find(|(header, _)| *header == name)
        .map(|(_, value)| value.as_str())
        .unwrap()
}

fn cookie_of(outgoing: &Outgoing) -> String {
    let line = header_of(outgoing, "Set-Cookie");
    assert!(line.contains("; HttpOnly; SameSite=Lax"), "{line}");
    line.split(';')
        .next()
        .unwrap()
        .split_once('=')
        .unwrap()
        .1
        .to_owned()
}

fn parameter(url: &str, name: &str) -> String {
    let query = url.split_once('?').unwrap().1;
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .unwrap()
        .1
        .into_owned()
}

fn begin(demo: &Demo) -> (String, String) {
    let outgoing = demo.route(&get("/sign-in", "", None));
    assert_eq!(outgoing.status, 303, "{}", outgoing.body);
    (
        header_of(&outgoing, "Location").to_owned(),
        cookie_of(&outgoing),
    )
}

fn answer_query(issuer: &str, authorization_url: &str) -> String {
    let state = parameter(authorization_url, "state");
    form_urlencoded::Serializer::new(String::new())
        .append_pair("code", "the-code")
        .append_pair("state", &state)
        .append_pair("iss", issuer)
        .finish()
}

#[test]
fn a_sign_in_ends_with_claims_and_decoded_tokens_on_the_first_page() {
    let provider = FakeProvider::start("alice-sub");
    let demo = Demo::new(relying_party(&provider.issuer), Vec::new());
    let (authorization_url, cookie) = begin(&demo);
    provider
        .nonce
        .send(parameter(&authorization_url, "nonce"))
        .unwrap();
    let answer = answer_query(&provider.issuer, &authorization_url);
    let outgoing = demo.route(&get("/callback", &answer, Some(&cookie)));
    assert_eq!(
        (outgoing.status, header_of(&outgoing, "Location")),
        (303, "/"),
        "{}",
        outgoing.body
    );

    let sent = provider.requests.recv().unwrap();
    assert_eq!(sent.authorization, "Basic ZGVtbzpzZWNyZXQ=");
    let verifier = parameter(&format!("?{}", sent.body), "code_verifier");
    let challenge = parameter(&authorization_url, "code_challenge");
    use sha2::Digest;
    assert_eq!(
        json_web_token::base64url(&sha2::Sha256::digest(verifier.as_bytes())),
        challenge
    );

    let home = demo.route(&get("/", "", Some(&cookie_of(&outgoing))));
    for expected in [
        "Signed in as Alice",
        "admin",
        "alice-sub",
        "RS256",
        "reference token",
    ] {
        assert!(
            home.body.contains(expected),
            "{expected} missing in {}",
            home.body
        );
    }
    // The same answer a second time, and the handle from before: neither is worth anything.
    let again = demo.route(&get("/callback", &answer, Some(&cookie_of(&outgoing))));
    assert_eq!(again.status, 400);
    assert!(
        !demo
            .route(&get("/", "", Some(&cookie)))
            .body
            .contains("Alice")
    );
}

#[test]
fn signing_out_forgets_the_visitor() {
    let provider = FakeProvider::start("alice-sub");
    let demo = Demo::new(relying_party(&provider.issuer), Vec::new());
    let (authorization_url, cookie) = begin(&demo);
    provider
        .nonce
        .send(parameter(&authorization_url, "nonce"))
        .unwrap();
    let answer = answer_query(&provider.issuer, &authorization_url);
    let signed_in = cookie_of(&demo.route(&get("/callback", &answer, Some(&cookie))));
    let mut sign_out = get("/sign-out", "", Some(&signed_in));
    assert_eq!(
        demo.route(&sign_out).status,
        404,
        "a link must not sign anybody out"
    );
    sign_out.method = Method::Post;
    assert!(header_of(&demo.route(&sign_out), "Set-Cookie").contains("Max-Age=0"));
    assert!(
        demo.route(&get("/", "", Some(&signed_in)))
            .body
            .contains("/sign-in")
    );
}

#[test]
fn signing_out_everywhere_leads_to_the_provider_and_back() {
    let provider = FakeProvider::start("alice-sub");
    let demo = Demo::new(relying_party(&provider.issuer), Vec::new());
    let (authorization_url, cookie) = begin(&demo);
    provider
        .nonce
        .send(parameter(&authorization_url, "nonce"))
        .unwrap();
    let answer = answer_query(&provider.issuer, &authorization_url);
    let signed_in = cookie_of(&demo.route(&get("/callback", &answer, Some(&cookie))));
    let post = |path: &str, body: &str| Incoming {
        method: Method::Post,
        body: body.to_owned(),
        ..get(path, "", Some(&signed_in))
    };
    for forged in ["", "logout_token=", "logout_token=a.b.c"] {
        assert_eq!(
            demo.route(&post("/back-channel-logout", forged)).status,
            400,
            "{forged}"
        );
    }
    let outgoing = demo.route(&post("/sign-out-everywhere", ""));
    let location = header_of(&outgoing, "Location");
    assert!(
        location.starts_with(&format!("{}/end?", provider.issuer)),
        "{location}"
    );
    assert_eq!(
        parameter(location, "post_logout_redirect_uri"),
        "http://localhost:8081/"
    );
    assert_eq!(parameter(location, "id_token_hint").split('.').count(), 3);
    assert!(
        demo.route(&get("/", "", Some(&signed_in)))
            .body
            .contains("/sign-in")
    );
    // Who is not signed in has nothing to be signed out of.
    assert_eq!(
        header_of(&demo.route(&post("/sign-out-everywhere", "")), "Location"),
        "/"
    );
}

#[test]
fn a_wrong_nonce_or_another_subject_signs_nobody_in() {
    for (userinfo_sub, nonce, expected) in [
        ("alice-sub", "another-nonce", "nonce"),
        ("mallory-sub", "", "do not fit together"),
    ] {
        let provider = FakeProvider::start(userinfo_sub);
        let demo = Demo::new(relying_party(&provider.issuer), Vec::new());
        let (authorization_url, cookie) = begin(&demo);
        let nonce = if nonce.is_empty() {
            parameter(&authorization_url, "nonce")
        } else {
            nonce.to_owned()
        };
        provider.nonce.send(nonce).unwrap();
        let answer = answer_query(&provider.issuer, &authorization_url);
        let outgoing = demo.route(&get("/callback", &answer, Some(&cookie)));
        assert_eq!(outgoing.status, 400);
        assert!(outgoing.body.contains(expected), "{}", outgoing.body);
    }
}

#[test]
fn an_answer_this_browser_did_not_ask_for_reaches_no_token_endpoint() {
    let provider = FakeProvider::start("alice-sub");
    let demo = Demo::new(relying_party(&provider.issuer), Vec::new());
    let (authorization_url, cookie) = begin(&demo);
    let answer = answer_query(&provider.issuer, &authorization_url);
    assert_eq!(demo.route(&get("/callback", &answer, None)).status, 400);
    assert_eq!(
        demo.route(&get("/callback", &answer, Some("other"))).status,
        400
    );
    assert_eq!(
        demo.route(&get("/callback", "code=the-code", Some(&cookie)))
            .status,
        400
    );
    let mixed_up = answer_query("http://another-provider", &authorization_url);
    assert_eq!(
        demo.route(&get("/callback", &mixed_up, Some(&cookie)))
            .status,
        400
    );
    assert!(provider.requests.try_recv().is_err());
}

#[test]
fn a_provider_that_is_away_gives_a_readable_page() {
    let demo = Demo::new(relying_party("http://127.0.0.1:1"), Vec::new());
    let outgoing = demo.route(&get("/sign-in", "", None));
    assert_eq!(outgoing.status, 502);
    assert!(
        outgoing.body.contains("Discovery failed"),
        "{}",
        outgoing.body
    );
}

#[test]
fn over_http_pages_carry_their_policy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    start(
        listener,
        vec![relying_party("http://127.0.0.1:1")],
        Vec::new(),
        None,
    )
    .unwrap();
    let mut page = ureq::get(&base_url).call().unwrap();
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(
        page.body_mut()
            .read_to_string()
            .unwrap()
            .contains("Sign in")
    );
    let css = ureq::get(format!("{base_url}/demo.css")).call().unwrap();
    assert_eq!(css.headers()["content-type"], "text/css; charset=utf-8");
}
