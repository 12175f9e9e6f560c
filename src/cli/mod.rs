//! The commands, one file each: what an operator types, and what is answered. Results go to standard output, all else to
//! standard error.

mod apply;
mod arguments;
mod audit;
mod client;
mod columns;
mod command;
mod completions;
mod export;
mod failure;
mod findings;
mod grant;
mod healthcheck;
mod idp;
mod key;
pub mod logging;
mod man;
mod migrate;
mod operator;
mod output;
mod plan;
mod progress;
mod prompt;
mod reading;
mod revoke;
mod sealed;
mod secret;
pub mod serve;
mod session;
mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::app::extension_grant::{self, ExtensionGrant};
use arguments::{Invocation, Wanted, named, parse};
use command::{Command, Run, group, overview};
use failure::Failure;

/// In the order of `--help`.
const COMMANDS: &[&Command] = &[
    &serve::COMMAND,
    &migrate::COMMAND,
    &plan::COMMAND,
    &apply::COMMAND,
    &export::COMMAND,
    &secret::COMMAND,
    &secret::ROTATE,
    &user::ADD,
    &user::LIST,
    &user::SHOW,
    &user::PASSWORD,
    &user::ROLE,
    &user::SET,
    &user::DISABLE,
    &user::ENABLE,
    &user::REMOVE,
    &user::REVOKE,
    &user::LINK,
    &user::UNLINK,
    &client::LIST,
    &client::SHOW,
    &client::SECRET,
    &client::TEST,
    &client::REVOKE,
    &client::REMOVE,
    &session::LIST,
    &session::END,
    &grant::LIST,
    &grant::REVOKE,
    &revoke::COMMAND,
    &key::LIST,
    &key::ROTATE,
    &key::RETIRE,
    &key::IMPORT,
    &key::RESET,
    &idp::LIST,
    &idp::TEST,
    &audit::LIST,
    &audit::VERIFY,
    &healthcheck::COMMAND,
    &completions::COMMAND,
    &man::COMMAND,
];

/// Runs what was typed after the program's name. Exit codes: 0 done, 1 refused or failed, 2 usage, 78 configuration.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    run_with(arguments, &[])
}

/// The same for a binary of one's own, which brings extension grants along: a `main` of one line and a plain function for
/// each. The README has a whole one.
pub fn run_with(arguments: Vec<OsString>, extension_grants: &'static [ExtensionGrant]) -> ExitCode {
    let outcome = dispatch(arguments, extension_grants);
    log::logger().flush();
    outcome.unwrap_or_else(|failure| {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "gatepost: {failure}");
        failure.exit_code()
    })
}

fn dispatch(arguments: Vec<OsString>, extension_grants: &'static [ExtensionGrant]) -> Result<ExitCode, Failure> {
    extension_grant::check_table(extension_grants).map_err(Failure::Configuration)?;
    match parse(arguments, COMMANDS)? {
        Wanted::Command(mut invocation) => {
            invocation.extension_grants = extension_grants;
            perform(&invocation)
        }
        Wanted::Help(words) => help(&words),
        Wanted::Version => output::line(concat!("gatepost ", env!("CARGO_PKG_VERSION"))).map(|()| ExitCode::SUCCESS),
    }
}

fn perform(invocation: &Invocation) -> Result<ExitCode, Failure> {
    match invocation.command.run {
        Run::Once(run) => {
            logging::start_plainly();
            run(invocation).map(|()| ExitCode::SUCCESS)
        }
        Run::Stays(run) => run(invocation),
    }
}

fn help(words: &[String]) -> Result<ExitCode, Failure> {
    let Some(first) = words.first() else {
        return output::line(&overview(COMMANDS)).map(|()| ExitCode::SUCCESS);
    };
    let beginning = format!("{first} ");
    let in_group: Vec<&Command> =
        COMMANDS.iter().filter(|command| command.name.starts_with(&beginning)).copied().collect();
    match named(words, COMMANDS) {
        // `secret` is a command and the beginning of another.
        Some(command) if command.name == first && !in_group.is_empty() => {
            let text = format!("{}\n\nSee also:\n{}", command.help(), group(first, &in_group));
            output::line(&text)?;
        }
        Some(command) => output::line(&command.help())?,
        None if in_group.is_empty() => output::line(&overview(COMMANDS))?,
        None => output::line(&group(first, &in_group))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> Result<Wanted, Failure> {
        parse(words.iter().map(OsString::from).collect(), COMMANDS)
    }

    fn usage_error(words: &[&str]) -> String {
        match wanted(words) {
            Err(Failure::Usage(text)) => text,
            _ => panic!("{words:?} is taken"),
        }
    }

    #[test]
    fn what_is_nearly_a_command_is_told_the_nearest() {
        for (words, nearest) in [
            (&["user", "ad"][..], "the nearest is \"user add\""),
            (&["aply", "x.json"], "the nearest is \"apply\""),
            (&["keys", "list"], "the nearest is \"key list\""),
            (&["user", "lock", "alice"], "\"user lock\" is not a command; the nearest is \"user disable\""),
            (&["user", "delete", "alice"], "the nearest is \"user remove\""),
            (&["client", "rm", "web"], "the nearest is \"client remove\""),
            (&["user", "create"], "the nearest is \"user add\""),
            (&["migrate", "--chek"], "the nearest is --check"),
            (&["migrate", "--lisen", "x"], "the nearest is --listen"),
            (&["client"], "there is `gatepost client list`, `gatepost client show`"),
            (&[], "no command given"),
            (&["migrate", "-x"], "is not a flag"),
        ] {
            assert!(usage_error(words).contains(nearest), "{words:?}: {}", usage_error(words));
        }
    }

    #[test]
    fn values_and_options_belong_to_their_command() {
        for (words, rule) in [
            (&["apply"][..], "needs FILE"),
            (&["apply", "a", "b"], "does not take \"b\""),
            (&["migrate", "now"], "does not take \"now\""),
            (&["secret", "--json"], "has no option --json"),
            (&["user", "add", "alice", "--tenant"], "missing argument"),
            (&["migrate", "--check=yes"], "unexpected argument"),
        ] {
            assert!(usage_error(words).contains(rule), "{words:?}: {}", usage_error(words));
        }
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
            let Ok(Wanted::Command(invocation)) = wanted(words) else { panic!("{words:?} is refused") };
            assert_eq!(invocation.value(0), value);
        }
        for words in [&["key", "retire", kid, kid][..], &["user", "remove", kid], &[kid, "key", "retire"]] {
            assert!(usage_error(words).contains("is not a flag"), "{words:?}");
        }
        assert!(usage_error(&["key", "retire", "-x"]).contains("-- before a value"));
    }

    #[test]
    fn what_a_command_cannot_do_without_is_shown_without_brackets() {
        for command in [&user::LINK, &user::UNLINK] {
            let usage = command.usage();
            assert!(usage.ends_with(" USERNAME --issuer ISSUER --subject SUB [--tenant NAME]"), "{usage}");
        }
        assert!(usage_error(&["user", "link", "alice", "--issuer", "https://a.example"]).contains("needs --subject"));
    }

    #[test]
    fn secrets_are_not_taken_from_the_command_line() {
        for flag in ["--database-url", "--grants-database-url"] {
            let text = usage_error(&["migrate", flag, "postgres://u:hunter2@db"]);
            assert!(text.contains("can be read by every user") && !text.contains("hunter2"), "{text}");
        }
        assert!(usage_error(&["user", "add", "alice", "--password", "hunter2"]).contains("is not a flag"));
    }

    #[test]
    fn help_is_a_word_too() {
        for words in [&["help"][..], &["help", "apply"], &["help", "client", "secret"], &["help", "nothing"]] {
            let Ok(Wanted::Help(asked)) = wanted(words) else { panic!("{words:?} is refused") };
            assert_eq!(asked, words[1..]);
        }
    }

    #[test]
    fn flags_may_stand_before_and_behind_the_command() {
        for words in [&["--listen", "x", "user", "list", "--json"][..], &["user", "list", "--json", "--listen=x"]] {
            let Ok(Wanted::Command(invocation)) = wanted(words) else { panic!("{words:?} is refused") };
            assert!(invocation.command.name == "user list" && invocation.has("--json"));
        }
    }

    #[test]
    fn every_command_has_help_with_an_example_that_parses() {
        for command in COMMANDS {
            assert!(command.help().contains(command.example));
            let typed =
                command.example.split(['<', '>', '|']).next().unwrap().trim().strip_prefix("gatepost ").unwrap();
            let words: Vec<&str> = typed.split(' ').collect();
            assert!(matches!(wanted(&words), Ok(Wanted::Command(_))), "{}", command.example);
            let asked = [words.as_slice(), &["--help"]].concat();
            assert!(matches!(wanted(&asked), Ok(Wanted::Help(_))));
        }
    }
}
