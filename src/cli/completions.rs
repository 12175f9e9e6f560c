//! `gatepost completions`: scripts that let shells complete what is typed, made from the table of
//! commands. Each first finds the words of the command that stand before the cursor, then offers
//! what may follow.

use std::collections::{BTreeMap, BTreeSet};

use super::arguments::Invocation;
use super::command::COMMANDS;
use super::output::{self, Failure};
use crate::config::settings::SETTINGS;
use crate::protocol::registration::names::hint;

const FILE: &str = "FILE";

pub(super) fn run(invocation: &Invocation) -> Result<(), Failure> {
    let settings: Vec<String> = SETTINGS
        .iter()
        .filter_map(|setting| setting.flag())
        .collect();
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
        other => {
            let hint = hint(other, ["bash", "zsh", "fish"]);
            let rule = format!(
                "SHELL must be bash, zsh or fish, not \"{}\"{hint}",
                other.escape_debug()
            );
            return Err(Failure::Usage(rule));
        }
    };
    let options = || COMMANDS.iter().flat_map(|command| &command.options);
    let own = options()
        .filter(|option| option.value.is_some())
        .map(|option| option.name);
    let with_value: BTreeSet<&str> = own
        .chain(["--env-file"])
        .chain(settings.iter().map(String::as_str))
        .collect();
    let paths = options()
        .filter(|option| option.value == Some(FILE))
        .map(|option| option.name);
    let mut script = template
        .replace(
            "@WITH_VALUE@",
            &with_value.into_iter().collect::<Vec<_>>().join(separator),
        )
        .replace(
            "@WITH_PATH@",
            &["--*-file"]
                .into_iter()
                .chain(paths)
                .collect::<Vec<_>>()
                .join("|"),
        );
    for (place, text) in ["@WORDS@", "@OPTIONS@", "@OF_FILES@", "@GENERAL@"]
        .into_iter()
        .zip(rows)
    {
        script = script.replace(place, &text);
    }
    output::line(&script)
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
    let row = |before: String, array: &str, offered: Vec<(&str, &str)>| {
        if is_zsh {
            let offered: Vec<String> = offered
                .iter()
                .map(|(word, meaning)| quoted(&format!("{word}:{meaning}")))
                .collect();
            return format!("        ({before}) {array}=({}) ;;", offered.join(" "));
        }
        let offered: Vec<&str> = offered.iter().map(|(word, _)| *word).collect();
        format!(
            "        {before}) {array}={} ;;",
            quoted(&offered.join(" "))
        )
    };
    let words = words();
    let words = words.iter().map(|(before, offered)| {
        let offered = offered
            .iter()
            .map(|(word, meaning)| (*word, meaning.as_str()))
            .collect();
        row(
            quoted(before),
            if is_zsh { "offered" } else { "words" },
            offered,
        )
    });
    let mut commands: Vec<_> = COMMANDS.iter().collect();
    // The longest first: `secret rotate` is another than `secret`.
    commands.sort_by(|one, other| other.name.cmp(one.name));
    let options = commands.iter().map(|command| {
        let offered = command
            .shown_options()
            .map(|option| (option.name, option.meaning))
            .collect();
        row(quoted(command.name) + "*", "options", offered)
    });
    let general = ["--env-file", "--help", "--version"]
        .into_iter()
        .chain(settings.iter().map(String::as_str));
    [
        words.collect::<Vec<_>>().join("\n"),
        options.collect::<Vec<_>>().join("\n"),
        of_files().map(quoted).collect::<Vec<_>>().join("|"),
        general.collect::<Vec<_>>().join(" "),
    ]
}

fn fish(settings: &[String]) -> [String; 4] {
    let complete = |condition: String, rest: String| {
        format!("complete -c gatepost -n {}{rest}", quoted(&condition))
    };
    let value = |flag: &str, value: &str| {
        if flag.ends_with("-file") || value == FILE {
            " -r -F"
        } else {
            " -x"
        }
    };
    let words = words().into_iter().flat_map(|(before, offered)| {
        let row = move |(word, meaning): (&str, String)| {
            let rest = format!(" -a {} -d {}", quoted(word), quoted(&meaning));
            complete(format!("__gatepost_at {before}"), rest)
        };
        offered.into_iter().map(row).collect::<Vec<_>>()
    });
    let options = COMMANDS.iter().flat_map(|command| {
        command.shown_options().map(|option| {
            let takes = option.value.map(|of| value(option.name, of));
            let name = option.name.trim_start_matches('-');
            let rest = format!(
                " -l {name}{} -d {}",
                takes.unwrap_or_default(),
                quoted(option.meaning)
            );
            complete(format!("__gatepost_in {}", command.name), rest)
        })
    });
    let of_files =
        of_files().map(|name| complete(format!("__gatepost_at {name}"), String::from(" -F")));
    let general = settings.iter().map(|flag| {
        format!(
            "complete -c gatepost -l {}{}",
            flag.trim_start_matches('-'),
            value(flag, "")
        )
    });
    [
        words.collect::<Vec<_>>().join("\n"),
        options.collect::<Vec<_>>().join("\n"),
        of_files.collect::<Vec<_>>().join("\n"),
        general.collect::<Vec<_>>().join("\n"),
    ]
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
