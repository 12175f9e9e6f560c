//! `gatepost signup`: links by which people make accounts themselves.

use std::time::Duration;

use serde_json::{Value, json};

use super::mail;
use super::operator::Operator;
use super::output::{self, CommandResult, Failure, misuse, refuse, say, time};
use super::user::is_tenant;
use crate::statements::sign_up_changes;
use gatepost_protocol::login::sign_up::{SignUpId, text};
use gatepost_protocol::words::identifiers::TenantName;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_registrar::events::audit_event;
use gatepost_server::keys::master::Purpose;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Mac;
use gatepost_store::sign_up_links::SignUpLink;

const LONGEST: u64 = 366 * 86_400;
/// Of the accounts that a link makes.
const LONGEST_ACCOUNT: u64 = 10 * LONGEST;

pub fn make(operator: &Operator) -> CommandResult {
    let why = "whoever makes an account proves an address by a letter";
    mail::mail_server(&operator.config, why)?;
    // Another master secret than the server's would make a link that it does not know.
    operator.sealers()?;
    let link = described(operator)?;
    let address = address(operator, &link)?;
    let detail = json!({"by": "operator", "link": shown(&link, operator.now()?)});
    sign_up_changes::insert(
        &operator.store,
        &link,
        &audit_event("sign_up_link_made", detail),
    )?;
    let expires_at = time(link.expires_at);
    if operator.has("--json") {
        let told = json!({"link": address, "id": name(&link.id), "expires_at": expires_at});
        say(told.to_string())
    } else {
        say(address)
    }
}

fn address(operator: &Operator, link: &SignUpLink) -> CommandResult<String> {
    let tag = Mac::new(&operator.derived()?, Purpose::SignUpLink).tag(&[&link.id]);
    let base = operator.config.base_url.as_str();
    Ok(format!("{base}/join?l={}", text(&link.id, &tag)))
}

/// The link that the options describe.
fn described(operator: &Operator) -> CommandResult<SignUpLink> {
    let uses = operator.option("--uses").unwrap_or_default().parse();
    let uses = uses.ok().filter(|uses| (1..=100_000).contains(uses));
    let lifetime = operator.seconds("--for", LONGEST, "14d; at most 366d")?;
    let lifetime = lifetime.ok_or_else(|| Failure::usage("--for is required"))?;
    let accounts_for = operator.seconds("--accounts-for", LONGEST_ACCOUNT, "90d; at most 3660d")?;
    let domain = operator.option("--domain").map(str::to_ascii_lowercase);
    if let Some(domain) = &domain
        && MailAddress::parse(&format!("a@{domain}")).is_err()
    {
        return misuse("--domain must be what stands behind the @, as example.com");
    }
    let roles = operator.every("--role");
    let is_role = |role: &&str| !role.trim().is_empty() && !role.chars().any(char::is_control);
    if !roles.iter().all(is_role) {
        return misuse("--role must be a role");
    }
    if let Some(administration) = &operator.config.administration
        && roles.iter().any(|role| administration.is_admin_role(role))
    {
        return misuse("--role must not be one of administrators: use `gatepost user role`");
    }
    let tenant = operator.option("--tenant").map(TenantName::new);
    if let Some(tenant) = &tenant
        && !is_tenant(operator, tenant)?
    {
        return refuse!("there is no tenant {:?}", tenant.as_str());
    }
    Ok(SignUpLink {
        id: random::bytes(),
        tenant,
        roles: roles.into_iter().map(str::to_owned).collect(),
        domain,
        accounts_for: accounts_for.and_then(|seconds| i64::try_from(seconds).ok()),
        uses: uses.ok_or_else(|| Failure::usage("--uses must be a number from 1 to 100000"))?,
        used: 0,
        expires_at: operator.now()?.plus(Duration::from_secs(lifetime)),
        ended_at: None,
    })
}

pub fn list(operator: &Operator) -> CommandResult {
    let now = operator.now()?;
    let found = sign_up_changes::list(&operator.store)?;
    let rows = found.iter().map(|link| shown(link, now)).collect();
    output::list(operator, rows)
}

pub fn end(operator: &Operator) -> CommandResult {
    let typed = operator.value(0);
    let found = sign_up_changes::list(&operator.store)?;
    let Some(found) = found.iter().find(|link| name(&link.id) == typed) else {
        return refuse("there is no such sign-up link");
    };
    let id = found.id;
    let event = audit_event(
        "sign_up_link_ended",
        json!({"by": "operator", "id": name(&id)}),
    );
    if sign_up_changes::end(&operator.store, &id, &event)? {
        say!("sign-up link {typed} is over")
    } else {
        operator.store.confirm()?;
        say!("sign-up link {typed} was over already")
    }
}

fn shown(link: &SignUpLink, now: Instant) -> Value {
    json!({
        "id": name(&link.id),
        "tenant": link.tenant,
        "roles": link.roles,
        "domain": link.domain,
        "uses": link.uses,
        "used": link.used,
        "expires_at": time(link.expires_at),
        "accounts_end_after": link.accounts_for.map(|seconds| format!("{seconds}s")),
        "works": link.stands(now),
    })
}

/// What operators call it.
fn name(id: &SignUpId) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
