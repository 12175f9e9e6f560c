//! What a look at something registered says of it.

use gatepost_protocol::words::named::named;

/// [`Finding::fine`] of a text with values in it.
#[macro_export]
macro_rules! fine {
    ($($text:tt)+) => { $crate::finding::Finding::fine(format!($($text)+)) };
}

/// The same of what could be better.
#[macro_export]
macro_rules! weak {
    ($($text:tt)+) => { $crate::finding::Finding::weak(format!($($text)+)) };
}

/// The same of what cannot work.
#[macro_export]
macro_rules! broken {
    ($($text:tt)+) => { $crate::finding::Finding::broken(format!($($text)+)) };
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub verdict: Verdict,
    pub text: String,
}

named! {
    pub enum Verdict {
        Fine = "ok",
        /// It works; there is something better.
        Weak = "weak",
        Broken = "fails",
    }
}

impl Finding {
    fn new(verdict: Verdict, text: impl Into<String>) -> Finding {
        Finding {
            verdict,
            text: text.into(),
        }
    }

    pub fn fine(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Fine, text)
    }

    pub fn weak(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Weak, text)
    }

    pub fn broken(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Broken, text)
    }
}
