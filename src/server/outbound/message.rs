//! A letter as bytes (RFC 5322 §3.6): `multipart/alternative` (RFC 2046 §5.1.4) with plain text and
//! HTML. ASCII goes as it is, where its lines are short enough. All else stands in base64 (RFC 2045
//! §6.8), or in a header in encoded words (RFC 2047), so none of it can begin a header.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::mail_address::MailAddress;

/// Bytes that one encoded word holds: it has at most 75 characters (RFC 2047 §2).
const WORD: usize = 45;
/// Bytes of a line of base64: 76 characters (RFC 2045 §6.8).
const LINE: usize = 57;
/// The longest line that goes as it is (RFC 5322 §2.1.1).
const TEXT_LINE: usize = 998;
/// The longest text that stands in a header as it is. Shorter ones leave room for an address.
const HEADER_TEXT: usize = 200;
/// What means something beside a name (RFC 5322 §3.2.3).
const SPECIALS: &str = "()<>[]:;@\\,.\"";
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// What a letter says.
pub struct LetterText {
    /// BCP 47.
    pub language: &'static str,
    pub subject: String,
    /// Lines end with a line feed.
    pub text: String,
    /// The same as a document. Lines end with a line feed.
    pub html: String,
}

/// What a letter consists of.
pub struct Message<'a> {
    /// Whom it comes from, beside the address.
    pub sender: &'a str,
    pub from: &'a MailAddress,
    pub to: &'a MailAddress,
    pub letter: &'a LetterText,
    pub sent_at: Instant,
    /// Random, in hexadecimal. It also stands between the parts: nobody who chooses a name that is
    /// in one can know it.
    pub id: &'a str,
}

impl Message<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let Message { letter, id, .. } = self;
        let lines = [
            format!("Date: {}", date(self.sent_at)),
            format!("From: {} <{}>", name(self.sender), self.from),
            format!("To: <{}>", self.to),
            format!("Subject: {}", header_text(&letter.subject)),
            format!("Message-ID: <{id}@{}>", self.from.domain()),
            // Answering machines leave it alone (RFC 3834 §5).
            String::from("Auto-Submitted: auto-generated"),
            format!("Content-Language: {}", letter.language),
            String::from("MIME-Version: 1.0"),
            format!("Content-Type: multipart/alternative; boundary=\"{id}\""),
            String::new(),
            format!("--{id}"),
            part("plain", &letter.text),
            format!("--{id}"),
            part("html", &letter.html),
            format!("--{id}--"),
            String::new(),
        ];
        lines.join("\r\n").into_bytes()
    }
}

/// A part of the letter with its header.
fn part(kind: &str, text: &str) -> String {
    let whole = text.replace('\n', "\r\n");
    let fits = |line: &str| line.len() <= TEXT_LINE && is_printable(line);
    let (encoding, body) = if text.split('\n').all(fits) {
        ("7bit", whole)
    } else {
        let lines = whole.as_bytes().chunks(LINE);
        let lines = lines.map(|line| STANDARD.encode(line));
        ("base64", joined("\r\n", lines))
    };
    format!(
        "Content-Type: text/{kind}; charset=utf-8\r\n\
         Content-Transfer-Encoding: {encoding}\r\n\r\n{body}"
    )
}

/// Whether it is of ASCII letters, digits, marks and blanks alone.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Whether it can stand in a header as it is: readers take nothing in it for an encoded word, and
/// each blank stands between two words.
fn is_plain(text: &str) -> bool {
    text.len() <= HEADER_TEXT
        && is_printable(text)
        && !text.contains("=?")
        && !text.split(' ').any(str::is_empty)
}

/// Any text in a header, encoded where it must be.
fn header_text(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    words(text)
}

/// The name of an address (RFC 5322 §3.4): in quotes where it has marks that mean something there.
fn name(text: &str) -> String {
    if is_plain(text) && text.contains(|letter| SPECIALS.contains(letter)) {
        return format!(r#""{}""#, text.replace('\\', r"\\").replace('"', r#"\""#));
    }
    header_text(text)
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
            letter: &LetterText {
                language: "de",
                subject: subject.to_owned(),
                text: text.to_owned(),
                html: text.to_owned(),
            },
            sent_at: Instant::from_seconds(1_795_642_999),
            id: "00ff",
        };
        String::from_utf8(message.bytes()).unwrap()
    }

    /// Of a header that is folded, the text with its encoded words read.
    fn decoded(message: &str, header: &str) -> String {
        let unfolded = message.replace("\r\n ", " ");
        let prefix = format!("{header}: ");
        let line = unfolded
            .split("\r\n")
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap();
        if !line.starts_with("=?") {
            return line.to_owned();
        }
        let words = line.split(' ').filter_map(|word| {
            word.strip_prefix("=?utf-8?B?")
                .and_then(|word| word.strip_suffix("?="))
        });
        words
            .map(|word| String::from_utf8(STANDARD.decode(word).unwrap()).unwrap())
            .collect()
    }

    /// The text of a part, as a reader shows it.
    fn read(part: &str) -> String {
        let (head, body) = part.split_once("\r\n\r\n").unwrap();
        let body = body.strip_suffix("\r\n").unwrap();
        if head.ends_with("7bit") {
            return body.to_owned();
        }
        let sent = STANDARD.decode(body.replace("\r\n", "")).unwrap();
        String::from_utf8(sent).unwrap()
    }

    #[test]
    fn a_letter_has_what_the_standard_asks_for() {
        let message = bytes("Köln", "Ein neues Passwort", "Hallö\nWelt\n");
        for line in [
            "Date: Wed, 25 Nov 2026 21:43:19 +0000\r\n",
            "From: =?utf-8?B?S8O2bG4=?= <gatepost@example.com>\r\n",
            "To: <alice@example.com>\r\n",
            "Subject: Ein neues Passwort\r\n",
            "Message-ID: <00ff@example.com>\r\n",
            "Auto-Submitted: auto-generated\r\n",
            "Content-Type: multipart/alternative; boundary=\"00ff\"\r\n\r\n--00ff\r\n",
            "Content-Type: text/plain; charset=utf-8\r\n",
            "Content-Type: text/html; charset=utf-8\r\n",
            "Content-Transfer-Encoding: base64\r\n\r\nSGFsbMO2DQpXZWx0DQo=\r\n--00ff--\r\n",
        ] {
            assert!(message.contains(line), "{line}: {message}");
        }
    }

    #[test]
    fn ascii_goes_as_it_is_where_its_lines_are_short_enough() {
        let longest = "x".repeat(TEXT_LINE);
        for text in ["Hello\n\nfrom us.\n", &format!("{longest}\n.\n"), ""] {
            let message = bytes("Gatepost", "Hello", text);
            let sent = format!("7bit\r\n\r\n{}\r\n--00ff", text.replace('\n', "\r\n"));
            assert_eq!(message.matches(&sent).count(), 2, "{message}");
        }
        for text in [&format!("{longest}x"), "a\rb", "a\0b", "a\tb", "ä"] {
            let message = bytes("Gatepost", "Hello", text);
            assert_eq!(message.matches("Encoding: base64").count(), 2, "{message}");
        }
    }

    #[test]
    fn headers_are_encoded_and_names_quoted_only_where_they_must_be() {
        for (sender, written) in [
            ("Gatepost", "Gatepost"),
            ("Wonderland & Sons", "Wonderland & Sons"),
            ("Wonderland, Inc.", r#""Wonderland, Inc.""#),
            (r#"The "Rabbit" \ <a@b>"#, r#""The \"Rabbit\" \\ <a@b>""#),
            ("=?utf-8?Q?x?=", "=?utf-8?B?PT91dGYtOD9RP3g/PQ==?="),
            ("Köln", "=?utf-8?B?S8O2bG4=?="),
            ("two  blanks", "=?utf-8?B?dHdvICBibGFua3M=?="),
            ("a\r\nBcc: b", "=?utf-8?B?YQ0KQmNjOiBi?="),
        ] {
            assert_eq!(name(sender), written);
        }
        let long = "x".repeat(HEADER_TEXT);
        assert_eq!(header_text(&long), long);
        assert!(header_text(&format!("{long}x")).starts_with("=?utf-8?B?"));
    }

    proptest! {
        #[test]
        fn nothing_in_a_name_begins_a_header(
            name in prop_oneof![any::<String>(), "[ -~\r\n]{0,200}"],
            text in any::<String>(),
        ) {
            let message = bytes(&name, &name, &text);
            let (head, body) = message.split_once("\r\n\r\n").unwrap();
            prop_assert!(message.is_ascii());
            let begun = head.split("\r\n").filter(|line| !line.starts_with(' '));
            prop_assert_eq!(begun.count(), 9);
            prop_assert!(message.split("\r\n").all(|line| line.len() <= TEXT_LINE));
            prop_assert_eq!(decoded(&message, "Subject"), name);
            let parts: Vec<&str> = body.split("--00ff").collect();
            prop_assert_eq!(parts.len(), 4);
            for part in &parts[1..3] {
                prop_assert_eq!(read(part), text.replace('\n', "\r\n"));
            }
        }
    }
}
