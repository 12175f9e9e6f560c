//! Visits to pages of ours: the account page, and those of administrators.

use super::{Visit, seal};
use crate::app::App;
use crate::app::failure::Failure;
use crate::config::Config;
use crate::protocol::authorize::authorize_request::{AuthorizeRequest, Ending};
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::words::acr_values::{AcrValues, named_tenant};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::strength::Strength;

impl Visit {
    /// Begins on the way to the account page, for a user who is signed in.
    pub fn to_account(app: &App) -> Result<Visit, Failure> {
        let purpose = SealedPurpose::Account {
            tenant: None,
            ui_locales: None,
            anew: false,
            by_password: false,
        };
        Visit::resume(app, seal(app, purpose))
    }

    /// A request for a page of ours, within that tenant.
    pub(super) fn of_page(
        app: &App,
        ending: Ending,
        identity_provider: Option<String>,
        tenant: Option<String>,
        ui_locales: Option<String>,
        received_at: Instant,
        sealed: String,
    ) -> Result<Visit, Failure> {
        let snapshot = app.registry.snapshot();
        let tenant = named_tenant(tenant.as_deref().into_iter(), &snapshot.catalogue, |_| true);
        let acr_values = AcrValues {
            identity_provider,
            tenant: tenant?,
            ..AcrValues::default()
        };
        let request = AuthorizeRequest::of_our_own(None, ending, acr_values, received_at);
        let request = AuthorizeRequest {
            ui_locales,
            ..request
        };
        Ok(Visit {
            sealed,
            request,
            client: None,
            snapshot,
        })
    }

    /// The weakest sign-in that the client accepts, or the page of ours.
    pub(super) fn minimum_acr(&self, config: &Config) -> Strength {
        let own = config.client_defaults.minimum_acr;
        match (self.registration(), &self.request.ending) {
            (Some(client), _) => client.minimum_acr,
            (
                None,
                Ending::Account {
                    admin_page: Some(_),
                    ..
                },
            ) => {
                let administration = config.administration.as_ref();
                administration.map_or(own, |set| own.max(set.minimum_acr))
            }
            (None, _) => own,
        }
    }
}
