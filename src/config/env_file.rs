//! `--env-file`: one `NAME=value` a line. The part of systemd's and Docker's formats on which they agree.

use super::Problem;

/// Reads the lines. Comments begin with `#`; a value may stand in single quotes (taken as it is) or in double quotes
/// (where `\"` and `\\` stand for `"` and `\`). The error names the line, never its text: it may hold a secret.
pub(super) fn parse(text: &str) -> (Vec<(String, String)>, Vec<Problem>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Ok((name, _)) if pairs.iter().any(|(seen, _)| *seen == name) => {
                problems
                    .push(Problem::new(format!("line {}", index + 1), "sets a variable that an earlier line has set"));
            }
            Ok(pair) => pairs.push(pair),
            Err(rule) => problems.push(Problem::new(format!("line {}", index + 1), rule)),
        }
    }
    (pairs, problems)
}

fn parse_line(line: &str) -> Result<(String, String), &'static str> {
    let (name, value) = line.split_once('=').ok_or("must be NAME=value")?;
    let name_is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !name_is_plain {
        return Err("must begin with a variable's name, followed by = without spaces");
    }
    Ok((name.to_owned(), parse_value(value.trim())?))
}

fn parse_value(value: &str) -> Result<String, &'static str> {
    if let Some(rest) = value.strip_prefix('\'') {
        let inner = rest.strip_suffix('\'').filter(|inner| !inner.contains('\''));
        return inner.map(str::to_owned).ok_or("must end its single-quoted value with the closing quote");
    }
    let Some(rest) = value.strip_prefix('"') else {
        return Ok(value.to_owned());
    };
    unescape(rest).ok_or("must end its double-quoted value with the closing quote; only \\\" and \\\\ are escapes")
}

fn unescape(rest: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return characters.next().is_none().then_some(value),
            '\\' => value.push(characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_comments_and_blanks_are_understood() {
        let text = "# comment\n\nA=1\n  B = no\nC=a b # not a comment\nD='q\"q # '\nE=\"a\\\"b\\\\c\"\nF=\nG=x=y\r\n";
        let (pairs, problems) = parse(text);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected =
            [("A", "1"), ("C", "a b # not a comment"), ("D", "q\"q # "), ("E", "a\"b\\c"), ("F", ""), ("G", "x=y")];
        assert_eq!(pairs, expected);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].name, "line 4");
    }

    #[test]
    fn broken_lines_are_named_without_their_text() {
        for line in [
            "hunter2",
            "=hunter2",
            "A='hunter2",
            "A=\"hunter2",
            "A=\"hunter2\" x",
            "A=\"hunter2\\n\"",
            "A='hun'ter2'",
            "É=hunter2",
        ] {
            let (pairs, problems) = parse(&format!("A1=1\n{line}"));
            assert_eq!(pairs.len(), 1, "{line}");
            assert_eq!(problems[0].name, "line 2", "{line}");
            assert!(!format!("{problems:?}").contains("hun"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_reads_back(value in "[^\n\r]{0,20}", text in ".{0,60}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(parse(&format!("A=\"{quoted}\"")).0, [(String::from("A"), value)]);
            let lines = text.lines().count();
            let (pairs, problems) = parse(&text);
            prop_assert!(pairs.len() + problems.len() <= lines);
        }
    }

    #[test]
    fn a_variable_is_set_once() {
        assert_eq!(parse("A=1\nA=2").1.len(), 1);
    }
}
