//! Text for terminals of 80 columns.

use std::iter::repeat_n;

const COLUMNS: usize = 80;

/// `first`, and the words behind it with a space between two. What does not fit on a line goes on in the next, behind `indent`
/// spaces; a word is never broken.
pub(super) fn fill<'a>(first: &str, words: impl IntoIterator<Item = &'a str>, indent: usize) -> String {
    let mut text = first.to_owned();
    let mut column = first.chars().count();
    for (index, word) in words.into_iter().enumerate() {
        let gap = usize::from(index > 0);
        let width = word.chars().count();
        if index > 0 && column + gap + width > COLUMNS {
            text.push('\n');
            text.extend(repeat_n(' ', indent));
            column = indent;
        } else {
            text.extend(repeat_n(' ', gap));
            column += gap;
        }
        text.push_str(word);
        column += width;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_full_as_they_can_be_and_words_whole() {
        assert_eq!(fill("  --json  ", [], 10), "  --json  ");
        assert_eq!(fill("  --json  ", ["print", "JSON"], 10), "  --json  print JSON");
        let word = "x".repeat(40);
        assert_eq!(fill("", [word.as_str(), &word[1..]], 2), format!("{word} {}", &word[1..]));
        assert_eq!(fill("", [word.as_str(), &word], 2), format!("{word}\n  {word}"));
        let long = "y".repeat(90);
        assert_eq!(fill("  ", ["a", &long, "b"], 4), format!("  a\n    {long}\n    b"));
    }
}
