//! What is typed behind `gatepostd`, or behind `gatepost serve`, which becomes it: the flags of
//! settings, `--env-file`, and what a supervisor tells its server processes.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use crate::config::settings::by_flag;
use crate::config::{ConfigError, Source};

/// Tells the program that it is the server process of a supervisor.
pub const SERVER_PROCESS: &str = "--server-process";
/// Tells a server process that another one serves until it is ready.
pub const SUCCESSOR: &str = "--successor";

const HELP: &str = "\
gatepostd starts the server at GATEPOST_LISTEN, or on the socket that it gets as standard input.

  gatepostd [serve] [--env-file FILE] [--listen ADDRESS] ...

Every setting that is no secret has a flag; `gatepost help settings` lists them.
All other commands are those of `gatepost`.";

/// What to do, by what was typed.
pub enum Typed {
    Serve(ServeArguments),
    /// Print this.
    Print(&'static str),
}

#[derive(Default)]
pub struct ServeArguments {
    pub env_file: Option<PathBuf>,
    /// Names of settings, and their values.
    settings: Vec<(&'static str, String)>,
    pub is_server_process: bool,
    pub is_successor: bool,
    /// All of it, as it was typed.
    pub as_typed: Vec<OsString>,
}

/// The error is what the person reads.
pub fn parse(as_typed: Vec<OsString>) -> Result<Typed, String> {
    let mut parser = Parser::from_args(as_typed.clone());
    let mut words: Vec<String> = Vec::new();
    let mut serve = ServeArguments {
        as_typed,
        ..ServeArguments::default()
    };
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let flag = match argument {
            Arg::Value(word) => {
                words.push(word.to_string_lossy().into_owned());
                continue;
            }
            Arg::Short('h') | Arg::Long("help") => return Ok(Typed::Print(HELP)),
            Arg::Short('V') | Arg::Long("version") => {
                let version = concat!("gatepostd ", env!("CARGO_PKG_VERSION"));
                return Ok(Typed::Print(version));
            }
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        match flag.as_str() {
            SERVER_PROCESS => serve.is_server_process = true,
            SUCCESSOR => serve.is_successor = true,
            "--env-file" => serve.env_file = Some(PathBuf::from(value(&mut parser)?)),
            _ => {
                let shown = flag.escape_debug();
                let setting = by_flag(&flag)
                    .ok_or_else(|| format!("\"{shown}\" is not a flag; try gatepostd --help"))?;
                let text = value(&mut parser)?.into_string();
                let text = text.map_err(|_| String::from("arguments must be valid UTF-8"))?;
                serve.settings.push((setting.name, text));
            }
        }
    }
    if words.is_empty() || words == ["serve"] {
        return Ok(Typed::Serve(serve));
    }
    let typed = words.join(" ");
    let shown = typed.escape_debug();
    Err(format!(
        "gatepostd starts the server; type gatepost {shown}"
    ))
}

fn value(parser: &mut Parser) -> Result<OsString, String> {
    parser.value().map_err(|error| error.to_string())
}

impl ServeArguments {
    /// The settings of the installation on this machine, unless others are given.
    pub fn source(&self) -> Result<Source, ConfigError> {
        Source::for_command(self.env_file.as_deref(), &self.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Result<Typed, String> {
        parse(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn the_server_is_what_it_starts_with_or_without_the_word() {
        for words in [
            &[][..],
            &["serve"],
            &["--listen", "127.0.0.1:1", "serve"],
            &["serve", "--env-file", "a.env", SERVER_PROCESS, SUCCESSOR],
        ] {
            let Ok(Typed::Serve(serve)) = typed(words) else {
                panic!("{words:?} is refused")
            };
            assert_eq!(serve.as_typed.len(), words.len());
            assert_eq!(serve.is_successor, words.contains(&SUCCESSOR));
        }
    }

    #[test]
    fn what_is_a_command_of_the_tools_is_named_as_such() {
        for (words, rule) in [
            (
                &["user", "list"][..],
                "gatepostd starts the server; type gatepost user list",
            ),
            (&["--lisen", "x"], "\"--lisen\" is not a flag"),
            (&["--listen"], "missing argument"),
            (&["serve", "now"], "type gatepost serve now"),
        ] {
            let told = typed(words).err().unwrap_or_default();
            assert!(told.contains(rule), "{words:?}: {told}");
        }
    }
}
