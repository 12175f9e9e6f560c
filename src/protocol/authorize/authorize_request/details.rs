//! The parameters with rules of their own: `response_type`, `nonce`, PKCE, `max_age`, `claims` and
//! `resource`.

use super::super::pkce::{CodeChallenge, CodeChallengeMethod};
use super::super::requested_claims::RequestedClaims;
use super::{AuthorizeRefusal, RESOURCE, Registered, invalid_request, is_reachable, owned, single};
use crate::words::catalogue::Catalogue;
use crate::words::client::{Client, CodeBinding};
use crate::words::identifiers::KeyThumbprint;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{AuthorizeErrorCode, Reason};
use crate::words::redirect_uri::is_absolute_uri;
use crate::words::response_type::ResponseType;
use crate::words::scope::{OPENID, ScopeSet};

/// Reads `response_type`. It must be known and registered for the client. An access token through
/// the browser needs `allow_access_tokens_via_browser`, too.
pub(crate) fn response_type(
    parameters: &Parameters,
    client: &Client,
) -> Result<ResponseType, AuthorizeRefusal> {
    let sent = single(parameters, "response_type")?
        .ok_or_else(|| invalid_request(Reason::MissingResponseType))?;
    let Some(response_type) = ResponseType::parse(sent) else {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::UnsupportedResponseType,
            Reason::UnsupportedResponseType,
        ));
    };
    if !client.response_types.contains(&response_type) {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::UnauthorizedClient,
            Reason::UnregisteredResponseType,
        ));
    }
    if response_type.token && !client.allow_access_tokens_via_browser {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::UnauthorizedClient,
            Reason::TokensThroughBrowser,
        ));
    }
    Ok(response_type)
}

/// Reads `nonce`. It is required where the authorization response has an ID token in it (OpenID
/// Connect Core §3.2.2.1, §3.3.2.11).
pub(crate) fn nonce(
    parameters: &Parameters,
    response_type: ResponseType,
) -> Result<Option<String>, AuthorizeRefusal> {
    let nonce = owned(parameters, "nonce")?;
    if response_type.id_token && nonce.is_none() {
        Err(invalid_request(Reason::MissingNonce))
    } else {
        Ok(nonce)
    }
}

/// Reads `code_challenge` and its method. It is required with a code, unless the registration says
/// that a nonce or nothing has to tie the code to this request. Without a code it is ignored.
/// `nonce_comes_back`: an ID token will carry the client's nonce, so that the client can compare
/// it.
pub(crate) fn code_challenge(
    parameters: &Parameters,
    response_type: ResponseType,
    client: &Client,
    nonce_comes_back: bool,
) -> Result<Option<CodeChallenge>, AuthorizeRefusal> {
    if !response_type.code {
        return Ok(None);
    }
    // A client that sends an empty challenge, or a method without one, means to use PKCE. Without
    // PKCE it would not have the protection that it relies on.
    let meant = parameters.was_sent("code_challenge")
        || single(parameters, "code_challenge_method")?.is_some();
    let required = match client.code_binding() {
        CodeBinding::Pkce => true,
        CodeBinding::PkceOrNonce => !nonce_comes_back,
        CodeBinding::Neither => false,
    };
    let Some(challenge) = single(parameters, "code_challenge")? else {
        return if meant || required {
            Err(invalid_request(Reason::MissingCodeChallenge))
        } else {
            Ok(None)
        };
    };
    let method = CodeChallengeMethod::parse(single(parameters, "code_challenge_method")?)
        .map_err(invalid_request)?;
    if method == CodeChallengeMethod::Plain && !client.allow_plain_pkce {
        return Err(invalid_request(Reason::PlainPkce));
    }
    CodeChallenge::parse(challenge, method)
        .map(Some)
        .map_err(invalid_request)
}

pub(crate) fn dpop_jkt(
    parameters: &Parameters,
    response_type: ResponseType,
) -> Result<Option<KeyThumbprint>, AuthorizeRefusal> {
    match single(parameters, "dpop_jkt")? {
        Some(sent) if response_type.code => KeyThumbprint::from_text(sent)
            .map(Some)
            .ok_or_else(|| invalid_request(Reason::MalformedDpopJkt)),
        Some(_) | None => Ok(None),
    }
}

/// Reads `max_age` in seconds: one to eighteen ASCII digits. Without it, the client's
/// `default_max_age` counts.
pub(crate) fn max_age(
    parameters: &Parameters,
    client: &Client,
) -> Result<Option<u64>, AuthorizeRefusal> {
    let Some(sent) = single(parameters, "max_age")? else {
        return Ok(client.default_max_age);
    };
    // `parse` alone would accept a sign.
    let digits = sent.len() <= 18 && sent.as_bytes().iter().all(u8::is_ascii_digit);
    let seconds = if digits {
        sent.parse::<u64>().ok()
    } else {
        None
    };
    seconds
        .map(Some)
        .ok_or_else(|| invalid_request(Reason::MalformedMaxAge))
}

/// Reads `claims`. It counts in OpenID requests only. An essential `acr` that nobody can reach ends
/// the request at once.
pub(crate) fn claims(
    parameters: &Parameters,
    scope: &ScopeSet,
    registered: &Registered<'_>,
) -> Result<RequestedClaims, AuthorizeRefusal> {
    let Some(sent) = single(parameters, "claims")? else {
        return Ok(RequestedClaims::default());
    };
    let claims = RequestedClaims::parse(sent, registered.client, registered.catalogue)
        .map_err(invalid_request)?;
    if !scope.contains(OPENID) {
        return Ok(RequestedClaims::default());
    }
    if !is_reachable(&claims, registered.catalogue) {
        let code = AuthorizeErrorCode::UnmetAuthenticationRequirements;
        return Err(AuthorizeRefusal::new(
            code,
            Reason::UnmetAuthenticationRequirements,
        ));
    }
    Ok(claims)
}

/// Reads all `resource` parameters (RFC 8707 §2), without repetitions.
pub(crate) fn resources(parameters: &Parameters) -> Result<Vec<&str>, AuthorizeRefusal> {
    if parameters
        .all(RESOURCE)
        .nth(parameters::RESOURCES)
        .is_some()
    {
        return Err(invalid_request(Reason::RepeatedParameter));
    }
    let mut resources: Vec<&str> = Vec::new();
    for sent in parameters.all(RESOURCE).filter(|sent| !sent.is_empty()) {
        if sent.chars().nth(parameters::RESOURCE).is_some() {
            return Err(invalid_request(Reason::OverlongParameter));
        }
        if !resources.contains(&sent) {
            resources.push(sent);
        }
    }
    Ok(resources)
}

/// Checks that each resource is registered and that one of the requested scopes leads to it.
pub(crate) fn within(
    resources: &[&str],
    scope: &ScopeSet,
    catalogue: &Catalogue,
) -> Result<Vec<String>, AuthorizeRefusal> {
    for sent in resources {
        if !is_behind(sent, scope, catalogue) {
            return Err(AuthorizeRefusal::with_detail(
                AuthorizeErrorCode::InvalidTarget,
                Reason::UnknownResource,
                *sent,
            ));
        }
    }
    Ok(resources.iter().copied().map(str::to_owned).collect())
}

fn is_behind(resource: &str, scope: &ScopeSet, catalogue: &Catalogue) -> bool {
    if !is_absolute_uri(resource) || !catalogue.resources.contains_key(resource) {
        return false;
    }
    let mut named = scope.iter().filter_map(|name| catalogue.scopes.get(name));
    named.any(|registered| registered.resources.iter().any(|name| name == resource))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::*;
    use super::super::{AuthorizeError, AuthorizeRequest};
    use super::*;

    fn fault(result: Result<AuthorizeRequest, AuthorizeError>) -> (AuthorizeErrorCode, Reason) {
        match result {
            Err(AuthorizeError::Redirect(_, refusal)) => (refusal.code, refusal.reason),
            other => panic!("{other:?}"),
        }
    }

    fn invalid(asked: &Asking, reason: Reason) {
        assert_eq!(
            fault(asked.judged()),
            (AuthorizeErrorCode::InvalidRequest, reason),
            "{asked:?}"
        );
    }

    #[test]
    fn a_nonce_is_needed_exactly_where_an_id_token_comes_from_here() {
        for (response_type, scope, needed) in [
            ("code", "openid", false),
            ("code token", "openid", false),
            ("token", "orders.read", false),
            ("id_token", "openid", true),
            ("id_token token", "openid", true),
            ("code id_token", "openid", true),
            ("code id_token token", "openid", true),
        ] {
            let asked = asking()
                .with("response_type", response_type)
                .with("scope", scope)
                .without("nonce");
            if needed {
                invalid(&asked, Reason::MissingNonce);
                invalid(&asked.with("nonce", ""), Reason::MissingNonce);
            } else {
                assert_eq!(asked.judged().unwrap().nonce, None, "{response_type}");
            }
        }
    }

    #[test]
    fn a_code_is_tied_to_its_request_by_what_the_client_may_use() {
        let with_nonce = asking()
            .without("code_challenge")
            .without("code_challenge_method");
        let bare = with_nonce.clone().without("nonce");
        // A nonce comes back in an ID token only.
        let not_openid = with_nonce.clone().with("scope", "orders.read");
        let confidential = |require_pkce| Client {
            require_pkce,
            ..client()
        };
        let public = |require_pkce| Client {
            require_pkce,
            ..public_client(&[REDIRECT_URI])
        };
        for (client, [alone, beside_nonce, without_openid]) in [
            (confidential(None), [false, true, false]),
            (confidential(Some(true)), [false, false, false]),
            (confidential(Some(false)), [true, true, true]),
            (public(None), [false, false, false]),
            (public(Some(true)), [false, false, false]),
            (public(Some(false)), [false, false, false]),
        ] {
            for (asked, accepted) in [
                (&bare, alone),
                (&with_nonce, beside_nonce),
                (&not_openid, without_openid),
            ] {
                match asked.judged_for(&client) {
                    Ok(request) => assert!(
                        accepted && request.code_challenge.is_none(),
                        "{client:?} {asked:?}"
                    ),
                    refused => {
                        let missing = (
                            AuthorizeErrorCode::InvalidRequest,
                            Reason::MissingCodeChallenge,
                        );
                        assert_eq!(
                            (fault(refused), accepted),
                            (missing, false),
                            "{client:?} {asked:?}"
                        );
                    }
                }
            }
            // A client that sends a challenge is held to it.
            for half in [("code_challenge", ""), ("code_challenge_method", "S256")] {
                let asked = with_nonce.clone().with(half.0, half.1);
                assert_eq!(
                    fault(asked.judged_for(&client)).1,
                    Reason::MissingCodeChallenge,
                    "{client:?} {half:?}"
                );
            }
        }
    }

    #[test]
    fn pkce_parameters_are_checked() {
        let with = |challenge: &str, method: &str| {
            asking()
                .with("code_challenge", challenge)
                .with("code_challenge_method", method)
        };
        invalid(
            &asking().without("code_challenge_method"),
            Reason::PlainPkce,
        );
        invalid(&with(CODE_CHALLENGE, ""), Reason::PlainPkce);
        invalid(&with(CODE_CHALLENGE, "plain"), Reason::PlainPkce);
        for method in ["s256", "S512", "none"] {
            invalid(
                &with(CODE_CHALLENGE, method),
                Reason::UnsupportedCodeChallengeMethod,
            );
        }
        invalid(
            &with(&"a".repeat(42), "S256"),
            Reason::MalformedCodeChallenge,
        );
        invalid(&with(&"a".repeat(129), "S256"), Reason::OverlongParameter);
        let plain = Client {
            allow_plain_pkce: true,
            ..client()
        };
        for (length, accepted) in [(42, false), (43, true), (128, true)] {
            let judged = with(&"~".repeat(length), "plain").judged_for(&plain);
            assert_eq!(judged.is_ok(), accepted, "{length}");
        }
        let without_method = asking()
            .without("code_challenge_method")
            .judged_for(&plain)
            .unwrap();
        assert_eq!(
            without_method.code_challenge.unwrap().method(),
            CodeChallengeMethod::Plain
        );
    }

    #[test]
    fn without_a_code_pkce_is_ignored() {
        for (challenge, method) in [("x", "nope"), (CODE_CHALLENGE, "S256"), ("", "")] {
            let asked = asking()
                .with("response_type", "id_token")
                .with("code_challenge", challenge)
                .with("code_challenge_method", method);
            assert_eq!(asked.judged().unwrap().code_challenge, None);
        }
    }

    #[test]
    fn max_age_is_digits() {
        let most = ("999999999999999999", 999_999_999_999_999_999);
        for (text, seconds) in [
            ("0", 0),
            ("00", 0),
            ("60", 60),
            ("2147483648", 2_147_483_648),
            most,
        ] {
            assert_eq!(
                asking().with("max_age", text).judged().unwrap().max_age,
                Some(seconds)
            );
        }
        let odd = "-1|+5|5.5| 5|5 |1e3|0x10|1_000|99999999999999999999|1000000000000000000|\u{665}|\u{ff15}|five|\n5";
        for text in odd.split('|') {
            invalid(&asking().with("max_age", text), Reason::MalformedMaxAge);
        }
        let client = Client {
            default_max_age: Some(600),
            ..client()
        };
        for (text, seconds) in [("", Ok(Some(600))), ("5", Ok(Some(5))), ("x", Err(()))] {
            let judged = asking().with("max_age", text).judged_for(&client);
            assert_eq!(
                judged.map(|request| request.max_age).map_err(drop),
                seconds,
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_essential_acr_out_of_reach_ends_the_request() {
        let asked = |value: &str| {
            asking().with(
                "claims",
                &format!(r#"{{"id_token":{{"acr":{{"essential":true,"values":[{value}]}}}}}}"#),
            )
        };
        assert!(asked(r#""1""#).judged().is_ok());
        assert!(asked(r#""urn:silver","1""#).judged().is_ok());
        for value in [r#""urn:silver""#, "1", ""] {
            let refused = fault(asked(value).judged());
            assert_eq!(
                refused.0,
                AuthorizeErrorCode::UnmetAuthenticationRequirements,
                "{value}"
            );
        }
    }
}
