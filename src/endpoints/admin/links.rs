//! Links by which a person chooses a password. They go by letter to an address that is known to be
//! the person's. Where there is no e-mail, the administrator passes them on.

use serde_json::Value;

use super::Administrator;
use super::person::draw;
use crate::app::failure::Failure;
use crate::app::letters::{Errand, Letter};
use crate::endpoints::letters::message;
use crate::endpoints::notices;
use crate::endpoints::visit::InSession;
use crate::http::Response;
use crate::pages::admin::person::PersonOutcome;
use crate::pages::language::Language;
use crate::pages::letters::{LetterFrame, ResetAccount};
use crate::protocol::login::letters::stored_address;
use crate::protocol::login::mail_link::{self, INVITATION_LIFETIME, MailLink, address_hash};
use crate::protocol::login::password_link::{PREFIX, PasswordLink};
use crate::protocol::words::mail_address::MailAddress;
use crate::store::admin_people::Person;

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

/// Whoever was only just invited gets letters at the address that the invitation named. Everybody
/// else gets them where the address is verified: an administrator could write another one.
pub(super) fn way(administrator: &Administrator<'_>, person: &Person) -> LinkWay {
    let user = &person.found.user;
    if !user.enabled || user.username.is_none() {
        return LinkWay::None;
    }
    if administrator.turn.app.letters.from().is_none() {
        return LinkWay::Shown;
    }
    let address = stored_address(&user.claims).filter(|_| person.address_counts || person.is_new());
    match address.map(MailAddress::parse) {
        Some(Ok(to)) => LinkWay::Letter(to),
        Some(Err(_)) | None => LinkWay::NoConfirmedAddress,
    }
}

/// Passes a link on, and shows the page of the person, which says how.
pub(super) fn pass_on(
    administrator: &Administrator<'_>,
    person: &Person,
    way: &LinkWay,
) -> Result<Response, Failure> {
    match way {
        LinkWay::Letter(to) => {
            send(administrator, person, to);
            let outcome = PersonOutcome::LetterSent(to.as_str());
            draw(administrator, person, Some(outcome))
        }
        LinkWay::Shown => {
            let link = link(administrator, person);
            draw(administrator, person, Some(PersonOutcome::Link(&link)))
        }
        LinkWay::NoConfirmedAddress | LinkWay::None => draw(administrator, person, None),
    }
}

/// Leaves the letter to the lane, in the language of the person.
fn send(administrator: &Administrator<'_>, person: &Person, to: &MailAddress) {
    let turn = administrator.turn;
    let app = turn.app;
    let user = &person.found.user;
    let link = MailLink {
        subject: user.sub.clone(),
        epoch: user.epoch,
        installation_epoch: person.found.installation_epoch,
        factors: user.factors,
        address_hash: address_hash(&user.claims),
        expires_at: app.now().plus(INVITATION_LIFETIME),
        request: None,
    };
    let sealed = app.vault.mail_links.seal_text(mail_link::PREFIX, &link);
    let address = format!("{}/account/link?l={sealed}", app.issuer());
    let locale = user.claims.get("locale").and_then(Value::as_str);
    let language = locale.and_then(Language::asked_for);
    let language = language.unwrap_or(turn.chrome().texts.language);
    let frame = LetterFrame {
        texts: language.texts(),
        brand: &app.config.brand,
        source: None,
    };
    let name = user.designation();
    let (kind, text) = match user.password_hash {
        Some(_) => {
            let account = ResetAccount {
                name,
                link: Some(&address),
            };
            ("reset", frame.reset(&[account], None, link.expires_at))
        }
        None => (
            "invitation",
            frame.invitation(name, &address, link.expires_at),
        ),
    };
    let letter = Letter {
        to: to.clone(),
        message: message(&app.config, language.tag(), to, &text, app.now()),
        subs: vec![user.sub.clone()],
        kind,
    };
    let asked = notices::asked_by(&turn.presentation());
    notices::hand_over(app, &asked, Some(&user.sub), Errand::Written(letter));
}

/// A link to pass on.
fn link(administrator: &Administrator<'_>, person: &Person) -> String {
    let InSession { app, .. } = administrator.turn;
    let user = &person.found.user;
    let link = PasswordLink {
        subject: user.sub.clone(),
        epoch: user.epoch,
        installation_epoch: person.found.installation_epoch,
        factors: user.factors,
        enrols: false,
        expires_at: app.now().plus(INVITATION_LIFETIME),
    };
    let sealed = app.vault.password_links.seal_text(PREFIX, &link);
    format!("{}/account/link?l={sealed}", app.issuer())
}
