//! The authorization code: what it carries under its seal, and the verdict on an attempt to redeem
//! it (RFC 6749 §4.1.3, RFC 7636 §4.6). Issuing a code stores nothing. Redeeming it writes the
//! grant, and that statement finds out whether the code was redeemed before.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::pkce::{self, CodeChallengeDigest};
use crate::token::grant::Grant;
use crate::token::liveness::check_registration;
use crate::token::token_request::{AuthorizationCodeRequest, PresentedVerifier};
use crate::words::identifiers::KeyThumbprint;
use crate::words::instant::Instant;
use crate::words::reason::Reason;
use crate::words::response_type::ResponseType;
use crate::words::sender::Sender;

/// Codes begin with this, so that secret scanners find them.
pub const PREFIX: &str = "gpc_";

/// For how long after it was issued a code is watched for replay. Within this time, an expired code
/// that comes again revokes what its first redemption gave.
const REPLAY_WATCH: Duration = Duration::from_secs(600);

/// Everything that the authorization endpoint decided and the token endpoint needs.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthorizationCode {
    pub grant: Grant,
    /// [`redirect_uri_hash`] of the authorization request's `redirect_uri`.
    pub redirect_uri_hash: [u8; 32],
    pub challenge: Option<CodeChallengeDigest>,
    pub nonce: Option<String>,
    pub response_type: ResponseType,
    pub expires_at: Instant,
    /// The key by which alone it can be redeemed (RFC 9449 §10). It is sealed beside the code.
    #[serde(skip)]
    pub confirmation: Option<KeyThumbprint>,
}

/// What to do with an attempt to redeem a code. The statement that enacts this verdict also finds
/// out whether the attempt is a replay.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodeVerdict {
    /// Create the grant and issue its tokens. A grant that is there already makes this a replay.
    Redeem,
    /// The request came from the right client and is wrong. Create the grant as revoked, so that
    /// the code is used up.
    Burn(Reason),
    /// The code has expired, but what a first redemption gave may still be in use. Revoke the grant
    /// if it is there, and create none.
    ReplayOnly(Reason),
    /// Refuse and write nothing. A stranger must not be able to use up somebody's code.
    Reject(Reason),
}

/// Judges an attempt to redeem a code. Checks in this order: the client, expiry, `redirect_uri`,
/// PKCE, the key, and whether the client may still have what was granted.
pub fn redeem(
    code: &AuthorizationCode,
    request: &AuthorizationCodeRequest,
    sender: Sender<'_>,
) -> CodeVerdict {
    if code.grant.client_id != sender.client.client_id {
        return CodeVerdict::Reject(Reason::CodeOfAnotherClient);
    }
    if sender.now >= code.expires_at {
        return judge_expired(code, sender.now);
    }
    if code.redirect_uri_hash != redirect_uri_hash(&request.redirect_uri) {
        return CodeVerdict::Burn(Reason::RedirectUriMismatch);
    }
    if let Err(reason) = verify_challenge(code.challenge.as_ref(), &request.code_verifier) {
        return CodeVerdict::Burn(reason);
    }
    if code.confirmation.is_some() && code.confirmation != sender.key {
        return CodeVerdict::Burn(Reason::ProofKey);
    }
    let grant = &code.grant;
    match check_registration(&grant.user, &grant.scope, sender.client, sender.catalogue) {
        Ok(()) => CodeVerdict::Redeem,
        Err(reason) => CodeVerdict::Burn(reason),
    }
}

/// SHA-256 of the bytes of a `redirect_uri`. The code carries this instead of the text, to stay
/// short.
pub fn redirect_uri_hash(redirect_uri: &str) -> [u8; 32] {
    Sha256::digest(redirect_uri.as_bytes()).into()
}

fn judge_expired(code: &AuthorizationCode, now: Instant) -> CodeVerdict {
    if now < code.grant.issued_at.plus(REPLAY_WATCH) {
        CodeVerdict::ReplayOnly(Reason::CodeExpired)
    } else {
        CodeVerdict::Reject(Reason::CodeExpired)
    }
}

/// Compares the verifier with the challenge. An empty `code_verifier` counts as sent: a client that
/// sends one means to use PKCE.
fn verify_challenge(
    challenge: Option<&CodeChallengeDigest>,
    verifier: &PresentedVerifier,
) -> Result<(), Reason> {
    match verifier {
        PresentedVerifier::Absent => pkce::verify(challenge, None),
        PresentedVerifier::Empty if challenge.is_some() => Err(Reason::CodeVerifierMissing),
        PresentedVerifier::Empty => Err(Reason::CodeVerifierUnexpected),
        PresentedVerifier::Sent(code_verifier) => {
            pkce::verify(challenge, Some(code_verifier.expose()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::client::Client;
    use crate::words::identifiers::ClientId;

    use crate::words::samples::{self, NOW, REDIRECT_URI, VERIFIER, authorization_code as code};
    use crate::words::secret::SecretText;

    fn sent(code_verifier: &str) -> PresentedVerifier {
        PresentedVerifier::Sent(SecretText::new(code_verifier))
    }

    fn redeemed(
        code: &AuthorizationCode,
        request: &AuthorizationCodeRequest,
        client: &Client,
        now: Instant,
    ) -> CodeVerdict {
        let catalogue = samples::catalogue();
        let sender = samples::sender(client, &catalogue);
        redeem(code, request, Sender { now, ..sender })
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
        AuthorizationCodeRequest {
            code_verifier,
            ..request()
        }
    }

    fn with_redirect_uri(redirect_uri: &str) -> AuthorizationCodeRequest {
        AuthorizationCodeRequest {
            redirect_uri: redirect_uri.to_owned(),
            ..request()
        }
    }

    fn seconds(seconds: u64) -> Instant {
        NOW.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn a_stranger_cannot_spend_a_code_whatever_else_is_wrong() {
        let mut stranger = samples::client();
        stranger.client_id = ClientId::new("other");
        let rejected = CodeVerdict::Reject(Reason::CodeOfAnotherClient);
        assert_eq!(redeemed(&code(), &request(), &stranger, NOW), rejected);
        assert_eq!(
            redeemed(
                &code(),
                &with_redirect_uri("https://evil.example/"),
                &stranger,
                NOW
            ),
            rejected
        );
        assert_eq!(
            redeemed(
                &code(),
                &with_verifier(PresentedVerifier::Absent),
                &stranger,
                seconds(61)
            ),
            rejected
        );
    }

    #[test]
    fn a_code_is_redeemed_before_its_end_with_its_own_redirect_uri_by_a_client_that_may() {
        let last = code().expires_at.minus(Duration::from_micros(1));
        let client = samples::client();
        let verdict = |request: &AuthorizationCodeRequest, client: &Client| {
            redeemed(&code(), request, client, last)
        };
        assert_eq!(verdict(&request(), &client), CodeVerdict::Redeem);
        for other in ["", "https://evil.example/", "https://shop.example.com/cb/"] {
            assert_eq!(
                verdict(&with_redirect_uri(other), &client),
                CodeVerdict::Burn(Reason::RedirectUriMismatch),
                "{other}"
            );
        }
        let narrowed = Client {
            scope: samples::scope("openid"),
            ..samples::client()
        };
        assert_eq!(
            verdict(&request(), &narrowed),
            CodeVerdict::Burn(Reason::GrantNoLongerStands)
        );
    }

    #[test]
    fn an_expired_code_creates_nothing_and_is_watched_for_replay_for_ten_minutes() {
        let client = samples::client();
        let watched = CodeVerdict::ReplayOnly(Reason::CodeExpired);
        assert_eq!(redeemed(&code(), &request(), &client, seconds(60)), watched);
        assert_eq!(
            redeemed(
                &code(),
                &with_redirect_uri("https://evil.example/"),
                &client,
                seconds(599)
            ),
            watched
        );
        assert_eq!(
            redeemed(&code(), &request(), &client, seconds(600)),
            CodeVerdict::Reject(Reason::CodeExpired)
        );
    }

    #[test]
    fn every_failure_of_pkce_burns_the_code() {
        let bare = AuthorizationCode {
            challenge: None,
            ..code()
        };
        for (code, verifier, reason) in [
            (
                &code(),
                PresentedVerifier::Absent,
                Reason::CodeVerifierMissing,
            ),
            (
                &code(),
                PresentedVerifier::Empty,
                Reason::CodeVerifierMissing,
            ),
            (
                &code(),
                sent(&VERIFIER.to_lowercase()),
                Reason::CodeVerifierMismatch,
            ),
            (
                &code(),
                sent(&"a".repeat(8_192)),
                Reason::CodeVerifierMismatch,
            ),
            (&bare, sent(VERIFIER), Reason::CodeVerifierUnexpected),
            (
                &bare,
                PresentedVerifier::Empty,
                Reason::CodeVerifierUnexpected,
            ),
        ] {
            let verdict = redeemed(
                code,
                &with_verifier(verifier.clone()),
                &samples::client(),
                NOW,
            );
            assert_eq!(verdict, CodeVerdict::Burn(reason), "{verifier:?}");
        }
    }

    #[test]
    fn a_code_that_is_bound_to_a_key_is_burnt_by_any_other() {
        let [own, other] = [1, 2].map(|byte| KeyThumbprint([byte; 32]));
        let bound = AuthorizationCode {
            confirmation: Some(own),
            ..code()
        };
        let burnt = CodeVerdict::Burn(Reason::ProofKey);
        let (client, catalogue) = (samples::client(), samples::catalogue());
        for (code, key, verdict) in [
            (&bound, Some(own), CodeVerdict::Redeem),
            (&bound, Some(other), burnt),
            (&bound, None, burnt),
            (&code(), Some(own), CodeVerdict::Redeem),
        ] {
            let sender = samples::sender(&client, &catalogue);
            let redeemed = redeem(code, &request(), Sender { key, ..sender });
            assert_eq!(redeemed, verdict, "{key:?}");
        }
    }
}
