//! `gatepost user show`.

use serde_json::{Value, json};

use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, JSON, Run, TENANT};
use crate::cli::failure::Failure;
use crate::cli::idp;
use crate::cli::operator::Operator;
use crate::cli::output;
use crate::protocol::registration::provider::IdentityProvider;
use crate::store::linked_identities::{self, LinkedIdentity};
use crate::store::{grants, sessions};

pub(in crate::cli) const SHOW: Command = Command {
    name: "user show",
    values: &["USERNAME"],
    options: &[TENANT, JSON],
    summary: "Shows one user: names, claims, identities elsewhere, and how many sessions and grants of theirs live.",
    example: "gatepost user show alice",
    run: Run::Once(run),
};

const MOST: i64 = 1_000;

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = super::named(&operator, invocation, invocation.value(0))?;
    let sessions = sessions::list(&operator.store, None, Some(&user.sub), MOST)?;
    let grants = grants::list(&operator.store, None, Some(&user.sub), None, MOST)?;
    let identities = linked_identities::of_user(&operator.store, &user.sub)?;
    let providers = idp::known(&operator)?;
    let identities: Vec<Value> = identities.iter().map(|one| identity(one, &providers)).collect();
    let (_, mut value) = super::row(&user);
    if let Some(members) = value.as_object_mut() {
        members.insert(String::from("sessions"), json!(sessions.len()));
        members.insert(String::from("grants"), json!(grants.len()));
        members.insert(String::from("identities"), json!(identities));
    }
    output::object(invocation.has(JSON.name), &value)
}

/// With the providers that are registered with its issuer now: the name it was linked under may stand for another one since.
fn identity(identity: &LinkedIdentity, providers: &[IdentityProvider]) -> Value {
    let of_issuer = providers.iter().filter(|provider| provider.authority() == identity.issuer);
    let names: Vec<&str> = of_issuer.map(|provider| provider.name.as_str()).collect();
    json!({"issuer": identity.issuer, "subject": identity.upstream_subject, "providers": names})
}
