//! The demo application: a tiny relying party, part of `gatepost-dev` only. It uses nothing of the
//! provider's own code and has no way in that another client would not have: what it shows is what
//! any client sees. It also plays three applications of a company, shows the codes of an app and
//! the e-mails that were caught.

mod app_code;
mod authorization;
mod back_channel;
mod id_token;
mod json_web_token;
mod views;
mod visitors;
mod web;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use app_code::app_code;
use authorization::{Attempt, SignInRequest};
use back_channel::Metadata;
use id_token::{Expected, Parties};
use maud::Markup;
use visitors::{SignedIn, Visitors};
use web::{Incoming, Method, Outgoing};

use super::Trouble;
use super::caught_mail::Mailbox;
use super::demo_data::DemoUser;

const STYLESHEET: &str = include_str!("demo/demo.css");

const WORKERS: usize = 4;

/// One answer from the provider takes at most this long.
const PROVIDER_PATIENCE: Duration = Duration::from_secs(10);

/// Its registration at the provider. The secret is public.
#[derive(Clone, Debug)]
pub(super) struct RelyingParty {
    pub(super) issuer: String,
    /// Where browsers find the demo, without a slash at the end.
    pub(super) base_url: String,
    pub(super) client_id: String,
    pub(super) client_name: String,
    pub(super) client_secret: String,
    pub(super) scope: String,
    pub(super) allowed_roles: Vec<String>,
}

impl RelyingParty {
    fn redirect_uri(&self) -> String {
        format!("{}/callback", self.base_url)
    }

    fn post_logout_redirect_uri(&self) -> String {
        format!("{}/", self.base_url)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Setback {
    heading: String,
    detail: String,
}

impl Setback {
    fn new(heading: &str, detail: impl Into<String>) -> Setback {
        Setback {
            heading: heading.to_owned(),
            detail: detail.into(),
        }
    }
}

#[derive(Debug)]
struct Demo {
    relying_party: RelyingParty,
    /// The company's applications that it plays.
    applications: Vec<RelyingParty>,
    /// Who can sign in: their names and passwords are public.
    users: Vec<DemoUser>,
    /// `None` where e-mails go to a server of somebody's own.
    mailbox: Option<Mailbox>,
    agent: ureq::Agent,
    visitors: Mutex<Visitors>,
}

/// In threads that end with the process.
pub(super) fn start(
    listener: TcpListener,
    relying_parties: Vec<RelyingParty>,
    users: Vec<DemoUser>,
    mailbox: Option<Mailbox>,
) -> Result<(), Trouble> {
    let failed = |error: &dyn std::fmt::Display| {
        Trouble::new(format!("the demo application cannot start: {error}"))
    };
    let server =
        tiny_http::Server::from_listener(listener, None).map_err(|error| failed(&error))?;
    let server = Arc::new(server);
    let mut relying_parties = relying_parties.into_iter();
    let Some(relying_party) = relying_parties.next() else {
        return Err(Trouble::new("the demo application is not registered"));
    };
    let demo = Arc::new(Demo {
        applications: relying_parties.collect(),
        mailbox,
        ..Demo::new(relying_party, users)
    });
    for number in 0..WORKERS {
        let (server, demo) = (Arc::clone(&server), Arc::clone(&demo));
        let worker = thread::Builder::new().name(format!("demo-{number}"));
        worker
            .spawn(move || demo.work(&server))
            .map_err(|error: io::Error| failed(&error))?;
    }
    Ok(())
}

impl Demo {
    fn new(relying_party: RelyingParty, users: Vec<DemoUser>) -> Demo {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(PROVIDER_PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .new_agent();
        Demo {
            relying_party,
            applications: Vec::new(),
            users,
            mailbox: None,
            agent,
            visitors: Mutex::new(Visitors::default()),
        }
    }

    fn work(&self, server: &tiny_http::Server) {
        while let Ok(request) = server.recv() {
            web::answer(
                request,
                &self.relying_party.issuer,
                &self.cookie_name(),
                |incoming| self.route(incoming),
            );
        }
    }

    /// Cookies know no ports: two demos on one machine must not take each other's.
    fn cookie_name(&self) -> String {
        let port = self
            .relying_party
            .base_url
            .rsplit(':')
            .next()
            .unwrap_or_default();
        format!("gatepost_demo_{port}")
    }

    fn route(&self, incoming: &Incoming) -> Outgoing {
        match (incoming.method, incoming.path.as_str()) {
            (Method::Get, "/") => self.home(incoming),
            (Method::Get, "/sign-in") => self.sign_in(incoming),
            (Method::Get | Method::Post, "/callback") => self.callback(incoming),
            (Method::Post, "/sign-out") => self.sign_out(incoming),
            (Method::Post, "/sign-out-everywhere") => self.sign_out_everywhere(incoming),
            (Method::Post, "/back-channel-logout") => self.back_channel_logout(incoming),
            (Method::Get, "/e-mails") => match &self.mailbox {
                Some(mailbox) => page(200, views::caught_mails(&mailbox.all())),
                None => page(200, views::mails_elsewhere()),
            },
            (Method::Get, "/demo.css") => Outgoing::stylesheet(STYLESHEET),
            (method, path) => {
                let client_id = path.strip_prefix('/').filter(|_| method == Method::Get);
                if let Some(application) = self.application(client_id) {
                    return page(200, views::application(application));
                }
                let setback = Setback::new(
                    "There is no such page",
                    "The demo application has one page: the first.",
                );
                page(404, views::setback(&setback))
            }
        }
    }

    fn home(&self, incoming: &Incoming) -> Outgoing {
        let signed_in = incoming
            .cookie
            .as_deref()
            .and_then(|handle| self.visitors().signed_in(handle));
        match signed_in {
            Some(signed_in) => page(200, views::signed_in(&signed_in)),
            None => {
                let mut people = Vec::new();
                for user in &self.users {
                    people.push(views::Person {
                        user,
                        app_code: user
                            .totp
                            .as_deref()
                            .and_then(|key| app_code(key, seconds_now())),
                    });
                }
                page(
                    200,
                    views::welcome(&self.relying_party, &people, &self.applications),
                )
            }
        }
    }

    /// The company's application with that `client_id`.
    fn application(&self, client_id: Option<&str>) -> Option<&RelyingParty> {
        self.applications
            .iter()
            .find(|application| Some(application.client_id.as_str()) == client_id)
    }

    /// The demo itself, unless another client is named.
    fn relying_party_called(&self, client_id: Option<&str>) -> &RelyingParty {
        self.application(client_id).unwrap_or(&self.relying_party)
    }

    fn sign_in(&self, incoming: &Incoming) -> Outgoing {
        let begun = || -> Result<Outgoing, Setback> {
            let metadata = self.metadata()?;
            let request = SignInRequest::from_query(&incoming.query);
            let relying_party = self.relying_party_called(request.client_id.as_deref());
            let attempt = Attempt::new(&relying_party.client_id, random)?;
            let location = authorization::url(
                &metadata.authorization_endpoint,
                relying_party,
                &attempt,
                &request,
            );
            let handle = self
                .visitors()
                .remember(incoming.cookie.as_deref(), attempt, random()?);
            Ok(Outgoing::redirect(&location).with_cookie(&self.cookie_name(), &handle))
        };
        begun().unwrap_or_else(|setback| page(502, views::setback(&setback)))
    }

    fn callback(&self, incoming: &Incoming) -> Outgoing {
        match self.complete(incoming) {
            // Away from the address with the code: neither "reload" nor "back" presents it again.
            Ok(handle) => Outgoing::redirect("/").with_cookie(&self.cookie_name(), &handle),
            Err(setback) => page(400, views::setback(&setback)),
        }
    }

    /// The whole way from the answer in the browser to a signed-in visitor; answers the visitor's
    /// new handle.
    fn complete(&self, incoming: &Incoming) -> Result<String, Setback> {
        let answer = match incoming.method {
            Method::Post => incoming.body.as_str(),
            Method::Get | Method::Other => incoming.query.as_str(),
        };
        let answer = authorization::Answer::parse(answer);
        let handle = incoming.cookie.as_deref().unwrap_or_default();
        let attempt = self
            .visitors()
            .take_attempt(handle, &answer.state)
            .ok_or_else(unknown_attempt)?;
        let code = answer.code(&self.relying_party.issuer)?;

        let relying_party = self.relying_party_called(Some(&attempt.client_id));
        let metadata = self.metadata()?;
        let tokens = back_channel::redeem(
            &self.agent,
            &metadata,
            relying_party,
            &code,
            &attempt.code_verifier,
        )?;
        let keys = back_channel::keys(&self.agent, &metadata)?;
        let expected = Expected {
            nonce: &attempt.nonce,
            access_token: &tokens.access_token,
        };
        let parties = parties(relying_party);
        let id_token_claims = id_token::verify(&tokens.id_token, &keys, &parties, &expected)
            .map_err(|refusal| Setback::new("The ID token was refused", refusal.to_string()))?;
        let claims = back_channel::userinfo(&self.agent, &metadata, &tokens.access_token)?;
        if claims.get("sub") != id_token_claims.get("sub") {
            return Err(Setback::new(
                "The answers do not fit together",
                "UserInfo told of another `sub` than the ID token.",
            ));
        }
        let signed_in = SignedIn::new(&relying_party.client_name, claims, &tokens);
        self.visitors()
            .sign_in(handle, signed_in, random()?)
            .ok_or_else(unknown_attempt)
    }

    fn sign_out(&self, incoming: &Incoming) -> Outgoing {
        if let Some(handle) = &incoming.cookie {
            self.visitors().forget(handle);
        }
        Outgoing::redirect("/").without_cookie(&self.cookie_name())
    }

    /// Signs the visitor out here, and sends them to the provider for the rest.
    fn sign_out_everywhere(&self, incoming: &Incoming) -> Outgoing {
        let signed_in = incoming
            .cookie
            .as_deref()
            .and_then(|handle| self.visitors().signed_in(handle));
        let done = self.sign_out(incoming);
        let Some(signed_in) = signed_in else {
            return done;
        };
        match self.metadata() {
            Ok(metadata) => {
                let endpoint = &metadata.end_session_endpoint;
                let location = authorization::end_session_url(
                    endpoint,
                    &self.relying_party,
                    &signed_in.id_token_hint,
                );
                Outgoing::redirect(&location).without_cookie(&self.cookie_name())
            }
            Err(setback) => page(502, views::setback(&setback)),
        }
    }

    fn back_channel_logout(&self, incoming: &Incoming) -> Outgoing {
        let mut form = form_urlencoded::parse(incoming.body.as_bytes());
        let token = form
            .find(|(name, _)| name == "logout_token")
            .map(|(_, value)| value)
            .unwrap_or_default();
        let keys = self
            .metadata()
            .and_then(|metadata| back_channel::keys(&self.agent, &metadata));
        let Ok(keys) = keys else {
            return Outgoing::empty(503);
        };
        match id_token::verify_logout(&token, &keys, &parties(&self.relying_party)) {
            Ok(sid) => {
                self.visitors().forget_session(&sid);
                Outgoing::empty(200)
            }
            Err(_) => Outgoing::empty(400),
        }
    }

    fn metadata(&self) -> Result<Metadata, Setback> {
        back_channel::discover(&self.agent, &self.relying_party.issuer)
    }

    fn visitors(&self) -> MutexGuard<'_, Visitors> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parties(relying_party: &RelyingParty) -> Parties<'_> {
    Parties {
        issuer: &relying_party.issuer,
        client_id: &relying_party.client_id,
        now: seconds_now(),
    }
}

fn page(status: u16, markup: Markup) -> Outgoing {
    Outgoing::page(status, markup.into_string())
}

fn unknown_attempt() -> Setback {
    Setback::new(
        "This sign-in is not known here",
        "The answer does not belong to a sign-in that this browser began. It may have been used \
         already.",
    )
}

/// 256 random bits in base64url: 43 characters, as RFC 7636 §4.1 wants of a code verifier.
fn random() -> Result<String, Setback> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| Setback::new("No randomness", "The system gave no random bytes."))?;
    Ok(json_web_token::base64url(&bytes))
}

fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests;
