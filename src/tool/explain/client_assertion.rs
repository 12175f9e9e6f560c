//! What the assertion of a client says, and which rule it breaks: one of its own, or a token of a
//! workload. Whether it was used before is not looked at.

use serde_json::Value;

use super::extension::cut;
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::keys::key_set::KeySet;
use gatepost_protocol::token::assertion::{
    self, AssertionProblem, ExpectedAssertion, is_workload_typ, numeric_date, reason_for,
};
use gatepost_protocol::token::workload_identity;
use gatepost_protocol::words::client::{Client, Profile};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::reason::Reason;
use gatepost_registrar::explanation::broken;
use gatepost_registration::finding::Finding;
use gatepost_registration::weak;
use gatepost_server::app::App;
use gatepost_server::endpoints::token::assertions::{KeySource, verify_by};
use gatepost_server::endpoints::token::client_authentication::{
    OwnAssertion, is_of_workload, keys_for,
};

/// Judges it as the endpoints do.
pub fn judge(app: &App, assertion: &OwnAssertion) -> Finding {
    let OwnAssertion { described, jws } = assertion;
    let client = &described.client;
    let claims = jws.unverified_claims().unwrap_or_default();
    if is_of_workload(client, &claims) {
        return of_workload(app, client, jws, &claims);
    }
    let audiences = app.client_assertion_audiences();
    let expected = ExpectedAssertion::of_client(&client.client_id, &audiences);
    let judged = keys_for(app, client, jws, &claims, app.now())
        .and_then(|keys| verify(client, keys, jws))
        .and_then(|said| assertion::judge(&claims, expected, app.now()).map(|_| said));
    match judged {
        Ok(said) => weak!("the claims of the client's assertion are good; {said}"),
        Err(AssertionProblem::Malformed) => broken(Reason::MalformedClientAssertion, None),
        Err(problem) => {
            let detail = detail(app, client, jws, &claims, problem);
            broken(reason_for(problem), Some(&detail))
        }
    }
}

/// What is in the assertion, and what should be.
fn detail(
    app: &App,
    client: &Client,
    jws: &UnverifiedJws,
    claims: &JsonObject,
    problem: AssertionProblem,
) -> String {
    match problem {
        AssertionProblem::Audience => {
            let taken = match client.profile {
                Some(Profile::Fapi2) => format!("{} as a text", app.issuer()),
                None => app.client_assertion_audiences().join(" or "),
            };
            format!("its aud is {}; taken is {taken}", shown(claims, "aud"))
        }
        AssertionProblem::Parties => format!(
            "its iss is {}, its sub {}; both must be {}",
            shown(claims, "iss"),
            shown(claims, "sub"),
            client.client_id
        ),
        AssertionProblem::Times => times(app, claims),
        AssertionProblem::Algorithm => algorithms(client, jws),
        AssertionProblem::Key if KeySource::of(&client.jwks, &client.jwks_uri).is_none() => {
            String::from("no key is registered")
        }
        AssertionProblem::Key => match &jws.kid {
            Some(kid) => format!("its kid is {}", cut(kid)),
            None => String::from("it has no kid"),
        },
        _ => problem.as_str().to_owned(),
    }
}

/// Chooses the key and verifies the signature, as far as that can be done without asking anybody.
fn verify(
    client: &Client,
    keys: KeySource<'_>,
    jws: &UnverifiedJws,
) -> Result<&'static str, AssertionProblem> {
    let algs = client.assertion_algorithms();
    match keys {
        KeySource::Inline(jwks) => {
            let set = KeySet::parse(jwks).ok_or(AssertionProblem::KeysUnavailable)?;
            verify_by(jws, &set, &algs)?;
            Ok("its signature verifies; whether it was used before is not looked at")
        }
        KeySource::Uri(_) if !algs.contains(&jws.alg) => Err(AssertionProblem::Algorithm),
        KeySource::Uri(_) => Ok(
            "its signature, and whether it was used before, are not looked at: the keys are at \
             jwks_uri",
        ),
    }
}

/// How far from now its times are.
fn times(app: &App, claims: &JsonObject) -> String {
    let now = app.now().seconds();
    let mut told = Vec::new();
    for name in ["exp", "nbf", "iat"] {
        let Some(value) = claims.get(name) else {
            continue;
        };
        told.push(match numeric_date(value).map(|at| at.seconds() - now) {
            None => format!("its {name} is no number of seconds"),
            Some(ahead) if ahead >= 0 => format!("its {name} is {ahead} s ahead"),
            Some(ahead) => format!("its {name} is {} s ago", -ahead),
        });
    }
    if claims.contains_key("exp") {
        told.join(", ")
    } else {
        String::from("it has no exp")
    }
}

fn algorithms(client: &Client, jws: &UnverifiedJws) -> String {
    let taken = client.assertion_algorithms();
    let taken = joined(" or ", taken.iter().map(|algorithm| algorithm.as_str()));
    format!("its alg is {}; taken is {taken}", jws.alg.as_str())
}

fn shown(claims: &JsonObject, name: &str) -> String {
    match claims.get(name) {
        None => String::from("missing"),
        Some(Value::String(text)) => cut(text),
        Some(other) => cut(&other.to_string()),
    }
}

/// A token that another issuer gave to a workload, as far as it can be judged without its keys.
fn of_workload(app: &App, client: &Client, jws: &UnverifiedJws, claims: &JsonObject) -> Finding {
    let unknown = |detail: &str| {
        let detail = format!("{}; {detail}", workload_identity::whose(claims));
        broken(Reason::UnknownWorkload, Some(&detail))
    };
    if claims
        .get("iss")
        .is_some_and(|issuer| issuer == app.issuer())
    {
        return unknown("it is a token of this issuer");
    }
    let Some((index, nearest)) = workload_identity::nearest(&client.federated, claims) else {
        return unknown("federated is empty");
    };
    let names = workload_identity::differing(nearest, claims).join(", ");
    if !names.is_empty() {
        return unknown(&format!(
            "federated[{index}] is nearest, and differs in {names}"
        ));
    }
    if !is_workload_typ(jws.typ.as_deref()) {
        return unknown("its typ is that of no such token");
    }
    let place = format!("federated[{index}], {}", nearest.subject);
    match workload_identity::judge(claims, nearest, app.issuer(), app.now()) {
        Ok(()) => weak!("it fits {place}; its signature is not looked at"),
        Err(reason) => broken(reason, Some(&place)),
    }
}
