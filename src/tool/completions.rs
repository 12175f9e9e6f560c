//! `gatepost completions`: scripts that let shells complete what is typed, made from the table of
//! commands. Each first finds the words of the command that stand before the cursor, then offers
//! what may follow.

use std::collections::{BTreeMap, BTreeSet};

use super::arguments::Invocation;
use super::command::COMMANDS;
use super::output::{CommandResult, Failure, say};
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::words::joined::joined;
use gatepost_server::config::settings::flags;

const FILE: &str = "FILE";

pub fn run(invocation: &Invocation) -> CommandResult {
    let settings = flags();
    let (template, separator, rows) = match invocation.value(0) {
        "bash" => (
            include_str!("completions/gatepost.bash"),
            "|",
            cases(false, &settings),
        ),
        "zsh" => (
            include_str!("completions/gatepost.zsh"),
            "|",
            cases(true, &settings),
        ),
        "fish" => (
            include_str!("completions/gatepost.fish"),
            " ",
            fish(&settings),
        ),
        other => return Err(no_shell(other)),
    };
    let mut script = with_options(template, separator, &settings);
    let places = ["@WORDS@", "@OPTIONS@", "@OF_FILES@", "@GENERAL@"];
    for (place, text) in places.into_iter().zip(rows) {
        script = script.replace(place, &text);
    }
    say(script)
}

fn no_shell(name: &str) -> Failure {
    let hint = hint(name, ["bash", "zsh", "fish"]);
    Failure::Usage(format!(
        "SHELL must be bash, zsh or fish, not \"{}\"{hint}",
        name.escape_debug()
    ))
}

/// The template with the options that take a value, and those whose value is a path.
fn with_options(template: &str, separator: &str, settings: &[String]) -> String {
    let mut with_value: BTreeSet<&str> = settings.iter().map(String::as_str).collect();
    with_value.insert("--env-file");
    let mut with_path = vec!["--*-file"];
    for option in COMMANDS.iter().flat_map(|command| &command.options) {
        if option.value.is_some() {
            with_value.insert(option.name);
        }
        if option.value == Some(FILE) {
            with_path.push(option.name);
        }
    }
    let with_value: Vec<&str> = with_value.into_iter().collect();
    template
        .replace("@WITH_VALUE@", &with_value.join(separator))
        .replace("@WITH_PATH@", &with_path.join("|"))
}

/// The words that begin commands with what they mean, by the words before them; nothing before the
/// first.
fn words() -> BTreeMap<&'static str, Vec<(&'static str, String)>> {
    let mut words: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for command in COMMANDS.iter() {
        let (group, word) = command.name.split_once(' ').unwrap_or(("", command.name));
        words
            .entry(group)
            .or_default()
            .push((word, command.summary.to_owned()));
        let first = words.entry("").or_default();
        // Once: `secret` is a command and a group.
        if !first.iter().any(|(present, _)| *present == group) && !group.is_empty() {
            first.push((group, format!("More with `gatepost {group} --help`.")));
        }
    }
    words
}

fn of_files() -> impl Iterator<Item = &'static str> {
    COMMANDS
        .iter()
        .filter(|command| command.values.contains(&FILE))
        .map(|command| command.name)
}

/// The rows of bash and zsh, in the order of their places: patterns of `case`. Zsh shows what a
/// word means.
fn cases(is_zsh: bool, settings: &[String]) -> [String; 4] {
    let mut words_of = Vec::new();
    for (before, offered) in words() {
        let array = if is_zsh { "offered" } else { "words" };
        words_of.push(case(is_zsh, quoted(before), array, &offered));
    }
    let general = ["--env-file", "--help", "--version"]
        .into_iter()
        .chain(settings.iter().map(String::as_str));
    [
        choice(&words_of),
        choice(&option_cases(is_zsh)),
        joined("|", of_files().map(quoted)),
        joined(" ", general),
    ]
}

fn choice(cases: &[String]) -> String {
    format!("    case $typed in\n{}\n    esac", cases.join("\n"))
}

fn option_cases(is_zsh: bool) -> Vec<String> {
    let mut commands: Vec<_> = COMMANDS.iter().collect();
    // The longest first: `secret rotate` is another than `secret`.
    commands.sort_by(|one, other| other.name.cmp(one.name));
    let mut cases = Vec::new();
    for command in commands {
        let mut offered = Vec::new();
        for option in command.shown_options() {
            offered.push((option.name, option.meaning.to_owned()));
        }
        let before = quoted(command.name) + "*";
        cases.push(case(is_zsh, before, "options", &offered));
    }
    cases
}

fn case(is_zsh: bool, before: String, array: &str, offered: &[(&str, String)]) -> String {
    let mut texts = Vec::new();
    for (word, meaning) in offered {
        texts.push(if is_zsh {
            quoted(&format!("{word}:{meaning}"))
        } else {
            (*word).to_owned()
        });
    }
    let texts = texts.join(" ");
    if is_zsh {
        format!("        ({before}) {array}=({texts}) ;;")
    } else {
        format!("        {before}) {array}={} ;;", quoted(&texts))
    }
}

fn fish(settings: &[String]) -> [String; 4] {
    let mut words_of = Vec::new();
    for (before, offered) in words() {
        for (word, meaning) in offered {
            let rest = format!(" -a {} -d {}", quoted(word), quoted(&meaning));
            words_of.push(complete(&format!("__gatepost_at {before}"), &rest));
        }
    }
    let of_files = of_files().map(|name| complete(&format!("__gatepost_at {name}"), " -F"));
    let general = settings.iter().map(|flag| {
        let name = flag.trim_start_matches('-');
        format!("complete -c gatepost -l {name}{}", takes(flag, ""))
    });
    [
        words_of.join("\n"),
        fish_options().join("\n"),
        joined("\n", of_files),
        joined("\n", general),
    ]
}

fn fish_options() -> Vec<String> {
    let mut lines = Vec::new();
    for command in COMMANDS.iter() {
        for option in command.shown_options() {
            let takes = option.value.map_or("", |value| takes(option.name, value));
            let name = option.name.trim_start_matches('-');
            let rest = format!(" -l {name}{takes} -d {}", quoted(option.meaning));
            lines.push(complete(&format!("__gatepost_in {}", command.name), &rest));
        }
    }
    lines
}

fn complete(condition: &str, rest: &str) -> String {
    format!("complete -c gatepost -n {}{rest}", quoted(condition))
}

fn takes(flag: &str, value: &str) -> &'static str {
    if flag.ends_with("-file") || value == FILE {
        " -r -F"
    } else {
        " -x"
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
