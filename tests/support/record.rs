//! A record of what the service tests were answered: every response and every command's output, by
//! test and in order, with what chance or the clock decided masked. Two runs are compared by `diff
//! -r`, before and after a change that must change nothing: `make test RECORD=/somewhere
//! TEST="--test service"`.
//!
//! What is asked again until it holds, and what threads without a test's name ask, comes as often
//! as chance wants: it is left out.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::thread;

thread_local!(static REPEATED: Cell<u32> = const { Cell::new(0) });

/// Writes nothing down while `ask` runs: it is repeated until it holds.
pub fn without<T>(ask: impl FnOnce() -> T) -> T {
    REPEATED.set(REPEATED.get() + 1);
    let answer = ask();
    REPEATED.set(REPEATED.get() - 1);
    answer
}

/// Writes down what was asked and what came, if a record is kept.
pub fn write(asked: &str, came: &str) {
    let directory = std::env::var_os("RECORD").filter(|directory| !directory.is_empty());
    let thread = thread::current();
    let (Some(directory), Some(test)) =
        (directory, thread.name().filter(|name| name.contains("::")))
    else {
        return;
    };
    if REPEATED.get() > 0 {
        return;
    }
    std::fs::create_dir_all(&directory).unwrap();
    let file = PathBuf::from(directory).join(test.replace("::", "."));
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    write!(file, "> {}\n{}\n\n", masked(asked), masked(came)).unwrap();
}

/// Words that look drawn by chance (long, of both letters and digits or of both cases) and every
/// number of four digits or more become `~`; so do user codes, dates and times.
pub fn masked(text: &str) -> String {
    let part_of_word =
        |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((_, after)) = rest.split_at_checked(8).filter(|(start, _)| is_time(start)) {
            masked.push('~');
            rest = after;
            continue;
        }
        let length = rest
            .find(|character| !part_of_word(character))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(if length == 0 {
            first.len_utf8()
        } else {
            length
        });
        let is_day = masked.ends_with("~, ") && word.len() == 2;
        masked.push_str(&if length == 0 || is_day {
            word.replace(char::is_numeric, "~")
        } else {
            masked_word(word)
        });
        rest = after;
    }
    masked
}

/// `21:48:07`
fn is_time(text: &str) -> bool {
    text.char_indices().all(|(at, character)| {
        if at % 3 == 2 {
            character == ':'
        } else {
            character.is_ascii_digit()
        }
    })
}

fn masked_word(word: &str) -> String {
    const DATES: [&str; 19] = [
        "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let any = |kind: fn(&char) -> bool| word.chars().any(|character| kind(&character));
    let (lower, upper, digit) = (
        any(char::is_ascii_lowercase),
        any(char::is_ascii_uppercase),
        any(char::is_ascii_digit),
    );
    let user_code = word.len() == 9 && word.as_bytes()[4] == b'-' && !lower && !digit;
    let drawn = word.len() >= 16 && (digit && (lower || upper) || upper && lower);
    let date = word.len() > 9
        && word.bytes().take(8).filter(u8::is_ascii_digit).count() == 6
        && word.as_bytes()[4] == b'-';
    if drawn || user_code || date || DATES.contains(&word) {
        return String::from("~");
    }
    // Runs of digits: ports, instants, lengths of what is sealed; a status stays.
    let mut out = String::new();
    let mut digits = String::new();
    for character in word.chars().chain(['\0']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        out.push_str(if digits.len() > 3 { "~" } else { &digits });
        digits.clear();
        out.extend((character != '\0').then_some(character));
    }
    out
}
