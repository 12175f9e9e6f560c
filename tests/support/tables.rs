//! Tables of cases: a row says what differs, and the loop over them says what is claimed.

use serde_json::Value;

/// The cases of a table that is written as an object: each has a name.
pub fn cases(table: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let cases = table.as_object().unwrap();
    cases.iter().map(|(case, row)| (case.as_str(), row))
}

/// What such a row says for a form: all of its members are texts.
pub fn pairs(row: &Value) -> Vec<(&str, &str)> {
    let members = cases(row);
    members
        .map(|(name, value)| (name, value.as_str().unwrap()))
        .collect()
}

/// The rows of a table that is written as a text: one a line, with bars between its cells. A line
/// that begins with its bar goes on with the line before, unless that has all of its cells.
pub fn rows_of<const CELLS: usize>(table: &str) -> Vec<[&str; CELLS]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let mut all: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        let cells = str::split(line, '|').map(str::trim);
        match all.last_mut().filter(|row| row.len() < CELLS) {
            Some(row) => row.extend(cells.skip(1)),
            None => all.push(cells.collect()),
        }
    }
    let row = |cells: Vec<_>| <[&str; CELLS]>::try_from(cells);
    let rows = all.into_iter().map(row);
    rows.map(|row| row.unwrap_or_else(|cells| panic!("not {CELLS} cells: {cells:?}")))
        .collect()
}
