//! What the assertion of a client says, and which rule it breaks: one of its own, or a token of a
//! workload. Whether it was used before is not looked at.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::extension::cut;
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::keys::key_set::KeySet;
use gatepost_protocol::registration::problem::Finding;
use gatepost_protocol::token::assertion::{
    self, AssertionProblem, ExpectedAssertion, is_client_assertion_typ, is_workload_typ,
    judge_for_fapi2, numeric_date, reason_for,
};
use gatepost_protocol::token::workload_identity;
use gatepost_protocol::words::client::{Client, Profile};
use gatepost_protocol::words::reason::Reason;
use gatepost_registrar::explanation::told;
use gatepost_server::app::App;
use gatepost_server::app::metadata_documents::reason_for as undescribed;
use gatepost_server::endpoints::token::assertions::{KeySource, verify_by};
use gatepost_server::registry::RegisteredClient;

/// Judges it as the endpoints do. The error is a client that cannot be known.
pub(super) fn judge(
    app: &App,
    registered: Option<&Arc<RegisteredClient>>,
    jws: &UnverifiedJws,
) -> Result<Finding, Reason> {
    let registered = registered.ok_or(Reason::UnknownClientAtToken)?;
    let described = app
        .described(registered)
        .map_err(|problem| undescribed(&problem).unwrap_or(Reason::Overloaded))?;
    let client = &described.client;
    let claims = jws.unverified_claims().unwrap_or_default();
    let name = client.client_id.as_str();
    let is_own = claims.get("iss").is_some_and(|issuer| issuer == name);
    Ok(match !is_own && !client.federated.is_empty() {
        true => of_workload(app, client, jws, &claims),
        false => of_client(app, client, jws, &claims),
    })
}

/// One that the client signed itself. A registered key also verifies its signature; keys at an
/// address are not fetched.
fn of_client(
    app: &App,
    client: &Client,
    jws: &UnverifiedJws,
    claims: &Map<String, Value>,
) -> Finding {
    let refused = |reason, detail: Option<&str>| Finding::broken(told(reason, detail));
    if !is_client_assertion_typ(jws.typ.as_deref()) {
        return refused(Reason::MalformedClientAssertion, None);
    }
    let Some(keys) = KeySource::of(&client.jwks, &client.jwks_uri) else {
        return refused(Reason::ClientAssertionKey, Some("no key is registered"));
    };
    let is_fapi2 = client.profile == Some(Profile::Fapi2);
    let name = client.client_id.as_str();
    let audiences = app.client_assertion_audiences();
    let expected = ExpectedAssertion {
        issuer: name,
        subject: Some(name),
        audiences: &audiences,
    };
    let for_profile = match is_fapi2 {
        true => judge_for_fapi2(claims, app.issuer(), app.now()),
        false => Ok(()),
    };
    let judged = for_profile
        .and_then(|()| verify(client, keys, jws))
        .and_then(|said| assertion::judge(claims, expected, app.now()).map(|_| said));
    match judged {
        Ok(said) => Finding::weak(format!(
            "the claims of the client's assertion are good; {said}"
        )),
        Err(problem) => {
            let taken = match is_fapi2 {
                true => format!("{} as a text", app.issuer()),
                false => audiences.join(" or "),
            };
            let detail = match problem {
                AssertionProblem::Audience => {
                    format!("its aud is {}; taken is {taken}", shown(claims, "aud"))
                }
                AssertionProblem::Parties => format!(
                    "its iss is {}, its sub {}; both must be {name}",
                    shown(claims, "iss"),
                    shown(claims, "sub")
                ),
                AssertionProblem::Times => times(app, claims),
                AssertionProblem::Algorithm => algorithms(client, jws),
                AssertionProblem::Key => match &jws.kid {
                    Some(kid) => format!("its kid is {}", cut(kid)),
                    None => String::from("it has no kid"),
                },
                _ => problem.as_str().to_owned(),
            };
            refused(reason_for(problem), Some(&detail))
        }
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
fn times(app: &App, claims: &Map<String, Value>) -> String {
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
    match claims.contains_key("exp") {
        true => told.join(", "),
        false => String::from("it has no exp"),
    }
}

fn algorithms(client: &Client, jws: &UnverifiedJws) -> String {
    let taken = client.assertion_algorithms();
    let taken: Vec<&str> = taken.iter().map(|algorithm| algorithm.as_str()).collect();
    format!(
        "its alg is {}; taken is {}",
        jws.alg.as_str(),
        taken.join(" or ")
    )
}

fn shown(claims: &Map<String, Value>, name: &str) -> String {
    match claims.get(name) {
        None => String::from("missing"),
        Some(Value::String(text)) => cut(text),
        Some(other) => cut(&other.to_string()),
    }
}

/// A token that another issuer gave to a workload, as far as it can be judged without its keys.
fn of_workload(
    app: &App,
    client: &Client,
    jws: &UnverifiedJws,
    claims: &Map<String, Value>,
) -> Finding {
    if claims
        .get("iss")
        .is_some_and(|issuer| issuer == app.issuer())
    {
        return unknown(claims, "it is a token of this issuer");
    }
    let Some((index, nearest)) = workload_identity::nearest(&client.federated, claims) else {
        return unknown(claims, "federated is empty");
    };
    let names = workload_identity::differing(nearest, claims);
    if !names.is_empty() {
        let names = names.join(", ");
        let detail = format!("federated[{index}] is nearest, and differs in {names}");
        return unknown(claims, &detail);
    }
    if !is_workload_typ(jws.typ.as_deref()) {
        return unknown(claims, "its typ is that of no such token");
    }
    let place = format!("federated[{index}], {}", nearest.subject);
    match workload_identity::judge(claims, nearest, app.issuer(), app.now()) {
        Ok(()) => Finding::weak(format!("it fits {place}; its signature is not looked at")),
        Err(reason) => Finding::broken(told(reason, Some(&place))),
    }
}

fn unknown(claims: &Map<String, Value>, detail: &str) -> Finding {
    let whose = workload_identity::whose(claims);
    let detail = format!("{whose}; {detail}");
    Finding::broken(told(Reason::UnknownWorkload, Some(&detail)))
}
