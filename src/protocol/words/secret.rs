//! Values that must never be printed: passwords, client secrets, codes, tokens, keys.

use std::fmt;
use std::ops::Deref;

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// A value that cannot be printed: `Debug` shows `[redacted]`, and there is no `Display`. Two
/// secrets of the same length are compared in constant time.
#[derive(Clone)]
pub struct Secret<T>(T);

pub type SecretText = Secret<String>;
pub type SecretBytes = Secret<Vec<u8>>;

impl<T: AsRef<[u8]>> PartialEq for Secret<T> {
    fn eq(&self, other: &Secret<T>) -> bool {
        verify_slices_are_equal(self.0.as_ref(), other.0.as_ref()).is_ok()
    }
}

impl<T: AsRef<[u8]>> Eq for Secret<T> {}

impl<T: Deref + AsRef<[u8]>> Secret<T> {
    pub fn new(secret: impl Into<T>) -> Secret<T> {
        Secret(secret.into())
    }

    /// Every caller is a place to audit.
    pub fn expose(&self) -> &T::Target {
        &self.0
    }

    /// An empty secret counts as none (RFC 6749 §3.2).
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_empty()
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_and_equals_itself_alone() {
        assert_eq!(
            format!("{:?} {:?}", SecretText::new("x"), SecretBytes::new(*b"x")),
            "[redacted] [redacted]"
        );
        assert_eq!(SecretText::new("hunter2"), SecretText::new("hunter2"));
        assert!(SecretText::new("").is_empty() && !SecretText::new("x").is_empty());
        for other in ["hunter3", "Hunter2", "hunter", "hunter22", ""] {
            assert_ne!(SecretText::new("hunter2"), SecretText::new(other));
            assert_ne!(SecretBytes::new(*b"hunter2"), SecretBytes::new(other));
        }
    }
}
