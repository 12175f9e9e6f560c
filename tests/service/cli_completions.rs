//! What the three shells offer, asked of the shells themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::claims::Says;

const PROGRAM: &str = env!("CARGO_BIN_EXE_gatepost");

/// Sources the script given first; prints what each further line is completed with, under a line
/// `== LINE`.
const BASH: &str = r#"
source "$1" && complete -p gatepost >/dev/null || exit 1
shift
for line in "$@"; do
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _gatepost
    echo "== $line"
    printf '%s\n' "${COMPREPLY[@]}"
done
"#;

const FISH: &str = r#"
source $argv[1]; or exit 1
for line in $argv[2..-1]
    echo "== $line"
    complete -C "$line"
end
"#;

/// A shell in a terminal of its own, where a key writes down what completion offers. Completion
/// adds what it offers by `compadd`; with -O, -A or -D that only selects.
const ZSH: &str = r#"
zmodload zsh/zpty
here=$(pwd)
: > offered
cat > inside.zsh <<'END'
fpath=($PWD $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
    local -a found
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
        builtin compadd -A found "$@"
        (( $#found )) && print -rl -- $found >> $HOME/offered
    fi
    builtin compadd "$@"
}
offer() {
    print -r -- "== $BUFFER" >> $HOME/offered
    zle list-choices
    print -r -- "END" >> $HOME/offered
    BUFFER=
}
zle -N offer
bindkey '^T' offer
print END >> $HOME/offered
END
awaited() {
    for ((tries = 0; tries < 400; tries++)); do
        zpty -r -t terminal noise
        (( $(grep -c '^END$' offered) >= $1 )) && return
        sleep 0.05
    done
    print -u2 "no answer: $(cat offered)"
    exit 1
}
shift
export HOME=$here TERM=dumb
zpty -b terminal zsh -f
zpty -w terminal 'source inside.zsh'
awaited 1
for ((number = 1; number <= $#; number++)); do
    zpty -w -n terminal "${@[number]}"$'\C-t'
    awaited $((number + 1))
done
zpty -d terminal
grep -v '^END$' offered
"#;

/// A shell with a directory that holds its script and two files.
struct Shell {
    name: &'static str,
    program: &'static str,
    directory: PathBuf,
}

impl Shell {
    fn new(test: &str, name: &'static str, program: &'static str) -> Shell {
        let directory =
            std::env::temp_dir().join(format!("gatepost-{}-{test}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("registration.json"), "{}").unwrap();
        fs::write(directory.join("register.txt"), "").unwrap();
        fs::write(directory.join("_gatepost"), printed(&["completions", name])).unwrap();
        Shell {
            name,
            program,
            directory,
        }
    }

    /// What each line is completed with, without descriptions. A missing shell fails here.
    fn offers(&self, lines: &[&str]) -> Vec<BTreeSet<String>> {
        let mut command = Command::new(self.name);
        match self.name {
            "fish" => command.args(["--no-config", "-c", self.program, "./_gatepost"]),
            "zsh" => command.args(["-f", "-c", self.program, "zsh", "./_gatepost"]),
            _ => command.args(["--norc", "-c", self.program, "bash", "./_gatepost"]),
        };
        let output = command
            .args(lines)
            .env("HOME", &self.directory)
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        let output = output
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let (text, errors) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(output.status.success(), "{}: {errors}", self.name);
        assert!(errors.is_empty(), "{}: {errors}", self.name);
        let parts: Vec<&str> = text.split("== ").skip(1).collect();
        assert_eq!(parts.len(), lines.len(), "{}: {text}", self.name);
        let word = |line: &str| {
            line.split('\t')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let offered = |part: &str| {
            part.lines()
                .skip(1)
                .map(word)
                .filter(|word| !word.is_empty())
                .collect()
        };
        parts.into_iter().map(offered).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn shells(test: &str) -> [Shell; 3] {
    [("bash", BASH), ("zsh", ZSH), ("fish", FISH)]
        .map(|(name, program)| Shell::new(test, name, program))
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every command, as the overview lists them.
fn commands() -> Vec<String> {
    let overview = printed(&["--help"]);
    let listed = overview
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    // The lines of a longer summary begin further in.
    listed
        .map(|line| line[2..23].trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_completes_commands_options_and_files() {
    let commands = commands();
    let first = commands
        .iter()
        .filter_map(|name| name.split(' ').next())
        .map(str::to_owned)
        .collect();
    let within = |group: &str| -> BTreeSet<String> {
        commands
            .iter()
            .filter_map(|name| name.strip_prefix(&format!("{group} ")))
            .map(str::to_owned)
            .collect()
    };
    let exact = [
        ("gatepost ", first),
        ("gatepost us", words("user")),
        ("gatepost client ", within("client")),
        ("gatepost key ", within("key")),
        ("gatepost user r", words("reset role remove revoke")),
        ("gatepost user add --te", words("--tenant")),
        (
            "gatepost --env-file x user add --no",
            words("--no-password"),
        ),
        ("gatepost key rotate --no", words("--now")),
        ("gatepost plan --pr", words("--prune")),
        (
            "gatepost apply ",
            words("registration.json register.txt _gatepost"),
        ),
        (
            "gatepost apply regis",
            words("registration.json register.txt"),
        ),
        ("gatepost plan --prune registr", words("registration.json")),
        (
            "gatepost serve --env-file registr",
            words("registration.json"),
        ),
        (
            "gatepost serve --secret-file registr",
            words("registration.json"),
        ),
        (
            "gatepost audit verify --heads registr",
            words("registration.json"),
        ),
        ("gatepost revoke --ev", words("--everything")),
        ("gatepost user add --tenant re", words("")),
        ("gatepost serve --listen re", words("")),
        ("gatepost client nonsense re", words("")),
        ("gatepost nonsense re", words("")),
    ];
    let lines: Vec<&str> = exact.iter().map(|(line, _)| *line).collect();
    for shell in shells("words") {
        // What zsh needs for itself lies there, too.
        let ours = |offered: &BTreeSet<String>| -> BTreeSet<String> {
            offered
                .iter()
                .filter(|word| !["inside.zsh", "offered"].contains(&word.as_str()))
                .cloned()
                .collect()
        };
        for ((line, expected), offered) in exact.iter().zip(shell.offers(&lines)) {
            assert_eq!(ours(&offered), *expected, "{}: {line}", shell.name);
        }
    }
}

#[test]
fn every_shell_offers_the_options_of_a_command_and_those_of_all() {
    for shell in shells("options") {
        let offered = shell.offers(&["gatepost key rotate --", "gatepost user add --"]);
        for (offered, own, foreign) in [
            (&offered[0], "--now", "--tenant"),
            (&offered[1], "--tenant", "--now"),
        ] {
            for option in [own, "--env-file", "--listen", "--help", "--version"] {
                assert!(
                    offered.contains(option),
                    "{}: {option} in {offered:?}",
                    shell.name
                );
            }
            assert!(
                !offered.contains(foreign) && offered.iter().all(|word| word.starts_with("--")),
                "{}",
                shell.name
            );
        }
    }
}

#[test]
fn another_shell_is_named_with_those_there_are() {
    let output = Command::new(PROGRAM)
        .args(["completions", "zhs"])
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2), "{errors}");
    errors.assert_says("the nearest is \"zsh\"");
}
