//! Client authentication (RFC 6749 §2.3): which client a request names, and whether it proves to be
//! that client. An unknown client and a wrong secret get the same answer in the same time. For an
//! assertion (`private_key_jwt`) this file says only whether the client may use one. The caller has
//! the keys and verifies it.

use super::client_secret::{SecretDigest, matches_any};
use crate::keys::jwt::UnverifiedJws;
use crate::token::assertion;
use crate::token::client_secret::{self, BasicCredentials};
use crate::words::client::{Client, ClientAuthenticationMethod};
use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::named::named;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{Reason, Result, TokenError, TokenErrorCode, invalid_request};
use crate::words::secret::SecretText;

/// RFC 7617 §2
pub const CHALLENGE: &str = "Basic realm=\"gatepost\"";

#[derive(Debug)]
pub struct PresentedClient {
    pub client_id: ClientId,
    /// `None` also where an empty one was sent.
    pub secret: Option<SecretText>,
    pub assertion: Option<Box<UnverifiedJws>>,
    pub header_used: bool,
    /// The same header, read without form-decoding, where that gives something else.
    raw: Option<BasicCredentials>,
}

named! {
    /// `GATEPOST_INVALID_CLIENT_STATUS`
    pub enum InvalidClientStatus {
        /// 401 when the Authorization header was used, else 400 (RFC 6749 §5.2).
        Standard = "standard",
        /// Always 400. Older clients take a 401 for a transport error.
        Always400 = "400",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct AuthenticationFailure {
    /// `invalid_client`, or `invalid_request` where the request contradicts itself.
    pub error: TokenError,
    pub header_used: bool,
    /// For the log alone.
    pub detail: Option<String>,
}

#[must_use]
#[derive(Debug, PartialEq)]
pub enum ClientVerdict {
    Authenticated,
    /// Authenticated, if this assertion verifies with keys that are registered for the client.
    ByAssertion(Box<UnverifiedJws>),
    Refused(AuthenticationFailure),
}

impl PresentedClient {
    /// Reads how the request names its client. More than one way is an error.
    pub fn from_request(
        authorization: &[&str],
        parameters: &Parameters,
    ) -> Result<PresentedClient, AuthenticationFailure> {
        let header_used = !authorization.is_empty();
        let named = PresentedClient::named(authorization, parameters);
        named.map_err(|error| AuthenticationFailure {
            error,
            header_used,
            detail: None,
        })
    }

    fn named(authorization: &[&str], parameters: &Parameters) -> Result<PresentedClient> {
        let client_id = parameters
            .bounded("client_id", parameters::CLIENT_ID)
            .map_err(unreadable)?;
        let secret = parameters
            .bounded("client_secret", parameters::CLIENT_SECRET)
            .map_err(unreadable)?;
        if assertion::is_sent(parameters) {
            if !authorization.is_empty() || secret.is_some() {
                return Err(several_methods());
            }
            return PresentedClient::from_assertion(parameters, client_id);
        }
        match authorization {
            [] => {
                let client_id =
                    client_id.ok_or_else(|| invalid_client(Reason::NoClientAuthentication))?;
                Ok(PresentedClient {
                    secret: secret.map(SecretText::new),
                    ..PresentedClient::without_header(ClientId::new(client_id))
                })
            }
            [header] => PresentedClient::from_header(header, client_id, secret),
            [_, _, ..] => Err(several_methods()),
        }
    }

    fn from_assertion(parameters: &Parameters, client_id: Option<&str>) -> Result<PresentedClient> {
        let (client_id, jws) = assertion::read(parameters, client_id).map_err(unreadable)?;
        Ok(PresentedClient {
            assertion: Some(Box::new(jws)),
            ..PresentedClient::without_header(client_id)
        })
    }

    fn without_header(client_id: ClientId) -> PresentedClient {
        PresentedClient {
            client_id,
            secret: None,
            assertion: None,
            header_used: false,
            raw: None,
        }
    }

    /// `client_id` and `secret` are what the form has beside the header.
    fn from_header(
        header: &str,
        client_id: Option<&str>,
        secret: Option<&str>,
    ) -> Result<PresentedClient> {
        let readings = client_secret::readings(header)
            .ok_or_else(|| invalid_client(Reason::MalformedAuthorizationHeader))?;
        if secret.is_some() {
            return Err(several_methods());
        }
        let is_named = |pair: &BasicCredentials| {
            client_id.is_none_or(|named| named == pair.client_id.as_str())
        };
        let mut named = readings.into_iter().filter(is_named);
        let first = named
            .next()
            .ok_or_else(|| invalid_client(Reason::ClientIdMismatch))?;
        Ok(PresentedClient::from_pair(first, named.next()))
    }

    /// The second and last reading of the same header, to try after the first was refused.
    pub fn retry(&self) -> Option<PresentedClient> {
        let raw = self.raw.clone()?;
        Some(PresentedClient::from_pair(raw, None))
    }

    fn from_pair(pair: BasicCredentials, raw: Option<BasicCredentials>) -> PresentedClient {
        let secret = Some(pair.secret).filter(|secret| !secret.is_empty());
        PresentedClient {
            client_id: pair.client_id,
            secret,
            assertion: None,
            header_used: true,
            raw,
        }
    }

    /// Judges the credentials. `client` and `secrets` are what is registered under `client_id`.
    /// Every digest is compared, and for an unknown client one that nothing matches, so that the
    /// time tells nothing.
    pub fn judge(
        &self,
        client: Option<&Client>,
        secrets: &[SecretDigest],
        now: Instant,
    ) -> ClientVerdict {
        let matches = matches_any(self.secret.as_ref(), secrets, now);
        let Some(client) = client else {
            return self.refused(Reason::UnknownClientAtToken);
        };
        match (self.verify(client, matches), &self.assertion) {
            (Ok(()), Some(assertion)) => ClientVerdict::ByAssertion(assertion.clone()),
            (Ok(()), None) => ClientVerdict::Authenticated,
            (Err(reason), _) => self.refused(reason),
        }
    }

    /// Judges the credentials of a resource at introspection (RFC 7662 §2.1): a secret, as for
    /// confidential clients.
    pub fn judge_resource(
        &self,
        secrets: &[SecretDigest],
        now: Instant,
    ) -> Result<(), AuthenticationFailure> {
        match (
            matches_any(self.secret.as_ref(), secrets, now),
            &self.secret,
        ) {
            (true, _) => Ok(()),
            (false, None) => Err(self.failure(Reason::MissingClientSecret)),
            (false, Some(_)) => Err(self.failure(Reason::WrongClientSecret)),
        }
    }

    fn verify(&self, client: &Client, secret_matches: bool) -> Result<(), Reason> {
        if !client.enabled {
            return Err(Reason::DisabledClientAtToken);
        }
        if let Some(jws) = &self.assertion {
            return check_may_assert(jws, client);
        }
        let acceptable = match client.authentication {
            ClientAuthenticationMethod::None if self.secret.is_none() => return Ok(()),
            ClientAuthenticationMethod::None => return Err(Reason::SecretOfPublicClient),
            ClientAuthenticationMethod::AnySecret => true,
            ClientAuthenticationMethod::ClientSecretBasic => self.header_used,
            ClientAuthenticationMethod::ClientSecretPost => !self.header_used,
            ClientAuthenticationMethod::PrivateKeyJwt => false,
        };
        match (acceptable, &self.secret) {
            (false, _) => Err(Reason::WrongAuthenticationMethod),
            (true, None) => Err(Reason::MissingClientSecret),
            (true, Some(_)) if secret_matches => Ok(()),
            (true, Some(_)) => Err(Reason::WrongClientSecret),
        }
    }

    fn refused(&self, reason: Reason) -> ClientVerdict {
        ClientVerdict::Refused(self.failure(reason))
    }

    pub fn failure(&self, reason: Reason) -> AuthenticationFailure {
        AuthenticationFailure {
            error: invalid_client(reason),
            header_used: self.header_used,
            detail: None,
        }
    }
}

/// Whether the client may authenticate by this assertion. Its signature and claims are verified
/// later.
fn check_may_assert(jws: &UnverifiedJws, client: &Client) -> Result<(), Reason> {
    if client.authentication != ClientAuthenticationMethod::PrivateKeyJwt {
        return Err(Reason::WrongAuthenticationMethod);
    }
    let names_itself = assertion::subject(jws).as_deref() == Some(client.client_id.as_str());
    if !names_itself && client.federated.is_empty() {
        return Err(Reason::ClientIdMismatch);
    }
    Ok(())
}

impl AuthenticationFailure {
    pub fn status(&self, rule: InvalidClientStatus) -> u16 {
        let unproven = self.error.code == TokenErrorCode::InvalidClient;
        match rule {
            InvalidClientStatus::Standard if unproven && self.header_used => 401,
            InvalidClientStatus::Standard | InvalidClientStatus::Always400 => 400,
        }
    }

    /// `WWW-Authenticate`, which a 401 must have. Other answers have none.
    pub fn challenge(&self, rule: InvalidClientStatus) -> Option<&'static str> {
        (self.status(rule) == 401).then_some(CHALLENGE)
    }

    /// The same failure at introspection: 401, however the credentials were sent (RFC 7662 §2.3).
    #[must_use]
    pub fn at_introspection(self) -> AuthenticationFailure {
        AuthenticationFailure {
            header_used: true,
            ..self
        }
    }

    /// Whether somebody may have guessed a secret. Only such failures are counted and limited.
    pub fn counts_as_guess(&self) -> bool {
        matches!(
            self.error.reason,
            Reason::WrongClientSecret | Reason::UnknownClientAtToken
        )
    }
}

fn invalid_client(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidClient, reason)
}

fn unreadable(reason: Reason) -> TokenError {
    if reason == Reason::RepeatedParameter {
        invalid_request(reason)
    } else {
        invalid_client(reason)
    }
}

fn several_methods() -> TokenError {
    invalid_request(Reason::SeveralAuthenticationMethods)
}

#[cfg(test)]
mod tests;
