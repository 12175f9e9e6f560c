//! The three scripts. Each first finds the words of the command that stand before the cursor, then offers what may follow.

use std::collections::BTreeMap;

use crate::cli::command::{Command, CommandOption};
use crate::config::settings::SETTINGS;

const GENERAL: [&str; 3] = ["--env-file", "--help", "--version"];

/// What may follow some words: each with a description.
type Offers = BTreeMap<String, Vec<(String, String)>>;

/// The words that begin commands, by the words before them; nothing before the first.
fn words(commands: &[&Command]) -> Offers {
    let mut offers = Offers::new();
    for command in commands {
        let (group, word) = command.name.split_once(' ').map_or(("", command.name), |(group, word)| (group, word));
        offer(&mut offers, group, word, command.summary);
        if !group.is_empty() {
            offer(&mut offers, "", group, &format!("More with `gatepost {group} --help`."));
        }
    }
    offers
}

/// Offers a word once: `secret` is a command and a group.
fn offer(offers: &mut Offers, before: &str, word: &str, meaning: &str) {
    let offered = offers.entry(before.to_owned()).or_default();
    if !offered.iter().any(|(present, _)| present == word) {
        offered.push((word.to_owned(), meaning.to_owned()));
    }
}

fn options(commands: &[&Command]) -> Offers {
    let shown = |option: &&CommandOption| !option.meaning.is_empty();
    let described = |option: &CommandOption| (option.name.to_owned(), option.meaning.to_owned());
    let of = |command: &Command| command.options.iter().filter(shown).map(described).collect();
    commands.iter().map(|command| (command.name.to_owned(), of(command))).collect()
}

fn flags_with_value(commands: &[&Command]) -> Vec<String> {
    let options = commands.iter().flat_map(|command| command.options);
    let mut flags: Vec<String> =
        options.filter(|option| option.value.is_some()).map(|option| option.name.to_owned()).collect();
    flags.push(String::from("--env-file"));
    flags.extend(SETTINGS.iter().filter_map(|setting| setting.flag()));
    flags.sort_unstable();
    flags.dedup();
    flags
}

fn flags_of_all() -> Vec<String> {
    GENERAL.iter().map(|flag| (*flag).to_owned()).chain(SETTINGS.iter().filter_map(|setting| setting.flag())).collect()
}

/// A pattern, for `case`.
fn flags_with_file(commands: &[&Command]) -> String {
    let options = commands.iter().flat_map(|command| command.options);
    let of_options = options.filter(|option| option.value == Some(FILE)).map(|option| option.name);
    std::iter::once("--*-file").chain(of_options).collect::<Vec<_>>().join("|")
}

const FILE: &str = "FILE";

fn with_file(commands: &[&Command]) -> Vec<&'static str> {
    commands.iter().filter(|command| command.values.contains(&FILE)).map(|command| command.name).collect()
}

fn joined(offered: &[(String, String)]) -> String {
    offered.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub(super) fn bash(commands: &[&Command]) -> String {
    let mut script = String::from(
        "# bash completion of gatepost: /etc/bash_completion.d/gatepost, or: source <(gatepost completions bash)\n\
         _gatepost() {\n    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n    \
         local typed='' words='' options='' skip='' word i\n",
    );
    let (with_value, with_path) = (flags_with_value(commands).join("|"), flags_with_file(commands));
    script.push_str(&format!(
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n        word=${{COMP_WORDS[i]}}\n        \
         if [[ -n $skip ]]; then skip=''; continue; fi\n        case $word in\n            \
         {with_value}) skip=yes ;;\n            -*) ;;\n            *) typed=\"${{typed:+$typed }}$word\" ;;\n        \
         esac\n    done\n    if [[ -n $skip ]]; then\n        case $previous in\n            \
         {with_path}) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n            *) COMPREPLY=() ;;\n        \
         esac\n        return\n    fi\n    case $typed in\n"
    ));
    for (before, offered) in words(commands) {
        script.push_str(&format!("        {}) words={} ;;\n", quoted(&before), quoted(&joined(&offered))));
    }
    script.push_str("    esac\n    case $typed in\n");
    // The longest first: `secret rotate` is another than `secret`.
    for (name, offered) in options(commands).iter().rev() {
        script.push_str(&format!("        {}*) options={} ;;\n", quoted(name), quoted(&joined(offered))));
    }
    let files: Vec<String> = with_file(commands).into_iter().map(quoted).collect();
    script.push_str(&format!(
        "    esac\n    if [[ $current == -* ]]; then\n        \
         COMPREPLY=($(compgen -W \"$options {}\" -- \"$current\"))\n        return\n    fi\n    case $typed in\n        \
         {}) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n        \
         *) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n    esac\n}}\ncomplete -o filenames -F _gatepost gatepost",
        flags_of_all().join(" "),
        files.join("|")
    ));
    script
}

pub(super) fn zsh(commands: &[&Command]) -> String {
    let described = |offered: &[(String, String)]| {
        let one = |(word, meaning): &(String, String)| quoted(&format!("{word}:{meaning}"));
        offered.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let mut script = format!(
        "#compdef gatepost\n# zsh completion of gatepost: as _gatepost in a directory of $fpath\n_gatepost() {{\n    \
         local typed='' skip='' word i\n    local -a offered options\n    \
         for ((i = 2; i < CURRENT; i++)); do\n        word=${{words[i]}}\n        \
         if [[ -n $skip ]]; then skip=''; continue; fi\n        case $word in\n            ({}) skip=yes ;;\n            \
         (-*) ;;\n            (*) typed=\"${{typed:+$typed }}$word\" ;;\n        esac\n    done\n    \
         if [[ -n $skip ]]; then\n        case ${{words[CURRENT-1]}} in ({}) _files ;; esac\n        return\n    fi\n    \
         case $typed in\n",
        flags_with_value(commands).join("|"),
        flags_with_file(commands)
    );
    for (before, offered) in words(commands) {
        script.push_str(&format!("        ({}) offered=({}) ;;\n", quoted(&before), described(&offered)));
    }
    script.push_str("    esac\n    case $typed in\n");
    for (name, offered) in options(commands).iter().rev() {
        script.push_str(&format!("        ({}*) options=({}) ;;\n", quoted(name), described(offered)));
    }
    let files: Vec<String> = with_file(commands).into_iter().map(quoted).collect();
    script.push_str(&format!(
        "    esac\n    if [[ ${{words[CURRENT]}} == -* ]]; then\n        \
         options+=({})\n        _describe -o 'option' options\n        return\n    fi\n    case $typed in\n        \
         ({}) _files ;;\n        (*) _describe 'command' offered ;;\n    esac\n}}\n_gatepost \"$@\"",
        flags_of_all().join(" "),
        files.join("|")
    ));
    script
}

pub(super) fn fish(commands: &[&Command]) -> String {
    let with_value = flags_with_value(commands).join(" ");
    let mut script = format!(
        "# fish completion of gatepost: ~/.config/fish/completions/gatepost.fish\n\
         function __gatepost_typed\n    set -l typed\n    set -l skip no\n    \
         for word in (commandline -opc)[2..-1]\n        if test $skip = yes\n            set skip no\n            continue\n        \
         end\n        switch $word\n            case {with_value}\n                set skip yes\n            case '-*'\n            \
         case '*'\n                set -a typed $word\n        end\n    end\n    echo \"$typed\"\nend\n\
         function __gatepost_at\n    test (__gatepost_typed) = \"$argv\"\nend\n\
         function __gatepost_in\n    string match -q -- \"$argv*\" (__gatepost_typed)\nend\ncomplete -c gatepost -f\n"
    );
    for (before, offered) in words(commands) {
        for (word, meaning) in offered {
            let (condition, word, meaning) =
                (quoted(&format!("__gatepost_at {before}")), quoted(&word), quoted(&meaning));
            script.push_str(&format!("complete -c gatepost -n {condition} -a {word} -d {meaning}\n"));
        }
    }
    for command in commands {
        let condition = quoted(&format!("__gatepost_in {}", command.name));
        for option in command.options.iter().filter(|option| !option.meaning.is_empty()) {
            let (name, value) =
                (option.name.trim_start_matches('-'), option.value.map_or("", |value| fish_value(option.name, value)));
            let meaning = quoted(option.meaning);
            script.push_str(&format!("complete -c gatepost -n {condition} -l {name}{value} -d {meaning}\n"));
        }
    }
    for name in with_file(commands) {
        script.push_str(&format!("complete -c gatepost -n {} -F\n", quoted(&format!("__gatepost_at {name}"))));
    }
    for setting in SETTINGS {
        if let Some(flag) = setting.flag() {
            script.push_str(&format!(
                "complete -c gatepost -l {}{}\n",
                flag.trim_start_matches('-'),
                fish_value(&flag, "")
            ));
        }
    }
    script.push_str("complete -c gatepost -l env-file -r -F -d 'file with settings'\ncomplete -c gatepost -l help\ncomplete -c gatepost -l version");
    script
}

fn fish_value(flag: &str, value: &str) -> &'static str {
    if flag.ends_with("-file") || value == FILE { " -r -F" } else { " -x" }
}
