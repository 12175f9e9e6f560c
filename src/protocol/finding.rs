//! What an operator is told of one thing that was looked at.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    pub text: String,
}

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
