//! Refresh: the one statement that moves a grant to its next generation, hands the same successor out again, or finds a
//! replay and revokes the grant. All that arrive at once queue at the row, and each is judged by the row as it then is.

use std::time::Duration;

use postgres::types::ToSql;

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::grants::with_grant;
use super::users::{UserRow, user};
use super::values::column;
use crate::protocol::token::refresh_token::RefreshHandle;
use crate::protocol::words::client::RefreshTokenUsage;
use crate::protocol::words::identifiers::ClientId;

/// A refresh to be.
#[derive(Clone, Copy, Debug)]
pub struct NewRefresh<'a> {
    /// The grant and the generation that was presented.
    pub handle: RefreshHandle,
    /// Who presents it.
    pub client_id: &'a ClientId,
    /// 16 random bytes of this request: tells its own commit from another's.
    pub attempt: [u8; 16],
    /// Whether a use makes the next generation.
    pub usage: RefreshTokenUsage,
    /// For how long after a move its predecessor still gets the same successor.
    pub retry_window: Duration,
}

/// What became of it.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Refreshed {
    /// Everything stands; the user's row is as current as the decision.
    Issued {
        /// The generation of the refresh token to hand out.
        generation: i32,
        /// Whose it is.
        user: Box<UserRow>,
    },
    /// An old token came again, or the grant was revoked meanwhile: the grant is dead.
    Revoked,
    /// The grant is not there, or user, client or consent no longer stand; the row is as it was.
    NoLongerStands,
}

/// What the grant stands on is read beside it. A row that others hold is judged once they are done, by what they left,
/// while `standing` stays as read when the statement began: hence every use of a token asks again.
/// A consent that lapsed since the grant was given, where the client needs one, no longer stands. An answer that was given
/// without being remembered is not held against one that was.
/// The statement's own `attempt` on the row means that our answer was lost, not that somebody else was here.
/// A use that moves nothing closes the window of the last move: the successor was used. So a client that is registered anew
/// for tokens that stay may still repeat what it lost before, and no longer.
const REFRESH: &str = "
WITH standing AS (
    SELECT u.enabled AND u.epoch = g.user_epoch AND c.enabled AND c.epoch = g.client_epoch AND i.epoch = g.installation_epoch
           AND coalesce(k.epoch, 0) = g.consent_epoch
           AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp() OR g.issued_at >= k.expires_at
                OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE) AS stands,
           g.attempt = $5::bytea AS told,
           u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.epoch
    FROM grants g
    CROSS JOIN installation i
    LEFT JOIN users u ON u.sub = g.sub
    LEFT JOIN clients c ON c.client_id = g.client_id
    LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
    WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.client_id = $3::text
), refreshed AS (
    UPDATE grants g
    SET generation = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4 AND NOT $6::bool
                          THEN g.generation + 1 ELSE g.generation END,
        moved_at = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4
                        THEN CASE WHEN NOT $6::bool THEN clock_timestamp() END ELSE g.moved_at END,
        used_at = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4
                       THEN CASE WHEN $6::bool THEN clock_timestamp() END ELSE g.used_at END,
        attempt = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4 THEN $5::bytea
                       ELSE g.attempt END,
        revoked_at = CASE WHEN g.revoked_at IS NOT NULL THEN g.revoked_at
                          WHEN g.generation <= $4::int4 THEN NULL
                          WHEN g.generation - 1 = $4::int4
                               AND (g.attempt = $5::bytea OR g.moved_at > clock_timestamp() - $7::int8 * interval '1 second')
                          THEN NULL
                          ELSE clock_timestamp() END
    FROM standing
    WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.client_id = $3::text
    RETURNING g.generation, g.attempt = $5::bytea AS own, g.revoked_at IS NOT NULL AS revoked
), audited AS (
    INSERT INTO audit_events
    SELECT a.* FROM refreshed, standing, json_populate_recordset(NULL::audit_events, $8::json) AS a
    WHERE standing.told IS NOT TRUE AND (refreshed.revoked OR (standing.stands AND refreshed.generation >= $4::int4))
      AND a.event IN ('chain_opened', CASE WHEN refreshed.revoked THEN 'refresh_token_replayed'
                                           WHEN refreshed.own THEN 'refreshed' ELSE 'refresh_repeated' END)
    RETURNING hash
)
SELECT refreshed.generation, refreshed.own, refreshed.revoked, array(SELECT hash FROM audited) AS audited, standing.*
FROM refreshed, standing";

/// Refreshes: of all that present one generation, at once or within the window, each gets the same next one. When the
/// connection breaks before the answer, the same attempt is made once more. The event is the statement's own.
pub fn refresh(store: &Store, new: &NewRefresh<'_>, audit: &AuditEvent<'_>) -> Result<Refreshed, StoreError> {
    let (grant, presented) = (new.handle.grant, new.handle.generation);
    let own = AuditEvent { detail: with_grant(&audit.detail, grant), ..audit.clone() };
    let events =
        ["refreshed", "refresh_repeated", "refresh_token_replayed"].map(|event| AuditEvent { event, ..own.clone() });
    let reuse = new.usage == RefreshTokenUsage::Reuse;
    let window = i64::try_from(new.retry_window.as_secs()).unwrap_or(i64::MAX);
    let client_id = new.client_id.as_str();
    let values: [&(dyn ToSql + Sync); 7] =
        [&grant.day, &&grant.random[..], &client_id, &presented, &&new.attempt[..], &reuse, &window];
    let rows =
        store.write_once_more(|connection| connection.audited(REFRESH, &values, &events, Together::Alternatives))?;
    let row = rows.into_iter().next();
    let Some(row) = row else { return Ok(Refreshed::NoLongerStands) };
    let (generation, own): (i32, bool) = (column(&row, "generation")?, column(&row, "own")?);
    let stands = column::<Option<bool>>(&row, "stands")?.unwrap_or(false);
    if column(&row, "revoked")? {
        return Ok(Refreshed::Revoked);
    }
    // Neither ours nor one ahead: the row has not come as far as what was presented.
    if !stands || !(own || generation > presented) {
        return Ok(Refreshed::NoLongerStands);
    }
    Ok(Refreshed::Issued { generation, user: Box::new(user(&row)?) })
}
