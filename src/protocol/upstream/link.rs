//! Linking an identity elsewhere to an account here: when it may begin, and what waits for the person's yes.

use std::time::Duration;

use super::super::identifiers::Sid;
use super::super::instant::Instant;
use super::super::parameters::Parameters;
use super::super::registration::names::is_invisible;
use super::super::sealed_request::{SealedPurpose, SealedRequest};
use super::super::session::{LOCAL, Session};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOffer {
    pub provider: String,
    /// Half of the identity's key.
    pub issuer: String,
    pub subject: String,
    pub label: Option<String>,
    /// The session that asked for it, and no other, may take it.
    pub sid: Sid,
    /// When it was proven.
    pub made_at: Instant,
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
    pub fn to_sealed(&self) -> SealedRequest {
        let members = [
            ("provider", Some(self.provider.as_str())),
            ("issuer", Some(&self.issuer)),
            ("subject", Some(&self.subject)),
            ("label", self.label.as_deref()),
            ("sid", Some(self.sid.as_str())),
        ];
        let parameters = Parameters::from_pairs(members.into_iter().filter_map(|(name, value)| Some((name, value?))));
        SealedRequest { purpose: SealedPurpose::Link, received_at: self.made_at, parameters }
    }

    /// Reads what was opened; `None` for whatever was sealed for another purpose.
    pub fn of_sealed(sealed: &SealedRequest) -> Option<LinkOffer> {
        match sealed.purpose {
            SealedPurpose::Link => {}
            SealedPurpose::Authorize
            | SealedPurpose::Device
            | SealedPurpose::Account
            | SealedPurpose::Logout
            | SealedPurpose::SignedOut => return None,
        }
        let text = |name| sealed.parameters.all(name).next().map(str::to_owned);
        Some(LinkOffer {
            provider: text("provider")?,
            issuer: text("issuer")?,
            subject: text("subject")?,
            label: text("label"),
            sid: Sid::new(text("sid")?),
            made_at: sealed.received_at,
        })
    }

    pub fn judge(&self, sid: &Sid, now: Instant) -> Result<(), OfferProblem> {
        if self.sid != *sid {
            Err(OfferProblem::OtherSession)
        } else if now >= self.made_at.plus(OFFER_LIFETIME) {
            Err(OfferProblem::Expired)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::identifiers::Subject;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn session(provider: &str) -> Session {
        let auth_time = Instant::from_seconds(1_000);
        Session {
            subject: Subject::new("alice"),
            sid: Sid::new("sid-1"),
            auth_time,
            amr: Vec::new(),
            acr: String::from("1"),
            tenant: None,
            identity_provider: Some(provider.to_owned()),
            upstream_issuer: None,
            expires_at: auth_time,
            created_at: auth_time,
        }
    }

    fn offer() -> LinkOffer {
        LinkOffer {
            provider: String::from("corp"),
            issuer: String::from("https://login.example.com"),
            subject: String::from("248289761001"),
            label: Some(String::from("alice@example.com")),
            sid: Sid::new("sid-1"),
            made_at: Instant::from_seconds(1_000),
        }
    }

    #[test]
    fn linking_begins_within_five_minutes_of_a_sign_in_by_the_password_where_there_is_one() {
        for (provider, has_password, seconds, expected) in [
            ("local", true, 0, true),
            ("local", true, 299, true),
            ("local", true, 300, false),
            ("local", true, 86_400, false),
            ("corp", true, 0, false),
            ("corp", false, 0, true),
            ("corp", false, 300, false),
            ("local", false, 0, true),
        ] {
            let session = session(provider);
            let now = session.auth_time.plus(SECOND * seconds);
            assert_eq!(may_begin(&session, has_password, now), expected, "{provider} {has_password} {seconds}");
        }
    }

    #[test]
    fn an_offer_is_read_back_as_it_was_sealed() {
        for offer in [offer(), LinkOffer { label: None, ..offer() }] {
            let sealed = offer.to_sealed();
            assert_eq!(LinkOffer::of_sealed(&sealed), Some(offer));
        }
    }

    #[test]
    fn whatever_was_sealed_for_something_else_is_no_offer() {
        let logout = SealedRequest { purpose: SealedPurpose::Logout, ..offer().to_sealed() };
        assert_eq!(LinkOffer::of_sealed(&logout), None);
        for missing in ["provider", "issuer", "subject", "sid"] {
            let sealed = offer().to_sealed();
            let kept = sealed.parameters.iter().filter(|(name, _)| *name != missing);
            let parameters = Parameters::from_pairs(kept);
            assert_eq!(LinkOffer::of_sealed(&SealedRequest { parameters, ..sealed }), None, "{missing}");
        }
    }

    #[test]
    fn an_offer_is_for_its_session_and_five_minutes() {
        let (offer, sid) = (offer(), Sid::new("sid-1"));
        let judged = |sid: &Sid, seconds: u32| offer.judge(sid, offer.made_at.plus(SECOND * seconds));
        assert_eq!(judged(&sid, 0), Ok(()));
        assert_eq!(judged(&sid, 299), Ok(()));
        assert_eq!(judged(&sid, 300), Err(OfferProblem::Expired));
        for other in ["sid-2", "", "SID-1"] {
            assert_eq!(judged(&Sid::new(other), 0), Err(OfferProblem::OtherSession), "{other}");
        }
    }

    #[test]
    fn a_subject_hides_nothing_from_whom_it_is_shown_to() {
        for (subject, shown) in [
            ("248289761001", "248289761001"),
            ("\u{e9}\u{4e9c} <b>", "\u{e9}\u{4e9c} <b>"),
            ("a\u{202e}b\u{200b}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(readable(subject), shown);
        }
    }
}
