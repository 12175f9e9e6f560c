//! Somebody else's OpenID provider, on loopback: it signs everybody in at once, remembers what it
//! was asked, and misbehaves as a test tells it. Written without any code of the product.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::http::encode;
use super::jwt::{forge, half_hash};
use super::secrets;
use super::signer::{Signer, key_set, now};

/// What a Gatepost is registered as there; the secret has every character that form encoding
/// changes.
pub const CLIENT_ID: &str = "gatepost:here";
pub const CLIENT_SECRET: &str = "upstream secret +%&=/?:~ of some length";
/// Who signs in there, unless a test says otherwise.
pub const SUBJECT: &str = "248289761001";

/// Where a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Discovery,
    Jwks,
    Authorize,
    Token,
    UserInfo,
    Emails,
    EndSession,
}

impl Place {
    pub const ALL: [Place; 7] = [
        Place::Discovery,
        Place::Jwks,
        Place::Authorize,
        Place::Token,
        Place::UserInfo,
        Place::Emails,
        Place::EndSession,
    ];

    pub fn path(self) -> &'static str {
        match self {
            Place::Discovery => "/.well-known/openid-configuration",
            Place::Jwks => "/jwks",
            Place::Authorize => "/authorize",
            Place::Token => "/token",
            Place::UserInfo => "/userinfo",
            Place::Emails => "/user/emails",
            Place::EndSession => "/end_session",
        }
    }
}

/// What happens at a place instead of the right thing.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status and an error page.
    Status(u16),
    /// This status, to this address.
    Redirect(u16, String),
    /// 200 with this type and body.
    Body(&'static str, String),
    /// The right answer after so long.
    Slow(Duration),
    /// Nothing until [`Upstream::let_go`], then the right answer.
    Held,
    /// The right answer, a byte every second.
    Drip,
    /// JSON white space without end.
    Endless,
    /// The right JSON with a member of so many bytes more.
    Padded(usize),
    /// Nothing: it hangs up.
    HangUp,
}

/// How an ID token is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// By the first key.
    Right,
    /// `alg: none`, no signature.
    None,
    /// HS256 with what everybody may read of the first key, as `kid` says it.
    PublicKeyAsSecret,
    /// By a key that nobody published, under the name of one that is.
    Stranger,
    /// Rightly, and then one bit of it turned.
    Damaged,
}

/// What it says and does. Members named in the `Value`s replace the right ones; `null` takes them
/// away.
#[derive(Clone, Debug)]
pub struct Plan {
    pub subject: String,
    pub discovery: Value,
    pub header: Value,
    pub id_token: Value,
    pub signature: Signature,
    /// Members of the token endpoint's answer.
    pub token: Value,
    /// Members of UserInfo besides `sub`.
    pub userinfo: Value,
    /// Where UserInfo is a JWT: changes to its claims.
    pub signed_userinfo: Option<Value>,
    /// The addresses, as GitHub lists them.
    pub emails: Value,
    /// Parameters that the browser takes back.
    pub callback: Value,
    /// Client authentication that it takes, as in its metadata.
    pub authentication: &'static [&'static str],
    /// Whether it knows nothing of OpenID: no ID token, and a form from the token endpoint unless
    /// JSON is asked for.
    pub oauth_only: bool,
    /// Whether a code is good as often as it comes.
    pub takes_codes_again: bool,
    pub faults: BTreeMap<Place, Fault>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            subject: String::from(SUBJECT),
            discovery: json!({}),
            header: json!({}),
            id_token: json!({}),
            signature: Signature::Right,
            token: json!({}),
            userinfo: json!({}),
            signed_userinfo: None,
            emails: json!([]),
            callback: json!({}),
            authentication: &["client_secret_basic", "client_secret_post"],
            oauth_only: false,
            takes_codes_again: false,
            faults: BTreeMap::new(),
        }
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub place: Option<Place>,
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Of the query, or of the form.
    pub parameters: BTreeMap<String, String>,
}

/// The running provider.
pub struct Upstream {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    issuer: String,
    state: Mutex<State>,
    let_go: Condvar,
}

#[derive(Default)]
struct State {
    plan: Plan,
    signers: Vec<Arc<Signer>>,
    /// What each code stands for.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    received: Vec<Received>,
    complaints: Vec<String>,
    waiting: usize,
    numbered: u64,
}

impl Upstream {
    /// One that signs with RS256.
    pub fn start() -> Upstream {
        Upstream::start_with(Signer::rs256("first"))
    }

    pub fn start_with(signer: Signer) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            signers: vec![Arc::new(signer)],
            ..State::default()
        };
        let issuer = format!("http://127.0.0.1:{port}");
        let shared = Arc::new(Shared {
            issuer,
            state: Mutex::new(state),
            let_go: Condvar::new(),
        });
        let upstream = Upstream {
            port,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(stream));
            }
        });
        secrets::learn(CLIENT_SECRET);
        upstream
    }

    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    pub fn url(&self, place: Place) -> String {
        format!("{}{}", self.issuer(), place.path())
    }

    /// An entry of `identity_providers` for it, with changes.
    pub fn registration(&self, name: &str, changes: Value) -> Value {
        let mut entry = json!({
            "name": name, "display_name": format!("Sign-in {name}"), "issuer": self.issuer(),
            "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET
        });
        change(&mut entry, &changes);
        entry
    }

    /// The same without OpenID: endpoints, and `id` as the subject.
    pub fn oauth_registration(&self, name: &str, changes: Value) -> Value {
        let mut endpoints = json!({
            "issuer": null, "authorization_endpoint": self.url(Place::Authorize), "token_endpoint": self.url(Place::Token),
            "userinfo_endpoint": self.url(Place::UserInfo), "subject_claim": "id", "scope": "read:user"
        });
        change(&mut endpoints, &changes);
        let mut entry = self.registration(name, json!({}));
        entry.as_object_mut().unwrap().remove("issuer");
        change(&mut entry, &endpoints);
        entry
    }

    /// Changes what it does from now on.
    pub fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.state().plan);
    }

    /// Does everything right again.
    pub fn behave(&self) {
        self.state().plan = Plan::default();
        self.let_go();
    }

    /// A fault at one place.
    pub fn fault(&self, place: Place, fault: Fault) {
        self.state().plan.faults.insert(place, fault);
    }

    /// Takes the faults away, and answers whoever waits at one.
    pub fn let_go(&self) {
        self.state().plan.faults.clear();
        self.shared.let_go.notify_all();
    }

    /// Waits until so many requests wait at [`Fault::Held`].
    pub fn await_held(&self, wanted: usize) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.state().waiting < wanted {
            assert!(
                Instant::now() < deadline,
                "{} of {wanted} requests came",
                self.state().waiting
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Signs with another key; the key set holds it alone.
    pub fn rotate(&self, signer: Signer) {
        self.state().signers = vec![Arc::new(signer)];
    }

    /// The requests so far at one place.
    pub fn received(&self, place: Place) -> Vec<Received> {
        self.state()
            .received
            .iter()
            .filter(|received| received.place == Some(place))
            .cloned()
            .collect()
    }

    /// How many requests came, wherever.
    pub fn visits(&self) -> usize {
        self.state().received.len()
    }

    /// The parameters of the last authorization request.
    pub fn asked(&self) -> BTreeMap<String, String> {
        self.received(Place::Authorize)
            .pop()
            .unwrap_or_else(|| panic!("nobody came to authorize"))
            .parameters
    }

    /// What it refused, and why: a relying party that does as it must leaves this empty.
    pub fn complaints(&self) -> Vec<String> {
        self.state().complaints.clone()
    }

    /// A back-channel logout token about its usual subject, with changes.
    pub fn logout_token(&self, changes: Value) -> String {
        let mut claims = json!({
            "iss": self.issuer(), "aud": CLIENT_ID, "iat": now(), "exp": now() + 120, "jti": self.shared.number("jti"),
            "sub": SUBJECT, "events": {"http://schemas.openid.net/event/backchannel-logout": {}}
        });
        change(&mut claims, &changes);
        self.logout_token_under(json!({"typ": "logout+jwt"}), claims)
    }

    /// The same of given claims, with changes to the header.
    pub fn logout_token_under(&self, header: Value, claims: Value) -> String {
        let state = self.state();
        self.shared.sign(&state, &header, &claims)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }
}

/// Replaces members, and takes those away that are `null`.
pub fn change(value: &mut Value, changes: &Value) {
    let members = value.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name)
        } else {
            members.insert(name.clone(), value.clone())
        };
    }
}

/// An answer before it is written.
struct Reply {
    status: u16,
    content_type: &'static str,
    location: Option<String>,
    body: String,
}

impl Reply {
    fn json(value: &Value) -> Reply {
        Reply {
            status: 200,
            content_type: "application/json",
            location: None,
            body: value.to_string(),
        }
    }

    fn error(status: u16, error: &str) -> Reply {
        let body =
            json!({"error": error, "error_description": "<b>as upstream puts it</b>"}).to_string();
        Reply {
            status,
            content_type: "application/json",
            location: None,
            body,
        }
    }

    fn redirect(status: u16, location: String) -> Reply {
        Reply {
            status,
            content_type: "text/plain",
            location: Some(location),
            body: String::new(),
        }
    }

    /// With the headers that this house's test browser asks of everybody.
    fn text(&self) -> String {
        let location = self
            .location
            .iter()
            .map(|location| format!("Location: {location}\r\n"))
            .collect::<String>();
        format!(
            "HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\n{location}Connection: close\r\n\
             Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nCache-Control: no-store\r\nPragma: no-cache\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Request-Id: 1\r\n\r\n{}",
            self.status,
            self.content_type,
            self.body.len(),
            self.body
        )
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let Some(received) = read(&stream) else {
            return;
        };
        let place = received.place;
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.received.push(received.clone());
            place.and_then(|place| state.plan.faults.get(&place).cloned())
        };
        // The other side may have had enough.
        let _ = match fault {
            Some(fault) => self.misbehave(&mut stream, &received, fault),
            None => stream.write_all(self.answer(&received).text().as_bytes()),
        };
    }

    fn misbehave(
        &self,
        stream: &mut TcpStream,
        received: &Received,
        fault: Fault,
    ) -> std::io::Result<()> {
        let reply = match fault {
            Fault::Status(status @ 500..) => Reply::error(status, "server_error"),
            Fault::Status(status) => Reply::error(status, "no_word_of_the_standards"),
            Fault::Redirect(status, location) => Reply::redirect(status, location),
            Fault::Body(content_type, body) => Reply {
                status: 200,
                content_type,
                location: None,
                body,
            },
            Fault::Slow(time) => {
                thread::sleep(time);
                self.answer(received)
            }
            Fault::Held => {
                self.hold(received.place);
                self.answer(received)
            }
            Fault::Drip => {
                for byte in self.answer(received).text().bytes() {
                    stream.write_all(&[byte])?;
                    thread::sleep(Duration::from_secs(1));
                }
                return Ok(());
            }
            Fault::Endless => {
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{{"
                )?;
                loop {
                    stream.write_all(&[b' '; 65_536])?;
                }
            }
            Fault::Padded(bytes) => {
                let mut reply = self.answer(received);
                let rest = reply.body.split_off(1);
                reply.body = format!("{{\"padding\":\"{}\",{rest}", "x".repeat(bytes));
                reply
            }
            Fault::HangUp => return Ok(()),
        };
        stream.write_all(reply.text().as_bytes())
    }

    fn hold(&self, place: Option<Place>) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        while place.is_some_and(|place| matches!(state.plan.faults.get(&place), Some(Fault::Held)))
        {
            state = self.let_go.wait(state).unwrap();
        }
        state.waiting -= 1;
    }

    fn answer(&self, received: &Received) -> Reply {
        match received.place {
            Some(Place::Discovery) => self.discovery(),
            Some(Place::Jwks) => {
                let state = self.state.lock().unwrap();
                Reply::json(&key_set(
                    &state.signers.iter().map(Arc::as_ref).collect::<Vec<_>>(),
                ))
            }
            Some(Place::Authorize) => self.authorize(received),
            Some(Place::Token) => self.token(received),
            Some(Place::UserInfo) => self.userinfo(received),
            Some(Place::Emails) => self.emails(received),
            Some(Place::EndSession) => match received.parameters.get("post_logout_redirect_uri") {
                Some(address) => {
                    Reply::redirect(303, with_parameters(address, &state_of(received)))
                }
                None => Reply::error(400, "invalid_request"),
            },
            None => Reply::error(404, "not_found"),
        }
    }

    fn discovery(&self) -> Reply {
        let state = self.state.lock().unwrap();
        let address = |place: Place| format!("{}{}", self.issuer, place.path());
        let mut metadata = json!({
            "issuer": self.issuer,
            "authorization_endpoint": address(Place::Authorize),
            "token_endpoint": address(Place::Token),
            "userinfo_endpoint": address(Place::UserInfo),
            "end_session_endpoint": address(Place::EndSession),
            "jwks_uri": address(Place::Jwks),
            "response_types_supported": ["code", "id_token", "code id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "EdDSA"],
            "token_endpoint_auth_methods_supported": state.plan.authentication,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true
        });
        change(&mut metadata, &state.plan.discovery);
        Reply::json(&metadata)
    }

    /// Whoever comes is signed in, and sent back at once.
    fn authorize(&self, received: &Received) -> Reply {
        let asked = &received.parameters;
        let code = self.number("an-upstream-authorization-code");
        let mut state = self.state.lock().unwrap();
        for name in ["state", "nonce"] {
            asked
                .get(name)
                .into_iter()
                .for_each(|value| secrets::learn(value));
        }
        let expected = [
            ("client_id", CLIENT_ID),
            ("response_type", "code"),
            ("code_challenge_method", "S256"),
        ];
        let wrong = expected
            .iter()
            .find(|(name, value)| asked.get(*name).map(String::as_str) != Some(*value));
        if let Some((name, _)) = wrong {
            state
                .complaints
                .push(format!("{name} at authorize: {asked:?}"));
        }
        let Some(redirect_uri) = asked.get("redirect_uri") else {
            return Reply::error(400, "invalid_request");
        };
        let mut back = json!({"code": code});
        if state
            .plan
            .discovery
            .get("authorization_response_iss_parameter_supported")
            .is_none()
        {
            back["iss"] = Value::from(self.issuer.as_str());
        }
        asked
            .get("state")
            .into_iter()
            .for_each(|value| back["state"] = Value::from(value.as_str()));
        change(&mut back, &state.plan.callback);
        state.codes.insert(code, asked.clone());
        Reply::redirect(
            303,
            with_parameters(redirect_uri, back.as_object().unwrap()),
        )
    }

    fn token(&self, received: &Received) -> Reply {
        let given = |name: &str| received.parameters.get(name).map(String::as_str);
        let mut state = self.state.lock().unwrap();
        if !authenticated(received, state.plan.authentication) {
            state.complaints.push(format!(
                "client authentication: {:?}",
                received.headers.get("authorization")
            ));
            return Reply::error(401, "invalid_client");
        }
        let asked = given("code").and_then(|code| state.codes.remove_entry(code));
        if let Some((code, asked)) = asked.clone().filter(|_| state.plan.takes_codes_again) {
            state.codes.insert(code, asked);
        }
        let Some((_, asked)) = asked else {
            state.complaints.push(format!("code: {:?}", given("code")));
            return Reply::error(400, "invalid_grant");
        };
        let challenge =
            URL_SAFE_NO_PAD.encode(Sha256::digest(given("code_verifier").unwrap_or_default()));
        let fits = given("grant_type") == Some("authorization_code")
            && given("redirect_uri") == asked.get("redirect_uri").map(String::as_str)
            && asked.get("code_challenge") == Some(&challenge);
        if !fits {
            state.complaints.push(format!(
                "token request: {:?} for {asked:?}",
                received.parameters
            ));
            return Reply::error(400, "invalid_grant");
        }
        state.numbered += 1;
        let access_token = format!("an-upstream-access-token-{:016}", state.numbered);
        secrets::learn(&access_token);
        let mut answer =
            json!({"access_token": access_token, "token_type": "Bearer", "expires_in": 60});
        if !state.plan.oauth_only {
            let id_token = self.id_token(&state, &asked, &access_token);
            secrets::learn(&id_token);
            answer["id_token"] = Value::from(id_token);
        }
        change(&mut answer, &state.plan.token);
        let wants_json = received
            .headers
            .get("accept")
            .is_some_and(|accept| accept.contains("application/json"));
        if state.plan.oauth_only && !wants_json {
            let body = form_urlencoded::Serializer::new(String::new());
            let body = answer
                .as_object()
                .unwrap()
                .iter()
                .fold(body, |mut body, (name, value)| {
                    body.append_pair(name, value.as_str().unwrap_or_default());
                    body
                });
            return Reply {
                body: { body }.finish(),
                content_type: FORM,
                ..Reply::json(&answer)
            };
        }
        Reply::json(&answer)
    }

    fn id_token(
        &self,
        state: &State,
        asked: &BTreeMap<String, String>,
        access_token: &str,
    ) -> String {
        let mut claims = json!({
            "iss": self.issuer, "sub": state.plan.subject, "aud": CLIENT_ID, "iat": now(), "exp": now() + 300,
            "auth_time": now(), "at_hash": half_hash(state.signers[0].alg, access_token)
        });
        asked
            .get("nonce")
            .into_iter()
            .for_each(|nonce| claims["nonce"] = Value::from(nonce.as_str()));
        change(&mut claims, &state.plan.id_token);
        self.sign(state, &state.plan.header, &claims)
    }

    fn sign(&self, state: &State, changes: &Value, claims: &Value) -> String {
        let signer = &state.signers[0];
        let mut header = json!({"alg": signer.alg, "kid": signer.kid, "typ": "JWT"});
        let set = |header: &mut Value, name: &str, value: &str| header[name] = Value::from(value);
        match state.plan.signature {
            Signature::None => set(&mut header, "alg", "none"),
            Signature::PublicKeyAsSecret => set(&mut header, "alg", "HS256"),
            Signature::Right | Signature::Stranger | Signature::Damaged => {}
        }
        change(&mut header, changes);
        match state.plan.signature {
            Signature::Right => signer.sign_under(&header, claims),
            Signature::None => forge(&header, claims, |_| Vec::new()),
            Signature::PublicKeyAsSecret => {
                let public = signer.jwk();
                let public = public["n"].as_str().or(public["x"].as_str()).unwrap();
                let key =
                    hmac::Key::new(hmac::HMAC_SHA256, &URL_SAFE_NO_PAD.decode(public).unwrap());
                forge(&header, claims, |input| {
                    hmac::sign(&key, input).as_ref().to_vec()
                })
            }
            Signature::Stranger => Signer::es256(&signer.kid).sign_under(&header, claims),
            Signature::Damaged => {
                let signed = signer.sign_under(&header, claims);
                let (input, signature) = signed.rsplit_once('.').unwrap();
                let mut signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
                signature[20] ^= 1;
                format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
            }
        }
    }

    /// Whether an access token came along; complains where none did.
    fn has_token(&self, received: &Received) -> bool {
        let bearer = received
            .headers
            .get("authorization")
            .map(String::as_str)
            .unwrap_or_default();
        let has_token = bearer.starts_with("Bearer an-upstream-access-token-");
        if !has_token {
            self.state
                .lock()
                .unwrap()
                .complaints
                .push(format!("{} with {bearer}", received.target));
        }
        has_token
    }

    fn emails(&self, received: &Received) -> Reply {
        if !self.has_token(received) {
            return Reply::error(401, "invalid_token");
        }
        Reply::json(&self.state.lock().unwrap().plan.emails)
    }

    fn userinfo(&self, received: &Received) -> Reply {
        if !self.has_token(received) {
            return Reply::error(401, "invalid_token");
        }
        let state = self.state.lock().unwrap();
        let mut claims = if state.plan.oauth_only {
            json!({})
        } else {
            json!({"sub": state.plan.subject})
        };
        change(&mut claims, &state.plan.userinfo);
        let Some(changes) = &state.plan.signed_userinfo else {
            return Reply::json(&claims);
        };
        change(&mut claims, &json!({"iss": self.issuer, "aud": CLIENT_ID}));
        change(&mut claims, changes);
        Reply {
            content_type: "application/jwt",
            body: self.sign(&state, &json!({}), &claims),
            ..Reply::json(&claims)
        }
    }

    fn number(&self, kind: &str) -> String {
        let mut state = self.state.lock().unwrap();
        state.numbered += 1;
        let numbered = format!("{kind}-{:016}", state.numbered);
        secrets::learn(&numbered);
        numbered
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, target) = line.split_once(' ')?;
    let (method, target) = (method.to_owned(), target.split(' ').next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let given = if method == "POST" {
        body
    } else {
        query.as_bytes().to_vec()
    };
    let place = Place::ALL.into_iter().find(|place| place.path() == path);
    let parameters = form_urlencoded::parse(&given).into_owned().collect();
    Some(Received {
        place,
        method,
        headers,
        parameters,
        target,
    })
}

/// By exactly one of the ways that it takes.
fn authenticated(received: &Received, ways: &[&str]) -> bool {
    let given = |name: &str| received.parameters.get(name).map(String::as_str);
    let basic = received
        .headers
        .get("authorization")
        .and_then(|header| header.strip_prefix("Basic "));
    match (basic, given("client_secret")) {
        (Some(basic), None) => {
            let half =
                |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let expected = STANDARD.encode(format!("{}:{}", half(CLIENT_ID), half(CLIENT_SECRET)));
            ways.contains(&"client_secret_basic") && basic == expected
        }
        (None, Some(secret)) => {
            let right = secret == CLIENT_SECRET && given("client_id") == Some(CLIENT_ID);
            ways.contains(&"client_secret_post") && right
        }
        (None, None) => ways.contains(&"none") && given("client_id") == Some(CLIENT_ID),
        (Some(_), Some(_)) => false,
    }
}

fn state_of(received: &Received) -> Map<String, Value> {
    let state = received
        .parameters
        .get("state")
        .map(|state| (String::from("state"), Value::from(state.as_str())));
    state.into_iter().collect()
}

/// An address with parameters, spaces as `%20`.
fn with_parameters(address: &str, parameters: &Map<String, Value>) -> String {
    let pairs: Vec<(&str, &str)> = parameters
        .iter()
        .map(|(name, value)| (&**name, value.as_str().unwrap()))
        .collect();
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}{}", encode(&pairs).replace('+', "%20"))
}
