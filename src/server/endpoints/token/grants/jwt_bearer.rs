//! `grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer` (RFC 7523 §2.1): a registered issuer
//! asserts who somebody is, and a client that may use its assertions gets a token for that user.
//! The proposal is judged as that of any extension grant.

use super::GrantContext;
use crate::app::failure::{Result, Stopped};
use crate::endpoints::token::assertions::KeySource;
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::token::assertion::{AssertionProblem, ExpectedAssertion};
use gatepost_protocol::token::extension_grant::{GrantAnswer, GrantRefusal, Proposal};
use gatepost_protocol::token::jwt_bearer::{is_possible_subject, refused, shown};
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::catalogue::{AssertionIssuer, AssertionSubject};
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::reason::{Reason, invalid_grant};
use gatepost_store::linked_identities;
use gatepost_store::users::{self, CurrentUser};

/// Verifies the assertion, takes it, and proposes the user it speaks of.
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<GrantAnswer> {
    let app = context.app;
    // Before the assertion is used up: it is good for one use.
    let shown = match shown(request, context.sender(), app.config.id_jag) {
        Ok(shown) => shown,
        Err(error) => return Ok(GrantAnswer::Refuse(GrantRefusal::of(error))),
    };
    let issuer = shown.issuer;
    let algs: Vec<SigningAlgorithm> = issuer.algs.iter().copied().collect();
    let audiences = app.grant_audiences(issuer);
    let expected = ExpectedAssertion::of_issuer(&issuer.issuer, &audiences);
    let spent = match KeySource::of(&issuer.jwks, &issuer.jwks_uri) {
        Some(keys) => app.spend_assertion(&shown.jws, keys, &algs, expected, context.now),
        None => Err(Stopped::Refused(AssertionProblem::Key)),
    };
    let assertion = match spent {
        Ok(assertion) => assertion,
        Err(stopped) => {
            let error = refused(stopped.refusal()?);
            return Ok(GrantAnswer::Refuse(GrantRefusal::of(error)));
        }
    };
    Ok(match user(context, issuer, &assertion.subject)? {
        Some((found, identity_provider)) => GrantAnswer::Propose(Box::new(Proposal {
            epochs: Some(found.epochs(context.client.epoch)),
            subject: Some(found.user.sub),
            identity_provider,
            ..shown.proposal
        })),
        None => GrantAnswer::Refuse(GrantRefusal::of(invalid_grant(Reason::AssertionSubject))),
    })
}

/// The user whom the issuer's `sub` means, and the identity provider that the link names. Only
/// users of the issuer's tenant are found, and never by our own `sub`.
fn user(
    context: GrantContext<'_>,
    issuer: &AssertionIssuer,
    subject: &str,
) -> Result<Option<(CurrentUser, Option<String>)>> {
    if !is_possible_subject(subject) {
        return Ok(None);
    }
    let store = &context.app.store;
    let client_id = Some(&context.client.client.client_id);
    let found = match issuer.subject {
        AssertionSubject::Link => {
            linked_identities::find_user(store, &issuer.issuer, subject, client_id)?
                .map(|linked| (linked.found, linked.provider))
        }
        AssertionSubject::Username => {
            let account = users::find_for_sign_in(
                store,
                issuer.tenant.as_ref(),
                subject,
                SignInWith::Username,
                client_id,
            )?;
            account.user.map(|found| (found, None))
        }
    };
    Ok(found.filter(|(found, _)| found.user.tenant == issuer.tenant))
}
