//! How an authorization request arrives: with its parameters in the query or a form, or with the
//! `request_uri` of one that its client pushed.

use std::sync::atomic::Ordering;

use super::{Opened, Visit, seal};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::forms::require_form;
use crate::http::{Method, Request};
use crate::protocol::authorize::authorize_request::{self, AuthorizeError};
use crate::protocol::authorize::pushed_request::{self, PushedRequest};
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};

impl Visit {
    /// Takes in a request to `/connect/authorize` (OpenID Connect Core §3.1.2).
    pub fn begin(app: &App, request: &Request) -> Result<Visit, Failure> {
        let parameters = &if request.method == Method::Post {
            require_form(request, 415)?;
            Parameters::parse(&request.body)?
        } else {
            Parameters::parse(request.query.as_bytes())?
        };
        let visit = Visit::from_parameters(app, parameters)?;
        let must_push = visit
            .registration()
            .is_some_and(|client| client.requires_pushed_requests);
        if must_push && visit.pushed.is_none() {
            return Err(visit.refuse_with(
                AuthorizeErrorCode::InvalidRequest,
                Reason::PushedRequestRequired,
            ));
        }
        if visit.sealed.len() > parameters::SEALED_REQUEST {
            return Err(visit.too_long());
        }
        visit.note_ignored(app, parameters);
        Ok(visit)
    }

    fn from_parameters(app: &App, parameters: &Parameters) -> Result<Visit, Failure> {
        match pushed_request::sealed(parameters) {
            Some(sealed) => {
                let pushed = SealedPurpose::Pushed(open_pushed(app, parameters, sealed)?);
                Visit::resume(app, seal(app, pushed))
            }
            None => {
                let known = SealedPurpose::Authorize(authorize_request::known(parameters));
                let Opened { request, sealed } = seal(app, known);
                Visit::of_client(app, parameters, request.received_at, sealed)
            }
        }
    }

    /// Tells the log what was asked for in vain.
    fn note_ignored(&self, app: &App, parameters: &Parameters) {
        let Some(client_id) = self.client_id() else {
            return;
        };
        if let Some(name) = &self.request.acr_values.dropped_identity_provider {
            let name = name.escape_default();
            log::info!(
                "client {client_id} asked for the identity provider \"{name}\", which it cannot \
                 have: ignored"
            );
            app.dropped_identity_providers
                .fetch_add(1, Ordering::Relaxed);
        }
        if let Some((_, audience)) = parameters.iter().find(|(name, _)| *name == "audience") {
            let audience: String = audience
                .chars()
                .take(200)
                .flat_map(char::escape_default)
                .collect();
            log::info!(
                "client {client_id} sent audience \"{audience}\" at authorize: ignored; \
                 resource names an API (RFC 8707)"
            );
        }
    }
}

/// Opens the request that a `request_uri` stands for. What is wrong with it is told on a page:
/// nobody vouches for an address to go back to.
fn open_pushed(
    app: &App,
    parameters: &Parameters,
    sealed: &str,
) -> Result<PushedRequest, AuthorizeError> {
    let client_id = authorize_request::client_id(parameters)?;
    let opened = app
        .vault
        .pushed_requests
        .open_text(pushed_request::PREFIX, sealed);
    pushed_request::judge(opened, &client_id, app.now()).map_err(|reason| AuthorizeError::Page {
        client_id: Some(client_id).filter(|client_id| app.registry.knows(client_id)),
        reason,
        detail: None,
    })
}
