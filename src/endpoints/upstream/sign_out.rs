//! Signing out at the identity provider as well (OpenID Connect RP-Initiated Logout 1.0), once the session here is over.
//! Where the browser goes in the end travels sealed as `state`; nothing else that comes back is followed.

use super::provider::Connection;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::sealed_address;
use crate::endpoints::logout::end_session::SignOut;
use crate::http::{Method, Request, Response};
use crate::protocol::authorize::authorize_response::with_query;
use crate::protocol::authorize::sealed_request::SealedPurpose;
use crate::protocol::logout::end_session::{EndSessionRequest, UpstreamReturn};
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::external_url;
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::store::upstream_sessions;

/// An address much longer than that is cut or refused on its way; the ID token in it is only a help.
const LONGEST_ADDRESS: usize = 8_000;

pub struct UpstreamSignOut {
    provider: IdentityProvider,
    id_token: Option<SecretText>,
}

impl UpstreamSignOut {
    /// For a session that came from a provider where signing out here signs out there.
    pub fn of(app: &App, present: &PresentSession) -> Result<Option<UpstreamSignOut>, Failure> {
        let snapshot = app.registry.snapshot();
        let provider = snapshot.catalogue.identity_providers.get(present.row.identity_provider());
        let Some(provider) = provider.filter(|provider| provider.enabled && provider.sign_out) else {
            return Ok(None);
        };
        let upstream = upstream_sessions::find(&app.store, present.row.day, &present.row.sid)?;
        // Whoever has taken over the name never signed them in, and is not to see what says who they are elsewhere.
        let of_issuer = upstream.filter(|upstream| upstream.issuer == provider.authority());
        let Some(upstream) = of_issuer else { return Ok(None) };
        let sealed = upstream.sealed_id_token;
        let opened = sealed.and_then(|sealed| app.vault.upstream_id_tokens.open(&sealed));
        let id_token = opened.and_then(|bytes| String::from_utf8(bytes).ok()).map(SecretText::new);
        Ok(Some(UpstreamSignOut { provider: provider.clone(), id_token }))
    }

    /// What the provider is called, and where signing out there begins (OpenID Connect RP-Initiated Logout 1.0 §2), without the ID token where that is too long;
    /// `None` where the provider is away or offers no such thing: the sign-out here is complete without it.
    pub fn onward(&self, app: &App, request: &EndSessionRequest) -> Option<(String, String)> {
        let provider = &self.provider;
        let returns = UpstreamReturn { provider: provider.name.clone(), request: request.clone() };
        let state = sealed_address::seal(app, SealedPurpose::SignedOut(returns)).sealed;
        let back = external_url(app.issuer(), &provider.name, "signed-out");
        let metadata = Connection::open(app, provider).ok()?.metadata;
        let endpoint = metadata.end_session_endpoint.as_deref()?;
        let mut parameters =
            vec![("client_id", provider.client_id.clone()), ("post_logout_redirect_uri", back), ("state", state)];
        let without_token = with_query(endpoint, &parameters);
        if let Some(token) = &self.id_token {
            parameters.insert(0, ("id_token_hint", token.expose().to_owned()));
        }
        let addresses = [with_query(endpoint, &parameters), without_token];
        let address = addresses.into_iter().find(|address| address.len() <= LONGEST_ADDRESS)?;
        Some((provider.display_name.clone(), address))
    }
}

/// `/external/{idp}/signed-out`: the browser is back. What did not begin here is shown what is so: that nobody is signed in, or
/// the question whether to sign out.
pub fn handle(app: &App, request: &Request, provider: &str) -> Result<Response, Failure> {
    let query = Parameters::parse(request.query.as_bytes()).map_err(Failure::bad_request)?;
    let state = query.bounded("state", lengths::HANDLE).map_err(Failure::bad_request)?;
    let Some(returns) = state.and_then(|state| open(app, state)).filter(|returns| returns.provider == provider) else {
        let mut response = answers::see_other(format!("{}/logout", app.config.base_url.path()));
        response.note.reason = Some(Reason::SignOutNotBegunHere.code());
        return Ok(response);
    };
    if request.method == Method::Head {
        return Ok(answers::nothing_to_show());
    }
    let present = PresentSession::find(app, request)?;
    SignOut::of(app, returns.request, String::new())?.after_upstream(app, request, present.as_ref())
}

fn open(app: &App, state: &str) -> Option<UpstreamReturn> {
    let opened = sealed_address::open_text(app, state).ok()?;
    if let SealedPurpose::SignedOut(returns) = opened.request.purpose { Some(returns) } else { None }
}
