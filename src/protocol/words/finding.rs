//! What an operator is told of one thing that was looked at.

use super::named::named;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    pub text: String,
}

named! {
    pub enum Verdict {
        /// As it should be.
        Fine = "ok",
        /// It works; there is something better.
        Weak = "weak",
        /// It does not work.
        Broken = "fails",
    }
}

impl Finding {
    fn new(verdict: Verdict, text: impl Into<String>) -> Finding {
        Finding { verdict, text: text.into() }
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
