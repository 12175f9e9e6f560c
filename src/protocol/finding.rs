//! What an operator is told of one thing that was looked at.

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How it is.
    pub verdict: Verdict,
    /// What was looked at, and what to do about it.
    pub text: String,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It works; there is something better.
    Weak,
    /// It does not work.
    Broken,
}

impl Verdict {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Fine => "ok",
            Verdict::Weak => "weak",
            Verdict::Broken => "fails",
        }
    }
}

impl Finding {
    fn new(verdict: Verdict, text: impl Into<String>) -> Finding {
        Finding { verdict, text: text.into() }
    }

    /// It is as it should be.
    pub fn fine(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Fine, text)
    }

    /// It works, and could be better.
    pub fn weak(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Weak, text)
    }

    /// It does not work.
    pub fn broken(text: impl Into<String>) -> Finding {
        Finding::new(Verdict::Broken, text)
    }
}
