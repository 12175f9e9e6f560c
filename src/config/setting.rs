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
    Is(&'static str),
    Described(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// A text in which empty is a value of its own, not absence.
    TextOrEmpty,
    /// A whole number from the first to the second.
    Number(u32, u32),
    /// Never printed, and no flag: arguments can be read by every user of the machine.
    Secret,
}

impl Setting {
    /// The flag that overrides the variable, as `--listen`; none for secrets.
    pub fn flag(&self) -> Option<String> {
        let name = self.name.strip_prefix("GATEPOST_").unwrap_or(self.name);
        let flag = format!("--{}", name.to_ascii_lowercase().replace('_', "-"));
        (!matches!(self.kind, Kind::Secret)).then_some(flag)
    }

    pub fn default_text(&self) -> String {
        match self.default {
            Default::Required => String::from("required"),
            Default::Is(text) => format!("`{text}`"),
            Default::Described(text) => text.to_owned(),
        }
    }
}
