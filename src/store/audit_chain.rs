//! The chains of this process: one for each connection that writes events, and for each change of
//! an administrator. A row's hash is made before its statement runs, so nothing waits for anything;
//! a chain advances when the answer has come, and ends with its connection.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::Row;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use serde_json::{Value, json};

use super::audit_event::AuditEvent;
use super::mutex::Mutex;
use super::values::{Fault, column, read};
use crate::Result;
use crate::clock::Clock;
use gatepost_protocol::audit::audit_chain::{
    self, AuditRow, Hash, Head, NO_HASH, OPENED, chain_name,
};
use gatepost_protocol::words::identifiers::{self, ClientId, Sid, Subject};
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::json::{Members, SetMember};

#[derive(Clone)]
pub struct Chains(Arc<ProcessChains>);

struct ProcessChains {
    clock: Arc<Clock>,
    process: String,
    audit_days: i32,
    opened: AtomicU32,
    heads: Mutex<BTreeMap<String, Told>>,
}

/// A head, whether it was told as it is, and whether its chain goes on.
struct Told {
    head: Head,
    is_told: bool,
    goes_on: bool,
}

impl Chains {
    pub fn new(clock: Arc<Clock>, process: String, audit_days: u16) -> Chains {
        let shared = ProcessChains {
            clock,
            process,
            audit_days: audit_days.into(),
            opened: AtomicU32::new(1),
            heads: Mutex::default(),
        };
        Chains(Arc::new(shared))
    }

    /// What the names of all chains here have between slashes.
    pub fn process(&self) -> &str {
        &self.0.process
    }

    /// For a connection: opened with its first event.
    pub fn begin(&self) -> Chain {
        Chain {
            chains: self.clone(),
            head: None,
            started: Day(0),
            is_tentative: false,
        }
    }

    /// For a transaction: it counts from [`Chain::commit`] on.
    pub fn begin_tentatively(&self) -> Chain {
        let mut chain = self.begin();
        chain.is_tentative = true;
        chain
    }

    /// The heads that have moved since they were last asked for, each told once.
    pub fn moved_heads(&self) -> Vec<Head> {
        let mut told = self.0.heads.lock();
        let heads = told
            .values()
            .filter(|told| !told.is_told)
            .map(|told| told.head.clone())
            .collect();
        told.retain(|_, told| told.goes_on);
        for told in told.values_mut() {
            told.is_told = true;
        }
        heads
    }

    fn tell(&self, head: &Head) {
        let mut told = self.0.heads.lock();
        told.insert(
            head.chain.clone(),
            Told {
                head: head.clone(),
                is_told: false,
                goes_on: true,
            },
        );
    }

    fn end(&self, chain: &str) {
        let mut told = self.0.heads.lock();
        if let Some(told) = told.get_mut(chain) {
            told.goes_on = false;
        }
    }
}

pub struct Chain {
    chains: Chains,
    /// `None` before the first event.
    head: Option<Head>,
    started: Day,
    is_tentative: bool,
}

/// An event of which the statement picks the name, or none.
#[derive(Clone, Copy)]
pub struct Alternatives<'a> {
    pub event: &'a AuditEvent<'a>,
    /// The first is alternative 1.
    pub names: &'a [&'a str],
    /// Whether the statement finds the user and the session, and ends the hash with them.
    pub finds_user: bool,
}

/// A row as it is written.
#[derive(Debug)]
pub struct ChainedRow {
    row: AuditRow,
    hash: Hash,
}

/// The one parameter that statements take, and the day on which it was made.
pub struct Links(pub Vec<ChainedRow>, Day);

/// The next row of the chain, whatever it will be called: with a hash for each name, or with what
/// is hashed before the user and behind.
pub struct AlternativeLink<'a> {
    pub row: AuditRow,
    previous: Vec<u8>,
    started: Day,
    names: &'a [&'a str],
    hashes: Vec<Vec<u8>>,
    ending: Option<Vec<u8>>,
}

impl Chain {
    /// Chains events to what is there, behind a row that opens the chain where there is none of
    /// today.
    pub fn link(&self, events: &[AuditEvent<'_>]) -> Links {
        let at = self.now();
        let opening = match events {
            [] => None,
            [..] => self.link_opening(at),
        };
        let mut links = opening.unwrap_or(Links(Vec::new(), at.day()));
        let opened = links.0.first().map(ChainedRow::head);
        let Some(mut head) = opened.or_else(|| self.head.clone()) else {
            return links;
        };
        for event in events {
            let row = ChainedRow::behind(&head, event, at);
            head = row.head();
            links.0.push(row);
        }
        links
    }

    pub fn now(&self) -> Instant {
        self.chains.0.clock.now()
    }

    /// The row that opens a chain, where there is none of the day.
    pub fn link_opening(&self, at: Instant) -> Option<Links> {
        let today = at.day();
        if self.head.is_some() && self.started == today {
            return None;
        }
        let row = ChainedRow::behind(&self.open(today), &self.opening(), at);
        Some(Links(vec![row], today))
    }

    /// Chains an event to a chain that was opened that day.
    pub fn link_alternatives<'a>(
        &self,
        events: &Alternatives<'a>,
        at: Instant,
    ) -> AlternativeLink<'a> {
        let today = at.day();
        let head = self.head.clone().unwrap_or_else(|| self.open(today));
        let mut row = next_row(&head, events.event, at);
        let mut hashes = Vec::new();
        for name in events.names {
            row.event = (*name).to_owned();
            hashes.push(if events.finds_user {
                row.hashed_before_user()
            } else {
                row.hash().to_vec()
            });
        }
        AlternativeLink {
            previous: row.previous.to_vec(),
            started: today,
            names: events.names,
            hashes,
            ending: events.finds_user.then(|| row.hashed_behind_user()),
            row,
        }
    }

    fn open(&self, today: Day) -> Head {
        let shared = &self.chains.0;
        let number = shared.opened.fetch_add(1, Ordering::Relaxed);
        let until = Day(today.0.saturating_add(shared.audit_days));
        Head {
            chain: chain_name(today, &shared.process, number),
            seq: -1,
            hash: NO_HASH,
            until,
        }
    }

    /// The first row: which process and build this is, and which chain ended for this one to go on.
    fn opening(&self) -> AuditEvent<'static> {
        let mut detail = json!({"process": process::id(), "version": env!("CARGO_PKG_VERSION")});
        if let Some(after) = &self.head {
            let after = json!({
                "chain": after.chain,
                "seq": after.seq,
                "hash": identifiers::encode(&after.hash),
                "until": after.until.0
            });
            detail.set("after", after);
        }
        AuditEvent {
            event: OPENED,
            detail,
            ..AuditEvent::default()
        }
    }

    pub fn advance(&mut self, links: &Links, rows: &[Row]) -> Result {
        // The last first: those before it are behind.
        for row in rows.iter().rev() {
            let written: Vec<&[u8]> = column(row, "audited")?;
            let mut backwards = links.0.iter().rev();
            if let Some(end) = backwards.find(|link| written.contains(&&link.hash[..]))
                && !self.is_beyond(&end.row)
            {
                self.move_to(end.head(), links.1);
            }
        }
        Ok(())
    }

    /// Goes on behind the row that was written, if one was.
    pub fn advance_alternatively(&mut self, link: AlternativeLink<'_>, rows: &[Row]) -> Result {
        let Some(row) = rows.first() else {
            return Ok(());
        };
        if column::<Option<&[u8]>>(row, "audited")?.is_some() {
            let AlternativeLink { row: written, .. } = link;
            let head = Head {
                chain: written.chain,
                seq: written.seq,
                hash: hash(row, "audited")?,
                until: written.day,
            };
            self.move_to(head, link.started);
        }
        Ok(())
    }

    pub fn commit(&mut self) {
        self.is_tentative = false;
        if let Some(head) = &self.head {
            self.chains.tell(head);
        }
    }

    fn is_beyond(&self, end: &AuditRow) -> bool {
        self.head
            .as_ref()
            .is_some_and(|head| head.chain == end.chain && head.seq >= end.seq)
    }

    fn move_to(&mut self, head: Head, started: Day) {
        if let Some(old) = self.head.as_ref().filter(|old| old.chain != head.chain) {
            self.chains.end(&old.chain);
        }
        if !self.is_tentative {
            self.chains.tell(&head);
        }
        self.head = Some(head);
        self.started = started;
    }
}

impl AlternativeLink<'_> {
    /// In the order of their names in `statement`.
    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let row = &self.row;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &row.day,
            &row.at,
            &row.chain,
            &row.seq,
            &self.previous,
            &self.hashes,
            &self.names,
            &row.client_id,
            &row.source,
            &row.request_id,
            &row.detail,
        ];
        match &self.ending {
            Some(ending) => values.push(ending),
            None => values.extend([&row.sub as &(dyn ToSql + Sync), &row.sid]),
        }
        values
    }
}

impl ChainedRow {
    fn behind(head: &Head, event: &AuditEvent<'_>, at: Instant) -> ChainedRow {
        let row = next_row(head, event, at);
        ChainedRow {
            hash: row.hash(),
            row,
        }
    }

    fn head(&self) -> Head {
        Head {
            chain: self.row.chain.clone(),
            seq: self.row.seq,
            hash: self.hash,
            until: self.row.day,
        }
    }
}

/// The row of an event behind the one that the head is at.
fn next_row(head: &Head, event: &AuditEvent<'_>, at: Instant) -> AuditRow {
    AuditRow {
        day: head.until,
        at,
        chain: head.chain.clone(),
        seq: head.seq + 1,
        previous: head.hash,
        event: event.event.to_owned(),
        client_id: event.client_id.map(ClientId::to_string),
        sub: event.sub.map(Subject::to_string),
        sid: event.sid.map(Sid::to_string),
        source: event.source.map(|address| address.to_string()),
        request_id: event.request_id.map(str::to_owned),
        detail: if event.detail.is_null() {
            String::from("{}")
        } else {
            serde_json::to_string(&event.detail).unwrap_or_default()
        },
    }
}

/// Travels as a row of `audit_events`: its columns in their order, each with its type and length
/// before it.
impl ToSql for ChainedRow {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        let AuditRow {
            day,
            at,
            chain,
            seq,
            previous,
            event,
            client_id,
            sub,
            sid,
            source,
            request_id,
            detail,
        } = &self.row;
        let mut instant = BytesMut::new();
        let _ = at.to_sql(&Type::TIMESTAMPTZ, &mut instant)?;
        let required = [
            (Type::INT4, Some(&day.0.to_be_bytes()[..])),
            (Type::TIMESTAMPTZ, Some(&instant)),
            (Type::TEXT, Some(chain.as_bytes())),
            (Type::INT8, Some(&seq.to_be_bytes())),
            (Type::BYTEA, Some(previous)),
            (Type::BYTEA, Some(&self.hash)),
            (Type::TEXT, Some(event.as_bytes())),
        ];
        let optional = [client_id, sub, sid, source, request_id];
        let optional = optional.map(|text| (Type::TEXT, text.as_ref().map(String::as_bytes)));
        let detail = (Type::JSON, Some(detail.as_bytes()));
        out.extend_from_slice(&13_i32.to_be_bytes());
        for (kind, value) in required.into_iter().chain(optional).chain([detail]) {
            let length = value.map_or(Ok(-1), |value| i32::try_from(value.len()))?;
            out.extend_from_slice(&kind.oid().to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value.unwrap_or_default());
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        kind.name() == "audit_events"
    }

    to_sql_checked!();
}

impl Drop for Chain {
    fn drop(&mut self) {
        if let Some(head) = &self.head {
            self.chains.end(&head.chain);
        }
    }
}

pub fn head(row: &Row) -> Result<Head> {
    read!(row, Head { chain, seq; until: column(row, "day")?, hash: hash(row, "hash")? })
}

/// A value of another length is no hash.
fn hash(row: &Row, name: &'static str) -> Result<Hash> {
    Ok(column::<&[u8]>(row, name)?.try_into().unwrap_or([0xff; 32]))
}

/// A row with the hash stored beside it, and the head that an opening row goes on from.
pub fn stored(row: &Row) -> Result<(AuditRow, Hash, Option<Head>)> {
    let read: AuditRow = read!(row, AuditRow {
        day, at, chain, seq, event, client_id, sub, sid, source, request_id, detail;
        previous: hash(row, "previous")?,
    })?;
    let after = if read.event == OPENED {
        predecessor(&read.detail)
    } else {
        None
    };
    Ok((read, hash(row, "hash")?, after))
}

fn predecessor(detail: &str) -> Option<Head> {
    let detail: Value = serde_json::from_str(detail).ok()?;
    let after = detail.get("after")?;
    Some(Head {
        chain: after.text("chain")?.to_owned(),
        seq: after.get("seq")?.as_i64()?,
        hash: audit_chain::from_hex(after.text("hash")?)?,
        until: Day(i32::try_from(after.get("until")?.as_i64()?).ok()?),
    })
}
