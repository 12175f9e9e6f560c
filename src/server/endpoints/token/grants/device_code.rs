//! `grant_type=urn:ietf:params:oauth:grant-type:device_code` (RFC 8628 §3.4): a device asks again
//! and again until its user has decided, and gets its tokens once.

use super::{GrantContext, begun, invalid_grant, issue};
use crate::app::failure::Result;
use crate::keys::random;
use gatepost_protocol::device::device_code::judge_poll;
use gatepost_protocol::token::audience::narrow_granted;
use gatepost_protocol::token::grant::Given;
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::liveness::check_registration;
use gatepost_protocol::token::token_request::DeviceCodeRequest;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::device_authorizations::{self, DeviceRedemption};

/// Polls, and redeems once the user has allowed it.
pub fn handle(context: GrantContext<'_>, request: &DeviceCodeRequest) -> Result<TokenResponse> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    let hashes = app
        .vault
        .device_codes
        .tags(&[request.device_code.expose().as_bytes()]);
    let polled = device_authorizations::poll(&app.store, &hashes, &client.client.client_id)?;
    judge_poll(polled.as_ref().map(|polled| polled.facts))?;
    let granted = polled
        .and_then(|polled| polled.granted)
        .ok_or_else(|| invalid_grant(Reason::UnknownDeviceCode))?;
    let catalogue = &snapshot.catalogue;
    check_registration(&granted.user, &granted.scope, &client.client, catalogue)
        .map_err(invalid_grant)?;
    // Before the code is used up: a request for a resource that it cannot get leaves the code good.
    // The user may have unticked the scopes of a resource that the device asked for.
    let narrowed = narrow_granted(
        &granted.scope,
        &request.resources,
        &granted.resources,
        catalogue,
        app.issuer(),
    )?;
    let given = Given {
        user: granted.user,
        scope: granted.scope,
        epochs: granted.epochs,
        session_ends_at: None,
    };
    let grant = begun(context, given);
    // The statement chooses the event's name: `device_code_redeemed` or `grant_refused`.
    let event = context.request.caused(AuditEvent::of(&grant));
    match device_authorizations::redeem(&app.store, &hashes, &grant, random::bytes(), &event)? {
        DeviceRedemption::Issued(user) => {
            issue::of_grant(context, narrowed, &grant, &user, &grant.scope, None)
        }
        DeviceRedemption::Spent => Err(invalid_grant(Reason::UnknownDeviceCode)),
        DeviceRedemption::NoLongerStands => Err(invalid_grant(Reason::GrantNoLongerStands)),
    }
}
