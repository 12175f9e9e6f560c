//! `gatepost user`: people who sign in.

pub mod change;
pub mod links;

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::operator::{Operator, all};
use super::output::{self, CommandResult, Failure, misuse, refuse};
use super::{idp, input, mail};
use crate::statements::user_list;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::registration::{self, ObjectKind};
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::SetMember;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::strength::Strength;
use gatepost_registrar::events::{told_added, user_event};
use gatepost_registrar::statements::user_changes;
use gatepost_registration::user::{self, UserEntry};
use gatepost_server::app::password_rules::PasswordRules;
use gatepost_server::keys::random;
use gatepost_store::users::{self, UserRow};
use gatepost_store::{StoreError, catalogue, consents, folds, grants, linked_identities, sessions};

/// In seconds: a hundred years.
const LONGEST_AWAY: u64 = 100 * 366 * 86_400;

pub fn add(invocation: &Invocation) -> CommandResult {
    let claims = match invocation.option("--claims") {
        None => json!({}),
        Some(text) => serde_json::from_str(text)
            .or_else(|error| misuse(format!("--claims must be a JSON object: {error}")))?,
    };
    // As a document would describe the user, so that one set of rules judges both.
    let entry = judged(&json!({
        "username": invocation.value(0),
        "tenant": invocation.option("--tenant"),
        "sub": invocation.option("--sub"),
        "claims": claims,
    }))?;
    let operator = Operator::open(invocation)?;
    if let Some(tenant) = &entry.tenant
        && !is_tenant(&operator, tenant)?
    {
        return refuse!("there is no tenant {tenant}; `gatepost apply` registers tenants");
    }
    // What the link needs, before anything is done.
    if invocation.has("--invite") {
        links::lifetime(invocation)?;
        operator.sealers()?;
    }
    if invocation.has("--mail") {
        check_mail(&operator, &entry)?;
    }
    let without = invocation.has("--no-password") || invocation.has("--invite");
    let password_hash = if without {
        None
    } else {
        Some(hashed_password(&operator)?)
    };
    let new = UserRow {
        sub: entry.subject.unwrap_or_else(new_subject),
        username: entry.username,
        tenant: entry.tenant,
        password_hash,
        enabled: true,
        valid_until: None,
        has_ended: false,
        claims: entry.claims,
        epoch: 0,
        factors: 0,
        strongest_acr: Strength::SignedIn,
    };
    let event = user_event("user_added", &new.sub, told_added(&new));
    let added = user_changes::insert(&operator.store, &new, &event).map_err(not_added);
    operator.confirmed(added)?;
    users::note_shared_address(&operator.store, &new.sub, "operator", &event)?;
    if invocation.has("--invite") {
        let added = typed(&operator)?;
        return links::print_link(&operator, &added);
    }
    say!("added {} with sub {}", invocation.value(0), new.sub)
}

pub fn is_tenant(operator: &Operator, tenant: &TenantName) -> CommandResult<bool> {
    let mut entries = catalogue::load(&operator.store)?.value.entries.into_iter();
    Ok(entries.any(|entry| entry.kind == ObjectKind::Tenant && entry.name == tenant.as_str()))
}

pub fn not_added(error: StoreError) -> Failure {
    let StoreError::Taken(constraint) = &error else {
        return Failure::from(error);
    };
    Failure::refused(
        if constraint == "users_pkey" || constraint == "removed_subjects" {
            "that sub is somebody's already, or once was, or is the client_id of a client"
        } else {
            "that user name is taken in this tenant"
        },
    )
}

/// Nobody is added to whom the letter could not go.
fn check_mail(operator: &Operator, entry: &UserEntry) -> CommandResult {
    if !operator.has("--invite") {
        return misuse("--mail goes with --invite");
    }
    let address = stored_address(&entry.claims);
    mail::check(operator, &operator.config, address, true).map(drop)
}

/// By the rules of a document.
pub fn judged(described: &Value) -> CommandResult<UserEntry> {
    registration::stored(described, "", user::read)
        .or_else(|problems| refuse(joined("\n", &problems)))
}

pub fn new_subject() -> Subject {
    Subject::of_random(random::bytes())
}

fn hashed_password(operator: &Operator) -> CommandResult<SecretText> {
    let password = input::new_password(&PasswordRules::new(&operator.config))?;
    operator
        .password_hashing()?
        .hash(&password)
        .map(SecretText::new)
        .map_err(Failure::Refused)
}

pub fn password(operator: &Operator) -> CommandResult {
    let username = operator.value(0);
    let user = named(operator, username)?;
    if user.username.is_none() {
        return refuse(
            "that user has no user name to sign in with; they sign in with an identity provider",
        );
    }
    let hash = hashed_password(operator)?;
    let event = user_event("password_changed", &user.sub, json!({"by": "operator"}));
    if !users::set_password(&operator.store, &user.sub, None, &hash, None, &event)? {
        return Err(missing(username));
    }
    say!(
        "{} has a new password; what was signed in before is over",
        user.designation()
    )
}

/// The user whose name was typed.
pub fn typed(operator: &Operator) -> CommandResult<UserRow> {
    named(operator, operator.value(0))
}

/// In the tenant that `--tenant` names; one without a name by their subject.
pub fn named(operator: &Operator, username: &str) -> CommandResult<UserRow> {
    let tenant = operator.option("--tenant").map(TenantName::new);
    let found = users::find_for_sign_in(
        &operator.store,
        tenant.as_ref(),
        username,
        SignInWith::Username,
        None,
    )?
    .user;
    if let Some(found) = found {
        return Ok(found.user);
    }
    let of_subject = users::find(&operator.store, &Subject::new(username))?;
    let found = of_subject.filter(|user| user.username.is_none() && user.tenant == tenant);
    found.ok_or_else(|| missing(username))
}

pub fn chosen(operator: &Operator) -> CommandResult<Option<Subject>> {
    let username = operator.option("--user");
    if username.is_none() && operator.option("--tenant").is_some() {
        return misuse("--tenant says where to look for --user: give both");
    }
    match username {
        None => Ok(None),
        Some(username) => Ok(Some(named(operator, username)?.sub)),
    }
}

fn missing(username: &str) -> Failure {
    Failure::Refused(format!(
        "there is no user {username:?} there: --tenant NAME looks in that tenant, and without it \
         only users of no tenant are found"
    ))
}

pub fn revoke(operator: &Operator) -> CommandResult {
    let user = typed(operator)?;
    if !user_list::revoke(
        &operator.store,
        &user.sub,
        &user_event("user_revoked", &user.sub, json!({})),
    )? {
        return Err(missing(user.designation()));
    }
    say!(
        "sessions, grants and tokens of {} are over",
        user.designation()
    )
}

/// Lists everybody, or those who have not signed in for some time; or disables these.
pub fn list(operator: &Operator) -> CommandResult {
    let store = &operator.store;
    let seconds = not_signed_in_for(operator)?;
    let mut found = all(operator, |last: Option<&UserRow>, most| {
        let after = last.map(|user| user.sub.as_str()).unwrap_or_default();
        match seconds {
            Some(seconds) => user_list::dormant(store, seconds, after, most),
            None => user_list::list(store, after, most),
        }
    })?;
    if let Some(seconds) = seconds.filter(|_| operator.has("--disable")) {
        disable_dormant(operator, seconds, &mut found)?;
    }
    found.sort_by(|one, other| (&one.tenant, &one.username).cmp(&(&other.tenant, &other.username)));
    output::list(operator, found.iter().map(shown).collect())
}

/// The seconds that `--not-signed-in-for` says, where the log tells who was there.
fn not_signed_in_for(operator: &Operator) -> CommandResult<Option<i64>> {
    let disables = operator.has("--disable");
    let Some(seconds) = operator.seconds("--not-signed-in-for", LONGEST_AWAY, "90d")? else {
        if disables {
            return misuse("--disable goes with --not-signed-in-for");
        }
        return Ok(None);
    };
    let is_part = operator.word().is_some() || operator.limit()?.is_some();
    if is_part && disables {
        return misuse("--disable takes all of them: without a word and without --limit");
    }
    let folded = folds::newest(&operator.store)?.unwrap_or_default();
    if folded < operator.now()?.hour() - 3 {
        return refuse(
            "nobody counts yet who signed in of late: a server does so once an hour, and none has \
             for three",
        );
    }
    Ok(i64::try_from(seconds).ok())
}

/// Disables them, but for administrators. Leaves those who were disabled.
fn disable_dormant(operator: &Operator, seconds: i64, found: &mut Vec<UserRow>) -> CommandResult {
    let administration = operator.config.administration.as_ref();
    let is_admin =
        |user: &mut UserRow| administration.is_some_and(|set| set.has_admin_role(&user.claims));
    for admin in found.extract_if(.., is_admin) {
        output::note(format!("{} stays: an administrator", admin.designation()));
    }
    if found.is_empty() {
        return Ok(());
    }
    let question = format!("This disables {} users.", found.len());
    input::confirm(operator, &question)?;
    let detail = json!({"old": {"enabled": true}, "new": {"enabled": false}, "by": "operator"});
    let mut events = Vec::new();
    let mut subs = Vec::new();
    for user in &mut *found {
        user.enabled = false;
    }
    for user in &*found {
        events.push(user_event("user_changed", &user.sub, detail.clone()));
        subs.push(&user.sub);
    }
    let admin_role = administration.map_or("", |set| &set.role);
    if !user_list::disable_dormant(&operator.store, seconds, &subs, admin_role, &events)? {
        return refuse("somebody signed in meanwhile: nobody was disabled; run this again");
    }
    Ok(())
}

fn shown(user: &UserRow) -> Value {
    json!({
        "username": user.username,
        "tenant": user.tenant,
        "sub": user.sub,
        "enabled": user.enabled,
        "valid_until": user.valid_until.map(output::time),
        "has_password": user.password_hash.is_some(),
        "claims": user.claims,
    })
}

pub fn show(operator: &Operator) -> CommandResult {
    let user = typed(operator)?;
    let sessions = sessions::list(&operator.store, None, Some(&user.sub), 1_000)?;
    let grants = grants::list(&operator.store, None, Some(&user.sub), None, 1_000)?;
    let mut value = shown(&user);
    value.set("sessions", sessions.len());
    value.set("grants", grants.len());
    value.set("identities", told_identities(operator, &user.sub)?);
    value.set("consents", told_consents(operator, &user.sub)?);
    output::object(operator.has("--json"), &value)
}

/// Each with the providers that are registered with its issuer now: the name that it was linked
/// under may stand for another one since.
fn told_identities(operator: &Operator, sub: &Subject) -> CommandResult<Value> {
    let identities = linked_identities::of_user(&operator.store, sub)?;
    let providers = idp::known(operator)?;
    let mut told = Vec::new();
    for identity in identities {
        let of_issuer = providers
            .iter()
            .filter(|provider| provider.authority() == identity.issuer);
        let names: Vec<&str> = of_issuer.map(|provider| provider.name.as_str()).collect();
        told.push(json!({
            "issuer": identity.issuer,
            "subject": identity.upstream_subject,
            "providers": names,
            "claims": identity.claims,
        }));
    }
    Ok(Value::Array(told))
}

fn told_consents(operator: &Operator, sub: &Subject) -> CommandResult<Value> {
    let mut told = Vec::new();
    for (client_id, row) in consents::list_of_user(&operator.store, sub)? {
        told.push(json!({
            "client_id": client_id,
            "scope": row.consent.scope.to_string(),
            "expires_at": row.expires_at.map(output::time),
        }));
    }
    Ok(Value::Array(told))
}
