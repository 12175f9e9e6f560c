//! Somebody with the code of a device that waits: who asks, for what, and under which rules they sign in. Sealed is the
//! code alone; everything else is read anew at every step.

use std::sync::Arc;

use super::client_view::client_view;
use super::present_session::PresentSession;
use super::sealed_address::{self, Opened};
use crate::app::App;
use crate::app::failure::Failure;
use crate::pages::frame::Client as ClientView;
use crate::pages::language::Language;
use crate::protocol::acr_values::AcrValues;
use crate::protocol::client::GrantType;
use crate::protocol::device_code::{UserCode, is_answered_by, is_still_allowed};
use crate::protocol::instant::Instant;
use crate::protocol::reason::Reason;
use crate::protocol::scope::ScopeSet;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::upstream::choices::{Choices, Place};
use crate::registry::{RegisteredClient, Snapshot};
use crate::store::device_authorizations::{self, WaitingDevice};

/// A device that waits, and what it was judged against.
pub struct DeviceVisit {
    /// A page's `r` parameter.
    pub sealed: String,
    /// What the device shows.
    pub user_code: UserCode,
    /// Whose device it is.
    pub client: Arc<RegisteredClient>,
    /// What it asks for.
    pub scope: ScopeSet,
    /// Under which rules its user signs in.
    pub acr_values: AcrValues,
    /// What is registered.
    pub snapshot: Arc<Snapshot>,
    /// When they came with the code.
    pub received_at: Instant,
}

impl DeviceVisit {
    /// Takes in a code. `None` when no device waits under it that may still have what it asked for.
    pub fn begin(app: &App, user_code: &UserCode) -> Result<Option<DeviceVisit>, Failure> {
        DeviceVisit::find(app, &sealed_address::seal(app, SealedPurpose::Device(user_code.clone())))
    }

    /// Goes on with a code of which the seal was opened: its device must still wait.
    pub fn resume(app: &App, opened: &Opened) -> Result<DeviceVisit, Failure> {
        DeviceVisit::find(app, opened)?.ok_or_else(|| Failure::bad_request(Reason::DeviceAlreadyDecided))
    }

    fn find(app: &App, opened: &Opened) -> Result<Option<DeviceVisit>, Failure> {
        let SealedPurpose::Device(user_code) = &opened.request.purpose else { return Err(sealed_address::invalid()) };
        let Some(device) = device_authorizations::find_waiting(&app.store, &hashes(app, user_code))? else {
            return Ok(None);
        };
        let Some(client) = app.registry.client(&device.client_id)? else { return Ok(None) };
        let snapshot = app.registry.snapshot();
        let Some(acr_values) = still_served(&device, &client, &snapshot) else { return Ok(None) };
        Ok(Some(DeviceVisit {
            sealed: opened.sealed.clone(),
            user_code: user_code.clone(),
            client,
            scope: device.scope,
            acr_values,
            snapshot,
            received_at: opened.request.received_at,
        }))
    }

    /// Whether this session may decide.
    pub fn is_answered_by(&self, app: &App, present: &PresentSession) -> bool {
        let (client, catalogue) = (&self.client.client, &self.snapshot.catalogue);
        is_answered_by(&present.to_core(), &self.acr_values, client, catalogue, (self.received_at, app.now()))
    }

    /// Which ways to sign in the device's client allows.
    pub fn choices(&self) -> Choices {
        let AcrValues { identity_provider, tenant, .. } = &self.acr_values;
        let (client, catalogue) = (Some(&self.client.client), &self.snapshot.catalogue);
        Choices::of(&Place { client, tenant: tenant.as_ref(), catalogue }, identity_provider.as_deref())
    }

    /// The device's client as pages show it.
    pub fn client_view(&self, language: Language) -> ClientView<'_> {
        client_view(&self.client.client, None, language)
    }
}

/// What the database knows a code by, under every line of the master secret.
pub fn hashes(app: &App, user_code: &UserCode) -> Vec<[u8; 32]> {
    app.vault.user_codes.tags(&[user_code.letters().as_bytes()])
}

/// The wishes about the sign-in, if the registration still lets the device have what it asked for.
fn still_served(device: &WaitingDevice, client: &RegisteredClient, snapshot: &Snapshot) -> Option<AcrValues> {
    let (client, catalogue) = (&client.client, &snapshot.catalogue);
    let served = client.enabled
        && client.allows_grant(&GrantType::DeviceCode)
        && is_still_allowed(&device.scope, client, catalogue);
    let acr_values = AcrValues::parse(device.acr_values.as_deref(), client, catalogue).ok()?;
    served.then_some(acr_values)
}
