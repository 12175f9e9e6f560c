//! `/connect/userinfo` (OpenID Connect Core §5.3): the claims about the user that the token's
//! scopes open.

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::answers;
use crate::endpoints::forms::require_form;
use crate::endpoints::token::dpop::{self, require_holder};
use crate::endpoints::token::introspection;
use crate::http::{Method, Request, Response};
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::userinfo::{
    self, BearerFailure, SentToken, TokenScheme, UserInfoVerdict, judge, response,
};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::scope::OPENID;
use gatepost_protocol::words::session::User;

/// Answers with claims, or with the challenge of RFC 6750 §3.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let sent = presented(request)?;
    let refused = |failure| Failure::Unadmitted {
        failure,
        scheme: sent.scheme,
        scope: OPENID,
    };
    let token = introspection::access_token(app, &sent.token)
        .ok_or_else(|| refused(BearerFailure::InvalidToken))?;
    app.require_fresh_registry()?;
    let about = |failure| refused(failure).about(&token.client_id, None);
    require_holder(app, request, &sent, &token, about)?;
    let (stands, user) = introspection::standing(app, &token)?;
    let user = match judge(&token, stands, user.as_ref()) {
        UserInfoVerdict::Answer(user) => user,
        UserInfoVerdict::Refuse(failure) => return Err(about(failure)),
    };
    match app.registry.client(&token.client_id)? {
        Some(client) => Ok(claims(app, &token, user, &client.client)),
        None => Err(about(BearerFailure::InvalidToken)),
    }
}

/// Answers with the claims, as far as the client's registration goes now.
fn claims(app: &App, token: &AccessToken, user: &User, client: &Client) -> Response {
    let snapshot = app.registry.snapshot();
    let claims = response(token, user, client, &snapshot.catalogue);
    let answer = answers::json(200, &claims).about(&token.client_id);
    dpop::with_nonce(app, client, answer, app.now())
}

/// The token from the header or from a form. A body that is empty needs no content type.
fn presented(request: &Request) -> Result<SentToken> {
    let query = request.query_parameters()?;
    let form = if request.method == Method::Post && !request.body.is_empty() {
        require_form(request, 415)?;
        Some(Parameters::parse(&request.body)?)
    } else {
        None
    };
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    let sent = userinfo::access_token(&headers, query, form.as_ref());
    sent.map_err(|failure| Failure::Unadmitted {
        failure,
        scheme: TokenScheme::Bearer,
        scope: OPENID,
    })
}
