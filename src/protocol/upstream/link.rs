//! Linking an identity elsewhere to an account here: when it may begin, and what waits for the person's yes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::registration::names::is_invisible;
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::session::{LOCAL, Session};

/// How long after a sign-in linking may begin: whoever finds a browser unattended must not add a way in for themselves.
pub const FRESH_SIGN_IN: Duration = Duration::from_secs(300);
/// How long the question whether to link waits for its answer.
pub const OFFER_LIFETIME: Duration = Duration::from_secs(300);

/// Whether linking may begin in that session of a user with or without a password. Who has one proves by it that they are
/// there: a provider may send whoever finds their browser back without a question, and not say when it last asked one.
pub fn may_begin(session: &Session, has_password: bool, now: Instant) -> bool {
    let is_by_password = session.identity_provider() == LOCAL;
    (is_by_password || !has_password) && now < session.auth_time.plus(FRESH_SIGN_IN)
}

/// An identity that was proven upstream and waits, sealed in a form, for the person to say that it shall be theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOffer {
    pub provider: String,
    pub issuer: String,
    pub subject: String,
    pub label: Option<String>,
    /// The session that asked for it, and no other, may take it.
    pub sid: Sid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferProblem {
    OtherSession,
    Expired,
}

/// A subject as the person reads it who says yes to it: what cannot be seen, or turns the rest around, is seen to be there.
pub fn readable(subject: &str) -> String {
    subject.chars().map(|character| if is_invisible(character) { '\u{fffd}' } else { character }).collect()
}

impl LinkOffer {
    /// Whether this session may take it now.
    pub fn judge(&self, sid: &Sid, made_at: Instant, now: Instant) -> Result<(), OfferProblem> {
        if self.sid != *sid {
            Err(OfferProblem::OtherSession)
        } else if now >= made_at.plus(OFFER_LIFETIME) {
            Err(OfferProblem::Expired)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_hides_nothing_from_whom_it_is_shown_to() {
        for (subject, shown) in
            [("\u{e9}\u{4e9c} <b>", "\u{e9}\u{4e9c} <b>"), ("a\u{202e}b\u{200b}", "a\u{fffd}b\u{fffd}")]
        {
            assert_eq!(readable(subject), shown);
        }
    }
}
