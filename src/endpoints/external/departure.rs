//! The way upstream: one cookie more, everything else sealed as `state`, and a redirect.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::Purpose;
use super::flow_cookies::{self, Flow};
use crate::app::App;
use crate::app::failure::Failure;
use crate::crypto::random;
use crate::endpoints::answers;
use crate::federation::{self, Keys};
use crate::http::{Method, Request, Response};
use crate::protocol::reason::Reason;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::secret::SecretText;
use crate::protocol::upstream::round_trip::{COOKIE, RoundTrip, STATE};
use crate::protocol::upstream::{Ask, UpstreamProblem};

/// Sends the browser upstream: 303, one flow cookie more. The inner error is for the caller to show.
pub fn depart(
    app: &App,
    request: &Request,
    purpose: Purpose<'_>,
    provider: &str,
) -> Result<Result<Response, UpstreamProblem>, Failure> {
    let snapshot = app.registry.snapshot();
    let registered = snapshot.catalogue.identity_providers.get(provider).filter(|provider| provider.enabled);
    let Some(provider) = registered else {
        return Ok(Err(UpstreamProblem::Unavailable(String::from("it is not registered, or disabled"))));
    };
    // To ask where a link leads is not to follow it.
    if request.method == Method::Head {
        return Ok(Ok(answers::nothing_to_show()));
    }
    let ask = purpose.ask();
    let (trip, flow, cookie) = begin(app, purpose, provider, &ask);
    let (trip, cookie) = within_limits(app, trip, cookie).ok_or_else(|| purpose.too_long())?;
    let state = seal(app, &RoundTrip { cookie_hash: Sha256::digest(&cookie).into(), ..trip.clone() });
    let keys = Keys { nonce: &trip.nonce, code_verifier: &trip.code_verifier };
    let address = match federation::departure(app, &snapshot, provider, &ask, &keys, &state) {
        Ok(address) => address,
        Err(problem) => return Ok(Err(problem)),
    };
    Ok(Ok(flow_cookies::begin(&app.config, request, answers::see_other(address), flow, &cookie)))
}

/// A way that begins now, with all that makes it this one; the cookie is random alone.
fn begin(app: &App, purpose: Purpose<'_>, provider: &IdentityProvider, ask: &Ask) -> (RoundTrip, Flow, String) {
    let (begun_at, number) = (app.now(), random::bytes());
    let (linking, request) = match purpose {
        Purpose::SignIn { visit, .. } => (None, Some(visit.sealed.clone())),
        Purpose::Link(present) => (Some(present.row.sid.clone()), None),
    };
    let trip = RoundTrip {
        linking,
        provider: provider.name.clone(),
        issuer: provider.authority().to_owned(),
        flow: number,
        cookie_hash: [0; 32],
        nonce: URL_SAFE_NO_PAD.encode(random::bytes::<16>()),
        code_verifier: SecretText::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>())),
        begun_at,
        max_age: ask.max_age,
        request,
    };
    (trip, Flow::new(begun_at, number), URL_SAFE_NO_PAD.encode(random::bytes::<32>()))
}

/// What is too long for a `state` goes with the cookie; `None` where it is too long for that as well.
fn within_limits(app: &App, mut trip: RoundTrip, cookie: String) -> Option<(RoundTrip, String)> {
    if seal(app, &trip).len() <= STATE {
        return Some((trip, cookie));
    }
    let cookie = format!("{cookie}.{}", trip.request.take()?);
    (cookie.len() <= COOKIE && seal(app, &trip).len() <= STATE).then_some((trip, cookie))
}

fn seal(app: &App, trip: &RoundTrip) -> String {
    app.vault.upstream_states.seal_text("", trip)
}

impl Purpose<'_> {
    pub(super) fn ask(self) -> Ask {
        match self {
            Purpose::SignIn { visit, someone_else } => {
                let ask = Ask::of(&visit.request);
                Ask { select_account: someone_else || ask.select_account, ..ask }
            }
            Purpose::Link(_) => Ask::for_linking(),
        }
    }

    fn too_long(self) -> Failure {
        match self {
            Purpose::SignIn { visit, .. } => visit.too_long(),
            Purpose::Link(_) => Failure::bad_request(Reason::RequestTooLong),
        }
    }
}
