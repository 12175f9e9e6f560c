//! What is measured: each flow is one or more requests, and every answer is checked. A wrong one
//! ends the run.

use serde_json::Value;

use crate::browser::{Browser, Form};
use crate::http::{Answer, Client, Connections, Outgoing};
use crate::jwt;
use crate::provider::{ClientSettings, Provider};

/// The code verifier of RFC 7636 appendix B, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Discovery,
    Jwks,
    /// With the client that plays this part, and the `alg` its token must have; none for a
    /// reference token.
    ClientCredentials(&'static str, Option<&'static str>),
    /// With any of so many clients that are as `reference` is.
    ClientCredentialsOfMany(u64),
    /// Authorization request of a person signed in, redemption, userinfo.
    Code(&'static str),
    UserInfo,
    /// With the client that plays this part.
    Refresh(&'static str),
    Introspection,
    /// A token, its revocation, and introspection, which must call it dead.
    Revocation,
    /// Authorization request, page, right password.
    SignIn,
    /// Wrong passwords, each for another account from another source.
    BadSignIn,
}

/// What a flow cannot do without. A signature by ES256 or EdDSA is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub requests: u8,
    pub rsa_signatures: u8,
    pub commits: u8,
    pub look_ups: u8,
}

impl Flow {
    /// `None` where the time goes into hashing passwords.
    pub fn work(self) -> Option<Work> {
        let one_request = Work {
            requests: 1,
            ..Work::default()
        };
        Some(match self {
            Flow::Discovery | Flow::Jwks | Flow::ClientCredentialsOfMany(_) => one_request,
            Flow::ClientCredentials(_, alg) => Work {
                rsa_signatures: u8::from(alg == Some("RS256")),
                ..one_request
            },
            // The session with the consent; the redemption; what the access token stands on.
            Flow::Code(part) => Work {
                requests: 3,
                rsa_signatures: match part {
                    "code_jwt" => 2,
                    "code_es256" => 0,
                    _ => 1,
                },
                commits: 1,
                look_ups: 2,
            },
            Flow::UserInfo | Flow::Introspection => Work {
                look_ups: 1,
                ..one_request
            },
            Flow::Refresh(part) => Work {
                rsa_signatures: u8::from(part == "refresh"),
                commits: 1,
                ..one_request
            },
            Flow::Revocation => Work {
                requests: 3,
                commits: 1,
                look_ups: 1,
                ..Work::default()
            },
            Flow::SignIn | Flow::BadSignIn => return None,
        })
    }
}

/// The flows of the table, in its order.
pub const FLOWS: [(Flow, &str); 17] = [
    (Flow::Discovery, "discovery"),
    (Flow::Jwks, "JWKS"),
    (
        Flow::ClientCredentials("reference", None),
        "client_credentials, reference token",
    ),
    (
        Flow::ClientCredentials("rs256", Some("RS256")),
        "client_credentials, JWT RS256",
    ),
    (
        Flow::ClientCredentials("es256", Some("ES256")),
        "client_credentials, JWT ES256",
    ),
    (
        Flow::ClientCredentials("eddsa", Some("EdDSA")),
        "client_credentials, JWT EdDSA",
    ),
    (Flow::Code("code"), "code flow and userinfo, id_token RS256"),
    (
        Flow::Code("code_es256"),
        "code flow and userinfo, id_token ES256",
    ),
    (
        Flow::Code("code_jwt"),
        "code flow and userinfo, both tokens RS256",
    ),
    (Flow::UserInfo, "userinfo"),
    (Flow::Refresh("refresh"), "refresh, id_token RS256"),
    (Flow::Refresh("refresh_es256"), "refresh, id_token ES256"),
    (Flow::Refresh("refresh_oauth"), "refresh, no id_token"),
    (Flow::Introspection, "introspection"),
    (Flow::Revocation, "token, revocation, introspection"),
    (Flow::SignIn, "password sign-in"),
    (Flow::BadSignIn, "wrong password"),
];

/// One of those who walk a flow at the same time.
pub struct Walker<'a> {
    provider: &'a Provider,
    client: Client,
    browser: Browser,
    number: usize,
    round: u64,
    held: Held,
}

/// What a walker keeps from one round to the next.
#[derive(Default)]
struct Held {
    document: Vec<u8>,
    token: String,
    subject: String,
    form: Option<Form>,
}

impl Flow {
    /// Whether this provider and these settings have what it takes.
    pub fn is_possible(self, provider: &Provider) -> bool {
        let has = |endpoint: &str| provider.endpoint(endpoint).is_some();
        let plays = |part: &str| provider.settings.clients.contains_key(part);
        match self {
            Flow::Discovery => true,
            Flow::Jwks => has("jwks_uri"),
            Flow::ClientCredentials(part, _) => plays(part),
            Flow::ClientCredentialsOfMany(_) => plays("reference"),
            Flow::Code(part) => plays(part) && has("userinfo_endpoint"),
            Flow::UserInfo => plays("code") && has("userinfo_endpoint"),
            Flow::Refresh(part) => plays(part),
            Flow::Introspection => plays("reference") && has("introspection_endpoint"),
            Flow::Revocation => {
                plays("reference") && has("introspection_endpoint") && has("revocation_endpoint")
            }
            Flow::SignIn | Flow::BadSignIn => plays("code"),
        }
    }
}

impl<'a> Walker<'a> {
    /// Does what comes before the first round: signs in, gets a token, sees a page.
    pub fn prepare(
        provider: &'a Provider,
        flow: Flow,
        connections: Connections,
        number: usize,
    ) -> Result<Walker<'a>, String> {
        let (client, browser, held) = (
            provider.client(connections),
            Browser::default(),
            Held::default(),
        );
        let mut walker = Walker {
            provider,
            client,
            browser,
            number,
            round: 0,
            held,
        };
        match flow {
            Flow::Discovery => {
                walker.held.document =
                    walker.document(&provider.discovery_path.clone(), "issuer")?
            }
            Flow::Jwks => {
                walker.held.document = walker.document(&walker.endpoint("jwks_uri")?, "keys")?
            }
            Flow::ClientCredentials(part, Some(alg)) => {
                let token = walker.client_credentials(walker.settings(part)?, Some(alg))?;
                let keys = walker.client.get(&walker.endpoint("jwks_uri")?)?.json()?;
                jwt::verify(&token, alg, &keys)?;
            }
            Flow::ClientCredentials(_, None)
            | Flow::ClientCredentialsOfMany(_)
            | Flow::Revocation
            | Flow::SignIn => {}
            Flow::Introspection => {
                walker.held.token =
                    walker.client_credentials(walker.settings("reference")?, None)?
            }
            Flow::Code(part) => {
                walker.sign_in(part)?;
                walker.code_flow(part)?;
            }
            Flow::UserInfo => {
                walker.sign_in("code")?;
                walker.held.token = walker.tokens("code")?["access_token"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
            }
            Flow::Refresh(part) => {
                walker.sign_in(part)?;
                let tokens = walker.tokens(part)?;
                walker.held.token = tokens["refresh_token"]
                    .as_str()
                    .ok_or("no refresh token")?
                    .to_owned();
            }
            Flow::BadSignIn => {
                let (path, _) = walker.authorize_path("code")?;
                let page = walker.browser.visit(&mut walker.client, provider, &path)?;
                walker.held.form = Some(Form::of(&page, provider)?);
            }
        }
        Ok(walker)
    }

    /// Walks the flow once.
    pub fn walk(&mut self, flow: Flow) -> Result<(), String> {
        self.round += 1;
        match flow {
            Flow::Discovery => self.same_document(&self.provider.discovery_path.clone()),
            Flow::Jwks => self.same_document(&self.endpoint("jwks_uri")?),
            Flow::ClientCredentials(part, alg) => {
                self.client_credentials(self.settings(part)?, alg).map(drop)
            }
            Flow::ClientCredentialsOfMany(count) => {
                let client_id = format!("many-{}", rand::random_range(1..=count));
                let client = ClientSettings {
                    client_id,
                    ..self.settings("reference")?.clone()
                };
                self.client_credentials(&client, None).map(drop)
            }
            Flow::Code(part) => self.code_flow(part),
            Flow::UserInfo => {
                let token = self.held.token.clone();
                self.userinfo(&token)
            }
            Flow::Refresh(part) => self.refresh(part),
            Flow::Introspection => {
                let token = self.held.token.clone();
                self.introspect(&token, true)
            }
            Flow::Revocation => {
                let token = self.client_credentials(self.settings("reference")?, None)?;
                self.revoke(&token)?;
                self.introspect(&token, false)
            }
            Flow::SignIn => {
                self.browser = Browser::default();
                self.sign_in("code")
            }
            Flow::BadSignIn => self.bad_sign_in(),
        }
    }

    fn endpoint(&self, name: &str) -> Result<String, String> {
        self.provider
            .endpoint(name)
            .ok_or_else(|| format!("the provider has no {name}"))
    }

    fn settings(&self, part: &str) -> Result<&'a ClientSettings, String> {
        self.provider
            .settings
            .clients
            .get(part)
            .ok_or_else(|| format!("no client `{part}` in the settings"))
    }

    fn document(&mut self, path: &str, member: &str) -> Result<Vec<u8>, String> {
        let answer = self.client.get(path)?.expect(200)?;
        if answer.json()?[member].is_null() {
            return Err(format!("no {member} in {}", answer.text()));
        }
        Ok(answer.body.clone())
    }

    fn same_document(&mut self, path: &str) -> Result<(), String> {
        let answer = self.client.get(path)?.expect(200)?;
        if answer.body == self.held.document {
            Ok(())
        } else {
            Err(format!("{path} has changed: {}", answer.text()))
        }
    }

    fn post(
        &mut self,
        path: &str,
        client: &ClientSettings,
        fields: &[(&str, &str)],
    ) -> Result<&Answer, String> {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let authorization = client.basic();
        self.client.send(&Outgoing {
            path,
            authorization: Some(&authorization),
            form: Some(&form),
            ..Outgoing::default()
        })
    }

    fn client_credentials(
        &mut self,
        client: &ClientSettings,
        alg: Option<&str>,
    ) -> Result<String, String> {
        let path = self.endpoint("token_endpoint")?;
        let fields = [
            ("grant_type", "client_credentials"),
            ("scope", client.scope.as_str()),
        ];
        let answer = self.post(&path, client, &fields)?.expect(200)?.json()?;
        let token = access_token(&answer)?;
        match alg {
            Some(alg) => {
                let claims = jwt::claims(&token, alg)?;
                if claims["iss"] != self.provider.settings.issuer.as_str()
                    || claims["client_id"] != client.client_id.as_str()
                {
                    return Err(format!("another's token: {claims}"));
                }
            }
            None if token.matches('.').count() == 2 => {
                return Err(format!("a JWT instead of a reference: {token}"));
            }
            None => {}
        }
        if self.held.document == token.as_bytes() {
            return Err(String::from("the same token twice"));
        }
        self.held.document = token.clone().into_bytes();
        Ok(token)
    }

    fn sign_in(&mut self, part: &str) -> Result<(), String> {
        let (path, state) = self.authorize_path(part)?;
        let answer = self
            .browser
            .authorize(&mut self.client, self.provider, &path)?;
        self.code_in(answer.header("location").unwrap_or_default(), &state)
            .map(drop)
    }

    fn authorize_path(&self, part: &str) -> Result<(String, String), String> {
        let (client, path) = (
            self.settings(part)?,
            self.endpoint("authorization_endpoint")?,
        );
        let state = format!("state-{}-{}", self.number, self.round);
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &self.provider.settings.redirect_uri)
            .append_pair("response_type", "code")
            .append_pair("scope", &client.scope)
            .append_pair("state", &state)
            .append_pair("nonce", &state)
            .append_pair("code_challenge", CHALLENGE)
            .append_pair("code_challenge_method", "S256")
            .finish();
        Ok((format!("{path}?{query}"), state))
    }

    fn code_in(&self, location: &str, state: &str) -> Result<String, String> {
        let query = location.strip_prefix(self.provider.settings.redirect_uri.as_str());
        let query = query
            .ok_or_else(|| format!("sent to {location}"))?
            .trim_start_matches('?');
        let find = |name: &str| {
            form_urlencoded::parse(query.as_bytes())
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        match (find("code"), find("state")) {
            (Some(code), Some(sent_back)) if sent_back == state => Ok(code),
            (Some(_) | None, _) => Err(format!("not the answer to this request: {location}")),
        }
    }

    fn tokens(&mut self, part: &str) -> Result<Value, String> {
        let (path, state) = self.authorize_path(part)?;
        let cookie = self.browser.cookie();
        let answer = self.client.send(&Outgoing {
            path: &path,
            cookie: Some(&cookie),
            ..Outgoing::default()
        })?;
        let location = answer.header("location").unwrap_or_default().to_owned();
        let code = self.code_in(&location, &state)?;
        let (client, path) = (self.settings(part)?, self.endpoint("token_endpoint")?);
        let redirect_uri = self.provider.settings.redirect_uri.as_str();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", VERIFIER),
        ];
        let tokens = self.post(&path, client, &fields)?.expect(200)?.json()?;
        if client.scope.split(' ').any(|scope| scope == "openid") {
            let alg = if part.ends_with("_es256") {
                "ES256"
            } else {
                "RS256"
            };
            self.held.subject = subject(&tokens, client, &state, alg)?;
        }
        Ok(tokens)
    }

    fn code_flow(&mut self, part: &str) -> Result<(), String> {
        let tokens = self.tokens(part)?;
        self.userinfo(&access_token(&tokens)?)
    }

    fn userinfo(&mut self, token: &str) -> Result<(), String> {
        let (path, bearer) = (
            self.endpoint("userinfo_endpoint")?,
            format!("Bearer {token}"),
        );
        let answer = self.client.send(&Outgoing {
            path: &path,
            authorization: Some(&bearer),
            ..Outgoing::default()
        })?;
        let claims = answer.expect(200)?.json()?;
        if claims["sub"] == self.held.subject.as_str() {
            Ok(())
        } else {
            Err(format!("claims of another: {claims}"))
        }
    }

    fn refresh(&mut self, part: &str) -> Result<(), String> {
        let (client, path) = (self.settings(part)?, self.endpoint("token_endpoint")?);
        let held = self.held.token.clone();
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", held.as_str()),
        ];
        let tokens = self.post(&path, client, &fields)?.expect(200)?.json()?;
        access_token(&tokens)?;
        match tokens["refresh_token"].as_str() {
            Some(next) if next != held => self.held.token = next.to_owned(),
            // Other providers may let a refresh token stay as it is.
            Some(_) | None => {}
        }
        Ok(())
    }

    fn introspect(&mut self, token: &str, active: bool) -> Result<(), String> {
        let (client, path) = (
            self.settings("reference")?,
            self.endpoint("introspection_endpoint")?,
        );
        let answer = self
            .post(&path, client, &[("token", token)])?
            .expect(200)?
            .json()?;
        let is_its_own = !active || answer["client_id"] == client.client_id.as_str();
        if answer["active"] == active && is_its_own {
            Ok(())
        } else {
            Err(format!("not active={active}: {answer}"))
        }
    }

    fn revoke(&mut self, token: &str) -> Result<(), String> {
        let (client, path) = (
            self.settings("reference")?,
            self.endpoint("revocation_endpoint")?,
        );
        self.post(&path, client, &[("token", token)])?
            .expect(200)
            .map(drop)
    }

    fn bad_sign_in(&mut self) -> Result<(), String> {
        let account = self.number as u64 * 1_000_003 + self.round;
        self.browser.source = Some(format!(
            "10.{}.{}.{}",
            account >> 16 & 255,
            account >> 8 & 255,
            account & 255
        ));
        let form = self.held.form.clone().ok_or("no form")?;
        let answer = self.browser.submit_patiently(
            &mut self.client,
            &form,
            (&format!("nobody-{account}"), "wrong"),
        )?;
        // Whatever says no is right.
        let went_on = answer
            .header("location")
            .is_some_and(|location| self.provider.path_of(location).is_none());
        if went_on || answer.status == 500 {
            Err(format!("a wrong password got {}", answer.status))
        } else {
            Ok(())
        }
    }
}

/// `sub` of the id_token, which must be for this client and this request.
fn subject(
    tokens: &Value,
    client: &ClientSettings,
    nonce: &str,
    alg: &str,
) -> Result<String, String> {
    let claims = jwt::claims(tokens["id_token"].as_str().unwrap_or_default(), alg)?;
    if claims["nonce"] != nonce || claims["aud"] != client.client_id.as_str() {
        return Err(format!("another's id_token: {claims}"));
    }
    claims["sub"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| String::from("no sub"))
}

fn access_token(answer: &Value) -> Result<String, String> {
    let token = answer["access_token"]
        .as_str()
        .ok_or_else(|| format!("no access token in {answer}"))?;
    let is_bearer = answer["token_type"]
        .as_str()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("Bearer"));
    if is_bearer && answer["expires_in"].as_u64() > Some(0) {
        Ok(token.to_owned())
    } else {
        Err(answer.to_string())
    }
}
