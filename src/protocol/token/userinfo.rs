//! UserInfo (OpenID Connect Core §5.3): who may ask, and what they read.

use crate::token::access_token::AccessToken;
use crate::token::claims;
use crate::token::dpop_proof::{self, DpopProof};
use crate::words::catalogue::Catalogue;
use crate::words::claim_set::ClaimSet;
use crate::words::client::Client;
use crate::words::identifiers::KeyThumbprint;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::Reason;
use crate::words::scope::OPENID;
use crate::words::secret::SecretText;
use crate::words::session::User;

#[must_use]
#[derive(Debug, PartialEq)]
pub enum UserInfoVerdict<'a> {
    Answer(&'a User),
    Refuse(BearerFailure),
}

/// Judges a token of ours: whether it is alive (`stands`), of a user, with `openid`; for whichever
/// audience it was made.
pub fn judge<'a>(token: &AccessToken, stands: bool, user: Option<&'a User>) -> UserInfoVerdict<'a> {
    if !stands {
        return UserInfoVerdict::Refuse(BearerFailure::InvalidToken);
    }
    match user {
        Some(user) if token.user.is_some() && token.scope.contains(OPENID) => {
            UserInfoVerdict::Answer(user)
        }
        Some(_) | None => UserInfoVerdict::Refuse(BearerFailure::InsufficientScope),
    }
}

/// The answer: `sub`, and the claims that the token's identity scopes and requested names release;
/// of the latter those within the client's scope of now.
pub fn response<'a>(
    token: &'a AccessToken,
    user: &'a User,
    client: &Client,
    catalogue: &'a Catalogue,
) -> ClaimSet<'a> {
    let requested = &token.userinfo_claims;
    let sources = claims::identity_claims(&token.scope, requested, &client.scope, catalogue);
    let mut answer = ClaimSet::default();
    answer.text("sub", user.subject.as_str());
    claims::add_of_user(&mut answer, user, client, &sources);
    answer
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BearerFailure {
    /// No token at all: 401 with a bare challenge, no error.
    Missing,
    InvalidRequest(Reason),
    InvalidToken,
    /// It is bound to a key, and came without a proof of it; or the other way round.
    NotHolder(Reason),
    /// It may be good; the DPoP proof is not.
    InvalidProof(Reason),
    InsufficientScope,
    /// It is a user's, or has not the scope that a program needs.
    NotOfProgram,
}

/// The scheme of a header `Authorization`. A form has tokens for Bearer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenScheme {
    Bearer,
    /// RFC 9449 §7.1
    Dpop,
}

/// The access token of a request, and how it was sent.
#[derive(Debug)]
pub struct SentToken {
    pub scheme: TokenScheme,
    pub token: SecretText,
}

/// The one access token of a request: in a header `Authorization`, or as `access_token` of a POST's
/// form.
pub fn access_token(
    authorization: &[&str],
    query: &Parameters,
    form: Option<&Parameters>,
) -> Result<SentToken, BearerFailure> {
    if query.was_sent("access_token") {
        return Err(BearerFailure::InvalidRequest(Reason::AccessTokenInQuery));
    }
    let in_header = header_token(authorization)?;
    let in_form = form
        .map_or(Ok(None), |form| form.single("access_token"))
        .map_err(BearerFailure::InvalidRequest)?;
    let (scheme, token) = match (in_header, in_form) {
        (Some(_), Some(_)) => {
            return Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens));
        }
        (Some(in_header), None) => in_header,
        (None, Some(token)) => (TokenScheme::Bearer, token),
        (None, None) => return Err(BearerFailure::Missing),
    };
    if is_too_long(token) {
        return Err(BearerFailure::InvalidToken);
    }
    let token = SecretText::new(token);
    Ok(SentToken { scheme, token })
}

/// The key that the sender of a token must prove to hold; `None` where the token is bound to none.
/// The scheme must say which of both it is (RFC 9449 §7.1, §7.2).
pub fn key_to_prove(
    sent: &SentToken,
    token: &AccessToken,
) -> Result<Option<KeyThumbprint>, BearerFailure> {
    match (sent.scheme, token.confirmation) {
        (TokenScheme::Bearer, None) => Ok(None),
        (TokenScheme::Bearer, Some(_)) => Err(BearerFailure::NotHolder(Reason::ProofMissing)),
        (TokenScheme::Dpop, None) => Err(BearerFailure::NotHolder(Reason::ProofKey)),
        (TokenScheme::Dpop, Some(key)) => Ok(Some(key)),
    }
}

/// Judges a proof that is good in itself, beside the token that it came with.
pub fn check_holder(
    proof: &DpopProof,
    key: KeyThumbprint,
    sent: &SentToken,
) -> Result<(), BearerFailure> {
    if !proof.is_for_token(sent.token.expose()) {
        return Err(BearerFailure::InvalidProof(Reason::ProofToken));
    }
    if proof.key == key {
        Ok(())
    } else {
        Err(BearerFailure::NotHolder(Reason::ProofKey))
    }
}

impl BearerFailure {
    pub fn reason(self) -> Reason {
        match self {
            BearerFailure::Missing => Reason::NoAccessToken,
            BearerFailure::InvalidRequest(reason)
            | BearerFailure::NotHolder(reason)
            | BearerFailure::InvalidProof(reason) => reason,
            BearerFailure::InvalidToken => Reason::InvalidAccessToken,
            BearerFailure::InsufficientScope => Reason::InsufficientScope,
            BearerFailure::NotOfProgram => Reason::TokenNotOfProgram,
        }
    }

    /// The description. `scope` is what would have been enough.
    pub fn description(self, scope: &str) -> String {
        let description = self.reason().description();
        match self {
            BearerFailure::NotOfProgram => format!("{description} {scope}."),
            BearerFailure::Missing
            | BearerFailure::InvalidRequest(_)
            | BearerFailure::InvalidToken
            | BearerFailure::NotHolder(_)
            | BearerFailure::InvalidProof(_)
            | BearerFailure::InsufficientScope => description.to_owned(),
        }
    }

    pub fn status(self) -> u16 {
        match self {
            BearerFailure::InvalidRequest(_) => 400,
            BearerFailure::Missing
            | BearerFailure::InvalidToken
            | BearerFailure::NotHolder(_)
            | BearerFailure::InvalidProof(_) => 401,
            BearerFailure::InsufficientScope | BearerFailure::NotOfProgram => 403,
        }
    }

    pub fn error(self) -> Option<&'static str> {
        match self {
            BearerFailure::Missing => None,
            BearerFailure::InvalidRequest(_) => Some("invalid_request"),
            BearerFailure::InvalidToken | BearerFailure::NotHolder(_) => Some("invalid_token"),
            BearerFailure::InvalidProof(reason) => Some(dpop_proof::error(reason).as_str()),
            BearerFailure::InsufficientScope | BearerFailure::NotOfProgram => {
                Some("insufficient_scope")
            }
        }
    }

    /// The challenges of RFC 6750 §3 and RFC 9449 §7.1: of both schemes for whoever sent no token.
    /// `scope` is what would have been enough.
    pub fn challenges(self, scheme: TokenScheme, scope: &str) -> Vec<String> {
        let dpop = || format!("DPoP algs=\"{}\"", dpop_proof::ALGORITHMS.join(" "));
        let bearer = String::from("Bearer realm=\"gatepost\"");
        let by_proof = match self {
            BearerFailure::Missing => return vec![bearer, dpop()],
            BearerFailure::NotHolder(_) | BearerFailure::InvalidProof(_) => true,
            BearerFailure::InvalidRequest(_)
            | BearerFailure::InvalidToken
            | BearerFailure::InsufficientScope
            | BearerFailure::NotOfProgram => scheme == TokenScheme::Dpop,
        };
        let mut challenge = if by_proof { dpop() } else { bearer };
        if let Some(error) = self.error() {
            let description = self.description(scope);
            challenge.push_str(&format!(
                ", error=\"{error}\", error_description=\"{description}\""
            ));
        }
        if self.status() == 403 {
            challenge.push_str(&format!(", scope=\"{scope}\""));
        }
        vec![challenge]
    }
}

/// Another scheme's credentials are no access token; they are for somebody else.
fn header_token<'a>(
    authorization: &[&'a str],
) -> Result<Option<(TokenScheme, &'a str)>, BearerFailure> {
    let header = match authorization {
        [] => return Ok(None),
        [header] => header.trim_matches(' '),
        [_, _, ..] => return Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens)),
    };
    let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
    let token = token.trim_start_matches(' ');
    let Some(scheme) = token_scheme(scheme).filter(|_| !token.is_empty()) else {
        return Ok(None);
    };
    if !is_b64token(token) {
        return Err(BearerFailure::InvalidRequest(Reason::MalformedBearer));
    }
    Ok(Some((scheme, token)))
}

fn token_scheme(name: &str) -> Option<TokenScheme> {
    if name.eq_ignore_ascii_case("Bearer") {
        Some(TokenScheme::Bearer)
    } else if name.eq_ignore_ascii_case("DPoP") {
        Some(TokenScheme::Dpop)
    } else {
        None
    }
}

/// RFC 6750 §2.1.
fn is_b64token(token: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
    };
    let unpadded = token.trim_end_matches('=');
    !unpadded.is_empty() && unpadded.bytes().all(allowed)
}

fn is_too_long(token: &str) -> bool {
    token.chars().nth(parameters::HANDLE).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::words::samples::{self, scope};

    #[test]
    fn a_dead_token_is_invalid_even_without_openid() {
        let (token, user) = (samples::access_token(), samples::alice());
        let no_openid = AccessToken {
            scope: scope("stock"),
            ..token.clone()
        };
        let of_client = AccessToken {
            user: None,
            ..token.clone()
        };
        for (token, alive) in [
            (&token, UserInfoVerdict::Answer(&user)),
            (
                &no_openid,
                UserInfoVerdict::Refuse(BearerFailure::InsufficientScope),
            ),
            (
                &of_client,
                UserInfoVerdict::Refuse(BearerFailure::InsufficientScope),
            ),
        ] {
            assert_eq!(judge(token, true, Some(&user)), alive, "{token:?}");
            assert_eq!(
                judge(token, false, Some(&user)),
                UserInfoVerdict::Refuse(BearerFailure::InvalidToken)
            );
        }
    }

    #[test]
    fn scheme_and_binding_belong_together() {
        let key = KeyThumbprint([1; 32]);
        let sent = |scheme| SentToken {
            scheme,
            token: SecretText::new("gpa_x"),
        };
        let token = |confirmation| AccessToken {
            confirmation,
            ..samples::access_token()
        };
        let [bearer, dpop] = [TokenScheme::Bearer, TokenScheme::Dpop].map(sent);
        for (sent, confirmation, verdict) in [
            (&bearer, None, Ok(None)),
            (
                &bearer,
                Some(key),
                Err(BearerFailure::NotHolder(Reason::ProofMissing)),
            ),
            (&dpop, None, Err(BearerFailure::NotHolder(Reason::ProofKey))),
            (&dpop, Some(key), Ok(Some(key))),
        ] {
            assert_eq!(
                key_to_prove(sent, &token(confirmation)),
                verdict,
                "{sent:?}"
            );
        }
    }

    #[test]
    fn the_answer_always_has_the_subject() {
        let (token, user) = (samples::access_token(), samples::alice());
        let catalogue = Catalogue::default();
        let answer = response(&token, &user, &samples::client(), &catalogue);
        assert_eq!(json!(answer)["sub"], user.subject.as_str());
    }

    #[test]
    fn a_proof_is_by_the_key_and_for_the_token() {
        let key = KeyThumbprint([1; 32]);
        let sent = |token: &str| SentToken {
            scheme: TokenScheme::Dpop,
            token: SecretText::new(token),
        };
        // RFC 9449 §7.1, figure 12
        let proof = DpopProof {
            key,
            name: [0; 32],
            nonce: None,
            token_hash: Some(String::from("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")),
        };
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        let other_key = KeyThumbprint([2; 32]);
        for (token, key, verdict) in [
            (token, key, Ok(())),
            (
                token,
                other_key,
                Err(BearerFailure::NotHolder(Reason::ProofKey)),
            ),
            (
                "another",
                key,
                Err(BearerFailure::InvalidProof(Reason::ProofToken)),
            ),
        ] {
            assert_eq!(check_holder(&proof, key, &sent(token)), verdict, "{token}");
        }
    }

    /// RFC 6750 §3 and RFC 9449 §7.1
    #[test]
    fn each_failure_has_its_status_and_its_challenge() {
        use BearerFailure::*;
        use TokenScheme::{Bearer, Dpop};
        let algorithms = "algs=\"ES256 EdDSA Ed25519\"";
        for (failure, scheme, status, error, schemes, description) in [
            (Missing, Bearer, 401, None, "Bearer DPoP", ""),
            (
                InvalidRequest(Reason::SeveralAccessTokens),
                Bearer,
                400,
                Some("invalid_request"),
                "Bearer",
                "",
            ),
            (
                InvalidToken,
                Bearer,
                401,
                Some("invalid_token"),
                "Bearer",
                "",
            ),
            (InvalidToken, Dpop, 401, Some("invalid_token"), "DPoP", ""),
            (
                NotHolder(Reason::ProofMissing),
                Bearer,
                401,
                Some("invalid_token"),
                "DPoP",
                "",
            ),
            (
                InvalidProof(Reason::ProofToken),
                Dpop,
                401,
                Some("invalid_dpop_proof"),
                "DPoP",
                "",
            ),
            (
                InsufficientScope,
                Bearer,
                403,
                Some("insufficient_scope"),
                "Bearer",
                ", scope=\"orders\"",
            ),
            (
                NotOfProgram,
                Dpop,
                403,
                Some("insufficient_scope"),
                "DPoP",
                ", scope=\"orders\"",
            ),
        ] {
            assert_eq!((failure.status(), failure.error()), (status, error));
            let challenges = failure.challenges(scheme, "orders");
            let begun: Vec<&str> = challenges
                .iter()
                .filter_map(|challenge| challenge.split(' ').next())
                .collect();
            assert_eq!(begun.join(" "), schemes, "{failure:?}");
            for challenge in &challenges {
                let is_dpop = challenge.starts_with("DPoP ");
                assert_eq!(challenge.contains(algorithms), is_dpop, "{challenge}");
                let said = error.map(|error| format!("error=\"{error}\""));
                assert_eq!(challenge.contains("error="), said.is_some(), "{challenge}");
                assert!(challenge.contains(&said.unwrap_or_default()), "{challenge}");
                assert!(challenge.ends_with(description), "{challenge}");
                assert_eq!(challenge.contains("scope="), status == 403, "{challenge}");
            }
            let description = failure.description("orders");
            assert!(description.starts_with(failure.reason().description()));
            assert_eq!(description.ends_with(" orders."), failure == NotOfProgram);
        }
    }

    mod bearer {
        use proptest::prelude::*;

        use super::super::*;

        fn found(
            authorization: &[&str],
            query: &str,
            form: Option<&str>,
        ) -> Result<String, BearerFailure> {
            let parse = |raw: &str| Parameters::parse(raw.as_bytes()).unwrap();
            let form = form.map(parse);
            access_token(authorization, &parse(query), form.as_ref())
                .map(|sent| sent.token.expose().to_owned())
        }

        #[test]
        fn a_malformed_header_is_an_invalid_request() {
            for token in [
                "a b",
                "a,b",
                "\"a\"",
                "a=b",
                "=",
                "gpa_\u{e9}",
                "a\tb",
                "a%20b",
            ] {
                let failure = found(&[&format!("Bearer {token}")], "", None);
                assert_eq!(
                    failure,
                    Err(BearerFailure::InvalidRequest(Reason::MalformedBearer)),
                    "{token}"
                );
            }
        }

        #[test]
        fn an_overlong_token_is_an_invalid_one() {
            let (fits, long) = ("a".repeat(8_192), "a".repeat(8_193));
            assert_eq!(found(&[&format!("Bearer {fits}")], "", None), Ok(fits));
            assert_eq!(
                found(&[&format!("Bearer {long}")], "", None),
                Err(BearerFailure::InvalidToken)
            );
            assert_eq!(
                found(&[], "", Some(&format!("access_token={long}"))),
                Err(BearerFailure::InvalidToken)
            );
        }

        proptest! {
            #[test]
            fn no_header_makes_it_panic(header in ".{0,40}") {
                let _ = access_token(&[&header], &Parameters::default(), None);
            }
        }
    }
}
