//! What is said of an import, and in which order: first what keeps people and applications out.

use gatepost_protocol::words::joined::joined;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of lines: a heading, and what a line below it says somewhere. A line stands below the
/// first heading that fits. One that names an option has its lines with that alone.
const HEADINGS: &str = include_str!("headings.txt");

pub const NOT_KNOWN: &str = "is not known here, and is left out";

/// How many objects a line names.
const MOST: usize = 10;

#[derive(Default)]
pub struct Notes {
    /// The notes, each with those that it is about.
    said: BTreeMap<String, NotedObjects>,
    /// Keys of a realm that are not read, by what the realm is called and what follows.
    of_realm: BTreeMap<(String, String), BTreeSet<String>>,
    /// Keys that say yes or no and are not read: those who say the one, and the other.
    flags: BTreeMap<String, BTreeMap<bool, Vec<String>>>,
}

impl Notes {
    pub fn add(&mut self, of: &str, text: String) {
        self.said.entry(text).or_default().add(of);
    }

    pub fn add_unread(&mut self, of: &str, key: &str, follows: &str) {
        if !of.starts_with("realm ") {
            return self.add(of, format!("{key}: {follows}"));
        }
        let keys = self.of_realm.entry((of.to_owned(), follows.to_owned()));
        keys.or_default().insert(key.to_owned());
    }

    pub fn add_flag(&mut self, of: &str, key: &str, flag: bool) {
        let sides = self.flags.entry(key.to_owned()).or_default();
        sides.entry(flag).or_default().push(of.to_owned());
    }

    /// Notes who differs from the most; everybody where nobody does.
    fn add_flags(&mut self) {
        for (mut key, sides) in std::mem::take(&mut self.flags) {
            let all: usize = sides.values().map(Vec::len).sum();
            let rarest = sides.into_values().min_by_key(Vec::len).unwrap_or_default();
            if rarest.len() < all {
                key = format!("{key} ({} of {all} differs)", rarest.len());
            }
            for of in rarest {
                self.add_unread(&of, &key, NOT_KNOWN);
            }
        }
    }

    /// The lines below their headings, each with an empty line before it.
    pub fn under_headings(mut self, all: bool) -> Vec<String> {
        self.add_flags();
        for ((of, follows), keys) in std::mem::take(&mut self.of_realm) {
            let keys = joined(", ", keys);
            self.add(&of, format!("{keys}: {follows}"));
        }
        let said = self.said.iter();
        let mut rest: Vec<String> = said.map(|(text, objects)| objects.line(text)).collect();
        let mut lines = Vec::new();
        for block in HEADINGS.split("\n\n") {
            let (heading, phrases) = block.split_once('\n').unwrap_or_default();
            let is_below = |line: &String| phrases.lines().any(|phrase| line.contains(phrase));
            let (below, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_below);
            rest = others;
            if !below.is_empty() {
                let count = below.len();
                lines.extend([String::new(), format!("{heading} (lines: {count})")]);
            }
            if all || !heading.contains("--all") {
                lines.extend(below);
            }
        }
        lines
    }
}

/// What a line is about.
#[derive(Default)]
struct NotedObjects {
    /// In the order in which they were noted.
    named: Vec<String>,
    all: BTreeSet<String>,
}

impl NotedObjects {
    fn add(&mut self, of: &str) {
        if self.all.insert(of.to_owned()) {
            self.named.push(of.to_owned());
        }
    }

    /// Names some of them, and says how many there are.
    fn line(&self, text: &str) -> String {
        match self.named.split_at_checked(MOST) {
            Some((named, more)) if !more.is_empty() => {
                format!("{} and {} more: {text}", named.join(", "), more.len())
            }
            _ => format!("{}: {text}", self.named.join(", ")),
        }
    }
}
