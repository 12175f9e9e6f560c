//! Heads of audit chains, read out of a log. Only Gatepost's own log lines count, never text that a
//! request brought into them.

use std::borrow::Cow;

use gatepost_protocol::audit::audit_chain::{HEADS, HEADS_TARGET, Head, from_hex};
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::json::{JsonObject, Members};

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
    if members.text("target")? != HEADS_TARGET {
        return None;
    }
    Some(Cow::Owned(members.text("message")?.to_owned()))
}

/// The line without the priority of RFC 5424 §6.2.1.
fn without_priority(line: &str) -> &str {
    let behind = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match behind {
        Some((priority, rest)) if is_digits_and(priority, b"") => rest,
        _ => line,
    }
}

fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((word, rest)) if is_time(word) => rest,
        _ => line,
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
    use gatepost_protocol::audit::audit_chain::{Hash, chain_name, heads_lines};
    use gatepost_protocol::words::identifiers;

    use super::*;

    const HASH: Hash = [29; 32];

    #[test]
    fn heads_are_read_out_of_a_log_line_as_they_were_told() {
        let head = |number| Head {
            chain: chain_name(Day(20_778), "command-00ff", number),
            seq: i64::from(number) * 5,
            hash: HASH,
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
    fn what_is_no_header_of_a_collector_hides_its_heads() {
        let head = Head {
            chain: chain_name(Day(20_778), "p", 1),
            seq: 5,
            hash: HASH,
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
        let hash = identifiers::encode(&HASH);
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
