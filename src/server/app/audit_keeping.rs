//! What is written to the audit log beside the requests. Failures are collected and written
//! together soon after, so that a failing request costs the database nothing. The heads of the
//! chains are told to the log.

use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::App;
use super::guesses::Source;
use super::letters::AskedBy;
use crate::http::Request;
use gatepost_protocol::audit::audit_chain::{HEADS_TARGET, Head, heads_lines, untold};
use gatepost_protocol::audit::failed_attempts::{FailedAttempt, FailedAttempts, FailureRow};
use gatepost_protocol::login::letters::Withheld;
use gatepost_protocol::words::identifiers::{ClientId, GrantId, Subject};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::Result;
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::mutex::Mutex;

/// Rows of one statement.
const BATCH: usize = 500;
/// Each look for chains of commands goes back to so long before the last look, so that no chain is
/// missed between two looks.
const TOLD_AGAIN: Duration = Duration::from_secs(120);
/// How often heads and counts are looked at when nothing fails.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct AuditFailures {
    attempts: Mutex<FailedAttempts>,
    noted: Condvar,
    /// When chains of commands were last looked for, and those that were found.
    told: Mutex<Option<(Instant, Vec<Head>)>>,
    /// Whether they were looked for a last time.
    is_closing: AtomicBool,
}

impl AuditFailures {
    fn note(&self, attempt: FailedAttempt, now: Instant) {
        let address = Source::of(attempt.source).address();
        self.attempts.lock().note(attempt, address, now);
        self.noted.notify_one();
    }
}

/// Whom a failure concerns, besides the client.
#[derive(Debug)]
pub enum Concerned<'a> {
    Nobody,
    User(&'a Subject),
    /// An identity provider, by its registered name.
    Provider(&'a str),
}

impl App {
    pub fn note_failure(
        &self,
        event: &'static str,
        request: &Request,
        client_id: Option<&ClientId>,
        concerned: Concerned<'_>,
        reason: Reason,
    ) {
        let reason = reason.code();
        let (sub, detail) = match concerned {
            Concerned::Nobody => (None, json!({"reason": reason})),
            Concerned::User(sub) => (Some(sub), json!({"reason": reason, "sub": sub})),
            Concerned::Provider(name) => {
                (None, json!({"identity_provider": name, "reason": reason}))
            }
        };
        self.note_attempt(event, request, client_id, sub, detail);
    }

    /// The same, for a code that came again although its grant was revoked before.
    pub fn note_replay(&self, request: &Request, client_id: &ClientId, grant: GrantId) {
        let detail = json!({"grant": grant.to_text(), "reason": Reason::CodeReplayed.code()});
        self.note_attempt("code_replayed", request, Some(client_id), None, detail);
    }

    fn note_attempt(
        &self,
        event: &'static str,
        request: &Request,
        client_id: Option<&ClientId>,
        sub: Option<&Subject>,
        detail: Value,
    ) {
        let attempt = FailedAttempt {
            event,
            client_id: client_id.cloned(),
            sub: sub.cloned(),
            source: request.source,
            request_id: request.id.clone(),
            detail,
        };
        self.audit_failures.note(attempt, self.now());
    }

    /// Tells that a letter was wanted and not sent; about whom, where somebody was found.
    pub fn note_withheld_letter(&self, asked: &AskedBy, sub: Option<&Subject>, why: Withheld) {
        let attempt = FailedAttempt {
            event: "letter_withheld",
            client_id: None,
            sub: sub.cloned(),
            source: asked.source,
            request_id: asked.request_id.clone(),
            detail: json!({"limit": why.as_str()}),
        };
        self.audit_failures.note(attempt, self.now());
    }

    /// Counts an attempt that was not looked at, because too many had failed before it.
    pub fn note_turned_away(&self, request: &Request) {
        self.audit_failures
            .attempts
            .lock()
            .note_turned_away(Source::of(request.source).address(), self.now());
    }

    /// Waits until something failed, a second at most.
    pub fn await_failures(&self) {
        let attempts = self.audit_failures.attempts.lock();
        if !attempts.is_waiting() {
            drop(self.audit_failures.noted.wait_timeout(attempts, PATIENCE));
        }
    }

    /// Writes what failed; what cannot be written waits for the next time.
    pub fn write_failures(&self) {
        let rows = self.audit_failures.attempts.lock().take(self.now());
        self.write_rows(rows);
    }

    fn write_rows(&self, rows: Vec<FailureRow>) {
        let mut written = 0;
        for batch in rows.chunks(BATCH) {
            let events: Vec<AuditEvent<'_>> = batch.iter().map(event).collect();
            if let Err(error) = audit_events::insert_all(&self.store, &events) {
                log::warn!("failures could not be written to the audit log: {error}");
                break;
            }
            written += batch.len();
        }
        let left = rows.into_iter().skip(written).collect::<Vec<_>>();
        if !left.is_empty() {
            self.audit_failures.attempts.lock().give_back(left);
            std::thread::sleep(PATIENCE);
        }
    }

    /// Logs the heads of the chains that have moved since the last time, of this process and of
    /// commands. The first time it logs all that no server may have told. Whoever keeps these lines
    /// elsewhere can prove that rows at the end of a chain were removed.
    pub fn tell_audit_heads(&self) {
        let mut heads = self.store.chains().moved_heads();
        match self.command_heads() {
            Ok(of_commands) => heads.extend(of_commands),
            Err(error) => {
                log::warn!("the audit chains of commands could not be looked up: {error}")
            }
        }
        tell(&heads);
    }

    /// The heads of commands, which have no log of their own. After a failure the next look finds
    /// them.
    fn command_heads(&self) -> Result<Vec<Head>> {
        let mut told = self.audit_failures.told.lock();
        let now = self.now();
        let (heads, before) = match told.as_ref() {
            Some((since, before)) => (
                audit_events::command_heads(&self.store, since.minus(TOLD_AGAIN))?,
                before.as_slice(),
            ),
            None => (
                untold(
                    audit_events::chain_ends(&self.store)?,
                    self.store.chains().process(),
                ),
                [].as_slice(),
            ),
        };
        let moved = heads
            .iter()
            .filter(|head| !before.contains(head))
            .cloned()
            .collect();
        *told = Some((now, heads));
        Ok(moved)
    }

    /// Writes and tells what is left. Again it asks the database for nothing unless something
    /// failed meanwhile: the next process tells of commands.
    pub fn close_audit(&self) {
        let rows = self.audit_failures.attempts.lock().take_all();
        self.write_rows(rows);
        if self.audit_failures.is_closing.swap(true, Ordering::SeqCst) {
            tell(&self.store.chains().moved_heads());
        } else {
            self.tell_audit_heads();
        }
    }
}

fn tell(heads: &[Head]) {
    for line in heads_lines(heads) {
        log::info!(target: HEADS_TARGET, "{line}");
    }
}

fn event(row: &FailureRow) -> AuditEvent<'_> {
    match row {
        FailureRow::One(attempt) => AuditEvent {
            event: attempt.event,
            client_id: attempt.client_id.as_ref(),
            sub: attempt.sub.as_ref(),
            source: Some(attempt.source),
            request_id: Some(&attempt.request_id),
            detail: attempt.detail.clone(),
            ..AuditEvent::default()
        },
        FailureRow::More { source, more } => AuditEvent {
            event: "more_failures",
            source: *source,
            detail: json!({"count": more.failed, "turned_away": more.turned_away}),
            ..AuditEvent::default()
        },
        FailureRow::NotTold { event, count } => AuditEvent {
            event: "failures_not_told",
            detail: json!({"event": event, "count": count}),
            ..AuditEvent::default()
        },
    }
}
