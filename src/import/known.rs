//! Nothing is left out without a word: each key of a dump that is set, is not at its default and is
//! not read gets a line. The line names the key, where it stands and what follows, and never the
//! value, which may be a secret.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gatepost_protocol::words::json::is_empty;
use serde_json::Value;

use super::notes::NOT_KNOWN;
use super::{Import, Read, Row, plain};
use gatepost_protocol::words::identifiers::in_text;

/// The keys that they have, in tables. The first line of a table: its title, what one of its
/// objects is called, and the member with the object's name. Every other line: a key, what its
/// value is, and what follows where it is left out. The value is `*` (it is read, or says nothing),
/// `each TITLE`, `in TITLE` and `lists of TITLE` (objects of another table, in a list, alone, and
/// in lists with names), or the default, with ` or ` between several. After `unless` stand the
/// values that mean the same here: another one has its line even where nobody said it.
const KNOWN: &str = include_str!("known.txt");

/// The table of people whose columns may be anything.
const USERS: &str = "user of Identity keys";

const NO_COUNTERPART: &str = "is left out, as there is nothing like it here";

struct KnownKey {
    key: &'static str,
    value: &'static str,
    follows: &'static str,
}

struct KnownObject {
    called: &'static str,
    name_key: &'static str,
    keys: Vec<KnownKey>,
}

fn columns(line: &'static str) -> [&'static str; 3] {
    let mut columns = line.split('|').map(str::trim);
    std::array::from_fn(|_| columns.next().unwrap_or_default())
}

fn known_key(line: &'static str) -> KnownKey {
    let [key, value, follows] = columns(line);
    let follows = match follows {
        "" => NO_COUNTERPART,
        follows => follows,
    };
    KnownKey {
        key,
        value,
        follows,
    }
}

/// The tables, by their titles.
static TABLES: LazyLock<BTreeMap<&str, KnownObject>> = LazyLock::new(|| {
    let mut tables = BTreeMap::new();
    for table in KNOWN.split("\n\n") {
        let mut lines = table.lines();
        let [title, called, name_key] = columns(lines.next().unwrap_or_default());
        let object = KnownObject {
            called,
            name_key,
            keys: lines.map(known_key).collect(),
        };
        tables.insert(title, object);
    }
    tables
});

/// Whether the table has the key.
pub fn is_known(title: &str, key: &str) -> bool {
    TABLES
        .get(title)
        .is_some_and(|object| object.keys.iter().any(|known| known.key == key))
}

/// Notes what is not read in an object, and in the objects within it. `parent` is what the object
/// around it is called, empty for the whole dump. `skips` says of an object of the table with that
/// title whether it is left out as a whole: then there is a line for that.
pub fn note_unread(
    row: &Row<'_>,
    title: &str,
    parent: &str,
    skips: &dyn Fn(&str, &Row<'_>) -> bool,
    to: &mut Import,
) -> Read {
    let Some(object) = TABLES.get(title).filter(|_| !skips(title, row)) else {
        return Ok(());
    };
    let name = match object.name_key {
        // The rows of this table have no name, and a member that is called so may be anything.
        "" => None,
        key => row.members.get(key).and_then(|name| plain("", name).ok()),
    };
    let of = match name {
        Some(name) => format!("{} {}", object.called, in_text(&name)),
        None if parent.is_empty() => object.called.to_owned(),
        None => parent.to_owned(),
    };
    for (key, value) in row.members {
        if is_known(title, key) || is_empty(value) {
            continue;
        }
        match row.flag(key) {
            Ok(flag) if title == USERS => to.notes.add_flag(&of, key, flag),
            _ => to.notes.add_unread(&of, key, NOT_KNOWN),
        }
    }
    for known in &object.keys {
        let key = known.key;
        if let Some(title) = known.value.strip_prefix("each ") {
            for row in row.objects(key)? {
                note_unread(&row, title, &of, skips, to)?;
            }
        } else if let Some(title) = known.value.strip_prefix("lists of ") {
            let Some(lists) = row.nested(key)? else {
                continue;
            };
            for name in lists.members.keys() {
                for row in lists.objects(name)? {
                    note_unread(&row, title, &of, skips, to)?;
                }
            }
        } else if let Some(title) = known.value.strip_prefix("in ") {
            if let Some(row) = row.nested(key)? {
                note_unread(&row, title, &of, skips, to)?;
            }
        } else if !known.means_the_same(row.members.get(key).unwrap_or(&Value::Null)) {
            to.notes.add_unread(&of, key, known.follows);
        }
    }
    Ok(())
}

impl KnownKey {
    /// Whether nothing changes for who had this value.
    fn means_the_same(&self, value: &Value) -> bool {
        match self.value.strip_prefix("unless") {
            Some("") => false,
            Some(alike) => is_default(alike.trim(), value),
            None => self.value == "*" || is_empty(value) || is_default(self.value, value),
        }
    }
}

/// Whether the value is one of the defaults. Their tools write numbers and truths as texts, too,
/// and a truth as 0 or 1.
fn is_default(defaults: &str, value: &Value) -> bool {
    let told = plain("", value).map(|text| text.to_lowercase());
    let mut defaults = defaults.split(" or ");
    defaults.any(|default| {
        let default: Value = serde_json::from_str(default).unwrap_or_default();
        let as_text = plain("", &default).map(|text| text.to_lowercase());
        let as_number = match default.as_bool() {
            Some(true) => "1",
            Some(false) => "0",
            None => "",
        };
        let is_same_text = told.is_ok() && told == as_text;
        default == *value || is_same_text || told.as_deref() == Ok(as_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_tables_can_be_read() {
        for table in KNOWN.split("\n\n") {
            let title = columns(table.lines().next().unwrap())[0];
            for line in table.lines().skip(1) {
                let [key, value, _] = columns(line);
                assert!(!key.is_empty() && line.matches('|').count() <= 2, "{line}");
                let mut kinds = ["each ", "in ", "lists of "].into_iter();
                if let Some(other) = kinds.find_map(|kind| value.strip_prefix(kind)) {
                    assert!(TABLES.contains_key(other), "{title}: {line}");
                } else if !["", "*", "unless"].contains(&value) {
                    let value = value.strip_prefix("unless ").unwrap_or(value);
                    let mut defaults = value.split(" or ");
                    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
                    assert!(defaults.all(is_json), "{title}: {line}");
                }
            }
        }
    }
}
