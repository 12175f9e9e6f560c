//! What a DPoP proof says, and which rule it breaks.

use serde_json::{Map, Value, json};

use crate::app::App;
use crate::app::explanation::{Explained, told};
use crate::endpoints::token::dpop::{bucket_of, read_verified};
use crate::protocol::keys::jwt::UnverifiedJws;
use crate::protocol::registration::problem::Finding;
use crate::protocol::token::dpop_proof::{
    DpopProof, ExpectedProof, MadeFor, NONCE_SECONDS, is_one, nonce_buckets,
};
use crate::protocol::words::client::Client;
use crate::protocol::words::identifiers::KeyThumbprint;
use crate::protocol::words::reason::Reason;

/// A nonce that is older is told as none of ours.
const OLDEST_NONCE: i64 = 86_400 / NONCE_SECONDS;

/// What was found, with the key that was proved.
#[derive(Default)]
pub(super) struct ExaminedProof {
    pub findings: Vec<Finding>,
    pub about: Map<String, Value>,
    pub key: Option<KeyThumbprint>,
}

/// A proof that came without the request it is for: it is judged for the request it names.
pub(super) fn alone(app: &App, text: &str) -> Explained {
    let mut examined = examine(app, &[text], "", None);
    examined
        .about
        .insert(String::from("kind"), json!("DPoP proof"));
    (examined.findings, examined.about)
}

/// Judges the proof of a request, from the lines of its header. Whether it was used before only the
/// serving processes know. Without an `address` any below the base URL will do.
pub(super) fn examine(
    app: &App,
    lines: &[&str],
    address: &str,
    client: Option<&Client>,
) -> ExaminedProof {
    let mut examined = ExaminedProof::default();
    if lines.is_empty() {
        let missing = client.filter(|client| client.requires_dpop);
        let finding = missing.map(|_| Finding::broken(told(Reason::ProofMissing, None)));
        examined.findings.extend(finding);
        return examined;
    }
    let broken = |reason, detail: Option<&str>| Finding::broken(told(reason, detail));
    let read = read_verified(lines);
    let read = read.and_then(|proof| match proof.made_for() {
        Some(made_for) => Ok((proof, made_for)),
        None => Err(Reason::ProofMalformed),
    });
    let (proof, made_for) = match read {
        Ok(read) => read,
        Err(reason) => {
            let detail = misnamed(lines);
            examined.findings.push(broken(reason, detail.as_deref()));
            return examined;
        }
    };
    let MadeFor {
        method,
        address: named,
        at,
    } = &made_for;
    let below = named.starts_with(app.issuer()).then_some(named.as_str());
    let expected = match address {
        "" => ExpectedProof {
            method,
            address: below.unwrap_or(app.issuer()),
        },
        address => ExpectedProof {
            method: "POST",
            address,
        },
    };
    let age = app.now().seconds() - at.seconds();
    let made_for = format!("it is for {method} {named}, and {age} s old");
    // Whoever asks is later than whoever sent it: all but the age is judged as of then.
    match proof.judge(expected, *at) {
        Ok(judged) => {
            let age = proof.judge(expected, app.now()).err();
            examined.findings.push(match age {
                Some(reason) => broken(reason, Some(&made_for)),
                None => Finding::fine(format!("its proof is good: {made_for}")),
            });
            examined.findings.extend(nonce(app, &judged, client));
            examined.key = Some(judged.key);
        }
        Err(reason) => examined.findings.push(broken(reason, Some(&made_for))),
    }
    let key = proof.key.thumbprint();
    examined.about.insert(String::from("proof.jkt"), json!(key));
    examined
}

/// Whether a JWT that does not say so is meant as a proof: it brings its key along, and names a
/// request.
pub(super) fn is_meant(jws: &UnverifiedJws) -> bool {
    let claims = jws.unverified_claims().unwrap_or_default();
    let names_request = claims.contains_key("htm") && claims.contains_key("htu");
    names_request && jws.embedded_key().is_some()
}

/// What is wrong with the `typ` of a proof.
fn misnamed(lines: &[&str]) -> Option<String> {
    let [line] = lines else {
        return None;
    };
    let jws = UnverifiedJws::parse(line.trim())?;
    if is_one(&jws) {
        return None;
    }
    Some(match &jws.typ {
        Some(typ) => format!("its typ is {}", typ.escape_debug()),
        None => String::from("it has no typ"),
    })
}

/// Tells how old the nonce is, and whether it would still do.
fn nonce(app: &App, proof: &DpopProof, client: Option<&Client>) -> Option<Finding> {
    let is_needed = client.is_some_and(|client| client.requires_dpop_nonce);
    let detail = match &proof.nonce {
        None if is_needed => String::from("it has none"),
        None => return None,
        Some(nonce) => {
            let [present, before, after] = nonce_buckets(app.now());
            let past = (present - OLDEST_NONCE..=after).rev();
            match bucket_of(app, nonce, past) {
                Some(bucket) if bucket >= before => {
                    return Some(Finding::fine("its nonce is good"));
                }
                Some(bucket) => {
                    let age = (present - bucket) * NONCE_SECONDS;
                    format!("its nonce is {age} s old")
                }
                None => String::from("its nonce is none that was given out here for a day"),
            }
        }
    };
    Some(match is_needed {
        true => Finding::broken(told(Reason::ProofNonce, Some(&detail))),
        false => Finding::weak(detail),
    })
}
