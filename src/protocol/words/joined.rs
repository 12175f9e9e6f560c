//! Lists in texts.

use std::fmt::{Display, Write};

/// All of them in one text, with `between` them.
pub fn joined(between: &str, parts: impl IntoIterator<Item: Display>) -> String {
    let mut text = String::with_capacity(64);
    for (index, part) in parts.into_iter().enumerate() {
        let before = if index == 0 { "" } else { between };
        // Writing to a text cannot fail.
        let _ = write!(text, "{before}{part}");
    }
    text
}
