//! Sign-in flows in which people must have a second factor. Here only people who have one are
//! asked for it, unless a setting or the client says more.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Import, Read, Row};
use super::is_among;

/// What asks for a second factor, or for a passkey.
const FACTORS: &str = "\
    auth-otp-form auth-conditional-otp-form auth-recovery-authn-code-form \
    direct-grant-validate-otp webauthn-authenticator webauthn-authenticator-passwordless";

/// What signs in people who proved themselves before, or somewhere else.
const FROM_ELSEWHERE: &str = "auth-cookie auth-spnego identity-provider-redirector";

/// The condition that lets in people who have no factor.
const IF_CONFIGURED: &str = "conditional-user-configured";

const IN_BROWSER: &str = "\
    its second factor is REQUIRED: there everybody whom its conditions choose must have one. Here \
    only people who have one are asked for it: set GATEPOST_MINIMUM_ACR=2, or minimum_acr with \
    clients";
const IN_PASSWORD_GRANT: &str = "\
    its second factor is REQUIRED: there everybody whom its conditions choose must send a code. \
    Here the grant password takes none: it refuses people who have a second factor, and takes the \
    others by the password alone, unless minimum_acr refuses them";

struct Execution {
    requirement: String,
    /// What it does itself; empty where it is a flow.
    authenticator: String,
    /// The flow that it is.
    flow: String,
}

/// The executions of each flow, by its name and by its id. Those that are disabled are left out.
type Flows = BTreeMap<String, Vec<Execution>>;

/// Notes the flows in use that want a second factor of people who have none.
pub fn note_factors(realm: &Row<'_>, to: &mut Import) -> Read {
    let mut flows = Flows::new();
    let mut names = BTreeMap::new();
    for flow in realm.rows("authenticationFlows")? {
        let name = flow.required("alias")?;
        if let Some(id) = flow.text("id")? {
            flows.insert(id.clone(), executions(&flow)?);
            names.insert(id, name.clone());
        }
        flows.insert(name, executions(&flow)?);
    }
    for (flow, note) in in_use(realm)? {
        if asks(&flow, &flows, &mut BTreeSet::new()) {
            let name = names.get(&flow).unwrap_or(&flow);
            to.note(&format!("flow {name}"), note);
        }
    }
    Ok(())
}

fn executions(flow: &Row<'_>) -> Read<Vec<Execution>> {
    let mut all = Vec::new();
    for execution in flow.rows("authenticationExecutions")? {
        let text = |key: &str| execution.text(key).map(Option::unwrap_or_default);
        all.push(Execution {
            requirement: text("requirement")?,
            authenticator: text("authenticator")?,
            flow: text("flowAlias")?,
        });
    }
    all.retain(|execution| execution.requirement != "DISABLED");
    Ok(all)
}

/// The flows by which somebody signs in, each with what to note where it asks for a factor.
fn in_use(realm: &Row<'_>) -> Read<Vec<(String, &'static str)>> {
    let of_browser = realm.text("browserFlow")?;
    let of_password = realm.text("directGrantFlow")?;
    let mut in_use = vec![
        (of_browser.unwrap_or_else(|| "browser".into()), IN_BROWSER),
        (
            of_password.unwrap_or_else(|| "direct grant".into()),
            IN_PASSWORD_GRANT,
        ),
    ];
    for provider in realm.rows("identityProviders")? {
        if let Some(after) = provider.text("postBrokerLoginFlowAlias")? {
            in_use.push((after, IN_BROWSER));
        }
    }
    for client in realm.rows("clients")? {
        let Some(own) = client.nested("authenticationFlowBindingOverrides")? else {
            continue;
        };
        for (key, note) in [("browser", IN_BROWSER), ("direct_grant", IN_PASSWORD_GRANT)] {
            if let Some(flow) = own.text(key)? {
                in_use.push((flow, note));
            }
        }
    }
    Ok(in_use)
}

/// Whether nobody comes through without a second factor. Conditions count in a flow that is
/// CONDITIONAL alone, and ALTERNATIVE ones only where nothing beside them is REQUIRED.
fn asks<'f>(name: &'f str, flows: &'f Flows, seen: &mut BTreeSet<&'f str>) -> bool {
    let Some(all) = flows.get(name).filter(|_| seen.insert(name)) else {
        return false;
    };
    let mut steps: Vec<&Execution> = all.iter().filter(|step| !is_condition(step)).collect();
    if steps.iter().any(|step| step.requirement != "ALTERNATIVE") {
        steps.retain(|step| step.requirement != "ALTERNATIVE");
        return steps.iter().any(|step| step_asks(step, flows, seen));
    }
    steps.retain(|step| is_way(step, flows, &mut BTreeSet::new()));
    !steps.is_empty() && steps.iter().all(|step| step_asks(step, flows, seen))
}

fn step_asks<'f>(step: &'f Execution, flows: &'f Flows, seen: &mut BTreeSet<&'f str>) -> bool {
    if is_among(FACTORS, &step.authenticator) {
        return true;
    }
    let mut within = flows.get(&step.flow).into_iter().flatten();
    let is_for_others = step.requirement == "CONDITIONAL"
        && within.any(|condition| condition.authenticator == IF_CONFIGURED);
    !is_for_others && asks(&step.flow, flows, seen)
}

fn is_condition(step: &Execution) -> bool {
    step.authenticator.starts_with("conditional-")
}

/// Whether people prove themselves in it, and do not only come from elsewhere.
fn is_way<'f>(step: &'f Execution, flows: &'f Flows, seen: &mut BTreeSet<&'f str>) -> bool {
    if !step.authenticator.is_empty() {
        return !is_condition(step) && !is_among(FROM_ELSEWHERE, &step.authenticator);
    }
    let is_new = step.requirement != "CONDITIONAL" && seen.insert(&step.flow);
    let inner = flows.get(&step.flow).filter(|_| is_new);
    inner
        .into_iter()
        .flatten()
        .any(|step| is_way(step, flows, seen))
}
