//! From what was typed to a command with its values, options and settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::Arg;

use crate::app::extension_grant::ExtensionGrant;
use crate::config::settings::{SETTINGS, by_flag};
use crate::config::{Config, Source};
use crate::protocol::words::nearest::{hint, nearest};

use super::command::{Command, is_flag};
use super::failure::Failure;

pub(super) struct Invocation {
    pub(super) command: &'static Command,
    values: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    pub(super) env_file: Option<PathBuf>,
    settings: Vec<(&'static str, String)>,
    pub(super) arguments: Vec<OsString>,
    pub(super) extension_grants: &'static [ExtensionGrant],
}

pub(super) enum Wanted {
    Command(Invocation),
    /// Help on these words: none, a group of commands, or a command.
    Help(Vec<String>),
    Version,
}

#[derive(Default)]
struct Typed {
    words: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    env_file: Option<PathBuf>,
    settings: Vec<(&'static str, String)>,
    help: bool,
    version: bool,
}

pub(super) fn parse(arguments: Vec<OsString>, commands: &[&'static Command]) -> Result<Wanted, Failure> {
    let typed = read(arguments.clone(), commands)?;
    if typed.version {
        return Ok(Wanted::Version);
    }
    if typed.help || typed.words.is_empty() {
        let is_asked_for = typed.help;
        return if is_asked_for { Ok(Wanted::Help(typed.words)) } else { Err(no_command(&typed.words, commands)) };
    }
    let command = named(&typed.words, commands).ok_or_else(|| no_command(&typed.words, commands))?;
    let values: Vec<String> = typed.words.iter().skip(command.name.split(' ').count()).cloned().collect();
    check_values(command, &values)?;
    check_options(command, &typed.options)?;
    let Typed { options, env_file, settings, .. } = typed;
    Ok(Wanted::Command(Invocation { command, values, options, env_file, settings, arguments, extension_grants: &[] }))
}

/// The command that the words begin with: the longest, as `secret rotate` is another than `secret`.
pub(super) fn named(words: &[String], commands: &[&'static Command]) -> Option<&'static Command> {
    let begins = |command: &&Command| {
        let name: Vec<&str> = command.name.split(' ').collect();
        name.len() <= words.len() && name.iter().zip(words).all(|(name, word)| name == word)
    };
    commands.iter().copied().filter(|command| begins(command)).max_by_key(|command| command.name.len())
}

fn read(arguments: Vec<OsString>, commands: &[&'static Command]) -> Result<Typed, Failure> {
    let mut typed = Typed::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    loop {
        if let Some(word) = dashed_kid(&typed.words, &mut parser, commands) {
            typed.words.push(text(word)?);
            continue;
        }
        let Some(argument) = parser.next().map_err(usage)? else { break };
        let name = match argument {
            Arg::Value(word) => {
                typed.words.push(text(word)?);
                continue;
            }
            Arg::Short('h') => String::from("--help"),
            Arg::Short('V') => String::from("--version"),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        typed.take_flag(&name, &mut parser, commands)?;
    }
    if typed.words.first().is_some_and(|word| word == "help") {
        typed.words.remove(0);
        typed.help = true;
    }
    Ok(typed)
}

/// The next word, where the command awaits a key's name and this is one: the thumbprint of one key in sixty-four
/// (43 characters) begins with a dash. Any other value that does goes behind `--`, as a flag mistyped must name nothing.
fn dashed_kid(words: &[String], parser: &mut lexopt::Parser, commands: &[&'static Command]) -> Option<OsString> {
    let command = named(words, commands)?;
    let typed = words.len() - command.name.split(' ').count();
    if expected_values(command).nth(typed)? != "KID" {
        return None;
    }
    let mut rest = parser.try_raw_args()?;
    let word = rest.peek()?.to_str()?;
    let is_kid = word.starts_with('-') && word.len() == 43 && !word.contains('=');
    if is_kid { rest.next() } else { None }
}

impl Typed {
    fn take_flag(
        &mut self,
        name: &str,
        parser: &mut lexopt::Parser,
        commands: &[&'static Command],
    ) -> Result<(), Failure> {
        let mut options = commands.iter().flat_map(|command| command.options);
        if name == "--help" {
            self.help = true;
        } else if name == "--version" {
            self.version = true;
        } else if name == "--env-file" {
            self.env_file = Some(PathBuf::from(parser.value().map_err(usage)?));
        } else if let Some(option) = options.find(|option| option.name == name) {
            let value = if option.value.is_some() { text(parser.value().map_err(usage)?)? } else { String::new() };
            self.options.entry(name.to_owned()).or_default().push(value);
        } else if let Some(setting) = by_flag(name) {
            self.settings.push((setting.name, text(parser.value().map_err(usage)?)?));
        } else {
            return Err(no_flag(name, named(&self.words, commands), commands));
        }
        Ok(())
    }
}

impl Invocation {
    /// `check_values` has seen that it is there.
    pub(super) fn value(&self, index: usize) -> &str {
        self.values.get(index).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn values_from(&self, index: usize) -> Vec<&str> {
        self.values.iter().skip(index).map(String::as_str).collect()
    }

    /// The last, if it was typed several times.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.last().map(String::as_str)
    }

    pub(super) fn every(&self, name: &str) -> Vec<&str> {
        self.options.get(name).into_iter().flatten().map(String::as_str).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(super) fn source(&self) -> Result<Source, Failure> {
        Ok(Source::from_environment(self.env_file.as_deref(), &self.settings)?)
    }

    pub(super) fn config(&self) -> Result<Config, Failure> {
        Ok(Config::load(&self.source()?)?)
    }
}

fn expected_values(command: &Command) -> impl Iterator<Item = &'static str> {
    command.values.iter().copied().filter(|value| !is_flag(value))
}

fn check_values(command: &Command, values: &[String]) -> Result<(), Failure> {
    let expected: Vec<&str> = expected_values(command).collect();
    if let Some(missing) = expected.get(values.len()) {
        return Err(Failure::Usage(format!("`gatepost {}` needs {missing}; try --help", command.name)));
    }
    let takes_more = expected.last().is_some_and(|last| last.ends_with("..."));
    match values.get(expected.len()) {
        Some(surplus) if !takes_more => {
            let shown = surplus.escape_debug();
            Err(Failure::Usage(format!("`gatepost {}` does not take \"{shown}\"; try --help", command.name)))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_options(command: &Command, typed: &BTreeMap<String, Vec<String>>) -> Result<(), Failure> {
    let known: Vec<&str> = command.options.iter().map(|option| option.name).collect();
    if let Some(option) = typed.keys().find(|option| !known.contains(&option.as_str())) {
        let hint = hint(option, known.iter().copied());
        return Err(Failure::Usage(format!("`gatepost {}` has no option {option}{hint}; try --help", command.name)));
    }
    for needed in command.values.iter().filter(|value| is_flag(value)) {
        if !typed.contains_key(*needed) {
            return Err(Failure::Usage(format!("`gatepost {}` needs {needed}; try --help", command.name)));
        }
    }
    Ok(())
}

/// What other programs call what a command of ours does: no spelling leads from the one to the other.
const OTHER_WORDS: [(&str, &str); 10] = [
    ("block", "disable"),
    ("create", "add"),
    ("delete", "remove"),
    ("edit", "set"),
    ("lock", "disable"),
    ("ls", "list"),
    ("rm", "remove"),
    ("suspend", "disable"),
    ("unlock", "enable"),
    ("update", "set"),
];

fn no_command(words: &[String], commands: &[&'static Command]) -> Failure {
    if words.is_empty() {
        return Failure::Usage(String::from("no command given; `gatepost --help` lists them"));
    }
    let in_group = |command: &&Command| command.name.split(' ').next() == words.first().map(String::as_str);
    let group: Vec<String> =
        commands.iter().copied().filter(in_group).map(|command| format!("`gatepost {}`", command.name)).collect();
    if words.len() == 1 && !group.is_empty() {
        return Failure::Usage(format!("there is {}", group.join(", ")));
    }
    let typed: Vec<&str> = words.iter().take(2).map(String::as_str).collect();
    let groups = || commands.iter().filter_map(|command| command.name.split(' ').next());
    let names = || commands.iter().map(|command| command.name).chain(groups());
    let ours = |word: &&str| OTHER_WORDS.iter().find(|(theirs, _)| theirs == word).map(|(_, ours)| *ours);
    let meant: Vec<String> = typed.iter().map(|word| ours(word).unwrap_or(word).to_owned()).collect();
    let whole = hint(named(&meant, commands).map_or(&typed.join(" "), |command| command.name), names());
    // Without its values: `aply x.json`.
    let hint = if whole.is_empty() { hint(words.first().map_or("", String::as_str), names()) } else { whole };
    let shown = typed.join(" ").escape_debug().to_string();
    Failure::Usage(format!("\"{shown}\" is not a command{hint}; `gatepost --help` lists all"))
}

/// Behind a command its own options are meant, not another's.
fn no_flag(name: &str, command: Option<&'static Command>, commands: &[&'static Command]) -> Failure {
    let secret = SETTINGS.iter().find(|setting| {
        setting.flag().is_none() && setting.name.replace("GATEPOST_", "--").to_lowercase().replace('_', "-") == name
    });
    if let Some(secret) = secret {
        let reason = "a secret, and arguments can be read by every user of this machine";
        return Failure::Usage(format!("{name} is not a flag: it would be {reason}; set {}", secret.name));
    }
    let flags: Vec<String> = SETTINGS.iter().filter_map(|setting| setting.flag()).collect();
    let own = command.as_slice();
    let meant = if own.is_empty() { commands } else { own };
    let options = meant.iter().flat_map(|command| command.options).map(|option| option.name);
    let general = ["--help", "--version", "--env-file"].into_iter();
    let known = nearest(name, flags.iter().map(String::as_str).chain(options).chain(general));
    let hint = known.map_or_else(
        || String::from("; try --help, and -- before a value like that"),
        |known| format!("; the nearest is {known}"),
    );
    Failure::Usage(format!("\"{}\" is not a flag{hint}", name.escape_debug()))
}

fn text(value: OsString) -> Result<String, Failure> {
    value.into_string().map_err(|_| Failure::Usage(String::from("arguments must be valid UTF-8")))
}

fn usage(error: lexopt::Error) -> Failure {
    Failure::Usage(error.to_string())
}
