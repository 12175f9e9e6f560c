//! People in pasted lines, from a spreadsheet or by hand: `name,address,user name,roles`.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::pages::admin::invite_several::LineProblem;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_server::endpoints::forms::tidy;
use gatepost_server::pages::join::JoinProblem;
use gatepost_server::pages::texts::Texts;

/// Somebody of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedPerson {
    /// From one on.
    pub line: usize,
    pub name: String,
    /// Empty where there is none.
    pub address: String,
    pub username: String,
    /// By their names, sorted.
    pub roles: Vec<String>,
}

/// What the lines are read by.
pub struct LineRules<'a> {
    pub texts: &'a Texts,
    /// In small letters. A first line of such words alone is a header.
    pub header_words: &'a [String],
    pub needs_address: bool,
    /// The role that may be given and is called so.
    pub role_of: &'a dyn Fn(&str) -> Option<String>,
}

/// What was read: people, and the mistakes in the order of their lines.
#[derive(Debug, Default)]
pub struct PastedPeople {
    pub people: Vec<PastedPerson>,
    pub problems: Vec<LineProblem>,
}

/// Reads the lines. Empty ones, a byte order mark and a header are skipped. Fields are separated by
/// whichever of comma, semicolon and tab the first line has most of; quotes are those of RFC 4180.
pub fn read(text: &str, rules: &LineRules<'_>) -> PastedPeople {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate();
    let mut lines = numbered
        .filter(|(_, line)| !line.trim().is_empty())
        .peekable();
    let separator = lines.peek().map_or(b',', |(_, first)| separator_of(first));
    let is_header = |fields: &StringRecord| {
        let mut words = fields.iter().map(str::to_lowercase);
        words.all(|word| rules.header_words.contains(&word))
    };
    let mut read = PastedPeople::default();
    // By what people are called, in small letters: the line that has it.
    let mut seen = BTreeMap::new();
    for (place, (index, line)) in lines.enumerate() {
        let fields = fields_of(line, separator);
        if place == 0 && is_header(&fields) {
            continue;
        }
        let person = read.take(index + 1, &fields, rules);
        for known in person.into_iter().flat_map(|person| names_of(&person)) {
            match seen.insert(known, index + 1) {
                Some(before) if before != index + 1 => {
                    let sentence = rules.texts.line_twice.fill(&before.to_string());
                    read.object(index + 1, sentence);
                    break;
                }
                _ => (),
            }
        }
    }
    read
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
    let first = reader.records().next();
    first.and_then(Result::ok).unwrap_or_default()
}

fn names_of(person: &PastedPerson) -> Vec<String> {
    let names = [&person.username, &person.address].into_iter();
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| name.to_lowercase()).collect()
}

impl PastedPeople {
    fn object(&mut self, line: usize, sentence: impl Into<String>) {
        let sentence = sentence.into();
        self.problems.push(LineProblem { line, sentence });
    }

    /// Takes the person of a line, or tells all that is wrong with it. Answers the person where
    /// there is one, right or wrong.
    fn take(
        &mut self,
        line: usize,
        fields: &StringRecord,
        rules: &LineRules<'_>,
    ) -> Option<PastedPerson> {
        let texts = rules.texts;
        let before = self.problems.len();
        if !(2..=4).contains(&fields.len()) {
            self.object(line, texts.line_columns);
            return None;
        }
        let field = |index| fields.get(index).unwrap_or_default();
        let name = tidy(Some(field(0)), 200);
        let address = field(1);
        // Who has no other name is called by their address.
        let username = Some(field(2)).filter(|name| !name.is_empty());
        let username = username.unwrap_or(address);
        if name.is_empty() {
            self.object(line, texts.name_missing);
        }
        let is_needed = rules.needs_address || !address.is_empty();
        if is_needed && MailAddress::parse(address).is_err() {
            self.object(line, texts.address_unfit);
        } else if let Some(problem) = JoinProblem::of_name(username, address) {
            self.object(line, problem.told(texts).1);
        }
        let named = field(3).split('|').map(str::trim);
        let mut roles = Vec::new();
        for text in named.filter(|text| !text.is_empty()) {
            match (rules.role_of)(text) {
                Some(role) => roles.push(role),
                None => self.object(line, texts.line_role.fill(text)),
            }
        }
        roles.sort_unstable();
        roles.dedup();
        let person = PastedPerson {
            line,
            name,
            address: address.to_owned(),
            username: username.to_owned(),
            roles,
        };
        if self.problems.len() == before {
            self.people.push(person.clone());
        }
        Some(person)
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use gatepost_server::pages::language::Language;

    fn read_of(text: &str) -> PastedPeople {
        let words = ["name", "address", "user name", "roles"].map(str::to_owned);
        let role_of = |text: &str| (text == "sales" || text == "staff").then(|| text.to_owned());
        let rules = LineRules {
            texts: Language::English.texts(),
            header_words: &words,
            needs_address: true,
            role_of: &role_of,
        };
        read(text, &rules)
    }

    fn person(line: usize, fields: [&str; 3], roles: &[&str]) -> PastedPerson {
        let [name, address, username] = fields.map(str::to_owned);
        PastedPerson {
            line,
            name,
            address,
            username,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
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
            let read = read_of(text);
            assert_eq!(read.problems, [], "{text}");
            assert_eq!(read.people, slice::from_ref(&ann), "{text}");
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
        assert_eq!((read.people, read.problems), (people.into(), vec![]));
    }

    #[test]
    fn each_mistake_of_each_line_is_told() {
        let read = read_of(
            "Ann,ann@example.com,ann\n\
             Ann\n\
             a,b@example.com,c,,e\n\
             \"Bo,bo@example.com,bo\n\
             ,nonsense,x,office|root\n\
             Eve,eve@example.com,other@example.com\n\
             Dee,ANN@example.com,dee\n\
             Dora,dora@example.com,Ann\n\
             name,address\n\
             a\u{202e}b,cy@example.com,a\u{202e}b",
        );
        let told: Vec<_> = read
            .problems
            .iter()
            .map(|one| (one.line, &*one.sentence))
            .collect();
        let columns = "There must be two to four columns: name, e-mail address, user name, roles.";
        let unfit = "Enter an e-mail address, such as name@example.com.";
        let twice = "The user name or e-mail address stands in line 1 already.";
        let expected = [
            (2, columns),
            (3, columns),
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
        ];
        assert_eq!(told, expected);
    }
}
