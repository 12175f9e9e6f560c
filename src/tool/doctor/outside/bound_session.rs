//! Whether a browser can refresh the binding of its session: what it sends arrives, and what it
//! gets is the server's, whole.

use std::time::Duration;

use serde_json::json;

use super::{Visitor, all, outcome};
use gatepost_protocol::keys::jwt::{assemble, signing_input};
use gatepost_protocol::login::bound_session::{
    BoundIdentifier, REFRESH_PATH, RefreshChallenge, TYP,
};
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::instant::Instant;
use gatepost_registration::finding::Finding;
use gatepost_server::endpoints::cookies::bound_name;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::keys::signing::{SigningKey, generate};
use gatepost_server::outbound::{OutboundAnswer, OutboundRequest};

/// How long the session lives that is made up here.
const LIFETIME: Duration = Duration::from_secs(60);

pub fn judge(visitor: &Visitor<'_>, sealer: &Sealer, now: Instant, findings: &mut Vec<Finding>) {
    let refreshed = refresh(visitor, sealer, now);
    let fault = refreshed.as_ref().err().map_or("", String::as_str);
    judge!(findings, "proxy", {
        refreshed.is_err()
            => broken "{fault}, so no session stays bound to its browser: have it pass \
                       {REFRESH_PATH} and its headers on as they are",
    } else "bound sessions are refreshed");
}

/// Does as a browser does: asks for a challenge, and comes again with the proof of a key. There is
/// no such session, which a refresh does not ask for.
fn refresh(visitor: &Visitor<'_>, sealer: &Sealer, now: Instant) -> Result<(), String> {
    let key = SigningKey::from_pkcs8(SigningAlgorithm::Es256, &generate(SigningAlgorithm::Es256)?)?;
    let identifier = BoundIdentifier {
        sid: Sid::of_day(now.day(), random::bytes()),
        key: key.public_key().clone(),
        ends_at: now.plus(LIFETIME),
    };
    let cookie = bound_name(visitor.config, &identifier.sid);
    let identifier = sealer.seal_text(BoundIdentifier::PREFIX, &identifier);
    let challenge = challenge(post(visitor, &identifier, None, 403)?, sealer)?;
    let claims = json!({"jti": challenge});
    let proof = signing_input(key.algorithm(), key.kid(), TYP, &claims);
    let signature = key.sign(proof.as_bytes())?;
    let proof = assemble(proof, &signature);
    let answer = post(visitor, &identifier, Some(&proof), 200)?;
    match all(&answer, "set-cookie")[..] {
        [set] if set.starts_with(&format!("{cookie}=")) => {}
        [] => return Err(String::from("it drops the cookie of a refresh")),
        [..] => return Err(String::from("it changes the cookies of a refresh")),
    }
    if answer.body.is_empty() {
        Ok(())
    } else {
        Err(String::from("it puts a page in the place of a refresh"))
    }
}

/// One of the two requests of a refresh, which ought to get that status.
fn post(
    visitor: &Visitor<'_>,
    identifier: &str,
    proof: Option<&str>,
    expected: u16,
) -> Result<OutboundAnswer, String> {
    let address = format!("{}{REFRESH_PATH}", visitor.base);
    let mut request =
        OutboundRequest::post_form(&address, &[]).header("Sec-Secure-Session-Id", identifier);
    if let Some(proof) = proof {
        request = request.header("Secure-Session-Response", proof);
    }
    let answer = visitor.outbound.send_to_ourselves(&request);
    match answer {
        Ok(answer) if answer.status == expected => Ok(answer),
        answer => {
            let lost = match (&answer, proof) {
                (Ok(answer), None) if answer.status == 401 => {
                    "it drops or cuts Sec-Secure-Session-Id: "
                }
                (Ok(answer), Some(_)) if [401, 403].contains(&answer.status) => {
                    "it drops or cuts Secure-Session-Response: "
                }
                _ => "",
            };
            let got = outcome(answer);
            Err(format!(
                "{lost}a POST to {REFRESH_PATH} gets {got}, not {expected}"
            ))
        }
    }
}

/// The challenge that came back, as it was sealed.
fn challenge(answer: OutboundAnswer, sealer: &Sealer) -> Result<String, String> {
    let sent = all(&answer, "secure-session-challenge");
    let challenge = sent
        .first()
        .and_then(|sent| sent.split('"').nth(1))
        .unwrap_or_default();
    let opened: Option<RefreshChallenge> = sealer.open_text(RefreshChallenge::PREFIX, challenge);
    match opened {
        Some(_) if sent.len() == 1 => Ok(challenge.to_owned()),
        _ => Err(String::from("it drops or changes Secure-Session-Challenge")),
    }
}
