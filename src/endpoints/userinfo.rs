//! `/connect/userinfo` (OpenID Connect Core §5.3): what the token's scopes let its holder know of the user.

use super::answers;
use super::forms::require_form;
use crate::app::App;
use crate::app::failure::Failure;
use crate::grants::issue::ACCESS_TOKEN_PREFIX;
use crate::http::{Method, Request, Response};
use crate::protocol::access_token::AccessToken;
use crate::protocol::bearer::{self, BearerFailure};
use crate::protocol::jwt::{ACCESS_TOKEN_TYP, UnverifiedJws};
use crate::protocol::parameters::Parameters;
use crate::protocol::reference_token;
use crate::protocol::secret::SecretText;
use crate::protocol::userinfo::{UserInfoVerdict, judge, response};
use crate::store::token_standing;

/// Answers with claims, or with the challenge of RFC 6750 §3.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let token = match presented(request)? {
        Ok(token) => token,
        Err(failure) => return Ok(refused(failure)),
    };
    let Some(token) = open(app, &token) else { return Ok(refused(BearerFailure::InvalidToken)) };
    let standing = token_standing::find(&app.store, &token)?;
    let user = standing.user.as_ref().map(crate::store::users::UserRow::to_core);
    let mut answer = match judge(&token, user.as_ref(), &standing.facts, app.now()) {
        UserInfoVerdict::Answer(user) => {
            let claims = response(&token, user, &app.registry.snapshot().catalogue);
            answers::json(200, &claims.into())
        }
        UserInfoVerdict::Refuse(failure) => refused(failure),
    };
    answer.note.client_id = Some(token.client_id.to_string());
    Ok(answer)
}

/// The token of the header, or of a form body; an empty body needs no type.
fn presented(request: &Request) -> Result<Result<SecretText, BearerFailure>, Failure> {
    let query = Parameters::parse(request.query.as_bytes()).map_err(Failure::bad_request)?;
    let form = if request.method == Method::Post && !request.body.is_empty() {
        require_form(request, 415)?;
        Some(Parameters::parse(&request.body).map_err(Failure::bad_request)?)
    } else {
        None
    };
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    Ok(bearer::access_token(&headers, &query, form.as_ref()))
}

/// Reads one of our access tokens, in either form; `None` for anything else. That it is still good is not said yet.
pub fn open(app: &App, token: &SecretText) -> Option<AccessToken> {
    if token.expose().starts_with(ACCESS_TOKEN_PREFIX) {
        let opened = app.vault.access_tokens.open_text(ACCESS_TOKEN_PREFIX, token.expose())?;
        return reference_token::decode(&opened);
    }
    let jws = UnverifiedJws::parse(token.expose())?;
    let is_ours = jws.typ.as_deref() == Some(ACCESS_TOKEN_TYP) && app.registry.snapshot().keys.verifies(&jws);
    // Verified just above, so the claims are what we signed.
    let claims = is_ours.then(|| jws.unverified_claims()).flatten()?;
    AccessToken::from_verified_claims(&claims, app.issuer())
}

fn refused(failure: BearerFailure) -> Response {
    let response = match failure.error() {
        Some(error) => answers::json_error(failure.status(), error, failure.reason()),
        None => answers::challenge_only(failure.status(), failure.reason()),
    };
    response.header("WWW-Authenticate", failure.challenge())
}
