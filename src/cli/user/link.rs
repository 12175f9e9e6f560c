//! `gatepost user link|unlink`: who a user is elsewhere, as the operator knows.

use serde_json::{Value, json};

use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, Run, TENANT};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output;
use crate::protocol::registration::{Kind, provider};
use crate::protocol::token::jwt_bearer::is_possible_subject;
use crate::protocol::words::nearest::hint;
use crate::store::catalogue::{self, CatalogueRow};
use crate::store::linked_identities::{self, Link, Linked, Unlinked};
use crate::store::users::UserRow;

const ISSUER: CommandOption = CommandOption {
    name: "--issuer",
    value: Some("ISSUER"),
    meaning: "the other issuer, as in its tokens' iss; without OpenID its userinfo_endpoint",
};
const SUBJECT: CommandOption =
    CommandOption { name: "--subject", value: Some("SUB"), meaning: "who the user is there, as in its tokens' sub" };

pub(in crate::cli) const LINK: Command = Command {
    name: "user link",
    values: &["USERNAME", ISSUER.name, SUBJECT.name],
    options: &[ISSUER, SUBJECT, TENANT],
    summary: "Tells who a user is at an identity provider or assertion issuer.",
    example: "gatepost user link alice --issuer https://login.example.com --subject 248289",
    run: Run::Once(link),
};

pub(in crate::cli) const UNLINK: Command = Command {
    name: "user unlink",
    values: &["USERNAME", ISSUER.name, SUBJECT.name],
    options: &[ISSUER, SUBJECT, TENANT],
    summary: "Takes such a link away.",
    example: "gatepost user unlink alice --issuer https://login.example.com --subject 248289",
    run: Run::Once(unlink),
};

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
    let new = Link { issuer, upstream_subject, sub: &user.sub, provider: provider.as_deref() };
    match linked_identities::link(&operator.store, &new, &event)? {
        Linked::Added => {
            output::line(&format!("{} is {} at {issuer}", user.designation(), upstream_subject.escape_debug()))
        }
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
    let identity = Link { issuer, upstream_subject, sub: &user.sub, provider: None };
    match linked_identities::unlink(&operator.store, &identity, None, &event)? {
        Unlinked::Done => {
            let subject = upstream_subject.escape_debug();
            output::line(&format!("{} is not {subject} at {issuer} any longer", user.designation()))
        }
        Unlinked::NotTheirs | Unlinked::LastWayIn => {
            Err(Failure::Refused(String::from("that identity is not linked to this user")))
        }
    }
}

fn detail(issuer: &str, upstream_subject: &str) -> Value {
    json!({"by": "operator", "issuer": issuer, "upstream_subject": upstream_subject})
}

fn providers_of<'a>(entries: &'a [CatalogueRow], authority: &str) -> impl Iterator<Item = &'a str> {
    let of_kind = entries.iter().filter(|entry| entry.kind == Kind::IdentityProvider);
    let is_its = move |entry: &&CatalogueRow| {
        provider::from_json(&entry.document, &entry.name).is_ok_and(|provider| provider.authority() == authority)
    };
    of_kind.filter(is_its).map(|entry| entry.name.as_str())
}

/// `None` for an assertion issuer. Links to anybody else would only wait for a mistake.
fn provider_of(entries: &[CatalogueRow], issuer: &str) -> Result<Option<String>, Failure> {
    let mut assertion_issuers = entries.iter().filter(|entry| entry.kind == Kind::AssertionIssuer);
    let is_issuer = |entry: &CatalogueRow| entry.document.get("issuer").and_then(Value::as_str) == Some(issuer);
    match providers_of(entries, issuer).next() {
        Some(provider) => Ok(Some(provider.to_owned())),
        None if assertion_issuers.any(is_issuer) => Ok(None),
        None => {
            let known = entries.iter().filter_map(|entry| {
                let of_openid = entry.document.get("issuer");
                of_openid.or_else(|| entry.document.get("userinfo_endpoint")).and_then(Value::as_str)
            });
            let nearest = hint(issuer, known);
            let rule = "no identity provider and no assertion issuer is registered with that issuer";
            Err(Failure::Refused(format!("{rule}{nearest}")))
        }
    }
}
