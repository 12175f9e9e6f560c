//! The headings of the documentation: `gatepost help WORD` says which page has the word.

/// A heading in a line, behind the path of its page. `tests/headings` writes it.
const HEADINGS: &str = include_str!("headings.txt");

/// In a line what people type, and behind `=` the words that headings have for it.
const SYNONYMS: &str = include_str!("synonyms.txt");

/// The headings that have what was typed, or one of its synonyms, below the path of each page.
pub(super) fn about(typed: &[String]) -> String {
    let typed = typed.join(" ").to_lowercase();
    let mut phrases = vec![typed.as_str()];
    for line in SYNONYMS.lines() {
        if let Some((names, synonyms)) = line.split_once(" = ")
            && names.split(", ").any(|name| name == typed)
        {
            phrases.extend(synonyms.split(", "));
        }
    }
    let mut found = String::new();
    let mut last_page = "";
    for line in HEADINGS.lines() {
        let Some((page, heading)) = line.split_once(": ") else {
            continue;
        };
        if !phrases.iter().any(|phrase| has_words(heading, phrase)) {
            continue;
        }
        if page != last_page {
            found += &format!("  {page}\n");
            last_page = page;
        }
        found += &format!("    {heading}\n");
    }
    found
}

/// Whether each word of the phrase begins a word of the heading.
fn has_words(heading: &str, phrase: &str) -> bool {
    let heading = heading.to_lowercase();
    let words: Vec<&str> = heading.split(|c: char| !c.is_alphanumeric()).collect();
    let begins_one = |part: &str| words.iter().any(|word| word.starts_with(part));
    !phrase.is_empty() && phrase.split_whitespace().all(begins_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synonym_leads_to_a_heading() {
        for line in SYNONYMS.lines() {
            let (names, synonyms) = line.split_once(" = ").unwrap();
            for synonym in synonyms.split(", ") {
                let found = HEADINGS.lines().any(|line| has_words(line, synonym));
                assert!(found && names == names.to_lowercase(), "{line}");
            }
        }
    }
}
