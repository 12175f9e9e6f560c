//! `gatepost user invite|reset|role|set|disable|enable|remove|link|unlink`: what changes about
//! somebody.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{judged, missing, named, told_field};
use crate::cli::arguments::Invocation;
use crate::cli::operator::{Operator, user_event};
use crate::cli::output::{self, Failure};
use crate::cli::{input, mail, registry};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::pages::second_factor::factor_name;
use crate::protocol::login::passkey;
use crate::protocol::login::password_link::{PASSKEY_PREFIX, PREFIX, PasskeyLink, PasswordLink};
use crate::protocol::login::second_factor::FactorKind;
use crate::protocol::registration::names::hint;
use crate::protocol::registration::plan::FieldChange;
use crate::protocol::registration::user::{Identity, is_possible_claim};
use crate::protocol::registration::{ObjectKind, timestamp, verified_address};
use crate::protocol::token::jwt_bearer::is_possible_subject;
use crate::protocol::words::identifiers::{Subject, TenantName};
use crate::protocol::words::strength::Strength;
use crate::store::audit_events::AuditEvent;
use crate::store::authenticators::Authenticator;
use crate::store::installation::Installation;
use crate::store::linked_identities::{self, Link, Linked, Unlinked};
use crate::store::registry_writer::RegistryWriter;
use crate::store::users::UserRow;
use crate::store::{audit_events, authenticators, catalogue, installation};

fn change<T>(
    invocation: &Invocation,
    change: impl FnOnce(&mut RegistryWriter<'_>, UserRow) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let username = invocation.value(0);
    let tenant = invocation.option("--tenant").map(TenantName::new);
    operator.store.change_registry(|writer| {
        let found = writer.user_by_name(tenant.as_ref(), username)?;
        change(writer, found.ok_or_else(|| missing(username))?)
    })
}

/// The password stays what it is meanwhile.
fn write(
    writer: &mut RegistryWriter<'_>,
    user: UserRow,
    detail: Value,
) -> Result<UserRow, Failure> {
    let user = UserRow {
        password_hash: None,
        ..user
    };
    writer.update_user(&user)?;
    writer.audit(&user_event("user_changed", &user.sub, detail))?;
    registry::tell_of_sharing(writer, &user)?;
    Ok(user)
}

/// Or disables.
pub(in crate::cli) fn enable(invocation: &Invocation, enabled: bool) -> Result<(), Failure> {
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
    output::line(&text)
}

/// A link for somebody without a password; `has_one` is for those who have.
pub(in crate::cli) fn invite(invocation: &Invocation, has_one: bool) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let has = match invocation.has("--passkey") {
        true => user.has_own_way_in(),
        false => user.password_hash.is_some(),
    };
    if has != has_one {
        let rule = match has_one {
            true => "that user has nothing to reset: use `gatepost user invite`",
            false => "that user has a way to sign in: use `gatepost user reset`",
        };
        return Err(Failure::Refused(String::from(rule)));
    }
    print_link(&operator, &installation, invocation, &user)
}

pub(super) fn print_link(
    operator: &Operator,
    installation: &Installation,
    invocation: &Invocation,
    user: &UserRow,
) -> Result<(), Failure> {
    let lifetime = lifetime(invocation)?;
    if !user.enabled || user.username.is_none() {
        return Err(Failure::Refused(String::from(
            "that user cannot sign in with a password: no user name, or disabled",
        )));
    }
    // Another master secret than the server's would make a link that nobody can open.
    operator.sealers(installation)?;
    let is_passkey = invocation.has("--passkey");
    if is_passkey && (invocation.has("--enrol") || invocation.has("--mail")) {
        let rule = "--passkey does not go with --enrol or --mail";
        return Err(Failure::Usage(String::from(rule)));
    }
    if is_passkey && passkey::host(operator.config.base_url.as_str()).is_none() {
        let rule = "browsers have no passkeys for the host of GATEPOST_BASE_URL";
        return Err(Failure::Refused(String::from(rule)));
    }
    if invocation.has("--mail") {
        return mail::send_link(operator, installation, invocation, user, lifetime);
    }
    let derived = operator
        .master_secret()?
        .derive(&installation.id, &installation.issuer);
    let expires_at = operator.now()?.plus(lifetime);
    let installation_epoch = installation::epoch(&operator.store)?;
    let link = PasswordLink {
        subject: user.sub.clone(),
        epoch: user.epoch,
        installation_epoch,
        factors: user.factors,
        enrols: invocation.has("--enrol"),
        expires_at,
    };
    let sealed = match is_passkey {
        true => Sealer::new(&derived, Purpose::PasskeyLink)
            .seal_text(PASSKEY_PREFIX, &PasskeyLink { link }),
        false => Sealer::new(&derived, Purpose::PasswordLink).seal_text(PREFIX, &link),
    };
    let detail = json!({"by": "operator", "expires_at": output::time(expires_at)});
    audit_events::insert(&operator.store, &user_event("link_made", &user.sub, detail))?;
    let address = format!(
        "{}/account/link?l={sealed}",
        operator.config.base_url.as_str()
    );
    match invocation.has("--json") {
        true => output::line(
            &json!({"link": address, "expires_at": output::time(expires_at)}).to_string(),
        ),
        false => output::line(&address),
    }
}

/// Lists them, or removes one or all.
pub(in crate::cli) fn factors(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let all = authenticators::list(&operator.store, &user.sub, true)?;
    let (codes, factors): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|one| one.kind == FactorKind::RecoveryCode);
    let is_all = invocation.has("--remove-all");
    let (removed, left) = match invocation.option("--remove") {
        None if !is_all => {
            let shown = |one: &&Authenticator| {
                json!({
                    "kind": one.kind.as_str(),
                    "id": factor_name(one),
                    "name": one.name,
                    "created_at": output::time(one.created_at),
                    "used_at": one.used_at.map(output::time),
                })
            };
            let name = format!("{} left", codes.len());
            let left = json!({"kind": FactorKind::RecoveryCode.as_str(), "name": name});
            let rows: Vec<Value> = factors
                .iter()
                .map(shown)
                .chain((!codes.is_empty()).then_some(left))
                .collect();
            let columns = [
                ("KIND", "/kind"),
                ("ID", "/id"),
                ("NAME", "/name"),
                ("MADE", "/created_at"),
                ("USED", "/used_at"),
            ];
            return output::list(invocation, &columns, rows);
        }
        None => (None, Strength::SignedIn),
        Some(id) => {
            let (named, others): (Vec<_>, Vec<_>) = factors
                .iter()
                .copied()
                .cloned()
                .partition(|one| factor_name(one) == id);
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
    input::confirm(invocation, &question)?;
    let event = user_event(
        "factor_removed",
        &user.sub,
        json!({"by": "operator", "factor": told}),
    );
    if !authenticators::remove(&operator.store, &user, removed.as_ref(), left, None, &event)? {
        return Err(Failure::Refused(String::from(
            "the user was changed meanwhile: look again",
        )));
    }
    output::line(&format!(
        "removed; sessions, grants and tokens of {} are over",
        user.designation()
    ))
}

pub(super) fn lifetime(invocation: &Invocation) -> Result<Duration, Failure> {
    let text = invocation.option("--for").unwrap_or("72h");
    let rule = "--for must be a number with s, m, h or d, as 72h; at most 30d";
    let fits = timestamp::seconds(text).filter(|seconds| (1..=30 * 86_400).contains(seconds));
    fits.map(Duration::from_secs)
        .ok_or_else(|| Failure::Usage(String::from(rule)))
}

pub(in crate::cli) fn remove(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = operator.confirmed(named(&operator, invocation, invocation.value(0)))?;
    let name = user.designation();
    let sub = &user.sub;
    input::confirm(
        invocation,
        &format!("This removes {name} for good; sub {sub} is never given again."),
    )?;
    operator
        .store
        .change_registry(|writer| registry::remove_user(writer, sub))?;
    output::line(&format!("removed {name}; sub {sub} is never given again"))
}

pub(in crate::cli) fn set(invocation: &Invocation) -> Result<(), Failure> {
    let wanted = wanted_claims(&invocation.values_from(1))?;
    let text = change(invocation, |writer, user| set_claims(writer, user, wanted))?;
    output::line(&text)
}

/// Answers what to tell.
fn set_claims(
    writer: &mut RegistryWriter<'_>,
    mut user: UserRow,
    wanted: Vec<(String, Option<Value>)>,
) -> Result<String, Failure> {
    let says_verified = wanted.iter().any(|(name, _)| name == "email_verified");
    let email = wanted.iter().find(|(name, _)| name == "email");
    let unsaid = match email {
        Some((_, email)) if !says_verified => {
            let email = email.clone().unwrap_or_default();
            verified_address::unsaid(&user.claims, &email)
        }
        Some(_) | None => None,
    };
    let verified = unsaid.map(|value| (String::from("email_verified"), Some(value)));
    let mut changes = Vec::new();
    for (name, after) in wanted.into_iter().chain(verified) {
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
    if changes.is_empty() {
        return Ok(format!("{} has these claims already", user.designation()));
    }
    let fields: Vec<Value> = changes.iter().map(told_field).collect();
    let user = write(writer, user, json!({"fields": fields}))?;
    let names: Vec<&str> = changes
        .iter()
        .filter_map(|change| change.key.strip_prefix("claims."))
        .collect();
    Ok(format!(
        "changed {} of {}",
        names.join(", "),
        user.designation()
    ))
}

/// Name and value of each, judged by the rules of a document; `None` takes a claim away.
fn wanted_claims(typed: &[&str]) -> Result<Vec<(String, Option<Value>)>, Failure> {
    let mut wanted = Vec::new();
    for assignment in typed {
        let (name, text) = assignment.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "\"{}\" is no CLAIM=VALUE, as email=alice@example.com",
                assignment.escape_debug()
            ))
        })?;
        // A telephone number is a text, though it reads as a number.
        let json = serde_json::from_str(text)
            .ok()
            .filter(|value| is_possible_claim(name, value));
        wanted.push((
            name.to_owned(),
            (!text.is_empty()).then(|| json.unwrap_or_else(|| json!(text))),
        ));
    }
    let given: Map<String, Value> = wanted
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    judged(&json!({"username": "anybody", "claims": given}))?;
    Ok(wanted)
}

pub(in crate::cli) fn role(invocation: &Invocation) -> Result<(), Failure> {
    let added = invocation.every("--add");
    let removed = invocation.every("--remove");
    if let Some(role) = added
        .iter()
        .find(|role| role.trim().is_empty() || role.chars().any(char::is_control))
    {
        return Err(Failure::Usage(format!(
            "--add \"{}\" is not a role",
            role.escape_debug()
        )));
    }
    let roles = change(invocation, |writer, user| {
        change_roles(writer, user, &added, &removed)
    })?;
    output::list(
        invocation,
        &[("ROLE", "")],
        roles.into_iter().map(Value::from).collect(),
    )
}

/// Answers the roles that the user has then.
fn change_roles(
    writer: &mut RegistryWriter<'_>,
    mut user: UserRow,
    added: &[&str],
    removed: &[&str],
) -> Result<Vec<String>, Failure> {
    let before = roles_of(&user.claims);
    for role in removed {
        if !before.iter().any(|present| present == role) {
            output::note(&format!("{} has no role {role:?}", user.designation()));
        }
    }
    let mut roles: Vec<String> = before
        .iter()
        .filter(|role| !removed.contains(&role.as_str()))
        .cloned()
        .collect();
    for role in added {
        if !roles.iter().any(|present| present == role) {
            roles.push((*role).to_owned());
        }
    }
    if roles != before {
        user.claims.insert(String::from("role"), json!(roles));
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

/// The claim is a string or an array of them.
fn roles_of(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("role") {
        Some(Value::String(role)) => vec![role.clone()],
        Some(Value::Array(roles)) => roles
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

/// Issuer and subject; what `commands.txt` says of an option stands in its refusal.
fn identity(invocation: &Invocation) -> Result<(&str, &str), Failure> {
    let required = |name: &str| {
        let given = invocation
            .option(name)
            .filter(|text| !text.is_empty() && is_possible_subject(text));
        let meaning = invocation
            .command
            .options
            .iter()
            .find(|option| option.name == name);
        let meaning = meaning.map_or("", |option| option.meaning);
        given.ok_or_else(|| Failure::Usage(format!("{name} is required: {meaning}")))
    };
    Ok((required("--issuer")?, required("--subject")?))
}

pub(in crate::cli) fn link(invocation: &Invocation) -> Result<(), Failure> {
    let (issuer, upstream_subject) = identity(invocation)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    check_issuer(&operator, issuer)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let identity = Identity {
        issuer: issuer.to_owned(),
        subject: upstream_subject.to_owned(),
    };
    let (new, event) = told_link("identity_linked", &identity, &user.sub);
    match linked_identities::link(&operator.store, &new, &event)? {
        Linked::Added => output::line(&format!(
            "{} is {} at {issuer}",
            user.designation(),
            upstream_subject.escape_debug()
        )),
        Linked::Taken(owner) if owner == user.sub => output::line("that is so already"),
        Linked::Taken(owner) => Err(Failure::Refused(format!(
            "that identity is linked to the user with sub {owner}"
        ))),
    }
}

pub(in crate::cli) fn unlink(invocation: &Invocation) -> Result<(), Failure> {
    let (issuer, upstream_subject) = identity(invocation)?;
    let (operator, _) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let identity = Identity {
        issuer: issuer.to_owned(),
        subject: upstream_subject.to_owned(),
    };
    let (link, event) = told_link("identity_unlinked", &identity, &user.sub);
    match linked_identities::unlink(&operator.store, &link, None, &event)? {
        Unlinked::Done => {
            let subject = upstream_subject.escape_debug();
            output::line(&format!(
                "{} is not {subject} at {issuer} any longer",
                user.designation()
            ))
        }
        Unlinked::NotTheirs | Unlinked::LastWayIn => Err(Failure::Refused(String::from(
            "that identity is not linked to this user",
        ))),
    }
}

/// A link, and the event that tells of it.
pub(in crate::cli) fn told_link<'a>(
    event: &'a str,
    identity: &'a Identity,
    sub: &'a Subject,
) -> (Link<'a>, AuditEvent<'a>) {
    let Identity {
        issuer,
        subject: upstream_subject,
    } = identity;
    let detail = json!({"by": "operator", "issuer": issuer, "upstream_subject": upstream_subject});
    (
        Link {
            issuer,
            upstream_subject,
            sub,
            provider: None,
        },
        user_event(event, sub, detail),
    )
}

/// Links to an issuer that nobody is registered with would only wait for a mistake.
fn check_issuer(operator: &Operator, issuer: &str) -> Result<(), Failure> {
    let entries = catalogue::load(&operator.store)?.value.entries;
    let vouching = entries.iter().filter(|entry| {
        matches!(
            entry.kind,
            ObjectKind::IdentityProvider | ObjectKind::AssertionIssuer
        )
    });
    let place = |entry: &catalogue::CatalogueRow| {
        let document = &entry.document;
        Some(
            document
                .get("issuer")
                .or(document.get("userinfo_endpoint"))?
                .as_str()?
                .to_owned(),
        )
    };
    let known: Vec<String> = vouching.filter_map(place).collect();
    let nearest = hint(issuer, known.iter().map(String::as_str));
    let rule = "no identity provider and no assertion issuer is registered with that issuer";
    if known.iter().any(|one| one == issuer) {
        Ok(())
    } else {
        Err(Failure::Refused(format!("{rule}{nearest}")))
    }
}
