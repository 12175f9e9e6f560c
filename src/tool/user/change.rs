//! `gatepost user role|set|disable|enable|until|remove|link|unlink`: what changes about somebody.

use serde_json::{Value, json};

use super::{judged, missing, typed};
use crate::arguments::Invocation;
use crate::input;
use crate::operator::Operator;
use crate::output::{self, CommandResult, Failure, misuse, note, refuse, say};
use crate::statements::user_names;
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::registration::user::{is_possible_claim, valid_until};
use gatepost_protocol::registration::verified_address;
use gatepost_protocol::token::jwt_bearer::is_possible_subject;
use gatepost_protocol::words::identifiers::TenantName;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_protocol::words::strength::Strength;
use gatepost_registrar::enactment::{note_shared_address, remove_user};
use gatepost_registrar::events::{told_field, told_link, user_event};
use gatepost_registrar::statements::user_changes;
use gatepost_registration::plan::FieldChange;
use gatepost_registration::user::Identity;
use gatepost_server::pages::second_factor::factor_name;
use gatepost_store::authenticators::{Authenticator, RemovedFactors};
use gatepost_store::linked_identities::{self, Linked, Unlinked};
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::users::UserRow;
use gatepost_store::{
    authenticators,
    catalogue::{self, CatalogueRow},
};

fn change<T>(
    invocation: &Invocation,
    change: impl FnOnce(&mut RegistryWriter<'_>, UserRow) -> CommandResult<T>,
) -> CommandResult<T> {
    let operator = Operator::open(invocation)?;
    let username = invocation.value(0);
    let tenant = invocation.option("--tenant").map(TenantName::new);
    operator.store.change_registry(|writer| {
        let found = user_names::user_by_name(writer, tenant.as_ref(), username)?;
        change(writer, found.ok_or_else(|| missing(username))?)
    })
}

/// The password stays what it is meanwhile.
fn write(writer: &mut RegistryWriter<'_>, user: UserRow, detail: Value) -> CommandResult<UserRow> {
    let user = UserRow {
        password_hash: None,
        ..user
    };
    user_changes::update_user(writer, &user)?;
    writer.audit(&user_event("user_changed", &user.sub, detail))?;
    note_shared_address(writer, &user)?;
    Ok(user)
}

pub fn enable(invocation: &Invocation) -> CommandResult {
    set_enabled(invocation, true)
}

pub fn disable(invocation: &Invocation) -> CommandResult {
    set_enabled(invocation, false)
}

fn set_enabled(invocation: &Invocation, enabled: bool) -> CommandResult {
    let text = change(invocation, |writer, user| {
        if user.enabled == enabled {
            writer.confirm()?;
            let word = if enabled { "enabled" } else { "disabled" };
            return Ok(format!("{} is {word} already", user.designation()));
        }
        let detail = json!({"old": {"enabled": !enabled}, "new": {"enabled": enabled}});
        let user = write(writer, UserRow { enabled, ..user }, detail)?;
        let done = if enabled {
            "can sign in again"
        } else {
            "cannot sign in any longer; what was signed in is over"
        };
        Ok(format!("{} {done}", user.designation()))
    })?;
    say(text)
}

/// Until when they are there.
pub fn until(invocation: &Invocation) -> CommandResult {
    let valid_until = match invocation.value(1) {
        "never" => None,
        text => Some(
            valid_until(text)
                .or_else(|rule| misuse(format!("\"{}\" {rule}; or never", text.escape_debug())))?,
        ),
    };
    let text = change(invocation, |writer, user| {
        if user.valid_until == valid_until {
            writer.confirm()?;
            return Ok(format!("that is so of {} already", user.designation()));
        }
        let told = |end: Option<Instant>| json!({"valid_until": end.map(output::time)});
        let detail = json!({"old": told(user.valid_until), "new": told(valid_until)});
        let user = UserRow {
            valid_until,
            ..user
        };
        let user = write(writer, user, detail)?;
        let name = user.designation();
        Ok(match valid_until {
            Some(end) => {
                let end = output::time(end);
                format!(
                    "{name} can sign in until {end}; then what was signed in is over, at once \
                         where that is past"
                )
            }
            None => format!("{name} can sign in without an end"),
        })
    })?;
    say(text)
}

/// Lists them, or removes one or all.
pub fn factors(operator: &Operator) -> CommandResult {
    let user = typed(operator)?;
    let all = authenticators::list(&operator.store, &user.sub, true)?;
    let (codes, factors): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|one| one.kind == FactorKind::RecoveryCode);
    let is_all = operator.has("--remove-all");
    let (removed, left) = match operator.option("--remove") {
        None if !is_all => return list_factors(operator, &factors, codes.len()),
        None => (None, Strength::SignedIn),
        Some(id) => {
            let (named, others): (Vec<_>, Vec<_>) =
                factors.into_iter().partition(|one| factor_name(one) == id);
            let removed = named.into_iter().next();
            let missing = || {
                Failure::Refused(format!(
                    "{} has no factor \"{}\"",
                    user.designation(),
                    id.escape_debug()
                ))
            };
            (
                Some(operator.confirmed(removed.ok_or_else(missing))?),
                authenticators::strongest(&others),
            )
        }
    };
    let told = removed.as_ref().map_or("all", |one| one.kind.as_str());
    let question = format!(
        "This removes second factors of {} and ends their sessions, grants and tokens.",
        user.designation()
    );
    input::confirm(operator, &question)?;
    let event = user_event(
        "factor_removed",
        &user.sub,
        json!({"by": "operator", "factor": told}),
    );
    let removed = RemovedFactors {
        factor: removed.as_ref(),
        strongest: left,
    };
    if !authenticators::remove(&operator.store, &user, removed, None, &event)? {
        return refuse("the user was changed meanwhile: look again");
    }
    say!(
        "removed; sessions, grants and tokens of {} are over",
        user.designation()
    )
}

fn list_factors(invocation: &Invocation, factors: &[Authenticator], codes: usize) -> CommandResult {
    let mut rows: Vec<Value> = factors.iter().map(shown).collect();
    if codes > 0 {
        let name = format!("{codes} left");
        rows.push(json!({"kind": FactorKind::RecoveryCode.as_str(), "name": name}));
    }
    output::list(invocation, rows)
}

fn shown(factor: &Authenticator) -> Value {
    json!({
        "kind": factor.kind.as_str(),
        "id": factor_name(factor),
        "name": factor.name,
        "created_at": output::time(factor.created_at),
        "used_at": factor.used_at.map(output::time),
    })
}

pub fn remove(operator: &Operator) -> CommandResult {
    let user = operator.confirmed(typed(operator))?;
    let name = user.designation();
    let sub = &user.sub;
    input::confirm(
        operator,
        &format!("This removes {name} for good; sub {sub} is never given again."),
    )?;
    operator
        .store
        .change_registry(|writer| remove_user(writer, sub))?;
    say!("removed {name}; sub {sub} is never given again")
}

pub fn set(invocation: &Invocation) -> CommandResult {
    let wanted = wanted_claims(&invocation.values_from(1))?;
    let text = change(invocation, |writer, user| set_claims(writer, user, wanted))?;
    say(text)
}

/// Answers what to tell.
fn set_claims(
    writer: &mut RegistryWriter<'_>,
    mut user: UserRow,
    wanted: Vec<(String, Option<Value>)>,
) -> CommandResult<String> {
    let verified = unsaid_verification(&user, &wanted);
    let verified = verified.map(|value| (String::from("email_verified"), Some(value)));
    let changes = put_claims(&mut user, wanted.into_iter().chain(verified));
    if changes.is_empty() {
        writer.confirm()?;
        return Ok(format!("{} has these claims already", user.designation()));
    }
    let fields: Vec<Value> = changes.iter().map(told_field).collect();
    let user = write(writer, user, json!({"fields": fields}))?;
    let names = changes.iter();
    let names = names.filter_map(|change| change.key.strip_prefix("claims."));
    Ok(format!(
        "changed {} of {}",
        joined(", ", names),
        user.designation()
    ))
}

/// What `email_verified` becomes, where a change of `email` says nothing of it.
fn unsaid_verification(user: &UserRow, wanted: &[(String, Option<Value>)]) -> Option<Value> {
    let (_, email) = wanted.iter().find(|(name, _)| name == "email")?;
    if wanted.iter().any(|(name, _)| name == "email_verified") {
        return None;
    }
    let email = email.clone().unwrap_or_default();
    verified_address::unsaid(&user.claims, &email)
}

/// Answers what is another than before.
fn put_claims(
    user: &mut UserRow,
    wanted: impl Iterator<Item = (String, Option<Value>)>,
) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for (name, after) in wanted {
        let before = match &after {
            Some(value) => user.claims.insert(name.clone(), value.clone()),
            None => user.claims.remove(&name),
        };
        if before != after {
            changes.push(FieldChange {
                key: format!("claims.{name}"),
                before,
                after,
            });
        }
    }
    changes
}

/// Name and value of each, judged by the rules of a document; `None` takes a claim away.
fn wanted_claims(typed: &[&str]) -> CommandResult<Vec<(String, Option<Value>)>> {
    let mut wanted = Vec::new();
    for assignment in typed {
        let Some((name, text)) = assignment.split_once('=') else {
            return misuse(format!(
                "\"{}\" is no CLAIM=VALUE, as email=alice@example.com",
                assignment.escape_debug()
            ));
        };
        // A telephone number is a text, though it reads as a number.
        let json = serde_json::from_str(text)
            .ok()
            .filter(|value| is_possible_claim(name, value));
        wanted.push((
            name.to_owned(),
            (!text.is_empty()).then(|| json.unwrap_or_else(|| json!(text))),
        ));
    }
    let given: JsonObject = wanted
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    judged(&json!({"username": "anybody", "claims": given}))?;
    Ok(wanted)
}

pub fn role(invocation: &Invocation) -> CommandResult {
    let added = invocation.every("--add");
    let removed = invocation.every("--remove");
    if let Some(role) = added
        .iter()
        .find(|role| role.trim().is_empty() || role.chars().any(char::is_control))
    {
        return misuse(format!("--add \"{}\" is not a role", role.escape_debug()));
    }
    let roles = change(invocation, |writer, user| {
        change_roles(writer, user, &added, &removed)
    })?;
    output::list(invocation, roles.into_iter().map(Value::from).collect())
}

/// Answers the roles that the user has then.
fn change_roles(
    writer: &mut RegistryWriter<'_>,
    mut user: UserRow,
    added: &[&str],
    removed: &[&str],
) -> CommandResult<Vec<String>> {
    let before: Vec<String> = roles_of(&user.claims)
        .into_iter()
        .map(str::to_owned)
        .collect();
    for role in removed {
        if !before.iter().any(|present| present == role) {
            note(format!("{} has no role {role:?}", user.designation()));
        }
    }
    let roles = roles_after(&before, added, removed);
    if roles != before {
        user.claims.set("role", roles.as_slice());
        if roles.is_empty() {
            user.claims.remove("role");
        }
        write(
            writer,
            user,
            json!({"old": {"role": before}, "new": {"role": roles}}),
        )?;
    }
    Ok(roles)
}

fn roles_after(before: &[String], added: &[&str], removed: &[&str]) -> Vec<String> {
    let mut roles = before.to_vec();
    roles.retain(|role| !removed.contains(&role.as_str()));
    for role in added {
        if !roles.iter().any(|present| present == role) {
            roles.push((*role).to_owned());
        }
    }
    roles
}

fn identity(invocation: &Invocation) -> CommandResult<Identity> {
    Ok(Identity {
        issuer: required(invocation, "--issuer")?,
        subject: required(invocation, "--subject")?,
    })
}

/// What `commands.txt` says of an option stands in its refusal.
fn required(invocation: &Invocation, name: &str) -> CommandResult<String> {
    if let Some(text) = invocation.option(name)
        && !text.is_empty()
        && is_possible_subject(text)
    {
        return Ok(text.to_owned());
    }
    let mut options = invocation.command.options.iter();
    let option = options.find(|option| option.name == name);
    let meaning = option.map_or("", |option| option.meaning);
    misuse(format!("{name} is required: {meaning}"))
}

pub fn link(invocation: &Invocation) -> CommandResult {
    let identity = identity(invocation)?;
    let operator = Operator::open(invocation)?;
    check_issuer(&operator, &identity.issuer)?;
    let user = typed(&operator)?;
    let (new, event) = told_link("identity_linked", &identity, &user.sub);
    match linked_identities::link(&operator.store, &new, None, &event)? {
        Linked::Added => say!(
            "{} is {} at {}",
            user.designation(),
            identity.subject.escape_debug(),
            identity.issuer
        ),
        Linked::Taken(owner) if owner == user.sub => say("that is so already"),
        Linked::Taken(owner) => refuse!("that identity is linked to the user with sub {owner}"),
        Linked::Nothing => refuse("that identity was unlinked meanwhile: try again"),
    }
}

pub fn unlink(invocation: &Invocation) -> CommandResult {
    let identity = identity(invocation)?;
    let operator = Operator::open(invocation)?;
    let user = typed(&operator)?;
    let (link, event) = told_link("identity_unlinked", &identity, &user.sub);
    match linked_identities::unlink(&operator.store, &link, None, &event)? {
        Unlinked::Done => say!(
            "{} is not {} at {} any longer",
            user.designation(),
            identity.subject.escape_debug(),
            identity.issuer
        ),
        Unlinked::NotTheirs | Unlinked::LastWayIn => {
            refuse("that identity is not linked to this user")
        }
    }
}

/// Links to an issuer that nobody is registered with would only wait for a mistake.
fn check_issuer(operator: &Operator, issuer: &str) -> CommandResult {
    let entries = catalogue::load(&operator.store)?.value.entries;
    let vouching = entries.iter().filter(|entry| {
        matches!(
            entry.kind,
            ObjectKind::IdentityProvider | ObjectKind::AssertionIssuer
        )
    });
    let known: Vec<&str> = vouching.filter_map(vouches_as).collect();
    if known.contains(&issuer) {
        return Ok(());
    }
    let nearest = hint(issuer, known);
    let rule = "no identity provider and no assertion issuer is registered with that issuer";
    refuse!("{rule}{nearest}")
}

/// The issuer, or what stands for it where there is none.
fn vouches_as(entry: &CatalogueRow) -> Option<&str> {
    let document = &entry.document;
    let issuer = document.get("issuer");
    issuer.or(document.get("userinfo_endpoint"))?.as_str()
}
