//! Client authentication (RFC 6749 §2.3): who the request says it is from, and whether that is proven. Unknown client
//! and wrong secret answer alike and in like time.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

use super::client::{Client, ClientAuthenticationMethod};
use super::errors::{TokenError, TokenErrorCode};
use super::identifiers::ClientId;
use super::instant::Instant;
use super::parameters::Parameters;
use super::reason::Reason;
use super::secret::{SecretBytes, SecretText};

const MOST_CLIENT_ID_CHARACTERS: usize = 200;
const MOST_SECRET_CHARACTERS: usize = 256;
/// Room for both halves at their longest, form-encoded and in base64.
const MOST_HEADER_BYTES: usize = 16_384;

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
    raw: Option<Pair>,
}

/// `client_id` and `client_secret` as one header held them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    client_id: ClientId,
    secret: SecretText,
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

/// How a secret's digest was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-512, 64 bytes.
    Sha512,
}

/// One registered secret of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretDigest {
    /// How it was made.
    pub algorithm: DigestAlgorithm,
    /// The digest.
    pub digest: SecretBytes,
    /// From here on it does not count; `None` is without end.
    pub expires_at: Option<Instant>,
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

    fn from_pair(pair: Pair, raw: Option<Pair>) -> PresentedClient {
        let secret = Some(pair.secret).filter(|secret| !secret.is_empty());
        PresentedClient { client_id: pair.client_id, secret, header_used: true, raw }
    }

    /// Judges against the registration under `client_id`, if there is one, and its secrets. Every digest is compared,
    /// and an unknown client is compared with one that nothing matches.
    pub fn judge(&self, client: Option<&Client>, secrets: &[SecretDigest], now: Instant) -> ClientVerdict {
        let shown = ShownDigests::of(self.secret.as_ref());
        let matches = shown.match_any(secrets, now);
        let Some(client) = client else {
            return self.refused(Reason::UnknownClientAtToken);
        };
        match self.verify(client, matches) {
            Ok(()) => ClientVerdict::Authenticated,
            Err(reason) => self.refused(reason),
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
        ClientVerdict::Refused(AuthenticationFailure { error: invalid_client(reason), header_used: self.header_used })
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
        let client_id = read("client_id", MOST_CLIENT_ID_CHARACTERS)?;
        Ok(BodyCredentials { client_id, secret: read("client_secret", MOST_SECRET_CHARACTERS)? })
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
    let malformed = || invalid_client(Reason::MalformedAuthorizationHeader);
    let user_pass = basic_user_pass(header).ok_or_else(malformed)?;
    if body.secret.is_some() {
        return Err(contradiction(Reason::SeveralAuthenticationMethods));
    }
    let (client_id, secret) = user_pass.split_once(':').ok_or_else(malformed)?;
    let raw = pair(client_id, secret);
    let decoded = form_decoded(client_id).zip(form_decoded(secret));
    let decoded = decoded.and_then(|(client_id, secret)| pair(&client_id, &secret));
    if decoded.is_none() && raw.is_none() {
        return Err(malformed());
    }
    let mut readings = decoded.into_iter().chain(raw).filter(|pair| body.names(&pair.client_id));
    let first = readings.next().ok_or_else(|| invalid_client(Reason::ClientIdMismatch))?;
    let second = readings.next().filter(|pair| *pair != first);
    Ok(PresentedClient::from_pair(first, second))
}

/// The text behind `Basic` (RFC 7617 §2); the scheme's case does not matter.
fn basic_user_pass(header: &str) -> Option<String> {
    let (scheme, encoded) = header.trim_matches(' ').split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("Basic") || encoded.len() > MOST_HEADER_BYTES {
        return None;
    }
    let bytes = STANDARD.decode(encoded.trim_start_matches(' ')).ok()?;
    String::from_utf8(bytes).ok()
}

/// RFC 6749 §2.3.1 puts both halves through form encoding. `None` when the text is not a form value.
fn form_decoded(text: &str) -> Option<String> {
    // Behind a name and with separators masked, the strict form parser reads the one value.
    let masked = text.replace('&', "%26").replace('=', "%3D");
    let parameters = Parameters::parse(format!("value={masked}").as_bytes()).ok()?;
    parameters.all("value").next().map(str::to_owned)
}

/// `None` when a half is longer than any registered one, the name is empty, or there is a NUL.
fn pair(client_id: &str, secret: &str) -> Option<Pair> {
    let too_long = |text: &str, most: usize| text.chars().nth(most).is_some();
    let overlong = too_long(client_id, MOST_CLIENT_ID_CHARACTERS) || too_long(secret, MOST_SECRET_CHARACTERS);
    if overlong || client_id.is_empty() || client_id.contains('\0') || secret.contains('\0') {
        return None;
    }
    Some(Pair { client_id: ClientId::new(client_id), secret: SecretText::new(secret) })
}

/// Both digests of what was shown, whatever kind the registered ones are.
struct ShownDigests {
    sha256: [u8; 32],
    sha512: [u8; 64],
}

impl ShownDigests {
    fn of(secret: Option<&SecretText>) -> ShownDigests {
        let secret = secret.map(SecretText::expose).unwrap_or_default().as_bytes();
        ShownDigests { sha256: Sha256::digest(secret).into(), sha512: Sha512::digest(secret).into() }
    }

    fn match_any(&self, secrets: &[SecretDigest], now: Instant) -> bool {
        let dummy = SecretDigest {
            algorithm: DigestAlgorithm::Sha256,
            digest: SecretBytes::new([0; 32]),
            expires_at: Some(Instant::from_micros(i64::MIN)),
        };
        let compared = if secrets.is_empty() { std::slice::from_ref(&dummy) } else { secrets };
        // No early exit: how many are compared tells nothing about which one matched.
        compared.iter().fold(false, |found, secret| found | self.matches(secret, now))
    }

    fn matches(&self, secret: &SecretDigest, now: Instant) -> bool {
        let shown: &[u8] = match secret.algorithm {
            DigestAlgorithm::Sha256 => &self.sha256,
            DigestAlgorithm::Sha512 => &self.sha512,
        };
        let equal = verify_slices_are_equal(shown, secret.digest.expose()).is_ok();
        equal & secret.expires_at.is_none_or(|expires_at| now < expires_at)
    }
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
