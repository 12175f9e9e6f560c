//! Inviting many people at once.

use std::collections::BTreeMap;

use postgres::types::Json;

use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::{Result, Store, StoreError, bind, column, read, tenant_text};

use super::admin_people::ActingAdmin;

/// A user name or an address that is looked for.
pub struct HeldName {
    /// What all names have in common that count as the same.
    pub key: String,
    /// Whether somebody is called by it, or has it as their address, verified or not.
    pub is_held: bool,
}

// One by one: for many at once Postgres would read everybody.
const HELD: &str = "
SELECT n.name, lower(normalize(n.name, NFKC)) AS key, h.sub IS NOT NULL AS is_held
FROM unnest(:names::text[]) AS n (name)
LEFT JOIN LATERAL (
    (SELECT u.sub FROM users u
     WHERE u.tenant = :tenant::text AND u.sub <> :sub::text AND u.claims ? 'email'
       AND left(lower(normalize(u.claims ->> 'email', NFKC)), 254)
           = left(lower(normalize(n.name, NFKC)), 254) COLLATE \"C\"
     LIMIT 1)
    UNION ALL
    (SELECT u.sub FROM users u
     WHERE u.tenant = :tenant::text AND u.sub <> :sub::text
       AND u.username_key = lower(normalize(n.name, NFKC))
     LIMIT 1)
    LIMIT 1
) AS h ON true
WHERE n.name <> ''";

/// What is known of these names in that tenant, but for what `sub` has themselves.
pub fn held(
    store: &Store,
    tenant: Option<&TenantName>,
    names: &[&str],
    sub: &str,
) -> Result<BTreeMap<String, HeldName>> {
    let bound = bind!(HELD, tenant = tenant_text(tenant), names, sub);
    store.list(bound, |row| {
        let held = read!(row, HeldName { key, is_held; })?;
        Ok((column(row, "name")?, held))
    })
}

/// Somebody who is to be added.
pub struct NewPerson {
    pub sub: Subject,
    pub username: String,
    pub valid_until: Option<Instant>,
    pub claims: JsonObject,
}

// `sub` is nobody's: none of them has an address that counts. Of one who cannot be added the
// statement adds nobody.
const INVITE: &str = "
WITH invited AS (
    SELECT n.* FROM unnest(:subs::text[], :usernames::text[], :ends::timestamptz[],
                           :claims::jsonb[]) AS n (sub, username, valid_until, claims)
), keys AS (
    SELECT :tenant::text AS tenant, n.username AS name, true AS is_alone FROM invited n
), {names taken}, added AS (
    INSERT INTO users (sub, tenant, username, username_key, enabled, valid_until, claims)
    SELECT n.sub, :tenant::text, n.username, lower(normalize(n.username, NFKC)), true,
           n.valid_until, n.claims
    FROM invited n
    WHERE NOT EXISTS (SELECT FROM invited i JOIN removed_subjects r ON r.sub = i.sub)
      AND NOT EXISTS (SELECT FROM invited i JOIN clients c ON c.client_id = i.sub)
      AND NOT EXISTS (SELECT FROM invited i JOIN users u ON u.sub = i.username
                      WHERE u.username IS NULL AND u.tenant = :tenant::text)
      AND NOT EXISTS (SELECT FROM invited i WHERE NOT {given roles} @> (i.claims -> 'role'))
      AND {names are free}
    RETURNING sub
), done AS (
    SELECT count(*) AS people FROM added HAVING count(*) > 0
), {audited done} FROM done";

impl ActingAdmin<'_> {
    /// Adds all of them, with an event for each, or nobody: `Taken` when a user name is somebody's,
    /// or the address of somebody that counts, or a role cannot be given.
    pub fn invite(
        &self,
        tenant: Option<&TenantName>,
        people: &[NewPerson],
        events: &[AuditEvent<'_>],
    ) -> Result {
        let subs: Vec<&Subject> = people.iter().map(|one| &one.sub).collect();
        let usernames: Vec<&str> = people.iter().map(|one| one.username.as_str()).collect();
        let ends: Vec<Option<Instant>> = people.iter().map(|one| one.valid_until).collect();
        let claims: Vec<_> = people.iter().map(|one| Json(&one.claims)).collect();
        let bound = bind!(
            INVITE,
            ..self {
                given_roles,
                admin_role
            },
            tenant = tenant_text(tenant),
            sub = "",
            subs,
            usernames,
            ends,
            claims
        );
        if self.store.write_all_audited(bound, events)?.is_empty() {
            return Err(StoreError::Taken(String::from("users")));
        }
        Ok(())
    }
}
