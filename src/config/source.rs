//! Where the texts of settings come from: flags before the environment before the file; secrets also from files and
//! systemd credentials. The only reader of the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::protocol::words::nearest::nearest;
use crate::protocol::words::secret::SecretText;

use super::settings::SETTINGS;
use super::{ConfigError, Problem, env_file};

#[derive(Clone)]
pub struct Source {
    values: BTreeMap<&'static str, String>,
    /// `$CREDENTIALS_DIRECTORY`, where systemd puts credentials.
    pub(super) credentials_directory: Option<PathBuf>,
    pub(super) cores: u32,
}

impl Source {
    pub fn empty() -> Source {
        Source { values: BTreeMap::new(), credentials_directory: None, cores: 1 }
    }

    /// Reads the file and this process's environment, and lays `flags` (name of the setting, value) over both.
    pub fn from_environment(file: Option<&Path>, flags: &[(&'static str, String)]) -> Result<Source, ConfigError> {
        let mut source = Source::empty();
        source.credentials_directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        source.cores = u32::try_from(cores).unwrap_or(u32::MAX);
        let mut problems = file.map(|file| source.take_file(file)).unwrap_or_default();
        for (name, value) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with("GATEPOST_") {
                continue;
            }
            match value.into_string() {
                Ok(value) => problems.extend(source.set(&name, value).err()),
                Err(_) => problems.push(Problem::new(name, "must be valid UTF-8")),
            }
        }
        source.values.extend(flags.iter().cloned());
        ConfigError::unless_empty(problems).map(|()| source)
    }

    /// Gives a setting its text; an unknown name is refused with the nearest known one.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), Problem> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let known = nearest(name, SETTINGS.iter().map(|setting| setting.name));
            let hint = known.map(|known| format!("; the nearest is {known}")).unwrap_or_default();
            return Err(Problem::new(name.escape_debug().to_string(), format!("is not a setting{hint}")));
        };
        self.values.insert(setting.name, value);
        Ok(())
    }

    /// The text that was given, be it empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The path of a systemd credential, where this process was given one of that name.
    pub fn credential(&self, name: &str) -> Option<PathBuf> {
        let path = self.credentials_directory.as_ref()?.join(name);
        path.exists().then_some(path)
    }

    fn take_file(&mut self, file: &Path) -> Vec<Problem> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => return vec![Problem::new(file.display().to_string(), format!("cannot be read: {error}"))],
        };
        let (pairs, problems) = env_file::parse(&text);
        let locate = |problem: Problem| Problem::new(format!("{}, {}", file.display(), problem.name), problem.rule);
        let mut problems: Vec<Problem> = problems.into_iter().map(locate).collect();
        problems.extend(pairs.into_iter().filter_map(|(name, value)| self.set(&name, value).err()));
        problems
    }
}

/// The value of a variable that a registration document names as the place of a secret; `None` when it is not set or not
/// UTF-8.
pub fn environment_secret(name: &str) -> Option<SecretText> {
    std::env::var(name).ok().map(SecretText::new)
}
