//! The e-mail address of an account: asking for another one on the account page. It is taken where
//! the link of the letter leads (`links/address.rs`).

use super::Change;
use crate::app::failure::Failure;
use crate::app::letters::Errand;
use crate::endpoints::notices;
use crate::endpoints::visit::{InSession, unknown_action};
use crate::http::Response;
use crate::pages::account::{AccountProblem, Outcome};
use gatepost_protocol::login::mail_link::{
    ADDRESS_LIFETIME, ADDRESS_PREFIX, AddressLink, address_hash,
};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::secret::SecretText;

/// Where the link of the letter leads.
pub const PAGE: &str = "/account/address";

/// Sends a letter to the address that they typed.
pub(super) fn ask_for(change: Change<'_>) -> Result<Response, Failure> {
    if change.turn.app.letters.from().is_none() {
        return Err(unknown_action());
    }
    if !super::factors::may_change(change.turn) {
        return change.sign_in_anew();
    }
    let typed = change.form.single("new_address")?.unwrap_or_default();
    let Ok(to) = MailAddress::parse(typed.trim()) else {
        return change.problem(AccountProblem::AddressUnfit);
    };
    send_letter(change.turn, &to);
    change.answer(Outcome::AddressLetterSent(to.as_str()))
}

fn send_letter(turn: InSession<'_>, to: &MailAddress) {
    let InSession { app, present, .. } = turn;
    let user = &present.user;
    let link = AddressLink {
        user: user.of_link(present.row.epochs.installation),
        old_hash: address_hash(&user.claims),
        new: to.as_str().to_owned(),
        sid: present.row.sid.clone(),
        asked_at: app.now(),
        expires_at: app.now().plus(ADDRESS_LIFETIME),
    };
    let sealed = app.vault.mail_links.seal_text(ADDRESS_PREFIX, &link);
    let asked = notices::asked_by(&turn.presentation());
    let errand = Errand::NewAddress {
        sub: user.sub.clone(),
        to: to.clone(),
        link: SecretText::new(format!("{}{PAGE}?l={sealed}", app.issuer())),
    };
    notices::hand_over(app, &asked, Some(&user.sub), errand);
}
