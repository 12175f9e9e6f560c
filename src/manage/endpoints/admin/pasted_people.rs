//! People in pasted lines, from a spreadsheet or by hand: `name,address,user name,roles,end`.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::invitations::{Newcomer, PastedLine};
use crate::pages::admin::person::PersonDetails;
use crate::statements::invitations::HeldName;
use gatepost_server::endpoints::forms::tidy;
use gatepost_server::pages::texts::Texts;

/// The words of a header, beside those of the page's language.
const HEADER_WORDS: [&str; 6] = ["name", "address", "e-mail", "user name", "roles", "end"];

/// Reads the lines, and tells all that is wrong with each. Empty ones, a byte order mark and a
/// header are skipped. Fields are separated by whichever of comma, semicolon and tab the first line
/// has most of; quotes are those of RFC 4180.
pub fn read(text: &str, around: AdminChrome<'_>) -> Vec<PastedLine> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut separator = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let is_first = separator.is_none();
        let fields = fields_of(line, *separator.get_or_insert_with(|| separator_of(line)));
        if !(is_first && is_header(&fields, around.texts)) {
            lines.push(read_line(index + 1, &fields, around));
        }
    }
    lines
}

fn separator_of(line: &str) -> u8 {
    let mut separator = b',';
    let count = |one: u8| line.bytes().filter(|byte| *byte == one).count();
    for one in [b';', b'\t'] {
        if count(one) > count(separator) {
            separator = one;
        }
    }
    separator
}

/// The fields of one line; none where it cannot be read.
fn fields_of(line: &str, separator: u8) -> StringRecord {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(separator)
        .trim(Trim::All)
        .from_reader(line.as_bytes());
    // To the reader that is the end of a line.
    let first = reader.records().next().filter(|_| !line.contains('\r'));
    first.and_then(Result::ok).unwrap_or_default()
}

fn is_header(fields: &StringRecord, texts: &Texts) -> bool {
    let name = texts.standard_claim("name").unwrap_or(texts.your_name);
    let own_words = [
        name,
        texts.email_address,
        texts.username,
        texts.roles,
        texts.valid_until,
    ];
    let is_word = |field: &str| {
        let mut words = HEADER_WORDS.iter().chain(&own_words);
        words.any(|word| word.to_lowercase() == field.to_lowercase())
    };
    !fields.is_empty() && fields.iter().all(is_word)
}

fn read_line(number: usize, fields: &StringRecord, around: AdminChrome<'_>) -> PastedLine {
    let texts = around.texts;
    let mut line = PastedLine {
        number,
        ..PastedLine::default()
    };
    if !(2..=5).contains(&fields.len()) {
        line.mistakes.push(texts.line_columns.to_owned());
        return line;
    }
    let field = |index| fields.get(index).unwrap_or_default();
    // Who has no other name is called by their address.
    let username = Some(field(2)).filter(|name| !name.is_empty());
    line.newcomer = Newcomer {
        username: username.unwrap_or(field(1)).to_owned(),
        details: PersonDetails {
            name: tidy(fields.get(0), 200),
            address: field(1).to_owned(),
            until: field(4).to_owned(),
            roles: Vec::new(),
        },
    };
    if line.newcomer.details.name.is_empty() {
        line.mistakes.push(texts.name_missing.to_owned());
    }
    if let Some(problem) = line.newcomer.problem(around.by_letter) {
        line.mistakes.push(problem.sentence(texts));
    }
    let roles = &mut line.newcomer.details.roles;
    let called = field(3).split('|').map(str::trim);
    for called in called.filter(|called| !called.is_empty()) {
        match role_called(called, around) {
            Some(role) => roles.push(role.clone()),
            None => line.mistakes.push(texts.line_role.fill(called)),
        }
    }
    roles.sort_unstable();
    roles.dedup();
    line
}

/// The role that can be given and is called so: as it is registered, or by its name.
fn role_called<'a>(called: &str, around: AdminChrome<'a>) -> Option<&'a String> {
    let is_called = |role: &&'a String| *role == called || around.role_name(role) == called;
    around.roles_to_give.iter().find(is_called)
}

/// Tells of each line whose user name or address stands in one before, or is somebody's already.
pub fn note_held(lines: &mut [PastedLine], held: &BTreeMap<String, HeldName>, texts: &Texts) {
    let mut first_lines = BTreeMap::new();
    for line in lines {
        let names = line.newcomer.names();
        let names = Vec::from_iter(names.iter().filter_map(|name| held.get(*name)));
        for name in &names {
            let first = *first_lines.entry(&name.key).or_insert(line.number);
            if first != line.number {
                let sentence = texts.line_twice.fill(&first.to_string());
                line.mistakes.push(sentence);
                break;
            }
        }
        if names.iter().any(|name| name.is_held) {
            line.mistakes.push(texts.line_held.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::pages::tests::{around, brand};
    use gatepost_protocol::words::catalogue::Catalogue;
    use gatepost_server::pages::language::Language;

    fn read_of(text: &str) -> Vec<PastedLine> {
        let brand = brand("");
        let catalogue = Catalogue::default();
        let around = AdminChrome {
            roles_to_give: &["sales", "staff"].map(str::to_owned),
            ..around(&brand, &catalogue, Language::English)
        };
        read(text, around)
    }

    fn person(number: usize, fields: [&str; 3], roles: &[&str]) -> PastedLine {
        let [name, address, username] = fields.map(str::to_owned);
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        PastedLine {
            number,
            newcomer: Newcomer {
                username,
                details: PersonDetails {
                    name,
                    address,
                    until: String::new(),
                    roles,
                },
            },
            mistakes: vec![],
        }
    }

    #[test]
    fn lines_of_spreadsheets_are_read() {
        let ann = person(2, ["Ann Ax", "ann@example.com", "ann"], &["sales", "staff"]);
        for text in [
            "Name,Address,User name,Roles\nAnn Ax,ann@example.com,ann,staff|sales",
            "\u{feff}name;address\r\nAnn Ax ; ann@example.com;ann; sales | staff |\r\n",
            "\nAnn Ax\tann@example.com\tann\tstaff|sales|staff\n\n",
            "name,address\n\"Ann Ax\",\"ann@example.com\",ann,staff|sales",
        ] {
            assert_eq!(read_of(text), slice::from_ref(&ann), "{text}");
        }
        let read = read_of("\"Ax, Ann \"\"A\"\"\",ann@example.com\nBo,bo@example.com,,");
        let people = [
            person(
                1,
                ["Ax, Ann \"A\"", "ann@example.com", "ann@example.com"],
                &[],
            ),
            person(2, ["Bo", "bo@example.com", "bo@example.com"], &[]),
        ];
        assert_eq!(read, people);
    }

    #[test]
    fn each_mistake_of_each_line_is_told() {
        let mut read = read_of(
            "Ann,ann@example.com,ann\n\
             Ann\n\
             a,b@example.com,c,,e\n\
             \"Bo,bo@example.com,bo\n\
             ,nonsense,x,office|root\n\
             Eve,eve@example.com,other@example.com\n\
             Dee,ANN@example.com,dee\n\
             Dora,dora@example.com,Ann\n\
             name,address\n\
             a\u{202e}b,cy@example.com,a\u{202e}b\n\
             Flo,flo@example.com\rFay,fay@example.com",
        );
        let held = ["ann", "Ann", "ann@example.com", "ANN@example.com"].map(|name| {
            let held = HeldName {
                key: name.to_lowercase(),
                is_held: false,
            };
            (name.to_owned(), held)
        });
        note_held(&mut read, &BTreeMap::from(held), Language::English.texts());
        let of_line = |line: &PastedLine| {
            let number = line.number;
            Vec::from_iter(line.mistakes.iter().map(move |one| (number, one.clone())))
        };
        let told: Vec<_> = read.iter().flat_map(of_line).collect();
        let columns =
            "There must be two to five columns: name, e-mail address, user name, roles, last day.";
        let unfit = "Enter an e-mail address, such as name@example.com.";
        let twice = "The user name or e-mail address stands in line 1 already.";
        let expected = [
            (2, columns),
            (3, "Enter the last day, such as 2027-01-31."),
            (4, columns),
            (5, "The name is missing."),
            (5, unfit),
            (5, "There is no role office that you can give."),
            (5, "There is no role root that you can give."),
            (
                6,
                "A user name with an @ must be the same as the e-mail address. Choose another one.",
            ),
            (7, twice),
            (8, twice),
            (9, unfit),
            (
                10,
                "This user name cannot be used here. Choose another one.",
            ),
            (11, columns),
        ];
        let expected = expected.map(|(line, sentence): (usize, &str)| (line, sentence.to_owned()));
        assert_eq!(told, expected);
    }
}
