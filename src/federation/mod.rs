//! We as a client of somebody else's provider: what is sent there, and what comes back, verified. Decides nothing itself:
//! `protocol/upstream/` does. Stores nothing.

mod connection;
mod identity;
mod logout;

use connection::Connection;

pub use identity::identity;
pub use logout::{logout_token, sign_out_address};

use crate::app::App;
use crate::outbound::OutboundError;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::secret::SecretText;
use crate::protocol::upstream::authorization::AuthorizationRequest;
use crate::protocol::upstream::{Ask, UpstreamProblem};
use crate::registry::Snapshot;

/// What proves that an answer is of one round trip: made when the browser leaves, and the same when it is back.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// `nonce`: what the ID token must repeat.
    pub nonce: &'a str,
    /// `code_verifier`: 43 to 128 unreserved characters.
    pub code_verifier: &'a SecretText,
}

/// The address that asks for a sign-in at a provider of `snapshot`: code flow, PKCE with S256, nonce, `state`. May fetch its
/// metadata. `LoginRequired` where they must sign in anew and the provider takes no request for that.
pub fn departure(
    app: &App,
    snapshot: &Snapshot,
    provider: &IdentityProvider,
    ask: &Ask,
    keys: &Keys<'_>,
    state: &str,
) -> Result<String, UpstreamProblem> {
    // Without it nobody could be let in who comes back.
    connection::secret(snapshot, provider)?;
    let connection = Connection::open(app, provider)?;
    let ask = ask.as_far_as(connection.prompt_values()).ok_or(UpstreamProblem::LoginRequired)?;
    let request = AuthorizationRequest {
        endpoint: connection.authorization_endpoint(),
        client_id: &provider.client_id,
        redirect_uri: &connection.redirect_uri(),
        scope: &provider.scope,
        state,
        nonce: connection.is_openid().then_some(keys.nonce),
        code_verifier: keys.code_verifier,
        acr_map: &provider.acr_map,
        ask: &ask,
    };
    Ok(request.address())
}

/// Why a request of ours had no answer, as what it means for the sign-in.
fn unanswered(what: &str, error: OutboundError) -> UpstreamProblem {
    match error {
        OutboundError::Busy => UpstreamProblem::Busy,
        error @ (OutboundError::Url(_)
        | OutboundError::NameNotFound
        | OutboundError::AddressRefused
        | OutboundError::TooSlow
        | OutboundError::TooLong
        | OutboundError::NotTrusted
        | OutboundError::Failed(_)) => UpstreamProblem::Unavailable(format!("{what}: {error}")),
    }
}
