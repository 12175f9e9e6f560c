//! Values that must never be printed: passwords, client secrets, codes, tokens, keys.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// `Debug` shows only that it is one; there is no `Display`. Two of one length are compared in constant time.
#[derive(Clone, Eq)]
pub struct SecretText(String);

impl PartialEq for SecretText {
    fn eq(&self, other: &SecretText) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }
}

impl SecretText {
    pub fn new(text: impl Into<String>) -> SecretText {
        SecretText(text.into())
    }

    /// Every caller is a place to audit.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// An empty secret counts as none (RFC 6749 §3.2).
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// Keys and digests of secrets. Printed as little as [`SecretText`], and compared alike.
#[derive(Clone, Eq)]
pub struct SecretBytes(Vec<u8>);

impl PartialEq for SecretBytes {
    fn eq(&self, other: &SecretBytes) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl SecretBytes {
    pub fn new(bytes: impl Into<Vec<u8>>) -> SecretBytes {
        SecretBytes(bytes.into())
    }

    /// Every caller is a place to audit.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_and_equals_itself_alone() {
        assert_eq!(format!("{:?} {:?}", SecretText::new("x"), SecretBytes::new(*b"x")), "[redacted] [redacted]");
        assert_eq!(SecretText::new("hunter2"), SecretText::new("hunter2"));
        for other in ["hunter3", "Hunter2", "hunter", "hunter22", ""] {
            assert_ne!(SecretText::new("hunter2"), SecretText::new(other));
            assert_ne!(SecretBytes::new(*b"hunter2"), SecretBytes::new(other));
        }
    }
}
