//! "Did you mean": the known name nearest to one that is not known, where one is near at all.

/// How much of a name counts, so that a hostile one costs no time.
const LONGEST: usize = 64;

/// The candidate with the smallest edit distance, the first of several; `None` when none is so near that it could be
/// meant: one begins with the other, or no more than a third of the longer differs.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |text: &str| -> Vec<char> { text.to_lowercase().chars().take(LONGEST).collect() };
    let name = letters(name);
    let near = candidates.into_iter().filter_map(|candidate| {
        let letters = letters(candidate);
        let bearable = name.len().max(letters.len()).div_ceil(3);
        let begins_alike = is_beginning(&name, &letters) || is_beginning(&letters, &name);
        if !begins_alike && name.len().abs_diff(letters.len()) > bearable {
            return None;
        }
        let distance = edit_distance(&name, &letters);
        let is_near = distance <= bearable && distance < name.len().min(letters.len());
        (is_near || begins_alike).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

fn is_beginning(start: &[char], whole: &[char]) -> bool {
    start.len() >= 3 && whole.starts_with(start)
}

/// `; the nearest is "x"`, or nothing.
pub fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates)
        .map(|nearest| format!("; the nearest is \"{}\"", nearest.escape_debug()))
        .unwrap_or_default()
}

/// Characters put in, taken out, replaced or swapped with their neighbour (optimal string alignment).
fn edit_distance(left: &[char], right: &[char]) -> usize {
    let mut earlier: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        let mut before = i + 1;
        for (j, ((to, above), diagonal)) in right.iter().zip(row.iter().skip(1)).zip(row.iter()).enumerate() {
            before = (before + 1).min(above + 1).min(diagonal + usize::from(from != to));
            let (left_neighbour, right_neighbour) = (i.checked_sub(1), j.checked_sub(1));
            if let (Some(i), Some(j)) = (left_neighbour, right_neighbour)
                && left.get(i) == Some(to)
                && right.get(j) == Some(from)
            {
                before = before.min(earlier.get(j).map_or(usize::MAX, |swapped| swapped + 1));
            }
            next.push(before);
        }
        earlier = row;
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_wins() {
        assert_eq!(nearest("redirect_uri", ["scope", "redirect_uris", "jwks_uri"]), Some("redirect_uris"));
        assert_eq!(nearest("Scope", ["scope"]), Some("scope"));
        assert_eq!(nearest("from", ["to_resources", "from_clients"]), Some("from_clients"));
        assert_eq!(nearest("user lsit", ["user add", "user list", "client list"]), Some("user list"));
        assert_eq!(hint("scop", ["scope"]), "; the nearest is \"scope\"");
    }

    #[test]
    fn where_nothing_is_near_nothing_is_named() {
        for (name, known) in
            [("x", "y"), ("canary-91", "scope"), ("orders", "openid"), ("web", "spa"), ("", "a"), ("delete", "list")]
        {
            assert_eq!(nearest(name, [known]), None, "{name}");
        }
        assert_eq!((nearest("x", []), hint("frobnicate", ["scope", "claims"])), (None, String::new()));
    }
}
