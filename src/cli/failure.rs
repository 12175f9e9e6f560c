//! Why a command ends without having done what it was asked, and with which exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::config::ConfigError;
use crate::protocol::registration::Problem;
use crate::store::StoreError;

const MOST_SHOWN: usize = 100;

/// A command's failure. `Display` is what the person reads; no secret stands in it.
#[derive(Debug)]
pub(super) enum Failure {
    Refused(String),
    /// Names the nearest where there is one.
    Usage(String),
    Configuration(String),
}

impl Failure {
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Refused(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Configuration(_) => 78,
        })
    }

    pub(super) fn of_document(problems: &[Problem]) -> Failure {
        let mut lines: Vec<String> = problems.iter().take(MOST_SHOWN).map(Problem::to_string).collect();
        if problems.len() > MOST_SHOWN {
            lines.push(format!("and {} more", problems.len() - MOST_SHOWN));
        }
        Failure::Refused(format!("{}\nnothing was applied", lines.join("\n")))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(text) | Failure::Usage(text) | Failure::Configuration(text) => formatter.write_str(text),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::Configuration(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Refused(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Refused(error.to_string())
    }
}
