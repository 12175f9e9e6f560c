//! What a DPoP proof says, and which rule it breaks.

use gatepost_protocol::discovery::{USERINFO_PATH, endpoint_url};
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::token::assertion::numeric_date;
use gatepost_protocol::token::dpop_proof::{
    DpopProof, ExpectedProof, MadeFor, NONCE_SECONDS, UnverifiedProof, is_one, nonce_buckets,
    normalised,
};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::KeyThumbprint;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::reason::Reason;
use gatepost_registrar::explanation::{self, Explained, broken};
use gatepost_registration::finding::Finding;
use gatepost_registration::fine;
use gatepost_server::app::App;
use gatepost_server::endpoints::token::dpop::{bucket_of, read_verified};

/// A nonce that is older is told as none of ours.
const OLDEST_NONCE: i64 = 86_400 / NONCE_SECONDS;

/// What was found, with the key that was proved.
#[derive(Default)]
pub struct ExaminedProof {
    pub explained: Explained,
    pub key: Option<KeyThumbprint>,
}

/// A proof that came without the request it is for: it is judged for the request it names.
pub fn alone(app: &App, shown: &str) -> Explained {
    let mut explained = examine(app, &[shown], None, None).explained;
    explained.tell("kind", "DPoP proof");
    explained
}

/// Judges the proof of a request, from the lines of its header. Whether it was used before only the
/// serving processes know. Without an `address` any below the base URL will do.
pub fn examine(
    app: &App,
    lines: &[&str],
    address: Option<&str>,
    client: Option<&Client>,
) -> ExaminedProof {
    let mut examined = ExaminedProof::default();
    let broken_by = match read_verified(lines) {
        _ if lines.is_empty() => client
            .filter(|client| client.requires_dpop)
            .map(|_| broken(Reason::ProofMissing, None)),
        Ok(proof) => examined.judge(app, &proof, address, client).err(),
        Err(reason) => Some(broken(reason, misnamed(lines).as_deref())),
    };
    examined.explained.findings.extend(broken_by);
    examined
}

impl ExaminedProof {
    fn judge(
        &mut self,
        app: &App,
        proof: &UnverifiedProof,
        address: Option<&str>,
        client: Option<&Client>,
    ) -> Result<(), Finding> {
        self.explained.tell("proof.jkt", proof.key.thumbprint());
        let claims = proof.jws.unverified_claims().unwrap_or_default();
        let method = claims.text("htm").unwrap_or_default();
        let named = claims.text("htu").unwrap_or_default();
        let expected = match address {
            Some(address) => ExpectedProof {
                method: "POST",
                address,
            },
            None => ExpectedProof {
                method,
                address: if is_below(app, named) {
                    named
                } else {
                    app.issuer()
                },
            },
        };
        let Some(MadeFor { at, .. }) = proof.made_for() else {
            let judged = proof.judge(expected, app.now());
            let reason = judged.err().unwrap_or(Reason::ProofMalformed);
            return Err(broken(reason, Some(&lacking(&claims))));
        };
        let age = match app.now().seconds() - at.seconds() {
            age @ ..0 => format!("made {} s ahead of now", -age),
            age => format!("{age} s old"),
        };
        let made_for = format!("it is for {method} {named}, and {age}");
        let broken = |reason| broken(reason, Some(&made_for));
        // Whoever asks is later than whoever sent it: all but the age is judged as of then.
        let judged = proof.judge(expected, at).map_err(broken)?;
        let findings = &mut self.explained.findings;
        findings.push(match proof.judge(expected, app.now()) {
            Err(reason) => broken(reason),
            Ok(_) if judged.token_hash.is_none() && goes_with_token(app, named) => {
                let detail = format!("{made_for}; there it needs ath, and has none");
                explanation::broken(Reason::ProofToken, Some(&detail))
            }
            Ok(_) => fine!("its proof is good: {made_for}"),
        });
        findings.extend(nonce(app, &judged, client));
        self.key = Some(judged.key);
        Ok(())
    }
}

/// Whether an address is one below the base URL, however scheme and host are written.
fn is_below(app: &App, address: &str) -> bool {
    let base = normalised(app.issuer().trim_end_matches('/'));
    let below = normalised(address).zip(base);
    let below = below.and_then(|(address, base)| address.strip_prefix(&base).map(str::to_owned));
    below.is_some_and(|path| path.is_empty() || path.starts_with('/'))
}

/// Whether a proof for this address must name the access token that it goes with.
fn goes_with_token(app: &App, address: &str) -> bool {
    normalised(address) == normalised(&endpoint_url(app.issuer(), USERINFO_PATH))
}

/// Which claims a proof lacks, or has in another form than it must.
fn lacking(claims: &JsonObject) -> String {
    let mut lacking = Vec::new();
    for name in ["htm", "htu"] {
        if claims.text(name).is_none() {
            lacking.push(if claims.contains_key(name) {
                format!("its {name} is no text")
            } else {
                format!("it has no {name}")
            });
        }
    }
    match claims.get("iat") {
        None => lacking.push(String::from("it has no iat")),
        Some(at) if numeric_date(at).is_none() => {
            lacking.push(String::from("its iat is no number of seconds"));
        }
        Some(_) => {}
    }
    lacking.join(", ")
}

/// Whether a JWT is meant as a proof: it says so; or it brings its key along and names a
/// request.
pub fn is_meant(jws: &UnverifiedJws) -> bool {
    let claims = jws.unverified_claims().unwrap_or_default();
    let names_request = claims.contains_key("htm") && claims.contains_key("htu");
    is_one(jws) || (names_request && jws.embedded_key().is_some())
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
                    return Some(fine!("its nonce is good"));
                }
                Some(bucket) => {
                    let age = (present - bucket) * NONCE_SECONDS;
                    format!("its nonce is {age} s old")
                }
                None => String::from("its nonce is none that was given out here for a day"),
            }
        }
    };
    Some(if is_needed {
        broken(Reason::ProofNonce, Some(&detail))
    } else {
        Finding::weak(detail)
    })
}
