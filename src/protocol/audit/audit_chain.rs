//! The chains of the audit log: what the hash of a row covers, and how rows, heads and chains are
//! named. Each row repeats the hash of the row before it. So no row can be changed, removed or
//! inserted without all later rows showing it. The log tells how far the chains have come.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::words::identifiers;
use crate::words::instant::{Day, Instant};

pub type Hash = [u8; 32];

/// What the first row of every chain repeats.
pub const NO_HASH: Hash = [0; 32];

pub const OPENED: &str = "chain_opened";

pub const EVENTS: [&str; 79] = [
    "access_token_revoked",
    "address_changed",
    "address_shared",
    "bound_session_refused",
    OPENED,
    "client_authentication_failed",
    "client_changed",
    "client_removed",
    "client_revoked",
    "client_secret_made",
    "code_redeemed",
    "code_refused",
    "code_replayed",
    "consent_given",
    "consent_withdrawn",
    "device_allowed",
    "device_code_redeemed",
    "device_denied",
    "everything_revoked",
    "external_sign_in_failed",
    "factor_added",
    "factor_removed",
    "factor_used",
    "failures_not_told",
    "first_factor",
    "grant_begun",
    "grant_refused",
    "grant_revoked",
    "id_jag_issued",
    "identity_link_failed",
    "identity_link_refused",
    "identity_linked",
    "identity_unlinked",
    "issuer_renamed",
    "keys_reset",
    "letter_sent",
    "letter_withheld",
    "link_made",
    "lock_out_ended",
    "master_secret_rotated",
    "more_failures",
    "passkey_cloned",
    "passkey_refused",
    "passkey_set_by_link",
    "password_change_refused",
    "password_changed",
    "password_dropped_by_link",
    "password_granted",
    "password_set_by_link",
    "recovery_code_used",
    "refresh_repeated",
    "refresh_token_replayed",
    "refreshed",
    "registration_changed",
    "registration_removed",
    "second_factor_failed",
    "session_bound",
    "session_ended",
    "sign_in_failed",
    "sign_up_link_ended",
    "sign_up_link_made",
    "signed_in",
    "signed_out",
    "signed_up",
    "signing_key_erased",
    "signing_key_forgotten",
    "signing_key_imported",
    "signing_key_made",
    "signing_key_rescheduled",
    "signing_key_retired",
    "signing_key_rotated",
    "upstream_logout_refused",
    "user_added",
    "user_changed",
    "user_disabled_by_link",
    "user_expired",
    "user_provisioned",
    "user_removed",
    "user_revoked",
];

/// What every hashed text begins with. So no hash of anything else is the hash of a row.
const DOMAIN: &[u8] = b"gatepost audit row 1";

#[derive(Clone, Debug)]
pub struct AuditRow {
    /// The day until which the row is kept. It is the same for a whole chain.
    pub day: Day,
    pub at: Instant,
    pub chain: String,
    pub seq: i64,
    pub previous: Hash,
    pub event: String,
    pub client_id: Option<String>,
    pub sub: Option<String>,
    pub sid: Option<String>,
    pub source: Option<String>,
    pub request_id: Option<String>,
    pub detail: String,
}

impl AuditRow {
    /// The hash of the row: over every column, each with its length before it. So no text can pass
    /// from one column to the next.
    pub fn hash(&self) -> Hash {
        let mut hashed = self.hashed_before_user();
        for text in [&self.sub, &self.sid] {
            absorb(&mut hashed, text.as_deref());
        }
        hashed.extend(self.hashed_behind_user());
        Sha256::digest(hashed).into()
    }

    /// The hashed bytes of the columns before the user's. A statement that finds the user goes on
    /// from there.
    pub fn hashed_before_user(&self) -> Vec<u8> {
        let day = self.day.0.to_be_bytes();
        let at = self.at.micros().to_be_bytes();
        let seq = self.seq.to_be_bytes();
        let mut hashed = [DOMAIN, &day, &at, &seq, &self.previous].concat();
        for text in [
            Some(&self.chain),
            Some(&self.event),
            Some(&self.detail),
            self.client_id.as_ref(),
        ] {
            absorb(&mut hashed, text.map(String::as_str));
        }
        hashed
    }

    /// Those of the columns behind the user's.
    pub fn hashed_behind_user(&self) -> Vec<u8> {
        let mut hashed = Vec::with_capacity(128);
        for text in [&self.source, &self.request_id] {
            absorb(&mut hashed, text.as_deref());
        }
        hashed
    }
}

/// One byte says whether there is a text, and its length comes before it. The function `hashed`
/// does the same in SQL.
fn absorb(hashed: &mut Vec<u8>, text: Option<&str>) {
    let Some(text) = text else {
        return hashed.push(0);
    };
    hashed.push(1);
    hashed.extend_from_slice(&(text.len() as u64).to_be_bytes());
    hashed.extend_from_slice(text.as_bytes());
}

#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub chain: String,
    pub seq: i64,
    pub hash: Hash,
    pub until: Day,
}

/// The name of a chain: the day it began, the process, and a number that the process gives once.
pub fn chain_name(started: Day, process: &str, number: u32) -> String {
    format!("{}/{process}/{number}", started.0)
}

pub const COMMAND: &str = "command-";

/// How long before its last sign of life a server may have failed to tell heads.
const DOUBTFUL: Duration = Duration::from_secs(86_400);

/// The heads of commands that perhaps no server has told yet: of all chain ends with their times,
/// those since the last sign of another server's process, and those of a day before.
pub fn untold(ends: Vec<(Head, Instant)>, this_process: &str) -> Vec<Head> {
    let own = format!("/{this_process}/");
    let mut since = None;
    for (head, at) in &ends {
        if !head.is_of_command() && !head.chain.contains(&own) {
            since = since.max(Some(at.minus(DOUBTFUL)));
        }
    }
    let mut untold = Vec::new();
    for (head, at) in ends {
        if head.is_of_command() && since.is_none_or(|since| at >= since) {
            untold.push(head);
        }
    }
    untold
}

impl Head {
    fn is_of_command(&self) -> bool {
        self.chain.contains(&format!("/{COMMAND}"))
    }
}

pub fn from_hex(text: &str) -> Option<Hash> {
    identifiers::decode(text)?.try_into().ok()
}

pub const HEADS: &str = "audit heads:";

/// The log target of lines with heads. They are written at every level: without them nothing shows
/// that the end of a chain was removed.
pub const HEADS_TARGET: &str = "gatepost::audit_heads";

/// How many heads one line tells. Log collectors cut longer lines, and heads with them (rsyslog at
/// 8 KiB, journald at 48).
const HEADS_OF_A_LINE: usize = 50;

/// The log lines that tell heads: [`HEADS`], then `chain:seq:until:hash` for each. None where there
/// is no head.
pub fn heads_lines(heads: &[Head]) -> impl Iterator<Item = String> {
    heads.chunks(HEADS_OF_A_LINE).map(heads_line)
}

fn heads_line(heads: &[Head]) -> String {
    let mut line = String::from(HEADS);
    for Head {
        chain,
        seq,
        hash,
        until,
    } in heads
    {
        line.push_str(&format!(
            " {chain}:{seq}:{}:{}",
            until.0,
            identifiers::encode(hash)
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> AuditRow {
        let some = |text: &str| Some(String::from(text));
        AuditRow {
            day: Day(21_178),
            at: Instant::from_micros(1_795_132_800_000_001),
            chain: chain_name(Day(20_778), "0123456789abcdef", 3),
            seq: 7,
            previous: [9; 32],
            event: String::from("signed_in"),
            client_id: some("shop"),
            sub: some("alice-1"),
            sid: some("sid-1"),
            source: some("192.0.2.1"),
            request_id: some("r-1"),
            detail: String::from(r#"{"amr":["pwd"]}"#),
        }
    }

    /// That every column counts: `tests/service/audit.rs`.
    #[test]
    fn text_does_not_pass_from_one_column_to_the_next() {
        let of = |sub: Option<&str>, sid: Option<&str>| {
            AuditRow {
                sub: sub.map(str::to_owned),
                sid: sid.map(str::to_owned),
                ..full()
            }
            .hash()
        };
        let hashes = [
            of(Some("ab"), Some("c")),
            of(Some("a"), Some("bc")),
            of(None, Some("a")),
            of(Some("a"), None),
            of(Some("a"), Some("")),
        ];
        assert!(
            hashes
                .iter()
                .enumerate()
                .all(|(index, hash)| !hashes[..index].contains(hash))
        );
    }

    /// What is stored was hashed by earlier versions: this may never change.
    #[test]
    fn the_hash_of_a_known_row_stays() {
        assert_eq!(identifiers::encode(&full().hash()), KNOWN);
    }

    const KNOWN: &str = "1ddbdad1e727c789fcfbbb6a9e8a1f12eb7ad46081a81c7efdfac4478ce73c49";

    #[test]
    fn heads_of_commands_are_told_that_no_other_server_can_have_told() {
        let ended = |process: &str, day: i64| {
            let head = Head {
                chain: chain_name(Day(20_778), process, 1),
                seq: 1,
                hash: full().hash(),
                until: Day(21_178),
            };
            (head, Instant::from_seconds(day * 86_400))
        };
        let untold = |ends: Vec<(Head, Instant)>| -> Vec<String> {
            let heads = untold(ends, "own").into_iter();
            heads.map(|head| head.chain).collect()
        };
        let command = chain_name(Day(20_778), "command-1", 1);
        for (ends, is_told) in [
            (vec![ended("command-1", 10)], true),
            (vec![ended("command-1", 10), ended("own", 12)], true),
            (vec![ended("command-1", 10), ended("other", 11)], true),
            (vec![ended("command-1", 10), ended("other", 12)], false),
            (vec![ended("command-1", 10), ended("command-2", 12)], true),
        ] {
            assert_eq!(untold(ends.clone()).contains(&command), is_told, "{ends:?}");
            assert!(
                !untold(ends.clone())
                    .iter()
                    .any(|chain| !chain.contains("command-"))
            );
        }
    }
}
