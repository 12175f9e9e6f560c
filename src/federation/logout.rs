//! The end of a session there: ours to ask for, and theirs to tell.

use super::connection::{Connection, Endpoints, not_believed};
use crate::app::App;
use crate::app::foreign_keys::Provenance;
use crate::outbound::Asker;
use crate::protocol::authorize_response::with_query;
use crate::protocol::jwt::UnverifiedJws;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::secret::SecretText;
use crate::protocol::upstream::UpstreamProblem;
use crate::protocol::upstream::id_token::TokenProblem;
use crate::protocol::upstream::logout_token::{self as judgement, LogoutNotice};

const LOGOUT_TOKEN: &str = "the logout token";
/// An address much longer than that is cut or refused on its way; the ID token in it is only a help.
const LONGEST_ADDRESS: usize = 8_000;

/// Where signing out there begins (OpenID Connect RP-Initiated Logout 1.0 §2), without the ID token where that is too long;
/// `None` where the provider has no such place, cannot be asked for it now, or its address would be too long anyway.
pub fn sign_out_address(
    app: &App,
    provider: &IdentityProvider,
    id_token: Option<&SecretText>,
    post_logout_redirect_uri: &str,
    state: Option<&str>,
) -> Option<String> {
    let connection = Connection::open(app, provider).ok()?;
    let Endpoints::OpenId { metadata, .. } = &connection.endpoints else { return None };
    let endpoint = metadata.end_session_endpoint.as_deref()?;
    let address = |id_token: Option<&SecretText>| {
        let parameters = [
            ("id_token_hint", id_token.map(|token| token.expose().to_owned())),
            ("client_id", Some(provider.client_id.clone())),
            ("post_logout_redirect_uri", Some(post_logout_redirect_uri.to_owned())),
            ("state", state.map(str::to_owned)),
        ];
        let parameters: Vec<(&'static str, String)> =
            parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Some(with_query(endpoint, &parameters)).filter(|address| address.len() <= LONGEST_ADDRESS)
    };
    address(id_token).or_else(|| address(None))
}

/// What a logout token of that provider says, verified in full. That it is taken once is for the statement that does what it
/// says: one that could not be done may be sent again.
pub fn logout_token(app: &App, provider: &IdentityProvider, token: &str) -> Result<LogoutNotice, UpstreamProblem> {
    let refused = |problem| not_believed(LOGOUT_TOKEN, problem);
    let jws = UnverifiedJws::parse(token).ok_or_else(|| refused(TokenProblem::Malformed))?;
    judgement::check_typ(jws.typ.as_deref()).map_err(refused)?;
    let judged = |claims| judgement::judge(claims, provider.authority(), &provider.client_id, app.now());
    // What no signature could save is refused at once: a stranger's words fetch nothing, and are answered alike whether the
    // provider can be asked or does not even exist.
    let unverified = jws.unverified_claims().ok_or_else(|| refused(TokenProblem::Malformed))?;
    judged(&unverified).map_err(refused)?;
    let connection = Connection::open(app, provider)?;
    let Endpoints::OpenId { metadata, .. } = &connection.endpoints else {
        return Err(UpstreamProblem::NotBelieved(String::from("a provider without an issuer sends no logout tokens")));
    };
    let claims = connection.verified_claims(
        Asker::Worker(&app.outbound),
        LOGOUT_TOKEN,
        (&jws, Provenance::Presented),
        metadata,
    )?;
    judged(&claims).map_err(refused)
}
