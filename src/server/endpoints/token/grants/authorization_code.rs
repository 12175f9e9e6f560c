//! `grant_type=authorization_code` (RFC 6749 §4.1.3): a code becomes a grant here, and nowhere
//! else. The code is sealed and has no row of its own. We open it, and the core judges it.
//! Then one statement enters the grant, and finds whether the same code entered it before: that is
//! how a second use of a code shows.

use super::{GrantContext, invalid_grant, issue};
use crate::app::App;
use crate::app::failure::Result;
use crate::keys::random;
use gatepost_protocol::authorize::authorization_code::{
    AuthorizationCode, CodeVerdict, PREFIX, redeem,
};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::AuthorizationCodeRequest;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::grants;

/// Redeems a code.
pub fn handle(
    context: GrantContext<'_>,
    request: &AuthorizationCodeRequest,
) -> Result<TokenResponse> {
    let app = context.app;
    let code = opened(app, &request.code);
    let mut code = code.ok_or_else(|| invalid_grant(Reason::UnknownCode))?;
    code.grant.confirmation = context.refresh_key();
    let grant = &code.grant;
    let attempt = random::bytes();
    // The statement chooses the event's name: `code_redeemed`, `code_refused` or `code_replayed`.
    let event = context.request.caused(AuditEvent::of(grant));
    let replayed = event.as_event("code_replayed");
    match redeem(&code, request, context.sender()) {
        CodeVerdict::Redeem => {}
        CodeVerdict::Burn(reason) => {
            if !grants::burn(&app.store, grant, attempt, &event)? {
                app.note_replay(context.request, &grant.client_id, grant.id);
            }
            return Err(invalid_grant(reason));
        }
        CodeVerdict::ReplayOnly(reason) => {
            grants::revoke(&app.store, grant.id, Some(&grant.client_id), &replayed)?;
            return Err(invalid_grant(reason));
        }
        CodeVerdict::Reject(reason) => return Err(invalid_grant(reason)),
    }
    // Before the code is used up: a request for a resource that it cannot get leaves the code good.
    let catalogue = &context.snapshot.catalogue;
    let narrowed = match grant.narrowed(&request.resources, catalogue, app.issuer()) {
        Ok(narrowed) => narrowed,
        Err(error) => {
            // A code that was used before is a replay, whatever else is wrong with the request.
            grants::revoke(&app.store, grant.id, Some(&grant.client_id), &replayed)?;
            return Err(error.into());
        }
    };
    match grants::redeem(&app.store, grant, attempt, &event)? {
        grants::CodeRedemption::Issued(user) => {
            let nonce = code.nonce.as_deref();
            issue::of_grant(context, narrowed, grant, &user, &grant.scope, nonce)
        }
        grants::CodeRedemption::Replayed => Err(invalid_grant(Reason::CodeReplayed)),
        grants::CodeRedemption::ReplayedAgain => {
            app.note_replay(context.request, &grant.client_id, grant.id);
            Err(invalid_grant(Reason::CodeReplayed))
        }
        grants::CodeRedemption::NoLongerStands => Err(invalid_grant(Reason::GrantNoLongerStands)),
    }
}

/// Reads a code, with the key that it is bound to. `None`: it is none of this installation's.
pub fn opened(app: &App, code: &SecretText) -> Option<AuthorizationCode> {
    let sealer = &app.vault.authorization_codes;
    let opened = sealer.open_bound(PREFIX, code.expose())?;
    Some(AuthorizationCode {
        confirmation: opened.bound_to,
        ..opened.value
    })
}
