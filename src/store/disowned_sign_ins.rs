//! Sign-ins in browsers that are new to somebody, and what becomes of the account once its owner
//! says that one was not theirs.

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::users::{UserRow, user};
use super::values::{column, tenant_text};
use crate::Result;
use gatepost_protocol::login::mail_link::MailLink;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::instant::Instant;

// The session that began is one of those two. Another thread runs this, perhaps after the user has
// signed in once more: later sessions do not count.
const TAKE_NEW_BROWSER: &str = "
INSERT INTO used_assertions (day, issuer, jti_hash)
SELECT floor(extract(epoch FROM now()) / 86400)::int4 + 1, 'new browser ', :browser::bytea
FROM (SELECT :sub::text AS sub,
             jsonb_build_object('email', :address::text, 'email_verified', true) AS claims) AS h
WHERE {address counts}
  AND (EXISTS (SELECT FROM user_uses o WHERE o.sub = :sub::text)
       OR (SELECT count(*) FROM (
               SELECT FROM sessions s
               WHERE s.sub = :sub::text AND s.created_at <= :signed_in_at::timestamptz
               LIMIT 2) AS s) > 1)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING";

/// Whether a user is told at this address of a sign-in that has begun its session: the address
/// counts, they had signed in before, and no process has told them of this `browser`. (A form that
/// was sent twice begins two sessions.)
pub fn take_new_browser(
    store: &Store,
    sub: &Subject,
    address: &str,
    signed_in_at: Instant,
    browser: &[u8; 32],
) -> Result<bool> {
    let browser = &browser[..];
    let bound = bind!(TAKE_NEW_BROWSER, sub, address, signed_in_at, browser);
    Ok(store.execute(bound)? == 1)
}

const STANDS: &str = "SELECT f.stands FROM ({disowned}) AS f";

/// Whether the user is as the link was made on; `None` where it is over.
pub fn stands(store: &Store, link: &MailLink) -> Result<Option<bool>> {
    let user = &link.user;
    let bound = bind!(
        STANDS,
        ..user {
            epoch,
            installation_epoch
        },
        ..link {
            factors,
            expires_at
        },
        sub = user.subject,
        address_hash = &link.address_hash[..],
    );
    store.find(bound, |row| column(row, "stands"))
}

// Of two at once the second waits for the user, or for the row of the first among the used
// assertions, and then finds nothing to do.
const DISOWN: &str = "
WITH found AS MATERIALIZED ({disowned} FOR UPDATE OF u), spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash)
    SELECT floor(extract(epoch FROM now()) / 86400)::int4 + 1, 'not me ', f.hash
    FROM found f WHERE f.stands = :stands::bool
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING RETURNING day
), changed AS (
    UPDATE users
    SET password_hash = CASE WHEN :stands::bool OR password_hash IS NOT NULL THEN '!' END,
        enabled = :stands::bool, epoch = new_epoch(), updated_at = clock_timestamp()
    FROM spent WHERE sub = :sub::text AND enabled AND {in time}
    RETURNING users.*, false AS has_ended
), {user called}, {audited changed}, changed.* FROM changed";

/// Spends the link, and ends everything of its user. They have a hash after it that no password
/// has, and where they are not as it was made on, they are disabled. Answers them as they are then;
/// `None` where `stands` is not so, or the link is over.
pub fn disown(
    store: &Store,
    link: &MailLink,
    stands: bool,
    audit: &AuditEvent<'_>,
) -> Result<Option<UserRow>> {
    let of_user = &link.user;
    let bound = bind!(
        DISOWN,
        ..of_user {
            epoch,
            installation_epoch
        },
        ..link {
            factors,
            expires_at
        },
        sub = of_user.subject,
        address_hash = &link.address_hash[..],
        stands,
    );
    let rows = store.write_audited(bound, audit)?;
    rows.first().map(user).transpose()
}

// `Administration::reach` says the same of what was read.
const ADMINISTRATORS: &str = "
SELECT h.*, false AS has_ended FROM users h
WHERE h.sub IN (SELECT m.sub FROM role_members m
                WHERE m.tenant IN ('', :tenant::text) AND m.role = :role::text
                   OR m.tenant = '' AND m.role = :role::text || nullif(':' || :tenant::text, ':'))
  AND h.enabled AND {in time} AND {address counts}
ORDER BY h.sub LIMIT 100";

/// The administrators of that tenant, or of nobody's, to whom letters may go.
pub fn administrators(
    store: &Store,
    tenant: Option<&TenantName>,
    role: &str,
) -> Result<Vec<UserRow>> {
    let tenant = tenant_text(tenant);
    store.list(bind!(ADMINISTRATORS, tenant, role), user)
}
