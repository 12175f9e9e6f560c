//! The headings of the documentation: `gatepost help WORD` says which page has the word.

/// A heading in a line, behind the path of its page. `tests/headings` writes it.
const HEADINGS: &str = include_str!("headings.txt");

/// In a line what people type, and behind `=` the words that headings have for it.
const SYNONYMS: &str = include_str!("synonyms.txt");

/// The headings that have what was typed, or one of its synonyms, below the path of each page.
pub fn about(typed: &[String]) -> String {
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
    let heading = words(heading);
    let phrase = words(phrase);
    let begins_one = |part: &String| heading.iter().any(|word| word.starts_with(part));
    !phrase.is_empty() && phrase.iter().all(begins_one)
}

/// In small letters.
fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synonym_leads_to_a_heading() {
        for line in SYNONYMS.lines() {
            let (names, synonyms) = line.split_once(" = ").unwrap();
            for synonym in synonyms.split(", ") {
                let mut headings = HEADINGS.lines().filter_map(|line| line.split_once(": "));
                let found = headings.any(|(_, heading)| has_words(heading, synonym));
                assert!(found && names == names.to_lowercase(), "{line}");
            }
        }
    }
}
