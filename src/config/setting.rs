//! What a setting is: its variable, its flag, its meaning, its default, the bounds of numbers.

/// One setting. The constants in `settings` are the only ones.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What is used where the variable is absent or empty.
    pub default: Default,
    /// What it means, with its unit, as the README prints it.
    pub meaning: &'static str,
    /// What its text is.
    pub kind: Kind,
}

/// The value of a setting that was not given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// There is none: the setting must be given.
    Required,
    /// Read like a given value.
    Text(&'static str),
    /// A plain number.
    Number(u32),
    /// Computed or absent; the text says how, for the README.
    Described(&'static str),
}

/// What the text of a setting is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Anything with a parser of its own.
    Text,
    /// A text in which empty is a value of its own, not absence.
    TextOrEmpty,
    /// A whole number within these bounds, both included.
    Number {
        /// The smallest allowed.
        min: u32,
        /// The largest allowed.
        max: u32,
    },
    /// Never printed, and no flag: arguments can be read by every user of the machine.
    Secret,
}

impl Setting {
    /// A setting with a parser of its own.
    pub(super) const fn text(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::Text }
    }

    /// A setting in which empty is a value of its own.
    pub(super) const fn text_or_empty(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::TextOrEmpty }
    }

    /// A setting that is never printed.
    pub(super) const fn secret(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::Secret }
    }

    /// A whole number between `min` and `max`.
    pub(super) const fn number(
        name: &'static str,
        default: u32,
        (min, max): (u32, u32),
        meaning: &'static str,
    ) -> Setting {
        Setting { name, default: Default::Number(default), meaning, kind: Kind::Number { min, max } }
    }

    /// The flag that overrides the variable, as `--listen`; none for secrets.
    pub fn flag(&self) -> Option<String> {
        match self.kind {
            Kind::Text | Kind::TextOrEmpty | Kind::Number { .. } => {
                let name = self.name.strip_prefix("GATEPOST_").unwrap_or(self.name);
                Some(format!("--{}", name.to_ascii_lowercase().replace('_', "-")))
            }
            Kind::Secret => None,
        }
    }

    /// The default as the README prints it.
    pub fn default_text(&self) -> String {
        match self.default {
            Default::Required => String::from("required"),
            Default::Text(text) => format!("`{text}`"),
            Default::Number(number) => format!("`{number}`"),
            Default::Described(text) => text.to_owned(),
        }
    }
}
