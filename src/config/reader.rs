//! Reads typed values out of a [`Source`], collecting every problem instead of stopping at the first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::protocol::words::secret::SecretText;

use super::setting::{Default, Kind, Setting};
use super::source::Source;
use super::{Problem, values};

pub(super) struct Reader<'a> {
    source: &'a Source,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source) -> Reader<'a> {
        Reader { source, problems: Vec::new() }
    }

    /// The given text, or the default's. Empty means absent, where empty is no value of its own.
    fn text(&self, setting: &'static Setting) -> Option<&'a str> {
        let counts = |text: &&str| !text.is_empty() || matches!(setting.kind, Kind::TextOrEmpty);
        let default = if let Default::Is(text) = setting.default { Some(text) } else { None };
        self.source.given(setting.name).filter(counts).or(default)
    }

    /// The typed value; `None` when absent, or when refused (then a problem is noted).
    pub(super) fn parsed<T>(
        &mut self,
        setting: &'static Setting,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let Some(text) = self.text(setting) else { return self.absent(setting) };
        parse(text).map_err(|rule| self.refuse(setting, rule, text)).ok()
    }

    /// One of the named choices; the first is the fallback after a problem.
    pub(super) fn choice<T: Copy>(&mut self, setting: &'static Setting, choices: &[(&str, T)], fallback: T) -> T {
        let text = self.text(setting).unwrap_or_default();
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return *value;
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.refuse(setting, &format!("must be one of {}", names.join(", ")), text);
        fallback
    }

    pub(super) fn number(&mut self, setting: &'static Setting) -> u32 {
        let default = if let Default::Is(text) = setting.default { text.parse().unwrap_or_default() } else { 0 };
        self.number_or(setting, default)
    }

    /// The same, where the default is computed.
    pub(super) fn number_or(&mut self, setting: &'static Setting, default: u32) -> u32 {
        let (min, max) = if let Kind::Number(min, max) = setting.kind { (min, max) } else { (0, u32::MAX) };
        let Some(text) = self.text(setting) else { return default };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && (min..=max).contains(number)).unwrap_or_else(|| {
            self.refuse(setting, &format!("must be a whole number from {min} to {max}"), text);
            default
        })
    }

    pub(super) fn seconds(&mut self, setting: &'static Setting) -> Duration {
        Duration::from_secs(u64::from(self.number(setting)))
    }

    /// A secret from its variable, or from the file another variable names, or else from a systemd credential.
    pub(super) fn secret(
        &mut self,
        setting: &'static Setting,
        file_setting: &'static Setting,
        credential: Option<&str>,
    ) -> Option<SecretText> {
        let file = self.parsed(file_setting, values::path);
        match (self.text(setting), file) {
            (Some(_), Some(_)) => {
                self.problems.push(Problem::new(setting.name, format!("must not stand beside {}", file_setting.name)));
                None
            }
            (Some(text), None) => Some(SecretText::new(text)),
            (None, Some(file)) => self.secret_file(file_setting.name, &file),
            (None, None) => match credential.and_then(|name| self.source.credential(name)) {
                Some(file) => self.secret_file(setting.name, &file),
                None => self.absent(setting),
            },
        }
    }

    /// The path a setting names, or else that of a systemd credential.
    pub(super) fn path_or_credential(&mut self, setting: &'static Setting, credential: &str) -> Option<PathBuf> {
        self.parsed(setting, values::path).or_else(|| self.source.credential(credential))
    }

    fn absent<T>(&mut self, setting: &'static Setting) -> Option<T> {
        if matches!(setting.default, Default::Required) {
            self.problems.push(Problem::new(setting.name, "is required"));
        }
        None
    }

    fn secret_file(&mut self, name: &str, file: &Path) -> Option<SecretText> {
        let rule = match std::fs::read_to_string(file) {
            Ok(text) if text.trim().is_empty() => format!("names {}, which is empty", file.display()),
            Ok(text) => return Some(SecretText::new(text.trim_end_matches(['\r', '\n']))),
            Err(error) => format!("names {}, which cannot be read: {error}", file.display()),
        };
        self.problems.push(Problem::new(name, rule));
        None
    }

    fn refuse(&mut self, setting: &'static Setting, rule: &str, text: &str) {
        let shown: String = text.chars().take(80).collect();
        let is_secret = matches!(setting.kind, Kind::Secret);
        let told = if is_secret { String::new() } else { format!("; it is \"{}\"", shown.escape_debug()) };
        self.problems.push(Problem::new(setting.name, format!("{rule}{told}")));
    }
}
