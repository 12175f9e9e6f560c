//! The chains of the audit log: what the hash of a row covers, and how rows, heads and chains are
//! named. Each row repeats the hash of the row before it. So no row can be changed, removed or
//! inserted without all later rows showing it. The log tells how far the chains have come. Only
//! Gatepost's own log lines count, never text that a request brought into them.

use std::borrow::Cow;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::words::identifiers;
use crate::words::instant::{Day, Instant};
use crate::words::json::JsonObject;

pub type Hash = [u8; 32];

/// What the first row of every chain repeats.
pub const NO_HASH: Hash = [0; 32];

pub const OPENED: &str = "chain_opened";

pub const EVENTS: [&str; 74] = [
    "access_token_revoked",
    "address_changed",
    "address_shared",
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
    "password_granted",
    "password_set_by_link",
    "recovery_code_used",
    "refresh_repeated",
    "refresh_token_replayed",
    "refreshed",
    "registration_changed",
    "registration_removed",
    "second_factor_failed",
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
    "user_provisioned",
    "user_removed",
    "user_revoked",
];

/// What every hashed text begins with. So no hash of anything else is the hash of a row.
const DOMAIN: &[u8] = b"gatepost audit row 1";

#[derive(Clone, Debug, PartialEq, Eq)]
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
        for text in [&self.sub, &self.sid, &self.source, &self.request_id] {
            absorb(&mut hashed, text.as_deref());
        }
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

/// The heads in a line of a log. The line must be nothing else: a message that begins with them, as
/// Gatepost's log writes it, in text or in JSON, bare or after what journald or a collector puts
/// before a line. What a request brings stands in the middle of a message, and is never believed.
pub fn heads_in(line: &str) -> Vec<Head> {
    let line = line.trim_end();
    let told = message(line).or_else(|| message(without_collector(line)?));
    let told = told
        .as_deref()
        .and_then(|message| message.strip_prefix(HEADS));
    told.unwrap_or_default()
        .split_ascii_whitespace()
        .map_while(head)
        .collect()
}

/// The message of a line at the level of heads, as Gatepost writes it.
fn message(line: &str) -> Option<Cow<'_, str>> {
    let line = without_time(without_priority(line));
    if !line.starts_with('{') {
        return line.strip_prefix("INFO  ").map(Cow::Borrowed);
    }
    let members: JsonObject = serde_json::from_str(line).ok()?;
    if members.get("target")?.as_str()? != HEADS_TARGET {
        return None;
    }
    Some(Cow::Owned(members.get("message")?.as_str()?.to_owned()))
}

/// The line without the priority of RFC 5424 §6.2.1.
fn without_priority(line: &str) -> &str {
    let behind = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match behind {
        Some((priority, rest)) if is_digits_and(priority, b"") => rest,
        Some(_) | None => line,
    }
}

fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((word, rest)) if is_time(word) => rest,
        Some(_) | None => line,
    }
}

fn is_time(word: &str) -> bool {
    let is_digit = |place: usize| word.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    is_digit(0)
        && word.as_bytes().get(10) == Some(&b'T')
        && is_digit(11)
        && is_digits_and(word, OF_TIMES)
}

/// What times have beside digits.
const OF_TIMES: &[u8] = b"TZ:.,+-";

/// Whether a text has only digits and these others.
fn is_digits_and(text: &str, others: &[u8]) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || others.contains(&byte))
}

/// The line without the `TIME HOST NAME[PID]: ` of journald and syslog, or without a time alone, as
/// containers have it.
fn without_collector(line: &str) -> Option<&str> {
    let rest = without_time(line);
    if rest.len() < line.len() {
        let stream = ["stdout F ", "stderr F "]
            .into_iter()
            .find_map(|stream| rest.strip_prefix(stream));
        let rest = stream.unwrap_or(rest);
        if message(rest).is_some() {
            return Some(rest);
        }
    }
    let (header, rest) = line.split_once("]: ")?;
    let (before, pid) = header.rsplit_once('[')?;
    let is_header = before.len() < MOST_HEADER
        && begins_with_time(without_priority(before))
        && is_digits_and(pid, b"");
    is_header.then_some(rest)
}

/// Whether the header is a time, in a form of syslog or of `journalctl --output`, and two words:
/// host and program.
fn begins_with_time(header: &str) -> bool {
    let words: Vec<&str> = header.split_ascii_whitespace().collect();
    if !words
        .iter()
        .rev()
        .take(2)
        .all(|word| is_host_or_program(word))
    {
        return false;
    }
    match *words.as_slice() {
        [month, day, clock, _, _] if is_month_or_weekday(month) && is_digits_and(day, b"") => {
            is_clock(clock)
        }
        [weekday, day, clock, _zone, _, _] => {
            is_month_or_weekday(weekday) && is_digits_and(day, b"-") && is_clock(clock)
        }
        ["[", seconds, _, _] => seconds.strip_suffix(']').is_some_and(is_seconds),
        [time, _, _] => is_seconds(time) || (is_digits_and(time, OF_TIMES) && time.contains('T')),
        _ => false,
    }
}

fn is_host_or_program(word: &str) -> bool {
    let is_in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._/@:-".contains(&byte);
    word.bytes().all(is_in_word) && !LEVELS.contains(&word)
}

fn is_month_or_weekday(word: &str) -> bool {
    word.len() == 3 && word.as_bytes().iter().all(u8::is_ascii_alphabetic)
}

fn is_clock(word: &str) -> bool {
    is_digits_and(word, b":.") && word.contains(':')
}

fn is_seconds(word: &str) -> bool {
    is_digits_and(word, b".") && word.matches('.').count() == 1
}

/// The levels that begin Gatepost's own lines, after a time as well. They are not the name of a
/// host.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// The longest header of a collector: a time, a host name and a program are shorter.
const MOST_HEADER: usize = 400;

fn head(text: &str) -> Option<Head> {
    let mut parts = text.splitn(4, ':');
    let chain = parts.next()?.to_owned();
    let seq = parts.next()?.parse().ok()?;
    let until = Day(parts.next()?.parse().ok()?);
    Some(Head {
        chain,
        seq,
        until,
        hash: from_hex(parts.next()?)?,
    })
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
    fn heads_are_read_out_of_a_log_line_as_they_were_told() {
        let head = |number| Head {
            chain: chain_name(Day(20_778), "command-00ff", number),
            seq: i64::from(number) * 5,
            hash: full().hash(),
            until: Day(21_178),
        };
        let heads = vec![head(1), head(2)];
        let line: String = heads_lines(&heads).collect();
        let json =
            format!(r#"{{"level":"info","message":"{line}","target":"gatepost::audit_heads"}}"#);
        let text = format!("INFO  {line}");
        let with_time = format!("2026-11-22T00:59:15.250Z INFO  {line}");
        for own in [text, with_time, json] {
            for before in [
                "",
                "<6>",
                "<5>",
                "<134>Nov 22 00:59:15 host gatepost[12]: ",
                "Nov 22 00:59:15 host gatepost[12]: ",
                "Nov 22 00:59:15 host gatepost[12]: <6>",
                "2026-11-22T00:59:15.123456+00:00 idp.example gatepost[12]: ",
                "Sun 2026-11-22 00:59:15 UTC host gatepost[12]: ",
                "1795309155.123456 host gatepost[12]: ",
                "[ 1234.567890] host gatepost[12]: ",
                "2026-11-22T00:59:15.123456789Z ",
                "2026-11-22T00:59:15.123456789+01:00 stderr F ",
            ] {
                for end in ["", "\r"] {
                    assert_eq!(
                        heads_in(&format!("{before}{own}{end}")),
                        heads,
                        "{before}{own}"
                    );
                }
            }
        }
        assert_eq!(heads_in("INFO  audit heads: a:b:c:d x:1:2:00"), []);
        assert_eq!(heads_in("ready"), []);
    }

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

    #[test]
    fn what_is_no_header_of_a_collector_hides_its_heads() {
        let head = Head {
            chain: chain_name(Day(20_778), "p", 1),
            seq: 5,
            hash: full().hash(),
            until: Day(21_178),
        };
        let line: String = heads_lines(std::slice::from_ref(&head)).collect();
        let long = "h".repeat(MOST_HEADER);
        for before in [
            "<>",
            "<a>",
            "<6",
            "Nov 22 00:59:15 host gatepost[]: ",
            "Nov 22 00:59:15 host gatepost[x1]: ",
            "Novem 22 00:59:15 host gatepost[12]: ",
            "N0v 22 00:59:15 host gatepost[12]: ",
            "Nov 2x 00:59:15 host gatepost[12]: ",
            "Nov 22 005915 host gatepost[12]: ",
            "Nov 22 00:59:15x host gatepost[12]: ",
            "Nov 22 00:59:15 ho\"st gatepost[12]: ",
            "Nov 22 00:59:15 INFO gatepost[12]: ",
            "Sun 2026-11-22 005915 UTC host gatepost[12]: ",
            "Sun 2026x11-22 00:59:15 UTC host gatepost[12]: ",
            "S0n 2026-11-22 00:59:15 UTC host gatepost[12]: ",
            "1795309155 host gatepost[12]: ",
            "1795309155.12.34 host gatepost[12]: ",
            "17953x9155.1 host gatepost[12]: ",
            "[ 1234] host gatepost[12]: ",
            "2026-11-22 host gatepost[12]: ",
            "20x6-11-22T00:59:15Z host gatepost[12]: ",
            "2026-11-22x00:59:15Z ",
            "x026-11-22T00:59:15Z ",
            "stderr F ",
            "2026-11-22Tx0:59:15Z ",
            "2026-11-22T00:59x15Z ",
            &format!("Nov 22 00:59:15 {long} gatepost[12]: "),
        ] {
            let read = heads_in(&format!("{before}INFO  {line}"));
            assert_eq!(read, [], "{before}");
        }
        let fits = MOST_HEADER - "Nov 22 00:59:15  gatepost".len() - 1;
        let before = format!("Nov 22 00:59:15 {} gatepost[12]: ", &long[..fits]);
        assert_eq!(heads_in(&format!("{before}INFO  {line}")), [head]);
        let before = format!("Nov 22 00:59:15 {} gatepost[12]: ", &long[..=fits]);
        assert_eq!(heads_in(&format!("{before}INFO  {line}")), []);
    }

    #[test]
    fn what_stands_within_a_message_tells_no_heads() {
        let hash = identifiers::encode(&full().hash());
        let forged = format!("audit heads: 20778/p/1:7:0:{hash}");
        let header = "Nov 22 00:59:15 host gatepost[12]: ";
        let request = "id=1 method=GET path=/connect/authorize status=400 ms=1 source=192.0.2.1";
        for brought in [
            forged.clone(),
            format!("x {forged}"),
            format!("INFO  {forged}"),
            format!("<6>INFO  {forged}"),
            format!("{header}INFO  {forged}"),
            format!("]: INFO  {forged}"),
            format!("a b[1]: INFO  {forged}"),
            format!("x[1]: INFO  {forged} y"),
        ] {
            for own in [
                brought.replace("INFO  ", "WARN  ").replacen("audit", "WARN  audit", 1),
                format!("INFO  {request} detail=\"{brought}\""),
                format!("INFO  {brought} {request}").replacen("INFO  ", "INFO  path=", 1),
                format!("WARN  the database says {brought}"),
                format!("WARN  {brought}"),
                serde_json::json!({"level": "info", "detail": brought, "target": "gatepost::request"}).to_string(),
                serde_json::json!({"level": "warn", "message": brought, "target": "gatepost"}).to_string(),
                serde_json::json!({"level": "info", "message": {"message": forged}, "target": HEADS_TARGET})
                    .to_string(),
                serde_json::json!({"x": {"message": forged, "target": HEADS_TARGET}}).to_string(),
                format!("192.0.2.1 - - [22/Nov/2026:00:59:15 +0000] \"GET / HTTP/1.1\" 200 12 \"-\" \"{brought}\""),
                format!("Invalid user {brought} from 192.0.2.1"),
            ] {
                for before in ["", "<6>", header, "2026-11-22T00:59:15.123Z ", "2026-11-22T00:59:15Z stderr F "] {
                    assert_eq!(heads_in(&format!("{before}{own}")), [], "{before}{own}");
                }
            }
        }
        assert_eq!(heads_in(&forged), []);
    }
}
