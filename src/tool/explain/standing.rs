//! What a token stands on: each part of it, alive or ended, and the event that ended it.

use serde_json::json;

use super::Judged;
use crate::output::time;
use crate::statements::audit_list::{self, EventFilter};
use gatepost_protocol::token::access_token::{AccessToken, StandsOn};
use gatepost_protocol::token::liveness::{LivenessFacts, given_at, session_of};
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_protocol::words::session::{SignIn, User};
use gatepost_registrar::explanation::Explained;
use gatepost_registration::finding::Finding;
use gatepost_registration::{broken, fine};
use gatepost_server::app::App;
use gatepost_server::endpoints::token::introspection::{origins_stand, standing};
use gatepost_store::Result;
use gatepost_store::tokens::{self, TokenStanding};

/// One thing that a token stands on.
struct Part {
    is_alive: bool,
    what: String,
    /// Names of the events that may have ended it.
    events: &'static str,
    /// Which events of these names are about it.
    filter: EventFilter,
}

fn part(
    is_alive: bool,
    what: impl Into<String>,
    events: &'static str,
    filter: EventFilter,
) -> Part {
    Part {
        is_alive,
        what: what.into(),
        events,
        filter,
    }
}

impl Part {
    fn finding(&self, app: &App) -> Result<Finding> {
        if self.is_alive {
            return Ok(fine!("alive: {}", self.what));
        }
        let event = ended_by(app, self.events, &self.filter)?;
        Ok(broken!("ended: {} {event}", self.what))
    }
}

/// Tells of each thing that a token stands on whether it is alive. Of a code, `of_code` has the
/// epochs: its grant is not there yet.
pub fn life(app: &App, token: &AccessToken, of_code: Option<Epochs>) -> Judged {
    let TokenStanding { facts, user } = tokens::find(&app.store, token)?;
    let now = app.now();
    let origins = origins_stand(app, token)?;
    let lifetime = format!("its lifetime, until {}", time(token.expires_at));
    let mut parts = vec![
        part(!token.is_expired(now), lifetime, "", EventFilter::default()),
        part(
            !facts.token_revoked,
            "the token itself",
            "access_token_revoked",
            of_both(token),
        ),
    ];
    let mut explained = about(token);
    if of_code.is_none() {
        explained.findings.push(if standing(app, token)?.0 {
            fine!("it is alive")
        } else {
            broken!("it is over")
        });
        if let StandsOn::Grant(id) = token.jti.stands_on {
            let id = id.to_text();
            parts.push(part(
                facts.grant.is_some_and(|grant| grant.is_alive(now)),
                format!("its grant {id}"),
                "grant_revoked code_replayed refresh_token_replayed",
                by_word(&id),
            ));
        }
    }
    parts.extend(people(token, &facts, user.as_ref()));
    let given = of_code.or_else(|| given_at(token, &facts));
    parts.extend(epochs(token, given.unwrap_or(facts.epochs), facts.epochs));
    if token.delegation.is_some() {
        let what = "the tokens that it was exchanged from";
        parts.push(part(origins, what, "", by_word("")));
    }
    for part in parts {
        explained.findings.push(part.finding(app)?);
    }
    Ok(explained)
}

/// The client, the user, and the session where a token ends with it.
fn people(token: &AccessToken, facts: &LivenessFacts, row: Option<&User>) -> Vec<Part> {
    let mut parts = vec![part(
        facts.client_enabled,
        format!("the client {}", token.client_id.in_text()),
        "client_changed client_removed",
        of_client(token),
    )];
    if let Some(user) = &token.user {
        let end = row.and_then(|row| row.valid_until);
        let until = end.map(|end| format!(", until {}", time(end)));
        parts.push(part(
            row.is_some_and(|row| row.enabled),
            format!(
                "the user {}{}",
                user.subject.as_str(),
                until.unwrap_or_default()
            ),
            "user_changed user_removed user_expired",
            of_user(user),
        ));
    }
    // Its grant, which is offline, is not there yet where the token stands for a code.
    let sid = session_of(token, facts).filter(|_| !token.scope.contains(OFFLINE_ACCESS));
    if let Some(sid) = sid {
        parts.push(part(
            facts.session.is_some_and(|session| !session.ended),
            format!("the session {}", sid.as_str()),
            "session_ended signed_out",
            by_word(sid.as_str()),
        ));
    }
    parts
}

/// What was given before some event is over, by the epochs that the event moved on.
fn epochs(token: &AccessToken, given: Epochs, present: Epochs) -> Vec<Part> {
    let mut parts = vec![
        part(
            given.installation == present.installation,
            "all that this installation gave",
            "everything_revoked issuer_renamed",
            EventFilter::default(),
        ),
        part(
            given.client == present.client,
            "all that this client was given",
            "client_revoked client_changed",
            of_client(token),
        ),
    ];
    if let Some(user) = &token.user {
        parts.push(part(
            given.user == present.user,
            "all that this user signed in to",
            "user_revoked user_changed password_changed password_set_by_link \
             factor_added factor_removed",
            of_user(user),
        ));
        parts.push(part(
            given.consent == present.consent,
            "the user's consent",
            "consent_withdrawn",
            of_both(token),
        ));
    }
    parts
}

fn of_client(token: &AccessToken) -> EventFilter {
    EventFilter {
        client_id: Some(token.client_id.to_string()),
        ..EventFilter::default()
    }
}

fn of_user(user: &SignIn) -> EventFilter {
    EventFilter {
        sub: Some(user.subject.as_str().to_owned()),
        ..EventFilter::default()
    }
}

/// Events about the client, and about the user where there is one.
fn of_both(token: &AccessToken) -> EventFilter {
    let user = token.user.as_ref().map(of_user).unwrap_or_default();
    EventFilter {
        client_id: Some(token.client_id.to_string()),
        ..user
    }
}

pub fn by_word(text: &str) -> EventFilter {
    EventFilter {
        word: Some(text.to_lowercase()),
        ..EventFilter::default()
    }
}

/// The latest event of one of these names that the filter lets through.
pub fn ended_by(app: &App, names: &str, filter: &EventFilter) -> Result<String> {
    let mut found = Vec::new();
    for name in names.split_whitespace() {
        let filter = EventFilter {
            event: Some(name.to_owned()),
            ..filter.clone()
        };
        found.extend(audit_list::list(&app.store, &filter, 1)?);
    }
    let Some(event) = found.into_iter().max_by_key(|event| event.at) else {
        return Ok(String::new());
    };
    Ok(format!(
        "{} at {}, request {}",
        event.event,
        time(event.at),
        event.request_id.unwrap_or_default()
    ))
}

fn about(token: &AccessToken) -> Explained {
    let user = token.user.as_ref();
    let mut about = Explained::default();
    about.tell("kind", "access token");
    about.tell("client_id", token.client_id.as_str());
    about.tell("sub", json!(user.map(|user| &user.subject)));
    about.tell("tenant", json!(user.map(|user| &user.tenant)));
    about.tell("acr", json!(user.map(|user| &user.acr)));
    about.tell("scope", token.scope.to_string());
    about.tell("aud", token.audience.join(" "));
    about.tell("issued_at", time(token.issued_at));
    about.tell("expires_at", time(token.expires_at));
    about
}
