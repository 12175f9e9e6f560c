//! Letters about a sign-in in a browser that is not known to be its user's, and about a person whom
//! the link in one of them disabled.

use super::{frame, link, write_to};
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::{AskedBy, Errand};
use crate::endpoints::cookies::Browser;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::login::known_browser;
use crate::endpoints::notices::{asked_by, hand_over, reached};
use crate::endpoints::transaction::{Proof, RequestContext};
use gatepost_protocol::login::mail_link::NEW_BROWSER_LIFETIME;
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::words::session::PASSWORD;
use gatepost_store::disowned_sign_ins;
use gatepost_store::users::UserRow;

/// What the audit log calls a letter about such a sign-in.
pub const KIND: &str = "new_browser";

/// Tells a user of the session that they, or a thief of their password, began in a browser that is
/// not known to be theirs.
pub fn leave(context: RequestContext<'_>, session: &CurrentSession, proof: &Proof) {
    let RequestContext { app, request, .. } = context;
    let user = &session.user;
    let sub = &user.sub;
    let is_theirs = |before: &CurrentSession| before.user.sub == *sub;
    let by_password = proof.upstream.is_none() && proof.amr.iter().any(|one| one == PASSWORD);
    let is_told = by_password
        && app.config.new_browser_mail
        && app.letters.from().is_some()
        && !context.current_session.is_some_and(is_theirs)
        && known_browser::account(app, request, Some(sub)).is_none();
    if is_told {
        let browser = Browser::of(&app.config, request).value;
        let named = [sub.as_str().as_bytes(), browser.expose()];
        let errand = Errand::NewBrowser {
            user: Box::new(user.clone()),
            installation_epoch: session.row.epochs.installation,
            browser: app.vault.throttle_buckets.tag(&named),
        };
        let asked = asked_by(app, &context.presentation());
        hand_over(app, &asked, Some(sub), errand);
    }
}

/// Once for each browser, and not of somebody's first sign-in.
pub fn write(
    app: &App,
    asked: &AskedBy,
    user: &UserRow,
    installation_epoch: i64,
    browser: &[u8; 32],
) -> Result {
    let Some(to) = reached(&user.claims) else {
        return Ok(());
    };
    if !disowned_sign_ins::take_new_browser(&app.store, &user.sub, to.as_str(), asked.at, browser)?
    {
        return Ok(());
    }
    let until = asked.at.plus(NEW_BROWSER_LIFETIME);
    let origin = LinkOrigin::NewBrowser;
    let link = link(app, user, installation_epoch, until, origin);
    let frame = frame(app, asked, Some(user.called()));
    let text = frame.new_browser(user.designation(), &link, until);
    write_to(app, asked, &user.sub, &to, &text, KIND)
}

/// Letters to those who look after a person whom a link disabled.
pub fn write_of_disabled(app: &App, asked: &AskedBy, person: &UserRow) -> Result {
    let (Some(administration), Some(_)) = (&app.config.administration, app.letters.from()) else {
        return Ok(());
    };
    let tenant = person.tenant.as_ref();
    let page = format!("{}/admin", app.issuer());
    for admin in disowned_sign_ins::administrators(&app.store, tenant, &administration.role)? {
        if let Some(to) = reached(&admin.claims) {
            let frame = frame(app, asked, Some(admin.called()));
            let text = frame.disabled(person.designation(), &page);
            write_to(app, asked, &admin.sub, &to, &text, "disabled")?;
        }
    }
    Ok(())
}
