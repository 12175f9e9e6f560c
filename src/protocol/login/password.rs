//! What may become a password (NIST SP 800-63B §5.1.1.2): length and a list of the most guessed; no kinds of
//! characters.

/// In bytes.
pub const LONGEST_PASSWORD: usize = 1_024;

const SHORTEST_PASSWORD: usize = 8;

/// Of eight characters and more, in lower case.
const MOST_GUESSED: [&str; 84] = [
    "00000000",
    "01234567",
    "0123456789",
    "0987654321",
    "11111111",
    "111111111",
    "1111111111",
    "11223344",
    "12121212",
    "123123123",
    "12341234",
    "1234512345",
    "12345678",
    "123456789",
    "1234567890",
    "12345678910",
    "1234qwer",
    "123qweasd",
    "147258369",
    "1q2w3e4r",
    "1q2w3e4r5t",
    "1qaz2wsx",
    "22222222",
    "66666666",
    "76543210",
    "77777777",
    "87654321",
    "88888888",
    "987654321",
    "99999999",
    "a1b2c3d4",
    "a1234567",
    "aa123456",
    "aaaaaaaa",
    "abc12345",
    "abcd1234",
    "abcdefgh",
    "admin123",
    "administrator",
    "alexander",
    "asdf1234",
    "asdfasdf",
    "asdfghjk",
    "asdfghjkl",
    "baseball",
    "basketball",
    "changeme",
    "charlie1",
    "chocolate",
    "computer",
    "dragon123",
    "elizabeth",
    "football",
    "football1",
    "gatepost",
    "iloveyou",
    "internet",
    "jennifer",
    "jonathan",
    "letmein1",
    "liverpool",
    "master123",
    "michelle",
    "passw0rd",
    "password",
    "password1",
    "password12",
    "password123",
    "p@ssw0rd",
    "p@ssword",
    "pokemon1",
    "princess",
    "princess1",
    "q1w2e3r4",
    "qazwsxedc",
    "qwer1234",
    "qwerty12",
    "qwerty123",
    "qwertyui",
    "qwertyuiop",
    "starwars",
    "sunshine",
    "superman",
    "welcome1",
];

/// The error is the rule, without the password.
pub fn check_new(text: &str) -> Result<(), &'static str> {
    if text.chars().count() < SHORTEST_PASSWORD {
        return Err("must be at least 8 characters");
    }
    if text.len() > LONGEST_PASSWORD {
        return Err("must be at most 1024 bytes");
    }
    if text.contains('\0') {
        return Err("must not hold a NUL character");
    }
    if MOST_GUESSED.contains(&text.to_lowercase().as_str()) {
        return Err("must not be one of the most guessed passwords");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_characters_below_and_bytes_above() {
        assert!(check_new("äöüäöüä").is_err());
        assert!(check_new("äöüäöüäö").is_ok());
        assert!(check_new(&"x".repeat(1_024)).is_ok());
        assert!(check_new(&"x".repeat(1_025)).is_err());
        assert!(check_new(&"ä".repeat(513)).is_err());
        assert!(check_new("with\0nul\0inside").is_err());
    }

    #[test]
    fn the_most_guessed_are_refused_in_any_case() {
        for text in MOST_GUESSED {
            assert!(text.chars().count() >= SHORTEST_PASSWORD && text.to_lowercase() == text, "{text} can never match");
            assert!(check_new(text).is_err(), "{text}");
        }
        assert!(check_new("PassWord").is_err());
        assert!(check_new("correct horse battery staple").is_ok());
    }
}
