//! Links by which a person chooses a password. They go by letter to an address that is known to be
//! the person's. Where there is no e-mail, the administrator passes them on.

use super::Administrator;
use crate::pages::admin::person::PersonOutcome;
use crate::statements::admin_people::Person;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::INVITATION_LIFETIME;
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::links::to_pass_on;
use gatepost_server::endpoints::notices;
use gatepost_server::http::Response;

/// How a link gets to a person.
pub(super) enum LinkWay {
    Letter(MailAddress),
    /// Shown to the administrator, once.
    Shown,
    /// A letter would go to an address that may be somebody else's.
    NoConfirmedAddress,
    /// The person cannot sign in with a password.
    None,
}

impl Administrator<'_> {
    /// Whoever was only just invited gets letters at the address that the invitation named.
    /// Everybody else gets them where the address is verified: an administrator could write another
    /// one, and what they write has `email_verified` beside it.
    pub(super) fn link_way(&self, person: &Person) -> LinkWay {
        let user = &person.found.user;
        if !user.enabled || user.username.is_none() {
            return LinkWay::None;
        }
        if self.context.app.letters.from().is_none() {
            return LinkWay::Shown;
        }
        let is_of_invitation = person.is_new() && !user.claims.contains_key("email_verified");
        let address = stored_address(&user.claims);
        let address = address.filter(|_| person.address_counts || is_of_invitation);
        match address.map(MailAddress::parse) {
            Some(Ok(to)) => LinkWay::Letter(to),
            Some(Err(_)) | None => LinkWay::NoConfirmedAddress,
        }
    }

    /// Passes a link on, and shows the page of the person, which says how.
    pub(super) fn pass_link_on(&self, person: &Person, way: &LinkWay) -> Result<Response, Failure> {
        match way {
            LinkWay::Letter(to) => {
                self.send_link(person, to)?;
                let outcome = PersonOutcome::LetterSent(to.as_str());
                self.draw_person(person, Some(outcome))
            }
            LinkWay::Shown => {
                let link = self.link_to_show(person);
                self.draw_person(person, Some(PersonOutcome::Link(&link)))
            }
            LinkWay::NoConfirmedAddress | LinkWay::None => self.draw_person(person, None),
        }
    }

    /// Leaves the letter to the lane. Where there were too many, the administrator is told to wait.
    fn send_link(&self, person: &Person, to: &MailAddress) -> Result<(), Failure> {
        if self.leave_letter(person, to)? {
            return Ok(());
        }
        Err(Failure::Throttled {
            reason: Reason::TooManySignInFailures,
            retry_after: letters::HOUR,
        })
    }

    /// The same; `false` where there were too many.
    pub(super) fn leave_letter(&self, person: &Person, to: &MailAddress) -> Result<bool, Failure> {
        let context = self.context;
        let language = context.chrome().texts.language;
        let origin = LinkOrigin::ByAdministrator(self.sub().clone());
        let by = context.current_session.user.called();
        let letter = letters::of_link(context.app, &person.found, to, language, origin, Some(by));
        let asked = notices::asked_by(context.app, &context.presentation());
        let sub = &person.found.user.sub;
        letters::write_about(context.app, &asked, b"links", sub, letter)
    }

    pub(super) fn link_to_show(&self, person: &Person) -> String {
        let app = self.context.app;
        let origin = LinkOrigin::ByAdministrator(self.sub().clone());
        to_pass_on(
            app,
            &person.found,
            origin,
            app.now().plus(INVITATION_LIFETIME),
        )
    }
}
