//! Who is registered for what is weaker than it need be; for a line of the log.

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::values::column;
use crate::protocol::registration::weak_settings::{NAMED_CLIENTS, WeakSetting, WeakUse};

const WEAK_SETTINGS: &str = "
SELECT w.setting, count(*) AS clients, (array_agg(c.client_id ORDER BY c.client_id))[1:$1::int4] AS client_ids
FROM clients c
CROSS JOIN LATERAL (VALUES
    (1, 'tokens through the browser',
     jsonb_path_exists(c.metadata, '$.response_types[*] ? (@ like_regex \"token\")')),
    (2, 'password grant', c.metadata @> '{\"grant_types\": [\"password\"]}'),
    (3, 'PKCE or nonce',
     c.metadata @> '{\"confidential\": true}' AND NOT c.metadata ? 'require_pkce'
     AND CASE WHEN c.metadata ? 'response_types'
              THEN jsonb_path_exists(c.metadata, '$.response_types[*] ? (@ like_regex \"code\")')
              ELSE coalesce(c.metadata->'grant_types' ? 'authorization_code', true) END),
    (4, 'neither PKCE nor nonce', c.metadata @> '{\"require_pkce\": false}'),
    (5, 'plain PKCE', c.metadata @> '{\"allow_plain_pkce\": true}'),
    (6, 'refresh tokens that are reused', c.metadata @> '{\"refresh_token_usage\": \"reuse\"}')
) AS w (place, setting, is_so)
WHERE c.enabled AND w.is_so
GROUP BY w.place, w.setting
ORDER BY w.place";

/// What enabled clients are registered for; what none is, is left out.
pub fn read(store: &Store) -> Result<Vec<WeakUse>, StoreError> {
    let most = i32::try_from(NAMED_CLIENTS).unwrap_or(i32::MAX);
    let rows = store.read(|connection| connection.query(WEAK_SETTINGS, &[&most]))?;
    rows.iter().map(weak_use).collect()
}

fn weak_use(row: &Row) -> Result<WeakUse, StoreError> {
    let name: &str = column(row, "setting")?;
    let setting = WeakSetting::ALL.into_iter().find(|setting| setting.as_str() == name);
    Ok(WeakUse {
        setting: setting.ok_or_else(|| StoreError::Corrupt(format!("weak setting {name}")))?,
        client_ids: column(row, "client_ids")?,
        clients: u64::try_from(column::<i64>(row, "clients")?).unwrap_or_default(),
    })
}
