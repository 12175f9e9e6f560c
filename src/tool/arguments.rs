//! From what was typed to a command with its values, options and settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::Arg;

use super::command::{COMMANDS, Command};
use super::output::{CommandResult, Failure, misuse};
use gatepost_protocol::registration::names::{hint, nearest};
use gatepost_protocol::registration::timestamp;
use gatepost_server::app::extension_grant::ExtensionGrant;
use gatepost_server::config::settings::{SETTINGS, by_flag, flags};
use gatepost_server::config::{Config, Source};

#[derive(Clone)]
pub struct Invocation {
    pub command: &'static Command,
    values: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    pub env_file: Option<PathBuf>,
    settings: Vec<(&'static str, String)>,
    pub arguments: Vec<OsString>,
    pub extension_grants: &'static [ExtensionGrant],
}

pub enum Wanted {
    Command(Invocation),
    /// Help on these words: none, a group of commands, or a command.
    Help(Vec<String>),
    /// `gatepost help` with these words: the same, or a topic of the reference.
    About(Vec<String>),
    Version,
}

pub fn parse(arguments: Vec<OsString>) -> CommandResult<Wanted> {
    let mut parser = lexopt::Parser::from_args(arguments.clone());
    let mut words = Vec::new();
    let mut options = BTreeMap::<String, Vec<String>>::new();
    let mut settings = Vec::new();
    let mut env_file = None;
    let mut help = false;
    let mut version = false;
    loop {
        if let Some(word) = dashed_kid(&words, &mut parser) {
            words.push(text(word)?);
            continue;
        }
        let Some(argument) = parser.next().map_err(usage)? else {
            break;
        };
        let name = match argument {
            Arg::Value(word) => {
                words.push(text(word)?);
                continue;
            }
            Arg::Short('h') => String::from("--help"),
            Arg::Short('V') => String::from("--version"),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        if name == "--help" {
            help = true;
        } else if name == "--version" {
            version = true;
        } else if name == "--env-file" {
            env_file = Some(PathBuf::from(parser.value().map_err(usage)?));
        } else if let Some(option) = COMMANDS
            .iter()
            .flat_map(|command| &command.options)
            .find(|one| one.name == name)
        {
            let value = if option.value.is_some() {
                text(parser.value().map_err(usage)?)?
            } else {
                String::new()
            };
            options.entry(name).or_default().push(value);
        } else if let Some(setting) = by_flag(&name) {
            settings.push((setting.name, text(parser.value().map_err(usage)?)?));
        } else {
            return Err(no_flag(&name, named(&words)));
        }
    }
    if words.first().is_some_and(|word| word == "help") {
        words.remove(0);
        return Ok(Wanted::About(words));
    }
    if version {
        return Ok(Wanted::Version);
    }
    if help {
        return Ok(Wanted::Help(words));
    }
    let Some(command) = named(&words) else {
        // `gatepost user` alone asks which commands there are.
        return if is_group(&words) {
            Ok(Wanted::Help(words))
        } else {
            Err(no_command(&words))
        };
    };
    let invocation = Invocation {
        command,
        values: words.split_off(command.name.split(' ').count()),
        options,
        env_file,
        settings,
        arguments,
        extension_grants: &[],
    };
    invocation.check()?;
    Ok(Wanted::Command(invocation))
}

/// The command that the words begin with: the longest, as `secret rotate` is another than `secret`.
pub fn named(words: &[String]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .filter(|command| command.begins(words))
        .max_by_key(|command| command.name.len())
}

impl Command {
    fn begins(&self, words: &[String]) -> bool {
        let name: Vec<&str> = self.name.split(' ').collect();
        words.len() >= name.len() && name.iter().zip(words).all(|(name, word)| name == word)
    }

    fn group(&self) -> Option<&'static str> {
        self.name.split(' ').next()
    }
}

/// Whether that is one word, with which commands begin.
fn is_group(words: &[String]) -> bool {
    words.len() == 1
        && COMMANDS
            .iter()
            .any(|command| command.group() == words.first().map(String::as_str))
}

/// The next word, where the command awaits a key's name and this is one: the thumbprint of one key
/// in sixty-four (43 characters) begins with a dash. Any other value that does goes behind `--`, as
/// a flag mistyped must name nothing.
fn dashed_kid(words: &[String], parser: &mut lexopt::Parser) -> Option<OsString> {
    let command = named(words)?;
    let typed = words.len() - command.name.split(' ').count();
    if expected_values(command).nth(typed)? != "KID" {
        return None;
    }
    let mut rest = parser.try_raw_args()?;
    let word = rest.peek()?.to_str()?;
    let is_kid = word.starts_with('-') && word.len() == 43 && !word.contains('=');
    if is_kid { rest.next() } else { None }
}

/// A value that may be left out.
const WORD: &str = "[WORD]";
/// Listed at most where there is a limit: all of it is held at once.
const MOST: usize = 100_000;

impl Invocation {
    fn check(&self) -> CommandResult {
        let broken = self.broken_by_values();
        let Some(rule) = broken.or_else(|| self.broken_by_options()) else {
            return Ok(());
        };
        let name = self.command.name;
        misuse(format!("`gatepost {name}` {rule}; try --help"))
    }

    /// The rule of the command that its values break.
    fn broken_by_values(&self) -> Option<String> {
        let expected: Vec<&str> = expected_values(self.command).collect();
        if let Some(missing) = expected.get(self.values.len())
            && !missing.starts_with('[')
        {
            return Some(format!("needs {missing}"));
        }
        let surplus = self.values.get(expected.len())?;
        let takes_more = expected.last().is_some_and(|last| last.ends_with("..."));
        (!takes_more).then(|| format!("does not take \"{}\"", surplus.escape_debug()))
    }

    fn broken_by_options(&self) -> Option<String> {
        let Command {
            values, options, ..
        } = self.command;
        let known: Vec<&str> = options.iter().map(|option| option.name).collect();
        for option in self.options.keys() {
            if !known.contains(&option.as_str()) {
                return Some(format!("has no option {option}{}", hint(option, known)));
            }
        }
        let mut needed = values.iter().filter(|value| value.starts_with("--"));
        let missing = needed.find(|value| !self.has(value))?;
        Some(format!("needs {missing}"))
    }

    /// `check` has seen that it is there.
    pub fn value(&self, index: usize) -> &str {
        self.values
            .get(index)
            .map(String::as_str)
            .unwrap_or_default()
    }

    pub fn values_from(&self, index: usize) -> Vec<&str> {
        self.values.iter().skip(index).map(String::as_str).collect()
    }

    /// The last, if it was typed several times.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.last().map(String::as_str)
    }

    pub fn every(&self, name: &str) -> Vec<&str> {
        self.options
            .get(name)
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// What a list is searched for.
    pub fn word(&self) -> Option<&str> {
        self.values
            .first()
            .filter(|_| self.command.values.contains(&WORD))
            .map(String::as_str)
    }

    /// How much of a list is asked for.
    pub fn limit(&self) -> CommandResult<Option<usize>> {
        let Some(text) = self.option("--limit") else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if (1..=MOST).contains(&number) => Ok(Some(number)),
            _ => misuse(format!("--limit must be a number from 1 to {MOST}")),
        }
    }

    /// The seconds that an option says by a number with its unit, at most so many. `example` shows
    /// how.
    pub fn seconds(&self, name: &str, most: u64, example: &str) -> CommandResult<Option<u64>> {
        let Some(text) = self.option(name) else {
            return Ok(None);
        };
        let seconds = timestamp::seconds(text).filter(|seconds| (1..=most).contains(seconds));
        match seconds {
            None => misuse(format!(
                "{name} must be a number with s, m, h or d, as {example}"
            )),
            _ => Ok(seconds),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The settings of the installation on this machine, unless others are given.
    pub fn source(&self) -> CommandResult<Source> {
        Ok(Source::for_command(
            self.env_file.as_deref(),
            &self.settings,
        )?)
    }

    /// Only the settings that are given.
    pub fn given_source(&self) -> CommandResult<Source> {
        Ok(Source::from_environment(
            self.env_file.as_deref(),
            &self.settings,
        )?)
    }

    pub fn config(&self) -> CommandResult<Config> {
        Ok(Config::load(&self.source()?)?)
    }
}

fn expected_values(command: &Command) -> impl Iterator<Item = &'static str> {
    command
        .values
        .iter()
        .copied()
        .filter(|value| !value.starts_with("--"))
}

/// What other programs call what a command of ours does: no spelling leads from the one to the
/// other.
const OTHER_WORDS: &str = "\
    block=disable create=add delete=remove edit=set lock=disable ls=list rm=remove \
    suspend=disable unlock=enable update=set";

fn no_command(words: &[String]) -> Failure {
    if words.is_empty() {
        return Failure::usage("no command given; `gatepost --help` lists them");
    }
    let typed: Vec<&str> = words.iter().take(2).map(String::as_str).collect();
    let hint = command_hint(&typed);
    let shown = typed.join(" ").escape_debug().to_string();
    Failure::Usage(format!(
        "\"{shown}\" is not a command{hint}; `gatepost --help` lists all"
    ))
}

/// The command that was probably meant.
fn command_hint(typed: &[&str]) -> String {
    let groups = COMMANDS.iter().filter_map(Command::group);
    let names = COMMANDS.iter().map(|command| command.name).chain(groups);
    let meant: Vec<String> = typed.iter().map(|word| ours(word).to_owned()).collect();
    let whole = match named(&meant) {
        Some(command) => hint(command.name, names.clone()),
        None => hint(&typed.join(" "), names.clone()),
    };
    if !whole.is_empty() {
        return whole;
    }
    // Without its values: `aply x.json`.
    hint(typed.first().copied().unwrap_or_default(), names)
}

/// What we call that which others call `word`.
fn ours(word: &str) -> &str {
    let mut words = OTHER_WORDS
        .split(' ')
        .filter_map(|pair| pair.split_once('='));
    let found = words.find(|(theirs, _)| *theirs == word);
    found.map_or(word, |(_, ours)| ours)
}

fn no_flag(name: &str, command: Option<&'static Command>) -> Failure {
    let secret = SETTINGS.iter().find(|setting| {
        setting.flag().is_none()
            && setting
                .name
                .replace("GATEPOST_", "--")
                .to_lowercase()
                .replace('_', "-")
                == name
    });
    if let Some(secret) = secret {
        let reason = "a secret, and arguments can be read by every user of this machine";
        return Failure::Usage(format!(
            "{name} is not a flag: it would be {reason}; set {}",
            secret.name
        ));
    }
    let hint = flag_hint(name, command);
    Failure::Usage(format!("\"{}\" is not a flag{hint}", name.escape_debug()))
}

/// The flag that was probably meant. Behind a command its own options are, not another's.
fn flag_hint(name: &str, command: Option<&'static Command>) -> String {
    let flags = flags();
    let mut known: Vec<&str> = flags.iter().map(String::as_str).collect();
    for one in COMMANDS.iter() {
        if command.is_none_or(|command| command.name == one.name) {
            known.extend(one.options.iter().map(|option| option.name));
        }
    }
    known.extend(["--help", "--version", "--env-file"]);
    match nearest(name, known) {
        Some(known) => format!("; the nearest is {known}"),
        None => String::from("; try --help, and -- before a value like that"),
    }
}

fn text(value: OsString) -> CommandResult<String> {
    value
        .into_string()
        .or_else(|_| misuse("arguments must be valid UTF-8"))
}

fn usage(error: lexopt::Error) -> Failure {
    Failure::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> Result<Wanted, Failure> {
        parse(words.iter().map(OsString::from).collect())
    }

    fn usage_error(words: &[&str]) -> String {
        match wanted(words) {
            Err(Failure::Usage(text)) => text,
            _ => panic!("{words:?} is taken"),
        }
    }

    #[test]
    fn what_is_no_command_is_told_the_rule_and_the_nearest() {
        for (words, rule) in [
            (&["user", "ad"][..], "the nearest is \"user add\""),
            (&["keys", "list"], "the nearest is \"key list\""),
            (
                &["user", "lock", "alice"],
                "\"user lock\" is not a command; the nearest is \"user disable\"",
            ),
            (&["migrate", "--lisen", "x"], "the nearest is --listen"),
            (&["apply"], "needs FILE"),
            (&["apply", "a", "b"], "does not take \"b\""),
            (&["secret", "--json"], "has no option --json"),
            (&["user", "add", "alice", "--tenant"], "missing argument"),
            (&["migrate", "--check=yes"], "unexpected argument"),
            (
                &["user", "link", "alice", "--issuer", "https://a.example"],
                "needs --subject",
            ),
        ] {
            assert!(
                usage_error(words).contains(rule),
                "{words:?}: {}",
                usage_error(words)
            );
        }
    }

    #[test]
    fn the_first_word_of_commands_alone_asks_for_help_on_them() {
        for word in ["client", "user", "key"] {
            let Ok(Wanted::Help(words)) = wanted(&[word]) else {
                panic!("{word} is refused")
            };
            assert_eq!(words, [word]);
        }
        // It is a command itself.
        assert!(matches!(wanted(&["secret"]), Ok(Wanted::Command(_))));
    }

    #[test]
    fn a_value_may_begin_with_a_dash_where_it_cannot_be_a_flag() {
        let kid = "-NJ3TFWiBKhL3yu6uMsrkingQMSSbMelZTzEmq0ARYU";
        for (words, value) in [
            (&["key", "retire", kid][..], kid),
            (&["key", "retire", "--listen", "x", kid], kid),
            (&["user", "remove", "--", "-x"], "-x"),
            (&["apply", "-"], "-"),
        ] {
            let Ok(Wanted::Command(invocation)) = wanted(words) else {
                panic!("{words:?} is refused")
            };
            assert_eq!(invocation.value(0), value);
        }
        for words in [
            &["key", "retire", kid, kid][..],
            &["user", "remove", kid],
            &[kid, "key", "retire"],
        ] {
            assert!(usage_error(words).contains("is not a flag"), "{words:?}");
        }
        assert!(usage_error(&["key", "retire", "-x"]).contains("-- before a value"));
    }

    #[test]
    fn secrets_are_not_taken_from_the_command_line() {
        for flag in ["--database-url", "--grants-database-url"] {
            let text = usage_error(&["migrate", flag, "postgres://u:hunter2@db"]);
            assert!(
                text.contains("can be read by every user") && !text.contains("hunter2"),
                "{text}"
            );
        }
        assert!(
            usage_error(&["user", "add", "alice", "--password", "hunter2"])
                .contains("is not a flag")
        );
    }

    #[test]
    fn help_is_a_word_too_and_flags_stand_before_or_behind_the_command() {
        for words in [
            &["help"][..],
            &["help", "client", "secret"],
            &["help", "nothing"],
        ] {
            let Ok(Wanted::About(asked)) = wanted(words) else {
                panic!("{words:?} is refused")
            };
            assert_eq!(asked, words[1..]);
        }
        for words in [
            &["--listen", "x", "user", "list", "--json"][..],
            &["user", "list", "--json", "--listen=x"],
        ] {
            let Ok(Wanted::Command(invocation)) = wanted(words) else {
                panic!("{words:?} is refused")
            };
            assert!(invocation.command.name == "user list" && invocation.has("--json"));
        }
    }
}
