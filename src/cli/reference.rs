//! What Gatepost knows of itself, as tables: `gatepost help TOPIC` prints one of them or a row,
//! `gatepost reference` writes all of them as pages.

use std::fs;
use std::path::Path;

use super::arguments::{Invocation, named};
use super::command::{self, COMMANDS, Command, fill};
use super::output::{self, Failure};
use crate::config::settings::SETTINGS;
use crate::protocol::registration::names::hint;
use crate::protocol::words::reason::Reason;

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

    fn new(
        name: &'static str,
        intro: &'static str,
        heads: [&str; 3],
        rows: Vec<Vec<String>>,
    ) -> Topic {
        Topic {
            name,
            page: name,
            heading: "",
            intro,
            heads: heads.map(str::to_owned).to_vec(),
            rows,
        }
    }

    /// Reads an entry of `reference.txt`.
    fn read(entry: &'static str) -> Option<Topic> {
        let (head, rest) = entry.strip_prefix("= ")?.split_once('\n')?;
        let (name, head) = head.split_once(", ")?;
        let (intro, table) = rest.split_once("\n| ")?;
        let (page, heading) = head.split_once(": ")?;
        let mut lines = table
            .lines()
            .map(|line| line.split(" | ").map(str::to_owned).collect());
        Some(Topic {
            name,
            page,
            heading,
            intro,
            heads: lines.next()?,
            rows: lines.collect(),
        })
    }

    fn all() -> Vec<Topic> {
        let settings = SETTINGS
            .iter()
            .map(|one| vec![code(one.name), one.meaning.to_owned(), one.default_text()]);
        let mut reasons = Reason::ALL.to_vec();
        reasons.sort_by_key(|reason| reason.code());
        let codes = reasons.iter().map(|one| {
            [one.code(), one.description(), one.remedy()]
                .map(str::to_owned)
                .to_vec()
        });
        let commands = COMMANDS.iter().map(|one| {
            let options = one
                .shown_options()
                .map(|option| format!("{}: {}", code(option.usage), option.meaning));
            let name = format!("gatepost {} {}", one.name, one.values.join(" "));
            vec![
                code(name.trim_end()),
                one.summary.to_owned(),
                options.collect::<Vec<_>>().join("<br>"),
            ]
        });
        let written = include_str!("reference.txt")
            .split("\n\n")
            .filter_map(Topic::read);
        let made = [
            Topic::new(
                "settings",
                "From the environment, or from a file by `--env-file FILE`. A flag of the same \
                 name (`--listen` for `GATEPOST_LISTEN`) overrides both. A command that gets \
                 neither a `GATEPOST_` variable nor that file reads `/etc/gatepost/env`.",
                ["variable", "meaning", "default"],
                settings.collect(),
            ),
            Topic::new(
                "codes",
                "The code stands in the log line (`reason=\"GP1207\"`) and on error pages. JSON \
                 answers and redirects carry the sentence alone, unless `GATEPOST_ERROR_DETAILS` \
                 is `on`.",
                ["code", "what it says", "what to do"],
                codes.collect(),
            ),
            Topic::new(
                "commands",
                "`gatepost COMMAND --help` shows an example of each.",
                ["command", "what it does", "options"],
                commands.collect(),
            ),
        ];
        made.into_iter().chain(written).collect()
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cell = |index| cells.get(index).map_or("", String::as_str);
            let cells: Vec<&str> = (0..self.heads.len()).map(cell).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let heading = if self.heading.is_empty() {
            String::new()
        } else {
            format!("## {}\n\n", self.heading)
        };
        let rule = "|---".repeat(self.heads.len());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "{heading}{}\n\n{}{rule}|\n{rows}",
            self.intro,
            line(&self.heads)
        )
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

/// `gatepost help`: about a topic, a command, or anything that has a row of its own.
pub(super) fn help(words: &[String]) -> Result<(), Failure> {
    let topics = Topic::all();
    let Some(word) = words.first() else {
        let names: Vec<&str> = topics.iter().map(|topic| topic.name).collect();
        let about = "gatepost help TOPIC, CODE, SETTING, KEY or COMMAND says more. Topics:";
        command::help(words)?;
        return output::line(&format!(
            "\n{}",
            fill(about, [""].into_iter().chain(names), 2)
        ));
    };
    let is_command = COMMANDS
        .iter()
        .any(|command: &Command| command.name.split(' ').next() == Some(word));
    if is_command {
        command::help(words)?;
    }
    let mut found = String::new();
    for topic in topics.iter().filter(|_| words.len() == 1) {
        let is_all = topic.name == word || topic.heading == code(word);
        let rows: Vec<String> = topic
            .rows
            .iter()
            .filter(|row| is_all || topic.names(row, word))
            .map(|row| topic.row(row))
            .collect();
        if is_all {
            found += &format!(
                "\n{}\n\n{}",
                fill("", plain(topic.intro).split_whitespace(), 0),
                rows.join("\n")
            );
        } else if !rows.is_empty() {
            found += &format!(
                "\nFrom `gatepost help {}`:\n\n{}",
                topic.name,
                rows.join("\n")
            );
        }
    }
    let known = topics
        .iter()
        .map(|topic| topic.name)
        .chain(SETTINGS.iter().map(|setting| setting.name));
    match (found.is_empty(), is_command || named(words).is_some()) {
        (false, _) => output::line(found.trim()),
        (true, true) => Ok(()),
        (true, false) => {
            let rule = format!(
                "there is no help about \"{}\"{}",
                word.escape_debug(),
                hint(word, known)
            );
            Err(Failure::Usage(format!(
                "{rule}; `gatepost help` lists the topics"
            )))
        }
    }
}

/// `gatepost reference DIRECTORY`: writes the pages of `docs/reference`.
pub(super) fn write(invocation: &Invocation) -> Result<(), Failure> {
    let directory = Path::new(invocation.value(0));
    let topics = Topic::all();
    let written = |name: &str, text: String| {
        fs::write(directory.join(format!("{name}.md")), text).map_err(|error| {
            Failure::Refused(format!("{}: {error}", directory.join(name).display()))
        })
    };
    let mut index = String::from(
        "# Reference\n\n\
         Made by `gatepost reference docs/reference`. The binary prints the same.\n\n\
         | page | or type |\n|---|---|\n",
    );
    for (page, title) in PAGES {
        let of_page: Vec<&Topic> = topics.iter().filter(|topic| topic.page == *page).collect();
        let tables: Vec<String> = of_page.iter().map(|topic| topic.markdown()).collect();
        let names: Vec<String> = of_page
            .iter()
            .map(|topic| code(&format!("gatepost help {}", topic.name)))
            .collect();
        written(page, format!("# {title}\n\n{}", tables.join("\n")))?;
        index += &format!("| [{title}]({page}.md) | {} |\n", names.join(", "));
    }
    written("README", index)
}
