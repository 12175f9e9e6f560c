//! The way upstream: one cookie more, everything else sealed as `state`, and a redirect.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::Purpose;
use super::flow_cookies::{self, Flow};
use super::provider::{self, Connection};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::round_trip::{COOKIE, RoundTrip, STATE};
use crate::protocol::upstream::{Ask, PromptValues, UpstreamProblem, external_url};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::registry::Snapshot;

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
        return Ok(Err(UpstreamProblem::unavailable("it is not registered, or disabled")));
    };
    // To ask where a link leads is not to follow it.
    if request.method == Method::Head {
        return Ok(Ok(answers::nothing_to_show()));
    }
    let (ask, linking, sealed) = match purpose {
        Purpose::SignIn { visit, someone_else } => {
            let ask = Ask::of(&visit.request);
            let select_account = someone_else || ask.select_account;
            (Ask { select_account, ..ask }, None, Some(visit.sealed.clone()))
        }
        Purpose::Link(present) => (Ask::for_linking(), Some(present.row.sid.clone()), None),
    };
    let mut trip = RoundTrip {
        linking,
        provider: provider.name.clone(),
        issuer: provider.authority().to_owned(),
        flow: random::bytes(),
        cookie_hash: [0; 32],
        nonce: URL_SAFE_NO_PAD.encode(random::bytes::<16>()),
        code_verifier: SecretText::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>())),
        begun_at: app.now(),
        max_age: ask.max_age,
        request: sealed,
    };
    let mut cookie = URL_SAFE_NO_PAD.encode(random::bytes::<32>());
    let seal = |trip: &RoundTrip| app.vault.upstream_states.seal_text("", trip);
    // What is too long for a `state` goes with the cookie.
    if seal(&trip).len() > STATE {
        cookie = format!("{cookie}.{}", trip.request.take().unwrap_or_default());
    }
    trip.cookie_hash = Sha256::digest(&cookie).into();
    let state = seal(&trip);
    if cookie.len() > COOKIE || state.len() > STATE {
        return Err(match purpose {
            Purpose::SignIn { visit, .. } => visit.too_long(),
            Purpose::Link(_) => Failure::bad_request(Reason::RequestTooLong),
        });
    }
    Ok(address(app, &snapshot, provider, &ask, &trip, &state).map(|address| {
        let flow = Flow::new(trip.begun_at, trip.flow);
        flow_cookies::begin(&app.config, request, answers::see_other(address), flow, &cookie)
    }))
}

/// The address that asks for a sign-in at a provider of `snapshot`: code flow, PKCE with S256, nonce, `state`. May fetch its
/// metadata. `LoginRequired` where they must sign in anew and the provider takes no request for that.
fn address(
    app: &App,
    snapshot: &Snapshot,
    provider: &IdentityProvider,
    ask: &Ask,
    trip: &RoundTrip,
    state: &str,
) -> Result<String, UpstreamProblem> {
    // Without it nobody could be let in who comes back.
    provider::secret(snapshot, provider)?;
    let metadata = Connection::open(app, provider)?.metadata;
    let taken = PromptValues::of(provider.prompt_values.as_ref(), metadata.prompt_values.as_ref());
    let ask = ask.as_far_as(taken).ok_or(UpstreamProblem::LoginRequired)?;
    let redirect_uri = external_url(app.issuer(), &provider.name, "callback");
    Ok(ask.address(&metadata.authorization_endpoint, provider, trip, &redirect_uri, state))
}
