//! Lets somebody in whom an upstream provider vouches for: finds their account or makes one, takes over what the provider
//! says of them, and signs them in.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::FAILED;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation, WayBack};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::Visit;
use crate::endpoints::login;
use crate::endpoints::login::sign_in::{self, Proof};
use crate::http::{Request, Response};
use crate::keys::random;
use crate::pages::error::Problem;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::account::{AccountDecision, AccountRefusal, ClaimsChange, decide, possible_claims};
use crate::protocol::upstream::round_trip::{self, RoundTrip};
use crate::protocol::upstream::{Ask, UpstreamIdentity, claims};
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::lengths;
use crate::protocol::words::reason::Reason;
use crate::store::StoreError;
use crate::store::audit_events::AuditEvent;
use crate::store::linked_identities::{self, Link, LinkedUser};
use crate::store::upstream_sessions::{Arrival, UpstreamSession};
use crate::store::users::{CurrentUser, UserRow};

/// By how much the clock here may lag behind or be ahead of the database's, which dates the sign-outs upstream: rather
/// somebody signs in anew than that a sign-out is missed.
const CLOCKS_APART: Duration = Duration::from_millis(50);

pub(crate) struct Entry<'a> {
    pub(crate) app: &'a App,
    pub(crate) request: &'a Request,
    pub(crate) visit: &'a Visit,
    pub(crate) provider: &'a IdentityProvider,
    pub(crate) identity: &'a UpstreamIdentity,
    pub(crate) trip: &'a RoundTrip,
}

impl Entry<'_> {
    pub(crate) fn enter(&self, present: Option<&PresentSession>) -> Result<Response, Failure> {
        self.tell_of_what_was_left_out();
        let claims = possible_claims(&self.identity.claims);
        let accepted = match self.find_or_provision(&claims) {
            // Somebody was quicker with the same identity, most likely they themselves: now they are there.
            Err(StoreError::Taken(_)) => self.find_or_provision(&claims).map_err(lost_twice)?,
            found => found?,
        };
        match accepted {
            Ok(accepted) => sign_in::complete(self.app, self.request, self.visit, present, accepted, &self.proof()),
            Err(refusal) => Ok(self.refuse(refusal)),
        }
    }

    fn tell_of_what_was_left_out(&self) {
        let (id, provider, left_out) = (&self.request.id, &self.provider.name, self.identity.left_out.join(", "));
        if !left_out.is_empty() {
            log::warn!("request {id}: identity provider {provider} says too much of somebody, left out: {left_out}");
        }
    }

    /// The user; `Taken` when the identity found an owner in between.
    fn find_or_provision(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<Result<CurrentUser, AccountRefusal>, StoreError> {
        let (issuer, subject) = (self.provider.authority(), &self.identity.facts.subject);
        let linked = linked_identities::find_user(&self.app.store, issuer, subject, None)?;
        let user = linked.as_ref().map(|linked| linked.found.user.to_core());
        let known = match decide(self.provider, self.visit.request.acr_values.tenant.as_ref(), user.as_ref()) {
            AccountDecision::Refuse(refusal) => return Ok(Err(refusal)),
            AccountDecision::SignIn => linked,
            AccountDecision::Provision => None,
        };
        Ok(Ok(match known {
            Some(linked) => self.take_over(linked, claims)?,
            None => self.provision(claims)?,
        }))
    }

    fn provision(&self, claims: &Map<String, Value>) -> Result<CurrentUser, StoreError> {
        let user = UserRow {
            sub: Subject::of_random(random::bytes()),
            username: None,
            tenant: self.visit.request.acr_values.tenant.as_ref().cloned(),
            password_hash: None,
            enabled: true,
            claims: claims.clone(),
            epoch: 0,
        };
        let detail = json!({
            "identity_provider": self.provider.name,
            "issuer": self.provider.authority(),
            "upstream_subject": self.identity.facts.subject,
        });
        let event = self.event("user_provisioned", &user.sub, detail);
        let (link, tenant) = (self.link(&user.sub), user.tenant.as_ref());
        let epochs = linked_identities::provision(&self.app.store, &link, tenant, claims, &event)?;
        let user = UserRow { epoch: epochs.user, ..user };
        Ok(CurrentUser { user, installation_epoch: epochs.installation, consent_epoch: 0 })
    }

    /// The user with what the provider says of them now; written only where that changes something.
    fn take_over(&self, linked: LinkedUser, said: &Map<String, Value>) -> Result<CurrentUser, StoreError> {
        let LinkedUser { found, claims: before, .. } = linked;
        let user = &found.user;
        let change = ClaimsChange::between(&user.claims, &before, said);
        if change.is_empty() && before == *said {
            return Ok(found);
        }
        let removed: Vec<&str> = change.removed.iter().map(String::as_str).collect();
        let detail = json!({"by": self.provider.name, "claims": change.names()});
        let event = self.event("user_changed", &user.sub, detail);
        linked_identities::update_claims(&self.app.store, &self.link(&user.sub), said, &change.set, &removed, &event)?;
        let user = UserRow { claims: change.applied(&user.claims), ..user.clone() };
        Ok(CurrentUser { user, ..found })
    }

    fn link<'b>(&'b self, sub: &'b Subject) -> Link<'b> {
        let (issuer, upstream_subject) = (self.provider.authority(), &self.identity.facts.subject);
        Link { issuer, upstream_subject, sub, provider: Some(&self.provider.name) }
    }

    fn event<'b>(&'b self, event: &'b str, sub: &'b Subject, detail: Value) -> AuditEvent<'b> {
        AuditEvent {
            event,
            client_id: self.visit.client_id(),
            sub: Some(sub),
            source: Some(self.request.source),
            request_id: Some(&self.request.id),
            detail,
            ..AuditEvent::default()
        }
    }

    fn proof(&self) -> Proof {
        let facts = &self.identity.facts;
        let (ask, asked_at) = (Ask::of(&self.visit.request), self.visit.request.received_at);
        // By the database's clock the request may lie a moment ahead of this process.
        let now = self.app.now().max(asked_at);
        let auth_time = round_trip::auth_time(facts.auth_time, ask.asks_for_age().then_some(asked_at), now);
        Proof {
            identity_provider: self.provider.name.clone(),
            amr: facts.amr.clone(),
            acr: claims::acr(self.provider, facts.acr.as_deref()),
            auth_time: Some(auth_time),
            upstream: Some(Arrival {
                session: UpstreamSession {
                    issuer: self.provider.authority().to_owned(),
                    subject: facts.subject.clone(),
                    sid: facts.sid.clone(),
                    sealed_id_token: self.sealed_id_token(),
                },
                left_at: self.trip.begun_at.minus(CLOCKS_APART),
                way: self.trip.cookie_hash,
                way_over_at: self.trip.over_at(),
            }),
        }
    }

    /// Kept only where signing out here signs out there; what is too long to be shown there is of no use.
    fn sealed_id_token(&self) -> Option<Vec<u8>> {
        let token = self.identity.id_token.as_ref().filter(|_| self.provider.sign_out)?.expose();
        (token.len() <= lengths::ID_TOKEN_HINT).then(|| self.app.vault.upstream_id_tokens.seal(token.as_bytes()))
    }

    fn refuse(&self, refusal: AccountRefusal) -> Response {
        let (problem, reason) = match refusal {
            AccountRefusal::NotProvisioned => (Problem::NotProvisioned, Reason::NotProvisioned),
            AccountRefusal::Disabled => (Problem::AccountDisabled, Reason::UpstreamUserDisabled),
            AccountRefusal::OtherTenant => (Problem::AccountElsewhere, Reason::UpstreamUserElsewhere),
        };
        let Entry { app, request, visit, provider, .. } = self;
        app.note_upstream_failure(FAILED, request, visit.client_id(), (&provider.name, reason));
        let presentation = Presentation { config: &app.config, request };
        // Otherwise the provider would let the same person in once more, without a word.
        let sign_in = login::as_someone_else(visit.page(app, "/login"));
        let way_back = WayBack { sign_in: &sign_in, ui_locales: visit.ui_locales() };
        let mut response = answers::error_page_with(&presentation, problem, reason, Some(way_back));
        response.note.client_id = visit.client_id().map(ToString::to_string);
        // What the operator needs for `gatepost user link`.
        let subject = self.identity.facts.subject.escape_debug();
        response.note.detail = Some(format!("identity provider {}, subject there {subject}", provider.name));
        response
    }
}

fn lost_twice(error: StoreError) -> StoreError {
    if matches!(error, StoreError::Taken(_)) {
        return StoreError::Conflict(String::from("the identity changed hands meanwhile"));
    }
    error
}
