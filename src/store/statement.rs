//! Statements, as the files of the tables write them. A value is written by its name, `:client_id`,
//! and [`bind!`] gives the names their values; a test compares the names of both. Postgres gets
//! numbers: [`written_out`] makes that text when a connection prepares the statement, once for each
//! connection and not for each request.

use postgres::types::ToSql;

use super::seen_partitions::{DayOfTable, Partitions, SeenPartition};
use gatepost_protocol::words::joined::joined;

pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A statement with its values.
#[derive(Clone, Copy)]
pub struct Bound<'a> {
    pub sql: &'static str,
    /// The first is `$1` to Postgres.
    pub names: &'static [&'static str],
    pub values: Values<'a>,
    /// Where it looks and writes: it names the partition of such a day, where one was seen.
    pub days: [Option<DayOfTable>; 3],
}

impl Bound<'_> {
    /// The text that Postgres gets.
    pub fn text(self) -> String {
        written_out(self.sql, self.names)
    }
}

/// Gives a statement its values: `bind!(FIND, ..id { day }, client_id, limit = 5)`. Fields of a
/// struct come first, each for the name of the field. A name alone is the variable of that name.
/// The rows of the events, `:events`, are added by whoever runs the statement.
#[macro_export]
macro_rules! bind {
    (@value $name:ident) => { $name };
    (@value $name:ident = $value:expr) => { $value };
    (
        $sql:expr
        $(, ..$of:ident { $($field:ident),* $(,)? })*
        $(, $name:ident $(= $value:expr)?)* $(,)?
    ) => {
        $crate::Bound {
            sql: $sql,
            names: &[$($(stringify!($field),)*)* $(stringify!($name)),*],
            values: &[$($(&$of.$field,)*)* $(&$crate::bind!(@value $name $(= $value)?)),*],
            days: [None; 3],
        }
    };
}
pub use bind;

/// The name of the events that a statement writes, which comes behind all others.
const EVENTS: &str = "events";

/// The same of the one event that a statement chooses from alternatives: its values one by one,
/// with a name and a hash for each alternative.
const EVENT: &str = "event_day event_at event_chain event_seq event_previous event_hashes \
    event_names event_client_id event_source event_request_id event_detail";

/// What follows them: whom the event is about, or the end of what is hashed, where the statement
/// finds the user.
const ABOUT: &str = "event_sub event_sid";
const ENDING: &str = "event_ending";

/// Texts that several statements share, each by its name in braces, apart by empty lines. One sees
/// no value but those it names.
const PIECES: &str = include_str!("pieces.sql");

/// The text that Postgres gets: with its pieces in their places, and with numbers for its names.
/// `{audited source}` writes the events, once for each row of `source`, and begins the answer with
/// the hashes of those that it wrote.
pub fn written_out(sql: &str, names: &[&str]) -> String {
    written_for(sql, names, &Partitions::default())
}

/// The same, with these partitions in place of their tables, which stand in braces: `{grants}`.
pub fn written_for(sql: &str, names: &[&str], partitions: &Partitions) -> String {
    let mut text = sql.to_owned();
    for piece in PIECES.split("\n\n") {
        let mut lines = piece.lines().filter(|line| !line.starts_with("--"));
        if let Some(name) = lines.next() {
            text = text.replace(name, &joined("\n", lines));
        }
    }
    while let Some((before, rest)) = text.split_once("{audited ")
        && let Some((source, after)) = rest.split_once('}')
    {
        text = format!(
            "{before}audited AS (INSERT INTO audit_events \
             SELECT a.* FROM {source}, unnest(:events::audit_events[]) AS a RETURNING hash) \
             SELECT array(SELECT hash FROM audited) AS audited{after}"
        );
    }
    for SeenPartition { table, from, to } in partitions.iter().flatten() {
        text = text.replace(&format!("{{{table}}}"), &format!("{table}_{from}_{to}"));
    }
    for table in ["audit_events", "grants", "revoked_tokens", "sessions"] {
        text = text.replace(&format!("{{{table}}}"), table);
    }
    numbered(&text, names)
}

/// The names of the values that whoever runs the statement adds behind the others.
pub fn names_of_events(text: &str) -> Vec<&'static str> {
    let names = if text.contains(":event_ending::") {
        [EVENT, ENDING]
    } else if text.contains(":event_day::") {
        [EVENT, ABOUT]
    } else {
        [EVENTS, ""]
    };
    names.into_iter().flat_map(str::split_whitespace).collect()
}

fn numbered(text: &str, names: &[&str]) -> String {
    let names = [names, &names_of_events(text)[..]].concat();
    let mut numbered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(':') {
        let is_in_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let name = after.split(|letter| !is_in_name(letter)).next();
        let known = names.iter().position(|one| name == Some(one));
        numbered.push_str(before);
        rest = match known {
            // `::text` is a cast, whatever the names.
            Some(index) if !before.is_empty() => {
                numbered.push_str(&format!("${}", index + 1));
                after.trim_start_matches(is_in_name)
            }
            Some(_) | None => {
                numbered.push(':');
                after
            }
        };
    }
    numbered + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_casts_stay() {
        let sql = "SELECT x[1 : :most::int4], ':' FROM t WHERE a = :a::text OR :a::text IS NULL";
        assert_eq!(
            written_out(sql, &["a", "most"]),
            "SELECT x[1 : $2::int4], ':' FROM t WHERE a = $1::text OR $1::text IS NULL"
        );
        assert_eq!(numbered("unnest(:events::x[])", &["a"]), "unnest($2::x[])");
    }
}
