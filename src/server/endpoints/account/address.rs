//! The e-mail address of an account: asking for another one on the account page. It is taken where
//! the link of the letter leads (`links/address.rs`).

use super::Change;
use crate::app::failure::Result;
use crate::app::letters::Errand;
use crate::endpoints::notices;
use crate::endpoints::transaction::{InSession, unknown_action};
use crate::http::Response;
use crate::pages::account::Outcome;
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::login::mail_link::{
    ADDRESS_LIFETIME, ADDRESS_PREFIX, AddressLink, address_hash,
};
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::secret::SecretText;

/// Where the link of the letter leads.
pub const PAGE: &str = "/account/address";

/// Sends a letter to the address that they typed.
pub(super) fn ask_for(change: Change<'_>) -> Result<Response> {
    if change.context.app.letters.from().is_none() {
        return Err(unknown_action());
    }
    if !super::factors::may_change(change.context) {
        return change.sign_in_anew();
    }
    let typed = change.form.single("new_address")?.unwrap_or_default();
    let Ok(to) = MailAddress::parse(typed.trim()) else {
        return change.problem(FormProblem::AddressUnfit);
    };
    send_letter(change.context, &to);
    change.answer(Outcome::AddressLetterSent(to.as_str()))
}

fn send_letter(context: InSession<'_>, to: &MailAddress) {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let user = &current_session.user;
    let link = AddressLink {
        user: user.of_link(current_session.row.epochs.installation),
        old_hash: address_hash(&user.claims),
        new: to.as_str().to_owned(),
        // Who this session is need not be said: it counts as one that began no earlier than itself.
        sid: Sid::new(""),
        asked_at: current_session.row.auth_time,
        expires_at: app.now().plus(ADDRESS_LIFETIME),
    };
    let sealed = app.vault.mail_links.seal_text(ADDRESS_PREFIX, &link);
    let asked = notices::asked_by(app, &context.presentation());
    let errand = Errand::NewAddress {
        sub: user.sub.clone(),
        to: to.clone(),
        link: SecretText::new(format!("{}{PAGE}?l={sealed}", app.issuer())),
    };
    notices::hand_over(app, &asked, Some(&user.sub), errand);
}
