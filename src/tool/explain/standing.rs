//! What a token stands on: each part of it, alive or ended, and the event that ended it.

use serde_json::{Map, Value, json};

use super::Judged;
use crate::output::time;
use gatepost_protocol::registration::problem::Finding;
use gatepost_protocol::token::access_token::{AccessToken, StandsOn};
use gatepost_protocol::token::liveness::LivenessFacts;
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::{TenantName, in_text};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_protocol::words::session::SignIn;
use gatepost_server::app::App;
use gatepost_server::endpoints::token::introspection::{origins_stand, standing};
use gatepost_store::StoreError;
use gatepost_store::audit_events::{self, EventFilter};
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
    fn finding(&self, app: &App) -> Result<Finding, StoreError> {
        if self.is_alive {
            return Ok(Finding::fine(format!("alive: {}", self.what)));
        }
        let event = ended_by(app, self.events, &self.filter)?;
        Ok(Finding::broken(format!("ended: {} {event}", self.what)))
    }
}

/// Tells of each thing that a token stands on whether it is alive. Of a code, `of_code` has the
/// epochs: its grant is not there yet.
pub(super) fn life(app: &App, token: &AccessToken, of_code: Option<Epochs>) -> Judged {
    let found = tokens::find(&app.store, token)?;
    let now = app.now();
    let origins = origins_stand(app, token)?;
    let mut findings = Vec::new();
    let mut parts = vec![lifetime(token, now), itself(token, &found)];
    if of_code.is_none() {
        let (stands, _) = standing(app, token)?;
        findings.push(match stands {
            true => Finding::fine("it is alive"),
            false => Finding::broken("it is over"),
        });
        parts.extend(grant(token, &found, now));
    }
    parts.extend(people(token, &found));
    parts.extend(epochs(token, &found, of_code));
    if token.delegation.is_some() {
        let what = "the tokens that it was exchanged from";
        parts.push(part(origins, what, "", by_word("")));
    }
    for part in parts {
        findings.push(part.finding(app)?);
    }
    Ok((findings, about(token)))
}

fn lifetime(token: &AccessToken, now: Instant) -> Part {
    let what = format!("its lifetime, until {}", time(token.expires_at));
    part(!token.is_expired(now), what, "", EventFilter::default())
}

fn itself(token: &AccessToken, found: &TokenStanding) -> Part {
    let is_alive = !found.facts.token_revoked;
    let events = "access_token_revoked";
    part(is_alive, "the token itself", events, of_both(token))
}

fn grant(token: &AccessToken, found: &TokenStanding, now: Instant) -> Option<Part> {
    let StandsOn::Grant(id) = token.jti.stands_on else {
        return None;
    };
    let id = id.to_text();
    let grant = found.facts.grant;
    let is_alive = grant.is_some_and(|grant| !grant.revoked && now < grant.expires_at);
    let events = "grant_revoked code_replayed refresh_token_replayed";
    let what = format!("its grant {id}");
    Some(part(is_alive, what, events, by_word(&id)))
}

/// The client, the user, and the session where a token ends with it.
fn people(token: &AccessToken, found: &TokenStanding) -> Vec<Part> {
    let facts = &found.facts;
    let client = format!("the client {}", in_text(token.client_id.as_str()));
    let events = "client_changed client_removed";
    let mut parts = vec![part(facts.client_enabled, client, events, of_client(token))];
    let Some(user) = &token.user else {
        return parts;
    };
    parts.push(part(
        found.user.as_ref().is_some_and(|user| user.enabled),
        format!("the user {}", user.subject.as_str()),
        "user_changed user_removed",
        of_user(user),
    ));
    if let Some(sid) = &user.sid
        && ends_with_session(token, facts)
    {
        parts.push(part(
            facts.session.is_some_and(|session| !session.ended),
            format!("the session {}", sid.as_str()),
            "session_ended signed_out",
            by_word(sid.as_str()),
        ));
    }
    parts
}

fn ends_with_session(token: &AccessToken, facts: &LivenessFacts) -> bool {
    let is_offline =
        token.scope.contains(OFFLINE_ACCESS) || facts.grant.is_some_and(|grant| grant.offline);
    !is_offline && token.delegation.is_none()
}

/// What was given before some event is over, by the epochs that the event moved on.
fn epochs(token: &AccessToken, found: &TokenStanding, of_code: Option<Epochs>) -> Vec<Part> {
    let present = found.facts.epochs;
    let of_grant = found.facts.grant.map(|grant| grant.epochs);
    let own = given_in(token, of_code.or(of_grant), present);
    let mut parts = vec![
        part(
            own.installation == present.installation,
            "all that this installation gave",
            "everything_revoked issuer_renamed",
            EventFilter::default(),
        ),
        part(
            own.client == present.client,
            "all that this client was given",
            "client_revoked client_changed",
            of_client(token),
        ),
    ];
    if let Some(user) = &token.user {
        parts.push(part(
            own.user == present.user,
            "all that this user signed in to",
            "user_revoked user_changed password_changed password_set_by_link \
             factor_added factor_removed",
            of_user(user),
        ));
        parts.push(part(
            own.consent == present.consent,
            "the user's consent",
            "consent_withdrawn",
            of_both(token),
        ));
    }
    parts
}

/// The epochs in which a token was given: where it stands on a grant, those of the grant.
fn given_in(token: &AccessToken, of_grant: Option<Epochs>, present: Epochs) -> Epochs {
    match token.jti.stands_on {
        StandsOn::Grant(_) => of_grant.unwrap_or(present),
        StandsOn::User(epochs) => epochs,
        StandsOn::Client {
            installation,
            client,
        } => Epochs {
            installation,
            client,
            ..present
        },
    }
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

pub(super) fn by_word(text: &str) -> EventFilter {
    EventFilter {
        word: Some(text.to_lowercase()),
        ..EventFilter::default()
    }
}

/// The latest event of one of these names that the filter lets through.
pub(super) fn ended_by(app: &App, names: &str, filter: &EventFilter) -> Result<String, StoreError> {
    let mut found = Vec::new();
    for name in names.split_whitespace() {
        let filter = EventFilter {
            event: Some(name.to_owned()),
            ..filter.clone()
        };
        found.extend(audit_events::list(&app.store, &filter, 1)?);
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

fn about(token: &AccessToken) -> Map<String, Value> {
    let user = token.user.as_ref();
    let tenant = user.and_then(|user| user.tenant.as_ref());
    let members = [
        ("kind", json!("access token")),
        ("client_id", json!(token.client_id.as_str())),
        ("sub", json!(user.map(|user| user.subject.as_str()))),
        ("tenant", json!(tenant.map(TenantName::as_str))),
        ("acr", json!(user.map(|user| user.acr.as_str()))),
        ("scope", json!(token.scope.to_string())),
        ("aud", json!(token.audience.join(" "))),
        ("issued_at", json!(time(token.issued_at))),
        ("expires_at", json!(time(token.expires_at))),
    ];
    let owned = members.map(|(name, value)| (name.to_owned(), value));
    Map::from_iter(owned)
}
