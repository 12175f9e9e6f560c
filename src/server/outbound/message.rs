//! A letter as bytes (RFC 5322 §3.6): plain text in base64 (RFC 2045 §6.8), names in encoded words
//! (RFC 2047). What is no fixed text stands in base64, so none of it can begin a header.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::mail_address::MailAddress;

/// Bytes that one encoded word holds: it has at most 75 characters (RFC 2047 §2).
const WORD: usize = 45;
/// Bytes of a line of base64: 76 characters (RFC 2045 §6.8).
const LINE: usize = 57;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// What a letter consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Whom it comes from, beside the address.
    pub sender: &'a str,
    pub from: &'a MailAddress,
    pub to: &'a MailAddress,
    pub subject: &'a str,
    /// Lines end with a line feed.
    pub text: &'a str,
    /// BCP 47.
    pub language: &'a str,
    pub sent_at: Instant,
    /// Random, in hexadecimal.
    pub id: &'a str,
}

impl Message<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut lines = vec![
            format!("Date: {}", date(self.sent_at)),
            format!("From: {} <{}>", words(self.sender), self.from),
            format!("To: <{}>", self.to),
            format!("Subject: {}", words(self.subject)),
            format!("Message-ID: <{}@{}>", self.id, self.from.domain()),
            // Answering machines leave it alone (RFC 3834 §5).
            String::from("Auto-Submitted: auto-generated"),
            format!("Content-Language: {}", self.language),
            String::from("MIME-Version: 1.0"),
            String::from("Content-Type: text/plain; charset=utf-8"),
            String::from("Content-Transfer-Encoding: base64"),
            String::new(),
        ];
        let text = self.text.replace('\n', "\r\n");
        lines.extend(
            text.as_bytes()
                .chunks(LINE)
                .map(|line| STANDARD.encode(line)),
        );
        lines.push(String::new());
        lines.join("\r\n").into_bytes()
    }
}

/// Encoded words, each on a line of its own, and no letter cut in two.
fn words(text: &str) -> String {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        if word.len() + letter.len_utf8() > WORD {
            words.push(encoded(&word));
            word.clear();
        }
        word.push(letter);
    }
    words.push(encoded(&word));
    words.join("\r\n ")
}

fn encoded(word: &str) -> String {
    format!("=?utf-8?B?{}?=", STANDARD.encode(word))
}

/// As RFC 5322 §3.3 writes it.
fn date(instant: Instant) -> String {
    let whole = timestamp::format(instant);
    let part = |range| whole.get(range).unwrap_or_default();
    let month: usize = part(5..7).parse().unwrap_or(1);
    let month = MONTHS.get(month.saturating_sub(1)).unwrap_or(&"Jan");
    let weekday = usize::try_from(instant.day().0.rem_euclid(7)).unwrap_or_default();
    let weekday = DAYS.get(weekday).unwrap_or(&"Thu");
    format!(
        "{weekday}, {} {month} {} {} +0000",
        part(8..10),
        part(0..4),
        part(11..19)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(sender: &str, subject: &str, text: &str) -> String {
        let message = Message {
            sender,
            from: &MailAddress::parse("gatepost@example.com").unwrap(),
            to: &MailAddress::parse("alice@example.com").unwrap(),
            subject,
            text,
            language: "de",
            sent_at: Instant::from_seconds(1_795_642_999),
            id: "00ff",
        };
        String::from_utf8(message.bytes()).unwrap()
    }

    /// Of a header that is folded, the text of its words.
    fn decoded(message: &str, header: &str) -> String {
        let unfolded = message.replace("\r\n ", " ");
        let prefix = format!("{header}: ");
        let line = unfolded
            .split("\r\n")
            .find_map(|line| line.strip_prefix(&prefix));
        let words = line.unwrap().split(' ').filter_map(|word| {
            word.strip_prefix("=?utf-8?B?")
                .and_then(|word| word.strip_suffix("?="))
        });
        words
            .map(|word| String::from_utf8(STANDARD.decode(word).unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn a_letter_has_what_the_standard_asks_for() {
        let message = bytes("Köln", "Ein neues Passwort", "Hallo\nWelt\n");
        for line in [
            "Date: Wed, 25 Nov 2026 21:43:19 +0000\r\n",
            "From: =?utf-8?B?S8O2bG4=?= <gatepost@example.com>\r\n",
            "To: <alice@example.com>\r\n",
            "Message-ID: <00ff@example.com>\r\n",
            "Auto-Submitted: auto-generated\r\n",
            "\r\n\r\nSGFsbG8NCldlbHQNCg==\r\n",
        ] {
            assert!(message.contains(line), "{line}: {message}");
        }
        assert_eq!(decoded(&message, "Subject"), "Ein neues Passwort");
    }

    proptest! {
        #[test]
        fn nothing_in_a_name_begins_a_header(name in any::<String>(), text in any::<String>()) {
            let message = bytes(&name, &name, &text);
            let (head, body) = message.split_once("\r\n\r\n").unwrap();
            prop_assert!(message.is_ascii());
            let begun = head.split("\r\n").filter(|line| !line.starts_with(' '));
            prop_assert_eq!(begun.count(), 10);
            prop_assert!(message.split("\r\n").all(|line| line.len() <= 120));
            prop_assert_eq!(decoded(&message, "Subject"), name);
            let sent = STANDARD.decode(body.replace("\r\n", "")).unwrap();
            prop_assert_eq!(String::from_utf8(sent).unwrap(), text.replace('\n', "\r\n"));
        }
    }
}
