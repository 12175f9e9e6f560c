//! What may become a password in this installation: the rules of the core, and a list of passwords
//! that are known to everybody. The list is the file of Pwned Passwords: a line for each, as
//! `SHA1:count`, sorted. It has some 40 GB, so it is searched where it lies.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::config::Config;
use gatepost_protocol::login::password::{PasswordFlaw, check_new};
use gatepost_store::mutex::Mutex;

/// How often the log is told that the list cannot be searched.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Of a SHA-1, in hexadecimal.
const DIGITS: usize = 40;
/// A line has the digest, a colon, a number and an end.
const LONGEST_LINE: u64 = 64;

#[derive(Debug)]
pub struct PasswordRules {
    /// In characters.
    least: u32,
    list: Option<PathBuf>,
    told_at: Mutex<Option<Instant>>,
}

impl PasswordRules {
    pub fn new(config: &Config) -> PasswordRules {
        PasswordRules {
            least: config.passwords.least,
            list: config.passwords.blocklist.clone(),
            told_at: Mutex::default(),
        }
    }

    /// Checks a new password. Where the list cannot be searched, the password is taken: people must
    /// be able to change theirs.
    pub fn check(&self, text: &str) -> Result<(), PasswordFlaw> {
        check_new(text, self.least)?;
        let Some(list) = &self.list else {
            return Ok(());
        };
        match is_listed(list, text) {
            Ok(true) => Err(PasswordFlaw::TooCommon),
            Ok(false) => Ok(()),
            Err(error) => {
                self.tell(list, &error);
                Ok(())
            }
        }
    }

    /// Why the list cannot be searched.
    pub fn fault(&self) -> Option<String> {
        let list = self.list.as_ref()?;
        let error = is_listed(list, "password").err()?;
        Some(format!("{}: {error}", list.display()))
    }

    fn tell(&self, list: &Path, error: &io::Error) {
        let mut told_at = self.told_at.lock();
        if told_at.is_none_or(|told_at| told_at.elapsed() >= TELL_EVERY) {
            *told_at = Some(Instant::now());
            let list = list.display();
            log::warn!("new passwords are taken without a look at {list}: {error}");
        }
    }
}

/// A line of the list: what it begins with, and where it lies.
struct Line {
    digest: [u8; DIGITS],
    begins_at: u64,
    ends_at: u64,
}

/// Whether the password is in the file. Halves what is left of it about 36 times.
fn is_listed(list: &Path, text: &str) -> io::Result<bool> {
    let wanted = digest_of(text);
    let mut file = File::open(list)?;
    let mut begin = 0;
    let mut end = file.metadata()?.len();
    if end == 0 {
        return Err(unfit("it is empty"));
    }
    // What is left lies between these two.
    let mut least = [0; DIGITS];
    let mut most = [u8::MAX; DIGITS];
    while begin < end {
        let middle = begin.midpoint(end);
        let Some(line) = line_behind(&mut file, begin, middle, end)? else {
            // The last line of what is left begins before its middle.
            end = middle;
            continue;
        };
        let found = line.digest;
        if found < least || found > most {
            return Err(unfit("it is not sorted by the digest"));
        }
        if found == wanted {
            return Ok(true);
        }
        if found < wanted {
            least = found;
            begin = line.ends_at;
        } else {
            most = found;
            end = middle.min(line.begins_at);
        }
    }
    Ok(false)
}

/// The first line that begins at `middle` or behind it, and before `end`. A line begins at `begin`.
fn line_behind(file: &mut File, begin: u64, middle: u64, end: u64) -> io::Result<Option<Line>> {
    // From one byte before, as a line begins at `middle` if that is an end of a line.
    let from = if middle > begin { middle - 1 } else { begin };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(2 * LONGEST_LINE).read_to_end(&mut bytes)?;
    let skipped = if middle > begin {
        match line_end(&bytes) {
            Some(at) => at + 1,
            None if bytes.len() < 64 => return Ok(None),
            None => return Err(unfit("it has a line that is too long")),
        }
    } else {
        0
    };
    let begins_at = from + skipped as u64;
    let rest = bytes.get(skipped..).unwrap_or_default();
    if begins_at >= end || rest.is_empty() {
        return Ok(None);
    }
    let length = line_end(rest).map_or(rest.len(), |at| at + 1);
    Ok(Some(Line {
        digest: digest_at(rest).ok_or_else(|| unfit("it has a line that is not SHA1:count"))?,
        begins_at,
        ends_at: begins_at + length as u64,
    }))
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// The digest that a line begins with.
fn digest_at(line: &[u8]) -> Option<[u8; DIGITS]> {
    let mut digits: [u8; DIGITS] = line.get(..DIGITS)?.try_into().ok()?;
    let is_digest = digits.iter().all(u8::is_ascii_hexdigit) && line.get(DIGITS) == Some(&b':');
    digits.make_ascii_uppercase();
    is_digest.then_some(digits)
}

fn unfit(rule: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, rule)
}

fn digest_of(text: &str) -> [u8; DIGITS] {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let digits: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    digits.as_bytes().try_into().unwrap_or([0; DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listed(PathBuf);

    impl Listed {
        fn new(name: &str, text: &str) -> Listed {
            let name = format!("gatepost-list-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).unwrap();
            Listed(path)
        }
    }

    impl Drop for Listed {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn lines(count: usize, end: &str) -> Vec<String> {
        let line = |index: usize| {
            let digest = digest_of(&format!("listed {index}"));
            format!(
                "{}:{}{end}",
                String::from_utf8_lossy(&digest),
                10_u64.pow(index as u32 % 9)
            )
        };
        let mut lines: Vec<String> = (0..count).map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn each_line_of_a_list_is_found_and_nothing_else() {
        for count in [1, 2, 3, 7, 200] {
            for end in ["\n", "\r\n"] {
                let name = format!("{count}-{}", end.len());
                let text = lines(count, end).concat();
                for (name, text) in [
                    (format!("{name}-a"), text.as_str()),
                    (name, text.trim_end()),
                ] {
                    let list = Listed::new(&name, text);
                    for index in 0..count {
                        let password = format!("listed {index}");
                        assert!(is_listed(&list.0, &password).unwrap(), "{name} {index}");
                    }
                    for index in 0..100 {
                        let password = format!("unlisted {index}");
                        assert!(!is_listed(&list.0, &password).unwrap(), "{name} {index}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_no_such_list_is_an_error() {
        let mut unsorted = lines(200, "\n");
        unsorted.reverse();
        for (name, text) in [
            ("unsorted", unsorted.concat()),
            ("empty", String::new()),
            ("words", "password\nletmein\n".repeat(50)),
            ("one line", "A".repeat(5_000)),
        ] {
            let list = Listed::new(name, &text);
            assert!(
                is_listed(&list.0, "a password of somebody").is_err(),
                "{name}"
            );
        }
        assert!(is_listed(Path::new("/nowhere/list.txt"), "x").is_err());
    }
}
