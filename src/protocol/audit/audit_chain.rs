//! The audit log's chains: what the hash of a row covers, and how rows, heads and chains are named. Each row repeats the
//! hash of the one before it, so that none can be changed, taken out or put in without all that follow telling.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::protocol::words::hex;
use crate::protocol::words::instant::{Day, Instant};

pub type Hash = [u8; 32];

/// What the first row of every chain repeats.
pub const NO_HASH: Hash = [0; 32];

pub const OPENED: &str = "chain_opened";

pub const EVENTS: [&str; 53] = [
    "access_token_revoked",
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
    "grant_begun",
    "grant_refused",
    "grant_revoked",
    "identity_link_failed",
    "identity_link_refused",
    "identity_linked",
    "identity_unlinked",
    "issuer_renamed",
    "keys_reset",
    "master_secret_rotated",
    "more_failures",
    "password_change_refused",
    "password_changed",
    "password_granted",
    "refresh_repeated",
    "refresh_token_replayed",
    "refreshed",
    "registration_changed",
    "registration_removed",
    "session_ended",
    "sign_in_failed",
    "signed_in",
    "signed_out",
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
    "user_provisioned",
    "user_removed",
    "user_revoked",
];

/// Begins what is hashed, so that no hash of anything else is one of a row.
const DOMAIN: &[u8] = b"gatepost audit row 1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// The day until which it is kept, the same for a whole chain.
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
    /// Its hash: over every column, each with its length before it, so that no text can pass from one to the next.
    pub fn hash(&self) -> Hash {
        let mut digest = Sha256::new();
        digest.update(DOMAIN);
        digest.update(self.day.0.to_be_bytes());
        digest.update(self.at.micros().to_be_bytes());
        digest.update(self.seq.to_be_bytes());
        digest.update(self.previous);
        let required = [&self.chain, &self.event, &self.detail].map(|text| Some(text.as_str()));
        let optional = [&self.client_id, &self.sub, &self.sid, &self.source, &self.request_id];
        for text in required.into_iter().chain(optional.map(|text| text.as_deref())) {
            absorb(&mut digest, text);
        }
        digest.finalize().into()
    }
}

/// One byte tells nothing from something; something has its length before it.
fn absorb(digest: &mut Sha256, text: Option<&str>) {
    let Some(text) = text else { return digest.update([0]) };
    digest.update([1]);
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text.as_bytes());
}

#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Begins the process of a command's chains.
pub const COMMAND: &str = "command-";

/// Before the last sign of a server, for so long it may not have told what it should have.
const DOUBTFUL: Duration = Duration::from_secs(86_400);

/// The heads of commands that no server may have told yet, of all chain ends and when they were written: those since the
/// last sign of a server that is not this process, and for a day before.
pub fn untold(ends: Vec<(Head, Instant)>, this_process: &str) -> Vec<Head> {
    let is_of = |head: &Head, process: &str| head.chain.contains(&format!("/{process}"));
    let others = ends.iter().filter(|(head, _)| !is_of(head, COMMAND) && !is_of(head, &format!("{this_process}/")));
    let since = others.map(|(_, at)| at.minus(DOUBTFUL)).max();
    let of_commands =
        ends.into_iter().filter(|(head, at)| is_of(head, COMMAND) && since.is_none_or(|since| *at >= since));
    of_commands.map(|(head, _)| head).collect()
}

pub fn from_hex(text: &str) -> Option<Hash> {
    hex::decode(text)?.try_into().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn full() -> AuditRow {
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
            AuditRow { sub: sub.map(str::to_owned), sid: sid.map(str::to_owned), ..full() }.hash()
        };
        let hashes = [
            of(Some("ab"), Some("c")),
            of(Some("a"), Some("bc")),
            of(None, Some("a")),
            of(Some("a"), None),
            of(Some("a"), Some("")),
        ];
        assert!(hashes.iter().enumerate().all(|(index, hash)| !hashes[..index].contains(hash)));
    }

    /// What is stored was hashed by earlier versions: this may never change.
    #[test]
    fn the_hash_of_a_known_row_stays() {
        assert_eq!(hex::encode(&full().hash()), KNOWN);
    }

    const KNOWN: &str = "1ddbdad1e727c789fcfbbb6a9e8a1f12eb7ad46081a81c7efdfac4478ce73c49";
}
