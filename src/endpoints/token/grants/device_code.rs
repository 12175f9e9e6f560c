//! `grant_type=urn:ietf:params:oauth:grant-type:device_code` (RFC 8628 §3.4): a device asks again and again until its user
//! has decided, and gets its tokens once.

use super::GrantContext;
use super::user_grant::{self, ends_at};
use crate::app::failure::Failure;
use crate::keys::random;
use crate::protocol::device::device_code::{is_still_allowed, judge_poll};
use crate::protocol::token::audience::{Narrowed, narrow_granted};
use crate::protocol::token::token_request::DeviceCodeRequest;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::acr_values::tenant_stands;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::identifiers::GrantId;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::device_authorizations::{self, DeviceRedemption, GrantedDevice, NewDeviceGrant};

/// Polls, and redeems once the user has allowed it.
pub fn handle(context: GrantContext<'_>, request: &DeviceCodeRequest) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, .. } = context;
    let hashes = app.vault.device_codes.tags(&[request.device_code.expose().as_bytes()]);
    let polled = device_authorizations::poll(&app.store, &hashes, &client.client.client_id)?;
    judge_poll(polled.as_ref().map(|polled| polled.facts))?;
    let granted = polled.and_then(|polled| polled.granted).ok_or_else(|| refused(Reason::UnknownDeviceCode))?;
    let snapshot = app.registry.snapshot();
    // Before the code is spent, so that a resource that is not to be had leaves it as it was.
    let narrowed = allowed(context, request, &granted, &snapshot)?;
    let new = new_grant(context, &granted.scope);
    // Its name is the statement's to say: redeemed or refused.
    let event = AuditEvent {
        client_id: Some(&client.client.client_id),
        sub: Some(&granted.user.subject),
        source: Some(context.request.source),
        request_id: Some(&context.request.id),
        ..AuditEvent::default()
    };
    match device_authorizations::redeem(&app.store, &hashes, &new, &event)? {
        DeviceRedemption::Issued(user) => {
            let granted = (&granted.user, &granted.scope);
            user_grant::answer(context, &snapshot, narrowed, granted, (new.id, new.expires_at), &user)
        }
        DeviceRedemption::Spent => Err(refused(Reason::UnknownDeviceCode)),
        DeviceRedemption::NoLongerStands => Err(refused(Reason::GrantNoLongerStands)),
    }
}

/// What the request gets of what was granted, if the registration still allows it.
fn allowed(
    context: GrantContext<'_>,
    request: &DeviceCodeRequest,
    granted: &GrantedDevice,
    snapshot: &Snapshot,
) -> Result<Narrowed, Failure> {
    let (client, catalogue) = (&context.client.client, &snapshot.catalogue);
    let tenant = granted.user.tenant.as_ref();
    if !is_still_allowed(&granted.scope, client, catalogue) || !tenant_stands(tenant, client, catalogue) {
        return Err(refused(Reason::GrantNoLongerStands));
    }
    // The user may have left out the scopes of a resource that the device asked for.
    Ok(narrow_granted(&granted.scope, &request.resources, &granted.resources, catalogue, context.app.issuer())?)
}

fn new_grant<'a>(context: GrantContext<'a>, scope: &ScopeSet) -> NewDeviceGrant<'a> {
    let client = &context.client.client;
    let expires_at = ends_at(scope, client, context.now);
    NewDeviceGrant {
        id: GrantId { day: expires_at.day(), random: random::bytes() },
        attempt: random::bytes(),
        client_id: &client.client_id,
        offline: scope.contains(OFFLINE_ACCESS),
        expires_at,
    }
}

fn refused(reason: Reason) -> Failure {
    TokenError::new(TokenErrorCode::InvalidGrant, reason).into()
}
