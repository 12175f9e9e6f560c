//! The JWT bearer grant (RFC 7523 §2.1): reading the assertion, finding who signed it, and which
//! scopes it allows.

use super::assertion::{AssertionProblem, is_grant_assertion_typ, is_type};
use super::extension_grant::Proposal;
use super::id_jag;
use super::token_request::ExtensionRequest;
use crate::keys::jwt::{ID_JAG_TYP, UnverifiedJws};
use crate::words::catalogue::{AssertionIssuer, Catalogue};
use crate::words::client::Client;
use crate::words::json::Members;
use crate::words::parameters;
use crate::words::reason::{
    Reason, Result, TokenError, invalid_grant, invalid_request, invalid_scope,
};
use crate::words::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::words::sender::Sender;

/// An assertion whose signature is not verified yet.
pub struct ShownAssertion<'a> {
    pub jws: UnverifiedJws,
    pub issuer: &'a AssertionIssuer,
    /// What it may give, but for its user.
    pub proposal: Proposal,
}

/// Reads the assertion, and proposes what it may give here.
pub fn shown<'a>(
    request: &ExtensionRequest,
    sender: Sender<'a>,
    takes_id_jags: bool,
) -> Result<ShownAssertion<'a>> {
    let (jws, issuer) = read(request, sender, takes_id_jags)?;
    let proposal = if issuer.id_jag {
        id_jag::propose(&jws, issuer, sender)?
    } else {
        Proposal {
            scope: Some(reach(issuer, sender.client, request.scope.as_ref())?),
            ..Proposal::default()
        }
    };
    Ok(ShownAssertion {
        jws,
        issuer,
        proposal,
    })
}

/// Reads the assertion and finds its registered issuer, if this client may use assertions of that
/// issuer. Nothing is verified yet.
fn read<'a>(
    request: &ExtensionRequest,
    sender: Sender<'a>,
    takes_id_jags: bool,
) -> Result<(UnverifiedJws, &'a AssertionIssuer)> {
    let missing = invalid_request(Reason::MissingAssertion);
    let assertion = request.parameter("assertion").ok_or(missing)?;
    let unknown = || invalid_grant(Reason::UnknownAssertionIssuer);
    let jws = UnverifiedJws::parse(assertion).ok_or_else(unknown)?;
    let typ = jws.typ.as_deref();
    let is_id_jag = typ.is_some_and(|typ| is_type(typ, ID_JAG_TYP));
    if is_id_jag && !takes_id_jags {
        return Err(invalid_grant(Reason::IdJagNotTaken));
    }
    let issuer = issuer_of(&jws, sender.catalogue).ok_or_else(unknown)?;
    let fits = if issuer.id_jag {
        is_id_jag
    } else {
        is_grant_assertion_typ(typ)
    };
    if !fits || !issuer.clients.contains(sender.client.client_id.as_str()) {
        return Err(unknown());
    }
    Ok((jws, issuer))
}

fn issuer_of<'a>(jws: &UnverifiedJws, catalogue: &'a Catalogue) -> Option<&'a AssertionIssuer> {
    let claims = jws.unverified_claims()?;
    catalogue.assertion_issuers.get(claims.text("iss")?)
}

/// The scopes that assertions of the issuer allow. `offline_access` is left out: nothing may
/// outlive the assertion.
pub fn of_issuer(issuer: &AssertionIssuer, client: &Client) -> ScopeSet {
    let scope = issuer.scope.as_ref().unwrap_or(&client.scope);
    scope.retain(|name| name != OFFLINE_ACCESS)
}

/// The same. A request for more is `invalid_scope`.
fn reach(
    issuer: &AssertionIssuer,
    client: &Client,
    requested: Option<&ScopeSet>,
) -> Result<ScopeSet> {
    let reach = of_issuer(issuer, client);
    match requested {
        Some(scope) if !scope.iter().all(|name| reach.contains(name)) => {
            Err(invalid_scope(Reason::ScopeBeyondAssertion))
        }
        Some(_) | None => Ok(reach),
    }
}

/// Whether the subject can be a user's: not too long, and without control characters.
pub fn is_possible_subject(subject: &str) -> bool {
    subject.chars().nth(parameters::USERNAME).is_none() && !subject.contains(char::is_control)
}

/// The refusal: always `invalid_grant`. The reason is for the log.
pub fn refused(problem: AssertionProblem) -> TokenError {
    invalid_grant(match problem {
        AssertionProblem::Malformed => Reason::UnknownAssertionIssuer,
        AssertionProblem::Algorithm | AssertionProblem::Key => Reason::AssertionKey,
        AssertionProblem::KeysUnavailable | AssertionProblem::KeysUnusable => {
            Reason::AssertionKeysUnavailable
        }
        AssertionProblem::Signature => Reason::AssertionSignature,
        AssertionProblem::Parties
        | AssertionProblem::Audience
        | AssertionProblem::Times
        | AssertionProblem::Jti => Reason::AssertionClaims,
        AssertionProblem::Replayed => Reason::AssertionReplayed,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::super::token_request::TokenRequest;
    use super::*;
    use crate::keys::jwt::{assemble, signing_input};
    use crate::words::catalogue::AssertionSubject;
    use crate::words::client::{GrantType, SigningAlgorithm};
    use crate::words::parameters::Parameters;
    use crate::words::samples::{self, NOW, client, scope};

    const ISSUER: &str = "https://idp.example";

    fn issuer(clients: &[&str]) -> AssertionIssuer {
        AssertionIssuer {
            issuer: String::from(ISSUER),
            jwks: None,
            jwks_uri: None,
            algs: [SigningAlgorithm::Rs256].into(),
            clients: clients.iter().map(|client| String::from(*client)).collect(),
            scope: Some(scope("openid orders.read offline_access")),
            tenant: None,
            subject: AssertionSubject::Link,
            id_jag: false,
            acr_map: BTreeMap::new(),
        }
    }

    fn assertion(typ: &str, iss: Value) -> String {
        let claims = json!({ "iss": iss });
        assemble(
            signing_input(SigningAlgorithm::Rs256, "k", typ, &claims),
            b"signature",
        )
    }

    fn read_as(assertion: &str, clients: &[&str]) -> Result<String> {
        read_of(assertion, issuer(clients), true)
    }

    fn read_of(assertion: &str, issuer: AssertionIssuer, takes_id_jags: bool) -> Result<String> {
        let mut client = client();
        client.grant_types.insert(GrantType::JwtBearer);
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion),
        ];
        let request =
            TokenRequest::from_form(&Parameters::from_pairs(form), &client, |_| false, NOW)
                .unwrap();
        let TokenRequest::Extension(request) = request else {
            panic!("{request:?}")
        };
        let issuers = [(String::from(ISSUER), issuer)].into();
        let catalogue = Catalogue {
            assertion_issuers: issuers,
            ..Catalogue::default()
        };
        let read = read(
            &request,
            samples::sender(&client, &catalogue),
            takes_id_jags,
        );
        read.map(|(_, issuer)| issuer.issuer.clone())
    }

    #[test]
    fn an_assertion_is_its_issuers_and_for_the_clients_that_are_named() {
        let good = assertion("JWT", json!(ISSUER));
        assert_eq!(read_as(&good, &["other", "web"]), Ok(String::from(ISSUER)));
        let unknown = Err(invalid_grant(Reason::UnknownAssertionIssuer));
        assert_eq!(read_as(&good, &["other"]), unknown);
        assert_eq!(read_as(&good, &[]), unknown);
        for iss in [
            json!("https://idp.example/"),
            json!("HTTPS://IDP.EXAMPLE"),
            json!([ISSUER]),
            json!(null),
            json!(""),
        ] {
            assert_eq!(
                read_as(&assertion("JWT", iss.clone()), &["web"]),
                unknown,
                "{iss}"
            );
        }
        for typ in ["at+jwt", "logout+jwt", "client-authentication+jwt"] {
            assert_eq!(
                read_as(&assertion(typ, json!(ISSUER)), &["web"]),
                unknown,
                "{typ}"
            );
        }
        assert_eq!(read_as("no.jwt.at all", &["web"]), unknown);
        assert_eq!(
            read_as("", &["web"]).unwrap_err().reason,
            Reason::MissingAssertion
        );
    }

    #[test]
    fn an_issuer_sends_either_id_jags_or_assertions() {
        let of_id_jags = |id_jag| AssertionIssuer {
            id_jag,
            ..issuer(&["web"])
        };
        let sent = |typ: &str, id_jag, takes| {
            let text = assertion(typ, json!(ISSUER));
            read_of(&text, of_id_jags(id_jag), takes).map_err(|error| error.reason)
        };
        let taken = Ok(String::from(ISSUER));
        let unknown = Err(Reason::UnknownAssertionIssuer);
        assert_eq!(sent("oauth-id-jag+jwt", true, true), taken);
        assert_eq!(sent("oauth-id-jag+jwt", false, true), unknown);
        assert_eq!(sent("JWT", true, true), unknown);
        for id_jag in [true, false] {
            let refused = sent("oauth-id-jag+jwt", id_jag, false);
            assert_eq!(refused, Err(Reason::IdJagNotTaken));
        }
        // Whoever takes none takes ordinary ones as before.
        assert_eq!(sent("JWT", false, false), taken);
    }

    #[test]
    fn every_problem_is_an_invalid_grant_with_its_reason_for_the_log() {
        use AssertionProblem as Problem;
        for (problem, reason) in [
            (Problem::Malformed, Reason::UnknownAssertionIssuer),
            (Problem::Algorithm, Reason::AssertionKey),
            (Problem::Key, Reason::AssertionKey),
            (Problem::KeysUnavailable, Reason::AssertionKeysUnavailable),
            (Problem::KeysUnusable, Reason::AssertionKeysUnavailable),
            (Problem::Signature, Reason::AssertionSignature),
            (Problem::Parties, Reason::AssertionClaims),
            (Problem::Audience, Reason::AssertionClaims),
            (Problem::Times, Reason::AssertionClaims),
            (Problem::Jti, Reason::AssertionClaims),
            (Problem::Replayed, Reason::AssertionReplayed),
        ] {
            let expected = invalid_grant(reason);
            assert_eq!(refused(problem), expected, "{problem:?}");
        }
    }

    #[test]
    fn an_assertion_reaches_as_far_as_its_issuer_and_never_offline() {
        let reach = |requested: Option<&ScopeSet>| reach(&issuer(&[]), &client(), requested);
        assert_eq!(reach(None).unwrap().to_string(), "openid orders.read");
        assert!(reach(Some(&scope("orders.read"))).is_ok());
        for beyond in [
            "orders.write",
            "openid orders.write",
            "offline_access",
            "openid offline_access",
        ] {
            let refused = reach(Some(&scope(beyond))).unwrap_err();
            assert_eq!(
                refused,
                invalid_scope(Reason::ScopeBeyondAssertion),
                "{beyond}"
            );
        }
    }

    #[test]
    fn subjects_that_no_column_can_hold_are_nobodys() {
        assert!(is_possible_subject("248289761001") && is_possible_subject("alice@example.com"));
        assert!(is_possible_subject(&"x".repeat(parameters::USERNAME)));
        for subject in ["a\0b", "a\nb", "\u{7f}", &"x".repeat(257)] {
            assert!(!is_possible_subject(subject));
        }
    }
}
