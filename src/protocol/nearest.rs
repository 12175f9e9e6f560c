//! "Did you mean": the known name nearest to one that is not known.

/// The candidate with the smallest edit distance to `name`, the first of several.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates.into_iter().min_by_key(|candidate| edit_distance(name, candidate))
}

/// How many characters must be put in, taken out or replaced to make `left` of `right` (Levenshtein). Only the first 64
/// characters of each count, so that a hostile name costs no time.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        let mut before = i + 1;
        for ((to, above), diagonal) in right.iter().zip(row.iter().skip(1)).zip(row.iter()) {
            before = (before + 1).min(above + 1).min(diagonal + usize::from(from != *to));
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_edits() {
        for (left, right, distance) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("scope", "scopes", 1),
            ("é", "e", 1),
        ] {
            assert_eq!(edit_distance(left, right), distance, "{left} {right}");
        }
    }

    #[test]
    fn the_nearest_name_wins() {
        assert_eq!(nearest("redirect_uri", ["scope", "redirect_uris", "jwks_uri"]), Some("redirect_uris"));
        assert_eq!(nearest("x", []), None);
    }
}
