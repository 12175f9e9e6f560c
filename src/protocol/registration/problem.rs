//! What can be wrong with a document.

use std::fmt;

/// Mistakes of a document that are told one by one. Once there are so many, names that nobody has
/// are looked for no further: to say what each is near to takes time.
pub const MOST_MISTAKES: usize = 1_000;

/// What a registration must not say: whether it does, the key to mend, and the rule.
pub(super) type Contradiction = (bool, &'static str, &'static str);

/// One mistake: where, and which rule it breaks.
#[derive(Debug)]
pub struct DocumentProblem {
    /// The place, as `clients[3].redirect_uris[0]`; empty for the document itself.
    pub path: String,
    /// The rule; reads on after the path. Never holds a secret.
    pub rule: String,
    /// What the object there is called, as `spa`.
    pub name: Option<String>,
}

impl DocumentProblem {
    pub fn new(path: impl Into<String>, rule: impl Into<String>) -> DocumentProblem {
        DocumentProblem {
            path: path.into(),
            rule: rule.into(),
            name: None,
        }
    }

    /// The place of the object, as `clients[3]`, and what follows in it.
    pub fn split(&self) -> Option<(&str, &str)> {
        let end = self.path.find(']')?;
        self.path.split_at_checked(end + 1)
    }

    /// As `clients[3] (spa).redirect_uris[0]`.
    pub fn place(&self) -> String {
        match (self.split(), &self.name) {
            (Some((object, rest)), Some(name)) => format!("{object} ({name}){rest}"),
            _ if self.path.is_empty() => String::from("the document"),
            _ => self.path.clone(),
        }
    }
}

impl fmt::Display for DocumentProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place(), self.rule)
    }
}

/// A name from a document as it may be shown: escaped, and cut to 80 characters.
pub fn shown(name: &str) -> String {
    quoted(name, 80)
}

/// A text from elsewhere in quotes: escaped, and cut to so many characters.
pub fn quoted(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most).collect();
    format!("\"{}\"", start.escape_debug())
}
