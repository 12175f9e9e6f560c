//! UserInfo (OpenID Connect Core §5.3): who may ask, and what they read.

use serde_json::{Map, Value, json};

use crate::protocol::token::access_token::AccessToken;
use crate::protocol::token::claims;
use crate::protocol::words::catalogue::Catalogue;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::scope::{OPENID, ScopeSet};
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::User;

#[must_use]
#[derive(Clone, Debug, PartialEq)]
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
/// of the latter those within `reach`, the client's scope of now.
pub fn response(
    token: &AccessToken,
    user: &User,
    reach: &ScopeSet,
    catalogue: &Catalogue,
) -> Map<String, Value> {
    let sources = claims::identity_claims(&token.scope, &token.userinfo_claims, reach, catalogue);
    let mut members = claims::mapped(user, &sources);
    members.insert(String::from("sub"), json!(user.subject.as_str()));
    members
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerFailure {
    /// No token at all: 401 with a bare challenge, no error.
    Missing,
    InvalidRequest(Reason),
    InvalidToken,
    InsufficientScope,
    /// It is a user's, or has not the scope that a program needs.
    NotOfProgram,
}

/// The one access token of a request: in a header `Authorization`, or as `access_token` of a POST's
/// form.
pub fn access_token(
    authorization: &[&str],
    query: &Parameters,
    form: Option<&Parameters>,
) -> Result<SecretText, BearerFailure> {
    if query.was_sent("access_token") {
        return Err(BearerFailure::InvalidRequest(Reason::AccessTokenInQuery));
    }
    let in_header = header_token(authorization)?;
    let in_form = form
        .map_or(Ok(None), |form| form.single("access_token"))
        .map_err(BearerFailure::InvalidRequest)?;
    match (in_header, in_form) {
        (Some(_), Some(_)) => Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens)),
        (Some(token), None) | (None, Some(token)) if is_too_long(token) => {
            Err(BearerFailure::InvalidToken)
        }
        (Some(token), None) | (None, Some(token)) => Ok(SecretText::new(token)),
        (None, None) => Err(BearerFailure::Missing),
    }
}

impl BearerFailure {
    pub fn reason(self) -> Reason {
        match self {
            BearerFailure::Missing => Reason::NoAccessToken,
            BearerFailure::InvalidRequest(reason) => reason,
            BearerFailure::InvalidToken => Reason::InvalidAccessToken,
            BearerFailure::InsufficientScope => Reason::InsufficientScope,
            BearerFailure::NotOfProgram => Reason::TokenNotOfProgram,
        }
    }

    /// What is told. `scope` is what would have been enough.
    pub fn description(self, scope: &str) -> String {
        let description = self.reason().description();
        match self {
            BearerFailure::NotOfProgram => format!("{description} {scope}."),
            BearerFailure::Missing
            | BearerFailure::InvalidRequest(_)
            | BearerFailure::InvalidToken
            | BearerFailure::InsufficientScope => description.to_owned(),
        }
    }

    pub fn status(self) -> u16 {
        match self {
            BearerFailure::InvalidRequest(_) => 400,
            BearerFailure::Missing | BearerFailure::InvalidToken => 401,
            BearerFailure::InsufficientScope | BearerFailure::NotOfProgram => 403,
        }
    }

    pub fn error(self) -> Option<&'static str> {
        match self {
            BearerFailure::Missing => None,
            BearerFailure::InvalidRequest(_) => Some("invalid_request"),
            BearerFailure::InvalidToken => Some("invalid_token"),
            BearerFailure::InsufficientScope | BearerFailure::NotOfProgram => {
                Some("insufficient_scope")
            }
        }
    }

    /// The challenge of RFC 6750 §3. `scope` is what would have been enough.
    pub fn challenge(self, scope: &str) -> String {
        let mut challenge = String::from("Bearer realm=\"gatepost\"");
        if let Some(error) = self.error() {
            let description = self.description(scope);
            challenge.push_str(&format!(
                ", error=\"{error}\", error_description=\"{description}\""
            ));
        }
        if self.status() == 403 {
            challenge.push_str(&format!(", scope=\"{scope}\""));
        }
        challenge
    }
}

/// Another scheme's credentials are no access token; they are for somebody else.
fn header_token<'a>(authorization: &[&'a str]) -> Result<Option<&'a str>, BearerFailure> {
    let header = match authorization {
        [] => return Ok(None),
        [header] => header.trim_matches(' '),
        [_, _, ..] => return Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens)),
    };
    let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
    let token = token.trim_start_matches(' ');
    if !scheme.eq_ignore_ascii_case("Bearer") || token.is_empty() {
        return Ok(None);
    }
    if !is_b64token(token) {
        return Err(BearerFailure::InvalidRequest(Reason::MalformedBearer));
    }
    Ok(Some(token))
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
    use super::*;
    use crate::protocol::words::samples::{self, scope};

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
                .map(|token| token.expose().to_owned())
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
