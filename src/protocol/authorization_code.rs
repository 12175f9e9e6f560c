//! The authorization code: what it carries under seal, and the verdict on an attempt to redeem it (RFC 6749 §4.1.3,
//! RFC 7636 §4.6). Nothing is stored until then; the database alone knows whether a code was redeemed before.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::claims::ClaimNames;
use super::client::Client;
use super::code_challenge::{CodeChallengeMethod, StoredChallenge};
use super::codec::{Reader, Writer};
use super::identifiers::{ClientId, GrantId};
use super::instant::{Day, Instant};
use super::reason::Reason;
use super::response_type::ResponseType;
use super::scope::ScopeSet;
use super::token_request::{AuthorizationCodeRequest, PresentedVerifier};
use super::token_subject::TokenSubject;

/// The byte form's version; another one is not ours to read.
const VERSION: u8 = 1;

/// The most bytes of a code's plain form: sealing adds a key byte, a nonce of 12 and a tag of 16, base64url a third,
/// and with the prefix `gpc_` the whole stays within 2,000 characters.
const MOST_BYTES: usize = (2_000 - 4) / 4 * 3 - 29;

/// How long after its issue a code that comes again still ends what its first redemption gave.
const REPLAY_WATCH: Duration = Duration::from_secs(600);

/// Everything the authorization endpoint decided, for the token endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The grant that its redemption will create; its day is that of `grant_expires_at`.
    pub grant: GrantId,
    /// Whom it was issued to.
    pub client_id: ClientId,
    /// SHA-256 of the authorization request's redirect_uri; see [`redirect_uri_hash`].
    pub redirect_uri_hash: [u8; 32],
    /// The PKCE challenge, where one was sent.
    pub challenge: Option<StoredChallenge>,
    /// `nonce`, for the id_token.
    pub nonce: Option<String>,
    /// The granted scope.
    pub scope: ScopeSet,
    /// `resource` (RFC 8707); empty when the request named none.
    pub resources: Vec<String>,
    /// Names of claims asked for by the `claims` parameter.
    pub claims: ClaimNames,
    /// Who signed in, and how.
    pub user: TokenSubject,
    /// What the authorization request asked for.
    pub response_type: ResponseType,
    /// When it was sealed.
    pub issued_at: Instant,
    /// From here on it is expired.
    pub expires_at: Instant,
    /// The absolute expiry of the grant.
    pub grant_expires_at: Instant,
}

/// What to do with an attempt to redeem a code. Replay is found out by the statement that enacts this.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redemption {
    /// Create the grant and issue, unless it is there already.
    Redeem,
    /// Its own client got it wrong: create the grant revoked, so that the code is spent.
    Burn(Reason),
    /// Expired, yet recent enough that a first redemption may live: revoke the grant if it is there, create nothing.
    ReplayOnly(Reason),
    /// Refuse and write nothing: a stranger must not be able to spend somebody's code.
    Reject(Reason),
}

/// Judges an attempt, in the order client, expiry, redirect_uri, PKCE, and whether the client may still have it.
pub fn redeem(
    code: &AuthorizationCode,
    request: &AuthorizationCodeRequest,
    client: &Client,
    now: Instant,
) -> Redemption {
    if code.client_id != client.client_id {
        return Redemption::Reject(Reason::CodeOfAnotherClient);
    }
    if now >= code.expires_at {
        return judge_expired(code, now);
    }
    if code.redirect_uri_hash != redirect_uri_hash(&request.redirect_uri) {
        return Redemption::Burn(Reason::RedirectUriMismatch);
    }
    if let Err(reason) = verify_challenge(code.challenge.as_ref(), &request.code_verifier) {
        return Redemption::Burn(reason);
    }
    if !is_still_allowed(code, client) {
        return Redemption::Burn(Reason::GrantNoLongerStands);
    }
    Redemption::Redeem
}

/// SHA-256 of a redirect_uri, byte for byte: equal exactly when the texts are.
pub fn redirect_uri_hash(redirect_uri: &str) -> [u8; 32] {
    Sha256::digest(redirect_uri.as_bytes()).into()
}

fn judge_expired(code: &AuthorizationCode, now: Instant) -> Redemption {
    if now < code.issued_at.plus(REPLAY_WATCH) {
        Redemption::ReplayOnly(Reason::CodeExpired)
    } else {
        Redemption::Reject(Reason::CodeExpired)
    }
}

/// A verifier must be there exactly when a challenge was; an empty one is not "no PKCE".
fn verify_challenge(challenge: Option<&StoredChallenge>, verifier: &PresentedVerifier) -> Result<(), Reason> {
    match (challenge, verifier) {
        (None, PresentedVerifier::Absent) => Ok(()),
        (None, PresentedVerifier::Empty | PresentedVerifier::Sent(_)) => Err(Reason::CodeVerifierUnexpected),
        (Some(_), PresentedVerifier::Absent | PresentedVerifier::Empty) => Err(Reason::CodeVerifierMissing),
        (Some(challenge), PresentedVerifier::Sent(code_verifier)) => challenge.verify(code_verifier.expose()),
    }
}

fn is_still_allowed(code: &AuthorizationCode, client: &Client) -> bool {
    code.scope.is_within(&client.scope) && code.user.tenant.as_ref().is_none_or(|tenant| client.allows_tenant(tenant))
}

impl AuthorizationCode {
    /// The bytes to seal.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION);
        self.grant.write(&mut writer);
        writer.text(self.client_id.as_str());
        writer.fixed(&self.redirect_uri_hash);
        writer.optional(self.challenge.as_ref(), write_challenge);
        writer.optional(self.nonce.as_deref(), Writer::text);
        writer.texts(self.scope.iter());
        writer.texts(self.resources.iter().map(String::as_str));
        self.claims.write(&mut writer);
        self.user.write(&mut writer);
        write_response_type(&mut writer, self.response_type);
        writer.instant(self.issued_at);
        writer.instant(self.expires_at);
        writer.instant(self.grant_expires_at);
        writer.finish()
    }

    /// Reads bytes that were sealed; `None` when they are not a whole code of this version.
    pub fn decode(bytes: &[u8]) -> Option<AuthorizationCode> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return None;
        }
        let code = AuthorizationCode {
            grant: GrantId::read(&mut reader)?,
            client_id: ClientId::new(reader.text()?),
            redirect_uri_hash: reader.fixed()?,
            challenge: reader.optional(read_challenge)?,
            nonce: reader.optional(Reader::text)?,
            scope: reader.texts()?.iter().map(String::as_str).collect(),
            resources: reader.texts()?,
            claims: ClaimNames::read(&mut reader)?,
            user: TokenSubject::read(&mut reader)?,
            response_type: read_response_type(&mut reader)?,
            issued_at: reader.instant()?,
            expires_at: reader.instant()?,
            grant_expires_at: reader.instant()?,
        };
        reader.finish()?;
        Some(code)
    }

    /// Whether the sealed code stays within 2,000 characters; otherwise the request is refused (`RequestTooLong`).
    pub fn fits(&self) -> bool {
        self.encode().len() <= MOST_BYTES
    }
}

impl GrantId {
    /// Appends the byte form: four bytes of the day, 16 random ones.
    pub fn write(&self, writer: &mut Writer) {
        writer.fixed(&self.day.0.to_be_bytes());
        writer.fixed(&self.random);
    }

    /// Takes the byte form off the front.
    pub fn read(reader: &mut Reader<'_>) -> Option<GrantId> {
        Some(GrantId { day: Day(i32::from_be_bytes(reader.fixed()?)), random: reader.fixed()? })
    }
}

fn write_challenge(writer: &mut Writer, challenge: &StoredChallenge) {
    writer.u8(challenge.method.tag());
    writer.fixed(&challenge.hash);
}

fn read_challenge(reader: &mut Reader<'_>) -> Option<StoredChallenge> {
    Some(StoredChallenge { method: CodeChallengeMethod::from_tag(reader.u8()?)?, hash: reader.fixed()? })
}

fn write_response_type(writer: &mut Writer, response_type: ResponseType) {
    writer.boolean(response_type.code);
    writer.boolean(response_type.id_token);
    writer.boolean(response_type.token);
}

fn read_response_type(reader: &mut Reader<'_>) -> Option<ResponseType> {
    Some(ResponseType { code: reader.boolean()?, id_token: reader.boolean()?, token: reader.boolean()? })
}
