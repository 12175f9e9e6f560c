//! Links by which a person chooses a password. They go by letter to an address that is known to be
//! the person's. Where there is no e-mail, the administrator passes them on.

use super::Administrator;
use crate::pages::admin::person::{letter_sent, link_shown};
use crate::statements::admin_people::Person;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::INVITATION_LIFETIME;
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::links::to_pass_on;
use gatepost_server::endpoints::notices;
use gatepost_server::http::Response;

/// How a link gets to a person.
pub enum LinkWay {
    Letter(MailAddress),
    /// Shown to the administrator, once.
    Shown,
}

impl Administrator<'_> {
    /// Whoever was only just invited gets letters at the address that the invitation named.
    /// Everybody else gets them where the address is verified: an administrator could write another
    /// one, and what they write has `email_verified` beside it. `None` where a letter would go to
    /// an address that may be somebody else's, and for who cannot sign in with a password.
    pub fn link_way(&self, person: &Person) -> Option<LinkWay> {
        let claims = &person.found.user.claims;
        if !person.takes_link() {
            return None;
        }
        if self.context.app.letters.from().is_none() {
            return Some(LinkWay::Shown);
        }
        let is_of_invitation = person.is_new() && !claims.contains_key("email_verified");
        if !person.address_counts && !is_of_invitation {
            return None;
        }
        let to = MailAddress::parse(stored_address(claims)?).ok()?;
        Some(LinkWay::Letter(to))
    }

    /// Passes a link on, and shows the page of the person, which says how.
    pub fn pass_link_on(&self, person: &Person, way: &LinkWay) -> Result<Response> {
        let around = self.around;
        let told = match way {
            LinkWay::Letter(to) => {
                if !self.leave_letter(person, to)? {
                    return Err(Failure::Throttled {
                        reason: Reason::TooManySignInFailures,
                        retry_after: letters::HOUR,
                    });
                }
                letter_sent(around, person, to.as_str())
            }
            LinkWay::Shown => link_shown(around, person, &self.link_to_show(person)),
        };
        self.draw_person(person, Some(&Ok(told)), None)
    }

    /// Leaves the letter to the lane. `false` where there were too many.
    pub fn leave_letter(&self, person: &Person, to: &MailAddress) -> Result<bool> {
        let context = self.context;
        let language = context.chrome().texts.language;
        let origin = LinkOrigin::ByAdministrator(self.acting.admin.clone());
        let by = context.current_session.user.called();
        let letter = letters::of_link(context.app, &person.found, to, language, origin, Some(by));
        let asked = notices::asked_by(context.app, &context.presentation());
        let sub = &person.found.user.sub;
        letters::write_about(context.app, &asked, b"links", sub, letter)
    }

    pub fn link_to_show(&self, person: &Person) -> String {
        let app = self.context.app;
        let origin = LinkOrigin::ByAdministrator(self.acting.admin.clone());
        to_pass_on(
            app,
            &person.found,
            origin,
            app.now().plus(INVITATION_LIFETIME),
        )
    }
}
