//! The table of commands, and what is told of it: `--help` and the manual page.

use std::process::ExitCode;
use std::sync::LazyLock;

use super::arguments::{Invocation, named};
use super::operator::Operator;
use super::output::{CommandResult, say};
use gatepost_server::config::settings::SETTINGS;

/// Made of `commands.txt`.
pub struct Command {
    /// As typed: `user add`.
    pub name: &'static str,
    /// What must follow it, in this order: `USERNAME`, or one of its options that it cannot do
    /// without. The last may end in `...`: one or more of them.
    pub values: Vec<&'static str>,
    pub options: Vec<CommandOption>,
    /// Of a list.
    pub columns: Vec<Column>,
    pub summary: &'static str,
    pub example: &'static str,
    pub run: Run,
}

#[derive(Clone, Copy)]
pub enum Run {
    Once(fn(&Invocation) -> CommandResult),
    /// The same in the installation that the settings name.
    Installed(fn(&Operator) -> CommandResult),
    /// With an exit code of its own.
    Stays(fn(&Invocation) -> CommandResult<ExitCode>),
}

pub struct CommandOption {
    pub name: &'static str,
    pub value: Option<&'static str>,
    /// `--tenant NAME`
    pub usage: &'static str,
    /// A clause; empty for what only this program itself passes on.
    pub meaning: &'static str,
}

pub struct Column {
    pub heading: &'static str,
    /// Where its cell stands in an object (RFC 6901).
    pub place: &'static str,
}

/// In the order of `--help`.
pub static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
    include_str!("commands.txt")
        .split("\n\n")
        .filter_map(Command::read)
        .collect()
});

const SETTINGS_HINT: &str = "\
Settings come from GATEPOST_* variables, from --env-file FILE, or from flags of
the same names, as --base-url; `gatepost --help` lists them. Where there is no
such variable and no such file, /etc/gatepost/env is read. What counts seconds
takes 90s, 15m, 12h and 30d, too.";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 refused or failed, 2 usage, 3 there are changes \
                          (plan), 78 configuration.";

impl CommandOption {
    fn read(line: &'static str) -> CommandOption {
        let (usage, meaning) = line.split_once(": ").unwrap_or((line, ""));
        let (name, value) = match usage.split_once(' ') {
            Some((name, value)) => (name, Some(value)),
            None => (usage, None),
        };
        CommandOption {
            name,
            value,
            usage,
            meaning,
        }
    }
}

impl Column {
    fn read(text: &'static str) -> Column {
        let (heading, place) = text.split_at(text.find(" /").unwrap_or(text.len()));
        Column {
            heading,
            place: place.trim_start(),
        }
    }
}

impl Command {
    fn read(entry: &'static str) -> Option<Command> {
        let mut lines = entry.lines().map(str::trim);
        let usage = lines.next()?;
        let summary = lines.next()?;
        let example = lines.next()?;
        let end = usage
            .find(|character: char| character.is_uppercase() || matches!(character, '-' | '['))
            .unwrap_or(usage.len());
        let (name, values) = usage.split_at(end);
        let (columns, options): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("| "));
        let columns = columns
            .iter()
            .flat_map(|line| line.trim_start_matches("| ").split(" | "));
        let (_, run) = super::RUN.iter().find(|(run, _)| *run == name.trim_end())?;
        Some(Command {
            name: name.trim_end(),
            values: values.split_whitespace().collect(),
            options: options.into_iter().map(CommandOption::read).collect(),
            columns: columns.map(Column::read).collect(),
            summary,
            example,
            run: *run,
        })
    }

    pub fn shown_options(&self) -> impl Iterator<Item = &CommandOption> {
        self.options
            .iter()
            .filter(|option| !option.meaning.is_empty())
    }

    /// `gatepost user link USERNAME`, `--issuer ISSUER`, `--subject SUB`, `[--tenant NAME]`: what
    /// is needed without brackets.
    fn usage(&self) -> Vec<String> {
        let mut usage = vec![format!("gatepost {}", self.name)];
        for value in &self.values {
            let option = self.options.iter().find(|option| option.name == *value);
            usage.push(option.map_or(*value, |option| option.usage).to_owned());
        }
        for option in self.shown_options() {
            if !self.values.contains(&option.name) {
                usage.push(format!("[{}]", option.usage));
            }
        }
        usage
    }

    fn help(&self) -> String {
        let usage = self.usage();
        let usage = fill(
            "Usage: ",
            usage.iter().map(String::as_str),
            "Usage: gatepost ".len(),
        );
        let mut text = format!("{usage}\n\n{}\n", fill("", self.summary.split(' '), 0));
        if self.shown_options().next().is_some() {
            text.push_str("\nOptions:\n");
        }
        for option in self.shown_options() {
            text.push_str(&fill(
                &format!("  {:<24} ", option.usage),
                option.meaning.split(' '),
                27,
            ));
            text.push('\n');
        }
        text.push_str(&format!(
            "\nExample:\n  {}\n\n{SETTINGS_HINT}",
            self.example
        ));
        text
    }

    /// Of the manual page, in roff.
    fn section(&self) -> String {
        let usage = self.usage().join(" ");
        let mut text = format!(".SS {}\n{}\n", roff(&usage), roff(self.summary));
        for option in self.shown_options() {
            text.push_str(&format!(
                ".TP\n.B {}\n{}\n",
                roff(option.usage),
                roff(option.meaning)
            ));
        }
        text.push_str(&format!(
            ".PP\nExample:\n.PP\n.RS\n.nf\n{}\n.fi\n.RE\n",
            roff(self.example)
        ));
        text
    }
}

/// On a command, a group of them, or all: no help is refused.
pub fn help(words: &[String]) -> CommandResult {
    let Some(first) = words.first() else {
        return say(overview());
    };
    let beginning = format!("{first} ");
    let in_group: Vec<&Command> = COMMANDS
        .iter()
        .filter(|command| command.name.starts_with(&beginning))
        .collect();
    say(match named(words) {
        // `secret` is a command and the beginning of another.
        Some(command) if command.name == first && !in_group.is_empty() => {
            format!(
                "{}\n\nSee also:\n{}",
                command.help(),
                group(first, &in_group)
            )
        }
        Some(command) => command.help(),
        None if in_group.is_empty() => overview(),
        None => group(first, &in_group),
    })
}

fn overview() -> String {
    let mut text = String::from(
        "Usage: gatepost COMMAND [--env-file FILE] [--SETTING VALUE]...\n\nCommands:\n",
    );
    text.extend(COMMANDS.iter().map(listed));
    text.push_str(
        "\nExample:\n  gatepost apply registration.json\n\n\
         `gatepost COMMAND --help` says more about each.\n",
    );
    text.push_str(&fill("", EXIT_CODES.split(' '), 0));
    text.push_str("\n\nSettings:\n");
    for setting in SETTINGS {
        let flag = setting
            .flag()
            .unwrap_or_else(|| String::from("(no flag: it is a secret)"));
        text.push_str(&fill(
            "  ",
            [format!("{:<31}", setting.name).as_str(), &flag],
            34,
        ));
        text.push('\n');
    }
    text
}

fn group(word: &str, commands: &[&Command]) -> String {
    let list: String = commands.iter().copied().map(listed).collect();
    let example = commands.first().map_or("", |command| command.example);
    format!(
        "Usage: gatepost {word} COMMAND\n\nCommands:\n{list}\nExample:\n  {example}\n\n\
         `gatepost {word} COMMAND --help` says more about each.\n{SETTINGS_HINT}"
    )
}

fn listed(command: &Command) -> String {
    fill(
        &format!("  {:<21} ", command.name),
        command.summary.split(' '),
        24,
    ) + "\n"
}

/// `first`, and the words behind it with a space between two. What does not fit on a line of 80
/// columns goes on in the next, behind `indent` spaces; a word is never broken.
pub fn fill<'a>(first: &str, words: impl IntoIterator<Item = &'a str>, indent: usize) -> String {
    let mut text = first.to_owned();
    let mut column = first.chars().count();
    for (index, word) in words.into_iter().enumerate() {
        let width = word.chars().count();
        if index > 0 && column + 1 + width > 80 {
            text.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

/// `gatepost man`: the manual page, in roff.
pub fn man(_: &Invocation) -> CommandResult {
    let mut page = format!(
        ".TH GATEPOST 1 \"\" \"gatepost {}\" \"Gatepost\"\n\
         .SH NAME\ngatepost \\- an OpenID Connect and OAuth 2.0 provider\n\
         .SH SYNOPSIS\n.B gatepost\n.I COMMAND\n\
         [\\-\\-env\\-file\n.IR FILE ]\n[\\-\\-SETTING\n.IR VALUE ]...\n\
         .SH DESCRIPTION\n\
         People sign in once, applications learn who they are, and services get tokens. \
         This program has the commands; gatepostd, beside it, is the server. One\n\
         Postgres database.\n.SH COMMANDS\n",
        env!("CARGO_PKG_VERSION")
    );
    for command in COMMANDS.iter() {
        page.push_str(&command.section());
    }
    page.push_str(
        ".SH SETTINGS\nFrom the environment, from a file named by \\-\\-env\\-file, or from \
         flags.\nWhere there is no variable and no such file, /etc/gatepost/env is read.\n",
    );
    for setting in SETTINGS {
        let flag = setting
            .flag()
            .map(|flag| format!(", {flag}"))
            .unwrap_or_default();
        let meaning =
            format!("{} (default: {})", setting.meaning, setting.default_text()).replace('°', "");
        page.push_str(&format!(
            ".TP\n.B {}{}\n{}\n",
            setting.name,
            roff(&flag),
            roff(&meaning)
        ));
    }
    say!("{page}.SH EXIT STATUS\n{}", roff(EXIT_CODES))
}

/// A line of text: hyphens as typed, nothing taken for a request or an escape.
fn roff(line: &str) -> String {
    let escaped = line
        .replace('`', "")
        .replace('\\', "\\e")
        .replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) {
        format!("\\&{escaped}")
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_command_with_what_runs_it_and_an_example_of_it() {
        let told: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let run: Vec<&str> = super::super::RUN.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, run);
        for command in COMMANDS.iter() {
            let example = command.example.strip_prefix("gatepost ").unwrap();
            let typed = example
                .split(['<', '>', '|'])
                .next()
                .unwrap()
                .split_whitespace();
            let parsed = crate::arguments::parse(typed.map(Into::into).collect()).map(drop);
            assert!(
                command.summary.ends_with('.') && parsed.is_ok(),
                "{}",
                command.example
            );
        }
    }
}
