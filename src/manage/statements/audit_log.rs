//! The audit log as administrators read it: the newest events first, within their reach.

use std::time::Duration;

use postgres::Row;

use gatepost_protocol::audit::audit_chain::AuditRow;
use gatepost_protocol::words::instant::Instant;
use gatepost_store::audit_events::stored;
use gatepost_store::{Result, Store, bind, read};

use super::admin_people::AdminReach;

/// What an administrator asks for, as it was typed; empty where nothing is asked.
pub struct AuditSearch<'a> {
    /// A kind of events, or an event.
    pub event: &'a str,
    /// A user name, or an identifier: of whom an event is about, or of the administrator who caused
    /// it.
    pub person: &'a str,
    /// As ISO 8601 writes it.
    pub day: &'a str,
    /// A request id, with spaces and hyphens wherever they are, in whatever letters.
    pub reference: &'a str,
}

/// Which events are looked at.
#[derive(Clone, Copy)]
pub struct EventsAsked<'a> {
    pub since: Instant,
    /// Those before this one.
    pub before: EventPlace<'a>,
    pub named: &'a [&'a str],
    /// Whether all but those are asked for.
    pub are_others: bool,
    /// Events about people of these tenants, and clients open to them. An empty name stands for no
    /// tenant: whoever reaches those sees all events.
    pub reach: AdminReach<'a>,
}

/// Where an event stands among all.
#[derive(Clone, Copy)]
pub struct EventPlace<'a> {
    pub at: Instant,
    pub chain: &'a str,
    pub seq: i64,
}

/// An event with names. Whoever is removed, or out of reach, has none.
pub struct SeenEvent {
    pub row: AuditRow,
    pub person: Option<String>,
    /// The administrator who caused it, and their `sub`.
    pub administrator: Option<String>,
    pub admin: Option<String>,
    pub client: Option<String>,
}

const LIST: &str = "
WITH asked AS MATERIALIZED (
    SELECT :person::text AS sub WHERE :person::text <> ''
    UNION
    SELECT sub FROM users
    WHERE tenant = ANY(:reach::text[]) AND username_key = lower(normalize(:person::text, NFKC))
), caused AS MATERIALIZED (
    SELECT a.day, a.chain, a.seq FROM audit_events a
    WHERE a.detail ->> 'admin' = ANY(ARRAY(SELECT sub FROM asked))
      AND a.at >= :since::timestamptz AND a.at <= :at::timestamptz
), found AS (
    SELECT a.* FROM audit_events a
    LEFT JOIN users w
      ON '' <> ALL(:reach::text[]) AND w.sub = a.sub AND w.tenant = ANY(:reach::text[])
    LEFT JOIN clients c ON '' <> ALL(:reach::text[]) AND c.client_id = a.client_id
    WHERE a.at >= :since::timestamptz AND a.at <= :at::timestamptz
      AND (a.at, a.chain, a.seq) < (:at::timestamptz, :chain::text, :seq::int8)
      AND a.event <> 'chain_opened' AND (a.event = ANY(:named::text[])) <> :are_others::bool
      AND (:event::text <> 'administrators' OR a.detail ->> 'admin' IS NOT NULL)
      AND (:reference::text = '' OR lower(replace(a.request_id, '-', ''))
           = lower(replace(replace(:reference::text, '-', ''), ' ', '')))
      AND (:person::text = '' OR a.sub = ANY(ARRAY(SELECT sub FROM asked))
           OR (a.day, a.chain, a.seq) IN (SELECT day, chain, seq FROM caused))
      AND ('' = ANY(:reach::text[])
           OR w.sub IS NOT NULL
              AND (a.client_id IS NULL OR c.client_id IS NOT NULL AND (
                  jsonb_typeof(c.metadata -> 'tenants') IS DISTINCT FROM 'array'
                  OR c.metadata -> 'tenants' ?| :reach::text[])))
    ORDER BY a.at DESC, a.chain DESC, a.seq DESC LIMIT :most::int8
)
SELECT f.day, f.at, f.chain, f.seq, f.previous, f.hash, f.event, f.client_id, f.sub, f.sid,
       f.source, f.request_id, f.detail::text AS detail, f.detail ->> 'admin' AS admin,
       coalesce(nullif(u.claims ->> 'name', ''), u.username, u.sub) AS person,
       coalesce(nullif(b.claims ->> 'name', ''), b.username, b.sub) AS administrator,
       coalesce(nullif(c.metadata ->> 'client_name', ''), c.client_id) AS client
FROM found f
LEFT JOIN users u ON u.sub = f.sub AND u.tenant = ANY(:reach::text[])
LEFT JOIN users b ON b.sub = f.detail ->> 'admin' AND b.tenant = ANY(:reach::text[])
LEFT JOIN clients c ON c.client_id = f.client_id
ORDER BY f.at DESC, f.chain DESC, f.seq DESC";

/// How far back it is looked for the newest events: mostly they are found in a little time, and a
/// day may have a million.
const LOOKS: [Duration; 4] = [
    Duration::from_secs(900),
    Duration::from_secs(10_800),
    Duration::from_secs(86_400),
    Duration::from_secs(604_800),
];

/// The newest events that fit, at most `most`, the latest of them first; none that is a week older
/// than the place that is asked for.
pub fn list(
    store: &Store,
    search: &AuditSearch<'_>,
    asked: EventsAsked<'_>,
    most: i64,
) -> Result<Vec<SeenEvent>> {
    store.survey(|client| {
        let mut rows = Vec::new();
        for look in LOOKS {
            let before = asked.before;
            let since = asked.since.max(before.at.minus(look));
            let bound = bind!(
                LIST,
                ..search {
                    event,
                    person,
                    reference
                },
                ..asked {
                    named,
                    are_others,
                    reach
                },
                ..before { at, chain, seq },
                since,
                most
            );
            rows = client.query(&bound.text(), bound.values)?;
            if i64::try_from(rows.len()).is_ok_and(|found| found >= most) || since == asked.since {
                break;
            }
        }
        rows.iter().map(seen).collect()
    })
}

fn seen(row: &Row) -> Result<SeenEvent> {
    read!(row, SeenEvent { person, administrator, admin, client; row: stored(row)?.0 })
}
