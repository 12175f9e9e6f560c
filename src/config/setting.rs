//! What a setting is: its variable, its flag, its meaning, its default, the bounds of numbers.

/// One setting. The constants in `settings` are the only ones.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub default: Default,
    /// What it means, with its unit, as the README prints it.
    pub meaning: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub enum Default {
    Required,
    /// Read like a given value.
    Text(&'static str),
    Number(u32),
    Described(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// A text in which empty is a value of its own, not absence.
    TextOrEmpty,
    /// A whole number within these bounds, both included.
    Number {
        min: u32,
        max: u32,
    },
    /// Never printed, and no flag: arguments can be read by every user of the machine.
    Secret,
}

impl Setting {
    pub(super) const fn text(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::Text }
    }

    pub(super) const fn text_or_empty(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::TextOrEmpty }
    }

    pub(super) const fn secret(name: &'static str, default: Default, meaning: &'static str) -> Setting {
        Setting { name, default, meaning, kind: Kind::Secret }
    }

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

    pub fn default_text(&self) -> String {
        match self.default {
            Default::Required => String::from("required"),
            Default::Text(text) => format!("`{text}`"),
            Default::Number(number) => format!("`{number}`"),
            Default::Described(text) => text.to_owned(),
        }
    }
}
