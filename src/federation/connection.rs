//! A provider ready to be spoken to: its endpoints, our secret there, and how long all of it may take together.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::unanswered;
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::foreign_keys::{KeySource, Provenance};
use crate::outbound::{Asker, Deadline, OutboundAnswer, OutboundRequest, Place};
use crate::protocol::assertion::AssertionProblem;
use crate::protocol::jwt::UnverifiedJws;
use crate::protocol::registration::provider::{IdentityProvider, ProviderKind};
use crate::protocol::secret::SecretText;
use crate::protocol::upstream::authorization::callback_url;
use crate::protocol::upstream::callback::ExpectedIssuer;
use crate::protocol::upstream::emails::{self, PrimaryEmail};
use crate::protocol::upstream::id_token::TokenProblem;
use crate::protocol::upstream::metadata::{SecretTransport, UpstreamMetadata};
use crate::protocol::upstream::token_exchange::{self, Answer, TokenRequest, UpstreamTokens};
use crate::protocol::upstream::{PromptValues, UpstreamProblem};
use crate::registry::Snapshot;

pub(super) struct Connection<'a> {
    app: &'a App,
    pub(super) provider: &'a IdentityProvider,
    pub(super) endpoints: Endpoints<'a>,
    deadline: Deadline,
}

pub(super) enum Endpoints<'a> {
    OpenId { issuer: &'a str, metadata: Arc<UpstreamMetadata> },
    OAuth { authorization: &'a str, token: &'a str, userinfo: &'a str, emails: Option<&'a str>, subject_claim: &'a str },
}

impl<'a> Connection<'a> {
    /// Finds what is needed to speak to a provider; everything with it must be over in 5 s.
    pub(super) fn open(app: &'a App, provider: &'a IdentityProvider) -> Result<Connection<'a>, UpstreamProblem> {
        let deadline = Deadline::usual();
        let endpoints = match &provider.kind {
            ProviderKind::OpenId { issuer } => {
                let found = app.upstream_documents.find(&app.outbound, issuer, deadline);
                Endpoints::OpenId { issuer, metadata: found.map_err(|error| unanswered("discovery", error))? }
            }
            ProviderKind::OAuth {
                authorization_endpoint,
                token_endpoint,
                userinfo_endpoint,
                emails_endpoint,
                subject_claim,
            } => Endpoints::OAuth {
                authorization: authorization_endpoint,
                token: token_endpoint,
                userinfo: userinfo_endpoint,
                emails: emails_endpoint.as_deref(),
                subject_claim,
            },
        };
        Ok(Connection { app, provider, endpoints, deadline })
    }

    pub(super) fn is_openid(&self) -> bool {
        matches!(self.endpoints, Endpoints::OpenId { .. })
    }

    pub(super) fn authorization_endpoint(&self) -> &str {
        match &self.endpoints {
            Endpoints::OpenId { metadata, .. } => &metadata.authorization_endpoint,
            Endpoints::OAuth { authorization, .. } => authorization,
        }
    }

    pub(super) fn prompt_values(&self) -> PromptValues {
        let announced = match &self.endpoints {
            Endpoints::OpenId { metadata, .. } => metadata.prompt_values.as_ref(),
            Endpoints::OAuth { .. } => None,
        };
        PromptValues::of(self.provider.prompt_values.as_ref(), announced)
    }

    pub(super) fn redirect_uri(&self) -> String {
        callback_url(self.app.issuer(), &self.provider.name)
    }

    pub(super) fn expected_issuer(&self) -> Option<ExpectedIssuer<'_>> {
        match &self.endpoints {
            Endpoints::OpenId { issuer, metadata } => {
                Some(ExpectedIssuer { issuer, announced: metadata.announces_iss })
            }
            Endpoints::OAuth { .. } => None,
        }
    }

    /// A worker's place for the whole of a callback, so that no code once sent is lost for want of one.
    pub(super) fn take_place(&self) -> Result<Place<'a>, UpstreamProblem> {
        self.app.outbound.take_place(self.token_endpoint()).map_err(|error| unanswered("the token endpoint", error))
    }

    fn token_endpoint(&self) -> &str {
        match &self.endpoints {
            Endpoints::OpenId { metadata, .. } => &metadata.token_endpoint,
            Endpoints::OAuth { token, .. } => token,
        }
    }

    /// Redeems a code. `secret` is our `client_secret` there; none where we are a public client.
    pub(super) fn exchange(
        &self,
        place: &Place<'_>,
        code: &SecretText,
        code_verifier: &SecretText,
        secret: Option<&SecretText>,
    ) -> Result<UpstreamTokens, UpstreamProblem> {
        let secret = secret.map(|secret| Ok((secret, self.secret_transport()?))).transpose()?;
        let (redirect_uri, client_id) = (self.redirect_uri(), self.provider.client_id.as_str());
        let request = TokenRequest { code, redirect_uri: &redirect_uri, code_verifier, client_id, secret };
        let mut outbound = OutboundRequest::post_form(self.token_endpoint(), &request.fields());
        if let Some(authorization) = request.authorization() {
            outbound = outbound.header("Authorization", authorization.expose());
        }
        let answer = self.send(place, "the token endpoint", outbound)?;
        token_exchange::tokens(&read(&answer), !self.is_openid())
    }

    pub(super) fn user_info(
        &self,
        place: &Place<'_>,
        endpoint: &str,
        access_token: &SecretText,
    ) -> Result<Map<String, Value>, UpstreamProblem> {
        let answer = self.ask_with(place, "the userinfo endpoint", endpoint, access_token)?;
        token_exchange::user_info(&read(&answer))
    }

    pub(super) fn primary_email(
        &self,
        place: &Place<'_>,
        endpoint: &str,
        access_token: &SecretText,
    ) -> Result<Option<PrimaryEmail>, UpstreamProblem> {
        let answer = self.ask_with(place, "the emails endpoint", endpoint, access_token)?;
        emails::primary(&read(&answer))
    }

    fn ask_with(
        &self,
        place: &Place<'_>,
        what: &str,
        endpoint: &str,
        access_token: &SecretText,
    ) -> Result<OutboundAnswer, UpstreamProblem> {
        let bearer = SecretText::new(format!("Bearer {}", access_token.expose()));
        self.send(place, what, OutboundRequest::get(endpoint).header("Authorization", bearer.expose()))
    }

    fn send(
        &self,
        place: &Place<'_>,
        what: &str,
        request: OutboundRequest<'_>,
    ) -> Result<OutboundAnswer, UpstreamProblem> {
        let request = request.header("Accept", "application/json").by(self.deadline);
        place.send(&request).map_err(|error| unanswered(what, error))
    }

    /// The claims of a JWT, if the provider's keys signed it with an algorithm that its metadata names. `what` it is
    /// called in the cause.
    pub(super) fn verified_claims(
        &self,
        asker: Asker<'_>,
        what: &str,
        jws: (&UnverifiedJws, Provenance),
        metadata: &UpstreamMetadata,
    ) -> Result<Map<String, Value>, UpstreamProblem> {
        let keys = KeySource::Uri(&metadata.jwks_uri);
        match self.app.verified_claims(asker, jws, keys, &metadata.algorithms, self.deadline) {
            Ok(Ok(claims)) => Ok(claims),
            Ok(Err(AssertionProblem::KeysUnavailable)) => {
                Err(UpstreamProblem::Unavailable(String::from("the provider's keys (jwks_uri) cannot be had")))
            }
            Ok(Err(problem)) => Err(UpstreamProblem::NotBelieved(format!("{what}: {}", problem.as_str()))),
            Err(Failure::Busy) => Err(UpstreamProblem::Busy),
            Err(failure) => Err(UpstreamProblem::Unavailable(format!("{failure:?}"))),
        }
    }

    fn secret_transport(&self) -> Result<SecretTransport, UpstreamProblem> {
        match &self.endpoints {
            Endpoints::OpenId { metadata, .. } => metadata.authentication.ok_or_else(|| {
                UpstreamProblem::Unavailable(String::from(
                    "its token endpoint takes neither client_secret_basic nor client_secret_post",
                ))
            }),
            // What all of them understand; the header, only some.
            Endpoints::OAuth { .. } => Ok(SecretTransport::Post),
        }
    }
}

/// What we prove ourselves with there, if anything is registered. `provider` is of the same snapshot: what was registered for
/// whoever bears its name by now is not for the endpoints of the one before.
pub(super) fn secret<'a>(
    snapshot: &'a Snapshot,
    provider: &IdentityProvider,
) -> Result<Option<&'a SecretText>, UpstreamProblem> {
    match snapshot.provider_secrets.get(&provider.name) {
        None => Ok(None),
        Some(Some(secret)) => Ok(Some(secret)),
        Some(None) => Err(UpstreamProblem::Unavailable(String::from(
            "its client_secret does not open under the master secret: see `gatepost idp test`",
        ))),
    }
}

fn read(answer: &OutboundAnswer) -> Answer<'_> {
    Answer { status: answer.status, content_type: answer.content_type.as_deref(), body: &answer.body }
}

pub(super) fn not_believed(what: &str, problem: TokenProblem) -> UpstreamProblem {
    UpstreamProblem::NotBelieved(format!("{what}: {}", problem.as_str()))
}
