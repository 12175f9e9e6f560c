//! JWTs from others. They are verified by their sender's keys, which are registered, or fetched and
//! kept. An assertion is good for one use, over all processes.

use serde_json::Value;

use crate::app::App;
use crate::app::failure::{Failure, Stopped};
use crate::app::fetched::{Provenance, Sought};
use crate::keys::signing::verify;
use crate::outbound::{Asker, Deadline, OutboundError, OutboundRequest};
use gatepost_protocol::discovery::{TOKEN_PATH, endpoint_url};
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::keys::key_set::KeySet;
use gatepost_protocol::token::assertion::{
    Assertion, AssertionProblem, ExpectedAssertion, judge, verifying_key,
};
use gatepost_protocol::words::catalogue::AssertionIssuer;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_store::tokens;

pub enum KeySource<'a> {
    Inline(&'a Value),
    Uri(&'a str),
}

impl<'a> KeySource<'a> {
    /// Where a registration says the keys are; `None` when it has no keys.
    pub fn of(jwks: &'a Option<Value>, jwks_uri: &'a Option<String>) -> Option<KeySource<'a>> {
        jwks.as_ref()
            .map(KeySource::Inline)
            .or(jwks_uri.as_deref().map(KeySource::Uri))
    }
}

impl App {
    /// What `aud` of an assertion may be: the issuer or the token endpoint (RFC 7523 §3).
    fn assertion_audiences(&self) -> Vec<String> {
        let token_endpoint = endpoint_url(self.issuer(), TOKEN_PATH);
        vec![self.issuer().to_owned(), token_endpoint]
    }

    /// The same of an assertion as a grant. An ID-JAG names the issuer alone.
    pub fn grant_audiences(&self, issuer: &AssertionIssuer) -> Vec<String> {
        if issuer.id_jag {
            vec![self.issuer().to_owned()]
        } else {
            self.assertion_audiences()
        }
    }

    /// The same of a client's authentication: the issuer alone where the setting says so (RFC
    /// 10070).
    pub fn client_assertion_audiences(&self) -> Vec<String> {
        if self.config.client_assertions_name_issuer {
            vec![self.issuer().to_owned()]
        } else {
            self.assertion_audiences()
        }
    }

    /// Verifies an assertion, judges its claims and takes it, so that it is never taken again.
    /// `algs` is what is registered.
    pub fn spend_assertion(
        &self,
        jws: &UnverifiedJws,
        keys: KeySource<'_>,
        algs: &[SigningAlgorithm],
        expected: ExpectedAssertion<'_>,
        now: Instant,
    ) -> Result<Assertion, Stopped<AssertionProblem>> {
        let claims = self.presented_claims(jws, keys, algs)?;
        let assertion = judge(&claims, expected, now).map_err(Stopped::Refused)?;
        let is_new = tokens::take_assertion(
            &self.store,
            expected.issuer,
            &assertion.jti,
            assertion.forgotten_at,
        )?;
        if !is_new {
            return Err(Stopped::Refused(AssertionProblem::Replayed));
        }
        Ok(assertion)
    }

    /// The verified claims of a JWT that a request brings.
    pub fn presented_claims(
        &self,
        jws: &UnverifiedJws,
        keys: KeySource<'_>,
        algs: &[SigningAlgorithm],
    ) -> Result<JsonObject, Stopped<AssertionProblem>> {
        match keys {
            KeySource::Inline(jwks) => {
                let set = KeySet::parse(jwks).ok_or(AssertionProblem::KeysUnavailable);
                let set = set.map_err(Stopped::Refused)?;
                verify_by(jws, &set, algs).map_err(Stopped::Refused)
            }
            KeySource::Uri(url) => {
                let sought = Sought {
                    asker: Asker::Worker(&self.outbound),
                    url,
                    deadline: Deadline::usual(),
                };
                self.claims_by_fetched_keys(sought, jws, Provenance::Presented, algs)
            }
        }
    }

    /// The claims of a JWT that a key of a fetched set signed. A key that is missing from the set
    /// may be new: then the set is fetched again, at most once a minute for each provenance. All
    /// this takes no longer than the deadline.
    pub fn claims_by_fetched_keys(
        &self,
        sought: Sought<'_>,
        jws: &UnverifiedJws,
        provenance: Provenance,
        algs: &[SigningAlgorithm],
    ) -> Result<JsonObject, Stopped<AssertionProblem>> {
        let fetch = |asker: Asker<'_>| fetch_key_set(asker, sought.url, sought.deadline);
        let found = self.key_sets.find(sought, |_| true, fetch);
        let set = found.map_err(without_keys)?;
        let verified = verify_by(jws, &set, algs);
        if verified != Err(AssertionProblem::Key) {
            return verified.map_err(Stopped::Refused);
        }
        let newer = self.key_sets.find_newer(sought, &set, provenance, fetch);
        match newer.map_err(without_keys) {
            Ok(newer) => verify_by(jws, &newer, algs).map_err(Stopped::Refused),
            Err(Stopped::Refused(_)) => verified.map_err(Stopped::Refused),
            Err(Stopped::Failed(failure)) => Err(Stopped::Failed(failure)),
        }
    }
}

/// Why a set cannot be had. The request that tried has logged the cause.
fn without_keys(error: OutboundError) -> Stopped<AssertionProblem> {
    match error {
        OutboundError::Busy => Failure::Busy.into(),
        error if error.is_passing() => Stopped::Refused(AssertionProblem::KeysUnavailable),
        _ => Stopped::Refused(AssertionProblem::KeysUnusable),
    }
}

/// Fails when nothing answers in time, or when the answer is no JWK set (RFC 7517 §5).
pub fn fetch_key_set(
    asker: Asker<'_>,
    url: &str,
    deadline: Deadline,
) -> Result<KeySet, OutboundError> {
    let request =
        OutboundRequest::get(url).header("Accept", "application/jwk-set+json, application/json");
    let answer = asker.send(request, deadline)?.require_ok()?;
    let set = answer.json().as_ref().and_then(KeySet::parse);
    set.ok_or_else(|| OutboundError::Unusable(String::from("the answer is no JWK set")))
}

/// The claims, if the one key that fits made the signature.
pub fn verify_by(
    jws: &UnverifiedJws,
    keys: &KeySet,
    algs: &[SigningAlgorithm],
) -> Result<JsonObject, AssertionProblem> {
    let key = verifying_key(jws, keys, algs)?;
    if !verify(key, jws.signing_input.as_bytes(), &jws.signature) {
        return Err(AssertionProblem::Signature);
    }
    jws.unverified_claims().ok_or(AssertionProblem::Malformed)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;
    use crate::keys::signing::{SigningKey, generate};
    use gatepost_protocol::keys::jwt::{assemble, signing_input};

    fn key(algorithm: SigningAlgorithm) -> SigningKey {
        SigningKey::from_pkcs8(algorithm, &generate(algorithm).unwrap()).unwrap()
    }

    fn signed(key: &SigningKey, kid: &str) -> UnverifiedJws {
        let claims = json!({ "sub": "web" });
        let input = signing_input(key.algorithm(), kid, "JWT", &claims);
        let signature = key.sign(input.as_bytes()).unwrap();
        UnverifiedJws::parse(&assemble(input, &signature)).unwrap()
    }

    fn set(keys: &[&SigningKey]) -> KeySet {
        let jwks: Vec<Value> = keys.iter().map(|key| key.public_key().to_jwk()).collect();
        KeySet::parse(&json!({ "keys": jwks })).unwrap()
    }

    #[test]
    fn every_algorithm_is_verified_by_its_own_key_alone() {
        for algorithm in SigningAlgorithm::ALL {
            let (ours, foreign) = (key(algorithm), key(algorithm));
            let jws = signed(&ours, ours.kid());
            let keys = set(&[&ours, &foreign]);
            assert_eq!(
                verify_by(&jws, &keys, &[algorithm]).unwrap().get("sub"),
                Some(&json!("web"))
            );
            assert_eq!(
                verify_by(&jws, &set(&[&foreign]), &[algorithm]),
                Err(AssertionProblem::Key)
            );
            assert_eq!(
                verify_by(&jws, &keys, &[]),
                Err(AssertionProblem::Algorithm)
            );
            // Under the name of another key of the set.
            let renamed = signed(&ours, foreign.kid());
            assert_eq!(
                verify_by(&renamed, &keys, &[algorithm]),
                Err(AssertionProblem::Signature)
            );
            let altered = UnverifiedJws {
                signing_input: format!("{}A", jws.signing_input),
                ..jws.clone()
            };
            assert_eq!(
                verify_by(&altered, &keys, &[algorithm]),
                Err(AssertionProblem::Signature)
            );
            let short = UnverifiedJws {
                signature: jws.signature[1..].to_vec(),
                ..jws
            };
            assert_eq!(
                verify_by(&short, &keys, &[algorithm]),
                Err(AssertionProblem::Signature)
            );
        }
    }

    #[test]
    fn the_nothing_signature_of_ecdsa_is_no_signature() {
        let ours = key(SigningAlgorithm::Es256);
        let jws = UnverifiedJws {
            signature: vec![0; 64],
            ..signed(&ours, ours.kid())
        };
        assert_eq!(
            verify_by(&jws, &set(&[&ours]), &[SigningAlgorithm::Es256]),
            Err(AssertionProblem::Signature)
        );
    }

    #[test]
    fn the_hmac_that_takes_a_public_key_for_a_secret_is_not_even_read() {
        let ours = key(SigningAlgorithm::Rs256);
        let header =
            URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": ours.kid() }).to_string());
        assert_eq!(UnverifiedJws::parse(&format!("{header}.e30.AAAA")), None);
    }
}
