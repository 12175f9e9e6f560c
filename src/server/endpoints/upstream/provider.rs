//! The requests to a provider: its endpoints, what is sent there, and the verified identity that
//! comes back. The decisions are in `protocol/upstream/`. Stores nothing.

use std::sync::Arc;

use crate::app::App;
use crate::app::failure::{Failure, Stopped};
use crate::app::fetched::{Provenance, Sought};
use crate::outbound::{Asker, Deadline, OutboundAnswer, OutboundError, OutboundRequest, Place};
use crate::registry::Snapshot;
use gatepost_protocol::keys::jwt::{ID_TOKEN_TYP, UnverifiedJws};
use gatepost_protocol::token::assertion::AssertionProblem;
use gatepost_protocol::upstream::answers::{self, UpstreamTokens};
use gatepost_protocol::upstream::claims::{
    are_wanting, label, mapped, merged, oauth_subject, with_booleans,
};
use gatepost_protocol::upstream::id_token::{self, ExpectedIdToken, IdTokenFacts, TokenProblem};
use gatepost_protocol::upstream::metadata::{self, SecretTransport, UpstreamMetadata};
use gatepost_protocol::upstream::round_trip::RoundTrip;
use gatepost_protocol::upstream::{Result, UpstreamIdentity, UpstreamProblem, external_url};
use gatepost_protocol::words::identity_provider::{IdentityProvider, ProviderKind};
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::secret::SecretText;

const ID_TOKEN: &str = "the ID token";
const TOKEN_ENDPOINT: &str = "the token endpoint";
const USERINFO: &str = "the userinfo endpoint";
const SIGNED_USERINFO: &str = "the userinfo endpoint's JWT";

pub(crate) struct Connection<'a> {
    app: &'a App,
    provider: &'a IdentityProvider,
    pub(crate) metadata: Arc<UpstreamMetadata>,
    deadline: Deadline,
}

pub fn registered<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a IdentityProvider> {
    let found = snapshot.catalogue.identity_providers.get(name)?;
    found.enabled.then_some(found)
}

/// Our client secret there, if one is registered. `provider` is of the same snapshot: a secret of
/// the provider that has the name now must not go to the endpoints of the one before.
pub(crate) fn secret<'a>(
    snapshot: &'a Snapshot,
    provider: &IdentityProvider,
) -> Result<Option<&'a SecretText>> {
    match snapshot.provider_secrets.get(&provider.name) {
        None => Ok(None),
        Some(Some(secret)) => Ok(Some(secret)),
        Some(None) => Err(UpstreamProblem::unusable(
            "its client_secret does not open under the master secret: see `gatepost idp test`",
        )),
    }
}

/// Who came back by that way: what the callback's parameters prove (OpenID Connect Core §3.1.2.5 to
/// §3.1.3.7, §5.3). `provider` is of `snapshot`. All requests together take 5 s at most.
pub(crate) fn identity(
    app: &App,
    snapshot: &Snapshot,
    provider: &IdentityProvider,
    trip: &RoundTrip,
    callback: &Parameters,
) -> Result<UpstreamIdentity> {
    let secret = secret(snapshot, provider)?;
    let connection = Connection::open(app, provider)?;
    let metadata = &connection.metadata;
    let issuer = match &provider.kind {
        ProviderKind::OpenId { issuer } => Some(issuer.as_str()),
        ProviderKind::OAuth { .. } => None,
    };
    let code = answers::code(callback, issuer, metadata.announces_iss)?;
    // One place for all requests: a code that was sent must not be lost for want of a place for the
    // next.
    let place = app
        .outbound
        .take_place(&metadata.token_endpoint)
        .map_err(|error| unanswered(TOKEN_ENDPOINT, error))?;
    let exchange = Exchange {
        connection: &connection,
        place: &place,
        tokens: connection.exchange(&place, &code, trip, secret)?,
    };
    let verified = match &provider.kind {
        ProviderKind::OpenId { .. } => exchange.by_id_token(trip)?,
        ProviderKind::OAuth {
            userinfo_endpoint,
            emails_endpoint,
            subject_claim,
            ..
        } => {
            let emails = emails_endpoint.as_deref();
            exchange.by_userinfo(userinfo_endpoint, emails, subject_claim)?
        }
    };
    let (claims, left_out) = mapped(provider, &verified.claims);
    Ok(UpstreamIdentity {
        facts: verified.facts,
        claims,
        left_out,
        label: label(&verified.claims),
        id_token: verified.id_token,
        own_word: match provider.posts_answer {
            true => answers::own_word(callback),
            false => JsonObject::new(),
        },
    })
}

/// What a provider says of the user, verified.
struct VerifiedUser {
    facts: IdTokenFacts,
    claims: JsonObject,
    id_token: Option<SecretText>,
}

impl<'a> Connection<'a> {
    /// Finds what is needed to speak to a provider; everything with it must be over in 5 s.
    pub(crate) fn open(app: &'a App, provider: &'a IdentityProvider) -> Result<Connection<'a>> {
        let deadline = Deadline::usual();
        let metadata = match &provider.kind {
            ProviderKind::OpenId { issuer } => {
                let fetch = |asker: Asker<'_>| fetch_metadata(asker, issuer, deadline);
                let sought = Sought {
                    asker: Asker::Worker(&app.outbound),
                    url: issuer,
                    deadline,
                };
                let found = app.upstream_documents.find(sought, |_| true, fetch);
                found.map_err(|error| unanswered("discovery", error))?
            }
            ProviderKind::OAuth {
                authorization_endpoint,
                token_endpoint,
                ..
            } => Arc::new(UpstreamMetadata {
                authorization_endpoint: authorization_endpoint.clone(),
                token_endpoint: token_endpoint.clone(),
                // What all of them understand; the header, only some.
                authentication: Some(SecretTransport::Post),
                ..UpstreamMetadata::default()
            }),
        };
        Ok(Connection {
            app,
            provider,
            metadata,
            deadline,
        })
    }

    /// Redeems a code. `secret` is our `client_secret` there; none where we are a public client.
    fn exchange(
        &self,
        place: &Place<'_>,
        code: &SecretText,
        trip: &RoundTrip,
        secret: Option<&SecretText>,
    ) -> Result<UpstreamTokens> {
        let client_id = self.provider.client_id.as_str();
        let redirect_uri = external_url(self.app.issuer(), &self.provider.name, "callback");
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", trip.code_verifier.expose()),
        ];
        let mut authorization = None;
        match (secret, self.metadata.authentication) {
            (None, _) => fields.push(("client_id", client_id)),
            (Some(secret), Some(SecretTransport::Post)) => {
                fields.extend([("client_id", client_id), ("client_secret", secret.expose())]);
            }
            (Some(secret), Some(SecretTransport::Basic)) => {
                authorization = Some(answers::basic(client_id, secret))
            }
            (Some(_), None) => {
                let cause =
                    "its token endpoint takes neither client_secret_basic nor client_secret_post";
                return Err(UpstreamProblem::unusable(cause));
            }
        }
        let mut request = OutboundRequest::post_form(&self.metadata.token_endpoint, &fields);
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization.expose());
        }
        let answer = self.send(place, TOKEN_ENDPOINT, request)?;
        let may_be_form = matches!(self.provider.kind, ProviderKind::OAuth { .. });
        answers::tokens(
            answer.status,
            answer.content_type.as_deref().filter(|_| may_be_form),
            &answer.body,
        )
    }

    fn send(
        &self,
        place: &Place<'_>,
        what: &str,
        request: OutboundRequest<'_>,
    ) -> Result<OutboundAnswer> {
        let request = request
            .header("Accept", "application/json")
            .by(self.deadline);
        place
            .send(&request)
            .map_err(|error| unanswered(what, error))
    }

    /// The claims of a JWT, if the provider's keys signed it with an algorithm that its metadata
    /// names. `what` names the JWT in the cause of a failure.
    pub(crate) fn verified_claims(
        &self,
        asker: Asker<'_>,
        what: &str,
        jws: &UnverifiedJws,
        provenance: Provenance,
    ) -> Result<JsonObject> {
        let UpstreamMetadata {
            jwks_uri,
            algorithms,
            ..
        } = &*self.metadata;
        let sought = Sought {
            asker,
            url: jwks_uri,
            deadline: self.deadline,
        };
        let verified = self
            .app
            .claims_by_fetched_keys(sought, jws, provenance, algorithms);
        verified.map_err(|error| match error {
            Stopped::Refused(AssertionProblem::KeysUnavailable) => {
                UpstreamProblem::unavailable("the provider's keys (jwks_uri) cannot be had")
            }
            Stopped::Refused(AssertionProblem::KeysUnusable) => {
                UpstreamProblem::unusable("the provider's keys (jwks_uri) are no key set")
            }
            Stopped::Refused(problem) => {
                UpstreamProblem::NotBelieved(format!("{what}: {}", problem.as_str()))
            }
            Stopped::Failed(Failure::Busy) => UpstreamProblem::Busy,
            Stopped::Failed(failure) => UpstreamProblem::Unavailable(format!("{failure:?}")),
        })
    }
}

/// A code that was redeemed: what the provider's endpoints are asked with.
struct Exchange<'a> {
    connection: &'a Connection<'a>,
    place: &'a Place<'a>,
    tokens: UpstreamTokens,
}

impl Exchange<'_> {
    /// Asks a provider with an issuer: the ID token says who the user is.
    fn by_id_token(&self, trip: &RoundTrip) -> Result<VerifiedUser> {
        let connection = self.connection;
        let Some(token) = &self.tokens.id_token else {
            let cause = "the token endpoint's answer has no id_token";
            return Err(UpstreamProblem::not_believed(cause));
        };
        let jws = unverified_jws(ID_TOKEN, token.expose())?;
        let asker = Asker::Seated(self.place);
        let claims = connection.verified_claims(asker, ID_TOKEN, &jws, Provenance::Answered)?;
        let expected = ExpectedIdToken {
            issuer: connection.provider.authority(),
            client_id: &connection.provider.client_id,
            nonce: &trip.nonce,
            access_token: &self.tokens.access_token,
            alg: jws.alg,
            needs_auth_time: trip.max_age.is_some(),
        };
        let facts = match id_token::judge(&claims, &expected, connection.app.now()) {
            Ok(facts) => facts,
            Err(TokenProblem::NoAuthTime) => return Err(UpstreamProblem::LoginRequired),
            Err(problem) => return Err(not_believed(ID_TOKEN, problem)),
        };
        let further = self.further_claims(&claims, &facts.subject)?;
        Ok(VerifiedUser {
            facts,
            claims: merged(&with_booleans(claims), further.as_ref()),
            id_token: Some(token.clone()),
        })
    }

    /// What the userinfo endpoint says of `subject`, where the ID token lacks a claim that is
    /// mapped.
    fn further_claims(&self, claims: &JsonObject, subject: &str) -> Result<Option<JsonObject>> {
        let Connection {
            provider, metadata, ..
        } = self.connection;
        let endpoint = metadata.userinfo_endpoint.as_deref();
        let Some(endpoint) = endpoint.filter(|_| are_wanting(provider, claims)) else {
            return Ok(None);
        };
        let said = self.user_info(endpoint)?;
        // Of anybody else it must not be used (OpenID Connect Core §5.3.2).
        if said.text("sub") != Some(subject) {
            let cause = "the userinfo endpoint's answer is about another sub than the ID token";
            return Err(UpstreamProblem::not_believed(cause));
        }
        Ok(Some(said))
    }

    /// Asks a provider without an issuer: its userinfo endpoint says who the user is.
    fn by_userinfo(
        &self,
        endpoint: &str,
        emails_endpoint: Option<&str>,
        subject_claim: &str,
    ) -> Result<VerifiedUser> {
        let user_info = self.user_info(endpoint)?;
        let unusable = "the userinfo endpoint's answer has no usable subject: \
                        the member that subject_claim names must be a text or a whole number";
        let subject = oauth_subject(&user_info, subject_claim)
            .ok_or_else(|| UpstreamProblem::not_believed(unusable))?;
        let wanted =
            emails_endpoint.filter(|_| answers::wants_emails(self.connection.provider, &user_info));
        let claims = match wanted {
            Some(endpoint) => {
                let what = "the emails endpoint";
                let answer = self.ask(what, endpoint)?;
                let addresses: Vec<_> =
                    answers::json(what, "array of objects", answer.status, &answer.body)?;
                answers::with_primary_email(user_info, &addresses)
            }
            None => user_info,
        };
        Ok(VerifiedUser {
            facts: IdTokenFacts {
                subject,
                ..IdTokenFacts::default()
            },
            claims,
            id_token: None,
        })
    }

    fn user_info(&self, endpoint: &str) -> Result<JsonObject> {
        let answer = self.ask(USERINFO, endpoint)?;
        let content_type = answer.content_type.as_deref().unwrap_or_default();
        let is_jwt = answer.status == 200
            && answers::is_media_type(content_type, "application/jwt")
            && !self.connection.metadata.jwks_uri.is_empty();
        let claims = if is_jwt {
            self.signed_user_info(&answer.body)?
        } else {
            answers::json(USERINFO, "object", answer.status, &answer.body)?
        };
        Ok(with_booleans(claims))
    }

    /// The claims of an answer that is a JWT (OpenID Connect Core §5.3.2): signed like an ID token,
    /// by the provider and for us.
    fn signed_user_info(&self, body: &[u8]) -> Result<JsonObject> {
        let connection = self.connection;
        let jws = unverified_jws(SIGNED_USERINFO, &String::from_utf8_lossy(body))?;
        let asker = Asker::Seated(self.place);
        let claims =
            connection.verified_claims(asker, SIGNED_USERINFO, &jws, Provenance::Answered)?;
        let provider = connection.provider;
        id_token::check_parties(&claims, provider.authority(), &provider.client_id)
            .map_err(|problem| not_believed(SIGNED_USERINFO, problem))?;
        Ok(claims)
    }

    /// The answer of an endpoint to the access token. `what` names the endpoint in the cause of a
    /// failure.
    fn ask(&self, what: &str, endpoint: &str) -> Result<OutboundAnswer> {
        let bearer = SecretText::new(format!("Bearer {}", self.tokens.access_token.expose()));
        let request = OutboundRequest::get(endpoint).header("Authorization", bearer.expose());
        self.connection.send(self.place, what, request)
    }
}

/// A JWT of a provider, before its signature is verified. `what` names it in the cause of a
/// failure.
fn unverified_jws(what: &str, text: &str) -> Result<UnverifiedJws> {
    let jws =
        UnverifiedJws::parse(text).ok_or_else(|| not_believed(what, TokenProblem::Malformed))?;
    id_token::check_typ(jws.typ.as_deref(), ID_TOKEN_TYP)
        .map_err(|problem| not_believed(what, problem))?;
    Ok(jws)
}

/// Fetches and reads the discovery document of an issuer.
pub fn fetch_metadata(
    asker: Asker<'_>,
    issuer: &str,
    deadline: Deadline,
) -> Result<UpstreamMetadata, OutboundError> {
    let url = metadata::address(issuer);
    let request = OutboundRequest::get(&url).header("Accept", "application/json");
    let document = asker
        .send(request, deadline)?
        .require_ok()?
        .json()
        .unwrap_or_default();
    metadata::read(&document, issuer).map_err(OutboundError::Unusable)
}

pub(crate) fn not_believed(what: &str, problem: TokenProblem) -> UpstreamProblem {
    UpstreamProblem::NotBelieved(format!("{what}: {}", problem.as_str()))
}

fn unanswered(what: &str, error: OutboundError) -> UpstreamProblem {
    let cause = format!("{what}: {error}");
    match error {
        OutboundError::Busy => UpstreamProblem::Busy,
        _ if error.is_passing() => UpstreamProblem::Unavailable(cause),
        _ => UpstreamProblem::Unusable(cause),
    }
}
