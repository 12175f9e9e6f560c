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
    let response_type = ResponseType { code: reader.boolean()?, id_token: reader.boolean()?, token: reader.boolean()? };
    ResponseType::ALL.contains(&response_type).then_some(response_type)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::super::identifiers::TenantName;
    use super::super::samples::{self, NOW, scope};
    use super::super::secret::SecretText;
    use super::*;

    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const REDIRECT_URI: &str = "https://shop.example.com/cb";

    fn code() -> AuthorizationCode {
        AuthorizationCode {
            grant: samples::grant(),
            client_id: ClientId::new("web"),
            redirect_uri_hash: redirect_uri_hash(REDIRECT_URI),
            challenge: Some(StoredChallenge::of(CodeChallengeMethod::Plain, VERIFIER)),
            nonce: Some(String::from("n-0S6_WzA2Mj \u{e9}")),
            scope: scope("openid profile orders.read"),
            resources: vec![String::from("https://orders.example.com/")],
            claims: samples::claim_names(),
            user: samples::token_subject(),
            response_type: ResponseType::CODE,
            issued_at: NOW,
            expires_at: NOW.plus(Duration::from_secs(60)),
            grant_expires_at: NOW.plus(Duration::from_secs(2_592_000)),
        }
    }

    fn sent(code_verifier: &str) -> PresentedVerifier {
        PresentedVerifier::Sent(SecretText::new(code_verifier))
    }

    fn request() -> AuthorizationCodeRequest {
        AuthorizationCodeRequest {
            code: SecretText::new("gpc_sealed"),
            redirect_uri: String::from(REDIRECT_URI),
            code_verifier: sent(VERIFIER),
            resources: Vec::new(),
        }
    }

    fn with_verifier(code_verifier: PresentedVerifier) -> AuthorizationCodeRequest {
        AuthorizationCodeRequest { code_verifier, ..request() }
    }

    fn with_redirect_uri(redirect_uri: &str) -> AuthorizationCodeRequest {
        AuthorizationCodeRequest { redirect_uri: redirect_uri.to_owned(), ..request() }
    }

    fn seconds(seconds: u64) -> Instant {
        NOW.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn the_right_client_with_everything_right_redeems() {
        assert_eq!(redeem(&code(), &request(), &samples::client(), seconds(59)), Redemption::Redeem);
    }

    #[test]
    fn a_stranger_cannot_spend_a_code_whatever_else_is_wrong() {
        let mut stranger = samples::client();
        stranger.client_id = ClientId::new("other");
        let rejected = Redemption::Reject(Reason::CodeOfAnotherClient);
        assert_eq!(redeem(&code(), &request(), &stranger, NOW), rejected);
        assert_eq!(redeem(&code(), &with_redirect_uri("https://evil.example/"), &stranger, NOW), rejected);
        assert_eq!(redeem(&code(), &with_verifier(PresentedVerifier::Absent), &stranger, seconds(61)), rejected);
    }

    #[test]
    fn an_expired_code_creates_nothing_and_is_watched_for_replay_for_ten_minutes() {
        let client = samples::client();
        let watched = Redemption::ReplayOnly(Reason::CodeExpired);
        assert_eq!(redeem(&code(), &request(), &client, seconds(60)), watched);
        assert_eq!(redeem(&code(), &with_redirect_uri("https://evil.example/"), &client, seconds(599)), watched);
        assert_eq!(redeem(&code(), &request(), &client, seconds(600)), Redemption::Reject(Reason::CodeExpired));
    }

    #[test]
    fn the_clients_own_wrong_redirect_uri_burns_the_code() {
        for redirect_uri in
            ["https://shop.example.com/CB", "https://shop.example.com/cb/", "https://shop.example.com/cb?"]
        {
            let verdict = redeem(&code(), &with_redirect_uri(redirect_uri), &samples::client(), NOW);
            assert_eq!(verdict, Redemption::Burn(Reason::RedirectUriMismatch), "{redirect_uri}");
        }
        let both_wrong =
            AuthorizationCodeRequest { code_verifier: sent("x"), ..with_redirect_uri("https://a.example/") };
        let verdict = redeem(&code(), &both_wrong, &samples::client(), NOW);
        assert_eq!(verdict, Redemption::Burn(Reason::RedirectUriMismatch));
    }

    #[test]
    fn every_failure_of_pkce_burns_the_code() {
        let bare = AuthorizationCode { challenge: None, ..code() };
        for (code, verifier, reason) in [
            (&code(), PresentedVerifier::Absent, Reason::CodeVerifierMissing),
            (&code(), PresentedVerifier::Empty, Reason::CodeVerifierMissing),
            (&code(), sent(&VERIFIER.to_lowercase()), Reason::CodeVerifierMismatch),
            (&code(), sent(&"a".repeat(8_192)), Reason::CodeVerifierMismatch),
            (&bare, sent(VERIFIER), Reason::CodeVerifierUnexpected),
            (&bare, PresentedVerifier::Empty, Reason::CodeVerifierUnexpected),
        ] {
            let verdict = redeem(code, &with_verifier(verifier.clone()), &samples::client(), NOW);
            assert_eq!(verdict, Redemption::Burn(reason), "{verifier:?}");
        }
    }

    #[test]
    fn a_code_without_challenge_is_redeemed_without_verifier() {
        let bare = AuthorizationCode { challenge: None, ..code() };
        let verdict = redeem(&bare, &with_verifier(PresentedVerifier::Absent), &samples::client(), NOW);
        assert_eq!(verdict, Redemption::Redeem);
    }

    #[test]
    fn what_the_client_lost_in_the_meantime_burns_the_code() {
        let gone = Redemption::Burn(Reason::GrantNoLongerStands);
        let mut narrowed = samples::client();
        narrowed.scope = scope("openid profile");
        assert_eq!(redeem(&code(), &request(), &narrowed, NOW), gone);
        let mut elsewhere = samples::client();
        elsewhere.tenants = Some([TenantName::new("globex")].into());
        assert_eq!(redeem(&code(), &request(), &elsewhere, NOW), gone);
    }

    #[test]
    fn damaged_bytes_are_no_code() {
        let bytes = code().encode();
        assert_eq!(AuthorizationCode::decode(&bytes), Some(code()));
        for length in 0..bytes.len() {
            assert_eq!(AuthorizationCode::decode(&bytes[..length]), None, "cut to {length}");
        }
        assert_eq!(AuthorizationCode::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(AuthorizationCode::decode(&[&[VERSION + 1], &bytes[1..]].concat()), None);
    }

    #[test]
    fn what_fits_stays_within_two_thousand_characters_once_sealed() {
        // Key byte, nonce and tag around the plain form.
        let sealed_length =
            |code: &AuthorizationCode| 4 + URL_SAFE_NO_PAD.encode(vec![0; code.encode().len() + 29]).len();
        let with_nonce = |length: usize| AuthorizationCode { nonce: Some("n".repeat(length)), ..code() };
        let longest = (0..2_000).map(with_nonce).take_while(AuthorizationCode::fits).last().unwrap();
        assert!(longest.nonce.as_ref().is_some_and(|nonce| nonce.len() > 1_024));
        assert!((1_997..=2_000).contains(&sealed_length(&longest)));
        assert!(!with_nonce(2_000).fits());
    }

    prop_compose! {
        fn any_code()(
            (random, hash) in any::<([u8; 16], [u8; 32])>(),
            (day, issued, expires, absolute) in any::<(i32, i64, i64, i64)>(),
            method in prop::option::of(prop::sample::select(&CodeChallengeMethod::ALL[..])),
            nonce in prop::option::of(".{0,40}"),
            (scope, resources) in (prop::collection::vec("[a-z.]{1,8}", 0..6), prop::collection::vec(".{0,20}", 0..3)),
            (subject, sid, tenant, idp) in ("[!-~]{1,30}", prop::option::of(".{0,9}"), prop::option::of(".{0,9}"), prop::option::of(".{0,9}")),
            response_type in prop::sample::select(&ResponseType::ALL[..]),
        ) -> AuthorizationCode {
            let mut user = samples::token_subject();
            user.subject = super::super::identifiers::Subject::new(subject);
            user.sid = sid.map(super::super::identifiers::Sid::new);
            user.tenant = tenant.map(TenantName::new);
            user.identity_provider = idp;
            AuthorizationCode {
                grant: GrantId { day: Day(day), random },
                redirect_uri_hash: hash,
                challenge: method.map(|method| StoredChallenge { method, hash }),
                nonce,
                scope: scope.iter().map(String::as_str).collect(),
                resources,
                user,
                response_type,
                issued_at: Instant::from_micros(issued),
                expires_at: Instant::from_micros(expires),
                grant_expires_at: Instant::from_micros(absolute),
                ..code()
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(code in any_code()) {
            prop_assert_eq!(AuthorizationCode::decode(&code.encode()), Some(code));
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = AuthorizationCode::decode(&[&[VERSION], &bytes[..]].concat());
        }

        #[test]
        fn bytes_that_decode_are_the_only_form(mut bytes in any_code().prop_map(|code| code.encode()), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let index = at.index(bytes.len());
            bytes[index] ^= flip;
            if let Some(code) = AuthorizationCode::decode(&bytes) {
                // Repeated scope names are folded; every other reading is reversible.
                prop_assert!(code.encode() == bytes || code.encode().len() < bytes.len());
            }
        }
    }
}
