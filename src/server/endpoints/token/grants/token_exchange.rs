//! `grant_type=urn:ietf:params:oauth:grant-type:token-exchange` (RFC 8693). Nothing is written.

use serde_json::{Map, json};

use super::GrantContext;
use super::issue::{Additions, Issue, IssueUser};
use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::token::introspection::{access_token, standing};
use gatepost_protocol::token::access_token::{AccessToken, StandsOn};
use gatepost_protocol::token::claims::ClaimNames;
use gatepost_protocol::token::delegation::Exchanged;
use gatepost_protocol::token::extension_grant::{GrantAnswer, GrantRefusal};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_exchange::{
    ACCESS_TOKEN_TYPE, ShownToken, check_client, judge, read,
};
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::reason::{Reason, invalid_request};
use gatepost_store::users::{self, CurrentUser};

/// Judges an exchange.
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<GrantAnswer> {
    check_client(&context.client.client)?;
    let shown = read(request)?;
    let subject = live(context, &shown.subject, Reason::InvalidSubjectToken)?;
    let actor = match &shown.actor {
        Some(actor) => Some(live(context, actor, Reason::InvalidActorToken)?),
        None => None,
    };
    Ok(
        match judge(request, &subject, actor.as_ref(), context.sender()) {
            Ok(exchanged) => GrantAnswer::Exchange(Box::new(exchanged)),
            Err(error) => GrantAnswer::Refuse(GrantRefusal::of(error)),
        },
    )
}

/// One of our access tokens, alive by all the checks of introspection. Anything else makes the
/// request invalid (RFC 8693 §2.2.2).
fn live(context: GrantContext<'_>, shown: &ShownToken, reason: Reason) -> Result<AccessToken> {
    let unfit = || invalid_request(reason);
    let token = opened(context.app, shown).ok_or_else(unfit)?;
    match standing(context.app, &token)? {
        (true, _) => Ok(token),
        (false, _) => Err(unfit().into()),
    }
}

/// An access token of ours, of the form that the request calls it by.
pub fn opened(app: &App, shown: &ShownToken) -> Option<AccessToken> {
    let is_jwt = shown.token.expose().contains('.');
    access_token(app, &shown.token).filter(|_| is_jwt || !shown.must_be_jwt)
}

/// Issues an access token, and nothing else, for what was judged.
pub(crate) fn issue(context: GrantContext<'_>, exchanged: Exchanged) -> Result<TokenResponse> {
    let found = user(context, &exchanged.user.subject)?;
    let stands_on = StandsOn::User(found.epochs(context.client.epoch));
    let scope = exchanged.narrowed.scope.clone();
    let user = IssueUser {
        sign_in: &exchanged.user,
        user: &found.user.into_core(),
        grant: None,
        claims: &ClaimNames::default(),
        nonce: None,
    };
    let additions = Additions {
        claims: exchanged.claims,
        delegation: Some(exchanged.delegation),
        ends_at: Some(exchanged.ends_at),
        members: Map::from_iter([(String::from("issued_token_type"), json!(ACCESS_TOKEN_TYPE))]),
    };
    let issue = Issue {
        user: Some(user),
        ..Issue::new(context, &scope, stands_on)
    };
    issue.tokens(exchanged.narrowed, additions)
}

/// The user whom the tokens speak of, as long as the client is open to them.
fn user(context: GrantContext<'_>, subject: &Subject) -> Result<CurrentUser> {
    let client = &context.client.client;
    let found = users::find_for_client(&context.app.store, subject, Some(&client.client_id))?;
    match found {
        Some(found) if client.is_open_to(found.user.claims.get("role")) => Ok(found),
        _ => Err(invalid_request(Reason::InvalidSubjectToken).into()),
    }
}
