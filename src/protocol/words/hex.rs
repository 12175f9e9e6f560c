//! Hexadecimal (RFC 4648 §8): written in lower case, read in either.

use std::fmt::Write;

pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn decode(text: &str) -> Option<Vec<u8>> {
    let nibble = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut digits = text.bytes().map(nibble);
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        bytes.push(high? << 4 | digits.next()??);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&all)), Some(all.clone()));
        assert_eq!(decode(&encode(&all).to_uppercase()), Some(all));
        assert_eq!((encode(&[0, 0x9a]), decode("")), (String::from("009a"), Some(Vec::new())));
    }

    #[test]
    fn anything_else_is_not() {
        for text in ["0", "0g", "g0", "0x", " 0", "00 ", "é", "+1", "0é0"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
