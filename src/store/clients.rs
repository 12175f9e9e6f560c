//! `clients` and `client_secrets`: registrations as `apply` took them, and what each client proves
//! itself with.

use std::time::Duration;

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::registry_writer::RegistryReader;
use super::statement::bind;
use super::values::{column, id, read, tenant_text};
use crate::Result;
use gatepost_protocol::registration::weak_setting::{NAMED_CLIENTS, WeakUse};
use gatepost_protocol::words::identifiers::{ClientId, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretBytes;

#[derive(Debug, PartialEq)]
pub struct ClientRow {
    pub client_id: ClientId,
    /// The registration object, without its secrets, as JSON text: a tree takes six times as much
    /// memory.
    pub metadata: String,
    pub enabled: bool,
    pub epoch: i64,
    pub installation_epoch: i64,
    /// Its secrets, the expired ones among them, oldest first.
    pub secrets: Vec<SecretRow>,
}

/// One secret of a client or resource: what is stored is the sealed digest.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretRow {
    /// 16 random bytes.
    pub id: [u8; 16],
    /// Sealed by `server/keys`; the store cannot open it.
    pub sealed_digest: SecretBytes,
    pub description: String,
    pub expires_at: Option<Instant>,
}

/// Something read from the registry, with the version of the snapshot it was read in.
pub struct Versioned<T> {
    /// Usable only while the registry stands at this version.
    pub registry_version: i64,
    pub value: T,
}

const FIND: &str = "
SELECT i.registry_version, i.epoch AS installation_epoch,
       c.client_id, c.metadata::text AS metadata, c.enabled, c.epoch,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i
LEFT JOIN clients c ON c.client_id = :client_id::text
LEFT JOIN client_secrets s ON s.client_id = c.client_id
ORDER BY s.created_at, s.id";

pub fn find(store: &Store, client_id: &ClientId) -> Result<Versioned<Option<ClientRow>>> {
    versioned(&store.rows(bind!(FIND, client_id))?)
}

fn versioned(rows: &[Row]) -> Result<Versioned<Option<ClientRow>>> {
    Ok(Versioned {
        registry_version: registry_version(rows)?,
        value: clients(rows)?.pop(),
    })
}

const LIST: &str = "
SELECT i.epoch AS installation_epoch, c.client_id, c.metadata::text AS metadata, c.enabled, c.epoch,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i CROSS JOIN clients c LEFT JOIN client_secrets s ON s.client_id = c.client_id
ORDER BY c.client_id, s.created_at, s.id";

pub fn list(store: &Store) -> Result<Vec<ClientRow>> {
    clients(&store.rows(bind!(LIST))?)
}

const OPEN_TO: &str = "
SELECT client_id FROM (
    SELECT c.client_id, c.metadata ->> 'client_name' AS name
    FROM clients c CROSS JOIN (SELECT :tenant::text AS name) AS t
    WHERE c.enabled AND c.metadata -> 'redirect_uris' -> 0 IS NOT NULL
      AND c.metadata ?| ARRAY['initiate_login_uri', 'client_uri']
      AND c.metadata -> 'on_start_page' IS DISTINCT FROM 'false'
      AND c.metadata -> 'metadata_document' IS DISTINCT FROM 'true'
      AND (jsonb_typeof(c.metadata -> 'allowed_roles') IS DISTINCT FROM 'array'
           OR c.metadata -> 'allowed_roles' ?| :roles::text[])
      AND {lets tenant in}
    ORDER BY c.client_id LIMIT :limit::int8
) AS found
ORDER BY lower(coalesce(name, client_id)), client_id";

/// The clients that a start page shows to somebody of that tenant, or of none, with these roles: at
/// most `limit`, by what they are called. A program that signs nobody in is not among them, nor is
/// one with a metadata document.
pub fn open_to(
    store: &Store,
    tenant: Option<&TenantName>,
    roles: &[&str],
    limit: i64,
) -> Result<Vec<ClientId>> {
    let rows = store.rows(bind!(OPEN_TO, tenant = tenant_text(tenant), roles, limit))?;
    rows.iter().map(|row| column(row, "client_id")).collect()
}

pub fn clients(rows: &[Row]) -> Result<Vec<ClientRow>> {
    let mut found: Vec<ClientRow> = Vec::new();
    for row in rows {
        let Some(name) = column::<Option<&str>>(row, "client_id")? else {
            continue;
        };
        if found
            .last()
            .is_none_or(|client| client.client_id.as_str() != name)
        {
            found.push(client(row)?);
        }
        if let (Some(client), Some(secret)) = (found.last_mut(), secret(row)?) {
            client.secrets.push(secret);
        }
    }
    Ok(found)
}

fn client(row: &Row) -> Result<ClientRow> {
    read!(row, ClientRow {
        client_id, metadata, enabled, epoch, installation_epoch;
        secrets: Vec::new()
    })
}

/// The secret of a joined row; `None` where the owner has none.
pub(super) fn secret(row: &Row) -> Result<Option<SecretRow>> {
    if column::<Option<&[u8]>>(row, "secret_id")?.is_none() {
        return Ok(None);
    }
    let secret: SecretRow = read!(row, SecretRow { description, expires_at;
        id: id(row, "secret_id")?,
        sealed_digest: SecretBytes::new(column::<&[u8]>(row, "sealed_digest")?),
    })?;
    Ok(Some(secret))
}

const NAMES_AND_ORIGINS: &str = "
SELECT i.registry_version, ARRAY(SELECT client_id FROM clients) AS client_ids,
       ARRAY(SELECT unnest(origins) FROM clients WHERE enabled) AS origins
FROM installation i";

/// What is made of every client's name, and of the origins of those enabled. All come in one row,
/// which takes a tenth of the memory of many.
pub fn names_and_origins<T>(
    store: &Store,
    collect: impl Fn(&[&str]) -> T,
) -> Result<Versioned<[T; 2]>> {
    let row = store.one(bind!(NAMES_AND_ORIGINS))?;
    let texts = |name| column::<Vec<&str>>(&row, name);
    Ok(Versioned {
        registry_version: column(&row, "registry_version")?,
        value: [collect(&texts("client_ids")?), collect(&texts("origins")?)],
    })
}

pub(super) fn registry_version(rows: &[Row]) -> Result<i64> {
    column(
        rows.first().ok_or_else(StoreError::no_installation)?,
        "registry_version",
    )
}

/// The longest lifetimes that any registration names; `None` where none does.
#[derive(Debug, PartialEq, Default)]
pub struct LongestLifetimes {
    pub refresh_token: Option<Duration>,
    pub access_token: Option<Duration>,
}

const LONGEST_LIFETIMES: &str = "
SELECT (SELECT registry_version FROM installation) AS registry_version,
       max((metadata->>'refresh_token_lifetime')::int8) AS refresh_token,
       max((metadata->>'access_token_lifetime')::int8) AS access_token
FROM clients";

pub fn longest_lifetimes(store: &Store) -> Result<Versioned<LongestLifetimes>> {
    let row = store.one(bind!(LONGEST_LIFETIMES))?;
    Ok(Versioned {
        registry_version: column(&row, "registry_version")?,
        value: lifetimes(&row)?,
    })
}

fn lifetimes(row: &Row) -> Result<LongestLifetimes> {
    Ok(LongestLifetimes {
        refresh_token: lifetime(row, "refresh_token")?,
        access_token: lifetime(row, "access_token")?,
    })
}

fn lifetime(row: &Row, name: &'static str) -> Result<Option<Duration>> {
    Ok(column::<Option<i64>>(row, name)?
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map(Duration::from_secs))
}

impl RegistryReader<'_> {
    pub fn client(&mut self, client_id: &ClientId) -> Result<Option<ClientRow>> {
        Ok(versioned(&self.read(bind!(FIND, client_id))?)?.value)
    }

    pub fn clients(&mut self) -> Result<Vec<ClientRow>> {
        clients(&self.read(bind!(LIST))?)
    }

    /// The longest lifetimes registered, this change included.
    pub fn longest_lifetimes(&mut self) -> Result<LongestLifetimes> {
        lifetimes(&self.read_one(bind!(LONGEST_LIFETIMES))?)
    }
}

// What RFC 9700 advises against, each with whether `legacy_until` ends it: a response type with
// `token` or `id_token` (§2.1.2); the grant type `password` (§2.4); a nonce in the place of PKCE,
// or neither, and plain PKCE (§2.1.1); refresh tokens that are reused (§4.14.2). And a scope that
// makes its client an operator, an `audience` of `federated` that is not this issuer,
// `client_credentials_token_lifetime`, and an audience of client assertions (RFC 10070).
const WEAK_SETTINGS: &str = "
SELECT w.setting, count(*) AS clients,
       (array_agg(CASE WHEN c.client_id LIKE '% %' THEN '\"' || c.client_id || '\"'
           ELSE c.client_id END || coalesce(' [' || nullif(concat_ws(', ',
           CASE WHEN w.ends THEN 'until ' || (c.metadata->>'legacy_until') END,
           'last used ' || to_char(date '1970-01-01' + f.day, 'YYYY-MM-DD')
       ), '') || ']', '') ORDER BY c.client_id))[1 : :most::int4] AS client_ids
FROM installation i CROSS JOIN clients c
CROSS JOIN LATERAL (VALUES
    (1, 'tokens through the browser',
     jsonb_path_exists(c.metadata, '$.response_types[*] ? (@ like_regex \"token\")'),
     jsonb_path_exists(c.metadata, '$.response_types[*] ? (@ like_regex \"(^| )token\")')),
    (2, 'password grant', c.metadata @> '{\"grant_types\": [\"password\"]}', true),
    (3, 'PKCE or nonce',
     c.metadata @> '{\"confidential\": true}' AND NOT c.metadata ?| '{require_pkce,profile}'
     AND CASE WHEN c.metadata ? 'response_types'
              THEN jsonb_path_exists(c.metadata, '$.response_types[*] ? (@ like_regex \"code\")')
              ELSE coalesce(c.metadata->'grant_types' ? 'authorization_code', true) END, false),
    (4, 'neither PKCE nor nonce', c.metadata @> '{\"require_pkce\": false}', true),
    (5, 'plain PKCE', c.metadata @> '{\"allow_plain_pkce\": true}', true),
    (6, 'refresh tokens that are reused',
     c.metadata @> '{\"refresh_token_usage\": \"reuse\"}' AND NOT c.metadata ? 'profile', false),
    (7, 'registration.write, which changes everything',
     'registration.write' = ANY(string_to_array(c.metadata->>'scope', ' ')), false),
    (8, 'tokens that were made for somebody else',
     jsonb_path_exists(c.metadata, '$.federated[*].audience ? (@ != $issuer)',
                       jsonb_build_object('issuer', i.issuer)), false),
    (9, 'tokens of long life', c.metadata ? 'client_credentials_token_lifetime', false),
    (10, 'client assertions for the token endpoint''s URL',
     c.metadata @> '{\"token_endpoint_auth_method\": \"private_key_jwt\"}'
     AND c.metadata ?| '{jwks, jwks_uri}' AND NOT c.metadata ? 'profile', false)
) AS w (place, setting, is_so, ends)
LEFT JOIN flow_uses f ON f.client_id = c.client_id AND f.flow = w.setting
WHERE c.enabled AND w.is_so
GROUP BY w.place, w.setting
ORDER BY w.place";

/// What enabled clients are registered for that is weaker than it need be; what none is, is left
/// out.
pub fn weak_settings(store: &Store) -> Result<Vec<WeakUse>> {
    let most = i32::try_from(NAMED_CLIENTS).unwrap_or(i32::MAX);
    store.list(bind!(WEAK_SETTINGS, most), |row| {
        read!(row, WeakUse { setting, client_ids;
            clients: u64::try_from(column::<i64>(row, "clients")?).unwrap_or_default(),
        })
    })
}
