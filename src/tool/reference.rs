//! What Gatepost knows of itself, as tables: `gatepost help TOPIC` prints one of them or a row,
//! `gatepost reference` writes all of them as pages.

use std::fs;
use std::path::Path;

use super::arguments::{Invocation, named};
use super::command::{self, COMMANDS, Command, fill};
use super::output::{CommandResult, Failure, say};
use super::page_headings;
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::registration::{catalogue, client, provider};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::reason::Reason;
use gatepost_registration::user;
use gatepost_server::config::settings::{SETTINGS, Setting};

/// A table. Its cells are Markdown, whose links are those of a page in `docs/reference`.
struct Topic {
    name: &'static str,
    page: &'static str,
    heading: &'static str,
    intro: &'static str,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The pages, in their order, with their titles.
const PAGES: &[(&str, &str)] = &[
    ("settings", "Settings"),
    ("registration", "What can be registered"),
    ("endpoints", "Endpoints, parameters, errors"),
    ("codes", "What the GP codes mean"),
    ("commands", "Commands"),
    ("metrics", "Metrics"),
    ("audit", "Audit events"),
];

impl Topic {
    /// Whether the first cell of a row has that word as a name.
    fn names(&self, row: &[String], word: &str) -> bool {
        let first = row.first().map_or("", String::as_str);
        let first = first.replace(['{', '#'], "`");
        let mut names = first.split('`').skip(1).step_by(2);
        (self.name == "codes" && first.eq_ignore_ascii_case(word))
            || names.any(|name| name == word && !word.is_empty())
    }

    /// Reads an entry of `reference.txt`.
    fn read(entry: &'static str) -> Option<Topic> {
        let (head, rest) = entry.strip_prefix("= ")?.split_once('\n')?;
        let (name, head) = head.split_once(", ")?;
        let (intro, table) = rest.split_once("\n| ")?;
        let (page, heading) = head.split_once(": ").unwrap_or((head, ""));
        let (heads, rows) = table.split_once('\n').unwrap_or((table, ""));
        let rows = rows.lines().map(cells);
        Some(Topic {
            name,
            page,
            heading,
            intro,
            heads: cells(heads),
            rows: rows.chain(rows_of(name)).collect(),
        })
    }

    fn all() -> Vec<Topic> {
        let written = include_str!("reference.txt").split("\n\n");
        written.filter_map(Topic::read).collect()
    }

    fn markdown(&self) -> String {
        let heading = if self.heading.is_empty() {
            String::new()
        } else {
            format!("## {}\n\n", self.heading)
        };
        let rule = "|---".repeat(self.heads.len());
        let rows: String = self.rows.iter().map(|row| self.line(row)).collect();
        format!(
            "{heading}{}\n\n{}{rule}|\n{rows}",
            self.intro,
            self.line(&self.heads)
        )
    }

    fn line(&self, cells: &[String]) -> String {
        let cell = |index| cells.get(index).map_or("", String::as_str);
        format!("| {} |\n", joined(" | ", (0..self.heads.len()).map(cell)))
    }

    /// What it says of a word: all where it is named by it, or the rows that are, if any.
    fn about(&self, word: &str) -> String {
        let is_all = self.name == word || self.heading == code(word);
        let mut rows = Vec::new();
        for row in &self.rows {
            if is_all || self.names(row, word) {
                rows.push(self.row(row));
            }
        }
        let rows = rows.join("\n");
        if is_all {
            let intro = fill("", plain(self.intro).split_whitespace(), 0);
            format!("\n{intro}\n\n{rows}")
        } else if rows.is_empty() {
            rows
        } else {
            format!("\nFrom `gatepost help {}`:\n\n{rows}", self.name)
        }
    }

    /// A row for a terminal: what it is about, and below that what there is to say.
    fn row(&self, row: &[String]) -> String {
        let mut text = fill(
            "",
            plain(row.first().map_or("", String::as_str)).split(' '),
            0,
        );
        for (head, cell) in self
            .heads
            .iter()
            .zip(row)
            .skip(1)
            .filter(|(_, cell)| !cell.is_empty())
        {
            for part in plain(cell).split("<br>") {
                let head = if self.heads.get(1) == Some(head) {
                    String::new()
                } else {
                    format!("{head}: ")
                };
                text += &format!("\n{}", fill(&format!("    {head}"), part.split(' '), 4));
            }
        }
        text + "\n"
    }
}

/// The rows that a topic has beside those of `reference.txt`.
fn rows_of(topic: &str) -> Vec<Vec<String>> {
    match topic {
        "settings" => {
            let row =
                |one: &&Setting| vec![code(one.name), one.meaning.to_owned(), one.default_text()];
            SETTINGS.iter().map(row).collect()
        }
        "codes" => {
            let mut reasons = Reason::ALL.to_vec();
            reasons.sort_by_key(|reason| reason.code());
            let row =
                |one: Reason| [one.code(), one.description(), one.remedy()].map(str::to_owned);
            reasons.into_iter().map(|one| row(one).to_vec()).collect()
        }
        "commands" => COMMANDS.iter().map(row_of_command).collect(),
        _ => {
            // A paragraph for each row.
            let rows = keys_of(topic).split("\n\n").map(str::trim);
            let rows = rows.filter(|row| !row.is_empty());
            rows.map(|row| cells(&row.replace('\n', ""))).collect()
        }
    }
}

fn row_of_command(command: &Command) -> Vec<String> {
    let name = format!("gatepost {} {}", command.name, command.values.join(" "));
    let options = command.shown_options().map(|option| code(option.usage));
    vec![
        code(name.trim_end()),
        command.summary.to_owned(),
        joined(", ", options),
    ]
}

/// What the core says of the keys that it reads.
fn keys_of(topic: &str) -> &'static str {
    match topic {
        "client" => client::CLIENT_KEYS,
        "federated" => client::FEDERATED_KEYS,
        "id_jag" => client::ID_JAG_KEYS,
        "user" => user::USER_KEYS,
        "identity" => user::IDENTITY_KEYS,
        "identity_scope" => catalogue::IDENTITY_SCOPE_KEYS,
        "resource" => catalogue::RESOURCE_KEYS,
        "tenant" => catalogue::TENANT_KEYS,
        "role" => catalogue::ROLE_KEYS,
        "identity_provider" => provider::IDENTITY_PROVIDER_KEYS,
        "assertion_issuer" => catalogue::ASSERTION_ISSUER_KEYS,
        _ => "",
    }
}

fn cells(row: &str) -> Vec<String> {
    row.split(" | ").map(str::to_owned).collect()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Markdown as people read it: links by their words alone.
fn plain(markdown: &str) -> String {
    let mut text = markdown.replace(['`'], "").replace("**", "");
    while let Some((before, rest)) = text
        .split_once("](")
        .filter(|(before, _)| before.contains('['))
    {
        let words = before.rsplit_once('[');
        let after = rest.split_once(')');
        let (Some((before, word)), Some((_, after))) = (words, after) else {
            break;
        };
        text = format!("{before}{word}{after}");
    }
    text
}

/// `gatepost help`: about a topic, a command, anything that has a row of its own, or a heading of
/// the pages.
pub fn help(words: &[String]) -> CommandResult {
    let topics = Topic::all();
    let Some(word) = words.first() else {
        command::help(words)?;
        return list(&topics);
    };
    let is_command = COMMANDS
        .iter()
        .any(|command: &Command| command.name.split(' ').next() == Some(word));
    if is_command {
        command::help(words)?;
    }
    let found: String = match words {
        [_] => topics.iter().map(|topic| topic.about(word)).collect(),
        [..] => String::new(),
    };
    let pages = page_headings::about(words);
    if !found.is_empty() {
        say(found.trim())?;
    }
    if !pages.is_empty() {
        return say!("\nPages of the documentation:\n\n{}", pages.trim_end());
    }
    if found.is_empty() && !is_command && named(words).is_none() {
        return Err(no_help(word, &topics));
    }
    Ok(())
}

fn list(topics: &[Topic]) -> CommandResult {
    let mut names = vec![""];
    names.extend(topics.iter().map(|topic| topic.name));
    let about = "gatepost help TOPIC, CODE, SETTING, KEY or COMMAND says more, and help WORD \
                 which page has it. Topics:";
    say!("\n{}", fill(about, names, 2))
}

fn no_help(word: &str, topics: &[Topic]) -> Failure {
    let mut known: Vec<&str> = topics.iter().map(|topic| topic.name).collect();
    known.extend(SETTINGS.iter().map(|setting| setting.name));
    let hint = hint(word, known);
    Failure::Usage(format!(
        "there is no help about \"{}\"{hint}; `gatepost help` lists the topics",
        word.escape_debug()
    ))
}

/// `gatepost reference DIRECTORY`: writes the pages of `docs/reference`.
pub fn write(invocation: &Invocation) -> CommandResult {
    let directory = Path::new(invocation.value(0));
    let topics = Topic::all();
    let mut index = String::from(
        "# Reference\n\n\
         Made by `gatepost reference docs/reference`. `gatepost help TOPIC` prints the same.\n\n\
         | page | topics |\n|---|---|\n",
    );
    for (page, title) in PAGES {
        let mut tables = Vec::new();
        let mut names = Vec::new();
        for topic in topics.iter().filter(|topic| topic.page == *page) {
            tables.push(topic.markdown());
            names.push(code(topic.name));
        }
        let text = format!("# {title}\n\n{}", tables.join("\n"));
        write_page(directory, page, &text)?;
        index += &format!("| [{title}]({page}.md) | {} |\n", names.join(", "));
    }
    write_page(directory, "README", &index)
}

fn write_page(directory: &Path, name: &str, text: &str) -> CommandResult {
    fs::write(directory.join(format!("{name}.md")), text)
        .or_else(|error| refuse!("{}: {error}", directory.join(name).display()))
}
