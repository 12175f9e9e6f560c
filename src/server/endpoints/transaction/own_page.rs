//! Visits to pages of ours: the account page, and those of administrators.

use super::{AuthorizationTransaction, InSession, RequestContext, seal};
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::config::Config;
use crate::endpoints::answers;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::notices;
use crate::http::{Request, Response};
use gatepost_protocol::authorize::authorize_request::{AuthorizeRequest, Ending, LandingPage};
use gatepost_protocol::authorize::interaction::{Interaction, Step};
use gatepost_protocol::sealed_request::{SealedPurpose, Visit};
use gatepost_protocol::words::acr_values::{AcrValues, named_tenant};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::session::LOCAL;
use gatepost_protocol::words::strength::Strength;

/// What the address of a page of ours asks for; unknown parameters are left alone.
pub fn asked(request: &Request, name: &str) -> Result<Option<String>> {
    let query = request.query_parameters()?;
    Ok(query.bounded(name, parameters::OTHER)?.map(str::to_owned))
}

/// A visit as the address of a page of ours asks for it.
pub fn visit(request: &Request) -> Result<Visit> {
    Ok(Visit {
        tenant: asked(request, "tenant")?,
        ui_locales: asked(request, "ui_locales")?,
        ..Visit::default()
    })
}

/// Shows a page of ours to whoever is signed in as strongly as it needs. Everybody else signs in
/// first.
pub fn to_signed_in(
    app: &App,
    request: &Request,
    current_session: Option<&CurrentSession>,
    purpose: SealedPurpose,
    show: impl FnOnce(InSession<'_>) -> Result<Response>,
) -> Result<Response> {
    let transaction = AuthorizationTransaction::resume(app, seal(app, purpose))?;
    let context = RequestContext {
        app,
        request,
        transaction: &transaction,
        current_session,
        refused: None,
        someone_else: false,
    };
    let interaction = context.judge(Step::Arrival)?.interaction;
    let is_enough = matches!(interaction, Interaction::Proceed { .. });
    match context.in_session().filter(|_| is_enough) {
        Some(signed_in) => show(signed_in),
        None => Ok(context.redirect("/login")),
    }
}

/// Sends somebody to sign in for a page of ours.
pub fn to_sign_in(app: &App, purpose: SealedPurpose) -> Result<Response> {
    let transaction = AuthorizationTransaction::resume(app, seal(app, purpose))?;
    Ok(answers::see_other(transaction.page(app, "/login")))
}

impl InSession<'_> {
    /// Tells the user of this session what changed about their account.
    pub fn notify(&self, change: AccountChange) {
        let user = &self.current_session.user;
        notices::send(self.app, &self.presentation(), user, change);
    }
}

impl AuthorizationTransaction {
    /// Begins on the way to the account page, for a user who is signed in.
    pub fn to_account(app: &App) -> Result<AuthorizationTransaction> {
        let purpose = SealedPurpose::Account(Visit::default());
        AuthorizationTransaction::resume(app, seal(app, purpose))
    }

    /// A request for a page of ours.
    pub(super) fn of_page(
        app: &App,
        page: LandingPage,
        visit: Visit,
        received_at: Instant,
        sealed: String,
    ) -> Result<AuthorizationTransaction> {
        let snapshot = app.registry.snapshot();
        let names = visit.tenant.as_deref().into_iter();
        let acr_values = AcrValues {
            identity_provider: visit.by_password.then(|| String::from(LOCAL)),
            tenant: named_tenant(names, &snapshot.catalogue, |_| true)?,
            ..AcrValues::default()
        };
        let ending = Ending::Account {
            anew: visit.anew,
            page,
        };
        let request = AuthorizeRequest::of_our_own(None, ending, acr_values, received_at);
        let request = AuthorizeRequest {
            ui_locales: visit.ui_locales,
            ..request
        };
        Ok(AuthorizationTransaction {
            sealed,
            request,
            client: None,
            pushed: None,
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
                    page: LandingPage::Admin(_),
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
