//! Proofs of possession (RFC 9449) at the endpoints: whether the sender of a request holds the key
//! that it brings. Nothing is written but into the memory of this process.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::client_authentication::authenticate;
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::http::{Request, Response};
use crate::keys::signing::verify;
use crate::registry::RegisteredClient;
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::client_authentication::PresentedClient;
use gatepost_protocol::token::dpop_proof::{
    self, DpopProof, ExpectedProof, NONCE_HEADER, UnverifiedProof, nonce_buckets,
};
use gatepost_protocol::token::userinfo::{BearerFailure, SentToken, check_holder, key_to_prove};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::{Reason, TokenError};

/// Who sent a form: the client, and the proof that came along.
pub struct AuthenticatedSender {
    pub client: Arc<RegisteredClient>,
    pub proof: Option<DpopProof>,
}

/// Authenticates the client of a form, and judges its proof. What is wrong with the proof is told
/// to whoever has authenticated, so that nobody learns by it which clients there are. One thing is
/// told before: a client that brings an assertion is asked for a nonce while the assertion is not
/// spent.
pub fn authenticate_sender(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<AuthenticatedSender> {
    if !is_sent(request) {
        return Ok(AuthenticatedSender {
            client: authenticate(app, request, parameters, now)?,
            proof: None,
        });
    }
    let judged = judge(app, request, now);
    if parameters.was_sent("client_assertion")
        && judged.is_ok()
        && let Some(named) = named(app, request, parameters)?
    {
        check(app, request, &judged, &named.client, now)?;
    }
    let client = authenticate(app, request, parameters, now)?;
    check(app, request, &judged, &client.client, now)?;
    match judged.and_then(|proof| take(app, proof, now)) {
        Ok(proof) => Ok(AuthenticatedSender {
            client,
            proof: Some(proof),
        }),
        Err(reason) => Err(refused(app, reason, None, &client.client, now)),
    }
}

fn is_sent(request: &Request) -> bool {
    request.headers.first("dpop").is_some()
}

/// The client that the request says it comes from.
fn named(
    app: &App,
    request: &Request,
    parameters: &Parameters,
) -> Result<Option<Arc<RegisteredClient>>> {
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    match PresentedClient::from_request(&headers, parameters) {
        Ok(presented) => Ok(app.registry.client(&presented.client_id)?),
        Err(_) => Ok(None),
    }
}

/// Judges everything that needs no client.
fn judge(app: &App, request: &Request, now: Instant) -> Result<DpopProof, Reason> {
    if !is_sent(request) {
        return Err(Reason::ProofMissing);
    }
    let headers: Vec<&str> = request.headers.all("dpop").collect();
    let expected = ExpectedProof {
        method: request.method.as_str(),
        address: &address(app, request),
    };
    read_verified(&headers)?.judge(expected, now)
}

/// Reads the lines of a header `DPoP`, and verifies the signature.
pub fn read_verified(headers: &[&str]) -> Result<UnverifiedProof, Reason> {
    let proof = UnverifiedProof::read(headers)?;
    let jws = &proof.jws;
    if verify(&proof.key, jws.signing_input.as_bytes(), &jws.signature) {
        Ok(proof)
    } else {
        Err(Reason::ProofMalformed)
    }
}

/// What a client that needs nonces must have.
fn check_nonce(app: &App, proof: &DpopProof, client: &Client, now: Instant) -> Result<(), Reason> {
    if !client.requires_dpop_nonce {
        return Ok(());
    }
    match &proof.nonce {
        Some(nonce) if bucket_of(app, nonce, nonce_buckets(now)).is_some() => Ok(()),
        _ => Err(Reason::ProofNonce),
    }
}

fn check(
    app: &App,
    request: &Request,
    judged: &Result<DpopProof, Reason>,
    client: &Client,
    now: Instant,
) -> Result {
    let checked = match judged {
        Ok(proof) => check_nonce(app, proof, client, now),
        Err(reason) => Err(*reason),
    };
    let Err(reason) = checked else {
        return Ok(());
    };
    let detail = match reason {
        Reason::ProofElsewhere => made_elsewhere(app, request),
        _ => None,
    };
    Err(refused(app, reason, detail, client, now))
}

/// For the log: what a proof was made for, and what it should have been made for.
fn made_elsewhere(app: &App, request: &Request) -> Option<String> {
    let headers: Vec<&str> = request.headers.all("dpop").collect();
    let made_for = UnverifiedProof::read(&headers).ok()?.made_for()?;
    Some(format!(
        "for {} {}, not {} {}",
        made_for.method,
        made_for.address,
        request.method.as_str(),
        address(app, request)
    ))
}

fn address(app: &App, request: &Request) -> String {
    format!("{}{}", app.config.base_url.origin(), request.path)
}

/// Remembers a proof, so that it is not taken again.
fn take(app: &App, proof: DpopProof, now: Instant) -> Result<DpopProof, Reason> {
    if app.seen_proofs.take(proof.name, now) {
        Ok(proof)
    } else {
        Err(Reason::ProofReplayed)
    }
}

/// The refusal of a form's proof. `detail` is for the log.
pub fn refused(
    app: &App,
    reason: Reason,
    detail: Option<String>,
    client: &Client,
    now: Instant,
) -> Failure {
    let refusal = TokenError {
        code: dpop_proof::error(reason),
        reason,
        detail,
    };
    offering_nonce(app, reason, refusal.into(), now).about(&client.client_id, None)
}

/// A proof that lacks nothing but a nonce is told one.
fn offering_nonce(app: &App, reason: Reason, failure: Failure, now: Instant) -> Failure {
    if reason != Reason::ProofNonce {
        return failure;
    }
    Failure::WithHeader {
        name: NONCE_HEADER,
        value: nonce(app, now),
        failure: Box::new(failure),
    }
}

/// A good answer, with the nonce for the next proof where the client needs one.
pub fn with_nonce(app: &App, client: &Client, response: Response, now: Instant) -> Response {
    if client.requires_dpop_nonce {
        response.header(NONCE_HEADER, nonce(app, now))
    } else {
        response
    }
}

/// Refuses a form without a proof, where the client is registered to send one always.
pub fn require(sender: &AuthenticatedSender) -> Result {
    let client = &sender.client.client;
    if client.requires_dpop && sender.proof.is_none() {
        let refusal = Failure::bad_request(Reason::ProofMissing);
        return Err(refusal.about(&client.client_id, None));
    }
    Ok(())
}

/// Judges whether the sender of an access token holds the key that it is bound to (RFC 9449 §7).
/// `refused` says what else the answer needs.
pub fn require_holder(
    app: &App,
    request: &Request,
    sent: &SentToken,
    token: &AccessToken,
    refused: impl Fn(BearerFailure) -> Failure,
) -> Result {
    let Some(key) = key_to_prove(sent, token).map_err(&refused)? else {
        return Ok(());
    };
    let now = app.now();
    let refused_proof = |reason| {
        let refusal = refused(BearerFailure::InvalidProof(reason));
        offering_nonce(app, reason, refusal, now)
    };
    let proof = judge(app, request, now).map_err(refused_proof)?;
    if let Some(client) = app.registry.client(&token.client_id)? {
        check_nonce(app, &proof, &client.client, now).map_err(refused_proof)?;
    }
    check_holder(&proof, key, sent).map_err(&refused)?;
    take(app, proof, now).map(drop).map_err(refused_proof)
}

/// The nonce that proofs shall have from now on. Every process gives out the same.
fn nonce(app: &App, now: Instant) -> String {
    let [bucket, ..] = nonce_buckets(now);
    URL_SAFE_NO_PAD.encode(app.vault.dpop_nonces.tag(&[&bucket.to_be_bytes()]))
}

/// Which of these buckets a nonce was given out in.
pub fn bucket_of(app: &App, nonce: &str, buckets: impl IntoIterator<Item = i64>) -> Option<i64> {
    let tag = URL_SAFE_NO_PAD.decode(nonce).ok()?;
    let nonces = &app.vault.dpop_nonces;
    let mut buckets = buckets.into_iter();
    buckets.find(|bucket| nonces.verify(&[&bucket.to_be_bytes()], &tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::words::samples::DPOP_PROOF;

    #[test]
    fn the_signature_of_rfc_9449s_example_verifies_and_a_changed_one_does_not() {
        assert!(read_verified(&[DPOP_PROOF]).is_ok());
        let (signed, signature) = DPOP_PROOF.rsplit_once('.').unwrap();
        let changed = format!("{signed}.A{}", &signature[1..]);
        let verified = read_verified(&[&changed]);
        assert_eq!(verified.err(), Some(Reason::ProofMalformed));
    }
}
