//! `/external/{idp}/callback`: the way back from an upstream provider (OpenID Connect Core §3.1.2.5
//! to §3.1.3.7). Only what this browser began itself, a short while ago, and at this provider, goes
//! on; what else comes here gets one and the same page. Who it is that the provider vouches for:
//! their account is found or made, takes over what the provider says of them, and they are signed
//! in.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::departure::{self, Flow};
use super::provider;
use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Result};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::forms::require_form;
use crate::endpoints::login::{EXTERNAL_SIGN_IN_FAILED as FAILED, as_someone_else};
use crate::endpoints::transaction::AuthorizationTransaction;
use crate::endpoints::transaction::{Proof, RequestContext, Taken};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages::error::Problem;
use crate::registry::Snapshot;
use gatepost_protocol::authorize::authorize_response::with_query;
use gatepost_protocol::upstream::account::{
    AccountDecision, AccountRefusal, ClaimsChange, decide, possible_claims,
};
use gatepost_protocol::upstream::answers::passed_on;
use gatepost_protocol::upstream::round_trip::{self, Ask, RoundTrip};
use gatepost_protocol::upstream::{UpstreamIdentity, UpstreamProblem, claims, external_url};
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::linked_identities::{self, Link, LinkedUser};
use gatepost_store::upstream_sessions::{Arrival, UpstreamSession};
use gatepost_store::users::{self, CurrentUser, UserRow};

/// By how much the clock here may lag behind or be ahead of the database's, which dates the
/// sign-outs upstream: rather somebody signs in anew than that a sign-out is missed.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// Somebody who is back from upstream, in the browser that left.
pub struct Back<'a> {
    pub app: &'a App,
    pub request: &'a Request,
    pub trip: RoundTrip,
    /// The page's `r`; empty for a link.
    pub sealed: String,
    parameters: Parameters,
    pub snapshot: Arc<Snapshot>,
    flow: Flow,
}

/// Who somebody is at the provider that they come from.
pub struct Identified<'a> {
    pub provider: &'a IdentityProvider,
    pub identity: UpstreamIdentity,
}

impl<'a> Back<'a> {
    /// Reads what comes back. Whatever this browser did not begin itself, a short while ago and at
    /// this provider, gets the answer in `Err`.
    pub fn of(
        app: &'a App,
        request: &'a Request,
        provider: &str,
    ) -> Result<Back<'a>, Box<Response>> {
        // Neither is a callback, and the code is good for one request.
        if request.method == Method::Head || is_prefetch(request) {
            return Err(Box::new(answers::nothing_to_show()));
        }
        let is_over = || Box::new(over(app, request, Reason::RoundTripOver));
        let parameters = request.query_parameters().cloned().unwrap_or_default();
        let trip = trip_underway(app, &parameters, provider).ok_or_else(is_over)?;
        let flow = Flow::new(trip.begun_at, trip.flow);
        let cookie = request
            .cookie(&flow.cookie_name(&app.config))
            .filter(|cookie| is_of(cookie, &trip))
            .ok_or_else(is_over)?;
        Ok(Back {
            sealed: sealed_in(&trip, cookie),
            snapshot: app.registry.snapshot(),
            app,
            request,
            trip,
            parameters,
            flow,
        })
    }

    /// The code is spent: this round trip is over, whatever the answer.
    pub fn end(&self, answer: Result<Response>) -> Result<Response> {
        let config = &self.app.config;
        match answer {
            Ok(response) => Ok(departure::end(config, response, self.flow)),
            Err(failure) => Err(Failure::WithHeader {
                name: "Set-Cookie",
                value: departure::removal(config, self.flow),
                failure: Box::new(failure),
            }),
        }
    }

    /// Finds out who they are there, if they may still go on from that provider.
    pub fn identify(
        &self,
        may_go_on: impl FnOnce(&IdentityProvider) -> bool,
    ) -> Result<Identified<'_>, UpstreamProblem> {
        // Where they went, if the name stands for the same issuer still: what that one sent is no
        // other's to see.
        let provider = provider::registered(&self.snapshot, &self.trip.provider)
            .filter(|provider| provider.authority() == self.trip.issuer)
            .filter(|provider| may_go_on(provider))
            .ok_or_else(|| {
                UpstreamProblem::unavailable(
                    "it was disabled, forbidden or changed in the meantime",
                )
            })?;
        let identity = provider::identity(
            self.app,
            &self.snapshot,
            provider,
            &self.trip,
            &self.parameters,
        )?;
        Ok(Identified { provider, identity })
    }

    /// Lets them in, as the user whom the provider vouches for.
    pub fn take(&self, context: RequestContext<'_>, identified: &Identified<'_>) -> Result<Taken> {
        let Identified { provider, identity } = identified;
        let entry = Entry {
            app: context.app,
            request: context.request,
            transaction: context.transaction,
            provider,
            identity,
        };
        entry.enter(&self.trip)
    }
}

/// Takes the answer that a provider posts, and sends the browser to the same address with it. A
/// post from another site has no `Lax` cookie; the GET that follows has.
pub fn take_post(app: &App, request: &Request, provider: &str) -> Result<Response> {
    let snapshot = app.registry.snapshot();
    if !provider::registered(&snapshot, provider).is_some_and(|found| found.posts_answer) {
        let code = TokenErrorCode::InvalidRequest;
        return Err(Failure::WithHeader {
            name: "Allow",
            value: String::from("GET, HEAD"),
            failure: Box::new(Failure::refused(405, code, Reason::MethodNotAllowed)),
        });
    }
    require_form(request, 415)?;
    Ok(match passed_on(&request.body) {
        Some(parameters) => {
            let callback = external_url(app.issuer(), provider, "callback");
            answers::see_other(with_query(&callback, &parameters))
        }
        None => over(app, request, Reason::RoundTripOver),
    })
}

/// The round trip that `state` tells of, if it leads back from this provider.
fn trip_underway(app: &App, parameters: &Parameters, provider: &str) -> Option<RoundTrip> {
    let sent = parameters
        .bounded("state", parameters::HANDLE)
        .ok()
        .flatten();
    let trip: RoundTrip = app.vault.upstream_states.open_text("", sent?)?;
    (trip.provider == provider && trip.is_underway(app.now())).then_some(trip)
}

/// Whether the browser only makes ready for a visit that may never come.
fn is_prefetch(request: &Request) -> bool {
    let purposes = [
        request.headers.first("sec-purpose"),
        request.headers.first("purpose"),
    ];
    purposes
        .into_iter()
        .flatten()
        .any(|purpose| purpose.contains("prefetch"))
}

/// Whether the cookie is the one that left, in constant time.
fn is_of(cookie: &str, trip: &RoundTrip) -> bool {
    let hash: [u8; 32] = Sha256::digest(cookie).into();
    SecretBytes::new(hash) == SecretBytes::new(trip.cookie_hash)
}

fn sealed_in(trip: &RoundTrip, cookie: &str) -> String {
    let of_cookie = cookie.split_once('.').map(|(_, sealed)| sealed);
    let sealed = trip.request.as_deref().or(of_cookie).unwrap_or_default();
    sealed.to_owned()
}

/// One page for every bad callback, so that a stranger does not learn what was wrong.
pub fn over(app: &App, request: &Request, reason: Reason) -> Response {
    app.note_failure(FAILED, request, None, Concerned::Nobody, reason);
    answers::error_page(
        &Presentation::of(app, request),
        Problem::RoundTripOver,
        reason,
    )
}

struct Entry<'a> {
    app: &'a App,
    request: &'a Request,
    transaction: &'a AuthorizationTransaction,
    provider: &'a IdentityProvider,
    identity: &'a UpstreamIdentity,
}

/// Whose account an identity leads to.
enum AccountFound {
    User(Box<CurrentUser>),
    Refused(AccountRefusal),
}

impl Entry<'_> {
    /// Lets somebody in whom the provider vouches for, by that way.
    fn enter(&self, trip: &RoundTrip) -> Result<Taken> {
        self.log_left_out_claims();
        let claims = possible_claims(&self.identity.claims);
        let mut accepted = self.find_or_provision(&claims);
        // Somebody was quicker, most likely they themselves: with the same identity, which now is
        // there, or with another change of the user. Now that is judged.
        if let Err(StoreError::Taken(_) | StoreError::Conflict(_)) = accepted {
            accepted = self.find_or_provision(&claims);
        }
        if let Err(StoreError::Taken(_)) = accepted {
            let changed_hands = String::from("the identity changed hands meanwhile");
            return Err(StoreError::Conflict(changed_hands).into());
        }
        match accepted? {
            AccountFound::User(user) => Ok(Taken::Proved(user, self.proof(trip))),
            AccountFound::Refused(refusal) => Ok(Taken::Answer(self.refuse(refusal))),
        }
    }

    fn log_left_out_claims(&self) {
        let left_out = &self.identity.left_out;
        if !left_out.is_empty() {
            let id = &self.request.id;
            let name = &self.provider.name;
            let left_out = left_out.join(", ");
            log::warn!(
                "request {id}: identity provider {name} says too much of somebody, left out: \
                 {left_out}"
            );
        }
    }

    fn proof(&self, trip: &RoundTrip) -> Proof {
        let provider = self.provider;
        let facts = &self.identity.facts;
        let ask = Ask::of(&self.transaction.request);
        let asked_at = self.transaction.request.received_at;
        // By the database's clock the request may lie a moment ahead of this process.
        let now = self.app.now().max(asked_at);
        let acr = claims::acr(provider, facts.acr.as_deref());
        Proof {
            identity_provider: provider.name.clone(),
            amr: claims::amr(&acr, &facts.amr),
            acr,
            auth_time: Some(round_trip::auth_time(
                facts.auth_time,
                ask.asks_for_age().then_some(asked_at),
                now,
            )),
            upstream: Some(Arrival {
                session: self.upstream_session(),
                left_at: trip.begun_at.minus(CLOCKS_APART),
                way: trip.cookie_hash,
                way_over_at: trip.over_at(),
            }),
            remember: None,
        }
    }

    fn upstream_session(&self) -> UpstreamSession {
        let UpstreamIdentity {
            facts, id_token, ..
        } = self.identity;
        // Kept only where signing out here signs out there, and if it fits into an address.
        let id_token = id_token
            .as_ref()
            .map(SecretText::expose)
            .filter(|token| self.provider.sign_out && token.len() <= parameters::ID_TOKEN_HINT);
        UpstreamSession {
            issuer: self.provider.authority().to_owned(),
            subject: facts.subject.clone(),
            sid: facts.sid.clone(),
            sealed_id_token: id_token
                .map(|token| self.app.vault.upstream_id_tokens.seal(token.as_bytes())),
        }
    }

    /// The user, with what the provider says of them now; `Taken` when the identity found an owner
    /// in between, `Conflict` when the user was changed.
    fn find_or_provision(&self, said: &JsonObject) -> Result<AccountFound, StoreError> {
        let store = &self.app.store;
        let tenant = self.transaction.request.acr_values.tenant.as_ref();
        let issuer = self.provider.authority();
        let upstream_subject = self.identity.facts.subject.as_str();
        let linked = linked_identities::find_user(store, issuer, upstream_subject, None)?;
        let known = linked
            .as_ref()
            .map(|linked| linked.found.user.clone().into_core());
        let linked = match decide(self.provider, tenant, known.as_ref()) {
            AccountDecision::Refuse(refusal) => return Ok(AccountFound::Refused(refusal)),
            AccountDecision::SignIn => linked,
            AccountDecision::Provision => None,
        };
        let user = match linked {
            Some(linked) => self.update(linked, said)?,
            None => self.provision(said)?,
        };
        Ok(AccountFound::User(Box::new(user)))
    }

    /// Takes over what the provider says, where that changes something.
    fn update(&self, linked: LinkedUser, said: &JsonObject) -> Result<CurrentUser, StoreError> {
        let mut found = linked.found;
        let before = &linked.claims;
        let current = &found.user.claims;
        let said = &self.without_admin_roles(said, current);
        let change = match &self.app.config.administration {
            Some(set) => ClaimsChange::beside_admin_roles(set, current, before, said),
            None => ClaimsChange::between(current, before, said),
        };
        if change.is_empty() && before == said {
            return Ok(found);
        }
        let claims = change.applied(current);
        let link = self.link(&found.user.sub);
        let detail = json!({"by": self.provider.name, "claims": change.names()});
        let event = self.event("user_changed", &found.user.sub, detail);
        let store = &self.app.store;
        linked_identities::update_claims(store, &link, &linked.version, said, &claims, &event)?;
        self.note_shared_address(&event)?;
        found.user.claims = claims;
        Ok(found)
    }

    /// Adds the user, who is new here.
    fn provision(&self, said: &JsonObject) -> Result<CurrentUser, StoreError> {
        let store = &self.app.store;
        let tenant = self.transaction.request.acr_values.tenant.as_ref();
        let said = self.without_admin_roles(said, &JsonObject::new());
        let mut claims = self.identity.own_word.clone();
        claims.extend(said.clone());
        let user = new_user(tenant, claims);
        let link = self.link(&user.sub);
        let detail = json!({
            "identity_provider": self.provider.name, "issuer": link.issuer,
            "upstream_subject": link.upstream_subject,
        });
        let event = self.event("user_provisioned", &user.sub, detail);
        let epochs =
            linked_identities::provision(store, &link, tenant, &said, &user.claims, &event)?;
        self.note_shared_address(&event)?;
        let user = UserRow {
            epoch: epochs.user,
            ..user
        };
        Ok(CurrentUser {
            user,
            installation_epoch: epochs.installation,
            consent_epoch: 0,
            username_key: None,
        })
    }

    /// What the provider says, but for the roles of administrators: it neither gives nor takes
    /// them. The log tells of those that the user does not have at `current`.
    fn without_admin_roles(&self, said: &JsonObject, current: &JsonObject) -> JsonObject {
        let Some(administration) = &self.app.config.administration else {
            return said.clone();
        };
        if administration.has_admin_role(said)
            && administration.keep_admin_roles(current, &mut said.clone())
        {
            let id = &self.request.id;
            let name = &self.provider.name;
            log::warn!(
                "request {id}: identity provider {name} gives the role of administrators: dropped"
            );
        }
        administration.without_admin_roles(said)
    }

    fn link<'b>(&'b self, sub: &'b Subject) -> Link<'b> {
        Link {
            issuer: self.provider.authority(),
            upstream_subject: self.identity.facts.subject.as_str(),
            sub,
            provider: Some(&self.provider.name),
        }
    }

    fn event<'b>(&'b self, event: &'b str, sub: &'b Subject, detail: Value) -> AuditEvent<'b> {
        AuditEvent {
            event,
            client_id: self.transaction.client_id(),
            sub: Some(sub),
            detail,
            ..self.request.caused(AuditEvent::default())
        }
    }

    /// Where the provider's word is trusted, somebody else may have the address, too.
    fn note_shared_address(&self, event: &AuditEvent<'_>) -> Result<(), StoreError> {
        let provider = self.provider;
        match event.sub.filter(|_| provider.trust_email) {
            Some(sub) => users::note_shared_address(&self.app.store, sub, &provider.name, event),
            None => Ok(()),
        }
    }

    fn refuse(&self, refusal: AccountRefusal) -> Response {
        let (problem, reason) = problem_of(refusal);
        let Entry {
            app,
            request,
            transaction,
            provider,
            ..
        } = self;
        let concerned = Concerned::Provider(&provider.name);
        app.note_failure(FAILED, request, transaction.client_id(), concerned, reason);
        let presentation = Presentation::of(app, request).about(transaction.client_id());
        // Otherwise the provider would let the same person in once more, without a word.
        let sign_in = as_someone_else(transaction.page(app, "/login"));
        let ui_locales = transaction.ui_locales();
        // What the operator needs for `gatepost user link`.
        let subject = self.identity.facts.subject.escape_debug();
        let name = &provider.name;
        let detail = format!("identity provider {name}, subject there {subject}");
        let cause = (reason, Some(detail.as_str()));
        let mut response =
            answers::error_page_with(&presentation, problem, cause, ui_locales, Some(&sign_in));
        response.note.client_id = transaction.client_id().map(ToString::to_string);
        response.note.detail = Some(detail);
        response
    }
}

fn new_user(tenant: Option<&TenantName>, claims: JsonObject) -> UserRow {
    UserRow {
        sub: Subject::of_random(random::bytes()),
        username: None,
        tenant: tenant.cloned(),
        password_hash: None,
        enabled: true,
        valid_until: None,
        has_ended: false,
        claims,
        epoch: 0,
        factors: 0,
        strongest_acr: Strength::SignedIn,
    }
}

fn problem_of(refusal: AccountRefusal) -> (Problem, Reason) {
    match refusal {
        AccountRefusal::NotProvisioned => (Problem::NotProvisioned, Reason::NotProvisioned),
        AccountRefusal::Disabled => (Problem::AccountDisabled, Reason::UpstreamUserDisabled),
        AccountRefusal::OtherTenant => (Problem::AccountElsewhere, Reason::UpstreamUserElsewhere),
    }
}
