//! What a command is, and the texts of `--help`.

use std::process::ExitCode;

use crate::config::settings::SETTINGS;

use super::arguments::Invocation;
use super::columns::fill;
use super::failure::Failure;

pub(super) struct Command {
    /// As typed: `user add`.
    pub(super) name: &'static str,
    /// What must follow it, in this order: `USERNAME`, or one of its options that it cannot do without. The last may end in
    /// `...`: one or more of them.
    pub(super) values: &'static [&'static str],
    pub(super) options: &'static [CommandOption],
    pub(super) summary: &'static str,
    pub(super) example: &'static str,
    pub(super) run: Run,
}

pub(super) enum Run {
    Once(fn(&Invocation) -> Result<(), Failure>),
    /// With an exit code of its own.
    Stays(fn(&Invocation) -> Result<ExitCode, Failure>),
}

pub(super) struct CommandOption {
    pub(super) name: &'static str,
    pub(super) value: Option<&'static str>,
    /// A clause; empty for what only this program itself passes on.
    pub(super) meaning: &'static str,
}

pub(super) const JSON: CommandOption =
    CommandOption { name: "--json", value: None, meaning: "print JSON instead of a table" };

pub(super) const TENANT: CommandOption =
    CommandOption { name: "--tenant", value: Some("NAME"), meaning: "the tenant the user belongs to" };

pub(super) const OF_USER: CommandOption =
    CommandOption { name: "--user", value: Some("USERNAME"), meaning: "those of this user alone" };

impl Command {
    /// `gatepost user link USERNAME --issuer ISSUER --subject SUB [--tenant NAME]`
    pub(super) fn usage(&self) -> String {
        self.usage_parts().join(" ")
    }

    fn usage_parts(&self) -> Vec<String> {
        let options = self.shown_options().filter(|option| !self.values.contains(&option.name));
        let options = options.map(|option| format!("[{}]", option.usage()));
        let of_name = |value: &str| self.options.iter().find(|option| option.name == value);
        let needed = |value: &str| of_name(value).map_or_else(|| value.to_owned(), CommandOption::usage);
        let parts = self.values.iter().map(|value| needed(value)).chain(options);
        [format!("gatepost {}", self.name)].into_iter().chain(parts).collect()
    }

    pub(super) fn shown_options(&self) -> impl Iterator<Item = &CommandOption> {
        self.options.iter().filter(|option| !option.meaning.is_empty())
    }

    pub(super) fn help(&self) -> String {
        let usage = self.usage_parts();
        let usage = fill("Usage: ", usage.iter().map(String::as_str), "Usage: gatepost ".len());
        let mut text = format!("{usage}\n\n{}\n", fill("", self.summary.split(' '), 0));
        if self.shown_options().next().is_some() {
            text.push_str("\nOptions:\n");
        }
        for option in self.shown_options() {
            let begin = format!("  {:<24} ", option.usage());
            text.push_str(&fill(&begin, option.meaning.split(' '), 27));
            text.push('\n');
        }
        text.push_str(&format!("\nExample:\n  {}\n\n{SETTINGS_HINT}", self.example));
        text
    }
}

pub(super) fn is_flag(value: &str) -> bool {
    value.starts_with("--")
}

impl CommandOption {
    /// `--tenant NAME`
    pub(super) fn usage(&self) -> String {
        match self.value {
            Some(value) => format!("{} {value}", self.name),
            None => self.name.to_owned(),
        }
    }
}

const SETTINGS_HINT: &str = "\
Settings come from GATEPOST_* variables, from --env-file FILE, or from flags of
the same names, as --base-url; `gatepost --help` lists them.";

pub(super) const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 refused or failed, 2 usage, 3 there are changes (plan), 78 configuration.";

pub(super) fn overview(commands: &[&Command]) -> String {
    let mut text = String::from("Usage: gatepost COMMAND [--env-file FILE] [--SETTING VALUE]...\n\nCommands:\n");
    text.push_str(&list(commands));
    text.push_str(
        "\nExample:\n  gatepost apply registration.json\n\n`gatepost COMMAND --help` says more about each.\n",
    );
    text.push_str(&fill("", EXIT_CODES.split(' '), 0));
    text.push_str("\n\nSettings:\n");
    for setting in SETTINGS {
        let flag = setting.flag().unwrap_or_else(|| String::from("(no flag: it is a secret)"));
        text.push_str(&fill("  ", [format!("{:<31}", setting.name).as_str(), &flag], 34));
        text.push('\n');
    }
    text
}

pub(super) fn group(word: &str, commands: &[&Command]) -> String {
    let example = commands.first().map_or("", |command| command.example);
    format!(
        "Usage: gatepost {word} COMMAND\n\nCommands:\n{}\nExample:\n  {example}\n\n`gatepost {word} COMMAND --help` says more \
         about each.\n{SETTINGS_HINT}",
        list(commands)
    )
}

fn list(commands: &[&Command]) -> String {
    let line = |command: &&Command| fill(&format!("  {:<18} ", command.name), command.summary.split(' '), 21) + "\n";
    commands.iter().map(line).collect()
}
