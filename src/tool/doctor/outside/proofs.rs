//! Whether proofs of possession (RFC 9449) come through at each address that takes them, and
//! whether what the server answers about them comes back.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{SCIM_USERS, Visitor, all, lengths, outcome, told};
use crate::doctor::{Nonces, Proving, some};
use gatepost_protocol::discovery::{
    PUSHED_REQUEST_PATH, REGISTRATION_EXPORT_PATH, TOKEN_PATH, USERINFO_PATH,
};
use gatepost_protocol::token::dpop_proof::NONCE_HEADER;
use gatepost_protocol::words::joined::joined;
use gatepost_registration::finding::Finding;
use gatepost_server::endpoints::metrics::AS_REFUSAL;
use gatepost_server::outbound::{OutboundAnswer, OutboundError};

/// A proof with a long `htu`, a nonce and an `ath` has fewer characters.
const LONG_PROOF: usize = 1_200;

/// What happened, each with the addresses at which it did.
type Faults = BTreeMap<String, Vec<&'static str>>;

fn told_faults(faults: &Faults) -> String {
    let told = |(what, paths): (&String, &Vec<&str>)| format!("{what} at {}", paths.join(", "));
    joined("; ", faults.iter().map(told))
}

#[derive(Default)]
struct Seen {
    /// A proof does not arrive as it was sent.
    lost: Faults,
    /// One does, but two do not arrive as two.
    mingled: Faults,
    /// A client cannot learn the nonce.
    unoffered: Faults,
    /// It can, but only from a refusal.
    unrenewed: Faults,
}

pub fn judge(
    visitor: &Visitor<'_>,
    nonces: &mut Nonces,
    proving: &Proving,
    findings: &mut Vec<Finding>,
) {
    let mut seen = Seen::default();
    let config = visitor.config;
    let scim = config.scim.then_some(SCIM_USERS);
    let registration = config.admin_api.then_some(REGISTRATION_EXPORT_PATH);
    let paths = [TOKEN_PATH, PUSHED_REQUEST_PATH, USERINFO_PATH].into_iter();
    for path in paths.chain(scim).chain(registration) {
        try_requests(visitor, path, nonces, &mut seen);
    }
    let unadmitted = visitor.ask(USERINFO_PATH, &[]);
    let challenges = unadmitted.map_or(0, |answer| all(&answer, "www-authenticate").len());
    let faults = [seen.lost, seen.mingled, seen.unoffered, seen.unrenewed];
    let [lost, mingled, unoffered, unrenewed] = faults.map(|faults| told_faults(&faults));
    let is_vital = !proving.all.is_empty();
    let is_nonce_vital = !proving.with_nonce.is_empty();
    let provers = some(&proving.all);
    let with_nonce = some(&proving.with_nonce);
    judge!(findings, "proxy", {
        !lost.is_empty() && is_vital
            => broken "{lost}, so clients that prove their key fail, here {provers}: have it pass \
                       DPoP on as it is",
        !lost.is_empty() && !is_vital
            => weak "{lost}, so clients that prove their key fail: have it pass DPoP on as it is",
        !mingled.is_empty()
            => weak "{mingled}, so a request with two proofs is not seen to have two: have it pass \
                     DPoP on as it is",
        !unoffered.is_empty() && is_nonce_vital
            => broken "{unoffered}, so clients that need a nonce get no good one, here \
                       {with_nonce}: have it pass that on as it is",
        !unoffered.is_empty() && !is_nonce_vital
            => weak "{unoffered}, so clients that need a nonce get no good one: have it pass that \
                     on as it is",
        !unrenewed.is_empty()
            => weak "{unrenewed}, so clients that need a nonce get the next one by a refusal: have \
                     it pass that on as it is",
        challenges != 2
            => weak "of two lines of WWW-Authenticate {challenges} come back with 401: have it \
                     pass them on as they are",
    } else "proofs of possession arrive, two lines as two, and their nonces and challenges come \
            back");
}

/// Asks with two proofs, and once more for a refusal: a proxy may treat its fields otherwise.
fn try_requests(visitor: &Visitor<'_>, path: &'static str, nonces: &mut Nonces, seen: &mut Seen) {
    let first = "a".repeat(LONG_PROOF);
    let second = "a".repeat(LONG_PROOF - 1);
    let address = format!("{path}?doctor={}", nonces.next());
    let answer = visitor.ask(&address, &[("DPoP", &first), ("DPoP", &second)]);
    let address = format!("{path}?doctor={}{AS_REFUSAL}", nonces.next());
    let refusal = visitor.ask(&address, &[]);
    let with_200 = told(&answer).and_then(|_| fault_of_nonce(&answer));
    // A proxy with refusals of its own is told of where it is asked for real ones.
    let is_ours = is_our_refusal(&refusal);
    let with_400 = is_ours.then(|| fault_of_nonce(&refusal)).flatten();
    match told(&answer) {
        Some(told) => judge_arrived(&lengths(&told, "DPoP"), path, seen),
        None => {
            let got = outcome(answer);
            let what = format!("a DPoP of {LONG_PROOF} characters gets {got}");
            seen.lost.entry(what).or_default().push(path);
        }
    }
    match (with_200, with_400) {
        (Some(what), None) if is_ours => {
            seen.unrenewed
                .entry(format!("{what} answers with 200"))
                .or_default()
                .push(path);
        }
        (Some(what), _) => seen
            .unoffered
            .entry(format!("{what} answers"))
            .or_default()
            .push(path),
        (None, Some(what)) => seen
            .unoffered
            .entry(format!("{what} answers with 400"))
            .or_default()
            .push(path),
        (None, None) => {}
    }
}

/// Judges how long the lines were that arrived. Their order is nobody's concern.
fn judge_arrived(arrived: &[u64], path: &'static str, seen: &mut Seen) {
    let sent = [LONG_PROOF as u64 - 1, LONG_PROOF as u64];
    let whole: u64 = sent.iter().sum();
    let length: u64 = arrived.iter().sum();
    let number = arrived.len();
    match arrived {
        [one, other] if sent == [*one.min(other), *one.max(other)] => {}
        // Joined by a comma, or one of them.
        [one] if *one >= whole || sent.contains(one) => {
            let what = format!("of two lines of DPoP {number} arrives");
            seen.mingled.entry(what).or_default().push(path);
        }
        [_] | [_, _] => {
            let what = format!("of DPoP {length} of {whole} characters arrive");
            seen.lost.entry(what).or_default().push(path);
        }
        _ => {
            let what = format!("of two lines of DPoP {number} arrive");
            seen.lost.entry(what).or_default().push(path);
        }
    }
}

fn is_our_refusal(answer: &Result<OutboundAnswer, OutboundError>) -> bool {
    let told = answer.as_ref().ok().and_then(OutboundAnswer::json);
    told.as_ref()
        .and_then(|told| told.get("lengths"))
        .is_some_and(Value::is_object)
}

/// What is wrong with the nonce that came back, if anything.
fn fault_of_nonce(answer: &Result<OutboundAnswer, OutboundError>) -> Option<&'static str> {
    let answer = answer.as_ref().ok()?;
    match all(answer, NONCE_HEADER)[..] {
        ["doctor"] => None,
        [] => Some("it drops DPoP-Nonce from"),
        [_] => Some("it changes DPoP-Nonce in"),
        [..] => Some("it repeats DPoP-Nonce in"),
    }
}
