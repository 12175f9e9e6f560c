//! Where the texts of settings come from: flags before the environment before the file; secrets
//! also from files and systemd credentials. A command that has neither environment nor file takes
//! the file of the installation. The only reader of the environment.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::settings::SETTINGS;
use crate::config::{ConfigError, Problem, installed};
use gatepost_protocol::registration::names::nearest;
use gatepost_protocol::words::secret::SecretText;

pub struct Source {
    values: BTreeMap<&'static str, String>,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// What became of the file of the installation, for whom a setting is missing.
    pub of_installed: Option<String>,
    /// `$CREDENTIALS_DIRECTORY`, where systemd puts credentials.
    pub credentials_directory: Option<PathBuf>,
    pub cores: u32,
}

impl Source {
    pub fn empty() -> Source {
        Source {
            values: BTreeMap::new(),
            file: None,
            of_installed: None,
            credentials_directory: None,
            cores: 1,
        }
    }

    /// The settings for a command: as [`Source::from_environment`], where a file was named or any
    /// variable is set. Else those of the installation on this machine, all of them: never half of
    /// two installations.
    pub fn for_command(
        file: Option<&Path>,
        flags: &[(&'static str, String)],
    ) -> Result<Source, ConfigError> {
        if file.is_some() {
            return Source::from_environment(file, flags);
        }
        let mut names = std::env::vars_os().map(|(name, _)| name);
        if let Some(name) = names.find(|name| name.as_encoded_bytes().starts_with(b"GATEPOST_")) {
            let mut source = Source::from_environment(None, flags)?;
            if let Ok(Some(_)) = installed::find() {
                source.of_installed = Some(format!(
                    "was not read, because {} is set: unset it, or name the file with --env-file",
                    name.display()
                ));
            }
            return Ok(source);
        }
        let installed = installed::find()?;
        let mut source = Source::from_environment(installed, flags)?;
        let rule = match installed {
            Some(_) => "is the file that was read, and does not set what is required",
            None => {
                "is not there, no GATEPOST_ variable is set, and no --env-file is named: one of \
                 them has the settings"
            }
        };
        source.of_installed = Some(rule.to_owned());
        Ok(source)
    }

    /// Reads the file and this process's environment, and lays `flags` (name of the setting, value)
    /// over both.
    pub fn from_environment(
        file: Option<&Path>,
        flags: &[(&'static str, String)],
    ) -> Result<Source, ConfigError> {
        let mut source = Source::empty();
        source.credentials_directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        source.cores = u32::try_from(cores).unwrap_or(u32::MAX);
        source.file = file.map(Path::to_owned);
        let mut problems = match file {
            Some(file) => source.take_file(file),
            None => Vec::new(),
        };
        problems.extend(source.take_environment());
        source.values.extend(flags.iter().cloned());
        ConfigError::unless_empty(problems)?;
        Ok(source)
    }

    /// Gives a setting its text; an unknown name is refused with the nearest known one.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), Problem> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let hint = match nearest(name, SETTINGS.iter().map(|setting| setting.name)) {
                Some(known) => format!("; the nearest is {known}"),
                None => String::new(),
            };
            return Err(Problem::new(
                name.escape_debug().to_string(),
                format!("is not a setting{hint}"),
            ));
        };
        self.values.insert(setting.name, value);
        Ok(())
    }

    /// The text that was given, be it empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
    }

    /// The path of a systemd credential, where this process was given one of that name. One that
    /// cannot be looked at counts as given: whoever reads it says why it cannot be read.
    pub fn credential(&self, name: &str) -> Option<PathBuf> {
        let path = self.credentials_directory.as_ref()?.join(name);
        let is_missing =
            std::fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        (!is_missing).then_some(path)
    }

    fn take_environment(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, value) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with("GATEPOST_") {
                continue;
            }
            match value.into_string() {
                Ok(value) => problems.extend(self.set(&name, value).err()),
                Err(_) => problems.push(Problem::new(name, "must be valid UTF-8")),
            }
        }
        problems
    }

    fn take_file(&mut self, file: &Path) -> Vec<Problem> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => return vec![unread(file, &error)],
        };
        let (pairs, mut problems) = parse(&text);
        for problem in &mut problems {
            problem.name = format!("{}, {}", file.display(), problem.name);
        }
        for (name, value) in pairs {
            problems.extend(self.set(&name, value).err());
        }
        problems
    }
}

fn unread(file: &Path, error: &io::Error) -> Problem {
    let file = file.display();
    if error.kind() == ErrorKind::PermissionDenied {
        return Problem::new(format!("cannot read {file}:"), "run this with sudo");
    }
    let rule = format!("cannot be read: {}", cause(error));
    Problem::new(file.to_string(), rule)
}

/// What went wrong with a file or a socket, without the number that only programmers know.
pub fn cause(error: &io::Error) -> String {
    if error.kind() == ErrorKind::InvalidData {
        return String::from("it is not text in UTF-8");
    }
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The value of a variable that a registration document names as the place of a secret; `None` when
/// it is not set or not UTF-8.
pub fn environment_secret(name: &str) -> Option<SecretText> {
    std::env::var(name).ok().map(SecretText::new)
}

/// Reads the lines. Comments begin with `#` or `;`; a value may stand in single quotes (taken as it
/// is) or in double quotes (where `\"` and `\\` stand for `"` and `\`). systemd reads the same file
/// for the service: what it would take otherwise is refused. The error names the line, never its
/// text: it may hold a secret.
pub fn parse(text: &str) -> (Vec<(String, String)>, Vec<Problem>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_matches([' ', '\t', '\r']);
        let is_comment = line.starts_with(['#', ';']);
        let is_odd = line.ends_with('\\') || line.contains('\r');
        if line.is_empty() || is_comment && !is_odd {
            continue;
        }
        let parsed = if is_comment {
            Err(
                "must have no backslash at the end of a comment, and no carriage return in it: \
                 systemd, which reads this file for the service, goes on otherwise there",
            )
        } else {
            parse_line(line)
        };
        let rule = match parsed {
            Ok((name, _)) if pairs.iter().any(|(seen, _)| *seen == name) => {
                "sets a variable that an earlier line has set"
            }
            Ok(pair) => {
                pairs.push(pair);
                continue;
            }
            Err(rule) => rule,
        };
        problems.push(Problem::new(format!("line {}", index + 1), rule));
    }
    (pairs, problems)
}

fn parse_line(line: &str) -> Result<(String, String), &'static str> {
    if line.starts_with('\u{feff}') {
        return Err("must not begin with a byte order mark: save the file without one");
    }
    let (name, value) = line.split_once('=').ok_or("must be NAME=value")?;
    let name_is_plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !name_is_plain {
        return Err("must begin with a variable's name, followed by = without spaces");
    }
    let value = value.trim_start_matches([' ', '\t', '\r']);
    Ok((name.to_owned(), parse_value(value)?))
}

fn parse_value(value: &str) -> Result<String, &'static str> {
    if let Some(rest) = value.strip_prefix('\'') {
        let inner = rest
            .strip_suffix('\'')
            .filter(|inner| !inner.contains('\''));
        return inner
            .map(str::to_owned)
            .ok_or("must end its single-quoted value with the closing quote");
    }
    let Some(rest) = value.strip_prefix('"') else {
        let is_plain = !value.contains(['\\', '\r']) && value.trim() == value;
        return is_plain.then(|| value.to_owned()).ok_or(
            "must put its value into single quotes: without them systemd, which reads this file \
             for the service, takes its backslashes, carriage returns or blanks otherwise",
        );
    };
    unescape(rest).ok_or(
        "must end its double-quoted value with the closing quote; only \\\" and \\\\ are escapes",
    )
}

fn unescape(rest: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return characters.next().is_none().then_some(value),
            '\\' => value.push(
                characters
                    .next()
                    .filter(|escaped| matches!(escaped, '"' | '\\'))?,
            ),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_comments_and_blanks_are_understood() {
        let text = "# comment\n\nA=1\n  B = no\nC=a b # not a comment\nD='q\"q # '\nE=\"a\\\"b\\\\c\"\nF=\nG=x=y\r\n";
        let (pairs, problems) = parse(text);
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("A", "1"),
            ("C", "a b # not a comment"),
            ("D", "q\"q # "),
            ("E", "a\"b\\c"),
            ("F", ""),
            ("G", "x=y"),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].name, "line 4");
    }

    /// What systemd's own reader makes of such lines, a program of it says:
    /// `user-environment-generators/30-systemd-environment-d-generator`.
    #[test]
    fn what_systemd_would_take_otherwise_is_refused() {
        for line in [
            "A=hunter\\2",
            "A=hunter2\\",
            "A=\\",
            "A=\u{a0}hunter2",
            "A=hunter2\u{2003}",
            "A=hunter2\u{c}",
            "A=hunter\rB=2",
            "\u{a0}A=hunter2",
            "# hunter2 \\",
            "; hunter2\\",
            "# hun\rB=ter2",
            "\u{feff}A=hunter2",
        ] {
            let (pairs, problems) = parse(&format!("{line}\nC=1"));
            assert_eq!(pairs, [(String::from("C"), String::from("1"))], "{line:?}");
            assert_eq!(problems[0].name, "line 1", "{line:?}");
            assert!(!format!("{problems:?}").contains("hun"), "{line:?}");
        }
        for (line, value) in [
            ("A='North\\South'", "North\\South"),
            ("A=\"North\\\\South\"", "North\\South"),
            ("A='\u{a0}x\u{a0}'", "\u{a0}x\u{a0}"),
            ("A='x\ry'", "x\ry"),
            ("\t A= x\t \r", "x"),
            ("; a comment\nA=1", "1"),
            ("  # C:\\dir here\nA=1", "1"),
        ] {
            let (pairs, problems) = parse(line);
            assert_eq!(pairs, [(String::from("A"), value.to_owned())], "{line:?}");
            assert!(problems.is_empty(), "{line:?}: {problems:?}");
        }
    }

    #[test]
    fn broken_lines_are_named_without_their_text() {
        for line in [
            "hunter2",
            "=hunter2",
            "A='hunter2",
            "A=\"hunter2",
            "A=\"hunter2\" x",
            "A=\"hunter2\\n\"",
            "A='hun'ter2'",
            "É=hunter2",
        ] {
            let (pairs, problems) = parse(&format!("A1=1\n{line}"));
            assert_eq!(pairs.len(), 1, "{line}");
            assert_eq!(problems[0].name, "line 2", "{line}");
            assert!(!format!("{problems:?}").contains("hun"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_reads_back(value in "[^\n\r]{0,20}", text in ".{0,60}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(parse(&format!("A=\"{quoted}\"")).0, [(String::from("A"), value)]);
            let lines = text.lines().count();
            let (pairs, problems) = parse(&text);
            prop_assert!(pairs.len() + problems.len() <= lines);
        }
    }

    #[test]
    fn a_variable_is_set_once() {
        assert_eq!(parse("A=1\nA=2").1.len(), 1);
    }
}
