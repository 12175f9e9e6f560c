//! `gatepost user link|unlink`: who a user is elsewhere, as the operator knows.

use serde_json::{Value, json};

use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, Run, TENANT};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::protocol::jwt_bearer::is_possible_subject;
use crate::store::catalogue::{self, CatalogueKind, CatalogueRow};
use crate::store::linked_identities::{self, Linked, NewLink};
use crate::store::users::UserRow;

const ISSUER: CommandOption =
    CommandOption { name: "--issuer", value: Some("ISSUER"), meaning: "the other issuer, as in its tokens' iss" };
const SUBJECT: CommandOption =
    CommandOption { name: "--subject", value: Some("SUB"), meaning: "who the user is there, as in its tokens' sub" };

pub(in crate::cli) const LINK: Command = Command {
    name: "user link",
    values: &["USERNAME"],
    options: &[ISSUER, SUBJECT, TENANT],
    summary: "Tells who a user is at an identity provider or assertion issuer.",
    example: "gatepost user link alice --issuer https://login.example.com --subject 248289761001",
    run: Run::Once(link),
};

pub(in crate::cli) const UNLINK: Command = Command {
    name: "user unlink",
    values: &["USERNAME"],
    options: &[ISSUER, SUBJECT, TENANT],
    summary: "Takes such a link away.",
    example: "gatepost user unlink alice --issuer https://login.example.com --subject 248289761001",
    run: Run::Once(unlink),
};

/// Both options, or the usage error.
fn identity(invocation: &Invocation) -> Result<(&str, &str), Failure> {
    let required = |option: &CommandOption| {
        let given = invocation.option(option.name).filter(|text| !text.is_empty() && is_possible_subject(text));
        given.ok_or_else(|| Failure::Usage(format!("{} is required: {}", option.name, option.meaning)))
    };
    Ok((required(&ISSUER)?, required(&SUBJECT)?))
}

fn link(invocation: &Invocation) -> Result<(), Failure> {
    let (issuer, upstream_subject) = identity(invocation)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let provider = provider_of(&catalogue::load(&operator.store)?.value.entries, issuer)?;
    let user = super::named(&operator, invocation, invocation.value(0))?;
    let mut event = audit_event("identity_linked", detail(issuer, upstream_subject));
    event.sub = Some(&user.sub);
    let new = NewLink { issuer, upstream_subject, sub: &user.sub, provider: provider.as_deref() };
    match linked_identities::link(&operator.store, &new, &event)? {
        Linked::Added => output::line(&format!("{} is {} at {issuer}", user.username, upstream_subject.escape_debug())),
        Linked::Taken(owner) if owner == user.sub => output::line("that is so already"),
        Linked::Taken(owner) => Err(Failure::Refused(format!("that identity is linked to the user with sub {owner}"))),
    }
}

fn unlink(invocation: &Invocation) -> Result<(), Failure> {
    let (issuer, upstream_subject) = identity(invocation)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let user: UserRow = super::named(&operator, invocation, invocation.value(0))?;
    let mut event = audit_event("identity_unlinked", detail(issuer, upstream_subject));
    event.sub = Some(&user.sub);
    if !linked_identities::unlink(&operator.store, issuer, upstream_subject, &user.sub, &event)? {
        return Err(Failure::Refused(String::from("that identity is not linked to this user")));
    }
    output::line(&format!("{} is not {} at {issuer} any longer", user.username, upstream_subject.escape_debug()))
}

fn detail(issuer: &str, upstream_subject: &str) -> Value {
    json!({"by": "operator", "issuer": issuer, "upstream_subject": upstream_subject})
}

/// The name of the identity provider with that issuer; none for an assertion issuer. Links to anybody else would only
/// wait for a mistake.
fn provider_of(entries: &[CatalogueRow], issuer: &str) -> Result<Option<String>, Failure> {
    let has_issuer = |entry: &&CatalogueRow| entry.document.get("issuer").and_then(Value::as_str) == Some(issuer);
    let of_kind = |kind| entries.iter().filter(move |entry| entry.kind == kind).find(has_issuer);
    match (of_kind(CatalogueKind::IdentityProvider), of_kind(CatalogueKind::AssertionIssuer)) {
        (Some(provider), _) => Ok(Some(provider.name.clone())),
        (None, Some(_)) => Ok(None),
        (None, None) => Err(Failure::Refused(String::from(
            "no identity provider and no assertion issuer is registered with that issuer",
        ))),
    }
}
