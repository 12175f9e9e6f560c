//! Visits of somebody who types the code of a device (RFC 8628 §3.3).

use super::{AuthorizationTransaction, Opened, seal};
use crate::app::App;
use crate::app::failure::Result;
use gatepost_protocol::authorize::authorize_request::{AuthorizeRequest, Ending};
use gatepost_protocol::device::device_code::{UserCode, is_still_allowed};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::acr_values::AcrValues;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::{Client, GrantType};
use gatepost_protocol::words::instant::Instant;
use gatepost_store::device_authorizations::{self, WaitingDevice};

impl AuthorizationTransaction {
    /// Begins with the code of a device. `None` when no device waits with this code, or when the
    /// device may no longer have what it asked for.
    pub fn to_device(app: &App, user_code: UserCode) -> Result<Option<AuthorizationTransaction>> {
        let Opened { request, sealed } = seal(app, SealedPurpose::Device(user_code.clone()));
        AuthorizationTransaction::of_device(app, user_code, request.received_at, sealed)
    }

    pub(super) fn of_device(
        app: &App,
        user_code: UserCode,
        received_at: Instant,
        sealed: String,
    ) -> Result<Option<AuthorizationTransaction>> {
        let hashes = user_code_hashes(app, &user_code);
        let Some(device) = device_authorizations::find_waiting(&app.store, &hashes)? else {
            return Ok(None);
        };
        let Some(client) = app.registry.client(&device.client_id)? else {
            return Ok(None);
        };
        let snapshot = app.registry.snapshot();
        let registered = &client.client;
        let Some(acr_values) = served_acr_values(&device, registered, &snapshot.catalogue) else {
            return Ok(None);
        };
        let ending = Ending::Device(user_code);
        let request =
            AuthorizeRequest::of_our_own(Some(registered), ending, acr_values, received_at);
        let request = AuthorizeRequest {
            scope: device.scope,
            ..request
        };
        Ok(Some(AuthorizationTransaction {
            sealed,
            request,
            client: Some(client),
            pushed: None,
            snapshot,
        }))
    }
}

/// What a device asked for, as long as its client may have that. Else `None`.
fn served_acr_values(
    device: &WaitingDevice,
    client: &Client,
    catalogue: &Catalogue,
) -> Option<AcrValues> {
    let is_served = client.enabled
        && client.allows_grant(&GrantType::DeviceCode)
        && is_still_allowed(&device.scope, client, catalogue);
    if !is_served {
        return None;
    }
    AcrValues::parse(device.acr_values.as_deref(), client, catalogue).ok()
}

/// The hashes that the database may know a device's code by: one under each line of the master
/// secret.
pub fn user_code_hashes(app: &App, user_code: &UserCode) -> Vec<[u8; 32]> {
    app.vault.user_codes.tags(&[user_code.letters().as_bytes()])
}
