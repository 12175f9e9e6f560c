//! Gives out ID-JAGs: token exchange of an ID token of ours, with which the client goes to an
//! authorization server elsewhere. What an ID-JAG from elsewhere gives here is in `jwt_bearer`.

use serde_json::{Map, json};

use super::GrantContext;
use super::issue;
use crate::app::App;
use crate::app::failure::{Failure, Result};
use gatepost_protocol::keys::jwt::{ID_TOKEN_TYP, UnverifiedJws};
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::id_jag::{ID_JAG_TYPE, NOT_APPLICABLE, as_access_token, judge, read};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::reason::{Reason, invalid_request};
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::tokens;

/// Reads what the ID token stands on, judges that, and notes the ID-JAG before it is given out. A
/// revocation that comes after the read comes after the ID-JAG.
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<TokenResponse> {
    let app = context.app;
    if context.request.headers.first("origin").is_some() {
        return Err(Failure::bad_request(Reason::IdJagForBrowser));
    }
    let client = &context.client.client;
    let unfit = || invalid_request(Reason::InvalidSubjectToken);
    let token = id_token(app, client, read(request, client)?).ok_or_else(unfit)?;
    let found = tokens::find(&app.store, &token)?;
    let user = found.user.as_ref();
    let granted = judge(request, &token, user, &found.facts, context.sender())?;
    let id_jag = issue::id_jag(context, &granted)?;
    let detail = json!({
        "audience": granted.entry.audience,
        "resource": granted.resource,
        "scope": granted.scope.to_string(),
    });
    let event = AuditEvent {
        event: "id_jag_issued",
        client_id: Some(&client.client_id),
        sub: Some(&granted.sign_in.subject),
        sid: granted.sign_in.sid.as_ref(),
        detail,
        ..context.request.caused(AuditEvent::default())
    };
    audit_events::insert(&app.store, &event)?;
    app.note_use(&client.client_id);
    Ok(TokenResponse {
        access_token: id_jag,
        token_type: NOT_APPLICABLE,
        expires_in: granted.lifetime(context.now).as_secs(),
        id_token: None,
        refresh_token: None,
        scope: granted.scope,
        further: Map::from_iter([(String::from("issued_token_type"), json!(ID_JAG_TYPE))]),
    })
}

/// Whether ID-JAGs are given out here, and this client is registered to get them.
pub fn is_given_to(app: &App, client: &Client) -> bool {
    app.config.id_jag && client.gets_id_jags()
}

/// An ID token that this client got here, and that a grant can be found by.
pub fn id_token(app: &App, client: &Client, shown: &str) -> Option<AccessToken> {
    let jws = UnverifiedJws::parse(shown).filter(|jws| jws.typ.as_deref() == Some(ID_TOKEN_TYP))?;
    if !app.registry.snapshot().keys.verifies(&jws) {
        return None;
    }
    // The signature was verified just above, so we wrote these claims.
    let claims = jws.unverified_claims()?;
    let token = as_access_token(claims, app.issuer())?;
    (token.client_id == client.client_id).then_some(token)
}
