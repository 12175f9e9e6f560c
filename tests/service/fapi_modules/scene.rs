//! What the suite plays: two clients of the profile with their keys, a browser, and each request of
//! the flow, in which a module changes what it looks at.

use std::cell::RefCell;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::flow::{LEFT_OUT, VERIFIER, challenge, issued, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, RP2};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::verified;
use crate::support::postgres::TestDatabase;
use crate::support::proofs;
use crate::support::scim;
use crate::support::shared::Shared;
use crate::support::signer::{Signer, key_set, now};

pub const PAR: &str = "/connect/par";
pub const TOKEN: &str = "/connect/token";
pub const USERINFO: &str = "/connect/userinfo";
pub const SCOPE: &str = "openid profile";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The second client's address has a query, as the suite's has.
pub const DUMMY: &str = "https://rp2.example/cb?dummy1=lorem&dummy2=ipsum";

/// A client of the suite.
pub struct Party {
    pub client_id: &'static str,
    pub redirect_uri: &'static str,
    /// Signs its assertions.
    pub key: Signer,
    /// Signs its proofs.
    pub prover: Signer,
}

pub struct Suite {
    pub op: Shared,
    pub browser: Browser,
    pub first: &'static Party,
    pub second: &'static Party,
    /// How far the provider's clock was set forward.
    ahead: u64,
    /// The last that came.
    nonce: RefCell<Option<String>>,
}

static FIRST: LazyLock<Party> = LazyLock::new(|| Party {
    client_id: "bank-1",
    redirect_uri: RP1,
    key: Signer::es256("first"),
    prover: Signer::es256("first-prover"),
});
static SECOND: LazyLock<Party> = LazyLock::new(|| Party {
    client_id: "bank-2",
    redirect_uri: DUMMY,
    key: Signer::ed25519("second"),
    prover: Signer::ed25519("second-prover"),
});

impl Suite {
    pub fn start() -> Suite {
        Suite::over(Gatepost::shared_with(&registered(), &settings()))
    }

    /// The same with a clock that [`Suite::wait`] sets forward.
    pub fn start_with_a_clock_of_its_own() -> Suite {
        let database = TestDatabase::with_a_clock_of_its_own();
        let mut op = Gatepost::prepare_over(database, &settings());
        op.apply(&registered());
        op.serve();
        Suite::over(Shared::from(op))
    }

    fn over(op: Shared) -> Suite {
        let browser = op.browser();
        Suite {
            op,
            browser,
            first: &FIRST,
            second: &SECOND,
            ahead: 0,
            nonce: RefCell::new(None),
        }
    }

    /// Waits so long, as the provider sees it.
    pub fn wait(&mut self, seconds: u32) {
        self.op.travel(seconds);
        self.ahead += u64::from(seconds);
    }

    pub fn now(&self) -> u64 {
        now() + self.ahead
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.op.base_url)
    }

    /// The claims of a good assertion.
    pub fn assertion_claims(&self, party: &Party) -> Value {
        let now = self.now();
        json!({
            "iss": party.client_id, "sub": party.client_id, "aud": self.op.base_url, "jti": random_text(22),
            "iat": now, "nbf": now, "exp": now + 60,
        })
    }

    /// A good assertion with claims changed; one changed to `null` is left out.
    pub fn assertion(&self, party: &Party, changes: &[(&str, Value)]) -> String {
        let mut claims = self.assertion_claims(party);
        change(&mut claims, changes);
        party.key.sign(&claims)
    }

    /// A good proof.
    pub fn proof<'k>(&self, key: &'k Signer, method: &str, path: &str) -> Proof<'k> {
        let mut claims = json!({
            "jti": random_text(22), "htm": method, "htu": self.url(path), "iat": self.now(),
        });
        if let Some(nonce) = self.nonce.borrow().as_ref() {
            claims["nonce"] = json!(nonce);
        }
        let header = proofs::header(key);
        Proof {
            key,
            header,
            claims,
        }
    }

    /// A push of a good request, without a proof.
    pub fn push<'s>(&'s self, party: &'s Party) -> Call<'s> {
        let challenge = challenge();
        let call = Call::new(self, party, PAR);
        [
            ("response_type", "code"),
            ("redirect_uri", party.redirect_uri),
            ("scope", SCOPE),
            ("state", "a-state-of-the-suite"),
            ("nonce", "a-nonce-of-the-suite"),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ]
        .into_iter()
        .fold(call, |call, (name, value)| call.with(name, value))
    }

    /// A redemption by the client that got the code, with a proof by its key.
    pub fn redemption<'s>(&'s self, party: &'s Party, code: &str) -> Call<'s> {
        Call::new(self, party, TOKEN)
            .proving(&party.prover)
            .with("grant_type", "authorization_code")
            .with("code", code)
            .with("redirect_uri", party.redirect_uri)
            .with("code_verifier", VERIFIER)
    }

    pub fn refresh<'s>(&'s self, party: &'s Party, refresh_token: &str) -> Call<'s> {
        Call::new(self, party, TOKEN)
            .proving(&party.prover)
            .with("grant_type", "refresh_token")
            .with("refresh_token", refresh_token)
    }

    pub fn client_credentials<'s>(&'s self, party: &'s Party) -> Call<'s> {
        Call::new(self, party, TOKEN)
            .proving(&party.prover)
            .with("grant_type", "client_credentials")
            .with("scope", "scim.read")
    }

    /// Where the browser goes after a push.
    pub fn authorize_path(
        &self,
        client_id: &str,
        request_uri: &str,
        further: &[(&str, &str)],
    ) -> String {
        let own = [("client_id", client_id), ("request_uri", request_uri)];
        format!("/connect/authorize?{}", encode(&[&own, further].concat()))
    }

    /// Opens an address and signs in where that is asked.
    pub fn open(&mut self, path: &str) -> Answer {
        let page = self.browser.visit(path);
        if page.status != 200 {
            return page;
        }
        let signed_in = sign_in(&mut self.browser, &page, "alice", ALICE_PASSWORD);
        self.browser.follow(signed_in)
    }

    /// The answer to a request that was pushed, back at the first client.
    pub fn answer_to(&mut self, pushed: &Answer) -> Answer {
        let path = self.authorize_path(self.first.client_id, &request_uri(pushed), &[]);
        self.open(&path)
    }

    /// A code of the first client's, to whose request these parameters were changed.
    pub fn code(&mut self, changes: &[(&str, &str)]) -> String {
        let pushed = changes
            .iter()
            .fold(self.push(self.first), |call, (name, value)| {
                call.with(name, value)
            })
            .send();
        let answer = self.answer_to(&pushed);
        code_in(self, &answer, RP1)
    }

    /// Tokens of the first client's.
    pub fn tokens(&mut self, changes: &[(&str, &str)]) -> Value {
        let code = self.code(changes);
        let answer = self.redemption(self.first, &code).send();
        self.assert_tokens(self.first, &answer)
    }

    /// What the suite looks at in each answer with tokens.
    pub fn assert_tokens(&self, party: &Party, answer: &Answer) -> Value {
        let tokens = issued(answer);
        assert_eq!(text(&tokens, "token_type"), "DPoP");
        assert!(tokens["expires_in"].as_u64().unwrap() > 0);
        assert!(text(&tokens, "access_token").len() >= 22);
        if let Some(id_token) = tokens["id_token"].as_str() {
            let (header, claims) = verified(&self.op, id_token);
            assert!(
                ["ES256", "EdDSA"].contains(&text(&header, "alg")),
                "{header}"
            );
            assert_eq!(text(&claims, "iss"), self.op.base_url);
            assert_eq!(text(&claims, "aud"), party.client_id);
            assert!(claims["exp"].as_u64().unwrap() > self.now());
        }
        tokens
    }

    /// Asks a resource for something with proofs that `make` turns into headers, once more where a
    /// nonce is asked for.
    pub fn resource(
        &self,
        resource: &Resource<'_>,
        make: &dyn Fn(Proof<'_>) -> Vec<(String, String)>,
    ) -> Answer {
        let mut answer = self.resource_once(resource, make);
        if self.asks_for_nonce(&answer) {
            answer = self.resource_once(resource, make);
        }
        answer
    }

    fn resource_once(
        &self,
        resource: &Resource<'_>,
        make: &dyn Fn(Proof<'_>) -> Vec<(String, String)>,
    ) -> Answer {
        let mut proof = self.proof(&resource.party.prover, "GET", resource.path);
        proof.claims["ath"] = json!(proofs::hash(resource.access_token));
        let mut headers = make(proof);
        let authorization = format!("{} {}", resource.scheme, resource.access_token);
        headers.push((String::from("Authorization"), authorization));
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.op.connect().send("GET", resource.path, &headers, b"")
    }

    /// Whether the answer wants nothing but a nonce, which is kept.
    fn asks_for_nonce(&self, answer: &Answer) -> bool {
        let nonces = answer.headers_named("dpop-nonce");
        assert!(nonces.len() <= 1, "{nonces:?}");
        if let Some(nonce) = nonces.first() {
            *self.nonce.borrow_mut() = Some((*nonce).to_owned());
        }
        let challenges = answer.headers_named("www-authenticate").join(" ");
        let asks = challenges.contains("use_dpop_nonce")
            || (answer.status == 400 && answer.text().contains("use_dpop_nonce"));
        assert!(!asks || nonces.len() == 1, "{}", answer.text());
        asks
    }

    pub fn has_nonce(&self) -> bool {
        self.nonce.borrow().is_some()
    }

    pub fn forget_nonce(&self) {
        *self.nonce.borrow_mut() = None;
    }

    /// UserInfo for the first client's token, as it should be asked.
    pub fn userinfo(&self, tokens: &Value) -> Answer {
        let resource = Resource::userinfo(self.first, text(tokens, "access_token"));
        self.resource(&resource, &|proof| vec![proof.header_line()])
    }
}

/// A protected resource, and the token for it.
pub struct Resource<'r> {
    pub party: &'r Party,
    pub path: &'r str,
    pub scheme: &'r str,
    pub access_token: &'r str,
}

impl<'r> Resource<'r> {
    pub fn userinfo(party: &'r Party, access_token: &'r str) -> Resource<'r> {
        Resource {
            party,
            path: USERINFO,
            scheme: "DPoP",
            access_token,
        }
    }
}

pub struct Proof<'k> {
    pub key: &'k Signer,
    pub header: Value,
    pub claims: Value,
}

impl Proof<'_> {
    pub fn text(&self) -> String {
        self.key.sign_under(&self.header, &self.claims)
    }

    pub fn header_line(&self) -> (String, String) {
        (String::from("DPoP"), self.text())
    }
}

/// A form that a client posts.
pub struct Call<'s> {
    suite: &'s Suite,
    party: &'s Party,
    path: &'s str,
    form: Vec<(String, String)>,
    assertion: Option<String>,
    key: Option<&'s Signer>,
    proof_changes: Vec<(&'s str, Value)>,
}

impl<'s> Call<'s> {
    fn new(suite: &'s Suite, party: &'s Party, path: &'s str) -> Call<'s> {
        Call {
            suite,
            party,
            path,
            form: Vec::new(),
            assertion: Some(suite.assertion(party, &[])),
            key: None,
            proof_changes: Vec::new(),
        }
    }

    /// With another value of a parameter, or without it.
    pub fn with(mut self, name: &str, value: &str) -> Call<'s> {
        self.form.retain(|(known, _)| known != name);
        if value != LEFT_OUT {
            self.form.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub fn asserting(self, assertion: String) -> Call<'s> {
        Call {
            assertion: Some(assertion),
            ..self
        }
    }

    /// With the `client_id` alone.
    pub fn unasserted(self) -> Call<'s> {
        let client_id = self.party.client_id;
        Call {
            assertion: None,
            ..self.with("client_id", client_id)
        }
    }

    pub fn proving(self, key: &'s Signer) -> Call<'s> {
        Call {
            key: Some(key),
            ..self
        }
    }

    pub fn unproved(self) -> Call<'s> {
        Call { key: None, ..self }
    }

    /// With another value of a claim in the proof.
    pub fn proof_with(mut self, name: &'s str, value: Value) -> Call<'s> {
        self.proof_changes.push((name, value));
        self
    }

    /// Posts it, once more with the same assertion where a nonce is asked for: nothing is spent by
    /// then.
    pub fn send(self) -> Answer {
        let answer = self.send_once();
        match self.suite.asks_for_nonce(&answer) {
            true => self.send_once(),
            false => answer,
        }
    }

    fn send_once(&self) -> Answer {
        let mut form: Vec<(&str, &str)> = self
            .form
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if let Some(assertion) = &self.assertion {
            form.push(("client_assertion_type", ASSERTION_TYPE));
            form.push(("client_assertion", assertion));
        }
        let proof = self.key.map(|key| {
            let mut proof = self.suite.proof(key, "POST", self.path);
            change(&mut proof.claims, &self.proof_changes);
            proof.text()
        });
        let headers: Vec<(&str, &str)> =
            proof.iter().map(|proof| ("DPoP", proof.as_str())).collect();
        self.suite.op.post(self.path, &headers, &form)
    }
}

/// An address of the default port, as a provider in use has.
fn settings() -> [(&'static str, &'static str); 2] {
    [
        scim::ON[0],
        ("GATEPOST_BASE_URL", "https://login.bank.example"),
    ]
}

fn registered() -> Value {
    let by_reference =
        json!({"access_token_type": "reference", "id_token_signed_response_alg": "EdDSA"});
    let mut registered = scim::registered();
    registered["clients"]
        .as_array_mut()
        .unwrap()
        .extend([client(&FIRST, json!({})), client(&SECOND, by_reference)]);
    registered
}

fn client(party: &Party, changes: Value) -> Value {
    let mut client = json!({
        "client_id": party.client_id, "profile": "fapi2", "redirect_uris": [party.redirect_uri, RP2],
        "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
        "scope": "openid profile email offline_access scim.read", "jwks": key_set(&[&party.key]),
    });
    for (name, value) in changes.as_object().unwrap() {
        client[name] = value.clone();
    }
    client
}

/// Lays changes over an object; `null` takes a member away.
pub fn change(object: &mut Value, changes: &[(&str, Value)]) {
    let members = object.as_object_mut().unwrap();
    for (name, value) in changes {
        drop(match value.is_null() {
            true => members.remove(*name),
            false => members.insert((*name).to_owned(), value.clone()),
        });
    }
}

/// Text of so many characters that nobody has seen before.
pub fn random_text(length: usize) -> String {
    let mut bytes = vec![0; length];
    aws_lc_rs::rand::fill(&mut bytes).unwrap();
    let mut text = URL_SAFE_NO_PAD.encode(bytes);
    text.truncate(length);
    text
}

pub fn request_uri(pushed: &Answer) -> String {
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    assert!(pushed.json()["expires_in"].as_u64().unwrap() < 600);
    text(&pushed.json(), "request_uri").to_owned()
}

/// The code in the answer to a request, which must go to this address and say whose it is.
pub fn code_in(suite: &Suite, answer: &Answer, redirect_uri: &str) -> String {
    let location = answer.location();
    assert!(location.starts_with(redirect_uri), "{location}");
    assert_eq!(answer.status, 303);
    let query = answer.query();
    assert_eq!(query["iss"], suite.op.base_url);
    let code = query["code"].clone();
    assert!(code.len() >= 22, "{code}");
    code
}

/// Asserts an error in JSON that has one of these statuses and errors.
pub fn assert_error(answer: &Answer, statuses: &[u16], errors: &[&str]) {
    assert!(
        statuses.contains(&answer.status),
        "{}: {}",
        answer.status,
        answer.text()
    );
    let content_type = answer.header("content-type").unwrap();
    assert!(
        content_type.starts_with("application/json"),
        "{content_type}"
    );
    let told = answer.json();
    assert!(errors.contains(&text(&told, "error")), "{told}");
    let description = told["error_description"].as_str().unwrap_or_default();
    let is_plain = |byte: u8| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    assert!(description.bytes().all(is_plain), "{description}");
}
