//! Sign-up links as operators make, see and end them.

use gatepost_protocol::login::sign_up::SignUpId;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::sign_up_links::{SignUpLink, link};
use gatepost_store::{Result, Store, bind, tenant_text};

const INSERT: &str = "
WITH added AS (
    INSERT INTO sign_up_links (id, tenant, roles, domain, accounts_for, uses, expires_at)
    VALUES (:id::bytea, :tenant::text, :roles::text[], :domain::text, :accounts_for::int8,
            :uses::int4, :expires_at::timestamptz)
    RETURNING id
), {audited added} FROM added";

pub fn insert(store: &Store, link: &SignUpLink, audit: &AuditEvent<'_>) -> Result {
    let bound = bind!(
        INSERT,
        ..link {
            roles,
            domain,
            accounts_for,
            uses,
            expires_at
        },
        id = &link.id[..],
        tenant = tenant_text(link.tenant.as_ref())
    );
    store.write_audited(bound, audit).map(drop)
}

const LIST: &str = "SELECT l.* FROM sign_up_links l ORDER BY l.made_at, l.id";

/// All of them, the oldest first: an operator makes few.
pub fn list(store: &Store) -> Result<Vec<SignUpLink>> {
    store.list(bind!(LIST), link)
}

const END: &str = "
WITH ended AS (
    UPDATE sign_up_links SET ended_at = clock_timestamp()
    WHERE id = :id::bytea AND ended_at IS NULL
    RETURNING id
), {audited ended} FROM ended";

/// Ends a link; `false` when there is none, or it was ended before.
pub fn end(store: &Store, id: &SignUpId, audit: &AuditEvent<'_>) -> Result<bool> {
    store.change(bind!(END, id = &id[..]), audit)
}
