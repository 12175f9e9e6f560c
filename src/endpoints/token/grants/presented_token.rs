//! What we handed out and somebody shows us again: access tokens in either form, refresh tokens. Reading one says that it
//! is ours; whether it is still good is not said yet.

use super::issue::ACCESS_TOKEN_PREFIX;
use crate::app::App;
use crate::app::failure::Failure;
use crate::protocol::keys::jwt::{ACCESS_TOKEN_TYP, ID_TOKEN_TYP, UnverifiedJws};
use crate::protocol::token::access_token::AccessToken;
use crate::protocol::token::delegation::Delegation;
use crate::protocol::token::refresh_token::{self, RefreshHandle};
use crate::protocol::words::liveness;
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::user::User;
use crate::store::tokens;
use crate::store::users::UserRow;

/// A token of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresentedToken {
    /// An access token.
    Access(Box<AccessToken>),
    /// A refresh token, of whichever generation.
    Refresh(RefreshHandle),
}

/// Reads a token of either kind; what kind it is, it says itself.
pub fn open(app: &App, token: &SecretText) -> Option<PresentedToken> {
    if token.expose().starts_with(refresh_token::PREFIX) {
        return refresh_handle(app, token).map(PresentedToken::Refresh);
    }
    access_token(app, token).map(Box::new).map(PresentedToken::Access)
}

/// Reads an access token.
pub fn access_token(app: &App, token: &SecretText) -> Option<AccessToken> {
    if token.expose().starts_with(ACCESS_TOKEN_PREFIX) {
        return app.vault.access_tokens.open_text(ACCESS_TOKEN_PREFIX, token.expose());
    }
    let jws = UnverifiedJws::parse(token.expose())?;
    // An id_token may share the typ of an access token: it has no `client_id`, and ends at the claims.
    let is_ours = [Some(ACCESS_TOKEN_TYP), Some(ID_TOKEN_TYP)].contains(&jws.typ.as_deref())
        && app.registry.snapshot().keys.verifies(&jws);
    // Verified just above, so the claims are what we signed.
    let claims = is_ours.then(|| jws.unverified_claims()).flatten()?;
    AccessToken::from_verified_claims(&claims, app.issuer())
}

/// Reads a refresh token; a forged one ends here, before any query.
pub fn refresh_handle(app: &App, token: &SecretText) -> Option<RefreshHandle> {
    let (handle, tag) = RefreshHandle::parse(token.expose())?;
    app.vault.refresh_tokens.verify(&[&handle.encode()], &tag).then_some(handle)
}

/// Whether a token and everything it stands on live, the tokens that it was exchanged from included; and its user.
pub fn standing(app: &App, token: &AccessToken) -> Result<(bool, Option<User>), Failure> {
    let found = tokens::find(&app.store, token)?;
    let user = found.user.as_ref().map(UserRow::to_core);
    let stands = liveness::stands(token, user.as_ref(), &found.facts, app.now()) && origins_stand(app, token)?;
    Ok((stands, user))
}

/// Whether the tokens live that this one was exchanged from; of one that was not: yes.
pub fn origins_stand(app: &App, token: &AccessToken) -> Result<bool, Failure> {
    let origins = token.delegation.as_ref().map(|delegation: &Delegation| delegation.origins_of(token));
    for origin in origins.into_iter().flatten() {
        let found = tokens::find(&app.store, &origin)?;
        let user = found.user.as_ref().map(UserRow::to_core);
        if !liveness::stands(&origin, user.as_ref(), &found.facts, app.now()) {
            return Ok(false);
        }
    }
    Ok(true)
}
