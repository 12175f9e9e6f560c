//! Client authentication (RFC 6749 §2.3): who the request says it is from, and whether that is proven. Unknown client
//! and wrong secret answer alike and in like time.

use super::basic_credentials::{self, BasicCredentials};
use super::client::{Client, ClientAuthenticationMethod};
use super::client_secret::{SecretDigest, matches_any};
use super::errors::{TokenError, TokenErrorCode};
use super::identifiers::ClientId;
use super::instant::Instant;
use super::lengths;
use super::parameters::Parameters;
use super::reason::Reason;
use super::secret::SecretText;

/// What the challenge of a 401 says (RFC 7617 §2).
pub const CHALLENGE: &str = "Basic realm=\"gatepost\"";

/// A claim to be a client, not yet judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentedClient {
    /// Whom the request says it is from.
    pub client_id: ClientId,
    /// The secret it shows; an empty one is none.
    pub secret: Option<SecretText>,
    /// Whether this came in the Authorization header.
    pub header_used: bool,
    /// The header's pair read without form-decoding, where that differs: older clients never encoded theirs.
    raw: Option<BasicCredentials>,
}

/// `GATEPOST_INVALID_CLIENT_STATUS`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidClientStatus {
    /// 401 when the Authorization header was used, else 400 (RFC 6749 §5.2).
    Standard,
    /// 400 always: older clients take a 401 for a transport error.
    Always400,
}

/// A refused authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationFailure {
    /// `invalid_client`, or `invalid_request` where the request contradicts itself.
    pub error: TokenError,
    /// Whether the Authorization header was used.
    pub header_used: bool,
}

/// Whether the client is who it says.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientVerdict {
    /// It is; a public client merely says so.
    Authenticated,
    /// It is not, or cannot be believed.
    Refused(AuthenticationFailure),
}

impl PresentedClient {
    /// Finds the one way in which the request names its client.
    pub fn from_request(
        authorization: &[&str],
        parameters: &Parameters,
    ) -> Result<PresentedClient, AuthenticationFailure> {
        let header_used = !authorization.is_empty();
        let refuse = |error| AuthenticationFailure { error, header_used };
        let body = BodyCredentials::read(parameters).map_err(refuse)?;
        if sends_assertion(parameters) {
            let beside = header_used || body.secret.is_some();
            return Err(refuse(match beside {
                true => contradiction(Reason::SeveralAuthenticationMethods),
                false => invalid_client(Reason::WrongAuthenticationMethod),
            }));
        }
        match authorization {
            [] => body.into_client().map_err(refuse),
            [header] => from_header(header, body).map_err(refuse),
            [_, _, ..] => Err(refuse(contradiction(Reason::SeveralAuthenticationMethods))),
        }
    }

    /// The second and last reading of the same header, for when this one was refused.
    pub fn retry(&self) -> Option<PresentedClient> {
        let raw = self.raw.clone()?;
        Some(PresentedClient::from_pair(raw, None))
    }

    fn from_pair(pair: BasicCredentials, raw: Option<BasicCredentials>) -> PresentedClient {
        let secret = Some(pair.secret).filter(|secret| !secret.is_empty());
        PresentedClient { client_id: pair.client_id, secret, header_used: true, raw }
    }

    /// Judges against the registration under `client_id`, if there is one, and its secrets. Every digest is compared,
    /// and an unknown client is compared with one that nothing matches.
    pub fn judge(&self, client: Option<&Client>, secrets: &[SecretDigest], now: Instant) -> ClientVerdict {
        let matches = matches_any(self.secret.as_ref(), secrets, now);
        let Some(client) = client else {
            return self.refused(Reason::UnknownClientAtToken);
        };
        match self.verify(client, matches) {
            Ok(()) => ClientVerdict::Authenticated,
            Err(reason) => self.refused(reason),
        }
    }

    /// Judges against the secrets of the resource of that name: resources prove themselves as confidential clients do, at
    /// introspection (RFC 7662 §2.1).
    pub fn judge_resource(&self, secrets: &[SecretDigest], now: Instant) -> ClientVerdict {
        match (matches_any(self.secret.as_ref(), secrets, now), &self.secret) {
            (true, _) => ClientVerdict::Authenticated,
            (false, None) => self.refused(Reason::MissingClientSecret),
            (false, Some(_)) => self.refused(Reason::WrongClientSecret),
        }
    }

    fn verify(&self, client: &Client, secret_matches: bool) -> Result<(), Reason> {
        if !client.enabled {
            return Err(Reason::DisabledClientAtToken);
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

    /// `invalid_client` for this reason.
    pub fn failure(&self, reason: Reason) -> AuthenticationFailure {
        AuthenticationFailure { error: invalid_client(reason), header_used: self.header_used }
    }
}

impl AuthenticationFailure {
    /// The HTTP status.
    pub fn status(&self, rule: InvalidClientStatus) -> u16 {
        let unproven = self.error.code == TokenErrorCode::InvalidClient;
        match rule {
            InvalidClientStatus::Standard if unproven && self.header_used => 401,
            InvalidClientStatus::Standard | InvalidClientStatus::Always400 => 400,
        }
    }

    /// `WWW-Authenticate`, which a 401 must have and nothing else.
    pub fn challenge(&self, rule: InvalidClientStatus) -> Option<&'static str> {
        (self.status(rule) == 401).then_some(CHALLENGE)
    }

    /// The same failure where the request is for a protected resource: 401 however the credentials came (RFC 7662 §2.3).
    #[must_use]
    pub fn at_introspection(self) -> AuthenticationFailure {
        AuthenticationFailure { header_used: true, ..self }
    }

    /// Whether a secret was guessed at: such failures are limited, others are not.
    pub fn counts_as_guess(&self) -> bool {
        matches!(self.error.reason, Reason::WrongClientSecret | Reason::UnknownClientAtToken)
    }
}

/// `client_id` and `client_secret` of the form.
struct BodyCredentials<'a> {
    client_id: Option<&'a str>,
    secret: Option<&'a str>,
}

impl<'a> BodyCredentials<'a> {
    fn read(parameters: &'a Parameters) -> Result<BodyCredentials<'a>, TokenError> {
        let read = |name, most| parameters.bounded(name, most).map_err(unreadable);
        let client_id = read("client_id", lengths::CLIENT_ID)?;
        Ok(BodyCredentials { client_id, secret: read("client_secret", lengths::CLIENT_SECRET)? })
    }

    fn into_client(self) -> Result<PresentedClient, TokenError> {
        let client_id = self.client_id.ok_or_else(|| invalid_client(Reason::NoClientAuthentication))?;
        Ok(PresentedClient {
            client_id: ClientId::new(client_id),
            secret: self.secret.map(SecretText::new),
            header_used: false,
            raw: None,
        })
    }

    fn names(&self, client_id: &ClientId) -> bool {
        self.client_id.is_none_or(|named| named == client_id.as_str())
    }
}

fn from_header(header: &str, body: BodyCredentials<'_>) -> Result<PresentedClient, TokenError> {
    let read = basic_credentials::readings(header);
    let readings = read.ok_or_else(|| invalid_client(Reason::MalformedAuthorizationHeader))?;
    if body.secret.is_some() {
        return Err(contradiction(Reason::SeveralAuthenticationMethods));
    }
    let mut named = readings.into_iter().filter(|pair| body.names(&pair.client_id));
    let first = named.next().ok_or_else(|| invalid_client(Reason::ClientIdMismatch))?;
    Ok(PresentedClient::from_pair(first, named.next()))
}

/// Assertions (RFC 7521 §4.2) are a method of their own, which this server does not offer yet.
fn sends_assertion(parameters: &Parameters) -> bool {
    parameters.was_sent("client_assertion") || parameters.was_sent("client_assertion_type")
}

fn unreadable(reason: Reason) -> TokenError {
    if reason == Reason::OverlongParameter { invalid_client(reason) } else { contradiction(reason) }
}

fn invalid_client(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidClient, reason)
}

fn contradiction(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidRequest, reason)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::super::client_secret::DigestAlgorithm;
    use super::super::samples::{self, NOW};
    use super::super::secret::SecretBytes;
    use super::*;

    fn basic(user_pass: &str) -> String {
        format!("Basic {}", STANDARD.encode(user_pass))
    }

    fn presented(header: Option<&str>, pairs: &[(&str, &str)]) -> Result<PresentedClient, AuthenticationFailure> {
        PresentedClient::from_request(&header.into_iter().collect::<Vec<_>>(), &Parameters::from_pairs(pairs.to_vec()))
    }

    fn refusal(header: Option<&str>, pairs: &[(&str, &str)]) -> (&'static str, Reason, u16) {
        let failure = presented(header, pairs).unwrap_err();
        (failure.error.code.as_str(), failure.error.reason, failure.status(InvalidClientStatus::Standard))
    }

    fn secret(text: &str) -> SecretDigest {
        let digest = SecretBytes::new(Sha256::digest(text.as_bytes()).to_vec());
        SecretDigest { algorithm: DigestAlgorithm::Sha256, digest, expires_at: None }
    }

    fn registered(authentication: ClientAuthenticationMethod) -> Client {
        Client { authentication, ..samples::client() }
    }

    fn reason(verdict: ClientVerdict) -> Option<Reason> {
        match verdict {
            ClientVerdict::Authenticated => None,
            ClientVerdict::Refused(failure) => {
                assert_eq!(failure.error.code, TokenErrorCode::InvalidClient);
                assert_eq!(failure.error.reason.description(), Reason::WrongClientSecret.description());
                Some(failure.error.reason)
            }
        }
    }

    fn judged(presented: &PresentedClient, authentication: ClientAuthenticationMethod) -> Option<Reason> {
        reason(presented.judge(Some(&registered(authentication)), &[secret("s3cret")], NOW))
    }

    #[test]
    fn each_way_names_its_client() {
        let header = presented(Some(&basic("web:s3cret")), &[("client_id", "web")]).unwrap();
        assert!(header.header_used && header.client_id.as_str() == "web" && header.secret.is_some());
        let body = presented(None, &[("client_id", "web"), ("client_secret", "s3cret")]).unwrap();
        assert!(!body.header_used && body.secret == header.secret);
        let public = presented(None, &[("client_id", "web"), ("client_secret", "")]).unwrap();
        assert!(!public.header_used && public.secret.is_none());
    }

    #[test]
    fn contradictions_and_nonsense_are_refused() {
        let (web, other) = (basic("web:s3cret"), basic("other:s3cret"));
        let long = "x".repeat(257);
        for (header, pairs, expected) in [
            (None, &[][..], ("invalid_client", Reason::NoClientAuthentication, 400)),
            (None, &[("client_id", "")], ("invalid_client", Reason::NoClientAuthentication, 400)),
            (None, &[("client_secret", "x")], ("invalid_client", Reason::NoClientAuthentication, 400)),
            (None, &[("client_id", "a"), ("client_id", "a")], ("invalid_request", Reason::RepeatedParameter, 400)),
            (None, &[("client_id", &long)], ("invalid_client", Reason::OverlongParameter, 400)),
            (
                None,
                &[("client_id", "web"), ("client_secret", &long)],
                ("invalid_client", Reason::OverlongParameter, 400),
            ),
            (
                Some(web.as_str()),
                &[("client_secret", "s3cret")],
                ("invalid_request", Reason::SeveralAuthenticationMethods, 400),
            ),
            (Some(&other), &[("client_id", "web")], ("invalid_client", Reason::ClientIdMismatch, 401)),
            (Some("Bearer x"), &[("client_id", "web")], ("invalid_client", Reason::MalformedAuthorizationHeader, 401)),
            (Some("Basic ##"), &[], ("invalid_client", Reason::MalformedAuthorizationHeader, 401)),
            (Some("Basic d2Vi"), &[], ("invalid_client", Reason::MalformedAuthorizationHeader, 401)),
            (Some(""), &[("client_id", "web")], ("invalid_client", Reason::MalformedAuthorizationHeader, 401)),
        ] {
            assert_eq!(refusal(header, pairs), expected, "{header:?} {pairs:?}");
        }
        let twice = PresentedClient::from_request(&[&web, &web], &Parameters::default()).unwrap_err();
        assert_eq!(twice.error, contradiction(Reason::SeveralAuthenticationMethods));
    }

    #[test]
    fn a_pinned_method_refuses_the_others() {
        use ClientAuthenticationMethod::{
            AnySecret, ClientSecretBasic, ClientSecretPost, None as Public, PrivateKeyJwt,
        };
        let header = presented(Some(&basic("web:s3cret")), &[]).unwrap();
        let body = presented(None, &[("client_id", "web"), ("client_secret", "s3cret")]).unwrap();
        let nothing = presented(None, &[("client_id", "web")]).unwrap();
        let empty = presented(Some(&basic("web:")), &[]).unwrap();
        let wrong = presented(Some(&basic("web:s3creT")), &[]).unwrap();
        for (authentication, expected) in [
            (AnySecret, [None, None, Some(Reason::MissingClientSecret)]),
            (
                ClientSecretBasic,
                [None, Some(Reason::WrongAuthenticationMethod), Some(Reason::WrongAuthenticationMethod)],
            ),
            (ClientSecretPost, [Some(Reason::WrongAuthenticationMethod), None, Some(Reason::MissingClientSecret)]),
            (PrivateKeyJwt, [Some(Reason::WrongAuthenticationMethod); 3]),
            (Public, [Some(Reason::SecretOfPublicClient), Some(Reason::SecretOfPublicClient), None]),
        ] {
            let verdicts = [&header, &body, &nothing].map(|presented| judged(presented, authentication));
            assert_eq!(verdicts, expected, "{authentication:?}");
        }
        assert_eq!(judged(&empty, AnySecret), Some(Reason::MissingClientSecret));
        assert_eq!(judged(&empty, Public), None);
        assert_eq!(judged(&wrong, AnySecret), Some(Reason::WrongClientSecret));
    }

    #[test]
    fn unknown_and_disabled_clients_read_like_a_wrong_secret() {
        let presented = presented(Some(&basic("web:s3cret")), &[]).unwrap();
        assert_eq!(reason(presented.judge(None, &[], NOW)), Some(Reason::UnknownClientAtToken));
        assert_eq!(reason(presented.judge(None, &[secret("s3cret")], NOW)), Some(Reason::UnknownClientAtToken));
        let disabled = Client { enabled: false, ..samples::client() };
        let verdict = presented.judge(Some(&disabled), &[secret("s3cret")], NOW);
        assert_eq!(reason(verdict), Some(Reason::DisabledClientAtToken));
        let unregistered = presented.judge(Some(&samples::client()), &[], NOW);
        assert_eq!(reason(unregistered), Some(Reason::WrongClientSecret));
    }

    #[test]
    fn the_raw_reading_is_tried_once_and_only_where_it_differs() {
        let encoded = presented(Some(&basic("web:a%2Bb")), &[]).unwrap();
        let raw = encoded.retry().unwrap();
        assert_eq!(encoded.secret, Some(SecretText::new("a+b")));
        assert_eq!(raw.secret, Some(SecretText::new("a%2Bb")));
        assert!(raw.retry().is_none() && raw.header_used);
        assert!(presented(Some(&basic("web:plain")), &[]).unwrap().retry().is_none());
        assert!(presented(None, &[("client_id", "web"), ("client_secret", "a+b")]).unwrap().retry().is_none());
    }

    #[test]
    fn client_id_of_the_body_chooses_the_reading_it_equals() {
        let header = basic("w%65b:a%2Bb");
        let decoded = presented(Some(&header), &[("client_id", "web")]).unwrap();
        assert!(decoded.client_id.as_str() == "web" && decoded.retry().is_none());
        let raw = presented(Some(&header), &[("client_id", "w%65b")]).unwrap();
        assert!(raw.client_id.as_str() == "w%65b" && raw.retry().is_none());
    }

    #[test]
    fn status_and_challenge_go_together() {
        let failure = |code, header_used| AuthenticationFailure {
            error: TokenError::new(code, Reason::WrongClientSecret),
            header_used,
        };
        let (standard, always) = (InvalidClientStatus::Standard, InvalidClientStatus::Always400);
        let header = failure(TokenErrorCode::InvalidClient, true);
        assert_eq!((header.status(standard), header.challenge(standard)), (401, Some("Basic realm=\"gatepost\"")));
        assert_eq!((header.status(always), header.challenge(always)), (400, None));
        for failure in [failure(TokenErrorCode::InvalidClient, false), failure(TokenErrorCode::InvalidRequest, true)] {
            assert_eq!((failure.status(standard), failure.challenge(standard)), (400, None));
        }
    }

    #[test]
    fn only_guesses_are_counted() {
        let wrong = presented(Some(&basic("web:x")), &[]).unwrap();
        let failure = |verdict| match verdict {
            ClientVerdict::Refused(failure) => failure,
            ClientVerdict::Authenticated => panic!("authenticated"),
        };
        assert!(failure(wrong.judge(Some(&samples::client()), &[secret("s3cret")], NOW)).counts_as_guess());
        assert!(failure(wrong.judge(None, &[], NOW)).counts_as_guess());
        assert!(!presented(Some("Bearer x"), &[]).unwrap_err().counts_as_guess());
        let public = registered(ClientAuthenticationMethod::None);
        assert!(!failure(wrong.judge(Some(&public), &[], NOW)).counts_as_guess());
    }
}
