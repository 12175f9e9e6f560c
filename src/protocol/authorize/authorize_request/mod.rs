//! The authorization request (OpenID Connect Core §3.1.2.1, RFC 6749 §4.1.1). Its parameters become
//! a value that every later step can rely on, or an error that knows where it may be delivered. The
//! addresses of our pages carry the parameters under a seal ([`known`]). Each page validates them
//! again, so a registration that has changed in the meantime counts.

mod details;
#[cfg(any(test, feature = "testing"))]
pub mod fixtures;
mod legacy;
mod request_object;
mod return_path;
mod scopes;
#[cfg(test)]
mod tests;

use super::pkce::CodeChallenge;
use super::requested_claims::RequestedClaims;
use crate::device::device_code::UserCode;
use crate::token::audience::with_registered_names;
use crate::words::acr_values::{self, AcrValues};
use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::identifiers::{ClientId, KeyThumbprint};
use crate::words::instant::Instant;
use crate::words::parameters;
use crate::words::parameters::Parameters;
use crate::words::reason::{AuthorizeErrorCode, Reason};
use crate::words::redirect_uri::RedirectTarget;
use crate::words::response_type::{Prompts, ResponseType};
use crate::words::scope::{OPENID, ScopeSet};
use crate::words::secret::SecretText;
pub use return_path::ReturnPath;
pub use scopes::check_kinds;

/// Every parameter that is read, with the most characters that it may have. All others are ignored,
/// even when they are repeated.
const KNOWN: [(&str, usize); 19] = [
    ("client_id", parameters::CLIENT_ID),
    ("redirect_uri", parameters::REDIRECT_URI),
    ("response_type", parameters::OTHER),
    ("response_mode", parameters::OTHER),
    ("scope", parameters::SCOPE),
    ("state", parameters::STATE),
    ("nonce", parameters::NONCE),
    ("code_challenge", parameters::CODE_VERIFIER),
    ("code_challenge_method", parameters::OTHER),
    ("prompt", parameters::OTHER),
    ("max_age", parameters::OTHER),
    ("login_hint", parameters::USERNAME),
    ("ui_locales", parameters::OTHER),
    ("acr_values", parameters::OTHER),
    ("id_token_hint", parameters::ID_TOKEN_HINT),
    ("claims", parameters::CLAIMS),
    ("display", parameters::OTHER),
    ("claims_locales", parameters::OTHER),
    ("dpop_jkt", parameters::OTHER),
];

/// May be sent several times (RFC 8707 §2).
const RESOURCE: &str = "resource";

#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    Client(ReturnPath),
    /// On the device page, for the device that shows this code (RFC 8628 §3.3).
    Device(UserCode),
    /// On a page of ours. No client is involved.
    Account {
        /// Whether the person must sign in again, even with a session.
        anew: bool,
        page: LandingPage,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum LandingPage {
    Account,
    Start,
    /// The account page, where it adds a factor by this decision.
    AddFactor(String),
    /// Below `/admin`.
    Admin(String),
}

/// A request that may go on: everything in it was checked against the client's registration.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorizeRequest {
    pub ending: Ending,
    pub response_type: ResponseType,
    pub scope: ScopeSet,
    /// `nonce`, to be given back byte for byte.
    pub nonce: Option<String>,
    /// `code_challenge` with its method; `None` also where the response type has no code.
    pub code_challenge: Option<CodeChallenge>,
    /// `dpop_jkt`: the key that the code is bound to; `None` also where there is no code.
    pub dpop_jkt: Option<KeyThumbprint>,
    pub prompt: Prompts,
    /// `max_age` in seconds, or the client's `default_max_age`.
    pub max_age: Option<u64>,
    pub login_hint: Option<String>,
    pub ui_locales: Option<String>,
    pub acr_values: AcrValues,
    /// `id_token_hint`, unverified: the endpoint checks it and hands its subject to the decision.
    pub unverified_id_token_hint: Option<SecretText>,
    pub claims: RequestedClaims,
    /// `resource`, without duplicates.
    pub resources: Vec<String>,
    /// When the request arrived. A sign-in from then on counts as made for this request.
    pub received_at: Instant,
}

#[derive(Debug, PartialEq)]
pub enum AuthorizeError {
    /// There is no address to redirect to: the person gets an error page, HTTP 400.
    Page {
        /// The client that the request names, if it is registered.
        client_id: Option<ClientId>,
        reason: Reason,
        detail: Option<String>,
    },
    Redirect(ReturnPath, AuthorizeRefusal),
}

/// Why a request that can be answered by redirect is refused.
#[derive(Debug, PartialEq)]
pub struct AuthorizeRefusal {
    pub code: AuthorizeErrorCode,
    pub reason: Reason,
    pub detail: Option<String>,
}

impl AuthorizeRefusal {
    /// A refusal without detail.
    pub fn new(code: AuthorizeErrorCode, reason: Reason) -> AuthorizeRefusal {
        AuthorizeRefusal {
            code,
            reason,
            detail: None,
        }
    }

    fn with_detail(
        code: AuthorizeErrorCode,
        reason: Reason,
        detail: impl Into<String>,
    ) -> AuthorizeRefusal {
        AuthorizeRefusal {
            code,
            reason,
            detail: Some(detail.into()),
        }
    }
}

impl AuthorizeRequest {
    /// A request that ends on one of our own pages, not at a client: for a device, or for the
    /// account page.
    pub fn of_our_own(
        client: Option<&Client>,
        ending: Ending,
        acr_values: AcrValues,
        received_at: Instant,
    ) -> AuthorizeRequest {
        AuthorizeRequest {
            ending,
            response_type: ResponseType::CODE,
            scope: ScopeSet::default(),
            nonce: None,
            code_challenge: None,
            dpop_jkt: None,
            prompt: Prompts::default(),
            max_age: client.and_then(|client| client.default_max_age),
            login_hint: None,
            ui_locales: None,
            acr_values,
            unverified_id_token_hint: None,
            claims: RequestedClaims::default(),
            resources: Vec::new(),
            received_at,
        }
    }

    /// Turns a later refusal into the error that travels as this request's success would.
    pub fn refuse(&self, refusal: AuthorizeRefusal) -> AuthorizeError {
        match &self.ending {
            Ending::Client(path) => AuthorizeError::Redirect(path.clone(), refusal),
            Ending::Device(_) | Ending::Account { .. } => AuthorizeError::Page {
                client_id: None,
                reason: refusal.reason,
                detail: refusal.detail,
            },
        }
    }

    /// Whether it is an OpenID request (OpenID Connect Core §3.1.2.1).
    pub fn is_openid(&self) -> bool {
        self.scope.contains(OPENID)
    }
}

/// `client_id` alone, to load the client by. Every error is a page.
pub fn client_id(parameters: &Parameters) -> Result<ClientId, AuthorizeError> {
    let sent = parameters
        .bounded("client_id", parameters::CLIENT_ID)
        .map_err(page)?;
    sent.map(ClientId::new)
        .ok_or_else(|| page(Reason::MissingClientId))
}

/// Judges a request. Errors of client and redirect URI are pages,
/// all others travel to the redirect URI.
pub fn validate(
    parameters: &Parameters,
    client: &Client,
    catalogue: &Catalogue,
    received_at: Instant,
) -> Result<AuthorizeRequest, AuthorizeError> {
    let parameters = &*with_registered_names(parameters, catalogue);
    let redirect = redirect_target(parameters, client)?;
    let path = ReturnPath::find(parameters, client, redirect.clone());
    let registered = Registered { client, catalogue };
    read(parameters, &registered, redirect, received_at)
        .map_err(|refusal| AuthorizeError::Redirect(path, refusal))
}

/// The parameters that mean something here, in the order they were sent. A request that is taken
/// with all of its parameters is taken with these, as the same.
pub fn known(parameters: &Parameters) -> Parameters {
    let is_known = |name: &str| name == RESOURCE || KNOWN.iter().any(|(known, _)| *known == name);
    Parameters::from_pairs(parameters.iter().filter(|(name, _)| is_known(name)))
}

/// Marks, under the seal, a request that has begun anew. Nobody can send it: [`known`] leaves it
/// out.
const BEGUN_ANEW: &str = "begun_anew";

/// The same request, to begin anew once its page has expired. `None` where it has begun anew
/// before.
pub fn anew(parameters: &Parameters) -> Option<Parameters> {
    let marked = parameters.iter().chain([(BEGUN_ANEW, "true")]);
    (!parameters.was_sent(BEGUN_ANEW)).then(|| Parameters::from_pairs(marked))
}

struct Registered<'a> {
    client: &'a Client,
    catalogue: &'a Catalogue,
}

fn page(reason: Reason) -> AuthorizeError {
    AuthorizeError::Page {
        client_id: None,
        reason,
        detail: None,
    }
}

fn redirect_target(
    parameters: &Parameters,
    client: &Client,
) -> Result<RedirectTarget, AuthorizeError> {
    if client_id(parameters)? != client.client_id {
        return Err(page(Reason::UnknownClient));
    }
    let page = |reason, detail| AuthorizeError::Page {
        client_id: Some(client.client_id.clone()),
        reason,
        detail,
    };
    if !client.enabled {
        return Err(page(Reason::DisabledClient, None));
    }
    let sent = parameters
        .bounded("redirect_uri", parameters::REDIRECT_URI)
        .map_err(|reason| page(reason, None))?;
    let sent = sent.ok_or_else(|| page(Reason::MissingRedirectUri, None))?;
    RedirectTarget::match_registered(sent, client).ok_or_else(|| {
        let both = format!(
            "received {sent}; registered {}",
            client.redirect_uris.join(" ")
        );
        page(Reason::UnregisteredRedirectUri, Some(both))
    })
}

fn read(
    parameters: &Parameters,
    registered: &Registered<'_>,
    redirect: RedirectTarget,
    received_at: Instant,
) -> Result<AuthorizeRequest, AuthorizeRefusal> {
    request_object::refuse(parameters)?;
    check_shape(parameters)?;
    let Registered { client, catalogue } = registered;
    let response_type = details::response_type(parameters, client)?;
    let sent_mode = single(parameters, "response_mode")?;
    let mode = return_path::choose_mode(sent_mode, response_type, client, &redirect)
        .map_err(invalid_request)?;
    let resources = details::resources(parameters)?;
    let scope = scopes::read(
        single(parameters, "scope")?,
        &resources,
        response_type,
        registered,
    )?;
    let claims = details::claims(parameters, &scope, registered)?;
    let nonce = details::nonce(parameters, response_type)?;
    let comes_back = nonce.is_some() && scope.contains(OPENID);
    let prompt = single(parameters, "prompt")?
        .map_or(Ok(Prompts::default()), Prompts::parse)
        .map_err(invalid_request)?;
    let path = ReturnPath {
        client_id: client.client_id.clone(),
        to: redirect,
        mode,
        state: owned(parameters, "state")?,
        silent: prompt.none,
        with_iss: client.iss_on_error,
    };
    let request = AuthorizeRequest {
        ending: Ending::Client(path),
        response_type,
        nonce,
        code_challenge: details::code_challenge(parameters, response_type, client, comes_back)?,
        dpop_jkt: details::dpop_jkt(parameters, response_type)?,
        prompt,
        max_age: details::max_age(parameters, client)?,
        login_hint: owned(parameters, "login_hint")?,
        ui_locales: owned(parameters, "ui_locales")?,
        acr_values: AcrValues::parse(single(parameters, "acr_values")?, client, catalogue)
            .map_err(invalid_request)?,
        unverified_id_token_hint: single(parameters, "id_token_hint")?.map(SecretText::new),
        resources: details::within(&resources, &scope, catalogue)?,
        claims,
        scope,
        received_at,
    };
    request.refuse_what_is_over(client)
}

/// Each known parameter at most once and not too long, whether this request has a use for it or
/// not.
fn check_shape(parameters: &Parameters) -> Result<(), AuthorizeRefusal> {
    for (name, most) in KNOWN {
        let sent = parameters.bounded(name, most);
        sent.map_err(|reason| {
            AuthorizeRefusal::with_detail(AuthorizeErrorCode::InvalidRequest, reason, name)
        })?;
    }
    Ok(())
}

fn invalid_request(reason: Reason) -> AuthorizeRefusal {
    AuthorizeRefusal::new(AuthorizeErrorCode::InvalidRequest, reason)
}

fn single<'a>(parameters: &'a Parameters, name: &str) -> Result<Option<&'a str>, AuthorizeRefusal> {
    parameters.single(name).map_err(invalid_request)
}

fn owned(parameters: &Parameters, name: &str) -> Result<Option<String>, AuthorizeRefusal> {
    Ok(single(parameters, name)?.map(str::to_owned))
}

fn is_reachable(claims: &RequestedClaims, catalogue: &Catalogue) -> bool {
    acr_values::supported(catalogue)
        .into_iter()
        .any(|acr| claims.is_met_by(acr))
}
