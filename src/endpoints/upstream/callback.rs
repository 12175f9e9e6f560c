//! `/external/{idp}/callback`: the way back from an upstream provider. Only what this browser began itself, a short while
//! ago, and at this provider, goes on; what else comes here gets one and the same page.

use sha2::{Digest, Sha256};

use super::FAILED;
use super::entry::Entry;
use super::flow_cookies::{self, Flow};
use super::provider;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::account::linked;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::sealed_address;
use crate::endpoints::authorize::visit::Visit;
use crate::endpoints::login::LoginPage;
use crate::http::{Method, Request, Response};
use crate::pages::error::Problem;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::round_trip::RoundTrip;
use crate::protocol::upstream::{UpstreamIdentity, UpstreamProblem};
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretBytes;
use crate::registry::Snapshot;

struct Return<'a> {
    app: &'a App,
    request: &'a Request,
    parameters: &'a Parameters,
    trip: &'a RoundTrip,
    /// The page's `r`; empty for a link.
    sealed: &'a str,
}

/// Takes somebody in who comes from upstream.
pub fn handle(app: &App, request: &Request, provider: &str) -> Result<Response, Failure> {
    // Neither is anybody's coming back, and the code that upstream gave is good for one.
    if request.method == Method::Head || is_prefetch(request) {
        return Ok(answers::nothing_to_show());
    }
    let parameters = Parameters::parse(request.query.as_bytes()).unwrap_or_default();
    let state = parameters.bounded("state", lengths::HANDLE).ok().flatten().unwrap_or_default();
    let trip: Option<RoundTrip> = app.vault.upstream_states.open_text("", state);
    let underway = trip.filter(|trip| trip.provider == provider && trip.is_underway(app.now()));
    let Some(trip) = underway else { return Ok(over(app, request, Reason::RoundTripOver)) };
    let flow = Flow::new(trip.begun_at, trip.flow);
    let Some(cookie) = request.cookie(&flow.cookie_name(&app.config)).filter(|cookie| is_of(cookie, &trip)) else {
        return Ok(over(app, request, Reason::RoundTripOver));
    };
    let of_cookie = cookie.split_once('.').map(|(_, sealed)| sealed);
    let sealed = trip.request.as_deref().or(of_cookie).unwrap_or_default();
    let arrived = Return { app, request, parameters: &parameters, trip: &trip, sealed }.go_on();
    // What upstream gave is spent: this way is at its end whatever the answer.
    match arrived {
        Ok(response) => Ok(flow_cookies::end(&app.config, response, flow)),
        Err(failure) => {
            let set_cookie = flow_cookies::removal(&app.config, flow);
            Err(Failure::WithCookie { set_cookie, failure: Box::new(failure) })
        }
    }
}

/// Whether the browser only makes ready for a visit that may never come.
fn is_prefetch(request: &Request) -> bool {
    let purposes = [request.headers.first("sec-purpose"), request.headers.first("purpose")];
    purposes.into_iter().flatten().any(|purpose| purpose.contains("prefetch"))
}

/// Whether the cookie is the one that left, in constant time.
fn is_of(cookie: &str, trip: &RoundTrip) -> bool {
    let hash: [u8; 32] = Sha256::digest(cookie).into();
    SecretBytes::new(hash) == SecretBytes::new(trip.cookie_hash)
}

/// One page for all that is no way back, so that nobody learns what was wrong with it.
pub fn over(app: &App, request: &Request, reason: Reason) -> Response {
    app.note_failure(FAILED, request, None, reason);
    answers::error_page(&Presentation { config: &app.config, request }, Problem::RoundTripOver, reason)
}

impl Return<'_> {
    fn go_on(&self) -> Result<Response, Failure> {
        if let Some(sid) = &self.trip.linking {
            return self.link(sid);
        }
        let Return { app, request, trip, .. } = self;
        let visit = &Visit::resume(app, sealed_address::open_text(app, self.sealed)?)?;
        let snapshot = app.registry.snapshot();
        let provider = self.provider(&snapshot).filter(|provider| visit.choices().offers(&provider.name));
        let arrived = self.identity(&snapshot, provider);
        // Read after that wait: a session that was revoked meanwhile is not to go on.
        let present = PresentSession::find(app, request).map_err(|failure| visit.silent(failure))?;
        match arrived {
            Ok((provider, identity)) => {
                Entry { app, request, visit, provider, identity: &identity, trip }.enter(present.as_ref())
            }
            Err(problem) => LoginPage::of(app, request, visit).after(&trip.provider, &problem),
        }
    }

    /// Only within the session that asked for it: whoever signed in here since is somebody else.
    fn link(&self, sid: &Sid) -> Result<Response, Failure> {
        let Return { app, request, .. } = self;
        let present = PresentSession::find(app, request)?.filter(|present| present.row.sid == *sid);
        let Some(present) = present else { return Ok(over(app, request, Reason::LinkSessionOver)) };
        let snapshot = app.registry.snapshot();
        let provider = self.provider(&snapshot).filter(|provider| linked::may_link(&snapshot, &present, provider));
        match self.identity(&snapshot, provider) {
            Ok((provider, identity)) => linked::arrived(app, request, &present, provider, &identity),
            Err(problem) => linked::not_arrived(app, request, &present, &self.trip.provider, &problem),
        }
    }

    /// Where they went, if the name stands for the same issuer still: what that one sent is no other's to see.
    fn provider<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s IdentityProvider> {
        let registered = snapshot.catalogue.identity_providers.get(&self.trip.provider);
        registered.filter(|provider| provider.enabled && provider.authority() == self.trip.issuer)
    }

    /// Who they are upstream; `provider`, of that snapshot, is absent when what is registered has changed meanwhile.
    fn identity<'p>(
        &self,
        snapshot: &Snapshot,
        provider: Option<&'p IdentityProvider>,
    ) -> Result<(&'p IdentityProvider, UpstreamIdentity), UpstreamProblem> {
        let gone = || UpstreamProblem::unavailable("it was disabled, forbidden or changed in the meantime");
        let provider = provider.ok_or_else(gone)?;
        Ok((provider, provider::identity(self.app, snapshot, provider, self.trip, self.parameters)?))
    }
}
