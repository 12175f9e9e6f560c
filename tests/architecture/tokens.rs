//! What a reader reads: tokens. Lines can be made fewer by writing them denser; tokens cannot. A
//! token is an identifier, a number, a literal or one punctuation mark (`::` and `=>` are two).
//! Comments, `use` lines and unit tests do not count.

use super::source::literal_or_comment;

/// The tokens of a text, without comments and `use` lines.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        let length = match literal_or_comment(rest) {
            0 => word_or_mark(rest),
            length => length,
        };
        let (token, after) = rest.split_at(length);
        if !is_comment {
            found.push(token);
        }
        rest = after.trim_start();
    }
    without_use_lines(found)
}

/// How many bytes the word, number, lifetime or mark has that `text` begins with.
fn word_or_mark(text: &str) -> usize {
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let first = text.chars().next().unwrap();
    let from = first.len_utf8();
    let next = text[from..].chars().next();
    let is_lifetime =
        first == '\'' && next.is_some_and(|next| next.is_ascii_alphabetic() || next == '_');
    let is_number = first.is_ascii_digit();
    if !is_lifetime && !is_number && !first.is_ascii_alphabetic() && first != '_' {
        return from;
    }
    let belongs = |character: char| is_of_word(character) || (is_number && character == '.');
    text[from..]
        .find(|character: char| !belongs(character))
        .map_or(text.len(), |end| from + end)
}

fn without_use_lines(tokens: Vec<&str>) -> Vec<&str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_in_use = false;
    for token in tokens {
        let begins = kept
            .last()
            .is_none_or(|last| [";", "}", ")", "{", "]"].contains(last));
        is_in_use = is_in_use || (token == "use" && begins);
        if !is_in_use {
            kept.push(token);
        }
        is_in_use = is_in_use && token != ";";
    }
    kept
}

/// Every function with a body: its name, and its tokens from `fn` to the closing brace.
pub fn functions<'a>(tokens: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (start, pair) in tokens.windows(2).enumerate() {
        let is_name =
            pair[1].starts_with(|character: char| character.is_alphabetic() || character == '_');
        if pair[0] != "fn" || !is_name {
            continue;
        }
        let body = start + end_of_signature(&tokens[start..]);
        if tokens.get(body) == Some(&"{") {
            found.push((pair[1], body + length_of_group(&tokens[body..]) - start));
        }
    }
    found
}

/// The names of the types that a text makes public.
pub fn public_types<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let starts = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| **token == "pub");
    for (at, _) in starts {
        let after = &tokens[at + 1..];
        let restriction = if after.first() == Some(&"(") {
            length_of_group(after)
        } else {
            0
        };
        if let [kind, name, ..] = after[restriction..]
            && ["struct", "enum", "trait", "type"].contains(&kind)
            && name != "$"
        {
            found.push(name);
        }
    }
    found
}

/// The place of the `{` or `;` that ends the signature.
fn end_of_signature(tokens: &[&str]) -> usize {
    let mut depth = 0;
    let ends = tokens.iter().position(|token| {
        match *token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        depth == 0 && ["{", ";"].contains(token)
    });
    ends.unwrap_or(tokens.len())
}

/// How many tokens the group has that `tokens` begin with, its brackets included.
fn length_of_group(tokens: &[&str]) -> usize {
    let mut depth = 0;
    let ends = tokens.iter().position(|token| {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    ends.map_or(tokens.len(), |last| last + 1)
}

/// Whether a group has a comma of its own: a tuple rather than brackets.
fn is_tuple(group: &[&str]) -> bool {
    let mut depth = 0;
    group.iter().any(|token| {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth == 1 && *token == ","
    })
}

/// How often a tuple of names is given a tuple of expressions: `let (a, b) = (x, y);`.
pub fn tuple_lets(tokens: &[&str]) -> usize {
    let starts = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == ["let", "("]);
    let is_one = |(start, _): (usize, &[&str])| {
        let names = &tokens[start + 1..];
        let after = &names[length_of_group(names)..];
        let [equals, value @ ..] = after else {
            return false;
        };
        let length = if value.first() == Some(&"(") {
            length_of_group(value)
        } else {
            0
        };
        *equals == "="
            && length > 0
            && is_tuple(&value[..length])
            && value.get(length) == Some(&";")
    };
    starts.filter(|start| is_one(*start)).count()
}

/// How many parameters of functions are tuples, by pattern or by type.
pub fn tuple_parameters(tokens: &[&str]) -> usize {
    let starts = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0] == "fn");
    let mut count = 0;
    for (start, _) in starts {
        let signature = &tokens[start..start + end_of_signature(&tokens[start..])];
        let Some(open) = signature.iter().position(|token| *token == "(") else {
            continue;
        };
        let parameters = &signature[open..open + length_of_group(&signature[open..])];
        let mut depth = 0;
        for (at, token) in parameters.iter().enumerate() {
            let begins_pattern =
                depth == 1 && ["(", ","].contains(&parameters[at.saturating_sub(1)]);
            let begins_type = depth == 1 && [":", "&"].contains(&parameters[at.saturating_sub(1)]);
            let is_group =
                *token == "(" && is_tuple(&parameters[at..at + length_of_group(&parameters[at..])]);
            // A pattern with a type of its own is one parameter.
            let is_type_of_pattern =
                at >= 2 && parameters[at - 1] == ":" && parameters[at - 2] == ")";
            if is_group && (begins_pattern || (begins_type && !is_type_of_pattern)) {
                count += 1;
            }
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
    }
    count
}

/// How many closures there are: a `|` that begins something, and not one between two patterns.
pub fn closures(tokens: &[&str]) -> usize {
    let begins = |before: &[&str]| match before {
        [.., "=", ">"] => true,
        [.., last] => ["(", "[", "{", ",", ";", "=", "&", "move", "return"].contains(last),
        [] => true,
    };
    let is_mark = |(at, token): &(usize, &&str)| **token == "|" && begins(&tokens[..*at]);
    tokens.iter().enumerate().filter(is_mark).count()
}

#[test]
fn closures_are_told_from_patterns_and_conditions() {
    let text = "f(|a| a | 1, move || b || c); let g = |(x, y)| x; match z { A | B => |_| 1, C => 2 } \
                matches!(z, A | B | C)";
    assert_eq!(closures(&tokens(text)), 4);
}

#[test]
fn tokens_are_words_literals_and_single_marks() {
    let text = "use a::b;\n// Why.\nfn one<'a>(x: &'a str) -> u8 { \"} {\" ; b'x'; r#\"\"\"#; 0x1f..2; a::b }";
    let counted = tokens(text);
    let expected =
        "fn|one|<|'a|>|(|x|:|&|'a|str|)|-|>|u8|{|\"} {\"|;|b'x'|;|r#\"\"\"#|;|0x1f..2|;|a|:|:|b|}";
    let expected: Vec<&str> = expected.split('|').collect();
    assert_eq!(counted, expected);
    assert_eq!(functions(&counted), [("one", expected.len())]);
}

#[test]
fn tuples_are_counted_where_a_struct_or_two_lines_would_do() {
    let text = "fn a((x, y): (u8, u8), z: &(u8, u8), f: impl Fn(u8, u8), w: (u8)) { let (a, b) = (1, f(2, 3)); \
                let (c, d) = both(); let (e) = (f, g).0; }";
    let counted = tokens(text);
    assert_eq!((tuple_parameters(&counted), tuple_lets(&counted)), (2, 1));
}

#[test]
fn types_are_public_with_and_without_a_restriction() {
    let text = "pub struct A; pub(crate) enum B {} struct C; pub fn f() {} pub(in a::b) type D = A; pub trait E {}";
    assert_eq!(public_types(&tokens(text)), ["A", "B", "D", "E"]);
}
